#!/usr/bin/env python3
"""Every number in the prose of the handouts, hints and staff notes is computed: prose/claims.py says how.

    prose_numbers_test.py --kvscope PROGRAM

A number that is written without a claim fails, and so does a number that differs from what its claim computes. One test changes every
number of every text, one at a time. Commands and figures are run by tests/apps/docs_test.py and figures_test.py.
"""
import importlib
import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "prose"))
import command_line  # noqa: E402
import claims  # noqa: E402
import facts  # noqa: E402


class Text:
    """One text of a lab, with its claims."""
    def __init__(self, lab, name, text, pieces):
        self.lab, self.name, self.line, self.pieces = lab, name, claims.plain(text), pieces

    def faults(self, line=None):
        return claims.faults_of(self.lab, self.name, self.line if line is None else line, self.pieces)


def texts():
    """Every text of every lab."""
    found = []
    for number in range(1, claims.LABS + 1):
        lab = claims.Lab(number)
        written = {name: claims.Claims(lab) for name in lab.texts()}
        hints = {int(name[-4]): each for name, each in written.items() if name.startswith("hints/")}
        importlib.import_module(f"lab_{number:02}").write(lab, written["README.md"], written["NOTES.md"], hints)
        found += [Text(lab, name, text, written[name].pieces) for name, text in lab.texts().items()]
    return found


def changed(number):
    """Another number, written in the same way: "2,409" -> "2,408", "three" -> "four"."""
    words = list(claims.WORDS.values())
    if number.lower() in words:
        return words[(words.index(number.lower()) + 1) % len(words)]
    last = int(number[-1], 16)
    return number[:-1] + str(last - 1 if last else 1)


class ProseNumbersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.texts = texts()

    def test_every_number_is_computed(self):
        for text in self.texts:
            with self.subTest(lab=text.lab.folder.name, file=text.name):
                self.assertEqual("\n".join(text.faults()), "")

    def test_a_change_of_any_number_is_found(self):
        count = 0
        for text in self.texts:
            by_form = set(claims.covered_by_form(text.lab, text.name, text.line)[0])
            for found in claims.NUMBER.finditer(text.line):
                if found.span() in by_form:
                    continue  # another lab, task or hint may exist; times and points are changed below
                other = text.line[:found.start()] + changed(found[0]) + text.line[found.end():]
                around = text.line[max(0, found.start() - 40):found.end() + 20]
                self.assertNotEqual(text.faults(other), [], f"{text.lab.folder.name}/{text.name}: '{found[0]}' in '{around}'")
                count += 1
        self.assertGreater(count, 1000)

    def test_a_new_number_is_found(self):
        for text in self.texts:
            faults = text.faults(text.line + " A block has 987 rows.")
            self.assertEqual(len(faults), 1)
            self.assertRegex(faults[0], r"^'987' in .*A block has 987 rows.* has no claim: compute it with claim\(")

    def test_times_points_and_references_are_those_of_the_course(self):
        def faults(lab, name, old, new):
            text, = [each for each in self.texts if each.lab.number == lab and each.name == name]
            self.assertIn(old, text.line)
            return "\n".join(text.faults(text.line.replace(old, new, 1)))

        self.assertIn("the time is not 60 minutes", faults(2, "README.md", "| time | 60 minutes |", "| time | 75 minutes |"))
        self.assertIn("the timing adds up to 65 minutes", faults(2, "NOTES.md", "20 for `populate`", "25 for `populate`"))
        self.assertIn("the table of points is not that", faults(2, "README.md", "| `mla` | 10 |", "| `mla` | 15 |"))
        self.assertIn("names what does not exist", faults(3, "NOTES.md", "Task 4:", "Task 5:"))
        self.assertIn("names what does not exist", faults(5, "README.md", "rules 1, 2 and 5", "rules 1, 2 and 6"))
        self.assertIn("names what does not exist", faults(13, "NOTES.md", "labs 02, 06 and 09", "labs 02, 06 and 19"))
        self.assertIn("names what does not exist", faults(1, "README.md", "then 2 and 3", "then 2 and 4"))
        self.assertIn("the heading '# Hint 2:", faults(1, "hints/1.md", "# Hint 1:", "# Hint 2:"))
        self.assertIn("is not the heading", faults(9, "README.md", "[Lab 10: four broken kernels]", "[Lab 10: five broken kernels]"))

    def test_claims_compute_their_numbers(self):
        for path in sorted((pathlib.Path(__file__).resolve().parent / "prose").glob("lab_*.py")):
            self.assertEqual(claims.literal_values(path), [], path.name)
        each = claims.Claims(self.texts[0].lab)
        for wrong in (lambda: each.claim("A block has 24 rows"), lambda: each.claim("# of # rows", 24), lambda: each.claim("rows"),
                      lambda: each.exempt("2 rows", "a fact"), lambda: each.message("the row is 24")):
            self.assertRaises(AssertionError, wrong)

    def test_exemptions_have_a_number(self):
        for text in self.texts:
            for piece, spans, _ in text.pieces:
                self.assertNotEqual(spans, [], piece)
                self.assertTrue(re.search(claims.NUMBER, piece), piece)


if __name__ == "__main__":
    command_line.run_tests(facts, "PROGRAM")
