#!/usr/bin/env python3
"""The templates for course systems, and the formats of the files that these systems read.

    templates_test.py --kvscope PROGRAM

The job files of GitHub Classroom and GitLab are read as YAML, and their steps run in order in a clone of a repository: a step that
exits with another code than the system expects fails the test. Gradescope's script runs in a folder laid out as /autograder;
gradescope_test.py runs it in a container.
"""
import csv
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

try:
    import yaml
except ImportError:
    yaml = None

import command_line
from published_formats import gradescope_faults, junit_faults

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "docs" / "labs" / "staff" / "templates"
COURSE = ROOT / "docs" / "labs"
STUDENT = "ada@example.org"
LAB = "1"  # of which no submission is compiled, unless a template names its own
KVSCOPE = ""


class Job:
    """The steps of a job file: shell commands in order, variables, and the files that the system keeps even when a step fails."""

    def __init__(self, name):
        value = yaml.safe_load((TEMPLATES / name).read_text(encoding="utf-8"))
        job = value["jobs"]["check"] if "jobs" in value else value["check"]
        self.image = job["container"] if "jobs" in value else job["image"]
        self.variables = {key: str(text) for key, text in job.get("variables", {}).items()}
        if "jobs" in value:
            self.commands = [step["run"] for step in job["steps"] if "run" in step]
            self.uses = [step["uses"].split("@")[0] for step in job["steps"] if "uses" in step]
            kept = [step for step in job["steps"] if step.get("if") == "always()"]
            self.kept = [path for step in kept for path in step["with"]["path"].split()]
        else:
            self.commands, self.uses = list(job["script"]), []
            artifacts = job["artifacts"] if job["artifacts"]["when"] == "always" else {}
            self.kept = [*artifacts.get("paths", []), *artifacts.get("reports", {}).values()]

    def run(self, checkout):
        """Exit code of the first command that fails, or 0, and what was printed: as the systems run them, with sh -e."""
        environment = {**os.environ, **self.variables, "PATH": f"{pathlib.Path(KVSCOPE).parent}:{os.environ['PATH']}"}
        printed = ""
        for command in self.commands:
            done = subprocess.run(["/bin/sh", "-e", "-c", command], cwd=checkout, env=environment, capture_output=True, text=True, check=False)
            printed += done.stdout + done.stderr
            if done.returncode != 0:
                return done.returncode, printed
        return 0, printed


class TemplatesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def kvscope(self, *arguments, check=True):
        return subprocess.run([KVSCOPE, *arguments], capture_output=True, text=True, check=check)

    def gradescope(self):
        """/autograder with the starter of LAB as the submission."""
        root = self.folder / "autograder"
        (root / "source" / "kvscope" / "bin").mkdir(parents=True)
        os.symlink(KVSCOPE, root / "source" / "kvscope" / "bin" / "kvscope")
        (root / "source" / "secret").write_text("a secret of at least sixteen bytes\n", encoding="utf-8")
        (root / "submission_metadata.json").write_text(
            json.dumps({"id": 1, "users": [{"email": "Ada@example.org", "id": 4711, "name": "Ada"}]}),
            encoding="utf-8")
        (root / "submission").mkdir()
        return root

    def autograde(self, root):
        environment = {**os.environ, "AUTOGRADER": str(root), "LAB": LAB}
        return subprocess.run([TEMPLATES / "gradescope" / "run_autograder"], env=environment, capture_output=True, text=True,
                              check=False)

    def test_gradescope_gets_a_score_for_each_test(self):
        root = self.gradescope()
        self.kvscope("lab", "start", LAB, str(root / "submission"), "--student", STUDENT, "--course", str(COURSE))
        done = self.autograde(root)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((root / "results" / "results.json").read_text(encoding="utf-8"))
        manifest = json.loads((COURSE / "01_address" / "lab.json").read_text(encoding="utf-8"))
        self.assertEqual([test["max_score"] for test in results["tests"]], [test["points"] for test in manifest["tests"]])
        for test in results["tests"]:
            self.assertLessEqual(set(test), {"name", "score", "max_score", "status", "output", "output_format"})
            self.assertEqual(test["score"], 0)
            self.assertNotIn("the work is of", test["output"])  # the name is that of lab start
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

    def clone(self, files=None):
        """A checkout of a student's repository: the starter of lab 02, with some files replaced and committed."""
        repository, checkout = self.folder / "repository", self.folder / "checkout"
        git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]
        self.kvscope("lab", "start", "2", str(repository), "--student", "ada", "--course", str(COURSE))
        for file in files or []:
            shutil.copy(file, repository)
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "My work"]):
            subprocess.run([*git, "-C", repository, *command], check=True)
        subprocess.run([*git, "clone", "-q", repository, checkout], check=True)
        return checkout

    def run_job(self, name):
        if yaml is None:
            self.skipTest("the Python module yaml is missing (Debian package python3-yaml): job files are not read")
        job = Job(name)
        self.assertEqual(job.image, "kvscope")
        self.assertEqual(sorted(job.kept), ["case.svg", "report.xml"])
        checkout = self.clone()
        code, printed = job.run(checkout)
        self.assertEqual(code, 1, printed)  # the starter has no points, and the job fails
        self.check_kept(checkout)
        shutil.rmtree(checkout)
        shutil.rmtree(self.folder / "repository")
        checkout = self.clone([COURSE / "staff" / "02_rows" / "solution" / "rows.cpp"])
        code, printed = job.run(checkout)
        self.assertEqual(code, 0, printed)
        self.assertIn("100 of 100 points", printed)
        return job

    def check_kept(self, checkout):
        """The files that the system keeps are of the formats that it shows."""
        report = checkout / "report.xml"
        root = xml.etree.ElementTree.parse(report).getroot()
        self.assertEqual(junit_faults(root, report.stat().st_size), [])
        self.assertEqual(len(list(root.iter("testcase"))), len(json.loads((COURSE / "02_rows" / "lab.json").read_text(encoding="utf-8"))["tests"]))
        self.assertIn("</svg>", (checkout / "case.svg").read_text(encoding="utf-8"))

    def test_github_classroom(self):
        self.assertEqual(self.run_job("github-classroom.yml").uses, ["actions/checkout", "actions/upload-artifact"])

    def test_gitlab(self):
        self.assertEqual(self.run_job("gitlab-ci.yml").variables, {"LAB": "2"})

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
    command_line.run_tests()
