#!/usr/bin/python3
"""kvscope diagnose of fifteen faulty kernels, each written out in full as a decode kernel is: flat memory, strides, splits with
a running maximum, and a merge.

    diagnose_by_hand_test.py --kvscope PROGRAM

The kernels, their data and their roundings share no code with kvscope, nor with the kernel of diagnose_test.py. Each fault
is one changed line of a kernel, marked FAULT. The diagnosis must name it first, and must not be certain of another cause.
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
from program import fine, kvscope  # noqa: E402

PAGE, HEADS, KV_HEADS, DIM, SPLIT = 16, 8, 2, 32, 48
LENGTHS = [75, 131, 33]
LOG2E = math.log2(math.e)


def batch(seed, hnd=False, stored=np.float16):
    """Inputs in the layout nhd or hnd; free blocks hold old values, as after other requests."""
    rng = np.random.default_rng(seed)
    pages = [-(-n // PAGE) for n in LENGTHS]
    blocks = sum(pages) + 4
    order = rng.permutation(blocks).astype(np.int32)
    table = np.full((len(LENGTHS), max(pages) + 1), order[-1], np.int32)
    at = 0
    for row, count in zip(table, pages):
        row[:count] = order[at:at + count]
        at += count
    shape = (blocks, KV_HEADS, PAGE, DIM) if hnd else (blocks, PAGE, KV_HEADS, DIM)
    return {"q": rng.normal(size=(len(LENGTHS), HEADS, DIM)).astype(np.float16),
            "k_cache": rng.normal(size=shape).astype(stored), "v_cache": rng.normal(size=shape).astype(stored),
            "block_table": table, "cache_seqlens": np.array(LENGTHS, np.int32)}


def warp_dot(q, k):
    """32 lanes, one or more elements each, then a butterfly of additions."""
    lanes = (q.astype(np.float32) * k.astype(np.float32)).reshape(-1, 32).sum(0, dtype=np.float32)
    while len(lanes) > 1:
        lanes = lanes[:len(lanes) // 2] + lanes[len(lanes) // 2:]
    return lanes[0]


def split_states(scores, values, starts):
    """(maximum, sum, output) of each split; `starts` are (first, last) of the splits' keys."""
    states = []
    for first, last in starts:
        m, l, acc = np.float32(-np.inf), np.float32(0), np.zeros(DIM, np.float32)
        for t in range(first, last):
            if scores[t] > m:
                shrink = np.float32(math.exp(m - scores[t])) if np.isfinite(m) else np.float32(0)
                m, l, acc = scores[t], l * shrink, acc * shrink
            p = np.float32(math.exp(scores[t] - m))
            l += p
            acc += np.float32(np.float16(p)) * values[t]
        states.append((m, l, acc))
    return states


def merge(states):
    m = max(state[0] for state in states)
    l = sum(np.float32(math.exp(state[0] - m)) * state[1] for state in states if state[1] > 0)
    acc = sum(np.float32(math.exp(state[0] - m)) * state[2] for state in states if state[1] > 0)
    return acc / l, m + math.log(l)


def splits_of(keys):
    return [(first, min(first + SPLIT, keys)) for first in range(0, keys, SPLIT)]


def decode(inputs, row_of=None, head_map=lambda h: h // (HEADS // KV_HEADS), keys_of=lambda b, n: range(n),
           score_of=lambda s: s / math.sqrt(DIM), splits=splits_of, finish=None, k_value=lambda x: x, v_value=lambda x: x):
    """o [batch, heads, dim] in f16 and lse in f32."""
    k_memory, v_memory = inputs["k_cache"].reshape(-1), inputs["v_cache"].reshape(-1)
    table = inputs["block_table"]

    def row_nhd(block, slot, head):
        return block * PAGE * KV_HEADS * DIM + slot * KV_HEADS * DIM + head * DIM

    row_of = row_of or row_nhd
    o = np.zeros((len(LENGTHS), HEADS, DIM), np.float16)
    lse = np.zeros((len(LENGTHS), HEADS), np.float32)
    for b, n in enumerate(LENGTHS):
        for h in range(HEADS):
            rows = [row_of(int(table[b, t // PAGE]), t % PAGE, head_map(h)) for t in keys_of(b, n)]
            scores = [np.float32(score_of(float(warp_dot(inputs["q"][b, h], k_value(k_memory[r:r + DIM]))))) for r in rows]
            values = [v_value(v_memory[r:r + DIM]).astype(np.float32) for r in rows]
            out, log = merge(split_states(scores, values, splits(len(rows))))
            if finish:
                out, log = finish(h, out, log)
            o[b, h], lse[b, h] = out, log
    return o, lse


def e4m3_value(code):
    sign, exponent, fraction = code >> 7, code >> 3 & 15, code & 7
    size = fraction / 512 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7)
    return -size if sign else size


E4M3 = np.array([e4m3_value(code) if code & 127 != 127 else 0 for code in range(256)], np.float32)


class ByHand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name

    def check(self, inputs, correct, faulty, names, *options, layout="nhd", says=None, certain=None):
        """The correct kernel passes; the first explanation of the faulty one is among `names`."""
        files = [os.path.join(self.folder, name) for name in ("in.npz", "golden.npz", "candidate.npz")]
        np.savez(files[0], **inputs)
        fine("golden", "--input", files[0], "--layout", layout, *options, "--out", files[1])

        def verdict(outputs):
            np.savez(files[2], o=outputs[0], lse=outputs[1])
            done = kvscope("verify", files[1], files[2], "--json")
            self.assertEqual(done.stderr, "")
            return json.loads(done.stdout)

        self.assertTrue(verdict(correct)["passed"])
        report = verdict(faulty)
        self.assertFalse(report["passed"])
        causes = report["diagnosis"]["explanations"]
        self.assertTrue(causes, report["diagnosis"])
        self.assertIn(causes[0]["name"], names, causes)
        if says:
            self.assertIn(says, causes[0]["cause"])
        if certain is not None:
            self.assertEqual(report["diagnosis"]["certain"], certain, causes)

    def test_query_heads_are_mapped_to_kv_heads_in_turn(self):
        inputs = batch(1)
        self.check(inputs, decode(inputs), decode(inputs, head_map=lambda h: h % KV_HEADS),  # FAULT
                   ["kv_head_map"])

    def test_a_table_entry_is_that_of_the_step_before(self):
        inputs = batch(2)
        stale = dict(inputs, block_table=inputs["block_table"].copy())
        stale["block_table"][1, 3] = inputs["block_table"][0, -1]  # FAULT: the block that page 3 had before it was moved
        self.check(inputs, decode(inputs), decode(stale), ["page_from_other_block"],
                   says=f"page 3 of sequence 1 was read from block {inputs['block_table'][0, -1]}")

    def test_the_window_is_one_key_too_short(self):
        inputs, left = batch(3), 24
        window = lambda size: lambda b, n: range(max(0, n - size), n)
        self.check(inputs, decode(inputs, keys_of=window(left + 1)), decode(inputs, keys_of=window(left)),  # FAULT
                   ["window_off_by_one"], "--mask", "sliding_window", "--window-left", left)

    def test_k_scale_is_not_applied(self):
        inputs = batch(4)
        rng = np.random.default_rng(40)
        for name in ("k_cache", "v_cache"):
            codes = rng.integers(0, 256, inputs[name].shape).astype(np.uint8)
            inputs[name] = np.where(codes & 127 >= 0x48, codes & 0x87 | 0x38, codes).astype(np.uint8)
        k_scale, v_scale = np.float32(0.375), np.float32(1.75)
        kernel = lambda scale: decode(inputs, k_value=lambda x: E4M3[x] * scale, v_value=lambda x: E4M3[x] * v_scale)
        arrays = {"q": inputs["q"], "k_cache_e4m3": inputs["k_cache"], "v_cache_e4m3": inputs["v_cache"],
                  "block_table": inputs["block_table"], "cache_seqlens": inputs["cache_seqlens"],
                  "k_scale": k_scale.reshape(1), "v_scale": v_scale.reshape(1)}
        self.check(arrays, kernel(k_scale), kernel(np.float32(1)), ["k_scales_missing"])  # FAULT

    def test_lse_is_stored_in_base_two(self):
        inputs = batch(5)
        self.check(inputs, decode(inputs), decode(inputs, finish=lambda h, out, log: (out, log * LOG2E)),  # FAULT
                   ["lse_base"])

    def test_the_first_key_of_a_split_is_in_the_split_before_too(self):
        inputs = batch(6)
        inclusive = lambda keys: [(first, min(first + SPLIT + 1, keys)) for first in range(0, keys, SPLIT)]  # FAULT
        self.check(inputs, decode(inputs), decode(inputs, splits=inclusive), ["split_overlap"], says=str(SPLIT))

    def test_an_hnd_cache_is_read_as_nhd(self):
        inputs = batch(7, hnd=True)
        hnd = lambda block, slot, head: block * PAGE * KV_HEADS * DIM + head * PAGE * DIM + slot * DIM
        self.check(inputs, decode(inputs, row_of=hnd), decode(inputs), ["head_and_slot_axes"], layout="hnd")  # FAULT

    def test_all_slots_of_the_last_page_are_read(self):
        inputs = batch(8)
        whole = lambda b, n: range(-(-n // PAGE) * PAGE)  # FAULT
        self.check(inputs, decode(inputs), decode(inputs, keys_of=whole), ["last_page_unmasked"])

    def test_the_soft_cap_is_applied_before_the_scale(self):
        inputs, cap = batch(9), 5.0
        scale = 1 / math.sqrt(DIM)
        self.check(inputs, decode(inputs, score_of=lambda s: cap * math.tanh(s * scale / cap)),
                   decode(inputs, score_of=lambda s: scale * cap * math.tanh(s / cap)),  # FAULT
                   ["soft_cap_before_scale"], "--soft-cap", cap)

    def test_the_sink_is_left_out(self):
        inputs = batch(10)
        inputs["sinks"] = np.linspace(0.5, 3, HEADS)

        def with_sink(h, out, log):
            joined = math.log(math.exp(log) + math.exp(inputs["sinks"][h]))
            return out * math.exp(log - joined), joined

        self.check(inputs, decode(inputs, finish=with_sink), decode(inputs), ["sink_missing"])  # FAULT

    def test_the_keys_are_rounded_down_to_whole_tiles(self):
        inputs = batch(11)
        inputs["cache_seqlens"] = np.array([60, 110, 9], np.int32)  # the last sequence has no whole tile: 0 / 0
        lengths = [int(n) for n in inputs["cache_seqlens"]]

        def kernel(keys_of):
            o, lse = decode(inputs, keys_of=lambda b, n: range(max(1, keys_of(lengths[b]))))
            for b, n in enumerate(lengths):
                if keys_of(n) == 0:  # no iteration: 0 / 0, and -inf + log(0)
                    o[b], lse[b] = np.nan, -np.inf
            return o, lse

        correct, faulty = kernel(lambda n: n), kernel(lambda n: n // 32 * 32)  # FAULT
        self.assertTrue(np.isnan(faulty[0][2]).all())
        self.check(inputs, correct, faulty, ["last_tile_missing"], says="the partly filled last tile of 32 keys is left out")

    def test_v_is_read_from_k_of_the_next_block(self):
        # vLLM's cache [block, 2, slot, head, dim]. Behind it is another tensor.
        inputs = batch(12)
        cache = np.stack([inputs.pop("k_cache"), inputs.pop("v_cache")], 1)
        cache = np.concatenate([cache, cache[:1]])  # a block that no sequence holds
        for last in (False, True):
            if last:  # a sequence holds the last block, of which K of the next block is outside
                inputs["block_table"][2, 0] = len(cache) - 1
            with self.subTest(last=last):
                behind = np.random.default_rng(120).normal(size=cache[0].size).astype(np.float16)
                memory = np.concatenate([cache.reshape(-1), behind])
                side = PAGE * KV_HEADS * DIM
                row = lambda block, slot, head: block * 2 * side + slot * KV_HEADS * DIM + head * DIM
                kernel = lambda v: decode({**inputs, "k_cache": memory, "v_cache": memory[v:]}, row_of=row)
                given = {"q": inputs["q"], "kv_cache": cache, "block_table": inputs["block_table"],
                         "seq_lens": inputs["cache_seqlens"]}
                self.check(given, kernel(side), kernel(2 * side), ["v_offset"], layout="vllm",  # FAULT
                           says="V is read where K of the next block is stored", certain=not last)

    def test_the_strides_of_blocks_and_of_k_and_v_are_exchanged(self):
        inputs = batch(13)
        cache = np.stack([inputs.pop("k_cache"), inputs.pop("v_cache")], 1)
        memory = cache.reshape(-1)
        strides = [s // cache.itemsize for s in cache.strides]
        kernel = lambda block_stride, side_stride: decode(
            {**inputs, "k_cache": memory, "v_cache": memory[side_stride:]},
            row_of=lambda block, slot, head: block * block_stride + slot * strides[2] + head * strides[3])
        given = {"q": inputs["q"], "kv_cache": cache, "block_table": inputs["block_table"],
                 "seq_lens": inputs["cache_seqlens"]}
        self.check(given, kernel(strides[0], strides[1]), kernel(strides[1], strides[0]), ["strides_exchanged"],  # FAULT
                   layout="vllm", says="the strides of the block axis and of the K/V axis of the cache are exchanged",
                   certain=True)

    def test_lse_has_the_maximum_and_the_sum_in_different_bases(self):
        inputs = batch(14)
        # The lse of a kernel with one split: maximum and log of the sum, each in the base that a fault gives it.
        def stored(of_maximum, of_sum):
            tops = {}

            def score(s):
                return s / math.sqrt(DIM)

            o, lse = decode(inputs, score_of=score, splits=lambda keys: [(0, keys)])
            for b, n in enumerate(LENGTHS):
                for h in range(HEADS):
                    keys = inputs["k_cache"][inputs["block_table"][b]].reshape(-1, KV_HEADS, DIM)[:n, h // (HEADS // KV_HEADS)]
                    tops[b, h] = max(score(float(warp_dot(inputs["q"][b, h], key))) for key in keys)
                    lse[b, h] = tops[b, h] * of_maximum + (lse[b, h] - tops[b, h]) * of_sum
            return o, lse

        for base, right in (("natural", 1.0), ("two", LOG2E)):
            for of_maximum, of_sum, words in ((1.0, LOG2E, "lse is maximum + log2(sum) instead of"),
                                              (LOG2E, 1.0, "lse is maximum * log2(e) + log(sum) instead of")):
                with self.subTest(base=base, words=words):
                    self.check(inputs, stored(right, right), stored(of_maximum, of_sum), ["lse_mixed_bases"],  # FAULT
                               "--lse-base", base, says=words, certain=True)

    def test_integers_of_64_bits_are_read_as_32(self):
        inputs = batch(15)
        as_32 = lambda a: a.astype(np.int64).view(np.int32).reshape(-1)[:a.size].reshape(a.shape)  # FAULT: int*, of a tensor of int64
        table, lengths = as_32(inputs["block_table"]), as_32(np.array(LENGTHS, np.int32))

        def kernel(read_table, read_lengths):
            o, lse = decode(dict(inputs, block_table=read_table), keys_of=lambda b, n: range(max(1, int(read_lengths[b]))))
            for b in np.flatnonzero(read_lengths == 0):  # no iteration, and the output of zeros that the merge begins with
                o[b], lse[b] = 0, -np.inf
            return o, lse

        self.assertEqual(list(lengths), [LENGTHS[0], 0, LENGTHS[1]])
        right = inputs["block_table"], np.array(LENGTHS)
        for read, words in (((table, right[1]), "entries of the lookup table of 64 bits"), ((right[0], lengths), "lengths of 64 bits"),
                            ((table, lengths), "entries of the lookup table and lengths of 64 bits")):
            with self.subTest(words=words):
                self.check(inputs, decode(inputs), kernel(*read), ["integers_of_64_bits"], says=words + " are read as 32-bit ones",
                           certain=True)


if __name__ == "__main__":
    program.main()
