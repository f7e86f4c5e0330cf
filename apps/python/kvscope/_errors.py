"""The exceptions of kvscope: one for each kind of fault that a caller may want to treat differently."""
from __future__ import annotations

import builtins
import re
from typing import Sequence

_OTHER_NAMES = {"k_scales": "k_scales_order", "v_scales": "v_scales_order", "candidate_dtype": "output",
                "p_dtype": "probabilities", "partials_dtype": "partials", "operand_dtype": "inputs", "from": "source"}


def as_arguments(text: str) -> str:
    """A message of the command line with the names of keyword arguments: "--soft-cap" -> "soft_cap". Commands in
    backquotes stay."""
    def argument(option: re.Match[str]) -> str:
        name = option[1].replace("-", "_")
        return _OTHER_NAMES.get(name, name)
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"--ignore (\w+)", r'ignore=["\1"]', parts[i]).replace("command line rejected", "arguments rejected")
        parts[i] = re.sub(r"(?<![\w-])--([a-z][a-z0-9-]*)", argument, parts[i])
    return "`".join(parts)


class Error(Exception):
    """Base of all exceptions of kvscope. `faults` lists (where, message), one for each thing that is wrong."""

    def __init__(self, message: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.faults: list[tuple[str, str]] = list(faults)


class InputError(Error, ValueError):
    """An argument or a file is wrong; the message names it, its value and what is allowed."""

    def __init__(self, message: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(as_arguments(message), [(as_arguments(where), as_arguments(text)) for where, text in faults])


class GeometryError(Error, ValueError):
    """Sizes that do not fit each other: a tensor map, the extents of a launch."""


class IndexError(Error, builtins.IndexError):
    """A sequence, token, head, layer, block or step out of range."""


class IllegalAddress(IndexError):
    """A device address outside of every allocation."""


class UnsupportedError(Error, NotImplementedError):
    """An operation that this object does not have."""


class OverflowError(Error, builtins.OverflowError):
    """A number does not fit its type."""


class DeviceMemoryWarning(UserWarning):
    """An array was copied from the memory of a device to host memory, in which kvscope reads it."""


class LaunchWarning(UserWarning):
    """A launch that is legal and seldom meant: no `block`, or an array of other elements than the kernel reads."""


class NonFiniteWarning(UserWarning):
    """The golden output is NaN or infinite in some rows, because values of the input are."""


class DeviceError(Error, RuntimeError):
    """A call that the virtual GPU rejected."""


class CompileError(Error, RuntimeError):
    """No compiler was found, or it rejected the source; the message has its output."""


class KernelMismatch(Error, AssertionError):
    """A kernel's output is not within the error bound of the golden output.

    `diagnosis` ranks the causes, `verdict` has the criteria, and `bundle` is the path of the kept files.
    """

    def __init__(self, message: str, verdict: object = None, diagnosis: object = None,
                 bundle: str | None = None) -> None:
        super().__init__(message, [("", message)])
        self.verdict = verdict
        self.diagnosis = diagnosis
        self.bundle = bundle
