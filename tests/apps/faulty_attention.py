"""An attention kernel in NumPy with switchable faults, for the tests of `kvscope diagnose`.

A kernel reads its cache as flat memory through strides, as a GPU kernel does, and combines the keys by splits and tiles.
`SHAPES` lists the batches and cache layouts, `FAULTS` the faults. The module shares no code with kvscope.
"""
import copy

import numpy as np

EMPTY = -np.inf


# --- element types ----------------------------------------------------------------------------------------------------

def fp8_table(exponent_bits, bias, fnuz=False):
    """The 256 values of an fp8 type; E4M3 keeps finite values in its largest exponent, E5M2 has infinities there."""
    mantissa_bits = 7 - exponent_bits
    values = []
    for code in range(256):
        sign = -1.0 if code & 128 else 1.0
        exponent, mantissa = (code & 127) >> mantissa_bits, code & (1 << mantissa_bits) - 1
        fraction = mantissa / (1 << mantissa_bits)
        value = fraction * 2.0 ** (1 - bias) if exponent == 0 else (1 + fraction) * 2.0 ** (exponent - bias)
        if fnuz:
            value = np.nan if code == 128 else value
        elif exponent_bits == 4:
            value = np.nan if code & 127 == 127 else value
        elif exponent == 31:
            value = np.nan if mantissa else np.inf
        values.append(sign * value)
    return np.array(values)


FP8 = {"e4m3": fp8_table(4, 7), "e5m2": fp8_table(5, 15), "e4m3fnuz": fp8_table(4, 8, fnuz=True),
       "e5m2fnuz": fp8_table(5, 16, fnuz=True)}


@np.errstate(over="ignore", invalid="ignore")
def to_bits(dtype, x):
    """`x` rounded to the type, as NumPy stores it."""
    if dtype in ("f32", "f16"):
        return x.astype({"f32": np.float32, "f16": np.float16}[dtype])
    if dtype == "bf16":
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        return ((bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    positive = FP8[dtype][:128]
    positive = positive[np.isfinite(positive)]
    code = np.searchsorted((positive[1:] + positive[:-1]) / 2, np.abs(x))
    return (code | np.where(np.signbit(x), 128, 0)).astype(np.uint8)


def to_real(dtype, bits):
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return FP8[dtype][bits].astype(np.float32) if dtype in FP8 else bits.astype(np.float32)


def rounded(dtype, x):
    return x if dtype in ("f32", "f64") else to_real(dtype, to_bits(dtype, x))


def suffixed(name, dtype):
    return name if dtype in ("f32", "f16") else f"{name}_{dtype}"


# --- batches ----------------------------------------------------------------------------------------------------------

class Shape:
    """A batch in an engine's layout; `options` go to `kvscope golden`."""

    def __init__(self, name, layout, page, heads, lengths, queries, **more):
        self.name, self.layout, self.page = name, layout, page
        self.query_heads, self.kv_heads = heads
        self.lengths, self.queries = np.array(lengths), np.array(queries)
        self.dim = more.get("dim", 32)
        self.value_dim = more.get("value_dim", self.dim)  # MLA: the latent part, which is V
        self.scale = more.get("scale", self.dim ** -0.5)
        self.layers, self.layer = more.get("layers", 1), more.get("layer", 0)
        self.left, self.cap = more.get("left"), more.get("cap")
        self.sinks, self.alibi = more.get("sinks", False), more.get("alibi", False)
        self.cache, self.scales = more.get("cache"), more.get("scales")  # cache type; axes of the scales
        self.group = more.get("group", self.dim)  # elements that share a scale
        self.options = ["--layout", layout]
        if layout == "mla":
            self.options += ["--value-size", str(self.value_dim)]
        if layout == "mla" or "scale" in more:
            self.options += ["--scale", repr(self.scale)]
        if self.layers > 1:
            self.options += ["--layer", str(self.layer)]
        if self.left is not None:
            self.options += ["--mask", "sliding_window", "--window-left", str(self.left)]
        if self.cap:
            self.options += ["--soft-cap", str(self.cap)]

    @property
    def several_tables(self):
        """Whether the lookup table has one row per sequence, and not one list for all."""
        return self.layout not in ("flashinfer", "sglang")

    @property
    def decode(self):
        return bool((self.queries == 1).all())


SHAPES = [
    Shape("decode", "nhd", 16, (8, 2), [75, 131, 33, 96], [1, 1, 1, 1]),
    Shape("prefill", "hnd", 8, (6, 3), [40, 61, 23], [4, 4, 4]),
    Shape("window", "flashinfer", 16, (4, 2), [100, 55, 70], [2, 1, 3], left=25, cap=1.5, sinks=True),
    Shape("layers", "max", 16, (8, 4), [90, 43, 120], [1, 2, 1], layers=2, layer=1, alibi=True),
    Shape("e4m3", "nhd", 16, (4, 2), [70, 100, 37], [1, 1, 1], cache="e4m3", scales="token and head"),
    Shape("groups", "max", 8, (4, 2), [37, 60, 50], [2, 1, 1], layers=2, layer=1, cache="e4m3", scales="group", group=8),
    Shape("e5m2", "hnd", 16, (4, 2), [70, 41], [1, 1], cache="e5m2", scales="head"),
    Shape("mha", "nhd", 8, (4, 4), [0, 1, 7, 8, 9, 45], [1, 1, 1, 1, 1, 1]),
    Shape("mqa", "hnd", 64, (8, 1), [63, 64, 65, 1, 200], [1, 1, 1, 1, 1]),
    Shape("mla", "mla", 64, (4, 1), [65, 63, 128, 150], [1, 1, 1, 1], dim=48, value_dim=32),
    Shape("mla prefill", "mla", 16, (4, 1), [40, 17, 33], [3, 1, 2], dim=48, value_dim=32),
    Shape("legacy", "vllm_legacy", 16, (4, 2), [15, 16, 17, 90], [1, 1, 1, 1]),
    Shape("sglang", "sglang", 1, (4, 2), [50, 1, 37], [1, 1, 1]),
    Shape("page 256", "nhd", 256, (4, 2), [255, 256, 257, 600], [1, 1, 1, 1]),
    Shape("long", "nhd", 64, (2, 1), [4096, 1000], [1, 1], dim=64),
    Shape("ragged", "flashinfer", 128, (4, 2), [300, 129, 1], [5, 1, 1], sinks=True),
    Shape("page 32", "hnd", 32, (4, 2), [31, 32, 33, 100], [1, 2, 1, 3], alibi=True, cap=2.0),
    Shape("odd groups", "max", 16, (4, 2), [37, 60], [1, 1], dim=48, cache="e4m3", scales="group", group=12),
    Shape("sharp", "nhd", 16, (4, 2), [75, 40, 20], [1, 1, 1], scale=12.0),
]


class Inputs:
    """Tensors of a batch, and the memory that a kernel reads. Slots without a token hold old values."""

    def __init__(self, shape, dtype, seed):
        rng = np.random.default_rng([seed, SHAPES.index(shape)])
        s, self.shape, self.dtype = shape, shape, dtype
        self.offsets = np.concatenate([[0], np.cumsum(s.queries)])
        self.cache = s.cache or dtype
        q = to_bits(dtype, rng.standard_normal((s.queries.sum(), s.query_heads, s.dim)))
        self.q = to_real(dtype, q)
        pages = -(-s.lengths // s.page)
        self.blocks = int(pages.sum()) + 6
        order = rng.permutation(self.blocks)
        self.columns = int(pages.max()) + 2
        # Entries past a sequence's pages name unused blocks, as an allocator leaves them.
        self.table = rng.choice(order[pages.sum():], (len(pages), self.columns))
        for row, own in zip(self.table, np.split(order[:pages.sum()], np.cumsum(pages)[:-1])):
            row[:len(own)] = own
        n, p, h, d = self.blocks, s.page, s.kv_heads, s.dim
        x = 16 // {"f32": 4, "bf16": 2, "f16": 2}.get(self.cache, 1)  # vllm_legacy: elements of 16 bytes
        self.list = np.concatenate([t[:c] for t, c in zip(self.table, pages)])
        self.starts = np.concatenate([[0], np.cumsum(pages)])
        draw = lambda *row: to_bits(self.cache, rng.standard_normal(row))
        self.arrays = {suffixed("q", dtype): q}
        table, lengths = self.table.astype(np.int32), s.lengths.astype(np.int32)
        starts = lambda counts: np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        cache = lambda name: suffixed(name, self.cache)
        if s.layout in ("nhd", "hnd"):
            k, v = (draw(*((n, p, h, d) if s.layout == "nhd" else (n, h, p, d))) for _ in range(2))
            self.arrays |= {cache("k_cache"): k, cache("v_cache"): v, "block_table": table, "cache_seqlens": lengths}
        elif s.layout == "vllm_legacy":
            k, v = draw(n, h, d // x, p, x), draw(n, h, d, p)
            self.arrays |= {cache("key_cache"): k, cache("value_cache"): v, "block_tables": table, "seq_lens": lengths}
        elif s.layout == "sglang":
            k, v = draw(n, h, d), draw(n, h, d)
            self.arrays |= {cache("k_buffer"): k, cache("v_buffer"): v, "kv_indptr": starts(lengths),
                            "kv_indices": self.list.astype(np.int32)}
        elif s.layout == "mla":
            k = v = draw(n, p, d)
            self.arrays |= {cache("kv_cache"): k, "block_table": table, "cache_seqlens": lengths}
        elif s.layout == "max":
            k = v = draw(n, 2, s.layers, p, h, d)
            self.arrays |= {cache("blocks"): k, "lookup_table": table.astype(np.uint32),
                            "cache_lengths": (lengths - s.queries).astype(np.uint32)}
        else:
            k = v = draw(n, 2, p, h, d)
            self.arrays |= {cache("kv_cache"): k, "kv_indptr": starts(pages),
                            "kv_indices": self.list.astype(np.int32),
                            "kv_last_page_len": (lengths - (pages - 1) * p).astype(np.int32)}
        self.memory = [k.reshape(-1), v.reshape(-1)]
        self.arrays["query_offsets"] = self.offsets
        self.slopes = 2.0 ** -(1 + np.arange(s.query_heads) / 2) / 4 if s.alibi else None
        self.sinks = rng.uniform(1, 4, s.query_heads) if s.sinks else None
        if s.alibi:
            self.arrays["alibi_slopes"] = self.slopes
        if s.sinks:
            self.arrays["sinks"] = self.sinks
        scales = lambda *axes: rng.uniform(0.5, 2, axes).astype(np.float32)
        self.scales = None
        if s.scales == "token and head":
            self.scales = [scales(n, p, h), scales(n, p, h)]
            self.arrays |= {"k_scale": self.scales[0], "v_scale": self.scales[1]}
        elif s.scales == "head":
            self.scales = [scales(h), scales(h)]
            self.arrays |= {"k_scale": self.scales[0], "v_scale": self.scales[1]}
        elif s.scales == "group":
            self.scales = [scales(n, 2, s.layers, p, h, d // s.group)] * 2
            self.arrays["scales"] = self.scales[0]


class Side:
    """Where a kernel reads K or V: element (block, slot, head, dim) = memory[offset + block * block_stride + ...]."""

    def __init__(self, inputs, which):
        s = inputs.shape
        p, h, d = s.page, s.kv_heads, s.dim
        self.dtype, self.memory = inputs.cache, inputs.memory[which]
        self.elements = np.arange(d if which == 0 else s.value_dim)
        self.dims = self.elements.copy()  # place of each element of a head
        row = p * h * d
        self.block_stride, self.token_stride, self.head_stride, self.offset = row, h * d, d, 0
        if s.layout == "hnd":
            self.token_stride, self.head_stride = d, p * d
        elif s.layout == "flashinfer":
            self.block_stride, self.offset = 2 * row, which * row
        elif s.layout == "max":
            self.block_stride, self.offset = 2 * s.layers * row, (which * s.layers + s.layer) * row
        elif s.layout == "vllm_legacy":
            x = 16 // self.memory.itemsize
            self.token_stride, self.head_stride = (x, d * p) if which == 0 else (1, d * p)
            self.dims = self.dims // x * (p * x) + self.dims % x if which == 0 else self.dims * p
        self.layer, self.layer_stride, self.scale_layer_stride = s.layer, row, 0
        self.scales = None if inputs.scales is None else inputs.scales[which].reshape(-1)
        # Strides of the scales: block, token, head, group of elements.
        g = d // s.group
        self.vector = 1  # elements that are multiplied by the scale of the first of them
        self.group, self.scale_offset = s.group, 0
        self.scale_strides = {"token and head": [p * h, h, 1, 0], "head": [0, 0, 1, 0]}.get(s.scales, [0, 0, 0, 0])
        if s.scales == "group":
            self.scale_strides = [2 * s.layers * p * h * g, h * g, g, 1]
            self.scale_layer_stride = p * h * g
            self.scale_offset = (which * s.layers + s.layer) * p * h * g

    def in_layer(self, layer):
        side = copy.copy(self)
        side.offset += (layer - self.layer) * self.layer_stride
        side.scale_offset += (layer - self.layer) * self.scale_layer_stride
        return side

    def read(self, blocks, slots, heads):
        """[keys, heads, dim]"""
        at = (self.offset + blocks * self.block_stride + slots * self.token_stride)[:, None] + heads * self.head_stride
        rows = to_real(self.dtype, self.memory[at[..., None] + self.dims])
        if self.scales is None:
            return rows
        b, t, h, g = self.scale_strides
        at = (self.scale_offset + blocks * b + slots * t)[:, None] + heads * h
        return rows * self.scales[at[..., None] + self.elements // self.vector * self.vector // self.group * g]


# --- the kernel -------------------------------------------------------------------------------------------------------

class Kernel:
    """A correct kernel; a fault replaces attributes and methods of one object."""

    def __init__(self, inputs):
        s = self.shape = inputs.shape
        self.inputs, self.q = inputs, inputs.q
        self.k, self.v = Side(inputs, 0), Side(inputs, 1)
        self.scale = s.scale
        self.top_left, self.left, self.right = False, s.left, 0
        self.cap, self.sinks, self.slopes = s.cap, inputs.sinks, inputs.slopes
        self.k_head = self.v_head = np.arange(s.query_heads) // (s.query_heads // s.kv_heads)
        self.page, self.table, self.stride = s.page, inputs.table.reshape(-1), inputs.columns
        self.list, self.starts = inputs.list, inputs.starts  # without a table of several rows: one list for all
        self.tile = self.splits = None  # keys of a tile; function from key positions to the splits' positions
        self.rescale_sum = self.rescale_output = self.subtract_maximum = self.normalize = True
        self.merge, self.empty_splits, self.sinks_joined = "exact", 0, 1
        self.merged = None  # function from the results of the splits to (o, lse)
        self.lse_of = self.merged_lse_of = lambda top, total: top + np.log(total)
        self.without_keys = 0.0  # o of a row that lost all its keys: NaN in a kernel that divides by its sum
        self.zeros = lambda b, i: 0  # keys past the end that are read as zeros and not masked
        self.used = None  # elements of q and K that a score has
        self.lse_factor, self.store, self.store_lse = 1.0, None, None
        self.key_order = None  # function from K rows [keys, head, dim] to the rows that are used
        self.value_order = None
        self.rotate = None

    # Hooks that faults replace: the entry of a page, block and slot of a key, and the keys that a query sees.
    def entry(self, sequence, page):
        if not self.shape.several_tables:
            return self.list[self.starts[sequence] + page]
        return self.table[sequence * self.stride + page]

    def place(self, sequence, keys):
        return self.entry(sequence, keys // self.page), keys % self.page

    def length(self, sequence):
        return self.shape.lengths[sequence]

    def visible(self, sequence, query):
        keys, queries = self.length(sequence), self.shape.queries[sequence]
        position = query if self.top_left else keys - queries + query
        first = 0 if self.left is None else max(0, position - self.left)
        return np.arange(first, max(first, min(keys, position + self.right + 1)))

    def fetch(self, side, sequence, keys, heads):
        return side.read(*self.place(sequence, keys), heads)

    def run(self, dtype):
        """(o, lse) of outputs of a type; f64: without any rounding after the inputs."""
        s = self.shape
        real = np.float64 if dtype == "f64" else np.float32
        rows = len(self.inputs.q)
        o, lse = np.zeros((rows, s.query_heads, s.value_dim), real), np.full((rows, s.query_heads), EMPTY, real)
        for b in range(len(s.lengths)):
            for i in range(s.queries[b]):
                keys = self.visible(b, i)
                if len(keys):
                    at = self.inputs.offsets[b] + i
                    o[at], lse[at] = self.row(b, i, at, keys, dtype, real)
                elif len(Kernel(self.inputs).visible(b, i)):
                    o[self.inputs.offsets[b] + i] = self.without_keys
        if self.store:
            o = self.store(o)
        if self.store_lse:
            lse = self.store_lse(lse)
        return rounded(dtype, o), lse * real(self.lse_factor)

    def row(self, b, i, at, keys, dtype, real):
        s = self.shape
        heads, inverse = np.unique(np.concatenate([self.k_head, self.v_head]), return_inverse=True)
        k_head, v_head = inverse[:s.query_heads], inverse[s.query_heads:]
        k = self.fetch(self.k, b, keys, heads).astype(real)
        v = self.fetch(self.v, b, keys, heads).astype(real)
        if self.key_order:
            k = self.key_order(k)
        if self.value_order:
            v = self.value_order(v)
        position = s.lengths[b] - s.queries[b] + i
        q = self.q[at].astype(real)
        if self.rotate:
            q, k = self.rotate(q, np.full(1, position), True), self.rotate(k, keys, False)
        k, v = k[:, k_head].transpose(1, 0, 2), v[:, v_head].transpose(1, 0, 2)  # [head, key, dim]
        if self.used is not None:
            q, k = q[:, :self.used], k[:, :, :self.used]
        if past := self.zeros(b, i):
            keys = np.concatenate([keys, s.lengths[b] + np.arange(past)])
            k, v = (np.concatenate([x, np.zeros((len(x), past, x.shape[2]), real)], axis=1) for x in (k, v))
        score = (k @ q[:, :, None])[:, :, 0] * real(self.scale)
        if self.cap:
            score = real(self.cap) * np.tanh(score / real(self.cap))
        if self.slopes is not None:
            score = score + (self.slopes[:, None] * (keys - position)).astype(real)
        index = np.arange(len(keys))
        parts = [index] if self.splits is None else [p for p in self.splits(index) if len(p)]
        done = [self.split(score[:, p], v[:, p], n == 0, dtype, real) for n, p in enumerate(parts)]
        if self.merged:
            return self.merged(done)
        if len(done) == 1 and not self.empty_splits:
            return done[0]
        done += [(np.zeros_like(done[0][0]), np.zeros_like(done[0][1]))] * self.empty_splits
        out, lse = (np.stack(x) for x in zip(*done))
        top = lse.max(0)
        weigh = {"exact": lambda: np.exp(lse - top), "base two": lambda: np.exp2(lse - top)}
        weight = weigh.get(self.merge, lambda: np.ones_like(lse))()
        total = weight.sum(0)
        exact = self.merged_lse_of(top, np.exp(lse - top).sum(0))
        merged = {"exact": exact, "base two": top + np.log2(total), "mean": exact, "count": top + np.log(total)}[self.merge]
        return (out * weight[..., None]).sum(0) / total[:, None], merged

    def split(self, score, v, first, dtype, real):
        """o [head, dim] and lse [head] of some keys, by tiles with a running maximum."""
        if not self.subtract_maximum:
            with np.errstate(all="ignore"):
                p = np.exp(score)
                total = p.sum(1)
                return (p[:, None] @ v)[:, 0] / total[:, None], np.log(total)
        top = np.full(len(score), EMPTY, real)
        total, out = np.zeros_like(top), np.zeros((len(score), v.shape[2]), real)
        if first and self.sinks is not None:
            top, total = self.sinks.astype(real), np.full_like(total, self.sinks_joined)
        tile = self.tile or score.shape[1]
        for start in range(0, score.shape[1], tile):
            part = score[:, start:start + tile]
            new = np.maximum(top, part.max(1))
            factor = np.exp(top - new)
            total = total * factor if self.rescale_sum else total
            out = out * factor[:, None] if self.rescale_output else out
            top = new
            p = np.exp(part - top[:, None])
            total = total + p.sum(1)
            out = out + (rounded(dtype, p)[:, None] @ v[:, start:start + tile])[:, 0]
        return out / (total[:, None] if self.normalize else 1), self.lse_of(top, total)
