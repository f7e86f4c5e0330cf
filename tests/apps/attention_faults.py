"""The faults that diagnose_test.py injects, as changes of faulty_attention.Kernel.

A fault has the names of the hypotheses that describe it. More than one name: the faults give the same output on such a
batch, so no test on outputs can tell them apart. `apply` returns text that the stated cause must contain, or None.
"""
import numpy as np

from faulty_attention import Kernel

FAULTS = []


class Fault:
    def __init__(self, name, hypotheses, apply, when, local):
        self.name, self.hypotheses, self.apply, self.when, self.local = name, hypotheses, apply, when, local


def fault(name, *hypotheses, when=lambda shape: True, local=False):
    """`local`: the fault concerns one place, which a seed chooses."""
    def keep(apply):
        FAULTS.append(Fault(name, hypotheses, apply, when, local))
        return apply
    return keep


def decode(shape):
    return shape.decode


def prefill(shape):
    return not shape.decode


def table(shape):
    return shape.layout != "flashinfer"


def several_heads(shape):
    return shape.kv_heads > 1


def windowless(shape):
    return shape.left is None


# --- scores -----------------------------------------------------------------------------------------------------------

@fault("scale missing", "scale_missing")
def _(k, rng):
    k.scale = 1.0


@fault("scale doubled", "scale_twice")
def _(k, rng):
    k.scale = k.scale ** 2


@fault("scale of another head size", "scale_of_other_head_size", "scale_factor")
def _(k, rng):
    k.scale = 128 ** -0.5
    return "1/sqrt(128)"


@fault("scale wrong by a factor", "scale_factor")
def _(k, rng):
    k.scale *= rng.uniform(1.1, 1.3)


@fault("log2(e) missing", "scale_base_two")
def _(k, rng):
    k.scale *= np.log(2)


@fault("causal mask at the top left", "causal_alignment", when=lambda s: prefill(s) and s.left is None)
def _(k, rng):
    k.top_left = True


@fault("no mask", "mask_missing", when=lambda s: prefill(s) and windowless(s))
def _(k, rng):
    k.visible = lambda b, i: np.arange(k.length(b))


@fault("window one key longer", "window_off_by_one", when=lambda s: s.left is not None)
def _(k, rng):
    k.left += 1
    return f"({k.left}, 0)"


@fault("window one key shorter", "window_off_by_one", when=lambda s: s.left is not None)
def _(k, rng):
    k.left -= 1
    return f"({k.left}, 0)"


@fault("window omitted", "window_missing", when=lambda s: s.left is not None)
def _(k, rng):
    k.left = None


# The rows of two queries cannot tell one key more from all keys.
@fault("next token seen", "next_token_seen", "mask_missing", when=lambda s: prefill(s) and s.queries.max() == 2)
@fault("next token seen", "next_token_seen", "window_off_by_one", when=lambda s: prefill(s) and s.queries.max() > 2)
def _(k, rng):
    k.right = 1


@fault("own token masked", "own_token_masked", "last_token_missing", "length_without_new", when=decode)
@fault("own token masked", "own_token_masked", "window_off_by_one", when=prefill)
def _(k, rng):
    k.right = -1


@fault("soft cap omitted", "soft_cap_missing", when=lambda s: s.cap)
def _(k, rng):
    k.cap = None


@fault("sinks omitted", "sink_missing", when=lambda s: s.sinks)
def _(k, rng):
    k.sinks = None


@fault("ALiBi omitted", "alibi_missing", when=lambda s: s.alibi)
def _(k, rng):
    k.slopes = None


@fault("ALiBi subtracted", "alibi_sign", when=lambda s: s.alibi)
def _(k, rng):
    k.slopes = -k.slopes


def rotary(base, interleaved, of_query, of_key):
    def rotate(x, positions, is_query):
        if not (of_query if is_query else of_key):
            return x
        half = x.shape[-1] // 2
        angle = positions[:, None, None] * base ** (-np.arange(half) / half)
        if len(positions) == 1:
            angle = angle[0]
        first, second = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
        turned = (first * np.cos(angle) - second * np.sin(angle), first * np.sin(angle) + second * np.cos(angle))
        out = np.empty_like(x)
        if interleaved:
            out[..., ::2], out[..., 1::2] = turned
        else:
            out[..., :half], out[..., half:] = turned
        return out
    return rotate


@fault("rope applied twice", "rotary_twice")
def _(k, rng):
    k.rotate = rotary(1e4, False, True, True)


@fault("rope applied twice to K", "rotary_twice")
def _(k, rng):
    k.rotate = rotary(5e5, True, False, True)


# --- length -----------------------------------------------------------------------------------------------------------

@fault("length without the new tokens", "length_without_new", "last_token_missing", "own_token_masked", when=decode)
@fault("length without the new tokens", "length_without_new", when=prefill)
def _(k, rng):
    lengths = k.shape.lengths - k.shape.queries
    k.length = lambda b: lengths[b]


@fault("length with the new tokens twice", "length_with_new_twice", "one_token_too_many", "next_token_seen", when=decode)
@fault("length with the new tokens twice", "length_with_new_twice", when=prefill)
def _(k, rng):
    lengths = k.shape.lengths + k.shape.queries
    k.length = lambda b: lengths[b]


def until(k, end):
    """Every query whose keys reach the end of the sequence reads up to `end(keys)` instead."""
    correct = k.visible

    def visible(b, i):
        keys, length = correct(b, i), k.shape.lengths[b]
        return np.arange(keys[0], max(keys[0], end(length))) if len(keys) and keys[-1] == length - 1 else \
            keys[keys < end(length)]
    k.visible = visible


@fault("last page unmasked", "last_page_unmasked")
def _(k, rng):
    until(k, lambda n: -(-n // k.page) * k.page)


@fault("last page omitted", "last_page_missing", when=windowless)
def _(k, rng):
    until(k, lambda n: n // k.page * k.page)


@fault("one slot too many", "one_token_too_many", "length_with_new_twice", "next_token_seen", when=decode)
def _(k, rng):
    until(k, lambda n: n + 1)


# --- heads and queries ------------------------------------------------------------------------------------------------

def heads(k, of):
    k.k_head = k.v_head = np.array([of(h) for h in range(k.shape.query_heads)])


@fault("KV head h % H", "kv_head_map", when=several_heads)
def _(k, rng):
    heads(k, lambda h: h % k.shape.kv_heads)
    return "h % KV heads"


@fault("KV head 0", "kv_head_map", when=several_heads)
def _(k, rng):
    heads(k, lambda h: 0)
    return "KV head 0"


@fault("KV heads reversed", "kv_head_map", when=several_heads)
def _(k, rng):
    group = k.shape.query_heads // k.shape.kv_heads
    heads(k, lambda h: k.shape.kv_heads - 1 - h // group)
    # With two heads the next head is the other head, too.
    return "reverse order" if k.shape.kv_heads > 2 else None


@fault("V of KV head 0", "v_head_map", when=several_heads)
def _(k, rng):
    k.v_head = np.zeros_like(k.v_head)


@fault("query head 0", "query_head_zero")
def _(k, rng):
    k.q = np.repeat(k.q[:, :1], k.shape.query_heads, axis=1)


@fault("q as [heads, rows, dim]", "query_axes")
def _(k, rng):
    rows, count, dims = k.q.shape
    k.q = k.q.reshape(count, rows, dims).transpose(1, 0, 2)


# --- the cache --------------------------------------------------------------------------------------------------------

@fault("K and V exchanged", "k_and_v_exchanged")
def _(k, rng):
    for name in ("memory", "offset"):
        a, b = getattr(k.k, name), getattr(k.v, name)
        setattr(k.k, name, b), setattr(k.v, name, a)


@fault("V read from K", "v_is_k")
def _(k, rng):
    k.v = k.k


def exchange_axes(k, sides):
    s = k.shape
    for side in sides:
        if s.layout == "hnd":
            side.token_stride, side.head_stride = s.kv_heads * s.dim, s.dim
        else:
            side.token_stride, side.head_stride = s.dim, s.page * s.dim


@fault("NHD as HND", "head_and_slot_axes", when=several_heads)
def _(k, rng):
    exchange_axes(k, [k.k, k.v])
    return "the cache"


@fault("K as HND", "head_and_slot_axes", when=several_heads)
def _(k, rng):
    exchange_axes(k, [k.k])
    return "K is read"


@fault("halves of K exchanged", "k_dims_order")
def _(k, rng):
    k.key_order = lambda x: np.roll(x, x.shape[-1] // 2, axis=-1)
    return "halves"


@fault("halves of V exchanged", "v_dims_order")
def _(k, rng):
    k.value_order = lambda x: np.roll(x, x.shape[-1] // 2, axis=-1)
    return "halves"


@fault("block stride without the other axes", "block_stride", when=lambda s: s.layout in ("max", "flashinfer"))
def _(k, rng):
    for side in (k.k, k.v):
        side.block_stride = side.layer_stride


@fault("layer 0", "layer", when=lambda s: s.layers > 1)
def _(k, rng):
    k.k, k.v = k.k.in_layer(0), k.v.in_layer(0)
    return "layer 0 is read instead of layer 1"


@fault("page size 32", "page_size")
def _(k, rng):
    k.page = 32


def format_as(k, dtype):
    k.k.dtype = k.v.dtype = dtype


@fault("e4m3 read as e5m2", "fp8_format", when=lambda s: s.cache == "e4m3")
def _(k, rng):
    format_as(k, "e5m2")


@fault("e5m2 read as e4m3", "fp8_format", when=lambda s: s.cache == "e5m2")
def _(k, rng):
    format_as(k, "e4m3")


@fault("e4m3 read as fnuz", "fp8_fnuz", when=lambda s: s.cache == "e4m3")
def _(k, rng):
    format_as(k, "e4m3fnuz")


@fault("scales not applied", "scales_missing", when=lambda s: s.scales)
def _(k, rng):
    k.k.scales = k.v.scales = None


@fault("scales of K not applied", "k_scales_missing", when=lambda s: s.scales)
def _(k, rng):
    k.k.scales = None


@fault("scales of V not applied", "v_scales_missing", when=lambda s: s.scales)
def _(k, rng):
    k.v.scales = None


@fault("scale of head 0", "scale_granularity", when=lambda s: s.scales)
def _(k, rng):
    for side in (k.k, k.v):
        side.scale_strides[2] = 0
    return "head 0"


@fault("scale of the block's first token", "scale_granularity", when=lambda s: s.scales in ("token and head", "group"))
def _(k, rng):
    for side in (k.k, k.v):
        side.scale_strides[1] = 0
    return "first token"


@fault("first scale of a head", "scale_granularity", when=lambda s: s.scales == "group")
def _(k, rng):
    for side in (k.k, k.v):
        side.scale_strides[3] = 0
    return "first scale"


@fault("scales of K and V exchanged", "k_and_v_scales_exchanged", when=lambda s: s.scales)
def _(k, rng):
    for name in ("scales", "scale_offset"):
        a, b = getattr(k.k, name), getattr(k.v, name)
        setattr(k.k, name, b), setattr(k.v, name, a)


# --- the lookup table -------------------------------------------------------------------------------------------------

@fault("two table rows exchanged", "table_rows_exchanged", "table_row", when=table, local=True)
def _(k, rng):
    a, b = sorted(rng.choice(len(k.shape.lengths), 2, replace=False))
    rows = k.inputs.table.copy()
    rows[[a, b]] = rows[[b, a]]
    k.table = rows.reshape(-1)
    return f"{a} and {b}"


@fault("row 0 of the table for all", "table_row", when=table)
def _(k, rng):
    k.table = np.tile(k.inputs.table[:1], (len(k.shape.lengths), 1)).reshape(-1)
    return "row 0"


@fault("table column plus one", "table_column", when=table)
def _(k, rng):
    entry = k.entry
    k.entry = lambda b, page: entry(b, np.minimum(page + 1, k.stride - 1))
    return "p + 1"


@fault("table row stride one short", "table_stride", when=table)
def _(k, rng):
    k.stride -= 1
    return f"{k.stride} entries apart"


@fault("table read as [page, sequence]", "table_axes", when=table)
def _(k, rng):
    k.entry = lambda b, page: k.table[page * len(k.shape.lengths) + b]


@fault("table ignored", "pages_contiguous")
def _(k, rng):
    k.entry = lambda b, page: page


# --- single pages and keys --------------------------------------------------------------------------------------------

def seen_keys(k, sequence):
    """Keys that the last query of a sequence sees without any fault."""
    return Kernel(k.inputs).visible(sequence, k.shape.queries[sequence] - 1)


def seen_page(k, rng):
    """A sequence and one of its pages of which its last query sees two keys or more."""
    b = rng.integers(len(k.shape.lengths))
    pages, keys = np.unique(seen_keys(k, b) // k.shape.page, return_counts=True)
    return b, rng.choice(pages[keys > 1])


def page_from(k, sequence, page, block):
    entry = k.entry
    k.entry = lambda b, pages: np.where((b == sequence) & (pages == page), block, entry(b, pages))


@fault("page from another block", "page_from_other_block", local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    right = k.entry(b, page)
    block = rng.choice(np.setdiff1d(np.arange(k.inputs.blocks), [right]))
    page_from(k, b, page, block)
    return f"page {page} of sequence {b} was read from block {block}, not {right}"


@fault("stale page of another sequence", "page_from_other_block", local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    other = (b + 1) % len(k.shape.lengths)
    block = k.entry(other, rng.integers(-(-k.shape.lengths[other] // k.page)))
    page_from(k, b, page, block)
    return f"page {page} of sequence {b} was read from block {block}"


def page_of(k, sequence, page, wrong):
    """Only this page is read through other sides: `wrong` maps a side to the one that is read instead of it."""
    fetch = k.fetch

    def read(side, b, keys, heads):
        rows = fetch(side, b, keys, heads)
        if side not in wrong or b != sequence:
            return rows
        return np.where((keys // k.page == page)[:, None, None], fetch(wrong[side], b, keys, heads), rows)
    k.fetch = read


@fault("stale page of another layer", "page_from_other_layer", when=lambda s: s.layers > 1, local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    page_of(k, b, page, {side: side.in_layer(0) for side in (k.k, k.v)})
    return f"page {page} of sequence {b} was read from layer 0"


@fault("V of a page read from K", "page_v_is_k", local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    page_of(k, b, page, {k.v: k.k})
    return f"page {page} of sequence {b}"


@fault("two pages exchanged", "pages_exchanged", local=True)
def _(k, rng):
    b = rng.integers(len(k.shape.lengths))
    pages = np.unique(seen_keys(k, b) // k.shape.page)
    page, other = rng.choice(pages[:-1]), pages[-1]
    first, second = k.entry(b, page), k.entry(b, other)
    page_from(k, b, page, second)
    page_from(k, b, other, first)
    return f"pages {page} and {other} of sequence {b}"


def change_keys(k, sequence, change):
    visible = k.visible
    k.visible = lambda b, i: change(visible(b, i)) if b == sequence else visible(b, i)


@fault("page omitted", "page_missing", local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    change_keys(k, b, lambda keys: keys[keys // k.page != page])
    return f"page {page} of sequence {b}"


@fault("page counted twice", "page_twice", local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    change_keys(k, b, lambda keys: np.concatenate([keys, keys[keys // k.page == page]]))
    return f"page {page} of sequence {b}"


@fault("page of zeros", "page_of_zeros", local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    fetch = k.fetch
    k.fetch = lambda side, s, keys, heads: np.where(((s == b) & (keys // k.page == page))[:, None, None], 0,
                                                    fetch(side, s, keys, heads))
    return f"page {page} of sequence {b}"


@fault("key omitted", "key_missing", local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    seen = seen_keys(k, b)
    key = rng.choice(seen[seen // k.shape.page == page][:-1])
    change_keys(k, b, lambda keys: keys[keys != key])
    return f"key {key} of sequence {b}"


# --- combination and output -------------------------------------------------------------------------------------------

def splits_of(count):
    """Splits of nearly equal size."""
    return lambda index: np.split(index, np.arange(-(-len(index) // count), len(index), -(-len(index) // count)))


@fault("merge by mean", "merge_by_mean", when=windowless)
def _(k, rng):
    k.splits, k.merge = splits_of(rng.choice([2, 3, 4])), "mean"


@fault("merge in base two", "merge_base", when=lambda s: windowless(s))
def _(k, rng):
    k.splits, k.merge = splits_of(rng.choice([2, 3, 4])), "base two"


@fault("empty split", "empty_split")
def _(k, rng):
    k.splits, k.empty_splits = splits_of(2), int(rng.integers(1, 4))


@fault("split boundary counted twice", "split_overlap", when=windowless)
def _(k, rng):
    size = 16
    k.visible, visible = (lambda b, i: np.concatenate([visible(b, i)[n:n + size + 1]
                                                       for n in range(0, len(visible(b, i)), size)])), k.visible


@fault("split boundary omitted", "split_gap", when=windowless)
def _(k, rng):
    size = 16
    k.visible, visible = (lambda b, i: np.concatenate(
        [visible(b, i)[n:n + (size - 1 if n + size < len(visible(b, i)) else size)]
         for n in range(0, len(visible(b, i)), size)])), k.visible


@fault("P not rescaled", "no_rescaling")
def _(k, rng):
    k.tile, k.rescale = int(rng.choice([8, 16])), False


@fault("not normalized", "not_normalized")
def _(k, rng):
    k.normalize = False


@fault("lse in base two", "lse_base")
def _(k, rng):
    k.lse_factor = 1 / np.log(2)


@fault("o as [heads, rows, dim]", "output_axes")
def _(k, rng):
    k.store = lambda o: o.transpose(1, 0, 2).reshape(o.shape)


@fault("o as [rows, dim, heads]", "output_axes")
def _(k, rng):
    k.store = lambda o: o.transpose(0, 2, 1).reshape(o.shape)


@fault("o as [batch, heads, queries, dim]", "output_axes",
       when=lambda s: prefill(s) and len(set(s.queries)) == 1)
def _(k, rng):
    batch, queries = len(k.shape.lengths), k.shape.queries[0]
    k.store = lambda o: o.reshape(batch, queries, *o.shape[1:]).transpose(0, 2, 1, 3).reshape(o.shape)
