"""A tile of the cache on its way through shared memory to registers, and the fragments of matrix instructions."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from . import _core
from ._calls import guided, text_of
from ._drawn import Drawn
from ._pictures_device import draw_fragment, draw_shared
from ._svg import Drawing


class SharedImage(Drawn):
    """Shared memory after the copies of a tile, in chunks of 16 bytes.

    copy            i32 [chunks] the copy that wrote it, in issue order; -1: none
    row, column     i32 [chunks] the tile's row and first element in it; -1: no element, such as zero fill
    wavefronts      of all reads of the tile; conflicts: those of them that bank conflicts add
    first_read      [bytes] the addresses of the lanes of the first read
    """

    def __init__(self, events: Sequence[dict[str, Any]], subject: str) -> None:
        opened = events[0]
        self.subject = subject
        self.bytes = int(opened["bytes"])
        chunks = -(-self.bytes // 16)
        self.copy, self.row, self.column = (np.full(chunks, -1, np.int32) for _ in range(3))
        self.banks = 32
        self.swizzle = (0, 0, 0)  # (bits, base, shift); see docs/12_banks_and_swizzles.md
        self.wavefronts = self.conflicts = self.reads = 0
        self.first_read: list[int] = []
        for event in events:
            self._add(event)
        pairs = {(int(self.row[i]), int(self.column[i])) for i in range(chunks) if self.row[i] >= 0}
        columns = sorted({column for _, column in pairs})
        self.chunk_elements = columns[1] - columns[0] if len(columns) > 1 else 1  # elements in 16 bytes

    def _add(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "tile_shared":
            self.banks = int(event["banks"])
            self.swizzle = (event["swizzle_bits"], event["swizzle_base"], event["swizzle_shift"])
        elif kind == "chunk_landed":
            at = event["shared"] // 16
            self.copy[at], self.row[at], self.column[at] = event["copy"], event["row"], event["column"]
        elif kind == "fragment_read":
            self.reads += 1
            self.wavefronts += event["cycles"]
            self.conflicts += event["conflicts"]
        elif kind == "lane_read" and event["read"] == 0:
            self.first_read.append(int(event["shared"]))

    @property
    def reads_text(self) -> str:
        """The cost of the reads in words."""
        if not self.reads:
            return "No matrix instruction of the model reads this tile."
        free = "no bank conflict" if self.conflicts == 0 else f"{self.conflicts:,} of them due to bank conflicts"
        return f"{self.reads:,} reads take {self.wavefronts:,} wavefronts, {free}"

    def __repr__(self) -> str:
        return f"<kvscope.SharedImage {self.subject}: {self.bytes} bytes; {self.reads_text}>"

    def _draw(self) -> Drawing:
        return draw_shared(self)

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        return (["byte", "copy", "row", "column"],
                [[16 * i, int(self.copy[i]), int(self.row[i]), int(self.column[i])] for i in range(len(self.copy))])


class Fragment(Drawn):
    """Which lane and register of a matrix instruction hold each element of a tile.

    lane        i32 [rows, columns]
    element     i32 [rows, columns] its number among the lane's elements
    register    i32 [rows, columns] the lane's 32-bit register that it is in
    """

    def __init__(self, name: str) -> None:
        found = _core.fragment(name)
        self.name: str = found["name"]
        self.row_name: str = found["row_name"]
        self.column_name: str = found["column_name"]
        self.lanes: int = found["lanes"]
        self.elements: int = found["elements"]
        self.lane: np.ndarray[Any, Any] = found["lane"]
        self.element: np.ndarray[Any, Any] = found["element"]
        self.register: np.ndarray[Any, Any] = self.element // found["elements_per_register"]
        self.registers = -(-self.elements // int(found["elements_per_register"]))

    def __repr__(self) -> str:
        rows, columns = self.lane.shape
        return f"<kvscope.Fragment {self.name}: {rows} x {columns}, {self.lanes} lanes x {self.registers} registers>"

    def _draw(self) -> Drawing:
        return draw_fragment(self)


@guided
def fragment(name: str) -> Fragment:
    """A fragment by its name, such as "mma.m16n8k16.c"; kv.fragments() lists the names. InputError for another one."""
    return Fragment(text_of("name", name, '"mma.m16n8k16.c"'))


@guided
def fragments() -> list[str]:
    """The names of all fragments."""
    return list(_core.fragment_names())
