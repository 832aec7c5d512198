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
    "peers": "LIME and KernelSHAP at equal numbers of queries",
    "text": "Texts compared with LIME",
    "images": "Images compared with LIME",
    "tree_support": "What explainers of trees can explain",
    "changes": "Changes that turn a decision",
    "truth": "Is it true as it is read?",
    "facts": "Do the facts hold the output?",
    "rules_hold": "Do rules hold as written?",
    "fit": "How well the facts fit",
    "seeds": "The same facts with another seed",
    "proofs": "Proofs of sums of facts",
    "proofs_wide": "Proofs of sums of facts about thousands of columns",
    "speed": "Speed, beside 0.1, KernelSHAP and TreeSHAP",
    "studio": "The studio under load",
    "import_time": "Import time",
    "batch": "Many rows",
    "batch_memory": "Memory for many rows",
}
NOTES = {
    "peers": "Measured by `anchorline bench peers`, with the same model, the same number of queries, sigma = 1, "
    "4 facts at most (KernelSHAP: 20 background rows) and one thread, in processor seconds. Ours also measures "
    "its facts with these queries. The overhead is the time minus the time inside the model. Relevance errors "
    "are mean squared drops of 50,000 neighbors with these facts. Ratios are the peer's value divided by ours: "
    "of median times, and of mean relevance errors.",
    "text": "Docstrings of NumPy, pandas, SciPy, scikit-learn and matplotlib, classified by their package (TF-IDF "
    "and logistic regression). The same words, the same model and as many queries, 8 words at most, LIME's other "
    "settings at their defaults; ours also measures its words with these queries. Means over texts. Share kept: "
    "of 4,000 fresh copies with the chosen words, in which every other word is missing with the law's "
    "probability; of all: without chosen words. R2 is that of the sum on the latter; LIME fits copies that "
    "lack half of the words on average. Differences to LIME on the same texts, with their standard errors. The "
    "overhead is the processor time outside the model; the ratio is LIME's median overhead divided by ours.",
    "images": "Pieces of 128 x 128 pixels of four photos of scikit-image, classified by their colors (logistic "
    "regression). The same regions, hidden by black, the same model and as many queries, 8 regions at most. "
    "Otherwise as for texts.",
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
    "rules_hold": "The same tables with classes and the same rows. Rules of at most 4 facts at 95%, beside "
    "alibi's AnchorTabular (threshold 0.95, at most 4 bounds, other settings at their defaults), "
    "explainiverse's certified anchors (the same; 100 rows per query; numbers only, so that it states bounds of "
    "the codes of categories) and release 0.1's `shortest` (5% of other labels), with the same model and table. "
    "Claimed: rows with a rule of at most 4 facts that is said to hold in at least 95% (ours: certified; alibi: "
    "its precision; explainiverse: certified; 0.1: the lower limit of its certificate). Every rule meets the "
    "same audit of 20,000 copies, drawn by NumPy alone as in 'truth', with the facts as sets of values; passed: "
    "claimed, and the upper limit of the audit is at least 95%. Lowest audit and number of facts are those of "
    "claimed rules, coverage (the share of the table's rows for which all facts are true) and the share of "
    "these rows that get the same decision those of rules that pass. 'There' are the rows on which our rule and "
    "that method's pass. Seconds are processor time in one thread, after a first explanation per table, the "
    "model inside the process that measures; 'times ours' is the ratio of medians. Missed bars: at most 2% of "
    "our claimed rules below 95% in the audit, none below 92%; a higher share that passes, and a larger "
    "coverage there (median and mean), than every other method; a third of alibi's time.",
    "fit": "The same tables and rows, k = 4. Every method gets as many facts as we state. Effects are "
    "refitted by least squares, anchored at the prediction, on 10,000 neighbors of the law at sigma = 1, and "
    "measured on 20,000 others. Mean error over the error without facts; 'percent above' compares these means.",
    "seeds": "Gradient boosting and forests on raw tables, k = 4, 10 rows, 10 seeds each. Mean Jaccard "
    "index of all pairs of seeds, over attributes and over facts with their bounds. Moments from leaves do not "
    "depend on the seed; the last line is without them.",
    "speed": "Processor seconds of explanations in one thread, medians over rows, after a first one; what is "
    "compared takes turns row by row. Boosted probabilities: raw tables as above, default settings of both "
    "releases. KernelSHAP: pipelines that encode and scale, the same for both, with 100 background rows; its "
    "default number of coalitions, and as many as make its queries equal to ours. Trees: regressors of 100 trees "
    "on 2,000 rows of 15 numbers; 'search' is the choice of facts without measuring, 0.1's with n_certify=0.",
    "proofs": "Gradient boosting on raw tables (at most 3,000 training rows), 2,000 neighbors of each of 10 rows, "
    "with bounds, intervals and categories as facts. Proven: the share of rows for which the best sum of at most "
    "k facts is proven for the moments of these neighbors; 'stated' the share for which the sum that would be "
    "stated, of facts that are related to the output, is proven to be within 1% of Var t of the best. The search "
    "ends after a constant number of nodes. Seconds are those of the search; recorded ones, by the clock.",
    "proofs_wide": "A model of d columns of random numbers, of which 12 matter; 2,000 rows in the table and 2,000 "
    "neighbors of a row. Processor seconds of the search, and of the moments from the answers. Whole searches "
    "(drawing and model included) run in processes of their own, and are compared with those of 0.1: processor "
    "time, medians of five rows after a first one, and by how many megabytes the process grew. Search seconds are "
    "those of search and proof alone, from the model's answers to the sum: moments and choice here, statistics, "
    "problem and choice in 0.1; what neighbors break is read off before, in both.",
    "studio": "Server and clients are two processes on one machine, connected over loopback. The model is "
    'gradient boosting on Adult (14 attributes), k = 4. The "computed" rows use the default settings, '
    "with two workers. Every answer is compared byte by byte with the library's answer "
    'in the client process; "wrong" counts the differences, and "refused" the answers with status 429. '
    "Memory is the resident set of the server after the first 500 of 5,000 requests of every kind, and after all "
    "of them. The rows about hostile clients use a synthetic model of 57 columns: hostile ones send the most "
    "expensive legal explanations, changes, rules and summaries, large bodies, repeated facts and searches for "
    "odd words, or never read their answers; honest clients, who ask for explanations and changes, are measured "
    "with and without them in turns. The time to the link of `anchorline serve --demo` is "
    "that of new processes.",
    "import_time": "Medians over new processes.",
    "batch": "Gradient boosting (scikit-learn's histogram regressor, 100 trees) on a pandas frame, with the "
    "default settings, as a mere function, so that neighbors are drawn; one thread per process. Rates are "
    'measured in worker processes from the first row to the last, as medians of three rounds. "Two apart" means '
    "two separate batches, each in one process, at the same time, which shows the limit of the machine. "
    "Seconds per row are processor time, as medians of 100 rows.",
    "batch_memory": "A whole batch, including checkpoints and the file, with 2 worker processes; d = 4, a "
    "fast model, at most 64 queries per row.",
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
            measured = f"Measured with version {_version_of(directory, name)}."
            parts.append(f"## {title}\n\n{NOTES[name]} {measured}\n\n{markdown_table(rows)}\n")
    page = directory / "README.md"
    page.write_text("\n".join(parts), encoding="utf-8")
    return page


def _version_of(directory: Path, name: str) -> str:
    """Return the version of the library that a section was measured with."""
    found = json.loads((directory / f"{name}.json").read_text(encoding="utf-8"))
    return str(found["made_on"]["anchorline"])


def markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table of rows, with the keys of the first one as columns."""
    if not rows:
        return "(not measured)"
    columns = list(rows[0])
    lines = [
        "| " + " | ".join(_heading(column) for column in columns) + " |",
        "|---" * len(columns) + "|",
    ]
    lines += ["| " + " | ".join(_cell(row.get(column)) for column in columns) + " |" for row in rows]
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
