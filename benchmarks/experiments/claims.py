"""The paper's claims: the published figures, and the check of each claim in the results."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.experiments import claims_fidelity as fidelity
from benchmarks.experiments import claims_relevance as relevance
from benchmarks.experiments.finding import Finding
from benchmarks.experiments.results import Results


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper, its published figures, the condition for agreement, and the check."""

    name: str
    statement: str
    published: str
    agrees_if: str
    check: Callable[[Results, str], Finding]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "five terms",
        "IHT, the exact solver and LIME return exactly five terms",
        "160/160",
        "on every task",
        fidelity.five_terms,
    ),
    Claim(
        "iht equal",
        "IHT equals the exact solver to three decimals on most data sets",
        "12/16",
        "on at least 75% of the data sets",
        fidelity.iht_equal,
    ),
    Claim(
        "iht behind",
        "elsewhere IHT is at most 6% worse",
        "6%",
        "by at most 6% on every data set",
        fidelity.iht_behind,
    ),
    Claim(
        "relaxation",
        "the relaxation bounds the optimum from below and is dense",
        "below everywhere; 13 terms on Medical Charges",
        "never above the optimum, and more than five terms on some data set",
        fidelity.relaxation_bounds,
    ),
    Claim(
        "lime violates",
        "LIME violates anchoring on every task",
        "160/160",
        "on every task",
        fidelity.lime_violates,
    ),
    Claim(
        "lime gap",
        "LIME's mean anchoring gap, smallest and largest over data sets",
        "0.026 (Medical Charges) to 0.783 (Nomao)",
        "the same data sets have them, within 0.013 and 0.25 of the published gaps",
        fidelity.lime_gap,
    ),
    Claim(
        "lime gap above 1",
        "LIME's gap exceeds 1 on some classification tasks",
        "7/80",
        "on at least one task",
        fidelity.lime_above_one,
    ),
    Claim(
        "maple violates",
        "MAPLE violates anchoring",
        "84% of tasks",
        "within 10 percentage points",
        fidelity.maple_violates,
    ),
    Claim(
        "maple sizes",
        "MAPLE's support sizes are unpredictable",
        "1 (Medical Charges) to 598.0 ± 648.7 (Cancer Drug Resp. Meth.)",
        "means differ by a factor of ten, and some deviation is above half of its mean",
        fidelity.maple_sizes,
    ),
    Claim(
        "largest",
        "the box is inactive: largest coefficient of IHT / exact / LIME / MAPLE",
        "0.935 / 0.956 / 0.917 / 1.270",
        "below 1, except MAPLE's, which is above",
        fidelity.largest,
    ),
    Claim(
        "correlation",
        "LIME's fidelity advantage is correlated with its anchoring gap",
        "r = 0.92",
        "r is at least 0.85 over all tasks",
        fidelity.correlation_of_gap,
    ),
    Claim(
        "negative",
        "LIME's advantage is negative on more than a third of the tasks",
        "56/160",
        "within 10 percentage points",
        fidelity.negative,
    ),
    Claim(
        "certified",
        "tasks proven optimal within 120 s",
        "102/160 (Gurobi: all at d <= 69, 2 of 60 above)",
        "at least the published share",
        fidelity.certified,
    ),
    Claim(
        "referees",
        "beyond the paper: SCIP and Gurobi find the same optimum as our solver",
        "-",
        "objectives differ by at most 1e-6",
        fidelity.referees_agree,
    ),
    Claim(
        "anytime",
        "beyond the paper: at d >= 149 the exact solver's first guess is within 1% of the optimum",
        "-",
        "within 1% on every task",
        fidelity.first_guess,
    ),
    Claim(
        "iht time",
        "IHT's run time hardly depends on d",
        "0.055 to 0.141 s (GPU)",
        "never above 0.141 s, growing at most as d^0.25 (published: d^0.19)",
        fidelity.iht_time,
    ),
    Claim(
        "maple time",
        "MAPLE is the most demanding baseline",
        "57.7 s on Cancer Drug Resp. Meth.",
        "slower than LIME on every data set",
        fidelity.maple_time,
    ),
    Claim(
        "proxy",
        "the empirical error is a faithful proxy: |F - F^|",
        "at most 0.005",
        "at most 0.005, for means as printed",
        relevance.proxy,
    ),
    Claim(
        "lime less relevant",
        "LIME is less relevant than the exact solver",
        "15/16",
        "never better, for means as printed",
        relevance.lime_worse,
    ),
    Claim(
        "lime ratio",
        "LIME's relevance error divided by that of the exact solver, median",
        "1.3",
        "within 0.15",
        relevance.lime_ratio,
    ),
    Claim(
        "ratio",
        "largest R / F of IHT and of the exact solver",
        "1.95 / 1.90",
        "at most the published values",
        relevance.largest_ratio,
    ),
    Claim(
        "ratio lime",
        "largest R / F of LIME",
        "5.22, above the lemma's 4.79",
        "above the lemma's factor",
        relevance.largest_ratio_lime,
    ),
    Claim(
        "ratio classification",
        "R / F stays below 1 on every classification data set",
        "8/8",
        "on every data set",
        relevance.ratio_classification,
    ),
    Claim(
        "lemma",
        "no anchored explanation breaks the lemma",
        "never",
        "on every task, up to the error of 100,000 draws",
        relevance.lemma_holds,
    ),
    Claim(
        "subcube",
        "beyond the paper: the definition's event and the support's subcube give the same R",
        "-",
        "on every task",
        relevance.subcube,
    ),
    Claim(
        "monotone",
        "relevance error of IHT and of the exact solver falls with every k",
        "4/4 data sets each",
        "no increase, for means as printed",
        relevance.monotone,
    ),
    Claim(
        "lime above in k",
        "LIME is above both at every k",
        "4/4 data sets",
        "at every point, for means as printed",
        relevance.lime_above_k,
    ),
    Claim(
        "lime compas",
        "relevance error of LIME on COMPAS at k = 8, divided by that of the exact solver",
        "about 4",
        "2.5 to 6",
        relevance.lime_compas,
    ),
    Claim(
        "sigma factors",
        "factor by which the relevance error falls from sigma = 0 to 1.75: Adult / California / Student",
        "3 / 1.7 / 1.7",
        "0.6 to 1.5 times the published factor, on all three",
        relevance.sigma_factors,
    ),
    Claim(
        "lime above in sigma",
        "LIME is above both at every sigma",
        "4/4 data sets",
        "at every point, for means as printed",
        relevance.lime_above_sigma,
    ),
    Claim(
        "plateaus",
        "plateau in m: COMPAS / Adult / California / Student",
        "5000 / 5000 / 1000 / 1000",
        "within 5% of the last mean from the published m, on all four",
        relevance.plateaus,
    ),
    Claim(
        "hundred",
        "IHT and the exact solver with m = 100 beat LIME with m = 100,000",
        "4/4 data sets",
        "on all four, for means",
        relevance.hundred_samples,
    ),
    Claim(
        "lime flat",
        "LIME is not better at m = 100,000 than at m = 500 on COMPAS and Adult",
        "2/2",
        "at most 5% better on both",
        relevance.lime_flat,
    ),
    Claim(
        "convergence",
        "IHT follows the exact solver at every sigma: IHT / optimum, mean and largest value",
        "indistinguishable",
        "within 2% on average",
        relevance.iht_follows,
    ),
)
