#!/usr/bin/env bash
# Makes the pictures of the pages from real runs: bash docs/pictures/make.sh. It needs a build and Chromium.
set -euo pipefail
cd "$(dirname "$0")/../.."
chromium=$(command -v chromium chromium-browser google-chrome | head -n 1) || { echo "Chromium is not installed" >&2; exit 1; }
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=2
cd "$work"  # where the pages name folders, they name relative ones
if [ -n "${TARE_DATA_DIR:-}" ]; then
  ln -s "$TARE_DATA_DIR" data
  export TARE_DATA_DIR=data
fi

picture() { # page, picture, width, height
  "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 \
    --window-size="$3,$4" --screenshot="$root/docs/pictures/$2" "file://$1" >/dev/null 2>&1
}

"$root/build/bin/tare" run "$root"/recipes/configs/digits/early.yaml folder=. --record-memory trace --quiet
"$root/build/bin/tare" report digits-early --recording trace --out report.html
picture "$work/report.html" report.png 1000 900
# The section of the page that shows the memory alone.
sed 's|<section><h2>Memory over time|<section class="alone"><h2>Memory over time|
     s|</body>|<style>header, .tiles, section:not(.alone) { display: none }</style></body>|' report.html >memory.html
picture "$work/memory.html" memory.png 1000 690
"$root/build/bin/tare" sweep run "$root"/recipes/configs/digits/sweep.yaml log_dir=sweep >/dev/null
"$root/build/bin/tare" sweep report "$root"/recipes/configs/digits/sweep.yaml log_dir=sweep >/dev/null
picture "$work/sweep/report.html" sweep.png 1000 900
