"""Drawings of the way to registers and of threads: an explained address, a race, shared memory, a fragment."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ._svg import Drawing, fit, owner_pattern, owner_role, wrap

if TYPE_CHECKING:
    from ._launch import Race
    from ._run import Explanation
    from ._tile import Fragment, SharedImage

WIDTH = 940.0
ACROSS = 3          # links in a row of the chain
MOST_LINES = 32     # of shared memory
MOST_CELLS = 32     # rows and columns of a fragment


def draw_explanation(explanation: Explanation) -> Drawing:
    """The chain from the token to the register: one card for each link, in reading order."""
    d = Drawing(WIDTH, "Address", explanation.subject)
    wide, gap = (WIDTH - 36 - (ACROSS - 1) * 26) / ACROSS, 26
    y = d.top + 4
    links = explanation.links
    for first in range(0, len(links), ACROSS):
        row = links[first:first + ACROSS]
        texts = [(wrap(link.formula, wide - 20, 10.5, True)[:3], wrap(link.numbers, wide - 20, 10.5, True)[:3],
                  wrap(link.remark, wide - 20, 10.5)[:3] if link.remark else []) for link in row]
        high = 48 + 15 * max(sum(map(len, parts)) for parts in texts) + 6
        for column, (link, parts) in enumerate(zip(row, texts)):
            x = 18 + column * (wide + gap)
            last = first + column == len(links) - 1
            end = link.name.startswith("register")
            d.box(x, y, wide, high, fill="surface", stroke="accent" if end else "border", line=1.5, radius=6,
                  tip=f"{link.name} = {link.formula} = {link.numbers} = {link.result}")
            d.text(x + 10, y + 18, link.name, role=owner_role(first + column), size=11.5, bold=True)
            d.text(x + 10, y + 37, fit(link.result, wide - 20, 13.5, True), size=13.5, mono=True, bold=True)
            at = y + 54
            for words, role, mono in ((parts[0], "quiet", True), (parts[1], "text", True), (parts[2], "good", False)):
                for line in words:
                    d.text(x + 10, at, line, role=role, size=10.5, mono=mono)
                    at += 15
            if not last and column + 1 < len(row):
                d.path([(x + wide + 3, y + 32), (x + wide + gap - 4, y + 32)], role="accent", arrow=True)
        if first + ACROSS < len(links):
            middle = y + high + 9
            start = 18 + (len(row) - 1) * (wide + gap) + wide / 2
            d.path([(start, y + high + 2), (start, middle), (18 + wide / 2, middle), (18 + wide / 2, y + high + 17)],
                   role="accent", arrow=True)
        y += high + 20
    return d


def draw_race(race: Race) -> Drawing:
    """The two accesses, one column each in the order in which they ran, the address, and the missing edge."""
    orders = {"WW": "write after write", "WR": "read after write", "RW": "write after read"}
    d = Drawing(WIDTH, f"Race: {orders.get(race.kind.removeprefix('RACE_'), race.kind)}", race.where)
    first, second = race.parties[0], race.parties[1]
    wide = 360.0
    xs = (24.0, WIDTH - 24 - wide)
    y = d.top + 8
    for x, party, order in ((xs[0], first, "first"), (xs[1], second, "then")):
        d.text(x + wide / 2, y + 12, fit(party["actor"], wide, 12.5), bold=True, size=12.5, anchor="middle")
        d.path([(x + wide / 2, y + 22), (x + wide / 2, y + 190)], role="border", line=2, arrow=True)
        top = y + (38 if order == "first" else 112)
        d.box(x + 14, top, wide - 28, 52, fill="surface", stroke="warning", line=1.5, radius=6)
        d.text(x + 26, top + 20, f"{order}: {party['action']}", bold=True)
        d.text(x + 26, top + 37, fit(" ".join(filter(None, [party["opcode"], party["source"]])), wide - 52, 10.5, True),
               role="quiet", size=10.5, mono=True)
    left, right = xs[0] + wide - 14, xs[1] + 14
    d.path([(left, y + 68), (right, y + 134)], role="warning", line=2, dash="6 4", arrow=True)
    middle = (left + right) / 2
    d.text(middle, y + 52, "no barrier", role="warning", bold=True, anchor="middle")
    d.text(middle, y + 67, "orders these", role="warning", bold=True, anchor="middle")
    for i, line in enumerate(wrap(race.address_text, right - left - 10, 11, True)[:3]):
        d.text(middle, y + 152 + 15 * i, line, size=11, mono=True, anchor="middle")
    y += 212
    for line in wrap(race["message"], WIDTH - 36, 12):
        d.text(18, y, line)
        y += 17
    if race["hint"]:
        for line in wrap(race["hint"], WIDTH - 36, 12):
            d.text(18, y, line, role="good")
            y += 17
    return d


def draw_shared(image: SharedImage) -> Drawing:
    """Shared memory as lines of all banks; each 16 bytes in the color of the copy that wrote them."""
    chunks = image.banks // 4
    d = Drawing(WIDTH, "Shared memory", f"{image.subject}; {image.bytes:,} bytes, {image.banks} banks of 4 bytes")
    lines = -(-len(image.copy) // chunks)
    shown = min(lines, MOST_LINES)
    left, y = 64.0, d.top + 24
    cell = (WIDTH - left - 18) / chunks
    for bank in range(0, image.banks, 4):
        d.text(left + bank / 4 * cell + 3, y - 6, f"bank {bank}", role="quiet", size=10, mono=True)
    marked = {address // 16 for address in image.first_read}
    for line in range(shown):
        top = y + line * 19
        d.text(left - 8, top + 13, f"{line * image.banks * 4}", role="quiet", size=10, anchor="end", mono=True)
        for column in range(chunks):
            number = line * chunks + column
            if number >= len(image.copy):
                break
            copy = int(image.copy[number])
            x = left + column * cell
            role = owner_role(copy) if copy >= 0 else "free"
            row, element = int(image.row[number]), int(image.column[number])
            held = f"row {row}, columns from {element}, by copy {copy}" if copy >= 0 else "not written by any copy"
            d.box(x, top, cell - 2, 17, fill=role, pattern=owner_pattern(copy) if copy >= 0 else "",
                  tip=f"bytes {number * 16} to {number * 16 + 15}: {held}")
            if copy >= 0:
                d.text(x + 5, top + 12.5, f"r{row} c{element // max(image.chunk_elements, 1)}", role=f"ink-{role}",
                       size=10, mono=True)
            if number in marked:
                d.box(x, top, cell - 2, 17, fill="", stroke="accent", line=2)
    d.text(18, y + shown * 19 + 16, image.reads_text, role="good" if image.conflicts == 0 else "warning")
    copies = sorted({int(copy) for copy in image.copy if copy >= 0})
    d.key(18, y + shown * 19 + 38, [(owner_role(c), owner_pattern(c), f"copy {c}") for c in copies[:16]])
    words = "rN cM: 16 bytes M of row N; outlined: the addresses of the first read."
    if len(copies) > 16:
        words += f" {len(copies) - 16} more copies."
    if lines > shown:
        words += f" The first {shown} of {lines:,} lines are drawn."
    d.note(words)
    return d


def draw_fragment(fragment: Fragment) -> Drawing:
    """The tile of a matrix instruction: each element with the lane and register that hold it, colored by lane."""
    rows, columns = fragment.lane.shape
    d = Drawing(WIDTH, fragment.name, f"{rows} x {columns} ({fragment.row_name}, {fragment.column_name}) in "
                                      f"{fragment.lanes} lanes x {fragment.registers} registers")
    shown_rows, shown_columns = min(rows, MOST_CELLS), min(columns, MOST_CELLS)
    left, y = 46.0, d.top + 22
    cell = min((WIDTH - left - 18) / shown_columns, 76.0)
    labels = cell >= 26
    for column in range(shown_columns):
        d.text(left + (column + .5) * cell, y - 6, column, role="quiet", size=10, anchor="middle", mono=True)
    for row in range(shown_rows):
        d.text(left - 8, y + row * 19 + 13, row, role="quiet", size=10, anchor="end", mono=True)
        for column in range(shown_columns):
            lane, register = int(fragment.lane[row, column]), int(fragment.register[row, column])
            role = owner_role(lane)
            x, top = left + column * cell, y + row * 19
            d.box(x, top, cell - 1.5, 17.5, fill=role, pattern=owner_pattern(lane),
                  tip=f"{fragment.row_name} {row}, {fragment.column_name} {column}: lane {lane}, register {register}")
            if labels:
                words = f"T{lane}.{register}"
                d.text(x + (cell - 1.5) / 2, top + 12.5, words, role=f"ink-{role}",
                       size=9.5 if cell >= 40 else 7.5, anchor="middle", mono=True)
    words = "T5.1: lane 5, register 1. A color and pattern belong to one lane; they repeat after 32 lanes."
    if shown_rows < rows or shown_columns < columns:
        words += f" The first {shown_rows} x {shown_columns} of {rows} x {columns} elements are drawn."
    d.note(words)
    return d
