#!/usr/bin/env python3
"""Equations in the handouts and hints of the labs, such as "3 * 24 + 2 = 74" or "0.5 * 1 + 1 = 1.5", hold as they are written.

prose_numbers_test.py computes every number from the sizes of its lab. This test needs no program. It also computes the table of the
swizzle in lab 08, which is in a code block. Commands in the handouts are run by tests/apps/docs_test.py.
"""
import ast
import math
import operator
import pathlib
import re
import unittest

COURSE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "labs"
# Numbers, operators and ln, at least one operator or ln; then "= number", once or more.
TERM = r"(?:ln )?\d+(?:\.\d+)?"
SIDE = rf"(?:\(?{TERM}\)?)(?: [-+*/%] \(?{TERM}\)?)*"
EQUATION = re.compile(rf"(?<![\w.\[(/*+%-])(?<![-+*/%] ){SIDE}(?: = {SIDE})+(?![\w\]])(?!\.\d)(?! [-+*/%])")
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Mod: operator.mod}
LEAST_EQUATIONS = 20  # that are found in all handouts: fewer mean that EQUATION no longer finds them


def value(text):
    """The value of a side."""
    def of(node):
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.Call):
            return math.log(of(node.args[0]))
        return node.value
    return of(ast.parse(re.sub(r"ln (\d+(?:\.\d+)?)", r"ln(\1)", text), mode="eval").body)


def tolerance(text):
    """Half a unit of the last decimal that is written, times the whole numbers that it may be multiplied by."""
    decimals = [len(part) for part in re.findall(r"\.(\d+)", text)]
    factors = sum(int(n) for n in re.findall(r"(?<![\d.])\d+(?![\d.])", text))
    return 0.5 * 10 ** -max(decimals) * (1 + factors) if decimals else 1e-9


def handout(lab):
    return next(COURSE.glob(f"{lab}_*/README.md")).read_text(encoding="utf-8")


def one_line(text):
    return re.sub(r"\s+", " ", text)


class HandoutNumbersTest(unittest.TestCase):
    def test_every_equation_holds(self):
        count = 0
        for path in sorted([*COURSE.glob("[0-9]*/README.md"), *COURSE.glob("[0-9]*/hints/*.md")]):
            text = one_line(re.sub(r"(?s)```.*?```", "", path.read_text(encoding="utf-8")).replace("`", ""))
            for found in EQUATION.finditer(text):
                sides = found[0].split(" = ")
                if not any(re.search(r"[-+*/%]|ln", side) for side in sides):
                    continue
                for side in sides[1:]:
                    with self.subTest(file=str(path.relative_to(COURSE)), equation=found[0]):
                        allowed = max(tolerance(one) for one in (sides[0], side))
                        self.assertAlmostEqual(value(sides[0]), value(side), delta=allowed)
                count += 1
        self.assertGreaterEqual(count, LEAST_EQUATIONS)

    def test_a_wrong_equation_is_found(self):
        found = EQUATION.search("the row is 3 * 24 + 2 = 75, and")
        self.assertEqual(found[0], "3 * 24 + 2 = 75")
        self.assertNotEqual(*map(value, found[0].split(" = ")))

    def test_08_places_of_the_first_rows(self):
        lines = handout("08").split("\n")
        for row in range(4):
            shown = next(line for line in lines if re.match(rf" *{row} \|", line)).split("|")[1].split()
            self.assertEqual([int(n) for n in shown], [row * 128 + (chunk ^ row) * 16 for chunk in range(8)])


if __name__ == "__main__":
    unittest.main()
