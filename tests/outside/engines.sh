#!/bin/bash
# The capture hooks of the Python module in vLLM, SGLang and FlashInfer of PyPI: their classes are imported and called with CPU
# tensors, and `python -m kvscope replay` judges what is kept. Not part of tests/run.sh: it downloads about 4 GB. No GPU is used.
#
#   tests/outside/engines.sh [FOLDER]     FOLDER: build/engines, the virtual environment; kept for the next run
#
# SGLang's torch-native backend runs whole. vLLM's FlashAttentionImpl and FlashInfer's wrappers run whole but for their compiled
# attention, which only a GPU runs: the tests put NumPy in its place.
set -euo pipefail
cd "$(dirname "$0")/../.."

environment=${1:-build/engines}
module=$PWD/build/release/apps/python
ls "$module"/kvscope/_core.*.so >/dev/null 2>&1 || {
  echo "engines.sh: no Python module in build/release: cmake --preset release && cmake --build --preset release --target kvscope_python" >&2
  exit 2
}
[ -x "$environment/bin/python" ] || /usr/bin/python3 -m venv "$environment"
pip="$environment/bin/pip install --quiet --disable-pip-version-check"
# The engines name hundreds of packages for their servers, and different versions of PyTorch: only what these imports need.
$pip torch torchvision numpy ml_dtypes pytest aiohttp apache-tvm-ffi==0.1.11 blake3 cachetools cbor2 cloudpickle compressed-tensors \
  depyf einops fastapi gguf ipython jsonschema lark llguidance mistral_common msgspec ninja nvidia-cudnn-frontend nvidia-cutlass-dsl \
  nvidia-ml-py openai openai-harmony orjson partial-json-parser prometheus-fastapi-instrumentator prometheus_client psutil py-cpuinfo \
  pybase64 pydantic python-json-logger pyyaml pyzmq regex requests sentencepiece setproctitle tabulate tiktoken tqdm \
  "transformers>=5.16.1,<5.21" uvicorn uvloop watchfiles xgrammar
$pip --no-deps vllm==0.33.0 sglang==0.5.23 flashinfer-python==0.7.2.post1
export PYTHONPATH=$module PYTHONDONTWRITEBYTECODE=1
for engine in signatures vllm sglang flashinfer; do  # a process each: they change PyTorch
  "$environment/bin/python" -W ignore -m pytest -q -rs -p no:cacheprovider -p no:warnings -c /dev/null --rootdir=tests/python \
    "tests/python/capture_${engine}_test.py"
done
