# Two commands do all the set-up: `make run` and `make test`.

VENV   := .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
PIP    := $(PY) -m pip --disable-pip-version-check --quiet install
PYTEST := $(PY) -m pytest
LONG   := -m "long and not faults_full"

PRODUCT := app.py gatebell.py wsgi.py blueprints demo forms web domain models
# The modules of Python that have other names on macOS (typeshed asks sys.platform there). Only the
# files that import one are checked for macOS, each by itself, which finds what is missing there.
DIFFERENT_ON_MACOS := errno|fcntl|mmap|os|resource|select|selectors|signal|socket|ssl|stat|sys|syslog|termios|time|webbrowser
OF_SKIPPED_IMPORTS := misc no-any-return type-var untyped-decorator unused-ignore

# Programs start hundreds of times in the tests: from bytecode, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help run demo pictures counterparts programs bridges compiled test test-long test-both test-debian test-pythons faults properties fuzz lint style types fmt migrate migration docs site coverage bench bench-alerts bench-scale bench-large bench-cost bench-pairs bench-neighbors bench-pages bench-open-pages soak pins sbom measures breaks clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/runtime $(BIN)/gatebell ## Start the service: web server and background work, on embedded SQLite
	@$(PY) -m web.server.serve

demo: $(VENV)/runtime ## Start a demonstration with two weeks of history, in build/demo
	@$(PY) -m demo

pictures: $(VENV)/development ## Take the README's pictures again, from a separate demonstration
	@scripts/ensure-chromium
	@$(PY) -m demo.pictures

# What is fetched is waited for, so it is fetched while Python's packages are installed. Types take as
# long as an eighth of the tests: they are checked beside everything else, and reported after it.
test: ## Check and test everything, on SQLite, on Postgres and in a browser
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/development programs
	@mkdir -p build
	@$(MAKE) --no-print-directory types > build/types.log 2>&1 & types=$$!; \
	    $(MAKE) --no-print-directory --jobs=2 style compiled counterparts || { wait; exit 1; }; \
	    $(PYTEST) --numprocesses auto --maxprocesses 4 --dist worksteal $(PYTEST_ARGS); tested=$$?; \
	    wait $$types; checked=$$?; cat build/types.log; \
	    [ $$tested -ne 1 ] || { scripts/test-again $(PYTEST_ARGS); tested=$$?; }; exit $$((tested | checked))

# In a new checkout: else each process of the tests would compile them all.
compiled: $(VENV)/development
	@[ -n "$$(find tests -name __pycache__ -print -quit)" ] || \
	    ls -d tests/*/ | xargs -n 9 -P 2 $(PYTEST) --collect-only --quiet >/dev/null

test-long: counterparts bridges ## Run the tests that `make test` leaves out since they take long, except those of `make faults` (minutes)
	@$(PYTEST) --numprocesses auto --maxprocesses 4 --dist worksteal $(LONG) $(PYTEST_ARGS); tested=$$?; \
	    [ $$tested -ne 1 ] || { scripts/test-again $(LONG) $(PYTEST_ARGS); tested=$$?; }; exit $$tested

test-both: bridges ## As `make test` and `make test-long`, with every test on both databases
	@$(MAKE) test PYTEST_ARGS="--every-database -m 'not faults_full' $(PYTEST_ARGS)"

test-debian: ## Run both commands of the README in a new Debian 12, 13 and 14 (as root, with debootstrap): SUITES="trixie"
	@scripts/test-debian $(SUITES)

test-pythons: $(VENV)/development ## Run a sample of the tests under each Python from 3.11 to 3.14 that is here
	@scripts/test-pythons $(PYTEST_ARGS)

counterparts: $(VENV)/development $(BIN)/gatebell programs

# Programs written by others, which the tests run beside the service. They need nothing of ours.
programs:
	@scripts/ensure-chromium
	@scripts/ensure-monitoring
	@scripts/ensure-registry
	@scripts/ensure-proxies
	@scripts/ensure-pooler
	@scripts/ensure-git-clients
	@scripts/ensure-gitlab-clients

# What only tests that are marked long need.
bridges: $(VENV)/development
	@scripts/ensure-bridges

faults: $(VENV)/development ## Run the fault tests at full size, and write docs/evidence/reliability.md (takes most of an hour)
	@rm -rf build/faults
	@$(PYTEST) --timeout 0 --every-database --capture=no --accounts build/faults -m "long or not long" tests/faults $(PYTEST_ARGS)
	@$(PY) -m tests.faults.reliability build/faults > build/reliability.md && mv build/reliability.md docs/evidence/reliability.md

properties: $(VENV)/development ## Run the property-based tests with many more examples (takes an hour)
	@$(PYTEST) --timeout 0 --numprocesses auto --maxprocesses 4 -m hypothesis --hypothesis-profile fuzz $(PYTEST_ARGS)

fuzz: $(VENV)/fuzzing ## Fuzz the readers of what strangers send, for FUZZ_MINUTES=60
	@$(PY) -m tests.fuzz.run --minutes $(or $(FUZZ_MINUTES),60)

lint: style types ## Check style, types and the direction of imports

style: $(VENV)/development
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(BIN)/lint-imports

types: $(VENV)/development
	@$(PY) -m mypy
	@$(PY) -m mypy --platform darwin --cache-dir .mypy_cache/darwin --follow-imports skip \
	    $(addprefix --disable-error-code ,$(OF_SKIPPED_IMPORTS)) \
	    $$(grep -rlwE "^ *(import|from) ($(DIFFERENT_ON_MACOS))" --include="*.py" $(PRODUCT))

fmt: $(VENV)/development ## Format the code and fix what ruff can fix
	@$(PY) -m ruff check --fix-only .
	@$(PY) -m ruff format .

migrate: $(VENV)/runtime ## Migrate the database
	@$(PY) -m web.server.migrate

migration: $(VENV)/development ## Generate a migration from the models: NAME="what it does"
	@$(PY) -m migrations.new "$(NAME)"

docs: $(VENV)/development ## Write the generated documents; those that name every test go to build/docs
	@$(PY) -m web.settings.sections > docs/settings.md
	@$(PY) -m web.commands.documentation.command_reference > docs/command-line.md
	@$(PY) -m domain.releases.schedule_document > docs/releases.md
	@$(PY) -m tests.coverage.summary > docs/evidence/coverage.md
	@$(PY) -m tests.coverage.permission_matrix > docs/permissions.md
	@$(PY) -m tests.coverage.advisories > docs/evidence/advisories.md
	@$(PY) -m tests.coverage.monitoring_tools > docs/evidence/monitoring-tools.md
	@mkdir -p build/docs
	@$(PY) -m tests.coverage.coverage_table > build/docs/statements.md
	@$(PY) -m tests.coverage.rfc_coverage > build/docs/standards.md

site: $(VENV)/development ## Build the documentation site in build/site
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs build/site
	@echo "The site begins at build/site/README.html."

coverage: docs ## List the statements of the specification without a test
	@$(PY) -m tests.coverage.coverage_table --missing

bench: $(VENV)/development ## Compare the service with baselines and peers (takes half an hour)
	@$(PY) -m bench.compare $(BENCH_ARGS)

bench-alerts: $(VENV)/development ## Compare lists of a million alerts with lists of ten thousand (takes minutes)
	@$(PY) -m bench.alert_lists

bench-scale: $(VENV)/development ## Compare one host with two hosts that share Postgres (takes minutes)
	@$(PY) -m bench.scale.scale_out $(BENCH_ARGS)

bench-large: $(VENV)/development ## Fill a Postgres with ten million alerts, measure it, and write docs/evidence/scale.md (takes hours and 50 GB): BENCH_ARGS="--alerts 100000", or "--sqlite" for SQLite
	@$(PY) -m bench.scale.large_run $(BENCH_ARGS)

bench-cost: $(VENV)/development ## Measure the cost of requests and of a million rows, for docs/capacity.md
	@$(PY) -m bench.costs.cost $(BENCH_ARGS)

bench-pairs: $(VENV)/development ## Measure processor time before and after a change, in pairs: BENCH_ARGS="--before main"
	@$(PY) -m bench.costs.pairs $(BENCH_ARGS)

bench-neighbors: $(VENV)/development ## Measure requests while noisy neighbors are active, and write docs/evidence/noisy-neighbors.md (takes a quarter of an hour)
	@$(PY) -m bench.noisy_neighbors.benchmark $(BENCH_ARGS)

soak: $(VENV)/development ## Run all kinds of load for SOAK_MINUTES=60, check growth and losses, and write docs/evidence/soak.md
	@$(PY) -m bench.soak --minutes $(or $(SOAK_MINUTES),60) $(SOAK_ARGS)

bench-pages: $(VENV)/development ## Measure the size and the load time of the main pages (takes minutes)
	@scripts/ensure-chromium
	@$(PY) -m bench.costs.page_weights

bench-open-pages: $(VENV)/development ## Measure the cost of a thousand open pages that refresh themselves, for docs/capacity.md (takes three minutes)
	@$(PY) -m bench.costs.open_pages $(BENCH_ARGS)

measures: $(VENV)/development ## Measure the house, with an idle host (takes two minutes): MEASURES_ARGS=<checkout>
	@$(PY) -m tests.architecture.measures --idle $(MEASURES_ARGS)

breaks: $(VENV)/development ## Try deliberate breaks on the tests that are to see them (takes minutes)
	@scripts/ensure-chromium
	@$(PY) -m tests.mutations.try_breaks $(BREAKS_ARGS)

pins: $(VENV)/development ## Pin the newest versions that requirements.in allows
	@scripts/pin

sbom: $(VENV)/development ## Write a bill of materials (CycloneDX) to sbom.cdx.json
	@$(BIN)/cyclonedx-py requirements requirements.txt --pyproject pyproject.toml \
	    --mc-type application --output-reproducible --output-format JSON --output-file sbom.cdx.json

clean: ## Remove the environment and caches, but not instance/
	rm -rf $(VENV) .pythons build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The stamps are newer than the requirements that they were made from.
$(VENV)/runtime: requirements.txt | $(PY)
	@echo "Installing what the service runs on (once; a minute or a few)."
	@$(PIP) --require-hashes -r requirements.txt
	@touch $@

# For operators who have .venv/bin in their PATH.
$(BIN)/gatebell: scripts/gatebell | $(VENV)/runtime
	@ln -sf ../../scripts/gatebell $@

$(VENV)/development: requirements-dev.txt $(VENV)/runtime
	@echo "Installing what checks and tests it."
	@$(PIP) --require-hashes -r requirements-dev.txt
	@touch $@

$(VENV)/fuzzing: requirements-fuzz.txt $(VENV)/development
	@$(PIP) --require-hashes -r requirements-fuzz.txt
	@touch $@

$(PY):
	@python=$$(scripts/find-python) && "$$python" -m venv $(VENV)
