"""The faults that diagnose_test.py injects, as changes of faulty_attention.Kernel.

A fault has the names of the hypotheses that describe it. More than one name: the faults give the same output on such a
batch, so no test on outputs can tell them apart. `apply` returns text that the stated cause must contain, or None.
"""
import numpy as np

from faulty_attention import Kernel, rounded, to_bits

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
    return shape.several_tables


def paged(shape):
    return shape.page > 1


def latent(shape):
    return shape.layout == "mla"


def two_sides(shape):
    """K and V are separate rows of one form."""
    return shape.layout not in ("mla", "vllm_legacy")


def groups(shape):
    return shape.query_heads > shape.kv_heads


def plain(shape):
    """Without features that a simplified combination leaves out."""
    return shape.left is None and not shape.sinks


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


@fault("scale and log2(e) missing", "scale_missing")
def _(k, rng):
    k.scale = np.log(2)
    return "log2(e)"


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
@fault("window at the start", "window_at_start", when=lambda s: s.left is not None)
def _(k, rng):
    correct = k.visible
    k.visible = lambda b, i: np.arange(len(correct(b, i)))


def tile_edges(k, change):
    """`change` gives the first and the last visible key of a tile from those of the mask."""
    correct = k.visible

    def visible(b, i):
        keys = correct(b, i)
        if not len(keys):
            return keys
        first, end = change(b, keys[0], keys[-1] + 1)
        return np.arange(first, max(keys[-1] + 1, min(end, k.shape.lengths[b])))
    k.visible = visible


@fault("tiles that the causal limit cuts not masked", "tile_edge_unmasked", "mask_missing", when=prefill)
def _(k, rng):
    tile_edges(k, lambda b, first, end: (first, -(-end // 16) * 16))


@fault("tiles that the window cuts not masked", "tile_edge_unmasked", "window_missing", when=lambda s: s.left is not None)
def _(k, rng):
    tile_edges(k, lambda b, first, end: (first // 16 * 16, end))


@fault("tiles that the last query row sees not masked", "tile_edge_unmasked", when=prefill)
def _(k, rng):
    tile_edges(k, lambda b, first, end: (first, k.shape.lengths[b] // 16 * 16))


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


def of_group(k, values):
    group = k.shape.query_heads // k.shape.kv_heads
    return values[np.arange(k.shape.query_heads) // group * group]


@fault("ALiBi slope of the group's first head", "alibi_of_kv_head", when=lambda s: s.alibi and groups(s))
def _(k, rng):
    k.slopes = of_group(k, k.slopes)


@fault("sink of the group's first head", "sink_of_kv_head", when=lambda s: s.sinks and groups(s))
def _(k, rng):
    k.sinks = of_group(k, k.sinks)


@fault("sink counted once per split", "sink_counted_often", when=lambda s: s.sinks)
def _(k, rng):
    k.sinks_joined = int(rng.choice([2, 3, 5, 8]))
    return f"{k.sinks_joined} times"


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


def past_end(k, until):
    """The last query of each sequence also sees keys past the end, which are zeros."""
    k.zeros = lambda b, i: max(0, until(k.shape.lengths[b]) - k.shape.lengths[b]) * \
        bool(len(k.visible(b, i)) and k.visible(b, i)[-1] == k.shape.lengths[b] - 1)


@fault("zeros to the end of the page not masked", "zeros_counted", when=paged)
def _(k, rng):
    past_end(k, lambda n: -(-n // k.page) * k.page)


@fault("zeros to the end of the tile not masked", "zeros_counted")
def _(k, rng):
    past_end(k, lambda n: -(-n // 64) * 64)


@fault("last page unmasked", "last_page_unmasked", when=paged)
def _(k, rng):
    until(k, lambda n: -(-n // k.page) * k.page)


@fault("last page omitted", "last_page_missing", when=lambda s: windowless(s) and paged(s))
def _(k, rng):
    until(k, lambda n: n // k.page * k.page)


@fault("last tile omitted", "last_tile_missing", "last_page_missing", when=windowless)
def _(k, rng):
    tile = rng.choice([16, 32, 64])
    until(k, lambda n: n // tile * tile)


@fault("last tile omitted, NaN without a tile", "last_tile_missing", "last_page_missing", when=windowless)
def _(k, rng):
    tile = rng.choice([16, 32, 64])
    until(k, lambda n: n // tile * tile)
    k.without_keys = np.nan


def full_tiles(shape):
    """Sizes of tiles with which a sequence ends with a full one."""
    return [tile for tile in (16, 32, 64) if ((shape.lengths > 0) & (shape.lengths % tile == 0)).any()]


@fault("last tile omitted, full or not", "last_tile_missing", "last_page_missing",
       when=lambda s: windowless(s) and full_tiles(s))
def _(k, rng):
    tile = rng.choice(full_tiles(k.shape))
    until(k, lambda n: max(0, -(-n // tile) - 1) * tile)
    k.without_keys = rng.choice([0, np.nan])
    return "full or not"


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


@fault("outputs of two heads exchanged", "rows_moved", when=lambda s: s.query_heads > 2)
def _(k, rng):
    order = np.arange(k.shape.query_heads)
    order[[0, 2]] = [2, 0]
    run = k.run
    k.run = lambda dtype: tuple(x[:, order] for x in run(dtype))
    return "head 0 that of head 2"


@fault("query head 0", "query_head_zero")
def _(k, rng):
    k.q = np.repeat(k.q[:, :1], k.shape.query_heads, axis=1)


@fault("q as [heads, rows, dim]", "query_axes")
def _(k, rng):
    rows, count, dims = k.q.shape
    k.q = k.q.reshape(count, rows, dims).transpose(1, 0, 2)


# --- the cache --------------------------------------------------------------------------------------------------------

@fault("V behind the rope part", "v_behind_rope", when=latent)
def _(k, rng):
    k.v.offset += k.shape.dim - k.shape.value_dim


@fault("rope part left out", "rope_part_missing", when=latent)
def _(k, rng):
    k.used = k.shape.value_dim


@fault("rope part first in K", "rope_part_first", when=latent)
def _(k, rng):
    k.key_order = lambda x: np.roll(x, k.shape.dim - k.shape.value_dim, axis=-1)


@fault("K and V exchanged", "k_and_v_exchanged", when=two_sides)
def _(k, rng):
    for name in ("memory", "offset"):
        a, b = getattr(k.k, name), getattr(k.v, name)
        setattr(k.k, name, b), setattr(k.v, name, a)


@fault("V read from K", "v_is_k", when=two_sides)
def _(k, rng):
    k.v = k.k


def in_larger_memory(side, rng):
    """The memory behind the cache holds values of another tensor: a kernel may read them."""
    side.memory = np.concatenate([side.memory, to_bits(side.dtype, rng.standard_normal(2 * side.block_stride))])


@fault("V read from the next block's K", "v_offset", when=two_sides)
def _(k, rng):
    k.v.memory, k.v.offset = k.k.memory, k.k.offset + k.k.block_stride
    in_larger_memory(k.v, rng)
    return "K of the next block"


@fault("V read from the next block's K, with its scales", "v_offset", when=lambda s: two_sides(s) and s.scales)
def _(k, rng):
    scales = k.k.scales, k.k.scale_offset
    k.v.memory, k.v.offset = k.k.memory, k.k.offset + k.k.block_stride
    k.v.scales, k.v.scale_offset = scales
    in_larger_memory(k.v, rng)
    return "the scales of K"


@fault("K/V stride without the layers", "v_offset", when=lambda s: s.layout == "max" and s.layers > 1)
def _(k, rng):
    k.v.offset = k.k.offset + k.k.layer_stride
    return f"{k.k.layer_stride} elements after K instead of {k.shape.layers * k.k.layer_stride}"


@fault("strides of blocks and K/V exchanged", "strides_exchanged", when=lambda s: s.layout in ("flashinfer", "max"))
def _(k, rng):
    block, side = k.k.block_stride, k.v.offset - k.k.offset
    for rows in (k.k, k.v):
        rows.block_stride = side
    k.v.offset = k.k.offset + block
    in_larger_memory(k.k, rng), in_larger_memory(k.v, rng)
    return "block axis and of the K/V axis"


def strided(shape):
    """K and V have strides of blocks, slots and heads."""
    return shape.layout != "vllm_legacy"


@fault("strides of blocks and slots exchanged", "strides_exchanged", when=lambda s: strided(s) and paged(s))
def _(k, rng):
    for side in (k.k, k.v):
        side.block_stride, side.token_stride = side.token_stride, side.block_stride
    return "block axis and of the slot axis of the cache"


@fault("strides of slots and heads exchanged", "strides_exchanged",
       when=lambda s: strided(s) and paged(s) and several_heads(s) and s.kv_heads != s.page)
def _(k, rng):
    for side in (k.k, k.v):
        side.token_stride, side.head_stride = side.head_stride, side.token_stride
    return "slot axis and of the head axis of the cache"


@fault("strides of V's slots and heads exchanged", "strides_exchanged",
       when=lambda s: two_sides(s) and paged(s) and several_heads(s) and s.kv_heads != s.page)
def _(k, rng):
    k.v.token_stride, k.v.head_stride = k.v.head_stride, k.v.token_stride
    return "slot axis and of the head axis of V"


def exchange_axes(k, sides):
    s = k.shape
    for side in sides:
        if s.layout == "hnd":
            side.token_stride, side.head_stride = s.kv_heads * s.dim, s.dim
        else:
            side.token_stride, side.head_stride = s.dim, s.page * s.dim


@fault("NHD as HND", "head_and_slot_axes", when=lambda s: several_heads(s) and paged(s) and two_sides(s))
def _(k, rng):
    exchange_axes(k, [k.k, k.v])
    return "the cache"


@fault("K as HND", "head_and_slot_axes", when=lambda s: several_heads(s) and paged(s) and two_sides(s))
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


@fault("the cache as [2, blocks, ...]", "kv_axis", when=lambda s: s.layout == "flashinfer")
def _(k, rng):
    k.v.offset = k.v.memory.size // 2
    k.k.block_stride = k.v.block_stride = k.k.block_stride // 2
    return "[2, blocks, ...] instead of [blocks, 2, ...]"


@fault("layer 0", "layer", when=lambda s: s.layers > 1)
def _(k, rng):
    k.k, k.v = k.k.in_layer(0), k.v.in_layer(0)
    return "layer 0 is read instead of layer 1"


@fault("page size 32", "page_size", when=lambda s: s.page != 32 and s.layout != "vllm_legacy")
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


@fault("fp8 read as fnuz", "fp8_fnuz", when=lambda s: s.cache in ("e4m3", "e5m2"))
def _(k, rng):
    format_as(k, k.shape.cache + "fnuz")


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


@fault("V with the scales of K", "v_scales_of_k", when=lambda s: s.scales)
def _(k, rng):
    k.v.scales, k.v.scale_offset = k.k.scales, k.k.scale_offset


@fault("K with the scales of V", "k_scales_of_v", when=lambda s: s.scales)
def _(k, rng):
    k.k.scales, k.k.scale_offset = k.v.scales, k.v.scale_offset


@fault("scale of a vector's first element", "scale_granularity", when=lambda s: s.scales == "group" and s.group % 8 != 0)
def _(k, rng):
    k.k.vector = k.v.vector = 8
    return "8 elements"


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


def several_pages(shape):
    return paged(shape) and shape.lengths.max() > shape.page


def seen_page(k, rng):
    """A sequence and one of its pages of which its last query sees two keys or more."""
    seen = [np.unique(seen_keys(k, b) // k.shape.page, return_counts=True) for b in range(len(k.shape.lengths))]
    b = rng.choice([b for b, (pages, keys) in enumerate(seen) if (keys > 1).any()])
    pages, keys = seen[b]
    return b, rng.choice(pages[keys > 1])


def page_from(k, sequence, page, block):
    entry = k.entry
    k.entry = lambda b, pages: np.where((b == sequence) & (pages == page), block, entry(b, pages))


@fault("page from another block", "page_from_other_block", when=paged, local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    right = k.entry(b, page)
    block = rng.choice(np.setdiff1d(np.arange(k.inputs.blocks), [right]))
    page_from(k, b, page, block)
    return f"page {page} of sequence {b} was read from block {block}, not {right}"


@fault("stale page of another sequence", "page_from_other_block", when=paged, local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    other = rng.choice([n for n, length in enumerate(k.shape.lengths) if n != b and length > 0])
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


@fault("V of a page read from K", "page_v_is_k", when=lambda s: paged(s) and two_sides(s), local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    page_of(k, b, page, {k.v: k.k})
    return f"page {page} of sequence {b}"


@fault("two pages exchanged", "pages_exchanged", when=several_pages, local=True)
def _(k, rng):
    seen = [np.unique(seen_keys(k, b) // k.shape.page) for b in range(len(k.shape.lengths))]
    b = rng.choice([b for b, pages in enumerate(seen) if len(pages) > 1])
    pages = seen[b]
    page, other = rng.choice(pages[:-1]), pages[-1]
    first, second = k.entry(b, page), k.entry(b, other)
    page_from(k, b, page, second)
    page_from(k, b, other, first)
    return f"pages {page} and {other} of sequence {b}"


def change_keys(k, sequence, change):
    visible = k.visible
    k.visible = lambda b, i: change(visible(b, i)) if b == sequence else visible(b, i)


@fault("page omitted", "page_missing", when=paged, local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    change_keys(k, b, lambda keys: keys[keys // k.page != page])
    return f"page {page} of sequence {b}"


@fault("page counted twice", "page_twice", when=paged, local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    change_keys(k, b, lambda keys: np.concatenate([keys, keys[keys // k.page == page]]))
    return f"page {page} of sequence {b}"


@fault("page of zeros", "page_of_zeros", when=paged, local=True)
def _(k, rng):
    b, page = seen_page(k, rng)
    fetch = k.fetch
    k.fetch = lambda side, s, keys, heads: np.where(((s == b) & (keys // k.page == page))[:, None, None], 0,
                                                    fetch(side, s, keys, heads))
    return f"page {page} of sequence {b}"


@fault("key omitted", "key_missing", when=paged, local=True)
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


# With scores as large as those of "sharp", a score of 0 has no weight.
@fault("last page of zeros", "last_page_of_zeros", when=lambda s: paged(s) and s.scale <= 1)
@fault("last page of zeros", "last_page_of_zeros", "last_page_missing", when=lambda s: paged(s) and s.scale > 1)
def _(k, rng):
    fetch = k.fetch
    first = k.shape.lengths // k.shape.page * k.shape.page
    k.fetch = lambda side, b, keys, heads: np.where((keys >= first[b])[:, None, None], 0, fetch(side, b, keys, heads))


@fault("splits count alike, also in lse", "merge_by_mean", when=plain)
def _(k, rng):
    k.splits, k.merge = splits_of(rng.choice([2, 3, 4])), "count"


@fault("largest lse of the splits added twice", "lse_maximum_twice", when=plain)
def _(k, rng):
    count = rng.choice([2, 3, 4])
    k.splits = splits_of(count)
    split, seen = k.split, []

    def watched(score, *rest):
        done = split(score, *rest)
        seen.append(done[1])
        return done
    k.split, row = watched, k.row

    def twice(*where):
        seen.clear()
        o, lse = row(*where)
        return o, lse + np.max(seen, axis=0)
    k.row = twice


@fault("warps without a common maximum", "maximum_not_shared", when=plain)
def _(k, rng):
    run, parts = int(rng.choice([16, 32])), 2
    k.splits = lambda index: [index[index // run % parts == n] for n in range(parts)]

    def unnormalized(score, v, first, dtype, real):
        top = score.max(1)
        p = np.exp(score - top[:, None])
        return (p[:, None] @ v)[:, 0], top, p.sum(1)
    k.split = unnormalized
    k.merged = lambda done: (sum(o for o, _, _ in done) / sum(t for _, _, t in done)[:, None],
                             done[0][1] + np.log(sum(t for _, _, t in done)))


@fault("exponential without the maximum", "maximum_missing", when=lambda s: s.scale > 1)
def _(k, rng):
    k.subtract_maximum = False


@fault("merge by mean", "merge_by_mean", when=windowless)
def _(k, rng):
    k.splits, k.merge = splits_of(rng.choice([2, 3, 4])), "mean"


@fault("merge in base two", "merge_base", when=lambda s: windowless(s))
def _(k, rng):
    k.splits, k.merge = splits_of(rng.choice([2, 3, 4])), "base two"


# An empty split is a key of zeros.
@fault("empty split", "empty_split", "zeros_counted")
def _(k, rng):
    k.splits, k.empty_splits = splits_of(2), int(rng.integers(1, 4))


def in_pieces(k, size, piece):
    """The keys of each run of `size` keys: piece(keys, first, end)."""
    visible = k.visible

    def pieces(b, i):
        keys = visible(b, i)
        return np.concatenate([keys[:0]] + [piece(keys, n, n + size) for n in range(0, len(keys), size)])
    k.visible = pieces


@fault("split boundary counted twice", "split_overlap", when=windowless)
def _(k, rng):
    in_pieces(k, 16, lambda keys, first, end: keys[first:end + 1])


@fault("split boundary omitted", "split_gap", "page_slots_missing", "tile_keys_missing", when=windowless)
def _(k, rng):
    in_pieces(k, 16, lambda keys, first, end: keys[first:end - 1 if end < len(keys) else end])


@fault("P not rescaled", "no_rescaling")
def _(k, rng):
    k.tile, k.rescale_sum, k.rescale_output = int(rng.choice([8, 16])), False, False


def turns(k, rng):
    """Keys of warps that take turns over tiles of 8 or 16 keys."""
    k.tile, warps = int(rng.choice([8, 16])), int(rng.choice([1, 2, 4]))
    if warps > 1:
        k.splits = lambda index: [index[index // k.tile % warps == n] for n in range(warps)]


@fault("output not rescaled", "output_not_rescaled", when=plain)
def _(k, rng):
    turns(k, rng)
    k.rescale_output = False


@fault("sum not rescaled", "sum_not_rescaled", when=plain)
def _(k, rng):
    turns(k, rng)
    k.rescale_sum = False


@fault("not normalized", "not_normalized")
def _(k, rng):
    k.normalize = False


@fault("lse in base two", "lse_base")
def _(k, rng):
    k.lse_factor = 1 / np.log(2)


@fault("lse times ln(2)", "lse_base")
def _(k, rng):
    k.lse_factor = np.log(2)


@fault("lse with log2 of the sum", "lse_mixed_bases")
def _(k, rng):
    k.lse_of = lambda top, total: top + np.log2(total)
    return "maximum + log2(sum) instead of maximum + log(sum)"


@fault("lse with the maximum in base two", "lse_mixed_bases")
def _(k, rng):
    k.lse_of = lambda top, total: top / np.log(2) + np.log(total)
    return "maximum * log2(e) + log(sum) instead of"


@fault("lse with log2 of a sum without the sink's maximum", "lse_mixed_bases", when=lambda s: s.sinks)
def _(k, rng):
    split = k.split

    def of_scores(score, *rest):
        o, lse = split(score, *rest)
        top = score.max(1)
        return o, top + np.log2(np.exp(lse - top))
    k.split = of_scores
    return "maximum + log2(sum) instead of maximum + log(sum)"


@fault("lse with log2 in the merge", "lse_mixed_bases", when=plain)
def _(k, rng):
    k.splits, k.merged_lse_of = splits_of(rng.choice([2, 3, 4])), lambda top, total: top + np.log2(total)
    return "largest lse of the splits + log2"


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


@fault("lse as [heads, rows]", "lse_axes")
def _(k, rng):
    k.store_lse = lambda lse: lse.T.reshape(lse.shape)


@fault("lse as [batch, heads, queries]", "lse_axes", when=lambda s: prefill(s) and len(set(s.queries)) == 1)
def _(k, rng):
    batch, queries = len(k.shape.lengths), k.shape.queries[0]
    k.store_lse = lambda lse: lse.reshape(batch, queries, -1).transpose(0, 2, 1).reshape(lse.shape)


# --- loops ------------------------------------------------------------------------------------------------------------

def only(k, kept):
    """Every sequence loses the keys for which `kept(keys, length)` is false."""
    correct = k.visible

    def visible(b, i):
        keys = correct(b, i)
        return keys[kept(keys, k.shape.lengths[b])]
    k.visible = visible


def shorter(shape, rng, sizes):
    """One of the sizes of which the longest sequence has more than one."""
    return rng.choice([size for size in sizes if size < shape.lengths.max()])


@fault("loop over keys starts late", "first_keys_missing", when=lambda s: windowless(s) and s.page not in (2, 4, 8))
def _(k, rng):
    first = rng.choice([2, 4, 8])
    only(k, lambda keys, n: keys >= first)
    return f"first {first} keys"


@fault("loop over keys with step 2", "keys_skipped")
def _(k, rng):
    odd = rng.choice([0, 1])
    only(k, lambda keys, n: keys % 2 != odd)
    return f"from key {odd} on"


def several_pages(shape):
    return paged(shape) and windowless(shape) and shape.page < shape.lengths.max()


@fault("loop over slots starts late", "page_slots_missing", when=several_pages)
def _(k, rng):
    only(k, lambda keys, n: keys % k.page != 0)
    return "first key of each page"


@fault("loop over slots ends early", "page_slots_missing", when=several_pages)
def _(k, rng):
    only(k, lambda keys, n: (keys % k.page != k.page - 1) & (keys != n - 1))
    return "full or not"


@fault("loop over slots without the last", "page_slots_missing", "split_gap", when=several_pages)
def _(k, rng):
    only(k, lambda keys, n: keys % k.page != k.page - 1)
    return "last key of each full page"


@fault("half of each page", "page_slots_missing", when=several_pages)
def _(k, rng):
    low = rng.choice([0, 1])
    only(k, lambda keys, n: keys % k.page // (k.page // 2) == low)
    return f"the {('last', 'first')[low]} {k.page // 2} keys of each page"


@fault("loop over a tile starts late", "tile_keys_missing", "page_slots_missing", when=windowless)
def _(k, rng):
    tile = shorter(k.shape, rng, [8, 16, 32])
    only(k, lambda keys, n: keys % tile != 0)


@fault("loop over a tile without the last", "tile_keys_missing", "page_slots_missing", "split_gap", when=windowless)
def _(k, rng):
    tile = shorter(k.shape, rng, [8, 16, 32])
    only(k, lambda keys, n: keys % tile != tile - 1)


@fault("half of each tile", "tile_keys_missing", "page_slots_missing", when=windowless)
def _(k, rng):
    tile, low = shorter(k.shape, rng, [8, 16, 32]), rng.choice([0, 1])
    only(k, lambda keys, n: keys % tile // (tile // 2) == low)


def in_two_sequences(shape):
    """Keys that the last queries of two sequences or more see."""
    return windowless(shape) and (shape.lengths > 3).sum() > 1


@fault("a key of every sequence omitted", "key_missing", when=lambda s: in_two_sequences(s) and paged(s))
def _(k, rng):
    key = rng.integers(0, min(12, np.sort(k.shape.lengths)[-2] - 1))
    only(k, lambda keys, n: keys != key)
    return f"key {key} of every sequence"


@fault("a page of every sequence counted twice", "page_twice",
       when=lambda s: in_two_sequences(s) and paged(s) and (s.lengths > s.page + 2).sum() > 1)
def _(k, rng):
    page = rng.choice([0, 1])
    correct = k.visible
    k.visible = lambda b, i: np.concatenate([correct(b, i), correct(b, i)[correct(b, i) // k.page == page]])
    return f"page {page} of every sequence"


# --- staging: warps, splits, shared memory and registers --------------------------------------------------------------

# Pages and tiles start at the first key that a query sees.
def whole(shape):
    return windowless(shape) and shape.lengths.max() > 30


@fault("part of a warp lost", "warp_missing", "page_slots_missing", "tile_keys_missing", when=whole)
def _(k, rng):
    warps, chunk = rng.choice([4, 8]), rng.choice([1, 4])
    warp = rng.integers(warps)
    only(k, lambda keys, n: keys // chunk % warps != warp)


@fault("every third key left out", "warp_missing", when=whole)
def _(k, rng):
    only(k, lambda keys, n: keys % 3 != 1)


@fault("part of warp 0 alone", "one_warp_used", when=whole)
def _(k, rng):
    warps, chunk = rng.choice([4, 8]), rng.choice([1, 4])
    only(k, lambda keys, n: keys // chunk % warps == 0)


@fault("a limit of the keys", "length_limited", "one_split_used", "last_tile_missing", "last_page_missing", when=whole)
def _(k, rng):
    count = shorter(k.shape, rng, [16, 32])
    only(k, lambda keys, n: keys < count)


def split_of(k, keep):
    """Only keys of splits for which `keep(split, splits)` holds, of several splits of nearly equal size."""
    splits, correct = 3, k.visible

    def visible(b, i):
        keys = correct(b, i)
        step = -(-len(keys) // splits)
        return keys[keep(np.arange(len(keys)) // step)] if len(keys) > step else keys
    k.visible = visible


@fault("a split lost", "split_missing", "page_missing", "last_page_missing", "last_tile_missing", when=whole)
def _(k, rng):
    lost = rng.integers(2)
    split_of(k, lambda number: number != lost)


@fault("the first split alone", "one_split_used", "split_missing", "length_limited", when=whole)
def _(k, rng):
    split_of(k, lambda number: number == 0)


def swizzled(k, span):
    """Rows [key, head, element] as a reader without the XOR finds what TMA wrote with it, at addresses of bytes."""
    size = {"f32": 4, "bf16": 2, "f16": 2}.get(k.inputs.cache, 1)
    bits = {128: 7, 64: 3, 32: 1}[span]

    def rows(x):
        moved, per_row = np.empty_like(x), span // size
        for box in range(0, x.shape[-1], per_row):
            part = x[..., box:box + per_row]
            for row in range(len(x)):
                address = row * span + np.arange(per_row) * size
                written = address ^ (address >> 7 & bits) << 4
                moved[row, :, box:box + per_row] = part[row][:, (written - row * span) // size]
        return moved
    return rows


def rows_of(span):
    sizes = {"f32": 4, "bf16": 2, "f16": 2, "e4m3": 1, "e5m2": 1}
    return lambda s: whole(s) and two_sides(s) and s.scales != "group" and s.dim * sizes.get(s.cache, 2) % span == 0


@fault("K without its 64-byte swizzle", "swizzle", when=rows_of(64))
def _(k, rng):
    k.key_order = swizzled(k, 64)
    return "of K are"


@fault("V without its 32-byte swizzle", "swizzle", when=rows_of(32))
def _(k, rng):
    k.value_order = swizzled(k, 32)
    return "of V are"


@fault("K and V without their 32-byte swizzle", "swizzle", when=rows_of(32))
def _(k, rng):
    k.key_order = k.value_order = swizzled(k, 32)
    return "of K and V are"


@fault("rows of V exchanged in pairs", "tile_rows", when=lambda s: whole(s) and decode(s) and two_sides(s))
def _(k, rng):
    bit = rng.choice([1, 2, 4])

    def rows(x):
        padded = np.concatenate([x, np.zeros((8, *x.shape[1:]), x.dtype)])
        return padded[np.arange(len(x)) ^ bit]
    k.value_order = rows
    return f"row t ^ {bit} of V"


def tiles_of_pages(shape):
    """Sizes of tiles of several pages, which the longest sequence exceeds."""
    return [tile for tile in (16, 32, 64, 128)
            if shape.page < tile < shape.lengths.max() and tile % shape.page == 0]


def in_tiles(shape):
    return whole(shape) and shape.several_tables and bool(tiles_of_pages(shape))


@fault("pages of a tile from one block", "tile_pages", when=in_tiles)
def _(k, rng):
    pages, entry = rng.choice(tiles_of_pages(k.shape)) // k.page, k.entry
    k.entry = lambda b, page: entry(b, page // pages * pages)
    return "first page"


@fault("pages of a tile as consecutive blocks", "tile_pages", "pages_contiguous", when=in_tiles)
def _(k, rng):
    pages, entry = rng.choice(tiles_of_pages(k.shape)) // k.page, k.entry
    k.entry = lambda b, page: entry(b, page // pages * pages) + page % pages


@fault("one page of a tile copied", "tile_pages", when=lambda s: in_tiles(s) and two_sides(s))
def _(k, rng):
    tile = rng.choice(tiles_of_pages(k.shape))
    k.key_order = k.value_order = lambda x: x * (np.arange(len(x)) % tile < k.page)[:, None, None].astype(x.dtype)
    return "zeros"


@fault("half of the elements of a score", "elements_left_out", when=lambda s: not latent(s))
def _(k, rng):
    k.used = k.shape.dim // 2
    return f"first {k.used} of"


@fault("elements of o not stored", "elements_not_stored")
def _(k, rng):
    def store(o):
        o = o.copy()
        o[..., -8:] = 0
        return o
    k.store = store


@fault("elements of o in another order", "elements_moved", "v_dims_order")
def _(k, rng):
    order = rng.permutation(k.shape.value_dim)
    k.store = lambda o: o[..., order]


@fault("elements of V in a random order", "elements_moved")
def _(k, rng):
    order = rng.permutation(k.shape.value_dim)
    k.value_order = lambda x: x[..., order]


# --- splits of whole pages, merged correctly --------------------------------------------------------------------------

def cut_pages(shape):
    """Several splits, of which one has several pages of whole tiles."""
    return plain(shape) and shape.page % 8 == 0 and shape.lengths.max() > 3 * shape.page


def splits_of_pages(k, rng):
    """Cuts the keys into 2 to 4 splits of equally many pages, which have tiles of 8 keys or of a page."""
    page, count = k.shape.page, int(rng.choice([2, 3, 4]))

    def pieces(index):
        size = -(-(-(-len(index) // page)) // count) * page
        return np.split(index, np.arange(size, len(index), size))
    k.splits, k.tile = pieces, int(rng.choice([8, page]))
    return "in each of "


@fault("P not rescaled in splits", "no_rescaling", when=cut_pages)
def _(k, rng):
    k.rescale_sum = k.rescale_output = False
    return splits_of_pages(k, rng)


@fault("output not rescaled in splits", "output_not_rescaled", when=cut_pages)
def _(k, rng):
    k.rescale_output = False
    return splits_of_pages(k, rng)


@fault("sum not rescaled in splits", "sum_not_rescaled", when=cut_pages)
def _(k, rng):
    k.rescale_sum = False
    return splits_of_pages(k, rng)


# The pages that are left over may also be the last one of each sequence, or the last split of another size.
@fault("pages of a split rounded down", "split_rounded_down", "split_missing", "last_page_missing", "page_missing",
       when=cut_pages)
def _(k, rng):
    page, count = k.shape.page, int(rng.choice([2, 3, 4]))
    only(k, lambda keys, n: keys < max(1, -(-n // page) // count) * count * page)


def page_of_split(keys, n, page, count):
    """The split and the page in it of each key, and the pages of a split."""
    size = -(-(-(-n // page)) // count)
    return keys // page // size, keys // page % size, size


def keep_pages_of_splits(k, rng, kept):
    """Leaves the keys whose page kept(split, page in it, pages of a split, splits) keeps."""
    page, count = k.shape.page, int(rng.choice([2, 3, 4]))
    only(k, lambda keys, n: kept(*page_of_split(keys, n, page, count), count))


@fault("splits end a page early", "split_gap", "page_missing", "split_missing", "tile_keys_missing", "warp_missing",
       when=cut_pages)
def _(k, rng):
    keep_pages_of_splits(k, rng, lambda split, page, size, count: (split == count - 1) | (page < size - 1))


@fault("splits begin a page late", "split_gap", "page_missing", "split_missing", "one_split_used", "warp_missing",
       when=cut_pages)
def _(k, rng):
    keep_pages_of_splits(k, rng, lambda split, page, size, count: (split == 0) | (page > 0))


@fault("splits begin a page early", "split_overlap", "page_twice", when=cut_pages)
def _(k, rng):
    page, count, visible = k.shape.page, int(rng.choice([2, 3, 4])), k.visible

    def twice(b, i):
        keys = visible(b, i)
        split, own, size = page_of_split(keys, len(keys), page, count)
        return np.concatenate([keys, keys[(split < count - 1) & (own == size - 1)]])
    k.visible = twice


@fault("the prefetch loads the page again", "tile_rows", "table_column", "page_from_other_block",
       when=lambda s: cut_pages(s) and s.page <= 128)
def _(k, rng):
    page, count, place = k.shape.page, int(rng.choice([1, 2, 3])), k.place

    def again(sequence, keys):
        _, own, _ = page_of_split(keys, k.shape.lengths[sequence], page, count)
        return place(sequence, keys - np.where(own > 0, page, 0))
    k.place = again


# --- the last page ----------------------------------------------------------------------------------------------------

def full_and_partial(shape):
    """Some sequences end with a full page, others do not."""
    return windowless(shape) and shape.page > 1 and 0 < np.count_nonzero(shape.lengths % shape.page == 0) < len(shape.lengths)


@fault("one key too few in a partly filled last page", "last_token_missing", "key_missing", when=full_and_partial)
def _(k, rng):
    page = k.shape.page
    only(k, lambda keys, n: keys < n - (n % page != 0))


@fault("no key in a full last page", "last_page_missing", when=full_and_partial)
def _(k, rng):
    page = k.shape.page
    only(k, lambda keys, n: keys < n - (n % page == 0) * page)


# --- lanes ------------------------------------------------------------------------------------------------------------

# Element e of a head belongs to lane e % 32. Of the first half of a head, elements_left_out.
@fault("a shuffle of the score is missing", "score_half_added", when=lambda s: s.layout != "mla")
def _(k, rng):
    run = int(rng.choice([r for r in (1, 2, 4, 8, 16) if 4 * r <= k.shape.dim]))
    k.key_order = lambda x: x * (np.arange(x.shape[-1]) // run % 2 == 0)
    return f"e / {run} % 2"


def by_halves(k, run):
    """The results of the kernel's row with the scores of each half of the lanes."""
    row = k.row

    def rows(*where):
        for half in (0, 1):
            k.key_order = lambda x, half=half: x * (np.arange(x.shape[-1]) // run % 2 == half)
            yield row(*where)
    return rows, np.arange(k.shape.value_dim) // run % 2 == 0


@fault("a shuffle of the score is missing, each lane has its sum", "score_half_added", when=lambda s: s.layout != "mla")
def _(k, rng):
    run = int(rng.choice([1, 2, 4, 8, 16]))
    rows, is_first = by_halves(k, run)

    def own(*where):
        (first, lse), (second, _) = rows(*where)
        return np.where(is_first, first, second), lse
    k.row = own
    return f"d / {run} % 2"


@fault("a shuffle of the score is missing in splits", "score_half_added", when=cut_pages)
def _(k, rng):
    run, states = int(rng.choice([1, 2, 4, 8, 16])), []
    splits_of_pages(k, rng)
    k.tile = None
    k.lse_of = lambda top, total: states.append((top, total)) or top
    k.merged = lambda done: [(o * total[:, None], top, total) for (o, _), (top, total) in zip(done, states)]
    rows, is_first = by_halves(k, run)

    def merged(*where):  # with the maximum and the sum of lane 0
        outputs = []
        for parts in rows(*where):
            outputs.append([o for o, _, _ in parts])
            stored = stored if len(outputs) > 1 else [state for _, *state in parts]
            states.clear()
        top = np.max([m for m, _ in stored], axis=0)
        weights = [np.exp(m - top) for m, _ in stored]
        total = sum(w * l for w, (_, l) in zip(weights, stored))
        first, second = (sum(w[:, None] * o for w, o in zip(weights, of)) / total[:, None] for of in outputs)
        return np.where(is_first, first, second), top + np.log(total)
    k.row = merged
    return f"d / {run} % 2"


# --- faults that no hypothesis describes ------------------------------------------------------------------------------

UNKNOWN = []


def unknown(name, *like, when=lambda shape: True):
    """`like`: hypotheses that give the same output where the fault is at its largest."""
    def keep(apply):
        UNKNOWN.append(Fault(name, like, apply, when, False))
        return apply
    return keep


def stored(k, change):
    def store(o):
        o = o.copy()
        change(o)
        return o
    k.store = store


@unknown("noise in one row")
def _(k, rng):
    def change(o):
        row = o.reshape(-1, o.shape[-1])[rng.integers(o.shape[0] * o.shape[1])]
        row += rng.standard_normal(row.shape).astype(row.dtype)
    stored(k, change)


@unknown("a few elements negated")
def _(k, rng):
    def change(o):
        flat = o.reshape(-1)
        at = rng.choice(np.flatnonzero(flat), 3)
        flat[at] = -flat[at]
    stored(k, change)


@unknown("one element NaN")
def _(k, rng):
    stored(k, lambda o: o.reshape(-1).__setitem__(rng.integers(o.size), np.nan))


@unknown("another factor for each head")
def _(k, rng):
    factors = rng.uniform(0.7, 1.4, k.shape.query_heads)
    stored(k, lambda o: o.__imul__(factors[:, None].astype(o.dtype)))


@unknown("another scale for each head")
def _(k, rng):
    k.q = k.q * rng.uniform(0.7, 1.4, (k.shape.query_heads, 1))


@unknown("q rounded to e4m3")
def _(k, rng):
    k.q = rounded("e4m3", k.q)


@unknown("K rounded to e4m3 once more")
def _(k, rng):
    k.key_order = lambda x: rounded("e4m3", x * 0.7) / 0.7


@unknown("elements of K in a random order")
def _(k, rng):
    order = rng.permutation(k.shape.dim)
    k.key_order = lambda x: x[..., order]


@unknown("scores that depend on the key's position")
def _(k, rng):
    k.key_order = lambda x: x * (1 + 0.3 * np.sin(np.arange(len(x))))[:, None, None]


@unknown("every fifth key left out")
def _(k, rng):
    visible = k.visible
    k.visible = lambda b, i: visible(b, i)[np.arange(len(visible(b, i))) % 5 != 1]


@unknown("half of a page stale", when=lambda s: s.page > 1)
def _(k, rng):
    b, page = seen_page(k, rng)
    place, block = k.place, rng.integers(k.inputs.blocks)

    def half(sequence, keys):
        blocks, slots = place(sequence, keys)
        wrong = (sequence == b) & (keys // k.page == page) & (slots % 2 == 0)
        return np.where(wrong, block, blocks), slots
    k.place = half


# A key whose score falls far below the others has lost its weight: it is left out.
@unknown("K of one key wrong", "key_missing")
def _(k, rng):
    at = rng.integers(8)
    wrong = rng.standard_normal(k.shape.dim) * 2

    def change(x):
        x = x.copy()
        x[at % len(x)] = wrong
        return x
    k.key_order = change


@unknown("window two keys longer", when=lambda s: s.left is not None)
def _(k, rng):
    k.left += 2


@unknown("another soft cap", when=lambda s: s.cap)
def _(k, rng):
    k.cap *= 1.3


@unknown("ALiBi slopes doubled", when=lambda s: s.alibi)
def _(k, rng):
    k.slopes = 2 * k.slopes


@unknown("sinks doubled", when=lambda s: s.sinks)
def _(k, rng):
    k.sinks = 2 * k.sinks
