# Two commands for a newcomer: `make demo` and `make test`. Continuous integration: .ci/run.
# Needs Python 3.11 or newer with pip and venv, and GNU make; everything else goes into .venv.

PYTHON ?= python3
PYTEST_WORKERS ?= 2
PYTEST_ARGS ?=
FUZZ_SECONDS ?= 3600
MUTANTS_JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
# Written last, so that an interrupted set-up is taken up again.
STAMP := $(VENV)/.sealpoint-setup
DEMO_STAMP := $(VENV)/.sealpoint-demo
# The parts that the demo uses.
DEMO_PARTS := sealpoint sealpoint-langgraph sealpoint-console
# Scanners of model files beside which ours is measured: in an environment of their own.
SCANNERS := $(VENV)/scanners/.sealpoint-setup
# Errors only: pip's warnings are about the machine's configuration, not about us.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-input
RESOLVE := $(BIN)/uv pip compile --no-config --universal --generate-hashes --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate --upgrade -q
SPHINX := $(BIN)/sphinx-build -n -W --keep-going -q
# Each process of the tests would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE
CODE := packages tests conftest.py benchmarks fuzz mutants examples docs
PARTS := $(notdir $(wildcard packages/*))
# One part, as in: make test PART=langgraph; the core is PART=core.
PART ?=
TESTS := $(if $(PART),packages/$(if $(filter core sealpoint,$(PART)),sealpoint,sealpoint-$(PART))/tests)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo demo-agent-framework format lint types test check docs screenshots bench \
	fuzz mutants soak vectors coverage requirements clean

help: ## Say what each target does.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-21s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with the package and everything tests, checks and benchmarks need.

$(DEMO_STAMP): requirements/demo.txt $(patsubst %,packages/%/pyproject.toml,$(DEMO_PARTS))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Sealpoint needs Python 3.11 or newer: make demo PYTHON=python3.11" >&2; exit 1; }
	@echo "setting up $(VENV) for the demo (about a minute the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --require-hashes -r requirements/demo.txt
	$(PIP_INSTALL) --no-build-isolation --no-deps $(patsubst %,-e packages/%,$(DEMO_PARTS))
	@touch $@

$(STAMP): pyproject.toml $(wildcard packages/*/pyproject.toml) requirements/dev.txt requirements/older.txt requirements/torch.txt \
		requirements/trainers.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Sealpoint needs Python 3.11 or newer: make setup PYTHON=python3.11" >&2; exit 1; }
	@echo "setting up $(VENV) (a few minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	$(PIP_INSTALL) -r requirements/torch.txt
	$(PIP_INSTALL) --require-hashes --no-deps -r requirements/trainers.txt
	$(PIP_INSTALL) --require-hashes --no-deps --upgrade --target $(VENV)/older \
		-r requirements/older.txt
	$(PIP_INSTALL) --no-build-isolation --no-deps $(patsubst %,-e packages/%,$(PARTS))
	$(BIN)/python -m pip --disable-pip-version-check check
	@touch $@

# Once everything is set up, the demo needs nothing more.
demo: $(if $(wildcard $(STAMP)),$(STAMP),$(DEMO_STAMP)) ## Run an agent that moves money, attack its database, and see what is refused.
	@$(BIN)/python examples/demo

demo-agent-framework: setup ## The same with a workflow of Microsoft Agent Framework.
	@$(BIN)/python examples/demo/workflows.py

format: setup ## Rewrite the code in the house format.
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

lint: setup ## Format, lint, layers, spelling, security patterns, project metadata.
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell
	$(BIN)/bandit -c pyproject.toml -r $(wildcard packages/*/src) -q
	$(BIN)/validate-pyproject pyproject.toml packages/*/pyproject.toml

types: setup ## Check types, strictly.
	$(BIN)/mypy

test: setup ## Run all tests except the long ones, or those of one part: make test PART=langgraph
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal $(TESTS) $(PYTEST_ARGS)

check: lint types docs ## Everything that can be wrong without running the code.

docs: setup ## Build the documentation; warnings are errors.
	$(SPHINX) -b html docs build/docs

screenshots: setup ## Make the pictures of docs/console anew; needs a Chromium.
	$(BIN)/python -m pytest -q packages/sealpoint-console/tests/console/test_looks.py
	cp build/console/light/overview.png build/console/light/request.png docs/console/
	cp build/console/light/thread-forked.png docs/console/thread.png

bench: setup $(SCANNERS) ## Measure side by side with the peers and print ratios.
	$(BIN)/python -m benchmarks

$(SCANNERS): $(STAMP) requirements/scanners.txt
	$(BIN)/python -m venv $(VENV)/scanners
	$(VENV)/scanners/bin/python -m pip install --quiet --quiet --disable-pip-version-check \
		--no-input --require-hashes -r requirements/scanners.txt
	@touch $@

fuzz: setup ## Fuzz the decoder, the readers of model files and of pickles, for FUZZ_SECONDS in all.
	$(BIN)/python -m fuzz --target decode --seconds $$(( $(FUZZ_SECONDS) / 3 ))
	$(BIN)/python -m fuzz --target models --seconds $$(( $(FUZZ_SECONDS) / 3 ))
	$(BIN)/python -m fuzz --target pickles --seconds $$(( $(FUZZ_SECONDS) / 3 ))

mutants: setup ## Plant faults in the gate and the ledger; the tests must notice each.
	$(BIN)/python -m mutants --jobs $(MUTANTS_JOBS)

soak: setup ## Run the long tests, and those that draw examples with all of theirs.
	SEALPOINT_SOAK=1 $(BIN)/python -m pytest -m "soak or hypothesis" --timeout 0 $(PYTEST_ARGS)

vectors: setup ## Regenerate the frozen vectors; there must be no diff.
	$(BIN)/python -m tests.vectors.generate

coverage: setup ## Run the tests in one process and say which branches they miss.
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(PYTEST_ARGS)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

requirements: setup ## Resolve dev.in, demo.in, trainers.in and scanners.in of requirements/ anew.
	@mkdir -p build
	echo '# Made by `make requirements` from dev.in: do not edit.' > build/dev.txt
	$(RESOLVE) requirements/dev.in >> build/dev.txt
	echo '# Made by `make requirements` from demo.in: do not edit.' > build/demo.txt
	$(RESOLVE) -c build/dev.txt requirements/demo.in >> build/demo.txt
	echo '# Made by `make requirements` from trainers.in: do not edit.' > build/trainers.txt
	$(RESOLVE) --no-deps requirements/trainers.in >> build/trainers.txt
	echo '# Made by `make requirements` from scanners.in: do not edit.' > build/scanners.txt
	$(RESOLVE) requirements/scanners.in >> build/scanners.txt
	mv build/dev.txt build/demo.txt build/trainers.txt build/scanners.txt requirements/

clean: ## Remove everything that make made.
	rm -rf $(VENV) build dist .coverage .coverage.* htmlcov .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache
	find packages tests benchmarks fuzz mutants examples docs -name __pycache__ -type d -prune \
		-exec rm -rf {} + 2>/dev/null || true
