#!/usr/bin/python3
"""The checks of kvscope ptx run: each one reports an error that the others do not report, and --contract changes the last bit.

    ptx_checks_test.py --kvscope PROGRAM
"""
import ctypes
import os
import struct
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import kvscope  # noqa: E402

HEAD = (".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
        ".reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .f32 %f<8>; .reg .pred %p<3>;\n"
        ".shared .align 16 .b8 s[512]; .local .align 4 .b8 depot[16];\n"
        "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r1, 0;\n")

# A wrong instruction sequence per check, and the first words of its report.
MISTAKES = {
    "global_race": ("@%p1 st.global.u32 [%rd1], %r2;", "RACE write-after-write  global"),
    "race": ("@%p1 st.shared.u32 [s], %r1;\nld.shared.u32 %r3, [s];", "RACE read-after-write  shared"),
    "init": ("ld.shared.u32 %r3, [s];\n@%p1 st.global.u32 [%rd1], %r3;", "UNINITIALIZED  shared"),
    "global_init": ("ld.global.u32 %r3, [%rd1+4];\n@%p1 st.global.u32 [%rd1], %r3;", "UNINITIALIZED  global"),
    "uninit_regs": ("add.u32 %r3, %r4, 1;\n@%p1 st.global.u32 [%rd1], %r3;", "UNINITIALIZED  kernel k"),
    "uninit_local": ("ld.local.u32 %r3, [depot];\n@%p1 st.global.u32 [%rd1], %r3;", "UNINITIALIZED  local"),
    "nc": ("@%p1 st.global.u32 [%rd1], 1;\n@%p1 ld.global.nc.u32 %r3, [%rd1];", "NC_MODIFIED  global"),
    "same_value_error": ("mov.u32 %r3, 1;\nst.shared.u32 [s], %r3;", "RACE write-after-write  shared"),
}
IN_ALL = {"race", "init", "nc"}


class Checks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_body(self, body, *more):
        path = os.path.join(self.folder.name, "k.ptx")
        with open(path, "w", encoding="utf-8") as out:
            out.write(HEAD + body + "\nret;\n}\n")
        return kvscope("ptx", "run", path, "--grid", "2", "--block", "64", "--arg", "f32[64]", *more)

    def test_each_reports_its_mistake_and_nothing_without_it(self):
        for name, (body, title) in MISTAKES.items():
            with self.subTest(check=name):
                self.assertIn("\n" + title, "\n" + self.run_body(body, "--check", name).stdout)
                self.assertNotIn(title, self.run_body(body, "--check", "none").stdout)
                self.assertNotIn(title, self.run_body(body, "--check", "proxy").stdout)

    def test_all_is_what_is_right_for_every_kernel(self):
        for name, (body, title) in MISTAKES.items():
            with self.subTest(check=name):
                for command in ([], ["--check", "all"]):
                    self.assertEqual(title in self.run_body(body, *command).stdout, name in IN_ALL)
                self.assertIn(title, self.run_body(body, "--check", f"all,{name}").stdout)

    def test_lanes_that_meet_count_as_ordered_by_name_alone(self):
        body = ("shl.b32 %r3, %r1, 2;\nmov.u32 %r4, s;\nadd.u32 %r4, %r4, %r3;\nst.shared.u32 [%r4], %r1;\n"
                "shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;\nxor.b32 %r4, %r4, 4;\nld.shared.u32 %r5, [%r4];")
        self.assertEqual(self.run_body(body).returncode, 1)
        self.assertEqual(self.run_body(body, "--check", "all,collectives_order").returncode, 0)

    def test_an_unknown_check_is_rejected_with_the_list_of_checks(self):
        done = self.run_body("", "--check", "all,luck")
        self.assertEqual(done.returncode, 2)
        self.assertIn("luck", done.stderr)
        self.assertIn("global_race", done.stderr)

    def test_contract_rounds_a_product_and_its_sum_once(self):
        # (1 + 2^-12)^2 - 1 = 2^-11 + 2^-24: the last part is what the product's own rounding loses.
        body = ("mov.f32 %f1, 0f3F800800;\nmul.f32 %f2, %f1, %f1;\nadd.f32 %f3, %f2, 0fBF800000;\n"
                "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd2, %rd2, %rd1;\nst.global.f32 [%rd2], %f3;")
        saved = os.path.join(self.folder.name, "y.npy")
        got = {}
        for flag in ([], ["--contract"]):
            self.assertEqual(self.run_body(body, "--save", f"0={saved}", *flag).returncode, 0)
            with open(saved, "rb") as file:
                got[bool(flag)] = struct.unpack("<f", file.read()[-4:])[0]
        self.assertEqual(got, {False: 2.0**-11, True: ctypes.c_float(2.0**-11 + 2.0**-24).value})
        self.assertNotEqual(got[False], got[True])


if __name__ == "__main__":
    program.main()
