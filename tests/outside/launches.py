"""Launches on the virtual GPU, each in a separate process, so that the study continues after a crash."""
from __future__ import annotations

import dataclasses
import json
import os
import re
import resource
import signal
import time
from pathlib import Path
from typing import Any

import kvscope as kv
import numpy as np

from bugs import body_of, seeded
from compilers import compiled
from outcome import LIMIT, Outcome
from programs import ptx_of, run_program
from recipe import Kernel, Recipe, RecipeError
from values import Array, Descriptor, Inputs, Offset, TensorMap

def _argument(inputs: Inputs, value: Any) -> Any:
    """A value of the recipe as the module kvscope takes it."""
    if isinstance(value, Array):
        return value.raw
    if isinstance(value, Offset):
        return kv.offset(inputs.arrays[value.array].raw, value.elements)
    if isinstance(value, TensorMap):
        array = inputs.arrays[value.array]
        return kv.TensorMap(array.raw, **{"type": array.dtype, **value.words})
    if isinstance(value, dict):
        return {name: _argument(inputs, one) for name, one in value.items()}
    return value


def _arguments(inputs: Inputs, about: dict[str, Any], count: int, ctas: int) -> list[Any]:
    values = [(name, value) for name, value in inputs.arguments if name not in about.get("constants", ())]
    if "order" in about:
        by_name, descriptors = dict(values), list(about["descriptors"] or [])
        values = []
        for name in about["order"]:
            value = by_name[name]
            if isinstance(value, Descriptor):  # a tensor map, then the shape, then the strides
                array, facts = inputs.arrays[value.array].raw, descriptors.pop(0)
                box = [int(n) for n in reversed(facts["block_size"])]
                swizzle = ("none", "32B", "64B", "128B")[facts["swizzle"]]
                values.append((name, TensorMap(value.array, box=box, swizzle=swizzle)))
                values += [(name, n) for n in (*array.shape, *(n // array.itemsize for n in array.strides))]
            else:
                values.append((name, value))
        scratch = np.zeros(about["scratch"] * ctas, np.uint8) if about["scratch"] else None
        values += [("scratch", scratch)] + [("profile", None)] * (count - len(values) - 1)
    return [_argument(inputs, value) for _, value in values]


def _extents(inputs: Inputs, text: str) -> list[int]:
    value = inputs.evaluate(text)
    return [int(n) for n in value] if isinstance(value, (tuple, list)) else [int(value)]


def _check_engines(kernel: Kernel, ptx: str, name: str) -> None:
    begin, end = body_of(ptx, name)
    body = ptx[begin:end]
    for engine, word in (("tma", "cp.async.bulk"), ("wgmma", "wgmma.mma_async"), ("mma", "mma.sync")):
        if (word in body) != (engine in kernel.engines) and (engine != "mma" or engine in kernel.engines):
            raise RecipeError(f"{kernel.label}: engines are {list(kernel.engines)}, but {word} "
                              f"{'occurs' if word in body else 'does not occur'} in the PTX")


def _find(module: kv.Module, entry: str) -> kv.Kernel:
    """`*` in an entry is any text: nvcc puts a hash of the file into the names of internal functions."""
    if "*" not in entry:
        return module[entry]
    pattern = re.compile(".*".join(map(re.escape, entry.split("*"))))
    found = [one for one in module.kernels if pattern.match(one.short_name)]
    if len(found) != 1:
        names = ", ".join(one.short_name for one in (found or module.kernels))
        raise RecipeError(f"{entry}: {len(found)} kernels match: {names[:600]}")
    return found[0]


def _launch(recipe: Recipe, kernel: Kernel, bug: Any, cache: Path) -> Outcome:
    if kernel.unit.program:
        outcome, ptx = run_program(recipe, kernel, bug, cache)
        if bug is None and ptx:
            _check_engines(kernel, ptx, outcome.kernel)
        return outcome
    inputs = Inputs(kernel)
    path, about = compiled(recipe, kernel, inputs, cache)
    module = kv.Module(path.read_text(), path.name)
    found = _find(module, inputs.text(kernel.entry))
    what = ""
    if bug is None:
        _check_engines(kernel, module.ptx, found.name)
    else:
        what, changed = seeded(module.ptx, found.name, bug)
        module = kv.Module(changed, path.name)
        found = next(one for one in module.kernels if one.name == found.name)
    if kernel.struct:
        found = found.with_struct(next(i for i, one in enumerate(found.parameters) if not one.type), kernel.struct)
    grid = _extents(inputs, kernel.grid)
    ctas = 1
    for n in grid:
        ctas *= n
    block = _extents(inputs, str(32 * kernel.warps) if kernel.unit.triton else kernel.block)
    shared = about["shared"] if kernel.unit.triton else int(inputs.evaluate(kernel.shared))
    arguments = _arguments(inputs, about, len(found.parameters), ctas)
    cluster = _extents(inputs, kernel.cluster) if kernel.cluster else None
    began = time.process_time()
    result = found.launch(grid, block, args=arguments, shared=shared, cluster=cluster, counters=False,
                          cooperative=kernel.cooperative)
    seconds = time.process_time() - began
    reports = [[one.kind, one.severity, one.text] for one in result.reports]
    errors = inputs.errors()
    state = "stopped" if not result.finished else "wrong" if errors else "right"
    return Outcome(state, "; ".join(errors), reports, result.steps, seconds, found.name, what)


def ptx_file(recipe: Recipe, kernel: Kernel, cache: Path) -> Path:
    """The PTX of a kernel; of a program, a copy of what it contains."""
    path, _ = compiled(recipe, kernel, Inputs(kernel), cache)
    if not kernel.unit.program:
        return path
    copy = path.with_name(path.name + ".ptx")
    if not copy.exists():
        copy.write_text(ptx_of(path.read_bytes())[1])
    return copy


def launch(recipe: Recipe, kernel: Kernel, cache: Path, bug: Any = None) -> Outcome:
    """One launch in a child. Raises RecipeError for a faulty recipe; an input that kvscope rejects is an outcome."""
    compiled(recipe, kernel, Inputs(kernel), cache)  # here, so that the limit of a launch does not count it
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 5))
        try:
            answer = dataclasses.asdict(_launch(recipe, kernel, bug, cache))
        except kv.Error as error:
            answer = dataclasses.asdict(Outcome("rejected", str(error)[:600]))
        except RecipeError as error:
            answer = {"recipe": str(error)}
        except BaseException as error:  # a fault of this program: passed on with its text
            answer = {"recipe": f"{kernel.label}: {type(error).__name__}: {error}"}
        with os.fdopen(writer, "w") as out:
            json.dump(answer, out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer_text:
        text = answer_text.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return Outcome("timeout" if late else "crashed", f"signal {os.WTERMSIG(status)}")
    answer = json.loads(text)
    if "recipe" in answer:
        raise RecipeError(answer["recipe"])
    return Outcome(**answer)
