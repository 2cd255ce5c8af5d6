# make run        the main job: posenc compare, about five minutes
# make test       lint, types and all tests, under 15 minutes on two cores
# make acceptance what takes longer
# make lab        posenc lab run quick, about six minutes
# make bench      posenc bench with every peer: half an hour and more
# make docs       the generated pages and their pictures
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
BUILT  := hatch_build.py $(wildcard src/posenc/kernels/*.cpp src/posenc/kernels/*.h)
PIP    := $(BIN)/pip --disable-pip-version-check install --quiet -c constraints.txt

.PHONY: run lab test acceptance bench docs clean

run: $(VENV)/.run
	$(BIN)/posenc compare

lab: $(VENV)/.run
	$(BIN)/posenc lab run quick

test: $(VENV)/.dev
	$(BIN)/ruff check src tests docs bench examples
	$(BIN)/ruff format --check src tests docs bench examples
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not acceptance"

acceptance: $(VENV)/.dev
	$(BIN)/pytest -m acceptance

bench: $(VENV)/.bench
	$(BIN)/posenc bench

docs: $(VENV)/.dev
	$(BIN)/python docs/make.py

# torch first and by its exact version, so that a local or CPU build is taken where there is one.
$(VENV)/.torch: constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "posenc needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	touch $@

$(VENV)/.run: $(VENV)/.torch pyproject.toml $(BUILT)
	$(PIP) -e '.[all]'
	touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml $(BUILT)
	$(PIP) -e '.[dev]'
	touch $@ $(VENV)/.run

$(VENV)/.bench: $(VENV)/.run
	$(PIP) -e '.[peers]'
	touch $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
