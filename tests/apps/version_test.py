#!/usr/bin/python3
"""--version of every program, and the script that looks up the commit before a build (apps/common/build_commit.cmake).

    version_test.py --kvscope PROGRAM --viewer PROGRAM --gpu-check PROGRAM
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402

SCRIPT = os.path.join(program.SOURCE, "apps", "common", "build_commit.cmake")


class Version(unittest.TestCase):
    def test_is_one_line_with_name_number_and_commit_the_same_for_all_programs(self):
        built_from = set()
        for name, path in (("kvscope", program.KVSCOPE), ("kvscope-viewer", program.VIEWER),
                           ("gpu-check", program.GPU_CHECK)):
            if not path:
                continue
            done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            match = re.fullmatch(r"([\w-]+) (\d+\.\d+\.\d+ \((?:commit [0-9a-f]{12}(?:-dirty)?|unknown commit)\))\n",
                                 done.stdout)
            self.assertIsNotNone(match, done.stdout)
            self.assertEqual(match[1], name)
            built_from.add(match[2])
        self.assertEqual(len(built_from), 1, built_from)


@unittest.skipUnless(shutil.which("git") and shutil.which("cmake"), "needs git and cmake")
class BuildCommit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = os.path.join(folder.name, "source folder")
        self.output = os.path.join(folder.name, "commit.cpp")
        os.makedirs(os.path.join(self.source, "inner"))
        self.write("a.txt", "one\n")

    def write(self, name, text):
        with open(os.path.join(self.source, name), "w", encoding="utf-8") as file:
            file.write(text)

    def git(self, *words):
        names = {f"GIT_{role}_{what}": "test@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(["git", "-c", "init.defaultBranch=main", "-C", self.source, *words], text=True, check=True,
                              capture_output=True, env={**os.environ, **names})
        return done.stdout.strip()

    def commit(self):
        """The commit that the script writes, or None when it left the file alone."""
        return self.commit_of(self.source)

    def commit_of(self, source, git=shutil.which("git"), **environment):
        before = os.stat(self.output).st_mtime_ns if os.path.exists(self.output) else None
        subprocess.run(["cmake", "-D", f"SOURCE={source}", "-D", f"OUTPUT={self.output}", "-D", f"GIT={git}", "-P", SCRIPT],
                       check=True, timeout=60, env={**os.environ, **environment})
        if os.stat(self.output).st_mtime_ns == before:
            return None
        with open(self.output, encoding="utf-8") as file:
            return re.search(r'kBuildCommit = "([^"]*)";', file.read())[1]

    def first_commit(self):
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "one")
        return self.git("rev-parse", "HEAD")[:12]

    def test_a_clean_checkout_gives_its_commit_and_writes_it_once(self):
        head = self.first_commit()
        self.assertEqual(self.commit(), head)
        self.assertIsNone(self.commit(), "nothing changed, so nothing may be compiled again")

    def test_a_modified_file_makes_it_dirty_and_a_new_untracked_one_does_not(self):
        head = self.first_commit()
        self.assertEqual(self.commit(), head)
        self.write("untracked.txt", "new\n")
        self.assertIsNone(self.commit())
        self.write("a.txt", "two\n")
        self.assertEqual(self.commit(), head + "-dirty")
        self.git("commit", "--quiet", "-am", "two")
        self.assertEqual(self.commit(), self.git("rev-parse", "HEAD")[:12])

    def test_outside_of_a_checkout_it_is_unknown(self):
        self.assertEqual(self.commit(), "")

    def test_a_source_archive_inside_another_checkout_does_not_take_that_ones_commit(self):
        self.first_commit()
        self.assertEqual(self.commit_of(os.path.join(self.source, "inner")), "")

    def test_without_git_or_without_a_commit_it_is_unknown(self):
        self.git("init", "--quiet")
        self.assertEqual(self.commit(), "")
        os.remove(self.output)
        self.first_commit()
        self.assertEqual(self.commit_of(self.source, git=""), "")

    def test_a_build_in_a_git_hook_is_not_misled_by_the_hooks_variables(self):
        head = self.first_commit()
        self.assertEqual(self.commit_of(self.source, GIT_DIR="/nonexistent", GIT_INDEX_FILE="/nonexistent"), head)


if __name__ == "__main__":
    program.main()
