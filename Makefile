# Shorthands for who develops braid. The README's two commands are scripts/demo and scripts/test, which
# need no make. Everything that is built lies in build/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.PHONY: setup build demo test soak bench doc format check-format tidy clean
.DEFAULT_GOAL := build

IN = source scripts/lib.sh;

setup:
	@scripts/setup.sh

build: setup
	@$(IN) configure release -DBRAID_TESTS=ON -DBRAID_BENCH=ON; build release

demo:
	@scripts/demo

test:
	@scripts/test

soak: build
	@scripts/setup.sh soak
	@scripts/soak

bench: build
	@build/venv/bin/python3 bench/run.py --build build/release

doc: setup
	@doxygen docs/Doxyfile

format:
	@scripts/format

check-format:
	@scripts/format --check

# From a configuration of its own: clang-tidy cannot read another compiler's precompiled headers.
tidy: setup
	@$(IN) configure release -B build/tidy -DBRAID_UNIFY=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
	  -DCMAKE_CXX_COMPILER=clang++-14; \
	  run-clang-tidy-14 -quiet -j $$(job_count) -p build/tidy '/(src|examples)/.*\.cpp$$'

clean:
	@rm -rf build/release build/debug build/gpu build/gpu_objects build/asan build/tsan build/tidy
