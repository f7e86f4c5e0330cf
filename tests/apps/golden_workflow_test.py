#!/usr/bin/python3
"""golden and verify as a kernel's author uses them: caches made by NumPy in every engine's layout, the golden output
against a gather and a softmax in NumPy, then candidates that are right and candidates that are not.

    golden_workflow_test.py --kvscope PROGRAM
"""
import itertools
import json
import os
import sys
import xml.etree.ElementTree

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, gallery, kvscope, read_safetensors, safetensors  # noqa: E402

P = 4  # tokens a page; lengths 0, 1, P - 1, P, P + 1 and a longer one, so that one page more or less shows
LENGTHS = np.array([0, 1, P - 1, P, P + 1, 5 * P + 2])
QUERIES = np.array([2, 1, 2, 3, 1, 3])
HQ, H, D = 6, 2, 16  # three query heads on a KV head: h // 3 and h % 2 differ
LAYOUTS = ["max", "nhd", "hnd", "flashinfer", "flashinfer_hnd", "vllm_legacy", "sglang", "mla"]


# --- element types, as NumPy has no bf16 and no e4m3 ----------------------------------------------------------------

def e4m3_value(code):
    sign, exponent, mantissa = -1 if code & 128 else 1, code >> 3 & 15, code & 7
    if code & 127 == 127:
        return np.nan
    return sign * (mantissa / 8 * 2.0 ** -6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


E4M3 = np.array([e4m3_value(code) for code in range(256)])


def to_bits(dtype, x):
    """`x` rounded to the type, as NumPy can store it."""
    if dtype == "f32":
        return x.astype(np.float32)
    if dtype == "f16":
        return x.astype(np.float16)
    if dtype == "bf16":
        bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.nanargmin(np.abs(x[..., None] - E4M3), axis=-1).astype(np.uint8)


def to_double(dtype, bits):
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return E4M3[bits] if dtype == "e4m3" else bits.astype(np.float64)


def poisoned(dtype, shape):
    """NaN and infinity by turns: whatever reads one of them shows it."""
    poison = {"f32": [np.nan, np.inf], "f16": [np.nan, -np.inf], "bf16": [0x7FC0, 0x7F80], "e4m3": [0x7F, 0xFF]}[dtype]
    like = to_bits(dtype, np.zeros(1)).dtype
    return np.resize(np.array(poison, like), shape)


# --- a batch and its caches -----------------------------------------------------------------------------------------

class Batch:
    """Queries, and keys and values by sequence, in double; `k_bits` and `v_bits` are the same as stored."""

    def __init__(self, seed, dtype="f32", lengths=LENGTHS, queries=QUERIES, heads=H, size=D, value_size=None):
        rng = np.random.default_rng(seed)
        self.dtype, self.lengths, self.queries = dtype, np.asarray(lengths), np.asarray(queries)
        self.q_bits = to_bits("bf16" if dtype == "bf16" else "f32", 2 * rng.standard_normal((sum(queries), HQ, size)))
        self.q = to_double("bf16" if dtype == "bf16" else "f32", self.q_bits)
        self.k_bits = [to_bits(dtype, rng.standard_normal((n, heads, size))) for n in self.lengths]
        self.v_bits = [to_bits(dtype, rng.standard_normal((n, heads, size))) for n in self.lengths]
        if value_size:  # MLA: V is the first elements of K
            self.v_bits = [k[..., :value_size] for k in self.k_bits]
        self.k = [to_double(dtype, k) for k in self.k_bits]
        self.v = [to_double(dtype, v) for v in self.v_bits]
        self.offsets = np.concatenate([[0], np.cumsum(self.queries)])


class Pages:
    """Where the batch's pages are put: anywhere in a pool that is larger than needed, in no order."""

    def __init__(self, batch, seed):
        rng = np.random.default_rng(seed)
        count = -(-batch.lengths // P)
        self.blocks = int(count.sum()) + 5
        order = rng.permutation(self.blocks)
        self.of = np.split(order[:count.sum()], np.cumsum(count)[:-1])
        # Entries behind a sequence's pages are what an allocator left there: out of range, negative, another's block.
        self.table = rng.choice([-1, 2 ** 31 - 1, self.blocks, 0], (len(count), count.max() + 2))
        for row, pages in zip(self.table, self.of):
            row[:len(pages)] = pages
        self.batch = batch

    def fill(self, rows_by_sequence):
        """[N, P, ...] with every sequence's rows in its pages and poison everywhere else."""
        pool = poisoned(self.batch.dtype, (self.blocks, P, *rows_by_sequence[0].shape[1:]))
        for rows, pages in zip(rows_by_sequence, self.of):
            for t, row in enumerate(rows):
                pool[pages[t // P], t % P] = row
        return pool


def tensors(layout, batch, pages):
    """The batch as the engine of that layout keeps it."""
    k, v = pages.fill(batch.k_bits), pages.fill(batch.v_bits)
    table, lengths = pages.table.astype(np.int32), batch.lengths.astype(np.int32)
    out = {"q": batch.q_bits, "query_offsets": batch.offsets}
    if batch.dtype == "bf16":
        out["q_bf16"] = out.pop("q")
    if layout == "max":
        blocks = poisoned(batch.dtype, (pages.blocks, 2, 3, P, H, D))
        blocks[:, 0, 1], blocks[:, 1, 1] = k, v
        out |= {"blocks": blocks, "lookup_table": table.astype(np.uint32),
                "cache_lengths": (lengths - batch.queries).astype(np.uint32)}
    elif layout in ("nhd", "hnd"):
        turn = (0, 1, 2, 3) if layout == "nhd" else (0, 2, 1, 3)
        out |= {"k_cache": k.transpose(turn), "v_cache": v.transpose(turn),
                "block_table": table, "cache_seqlens": lengths}
    elif layout.startswith("flashinfer"):
        cache = np.stack([k, v], 1)
        count = -(-batch.lengths // P)
        out |= {"kv_cache": cache.transpose(0, 1, 3, 2, 4) if layout.endswith("hnd") else cache,
                "kv_indptr": np.concatenate([[0], np.cumsum(count)]).astype(np.int32),
                "kv_indices": np.concatenate(pages.of).astype(np.int32),
                "kv_last_page_len": np.where(count > 0, lengths - (count - 1) * P, 99).astype(np.int32)}
    elif layout == "vllm_legacy":
        x = 16 // k.itemsize
        out |= {"key_cache": k.reshape(pages.blocks, P, H, D // x, x).transpose(0, 2, 3, 1, 4),
                "value_cache": v.transpose(0, 2, 3, 1), "block_tables": table, "seq_lens": lengths}
    elif layout == "sglang":
        out |= {"k_buffer": k.reshape(-1, H, D), "v_buffer": v.reshape(-1, H, D),
                "kv_indptr": np.concatenate([[0], np.cumsum(batch.lengths)]),
                "kv_indices": np.concatenate([[p[t // P] * P + t % P for t in range(n)]
                                              for n, p in zip(batch.lengths, pages.of)]).astype(np.int64)}
    elif layout == "mla":
        out |= {"kv_cache": k[:, :, 0], "block_table": table, "cache_seqlens": lengths}
    elif layout == "mla split":
        out |= {"ckv": k[:, :, 0, :12], "kpe": k[:, :, 0, 12:], "block_table": table, "cache_seqlens": lengths}
    ending = "" if batch.dtype == "f32" else "_" + batch.dtype
    caches = {"blocks", "k_cache", "v_cache", "kv_cache", "key_cache", "value_cache", "k_buffer", "v_buffer", "ckv",
              "kpe"}
    # An array of float16 says itself what it is.
    return {name + (ending if name in caches and array.dtype != np.float16 else ""): np.ascontiguousarray(array)
            for name, array in out.items()}


# --- the oracle: gather, scores, softmax, in double -----------------------------------------------------------------

def attention(batch, scale=None, mask="causal", left=-1, right=0, chunk=0, top_left=False, cap=None, slopes=None,
              sinks=None, base2=False, empty=-np.inf, kv_head=lambda h, group: h // group):
    """(o, lse, a1, a2, smax)"""
    rows = len(batch.q)
    scale = D ** -0.5 if scale is None else scale
    value_size = batch.v[0].shape[-1]
    o, a1, a2 = (np.zeros((rows, HQ, value_size)) for _ in range(3))
    lse, smax = np.full((rows, HQ), empty), np.zeros((rows, HQ))
    for b, (k, v) in enumerate(zip(batch.k, batch.v)):
        keys, queries = len(k), batch.queries[b]
        for i, h in itertools.product(range(queries), range(HQ)):
            at, kv = batch.offsets[b] + i, kv_head(h, HQ // batch.k[0].shape[1])
            position = i if top_left else keys - queries + i
            t = np.arange(keys)
            seen = {"none": t >= 0, "causal": t <= position,
                    "sliding_window": ((left < 0) | (t >= position - left)) & ((right < 0) | (t <= position + right)),
                    "chunked": (t // chunk == position // chunk) & (t <= position) if chunk else t < 0}[mask]
            if not seen.any():
                continue
            s = scale * (k[seen, kv] @ batch.q[at, h])
            if cap:
                s = cap * np.tanh(s / cap)
            if slopes is not None:
                s = s + slopes[h] * (t[seen] - position)
            top = max(s.max(), sinks[h]) if sinks is not None else s.max()
            total = np.exp(s - top).sum() + (np.exp(sinks[h] - top) if sinks is not None else 0)
            p = np.exp(s - top) / total
            o[at, h] = p @ v[seen, kv]
            a1[at, h], a2[at, h] = p @ abs(v[seen, kv]), np.sqrt(p ** 2 @ v[seen, kv] ** 2)
            lse[at, h] = (top + np.log(total)) / (np.log(2) if base2 else 1)
            smax[at, h] = abs(s).max()
    return o, lse, a1, a2, smax


class Folder(program.FolderTest):
    def golden(self, arrays, layout, *options):
        np.savez(self.path("input.npz"), **arrays)
        done = kvscope("golden", "--input", "input.npz", "--layout", layout, "--out", "golden.npz", *options,
                       cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in done.stderr.splitlines():
            self.assertTrue(line.startswith("kvscope: warning: "), line)
        with np.load(self.path("golden.npz")) as file:
            return {key: file[key] for key in file.files}

    def assert_is(self, golden, expected):
        for name, want in zip(["o", "lse", "a1", "a2", "smax"], expected):
            self.assertEqual((golden[name].dtype, golden[name].shape), (np.float64, want.shape), name)
            np.testing.assert_allclose(golden[name], want, rtol=1e-12, atol=1e-13, err_msg=name)


class Layouts(Folder):
    def batch(self, layout, dtype, seed):
        if layout == "max":  # its lengths leave the new tokens out, so a sequence never has more queries than keys
            return Batch(seed, dtype, queries=np.minimum(QUERIES, LENGTHS))
        if layout.startswith("mla"):
            return Batch(seed, dtype, heads=1, value_size=12)
        return Batch(seed, dtype)

    def options(self, layout):
        return ["--layer", 1] if layout == "max" else ["--scale", 0.3] + (
            ["--value-size", 12] if layout == "mla" else []) if layout.startswith("mla") else []

    def test_gives_what_a_gather_and_a_softmax_give(self):
        # One wrong stride reads poison. K and V of one layer of three, permuted pages, ragged lengths.
        for n, (layout, dtype) in enumerate(itertools.product(LAYOUTS + ["mla split"], ["f32", "f16", "bf16", "e4m3"])):
            with self.subTest(layout=layout, dtype=dtype):
                batch = self.batch(layout, dtype, n)
                golden = self.golden(tensors(layout, batch, Pages(batch, 100 + n)), layout.split()[0],
                                     *self.options(layout))
                self.assert_is(golden, attention(batch, scale=0.3 if layout.startswith("mla") else None))
                np.testing.assert_array_equal(golden["query_offsets"], batch.offsets)
                np.testing.assert_array_equal(golden["key_lengths"], batch.lengths)

    def test_fast_is_within_the_error_that_it_states(self):
        for layout, dtype in itertools.product(["nhd", "vllm_legacy"], ["f32", "bf16", "e4m3"]):
            with self.subTest(layout=layout, dtype=dtype):
                batch = self.batch(layout, dtype, 77)
                fast = self.golden(tensors(layout, batch, Pages(batch, 3)), layout, "--accuracy", "fast")
                o, lse = attention(batch)[:2]
                score_error, sum_error = fast["golden_error"][..., 0], fast["golden_error"][..., 1]
                seen = fast["key_counts"] > 0
                self.assertTrue((score_error[seen] > 0).all() and (sum_error[seen] < 4.2e-6).all())
                self.assertTrue((score_error < 1e-5).all())
                self.assertTrue((np.abs(fast["lse"][seen] - lse[seen]) <= score_error[seen] + 1e-14).all())
                allowed = (1.01 * score_error[..., None] * (fast["a1"] + np.abs(fast["o"])) +
                           sum_error[..., None] * fast["a1"] + 1e-14)
                self.assertTrue((np.abs(fast["o"] - o) <= allowed).all())

    def test_fast_prints_its_error_and_verify_adds_it(self):
        batch = Batch(12)
        np.savez(self.path("in.npz"), **tensors("nhd", batch, Pages(batch, 1)))
        done = fine("golden", "--input", self.path("in.npz"), "--layout", "nhd", "--accuracy", "fast",
                    "--out", self.path("g.npz"), "--candidate", self.path("c.npz"), "--candidate-dtype", "bf16")
        self.assertRegex(done, r"accuracy   fast: o within \d.*, natural lse within \d.*; kvscope verify adds")
        checked = fine("verify", self.path("g.npz"), self.path("c.npz"), "--explain")
        self.assertRegex(checked, r"\n  golden  \S+ +the golden's own error")
        o, lse = (array.astype(np.float32) for array in attention(batch)[:2])
        np.savez(self.path("r.npz"), o=o, lse=lse)
        fine("verify", self.path("g.npz"), self.path("r.npz"))
        self.assertIn("\nnote: the candidate is the golden file: it is compared with itself\n",
                      fine("verify", self.path("g.npz"), os.path.join(self.path("."), "g.npz")))
        np.savez(self.path("w.npz"), o=o + np.float32(0.001), lse=lse)
        self.assertEqual(kvscope("verify", self.path("g.npz"), self.path("w.npz")).returncode, 1)

    def test_outputs_alone_are_those_of_the_golden_and_judge_nothing(self):
        batch = Batch(12)
        np.savez(self.path("in.npz"), **tensors("nhd", batch, Pages(batch, 1)))
        o, lse = attention(batch)[:2]
        own = ["golden", "--input", self.path("in.npz"), "--layout", "nhd"]
        for accuracy in "strict", "fast":
            fine(*own, "--accuracy", accuracy, "--out", self.path("g.npz"))
            said = fine(*own, "--accuracy", accuracy, "--outputs-only", "--out", self.path("o.npz"))
            with np.load(self.path("g.npz")) as golden, np.load(self.path("o.npz")) as output:
                places = {"query_offsets", "key_lengths", "block_table"}
                errors = {"o_error", "lse_error"} if accuracy == "fast" else set()
                self.assertEqual(set(output.files), {"o", "lse", "manifest.json"} | places | errors)
                for name in {"o", "lse"} | places:
                    np.testing.assert_array_equal(output[name], golden[name])
                for name in errors:
                    self.assertTrue((output[name] < 1e-3).all())
                if errors:
                    seen = np.isfinite(lse)
                    self.assertTrue((np.abs(output["o"] - o).max(axis=2) <= output["o_error"] + 1e-14).all())
                    self.assertTrue((np.abs(output["lse"] - lse)[seen] <= output["lse_error"][seen] + 1e-14).all())
                    self.assertRegex(said, r"\naccuracy   fast: o within \d\S*, lse within \d\S*; o_error and lse_error")
                else:
                    self.assertNotIn("accuracy", said)
        np.savez(self.path("c.npz"), o=o.astype(np.float32))
        for command in "verify", "diagnose":
            done = kvscope(command, self.path("o.npz"), self.path("c.npz"))
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("o.npz: holds the output alone, without the terms that the error bound is made of: make the golden "
                          "without --outputs-only", done.stderr)
        # As a candidate, it is the output of the reference.
        fine(*own, "--out", self.path("g.npz"))
        fine(*own, "--outputs-only", "--out", self.path("o.npz"))
        self.assertNotIn("not compared", fine("verify", self.path("g.npz"), self.path("o.npz")))

    def test_does_not_depend_on_where_the_pages_are(self):
        for layout in LAYOUTS:
            batch = self.batch(layout, "f32", 7)
            first, second = (self.golden(tensors(layout, batch, Pages(batch, seed)), layout, *self.options(layout))
                             for seed in (1, 2))
            for name in ["o", "lse", "a1", "a2", "smax"]:
                self.assertEqual(first[name].tobytes(), second[name].tobytes(), (layout, name))

    def test_is_the_same_in_every_layout_to_the_bit(self):
        batch = Batch(5, "bf16", queries=np.minimum(QUERIES, LENGTHS))
        pages = Pages(batch, 3)
        outputs = {self.golden(tensors(layout, batch, pages), layout, *self.options(layout))["o"].tobytes()
                   for layout in LAYOUTS if layout != "mla"}
        self.assertEqual(len(outputs), 1)

    def test_refuses_one_layout_taken_for_another_when_the_heads_tell(self):
        batch = Batch(6, lengths=[9], queries=[1])
        np.savez(self.path("input.npz"), **tensors("nhd", batch, Pages(batch, 1)))
        done = kvscope("golden", "--input", "input.npz", "--layout", "hnd", "--out", "out.npz", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"kvscope: input.npz: q: has {HQ} heads, not a multiple of the {P} kv heads\n"
                                      "kvscope: input.npz: --layout: the tensors fit 'nhd': pass --layout nhd\n")
        self.assertEqual(os.listdir(self.folder), ["input.npz"])

    def test_reads_and_writes_safetensors(self):
        batch = Batch(8, "bf16")
        arrays = tensors("nhd", batch, Pages(batch, 8))
        names = {"int32": "I32", "int64": "I64", "float32": "F32"}
        with open(self.path("in.safetensors"), "wb") as file:
            file.write(safetensors({name.removesuffix("_bf16"):
                                    ("BF16" if name.endswith("_bf16") else names[str(a.dtype)], a.shape, a.tobytes())
                                    for name, a in arrays.items()}))
        kvscope("golden", "--input", "in.safetensors", "--layout", "nhd", "--out", "g.safetensors", cwd=self.folder)
        found, metadata = read_safetensors(self.path("g.safetensors"))
        o, lse, *_ = attention(batch)
        self.assertEqual(found["o"][:2], ("F64", list(o.shape)))
        np.testing.assert_allclose(np.frombuffer(found["o"][2]).reshape(o.shape), o, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(np.frombuffer(found["lse"][2]).reshape(lse.shape), lse, rtol=1e-12)
        manifest = json.loads(metadata["kvscope"])
        self.assertEqual((manifest["kvscope_bundle"], manifest["layout"], manifest["page_size"]), (2, "nhd", P))
        # The same numbers as from an .npz.
        self.assertEqual(self.golden(arrays, "nhd")["o"].tobytes(), found["o"][2])

    def test_writes_the_same_bytes_when_run_again(self):
        batch = Batch(9)
        np.savez(self.path("in.npz"), **tensors("hnd", batch, Pages(batch, 9)))
        for ending in ["npz", "safetensors"]:
            contents = []
            for name in ["first", "second"]:
                fine("golden", "--input", "in.npz", "--layout", "hnd", "--out", f"{name}.{ending}", cwd=self.folder)
                with open(self.path(f"{name}.{ending}"), "rb") as file:
                    contents.append(file.read())
            self.assertEqual(*contents)


class Scales(Folder):
    """Scales beside the cache: read in every layout, under every name, and never dropped in silence."""

    def rejected(self, arrays, *options):
        np.savez(self.path("input.npz"), **arrays)
        done = kvscope("golden", "--input", "input.npz", "--layout", "nhd", "--out", "out.npz", *options,
                       cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertFalse(os.path.exists(self.path("out.npz")))
        return done.stderr

    def test_other_scales_give_another_golden_in_every_layout(self):
        layouts = Layouts()
        for layout in LAYOUTS:
            with self.subTest(layout=layout):
                batch = layouts.batch(layout, "e4m3", 40)
                arrays = tensors(layout, batch, Pages(batch, 40))
                heads = 1 if layout == "mla" else H
                k_scale = np.linspace(0.25, 1.5, heads, dtype=np.float32)
                v_scale = np.float16(0.75)
                extra = {"k_descale": k_scale} if layout == "mla" else {"k_descale": k_scale, "v_scale": v_scale}
                scaled = self.golden(arrays | extra, layout, *layouts.options(layout))
                batch.k = [k * k_scale[:, None] for k in batch.k]
                batch.v = [v * (k_scale[0] if layout == "mla" else v_scale) for v in batch.v]
                self.assert_is(scaled, attention(batch, scale=0.3 if layout == "mla" else None))

    def test_a_tensor_that_is_not_used_is_an_error_with_the_nearest_name(self):
        batch = Batch(41)
        arrays = tensors("nhd", batch, Pages(batch, 41))
        self.assertEqual(self.rejected(arrays | {"k_scal": np.float32(2), "alibi_slope": np.zeros(HQ)}),
                         "kvscope: input.npz: alibi_slope: is not a tensor of layout 'nhd': did you mean "
                         "\"alibi_slopes\"? Pass --ignore alibi_slope to leave it out\n"
                         "kvscope: input.npz: k_scal: is not a tensor of layout 'nhd': did you mean \"k_scale\"? "
                         "Pass --ignore k_scal to leave it out\n")
        self.assertEqual(self.rejected(arrays, "--ignore", "k_scale"),
                         "kvscope: input.npz: --ignore: 'k_scale' is not a tensor of the input: choose one of "
                         "block_table, cache_seqlens, k_cache, q, query_offsets, v_cache\n")
        golden = self.golden(arrays | {"k_scale": np.float32(2), "notes": np.zeros(3)}, "nhd", "--ignore", "k_scale",
                             "--ignore", "notes")
        self.assert_is(golden, attention(batch))

    def test_a_golden_is_an_input_again(self):
        first, again = self.path("first.safetensors"), self.path("again.safetensors")
        fine("golden", gallery("quantized_e4m3"), "--out", first)
        fine("golden", "--input", first, "--layout", "max", "--out", again)
        for name in ["o", "lse"]:
            self.assertEqual(read_safetensors(first)[0][name][2], read_safetensors(again)[0][name][2])


class Conventions(Folder):
    def check(self, options, queries=QUERIES, extra=None, **expected):
        batch = Batch(20, queries=queries)
        arrays = tensors("nhd", batch, Pages(batch, 20)) | (extra or {})
        self.assert_is(self.golden(arrays, "nhd", *options), attention(batch, **expected))

    def test_masks(self):
        many = np.array([3, 4, 4, 4, 2, 6])  # more queries than keys in some: rows that see nothing
        for queries in (QUERIES, many):
            self.check(["--mask", "none"], queries, mask="none")
            self.check(["--mask", "causal"], queries)
            self.check(["--alignment", "top_left"], queries, top_left=True)
            for left, right in [(0, 0), (2, 0), (P, 0), (3, 1), (-1, 2), (2, -1)]:
                self.check(["--mask", "sliding_window", "--window-left", left, "--window-right", right], queries,
                           mask="sliding_window", left=left, right=right)
            for chunk in (1, 3, P, 100):
                self.check(["--mask", "chunked", "--chunk", chunk], queries, mask="chunked", chunk=chunk)

    def test_scores(self):
        slopes, sinks = np.linspace(0.05, 0.8, HQ), np.linspace(-1, 9, HQ)
        self.check(["--scale", 0.7], scale=0.7)
        self.check(["--soft-cap", 3], cap=3)
        self.check([], extra={"alibi_slopes": slopes}, slopes=slopes)
        self.check([], extra={"sinks": sinks}, sinks=sinks)
        self.check(["--soft-cap", 2.5, "--mask", "sliding_window", "--window-left", 5, "--scale", 0.4],
                   extra={"alibi_slopes": slopes, "sinks": sinks}, slopes=slopes, sinks=sinks, cap=2.5,
                   mask="sliding_window", left=5, scale=0.4)

    def test_log_sum_exp(self):
        self.check(["--lse-base", "two"], base2=True)
        self.check(["--empty-lse", "+inf"], empty=np.inf)

    def test_merge_of_two_halves_is_the_whole(self):
        # The halves' keys are disjoint; every query sees all of both.
        whole = Batch(21, lengths=[11, 9], queries=[2, 3])
        for base, options in [(False, []), (True, ["--lse-base", "two"])]:
            for name, part in [("a", slice(0, 6)), ("b", slice(6, None))]:
                half = Batch(21, lengths=[11, 9], queries=[2, 3])
                half.k, half.v = [k[part] for k in whole.k], [v[part] for v in whole.v]
                o, lse, *_ = attention(half, mask="none", base2=base)
                np.savez(self.path(name + ".npz"), o=o, lse=lse)
            fine("merge", self.path("a.npz"), self.path("b.npz"), "--out", self.path("m.npz"), *options)
            o, lse, *_ = attention(whole, mask="none", base2=base)
            with np.load(self.path("m.npz")) as merged:
                np.testing.assert_allclose(merged["o"], o, rtol=1e-12, atol=1e-13)
                np.testing.assert_allclose(merged["lse"], lse, rtol=1e-12)

    def test_merge_of_parts_that_see_no_key(self):
        np.savez(self.path("none.npz"), o=np.zeros((2, 3, 4)), lse=np.full((2, 3), -np.inf))
        for options, empty in [([], -np.inf), (["--empty-lse", "-inf"], -np.inf), (["--empty-lse", "+inf"], np.inf)]:
            fine("merge", self.path("none.npz"), self.path("none.npz"), "--out", self.path("m.npz"), *options)
            with np.load(self.path("m.npz")) as merged:
                np.testing.assert_array_equal(merged["lse"], np.full((2, 3), empty))
                np.testing.assert_array_equal(merged["o"], np.zeros((2, 3, 4)))

    def test_merge_of_parts_without_queries(self):
        rows = np.zeros((0, 3))
        np.savez(self.path("none.npz"), o=np.zeros((0, 3, 4)), lse=rows, o_error=rows, lse_error=rows)
        self.assertEqual(fine("merge", "none.npz", "none.npz", "--out", "m.npz", cwd=self.folder),
                         "merged 2 partial states of 0 queries, 3 heads, 4 dims (lse base natural) into m.npz\n"
                         "accuracy   o within 0, lse within 0: o_error and lse_error have the errors of each row\n")
        with np.load(self.path("m.npz")) as merged:
            self.assertEqual((merged["o"].shape, merged["lse_error"].shape), ((0, 3, 4), (0, 3)))

    def test_merge_of_parts_with_stated_errors_states_its_own(self):
        whole = Batch(21, lengths=[11, 9], queries=[2, 3])
        for base, options in [(False, []), (True, ["--lse-base", "two"])]:
            o, lse, *_ = attention(whole, mask="none", base2=base)
            parts = []
            for name, part in [("a", slice(0, 6)), ("b", slice(6, None))]:
                half = Batch(21, lengths=[11, 9], queries=[2, 3])
                half.k, half.v = [k[part] for k in whole.k], [v[part] for v in whole.v]
                right, right_lse, *_ = attention(half, mask="none", base2=base)
                rng = np.random.default_rng(len(parts))
                o_error, lse_error = rng.uniform(0, 0.01, right_lse.shape), rng.uniform(0, 0.01, right_lse.shape)
                parts.append((right + o_error[..., None] * rng.choice([-1, 1], right.shape),
                              right_lse + lse_error * rng.choice([-1, 1], right_lse.shape), o_error, lse_error))
                np.savez(self.path(name + ".npz"), **dict(zip(["o", "lse", "o_error", "lse_error"], parts[-1])))
            text = fine("merge", self.path("a.npz"), self.path("b.npz"), "--out", self.path("m.npz"), *options)
            with np.load(self.path("m.npz")) as merged:
                self.assertTrue((np.abs(merged["o"] - o).max(-1) <= merged["o_error"]).all())
                self.assertTrue((np.abs(merged["lse"] - lse) <= merged["lse_error"]).all())
                self.assertLess(merged["o_error"].max(), 0.1)
                self.assertLessEqual(merged["lse_error"].max(), 0.01)
                self.assertIn(f"accuracy   o within {merged['o_error'].max():.2g}", text)


class Verdicts(Folder):
    """Lengths around a page, and one long enough that a single wrong token is a small part of it."""

    LENGTHS, QUERIES = [1, P - 1, P, P + 1, 61], [1, 1, 2, 2, 2]

    def setUp(self):
        super().setUp()
        self.batch = Batch(30, lengths=self.LENGTHS, queries=self.QUERIES)
        self.golden(tensors("nhd", self.batch, Pages(self.batch, 30)), "nhd")

    def verify(self, o, lse, dtype, *options):
        name = {"f32": "o", "f16": "o", "bf16": "o_bf16"}[dtype]
        np.savez(self.path("candidate.npz"), **{name: to_bits(dtype, o)}, lse=lse.astype(np.float32))
        return kvscope("verify", self.path("golden.npz"), self.path("candidate.npz"), "--json", "--junit",
                       self.path("junit.xml"), *options)

    def verdict(self, done):
        """Passed, after checking that exit code, JSON and JUnit agree on every criterion."""
        def no_number(text):
            raise AssertionError(f"{text} is not JSON")
        report = json.loads(done.stdout, parse_constant=no_number)
        suite = xml.etree.ElementTree.parse(self.path("junit.xml")).getroot()
        cases = {case.get("name"): case.find("failure") is None for case in suite.iter("testcase")}
        self.assertEqual(cases, {c["name"]: c["passed"] for c in report["criteria"]})
        self.assertEqual(report["passed"], all(cases.values()))
        self.assertEqual(int(suite.get("tests")), len(cases))
        self.assertEqual(int(suite.get("failures")), sum(1 for passed in cases.values() if not passed))
        self.assertEqual((done.returncode, done.stderr), (0 if report["passed"] else 1, ""))
        return report["passed"]

    def in_float32(self, **changes):
        """What a plain kernel gives: float32 throughout, another order of summation than the golden's."""
        b = Batch(30, lengths=self.LENGTHS, queries=self.QUERIES)
        b.q, b.k, b.v = b.q.astype(np.float32), [k.astype(np.float32) for k in b.k], [v.astype(np.float32) for v in b.v]
        return attention(b, **changes)[:2]

    def test_inputs_that_are_gone_or_replaced_do_not_change_the_verdict(self):
        o, lse = self.in_float32()
        gone = "the inputs of the golden are missing; pass them with --input"
        for replaced in (False, True):
            os.remove(self.path("input.npz"))
            if replaced:
                np.savez(self.path("input.npz"), q=np.zeros((2, 3, 4), np.float32))
            for right, options in [(True, []), (False, []), (True, ["--profile", "torch"]), (False, ["--profile", "torch"]),
                                   (False, ["--no-diagnose"]), (False, ["--profile", "torch", "--no-diagnose"])]:
                with self.subTest(replaced=replaced, right=right, options=options):
                    done = self.verify(o if right else -o, lse, "f32", *options)
                    self.assertEqual(self.verdict(done), right)
                    notes = json.loads(done.stdout)["notes"]
                    words = [note.split(": ", 1) for note in notes if note.startswith(("pages were", "no diagnosis"))]
                    kinds = {"pages were not tested"} if "--profile" not in options else set()
                    kinds |= {"no diagnosis"} if not right and "--no-diagnose" not in options else set()
                    self.assertEqual({kind for kind, _ in words}, kinds)
                    for _, reason in words:
                        if replaced:
                            self.assertRegex(reason, r"input\.npz: \w+: ")
                        else:
                            self.assertEqual(reason, gone)
            if not replaced:
                np.savez(self.path("input.npz"), q=np.zeros(1))
        done = self.verify(o, lse, "f32", "--input", self.path("input.npz"))  # the file that was asked for
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("input.npz: k_cache: is missing; layout 'nhd' needs k_cache [N, P, H, D]\n", done.stderr)

    def mutations(self):
        def changed(change=None, **options):
            b = Batch(30, lengths=self.LENGTHS, queries=self.QUERIES)
            if change:
                change(b)
            return attention(b, **options)[:2]

        def of_last(edit):
            def change(b):
                for rows in (b.k, b.v):
                    rows[-1] = edit(rows[-1].copy())
            return change

        def wrong_page(rows):
            rows[8 * P:9 * P] = rows[2 * P:3 * P]
            return rows

        def zero_last_page(rows):
            rows[len(rows) // P * P:] = 0
            return rows

        def swap_two_values(b):
            b.v[-1][[11, 12]] = b.v[-1][[12, 11]]

        def swap_pages_of_v(b):
            b.v[-1] = np.concatenate([b.v[-1][P:2 * P], b.v[-1][:P], b.v[-1][2 * P:]])

        def keys_for_values(b):
            b.k, b.v = b.v, b.k

        right_o, right_lse = changed()
        dropped_o, dropped_lse = changed(mask="sliding_window", left=-1, right=-1)
        return {
            "last token dropped": self.without_last(),
            "one token too many": (dropped_o, dropped_lse),
            "one wrong page": changed(of_last(wrong_page)),
            "last page zero": changed(of_last(zero_last_page)),
            "two values swapped": changed(swap_two_values),
            "two pages of V swapped": changed(swap_pages_of_v),
            "K and V swapped": changed(keys_for_values),
            "kv head h % Hk": changed(kv_head=lambda h, group: h % H),
            "scale 1 % off": changed(scale=1.01 * D ** -0.5),
            "scale 1 / D": changed(scale=1 / D),
            "base of lse": (right_o, right_lse / np.log(2)),
            "causal from the top left": changed(top_left=True),
            "one NaN": (np.where(np.arange(right_o.size).reshape(right_o.shape) == 77, np.nan, right_o), right_lse),
        }

    def without_last(self):
        """Every query omits the key at its own position, unless it is its only key."""
        b = Batch(30, lengths=self.LENGTHS, queries=self.QUERIES)
        o, lse = attention(b)[:2]
        for n, (k, v) in enumerate(zip(b.k, b.v)):
            for i, h in itertools.product(range(b.queries[n]), range(HQ)):
                end, at = len(k) - b.queries[n] + i, b.offsets[n] + i
                if end > 0:
                    s = D ** -0.5 * (k[:end, h // (HQ // H)] @ b.q[at, h])
                    p = np.exp(s - s.max())
                    o[at, h], lse[at, h] = p @ v[:end, h // (HQ // H)] / p.sum(), s.max() + np.log(p.sum())
        return o, lse

    def test_right_candidates_pass(self):
        o, lse = self.in_float32()
        self.assertEqual(o.dtype, np.float64)  # an array of what float32 gave
        self.assertTrue(self.verdict(self.verify(o, lse, "f32")))
        exact_o, exact_lse = attention(self.batch)[:2]
        for dtype in ["f32", "f16", "bf16"]:
            with self.subTest(dtype=dtype):
                self.assertTrue(self.verdict(self.verify(exact_o, exact_lse, dtype)))

    def test_every_mutation_fails_in_every_type(self):
        right_lse = attention(self.batch)[1]
        for name, (o, lse) in self.mutations().items():
            for dtype in ["f32", "f16", "bf16"]:
                with self.subTest(mutation=name, dtype=dtype):
                    self.assertFalse(self.verdict(self.verify(o, lse, dtype)))
                    if name != "base of lse":  # o alone must tell, because a kernel need not give its lse
                        self.assertFalse(self.verdict(self.verify(o, right_lse, dtype)))

    def test_a_fixed_tolerance_lets_a_wrong_scale_through(self):
        # Why the derived bound is the default.
        o, _ = self.mutations()["scale 1 % off"]
        right_lse = attention(self.batch)[1]
        self.assertFalse(self.verdict(self.verify(o, right_lse, "bf16")))
        for profile in ["vllm", "flashattention"]:
            done = self.verify(o, right_lse, "bf16", "--profile", profile)
            self.assertTrue(self.verdict(done))
            self.assertEqual(json.loads(done.stdout)["policy"], f"profile {profile}, bf16")

    def test_names_the_worst_element_and_its_block(self):
        o, lse = attention(self.batch)[:2]
        o[4, 3, 5] += 1  # sequence 3 (rows 4 and 5), its first query: token P + 1 - 2
        report = json.loads(self.verify(o, lse, "f32").stdout)
        worst = next(t for t in report["tensors"] if t["name"] == "o")["worst"]
        table = Pages(self.batch, 30).of
        token = self.LENGTHS[3] - self.QUERIES[3]
        place = {"sequence": 3, "query": 0, "head": 3, "dim": 5, "token": token, "page": token // P, "slot": token % P,
                 "block": int(table[3][token // P])}
        self.assertEqual({key: worst[key] for key in place}, place)

    def test_an_output_under_another_name_is_compared_and_diagnosed(self):
        right, wrong = attention(self.batch)[:2], self.mutations()["scale 1 % off"]
        for (o, lse), code in [(right, 0), (wrong, 1)]:
            for o_name, lse_name in [("out", "softmax_lse"), ("output", "lse"), ("out_f16", "softmax_lse"), ("o", "logsumexp")]:
                array = to_bits("f16", o).view(np.uint16) if o_name == "out_f16" else o.astype(np.float32)
                np.savez(self.path("candidate.npz"), **{o_name: array, lse_name: lse.astype(np.float32)})
                arguments = (self.path("golden.npz"), self.path("candidate.npz"))
                done = kvscope("verify", *arguments)
                self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
                name = o_name.split("_")[0]
                note = f"note: candidate '{name}' is compared as 'o'\n"
                self.assertEqual(note in done.stdout, name != "o")
                self.assertIn("lse: bound", done.stdout)
                self.assertEqual(f"note: candidate '{lse_name}' is compared as 'lse'\n" in done.stdout, lse_name != "lse")
                diagnosis = kvscope("diagnose", *arguments)
                self.assertEqual((diagnosis.returncode, diagnosis.stderr), (code, ""), diagnosis.stdout)
                self.assertEqual(note in diagnosis.stdout, name != "o")

    def test_says_that_the_golden_itself_is_not_finite(self):
        with np.load(self.path("input.npz")) as file:
            arrays = dict(file)
        block = arrays["block_table"][0, 0]
        for name, place, cause in [("k_cache", (block, 0, 0, 1), "q is, or K of a token that it sees is"),
                                   ("v_cache", (block, 0, 0, 1), "V of a token that it sees is"),
                                   ("q", (0, 0, 1), "q is, or K of a token that it sees is")]:
            for value in (np.nan, np.inf):
                changed = {**arrays, name: arrays[name].copy()}
                changed[name][place] = value
                np.savez(self.path("not_finite.npz"), **changed)
                done = kvscope("golden", "--input", self.path("not_finite.npz"), "--layout", "nhd", "--out",
                               self.path("golden_nan.npz"))
                with np.load(self.path("golden_nan.npz")) as file:
                    o, lse = file["o"], file["lse"]
                rows = int((~np.isfinite(o).all(2)).sum())
                query, head = np.argwhere(~np.isfinite(o).all(2))[0]
                said = f"{rows} of {o[..., 0].size} rows of o are NaN or infinite, the first at query {query}, head {head}: "
                self.assertEqual((done.returncode, done.stderr), (0, f"kvscope: warning: {said}{cause}\n"))
                np.savez(self.path("nan_candidate.npz"), o=o, lse=lse)
                verified = kvscope("verify", self.path("golden_nan.npz"), self.path("nan_candidate.npz"))
                self.assertEqual(verified.returncode, 0)
                self.assertIn(f"note: the golden: {said}{cause}. A candidate needs NaN or infinities at the same elements\n",
                              verified.stdout)

    def test_compares_bit_for_bit_when_asked(self):
        o, lse = attention(self.batch)[:2]
        with np.load(self.path("golden.npz")) as file:
            golden = {key: file[key] for key in ["o", "lse", "key_lengths"]}
        np.savez(self.path("candidate.npz"), **golden)
        arguments = ["verify", self.path("golden.npz"), self.path("candidate.npz"), "--exact", "key_lengths"]
        self.assertEqual(kvscope(*arguments).returncode, 0)
        golden["key_lengths"][2] += 1
        np.savez(self.path("candidate.npz"), **golden)
        self.assertEqual(kvscope(*arguments).returncode, 1)


class Scenarios(Folder):
    def test_the_tiled_flow_over_a_scenario_passes_against_its_golden(self):
        for name in ["first_light", "preemption", "quantized_e4m3", "sliding_window"]:
            for dtype in ["f32", "f16", "bf16"]:
                with self.subTest(scenario=name, dtype=dtype):
                    golden, candidate = self.path("g.safetensors"), self.path("c.npz")
                    fine("golden", gallery(name), "--out", golden, "--candidate", candidate, "--candidate-dtype", dtype)
                    fine("verify", golden, candidate)

    def test_the_candidate_of_another_step_fails(self):
        golden, candidate = self.path("g.npz"), self.path("c.npz")
        fine("golden", gallery("preemption"), "--out", golden, "--step", 3)
        fine("golden", gallery("preemption"), "--out", self.path("h.npz"), "--step", 3, "--layer", 1,
             "--candidate", candidate)
        self.assertEqual(kvscope("verify", golden, candidate).returncode, 1)


if __name__ == "__main__":
    program.main()
