"""Paged decode attention as a kernel stages it: tiles of K, V, Q, P and O are bytes in a shared memory with TMA's
swizzle, keys are divided among splits and warps, and both are merged.

The one-line methods at the end of `Kernel` are the lines in which diagnose_staging_test.py makes faults. Shares no code
with kvscope, nor with the other kernels of this folder.
"""
import dataclasses
import math
import types

import numpy as np

Q_HEADS, KV_HEADS = 8, 2
GROUP = Q_HEADS // KV_HEADS


def to_bf16(x):
    """The nearest bf16, ties to even, as bits."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


# type: (bytes, f32 -> stored elements, stored bytes -> f32)
TYPES = {
    "bf16": (2, to_bf16, lambda b: (b.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)),
    "f16": (2, lambda x: x.astype(np.float16), lambda b: b.view(np.float16).astype(np.float32)),
    "f32": (4, lambda x: x.astype(np.float32), lambda b: b.view(np.float32)),
}


@dataclasses.dataclass
class Batch:
    """One problem and how the kernel divides it."""
    name: str
    dtype: str
    page: int     # [tokens]
    dim: int      # [elements]
    lengths: list
    queries: list
    span: int     # [bytes] of the swizzle, and of a row of a box
    tile: int     # [keys]
    warps: int
    run: int      # [keys] that a warp takes at each of its turns
    splits: int

    def __post_init__(self):
        rng = np.random.default_rng(len(self.name) + self.page + self.dim)
        self.size, self.store, self.load = TYPES[self.dtype]
        pages = [-(-n // self.page) for n in self.lengths]
        blocks = sum(pages) + 5
        order = rng.permutation(blocks).astype(np.int32)
        self.table = np.full((len(pages), max(pages) + 1), order[-1], np.int32)
        first = 0
        for row, count in zip(self.table, pages):
            row[:count] = order[first:first + count]
            first += count
        self.offsets = np.concatenate([[0], np.cumsum(self.queries)]).astype(np.int32)
        random = lambda *shape: self.store(rng.normal(size=shape).astype(np.float32))
        self.q = random(int(self.offsets[-1]), Q_HEADS, self.dim)
        self.k = random(blocks, self.page, KV_HEADS, self.dim)
        self.v = random(blocks, self.page, KV_HEADS, self.dim)

    def arrays(self):
        of = lambda name: name + "_bf16" if self.dtype == "bf16" else name
        arrays = {of("q"): self.q, of("k_cache"): self.k, of("v_cache"): self.v, "block_table": self.table,
                  "cache_seqlens": np.array(self.lengths, np.int32)}
        if max(self.queries) > 1:
            arrays["query_offsets"] = self.offsets
        return arrays

    def outputs(self, o, lse):
        return {"o_bf16" if self.dtype == "bf16" else "o": o, "lse": lse}


def swizzle(address, span):
    """TMA's swizzle of a byte address: bits 4-6 ^= bits 7-9 for 128 bytes, 4-5 ^= 7-8 for 64, 4 ^= 7 for 32.

    Byte 16 of row 1 of a 128-byte box, address 144, is stored at 144 ^ 16 = 128."""
    return address ^ ((address >> 7 & (span // 16 - 1)) << 4)


class Kernel:
    """The correct kernel; `lines` replaces methods and values by faulty ones."""

    def __init__(self, batch, **lines):
        self.batch = batch
        self.span = batch.span  # [bytes] of the swizzle and of a row of a box
        self.rows_of_q = 16
        self.alignment = 0  # [bytes] by which tiles begin after a multiple of 1024
        self.write_padding = self.read_padding = 0  # [bytes] after each row of a box
        self.k_cache, self.v_cache = batch.k.view(np.uint8), batch.v.view(np.uint8)
        for name, line in lines.items():
            if not hasattr(self, name):
                raise AttributeError(name)
            setattr(self, name, types.MethodType(line, self) if callable(line) else line)
        # Shared memory: Q, P, O, then two stages of K and two of V. Chunks of 16 bytes.
        self.row_bytes = batch.dim * batch.size
        rows = max(self.rows_of_q, batch.tile)
        self.region = -(-2 * rows * max(self.row_bytes, batch.tile * batch.size) // 1024) * 1024
        self.base = {name: self.alignment + at * self.region for name, at in
                     (("q", 1), ("p", 2), ("o", 3), ("k", 4), ("v", 6))}
        old = np.random.default_rng(7).normal(size=9 * self.region // batch.size)  # values of an earlier kernel
        self.shared = batch.store(old.astype(np.float32)).view(np.uint8).reshape(-1, 16)

    def run(self):
        """o [queries, heads, dim] in the type of the cache, and lse in f32."""
        batch = self.batch
        o = self.o_before(np.zeros((len(batch.q), Q_HEADS, batch.dim), batch.q.dtype))
        lse = np.zeros((len(batch.q), Q_HEADS), np.float32)
        for b, stored in enumerate(batch.lengths):
            first, last = int(batch.offsets[b]), int(batch.offsets[b + 1])
            for head in range(KV_HEADS):
                heads = slice(head * GROUP, (head + 1) * GROUP)
                # A row for each head of the first query, then of the second.
                q = np.ascontiguousarray(batch.q[first:last, heads]).reshape(-1, batch.dim)
                sees = np.repeat(np.arange(stored - (last - first), stored) + 1, GROUP)
                parts = [self.split(b, head, q, sees, *keys) for keys in self.splits_kept(self.split_keys(stored))]
                out, log = self.merge_splits(parts)
                target = o[first:last, heads].reshape(-1, batch.dim)
                self.store_o(target, out)
                o[first:last, heads] = target.reshape(last - first, GROUP, batch.dim)
                lse[first:last, heads] = log.reshape(last - first, GROUP)
        return o, lse

    def split(self, b, head, q, sees, first, last):
        """(o, lse) of the keys first <= t < last for all rows of q."""
        batch, rows = self.batch, len(q)
        self.write("q", self.rows_of_q, np.arange(rows), q.view(np.uint8).reshape(rows, -1, 16))
        q = self.read("q", self.rows_of_q)[:rows]
        m = np.full((batch.warps, rows), -np.inf, np.float32)
        l = np.zeros((batch.warps, rows), np.float32)
        acc = np.zeros((batch.warps, rows, batch.dim), np.float32)
        tiles = list(self.tiles(first, last))
        for ahead in range(len(tiles) + 1):  # tile i is used when tile i + 1 has been copied
            if ahead < len(tiles):
                self.copy_tile("k", b, head, tiles[ahead], self.copy_stage(ahead))
                self.copy_tile("v", b, head, tiles[ahead], self.copy_stage(ahead))
            if ahead == 0:
                continue
            i, t0 = ahead - 1, tiles[ahead - 1]
            k = self.k_fragments(self.read("k", batch.tile, self.k_stage(i) * self.region))
            v = self.v_fragments(self.read("v", batch.tile, self.v_stage(i) * self.region))
            key = t0 + np.arange(batch.tile)
            seen = (key < last)[None] & (key[None] < sees[:, None])
            s = np.where(seen, self.dot(q, k) / np.float32(math.sqrt(batch.dim)), np.float32(-np.inf))
            owner = self.warp_of((key - first) // batch.run)
            for w in range(batch.warps):
                mine = np.where(owner == w, s, np.float32(-np.inf))
                top = np.maximum(m[w], mine.max(1))
                safe = np.where(np.isfinite(top), top, np.float32(0))
                shrink, p = np.exp(m[w] - safe), np.exp(mine - safe[:, None])
                l[w] = l[w] * shrink + self.p_sum(p)
                acc[w] = acc[w] * shrink[:, None] + self.staged_p(p) @ v
                m[w] = top
        kept = self.warps_kept(list(range(batch.warps)))
        return self.merge_warps(m[kept], l[kept], self.warp_outputs(acc[kept]))

    def merge_warps(self, m, l, acc):
        top = m.max(0)
        safe = np.where(np.isfinite(top), top, np.float32(0))
        weight = np.exp(m - safe)
        total = self.merged_sum(weight, l)
        with np.errstate(divide="ignore"):
            log = safe + np.log(total)
        return (weight[..., None] * acc).sum(0) / np.where(total > 0, total, 1)[:, None], log

    def merge_splits(self, parts):
        out, log = (np.stack(x) for x in zip(*parts))
        out = self.split_outputs(out)
        top = log.max(0)
        safe = np.where(np.isfinite(top), top, np.float32(0))
        weight = self.split_weights(np.exp(log - safe))
        total = weight.sum(0)
        with np.errstate(divide="ignore"):
            return (weight[..., None] * out).sum(0) / np.where(total > 0, total, 1)[:, None], safe + np.log(total)

    def store_o(self, target, out):
        """Lanes write registers to shared memory, and one copy for each box stores it."""
        rows = len(out)
        registers = np.zeros_like(out)
        dims = self.o_dims(np.arange(out.shape[1]))
        registers[:, dims] = out
        bits = self.batch.store(registers).view(np.uint8).reshape(rows, -1, 16)
        linear = self.addresses("o", self.rows_of_q, bits.shape[1], self.write_padding)[:rows]
        self.shared[self.o_place(linear) // 16] = bits
        boxes = self.row_bytes // self.span
        for box, source in self.o_boxes([(j, j) for j in range(boxes)]):
            width = self.span // self.batch.size
            chunk = slice(source * self.span // 16, (source + 1) * self.span // 16)
            stored = self.shared[self.copied_to(linear[:, chunk]) // 16]
            target[:, box * width:(box + 1) * width] = np.ascontiguousarray(stored).reshape(rows, -1).view(target.dtype)

    def copy_tile(self, what, b, head, t0, stage):
        """Rows t0 .. t0 + tile of K or V, page by page. Rows of pages that do not exist are not copied."""
        batch, cache = self.batch, {"k": self.k_cache, "v": self.v_cache}[what]
        tokens = getattr(self, what + "_token")(t0 + np.arange(batch.tile))
        page = self.page_of(tokens, t0)
        rows = self.rows_copied(np.flatnonzero((tokens >= 0) & (page < -(-batch.lengths[b] // batch.page))))
        data = cache[batch.table[b, page[rows]], tokens[rows] % batch.page, head]
        self.write(what, batch.tile, rows, data.reshape(len(rows), -1, 16), stage * self.region)

    # Shared memory.

    def addresses(self, what, rows, chunks, padding, row_of=lambda r: r, box_of=lambda j: j, offset=0):
        """[rows, chunks]: addresses before the swizzle. The boxes of a tile are stored one after the other."""
        row, chunk = np.arange(rows)[:, None], np.arange(chunks)[None]
        pitch, per_box = self.span + padding, self.span // 16
        line = box_of(chunk // per_box) * rows + row_of(row)
        return self.base[what] + offset + line * pitch + chunk % per_box * 16

    def write(self, what, rows, chosen, data, offset=0):
        """TMA copies rows `chosen` of a tile. data: [chosen, chunks, 16] bytes"""
        linear = self.addresses(what, rows, data.shape[1], self.write_padding, box_of=self.copy_box, offset=offset)
        self.shared[self.copied_to(linear[chosen]) // 16] = data

    def read(self, what, rows, offset=0):
        """Threads read a tile: [rows, elements] in f32."""
        mine = lambda part: getattr(self, f"{what}_{part}")
        linear = self.addresses(what, rows, self.row_bytes // 16, self.read_padding, mine("row"), mine("box"), offset)
        data = np.ascontiguousarray(self.shared[mine("place")(linear) // 16]).reshape(rows, -1)
        return self.batch.load(data)

    def staged_p(self, p):
        """P as the second product reads it: rounded to the type of V, through shared memory."""
        bits = self.batch.store(p).view(np.uint8).reshape(len(p), -1, 16)
        span = min(128, bits.shape[1] * 16)
        at = self.base["p"] + np.arange(len(p))[:, None] * span + np.arange(bits.shape[1])[None] * 16
        self.shared[swizzle(at, span) // 16] = bits
        read = np.ascontiguousarray(self.shared[self.p_place(at, span) // 16]).reshape(len(p), -1)
        return self.batch.load(read)

    # The lines of the kernel in which faults are.

    def copied_to(self, address): return swizzle(address, self.span)
    def q_place(self, address): return swizzle(address, self.span)
    def k_place(self, address): return swizzle(address, self.span)
    def v_place(self, address): return swizzle(address, self.span)
    def o_place(self, address): return swizzle(address, self.span)
    def p_place(self, address, span): return swizzle(address, span)
    def q_row(self, row): return row
    def k_row(self, row): return row
    def v_row(self, row): return row
    def q_box(self, box): return box
    def k_box(self, box): return box
    def v_box(self, box): return box
    def copy_box(self, box): return box
    def k_token(self, token): return token
    def v_token(self, token): return token
    def page_of(self, token, t0): return token // self.batch.page
    def rows_copied(self, rows): return rows
    def k_fragments(self, k): return k
    def v_fragments(self, v): return v
    def dot(self, q, k): return q @ k.T
    def tiles(self, first, last): return range(first, last, self.batch.tile)
    def copy_stage(self, i): return i % 2
    def k_stage(self, i): return i % 2
    def v_stage(self, i): return i % 2
    def warp_of(self, run): return run % self.batch.warps
    def p_sum(self, p): return p.sum(1)
    def warps_kept(self, warps): return warps
    def warp_outputs(self, acc): return acc
    def split_outputs(self, out): return out
    def merged_sum(self, weight, l): return (weight * l).sum(0)
    def splits_kept(self, splits): return splits
    def split_weights(self, weight): return weight
    def o_before(self, o): return o
    def o_dims(self, dim): return dim
    def o_boxes(self, boxes): return boxes

    def split_keys(self, stored):
        """(first, last) of each split: whole tiles, equally many for each split but the last."""
        batch = self.batch
        size = -(-stored // (batch.tile * batch.splits)) * batch.tile
        return [(min(s * size, stored), min((s + 1) * size, stored)) for s in range(batch.splits)]
