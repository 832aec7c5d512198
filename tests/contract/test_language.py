"""Plain American English in code, messages and documents: the worst habits fail, each exception has its reason."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
HABITS = {
    "write 'is not a' or 'has no'": r"(?<!there )\b(is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b)",
    "write 'per'": r"\b(one|ones|numbers?|values?|rows?|terms?|labels?|ms|queries|seconds|files?|"
    r"milliseconds|outputs?|times|points?) an? (row|literal|second|column|term|process|request|case|class|"
    r"neighbor|k|task|coordinate|page|picture|minute|name|line|fact|machine|cell|node|level|call|batch)\b",
    "name the actor and a technical verb": r"\b(told|tells|telling)\b",
    "American spelling": r"\b\w*(neighbour|colour|behaviour|favour|honour)\w*|\b(optimi[s]e|optimi[s]es|"
    r"optimi[s]er|minimi[s]e|minimi[s]es|maximi[s]e|summari[s]e|standardi[s]e|normali[s]e|recogni[s]e|seriali[s]e|"
    r"centre|centred|centring|licence|catalogue|grey|learnt|(?<!\.)cancelled|labelled|modelled|whilst|analyse)\b",
    "no compressed idioms": r"\b(stands? above|nobody told|as it is asked|what is there|so many (?!that))\b",
}
EXCEPTIONS: dict[tuple[str, str], str] = {}  # (file, text around the hit): why it stays
SUFFIXES = {".py", ".md", ".html", ".js", ".css", ".toml", ".cff", ".yml", ".yaml", ".json"}
FOLDERS = ("src", "docs", "examples", "tests", "benchmarks", ".github")


def documents():
    """Every text that people read: code, pages and the files at the top; no generated figures."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and "results" not in path.parts and path.parts[-2:-1] != ("paper",):
                yield path
    yield from sorted(path for path in ROOT.iterdir() if path.suffix in SUFFIXES or path.name == "Makefile")


def hits(text):
    """(line number, habit, words) of every habit in a text."""
    for habit, pattern in HABITS.items():
        for match in re.finditer(pattern, text, flags=re.IGNORECASE):
            yield text.count("\n", 0, match.start()) + 1, habit, " ".join(match[0].split())


def is_excepted(path, line):
    return any(path == file and words in line for file, words in EXCEPTIONS)


def test_documents_are_free_of_the_worst_habits():
    found = []
    for path in documents():
        if path == pathlib.Path(__file__):
            continue
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        lines = text.splitlines()
        found += [
            f"{name}:{number} {words!r}: {habit}"
            for number, habit, words in hits(text)
            if not is_excepted(name, lines[number - 1])
        ]
    assert not found, "\n".join(["", *found])


def test_exceptions_are_still_needed():
    for (name, words), reason in EXCEPTIONS.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        assert words in text, f"{name} no longer holds {words!r}: remove the exception"
        assert reason


@pytest.mark.parametrize(
    "sentence",
    [
        "it is no LightGBM model",
        "one number a row",
        "one a literal",
        "`doctor` tells the version",
        "the colour",
        "learnt before",
    ],
)
def test_the_checker_sees_a_habit(sentence):
    assert list(hits(sentence))


@pytest.mark.parametrize(
    "sentence", ["one number per row", "it is no longer needed", "a color", "the column has no name"]
)
def test_the_checker_leaves_plain_english_alone(sentence):
    assert not list(hits(sentence))
