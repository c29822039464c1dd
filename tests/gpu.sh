#!/usr/bin/env bash
# Builds everything for the card of this machine, runs every test that needs one, shows plans beside runs, times the
# Learner against loops by hand and against Python torch where there is one, and writes what it found as a page. It ends
# with 1 where something failed; the page is written nevertheless and says what.
# Usage: bash tests/gpu.sh [--page FILE] [--quick]
#   --page FILE  where the page goes (default docs/gpu.md)
#   --quick      few tests and rounds, for trying the script; the page says so
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/gpu.md
quick=0
while [ $# -gt 0 ]; do
  case $1 in
    --page) page=${2:?"--page needs a file"}; shift 2 ;;
    --quick) quick=1; shift ;;
    *) echo "tests/gpu.sh: '$1' is not known; it takes --page FILE and --quick" >&2; exit 2 ;;
  esac
done
[ "${TARE_GPU_BUILT:-0}" = 1 ] || TARE_CUDA=1 bash framework/cmake/build.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build/bin/tare doctor >"$work/doctor"
if ! grep -q '^device .*cuda:0' "$work/doctor"; then
  echo "tests/gpu.sh: this machine has no card that Tare can use:" >&2
  cat "$work/doctor" >&2
  exit 1
fi

tests='^(gpu|card)$'
bench=(build/bin/bench_card 15 20)
python_rounds=(7 20)
samples=6400
precisions=(fp32 bf16 fp16 bf16-true)
chosen=(--test-dir build)
if [ $quick = 1 ]; then
  bench=(build/bin/bench_card 1 1)
  python_rounds=(2 1)
  samples=128
  precisions=(fp32 bf16)
  chosen=(--test-dir build/tests/contract -R '^cuda_backend_test$')
fi
failed=0
ctest "${chosen[@]}" --no-tests=error -L "$tests" --output-on-failure >"$work/tests" 2>&1 || failed=1

# A run prints beside each measured peak the planned one.
cat >"$work/card.yaml" <<YAML
device: cuda:0
workers: 0
batch: 64
data: {name: generated_digits, count: $samples, size: 28}
model: {name: resnet9, width: 16}
phases:
- {name: whole, epochs: 1}
- {name: recomputed, epochs: 1, recompute: all}
- {name: offloaded, epochs: 1, offload: all}
YAML
for precision in "${precisions[@]}"; do
  echo "$ tare run card.yaml precision=$precision"
  (cd "$work" && "$OLDPWD/build/bin/tare" run card.yaml precision=$precision name=$precision --json "$precision.json" \
    2>&1) >"$work/run" || failed=1
  grep -E 'peak|error' "$work/run" | sed -E 's/, consumed [^,]*//; s/, reclaimed.*//' | fold -s -w 120 || true
done >"$work/peaks"
# Models, optimizers and callbacks in each precision, six runs at a time.
cat >"$work/zoo.yaml" <<YAML
device: cuda:0
workers: 0
batch: 32
data: {name: generated_digits, count: 640, size: 32}
model: {name: convnet}
phases:
- {name: all, epochs: 2}
YAML
for i in $(seq 400); do echo "Line $i of a text for the model gpt, which learns to continue it."; done >"$work/lines.txt"
models=(convnet mlp resnet18 resnet50 mobilenet_v3_small mobilenet_v3_large "vit model.options.patch=8"
  "vit model.options.patch=8 model.dropout=0.1 model.width=192 model.heads=3 model.layers=4"
  "lstm data={name: generated_texts, count: 640}"
  "gpt data={name: text, file: lines.txt, context: 64} model.layers=4 model.heads=4 model.width=128"
  "resnet9 kernels.channels_last=true" "resnet9 kernels.deterministic=true" "resnet9 micro_batch=8"
  "resnet9 optimizer.kind=muon" "resnet9 callbacks=[{ema: {decay: 0.99}}]" "resnet18 optimizer.kind=adamw8bit"
  "resnet9 data.size=224 data.count=128")
zoo_precisions=(fp32 bf16 bf16-true)
if [ $quick = 1 ]; then models=(mlp "resnet9 micro_batch=8"); zoo_precisions=(fp32); fi
# zoo_run PRECISION "MODEL [KEY=VALUE ...]": prints what was run, and the two peaks in bytes.
zoo_run() {
  local settings name="$2 $1" run="zoo-${2//[^a-z0-9]/-}-$1"
  mapfile -t settings < <(sed -E 's/ ([a-z_.]+=)/\n\1/g' <<<"model.name=$2")
  if (cd "$work" && "$repository/build/bin/tare" run zoo.yaml "${settings[@]}" "precision=$1" "name=$run" \
    --json "$run.json" >"$run.log" 2>&1); then
    echo "$name: peak $(bytes_of peak_bytes "$work/$run.json") B, planned $(bytes_of planned_peak_bytes "$work/$run.json") B"
  else
    echo "$name: failed: $(grep -m1 'error' "$work/$run.log")"
  fi
}
# bytes_of FIELD FILE: prints the number of the first phase.
bytes_of() { sed -n "s/^ *\"$1\": \([0-9]*\).*/\1/p" "$2" | head -1; }
repository=$PWD
for precision in "${zoo_precisions[@]}"; do
  for model in "${models[@]}"; do
    while [ "$(jobs -r | wc -l)" -ge 6 ]; do wait -n || true; done
    zoo_run "$precision" "$model" >>"$work/zoo" &
  done
done
wait
sort "$work/zoo" | fold -s -w 120 >"$work/zoo-sorted"
! grep -q ': failed: ' "$work/zoo" || failed=1

# The peaks that are not the planned ones, as they are printed.
sed -nE '/^\$/h; s/.*, peak ([^(]+) \(planned ([^)]+)\).*/&\n\1\n\2/; /\n(.*)\n\1$/!{ /\n/{ G; s/\n.*\n\$ tare run card.yaml (.*)/ [\1]/p; } }' "$work/peaks" >"$work/differ"

"${bench[@]}" >"$work/times" 2>&1 || failed=1
# A Python whose torch sees the card, such as the environment that LibTorch is taken from.
for python in "${PYTHON:-python3}" "${TARE_LIBTORCH:-}/../../../../bin/python"; do
  "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null || continue
  against=("$python" tests/bench/bench_card.py build/bin/bench_card "${python_rounds[@]}")
  "${against[@]}" >"$work/python" 2>&1 || failed=1
  break
done

{
  echo "# On a GPU"
  echo
  echo "\`bash tests/gpu.sh\` wrote this page. It holds what was seen on one card."
  [ $quick = 0 ] || printf '\nThe run was a quick one (`--quick`): few tests, and times of one round.\n'
  echo
  echo "| what | value |"
  echo "|---|---|"
  echo "| date | $(date -u +%Y-%m-%d) |"
  echo "| commit | $(git describe --always --dirty 2>/dev/null || echo unknown) |"
  sed -n 's/^\(LibTorch\|driver\|device [0-9]*\)  *\(.*\)$/| \1 | \2 |/p' "$work/doctor"
  printf '\n## Tests\n\nThe tests with the labels `gpu` and `card`:\n\n```text\n'
  grep -E '^ *[0-9]+/[0-9]+ Test|tests passed|tests failed' "$work/tests" | sed 's/^ *//' || true
  printf '```\n\n## Plans and runs\n\nEach line of a phase has the measured peak, and the planned one in brackets:\n\n```text\n'
  cat "$work/peaks"
  if [ -s "$work/differ" ]; then
    printf '```\n\nThe peaks of these phases are not the planned ones:\n\n```text\n'
    cat "$work/differ"
  fi
  printf '```\n\nModels with their options, in each precision:\n\n```text\n'
  cat "$work/zoo-sorted"
  printf '```\n\n## Times\n\nThe other side is the same step, written by hand with LibTorch. The medians of ratios, above 1 where the\n'
  printf 'Learner takes longer (`%s`):\n\n```text\n' "${bench[*]}"
  cat "$work/times"
  if [ -s "$work/python" ]; then
    printf '```\n\nThe other side is Python torch (`python tests/bench/bench_card.py build/bin/bench_card %s`):\n\n```text\n' "${python_rounds[*]}"
    cat "$work/python"
    printf '```\n'
  else
    printf '```\n\nPython torch was not timed: no `python3` here has a torch that sees the card (`PYTHON` names another one).\n'
  fi
  printf '\nTrainings up to an accuracy, such as airbench94, are not timed, because they need the pictures of CIFAR-10.\n'
} >"$work/page"
mkdir -p "$(dirname "$page")"
mv "$work/page" "$page"
echo "tests/gpu.sh: wrote $page"
[ $failed = 0 ] || { echo "tests/gpu.sh: something failed; the page says what" >&2; exit 1; }
