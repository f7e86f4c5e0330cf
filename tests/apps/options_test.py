#!/usr/bin/python3
"""Every numeric option of every command rejects a number that its type cannot hold, with its name and range, and a
negative number where none is meant. The options are found from the help pages.

    options_test.py --kvscope PROGRAM
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402
from examples_test import examples  # noqa: E402
from help_test import pages  # noqa: E402
from program import kvscope  # noqa: E402

# The types of values in the help pages: whole numbers, and all others.
WHOLE = {"N", "BYTE", "BYTES", "BITS", "KEYS", "N,...", "N,N,...", "N,N,N,N", "X[,Y[,Z]]", "ROWS,ELEMENTS", "SECONDS"}
OTHER = {"A", "AXES", "CHECK,", "CHECK,...", "COMMAND", "DIR", "ERROR", "FILE", "FIRST", "FIRST:LAST", "HEX", "KEY",
         "KEY=N,...", "KIND", "KIND,...", "LAYOUT", "LIST", "MASK", "MODE", "N=FILE", "NAME", "NAME=FILE",
         "NAME=FILE[:TYPE]", "N[,M]", "PLACE", "POLICY", "SCENARIO", "SUITE", "TEXT", "TYPE", "UUID", "VALUE",
         "WHICH", "X"}
# Options whose numbers may be negative: a seed, coordinates of a box, rows of a gather, its first column.
SIGNED = {("import", "--seed"), ("tma copy", "--at"), ("tma gather4", "--rows"), ("tma gather4", "--column")}
TOO_LARGE = "99999999999999999999"  # 2^64 is about 1.8e19


def typed_options(page):
    """[(option, type of its value, its help)] of a page."""
    found = []
    for line in page.splitlines():
        option = re.match(r"  (?:-\w, )?(--[\w-]+) (\S+)", line)
        if option and re.fullmatch(r"[A-Z][A-Z,.:=\[\]0-9]*", option[2]):
            found.append([option[1], option[2], line])
        elif found and line.startswith("        "):
            found[-1][2] += " " + line.strip()
    return found


class Options(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = {" ".join(words): page for words, page in pages().items() if words}

    def whole_options(self):
        for command, page in self.pages.items():
            for option, kind, text in typed_options(page):
                self.assertIn(kind, WHOLE | OTHER, f"{command} {option}: add the type to one of the lists of this test")
                if kind in WHOLE:
                    yield command, option, text

    def test_numbers_that_no_type_holds(self):
        count = 0
        for command, option, _ in self.whole_options():
            for value in (TOO_LARGE, "-" + TOO_LARGE):
                count += 1
                with self.subTest(command=command, option=option, value=value):
                    done = kvscope(*command.split(), f"{option}={value}")
                    self.assertEqual(done.returncode, 2, done.stdout)
                    self.assertEqual(done.stdout, "")
                    self.assertRegex(done.stderr, rf"command line: {option}: {value} (is outside \[-?\d+, \d+\]|is below -?\d+)"
                                     rf"|{option}: {value} is not a number from "
                                     rf"|{option}: '{value}' is not a (whole number|number of seconds) from \d")
        self.assertGreater(count, 150)

    def test_empty_values(self):
        """A script's "$N" that is not set. It was the number 0, or an option that was not given."""
        count = 0
        for command, page in self.pages.items():
            for option, value in re.findall(r"^  (?:-\w, )?(--[\w-]+) (\S+)", page, re.MULTILINE):
                count += 1
                with self.subTest(command=command, option=option):
                    done = kvscope(*command.split(), option, "", *(["1", "x"] if value == "FIRST" else []))
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertEqual(done.stderr, f"kvscope: command line: {option}: the value is empty: write one, or leave it out: see "
                                                  f"'kvscope {command} --help'\n")
        self.assertGreater(count, 400)
        self.assertEqual(kvscope("ptx", "run", "").stderr,
                         "kvscope: command line: FILE: the value is empty: write one, or leave it out: see 'kvscope ptx run --help'\n")

    def test_lists_have_no_empty_place_and_end_before_the_next_word(self):
        """1,,2 was read as 1,2, and the word behind a list, such as the command's file, as a part of it."""
        count = 0
        for command, option, _ in self.whole_options():
            kind = dict((name, kind) for name, kind, _ in typed_options(self.pages[command]))[option]
            if "," not in kind:
                continue
            count += 1
            for text in ("1,,2", ",1", "1,", ","):
                with self.subTest(command=command, option=option, text=text):
                    done = kvscope(*command.split(), option, text)
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertIn(f"command line: {option}: '{text}' is not a list of whole numbers with commas between them: see", done.stderr)
            with self.subTest(command=command, option=option):
                done = kvscope(*command.split(), option, "1", "/no/such/file")
                self.assertNotIn(f"{option}:", done.stderr)
        self.assertGreater(count, 8)
        for command, option, value in (("ptx run", "--check", "race"), ("ptx run", "--event-kinds", "read"), ("trace diff", "--kinds", "copy")):
            done = kvscope(*command.split(), option, value, "/no/such/file")
            self.assertNotIn("'/no/such/file' is not", done.stderr)
        for option in ("--grid", "--block", "--cluster"):
            done = kvscope("ptx", "run", f"{option}=1,2,3,4", "x")
            self.assertIn(f"{option}: '1,2,3,4' has 4 numbers: at most 3: see", done.stderr)
        self.assertIn("--cluster: 0 is below 1: see", kvscope("ptx", "run", "--cluster=2,0", "x").stderr)

    def test_negative_numbers(self):
        """-1, or -2 where -1 has a meaning, after the last example of the page, which works without it. The examples of `kernels`
        and `reduce` run for minutes; what follows the program of `cuda`, and all options of `nvcc`, belong to them."""
        count = 0
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(program.SOURCE, "apps"), os.path.join(folder, "apps"))
            os.mkdir(os.path.join(folder, ".bin"))
            os.symlink(program.KVSCOPE, os.path.join(folder, ".bin", "kvscope"))
            environment = {**os.environ, "PATH": f"{folder}/.bin:/usr/bin:{os.environ['PATH']}"}

            def run(line):
                return subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True,
                                      timeout=120, check=False, stdin=subprocess.DEVNULL)
            prepared = set()
            for command, option, text in self.whole_options():
                lines = examples(self.pages[command])
                base = [line for line in lines if f"kvscope {command} " in line]
                if command.startswith(("kernels", "reduce", "cuda", "nvcc")) or not base or (command, option) in SIGNED:
                    continue
                if command not in prepared:
                    prepared.add(command)
                    for line in lines:
                        run(line)
                line = re.sub(rf"{option}[ =]\S+", "", re.sub(r"\s+#.*", "", base[-1]))
                line = line.removesuffix(" || true")  # lab check: a starter has no points yet
                if command == "explain" and option == "--shared-address":
                    line = re.sub(r"--(lane|register) \S+", "", line)
                value = "-2" if "-1" in text else "-1"
                if (command, option) == ("explain", "--token"):
                    line = re.sub(r"--(lane|register) \S+", "", line)
                count += 1
                with self.subTest(command=command, option=option, value=value):
                    done = run(f"{line} {option}={value}")
                    self.assertEqual(done.returncode, 2, f"{line} {option}={value}\n{done.stdout}{done.stderr}")
                    self.assertTrue(done.stderr)
                    for said in done.stderr.splitlines():
                        self.assertTrue(said.startswith("kvscope: "), done.stderr)
        self.assertGreater(count, 70)

    def test_the_ends_of_the_ranges_are_accepted(self):
        """9223372036854775807 is converted; whether a command accepts it is tested elsewhere."""
        done = kvscope("import", "x", f"--seed={2**63 - 1}")
        self.assertNotIn("--seed", done.stderr)
        done = kvscope("trace", "show", "x", "--events", TOO_LARGE, TOO_LARGE)
        self.assertIn(f"{TOO_LARGE} is outside [", done.stderr)
        done = kvscope("import", "x", f"--seed={2**64}")
        self.assertIn(f"--seed: {2**64} is outside [", done.stderr)
        done = kvscope("ptx", "run", "x", "--step=-1")
        self.assertIn(f"--step: -1 is outside [0, {2**64 - 1}]", done.stderr)


if __name__ == "__main__":
    program.main()
