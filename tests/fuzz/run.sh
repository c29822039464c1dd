#!/usr/bin/env bash
# Builds the fuzz targets with clang and sanitizers and runs each: bash tests/fuzz/run.sh [SECONDS | RUNSx] [TARGET...]
# "10" is ten seconds a target, "10000000x" ten million executions; without it ten seconds, in a deep run (TARE_DEEP=1)
# ten million executions. What finds new paths is kept in build/fuzz/corpus, what breaks a promise in build/fuzz/broken.
# With --deep-only, as the test does it, only in a deep run: the build takes minutes. Exit status: 0, 1 for a finding, 77
# where it does not run.
set -euo pipefail
cd "$(dirname "$0")/../.."

if [ "${1:-}" = --deep-only ]; then
  shift
  [ "${TARE_DEEP:-}" = 1 ] || { echo "skipped: runs with TARE_DEEP=1; the tests replay_* try damaged copies of the seeds"; exit 77; }
fi
amount=10
[ "${TARE_DEEP:-}" != 1 ] || amount=10000000x
case "${1:-}" in [0-9]*) amount=$1; shift ;; esac
[ $# -gt 0 ] || set -- safetensors torch_file manifest idx interchange lite picture request yaml

if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  clang++ -fsanitize=fuzzer,address -x c++ - -o /dev/null 2>/dev/null; then
  echo "skipped: clang++ with libFuzzer is not installed (Debian: clang, libclang-rt-14-dev)"
  exit 77
fi

libtorch=${TARE_LIBTORCH:-$(bash framework/cmake/setup.sh)}
export CCACHE_SLOPPINESS=pch_defines,time_macros
cmake --preset fuzz -DTARE_LIBTORCH="$libtorch" >/dev/null
cmake --build build/fuzz -j 2 --target "${@/#/fuzz_}"

limit=-max_total_time=$amount
case "$amount" in *x) limit=-runs=${amount%x} ;; esac
export ASAN_OPTIONS=quarantine_size_mb=8 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
for target in "$@"; do
  found=build/fuzz/corpus/$target
  log=build/fuzz/$target.log
  mkdir -p "$found" build/fuzz/broken
  if ! build/fuzz/bin/fuzz_"$target" "$found" tests/fuzz/corpus/"$target" -dict=tests/fuzz/corpus/"$target".dict \
    -artifact_prefix=build/fuzz/broken/"$target"- -max_len=2048 -timeout=10 -rss_limit_mb=512 -malloc_limit_mb=64 \
    -print_final_stats=1 -verbosity=0 "$limit" >"$log" 2>&1; then
    tail -n 60 "$log"
    exit 1
  fi
  awk -v target="$target" '/executed_units/ {runs = $2} /exec_per_sec/ {rate = $2} /peak_rss/ {peak = $2}
    END {printf "[fuzz] %-11s %10d executions, %6d a second, %3d MB, no finding\n", target, runs, rate, peak}' "$log"
done
