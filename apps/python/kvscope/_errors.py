"""The exceptions of kvscope: one for each kind of fault that a caller may want to treat differently."""
from __future__ import annotations

import builtins
from typing import Sequence


class Error(Exception):
    """Base of all exceptions of kvscope. `faults` lists (where, message), one for each thing that is wrong."""

    def __init__(self, message: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.faults: list[tuple[str, str]] = list(faults)


class InputError(Error, ValueError):
    """An argument or a file is wrong; the message names it, its value and what is allowed."""


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
