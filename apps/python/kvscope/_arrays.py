"""Arrays of NumPy, PyTorch, JAX and others as bytes with an element type, and back as the kind that they were."""
from __future__ import annotations

import dataclasses
import importlib
import sys
import warnings
from typing import Any, Mapping

import numpy as np

from . import _core
from ._calls import guided, text_of
from ._dlpack import narrow_floats
from ._errors import DeviceMemoryWarning, InputError

_NUMPY = {"float64": "f64", "float32": "f32", "float16": "f16", "int8": "i8", "uint8": "u8", "bool": "u8",
          "int16": "i16",
          "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64",
          "bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e8m0fnu": "e8m0"}
_OF_KVSCOPE = {"f64": "float64", "f32": "float32", "f16": "float16", "i8": "int8", "u8": "uint8", "i16": "int16",
               "u16": "uint16", "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64"}
_NARROW = {"bf16": ("bfloat16", "uint16"), "e4m3": ("float8_e4m3fn", "uint8"), "e5m2": ("float8_e5m2", "uint8"),
           "e8m0": ("float8_e8m0fnu", "uint8")}


@dataclasses.dataclass(frozen=True)
class Array:
    """An array as kvscope sees it. `values` shares the caller's memory; narrow floats are there as uint16 or uint8."""
    values: np.ndarray[Any, Any]
    dtype: str  # of kvscope: "bf16"
    kind: str   # "numpy", "torch" or "jax"


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_jax(value: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def _of_torch(name: str, value: Any) -> Array:
    torch = sys.modules["torch"]
    if value.device.type != "cpu":
        raise InputError(f"{name} is on {value.device}, not in host memory: pass {name}.cpu()")
    if value.layout != torch.strided:
        raise InputError(f"{name} has the layout {value.layout}: pass {name}.to_dense()")
    if value.is_neg():
        raise InputError(f"{name} is a view whose elements have the opposite sign: pass {name}.resolve_neg()")
    value = value.detach()
    short = str(value.dtype).removeprefix("torch.")
    if short not in _NUMPY:
        raise InputError(f"{name} has the element type {short}, which kvscope does not have: one of "
                         f"{', '.join(_NUMPY)}")
    dtype = _NUMPY[short]
    if dtype in _NARROW:
        value = value.view(torch.int16 if dtype == "bf16" else torch.uint8)
        return Array(value.numpy().view(_NARROW[dtype][1]), dtype, "torch")
    return Array(value.numpy(), dtype, "torch")


def array_of(name: str, value: Any, dtype: str | None = None) -> Array:
    """`value` without a copy where it has host memory: NumPy, PyTorch, an object with the buffer protocol, `__array__`
    or DLPack; numbers and lists become arrays. `dtype` names the type of bit patterns: "bf16" for uint16.

    Raises InputError for other objects, other element types, and patterns of another width than `dtype`.
    """
    if isinstance(value, Array):
        array = value
    elif _is_torch(value):
        array = _of_torch(name, value)
    else:
        patterns = None  # with their type, of narrow floats that NumPy cannot import
        try:
            if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
                patterns = narrow_floats(value)
                values = np.from_dlpack(value) if patterns is None else patterns[0]
            else:
                values = np.asarray(value)
        except Exception as error:  # whatever the object's own conversion raises
            raise InputError(f"{name} is {type(value).__name__}, which is no array of host memory: {error}") from None
        short = values.dtype.name
        if short not in _NUMPY:
            raise InputError(f"{name} has the element type {values.dtype}, which kvscope does not have: one of "
                             f"{', '.join(_NUMPY)}")
        if values.dtype.byteorder == ">" or (values.dtype.byteorder == "=" and sys.byteorder == "big"):
            raise InputError(f"{name} is big-endian: pass {name}.astype({values.dtype.name!r})")
        kvscope_type = _NUMPY[short] if patterns is None else patterns[1]
        if kvscope_type in _NARROW:
            values = values.view(_NARROW[kvscope_type][1])
        array = Array(values, kvscope_type, "jax" if _is_jax(value) else "numpy")
    if dtype is not None:
        canonical, bits = _core.bits(dtype)
        if bits != array.values.dtype.itemsize * 8:
            raise InputError(f"{name} has elements of {array.values.dtype.itemsize * 8} bits, but dtype {dtype} "
                             f"has {bits}")
        array = dataclasses.replace(array, dtype=canonical)
    return array


def _device_of(value: Any) -> str | None:
    """The device that holds the elements of an array; None: host memory, or unknown."""
    if _is_torch(value):
        return None if value.device.type == "cpu" else str(value.device)
    if hasattr(value, "__cuda_array_interface__"):
        return "a CUDA device"
    return None


def readable(name: str, value: Any, dtype: str | None = None) -> Array:
    """array_of(), for an array that is only read: one in a device's memory is copied, with a DeviceMemoryWarning."""
    device = _device_of(value)
    # PyTorch, CuPy, Numba
    copies = [getattr(value, method) for method in ("cpu", "get", "copy_to_host") if hasattr(value, method)]
    if device is not None and copies:
        try:
            value = copies[0]()
        except Exception as error:  # of the library that owns the device
            raise InputError(f"{name} is on {device} and cannot be copied to the CPU: {error}") from None
        warnings.warn(f"{name} is on {device}: it was copied to host memory, {value.nbytes:,} bytes",
                      DeviceMemoryWarning, stacklevel=2)
    return array_of(name, value, dtype)


def raw_bytes(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bytes of an array in row-major order; a view where the array is contiguous."""
    # ascontiguousarray turns a scalar into one element
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


# A table or a list of lengths is checked once and read again later: it must not change in between.
_INDICES = ("i32", "u32", "i64", "u64")


def named(tensors: Mapping[str, Any]) -> Mapping[str, Any]:
    """The argument; InputError if it is no dict of tensors by name."""
    if not isinstance(tensors, Mapping):
        raise InputError(f"tensors is a {type(tensors).__name__}: pass a dict of tensors by their names in the layout, such as "
                         "{\"kv_cache\": cache, \"block_table\": table}")
    for name in tensors:
        if not isinstance(name, str):
            raise InputError(f"the name of a tensor is {name!r}: pass a text")
    return tensors


def bundle_of(tensors: Mapping[str, Any], copy: bool = False) -> tuple[_core.Bundle, str]:
    """The tensors as a bundle, and the kind of the result: that of the first one that is not of NumPy.

    The bundle reads contiguous tensors in place and keeps them alive. Integers of 32 and 64 bits are copied, and so is
    every tensor with `copy`.
    """
    bundle, kind = _core.Bundle(), "numpy"
    for name, value in named(tensors).items():
        if value is None:
            continue
        array = readable(name, value)
        kind = array.kind if kind == "numpy" else kind
        borrow = not copy and array.dtype not in _INDICES
        bundle.add(name, array.dtype, list(array.values.shape), raw_bytes(array.values), borrow)
    return bundle, kind


def from_bundle(bundle: _core.Bundle, name: str, kind: str = "numpy") -> Any:
    """A tensor of a bundle, as an array that shares its memory, or copied to a tensor of PyTorch or JAX."""
    tensor = bundle.get(name)
    short = tensor.dtype
    plain = np.frombuffer(tensor, dtype=_OF_KVSCOPE.get(short) or _NARROW.get(short, ("", "uint8"))[1])
    return as_kind(plain.reshape(tensor.shape), short, kind)


def as_kind(values: np.ndarray[Any, Any], short: str, kind: str) -> Any:
    """`values` of kvscope's type `short` as an array of NumPy, or copied to a tensor of PyTorch or JAX.

    Narrow floats of NumPy are arrays of ml_dtypes if that is installed, and otherwise their bit patterns. JAX has no
    types of 64 bits unless they are enabled: such a tensor is an array of NumPy.
    """
    if kind == "torch":
        torch = sys.modules["torch"]
        values = torch.from_numpy(np.array(values))  # torch has no read-only tensors
        return values.view(getattr(torch, _NARROW[short][0])) if short in _NARROW else values
    if short in _NARROW:
        try:
            narrow = importlib.import_module("ml_dtypes")
        except ImportError:
            return values
        values = values.view(getattr(narrow, _NARROW[short][0]))
    if kind == "jax":
        jax = sys.modules["jax"]
        if values.itemsize < 8 or jax.config.jax_enable_x64:
            return jax.numpy.asarray(values)
    return values


@guided
def bits(array: Any, dtype: str) -> Array:
    """Bit patterns with their element type: `kv.bits(patterns, "bf16")` for a uint16 array of bf16 values."""
    return array_of("array", array, text_of("dtype", dtype, '"bf16"'))
