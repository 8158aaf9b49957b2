# Needs only make and Python 3.11 or newer. Every target that needs packages makes .venv itself.
# `make` or `make help` lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The first Python on the path that is new enough; override with `make PYTHON=/path/to/python …`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

DEMO_TRACE ?= sample_traces/flash-requested-math-ran.cuda-authored.json.gz
# One process a core; `make test PYTEST_ARGS=` runs the tests one after the other.
PYTEST_ARGS ?= -n auto

.PHONY: help demo test live browser lint format docs bench screenshots samples clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: $(VENV)/.core ## Ask a bundled trace which attention kernel ran, why, and what the fix changed
	@BIN=$(BIN) tools/demo.sh $(DEMO_TRACE)

test: lint live browser ## Everything that CI checks: lint, types, import contracts, docs, tests
	$(BIN)/python docs/generate.py --check
	TRACEVIEW_LIVE=$$(cat $(VENV)/.live) TRACEVIEW_BROWSER=$$(cat $(VENV)/.browser) \
		$(BIN)/python -m pytest $(PYTEST_ARGS)

# Where PyTorch and JAX cannot be installed, everything else is tested all the same; the next run tries again.
live: $(VENV)/.dev ## Install PyTorch and JAX for the tests that record with them
	@if [ ! -s $(VENV)/.live ] || [ pyproject.toml -nt $(VENV)/.live ]; then \
		if $(PIP) install --editable '.[dev,live]'; then echo 1 >$(VENV)/.live; else : >$(VENV)/.live; \
		echo "PyTorch and JAX could not be installed, pip said why above: the tests that record with them will be" \
			"skipped. PyPI's PyTorch for Linux is built for CUDA and large; to take the small CPU build:" \
			"PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make test" >&2; fi; fi

# Where they cannot be installed, the script says so, the tests in a browser are skipped, and the next run tries again.
browser: $(VENV)/.dev ## Install the dashboard and a Chromium for the tests in a browser
	@VENV=$(VENV) PIP="$(PIP)" tools/browser.sh

lint: $(VENV)/.dev ## Ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/static_checks.py

format: $(VENV)/.dev ## Format the code and fix what can be fixed safely
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.dev ## Write the generated pages anew
	$(BIN)/python docs/generate.py

bench: $(VENV)/.dev ## Measure reading speed and memory
	$(BIN)/python benchmarks/load.py

screenshots: browser ## Take the pictures of the dashboard in docs/images anew
	$(BIN)/python tools/screenshots.py

samples: $(VENV)-samples/.torch ## Record and author the sample traces anew (installs PyTorch and JAX apart)
	$(VENV)-samples/bin/python sample_traces/make.py --record

clean: ## Remove what the other targets made
	rm -rf $(VENV) $(VENV)-samples build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "traceview needs Python 3.11 or newer; none was found on the PATH." \
		"Name one: make PYTHON=/path/to/python3.12 …" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable '.[dev]'
	@touch $@ $(VENV)/.core

$(VENV)-samples/.torch: pyproject.toml
	$(PYTHON) -m venv $(VENV)-samples
	$(VENV)-samples/bin/python -m pip --disable-pip-version-check --quiet install --editable . 'torch==2.13.0' \
		'jax==0.10.2'
	@touch $@
