#!/usr/bin/env bash
# Sets the machine up, configures the release preset into build/ and builds the targets named (default: all).
# The programs are left in build/bin.
set -euo pipefail
cd "$(dirname "$0")/../.."

libtorch=$(bash framework/cmake/setup.sh)
# A build in another folder takes what this one compiled: paths in the command are taken relative to the folder.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1

# One compiler takes up to 2 GB: never more jobs than memory for them.
memory_jobs=$(awk '/MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
jobs=$(nproc)
[ "$jobs" -le "$memory_jobs" ] || jobs=$memory_jobs
[ "$jobs" -ge 1 ] || jobs=1

# A configuration for another LibTorch is made anew, because CMake keeps what it found.
if [ -e build/CMakeCache.txt ] && ! grep -qxF "TARE_LIBTORCH:PATH=$libtorch" build/CMakeCache.txt; then
  rm -f build/CMakeCache.txt
fi
# The compiler that the code is kept free of warnings for; another one may warn of something new.
strict=OFF
[ "$(c++ -dumpversion)" != 12 ] || strict=ON
cmake --preset release -DTARE_LIBTORCH="$libtorch" -DTARE_WARNINGS_AS_ERRORS=$strict >&2
echo "[build] $jobs jobs: ${*:-everything}" >&2
if [ $# -gt 0 ]; then set -- --target "$@"; fi
cmake --build build -j "$jobs" "$@" >&2
