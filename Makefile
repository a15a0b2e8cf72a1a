# `make` alone lists what there is. Everything works with Python 3.11+, make and git; servers need Docker with compose.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=
SECONDS ?= 120

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-backend up down check format bench soak wheel clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  BACKEND=postgresql chooses the server; ARGS='-k append -x' is handed on to pytest or the benchmarks"

venv: $(STAMP) ## Make .venv with chatkeep and everything its development needs

# pip 25.1 is the first that knows dependency groups; the pip that comes with Python 3.11 to 3.13 is older.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than Python 3.11; name another: make PYTHON=python3.12 …" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	@touch $@

demo: venv ## Show what chatkeep does, without any server
	$(BIN)/chatkeep demo

test: venv ## Run every test that can run here; says at the end what was skipped and why
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadgroup $(ARGS)

test-backend: need-backend venv ## Run the tests of one BACKEND; without its server they fail
	REQUIRE_BACKENDS=$(BACKEND) $(BIN)/python -m pytest -m $(BACKEND) $(ARGS)

up: need-backend ## Start the server of BACKEND and wait until it answers
	docker compose up --wait $(BACKEND)
	@docker compose ps $(BACKEND)

down: need-backend ## Remove the server of BACKEND and its data
	docker compose rm --stop --force --volumes $(BACKEND)

check: venv ## Lint, check the format and the types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: venv ## Put the code into the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: venv ## Run the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

soak: venv ## Hold BACKEND (sqlite) to the contract under load, for SECONDS (120)
	$(BIN)/python -m benchmarks.soak --backend $(or $(BACKEND),sqlite) --seconds $(SECONDS) $(ARGS)

wheel: venv ## Build the wheel into dist/
	$(BIN)/python -m build --wheel

clean: ## Remove what was built and cached; .venv stays
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: need-backend
need-backend:
	@test -n "$(BACKEND)" || { echo "which one? for example: make $(firstword $(MAKECMDGOALS)) BACKEND=postgresql" >&2; exit 2; }
