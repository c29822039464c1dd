#!/usr/bin/env bash
# Builds with counters, runs the tests and prints the share of lines that ran, room by room. Fails where a room of the
# core is below the share that docs/development.md promises.
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
    room = file["filename"].split("/")[2]
    lines[room][0] += file["line_covered"]
    lines[room][1] += file["line_total"]
low = []
for room, (covered, total) in sorted(lines.items()):
    if total == 0:
        continue
    share = 100.0 * covered / total
    print(f"{room:12} {covered:5} of {total:5} lines  {share:5.1f} %")
    if room in core and share < least:
        low.append(room)
if low:
    sys.exit(f"below {least} %: {', '.join(low)}")
PYTHON
