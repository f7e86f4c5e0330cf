"""CUDA source to PTX: by nvcc, or by the NVRTC library of NVIDIA's wheel."""
from __future__ import annotations

import ctypes
import glob
import os
import shutil
import subprocess
import tempfile
from typing import Sequence

from ._errors import CompileError
from ._launch import Module
from ._nvrtc import library


def _nvcc() -> str | None:
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("nvcc") or shutil.which("nvcc", path=os.path.join(home, "bin"))


def _by_nvcc(nvcc: str, source: str, arch: str, options: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory(prefix="kvscope-") as folder:
        path, out = os.path.join(folder, "kernel.cu"), os.path.join(folder, "kernel.ptx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        done = subprocess.run([nvcc, "-ptx", "-lineinfo", f"-arch={arch}", *options, path, "-o", out],
                              capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise CompileError(f"nvcc rejected the source:\n{done.stderr.strip()}")
        with open(out, encoding="utf-8") as file:
            return file.read()


def _by_nvrtc(path: str, source: str, arch: str, options: Sequence[str]) -> str:
    # libnvrtc opens its builtins by name, which finds a library that is loaded already.
    for builtins in glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so.*")):
        ctypes.CDLL(builtins, ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(path)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None) != 0:
        raise CompileError(f"{path} cannot create a program")
    try:
        words = [f"--gpu-architecture={arch.replace('sm_', 'compute_')}", "--generate-line-info", *options]
        list_of = (ctypes.c_char_p * len(words))(*[word.encode() for word in words])
        failed = nvrtc.nvrtcCompileProgram(program, len(words), list_of) != 0
        prefix = "nvrtcGetProgramLog" if failed else "nvrtcGetPTX"
        getattr(nvrtc, prefix + "Size")(program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, prefix)(program, data)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise CompileError(f"NVRTC rejected the source:\n{data.value.decode(errors='replace').strip()}")
    return data.value.decode()


def compile(source: str, *, arch: str = "sm_90a", options: Sequence[str] = ()) -> Module:
    """Compiles CUDA source without a GPU: with nvcc, or with the wheel nvidia-cuda-nvrtc. The names of parameters come
    from the source. CompileError with the compiler's output, or if there is no compiler."""
    nvcc, nvrtc = _nvcc(), library()
    if nvcc is not None:
        ptx = _by_nvcc(nvcc, source, arch, options)
    elif nvrtc is not None:
        ptx = _by_nvrtc(nvrtc, source, arch, options)
    else:
        raise CompileError("no compiler: install the CUDA toolkit (nvcc), or pip install nvidia-cuda-nvrtc-cu12; "
                           "kv.load(\"kernel.ptx\") needs none")
    return Module(ptx, "kernel.ptx", target=int("".join(c for c in arch if c.isdigit())), source=source)
