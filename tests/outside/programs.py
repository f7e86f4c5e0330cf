"""Whole programs of the CUDA runtime under `kvscope cuda`. Arrays go in and out as files of plain bytes."""
from __future__ import annotations

import json
import re
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bugs import seeded
from compilers import compiled, kvscope
from outcome import LIMIT, Outcome
from recipe import Kernel, Recipe, RecipeError
from values import Array, Inputs

_PTX = re.compile(rb"\.version \d+\.\d+\s+\.target [^\0]*\0")


def ptx_of(program: bytes) -> tuple[int, str]:
    """(offset, text) of the PTX in a program that was compiled with --no-compress."""
    found = list(_PTX.finditer(program))
    if len(found) != 1:
        raise RecipeError(f"the program has {len(found)} PTX texts, not one")
    return found[0].start(), found[0].group(0)[:-1].decode()


def _with_bug(program: bytes, name: str, bug: Any) -> tuple[str, bytes]:
    """The PTX is changed in place: removed text becomes blanks, so that no offset of the file moves."""
    begin, text = ptx_of(program)
    what, changed = seeded(text, name, bug, keep_length=True)
    return what, program[:begin] + changed.encode() + program[begin + len(text):]


def kernel_of(program: bytes, pattern: str) -> str:
    """The name in PTX of the only kernel that the pattern matches, a regular expression."""
    _, text = ptx_of(program)
    names = re.findall(r"\.entry\s+(\w+)", text)
    found = [name for name in names if re.search(pattern, name)]
    if len(found) != 1:
        raise RecipeError(f"{pattern!r}: {len(found)} kernels match, of {names}")
    return found[0]


def run_program(recipe: Recipe, kernel: Kernel, bug: Any, cache: Path) -> tuple[Outcome, str]:
    """One run, and the PTX. `entry` is a regular expression for the kernel's name in PTX."""
    inputs = Inputs(kernel)
    path, _ = compiled(recipe, kernel, inputs, cache)
    program = path.read_bytes()
    name, what = kernel_of(program, inputs.text(kernel.entry)), ""
    with tempfile.TemporaryDirectory(prefix="kvscope-") as folder:
        here = Path(folder)
        if bug is not None:
            what, changed = _with_bug(program, name, bug)
            path = here / "changed"
            path.write_bytes(changed)
            path.chmod(0o755)
        words = []
        for word in inputs.evaluate(kernel.command):
            if isinstance(word, dict):
                array = inputs.arrays[word["array"]]
                file = here / word["array"]
                if word["array"] not in kernel.expect:
                    file.write_bytes(array.raw.tobytes())
                words.append(str(file))
            else:
                words.append(str(word))
        began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        command = [kvscope(), "cuda", "--report", str(here / "r.json"), "--timeout", str(8 * LIMIT), str(path), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
        steps = re.search(r"calls, ([\d,]+) warp instructions", done.stderr)
        if not (here / "r.json").exists() or steps is None:
            state = "crashed" if done.returncode > 128 else "rejected"
            return Outcome(state, f"exit code {done.returncode}: {done.stderr[-400:]}"), ""
        found = json.loads((here / "r.json").read_text())["reports"]
        reports = [[one["kind"], one["severity"], one["text"]] for one in found]
        errors = [] if done.returncode in (0, 1) else [f"exit code {done.returncode}"]
        for array_name in kernel.expect:
            file, array = here / array_name, inputs.arrays[array_name]
            if file.exists() and file.stat().st_size == array.raw.nbytes:
                array.raw[...] = np.frombuffer(file.read_bytes(), array.raw.dtype).reshape(array.raw.shape)
        errors += inputs.errors()
    state = "wrong" if errors else "right"
    count = int(steps.group(1).replace(",", ""))
    return Outcome(state, "; ".join(errors), reports, count, seconds, name, what), ptx_of(program)[1]
