# Each target works alone on a fresh clone: it makes the environment it needs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench clean

demo: .venv/runtime
	$(BIN)/smalti experiment raster --frames 120 --queries 10 --seeds 1,2,3 --out demo-output/raster
	@echo "the curves are in $(CURDIR)/demo-output/raster/rmsd.png"

test: lint
	$(BIN)/python -m pytest -n auto

lint: .venv/dev
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
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
