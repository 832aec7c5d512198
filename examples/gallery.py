"""Draw every picture in docs/gallery: plots, reports and the studio.

Type: python examples/gallery.py [folder]. The screenshots need Chromium and playwright.
"""

import contextlib
import pathlib
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from playwright.sync_api import Page, sync_playwright
from skimage import data
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import anchorline as al
from anchorline.samples import loans as applications
from anchorline.studio.access import StudioLimits
from anchorline.studio.contents import Contents
from anchorline.studio.demo import demo_explainer, demo_truth
from anchorline.studio.display import Display, Model, Previous
from anchorline.studio.opened import MAX_UPLOAD
from anchorline.studio.server import prepare

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/gallery")
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
HIDE_BELOW = """bottom => document.querySelectorAll("main > *").forEach(part => {
  if (part.getBoundingClientRect().bottom > bottom) part.style.visibility = "hidden";
})"""


def loans(n: int = 4000) -> tuple[pd.DataFrame, np.ndarray]:
    """Return invented loan applications with numbers, categories and yes/no columns, and their outcomes."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "income": rng.lognormal(10.9, 0.45, n).round(-2),
            "debt ratio": rng.beta(2, 4, n).round(3),
            "years employed": rng.gamma(2.0, 3.5, n).round(1),
            "late payments": rng.poisson(0.8, n),
            "purpose": rng.choice(["car", "home", "education", "business"], n, p=[0.4, 0.3, 0.1, 0.2]),
            "owner": rng.random(n) < 0.45,
        }
    )
    score = (
        1.6 * np.log(frame["income"] / 54_000) - 5 * (frame["debt ratio"] - 0.33) - 0.9 * frame["late payments"]
    )
    score += 0.08 * frame["years employed"] + 0.7 * frame["owner"] - 0.9 * (frame["purpose"] == "business")
    return frame, np.where(score + rng.normal(0, 0.5, n) > 0, "approved", "declined")


def classification() -> tuple[al.Explanation, al.Frontier]:
    """Explain a probability: a random forest behind an encoder, on a table of mixed types."""
    frame, outcome = loans()
    encoder = make_column_transformer((OneHotEncoder(), ["purpose"]), remainder="passthrough")
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
    model = make_pipeline(encoder, forest).fit(frame, outcome)
    explainer = al.Explainer(model, frame, output="approved")
    row = frame.iloc[[19]]
    return explainer.explain(row), explainer.frontier(row, ks=range(1, 7))


def regression() -> al.Explanation:
    """Explain a number: the progression of diabetes after one year."""
    bunch = load_diabetes(as_frame=True, scaled=False)
    frame = bunch.data.rename(columns={"bp": "blood pressure", "s5": "log triglycerides", "s3": "HDL"})
    model = RandomForestRegressor(60, random_state=0).fit(frame, bunch.target)
    return al.Explainer(model, frame, output="progression").explain(frame.iloc[[23]])


def multi_class() -> al.Explanation:
    """Explain the probability of one of three kinds of wine."""
    bunch = load_wine(as_frame=True)
    kinds = np.array(["Barolo", "Grignolino", "Barbera"])[bunch.target]
    frame = bunch.data.rename(columns=lambda name: name.replace("_", " "))
    model = RandomForestClassifier(60, random_state=0).fit(frame, kinds)
    return al.Explainer(model, frame).explain(frame.iloc[[70]])


def reviews() -> al.Explainer:
    """Return reviews, and a model of a few others that says whether a review is good or bad."""
    good = ["great food and friendly people", "lovely room great view", "friendly and quick", "we loved the food"]
    bad = ["cold food and rude people", "dirty room no view", "rude and slow", "we waited for the cold food"]
    model = make_pipeline(CountVectorizer(), LogisticRegression(C=10.0)).fit(good + bad, [1] * 4 + [0] * 4)
    text = (
        "We came late on Friday. Friendly people at the door, great view from the room: we loved it!\n"
        "But breakfast was slow, the coffee was cold, and the towels were dirty \U0001f61e. Still, a lovely place."
    )
    others = [
        "Rude people, and we waited for an hour.",
        "Great food, quick and friendly.",
        "A dirty room, but lovely!",
    ]
    return al.Explainer(
        model.predict_proba, Contents(al.Text(), [text, *others]), classes=["bad", "good"], output="good"
    )


def color_shares(images: np.ndarray) -> np.ndarray:
    """Return the share of each of 64 colors in every image, (n, 64)."""
    bins = (images // 64).astype(np.int64) @ [16, 4, 1]
    return np.array([np.bincount(one.ravel(), minlength=64) for one in bins]) / bins[0].size


def photos() -> al.Explainer:
    """Return parts of four photos, and a model of the colors of 800 pieces that says from which one a part is."""
    whole = {
        "cat": data.chelsea(),
        "coffee": data.coffee(),
        "astronaut": data.astronaut(),
        "rocket": data.rocket(),
    }
    rng, pieces, names = np.random.default_rng(0), [], []
    for name, image in whole.items():
        for _ in range(200):
            y, x = (rng.integers(0, size - 160) for size in image.shape[:2])
            pieces.append(image[y : y + 160, x : x + 160])
            names.append(name)
    model = LogisticRegression(C=30.0, max_iter=2000).fit(color_shares(np.array(pieces)), names)
    parts = {f"{name}.png": image[-300:-60, 100:420] for name, image in whole.items()}
    parts["coffee.png"] = whole["coffee"][100:340, 150:470]
    space = Contents(al.Image(n_segments=40, hidden=np.zeros(3)), list(parts.values()), list(parts))
    return al.Explainer(lambda images: model.predict_proba(color_shares(images)), space, classes=model.classes_)


def screenshots(pages: dict[str, str]) -> None:
    """Save each page as a browser shows it: light, dark, on a phone and on paper."""
    views = {
        "light": {"viewport": {"width": 900, "height": 700}, "color_scheme": "light"},
        "dark": {"viewport": {"width": 900, "height": 700}, "color_scheme": "dark"},
        "phone": {"viewport": {"width": 390, "height": 800}, "color_scheme": "light"},
        "paper": {"viewport": {"width": 794, "height": 1123}, "color_scheme": "light"},
    }
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, text in pages.items():
            path = pathlib.Path(folder, f"{name}.html")
            path.write_text(text, encoding="utf-8")
            for view, options in views.items():
                if name != "classification" and view in {"phone", "paper"}:
                    continue
                page = browser.new_page(**options)
                page.goto(path.as_uri())
                page.emulate_media(
                    media="print" if view == "paper" else "screen", color_scheme=options["color_scheme"]
                )
                if view == "paper":
                    page.evaluate('document.body.style.padding = "15mm"')  # the margin of @page
                    page.evaluate(HIDE_BELOW, 1123 - 57)  # printing moves these parts to the second sheet
                page.screenshot(path=FOLDER / f"report-{name}-{view}.png", full_page=view != "paper")
        browser.close()


def studio(explainer: al.Explainer, name: str, max_queries: int, **options: Any) -> AbstractContextManager[str]:
    """Serve an explainer while the block runs; yield the link."""
    return serving(Model(explainer=explainer, name=name, **options), StudioLimits(max_queries=max_queries))


@contextlib.contextmanager
def serving(models: Model | dict[str, Model], limits: StudioLimits) -> Iterator[str]:
    """Serve one model, or several by name, while the block runs; yield the link."""
    ready = threading.Event()
    server = prepare(models, on_ready=lambda link: ready.set(), port=0, limits=limits)
    thread = threading.Thread(target=server.run)
    thread.start()
    ready.wait()
    yield server.link
    server.stop()
    thread.join()


def ask_about_the_whole_model(page: Page) -> None:
    """Ask how an attribute acts, about groups, and about thresholds."""
    page.select_option("#acting-of", "income")
    page.select_option("#groups-by", "purpose")
    page.click("#thresholds-find")
    page.wait_for_selector("#acting svg")
    page.wait_for_selector("#groups table")
    page.wait_for_selector("#thresholds svg")


def compare_models(page: Page) -> None:
    """Compare the model with the one before."""
    page.click("#models-find")
    page.wait_for_selector("#models-data")


def type_a_new_case(page: Page) -> None:
    """Fill the form with a case, and type another income."""
    page.wait_for_selector("#main:not([aria-busy]) .verdict:not(:empty)")
    page.click("#new-open")
    page.wait_for_selector("#new-answer .outcome")
    page.fill("#new-1", "90000")
    page.wait_for_selector("#new-answer b:has-text('approved')")
    page.evaluate("scrollTo(0, 0)")


def open_the_list(page: Page) -> None:
    """Wait for the case, and unfold the list of cases, which a phone folds."""
    page.wait_for_selector("#main:not([aria-busy]) .verdict:not(:empty)")
    if not page.is_visible("#search"):
        page.click("#drawer summary")


def open_a_file(page: Page) -> None:
    """Open a file of cases with true outcomes, and one of its cases."""
    open_the_list(page)
    frame, decision = applications(40, seed=11)
    content = frame.assign(decision=decision).to_csv(index=False).encode()
    page.set_input_files("#file", {"name": "today.csv", "mimeType": "text/csv", "buffer": content})
    page.wait_for_selector("#drawer-title:has-text('today.csv (40)')")
    open_the_list(page)


def find_by_verdict(page: Page) -> None:
    """Search for a verdict, and explain more cases until it is known for them."""
    open_the_list(page)
    page.fill("#search", 'verdict="partly explained"')
    page.wait_for_selector("#listing .progress:has-text('explained')")
    if page.is_visible("#find-out"):  # the server keeps what another view found
        page.click("#find-out")
        page.wait_for_selector("#find-stop")
        page.wait_for_selector("#find-stop", state="detached")


def begin_to_compare(page: Page) -> None:
    """Compare the model with the one before, and wait until a third is done."""
    page.click("#models-find")
    while page.locator("#models progress").evaluate("bar => bar.value") < 1 / 3:
        page.wait_for_timeout(100)


def find_changes(page: Page) -> None:
    """Find what would change the decision."""
    page.wait_for_selector("#main:not([aria-busy]) .verdict:not(:empty)")
    page.get_by_role("button", name="Find the fewest changes").click()
    page.get_by_role("button", name="Apply").first.wait_for()


STEPS = {
    "whole": ("&view=all", ask_about_the_whole_model, "#whole"),
    "models": ("&view=models", compare_models, None),
    "new": ("", type_a_new_case, None),
    "file": ("", open_a_file, None),
    "found": ("", find_by_verdict, None),
    "comparing": ("&view=models", begin_to_compare, None),
    "changes": ("", find_changes, "section:has(> #changes)"),
}
VIEWS = {"": (1280, "light"), "-dark": (1280, "dark"), "-phone": (390, "light")}


def team_screenshots() -> None:
    """Save what a team asks about new cases, the whole model and the model before: light, dark and on a phone."""
    frame, decision = applications(300, seed=9)
    explainer, before = demo_explainer(), demo_explainer(1000)
    options = {
        "cases": frame,
        "truth": ("decision", decision),
        "previous": Previous("loans of last year", before.model, explainer.space),
        "display": Display(names={"employed_years": "years in this job"}, units={"income": "USD", "debt": "USD"}),
    }
    model = Model(explainer=explainer, name="loan-decisions", **options)
    limits = StudioLimits(max_queries=20_000, max_upload=MAX_UPLOAD)
    with sync_playwright() as playwright, serving(model, limits) as link:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, (query, ask, part) in STEPS.items():
            for view, (width, scheme) in VIEWS.items():
                page = browser.new_page(viewport={"width": width, "height": 960}, color_scheme=scheme)
                page.set_default_timeout(300_000)  # a comparison takes its time
                page.goto(f"{link}&case=1{query}")
                ask(page)
                shown = page if part is None else page.locator(part)
                shown.screenshot(path=FOLDER / f"studio-{name}{view}.png")
                if page.is_visible("#models-stop"):  # a user has one comparison under way
                    page.click("#models-stop")
                page.close()
        browser.close()


def several_screenshots() -> None:
    """Save the page that lists several models."""
    models = {
        "loans": Model(explainer=demo_explainer(), name="Loans"),
        "last-year": Model(explainer=demo_explainer(1000), name="Loans of last year"),
    }
    with sync_playwright() as playwright, serving(models, StudioLimits(max_queries=20_000)) as link:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for view, (width, scheme) in VIEWS.items():
            page = browser.new_page(viewport={"width": width, "height": 420}, color_scheme=scheme)
            page.goto(link)
            page.wait_for_selector("a:has-text('Loans of last year')")
            page.screenshot(path=FOLDER / f"studio-several{view}.png")
        browser.close()


def reasons_screenshot() -> None:
    """Save the card with the reasons of a declined case, with codes for a letter."""
    frame, decision = applications(500)
    frame = frame[["age", "income", "debt", "employed_years", "owner"]]
    model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(frame, decision)
    explainer = al.Explainer(model, al.Table(frame), output="approved", threshold=0.5)
    texts = {
        "income": ("R01", "Income too low"),
        "debt": ("R03", "Debt too high"),
        "employed_years": ("R04", "Employed for too short a time"),
        "owner": ("R06", "No home of your own"),
        "age": ("R07", "Age"),
    }
    reasons = explainer.reason_settings(codes=texts, reference="near")
    with sync_playwright() as playwright, studio(explainer, "loan-decisions", 20_000, reasons=reasons) as link:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 420})
        page.set_default_timeout(120_000)
        page.goto(f"{link}&case=2")
        page.wait_for_selector("#reasons table")
        page.evaluate("document.querySelector('#reasons-card').scrollIntoView()")
        page.screenshot(path=FOLDER / "studio-reasons.png")
        browser.close()


def studio_screenshots(text: al.Explainer, image: al.Explainer) -> None:
    """Save the studio as a browser shows it: the demo, texts and images, light, dark and on a phone."""
    desktop, phone, tall = ({"width": w, "height": h} for w, h in ((1280, 960), (390, 844), (1280, 2400)))
    demo = {"desktop": (desktop, "light"), "dark": (desktop, "dark"), "phone": (phone, "light")}
    demo["all"] = (tall, "light")
    pages = [
        (demo_explainer(), "loan-decisions", 20_000, demo),
        (text, "reviews", 20_000, {"text": (desktop, "light")}),
        (image, "photos", 1000, {"image-dark": (desktop, "dark")}),
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for explainer, name, max_queries, views in pages:
            truth = demo_truth() if views is demo else None
            with studio(explainer, name, max_queries, truth=truth) as link:
                for view, (size, scheme) in views.items():
                    page = browser.new_page(viewport=size, color_scheme=scheme)
                    page.set_default_timeout(120_000)  # images take their time
                    page.goto(f"{link}&case={0 if explainer is text else 1}{'&view=all' * (view == 'all')}")
                    whole = "#overview-head:not(:has(progress)) .downloads"
                    page.wait_for_selector(
                        whole if view == "all" else "#main:not([aria-busy]) .verdict:not(:empty)"
                    )
                    page.screenshot(path=FOLDER / f"studio-{view}.png")
        browser.close()


def main() -> None:
    """Draw all pictures, compress them and print their sizes."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (loan, frontier), diabetes, wine = classification(), regression(), multi_class()
    text, image = reviews(), photos()
    review, coffee = text.explain(0), image.explain(1, queries=6000)
    pictures = {
        "waterfall-classification": loan.plot(),
        "waterfall-regression": diabetes.plot(),
        "waterfall-multi-class": wine.plot(),
        "bars-classification": loan.plot("bars"),
        "frontier": frontier.plot(),
        "regions-photo": coffee.plot(),
    }
    for name, ax in pictures.items():
        ax.figure.savefig(FOLDER / f"{name}.png", dpi=110)
    screenshots(
        {
            "classification": loan.to_html(frontier),
            "regression": diabetes.to_html(),
            "multi-class": wine.to_html(),
            "text": review.to_html(),
            "image": coffee.to_html(),
        }
    )
    studio_screenshots(text, image)
    team_screenshots()
    several_screenshots()
    reasons_screenshot()
    for path in sorted(FOLDER.glob("*.png")):
        few = Image.open(path).convert("RGB").quantize(256, kmeans=2, dither=Image.Dither.NONE)
        few.save(path, optimize=True)  # the colors of classes stay what they are, although they are rare
        print(f"{path.stat().st_size / 1000:6.0f} kB  {path}")


if __name__ == "__main__":
    main()
