"""CUDA source to PTX: by nvcc, or by the NVRTC library of NVIDIA's wheel."""
from __future__ import annotations

import ctypes
import glob
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Sequence

from ._errors import CompileError, InputError
from ._launch import Module


def _nvcc() -> str | None:
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("nvcc") or shutil.which("nvcc", path=os.path.join(home, "bin"))


def _nvrtc() -> str | None:
    for folder in sys.path:
        found = sorted(glob.glob(os.path.join(folder, "nvidia", "c*", "lib", "libnvrtc.so.*")))
        if found:
            return found[0]
    return None


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


def _by_nvrtc(library: str, source: str, arch: str, options: Sequence[str]) -> str:
    nvrtc = ctypes.CDLL(library)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None) != 0:
        raise CompileError(f"{library} cannot create a program")
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


def compile(source: str, *, arch: str = "sm_90a", options: Sequence[str] = (), compiler: str = "") -> Module:
    """Compiles CUDA source without a GPU: with nvcc, or with the wheel nvidia-cuda-nvrtc. The names of parameters come
    from the source. `compiler` is "nvcc" or "nvrtc"; by default nvcc if it is installed. CompileError with the compiler's
    output, or if there is no compiler."""
    if compiler not in ("", "nvcc", "nvrtc"):
        raise InputError(f"compiler is {compiler!r}: \"nvcc\", \"nvrtc\", or \"\" for the one that is installed")
    nvcc = _nvcc() if compiler != "nvrtc" else None
    nvrtc = _nvrtc() if compiler != "nvcc" else None
    if nvcc is not None:
        ptx = _by_nvcc(nvcc, source, arch, options)
    elif nvrtc is not None:
        ptx = _by_nvrtc(nvrtc, source, arch, options)
    else:
        raise CompileError(f"no {compiler or 'compiler'}: install the CUDA toolkit (nvcc), or pip install "
                           "nvidia-cuda-nvrtc-cu12; kv.load(\"kernel.ptx\") needs none")
    return Module(ptx, "kernel.ptx", target=int("".join(c for c in arch if c.isdigit())), source=source)
