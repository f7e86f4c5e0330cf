#!/usr/bin/env python3
"""The templates for course systems: their commands run in folders laid out as Gradescope, GitHub and GitLab lay them out.

    templates_test.py --kvscope PROGRAM
"""
import argparse
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from published_formats import gradescope_faults, junit_faults

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "docs" / "labs" / "staff" / "templates"
COURSE = ROOT / "docs" / "labs"
LAB = "1"  # of which no submission is compiled, unless a template names its own
KVSCOPE = ""


def script_lines(name):
    """The command lines of a CI file: the values of `run:` and the items of `script:`."""
    text = (TEMPLATES / name).read_text(encoding="utf-8")
    return re.findall(r"^ *- (?:run: )?(kvscope .*)$", text, re.M)


class TemplatesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def kvscope(self, *arguments, check=True):
        return subprocess.run([KVSCOPE, *arguments], capture_output=True, text=True, check=check)

    def gradescope(self, student="4711"):
        """/autograder with the starter of LAB as the submission."""
        root = self.folder / "autograder"
        (root / "source" / "kvscope" / "bin").mkdir(parents=True)
        os.symlink(KVSCOPE, root / "source" / "kvscope" / "bin" / "kvscope")
        (root / "source" / "secret").write_text("a secret of at least sixteen bytes\n", encoding="utf-8")
        (root / "submission_metadata.json").write_text(
            json.dumps({"id": 1, "users": [{"email": "ada@example.org", "id": int(student), "name": "Ada"}]}),
            encoding="utf-8")
        (root / "submission").mkdir()
        return root

    def autograde(self, root):
        environment = {**os.environ, "AUTOGRADER": str(root), "LAB": LAB}
        return subprocess.run([TEMPLATES / "gradescope" / "run_autograder"], env=environment, capture_output=True, text=True,
                              check=False)

    def test_gradescope_gets_a_score_for_each_test(self):
        root = self.gradescope()
        self.kvscope("lab", "start", LAB, str(root / "submission"), "--student", "4711", "--course", str(COURSE))
        done = self.autograde(root)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((root / "results" / "results.json").read_text(encoding="utf-8"))
        manifest = json.loads((COURSE / "01_address" / "lab.json").read_text(encoding="utf-8"))
        self.assertEqual([test["max_score"] for test in results["tests"]], [test["points"] for test in manifest["tests"]])
        for test in results["tests"]:
            self.assertLessEqual(set(test), {"name", "score", "max_score", "status", "output", "output_format"})
            self.assertEqual(test["score"], 0)
        self.assertNotIn("a secret of at least", json.dumps(results))
        self.assertEqual(gradescope_faults(results), [])

    def test_gradescope_results_of_a_leaderboard_are_of_the_published_format(self):
        solution, results = COURSE / "staff" / "05_scheduler" / "solution", self.folder / "results.json"
        self.kvscope("lab", "check", "5", str(solution), "--gradescope", str(results), "--course", str(COURSE))
        value = json.loads(results.read_text(encoding="utf-8"))
        self.assertEqual(gradescope_faults(value), [])
        self.assertEqual(len(value["leaderboard"]), 1)

    def test_a_file_of_another_format_has_faults(self):
        right = {"tests": [{"name": "a", "score": 1.5, "max_score": 2, "status": "failed", "output": ""}]}
        self.assertEqual(gradescope_faults(right), [])
        wrong = [{}, {"tests": []}, {"test": []}, {"tests": {}}, {"tests": [{"name": "a"}]}, {"tests": [{"name": 1, "score": 1}]},
                 {"tests": [{"score": "1"}]}, {"tests": [{"score": True}]}, {"tests": [{"score": 3, "max_score": 2}]},
                 {"tests": [{"score": 1, "status": "pass"}]}, {"score": 1, "output_format": "markdown"},
                 {"score": 1, "leaderboard": [{"name": "score"}]}, {"score": 1, "visibility": "never"}]
        for value in wrong:
            self.assertNotEqual(gradescope_faults(value), [], value)
        suite = '<testsuites><testsuite tests="{}">{}</testsuite></testsuites>'
        one, other = '<testcase classname="c" name="a"/>', '<testcase classname="c" name="b"><failure/></testcase>'
        self.assertEqual(junit_faults(xml.etree.ElementTree.fromstring(suite.format(2, one + other)), 100), [])
        for text, size in ((suite.format(0, ""), 100), (suite.format(2, one + one), 100), (suite.format(1, one + other), 100),
                           (suite.format(1, '<testcase name="a"/>'), 100), (suite.format(1, one), 30_000_000), ("<tests/>", 100)):
            self.assertNotEqual(junit_faults(xml.etree.ElementTree.fromstring(text), size), [], text)

    def test_gradescope_names_the_files_that_were_not_submitted(self):
        root = self.gradescope()
        done = self.autograde(root)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((root / "results" / "results.json").read_text(encoding="utf-8"))
        self.assertTrue(all("answers.json" in test["output"] for test in results["tests"]), results)

    def test_gradescope_has_no_results_where_grading_fails(self):
        root = self.gradescope()
        (root / "source" / "secret").unlink()
        done = self.autograde(root)
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse((root / "results" / "results.json").exists())

    def run_ci(self, name):
        """The job's commands in a checkout, with kvscope in PATH. Exit code of the last one."""
        lines = script_lines(name)
        self.assertEqual(len(lines), 1, lines)
        checkout = self.folder / "checkout"
        self.kvscope("lab", "start", "2", str(checkout), "--student", "ada", "--course", str(COURSE))
        environment = {**os.environ, "PATH": f"{pathlib.Path(KVSCOPE).parent}:{os.environ['PATH']}", "LAB": "2"}
        done = subprocess.run(["/bin/sh", "-e", "-c", lines[0]], cwd=checkout, env=environment, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 1, done.stderr)  # the starter has no points, and the job fails
        report = checkout / "report.xml"
        root = xml.etree.ElementTree.parse(report).getroot()
        self.assertEqual(junit_faults(root, report.stat().st_size), [])
        self.assertGreater(len(list(root.iter("testcase"))), 3)
        self.assertIn("</svg>", (checkout / "case.svg").read_text(encoding="utf-8"))

    def test_github_classroom(self):
        self.run_ci("github-classroom.yml")

    def test_gitlab(self):
        self.run_ci("gitlab-ci.yml")

    def test_every_artifact_is_written_by_the_command(self):
        for name in ("github-classroom.yml", "gitlab-ci.yml"):
            for file in ("report.xml", "case.svg"):
                self.assertEqual((TEMPLATES / name).read_text(encoding="utf-8").count(file), 2, f"{name}: {file}")

    def test_moodle_gets_points_and_feedback_of_each_student(self):
        secret = self.folder / "secret"
        secret.write_text("a secret of at least sixteen bytes\n", encoding="utf-8")
        for student in ("s001", "s002"):
            self.kvscope("lab", "start", LAB, str(self.folder / student), "--student", student, "--course", str(COURSE))
        table = self.folder / "grades.csv"
        self.kvscope("lab", "grade", LAB, str(self.folder / "s001"), str(self.folder / "s002"), "--secret", str(secret),
                     "--csv", str(table), "--course", str(COURSE))
        with open(table, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["student"] for row in rows], ["s001", "s002"])
        for row in rows:
            self.assertEqual((row["points"], row["maximum"]), ("0", "100"))
            self.assertIn("extents: no answer", row["feedback"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kvscope", required=True, type=os.path.abspath)
    arguments, rest = parser.parse_known_args()
    KVSCOPE = arguments.kvscope
    unittest.main(argv=[sys.argv[0], *rest])
