"""Inputs from a seed, and expected outputs: NumPy expressions over the inputs.

A float array is float64 in expressions, exactly the numbers that the kernel reads; the kernel's own array has the dtype
of the recipe. bf16 and fp8 are bit patterns there.
"""
from __future__ import annotations

import math
import re
import zlib
from typing import Any

import numpy as np

import references
from recipe import Kernel, RecipeError

_NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16, "e4m3": np.uint8, "i8": np.int8,
          "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64,
          "u64": np.uint64, "c64": np.complex64}
UNIT = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "e4m3": 2.0**-4}  # unit roundoff
_TINY = {"f64": 5e-324, "f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133, "e4m3": 2.0**-9}


class Array:
    """An array of a launch: `raw` is what the kernel reads and writes."""

    def __init__(self, dtype: str, raw: np.ndarray) -> None:
        self.dtype, self.raw = dtype, raw

    @property
    def numbers(self) -> np.ndarray:
        """[shape of raw] float64, complex128, or int64 (uint64 for u64)."""
        if self.dtype == "bf16":
            return (self.raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        if self.dtype == "e4m3":
            return references.e4m3_numbers()[self.raw]
        if self.dtype == "c64":
            return self.raw.astype(np.complex128)
        if self.dtype == "u64":
            return self.raw
        return self.raw.astype(np.float64 if self.dtype in UNIT else np.int64)


def rounded(dtype: str, numbers: np.ndarray) -> np.ndarray:
    """float64 to the bits of the dtype, round to nearest even."""
    if dtype == "bf16":
        bits = numbers.astype(np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    if dtype == "e4m3":
        return references.to_e4m3(numbers)
    return numbers.astype(_NUMPY[dtype])


def _poison(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """NaN, or a large number: a result that was not written differs from every expected one."""
    size = np.dtype(_NUMPY[dtype]).itemsize
    fill = {"e4m3": 0x7F}.get(dtype, 0xFF if dtype in UNIT or dtype == "c64" else 0x7A)
    return np.full(math.prod(shape) * size, fill, np.uint8).view(_NUMPY[dtype]).reshape(shape)


class Offset:
    """offset("x", n): a pointer to element n of an array."""

    def __init__(self, array: str, elements: int) -> None:
        self.array, self.elements = array, elements


class TensorMap:
    """TensorMap("x", box=[...], ...): a tensor map over an array; words as in the module kvscope."""

    def __init__(self, array: str, **words: Any) -> None:
        self.array, self.words = array, words


class Descriptor:
    """Descriptor("x", rows, columns): a tensor descriptor of Triton over an array, with the shape of a block."""

    def __init__(self, array: str, *block: int) -> None:
        self.array, self.block = array, block


class Inputs:
    """The arguments of one launch, in the order of the recipe, and the names that its expressions may use."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.rng = np.random.default_rng(zlib.crc32(kernel.label.encode()))
        self.arrays: dict[str, Array] = {}
        self.names: dict[str, Any] = {name: getattr(references, name) for name in references.__all__}
        self.names.update(np=np, math=math, null=None, offset=Offset, TensorMap=TensorMap, Descriptor=Descriptor,
                          **_generators(self.rng))
        for line in kernel.let.strip().splitlines():
            name, _, text = line.partition(" = ")
            names = [one.strip() for one in name.split(",")]
            found = self.evaluate(text)
            self.names.update(zip(names, found) if len(names) > 1 else {names[0]: found})
        self.arguments: list[tuple[str, Any]] = []
        for line in kernel.args.strip().splitlines():
            self._argument(line.strip())
        self.before = {name: array.raw.copy() for name, array in self.arrays.items()}
        self.numbers = {name: array.numbers.copy() for name, array in self.arrays.items()}

    def evaluate(self, text: str, **more: Any) -> Any:
        """An expression of the recipe over the inputs."""
        try:
            return eval(text.strip(), {**self.names, **more})  # the recipes are files of this repository
        except Exception as error:
            raise RecipeError(f"{self.kernel.label}: {text.strip()!r}: {type(error).__name__}: {error}") from None

    def text(self, pattern: str) -> str:
        """`{...}` in a text is an expression."""
        return re.sub(r"\{([^{}]+)\}", lambda found: str(self.evaluate(found.group(1))), pattern)

    def _argument(self, line: str) -> None:
        if line.split(" ", 1)[1].lstrip().startswith("{") and "[" in line.split("}", 1)[1]:
            line = self.text(line)  # the dtype is an expression
        name, _, rest = line.partition(" ")
        rest = rest.strip()
        hidden, name = name.startswith("-"), name.lstrip("-")  # -NAME: an array that only other arguments point to
        dtype, bracket, _ = rest.partition("[")
        if bracket and dtype in _NUMPY:
            close = rest.index("]")
            shape = self.evaluate(f"({rest[len(dtype) + 1:close]},)")
            shape = shape[0] if isinstance(shape[0], tuple) else shape
            fill = rest[close + 1:].strip()
            raw = _poison(dtype, shape)
            if fill != "empty":
                made = self.evaluate(fill, shape=shape)
                made = np.broadcast_to(np.asarray(made(*shape) if callable(made) else made), shape)
                raw = np.ascontiguousarray(made if made.dtype == raw.dtype else rounded(dtype, made))
                raw = raw.copy() if not raw.flags.writeable else raw
            self.arrays[name] = Array(dtype, raw)
            self.names[name] = self.arrays[name].numbers
            value: Any = self.arrays[name]
        else:
            value = self.evaluate(rest, raw={key: array.raw for key, array in self.arrays.items()})
            self.names[name] = value
        if not hidden:
            self.arguments.append((name, value))

    def errors(self) -> list[str]:
        """One line for each output that differs, and for each input that changed."""
        return [text for name in self.arrays for text in self._compared(name)]

    def _compared(self, name: str) -> list[str]:
        array = self.arrays[name]
        if name not in self.kernel.expect:
            same = np.array_equal(array.raw.view(np.uint8), self.before[name].view(np.uint8))
            return [] if same else [f"{name}: the kernel changed an input"]
        out = array.numbers
        with np.errstate(all="ignore"):
            expected = np.broadcast_to(self.evaluate(self.kernel.expect[name], **self.numbers), out.shape)
            if array.dtype not in UNIT and array.dtype != "c64":
                bad = out != expected
                if name in self.kernel.within:
                    bad = np.abs(out - expected) > self.evaluate(self.kernel.within[name], **self.numbers)
            else:
                unit = UNIT.get(array.dtype, UNIT["f32"])
                ulp = unit * np.abs(expected) + _TINY.get(array.dtype, 0)
                limit = self.evaluate(self.kernel.within.get(name, "2 * ulp"), ulp=ulp, expected=expected, unit=unit,
                                      **self.numbers)
                same = (out == expected) | (np.isnan(out) & np.isnan(expected))
                bad = ~same & ~(np.abs(out - expected) <= limit)
        if not bad.any():
            return []
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        return [f"{name}: {int(bad.sum())} of {bad.size} elements differ; {name}{list(at)} is {out[at]}, "
                f"expected {expected[at]}"]


def _generators(rng: np.random.Generator) -> dict[str, Any]:
    """Fills: functions of a shape."""
    return {"rng": rng, "normal": lambda *shape: rng.standard_normal(shape),
            "uniform": lambda low, high: lambda *shape: rng.uniform(low, high, shape),
            "integers": lambda low, high: lambda *shape: rng.integers(low, high, shape),
            "arange": lambda *shape: np.arange(math.prod(shape)).reshape(shape),
            "shuffled": lambda *shape: rng.permutation(math.prod(shape)).reshape(shape)}
