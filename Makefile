# Entry points; `make` lists them. What they do is in fraud-filter (app/fraud_filter) and in the scripts called here.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo bench bench-flink transitions takeover backlog faults soak stack up down status logs switch rollout audit base test test-all test-unit test-untimed test-timed test-embedded test-integration fuzz lint fmt lock dashboards reference doctor clean sbom scan

BIN := .venv/bin
READY := .venv/.ready
FLINK_READY := .venv-flink/.ready
FLINK_LOCK := app/lab/bench/flink/requirements.lock

# A variable becomes an option when it stands on make's command line; SECONDS, say, may be in the environment as well.
given = $(if $(filter command,$(firstword $(origin $(1)))),--$(2) "$($(1))")
# The same for 1 and 0.
switched = $(if $(filter command,$(firstword $(origin $(1)))),$(if $(filter 0,$($(1))),--no-$(2),--$(2)))

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(READY) ## Run every mode on an embedded Kafka and Spark, and report; MODES=continuous SECONDS=20 RATE=500 narrow it
	$(BIN)/fraud-filter demo $(call given,MODES,modes) $(call given,SECONDS,seconds) $(call given,RATE,rate)

bench: $(READY) ## Set the modes, a plain client and Flink side by side under load; RATES=100 ROUNDS=1 SECONDS=10 CONTENDERS=real-time,floor OUTPUT=DIR narrow it
	$(BIN)/fraud-filter lab bench $(call given,CONTENDERS,contenders) $(call given,MODES,contenders) $(call given,RATES,rates) $(call given,ROUNDS,rounds) $(call given,SECONDS,seconds) $(call given,OUTPUT,output) $(call given,DOCS,docs)

bench-flink: $(FLINK_READY) ## Install Apache Flink for make bench in a virtual environment of its own: 800 MB, Python 3.11

transitions: $(READY) ## Change the mode in all 12 ways under load on an embedded stack, audit each, write transitions.json; STOP=handover ONLY=continuous:real-time BELOW=hdfs://…
	$(BIN)/fraud-filter transitions $(call given,STOP,stop) $(call given,ONLY,only) $(call given,RATE,rate) $(call given,SECONDS,seconds) $(call given,DOCS,docs) $(call given,BELOW,below) $(call given,RULES,rules)

takeover: $(READY) ## Kill or change the filter under load with and without a standby, audit each, write takeover.json; MODES=continuous TRIES=3 STANDBY=with WHAT=hang,rules IN_TURN=1 CARDS=100000 STACK=1
	$(BIN)/fraud-filter takeover $(if $(STACK),--stack) $(call given,MODES,modes) $(call given,WHAT,what) $(call given,TRIES,tries) $(if $(MIXED),--mixed) $(if $(IN_TURN),--in-turn) $(call given,CARDS,cards) $(call given,STANDBY,standby) $(call given,RATE,rate) $(call given,SECONDS,seconds) $(call given,DOCS,docs) $(if $(ADD),--add)

backlog: $(READY) ## Work off 2,000,000 payments that came in during an outage, in each mode, write backlog.json; RECORDS=100000 MODES=continuous
	$(BIN)/fraud-filter backlog $(call given,MODES,modes) $(call given,RECORDS,records) $(call given,RATE,rate) $(call given,DOCS,docs)

faults: $(READY) ## Inject faults into a separate, throwaway Compose stack under load, audit each, write faults.json; without and with a standby; ONLY=broker-kill MODES=continuous STANDBY=with narrow it
	$(BIN)/fraud-filter faults $(call given,ONLY,only) $(call given,MODES,modes) $(call given,STANDBY,standby) $(call given,RATE,rate) $(call given,SECONDS,seconds) $(call given,DOCS,docs) $(if $(ADD),--add)

soak: $(READY) ## Let such a stack run with random faults, look for losses and growth, write soak.json; MINUTES=60 SEED=7 MODES=continuous,real-time
	$(BIN)/fraud-filter soak $(call given,MINUTES,minutes) $(call given,SEED,seed) $(call given,MODES,modes) $(call given,RATE,rate)

stack: $(READY) ## Run an embedded Kafka broker with the topics until Ctrl-C
	$(BIN)/fraud-filter lab broker

up: $(READY) ## Bring up the Compose stack and wait until it is healthy; WORKERS=2 TIMEOUT=600 SECURE=1 STANDBY=1 change it
	$(BIN)/fraud-filter up $(call switched,SECURE,secure) $(call switched,STANDBY,standby) $(call given,WORKERS,workers) $(call given,TIMEOUT,timeout)

down: $(READY) ## Stop the Compose stack; its data stays
	$(BIN)/fraud-filter down

status: $(READY) ## Show the stack: health, mode, rates, latency, lag, addresses
	@$(BIN)/fraud-filter status

logs: ## Follow the logs of the stack
	docker compose logs --follow --tail 50

switch: $(READY) ## Move the running filter to another mode: MODE=real-time; NOW=1 with a standby: not at its next commit
	$(BIN)/fraud-filter switch "$(MODE)" $(if $(NOW),--now)

rollout: $(READY) ## Replace the running filter by what .env, conf and the code say now, with a standby without an outage; NOW=1: not at its next commit
	$(BIN)/fraud-filter rollout $(if $(NOW),--now)

audit: $(READY) ## Compare what the stack wrote with what it should have written
	$(BIN)/fraud-filter audit --stack

base: ## Make the images' base image again from Debian's packages
	app/base --make

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
	@$(MAKE) --keep-going --no-print-directory --jobs=1 test-untimed test-timed test-integration

test-all: ## Run all tests, in every combination too
	@$(MAKE) --no-print-directory test SCOPE=

test-untimed: $(READY) ## Run the tests without Docker that judge no times
	$(BIN)/pytest tests/embedded tests/unit -m "not timed $(SCOPE)" $(SIDE_BY_SIDE) 2

test-timed: $(READY) ## Run the tests that judge times
	$(TIMED)

test-unit: $(READY) ## Run the tests that need neither Kafka nor Spark
	$(BIN)/pytest tests/unit -m "not timed $(SCOPE)" $(SIDE_BY_SIDE) 3

test-embedded: $(READY) ## Run the tests on a real Kafka and a real Spark
	$(BIN)/pytest tests/embedded -m "not timed $(SCOPE)" $(SIDE_BY_SIDE) 2
	$(TIMED)

fuzz: $(READY) ## Draw rules, records and predicates ten times as often as make test does; TIMES=100
	$(BIN)/pytest tests/embedded -k fuzzed --fuzz-times "$(or $(TIMES),10)" --timeout 7200

test-integration: $(READY) ## Run the tests on the Compose stack; needs a Docker Engine
	$(BIN)/pytest tests/integration -m "not timed $(SCOPE)"

lint: $(READY) ## Check style, types, shell scripts, YAML, and Prometheus' rules
	.ci/lint

fmt: $(READY) ## Format the code and mend what can be mended
	$(BIN)/ruff check --fix --exit-zero --quiet
	$(BIN)/ruff format

dashboards: $(READY) ## Write Grafana's dashboards again from monitoring/grafana/boards
	$(BIN)/python monitoring/grafana/boards monitoring/grafana/dashboards

reference: $(READY) ## Write the tables of docs/metrics.md and docs/settings.md again from the code
	$(BIN)/python -m fraud_filter.reference

lock: $(READY) ## Pin Python packages and jars again, with checksums
	app/lock

sbom: $(READY) ## Write sbom/, a CycloneDX bill of materials of each image that `make up` builds
	$(BIN)/python -m fraud_filter.compose.sbom

scan: $(READY) ## Report known holes in what is locked and, after make sbom, in what the images hold
	@.ci/scan

doctor: ## Say what this machine has and what it lacks
	@app/doctor

clean: ## Remove the stack with its data, the virtual environment, caches and reports
	@! docker info >/dev/null 2>&1 || [ ! -e .env ] || docker compose --profile grafana --profile standby down --volumes --remove-orphans
	rm -rf .venv .venv-flink  .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist sbom spark-warehouse demo-report.html demo-report.json transitions.json takeover.json backlog.json bench-report.html bench-report.json bench-*.png faults.json soak.json
	find app tests -name __pycache__ -prune -exec rm -rf {} +

$(READY): requirements.lock app/bootstrap
	app/bootstrap $@

$(FLINK_READY): $(READY) $(FLINK_LOCK)
	$(BIN)/uv venv --quiet --clear --python 3.11 .venv-flink
	app/locked setuptools | $(BIN)/uv pip install --quiet --python .venv-flink --require-hashes --requirement -
	$(BIN)/uv pip install --python .venv-flink --require-hashes --no-build-isolation --requirement $(FLINK_LOCK) && touch $@
