#!/bin/sh
# Random programs in number: each is searched, verified, emitted and run on the emulator
# (tests/cli/random_programs_test.cpp).
#
#   benchmarks/search/random_programs.sh [PROGRAMS [FIRST]]     from the root, after a release build
#
# PROGRAMS (1000) from number FIRST (0) on, both multiples of 25.
set -eu
per_batch=25
SUNDOG_RANDOM_PROGRAMS=${1:-1000} SUNDOG_RANDOM_FIRST_BATCH=$((${2:-0} / per_batch)) \
  exec build/release/cli_test --gtest_filter='*RandomProgramsSlowTest*' --gtest_brief=1
