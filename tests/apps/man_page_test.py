#!/usr/bin/python3
"""The man pages: groff accepts them without a warning, and they hold every command and option of the help pages.

    man_page_test.py --kvscope PROGRAM --viewer PROGRAM --gpu-check PROGRAM
"""
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402
from help_test import arguments, description, help_of, pages  # noqa: E402

MACROS = {"TH", "SH", "SS", "PP", "TP", "BR", "nf", "fi"}
ESCAPES = re.compile(r"\\(?:-|&|e|\(ha|\(ti|f[BIR])")


def man_page(path):
    done = subprocess.run([path, "--man"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "", done.stderr
    return done.stdout


def parts(page):
    """{title of a .SH or .SS: its lines}, with \\- as a plain minus."""
    found, title = {}, None
    for line in page.splitlines():
        heading = re.match(r"\.S[HS] (.*)", line)
        if heading:
            title = plain(heading[1])
            found[title] = []
        elif title is not None:
            found[title].append(plain(line))
    return found


def plain(line):
    text = line.replace(r"\(ha", "^").replace(r"\(ti", "~").replace(r"\&", "").replace(r"\-", "-").replace(r"\e", "\\")
    return re.sub(r"\\f[BIR]", "", text)


def options(lines):
    """The names under the .TP of a part: ["-h, --help", "--kv {k,v}"]."""
    return [line for before, line in zip(lines, lines[1:]) if before == ".TP"]


class ManPage:
    """One program's page; subclasses give `PATH` and `pages()`, the help pages by the words of their command."""
    NAME = ""

    @classmethod
    def setUpClass(cls):
        cls.path = cls.program_path()
        if not cls.path:
            raise unittest.SkipTest("built without the viewer")
        cls.page = man_page(cls.path)
        cls.parts = parts(cls.page)

    def test_has_the_sections_of_a_man_page(self):
        self.assertRegex(plain(self.page.splitlines()[0]),
                         rf'^\.TH {self.NAME.upper()} 1 "" "{self.NAME} \d+\.\d+\.\d+" "User Commands"$')
        wanted = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"]
        self.assertEqual([title for title in self.parts if title in wanted], wanted)
        self.assertTrue(all(any(lines) for title, lines in self.parts.items() if title != "COMMANDS"))

    def test_uses_only_macros_and_escapes_that_every_formatter_has(self):
        for line in self.page.splitlines():
            self.assertNotIn("\\", ESCAPES.sub("", line), line)
            if line.startswith((".", "'")):
                self.assertRegex(line, r"^\.(\w\w)( |$)")
                self.assertIn(line[1:3], MACROS)
        self.assertEqual(self.page.count("\n.nf\n"), self.page.count("\n.fi\n"))

    def test_groff_accepts_it_without_a_warning(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed: the checks above are all there is")
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=self.page, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("EXIT STATUS", re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout))

    def test_has_every_command_with_its_description_and_every_option(self):
        for words, page in self.help_pages().items():
            with self.subTest(command=words):
                lines = self.parts[" ".join(words) if words else "OPTIONS"]
                named, positionals = arguments(page)
                listed = "\n".join(options(lines))
                self.assertEqual(re.findall(r"--[\w-]+", listed), named)
                self.assertEqual(re.findall(r"(?m)^[A-Z]+$", listed), positionals)
                if words:
                    self.assertEqual(lines[0].rstrip("."), description(page))

    def test_is_the_same_every_time(self):
        self.assertEqual(self.page, man_page(self.path))


class Kvscope(ManPage, unittest.TestCase):
    NAME = "kvscope"
    program_path = staticmethod(lambda: program.KVSCOPE)
    help_pages = staticmethod(pages)


class Viewer(ManPage, unittest.TestCase):
    NAME = "kvscope-viewer"
    program_path = staticmethod(lambda: program.VIEWER)
    help_pages = staticmethod(lambda: {(): help_of(program.VIEWER)})


class GpuCheck(ManPage, unittest.TestCase):
    NAME = "gpu-check"
    program_path = staticmethod(lambda: program.GPU_CHECK)
    help_pages = staticmethod(lambda: {(): help_of(program.GPU_CHECK)})


if __name__ == "__main__":
    program.main()
