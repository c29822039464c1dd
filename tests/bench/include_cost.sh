#!/usr/bin/env bash
# What includes cost a user's file, in seconds of CPU time of one compilation, and the most memory of the compiler:
#   tare.h         a file that includes <tare/tare.h> alone: no module of its own
#   torch.h        <torch/torch.h> alone, and once more as the control
#   both           <torch/torch.h> and <tare/tare.h>, as a file with a module of its own
#   precompiled    the same with what tare_precompile() makes; making it once is printed in front
#   tests/bench/include_cost.sh [ROUNDS]    default 5; CXX: the compiler, default g++; TARE_LIBTORCH: LibTorch's folder
# The order of the files changes from round to round.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-5}
compiler=${CXX:-g++}
libtorch=${TARE_LIBTORCH:-$(bash framework/cmake/setup.sh)}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

echo '#include <tare/tare.h>' >"$folder/tare.cpp"
echo '#include <torch/torch.h>' | tee "$folder/torch.cpp" >"$folder/control.cpp"
printf '#include <torch/torch.h>\n#include <tare/tare.h>\n' | tee "$folder/both.cpp" "$folder/precompiled.cpp" >"$folder/all.h"

compile() { # arguments of the compiler: seconds of CPU time and MiB
  python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{used.ru_utime + used.ru_stime:.2f} {used.ru_maxrss / 1024:.0f}")' "$compiler" -std=c++20 -O2 -I framework -I . \
    -isystem "$libtorch/include" -isystem "$libtorch/include/torch/csrc/api/include" "$@"
}
compile_file() { # name
  local more=()
  [ "$1" != precompiled ] || more=(-Winvalid-pch -Werror=invalid-pch -include "$folder/all.h")
  compile -c "$folder/$1.cpp" -o "$folder/$1.o" "${more[@]}"
}

compile_file torch >/dev/null # reads the headers into the page cache
echo "making the precompiled header: $(compile -x c++-header "$folder/all.h" -o "$folder/all.h.gch" | awk '{print $1 " s, " $2 " MiB"}')"
order=(tare torch control both precompiled)
for ((round = 0; round < rounds; ++round)); do
  for name in "${order[@]}"; do echo "$name $(compile_file "$name")"; done
  order=("${order[@]:1}" "${order[0]}")
done | sort -k1,1 -k2,2n | awk '
  $1 != name { if (name != "") print_it(); name = $1; n = 0; most = 0 }
  { cost[++n] = $2; if ($3 > most) most = $3 }
  END { print_it() }
  function print_it() { # median [lowest, highest]
    printf "%-12s %6.2f [%.2f, %.2f] s, %d MiB\n", name, cost[int((n + 1) / 2)], cost[1], cost[n], most
  }'
