"""The examples in the documents run as shown, and every relative link leads to a file."""

import doctest
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_examples_run(document):
    failed, _ = doctest.testfile(str(document), module_relative=False)
    assert failed == 0


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


def test_the_readme_shows_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


def commands(document):
    """Yield the commands of a page as (name, options), from indented blocks; a backslash continues a line."""
    text = document.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^ {4}anchorline (.+)$", text, flags=re.MULTILINE):
        name, *words = line.split("#")[0].split()
        yield name, [word.partition("=")[0] for word in words if word.startswith("--")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_have_the_options_that_are_shown(document):
    typer = pytest.importorskip("typer.main", reason="the command line needs: pip install 'anchorline[cli]'")
    from anchorline.cli.app import app

    command = typer.get_command(app)
    for name, options in commands(document):
        here = command.get_command(None, name)
        assert here is not None, name
        if hasattr(here, "commands"):  # such as `anchorline bench paper`
            continue
        known = {option for parameter in here.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert set(options) <= known, (name, set(options) - known)
