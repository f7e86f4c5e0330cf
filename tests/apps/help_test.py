#!/usr/bin/python3
"""The help page of every command, and the completion scripts. The commands are found from the help pages.

    help_test.py --kvscope PROGRAM
"""
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, kvscope  # noqa: E402


def section(page, title):
    """The lines below a title of a help page, up to the next empty line."""
    return page.partition(f"\n{title}:\n")[2].partition("\n\n")[0].splitlines()


def command_titles(page):
    """The headings of a help page under which commands are listed."""
    return re.findall(r"(?m)^(Subcommands|Commands that .*|Other commands):$", page)


def commands(page):
    """The commands of a help page, by name. The further lines of a description have a deeper indent."""
    return [name for title in command_titles(page)
            for name in re.findall(r"(?m)^  (\w+) ", "\n".join(section(page, title)))]


def description(page):
    """What comes before "Usage:", in one line."""
    return " ".join(page.partition("\nUsage: ")[0].splitlines())


def usage(page):
    return page.partition("\nUsage: ")[2].partition("\n")[0]


def help_of(path):
    """The help page of a program that has no subcommands."""
    return subprocess.run([path, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout


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
    return (re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", page),
            [line.split()[0] for line in section(page, "Positionals") if line[2] != " "])


class Help(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = pages()

    def test_has_the_commands_of_the_manual(self):
        self.assertEqual({" ".join(words) for words in self.pages} - {""},
                         {"run", "explain", "golden", "verify", "diagnose", "merge", "lint", "reduce", "import", "convert", "trace", "trace show", "trace diff",
                          "scenario", "scenario check", "scenario schema", "scenario presets", "layout",
                          "layout list", "layout show", "layout detect", "layout diff", "dtype",
                          "stage", "tma", "tma check", "tma copy", "tma gather4", "tma barrier", "tma engines", "swizzle", "swizzle table",
                          "swizzle solve", "lds", "lds table", "lds schedule", "fragment", "fragment list", "fragment table",
                          "ptx", "ptx run", "ptx survey", "ptx disasm", "ptx debug", "kernels", "kernels list", "kernels verify", "kernels bench",
                          "lab", "lab list", "lab start", "lab check", "lab hint", "lab pack", "lab grade", "lab report", "cuda", "nvcc",
                          "completion"})

    def test_every_page_says_what_the_command_does_and_takes(self):
        for words, page in self.pages.items():
            with self.subTest(command=words):
                self.assertRegex(description(page), r"^[A-Z].{15,}")
                self.assertTrue(usage(page).startswith(" ".join(("kvscope", *words))), usage(page))
                options, positionals = arguments(page)
                self.assertIn("--help", options)
                for positional in positionals:
                    self.assertIn(positional, usage(page))
                required = [name for name, text in re.findall(r"(?m)^  (--[\w-]+)(.*(?:\n {28}.*)*)", page)
                            if "[required]" in text]
                self.assertEqual(re.findall(r"--[\w-]+", usage(page)), required)

    def test_every_option_is_described_and_no_line_is_too_long(self):
        for words, page in self.pages.items():
            with self.subTest(command=words):
                found = re.findall(r"(?m)^  (?:-\w, )?--[\w-]+.*(?:\n {28}.*)*", page)
                self.assertEqual(len(found), len(arguments(page)[0]))
                for text in found:
                    self.assertRegex(text, r"(?s)  +[A-Za-z0-9][^\n]{8,}", "an option without a description")
                options = page.partition("\nOptions:\n")[2].partition("\nExamples:")[0]
                for line in options.partition("\nLayouts of --input")[0].partition("\nValues of --arg")[0].splitlines():
                    self.assertLessEqual(len(line), 100, line)

    def test_defaults_values_and_conditions_are_shown_in_brackets(self):
        self.assertIn("--trace {off,steps,full}  Events", self.pages[("run",)])
        self.assertRegex(self.pages[("run",)], r"or all \[default:\s+off\]")
        self.assertRegex(self.pages[("golden",)], r"--layout LAYOUT .*\[values:\s+max, nhd,")
        self.assertRegex(self.pages[("golden",)], r"--out FILE .*\[required\]")
        self.assertRegex(self.pages[("ptx", "run")], r"\nOptions of --events:\n(  .*\n)*  --event-lanes ")
        self.assertRegex(self.pages[("trace", "show")], r"--step N .*\s+\[not with --events, --verify\]")

    def test_the_first_page_groups_its_commands_by_task(self):
        titles = command_titles(self.pages[()])
        self.assertGreater(len(titles), 3)
        self.assertEqual(len(set(titles)), len(titles))
        self.assertEqual(titles[-1], "Other commands")
        names = commands(self.pages[()])
        self.assertEqual(len(set(names)), len(names), "a command is in two groups")
        self.assertIn("verify", [line.split()[0] for line in section(self.pages[()], titles[1])])

    def test_every_option_of_a_page_is_known_to_its_command(self):
        # A known option fails for another reason, such as a missing value.
        for words, page in self.pages.items():
            for option in arguments(page)[0]:
                if option not in ("--help", "--version"):
                    self.assertNotIn(f"'{option}' is not an option", kvscope(*words, option).stderr, (words, option))

    def test_help_wins_over_what_else_is_wrong(self):
        for line in [["run", "--help"], ["run", "none.json", "--trace", "full", "--help"], ["golden", "-h"]]:
            self.assertTrue(fine(*line).startswith(self.pages[(line[0],)].splitlines()[0]))

    def test_the_hidden_option_for_the_build_is_not_listed(self):
        self.assertNotIn("--man", self.pages[()])


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
                              ("kvscope golden --layout vllm_l", ["vllm_legacy"]),
                              ("kvscope layout di", ["diff"]),
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
