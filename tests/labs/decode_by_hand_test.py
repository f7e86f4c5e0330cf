#!/usr/bin/env python3
"""A failing case of lab 13 can be computed from what `lab check` prints: query, scale, keys and values give the expected number.

    decode_by_hand_test.py --kvscope PROGRAM

Skipped without a CUDA compiler.
"""
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import command_line

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAB = ROOT / "docs" / "labs" / "staff" / "13_paged_decode"
NVCC = ("/usr/local/cuda/bin/nvcc", "/usr/bin/nvcc")  # as apps/labs/compile_cuda.cpp
TESTS = ("one_page", "pages", "last_page", "groups")
PAIR = r"\(([-\d.]+), ([-\d.]+)\)"
KEY = re.compile(rf"key (\d+), block \d+ slot \d+: k {PAIR}  v {PAIR}")


def cases(report):
    """{test: its lines}"""
    found, name = {}, None
    for line in report.splitlines():
        test = re.match(r"  (PASS|FAIL)  (\w+)", line)
        name = test[2] if test else name
        found.setdefault(name, []).append(line)
    return found


def fault_of(lines):
    text = "\n".join(lines)
    query = re.search(rf"q {PAIR}, scale ([\d.]+); dims 2 to 63 of q, K and V are 0", text)
    last = re.search(r"dim (\d+): expected ([-\d.e]+), your kernel gave ([-\d.e]+)", text)
    keys = [[float(number) for number in match.groups()] for match in KEY.finditer(text)]
    if not query or not last or not keys:
        return f"the case lacks its inputs: {text}"
    if [key[0] for key in keys] != list(range(len(keys))) or not 4 <= len(keys) <= 8:
        return f"the keys are not numbered from 0, or not 4 to 8: {text}"
    a, b, scale = map(float, query.groups())
    weights = [math.exp(scale * (a * k0 + b * k1)) for _, k0, k1, _, _ in keys]
    dim, expected, given = int(last[1]), float(last[2]), float(last[3])
    value = sum(w * key[3 + dim] for w, key in zip(weights, keys)) / sum(weights)
    if abs(value - expected) > 1e-5 * (1 + abs(expected)):
        return f"the inputs give {value:.6g}: {text}"
    return "" if abs(given - expected) > 1e-4 else f"the wrong kernel's number is the expected one: {text}"


def main():
    kvscope = command_line.only().kvscope
    if not any(pathlib.Path(path).exists() for path in NVCC):
        print(f"skipped: no CUDA compiler at {' or '.join(NVCC)}")
        return 0
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        submission = pathlib.Path(folder) / "wrong"
        shutil.copytree(LAB / "solution", submission)
        source = submission / "decode.cu"
        text = source.read_text(encoding="utf-8")
        changed = re.sub(r"\bscale \* ", "", text)  # the scores are not scaled: every test fails in its first case
        if changed == text:
            faults.append("decode.cu of the solution has no 'scale * '")
        source.write_text(changed, encoding="utf-8")
        done = subprocess.run([kvscope, "lab", "check", "13", str(submission), "--course", str(ROOT / "docs" / "labs")],
                              capture_output=True, text=True, timeout=300, check=False)
        report = cases(done.stdout)
        faults += [f"{test}: {fault}" for test in TESTS if (fault := fault_of(report.get(test, [done.stderr])))]
    print("\n".join(faults) or f"{len(TESTS)} cases computed from their text")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
