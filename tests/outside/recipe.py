"""Recipes: what to compile of a package, what to launch, and what must come out. README.md describes the format."""
from __future__ import annotations

import dataclasses
import itertools
import tomllib
from pathlib import Path
from typing import Any


class RecipeError(Exception):
    """A recipe, a download or a compilation that failed: the message names the object and the problem."""


@dataclasses.dataclass(frozen=True)
class Package:
    name: str
    version: str
    form: str          # "wheel" or "sdist"
    inside: str        # folder inside the archive to which the paths of units are relative
    about: str


@dataclasses.dataclass(frozen=True)
class Unit:
    """One compilation: a CUDA file to one PTX file, or a Triton file to one PTX file for each kernel."""
    name: str
    file: str              # of the package; or
    text: str              # CUDA source that instantiates templates of the package
    triton: str            # Python file of the package with Triton kernels; or
    program: str           # CUDA source of a whole program: it reads and writes the arrays as files
    flags: tuple[str, ...]
    include: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Kernel:
    unit: Unit
    entry: str                   # demangled name, or the beginning of it
    let: str                     # assignments: sizes
    args: str                    # one line for each parameter
    expect: dict[str, str]       # array: expression
    within: dict[str, str]       # array: largest allowed error, an expression; default in values.py
    grid: str
    block: str
    cluster: str
    shared: str                  # [bytes] of dynamic shared memory
    constants: str               # constexpr parameters of a Triton kernel, a dict
    warps: int
    stages: int
    cooperative: bool
    engines: tuple[str, ...]     # "tma", "wgmma": must occur in the PTX of the kernel
    struct: str                  # C definition of the struct parameter
    command: str                 # arguments of a program, a list; {"array": NAME} is the file of an array
    known: tuple[dict[str, Any], ...]  # reports of the unchanged kernel: kind, real (bool), why
    bugs: tuple[Any, ...]        # errors to seed: see bugs.py
    missed: tuple[dict[str, str], ...]  # seeded errors without a report: bug, why

    @property
    def label(self) -> str:
        return f"{self.unit.name}: {self.entry}"


@dataclasses.dataclass(frozen=True)
class Recipe:
    path: Path
    package: Package
    needs: tuple[Package, ...]   # other packages that compilation needs
    kernels: tuple[Kernel, ...]
    standins: tuple[str, ...]    # modules of the package's host side that are not imported: standins/

    @property
    def name(self) -> str:
        return self.path.stem


_KERNEL = {"entry": "", "let": "", "args": "", "expect": {}, "within": {}, "grid": "1", "block": "1", "cluster": "",
           "shared": "0", "constants": "{}", "warps": 4, "stages": 3, "cooperative": False, "engines": (), "struct": "",
           "command": "[]",
           "known": (), "bugs": (), "missed": ()}


def _only(path: Path, what: str, given: dict[str, Any], allowed: set[str]) -> None:
    unknown = sorted(set(given) - allowed)
    if unknown:
        raise RecipeError(f"{path.name}: {what}: unknown key {unknown[0]!r}; keys are {', '.join(sorted(allowed))}")


def _package(path: Path, given: dict[str, Any]) -> Package:
    _only(path, "package", given, {"name", "version", "form", "inside", "about"})
    package = Package(given["name"], given["version"], given.get("form", "wheel"), given.get("inside", "."),
                      given.get("about", ""))
    if package.form not in ("wheel", "sdist"):
        raise RecipeError(f"{path.name}: form is {package.form!r}: wheel or sdist")
    return package


def _filled(value: Any, names: dict[str, Any]) -> Any:
    """`$NAME` in every text of a value is replaced by a variant's value; longest name first."""
    if isinstance(value, str):
        for name in sorted(names, key=len, reverse=True):
            value = value.replace(f"${name}", str(names[name]))
        return value
    if isinstance(value, dict):
        return {key: _filled(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, names) for one in value]
    return value


def _variants(path: Path, given: dict[str, Any]) -> list[dict[str, Any]]:
    """`vary` is a list of tables, one kernel for each; or a table of lists, one kernel for each combination."""
    vary = given.pop("vary", [{}])
    if isinstance(vary, dict):
        vary = [dict(zip(vary, values)) for values in itertools.product(*vary.values())]
    if not vary:
        raise RecipeError(f"{path.name}: {given.get('entry')}: vary is empty")
    return [_filled(given, names) for names in vary]


def _kernels(path: Path, unit: Unit, given: dict[str, Any]) -> list[Kernel]:
    _only(path, f"kernel {given.get('entry')}", given, set(_KERNEL) | {"vary"})
    kernels = []
    for one in _variants(path, dict(given)):
        values = {key: one.get(key, default) for key, default in _KERNEL.items()}
        for key in ("grid", "block", "cluster", "shared"):
            values[key] = str(values[key])
        if not values["entry"] or not values["expect"]:
            raise RecipeError(f"{path.name}: a kernel of unit {unit.name} lacks 'entry' or 'expect': {values['entry']}")
        if isinstance(values["within"], str):
            values["within"] = {name: values["within"] for name in values["expect"]}
        for key in ("engines", "known", "bugs", "missed"):
            values[key] = tuple(one for i, one in enumerate(values[key]) if one not in values[key][:i])
        kernels.append(Kernel(unit=unit, **values))
    return kernels


def read(path: Path) -> Recipe:
    """RecipeError for unknown keys, missing values, and units without kernels."""
    try:
        given = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{path.name}: {error}") from None
    _only(path, "recipe", given, {"package", "needs", "unit", "flags", "include", "standins"})
    kernels = []
    for one in given["unit"]:
        _only(path, f"unit {one.get('name')}", one, {"name", "file", "text", "triton", "program", "flags", "include",
                                                     "kernel", "vary"})
        for filled in _variants(path, dict(one)):
            unit = Unit(filled["name"], filled.get("file", ""), filled.get("text", ""), filled.get("triton", ""),
                        filled.get("program", ""),
                        tuple(given.get("flags", [])) + tuple(filled.get("flags", [])),
                        tuple(given.get("include", [])) + tuple(filled.get("include", [])))
            if sum(map(bool, (unit.file, unit.text, unit.triton, unit.program))) != 1 or not filled.get("kernel"):
                raise RecipeError(f"{path.name}: unit {unit.name} needs kernels, and one of file, text, triton, "
                                  "program")
            for kernel in filled["kernel"]:
                kernels += _kernels(path, unit, kernel)
    labels = [kernel.label + kernel.let + kernel.args + kernel.constants for kernel in kernels]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise RecipeError(f"{path.name}: kernel {twice[0]!r} occurs twice")
    needs = tuple(_package(path, one) for one in given.get("needs", []))
    return Recipe(path, _package(path, given["package"]), needs, tuple(kernels), tuple(given.get("standins", [])))
