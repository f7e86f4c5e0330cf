#!/usr/bin/python3
"""kvscope lint of mask tensors: right masks of every form have no finding, and each kind of wrong one has its finding, with the
value, the place and the next step.

    lint_masks_test.py --kvscope PROGRAM
"""
import json
import sys

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from engine_layouts import LAYOUTS, Cache  # noqa: E402
from mask_forms_test import padded, tree  # noqa: E402
from program import kvscope  # noqa: E402

EMPTY_ROW = ("its output is 0 and its lse -inf. PyTorch's SDPA returns 0 from 2.5 on, and NaN before; with finfo.min instead of "
             "-inf, most kernels return a mean of the values")
LENGTHS, QUERIES = (6, 8, 5, 14), (2, 3, 2, 4)


def pack(mask):
    return np.packbits(mask.ravel(), bitorder="little")


class LintMasks(program.FolderTest):
    def report(self, arrays, layout, *options):
        np.savez(self.path("in.npz"), **arrays)
        done = kvscope("lint", self.path("in.npz"), "--layout", layout, "--json", *options)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)

    def found(self, arrays, layout="nhd", *options):
        """The findings as lines, without those of other rules, which the caches do not have."""
        return [f"{f['severity']} {f['rule']} {f['object']} {f['problem']} | {f['allowed']} | {f['next']}"
                for f in self.report(arrays, layout, *options)["findings"]]

    def arrays(self, layout="nhd", lengths=LENGTHS, queries=QUERIES):
        cache = Cache(3, lengths=lengths)
        cache.queries = np.array(queries)
        q = np.zeros((cache.queries.sum(), 4, 16), np.float32)
        return {**LAYOUTS[layout][0](cache), "q": q, "query_offsets": cache.starts(cache.queries)}

    @staticmethod
    def causal(lengths=LENGTHS, queries=QUERIES):
        return [np.arange(n) <= n - count + np.arange(count)[:, None] for n, count in zip(lengths, queries)]

    def test_right_masks_of_every_form_have_no_finding(self):
        rng = np.random.default_rng(1)
        masks = self.causal()
        trees = [tree(rng, count) for count in QUERIES]
        free = [mask & (rng.random(mask.shape) < 0.6) | (np.arange(mask.shape[1]) == 0) for mask in masks]
        dense = padded(masks, 4, 14, False)
        bits = np.concatenate([(own * (1 << np.arange(len(own)))).sum(-1) for own in trees]).astype(np.uint8)
        ends = np.cumsum([0, *(len(pack(m)) for m in free)]).astype(np.int32)
        for name, more in [
                ("bool", {"attn_mask": dense}), ("by head", {"attn_mask": np.repeat(dense[:, None], 4, 1)}),
                ("bias", {"attn_mask": np.where(dense, rng.standard_normal(dense.shape), -np.inf).astype(np.float32)}),
                ("lowest", {"attn_mask": np.where(dense, 0, np.finfo(np.float32).min).astype(np.float32)}),
                ("shared", {"attn_mask": np.ones((1, 14), bool)}), ("all", {"attn_mask": np.ones((4, 14), bool)}),
                ("one query each", {"attn_mask": np.ones((1, 1, 1, 1), np.int64)}),
                ("custom", {"custom_mask": np.concatenate([m.ravel() for m in free])}),
                ("packed", {"packed_custom_mask": np.concatenate([pack(m) for m in free])}),
                ("offsets", {"packed_custom_mask": np.concatenate([*(pack(m) for m in free), [255]]).astype(np.uint8),
                             "mask_indptr": ends}),
                ("FULL_MASK", {"tree_mask": np.concatenate([m.ravel() for m in masks])}),
                ("QLEN_ONLY", {"tree_mask": np.concatenate([t.ravel() for t in trees])}),
                ("BITPACKING", {"tree_mask": bits})]:
            for layout in ("nhd", "flashinfer", "sglang", "varlen", "dense"):
                with self.subTest(mask=name, layout=layout):
                    options = () if name in ("shared", "all", "one query each") else ("--causal",)
                    self.assertEqual(self.found({**self.arrays(layout), **more}, layout, *options), [])

    def test_a_strictly_causal_mask_is_not_taken_for_an_inverted_one(self):
        masks = [np.arange(n) < n - count + np.arange(count)[:, None] for n, count in zip(LENGTHS, QUERIES)]
        self.assertEqual(self.found({**self.arrays(), "attn_mask": padded(masks, 4, 14, False)}, "nhd", "--causal"), [])

    def test_positions_of_a_padded_cache(self):
        cache = Cache(3, lengths=(6, 8, 5))
        arrays = {**LAYOUTS["hf"][0](cache), "q": np.zeros((3, 4, 2, 16), np.float32)}
        positions = arrays["key_cache"].shape[2]
        mask = np.zeros((3, 1, 2, positions), bool)
        for b, n in enumerate(cache.lengths):
            mask[b, 0, :, positions - n:] = self.causal([n], [2])[0]
        self.assertEqual(self.found({**arrays, "attn_mask": mask}, "hf", "--causal"), [])
        mask[1, 0, 1, 1] = mask[1, 0, 0, 0] = True
        first = positions - 8
        self.assertGreater(first, 1)
        self.assertEqual(self.found({**arrays, "attn_mask": mask}, "hf", "--causal"), [
            f"warning mask-past attn_mask[1, 0, 0, 0] is visible, and 1 other, outside the 8 keys of sequence 1 | columns "
            f"{first} to {first + 7} | a kernel that reads the mask without the lengths takes padding for keys: hide it"])

    def test_shapes_types_and_offsets(self):
        arrays = self.arrays()
        sizes = np.array(LENGTHS) * QUERIES
        right = np.cumsum([0, *sizes]).astype(np.int32)
        values = np.ones(right[-1], np.uint8)
        falling = right.copy()
        falling[3] = 5
        for more, lines in [
                ({"attn_mask": np.ones((3, 4, 14), bool)},
                 ["fault shape attn_mask is u8 [3, 4, 14]; it is [Sq, Sk], [4, Sq, Sk] or [4, 4, Sq, Sk], where axes that share a "
                  "mask have length 1 |  | "]),
                ({"attn_mask": np.ones((4, 3, 13), np.float32)},
                 ["fault shape attn_mask has 3 rows | 1, shared by all queries, or 4, the queries of sequence 3 | row i is query i "
                  "of its sequence",
                  "fault shape attn_mask has 13 columns | 1, shared by all keys, or 14, the keys of sequence 3, or 20, the tokens "
                  "that the table or the cache holds for it | save a column for each key"]),
                ({"packed_custom_mask": values.astype(np.int32)},
                 ["fault type packed_custom_mask is i32 | u8 | packed bits are u8, lowest bit first"]),
                ({"custom_mask": values[:-3]},
                 [f"fault shape custom_mask has shape [{right[-1] - 3}], but the queries and keys of all sequences need "
                  f"[{right[-1]}] |  | save a value for each query and key"]),
                ({"custom_mask": values, "mask_indptr": falling},
                 ["fault indptr mask_indptr[3] is 5 after 36 | at least 36 | offsets are running sums, and a sequence cannot have "
                  "a negative size",
                  f"fault indptr mask_indptr[4] gives sequence 3 {right[4] - 5} values, but 4 queries of 14 keys need 56 | 61 | the "
                  "lengths and the mask belong to different batches"]),
                ({"custom_mask": values, "mask_indptr": right + 1},
                 ["fault indptr mask_indptr[0] is 1 | 0 | the mask of sequence 0 starts the tensor",
                  f"fault indptr mask_indptr[4] is {right[4] + 1} | [0, {right[4]}], the values of custom_mask | the kernel would "
                  "read past the mask"]),
                ({"custom_mask": values, "mask_indptr": right.astype(np.float32)},
                 ["fault type mask_indptr is f32 | i32, u32, i64 or u64 | save the integers that the kernel reads"]),
                ({"mask_indptr": right},
                 ["fault missing custom_mask is missing, but mask_indptr is given | custom_mask or packed_custom_mask | save the "
                  "mask too"]),
                ({"custom_mask": values, "tree_mask": values},
                 ["fault shape tree_mask is given together with custom_mask | one mask | keep the one that the kernel reads"])]:
            self.assertEqual(self.found({**arrays, **more}), lines)

    def test_axes_of_length_0_are_faults(self):
        for shape, lines in [((0, 14), ["0 rows"]), ((4, 4, 0, 14), ["0 rows"]), ((4, 0), ["0 columns"]),
                             ((4, 0, 0), ["0 rows", "0 columns"]), ((4, 0, 4, 14), ["u8 [4, 0, 4, 14]"])]:
            found = self.found({**self.arrays(), "attn_mask": np.zeros(shape, bool)})
            self.assertEqual(len(found), len(lines))
            for line, what in zip(found, lines):
                self.assertRegex(line, "^fault shape attn_mask (has|is) ")
                self.assertIn(what, line)
        # Without q, the number of query heads is not known.
        arrays = {**self.arrays(), "attn_mask": np.zeros((4, 0, 4, 14), bool)}
        del arrays["q"]
        self.assertRegex(self.found(arrays)[0], "^fault shape attn_mask is ")

    def test_values(self):
        mask = padded(self.causal(), 4, 14, False).astype(np.uint8)
        mask[1, 2, 3], mask[3, 0, 9], mask[0, 3, 0] = 255, 2, 7  # the last is in the row of no query
        text = "0 or 1 | save the mask as bool; one that is added to the scores must be a float"
        self.assertEqual(self.found({**self.arrays(), "attn_mask": mask}),
                         [f"fault mask-value attn_mask[1, 2, 3] is 255 | {text}",
                          f"fault mask-value attn_mask[3, 0, 9] is 2 | {text}"])
        self.assertEqual([f["value"] for f in self.report({**self.arrays(), "attn_mask": mask}, "nhd")["findings"]], [255, 2])
        bias = np.zeros((4, 14), np.float32)
        bias[3, 13], bias[0, 2] = np.nan, np.inf
        self.assertEqual([line.split(" | ")[0] for line in self.found({**self.arrays(), "attn_mask": bias})],
                         ["fault mask-value attn_mask[0, 2] is inf", "fault mask-value attn_mask[3, 13] is nan"])
        self.assertEqual(self.report({**self.arrays(), "attn_mask": np.ones((4, 14), bool)}, "nhd")["not_checked"][0],
                         "vector: pass --vector-read")

    def test_a_wrong_mask_has_its_first_findings_and_a_count_of_the_others(self):
        queries, lengths = (90, 60), (300, 200)
        arrays = self.arrays(lengths=lengths, queries=queries)
        values, rows = sum(q * n for q, n in zip(queries, lengths)), sum(queries)
        hidden = np.zeros((90, 300), bool)
        later = np.ones((90, 300), bool)
        packed = [np.full(-(-q * n // 8), 0, np.uint8) for q, n in zip(queries, lengths)]
        tree_bits = np.full((2, 150, 5), -1, np.int32)
        for mask, options, severity, rule, count in [
                ({"attn_mask": np.full((90, 300), 7, np.int32)}, [], "fault", "mask-value", 90 * 300),
                ({"attn_mask": np.full((2, 90, 300), np.nan, np.float32)}, [], "fault", "mask-value", values),
                ({"custom_mask": np.full(values, 2, np.uint8)}, [], "fault", "mask-value", values),
                ({"attn_mask": hidden}, [], "warning", "mask-row", rows),
                ({"packed_custom_mask": np.concatenate(packed)}, [], "warning", "mask-row", rows),
                ({"attn_mask": later}, ["--causal"], "warning", "mask-later", rows - 2)]:
            with self.subTest(mask=list(mask), rule=rule):
                report = self.report({**arrays, **mask}, "nhd", *options)
                found = report["findings"]
                self.assertEqual({(f["severity"], f["rule"]) for f in found}, {(severity, rule)})
                name = next(iter(mask))
                self.assertEqual(len(found), 65)
                what = "values" if rule == "mask-value" else "rows"
                self.assertEqual([found[-1][key] for key in ("object", "problem", "value")],
                                 [name, f"has {count - 64} more such {what}", count - 64])
                for place in found[:64]:
                    self.assertTrue(place["object"].startswith(name + "["))
                done = kvscope("lint", self.path("in.npz"), "--layout", "nhd", *options)
                lines = done.stdout.splitlines()
                self.assertIn(f"         {rule:10} and {count - 8} more: pass --all, or --json", lines)
                total = f"{count} faults, 0 warnings" if severity == "fault" else f"0 faults, {count} warnings"
                self.assertIn(total, lines)
        arrays = self.arrays(lengths=(200, 200), queries=(150, 150))
        found = self.report({**arrays, "tree_mask": tree_bits}, "nhd")["findings"]
        self.assertEqual((len(found), found[0]["object"], found[-1]["problem"], {f["rule"] for f in found}),
                         (65, "tree_mask[0, 0, 4] bit 22", "has 236 more such values", {"mask-value"}))

    def test_bits_and_columns_past_the_keys(self):
        masks = self.causal()
        packed = [pack(m) for m in masks]
        packed[0][-1] |= 1 << 6  # 12 bits are used: bit 14
        self.assertEqual(self.found({**self.arrays(), "packed_custom_mask": np.concatenate(packed)}), [
            "warning mask-past packed_custom_mask[1] bit 6 is 1 behind the 2 queries of 6 keys of sequence 0 | 12 bits | the mask "
            "was packed for other lengths, or from the highest bit on"])
        bits = np.array([1, 3, 1, 3, 5, 1, 3, 1, 3, 1 | 1 << 4, 9], np.uint8)
        self.assertEqual(self.found({**self.arrays(), "tree_mask": bits}), [
            "warning mask-past tree_mask[9] bit 4 is 1 in the row of query 2 of sequence 3, whose tree has 4 nodes | bits 0 to 3 | "
            "the mask was packed for other lengths, or from the highest bit on"])
        dense = padded(masks, 4, 14, False)
        dense[2, 1, 5:9] = True
        dense[2, 3] = True  # the row of no query
        line = ("is visible, and 3 others, outside the 5 keys of sequence 2 | columns below 5 | a kernel that reads the mask "
                "without the lengths takes padding for keys: hide it")
        self.assertEqual(self.found({**self.arrays(), "attn_mask": dense}), [f"warning mask-past attn_mask[2, 1, 5] {line}"])
        bias = np.where(dense, 0, -np.inf).astype(np.float32)[:, None]
        self.assertEqual(self.found({**self.arrays(), "attn_mask": bias}), [f"warning mask-past attn_mask[2, 0, 1, 5] {line}"])

    def test_rows_without_a_visible_key(self):
        masks = self.causal()
        masks[1][2] = False
        masks[3][0] = False
        next_step = "at least one visible key | " + EMPTY_ROW
        lines = ["starts a row without a visible key: query 2 of sequence 1, which has 8 keys | " + next_step,
                 "starts a row without a visible key: query 0 of sequence 3, which has 14 keys | " + next_step]
        self.assertEqual(self.found({**self.arrays(), "attn_mask": padded(masks, 4, 14, False)}), [
            f"warning mask-row attn_mask[1, 2, 0] {lines[0]}", f"warning mask-row attn_mask[3, 0, 0] {lines[1]}"])
        self.assertEqual(self.found({**self.arrays(), "custom_mask": np.concatenate([m.ravel() for m in masks])}), [
            f"warning mask-row custom_mask[28] {lines[0]}", f"warning mask-row custom_mask[46] {lines[1]}"])
        by_head = np.repeat(padded(self.causal(), 4, 14, False)[:, None], 4, 1)
        by_head[0, 3, 1] = False
        self.assertEqual(self.found({**self.arrays(), "attn_mask": by_head}), [
            "warning mask-row attn_mask[0, 3, 1, 0] starts a row without a visible key: query 1 of head 3 of sequence 0, which "
            "has 6 keys | " + next_step])
        shared = np.zeros((1, 1, 4, 1), bool)
        shared[0, 0, 1:] = True
        self.assertEqual(len(self.found({**self.arrays(), "attn_mask": shared})), 4)  # query 0 of each sequence
        shared = np.ones((4, 1, 1, 14), bool)
        shared[2] = False
        self.assertEqual([line for line in self.found({**self.arrays(), "attn_mask": shared}) if "mask-row" in line], [
            "warning mask-row attn_mask[2, 0, 0, 0] starts a row without a visible key: all 2 queries of sequence 2, which has 5 "
            "keys | " + next_step])
        shared = np.repeat(shared, 4, 1)
        shared[2, 1, 0, 0] = True
        self.assertEqual([line.split(" | ")[0].split(": ")[1] for line in self.found({**self.arrays(), "attn_mask": shared})
                          if "mask-row" in line],
                         [f"all 2 queries of head {head} of sequence 2, which has 5 keys" for head in (0, 2, 3)])

    def test_floats_of_0_and_1_are_doubted(self):
        dense = padded(self.causal(), 4, 14, False)
        self.assertEqual(self.found({**self.arrays(), "attn_mask": dense.astype(np.float16)})[-1],
                         "warning mask-sense attn_mask holds only 0 and 1 as f16, and a float mask is added to the scores |  | it "
                         "hides no key; save a mask of 0 and 1 as bool")

    def test_causal_needs_a_mask(self):
        np.savez(self.path("in.npz"), **self.arrays())
        done = kvscope("lint", self.path("in.npz"), "--layout", "nhd", "--causal")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (2, "", "kvscope: command line: --causal: has no effect: the file has no mask tensor to check; remove "
                          "it\n"))

    def test_later_keys_where_the_kernel_is_causal(self):
        masks = self.causal()
        masks[3][1, 12:] = True
        arrays = {**self.arrays(), "attn_mask": padded(masks, 4, 14, False)}
        report = self.report(arrays, "nhd")
        self.assertEqual(report["findings"], [])
        self.assertIn("mask-later: pass --causal", report["not_checked"])
        self.assertEqual(self.found(arrays, "nhd", "--causal"), [
            "warning mask-later attn_mask[3, 1, 12] shows key 12 to query 1 of sequence 3, whose own token is key 11 | keys up to "
            "11 | a kernel that is causal too hides it"])

    def test_inverted_masks(self):
        masks = [~m for m in self.causal()]
        later = sum(m.sum() for m in masks)
        self.assertEqual(self.found({**self.arrays(), "custom_mask": np.concatenate([m.ravel() for m in masks])}, "nhd",
                                    "--causal"), [
            f"warning mask-sense custom_mask hides the own token of each of the 11 queries and all before, and shows {later} later "
            "ones | 1 for a visible key | it is 1 for hidden keys: invert it"])
        trees = [~tree(np.random.default_rng(2), count) for count in QUERIES]
        self.assertEqual(self.found({**self.arrays(), "tree_mask": np.concatenate([t.ravel() for t in trees])}), [
            "warning mask-sense tree_mask hides the own token of each of the 11 queries | 1 for a visible key | it is 1 for hidden "
            "keys: invert it"])
        # One query that sees its own token is enough to doubt it.
        masks[2][0, 3] = True
        found = self.found({**self.arrays(), "custom_mask": np.concatenate([m.ravel() for m in masks])})
        self.assertEqual({line.split()[1] for line in found}, {"mask-row"})

    def test_more_queries_than_keys_are_no_inverted_mask(self):
        arrays = {**self.arrays(lengths=(2, 3), queries=(4, 5)), "attn_mask": np.ones((5, 3), bool)}
        self.assertEqual(self.found(arrays), [])

    def test_files_without_queries_or_with_faulty_lengths_are_not_checked(self):
        arrays = {**self.arrays(), "attn_mask": np.ones((4, 14), bool)}
        without = {name: a for name, a in arrays.items() if name not in ("q", "query_offsets")}
        self.assertIn("attn_mask: the file has no q or query_offsets", self.report(without, "nhd")["not_checked"])
        arrays["cache_seqlens"] = np.array([6, 8, 500, 14], np.int32)
        report = self.report(arrays, "nhd")
        self.assertIn("attn_mask: the sequences that it is for have faults", report["not_checked"])
        self.assertEqual([f["rule"] for f in report["findings"]][:1], ["length"])

    def test_lint_and_golden_agree_on_what_is_a_fault(self):
        rng = np.random.default_rng(9)
        for _ in range(40):
            shape = (int(rng.choice([1, 3, 4])), int(rng.choice([1, 3, 4])), int(rng.choice([1, 13, 14, 20])))
            mask = (rng.random(shape) < 0.5).astype(np.uint8)
            if rng.random() < 0.3:
                mask.flat[rng.integers(mask.size)] = 3
            arrays = {**self.arrays(), "attn_mask": mask}
            faults = any(f["severity"] == "fault" for f in self.report(arrays, "nhd")["findings"])
            done = kvscope("golden", "--input", self.path("in.npz"), "--layout", "nhd", "--out", self.path("g.npz"))
            self.assertEqual(done.returncode, 2 if faults else 0, (shape, done.stderr))


if __name__ == "__main__":
    program.main()
