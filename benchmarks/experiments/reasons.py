"""Why some figures differ from the published ones, in words; the page shows them where a check disagrees."""

_INSTANCES = (
    "The ten instances are not the authors' ten: both draws have seed 48, but from different generators, and by "
    "protocol `paper` from a test set that they do not name."
)

#: How the tables at hand differ from OpenML's.
DATA: tuple[str, ...] = (
    "46139 (Cancer Drug Response Methylation) was not at hand. The claims that rest on it (d = 1652, MAPLE's "
    "598 terms and 57.7 s, LIME's R / F of 5.22) cannot be found again; nothing is put in its place.",
    "Adult is the raw table (as OpenML 1590), not OpenML 179, which is believed to have age, gains, losses and "
    "hours cut into coded bins: here gains, losses and hours are dropped for tied quantiles, three columns for "
    "missing values; d = 30, not 42. With these four coded, the same encoding gives 42.",
    "Musk has 166 attributes, not 167: it lacks one that the paper counts as a category, of four indicators, "
    "probably an identifier (rows are sorted by class, so a row number would give the answer away): d = 640, not "
    "644.",
    "Seoul Bike Sharing has 13 attributes, not 17, with the date as a text of 365 levels; four columns have "
    "tied quantiles: d = 32, not 46.",
    "Medical Charges has ln(1 + payment) for a target, California Housing the plain value; OpenML's own targets "
    "were not seen. NCI 60 was identified by its shape. The other files agree with OpenML as far as is known, "
    "and their d is the published one.",
)

#: What the paper leaves open, and what was chosen here.
CHOICES: tuple[str, ...] = (
    _INSTANCES,
    "Exact, IHT, relaxation, MAPLE, SLISE, SCIP and Gurobi share one sample of m neighbors; LIME draws its own "
    "m, each column by its share in that sample, so it sees the same neighborhood.",
    "MAPLE is written here after its paper: 200 trees, max_features 0.5, at least 10 rows a leaf, weights by "
    "shared leaves, ridge 0.001, features ranked by the impurity decrease at the roots; the number kept is the "
    "one of at most 16 log-spaced sizes that errs least on 8 rows held out of the sample.",
    "KernelSHAP runs at its defaults on 20 background rows of the sample; its 4 largest values are read as the "
    "linear function whose Shapley values they are, as it is (what was dropped is missing from the sum) and "
    "re-anchored. SLISE runs with epsilon = 0.1, its other settings at their defaults.",
    "Direct relevance draws 20,000 neighbors and 10,000 more to choose: more than the m = 5000 of the others.",
    "Standard deviations are over instances, with n - 1. Folds are shuffled (seed 48). A term counts above "
    "1e-5; anchoring is violated above 1e-3; relevance is not measured for sums of more than 20 literals.",
    "IHT runs on one CPU core, at most 5,000 iterations, and stops where no contribution moves by more than "
    "1e-13. Seconds are processor seconds of one thread; only the times within which a task was proven optimal "
    "are wall time, on two cores that other work shared.",
    "SCIP is asked up to d = 69 and Gurobi up to d = 99, where the licence in its wheel ends, 120 s each; the "
    "paper's Gurobi runs above that could not be repeated.",
    "Anytime behaviour is told by nodes instead of seconds, so that it comes out the same twice.",
    'Whether a figure agrees is decided by code, by the rule that stands beside it. "With other instances": the '
    "95% interval of the figure when the instances of each data set are drawn again from those at hand, 2000 "
    "times. After a plus-minus sign in a claim: a standard error over the instances.",
)

#: By name of the claim; those that say "experiments" rest on `benchmarks.experiments.probes`.
REASONS: dict[str, str] = {
    "iht equal": "A matter of rounding: 11/15 is 73% and 12/16 is 75%, and of the data sets whose means print "
    "differently one has means 0.0002 apart. Every optimum here is proven, while three of the paper's four "
    "exceptions compare IHT with a search stopped at 120 s.",
    "lime violates": "One explanation of LIME's, of Student Performance, happens to meet the prediction to "
    "0.0004; nothing in LIME makes it.",
    "lime gap": "The smallest gap is found again, data set and size; the largest is smaller than published. Why "
    "is not known. Neither ten rows drawn at random nor the network's random start explain it: other rows and "
    "other networks of Nomao do not come near it (experiments below). Nor does LIME: the published errors of IHT "
    "and of the exact solver on Nomao are larger than ours, too (Table 3), so the authors' rows or model were "
    "harder ones. The gap goes with the class of x, about twice as large in the minority (figures in the claim); "
    "that they drew more of these is a supposition.",
    "largest": "By protocol paper the box is active on one task of COMPAS: IHT, which has none, returns an "
    "intercept of 1.13, and the exact solver stops at 1. So the box is rarely active, as the paper says, but not "
    "never. MAPLE leaves it on four tasks, as published, and further; by protocol code on one.",
    "correlation": "Within a data set the correlation is about the published one, and in each family near it. "
    "Over both it is lower because the line of regression is about four times as steep (slopes in the claim). A "
    "straight line in the gap is not the law: on one support, leading a least-squares fit through a point that it "
    "misses by g costs a multiple of g^2, and the relative advantage divides by F, which is small in regression. "
    "Against g^2 / F all tasks fall together much better (last figure of the claim). LIME's advantage is an "
    "anchoring artefact, as the paper says.",
    "lime ratio": "Same direction, a little larger by protocol paper. Ten instances a data set do not tell 1.3 "
    "from 1.5: with instances drawn again from those at hand the median moves over both (in the claim).",
    "ratio lime": "The published 5.22 is on the missing data set. On the 15 others the published largest is "
    "4.00, below the lemma's factor, as ours is.",
    "monotone": "The paper says itself that nothing guarantees it: one more literal shrinks the event. Each "
    "protocol has one rise, smaller than its standard error over the instances (in the claim), both on Adult, of "
    "which another version of the table is at hand. On Adult coded as in OpenML 179, the exact solver's error "
    "falls with every k by both protocols (experiments below).",
    "lime compas": "LIME is worse, but less so than published. It depends on the draw: with other seeds by "
    "protocol paper, and with other random starts of the network by protocol code, the multiple goes from ours to "
    "about the published one (experiments below).",
    "sigma factors": "California and Student fall as published. Adult does not on the table at hand, another "
    "version with 30 literals instead of 42; coded as in OpenML 179 it does by protocol code, that of the "
    "authors' scripts, and less by protocol paper (experiments below).",
    "plateaus": "The paper reads plateaus off the curves; here one begins where the mean stays within 5% of its "
    "value at m = 100,000. By protocol paper, California Housing misses that at m = 1000 by less than two "
    "percentage points (last figure of the claim); the other three level off as early as published, or earlier.",
    "hundred": "Few rows cost noise, no anchor costs bias, and which is larger depends on the data set. On "
    "Student Performance LIME's bias is small: at m = 100,000 its error is 17% (protocol paper) and 9% (code) "
    "above the exact solver's, while 100 rows for 69 literals cost the exact solver 17% and 29%. By protocol code "
    "this is no accident of the draw: ours is worse on 9 of 10 instances. IHT's loss on COMPAS is far below its "
    "standard error.",
}
