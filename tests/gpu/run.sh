#!/bin/bash
# Checks the GPU of this machine: every kernel's cases, the probes, the times; then, if compute-sanitizer is installed,
# the small cases again under its memcheck and racecheck. Reports are written to a folder.
#
#   tests/gpu/run.sh                          build gpu-check, run it
#   tests/gpu/run.sh build/gpu-check          a program that is already built
#   tests/gpu/run.sh gpu-check -- --small     arguments after -- are passed to gpu-check (see its --help); default: run everything
#
# One machine to build, another to run: gpu-check contains the kernels and needs only the CUDA driver, no toolkit.
#   on the first      cmake --preset release && cmake --build --preset release --target gpu-check
#   copy              build/release/gpu-check and this file to one folder
#   on the second     ./run.sh ./gpu-check
#
# Environment: KVSCOPE_REPORTS  folder of the reports (gpu-reports)
#              KVSCOPE_DRIVER   the driver's library (libcuda.so.1)
# Exit codes: 0 all passed, 1 something failed, 2 usage or a build that failed, 77 no GPU, with the reason.
set -uo pipefail

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; }
stop() {
  echo "$(basename "$0"): $*" >&2
  exit 2
}

check=""
asked=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage && exit 0 ;;
    --) shift && asked=("$@") && break ;;
    -*) stop "unknown option '$1': options of gpu-check follow --" ;;
    *) [ -z "$check" ] || stop "two programs: '$check' and '$1'" && check=$1 && shift ;;
  esac
done

if [ -z "$check" ]; then
  root=$(cd "$(dirname "$0")/../.." && pwd)
  [ -f "$root/CMakePresets.json" ] || stop "no sources next to this script: give the path of a built gpu-check"
  (cd "$root" && cmake --preset release -DKVSCOPE_BUILD_VIEWER=OFF -DKVSCOPE_BUILD_TESTS=OFF -B build/gpu &&
    cmake --build build/gpu --target gpu-check -j "$(nproc)") || stop "gpu-check could not be built (above)"
  check=$root/build/gpu/gpu-check
fi
[ -x "$check" ] || stop "no program '$check'"
case "$check" in */*) ;; *) check=./$check ;; esac

reports=${KVSCOPE_REPORTS:-gpu-reports}
driver=(--driver "${KVSCOPE_DRIVER:-libcuda.so.1}")
[ ${#asked[@]} -gt 0 ] || asked=(--cases --probes --bench)

"$check" "${driver[@]}" --device cuda --out "$reports" "${asked[@]}"
code=$?
[ $code -ne 77 ] || echo "skipped: there is no GPU to run on (above); kvscope kernels verify needs none" >&2
[ $code -eq 0 ] || [ $code -eq 1 ] || exit $code

if ! command -v compute-sanitizer >/dev/null; then
  echo "skipped: memcheck and racecheck: compute-sanitizer, a part of the CUDA toolkit, is not in PATH"
  exit $code
fi
for tool in memcheck racecheck; do
  log=$reports/$tool.log
  if compute-sanitizer --tool "$tool" --error-exitcode 9 "$check" "${driver[@]}" --device cuda \
    --in-process --cases --small --out "$reports/$tool" >"$log" 2>&1; then
    echo "$tool: no fault in the small cases ($log)"
  else
    echo "$tool: FAILED, exit code $? ($log):"
    tail -n 20 "$log"
    code=1
  fi
done
exit $code
