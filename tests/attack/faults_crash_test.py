#!/usr/bin/python3
"""Power failures while a command writes: after each of its calls, with each choice of the changes that were not synced,
the output is the old one or the new one, whole; after the command has ended it is the new one.

    FAULTS_INJECT=libfaults_inject.so faults_crash_test.py --kvscope PROGRAM
"""
import os
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import faults_common as faults  # noqa: E402
import program  # noqa: E402
from faults_replay import Disk  # noqa: E402


def kept(state):
    """Without temporary files and folders, which a power failure may leave."""
    return {path: content for path, content in state.items() if not faults.TEMPORARY.search(path)}


def mixed(state, old, new):
    """The names whose content is neither the old nor the new one, and whether all of them are of one side."""
    names = set(old) | set(new) | set(state)
    damaged = [name for name in names if state.get(name, "missing") not in (old.get(name, "missing"),
                                                                           new.get(name, "missing"))]
    return damaged, state in (old, new)


class Crashes(unittest.TestCase):
    states = 0

    @classmethod
    def tearDownClass(cls):
        print(f"{Crashes.states} states after a power failure examined")

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.work = os.path.realpath(self.folder.name)
        os.mkdir(os.path.join(self.work, "in"))
        faults.make_inputs(os.path.join(self.work, "in"))
        self.out = os.path.join(self.work, "out")
        os.mkdir(self.out)

    def tearDown(self):
        self.folder.cleanup()

    def put(self, name, text):
        path = os.path.join(self.out, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def crash(self, name, is_set=True):
        command = next(each for each in faults.COMMANDS if each.name == name)
        old = faults.contents(self.out)
        log = os.path.join(self.work, "log.txt")
        done = faults.inject(command.arguments(self.work), self.out, log=log)
        self.assertEqual(done.returncode, 0, done.stderr)
        new = faults.contents(self.out)
        self.assertNotEqual(old, new)
        with open(log, encoding="utf-8") as file:
            disk = Disk(file.read(), self.out, old)
        for state in disk.crash_states():
            Crashes.states += 1
            damaged, is_one = mixed(kept(state), old, new)
            self.assertEqual(damaged, [])
            if is_set:
                self.assertTrue(is_one, sorted(kept(state)))
        for state in disk.states_now():
            self.assertEqual(kept(state), new, "a command that has ended has stored its output")

    def test_new_files(self):
        for name in ("golden safetensors", "golden npz", "stage", "verify", "merge"):
            with self.subTest(command=name):
                self.crash(name)

    def test_replaced_files(self):
        for name in ("golden safetensors", "golden npz", "stage", "verify", "merge"):
            command = next(each for each in faults.COMMANDS if each.name == name)
            self.put(command.outputs[0], "old")
            with self.subTest(command=name):
                self.crash(name)

    def test_files_that_are_independent_of_each_other(self):
        for name in ("r.json", "e.txt", "x.npy"):
            self.put(name, "old")
        self.crash("ptx run", is_set=False)

    def test_a_new_set(self):
        self.crash("run")

    def test_a_replaced_set(self):
        for name in ("report.txt", "report.json", "scenario.json", "trace.kvt"):
            self.put("run/" + name, "old " + name)
        self.crash("run")

    # Such a folder is not exchanged, so that a power failure may leave files of two runs, but each is whole.
    def test_a_set_in_a_folder_with_other_files(self):
        for name in ("report.txt", "trace.kvt", "notes.md"):
            self.put("run/" + name, "old " + name)
        self.crash("run", is_set=False)


class Replay(unittest.TestCase):
    """The replay finds the faults that it is for, in logs of writers that are wrong."""

    def damage(self, lines, before, old, new):
        disk = Disk("\n".join(lines), "/d", before)
        found = set()
        for state in disk.crash_states():
            damaged, is_one = mixed(state, old, new)
            found |= {"damaged"} if damaged else set() if is_one else {"mixed"}
        found |= {"lost"} if any(state != new for state in disk.states_now()) else set()
        return found

    OLD, NEW = {"f": b"old"}, {"f": b"newer"}
    WRITE = ["open 3 c1 /d/t", "write 3 0 6e65776572"]
    GOOD = [*WRITE, "fsync 3", "close 3", "rename /d/t\t/d/f", "open 3 90000 /d", "fsync 3", "close 3"]

    def without_temporary(self, lines):
        class Kept(Disk):
            def state(self, unsynced, share):
                state = super().state(unsynced, share)
                state.pop("t", None)
                return state
        disk = Kept("\n".join(lines), "/d", self.OLD)
        states = list(disk.crash_states())
        found = {"damaged" for state in states if state not in (self.OLD, self.NEW)}
        return found | {"lost" for state in disk.states_now() if state != self.NEW}

    def test_the_right_order_is_fine(self):
        self.assertEqual(self.without_temporary(self.GOOD), set())

    def test_a_rename_before_the_sync(self):
        lines = [line for line in self.GOOD if line != "fsync 3"]
        self.assertEqual(self.without_temporary([*lines, "open 3 90000 /d", "fsync 3"]), {"damaged", "lost"})

    def test_a_folder_that_is_not_synced(self):
        self.assertEqual(self.without_temporary(self.GOOD[:5]), {"lost"})

    def test_a_file_written_in_place(self):
        lines = ["open 3 241 /d/f", "write 3 0 6e65776572", "fsync 3", "close 3"]
        self.assertEqual(self.damage(lines, self.OLD, self.OLD, self.NEW), {"damaged"})

    def test_a_set_of_files_renamed_one_by_one(self):
        old = {"a": b"1", "b": b"1", "s": None, "s/a": b"2", "s/b": b"2"}
        new = {"a": b"2", "b": b"2", "s": None}
        lines = ["rename /d/s/a\t/d/a", "rename /d/s/b\t/d/b", "open 3 90000 /d", "fsync 3"]
        self.assertIn("mixed", self.damage(lines, old, old, new))
        old = {"o": None, "o/a": b"1", "o/b": b"1", "s": None, "s/a": b"2", "s/b": b"2"}
        new = {"o": None, "o/a": b"2", "o/b": b"2", "s": None, "s/a": b"1", "s/b": b"1"}
        self.assertEqual(self.damage(["exchange /d/s\t/d/o", "open 3 90000 /d", "fsync 3"], old, old, new), set())


if __name__ == "__main__":
    program.main()
