# Each target sets up .venv from the locked versions first, and only when the lock has changed.
# Another Python than the one found: make PYTHON=/path/to/python3.12 test

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help demo census washington extras spark check test test-processors test-browser lint kernels kernels-of-tables format docs figures studies comparison analysts faults benchmark lock clean

export PYTHON CONGENIAL_BROWSER
# Without bytecode on disk each of some hundred processes of the tests compiles the package again.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
TAXI := examples/taxi
# Test processes that begin at once would each compile most of them.
COMPILE = from congenial.cli import compiled as c; \
	[c.compile_kernels(m) for m in '$(1)'.split() if c.is_missing(m)]
# Build the rows of an example, release them by its plan, and check the release.
EXAMPLE = requirements/environment.sh run && \
	$(BIN)/python examples/$(1)/$(2).py && \
	$(BIN)/congenial release examples/$(1)/plan.toml --out examples/$(1)/release --overwrite && \
	$(BIN)/congenial verify examples/$(1)/release
PLANS := conditioning imaging posterior
# Two test processes share two cores; linear algebra of small matrices waits for its threads.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --quiet
# One with fused products and vectors of four, one with neither; the first is of x86 alone.
PROCESSORS := $(if $(filter x86_64,$(shell uname -m)),haswell) generic
# Loops of numpy for newer x86 processors.
NEWEST := X86_V4 AVX512_ICL AVX512_SPR

help:  ## List the targets.
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' Makefile | expand -t 20

demo:  ## Make a private release of 2.98 million taxi trips, and check it.
	@requirements/environment.sh run
	@if [ ! -f $(TAXI)/trips.parquet ]; then \
		echo "Building $(TAXI)/trips.parquet, one row a trip, from the published counts."; \
		$(BIN)/python $(TAXI)/build_trips.py; \
	fi
	@echo "Releasing the trips by borough and zone: congenial release $(TAXI)/plan.toml --out $(TAXI)/release"
	@$(BIN)/congenial release $(TAXI)/plan.toml --out $(TAXI)/release --overwrite
	@echo "Checking the release: congenial verify $(TAXI)/release"
	@$(BIN)/congenial verify $(TAXI)/release
	@echo "The first rows of $(TAXI)/release/release.csv:"
	@head -n 6 $(TAXI)/release/release.csv

census:  ## Release sex by 23 ages for all counties of the United States, and check it.
	@$(call EXAMPLE,census,build_counties)

washington:  ## Release people and homes of all census blocks of Washington (6.6 million counts, which takes long), and check it.
	@$(call EXAMPLE,washington,build_blocks)

extras:  ## Add to .venv what figures, models, the examples and the tests need.
	@requirements/environment.sh dev

spark:  ## Add PySpark to .venv, 450 MB; then make test also counts rows in Spark, if Java is there.
	@requirements/environment.sh spark

check: extras  ## Check the style and the types, and run all but the slow tests.
	@$(MAKE) --jobs 2 lint kernels kernels-of-tables
	@$(PYTEST) --numprocesses 2 --dist loadfile -m "not slow"

test: extras  ## Check the style and the types, then run every test.
	@$(MAKE) --jobs 2 lint kernels kernels-of-tables
	@echo "Running the tests."
	@$(PYTEST) --numprocesses 2 --dist loadfile --ignore-glob='tests/laws/test_spark*.py'
	@echo "Running the tests of Spark, each file with a Java of its own, if PySpark and Java are there."
	@for name in spark spark_draws spark_faults; do $(PYTEST) tests/laws/test_$$name.py || [ $$? -eq 5 ] || exit 1; done

test-processors:  ## Run the tests of kernels as compiled for other processors, and uncompiled.
	@requirements/environment.sh dev
	@for name in $(PROCESSORS); do \
		echo "Running the tests of kernels as compiled for a processor called $$name."; \
		rm -rf out/processors/$$name; \
		( export NUMBA_CPU_NAME=$$name NUMBA_CPU_FEATURES=; \
		case $$name in \
		haswell) export OPENBLAS_CORETYPE=Haswell NPY_DISABLE_CPU_FEATURES="$(NEWEST)"; \
			export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F;; \
		*) export OPENBLAS_CORETYPE=Nehalem NPY_DISABLE_CPU_FEATURES="X86_V3 $(NEWEST)";; \
		esac; \
		export NUMBA_CACHE_DIR=$(CURDIR)/out/processors/$$name; \
		$(BIN)/python -c "$(call COMPILE,$(PLANS) tables)"; \
		$(PYTEST) --numprocesses 2 --dist loadfile -m kernels ); \
	done
	@echo "Running those that are quick enough without compiling."
	@NUMBA_DISABLE_JIT=1 $(PYTEST) -m uncompiled

test-browser:  ## Try the page about a release, and the site if built, in headless Chromium.
	@requirements/environment.sh dev
	@browser=$$(requirements/browser.sh); \
	echo "Trying the page in $$browser; pictures go to out/report."; \
	CONGENIAL_BROWSER=$$browser CONGENIAL_PICTURES=out/report \
		$(PYTEST) tests/docs/test_report_browser.py; \
	if [ -f out/docs/index.html ]; then \
		echo "Trying every page of the site."; \
		CONGENIAL_BROWSER=$$browser CONGENIAL_SITE=out/docs \
			$(PYTEST) tests/docs/test_site_browser.py; \
	fi

lint:  ## Check the style and the types.
	@requirements/environment.sh dev
	@echo "Checking the style (ruff) and the types (mypy)."
	@$(BIN)/ruff check --quiet --output-format concise
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary

kernels:
	@echo "Compiling the kernels that are missing, each once."
	@$(BIN)/python -c "$(call COMPILE,$(PLANS))"

kernels-of-tables:
	@$(BIN)/python -c "$(call COMPILE,tables)"

format:  ## Put the code in its standard form.
	@requirements/environment.sh dev
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format

docs:  ## Build the site, out/docs/index.html, and check its links.
	@requirements/environment.sh docs
	@echo "Building the site; a warning is an error."
	@.venv/docs/bin/python -m sphinx -q -W --keep-going -j auto -c docs/sphinx -d out/doctrees . out/docs
	@.venv/docs/bin/python docs/sphinx/check.py out/docs
	@echo "Open out/docs/index.html in a browser; it needs no network."

figures:  ## Draw the pictures of docs/algebra.md, docs/figures, anew.
	@requirements/environment.sh dev
	@$(BIN)/python docs/figures/draw.py

studies:  ## Run the papers' examples and tables anew, and write docs/studies.
	@requirements/environment.sh dev
	@for study in taxi p12 two-bin simplex belief coverage inversion best-table bureau; do \
		$(BIN)/python -m papers $$study --out out/studies; \
	done
	@mkdir -p docs/studies && cp out/studies/* docs/studies/

comparison:  ## Compare every method on the taxi trips, which are public, and write docs/compare.
	@requirements/environment.sh dev
	@if [ ! -f $(TAXI)/trips.parquet ]; then $(BIN)/python $(TAXI)/build_trips.py; fi
	@$(BIN)/congenial compare $(TAXI)/plan.toml --public --delta 1e-7 --out docs/compare

analysts:  ## Fit models to private releases, with the noise and without, and write docs/analysts.
	@requirements/environment.sh dev
	@echo "Fitting models to releases of counts simulated many times, some ten minutes."
	@$(BIN)/python examples/inference/yellow_zones.py --replicates 200 --draws 300 --out docs/analysts
	@$(BIN)/python examples/inference/normaliser.py --replicates 1000 --out docs/analysts

faults:  ## Plant faults, audit them, and write the table of docs/how-to/audit-and-verify.md.
	@requirements/environment.sh dev
	@$(BIN)/python examples/audit/faults.py --write

benchmark:  ## Measure speed and memory beside their peers, and write docs/benchmarks.md.
	@requirements/environment.sh benchmark
	@echo "Running the benchmarks, up to 25 minutes; the machine should do nothing else."
	@.venv/benchmark/bin/python -m benchmarks --page

lock:  ## Look for newer versions of what the project needs, and lock them.
	@requirements/environment.sh run
	@echo "Resolving the files requirements/*.lock anew."
	@requirements/lock.sh $(BIN)/python
	@echo "Done; make test installs them."

clean:  ## Remove .venv, caches and what the demo, the site and the benchmarks made.
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist out
	@rm -rf $(TAXI)/trips.parquet $(TAXI)/release $(TAXI)/release-zones* examples/dataframe/release examples/notebook/town
	@rm -rf benchmarks/out
	@find src tests papers examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "Removed."
