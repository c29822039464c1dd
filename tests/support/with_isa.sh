#!/usr/bin/env bash
# Runs a test program with fewer instructions than the processor has, since kernels, and the memory that they take, depend
# on them; or with all products of dense float32 matrices by oneDNN: with_isa.sh avx2|sse41|onednn PROGRAM [ARGUMENT...].
# Exit status 77: skipped, with the reason.
set -euo pipefail
isa=$1
shift
case "$isa" in
  avx2)
    if ! grep -qw avx512f /proc/cpuinfo; then
      echo "skipped: this processor has no more than AVX2, and the test runs with all that it has"
      exit 77
    fi
    export ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2
    ;;
  sse41)
    if [ -z "${TARE_DEEP:-}" ]; then
      echo "skipped: runs with TARE_DEEP=1"
      exit 77
    fi
    export ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41
    ;;
  onednn)
    if ! grep -qw avx512bw /proc/cpuinfo; then
      echo "skipped: oneDNN multiplies float32 only on processors with AVX-512"
      exit 77
    fi
    export TARE_PRODUCTS=onednn_always
    ;;
  *)
    echo "with_isa.sh: '$isa' is not avx2, sse41 or onednn" >&2
    exit 2
    ;;
esac
exec "$@"
