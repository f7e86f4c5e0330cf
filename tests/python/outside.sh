#!/bin/bash
# The tests of the Python module that need packages of PyPI: Triton, PyTorch, JAX, ml_dtypes, NVRTC, Numba. Makes the virtual
# environment FOLDER with them (about 6 GB, kept for the next run), and runs all tests of tests/python in it with the module of
# build/release. No GPU is needed.
#
#   tests/python/outside.sh [FOLDER] [pytest's arguments]        FOLDER: build/outside
set -euo pipefail
cd "$(dirname "$0")/../.."

environment=${1:-build/outside}
[ $# -eq 0 ] || shift
module=$PWD/build/release/apps/python
ls "$module"/kvscope/_core.*.so >/dev/null 2>&1 || {
  echo "outside.sh: no Python module in build/release: cmake --preset release && ninja -C build/release kvscope_python" >&2
  exit 2
}
[ -x "$environment/bin/python" ] || /usr/bin/python3 -m venv "$environment"
"$environment/bin/pip" install --quiet pytest hypothesis numpy ml_dtypes "triton>=3.4" torch jax "numba-cuda[cu12]" nvidia-cuda-nvrtc-cu12 \
  nvidia-cuda-runtime-cu12
environment=$(cd "$environment" && pwd)
export PYTHONPATH=$module PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=$environment/hypothesis
arguments=(-q -rs -p no:cacheprovider -c /dev/null)
"$environment/bin/python" -m pytest "${arguments[@]}" --rootdir=tests/python --ignore=tests/python/types_test.py tests/python "$@"
cd docs/examples/check_triton_kernels
"$environment/bin/python" -m pytest "${arguments[@]}" --rootdir=. -p kvscope.pytest_plugin test_triton_kernels.py
