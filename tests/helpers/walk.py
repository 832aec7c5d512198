"""The walk of one explanation through the modules: ``python tests/helpers/walk.py`` prints it."""

import itertools
import sys
from collections import Counter

import anchorline as al
from anchorline.samples import loans


def loan_explainer(**options):
    """A classifier of loans on a raw table with these options, and a row to explain."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame, decision = loans()
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encode = make_column_transformer(
        (one_hot, ["purpose", "branch"]), ("drop", ["applied"]), remainder="passthrough"
    )
    model = make_pipeline(encode, HistGradientBoostingClassifier(max_iter=20, random_state=0)).fit(frame, decision)
    explainer = al.Explainer(model, al.Table(frame, **options))
    explainer.check()  # the checks of the setup are made once per explainer, not once per explanation
    explainer.explain(0, queries=100)  # and so are the trees of the model read
    return explainer, frame.iloc[1]


def modules_visited(function):
    """The modules of anchorline in which code runs during a call, in the order of their first visits."""
    visited = {}

    def note(frame, event, argument):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.split(".")[0] == "anchorline":
            visited.setdefault(name, len(visited))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return list(visited)


def rooms_visited(modules):
    """The rooms of the modules, one entry per stay; modules at the top are rooms of their own kind, "top"."""
    rooms = [
        name.split(".")[1] if name.count(".") > 1 or name == "anchorline.optimize" else "top" for name in modules
    ]
    return [room for room, _ in itertools.groupby(rooms)]


def crossings(rooms):
    """How often the walk goes from one room straight to another, for every ordered pair."""
    return Counter(itertools.pairwise(rooms))


if __name__ == "__main__":
    explainer, row = loan_explainer()
    modules = modules_visited(lambda: explainer.explain(row, k=5))
    rooms = " -> ".join(rooms_visited(modules))
    sys.stdout.write("\n  ".join([f"{len(modules)} modules:", *modules]) + f"\nrooms: {rooms}\n")
