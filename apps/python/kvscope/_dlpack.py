"""Arrays through DLPack (dmlc.github.io/dlpack, version 1.1) whose element types NumPy cannot import: bf16 and fp8."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

# DLDataTypeCode and bits -> (element type of kvscope, NumPy's type of the bit patterns)
_TYPES = {(4, 16): ("bf16", "<u2"), (10, 8): ("e4m3", "|u1"), (12, 8): ("e5m2", "|u1"), (14, 8): ("e8m0", "|u1")}
_CPU = 1  # kDLCPU


class HostMemory:
    """Host memory for np.asarray(), which shares it. `owner` lives as long as the array."""

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None,
                 elements: str, writeable: bool) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "data": (address, not writeable), "shape": shape, "typestr": elements,
                                    "strides": strides}


class _Tensor(ctypes.Structure):  # DLTensor
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def narrow_floats(value: Any) -> tuple[np.ndarray[Any, Any], str] | None:
    """The bit patterns of `value`, in place, and their element type; None if the elements are not bf16 or fp8 or are
    not in host memory."""
    capsule = value.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    found = _TYPES.get((tensor.code, tensor.bits))
    if found is None or tensor.lanes != 1 or tensor.device_type != _CPU:
        return None
    shape = tuple(tensor.shape[:tensor.ndim])
    size = tensor.bits // 8
    strides = tuple(n * size for n in tensor.strides[:tensor.ndim]) if tensor.strides else None
    # The capsule's destructor frees the tensor: it is not consumed.
    memory = HostMemory(capsule, (tensor.data or 0) + tensor.byte_offset, shape, strides, found[1], True)
    return np.asarray(memory), found[0]
