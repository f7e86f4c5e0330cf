#!/usr/bin/python3
"""kvscope diagnose of faults that no single element shows: each is within its bound, and only the tests of rows or pages
fail.

    diagnose_groups_test.py --kvscope PROGRAM

The kernel is NumPy, rounds as a bf16 kernel does, and reads one long sequence.
"""
import json
import os
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from faulty_attention import Inputs, Kernel, SHAPES, Shape, rounded, suffixed, to_bits  # noqa: E402
from program import fine, kvscope  # noqa: E402

KEYS, PAGE = 3_000, 4


class Groups(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.shape = Shape("long bf16", "nhd", PAGE, (8, 2), [KEYS, 300], [1, 1], dim=64, scale=0.3)
        SHAPES.append(cls.shape)
        cls.addClassCleanup(SHAPES.remove, cls.shape)
        cls.batch = Inputs(cls.shape, "bf16", 5)
        np.savez(os.path.join(cls.folder, "in.npz"), **cls.batch.arrays)
        cls.golden = os.path.join(cls.folder, "golden.npz")
        fine("golden", "--input", os.path.join(cls.folder, "in.npz"), *cls.shape.options, "--out", cls.golden)

    @classmethod
    def faint_pages(cls, count, largest=8):
        """Pages of sequence 0 that change no element of o by more than `largest` deviations of a bf16 kernel's rounding,
        but many of them: those with the largest change."""
        kernel = Kernel(cls.batch)
        keys = np.arange(KEYS)
        k, v = (side.read(*kernel.place(0, keys), np.arange(2)).astype(float) for side in (kernel.k, kernel.v))
        change, noise = np.zeros((KEYS // PAGE, 8, 64)), np.zeros((8, 64))
        for h in range(8):
            p = np.exp(k[:, h // 4] @ cls.batch.q[0, h].astype(float) * cls.shape.scale)
            p /= p.sum()
            o = p @ v[:, h // 4]
            change[:, h] = (p[:, None] * (o - v[:, h // 4])).reshape(-1, PAGE, 64).sum(1)
            noise[h] = 2 ** -9 * (np.sqrt(((p[:, None] * v[:, h // 4]) ** 2).sum(0)) + np.abs(o) / 2)
        ratio = np.abs(change / noise)
        ratio[ratio.max((1, 2)) > largest] = 0
        return [int(page) for page in np.argsort((ratio ** 2).mean((1, 2)))[-count:]]

    @classmethod
    def faint_page(cls):
        """Of the pages that rounding hides in each element, one that the tests of pages see."""
        return cls.faint_pages(2, 6.5)[0]

    def verify(self, kernel, with_lse=False):
        o, lse = kernel.run("bf16")
        self.path = os.path.join(self.folder, "candidate.npz")
        np.savez(self.path, **{suffixed("o", "bf16"): to_bits("bf16", o), **({"lse": lse} if with_lse else {})})
        done = kvscope("verify", self.golden, self.path, "--json")
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def diagnosed(self, kernel):
        """The diagnosis, after a check that groups alone fail."""
        report = self.verify(kernel)
        failing = {c["name"] for c in report["criteria"] if not c["passed"]}
        self.assertTrue(failing and failing <= {"o: rows", "o: pages"}, failing)
        self.assertTrue(report["diagnosis"]["of_groups"])
        return report["diagnosis"]

    def assert_first(self, diagnosis, *causes):
        first = [e for e in diagnosis["explanations"][:1]]
        self.assertTrue(first and any(text in first[0]["cause"] for text in causes), diagnosis["explanations"])
        self.assertAlmostEqual(first[0]["change_share"], 1, delta=0.25)
        self.assertGreater(first[0]["change_deviations"], 6)

    def test_a_correct_kernel_passes(self):
        self.assertTrue(self.verify(Kernel(self.batch))["passed"])
        self.assertTrue(self.verify(Kernel(self.batch), with_lse=True)["passed"])

    def with_pages(self, page, change):
        """A kernel that reads page `page` of sequence 0 `change` times."""
        kernel = Kernel(self.batch)
        correct = kernel.visible

        def visible(b, i):
            keys = correct(b, i)
            return np.repeat(keys, np.where((keys // PAGE == page) & (b == 0), change, 1))
        kernel.visible = visible
        return kernel

    def test_a_page_left_out_or_counted_twice_is_named(self):
        for change, name in [(0, "page_missing"), (2, "page_twice")]:
            diagnosis = self.diagnosed(self.with_pages(self.faint_page(), change))
            self.assert_first(diagnosis, f"page {self.faint_page()} of sequence 0 ")
            self.assertEqual(diagnosis["explanations"][0]["name"], name)
        text = kvscope("diagnose", self.golden, self.path).stdout
        self.assertIn(" together: sequence 0; all heads; each element is within its bound\n", text)
        self.assertRegex(text, r"\n  evidence \d\.\d\dx of the change that this fault makes, which is \d+(\.\d+)? deviations")
        self.assertLess(text.count("\n"), 25)

    # One element fails, and the bound of its row fits dozens of single pages.
    def test_of_causes_within_a_wide_bound_the_nearest_is_first(self):
        page, = self.faint_pages(1, 14)
        for count in (0, 2):
            diagnosis = self.verify(self.with_pages(page, count))["diagnosis"]
            self.assertFalse(diagnosis["of_groups"])
            self.assertIn(f"page {page} of sequence 0 ", diagnosis["explanations"][0]["cause"])
            self.assertIn(diagnosis["explanations"][0]["name"], ["page_missing" if count == 0 else "page_twice"])

    def test_values_of_a_coarser_type_have_no_certain_cause(self):
        kernel = Kernel(self.batch)
        kernel.value_order = lambda x: rounded("bf16", x * 1.37) / 1.37
        report = self.verify(kernel)
        if not report["passed"]:
            self.assertFalse(report["diagnosis"]["certain"])


if __name__ == "__main__":
    program.main()
