# Everything a person types here works on a machine with Python 3.11+, pip, make and a C compiler; uv is fetched if missing.
SHELL := /bin/bash
VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed-run
TEST_STAMP := $(VENV)/.installed-test
COMPILE = uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11

# A uv on PATH is used as it is; without one, pip puts a private one under .venv/uv.
UV = $(shell command -v uv 2>/dev/null || echo $(CURDIR)/$(VENV)/uv/bin/uv)

.PHONY: run test check bench crash lock format clean

run: $(RUN_STAMP)
	@$(BIN)/annabelle $(ARGS)

$(RUN_STAMP): requirements/run.txt pyproject.toml
	@scripts/install run

$(TEST_STAMP): requirements/test.txt requirements/external.txt pyproject.toml
	@scripts/install test

lock:
	$(COMPILE) pyproject.toml --extra embedded --group weights -o requirements/run.txt
	$(COMPILE) pyproject.toml --extra embedded --group weights --group dev -o requirements/test.txt
	$(COMPILE) requirements/external.in -o requirements/external.txt
