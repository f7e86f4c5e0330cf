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


def reported(mutant):
    """The tools that report the mutant."""
    return [tool for tool in TOOLS if isinstance(mutant.get(tool), int) and mutant[tool] > 0]


def table(mutants):
    """Markdown: what each kind of mutant does in a plain run, and how many of them compute-sanitizer and kvscope report."""
    ran = [m for m in mutants if "left out" not in m["plain"]]
    rows = ["| on the GPU, a plain run | kernels | compute-sanitizer reports | the virtual GPU rejects |", "|---|---|---|---|"]
    for kind, what in (("values", "an address or a formula"), ("reports", "a barrier, a wait, a fence or a bound")):
        for outcome, text in (("wrong", "wrong output"), ("hangs", "no end"), ("fault", "an error of the driver"),
                              ("right", "right output")):
            some = [m for m in ran if (m["virtual"] == "values") == (kind == "values") and m["plain"].startswith(outcome)]
            if some:
                tools = "not run" if outcome == "hangs" else sum(bool(reported(m)) for m in some)
                rows.append(f"| mistake in {what}: {text} | {len(some)} | {tools} | {len(some)} |")
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", metavar="FILE", help="print the table of a file that --out wrote, and end")
    parser.add_argument("--program", help="the built mutants_on_gpu")
    parser.add_argument("--out", help="the file to write")
    parser.add_argument("--sanitizer", help="compute-sanitizer; without it, plain runs only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=20, help="seconds after which a plain run hangs")
    asked = parser.parse_args()
    if asked.table:
        print(table(json.loads(pathlib.Path(asked.table).read_text())), end="")
        return 0
    if not asked.program or not asked.out:
        parser.error("--program and --out are required, or --table")
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
    pathlib.Path(asked.out).write_text("[\n" + ",\n".join(json.dumps(m) for m in mutants) + "\n]\n")
    print(table(mutants), end="")
    ran = [m for m in mutants if "left out" not in m["plain"]]
    bad = [m["name"] for m in ran if m["base"] != "right"]
    print("bases that fail:", bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
