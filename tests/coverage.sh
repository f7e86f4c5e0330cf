#!/bin/bash
# Branch coverage of the tests, per folder: which outcomes of each condition the tests take, counted by clang and llvm-cov.
#
#   tests/coverage.sh                       every test, those of whole programs in Python too
#   tests/coverage.sh --update-docs         the same, and writes the table to docs/CONTRIBUTING.md
#   tests/coverage.sh base_test trace_test  only these test programs
#   tests/coverage.sh golden_test apps.lint_test apps.layouts_test
#                                           a name with a dot is a CTest test: the programs that it runs are built first, and count too
#   tests/coverage.sh --lines core/base     the lines of these files or folders with an outcome that no test takes, after a run
# Environment: KVSCOPE_JOBS (all processors).
set -euo pipefail
cd "$(dirname "$0")/.."
. apps/packages.sh
command -v llvm-cov >/dev/null || stop "llvm-cov is not installed: apt-get install llvm"

build=build/coverage profiles=build/coverage/profiles data=build/coverage/tests.profdata
ran=build/coverage/programs.list  # the programs whose runs were counted
jobs=${KVSCOPE_JOBS:-$(nproc)}

# llvm-cov over the programs that ran. The first is a positional argument, the others are options.
export_coverage() {
  local programs
  mapfile -t programs <"$ran"
  llvm-cov export -instr-profile="$data" "${programs[0]}" "${programs[@]/#/-object=}"
}

# program_of TARGET: its executable.
program_of() { find "$build" -name CMakeFiles -prune -o -type f -executable -name "$1" -print; }

# programs_of TEST...: what the CTest tests run, from their commands and environments, as targets of the build.
programs_of() {
  local listed named
  listed=$(LLVM_PROFILE_FILE=/dev/null ctest --preset coverage --show-only=json-v1)
  named=$(printf '%s' "$listed" | python3 tests/coverage.py --programs "$PWD/$build" "$@") || return
  ninja -C "$build" -t targets all | sed 's/: .*//' | grep -xF "$named"
}

if [ "${1:-}" = --lines ]; then
  shift
  [ -e "$data" ] || stop "run tests/coverage.sh first: $data does not exist"
  newer=$(find "$@" -type f -newer "$data" | head -n 1)
  [ -z "$newer" ] || stop "$newer is newer than the last run, whose lines may be others: run tests/coverage.sh again"
  export_coverage | python3 tests/coverage.py --lines "$@"
  exit 0
fi

page=()
if [ "${1:-}" = --update-docs ]; then
  [ $# -eq 1 ] || stop "--update-docs runs every test: leave out '$2'"
  page=(--page docs/CONTRIBUTING.md)
  shift
fi

targets=() tests=()  # of the arguments: test programs, and names of CTest tests
for name in "$@"; do
  case "$name" in
    -*) stop "unknown option '$name': tests/coverage.sh [--update-docs | TEST_PROGRAM | CTEST_TEST]... or --lines PATH..." ;;
    *.*) tests+=("$name") ;;
    *) targets+=("$name") ;;
  esac
done

# shellcheck disable=SC2086 # one word a package
install_missing $core_packages $python_packages $viewer_packages $development_packages $fuzz_packages
mkdir -p build
cmake --preset coverage >build/coverage.configure.log 2>&1 || {
  tail -n 30 build/coverage.configure.log >&2
  stop "configuring coverage failed (above)"
}
run_by_tests=()
if [ ${#tests[@]} -gt 0 ]; then
  list=$(programs_of "${tests[@]}") || stop "no programs of ${tests[*]} (above); ctest --preset coverage -N lists the tests"
  mapfile -t run_by_tests <<<"$list"
fi
rm -f "$data"
if [ $# -gt 0 ]; then
  cmake --build --preset coverage -j "$jobs" --target "${targets[@]}" "${run_by_tests[@]}"
  for name in "${targets[@]}"; do
    [ -n "$(program_of "$name")" ] || stop "'$name' is not a program: give a test program such as golden_test"
  done
  {
    for name in "${targets[@]}"; do program_of "$name"; done
    for name in "${run_by_tests[@]}"; do echo "$build/$name"; done
  } | grep -v '\.so$' | sort -u >"$ran"
else
  cmake --build --preset coverage -j "$jobs"
  # Of the shared libraries, the Python module alone is the project's own and no tool of a test.
  find "$build" -name CMakeFiles -prune -o -type f -executable \( ! -name '*.so' -o -name '_core.*.so' \) -print | sort >"$ran"
fi

rm -rf "$profiles"
mkdir -p "$profiles"
# Runs of one program add their counts to one file of four: a test of whole programs can start a program thousands of times.
export LLVM_PROFILE_FILE="$PWD/$profiles/%4m.profraw" QT_QPA_PLATFORM=offscreen
for name in "${targets[@]}"; do
  "$(program_of "$name")" --gtest_brief=1
done
# A test that limits memory or the size of files can fail here, because counting needs more. Its branches count, and its name is printed.
run_tests() {
  ctest --preset coverage -j "$jobs" --timeout 3600 "$@" ||
    echo "coverage.sh: tests failed (above); whether they pass is for tests/run.sh to say" >&2
}
if [ ${#tests[@]} -gt 0 ]; then
  pattern=$(printf '|%s' "${tests[@]//./\\.}")
  run_tests -R "^(${pattern:1})$"
elif [ $# -eq 0 ]; then
  run_tests -LE full
fi
find "$profiles" -name '*.profraw' -size +0 >"$profiles/list"
llvm-profdata merge -sparse -f "$profiles/list" -o "$data"
export_coverage | python3 tests/coverage.py "${page[@]}"
