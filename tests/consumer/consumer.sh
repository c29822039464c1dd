#!/usr/bin/env bash
# A user's project against Tare, by one of:
#   consumer.sh install                installs the build into the work folder, which must be new every time
#   consumer.sh package COMPILER       builds and runs project/ against it with find_package(tare)
#   consumer.sh subdirectory COMPILER  configures project/ with Tare as a subfolder; builds and runs it where TARE_DEEP=1
#   consumer.sh tutorial COMPILER      configures the tutorial's project against it; builds and runs it where TARE_DEEP=1
#   consumer.sh headers COMPILER       compiles public headers alone: two rooms and tare.h, where TARE_DEEP=1 all
# Environment: TARE_BUILD_DIR, TARE_SOURCE_DIR, TARE_LIBTORCH, CONSUMER_DIR (the work folder). Exit code 77: skipped.
set -euo pipefail
prefix=$CONSUMER_DIR/prefix
project=$TARE_SOURCE_DIR/tests/consumer/project
deep=${TARE_DEEP:-0}

skip() { echo "skipped: $*"; exit 77; }
die() { echo "failed: $*" >&2; exit 1; }

install_tare() {
  rm -rf "$CONSUMER_DIR"
  cmake --install "$TARE_BUILD_DIR" --prefix "$prefix" >/dev/null
  [ "$("$prefix/bin/tare" --version)" = "$("$TARE_BUILD_DIR/bin/tare" --version)" ] || die "the installed tare does not run"
  "$prefix/bin/tare" predict --help | grep -q BUNDLE || die "the installed tare does not find tare-predict"
  for file in man/man1/tare.1 man/man1/tare-predict.1 bash-completion/completions/tare zsh/site-functions/_tare \
    fish/vendor_completions.d/tare.fish; do
    [ -s "$prefix/share/$file" ] || die "no share/$file"
  done
  grep -rl "$TARE_SOURCE_DIR" "$prefix/lib/cmake" "$prefix/include" && die "the package names the source folder"
  true
}

configure() { # build folder, compiler, more arguments
  command -v "$2" >/dev/null || skip "no $2 here"
  local folder=$1 compiler=$2; shift 2
  cmake -G Ninja -S "$project" -B "$folder" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_COMPILER_LAUNCHER="${TARE_LAUNCHER:-}" "$@"
}

build_and_run() { # build folder
  cmake --build "$1" --target train classify
  cd "$1"
  ./train | tee out
  # 4 B * ((64 + 1) * 16 + (16 + 1) * 10 weights) + 96 images * (64 B + a label of 8 B)
  grep -qx "trained: 11752 B tracked" out || die "not the bytes of weights and data"
  grep -qx "destroyed: 0 B tracked" out || die "bytes remain"
  ./classify | grep -x "classified: 1 in 10 classes"
}

package() { # compiler
  local folder=$CONSUMER_DIR/package-$(basename "$1")
  configure "$folder" "$1" -DCMAKE_PREFIX_PATH="$prefix"
  build_and_run "$folder"
}

subdirectory() { # compiler
  local folder=$CONSUMER_DIR/subdirectory
  configure "$folder" "$1" -DTARE_FOLDER="$TARE_SOURCE_DIR" -DTARE_LIBTORCH="$TARE_LIBTORCH"
  if ninja -C "$folder" -t targets all | grep -E "_test:|^tare-predict:|^install:.*tare"; then
    die "a user's build holds Tare's tests or programs"
  fi
  if [ "$deep" = 1 ]; then build_and_run "$folder"; else ninja -C "$folder" -n train classify >/dev/null; fi
}

tutorial() { # compiler
  local folder=$CONSUMER_DIR/tutorial page=$TARE_SOURCE_DIR/docs/tutorial.md
  mkdir -p "$folder"
  awk '/^```cpp/ { on = 1; next } /^```/ { on = 0 } on' "$page" >"$folder/waves.cpp"
  awk '/^```cmake/ { on = 1; next } /^```/ { on = 0 } on' "$page" >"$folder/CMakeLists.txt"
  project=$folder configure "$folder/build" "$1" -DCMAKE_PREFIX_PATH="$prefix"
  [ "$deep" = 1 ] || return 0
  cmake --build "$folder/build"
  cd "$folder"
  ./build/waves
  [ -s waves.tare ] || die "the tutorial left no bundle"
}

headers() { # compiler
  local include=$prefix/include folders=(tare/base tare/config tare/tare.h)
  [ "$deep" = 0 ] || folders=(tare models)
  cd "$include"
  find "${folders[@]}" -name '*.h' -print0 | xargs -0 -P 2 -I{} "$1" -std=c++20 -fsyntax-only -Wall -Wextra \
    -I "$include" -isystem "$TARE_LIBTORCH/include" -isystem "$TARE_LIBTORCH/include/torch/csrc/api/include" \
    -include {} -x c++ /dev/null
}

case $1 in
  install) install_tare ;;
  package | subdirectory | tutorial | headers) "$@" ;;
  *) die "what is '$1'?" ;;
esac
