"""The host memory that tensors occupy: strided views of one buffer become one allocation of a launch."""
from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Array, array_of
from ._dlpack import HostMemory
from ._launch import Offset

_ALIGNMENT = 16  # [bytes] of vector loads: addresses keep their remainder


class View:
    """The bytes [begin, end) of host memory that a tensor's elements occupy, gaps of its strides included."""

    def __init__(self, name: str, value: Any) -> None:
        array = array_of(name, value).values
        self.name = name
        self.address: int = array.__array_interface__["data"][0]  # of element 0
        self.owner = array
        self.writeable = array.flags.writeable
        self.begin = self.end = self.address
        if array.size:
            spans = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides)]
            self.begin += sum(span for span in spans if span < 0)
            self.end += sum(span for span in spans if span > 0) + array.itemsize


def pointers(views: list[View]) -> list[Offset]:
    """One pointer for each view. Views whose bytes interleave share an allocation, which keeps their distance; every
    other view has an allocation of its own, so that an access outside of it is out of bounds.

    Example: the views cache[:, 0] and cache[:, 1] of one cache are two pointers into one allocation.
    """
    order = sorted(range(len(views)), key=lambda i: (views[i].begin, views[i].end))
    groups: list[list[int]] = []
    end = 0
    for i in order:
        if groups and views[i].begin < end:
            groups[-1].append(i)
            end = max(end, views[i].end)
        else:
            groups.append([i])
            end = views[i].end
    out: list[Offset] = [Offset(None, 0)] * len(views)
    for group in groups:
        begin, end = min(views[i].begin for i in group), max(views[i].end for i in group)
        if len(group) > 1:
            # The compiler was told which of these addresses are multiples of 16; allocations begin at one.
            begin -= begin % _ALIGNMENT
        memory = np.asarray(HostMemory([views[i].owner for i in group], begin, (end - begin,), None, "|u1",
                                       all(views[i].writeable for i in group)))
        for i in group:
            out[i] = Offset(Array(memory, "u8", "numpy"), views[i].address - begin)
    return out
