"""A unit of a recipe to PTX, by nvcc or by Triton, cached by everything that the result depends on."""
from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from packages import unpacked
from recipe import Kernel, Recipe, RecipeError, Unit
from values import Array, Descriptor, Inputs

HERE = Path(__file__).resolve().parent
LIMIT = 1200  # [s] of one compilation


@functools.lru_cache(None)
def nvcc() -> str:
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found = shutil.which("nvcc") or shutil.which("nvcc", path=os.path.join(home, "bin"))
    if found is None:
        raise RecipeError("nvcc is missing: install the CUDA toolkit, or set CUDA_HOME")
    return found


def kvscope() -> str:
    """The program, for whole programs of the CUDA runtime."""
    return os.environ["KVSCOPE_PROGRAM"]


@functools.lru_cache(None)
def nvcc_version() -> str:
    return subprocess.run([nvcc(), "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[-2]


def _run(command: list[str], out: Path, what: str) -> None:
    part = out.with_name(out.name + ".part")
    try:
        done = subprocess.run([*command, str(part)], capture_output=True, text=True, check=False, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise RecipeError(f"{what}: compilation took longer than {LIMIT} s") from None
    if done.returncode != 0:
        raise RecipeError(f"{what} does not compile:\n{(done.stderr or done.stdout).strip()[-700:]}")
    part.rename(out)


def _folders(recipe: Recipe, cache: Path) -> dict[str, str]:
    """`{package}` and `{NAME}` of each needed package, for flags and include folders."""
    names = {"package": str(unpacked(recipe.package, cache))}
    for one in recipe.needs:
        names[one.name] = str(unpacked(one, cache))
    return names


def _by_nvcc(recipe: Recipe, unit: Unit, cache: Path) -> Path:
    """A PTX file; of a program, the executable, in which the PTX is plain text."""
    names = _folders(recipe, cache)
    base = Path(names["package"] or ".") / recipe.package.inside
    source = base / unit.file if unit.file else None
    text = source.read_text(errors="replace") if source else unit.text or unit.program
    command = [kvscope(), "nvcc", "--no-compress"] if unit.program else [nvcc(), "-ptx", "-lineinfo", "-arch=sm_90a"]
    options = ["-std=c++17", *(f"-I{base / one.format(**names)}" for one in unit.include),
               *(one.format(**names) for one in unit.flags)]
    parts = [nvcc_version(), recipe.package.version, text, *command[1:], *options]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    folder = cache / "ptx" / recipe.name
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{unit.name}-{key}{'' if unit.program else '.ptx'}"
    if not out.exists():
        if source is None:
            source = folder / f"{unit.name}.cu"
            source.write_text(text)
        _run([*command, *options, str(source), "-o"], out, f"{recipe.name}: unit {unit.name}")
    return out


def _triton_type(inputs: Inputs, value: Any) -> str:
    names = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "bf16": "bf16", "e4m3": "fp8e4nv"}
    if isinstance(value, Descriptor):
        return f"tensordesc<{names[inputs.arrays[value.array].dtype]}{list(value.block)}>"
    if isinstance(value, Array):
        return "*" + names.get(value.dtype, value.dtype)
    if value is None:
        return "constexpr"
    if isinstance(value, float):
        return "fp32"
    return "i32" if -2**31 <= value < 2**31 else "i64"


def _by_triton(recipe: Recipe, kernel: Kernel, inputs: Inputs, cache: Path) -> tuple[Path, dict[str, Any]]:
    """Types, divisibility by 16 and ones become part of the kernel, as in Triton's own launcher."""
    signature, constants, divisible = {}, inputs.evaluate(kernel.constants), []
    for name, value in inputs.arguments:
        signature[name] = _triton_type(inputs, value)
        if value is None or (isinstance(value, int) and value == 1):
            signature[name], constants[name] = "constexpr", value
        elif isinstance(value, Array) or (isinstance(value, int) and value % 16 == 0):
            divisible.append(name)
    folders = _folders(recipe, cache)
    job = {"paths": [folders["triton"], str(HERE / "standins"), str(Path(folders["package"]) / recipe.package.inside)],
           "file": str(Path(folders["package"]) / recipe.package.inside / kernel.unit.triton), "kernel": kernel.entry,
           "signature": signature, "constants": constants, "divisible": divisible, "warps": kernel.warps,
           "stages": kernel.stages, "standins": list(recipe.standins)}
    versions = [f"{one.name} {one.version}" for one in (recipe.package, *recipe.needs)]
    standins = "".join(path.read_text() for path in sorted((HERE / "standins").rglob("*.py")))
    text = json.dumps([job, versions, standins, (HERE / "triton_compile.py").read_text()], sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    folder = cache / "ptx" / recipe.name
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{kernel.entry}-{key}.ptx"
    if not out.exists():
        _run([sys.executable, str(HERE / "triton_compile.py"), json.dumps(job)], out, f"{recipe.name}: {kernel.label}")
    about = json.loads(out.read_text().splitlines()[0].removeprefix("// "))
    return out, {**about, "constants": list(constants)}


def compiled(recipe: Recipe, kernel: Kernel, inputs: Inputs, cache: Path) -> tuple[Path, dict[str, Any]]:
    """The PTX file with the kernel, and facts about it: of Triton, `shared`, `constants` and `scratch`."""
    if kernel.unit.triton:
        return _by_triton(recipe, kernel, inputs, cache)
    return _by_nvcc(recipe, kernel.unit, cache), {}


def survey(ptx: Path) -> tuple[int, int]:
    """(kernels of a PTX file, those of which `kvscope ptx survey` states that all instructions can run)."""
    done = subprocess.run([kvscope(), "ptx", "survey", str(ptx)], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("kernel ")]
    return len(lines), sum("all of them can run" in line for line in lines)
