"""Diagrams of the handouts of labs. Each is kept in its lab's folder, so that `kvscope lab pack` copies it."""
from drawing import NORMAL, SMALL, Drawing, number


def tracers(_):
    """Lab 07: rows that state their own address, and the output that averages them."""
    block_of, page_size, keys, sequence, layer = [9, 4], 4, 6, 2, 1
    rows = [[block_of[t // page_size], t % page_size, 0, layer, 2, t, sequence, 16 ** (t // page_size)] for t in range(keys)]
    mean = [sum(row[dim] for row in rows) / keys for dim in range(8)]
    d = Drawing(880, 400, "Tracers: rows of V that state their own address",
                f"Sequence {sequence} has {keys} keys in blocks {block_of[0]} and {block_of[1]}. Each row of V holds its block, slot, KV head, "
                "layer, a 2 for V, its position, its sequence and 16 to the power of its page. The output is the mean of the rows, so its "
                f"last number times {keys} is {round(mean[7] * keys):#x}: the keys of each page.")
    names = ["block", "slot", "head", "layer", "V", "position", "sequence", "16^page"]
    left, width = 208, 80
    d.text(24, 40, f"Sequence {sequence}, {keys} keys", NORMAL, bold=True)
    for dim, name in enumerate(names):
        d.text(left + dim * width + width / 2, 24, f"dim {dim}", SMALL, "middle", "dim")
        d.text(left + dim * width + width / 2, 42, name, SMALL, "middle", bold=True, within=width)
    y = 56
    for page, block in enumerate(block_of):
        color = ("blue", "green")[page]
        d.box(24, y, 132, page_size * 30 - 4, [f"page {page}", (f"block {block}", "dim")], color)
        for slot in range(page_size):
            t = page * page_size + slot
            d.rect(left, y, 8 * width, 26, color if t < keys else "gray", dashed=t >= keys)
            values = rows[t] if t < keys else [block, slot, 0, layer, 2, -1, -1, 0]
            for dim, value in enumerate(values):
                d.text(left + dim * width + width / 2, y + 18, str(value), NORMAL, "middle", "ink" if t < keys else "dim", mono=True)
            if t >= keys:
                d.text(left - 10, y + 18, "free", SMALL, "end", "dim")
            y += 30
        y += 8
    d.line([(left + 4 * width, y - 6), (left + 4 * width, y + 20)])
    d.text(left + 4 * width + 14, y + 10, f"mean of {keys} rows", SMALL)
    d.rect(left, y + 24, 8 * width, 30, "orange")
    d.text(left - 10, y + 44, "o", NORMAL, "end", bold=True)
    for dim, value in enumerate(mean):
        d.text(left + dim * width + width / 2, y + 44, f"{value:.5g}", NORMAL, "middle", mono=True)
    d.text(left + 8 * width, y + 78, f"o[7] * {keys} = {round(mean[7] * keys)} = {round(mean[7] * keys):#x}: "
           f"{rows.count(rows[0]) + page_size - 1} keys of page 0, {keys - page_size} of page 1", SMALL, "end", "orange")
    return d


def lds_stages(_):
    """Lab 12: two waves with their queues, and the stages that both fill and read."""
    k_copies, v_copies = 2, 2
    d = Drawing(880, 372, "Two waves, their queues of copies, and the stages of K and V",
                f"Each wave issues {k_copies} copies of K and {v_copies} of V for a tile; they wait in the wave's own queue and land in order. The copies of "
                "each wave fill its part of a stage. A read takes the parts of both waves.")
    for wave, x in enumerate((24, 650)):
        d.rect(x, 20, 206, 332, "panel")
        d.text(x + 103, 46, f"wave {wave}", NORMAL, "middle", bold=True)
        d.text(x + 103, 66, "in flight, oldest first", SMALL, "middle", "dim")
        for copy in range(k_copies + v_copies):
            of_k = copy < k_copies
            d.rect(x + 28, 78 + copy * 38, 150, 30, "blue" if of_k else "green", dashed=not of_k)
            d.text(x + 103, 98 + copy * 38, f"copy {copy}: {'K' if of_k else 'V'} of tile 0", SMALL, "middle", within=148)
        d.rect(x + 12, 236, 182, 104, "orange")
        d.text(x + 103, 258, f"wait vmcnt({v_copies})", SMALL + 1, "middle", mono=True, bold=True, within=178)
        for line, text in enumerate([f"0 and {k_copies - 1} have landed,", f"{k_copies}, {k_copies + v_copies - 1} may be in flight.",
                                     f"Wave {1 - wave}'s copies need", "a barrier, too."]):
            d.text(x + 103, 278 + line * 17, text, SMALL, "middle", within=180)
    for row, (name, color, y) in enumerate([("K", "blue", 60), ("V", "green", 200)]):
        for stage in range(2):
            x = 268 + stage * 180
            d.text(x + 82, y - 8, f"{name} stage {stage}", SMALL, "middle", bold=True)
            for wave in range(2):
                d.rect(x + wave * 84, y, 80, 60, color if stage == 0 else "plain", dashed=stage == 1 or row == 1)
                d.text(x + wave * 84 + 40, y + 26, "part of", SMALL, "middle")
                d.text(x + wave * 84 + 40, y + 44, f"wave {wave}", SMALL, "middle")
    d.line([(202, 93), (266, 82)], "blue")
    d.line([(678, 93), (634, 93), (634, 142), (392, 142), (392, 122)], "blue", dashed=True)
    d.text(440, 302, "A read takes the parts of all waves.", SMALL, "middle")
    d.text(440, 322, "Tile i uses stage i % 2, so that tile i + 1 can be", SMALL, "middle", "dim")
    d.text(440, 340, "in flight while tile i is read.", SMALL, "middle", "dim")
    return d


def page_sizes(_):
    """Lab 14: one sequence on pages of three sizes."""
    tokens, slot = 9, 34
    d = Drawing(880, 260, "One sequence on pages of 2, 4 and 8 tokens",
                f"A sequence of {tokens} tokens leaves empty slots in its last page, more on larger pages, and needs a table entry for each page, "
                "fewer on larger pages.")
    d.text(24, 34, f"{tokens} tokens", NORMAL, bold=True)
    d.text(836, 34, "entries", SMALL, "middle", "dim")
    d.text(750, 34, "empty slots", SMALL, "middle", "dim")
    for row, size in enumerate((2, 4, 8)):
        y, pages = 56 + row * 66, -(-tokens // size)
        d.text(24, y + 26, f"pages of {size}", NORMAL)
        for t in range(pages * size):
            x = 122 + t * slot
            d.rect(x, y, slot - 4, 36, "blue" if t < tokens else "gray", dashed=t >= tokens)
        for page in range(pages):
            x = 122 + page * size * slot
            d.rect(x - 3, y - 5, size * slot + 1, 46, "l-blue", radius=6)
        empty = pages * size - tokens
        d.text(750, y + 26, f"{empty} of {pages * size}, {number(100 * empty / (pages * size))} %", SMALL + 1, "middle")
        d.text(836, y + 26, str(pages), NORMAL, "middle", bold=True)
    d.text(862, 246, "Small pages waste few slots; large pages need few entries.", SMALL, "end", "dim")
    return d
