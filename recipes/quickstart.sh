#!/usr/bin/env bash
# Sets up, builds Tare and runs the main job: a staged fine-tuning on digits that gives its memory back between phases.
# Arguments are passed on to the recipe: bash recipes/quickstart.sh batch=256
set -euo pipefail
cd "$(dirname "$0")/.."
bash framework/cmake/build.sh installable # the programs, and all that cmake --install takes
exec build/bin/tare run recipes/configs/digits/staged.yaml "$@"
