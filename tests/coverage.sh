#!/usr/bin/env bash
# Builds with counters, runs the tests and prints the share of lines that ran, library by library. Fails where a library
# of the core is below the share that docs/development.md promises.
set -euo pipefail
cd "$(dirname "$0")/.."
libtorch=$(bash framework/cmake/setup.sh)
export CCACHE_SLOPPINESS=pch_defines,time_macros
python="${TARE_HOME:-$HOME/.cache/tare}/venv/bin/python"
"$python" -m pip install --quiet gcovr==8.3 >&2
cmake --preset coverage -DTARE_LIBTORCH="$libtorch" >&2
cmake --build build/coverage -j 2 >&2
find build/coverage -name '*.gcda' -delete
ctest --test-dir build/coverage --output-on-failure --timeout 7200 -E 'cli_kill|consumer|docs|overhead|fuzz' >&2
"$python" -m gcovr --root . --filter 'framework/tare/' --json-summary-pretty build/coverage \
  --exclude-unreachable-branches --gcov-ignore-errors=no_working_dir_found >build/coverage.json
"$python" - build/coverage.json <<'PYTHON'
import collections, json, sys
core, least = {"base", "memory", "runtime", "experiment", "checkpoint", "inference", "learner"}, 95.0
lines = collections.defaultdict(lambda: [0, 0])
for file in json.load(open(sys.argv[1]))["files"]:
    library = file["filename"].split("/")[2]
    lines[library][0] += file["line_covered"]
    lines[library][1] += file["line_total"]
low = []
for library, (covered, total) in sorted(lines.items()):
    if total == 0:
        continue
    share = 100.0 * covered / total
    print(f"{library:12} {covered:5} of {total:5} lines  {share:5.1f} %")
    if library in core and share < least:
        low.append(library)
if absent := core - {library for library, (_, total) in lines.items() if total}:
    sys.exit(f"no line of {', '.join(sorted(absent))} was counted: name today's libraries in `core`")
if low:
    sys.exit(f"below {least} %: {', '.join(low)}")
PYTHON
