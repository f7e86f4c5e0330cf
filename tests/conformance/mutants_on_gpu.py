#!/usr/bin/env python3
"""The kept mutants on a GPU: what a plain run of each shows, and what compute-sanitizer's tools report.

    tests/conformance/mutants_on_gpu.py --program mutants_on_gpu --out mutants.json [--sanitizer compute-sanitizer]

The virtual GPU rejects each of them (mutants_test.cpp). Needs a GPU of compute capability 9.0; run it in the root of the
repository. Exit codes: 0 done, 1 a kernel without its mistake fails, 77 no GPU.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")


def run(command, limit):
    """(its output, None) or (None, why there is none)"""
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, "hangs"
    return made.stdout + made.stderr, None


def plain(program, what, number, limit):
    text, why = run([program, what, str(number)], limit)
    if text is None:
        return why
    lines = [line for line in text.splitlines() if line.startswith(("right", "wrong", "fault", "left out"))]
    return lines[0] if lines else "ended without a result: " + text[-200:]


def sanitized(sanitizer, tool, program, number, limit):
    """The number of errors that the tool reports, "hangs", or "no summary"."""
    text, why = run([sanitizer, "--tool", tool, program, "run", str(number)], limit)
    if text is None:
        return why
    found = SUMMARY.search(text)
    return int(found[1] or found[2]) if found else "no summary"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--sanitizer", help="compute-sanitizer; without it, plain runs only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=20, help="seconds after which a plain run hangs")
    asked = parser.parse_args()
    listed, _ = run([asked.program, "list"], 60)
    mutants = [dict(zip(("number", "name", "virtual", "mistake"), line.split("\t"))) for line in listed.splitlines()]
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        def each(mutant):
            mutant["base"] = plain(asked.program, "base", mutant["number"], asked.limit)
            mutant["plain"] = plain(asked.program, "run", mutant["number"], asked.limit)
        list(pool.map(each, mutants))
        print("plain runs done", flush=True)
        if any("no GPU" in m["base"] or "cuInit" in m["base"] for m in mutants):
            return 77
        if asked.sanitizer:
            def check(item):
                mutant, tool = item
                mutant[tool] = sanitized(asked.sanitizer, tool, asked.program, mutant["number"], 2 * asked.limit)
            list(pool.map(check, [(m, tool) for m in mutants if m["plain"] != "hangs" and "left out" not in m["plain"]
                                  for tool in TOOLS]))
    pathlib.Path(asked.out).write_text(json.dumps(mutants, indent=1) + "\n")
    ran = [m for m in mutants if "left out" not in m["plain"]]
    kinds = {}
    for m in ran:
        kind = "values" if m["virtual"] == "values" else "reports"
        plainly = m["plain"].split(":")[0]
        tools = "+".join(tool for tool in TOOLS if isinstance(m.get(tool), int) and m[tool] > 0) or "-"
        kinds[kind, plainly, tools] = kinds.get((kind, plainly, tools), 0) + 1
    for key, count in sorted(kinds.items()):
        print(*key, count, sep="\t")
    bad = [m["name"] for m in ran if m["base"] != "right"]
    print("bases that fail:", bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
