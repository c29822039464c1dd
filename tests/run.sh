#!/usr/bin/env bash
# Sets up, builds everything and runs every test. Arguments are passed on to ctest.
set -euo pipefail
cd "$(dirname "$0")/.."
bash framework/cmake/build.sh
# Where there is a CUDA toolkit the CUDA room must have been built.
if [ -e "${CUDA_HOME:-/usr/local/cuda}/include/cuda_runtime_api.h" ] && [ ! -e build/lib/libtare_cuda.so ]; then
  echo "a CUDA toolkit is here, but build/lib/libtare_cuda.so was not built" >&2
  exit 1
fi
ctest --test-dir build --output-on-failure --no-tests=error -j 2 "$@"
