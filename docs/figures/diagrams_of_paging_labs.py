"""Diagrams of labs 04 and 05: which sequence holds each block of a small pool, after each call or step of the handout's example."""
import sqlite3

from drawing import NORMAL, SMALL, Drawing

BLOCK_EVENTS = ("block_allocated", "block_copied", "block_shared", "block_released", "block_evicted")
SEQUENCE_COLORS = ("blue", "orange", "green")


def events_of(program, page, name, kinds):
    """[(kind, columns)] of the run of a page's scenario, in their order."""
    program.run("run", program.page_file(page, name), "--out", "run", "--trace", "full")
    trace = sqlite3.connect(program.folder / "run" / "trace.kvt")
    events = []
    for kind in kinds:
        cursor = trace.execute(f"SELECT * FROM {kind}")
        names = [column[0] for column in cursor.description]
        events += [(row[0], kind, dict(zip(names, row))) for row in cursor]
    return [(kind, event) for _, kind, event in sorted(events, key=lambda item: item[0])]


class Pool:
    """The state of each block, from events."""

    def __init__(self, blocks):
        self.holders, self.cached = [[] for _ in range(blocks)], set()

    def apply(self, kind, event):
        if kind in ("block_allocated", "block_shared"):
            self.holders[event["block"]].append(event["seq"])
            self.cached.discard(event["block"])
        elif kind == "block_copied":
            self.holders[event["from"]].remove(event["seq"])
            self.holders[event["to"]].append(event["seq"])
        elif kind == "block_evicted":
            self.cached.discard(event["block"])
        else:
            self.holders[event["block"]].remove(event["seq"])
            if event["cached"]:
                self.cached.add(event["block"])

    def cells(self):
        """[(text, color)] of the blocks."""
        cells = []
        for block, held in enumerate(self.holders):
            if held:
                cells.append((" ".join(f"s{seq}" for seq in held), "purple" if len(held) > 1 else SEQUENCE_COLORS[held[0]]))
            else:
                cells.append(("cached", "gray") if block in self.cached else ("", "plain"))
        return cells


def draw_pool(d, rows, blocks, left, right, notes_title):
    """rows: [(label, cells, note)]. The labels end at `left`; the notes begin at `right`."""
    w, h = (right - 20 - left) / blocks, 34
    d.text(left - 14, 48, "block", SMALL, "end", color="dim")
    d.text(right, 48, notes_title, SMALL, color="dim")
    for block in range(blocks):
        d.text(left + block * w + w / 2, 48, str(block), NORMAL, "middle", mono=True)
    for index, (label, cells, note) in enumerate(rows):
        y = 58 + index * h
        d.text(left - 14, y + 22, label, SMALL if "(" in label else NORMAL, "end", mono="(" in label)
        for block, (word, color) in enumerate(cells):
            d.rect(left + block * w + 2, y + 2, w - 4, h - 4, color, dashed=color == "plain")
            if word:
                d.text(left + block * w + w / 2, y + 22, word, SMALL, "middle", within=w - 8)
        if note:
            d.text(right, y + 22, note, SMALL)
    y = 58 + len(rows) * h + 18
    legend = [(color, f"sequence {seq}") for seq, color in enumerate(SEQUENCE_COLORS)]
    legend += [("purple", "shared"), ("gray", "cached"), ("plain", "free")]
    used = {color for _, cells, _ in rows for _, color in cells}
    for index, (color, word) in enumerate([entry for entry in legend if entry[0] in used]):
        d.rect(left + index * 118, y, 18, 18, color, 3, dashed=word == "free")
        d.text(left + index * 118 + 25, y + 14, word, SMALL)


def lab_block_pool(program):
    """Lab 04: the pool after each call that changes a block. Sequence 1 is the second sample of the scenario's first request."""
    blocks, rows, pool, released, evicted = 5, [], Pool(5), [], None
    for kind, event in events_of(program, "labs/04_block_pool/README.md", "pool.json", BLOCK_EVENTS):
        pool.apply(kind, event)
        seq = event.get("seq")
        if kind == "block_evicted":
            evicted = event["block"]
            continue
        if kind == "block_released":
            released = (released if rows[-1][0] == f"release({seq})" else []) + [str(event["block"])]
            call, note = f"release({seq})", "releases " + ", ".join(released)
        elif kind == "block_shared":
            call, note = ("fork(0, 1)", "one more holder each") if seq == 1 else (f"share({seq})", "found by its hash")
        elif kind == "block_copied":
            call, note = f"append({seq})", f"block {event['to']}: a copy of block {event['from']}"
        else:
            call, note = f"append({seq})", f"block {event['block']}" + (", evicted" if event["block"] == evicted else "")
            evicted = None
        if rows and call == rows[-1][0] and kind != "block_allocated":  # the next block of the same call
            rows.pop()
        rows.append((call, pool.cells(), note))
    d = Drawing(880, 58 + 34 * len(rows) + 52, "The pool of five blocks after each call that changes a block",
                "One row per call, one column per block: which sequences hold it, or whether it is cached or free.")
    draw_pool(d, rows, blocks, 150, 660, "what happens")
    return d


def lab_scheduler(program):
    """Lab 05: the pool after each step, with the engine's decisions."""
    blocks, rows, pool, notes = 6, [], Pool(6), []
    kinds = (*BLOCK_EVENTS, "request_admitted", "request_preempted", "request_finished", "step_ended")
    for kind, event in events_of(program, "labs/05_scheduler/README.md", "scheduler.json", kinds):
        if kind.startswith("block_"):
            pool.apply(kind, event)
        elif kind == "step_ended":
            rows.append((f"step {event['step']}", pool.cells(), ", ".join(notes)))
            notes = []
        else:
            notes.append(f"{kind.split('_')[1]} {event['seq']}")
    d = Drawing(880, 58 + 34 * len(rows) + 52, "The pool of six blocks after each step",
                "One row per step, one column per block: which sequence holds it. On the right, the requests that were admitted, "
                "preempted and finished in the step.")
    draw_pool(d, rows, blocks, 100, 600, "requests")
    return d
