#!/usr/bin/python3
"""Mask tensors in every form that engines have: dense masks of two to four axes in ragged batches, FlashInfer's masks with
mask_indptr, and the trees of SGLang (FULL_MASK, QLEN_ONLY, QLEN_ONLY_BITPACKING), vLLM (tree_attn_bias) and TensorRT-LLM
(packed rows). The reference is attention in NumPy over scores plus a bias, which shares no code with kvscope.

    mask_forms_test.py --kvscope PROGRAM
"""
import json
import os
import sys

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from engine_layouts import LAYOUTS, Cache  # noqa: E402
from program import kvscope  # noqa: E402
from reduce_layouts_test import Server  # noqa: E402

SCALE = 0.25


def reference(q, rows, biases):
    """o [T, Hq, Dv] and lse [T, Hq] of q [T, Hq, D]; (k, v) and a bias [Hq or 1, queries, keys] by sequence. A row without a
    visible key has o = 0 and lse = -inf."""
    o, lse, row = [], [], 0
    for (k, v), bias in zip(rows, biases):
        group = q.shape[1] // k.shape[1]
        k, v = (np.repeat(x.astype(float), group, axis=1) for x in (k, v))
        for i in range(bias.shape[1]):
            s = SCALE * np.einsum("thd,hd->ht", k, q[row].astype(float)) + bias[:, i]
            top = s.max(-1, keepdims=True, initial=-np.inf)
            p = np.exp(s - np.where(np.isinf(top), 0, top))
            total = p.sum(-1)
            o.append(np.einsum("ht,thd->hd", p, v) / np.where(total == 0, 1, total)[:, None])
            with np.errstate(divide="ignore"):
                lse.append(np.log(total) + np.where(np.isinf(top), 0, top)[:, 0])
            row += 1
    return np.stack(o), np.stack(lse)


def hidden(masks):
    return [np.where(mask.astype(bool), 0, -np.inf)[None] for mask in masks]


class Folder(program.FolderTest):
    def save(self, name, arrays):
        np.savez(self.path(name), **arrays)

    def golden(self, arrays, layout, *options):
        self.save("in.npz", arrays)
        options = [*options, *(["--layer", 1] if layout == "max" and not options else [])]
        done = kvscope("golden", "--input", self.path("in.npz"), "--layout", layout, "--scale", SCALE, "--out",
                       self.path("golden.npz"), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        with np.load(self.path("golden.npz")) as file:
            return file["o"], file["lse"]

    def rejected(self, arrays, layout="nhd"):
        self.save("in.npz", arrays)
        done = kvscope("golden", "--input", self.path("in.npz"), "--layout", layout, "--out", self.path("no.npz"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        return done.stderr.replace("kvscope: " + self.path("in.npz") + ": ", "").splitlines()

    def assert_output(self, found, want):
        for got, expected in zip(found, want):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


def batch(seed, heads=2, query_heads=4, lengths=(5, 8, 3, 14), queries=(1, 2, 3, 3)):
    cache = Cache(seed, lengths=lengths, heads=heads)
    cache.queries = np.array(queries)
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((sum(queries), query_heads, 16)).astype(np.float32)
    return cache, {"q": q, "query_offsets": cache.starts(cache.queries)}, rng


def ragged_masks(cache, rng):
    """[queries, keys] by sequence; the first query of the third sequence sees no key."""
    masks = [rng.random((count, n)) < 0.6 for count, n in zip(cache.queries, cache.lengths)]
    masks[2][0] = False
    return masks


def padded(masks, rows, columns, fill):
    """[B, rows, columns] with `fill` outside the masks."""
    made = np.full((len(masks), rows, columns), fill)
    for out, mask in zip(made, masks):
        out[:mask.shape[0], :mask.shape[1]] = mask
    return made


class Dense(Folder):
    def test_ragged_batches_in_every_layout_and_with_every_group_size(self):
        for n, layout in enumerate(["nhd", "hnd", "vllm", "flashinfer", "flashinfer_hnd", "sglang", "sglang_req",
                                    "vllm_legacy", "trtllm", "max", "varlen", "dense"]):
            heads, query_heads = [(2, 4), (1, 4), (4, 4)][n % 3]
            cache, queries, rng = batch(n, heads, query_heads)
            masks = ragged_masks(cache, rng)
            arrays = {**LAYOUTS[layout][0](cache), **queries}
            want = reference(queries["q"], list(zip(cache.k, cache.v)), hidden(masks))
            self.assertTrue(np.isneginf(want[1]).any())
            for fill in (False, True):  # what the padding holds changes nothing
                mask = padded(masks, 3, 14, fill)
                for name, given in [("[B, Sq, Sk]", mask), ("[B, 1, Sq, Sk]", mask[:, None]),
                                    ("[B, Hq, Sq, Sk]", np.repeat(mask[:, None], query_heads, 1)),
                                    ("-inf", np.where(mask, 0, -np.inf).astype(np.float32))]:
                    with self.subTest(layout=layout, mask=name, fill=fill):
                        self.assert_output(self.golden({**arrays, "attn_mask": given}, layout), want)

    def test_biases_by_head_of_ragged_batches(self):
        for layout in ["nhd", "sglang", "varlen"]:
            cache, queries, rng = batch(20)
            biases = [rng.standard_normal((4, count, n)) for count, n in zip(cache.queries, cache.lengths)]
            for bias in biases:
                bias[rng.random(bias.shape) < 0.3] = -np.inf
            biases[1][2, 1] = -np.inf  # a row of one head without a key
            mask = np.zeros((4, 4, 3, 14))
            for out, bias in zip(mask, biases):
                out[:, :bias.shape[1], :bias.shape[2]] = bias
            mask[0, :, 1:] = np.nan  # rows of no query
            found = self.golden({**LAYOUTS[layout][0](cache), **queries, "attn_mask": mask}, layout)
            self.assert_output(found, reference(queries["q"], list(zip(cache.k, cache.v)), biases))

    def test_axes_of_length_1_are_shared(self):
        cache, queries, rng = batch(21, lengths=(9, 9, 9), queries=(3, 3, 3))
        rows = list(zip(cache.k, cache.v))
        full = rng.random((3, 4, 3, 9)) < 0.6
        full[..., 0] = True
        bias = np.where(full, rng.standard_normal(full.shape), -np.inf).astype(np.float32)
        arrays = {**LAYOUTS["nhd"][0](cache), **queries}
        for shape in [(1, 1, 1, 9), (3, 1, 1, 9), (1, 4, 1, 9), (3, 4, 1, 9), (1, 9), (3, 1, 9), (3, 1), (1, 3, 1),
                      (3, 1, 3, 1), (3, 4, 3, 1), (1, 1), (1, 4, 3, 9), (3, 4, 3, 9)]:
            whole = (1,) * (4 - len(shape)) + shape if len(shape) != 3 else (shape[0], 1, *shape[1:])
            for given, as_bias in [(full, lambda x: np.where(x, 0, -np.inf)), (bias, lambda x: x)]:
                own = given[tuple(slice(0, n) for n in whole)]
                wide = np.broadcast_to(as_bias(own), bias.shape).astype(float)
                with self.subTest(shape=shape, dtype=given.dtype):
                    found = self.golden({**arrays, "attn_mask": own.reshape(shape)}, "nhd")
                    self.assert_output(found, reference(queries["q"], rows, list(wide)))

    def test_columns_are_keys_or_what_the_table_holds(self):
        cache, queries, rng = batch(22)
        masks = ragged_masks(cache, rng)
        arrays = {**LAYOUTS["nhd"][0](cache), **queries}
        want = reference(queries["q"], list(zip(cache.k, cache.v)), hidden(masks))
        capacity = arrays["block_table"].shape[1] * cache.page
        self.assertGreater(capacity, 14)
        self.assert_output(self.golden({**arrays, "attn_mask": padded(masks, 3, capacity, True)}, "nhd"), want)
        for columns, step in [(13, "save a column for each key"), (15, "cut the columns past the keys"),
                              (capacity + 1, "cut the columns past the keys")]:
            self.assertEqual(self.rejected({**arrays, "attn_mask": np.ones((4, 3, columns), bool)}),
                             [f"attn_mask: has {columns} columns; allowed: 1, shared by all keys, or 14, the keys of sequence "
                              f"3, or {capacity}, the tokens that the table or the cache holds for it; {step}"])
        self.assertEqual(self.rejected({**arrays, "attn_mask": np.ones((4, 2, 13), bool)}),
                         ["attn_mask: has 2 rows; allowed: 1, shared by all queries, or 3, the queries of sequence 2; row i is "
                          "query i of its sequence",
                          f"attn_mask: has 13 columns; allowed: 1, shared by all keys, or 14, the keys of sequence 3, or "
                          f"{capacity}, the tokens that the table or the cache holds for it; save a column for each key"])

    def test_axes_of_length_0_are_faults_unless_nothing_would_be_read(self):
        cache, queries, _ = batch(26)
        arrays = {**LAYOUTS["nhd"][0](cache), **queries}
        capacity = arrays["block_table"].shape[1] * cache.page
        padded_q = {**LAYOUTS["nhd"][0](cache), "q": np.zeros((4, 5, 4, 16), np.float32), "q_lens": cache.queries}
        rows = ("attn_mask: has 0 rows; allowed: 1, shared by all queries, or 3, the queries of sequence 2; row i is query i of "
                "its sequence")
        columns = (f"attn_mask: has 0 columns; allowed: 1, shared by all keys, or 14, the keys of sequence 3, or {capacity}, the "
                   "tokens that the table or the cache holds for it; save a column for each key")
        for dtype in (bool, np.float32):
            for shape, lines in [((0, 14), [rows]), ((4, 0, 14), [rows]), ((4, 4, 0, 14), [rows]), ((1, 1, 0, capacity), [rows]),
                                 ((3, 0), [columns]), ((4, 1, 0), [columns]), ((4, 4, 3, 0), [columns]),
                                 ((0, 0), [rows, columns])]:
                self.assertEqual(self.rejected({**arrays, "attn_mask": np.zeros(shape, dtype)}), lines)
            self.assertEqual(self.rejected({**padded_q, "attn_mask": np.zeros((4, 1, 0, 14), dtype)}),
                             [rows.replace("; row", ", or 5, the rows of q; row")])
            for shape in [(0, 3, 14), (0, 4, 3, 14), (4, 0, 3, 14)]:
                self.assertRegex(self.rejected({**arrays, "attn_mask": np.zeros(shape, dtype)})[0], "where axes that share")
        for name, shape, text in [("custom_mask", 0, "the queries and keys of all sequences need [72]"),
                                  ("packed_custom_mask", 0, "the queries and keys of all sequences need [11]"),
                                  ("tree_mask", 0, "[72] for all keys"), ("tree_mask", (0, 0), "is for 0 queries"),
                                  ("tree_mask", (4, 0, 0), "is for 0 queries"), ("tree_mask", (4, 0, 2), "queries"),
                                  ("tree_mask", (4, 3, 0), "has shape [4, 3, 0]"), ("custom_mask", (0, 3), "has shape [0, 3]")]:
            self.assertIn(text, self.rejected({**arrays, name: np.zeros(shape, np.uint8)})[0])
        # Without keys, no rows and no columns are the sizes of the batch.
        empty, queries, _ = batch(27, lengths=(0, 0), queries=(2, 2))
        for shape in [(2, 0), (2, 2, 0), (1, 0)]:
            o, lse = self.golden({**LAYOUTS["nhd"][0](empty), **queries, "attn_mask": np.zeros(shape, bool)}, "nhd")
            self.assertEqual((np.abs(o).max(), lse.max()), (0, -np.inf))

    def test_three_axes_are_sequences_and_not_heads(self):
        cache, queries, _ = batch(23)
        arrays = {**LAYOUTS["nhd"][0](cache), **queries}
        self.save("in.npz", {**arrays, "attn_mask": np.ones((4, 3, 14), bool)})  # as many heads as sequences
        done = kvscope("golden", "--input", self.path("in.npz"), "--layout", "nhd", "--out", self.path("golden.npz"))
        self.assertIn("attn_mask: [4, 3, 14] has a mask for each of the 4 sequences; a mask for each of the 4 query heads is "
                      "[1, 4, Sq, Sk]", done.stderr)
        cache, queries, _ = batch(24, query_heads=8)
        self.assertIn("a mask for each head is [1, 8, Sq, Sk]: three axes are [B, Sq, Sk]",
                      self.rejected({**LAYOUTS["nhd"][0](cache), **queries, "attn_mask": np.ones((8, 3, 14), bool)})[0])

    def test_values_are_named_with_their_place_all_at_once(self):
        cache, queries, _ = batch(25)
        arrays = {**LAYOUTS["nhd"][0](cache), **queries}
        mask = np.ones((4, 3, 14), np.int32)
        mask[1, 0, 7], mask[3, 2, 13], mask[0, 1, 0], mask[0, 0, 5] = -10000, 2, 9, 9  # the last two are not read
        text = "allowed: 0 or 1; save the mask as bool; one that is added to the scores must be a float"
        self.assertEqual(self.rejected({**arrays, "attn_mask": mask}),
                         [f"attn_mask[1, 0, 7]: is -10000; {text}", f"attn_mask[3, 2, 13]: is 2; {text}"])
        needed = int((cache.queries * cache.lengths).sum())
        self.assertEqual(self.rejected({**arrays, "custom_mask": np.full(needed, 255, np.uint8)})[0],
                         "custom_mask[0]: is 255; allowed: 0 or 1; bytes of packed bits are packed_custom_mask")
        many = self.rejected({**arrays, "attn_mask": np.full((4, 3, 14), 3, np.int16)})
        self.assertEqual((len(many), many[-1]),
                         (9, f"attn_mask: and {needed - 8} more faults: `kvscope lint --all` prints the first 64"))
        mask = np.ones((4, 3, 14), np.int16)
        mask[3, 0, :9] = 3
        self.assertEqual(self.rejected({**arrays, "attn_mask": mask})[-1],
                         "attn_mask: and 1 more faults: `kvscope lint --all` prints them")


class Lists(Folder):
    def case(self, seed, **sizes):
        cache, queries, rng = batch(seed, **sizes)
        masks = ragged_masks(cache, rng)
        want = reference(queries["q"], list(zip(cache.k, cache.v)), hidden(masks))
        return cache, {**LAYOUTS["flashinfer"][0](cache), **queries}, masks, want

    def test_custom_and_packed_masks_with_offsets(self):
        _, arrays, masks, want = self.case(30)
        flat = [mask.ravel() for mask in masks]
        packed = [np.packbits(mask, bitorder="little") for mask in flat]
        for name, parts in [("custom_mask", flat), ("packed_custom_mask", packed), ("custom_mask_buf", packed)]:
            offsets = np.cumsum([0, *(len(part) for part in parts)]).astype(np.int32)
            values = np.concatenate(parts)
            longer = np.concatenate([values, np.full(9, 5, np.uint8)])  # a buffer of a CUDA graph
            self.assert_output(self.golden({**arrays, name: values}, "flashinfer"), want)
            self.assert_output(self.golden({**arrays, name: values, "mask_indptr": offsets}, "flashinfer"), want)
            self.assert_output(self.golden({**arrays, name: longer, "mask_indptr_buf": offsets}, "flashinfer"), want)

    def test_a_custom_mask_of_one_sequence_may_have_two_axes(self):
        cache, queries, rng = batch(31, lengths=(9,), queries=(3,))
        mask = rng.random((3, 9)) < 0.5
        found = self.golden({**LAYOUTS["flashinfer"][0](cache), **queries, "custom_mask": mask}, "flashinfer")
        self.assert_output(found, reference(queries["q"], list(zip(cache.k, cache.v)), hidden([mask])))

    def test_offsets_that_do_not_fit_are_named_all_at_once(self):
        cache, arrays, masks, _ = self.case(32)
        values = np.concatenate([mask.ravel() for mask in masks])
        sizes = cache.queries * cache.lengths
        right = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        wrong = right.copy()
        wrong[2] -= 7
        wrong[4] = 2
        self.assertEqual(self.rejected({**arrays, "custom_mask": values, "mask_indptr": wrong}, "flashinfer"), [
            "mask_indptr[2]: gives sequence 1 9 values, but 2 queries of 8 keys need 16; allowed: 21; the lengths and the mask "
            "belong to different batches",
            "mask_indptr[3]: gives sequence 2 16 values, but 3 queries of 3 keys need 9; allowed: 23; the lengths and the mask "
            "belong to different batches",
            "mask_indptr[4]: is 2 after 30; allowed: at least 30; offsets are running sums, and a sequence cannot have a "
            "negative size"])
        self.assertEqual(self.rejected({**arrays, "custom_mask": values[:-1], "mask_indptr": right}, "flashinfer"), [
            "mask_indptr[4]: is 72; allowed: [0, 71], the values of custom_mask; the kernel would read past the mask"])
        wild = right.astype(np.int64)
        wild[0], wild[3], wild[4] = -2**63, 2**63 - 1, 2**63 - 1
        self.assertEqual(self.rejected({**arrays, "custom_mask": values, "mask_indptr": wild}, "flashinfer"), [
            f"mask_indptr[0]: is {-2**63}; allowed: 0; the mask of sequence 0 starts the tensor",
            f"mask_indptr[3]: gives sequence 2 {2**63 - 1 - 21} values, but 3 queries of 3 keys need 9; allowed: 30; the lengths "
            "and the mask belong to different batches"])
        packed = np.concatenate([np.packbits(mask.ravel(), bitorder="little") for mask in masks])
        self.assertEqual(self.rejected({**arrays, "packed_custom_mask": packed, "mask_indptr": right}, "flashinfer"), [
            "mask_indptr[4]: is 72; allowed: [0, 11], the bytes of packed_custom_mask; these offsets count bits: offsets of a "
            "packed mask count bytes, as segment_packbits returns them"])
        for more, text in [
                ({"mask_indptr": right}, "mask_indptr: is given without custom_mask or packed_custom_mask: save the mask too"),
                ({"custom_mask": values, "mask_indptr": right[:-1]},
                 "mask_indptr: has 4 entries; allowed: 5; one offset per sequence, and the end"),
                ({"attn_mask": np.ones((3, 14), bool), "mask_indptr": right},
                 "mask_indptr: has no effect with attn_mask, whose axes show its sequences: pass --ignore mask_indptr"),
                ({"packed_custom_mask": packed.astype(np.int32)},
                 "packed_custom_mask: is i32; allowed: u8; packed bits are u8, lowest bit first"),
                ({"custom_mask": values, "attn_mask": np.ones((3, 14), bool)},
                 "attn_mask: is given together with custom_mask: keep one mask"),
                ({"custom_mask": values, "tree_mask": values}, "tree_mask: is given together with custom_mask: keep one mask"),
                ({"custom_mask": np.append(values, True)},
                 "custom_mask: has shape [73], but the queries and keys of all sequences need [72]: cut it, or save mask_indptr "
                 "[B + 1] with the first value of each sequence")]:
            self.assertEqual(self.rejected({**arrays, **more}, "flashinfer"), [text])


def tree(rng, nodes):
    """Which nodes a node sees: itself, and the ancestors of a random parent."""
    seen = np.eye(nodes, dtype=bool)
    for i in range(1, nodes):
        seen[i] |= seen[rng.integers(0, i)]
    return seen


class Trees(Folder):
    def case(self, seed, queries, prefixes=(3, 0, 9)):
        lengths = tuple(n + count for n, count in zip(prefixes, queries))
        cache, arrays, rng = batch(seed, lengths=lengths, queries=queries)
        trees = [tree(rng, count) for count in queries]
        masks = [np.concatenate([np.ones((len(own), n), bool), own], 1) for n, own in zip(prefixes, trees)]
        want = reference(arrays["q"], list(zip(cache.k, cache.v)), hidden(masks))
        return {**LAYOUTS["sglang"][0](cache), **arrays}, trees, masks, want

    def test_the_three_modes_of_sglang(self):
        for nodes, dtype in [(5, np.uint8), (8, np.uint8), (9, np.uint16), (17, np.uint32), (32, np.uint32)]:
            arrays, trees, masks, want = self.case(nodes, (nodes,) * 3)
            bits = np.concatenate([(own * (1 << np.arange(nodes, dtype=np.uint64))).sum(-1) for own in trees]).astype(dtype)
            for name, values in [("FULL_MASK", np.concatenate([m.ravel() for m in masks])),
                                 ("QLEN_ONLY", np.concatenate([own.ravel() for own in trees])),
                                 ("QLEN_ONLY_BITPACKING", bits), ("[B, S, S]", np.stack(trees))]:
                with self.subTest(nodes=nodes, mode=name):
                    self.assert_output(self.golden({**arrays, "tree_mask": values}, "sglang"), want)

    def test_trees_of_different_sizes_in_one_list(self):
        arrays, trees, masks, want = self.case(40, (4, 6, 3))
        bits = np.concatenate([(own * (1 << np.arange(len(own)))).sum(-1) for own in trees]).astype(np.uint8)
        for values in [np.concatenate([m.ravel() for m in masks]), np.concatenate([own.ravel() for own in trees]), bits]:
            self.assert_output(self.golden({**arrays, "tree_mask": values}, "sglang"), want)

    def test_packed_rows_of_more_nodes_than_an_integer_has_bits(self):
        arrays, trees, _, want = self.case(41, (35,) * 3)
        rows = np.zeros((3, 35, 64), bool)
        rows[..., :35] = trees
        packed = np.packbits(rows, axis=-1, bitorder="little").view(np.int32)
        self.assertEqual(packed.shape, (3, 35, 2))
        self.assert_output(self.golden({**arrays, "spec_decoding_packed_mask": packed}, "sglang"), want)

    def test_a_mask_of_all_keys_is_not_read_as_bits_of_a_tree(self):
        arrays, _, masks, want = self.case(44, (5,) * 3)
        all_keys = padded(masks, 5, 14, False)
        step = "a mask of all keys is attn_mask [B, Sq, Sk], or one list"
        for dtype in (bool, np.uint8, np.int8, np.float32):
            with self.subTest(dtype=dtype):
                self.assertEqual(self.rejected({**arrays, "tree_mask": all_keys.astype(dtype)}, "sglang"), [
                    "tree_mask: has shape [3, 5, 14]; allowed: [S, S], [3, S, S], bits as [3, S, W] of at least 16 each, or one "
                    f"list of all sequences; S is the number of queries of a sequence; {step}"])
        for dtype in (np.int16, np.int32, np.int64):
            bits = dtype().itemsize * 8
            found = self.rejected({**arrays, "tree_mask": all_keys.astype(dtype)}, "sglang")
            places = [(b, i, int(np.flatnonzero(all_keys[b, i, 1:])[0]) + 1) for b in range(3) for i in range(5)
                      if all_keys[b, i, 1:].any()]
            self.assertGreater(len(places), 8)
            self.assertEqual(found[:8], [
                f"tree_mask[{b}, {i}, {word}] bit 0: is 1 in the row of query {i} of sequence {b}, whose tree has 5 nodes; "
                f"allowed: bits 0 to 4 of a row; {step}" for b, i, word in places[:8]], bits)
        self.assert_output(self.golden({**arrays, "attn_mask": all_keys}, "sglang"), want)

    def test_rows_of_bits_may_be_wider_than_the_tree_and_hold_0_there(self):
        arrays, trees, _, want = self.case(45, (5,) * 3)
        bits = np.stack([(own * (1 << np.arange(5))).sum(-1) for own in trees])
        for dtype in (np.int16, np.int32, np.uint32, np.int64):
            rows = np.zeros((3, 5, 4), dtype)
            rows[..., 0] = bits
            self.assert_output(self.golden({**arrays, "tree_mask": rows}, "sglang"), want)
        rows[1, 2, 0] |= 1 << 5
        rows[2, 4, 3] = 1 << 9
        found = self.rejected({**arrays, "tree_mask": rows}, "sglang")
        self.assertEqual([line.split(":")[0] for line in found], ["tree_mask[1, 2, 0] bit 5", "tree_mask[2, 4, 3] bit 9"])

    def test_the_bias_of_vllm_is_added(self):
        arrays, trees, masks, _ = self.case(42, (6,) * 3)
        rng = np.random.default_rng(42)
        cache, _, _ = batch(42, lengths=(9, 6, 15), queries=(6, 6, 6))  # the same cache
        q, rows = arrays["q"], list(zip(cache.k, cache.v))
        shared = np.where(trees[0], 0, -np.inf).astype(np.float32)
        own = [np.where(np.concatenate([m[:, :-6], trees[0]], 1), 0, -np.inf)[None] for m in masks]
        for name in ("tree_attn_bias", "qq_bias", "tree_mask"):
            self.assert_output(self.golden({**arrays, name: shared}, "sglang"), reference(q, rows, own))
        bias = np.where(np.stack(trees), rng.standard_normal((3, 6, 6)), -np.inf).astype(np.float32)
        own = [np.concatenate([np.zeros((6, m.shape[1] - 6)), x], 1)[None] for m, x in zip(masks, bias)]
        self.assert_output(self.golden({**arrays, "tree_attn_bias": bias}, "sglang"), reference(q, rows, own))
        self.assertEqual(self.rejected({**arrays, "tree_mask": trees[0].astype(np.float32)}, "sglang"), [
            "tree_mask: holds only 0 and 1 as f32; allowed: integers of 0 and 1, or floats of 0 and -inf; a float mask is added "
            "to the scores"])

    def test_lists_of_other_sizes_name_all_that_fit(self):
        arrays, _, _, _ = self.case(43, (9,) * 3)
        step = "the lengths count this step's tokens: the queries are the last keys"
        for values, what in [(np.ones(40, bool), "u8 [40]"), (np.ones(27, np.uint8), "u8 [27]"),
                             (np.ones(27, np.float32), "f32 [27]")]:
            self.assertEqual(self.rejected({**arrays, "tree_mask": values}, "sglang"), [
                f"tree_mask: is {what}; allowed: [351] for all keys, [243] for queries only, or [27] integers of at least 9 "
                f"bits; {step}"])


class Doubts(Folder):
    def warnings(self, arrays, *options):
        self.save("in.npz", arrays)
        done = kvscope("golden", "--input", self.path("in.npz"), "--layout", "nhd", "--out", self.path("golden.npz"), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line for line in done.stderr.splitlines() if "reports count" not in line]

    def test_floats_of_0_and_1_are_added_with_a_warning(self):
        cache, queries, rng = batch(70, query_heads=2)
        arrays = {**LAYOUTS["nhd"][0](cache), **queries}
        mask = padded(ragged_masks(cache, rng), 3, 14, False)
        for dtype, name in [(np.float32, "f32"), (np.float16, "f16"), (np.float64, "f64")]:
            self.assertEqual(self.warnings({**arrays, "attn_mask": mask.astype(dtype)}), [
                f"kvscope: warning: attn_mask: holds only 0 and 1 as {name}, and a float mask is added to the scores: it hides no "
                "key; save a mask of 0 and 1 as bool"])
        own = [m[None, :count, :n].astype(float) for m, count, n in zip(mask, cache.queries, cache.lengths)]
        self.assert_output(self.golden({**arrays, "attn_mask": mask.astype(np.float32)}, "nhd"),
                           reference(queries["q"], list(zip(cache.k, cache.v)), own))
        halves = mask.astype(np.float32)
        halves[0, 0, 0] = 0.5
        unread = np.zeros((4, 3, 14), np.float32)
        unread[0, 2] = 1  # sequence 0 has one query
        for silent in (halves, unread, np.where(mask, 0, -np.inf).astype(np.float32), mask):
            self.assertEqual(self.warnings({**arrays, "attn_mask": silent}), [])

    def test_padding_of_sequences_is_not_silently_a_mask_of_queries(self):
        cache, queries, _ = batch(71, lengths=(9, 5, 7), queries=(3, 3, 3))
        arrays = {**LAYOUTS["nhd"][0](cache), **queries}
        padding = np.arange(9) < np.array([9, 5, 7])[:, None]
        self.assertEqual(self.warnings({**arrays, "attn_mask": padding}), [
            "kvscope: warning: attn_mask: has as many rows as there are sequences, and each row shows exactly the keys of its "
            "sequence: 9 in row 0, 5 in row 1: two axes are read as [Sq, Sk], a row for each query of all sequences; padding of "
            "each sequence is [3, 1, Sk]"])
        causal = np.arange(9) <= 6 + np.arange(3)[:, None]
        for silent in (padding[:, None], padding[::-1], causal, np.ones((3, 9), bool)):
            self.assertEqual(self.warnings({**arrays, "attn_mask": silent}), [])
        cache, queries, _ = batch(72, lengths=(9, 5, 7), queries=(2, 2, 2))
        self.assertIn("attn_mask: has 3 rows; allowed: 1, shared by all queries, or 2, the queries of sequence 0; row i is query i "
                      "of its sequence; padding of each sequence is [3, 1, Sk]",
                      self.rejected({**LAYOUTS["nhd"][0](cache), **queries, "attn_mask": padding}))
        one, queries, _ = batch(73, lengths=(9,), queries=(1,))
        self.assertEqual(self.warnings({**LAYOUTS["nhd"][0](one), **queries, "attn_mask": padding[:1]}), [])

    def test_options_of_other_masks_are_refused_if_they_are_given(self):
        cache, queries, _ = batch(74)
        self.save("in.npz", {**LAYOUTS["nhd"][0](cache), **queries, "attention_bias": np.zeros((3, 14), np.float32)})
        for options, names in [(["--mask", "causal"], ["--mask"]), (["--mask", "none"], ["--mask"]),
                               (["--alignment", "top_left"], ["--alignment"]),
                               (["--mask", "causal", "--alignment", "bottom_right"], ["--mask", "--alignment"])]:
            done = kvscope("golden", "--input", self.path("in.npz"), "--layout", "nhd", "--out", self.path("no.npz"), *options)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            text = "has no effect with attention_bias, which states the keys of each query: remove it, or pass --ignore "
            self.assertEqual(done.stderr.splitlines(),
                             [f"kvscope: command line: {name}: {text}attention_bias" for name in names])
            self.assertFalse(os.path.exists(self.path("no.npz")))
            done = kvscope("golden", "--input", self.path("in.npz"), "--layout", "nhd", "--out", self.path("golden.npz"), *options,
                           "--ignore", "attention_bias")
            self.assertEqual(done.returncode, 0, done.stderr)


class Scaled(Folder):
    def test_masks_of_0_and_1_with_scales_by_place(self):
        cache, queries, rng = batch(75)
        arrays = {**LAYOUTS["nhd"][0](cache), **queries}
        masks = ragged_masks(cache, rng)
        blocks, page = arrays["k_cache"].shape[:2]
        flat = np.concatenate([m.ravel() for m in masks])
        # FlashInfer's mask is a choice of keys in any type; floats of other masks are added to scores.
        lists = [("attn_mask", padded(masks, 3, 14, False)), ("custom_mask", flat), ("custom_mask", flat.astype(np.float32)),
                 ("custom_mask", flat.astype(np.float16)),
                 ("packed_custom_mask", np.concatenate([np.packbits(m.ravel(), bitorder="little") for m in masks]))]
        for shape, given in [((blocks, page), "kv"), ((blocks,), "kv"), ((blocks, page), "k"), ((blocks,), "v")]:
            scales = {of: rng.uniform(0.5, 2, shape).astype(np.float32) if of in given else np.ones(shape) for of in "kv"}
            rows = []
            for b, n in enumerate(cache.lengths):
                at = np.arange(n)
                block = arrays["block_table"][b][at // page]
                ks, vs = ((s[block, at % page] if s.ndim == 2 else s[block]).astype(float) for s in scales.values())
                rows.append((cache.k[b] * ks[:, None, None], cache.v[b] * vs[:, None, None]))
            want = reference(queries["q"], rows, hidden(masks))
            for name, mask in lists:
                with self.subTest(shape=shape, scales=given, mask=name, type=mask.dtype):
                    stored = {f"{of}_scale": scales[of] for of in given}
                    self.assert_output(self.golden({**arrays, **stored, name: mask}, "nhd"), want)


class Programs(Folder):
    def test_a_conversion_gives_each_key_its_column(self):
        # Left padding: a column for each position. The mask is shared, so the sequences need masks of their own.
        cache, queries, rng = batch(50, lengths=(5, 9, 3), queries=(3, 3, 3))
        q = queries["q"]
        arrays = {**LAYOUTS["hf"][0](cache), "q": q.reshape(3, 3, 4, 16).transpose(0, 2, 1, 3)}
        positions = arrays["key_cache"].shape[2]
        self.assertGreater(positions, 9)
        for shape in [(3, 1, 3, positions), (1, 1, 3, positions), (3, positions), (1, 4, 3, positions), (3, 3, positions)]:
            mask = rng.random(shape) < 0.6
            want = self.golden({**arrays, "attn_mask": mask}, "hf")
            self.save("a.npz", {**arrays, "attn_mask": mask})
            for to in ["nhd", "flashinfer", "sglang", "varlen", "dense", "max"]:
                with self.subTest(shape=shape, to=to):
                    done = kvscope("convert", self.path("a.npz"), "--from", "hf", "--to", to, "--out", self.path("b.npz"))
                    self.assertEqual(done.returncode, 0, done.stderr)
                    with np.load(self.path("b.npz")) as file:
                        found = self.golden({name: file[name] for name in file.files if name != "manifest.json"}, to,
                                            *(["--layer", 0] if to == "max" else []))
                    self.assert_output(found, want)

    def test_a_conversion_cuts_columns_that_only_the_table_has(self):
        cache, queries, rng = batch(51)
        arrays = {**LAYOUTS["nhd"][0](cache), **queries}
        mask = padded(ragged_masks(cache, rng), 3, arrays["block_table"].shape[1] * cache.page, True)
        want = self.golden({**arrays, "attn_mask": mask}, "nhd")
        done = kvscope("convert", self.path("in.npz"), "--from", "nhd", "--to", "varlen", "--out", self.path("b.npz"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with np.load(self.path("b.npz")) as file:
            self.assertEqual(file["attn_mask"].shape, (4, 3, 14))
            self.assert_output(self.golden({name: file[name] for name in file.files if name != "manifest.json"}, "varlen"),
                               want)

    def test_kernels_that_misread_a_mask_are_diagnosed_in_each_form(self):
        cache, queries, rng = batch(52, lengths=(11, 17, 9), queries=(4, 4, 4))
        rows, q = list(zip(cache.k, cache.v)), queries["q"]
        trees = [tree(rng, 4) for _ in range(3)]
        masks = [np.concatenate([np.ones((4, n - 4), bool), own], 1) for n, own in zip(cache.lengths, trees)]
        bits = np.concatenate([(own * (1 << np.arange(4))).sum(-1) for own in trees]).astype(np.uint8)
        free = [rng.random((4, n)) < 0.6 for n in cache.lengths]
        for name, mask, own in [("attn_mask", padded(free, 4, 17, False), free), ("tree_mask", bits, masks),
                                ("tree_mask", np.concatenate([m.ravel() for m in masks]), masks),
                                ("tree_mask", np.concatenate([m.ravel() for m in trees]), masks)]:
            self.golden({**LAYOUTS["nhd"][0](cache), **queries, name: mask}, "nhd")
            every = hidden([np.ones_like(m) for m in own])
            last = hidden([m & (np.arange(m.shape[1]) <= m.shape[1] - 4 + np.arange(4)[:, None]) for m in own])
            turned = [np.concatenate([m[:, :-4], m[:, -4:].T], 1) for m in masks]
            cases = [("mask_ignored", every)]
            cases += [("mask_and_causal", last)] if name == "attn_mask" else []
            cases += [("mask_transposed", hidden(turned))] if len(mask) == 48 and name == "tree_mask" else []
            for fault, biases in cases:
                o, lse = reference(q, rows, biases)
                self.save("c.npz", {"o": o.astype(np.float32), "lse": lse.astype(np.float32)})
                done = kvscope("verify", self.path("golden.npz"), self.path("c.npz"), "--json")
                report = json.loads(done.stdout)
                self.assertFalse(report["passed"])
                self.assertEqual(report["diagnosis"]["explanations"][0]["name"], fault, (name, mask.shape))
            o, lse = reference(q, rows, hidden(own))
            self.save("c.npz", {"o": o.astype(np.float32), "lse": lse.astype(np.float32)})
            self.assertEqual(kvscope("verify", self.path("golden.npz"), self.path("c.npz")).returncode, 0)


class Reduced(Folder):
    """A kernel that leaves out key 5 of sequences of 7 keys or more, with masks in forms that list their sequences."""

    def reduced(self, arrays, kernel):
        self.save("in.npz", arrays)
        self.golden(arrays, "nhd")
        server = Server(self.folder)
        server.start()
        server.kernel = kernel
        done = kvscope("reduce", self.path("golden.npz"), "--command", server.command, "--out", self.path("small.npz"),
                       "--json")
        for name in ("ask", "answer"):
            os.remove(self.path(name))
        self.assertEqual((done.returncode, done.stderr), (0, ""), server.error)
        self.assertIsNone(server.error)
        return json.loads(done.stdout)["to"]

    def kernel(self, masks_of):
        def run(t):
            queries = np.diff(t["query_offsets"])
            rows = LAYOUTS["nhd"][1](t, None)
            biases = hidden(masks_of(t, queries, [len(k) for k, _ in rows]))
            for bias in biases:
                if bias.shape[2] >= 7:
                    bias[..., 5] = -np.inf
            return reference(t["q"], rows, biases)
        return run

    def test_offsets_follow_their_mask(self):
        cache, queries, rng = batch(60)
        masks = [rng.random((count, n)) < 0.7 for count, n in zip(cache.queries, cache.lengths)]
        for mask in masks:
            mask[:, :6] = True
        packed = [np.packbits(m.ravel(), bitorder="little") for m in masks]
        arrays = {**LAYOUTS["nhd"][0](cache), **queries, "packed_custom_mask": np.concatenate([*packed, [7, 7]]).astype(np.uint8),
                  "mask_indptr": np.cumsum([0, *(len(m) for m in packed)]).astype(np.int32)}

        def masks_of(t, counts, keys):
            made = []
            for b, (count, n) in enumerate(zip(counts, keys)):
                own = t["packed_custom_mask"][t["mask_indptr"][b]:t["mask_indptr"][b + 1]]
                made.append(np.unpackbits(own, bitorder="little")[:count * n].reshape(count, n))
            return made

        self.assertEqual(self.reduced(arrays, self.kernel(masks_of)),
                         "1 sequence, 1 query, 7 keys, 1 KV head, 1 query head, head size 1, 2 blocks")

    def test_ragged_dense_masks_and_shared_rows(self):
        cache, queries, rng = batch(61)
        for rows in (3, 1):
            mask = rng.random((4, rows, 14)) < 0.7
            mask[..., :6] = True

            def masks_of(t, counts, keys):
                return [np.broadcast_to(m, (max(counts), m.shape[1]))[:count, :n]
                        for m, count, n in zip(t["attn_mask"], counts, keys)]

            words = self.reduced({**LAYOUTS["nhd"][0](cache), **queries, "attn_mask": mask}, self.kernel(masks_of))
            self.assertEqual(words, "1 sequence, 1 query, 7 keys, 1 KV head, 1 query head, head size 1, 2 blocks")

    def test_lists_of_trees_keep_their_sequence(self):
        cache, queries, rng = batch(62, lengths=(5, 8, 3, 14), queries=(2, 3, 3, 4))
        trees = [tree(rng, count) for count in cache.queries]
        masks = [np.concatenate([np.ones((len(own), n - len(own)), bool), own], 1) for n, own in zip(cache.lengths, trees)]
        bits = np.concatenate([(own * (1 << np.arange(len(own)))).sum(-1) for own in trees]).astype(np.uint8)

        def full(t, counts, keys):
            ends = np.cumsum([0, *(c * n for c, n in zip(counts, keys))])
            return [t["tree_mask"][a:b].reshape(c, n) for a, b, c, n in zip(ends, ends[1:], counts, keys)]

        def packed(t, counts, keys):
            ends = np.cumsum([0, *counts])
            return [np.concatenate([np.ones((c, n - c), int), t["tree_mask"][a:b, None] >> np.arange(c) & 1], 1)
                    for a, b, c, n in zip(ends, ends[1:], counts, keys)]

        for values, masks_of in [(np.concatenate([m.ravel() for m in masks]), full), (bits, packed)]:
            arrays = {**LAYOUTS["nhd"][0](cache), **queries, "tree_mask": values}
            # The queries of a tree are kept, and with them the keys of the sequence.
            self.assertRegex(self.reduced(arrays, self.kernel(masks_of)), "^1 sequence, [34] queries, [0-9]+ keys, 1 KV head")


if __name__ == "__main__":
    program.main()
