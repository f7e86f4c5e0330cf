#!/usr/bin/python3
"""kvscope verify names faults of staging: swizzles, fragments, stores of o, and keys divided among warps and splits.

    diagnose_staging_test.py --kvscope PROGRAM

The kernel of staged_attention.py is correct; each fault replaces one of its lines. The first cause that verify prints
must be the fault, on every batch on which the fault can exist, and no other cause may be certain. UNNAMED faults have
no hypothesis: for these, no cause may be certain. KVSCOPE_FAULT_TABLE=1 prints one line for each fault and batch.
"""
import dataclasses
import json
import os
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, kvscope  # noqa: E402
from staged_attention import Batch, Kernel, swizzle  # noqa: E402

TABLE = os.environ.get("KVSCOPE_FAULT_TABLE") == "1"
UNNAMED = ()

# Lengths within a tile, at its end and one more. All but the first have several boxes in a row.
BATCHES = [
    Batch("bf16_64", "bf16", page=16, dim=64, lengths=[75, 131, 33], queries=[1, 1, 1],
          span=128, tile=32, warps=4, run=8, splits=2),
    Batch("f32_64", "f32", page=8, dim=64, lengths=[64, 192, 128], queries=[1, 1, 1],
          span=128, tile=32, warps=2, run=16, splits=3),
    Batch("bf16_128", "bf16", page=64, dim=128, lengths=[201, 64, 331], queries=[1, 1, 1],
          span=128, tile=64, warps=4, run=16, splits=2),
    Batch("f16_64", "f16", page=16, dim=64, lengths=[47, 260, 150], queries=[3, 1, 2],
          span=64, tile=64, warps=4, run=16, splits=2),
    Batch("f32_128", "f32", page=16, dim=128, lengths=[65, 160, 97], queries=[1, 1, 1],
          span=32, tile=16, warps=4, run=1, splits=4),
]
SIXTEEN_BITS = [b for b in BATCHES if b.size == 2]
SEVERAL_BOXES = [b for b in BATCHES if b.dim * b.size > b.span]
WHOLE_PAGES = [b.name for b in BATCHES if any(n % b.page == 0 for n in b.lengths)]  # no slot follows the last key
PAGES_IN_A_TILE = [b for b in BATCHES if b.tile > b.page]


def width(batch):
    """Elements of a row of a box."""
    return batch.span // batch.size


def box(batch, number):
    return f"elements {number * width(batch)} to {(number + 1) * width(batch) - 1}"


def periodic(batch, which, warps):
    """Causes that state a warp's keys without a word of warps: the first or last run of each tile or page."""
    period, run = batch.run * warps, "key" if batch.run == 1 else f"{batch.run} keys"
    of = [f"tile_keys_missing: the {which} {run} of each tile of {period} keys",
          f"tile_keys_missing: the {which} {run} of each full tile of {period} keys"]
    return of + [f"page_slots_missing: the {which} {run} of each page"] * (batch.page == period)


def of_warps(batch, text):
    return [f"{text} (warps take {'one key' if batch.run == 1 else f'{batch.run} keys'} in turn)"]


def first_lost(batch):
    return (of_warps(batch, f"warp_missing: the part of warp 0 of {batch.warps} is lost")
            + periodic(batch, "first", batch.warps))


def last_lost(batch):
    return (of_warps(batch, f"warp_missing: the part of warp {batch.warps - 1} of {batch.warps} is lost")
            + periodic(batch, "last", batch.warps))


def first_used(batch):
    return (of_warps(batch, f"one_warp_used: only the part of warp 0 of {batch.warps} is used")
            + (periodic(batch, "last", 2) if batch.warps == 2 else []))


def last_used(batch):
    return (of_warps(batch, f"one_warp_used: only the part of the last of {batch.warps} warps is used")
            + (periodic(batch, "first", 2) if batch.warps == 2 else []))


class Staging(unittest.TestCase):
    faults = 0  # so far; a slow build tests each on one batch, in turn

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        for batch in BATCHES:
            np.savez(cls.file(batch, "in"), **batch.arrays())
            fine("golden", "--input", cls.file(batch, "in"), "--layout", "nhd", "--out", cls.file(batch, "golden"))

    @classmethod
    def file(cls, batch, what):
        return os.path.join(cls.folder, f"{batch.name}_{what}.npz")

    def verdict(self, batch, kernel):
        np.savez(self.file(batch, "candidate"), **batch.outputs(*kernel.run()))
        done = kvscope("verify", self.file(batch, "golden"), self.file(batch, "candidate"), "--json")
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def named(self, fault, causes, lines, batches=tuple(BATCHES), unnamed=()):
        """The first cause begins with one of `causes`, except on the batches `unnamed`; a certain one does so on all.
        `lines` replace those of the kernel: a dict, or a function of the batch that returns one."""
        Staging.faults += 1
        for batch in batches[Staging.faults % len(batches)::len(batches)] if program.SLOW_BUILD else batches:
            with self.subTest(fault=fault, batch=batch.name):
                report = self.verdict(batch, Kernel(batch, **(lines(batch) if callable(lines) else lines)))
                self.assertFalse(report["passed"])
                diagnosis = report["diagnosis"]
                found = [f"{cause['name']}: {cause['cause']}" for cause in diagnosis["explanations"]]
                if TABLE:
                    print(" | ".join([fault, batch.name, str(diagnosis["certain"]), *(found or ["none"])]), flush=True)
                expected = tuple(causes(batch) if callable(causes) else causes)
                if diagnosis["certain"] or (expected and batch.name not in unnamed):
                    self.assertTrue(found and found[0].startswith(expected), found)

    def test_the_kernel_is_correct(self):
        for batch in BATCHES:
            for span in (32, 64, 128):
                with self.subTest(batch=batch.name, span=span):
                    self.assertTrue(self.verdict(batch, Kernel(batch, span=span))["passed"])

    def test_swizzle_is_not_undone(self):
        linear = lambda s, address: address
        for span in (32, 64, 128):
            for of, places in (("K", ["k_place"]), ("V", ["v_place"]), ("K and V", ["k_place", "v_place"])):
                self.named(f"{of} without {span}B swizzle",
                           [f"swizzle: the 16-byte chunks of {of} are not where the {span}-byte swizzle puts them"],
                           {"span": span, **dict.fromkeys(places, linear)})

    def test_swizzle_of_another_width(self):
        narrow = lambda s, address: swizzle(address, 64)
        for of, places in (("K", ["k_place"]), ("V", ["v_place"]), ("K and V", ["k_place", "v_place"])):
            self.named(f"{of} 128B read as 64B",
                       [f"swizzle: chunks of {of} are read at chunk ^ (row & 3) instead of chunk ^ (row & 7)"],
                       {"span": 128, **dict.fromkeys(places, narrow)})
        self.named("V 64B read as 128B", UNNAMED, {"span": 64, "v_place": lambda s, a: swizzle(a, 128)})

    def test_swizzle_of_a_tile_that_is_not_aligned(self):
        for shift in (128, 512):
            place = lambda s, address, shift=shift: swizzle(address - shift, s.span) + shift
            cause = f"swizzle: the tile of {{}} begins {shift} bytes after a multiple of 1024"
            self.named(f"K and V begin at {shift}", [cause.format("K and V")],
                       {"span": 128, "alignment": shift, "k_place": place, "v_place": place})
            moved = ["elements_moved: element d of o holds element d ^", "v_dims_order"]  # 512: all rows alike
            self.named(f"V begins at {shift}", [cause.format("V")] + moved * (shift == 512),
                       {"span": 128, "alignment": shift, "v_place": place})

    def test_swizzle_of_other_tiles(self):
        self.named("Q without swizzle", UNNAMED, {"q_place": lambda s, a: a}, [b for b in BATCHES if b.span > 32])
        self.named("Q box 0 for all", UNNAMED, {"q_box": lambda s, j: j * 0}, SEVERAL_BOXES)
        self.named("P without swizzle", UNNAMED, {"p_place": lambda s, a, span: a})
        self.named("O without swizzle", UNNAMED, {"o_place": lambda s, a: a}, [b for b in BATCHES if b.span > 32])

    def test_scores_of_a_part_of_a_head(self):
        first = lambda n: {"dot": lambda s, q, k: q[:, :n] @ k[:, :n].T}
        def cause(n):
            text = "elements_left_out: the scores have the products of the first {} of {} elements only"
            return lambda b: [text.format(n(b), b.dim)]
        self.named("dot of the first 8", cause(lambda b: 8), first(8))
        self.named("dot of the first 16", cause(lambda b: 16), first(16))
        self.named("dot of the first 32", cause(lambda b: 32), first(32))
        half, but_a_chunk = lambda b: b.dim // 2, lambda b: b.dim - 16 // b.size
        self.named("dot of the first half", cause(half), lambda b: first(half(b)))
        self.named("dot of all but one chunk", cause(but_a_chunk), lambda b: first(but_a_chunk(b)))
        self.named("dot of all but one", cause(lambda b: b.dim - 1), lambda b: first(b.dim - 1))
        self.named("dot of the last half", UNNAMED,
                   lambda b: {"dot": lambda s, q, k: q[:, b.dim // 2:] @ k[:, b.dim // 2:].T})

        def every_second(b):
            kept = np.arange(b.dim) // (16 // b.size) % 2 == 0
            return {"dot": lambda s, q, k: q[:, kept] @ k[:, kept].T}
        half = "score_half_added: a shuffle step of the score's sum is missing: it has the products of the elements e with e / {} % 2 = 0"
        self.named("dot of every second chunk", lambda b: [half.format(16 // b.size)], every_second)
        self.named("dot with pairs of K exchanged", UNNAMED,
                   lambda b: {"k_fragments": lambda s, k: k[:, np.arange(b.dim) ^ 1]})
        self.named("dot with halves of 16 elements of K exchanged", UNNAMED,
                   lambda b: {"k_fragments": lambda s, k: k[:, np.arange(b.dim) ^ 8]})

    def test_output_in_another_order(self):
        def lanes(b):
            each = b.dim // 32
            return {"o_dims": lambda s, d: d // each + d % each * 32}
        evens = "v_dims_order: V is read, or o is stored, with even elements first, then odd ones"
        self.named("o by lane + 32 i",
                   lambda b: [evens if b.dim == 64 else "elements_moved: element 1 of o holds element 4,"], lanes)
        for bit in (1, 2, 8):
            self.named(f"o dims ^ {bit}", [f"elements_moved: element d of o holds element d ^ {bit}"],
                       {"o_dims": lambda s, d, bit=bit: d ^ bit})
        self.named("o in reverse order in fours", ["elements_moved: element 0 of o holds element 3,"],
                   {"o_dims": lambda s, d: d ^ 3})
        chunk = lambda b: 16 // b.size
        self.named("o rotated by a chunk",
                   lambda b: [f"elements_moved: elements 0 to {chunk(b) - 1} of o hold elements {b.dim - chunk(b)} to"],
                   lambda b: {"o_dims": lambda s, d: (d + chunk(b)) % b.dim})
        halves = "v_dims_order: V is read, or o is stored, with the halves of each head exchanged"
        bit = lambda b: f"elements_moved: element d of o holds element d ^ {width(b)}"
        self.named("o boxes exchanged", lambda b: [halves if 2 * width(b) == b.dim else bit(b)],
                   {"o_boxes": lambda s, x: [(j ^ 1, j) for j, _ in x]}, SEVERAL_BOXES)

    def test_output_twice_or_not_at_all(self):
        hold = lambda to, of: lambda b: [f"elements_moved: {box(b, to)} of o hold {box(b, of)}"]
        zero = lambda first, last: [f"elements_not_stored: elements {first} to {last - 1} of o are 0"]
        self.named("o first box twice", hold(1, 0), {"o_boxes": lambda s, x: [(0, 0), (1, 0)] + x[2:]}, SEVERAL_BOXES)
        self.named("o second box twice", hold(0, 1), {"o_boxes": lambda s, x: [(0, 1)] + x[1:]}, SEVERAL_BOXES)
        self.named("V box 0 for all", hold(1, 0), {"v_box": lambda s, j: j * 0}, SEVERAL_BOXES)
        self.named("o last box is not stored", lambda b: zero(b.dim - width(b), b.dim),
                   {"o_boxes": lambda s, x: x[:-1]}, SEVERAL_BOXES)
        self.named("o first box is not stored", lambda b: zero(0, width(b)), {"o_boxes": lambda s, x: x[1:]},
                   SEVERAL_BOXES)
        self.named("o only the first half is stored", lambda b: zero(b.dim // 2, b.dim),
                   {"o_boxes": lambda s, x: x[:len(x) // 2]}, SEVERAL_BOXES)

    def test_output_that_keeps_values_of_an_earlier_kernel(self):
        for name, value in (("NaN", np.nan), ("others", 0.375)):
            before = lambda s, o, value=value: s.batch.store(np.full(o.shape, value))
            not_stored = lambda b: [f"elements_not_stored: elements {b.dim - width(b)} to {b.dim - 1} of o are NaN"]
            self.named(f"o last box is not stored, {name} there", not_stored if name == "NaN" else UNNAMED,
                       {"o_before": before, "o_boxes": lambda s, x: x[:-1]}, SEVERAL_BOXES)

    def test_rows_of_v_in_another_order(self):
        for bit in (1, 2, 4, 8):
            self.named(f"V rows ^ {bit}", [f"tile_rows: key t is multiplied with row t ^ {bit} of V"],
                       {"v_row": lambda s, r, bit=bit: r ^ bit})
        self.named("V rows ^ 3", UNNAMED, {"v_row": lambda s, r: r ^ 3})
        self.named("V rows ^ 16", UNNAMED, {"v_row": lambda s, r: r ^ 16}, [b for b in BATCHES if b.tile >= 32])
        # Registers of the first product hold keys 0 1 8 9 | 2 3 10 11 | ..., the second reads 0 1 2 3 | 4 5 6 7 | ...
        self.named("V rows in the order of fragments", ["tile_rows: the keys of V are in the order of one thread's"],
                   {"v_row": lambda s, r: r // 16 * 16 + r % 16 // 4 * 2 + r % 4 // 2 * 8 + r % 2})
        self.named("V row next in shared memory", UNNAMED, {"v_row": lambda s, r: r + 1})
        self.named("V row next in the tile", UNNAMED, lambda b: {"v_row": lambda s, r: (r + 1) % b.tile})
        self.named("V row before in the tile", UNNAMED, lambda b: {"v_row": lambda s, r: (r - 1) % b.tile})
        self.named("V of the next token", ["tile_rows: V is read from the next key, K correctly"],
                   {"v_token": lambda s, t: t + 1}, unnamed=WHOLE_PAGES)

    def test_rows_of_k_in_another_order(self):
        self.named("K row next in shared memory", UNNAMED, {"k_row": lambda s, r: r + 1})
        self.named("K row next in the tile", UNNAMED, lambda b: {"k_row": lambda s, r: (r + 1) % b.tile})
        self.named("K of the next token", ["tile_rows: K is read from the next key, V correctly"],
                   {"k_token": lambda s, t: t + 1}, unnamed=WHOLE_PAGES)
        self.named("K of the token before", UNNAMED, {"k_token": lambda s, t: t - 1})
        for bit in (1, 8):  # with whole tiles, the same output as V in this order
            of = lambda b: "V" if b.name == "f32_64" else "K"
            self.named(f"K rows ^ {bit}", lambda b: [f"tile_rows: key t is multiplied with row t ^ {bit} of {of(b)}"],
                       {"k_row": lambda s, r, bit=bit: r ^ bit})

    def test_fragments_of_ldmatrix(self):
        def transposed(x):
            rows, dims = x.shape
            return x.reshape(rows // 8, 8, dims // 8, 8).transpose(0, 3, 2, 1).reshape(rows, dims)

        def exchanged(x):  # matrices 1 and 2 of an ldmatrix.x4
            rows, dims = x.shape
            return x.reshape(rows // 16, 2, 8, dims // 16, 2, 8).transpose(0, 4, 2, 3, 1, 5).reshape(rows, dims)
        for side in "kv":
            self.named(f"{side} 8 x 8 transposed",
                       [f"squares_transposed: squares of 8 keys and 8 elements of {side.upper()} are transposed"],
                       {side + "_fragments": lambda s, x: transposed(x)}, SIXTEEN_BITS)
            self.named(f"{side} matrices 1 and 2 exchanged", UNNAMED,
                       {side + "_fragments": lambda s, x: exchanged(x)}, SIXTEEN_BITS)

    def test_parts_of_warps(self):
        self.named("first warp lost", first_lost, {"warps_kept": lambda s, w: w[1:]})
        self.named("last warp lost", last_lost, {"warps_kept": lambda s, w: w[:-1]})
        self.named("only warp 0", first_used, {"warps_kept": lambda s, w: w[:1]})
        self.named("only the last warp", last_used, {"warps_kept": lambda s, w: w[-1:]})
        four = [b for b in BATCHES if b.warps == 4]
        self.named("only even warps", lambda b: periodic(b, "last", 2) + ["keys_skipped: every second key is left out"],
                   {"warps_kept": lambda s, w: w[::2]}, four)
        self.named("odd warps twice", UNNAMED, {"warps_kept": lambda s, w: [x | 1 for x in w]}, four)
        self.named("o of the last warp is not added", UNNAMED,
                   {"warp_outputs": lambda s, o: np.concatenate([o[:-1], o[-1:] * 0])})
        # Warps exchange no P: each has the output of the keys that it read, and stores its part of the dims.
        own = lambda s, o: o * (np.arange(o.shape[2]) * len(o) // o.shape[2] == np.arange(len(o))[:, None])[:, None]
        self.named("P of the warp alone", UNNAMED, {"warp_outputs": own})
        self.named("sum of one lane of four", UNNAMED,
                   {"p_sum": lambda s, p: p.reshape(len(p), -1, 4, 2)[:, :, 0].sum((1, 2))})
        self.named("sum of warp 0 only", UNNAMED, {"merged_sum": lambda s, weight, l: (weight * l)[0]})
        self.named("sums of warps not rescaled", UNNAMED, {"merged_sum": lambda s, weight, l: l.sum(0)})

    def test_parts_of_warps_that_take_other_runs(self):
        # Hypotheses count keys from the first of the sequence: none fits where a split does not begin with warp 0.
        short, long = BATCHES[0], BATCHES[2]
        for warps, run in ((2, 32), (3, 16), (8, 8), (8, 1), (4, 64)):
            for splits, batches in ((1, [long] if run == 64 else [short, long]), (2, [short])):
                others = [dataclasses.replace(batch, warps=warps, run=run, splits=splits) for batch in batches]
                unnamed = [short.name] if splits == 2 and run > 1 else []
                of = f"of {warps} warps with runs of {run}, {splits} splits"
                self.named(f"first {of}, lost", first_lost, {"warps_kept": lambda s, w: w[1:]}, others, unnamed)
                if run < 64:  # else the last warp has no keys, or the same as page 3
                    self.named(f"last {of}, lost", last_lost, {"warps_kept": lambda s, w: w[:-1]}, others, unnamed)
                self.named(f"only the first {of}", first_used, {"warps_kept": lambda s, w: w[:1]}, others, unnamed)

    def test_parts_of_splits(self):
        # On some batches, other splits or pages have the same keys.
        self.named("first split lost", ["split_missing: the first split is", "one_split_used: only the last split is"],
                   {"splits_kept": lambda s, x: x[1:]})
        same = {"f32_64": "length_limited: only the first 128 keys of each sequence",
                "f32_128": "last_page_missing: the last page is left out"}
        lost = "split_missing: the last split is left out"
        self.named("last split lost", lambda b: [same.get(b.name, lost)], {"splits_kept": lambda s, x: x[:-1]})
        same = {b: "one_split_used: only the first split is used" for b in ("f32_64", "f32_128")}  # the others have two
        self.named("only the first split", lambda b: [same.get(b.name, lost)], {"splits_kept": lambda s, x: x[:1]})
        self.named("o of the last split is not written", UNNAMED,
                   {"split_outputs": lambda s, o: np.concatenate([o[:-1], o[-1:] * 0])})
        self.named("o of the first split is not written", UNNAMED,
                   {"split_outputs": lambda s, o: np.concatenate([o[:1] * 0, o[1:]])})
        self.named("weights of the next split", UNNAMED, {"split_weights": lambda s, w: np.roll(w, 1, 0)})

        def rounded_down(b):
            keys = lambda size: [(i * size, (i + 1) * size) for i in range(b.splits)]
            return {"split_keys": lambda s, n: keys(n // b.splits)}
        # Of an odd length, one key less. A sequence whose last page is full has an even length.
        one_less = ["length_without_new: the sequence length leaves out this step's new tokens",
                    "last_token_missing: the last key of each sequence is left out if its last page is partly filled"]
        self.named("split size rounded down", lambda b: ["key_missing: key 46 of sequence 0"] if b.name == "f16_64" else one_less, rounded_down,
                   [b for b in BATCHES if b.name != "f32_64"])

    def test_first_or_last_keys(self):
        def last(s, n, most):
            start = max(0, n - most)
            return [(start + a, start + b) for a, b in Kernel.split_keys(s, n - start)]
        for most in (32, 64, 100):
            named = most != 100  # a hypothesis has powers of two only
            self.named(f"first {most} keys", [f"length_limited: only the first {most} keys of each sequence"] * named,
                       {"split_keys": lambda s, n, most=most: Kernel.split_keys(s, min(n, most))})
            # Several queries of a sequence have one first key, so this is no window.
            self.named(f"last {most} keys", [f"window_added: a sliding window of {most - 1} keys"] * named,
                       {"split_keys": lambda s, n, most=most: last(s, n, most)}, unnamed=["f16_64"])

    def test_stages_of_the_pipeline(self):
        one_split = [dataclasses.replace(batch, splits=1) for batch in BATCHES]
        for splits, batches in (("splits", BATCHES), ("one split", one_split)):
            for of, stages in (("K", ["k_stage"]), ("V", ["v_stage"]), ("K and V", ["k_stage", "v_stage"])):
                verb = "are" if " and " in of else "is"
                cause = lambda place: lambda b: [f"tile_rows: {of} {verb} read from {place}, in tiles of {b.tile} keys"]
                # A split of one tile finds unknown rows in the other stage. Rows of pages that do not exist keep what was
                # in shared memory before.
                missing = ["bf16_64", "f16_64"] if splits == "one split" else []
                unnamed = missing if splits == "one split" else [b.name for b in BATCHES]
                self.named(f"{of} of the other stage, {splits}", cause("the other of two stages"),
                           dict.fromkeys(stages, lambda s, i: (i + 1) % 2), batches, unnamed + ["bf16_128"])
                self.named(f"{of} of stage 0, {splits}", cause("stage 0 of two stages"),
                           dict.fromkeys(stages, lambda s, i: 0), batches, missing)
        # Of f32_128, each last split has one tile, which it keeps.
        gap = "split_gap: the last page of each split but the last is left out (4 splits of whole pages)"
        self.named("last tile of a split lost", lambda b: [gap] if b.name == "f32_128" else UNNAMED,
                   {"tiles": lambda s, a, b: Kernel.tiles(s, a, b)[:-1] or Kernel.tiles(s, a, b)})
        self.named("first tile of a split lost", UNNAMED,
                   {"tiles": lambda s, a, b: Kernel.tiles(s, a, b)[1:] or Kernel.tiles(s, a, b)})

    def test_pages_and_boxes_of_a_tile(self):
        first = "tile_pages: all pages of a tile of {} keys are read from the block of its first page"
        self.named("one page for a tile", lambda b: [first.format(b.tile)],
                   lambda b: {"page_of": lambda s, t, t0: np.full(t.shape, t0 // b.page)}, PAGES_IN_A_TILE)
        self.named("one page copied", UNNAMED, lambda b: {"rows_copied": lambda s, rows: rows[rows < b.page]},
                   PAGES_IN_A_TILE)
        self.named("K box 0 for all", UNNAMED, {"k_box": lambda s, j: j * 0}, SEVERAL_BOXES)
        self.named("K and V boxes copied to one place", UNNAMED, {"copy_box": lambda s, j: j * 0}, SEVERAL_BOXES)

    def test_padded_rows(self):
        linear = {name: lambda s, a: a for name in ("copied_to", "q_place", "k_place", "v_place", "o_place")}
        padded = lambda b: {**linear, "span": b.dim * b.size, "write_padding": 16, "read_padding": 16}
        for batch in BATCHES:
            self.assertTrue(self.verdict(batch, Kernel(batch, **padded(batch)))["passed"])
        self.named("rows read without padding", UNNAMED, lambda b: {**padded(b), "read_padding": 0})


if __name__ == "__main__":
    program.main()
