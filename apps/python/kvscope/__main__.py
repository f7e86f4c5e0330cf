"""python -m kvscope replay FOLDER: judges the calls that kv.capture kept."""
from __future__ import annotations

import argparse
import html
import sys
from typing import Sequence

from ._errors import Error
from ._golden import Verdict
from ._replay import KeptCall, calls


def line_of(call: KeptCall, verdict: Verdict) -> str:
    """One line for a call, and for a failing one its best cause."""
    worst = max((t["worst"]["error_over_allowed"] for t in verdict.report["tensors"] if t.get("worst")), default=0)
    words = f"{'pass' if verdict.passed else 'FAIL'}  {call}: largest error {worst:.3g}x the allowed error"
    if verdict.diagnosis is not None and verdict.diagnosis.causes:
        cause = verdict.diagnosis.causes[0]
        words += f"\n      {cause.place}: {cause.cause}\n      look at {cause.look_at}"
    return words


def replay(folder: str, accuracy: str, profile: str | None, page: str | None) -> int:
    """Judges each kept call and prints a line for it. 0: all pass; 1: one fails."""
    failed, parts = 0, []
    found = calls(folder)
    for call in found:
        verdict = call.verdict(accuracy=accuracy, profile=profile)
        failed += not verdict.passed
        print(line_of(call, verdict), flush=True)
        parts.append(f"<h2>{html.escape(str(call))}</h2>{verdict._repr_html_()}")
    print(f"{len(found) - failed} of {len(found)} calls pass")
    if page is not None:
        with open(page, "w", encoding="utf-8") as file:
            file.write(f"<!doctype html><meta charset=\"utf-8\"><title>kvscope</title>{''.join(parts)}\n")
    return 1 if failed else 0


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kvscope", description="Checks of attention kernels, from Python.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("replay", help="judge the calls that kv.capture kept",
                              description="Computes the golden output of each call that kv.capture kept, and compares the "
                                          "backend's output with it. Exit status: 0 all calls pass, 1 one fails, "
                                          "2 bad input.")
    one.add_argument("folder", help="the folder of kv.capture.to()")
    one.add_argument("--accuracy", choices=("strict", "fast"), default="strict",
                     help="fast: several times faster; the golden's error is added to the bounds")
    one.add_argument("--profile", metavar="NAME", help="the fixed tolerance of a test suite: flashattention, flashinfer, "
                                                       "vllm, flashmla or torch")
    one.add_argument("--html", metavar="FILE", help="write the verdicts with their maps to a page")
    given = parser.parse_args(words)
    try:
        return replay(given.folder, given.accuracy, given.profile, given.html)
    except (Error, OSError) as error:
        print(f"kvscope: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
