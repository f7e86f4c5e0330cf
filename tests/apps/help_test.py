#!/usr/bin/python3
"""Every command's help page and the completion scripts, for whatever commands there are: nothing is listed here twice.

    help_test.py --kvscope PROGRAM
"""
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, kvscope  # noqa: E402


def commands(page):
    """The names under "Subcommands:" of a help page; descriptions that go on in a next line are indented deeper."""
    listed = page.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"(?m)^  (\w+) ", listed)


def pages():
    """{words of the command: its help page}, the program itself included."""
    found, rest = {}, [()]
    while rest:
        words = rest.pop()
        found[words] = fine(*words, "--help")
        rest += [(*words, name) for name in commands(found[words])]
    return found


def arguments(page):
    """(options, positionals) of a help page."""
    return re.findall(r"(?m)^  (?:-\w,)?(--[\w-]+)", page), re.findall(r"(?m)^  ([A-Z]+)(?:\(\d+x\))? ", page)


class Help(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = pages()

    def test_has_the_commands_of_the_manual(self):
        self.assertEqual({" ".join(words) for words in self.pages} - {""},
                         {"run", "explain", "golden", "verify", "merge", "trace", "trace show", "trace diff",
                          "scenario", "scenario check", "scenario schema", "scenario presets", "layout", "dtype",
                          "stage", "tma", "tma check", "tma copy", "tma gather4", "tma barrier", "tma engines", "swizzle", "swizzle table",
                          "swizzle solve", "lds", "lds table", "lds schedule", "fragment", "fragment list", "fragment table",
                          "ptx", "ptx run", "ptx survey", "ptx disasm", "ptx debug", "kernels", "kernels list", "kernels verify", "kernels bench",
                          "completion"})

    def test_every_page_says_what_the_command_does_and_takes(self):
        for words, page in self.pages.items():
            with self.subTest(command=words):
                description, usage = page.splitlines()[:2]
                self.assertRegex(description, r"^[A-Z].{15,}")
                self.assertTrue(usage.startswith("Usage: " + " ".join(("kvscope", *words))), usage)
                options, positionals = arguments(page)
                self.assertIn("--help", options)
                for positional in positionals:
                    self.assertIn(positional, usage)
                for line in page.splitlines():
                    if re.match(r"  (-\w,)?--[\w-]+(?=  +)", line):
                        self.assertRegex(line, r"^  \S+(  +\S.*)?$")

    def test_every_option_of_a_page_is_known_to_its_command(self):
        # An unknown option would be named as "not expected"; a known one lacks its value or something else.
        for words, page in self.pages.items():
            for option in arguments(page)[0]:
                if option not in ("--help", "--version"):
                    self.assertNotIn("was not expected: " + option, kvscope(*words, option).stderr, (words, option))

    def test_help_wins_over_what_else_is_wrong(self):
        for line in [["run", "--help"], ["run", "none.json", "--trace", "full", "--help"], ["golden", "-h"]]:
            self.assertTrue(fine(*line).startswith(self.pages[(line[0],)].splitlines()[0]))

    def test_version_is_one_line(self):
        self.assertRegex(fine("--version"), r"\Akvscope \d+\.\d+\.\d+\n\Z")


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script = fine("completion", "bash")

    def complete(self, line):
        """What bash offers for the last word of the line."""
        asked = self.script + ('\nread -ra COMP_WORDS <<< "$1"; [[ $1 == *" " ]] && COMP_WORDS+=("")\n'
                               'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _kvscope; printf "%s\\n" "${COMPREPLY[@]}"\n')
        done = subprocess.run(["bash", "--noprofile", "--norc", "-c", asked, "bash", line], capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_is_a_script_that_bash_can_read(self):
        subprocess.run(["bash", "-n"], input=self.script, text=True, check=True)

    def test_ends_words(self):
        for line, offered in [("kvscope tr", ["trace"]), ("kvscope trace d", ["diff"]),
                              ("kvscope run --tr", ["--trace"]), ("kvscope run --trace st", ["steps"]),
                              ("kvscope golden --layout v", ["vllm_legacy"]),
                              ("kvscope scenario ", ["check", "schema", "presets"]), ("kvscope x", [])]:
            with self.subTest(line=line):
                self.assertEqual(self.complete(line), offered)

    def test_offers_every_command_and_every_option(self):
        for words, page in pages().items():
            line = " ".join(("kvscope", *words))
            with self.subTest(line=line):
                self.assertEqual(sorted(self.complete(line + " --")), sorted(arguments(page)[0]))
                below = commands(page)
                if below:
                    self.assertEqual(self.complete(line + " "), below)


if __name__ == "__main__":
    program.main()
