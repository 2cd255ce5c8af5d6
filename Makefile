# make run        the main job: posenc compare, about seven minutes
# make test       installs what the tests need, then lint, types and all tests, under 15 minutes on two cores
# make test-core  the tests of one wing, near to a change: core, laws, configs, check, lab, explorer or house
# make acceptance the long tests, in targets that can be resumed; make acceptance-lab runs one, --list of tools/acceptance.py names them
# make explore    posenc explore, in the browser
# make lab        posenc lab run quick, about six minutes
# make bench      the repository's benchmarks with every peer: an hour or more
# make gpu        measures on the GPU of this machine with the installed torch, no network; bench/RESULTS-gpu.md
# make wheels     sdist and wheels for Linux, macOS and Windows in dist, built on this machine and checked
# make release    the same for a committed, dated version; prints what to upload
# make docs       writes tables of pages and pictures; the explorer's pictures need chromium
# make translations  lists the Chinese of pages and sentences that is missing, outdated or unused
# make site       builds docs as a site, both languages, in build/site/html; needs npm
# make web        builds the explorer's page from its sources; needs npm
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
BUILT  := hatch_build.py $(shell find src/posenc -name '*.cpp' -o -name '*.h')
# Python compiles what is imported: a fifth of the files that are installed.
PIP    := $(BIN)/pip --disable-pip-version-check install --quiet --no-compile -c constraints.txt
# The tests start hundreds of processes: where no bytecode is kept each of them compiles torch and posenc anew, for seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run explore lab test types tests acceptance bench gpu wheels release docs translations site web web-check clean

run: $(VENV)/.run
	$(BIN)/posenc compare

explore: $(VENV)/.run
	$(BIN)/posenc explore

lab: $(VENV)/.run
	$(BIN)/posenc lab run quick

# The system's part comes first: without a browser or a compiler the tests would fail after minutes.
test:
	@PYTHON=$(PYTHON) tools/system.sh
	@$(MAKE) --no-print-directory -j2 $(VENV)/.dev web-check
	$(BIN)/ruff check src tests docs bench examples tools results
	$(BIN)/ruff format --check src tests docs bench examples tools results
	@$(MAKE) --no-print-directory -j2 types tests

# Types are checked on one processor, beside the first of the tests.
types: $(VENV)/.dev
	$(BIN)/mypy

tests: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not acceptance"

# The wings: every file of tests belongs to one of them.
WING_core     := tests/oracles tests/field_bugs $(addprefix tests/test_,$(addsuffix .py,banded casts checks cutoff documents \
                 eager every_entry exported_tables fast_paths_refuse few_pairs few_tokens few_vectors kept_solution large_options masked_blocks measures \
                 model_positions names nonsense one_query reference_blocks request_lengths same_rows sampling sliding typing))
WING_laws     := $(wildcard tests/test_laws*.py) tests/stress $(addprefix tests/test_,$(addsuffix .py,compile cuda export graphs \
                 kernels read triton_rotation))
WING_configs  := tests/families tests/transformers_models tests/real_models $(wildcard tests/test_inspect*.py) \
                 $(addprefix tests/test_,$(addsuffix .py,checkpoint convert diffusion_models spec_attend strict_readers))
WING_check    := tests/conformance $(addprefix tests/test_,$(addsuffix .py,check_encodings check_table conformance foreign_code mutations my_code recognise \
                 table_files))
WING_lab      := $(wildcard tests/test_lab_*.py tests/test_shipped_*.py) tests/test_compare.py tests/test_told_results.py
WING_explorer := tests/explorer tests/test_explore_command.py
WING_house    := $(addprefix tests/test_,$(addsuffix .py,architecture base_install bench choose choose_experts choose_models claims contributing docs from_the_notes \
                 examples gpu_steps help_examples list output_encodings page_measures pages plots readme recipes show site site_search translations walk wheels finding_words))

test-%: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m "not acceptance" $(or $(WING_$*),$(error there is no wing $*))

# Prints the files of a wing, for the test that every file of tests has one.
wing-%:
	@echo $(WING_$*)

acceptance: $(VENV)/.dev
	$(BIN)/python tools/acceptance.py

acceptance-%: $(VENV)/.dev
	$(BIN)/python tools/acceptance.py $*

bench: $(VENV)/.bench
	$(BIN)/python -m bench

# Whatever torch is installed, in the environment of the project where there is one; nothing is installed.
gpu:
	@if [ -x $(BIN)/python ]; then $(BIN)/python tools/gpu.py; else $(PYTHON) tools/gpu.py; fi

wheels: $(VENV)/.dev
	$(BIN)/python tools/wheels.py

release: $(VENV)/.dev
	$(BIN)/python tools/release.py

docs: $(VENV)/.dev
	$(BIN)/python docs/make.py
	$(BIN)/python results/claims/claims.py
	$(BIN)/python docs/screens.py

translations: $(VENV)/.run
	$(BIN)/python tools/translations.py
	$(BIN)/python tools/translated_messages.py

site: $(VENV)/.dev
	$(BIN)/python docs/site/build.py
	$(BIN)/python docs/site/check.py

web: web/node_modules/.package-lock.json
	npm --prefix web run --silent build

# Checks that page.js equals the build of web/src.
web-check: web/node_modules/.package-lock.json
	npm --prefix web run --silent check

web/node_modules/.package-lock.json: web/package-lock.json
	npm --prefix web ci --silent

$(VENV)/.python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "posenc needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)
	touch $@

# torch is installed first, by its exact version, so that an installed local or CPU build satisfies it.
$(VENV)/.torch: $(VENV)/.python constraints.txt
	$(PIP) torch==2.13.0
	touch $@

# Half of the bytes that the tests need, in four packages: a second processor unpacks them beside torch.
$(VENV)/.large: $(VENV)/.python constraints.txt
	$(PIP) --no-deps "triton; platform_system == 'Linux'" ziglang ray pyarrow
	touch $@

$(VENV)/.run: $(VENV)/.torch pyproject.toml $(BUILT)
	$(PIP) -e '.[all]'
	touch $@

$(VENV)/.dev: $(VENV)/.torch $(VENV)/.large pyproject.toml $(BUILT)
	$(PIP) -e '.[dev]'
	touch $@ $(VENV)/.run

$(VENV)/.bench: $(VENV)/.run
	$(PIP) -e '.[peers]'
	touch $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
