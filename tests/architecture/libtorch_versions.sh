#!/usr/bin/env bash
# The versions of LibTorch that Tare takes, by one of:
#   libtorch_versions.sh choice           what the set-up and FindLibTorch.cmake take and refuse
#   libtorch_versions.sh compile [DIR...] compiles the sources that touch internals of LibTorch against others: LibTorch
#                                         folders (default: the oldest version, where it was fetched)
# Environment: TARE_BUILD_DIR, TARE_SOURCE_DIR, TARE_LIBTORCH, WORK_DIR. Exit code 77: skipped.
set -euo pipefail
oldest=2.11.0 default=2.15.0

die() { echo "failed: $*" >&2; exit 1; }

# A folder that looks like a LibTorch of this version.
fake_libtorch() { # folder, version
  local IFS=.
  set -- "$1" $2
  mkdir -p "$1/include/torch/headeronly" "$1/lib"
  printf '#define TORCH_VERSION_MAJOR %s\n#define TORCH_VERSION_MINOR %s\n#define TORCH_VERSION_PATCH %s\n' "$2" "$3" "$4" \
    >"$1/include/torch/headeronly/version.h"
  touch "$1/lib/libtorch_cpu.so" "$1/lib/libc10.so"
}

# A Python environment with a torch of this version, as far as the set-up looks at it.
fake_environment() { # folder, version
  fake_libtorch "$1/torch" "$2"
  touch "$1/torch/__init__.py"
  mkdir -p "$1/torch-$2.dist-info"
  printf 'Metadata-Version: 2.1\nName: torch\nVersion: %s+cu130\n' "$2" >"$1/torch-$2.dist-info/METADATA"
}

setup() { # environment, version wanted, home
  PYTHONPATH=$1 TARE_LIBTORCH="" TARE_LIBTORCH_VERSION=$2 TARE_HOME=$3 TARE_CUDA=0 \
    bash "$TARE_SOURCE_DIR/framework/cmake/setup.sh" 2>"$WORK_DIR/err"
}

check_setup() {
  local version found home=$WORK_DIR/home
  for version in $oldest $default; do # as if they had been fetched
    fake_libtorch "$home/libtorch-$version-cpu/torch" "$version"
  done
  for version in 2.11.0 2.12.1 2.14.0 2.15.3; do
    fake_environment "$WORK_DIR/python-$version" "$version"
    found=$(setup "$WORK_DIR/python-$version" "" "$home")
    [ "$found" = "$WORK_DIR/python-$version/torch" ] || die "the environment's torch $version is not taken, but $found"
  done
  for version in 2.10.0 2.16.0; do
    fake_environment "$WORK_DIR/python-$version" "$version"
    found=$(setup "$WORK_DIR/python-$version" "" "$home")
    [ "$found" = "$home/libtorch-$default-cpu/torch" ] || die "with the environment's torch $version, $found is taken"
  done
  found=$(setup "$WORK_DIR/python-2.15.3" 2.11 "$home")
  [ "$found" = "$home/libtorch-$oldest-cpu/torch" ] || die "TARE_LIBTORCH_VERSION=2.11 takes $found"
  if setup "$WORK_DIR/python-2.15.3" 2.16 "$home"; then die "TARE_LIBTORCH_VERSION=2.16 is accepted"; fi
  grep -q "$oldest .* $default" "$WORK_DIR/err" || { cat "$WORK_DIR/err"; die "the versions are not named"; }
}

check_find() {
  local version
  mkdir -p "$WORK_DIR/project"
  printf 'cmake_minimum_required(VERSION 3.22)\nproject(finds CXX)\nlist(APPEND CMAKE_MODULE_PATH "%s")\n%s\n' \
    "$TARE_SOURCE_DIR/framework/cmake" 'find_package(LibTorch REQUIRED)' >"$WORK_DIR/project/CMakeLists.txt"
  find_it() { cmake -S "$WORK_DIR/project" -B "$WORK_DIR/found-$1" -DTARE_LIBTORCH="$WORK_DIR/libtorch-$1" "${@:2}"; }
  for version in 2.10.2 2.11.0 2.13.0 2.15.9 2.16.0; do
    fake_libtorch "$WORK_DIR/libtorch-$version" "$version"
    if find_it "$version" >"$WORK_DIR/out" 2>&1; then
      case $version in 2.10.2 | 2.16.0) die "LibTorch $version is accepted" ;; esac
    else
      case $version in 2.10.2 | 2.16.0) ;; *) cat "$WORK_DIR/out"; die "LibTorch $version is refused" ;; esac
      grep -q -e "-DTARE_ALLOW_LIBTORCH=ON" "$WORK_DIR/out" || die "the command that tries $version is not named"
      find_it "$version" -DTARE_ALLOW_LIBTORCH=ON >"$WORK_DIR/out" 2>&1 || { cat "$WORK_DIR/out"; die "$version cannot be tried"; }
    fi
  done
}

# The sources that include a header which is no part of LibTorch's public interface, or the one that holds what differs.
internals='#include (<(c10/cuda/|torch/csrc/|ATen/(core/dispatch|core/boxing|native/|detail/|cuda/|core/Caching)|c10/core/(impl/|CachingDevice|AllocatorConfig|StorageImpl|Allocator\.h))|"tare/memory/libtorch\.h")'

compile_against() { # LibTorch folder
  local source command together count=0
  for source in $(cd "$TARE_SOURCE_DIR" && grep -rlE "$internals" --include='*.cpp' framework/tare models | sort); do
    command=$(sed -n "s,.* -c $TARE_SOURCE_DIR/$source\$,&,p" "$WORK_DIR/commands" | head -1)
    if [ -z "$command" ]; then # it is compiled together with others
      together=$(grep -lF "\"${source#framework/}\"" "$TARE_BUILD_DIR"/framework/tare/*/*_from_*.cpp \
        "$TARE_BUILD_DIR"/models/*_from_*.cpp 2>/dev/null | head -1)
      [ -n "$together" ] || continue # not a part of this build
      command=$(sed -n "s,\(.* -c \)$together\$,\1$TARE_SOURCE_DIR/$source,p" "$WORK_DIR/commands" | head -1)
    fi
    command=${command//$TARE_LIBTORCH/$1}
    command=$(sed -E 's/^[^ ]*ccache //; s/ -include [^ ]*cmake_pch\.hxx//; s/ -Winvalid-pch//; s/ -o [^ ]*//; s/ -M[DTF]( [^ ]*\.(o|d))?//g' <<<"$command")
    # clang takes a third of GCC's time. Warnings, which differ, are for the build itself.
    if command -v clang++ >/dev/null; then
      command=$(sed -E 's/^[^ ]+/clang++/; s/ -fopenmp//; s/ --param=[^ ]*//; s/ -W[^ ]*//g' <<<"$command")
    fi
    (cd "$TARE_BUILD_DIR" && eval "$command -fsyntax-only") || die "$source does not compile with $1"
    count=$((count + 1))
  done
  [ $count -ge 20 ] || die "only $count sources were compiled"
  echo "$count sources compile with $1"
}

mkdir -p "$WORK_DIR"
case ${1:-} in
  choice) rm -rf "$WORK_DIR"; mkdir -p "$WORK_DIR"; check_setup; check_find ;;
  compile)
    shift
    if [ $# = 0 ]; then
      set -- "${TARE_HOME:-$HOME/.cache/tare}/libtorch-$oldest-cpu/torch"
      [ -e "$1/include" ] || { echo "skipped: LibTorch $oldest is not here: TARE_LIBTORCH_VERSION=$oldest bash framework/cmake/setup.sh"; exit 77; }
    fi
    (cd "$TARE_BUILD_DIR" && ninja -t commands) | grep -- ' -c ' >"$WORK_DIR/commands"
    for folder; do compile_against "$folder"; done ;;
  *) die "one of choice, compile" ;;
esac
