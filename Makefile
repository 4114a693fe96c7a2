# Entry points; `make` lists them. What they do is in fraud-filter (`.venv/bin/fraud-filter --help`) and in the scripts
# called here. ARGS="..." gives further arguments to the program behind a target: make demo ARGS="--modes continuous"
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo bench-flink up down test test-all test-unit test-embedded test-integration lint fuzz generated lock sbom clean

BIN := .venv/bin
READY := .venv/.ready
FLINK_READY := .venv-flink/.ready
FLINK_LOCK := app/lab/bench/flink/requirements.lock

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(READY) ## Run every mode on an embedded Kafka and Spark, and report
	$(BIN)/fraud-filter demo $(ARGS)

bench-flink: $(FLINK_READY) ## Install Apache Flink for `fraud-filter lab bench`, in a virtual environment of its own: 800 MB, Python 3.11

up: $(READY) ## Bring up the Compose stack and wait until it is healthy
	$(BIN)/fraud-filter up $(ARGS)

down: $(READY) ## Stop the Compose stack; its data stays
	$(BIN)/fraud-filter down $(ARGS)

# Two at a time, each with a broker and a Spark of its own: they keep two processors busy, and a third made each take so
# much longer that nothing was won. Those of a file stay together, as they share what it starts, and begin in the order of
# tests/embedded/conftest.py.
SIDE_BY_SIDE := --dist loadfile --no-loadscope-reorder --numprocesses
# Tests that judge times wait more than others do; one that took too long beside another has to hold alone. How many
# were tried again is said at the end.
TIMED = $(BIN)/pytest tests/embedded -m "timed $(SCOPE)" $(SIDE_BY_SIDE) 2 && echo "retried: no test" || $(BIN)/pytest tests/embedded -m "timed $(SCOPE)" --last-failed --last-failed-no-failures none
# What tests repeat in further combinations (the other modes, the other ways to fail) is left to `make test-all`.
SCOPE := and not exhaustive

test: $(READY) ## Run the tests; each part runs though an earlier one failed
	@$(MAKE) --keep-going --no-print-directory --jobs=1 test-unit test-embedded test-integration

test-all: ## Run all tests, in every combination too
	@$(MAKE) --no-print-directory test SCOPE=

test-unit: $(READY) ## Run the tests that need neither Kafka nor Spark
	$(BIN)/pytest tests/unit -m "not timed $(SCOPE)" $(SIDE_BY_SIDE) 3 $(ARGS)

test-embedded: $(READY) ## Run the tests on a real Kafka and a real Spark; those that judge times come last
	$(BIN)/pytest tests/embedded -m "not timed $(SCOPE)" $(SIDE_BY_SIDE) 2 $(ARGS); code=$$?; $(TIMED) && exit $$code

test-integration: $(READY) ## Run the tests on the Compose stack; needs a Docker Engine
	$(BIN)/pytest tests/integration -m "not timed $(SCOPE)" $(ARGS)

lint: $(READY) ## Check style, types, shell scripts, YAML, Prometheus' rules, and Kubernetes' manifests
	.ci/lint

fuzz: $(READY) ## Draw rules and records for about an hour, and compare Spark with the audit: make fuzz TIMES=10 for less
	$(BIN)/pytest tests/embedded -k fuzzed --fuzz-times $(or $(TIMES),80) $(ARGS)

generated: $(READY) ## Write Grafana's dashboards, tables of the docs and parts of Kubernetes' manifests again
	$(BIN)/python monitoring/grafana/boards monitoring/grafana/dashboards
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/manifests.py

lock: $(READY) ## Pin Python packages and jars again, with checksums
	app/lock

sbom: $(READY) ## Write sbom/, a CycloneDX bill of materials of each image that `up` builds; .ci/scan looks for known holes
	$(BIN)/python tools/sbom.py

clean: ## Remove the stack with its data, the virtual environment, caches and reports
	@! docker info >/dev/null 2>&1 || [ ! -e .env ] || docker compose --profile grafana --profile standby --profile brokers down --volumes --remove-orphans
	rm -rf .venv .venv-flink .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist sbom spark-warehouse demo-report.html demo-report.json trials.json bench-report.html bench-report.json bench-*.png
	find app tests -name __pycache__ -prune -exec rm -rf {} +

$(READY): requirements.lock app/bootstrap
	app/bootstrap $@

$(FLINK_READY): $(READY) $(FLINK_LOCK)
	$(BIN)/uv venv --quiet --clear --python 3.11 .venv-flink
	app/locked setuptools | $(BIN)/uv pip install --quiet --python .venv-flink --require-hashes --requirement -
	$(BIN)/uv pip install --python .venv-flink --require-hashes --no-build-isolation --requirement $(FLINK_LOCK) && touch $@
