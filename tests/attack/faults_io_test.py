#!/usr/bin/python3
"""Each call of the file system of each command fails once, with each error: the command ends with exit code 2, names the
file and the system's words, leaves the old output as it was, and leaves no temporary file.

    FAULTS_INJECT=libfaults_inject.so faults_io_test.py --kvscope PROGRAM
"""
import collections
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import faults_common as faults  # noqa: E402
import program  # noqa: E402

# The errors that each call may report (Linux manual pages), and the calls that are repeated or continued.
ERRORS = {"open": ["EIO", "EMFILE", "EACCES", "EROFS", "ENOSPC"], "read": ["EIO"], "write": ["ENOSPC", "EIO", "EDQUOT"],
          "fsync": ["EIO", "ENOSPC"], "close": ["EIO"], "rename": ["EIO", "ENOSPC", "EROFS", "EACCES"],
          "mkdir": ["ENOSPC", "EACCES", "EROFS"], "truncate": ["EIO"]}
HARMLESS = {"open": ["EINTR"], "read": ["EINTR", "SHORT"], "write": ["EINTR", "SHORT"], "fsync": ["EINTR", "EINVAL"],
            "close": ["EINTR"]}
SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGPIPE", "SIGXCPU", "SIGABRT"]
QUICK = 6  # faults per command, call and error without KVSCOPE_FULL=1
tally = collections.Counter()


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        faults.make_inputs(cls.kept.name)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()
        print(f"{tally['all']} faults injected: {tally['failed']} ended with exit code 2, {tally['fine']} had no effect; "
              f"{tally['signals']} signals")

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.work = os.path.realpath(self.folder.name)
        shutil.copytree(self.kept.name, os.path.join(self.work, "in"))

    def tearDown(self):
        self.folder.cleanup()

    def reset(self, command):
        """An old output of each name, of other bytes."""
        out = os.path.join(self.work, "out")
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        for name in command.outputs:
            if name == "run":
                os.mkdir(os.path.join(out, name))
                name = os.path.join(name, "report.txt")
            with open(os.path.join(out, name), "w", encoding="ascii") as file:
                file.write("old")
        return faults.contents(out)

    def check_failed(self, command, done, old, error):
        """Exit code 2, one line that names a file and the error, the old files."""
        tally["failed"] += 1
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(os.strerror(getattr(errno, error)), done.stderr)
        self.assertRegex(done.stderr, self.work + "/(in|out)/(" + "|".join([*command.inputs, *command.outputs]) + ")")
        self.assertNotRegex(done.stderr, faults.TEMPORARY)
        for refused in ("is not a trace", "is damaged", "terminate"):
            self.assertNotIn(refused, done.stderr)
        left = faults.contents(os.path.join(self.work, "out"))
        for name in left:
            self.assertNotRegex(name, faults.TEMPORARY)
        return left

    def attack(self, command):
        under, out = self.work, os.path.join(self.work, "out")
        arguments = command.arguments(self.work)
        self.reset(command)
        counts = faults.count_calls(arguments, under)
        new, printed = faults.contents(out), faults.inject(arguments, under).stdout
        for call, errors in ERRORS.items():
            for number in faults.sampled(counts[call], QUICK):
                for error in errors if faults.FULL else errors[:2]:
                    old = self.reset(command)
                    done = faults.inject(arguments, under, at=f"{call}:{error}:{number}")
                    tally["all"] += 1
                    with self.subTest(command=command.name, call=call, error=error, number=number):
                        left = faults.contents(out)
                        # A descriptor that was only read may be closed with an error. A folder that cannot be opened is
                        # not synced or locked, an old file is replaced without its access rights, and SQLite opens a
                        # file again: nothing is lost. Pages of a trace that cannot be read are read with SQL: a fault
                        # that stays must be reported.
                        if done.returncode == 0 and call in ("close", "open", "read"):
                            tally["fine"] += 1
                            self.assertEqual(left, new)
                            self.assertEqual(done.stdout, printed)
                            if call != "read":
                                continue
                            old = self.reset(command)
                            done = faults.inject(arguments, under, at=f"{call}:{error}:{number}+")
                            tally["all"] += 1
                        left = self.check_failed(command, done, old, error)
                        # The files of one command line that are independent of each other may be old or new. After
                        # the rename, an error of the sync of the folder is reported, and the file is there.
                        for name in set(old) | set(left):
                            self.assertIn(left.get(name), (old.get(name), new.get(name)), name)
                        if command.name == "run":
                            self.assertIn(left, (old, new))
        for call, errors in HARMLESS.items():
            for number in faults.sampled(counts[call], QUICK):
                for error in errors:
                    self.reset(command)
                    done = faults.inject(arguments, under, at=f"{call}:{error}:{number}")
                    tally["all"] += 1
                    tally["fine"] += 1
                    with self.subTest(command=command.name, call=call, error=error, number=number):
                        self.assertEqual(done.returncode, 0, done.stderr)
                        self.assertEqual(done.stdout, printed)
                        self.assertEqual(faults.contents(out), new)


    def test_signals(self):
        """A signal before each call: the program ends by it and leaves the old output or the new one."""
        for command in faults.COMMANDS:
            if not command.outputs:
                continue
            arguments, out = command.arguments(self.work), os.path.join(self.work, "out")
            self.reset(command)
            counts = faults.count_calls(arguments, out)
            new = faults.contents(out)
            for call in ("open", "write", "fsync", "close", "rename"):
                for number in faults.sampled(counts[call], 3):
                    for name in SIGNALS if faults.FULL else ("SIGTERM", "SIGXCPU"):
                        old = self.reset(command)
                        done = faults.inject(arguments, out, at=f"{call}:{name}:{number}")
                        tally["signals"] += 1
                        with self.subTest(command=command.name, call=call, signal=name, number=number):
                            self.assertEqual(done.returncode, -getattr(signal, name))
                            left = faults.contents(out)
                            for path in set(old) | set(left):
                                self.assertNotRegex(path, faults.TEMPORARY)
                                self.assertIn(left.get(path), (old.get(path), new.get(path)), path)
                            if command.name == "run":
                                self.assertIn(left, (old, new))

    def test_a_lab_is_written_whole_or_not_at_all(self):
        """A signal or an error before a call of lab start, in a new folder and in one with files, and of lab pack. A part of
        a course looks like a whole one; a part of a lab's files keeps a second start from writing the others."""
        course, out = os.path.join(self.work, "in", "labs"), os.path.join(self.work, "out")
        for lab in ("01_address", "02_rows"):
            shutil.copytree(os.path.join(program.SOURCE, "docs", "labs", lab), os.path.join(course, lab))

        def reset():
            shutil.rmtree(out, ignore_errors=True)
            os.makedirs(os.path.join(out, "mine"))
            with open(os.path.join(out, "mine", "notes"), "w", encoding="ascii") as file:
                file.write("mine")
            return faults.contents(out)

        for words in (["start", "1", f"{out}/new", "--student", "ada"], ["start", "1", f"{out}/mine", "--student", "ada"],
                      ["pack", f"{out}/course"], ["pack", f"{out}/folder/course/", "--students"]):
            arguments = ["lab", *words, "--course", course]
            old = reset()
            counts = faults.count_calls(arguments, out)
            new = faults.contents(out)
            self.assertGreaterEqual(len(new), len(old) + 3)
            for call in ("open", "write", "fsync", "close", "rename", "mkdir"):
                for number in faults.sampled(counts[call], QUICK):
                    for ending in ("SIGTERM", "SIGXCPU", "EIO"):
                        if ending == "EIO" and call not in ("write", "rename", "mkdir"):
                            continue
                        self.assertEqual(reset(), old)
                        done = faults.inject(arguments, out, at=f"{call}:{ending}:{number}")
                        tally["signals" if ending != "EIO" else "failed"] += 1
                        with self.subTest(words=words[:2], call=call, ending=ending, number=number):
                            self.assertEqual(done.returncode, 2 if ending == "EIO" else -getattr(signal, ending), done.stderr)
                            left = faults.contents(out)
                            left.pop("folder", None)  # the folder in which a course was to be made
                            self.assertIn(left, (old, {name: data for name, data in new.items() if name != "folder"}))

    def test_a_limit_of_the_file_size(self):
        command = next(each for each in faults.COMMANDS if each.name == "golden npz")
        old = self.reset(command)
        done = subprocess.run([program.KVSCOPE, *command.arguments(self.work)], capture_output=True, text=True, check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
        self.assertEqual(self.check_failed(command, done, old, "EFBIG"), old)


def add_test(command):
    setattr(Faults, "test_" + command.name.replace(" ", "_"), lambda self: self.attack(command))


for each in faults.COMMANDS:
    add_test(each)

if __name__ == "__main__":
    program.main()
