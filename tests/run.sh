#!/usr/bin/env bash
# Sets up, builds everything and runs every test. With --libtorch 2.11: on that version of LibTorch, which is fetched.
# With --deep: full counts of kills, mutations and cycles, then sanitizers, another compiler, the linter and the coverage
# (tests/deep.sh; hours). Other arguments are passed on to ctest.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --libtorch ]; then
  export TARE_LIBTORCH_VERSION=${2:?"--libtorch needs a version, such as 2.11"}
  shift 2
fi
deep=0
if [ "${1:-}" = --deep ]; then
  deep=1
  shift
  export TARE_DEEP=1
  set -- --timeout 36000 "$@"
fi
# Tests are compiled by clang where it is installed, in less than half of GCC's time.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v clang++ >/dev/null; then
  bash framework/cmake/setup.sh >/dev/null  # also brings the list of packages up to date
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends clang >/dev/null ||
    echo "clang cannot be installed: GCC compiles the tests" >&2
fi
bash framework/cmake/build.sh
# The sources that touch internals of LibTorch are compiled against the oldest version that Tare takes, too.
[ -n "${TARE_LIBTORCH_VERSION:-}" ] || TARE_LIBTORCH="" TARE_LIBTORCH_VERSION=2.11 TARE_CUDA=0 bash framework/cmake/setup.sh >/dev/null ||
  echo "LibTorch 2.11 cannot be fetched: libtorch_compile is skipped" >&2
# Where there is a CUDA toolkit the CUDA plug-in must have been built.
if [ -e "${CUDA_HOME:-/usr/local/cuda}/include/cuda_runtime_api.h" ] && [ ! -e build/lib/libtare_cuda.so ]; then
  echo "a CUDA toolkit is here, but build/lib/libtare_cuda.so was not built" >&2
  exit 1
fi
# Sweeps on a cluster are tested with a Slurm of their own, which is skipped where it is not installed. Only as root and
# without systemd, so that no service starts on a machine that somebody uses.
if [ "$(id -u)" = 0 ] && [ ! -d /run/systemd/system ] && command -v apt-get >/dev/null && ! command -v slurmctld >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null ||
    echo "slurm-wlm cannot be installed: slurm_test is skipped" >&2
fi
# Open MPI starts ranks in a test, which is skipped where it is not installed.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v mpirun >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openmpi-bin >/dev/null ||
    echo "openmpi-bin cannot be installed: a test of ranks_command_test is skipped" >&2
fi
# TensorBoard's own reader judges the event files; their test is skipped where it is not installed.
python=${TARE_HOME:-$HOME/.cache/tare}/venv/bin/python
if [ -x "$python" ] && ! "$python" -c 'import tensorboard' 2>/dev/null; then
  "$python" -m pip install -q --disable-pip-version-check tensorboard==2.21.0 >/dev/null ||
    echo "tensorboard cannot be installed: callback_tensorboard_test is skipped" >&2
fi
# ONNX Runtime and gguf judge the files for other programs; their test is skipped where it is not installed.
if [ -x "$python" ] && ! "$python" -c 'import gguf, onnx, onnxruntime' 2>/dev/null; then
  "$python" -m pip install -q --disable-pip-version-check gguf==0.19.0 onnx==1.23.2 onnxruntime==1.32.0 >/dev/null ||
    echo "gguf, onnx and onnxruntime cannot be installed: interchange_readers_test is skipped" >&2
fi
# The API site needs Doxygen; its test is skipped where it is not installed.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v doxygen >/dev/null; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends doxygen >/dev/null ||
    echo "doxygen cannot be installed: docs_api_test is skipped" >&2
fi
ctest --test-dir build --output-on-failure --no-tests=error -j 2 "$@"
[ $deep = 0 ] || bash tests/deep.sh
