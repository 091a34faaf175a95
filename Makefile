# Everything runs in .venv, made from uv.lock by `make install`; UV_PROJECT_ENVIRONMENT names another folder.
# Another interpreter: make install PYTHON=/path/to/python3.13

UV := sh scripts/uv.sh
RUN := $(UV) run --frozen --no-sync

# What runs the command that runs the tests: scripts/again.py in CI.
AGAIN ?=

# Arguments for pytest, such as `make test ARGS="-k cursor"`.
ARGS ?=

# Tests wait for programs more than they work: twice as many workers as there are cores keep those busy.
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 2 )))
# Files are given out in the order of tests/conftest.py, the quick ones last, so that no worker ends long after the rest.
PYTEST_OPTIONS := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help install demo test containers lint coverage check format docs bench clean

help: ## Show these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Bytecode is compiled here because PYTHONDONTWRITEBYTECODE may be set, and a server without it starts seconds later.
install: ## Make the environment (Python 3.11 or newer; uv is brought along where missing)
	$(UV) sync --frozen --compile-bytecode
	@$(RUN) python -m compileall -q src idp/src

demo: install ## Show the product at work
	$(UV) run --frozen python examples/demo.py $(ARGS)

test: install ## Run the tests, but for the long proofs
	$(RUN) $(AGAIN) pytest $(PYTEST_OPTIONS) $(ARGS)

containers: install ## Build the container files and run them; needs an engine
	$(RUN) pytest -n 0 -rs --containers tests/containers $(ARGS)

lint: install ## Run every check but the tests
	$(RUN) ruff check
	$(RUN) ruff format --check
	$(RUN) basedpyright
	$(RUN) lint-imports --no-logo
	$(RUN) codespell
	$(UV) lock --check

coverage: install ## Run all tests, measured; fails below the floor in pyproject.toml
	$(RUN) coverage erase
	$(RUN) $(AGAIN) coverage run -m pytest $(PYTEST_OPTIONS) --exhaustive $(ARGS)
	$(RUN) coverage combine --quiet
	$(RUN) coverage report

check: lint coverage ## Run all that a change must pass

format: install ## Put the source in order
	$(RUN) ruff check --fix
	$(RUN) ruff format

docs: install ## Write the reference pages of the docs from the code
	$(RUN) python -m docs.generate

bench: install ## Measure against what a person would use instead
	$(RUN) python benchmarks/run.py $(ARGS)

clean: ## Remove what these targets made
	rm -rf .venv .venv-* .uv-bootstrap dist build htmlcov .coverage .coverage.* \
		.pytest_cache .ruff_cache .hypothesis .import_linter_cache .benchmarks demo-output
	find src idp tests benchmarks docs examples scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
