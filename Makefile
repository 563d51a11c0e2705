PYTHON ?= python3
VENV := .venv
CONSTRAINTS := constraints.txt
EXTRA := dev
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-lowest test-neighbours pytest pytest-neighbours docs html lint format benchmark wheel build-wheel clean

help: ## Show this list
	@echo "Usage: make TARGET [PYTHON=python3]"
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)$$/  \1|\2/p' $(MAKEFILE_LIST) | \
		awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

demo: $(STAMP) ## Run the demonstration
	@$(BIN)/noisyica demo

# Tests spend their time compiling: without its fusion emitters XLA takes less (test-all runs with them).
test: lint pytest ## Check formatting, lint, types and run the tests

pytest: $(STAMP)
	XLA_FLAGS=--xla_cpu_use_fusion_emitters=false $(BIN)/pytest -n 2 --dist loadfile

test-all: lint ## The same with the slowest tests, too
	$(BIN)/pytest -n 2 --dist loadfile -m ''

test-lowest: ## Run the tests with the lowest versions of all dependencies (Python 3.11)
	@$(MAKE) --no-print-directory VENV=.venv-lowest CONSTRAINTS=constraints-lowest.txt pytest

test-neighbours: ## Run the tests with MNE, nilearn and AnnData, in an environment of their own
	@$(MAKE) --no-print-directory VENV=.venv-neighbours EXTRA=neighbours \
		CONSTRAINTS=.constraints-neighbours.txt pytest-neighbours

# An AnnData that can read rows of sparse matrices from files by SciPy 1.17 needs a pandas before 3.
.constraints-neighbours.txt: constraints.txt
	@sed -e 's/^anndata==.*/anndata==0.12.19/' -e 's/^pandas==.*/pandas==2.3.3/' constraints.txt >$@

pytest-neighbours: $(STAMP)
	XLA_FLAGS=--xla_cpu_use_fusion_emitters=false $(BIN)/pytest -n 2 --dist loadfile tests/neighbours

lint: $(STAMP) ## Check formatting, lint, the layers and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

format: $(STAMP) ## Format the code and apply the safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: ## Run the examples and build the documentation in docs/_build/html, in an environment of its own
	@$(MAKE) --no-print-directory VENV=.venv-docs EXTRA=docs html

html: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

benchmark: $(STAMP) ## Run the speed benchmark
	$(BIN)/python benchmarks/speed.py

wheel: ## Build sdist and wheel in dist/, check them, and try the wheel in an empty environment
	@$(MAKE) --no-print-directory VENV=.venv-release EXTRA=release build-wheel

# The wheel is made from the sdist; it has to hold the package's files, all of them, and nothing else.
build-wheel: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	@set -e; folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; unset PYTHONPATH; set -x; \
	git -C src ls-files noisyica | LC_ALL=C sort >"$$folder/tracked"; \
	$(BIN)/python -m zipfile -l dist/*.whl | sed 1d | cut -d' ' -f1 | grep -v '\.dist-info/' | \
		LC_ALL=C sort | diff "$$folder/tracked" -; \
	$(PYTHON) -m venv "$$folder/empty"; \
	"$$folder/empty/bin/python" -m pip install -q --disable-pip-version-check dist/*.whl -c $(CONSTRAINTS); \
	cd "$$folder"; empty/bin/noisyica demo; empty/bin/noisyica info

clean: ## Remove caches, build products and demo output (keeps environments)
	rm -rf build dist docs/_build docs/gallery docs/api/generated noisyica-demo .pytest_cache .mypy_cache .ruff_cache
	find . -name '.venv*' -prune -o -name .git -prune -o \
		\( -name __pycache__ -o -name '*.egg-info' \) -type d -prune -exec rm -rf {} +

# The environment is installed once, and again only when its definition changes.
$(STAMP): pyproject.toml $(CONSTRAINTS)
	@if [ -x $(BIN)/python ]; then python=$(BIN)/python; else python="$(PYTHON)"; fi; \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: noisyica needs Python 3.11 or newer, and '$$python' is not:" \
			"$$($$python --version 2>&1)" >&2; \
		echo "Try 'make PYTHON=python3.12 ...'; remove $(VENV) first if it exists." >&2; \
		exit 1; }
	@echo "Installing noisyica into $(VENV) (this can take a minute) ..."
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[$(EXTRA)]' -c $(CONSTRAINTS)
	@touch $@
