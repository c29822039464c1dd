#!/bin/sh
# stubs.sh LIBTORCH_LIB_FOLDER OUT_FOLDER writes what LibTorch's CUDA libraries want of NVIDIA's:
#   OUT/stubs.cpp  every function, weak, returning 0, so that those written by hand take its place, and
#                  variables of zeros
#   OUT/stubs.map  the version nodes, which are named as the files
#   OUT/names      the file names under which NVIDIA's libraries are asked for
set -eu
export LC_ALL=C
cd "$1"
torch="libc10_cuda.so libtorch_cuda.so libtorch_cuda_linalg.so libtorch_nvshmem.so libcaffe2_nvrtc.so libtorch_cpu.so"

{
  for library in $torch; do readelf -W -d "$library"; done |
    sed -n 's/.*Shared library: \[\(lib\(cu\|nccl\|nv\)[^]]*\)\].*/\1/p'
  printf '%s\n' libnvidia-ml.so.1 libcuda.so.1
} | sort -u >"$2/names"

# Lines "name node type". Names without a version node are known by their beginnings.
for library in $torch; do readelf -W --dyn-syms "$library"; done |
  awk '$7 == "UND" && $5 == "GLOBAL" && ($4 == "FUNC" || $4 == "OBJECT") {
         split($8, part, "@")
         if (part[2] ~ /^(libcu|libnv|NVSHMEM)/) print part[1], part[2], $4
         else if (part[2] == "" && part[1] ~ /^(nccl|nvrtc|cusparseLt|cuFile|cu[A-Z])/) print part[1], "-", $4
       }' | sort -u >"$2/wanted"

awk 'BEGIN { print "extern \"C\" int cuda_stand_in_called(const char*);" }
     $3 == "OBJECT" { print "extern \"C\" { __attribute__((weak)) long " $1 "[8] = {}; }"; next }
     { print "extern \"C\" __attribute__((weak)) int " $1 "() { return cuda_stand_in_called(\"" $1 "\"); }" }' \
  "$2/wanted" >"$2/stubs.cpp"

# The last node takes what has no version: nccl, cusparseLt, the driver and NVML.
awk '$2 != "-" { of[$2] = of[$2] " " $1 ";" }
     END { for (node in of) print node " { global:" of[node] " };"
           print "CUDA_STAND_IN { global: cu*; nvml*; nccl*; nvrtc*; stand_in_*; local: *; };" }' \
  "$2/wanted" >"$2/stubs.map"
