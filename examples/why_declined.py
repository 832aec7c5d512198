"""Explain a declined loan, show how many facts are needed, and verify the explanation as somebody else would."""

from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import anchorline as al
from anchorline.samples import loans

frame, decision = loans()
one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
encode = make_column_transformer((one_hot, ["purpose", "branch"]), ("drop", ["applied"]), remainder="passthrough")
model = make_pipeline(encode, HistGradientBoostingClassifier(random_state=0)).fit(frame, decision)

table = al.Table(frame)
explainer = al.Explainer(model, table)
explanation = explainer.explain(17)
print(explanation, end="\n\n")

print("How many facts are needed?")
print(explainer.frontier(17, ks=range(1, 7)), end="\n\n")

print("Somebody else checks the explanation from its JSON, the model and the training table:")
print(al.verify(explanation.to_json(), model, table))
