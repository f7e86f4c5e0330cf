#!/usr/bin/python3
"""The n-th allocation of each command fails, alone or with all later ones: the command ends with one line on standard
error and exit code 2, and leaves the old output; or the allocation was not needed, and nothing differs.

    FAULTS_INJECT=libfaults_inject.so faults_memory_test.py --kvscope PROGRAM

With KVSCOPE_FULL=1 each n is tried, else a sample of them. The allocations that register the options are the same for all commands: they
fail in `kvscope --version` alone.
"""
import collections
import os
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import faults_common as faults  # noqa: E402
import program  # noqa: E402

QUICK = 12
VERSION = faults.Command("version", "--version", [])
tally = collections.Counter()


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        faults.make_inputs(cls.kept.name)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()
        print(f"{tally['all']} allocations failed: {tally['failed']} ended with exit code 2, {tally['fine']} had no effect")

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.work = os.path.realpath(self.folder.name)
        shutil.copytree(self.kept.name, os.path.join(self.work, "in"))

    def tearDown(self):
        self.folder.cleanup()

    def attack(self, command):
        out, arguments = os.path.join(self.work, "out"), command.arguments(self.work)
        os.mkdir(out)
        count = faults.count_calls(arguments, self.work)["malloc"]
        # Less a twentieth, because a longer command line allocates at other places.
        first = 1 if command is VERSION else faults.count_calls(["--version"], self.work)["malloc"] * 19 // 20
        good = faults.inject(arguments, self.work)
        new = faults.contents(out)
        self.assertGreater(count, 100)
        for number in faults.sampled(count, QUICK, first):
            for later in ("", "+"):
                shutil.rmtree(out)
                os.mkdir(out)
                done = faults.inject(arguments, self.work, at=f"malloc:ENOMEM:{number}{later}")
                tally["all"] += 1
                with self.subTest(command=command.name, number=f"{number}{later}"):
                    left = faults.contents(out)
                    if done.returncode == good.returncode and not done.stderr:
                        tally["fine"] += 1
                        self.assertEqual(done.stdout, good.stdout)
                        self.assertEqual(left, new)
                        continue
                    tally["failed"] += 1
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                    self.assertTrue(done.stderr.startswith("kvscope: "), done.stderr)
                    self.assertRegex(done.stderr, "out of memory|Cannot allocate memory|Malloc failure")
                    # The outputs of one command line that are independent of each other may be there.
                    for name, content in left.items():
                        self.assertEqual(content, new.get(name), name)
                        self.assertNotEqual(command.name, "run")


def add_test(command):
    setattr(Memory, "test_" + command.name.replace(" ", "_"), lambda self: self.attack(command))


for each in (VERSION, *faults.COMMANDS):
    add_test(each)

if __name__ == "__main__":
    program.main()
