#!/usr/bin/env python3
"""Hostile submissions of a CUDA lab: PTX that does not end, wants too much memory or output, or is no PTX.

    kernel_security_test.py --kvscope PROGRAM

docs/labs/staff/SECURITY.md is the threat model. Each attack is a gather.ptx of lab 09, so that no CUDA compiler is needed,
except for one attack on the compiler. None may earn a point, and none may run longer than LONGEST.
"""
import json
import pathlib
import subprocess
import tempfile
import time
import unittest

import command_line

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "labs"
KVSCOPE = ""
LONGEST = 60  # [s] of one grading
HEAD = """.version 8.0
.target sm_90a
.address_size 64
"""
ENTRY = """.visible .entry gather(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d,
                       .param .u32 e, .param .u32 f, .param .u32 g, .param .u64 h)
"""


def kernel(body, before=""):
    return f"{HEAD}{before}{ENTRY}{{\n{body}\n}}\n"


class KernelSecurityTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, text, name="gather.ptx"):
        """The grade's tests as one text; no attack has points."""
        (self.folder / name).write_text(text, encoding="utf-8")
        out = self.folder / "grade.json"
        started = time.monotonic()
        done = subprocess.run([KVSCOPE, "lab", "check", "9", str(self.folder), "--course", str(COURSE), "--json", str(out)],
                              capture_output=True, text=True, timeout=2 * LONGEST, check=False)
        self.assertLess(time.monotonic() - started, LONGEST)
        self.assertIn(done.returncode, (1, 2), done.stderr)
        if done.returncode == 2:
            return done.stderr
        grade = json.loads(out.read_text(encoding="utf-8"))
        self.assertEqual(grade["points"], 0)
        return json.dumps(grade["tests"])

    def test_an_endless_loop_ends_at_a_limit(self):
        report = self.check(kernel(".reg .u32 %r<2>;\nmov.u32 %r1, 0;\nagain: add.u32 %r1, %r1, 1;\nbra.uni again;"))
        self.assertRegex(report, "LIMIT|RUNAWAY")

    def test_a_wait_for_ever_is_a_deadlock(self):
        report = self.check(kernel(".reg .u32 %r<2>; .reg .pred %p<2>;\nmov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n"
                                   "@%p1 bar.sync 1, 64;\nret;"))
        self.assertRegex(report, "DEADLOCK|BARRIER|DIVERGED|not written|nothing is written")

    def test_4_gb_of_variables_are_not_allocated(self):
        report = self.check(kernel("ret;", ".global .align 4 .b8 huge[4000000000];\n"))
        self.assertIn("the kernel cannot be launched", report)

    def test_shared_memory_past_the_limit_is_not_launched(self):
        report = self.check(kernel(".shared .align 4 .b8 tile[100000000];\n.reg .u32 %r<2>;\nmov.u32 %r1, tile;\n"
                                   "st.shared.u32 [%r1], %r1;\nret;"))
        self.assertIn("the kernel cannot be launched", report)

    def test_text_that_is_no_ptx_is_not_loaded(self):
        self.assertIn("the kernel cannot be launched", self.check("\x01\x7f not PTX {{{{" * 100))

    def test_nested_text_is_not_loaded(self):
        self.assertIn("the kernel cannot be launched", self.check(HEAD + ENTRY + "{" * 100000))

    def test_a_kernel_of_another_name_or_with_other_parameters_is_not_launched(self):
        self.assertIn("the kernel cannot be launched", self.check(kernel("ret;").replace("gather", "other")))
        self.assertIn("the kernel cannot be launched", self.check(HEAD + ".visible .entry gather(.param .u64 a)\n{ ret; }\n"))

    def test_ptx_past_the_size_of_a_submission_is_rejected(self):
        self.assertIn("more than 262144", self.check(kernel("// " + "x" * 300000 + "\nret;")))

    def test_writes_to_any_address_reach_only_the_virtual_gpu(self):
        report = self.check(kernel(".reg .u64 %rd<2>; .reg .u32 %r<2>;\nmov.u64 %rd1, 4096;\nmov.u32 %r1, 1;\n"
                                   "st.global.u32 [%rd1], %r1;\nret;"))
        self.assertIn("OUT_OF_BOUNDS", report)

    def test_the_compiler_cannot_include_files_of_the_machine(self):
        report = self.check('#include "/etc/shadow"\n#include "/etc/passwd"\n', "gather.cu")
        self.assertNotIn("root:", report)
        self.assertIn("does not compile", report)

    def test_a_bomb_for_the_compiler_ends_at_its_limit(self):
        report = self.check("template <int N> struct T { typename T<N + 1>::type x; };\nT<0> t;\n", "gather.cu")
        self.assertIn("does not compile", report)


if __name__ == "__main__":
    command_line.run_tests()
