#!/usr/bin/python3
"""--sum of kvscope ptx run and ptx debug: which bits the matrix instructions compute, compared with sums of fractions.

    ptx_sums_test.py --kvscope PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
import matrix_sums  # noqa: E402
import program  # noqa: E402
from program import kvscope  # noqa: E402


class Sums(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(self.path("product.ptx"), "w", encoding="utf-8") as out:
            out.write(matrix_sums.KERNEL)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def product(self, *more):
        return kvscope("ptx", "run", self.path("product.ptx"), "--block", "32", "--arg", "f32[32]", "--save",
                       f"0={self.path('y.npy')}", "--json", self.path("r.json"), *more)

    def test_the_kernel_tells_the_three_apart(self):
        self.assertEqual(len({matrix_sums.of_kernel(how).tobytes() for how in matrix_sums.NAMES}), 3)

    def test_each_adds_as_its_description_and_is_in_the_results(self):
        for how in matrix_sums.NAMES:
            with self.subTest(sum=how):
                done = self.product("--sum", how)
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                self.assertEqual(np.load(self.path("y.npy")).tobytes(), np.full(32, matrix_sums.of_kernel(how)).tobytes())
                with open(self.path("r.json"), encoding="utf-8") as file:
                    self.assertEqual(json.load(file)["sum"], how)

    def test_without_the_option_each_sum_is_rounded(self):
        self.assertEqual(self.product().returncode, 0)
        self.assertEqual(np.load(self.path("y.npy"))[0], matrix_sums.of_kernel("seq"))
        with open(self.path("r.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["sum"], "seq")

    def test_the_debugger_prints_the_sum_that_was_asked_for(self):
        for how in matrix_sums.NAMES:
            done = subprocess.run([program.KVSCOPE, "ptx", "debug", self.path("product.ptx"), "--block", "32", "--arg", "f32[32]", "--sum",
                                   how], input="step 4\nprint %f1\n", capture_output=True, text=True, timeout=60, check=False)
            bits = f"0x{matrix_sums.of_kernel(how).view(np.uint32):08x}"
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(bits, done.stdout)
            self.assertFalse([other for other in matrix_sums.NAMES if other != how and
                              f"0x{matrix_sums.of_kernel(other).view(np.uint32):08x}" in done.stdout])

    def test_any_other_name_is_rejected_with_the_names(self):
        for command in ("run", "debug"):
            done = kvscope("ptx", command, self.path("product.ptx"), "--sum", "ampere")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("--sum: 'ampere' is not a valid value: choose one of seq, exact, hopper", done.stderr)


if __name__ == "__main__":
    program.main()
