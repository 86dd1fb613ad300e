# A thin front for CMake, lit and the scripts. `make demo` and `make check` set
# up everything that they need.
BUILD := build
JOBS := $(shell nproc)

.PHONY: setup build demo check-quick check check-full accuracy docs \
        install format clean

setup:
	@scripts/setup.sh

# After set-up, also under make -j: configuring looks for what that installs.
$(BUILD)/build.ninja: CMakeLists.txt CMakePresets.json | setup
	mkdir -p $(BUILD) && cmake --preset default >$(BUILD)/configure.log || { cat $(BUILD)/configure.log; exit 1; }

build: setup $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS)

## demo: exports and compiles a real model, asks it something.
demo: build
	@scripts/demo.sh

## check-quick: formatting, unit tests and lit, under 3 minutes when built.
check-quick: build
	@scripts/check.sh quick

## check: what CI runs.
check: build
	@scripts/check.sh default

## check-full: sweeps, long fuzzing, conformance, clang-tidy everywhere.
check-full: build
	@scripts/check.sh full

## accuracy: perplexity of every recipe, against its bound.
accuracy: build
	@$(BUILD)/venv/bin/python benchmarks/accuracy.py

## docs: regenerates docs/generated from the .td files.
docs: build
	@scripts/generate-docs.sh docs/generated

install: build
	@cmake --install $(BUILD) $(if $(PREFIX),--prefix $(PREFIX))

format:
	@git ls-files '*.cpp' '*.h' '*.c' | xargs clang-format-22 -i

clean:
	rm -rf $(BUILD)
