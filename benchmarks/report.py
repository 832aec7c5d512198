"""Write benchmark results: JSON files, and one Markdown page that shows them."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anchorline._version import __version__

TITLES = {
    "proven": "Proofs on the paper's tasks",
    "nearby": "Proofs one step from the paper's setting",
    "beyond": "Proofs beyond the paper's setting",
    "race_lime": "Overhead compared with LIME",
    "peers": "LIME and KernelSHAP at equal numbers of queries",
    "relevance": "Direct relevance",
    "tables": "Raw tables",
    "literals": "Intervals, bounds and thresholds",
    "literals_few_columns": "Intervals and bounds on few columns",
    "literals_proofs": "Proofs of sums of bounds",
    "few_queries": "Few queries",
    "few_queries_slow_peers": "Few queries, beside slow peers",
    "text": "Texts compared with LIME",
    "images": "Images compared with LIME",
    "tree_support": "What explainers of trees can explain",
    "tree_speed": "Trees: speed beside TreeSHAP",
    "tree_quality": "Trees: quality beside TreeSHAP",
    "tree_noise": "Trees: noise beside sampling",
    "changes": "Changes that turn a decision",
    "changes_alibi": "Changes that turn a decision, beside alibi",
    "pairs": "Pairs of facts",
    "realism": "How real neighbors are",
    "rules": "Neighbors that break a rule of the table",
    "attack": "A biased model that answers innocently on made-up rows",
    "laws": "What the law of neighbors changes",
    "law_cost": "What the law of neighbors costs",
    "truth": "Is it true as it is read?",
    "facts": "Do the facts hold the output?",
    "fit": "How well the facts fit",
    "seeds": "The same facts with another seed",
    "proofs": "Proofs of sums of facts",
    "proofs_wide": "Proofs of sums of facts about thousands of columns",
    "verdicts": "Verdicts",
    "verdicts_by_model": "Verdicts by table and model",
    "speed": "Speed, beside 0.1, KernelSHAP and TreeSHAP",
    "studio": "The studio under load",
    "frontier_cost": "Cost of the frontier",
    "memory": "Memory",
    "import_time": "Import time",
    "batch": "Many rows",
    "batch_memory": "Memory for many rows",
}
NOTES = {
    "proven": "k = 5, m = 5000, sigma = 1, 10 instances per benchmark. Times cover whole explanations, "
    "including the model. Adult, Musk and Seoul Bike Sharing have different dimensions from those published, "
    "because the files are different versions of these tables.",
    "nearby": "k = 8, or another sigma, or another m. Gaps are relative to the objective; the table shows "
    "the largest remaining gap.",
    "beyond": "k = 8, sigma in {0, 2, 3}, m in {1000, 20000}, 60 s per task.",
    "race_lime": "The same model, the same number of queries, one BLAS thread for both, k = 5 (for LIME: 4 "
    "features and its intercept). The overhead is the total time minus the time inside the model. Ratios are "
    "LIME's time divided by ours. In the certified columns, half of the queries are used for the "
    "certificate.",
    "peers": "Measured by `anchorline bench peers`, with the same model, exactly the same number of queries, "
    "sigma = 1, k = 5 (for LIME and KernelSHAP: 4 literals and an intercept; 20 background rows) and one "
    "thread, in processor seconds. The overhead is the time minus the time inside the model. Relevance "
    "errors are estimated from 50,000 draws, by the definition. Ratios are the peer's value divided by ours: "
    "of median times, and of mean relevance errors.",
    "relevance": "k = 5, sigma = 1, 10 instances per benchmark. The mean relevance error is estimated from "
    "50,000 conditional draws, by the definition. Exact, k literals (without intercept), IHT and LIME use "
    "5000 samples; direct relevance uses 20,000, and another 10,000 to choose. The paired 95% interval of "
    "the difference between direct and exact is Student's, over the instances. A search is complete if the best "
    "rule on its sample is proven; direct relevance is proven if the second sample chooses that rule.",
    "tables": "Gradient-boosting pipelines on raw frames, k = 5, 10 rows per table; the values are medians. "
    "anchorline uses 5,000 samples and 5,000 to certify; LIME runs with its default settings, 4 features and "
    "the same number of queries. Our assessment measures both on the same 20,000 fresh neighbors (errors and "
    "gaps are on the scale [-1, +1]; LIME's indicators are converted to our basis). The overhead is the time "
    "outside the model, in seconds. The ratio is LIME's overhead divided by ours.",
    "tree_speed": "100 trees on 2,000 rows of numbers, k = 5, milliseconds of one processor per row. shap is the "
    "path-dependent TreeExplainer on 500 rows at once, and 'trees, many' is explain_many on the same 500 rows, by "
    "the default literals and without a certificate; 'intervals' offers intervals only, and 'assembled' also "
    "looks at every explanation (of 50). 'Sampling' draws 5,000 neighbors; if certified, 5,000 more. 'Exact "
    "relevance' is the sum over pairs of leaves while the facts hold, 'exact errors' also that over all "
    "neighbors, which fidelity needs, and 'queries' measures 5,000 neighbors instead; they are left out where "
    "the pairs are too many (above 5 million for relevance, 20 million for all errors). Calls take turns in one "
    "run; those that sample or certify explain 6 rows.",
    "tree_quality": "k = 5, raw tables (at most 3,000 training rows), 10 or 5 rows each; forests, boosted "
    "numbers, and log-odds of boosted classes. The objective 'fidelity' finds the sum that fits best (default), "
    "'relevance' the facts that hold the output best. SHAP's facts are the attributes with the largest "
    "sums of path-dependent SHAP values, as many as our facts, each held by the statement about its "
    "value, as intervals are. Bounds hold less: a lower bound leaves higher values free. Both are held, "
    "and 20,000 fresh neighbors measure the relevance error and how often the "
    "decision stays. The last column of each kind is the standard error of the difference, row by row.",
    "tree_noise": "k = 5, no certificate, 5 rows per table, 20 seeds. Shares of rows whose facts, or whose "
    "numbers, differ between seeds: with 5,000 sampled neighbors, and from leaves.",
    "tree_support": "Regressors of 20 trees on 400 rows. 'Adds up' means that base value plus contributions equal "
    "the model's own predictions to 1e-4 of their range, on 20 rows; for anchorline also that these rows are "
    "explained from leaves, without sampling. 'From codes' means that categories were replaced by codes, and "
    "'per encoded column' that the pipeline was taken apart, so that contributions belong to encoded columns. A "
    "refusal quotes the error of the last attempt. shap 0.51 and woodelf-explainer 0.4.8 use 100 background rows; "
    "shapiq 1.4.1 is path-dependent, and its reader of XGBoost fails with pandas 3. To repeat it, install shapiq "
    "and woodelf-explainer, which are not in our extras, because they install numba and treelite.",
    "changes": "Gradient boosting on raw tables without missing values, the same rows for all methods, which take "
    "turns, one change per row, and three for the line that says so. 'Rows' are whole training rows "
    "(examples='rows'). Found and valid: rows with a change, and rows whose change turns the decision when the "
    "model is asked again. Distance: sum over the columns in training quantiles, a category counts 1/2. Nearest "
    "row: mean distance per column to the nearest training row other than the case; DiCE's genetic search starts "
    "from training rows. Queries of anchorline include the measurement of its bounds. Seconds are processor time; "
    "preparing the tables is not timed. Times anchorline: the median over the rows of the time relative to the "
    "first line.",
    "changes_alibi": "As above, beside alibi's counterfactuals guided by prototypes (default settings, k-d trees, "
    "categories by their distances), in an environment with NumPy 1, which alibi needs. Its search is stopped "
    "after 60 s of processor time per row, which then counts as not found.",
    "literals": "Gradient boosting and random forests on raw tables (at most 3,000 training rows), k = 5, 5,000 "
    "samples, at most 10 s per search, the same 10 rows for all kinds of literals. Mean errors on 20,000 fresh "
    "neighbors. 'Lower by' compares with intervals; the paired 95% interval of the difference is Student's, over "
    "the rows. 'Joint low' is the lower limit of intervals that hold together for all pairs of table and model: "
    "one above 0 is a significantly higher error. Times are medians: of the solver alone, and of a whole "
    "explanation with its certificate divided by "
    "the time inside the model. On Medical Charges (3 columns), intervals hold every column, so that nothing can "
    "vary and their relevance error is 0 whatever the model does; the next table looks at this.",
    "literals_few_columns": "As above, for the tables of at most 5 columns and for k = 2 to 5. If the facts hold "
    "every column, the only neighbor in which they hold is the row itself: nothing can vary, and the relevance "
    "error is 0 whatever the model does. 'Nothing varies' counts such rows. The errors and the first paired 95% "
    "interval (bounds minus intervals) are over all rows, the last columns over the rows in which something can "
    "vary with both kinds; they are empty if there are fewer than two.",
    "pairs": "The paper's tasks of up to 40 literals (hypercube), and gradient boosting on raw tables with bounds "
    "as literals; k = 5, 5,000 samples, at most 10 s per search, the same rows with and without pairs. A pair "
    "costs two terms. Candidate pairs are all pairs, or those whose two facts have a clear effect (the default). "
    "Mean errors on 20,000 fresh neighbors each; the paired 95% interval of the difference is Student's, over the "
    "rows. The excess is that of the error on the search sample with pairs over that without pairs, and is never "
    "positive. Gaps are relative to the objective. Measured beside other work, so that 10 s were less "
    "processor time.",
    "literals_proofs": "Gradient boosting on raw tables and on generated numbers, k = 5, 5,000 samples, 10 rows, "
    "at most 10 s per search. Intervals and bounds are solved on the same neighbors in turn. Times are processor "
    "time of the solver alone, each the least of five; the ratio is that of bounds to intervals, per row.",
    "few_queries": "The paper's tasks of up to 190 literals, and docstrings classified by their package; k = 5 "
    "(for the others: 4 facts and an intercept), sigma = 1. Every method gets the number of queries in all; "
    "anchorline (`budget=`) spends a quarter of 64 to 256 of them, and half of 300 and 500, on its "
    "certificate. LIME with its default settings; KernelSHAP of shap and of shapiq, and shapiq's "
    "regression for Banzhaf values, on the game in which a coalition keeps its facts and breaks all "
    "others; the lasso's first four facts, refitted, on neighbors drawn by our own law. All sums are "
    "anchored at the prediction. Medians over instances and four seeds; 10,000 other neighbors are the "
    "population. Minus ours: the mean over these instances minus ours, with its standard error over "
    "seeds; negative where the other one is better. Excess: the fidelity error above that of the best "
    "5-term sum, as a share of it. Facts excess: the same with the best numbers for the facts that a "
    "method chose. Relevance: mean squared drop while these facts hold.",
    "few_queries_slow_peers": "As above, with 256 queries in all, one instance and one seed per task, beside "
    "SVARM and ProxySPEX of shapiq, which take seconds and minutes per call.",
    "text": "Docstrings of NumPy, pandas, SciPy, scikit-learn and matplotlib, classified by their package (TF-IDF "
    "and logistic regression). The same words, the same model and the same number of queries, k = 5 (for LIME: 4 "
    "words and its intercept), LIME's other settings at their defaults, anchorline's with moments='known'. Means "
    "over texts; errors on 4,000 fresh neighbors; differences to LIME on the same texts with their standard "
    "errors. The overhead is the processor time outside the model; the ratio is LIME's median overhead divided "
    "by ours.",
    "images": "Pieces of 128 x 128 pixels of four photos of scikit-image, classified by their colors (logistic "
    "regression). The same regions, hidden by black, the same model and the same number of queries, k = 5. "
    "Otherwise as for texts.",
    "realism": "Neighbors of held-out rows of raw tables (at most 6,000 training rows, sigma = 1), by "
    "the value of Table(neighbors=...). Ratios: the distance of neighbors to the nearest training row "
    "over the same distance of held-out rows, median and mean; a ratio is missing where most held-out "
    "rows equal a training row. Distances are means over the columns, in training quantiles; two "
    "categories are 1/2 apart. AUC: area under the curve of gradient boosting that distinguishes "
    "neighbors from held-out rows, by cross-validation, two neighbors per row; LIME's rows with its "
    "default settings. Not measured with fewer than 300 rows. The errors are standard errors of the AUC.",
    "rules": "Generated people on a ship, of whom all obey five rules: crew and no one else pays no fare, the "
    "class decides the deck, sex and age decide the title, whoever has no relatives is alone, and crew has no "
    "relatives and is at least 16 years old. Shares of neighbors of 40 other people that break a rule. A donor "
    "allows a neighbor to keep all rules if it is a training row that breaks the drawn facts (of similar "
    "neighbors, at least one), and all rules hold if the drawn attributes take its values. Grouped: the columns "
    "of a rule, but for the last one, are one attribute.",
    "attack": "The attack of Slack et al. (2020), trained for each explainer on its made-up rows: a random "
    "forest takes rows for real or made up, the model decides by the sensitive attribute (race; A1) where "
    "a row looks real, and by a column of random values elsewhere. The limit lets 95% of checked real "
    "rows pass. Shares of explained rows, all of which pass, in which the sensitive attribute is among "
    "the at most four that are named, or the first; 5,000 queries per row, 10 background rows for "
    "KernelSHAP.",
    "laws": "Gradient boosting on raw tables (at most 3,000 training rows, groups='auto'), k = 5, 5,000 samples, "
    "10 rows: explanations found under one law, and measured on 4,000 fresh neighbors of every law. Mean "
    "relevance errors, and mean shares of neighbors in which the output stays while the facts hold. Same "
    "facts: the share of rows in which all facts, or the first one, are those found with independent "
    "neighbors. A search takes 2 seconds at most; the best sum found by then counts.",
    "law_cost": "Explanations (5,000 samples, 5,000 to certify) with a trivial model on generated numbers and "
    "categories that all depend on three hidden numbers; processor time outside the model, nine rows in "
    "turn, median ratio to independent neighbors. The last columns: milliseconds to make 1,000 neighbors, "
    "in batches of 5,000, from a table of a million rows after the index is built.",
    "truth": "Gradient boosting and random forests on raw tables (at most 3,000 training rows), 20 rows "
    "each, explained with the default settings. For every explanation with the verdict 'explained' or 'robust', "
    "20,000 copies are drawn by pandas alone: the columns of facts take values of random rows for which the "
    "facts are true (none are held for 'robust'), every other column follows the law. An audit is below 95% if "
    "the upper limit of its 95% interval is. Words are those beside the facts, without names from data. 'Old' "
    "are the verdicts of release 0.1 about the same rows, with its defaults. Seconds are processor time, in one "
    "thread.",
    "facts": "The same tables and rows. Error that remains while facts hold over the error with nothing "
    "held, mean squared drops of 2,000 copies, the same random numbers for all methods: facts' columns take "
    "values of random rows for which the facts are true, all other columns each that of a random row, of all or "
    "of the 50 nearest (mean distance of ranks). Columns of one attribute come from one row. LIME with its "
    "defaults and quartile bins; KernelSHAP with its default coalitions and 50 background rows, and "
    "path-dependent TreeSHAP, with the quartile bins or categories of their columns; release 0.1 with as many "
    "facts. 'Stated' is the mean number of our facts, which leave out what gains less than 1%. Means of ratios "
    "over rows; 'pooled' are ratios of means. Last columns: on how many tables and models ours is significantly "
    "higher or lower, paired t-tests of the ratios with Holm's correction at 5% per peer.",
    "fit": "The same tables and rows, k = 4. Every method gets as many facts as we state. Effects are "
    "refitted by least squares, anchored at the prediction, on 10,000 neighbors of the law at sigma = 1, and "
    "measured on 20,000 others. Mean error over the error without facts; 'percent above' compares these means.",
    "seeds": "Gradient boosting and forests on raw tables, k = 4, 10 rows, 10 seeds each. Mean Jaccard "
    "index of all pairs of seeds, over attributes and over facts with their bounds. Moments from leaves do not "
    "depend on the seed; the last line is without them.",
    "speed": "Processor seconds of explanations in one thread, medians over rows, after a first one; what "
    "is compared takes turns row by row. Boosted probabilities: raw tables as above, default settings of both "
    "releases. KernelSHAP: pipelines that encode and scale, on arrays of codes, with 100 background rows; its "
    "default number of coalitions, and as many as make its queries equal to ours. Trees: regressors of 100 "
    "trees on 2,000 rows of 15 numbers; 'search' is the choice of facts without measuring, 0.1's with "
    "n_certify=0.",
    "proofs": "Gradient boosting on raw tables (at most 3,000 training rows), 2,000 neighbors of each of 10 rows, "
    "with bounds, intervals and categories as facts. Proven: the share of rows for which the best sum of at most "
    "k facts is proven for the moments of these neighbors; 'stated' the share for which the sum that would be "
    "stated, of facts that are related to the output, is proven to be within 1% of Var t of the best. The search "
    "ends after a constant number of nodes. Seconds are those of the search by the clock.",
    "proofs_wide": "A function of 12 of d columns of random numbers, 2,000 rows in the table and 2,000 neighbors "
    "of one of them. Seconds by the clock of the search, and of the moments from the answers; megabytes are the "
    "largest size of all arrays of the search.",
    "verdicts": "Linear models, forests, gradient boosting and networks on raw tables (at most 3,000 training "
    "rows), 40 rows each, with bounds and intervals as facts. Baseline and 'while held' are the shares of "
    "neighbors in which the decision stays, or in which the number stays within a distance, measured on 10,000 "
    "other draws. One random set of facts per row, as many as were found and about different attributes, is "
    "judged in the same way. 'Where facts decide' counts the rows in which the facts truly hold the output (in at "
    "least 95% of neighbors) against a baseline below 80%. The last column is what a reader sees about the row "
    "with the median figure.",
    "verdicts_by_model": "The same rows, counted by table and model. 'Facts decide' counts the rows in which the "
    "facts truly hold the output against a baseline below 80%.",
    "studio": "Server and clients are two processes on one machine, connected over loopback. The model is "
    'gradient boosting on Adult (14 attributes), k = 5. The "computed" rows use 5,000 samples and 5,000 to '
    "certify per request, with two workers. Every answer is compared byte by byte with the library's answer "
    'in the client process; "wrong" counts the differences, and "refused" the answers with status 429. '
    "Memory is the resident set of the server after the first 2,000 of 10,000 requests, and after all of "
    "them. The rows about hostile clients use a synthetic model of 57 columns: hostile ones send searches for 20 "
    "terms, large bodies, repeated facts and searches for odd words, or never read their answers; honest "
    "clients are measured with and without them in turns. The time to the link of `anchorline serve --demo` is "
    "that of new processes. The slider rows measure the time from the event to the picture in Chromium, "
    "with the demo model.",
    "frontier_cost": "The total time for k = 1..8 with certificates, compared with the time for k = 8 alone "
    "with its certificate.",
    "memory": "Peak resident memory of one explanation.",
    "import_time": "Medians over new processes.",
    "batch": "Gradient boosting (scikit-learn's histogram regressor, 100 trees) on a pandas frame, with the "
    "default settings: 5,000 samples and 5,000 to certify; one thread per process. Rates are measured in "
    'worker processes from the first row to the last, as medians of three rounds. "Two apart" means two '
    "separate batches, each in one process, at the same time, which shows the limit of the machine. Seconds "
    "per row are processor time, as medians of 100 rows, with intervals and, in the last column, with bounds.",
    "batch_memory": "A whole batch, including checkpoints and the file, with 2 worker processes; d = 4, a "
    "fast model, 32 samples per row.",
}


def write_json(directory: Path, name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows of one section atomically, with a description of the machine."""
    directory.mkdir(parents=True, exist_ok=True)
    machine = {
        "anchorline": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }
    text = json.dumps({"section": name, "made_on": machine, "rows": list(rows)}, indent=1) + "\n"
    temporary = directory / f"{name}.json.tmp"
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, directory / f"{name}.json")


def read_rows(directory: Path, name: str) -> list[dict[str, Any]]:
    """Return the recorded rows of one section; none if it was never measured."""
    file = directory / f"{name}.json"
    return list(json.loads(file.read_text(encoding="utf-8"))["rows"]) if file.exists() else []


def write_page(directory: Path) -> Path:
    """Write ``README.md`` from the JSON files of all sections in the same folder."""
    head = "This page shows the results of `make bench`. The JSON files beside it hold all values."
    parts = [f"# Benchmark results\n\n{head}\n"]
    for name, title in TITLES.items():
        if (directory / f"{name}.json").exists():
            rows = read_rows(directory, name)
            parts.append(f"## {title}\n\n{NOTES[name]}{_share_proven(rows)}\n\n{markdown_table(rows)}\n")
    page = directory / "README.md"
    page.write_text("\n".join(parts), encoding="utf-8")
    return page


def _share_proven(rows: Sequence[dict[str, Any]]) -> str:
    if not rows or "tasks" not in rows[0]:
        return ""
    return f" Proven: {sum(row['proven'] for row in rows):,} of {sum(row['tasks'] for row in rows):,} tasks."


def markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table of rows that have the same keys."""
    if not rows:
        return "(not measured)"
    columns = list(rows[0])
    lines = [
        "| " + " | ".join(_heading(column) for column in columns) + " |",
        "|---" * len(columns) + "|",
    ]
    lines += ["| " + " | ".join(_cell(row[column]) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def _heading(key: str) -> str:
    """Return the heading of a column, such as "rows per second" for the key "rows_a_second"."""
    return key.replace("_a_", "_per_").replace("_", " ")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
