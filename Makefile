# `make help` lists what there is. Every target makes what it needs first.

# What the demonstration compares; a few minutes on two cores, as root. At 16,000 IOPS two cores would be the limit, not the volume.
DEMO_ARGS ?= gp3 gp3:iops=8000 io2bx:iops=8000 --warmup 10s --duration 20s

PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint fix bench generate lock clean

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## .venv with the locked packages, the engine and .venv/bin/pgdyno
	@tools/setup

demo: setup ## compare PostgreSQL on three emulated volumes, and write a report
	.venv/bin/pgdyno compare $(DEMO_ARGS)

test: setup ## every test that this machine can run; a skipped one says why
	@tools/run_tests

lint: setup ## formatting, types, dependencies between parts, and the rules of STYLE.md
	@tools/run_lint

fix: setup ## let the formatters and ruff repair what they can
	cargo fmt --all
	$(PY) -m ruff check --fix python tests tools
	$(PY) -m ruff format python tests tools

bench: setup ## measurements of pgdyno itself; ONLY=fidelity measures those of tests/fidelity alone
	@tools/run_tests --bench $(ONLY)

generate: setup ## write the generated files again (`make lint` checks them)
	$(PY) tools/generate.py

lock: setup ## choose newer Python packages and write requirements.lock again
	$(PY) -m pip install --quiet uv
	$(PY) -m uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-emit-index-url --no-annotate --no-header --quiet --output-file requirements.lock

clean: ## remove what setup and the builds made; results stay
	rm -rf .venv target python/pgdyno/_build_hash.txt
