#!/usr/bin/env python3
"""Numbers in the handouts and hints of the labs.

- Every equation, such as "3 * 24 + 2 = 74" or "0.5 * 1 + 1 = 1.5", holds.
- The examples and answers of labs 02, 03, 06, 08, 09 and 13 are computed from their sizes, and the handout has these numbers.

Commands in the handouts are run by tests/apps/docs_test.py; examples of labs 05, 07, 12 and 14 are computed by tests of their own
(scheduler_run_test.cpp, hunt_kernel_test.cpp, wave_picture_test.cpp, page_size_task_test.cpp).
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

    def test_02_rows_of_the_example(self):
        text, page_size, block_rows, table = handout("02"), 4, 2 * 3 * 4, {0: 3, 1: 0, 2: 1}
        for token in (2, 5, 9):
            page, slot = divmod(token, page_size)
            row = table[page] * block_rows + slot
            self.assertIn(f"| {token} | {page} | {slot} | {table[page]} | {table[page]} * {block_rows} + {slot} = {row} |", text)
        self.assertIn(f"A block has 2 * 3 * 4 = {block_rows} rows", text)

    def test_03_table_of_the_example(self):
        text, pages, null, batch = handout("03"), {0: [5, 2, 7], 1: [0]}, 8, [1, 0, None]
        columns = -(-max(map(len, pages.values())) // 8) * 8 + 16
        self.assertIn(f"the table has 8 + 16 = {columns} columns", one_line(text))
        for row, request in enumerate(batch):
            entries = (pages.get(request, []) + [null] * columns)[:columns]
            self.assertEqual(set(entries[3:]), {null})
            first = " | ".join(map(str, entries[:3]))
            self.assertIn(f"| {row} | {'none' if request is None else request} | {first} | {null} |", text)

    def test_06_state_after_each_tile(self):
        text, state = handout("06"), (-math.inf, 0.0, 0.0)
        for tile, (score, v) in enumerate([(0.0, 0.0), (math.log(2), 3.0)], 1):
            maximum = max(state[0], score)
            factor, weight = math.exp(state[0] - maximum), math.exp(score - maximum)
            state = (maximum, state[1] * factor + weight, state[2] * factor + weight * v)
            row = next(line for line in text.split("\n") if line.startswith(f"| {tile} | "))
            m, shown_factor, total, output = [cell.strip() for cell in row.strip("|").split("|")][1:]
            self.assertAlmostEqual(float(m), state[0], delta=5e-5)
            self.assertEqual(shown_factor, "" if tile == 1 else f"{factor:g}")
            self.assertAlmostEqual(float(total.split("= ")[-1]), state[1])
            self.assertAlmostEqual(float(output.split("= ")[-1]), state[2])
        self.assertIn(f"The output is 3 / 1.5 = {state[2] / state[1]:g}", text)
        self.assertIn(f"= {state[0] + math.log(state[1]):.4f}.", text)

    def test_09_addresses_and_sectors(self):
        text = one_line(handout("09"))
        page_size, layers, row, table = 4, 2, 64, [0, 11, 8]
        page, slot = divmod(11, page_size)
        stride = 2 * layers * page_size * row
        place = table[page] * stride + slot * row
        self.assertIn(f"token 11 is in page {page}, slot {slot}, block {table[page]}", text)
        self.assertIn(f"{stride} elements: {table[page]} * {stride} + {slot} * {row} = {place}", text)

        def sectors(addresses):  # of vectors of 16 bytes
            return len({a // 32 for a in addresses})

        one_row, many_rows = sectors(16 * lane for lane in range(16)), sectors(4096 * lane for lane in range(32))
        self.assertIn(f"| 16 lanes read one row | 256 adjacent bytes | {one_row} | 256 of {32 * one_row} |", text)
        self.assertIn(f"| each lane reads another row | 16 bytes of 32 rows | {many_rows} | 512 of {32 * many_rows} |", text)
        of_row = sectors(16 * vector for vector in range(1024 * 2 // 16))
        self.assertIn(f"A row of 1024 elements needs {of_row} sectors of `pool` and {of_row} of `out`, and one each of `tokens` and "
                      f"`table`: {2 * of_row + 2}.", text)
        for elements in (64, 1024):
            self.assertIn(f"with {elements} elements it has {elements * 2 // 16}", text.replace("elements it has 8 vectors", "elements it has 8"))
        self.assertIn("each lane copies four", text)
        self.assertEqual(1024 * 2 // 16 // 32, 4)

    def test_13_addresses_heads_and_sectors(self):
        text = one_line(handout("13"))
        page, slot = divmod(37, 16)
        self.assertEqual(page, 2)
        self.assertIn(f"element {3 * 8192 + (slot * 4 + 2) * 64} = 3 * 8192 + {slot} * 4 * 64 + 2 * 64", text)
        heads = [head for head in range(6) if head // (6 // 3) == 1]
        self.assertIn(f"heads {heads[0]} and {heads[1]}: KV head = head / (6 / 3)", text)
        of_key, of_output = 64 * 2 // 32, 64 * 4 // 32
        self.assertIn(f"{of_key} sectors of 32 bytes for each key's row of K and of V, {of_key} for the query, {of_output} for the output", text)

    def test_08_places_of_the_first_rows(self):
        lines = handout("08").split("\n")
        for row in range(4):
            shown = next(line for line in lines if re.match(rf" *{row} \|", line)).split("|")[1].split()
            self.assertEqual([int(n) for n in shown], [row * 128 + (chunk ^ row) * 16 for chunk in range(8)])


if __name__ == "__main__":
    unittest.main()
