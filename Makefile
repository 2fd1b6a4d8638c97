# make demo: watch a stand-in node. make test: the whole suite. Both make their own environment.
VENV ?= .venv
PY := $(VENV)/bin/python
PYTHON ?= $(shell command -v python3.11 || command -v python3)
WORKERS ?= 4

.PHONY: demo test lint types imports check bench contract soak pictures findings man licences lock clean

$(VENV)/.ready: requirements.lock pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
		uv venv -q --allow-existing --python $(PYTHON) $(VENV) && \
		uv pip install -q --compile-bytecode --python $(PY) --require-hashes -r requirements.lock && \
		uv pip install -q --python $(PY) --no-deps --no-build-isolation -e . ; \
	else \
		$(PYTHON) -m venv $(VENV) && \
		$(PY) -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock && \
		$(PY) -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi
	@$(PY) -m compileall -q ranktop collectors tui themes
	@touch $@

demo: $(VENV)/.ready
	@$(VENV)/bin/ranktop demo $(ARGS)

test: $(VENV)/.ready
	@$(PY) -m pytest -n $(WORKERS) $(ARGS)

lint: $(VENV)/.ready
	@$(PY) -m ruff check . && $(PY) -m ruff format --check .

types: $(VENV)/.ready
	@$(PY) -m pyright

imports: $(VENV)/.ready
	@$(VENV)/bin/lint-imports

check: lint types imports test

# Every figure against its budget, in about 15 minutes of a quiet machine; ARGS="judge render": these parts.
bench: $(VENV)/.ready
	@$(PY) -m tests.bench $(ARGS)

# make contract VERSION=0.5.24: what ranktop relies on, looked up in that release of SGLang.
contract: $(VENV)/.ready
	@$(PY) -m tests.contract.check $(VERSION)

# The long runs: fuzzing, kills, cuts, flips, hours of demo. ARGS=tests/recording: those of that folder alone.
soak: $(VENV)/.ready
	@RANKTOP_SOAK=10 $(PY) -m pytest $(ARGS)

pictures: $(VENV)/.ready
	@$(PY) docs/make_pictures.py $(ARGS)

# docs/findings.md is the catalogue of rules, printed.
findings: $(VENV)/.ready
	@$(PY) -m ranktop.reconcile.catalogue > docs/findings.md

# man/ranktop.1 is the help of every command, for man(1).
man: $(VENV)/.ready
	@$(PY) man/make_man.py

# docs/licences.md is what the packages of the lock say of themselves.
licences: $(VENV)/.ready
	@$(PY) docs/make_licences.py

lock:
	uv pip compile -q --universal --generate-hashes --python-version 3.11 --extra test pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) dist build .pytest_cache .hypothesis .ruff_cache
