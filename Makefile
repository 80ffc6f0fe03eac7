# Everything installs into .venv; nothing but Python >= 3.11, make and git is assumed.
RECENT := import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed: make PYTHON=...")
PYTHON ?= $(or $(shell for each in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$each -c '$(RECENT)' 2>/dev/null && echo $$each && break; done),python3)
VENV   := .venv
BIN    := $(VENV)/bin
RELEASE_VENV := build/release-venv
DEMO_VENV := build/demo-venv
DEMO   := examples/explain/no-device-matches

# Without bytecode each of a thousand processes would compile the package, and each worker the tests.
check test live: export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo check test exhaustive live node lint format typecheck schemas docs lock locks generated completions record record-nodes benchmark dist release clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# uv is several times as fast, where it is there. --seed: tests call pip.
ifneq ($(shell command -v uv 2>/dev/null),)
venv    = uv venv --quiet --seed --clear --python "$$(command -v $(PYTHON))" $(1)
install = uv pip install --quiet --python $(1) --constraint constraints.txt
else
venv    = $(PYTHON) -m venv $(1)
install = $(1)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
endif

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c '$(RECENT)'
	$(call venv,$(VENV))
	$(call install,$(VENV)) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(call install,$(VENV)) -e '.[dev]'
	@touch $@

# What answers from files need: nothing is built. cel-python and all that comes with it is for a second opinion on CEL.
FOR_FILES := import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print(*(name for name in project["dependencies"] if not name.startswith("cel-python")), sep="\n")

$(DEMO_VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c '$(RECENT)'
	@$(call venv,$(DEMO_VENV))
	@$(PYTHON) -c '$(FOR_FILES)' >$(DEMO_VENV)/for-files.txt
	@$(call install,$(DEMO_VENV)) --no-compile --requirement $(DEMO_VENV)/for-files.txt
	@touch $@

demo: $(DEMO_VENV)/.installed ## Explain a pending pod of examples/explain, seconds after a clone
	@cd $(DEMO) && echo "$$ cd $(DEMO)" && echo "$$ $$(cat command)" && echo && \
		{ PYTHONPATH=$(CURDIR) $(CURDIR)/$(DEMO_VENV)/bin/python -m kubectl_dra $$(sed -e 's/^kubectl dra //' command); \
		  code=$$?; echo; test $$code -eq 1 && echo "(exit code 1: the pod cannot be scheduled)"; }

check: lint typecheck ## Under a minute: ruff, mypy, and the tests that need nothing but Python
	$(BIN)/python -m pytest -n auto --dist loadgroup --quick $(PYTEST_ARGS)

# A control plane that breaks down fails all tests after it, each by its own time limit: the run ends, and says which.
test: $(VENV)/.installed-dev ## Run all tests; builds the control plane for them first, once, where Go is there
	@$(BIN)/python -m tools.controlplane.program >/dev/null || true
	@$(BIN)/python -m tools.controlplane.program --node >/dev/null || true
	@$(BIN)/python -m tools.helm >/dev/null || true
	$(BIN)/python -m pytest -n auto --dist loadgroup --maxfail=30 --session-timeout=3300 $(PYTEST_ARGS)

exhaustive: $(VENV)/.installed-dev ## Run what takes an hour or so: every recording in every way
	$(BIN)/python -m pytest -n auto -m exhaustive --exhaustive $(PYTEST_ARGS)

live: $(VENV)/.installed-dev ## Run the scenarios on one release's control plane: make live KUBERNETES=1.35 GATES=A=true
	KUBECTL_DRA_KUBERNETES=$(KUBERNETES) KUBECTL_DRA_GATES=$(GATES) \
		$(BIN)/python -m pytest -n auto -rs tests/controlplane tests/explain/live $(PYTEST_ARGS)

NODES := 1

node: $(VENV)/.installed-dev ## Start a cluster with real kubelets and a driver to play with: make node NODES=2 KUBERNETES=1.37
	@$(BIN)/python -m tools.controlplane.cluster_of_nodes --nodes $(NODES) $(addprefix --kubernetes ,$(KUBERNETES)) \
		$(addprefix --gates ,$(GATES))

lint: $(VENV)/.installed-dev ## ruff: lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.installed-dev ## Reformat
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: $(VENV)/.installed-dev ## mypy --strict
	$(BIN)/mypy

schemas: $(VENV)/.installed-dev ## Write the JSON Schemas of Kubernetes kinds from a real server
	$(BIN)/python -m tools.controlplane.schemas

docs: $(VENV)/.installed-dev ## Write the generated pages under docs/, and the site into site/
	$(BIN)/python -m tools.docs.cel_reference docs/cel.md
	$(BIN)/python -m tools.docs.commands docs/commands
	$(BIN)/python -m tools.docs.causes docs/causes
	$(BIN)/python -m tools.docs.rules docs/rules
	$(BIN)/python -m tools.docs.changes docs/changes
	$(BIN)/python -m tools.docs.vendors docs/vendors.md
	$(BIN)/python -m tools.docs.features docs/features.md
	$(BIN)/python -m tools.docs.anonymized docs/anonymized.md
	$(BIN)/python -m tools.docs.schemas docs/schemas.md
	$(BIN)/python -m tools.docs.screens docs/images
	$(BIN)/python -m tools.docs.dashboard examples/monitoring/grafana-dashboard.json
	$(BIN)/python -m tools.docs.console
	$(BIN)/python -m tests.test_readme
	$(BIN)/python -m tools.docs.messages docs/messages.md
	$(BIN)/python -m tools.docs.site

LOCK := build/lock-venv/bin/uv pip compile --quiet --universal --python-version 3.11 --no-annotate \
	--custom-compile-command "make lock"

lock: ## Write constraints.txt and packaging/locks: the newest versions that go together, with hashes of what is shipped
	$(PYTHON) -m venv build/lock-venv
	build/lock-venv/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOCK) --upgrade --all-extras pyproject.toml --output-file constraints.txt
	$(MAKE) --no-print-directory locks

locks: # The same versions again, with hashes.
	$(LOCK) --generate-hashes --constraint constraints.txt pyproject.toml --output-file packaging/locks/run.txt
	$(LOCK) --generate-hashes --constraint constraints.txt --extra program pyproject.toml --output-file packaging/locks/program.txt
	$(LOCK) --generate-hashes --constraint constraints.txt --extra release pyproject.toml --output-file packaging/locks/release.txt
	echo hatchling | $(LOCK) --generate-hashes --constraint constraints.txt - --output-file packaging/locks/build.txt

generated: completions ## Write everything that is generated, also what examples and golden tests expect: read the difference
	$(BIN)/python -m tools.docs.examples
	$(BIN)/python -m tests.golden.cases
	$(BIN)/python -m tests.golden.pages
	$(MAKE) --no-print-directory docs

completions: $(VENV)/.installed-dev ## Write completions/ and the table of flags from the commands
	$(BIN)/python -m tools.docs.completions

record: $(VENV)/.installed-dev ## Record what a release answers: make record KUBERNETES=1.37.3
	$(BIN)/python -m tools.recorder.allocator --kubernetes $(KUBERNETES)
	$(BIN)/python -m tools.recorder.selectors --kubernetes $(KUBERNETES)
	$(BIN)/python -m tools.recorder.manifests --kubernetes $(KUBERNETES)

record-nodes: $(VENV)/.installed-dev ## Record the states of real nodes on a release: make record-nodes KUBERNETES=1.37
	$(BIN)/python -m tools.recorder.nodes $(addprefix --kubernetes ,$(KUBERNETES))

benchmark: $(VENV)/.installed-dev ## Run the benchmark programs
	$(BIN)/python -m tools.benchmarks.cel
	$(BIN)/python -m tools.benchmarks.search
	$(BIN)/python -m tools.benchmarks.explain
	$(BIN)/python -m tools.benchmarks.paged

$(RELEASE_VENV)/.installed: packaging/locks/release.txt
	$(call venv,$(RELEASE_VENV))
	$(call install,$(RELEASE_VENV)) --require-hashes --requirement $<
	@touch $@

dist: $(RELEASE_VENV)/.installed ## Build what runs here into dist/: wheel, programs; their bill of materials, provenance, checksums
	rm -rf dist
	$(RELEASE_VENV)/bin/python -m build --wheel --no-isolation --outdir dist . >/dev/null
	$(RELEASE_VENV)/bin/python packaging/pyz.py --wheel dist/kubectl_dra-*.whl --output dist/kubectl-dra.pyz
	$(RELEASE_VENV)/bin/python packaging/standalone.py --wheel dist/kubectl_dra-*.whl --output dist
	$(RELEASE_VENV)/bin/python packaging/sealed.py --wheel dist/kubectl_dra-*.whl --output dist

release: $(RELEASE_VENV)/.installed ## Build and check everything that a release publishes into dist/
	$(RELEASE_VENV)/bin/python packaging/release.py $(RELEASE_ARGS)

clean: ## Remove what the targets made
	rm -rf $(VENV) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis
