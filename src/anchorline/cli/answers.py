"""``anchorline explain``, ``rule``, ``reasons``, ``frontier`` and ``changes``: what is asked about cases."""

import re
from collections.abc import Callable
from typing import Any

from anchorline.cli import options as opt
from anchorline.cli.codes import Code, with_option_names
from anchorline.cli.console import print_message, printable_lines
from anchorline.cli.formats import choose_format, png_bytes, terminal_text, write_results
from anchorline.cli.inputs import (
    explainer_of,
    load,
    n_queries_of,
    numbered_cases,
    open_cache,
    pairs_of,
    search_keywords,
    to_number,
    to_values,
)
from anchorline.cli.options import Given, command, one_of, option, switch
from anchorline.cli.progress import QueryProgress, expected_rows
from anchorline.errors import FavorableError, ParameterError, ReasonsError
from anchorline.explainer import Explainer
from anchorline.result.explanation import Explanation
from anchorline.settings import ReasonSettings, RuleSettings

_FORMATS = ("text", "json", "html", "png")
_RULE, _REASONS = RuleSettings(), ReasonSettings()
_QUERIES_OF_REASONS = 5000  # of one row, about


# ---- the flow


def _answer(
    given: Given,
    title: str,
    ask: Callable[[Explainer, Any], Any],
    text: Callable[[Any], str],
    *,
    page: Callable[[Any, str], str] = lambda answer, case: str(answer.to_html()),
    is_answer: Callable[[Any], bool] = lambda answer: True,
    limit: int | None = None,
    n_typical: int | None = None,
    formats: tuple[str, ...] = _FORMATS,
) -> Code:
    """Ask about every case, and print the answers or write them; the exit code is 6 if one does not count.

    ``limit`` is the number of queries that was asked for, which is announced; ``n_typical`` is an estimate.
    """
    space, cases = numbered_cases(given)
    form = choose_format(given, formats, len(cases))
    loaded = load(given, given.model)
    cache = open_cache(given, given.model, loaded)
    shown, are_answers = list[tuple[int, str | bytes]](), list[bool]()
    expected = expected_rows(limit or n_typical, len(cases))
    with QueryProgress(title, expected, announce=limit is not None) as progress:
        explainer = explainer_of(given, progress.wrap_model(loaded), space, cache)
        for n_done, (place, case) in enumerate(cases, start=1):
            progress.describe(f"{title} row {place}")
            try:
                answer = ask(explainer, case)
            except FavorableError as error:
                print_message(with_option_names(f"Row {place}: {error}"))
                continue
            except ReasonsError as error:
                raise error if len(cases) == 1 else type(error)(f"Row {place}: {error}") from None
            are_answers.append(is_answer(answer))
            shown.append((place, _shown(answer, form, text, page, f"Row {place}")))
            progress.set_expected(progress.n_rows / n_done * len(cases))
    if len(cases) > 1 and form == "text":
        shown = [(place, f"Row {place}\n{each!s}\n") for place, each in shown]
    if shown:
        write_results(shown, given.out)
    return Code.OK if are_answers and all(are_answers) else Code.CANNOT_TELL


def _shown(
    answer: Any, form: str, text: Callable[[Any], str], page: Callable[[Any, str], str], case: str
) -> str | bytes:
    if form == "html":
        return page(answer, case)
    if form == "json":
        return str(answer.to_json())
    return png_bytes(answer.plot()) if form == "png" else text(answer)


def _text_or_details(given: Given) -> Callable[[Any], str]:
    """Return the function that makes the text of an answer."""
    return lambda answer: printable_lines(answer.details() if given.details else answer)


# ---- the questions

_CASES = opt.MODEL | opt.OPTIONAL_DATA | opt.ROWS | opt.TARGET
_ROWS = opt.MODEL | opt.DATA | opt.ROWS | opt.TARGET
_WRITING = opt.DETAILS | opt.format_of(*_FORMATS) | opt.OUT


@command(
    "Explain why the model gives this row its prediction.",
    _CASES | opt.EXPLAIN | opt.OUTPUT | opt.TABLE | opt.CONTENT | _WRITING | opt.ASKING,
    """\
anchorline explain model.skops --data train.csv --target approved --row 17
anchorline explain model.onnx --data train.parquet --row 3 --row 8 --format json > why.jsonl
anchorline explain booster.txt --data train.csv --rows new.csv --out 'why-{row}.html'
anchorline explain mypackage.scoring:score --data train.csv --row 0 -k 3 --output-range 300 850
anchorline explain mypackage.reviews:classify --text "Great food, but slow."
anchorline explain mypackage.photos:classify --image cat.png --segments grid --out why.html
anchorline explain http://localhost:8080/v2/models/credit/infer --data train.csv --row 0 --queries 300""",
)
def explain(given: Given) -> Code:
    """Explain why the model gives a row, or each of several rows, its prediction.

    A row of --data is chosen by --row or --rows. A text (--text, --text-file) or an image (--image) needs no data.
    With several rows, JSON output has one explanation per line. Pages and pictures need one file per row: put
    {row} into the name in --out.
    """
    keywords = search_keywords(given, opt.EXPLAIN)

    def text(explanation: Explanation) -> str:
        if given.out is None:
            return terminal_text(explanation, details=given.details)
        return explanation.details() if given.details else str(explanation)

    return _answer(
        given,
        "Explaining",
        lambda explainer, case: explainer.explain(case, **keywords),
        text,
        limit=n_queries_of(given),
    )


RULE = {
    **opt.SEARCH,
    "holds": option(
        str,
        "Share of altered copies with the facts that must keep the decision; none: as many as -k facts can hold.",
        "SHARE|none",
        default=str(_RULE.holds),
    ),
    "k": option(int, "Maximum number of facts in a rule.", None, "-k", default=_RULE.k),
    "within": option(
        float,
        "How much a number may change and still count as the same. [default: 10% of the prediction or of the "
        "spread of outputs, whichever is larger]",
        "AMOUNT",
    ),
    **opt.CONFIDENCE,
}


@command(
    "Find the few facts that keep the decision as it is.",
    _CASES | RULE | opt.OUTPUT | opt.TABLE | opt.CONTENT | _WRITING | opt.ASKING,
    """\
anchorline rule model.skops --data train.csv --target approved --row 17
anchorline rule model.skops --data train.csv --target approved --row 17 --holds 0.99 -k 6
anchorline rule model.skops --data train.csv --target approved --row 17 --holds none -k 2
anchorline rule price.txt --data train.csv --row 3 --within 25 --out rule.html
anchorline rule model.onnx --data train.parquet --rows new.csv --format json > rules.jsonl
anchorline rule mypackage.reviews:classify --text "Great food, but slow.\"""",
)
def rule(given: Given) -> Code:
    """Find the fewest facts, each as wide as possible, that keep the decision.

    A row of --data is chosen by --row or --rows. A text (--text, --text-file) or an image (--image) needs no data.
    With several rows, JSON output has one rule per line. Pages and pictures need one file per row: put {row} into
    the name in --out. If the facts of a rule do not hold as often as asked, the exit code is 6.
    """
    keywords, needed = search_keywords(given, RULE), "a share or none. Type: --holds 0.95"
    keywords["holds"] = None if given.holds == "none" else to_number(given.holds, float, "--holds", needed)
    return _answer(
        given,
        "Searching for",
        lambda explainer, case: explainer.rule(case, **keywords),
        _text_or_details(given),
        is_answer=lambda found: bool(found.is_reached),
        limit=n_queries_of(given),
    )


REASONS = {
    "codes": option(str, "The map of codes: a CSV file (attribute,when,code,text) or a JSON file.", "FILE"),
    "n": option(int, "Maximum number of reasons.", None, "-n", default=_REASONS.n),
    **opt.LETTER,
    "recourse": switch("Also say which other value of each reason alone would turn the decision."),
    "time": option(str, "A time for the record.", "TEXT", default=""),
    "queries": option(
        int,
        "Maximum number of queries to the model. [default: until the reasons are clear, or each shortfall is "
        "known within 1% of the largest]",
        "N",
    ),
    **opt.SEED,
}


@command(
    "State the main reasons for an adverse decision, in your own codes.",
    _ROWS
    | REASONS
    | opt.OUTPUT
    | opt.TABLE
    | {"letter": switch("Print the texts of the letter only.")}
    | opt.DETAILS
    | opt.format_of("text", "json", "html")
    | opt.OUT
    | opt.ASKING,
    """\
anchorline reasons model.skops --data train.csv --target approved --output yes --threshold 0.5 --row 17
anchorline reasons model.skops --data train.csv --target approved --output yes --threshold 0.5 --row 17 \
--codes codes.csv --reference near --letter
anchorline reasons risk.onnx --data train.csv --threshold 0.2 --adverse above --rows new.csv --codes codes.csv \
--format json > reasons.jsonl
anchorline reasons model.skops --data train.csv --target approved --output yes --threshold 0.5 --row 17 \
--codes codes.csv --recourse --prohibited sex --out file.html""",
)
def reasons(given: Given) -> Code:
    """State the main reasons for an adverse decision, worst first, compared with a reference.

    The decision is that of --threshold. With --reference near, the case is compared with the rows that score at
    the threshold or slightly beyond it. With several rows, JSON output has one record per line, pages need one
    file per row, and rows with a favorable decision are skipped. If no row has reasons, the exit code is 6.
    """
    if given.letter and given.codes is None:
        raise ParameterError("--letter prints the texts of your codes. Type --codes FILE.")
    keywords = given.of(REASONS) | {"prohibited": given.prohibited or (), "queries": given.queries or "auto"}
    text = _text_or_details(given)
    if given.letter:
        given.form, text = "text", lambda found: printable_lines("\n".join(found.letter()))
    return _answer(
        given,
        "Comparing",
        lambda explainer, case: explainer.reasons(case, **keywords),
        text,
        page=lambda found, case: str(found.to_html(case)),
        n_typical=_QUERIES_OF_REASONS,
        formats=("text", "json", "html"),
    )


@command(
    "Show how many facts an explanation needs.",
    opt.MODEL
    | opt.DATA
    | {"row": option(int, "A row of the data, counted from 0.", "N", default=opt.REQUIRED, min=0)}
    | opt.TARGET
    | {"max_k": option(int, "Largest number of facts to try; the smallest is 1.", None, "-k", default=8)}
    | opt.SEARCH
    | opt.OUTPUT
    | opt.TABLE
    | opt.format_of("text", "png")
    | opt.OUT
    | opt.ASKING,
    """\
anchorline frontier model.skops --data train.csv --target approved --row 17
anchorline frontier model.onnx --data train.parquet --row 3 -k 12 --out frontier.png""",
)
def frontier(given: Given) -> Code:
    """Show how many facts an explanation needs: the best sum of 1, 2, ... facts, and how well each fits."""
    if given.max_k < 1:
        raise ParameterError(f"-k is {given.max_k}, but it must be at least 1. Type: -k 8")
    keywords, sizes = search_keywords(given, opt.SEARCH), range(1, given.max_k + 1)
    given.row, given.rows = [given.row], None
    return _answer(
        given,
        "Tracing",
        lambda explainer, case: explainer.frontier(case, sizes, **keywords),
        printable_lines,
        limit=n_queries_of(given),
        formats=("text", "png"),
    )


CHANGES = {
    "goal": option(
        str,
        "The wanted class, or a limit ('>= 300') or move ('+50') of the output. [default: another class]",
        "WISH",
    ),
    "n": option(int, "Maximum number of changes to list.", None, "-n", default=3),
    "k": option(int, "Maximum number of facts that change. [default: 3; any number for rows]", None, "-k"),
    "examples": option(
        one_of("values", "rows"),
        "'values': few facts, any training values. 'rows': whole training rows.",
        default="values",
    ),
    "allow": option(list[str], "A range LOW..HIGH, or values A,B. Repeatable.", "COLUMN=VALUES"),
    "direction": option(list[str], "The only direction of a column. Repeatable.", "COLUMN=up|down"),
    "cost": option(list[str], "How much a change of a column counts. Repeatable.", "COLUMN=WEIGHT"),
    "queries": option(int, "Maximum number of queries to the model. [default: 100000]", "N"),
    **opt.SEED,
}


@command(
    "Find the fewest changes that turn the decision.",
    _ROWS
    | CHANGES
    | opt.OUTPUT
    | opt.TABLE
    | opt.DETAILS
    | opt.format_of("text", "json", "html")
    | opt.OUT
    | opt.ASKING,
    """\
anchorline changes model.skops --data train.csv --target approved --row 17
anchorline changes model.skops --data train.csv --target approved --row 17 --goal approved --fixed age
anchorline changes model.skops --data train.csv --target approved --row 17 --examples rows
anchorline changes price.txt --data train.csv --row 3 --goal '>= 300' --allow rooms=3..6 --direction area=up
anchorline changes model.onnx --data train.parquet --rows new.csv --cost income=2 --format json > changes.jsonl""",
)
def changes(given: Given) -> Code:
    """Find sets of few facts whose change turns the decision, with an example that was asked of the model.

    Columns that may not change are named by --fixed. If nothing turns the decision for a row, the exit code is 6.
    """
    weights = {
        name: to_number(text, float, f"--cost of {name!r}", f"a number. Type: --cost {name}=2")
        for name, text in pairs_of("--cost", given.cost)
    }
    keywords = given.of(("n", "k", "examples", "queries", "seed")) | {
        "target": given.goal,
        "allowed": {name: to_values(text) for name, text in pairs_of("--allow", given.allow)},
        "direction": dict(pairs_of("--direction", given.direction)),
        "cost": weights,
    }

    def ask(explainer: Explainer, case: Any) -> Any:
        try:
            return explainer.changes(case, **keywords)
        except ParameterError as error:  # here, --target is another option
            message = re.sub(r"\btarget=(?=')", "--goal ", str(error))
            message = re.sub(r"\b(the )?target(?= (is|must|out)\b|[,.])", "--goal", message)
            message = message.replace("pass a threshold to the Explainer", "type --threshold NUMBER")
            message = message.replace("leave the threshold out of the Explainer", "leave --threshold out")
            raise type(error)(message) from None

    return _answer(
        given,
        "Searching for",
        ask,
        lambda found: printable_lines(f"{found}\n\n{found.details()}" if given.details else found),
        is_answer=lambda found: len(found) > 0,
        formats=("text", "json", "html"),
    )
