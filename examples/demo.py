"""Why did the model decide so? Train a classifier, explain three of its predictions."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import anchorline as al

data = load_breast_cancer(as_frame=False)
names = [str(name) for name in data.feature_names]
train, test, label, _ = train_test_split(data.data, data.target, random_state=0)

encoder = al.Binarizer(feature_names=names).fit(train)  # every measurement becomes four statements
model = RandomForestClassifier(random_state=0).fit(encoder.transform(train), label)


def benign(rows: np.ndarray) -> np.ndarray:
    """Probability that the tumour is benign."""
    return model.predict_proba(rows)[:, 1]


space = al.Hypercube(encoder.statements_)
explainer = al.Explainer(benign, space, output="P(benign)", output_range=(0.0, 1.0), threshold=0.5)

print(f"A random forest on {len(encoder.statements_)} statements about {len(names)} measurements.\n")
for number, row in enumerate(encoder.transform(test[:3])):
    explanation = explainer.explain(row, k=5)
    print(f"Patient {number}:")
    print("  " + str(explanation).replace("\n", "\n  ") + "\n")

print("Somebody else checks the last one, from its JSON and the model:")
print("  " + str(al.verify(explanation.to_json(), benign, space)))
