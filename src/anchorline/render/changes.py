"""Changes as text: what would turn the decision, how surely, how realistic it is, and what was tried."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from anchorline.render.characters import printable
from anchorline.render.markup import escape_text
from anchorline.render.shares import percent

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate
    from anchorline.result.changes import Changes, Counterfactual, Move
    from anchorline.search.changes.levels import Level

Escape = Callable[[str], str]
_COUNTS = {1: "single changes", 2: "pairs", 3: "triples"}


def changes_text(changes: "Changes") -> str:
    """Return the changes in a few lines per option, and what was tried in the last line."""
    lines = [headline(changes)]
    for place, option in enumerate(changes, start=1):
        first, *others = option_sentences(changes, option)
        lines += [f"{place}. {first}", *(f"   {line}" for line in others)]
    return "\n".join([*lines, *tried_sentences(changes)])


def section(changes: "Changes", title: str = "") -> str:
    """Return the changes as a section of a page: the options as a list, with shares and distances as notes."""
    items = []
    for option in changes:
        first, *others = option_sentences(changes, option, escape_text)
        notes = "".join(f'<p class="note">{line}</p>' for line in others)
        items.append(f"<li><p><b>{first}</b></p>{notes}</li>")
    tried = "".join(f'<p class="note">{line}</p>' for line in tried_sentences(changes))
    options = f"<ol>{''.join(items)}</ol>" if items else ""
    heading = f"<h2>{title}</h2>" if title else ""
    return f"<section>{heading}<p>{headline(changes, escape_text)}</p>{options}{tried}</section>"


def headline(changes: "Changes", escape: Escape = printable) -> str:
    """Return what the model decides now, and what is sought."""
    now = f"{name_of(changes, escape)} = {changes.prediction:.4g}" if changes.prediction is not None else ""
    if changes.label is not None and changes.goal["kind"] in ("class", "other class", "label", "other label"):
        decided = f"The model decides {quoted(changes.label, escape)}"
        now = f"{decided} ({now})" if now else decided
    else:
        now = f"Now {now}"
    sought = wish(changes, escape)
    sought += "" if changes.parameters["toward"] is None else ", with values of the other case only"
    what = "training row" if changes.are_rows else "change"
    if not changes.options:
        return f"{now}. No {what} that was tried gives {sought}."
    n = len(changes.options)
    return f"{now}. {f'This {what} gives' if n == 1 else f'Each of these {n} {what}s gives'} {sought}:"


def wish(changes: "Changes", escape: Escape = printable) -> str:
    """Return what counts as turned, in words."""
    kind, wanted = changes.goal["kind"], changes.goal["wanted"]
    match kind:
        case "class" | "label":
            return f"the decision {quoted(wanted, escape)}"
        case "other class" | "other label":
            return "another decision"
        case _:
            return f"{name_of(changes, escape)} {kind} {wanted:.6g}"


def name_of(changes: "Changes", escape: Escape) -> str:
    """Return the name of the output for readers, such as ``P(declined)`` if it is the probability of a class."""
    name, parameters = escape(changes.output), changes.parameters
    if parameters["probability"]:
        return f"P({name})"
    if "output_scale" in parameters:
        return f"{parameters['output_scale']} of {name}"
    return f"score of class {name}" if parameters["classes"] and parameters["task"] != "number" else name


def quoted(label: object, escape: Escape) -> str:
    """Return a label in quotation marks."""
    return f"'{escape(str(label))}'"


def option_sentences(changes: "Changes", option: "Counterfactual", escape: Escape = printable) -> list[str]:
    """Return what changes and what the model answers, how reliable the bounds are, and how real the example is."""
    moves = " and ".join(move_text(move, escape) for move in option.moves)
    lines = [f"{moves}: {_answer(changes, option, escape)}."]
    if option.reliability is not None and any(_is_bound(move) for move in option.moves):
        facts = " and ".join(escape(fact) for fact in option.facts)
        is_limited = any({move.name, *move.columns} & {*changes.parameters["within"]} for move in option.moves)
        values = "allowed training value" if is_limited else "training value"
        lines.append(f"{facts}: {_share(option.reliability, values, by_leaves=changes.by_leaves)}.")
    if changes.are_rows:
        lines.append("A training row has these values, and agrees with the case in all other attributes.")
    elif option.realism is not None:
        real = option.realism
        lines.append(
            f"Distance from the nearest training row: {real.distance:.3f} (real rows: median {real.typical:.3f}; "
            f"{percent(real.share)}% are at least as far from theirs)."
        )
    return lines


def move_text(move: "Move", escape: Escape = printable) -> str:
    """Return one attribute's change: ``debt = 6480 instead of 9000``."""
    if move.fact == move.after_text:  # a statement, not a value
        return f"{escape(move.after_text)} instead of {escape(move.before_text)}"
    return f"{escape(move.name)} = {escape(move.after_text)} instead of {escape(move.before_text)}"


def _is_bound(move: "Move") -> bool:
    return move.fact not in (move.after_text, f"{move.name} = {move.after_text}")


def _answer(changes: "Changes", option: "Counterfactual", escape: Escape) -> str:
    """Return what the model answers to the example."""
    output = "" if option.output is None else f"{name_of(changes, escape)} = {option.output:.4g}"
    if option.label is None or changes.goal["kind"] in (">=", ">", "<=", "<"):
        return output
    decided = quoted(option.label, escape)
    return f"{decided} ({output})" if output else decided


def _share(estimate: "Estimate", value: str, *, by_leaves: bool) -> str:
    """Return with which share of the training values that meet the bounds the decision turns."""
    n, all_cells = f"{estimate.n_samples:,}", "; the trees distinguish no more" if by_leaves else ""
    if estimate.exact and estimate.value == 1:
        return f"turns it with every {value} ({n} tried{all_cells})"
    share = f"turns it with {percent(estimate.value)}% of the {value}s"
    if estimate.exact:
        return f"{share} (all {n} tried{all_cells})"
    return f"{share} ({percent(estimate.low)}% to {percent(estimate.high)}%, from {n} draws)"


def tried_sentences(changes: "Changes") -> list[str]:
    """Return what is proven about smaller changes, what was left untried, and the number of queries."""
    if changes.are_rows:
        return _tried_rows(changes)
    lines, ruled_out = [], changes.n_ruled_out
    if ruled_out:
        facts = "one fact" if ruled_out == 1 else f"at most {ruled_out} facts"
        if changes.n_proved >= ruled_out:
            is_table = str(changes.parameters["space"]).startswith("table:")
            values = ", to any of the training values allowed" if is_table else ""
            by = " by the leaves of the trees" if changes.levels[ruled_out - 1].by_leaves else ""
            lines.append(f"Proven{by}: no change of {facts} does it{values}.")
        else:
            lines.append(f"No change of {facts} does it among the values tried.")
    n, parts = changes.n_attributes, [_count(level) for level in changes.levels]
    attributes = "1 attribute" if n == 1 else f"{n} attributes"
    lines.append(f"Tried: {', '.join(parts)}, of {attributes}; {changes.n_queries:,} queries.")
    return lines


def _tried_rows(changes: "Changes") -> list[str]:
    """Return what is proven about training rows that differ less, and how many were asked about."""
    n_tried, n_total = (sum(getattr(level, name) for level in changes.levels) for name in ("n_tried", "n_total"))
    tried = f"all {n_total:,}" if n_tried == n_total else f"{n_tried:,} of {n_total:,}"
    line = (
        f"Tried: {tried} training rows that differ from the case and are allowed; {changes.n_queries:,} queries."
    )
    if not changes.n_proved:
        return [line]
    facts = "one attribute" if changes.n_proved == 1 else f"at most {changes.n_proved} attributes"
    return [f"Proven: no allowed training row that differs in {facts} does it.", line]


def _count(level: "Level") -> str:
    """Return how many of the changes of a number of facts were tried."""
    name = _COUNTS.get(level.n_facts, f"changes of {level.n_facts} facts")
    name += " that the trees distinguish" if level.by_leaves else ""
    return (
        f"all {level.n_total:,} {name}"
        if level.is_exhaustive
        else f"{level.n_tried:,} of {level.n_total:,} {name}"
    )
