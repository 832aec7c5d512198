"""A notebook, executed by a kernel and opened in a real browser, light and dark.

Set ANCHORLINE_PICTURES to a folder to look at the pictures.
"""

import os
import pathlib
import re

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (extra first-try)")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (extra first-try)")
nbconvert = pytest.importorskip("nbconvert", reason="nbconvert is not installed (extra first-try)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra first-try)")

SETUP = """import anchorline as al
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(0)
table = pd.DataFrame({"income": rng.normal(40_000, 9_000, 300).round()})
table["debt"] = rng.normal(9_000, 3_000, 300).round()
model = LogisticRegression(max_iter=1000).fit(table / 1000, np.where(table.debt > table.income / 4, "no", "yes"))
explainer = al.Explainer(lambda rows: model.predict_proba(rows / 1000), al.Table(table), classes=["no", "yes"])"""
CELLS = {  # what a cell is, and what must be seen in its output
    "al.Table(table)": "300 rows",
    "explainer": "Explainer of",
    "explainer.explain(table.iloc[0])": "Model's decision",
    "explainer.rule(table.iloc[0])": "Rule",
    "explainer.changes(table.iloc[0])": "becomes",
    "explainer.frontier(table.iloc[0], ks=[1, 2])": "How many facts are needed?",
    "many = explainer.explain_many(table[:5], progress=True)": "5 of 5 rows (100%)",
    "explainer.explain(table.iloc[0]).plot();": "",
    "from IPython.display import HTML\nHTML(explainer.explain(table.iloc[0]).to_html())": "How we know",
}
COLORS = """() => [document.body, ...document.querySelectorAll('#plain *')].map(each => {
  const s = getComputedStyle(each);
  return [s.color, s.backgroundColor, s.fontSize, s.fontFamily, s.margin];
})"""
REMOVE = """() => {
  const all = [...document.querySelectorAll('.anchorline'), ...document.querySelectorAll('style')];
  const isOurs = each => each.tagName != 'STYLE' || /anchorline/.test(each.textContent);
  all.filter(isOurs).forEach(each => each.remove());
}"""
# Of every text in our views: its color, and the color of what is behind it.
CONTRASTS = """() => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = each => { for (; each; each = each.parentElement) {
    const color = rgb(getComputedStyle(each).backgroundColor);
    if (color.length < 4 || color[3] > .99) return color; }
    return rgb(getComputedStyle(document.documentElement).getPropertyValue('--page')); };
  const found = [];
  for (const each of document.querySelectorAll('.anchorline *, main.anchorline *')) {
    const own = [...each.childNodes].some(node => node.nodeType == 3 && node.textContent.trim());
    if (!own || each.closest('svg, style') || !each.getClientRects().length) continue;
    const [a, b] = [rgb(getComputedStyle(each).color), behind(each)].map(light);
    found.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), each.textContent.trim().slice(0, 40)]);
  }
  return found;
}"""
SCHEMES = {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 17, 17)"}  # the notebook's own background


@pytest.fixture(scope="module")
def notebook():
    """Return the executed notebook."""
    cells = [nbformat.v4.new_code_cell(each) for each in ("%matplotlib inline\n" + SETUP, *CELLS)]
    made = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3").execute()
    return made


def outputs(cell):
    """Return all of a cell's output as one text, and the kinds of its parts."""
    kinds = [kind for each in cell.outputs for kind in each.get("data", {"stream": 0})]
    texts = [each.get("text", "") or "".join(each["data"].get("text/html", "")) for each in cell.outputs]
    return re.sub(r"<style>.*?</style>|<[^>]+>", "", "\n".join(texts), flags=re.DOTALL), kinds


def test_every_view_is_there_without_a_warning(notebook):
    assert not outputs(notebook.cells[0])[0]
    for cell in notebook.cells[1:]:
        text, kinds = outputs(cell)
        assert CELLS[cell.source] in " ".join(text.split()).replace("&#x27;", "'"), cell.source
        assert "Warning" not in text, cell.source
        is_plot, is_progress = cell.source.endswith(".plot();"), "progress=True" in cell.source
        assert ("image/png" in kinds) == is_plot, cell.source
        assert ("text/html" in kinds) == (not is_plot and not is_progress), cell.source


@pytest.fixture(scope="module")
def pages(notebook, tmp_path_factory):
    """Return the notebook's page for each scheme, with a part of the user's own."""
    folder = tmp_path_factory.mktemp("notebook")
    paths = {}
    for scheme in SCHEMES:
        body, _ = nbconvert.HTMLExporter(theme=scheme, exclude_input_prompt=True).from_notebook_node(notebook)
        paths[scheme] = folder / f"{scheme}.html"
        head, _, end = body.rpartition("</body>")  # a report that is shown has such a tag, too
        body = f'{head}<div id="plain"><h2>Own heading</h2><p>Own text</p></div></body>{end}'
        body = re.sub(r"<script[^>]*\ssrc=[^>]*></script>", "", body)  # nothing is loaded from elsewhere
        paths[scheme].write_text(body, encoding="utf-8")
    return paths


@pytest.mark.parametrize("scheme", SCHEMES)
def test_views_are_legible_and_leave_the_notebook_as_it_is(scheme, pages, browser):
    context = browser.new_context(viewport={"width": 1000, "height": 800}, color_scheme=scheme)
    try:
        page = context.new_page()
        page.goto(pages[scheme].as_uri())
        page.evaluate("color => document.documentElement.style.setProperty('--page', color)", SCHEMES[scheme])
        page.evaluate("document.querySelectorAll('.anchorline details').forEach(each => each.open = true)")
        contrasts = page.evaluate(CONTRASTS)
        own = page.evaluate(COLORS)
        pictures = os.environ.get("ANCHORLINE_PICTURES")
        if pictures:
            page.screenshot(path=str(pathlib.Path(pictures) / f"notebook-{scheme}.png"), full_page=True)
        page.evaluate(REMOVE)
        assert page.evaluate(COLORS) == own
    finally:
        context.close()
    assert len(contrasts) > 60
    assert not [each for each in contrasts if each[0] < 4.5]
