# Each target works alone on a fresh clone: it makes the environment it needs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench clean

demo: .venv/runtime
	$(BIN)/python examples/demo.py demo-output

test: lint
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: .venv/dev
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/mypy

bench: .venv/dev
	$(BIN)/python benchmarks/engine.py --frames 1000 --json

clean:
	rm -rf .venv demo-output

.venv/runtime: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/dev: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ .venv/runtime
