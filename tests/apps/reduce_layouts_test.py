#!/usr/bin/python3
"""kvscope reduce in every named layout, and in layouts that a user describes, with a kernel in NumPy that leaves out key 5
of sequences of 7 keys or more. The smallest failing case is one query of 7 keys and one head.

The kernel reads the cache through engine_layouts.py, which shares no code with kvscope. It runs in this process: the
command of reduce passes the names of the files through two pipes.

    reduce_layouts_test.py --kvscope PROGRAM
"""
import json
import os
import sys
import tempfile
import threading
import types
import unittest

import numpy as np

sys.dont_write_bytecode = True
import engine_layouts  # noqa: E402
import program  # noqa: E402
from engine_layouts import CHUNKS, E4M3, LAYOUTS, MLA, MLA_CHUNKS, Cache, split, to_double  # noqa: E402
from program import kvscope  # noqa: E402

HQ = 4
SCALE = 0.25


class Server(threading.Thread):
    """Answers runs of `command`: reads the inputs, and writes the candidate that `kernel` makes of them."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.ask, self.answer = os.path.join(folder, "ask"), os.path.join(folder, "answer")
        os.mkfifo(self.ask)
        os.mkfifo(self.answer)
        self.kernel = None
        self.error = None
        self.command = f"printf '%s\\n%s\\n' {{inputs}} {{candidate}} > {self.ask}; read end < {self.answer}"

    def run(self):
        while True:
            with open(self.ask, encoding="utf-8") as file:
                inputs, candidate = file.read().splitlines()
            try:
                with np.load(inputs) as arrays:
                    o, lse = self.kernel({name: arrays[name] for name in arrays.files if name != "manifest.json"})
                np.savez(candidate, o=o.astype(np.float32), lse=lse.astype(np.float32))
            except Exception as error:  # the command ends without an output, which is another failure
                self.error = error
            with open(self.answer, "w", encoding="utf-8") as file:
                file.write("end\n")


def faulty(q, k, v, queries):
    """Attention that leaves out key 5 of sequences of at least 7 keys."""
    def without(rows):
        return [np.delete(x, 5, 0) if len(x) >= 7 else x for x in rows]

    o, lse = [], []
    for rows, keys, values, count in zip(split(q, np.concatenate([[0], np.cumsum(queries)])), k, v, queries):
        for i in range(count):
            seen = len(keys) - count + i + 1
            one = engine_layouts.attention(rows[i:i + 1], without([keys[:seen]]), without([values[:seen]]), [1], SCALE)
            o.append(one[0]), lse.append(one[1])
    return np.concatenate(o), np.concatenate(lse)


class ReduceLayouts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.server = Server(cls.folder)
        cls.server.start()

    def path(self, name):
        return os.path.join(self.folder, name)

    def golden(self, inputs, *options):
        done = kvscope("golden", "--input", self.path(inputs), *options)
        self.assertEqual(done.returncode, 0, done.stderr)

    def reduced(self, arrays, kernel, *options):
        """The sizes of the smallest case, as words."""
        np.savez(self.path("in.npz"), **arrays)
        self.golden("in.npz", "--scale", SCALE, "--out", self.path("golden.npz"), *options)
        self.server.kernel, self.server.error = kernel, None
        done = kvscope("reduce", self.path("golden.npz"), "--command", self.server.command, "--out",
                       self.path("small.npz"), "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""), self.server.error)
        report = json.loads(done.stdout)
        self.assertTrue(report["failure"].startswith("wrong output: "), (report["failure"], self.server.error))
        # The file needs no option: its golden is computed, and its output fails.
        self.golden("small.npz", "--out", self.path("g.npz"))
        verified = kvscope("verify", self.path("g.npz"), self.path("small.npz"), "--no-diagnose")
        self.assertEqual(verified.returncode, 1, verified.stderr)
        return report["to"]

    def check(self, layout, engine, cache, blocks, size, *options):
        build, read = engine
        q = np.random.default_rng(3).standard_normal((cache.queries.sum(), HQ, cache.size)).astype(np.float32)
        arrays = {**build(cache), "q": q, "query_offsets": cache.starts(cache.queries)}

        def kernel(t):
            queries = np.diff(t["query_offsets"])
            own = types.SimpleNamespace(queries=queries, size=t["q"].shape[-1], layer=cache.layer,
                                        value_size=cache.value_size)
            own.heads = next(iter(t.values())).shape[-1] // own.size if "kv_chunk" in t else None
            plain = read(t, own)
            return faulty(t["q"], [k.astype(float) for k, _ in plain], [v.astype(float) for _, v in plain], queries)

        words = self.reduced(arrays, kernel, "--layout", layout, *options)
        self.assertEqual(words, f"1 sequence, 1 query, 7 keys, 1 KV head, 1 query head, head size {size}, {blocks}")

    def test_every_layout_is_reduced_to_one_query_of_seven_keys(self):
        blocks = {"sglang": "7 blocks", "sglang_req": "7 blocks", "varlen": "7 blocks", "hf": "1 block",
                  "dense": "1 block", "vllm": "3 blocks", "vllm_hnd": "3 blocks"}  # 2 blocks could be K and V
        for n, (layout, engine) in enumerate(LAYOUTS.items()):
            with self.subTest(layout=layout):
                options = {"max": ["--layer", 1], "vllm_diffkv": ["--value-size", 16]}.get(layout, [])
                # vllm_legacy keeps the runs of 16 bytes.
                self.check(layout, engine, Cache(n), blocks.get(layout, "2 blocks"), 4 if layout == "vllm_legacy" else 1,
                           *options)

    def test_chunks(self):
        for layout, engine in CHUNKS.items():
            with self.subTest(layout=layout):
                self.check(layout, engine, Cache(3, lengths=(11,)), "7 blocks", 1,
                           *(["--layer", 1] if layout == "lmcache" else []))

    def test_mla_keeps_its_rows(self):
        for layout, engine in {**MLA, **MLA_CHUNKS}.items():
            with self.subTest(layout=layout):
                lengths = (11,) if layout in MLA_CHUNKS else (5, 8, 1, 14)
                cache = Cache(5, lengths=lengths, heads=1, size=24, value_size=16, mla=True)
                options = [] if layout == "mla_indptr" else ["--value-size", 16]
                blocks = "7 blocks" if "sglang" in layout or layout in MLA_CHUNKS else "2 blocks"
                self.check(layout, engine, cache, blocks, 24, *options,
                           *(["--layer", 1] if layout in ("max", "lmcache_mla") else []))

    def test_values_of_another_head_size(self):
        for layout, blocks in [("vllm_diffkv", "2 blocks"), ("varlen", "7 blocks"), ("hf", "1 block")]:
            with self.subTest(layout=layout):
                build, read = LAYOUTS[layout]
                cache = Cache(8, value_size=8)
                q = np.random.default_rng(3).standard_normal((7, HQ, 16)).astype(np.float32)

                def kernel(t):
                    queries = np.diff(t["query_offsets"])
                    size = t["q"].shape[-1]
                    plain = read(t, types.SimpleNamespace(queries=queries, size=size))
                    return faulty(t["q"], [k.astype(float) for k, _ in plain], [v.astype(float) for _, v in plain],
                                  queries)

                words = self.reduced({**build(cache), "q": q, "query_offsets": cache.starts(cache.queries)}, kernel,
                                     "--layout", layout, *(["--value-size", 8] if layout == "vllm_diffkv" else []))
                self.assertEqual(words, "1 sequence, 1 query, 7 keys, 1 KV head, 1 query head, head size 1, " + blocks)

    def test_packed_rows_and_sparse_indices(self):
        rng = np.random.default_rng(11)
        blocks, page = 7, 4
        rows = rng.integers(0, 256, (blocks, page, 1, 656)).astype(np.uint8)
        rows[..., :512] = rng.integers(0x20, 0x48, (blocks, page, 1, 512))
        scales = (2.0 ** rng.integers(-3, 3, (blocks, page, 1, 4)) * 1.25).astype(np.float32)
        rope = (rng.standard_normal((blocks, page, 1, 64)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        rows[..., 512:528], rows[..., 528:] = scales.view(np.uint8), rope.view(np.uint8)
        q = (rng.standard_normal((3, HQ, 576)) / 16).astype(np.float32)

        def decoded(packed):
            own = np.ascontiguousarray(packed[..., 512:528]).view(np.float32).astype(float)
            return np.concatenate([E4M3[packed[..., :512]] * np.repeat(own, 128, -1),
                                   to_double("bf16", np.ascontiguousarray(packed[..., 528:]).view(np.uint16))], -1)

        def paged(t):
            k = [decoded(t["kv_cache"])[row[np.arange(n) // page], np.arange(n) % page]
                 for row, n in zip(t["block_table"], t["cache_seqlens"])]
            return faulty(t["q"], k, [x[..., :512] for x in k], [1] * len(k))

        table = np.array([[4, 1, -1], [6, -1, -1], [3, 0, 5]], np.int32)
        words = self.reduced({"kv_cache": rows, "q": q, "block_table": table, "cache_seqlens": np.array([6, 3, 11])},
                             paged, "--layout", "flashmla_fp8")
        self.assertEqual(words, "1 sequence, 1 query, 7 keys, 1 KV head, 1 query head, head size 576, 2 blocks")

        def sparse(t):
            slots = decoded(t["kv_cache"]).reshape(-1, 1, 576)
            indices = t["indices"].reshape(-1, t["indices"].shape[-1])
            k = [slots[row[row >= 0]] for row in indices]
            o, lse = faulty(t["q"].reshape(-1, *t["q"].shape[-2:]), k, [x[..., :512] for x in k], [1] * len(k))
            return o, lse

        indices = np.stack([rng.permutation(28)[:9] for _ in range(3)]).astype(np.int32)
        indices[0, 4:], indices[2, 3] = -1, -1
        for shape in [(3, 9), (1, 3, 9)]:
            own = q if len(shape) == 2 else q[None]
            words = self.reduced({"kv_cache": rows, "q": own, "indices": indices.reshape(shape)}, sparse, "--layout",
                                 "flashmla_sparse")
            with np.load(self.path("small.npz")) as small:
                used = len(small["kv_cache"])
            self.assertEqual(words, f"1 sequence, 1 query, 7 keys, 1 KV head, 1 query head, head size 576, {used} blocks")
            self.assertLessEqual(used, 7)

    def test_described_axes_and_flat_storage(self):
        cache = Cache(12)
        k, v = cache.pool(cache.k), cache.pool(cache.v)
        q = np.random.default_rng(3).standard_normal((4, HQ, 16)).astype(np.float32)
        cache.queries = np.ones(4, int)
        more = {"q": q, "block_table": cache.table(), "seq_lens": cache.lengths.astype(np.int32)}

        def kernel(k_of, v_of):
            def run(t):
                plain = engine_layouts.from_pages(k_of(t).astype(float), v_of(t).astype(float), t["block_table"],
                                                  t["seq_lens"])
                return faulty(t["q"], [a for a, _ in plain], [b for _, b in plain], [1] * len(plain))
            return run

        words = self.reduced(
            {"kv_cache": np.stack([k, v]).transpose(1, 3, 0, 4, 2), **more},
            kernel(lambda t: t["kv_cache"][:, :, 0].transpose(0, 3, 1, 2),
                   lambda t: t["kv_cache"][:, :, 1].transpose(0, 3, 1, 2)), "--axes", "kv=[block, head, kv, dim, slot]")
        self.assertEqual(words, "1 sequence, 1 query, 7 keys, 1 KV head, 1 query head, head size 1, 2 blocks")
        # Flat storage has the strides of its description: only what the table, the lengths and q hold is cut.
        n, p, h, d = k.shape
        strides = [p * h * d, h * d, d, 1]
        described = {"about": "flat", "forms": [{"tensors": [
            {"name": f"{x}_flat", "holds": x, "axes": "[block, slot, head, dim]", "strides": strides,
             "sizes": [n, p, h, d], "offset": 0} for x in "kv"]}],
            "table": {"form": "blocks", "tensors": {"table": ["block_table"], "lengths": ["seq_lens"]}}}
        with open(self.path("flat.json"), "w", encoding="utf-8") as file:
            json.dump(described, file)
        words = self.reduced({"k_flat": k.ravel(), "v_flat": v.ravel(), **more},
                             kernel(lambda t: t["k_flat"].reshape(k.shape), lambda t: t["v_flat"].reshape(k.shape)),
                             "--layout", self.path("flat.json"))
        self.assertEqual(words, f"1 sequence, 1 query, 7 keys, 2 KV heads, 2 query heads, head size 16, {n} blocks")

    def test_queries_with_an_axis_of_their_own_and_padding(self):
        cache = Cache(13, lengths=(5, 9, 12, 14))
        cache.queries = np.full(4, 3)
        q = np.random.default_rng(4).standard_normal((4, HQ, 3, 16)).astype(np.float32)
        build, read = LAYOUTS["hf"]

        def kernel(t):
            b, heads, count, size = t["q"].shape
            plain = read(t, None)
            o, lse = faulty(t["q"].transpose(0, 2, 1, 3).reshape(b * count, heads, size),
                            [k.astype(float) for k, _ in plain], [v.astype(float) for _, v in plain], [count] * b)
            return o, lse

        words = self.reduced({**build(cache), "q": q}, kernel, "--layout", "hf")
        self.assertEqual(words, "1 sequence, 1 query, 7 keys, 1 KV head, 1 query head, head size 1, 1 block")
        # Padded rows of q: 5 places for up to 3 queries.
        cache = Cache(14)
        padded = np.random.default_rng(5).standard_normal((4, 5, HQ, 16)).astype(np.float32)
        build_nhd, read_nhd = LAYOUTS["nhd"]

        def padded_kernel(t):
            rows = np.concatenate([own[:n] for own, n in zip(t["q"], t["q_lens"])])
            plain = read_nhd(t, None)
            return faulty(rows, [k.astype(float) for k, _ in plain], [v.astype(float) for _, v in plain], t["q_lens"])

        words = self.reduced({**build_nhd(cache), "q": padded, "q_lens": cache.queries.astype(np.int32)}, padded_kernel,
                             "--layout", "nhd")
        self.assertEqual(words, "1 sequence, 1 query, 7 keys, 1 KV head, 1 query head, head size 1, 2 blocks")

    def test_custom_masks_are_cut_with_their_queries_and_keys(self):
        rng = np.random.default_rng(6)
        cache = Cache(15)
        masks = [rng.random((count, n)) < 0.7 for count, n in zip(cache.queries, cache.lengths)]
        for mask in masks:
            mask[:, :6] = True
        q = rng.standard_normal((7, HQ, 16)).astype(np.float32)
        build, read = LAYOUTS["nhd"]
        for packed in (False, True):
            pack = (lambda m: np.packbits(m.ravel(), bitorder="little")) if packed else (lambda m: m.ravel())
            name = "packed_custom_mask" if packed else "custom_mask"

            def kernel(t):
                queries = np.diff(t["query_offsets"])
                o, lse, at, row = [], [], 0, 0
                for (k, v), count in zip(read(t, None), queries):
                    bits = int(count) * len(k)
                    size = -(-bits // 8) if packed else bits
                    own = t[name][at:at + size]
                    seen = (np.unpackbits(own, bitorder="little")[:bits] if packed else own).reshape(count, len(k))
                    at += size
                    for i in range(count):
                        kept = seen[i].astype(bool)
                        if len(k) >= 7:
                            kept[5] = False
                        one = engine_layouts.attention(t["q"][row:row + 1], [k[kept].astype(float)],
                                                       [v[kept].astype(float)], [1], SCALE)
                        o.append(one[0]), lse.append(one[1])
                        row += 1
                return np.concatenate(o), np.concatenate(lse)

            words = self.reduced({**build(cache), "q": q, "query_offsets": cache.starts(cache.queries),
                                  name: np.concatenate([pack(m) for m in masks]).astype(np.uint8)}, kernel, "--layout",
                                 "nhd")
            self.assertEqual(words, "1 sequence, 1 query, 7 keys, 1 KV head, 1 query head, head size 1, 2 blocks")

    def test_dense_masks_and_windows(self):
        rng = np.random.default_rng(7)
        cache = Cache(16, lengths=(9, 9, 9))
        masks = rng.random((3, 1, 3, 9)) < 0.7
        masks[..., :6] = True
        q = rng.standard_normal((3, 3, HQ, 16)).astype(np.float32)
        build, read = LAYOUTS["nhd"]

        def masked(t):
            o, lse = [], []
            for b, (k, v) in enumerate(read(t, None)):
                for i, kept in enumerate(t["attn_mask"][b if len(t["attn_mask"]) > 1 else 0, 0][:, :len(k)].astype(bool)):
                    if len(k) >= 7:
                        kept = np.where(np.arange(len(k)) == 5, False, kept)
                    one = engine_layouts.attention(t["q"][b, i:i + 1], [k[kept].astype(float)], [v[kept].astype(float)],
                                                   [1], SCALE)
                    o.append(one[0]), lse.append(one[1])
            return np.concatenate(o), np.concatenate(lse)

        words = self.reduced({**build(cache), "q": q, "attn_mask": masks}, masked, "--layout", "nhd")
        self.assertEqual(words, "1 sequence, 1 query, 7 keys, 1 KV head, 1 query head, head size 1, 2 blocks")
        # A sliding window keeps its keys: sinks 0 and 1, and 5 to 13 of 14.
        cache = Cache(17)
        build, _ = LAYOUTS["mlc"]
        arrays = build(cache)
        arrays["length_info"] = np.stack([arrays["length_info"], [0, 0, 0, 5], [0, 0, 0, 2]]).astype(np.int32)
        cache.queries = np.ones(4, int)

        def windowed(t):
            pages, k, v = t["pages"].swapaxes(2, 3), [], []
            for b in range(len(t["q"])):
                last, window, sinks = t["length_info"][:, b]
                own = t["page_values"][t["page_indptr"][b]:t["page_indptr"][b + 1]]
                slots = (len(own) - 1) * 4 + last
                at = np.r_[0:sinks, window:slots]
                rows = pages[own[at // 4], :, at % 4].astype(float)
                k.append(rows[:, 0]), v.append(rows[:, 1])
            return faulty(t["q"], k, v, [1] * len(k))

        words = self.reduced({**arrays, "q": rng.standard_normal((4, HQ, 16)).astype(np.float32)}, windowed, "--layout",
                             "mlc")
        self.assertRegex(words, "1 sequence, 1 query, (8|11) keys, 1 KV head, 1 query head, head size 1, [234] blocks")


if __name__ == "__main__":
    program.main()
