#!/usr/bin/env bash
# Makes a Debian 12 machine ready to build Tare: system packages, then LibTorch. Prints LibTorch's folder on standard
# output and everything else on standard error. Safe to run again: what is there already is left alone.
#   TARE_LIBTORCH=DIR          use this LibTorch (the folder that holds include/ and lib/)
#   TARE_LIBTORCH_VERSION=2.N  fetch this version, from 2.11 to 2.15 (default: 2.15, or what the Python environment has)
#   TARE_HOME=DIR              where downloads live (default: ~/.cache/tare)
#   TARE_CUDA=1 or 0           with or without the NVIDIA libraries (default: with, where an NVIDIA driver is loaded)
set -euo pipefail

versions=(2.11.0 2.12.1 2.13.0 2.14.1 2.15.0)  # FindLibTorch.cmake has the range too
default_version=2.15.0
packages=(g++ cmake ninja-build ccache lld libcxxopts-dev libyaml-cpp-dev libspdlog-dev libgtest-dev libgmock-dev
  libbenchmark-dev nlohmann-json3-dev zlib1g-dev libpng-dev libjpeg62-turbo-dev libwebp-dev libxxhash-dev libmd-dev
  libsqlite3-dev libcairo2-dev libcpp-httplib-dev pkg-config curl
  valgrind python3 python3-venv)
home=${TARE_HOME:-$HOME/.cache/tare}

say() { printf '[setup] %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

install_packages() {
  local missing=() name
  for name in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "this is not a Debian system; install by hand: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root=(sudo)
    elif command -v sudo >/dev/null && [ -t 0 ]; then as_root=(sudo)
    else
      say "${#missing[@]} system packages are missing and this account may not install them. Ask an administrator to run:"
      say "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
      exit 1
    fi
  fi
  say "installing ${#missing[@]} system packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# Sets torch_version to the version that is to be fetched.
choose_version() {
  local wanted=${TARE_LIBTORCH_VERSION:-$default_version} version
  for version in "${versions[@]}"; do
    case "$wanted" in "$version" | "${version%.*}") torch_version=$version; return ;; esac
  done
  die "TARE_LIBTORCH_VERSION=$wanted is not one of ${versions[*]}; for another one set TARE_LIBTORCH to its folder and" \
    "configure with -DTARE_ALLOW_LIBTORCH=ON, as docs/development.md says"
}

# The folder of the active Python environment's torch, if it is a wheel of the range, or of the version that
# TARE_LIBTORCH_VERSION names; found without importing it.
python_torch() {
  command -v python3 >/dev/null || return 0
  python3 - "${TARE_LIBTORCH_VERSION:-}" "${versions[@]%.*}" 2>/dev/null <<'PY' || true
import importlib.metadata as metadata, importlib.util as util, os, sys
wanted, known = sys.argv[1], sys.argv[2:]
version = metadata.version("torch").split("+")[0]
if version.rsplit(".", 1)[0] in known and (not wanted or (version + ".").startswith(wanted + ".")):
    folder = os.path.dirname(util.find_spec("torch").origin)
    if os.path.exists(os.path.join(folder, "lib", "libtorch_cpu.so")):
        print(folder)
PY
}

wants_cuda() {
  case "${TARE_CUDA:-auto}" in
    1) return 0 ;;
    0) return 1 ;;
    auto) [ -e /proc/driver/nvidia/version ] || ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' ;;
    *) die "TARE_CUDA must be 0 or 1, got '$TARE_CUDA'" ;;
  esac
}

make_pip() {
  [ -x "$home/venv/bin/pip" ] && "$home/venv/bin/pip" --version >/dev/null 2>&1 && return 0
  rm -rf "$home/venv"
  local python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  "$python" -m venv "$home/venv" >&2 || die "python3 -m venv failed; install python3-venv"
}

# The wheel holds headers and libraries for every use; a CPU program needs it and two small CUDA packages only.
fetch_cpu() {
  local wheels=$1/wheels target=$1/tree platforms=() minor runtime=13.2.86 cupti=13.2.86
  case "$torch_version" in 2.11.* | 2.12.* | 2.13.* | 2.14.*) runtime=13.0.96 cupti=13.0.85 ;; esac
  for minor in $(seq 17 28); do platforms+=(--platform "manylinux_2_${minor}_x86_64"); done
  say "fetching LibTorch $torch_version for the CPU: about 550 MB to fetch, 1.1 GB on disk"
  "$home/venv/bin/pip" download --no-deps --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 \
    --abi none --platform manylinux2014_x86_64 "${platforms[@]}" --progress-bar on --dest "$wheels" \
    "torch==$torch_version" "nvidia-cuda-runtime==$runtime" "nvidia-cuda-cupti==$cupti" >&2
  say "unpacking"
  "$home/venv/bin/python" - "$wheels" "$target" >&2 <<'PY'
import glob, sys, zipfile
wheels, target = sys.argv[1:]
for wheel in glob.glob(wheels + "/*.whl"):
    with zipfile.ZipFile(wheel) as archive:  # extract() checks the CRC of every member
        for member in archive.namelist():
            keep = member.startswith(("torch/include/", "torch/lib/", "torch/share/", "nvidia/cu13/"))
            if keep and not member.endswith("libtorch_python.so"):
                archive.extract(member, target)
PY
}

fetch_cuda() {
  local target=$1/tree
  say "fetching LibTorch $torch_version with the NVIDIA libraries: 2.5 to 3.0 GB to fetch, 4.7 to 5.3 GB on disk"
  "$home/venv/bin/pip" install --progress-bar on --target "$target" "torch==$torch_version" >&2
}

find_libtorch() {
  if [ -n "${TARE_LIBTORCH:-}" ]; then
    [ -e "$TARE_LIBTORCH/lib/libtorch_cpu.so" ] || die "TARE_LIBTORCH=$TARE_LIBTORCH holds no lib/libtorch_cpu.so"
    (cd "$TARE_LIBTORCH" && pwd); return
  fi
  choose_version
  local found; found=$(python_torch)
  if [ -n "$found" ]; then say "using the Python environment's LibTorch in $found"; echo "$found"; return; fi
  local kind=cpu; if wants_cuda; then kind=cuda; fi
  local place=$home/libtorch-$torch_version-$kind
  if [ ! -e "$place/torch/lib/libtorch_cpu.so" ]; then
    mkdir -p "$home"
    # One fetch at a time; a fetch that broke off leaves only a .partial folder, which the next one clears.
    exec 9>"$home/setup.lock"; flock 9
    if [ ! -e "$place/torch/lib/libtorch_cpu.so" ]; then
      make_pip
      rm -rf "$place.partial"; mkdir -p "$place.partial"
      "fetch_$kind" "$place.partial" || die "the download broke off; run the same command again to repeat it"
      [ -e "$place.partial/tree/torch/lib/libtorch_cpu.so" ] || die "the download is incomplete; run the same command again"
      rm -rf "$place"; mv "$place.partial/tree" "$place"; rm -rf "$place.partial"
    fi
    exec 9>&-
  fi
  echo "$place/torch"
}

install_packages
libtorch=$(find_libtorch)
[ -n "$libtorch" ] || exit 1
say "LibTorch: $libtorch"
echo "$libtorch"
