"""Diagrams of pages 04, 05, 15 and 16: bounds and tolerances, verdicts, races, and the kernels."""
import json
import math
import re
import struct

from drawing import NORMAL, SMALL, Drawing

PAGE, DIMS = 16, 16  # of the keys of the tolerance plot


def _save(path, tensors):
    """A safetensors file of {name: (dtype, shape, bytes)}."""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def _load(path, name):
    """A tensor of doubles of a safetensors file."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + length])[name]
    begin, end = (8 + length + offset for offset in entry["data_offsets"])
    assert entry["dtype"] == "F64", entry
    return struct.unpack(f"<{(end - begin) // 8}d", data[begin:end])


def _bf16(value):
    """The bit pattern of the nearest bf16, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _omitted_page(program, lengths):
    """For each number of keys: the error of an output that omits one page, what the derived bound allows, and what the
    fixed tolerance of vLLM's tests allows, as `kvscope verify` reports them."""
    seed, most = 1, max(lengths)

    def values(count):
        nonlocal seed
        out = []
        for _ in range(count):
            seed = seed * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            out.append(((seed >> 33) % 128 - 64) / 64)
        return struct.pack(f"<{count}f", *out)

    q, k, v = (values(count) for count in (DIMS, most * DIMS, most * DIMS))
    pool = [most // PAGE, PAGE, 1, DIMS]
    inputs, golden, candidate = (program.folder / f"{name}.safetensors" for name in ("inputs", "golden", "candidate"))

    def attend(table, keys, out):
        _save(inputs, {"q": ("F32", [1, 1, DIMS], q), "k_cache": ("F32", pool, k), "v_cache": ("F32", pool, v),
                       "block_table": ("I32", [1, len(table)], struct.pack(f"<{len(table)}i", *table)),
                       "cache_seqlens": ("I32", [1], struct.pack("<i", keys))})
        program.run("golden", "--input", inputs, "--layout", "nhd", "--out", out)

    rows = []
    for keys in lengths:
        pages = list(range(keys // PAGE))
        attend(pages[:len(pages) // 2] + pages[len(pages) // 2 + 1:], keys - PAGE, golden)
        o = _load(golden, "o")
        _save(candidate, {"o": ("BF16", [1, 1, DIMS], struct.pack(f"<{DIMS}H", *map(_bf16, o)))})
        attend(pages, keys, golden)
        reports = [json.loads(program.run("verify", golden, candidate, "--json", *options, codes=(0, 1)))["tensors"][0]
                   for options in ((), ("--profile", "vllm"))]
        error = reports[0]["measures"]["max_abs"]
        rows.append((keys, error, *(report["worst"]["allowed"] for report in reports), *(
            report["worst"]["error_over_allowed"] > 1 for report in reports)))
    return rows


def tolerance(program):
    """Page 04: what a fixed tolerance accepts as sequences become longer."""
    rows = _omitted_page(program, [2 ** n for n in range(6, 16)])
    d = Drawing(880, 440, "Tolerance and sequence length",
                "Log-log plot over the number of keys: the error of an output that omits one page, the derived bound, and a fixed tolerance. "
                "From some length on, the fixed tolerance accepts the omitted page.")
    left, top, right, bottom = 84, 44, 620, 384
    low, high = -5, 0

    def x(keys):
        return left + (math.log2(keys) - 6) / 9 * (right - left)

    def y(value):
        return bottom - (math.log10(value) - low) / (high - low) * (bottom - top)

    accepted = [keys for keys, _, _, _, _, fixed_rejects in rows if not fixed_rejects]
    if accepted:
        d.rect(x(accepted[0]) - 8, top, right - x(accepted[0]) + 8, bottom - top, "panel", 2)
        d.text((x(accepted[0]) + right) / 2 - 4, top + 22, "the fixed tolerance accepts", SMALL, "middle", "dim")
        d.text((x(accepted[0]) + right) / 2 - 4, top + 40, "an output without a page", SMALL, "middle", "dim")
    for exponent in range(low, high + 1):
        d.line([(left, y(10 ** exponent)), (right, y(10 ** exponent))], "panel", arrow=False)
        d.text(left - 10, y(10 ** exponent) + 5, f"1e{exponent}" if exponent else "1", SMALL, "end", mono=True)
    for keys, *_ in rows[::3]:
        d.line([(x(keys), bottom), (x(keys), bottom + 6)], arrow=False)
        d.text(x(keys), bottom + 24, f"{keys:,}", SMALL, "middle", mono=True)
    d.line([(left, top), (left, bottom), (right, bottom)], arrow=False)
    d.text((left + right) / 2, 428, "keys of the sequence", NORMAL, "middle")
    d.text(left - 60, 28, "|o - golden|", NORMAL)
    curves = [(1, "red", "error without one page", "of 16 tokens, bf16"), (3, "orange", "fixed tolerance", "profile vllm"),
              (2, "blue", "derived bound", "of a correct candidate")]
    for column, color, name, detail in curves:
        d.line([(x(row[0]), y(row[column])) for row in rows], color, arrow=False, wide=True, dashed=column == 3)
        for row in rows:
            if column == 1:
                d.rect(x(row[0]) - 3, y(row[1]) - 3, 6, 6, "red", 3)
    placed = []
    for column, color, name, detail in sorted(curves, key=lambda curve: y(rows[-1][curve[0]])):
        at = max([y(rows[-1][column])] + [other + 44 for other in placed])
        placed.append(at)
        d.line([(right + 4, y(rows[-1][column])), (right + 22, at)], color, arrow=False)
        d.text(right + 28, at + 2, name, NORMAL, color=color, bold=True)
        d.text(right + 28, at + 19, detail, SMALL, color="dim")
    return d


def check_flow(_):
    """Page 05: your tensors, the golden output, your kernel's output, and the verdict."""
    d = Drawing(880, 286, "From your tensors to a verdict",
                "The same tensors go to the kernel and to kvscope golden; kvscope verify compares the two outputs element by element.")
    d.box(18, 104, 170, 76, ["inputs.npz", "q, K and V, table,", "lengths, scales"], "plain")
    d.box(276, 30, 190, 76, ["your kernel", "on a GPU, or with", ("kvscope ptx run", "mono")], "red")
    d.box(276, 178, 190, 76, [("kvscope golden"), "reference in double,", "bound per element"], "orange")
    d.box(528, 40, 150, 56, ["candidate.npz", "o, lse"], "plain")
    d.box(528, 188, 150, 56, ["golden.npz", "o, lse, a1, a2"], "plain")
    d.box(528, 120, 150, 44, [("kvscope verify")], "blue")
    d.line([(188, 130), (228, 130), (228, 68), (274, 68)])
    d.line([(188, 154), (228, 154), (228, 216), (274, 216)])
    d.line([(466, 68), (526, 68)])
    d.line([(466, 216), (526, 216)])
    d.line([(603, 96), (603, 118)])
    d.line([(603, 188), (603, 166)])
    d.line([(678, 132), (712, 132), (712, 68), (742, 68)], "green")
    d.line([(678, 152), (712, 152), (712, 216), (742, 216)], "red")
    d.box(744, 40, 120, 56, ["pass", "exit code 0"], "green")
    d.box(744, 166, 120, 100, ["FAIL", "sequence, head,", "page, block,", "exit code 1"], "red", NORMAL - 1)
    return d


def race(program):
    """Page 15: two threads without an order, and the order that a barrier gives."""
    ptx = program.page_file("15_virtual_gpu.md", "reverse.ptx")
    program.run("ptx", "run", ptx, "--block", 64, "--arg", "f32[64]", "--arg", "f32[64]", "--json", "race.json", codes=(1,))
    report = next(report["text"] for report in json.loads((program.folder / "race.json").read_text())["reports"]
                  if report["kind"] == "RACE_WR")
    byte = re.search(r"\((words \+ \d+)\)", report)[1]
    sides = {kind: re.search(rf"{kind}\s+thread (\d+) \(warp (\d+) lane (\d+)\)\s+(\S+)\s+(\S+:\d+)", report).groups()
             for kind in ("write", "read")}
    d = Drawing(880, 380, "A race, and the barrier that removes it",
                f"Thread {sides['write'][0]} stores to {byte} and thread {sides['read'][0]} loads it. Without a barrier nothing orders the two. "
                "With bar.sync, the store happens before the load.")

    for x0, title, barrier in [(16, "Without a barrier: a race", False), (452, "With bar.sync: ordered", True)]:
        d.rect(x0, 12, 412, 356, "panel")
        d.text(x0 + 18, 40, title, NORMAL + 1, bold=True)
        columns = [x0 + 104, x0 + 308]
        y_write, y_read, end = (136, 290, 334) if barrier else (136, 236, 288)
        for x, kind in zip(columns, ("write", "read")):
            thread, warp, lane, _, _ = sides[kind]
            d.text(x, 72, f"thread {thread}", NORMAL, "middle", bold=True)
            d.text(x, 90, f"warp {warp}, lane {lane}", SMALL, "middle", "dim")
            d.line([(x, 98), (x, end)])
        for x, y, kind, color in [(columns[0], y_write, "write", "orange"), (columns[1], y_read, "read", "blue")]:
            _, _, _, opcode, line = sides[kind]
            d.rect(x - 97, y - 26, 194, 52, color)
            d.text(x, y - 5, opcode, SMALL + 1, "middle", mono=True, bold=True, within=176)
            d.text(x, y + 14, f"{byte}, {line}", SMALL, "middle", within=190)
        if barrier:
            d.rect(x0 + 14, 196, 384, 34, "green")
            d.text(x0 + 206, 218, "bar.sync 0", NORMAL, "middle", mono=True, bold=True)
            d.line([(columns[0], y_write + 26), (columns[0], 194)], "green", wide=True)
            d.line([(columns[1], 230), (columns[1], y_read - 28)], "green", wide=True)
            d.text(x0 + 206, 356, "The store happens before the load.", SMALL, "middle", "green")
        else:
            d.line([(columns[0] + 20, y_write + 28), (columns[1] - 20, y_read - 28)], "red", dashed=True, wide=True)
            middle, center = x0 + 206, (y_write + y_read) / 2
            for slope in (1, -1):
                d.line([(middle - 9, center - 9 * slope), (middle + 9, center + 9 * slope)], "red", arrow=False, wide=True)
            d.text(middle, 322, "No edge orders them: the load returns", SMALL, "middle", "red")
            d.text(middle, 342, "the old word or the new one.", SMALL, "middle", "red")
    return d


def kernels(program):
    """Page 16: what each kernel reads and writes."""
    listed = set(re.findall(r"^(\w+) +\d+ cases", program.run("kernels", "list"), re.M))
    d = Drawing(880, 470, "The data flow of the kernels",
                "append_tokens writes new tokens to the pool; populate_rows reads the lookup table; three kernels load "
                "tiles into shared memory; four kernels compute attention; gather_rows collects rows.")
    drawn = set()

    def kernel(x, y, name, color, w=176):
        drawn.add(name)
        d.rect(x, y, w, 38, color, 19)
        d.text(x + w / 2, y + 24, name, SMALL + 1, "middle", mono=True, within=w - 6)

    def data(x, y, w, h, name, detail=""):
        d.box(x, y, w, h, [name] + ([detail] if detail else []), "plain", NORMAL)

    data(16, 40, 150, 60, "new tokens", "K and V of a step")
    kernel(204, 51, "append_tokens", "blue")
    data(420, 30, 180, 80, "pool", "blocks of K and V")
    data(16, 150, 150, 60, "lookup table", "page to block")
    kernel(204, 161, "populate_rows", "purple")
    data(420, 152, 180, 56, "rows of a tile", "one per page")
    d.line([(166, 70), (202, 70)])
    d.line([(380, 70), (418, 70)])
    d.line([(166, 180), (202, 180)])
    d.line([(380, 180), (418, 180)])
    kernel(684, 51, "gather_rows", "gray")
    d.line([(600, 70), (682, 70)])
    data(684, 110, 176, 44, "chosen rows")
    d.line([(772, 89), (772, 108)])
    d.rect(12, 236, 420, 222, "panel")
    d.text(28, 262, "Load a tile", NORMAL, bold=True)
    for index, (name, what) in enumerate([("tma_tile_load", "tensor copies"), ("gather4_tile_load", "four rows a copy"),
                                          ("lds_stage", "cp.async, two stages")]):
        kernel(28, 280 + index * 56, name, "green")
        d.text(216, 304 + index * 56, what, SMALL, color="dim")
    d.rect(448, 236, 420, 222, "panel")
    d.text(464, 262, "Compute attention: o, lse", NORMAL, bold=True)
    for index, (name, what) in enumerate([("paged_decode", "one query, split keys"), ("paged_prefill", "many queries"),
                                          ("mla_decode", "one row for K and V"), ("continuous_decode", "one block")]):
        kernel(464, 276 + index * 45, name, "orange")
        d.text(652, 300 + index * 45, what, SMALL, color="dim")
    d.line([(600, 92), (640, 92), (640, 222)], arrow=False)
    d.line([(91, 210), (91, 222), (658, 222), (658, 234)])
    d.line([(222, 222), (222, 234)])
    if drawn != listed:
        raise RuntimeError(f"the diagram and `kvscope kernels list` differ in {drawn ^ listed}")
    return d
