#!/usr/bin/python3
"""kvscope ptx from outside: kernels of nvcc run on arrays of NumPy, files refused in words, a session of the debugger.

    ptx_commands_test.py --kvscope PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import SOURCE, fine, kvscope  # noqa: E402

KERNELS = os.path.join(SOURCE, "tests", "core", "ptx", "kernels", "cuda")
ELEMENTWISE = os.path.join(KERNELS, "elementwise.ptx")


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def save(self, name, array):
        np.save(self.path(name), array)
        return self.path(name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        return self.path(name)


class Run(Folder):
    def scale(self, *more, n=290, threads=100):
        x = self.save("x.npy", np.linspace(-3, 7, 300, dtype=np.float32))
        return kvscope("ptx", "run", ELEMENTWISE, "--entry", "scale", "--grid", "3", "--block", threads, "--arg",
                       "f32[300]", "--arg", x, "--arg", "2.5", "--arg", n, *more)

    def test_a_kernel_gives_what_numpy_gives(self):
        done = self.scale("--save", f"0={self.path('y.npy')}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        y, x = np.load(self.path("y.npy")), np.load(self.path("x.npy"))
        np.testing.assert_array_equal(y[:290], np.float32(2.5) * x[:290])
        # Nobody wrote the rest: a new array is ff in every byte.
        self.assertEqual(y[290:].tobytes(), b"\xff" * 40)
        self.assertIn("verdict     clean\n", done.stdout)

    def test_every_schedule_gives_the_same_bytes(self):
        answers = set()
        for policy in ("late", "early", "seed:1", "seed:99"):
            done = self.scale("--policy", policy)
            self.assertEqual(done.returncode, 0, done.stderr)
            answers.add(done.stdout)
        self.assertEqual(len(answers), 1)

    def test_the_same_input_writes_the_same_results_file(self):
        texts = []
        for _ in range(2):
            self.assertEqual(self.scale("--json", self.path("r.json")).returncode, 0)
            with open(self.path("r.json"), encoding="utf-8") as file:
                texts.append(file.read())
        self.assertEqual(texts[0], texts[1])
        results = json.loads(texts[0])
        self.assertTrue(results["finished"])
        self.assertEqual(results["reports"], [])
        # 290 floats read and written in warps of 100-thread CTAs: by brute force over 32-byte sectors.
        sectors = 0
        for cta in range(3):
            for warp in range(4):
                lanes = [cta * 100 + t for t in range(warp * 32, min(100, warp * 32 + 32)) if cta * 100 + t < 290]
                sectors += 2 * len({4 * i // 32 for i in lanes})
        self.assertEqual(results["counters"]["sectors"], sectors)

    def test_a_write_past_the_end_is_named_and_is_a_failure(self):
        done = self.scale(n=301, threads=128)
        self.assertEqual(done.returncode, 1)
        self.assertIn("OUT_OF_BOUNDS", done.stdout)
        self.assertIn("elementwise.cu:9", done.stdout)
        self.assertIn("verdict     not clean", done.stdout)

    def test_an_endless_kernel_stops_at_its_limit(self):
        ptx = self.write("loop.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n"
                         "L: bra L;\n}\n")
        done = kvscope("ptx", "run", ptx, "--max-instructions", "5000", timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("RUNAWAY", done.stdout)

    def test_a_step_shows_who_stands_where(self):
        done = self.scale("--step", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("after 3 warp instructions\ncta (0,0,0)\n"), done.stdout)
        self.assertEqual(done.stdout.count("warp "), 5)  # four warps and the head line


class Refused(Folder):
    def refusal(self, *arguments):
        done = kvscope("ptx", *arguments)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_a_file_that_is_none(self):
        self.assertIn("kvscope: ", self.refusal("run", self.path("none.ptx")))

    def test_every_error_of_a_text_with_its_place(self):
        ptx = self.write("bad.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n"
                         ".reg .b32 %r<2>;\nadd.s32 %r9, %r1, 1;\nbra NOWHERE;\nret;\n}\n")
        text = self.refusal("run", ptx)
        self.assertIn("6:9", text)
        self.assertIn("unknown register '%r9'", text)
        self.assertIn("7:5", text)
        self.assertIn("unknown label 'NOWHERE'", text)

    def test_a_kernel_that_is_not_there(self):
        self.assertIn("--entry: there is no kernel 'scael': the file has scale, alu_rounds",
                      self.refusal("run", ELEMENTWISE, "--entry", "scael"))
        self.assertIn("--entry: say which kernel: the file has scale, alu_rounds", self.refusal("run", ELEMENTWISE))

    def test_every_argument_that_is_wrong(self):
        text = self.refusal("run", ELEMENTWISE, "--entry", "scale", "--arg", "f33[3]", "--arg", self.path("no.npy"),
                            "--arg", "2.5", "--arg", "x")
        self.assertIn("--arg 0: ", text)
        self.assertIn("--arg 1: ", text)
        self.assertIn("--arg 3: ", text)
        self.assertNotIn("--arg 2: ", text)

    def test_a_number_of_arguments_that_is_not_the_kernels(self):
        self.assertIn("1 given, kernel scale takes 4: .u64 scale_param_0, .u64 scale_param_1, .f32 scale_param_2, "
                      ".u32 scale_param_3", self.refusal("run", ELEMENTWISE, "--entry", "scale", "--arg", "1"))

    def test_a_block_that_no_gpu_has(self):
        text = self.refusal("run", ELEMENTWISE, "--entry", "alu_rounds", "--block", "2000", "--arg", "f32[1]", "--arg",
                            "f32[1]", "--arg", "1")
        self.assertIn("2000", text)
        self.assertIn("1024", text)

    def test_a_policy_and_a_check_that_are_none(self):
        self.assertIn("'soon' is none of late, early, seed:N",
                      self.refusal("run", ELEMENTWISE, "--entry", "scale", "--policy", "soon"))
        self.assertIn("--check", self.refusal("run", ELEMENTWISE, "--entry", "scale", "--check", "luck"))


class Survey(Folder):
    def test_counts_what_stands_in_the_text(self):
        survey = json.loads(fine("ptx", "survey", ELEMENTWISE, "--json"))
        with open(ELEMENTWISE, encoding="utf-8") as file:
            text = file.read()
        words = {word["word"]: word["count"] for word in survey["words"]}
        for word in ("ld.global.nc.f32", "fma.rn.f32", "bar.sync"):
            self.assertEqual(words.get(word, 0), text.count(word + " "), word)
        self.assertEqual(survey["statements"], sum(words.values()))
        self.assertEqual([k["name"] for k in survey["kernels"]], ["scale", "alu_rounds"])

    def test_names_what_cannot_run_and_the_rest_still_runs(self):
        ptx = self.write("tex.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u32 n) {\n"
                         ".reg .pred %p;\n.reg .b32 %r<3>;\nld.param.u32 %r1, [n];\nsetp.eq.u32 %p, %r1, 0;\n"
                         "@%p ret;\nfoo.bar %r1, %r2;\nret;\n}\n")
        out = fine("ptx", "survey", ptx)
        self.assertIn(":10:1 'foo.bar' in k: unknown opcode 'foo'", out)
        self.assertEqual(kvscope("ptx", "run", ptx, "--arg", "0").returncode, 0)
        reached = kvscope("ptx", "run", ptx, "--arg", "1")
        self.assertEqual(reached.returncode, 1)
        self.assertIn("UNSUPPORTED", reached.stdout)
        strict = kvscope("ptx", "run", ptx, "--arg", "0", "--strict")
        self.assertEqual(strict.returncode, 2)
        self.assertIn("10:1: unknown opcode 'foo'", strict.stderr)

    def test_a_file_taken_apart_and_read_again_runs_the_same(self):
        again = self.write("again.ptx", fine("ptx", "disasm", ELEMENTWISE))
        runs = []
        for ptx in (ELEMENTWISE, again):
            x = self.save("x.npy", np.arange(128, dtype=np.float32))
            fine("ptx", "run", ptx, "--entry", "alu_rounds", "--block", "128", "--arg", "f32[128]", "--arg", x, "--arg",
                 "10", "--save", f"0={self.path('y.npy')}")
            runs.append(np.load(self.path("y.npy")).tobytes())
        self.assertEqual(runs[0], runs[1])


class Debug(Folder):
    def session(self, *commands, code=0):
        x = self.save("x.npy", np.arange(300, dtype=np.float32))
        done = subprocess.run([program.KVSCOPE, "ptx", "debug", ELEMENTWISE, "--entry", "scale", "--block", "40", "--arg",
                               "f32[300]", "--arg", x, "--arg", "2.5", "--arg", "30"],
                              input="\n".join(commands) + "\n", capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return done.stdout

    def test_there_and_back_is_the_same_place(self):
        out = self.session("step 7", "where", "step 9", "back 9", "where", "goto 7", "where")
        shown = [part for part in out.split("step 7 ")[1:]]
        places = [part[part.index("cta (0,0,0)"):] for part in shown if "cta (0,0,0)" in part]
        self.assertEqual(len(places), 3)
        self.assertEqual(places[0].split("step")[0], places[1].split("step")[0])
        self.assertEqual(places[0].split("step")[0], places[2])

    def test_a_breakpoint_a_register_and_bytes(self):
        out = self.session("break elementwise.cu:9", "run", "print %f1", "x global 0x200000000 8", "run", "quit")
        self.assertIn("breakpoint 1 at elementwise.cu:9", out)
        self.assertIn("%f1  .f32\n  all lanes         0x40200000  2.5\n", out)
        self.assertIn("0x200000000  ffffffff ffffffff\n", out)

    def test_a_wrong_command_says_so_and_the_session_goes_on(self):
        out = self.session("dance", "print %r77", "break nowhere.cu:1", "step", code=2)
        self.assertIn("there is no command 'dance': help lists them\n", out)
        self.assertIn("no register '%r77'", out)
        self.assertIn("no instruction is of nowhere.cu:1: was the file compiled with -lineinfo?\n", out)
        self.assertTrue(out.splitlines()[-2].startswith("step 1 "), out)


if __name__ == "__main__":
    program.main()
