#!/usr/bin/env python3
"""Hostile submissions in Triton: none changes a grade, stops the grader, or leaves a process or a file behind.

    triton_security_test.py --kvscope PROGRAM

docs/labs/staff/SECURITY.md is the threat model. A submission in Triton is a Python program, which runs in the sandbox when it is
compiled. Each attack is a gather.py of lab 09: the solution with `code` in front. The compiler is the stand-in of
triton_standin.py, in which nothing is executed that Triton would execute otherwise, so the attacks need no Triton. An attack that
changes nothing keeps the solution's points: this shows that the code in front ran to its end.
"""
import json
import os
import pathlib
import tempfile
import unittest

import attacks
import triton_standin
from attacks import COURSE

SOLUTION = (COURSE / "staff" / "09_gather" / "triton" / "solution" / "gather.py").read_text(encoding="utf-8")
PTX = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry gather(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d,
                       .param .u32 e, .param .u32 f, .param .u32 g, .param .u64 h)
{ ret; }
"""
SOON = ("--max-compile-time", "5")  # [s] of CPU time: the default is 20
FACTS = {"name": "gather", "num_warps": 4, "num_ctas": 1, "shared": 0, "scratch": 0}
# Writes what triton_compile.py would write, and ends the process before it can.
FORGE = "import os, sys\nopen(sys.argv[4], 'w').write({!r})\nos._exit({})\n"


def forged(text, code=0):
    return FORGE.format(text, code)


class TritonSecurityTest(attacks.Attacks, unittest.TestCase):
    LAB, FILE, SOLUTION, MARK = "9", "gather.py", SOLUTION, "kvscope_triton"

    @classmethod
    def setUpClass(cls):
        shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(shared.cleanup)
        cls.OPTIONS = ("--python", triton_standin.standin_python(pathlib.Path(shared.name) / "python"))

    def harmless(self, code):
        """The code fails at its attack, ends, and the solution behind it is graded as ever. The stand-in knows files by their bytes:
        the attack gives it those of the solution."""
        self.assertEqual(self.points(self.in_front(code)), 100, self.report)

    @staticmethod
    def in_front(code):
        return (f"SOLUTION = {SOLUTION!r}\n{code}\nimport inspect, sys\nopen('/tmp/gather.py', 'w').write(SOLUTION)\n"
                "import importlib.util\nspec = importlib.util.spec_from_file_location('solution', '/tmp/gather.py')\n"
                "module = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(module)\ngather = module.gather\n")

    def zero(self, text, wanted):
        self.assertEqual(self.points(text), 0, self.report)
        self.assertRegex(self.report, wanted)

    # What the code reads and writes.

    def test_expected_values_solutions_and_files_of_the_grader_cannot_be_read(self):
        paths = [COURSE / "09_gather" / "lab.json", COURSE / "staff" / "09_gather" / "solution" / "gather.cu",
                 self.folder / "secret", self.folder / "grades", pathlib.Path(attacks.KVSCOPE), "/etc/passwd", "/etc/shadow",
                 "/proc/1/environ", "/proc/self/maps", pathlib.Path.home() / ".bashrc", self.folder / "honest"]
        self.harmless("import os\nfor path in " + repr([str(path) for path in paths]) + ":\n"
                      "    if os.path.exists(path):\n        raise SystemExit('found ' + path)\n")

    def test_no_case_of_the_grading_is_in_the_process(self):
        """The command and the environment have the kernel's parameters, and no number of a case."""
        text = "import os, sys\nraise ValueError(repr((sys.argv[1:], sorted(os.environ))))\n"
        self.zero(text, r"ValueError: \(\['/lab/packages/triton', 'gather.py', '\{\\?\"?")
        self.assertNotRegex(self.report, r"seed|secret|expected|attack|honest")

    def test_other_packages_of_the_python_cannot_be_imported(self):
        self.zero("import pip\n", "gather.py:1: No module named 'pip'")

    def test_writing_outside_fails(self):
        targets = [self.folder / "written", "/usr/bin/written", "/lab/written", "/lab/tool.py", "/lab/src/written",
                   "/lab/packages/triton/written", pathlib.Path(os.__file__).parent / "written", "/written", "/dev/shm/written"]
        self.harmless("for path in " + repr([str(path) for path in targets]) + ":\n    try:\n        open(path, 'w').write('x')\n"
                      "    except OSError:\n        continue\n    if path != '/dev/shm/written':\n        raise SystemExit(path)\n")
        self.assertFalse((self.folder / "written").exists())
        self.assertFalse((pathlib.Path(os.__file__).parent / "written").exists())

    def test_there_is_no_network(self):
        self.assert_not_reached(lambda port: self.harmless(
            f"import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}))\n"
            "    raise SystemExit('connected')\nexcept OSError:\n    pass\n"))

    # Time, memory, processes, output.

    def test_processes_cannot_be_started(self):
        self.harmless("import os, subprocess\nfor start in (os.fork, os.forkpty,\n"
                      "              lambda: subprocess.run(['/usr/bin/true']), lambda: os.posix_spawn('/usr/bin/true', ['x'], {})):\n"
                      "    try:\n        start()\n        raise SystemExit('started')\n    except (OSError, RuntimeError):\n        pass\n")

    def test_threads_are_threads_of_the_process_and_share_its_limits(self):
        """Triton 3.4 needs some. They end with the process, at its limits of memory and time."""
        self.harmless("import threading\nthread = threading.Thread(target=print)\nthread.start()\nthread.join()\n")
        self.OPTIONS += SOON
        bomb = self.submit("import threading\ndef spin():\n    while True:\n        pass\ndef more():\n    while True:\n"
                           "        threading.Thread(target=spin, daemon=True).start()\nmore()\n", "threads")
        self.assertEqual(self.grade(bomb)[0]["points"], 0)

    def test_a_fork_bomb_leaves_no_process(self):
        self.harmless(f"import os\nopen('/tmp/{self.MARK}', 'w').close()\ntry:\n    open('/proc/self/comm', 'w').write('{self.MARK}')\n"
                      "except OSError:\n    pass\ntry:\n    while True:\n        os.fork()\nexcept OSError:\n    pass\n")
        self.assert_no_process()

    def test_an_endless_loop_ends_at_the_time_limit(self):
        self.OPTIONS += SOON
        self.zero("while True:\n    pass\n", "of CPU time|did not end within")  # the wall clock, on a busy machine

    def test_sleep_ends_at_the_time_limit(self):
        self.zero("import time\ntime.sleep(1000000)\n", "did not end within")

    def test_100_gb_are_not_allocated(self):
        self.zero("big = bytearray(100_000_000_000)\n", "gather.py:1: MemoryError")

    def test_filling_the_work_folder_ends_at_its_size(self):
        self.zero("file = open('/tmp/x', 'wb')\nwhile True:\n    file.write(bytes(1 << 20))\n",
                  "wrote a file of more than|File too large|No space left")

    def test_a_product_without_end_is_cut(self):
        self.zero("import sys\nfile = open(sys.argv[4], 'wb')\nwhile True:\n    file.write(bytes(1 << 20))\n",
                  "wrote a file of more than|File too large|No space left")

    def test_endless_output_ends_at_its_limit(self):
        self.zero("while True:\n    print('x' * 65536)\n", "wrote more than")

    def test_control_characters_are_escaped(self):
        self.zero("raise ValueError('\\033]0;title\\007\\033[31m')\n", "ValueError")
        self.assertNotIn("\x1b", self.printed)

    def test_deep_recursion_and_a_crash_are_faults_of_the_submission(self):
        self.zero("def f(n):\n    return f(n + 1)\nf(0)\n", "gather.py does not compile.*RecursionError")
        self.assertEqual(self.grade(self.submit("import os\nos.kill(os.getpid(), 11)\n", "crash"))[0]["points"], 0)
        self.assertIn("signal 11", self.printed)

    def test_killing_the_parent_does_not_reach_the_grader(self):
        self.zero("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos.kill(-1, signal.SIGKILL)\nos.kill(0, signal.SIGSTOP)\n"
                  "raise SystemExit('alive')\n", "gather.py does not compile")

    # Results, PTX and facts that the submission writes itself.

    def test_printed_results_are_no_results(self):
        self.zero("import os\nprint('PASS  rows  35 of 35\\n{\"points\": 100}', flush=True)\nos._exit(0)\n", "does not compile")

    def test_an_exit_before_the_kernel_is_no_kernel(self):
        self.zero("raise SystemExit(0)\n", "gather.py:1: SystemExit: 0")

    def test_a_symbolic_link_in_place_of_the_product_is_no_product(self):
        self.zero("import os, sys\nos.symlink('/etc/passwd', sys.argv[4])\nos._exit(0)\n", "does not compile")
        self.assertNotIn("root:", self.report)

    def test_forged_ptx_is_ptx_of_the_student(self):
        """It is graded as a submitted gather.ptx is: the virtual GPU runs it, and it writes nothing."""
        self.zero(forged(json.dumps(FACTS) + "\n" + PTX), "nothing is written to out")
        endless = PTX.replace("{ ret; }", "{ .reg .u32 %r<2>;\nmov.u32 %r1, 0;\nagain: add.u32 %r1, %r1, 1;\nbra.uni again; }")
        grade, = self.grade(self.submit(forged(json.dumps(FACTS) + "\n" + endless), "endless"))
        self.assertEqual(grade["points"], 0)
        self.assertRegex(json.dumps(grade["tests"]), "LIMIT|RUNAWAY")

    def test_text_that_is_no_ptx_is_not_loaded(self):
        self.zero(forged(json.dumps(FACTS) + "\n\x01 no PTX {{{{ "), "the kernel cannot be launched")

    def test_huge_ptx_is_rejected(self):
        self.zero("import os, sys, json\nopen(sys.argv[4], 'w').write(" + repr(json.dumps(FACTS) + "\n") +
                  " + '// x\\n' * 3_000_000)\nos._exit(0)\n", r"15000000 bytes of PTX, more than 1048576")

    def test_forged_facts_are_rejected(self):
        for number, (facts, wanted) in enumerate((
                ({**FACTS, "num_warps": 8}, "compiled for 8 warps, and the launch has 4"),
                ({**FACTS, "num_warps": 1 << 40}, "compiled for 1099511627776 warps"),
                ({**FACTS, "num_warps": -4}, "has no number 'num_warps'"),
                ({**FACTS, "num_warps": "4"}, "has no number 'num_warps'"),
                ({**FACTS, "num_ctas": 16}, "clusters of 16 CTAs"),
                ({**FACTS, "shared": 1 << 30}, "needs 1073741824 bytes of shared memory, more than 232448"),
                ({**FACTS, "shared": 1e300}, "has no number 'shared'"),
                ({**FACTS, "scratch": 1 << 50}, "bytes of global scratch memory"),
                ({**FACTS, "name": "other"}, "is not named 'gather'"),
                ({**FACTS, "name": ["gather"]}, "has no name"),
                ({}, "has no name"), ([], "has no name"), (None, "has no name"))):
            with self.subTest(facts=facts):
                grade, = self.grade(self.submit(forged(json.dumps(facts) + "\n" + PTX), f"facts{number}"))
                self.assertEqual(grade["points"], 0)
                self.assertIn(wanted, json.dumps(grade["tests"]))

    def test_a_first_line_that_is_no_json_is_rejected(self):
        for number, line in enumerate(("", "{", "[" * 900, "{" * 100_000, "\0" * 100, json.dumps(FACTS) + " " * 5000)):
            with self.subTest(line=line[:10]):
                grade, = self.grade(self.submit(forged(line + "\n" + PTX), f"line{number}"))
                self.assertEqual(grade["points"], 0)
                self.assertIn("does not begin with a line of its facts", json.dumps(grade["tests"]))

    def test_replacing_the_compiler_is_only_another_way_to_write_ptx(self):
        """Every module in the process is the submission's to change, and what leaves is checked by the grader."""
        self.zero("import triton, types\ntriton.compile = lambda *a, **k: types.SimpleNamespace(metadata=types.SimpleNamespace(\n"
                  "    name='gather', num_warps=4, num_ctas=1, shared=1 << 40, global_scratch_size=0), asm={'ptx': 'x'})\n" + SOLUTION,
                  "bytes of shared memory, more than 232448")

    def test_a_file_that_is_no_text_of_python_is_a_fault(self):
        target = self.folder / "bytes"
        target.mkdir()
        (target / "gather.py").write_bytes(bytes(range(256)))
        grade, = self.grade(target)
        self.assertEqual(grade["points"], 0)
        self.assertIn("does not compile", json.dumps(grade["tests"]))


if __name__ == "__main__":
    attacks.main()
