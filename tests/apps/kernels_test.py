#!/usr/bin/python3
"""kvscope kernels, run as a program: the lists, the reports and exit codes of verify, and the messages when something is
missing.

    kernels_test.py --kvscope PROGRAM
"""
import json
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, kvscope  # noqa: E402

KERNELS = ["append_tokens", "gather_rows", "populate_rows", "tma_tile_load", "gather4_tile_load", "lds_stage", "paged_decode",
           "paged_prefill", "mla_decode", "continuous_decode"]


class List(unittest.TestCase):
    def test_names_every_kernel_with_what_it_does(self):
        lines = fine("kernels", "list").splitlines()
        self.assertEqual([line.split()[0] for line in lines], KERNELS)
        self.assertIn(" sm_90a sm_100a ", lines[4])

    def test_as_json_has_every_case_with_its_reason(self):
        listed = json.loads(fine("kernels", "list", "--json"))
        self.assertEqual([k["name"] for k in listed], KERNELS)
        for kernel in listed:
            self.assertGreaterEqual(len(kernel["cases"]), 8, kernel["name"])
            self.assertTrue(all(c["what"] for c in kernel["cases"]))

    def test_of_one_kernel_lists_its_cases(self):
        names = [c["name"] for c in json.loads(fine("kernels", "list", "--json"))[1]["cases"]]
        self.assertEqual([line.split()[0] for line in fine("kernels", "list", "--kernel", "gather_rows").splitlines()], names)


class Verify(unittest.TestCase):
    def test_small_runs_one_case_of_each_and_they_pass(self):
        text = fine("kernels", "verify", "--small")
        self.assertTrue(text.endswith("all 10 cases passed\n"), text)
        self.assertEqual([line.split()[0] for line in text.splitlines() if "1 case " in line], KERNELS)

    def test_prints_the_same_on_every_run_and_under_every_schedule_the_same_verdict(self):
        once = fine("kernels", "verify", "--kernel", "gather_rows")
        self.assertEqual(once, fine("kernels", "verify", "--kernel", "gather_rows"))
        for policy in ("early", "seed:3"):
            self.assertIn("passed", fine("kernels", "verify", "--kernel", "gather_rows", "--policy", policy))

    def test_products_summed_as_on_an_h100_pass_and_are_recorded(self):
        for how in ("exact", "hopper"):
            report = json.loads(fine("kernels", "verify", "--small", "--kernel", "paged_prefill", "--sum", how, "--json"))
            self.assertEqual((report["passed"], report["sum"]), (True, how))
        self.assertEqual(json.loads(fine("kernels", "verify", "--small", "--kernel", "gather_rows", "--json"))["sum"], "seq")

    def test_json_and_junit_say_the_same_to_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            junit = os.path.join(folder, "kernels.xml")
            report = json.loads(fine("kernels", "verify", "--kernel", "populate_rows", "--json", "--junit", junit))
            suite = xml.etree.ElementTree.parse(junit).getroot()
        self.assertTrue(report["passed"])
        self.assertEqual(report["device"]["kind"], "virtual")
        self.assertEqual([c.get("name") for c in suite], [c["case"] for c in report["cases"]])
        self.assertEqual((suite.get("failures"), int(suite.get("tests"))), ("0", len(report["cases"])))
        self.assertTrue(all(c["costs"]["sectors"] > 0 for c in report["cases"]))


class ChangedKernel(unittest.TestCase):
    """--ptx: a changed copy of a kernel's PTX runs through all cases of that kernel, found by its entries."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(os.path.join(program.SOURCE, "gpu", "ptx", "populate_rows.sm_90a.ptx"), encoding="utf-8") as file:
            self.text = file.read()

    def file(self, text):
        path = os.path.join(self.folder.name, "mine.ptx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_an_equal_copy_passes_all_cases_as_the_kernel_itself(self):
        path = self.file("// a comment changes nothing\n" + self.text)
        expected = fine("kernels", "verify", "--kernel", "populate_rows")
        self.assertEqual(fine("kernels", "verify", "--ptx", path), expected)
        self.assertEqual(fine("kernels", "verify", "--ptx", path, "--kernel", "populate_rows"), expected)

    def test_a_changed_instruction_fails(self):
        self.assertIn("mad.lo.s32", self.text)
        result = kvscope("kernels", "verify", "--ptx", self.file(self.text.replace("mad.lo.s32", "mad.hi.s32")))
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("populate_rows", result.stdout)
        self.assertIn("FAILED", result.stdout)

    def test_cases_of_another_architecture_than_the_files_are_left_out(self):
        path = os.path.join(program.SOURCE, "gpu", "ptx", "gather4_tile_load.sm_100a.ptx")
        report = json.loads(fine("kernels", "verify", "--ptx", path, "--json"))
        self.assertEqual((report["passed"], report["device"]["architecture"]), (True, "sm_100a"))
        kernels = json.loads(fine("kernels", "list", "--json"))
        cases = [case["name"] for kernel in kernels if kernel["name"] == "gather4_tile_load" for case in kernel["cases"]]
        ran = {case["case"] for case in report["cases"]}
        self.assertTrue(ran)
        others = [case for case in cases if not any(case in name for name in ran)]
        self.assertTrue(others)
        self.assertEqual(report["left_out"], [f"gather4_tile_load {case}: the file is for sm_100a, and this case for sm_90a"
                                              for case in others])

    def test_files_of_no_kernel_are_rejected_with_the_reason(self):
        def rejected(text, *more):
            result = kvscope("kernels", "verify", "--ptx", self.file(text), *more)
            self.assertEqual((result.returncode, result.stdout), (2, ""), result.stdout)
            return result.stderr

        head = ".version 8.0\n.target sm_90a\n.address_size 64\n"
        self.assertIn("has no entry of a kernel: the kernels for sm_90a are append_tokens", rejected(head + ".visible .entry mine() { ret; }"))
        self.assertIn("there is no kernel 'warp'", rejected(self.text, "--kernel", "warp"))
        self.assertIn("keep all entries of the file", rejected(self.text, "--kernel", "gather_rows"))
        self.assertIn("no kernel is kept for sm_80", rejected(self.text.replace(".target sm_90a", ".target sm_80")))
        self.assertIn("virtual GPU only", rejected(self.text, "--device", "cuda"))


class Missing(unittest.TestCase):
    def rejected(self, *words):
        result = kvscope(*words)
        self.assertEqual((result.returncode, result.stdout), (2, ""), words)
        return result.stderr

    def test_what_is_not_there_is_named_with_what_is(self):
        self.assertIn("no kernel 'warp': one of append_tokens, gather_rows", self.rejected("kernels", "verify", "--kernel", "warp"))
        self.assertIn("no case has 'xyz' in its name", self.rejected("kernels", "verify", "--case", "xyz"))
        self.assertEqual(self.rejected("kernels", "verify", "--small", "--case", "f16_none_page256_loads"),
                         "kvscope: command line: --small: no small case has that in its name: leave --case or --small out\n")
        self.assertIn("--policy: 'soon' is not one of late, early, seed:N", self.rejected("kernels", "verify", "--policy", "soon"))
        self.assertIn("--sum: 'ampere' is not a valid value: choose one of seq, exact, hopper", self.rejected("kernels", "verify", "--sum", "ampere"))
        self.assertIn("--sum: is an option of the virtual GPU: leave --device out",
                      self.rejected("kernels", "verify", "--sum", "exact", "--device", "cuda"))
        self.assertIn("--policy: 'seed:0' is not seed:N with N from 1 to 18446744073709551615\n",
                      self.rejected("kernels", "verify", "--policy", "seed:0"))
        self.assertIn("--device", self.rejected("kernels", "verify", "--device", "cpu"))

    def test_without_a_driver_the_loaders_words_and_the_way_out(self):
        result = kvscope("kernels", "verify", "--small", "--device", "cuda")
        if result.returncode != 2:
            self.skipTest("this machine has a GPU")
        self.assertRegex(result.stderr, "no CUDA driver on this machine|no GPU|cuInit")


if __name__ == "__main__":
    program.main()
