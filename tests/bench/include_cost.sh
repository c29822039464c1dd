#!/usr/bin/env bash
# What #include <tare/tare.h> adds to a file that includes torch/torch.h, in seconds of CPU time of one compilation.
#   tests/bench/include_cost.sh [ROUNDS]    default 5; CXX: the compiler, default g++; TARE_LIBTORCH: LibTorch's folder
# A round compiles the file without and with tare.h, and without once more as the control, in changing order.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-5}
compiler=${CXX:-g++}
libtorch=${TARE_LIBTORCH:-$(bash framework/cmake/setup.sh)}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

echo '#include <torch/torch.h>' | tee "$folder/torch.cpp" >"$folder/control.cpp"
printf '#include <torch/torch.h>\n#include <tare/tare.h>\n' >"$folder/tare.cpp"

TIMEFORMAT='%U %S'
compile() { # seconds of CPU time
  { time "$compiler" -std=c++20 -O2 -c "$folder/$1.cpp" -o "$folder/$1.o" -I framework -I . \
    -isystem "$libtorch/include" -isystem "$libtorch/include/torch/csrc/api/include" 2>&3; } 3>&2 2>&1 |
    awk '{print $1 + $2}'
}

compile torch >/dev/null # reads the headers into the page cache
declare -A cost
order=(torch tare control)
for ((round = 0; round < rounds; ++round)); do
  for name in "${order[@]}"; do cost[$name]=$(compile "$name"); done
  echo "${cost[torch]} ${cost[tare]} ${cost[control]}"
  order=("${order[@]:1}" "${order[0]}")
done | awk '
  function sort(values, n,   i, j, t) {
    for (i = 1; i <= n; ++i) for (j = i + 1; j <= n; ++j) if (values[j] < values[i]) {
      t = values[i]; values[i] = values[j]; values[j] = t }
  }
  function figure(values, n) { # median [lowest, highest]
    sort(values, n)
    return sprintf("%.2f [%.2f, %.2f] s", values[int((n + 1) / 2)], values[1], values[n])
  }
  { print "round " NR ": torch.h " $1 " s, with tare.h " $2 " s, torch.h again " $3 " s"
    base[NR] = ($1 + $3) / 2; added[NR] = $2 - base[NR]; control[NR] = $3 - $1 }
  END { print "torch.h " figure(base, NR) ", tare.h adds " figure(added, NR) ", control " figure(control, NR) }'
