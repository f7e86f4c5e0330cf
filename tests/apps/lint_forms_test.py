#!/usr/bin/python3
"""kvscope lint in each form of table. The caches come from engine_layouts.py, which shares no code with kvscope: a legal one
has no finding, and one entry that is made wrong is the only finding, or one of those that are listed with it.

    lint_forms_test.py --kvscope PROGRAM
"""
import json
import sys

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from engine_layouts import CHUNKS, LAYOUTS, MLA, Cache  # noqa: E402
from program import kvscope  # noqa: E402

HQ = 4


class LintForms(program.FolderTest):
    def findings(self, arrays, layout, *options):
        np.savez(self.path("in.npz"), **arrays)
        done = kvscope("lint", self.path("in.npz"), "--layout", layout, "--json", *options)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)

    def found(self, arrays, layout, *options):
        """The faults as (rule, object), and the warnings."""
        report = self.findings(arrays, layout, *options)
        return [(f["rule"], f["object"]) for f in report["findings"]]

    def arrays(self, layout, cache):
        q = np.zeros((cache.queries.sum(), HQ, cache.size), np.float32)
        return {**LAYOUTS[layout][0](cache), "q": q, "query_offsets": cache.starts(cache.queries)}

    def changed(self, layout, cache, **changes):
        """The arrays of a legal cache with `name=(index, value)` set."""
        made = self.arrays(layout, cache)
        for name, (index, value) in changes.items():
            made[name] = made[name].copy()
            made[name][index] = value
        return made

    def test_a_legal_cache_of_every_layout_has_no_finding(self):
        for n, layout in enumerate(LAYOUTS):
            with self.subTest(layout=layout):
                options = ["--layer", 1] if layout == "max" else []
                report = self.findings(self.arrays(layout, Cache(n)), layout, *options)
                self.assertEqual((report["findings"], report["sequences"]), ([], 4))
        for layout in CHUNKS:
            cache = Cache(3, "bf16", lengths=(11,))
            q = {"q": np.zeros((1, HQ, 16), np.float32)}
            report = self.findings({**CHUNKS[layout][0](cache), **q}, layout)
            self.assertEqual((report["findings"], report["pages"], report["blocks"]), ([], 11, 11))
        for layout, (build, _) in MLA.items():
            cache = Cache(4, "bf16", heads=1, size=24, value_size=16, mla=True)
            more = {"q": np.zeros((7, HQ, 24), np.float32), "query_offsets": cache.starts(cache.queries)}
            self.assertEqual(self.found({**build(cache), **more}, layout), [], layout)

    def test_requests(self):
        cache = Cache(20)  # 4 sequences of 5, 8, 1 and 14 tokens are the requests 4, 3, 2 and 1 of 6
        slots = cache.slots()
        pool = cache.blocks * cache.page
        for changes, expected in [
                ({"req_pool_indices": (1, 6)}, [("range", "req_pool_indices[1]")]),
                ({"req_pool_indices": (2, -1)}, [("range", "req_pool_indices[2]")]),
                # Sequence 2 has one token, the first of sequence 0, and would write it.
                ({"req_pool_indices": (2, 4)}, [("duplicate", "req_pool_indices[2]"), ("write", "req_to_token[4, 0]")]),
                ({"seq_lens": (3, 16)}, [("length", "seq_lens[3]")]),
                ({"seq_lens": (3, -2)}, [("length", "seq_lens[3]")]),
                ({"req_to_token": ((1, 3), pool)}, [("range", "req_to_token[1, 3]")]),
                ({"req_to_token": ((1, 3), slots[3][0])}, [("duplicate", "req_to_token[1, 3]")]),
                ({"req_to_token": ((1, 2), slots[0][0])}, [("sharing", "req_to_token[1, 2]")])]:
            with self.subTest(changes=changes):
                self.assertEqual(self.found(self.changed("sglang_req", cache, **changes), "sglang_req"), expected)

    def test_offsets_of_k_and_v(self):
        cache = Cache(21)
        block = cache.rows[3]
        name = "kv_cache_block_offsets"
        for index, value, expected in [
                ((3, 0, 1), 2 * block[1] + 1, [("pair", f"{name}[3, :, 1]")]),
                ((3, 1, 1), 2 * block[1], [("pair", f"{name}[3, :, 1]")]),
                ((3, 1, 2), 2 * block[1] + 1, [("pair", f"{name}[3, :, 2]")]),
                ((3, 0, 2), 2 * cache.blocks, [("range", f"{name}[3, :, 2]")]),
                ((3, 1, 2), -1, [("range", f"{name}[3, :, 2]")]),
                ((3, slice(None), 2), [2 * block[1], 2 * block[1] + 1], [("duplicate", f"{name}[3, :, 2]")]),
                ((3, slice(None), 4), -7, [])]:  # past the last page
            with self.subTest(index=index):
                self.assertEqual(self.found(self.changed("trtllm", cache, **{name: (index, value)}), "trtllm"), expected)
        whole = self.arrays("trtllm", cache)
        whole[name] = whole[name][None]
        self.assertEqual(self.found(whole, "trtllm"), [])
        whole[name] = whole[name][0][:, :1]
        self.assertEqual(self.found(whole, "trtllm"), [("shape", name)])

    def test_padded_caches(self):
        cache = Cache(22)  # 17 positions
        for changes, expected in [
                ({"cache_seqlens": (3, 18)}, [("length", "cache_seqlens[3]")]),
                ({"cache_leftpad": (1, -1)}, [("padding", "cache_leftpad[1]")]),
                ({"cache_leftpad": (2, 18)}, [("padding", "cache_leftpad[2]")]),
                ({"cache_leftpad": (3, 4)}, [("length", "cache_seqlens[3]")])]:
            with self.subTest(changes=changes):
                self.assertEqual(self.found(self.changed("dense", cache, **changes), "dense"), expected)
        self.assertEqual(self.found(self.changed("hf", cache, attention_mask=((1, 12), 0)), "hf"),
                         [("padding", "attention_mask[1, 12]")])
        short = self.arrays("hf", cache)
        short["attention_mask"] = short["attention_mask"][:, 1:]
        self.assertEqual(self.found(short, "hf"), [("shape", "attention_mask")])

    def test_ragged_tokens(self):
        cache = Cache(23)  # 28 tokens from 0, 5, 13 and 14
        for changes, expected in [
                ({"cu_seqlens_k": (0, 1)}, [("indptr", "cu_seqlens_k[0]")]),
                ({"cu_seqlens_k": (4, 29)}, [("indptr", "cu_seqlens_k[4]")]),
                ({"cu_seqlens_k": (2, 4)}, [("indptr", "cu_seqlens_k[2]")])]:
            with self.subTest(changes=changes):
                self.assertEqual(self.found(self.changed("varlen", cache, **changes), "varlen"), expected)
        more = {"seqused_k": np.array([5, 9, 1, 3], np.int32)}
        self.assertEqual(self.found({**self.arrays("varlen", cache), **more}, "varlen"), [("length", "seqused_k[1]")])

    def test_sparse_indices(self):
        rng = np.random.default_rng(24)
        indices = np.stack([rng.permutation(36)[:12] for _ in range(6)]).astype(np.int32)
        indices[1, 5:] = -1
        legal = {"kv_cache": np.zeros((9, 4, 1, 24), np.float32), "q": np.zeros((6, HQ, 24), np.float32)}
        self.assertEqual(self.found({**legal, "indices": indices}, "flashmla_sparse"), [])
        batched = {"kv_cache": legal["kv_cache"], "q": legal["q"].reshape(3, 2, HQ, 24), "indices": indices.reshape(3, 2, 12)}
        self.assertEqual(self.found(batched, "flashmla_sparse"), [])
        for index, value, rule in [((2, 3), 36, "range"), ((2, 3), -2, "range"), ((2, 3), indices[2, 1], "duplicate")]:
            wrong = indices.copy()
            wrong[index] = value
            self.assertEqual(self.found({**legal, "indices": wrong}, "flashmla_sparse"), [(rule, "indices[2, 3]")])
            # What a length leaves out is not read.
            short = np.array([12, 3, 3, 12, 5, 2], np.int32)
            self.assertEqual(self.found({**legal, "indices": wrong, "topk_length": short}, "flashmla_sparse"), [])
        self.assertEqual(self.found({**legal, "indices": indices, "topk_length": np.array([12, 3, 13, 1, 1, 1])},
                                    "flashmla_sparse"), [("length", "topk_length[2]")])
        self.assertEqual(self.found({**legal, "indices": indices[:5]}, "flashmla_sparse"), [("shape", "indices")])
        self.assertEqual(self.found({**legal, "indices": indices}, "flashmla_sparse", "--vector-read", "8"),
                         [("vector", "indices")] + [("vector", f"indices[{b}, 11]") for b in range(6)])

    def test_overflow_and_tma_of_caches_without_a_table(self):
        # 2^31 elements are 2,097,152 tokens of 1,024; 17 positions of 8 heads of 129 f32 have no stride of 16 bytes.
        shape = ["--cache-shape", "2097153,8,128"]
        for tokens, expected in [(2097152, []), (2097153, [("overflow", "token 2097152")] * 2)]:
            lengths = {"cu_seqlens_k": np.array([0, 2000000, tokens], np.int32)}
            self.assertEqual(self.found(lengths, "varlen", *shape), expected)
        wide = {name: np.zeros((2, 17, 8, 129), np.float32) for name in ("k_cache", "v_cache")}
        rules = {rule for rule, _ in self.found({**wide, "cache_seqlens": np.array([3, 4])}, "dense", "--tma")}
        self.assertEqual(rules, {"tma"})


if __name__ == "__main__":
    program.main()
