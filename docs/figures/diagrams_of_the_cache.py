"""Diagrams of pages 00 to 03 and 06 to 08: how a token becomes an address, and which files and commands exist."""
import json
import re
import sqlite3

from drawing import NORMAL, SMALL, Drawing
from program import SCENARIOS

FIRST_LIGHT = SCENARIOS / "first_light.json"


def chain(program):
    """Page 00: every link of one token, with its numbers."""
    links = program.explain(FIRST_LIGHT, "--seq", 3, "--token", 70)
    box = re.search(r"box \[(.*?)\]", links["TMA box"][0])[1]
    shared = re.search(r"shared byte (\d+)", links["swizzle"][-1])[1]
    steps = [("token", "token 70", "of sequence 3", "blue"),
             ("page", f"page {links['page'][-1]}", links["page"][0], "blue"),
             ("lookup table", f"block {links['block'][-1]}", links["block"][0], "purple"),
             ("4-D view", f"row {links['row'][-1].split()[0]}", links["row"][0], "purple"),
             ("tile", *[part.strip() for part in links["tile"][-1].replace(" of it", "").split(",")], "green"),
             ("TMA box", f"box {box}", f"at {links['TMA box'][1]}", "green"),
             ("shared memory", f"byte {shared}", "after the swizzle", "orange"),
             ("bank", f"bank {links['bank'][-1]}", links["bank"][0], "orange")]
    steps[4] = ("tile", steps[4][1], steps[4][2], "green")
    d = Drawing(880, 268, "From a token to a bank of shared memory",
                "Each link of the chain for token 70 of sequence 3 of apps/scenarios/first_light.json: page, block, row, tile, box, "
                "shared byte and bank.")
    w, h, gap = 190, 78, 28
    for index, (name, value, how, color) in enumerate(steps):
        row, column = divmod(index, 4)
        x, y = 22 + column * (w + gap), 36 + row * 118
        d.text(x + 2, y - 8, name, SMALL, color="dim")
        d.box(x, y, w, h, [value, (how, "mono" if re.search("[0-9(]", how) and "of" not in how else "")], color, size=NORMAL + 1)
        if column < 3:
            d.line([(x + w, y + h / 2), (x + w + gap, y + h / 2)])
    right, below = 22 + 3 * (w + gap) + w / 2, 36 + h
    d.line([(right, below), (right, below + 12), (10, below + 12), (10, 36 + 118 + h / 2), (22, 36 + 118 + h / 2)])
    d.text(22, 256, "The chain continues to a lane and a register: page 14.", SMALL, color="dim")
    return d


def pool_over_steps(program):
    """Page 01: every block of the pool after every step of the example."""
    program.run("run", program.page_file("01_requests_pages_blocks.md", "ten_blocks.json"), "--out", "pool", "--trace", "full")
    trace = sqlite3.connect(program.folder / "pool" / "trace.kvt")
    events = []
    for table in ("block_allocated", "block_shared", "block_released", "step_ended"):
        cursor = trace.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in cursor.description]
        events += [(row[0], table, dict(zip(names, row))) for row in cursor]
    holders, cached, rows = {block: [] for block in range(10)}, set(), []
    for _, kind, event in sorted(events, key=lambda item: item[0]):
        if kind in ("block_allocated", "block_shared"):
            holders[event["block"]].append(event["seq"])
            cached.discard(event["block"])
        elif kind == "block_released":
            holders[event["block"]].remove(event["seq"])
            if event["cached"]:
                cached.add(event["block"])
        else:
            rows.append(({block: list(held) for block, held in holders.items()}, set(cached)))
    d = Drawing(880, 86 + 34 * len(rows) + 46, "The pool of ten blocks after each step",
                "One row per step, one column per block: which sequences hold the block, or whether it is cached or free.")
    left, w, h = 110, 68, 34
    d.text(left, 26, "block", SMALL, color="dim")
    for block in range(10):
        d.text(left + block * w + w / 2, 48, str(block), NORMAL, "middle", mono=True)
    for step, (held, kept) in enumerate(rows):
        y = 58 + step * h
        d.text(left - 14, y + 22, f"step {step}", NORMAL, "end")
        for block in range(10):
            seqs = held[block]
            color = ("blue", "orange", "green")[seqs[0]] if len(seqs) == 1 else "purple" if seqs else "gray" if block in kept else "plain"
            d.rect(left + block * w + 2, y + 2, w - 4, h - 4, color, dashed=not seqs and block not in kept)
            word = " ".join(f"s{seq}" for seq in seqs) or ("cached" if block in kept else "")
            if word:
                d.text(left + block * w + w / 2, y + 22, word, SMALL, "middle", within=w - 8)
    y = 58 + len(rows) * h + 18
    for index, (color, word) in enumerate([("blue", "sequence 0"), ("orange", "sequence 1"), ("green", "sequence 2"),
                                           ("purple", "shared"), ("gray", "cached"), ("plain", "free")]):
        d.rect(left + index * 124, y, 18, 18, color, 3, dashed=word == "free")
        d.text(left + index * 124 + 25, y + 14, word, SMALL)
    return d


def page_to_row(program):
    """Page 02: pages of one sequence, their blocks, and their rows, with the stride as a jump."""
    scenario = program.page_file("02_lookup_table_and_rows.md", "ten_blocks.json")
    rows, blocks = [], []
    for token in range(10):
        links = program.explain(scenario, "--seq", 1, "--token", token, "--layer", 1, "--head", 1, "--dim", 2, "--kv", "v", "--step", 3)
        rows.append(int(links["row"][-1].split()[0]))
        blocks.append(int(links["block"][-1]))
    stride = int(links["rows per block"][-1])
    extents = [int(number) for number in re.findall(r"\d+", links["pool"][0])]
    layers, page = extents[2], extents[3]
    d = Drawing(880, 372, "From page to block to row",
                f"Sequence 1 has three pages in blocks {sorted(set(blocks))}. Each block has {stride} rows of the matrix; the rows of one "
                f"layer's V are {page} of them.")
    d.text(16, 30, "Sequence 1: tokens in pages", NORMAL, bold=True)
    x0, cell = 16, 37
    pages = sorted(set(token // page for token in range(10)))
    for token in range(12):
        x = x0 + token * cell + token // page * 16
        there = token < 10
        d.rect(x, 42, cell - 3, 34, "red" if token == 9 else "blue" if there else "plain", 3, dashed=not there)
        if there:
            d.text(x + (cell - 3) / 2, 64, str(token), NORMAL, "middle", mono=True)
    d.text(x0 + 12 * cell + 48, 64, "token 9 = page 2, slot 1", NORMAL, color="red")
    middle = {}
    for number in pages:
        x = x0 + (number * page + page / 2) * cell + number * 16
        d.line([(x, 78), (x, 134)], "blue")
        d.rect(x - 26, 136, 52, 30, "purple", 3)
        d.text(x, 157, str(blocks[number * page]), NORMAL, "middle", mono=True, bold=True)
        middle[number] = x
    d.text(x0 + 12 * cell + 48, 157, "lookup table, row 1: one block per page", NORMAL, color="purple")
    d.text(16, 216, "Rows of the pool", NORMAL, bold=True)
    d.text(447, 216, "rows count from the first row of V, layer 1", SMALL, color="dim")
    width = 13
    for block in range(4):
        for row in range(stride):
            slot, part = row % page, row // page  # parts of a block: K layers, then V layers
            x, mine = 16 + (block * stride + row) * width + block * 5, part == 2 * layers - 1
            held = mine and block in blocks and (block != blocks[8] or slot < 2)
            color = "red" if held and block == blocks[9] and slot == 9 % page else "blue" if held else "gray" if mine else "plain"
            d.rect(x, 254, width - 1, 34, color, 1)
        x = 16 + block * (stride * width + 5)
        d.text(x, 246, f"block {block}", SMALL)
        for part, word in enumerate(["K 0", "K 1", "V 0", "V 1"]):
            d.text(x + (part + 0.5) * page * width, 304, word, SMALL, "middle", "dim" if part < 3 else "blue")
    first = {number: 16 + (blocks[number * page] * stride + (2 * layers - 1) * page) * width + blocks[number * page] * 5 for number in pages}
    for number in pages:
        d.line([(middle[number], 168), (middle[number], 190), (first[number] + 2 * width, 190), (first[number] + 2 * width, 252)], "purple")
        d.text(first[number] + 2 * width, 324, f"rows {rows[number * page]}-{rows[number * page] + page - 1}", SMALL, "middle", "blue")
    d.arc(first[0] + 2 * width, 330, first[1] + 2 * width, 330, -16, "orange")
    d.text((first[0] + first[1]) / 2 + 2 * width, 364, f"stride: {stride} rows", SMALL, "middle", "orange")
    d.text(864, 364, f"token 9: {blocks[9]} * {stride} + 1 = row {rows[9]}", NORMAL, "end", "red")
    return d


def cache_types(program):
    """Page 03: what one block holds, for four kinds of cache."""
    def pool(name, *options):
        return program.explain(SCENARIOS / name, *options)["pool"][0]

    d = Drawing(880, 470, "One block of four kinds of cache",
                "What a block holds: pages of K and V, one long block per sequence, 8-bit elements with scales, and MLA rows.")
    shape = "[block, k_or_v, layer, token, head, head_dim]"
    d.text(864, 26, f"pool {shape}", SMALL, "end", "dim", mono=True)
    rows = [("Paged", pool("first_light.json", "--seq", 3, "--token", 70)),
            ("Continuous", pool("continuous.json", "--seq", 5, "--token", 20)),
            ("Quantized", pool("quantized_e4m3.json", "--seq", 0, "--token", 20)),
            ("MLA", pool("mla.json", "--seq", 1, "--token", 130))]
    for index, (name, extents) in enumerate(rows):
        y = 40 + index * 106
        d.rect(12, y, 856, 98, "panel")
        d.text(26, y + 26, name, NORMAL + 1, bold=True)
        d.text(26, y + 48, extents, SMALL, mono=True)
    y = 40
    d.text(26, y + 70, "16 tokens of one sequence", SMALL, color="dim")
    for slot in range(16):
        for kind, color in enumerate(("blue", "green")):
            d.rect(400 + slot * 24, y + 14 + kind * 38, 22, 32, color, 2)
    d.text(392, y + 35, "K", NORMAL, "end", "blue", bold=True)
    d.text(392, y + 73, "V", NORMAL, "end", "green", bold=True)
    d.text(800, y + 54, "a page", SMALL, color="dim")
    y += 106
    d.text(26, y + 70, "all tokens of one sequence", SMALL, color="dim")
    for kind, color in enumerate(("blue", "green")):
        d.rect(400, y + 14 + kind * 38, 384, 32, "plain", 2, dashed=True)
        d.rect(400, y + 14 + kind * 38, 120, 32, color, 2)
        d.text(392, y + 35 + kind * 38, "KV"[kind], NORMAL, "end", color, bold=True)
        d.text(532, y + 35 + kind * 38, "reserved, up to the maximum length", SMALL, color="dim")
    y += 106
    dims = int(rows[2][1].rstrip("]").split(",")[-1])
    d.text(26, y + 70, "one head of one token", SMALL, color="dim")
    for granule in range(2):
        d.rect(400 + granule * 193, y + 14, 190, 32, "blue", 2)
        d.text(495 + granule * 193, y + 35, f"e4m3, dims {granule * dims // 2}-{(granule + 1) * dims // 2 - 1}", SMALL, "middle")
        d.rect(470 + granule * 193, y + 62, 50, 26, "orange", 2)
        d.text(495 + granule * 193, y + 80, "scale", SMALL, "middle")
        d.line([(495 + granule * 193, y + 62), (495 + granule * 193, y + 48)], "orange")
    d.text(800, y + 80, "granules", SMALL, color="dim")
    y += 106
    head = int(rows[3][1].rstrip("]").split(",")[-1])
    value = int(re.search(r"^deepseek-v3 +\d+ +\d+ +\d+ +(\d+) +(\d+)", program.run("scenario", "presets"), re.M)[2])
    d.text(26, y + 70, "one row per token, no second slot", SMALL, color="dim")
    d.rect(400, y + 30, 384 * value / head, 32, "purple", 2)
    d.rect(400 + 384 * value / head, y + 30, 384 * (1 - value / head), 32, "blue", 2)
    d.text(400 + 192 * value / head, y + 51, f"latent: {value} elements", SMALL, "middle")
    d.text(400 + 192 * (1 + value / head), y + 51, f"{head - value}", SMALL, "middle")
    d.text(400, y + 22, f"K: all {head}", SMALL, color="blue")
    d.text(400, y + 80, f"V: the first {value}", SMALL, color="purple")
    d.text(784, y + 80, "rope", SMALL, "end", "blue")
    return d


def scenario_parts(program):
    """Page 06: the objects of a scenario, and what each determines."""
    d = Drawing(880, 370, "The parts of a scenario",
                "Objects of a scenario file, and the part of the simulation that each of them determines.")
    parts = [("requests", "who asks what, and when", "Paging engine", "steps, blocks, preemptions", "blue"),
             ("scheduler", "batch and step sizes, costs", "Paging engine", "", "blue"),
             ("cache", "page size, blocks, dtype", "Pool and lookup table", "shapes, strides, scales", "purple"),
             ("model", "layers, heads, head size", "Pool and lookup table", "", "purple"),
             ("attention", "mask, window, soft cap", "Golden output", "o, lse, error bound", "orange"),
             ("tile", "BN, BK, swizzle: by TMA", "Tile on its way", "copies, banks, registers", "green"),
             ("lds", "waves, MMA: through LDS", "Tile on its way", "", "green"),
             ("focus", "step, layer, staged tile", "Tile on its way", "", "green")]
    objects = json.loads(program.run("scenario", "schema"))["properties"]
    missing = {name for name, value in objects.items() if name == "model" or "properties" in value} ^ {part[0] for part in parts}
    if missing:
        raise RuntimeError(f"the diagram and the schema differ in {missing}")
    d.text(22, 30, "scenario.json", NORMAL, bold=True, mono=True)
    results = {}
    for index, (key, what, result, detail, color) in enumerate(parts):
        y = 44 + index * 40
        d.rect(22, y, 390, 32, color, 4)
        d.text(34, y + 21, f'"{key}"', SMALL + 1, mono=True, bold=True)
        d.text(400, y + 21, what, SMALL, "end")
        results.setdefault(result, []).append((y + 16, detail, color))
    for result, lines in results.items():
        center = sum(y for y, _, _ in lines) / len(lines)
        color, detail = lines[0][2], lines[0][1]
        d.rect(560, center - 26, 298, 52, color)
        d.text(709, center - 4, result, NORMAL, "middle", bold=True)
        d.text(709, center + 16, detail, SMALL, "middle", "dim")
        for y, _, _ in lines:
            d.line([(412, y), (486, y), (486, center), (558, center)], color)
    return d


def files(_):
    """Page 07: which command writes and reads which file."""
    d = Drawing(880, 400, "Files and the commands that write and read them",
                "kvscope run writes a trace and reports, golden writes a bundle, verify compares a candidate with it, ptx run writes "
                "what a kernel computes.")

    def file(x, y, name, what):
        d.rect(x, y, 180, 44, "plain", 3)
        d.text(x + 90, y + 19, name, SMALL + 1, "middle", mono=True, bold=True, within=176)
        d.text(x + 90, y + 36, what, SMALL, "middle", "dim", within=176)

    def command(x, y, name, color):
        d.rect(x, y, 160, 40, color, 20)
        d.text(x + 80, y + 25, name, SMALL + 1, "middle", mono=True, within=156)

    file(16, 66, "scenario.json", "what to simulate")
    file(16, 204, "inputs.npz", "your tensors")
    file(16, 334, "kernel.ptx", "compiled by nvcc")
    command(246, 24, "run", "blue")
    command(246, 110, "stage", "green")
    command(246, 206, "golden", "orange")
    command(246, 336, "ptx run", "red")
    file(456, 22, "trace.kvt", "events, SQLite")
    file(456, 108, "shared.npy", "a staged tile")
    file(456, 204, "golden.npz", "bundle: o, lse, bounds")
    file(456, 270, "candidate.npz", "your kernel's o, lse")
    file(456, 334, "o.npy", "what the kernel wrote")
    command(704, 24, "trace, viewer", "blue")
    command(704, 206, "verify", "orange")
    file(690, 270, "report.xml", "JUnit, or JSON")
    for y in (44, 130, 226):
        d.line([(408, y), (454, y)])
    d.line([(408, 356), (454, 356)])
    d.line([(198, 88), (222, 88), (222, 44), (244, 44)])
    d.line([(198, 88), (222, 88), (222, 130), (244, 130)])
    d.line([(222, 130), (222, 216), (244, 216)])
    d.line([(198, 236), (244, 236)])
    d.line([(198, 356), (244, 356)])
    d.line([(638, 44), (702, 44)])
    d.line([(638, 226), (702, 226)])
    d.line([(638, 292), (666, 292), (666, 236), (702, 236)])
    d.line([(638, 356), (666, 356), (666, 292)], arrow=False)
    d.line([(780, 248), (780, 268)])
    d.text(784, 120, "Python, sqlite3 and", SMALL, "middle", "dim")
    d.text(784, 138, "NumPy read all files.", SMALL, "middle", "dim")
    return d


def labs(_):
    """Page 08: the link of the chain that each lab is about."""
    d = Drawing(880, 250, "Labs and exercises on the chain from a request to a register",
                "Lab 5 and exercise 2 are about requests, labs 4 and 14 about blocks, labs 1 to 3 about addresses and the lookup table, "
                "exercise 1 about the table, lab 12 about shared memory, lab 8 about banks, exercise 3 about registers. Lab 7 is about "
                "the whole chain.")
    links = [("requests", "blue"), ("blocks", "blue"), ("lookup table", "purple"), ("row, byte", "purple"), ("shared memory", "green"),
             ("banks", "orange"), ("registers", "orange")]
    w, gap = 106, 16
    for index, (name, color) in enumerate(links):
        x = 18 + index * (w + gap)
        d.rect(x, 28, w, 48, color)
        d.text(x + w / 2, 57, name, SMALL, "middle", bold=True, within=w)
        if index:
            d.line([(x - gap, 52), (x, 52)])
    labs_at = [(0, "Lab 5", ["a scheduler;", "exercise 2"]), (1, "Labs 4 and 14", ["a block pool;", "a page size"]),
               (2, "Lab 3", ["build a", "lookup table"]), (3, "Labs 1 and 2", ["an address", "and a row"]),
               (4, "Lab 12", ["waves, copies", "and waits"]), (5, "Lab 8", ["a tile without", "conflicts"]),
               (6, "Exercise 3", ["write an", "ldmatrix"])]
    for link, name, lines in labs_at:
        x = 18 + link * (w + gap) + w / 2
        d.line([(x, 120), (x, 80)], "gray")
        d.rect(x - 58, 122, 116, 92, "plain")
        d.text(x, 146, name, NORMAL, "middle", bold=True)
        d.text(x, 172, lines[0], SMALL, "middle", within=114)
        d.text(x, 192, lines[1], SMALL, "middle", within=114)
    d.text(862, 240, "Lab 7 hunts faults along the whole chain. Begin with lab 1; each lab names the pages to read first.", SMALL, "end", "dim")
    return d
