#!/usr/bin/python3
"""Inputs of PyTorch and Hugging Face users, of MLC's sliding window and of FlashInfer's NVFP4 cache: dense attn_mask tensors,
a length_info of three rows, and interleaved scales, against attention in NumPy; and their golden inputs made smaller.

    dense_masks_test.py --kvscope PROGRAM
"""
import os
import sys

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from engine_layouts import E2M1, E4M3, LAYOUTS, Cache, attention  # noqa: E402
from faulty_attention import to_bits  # noqa: E402
from program import kvscope  # noqa: E402

HQ = 4
SCALE = 0.25


class Folder(program.FolderTest):
    def run_in(self, *arguments):
        return kvscope(*arguments, cwd=self.folder)

    def golden(self, arrays, *options):
        np.savez(os.path.join(self.folder, "in.npz"), **arrays)
        done = self.run_in("golden", "--input", "in.npz", "--out", "golden.npz", "--scale", SCALE, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        with np.load(os.path.join(self.folder, "golden.npz")) as file:
            return file["o"], file["lse"]

    def assert_output(self, found, want):
        for got, expected in zip(found, want):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)

    def rejected(self, arrays, *options):
        np.savez(os.path.join(self.folder, "in.npz"), **arrays)
        done = self.run_in("golden", "--input", "in.npz", "--out", "no.npz", *options)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        return done.stderr


def masked(q, rows, masks):
    """o and lse of [queries, keys] masks by sequence; q [T, Hq, D], rows (k, v) by sequence."""
    o, lse, row = [], [], 0
    for (k, v), mask in zip(rows, masks):
        for seen in mask.astype(bool):
            one = attention(q[row:row + 1], [k[seen].astype(float)], [v[seen].astype(float)], [1], SCALE)
            o.append(one[0]), lse.append(one[1])
            row += 1
    return np.concatenate(o), np.concatenate(lse)


class DenseMasks(Folder):
    def case(self, seed, lengths=(7, 7, 7), queries=3):
        cache = Cache(seed, lengths=lengths)
        cache.queries = np.full(len(lengths), queries)
        rng = np.random.default_rng(seed)
        q = rng.standard_normal((len(lengths), HQ, queries, 16)).astype(np.float32)
        masks = rng.random((len(lengths), queries, max(lengths))) < 0.6
        masks[..., 0] = True
        return cache, q, masks

    def test_of_every_shape_and_type(self):
        cache, q, masks = self.case(1)
        rows = list(zip(cache.k, cache.v))
        flat = q.transpose(0, 2, 1, 3).reshape(9, HQ, 16)
        paged = {**LAYOUTS["nhd"][0](cache), "q": q.transpose(0, 2, 1, 3)}
        padded = {"key_cache": np.stack(cache.k).transpose(0, 2, 1, 3), "value_cache": np.stack(cache.v).transpose(0, 2, 1, 3),
                  "q": q}
        shared = np.broadcast_to(masks[:1], masks.shape)
        additive = np.where(masks, 0, -np.inf).astype(np.float32)
        for name, given, own in [
                ("[B, Sq, Sk]", masks, masks), ("[B, 1, Sq, Sk]", masks[:, None], masks),
                ("[B, Hq, Sq, Sk]", np.broadcast_to(masks[:, None], (3, HQ, 3, 7)), masks),
                ("[Sq, Sk]", masks[0], shared), ("[1, 1, Sq, Sk]", masks[:1, None], shared),
                ("integers", masks[:, None].astype(np.int64), masks), ("-inf", additive[:, None], masks),
                ("lowest f16", np.where(masks, 0, np.finfo(np.float16).min).astype(np.float16)[:, None], masks),
                ("lowest f32", np.where(masks, 0, np.finfo(np.float32).min).astype(np.float32)[0], shared)]:
            want = masked(flat, rows, own)
            for layout, arrays in [("nhd", paged), ("hf", padded)]:
                with self.subTest(mask=name, layout=layout):
                    found = self.golden({**arrays, "attn_mask": np.ascontiguousarray(given)}, "--layout", layout)
                    self.assert_output(found, want)

    def test_a_padded_cache_has_a_column_for_each_position(self):
        cache, q, _ = self.case(2, lengths=(5, 9, 3))
        rng = np.random.default_rng(2)
        arrays = LAYOUTS["hf"][0](cache)  # padded on the left
        positions = arrays["key_cache"].shape[2]
        mask = rng.random((3, 1, 3, positions)) < 0.6
        own = []
        for b, n in enumerate(cache.lengths):
            mask[b, :, :, positions - n] = True
            own.append(mask[b, 0, :, positions - n:])
        found = self.golden({**arrays, "q": q, "attn_mask": mask}, "--layout", "hf")
        self.assert_output(found, masked(q.transpose(0, 2, 1, 3).reshape(9, HQ, 16), list(zip(cache.k, cache.v)), own))

    def test_masks_that_cannot_be_read_name_the_place(self):
        cache, q, masks = self.case(3)
        arrays = {**LAYOUTS["nhd"][0](cache), "q": q.transpose(0, 2, 1, 3)}
        infinite, unknown = np.zeros((3, 7), np.float32), np.zeros((3, HQ, 3, 7), np.float32)
        infinite[1, 2], unknown[2, 1, 0, 3] = np.inf, np.nan
        for mask, text in [
                (masks[:2], "attn_mask: is u8 [2, 3, 7]; it is [Sq, Sk], [3, Sq, Sk] or [3, 4, Sq, Sk]"),
                (masks[:, :2], "attn_mask: has 2 rows; allowed: 1, shared by all queries, or 3, the queries of sequence 0; row i is query i of its "
                                  "sequence"),
                (masks[..., :6], "attn_mask: has 6 columns; allowed: 1, shared by all keys, or 7, the keys of sequence 0, or 12, the tokens that the "
                                  "table or the cache holds for it; save a column for each key"),
                (np.zeros((3, 2, 3, 7)), "attn_mask: is f64 [3, 2, 3, 7]; it is [Sq, Sk], [3, Sq, Sk] or [3, 4, Sq, Sk]"),
                (infinite, "attn_mask[1, 2]: is inf; allowed: a finite number, and -inf or at most -10000 for a hidden key"),
                (unknown, "attn_mask[2, 1, 0, 3]: is nan; allowed: a finite number, and -inf or at most -10000")]:
            self.assertIn(text, self.rejected({**arrays, "attn_mask": mask}, "--layout", "nhd"))
        padded = LAYOUTS["hf"][0](cache)
        padded["attention_mask"] = np.ones((3, 1, 3, 9), np.int64)
        self.assertIn("attention_mask: has shape [3, 1, 3, 9], a mask of queries and keys: save it as attn_mask",
                      self.rejected({**padded, "q": q}, "--layout", "hf"))


def biased(q, rows, bias):
    """o and lse; q [B, Sq, Hq, D], rows (k, v) by sequence, bias [B, Hq, Sq, Sk]. A row without a key: 0 and -inf."""
    shape = (q.shape[0] * q.shape[1], q.shape[2])
    o, lse = np.zeros((*shape, rows[0][1].shape[-1])), np.full(shape, -np.inf)
    for b, (k, v) in enumerate(rows):
        for i in range(q.shape[1]):
            for h in range(q.shape[2]):
                kv_head = h * k.shape[1] // q.shape[2]
                s = SCALE * (k[:, kv_head].astype(float) @ q[b, i, h].astype(float)) + bias[b, h, i, :len(k)]
                if np.isneginf(s).all():
                    continue
                p = np.exp(s - s.max())
                o[b * q.shape[1] + i, h] = p @ v[:, kv_head] / p.sum()
                lse[b * q.shape[1] + i, h] = s.max() + np.log(p.sum())
    return o, lse


class Biases(Folder):
    """attn_mask as PyTorch's SDPA adds it: any number, by head."""

    def case(self, seed):
        cache = Cache(seed, lengths=(7, 7, 7))
        cache.queries = np.full(3, 3)
        rng = np.random.default_rng(seed)
        q = rng.standard_normal((3, 3, HQ, 16)).astype(np.float32)
        bias = rng.standard_normal((3, HQ, 3, 7)).astype(np.float32)
        return {**LAYOUTS["nhd"][0](cache), "q": q}, list(zip(cache.k, cache.v)), bias, rng

    def saved(self, o, lse):
        np.savez(os.path.join(self.folder, "out.npz"), o=o.astype(np.float32), lse=lse.astype(np.float32))

    def test_of_every_shape_and_type(self):
        arrays, rows, bias, rng = self.case(4)
        seen = rng.random(bias.shape) < 0.6
        seen[1, 2, 0] = False  # a row without a key, of one head
        hidden = np.where(seen, bias, -np.inf).astype(np.float32)
        by_head = np.where(seen, 0, -np.inf)
        for name, given, own in [
                ("[B, Hq, Sq, Sk]", bias, bias), ("with -inf", hidden, hidden),
                ("[1, Hq, Sq, Sk]", hidden[1:2], np.broadcast_to(hidden[1:2], bias.shape)),
                ("[B, 1, Sq, Sk]", bias[:, :1], np.broadcast_to(bias[:, :1], bias.shape)),
                ("[B, Sq, Sk]", bias[:, 0], np.broadcast_to(bias[:, :1], bias.shape)),
                ("[Sq, Sk]", bias[0, 0], np.broadcast_to(bias[0, 0], bias.shape)),
                ("bool by head", seen, by_head), ("integers by head", seen.astype(np.int64), by_head),
                ("f16", bias.astype(np.float16), bias.astype(np.float16)),
                ("lowest f32", np.where(seen, bias, np.finfo(np.float32).min).astype(np.float32), hidden)]:
            want = biased(arrays["q"], rows, own.astype(float))
            with self.subTest(mask=name):
                arrays["attn_mask"] = np.ascontiguousarray(given)
                self.assert_output(self.golden(arrays, "--layout", "nhd"), want)
                fast = self.golden(arrays, "--layout", "nhd", "--accuracy", "fast")
                for got, expected in zip(fast, want):
                    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)

    def test_minus_10000_hides_a_key_in_each_type(self):
        arrays, rows, bias, rng = self.case(7)
        seen = rng.random(bias.shape) < 0.6
        seen[1, 2, 0] = seen[0, :, 1] = False  # rows without a key, of one head and of all
        want = biased(arrays["q"], rows, np.where(seen, 0, -np.inf))
        lowest = np.where(seen, 0, -10000)
        for name, values in [("attn_mask", lowest.astype(np.float16)), ("attn_mask", lowest.astype(np.float32)),
                             ("attn_mask_bf16", to_bits("bf16", lowest))]:
            with self.subTest(name=name, dtype=values.dtype):
                self.assert_output(self.golden({**arrays, name: values}, "--layout", "nhd"), want)
        # The bf16 number above it is a bias.
        above = np.where(seen, 0, -9920)
        found = self.golden({**arrays, "attn_mask_bf16": to_bits("bf16", above)}, "--layout", "nhd")
        self.assert_output(found, biased(arrays["q"], rows, above.astype(float)))

    def test_a_wrong_bias_is_named(self):
        arrays, rows, bias, _ = self.case(5)
        arrays["attn_mask"] = bias
        self.golden(arrays, "--layout", "nhd")
        for used, name in [(0 * bias, "bias_missing"), (np.broadcast_to(bias[:, :1], bias.shape), "bias_of_other_head")]:
            with self.subTest(name=name):
                self.saved(*biased(arrays["q"], rows, used))
                done = self.run_in("diagnose", "golden.npz", "out.npz", "--json")
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn(f'"{name}"', done.stdout.split('"nearest"')[0], done.stdout)

    def test_a_correct_kernel_passes_and_hidden_keys_are_not_counted(self):
        arrays, rows, bias, rng = self.case(6)
        hidden = np.where(rng.random(bias.shape) < 0.5, bias, -np.inf).astype(np.float32)
        hidden[..., 3] = bias[..., 3]
        arrays["attn_mask"] = hidden
        self.golden(arrays, "--layout", "nhd")
        with np.load(os.path.join(self.folder, "golden.npz")) as file:
            counts = (hidden > -np.inf).sum(-1).transpose(0, 2, 1).reshape(9, HQ)
            np.testing.assert_array_equal(file["key_counts"], counts)
            self.assertLess(file["smax"].max(), 20)
        self.saved(*biased(arrays["q"], rows, hidden))
        done = self.run_in("verify", "golden.npz", "out.npz")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class SlidingWindowOfMlc(Folder):
    def arrays(self, cache, windows, sinks):
        made = LAYOUTS["mlc"][0](cache)
        made["length_info"] = np.stack([made["length_info"], windows, sinks]).astype(np.int32)
        q = np.random.default_rng(4).standard_normal((4, HQ, 16)).astype(np.float32)
        return {**made, "q": q}

    def test_keys_are_the_sinks_and_the_window(self):
        cache = Cache(4)  # 5, 8, 1 and 14 tokens
        cache.queries = np.ones(4, int)
        windows, sinks = np.array([0, 5, 0, 9]), np.array([0, 2, 0, 3])
        arrays = self.arrays(cache, windows, sinks)
        kept = [np.r_[0:s, w:n] for n, w, s in zip(cache.lengths, windows, sinks)]
        want = attention(arrays["q"], [k[i].astype(float) for k, i in zip(cache.k, kept)],
                         [v[i].astype(float) for v, i in zip(cache.v, kept)], [1] * 4, SCALE)
        self.assert_output(self.golden(arrays, "--layout", "mlc"), want)
        # A conversion writes the keys that are left.
        done = self.run_in("convert", "in.npz", "--from", "mlc", "--to", "varlen", "--out", "b.npz")
        self.assertEqual(done.returncode, 0, done.stderr)
        with np.load(os.path.join(self.folder, "b.npz")) as made:
            self.assertEqual(made["cu_seqlens_k"].tolist(), [0, 5, 10, 11, 19])
            self.assertEqual(made["k"].tobytes(), np.concatenate([k[i] for k, i in zip(cache.k, kept)]).tobytes())
        done = self.run_in("convert", "in.npz", "--from", "mlc", "--to", "flashinfer_hnd", "--out", "b.npz")
        self.assertIn("pool       new", done.stdout)
        self.assertEqual(self.run_in("lint", "in.npz", "--layout", "mlc").returncode, 0)

    def test_windows_outside_the_pages_are_faults(self):
        cache = Cache(4)
        cache.queries = np.ones(4, int)
        arrays = self.arrays(cache, np.array([0, 9, 0, 0]), np.zeros(4))
        self.assertIn("length_info[:, 1]: has a window from slot 9 after 0 sinks, outside [sinks, 8], the slots of the "
                      "sequence", self.rejected(arrays, "--layout", "mlc"))
        linted = self.run_in("lint", "in.npz", "--layout", "mlc").stdout
        self.assertIn("FAULT    length     length_info[1, 1] is 9; allowed: [0, 8], from the sinks to the slots", linted)
        arrays["length_info"] = arrays["length_info"][:2]
        self.assertIn("length_info: has shape [2, 4]; a sliding window needs [3, 4]",
                      self.rejected(arrays, "--layout", "mlc"))


class Nvfp4OfFlashInfer(Folder):
    def test_scales_in_tiles_of_128_tokens(self):
        """cuBLAS: a tile of 128 rows and 4 scales has row r, scale g at r % 32 * 16 + r // 32 * 4 + g; tiles row by row."""
        rng = np.random.default_rng(8)
        blocks, heads, page, size = 4, 2, 256, 128

        def tiled(scales):
            groups = scales.shape[-1]
            tiles = scales.reshape(blocks, heads, page // 128, 4, 32, groups // 4, 4).transpose(0, 1, 2, 5, 4, 3, 6)
            return np.ascontiguousarray(tiles).reshape(scales.shape)

        table, lengths = np.array([[3, 0], [2, -1]], np.int32), np.array([301, 130])
        q = rng.standard_normal((2, HQ, size)).astype(np.float32)
        common = {"block_table": table, "cache_seqlens": lengths.astype(np.int32), "q": q}
        codes = rng.integers(0, 16, (2, blocks, heads, page, size))
        bytes_of = rng.integers(0, 0x70, (2, blocks, heads, page, size)).astype(np.uint8)
        for name, group, scale_type, decoded, cache, dtype in [
                ("NVFP4", 16, "e4m3", E4M3, (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8), "e2m1"),
                ("MXFP8", 32, "e8m0", 2.0 ** (np.arange(256) - 127), bytes_of, "e4m3")]:
            scales = rng.integers(*((0x28, 0x40) if scale_type == "e4m3" else (122, 128)),
                                  (2, blocks, heads, page, size // group)).astype(np.uint8)
            elements = E2M1[codes] if dtype == "e2m1" else E4M3[bytes_of]
            values = elements * np.repeat(decoded[scales], group, -1)
            plain = [[values[which][table[b, np.arange(n) // page], :, np.arange(n) % page] for b, n in enumerate(lengths)]
                     for which in (0, 1)]
            want = attention(q, *plain, [1, 1], SCALE)
            arrays = {"k_cache": cache[0], "v_cache": cache[1], **common}
            options = ["--layout", "hnd", "--cache-dtype", dtype]
            for k_order, v_order in [("tiled", "tiled"), ("tiled", "linear"), ("linear", "tiled")]:
                with self.subTest(name=name, k=k_order, v=v_order):
                    arrays[f"k_block_scale_{scale_type}"] = tiled(scales[0]) if k_order == "tiled" else scales[0]
                    arrays[f"v_block_scale_{scale_type}"] = tiled(scales[1]) if v_order == "tiled" else scales[1]
                    found = self.golden(arrays, *options, "--k-scales", k_order, "--v-scales", v_order)
                    for got, expected in zip(found, want):
                        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-9)
            # The golden states the orders, so a diagnosis reads the same values from its inputs.
            np.savez(os.path.join(self.folder, "c.npz"), o=found[0].astype(np.float32) * np.float32(1.5))
            self.assertNotIn("no diagnosis", self.run_in("verify", "golden.npz", "c.npz").stdout)
        small = {**arrays, "k_cache": cache[0, :, :, :64], "v_cache": cache[1, :, :, :64]}
        for key in [f"k_block_scale_{scale_type}", f"v_block_scale_{scale_type}"]:
            small[key] = arrays[key][:, :, :64, :2]
        words = self.rejected(small, *options, "--granularity", 64, "--k-scales", "tiled")
        self.assertIn("--k-scales: tiled: 128 slots share a run, which does not divide the page size 64", words)
        self.assertIn("--k-scales: tiled: 4 scales of a slot share a run, which does not divide the 2 scales of a head", words)

    def test_interleaved_scales_of_v(self):
        """[page, D / 16] tiles of a head: K's row by row, V's with the scales of 4 tokens side by side."""
        rng = np.random.default_rng(7)
        blocks, heads, page, size = 5, 2, 8, 64
        codes = rng.integers(0, 16, (2, blocks, heads, page, size))
        packed = (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8)
        scales = rng.integers(0x30, 0x48, (2, blocks, heads, page, size // 16)).astype(np.uint8)
        groups = size // 16
        woven = scales[1].reshape(blocks, heads, page // 4, 4, groups).swapaxes(-1, -2).reshape(blocks, heads, page, groups)
        values = E2M1[codes] * np.repeat(E4M3[scales], 16, -1) * 0.5
        table, lengths = np.array([[3, 0], [2, -1]], np.int32), np.array([13, 4])
        plain = [[values[which][table[b, np.arange(n) // page], :, np.arange(n) % page] for b, n in enumerate(lengths)]
                 for which in (0, 1)]
        q = rng.standard_normal((2, HQ, size)).astype(np.float32)
        common = {"block_tables": table, "seq_lens": lengths.astype(np.int32), "q": q, "k_scale": np.float32(0.5),
                  "v_scale": np.float32(0.5)}
        want = attention(q, *plain, [1, 1], SCALE)
        trtllm = {"k_cache": packed[0], "v_cache": packed[1], "k_block_scale_e4m3": scales[0], "v_block_scale_e4m3": woven}
        options = ["--layout", "flashinfer_trtllm", "--cache-dtype", "e2m1"]
        found = self.golden({**trtllm, **common}, *options, "--v-scales", "interleaved")
        self.assert_output(found, want)
        # The golden states the order, so a diagnosis reads the same values from its inputs.
        np.savez(os.path.join(self.folder, "c.npz"), o=found[0].astype(np.float32) * np.float32(1.5))
        verified = self.run_in("verify", "golden.npz", "c.npz")
        self.assertNotIn("no diagnosis", verified.stdout)
        # A conversion writes linear scales. Tokens before heads interleave in the same tiles.
        done = self.run_in("convert", "in.npz", "--from", "flashinfer_trtllm", "--cache-dtype", "e2m1", "--v-scales",
                           "interleaved", "--to", "vllm", "--out", "b.npz")
        self.assertEqual(done.returncode, 0, done.stderr)
        nhd = {key: value.swapaxes(1, 2) for key, value in trtllm.items()}
        tokens_first = {key.replace("block_tables", "block_table"): value for key, value in common.items()}
        found = self.golden({**nhd, **tokens_first}, "--layout", "nhd", "--cache-dtype", "e2m1", "--v-scales", "interleaved")
        self.assert_output(found, want)
        linear = {**trtllm, "v_block_scale_e4m3": scales[1]}
        self.assert_output(self.golden({**linear, **common}, *options), want)

    def test_interleaving_needs_scales_and_pages_of_4(self):
        cache = Cache(8, page=6)
        q = np.zeros((4, HQ, 16), np.float32)
        cache.queries = np.ones(4, int)
        arrays = {**LAYOUTS["nhd"][0](cache), "q": q}
        self.assertIn("--v-scales: interleaved: the input has no block scales of V",
                      self.rejected(arrays, "--layout", "nhd", "--v-scales", "interleaved"))
        scales = np.full((cache.blocks, 6, 2, 1), 0x38, np.uint8)
        arrays |= {"k_block_scale_e4m3": scales, "v_block_scale_e4m3": scales}
        self.assertIn("--v-scales: interleaved: 4 slots share a run, which does not divide the page size 6",
                      self.rejected(arrays, "--layout", "nhd", "--v-scales", "interleaved"))



class LongMasks(Folder):
    def test_masks_of_more_keys_than_a_word_has_bits(self):
        """The keys of a query are 64 to a word: sequences that end within, at and past the end of one."""
        rng = np.random.default_rng(11)
        lengths, page = np.array([150, 64, 129, 1, 65]), 16
        some = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
        counts = -(-lengths // page)
        blocks = rng.permutation(counts.sum() + 2)
        table = np.full((len(lengths), counts.max()), -1, np.int32)
        for b, first in enumerate(np.cumsum(counts) - counts):
            table[b, :counts[b]] = blocks[first:first + counts[b]]
        arrays = {"q": some(lengths.sum(), HQ, 8), "k_cache": some(len(blocks), page, 2, 8), "v_cache": some(len(blocks), page, 2, 8),
                  "block_table": table, "cache_seqlens": lengths.astype(np.int32),
                  "query_offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)}
        options = ["--layout", "nhd"]
        causal = np.tril(np.ones((150, 150), bool))
        want = self.golden(arrays, *options)
        for mask in (causal, np.where(causal, np.float32(0), np.float32(-np.inf))):
            whole = np.zeros((len(lengths), 1, 150, 150), mask.dtype)
            whole[:] = mask
            found = self.golden({**arrays, "attn_mask": whole}, *options)
            self.assertEqual([part.tobytes() for part in found], [part.tobytes() for part in want])
        seen = rng.random((len(lengths), 1, 150, 150)) < 0.5
        found = self.golden({**arrays, "attn_mask": seen}, *options)
        row = 0
        for b, n in enumerate(lengths):
            at = table[b, np.arange(n) // page], np.arange(n) % page
            k, v = (arrays[name][at].astype(float) for name in ("k_cache", "v_cache"))
            for i in range(n):
                for h in range(HQ):
                    keys = seen[b, 0, i, :n]
                    if not keys.any():
                        self.assertEqual((found[1][row, h], found[0][row, h].any()), (-np.inf, False))
                        continue
                    scores = SCALE * k[keys, h // 2] @ arrays["q"][row, h].astype(float)
                    weights = np.exp(scores - scores.max())
                    np.testing.assert_allclose(found[0][row, h], weights @ v[keys, h // 2] / weights.sum(), rtol=1e-11, atol=1e-13)
                    np.testing.assert_allclose(found[1][row, h], scores.max() + np.log(weights.sum()), rtol=1e-12, atol=1e-13)
                row += 1


if __name__ == "__main__":
    program.main()
