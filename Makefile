# Everything starts from a fresh clone with nothing but Python 3.11+ and make:
# each target first makes .venv and installs the pinned dependencies into it.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/sh

# Python's own location is all that may come from outside: a foreign PYTHONPATH
# or PYTHONHOME would put other packages in front of the pinned ones.
unexport PYTHONPATH PYTHONHOME

# MkDocs' own talk about its future, on every run.
export NO_MKDOCS_2_WARNING := 1

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCKS := requirements/build.txt requirements/dev.txt

.PHONY: help
help:  ## show this list
	@echo "Usage: make <target>   (PYTHON=/path/to/python chooses the interpreter)"
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  \1\t\2/p' Makefile | expand -t 14

.PHONY: setup
setup: $(READY)  ## make .venv with the pinned dependencies and this package

$(READY): $(LOCKS)
	@scripts/create_environment.sh $(VENV)
	@touch $@

.PHONY: demo
demo: $(READY)  ## run the demonstration on real flights
	@$(BIN)/eddyline demo

# Two processes with a Spark each (three keep both cores busy and took 5 % longer: each Spark begins
# cold); a file's tests stay together, as they share tables, and the files stay in the order that
# tests/conftest.py gives them.
WORKERS ?= --numprocesses 2 --dist loadfile --no-loadscope-reorder

# What is quick often waits for something else: four processes keep two cores busy.
QUICK_WORKERS ?= --numprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: test
test: $(READY)  ## run all tests and the examples in docstrings; ARGS="-k word" narrows them
	$(BIN)/python -m pytest $(WORKERS) $(ARGS)

.PHONY: check
check: $(READY)  ## tell what is wrong with an edit: style, imports, types, what is quick without Spark, and the main path
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy & types=$$!; \
	$(BIN)/lint-imports --no-logo && \
		$(BIN)/python -m pytest --quiet tests/planner/test_main_paths.py -k test_filters && \
		EDDYLINE_EXAMPLES=$${EDDYLINE_EXAMPLES:-quick} $(BIN)/python -m pytest --quiet $(QUICK_WORKERS) \
			-m "not spark and not slow and not statistical" $(ARGS); rest=$$?; \
	wait $$types && exit $$rest

# Each has an environment of its own: the pinned dependencies with another PySpark, Python or pandas.
.PHONY: versions
versions: wheel  ## run all tests of the wheel with PySpark 4.0, its main paths with each other, the oldest and newest Python, pandas 3; ARGS=4.1 narrows them
	@$(BIN)/python scripts/check_versions.py $(ARGS)

.PHONY: lint
lint: $(READY)  ## check style, format, types, layers, Java and that the site can be built
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/mypy & types=$$!; \
	$(BIN)/lint-imports --no-logo && $(BIN)/python scripts/compile_java.py && \
		$(BIN)/mkdocs build --quiet --strict; rest=$$?; \
	wait $$types && exit $$rest

.PHONY: docs
docs: $(READY)  ## build the documentation as a site, into site/
	$(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

.PHONY: docs-release
docs-release: $(READY)  ## build the site of this version beside those of others; ARGS=folder
	@$(BIN)/python scripts/add_site_version.py $(ARGS)

.PHONY: draw
draw: $(READY)  ## draw the pages and pictures that scripts make of other files: reference, decisions, figures, house, notebooks
	$(BIN)/python scripts/draw $(ARGS)

.PHONY: notebooks
notebooks: $(READY)  ## run the notebooks of the documentation, store what they show, and draw their pages
	$(BIN)/python scripts/run_notebooks.py $(ARGS)
	$(BIN)/python scripts/draw notebooks

.PHONY: wheel
wheel: $(READY)  ## build the package that pip installs, into dist/
	@rm -rf build dist
	@$(BIN)/eddyline jar > /dev/null
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir dist .
	@rm -rf build
	@ls dist/*.whl

.PHONY: release
release: $(READY)  ## build what a release consists of, into dist/, and check it; ARGS=--draft before its date is known
	$(BIN)/python scripts/make_release.py $(ARGS)

.PHONY: installs
installs: wheel  ## install the wheel in fresh environments as people have them; ARGS="alone" narrows them
	$(BIN)/python scripts/check_installs.py $(ARGS)

.PHONY: format
format: $(READY)  ## format the code and mend what ruff can mend by itself
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: bench
bench: $(READY)  ## measure against plain Spark; ARGS="tpch", "adversarial", "remembering", "realistic", "flights", "demo", "orders", "base-engine", "content", "common-part", "access-choice", "shared-learning", "beginnings", "first", "calls", "enabling", "tiny", "short", "others", "columns", "large-inputs", "ripple", "learned", "transpiled", "looking", "engine", "growth", "waiting", "lookups", "functions", "ledger", "stores", "folders", "quota", "forecast", "cascade", "sharing", "rules", "aggregates", "changes", "windows", "patterns", "sequences", "backfill", "sinks", "delayed", "latency", "executors", "real-time", "kills", "clients", or options
	$(BIN)/python -m bench $(ARGS)

.PHONY: figures
figures: $(READY)  ## draw the figures of the papers again
	$(BIN)/python -m bench.figures $(ARGS)

# The only target that needs more than Python: uv (https://docs.astral.sh/uv/).
# --upgrade is left to ARGS, so that by default a new dependency changes no other pin.
UV ?= uv
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header
.PHONY: locks
locks:  ## pin the dependencies again after a change of pyproject.toml (needs uv)
	$(COMPILE) $(ARGS) requirements/build.in -o requirements/build.txt
	$(COMPILE) $(ARGS) --extra connect --extra demo --extra lookups --extra spark --extra streaming --extra telemetry --group dev pyproject.toml requirements/dev.in -o requirements/dev.txt
	$(COMPILE) $(ARGS) requirements/release.in -o requirements/release.txt
	for old in requirements/pyspark-*.in; do \
		cp requirements/dev.txt $${old%.in}.txt; \
		$(COMPILE) --extra connect --extra demo --extra lookups --extra spark --extra streaming --extra telemetry --group dev pyproject.toml $$old -o $${old%.in}.txt || exit; \
	done

.PHONY: clean
clean:  ## remove .venv and everything that was generated
	rm -rf $(VENV) .venv-pyspark-* .venv-release build dist site src/*.egg-info .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache src/eddyline/plugin/eddyline.jar spark-warehouse metastore_db derby.log artifacts \
		bench/results eddyline-demo.html
	find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +
