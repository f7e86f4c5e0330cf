"""Caches of engines as NumPy arrays: each layout is built from plain keys and values, [token, head, dim] by sequence, and
read back to them. The module shares no code with kvscope.

`LAYOUTS` maps the name of a layout to `build(cache) -> {name: array}` and `read(arrays, cache) -> [(k, v) by sequence]`.
"""
import numpy as np

# A type is (NumPy storage, ending of the names in an .npz, two patterns that a test must not read).
TYPES = {"f32": (np.float32, "", [0x7FC00000, 0x7F800000]), "f16": (np.float16, "", [0x7E00, 0x7C00]),
         "bf16": (np.uint16, "_bf16", [0x7FC0, 0x7F80]), "e4m3": (np.uint8, "_e4m3", [0x7F, 0xFF])}


class Cache:
    """Plain keys and values, and the blocks where their pages are. Pools are larger than needed and hold poison."""

    def __init__(self, seed, dtype="f32", lengths=(5, 8, 1, 14), heads=2, size=16, value_size=None, page=4, layers=3,
                 layer=1, mla=False):
        rng = np.random.default_rng(seed)
        self.dtype, self.page, self.layers, self.layer = dtype, page, layers, layer
        self.lengths = np.array(lengths)
        self.heads, self.size, self.value_size = heads, size, value_size or size
        storage, self.ending, _ = TYPES[dtype]
        codes = {"f32": lambda s: rng.standard_normal(s).astype(np.float32),
                 "f16": lambda s: rng.standard_normal(s).astype(np.float16),
                 "bf16": lambda s: (rng.standard_normal(s).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16),
                 "e4m3": lambda s: rng.integers(0x28, 0x48, s).astype(np.uint8)}[dtype]
        self.k = [codes((n, heads, size)) for n in lengths]
        self.v = [k[..., :self.value_size] if mla else codes((len(k), heads, self.value_size)) for k in self.k]
        count = -(-self.lengths // page)
        self.blocks = int(count.sum()) + 3
        self.rows = np.split(rng.permutation(self.blocks)[:count.sum()], np.cumsum(count)[:-1])
        self.queries = np.array([1, 2, 1, 3])[:len(lengths)] if len(lengths) <= 4 else np.ones(len(lengths), int)
        self.storage = storage

    def poison(self, *shape):
        bits = {1: np.uint8, 2: np.uint16, 4: np.uint32}[np.dtype(self.storage).itemsize]
        return np.resize(np.array(TYPES[self.dtype][2], bits), shape).view(self.storage).copy()

    def pool(self, rows):
        """[N, P, heads, size] with the rows of every sequence in its pages."""
        made = self.poison(self.blocks, self.page, *rows[0].shape[1:])
        for values, pages in zip(rows, self.rows):
            for t, value in enumerate(values):
                made[pages[t // self.page], t % self.page] = value
        return made

    def table(self, padding=-1, dtype=np.int32):
        made = np.full((len(self.rows), max(map(len, self.rows)) + 1), padding, dtype)
        for row, pages in zip(made, self.rows):
            row[:len(pages)] = pages
        return made

    def slots(self):
        return [pages[np.arange(n) // self.page] * self.page + np.arange(n) % self.page
                for n, pages in zip(self.lengths, self.rows)]

    def starts(self, counts):
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    def named(self, arrays, caches):
        return {name + (self.ending if name in caches else ""): np.ascontiguousarray(array)
                for name, array in arrays.items()}


def cache_array(arrays, name):
    """A tensor under its name, or under its name with the ending of a type, which kvscope adds to f16 too."""
    for ending in ("", "_bf16", "_e4m3", "_f16"):
        if name + ending in arrays:
            found = arrays[name + ending]
            return found.view(np.float16) if ending == "_f16" else found
    raise KeyError(name)


def from_pages(k, v, rows, lengths):
    """k, v [N, P, H, D] and the blocks of each sequence."""
    page = k.shape[1]
    out = []
    for pages, n in zip(rows, lengths):
        t = np.arange(n)
        block = np.asarray(pages)[t // page]
        out.append((k[block, t % page], v[block, t % page]))
    return out


def from_slots(k, v, slots):
    return [(k[s], v[s]) for s in slots]


def split(values, starts):
    return [values[a:b] for a, b in zip(starts, starts[1:])]


def block_table(names, build_caches, read_caches, cached=False, dtype=np.int32):
    """A layout with a block table; `build_caches(k, v, cache)` and `read_caches(arrays) -> (k, v)` with [N, P, H, D]."""
    table, lengths = names

    def build(c):
        arrays = build_caches(c.pool(c.k), c.pool(c.v), c)
        counted = c.lengths - c.queries if cached else c.lengths
        return c.named({**arrays, table: c.table(2 ** 31 - 1 if dtype != np.uint32 else 2 ** 32 - 1, dtype),
                        lengths: counted.astype(dtype)}, arrays)

    def read(t, c):
        counts = t[lengths] + (c.queries if cached else 0)
        return from_pages(*read_caches(t, c), t[table], counts)

    return build, read


def two(k_name, v_name, order, back):
    return (lambda k, v, c: {k_name: k.transpose(order), v_name: v.transpose(order)},
            lambda t, c: (cache_array(t, k_name).transpose(back), cache_array(t, v_name).transpose(back)))


def one(name, axis, heads_first):
    def build(k, v, c):
        turn = (0, 2, 1, 3) if heads_first else (0, 1, 2, 3)
        return {name: np.stack([k.transpose(turn), v.transpose(turn)], axis)}

    def read(t, c):
        both = np.moveaxis(cache_array(t, name), axis, 0)
        return (both.transpose(0, 1, 3, 2, 4) if heads_first else both)

    return build, read


def max_build(k, v, c):
    blocks = c.poison(c.blocks, 2, c.layers, c.page, c.heads, c.size)
    blocks[:, 0, c.layer], blocks[:, 1, c.layer] = k, v
    return {"blocks": blocks}


def max_read(t, c):
    blocks = cache_array(t, "blocks")
    layer = c.layer if blocks.shape[2] > 1 else 0
    return blocks[:, 0, layer], blocks[:, 1, layer]


def legacy_build(k, v, c):
    n, p, h, d = k.shape
    x = 16 // k.itemsize
    return {"key_cache": k.reshape(n, p, h, d // x, x).transpose(0, 2, 3, 1, 4), "value_cache": v.transpose(0, 2, 3, 1)}


def legacy_read(t, c):
    k, v = cache_array(t, "key_cache"), cache_array(t, "value_cache")
    n, h, groups, p, x = k.shape
    return k.transpose(0, 3, 1, 2, 4).reshape(n, p, h, groups * x), v.transpose(0, 3, 1, 2)


def diff_read(t, c):
    both = cache_array(t, "kv_cache")
    return both[..., :c.size], both[..., c.size:]


def indptr(cache, names, by_length=False):
    """Pages by offsets; the third of `names` holds the tokens of the last page or, by_length, of the sequence."""
    build_cache, read_cache = cache
    starts, indices, last = names

    def build(c):
        arrays = build_cache(c.pool(c.k), c.pool(c.v), c)
        count = -(-c.lengths // c.page)
        before = 0 if by_length else (count - 1) * c.page
        return c.named({**arrays, starts: c.starts(count), indices: np.concatenate(c.rows).astype(np.int32),
                        last: (c.lengths - before).astype(np.int32)}, arrays)

    def read(t, c):
        k, v = read_cache(t, c)
        rows = split(t[indices], t[starts])
        return from_pages(k, v, rows, [n if by_length else (len(r) - 1) * k.shape[1] + n for r, n in zip(rows, t[last])])

    return build, read


def token_pool(requests, mla=False):
    def build(c):
        k, v = (c.pool(rows).reshape(-1, c.heads, rows[0].shape[-1]) for rows in (c.k, c.v))
        out = {"kv_buffer": k} if mla else {"k_buffer": k, "v_buffer": v}
        slots = c.slots()
        if requests:
            table = np.full((len(slots) + 2, max(map(len, slots)) + 1), 2 ** 31 - 1, np.int32)
            numbers = np.arange(len(slots), 0, -1)
            for row, own in zip(numbers, slots):
                table[row, :len(own)] = own
            out |= {"req_to_token": table, "req_pool_indices": numbers, "seq_lens": c.lengths.astype(np.int64)}
        else:
            out |= {"kv_indptr": c.starts(c.lengths), "kv_indices": np.concatenate(slots).astype(np.int64)}
        return c.named(out, {"k_buffer", "v_buffer", "kv_buffer"})

    def read(t, c):
        if requests:
            slots = [t["req_to_token"][r, :n] for r, n in zip(t["req_pool_indices"], t["seq_lens"])]
        else:
            slots = split(t["kv_indices"], t["kv_indptr"])
        if mla:
            rows = cache_array(t, "kv_buffer")
            return from_slots(rows, rows[..., :c.value_size], slots)
        return from_slots(cache_array(t, "k_buffer"), cache_array(t, "v_buffer"), slots)

    return build, read


def hf_build(c):
    longest = c.lengths.max() + 2
    k, v = (c.poison(len(c.lengths), c.heads, longest, size) for size in (c.size, c.value_size))
    mask = np.zeros((len(c.lengths), longest), np.int64)
    for b, n in enumerate(c.lengths):  # padded on the left
        k[b, :, longest - n:], v[b, :, longest - n:] = c.k[b].transpose(1, 0, 2), c.v[b].transpose(1, 0, 2)
        mask[b, longest - n:] = 1
    return c.named({"key_cache": k, "value_cache": v, "attention_mask": mask}, {"key_cache", "value_cache"})


def hf_read(t, c):
    k, v = cache_array(t, "key_cache"), cache_array(t, "value_cache")
    if "attention_mask" in t:
        seen = [np.flatnonzero(row) for row in t["attention_mask"]]
    else:
        seen = [np.arange(n) for n in t["seq_lens"]]
    return [(k[b][:, s].transpose(1, 0, 2), v[b][:, s].transpose(1, 0, 2)) for b, s in enumerate(seen)]


def dense_build(c):
    k, v = (c.poison(len(c.lengths), c.lengths.max() + 3, c.heads, size) for size in (c.size, c.value_size))
    left = np.arange(len(c.lengths)) % 3
    for b, n in enumerate(c.lengths):
        k[b, left[b]:left[b] + n], v[b, left[b]:left[b] + n] = c.k[b], c.v[b]
    return c.named({"k_cache": k, "v_cache": v, "cache_seqlens": c.lengths.astype(np.int32),
                    "cache_leftpad": left.astype(np.int32)}, {"k_cache", "v_cache"})


def dense_read(t, c):
    left = t.get("cache_leftpad", np.zeros(len(t["cache_seqlens"]), int))
    return [(cache_array(t, "k_cache")[b, a:a + n], cache_array(t, "v_cache")[b, a:a + n])
            for b, (a, n) in enumerate(zip(left, t["cache_seqlens"]))]


def varlen_build(c):
    return c.named({"k": np.concatenate(c.k), "v": np.concatenate(c.v), "cu_seqlens_k": c.starts(c.lengths)}, {"k", "v"})


def varlen_read(t, c):
    return list(zip(split(cache_array(t, "k"), t["cu_seqlens_k"]), split(cache_array(t, "v"), t["cu_seqlens_k"])))


def trtllm_build(c):
    k, v = c.pool(c.k).transpose(0, 2, 1, 3), c.pool(c.v).transpose(0, 2, 1, 3)
    pool = np.stack([k, v], 1).reshape(2 * c.blocks, *k.shape[1:])
    table = c.table().astype(np.int64)
    offsets = np.stack([np.where(table < 0, 99999, 2 * table), np.where(table < 0, 99999, 2 * table + 1)], 1)
    return c.named({"kv_pool": pool, "kv_cache_block_offsets": offsets.astype(np.int32),
                    "sequence_length": c.lengths.astype(np.int32)}, {"kv_pool"})


def trtllm_read(t, c):
    pool = cache_array(t, "kv_pool").transpose(0, 2, 1, 3)
    offsets, page = t["kv_cache_block_offsets"], pool.shape[1]
    out = []
    for b, n in enumerate(t["sequence_length"]):
        token = np.arange(n)
        out.append(tuple(pool[offsets[b, kv, token // page], token % page] for kv in (0, 1)))
    return out


def lmcache(axes):
    def build(c):
        k, v = (np.stack([c.poison(*rows[0].shape)] * c.layer + [rows[0]] + [c.poison(*rows[0].shape)] *
                         (c.layers - c.layer - 1)) for rows in (c.k, c.v))
        both = np.stack([k, v]).reshape(2, c.layers, len(c.k[0]), -1)  # KV_2LTD
        chosen = {"2LTD": both, "2TD": both[:, c.layer], "T2D": both[:, c.layer].transpose(1, 0, 2)}[axes]
        return c.named({"kv_chunk": chosen}, {"kv_chunk"})

    def read(t, c):
        chunk = cache_array(t, "kv_chunk")
        if axes == "2LTD":
            chunk = chunk[:, c.layer if chunk.shape[1] > 1 else 0]
        k, v = chunk if axes != "T2D" else chunk.transpose(1, 0, 2)
        return [(k.reshape(len(k), c.heads, c.size), v.reshape(len(v), c.heads, c.size))]

    return build, read


def mla_rows(form, names=("kv_cache",)):
    """Rows that are K, with V in front: in one tensor "NPD", "NPHD", "NHPD" or "N1LPHD", or in two, latent and rope."""
    def build(k, v, c):
        if form == "two":
            return {names[0]: k[:, :, 0, :c.value_size], names[1]: k[:, :, 0, c.value_size:]}
        if form == "N1LPHD":
            blocks = c.poison(c.blocks, 1, c.layers, *k.shape[1:])
            blocks[:, 0, c.layer] = k
            return {names[0]: blocks}
        return {names[0]: {"NPD": lambda: k[:, :, 0], "NPHD": lambda: k, "NHPD": lambda: k.transpose(0, 2, 1, 3)}[form]()}

    def read(t, c):
        if form == "two":
            k = np.concatenate([cache_array(t, name) for name in names], -1)[:, :, None]
        else:
            k = cache_array(t, names[0])
            if k.ndim == 6:
                k = k[:, 0, c.layer if k.shape[2] > 1 else 0]
            elif k.ndim == 3:
                k = k[:, :, None]
            elif form == "NHPD":
                k = k.transpose(0, 2, 1, 3)
        return k, k[..., :c.value_size]

    return build, read


def lmcache_mla_build(c):
    chunk = c.poison(1, c.layers, len(c.k[0]), c.size)
    chunk[0, c.layer] = c.k[0][:, 0]
    return c.named({"kv_chunk": chunk}, {"kv_chunk"})


def lmcache_mla_read(t, c):
    chunk = cache_array(t, "kv_chunk")
    k = chunk[0, c.layer if chunk.shape[1] > 1 else 0][:, None]
    return [(k, k[..., :c.value_size])]


LAYOUTS = {
    "max": block_table(("lookup_table", "cache_lengths"), max_build, max_read, cached=True, dtype=np.uint32),
    "nhd": block_table(("block_table", "cache_seqlens"), *two("k_cache", "v_cache", (0, 1, 2, 3), (0, 1, 2, 3))),
    "hnd": block_table(("block_table", "cache_seqlens"), *two("k_cache", "v_cache", (0, 2, 1, 3), (0, 2, 1, 3))),
    "flashinfer": indptr(one("kv_cache", 1, False), ("kv_indptr", "kv_indices", "kv_last_page_len")),
    "flashinfer_hnd": indptr(one("kv_cache", 1, True), ("kv_indptr", "kv_indices", "kv_last_page_len")),
    "vllm_legacy": block_table(("block_tables", "seq_lens"), legacy_build, legacy_read),
    "sglang": token_pool(False),
    "vllm": block_table(("block_table", "seq_lens"), *one("kv_cache", 1, False)),
    "vllm_hnd": block_table(("block_table", "seq_lens"), *one("kv_cache", 1, True)),
    "vllm_diffkv": block_table(("block_table", "seq_lens"),
                               lambda k, v, c: {"kv_cache": np.concatenate([k, v], -1)}, diff_read),
    "flashinfer_trtllm": block_table(("block_tables", "seq_lens"), *one("kv_cache", 1, True)),
    "trtllm": (trtllm_build, trtllm_read),
    "sglang_req": token_pool(True),
    "hf": (hf_build, hf_read),
    "dense": (dense_build, dense_read),
    "varlen": (varlen_build, varlen_read),
    "mlc": indptr(one("pages", 1, True), ("page_indptr", "page_values", "length_info")),
}
# MLA: caches of one head whose values are the first elements of the keys, as Cache(mla=True) makes them. The form of each
# layout is the first that the layout has, which is the one that a conversion writes.
MLA = {
    "max": block_table(("lookup_table", "cache_lengths"), *mla_rows("N1LPHD", ("blocks",)), cached=True, dtype=np.uint32),
    "mla": block_table(("block_table", "cache_seqlens"), *mla_rows("NPD")),
    "flashinfer_trtllm": block_table(("block_tables", "seq_lens"), *mla_rows("NHPD")),
    "mla_indptr": indptr(mla_rows("two", ("ckv_cache", "kpe_cache")), ("kv_indptr", "kv_indices", "kv_len_arr"), True),
    "sglang_mla": token_pool(False, mla=True),
    "sglang_req": token_pool(True, mla=True),
}
MLA_CHUNKS = {"lmcache_mla": (lmcache_mla_build, lmcache_mla_read)}
# One sequence, the tokens of a chunk.
CHUNKS = {"lmcache": lmcache("2LTD"), "lmcache_2td": lmcache("2TD"), "lmcache_t2d": lmcache("T2D")}
# The pool, its order and its unowned slots survive a conversion.
POOLS = set(LAYOUTS) - {"hf", "dense", "varlen"}


# --- the oracle: dense attention in double ---------------------------------------------------------------------------

def e4m3_value(code):
    sign, exponent, mantissa = -1 if code & 128 else 1, code >> 3 & 15, code & 7
    if code & 127 == 127:
        return np.nan
    return sign * (mantissa / 8 * 2.0 ** -6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


E4M3 = np.array([e4m3_value(code) for code in range(256)])
E2M1 = np.array([s * x for s in (1, -1) for x in (0, .5, 1, 1.5, 2, 3, 4, 6)])


def to_double(dtype, bits):
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return E4M3[bits] if dtype == "e4m3" else bits.astype(np.float64)


def attention(q, k, v, queries, scale):
    """o [T, Hq, Dv], lse [T, Hq]: causal, the last query sees the last key. q [T, Hq, D]; k, v [n, H, D] by sequence."""
    o, lse = np.zeros((*q.shape[:2], v[0].shape[-1])), np.zeros(q.shape[:2])
    row = 0
    for keys, values, count in zip(k, v, queries):
        group = q.shape[1] // keys.shape[1]
        for i in range(count):
            seen = len(keys) - count + i + 1
            for h in range(q.shape[1]):
                s = scale * keys[:seen, h // group] @ q[row, h]
                p = np.exp(s - s.max())
                o[row, h], lse[row, h] = p @ values[:seen, h // group] / p.sum(), s.max() + np.log(p.sum())
            row += 1
    return o, lse
