# `make run` and `make test` need Python 3.11+, pip, make and a C compiler; everything else they fetch themselves.
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
# Set PYTHON to choose the interpreter; unset, scripts/install.py takes the first that is new enough and not slow.
export PYTHON
COMPILE = uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11
SOURCES := $(shell find src -name '*.py')
# Some machines forbid bytecode. Without it every process of the suite compiles the tests again.
export PYTHONDONTWRITEBYTECODE :=
ISOLATED = $(BIN)/python scripts/isolated.py
# Tests wait for processes more than they compute. A file stays on one worker, so what its tests share is made once.
WORKERS ?= 6
PYTEST = $(ISOLATED) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Third-party MCP servers the tests run as a user would.
export ANNABELLE_TEST_EXTERNAL_BIN := $(CURDIR)/.venv-external/bin

.PHONY: run test quick check bench crash train-selector lock format docs clean

## run: start Annabelle and chat; ARGS="status" runs any other command
run: $(VENV)/.compiled
	@$(BIN)/annabelle $(ARGS)

## test: every test, static checks included, without any network but loopback; ARGS="tests/core -k ids" narrows it
test: $(VENV)/.installed-test $(VENV)/.compiled
	@scripts/install programs
	@$(PYTEST) --durations=25 --durations-min=1 $(ARGS)

## quick: the tests that start no process, in at most 90 seconds on two idle cores; ARGS narrows it as for `test`
# They compute and do not wait, so more workers than cores would only collect the tests more often.
quick: WORKERS = auto
quick: $(VENV)/.installed-test $(VENV)/.compiled
	@HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not slow" $(ARGS)

## check: the same with each static check first and by name, for the impatient
check: $(VENV)/.installed-test $(VENV)/.compiled
	@scripts/install programs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python scripts/gen_docs.py --check
	$(PYTEST) $(ARGS) --deselect tests/project/test_static_checks.py

## bench: one benchmark; NAME=turn ARGS="--turns 200"
# A file named select.py would hide Python's own module of that name from everything beside it.
bench: FILE = $(NAME:select=selection)
bench: $(VENV)/.installed-test $(VENV)/.compiled
	@test -f "bench/$(FILE).py" || { echo "There is no benchmark '$(NAME)'. NAME is one of:" \
	  $$(grep -l '^def main' bench/*.py | xargs -n1 basename -s .py) >&2; exit 2; }
	@if [ "$(NAME)" = memory ]; then scripts/install bench || echo "It is measured without what it is compared with." >&2; fi
	@PYTHONPATH=tests $(BIN)/python bench/$(FILE).py $(ARGS)

## crash: kill every process at every named place and count what was lost or doubled
crash: $(VENV)/.installed-test $(VENV)/.compiled
	@PYTHONPATH=tests $(ISOLATED) $(BIN)/python -m crash.run $(ARGS)

## train-selector: train the learned selection of tools on the phrases, after these or the tools have changed
train-selector: $(VENV)/.installed-test $(VENV)/.compiled
	@PYTHONPATH=. $(BIN)/python -m training.selector

## format: rewrite the code in the one style; docs: write the generated references anew
format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format .
docs: $(VENV)/.installed-test
	$(BIN)/python scripts/gen_docs.py

## lock: resolve every dependency again, with hashes and without addresses
lock:
	$(COMPILE) pyproject.toml --all-extras --group weights -o requirements/run.txt
	$(COMPILE) pyproject.toml --all-extras --group weights --group dev -o requirements/test.txt
	$(COMPILE) requirements/external.in -o requirements/external.txt
	$(COMPILE) requirements/build.in -o requirements/build.txt
	$(COMPILE) requirements/uv.in -o requirements/uv.txt
	$(COMPILE) requirements/bench.in -o requirements/bench.txt

clean:
	rm -rf $(VENV) .venv-external .venv-bench .venv-uv .install.lock

$(VENV)/.installed-run: requirements/run.txt requirements/build.txt pyproject.toml
	@scripts/install run

$(VENV)/.installed-test: requirements/test.txt requirements/external.txt requirements/build.txt pyproject.toml
	@scripts/install test

# Bytecode made ahead: an import without it costs two to three times as much. What the servers list is made ahead, too.
$(VENV)/.compiled: $(VENV)/.installed-run $(SOURCES)
	@$(BIN)/python -m compileall -q src && $(BIN)/python -m annabelle.servers.kit.prepare && touch $@
