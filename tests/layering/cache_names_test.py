#!/usr/bin/python3
"""Holds the table of names in docs/03_cache_types.md to the headers: what it promises must be declared where it says.

    cache_names_test.py ROOT

A row is | names in the kernels | names here | header |, names in backticks. "The same" in the middle stands for the
names on the left. A name counts when it is a whole identifier of the header outside its comments.
Prints one line a fault.
"""
import pathlib
import re
import sys

PAGE = "docs/03_cache_types.md"
TITLE = ["in the kernels", "here", "header"]
NAME = re.compile(r"`(\w+)`")
PATH = re.compile(r"`([\w./]+\.h)`")
FEWEST_ROWS = 40  # a table that is not found would promise nothing, and nothing is easily held


def rows(page):
    """Yields (line number, cells) of the table's rows."""
    inside = False
    for number, line in enumerate(page.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if cells == TITLE:
            inside = True
        elif not cells:
            inside = False
        elif inside and not set("".join(cells)) <= set("-"):
            yield number, cells


def identifiers(header):
    return set(re.findall(r"\w+", re.sub(r"//[^\n]*", "", header.read_text(encoding="utf-8"))))


def main():
    root = pathlib.Path(sys.argv[1])
    faults, names_held, rows_held = [], 0, 0
    for number, cells in rows((root / PAGE).read_text(encoding="utf-8")):
        rows_held += 1
        there, here, place = cells if len(cells) == 3 else ("", "", "")
        path = PATH.fullmatch(place)
        names = NAME.findall(here) + (NAME.findall(there) if here.startswith("the same") else [])
        if path is None or not (root / path[1]).exists() or not names:
            faults.append(f"{PAGE}:{number}: a row is names, names here, and a header that exists")
            continue
        names_held += len(names)
        declared = identifiers(root / path[1])
        faults += [f"{PAGE}:{number}: `{name}` is not in {path[1]}: correct the table" for name in names
                   if name not in declared]
    if rows_held < FEWEST_ROWS:
        faults.append(f"{PAGE}: {rows_held} rows of names, fewer than {FEWEST_ROWS}: is its title row another one now?")
    print("\n".join(faults + [f"{names_held} names in {rows_held} rows, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
