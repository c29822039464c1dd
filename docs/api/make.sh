#!/usr/bin/env bash
# Writes the API site of the public headers: bash docs/api/make.sh OUT [ROOT] fills OUT/html from ROOT, by default this
# checkout. A header of framework/tare or models is public unless its first comment says "Internal.". Prints what has no
# comment, or one that cannot be read, with file and line. Exit status: 0 for nothing to print, 77 where Doxygen is not
# installed, else 1.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: bash docs/api/make.sh OUT [ROOT]" >&2; exit 1; }
command -v doxygen >/dev/null || { echo "doxygen is not installed (Debian: apt-get install doxygen)"; exit 77; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "${2:-$here/../..}"

folders=(framework/tare)
[ ! -d models ] || folders+=(models)
find "${folders[@]}" -name '*.h' | sort | xargs awk '
  FNR == 1 { if (name != "" && !is_internal) print name; name = FILENAME; is_first = 1; is_internal = 0 }
  !/^\/\// { is_first = 0 }
  is_first && /Internal\./ { is_internal = 1 }
  END { if (!is_internal) print name }' >"$out/headers.txt"
[ -s "$out/headers.txt" ] || { echo "$PWD/framework/tare holds no public header" >&2; exit 1; }

xargs awk -v root="$PWD" -f "$here/missing.awk" docs/api/namespaces.dox <"$out/headers.txt" >"$out/missing.txt"
cat "$out/missing.txt" >&2

status=0
{
  cat "$here/Doxyfile"
  echo "OUTPUT_DIRECTORY = \"$out\""
  echo "FILTER_PATTERNS = *.h=\"awk -f '$here/filter.awk'\" *.md=\"awk -f '$here/links.awk'\""
  cat "$out/headers.txt" <(find docs -name '*.dox' -o -name '*.md' | sort) | sed 's/.*/INPUT += "&"/'
} | doxygen - || status=1
[ ! -s "$out/missing.txt" ] || status=1
exit $status
