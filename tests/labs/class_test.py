#!/usr/bin/env python3
"""A class of 30 from the handed-out course to the imported grades, with labs that need no compiler.

    class_test.py --kvscope PROGRAM

The students work in a system that has the program, its libraries and the packed course, and nothing else: no shell, no compiler,
no sources. The lecturer grades lab 12, whose submissions are the solution and the wrong submissions of docs/labs/staff.
"""
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import command_line
from course_test import patched

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "labs"
STAFF = COURSE / "staff" / "12_through_lds"
PAGE = (ROOT / "docs" / "08_labs.md").read_text(encoding="utf-8")
CLASS = 30
KVSCOPE = ""


def kvscope(*arguments, code=0, **options):
    done = subprocess.run([KVSCOPE, *map(str, arguments)], capture_output=True, text=True, check=False, **options)
    if done.returncode != code:
        raise AssertionError(f"kvscope {' '.join(map(str, arguments))}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class ClassTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.secret = self.folder / "secret"
        self.secret.write_text("a secret of the class test\n", encoding="utf-8")

    def submissions(self, count=CLASS):
        """Folders s00, s01, ... of lab 12: six solutions, then wrong submissions."""
        patches, folders = sorted((STAFF / "wrong").glob("*.patch")), []
        for number in range(count):
            folder = self.folder / "submissions" / f"s{number:02}"
            shutil.copytree(STAFF / "solution", folder)
            if number >= 6:
                patched(folder, patches[(number - 6) % len(patches)].read_text(encoding="utf-8"))
            folders.append(folder)
        return folders

    def grade(self, *arguments, **options):
        return kvscope("lab", "grade", "12", *arguments, "--secret", self.secret, "--course", COURSE, **options)

    def table(self, path):
        with open(path, newline="", encoding="utf-8") as file:
            return {row["student"]: row for row in csv.DictReader(file)}

    def test_a_class_is_graded_reported_and_exported(self):
        folders, grades = self.submissions(), self.folder / "grades"
        roster = self.folder / "roster.txt"
        roster.write_text("\ufeff" + "\r\n".join([folder.name for folder in folders] + ["s98", "s99"]) + "\r\n", encoding="utf-8")
        printed = self.grade(*folders, "--roster", roster, "--out", grades, "--csv", self.folder / "grades.csv")
        rows = self.table(self.folder / "grades.csv")
        self.assertEqual(list(rows), [*(folder.name for folder in folders), "s98", "s99"])
        self.assertEqual([rows[f"s{n:02}"]["points"] for n in range(6)], ["100"] * 6)
        self.assertTrue(all(float(rows[f"s{n:02}"]["points"]) < 100 for n in range(6, CLASS)), rows)
        self.assertEqual((rows["s99"]["points"], rows["s99"]["feedback"][:20]), ("0", "order: no submission"))
        report = kvscope("lab", "report", grades, "--csv", self.folder / "again.csv", "--course", COURSE)
        self.assertIn(f"{CLASS} submissions, 2 missing\nmean ", report)
        self.assertIn(" of 100 points, without the missing ones\n", report)
        self.assertRegex(report, r"\n  s99 +0  no submission\n")
        self.assertEqual(self.table(self.folder / "again.csv"), rows)
        self.late_submission_and_complaint(grades, rows, printed)

    def late_submission_and_complaint(self, grades, rows, printed):
        """A submission that comes later changes one line of the table; the seed repeats a grading without the secret."""
        late = self.folder / "late" / "s99"
        shutil.copytree(STAFF / "solution", late)
        self.grade(late, "--out", grades)
        kvscope("lab", "report", grades, "--csv", self.folder / "with_late.csv", "--course", COURSE)
        after = self.table(self.folder / "with_late.csv")
        self.assertEqual([student for student in rows if after[student] != rows[student]], ["s99"])
        self.assertEqual(after["s99"]["points"], "100")
        seed = re.search(r"^s07  seed (\w+)$", printed, re.M)[1]
        kvscope("lab", "check", "12", self.folder / "submissions" / "s07", "--seed", seed, "--json", self.folder / "s07.json",
                "--course", COURSE, code=1)
        repeated, graded = (json.loads(path.read_text(encoding="utf-8")) for path in (self.folder / "s07.json", grades / "s07.json"))
        self.assertEqual(repeated["seed"], graded["seed"])
        self.assertEqual(repeated["tests"], graded["tests"])

    def test_two_students_of_one_name_are_a_fault_before_anything_is_graded(self):
        first = self.submissions(1)[0]
        other = self.folder / "other" / first.name
        shutil.copytree(first, other)
        printed = self.grade(first, other, "--out", self.folder / "grades", code=2)
        self.assertIn(f"{first} and {other} are both of student 's00'", printed)
        self.assertFalse((self.folder / "grades").exists())

    def test_the_folder_of_the_class_is_not_one_submission(self):
        """It was graded as a student of its name, with 0 points and exit code 0."""
        first = self.submissions(3)[0]
        printed = self.grade(first.parent, "--out", self.folder / "grades", code=2)
        self.assertEqual(printed, f"kvscope: command line: DIR: {first.parent} has no file of lab 12_through_lds, but 3 of its "
                         f"folders have: pass each student's folder, as {first} or {first.parent}/*\n")
        self.assertFalse((self.folder / "grades").exists())
        alone = self.folder / "alone"  # an archive may have a folder of its own: still one submission
        alone.mkdir()
        shutil.move(first, alone / "lab12")
        self.grade(alone)

    def test_the_folder_of_a_lab_in_the_place_of_the_lab(self):
        kvscope("lab", "start", "12", "mine", "--course", COURSE, cwd=self.folder)
        for words in (("mine",), ("mine", "12")):
            self.assertEqual(kvscope("lab", "check", *words, "--course", COURSE, cwd=self.folder, code=2),
                             "kvscope: command line: LAB: 'mine' is the folder of a lab: write the lab before it, 12 mine\n")
        (self.folder / "mine" / "kvscope-lab.json").write_text("{", encoding="utf-8")
        self.assertIn("'mine' is no lab: use one of", kvscope("lab", "check", "mine", "--course", COURSE, cwd=self.folder, code=2))

    def test_reports_of_one_submission_are_not_written_for_a_class(self):
        folders = self.submissions(2)
        for option in ("--json", "--junit", "--gradescope"):
            file = self.folder / "report"
            self.assertIn(f"{option}: is the report of one submission, and 2 are given", self.grade(*folders, option, file, code=2))
            self.assertFalse(file.exists())
            self.grade(folders[0], option, file)
            self.assertGreater(file.stat().st_size, 100)
            file.unlink()

    def test_an_empty_folder_names_with_spaces_and_other_scripts(self):
        for name, file in (("Zoë Müller", "lab 12/schedule.txt"), ("王小明", "schedule (1).txt"), ("empty", "")):
            target = self.folder / "submissions" / name / file
            target.parent.mkdir(parents=True, exist_ok=True)
            if file:
                shutil.copy(STAFF / "solution" / "schedule.txt", target)
            else:
                target.mkdir(exist_ok=True)
        folders = sorted((self.folder / "submissions").iterdir())
        self.grade(*folders, "--csv", self.folder / "grades.csv", "--out", self.folder / "grades")
        rows = self.table(self.folder / "grades.csv")
        self.assertEqual(rows["Zoë Müller"]["points"], "100")
        self.assertIn("rename the right one to schedule.txt", rows["王小明"]["feedback"])
        self.assertIn("schedule.txt: is missing", rows["empty"]["feedback"])
        self.assertTrue((self.folder / "grades" / "王小明.json").exists())

    def machine(self, pack):
        """A command that runs kvscope where nothing but the program, its libraries and the pack exists."""
        libraries = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", KVSCOPE], capture_output=True, text=True, check=True).stdout)
        binds = [word for path in libraries for word in ("--ro-bind", os.path.realpath(path), path)]
        home = self.folder / "home"
        home.mkdir()
        return ["bwrap", "--unshare-all", "--clearenv", *binds, "--ro-bind", KVSCOPE, "/opt/kvscope", "--ro-bind", str(pack), "/opt/course",
                "--bind", str(home), "/home", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/home"]

    def test_students_need_the_program_and_the_pack_alone(self):
        if shutil.which("bwrap") is None:
            self.skipTest("bubblewrap is not installed: no system without other programs can be made")
        pack = self.folder / "course"
        kvscope("lab", "pack", pack, "--students", "--course", COURSE)
        machine = self.machine(pack)

        def student(*arguments, variable=True):
            environment = ["--setenv", "KVSCOPE_COURSE", "/opt/course"] if variable else []
            done = subprocess.run([*machine, *environment, "/opt/kvscope", "lab", *arguments], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout + done.stderr

        code, printed = student("list", variable=False)
        self.assertEqual(code, 2, printed)
        self.assertIn("name the folder that your teacher handed out, or set KVSCOPE_COURSE to it", printed)
        code, printed = student("start", "12", "named", "--course", "/opt/course", variable=False)
        self.assertEqual(code, 0, printed)
        self.assertIn("once     export KVSCOPE_COURSE=/opt/course\n", printed)
        labs = [lab for lab, kind in re.findall(r"(?m)^(\d\d)  \S+ +(\w+)", student("list")[1]) if kind not in ("cpp", "cuda")]
        self.assertIn(f"Labs {', '.join(labs[:-1])} and {labs[-1]} need `kvscope` alone: no compiler", PAGE)
        for lab in labs:
            code, printed = student("start", lab, f"lab{lab}", "--student", "ada")
            self.assertEqual(code, 0, printed)
            self.assertNotIn("export", printed)
            code, printed = student("check", lab, f"lab{lab}")
            self.assertEqual(code, 1, printed)
            self.assertRegex(printed, r"^Lab \d\d \w+: 0 of 100 points\n")
            for number in re.findall(r"kvscope lab hint \d+ (\d)", printed):
                self.assertEqual(student("hint", lab, number)[0], 0)
        self.assertEqual(student("start", "2", "lab02")[0], 0)
        code, printed = student("check", "2", "lab02", "--trust")
        self.assertEqual(code, 2, printed)
        self.assertIn("needs the compiler /usr/bin/g++: install the package g++", printed)


if __name__ == "__main__":
    command_line.run_tests()
