#!/usr/bin/env bash
# What tests/run.sh --deep does beyond the tests: sanitizers over the suite, another compiler, the linter, line coverage.
# Names of steps choose among them: bash tests/deep.sh format asan tsan clang tidy coverage
# A step whose tool is missing is skipped with its reason. Exit status 1 when one fails.
set -uo pipefail
cd "$(dirname "$0")/.."
libtorch=$(bash framework/cmake/setup.sh) || exit 1
export CCACHE_SLOPPINESS=pch_defines,time_macros

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" -DTARE_LIBTORCH="$libtorch" >/dev/null &&
    cmake --build "build/$preset" -j 2 ${*:+--target "$@"} >"build/$preset.log" 2>&1 ||
    { tail -n 30 "build/$preset.log"; return 1; }
}

# Kills, consumers' builds, documents and instruction counts say nothing new under a sanitizer, and take hours.
asan() {
  build asan && ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    ctest --test-dir build/asan --output-on-failure --timeout 7200 -E 'cli_kill|consumer|docs|overhead|fuzz'
}

# What runs on several threads.
tsan() {
  local targets=(base_test memory_test runtime_test adapt_test trace_test data_test experiment_test learner_test inference_test sweep_test)
  build tsan "${targets[@]}" && TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:allocator_may_return_null=1 \
    setarch -R ctest --test-dir build/tsan --output-on-failure --timeout 7200 \
    -R "^($(IFS='|'; echo "${targets[*]}"))\$"
}

clang() {
  command -v clang++ >/dev/null || { echo "skipped: clang++ is not installed"; return 0; }
  build clang
}

tidy() {
  command -v run-clang-tidy >/dev/null || { echo "skipped: clang-tidy is not installed"; return 0; }
  cmake --preset clang -DTARE_LIBTORCH="$libtorch" >/dev/null &&
    run-clang-tidy -quiet -j 2 -p build/clang "$PWD/(framework|models|recipes)/.*\.cpp" >build/tidy.log 2>/dev/null
  ! grep -E '(warning|error):' build/tidy.log | sort -u
}

coverage() { bash tests/coverage.sh; }

format() {
  command -v clang-format >/dev/null || { echo "skipped: clang-format is not installed"; return 0; }
  git ls-files '*.h' '*.cpp' | xargs clang-format --dry-run -Werror
}

[ $# -gt 0 ] || set -- format asan tsan clang tidy coverage
failed=0
for step in "$@"; do
  start=$SECONDS
  if "$step"; then word=passed; else word=FAILED; failed=1; fi
  echo "[deep] $step $word in $((SECONDS - start)) s"
done
exit $failed
