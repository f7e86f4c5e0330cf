"""python -m kvscope replay FOLDER: judges the calls that kv.capture kept."""
from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, Sequence

from . import _core
from ._errors import Error, InputError
from ._golden import Golden, Verdict, golden
from ._problem import Problem
from .capture import ABOUT, CANDIDATE, INPUTS


def judge_call(folder: str, accuracy: str = "strict", profile: str | None = None) -> Verdict:
    """The verdict of a kept call."""
    problem = Problem.load(os.path.join(folder, INPUTS))
    g: Golden = golden(problem, accuracy=accuracy)
    candidate = _core.load_bundle(os.path.join(folder, CANDIDATE))
    options: dict[str, Any] = {"profile": profile}
    return Verdict(_core.judge(problem._core, g._core, candidate, options, "on failure"),
                   lambda: _core.errors(problem._core, g._core, candidate, options))


def calls_of(folder: str) -> list[str]:
    """The kept calls in a folder, in order. InputError if there is none."""
    if not os.path.isdir(folder):
        raise InputError(f"{folder} is no folder: pass the one that kv.capture.to() wrote")
    found = sorted(name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name, ABOUT)))
    if not found:
        raise InputError(f"{folder} has no kept call: print the capture to see why calls were left out")
    return [os.path.join(folder, name) for name in found]


def _line(path: str, verdict: Verdict) -> str:
    with open(os.path.join(path, ABOUT), encoding="utf-8") as file:
        about = json.load(file)
    worst = max((t["worst"]["error_over_allowed"] for t in verdict.report["tensors"] if t.get("worst")), default=0)
    layer = "" if about["layer"] is None else f" layer {about['layer']}"
    words = f"{'pass' if verdict.passed else 'FAIL'}  {os.path.basename(path)}  {about['function']}{layer}, call " \
            f"{about['call']}: largest error {worst:.3g}x the allowed error"
    if not verdict.passed and verdict.diagnosis is not None and verdict.diagnosis.causes:
        cause = verdict.diagnosis.causes[0]
        words += f"\n      {cause.place}: {cause.cause}\n      look at {cause.look_at}"
    return words


def replay(folder: str, accuracy: str, profile: str | None, html: str | None) -> int:
    """Judges each kept call and prints one line for it. 0: all pass; 1: one fails."""
    failed, parts = 0, []
    calls = calls_of(folder)
    for path in calls:
        verdict = judge_call(path, accuracy, profile)
        failed += not verdict.passed
        print(_line(path, verdict), flush=True)
        parts.append(f"<h2>{os.path.basename(path)}</h2>{verdict._repr_html_()}")
    print(f"{len(calls) - failed} of {len(calls)} calls pass")
    if html is not None:
        with open(html, "w", encoding="utf-8") as file:
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
