# Every target installs the Python packages that it needs in its own virtual environment. Needed beforehand: Python
# 3.11 or newer and make. The tests also use Chromium and Java 17, which are installed if possible (see CONTRIBUTING.md).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?= ../shared/datasets
N ?= 50000
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: help demo quick test first-try test-oldest test-newest test-wheel check docs bench bench-outside soak format clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "anchorline needs Python >= 3.11; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli,plot,studio]'
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,check,docs]'
	touch $@ $(VENV)/.demo $(VENV)/.docs

$(VENV)/.tools: $(VENV)/.dev  # a browser for the pages and Java for Spark, where they can be installed
	$(BIN)/python .ci/tools.py
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

docs: $(VENV)/.docs  ## the documentation site, to build/site/index.html
	$(BIN)/python -m sphinx -q -W --keep-going -E -b html -d build/doctrees docs build/site

demo: $(VENV)/.demo  ## train a model, explain one of its answers, write report.html
	$(BIN)/anchorline demo
	@echo "(that command is $(BIN)/anchorline serve --demo)"

# The fast tests: no browser, cluster, child processes, experiments, waiting, or thousands of generated problems.
SLOW := contract/test_site.py contract/test_documents.py contract/test_examples.py unit/batch unit/benchmarks \
	unit/verify unit/model/loaders unit/compat unit/rules/test_rule_interruption.py unit/rules/test_rule_bytes.py \
	unit/model/trees/test_refusals.py
QUICK := tests/contract tests/unit tests/paper/test_paper_iht.py $(SLOW:%=--ignore=tests/%)

quick: $(VENV)/.dev  ## lint, contract tests and fast unit tests, for every commit: about a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist worksteal $(QUICK)

test: $(VENV)/.tools  ## all tests, with coverage
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term

test-oldest: $(BIN)/python  ## the tests with the oldest declared version of every dependency
	$(BIN)/python .ci/oldest.py

test-newest: $(BIN)/python  ## the tests with the newest dependencies, on every Python of the machine
	$(BIN)/python .ci/newest.py

first-try: $(VENV)/.tools  ## the first call with every kind of model and table, and a notebook
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,first-try]'
	$(ONE_THREAD) ANCHORLINE_PAGE=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/first_try tests/browser/test_notebook.py

test-wheel: $(VENV)/.tools  ## the tests on the wheel, installed in another folder
	$(BIN)/python .ci/wheel.py

check: $(VENV)/.dev  ## lint, format, strict types, import directions, doctests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/contract
	$(BIN)/python -m pytest -q --doctest-modules --doctest-glob='*.md' src README.md docs -p no:cacheprovider

bench: $(VENV)/.dev  ## figures to benchmarks/results/*.json and a page
	$(ONE_THREAD) $(BIN)/python -m benchmarks --data $(DATA)

bench-outside: $(VENV)/.dev  ## benchmarks that others wrote, each in an environment of its own: make bench-outside QUICK=--quick
	$(ONE_THREAD) $(BIN)/python -m benchmarks.outside --data $(DATA) $(QUICK)

soak: $(VENV)/.dev  ## the generated-problem tests for longer: make soak N=100000
	$(ONE_THREAD) ANCHORLINE_SOAK=$(N) $(BIN)/python -m pytest -n 2 -m generated tests

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
