#!/usr/bin/python3
"""kvscope reduce with a kernel in NumPy: a wrong page, a crash, a loop without end; and golden --inputs-only, whose files
the reduced cases are.

    reduce_test.py --kvscope PROGRAM
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, gallery, kvscope, read_safetensors  # noqa: E402

KERNEL = """
    import sys
    import numpy as np

    t = np.load(sys.argv[1])
    batch, query_heads, _ = t["q"].shape
    page_size, heads = t["k_cache"].shape[1:3]
    o, lse = np.zeros(t["q"].shape), np.zeros((batch, query_heads))
    for b, keys in enumerate(t["cache_seqlens"]):
        token = np.arange(keys)
        page = token // page_size
        if "swap" in sys.argv and keys > 2 * page_size:
            page = np.where(page == 1, 2, np.where(page == 2, 1, page))
        if "crash" in sys.argv and keys > 6:
            raise IndexError("too many keys")
        if "abort" in sys.argv and keys > 6:
            import os
            os.abort()
        while "loop" in sys.argv and keys > 6:
            pass
        block = t["block_table"][b, page]
        for h in range(query_heads):
            place = block, token % page_size, h * heads // query_heads
            k, v = t["k_cache"][place], t["v_cache"][place]
            s = (k.astype(float) * t["q"][b, h]).sum(1) / np.sqrt(t["q"].shape[2])
            p = np.exp(s - s.max())
            o[b, h], lse[b, h] = (p[:, None] * v).sum(0) / p.sum(), s.max() + np.log(p.sum())
    if "silent" not in sys.argv:
        np.savez(sys.argv[2], o=o.astype(np.float32), lse=lse.astype(np.float32))
"""


def alive(process):
    """Whether a process runs; one that has ended but was not reaped does not."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Reduce(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        with open(cls.path("kernel.py"), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(KERNEL))
        rng = np.random.default_rng(1)
        some = lambda *shape: (rng.integers(-64, 64, shape) / 32).astype(np.float32)  # noqa: E731
        np.savez(cls.path("inputs.npz"), q=some(3, 4, 8), k_cache=some(9, 4, 2, 8), v_cache=some(9, 4, 2, 8),
                 block_table=np.array([[4, -1, -1], [5, 0, 2], [3, 7, -1]], np.int32),
                 cache_seqlens=np.array([3, 11, 6], np.int32))
        fine("golden", "--input", cls.path("inputs.npz"), "--layout", "nhd", "--out", cls.path("golden.npz"))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def command(self, *faults):
        return " ".join(["/usr/bin/python3", self.path("kernel.py"), "{inputs}", "{candidate}", *faults])

    def reduce(self, out, *faults, more=()):
        done = kvscope("reduce", self.path("golden.npz"), "--command", self.command(*faults), "--out", self.path(out),
                       "--json", *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_a_wrong_page_becomes_one_query_of_nine_keys(self):
        report = self.reduce("wrong.npz", "swap")
        self.assertEqual(report["to"], "1 sequence, 1 query, 9 keys, 1 KV head, 1 query head, head size 1, 3 blocks")
        self.assertTrue(report["failure"].startswith("wrong output: o: bound: 1 of 1 elements"), report["failure"])
        # The file is all that a maintainer needs: inputs, conventions and the kernel's output.
        fine("golden", "--input", self.path("wrong.npz"), "--out", self.path("g.npz"))
        verified = kvscope("verify", self.path("g.npz"), self.path("wrong.npz"))
        self.assertEqual(verified.returncode, 1)
        self.assertIn("diagnosis  pages 1 and 2 of sequence 0 are exchanged", verified.stdout)
        self.assertNotIn("was not compared", verified.stdout)
        with np.load(self.path("wrong.npz")) as arrays:
            self.assertEqual(json.loads(arrays["manifest.json"])["reduced"]["command"], self.command("swap"))

    def test_two_runs_write_the_same_bytes(self):
        self.reduce("a.npz", "swap")
        self.reduce("b.npz", "swap")
        with open(self.path("a.npz"), "rb") as a, open(self.path("b.npz"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_the_candidate_alone_is_cut_to_one_row(self):
        os.system(self.command("swap").format(inputs=self.path("inputs.npz"), candidate=self.path("candidate.npz")))
        printed = fine("reduce", self.path("golden.npz"), self.path("candidate.npz"), "--out", self.path("cut.npz"))
        self.assertIn("3 sequences -> 1, 3 queries -> 1, 20 keys -> 11, 2 KV heads -> 1, 4 query heads -> 1\n", printed)
        self.assertIn("pass --command", printed)

    def test_crashes_keep_their_kind(self):
        # Without an output there is nothing to compare: the shortest sequence that crashes has 7 keys.
        for faults, failure in (["crash"], "exit code 1: IndexError: too many keys"), (["abort"], "killed by signal 6"):
            report = self.reduce("crash.npz", *faults)
            self.assertIn("1 query, 7 keys", report["to"])
            self.assertTrue(report["failure"].startswith(failure), report["failure"])

    def test_a_signal_that_ends_the_shell_itself_is_the_same_failure(self):
        done = kvscope("reduce", self.path("golden.npz"), "--command", "exec " + self.command("abort"), "--out",
                       self.path("signal.npz"), "--max-runs", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\nfailure    killed by signal 6 \(Aborted\)\n")
        self.assertRegex(done.stdout, r"\ntried      2 runs of the command, of which \d did not fail in the same way; stopped "
                                      r"at --max-runs, a smaller case may exist\n")

    def test_a_temporary_folder_may_have_an_apostrophe(self):
        # The names of the files are words of a shell's command.
        temporary = self.path("it's; exit 3")
        os.makedirs(temporary)
        done = subprocess.run([program.KVSCOPE, "reduce", self.path("golden.npz"), "--command", self.command("swap"), "--out",
                               self.path("quoted.npz"), "--json"], env={**os.environ, "TMPDIR": temporary},
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(json.loads(done.stdout)["failure"].startswith("wrong output: o: bound: "), done.stdout)
        self.assertEqual(os.listdir(temporary), [])

    def test_a_loop_is_killed_at_the_time_limit_and_runs_are_bounded(self):
        report = self.reduce("loop.npz", "loop", more=("--time-limit", "3", "--max-runs", "3"))
        self.assertEqual((report["runs"], report["stopped"]), (3, True))
        self.assertEqual(report["failure"], "killed at the time limit of 3 s")
        self.assertIn("1 sequence", report["to"])

    def test_a_signal_ends_the_kernel_and_its_children_and_removes_the_folder(self):
        # The kernel's shell waits for a child that writes its number and would run for minutes.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with tempfile.TemporaryDirectory() as folder:
                started = os.path.join(folder, "started")
                child = "sh -c 'echo $$ > {0}.part; mv {0}.part {0}; sleep 300'".format(started)
                script = f"{child} & wait; true {{inputs}} {{candidate}}"
                running = subprocess.Popen(
                    [program.KVSCOPE, "reduce", self.path("golden.npz"), "--command", script, "--out",
                     os.path.join(folder, "out.npz")], env=os.environ | {"TMPDIR": folder}, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, preexec_fn=program.end_with_parent)
                self.wait_for(lambda: os.path.exists(started))
                with open(started, encoding="utf-8") as file:
                    grandchild = int(file.read())
                self.assertTrue(any(name.startswith("kvscope_reduce_") for name in os.listdir(folder)))
                running.send_signal(number)
                running.communicate(timeout=60)
                self.assertEqual(running.returncode, -number)
                self.wait_for(lambda: not alive(grandchild))
                self.assertEqual(os.listdir(folder), ["started"])

    def test_the_time_limit_of_the_program_does_so_too(self):
        for seconds in (3, 30):  # a busy machine may not start the kernel within the first
            with tempfile.TemporaryDirectory() as folder:
                started = os.path.join(folder, "started")
                child = "sh -c 'echo $$ > {0}.part; mv {0}.part {0}; sleep 300'".format(started)
                done = subprocess.run(
                    [program.KVSCOPE, "reduce", self.path("golden.npz"), "--command",
                     f"{child} & wait; true {{inputs}} {{candidate}}", "--out", os.path.join(folder, "out.npz"), "--timeout",
                     str(seconds)], env=os.environ | {"TMPDIR": folder}, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr),
                                 (2, f"kvscope: the time limit of {seconds} s is reached: raise it with --timeout\n"))
                if not os.path.exists(started):
                    continue
                with open(started, encoding="utf-8") as file:
                    grandchild = int(file.read())
                self.wait_for(lambda: not alive(grandchild))
                self.assertEqual(os.listdir(folder), ["started"])
                return
        self.fail("the kernel was not started")

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_a_kernel_that_writes_nothing_is_a_failure_of_its_own(self):
        report = self.reduce("silent.npz", "silent")
        self.assertEqual(report["failure"], "unusable output: the command did not write the file {candidate}")
        self.assertEqual(report["notes"], ["every run failed in this way, however small its inputs: check that the "
                                           "command works on this machine at all"])

    def test_a_kernel_may_write_an_array_file(self):
        output = self.path("array.npy")
        np.save(output, np.zeros((3, 4, 8), np.float32))
        kernel = ("import sys, numpy as np; t = np.load(sys.argv[1]); "
                  "np.save(sys.argv[2], np.zeros(t[\"q\"].shape, np.float32))")
        with open(self.path("zeros.py"), "w", encoding="utf-8") as file:
            file.write(kernel)
        report = json.loads(fine("reduce", self.path("golden.npz"), output, "--command",
                                 f"/usr/bin/python3 {self.path('zeros.py')} {{inputs}} {{candidate}}", "--out",
                                 self.path("from_array.npz"), "--json"))
        self.assertTrue(report["failure"].startswith("wrong output: o: bound: 1 of 1 elements"), report["failure"])

    def test_what_cannot_be_reduced_is_an_error(self):
        wrong, right, of_shape = map(self.path, ("wrong_output.npz", "right_output.npz", "of_shape.npz"))
        for out, fault in ((wrong, "swap"), (right, "")):
            os.system(self.command(fault).format(inputs=self.path("inputs.npz"), candidate=out))
        np.savez(of_shape, o=np.zeros((3, 4, 7), np.float32))
        for arguments, said in (
                # A command that cannot be started fails for every case in the same way.
                (["--command", "no_such_program {inputs} {candidate}"], "--command: cannot be run: exit code 127: "),
                (["--command", self.path("inputs.npz") + " {inputs} {candidate}"],
                 "--command: cannot be run: exit code 126: "),
                # The candidate states the failure.
                ([wrong, "--command", "exit 3; true {inputs} {candidate}"],
                 "--command: ends in another way than CANDIDATE, which is a wrong output: exit code 3"),
                ([right, "--command", self.command("swap")], right + ": passes: there is no failure to reduce"),
                ([right], right + ": passes: there is no failure to reduce"),
                ([of_shape, "--command", self.command("swap")], of_shape + ": cannot be compared: "),
                (["--command", self.command()], "passes: there is no failure to reduce"),
                (["--command", "true"], "needs the words {inputs} and {candidate}"),
                ([], "CANDIDATE: is required without --command"),
                (["--command", self.command("swap"), "--max-runs", "0"], "--max-runs: 0: give at least 1")):
            done = kvscope("reduce", self.path("golden.npz"), *arguments, "--out", self.path("no.npz"))
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(said, done.stderr)
        self.assertFalse(os.path.exists(self.path("no.npz")))


class InputsOnly(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = lambda name: os.path.join(folder.name, name)

    def test_the_golden_of_the_inputs_is_the_golden_of_the_scenario(self):
        for name in ("first_light", "quantized_e4m3", "mla_rope", "sliding_window"):
            golden, inputs, again = map(self.path, ("golden.safetensors", "inputs.safetensors", "again.safetensors"))
            fine("golden", gallery(name), "--out", golden)
            fine("golden", gallery(name), "--inputs-only", "--out", inputs)
            fine("golden", "--input", inputs, "--out", again)
            whole, given, computed = (read_safetensors(path)[0] for path in (golden, inputs, again))
            self.assertFalse({"o", "lse", "a1", "smax", "block_table"} & set(given), name)
            for tensor, content in computed.items():
                self.assertEqual(content, whole[tensor], f"{name}: {tensor}")

    def test_options_of_your_own_tensors_are_in_the_manifest(self):
        rng = np.random.default_rng(2)
        some = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
        np.savez(self.path("t.npz"), q=some(2, 4, 8), k_cache=some(3, 4, 2, 8), v_cache=some(3, 4, 2, 8),
                 block_table=np.array([[1, 0], [2, -1]], np.int32), cache_seqlens=np.array([6, 3], np.int32),
                 workspace=some(5))
        options = ["--mask", "sliding_window", "--window-left", "2", "--soft-cap", "20", "--scale", "0.25", "--lse-base",
                   "two", "--ignore", "workspace"]
        own = ["golden", "--input", self.path("t.npz"), "--layout", "nhd", *options]
        fine(*own, "--out", self.path("golden.npz"))
        bare = kvscope("golden", "--input", self.path("t.npz"), "--out", self.path("no.npz"))
        self.assertEqual(bare.returncode, 2)
        self.assertIn("--layout: is required, because the manifest of",
                      bare.stderr)
        printed = fine(*own, "--inputs-only", "--out", self.path("inputs.npz"))
        self.assertIn("next       kvscope golden --input", printed)
        fine("golden", "--input", self.path("inputs.npz"), "--out", self.path("again.npz"))
        with np.load(self.path("golden.npz")) as golden, np.load(self.path("again.npz")) as again, np.load(
                self.path("inputs.npz")) as inputs:
            self.assertNotIn("workspace", inputs.files)
            for name in ("o", "lse"):
                self.assertEqual(golden[name].tobytes(), again[name].tobytes())
        # An option given replaces the manifest's.
        changed = fine("golden", "--input", self.path("inputs.npz"), "--mask", "causal", "--out", self.path("c.npz"))
        self.assertIn("mask=causal", changed)
        self.assertIn("soft_cap=20", changed)

    def test_verify_and_diagnose_say_what_to_do(self):
        fine("golden", gallery("first_light"), "--inputs-only", "--out", self.path("inputs.npz"))
        fine("golden", gallery("first_light"), "--out", self.path("golden.npz"), "--candidate", self.path("mine.npz"))
        for command in "verify", "diagnose", "reduce":
            done = kvscope(command, self.path("inputs.npz"), self.path("mine.npz"))
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"holds inputs without expected values: compute them with `kvscope golden --input "
                          f"{self.path('inputs.npz')} --out {self.path('inputs_golden.npz')}`, then run `kvscope "
                          f"verify {self.path('inputs_golden.npz')} "
                          f"{self.path('mine.npz')}`", done.stderr)
        done = kvscope("golden", gallery("first_light"), "--inputs-only", "--candidate", self.path("c.npz"), "--out",
                       self.path("i.npz"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("--candidate: needs the golden output, which --inputs-only leaves out", done.stderr)


if __name__ == "__main__":
    program.main()
