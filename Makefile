# `make run` and `make test` install everything that they need.

VENV   := .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
PIP    := $(PY) -m pip --disable-pip-version-check --quiet install
PYTEST := $(PY) -m pytest
LONG   := -m "long and not faults_full"

PRODUCT := app.py gatebell.py wsgi.py blueprints demo forms web domain models
# Python modules with different names on macOS (their type stubs check sys.platform). mypy checks the
# files that import such a module a second time for macOS, without following imports, and reports names
# that do not exist on macOS.
DIFFERENT_ON_MACOS := errno|fcntl|mmap|os|resource|select|selectors|signal|socket|ssl|stat|sys|syslog|termios|time|webbrowser
OF_SKIPPED_IMPORTS := misc no-any-return type-var untyped-decorator unused-ignore

# Tests start programs hundreds of times, so allow Python to store bytecode.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help run demo pictures counterparts programs bridges compiled test test-long test-both test-debian test-pythons faults properties fuzz lint style types fmt migrate migration docs site coverage bench bench-alerts bench-scale bench-large bench-cost bench-pairs bench-neighbors bench-pages bench-open-pages soak pins sbom measures breaks clean

help: ## Show this help text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/runtime $(BIN)/gatebell ## Start the web server and the background worker, by default with SQLite
	@$(PY) -m web.server.serve

demo: $(VENV)/runtime ## Start a demonstration with two weeks of history in build/demo
	@$(PY) -m demo

pictures: $(VENV)/development ## Take new screenshots for the README from a separate demonstration
	@scripts/ensure-chromium
	@$(PY) -m demo.pictures

# Programs are downloaded while Python packages are installed. Checking types takes an eighth of the
# time of the tests, so it runs in the background, and its result is printed at the end.
test: ## Run all checks and tests, on SQLite, on Postgres and in a browser
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/development programs
	@mkdir -p build
	@$(MAKE) --no-print-directory types > build/types.log 2>&1 & types=$$!; \
	    $(MAKE) --no-print-directory --jobs=2 style compiled counterparts || { wait; exit 1; }; \
	    $(PYTEST) --numprocesses auto --maxprocesses 4 --dist worksteal $(PYTEST_ARGS); tested=$$?; \
	    wait $$types; checked=$$?; cat build/types.log; \
	    [ $$tested -ne 1 ] || { scripts/test-again $(PYTEST_ARGS); tested=$$?; }; exit $$((tested | checked))

# In a new checkout, compile all tests first. Otherwise, each test process would compile all of them.
compiled: $(VENV)/development
	@[ -n "$$(find tests -name __pycache__ -print -quit)" ] || \
	    ls -d tests/*/ | xargs -n 9 -P 2 $(PYTEST) --collect-only --quiet >/dev/null

test-long: counterparts bridges ## Run the long tests that `make test` skips, except the tests for `make faults` (takes minutes)
	@$(PYTEST) --numprocesses auto --maxprocesses 4 --dist worksteal $(LONG) $(PYTEST_ARGS); tested=$$?; \
	    [ $$tested -ne 1 ] || { scripts/test-again $(LONG) $(PYTEST_ARGS); tested=$$?; }; exit $$tested

test-both: bridges ## Run the tests of `make test` and `make test-long`, each on both databases
	@$(MAKE) test PYTEST_ARGS="--every-database -m 'not faults_full' $(PYTEST_ARGS)"

test-debian: ## Run both commands of the README in new installations of Debian 12, 13 and 14 (needs root and debootstrap): SUITES="trixie"
	@scripts/test-debian $(SUITES)

test-pythons: $(VENV)/development ## Run a sample of the tests with each installed Python from 3.11 to 3.14
	@scripts/test-pythons $(PYTEST_ARGS)

counterparts: $(VENV)/development $(BIN)/gatebell programs

# Third-party programs that the tests run. Installing them needs no Python packages.
programs:
	@scripts/ensure-chromium
	@scripts/ensure-monitoring
	@scripts/ensure-registry
	@scripts/ensure-proxies
	@scripts/ensure-pooler
	@scripts/ensure-git-clients
	@scripts/ensure-gitlab-clients

# Programs that only tests marked `long` need.
bridges: $(VENV)/development
	@scripts/ensure-bridges

faults: $(VENV)/development ## Run the fault tests at full size, and write docs/evidence/reliability.md (takes almost an hour)
	@rm -rf build/faults
	@$(PYTEST) --timeout 0 --every-database --capture=no --accounts build/faults -m "long or not long" tests/faults $(PYTEST_ARGS)
	@$(PY) -m tests.faults.reliability build/faults > build/reliability.md && mv build/reliability.md docs/evidence/reliability.md

properties: $(VENV)/development ## Run the property-based tests with many more examples (takes an hour)
	@$(PYTEST) --timeout 0 --numprocesses auto --maxprocesses 4 -m hypothesis --hypothesis-profile fuzz $(PYTEST_ARGS)

fuzz: $(VENV)/fuzzing ## Fuzz the parsers of untrusted input for FUZZ_MINUTES=60
	@$(PY) -m tests.fuzz.run --minutes $(or $(FUZZ_MINUTES),60)

lint: style types ## Check style, import contracts and types

style: $(VENV)/development
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(BIN)/lint-imports

types: $(VENV)/development
	@$(PY) -m mypy
	@$(PY) -m mypy --platform darwin --cache-dir .mypy_cache/darwin --follow-imports skip \
	    $(addprefix --disable-error-code ,$(OF_SKIPPED_IMPORTS)) \
	    $$(grep -rlwE "^ *(import|from) ($(DIFFERENT_ON_MACOS))" --include="*.py" $(PRODUCT))

fmt: $(VENV)/development ## Format the code, and fix problems that ruff can fix
	@$(PY) -m ruff check --fix-only .
	@$(PY) -m ruff format .

migrate: $(VENV)/runtime ## Migrate the database
	@$(PY) -m web.server.migrate

migration: $(VENV)/development ## Generate a migration from the models: NAME="what the migration does"
	@$(PY) -m migrations.new "$(NAME)"

docs: $(VENV)/development ## Write the generated documents. Documents that list every test are written to build/docs
	@$(PY) -m web.settings.sections > docs/settings.md
	@$(PY) -m web.commands.documentation.command_reference > docs/command-line.md
	@$(PY) -m domain.releases.schedule_document > docs/releases.md
	@$(PY) -m tests.coverage.summary > docs/evidence/coverage.md
	@$(PY) -m tests.coverage.permission_matrix > docs/permissions.md
	@$(PY) -m tests.coverage.openapi_snapshot
	@$(PY) -m tests.coverage.advisories > docs/evidence/advisories.md
	@$(PY) -m tests.coverage.monitoring_tools > docs/evidence/monitoring-tools.md
	@mkdir -p build/docs
	@$(PY) -m tests.coverage.coverage_table > build/docs/statements.md
	@$(PY) -m tests.coverage.rfc_coverage > build/docs/standards.md

site: $(VENV)/development ## Build the documentation site in build/site
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs build/site
	@echo "The first page of the site is build/site/README.html."

coverage: docs ## List the statements of the specification that have no test
	@$(PY) -m tests.coverage.coverage_table --missing

bench: $(VENV)/development ## Compare the service with baselines and similar programs (takes half an hour)
	@$(PY) -m bench.compare $(BENCH_ARGS)

bench-alerts: $(VENV)/development ## Compare lists of a million alerts with lists of ten thousand alerts (takes minutes)
	@$(PY) -m bench.alert_lists

bench-scale: $(VENV)/development ## Compare one host with two hosts that share Postgres (takes minutes)
	@$(PY) -m bench.scale.scale_out $(BENCH_ARGS)

bench-large: $(VENV)/development ## Fill a Postgres database with ten million alerts, measure it, and write docs/evidence/scale.md (takes hours, and needs 50 GB): BENCH_ARGS="--alerts 100000", or "--sqlite" for SQLite
	@$(PY) -m bench.scale.large_run $(BENCH_ARGS)

bench-cost: $(VENV)/development ## Measure the costs of requests and of a million rows, for docs/capacity.md
	@$(PY) -m bench.costs.cost $(BENCH_ARGS)

bench-pairs: $(VENV)/development ## Measure processor time before and after a change, in pairs: BENCH_ARGS="--before main"
	@$(PY) -m bench.costs.pairs $(BENCH_ARGS)

bench-neighbors: $(VENV)/development ## Measure requests while noisy neighbors are active, and write docs/evidence/noisy-neighbors.md (takes a quarter of an hour)
	@$(PY) -m bench.noisy_neighbors.benchmark $(BENCH_ARGS)

soak: $(VENV)/development ## Run all kinds of load for SOAK_MINUTES=60, check for growth and losses, and write docs/evidence/soak.md
	@$(PY) -m bench.soak --minutes $(or $(SOAK_MINUTES),60) $(SOAK_ARGS)

bench-pages: $(VENV)/development ## Measure the size and the load time of the main pages (takes minutes)
	@scripts/ensure-chromium
	@$(PY) -m bench.costs.page_weights

bench-open-pages: $(VENV)/development ## Measure the cost of a thousand open pages that refresh themselves, for docs/capacity.md (takes three minutes)
	@$(PY) -m bench.costs.open_pages $(BENCH_ARGS)

measures: $(VENV)/development ## Measure how expensive it is to change the code, and the resources that an idle host uses (takes two minutes): MEASURES_ARGS=<checkout>
	@$(PY) -m tests.architecture.measures --idle $(MEASURES_ARGS)

breaks: $(VENV)/development ## Check that the tests detect deliberate mistakes (takes minutes)
	@scripts/ensure-chromium
	@$(PY) -m tests.mutations.try_breaks $(BREAKS_ARGS)

pins: $(VENV)/development ## Pin the newest versions that the requirements*.in files allow
	@scripts/pin

sbom: $(VENV)/development ## Write a software bill of materials (CycloneDX) to sbom.cdx.json
	@$(BIN)/cyclonedx-py requirements requirements.txt --pyproject pyproject.toml \
	    --mc-type application --output-reproducible --output-format JSON --output-file sbom.cdx.json

clean: ## Remove the environment and caches, but not instance/
	rm -rf $(VENV) .pythons build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The time of this stamp file shows whether the requirements have changed since the last installation.
$(VENV)/runtime: requirements.txt | $(PY)
	@echo "Installing the packages of the service (only once; takes a few minutes)."
	@$(PIP) --require-hashes -r requirements.txt
	@touch $@

# This link is for operators who have .venv/bin in their PATH.
$(BIN)/gatebell: scripts/gatebell | $(VENV)/runtime
	@ln -sf ../../scripts/gatebell $@

$(VENV)/development: requirements-dev.txt $(VENV)/runtime
	@echo "Installing the packages for checks and tests."
	@$(PIP) --require-hashes -r requirements-dev.txt
	@touch $@

$(VENV)/fuzzing: requirements-fuzz.txt $(VENV)/development
	@$(PIP) --require-hashes -r requirements-fuzz.txt
	@touch $@

$(PY):
	@python=$$(scripts/find-python) && "$$python" -m venv $(VENV)
