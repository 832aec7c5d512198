# Every target sets up what it needs, in its own virtual environment; only Python >= 3.11 and make are assumed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?= ../shared/datasets
N ?= 50000

.PHONY: demo test check bench soak format clean

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "anchorline needs Python >= 3.11; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,check]'
	touch $@ $(VENV)/.core

demo: $(VENV)/.core  ## train a model, explain some of its predictions
	$(BIN)/python examples/demo.py

test: $(VENV)/.dev  ## everything, from nothing, to green
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

check: $(VENV)/.dev  ## lint, format, strict types, import directions, doctests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/contract
	$(BIN)/python -m pytest -q --doctest-modules --doctest-glob='*.md' src README.md docs -p no:cacheprovider

bench: $(VENV)/.dev  ## figures to benchmarks/results/*.json and a page
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m anchorline.bench --data $(DATA)

soak: $(VENV)/.dev  ## the generated-problem tests for longer: make soak N=100000
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 ANCHORLINE_SOAK=$(N) $(BIN)/python -m pytest -n 2 -m generated tests

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
