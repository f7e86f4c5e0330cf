"""Tables of what `llvm-cov export` prints, and the programs of a test by what `ctest --show-only=json-v1` prints: called by coverage.sh.

A branch is one outcome, true or false, of one condition in the source. It is taken if any instantiation of a template takes it. Conditions
that the compiler decides are left out: `if constexpr`, `while (true)`, and comparisons that `= default` generates.
"""
import collections
import difflib
import json
import os
import re
import sys

BEGIN, END = "<!-- coverage: begin; written by tests/coverage.sh --update-docs -->", "<!-- coverage: end -->"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DECIDED = re.compile(r"\bif constexpr\b|\bwhile \(true\)|\) (const )?= default;")


def conditions(file, text):
    """{(line, column): [times true, times false]} of the conditions of one file."""
    found = collections.defaultdict(lambda: [0, 0])
    for line, column, _, _, true_count, false_count, *_ in file.get("branches", []):
        if not DECIDED.search(text[line - 1]):
            found[line, column][0] += true_count
            found[line, column][1] += false_count
    return found


def sources(files):
    """(path in the project, lines of text, conditions) of each file of the project outside of tests."""
    for file in files:
        name = os.path.relpath(file["filename"], ROOT)
        if name.startswith(("..", "tests", "build")):
            continue
        with open(file["filename"], encoding="utf-8") as source:
            text = source.read().split("\n")
        yield name, text, conditions(file, text)


def folders(files):
    """[(folder, branches, taken)] of the folders that have branches. One at the top counts all below it, the others only their own files."""
    sums = collections.defaultdict(lambda: [0, 0])
    for name, _, found in sources(files):
        for folder in {os.path.dirname(name), name.split("/")[0]}:
            sums[folder][0] += 2 * len(found)
            sums[folder][1] += sum(count > 0 for counts in found.values() for count in counts)
    return [(folder, count, taken) for folder, (count, taken) in sorted(sums.items()) if count]


def print_folders(rows):
    print(f"{'folder':<36} {'branches':>9} {'taken':>9} {'share':>8}")
    for folder, count, taken in rows:
        print(f"{folder:<36} {count:>9} {taken:>9} {100 * taken / count:>6.1f} %")


def update_page(rows, page):
    """Writes the table between its two comments. Left out are the folders at the top, and those named detail, which hold headers."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit(f"{page}: has no place for the table: a line {BEGIN!r}, and a line {END!r}")
    table = [f"| `{folder}` | {count:,} | {100 * taken / count:.1f} % |" for folder, count, taken in rows
             if "/" in folder and not folder.endswith("/detail")]
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    with open(page, "w", encoding="utf-8") as file:
        file.write("\n".join([before + BEGIN, "", "| folder | branches | taken |", "|---|---:|---:|", *table, "", END + after]))


def lines(files, wanted):
    """Lines with an outcome that no test takes."""
    for name, text, found in sources(files):
        if not name.startswith(tuple(wanted)):
            continue
        for (line, column), counts in sorted(found.items()):
            missing = [outcome for outcome, count in zip(("true", "false"), counts) if count == 0]
            if missing:
                print(f"{name}:{line}:{column}: never {' or '.join(missing)}: {text[line - 1].strip()[:100]}")


def programs(tests, build, names):
    """Prints the programs of the build folder in the commands and environments of these tests. An unknown name ends the program with the nearest one."""
    found, missing = set(), []
    for name in names:
        test = next((test for test in tests if test["name"] == name), None)
        if test is None:
            near = difflib.get_close_matches(name, [test["name"] for test in tests], 1)
            missing.append(f"'{name}' is not a test" + (f"; did you mean '{near[0]}'?" if near else ""))
            continue
        words = list(test.get("command", []))
        for item in test.get("properties", []):
            if item["name"] == "ENVIRONMENT":
                words += [word for value in item["value"] for word in value.partition("=")[2].split(":")]
        # Test programs that another test runs are listed before they are built, so the file need not exist.
        found |= {os.path.relpath(word, build) for word in words if word.startswith(build + os.sep)}
    if missing:
        sys.exit("\n".join(missing))
    if not found:
        sys.exit(f"{', '.join(names)}: run no program of {build}")
    print("\n".join(sorted(found)))


def main():
    if "--programs" in sys.argv:
        build, *names = sys.argv[sys.argv.index("--programs") + 1:]
        programs(json.load(sys.stdin)["tests"], build, names)
        return
    files = json.load(sys.stdin)["data"][0]["files"]
    if "--lines" in sys.argv:
        lines(files, sys.argv[sys.argv.index("--lines") + 1:])
        return
    rows = folders(files)
    print_folders(rows)
    if "--page" in sys.argv:
        update_page(rows, sys.argv[sys.argv.index("--page") + 1])


if __name__ == "__main__":
    main()
