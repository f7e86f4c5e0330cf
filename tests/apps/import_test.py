#!/usr/bin/python3
"""kvscope import: folders as FlashInfer's log writes them and workloads of flashinfer-bench, made here, whose golden
output is compared with attention in NumPy.

    import_test.py --kvscope PROGRAM
"""
import json
import math
import os
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, kvscope, read_safetensors, safetensors  # noqa: E402

TYPES = {np.dtype(np.float32): "F32", np.dtype(np.float64): "F64", np.dtype(np.int32): "I32", np.dtype(np.int64): "I64",
         np.dtype(bool): "BOOL", np.dtype(np.uint8): "U8"}
DECODE_PLAN = ("(self, indptr: torch.Tensor, indices: torch.Tensor, last_page_len: torch.Tensor, num_qo_heads: int, "
               "num_kv_heads: int, head_dim: int, page_size: int, pos_encoding_mode: str = 'NONE', window_left: int = -1, "
               "logits_soft_cap: Optional[float] = None, q_data_type: Optional[Union[str, torch.dtype]] = 'float16', "
               "sm_scale: Optional[float] = None) -> None")
PREFILL_PLAN = ("(self, qo_indptr: torch.Tensor, paged_kv_indptr: torch.Tensor, paged_kv_indices: torch.Tensor, "
                "paged_kv_last_page_len: torch.Tensor, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, "
                "page_size: int, head_dim_vo: Optional[int] = None, custom_mask: Optional[torch.Tensor] = None, "
                "packed_custom_mask: Optional[torch.Tensor] = None, causal: bool = False, window_left: int = -1) -> None")
RUN = ("(self, q: torch.Tensor, paged_kv_cache: Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]], *args, "
       "q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, "
       "return_lse: bool = False) -> Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]")
MLA_PLAN = ("(self, qo_indptr: torch.Tensor, kv_indptr: torch.Tensor, kv_indices: torch.Tensor, kv_len_arr: torch.Tensor, "
            "num_heads: int, head_dim_ckv: int, head_dim_kpe: int, page_size: int, causal: bool, sm_scale: float)")
MLA_RUN = "(self, q_nope, q_pe, ckv_cache, kpe_cache, out=None, lse=None, return_lse=False)"


def file_of(arrays):
    return safetensors({name: (TYPES[a.dtype], a.shape, np.ascontiguousarray(a).tobytes())
                        for name, a in arrays.items()})


def attention(q, rows_k, rows_v, scale, causal=True, window=None, cap=None, mask=None):
    """[queries, heads, value size] and the log-sum-exp in base 2, of one sequence; keys [n, kv heads, size]. `mask`
    [queries, n] replaces the causal one."""
    n, queries, heads = len(rows_k), *q.shape[:2]
    o, lse = np.zeros((queries, heads, rows_v.shape[2])), np.full((queries, heads), -np.inf)
    for i in range(queries):
        at = n - queries + i
        seen = [t for t in range(n) if (not causal or t <= at) and (window is None or t >= at - window)]
        if mask is not None:
            seen = np.flatnonzero(mask[i])
        for h in range(heads):
            g = h * rows_k.shape[1] // heads
            s = rows_k[seen, g].astype(float) @ q[i, h].astype(float) * scale
            if cap:
                s = cap * np.tanh(s / cap)
            p = np.exp(s - s.max())
            o[i, h] = p @ rows_v[seen, g].astype(float) / p.sum()
            lse[i, h] = (s.max() + np.log(p.sum())) / np.log(2)
    return o, lse


class Batch:
    """Pages of 4 tokens anywhere in a pool; the cache is [pages, 2, 4, heads, size]."""

    def __init__(self, seed, lengths=(9, 3, 12), heads=2, query_heads=4, size=8, queries=None):
        rng = np.random.default_rng(seed)
        self.page_size, self.heads, self.size = 4, heads, size
        self.lengths = np.array(lengths)
        count = -(-self.lengths // 4)
        self.indptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
        self.indices = rng.permutation(int(count.sum()) + 3)[:count.sum()].astype(np.int32)
        self.last = (self.lengths - (count - 1) * 4).astype(np.int32)
        self.cache = rng.standard_normal((int(count.sum()) + 3, 2, 4, heads, size)).astype(np.float32)
        self.queries = np.array(queries if queries else [1] * len(lengths))
        self.offsets = np.concatenate([[0], np.cumsum(self.queries)]).astype(np.int32)
        self.q = rng.standard_normal((int(self.queries.sum()), query_heads, size)).astype(np.float32)

    def expected(self, scale=None, masks=None, **options):
        results = []
        for b, length in enumerate(self.lengths):
            pages = self.cache[self.indices[self.indptr[b]:self.indptr[b + 1]]]
            rows = pages.transpose(1, 0, 2, 3, 4).reshape(2, -1, self.heads, self.size)[:, :length]
            results.append(attention(self.q[self.offsets[b]:self.offsets[b + 1]], *rows, scale or self.size ** -0.5,
                                     mask=None if masks is None else masks[b], **options))
        return [np.concatenate(parts) for parts in zip(*results)]


class Imports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.calls = folder.name, 0

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def call(self, function, signature, arguments, results=None, self_id=77, ending="safetensors", root="dumps"):
        """A call as FlashInfer's log writes it: positional arguments first, then a dict of keywords."""
        self.calls += 1
        name = f"20251201_120000_{self.calls:03d}_pid5_{function}_call0001"
        os.makedirs(self.path(root, name))
        tensors, metadata = {}, {"arg_0": {"type": "Wrapper", "repr": "<Wrapper>"}}
        positional, keywords = arguments
        named = {**{f"arg_{i + 1}": v for i, v in enumerate(positional)},
                 **{f"kwarg_{k}": v for k, v in keywords.items()}}
        for key, value in named.items():
            (tensors if isinstance(value, np.ndarray) else metadata)[key] = value
        with open(self.path(root, name, "inputs." + ending), "wb") as file:
            file.write(file_of(tensors) if ending == "safetensors" else b"PK")
        if results:
            with open(self.path(root, name, "outputs.safetensors"), "wb") as file:
                file.write(file_of(results))
        record = {"function_name": function, "module": "flashinfer.decode", "process_id": 5, "self_id": self_id,
                  "input_metadata": metadata, "function_signature": signature, "execution_status": "inputs_saved"}
        with open(self.path(root, name, "metadata.jsonl"), "w", encoding="utf-8") as file:
            for status in "inputs_saved", "completed":
                file.write(json.dumps({**record, "execution_status": status}) + "\n")
        return name

    def decode(self, batch, layout="NHD", run_keywords=None, plan_more=(), **options):
        wrapper = "BatchDecodeWithPagedKVCacheWrapper"
        cache = batch.cache if layout == "NHD" else batch.cache.transpose(0, 1, 3, 2, 4)
        # A plan() of another wrapper and an older one of this wrapper must not be taken.
        self.call(wrapper + ".plan", DECODE_PLAN, ([batch.indptr, batch.indices, batch.last, 1, 1, 1, 1], {}), self_id=8)
        self.call(wrapper + ".plan", DECODE_PLAN, ([batch.indptr * 0, batch.indices, batch.last, 1, 1, 1, 1], {}))
        self.call(wrapper + ".plan", DECODE_PLAN,
                  ([batch.indptr, batch.indices, batch.last, 4, batch.heads, batch.size, 4, *plan_more], options))
        o, lse = batch.expected()
        return self.call(wrapper + ".run", RUN, ([batch.q, np.ascontiguousarray(cache)], run_keywords or {}),
                         {"result_0": o.astype(np.float32), "result_1": lse.astype(np.float32)})

    def golden_of(self, inputs):
        fine("golden", "--input", inputs, "--out", self.path("golden.safetensors"))
        tensors, _ = read_safetensors(self.path("golden.safetensors"))
        return [np.frombuffer(tensors[name][2]).reshape(tensors[name][1]) for name in ("o", "lse")]

    def imported(self, source, *options):
        printed = fine("import", source, "--out", self.path("inputs.safetensors"), *options)
        return printed, self.golden_of(self.path("inputs.safetensors"))

    def close(self, found, expected):
        for have, want in zip(found, expected):
            np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-12)

    def test_a_decode_call_is_found_with_its_plan_and_its_output_passes(self):
        batch = Batch(1)
        self.decode(batch)
        printed, found = self.imported(self.path("dumps"), "--candidate", self.path("engine.safetensors"))
        self.assertIn("BatchDecodeWithPagedKVCacheWrapper.run, layout flashinfer, 3 sequences, 3 queries, 24 keys", printed)
        self.assertIn("lse_base=two", printed)
        self.close(found, batch.expected())
        self.assertTrue(fine("verify", self.path("golden.safetensors"), self.path("engine.safetensors")).startswith("pass"))

    def test_scale_window_soft_cap_and_scales_come_from_the_call(self):
        batch = Batch(2)
        self.decode(batch, sm_scale=0.3, window_left=4, logits_soft_cap=2.5, run_keywords={"k_scale": 0.5, "v_scale": 3.0})
        _, found = self.imported(self.path("dumps"))
        o, lse = batch.expected(scale=0.15, window=4, cap=2.5)
        self.close(found, [3 * o, lse])

    def test_hnd_is_read_from_the_constructor_or_from_the_shape(self):
        batch = Batch(3)
        self.decode(batch, "HND")
        printed, found = self.imported(self.path("dumps"))
        self.assertIn("layout flashinfer_hnd", printed)
        self.close(found, batch.expected())
        square = Batch(4, heads=4)  # 4 heads, pages of 4 tokens: the shape does not tell
        self.folder = self.path("square")
        self.call("BatchDecodeWithPagedKVCacheWrapper.run", RUN, ([square.q, square.cache], {}), self_id=1)
        self.decode(square, "HND")
        ambiguous = kvscope("import", self.path("dumps"), "--call", sorted(os.listdir(self.path("dumps")))[-1], "--out",
                            self.path("i.npz"))
        self.assertEqual(ambiguous.returncode, 2)
        self.assertIn("--kv-layout: is required", ambiguous.stderr)
        call = sorted(os.listdir(self.path("dumps")))[-1]
        _, found = self.imported(self.path("dumps", call), "--kv-layout", "HND")
        self.close(found, square.expected())
        self.call("BatchDecodeWithPagedKVCacheWrapper.__init__", "(self, float_workspace_buffer, kv_layout: str = 'NHD')",
                  ([np.zeros(1, np.float32), "HND"], {}))
        call = self.decode(square, "HND")
        _, found = self.imported(self.path("dumps", call) + "/")
        self.close(found, square.expected())

    def test_prefill_with_and_without_a_causal_mask(self):
        batch = Batch(5, lengths=(9, 5), queries=[4, 2])
        for causal in True, False:
            root = f"prefill{causal}"
            name = "BatchPrefillWithPagedKVCacheWrapper"
            self.call(name + ".plan", PREFILL_PLAN, ([batch.offsets, batch.indptr, batch.indices, batch.last, 4, 2, 8, 4],
                                                     {"causal": causal}), root=root)
            self.call(name + ".run", RUN, ([batch.q], {"paged_kv_cache": batch.cache}), root=root)
            _, found = self.imported(self.path(root))
            self.close(found, batch.expected(causal=causal))

    def test_prefill_with_a_custom_mask(self):
        batch = Batch(8, lengths=(9, 5), queries=[4, 2])
        rng = np.random.default_rng(8)
        masks = [rng.random((4, 9)) < 0.5, rng.random((2, 5)) < 0.5]
        for mask in masks:
            mask[:, 1] = True
        flat = np.concatenate([mask.ravel() for mask in masks])
        packed = np.concatenate([np.packbits(mask.ravel(), bitorder="little") for mask in masks])
        wrapper = "BatchPrefillWithPagedKVCacheWrapper"
        # The kernel ignores `causal`, and the values if there are bits.
        for root, more in [("values", {"custom_mask": flat, "causal": True}), ("bits", {"packed_custom_mask": packed}),
                           ("both", {"custom_mask": ~flat, "packed_custom_mask": packed})]:
            self.call(wrapper + ".plan", PREFILL_PLAN,
                      ([batch.offsets, batch.indptr, batch.indices, batch.last, 4, 2, 8, 4], more), root=root)
            self.call(wrapper + ".run", RUN, ([batch.q], {"paged_kv_cache": batch.cache}), root=root)
            inputs, golden = self.path("inputs.safetensors"), self.path("golden.safetensors")
            for arguments in [("import", self.path(root), "--out", inputs), ("golden", "--input", inputs, "--out", golden)]:
                done = kvscope(*arguments)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stderr, "^kvscope: warning: (packed_)?custom_mask: reports count each query as a "
                                              "sequence of the keys that it sees\n$")
            tensors, _ = read_safetensors(golden)
            found = [np.frombuffer(tensors[name][2]).reshape(tensors[name][1]) for name in ("o", "lse")]
            self.close(found, batch.expected(masks=masks))
        self.call(wrapper + ".plan", PREFILL_PLAN, ([batch.offsets, batch.indptr, batch.indices, batch.last, 4, 2, 8, 4],
                                                    {"custom_mask": flat, "window_left": 3}), root="window")
        self.call(wrapper + ".run", RUN, ([batch.q], {"paged_kv_cache": batch.cache}), root="window")
        self.assertIn("window_left: is 3, and a custom mask is set: kvscope computes one of the two",
                      self.rejected(self.path("window")))

    def test_mla_becomes_a_block_table_and_one_query_tensor(self):
        rng = np.random.default_rng(6)
        batch = Batch(6)
        ckv, kpe = rng.standard_normal((13, 4, 6)), rng.standard_normal((13, 4, 2))
        q_nope, q_pe = rng.standard_normal((3, 4, 6)), rng.standard_normal((3, 4, 2))
        f32 = lambda *arrays: [a.astype(np.float32) for a in arrays]  # noqa: E731
        ckv, kpe, q_nope, q_pe = f32(ckv, kpe, q_nope, q_pe)
        name = "BatchMLAPagedAttentionWrapper"
        self.call(name + ".plan", MLA_PLAN, ([batch.offsets, batch.indptr, batch.indices, batch.lengths.astype(np.int32),
                                              4, 6, 2, 4, True, 0.2], {}))
        self.call(name + ".run", MLA_RUN, ([q_nope, q_pe, ckv, kpe], {}))
        _, found = self.imported(self.path("dumps"))
        parts = []
        for b, length in enumerate(batch.lengths):
            pages = batch.indices[batch.indptr[b]:batch.indptr[b + 1]]
            rows = np.concatenate([ckv[pages], kpe[pages]], -1).reshape(-1, 1, 8)[:length]
            q = np.concatenate([q_nope, q_pe], -1)[b:b + 1]
            parts.append(attention(q, rows, rows[..., :6], 0.2))
        self.close(found, [np.concatenate(p) for p in zip(*parts)])

    def rejected(self, source, *options):
        done = kvscope("import", source, "--out", self.path("no.npz"), *options)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertFalse(os.path.exists(self.path("no.npz")))
        return done.stderr

    def test_dumps_that_cannot_be_read_name_the_reason(self):
        batch, wrapper = Batch(7), "BatchDecodeWithPagedKVCacheWrapper"
        run = [batch.q, batch.cache]
        self.call(wrapper + ".run", RUN, (run, {}), root="no_plan")
        self.assertIn("plan(): of the same wrapper is not beside this call", self.rejected(self.path("no_plan")))
        plan = [batch.indptr, batch.indices, batch.last, 4, 2, 8, 4]
        self.call(wrapper + ".plan", DECODE_PLAN, (plan, {}), root="torch")
        self.call(wrapper + ".run", RUN, (run, {}), root="torch", ending="pt")
        said = self.rejected(self.path("torch"))
        self.assertIn("import torch; from safetensors.torch import save_file\n", said)
        self.assertIn("torch.load('inputs.pt', weights_only=True)", said)
        self.assertIn("FLASHINFER_DUMP_SAFETENSORS=1", said)
        self.call(wrapper + ".plan", DECODE_PLAN, ([*plan, "ROPE_LLAMA"], {}), root="tuple")
        self.call(wrapper + ".run", RUN, ([batch.q, {"type": "tuple", "value": "(tensor..."}], {}), root="tuple")
        said = self.rejected(self.path("tuple"))
        self.assertIn("paged_kv_cache: was passed as a tuple", said)
        self.assertIn("pos_encoding_mode: is ROPE_LLAMA", said)
        self.call("rmsnorm", "(x)", ([batch.q], {}), root="other")
        self.assertIn("has calls of rmsnorm, but no run() of", self.rejected(self.path("other")))
        self.decode(batch)
        self.decode(batch)
        self.assertIn("--call: is required, because the folder has 2 calls of run()", self.rejected(self.path("dumps")))
        self.assertIn("--uuid: applies only to a .jsonl file", self.rejected(self.path("dumps"), "--uuid", "1"))
        os.makedirs(self.path("empty"))
        self.assertIn("has no call of FlashInfer's log", self.rejected(self.path("empty")))
        self.assertIn("is neither a folder of FlashInfer's log nor a .jsonl file", self.rejected(self.path("x.txt")))

    # --- flashinfer-bench ---------------------------------------------------------------------------------------------

    def bench(self, batch, page_size=4, inputs=None, op="gqa_paged"):
        """definitions/, workloads/ and blob/ as in a data set of flashinfer-bench."""
        shape = lambda *axes: {"shape": list(axes), "dtype": "float32"}  # noqa: E731
        index = lambda axis: {"shape": [axis], "dtype": "int32"}  # noqa: E731
        definition = {
            "name": "gqa_small", "op_type": op,
            "axes": {"num_qo_heads": {"type": "const", "value": 4}, "num_kv_heads": {"type": "const", "value": 2},
                     "head_dim": {"type": "const", "value": 8}, "page_size": {"type": "const", "value": page_size},
                     **{axis: {"type": "var"} for axis in ("batch_size", "num_pages", "len_indptr", "num_kv_indices")}},
            "inputs": {"q": shape("batch_size", "num_qo_heads", "head_dim"),
                       "k_cache": shape("num_pages", "page_size", "num_kv_heads", "head_dim"),
                       "v_cache": shape("num_pages", "page_size", "num_kv_heads", "head_dim"),
                       "kv_indptr": index("len_indptr"), "kv_indices": index("num_kv_indices"),
                       "kv_last_page_len": index("batch_size"), "sm_scale": {"shape": None, "dtype": "float32"}}}
        for folder in "definitions/gqa_paged", "workloads/gqa_paged", "blob/workloads/gqa_paged":
            os.makedirs(self.path("set", folder), exist_ok=True)
        program.write_json(self.path("set/definitions/gqa_paged/gqa_small.json"), definition)
        with open(self.path("set/blob/workloads/gqa_paged/a.safetensors"), "wb") as file:
            file.write(file_of({"kv_indptr": batch.indptr, "kv_indices": batch.indices, "kv_last_page_len": batch.last,
                                "q": batch.q, "k_cache": batch.cache[:, 0], "v_cache": batch.cache[:, 1]}))
        stored = lambda key: {"type": "safetensors", "tensor_key": key,  # noqa: E731
                              "path": "./blob/workloads/gqa_paged/a.safetensors"}
        sources = {**{name: stored(name) for name in definition["inputs"] if name != "sm_scale"},
                   "sm_scale": {"type": "scalar", "value": 0.3}, **(inputs or {})}
        axes = {"batch_size": len(batch.lengths), "num_pages": len(batch.cache), "len_indptr": len(batch.indptr),
                "num_kv_indices": len(batch.indices)}
        with open(self.path("set/workloads/gqa_paged/gqa_small.jsonl"), "w", encoding="utf-8") as file:
            for uuid in "one", "two":
                file.write(json.dumps({"definition": "gqa_small", "solution": None, "evaluation": None,
                                       "workload": {"uuid": uuid, "axes": axes, "inputs": sources}}) + "\n")
        return self.path("set/workloads/gqa_paged/gqa_small.jsonl")

    def test_a_workload_with_stored_tensors_gives_their_attention(self):
        batch = Batch(8)
        printed, found = self.imported(self.bench(batch), "--uuid", "two")
        self.assertIn("gqa_small, layout flashinfer, 3 sequences", printed)
        self.close(found, batch.expected(scale=0.3))

    def test_mla_definitions_of_decode_and_prefill(self):
        """Definitions of op_type mla_paged as the data set documents them: pages of 1 without kv_last_page_len, and pages
        of 4 with it; a prefill has qo_indptr, and a causal mask if its name contains the word."""
        rng = np.random.default_rng(12)
        folder = "set/{}/mla_paged"
        for part in "definitions", "workloads", "blob/workloads":
            os.makedirs(self.path(folder.format(part)), exist_ok=True)
        for name, page, queries in [("mla_paged_decode_h4_ckv6_kpe2_ps1", 1, [1, 1, 1]),
                                    ("mla_paged_decode_h4_ckv6_kpe2_ps4", 4, [1, 1, 1]),
                                    ("mla_paged_prefill_causal_h4_ckv6_kpe2_ps1", 1, [4, 1, 2]),
                                    ("mla_paged_prefill_h4_ckv6_kpe2_ps1", 1, [4, 1, 2])]:
            lengths = np.array([9, 3, 12])
            count = -(-lengths // page)
            indptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
            indices = rng.permutation(int(count.sum()) + 2)[:count.sum()].astype(np.int32)
            pool = rng.standard_normal((int(count.sum()) + 2, page, 8)).astype(np.float32)
            q = rng.standard_normal((sum(queries), 4, 8)).astype(np.float32)
            starts = np.concatenate([[0], np.cumsum(queries)]).astype(np.int32)
            arrays = {"q_nope": q[..., :6], "q_pe": q[..., 6:], "ckv_cache": pool[..., :6], "kpe_cache": pool[..., 6:],
                      "kv_indptr": indptr, "kv_indices": indices}
            rows = "total_q" if "prefill" in name else "batch_size"
            shapes = {"q_nope": [rows, "num_qo_heads", "head_dim_ckv"], "q_pe": [rows, "num_qo_heads", "head_dim_kpe"],
                      "ckv_cache": ["num_pages", "page_size", "head_dim_ckv"],
                      "kpe_cache": ["num_pages", "page_size", "head_dim_kpe"], "kv_indptr": ["len_indptr"],
                      "kv_indices": ["num_kv_indices"]}
            if "prefill" in name:
                arrays["qo_indptr"], shapes["qo_indptr"] = starts, ["len_indptr"]
            if page > 1:
                arrays["kv_last_page_len"] = (lengths - (count - 1) * page).astype(np.int32)
                shapes["kv_last_page_len"] = ["batch_size"]
            program.write_json(self.path(folder.format("definitions"), name + ".json"), {
                "name": name, "op_type": "mla_paged",
                "axes": {**{axis: {"type": "const", "value": value} for axis, value in
                            [("num_qo_heads", 4), ("head_dim_ckv", 6), ("head_dim_kpe", 2), ("page_size", page)]},
                         **{axis: {"type": "var"} for axis in (rows, "num_pages", "len_indptr", "num_kv_indices")}},
                "inputs": {**{key: {"shape": shape, "dtype": "int32" if arrays[key].dtype == np.int32 else "float32"}
                              for key, shape in shapes.items()}, "sm_scale": {"shape": None, "dtype": "float32"}}})
            with open(self.path(folder.format("blob/workloads"), name + ".safetensors"), "wb") as file:
                file.write(file_of(arrays))
            sources = {key: {"type": "safetensors", "path": f"./blob/workloads/mla_paged/{name}.safetensors",
                             "tensor_key": key} for key in arrays}
            workload = self.path(folder.format("workloads"), name + ".jsonl")
            with open(workload, "w", encoding="utf-8") as file:
                json.dump({"definition": name, "solution": None, "evaluation": None, "workload": {
                    "uuid": "one", "axes": {rows: len(q), "batch_size": 3, "num_pages": len(pool), "len_indptr": 4,
                                            "num_kv_indices": len(indices)},
                    "inputs": {**sources, "sm_scale": {"type": "scalar", "value": 0.2}}}}, file)
            with self.subTest(definition=name):
                _, found = self.imported(workload)
                parts = []
                for b, length in enumerate(lengths):
                    k = pool[indices[indptr[b]:indptr[b + 1]]].reshape(-1, 1, 8)[:length]
                    parts.append(attention(q[starts[b]:starts[b + 1]], k, k[..., :6], 0.2,
                                           causal="prefill" not in name or "causal" in name))
                self.close(found, [np.concatenate(p) for p in zip(*parts)])

    def test_random_inputs_depend_on_the_seed_alone(self):
        file = self.bench(Batch(9), inputs={name: {"type": "random"} for name in ("q", "k_cache", "v_cache")})
        made = {}
        for seed in 1, 1, 2:
            printed, found = self.imported(file, "--uuid", "one", "--seed", str(seed))
            self.assertIn(f"note: q, k_cache, v_cache are random in the workload: made from seed {seed}", printed)
            self.assertTrue(np.isfinite(found[0]).all())
            if seed in made:
                np.testing.assert_array_equal(found[0], made[seed])
            made[seed] = found[0]
        self.assertFalse((made[1] == made[2]).any())
        q = np.frombuffer(read_safetensors(self.path("inputs.safetensors"))[0]["k_cache"][2], np.float32)
        self.assertLess(abs(q.mean()), 0.2)
        self.assertLess(abs(math.sqrt((q.astype(float) ** 2).mean()) - 1), 0.1)

    def test_workloads_that_cannot_be_read_name_the_reason(self):
        batch = Batch(10)
        file = self.bench(batch)
        self.assertIn("--uuid: is required, because the file has 2 workloads: pass one of one, two", self.rejected(file))
        self.assertIn("--uuid: no workload has it; there are one, two", self.rejected(file, "--uuid", "three"))
        self.assertIn("--call: applies only to a folder", self.rejected(file, "--call", "x"))
        self.bench(batch, inputs={"q": {"type": "custom"}, "k_cache": {"type": "safetensors", "path": "gone", "tensor_key": "k"}})
        said = self.rejected(file, "--uuid", "one")
        self.assertIn("q: is of type 'custom'; kvscope reads random, scalar and safetensors", said)
        self.assertIn("k_cache: is in 'gone', which is in none of the folders above the workload", said)
        self.bench(batch, page_size=16)
        self.assertIn("k_cache: is f32 [", self.rejected(file, "--uuid", "one"))
        self.bench(batch, op="gemm")
        self.assertIn("$.op_type: is 'gemm'; kvscope reads gqa_paged and mla_paged", self.rejected(file, "--uuid", "one"))
        os.remove(self.path("set/definitions/gqa_paged/gqa_small.json"))
        self.assertIn("--definition: is required", self.rejected(file, "--uuid", "one"))


if __name__ == "__main__":
    program.main()
