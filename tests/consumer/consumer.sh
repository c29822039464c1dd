#!/usr/bin/env bash
# A user's project against Tare, by one of:
#   consumer.sh install                installs the build into the work folder, which must be new every time
#   consumer.sh incomplete             tries to install a build of which one library and one program are missing
#   consumer.sh deb                    makes the Debian package, unpacks it, and runs its programs without an environment
#   consumer.sh linkage                shared libraries that a training program needs
#   consumer.sh package COMPILER       builds and runs project/ against it with find_package(tare)
#   consumer.sh entries COMPILER       builds and runs project/own.cpp, `tare` with an entry more in each registry
#   consumer.sh project COMPILER      builds and runs what `tare new` makes
#   consumer.sh subdirectory COMPILER  configures project/ with Tare as a subfolder; builds and runs it where TARE_DEEP=1
#   consumer.sh tutorial COMPILER      configures the tutorial's project against it; builds and runs it where TARE_DEEP=1
#   consumer.sh headers COMPILER       compiles public headers alone: two libraries and tare.h, where TARE_DEEP=1 all
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
    fish/vendor_completions.d/tare.fish tare/recipes/digits/staged.yaml tare/recipes/digits/fork.json tare/project/main.cpp; do
    [ -s "$prefix/share/$file" ] || die "no share/$file"
  done
  grep -rl "$TARE_SOURCE_DIR" "$prefix/lib/cmake" "$prefix/include" && die "the package names the source folder"
  (cd / && "$prefix/bin/tare" ls recipes) | grep -q "^$prefix/share/tare/recipes/digits/staged.yaml " ||
    die "the installed tare does not list its recipes"
}

# The script of the install, as it would be if two of its files had not been built.
incomplete() {
  local folder=$CONSUMER_DIR-incomplete
  rm -rf "$folder"
  mkdir -p "$folder"
  sed -e 's,/libtare_furcate\.a,/libtare_unbuilt.a,g' -e 's,/bin/tare-predict",/bin/tare-unbuilt",g' \
    "$TARE_BUILD_DIR/cmake_install.cmake" >"$folder/install.cmake"
  if cmake -DCMAKE_INSTALL_PREFIX="$folder/prefix" -P "$folder/install.cmake" >"$folder/out" 2>&1; then
    die "an install without libtare_unbuilt.a was accepted"
  fi
  grep -q "Nothing was installed" "$folder/out" && grep -q "/libtare_unbuilt.a" "$folder/out" &&
    grep -q "/bin/tare-unbuilt" "$folder/out" && grep -q -e "--target installable" "$folder/out" ||
    { cat "$folder/out"; die "the refusal does not say what is missing and what to do"; }
  [ ! -e "$folder/prefix" ] || die "a part was installed"
}

deb() {
  local folder=$CONSUMER_DIR-deb
  command -v cpack >/dev/null && command -v dpkg-shlibdeps >/dev/null || skip "cpack or dpkg-shlibdeps is not installed"
  rm -rf "$folder"
  cpack --config "$TARE_BUILD_DIR/CPackConfig.cmake" -B "$folder/made" >/dev/null
  dpkg-deb -x "$folder"/made/tare_*.deb "$folder/root"
  rm -rf "$folder/made"
  local program
  for program in tare-train tare-predict; do
    [ "$(readelf -d "$folder/root/usr/bin/$program" | sed -n 's/.*runpath: //p')" = '[$ORIGIN/../lib/tare]' ] ||
      die "$program of the package looks for LibTorch elsewhere"
  done
  bare() { (cd "$folder" && env -i HOME="$folder" PATH="$folder/root/usr/bin:/usr/bin:/bin" OMP_NUM_THREADS=1 "$@"); }
  bare tare run digits/averaged data.name=generated_digits data.count=200 >"$folder/out" || { cat "$folder/out"; die "no run"; }
  bare tare data make generated_digits --count 10 --png --out images >/dev/null
  bare sh -c 'tare predict runs/digits-averaged/digits.tare images/7/*.png' | grep -q 'images/7/' || die "no prediction"
  rm -rf "$folder"
}

needed() { # program
  readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

# What only sweeps and pictures need is not linked into a program that trains.
check_linkage() { # program
  needed "$1" | grep -q '^libtorch_cpu\.so' || die "readelf does not list what $1 needs"
  if needed "$1" | grep -E '^lib(sqlite3|cairo|crypto|ssl)\.so'; then die "$1 needs them"; fi
}

linkage() {
  needed "$TARE_BUILD_DIR/bin/tare-train" | grep -q '^libcairo\.so' || die "tare-train draws, and does not need cairo?"
  check_linkage "$TARE_BUILD_DIR/bin/staged_digits"
  check_linkage "$TARE_BUILD_DIR/bin/tare-predict"
}

configure() { # build folder, compiler, more arguments
  command -v "$2" >/dev/null || skip "no $2 here"
  local folder=$1 compiler=$2; shift 2
  cmake -G Ninja -S "$project" -B "$folder" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_COMPILER_LAUNCHER="${TARE_LAUNCHER:-}" "$@"
}

build_and_run() { # build folder
  cmake --build "$1" --target train classify small
  cd "$1"
  check_linkage train
  ./train | tee out
  # 4 B * ((64 + 1) * 16 + (16 + 1) * 10 weights) + 96 images * (64 B + a label of 8 B)
  grep -qx "trained: 11752 B tracked" out || die "not the bytes of weights and data"
  grep -qx "destroyed: 0 B tracked" out || die "bytes remain"
  grep -qx "passed 2" out || die "the callback of the program was not called"
  grep -qx "recipe: 0 B left" out || die "bytes of the recipe remain"
  ./classify | grep -x "classified: 1 in 10 classes"
  ! needed small | grep -E '^lib(torch|c10)' || die "small needs LibTorch"
  ./small | grep -x "small: 1 in 10 classes"
}

package() { # compiler
  local folder=$CONSUMER_DIR/package-$(basename "$1")
  configure "$folder" "$1" -DCMAKE_PREFIX_PATH="$prefix"
  build_and_run "$folder"
}

expect() { # file, pattern
  grep -q -e "$2" "$1" || { cat "$1"; die "$1 has no line '$2'"; }
}

# A program that is `tare` with an entry of its own in each registry: lists, a recipe, texts and a sweep name them.
entries() { # compiler
  local folder=$CONSUMER_DIR/entries
  configure "$folder" "$1" -DCMAKE_PREFIX_PATH="$prefix"
  cmake --build "$folder" --target own
  cd "$folder"
  rm -rf runs texts
  for entry in "datasets rows" "transforms negative" "collates last_bytes" "models row_line" "losses halved" \
    "metrics bright" "optimizers plain" "schedules square" "callbacks stop_after" "samplers evenly" \
    "pruners at_once" "executors announcing"; do
    set -- $entry
    ./own ls "$1" >"ls-$1"
    expect "ls-$1" "^$2 "
  done
  cat >rows.yaml <<'END'
name: rows
folder: runs
device: cpu
batch: 8
workers: 0
data: {name: rows, transforms: [negative]}
model: {name: row_line}
loss: halved
metrics: [accuracy, bright]
optimizer: plain
callbacks: [{stop_after: {epochs: 6}}]
phases: [{epochs: 9, lr: 0.5, schedule: square}]
export: rows.tare
END
  ./own plan rows.yaml >plan
  expect plan "fits"
  ./own run rows.yaml >run
  expect run "^    6  "
  ! grep -q "^    7  " run || die "the callback did not stop the fit"
  expect runs/rows/recipe.yaml "negative"
  ./own inspect runs/rows/rows.tare >inspected
  expect inspected "row_line"
  for command in "predict runs/rows/rows.tare -" "export runs/rows/rows.tare --weights fp8 --out small.tare" "plan rows.yaml"; do
    # shellcheck disable=SC2086  # the words of the command
    if "$prefix/bin/tare" $command </dev/null 2>refused; then die "tare took what own adds: $command"; fi
    expect refused "in place of tare"
  done
  mkdir -p texts/a texts/b
  for i in 1 2 3 4 5 6 7 8; do printf 'text %s a' "$i" >"texts/a/$i.txt"; printf 'text %s b' "$i" >"texts/b/$i.txt"; done
  ./own run rows.yaml name=texts "data={name: text_folder, folder: texts, collate: last_bytes}" model.name=byte_line \
    metrics=[accuracy] "phases=[{epochs: 2}]" export=texts.tare >run
  expect run "^    2  "
  printf '97\n98\n' | ./own predict runs/texts/texts.tare - >predicted  # the last bytes, as the collate function leaves them
  expect predicted "[ab] "
  cat >sweep.yaml <<'END'
recipe: rows.yaml
name: own
log_dir: runs/sweep
method: evenly
trials: 3
metric: {name: valid_loss}
set: {phases.0.epochs: 1000000, callbacks: []}  # none ends before the pruner sees its first report
parameters: {phases.0.lr: {min: 0.1, max: 0.9}}
pruner: {type: at_once}
executor: {type: announcing}
resources: {jobs: 1}
END
  ./own sweep run sweep.yaml >swept
  expect swept "^starts "
  expect swept "3 pruned"
}

# The README of a new project, command by command.
new_project() { # compiler
  local folder=$CONSUMER_DIR/new_project
  rm -rf "$folder"
  mkdir -p "$folder"
  cd "$folder"
  "$prefix/bin/tare" new leaf_net >made
  expect made "leaf_net"
  cd leaf_net
  project=. configure build "$1" -DCMAKE_PREFIX_PATH="$prefix"
  cmake --build build
  ./build/leaf_net ls models >models
  expect models "^my_model "
  ./build/leaf_net validate recipe.yaml
  ./build/leaf_net run recipe.yaml device=cpu data.count=400 phases.0.epochs=1 phases.1.epochs=1 model.options.depth=2 >run
  expect run "exported .*leaf_net.tare"
  "$prefix/bin/tare" data make generated_digits --count 10 --png --out images >/dev/null
  ./build/leaf_net predict runs/leaf_net/leaf_net.tare images/7 >predicted
  expect predicted "images/7"
  ./build/leaf_net report runs/leaf_net >/dev/null
  cd ..
  "$prefix/bin/tare" new other --from digits/early >/dev/null
  cd other
  cp -r ../leaf_net/build/leaf_net program  # which has the project's model too
  ./program validate recipe.yaml "model=my_model" >valid
  expect valid "model my_model"
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
  project=$folder configure "$folder/build" "$1" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_FLAGS=-Werror=invalid-pch
  # Its one file is compiled with the precompiled header.
  ninja -C "$folder/build" -t commands waves | grep 'waves\.cpp' | grep -q 'tare_precompiled_program\.dir' ||
    die "the tutorial does not use the precompiled header"
  [ "$deep" = 1 ] || return 0
  cmake --build "$folder/build"
  cd "$folder"
  ./build/waves | tee out
  [ -s waves.tare ] || die "the tutorial left no bundle"
  grep -q "^a slow wave is slow, with a probability of 0\.9" out || die "the tutorial predicts something else"
}

headers() { # compiler
  local include=$prefix/include folders=(tare/base tare/config tare/tare.h)
  [ "$deep" = 0 ] || folders=(tare models)
  cd "$include"
  # LibTorch's modules would make every file of a user's four times as slow to compile.
  if "$1" -std=c++20 -M -I "$include" -isystem "$TARE_LIBTORCH/include" \
    -isystem "$TARE_LIBTORCH/include/torch/csrc/api/include" -x c++ tare/tare.h | grep -o '[^ ]*/api/include/torch/.*'; then
    die "tare.h includes LibTorch's front end"
  fi
  find "${folders[@]}" -name '*.h' -print0 | xargs -0 -P 2 -I{} "$1" -std=c++20 -fsyntax-only -Wall -Wextra \
    -I "$include" -isystem "$TARE_LIBTORCH/include" -isystem "$TARE_LIBTORCH/include/torch/csrc/api/include" \
    -include {} -x c++ /dev/null
}

case $1 in
  install) install_tare ;;
  project) new_project "$2" ;;
  deb | incomplete | linkage | package | entries | subdirectory | tutorial | headers) "$@" ;;
  *) die "what is '$1'?" ;;
esac
