#!/usr/bin/python3
"""kvscope diagnose against an attention kernel in NumPy whose fault is known: the true cause comes first, and no wrong
cause is stated as certain.

    diagnose_test.py --kvscope PROGRAM

Each fault runs over every batch in one of the nine combinations of type and seed; KVSCOPE_EVERY_FAULT=1 runs all, which is
the test diagnose_every_fault with label `full`. The counts are in docs/05_check_your_kernel.md. KVSCOPE_FAULT_TABLE=1 prints one line
per fault and per miss.
"""
import collections
import concurrent.futures
import itertools
import json
import os
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from attention_faults import FAULTS, UNKNOWN, splits_of  # noqa: E402
from faulty_attention import SHAPES, Inputs, Kernel, suffixed, to_bits  # noqa: E402
from program import fine, kvscope  # noqa: E402

DTYPES = ["f32", "bf16", "f16"]
SEEDS = [1, 2, 3]
COMBINATION = {"no_rescaling", "output_not_rescaled", "sum_not_rescaled", "maximum_not_shared", "maximum_missing",
               "merge_by_mean", "merge_base", "lse_maximum_twice", "empty_split", "not_normalized"}
LOOPS = {"first_keys_missing", "keys_skipped", "page_slots_missing", "tile_keys_missing", "split_missing", "one_split_used",
         "warp_missing", "one_warp_used", "length_limited"}
LEFT_OUT = LOOPS | {"length_without_new", "last_token_missing", "own_token_masked", "last_page_missing", "last_tile_missing",
                    "key_missing", "page_missing", "split_gap"}
PAST_END = {"last_page_unmasked", "length_with_new_twice", "one_token_too_many"}
ORDERS = {"elements_moved", "elements_not_stored", "v_dims_order"}
EVERY = os.environ.get("KVSCOPE_EVERY_FAULT") == "1"


def candidate(dtype, o, lse):
    return {suffixed("o", dtype): to_bits(dtype, o), "lse": lse.astype(np.float32)}


class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder, cls.made, cls.count = folder.name, {}, itertools.count()

    @classmethod
    def inputs(cls, shape, dtype, seed):
        """A batch and its golden's path."""
        key = shape.name, dtype, seed
        if key not in cls.made:
            name = os.path.join(cls.folder, "-".join(map(str, key)))
            inputs = Inputs(shape, dtype, seed)
            np.savez(name + ".npz", **inputs.arrays)
            done = kvscope("golden", "--input", name + ".npz", *shape.options, "--out", name + "-golden.npz")
            if done.returncode != 0:
                raise AssertionError(done.stderr)
            cls.made[key] = inputs, name + "-golden.npz"
        return cls.made[key]

    @classmethod
    def verify(cls, golden, dtype, o, lse):
        path = os.path.join(cls.folder, f"candidate-{next(cls.count)}.npz")
        np.savez(path, **candidate(dtype, o, lse))
        done = kvscope("verify", golden, path, "--json")
        os.remove(path)
        if done.returncode not in (0, 1) or done.stderr:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)


class Judged:
    """The diagnosis of a candidate whose fault is known."""

    def __init__(self, report, hypotheses, place):
        self.observable = not report["passed"]
        diagnosis = report.get("diagnosis", {"explanations": [], "certain": False})
        true = [e["name"] in hypotheses and (place is None or place in e["cause"]) for e in diagnosis["explanations"]]
        self.first, self.listed, self.certain = true[:1] == [True], any(true), diagnosis["certain"]
        self.wrong = self.certain and not self.first
        self.words = "; ".join(e["name"] + ": " + e["cause"] for e in diagnosis["explanations"][:3]) or "none"


class Faults(Folder):
    def cases(self):
        for n, fault in enumerate(FAULTS):
            for shape in filter(fault.when, SHAPES):
                for m, (dtype, seed) in enumerate(itertools.product(DTYPES, SEEDS)):
                    if EVERY or (n + SHAPES.index(shape) + m) % (27 if program.SLOW_BUILD else 9) == 0:
                        yield n, fault, shape, dtype, seed

    def judge(self, case):
        n, fault, shape, dtype, seed = case
        inputs, golden = self.inputs(shape, dtype, seed)
        kernel = Kernel(inputs)
        place = fault.apply(kernel, np.random.default_rng([n, seed]))
        try:
            o, lse = kernel.run(dtype)
        except IndexError:  # outside the cache's memory: a GPU would stop the kernel
            return None
        return Judged(self.verify(golden, dtype, o, lse), fault.hypotheses, place)

    def test_the_true_cause_is_first_and_no_wrong_one_is_certain(self):
        counts, misses = collections.defaultdict(collections.Counter), []
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            cases = list(self.cases())
            for case, judged in zip(cases, pool.map(self.judge, cases)):
                _, fault, shape, dtype, seed = case
                if judged is None:
                    continue
                counts[fault.name].update(cases=1, observable=judged.observable)
                if not judged.observable:
                    continue
                counts[fault.name].update(first=judged.first, listed=judged.listed, certain=judged.certain,
                                          wrong=judged.wrong)
                if not judged.first:
                    misses.append(f"{fault.name}, {shape.name}, {dtype}, seed {seed}: {judged.words}"
                                  f"{' (certain)' if judged.certain else ''}")
        total = sum(counts.values(), collections.Counter())
        columns = ["cases", "observable", "first", "listed", "certain", "wrong"]
        if os.environ.get("KVSCOPE_FAULT_TABLE") == "1":
            print("\n".join(misses))
            for name, row in counts.items():
                print(f"{name:36}" + "".join(f"{row[c]:>11}" for c in columns))
        print(f"{'':36}" + "".join(f"{c:>11}" for c in columns))
        print(f"{str(len(counts)) + ' faults':36}" + "".join(f"{total[c]:>11}" for c in columns))
        self.assertEqual(total["wrong"], 0, misses)
        self.assertGreaterEqual(total["first"], 0.99 * total["observable"], misses)
        self.assertGreaterEqual(total["listed"], 0.995 * total["observable"], misses)
        for name, row in counts.items():
            self.assertGreater(row["observable"], 0, name)
            self.assertGreater(row["first"], row["observable"] // 2, (name, misses))

    def test_no_cause_is_certain_for_a_fault_that_no_hypothesis_describes(self):
        counts = collections.Counter()
        for n, fault in enumerate(UNKNOWN):
            for shape in filter(fault.when, SHAPES):
                for m, (dtype, seed) in enumerate(itertools.product(DTYPES, SEEDS)):
                    if not EVERY and (n + SHAPES.index(shape) + m) % (27 if program.SLOW_BUILD else 9) != 0:
                        continue
                    inputs, golden = self.inputs(shape, dtype, seed)
                    kernel = Kernel(inputs)
                    fault.apply(kernel, np.random.default_rng([n, seed]))
                    report = self.verify(golden, dtype, *kernel.run(dtype))
                    counts.update(cases=1, failed=not report["passed"])
                    if "diagnosis" not in report:
                        continue
                    diagnosis = report["diagnosis"]
                    certain = diagnosis["certain"] and diagnosis["explanations"][0]["name"] not in fault.hypotheses
                    counts.update(none=not diagnosis["explanations"], certain=certain)
                    if certain:
                        print("certain:", fault.name, shape.name, dtype, seed, diagnosis["explanations"])
        print(f"{counts['cases']} kernels with faults that no hypothesis describes: {counts['failed']} rejected, "
              f"{counts['none']} with the answer none, {counts['certain']} certain")
        self.assertEqual(counts["certain"], 0)
        self.assertGreater(counts["none"], counts["failed"] // 2)

    def test_a_correct_kernel_is_not_diagnosed(self):
        # Tiles and splits combined correctly, in each type; the command alone, because verify passes before it diagnoses.
        for shape, (n, dtype) in itertools.product(SHAPES, enumerate(DTYPES)):
            for tile, splits in [(None, 1), (16, 1), (None, 3), (8, 2)]:
                inputs, golden = self.inputs(shape, dtype, SEEDS[n])
                kernel = Kernel(inputs)
                kernel.tile, kernel.splits = tile, splits_of(splits)
                with self.subTest(shape=shape.name, dtype=dtype, tile=tile, splits=splits):
                    path = os.path.join(self.folder, "correct.npz")
                    np.savez(path, **candidate(dtype, *kernel.run(dtype)))
                    self.assertEqual(fine("diagnose", golden, path),
                                     "diagnosis  the candidate is within its bound: nothing to explain\n")

    def pairs(self):
        """Two faults in one kernel, each visible alone and beside the other, with the inputs of the pair's verify."""
        rng = np.random.default_rng(1)
        for shape, dtype in itertools.product(SHAPES, DTYPES):
            faults = [f for f in FAULTS if f.when(shape)]
            inputs, golden = self.inputs(shape, dtype, 1)
            least = {"f32": 1e-4, "f16": 0.01, "bf16": 0.05}[dtype]
            for n in range(2 if program.SLOW_BUILD else 10):
                pair = [faults[i] for i in rng.choice(len(faults), 2, replace=False)]
                outputs = []
                try:
                    with np.errstate(all="ignore"):
                        for chosen in ([], pair[:1], pair[1:], pair):
                            kernel = Kernel(inputs)
                            for fault in chosen:
                                fault.apply(kernel, np.random.default_rng([n, FAULTS.index(fault)]))
                            outputs.append(kernel.run(dtype))
                except IndexError:
                    continue
                # The product of two factors of the scale is a factor of the scale; two faults of the combination replace
                # each other.
                # The exchange of two axes of K and V, and once more of V, is an exchange of K. K without scales, because it
                # takes those of V, which are left out, is a kernel without scales. Two sets of keys that are left out are
                # one set, which one loop may leave out. Without the window and the masks of tiles, no key is masked.
                # Two orders of the elements of o are one order. Two lengths with slots past the end are one length.
                one_factor = all(fault.name.startswith(("scale ", "log2")) for fault in pair) or \
                    all(fault.name.startswith("strides ") for fault in pair) or \
                    all("scales of" in fault.name for fault in pair) or \
                    all(ORDERS.intersection(fault.hypotheses) for fault in pair) or \
                    all(PAST_END.intersection(fault.hypotheses) for fault in pair) or \
                    {"window_missing", "tile_edge_unmasked"} <= {*pair[0].hypotheses, *pair[1].hypotheses} or \
                    (all(LEFT_OUT.intersection(fault.hypotheses) for fault in pair) and
                     any(LOOPS.intersection(fault.hypotheses) for fault in pair)) or \
                    all(COMBINATION.intersection(fault.hypotheses) for fault in pair)
                # Pages of which all tokens are seen can be exchanged without an effect.
                visible = all(np.abs(outputs[i][0] - outputs[j][0]).max() > least
                              for i, j in [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)])
                if visible and not one_factor:
                    yield shape, dtype, pair, golden, outputs[3]

    def test_no_single_cause_is_certain_for_two_faults(self):
        counts = collections.Counter()
        for shape, dtype, pair, golden, output in self.pairs():
            diagnosis = self.verify(golden, dtype, *output)["diagnosis"]
            counts.update(pairs=1, none=not diagnosis["explanations"])
            self.assertFalse(diagnosis["certain"],
                             (shape.name, dtype, [f.name for f in pair], diagnosis["explanations"]))
        print(f"{counts['pairs']} pairs of faults: {counts['none']} with the answer none, 0 certain")
        self.assertGreater(counts["pairs"], 20)


class Command(Folder):
    """The command's files and options, on one batch whose kernel omits the scale."""

    def setUp(self):
        self.shape = SHAPES[0]
        self.batch, self.golden = self.inputs(self.shape, "f32", 1)
        self.input = self.golden.replace("-golden", "")
        kernel = Kernel(self.batch)
        kernel.scale = 1.0
        self.o, self.lse = kernel.run("f32")
        self.wrong = self.save("wrong.npz", o=self.o, lse=self.lse)

    def save(self, name, **arrays):
        path = os.path.join(self.folder, name)
        np.savez(path, **arrays)
        return path

    def rejects(self, message, *arguments):
        done = kvscope(*arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"kvscope: {message}\n"))

    def test_what_cannot_be_diagnosed_is_one_clear_error(self):
        missing = os.path.join(self.folder, "no.npz")
        for arguments in [(missing, self.wrong), (self.golden, missing), (self.golden, self.wrong, "--input", missing)]:
            self.rejects(f"{missing}: cannot be read: No such file or directory", "diagnose", *arguments)
        only_lse = self.save("only_lse.npz", lse=self.lse)
        self.rejects(f"{only_lse}: candidate 'o': is missing; the golden has f64 [4, 8, 32]. The candidate has lse: save "
                     "the kernel's output as o, out or output", "diagnose", self.golden, only_lse)
        self.rejects(f"{self.input}: is not a golden bundle: it has no tensor 'o' and none of '{self.wrong}'. If it holds the "
                     f"inputs of the kernel, compute the golden output with `kvscope golden --input {self.input} --out "
                     f"{self.input.replace('.npz', '_golden.npz')}`", "diagnose", self.input, self.wrong)
        self.rejects("command line: CANDIDATE is required: see 'kvscope diagnose --help'", "diagnose", self.golden)

    def test_inputs_of_another_golden_are_an_error_that_names_the_file(self):
        _, other = self.inputs(self.shape, "f32", 2)
        other = other.replace("-golden", "")
        for command in ("diagnose", "verify"):
            done = kvscope(command, self.golden, self.wrong, "--input", other)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"^kvscope: \S*decode-f32-2.npz: attention: differs from the golden in query "
                             r"row \d, head \d: \S+x the rounding of double. Pass the inputs that the golden was "
                             r"computed from\n$")
        # The layout of other inputs: as many heads, but another number of queries; then shapes that do not fit at all.
        arrays = dict(self.batch.arrays)
        arrays |= {"q": arrays["q"][:3], "block_table": arrays["block_table"][:3],
                   "cache_seqlens": arrays["cache_seqlens"][:3], "query_offsets": arrays["query_offsets"][:4]}
        fewer = self.save("fewer.npz", **arrays)
        self.rejects(f"{fewer}: q: gives an output of shape [3, 8, 32], but the golden's is [4, 8, 32]. Pass the inputs "
                     "that the golden was computed from", "diagnose", self.golden, self.wrong, "--input", fewer)
        hnd = self.inputs(SHAPES[1], "f32", 1)[1].replace("-golden", "")
        self.rejects(f"{hnd}: q: has 6 heads, not a multiple of the 8 kv heads", "diagnose", self.golden, self.wrong,
                     "--input", hnd)

    def test_a_golden_whose_inputs_moved_takes_them_from_an_option(self):
        moved = self.save("moved.npz", **self.batch.arrays)
        gone = self.save("gone.npz", **self.batch.arrays)
        golden = os.path.join(self.folder, "golden-of-gone.npz")
        fine("golden", "--input", gone, "--layout", "nhd", "--out", golden)
        os.remove(gone)
        self.rejects(f"{golden}: inputs: '{gone}', from which it was computed, is missing: pass the file with --input",
                     "diagnose", golden, self.wrong)
        done = kvscope("diagnose", golden, self.wrong, "--input", moved)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("diagnosis  the scores are not multiplied by the scale", done.stdout)
        # verify reports without a diagnosis: without inputs, and with others under the same name.
        done = kvscope("verify", golden, self.wrong)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("\nnote: no diagnosis: the inputs of the golden are missing", done.stdout)
        self.save("gone.npz", **self.inputs(self.shape, "f32", 2)[0].arrays)
        done = kvscope("verify", golden, self.wrong)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertRegex(done.stdout, r"\nnote: no diagnosis: \S*gone.npz: attention: differs from the golden")

    def test_verify_diagnoses_on_failure_unless_told_not_to(self):
        report = json.loads(kvscope("verify", self.golden, self.wrong, "--json").stdout)
        alone = json.loads(kvscope("diagnose", self.golden, self.wrong, "--json").stdout)
        self.assertEqual((alone.pop("passed"), alone), (False, report["diagnosis"]))
        first = report["diagnosis"]["explanations"][0]
        self.assertEqual((first["name"], first["failing_explained"], report["diagnosis"]["certain"]),
                         ("scale_missing", 16, True))
        self.assertLess(first["error_over_allowed"], 1)
        self.assertGreater(report["diagnosis"]["nearest"][0]["error_over_allowed"], 1)
        without = kvscope("verify", self.golden, self.wrong, "--json", "--no-diagnose")
        self.assertEqual(without.returncode, 1)
        self.assertNotIn("diagnosis", json.loads(without.stdout))
        self.assertNotIn("diagnosis", kvscope("verify", self.golden, self.wrong, "--no-diagnose").stdout)

    def test_the_map_by_page_shows_the_page_that_was_read_from_another_block(self):
        for page in (1, 4, 7):
            kernel = Kernel(self.batch)
            place = kernel.place

            def elsewhere(sequence, keys):
                blocks, slots = place(sequence, keys)
                return np.where((sequence == 1) & (keys // 16 == page), self.batch.blocks - 1, blocks), slots
            kernel.place = elsewhere
            report = self.verify(self.golden, "f32", *kernel.run("f32"))["diagnosis"]
            pages = report["pattern"]["pages"]
            shares = np.array(pages["missing_share"])
            self.assertEqual((pages["sequence"], int(np.argmax(shares)), int((shares >= 0.5).sum())), (1, page, 1))
            text = kvscope("diagnose", self.golden, self.save("moved_page.npz", **candidate("f32", *kernel.run("f32")))).stdout
            self.assertIn("  by sequence  .#..\n", text)
            self.assertIn("  by page      sequence 1: " + "." * page + "#" + "." * (8 - page) + "\n", text)
            self.assertEqual([(e["sequence"], e["page"]) for e in report["explanations"]], [(1, page)])

    def test_the_map_by_page_is_left_out_for_faults_without_a_page(self):
        for name, change in [("scale", lambda k: setattr(k, "scale", k.scale / 2 ** 0.5)),
                             ("factor", lambda k: setattr(k, "store", lambda o: o / 3)),
                             ("factor of scores and o", lambda k: (setattr(k, "scale", k.scale / 2 ** 0.5),
                                                                   setattr(k, "store", lambda o: o / 3)))]:
            for shape in SHAPES:
                with self.subTest(name=name, shape=shape.name):
                    batch, golden = self.inputs(shape, "f32", 1)
                    kernel = Kernel(batch)
                    change(kernel)
                    self.assertNotIn("pages", self.verify(golden, "f32", *kernel.run("f32"))["diagnosis"]["pattern"])

    def test_the_report_for_programs_has_every_field(self):
        report = self.verify(self.golden, "f32", self.o, self.lse)["diagnosis"]
        self.assertEqual(report["kvscope_diagnosis"], 1)
        self.assertEqual(set(report), {"kvscope_diagnosis", "candidate_passes", "hypotheses", "failing_rows", "correct_rows",
                                       "certain", "of_groups", "explanations", "nearest", "pattern"})
        pattern = report["pattern"]
        self.assertEqual(set(pattern), {"rows", "failing_rows", "only_nan", "no_numbers", "only_zeros", "lse_correct", "words", "sequences",
                                        "heads", "dims", "failing_rows_of_sequence", "failing_rows_of_head", "visible_keys"})
        self.assertEqual((pattern["only_nan"], pattern["no_numbers"], pattern["lse_correct"]), (False, False, False))
        self.assertEqual(sum(row["rows"] for row in pattern["visible_keys"]), pattern["rows"])
        self.assertEqual([(row["first"], row["last"]) for row in pattern["visible_keys"]], [(32, 63), (64, 127), (128, 255)])
        with open(os.path.join(program.SOURCE, "docs", "07_file_formats.md"), encoding="utf-8") as file:
            page = file.read().partition("## Diagnosis")[2]
        for key in {*report, *pattern, *report["explanations"][0], *pattern["visible_keys"][0], "pages", "missing_share"}:
            self.assertIn(f"`{key}`", page)

    def test_a_fast_golden_is_diagnosed_as_the_strict_one(self):
        fast = os.path.join(self.folder, "fast-golden.npz")
        fine("golden", "--input", self.input, *self.shape.options, "--accuracy", "fast", "--out", fast)
        report = self.verify(fast, "f32", self.o, self.lse)["diagnosis"]
        self.assertEqual(([e["name"] for e in report["explanations"]], report["certain"]), (["scale_missing"], True))

    def test_nan_alone_is_never_a_certain_cause(self):
        for partly in (False, True):
            o = np.full_like(self.o, np.nan)
            if partly:
                o[..., ::2] = self.o[..., ::2]
            report = self.verify(self.golden, "f32", o, self.lse)["diagnosis"]
            pattern = report["pattern"]
            self.assertEqual((pattern["only_nan"], pattern["no_numbers"], report["certain"]), (True, not partly, False))

    def test_noise_has_no_cause(self):
        noise = self.save("noise.npz", o=np.random.default_rng(5).standard_normal(self.o.shape).astype(np.float32),
                          lse=self.lse)
        done = kvscope("diagnose", self.golden, noise)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertRegex(done.stdout, r"\Adiagnosis  none of \d+ hypotheses explains the failing rows\n")


if __name__ == "__main__":
    program.main()
