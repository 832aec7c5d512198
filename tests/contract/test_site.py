"""The documentation site builds without a warning, has no broken link, and loads nothing from other hosts."""

import html.parser
import importlib
import inspect
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import time
import urllib.parse
from collections import defaultdict

import pytest

import anchorline

pytest.importorskip("sphinx", reason="the site needs: pip install 'anchorline[docs]'")

DOCS = pathlib.Path(__file__).parents[2] / "docs"
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "embed": "src", "object": "data"}
LOADING_LINKS = {"stylesheet", "icon", "shortcut icon", "preload", "prefetch", "preconnect", "modulepreload"}
MAX_SECONDS = 300  # to wait for another worker's build


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site, which the first worker that needs it builds."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder, log = root / "site", root / "site.log"
    try:
        folder.mkdir()
    except FileExistsError:
        for _ in range(10 * MAX_SECONDS):
            if log.exists():
                break
            time.sleep(0.1)
    else:
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-t", "quick"]
        built = subprocess.run(
            [*command, "-b", "html", "-d", root / "doctrees", DOCS, folder],
            capture_output=True,
            text=True,
            check=False,
        )
        partial_log = root / "site.log.part"
        partial_log.write_text(f"{built.returncode}\n{built.stderr}", encoding="utf-8")
        partial_log.rename(log)
    return folder


class Page(html.parser.HTMLParser):
    """The ids of a page, its links, and the addresses that a browser would load for it."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag in ("a", "area") and "href" in values:
            self.links.append(values["href"])
        if tag in LOADING and LOADING[tag] in values:
            self.loaded.append(values[LOADING[tag]])
        if tag == "link" and values.get("rel", "").lower() in LOADING_LINKS:
            self.loaded.append(values["href"])
        self.loaded += [entry.split()[0] for entry in values.get("srcset", "").split(",") if entry.strip()]
        self.loaded += re.findall(r"url\(['\"]?([^'\")]+)", values.get("style", ""))


@pytest.fixture(scope="session")
def pages(site):
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_builds_without_a_warning(site):
    code, _, warnings = (site.parent / "site.log").read_text(encoding="utf-8").partition("\n")
    assert not warnings.strip(), warnings
    assert code == "0"


def test_every_link_and_anchor_leads_somewhere(site, pages):
    assert len(pages) > 20
    broken = []
    for path, page in pages.items():
        for link in page.links + page.loaded:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path.resolve()
            anchor = urllib.parse.unquote(parts.fragment)
            is_page = target.suffix == ".html"
            target_page = pages.get(site / target.relative_to(site.resolve())) if is_page else None
            if not target.is_file() or (anchor and target_page and anchor not in target_page.ids):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken, broken[:20]


def test_nothing_is_loaded_from_elsewhere(site, pages):
    loaded = defaultdict(set)
    for path, page in pages.items():
        for address in page.loaded:
            loaded[address].add(path.name)
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        for address in re.findall(r"(?:@import\s+|url\()\s*['\"]?([^'\")\s;]+)", text):
            loaded[address].add(path.name)
    assert loaded
    outside = {address: names for address, names in loaded.items() if re.match(r"(?!data:)\w+:|//", address)}
    assert not outside


def public_names():
    """Yield every public name with its object."""
    modules = [module.name for module in pkgutil.iter_modules(anchorline.__path__, "anchorline.")]
    for package in ["anchorline", *(name for name in modules if not name.startswith("anchorline._"))]:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            yield f"{package}.{name}", getattr(module, name)


def test_every_public_name_has_an_entry(pages):
    entries = set().union(*(page.ids for path, page in pages.items() if path.parent.name == "api"))
    names = defaultdict(list)  # by object, because some objects have two names
    for name, value in public_names():
        names[id(value)].append(name)
    assert len(names) > 60
    missing = [aliases for aliases in names.values() if not entries & set(aliases)]
    assert not missing, "docs/api/ has no entry for these names"


@pytest.mark.parametrize("module", ["pictures", "report"])
def test_every_drawing_has_an_entry(pages, module):
    drawings = importlib.import_module(f"anchorline.render.{module}")
    entries = set().union(*(page.ids for path, page in pages.items() if path.name == "render.html"))
    for name, value in vars(drawings).items():
        if inspect.isfunction(value) and not name.startswith("_") and value.__module__ == drawings.__name__:
            assert f"{drawings.__name__}.{name}" in entries


def test_every_page_is_in_the_navigation(site, pages):
    front = {urllib.parse.urlsplit(link).path for link in pages[site / "index.html"].links}
    written = {f"{path.stem}.html" for path in DOCS.glob("*.md")} - {"index.html"}
    assert len(written) >= 9
    assert written <= front


def test_formulas_are_mathematics(site):
    text = (site / "mathematics.html").read_text(encoding="utf-8")
    assert text.count("<math") > 50
    for path in site.rglob("*.html"):
        assert "_modules" in path.parts or not re.search(r"\\(frac|sum|sigma|top)\b", path.read_text("utf-8")), (
            path
        )
