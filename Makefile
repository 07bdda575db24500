# Everything runs in .venv, which is made on first use and renewed when pyproject.toml changes.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed-test
INSTALLED_BENCH := $(VENV)/.installed-bench
INSTALLED_DOCS := $(VENV)/.installed-docs

.DEFAULT_GOAL := help
.PHONY: help install test lint types unit fuzz format demo bench docs clean

help:  ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

install: $(INSTALLED)  ## Set up .venv with attop (editable) and the tools of the tests

test: lint types unit  ## Run every check: ruff, mypy, pytest

lint: $(INSTALLED)  ## Check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(INSTALLED)  ## Check types
	$(BIN)/mypy

unit: $(INSTALLED)  ## Run the tests
	$(BIN)/pytest

N ?= 10000
SEED ?= 0
JOBS ?= 2
fuzz: $(INSTALLED)  ## Judge fits of random and hostile problems; N=10000, SEED=0, JOBS=2
	$(BIN)/python -m tests.fuzz --cases $(N) --seed $(SEED) --jobs $(JOBS)

format: $(INSTALLED)  ## Format the code and apply safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

demo: $(INSTALLED)  ## Compare all formulations on bundled data
	$(BIN)/attop demo

# QUICK=1: every ratio at small size, in five minutes; RESUME=1: go on after an interruption.
BENCH_OPTIONS := --output out/bench $(if $(RESUME),--resume)
bench: $(INSTALLED_BENCH)  ## Run the benchmarks on the data in $ATTOP_DATA; QUICK=1, RESUME=1
	@test -n "$$ATTOP_DATA" || { echo "Give the folder of the data sets in ATTOP_DATA."; exit 2; }
ifdef QUICK
	$(BIN)/python benchmarks/quick.py
else
	@failed=""; for script in $(wildcard benchmarks/bench_*.py); do \
	  echo "== $$script"; $(BIN)/python "$$script" $(BENCH_OPTIONS) || \
	    { test $$? -eq 130 && exit 130; failed="$$failed $$script"; }; \
	done; \
	$(BIN)/python benchmarks/report.py --output out/bench; \
	test -z "$$failed" || { echo "Cases failed in:$$failed"; exit 1; }
endif

docs: $(INSTALLED_DOCS)  ## Build the documentation, docs/_build/html; a warning is an error
	$(BIN)/sphinx-build --fail-on-warning --keep-going -b html docs docs/_build/html

clean:  ## Remove results and caches (not .venv)
	rm -rf docs/_build docs/auto_examples docs/generated out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -path ./$(VENV) -prune -o -name __pycache__ -prune -exec rm -rf {} +

# pip installs dependency groups from version 25.1 on; that of a fresh venv may be older.
$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group test
	@touch $@

$(INSTALLED_DOCS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

$(INSTALLED_BENCH): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --group bench
	@touch $@
