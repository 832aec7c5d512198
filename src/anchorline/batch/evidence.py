"""One very large explanation, split: each worker queries a part of the sample, and the evidence is summed.

`Evidence` is a sum of exact numbers, so the parts give the same bytes as one process, in any order, up to
2^27 (134 million) neighbors.
"""

import itertools
from collections.abc import Iterable
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Unpack

from anchorline.batch.local import effective_jobs
from anchorline.batch.partition import PackedWork, Work, learn_ranges
from anchorline.errors import ParameterError, SampleError, WorkerError
from anchorline.explainer import Explainer
from anchorline.model.predictor import BATCH_ROWS
from anchorline.optimize.evidence import Evidence
from anchorline.result.assemble import assemble
from anchorline.result.explanation import Explanation
from anchorline.search.case import Case
from anchorline.search.investigate import conclude, gather, plan, pose, solve_without_noise
from anchorline.search.sampling import DrawnFlips
from anchorline.settings import Keywords, Settings, check_budget


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one worker measured on the neighbors from ``start`` to ``stop``.

    ``of`` is a digest of the whole that it belongs to: row, seed, settings, training table, output and versions.
    The model is not included, because models cannot be compared.
    """

    of: int
    start: int
    stop: int
    evidence: Evidence
    n_clipped: int
    checksum: int

    def __add__(self, other: "Part") -> "Part":
        first, second = sorted((self, other), key=lambda part: part.start)
        _check_same(first.of, second.of)
        if first.stop != second.start:
            raise SampleError(
                f"Parts {first.start} to {first.stop} and {second.start} to {second.stop} are not adjacent, so "
                "rows would be missing or counted twice. Add adjacent parts."
            )
        return Part(
            of=first.of,
            start=first.start,
            stop=second.stop,
            evidence=first.evidence + second.evidence,
            n_clipped=first.n_clipped + second.n_clipped,
            checksum=first.checksum + second.checksum,
        )


def parts_of(n_samples: int, n_parts: int) -> list[tuple[int, int]]:
    """Return where to cut a sample into parts of about the same size, on the boundaries of model calls.

    Examples
    --------
    >>> parts_of(10_000, 2)
    [(0, 4096), (4096, 10000)]
    """
    for name, value in (("n_samples", n_samples), ("n_parts", n_parts)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ParameterError(f"{name} is {value!r}, but it must be a whole number of at least 1.")
    n_batches = -(-n_samples // BATCH_ROWS)
    ends = sorted({n_batches * i // n_parts * BATCH_ROWS for i in range(n_parts)} | {n_samples})
    return list(itertools.pairwise(ends))


def gather_part(explainer: Explainer, instance: Any, start: int, stop: int, **keywords: Unpack[Keywords]) -> Part:
    """Query the neighbors ``start`` to ``stop`` of a sample, cut by `parts_of`, and once more the instance."""
    settings = _checked(Settings.from_keywords(**keywords))
    whole = isinstance(start, Integral) and isinstance(stop, Integral)
    if not whole or start % BATCH_ROWS or not 0 <= start < stop <= int(settings.n_samples):
        raise ParameterError(
            f"The part goes from {start} to {stop} of {settings.n_samples}, but the cuts must be those that "
            f"`parts_of({settings.n_samples}, n_parts)` returns."
        )
    case = _prepared(explainer, instance, settings)
    predictor = case.predictor
    predictor.n_queries = 1 + start  # the checksum weights every answer by its position in the whole sample
    evidence, _ = gather(case, case.stream("search", stop), start=start)
    return Part(
        of=predictor.checksum_key,
        start=start,
        stop=stop,
        evidence=evidence,
        n_clipped=predictor.n_clipped,
        checksum=predictor.checksum_ticks,
    )


def explain_parts(
    explainer: Explainer, instance: Any, parts: Iterable[Part], **keywords: Unpack[Keywords]
) -> Explanation:
    """Return the explanation of all parts, byte for byte that of one process; its certificate is measured here."""
    settings = _checked(Settings.from_keywords(**keywords))
    ordered = sorted(parts, key=lambda part: part.start)
    if not ordered or ordered[0].start != 0:
        raise SampleError("The first part, which starts at neighbor 0, is missing.")
    whole = ordered[0]
    for part in ordered[1:]:
        whole = whole + part
    if whole.stop != settings.n_samples:
        raise SampleError(
            f"The parts end at neighbor {whole.stop}, but n_samples is {settings.n_samples}. Pass all the parts, "
            "and the same n_samples as when they were gathered."
        )
    case = _prepared(explainer, instance, settings)
    predictor = case.predictor
    _check_same(whole.of, predictor.checksum_key)
    predictor.n_queries, predictor.n_clipped = 1 + whole.stop, whole.n_clipped
    predictor.checksum_ticks = whole.checksum
    problem = pose(case, whole.evidence)
    return assemble(case, conclude(case, problem, solve_without_noise(case, problem)))


def explain_split(
    explainer: Explainer, instance: Any, *, n_jobs: int = -1, **keywords: Unpack[Keywords]
) -> Explanation:
    """Explain one instance on a large sample with several processes of this machine.

    Examples
    --------
    >>> import anchorline as al
    >>> explainer = al.Explainer(lambda z: 0.5 * z[:, 0] - 0.2 * z[:, 1], al.Hypercube())
    >>> e = explain_split(explainer, [1] * 30, n_samples=20_000, n_jobs=1)
    >>> e == explainer.explain([1] * 30, n_samples=20_000)
    True
    """
    n_jobs = effective_jobs(n_jobs)
    n_samples = int(_checked(Settings.from_keywords(**keywords)).n_samples)
    cuts = parts_of(n_samples, 4 * n_jobs)
    if n_jobs == 1:
        parts = [gather_part(explainer, instance, start, stop, **keywords) for start, stop in cuts]
        return explain_parts(explainer, instance, parts, **keywords)
    from joblib import Parallel, delayed, parallel_config  # noqa: PLC0415  heavy

    learn_ranges(explainer)
    packed = PackedWork(Work(explainer))
    with parallel_config(backend="loky", inner_max_num_threads=1):
        tasks = (delayed(_gather_elsewhere)(packed, instance, start, stop, **keywords) for start, stop in cuts)
        try:
            parts = Parallel(n_jobs=n_jobs)(tasks)
        except BrokenExecutor as error:
            raise WorkerError(
                "A worker process died: it ran out of memory, was killed, or the model ended it. Lower n_jobs."
            ) from error
    return explain_parts(explainer, instance, parts, **keywords)


def _gather_elsewhere(packed: PackedWork, *arguments: Any, **keywords: Unpack[Keywords]) -> Part:
    return gather_part(packed.open().explainer, *arguments, **keywords)


def _check_same(first: int, second: int) -> None:
    if first != second:
        raise SampleError(
            "These are parts of different explanations: the row, the seed, a setting, the training table, the "
            "output or the version differs. Gather all parts with the arguments of the explanation."
        )


def _checked(settings: Settings) -> Settings:
    if settings.objective != "fidelity" or settings.alternatives or settings.n_samples == "auto" or settings.pairs:
        raise ParameterError(
            "To split a sample, use objective='fidelity', no alternatives, no pairs, and a number for n_samples."
        )
    return settings


def _prepared(explainer: Explainer, instance: Any, settings: Settings) -> Case:
    """Open the case as every explanation does; raise where a single process would enumerate instead of draw."""
    case = explainer.prepare(instance, settings)
    if not isinstance(plan(case), DrawnFlips):
        raise ParameterError(
            "There are fewer neighbors than n_samples, so there is nothing to split. Use `explain`."
        )
    check_budget(settings, int(settings.n_samples), exhaustive=False)
    return case
