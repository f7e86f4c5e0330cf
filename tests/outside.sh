#!/bin/bash
# Published kernels of PyPI's packages on the virtual GPU: compiled, run with real inputs, compared with NumPy, and run again with
# seeded bugs. Not part of tests/run.sh: it needs nvcc, Python with NumPy and pip, the package index, and minutes. No GPU is used.
#
#   tests/outside.sh                      every recipe of tests/outside/recipes; at the end a table
#   tests/outside.sh --list               the kernels
#   tests/outside.sh --only ggml          kernels whose 'recipe unit: kernel' contains the text
#   tests/outside.sh --update-docs        writes the table to docs/15_virtual_gpu.md
# All options: tests/outside.sh --help. Downloads and PTX are kept in build/outside.
# Environment: KVSCOPE_PYTHON   folder of the module kvscope (build/release/apps/python)
#              KVSCOPE_PROGRAM  the program kvscope (build/release/apps/kvscope/kvscope)
set -euo pipefail
cd "$(dirname "$0")/.."

module=${KVSCOPE_PYTHON:-build/release/apps/python}
if [ ! -d "$module/kvscope" ]; then
  echo "outside.sh: no module kvscope in $module: cmake --preset release && cmake --build --preset release --target kvscope_python" >&2
  exit 2
fi
export KVSCOPE_PROGRAM=${KVSCOPE_PROGRAM:-$PWD/build/release/apps/kvscope/kvscope}
if [ ! -x "$KVSCOPE_PROGRAM" ]; then
  echo "outside.sh: no program $KVSCOPE_PROGRAM: cmake --preset release && cmake --build --preset release --target kvscope" >&2
  exit 2
fi
export PYTHONPATH="$module${PYTHONPATH:+:$PYTHONPATH}"
exec "${PYTHON:-/usr/bin/python3}" tests/outside/outside.py "$@"
