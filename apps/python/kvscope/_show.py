"""Pictures of objects for a notebook or a file: by the viewer where it is installed, else by the module."""
from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any, Sequence

from ._calls import guided
from ._drawn import Drawn, Picture
from ._errors import InputError
from ._pictures_cache import draw_step
from ._run import Run

VIEWER = "kvscope-viewer"


def find_viewer() -> str | None:
    """The path of the viewer: the environment's KVSCOPE_VIEWER, PATH, Python's programs, or the build tree that this
    module belongs to. None: not installed. KVSCOPE_VIEWER set to "" means none."""
    stated = os.environ.get("KVSCOPE_VIEWER")
    if stated is not None:
        return stated or None
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.join(here, "..", "..", VIEWER, VIEWER)
    folders = (os.path.dirname(sys.executable), os.path.dirname(beside))
    return shutil.which(VIEWER) or next((found for folder in folders if (found := shutil.which(VIEWER, path=folder))),
                                        None)


def _scenario_file(run: Run, folder: str) -> str:
    """The run's scenario as a file in `folder`; its request trace is then named by its whole path."""
    scenario = copy.deepcopy(run.scenario)
    requests = scenario.get("requests") or {}
    recorded = requests.get("file")
    if run._requests is not None:
        scenario["requests"] = {"file": {"path": os.path.abspath(run._requests)}}
    elif recorded:
        recorded["path"] = os.path.abspath(os.path.join(run._folder, recorded["path"]))
    path = os.path.join(folder, "scenario.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(scenario, file)
    return path


def _by_viewer(viewer: str, run: Run, options: Sequence[str], ending: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="kvscope-") as folder:
        out = os.path.join(folder, "picture." + ending)
        command = [viewer, "--render", out, "--scenario", _scenario_file(run, folder), *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise InputError(f"{viewer} cannot be run: {error}; set KVSCOPE_VIEWER to the program's path") from None
        if done.returncode != 0:
            words = done.stderr.strip().replace(folder + os.sep, "")
            raise InputError(f"{VIEWER} cannot draw this: {words}")
        with open(out, "rb") as file:
            return file.read()


def _step_of(run: Run, step: int | None) -> int:
    """The step to draw; default: the first one with the maximum of blocks in use, as in the viewer."""
    if step is not None:
        return step
    used = run.steps["used_blocks"]
    return used.index(max(used))


def _by_module(run: Run, step: int | None, select: str, view: str, theme: str) -> Picture:
    if view == "timeline":
        return run.picture(theme)
    try:
        drawing = draw_step(run.step(_step_of(run, step)), select)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"select is {select!r}: without {VIEWER}, pass \"3:37\" (sequence:position), \"block 7\" or "
                         "\"seq 3\"") from None
    drawing.note(f"Drawn by the module: {VIEWER} is not installed, or not found in PATH.")
    return Picture(f"the module kvscope, because {VIEWER} was not found", svg=drawing.svg(theme))


@guided
def show(what: Run | Drawn, step: int | None = None, select: str = "", *, view: str = "overview", tile: str = "",
         theme: str = "auto", size: tuple[int, int] = (1600, 1000), format: str = "png") -> Picture:
    """A picture of a run at a step, with an object selected: `kv.show(run, step=6, select="3:37")`.

    The viewer draws it, if it is installed; else the module draws the sequences and the block pool, and the picture
    says so. All other objects with a drawing (problems, verdicts, races, ...) are drawn by the module.

    step     default: the step with the most blocks in use
    select   "3:37" (sequence:position), "block 7" or "seq 3"
    view     of the viewer: "overview", "pool", "tile", "attention", "timeline", ...; without it, "timeline" draws the
             curves, and each other view the pool. tile: of the view "tile", such as "seq 3 token 37 k tma"
    theme    "auto", "light" or "dark"; the viewer's "auto" is dark
    size     [px] of the viewer's picture;  format  "png" or "svg" for the viewer's picture

    InputError for an object that does not exist; the message has its range.
    """
    if theme not in ("auto", "light", "dark"):
        raise InputError(f"theme is {theme!r}: pass \"auto\", \"light\" or \"dark\"")
    if format not in ("png", "svg"):
        raise InputError(f"format is {format!r}: pass \"png\" or \"svg\"")
    if not isinstance(what, Run):
        if not isinstance(what, Drawn):
            raise InputError(f"{type(what).__name__} has no drawing: pass a Run, or what kvscope's functions return")
        if step is not None or select or tile:
            raise InputError("step, select and tile belong to a Run: leave them out")
        return what.picture(theme)
    viewer = find_viewer()
    if viewer is None:
        return _by_module(what, step, select, view, theme)
    options = ["--view", view, "--theme", "dark" if theme == "auto" else theme, "--size", f"{size[0]}x{size[1]}"]
    for name, value in (("--step", step), ("--select", select), ("--tile", tile)):
        if value is not None and value != "":
            options += [name, str(value)]
    data = _by_viewer(viewer, what, options, format)
    return Picture(viewer, svg=data.decode()) if format == "svg" else Picture(viewer, png=data)
