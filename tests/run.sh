#!/usr/bin/env bash
# Sets up, builds everything with warnings as errors and runs every test. Arguments are passed on to ctest.
set -euo pipefail
cd "$(dirname "$0")/.."
TARE_CMAKE_ARGS="-DTARE_WARNINGS_AS_ERRORS=ON" bash framework/cmake/build.sh
ctest --test-dir build --output-on-failure --no-tests=error -j 2 "$@"
