"""Checks of the paper's claims about fidelity, admissibility and run time."""

import numpy as np

from benchmarks.datasets import published
from benchmarks.experiments.figures import advantages, correlation
from benchmarks.experiments.finding import NOT_MEASURED, Finding
from benchmarks.experiments.results import Results


def five_terms(results: Results, protocol: str) -> Finding:
    """Count the tasks on which each sparse explainer returns five terms."""
    parts, always_five, max_terms = [], True, 0
    for name in ("iht", "exact", "lime"):
        n_terms = results.method(name, protocol)["n_terms"]
        n = int((n_terms == 5).sum())
        max_terms = max(max_terms, int(n_terms.max()))
        always_five &= n == len(n_terms)
        parts.append(f"{name} {n}/{len(n_terms)}")
    return Finding(f"{', '.join(parts)}; never more than {max_terms}", always_five)


def iht_equal(results: Results, protocol: str) -> Finding:
    """Count the data sets on which the two means are equal as printed."""
    iht, exact = (results.means(name, "empirical_fidelity", protocol) for name in ("iht", "exact"))
    same = iht.round(3) == exact.round(3)
    apart = (iht - exact).abs()[~same]
    text = f"; elsewhere the difference is {apart.min():.4f} to {apart.max():.4f}" if len(apart) else ""
    return Finding(f"{int(same.sum())}/{len(exact)}{text}", bool(same.mean() >= 12 / 16))


def iht_behind(results: Results, protocol: str) -> Finding:
    """Find the largest relative excess of IHT's mean."""
    iht, exact = (results.means(name, "empirical_fidelity", protocol) for name in ("iht", "exact"))
    behind = iht / exact - 1
    where = published(int(behind.idxmax())).name
    return Finding(f"{100 * behind.max():.1f}% ({where})", bool(behind.max() <= 0.06))


def relaxation_bounds(results: Results, protocol: str) -> Finding:
    """Check that the relaxation is below the optimum on every task, and count its terms."""
    relaxed, exact = results.method("relaxation", protocol), results.method("exact", protocol)
    below = relaxed["empirical_fidelity"] <= exact["empirical_fidelity"] + 1e-9
    terms = relaxed.groupby(level="dataset_id")["n_terms"].mean()
    on_medical = f"; {terms[44146]:.1f} terms on Medical Charges" if 44146 in terms else ""
    range_of_terms = f"{terms.min():.1f} to {terms.max():.1f} terms{on_medical}"
    text = f"below on {int(below.sum())}/{len(below)} tasks; {range_of_terms}"
    return Finding(text, bool(below.all() and terms.max() > 5))


def lime_violates(results: Results, protocol: str) -> Finding:
    """Count LIME's violations."""
    violated = results.method("lime", protocol)["violated"]
    return Finding(f"{int(violated.sum())}/{len(violated)}", bool(violated.all()))


def lime_gap(results: Results, protocol: str) -> Finding:
    """Find the smallest and the largest mean gap; agrees if the same data sets have them."""
    gaps = results.means("lime", "anchoring_gap", protocol)
    low, high = int(gaps.idxmin()), int(gaps.idxmax())
    text = f"{gaps[low]:.3f} ({published(low).name}) to {gaps[high]:.3f} ({published(high).name})"
    rows = results.of_kind("lime", protocol, "classification")
    by_class = rows.groupby(np.sign(rows["prediction"]))["anchoring_gap"].mean()
    if len(by_class) == 2:  # the majority class is +1
        text += f"; in classification {by_class[-1.0]:.2f} if x is in the minority class, else {by_class[1.0]:.2f}"
    close = abs(gaps[low] - 0.026) <= 0.013 and abs(gaps[high] - 0.783) <= 0.25
    return Finding(text, bool((low, high) == (44146, 1486) and close))


def lime_above_one(results: Results, protocol: str) -> Finding:
    """Count the classification tasks where LIME's value at x differs from f(x) by more than 1."""
    gaps = results.of_kind("lime", protocol, "classification")["anchoring_gap"]
    n = int((gaps > 1).sum())
    return Finding(f"{n}/{len(gaps)}", n > 0)


def maple_violates(results: Results, protocol: str) -> Finding:
    """Compute the share of tasks on which MAPLE violates anchoring."""
    rows = results.method("maple", protocol)
    if rows.empty:
        return NOT_MEASURED
    share = rows["violated"].mean()
    clean = rows.groupby(level="dataset_id")["violated"].mean()
    names = ", ".join(published(int(i)).name for i in clean[clean == 0].index) or "none"
    return Finding(f"{100 * share:.0f}% of tasks (never on: {names})", bool(abs(share - 0.84) <= 0.10))


def maple_sizes(results: Results, protocol: str) -> Finding:
    """Find the smallest and the largest mean support size; agrees if a deviation is above half of its mean."""
    rows = results.method("maple", protocol)
    if rows.empty:
        return NOT_MEASURED
    grouped = rows.groupby(level="dataset_id")["n_terms"]
    mean, spread = grouped.mean(), grouped.std().fillna(0)
    ends = [f"{mean[i]:.1f} ± {spread[i]:.1f} ({published(int(i)).name})" for i in (mean.idxmin(), mean.idxmax())]
    return Finding(" to ".join(ends), bool((spread / mean).max() > 0.5 and mean.max() > 10 * mean.min()))


def largest(results: Results, protocol: str) -> Finding:
    """Find the largest coefficient, including the intercept; agrees if only MAPLE's is outside the box."""
    sizes = [results.method(name, protocol)["largest"].max() for name in ("iht", "exact", "lime", "maple")]
    text = " / ".join("-" if np.isnan(size) else f"{size:.3f}" for size in sizes)
    return Finding(text, bool(max(sizes[:3]) < 1 < sizes[3]) if not np.isnan(sizes[3]) else None)


def correlation_of_gap(results: Results, protocol: str) -> Finding:
    """Compute Pearson's r over all tasks, in each family with the slope of its line, and within the data sets."""
    points = advantages(results, protocol)
    r = correlation(points)
    families = ", ".join(
        f"{kind} {correlation(part):.2f}, slope {np.polyfit(part['anchoring_gap'], part['advantage'], 1)[0]:.2f}"
        for kind, part in points.groupby("kind")
        if len(part) > 2
    )
    single = np.median([correlation(part) for _, part in points.groupby(level="dataset_id")])
    squared = points.assign(anchoring_gap=points["anchoring_gap"] ** 2 / points["exact"])
    text = f"r = {r:.2f} over {len(points)} tasks ({families}); {single:.2f} within a data set (median)"
    return Finding(f"{text}; with gap^2 / F: {correlation(squared):.2f}", bool(r >= 0.85))


def negative(results: Results, protocol: str) -> Finding:
    """Count the tasks on which LIME does not fit better than the anchored optimum."""
    points = advantages(results, protocol)
    n = int((points["advantage"] < 0).sum())
    return Finding(f"{n}/{len(points)}", bool(abs(n / len(points) - 56 / 160) <= 0.10))


def certified(results: Results, protocol: str) -> Finding:
    """Count our proofs, with the time of the slowest; likewise for the external solvers."""
    exact = results.method("exact", protocol)
    proven = exact["status"] == "OPTIMAL"
    slowest = exact["seconds"].idxmax()
    text = (
        f"ours {int(proven.sum())}/{len(exact)}, slowest {exact['seconds'].max():.3f} s "
        f"({published(int(slowest[0])).name})"
    )
    for name in ("gurobi", "scip"):
        rows = results.method(name, protocol)
        if not rows.empty:
            n = int((rows["status"] == "OPTIMAL").sum())
            text += f"; {name} {n}/{len(rows)}, slowest {rows['seconds'].max():.1f} s"
    return Finding(text, bool(proven.mean() >= 102 / 160))


def referees_agree(results: Results, protocol: str) -> Finding:
    """Find the largest difference between our objectives and those of the external solvers."""
    exact, parts = results.method("exact", protocol)["empirical_fidelity"], []
    worst = 0.0
    for name in ("gurobi", "scip"):
        rows = results.method(name, protocol)
        objectives = rows[rows["status"] == "OPTIMAL"]["empirical_fidelity"] if not rows.empty else rows
        if not objectives.empty:
            difference = float((objectives - exact.reindex(objectives.index)).abs().max())
            worst = max(worst, difference)
            how = f"within {difference:.0e}" if difference else "equal"
            parts.append(f"{name} {how} on {len(objectives)} tasks")
    return Finding("; ".join(parts), worst <= 1e-6) if parts else NOT_MEASURED


def first_guess(results: Results, protocol: str) -> Finding:
    """Compare the exact solver's first guess with its result, and count the nodes until the proof."""
    rows = results.series("anytime", protocol)
    if rows.empty:
        return NOT_MEASURED
    runs = [run for _, run in rows.groupby(["dataset_id", "instance", "k"])]
    behind = [run["empirical_fidelity"].iloc[0] / run["empirical_fidelity"].iloc[-1] - 1 for run in runs]
    proven = [run for run in runs if run["status"].iloc[-1] == "OPTIMAL"]
    n_nodes = max((int(run["n_nodes"].iloc[-1]) for run in proven), default=0)
    first = sum(each <= 1e-9 for each in behind)
    text = f"equal on {first}/{len(runs)}, worse by at most {100 * max(behind):.2f}%"
    text += f"; {len(proven)}/{len(runs)} proven, after at most {n_nodes} nodes (k = 5 and 8)"
    return Finding(text, bool(max(behind) <= 0.01))


def iht_time(results: Results, protocol: str) -> Finding:
    """Find IHT's smallest and largest mean processor time per data set, and fit the power of d."""
    seconds, d = (results.means("iht", column, protocol) for column in ("cpu_seconds", "d"))
    text = f"{seconds.min():.4f} to {seconds.max():.4f} s (one CPU core)"
    if len(seconds) < 3:
        return Finding(text, None)
    power = float(np.polyfit(np.log(d), np.log(seconds), 1)[0])
    return Finding(f"{text}, growing as d^{power:.2f}", bool(seconds.max() <= 0.141 and power <= 0.25))


def maple_time(results: Results, protocol: str) -> Finding:
    """Find MAPLE's largest mean time, and count the data sets on which it exceeds LIME's."""
    maple, lime = (results.means(name, "cpu_seconds", protocol) for name in ("maple", "lime"))
    if maple.empty:
        return NOT_MEASURED
    slower = int((maple > lime.reindex(maple.index)).sum())
    where = published(int(maple.idxmax())).name
    text = f"{maple.max():.1f} s on {where}; slower than LIME on {slower}/{len(maple)} data sets"
    return Finding(text, slower == len(maple))
