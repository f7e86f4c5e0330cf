#!/usr/bin/python3
"""kvscope convert between every two named layouts, with each kind of cache that the first one can hold. A pair either
converts, keeps every byte and comes back, or is rejected with the property of the layout that cannot hold the other. Which
of the two is stated here, by the kind of the cache, independently of the layouts' descriptions.

    layout_pairs_test.py --kvscope PROGRAM
"""
import os
import sys

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from engine_layouts import (CHUNKS, E2M1, E4M3, LAYOUTS, MLA, MLA_CHUNKS, Cache, attention, block_table,  # noqa: E402
                            two)
from program import kvscope  # noqa: E402

ONE_SEQUENCE = set(CHUNKS) | set(MLA_CHUNKS)
NAMES = [*LAYOUTS, *CHUNKS, "mla", "mla_indptr", "sglang_mla", "lmcache_mla", "flashmla_fp8", "flashmla_sparse"]
# K and V of different head sizes. MLA rows become such a pair: all of a row is K, and a copy of its first elements V.
DIFFERENT = {"nhd", "vllm", "vllm_hnd", "vllm_diffkv", "sglang", "hf", "dense", "varlen"}
SPARSE = "lists the keys of queries, not the tokens of sequences"
# These store K and V of different sizes in two tensors, and others in one.
APART = {name: block_table((table, "seq_lens"), *two(k, v, order, order))
         for name, table, k, v, order in [
             ("vllm", "block_table", "key_cache", "value_cache", (0, 1, 2, 3)),
             ("vllm_hnd", "block_table", "key_cache", "value_cache", (0, 2, 1, 3)),
             ("flashinfer_trtllm", "block_tables", "k_cache", "v_cache", (0, 2, 1, 3))]} | {
                 "sglang_req": LAYOUTS["sglang_req"]}
# The last axis of K or V is not that of a head's elements, so that no axis can become that of the scales of a head.
NO_BLOCK_SCALES = {"vllm_legacy", "vllm_diffkv", *CHUNKS}
NO_PLACE = "has no place for block scales{}, which the input has"


def layout_file(k, v):
    return {"forms": [{"tensors": [{"name": "k_cache", "holds": "k", "axes": k}, {"name": "v_cache", "holds": "v", "axes": v}]}],
            "table": {"form": "blocks", "tensors": {"table": ["block_table"], "lengths": ["cache_seqlens"]}}}


def plain_reason(target):
    """Why a target cannot hold 2 heads with K and V apart; "" if it can."""
    return {"mla": "stores V as the first elements of K, the input stores V apart",
            "mla_indptr": "has no axis for the 2 heads", "lmcache_mla": "has no axis for the 2 heads",
            "sglang_mla": "stores V as the first elements of K, the input stores V apart",
            "flashmla_fp8": "has packed rows, the input has rows of one type"}.get(target, "")


def mla_reason(target):
    """The same for MLA rows of 24 elements, 16 of them V."""
    if target in MLA or target in MLA_CHUNKS or target in DIFFERENT:
        return ""
    if target == "flashmla_fp8":
        return "has packed rows, the input has rows of one type"
    if target in ("trtllm", "mlc", "flashinfer", "flashinfer_hnd", *CHUNKS):
        return "holds K and V in one tensor, which needs one head size and type"
    return "needs K and V of one head size and type"


class Pairs(program.FolderTest):
    def convert(self, source, a, b, out, *options):
        return kvscope("convert", source, "--from", a, "--to", b, "--out", out, *options, cwd=self.folder)

    def load(self, name):
        with np.load(os.path.join(self.folder, name)) as file:
            return {key: file[key] for key in file.files if key != "manifest.json"}

    def assert_plain(self, arrays, read, cache, what):
        found = read(arrays, cache)
        self.assertEqual(len(found), len(cache.k), what)
        for (k, v), want_k, want_v in zip(found, cache.k, cache.v):
            self.assertEqual((k.shape, k.tobytes()), (want_k.shape, want_k.tobytes()), what)
            self.assertEqual((v.shape, v.tobytes()), (want_v.shape, np.ascontiguousarray(want_v).tobytes()), what)

    def check(self, kind, sources, cache, reason_of, readers, targets=NAMES):
        q = {"q": np.ones((cache.queries.sum(), 4, cache.size), np.float32), "query_offsets": cache.starts(cache.queries)}
        mla = "mla" in kind
        converted = 0
        for a, (build, read) in sources.items():
            np.savez(self.path("a.npz"), **build(cache), **q)
            for b in targets:
                if a == b:
                    continue
                with self.subTest(kind=kind, a=a, b=b):
                    needs_size = lambda layout: (["--value-size", cache.value_size]  # noqa: E731
                                                 if layout == "vllm_diffkv" or (mla and layout in {**MLA, **MLA_CHUNKS})
                                                 else [])
                    done = self.convert("a.npz", a, b, "b.npz", *needs_size(a))
                    reason = (SPARSE if b == "flashmla_sparse" else
                              f"holds one sequence, the input has {len(cache.k)}"
                              if b in ONE_SEQUENCE and len(cache.k) > 1 else reason_of(b))
                    if reason:
                        self.assertEqual((done.returncode, done.stdout), (2, ""))
                        self.assertIn(f"layout '{b}' {reason}", done.stderr)
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assert_plain(self.load("b.npz"), readers(b)[1], cache, b)
                    back = self.convert("b.npz", b, a, "back.npz", *needs_size(b))
                    self.assertEqual(back.returncode, 0, back.stderr)
                    arrays = self.load("back.npz")
                    # A layout that can hold MLA rows and K and V apart keeps the form of its input.
                    apart = mla and any(name.startswith(("k_cache", "k_buffer")) for name in arrays)
                    self.assert_plain(arrays, APART[a][1] if apart else read, cache, f"{b} to {a}")
                    converted += 1
        return converted

    def test_k_and_v_apart(self):
        # Those that convert are in layouts_test.py, with every slot of their pools.
        cache = Cache(1, "bf16", layers=1, layer=0)
        others = [name for name in NAMES if name not in LAYOUTS]
        self.assertEqual(self.check("plain", LAYOUTS, cache, plain_reason, None, others), 0)

    def test_one_sequence(self):
        cache = Cache(2, "f16", lengths=(11,), layers=1, layer=0)
        both = {**LAYOUTS, **CHUNKS}
        count = self.check("one", both, cache, plain_reason, both.__getitem__)
        self.assertEqual(count, len(both) * (len(both) - 1))

    def test_mla(self):
        def readers(layout):
            return {**LAYOUTS, **APART, **MLA, **MLA_CHUNKS}[layout]

        for lengths, sources in [((5, 8, 1, 14), MLA), ((11,), {**MLA, **MLA_CHUNKS})]:
            cache = Cache(3, "bf16", lengths=lengths, heads=1, size=24, value_size=16, layers=1, layer=0, mla=True)
            count = self.check("mla", sources, cache, mla_reason, readers)
            self.assertEqual(count, len(sources) * (len(sources) - 1 + len(DIFFERENT)))

    def test_values_that_do_not_lead_the_keys_do_not_fit_mla(self):
        cache = Cache(4, "bf16", heads=1, size=24, value_size=16)
        np.savez(self.path("a.npz"), **LAYOUTS["varlen"][0](cache))
        done = self.convert("a.npz", "varlen", "mla", "b.npz")
        self.assertEqual(done.returncode, 2)
        self.assertIn("layout 'mla' stores V as the first elements of K, the input stores V apart", done.stderr)

    def test_packed_rows_and_sparse_indices(self):
        rng = np.random.default_rng(5)
        rows = rng.integers(0, 256, (7, 4, 1, 656)).astype(np.uint8)
        q = np.ones((2, 4, 576), np.float32)
        np.savez(os.path.join(self.folder, "packed.npz"), kv_cache=rows, q=q, cache_seqlens=np.array([6, 3]),
                 block_table=np.array([[4, 1], [6, -1]]))
        np.savez(os.path.join(self.folder, "sparse.npz"), kv_cache=rows, q=q, indices=np.array([[1, 5, 9], [2, -1, 20]]))
        for b in NAMES:
            with self.subTest(b=b):
                if b != "flashmla_fp8":
                    done = self.convert("packed.npz", "flashmla_fp8", b, "b.npz")
                    reason = (SPARSE if b == "flashmla_sparse" else "holds one sequence, the input has 2"
                              if b in ONE_SEQUENCE else "has rows of one type, the input has packed rows")
                    self.assertEqual(done.returncode, 2)
                    self.assertIn(f"layout '{b}' {reason}", done.stderr)
                if b != "flashmla_sparse":
                    done = self.convert("sparse.npz", "flashmla_sparse", b, "b.npz")
                    self.assertEqual(done.returncode, 2)
                    self.assertIn(f"layout 'flashmla_sparse' {SPARSE}", done.stderr)

    def test_scales_of_k_and_v_in_one_tensor_become_two(self):
        rng = np.random.default_rng(7)
        q = {"q": rng.standard_normal((4, 4, 16)).astype(np.float32)}

        def o_of(name, layout):
            done = kvscope("golden", "--input", name, "--layout", layout, "--out", "o.npz", cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            return self.load("o.npz")["o"]

        cache = Cache(7, "f32", layers=1, layer=0)
        n, p, h = cache.blocks, cache.page, cache.heads
        # The axis of K and V is the first, or has its place in the cache.
        for source, place in (("nhd", 0), ("flashinfer", 1)):
            inputs = LAYOUTS[source][0](cache)
            for per in ((1, 1, 1), (1, 1, h), (n, 1, h), (n, p, h)):
                axes = (*per[:place], 2, *per[place:], 1)
                scales = rng.uniform(0.5, 2, axes).astype(np.float32)
                np.savez(self.path("a.npz"), **inputs, **q, kv_scale=scales)
                want = o_of("a.npz", source)
                for target in ("hnd", "flashinfer_hnd", "max"):
                    with self.subTest(source=source, target=target, axes=axes):
                        done = self.convert("a.npz", source, target, "b.npz")
                        self.assertEqual(done.returncode, 0, done.stderr)
                        names = set(self.load("b.npz"))
                        self.assertTrue({"k_scale", "v_scale"} <= names and "kv_scale" not in names, names)
                        np.testing.assert_array_equal(o_of("b.npz", target), want)

    def golden(self, name, *options):
        """Bytes of o and lse."""
        done = kvscope("golden", "--input", name, "--out", "o.npz", *options, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        arrays = self.load("o.npz")
        return arrays["o"].tobytes(), arrays["lse"].tobytes()

    def equal_or_rejected(self, target, reason, want, *options):
        """Converts a.npz: the result has the golden, in its layout and back in the first one, or there is no file."""
        out = self.path("b.npz")
        if os.path.exists(out):
            os.remove(out)
        done = self.convert("a.npz", "nhd", target, "b.npz", *options)
        if reason:
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertEqual(done.stderr, f"kvscope: a.npz: --to: layout '{target.removesuffix('.json')}' {reason}\n")
            self.assertFalse(os.path.exists(out))
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.golden("b.npz"), want)
        done = kvscope("convert", "b.npz", "--to", "nhd", "--out", "back.npz", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.golden("back.npz"), want)

    def block_scaled(self, kind, n=5):
        """A cache in layout nhd with a scale for each 16 elements of a head, e4m3 with scales of f32, or NVFP4, and its
        values in double precision."""
        rng = np.random.default_rng(8)
        shape, lengths = (2, n, 4, 2, 64), np.array([6], np.int32)
        if kind == "nvfp4":
            codes, scales = rng.integers(0, 16, shape), rng.integers(0x30, 0x48, (*shape[:-1], 4)).astype(np.uint8)
            stored = (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8)
            values, ending, options = E2M1[codes] * np.repeat(E4M3[scales], 16, -1), "_e4m3", ["--cache-dtype", "e2m1"]
            names = ("k_cache", "v_cache")
        else:
            stored, scales = rng.integers(0, 0x50, shape).astype(np.uint8), rng.uniform(0.05, 1, (*shape[:-1], 4)).astype(np.float32)
            values, ending, options = E4M3[stored] * np.repeat(scales.astype(float), 16, -1), "", []
            names = ("k_cache_e4m3", "v_cache_e4m3")
        arrays = {names[0]: stored[0], names[1]: stored[1], "k_block_scale" + ending: scales[0],
                  "v_block_scale" + ending: scales[1], "block_table": np.array([[3, 1]], np.int32), "cache_seqlens": lengths,
                  "q": rng.standard_normal((1, 4, 64)).astype(np.float32)}
        return arrays, values, options

    def test_block_scales_are_kept_or_rejected(self):
        for name, k, v in [("turned.json", "[block, head, dim, slot]", "[block, head, dim, slot]"),
                           ("k_turned.json", "[block, head, dim, slot]", "[block, head, slot, dim]"),
                           ("v_turned.json", "[block, head, slot, dim]", "[block, head, dim, slot]"),
                           ("straight.json", "[head, block, slot, dim]", "[head, block, slot, dim]")]:
            program.write_json(self.path(name), layout_file(k, v))
        reasons = {"turned.json": NO_PLACE.format(""), "k_turned.json": NO_PLACE.format(" of K"),
                   "v_turned.json": NO_PLACE.format(" of V"), "straight.json": ""}
        for name in NAMES:
            reasons[name] = NO_PLACE.format("") if name in NO_BLOCK_SCALES else plain_reason(name)
        del reasons["flashmla_sparse"]  # rejected as the list of keys that it is
        for kind in ("e4m3", "nvfp4"):
            arrays, values, options = self.block_scaled(kind)
            np.savez(self.path("a.npz"), **arrays)
            want = self.golden("a.npz", "--layout", "nhd", *options)
            rows = [pool[[3, 3, 3, 3, 1, 1], [0, 1, 2, 3, 0, 1]] for pool in values]
            for found, expected in zip(want, attention(arrays["q"], rows[:1], rows[1:], [1], 0.125)):
                np.testing.assert_allclose(np.frombuffer(found).reshape(expected.shape), expected, rtol=1e-11, atol=1e-12)
            for target, reason in reasons.items():
                with self.subTest(kind=kind, target=target):
                    self.equal_or_rejected(target, reason, want, *options)

    def test_block_scales_of_k_or_v_alone(self):
        arrays, _, _ = self.block_scaled("e4m3")
        program.write_json(self.path("v_turned.json"), layout_file("[block, head, slot, dim]", "[block, head, dim, slot]"))
        program.write_json(self.path("k_turned.json"), layout_file("[block, head, dim, slot]", "[block, head, slot, dim]"))
        for side, other in ("kv", "vk"):
            np.savez(self.path("a.npz"), **{name: array for name, array in arrays.items() if name != f"{other}_block_scale"})
            want = self.golden("a.npz", "--layout", "nhd")
            alone = f"holds the block scales of K and V in one tensor, the input has those of {side.upper()} alone"
            for target, reason in [("hnd", ""), ("vllm", ""), ("flashinfer_trtllm", ""), ("sglang", ""), ("dense", ""),
                                   (f"{other}_turned.json", ""), (f"{side}_turned.json", NO_PLACE.format(f" of {side.upper()}")),
                                   ("flashinfer", ""), ("max", alone), ("trtllm", alone), ("mlc", alone),
                                   *[(name, NO_PLACE.format(f" of {side.upper()}")) for name in sorted(NO_BLOCK_SCALES)]]:
                with self.subTest(side=side, target=target):
                    self.equal_or_rejected(target, reason, want)

    def test_block_scales_of_two_kinds_in_one_tensor(self):
        arrays, _, _ = self.block_scaled("e4m3")
        kinds = {"groups": (arrays["v_block_scale"][..., :2], "f32 for each 16 elements of K and f32 for each 32 of V"),
                 "types": (arrays["v_block_scale"].astype(np.float16), "f32 for each 16 elements of K and f16 for each 16 of V")}
        for kind, (scales, counted) in kinds.items():
            np.savez(self.path("a.npz"), **{**arrays, "v_block_scale": scales})
            want = self.golden("a.npz", "--layout", "nhd")
            for target in ("hnd", "sglang", "flashinfer_hnd", "max", "mlc"):
                with self.subTest(kind=kind, target=target):
                    apart = target not in ("max", "mlc")
                    self.equal_or_rejected(target, "" if apart else "holds the block scales of K and V in one tensor, the input has "
                                          + counted, want)

    def test_v_with_block_scales_is_no_part_of_k(self):
        """V is the first elements of K, but its scales are its own."""
        rng = np.random.default_rng(9)
        rows = rng.integers(0, 0x50, (5, 4, 1, 64)).astype(np.uint8)
        np.savez(self.path("a.npz"), k_cache_e4m3=rows, v_cache_e4m3=rows, block_table=np.array([[3, 1]], np.int32),
                 cache_seqlens=np.array([6], np.int32), v_block_scale=rng.uniform(0.05, 1, (5, 4, 1, 4)).astype(np.float32))
        for target in ("mla", "sglang_mla", "lmcache_mla"):
            with self.subTest(target=target):
                self.equal_or_rejected(target, NO_PLACE.format(" of V"), None)

    def test_elements_of_4_bits_have_no_runs(self):
        arrays, _, options = self.block_scaled("nvfp4")
        np.savez(self.path("a.npz"), **{name: array for name, array in arrays.items() if "scale" not in name})
        self.equal_or_rejected("vllm_legacy", "keeps runs of whole bytes, the input has elements of 4 bits", None, *options)

    def test_small_pools_are_read_as_they_were_written(self):
        """A pool of 2 blocks has the shape [2, 2, P, H, D], with K and V on either of the first axes."""
        rng = np.random.default_rng(10)
        for blocks in (1, 2, 3):
            k, v = rng.standard_normal((2, blocks, 4, 2, 16)).astype(np.float32)
            tokens = 4 * blocks - 1
            np.savez(self.path("a.npz"), k_cache=k, v_cache=v, q=rng.standard_normal((1, 4, 16)).astype(np.float32),
                     block_table=np.arange(blocks, dtype=np.int32)[None, ::-1], cache_seqlens=np.array([tokens], np.int32))
            want = self.golden("a.npz", "--layout", "nhd")
            rows = [pool[::-1].reshape(-1, 2, 16)[:tokens].astype(float) for pool in (k, v)]
            expected = attention(self.load("a.npz")["q"], rows[:1], rows[1:], [1], 0.25)
            for found, one in zip(want, expected):
                np.testing.assert_allclose(np.frombuffer(found).reshape(one.shape), one, rtol=1e-12, atol=1e-13)
            for target in NAMES:
                with self.subTest(blocks=blocks, target=target):
                    if target == "flashmla_sparse":
                        continue  # no layout for tokens of sequences: test_packed_rows_and_sparse_indices
                    self.equal_or_rejected(target, plain_reason(target), want)
                    if plain_reason(target) or blocks != 2:
                        continue
                    # The name of the layout is no contradiction, and another one is.
                    self.assertEqual(self.golden("b.npz", "--layout", target), want)
                    done = kvscope("lint", "b.npz", cwd=self.folder)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    other = "mla" if target != "mla" else "nhd"
                    done = kvscope("golden", "--input", "b.npz", "--layout", other, "--out", "o.npz", cwd=self.folder)
                    self.assertEqual(done.returncode, 2)
                    self.assertIn(f"states layout '{target}': leave the option out", done.stderr)
                    if target in ("vllm", "vllm_hnd"):  # the described form is one of this layout
                        for axes in ("[block, slot, kv, head, dim]", "[block, kv, dim, head, slot]"):
                            done = kvscope("golden", "--input", "b.npz", "--axes", f"kv={axes}", "--out", "o.npz", cwd=self.folder)
                            self.assertEqual(done.returncode, 2)
                            self.assertIn("--axes: describes another layout", done.stderr)

    def test_flat_storage_is_written_where_the_cache_has_its_sizes(self):
        cache = Cache(6, "f32")
        n, p, h, d = cache.blocks, cache.page, cache.heads, cache.size
        row, block = 20, 2 * p * h * 20 + 7  # rows of 16 elements are 20 apart, V follows K in each block
        with open(os.path.join(self.folder, "arena.json"), "w", encoding="utf-8") as file:
            file.write(f"""{{"forms": [{{"tensors": [
                {{"name": "arena", "holds": "kv", "axes": "[block, kv, slot, head, dim]", "offset": 5,
                  "strides": [{block}, {p * h * row}, {h * row}, {row}, 1], "sizes": [{n + 2}, 2, {p}, {h}, {d}]}}]}}],
                "table": {{"form": "blocks", "tensors": {{"table": ["pages"], "lengths": ["lengths"]}}}}}}""")
        first = LAYOUTS["nhd"][0](cache)
        np.savez(self.path("a.npz"), **first)
        done = self.convert("a.npz", "nhd", "arena.json", "b.npz")
        self.assertEqual(done.returncode, 0, done.stderr)
        arena = self.load("b.npz")["arena"]
        for which, source in enumerate(("k_cache", "v_cache")):
            for i, j, head in np.ndindex(n, p, h):
                at = 5 + i * block + ((which * p + j) * h + head) * row
                self.assertEqual(arena[at:at + d].tobytes(), first[source][i, j, head].tobytes())
        done = self.convert("b.npz", "arena.json", "nhd", "back.npz")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_plain(self.load("back.npz"), LAYOUTS["nhd"][1], cache, "arena to nhd")
        other = Cache(6, "f32", size=8)
        np.savez(self.path("a.npz"), **LAYOUTS["nhd"][0](other))
        done = self.convert("a.npz", "nhd", "arena.json", "b.npz")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"describes flat storage of sizes [{n + 2}, 2, 4, 2, 16], the cache has [{n + 2}, 2, 4, 2, 8]",
                      done.stderr)


if __name__ == "__main__":
    program.main()
