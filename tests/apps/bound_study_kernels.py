"""Data and simulated kernels of bound_study_test.py, in NumPy. Shares no code with kvscope.

A kernel is simulated as GPUs compute it: float32 arithmetic in a stated order, P rounded to a stated type, the row sum
made of rounded or unrounded P, partial results of splits in a stated type, and the output rounded once.
"""
import dataclasses

import numpy as np

F32 = np.float32
PAGE = 16


# --- number formats ---------------------------------------------------------------------------------------------------

def to_bf16(x):
    """float32 values rounded to bf16, nearest even."""
    bits = np.ascontiguousarray(x, F32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(F32)


def to_e4m3(x):
    mantissa, exponent = np.frexp(np.abs(x).astype(np.float64))
    step = np.ldexp(1.0, np.maximum(exponent - 1, -6) - 3)
    return (np.sign(x) * np.minimum(np.rint(np.abs(x) / step) * step, 448.0)).astype(F32)


def rounded(x, kind):
    if kind == "bf16":
        return to_bf16(x)
    if kind == "f16":
        return np.asarray(x, F32).astype(np.float16).astype(F32)
    if kind == "e4m3":
        return to_e4m3(x)
    return np.asarray(x, F32)


# --- data -------------------------------------------------------------------------------------------------------------

TUNED_KINDS = ("normal", "biased", "peaky", "flat")
# Distributions that the constants of the bound were not chosen on.
OTHER_KINDS = ("trend", "outlier_channels", "low_rank", "first_key", "equal_keys", "lattice", "heavy_tails", "constant_v",
               "two_clusters", "sorted", "alternating")
# Distributions and shapes that were first run after the bound was finished.
LATER_KINDS = ("strong_sink", "cauchy", "subnormal", "one_hot", "same_key", "signs", "common_offset", "half_zero",
               "repeated_pages", "recency", "large_values", "mixed_scales", "near_ties", "ramp_scores", "rare_spikes")
# Distributions for which truncating sums lose most: all values positive, with weights that are even, that rise, or half
# of which the last keys have, so that sums from the last key on are large early.
TRUNCATION_KINDS = ("far_from_zero", "rising_positive", "heavy_end")
ALL_KINDS = TUNED_KINDS + OTHER_KINDS + LATER_KINDS + TRUNCATION_KINDS
# Query heads, KV heads, head size of K and of V.
SHAPES = ((8, 2, 64, 64), (8, 2, 128, 128), (8, 2, 32, 32))
LATER_SHAPES = ((4, 4, 80, 80), (16, 2, 96, 96), (8, 1, 64, 64), (8, 1, 192, 192), (2, 2, 256, 256), (4, 1, 576, 576),
                (1, 1, 128, 128), (12, 3, 64, 64))
# Of sequences from 4,096 and from 16,384 keys on: the time of a comparison grows with the square of the query heads.
LONG_SHAPES = ((4, 2, 64, 64), (2, 1, 128, 128), (4, 1, 32, 32), (2, 2, 96, 96))
LONGEST_SHAPES = ((2, 1, 64, 64), (2, 2, 32, 32), (1, 1, 128, 128))


@dataclasses.dataclass
class Data:
    kind: str
    stored: str            # type of q, k and v
    q: np.ndarray          # [heads, dim] float32
    k: np.ndarray          # [keys, kv_heads, dim]
    v: np.ndarray          # [keys, kv_heads, dim]
    scores: dict = dataclasses.field(default_factory=dict)  # of correct kernels: scores_of()

    @property
    def keys(self):
        return self.k.shape[0]

    @property
    def shape(self):
        return self.q.shape[0], self.k.shape[1], self.q.shape[1], self.v.shape[2]

    @property
    def scale(self):
        return 1 / np.sqrt(self.q.shape[1])


def make_data(kind, keys, stored, seed, shape=SHAPES[0]):
    heads, kv_heads, dim, value_dim = shape
    rng = np.random.default_rng([seed, keys, sum(map(ord, kind))])
    q = rng.standard_normal((heads, dim))
    k = rng.standard_normal((keys, kv_heads, dim))
    v = rng.standard_normal((keys, kv_heads, value_dim))
    if kind == "biased":
        v = 1 + 0.3 * v
    elif kind == "peaky":
        q *= 4
    elif kind == "flat":
        q *= rng.choice([0.001, 0.02])
        v += rng.choice([0.0, 1.0])
    elif kind == "trend":      # the first half of the values is positive, the second half negative
        v += np.linspace(2, -2, keys)[:, None, None]
    elif kind == "outlier_channels":
        k[:, :, 3] += 30
        k[:, :, 11] -= 25
        v[:, :, 5] *= 40
    elif kind == "low_rank":
        v = rng.standard_normal((keys, kv_heads, 1)) * rng.standard_normal((1, kv_heads, value_dim))
    elif kind == "first_key":  # an attention sink: one key holds most of the weight
        k[0] += 1.5 * q[:kv_heads] * np.sqrt(dim) / np.linalg.norm(q[:kv_heads], axis=1, keepdims=True)
        v[0] *= 0.01
    elif kind == "equal_keys":
        k[:] = k[:1]
        v += 0.5
    elif kind == "lattice":
        q, k, v = (np.rint(x * 2) / 2 for x in (q, k, v))
    elif kind == "heavy_tails":
        v = rng.standard_t(2.5, v.shape)
        k = rng.standard_t(4, k.shape)
    elif kind == "constant_v":
        v = np.broadcast_to(rng.standard_normal((1, kv_heads, value_dim)), v.shape)
    elif kind == "two_clusters":
        k[: keys // 2] = k[:1]
        v[: keys // 2] += 1
    elif kind == "sorted":     # keys in the order of the first head's scores
        order = np.argsort((k[:, 0] * q[0]).sum(1))
        k, v = k[order], v[order]
    elif kind == "alternating":
        v[::2] = np.abs(v[::2])
        v[1::2] = -np.abs(v[1::2])
    elif kind == "strong_sink":    # the first key has 99 % of the weight, and a value of zero
        direction = q.mean(0) / np.linalg.norm(q.mean(0))
        k[0] += (np.log(99 * keys) + 2) * np.sqrt(dim) * direction / max(0.3, float((q @ direction).max()))
        v[0] = 0
    elif kind == "cauchy":
        v = np.clip(rng.standard_cauchy(v.shape), -1000, 1000)
    elif kind == "subnormal":      # values below the normal range of the stored type
        v *= 1e-6 if stored == "f16" else 3e-39
    elif kind == "one_hot":
        q *= 30
    elif kind == "same_key":       # all scores of a head are equal, and the values are not
        k[:] = rng.standard_normal((1, kv_heads, dim))
    elif kind == "signs":          # every value is 1 or -1
        v = np.sign(v)
    elif kind == "common_offset":  # all keys share a large component: large scores that differ little
        k += 4 * np.sign(q.mean(0)) + 2
    elif kind == "half_zero":
        v[rng.random(v.shape) < 0.5] = 0
    elif kind == "repeated_pages":  # three pages of tokens, over and over
        index = np.arange(keys) % (3 * PAGE)
        k, v = k[np.minimum(index, keys - 1)], v[np.minimum(index, keys - 1)]
    elif kind == "recency":        # weights fall by a factor e in 40 keys, as with ALiBi
        bias = -np.minimum((keys - 1 - np.arange(keys)) / 40, 60)
        q[:, 0] = np.sqrt(dim)
        k[:, :, 0] = bias[:, None]
    elif kind == "large_values":
        v = 900 * v + 300
    elif kind == "mixed_scales":   # columns of V from 1e-3 to 1e3, with offsets
        v = (v + rng.standard_normal(value_dim)) * 10.0 ** rng.uniform(-3, 3, value_dim)
    elif kind == "near_ties":      # two groups of nearly equal keys, half a step of bf16 apart
        k[:] = k[:1]
        k[keys // 2:] *= 1 + 2.0 ** -7
        q *= 0.5
    elif kind == "ramp_scores":    # the running maximum rises with each tile
        q[:, 0] = np.sqrt(dim)
        k[:, :, 0] = np.linspace(0, 12, keys)[:, None]
    elif kind == "rare_spikes":
        v *= 0.01
        v[rng.random(v.shape) < 3 / keys] = 50
    elif kind == "far_from_zero":
        v += 4
    elif kind == "rising_positive":
        q[:, 0] = np.sqrt(dim)
        k[:, :, 0] = np.linspace(0, 12, keys)[:, None]
        v = 1 + 0.3 * v
    elif kind == "heavy_end":
        q *= 0.3
        q[:, 0] = np.sqrt(dim)
        k[:, :, 0] = 0
        k[-max(1, keys // 64):, :, 0] = np.log(64)
        v += 4
    data = Data(kind, stored, *(rounded(x.astype(F32), stored) for x in (q, k, v)))
    return data


# --- exact attention --------------------------------------------------------------------------------------------------

def exact(data, weights=None, scale=None, k=None, v=None, q=None):
    """(o, lse) in float64. weights: how often each key is counted."""
    q, k, v = (np.asarray(x if x is not None else y, np.float64) for x, y in ((q, data.q), (k, data.k), (v, data.v)))
    group = q.shape[0] // k.shape[1]
    o, lse = [], []
    for head in range(q.shape[0]):
        s = (k[:, head // group] @ q[head]) * (data.scale if scale is None else scale)
        w = np.ones(len(s)) if weights is None else np.asarray(weights, np.float64)
        s[w == 0] = -np.inf
        e = w * np.exp(s - s.max())
        o.append(e @ v[:, head // group] / e.sum())
        lse.append(s.max() + np.log(e.sum()))
    return np.array(o), np.array(lse)


# --- simulated kernels ------------------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Kernel:
    output: str = "f32"
    p: str = "f32"
    row_sum: str = "exact"     # or "rounded": of P as it is multiplied with V; "matrix": as another column of V
    tile: int = 64             # 1: keys one by one
    sum_tile: int = 0          # the tile of the row sum, which other threads than those of P V may add; 0: the same
    splits: int = 1
    partials: str = "f32"
    backwards: bool = False    # from the last key to the first
    ex2: float = 0.0           # relative error of the exponential
    scale_in_q: bool = False   # q is multiplied by the scale in float32 first
    dot_lanes: int = 1         # interleaved partial sums of a score, which are then added; -1: one sum, from the last
    shift: float = 0.0         # P = exp(score - maximum + shift): a maximum that is raised late, or a scale of P
    accumulator_bits: int = 0  # matrix instructions that cut each product and the sum to these bits, toward zero
    promoted: bool = True      # such a sum of a tile is added to a float32 sum; False: it goes on from tile to tile
    instruction: int = 0       # products that a matrix instruction adds to a float32 sum, as matrix_sum(); 0: float32 sums
    dot_order: int = 0         # which order of the head's elements the products of a score are added in; 0: as stored

    def options(self):
        """What `kvscope verify` cannot know: types that are not the output's, and truncating sums."""
        extra = []
        if self.accumulator_bits:
            extra += ["--accumulator-bits", self.accumulator_bits]
            if self.promoted:
                extra += ["--tile-keys", self.tile]
        if self.p != self.output:
            extra += ["--p-dtype", self.p]
        if self.partials != "f32":
            extra += ["--partials-dtype", self.partials]
        return extra


def scores_of(data, kernel, k=None, scale=None):
    """[heads, keys] in float32, products added over the head's elements in `dot_lanes` sums."""
    correct = k is None and scale is None and not kernel.accumulator_bits
    order = kernel.scale_in_q, kernel.dot_lanes, kernel.instruction, kernel.dot_order
    if correct and order in data.scores:
        return data.scores[order]
    k = data.k if k is None else k
    scale = F32(data.scale if scale is None else scale)
    group = data.q.shape[0] // k.shape[1]
    q = data.q * scale if kernel.scale_in_q else data.q
    if kernel.dot_order:
        elements = np.random.default_rng(kernel.dot_order).permutation(q.shape[1])
        q, k = q[:, elements], k[:, :, elements]
    s = np.zeros((data.q.shape[0], k.shape[0]), F32)
    columns = np.ascontiguousarray(k.transpose(1, 2, 0))   # [kv_head, dim, key]
    for head in range(s.shape[0]):
        if kernel.instruction:
            s[head] = matrix_sum(q[head][:, None] * columns[head // group].astype(np.float64), kernel.instruction)
            continue
        if kernel.accumulator_bits:
            s[head] = truncating_sum(q[head][:, None] * columns[head // group].astype(np.float64), kernel.accumulator_bits)
            continue
        lanes = abs(kernel.dot_lanes)
        sums = np.zeros((lanes, k.shape[0]), F32)
        for d in range(k.shape[2]):
            at = d if kernel.dot_lanes > 0 else k.shape[2] - 1 - d
            sums[d % lanes] += q[head, at] * columns[head // group, at]
        while lanes > 1:
            lanes //= 2
            sums = sums[:lanes] + sums[lanes:]
        s[head] = sums[0]
    s = s if kernel.scale_in_q else s * scale
    if correct:
        data.scores[order] = s
    return s


def truncating_sum(products, bits, total=0.0):
    """Sum over the first axis as matrix instructions of 32 addends compute it: each product and the sum so far are
    aligned to the largest of them and cut to `bits` significant bits, toward zero."""
    total = np.broadcast_to(np.asarray(total, np.float64), products.shape[1:])
    for first in range(0, products.shape[0], 32):
        addends = np.concatenate([products[first:first + 32], total[None]])
        exponent = np.frexp(np.abs(addends).max(0))[1]
        unit = np.ldexp(1.0, np.maximum(exponent, -900) - bits)
        total = (np.trunc(addends / unit) * unit).sum(0)
    return total.astype(F32)


EXPONENT = np.int64(0x7FF << 52)
SIGNIFICANT_24 = np.int64(-1 << 29)   # of a float64: sign, exponent and 23 bits of the fraction


def matrix_sum(products, count, total=0.0):
    """Sum over the first axis as matrix instructions of f16 and bf16 with a float32 sum compute it. An instruction aligns
    `count` products and the sum so far to the largest exponent among them, cuts each 25 bits below that exponent, toward
    zero, adds them, and cuts the result to float32, toward zero. `products`: float64, exact."""
    total = np.array(np.broadcast_to(np.asarray(total, np.float64), products.shape[1:]))
    addends = np.empty((count + 1, *products.shape[1:]))
    for first in range(0, products.shape[0], count):
        some = products[first:first + count]
        addends[:len(some)] = some
        addends[len(some)] = total
        now = addends[:len(some) + 1]
        largest = np.maximum(now.max(0), -now.min(0))
        power = np.maximum((largest.view(np.int64) & EXPONENT).view(np.float64), 2.0 ** -126)
        total = np.trunc(now * (2.0 ** 25 / power)).sum(0) * (power * 2.0 ** -25)
        total = (total.view(np.int64) & SIGNIFICANT_24).view(np.float64)
        total = np.trunc(total * 2.0 ** 149) * 2.0 ** -149
    return total.astype(F32)


def exponential(x, kernel):
    e = np.exp(x.astype(F32))
    if kernel.ex2:
        e = (e * (1 + kernel.ex2 * np.cos(3e3 * np.maximum(x, -200).astype(np.float64)))).astype(F32)
    return e


def run_kernel(data, kernel, weights=None, scale=None, k=None, v=None):
    """(o, lse) as float32 arrays with values of the kernel's types. weights: 0 leaves a key out, 2 counts it twice."""
    k = data.k if k is None else k
    v = data.v if v is None else v
    s = scores_of(data, kernel, k, scale)
    w = np.ones(k.shape[0], F32) if weights is None else np.asarray(weights, F32)
    if weights is not None:
        s = np.where(w == 0, F32(-np.inf), s)   # a key that is left out is not in the maximum either
    if kernel.backwards:
        s, v, w = s[:, ::-1], v[::-1], w[::-1]
    heads, keys = s.shape
    group = heads // k.shape[1]
    parts = parts_of(s, v, w, group, kernel)
    if kernel.sum_tile:
        [(m, total, _)] = parts_of(s, v[:, :, :0], w, group, dataclasses.replace(kernel, tile=kernel.sum_tile))
        parts = [(m, total, parts[0][2])]
    m = np.max([part[0] for part in parts], axis=0)
    total, out = np.zeros(heads, F32), np.zeros((heads, v.shape[2]), F32)
    if len(parts) == 1:
        total, out = parts[0][1], parts[0][2] / parts[0][1][:, None]
    else:
        logs = [part[0] + np.log(part[1]) for part in parts]
        top = np.max(logs, axis=0)
        for log, part in zip(logs, parts):
            weight = np.exp(log - top)
            total += weight
            out += weight[:, None] * rounded(part[2] / part[1][:, None], kernel.partials)
        out /= total[:, None]
        m = top
    return rounded(out, kernel.output), (m + np.log(total)).astype(F32)


def parts_of(s, v, w, group, kernel):
    """[(maximum, row sum, sum of p v)] of each split."""
    return [one_by_one(s, v, w, group, kernel)] if kernel.tile == 1 else tiled(s, v, w, group, kernel)


def one_by_one(s, v, w, group, kernel):
    m = s.max(1) - F32(kernel.shift)
    sums, outs = [], []
    for head in range(s.shape[0]):
        e = exponential(s[head] - m[head], kernel) * w
        p = rounded(e, kernel.p)
        sums.append(np.cumsum(p if kernel.row_sum == "rounded" else e, dtype=F32)[-1])
        # A sum over the first axis of an array of rows adds row after row, as np.cumsum does.
        outs.append(np.add.reduce(np.ascontiguousarray(p[:, None] * v[:, head // group]), axis=0, dtype=F32))
    return m, np.array(sums), np.array(outs)


def tiled(s, v, w, group, kernel):
    heads, keys = s.shape
    tiles = -(-keys // kernel.tile)
    pad = tiles * kernel.tile - keys
    s = np.pad(s, ((0, 0), (0, pad)), constant_values=-np.inf).reshape(heads, tiles, kernel.tile)
    w = np.pad(w, (0, pad)).reshape(tiles, kernel.tile)
    v = np.pad(v, ((0, pad), (0, 0), (0, 0))).reshape(tiles, kernel.tile, *v.shape[1:])
    parts = []
    for split in range(min(kernel.splits, tiles)):
        first, last = split * tiles // min(kernel.splits, tiles), (split + 1) * tiles // min(kernel.splits, tiles)
        piece = s[:, first:last]
        running = np.maximum.accumulate(piece.max(2), axis=1) - F32(kernel.shift)  # [head, tile]
        e = exponential(piece - running[:, :, None], kernel) * w[first:last]
        p = rounded(e, kernel.p)
        if kernel.instruction:
            parts.append(on_matrix_units(p, e, running, v[first:last], group, kernel))
            continue
        sums = (p if kernel.row_sum == "rounded" else e).sum(2, dtype=F32)
        outs = None
        if not kernel.accumulator_bits:
            outs = np.stack([np.matmul(p[h][:, None, :], v[first:last, :, h // group])[:, 0] for h in range(heads)])
        total, out = np.zeros(heads, F32), np.zeros((heads, v.shape[3]), F32)
        before = running[:, 0]
        for tile in range(last - first):
            shrink = np.exp(before - running[:, tile])
            total = total * shrink + sums[:, tile]
            if outs is not None:
                out = out * shrink[:, None] + outs[:, tile]
            else:
                before_tile = out * shrink[:, None]
                out = np.stack([truncating_sum(p[h, tile][:, None] * v[first + tile, :, h // group].astype(np.float64),
                                               kernel.accumulator_bits, 0 if kernel.promoted else before_tile[h])
                                for h in range(heads)])
                out = out + before_tile if kernel.promoted else out
            before = running[:, tile]
        parts.append((before, total, out))
    return parts


def on_matrix_units(p, e, running, v, group, kernel):
    """(maximum, row sum, sum of p v) of a split. The matrix instructions of a tile go on with the sum of the tiles before
    it, which is multiplied in float32 when the maximum grows. All heads at once."""
    heads, tiles, _ = p.shape
    columns = np.concatenate([v, np.ones((*v.shape[:3], 1), F32)], axis=3)[:, :, np.arange(heads) // group]
    sums = (p if kernel.row_sum == "rounded" else e).sum(2, dtype=F32)
    total, out = np.zeros(heads, F32), np.zeros((heads, columns.shape[3]), F32)
    before = running[:, 0]
    for tile in range(tiles):
        shrink = np.exp(before - running[:, tile])
        total = total * shrink + sums[:, tile]
        products = p[:, tile].T[:, :, None] * columns[tile].astype(np.float64)
        out = matrix_sum(products, kernel.instruction, out * shrink[:, None])
        before = running[:, tile]
    return before, out[:, -1] if kernel.row_sum == "matrix" else total, out[:, :-1]


def usual_kernels():
    """For each output type: keys one by one and in tiles, with row sums of unrounded and of rounded P. P of equal
    scores is 1, which rounds to 1; the shift stands for a maximum that is not the row's, so that it rounds. The orders of
    the dot products differ: where few scores are different, each order is one sample of their errors."""
    return [Kernel(output=output, p=output, tile=tile, row_sum=row_sum, shift=shift, dot_lanes=dot_lanes)
            for output in ("f32", "bf16", "f16")
            for tile, row_sum, shift, dot_lanes in (
                (1, "exact", 0, 1), (64, "exact", 0, 8), (1, "rounded", 0, -1), (64, "rounded", 0, 32),
                (64, "exact", 0.3, 4), (64, "rounded", 0.3, 1), (1, "rounded", 0.4447, 2))]


def kernels_of_long_sequences():
    """Fewer, and more that add float32 numbers one by one: the errors of equal additions are one sample for each shift."""
    fewer = [kernel for kernel in usual_kernels() if (kernel.tile, kernel.row_sum, kernel.shift) in
             ((1, "exact", 0), (64, "rounded", 0.3), (1, "rounded", 0.4447))]
    return fewer + [Kernel(tile=1, shift=shift, backwards=backwards)
                    for shift, backwards in ((0.1, False), (0.2, True), (0.6, False), (0.85, True))]


DOT_ORDERS = 16   # the scores of each are kept for long sequences: scores_of()


def rounding_kernels(rng, count, orders=DOT_ORDERS):
    """`count` kernels of each output type, with nothing that `kvscope verify` cannot know, for an estimate of the largest
    error that rounding can make. What decides the errors of a correct kernel is drawn for each: the number that it
    subtracts from the scores, which moves every probability between two numbers of P's type, the orders in which it adds
    products (`orders` of them) and keys, whether the threads that add the row sum are those that add P V, and whether the
    row sum is that of rounded P. P's type has the same numbers in each octave, so the shift is at most ln 2."""
    kernels = []
    for output in ("f32", "bf16", "f16"):
        for i in range(count):
            tile = int(rng.choice([1, 1, 16, 64, 128]))
            kernels.append(Kernel(output=output, p=output, row_sum=("exact", "rounded")[i % 2],
                                  tile=tile, sum_tile=(64 if tile == 1 else 1) if i // 4 % 2 else 0,
                                  backwards=bool(rng.random() < 0.5), shift=float(rng.uniform(0, np.log(2))),
                                  dot_lanes=int(rng.choice([1, 1, 2, 8, 32])), scale_in_q=bool(i // 2 % orders % 2),
                                  dot_order=1 + i // 2 % orders))
    return kernels


def right_kernels(rng, count):
    """Kernels of three output types, drawn from what engines do."""
    kernels = []
    for i in range(count):
        output = ("f32", "bf16", "f16")[i % 3]
        p = output
        if rng.random() < 0.2:
            p = {"f32": rng.choice(["bf16", "f16"]), "bf16": "f32", "f16": "e4m3"}[output]
        tile = int(rng.choice([1, 16, 32, 64, 128, 256], p=[0.2, 0.15, 0.15, 0.2, 0.2, 0.1]))
        kernels.append(Kernel(output=output, p=str(p), row_sum=str(rng.choice(["exact", "rounded"])), tile=tile,
                              splits=1 if tile == 1 else int(rng.choice([1, 2, 3, 8, 32])),
                              partials=str(rng.choice(["f32", "f32", "f32", output])),
                              backwards=bool(rng.random() < 0.2), ex2=float(rng.choice([0, 2.0 ** -23])),
                              scale_in_q=bool(rng.random() < 0.3), dot_lanes=int(rng.choice([1, -1, 2, 4, 8, 16, 32])),
                              shift=float(rng.choice([0, 0, 0.3, 1.7, 5.5]))))
    return kernels


def matrix_kernels(rng, count):
    """Kernels on matrix instructions with a float32 sum, with P in 16 bits and operands as stored. The first four are those
    that lose most: from the first key on and from the last key on, as flash attention adds, in one split."""
    kernels = []
    for i in range(count):
        output = ("bf16", "f16")[i % 2]
        if i < 4:
            kernels.append(Kernel(output=output, p=output, row_sum=("matrix", "exact")[i // 2], instruction=8, backwards=i >= 2))
            continue
        kernels.append(Kernel(output=output, p=output, row_sum=str(rng.choice(["exact", "rounded", "matrix"])),
                              tile=int(rng.choice([16, 64, 128])), instruction=int(rng.choice([8, 16])),
                              splits=int(rng.choice([1, 3, 8])), backwards=bool(rng.random() < 0.5),
                              shift=float(rng.choice([0, 0, 0.3, 5.5]))))
    return kernels


def truncating_kernels(rng, count):
    """Kernels on the fp8 matrix instructions of Hopper: sums of 14 bits, added to float32 after each tile or not."""
    return [Kernel(output=("bf16", "f16")[i % 2], p="e4m3", row_sum="exact", tile=int(rng.choice([64, 128])),
                   accumulator_bits=14, promoted=bool(rng.random() < 0.7), shift=float(rng.choice([0, 5.5])))
            for i in range(count)]


# --- faults -----------------------------------------------------------------------------------------------------------

def faults(data, rng):
    """(name, arguments of run_kernel and exact) of each fault."""
    keys, pages = data.keys, data.keys // PAGE
    everything = np.ones(keys)

    def counted(first, last, times):
        weights = everything.copy()
        weights[first:last] = times
        return {"weights": weights}

    key = int(rng.integers(keys))
    yield "last key left out", counted(keys - 1, keys, 0)
    yield "one key left out", counted(key, key + 1, 0)
    yield "one key counted twice", counted(key, key + 1, 2)
    yield "scale 1 % too large", {"scale": data.scale * 1.01}
    yield "scale 0.1 % too large", {"scale": data.scale * 1.001}
    yield "scale 1/d", {"scale": data.scale ** 2}
    if data.k.shape[1] > 1:
        yield "KV heads exchanged", {"k": data.k[:, ::-1], "v": data.v[:, ::-1]}
    if pages >= 2:
        page = int(rng.integers(pages))
        here = slice(page * PAGE, (page + 1) * PAGE)
        other = int(rng.integers(pages - 1))
        other += other >= page
        there = slice(other * PAGE, (other + 1) * PAGE)
        yield "one page left out", counted(here.start, here.stop, 0)
        k, v = data.k.copy(), data.v.copy()
        fresh = make_data(data.kind, PAGE * 2, data.stored, int(rng.integers(1 << 30)), data.shape)
        k[here], v[here] = fresh.k[PAGE:], fresh.v[PAGE:]
        yield "one page of another sequence", {"k": k, "v": v}
        k, v = data.k.copy(), data.v.copy()
        k[here], v[here] = data.k[there], data.v[there]
        yield "one page read from another page's block", {"k": k, "v": v}
        v = data.v.copy()
        v[here], v[there] = data.v[there], data.v[here]
        yield "V of two pages exchanged", {"v": v}
        v = data.v.copy()
        v[here] = 0
        yield "V of one page read as zeros", {"v": v}
