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
# Small set-ups, each with its file in requirements/, and the parts that are installed there.
SMALL := demo core agent-framework console langgraph models openclaw postgres
SMALL_demo := sealpoint sealpoint-langgraph sealpoint-console
SMALL_core := sealpoint sealpoint-testing
SMALL_agent-framework := $(SMALL_core) sealpoint-models sealpoint-agent-framework
SMALL_console := $(SMALL_core) sealpoint-console
SMALL_langgraph := $(SMALL_core) sealpoint-langgraph
SMALL_models := $(SMALL_core) sealpoint-models
SMALL_openclaw := $(SMALL_core) sealpoint-openclaw
SMALL_postgres := $(SMALL_core) sealpoint-postgres
# What a target depends on: its small set-up, or the full one where that has been made.
set-up-for = $(if $(wildcard $(STAMP)),$(STAMP),$(VENV)/.sealpoint-$(1))
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
# The tests of sealpoint-testing need nothing that those of the core do not.
PART_SETUP := $(if $(filter core sealpoint testing,$(PART)),core,$(PART))
TESTS := $(if $(PART),packages/$(if $(filter core sealpoint,$(PART)),sealpoint,sealpoint-$(PART))/tests)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo demo-agent-framework demo-openclaw demo-openclaw-live format lint types test \
	check docs screenshots bench fuzz mutants soak vectors coverage requirements clean

help: ## Say what each target does.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-21s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with the package and everything tests, checks and benchmarks need.

# Fails where Python is too old, and makes .venv where there is none.
define MAKE_VENV
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Sealpoint needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.11" >&2; exit 1; }
	@echo "setting up $(VENV) $(1)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
endef

define INSTALL_TORCH
	$(PIP_INSTALL) -r requirements/torch.txt
	$(PIP_INSTALL) --require-hashes --no-deps -r requirements/trainers.txt
endef

$(SMALL:%=$(VENV)/.sealpoint-%): $(VENV)/.sealpoint-%: requirements/%.txt $(wildcard packages/*/pyproject.toml)
	$(call MAKE_VENV,for $* (a minute or more the first time))
	$(PIP_INSTALL) --require-hashes -r requirements/$*.txt
	$(if $(filter models,$*),$(INSTALL_TORCH))
	$(PIP_INSTALL) --no-build-isolation --no-deps $(patsubst %,-e packages/%,$(SMALL_$*))
	@touch $@

$(VENV)/.sealpoint-models: requirements/torch.txt requirements/trainers.txt

$(STAMP): pyproject.toml $(wildcard packages/*/pyproject.toml) requirements/dev.txt requirements/older.txt requirements/torch.txt \
		requirements/trainers.txt
	$(call MAKE_VENV,(a few minutes the first time))
	$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	$(INSTALL_TORCH)
	$(PIP_INSTALL) --require-hashes --no-deps --upgrade --target $(VENV)/older \
		-r requirements/older.txt
	$(PIP_INSTALL) --no-build-isolation --no-deps $(patsubst %,-e packages/%,$(PARTS))
	$(BIN)/python -m pip --disable-pip-version-check check
	@touch $@

demo: $(call set-up-for,demo) ## Run an agent that moves money, attack its database, and see what is refused.
	@$(BIN)/python examples/demo

demo-agent-framework: setup ## The same with a workflow of Microsoft Agent Framework.
	@$(BIN)/python examples/demo/workflows.py

demo-openclaw: $(call set-up-for,openclaw) ## Edit the state of an OpenClaw gateway, and see it refused before the start.
	@$(BIN)/python examples/demo/openclaw.py

demo-openclaw-live: $(call set-up-for,openclaw) ## The same with a real gateway, which npm installs in SEALPOINT_OPENCLAW.
	@$(BIN)/python examples/demo/openclaw_live.py

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

test: $(if $(PART),$(call set-up-for,$(PART_SETUP)),setup) ## Run all tests except the long ones, or those of one part: make test PART=langgraph
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

requirements: setup ## Resolve each .in file of requirements/ anew.
	@mkdir -p build
	echo '# Made by `make requirements` from dev.in: do not edit.' > build/dev.txt
	$(RESOLVE) requirements/dev.in >> build/dev.txt
	set -e; for name in $(SMALL); do \
		echo "# Made by \`make requirements\` from $$name.in: do not edit." > build/$$name.txt; \
		$(RESOLVE) -c build/dev.txt requirements/$$name.in >> build/$$name.txt; \
	done
	echo '# Made by `make requirements` from trainers.in: do not edit.' > build/trainers.txt
	$(RESOLVE) --no-deps requirements/trainers.in >> build/trainers.txt
	echo '# Made by `make requirements` from scanners.in: do not edit.' > build/scanners.txt
	$(RESOLVE) requirements/scanners.in >> build/scanners.txt
	mv $(patsubst %,build/%.txt,dev $(SMALL) trainers scanners) requirements/

clean: ## Remove everything that make made.
	rm -rf $(VENV) build dist .coverage .coverage.* htmlcov .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache
	find packages tests benchmarks fuzz mutants examples docs -name __pycache__ -type d -prune \
		-exec rm -rf {} + 2>/dev/null || true
