"""Two explanations of the same case, figure by figure."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from anchorline.result.explanation import Explanation
from anchorline.settings import Settings

ROUNDING = 1e-9  # figures may differ by this, relative to their size, to 1, or to half the range of the output
CHECKSUM_ROUNDING = 1e-7  # a checksum is large and must not hide a small change: a few units of 2^-26
_IN_OUTPUT_UNITS = re.compile(
    r"^(prediction|intercept|half_range|contributions|neighbors_mean)|_residual$|_change\.|\.(values|intercept)$"
)


def claims(explanation: Explanation, *, with_texts: bool) -> dict[str, Any]:
    """Return every claim by name, flat; the literals' texts only where the space is known."""
    certificate = asdict(explanation.certificate) | {"status": explanation.certificate.status.name}
    stated = {f"certificate.{name}": value for name, value in _flat(certificate)}
    stated |= {f"contributions[{j}]": u for j, u in enumerate(explanation.contributions.tolist())}
    if with_texts:
        texts = enumerate((literal.name, literal.text, literal.held) for literal in explanation.literals)
        stated |= {f"literals[{j}]": text for j, text in texts}
    stated |= {f"fixed[{name}]": why for name, why in explanation.fixed.items()}
    stated |= {f"unseen[{name}]": why for name, why in explanation.unseen.items()}
    stated |= {f"values[{name}]": value for name, value in explanation.values.items()}
    for i, other in enumerate(explanation.alternatives):
        stated |= {f"alternatives[{i}].{name}": value for name, value in _flat(asdict(other))}
    return stated | {
        "prediction": explanation.prediction,
        "intercept": explanation.intercept,
        "neighbors_mean": explanation.neighbors_mean,
        "redrawn": explanation.redrawn,
        "half_range": explanation.half_range,
        "label": explanation.label,
        "n_literals": len(explanation.literals),
        "pairs": explanation.pairs,
        "alternatives_complete": explanation.alternatives_complete,
    }


def differences(claimed: Mapping[str, Any], actual: Mapping[str, Any]) -> dict[str, str]:
    """Return a sentence per figure that differs, by the name of the figure."""
    unstated = {name for name in ("alternatives_complete",) if claimed[name] is None}  # early releases omit them
    if not any(name.startswith("values[") for name in claimed):
        unstated |= {name for name in actual if name.startswith("values[")}
    return {
        name: f"{name} is stated as {claimed.get(name)!r}, but is {actual.get(name)!r}"
        for name in sorted((set(claimed) | set(actual)) - unstated)
        if not _same(claimed.get(name), actual.get(name), *_tolerances(name, actual["half_range"]))
    }


def changed_parameters(now: Mapping[str, Any], recorded: Mapping[str, Any], *, with_space: bool) -> str:
    """Return the names of the parameters that the model and the space do not give, or an empty text.

    The seed and the query limit are the verifier's own, the texts are compared by their digest, and the verifier
    takes the output range as given.
    """
    skipped = {"versions", "max_queries", "seed", "texts", "learned_range"} | (set() if with_space else {"space"})
    skipped |= {"same_is_given", *({"same_within"} - recorded.keys())}  # the first release had neither
    only_some_have = {"rule", "contrast", "output_scale"}
    names = sorted((now.keys() | only_some_have) - skipped)
    recorded = Settings.from_dict(recorded).to_dict() | dict(recorded)  # the first release had fewer settings
    return ", ".join(name for name in names if not _same_parameter(now.get(name), recorded.get(name)))


def _same_parameter(now: Any, recorded: Any) -> bool:
    """Whether a parameter equals the recorded one; JSON turns tuples into lists."""
    if isinstance(now, list | tuple) and isinstance(recorded, list | tuple):
        return len(now) == len(recorded) and all(map(_same_parameter, now, recorded))
    if isinstance(now, float) and isinstance(recorded, int | float):
        return math.isclose(now, recorded, rel_tol=ROUNDING)
    return bool(now == recorded)


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", below) for inner, below in _flat(value))
        else:
            yield name, value


def _tolerances(name: str, half_range: float) -> tuple[float, float]:
    """Return by how much a figure may differ, relative to its size and absolutely."""
    if name == "label":
        return 0.0, 0.0
    if name.endswith("checksum"):
        return 0.0, CHECKSUM_ROUNDING
    if name.endswith("probability"):  # it may be very small, and a bound divides by it
        return ROUNDING, 0.0
    return ROUNDING, ROUNDING * (half_range if _IN_OUTPUT_UNITS.search(name) else 1.0)


def _same(stated: Any, actual: Any, relative: float, absolute: float) -> bool:
    if isinstance(stated, tuple) and isinstance(actual, tuple):
        pairs = zip(stated, actual, strict=False)
        return len(stated) == len(actual) and all(_same(a, b, relative, absolute) for a, b in pairs)
    numbers = (int, float)
    if isinstance(stated, numbers) and isinstance(actual, numbers) and not isinstance(stated, bool):
        if isinstance(actual, bool):
            return False
        if isinstance(stated, int) and isinstance(actual, int):
            return stated == actual
        return math.isclose(stated, actual, rel_tol=relative, abs_tol=absolute)
    return type(stated) is type(actual) and bool(stated == actual)
