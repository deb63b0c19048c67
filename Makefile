# The two commands of the README are `make demo` and `make test`. Both install what is missing first.
# Everything that is built lies in build/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.PHONY: setup build demo test asan soak bench format check-format tidy clean
.DEFAULT_GOAL := build

# All cores, but no more jobs than there are gigabytes of free memory: one job may need one.
JOBS ?= $(shell cores=$$(nproc); \
          free=$$(awk '/MemAvailable/ {print int($$2 / 1048576)}' /proc/meminfo); \
          echo $$(( free < 1 ? 1 : free < cores ? free : cores )))
CMAKE_OPTIONS = -DBRAID_PYTHON=$(CURDIR)/build/venv/bin/python3 \
                $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
CTEST = ctest -j $(JOBS) --output-on-failure --no-label-summary

# $(call build-preset,NAME[,TARGETS]): configures when there is need, then builds.
build-preset = cmake --preset $(1) $(CMAKE_OPTIONS) >build/$(1).log 2>&1 || \
                 { tail -n 20 build/$(1).log >&2; exit 3; }; \
               cmake --build --preset $(1) -j $(JOBS) $(if $(2),--target $(2))

setup:
	@scripts/setup.sh

build: setup
	@$(call build-preset,release)

demo: setup
	@$(call build-preset,release,braid-cli braid_cpu)
	@build/release/bin/braid run examples/llama_mlp.json --device cpu --bind T=8 --check

# The host code under AddressSanitizer and UndefinedBehaviorSanitizer: the tests that are light enough,
# and 20 seconds of fuzzing for each parser.
asan: setup
	@$(call build-preset,asan,asan_tests)
	@# Clang 14's leak checker now and then crashes on thread-local storage of libraries loaded late.
	@LSAN_OPTIONS=use_tls=0:print_suppressions=0:suppressions=$(CURDIR)/tests/lsan.supp \
	  $(CTEST) --test-dir build/asan -L 'asan|fuzz' -E fuzz_ptx

test: check-format asan build
	@$(CTEST) --test-dir build/release -LE 'soak|gpu'

soak: build
	@$(CTEST) --test-dir build/release -L soak --timeout 86400
	@$(call build-preset,asan,run_test braid_cpu)
	@build/asan/bin/run_test --gtest_filter='*RandomGraph*/0'
	@$(call build-preset,fuzz)
	@build/release/bin/braid compile examples/llama_mlp.json --target sm_80 -o build/fuzz/seeds
	@for target in graph safetensors cache ptx; do \
	  mkdir -p build/fuzz/corpus/$$target; \
	  build/fuzz/bin/fuzz_$$target -max_total_time=600 -timeout=60 -rss_limit_mb=4096 \
	    build/fuzz/corpus/$$target build/fuzz/seeds examples; \
	done
	@$(call build-preset,tsan,asan_tests)
	@$(CTEST) --test-dir build/tsan -L asan

bench: build
	@build/venv/bin/python3 bench/run.py --build build/release

format:
	@scripts/format

check-format: setup
	@scripts/format --check

# From a configuration of its own: clang-tidy cannot read another compiler's precompiled headers.
tidy: setup
	@cmake --preset release -B build/tidy $(CMAKE_OPTIONS) -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
	  -DCMAKE_CXX_COMPILER=clang++-14 >build/tidy.log
	@run-clang-tidy-14 -quiet -j $(JOBS) -p build/tidy '/(src|examples)/.*\.cpp$$'

clean:
	@rm -rf build/release build/debug build/asan build/tsan build/fuzz build/tidy
