#!/usr/bin/python3
"""Layouts of engines, from outside: caches built by NumPy (engine_layouts.py), their golden output against dense attention,
conversion between any two layouts, `layout detect`, `layout diff`, and layouts that a user describes.

    layouts_test.py --kvscope PROGRAM
"""
import itertools
import json
import os
import sys
import zipfile

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from engine_layouts import CHUNKS, E2M1, E4M3, LAYOUTS, POOLS, Cache, attention, cache_array, to_double  # noqa: E402
from program import fine, kvscope  # noqa: E402

HQ = 4
CACHES = {"blocks", "k_cache", "v_cache", "kv_cache", "key_cache", "value_cache", "k_buffer", "v_buffer", "kv_pool", "pages"}


class Folder(program.FolderTest):
    def save(self, name, arrays):
        np.savez(os.path.join(self.folder, name), **arrays)

    def load(self, name):
        with np.load(os.path.join(self.folder, name)) as file:
            return {key: file[key] for key in file.files if key != "manifest.json"}

    def run_in(self, *arguments):
        done = kvscope(*arguments, cwd=self.folder)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))
        return done.stdout

    def refused(self, *arguments):
        done = kvscope(*arguments, cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        return done.stderr

    def golden(self, arrays, *options):
        self.save("in.npz", arrays)
        self.run_in("golden", "--input", "in.npz", "--out", "golden.npz", *options)
        return self.load("golden.npz")

    def assert_output(self, golden, q, k, v, queries, scale):
        o, lse = attention(q, k, v, queries, scale)
        np.testing.assert_allclose(golden["o"], o, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(golden["lse"], lse, rtol=1e-12, atol=1e-13)


def queries_of(cache, seed=9):
    q = np.random.default_rng(seed).standard_normal((cache.queries.sum(), HQ, cache.size)).astype(np.float32)
    return q, {"q": q, "query_offsets": cache.starts(cache.queries)}


def extra(layout, cache):
    """Options that a layout needs beside its name."""
    if layout == "max" or layout == "lmcache":
        return ["--layer", cache.layer]
    return ["--value-size", cache.value_size] if layout == "vllm_diffkv" else []


class GoldenOfEachEngine(Folder):
    def test_is_that_of_dense_attention(self):
        for n, (layout, dtype) in enumerate(itertools.product(LAYOUTS, ["f32", "f16", "bf16", "e4m3"])):
            with self.subTest(layout=layout, dtype=dtype):
                cache = Cache(n, dtype)
                q, tensors = queries_of(cache, n)
                golden = self.golden({**LAYOUTS[layout][0](cache), **tensors}, "--layout", layout, *extra(layout, cache))
                self.assert_output(golden, q, [to_double(dtype, k) for k in cache.k],
                                   [to_double(dtype, v) for v in cache.v], cache.queries, 16 ** -0.5)

    def test_of_a_chunk_of_one_sequence(self):
        for layout in CHUNKS:
            cache = Cache(3, "bf16", lengths=(11,))
            q, tensors = queries_of(cache)
            golden = self.golden({**CHUNKS[layout][0](cache), **tensors}, "--layout", layout, *extra(layout, cache))
            self.assert_output(golden, q, [to_double("bf16", cache.k[0])], [to_double("bf16", cache.v[0])], cache.queries,
                               0.25)

    def test_of_k_and_v_of_different_head_sizes_and_types(self):
        for layout in ["nhd", "vllm_diffkv", "sglang", "sglang_req", "hf", "dense", "varlen"]:
            with self.subTest(layout=layout):
                cache = Cache(4, "bf16", value_size=8)
                q, tensors = queries_of(cache)
                golden = self.golden({**LAYOUTS[layout][0](cache), **tensors}, "--layout", layout, *extra(layout, cache))
                self.assert_output(golden, q, [to_double("bf16", k) for k in cache.k],
                                   [to_double("bf16", v) for v in cache.v], cache.queries, 0.25)
        mixed = Cache(5, "f32")
        arrays = LAYOUTS["varlen"][0](mixed)
        arrays["v_bf16"] = (arrays.pop("v").view(np.uint32) >> 16).astype(np.uint16)
        q, tensors = queries_of(mixed)
        golden = self.golden({**arrays, **tensors}, "--layout", "varlen")
        self.assert_output(golden, q, [k.astype(float) for k in mixed.k],
                           [to_double("bf16", (v.view(np.uint32) >> 16).astype(np.uint16)) for v in mixed.v],
                           mixed.queries, 0.25)

    def test_of_queries_with_heads_first(self):
        q = np.random.default_rng(1).standard_normal((4, HQ, 2, 16)).astype(np.float32)
        cache = Cache(6, lengths=(5, 8, 2, 14))
        cache.queries = np.full(4, 2)
        golden = self.golden({**LAYOUTS["hf"][0](cache), "q": q}, "--layout", "hf")
        rows = q.transpose(0, 2, 1, 3).reshape(8, HQ, 16)
        self.assert_output(golden, rows, [k.astype(float) for k in cache.k], [v.astype(float) for v in cache.v],
                           cache.queries, 0.25)


class Mla(Folder):
    def cache(self, heads=1, dtype="bf16"):
        return Cache(7, dtype, heads=heads, size=24, value_size=16, mla=True)

    def arrays(self, name, c):
        k = c.pool(c.k)
        blocks = {"block_table": c.table(), "cache_seqlens": c.lengths.astype(np.int32)}
        starts = {"kv_indptr": c.starts(-(-c.lengths // c.page)), "kv_indices": np.concatenate(c.rows).astype(np.int32),
                  "kv_len_arr": c.lengths.astype(np.int32)}
        tokens = {"kv_indptr": c.starts(c.lengths), "kv_indices": np.concatenate(c.slots())}
        return c.named({
            "mla": lambda: {"kv_cache": k[:, :, 0], **blocks},
            "mla of several heads": lambda: {"kv_cache": k, **blocks},
            "mla in two": lambda: {"ckv": k[:, :, 0, :16], "kpe": k[:, :, 0, 16:], **blocks},
            "mla_indptr": lambda: {"ckv_cache": k[:, :, 0, :16], "kpe_cache": k[:, :, 0, 16:], **starts},
            "mla_indptr in one": lambda: {"kv_cache": k[:, :, 0], **starts},
            "sglang_mla": lambda: {"kv_buffer": k.reshape(-1, *k.shape[2:]), **tokens},
            "flashinfer_trtllm": lambda: {"kv_cache": k.transpose(0, 2, 1, 3), "block_tables": c.table(),
                                          "seq_lens": c.lengths.astype(np.int32)},
        }[name](), {"kv_cache", "ckv", "kpe", "ckv_cache", "kpe_cache", "kv_buffer"})

    def test_golden_of_each_form(self):
        for form in ["mla", "mla in two", "mla of several heads", "mla_indptr", "mla_indptr in one", "sglang_mla",
                     "flashinfer_trtllm"]:
            with self.subTest(form=form):
                cache = self.cache(2 if "several" in form else 1)
                q, tensors = queries_of(cache)
                if form == "mla_indptr":
                    del tensors["q"]
                    tensors |= {"q_nope": q[..., :16], "q_pe": q[..., 16:]}
                size = [] if "two" in form or form == "mla_indptr" else ["--value-size", 16]
                golden = self.golden({**self.arrays(form, cache), **tensors}, "--layout", form.split()[0], "--scale", 0.2,
                                     *size)
                k = [to_double("bf16", rows) for rows in cache.k]
                self.assert_output(golden, q, k, [rows[..., :16] for rows in k], cache.queries, 0.2)

    def test_golden_of_flashmlas_packed_rows(self):
        rng = np.random.default_rng(11)
        blocks, page, lengths = 7, 4, np.array([6, 3])
        table = np.array([[4, 1], [6, -1]], np.int32)
        rows = rng.integers(0, 256, (blocks, page, 1, 656)).astype(np.uint8)
        rows[..., :512] = rng.integers(0x20, 0x48, (blocks, page, 1, 512))
        scales = (2.0 ** rng.integers(-3, 3, (blocks, page, 1, 4)) * 1.25).astype(np.float32)
        rope = (rng.standard_normal((blocks, page, 1, 64)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        rows[..., 512:528], rows[..., 528:] = scales.view(np.uint8), rope.view(np.uint8)
        k = np.concatenate([E4M3[rows[..., :512]] * np.repeat(scales.astype(float), 128, -1), to_double("bf16", rope)], -1)
        plain = [k[table[b, np.arange(n) // page], np.arange(n) % page] for b, n in enumerate(lengths)]
        q = rng.standard_normal((2, HQ, 576)).astype(np.float32)
        for shape in [rows, rows[:, :, 0]]:
            golden = self.golden({"kv_cache": shape, "block_table": table, "cache_seqlens": lengths, "q": q}, "--layout",
                                 "flashmla_fp8", "--scale", 0.05)
            self.assert_output(golden, q, plain, [rows[..., :512] for rows in plain], [1, 1], 0.05)

    def test_converts_between_the_forms(self):
        cache = self.cache()
        for a, b in itertools.permutations(["mla", "mla_indptr in one", "sglang_mla", "flashinfer_trtllm"], 2):
            with self.subTest(a=a, b=b):
                first = self.arrays(a, cache)
                self.save("a.npz", first)
                for source, target, out in [(a, b, "b.npz"), (b, a, "back.npz")]:
                    self.run_in("convert", "a.npz" if out == "b.npz" else "b.npz", "--from", source.split()[0], "--to",
                                target.split()[0], "--out", out, "--value-size", 16)
                back = self.load("back.npz")
                # A layout with two forms is written in its first one.
                whole = "kv_buffer" if "kv_buffer_bf16" in first else "kv_cache"
                rows = (cache_array(back, whole) if whole + "_bf16" in back
                        else np.concatenate([back["ckv_cache_bf16"], back["kpe_cache_bf16"]], -1))
                self.assertEqual(rows.tobytes(), first[whole + "_bf16"].tobytes())


class BlockScales(Folder):
    def check(self, elements, decoded, scales, group, *options, factor=1.0, scale_values=None, **more):
        """A pool [N, P, H, D] of quantized K and V with a scale for each group of elements."""
        table, lengths = np.array([[3, 0], [2, -1]], np.int32), np.array([6, 4])
        values = decoded * np.repeat(scale_values if scale_values is not None else scales.astype(float), group, -1) * factor
        plain = [values[table[b, np.arange(n) // 4], np.arange(n) % 4] for b, n in enumerate(lengths)]
        q = np.random.default_rng(2).standard_normal((2, HQ, 32)).astype(np.float32)
        golden = self.golden({**elements, **more, "block_table": table, "cache_seqlens": lengths.astype(np.int32), "q": q},
                             "--layout", "nhd", *options)
        self.assert_output(golden, q, plain, plain, [1, 1], 32 ** -0.5)

    def test_nvfp4(self):
        rng = np.random.default_rng(3)
        codes = rng.integers(0, 16, (5, 4, 2, 32))
        packed = (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8)  # the low half is the first element
        scales = rng.integers(0x30, 0x48, (5, 4, 2, 2)).astype(np.uint8)
        self.check({"k_cache": packed, "v_cache": packed}, E2M1[codes], scales, 16, "--cache-dtype", "e2m1", factor=0.5,
                   scale_values=E4M3[scales], k_block_scale_e4m3=scales, v_block_scale_e4m3=scales,
                   k_scale=np.float32(0.5), v_scale=np.float32(0.5))

    def test_mxfp8(self):
        rng = np.random.default_rng(4)
        codes = rng.integers(0x20, 0x48, (5, 4, 2, 32)).astype(np.uint8)
        scales = rng.integers(120, 132, (5, 4, 2, 1)).astype(np.uint8)
        self.check({"k_cache_e4m3": codes, "v_cache_e4m3": codes}, E4M3[codes], scales, 32,
                   scale_values=2.0 ** (scales.astype(int) - 127), k_block_scale_e8m0=scales, v_block_scale_e8m0=scales)

    def test_int8_with_a_scale_for_each_token_and_head(self):
        rng = np.random.default_rng(5)
        codes = rng.integers(-128, 128, (5, 4, 2, 32)).astype(np.int8)
        scales = (rng.random((5, 4, 2, 1)) + 0.1).astype(np.float32)
        self.check({"k_cache": codes, "v_cache": codes}, codes.astype(float), scales, 32, k_scale=scales, v_scale=scales)

    def test_e4m3fnuz(self):
        rng = np.random.default_rng(6)
        codes = rng.integers(0, 256, (5, 4, 2, 32)).astype(np.uint8)
        codes[codes == 0x80] = 0x7F
        value = np.where(codes & 0x7F == 0x7F, np.where(codes < 0x80, 240.0, -240.0), E4M3[codes] / 2)
        scales = np.full((5, 4, 2, 1), 0.01, np.float32)
        self.check({"k_cache": codes, "v_cache": codes}, value, scales, 32, "--cache-dtype", "e4m3fnuz", k_scale=scales,
                   v_scale=scales)


class Masks(Folder):
    """Masks as tensors, against attention over the keys that the mask leaves to each query."""

    def masked(self, cache, q, masks):
        """o and lse of [queries, keys] masks by sequence."""
        o, lse, row = [], [], 0
        for keys, values, mask in zip(cache.k, cache.v, masks):
            for seen in mask.astype(bool):
                one = attention(q[row:row + 1], [keys[seen].astype(float)], [values[seen].astype(float)], [1], 0.25)
                o.append(one[0]), lse.append(one[1])
                row += 1
        return np.concatenate(o), np.concatenate(lse)

    def assert_masked(self, golden, cache, q, masks):
        o, lse = self.masked(cache, q, masks)
        np.testing.assert_allclose(golden["o"], o, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(golden["lse"], lse, rtol=1e-12, atol=1e-13)

    def test_custom_masks_of_paged_and_dense_caches(self):
        rng = np.random.default_rng(50)
        cache = Cache(50)
        q, tensors = queries_of(cache)
        masks = [rng.random((count, n)) < 0.6 for count, n in zip(cache.queries, cache.lengths)]
        for mask in masks:
            mask[:, 0] = True
        flat = np.concatenate([mask.ravel() for mask in masks]).astype(np.uint8)
        packed = np.concatenate([np.packbits(mask.ravel(), bitorder="little") for mask in masks])
        for layout in ["nhd", "hnd", "flashinfer", "sglang", "max", "varlen", "dense"]:
            for name, mask in [("custom_mask", flat), ("packed_custom_mask", packed)]:
                with self.subTest(layout=layout, mask=name):
                    golden = self.golden({**LAYOUTS[layout][0](cache), **tensors, name: mask}, "--layout", layout,
                                         *extra(layout, cache))
                    self.assert_masked(golden, cache, q, masks)

    def test_trees_of_speculated_tokens(self):
        cache = Cache(51, lengths=(5, 9, 3, 14))
        cache.queries = np.full(4, 3)
        q, tensors = queries_of(cache)
        tree = np.random.default_rng(1).random((4, 3, 3)) < 0.5
        tree |= np.eye(3, dtype=bool)
        masks = [np.concatenate([np.ones((3, n - 3), bool), own], 1) for n, own in zip(cache.lengths, tree)]
        golden = self.golden({**LAYOUTS["hnd"][0](cache), **tensors, "tree_mask": tree.astype(np.int32)}, "--layout", "hnd")
        self.assert_masked(golden, cache, q, masks)
        golden = self.golden({**LAYOUTS["hnd"][0](cache), **tensors, "tree_mask": tree[0].astype(np.uint8)}, "--layout",
                             "hnd")
        self.assert_masked(golden, cache, q, [np.concatenate([m[:, :-3], tree[0]], 1) for m in masks])

    def test_sparse_indices_of_each_query(self):
        rng = np.random.default_rng(52)
        pool = rng.standard_normal((9, 4, 1, 24)).astype(np.float32)
        rows = pool.reshape(36, 1, 24)
        indices = np.stack([rng.permutation(36)[:12] for _ in range(6)])
        indices[1, 5:] = -1
        indices[4, ::2] = -1
        q = rng.standard_normal((6, HQ, 24)).astype(np.float32)
        chosen = [rows[i[i >= 0]].astype(float) for i in indices]
        for cache, own, number in [(pool, q, indices), (rows, q, indices),
                                   (pool, q.reshape(3, 2, HQ, 24), indices.reshape(3, 2, 12))]:
            golden = self.golden({"kv_cache": cache, "q": own, "indices": number.astype(np.int32)}, "--layout",
                                 "flashmla_sparse", "--scale", 0.25, "--value-size", 16)
            self.assert_output(golden, q, chosen, [k[..., :16] for k in chosen], [1] * 6, 0.25)
        golden = self.golden({"kv_cache": pool, "q": q, "indices": indices.astype(np.int32),
                              "topk_length": np.array([12, 3, 1, 12, 5, 2], np.int32)}, "--layout", "flashmla_sparse",
                             "--scale", 0.25, "--value-size", 16)
        chosen = [rows[i[:n][i[:n] >= 0]].astype(float) for i, n in zip(indices, [12, 3, 1, 12, 5, 2])]
        self.assert_output(golden, q, chosen, [k[..., :16] for k in chosen], [1] * 6, 0.25)

    def test_faults_name_the_mask(self):
        cache = Cache(53)
        arrays = {**LAYOUTS["nhd"][0](cache), **queries_of(cache)[1]}
        needed = int((cache.queries * cache.lengths).sum())
        for more, options, text in [
                ({"custom_mask": np.ones(needed - 1, np.uint8)}, [],
                 f"custom_mask: has shape [{needed - 1}], but the queries and keys of all sequences need [{needed}]: save a value for "
                 "each query and key"),
                ({"tree_mask": np.ones((2, 2), np.uint8)}, [],
                 "tree_mask: is for 2 queries, but sequence 0 has 1 queries and 5 keys: the nodes of a tree are the queries, and the "
                 "last keys, of their sequence"),
                ({"custom_mask": np.ones(needed, np.uint8), "alibi_slopes": np.ones(HQ)}, [],
                 "alibi_slopes: is not supported together with custom_mask"),
                ({"custom_mask": np.ones(needed, np.uint8)}, ["--mask", "sliding_window", "--window-left", 2],
                 "--mask: has no effect with custom_mask, which states the keys of each query")]:
            self.save("in.npz", {**arrays, **more})
            self.assertIn("kvscope: in.npz: " + text + "\n",
                          self.refused("golden", "--input", "in.npz", "--layout", "nhd", "--out", "g.npz", *options))


class PaddedQueriesAndOutputs(Folder):
    def test_queries_that_are_padding_are_left_out(self):
        cache = Cache(60)
        q, _ = queries_of(cache)
        padded = np.full((4, 5, HQ, 16), np.nan, np.float32)
        for b, (first, count) in enumerate(zip(cache.starts(cache.queries), cache.queries)):
            padded[b, :count] = q[first:first + count]
        k, v = [x.astype(float) for x in cache.k], [x.astype(float) for x in cache.v]
        for more in [{"q_lens": cache.queries}, {"cu_seqlens_q": cache.starts(cache.queries)}]:
            golden = self.golden({**LAYOUTS["nhd"][0](cache), "q": padded, **more}, "--layout", "nhd")
            self.assert_output(golden, q, k, v, cache.queries, 0.25)
        ragged = padded.reshape(20, HQ, 16)  # rows of each sequence that are used, as seqused_q
        golden = self.golden({**LAYOUTS["nhd"][0](cache), "q": ragged, "cu_seqlens_q": np.arange(0, 21, 5),
                              "seqused_q": cache.queries}, "--layout", "nhd")
        self.assert_output(golden, q, k, v, cache.queries, 0.25)
        self.save("in.npz", {**LAYOUTS["nhd"][0](cache), "q": padded, "q_lens": np.array([1, 6, 1, 3])})
        self.assertEqual(self.refused("golden", "--input", "in.npz", "--layout", "nhd", "--out", "g.npz"),
                         "kvscope: in.npz: q_lens: gives sequence 1 6 queries, more than q [4, 5, 4, 16] has for it\n")

    def outputs(self, lengths, queries):
        cache = Cache(61, lengths=lengths)
        cache.queries = np.array(queries)
        q, tensors = queries_of(cache)
        golden = self.golden({**LAYOUTS["nhd"][0](cache), **tensors}, "--layout", "nhd")
        return cache, golden["o"].astype(np.float32), golden["lse"].astype(np.float32)

    def verdict(self, o, lse):
        self.save("out.npz", {"o": np.ascontiguousarray(o), "lse": np.ascontiguousarray(lse)})
        return kvscope("verify", "golden.npz", "out.npz", "--no-diagnose", cwd=self.folder)

    def test_outputs_in_every_order_are_read(self):
        _, o, lse = self.outputs((5, 8, 4), [3, 3, 3])
        by_head = o.reshape(3, 3, HQ, 16).transpose(0, 2, 1, 3)
        lse_by_head = lse.reshape(3, 3, HQ).transpose(0, 2, 1)
        for o_given, lse_given in [(o.reshape(9, -1), lse.T), (o.reshape(3, 3, -1), lse_by_head), (by_head, lse_by_head),
                                   (o.transpose(1, 0, 2), lse.reshape(3, 3, HQ))]:
            with self.subTest(o=o_given.shape, lse=lse_given.shape):
                done = self.verdict(o_given, lse_given)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(" is read as [", done.stdout)
                wrong = np.array(o_given)
                wrong[(0,) * wrong.ndim] += 1
                self.assertEqual(self.verdict(wrong, lse_given).returncode, 1)

    def test_padded_outputs_are_read_without_their_padding(self):
        cache, o, lse = self.outputs((5, 8, 4), [1, 3, 2])
        padded, padded_lse = np.full((3, 6, HQ, 16), np.nan, np.float32), np.full((3, 6, HQ), np.nan, np.float32)
        for b, (first, count) in enumerate(zip(cache.starts(cache.queries), cache.queries)):
            padded[b, :count], padded_lse[b, :count] = o[first:first + count], lse[first:first + count]
        for o_given, lse_given in [(padded, padded_lse), (padded.transpose(0, 2, 1, 3), padded_lse.transpose(0, 2, 1))]:
            done = self.verdict(o_given, lse_given)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_shape_of_two_meanings_is_not_guessed(self):
        self.outputs((5, 8, 4), [1, 3, 2])
        done = self.verdict(np.zeros((3, HQ, HQ, 16), np.float32), np.zeros((6, HQ), np.float32))
        self.assertEqual(done.returncode, 2)
        self.assertIn("candidate 'o': has shape [3, 4, 4, 16], the golden [6, 4, 16]", done.stderr)


class Conversion(Folder):
    def convert(self, source, a, b, out, cache, *options):
        needs = []
        for layout in (a, b):
            needs += extra(layout, cache) if layout == a or layout == "vllm_diffkv" else []
        return self.run_in("convert", source, "--from", a, "--to", b, "--out", out, *needs[:2], *options)

    def assert_plain(self, layout, arrays, cache):
        read = {**LAYOUTS, **CHUNKS}[layout][1](arrays, cache)
        self.assertEqual(len(read), len(cache.k))
        for (k, v), want_k, want_v in zip(read, cache.k, cache.v):
            self.assertEqual((k.shape, k.dtype, k.tobytes()), (want_k.shape, want_k.dtype, want_k.tobytes()), layout)
            self.assertEqual((v.shape, v.dtype, v.tobytes()), (want_v.shape, want_v.dtype, want_v.tobytes()), layout)

    def test_of_every_pair_keeps_every_byte_and_comes_back(self):
        types = itertools.cycle(["f32", "bf16", "e4m3", "f16"])
        for n, (a, b) in enumerate(itertools.permutations(LAYOUTS, 2)):
            with self.subTest(a=a, b=b):
                cache = Cache(n, next(types), layers=1, layer=0)
                first = {**LAYOUTS[a][0](cache), **queries_of(cache)[1]}
                self.save("a.npz", first)
                self.convert("a.npz", a, b, "b.npz", cache)
                self.assert_plain(b, self.load("b.npz"), cache)
                self.convert("b.npz", b, a, "back.npz", cache)
                back = self.load("back.npz")
                self.assert_plain(a, back, cache)
                self.assertEqual(back["q"].tobytes(), first["q"].tobytes())
                if a in POOLS and b in POOLS:  # unowned slots too
                    for name in LAYOUTS[a][0](cache):
                        if name.removesuffix(cache.ending) in CACHES:
                            self.assertEqual(cache_array(back, name.removesuffix(cache.ending)).tobytes(),
                                             first[name].tobytes(), name)

    def test_of_a_chunk_of_one_sequence(self):
        for chunk, other in itertools.product(CHUNKS, ["nhd", "hf", "trtllm", "sglang", "varlen"]):
            with self.subTest(chunk=chunk, other=other):
                cache = Cache(8, "bf16", lengths=(13,), layers=1, layer=0)
                self.save("a.npz", CHUNKS[chunk][0](cache))
                self.run_in("convert", "a.npz", "--from", chunk, "--to", other, "--out", "b.npz", "--head-size", 16)
                self.assert_plain(other, self.load("b.npz"), cache)
                self.run_in("convert", "b.npz", "--from", other, "--to", chunk, "--out", "c.npz")
                self.assertEqual(cache_array(self.load("c.npz"), "kv_chunk").tobytes(),
                                 CHUNKS[chunk][0](cache)["kv_chunk_bf16"].tobytes())

    def test_gives_the_same_golden_output(self):
        cache = Cache(20, "bf16")
        q, tensors = queries_of(cache)
        outputs = set()
        self.save("a.npz", {**LAYOUTS["max"][0](cache), **tensors})
        for layout in LAYOUTS:
            if layout != "max":
                self.run_in("convert", "a.npz", "--from", "max", "--layer", 1, "--to", layout, "--out", "b.npz")
                self.run_in("golden", "--input", "b.npz", "--layout", layout, "--out", "g.npz",
                            *(extra(layout, cache) if layout == "vllm_diffkv" else []))
                outputs.add(self.load("g.npz")["o"].tobytes())
                # The manifest says how to read it: no option is needed, and none that contradicts it is taken.
                self.run_in("golden", "--input", "b.npz", "--out", "stated.npz")
                outputs.add(self.load("stated.npz")["o"].tobytes())
                self.run_in("lint", "b.npz")
                other = "nhd" if layout != "nhd" else "hnd"
                self.assertIn(f"command line: --layout: is '{other}', but the manifest of 'b.npz' states layout "
                              f"'{layout}': leave the option out",
                              self.refused("golden", "--input", "b.npz", "--layout", other, "--out", "x.npz"))
                self.run_in("convert", "b.npz", "--to", other, "--out", "c.npz")
                self.run_in("golden", "--input", "c.npz", "--out", "again.npz")
                outputs.add(self.load("again.npz")["o"].tobytes())
        self.assertEqual(len(outputs), 1)

    def test_its_manifest_states_sizes_types_and_a_described_layout(self):
        """What the tensors alone do not say: V's size, bit patterns, the axes of a layout from a file."""
        cache = Cache(21, "e4m3", layers=1, layer=0)
        patterns = {name.removesuffix(cache.ending): array for name, array in LAYOUTS["nhd"][0](cache).items()}
        self.save("a.npz", {**patterns, **queries_of(cache)[1]})
        typed = ("--cache-dtype", "e4m3")
        self.run_in("golden", "--input", "a.npz", "--layout", "nhd", *typed, "--out", "g.npz")
        description = json.loads(self.run_in("layout", "show", "hnd"))
        with open(os.path.join(self.folder, "mine.json"), "w", encoding="utf-8") as file:
            json.dump(description, file)
        for to in ("vllm_diffkv", "mine.json", "hnd"):
            with self.subTest(to=to):
                self.run_in("convert", "a.npz", "--from", "nhd", *typed, "--to", to, "--out", "b.npz")
                self.run_in("golden", "--input", "b.npz", "--out", "h.npz")
                self.assertEqual(self.load("h.npz")["o"].tobytes(), self.load("g.npz")["o"].tobytes())
                for command in (["golden", "--input", "b.npz", "--out", "x.npz"], ["lint", "b.npz"],
                                ["convert", "b.npz", "--to", "trtllm", "--out", "x.npz"]):
                    self.assertIn("--cache-dtype: is e5m2, but the manifest of 'b.npz' states e4m3: leave the option out",
                                  self.refused(*command, "--cache-dtype", "e5m2"))

    def test_a_manifest_with_a_layout_alone_is_read_as_one_of_an_earlier_convert(self):
        """It states no conventions and describes no layout that came from a file."""
        cache = Cache(22, "f32", layers=1, layer=0)
        self.save("plain.npz", {**LAYOUTS["nhd"][0](cache), **queries_of(cache)[1]})
        self.run_in("golden", "--input", "plain.npz", "--layout", "nhd", "--out", "g.npz")
        self.run_in("convert", "plain.npz", "--from", "nhd", "--to", "hnd", "--out", "new.npz")
        with zipfile.ZipFile(os.path.join(self.folder, "new.npz")) as file:
            tensors = {name: file.read(name) for name in file.namelist()}
        manifest = json.loads(tensors.pop("manifest.json"))
        for key in ("holds", "inputs", "manifest_crc32"):
            del manifest[key]
        with open(os.path.join(self.folder, "mine.json"), "w", encoding="utf-8") as file:
            file.write(self.run_in("layout", "show", "hnd"))
        for layout, more in (("hnd", {}), ("mine", {}), ("mine", {"holds": "inputs", "inputs": {}})):
            with zipfile.ZipFile(os.path.join(self.folder, "old.npz"), "w") as file:
                for name, data in tensors.items():
                    file.writestr(name, data)
                file.writestr("manifest.json", json.dumps({**manifest, **more, "kvscope_bundle": 1, "layout": layout}))
            if layout == "hnd":
                self.run_in("golden", "--input", "old.npz", "--out", "h.npz")
            else:
                self.assertIn("manifest 'layout': is 'mine', which is no named layout and which the manifest does not "
                              "describe: pass the file that describes it as the layout",
                              self.refused("golden", "--input", "old.npz", "--out", "h.npz"))
                self.run_in("golden", "--input", "old.npz", "--layout", "mine.json", "--out", "h.npz")
            self.assertEqual(self.load("h.npz")["o"].tobytes(), self.load("g.npz")["o"].tobytes())
            self.assertIn("command line: --layout: is 'nhd', but the manifest of 'old.npz' states layout "
                          f"'{layout}': leave the option out",
                          self.refused("golden", "--input", "old.npz", "--layout", "nhd", "--out", "h.npz"))

    def test_takes_the_inputs_of_a_golden_bundle(self):
        self.run_in("golden", program.gallery("first_light"), "--out", "golden.npz")
        self.run_in("convert", "golden.npz", "--from", "max", "--to", "nhd", "--out", "b.npz")
        self.run_in("golden", "--input", "b.npz", "--layout", "nhd", "--out", "again.npz")
        made = self.load("b.npz")
        self.assertNotIn("o", made)
        self.run_in("convert", "golden.npz", "--to", "nhd", "--out", "stated.npz")  # its manifest states the layout
        for name, array in self.load("stated.npz").items():
            np.testing.assert_array_equal(array, made[name])
        np.testing.assert_array_equal(self.load("again.npz")["o"], self.load("golden.npz")["o"])

    def test_packs_pages_of_another_size(self):
        cache = Cache(21, "f16")
        self.save("a.npz", LAYOUTS["nhd"][0](cache))
        out = self.run_in("convert", "a.npz", "--from", "nhd", "--to", "flashinfer", "--out", "b.npz", "--page-size", 3)
        self.assertIn("pool       new", out)
        made = self.load("b.npz")
        self.assertEqual(cache_array(made, "kv_cache").shape[2], 3)
        self.assert_plain("flashinfer", made, cache)

    def test_moves_scales_with_their_tokens(self):
        cache = Cache(22, "e4m3")
        q, tensors = queries_of(cache)
        scales = np.random.default_rng(1).random((cache.blocks, cache.page, cache.heads)).astype(np.float32)
        arrays = {**LAYOUTS["nhd"][0](cache), **tensors, "k_scale": scales, "v_scale": np.float32(0.5)}
        want = self.golden(arrays, "--layout", "nhd")["o"]
        for layout, page in [("hnd", 4), ("sglang", 1), ("flashinfer_hnd", 3), ("varlen", 1)]:
            with self.subTest(layout=layout):
                self.run_in("convert", "in.npz", "--from", "nhd", "--to", layout, "--page-size", page, "--out", "b.npz")
                self.run_in("golden", "--input", "b.npz", "--layout", layout, "--out", "g.npz")
                np.testing.assert_array_equal(self.load("g.npz")["o"], want)

    def test_names_what_a_layout_cannot_hold(self):
        cache = Cache(23, "bf16", size=12)
        self.save("a.npz", LAYOUTS["nhd"][0](cache))
        for to, text in [("mla", "stores V as the first elements of K, the input stores V apart"),
                         ("lmcache", "holds one sequence, the input has 4"),
                         ("vllm_legacy", "keeps runs of 8 elements, which do not divide 12")]:
            self.assertEqual(self.refused("convert", "a.npz", "--from", "nhd", "--to", to, "--out", "b.npz"),
                             f"kvscope: a.npz: --to: layout '{to}' {text}\n")
        self.assertEqual(self.refused("convert", "a.npz", "--to", "hnd", "--out", "b.npz"),
                         "kvscope: command line: --from: is required, because the manifest of 'a.npz' does not state the "
                         "layout: the tensors fit 'nhd' and 'hnd': pass --from nhd or --from hnd\n")

    def test_a_missing_or_wrong_layout_is_answered_with_those_that_fit(self):
        cache = Cache(24)
        tensors = {**LAYOUTS["flashinfer"][0](cache), **queries_of(cache)[1]}
        self.save("a.npz", tensors)
        fits = "the tensors fit 'flashinfer': pass --layout flashinfer\n"
        missing = "kvscope: command line: --layout: is required, because the manifest of 'a.npz' does not state the layout: "
        self.assertEqual(self.refused("golden", "--input", "a.npz", "--out", "g.npz"), missing + fits)
        self.assertEqual(self.refused("lint", "a.npz"), missing + fits)
        wrong = self.refused("golden", "--input", "a.npz", "--layout", "nhd", "--out", "g.npz")
        self.assertTrue(wrong.endswith("kvscope: a.npz: --layout: " + fits), wrong)
        self.save("b.npz", {**tensors, "other": np.ones(3, np.float32)})
        self.assertEqual(self.refused("golden", "--input", "b.npz", "--out", "g.npz"),
                         missing.replace("a.npz", "b.npz") + "the tensors fit no named layout: 'kvscope layout detect b.npz "
                         "--all' prints what each one lacks\n")

    def test_a_fault_that_no_layout_mends_names_none(self):
        cache = Cache(24)
        tensors = {**LAYOUTS["nhd"][0](cache), **queries_of(cache)[1]}
        self.save("a.npz", tensors)
        self.assertEqual(self.refused("golden", "--input", "a.npz", "--layout", "nhd", "--mask", "sliding_window",
                                      "--window-left", -5, "--out", "g.npz"),
                         "kvscope: a.npz: --window-left: -5 keys: give at least 0, or -1 for no limit\n")
        # K's axes alone are a cache of MLA. V's are what is missing, also where no named layout fits.
        alone = ["--axes", "k=[block, slot, head, dim]", "--scale", 0.5]
        text = "--axes: describes K only, and the file has v_cache: pass the axes of V too, such as --axes 'v=[block, slot, " \
               "head, dim]'\n"
        refused = self.refused("golden", "--input", "a.npz", *alone, "--out", "g.npz")
        self.assertTrue(refused.startswith("kvscope: a.npz: " + text), refused)
        self.assertIn("the tensors fit 'nhd'", refused)
        self.save("b.npz", {**tensors, "other": np.ones(3, np.float32)})
        self.assertEqual(self.refused("golden", "--input", "b.npz", *alone, "--out", "g.npz"), "kvscope: b.npz: " + text)


class Described(Folder):
    def test_axes_replace_a_name(self):
        cache = Cache(30, "bf16")
        q, tensors = queries_of(cache)
        k, v = cache.pool(cache.k), cache.pool(cache.v)
        table = {"block_table": cache.table(), "seq_lens": cache.lengths.astype(np.int32)}
        for axes, arrays in [
                (["kv=[block, head, kv, dim, slot]"], {"kv_cache": np.stack([k, v]).transpose(1, 3, 0, 4, 2)}),
                (["k=[head, block, slot, dim]", "v=[slot, head, block, dim]"],
                 {"k_cache": k.transpose(2, 0, 1, 3), "v_cache": v.transpose(1, 2, 0, 3)}),
                (["mine:kv=[block, slot, head, dim+vdim]"], {"mine": np.concatenate([k, v], -1)})]:
            with self.subTest(axes=axes):
                options = [word for text in axes for word in ("--axes", text)]
                if "dim+vdim" in axes[0]:
                    options += ["--value-size", 16]
                golden = self.golden({**cache.named(arrays, arrays), **table, **tensors}, *options)
                self.assert_output(golden, q, [to_double("bf16", x) for x in cache.k],
                                   [to_double("bf16", x) for x in cache.v], cache.queries, 0.25)

    def test_a_file_describes_strides_and_offsets(self):
        cache = Cache(31)
        q, tensors = queries_of(cache)
        k, v = cache.pool(cache.k), cache.pool(cache.v)  # rows of 16 elements are 20 apart, V follows K in each block
        n, p, h, d = k.shape
        row, block = 20, 2 * p * h * 20 + 7
        flat = np.full(5 + n * block, np.nan, np.float32)
        for which, source in enumerate((k, v)):
            for i, j, head in np.ndindex(n, p, h):
                at = 5 + i * block + ((which * p + j) * h + head) * row
                flat[at:at + d] = source[i, j, head]
        description = {"forms": [{"tensors": [
            {"name": "arena", "holds": "kv", "axes": "[block, kv, slot, head, dim]", "offset": 5,
             "strides": [block, p * h * row, h * row, row, 1], "sizes": [n, 2, p, h, d]}]}],
            "table": {"form": "blocks", "tensors": {"table": ["pages"], "lengths": ["lengths"]}}}
        with open(os.path.join(self.folder, "mine.json"), "w", encoding="utf-8") as file:
            json.dump(description, file)
        golden = self.golden({"arena": flat, "pages": cache.table(), "lengths": cache.lengths, **tensors}, "--layout",
                             "mine.json")
        self.assert_output(golden, q, [x.astype(float) for x in cache.k], [x.astype(float) for x in cache.v],
                           cache.queries, 0.25)
        # A diagnosis reads the description from the golden.
        self.save("candidate.npz", {"o": golden["o"].astype(np.float32) * np.float32(1.5)})
        done = kvscope("verify", "golden.npz", "candidate.npz", cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("no diagnosis", done.stdout)
        self.run_in("convert", "in.npz", "--from", "mine.json", "--to", "nhd", "--out", "b.npz")
        for (got_k, got_v), want_k, want_v in zip(LAYOUTS["nhd"][1](self.load("b.npz"), cache), cache.k, cache.v):
            self.assertEqual((got_k.tobytes(), got_v.tobytes()), (want_k.tobytes(), want_v.tobytes()))

    def test_names_all_faults_of_a_description(self):
        with open(os.path.join(self.folder, "bad.json"), "w", encoding="utf-8") as file:
            json.dump({"forms": [{"tensors": [{"name": "k", "holds": "keys", "axes": "[block, slott, dim]"},
                                              {"name": "v", "holds": "v", "axes": "[slot, dim]", "colour": 1}]}],
                       "table": {"form": "blocks", "tensors": {"table": ["t"], "indptr": ["i"]}}}, file)
        self.assertEqual(self.refused("layout", "show", "bad.json").splitlines(), [
            "kvscope: bad.json: $.forms[0].tensors[0].holds: 'keys': choose one of k, v, kv, k_scales, v_scales, kv_scales",
            "kvscope: bad.json: $.forms[0].tensors[0].axes: 'slott' is not an axis: did you mean \"slot\"?",
            "kvscope: bad.json: $.forms[0].tensors[1].colour: is unknown: choose one of name, also, holds, axes, strides, "
            "sizes, offset, row, optional",
            "kvscope: bad.json: $.forms[0].tensors[1].axes: exactly one of the axes block, token, seq and block*kv is needed",
            "kvscope: bad.json: $.table.tensors.indptr: form blocks has table, lengths",
            "kvscope: bad.json: $.table.tensors.lengths: is missing"])
        self.assertEqual(self.refused("golden", "--input", "x.npz", "--out", "y.npz", "--axes", "[block, slot]"),
                         "kvscope: command line: --axes: '[block, slot]' has no '=': write kv=[block, kv, head, slot, dim]\n")

    def test_every_named_layout_is_a_file_that_can_be_used(self):
        for line in fine("layout", "list").splitlines():
            name = line.split()[0]
            with open(os.path.join(self.folder, "own.json"), "w", encoding="utf-8") as file:
                file.write(fine("layout", "show", name))
            self.assertEqual(json.loads(fine("layout", "show", os.path.join(self.folder, "own.json"))),
                             json.loads(fine("layout", "show", name)), name)
        cache = Cache(32)
        arrays = {**LAYOUTS["flashinfer_hnd"][0](cache), **queries_of(cache)[1]}
        with open(os.path.join(self.folder, "own.json"), "w", encoding="utf-8") as file:
            file.write(fine("layout", "show", "flashinfer_hnd"))
        named = self.golden(arrays, "--layout", "flashinfer_hnd")
        own = self.golden(arrays, "--layout", "own.json")
        self.assertEqual(own["o"].tobytes(), named["o"].tobytes())


class Detect(Folder):
    def fits(self, *arguments):
        found = json.loads(kvscope("layout", "detect", *arguments, "--json", cwd=self.folder).stdout)
        return {fit["layout"]: fit for fit in found if fit["fits"]}

    def test_finds_each_layout(self):
        for n, layout in enumerate(LAYOUTS):
            with self.subTest(layout=layout):
                cache = Cache(n)
                self.save("in.npz", {**LAYOUTS[layout][0](cache), **queries_of(cache)[1]})
                self.assertIn(layout, self.fits("in.npz", *extra(layout, cache)))

    def test_values_tell_apart_what_shapes_do_not(self):
        for layout, other in [("nhd", "hnd"), ("hnd", "nhd")]:
            cache = Cache(40, heads=4, page=4)
            q, tensors = queries_of(cache)
            self.save("in.npz", {**LAYOUTS[layout][0](cache), **tensors})
            self.assertLessEqual({layout, other}, set(self.fits("in.npz")))
            o, lse = attention(q, [k.astype(float) for k in cache.k], [v.astype(float) for v in cache.v], cache.queries, 0.25)
            self.save("out.npz", {"o": o.astype(np.float32), "lse": lse.astype(np.float32)})
            fits = self.fits("in.npz", "out.npz")
            self.assertEqual((fits[layout]["candidate_passes"], fits[other]["candidate_passes"]), (True, False))
            done = kvscope("layout", "detect", "in.npz", "out.npz", cwd=self.folder)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout.splitlines()[0], f"^fits  {layout} +.*; the candidate passes, ")
            np.save(os.path.join(self.folder, "mine.npy"), o.astype(np.float32))  # whatever the file is called
            self.assertTrue(self.fits("in.npz", "mine.npy")[layout]["candidate_passes"])

    def test_a_layout_without_a_table_needs_no_blocks_of_one(self):
        # The default table names block 5 of 6.
        for layout in ("hf", "dense", "varlen"):
            done = kvscope("layout", "show", layout, "--token", "2", "--blocks", "4")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = kvscope("layout", "show", "nhd", "--token", "2", "--blocks", "4")
        self.assertEqual((done.returncode, done.stderr), (2, "kvscope: --table 5 is outside [0, 4): pass --blocks\n"))

    def test_lint_and_convert_name_the_layout_that_the_tensors_fit(self):
        cache = Cache(42, heads=2, page=4)
        self.save("in.npz", {**LAYOUTS["nhd"][0](cache), **queries_of(cache)[1]})
        self.assertEqual(kvscope("lint", "in.npz", "--layout", "nhd", cwd=self.folder).returncode, 0)
        done = kvscope("lint", "in.npz", "--layout", "vllm", cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("note: the tensors fit 'nhd': pass --layout nhd\n", done.stdout)
        done = kvscope("convert", "in.npz", "--from", "vllm", "--to", "sglang", "--out", "out.npz", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertTrue(done.stderr.endswith("kvscope: in.npz: --from: the tensors fit 'nhd': pass --from nhd\n"), done.stderr)
        done = kvscope("convert", "in.npz", "--from", "nhd", "--to", "mla", "--out", "out.npz", cwd=self.folder)
        self.assertNotIn("the tensors fit", done.stderr)  # the target is at fault

    def test_names_the_nearest_when_none_fits(self):
        cache = Cache(41)
        arrays = {**LAYOUTS["nhd"][0](cache), **queries_of(cache)[1]}
        del arrays["block_table"]
        arrays["cache_seqlens"] = arrays["cache_seqlens"][:2]
        self.save("in.npz", arrays)
        done = kvscope("layout", "detect", "in.npz", cwd=self.folder)
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (1, 3))
        self.assertIn("no    nhd                block_table: is missing; layout 'nhd' needs block_table [B, columns]\n",
                      kvscope("layout", "detect", "in.npz", "--all", cwd=self.folder).stdout)


class Diff(Folder):
    def test_addresses_are_those_of_numpy(self):
        sizes = dict(N=6, P=4, H=2, D=8)
        for layout, arrays in [("nhd", {"k_cache": (6, 4, 2, 8)}), ("hnd", {"k_cache": (6, 2, 4, 8)})]:
            out = fine("layout", "diff", layout, "sglang", "--token", 9)
            shape = arrays["k_cache"]
            for head in range(sizes["H"]):
                index = (2, 1, head, 0) if layout == "nhd" else (2, head, 1, 0)
                byte = int(np.ravel_multi_index(index, shape)) * 2
                self.assertIn(f"K head {head}    k_cache bytes {byte} to {byte + 15}\n", out)
            self.assertIn(f"K head 1    k_buffer bytes {(9 * 2 + 1) * 16} to {(9 * 2 + 2) * 16 - 1}\n", out)

    def test_runs_and_packed_rows(self):
        out = fine("layout", "diff", "vllm_legacy", "flashmla_fp8", "--head-size", 16)
        self.assertIn("key_cache bytes 16 to 31, elements 0 to 7\n", out)
        self.assertIn("kv_cache bytes 656 to 1167, elements 0 to 511\n", out)
        self.assertIn("kv_cache bytes 1168 to 1183, 4 scales of elements 0 to 511\n", out)

    @staticmethod
    def places(order, slots, scales):
        """[slots, scales]: where the order of the scales of a page and head has each of them."""
        numbers = np.arange(slots * scales).reshape(slots, scales)
        if order == "interleaved":
            numbers = numbers.reshape(slots // 4, 4, scales).transpose(0, 2, 1)
        if order == "tiled":
            numbers = numbers.reshape(slots // 128, 4, 32, scales // 4, 4).transpose(0, 3, 2, 1, 4)
        return numbers.ravel().argsort().reshape(slots, scales)

    def test_block_scales_of_each_order_are_where_numpy_has_them(self):
        for layout, axes in [("nhd", "NPH"), ("hnd", "NHP")]:
            for order, page, size, group in [("linear", 4, 64, 16), ("interleaved", 8, 64, 16), ("tiled", 128, 256, 32)]:
                for token in (3, page - 1, page + 2):
                    out = fine("layout", "show", layout, "--token", token, "--page-size", page, "--head-size", size, "--dtype",
                               "e4m3", "--group", group, "--v-scales", order)
                    block, slot, scales = (5, 0)[token // page], token % page, size // group
                    extents = {"N": 6, "P": page, "H": 2}
                    shape = [*(extents[a] for a in axes), scales]
                    dtype = {16: "e4m3", 32: "e8m0"}[group]
                    self.assertIn(f"scales of V in v_block_scale, {dtype} {shape}, groups of {group}, {order}: ", out)
                    for side, places in [("k", self.places("linear", page, scales)), ("v", self.places(order, page, scales))]:
                        for head in range(2):
                            bytes_of = []
                            for g in range(scales):
                                place = divmod(int(places[slot, g]), scales)
                                at = {"N": block, "P": place[0], "H": head}
                                bytes_of.append(int(np.ravel_multi_index([*(at[a] for a in axes), place[1]], shape)))
                            lines = []
                            for g, byte in enumerate(bytes_of):  # runs of consecutive bytes
                                if g and byte == bytes_of[g - 1] + 1:
                                    lines[-1][1:] = [byte, g]
                                else:
                                    lines.append([byte, byte, g])
                            first, texts = 0, []
                            for start, end, last in lines:
                                count = last - first + 1
                                texts.append(f"{side}_block_scale " + (f"byte {start}" if start == end else
                                                                       f"bytes {start} to {end}") +
                                             f", {count} scale{'s' if count > 1 else ''} of elements {first * group} to "
                                             f"{(last + 1) * group - 1}\n")
                                first = last + 1
                            for text in texts[:3]:
                                self.assertIn(text, out)
                            self.assertEqual("... 1 more runs" in out, order == "interleaved")

    def test_scales_by_unit(self):
        sizes = {"N": 6, "P": 4, "H": 3}
        at = {"N": 0, "P": 2, "H": None}  # token 6: block 0, slot 2
        for layout, axes in [("nhd", "NPH"), ("hnd", "NHP"), ("vllm_hnd", "NHP")]:
            for unit, varying, words in [("tensor", "", "tensor"), ("head", "H", "KV head"), ("token", "NP", "token"),
                                         ("token-head", "NPH", "token and KV head"), ("block", "N", "block"),
                                         ("block-head", "NH", "block and KV head")]:
                own = [a for a in axes if a in varying]
                for dtype, size in [("f32", 4), ("bf16", 2)]:
                    out = fine("layout", "show", layout, "--token", 6, "--heads", 3, "--dtype", "e4m3", "--scales", unit,
                               "--scale-dtype", dtype)
                    shape = [sizes[a] for a in own]
                    for side in "kv":
                        self.assertIn(f"scales of {side.upper()} in {side}_scale, {dtype} {shape}, per {words}: ", out)
                        for head in range(3):
                            index = [head if a == "H" else at[a] for a in own]
                            byte = size * (int(np.ravel_multi_index(index, shape)) if own else 0)
                            self.assertIn(f"{side}_scale bytes {byte} to {byte + size - 1}, 1 scale of elements 0 to 7\n", out)

    def test_two_elements_of_e2m1_fill_a_byte(self):
        out = fine("layout", "show", "hnd", "--token", 5, "--dtype", "e2m1", "--head-size", 32, "--group", 16)
        byte = int(np.ravel_multi_index((0, 1, 1, 0), (6, 2, 4, 16)))
        self.assertIn(f"K head 1    k_cache bytes {byte} to {byte + 15}\n", out)
        self.assertIn("element 1/2 B\n", out)

    def test_scales_that_a_layout_cannot_have_are_named(self):
        for arguments, text in [
                (["nhd", "--token", 5, "--group", 3], "--group: 3 does not divide the 8 elements of a head"),
                (["nhd", "--token", 5, "--group", 4, "--k-scales", "interleaved", "--page-size", 6],
                 "--k-scales: interleaved: 4 slots share a run, which does not divide the page size 6"),
                (["nhd", "--token", 5, "--group", 4, "--page-size", 128, "--v-scales", "tiled"],
                 "--v-scales: tiled: 2 scales of a slot are not a multiple of 4"),
                (["nhd", "--token", 5, "--v-scales", "tiled"],
                 "--v-scales: is the order of block scales: pass --group, the elements that share one"),
                (["vllm_legacy", "--token", 5, "--group", 4], "--group: layout 'vllm_legacy' has no tensor of block scales"),
                (["sglang", "--token", 5, "--scales", "block"],
                 "--scales: block: layout 'sglang' has no blocks of several tokens"),
                (["nhd", "--token", 5, "--scale-dtype", "f16"],
                 "--scale-dtype: is the type of scales: pass --group or --scales to show them"),
                (["mla", "--token", 5, "--head-size", 576, "--group", 16, "--v-scales", "tiled"],
                 "--v-scales: has no effect with layout 'mla', whose K rows hold V: pass --k-scales"),
                (["nhd", "--token", 5, "--scales", "head", "--group", 4],
                 "--scales: shows k_scale and v_scale, and --group block scales: give one of them"),
                (["nhd", "--token", 5, "--dtype", "e2m1", "--head-size", 7],
                 "--head-size: 7 is odd: two elements of e2m1 fill a byte"),
                (["vllm_diffkv", "--token", 5, "--dtype", "e2m1", "--value-size", 5],
                 "--value-size: 5 is odd: two elements of e2m1 fill a byte"),
                (["vllm_legacy", "--token", 5, "--dtype", "e2m1"],
                 "--dtype: e2m1: layout 'vllm_legacy' has runs of whole bytes"),
                (["flashmla_fp8", "--token", 5, "--heads", 2],
                 "--heads: is 2, but rows of layout 'flashmla_fp8' are of one KV head: leave it out"),
                (["nhd", "--group", 4], "--group requires --token: see 'kvscope layout show --help'")]:
            found = self.refused("layout", "show", *arguments)
            self.assertEqual(found.count(text + "\n"), 1, found)

    def test_mla_with_several_heads_is_the_form_that_has_an_axis_for_them(self):
        one = self.run_in("layout", "show", "mla", "--token", 5)
        self.assertEqual(one, self.run_in("layout", "show", "mla", "--token", 5, "--heads", 1))
        self.assertIn("strides of K in kv_cache, bf16 [6, 4, 8]:", one)
        two = self.run_in("layout", "show", "mla", "--token", 5, "--heads", 2)
        self.assertIn("  K head 1    kv_cache bytes 48 to 63\n", two)  # block 0, slot 1: (1 * 2 + 1) * 8 * 2 bytes
        self.assertIn("strides of K in kv_cache, bf16 [6, 4, 2, 8]:", two)


if __name__ == "__main__":
    program.main()
