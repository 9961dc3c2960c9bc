# `make demo` and `make test` are all the set-up there is: each makes its own virtual environment.
# `make docs` makes the site of the documentation, docs/_build/html; it takes nothing from a network
# but that environment.
# `make check` is what to run before a commit: linters, types, and the tests of the parts that take no
# whole kernel. `make test-all` runs every case of which `make test` draws some; `make bench` compares
# the GEMM with Triton's, takes some hours, and has a column more where there is an llvm-mca-22 (apt
# install llvm-22); `make bench-peers` compares it with IREE's and Gluon's, in half an hour.

PYTHON ?= python3
FAST = tests/model tests/language tests/codegen tests/report tests/editor tests/emulator/text tests/emulator/machine
.PHONY: demo check test test-all bench bench-peers docs clean

demo: .venv/installed
	.venv/bin/python examples/demo.py

check: .venv-test/installed
	.venv-test/bin/ruff check --quiet
	.venv-test/bin/ruff format --check --quiet
	.venv-test/bin/mypy
	.venv-test/bin/python -m pytest --numprocesses auto --dist loadgroup $(FAST)

test: .venv-test/installed
	.venv-test/bin/python -m pytest --numprocesses auto --dist loadgroup

test-all: .venv-test/installed
	MFMADSL_TESTS=all .venv-test/bin/python -m pytest --numprocesses auto --dist loadgroup

bench: .venv-bench/installed
	.venv-bench/bin/python -m benchmarks.gemm.compare

bench-peers: .venv-bench/installed
	.venv-bench/bin/python -m benchmarks.gemm.iree_and_gluon

docs: .venv-docs/installed
	rm -rf docs/_build
	.venv-docs/bin/python -m sphinx -W --keep-going --fresh-env --quiet --conf-dir docs . docs/_build/html
	@echo docs/_build/html/index.html

.venv/installed: pyproject.toml
	sh scripts/make_venv.sh $(PYTHON) .venv
	sh scripts/install.sh .venv .
	touch $@

.venv-test/installed: pyproject.toml
	sh scripts/make_venv.sh $(PYTHON) .venv-test
	sh scripts/install.sh .venv-test '.[test]'
	sh scripts/trim.sh .venv-test
	sh scripts/install_browser.sh
	touch $@

.venv-bench/installed: pyproject.toml
	sh scripts/make_venv.sh $(PYTHON) .venv-bench
	sh scripts/install.sh .venv-bench '.[bench]'
	touch $@

.venv-docs/installed: pyproject.toml
	sh scripts/make_venv.sh $(PYTHON) .venv-docs
	sh scripts/install.sh .venv-docs '.[docs]'
	touch $@

clean:
	rm -rf .venv .venv-test .venv-bench .venv-docs docs/_build
