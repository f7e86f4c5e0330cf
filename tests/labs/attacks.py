"""Gradings of hostile submissions, for security_test.py (C++) and triton_security_test.py.

    class SecurityTest(attacks.Attacks, unittest.TestCase):
        LAB, FILE, SOLUTION, MARK = "2", "rows.cpp", ..., ...

A correct submission that is graded after an attack must still get all points.
"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import command_line

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "labs"
MOST_MARK = 15  # bytes of a process's name
KVSCOPE = ""


class Attacks:
    LAB, FILE = "", ""  # of the submissions
    SOLUTION = ""  # the text of a correct one
    MARK = ""  # in the name of each process that an attack starts
    LONGEST = 90  # [s] of one grading
    OPTIONS = ()  # of lab grade

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "secret").write_text("a secret of the security test\n", encoding="utf-8")

    def submit(self, text, name="attack"):
        target = self.folder / name
        target.mkdir()
        (target / self.FILE).write_text(text, encoding="utf-8")
        return target

    def grade(self, *folders):
        started = time.monotonic()
        done = subprocess.run([KVSCOPE, "lab", "grade", self.LAB, *map(str, folders), "--course", str(COURSE), "--secret",
                               str(self.folder / "secret"), "--out", str(self.folder / "grades"), *self.OPTIONS],
                              capture_output=True, text=True, timeout=2 * self.LONGEST, check=False)
        self.seconds = time.monotonic() - started
        self.assertLess(self.seconds, self.LONGEST)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.printed = done.stdout
        return [json.loads((self.folder / "grades" / (folder.name + ".json")).read_text(encoding="utf-8"))
                for folder in folders]

    def points(self, text):
        """Points of a submission, whose messages are in `report`. A correct one, graded in the same run after it, gets all of them."""
        attack, honest = self.grade(self.submit(text), self.submit(self.SOLUTION, "honest"))
        self.assertEqual(honest["points"], 100, honest["tests"])
        self.report = " ".join(test["message"] + " " + test["case"] for test in attack["tests"])
        return attack["points"]

    def assert_no_process(self):
        """No process of the sandbox is left."""
        for _ in range(50):
            left = [entry for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit() and self.marked(entry)]
            if not left:
                return
            time.sleep(0.1)
        self.fail(f"processes are left: {left}")

    def marked(self, process):
        try:
            return self.MARK[:MOST_MARK] in (process / "comm").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False

    def assert_not_reached(self, attack):
        """No connection arrives at a port of this machine during attack(port)."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        server.settimeout(0.2)
        heard = []

        def listen():
            try:
                heard.append(server.accept())
            except OSError:
                pass

        thread = threading.Thread(target=listen)
        thread.start()
        attack(server.getsockname()[1])
        thread.join()
        self.assertEqual(heard, [])

    def assert_not_read(self, name, make, message):
        """A submission whose file is what make(path) creates has no points, and the message."""
        target = self.folder / name
        target.mkdir()
        make(target / self.FILE)
        grade, = self.grade(target)
        self.assertEqual(grade["points"], 0)
        self.assertIn(message, grade["tests"][0]["message"])
        self.assertLess(self.seconds, 20)  # opening a pipe would wait for a writer

    def test_symbolic_links_are_rejected(self):
        solution = self.folder / "solution"
        solution.write_text(self.SOLUTION, encoding="utf-8")
        self.assert_not_read("link", lambda path: path.symlink_to(solution), "symbolic link")

    def test_a_pipe_or_a_large_file_is_rejected(self):
        self.assert_not_read("pipe", os.mkfifo, "not a regular file")
        self.assert_not_read("large", lambda path: path.write_bytes(b" " * (1 << 20)), "more than 262144")


def main():
    command_line.run_tests(sys.modules[__name__])
