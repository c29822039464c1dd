#!/usr/bin/env bash
# Makes the pictures of the pages from real runs: bash docs/pictures/make.sh. It needs a build and Chromium.
set -euo pipefail
cd "$(dirname "$0")/../.."
chromium=$(command -v chromium chromium-browser google-chrome | head -n 1) || { echo "Chromium is not installed" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=2

picture() { # page, picture, width, height
  "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 \
    --window-size="$3,$4" --screenshot="docs/pictures/$2" "file://$1" >/dev/null 2>&1
}

build/bin/tare run recipes/configs/digits/early.yaml folder="$work" --memory-trace "$work/trace" --quiet
build/bin/tare report "$work/digits-early" --memory-trace "$work/trace" --out "$work/report.html"
picture "$work/report.html" report.png 1000 900
build/bin/tare sweep run recipes/configs/digits/sweep.yaml log_dir="$work/sweep" >/dev/null
build/bin/tare sweep report recipes/configs/digits/sweep.yaml log_dir="$work/sweep" >/dev/null
picture "$work/sweep/report.html" sweep.png 1000 900
