"""``anchorline demo``."""

from pathlib import Path

from anchorline.cli.console import print_result, printable_lines
from anchorline.cli.formats import terminal_text
from anchorline.cli.options import Given, command, option
from anchorline.cli.progress import QueryProgress
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.io import write_atomically
from anchorline.spaces.table import Table


@command(
    "Train a model, explain one prediction, write a report.",
    {"out": option(str, "Where the report is written.", "PATH", default="report.html")},
    "anchorline demo --out report.html",
)
def demo(given: Given) -> None:
    """Train a small model on a data set of scikit-learn, explain one prediction, and write a report."""
    out = given.out
    if Path(out).suffix.lower() not in (".html", ".htm", ""):
        raise ParameterError(
            f"--out is {out!r}, but the report is an HTML page. Type a name that ends in .html: --out report.html"
        )
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415  heavy
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415
    from sklearn.model_selection import train_test_split  # noqa: PLC0415

    data = load_breast_cancer()
    labels = data.target_names[data.target]
    train, test, train_labels, _ = train_test_split(data.data, labels, random_state=0)
    with QueryProgress("Training a forest and explaining one of its predictions", 30_000) as progress:
        model = RandomForestClassifier(50, random_state=0).fit(train, train_labels)
        space = Table(train, names=[str(name) for name in data.feature_names])
        explainer = Explainer(progress.wrap_model(model), space)
        explanation = explainer.explain(test[0].tolist())
        frontier = explainer.frontier(test[0].tolist())
    write_atomically(out, explanation.to_html(frontier))
    print_result(f"A forest was trained on {len(train)} tumors. Why does it call this one malignant or benign?\n")
    print_result(f"{terminal_text(explanation)}\n")
    print_result(f"The whole report: {printable_lines(out)}")
    print_result("To explore cases in a browser, type: anchorline serve --demo")
