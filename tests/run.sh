#!/bin/bash
# The checks of the project on a Debian 12 machine, bare or not, as root or with sudo. Installs missing packages, builds `release` and
# `asan` with warnings as errors, and runs the tests under both, among them mutated files. A second run installs nothing and rebuilds
# nothing. At the end it prints a table of the times.
#
#   tests/run.sh            at most 30 minutes for a first run on two cores
#   tests/run.sh --quick    after each change: the release build and its tests, without those labeled `slow`
#   tests/run.sh --fuzz     after a change of a parser: builds each fuzz target with clang and runs it over its kept inputs, then for a
#                           few seconds more
#   tests/run.sh --full     before a release, and after a change of a formula or a kernel: every point of every property grid, ten times
#                           as many random cases and other ones each time, every test under the sanitizers too, threads under the
#                           thread sanitizer, all attacks of tests/attack, a build with clang, and the fuzz targets
# Environment: KVSCOPE_FUZZ_SECONDS (5; --full: 30) for each fuzz target; KVSCOPE_JOBS (all processors); RC_PARAMS, the options of
# RapidCheck: by default, its random cases are the same in each run.
set -euo pipefail
cd "$(dirname "$0")/.."
. apps/packages.sh

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; }

extent=default
for argument in "$@"; do
  case "$argument" in
    --quick) extent=quick ;;
    --full) extent=full ;;
    --fuzz) extent=fuzz ;;
    -h | --help) usage && exit 0 ;;
    *) stop "unknown argument '$argument': tests/run.sh [--quick | --fuzz | --full]" ;;
  esac
done

jobs=${KVSCOPE_JOBS:-$(nproc)}
fuzz_seconds=5
if [ "$extent" = full ]; then
  fuzz_seconds=30
  export KVSCOPE_FULL=1  # every point of a grid: tests/whole_grid.h
fi
# A change is judged by cases that do not depend on the run; --full looks for cases that fail.
[ "$extent" = full ] || export RC_PARAMS=${RC_PARAMS-seed=1}
fuzz_seconds=${KVSCOPE_FUZZ_SECONDS:-$fuzz_seconds}
summary=()
part_started=0

part() {
  heading "$*"
  part_started=$SECONDS
}
part_done() { summary+=("$(printf '%-28s %4d s   %s' "$1" $((SECONDS - part_started)) "${2:-}")"); }

# run_tests PRESET [CTEST OPTION...]. Passed tests are counted, not listed; failed ones print their output, skipped ones their
# reason. One test more than processors: some wait for a window or a timer.
run_tests() {
  local preset=$1 log=build/$1/ctest.log code=0
  shift
  ctest --preset "$preset" -j $((jobs + 1)) "$@" 2>&1 | tee "$log" |
    { grep --line-buffered -vE '^ +Start +[0-9]+: | Passed +[0-9.]+ sec *$|^ *$' || true; } || code=$?
  awk '/: Skipped$/ { getline reason; if (!(reason in seen)) print "skipped: " reason; seen[reason] = 1 }' \
    "build/$preset/Testing/Temporary/LastTest.log"
  [ "$code" -eq 0 ] || stop "tests failed under $preset (above); again, only those: ctest --preset $preset --rerun-failed"
  echo "slowest: $(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+).* ([0-9.]+) sec$/\2 s \1/p' "$log" | sort -rn |
    head -n 5 | paste -sd ';' | sed 's/;/; /g')"
}

build_preset() {
  local preset=$1
  part "$preset: configure and build"
  cmake --preset "$preset" >"build/$preset.configure.log" 2>&1 || {
    tail -n 30 "build/$preset.configure.log" >&2
    stop "configuring $preset failed (above)"
  }
  cmake --build --preset "$preset" -j "$jobs"
  part_done "$preset: build"
}

# build_and_test PRESET [CTEST OPTION...]
build_and_test() {
  local preset=$1
  shift
  build_preset "$preset"
  part "$preset: tests"
  run_tests "$preset" "$@"
  part_done "$preset: tests" "$(grep -oE '[0-9]+ tests failed out of [0-9]+' "build/$preset/ctest.log" |
    sed -E 's/([0-9]+) tests failed out of ([0-9]+)/\2 tests, \1 failed/')"
}

# fuzz_target NAME: first every kept input by itself (a crash then names its file), then new ones grown from them; seed fixed.
fuzz_target() {
  local name=$1 corpus=tests/fuzz/corpus/${1%_fuzz} found=build/fuzz/found/$1 log=build/fuzz/$1.log artifacts=build/fuzz/artifacts
  mkdir -p "$found"
  if ! { build/fuzz/tests/fuzz/"$name" -artifact_prefix="$artifacts/$name-" -timeout=20 "$corpus"/* >"$log" 2>&1 &&
    build/fuzz/tests/fuzz/"$name" -artifact_prefix="$artifacts/$name-" -timeout=20 -rss_limit_mb=2048 -seed=1 \
      -max_total_time="$fuzz_seconds" "$found" "$corpus" >"$log" 2>&1; }; then
    tail -n 40 "$log" >&2
    echo "$name found a fault (above); the input is kept as $artifacts/$name-*: fix, then add it to $corpus/" >&2
    return 1
  fi
  printf '%-24s %4d kept inputs, %s\n' "$name" "$(find "$corpus" -type f | wc -l)" "$(grep -E '^Done' "$log" || tail -n 1 "$log")"
}

fuzz() {
  build_preset fuzz
  part "fuzz: each target over its corpus, then $fuzz_seconds s more"
  local source name targets=()
  mkdir -p build/fuzz/artifacts
  for source in tests/fuzz/*_fuzz.cpp; do
    [ -e "$source" ] || stop "tests/fuzz holds no *_fuzz.cpp"
    name=$(basename "$source" .cpp)
    [ -d "tests/fuzz/corpus/${name%_fuzz}" ] ||
      stop "$source has no corpus: keep at least one input in tests/fuzz/corpus/${name%_fuzz}/"
    targets+=("$name")
  done
  export -f fuzz_target
  export fuzz_seconds
  printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I NAME bash -c 'fuzz_target NAME' ||
    stop "a fuzz target found a fault (above)"
  part_done "fuzz: run" "${#targets[@]} targets"
}

part "packages"
case "$extent" in
  full | fuzz) development_packages="$development_packages $fuzz_packages" ;;
esac
# shellcheck disable=SC2086 # one word a package
install_missing $core_packages $python_packages $viewer_packages $development_packages
part_done "packages"
mkdir -p build

if [ "$extent" = fuzz ]; then
  fuzz
  heading "passed"
  printf '%s\n' "${summary[@]}"
  exit 0
fi

if [ "$extent" = quick ]; then
  build_and_test release -LE 'slow|full'
elif [ "$extent" = default ]; then
  build_and_test release -LE full
else
  RC_PARAMS=${RC_PARAMS-max_success=1000} build_and_test release
fi

# The demo on the build that is there already: it must end in its last heading, having installed and built nothing.
part "demo"
apps/demo.sh >build/demo.log 2>&1 || {
  tail -n 20 build/demo.log >&2
  stop "apps/demo.sh failed (above)"
}
grep -q '^== done$' build/demo.log || stop "apps/demo.sh did not end in its report: see build/demo.log"
part_done "demo"

if [ "$extent" = default ]; then
  build_and_test asan -LE "once|full"
elif [ "$extent" = full ]; then
  build_and_test asan
  build_and_test tsan
  build_preset coverage  # the code that only clang rejects
  fuzz
fi

heading "passed"
printf '%s\n' "${summary[@]}"
printf '%-28s %4d s\n' "whole" "$SECONDS"
