"""Tables of what `llvm-cov export` prints: called by coverage.sh."""
import collections
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def folders(files):
    """Sums of branches per folder."""
    sums = collections.defaultdict(lambda: [0, 0])
    for file in files:
        name = os.path.relpath(file["filename"], ROOT)
        branches = file["summary"]["branches"]
        if name.startswith("..") or name.startswith(("tests", "build")):
            continue
        for folder in {os.path.dirname(name), name.split("/")[0]}:
            sums[folder][0] += branches["count"]
            sums[folder][1] += branches["covered"]
    print(f"{'folder':<36} {'branches':>9} {'taken':>9} {'share':>8}")
    for folder, (count, covered) in sorted(sums.items()):
        if count:
            print(f"{folder:<36} {count:>9} {covered:>9} {100 * covered / count:>6.1f} %")


def lines(files, wanted):
    """Lines with an outcome that no test takes."""
    for file in files:
        name = os.path.relpath(file["filename"], ROOT)
        if not any(name.startswith(one) for one in wanted):
            continue
        missing = collections.defaultdict(set)
        for line, column, _, _, true_count, false_count, *_ in file.get("branches", []):
            if not true_count:
                missing[line, column].add("true")
            if not false_count:
                missing[line, column].add("false")
        with open(file["filename"], encoding="utf-8") as source:
            text = source.read().split("\n")
        for (line, column), outcomes in sorted(missing.items()):
            print(f"{name}:{line}:{column}: never {' or '.join(sorted(outcomes))}: {text[line - 1].strip()[:100]}")


def main():
    files = json.load(sys.stdin)["data"][0]["files"]
    if "--lines" in sys.argv:
        lines(files, sys.argv[sys.argv.index("--lines") + 1:])
    else:
        folders(files)


if __name__ == "__main__":
    main()
