# Python 3.11 or newer and make are all that is needed. Another interpreter: make test PYTHON=python3.13
PYTHON = python3
VENV = .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.complete

.PHONY: help venv crds docs format lint unit integration test demo bench clean

help: ## this list
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /  make \1	/' | expand -t 20

venv: $(STAMP) ## .venv with everything that development needs, pinned by requirements.txt

# The stamp comes last, so that an interrupted set-up is done again.
$(STAMP): pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, and $(PYTHON) is %d.%d; name another: make PYTHON=python3.13" % sys.version_info[:2])'
	@echo "Setting up $(VENV): this takes about a minute, once"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.txt --upgrade pip
	@$(BIN)/python -m pip install --quiet --constraint requirements.txt --group dev --editable '.[all]'
	@touch $(STAMP)

crds: $(STAMP) ## the CRD manifests, generated from the models
	$(BIN)/python -m mcptasks_crds.manifest

docs: $(STAMP) ## the tables in the docs that follow from the code
	$(BIN)/python docs/generate.py

format: $(STAMP) ## write the code as ruff wants it
	$(BIN)/ruff check --fix --quiet
	$(BIN)/ruff format

lint: $(STAMP) ## style, types, import layers, generated manifests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m mcptasks_crds.manifest --check
	$(BIN)/python docs/generate.py --check

unit: $(STAMP) ## the unit tests
	$(BIN)/pytest tests/unit

integration: $(STAMP) ## the product as a whole, against the embedded control plane
	$(BIN)/pytest tests/integration

test: lint ## everything that must be green: lint, then all tests with their branch coverage
	$(BIN)/pytest -n 2 --cov

demo: $(STAMP) ## the whole story on real input, in about a minute
	@$(BIN)/python -m examples.demo

bench: $(STAMP) ## what a task costs, as ratios to a baseline in the same run
	@$(BIN)/python -m tests.bench.spine

clean: ## remove the environment and what tools left behind
	rm -rf $(VENV) .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
