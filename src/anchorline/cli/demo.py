"""``anchorline demo``."""

from pathlib import Path
from typing import Annotated

import typer

from anchorline.cli.console import PAGE_WIDTH, in_ascii, in_color, is_terminal, say, shown
from anchorline.cli.progress import Meter
from anchorline.errors import ParameterError
from anchorline.io import write_atomically

SUMMARY = "Train a model, explain it, write a report."
EXAMPLES = """\
anchorline demo --out report.html"""


def demo(
    out: Annotated[
        str, typer.Option("--out", metavar="PATH", help="Where the report is written.")
    ] = "report.html",
) -> None:
    """Train a small model on data that come with scikit-learn, explain a prediction, write a report."""
    if Path(out).suffix.lower() not in (".html", ".htm", ""):
        raise ParameterError(f"--out is {out!r}; needed a name that ends in .html, which is what is written.")
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415  heavy
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415
    from sklearn.model_selection import train_test_split  # noqa: PLC0415

    from anchorline.explainer import Explainer  # noqa: PLC0415
    from anchorline.render import html, terminal  # noqa: PLC0415
    from anchorline.spaces.table import Table  # noqa: PLC0415

    data = load_breast_cancer()
    labels = data.target_names[data.target]
    train, test, known, _ = train_test_split(data.data, labels, random_state=0)
    with Meter("Training a forest and explaining one of its answers", 30_000) as meter:
        model = RandomForestClassifier(50, random_state=0).fit(train, known)
        space = Table(train, names=[str(name) for name in data.feature_names])
        explainer = Explainer(meter.counted(model), space)
        explanation = explainer.explain(test[0].tolist(), k=5)
        trace = explainer.frontier(test[0].tolist(), range(1, 8))
    write_atomically(out, html.page(explanation, trace))
    say(f"A forest was trained on {len(train)} tumours. Why does it call this one malignant or benign?")
    say("")
    say(
        terminal.table(
            explanation, width=None if is_terminal() else PAGE_WIDTH, color=in_color(), ascii=in_ascii()
        )
    )
    say("")
    say(explanation.as_rule())
    say(f"The whole report: {shown(out)}")
    say("To explore cases in a browser, type: anchorline serve --demo")
