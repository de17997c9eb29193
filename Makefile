# Streakline. `make demo` and `make test` do all the set-up that they need.
SHELL := /bin/bash
UV := $(shell command -v uv 2>/dev/null || echo .local/bin/uv)
RUN := $(UV) run --frozen --quiet
# The functions run on Python 3.13. Where the machine has it, so do the project's own commands: on the PATH, or where
# pyenv keeps it. Otherwise uv takes what it finds of 3.11 and 3.12. UV_PYTHON=3.12 picks one.
FOUND_PYTHON := $(shell v="$(or $(UV_PYTHON),3.13)"; for python in "python$$v" "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/"$$v".*/bin/"python$$v"; do \
  "$$python" -c 'import sys, venv; print(sys.executable)' 2>/dev/null && exit; done)
ifneq ($(FOUND_PYTHON),)
override UV_PYTHON := $(FOUND_PYTHON)
export UV_PYTHON
endif
# Images of Python set it. Without compiled files each process compiles what it imports: 17 s of CPU for each worker
# of `make test`, 2 s for each start of the emulator.
unexport PYTHONDONTWRITEBYTECODE
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)

.PHONY: help setup machine demo test test-all release-check unit recipes golden docs check check-tests check-style check-types check-templates models clients units released template bench soak dist dist-python dist-typescript dist-sums up down deploy clean
help: ## these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

# uv itself, which is made where neither the machine nor LAYER_UV has one. `sam build` builds several layers at once: each
# may make it, in a folder of its own, and its name comes when it is whole.
NEEDED_UV := $(if $(LAYER_UV)$(shell command -v uv 2>/dev/null),,.local/bin/uv)
.local/bin/uv:
	@echo "installing uv in .local ..." && mkdir -p .local/bin && fresh=$$(mktemp -d .local/uv-XXXXXX) && trap 'rm -rf "$$fresh"' EXIT \
	  && python3 -m venv "$$fresh" && "$$fresh/bin/pip" install --quiet uv==0.13.8 && mv "$$fresh/bin/uv" $@ \
	  || { echo "uv, which packages are installed with, is not on the PATH, and pip cannot get it; install uv first" >&2; exit 1; }

# What tests need and no package registry of Python's has. On Debian it is installed; where it cannot be, `make test`
# skips those tests, and names them at its end.
machine:
	@{ command -v chromium && command -v chromium-headless-shell && command -v busybox && command -v curl && command -v jq && command -v java \
	    && /sbin/ldconfig -p | grep libatomic.so.1; } >/dev/null && exit; \
	  echo "installing Chromium, Java and small tools by apt-get: minutes, the first time ..."; \
	  { $(SUDO) apt-get -qq update && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
	    chromium chromium-headless-shell busybox curl jq default-jre-headless libatomic1; } >/dev/null 2>&1 \
	  || echo "not installed: chromium, chromium-headless-shell, busybox, curl, jq, java or libatomic; see the end of the tests" >&2

setup: $(NEEDED_UV) ## the locked Python environment
	@[ -d .venv ] || echo "installing Python packages in .venv: a minute or two, the first time ..."
	@set -o pipefail; $(UV) sync --frozen 2>&1 | { grep -vE '^ [+~-] |^(Audited|Checked|Resolved) ' || true; }

demo: setup ## laptop cloud, deploy, replay real input, show what came of it
	@$(RUN) streakline demo

test: setup machine ## all tests: unit, integration, end to end, 10 fault schedules, 20 rounds against the oracle
	@$(RUN) pytest -n 4 --dist loadgroup --ignore tests/recipes --durations 10

test-all: setup machine ## each night: these, those that they leave to soak, and each step of each recipe
	@ended=0; export ALL=1; $(RUN) pytest -n 4 --dist loadgroup --ignore tests/recipes --durations 10 || ended=$$?; \
	  $(RUN) pytest tests/recipes -n 2 || ended=$$?; exit $$ended

recipes: setup ## carry out docs/recipes on copies: completely, and without each step
	@$(RUN) pytest tests/recipes -n 2

unit: setup
	@$(RUN) pytest tests/unit tests/infra -n 2 --dist loadgroup

template: setup ## template.yaml, infra/observability.yaml and tables of documents, from what they follow from
	@$(RUN) python -m infra.assemble

# The parts run two at a time, the longest first. One process for the tests: several would each import everything.
check: setup ## the gate: format, lint, types, imports, templates, unit tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-tests check-style check-types check-templates

check-tests:
	@$(RUN) pytest tests/unit tests/infra --hypothesis-profile=gate

check-style:
	@$(RUN) ruff format --check . && $(RUN) ruff check . && $(RUN) lint-imports && $(RUN) python -m infra.assemble --check

check-types:
	@$(RUN) mypy

check-templates:
	@$(RUN) cfn-lint template.yaml infra/*.yaml

models: setup ## the SQL that follows from declarations in rules/
	@$(RUN) python -m analytics.generated_models

clients: setup ## the clients' types from the API, the page's elements, and the npm package in client/typescript/dist
	@$(RUN) npm --prefix client/typescript ci --ignore-scripts --silent
	@$(RUN) python -m infra.client_types
	@$(RUN) npm --prefix client/typescript run --silent build

DIST := dist
dist: setup ## what is released, with checksums, in dist/: command, clients, and all that a deployment is made of
	@$(MAKE) --no-print-directory dist-python dist-typescript dist-sums

dist-python:
	@rm -rf "$(DIST)" && $(UV) build --quiet --out-dir "$(DIST)" && $(UV) build --quiet --wheel --out-dir "$(DIST)" client/python
	@$(UV) export --quiet --frozen --no-dev --preview-features sbom-export --format cyclonedx1.5 -o "$(DIST)/streakline.cdx.json" >/dev/null

dist-typescript:
	@$(RUN) npm --prefix client/typescript ci --ignore-scripts --silent
	@$(RUN) npm --prefix client/typescript run --silent build
	@$(RUN) npm pack ./client/typescript --pack-destination "$(DIST)" --silent >/dev/null

dist-sums:
	@cd "$(DIST)" && { sha256sum streakline* || shasum -a 256 streakline*; } >SHA256SUMS 2>/dev/null
	@cd "$(DIST)" && wc -c streakline* | awk '!/total/ { what = /cdx/ ? "the packages that the command needs (CycloneDX)" : /client/ ? "the Python client" : /tgz/ ? "the TypeScript client, for npm" \
	    : /whl/ ? "the command" : "what a deployment is made of"; printf "%9d bytes  %s: %s\n", $$1, $$2, what }'

release-check: setup machine ## all of a release but the publishing: made, installed and used in clean environments
	@ALL=1 $(RUN) pytest tests/integration/test_dist.py tests/integration/test_sam_alone.py tests/unit/platform/test_release.py -n 2 --dist loadgroup

released: setup ## the templates as they are released: tests/infra/released.json.xz, which later ones are compared with
	@$(RUN) python -m tests.support.released_templates

units: setup ## measure what each path costs in AWS's units: local/plan/units.json, the budget
	@$(RUN) python -m bench.units

AGAINST := HEAD
golden: setup ## what this tree makes of fixed input against what a commit made: AGAINST=main~5
	@$(RUN) python -m tests.golden --against $(AGAINST)

docs: setup ## the documentation site, in .local/site; a link to nowhere ends the build
	@NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build --strict -f infra/mkdocs.yml && echo "open .local/site/index.html"

bench: setup ## budgets, each against what a user would pick instead
	@$(RUN) python -m bench.units --check && $(RUN) python -m bench

# What takes by the hour: the tests whose size tests/support/effort.py sets, and all properties.
SOAKED = $(shell grep -lE 'support.effort import|from hypothesis' tests/*/test_*.py tests/unit/*/test_*.py)
soak: setup machine ## 5,000 fault schedules and rounds against the oracle, all real input, properties with 500 examples
	@SOAK=1 $(RUN) pytest $(SOAKED) -n 2 --dist loadgroup --durations 10

up: setup ## the laptop cloud
	@$(RUN) streakline up

down: ## stop it
	@$(RUN) streakline down

ENVIRONMENT := default
deploy: setup ## to AWS, with your credentials: small, or ENVIRONMENT=standard or large (samconfig.toml)
	@$(RUN) python -m local.cloud.processes sam build
	@$(RUN) python -m local.cloud.processes sam deploy --config-env $(ENVIRONMENT)

clean:
	rm -rf .aws-sam .local .venv

# ---- sam build: calls these with ARTIFACTS_DIR, once for each function and each layer -------------
# A function gets the source that it may import: rules, adapters and the package of its Handler. The other
# packages that it imports are in a layer. READS_: further folders that the function reads at run time.
READS_MigrateFunction := sql
READS_WarehouseFunction := sql
READS_PageFunction := page

build-DependenciesLayer: $(NEEDED_UV)
	infra/layer/build "$(ARTIFACTS_DIR)" layer

build-AnalyticsLayer: $(NEEDED_UV)
	infra/layer/build "$(ARTIFACTS_DIR)" analytics

build-HooksLayer: $(NEEDED_UV)
	infra/layer/build "$(ARTIFACTS_DIR)" hooks

build-IdentityLayer: $(NEEDED_UV)
	infra/layer/build "$(ARTIFACTS_DIR)" identity

build-%:
	package=$$(sed -n '/^  $*:/,/Handler:/s/^ *Handler: \([a-z]*\).*/\1/p' template.yaml) && cp -R \
	  rules adapters $${package:?template.yaml has no Handler of $*} $(READS_$*) "$(ARTIFACTS_DIR)"
	find "$(ARTIFACTS_DIR)" -name __pycache__ -prune -exec rm -rf {} +
	python3 infra/layer/compile.py "$(ARTIFACTS_DIR)"
