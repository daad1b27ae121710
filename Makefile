# Needs Python 3.11+ and make; everything else goes into .venv, at the versions of constraints.txt.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
RELEASE := .venvs/release

.DEFAULT_GOAL := help
.PHONY: help demo serve test check docs notebooks dist release-check lock rivals tables mutants fuzz load matrix screenshots format clean

help:  ## show these targets
	@sed -n 's/^\([a-z-]*\): .*## /  make \1	/p' $(MAKEFILE_LIST) | expand -t 22

demo: $(VENV)/.hf  ## explain a film review with the bundled classifier, also as slalom-demo.html
	@$(BIN)/slalom explain --file examples/review.txt --html slalom-demo.html
	@echo && echo "The same as a page: open slalom-demo.html in a browser."

serve: $(VENV)/.web  ## the live page in the browser, with the bundled classifier
	@$(BIN)/slalom serve

test: $(VENV)/.dev  ## run every test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 4 --dist loadfile  # on two cores too: many tests wait

check: $(VENV)/.dev  ## lint, format, types, architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

docs: $(VENV)/.dev  ## build the documentation site into docs/_build; a warning is an error
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -E -W --keep-going docs docs/_build
	@echo "Open docs/_build/index.html in a browser."

notebooks: $(VENV)/.dev  ## run the notebooks of examples/ as they are
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/test_docs.py -k notebooks

dist: $(VENV)/.dev  ## build a wheel and an sdist into dist/
	$(BIN)/python -m build --no-isolation

release-check: $(RELEASE)/.made  ## all that a release needs, in environments of its own: built, checked, installed, tried
	$(RELEASE)/bin/python -m release

rivals: .venvs/rivals/.made  ## the newest peers in an environment of their own, for benchmarks.rivals

lock: $(RELEASE)/.made  ## write lock.txt: constraints.txt with the hashes of every file
	$(RELEASE)/bin/python -m release lock

tables: $(VENV)/.dev  ## the paper's tables and figures at a small scale, into results/
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments all --scale small --jobs 2

mutants: $(VENV)/.dev  ## put deliberate faults into copies of the package: do the tests notice? (takes hours)
	$(BIN)/python -m benchmarks.mutants --random 160

MINUTES ?= 60
fuzz: $(VENV)/.dev $(VENV)/schemathesis/bin/st  ## random classifiers, texts, files and requests for an hour (MINUTES=60)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.fuzz --minutes $$(( $(MINUTES) / 2 ))
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.broken_files --files 1000000000 --minutes $$(( $(MINUTES) / 4 ))
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.load --minutes 1 --schemathesis $(VENV)/schemathesis/bin/st

load: $(VENV)/.dev  ## five minutes of clients that ask, leave and misbehave: latencies, errors, memory
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.load --minutes 5

matrix: $(VENV)/.dev  ## the suite on every Python from 3.11, with the oldest and the newest versions
	$(BIN)/python -m benchmarks.matrix

screenshots: $(VENV)/.dev  ## pictures of the page and the file, light and dark, wide and narrow (needs Chromium)
	$(BIN)/python -m benchmarks.screenshots --out screenshots

format: $(VENV)/.dev  ## rewrite the sources in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove what these targets made
	rm -rf $(VENV) .venvs dist screenshots docs/_build docs/generated slalom-demo.html

$(VENV)/.hf:  WHAT := '.[hf]'
$(VENV)/.web: WHAT := '.[hf,web]'
$(VENV)/.dev: WHAT := '.[all]' --group dev
$(VENV)/.hf $(VENV)/.web $(VENV)/.dev: pyproject.toml hatch_build.py constraints.txt
	@$(OLD_ENOUGH)
	@echo "Installing $(WHAT) into $(VENV), this once; it takes a few minutes ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -qq -c constraints.txt pip hatchling editables setuptools
	@$(PIP) install -qq -c constraints.txt --no-build-isolation -e $(WHAT)
	@touch $@

$(RELEASE)/.made: pyproject.toml constraints.txt
	@$(OLD_ENOUGH)
	@test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	@$(RELEASE)/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt pip
	@$(RELEASE)/bin/python -m pip install -qq -c constraints.txt --group release
	@touch $@

RIVALS_PYTHON ?= python3.13
.venvs/rivals/.made: benchmarks/rivals.txt
	@$(RIVALS_PYTHON) -m venv .venvs/rivals || \
	  { echo "the newest peers need Python 3.12 or newer: make rivals RIVALS_PYTHON=..." >&2; exit 1; }
	@.venvs/rivals/bin/python -m pip install -qq --disable-pip-version-check -r benchmarks/rivals.txt
	@touch $@

OLD_ENOUGH = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "slalom needs Python 3.11 or newer; name one: make PYTHON=python3.12" >&2; exit 1; }

$(VENV)/schemathesis/bin/st: | $(VENV)/.dev  # in an environment of its own: it brings thirty packages
	@$(PYTHON) -m venv $(VENV)/schemathesis
	@$(VENV)/schemathesis/bin/python -m pip install -qq schemathesis==4.32.5

AXE := axe-core@4.14.0
$(VENV)/axe/package/axe.min.js: | $(VENV)/.dev  # what checks that everybody can use the pages; needs npm
	@mkdir -p $(VENV)/axe && cd $(VENV)/axe && npm pack --silent $(AXE) >/dev/null
	@tar -xzf $(VENV)/axe/axe-core-*.tgz -C $(VENV)/axe package/axe.min.js && rm $(VENV)/axe/axe-core-*.tgz
