# `make demo` and `make test` are all the set-up there is: each makes its own virtual environment.

PYTHON ?= python3
.PHONY: demo test clean

demo: .venv/installed
	.venv/bin/python examples/demo.py

test: .venv-test/installed
	.venv-test/bin/python -m pytest --numprocesses auto --dist loadgroup

.venv/installed: pyproject.toml
	sh scripts/make_venv.sh $(PYTHON) .venv
	.venv/bin/python -m pip install --quiet --editable .
	touch $@

.venv-test/installed: pyproject.toml
	sh scripts/make_venv.sh $(PYTHON) .venv-test
	.venv-test/bin/python -m pip install --quiet --editable '.[test]'
	touch $@

clean:
	rm -rf .venv .venv-test
