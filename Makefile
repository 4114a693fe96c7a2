# Entry points; `make` lists them. What they do is in fraud-filter (app/fraud_filter) and in the scripts called here.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo bench bench-compare bench-flink experiment transitions backlog faults soak stack up down status report logs switch audit base test test-unit test-untimed test-timed test-embedded test-integration lint fmt lock dashboards metrics doctor clean sbom scan

BIN := .venv/bin
READY := .venv/.ready
FLINK_READY := .venv-flink/.ready
FLINK_LOCK := app/lab/bench/flink/requirements.lock

# A variable becomes an option when it stands on make's command line; SECONDS, say, may be in the environment as well.
given = $(if $(filter command,$(firstword $(origin $(1)))),--$(2) "$($(1))")
# The same for 1 and 0.
switched = $(if $(filter command,$(firstword $(origin $(1)))),$(if $(filter 0,$($(1))),--no-$(2),--$(2)))

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(READY) ## Run every mode on an embedded Kafka and Spark, and report; MODES=continuous SECONDS=20 RATE=500 narrow it
	$(BIN)/fraud-filter demo $(call given,MODES,modes) $(call given,SECONDS,seconds) $(call given,RATE,rate)

bench: $(READY) ## Set the modes, a plain client and Flink side by side under load; RATES=100 ROUNDS=1 SECONDS=10 CONTENDERS=real-time,floor OUTPUT=DIR narrow it
	$(BIN)/fraud-filter bench $(call given,CONTENDERS,contenders) $(call given,MODES,contenders) $(call given,RATES,rates) $(call given,ROUNDS,rounds) $(call given,SECONDS,seconds) $(call given,REPEATS,repeats) $(call switched,AWAKE,awake) $(call given,OUTPUT,output) $(call given,DOCS,docs)

bench-compare: $(READY) ## Show two reports of make bench side by side: A=old/bench-report.json B=bench-report.json
	@$(BIN)/fraud-filter bench-compare "$(A)" "$(B)"

experiment: $(READY) ## See what a changed setting does to a mode, side by side: MODE=continuous CHANGE=continuous_fetch_max_wait_ms=500
	$(BIN)/fraud-filter experiment "$(MODE)" '$(CHANGE)' $(call given,RATES,rates) $(call given,ROUNDS,rounds) $(call given,SECONDS,seconds) $(call given,REPEATS,repeats) $(call switched,AWAKE,awake)

bench-flink: $(FLINK_READY) ## Install Apache Flink for make bench in a virtual environment of its own: 800 MB, Python 3.11

transitions: $(READY) ## Change the mode in all 12 ways under load on an embedded stack, audit each, write transitions.json; STOP=kill ONLY=continuous:real-time BELOW=hdfs://…
	$(BIN)/fraud-filter transitions $(call given,STOP,stop) $(call given,ONLY,only) $(call given,RATE,rate) $(call given,SECONDS,seconds) $(call given,DOCS,docs) $(call given,BELOW,below)

backlog: $(READY) ## Work off 2,000,000 payments that came in during an outage, in each mode, write backlog.json; RECORDS=100000 MODES=continuous
	$(BIN)/fraud-filter backlog $(call given,MODES,modes) $(call given,RECORDS,records) $(call given,RATE,rate) $(call given,DOCS,docs)

faults: $(READY) ## Put faults into a Compose stack of its own under load, audit each, write faults.json; ONLY=broker-kill MODES=continuous narrow it
	$(BIN)/fraud-filter faults $(call given,ONLY,only) $(call given,MODES,modes) $(call given,RATE,rate) $(call given,SECONDS,seconds) $(call given,DOCS,docs) $(if $(ADD),--add)

soak: $(READY) ## Let such a stack run with random faults, look for losses and growth, write soak.json; MINUTES=60 SEED=7 MODES=continuous,real-time
	$(BIN)/fraud-filter soak $(call given,MINUTES,minutes) $(call given,SEED,seed) $(call given,MODES,modes) $(call given,RATE,rate)

stack: $(READY) ## Run an embedded Kafka broker with the topics until Ctrl-C
	$(BIN)/fraud-filter stack

up: $(READY) ## Bring up the Compose stack and wait until it is healthy; WORKERS=2 TIMEOUT=600 SECURE=1 change it
	$(BIN)/fraud-filter up $(call switched,SECURE,secure) $(call given,WORKERS,workers) $(call given,TIMEOUT,timeout)

down: $(READY) ## Stop the Compose stack; its data stays
	$(BIN)/fraud-filter down

status: $(READY) ## Show the stack: health, mode, rates, latency, lag, addresses
	@$(BIN)/fraud-filter status

report: $(READY) ## Write report.html, plots of the last minutes from Prometheus; SINCE=2h OUTPUT=FILE change it
	$(BIN)/fraud-filter report $(call given,SINCE,since) $(call given,OUTPUT,output)

logs: ## Follow the logs of the stack
	docker compose logs --follow --tail 50

switch: $(READY) ## Move the running filter to another mode: MODE=real-time
	$(BIN)/fraud-filter switch "$(MODE)"

audit: $(READY) ## Compare what the stack wrote with what it should have written
	$(BIN)/fraud-filter audit

base: ## Make the images' base image again from Debian's packages
	app/base --make

# Several at a time, each with a broker and a Spark of its own: most tests wait more than they work.
SIDE_BY_SIDE := --dist worksteal --numprocesses
# Tests that judge times: fewer at a time, and one that took too long beside another has to hold alone.
TIMED = $(BIN)/pytest tests/embedded -m timed $(SIDE_BY_SIDE) 2 || $(BIN)/pytest tests/embedded -m timed --last-failed

test: $(READY) ## Run all tests; each part runs though an earlier one failed
	@$(MAKE) --keep-going --no-print-directory --jobs=1 test-untimed test-timed test-integration

test-untimed: $(READY) ## Run the tests without Docker that judge no times
	$(BIN)/pytest tests/unit tests/embedded -m "not timed" $(SIDE_BY_SIDE) 3

test-timed: $(READY) ## Run the tests that judge times
	$(TIMED)

test-unit: $(READY) ## Run the tests that need neither Kafka nor Spark
	$(BIN)/pytest tests/unit $(SIDE_BY_SIDE) 3

test-embedded: $(READY) ## Run the tests on a real Kafka and a real Spark
	$(BIN)/pytest tests/embedded -m "not timed" $(SIDE_BY_SIDE) 3
	$(TIMED)

test-integration: $(READY) ## Run the tests on the Compose stack; needs a Docker Engine
	$(BIN)/pytest tests/integration

lint: $(READY) ## Check style, types, shell scripts, YAML, and Prometheus' rules
	.ci/lint

fmt: $(READY) ## Format the code and mend what can be mended
	$(BIN)/ruff check --fix --exit-zero --quiet
	$(BIN)/ruff format

dashboards: $(READY) ## Write Grafana's dashboards again from monitoring/grafana/boards; needs Python 3.11
	$(BIN)/python monitoring/grafana/boards monitoring/grafana/dashboards

metrics: $(READY) ## Write the tables of docs/metrics.md again from the catalogue of metrics
	$(BIN)/python -m fraud_filter.metrics.document

lock: $(READY) ## Pin Python packages and jars again, with checksums
	app/lock

sbom: $(READY) ## Write sbom/, a CycloneDX bill of materials of each image that `make up` builds
	$(BIN)/python -m fraud_filter.compose.sbom

scan: $(READY) ## Report known holes in what is locked and, after make sbom, in what the images hold
	@.ci/scan

doctor: ## Say what this machine has and what it lacks
	@app/doctor

clean: ## Remove the stack with its data, the virtual environment, caches and reports
	@! docker info >/dev/null 2>&1 || [ ! -e .env ] || docker compose --profile grafana down --volumes --remove-orphans
	rm -rf .venv .venv-flink .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist sbom spark-warehouse demo-report.html demo-report.json report.html transitions.json backlog.json bench-report.html bench-report.json bench-*.png experiment.json faults.json soak.json
	find app tests -name __pycache__ -prune -exec rm -rf {} +

$(READY): requirements.lock app/bootstrap
	app/bootstrap $@

$(FLINK_READY): $(READY) $(FLINK_LOCK)
	$(BIN)/uv venv --quiet --clear --python 3.11 .venv-flink
	app/locked setuptools | $(BIN)/uv pip install --quiet --python .venv-flink --require-hashes --requirement -
	$(BIN)/uv pip install --python .venv-flink --require-hashes --no-build-isolation --requirement $(FLINK_LOCK) && touch $@
