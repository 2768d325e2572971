# The few verbs people use. `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
# Hundreds of processes are started by the tests: each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed (PYTHON=…)."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || scripts/install-system-packages python3-venv
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps -e .
	@touch $@

setup: $(VENV)/ready ## make .venv with everything in it, pinned

up: setup ## start the server in this folder and print its address
	@$(BIN)/labwright up -d --no-browser

down: setup ## end it; runs go on
	@$(BIN)/labwright down

demo: setup ## from a goal to a report in a throw-away project; then the server stays up until Ctrl-C
	@command -v bwrap >/dev/null || scripts/install-system-packages bubblewrap || echo "Without bubblewrap the demo has no rehearsal."
	@scripts/demo

tour: setup ## the parts one by one: runs, sweeps, failures, a kill, simulated GPUs and Slurm
	@scripts/demo tour

system: ## system packages that the tests use
	@scripts/install-system-packages bash bubblewrap chromium curl fonts-dejavu-core gcc git libc6-dev munge procps \
		slurm-wlm tmux util-linux

test: setup system ## everything but what takes minutes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/oxfmt --check src/labwright/server/dashboard
	$(BIN)/mypy
	$(BIN)/pytest -n 4 --dist worksteal -m "not slow"

format: setup ## format the Python and JavaScript code
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	$(BIN)/oxfmt src/labwright/server/dashboard

test-all: setup system ## the slow ones too
	$(BIN)/pytest -n 2 --dist worksteal --hypothesis-profile=searching

chaos: setup system ## 15 minutes of kills, full and slow disks, clocks that jump, a Slurm whose controller dies
	$(BIN)/python -m tests.chaos

soak: setup system ## five runs a second for two hours: nothing may grow
	$(BIN)/python -m tests.soak

bench: setup ## the figures, beside their targets and peers
	$(BIN)/python -m benchmarks

pictures: setup system ## those of the docs, taken anew
	$(BIN)/python -m tests.pictures

package: setup ## the wheel and the source archive, in dist/
	$(BIN)/python -m hatchling build

lock: setup ## pin the requirements anew, with hashes and without addresses
	$(BIN)/python -m pip install --quiet uv
	cd requirements && for part in runtime dev; do \
		UV_PYTHON_DOWNLOADS=never ../$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes \
		--allow-unsafe --custom-compile-command "make lock" $$part.in -o $$part.txt; done

.PHONY: help setup up down demo tour system test format test-all chaos soak bench pictures package lock
