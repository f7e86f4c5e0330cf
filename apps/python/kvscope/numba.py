"""Numba CUDA kernels on the virtual GPU, with arrays in host memory. Numba is imported when it is first needed.

    def scale(x, factor):                       # a plain function: no GPU is looked for
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= factor

    kv.numba.launch(scale, 4, 32, x, 2.5)       # a LaunchResult

Numba's own compiler (numba-cuda with NVVM, `pip install "numba-cuda[cu12]"`) makes the PTX, without a GPU.
"""
from __future__ import annotations

import importlib
import inspect
from typing import Any, Sequence

import numpy as np

from ._calls import guided
from ._errors import CompileError, InputError
from ._launch import LaunchResult, Module, Parameter

__all__ = ["launch"]


def _numba(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise CompileError(f"{module} cannot be imported: {error}. Install Numba's CUDA compiler: "
                           "pip install \"numba-cuda[cu12]\"") from None


def _flat(name: str, value: Any) -> list[tuple[str, Any]]:
    """(name, value) of the PTX parameters of an argument. An array is two null pointers, its elements, their size, its
    data, then shape and strides: struct ArrayModel of numba/core/datamodel/models.py."""
    if isinstance(value, np.ndarray):
        shape = [(f"{name}.shape[{i}]", n) for i, n in enumerate(value.shape)]
        strides = [(f"{name}.strides[{i}]", n) for i, n in enumerate(value.strides)]
        return [(f"{name}.meminfo", 0), (f"{name}.parent", 0), (f"{name}.nitems", value.size),
                (f"{name}.itemsize", value.itemsize), (name, value), *shape, *strides]
    if isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        return [(name, value)]
    raise InputError(f"argument {name} is {type(value).__name__}: pass NumPy arrays and numbers")


@guided
def launch(kernel: Any, grid: int | Sequence[int], block: int | Sequence[int], *args: Any, target: int = 90,
           **options: Any) -> LaunchResult:
    """Compiles a Python function with Numba for sm_90 and runs it on the virtual GPU.

    kernel    a function, or the kernel that @cuda.jit made of one
    args      contiguous NumPy arrays and numbers; their types choose the signature, as in a call of the kernel
    options   shared, cluster, checks, schedule, ... of Kernel.launch()

    The accesses of each array are checked against its bounds. Reports raise nothing: see LaunchResult.clean.
    """
    cuda, typing = _numba("numba.cuda"), _numba("numba")
    function = getattr(kernel, "py_func", kernel)
    names = list(inspect.signature(function).parameters)
    if len(args) != len(names):
        raise InputError(f"{len(args)} arguments given, kernel {function.__name__}({', '.join(names)}) takes "
                         f"{len(names)}")
    flat = [one for name, value in zip(names, args) for one in _flat(name, value)]
    signature = tuple(typing.typeof(value) for value in args)
    try:
        ptx = cuda.compile_ptx(function, signature, cc=divmod(target, 10), lineinfo=True)[0]
    except typing.core.errors.NumbaError as error:
        raise CompileError(f"Numba rejected {function.__name__}: {error}") from None
    compiled = Module(ptx, f"{function.__name__}.ptx", target=target).kernels[0]
    if len(compiled.parameters) != len(flat):
        raise CompileError(f"Numba compiled {function.__name__} to {len(compiled.parameters)} parameters, kvscope "
                           f"expected {len(flat)}: this version of Numba passes arguments that kvscope does not have")
    compiled.parameters = [Parameter(name, p.ptx_name, p.type, p.type_name, p.bytes, p.fields)
                           for p, (name, _) in zip(compiled.parameters, flat)]
    return compiled.launch(grid, block, args=[value for _, value in flat], **options)
