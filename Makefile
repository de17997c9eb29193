# Streakline. `make demo` and `make test` do all the set-up that they need.
SHELL := /bin/bash
UV := $(shell command -v uv 2>/dev/null || echo .local/bin/uv)
RUN := $(UV) run --frozen --quiet

.PHONY: help setup browser demo test unit recipes check models template bench soak up down deploy clean
help: ## these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

.local/bin/uv: ## uv itself, where the machine has none
	@command -v uv >/dev/null || (python3 -m venv .local/uv && .local/uv/bin/pip install --quiet uv==0.13.8 \
	  && mkdir -p .local/bin && ln -sf ../uv/bin/uv .local/bin/uv)

# The browser that the page is tested in: the system's; without it those tests are skipped, and say so.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get -qq update && apt-get -qq install -y chromium; } >/dev/null 2>&1 || true

setup: $(if $(shell command -v uv 2>/dev/null),,.local/bin/uv) ## the locked Python environment
	@$(UV) sync --frozen --quiet

demo: setup ## laptop cloud, deploy, replay real input, show what came of it
	@$(RUN) streakline demo

test: setup browser ## all tests: unit, integration, end to end, 200 fault schedules
	@$(RUN) pytest -n 2 --dist loadgroup --ignore tests/recipes

recipes: setup ## carry out docs/recipes on copies: completely, and without each step
	@$(RUN) pytest tests/recipes -n 2

unit: setup
	@$(RUN) pytest tests/unit tests/infra -n 2 --dist loadgroup

template: setup ## template.yaml and infra/observability.yaml, assembled from their fragments
	@$(RUN) python -m infra.assemble

check: setup ## the gate: format, lint, types, imports, templates, unit tests
	@$(RUN) ruff format --check . && $(RUN) ruff check .
	@$(RUN) mypy
	@$(RUN) lint-imports
	@$(RUN) python -m infra.assemble --check
	@$(RUN) cfn-lint template.yaml infra/*.yaml
	@$(RUN) pytest tests/unit tests/infra -n 2 --dist loadgroup

models: setup ## the SQL that follows from declarations in rules/
	@$(RUN) python -m analytics.generated_models

bench: setup ## budgets, each against what a user would pick instead
	@$(RUN) python -m bench

soak: setup ## 5,000 fault schedules
	@SCHEDULES=5000 $(RUN) pytest tests/faults -n 2

up: setup ## the laptop cloud
	@$(RUN) streakline up

down: ## stop it
	@$(RUN) streakline down

deploy: setup ## to AWS, with the credentials of the environment
	@$(RUN) python -m local.cloud.tools sam build
	@$(RUN) python -m local.cloud.tools sam deploy --guided --capabilities CAPABILITY_IAM

clean:
	rm -rf .aws-sam .local .venv

# ---- sam build: called with ARTIFACTS_DIR, once for each function and for the layer ---------------
# A function gets the source that it may import, and nothing else; what it imports from outside is
# in the layer.
PACKAGES_EventsApiFunction := ingest
PACKAGES_UsersApiFunction := ingest
PACKAGES_EventsStreamFunction := ingest
PACKAGES_EngagementFunction := processors
PACKAGES_RanksFunction := processors
PACKAGES_PublisherFunction := processors
PACKAGES_LeadsApiFunction := ingest
PACKAGES_LeadsFunction := ingest
PACKAGES_MigrateFunction := ingest sql
PACKAGES_LeadEventsFunction := processors
PACKAGES_MemoryFunction := processors
PACKAGES_FeaturesFunction := processors
PACKAGES_RefreshFunction := processors
PACKAGES_QuestionsApiFunction := ingest
PACKAGES_AnswersFunction := processors
PACKAGES_NotifyFunction := processors
PACKAGES_RemindersFunction := processors
PACKAGES_PageFunction := ingest page
PACKAGES_OperationsApiFunction := ingest
PACKAGES_CurateFunction := analytics
PACKAGES_WarehouseFunction := analytics sql
PACKAGES_ReconcileFunction := analytics sql

build-DependenciesLayer:
	infra/layer/build "$(ARTIFACTS_DIR)" layer

build-AnalyticsLayer:
	infra/layer/build "$(ARTIFACTS_DIR)" analytics

build-IdentityLayer:
	infra/layer/build "$(ARTIFACTS_DIR)" identity

build-%:
	cp -r --parents rules adapters $(PACKAGES_$*) "$(ARTIFACTS_DIR)"
	find "$(ARTIFACTS_DIR)" -name __pycache__ -prune -exec rm -rf {} +
	python3 infra/layer/compile.py "$(ARTIFACTS_DIR)"
