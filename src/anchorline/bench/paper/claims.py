"""The paper's claims, one by one: what was published, and how it is found again in the results."""

from collections.abc import Callable
from dataclasses import dataclass

from anchorline.bench.paper import claims_fidelity as fidelity
from anchorline.bench.paper import claims_relevance as relevance
from anchorline.bench.paper.finding import Finding
from anchorline.bench.paper.results import Results


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper with its printed figures, and the check that finds it again or does not."""

    name: str
    statement: str
    published: str
    check: Callable[[Results, str], Finding]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "five terms", "IHT, the exact solver and LIME return exactly five terms", "160/160", fidelity.five_terms
    ),
    Claim(
        "iht equal",
        "IHT equals the exact solver to three decimals on most data sets",
        "12/16",
        fidelity.iht_equal,
    ),
    Claim("iht behind", "elsewhere IHT is at most 6% behind", "6%", fidelity.iht_behind),
    Claim(
        "relaxation",
        "the relaxation bounds the optimum from below, and is dense",
        "below everywhere; 13 terms on Medical Charges",
        fidelity.relaxation_bounds,
    ),
    Claim("lime violates", "LIME violates anchoring on every task", "160/160", fidelity.lime_violates),
    Claim(
        "lime gap",
        "LIME's mean anchoring gap, smallest and largest data set",
        "0.026 (Medical Charges) to 0.783 (Nomao)",
        fidelity.lime_gap,
    ),
    Claim(
        "lime gap above 1", "LIME's gap exceeds 1 on some classification tasks", "7/80", fidelity.lime_above_one
    ),
    Claim("maple violates", "MAPLE violates anchoring", "84% of tasks", fidelity.maple_violates),
    Claim(
        "maple sizes",
        "MAPLE's support sizes are unpredictable",
        "1 (Medical Charges) to 598.0 ± 648.7 (Cancer Drug Resp. Meth.)",
        fidelity.maple_sizes,
    ),
    Claim(
        "largest",
        "the box is inactive: largest coefficient of IHT / exact / LIME / MAPLE",
        "0.935 / 0.956 / 0.917 / 1.270",
        fidelity.largest,
    ),
    Claim(
        "correlation",
        "LIME's fidelity advantage goes with its anchoring gap",
        "r = 0.92",
        fidelity.correlation_of_gap,
    ),
    Claim(
        "negative", "LIME's advantage is negative on more than a third of the tasks", "56/160", fidelity.negative
    ),
    Claim(
        "certified",
        "tasks proven optimal within 120 s",
        "102/160 (Gurobi: all at d <= 69, 2 of 60 above)",
        fidelity.certified,
    ),
    Claim(
        "referees",
        "beyond the paper: SCIP and Gurobi find the same optimum as our solver",
        "-",
        fidelity.referees_agree,
    ),
    Claim(
        "anytime",
        "beyond the paper: at d >= 149 the exact solver's first guess is within 1% of the optimum",
        "-",
        fidelity.first_guess,
    ),
    Claim("iht time", "IHT's run time hardly depends on d", "0.055 to 0.141 s (GPU)", fidelity.iht_time),
    Claim(
        "maple time",
        "MAPLE is the most demanding baseline",
        "57.7 s on Cancer Drug Resp. Meth.",
        fidelity.maple_time,
    ),
    Claim("proxy", "the empirical error is a faithful proxy: |F - F^|", "at most 0.005", relevance.proxy),
    Claim("lime less relevant", "LIME is less relevant than the exact solver", "15/16", relevance.lime_worse),
    Claim("lime ratio", "LIME's relevance error over the exact solver's, median", "1.3", relevance.lime_ratio),
    Claim("ratio", "R / F of IHT and of the exact solver, largest", "1.95 / 1.90", relevance.largest_ratio),
    Claim("ratio lime", "R / F of LIME, largest", "5.22, above the lemma's 4.79", relevance.largest_ratio_lime),
    Claim(
        "ratio classification",
        "R / F stays below 1 on every classification data set",
        "8/8",
        relevance.ratio_classification,
    ),
    Claim("lemma", "no anchored explanation breaks the lemma", "never", relevance.lemma_holds),
    Claim(
        "subcube",
        "beyond the paper: the definition's event and the support's subcube give the same R",
        "-",
        relevance.subcube,
    ),
    Claim(
        "monotone",
        "relevance error of IHT and of the exact solver falls with every k",
        "4/4 data sets each",
        relevance.monotone,
    ),
    Claim("lime above in k", "LIME is above both at every k", "4/4 data sets", relevance.lime_above_k),
    Claim(
        "lime compas",
        "LIME on COMPAS at k = 8, as a multiple of the exact solver's",
        "about 4",
        relevance.lime_compas,
    ),
    Claim(
        "sigma factors",
        "relevance error falls from sigma = 0 to 1.75: Adult / California / Student",
        "3 / 1.7 / 1.7",
        relevance.sigma_factors,
    ),
    Claim("lime above in sigma", "LIME is above both at every sigma", "4/4 data sets", relevance.lime_above_sigma),
    Claim(
        "plateaus",
        "plateau in m: COMPAS / Adult / California / Student",
        "5000 / 5000 / 1000 / 1000",
        relevance.plateaus,
    ),
    Claim(
        "hundred",
        "m = 100 of IHT and of the exact solver beats m = 100,000 of LIME",
        "4/4 data sets",
        relevance.hundred_samples,
    ),
    Claim(
        "lime flat",
        "LIME at m = 100,000 is no better than at m = 500 on COMPAS and Adult",
        "2/2",
        relevance.lime_flat,
    ),
    Claim(
        "convergence",
        "IHT follows the exact solver at every sigma: IHT / optimum, mean and largest",
        "indistinguishable",
        relevance.iht_follows,
    ),
)
