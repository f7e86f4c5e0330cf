#!/usr/bin/env python3
"""Wrong input of `kvscope lab`: one message for each fault, exit code 2, and nothing written.

    lab_faults_test.py --kvscope PROGRAM
"""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

import command_line

COURSE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "labs"
SOLUTION = COURSE / "staff" / "12_through_lds" / "solution"
KVSCOPE = ""


class LabFaults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "secret").write_text("a secret of the fault test\n", encoding="utf-8")
        (self.folder / "file").write_text("", encoding="utf-8")
        shutil.copytree(SOLUTION, self.folder / "ada")

    def lab(self, *arguments, code=0, course=True, **options):
        environment = {**os.environ, "KVSCOPE_COURSE": str(COURSE)} if course else None
        done = subprocess.run([KVSCOPE, "lab", *map(str, arguments)], capture_output=True, text=True, check=False, cwd=self.folder,
                              env=environment, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def fault(self, *arguments, **options):
        """The only line of a call with wrong input, without the name of the program; standard output is empty."""
        done = self.lab(*arguments, code=2, **options)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("kvscope: ") and done.stderr.count("\n") == 1, done.stderr)
        return done.stderr[len("kvscope: "):-1]

    def grade(self, *arguments):
        return ["grade", "12", "ada", "--secret", "secret", *arguments]

    def entries(self):
        return sorted(path.name for path in self.folder.rglob("*"))

    def test_a_roster_writes_only_into_the_folder_of_out(self):
        (self.folder / "roster").write_text("ada\n../evil\n", encoding="utf-8")
        before = self.entries()
        self.assertEqual(self.fault(*self.grade("--roster", "roster", "--out", "grades")),
                         "roster: line 2: '../evil' is not a student's name: a submission is a folder of that name, so a name has no "
                         "'/' and no NUL byte, and is neither empty nor '.' nor '..'")
        self.assertEqual(self.entries(), before)

    def test_files_that_cannot_be_written_are_named_before_anything_is_graded(self):
        before = self.entries()
        for option in ("--csv", "--json", "--junit", "--gradescope"):
            with self.subTest(option=option):
                self.assertEqual(self.fault(*self.grade(option, "no/x")), "no/x: cannot be written: the folder 'no' does not exist")
                self.assertEqual(self.fault(*self.grade(option, "ada")), "ada: is a folder: name a file in it")
                self.assertEqual(self.fault(*self.grade(option, "secret")), f"command line: {option}: 'secret' is also given as --secret, "
                                 "and would be replaced: pass another file")
        self.assertEqual(self.fault("check", "12", "ada", "--picture", "no/x.svg"),
                         "no/x.svg: cannot be written: the folder 'no' does not exist")
        self.assertEqual(self.fault(*self.grade("--out", "file")),
                         "command line: --out: the folder 'file' cannot be created: Not a directory")
        self.assertEqual(self.entries(), before)

    def test_two_reports_in_one_file_are_a_fault(self):
        """The second one replaced the first."""
        self.assertIn("'x' is also given as --json, and would be replaced", self.fault(*self.grade("--json", "x", "--junit", "x")))
        self.assertFalse((self.folder / "x").exists())

    def test_names_that_no_folder_can_have(self):
        for command in (["start", "1", "mine"], ["check", "12", "ada"]):
            self.assertIn("command line: --student: 'a/b' is not a student's name", self.fault(*command, "--student", "a/b"))
            self.assertIn("command line: --student: is a name of 5000 bytes, more than 250: use a shorter one",
                          self.fault(*command, "--student", "a" * 5000))
        self.assertFalse((self.folder / "mine").exists())

    def test_folders_that_are_none(self):
        self.assertEqual(self.fault("start", "2", "a" * 300), "a" * 300 + ": cannot be written: File name too long")
        self.assertEqual(self.fault("start", "2", "file"), "file: cannot be written: Not a directory")
        self.assertEqual(self.fault("check", "12", "none"),
                         "none: does not exist: 'kvscope lab start 12 DIR' creates a folder for your work")
        self.assertEqual(self.fault("check", "12", "file"), "file: is not a folder: name the folder of your work")
        self.assertEqual(self.fault("check", "12", "a" * 300).count("\n"), 0)
        self.assertEqual(self.fault("list", "--course", "none"), "none: is not a course: No such file or directory; use --course DIR")
        self.assertEqual(self.fault("report", "none"), "none: cannot be read: No such file or directory; name the folder that kvscope "
                         "lab grade --out wrote")
        self.assertEqual(self.fault("report", "file"), "file: cannot be read: Not a directory; name the folder that kvscope lab grade "
                         "--out wrote")
        self.assertEqual(self.fault("report", "ada"), "ada: has no grades: write them with kvscope lab grade ... --out DIR")
        self.assertEqual(self.fault("pack", "ada"), "ada: exists already: name a new folder")

    def test_hints_that_a_lab_does_not_have(self):
        for number in ("0", "4"):
            self.assertEqual(self.fault("hint", "1", number), f"command line: K: {number} is outside [1, 3]: the hints of lab 01_address")

    def test_start_writes_all_files_or_none(self):
        """A disk that is full after some of the files, here a limit of the size of a file."""
        self.lab("start", "1", "whole", "--student", "ada")
        sizes = sorted(path.stat().st_size for path in (self.folder / "whole").iterdir())
        self.assertLess(sizes[0], sizes[-1])

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (sizes[-1] - 1, sizes[-1] - 1))

        message = self.fault("start", "1", "part", "--student", "ada", preexec_fn=small_files)
        self.assertRegex(message, r"^part/[\w.-]+: cannot be written: File too large$")
        self.assertFalse((self.folder / "part").exists())
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "notes").write_text("mine", encoding="utf-8")
        self.fault("start", "1", "mine", "--student", "ada", preexec_fn=small_files)
        self.assertEqual(os.listdir(self.folder / "mine"), ["notes"])

    def graded(self):
        self.lab(*self.grade("--out", "grades"))
        return json.loads((self.folder / "grades" / "ada.json").read_text(encoding="utf-8"))

    def report_of(self, name, grade):
        (self.folder / "grades" / name).write_text(json.dumps(grade), encoding="utf-8")
        return self.fault("report", "grades", "--csv", "all.csv")

    def test_a_student_with_two_grades_is_a_fault(self):
        """Both were counted, and the table had two lines of one student."""
        grade = self.graded()
        self.assertEqual(self.report_of("late.json", grade),
                         "grades/late.json: $.student: is 'ada', as in ada.json: remove the grade that does not count")
        self.assertFalse((self.folder / "all.csv").exists())

    def test_grades_of_two_labs_or_of_other_tests_are_faults(self):
        """The points were in the columns of other tests."""
        grade = self.graded()
        self.assertEqual(self.report_of("bob.json", {**grade, "student": "bob", "lab": "01_address"}),
                         "grades/bob.json: $.lab: is '01_address', but the first grade here is of '12_through_lds'")
        self.assertEqual(self.report_of("bob.json", {**grade, "student": "bob", "tests": grade["tests"][1:]}),
                         "grades/bob.json: $.tests: are not the tests of lab 12_through_lds of this course: grade the submission again")
        self.assertFalse((self.folder / "all.csv").exists())


if __name__ == "__main__":
    command_line.run_tests()
