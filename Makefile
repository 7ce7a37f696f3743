# The front door. Everything here is also a command that can be typed; what is
# behind them is `cargo xtask help`.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup compilers policies build demo test lint bench worlds yardstick kubernetes clean

# Recipes find cargo and the tools of set-up through this.
ENV := . scripts/env.sh &&
CRATER := target/release/crater
TRACES := $(or $(CRATER_TRACES),$(wildcard ../shared/data))
# Binaries land where the recipes expect them, whatever the caller's setting.
unexport CARGO_TARGET_DIR

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## install what building and testing need, where it is missing
	@echo '== setup'
	@scripts/setup.sh

# What a build needs of it: no test runner, nothing for Python or JavaScript.
compilers:
	@scripts/setup.sh --build

policies: compilers ## build every policy as a component: target/policies/*.wasm
	@echo '== policies'
	@$(ENV) cargo xtask policies

# All packages at once, as the tests have them: another selection would have
# other features, and cargo would compile the WebAssembly engine again.
build: policies ## build the program: target/release/crater
	@echo '== build'
	@$(ENV) cargo build --release --workspace --bins

demo: build ## watch a simulated cluster at work, then servers of your own
	@echo '== demo'
	@$(CRATER) simulate demo
	@scripts/demo-local.sh $(CRATER)
	@scripts/demo.sh $(CRATER)

test: setup policies ## every check and every test
	@echo '== lint'
	@$(ENV) cargo xtask lint
	@echo '== control plane'
	@$(ENV) cargo xtask kubernetes
	@echo '== tests'
	@$(ENV) cargo nextest run --release --workspace

lint: setup ## formatting, clippy, licences, the crate graph, generated files
	@echo '== lint'
	@$(ENV) cargo xtask lint

bench: build ## measure decisions, policies and the server: docs/bench.md
	@echo '== bench'
	@$(ENV) target/release/crater-bench

# About an hour on two cores; a failing world prints a minimal scenario.
worlds: setup ## run 20,000 random worlds; CRATER_SEED says where they begin
	@echo '== random worlds'
	@$(ENV) CRATER_SEEDS=$(or $(CRATER_SEEDS),20000) cargo test --release --package crater-sim \
	  --test random_world -- --nocapture

# Published traces are other people's: CRATER_TRACES names their folder.
yardstick: build ## repeat the published table: docs/yardstick.md; needs the traces
	@echo '== yardstick'
	@$(CRATER) simulate table $(if $(TRACES),--data '$(TRACES)') --markdown docs/yardstick.md $(ARGS)

kubernetes: build ## measure and try on a real API server: docs/kubernetes.md
	@echo '== kubernetes'
	@$(ENV) cargo xtask kubernetes
	@$(ENV) cargo run --release --quiet --package crater-kubernetes -- measure
	@$(ENV) cargo run --release --quiet --package crater-kubernetes -- faults
	@$(ENV) cargo run --release --quiet --package crater-kubernetes -- faults 30 heedless

clean: ## remove what was built; the tools in .tools stay
	rm -rf target
