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
  function median(values, n,   i, j, t) {
    for (i = 1; i <= n; ++i) for (j = i + 1; j <= n; ++j) if (values[j] < values[i]) {
      t = values[i]; values[i] = values[j]; values[j] = t }
    return n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2
  }
  { print "round " NR ": torch.h " $1 " s, with tare.h " $2 " s, torch.h again " $3 " s"
    base[NR] = $1; added[NR] = $2 - $1; control[NR] = $3 - $1 }
  END { printf "torch.h %.2f s, tare.h adds %.2f s, control %.2f s (medians of %d rounds)\n",
        median(base, NR), median(added, NR), median(control, NR), NR }'
