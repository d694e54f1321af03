# The standard library's venv and pip on purpose: a resolver that ignores pip's configuration (uv, poetry) would
# take torch's default build for Linux, which brings gigabytes of CUDA packages along.
# The stamps in .venv are older than the files they depend on exactly when something has to be installed.

PYTHON  ?= python3
PORT    ?= 8501
WORKERS ?= 3  # of two cores: some wait for processes
T       ?=
# Without bytecode on disk each interpreter would compile everything anew.
export PYTHONDONTWRITEBYTECODE :=

VENV := .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Drivers before 580 know CUDA 12 only, and torch's default build is for CUDA 13. Without a GPU the build for CPUs is
# preferred, where its index answers: the other one brings gigabytes of CUDA.
CUDA    ?= 13
LOCK    := requirements/lock.txt
PINNED  := --constraint $(LOCK)
PACKAGE := $(VENV)/.package$(CUDA:13=)
GPU     := $(wildcard /proc/driver/nvidia/version /dev/dxg)
BUILDS  := https://download.pytorch.org/whl
TORCH_INDEX := $(if $(filter 12,$(CUDA)),--extra-index-url $(BUILDS)/cu129,$(if $(GPU),,--extra-index-url $(BUILDS)/cpu --retries 1 --timeout 15))

ROOM     := $(if $(T),$(wildcard gpuexplore/$(T) tests/$(T) $(T)),.)
INSTALL  := tests/deploy/test_colab.py tests/deploy/test_pythons.py tests/deploy/test_lowest_versions.py  # beside what is left of a browser's or the measuring ones
PARALLEL := -q -n $(WORKERS) --dist worksteal

.PHONY: help install run lock check test parallel browser measuring installing heavy nightly features faults gpu evil ptx lint format types layers style bench kernels prediction models docs screenshots clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1 - \2/'

install: $(PACKAGE)  ## install what is missing into .venv (CUDA=12: for drivers before 580)

run: $(PACKAGE)  ## the same, then serve the app on http://127.0.0.1:8501 (PORT=...)
	FORWARDED_ALLOW_IPS="$$FORWARDED_ALLOW_IPS" $(BIN)/streamlit run app.py --server.port $(PORT)

check: $(VENV)/.dev  ## lint and the short tests that the change reaches; T=analysis: the tests of one part, long ones too
	@$(MAKE) --no-print-directory --jobs=3 lint
	$(BIN)/pytest $(PARALLEL) $(if $(T),tests/$(T) -m "not slow and not browser and not gpu and not faults and not ptx and not unchanged",-p tests.changed -m "not long and not slow and not browser and not gpu and not faults and not ptx")

test: style layers $(VENV)/.cuda130  ## lint and every test but faults and what rests on nothing that has changed: on WORKERS processes beside types, then a browser's beside those that measure, and those that install beside what is left
	@sh scripts/servers.sh
	@$(MAKE) --no-print-directory --jobs=2 parallel types
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target browser measuring installing

parallel: $(VENV)/.dev  ## the tests that may run beside each other, on WORKERS processes
	$(BIN)/pytest $(PARALLEL) -m "not slow and not browser and not gpu and not faults and not ptx and not unchanged"

browser: $(VENV)/.dev  ## the tests that drive a real Chromium, one by one
	CHROMIUM="$$(BIN=$(BIN) sh scripts/chromium.sh)" && export CHROMIUM && \
		$(BIN)/pytest -q -m "browser and not gpu" tests/browser

measuring: $(VENV)/.dev  ## the tests that measure or watch processes, and those of a GPU, one by one
	$(BIN)/pytest -q -m "(slow or gpu) and not browser" $$(grep -rlE "mark\.(slow|gpu)" tests --include="test_*.py" | sort | grep -vF "$$(printf '%s\n' $(INSTALL))")

installing: $(VENV)/.dev  ## the tests that install the wheel, one by one
	$(BIN)/pytest -q $(INSTALL)

heavy: $(VENV)/.dev $(VENV)/.cuda130  ## run every heavy test, and note in tests/passed.json which passed: make test leaves these out
	$(BIN)/pytest $(PARALLEL) -m heavy --note-passed

nightly: heavy test faults ptx features  ## every test there is, whatever has changed; three hours

features: $(VENV)/.dev  ## without each feature in turn, types, layers and the short tests of what is left; an hour
	$(BIN)/python -m scripts.without_feature --workers $(WORKERS)

faults: $(VENV)/.dev  ## kill, freeze and starve supervisors, workers, web servers and databases; ten minutes
	@sh scripts/servers.sh
	$(BIN)/pytest -q -m faults

ptx: $(VENV)/.dev  ## compile every CUDA kernel, run its PTX in the interpreter, at every shape and mutated; half an hour
	$(BIN)/pytest $(PARALLEL) -m "ptx"

gpu: $(VENV)/.dev  ## on a machine with a GPU: the tests that need one, then the self-test, ten minutes, with a report to send
	@tests=0; $(BIN)/pytest -q -m gpu || tests=$$?; $(BIN)/gpuexplore selftest && exit $$tests

evil: $(VENV)/.dev  ## try implementations that cheat, crash or hang, by command line and queue; ten minutes
	$(BIN)/python -m benchmarks.evil

lint: style types layers  ## check format, style, types and layers

style: $(VENV)/.dev
	$(BIN)/ruff format --check $(ROOM)
	$(BIN)/ruff check $(ROOM)

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev  ## format, and repair what can be repaired
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev  ## gpuexplore against its peers
	$(BIN)/python -m benchmarks.measurement
	$(BIN)/python -m benchmarks.kernels
	$(BIN)/python -m benchmarks.prediction

kernels: $(VENV)/.dev $(VENV)/.cuda130  ## compile every CUDA kernel and record its registers, spills and main loop; then run what was recorded
	$(BIN)/python -m scripts.compiled_kernels --other $(VENV)/cuda130/bin/python
	$(BIN)/pytest $(PARALLEL) -m "ptx" tests/operations tests/kernels/test_cuda_compile.py

prediction: $(VENV)/.dev  ## fit the predictor of GPUs to the published measurements that ship, and predict what Explore shows of them
	$(BIN)/python -m scripts.fit_prediction
	$(BIN)/python -m scripts.explore_gpus

models: $(VENV)/.dev  ## fit the coefficients of whole models to the published steps that ship
	$(BIN)/python -m scripts.fit_models

docs: $(VENV)/.dev  ## write docs/support.md and the tables of docs/gpu.md again
	$(BIN)/python -m scripts.support_matrix
	$(BIN)/python -m scripts.verified_gpus
	$(BIN)/python -m scripts.expected_gpus

screenshots: $(VENV)/.dev  ## take the pictures of the documentation again
	CHROMIUM="$$(BIN=$(BIN) sh scripts/chromium.sh)" && export CHROMIUM && \
		$(BIN)/python scripts/screenshots.py

lock: $(VENV)/.dev  ## pin what is installed here, after make test
	$(BIN)/python -m scripts.lock

clean:  ## remove the environment, caches and builds
	rm -rf $(VENV) build dist *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "gpuexplore needs Python 3.11 or newer, and $(PYTHON) is not: try make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "$(PYTHON) cannot create an environment: on Debian and Ubuntu, install python3-venv" >&2; exit 1; }
	@touch $@

# torch stands first, so that no other requirement decides which build of it is taken, nor which CUDA.
$(PACKAGE): pyproject.toml $(LOCK) | $(VENV)/.python
	@echo "Installing the requirements: a minute or two"
	@$(PIP) $(PINNED) $(TORCH_INDEX) torch
	@$(PIP) $(PINNED) torch --editable ".[app,cuda$(CUDA),sass,torch]"
	@$(BIN)/python -m compileall -q gpuexplore pages
	@rm -f $(VENV)/.package* $(VENV)/.dev
	@touch $@

# The CUDA toolkit that torch's build for CUDA brings, in an environment that has all else from this one.
$(VENV)/.cuda130: $(PACKAGE)
	@$(PYTHON) -m venv --without-pip $(VENV)/cuda130
	@$(BIN)/python -c 'import site; print("import site;", f"site.addsitedir({site.getsitepackages()[0]!r})")' > \
		"$$($(VENV)/cuda130/bin/python -c 'import site; print(site.getsitepackages()[0])')/rest.pth"
	@$(PIP) --no-deps nvidia-nvvm==13.0.88 nvidia-nvjitlink==13.0.88 nvidia-cuda-nvrtc==13.0.88 --target \
		"$$($(VENV)/cuda130/bin/python -c 'import site; print(site.getsitepackages()[0])')"
	@touch $@

$(VENV)/.dev: $(PACKAGE)
	@echo "Installing the development requirements"
	@$(PIP) $(PINNED) torch --editable ".[cuda$(CUDA),dev]"
	@touch $@
