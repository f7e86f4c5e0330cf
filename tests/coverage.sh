#!/bin/bash
# Branch coverage of the tests, per folder: which outcomes of each condition the tests take, counted by clang and llvm-cov. Tests of whole
# programs in Python count too, if their programs are built.
#
#   tests/coverage.sh                       every test program; the table of docs/CONTRIBUTING.md
#   tests/coverage.sh base_test trace_test  only these test programs
#   tests/coverage.sh --lines core/base     the lines of these files or folders with an outcome that no test takes, after a run
# Environment: KVSCOPE_JOBS (all processors).
set -euo pipefail
cd "$(dirname "$0")/.."
. apps/packages.sh
command -v llvm-cov >/dev/null || stop "llvm-cov is not installed: apt-get install llvm"

build=build/coverage profiles=build/coverage/profiles data=build/coverage/tests.profdata
jobs=${KVSCOPE_JOBS:-$(nproc)}

# export_coverage [OPTION...]: llvm-cov over every executable of the build. The first is a positional argument, the others are options.
export_coverage() {
  local found
  mapfile -t found < <(find "$build" -name CMakeFiles -prune -o -type f -executable ! -name '*.so' -print | sort)
  llvm-cov export "$@" -instr-profile="$data" "${found[0]}" "${found[@]/#/-object=}"
}

if [ "${1:-}" = --lines ]; then
  shift
  [ -e "$data" ] || stop "run tests/coverage.sh first: $data does not exist"
  export_coverage | python3 tests/coverage.py --lines "$@"
  exit 0
fi

# shellcheck disable=SC2086 # one word a package
install_missing $core_packages $viewer_packages $development_packages $fuzz_packages
cmake --preset coverage >build/coverage.configure.log 2>&1 || {
  tail -n 30 build/coverage.configure.log >&2
  stop "configuring coverage failed (above)"
}
if [ $# -gt 0 ]; then
  cmake --build --preset coverage -j "$jobs" --target "$@"
else
  cmake --build --preset coverage -j "$jobs"
fi

rm -rf "$profiles"
mkdir -p "$profiles"
export LLVM_PROFILE_FILE="$PWD/$profiles/%p-%4m.profraw" QT_QPA_PLATFORM=offscreen
if [ $# -gt 0 ]; then
  for name in "$@"; do
    program=$(find "$build" -type f -executable -name "$name")
    "$program" --gtest_brief=1
  done
else
  ctest --preset coverage -j "$jobs" -LE full
fi
find "$profiles" -name '*.profraw' -size +0 >"$profiles/list"
llvm-profdata merge -sparse -f "$profiles/list" -o "$data"
export_coverage | python3 tests/coverage.py
