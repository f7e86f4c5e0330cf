#!/usr/bin/env python3
"""The autograder for Gradescope, as its platform runs it: setup.sh when the image is built, run_autograder for each submission.

    gradescope_test.py --kvscope PROGRAM

The container is a system of its own, made with bubblewrap, whose /autograder is laid out as Gradescope lays it out: the unpacked zip file
in source/, run_autograder beside it, the files of a student in submission/, and results/. The scripts run without variables, as root.
By default the system is this machine's /usr, read-only, and apt-get is a script that fails unless each package that it is asked to
install is installed here. KVSCOPE_FULL=1 takes a bare Debian 12 from debootstrap, in which setup.sh installs the packages.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import command_line
from published_formats import gradescope_faults

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURSE = ROOT / "docs" / "labs"
TEMPLATE = COURSE / "staff" / "templates" / "gradescope"
BARE = os.environ.get("KVSCOPE_FULL") == "1"
MIRROR = "http://deb.debian.org/debian"
SECRET = "a secret of the gradescope test"
KVSCOPE = ""
APT_GET = """#!/bin/bash
# Stands in for apt-get: packages are not installed, but must be.
echo "apt-get $*" >> /autograder/apt-get.log
[ "$1" = update ] && exit 0
[ "$1" = install ] || { echo "apt-get: $1 is not expected" >&2; exit 100; }
for word in "${@:2}"; do
  case $word in
    -*) ;;
    *) dpkg-query -W -f '${db:Status-Status}' "$word" | grep -qx installed || { echo "E: Unable to locate package $word" >&2; exit 100; } ;;
  esac
done
"""


class Container:
    """A system with /autograder. `folder` is outside what the folder / is inside, except for /usr of this machine."""

    def __init__(self, folder):
        self.root, self.autograder = folder / "root", folder / "autograder"
        for name in ("source", "submission", "results"):
            (self.autograder / name).mkdir(parents=True)
        if BARE:
            subprocess.run(["debootstrap", "--variant=minbase", "bookworm", self.root, MIRROR], check=True, stdout=subprocess.DEVNULL)
            # apt and dpkg change users and owners, so there is no namespace of users, and the network is that of this machine.
            system = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--cap-add", "ALL", "--bind", str(self.root), "/", "--ro-bind",
                      "/etc/resolv.conf", "/etc/resolv.conf"]
        else:
            stubs = folder / "stubs"
            stubs.mkdir()
            (stubs / "apt-get").write_text(APT_GET, encoding="utf-8")
            (stubs / "apt-get").chmod(0o755)
            links = [word for name in ("bin", "sbin", "lib", "lib64") if os.path.islink("/" + name)
                     for word in ("--symlink", os.readlink("/" + name), "/" + name)]
            system = ["--unshare-all", "--uid", "0", "--gid", "0", "--ro-bind", "/usr", "/usr", *links, "--ro-bind", "/etc",
                      "/etc", "--ro-bind", "/var/lib/dpkg", "/var/lib/dpkg",
                      "--ro-bind", str(stubs), "/stubs"]
        # The sandbox of submissions makes namespaces of its own inside.
        self.prefix = ["bwrap", *system, "--bind", str(self.autograder), "/autograder", "--proc", "/proc", "--dev", "/dev",
                       "--tmpfs", "/tmp", "--clearenv", "--setenv", "PATH", "/stubs:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                       "--chdir", "/autograder"]

    def run(self, *command):
        return subprocess.run([*self.prefix, *command], capture_output=True, text=True, check=False)


class GradescopeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for program in ("bwrap", "debootstrap") if BARE else ("bwrap",):
            if shutil.which(program) is None:
                raise unittest.SkipTest(f"{program} is not installed: there is no container to run the autograder in")
        if BARE and os.geteuid() != 0:
            raise unittest.SkipTest("debootstrap needs root: there is no bare system to run the autograder in")
        cls.folder = tempfile.TemporaryDirectory()
        cls.container = Container(pathlib.Path(cls.folder.name))
        cls.fill_the_zip(cls.container.autograder / "source")
        cls.setup = cls.container.run("bash", "/autograder/source/setup.sh")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def fill_the_zip(source):
        """The files of autograder.zip: as setup.sh says, with the course beside the program as in an installation."""
        for name in ("setup.sh", "run_autograder"):
            shutil.copy(TEMPLATE / name, source)
        (source / "secret").write_text(SECRET + "\n", encoding="utf-8")
        (source / "kvscope" / "bin").mkdir(parents=True)
        shutil.copy(KVSCOPE, source / "kvscope" / "bin" / "kvscope")
        shutil.copytree(COURSE, source / "kvscope" / "share" / "kvscope" / "docs" / "labs")
        # Gradescope puts the script beside source/ and makes it executable.
        shutil.copy(source / "run_autograder", source.parent)
        (source.parent / "run_autograder").chmod(0o755)

    def autograde(self, files, lab="2", limits=""):
        """results.json of a submission, or None. Files are texts by name."""
        root = self.container.autograder
        for name in ("submission", "results"):
            shutil.rmtree(root / name)
            (root / name).mkdir()
        for name, text in files.items():
            (root / "submission" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "submission" / name).write_text(text, encoding="utf-8")
        metadata = {"id": 7, "users": [{"email": "Ada@Example.org", "id": 1234, "name": "Ada"}], "previous_submissions": []}
        (root / "submission_metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
        script = (TEMPLATE / "run_autograder").read_text(encoding="utf-8")
        (root / "run_autograder").write_text(script.replace("LAB:-2", f"LAB:-{lab}").replace("LIMITS:-", f"LIMITS:-{limits}"), encoding="utf-8")  # as a teacher sets it
        self.done = self.container.run("/autograder/run_autograder")
        results = root / "results" / "results.json"
        if not results.exists():
            return None
        value = json.loads(results.read_text(encoding="utf-8"))
        self.assertEqual(gradescope_faults(value), [])
        return value

    @staticmethod
    def score(results):
        return sum(test["score"] for test in results["tests"])

    @staticmethod
    def solution(lab, file):
        return (COURSE / "staff" / lab / "solution" / file).read_text(encoding="utf-8")

    def test_setup_installs_what_run_autograder_needs(self):
        self.assertEqual(self.setup.returncode, 0, self.setup.stdout + self.setup.stderr)
        if not BARE:
            log = (self.container.autograder / "apt-get.log").read_text(encoding="utf-8").split("\n")
            self.assertEqual(log[0], "apt-get update")
            self.assertRegex(log[1], "^apt-get install -y --no-install-recommends .*g\\+\\+ ")
        ldd = self.container.run("ldd", "/autograder/source/kvscope/bin/kvscope")
        self.assertNotIn("not found", ldd.stdout, ldd.stdout)

    def test_a_package_that_does_not_exist_stops_the_setup(self):
        script = self.container.autograder / "source" / "wrong.sh"
        script.write_text((TEMPLATE / "setup.sh").read_text(encoding="utf-8").replace("libzip4", "libzip4711"), encoding="utf-8")
        done = self.container.run("bash", "/autograder/source/wrong.sh")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Unable to locate package libzip4711", done.stderr)

    def test_submissions_are_graded_with_their_sandbox(self):
        rows = self.solution("02_rows", "rows.cpp")
        results = self.autograde({"rows.cpp": rows})
        self.assertIsNotNone(results, self.done.stderr)
        self.assertEqual(self.score(results), 100)
        results = self.autograde({"lab02/rows.cpp": rows.replace("% cache.page_size", "% 1")})
        self.assertIsNotNone(results, self.done.stderr)
        self.assertLess(self.score(results), 100)
        results = self.autograde({})
        self.assertEqual(self.score(results), 0)
        self.assertIn("rows.cpp: is missing", results["tests"][0]["output"])

    def test_limits_of_the_template_reach_the_grading(self):
        results = self.autograde({"rows.cpp": self.solution("02_rows", "rows.cpp")}, limits="--max-run-time 3 --max-run-output 1024")
        self.assertIsNotNone(results, self.done.stderr)
        self.assertLess(self.score(results), 100)
        self.assertIn(" --max-run-time 3 --max-run-output 1024", results["output"])

    def points_with(self, path, mode):
        """Points of a solution that ends its process if it can open the file."""
        attack = f"""#include <cstdio>
        #include <cstdlib>
        static const int attack = [] {{
          if (std::fopen("{path}", "{mode}") != nullptr) std::abort();
          return 0;
        }}();
        """
        results = self.autograde({"rows.cpp": attack + self.solution("02_rows", "rows.cpp")})
        self.assertNotIn("does not compile", results["tests"][0]["output"])
        return self.score(results)

    def test_a_submission_cannot_read_the_secret_or_write_results(self):
        self.assertEqual(self.points_with("/usr/bin/env", "r"), 0)
        self.assertEqual(self.points_with("/autograder/source/secret", "r"), 100)
        self.assertEqual(self.points_with("/autograder/results/results.json", "w"), 100)

    def test_the_email_address_selects_the_task(self):
        for name, points in (("ada@example.org", 100), ("bob@example.org", 0)):
            folder = self.container.autograder / "solved"
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, COURSE / "staff" / "01_address" / "solve.py", KVSCOPE, COURSE, folder, name], check=True,
                           stdout=subprocess.DEVNULL)
            results = self.autograde({file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}, lab="1")
            self.assertEqual(self.score(results), points)
        self.assertIn("the work is of student 'bob@example.org'", results["tests"][0]["output"])

    def test_without_the_secret_there_are_no_results(self):
        secret = self.container.autograder / "source" / "secret"
        secret.unlink()
        self.addCleanup(secret.write_text, SECRET + "\n", encoding="utf-8")
        self.assertIsNone(self.autograde({"rows.cpp": ""}))
        self.assertNotEqual(self.done.returncode, 0)
        self.assertTrue(re.search("secret.*No such file", self.done.stderr), self.done.stderr)


if __name__ == "__main__":
    command_line.run_tests()
