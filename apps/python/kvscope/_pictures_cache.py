"""Drawings of the cache: a problem's sequences and tensors, a run's steps as curves, and the blocks at one step."""
from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from ._errors import IndexError as KvscopeIndexError
from ._svg import Drawing, fit, owner_pattern, owner_role, text_width

if TYPE_CHECKING:
    from ._problem import Problem
    from ._run import Run, Step

WIDTH = 940.0
MOST_SEQUENCES = 12  # drawn; the others are counted in a note
MOST_PAGES = 18      # of a sequence
MOST_BLOCKS = 512    # of the pool
MOST_COLUMNS = 220   # of a curve


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def draw_problem(problem: Problem) -> Drawing:
    """Each sequence as its pages with their blocks, which is its row of the lookup table; then the tensors."""
    a = problem.about
    d = Drawing(WIDTH, f"Problem in layout {a['layout']}",
                f"{plural(a['sequences'], 'sequence')}, {a['query_heads']} query heads on {a['kv_heads']}, head size "
                f"{a['head_size']}, pages of {a['page_size']}, {a['cache_dtype']}")
    table, page_size, lengths = problem.lookup_table, a["page_size"], a["key_lengths"]
    y = d.top + 18
    d.text(18, y, "Pages of each sequence, with the block that holds each", role="quiet", size=11)
    y += 12
    shown = min(len(lengths), MOST_SEQUENCES)
    columns = max([1, *(-(-int(n) // page_size) for n in lengths[:shown])])
    columns = min(columns, MOST_PAGES)
    wide = min(42.0, (WIDTH - 250) / columns - 3)
    for b in range(shown):
        queries = a["query_offsets"][b + 1] - a["query_offsets"][b]
        d.text(18, y + 16, f"seq {b}", role=owner_role(b), bold=True)
        d.text(70, y + 16, f"{plural(int(lengths[b]), 'key')}, {queries} q", role="quiet", size=11)
        pages = -(-int(lengths[b]) // page_size)
        for page in range(min(pages, MOST_PAGES)):
            x = 190 + page * (wide + 3)
            block = int(table[b, page]) if page < table.shape[1] else -1
            keys = min(page_size, int(lengths[b]) - page * page_size)
            d.box(x, y, wide, 23, fill="free", tip=f"page {page} of sequence {b}: block {block}, {keys} of {page_size} "
                                                   "keys")
            d.box(x, y, wide * keys / page_size, 23, fill=owner_role(b), pattern=owner_pattern(b))
            filled, number = wide * keys / page_size, fit(block, wide - 4, 11, True)
            inside = keys == page_size or filled >= text_width(number, 11, True) + 7
            if not inside and wide - filled < text_width(number, 11, True) + 3:
                number = ""  # neither part has room; the tip of the box has the number
            d.text(x + (4 if inside else filled + 3), y + 16, number, role=f"ink-{owner_role(b)}" if inside else "text",
                   size=11, mono=True)
        if pages > MOST_PAGES:
            d.text(190 + MOST_PAGES * (wide + 3) + 2, y + 16, f"+{pages - MOST_PAGES:,}", role="quiet", size=11)
        if pages == 0:
            d.text(190, y + 16, "no key", role="quiet", size=11)
        y += 29
    if len(lengths) > shown:
        d.text(18, y + 14, f"and {len(lengths) - shown:,} more sequences, of {sum(map(int, lengths[shown:])):,} keys",
               role="quiet", size=11)
        y += 22
    y += 20
    d.text(18, y, "Tensors", role="quiet", size=11)
    for name, dtype, shape in problem.tensors_info():
        y += 19
        d.text(18, y, fit(name, 180, 12, True), mono=True)
        d.text(220, y, dtype, role="quiet", mono=True)
        d.text(290, y, fit(list(shape), WIDTH - 310, 12, True), mono=True)
    for warning in problem.warnings[:4]:
        y += 20
        d.text(18, y, fit(f"warning: {warning}", WIDTH - 36, 11.5), role="warning", size=11.5)
    return d


def _owners(step: Step) -> dict[int, list[tuple[int, int]]]:
    """block -> (sequence, page) of each page that is in it."""
    holders: dict[int, list[tuple[int, int]]] = {}
    for row, seq in enumerate(step.batch):
        tokens = step.cache_lengths[row] + step.new_tokens[row]
        pages = -(-tokens // step.page_size) if step.page_size else 1
        for page in range(pages):
            holders.setdefault(int(step.lookup_table[row, page]), []).append((seq, page))
    return holders


def _filled(step: Step, seq: int, page: int) -> int:
    row = step.batch.index(seq)
    tokens = step.cache_lengths[row] + step.new_tokens[row]
    return min(step.page_size, tokens - page * step.page_size) if step.page_size else tokens


def selected_block(step: Step, selection: str) -> tuple[int, int, int]:
    """(block, sequence, token) of "block 7", "3:37" or "seq 3"; -1 where the selection names none.

    ValueError for other words, IndexError for a block outside of the pool.
    """
    words = selection.replace("token", " ").split()
    if len(words) == 1 and ":" in words[0]:
        seq, token = (int(part) for part in words[0].split(":"))
        if seq in step.batch:
            row = step.batch.index(seq)
            if 0 <= token < step.cache_lengths[row] + step.new_tokens[row]:
                column = token // step.page_size if step.page_size else 0
                return int(step.lookup_table[row, column]), seq, token
        return -1, seq, token
    if len(words) == 2 and words[0] in ("block", "seq"):
        number = int(words[1])
        if words[0] == "seq":
            return -1, number, -1
        if not 0 <= number < step.blocks:
            raise KvscopeIndexError(f"block {number} is outside [0, {step.blocks}), the blocks of the pool")
        return number, -1, -1
    raise ValueError(selection)


def draw_step(step: Step, selection: str = "") -> Drawing:
    """The sequences of the batch in pages, and the block pool; the selection and its link are in the accent color."""
    page = step.page_size or max([1, *(int(c) + int(n) for c, n in zip(step.cache_lengths, step.new_tokens))])
    holders = _owners(step)
    block, seq, token = selected_block(step, selection) if selection else (-1, -1, -1)
    used = len(holders)
    d = Drawing(WIDTH, f"Step {step.step}", f"{plural(len(step.batch), 'sequence')}, pages of {page} tokens, {used:,} of "
                                            f"{step.blocks:,} blocks hold tokens of the batch")
    y, start = _draw_sequences(d, step, page, holders, (block, seq, token))
    y += 16
    d.text(18, y, "Block pool", bold=True)
    d.text(100, y, "a block in the color of its sequence; hatched: shared by several sequences", role="quiet",
           size=11)
    y += 12
    shown = min(step.blocks, MOST_BLOCKS)
    across = 32 if shown > 128 else 16
    cell = (WIDTH - 36) / across
    high = 20.0 if across == 32 else 26.0
    for number in range(shown):
        x, top = 18 + number % across * cell, y + number // across * (high + 3)
        owners = holders.get(number, [])
        marked = number == block or (seq >= 0 and token < 0 and any(s == seq for s, _ in owners))
        _draw_block(d, step, number, owners, (x, top, cell - 3, high), marked)
        if number == block and start is not None:
            d.path([start, (x + (cell - 3) / 2, top)], role="accent", line=1.8, curve=True)
    if step.blocks > shown:
        d.note(f"The first {shown:,} of {step.blocks:,} blocks are drawn.")
    return d


def _draw_block(d: Drawing, step: Step, number: int, owners: Sequence[tuple[int, int]],
                at: tuple[float, float, float, float], marked: bool) -> None:
    x, y, wide, high = at
    shared = len(owners) > 1
    role = "shared" if shared else owner_role(owners[0][0]) if owners else "free"
    held = ", ".join(f"page {page} of sequence {seq}" for seq, page in owners[:6]) or "no token of the batch"
    d.box(x, y, wide, high, fill="free", tip=f"block {number}: {held}", select=f"block {number}")
    share = 0.0
    if owners:
        share = 1.0 if shared or not step.page_size else _filled(step, *owners[0]) / step.page_size
        d.box(x, y, wide * share, high, fill=role, pattern="hatch" if shared else owner_pattern(owners[0][0]),
              tip=f"block {number}: {held}", select=f"block {number}")
    ink = "quiet" if not owners else f"ink-{role}" if share >= 0.5 else "text"
    d.text(x + 4, y + high / 2 + 4, number, role=ink, size=10.5, mono=True)
    if shared and wide >= 40:
        d.text(x + wide - 4, y + high / 2 + 4, f"x{len(owners)}", role=ink, size=10, anchor="end", bold=True)
    if marked:
        d.box(x, y, wide, high, fill="", stroke="accent", line=2)


def _draw_sequences(d: Drawing, step: Step, page: int, holders: dict[int, list[tuple[int, int]]],
                    selection: tuple[int, int, int]) -> tuple[float, tuple[float, float] | None]:
    """Draws the batch; returns the lower edge, and where the selection's link starts."""
    y = d.top + 6
    block, chosen, token = selection
    start: tuple[float, float] | None = None
    rows = list(range(len(step.batch)))[:MOST_SEQUENCES]
    if chosen in step.batch and step.batch.index(chosen) not in rows:
        rows[-1] = step.batch.index(chosen)
    longest = max([1, *(-(-(step.cache_lengths[r] + step.new_tokens[r]) // page) for r in rows)])
    columns = min(longest, MOST_PAGES)
    wide = min(120.0, (WIDTH - 190) / columns - 5)
    for row in rows:
        seq, tokens = step.batch[row], step.cache_lengths[row] + step.new_tokens[row]
        d.text(18, y + 17, f"seq {seq}", role="accent" if seq == chosen else "text", bold=True)
        d.text(70, y + 17, f"{tokens:,} tok", role="quiet", size=11)
        first = 0
        pages = -(-tokens // page)
        if seq == chosen and token >= 0 and token // page >= MOST_PAGES:
            first = min(token // page, pages - MOST_PAGES)
        for number in range(first, min(pages, first + MOST_PAGES)):
            x = 136 + (number - first) * (wide + 5)
            at = int(step.lookup_table[row, number])
            shared = len(holders.get(at, [])) > 1
            role = "shared" if shared else owner_role(seq)
            held = min(page, tokens - number * page)
            tip = f"page {number} of sequence {seq}, tokens {number * page} to {number * page + held - 1}: block {at}"
            d.box(x, y, wide, 24, fill="free", tip=tip, select=f"block {at}")
            d.box(x, y, wide * held / page, 24, fill=role, pattern="hatch" if shared else owner_pattern(seq), tip=tip,
                  select=f"block {at}")
            new_from = max(0, step.cache_lengths[row] - number * page)
            if new_from < held:  # the tokens that this step computes
                d.box(x + wide * new_from / page, y + 20.5, wide * (held - new_from) / page, 3.5, fill="text", radius=1)
            d.text(x + 4, y + 15, fit(at, wide - 6, 10.5, True), role=f"ink-{role}" if held * 2 > page else "text",
                   size=10.5, mono=True)
            if at == block and (token < 0 or seq == chosen):
                d.box(x, y, wide, 24, fill="", stroke="accent", line=2)
                slot = token - number * page if token >= 0 else page // 2
                if token >= 0:
                    d.box(x + wide * slot / page, y, max(wide / page, 2), 24, fill="accent", radius=1)
                if start is None:
                    start = (x + wide * (slot + .5) / page, y + 24)
        if pages > MOST_PAGES:
            d.text(136 + MOST_PAGES * (wide + 5), y + 17, f"+{pages - MOST_PAGES}", role="quiet", size=11)
        y += 31
    d.text(136, y + 6, "numbers are blocks; the bar at the lower edge marks tokens that this step computes", role="quiet",
           size=11)
    if len(step.batch) > len(rows):
        d.text(WIDTH - 18, y + 6, f"{len(step.batch) - len(rows)} more sequences", role="quiet", size=11, anchor="end")
    return y + 14, start


def _binned(values: Sequence[float], bins: int) -> list[float]:
    """The maximum of each of `bins` equal parts of a curve."""
    count = len(values)
    return [max(values[i * count // bins:max((i + 1) * count // bins, i * count // bins + 1)]) for i in range(bins)]


def draw_run(run: Run) -> Drawing:
    """Curves over steps: blocks used and cached, requests running and waiting; preemptions are marked."""
    steps = run.steps
    count = len(steps["running"])
    report = run.report["run"]
    blocks = int(report.get("blocks", 0)) or 1
    d = Drawing(WIDTH, str(run.scenario.get("name", "Run")),
                f"{plural(count, 'step')}, {report['finished']} of {report['requests']} requests finished, "
                f"{plural(int(report['preemptions']), 'preemption')}")
    bins = min(count, MOST_COLUMNS)
    wide = (WIDTH - 130) / bins

    def axis(top: float, high: float, most: int, words: str) -> None:
        d.text(18, top + 14, words, bold=True)
        for share in (0.0, 0.5, 1.0):
            at = top + high * (1 - share)
            d.path([(110, at), (WIDTH - 20, at)], role="border", line=1)
            d.text(104, at + 4, f"{most * share:,.4g}", role="quiet", size=10.5, anchor="end", mono=True)

    top, high = d.top + 10, 96.0
    axis(top, high, blocks, "blocks")
    used, cached = _binned(steps["used_blocks"], bins), _binned(steps["cached_blocks"], bins)
    for i in range(bins):
        x = 110 + i * wide
        bar, kept = high * used[i] / blocks, min(high * cached[i] / blocks, high * (1 - used[i] / blocks))
        tip = f"step {i * count // bins}: {used[i]:g} blocks used, {cached[i]:g} cached"
        d.box(x, top + high - bar - kept, max(wide - .4, .6), kept, fill="cached", radius=0, tip=tip)
        d.box(x, top + high - bar, max(wide - .4, .6), bar, fill="owner0", radius=0, tip=tip)
    for i, lost in enumerate(_binned(steps["preemptions"], bins)):
        if lost:
            x = 110 + (i + .5) * wide
            d.path([(x, top - 3), (x, top + high)], role="warning", line=1, dash="2 3")
            d.text(x, top - 4, "\u25bc", role="warning", size=8, anchor="middle")
    top += high + 26
    most = max([1, *steps["running"], *steps["waiting"]])
    axis(top, 70, most, "requests")
    for name, role, dash in (("running", "good", ""), ("waiting", "warning", "5 3")):
        line = [(110 + (i + .5) * wide, top + 70 * (1 - value / most)) for i, value in
                enumerate(_binned(steps[name], bins))]
        d.path(line if len(line) > 1 else [line[0], (line[0][0] + 1, line[0][1])], role=role, line=1.8, dash=dash)
    top += 70 + 16
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        d.text(110 + (WIDTH - 130) * share, top, f"{(count - 1) * share:,.0f}", role="quiet", size=10.5, anchor="middle",
               mono=True)
    d.text(18, top, "step", role="quiet", size=11)
    d.key(110, top + 22, [("owner0", "", "used blocks"), ("cached", "", "cached blocks")])
    x = 330.0
    for words, role, dash in (("running", "good", ""), ("waiting", "warning", "5 3")):
        d.path([(x, top + 18), (x + 24, top + 18)], role=role, line=1.8, dash=dash)
        d.text(x + 30, top + 22, words, role="quiet", size=11)
        x += 100
    d.text(x, top + 22, "\u25bc", role="warning", size=9)
    d.text(x + 14, top + 22, "preemption", role="quiet", size=11)
    if bins < count:
        d.note(f"Each column is the maximum of about {count / bins:.0f} steps.")
    return d
