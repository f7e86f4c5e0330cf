#!/usr/bin/python3
"""kvscope diagnose of kernels that misread a tensor which states the keys of each query: a custom mask, its packed bits,
a tree of speculated tokens, its packed bits, or the indices of sparse attention.

    diagnose_masks_test.py --kvscope PROGRAM

The kernels are NumPy and read the tensor as flat memory. KVSCOPE_FAULT_TABLE=1 prints one line per case that is not first.
"""
import itertools
import json
import os
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from faulty_attention import suffixed, to_bits, to_real  # noqa: E402
from program import kvscope  # noqa: E402

PAGE, HEADS, KV_HEADS, DIM = 8, 4, 2, 16
DTYPES = ["bf16"] if program.SLOW_BUILD else ["f32", "bf16"]
LENGTHS, QUERIES = [21, 37, 13], [5, 3, 4]


class MaskBatch:
    """A paged batch whose mask is a tensor. `memory` is that tensor as the kernel finds it: values, or bytes of bits."""

    def __init__(self, form, dtype, seed):
        rng = np.random.default_rng([seed, len(form)])
        self.form = form
        self.fill(dtype, *((LENGTHS, QUERIES) if form != "tree" else ([21, 37, 13], [6, 6, 6])), rng)
        if form == "tree":
            trees = rng.random((3, 6, 6)) < 0.5
            trees |= np.eye(6, dtype=bool)
            self.memory = trees.astype(np.uint8).reshape(-1)
            self.arrays["tree_mask"] = trees.astype(np.int32)
            return
        masks = [rng.random((count, n)) < 0.6 for count, n in zip(self.queries, self.lengths)]
        for mask in masks:
            mask[:, 0] = True
        if form == "custom":
            self.memory = np.concatenate([m.ravel() for m in masks]).astype(np.uint8)
            self.first = np.concatenate([[0], np.cumsum([m.size for m in masks])])
            self.arrays["custom_mask"] = self.memory
        else:
            self.memory = np.concatenate([np.packbits(m.ravel(), bitorder="little") for m in masks])
            self.first = np.concatenate([[0], np.cumsum([(m.size + 7) // 8 for m in masks])])
            self.arrays["packed_custom_mask"] = self.memory

    def fill(self, dtype, lengths, queries, rng):
        """q and the pages of sequences of these sizes."""
        self.dtype, self.lengths, self.queries = dtype, lengths, queries
        self.starts = np.concatenate([[0], np.cumsum(self.queries)])
        pages = [-(-n // PAGE) for n in self.lengths]
        blocks = sum(pages) + 4
        order = rng.permutation(blocks)
        table = np.full((len(pages), max(pages)), order[-1])
        for row, own in zip(table, np.split(order[:sum(pages)], np.cumsum(pages)[:-1])):
            row[:len(own)] = own
        self.slots = [table[b][np.arange(n) // PAGE] * PAGE + np.arange(n) % PAGE for b, n in enumerate(self.lengths)]
        q, k, v = (to_bits(dtype, rng.standard_normal(shape)) for shape in
                   [(self.starts[-1], HEADS, DIM), (blocks, PAGE, KV_HEADS, DIM), (blocks, PAGE, KV_HEADS, DIM)])
        self.q = to_real(dtype, q).astype(float)
        self.k, self.v = (to_real(dtype, x).astype(float).reshape(-1, KV_HEADS, DIM) for x in (k, v))
        self.value_dim, self.scale = DIM, DIM ** -0.5
        self.arrays = {suffixed("q", dtype): q, suffixed("k_cache", dtype): k, suffixed("v_cache", dtype): v,
                       "block_table": table.astype(np.int32), "cache_seqlens": np.array(self.lengths, np.int32),
                       "query_offsets": self.starts.astype(np.int32)}
        self.options = ["--layout", "nhd"]

    def value(self, at):
        return self.memory[at] != 0 if 0 <= at < len(self.memory) else False

    def bit(self, byte, n, order="little"):
        byte, n = byte + n // 8, n % 8
        if not 0 <= byte < len(self.memory):
            return False
        return bool(self.memory[byte] >> (n if order == "little" else 7 - n) & 1)

    def sees(self, b, i, t):
        """Whether query i of sequence b sees key t, as the tensor says."""
        n, count = self.lengths[b], self.queries[b]
        if self.form == "tree":
            return t < n - count or self.value(b * 36 + i * 6 + t - (n - count))
        if self.form == "custom":
            return self.value(self.first[b] + i * n + t)
        return self.bit(self.first[b], i * n + t)

    def listed(self, sees):
        """Slots of each query, by the function `sees`."""
        return [[self.slots[b][t] for t in range(self.lengths[b]) if sees(b, i, t)]
                for b in range(len(self.lengths)) for i in range(self.queries[b])]


class TreeBatch(MaskBatch):
    """Trees in rows of integers, a bit for each node: `words` integers of `bits` bits in a row. Form words: [B, S, 2] of 32 bits, as
    in TensorRT-LLM; word: [B, S, 1]; bytes: a list of u8, of trees of different sizes, as in SGLang; list: a list of trees of
    different sizes, a value for each pair of nodes."""

    def __init__(self, form, dtype, seed):
        rng = np.random.default_rng([seed, 77])
        self.form = form
        queries = {"words": [37] * 3, "word": [11] * 3}.get(form, [5, 7, 4])
        self.fill(dtype, [n + before for n, before in zip(queries, (17, 26, 9))], queries, rng)
        trees = [rng.random((n, n)) < 0.5 for n in self.queries]
        for own in trees:
            own |= np.eye(len(own), dtype=bool)
        self.words, self.bits = (2 if form == "words" else 1), (8 if form == "bytes" else 32)
        if form == "list":
            self.memory = np.concatenate([own.ravel() for own in trees]).astype(np.uint8)
            self.first = np.concatenate([[0], np.cumsum([own.size for own in trees])])
            self.arrays["tree_mask"] = self.memory.astype(bool)
            return
        numbers = [[sum(int(bit) << j for j, bit in enumerate(row)) for row in own] for own in trees]
        size = self.words * self.bits // 8
        self.memory = b"".join(number.to_bytes(size, "little") for own in numbers for number in own)
        self.first = np.concatenate([[0], np.cumsum(self.queries)])  # in rows
        if form == "bytes":
            self.arrays["tree_mask"] = np.frombuffer(self.memory, np.uint8)
        else:
            rows = np.frombuffer(self.memory, np.int32).reshape(3, -1, self.words)
            self.arrays["spec_decoding_packed_mask"] = rows

    def row(self, number, words=None):
        """Row `number` of the tensor as one integer, of `words` integers; past the tensor 0."""
        size = self.bits // 8 * (words or self.words)
        return int.from_bytes(self.memory[size * number:size * (number + 1)], "little")

    def prefix(self, b):
        return self.lengths[b] - self.queries[b]

    def node(self, b, i, j):
        if self.form == "list":
            return self.value(self.first[b] + i * self.queries[b] + j)
        return bool(self.row(self.first[b] + i) >> j & 1)

    def sees(self, b, i, t):
        return t < self.prefix(b) or self.node(b, i, t - self.prefix(b))

    def among(self, node):
        """A condition for the nodes; the keys before are seen."""
        return lambda b, i, t: t < self.prefix(b) or bool(node(b, i, t - self.prefix(b)))

    def whole(self, b):
        """The rows from sequence b on as one integer."""
        return int.from_bytes(self.memory[self.first[b] * self.words * self.bits // 8:], "little")

    def swapped(self, number):
        """An integer of the row with its bytes in the other order, and then the next."""
        size = self.bits // 8
        row = self.memory[size * self.words * number:size * self.words * (number + 1)]
        return int.from_bytes(b"".join(row[i:i + size][::-1] for i in range(0, len(row), size)), "little")


class SparseBatch:
    def __init__(self, dtype, seed):
        rng = np.random.default_rng([seed, 9])
        self.form, self.dtype, self.value_dim, self.scale = "indices", dtype, 16, 0.25
        self.page, self.blocks = 16, 7
        pool = to_bits(dtype, rng.standard_normal((self.blocks, self.page, 1, 24)))
        q = to_bits(dtype, rng.standard_normal((7, HEADS, 24)))
        self.q = to_real(dtype, q).astype(float)
        self.k = to_real(dtype, pool).astype(float).reshape(-1, 1, 24)
        self.v = self.k[..., :16]
        self.indices = np.stack([1 + rng.permutation(self.blocks * self.page - 2)[:24] for _ in range(7)])
        self.counts = np.array([24, 15, 9, 24, 20, 2, 11])
        self.indices[2, 3:5] = self.indices[3, 10] = self.indices[0, ::5] = -1
        self.arrays = {suffixed("kv_cache", dtype): pool, suffixed("q", dtype): q,
                       "indices": self.indices.astype(np.int32), "topk_length": self.counts.astype(np.int32)}
        self.options = ["--layout", "flashmla_sparse", "--scale", "0.25", "--value-size", "16"]

    def listed(self, change=lambda slot: slot, row=lambda i: i, count=None, hole=None, skip=0):
        lists = []
        for i in range(len(self.indices)):
            own = self.indices[row(i)][skip:(count or self.counts[row(i)])]
            lists.append([int(change(s)) if s >= 0 else hole for s in own if s >= 0 or hole is not None])
        return lists


def attend(batch, lists):
    """(o, lse) for the slots of each query."""
    o = np.zeros((len(lists), HEADS, batch.value_dim))
    lse = np.full((len(lists), HEADS), -np.inf)
    for i, slots in enumerate(lists):
        if min(slots, default=0) < 0 or max(slots, default=0) >= len(batch.k):
            raise IndexError(slots)
        for h in range(HEADS):
            if not slots:
                continue
            head = h // (HEADS // batch.k.shape[1])
            score = batch.k[slots, head] @ batch.q[i, h] * batch.scale
            p = np.exp(score - score.max())
            o[i, h], lse[i, h] = p @ batch.v[slots, head] / p.sum(), score.max() + np.log(p.sum())
    return o, lse


def clamped(batch, b, i):
    return min(max(i, 0), batch.queries[b] - 1)


def last_key(m, b, i):
    return m.lengths[b] - m.queries[b] + i


# Name of the hypothesis, its forms, and its condition for "query i of sequence b sees key t".
MASK_FAULTS = [
    ("mask_ignored", "custom packed tree", lambda m: lambda b, i, t: True),
    ("mask_ignored", "custom packed tree", lambda m: lambda b, i, t: t <= last_key(m, b, i)),
    ("mask_and_causal", "custom packed tree", lambda m: lambda b, i, t: m.sees(b, i, t) and t <= last_key(m, b, i)),
    ("mask_inverted", "custom packed", lambda m: lambda b, i, t: not m.sees(b, i, t)),
    ("mask_transposed", "custom", lambda m: lambda b, i, t: m.value(m.first[b] + t * m.queries[b] + i)),
    ("mask_transposed", "packed", lambda m: lambda b, i, t: m.bit(m.first[b], t * m.queries[b] + i)),
    ("mask_transposed", "tree", lambda m: lambda b, i, t: t < m.lengths[b] - 6 or
     m.value(b * 36 + (t - m.lengths[b] + 6) * 6 + i)),
    ("mask_row", "custom packed tree", lambda m: lambda b, i, t: m.sees(b, clamped(m, b, i + 1), t)),
    ("mask_row", "custom packed tree", lambda m: lambda b, i, t: m.sees(b, clamped(m, b, i - 1), t)),
    ("mask_row", "custom packed tree", lambda m: lambda b, i, t: m.sees(b, 0, t)),
    ("mask_column", "custom", lambda m: lambda b, i, t: m.value(m.first[b] + i * m.lengths[b] + t + 1)),
    ("mask_column", "packed", lambda m: lambda b, i, t: m.bit(m.first[b], i * m.lengths[b] + t + 1)),
    ("mask_place", "tree", lambda m: lambda b, i, t: t >= 6 or m.value(b * 36 + i * 6 + t)),
    ("mask_place", "tree", lambda m: lambda b, i, t: t >= m.lengths[b] - 6 and m.sees(b, i, t)),
    ("mask_bit_order", "packed", lambda m: lambda b, i, t: m.bit(m.first[b], i * m.lengths[b] + t, "big")),
    ("mask_rows_padded", "packed", lambda m: lambda b, i, t: m.bit(m.first[b] + i * -(-m.lengths[b] // 8), t)),
    ("mask_rows_padded", "custom", lambda m: lambda b, i, t: m.value((m.starts[b] + i) * max(m.lengths) + t)),
    ("mask_sequence", "custom", lambda m: lambda b, i, t: m.value(i * m.lengths[b] + t)),
    ("mask_sequence", "packed", lambda m: lambda b, i, t: m.bit(0, i * m.lengths[b] + t)),
    ("mask_sequence", "tree", lambda m: lambda b, i, t: t < m.lengths[b] - 6 or m.value(i * 6 + t - m.lengths[b] + 6)),
    ("mask_sequence", "custom", lambda m: lambda b, i, t: m.value(m.first[min(b + 1, 2)] + i * m.lengths[b] + t)),
    ("mask_sequence", "custom", lambda m: lambda b, i, t: m.value(m.first[max(b - 1, 0)] + i * m.lengths[b] + t)),
    ("mask_sequence", "packed", lambda m: lambda b, i, t: m.bit(m.first[min(b + 1, 2)], i * m.lengths[b] + t)),
    ("mask_sequence", "packed", lambda m: lambda b, i, t: m.bit(m.first[max(b - 1, 0)], i * m.lengths[b] + t)),
    ("mask_sequence", "tree", lambda m: lambda b, i, t: m.sees(min(b + 1, 2), i, t + m.lengths[min(b + 1, 2)] - m.lengths[b])),
    ("mask_sequence", "tree", lambda m: lambda b, i, t: m.sees(max(b - 1, 0), i, t + m.lengths[max(b - 1, 0)] - m.lengths[b])),
    ("mask_sequence", "packed", lambda m: lambda b, i, t:
     m.bit(0, sum(c * n for c, n in zip(m.queries[:b], m.lengths[:b])) + i * m.lengths[b] + t)),
]


def tree_faults(m):
    """As MASK_FAULTS, for one batch with trees."""
    faults = [
        ("mask_ignored", lambda b, i, t: True),
        ("mask_ignored", lambda b, i, t: t <= last_key(m, b, i)),
        ("mask_and_causal", lambda b, i, t: m.sees(b, i, t) and t <= last_key(m, b, i)),
        ("mask_inverted", m.among(lambda b, i, j: not m.node(b, i, j))),
        ("mask_transposed", m.among(lambda b, i, j: m.node(b, j, i))),
        ("mask_row", m.among(lambda b, i, j: m.node(b, clamped(m, b, i + 1), j))),
        ("mask_row", m.among(lambda b, i, j: m.node(b, clamped(m, b, i - 1), j))),
        ("mask_row", m.among(lambda b, i, j: m.node(b, 0, j))),
        ("mask_place", lambda b, i, t: t >= m.queries[b] or m.node(b, i, t)),
        ("mask_place", lambda b, i, t: t >= m.prefix(b) and m.sees(b, i, t))]
    if m.form == "list":
        start = lambda b, i, j, at: m.value(m.first[at] + i * m.queries[b] + j)
        return faults + [
            ("mask_column", m.among(lambda b, i, j: m.value(m.first[b] + i * m.queries[b] + j + 1))),
            ("mask_sequence", m.among(lambda b, i, j: start(b, i, j, 0))),
            ("mask_sequence", m.among(lambda b, i, j: start(b, i, j, min(b + 1, 2)))),
            ("mask_sequence", m.among(lambda b, i, j: start(b, i, j, max(b - 1, 0))))]
    bits, words = m.bits, m.words
    number = lambda b, i: m.first[b] + i
    faults += [
        ("mask_column", m.among(lambda b, i, j: m.row(number(b, i)) >> (j + 1) & 1)),
        ("mask_column", m.among(lambda b, i, j: m.row(number(b, i)) << 1 >> j & 1)),
        ("mask_bit_order", m.among(lambda b, i, j: m.row(number(b, i)) >> (m.queries[b] - 1 - j) & 1)),
        ("mask_bit_order", m.among(lambda b, i, j: m.row(number(b, i)) >> (j - j % bits) >> (bits - 1 - j % bits) & 1)),
        ("mask_rows_padded", m.among(lambda b, i, j: m.whole(b) >> (i * m.queries[b] + j) & 1)),
        ("mask_sequence", m.among(lambda b, i, j: m.row(i) >> j & 1)),
        ("mask_sequence", m.among(lambda b, i, j: m.row(m.first[min(b + 1, 2)] + i) >> j & 1)),
        ("mask_sequence", m.among(lambda b, i, j: m.row(m.first[max(b - 1, 0)] + i) >> j & 1))]
    if m.form == "bytes":
        faults.append(("mask_sequence", m.among(lambda b, i, j: m.row(b * max(m.queries) + i) >> j & 1)))
    else:
        faults += [("mask_bit_order", m.among(lambda b, i, j: m.row(number(b, i)) >> (j - j % 8) >> (7 - j % 8) & 1)),
                   ("mask_bit_order", m.among(lambda b, i, j: m.swapped(number(b, i)) >> j & 1)),
                   ("mask_rows_padded", m.among(lambda b, i, j: m.whole(b) >> (8 * i * -(-m.queries[b] // 8)) >> j & 1))]
    if words > 1:
        last = lambda b, i: m.row(2 * number(b, i) + 1, words=1) | m.row(2 * number(b, i), words=1) << bits
        faults += [("mask_bit_order", m.among(lambda b, i, j: last(b, i) >> j & 1)),
                   ("mask_bit_order", m.among(lambda b, i, j: m.row(2 * number(b, i), words=1) >> j % bits & 1)),
                   ("mask_words", m.among(lambda b, i, j: m.row(2 * number(b, i), words=1) >> j & 1)),
                   ("mask_rows_padded", m.among(lambda b, i, j: m.whole(b) >> (bits * i + j) & 1))]
    return faults


INDEX_FAULTS = [
    ("index_off_by_one", lambda s: s.listed(lambda slot: slot + 1)),
    ("index_off_by_one", lambda s: s.listed(lambda slot: slot - 1)),
    ("index_row", lambda s: s.listed(row=lambda i: min(i + 1, 6))),
    ("index_row", lambda s: s.listed(row=lambda i: 0)),
    ("index_missing", lambda s: s.listed(skip=1)),
    ("index_lengths_ignored", lambda s: s.listed(count=24)),
    ("index_hole_read", lambda s: s.listed(hole=0)),
    ("index_axes", lambda s: s.listed(lambda slot: slot % s.blocks * s.page + slot // s.blocks)),
    ("index_block", lambda s: s.listed(lambda slot: slot // s.page * s.page)),
]


class Masks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder, cls.golden = folder.name, {}

    def diagnosed(self, batch, lists):
        """The verdict of `verify --json` on a kernel that reads these slots."""
        dtype = batch.dtype
        if batch not in self.golden:
            path = os.path.join(self.folder, f"{len(self.golden)}")
            np.savez(path + ".npz", **batch.arrays)
            done = kvscope("golden", "--input", path + ".npz", *batch.options, "--out", path + "-golden.npz")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.golden[batch] = path + "-golden.npz"
        o, lse = attend(batch, lists)
        path = os.path.join(self.folder, "candidate.npz")
        np.savez(path, **{suffixed("o", dtype): to_bits(dtype, o), "lse": lse.astype(np.float32)})
        done = kvscope("verify", self.golden[batch], path, "--json")
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def judge(self, batch, cases):
        first = observable = certain = 0
        for name, lists in cases:
            with self.subTest(form=batch.form, dtype=batch.dtype, fault=name):
                report = self.diagnosed(batch, lists)
                if report["passed"]:
                    continue
                observable += 1
                diagnosis = report["diagnosis"]
                names = [e["name"] for e in diagnosis["explanations"]]
                first += names[:1] == [name]
                certain += diagnosis["certain"]
                if names[:1] != [name] and os.environ.get("KVSCOPE_FAULT_TABLE") == "1":
                    print(batch.form, batch.dtype, name, [e["cause"] for e in diagnosis["explanations"]])
                self.assertIn(name, names)
                self.assertTrue(names[0] == name or not diagnosis["certain"], names)
        return np.array([observable, first, certain])

    def cases(self):
        for form, dtype, seed in itertools.product(["custom", "packed", "tree"], DTYPES, [1, 2]):
            batch = MaskBatch(form, dtype, seed)
            self.assertTrue(self.diagnosed(batch, batch.listed(batch.sees))["passed"])
            yield batch, [(name, batch.listed(of(batch))) for name, forms, of in MASK_FAULTS if form in forms.split()]
        for form, dtype, seed in itertools.product(["words", "word", "bytes", "list"], DTYPES, [1, 2]):
            batch = TreeBatch(form, dtype, seed)
            self.assertTrue(self.diagnosed(batch, batch.listed(batch.sees))["passed"])
            yield batch, [(name, batch.listed(sees)) for name, sees in tree_faults(batch)]
        for dtype, seed in itertools.product(DTYPES, [1, 2]):
            batch = SparseBatch(dtype, seed)
            self.assertTrue(self.diagnosed(batch, batch.listed())["passed"])
            yield batch, [(name, of(batch)) for name, of in INDEX_FAULTS]

    def test_each_misread_mask_is_first_and_no_wrong_cause_is_certain(self):
        total = sum(self.judge(batch, cases) for batch, cases in self.cases())
        print(f"{total[0]} misread masks: {total[1]} with the true cause first, {total[2]} certain")
        self.assertGreater(total[0], 200 * len(DTYPES))
        self.assertGreaterEqual(total[1], 0.99 * total[0])

    def test_a_mask_that_is_wrong_at_random_has_no_certain_cause(self):
        for form in ["custom", "packed", "tree", "words", "word", "bytes", "list"]:
            batch = (MaskBatch if form in ("custom", "packed", "tree") else TreeBatch)(form, "f32", 3)
            rng = np.random.default_rng(3)
            wrong = {(b, i, t) for b, i, t in itertools.product(range(3), range(37), range(63)) if rng.random() < 0.2}
            report = self.diagnosed(batch, batch.listed(lambda b, i, t: batch.sees(b, i, t) != ((b, i, t) in wrong)))
            self.assertEqual((report["passed"], report["diagnosis"]["certain"]), (False, False))


if __name__ == "__main__":
    program.main()
