# `make help` lists what there is. Every target makes what it needs first.

# Options of `pgdyno compare` for the demonstration.
DEMO_ARGS ?=

PY := .venv/bin/python
# For programs of tools/ that need the package's Python files, and not the engine that `make setup` builds.
PY_SOURCES := PYTHONPATH=python $(PY)

.DEFAULT_GOAL := help
.PHONY: help setup packages demo test lint fix bench generate wheel sdist site lock clean

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## .venv with the locked packages, the engine and .venv/bin/pgdyno
	@tools/setup

packages:
	@tools/setup --packages

demo: setup ## compare PostgreSQL on three emulated volumes, and write a report
	.venv/bin/pgdyno demo $(DEMO_ARGS)

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

generate: setup ## write the schemas, and the guide to published comparisons, again
	$(PY) tools/generate.py

wheel: packages ## dist/: the package with an engine for every Linux with glibc 2.28, examined
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-wheel.lock
	$(PY_SOURCES) -m tools.wheel

sdist: packages ## dist/: the sources, which pip builds with Rust
	$(PY_SOURCES) -m tools.wheel.sdist

site: setup ## dist/site/: the documents and the reference as pages, to browse and to search without a network
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-site.lock
	$(PY) -m tools.site

lock: setup ## choose newer Python packages and write the lock files again
	$(PY) -m pip install --quiet uv
	$(PY) -m uv pip compile pyproject.toml --group dev --extra hosts --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-emit-index-url --no-annotate --no-header --quiet --output-file requirements.lock
	$(PY) -m uv pip compile --group wheel --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-emit-index-url --no-annotate --no-header --quiet --output-file requirements-wheel.lock
	$(PY) -m uv pip compile --group site --universal --python-version 3.11 --generate-hashes --upgrade --constraint requirements.lock \
		--no-emit-index-url --no-annotate --no-header --quiet --output-file requirements-site.lock

clean: ## remove what setup and the builds made; results stay
	rm -rf .venv target dist python/pgdyno/_build_hash.txt
