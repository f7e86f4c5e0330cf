#!/usr/bin/python3
"""Compiled attention kernels with faults: `kvscope ptx run` or `kvscope verify` names each, as a developer would meet it.

    diagnose_kernels_test.py --kvscope PROGRAM

tests/gpu/virtual/kernels/cuda/attention_faults.cu has the kernels and the list of faults. Their author had seen neither the
hypotheses nor the checks. A fault that breaks a rule of PTX must be reported by the virtual GPU, with words that lead to
it; each other one must be the first cause of the diagnosis, on data that the kernels of other tests do not have.
"""
import json
import os
import re
import sys

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, kvscope  # noqa: E402

CUDA = os.path.join(program.SOURCE, "tests", "gpu", "virtual", "kernels", "cuda")
PAGE, DIM, TILE = 16, 64, 64
with open(os.path.join(CUDA, "attention_faults.cu")) as source:
    NAMES = re.findall(r"^  (\w+),$", re.search(r"enum Fault {(.*?)};", source.read(), re.S).group(1), re.M)


def bf16(values):
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


class Batch:
    """Sequences in a pool whose blocks are in random order. Slots without a token hold ones."""

    def __init__(self, seed, lengths, columns, blocks):
        self.rng = np.random.default_rng(seed)
        self.lengths, self.blocks = np.array(lengths, np.int32), blocks
        self.table = np.zeros((len(lengths), columns), np.int32)
        order = iter(self.rng.permutation(blocks))
        self.rows = []  # (block, tokens) of each page
        for entries, length in zip(self.table, lengths):
            for page in range(-(-length // PAGE)):
                entries[page] = next(order)
                self.rows.append((entries[page], min(PAGE, length - page * PAGE)))

    def pool(self, shape, one, some):
        """[blocks, ...]; `some(tokens)` makes the slots of a page that hold tokens; axis 0 of it are the slots."""
        pool = np.full((self.blocks, PAGE, *shape), one)
        for block, tokens in self.rows:
            pool[block, :tokens] = some(tokens, *shape)
        return pool

    def normal(self, *shape):
        return bf16(self.rng.standard_normal(shape) * 1.3)


class Kernels(program.FolderTest):
    def save(self, prefix, **arrays):
        for name, array in arrays.items():
            np.save(self.path(f"{prefix}_{name}.npy"), array)

    def golden(self, prefix, layout, **tensors):
        np.savez(self.path(f"{prefix}_in.npz"), **tensors)
        fine("golden", "--input", self.path(f"{prefix}_in.npz"), "--layout", layout, "--out",
             self.path(f"{prefix}_golden.npz"))

    def run_kernel(self, kernel, grid, block, *arguments, shared=0, save=()):
        """The text of the virtual GPU. Names of files in the folder are arguments that end with .npy."""
        done = kvscope("ptx", "run", os.path.join(CUDA, "attention_faults.ptx"), "--entry", kernel, "--grid", grid,
                       "--block", block, "--smem", shared, "--check", "all",
                       *(x for a in arguments for x in ("--arg", a)),
                       *(x for n, name in save for x in ("--save", f"{n}={self.path(name)}")), cwd=self.folder)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def cause(self, prefix):
        """The first cause of the output, "passes" or "none"."""
        np.savez(self.path("candidate.npz"), o_bf16=np.load(self.path("o.npy")), lse=np.load(self.path("lse.npy")))
        done = kvscope("verify", self.path(f"{prefix}_golden.npz"), self.path("candidate.npz"), "--json")
        self.assertEqual(done.stderr, "")
        report = json.loads(done.stdout)
        if report["passed"]:
            return "passes"
        found = report["diagnosis"]["explanations"]
        return f"{found[0]['name']}: {found[0]['cause']}" if found else "none"

    def check(self, run, prefix, faults):
        """`faults`: the beginning of the diagnosis, or, as a tuple, texts of the virtual GPU's reports."""
        for name, expected in {"right": "passes", **faults}.items():
            with self.subTest(fault=name):
                text = run(NAMES.index(name))
                if isinstance(expected, tuple):
                    for part in expected:
                        self.assertIn(part, text)
                    continue
                self.assertTrue(text.endswith("verdict     clean\n"), text)
                cause = self.cause(prefix)
                self.assertTrue(cause.startswith(expected), cause)

    def test_the_list_of_faults_is_complete(self):
        self.assertEqual(NAMES[0], "right")
        self.assertEqual(set(NAMES[1:]), {*SPLIT, *PREFILL, *RING})

    def test_decode_over_splits(self):
        batch, heads, group = Batch(7, [150, 41, 64], 12, 40), 2, 4
        e4m3 = lambda *shape: (batch.rng.integers(0, 2, shape) << 7 | batch.rng.integers(0x28, 0x40, shape)).astype(np.uint8)
        q = batch.normal(3, heads * group, DIM)
        k, v = (batch.pool((heads, DIM), np.uint8(0x38), e4m3) for _ in range(2))
        k_scale, v_scale = np.array([0.5, 0.375], np.float32), np.array([0.25, 1.5], np.float32)
        self.golden("split", "nhd", q_bf16=q, k_cache_e4m3=k, v_cache_e4m3=v, block_table=batch.table,
                    cache_seqlens=batch.lengths, k_scale=k_scale, v_scale=v_scale)
        self.save("split", q=q, k=k, v=v, table=batch.table, lengths=batch.lengths, k_scale=k_scale, v_scale=v_scale)

        def run(fault):
            parts = ["part_o.npy", "part_maximum.npy", "part_sum.npy"]
            of_first = self.run_kernel(
                "split_decode", "3,2,3", 128, "f32[3,8,3,64]", "f32[3,8,3]", "f32[3,8,3]", "split_q.npy", "split_k.npy",
                "split_v.npy", "split_table.npy", "split_lengths.npy", "split_k_scale.npy", "split_v_scale.npy", 12, 3, heads,
                "0.125", fault, save=list(enumerate(parts)))
            if not of_first.endswith("verdict     clean\n"):
                return of_first
            return self.run_kernel("merge_splits", "3,8", 64, "bf16[3,8,64]", "f32[3,8]", *parts, "split_lengths.npy", 3,
                                   fault, save=[(0, "o.npy"), (1, "lse.npy")])
        self.check(run, "split", SPLIT)

    def test_prefill(self):
        batch, heads, query_heads = Batch(11, [200, 77, 130], 13, 48), 2, 4
        queries = np.array([70, 77, 1])
        offsets = np.concatenate([[0], np.cumsum(queries)]).astype(np.int32)
        q = batch.normal(queries.sum(), query_heads, DIM)
        cache = np.stack([batch.pool((heads, DIM), np.uint16(0x3f80), batch.normal) for _ in range(2)], 1)
        self.golden("prefill", "vllm", q_bf16=q, kv_cache_bf16=cache, block_table=batch.table, seq_lens=batch.lengths,
                    query_offsets=offsets)
        self.save("prefill", q=q, cache=cache, table=batch.table, lengths=batch.lengths, offsets=offsets)
        rows = len(q)
        self.check(lambda fault: self.run_kernel(
            "prefill", f"2,{query_heads},3", 128, f"bf16[{rows},{query_heads},{DIM}]", f"f32[{rows},{query_heads}]",
            "prefill_q.npy", "prefill_cache.npy", "prefill_table.npy", "prefill_lengths.npy", "prefill_offsets.npy", 13,
            heads, 0.125 * 1.44269504, fault, save=[(0, "o.npy"), (1, "lse.npy")]), "prefill", PREFILL)

    def test_decode_through_a_ring(self):
        batch, heads, group = Batch(13, [330, 77, 264], 21, 60), 2, 8
        q = batch.normal(3, heads * group, DIM)
        k, v = (batch.pool((heads, DIM), np.uint16(0x3f80), batch.normal) for _ in range(2))
        self.golden("ring", "nhd", q_bf16=q, k_cache_bf16=k, v_cache_bf16=v, block_table=batch.table,
                    cache_seqlens=batch.lengths)
        self.save("ring", q=q, k=k, v=v, table=batch.table, lengths=batch.lengths)
        with open(self.path("map.json"), "w") as out:
            json.dump({"kvscope_tensor_map": 1, "type": "bf16", "dims": [DIM, heads, 60 * PAGE],
                       "strides": [2 * DIM, 2 * DIM * heads], "box": [DIM, 1, PAGE], "swizzle": "128B"}, out)
        self.check(lambda fault: self.run_kernel(
            "ring_decode", f"3,{heads}", 160, "map:map.json@ring_k.npy", "map:map.json@ring_v.npy",
            f"bf16[3,{heads * group},{DIM}]", f"f32[3,{heads * group}]", "ring_q.npy", "ring_table.npy", "ring_lengths.npy",
            21, 0.125 * 1.44269504, fault, shared=6 * TILE * 128, save=[(2, "o.npy"), (3, "lse.npy")]), "ring", RING)


SPLIT = {
    "heads_before_slots": "head_and_slot_axes: the cache is read with head and slot axes exchanged",
    "slot_too_many": "one_token_too_many: one slot after the last key is read, where the last page has one",
    "scales_exchanged": "k_and_v_scales_exchanged: ",
    "scales_by_sequence": "scale_of_other_head: the scales are those of KV head b % KV heads for sequence b",
    "no_barrier_after_maximum": ("RACE write-after-read  shared", "(shared + "),
    "no_barrier_before_output": ("RACE read-after-write  shared", "(halves + "),
    "no_common_maximum": "maximum_not_shared: the splits (3 splits of whole tiles of 64 keys) add their results without",
    "log2_of_sum": "lse_mixed_bases: lse is maximum + log2(sum)",
    "last_split_lost": "length_limited: only the first 128 keys",
}
PREFILL = {
    "last_wait_missing": ("RACE read-after-write", "thread 0 has not waited for this copy: cp.async.wait_group",
                          "EXIT_IN_FLIGHT"),
    "no_barrier_before_refill": ("RACE write-after-read", "write  cp.async of thread"),
    "no_barrier_after_wait": ("RACE read-after-write", "(wait for its copies)"),
    "output_not_rescaled": "output_not_rescaled: ",
    "mask_from_the_top": "causal_alignment: ",
    "maximum_in_base_2": "lse_mixed_bases: lse is maximum * log2(e)",
    "v_not_transposed": "squares_transposed: squares of 8 keys and 8 elements of V",
    "sums_of_lanes": "lane_sums: the sum of the probabilities is not added across the four lanes of a row of mma",
    "v_swizzle_of_two_bits": "swizzle: chunks of V are read at chunk ^ (row & 3) instead of chunk ^ (row & 7)",
    "one_entry_for_a_tile": "tile_pages: a tile of 64 keys is read as if its pages were consecutive blocks",
    "own_key_masked": "own_token_masked: ",
}
RING = {
    "swizzle_of_the_wrong_bits": "swizzle: chunks of K and V are read at chunk ^ (row >> 1 & 7) instead of",
    "parity_never_flips": ("RACE read-after-write", "check the parity of the wait"),
    "bytes_of_k_alone": ("RACE read-after-write", "the bytes of expect_tx"),
    "no_wait_for_the_readers": ("MBAR_UNDERFLOW", "a stage that is filled again too early"),
    "k_of_head_0": "k_head_map: K is read from KV head 0 for every query head",
    "no_warp_barrier": ("RACE write-after-read", "write  tensor load"),
    "bytes_of_a_whole_tile": ("DEADLOCK", "bytes expected but not copied"),
    "v_row_is_the_block": "block_as_row: V is read from row `block` of the pool instead of row block * 16",
    "warps_without_a_common_maximum": "maximum_not_shared: 4 warps or warpgroups, which take 16 keys in turn, add their",
}

if __name__ == "__main__":
    program.main()
