#!/usr/bin/python3
"""kvscope lint finds inverted masks of every form and type, and padding [B, Sk] that is given as [Sq, Sk]. Masks that are right
have neither finding: causal, window, prefix, padded, bidirectional, strictly causal, trees, biases of ALiBi, biases of 0.

    mask_sense_test.py --kvscope PROGRAM
"""
import json
import sys

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from engine_layouts import LAYOUTS, Cache  # noqa: E402
from faulty_attention import to_bits  # noqa: E402
from mask_forms_test import padded, tree  # noqa: E402
from program import kvscope  # noqa: E402

HEADS = 4
BF16_LOWEST = -3.3895313892515355e38
FLOATS = [("f32", -np.inf), ("f32", np.finfo(np.float32).min), ("f32", -10000), ("f64", np.finfo(np.float64).min),
          ("f16", -np.inf), ("f16", np.finfo(np.float16).min), ("f16", -10000),
          ("bf16", -np.inf), ("bf16", BF16_LOWEST), ("bf16", -10000)]
INTEGERS = [("bool", None), ("i32", None), ("i64", None)]
STORED = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bool": bool, "i32": np.int32, "i64": np.int64}


def seeds(count):
    """Of random cases; under the sanitizers, where a start is slow, one of six."""
    return range(0, count, 6 if program.SLOW_BUILD else 1)


def stored(name, values, dtype):
    """{name: array} with the values in a type; bf16 as its bit patterns, with the type in the name."""
    if dtype == "bf16":
        return {name + "_bf16": to_bits("bf16", values)}
    with np.errstate(over="ignore"):
        return {name: np.ascontiguousarray(values).astype(STORED[dtype])}


def valued(shown, bias, hidden):
    """0 or 1 where `hidden` is None; else the bias where the key is shown."""
    return shown if hidden is None else np.where(shown, bias, hidden)


class Kinds:
    """Masks [queries, keys] of one sequence, by what they mean."""

    def __init__(self, rng):
        self.rng = rng

    @staticmethod
    def places(queries, keys):
        return keys - queries + np.arange(queries)[:, None], np.arange(keys)

    def causal(self, queries, keys):
        own, key = self.places(queries, keys)
        return key <= own

    def window(self, queries, keys):
        own, key = self.places(queries, keys)
        return (key <= own) & (key > own - 3)

    def prefix(self, queries, keys):
        own, key = self.places(queries, keys)
        return (key <= own) | (key < keys - 2)

    def every(self, queries, keys):
        return np.ones((queries, keys), bool)

    def strictly_causal(self, queries, keys):
        own, key = self.places(queries, keys)
        return (key < own) | (key == 0)

    def delayed(self, queries, keys):  # the last two keys are not read
        own, key = self.places(queries, keys)
        return (key < own - 1) | (key == 0)

    def without_itself(self, queries, keys):
        own, key = self.places(queries, keys)
        return key != own

    def without_its_block(self, queries, keys):
        own, key = self.places(queries, keys)
        return key // 3 != own // 3

    def random(self, queries, keys):
        mask = self.rng.random((queries, keys)) < self.rng.choice([0.2, 0.5, 0.8])
        mask[np.arange(queries), self.rng.integers(0, keys, queries)] = True  # each query sees a key
        return mask

    def random_with_itself(self, queries, keys):
        own, key = self.places(queries, keys)
        return (self.rng.random((queries, keys)) < 0.5) | (key == own)


# What the mask of each kind is when inverted: certainly wrong, or possible.
CERTAIN = {"causal", "window", "prefix"}
POSSIBLE = {"strictly_causal", "delayed", "without_itself", "random_with_itself"}
OTHERS = {"every", "without_its_block", "random"}


class Folder(program.FolderTest):
    def rules(self, arrays, layout="nhd", *options):
        """The findings about the sense and the axes of the mask, and the rules of all others."""
        np.savez(self.path("in.npz"), **arrays)
        done = kvscope("lint", self.path("in.npz"), "--layout", layout, "--json", *options)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        findings = json.loads(done.stdout)["findings"]
        judged = [f"{f['rule']} {f['object']} {f['problem']} | {f['allowed']} | {f['next']}" for f in findings
                  if f["rule"] in ("mask-sense", "mask-axes")]
        return judged, {f["rule"] for f in findings}

    def batch(self, seed, lengths, queries):
        cache = Cache(seed, lengths=lengths)
        cache.queries = np.array(queries)
        q = np.zeros((sum(queries), HEADS, 16), np.float32)
        return {**LAYOUTS["nhd"][0](cache), "q": q, "query_offsets": cache.starts(cache.queries)}


class InvertedMasks(Folder):
    def given(self, rng, masks, dtype, hidden, bias, inverted):
        """A mask tensor of a form that holds these masks; what it holds outside of them is hidden, or shown if inverted."""
        rows, columns = max(len(m) for m in masks), max(m.shape[1] for m in masks)
        dense = padded(masks, rows, columns, False)
        if inverted:
            dense, masks = ~dense, [~m for m in masks]
        forms = ["[B, Sq, Sk]", "[B, 1, Sq, Sk]", "[B, Hq, Sq, Sk]"] + (["custom", "packed"] if hidden is None else [])
        form = rng.choice(forms)
        if form == "custom":
            return form, {"custom_mask": np.concatenate([m.ravel() for m in masks])}
        if form == "packed":
            return form, {"packed_custom_mask": np.concatenate([np.packbits(m.ravel(), bitorder="little") for m in masks])}
        values = valued(dense, bias, hidden)
        if form != "[B, Sq, Sk]":
            values = values[:, None]
        if form == "[B, Hq, Sq, Sk]":
            values = np.repeat(values, HEADS, 1)
        return form, stored("attn_mask", values, dtype)

    def cases(self, kinds, seeds, inverted):
        for seed in seeds:
            for number, kind in enumerate(sorted(kinds)):
                rng = np.random.default_rng([seed, number])
                count = int(rng.integers(1, 4))
                queries = tuple(int(n) for n in rng.integers(2, 6, count))
                lengths = tuple(n + int(rng.integers(7, 14)) for n in queries)  # enough keys for an inverted window
                masks = [getattr(Kinds(rng), kind)(n, keys) for n, keys in zip(queries, lengths)]
                dtype, hidden = (FLOATS + INTEGERS)[rng.integers(len(FLOATS) + len(INTEGERS))]
                bias = 0 if rng.random() < 0.5 or hidden is None else -rng.random() * np.arange(max(lengths))[::-1]
                form, more = self.given(rng, masks, dtype, hidden, bias, inverted)
                words = f"{kind} {form} {dtype} {hidden}, queries {queries}, lengths {lengths}"
                yield kind, hidden, words, self.rules({**self.batch(seed, lengths, queries), **more})

    def test_right_masks_are_not_taken_for_inverted_ones(self):
        for _, _, case, (judged, _) in self.cases(CERTAIN | POSSIBLE | OTHERS, seeds(15), False):
            self.assertEqual(judged, [], case)

    def test_certain_ones_are_found(self):
        for kind, hidden, case, (judged, rules) in self.cases(CERTAIN, seeds(25), True):
            self.assertEqual(len(judged), 1, case)
            words = {"causal": "and all before, and shows [0-9]+ later ones", "prefix": "and all before, and shows",
                     "window": "last 3 keys of each of the [0-9]+ queries, its own token included, and shows all others"}
            self.assertRegex(judged[0], f"^mask-sense [a-z_]+ hides the .*{words[kind]}")
            self.assertRegex(judged[0], r"1 for a visible key \| it is 1 for hidden keys: invert it$" if hidden is None else
                             r"0 for a visible key, -inf for a hidden one \| it is -(inf|[0-9.e+]+) for visible keys: invert it$")
            self.assertFalse({"mask-row", "mask-later"} & rules)  # they follow from it

    def test_inverses_that_may_be_meant_are_not_reported(self):
        for _, _, case, (judged, _) in self.cases(POSSIBLE, seeds(10), True):
            self.assertEqual(judged, [], case)

    def test_the_value_of_visible_keys_is_named(self):
        causal = [Kinds(None).causal(3, 9), Kinds(None).causal(4, 12)]
        shown = ~padded(causal, 4, 12, False)
        later = sum((~m).sum() for m in causal)
        for dtype, hidden, text in [("f32", -np.inf, "-inf"), ("f16", np.finfo(np.float16).min, "-65504"),
                                    ("f32", np.finfo(np.float32).min, "-3.4028234663852886e+38"),
                                    ("bf16", BF16_LOWEST, "-3.3895313892515355e+38"), ("bf16", -10000, "-9984"),
                                    ("f32", -10000, "-10000")]:
            arrays = {**self.batch(1, (9, 12), (3, 4)), **stored("attn_mask", np.where(shown, 0, hidden), dtype)}
            self.assertEqual(self.rules(arrays)[0], [
                f"mask-sense attn_mask hides the own token of each of the 7 queries and all before, and shows {later} later ones | "
                f"0 for a visible key, -inf for a hidden one | it is {text} for visible keys: invert it"])
        # One number above the hidden ones is a bias, and the key is visible.
        arrays = {**self.batch(1, (9, 12), (3, 4)), **stored("attn_mask", np.where(shown, 0, -9999), "f32")}
        self.assertEqual(self.rules(arrays)[0], [])

    def test_one_visible_token_is_enough_to_doubt_it(self):
        masks = [Kinds(None).causal(3, 9), Kinds(None).window(4, 12)]
        for kind, b, query, key in [("causal", 0, 1, 7), ("causal", 0, 1, 2), ("window", 1, 2, 10), ("window", 1, 2, 9)]:
            mask = masks[b].copy()
            shown = ~mask
            arrays = self.batch(1, (mask.shape[1],), (len(mask),))
            for hidden, dtype in [(-np.inf, "f32"), (None, "bool")]:
                found = self.rules({**arrays, **stored("attn_mask", valued(shown, 0, hidden), dtype)})[0]
                self.assertEqual(len(found), 1, kind)
            shown[query, key] = True
            for hidden, dtype in [(-np.inf, "f32"), (None, "bool")]:
                found = self.rules({**arrays, **stored("attn_mask", valued(shown, 0, hidden), dtype)})[0]
                self.assertEqual(found, [], kind)

    def test_an_inverted_window_is_certain_only_with_enough_keys_and_later_ones(self):
        for queries, keys, found in [(2, 8, 1), (2, 7, 0), (3, 6, 1), (3, 5, 0)]:  # 16 pairs of a query and a key
            own, key = Kinds.places(queries, keys)
            shown = (key > own) | (key < own - 1)
            self.assertEqual(len(self.rules({**self.batch(2, (keys,), (queries,)), "attn_mask": shown})[0]), found)
        # One query of each sequence: no key is later.
        shown = np.stack([np.arange(24) < n - 2 for n in (20, 24)])[:, None]
        self.assertEqual(self.rules({**self.batch(2, (20, 24), (1, 1)), "attn_mask": shown})[0], [])
        # Windows of two lengths.
        masks = [~Kinds(None).window(4, 12) for _ in range(2)]
        masks[1][0, 5] = False
        self.assertEqual(self.rules({**self.batch(2, (12, 12), (4, 4)), "attn_mask": np.stack(masks)})[0], [])

    def test_padding_of_one_and_more_queries(self):
        text = "mask-sense attn_mask hides all keys of {}, and shows all columns outside of their keys | "
        for lengths, queries in [((5, 9, 7), (1, 1, 1)), ((5, 9), (3, 3)), ((4, 14, 6), (2, 5, 1))]:
            shown = np.arange(max(lengths)) >= np.array(lengths)[:, None]  # 0 where a key is
            arrays = self.batch(3, lengths, queries)
            for shape in [(len(lengths), 1, 1, -1), (len(lengths), 1, -1)]:
                for dtype, hidden in (FLOATS + INTEGERS)[::2]:
                    values = valued(shown.reshape(shape), 0, hidden)
                    found, rules = self.rules({**arrays, **stored("attn_mask", values, dtype)})
                    self.assertEqual([line.split("| ")[0] + "| " for line in found],
                                     [text.format(f"each of the {sum(queries)} queries")])
                    self.assertNotIn("mask-row", rules)
                    right = valued(~shown.reshape(shape), 0, hidden)
                    self.assertEqual(self.rules({**arrays, **stored("attn_mask", right, dtype)})[0], [])
            # A mask that shows nothing, or not all padding, is no inverted one.
            some = shown.copy()
            some[np.argmin(lengths), -1] = False
            for mask in (np.zeros_like(shown), some):
                found, rules = self.rules({**arrays, "attn_mask": mask[:, None]})
                self.assertEqual((found, "mask-row" in rules), ([], True))

    def test_a_mask_of_hidden_keys_without_padding_is_no_inverted_one(self):
        for shape in [(2, 3, 9), (2, 1, 9), (3, 9)]:
            found, rules = self.rules({**self.batch(3, (9, 9), (3, 3)), "attn_mask": np.zeros(shape, bool)})
            self.assertEqual((found, rules), ([], {"mask-row"}))

    def test_positions_of_a_cache_that_is_padded_on_the_left(self):
        cache = Cache(3, lengths=(6, 8, 5))
        arrays = {**LAYOUTS["hf"][0](cache), "q": np.zeros((3, HEADS, 3, 16), np.float32)}
        positions = arrays["key_cache"].shape[2]
        for kind in ("causal", "window", "every"):
            shown = np.zeros((3, 1, 3, positions), bool)
            for b, n in enumerate(cache.lengths):
                shown[b, 0, :, positions - n:] = getattr(Kinds(None), kind)(3, int(n))
            for dtype, hidden in (FLOATS + INTEGERS)[::4]:
                for inverted in (False, True):
                    values = valued(shown != inverted, 0, hidden)
                    self.assertEqual(len(self.rules({**arrays, **stored("attn_mask", values, dtype)}, "hf")[0]), int(inverted))

    def test_trees_of_every_form(self):
        for seed in seeds(8):
            rng = np.random.default_rng(seed)
            nodes, sequences = int(rng.integers(2, 9)), int(rng.integers(1, 4))
            lengths = tuple(nodes + int(n) for n in rng.integers(0, 9, sequences))
            arrays = self.batch(seed, lengths, (nodes,) * sequences)
            trees = np.stack([tree(rng, nodes) for _ in range(sequences)])
            for inverted in (False, True):
                shown = trees != inverted
                bits = (shown * (1 << np.arange(nodes))).sum(-1)
                full = [np.concatenate([np.full((nodes, n - nodes), not inverted), own], 1).ravel() for n, own in zip(lengths, shown)]
                made = [{"tree_mask": shown}, {"tree_mask": shown.ravel()}, {"tree_mask": bits.astype(np.uint8).ravel()},
                        {"tree_mask": np.concatenate(full)},
                        {"tree_mask": bits[..., None].astype(np.int32)}]
                made += [stored("tree_mask", np.where(shown, rng.standard_normal(), hidden), dtype) for dtype, hidden in FLOATS]
                for more in made:
                    with self.subTest(seed=seed, inverted=inverted, name=list(more)):
                        found = self.rules({**arrays, **more})[0]
                        expected = [f"hides the own token of each of the {nodes * sequences} queries"] if inverted and shown.any() else []
                        self.assertEqual([line.split(" | ")[0].split("mask-sense tree_mask ")[1] for line in found], expected)

    def test_a_mask_that_all_sequences_share(self):
        for dtype, hidden in (FLOATS + INTEGERS)[::3]:
            shown = Kinds(None).causal(4, 11)
            arrays = self.batch(5, (11, 11, 11), (4, 4, 4))
            for shape in [(4, 11), (1, 4, 11), (1, 1, 4, 11)]:
                for inverted in (False, True):
                    values = valued((shown != inverted).reshape(shape), 0, hidden)
                    self.assertEqual(len(self.rules({**arrays, **stored("attn_mask", values, dtype)})[0]), int(inverted))

    def test_biases_without_hidden_keys(self):
        arrays = self.batch(6, (30, 24), (4, 3))
        distance = np.abs(np.arange(26, 30)[:, None] - np.arange(30))
        slopes = 2.0 ** -np.arange(1, HEADS + 1)
        for bias in [np.zeros((4, 30)), -0.5 * distance, np.full((4, 30), -9000.0), -600.0 * distance,
                     (-slopes[:, None, None] * distance)[None]]:  # the fourth hides far keys
            for dtype in ("f32", "f16", "bf16"):
                self.assertEqual(self.rules({**arrays, **stored("attn_mask", bias, dtype)})[0], [])


class PaddingAsRows(Folder):
    TEXT = ("mask-axes attn_mask has as many rows as there are sequences, and each row {} exactly the keys of its sequence: {} in row "
            "0, {} in row 1 |  | two axes are read as [Sq, Sk], a row for each query of all sequences; padding of each sequence is "
            "[{}, 1, Sk]{}")

    def padding(self, lengths, columns, left):
        key, lengths = np.arange(columns), np.array(lengths)[:, None]
        return key >= columns - lengths if left else key < lengths

    def test_padding_is_found_and_its_right_form_is_not(self):
        for seed in seeds(12):
            rng = np.random.default_rng(seed)
            sequences = int(rng.integers(2, 6))
            lengths = [int(n) for n in rng.choice(np.arange(sequences, 40, 2), sequences, replace=False)]
            arrays = self.batch(seed, lengths, (sequences,) * sequences)
            capacity = arrays["block_table"].shape[1] * 4
            for left in (False, True):
                for columns in (max(lengths), capacity) if not left else (max(lengths),):
                    shown = self.padding(lengths, columns, left)
                    dtype, hidden = (FLOATS + INTEGERS)[rng.integers(len(FLOATS) + len(INTEGERS))]
                    with self.subTest(seed=seed, lengths=lengths, left=left, columns=columns, dtype=dtype):
                        for inverted in (False, True):
                            given = stored("attn_mask", valued(shown != inverted, 0, hidden), dtype)
                            found, rules = self.rules({**arrays, **given})
                            self.assertEqual(found, [self.TEXT.format(
                                "hides" if inverted else "shows", *lengths[:2], sequences,
                                ", visible where a sequence has keys" if inverted else "")])
                            self.assertEqual(rules, {"mask-axes"})
                        given = stored("attn_mask", valued(shown[:, None], 0, hidden), dtype)
                        self.assertEqual(self.rules({**arrays, **given})[0], [])

    def test_positions_of_a_padded_cache(self):
        cache = Cache(3, lengths=(6, 8, 3))
        arrays = {**LAYOUTS["hf"][0](cache), "q": np.zeros((3, HEADS, 3, 16), np.float32)}
        positions = arrays["key_cache"].shape[2]
        self.assertGreater(positions, 8)
        shown = np.arange(positions) >= positions - cache.lengths[:, None]
        self.assertEqual(self.rules({**arrays, "attn_mask": shown}, "hf")[0], [self.TEXT.format("shows", 6, 8, 3, "")])
        self.assertEqual(self.rules({**arrays, "attn_mask": shown[:, None]}, "hf")[0], [])

    def test_masks_of_queries_are_not_taken_for_padding(self):
        """Lengths that fit the rows of the mask as far as they can, which a batch has by chance only."""
        for seed in seeds(8):
            rng = np.random.default_rng(seed)
            n = int(rng.integers(2, 7))
            longest = n + int(rng.integers(3, 20))
            rising = [longest - n + 1 + i for i in range(n)]
            kinds = Kinds(rng)
            masks = [(getattr(kinds, kind)(n, longest), lengths) for kind in sorted(CERTAIN | POSSIBLE | OTHERS)
                     for lengths in (rising, [longest] * n, [int(x) for x in rng.integers(n, longest + 1, n)])]
            masks.append((np.tri(n, n, dtype=bool), [i + 1 for i in range(n)]))  # a prompt of i + 1 tokens in a batch
            masks.append((np.arange(longest) >= np.arange(n)[:, None], [longest - i for i in range(n)]))
            for shown, lengths in masks:
                if max(lengths) != shown.shape[1]:
                    lengths[0] = shown.shape[1]
                arrays = self.batch(seed, lengths, (min(n, min(lengths)),) * n)
                arrays = {**self.batch(seed, lengths, (n,) * n)} if min(lengths) >= n else arrays
                q = np.zeros((n, n, HEADS, 16), np.float32)
                arrays = {**{k: v for k, v in arrays.items() if k not in ("q", "query_offsets")}, "q": q}
                for dtype, hidden in (FLOATS + INTEGERS)[seed::8]:
                    with self.subTest(seed=seed, lengths=lengths, dtype=dtype):
                        found = self.rules({**arrays, **stored("attn_mask", valued(shown, 0, hidden), dtype)})[0]
                        self.assertEqual([line for line in found if "mask-axes" in line], [])

    def test_one_key_more_or_less_is_a_mask_of_queries(self):
        lengths = [9, 5, 12]
        arrays = self.batch(4, lengths, (3, 3, 3))
        for b, key in [(0, 9), (0, 8), (0, 0), (1, 5), (1, 3), (2, 11), (2, 0)]:
            shown = self.padding(lengths, 12, False)
            self.assertEqual(len(self.rules({**arrays, "attn_mask": shown})[0]), 1)
            shown[b, key] = not shown[b, key]
            self.assertEqual(self.rules({**arrays, "attn_mask": shown})[0], [])

    def test_other_numbers_of_queries_name_the_form(self):
        lengths = [9, 5, 12]
        shown = self.padding(lengths, 12, False)
        for queries in [(1, 1, 1), (2, 2, 2), (4, 5, 4)]:
            np.savez(self.path("in.npz"), **self.batch(4, lengths, queries), attn_mask=shown)
            text = ("attn_mask has 3 rows; allowed: 1, shared by all queries, or "
                    f"{max(queries)}, the queries of sequence {int(np.argmax(queries))}; row i is query i of its sequence; padding "
                    "of each sequence is [3, 1, Sk]")
            done = kvscope("lint", self.path("in.npz"), "--layout", "nhd")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"FAULT    shape      {text}\n" if max(queries) > 1 else "padding of each sequence is [3, 1, Sk]\n",
                          done.stdout)
            done = kvscope("golden", "--input", self.path("in.npz"), "--layout", "nhd", "--out", self.path("g.npz"))
            self.assertEqual(done.returncode, 2)
            self.assertIn("padding of each sequence is [3, 1, Sk]", done.stderr)


if __name__ == "__main__":
    program.main()
