"""Kept calls of attention backends, and their verdicts."""
from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from . import _core
from ._calls import path_of
from ._errors import InputError
from ._golden import Verdict, golden
from ._problem import Problem

INPUTS, CANDIDATE, ABOUT = "inputs.safetensors", "candidate.safetensors", "call.json"
PART = ".part"  # the end of the name of a folder that is being written


@dataclasses.dataclass(frozen=True)
class KeptCall:
    """A call that was kept in the folder `path`. `call` counts the calls of its layer; `blocks` are the engine's numbers
    of the kept blocks, in order; [] if all blocks were kept."""
    path: str
    function: str
    layer: int | None
    call: int
    blocks: list[int]

    @property
    def problem(self) -> Problem:
        """The inputs of the call."""
        return Problem.load(os.path.join(self.path, INPUTS))

    def verdict(self, *, accuracy: str = "strict", profile: str | None = None) -> Verdict:
        """Compares the backend's output with the golden output; the arguments are those of kv.golden and kv.verify."""
        problem = self.problem
        g = golden(problem, accuracy=accuracy)
        candidate = _core.load_bundle(os.path.join(self.path, CANDIDATE))
        options: dict[str, Any] = {"profile": profile}
        return Verdict(_core.judge(problem._core, g._core, candidate, options, "on failure"),
                       lambda: _core.errors(problem._core, g._core, candidate, options))

    def __str__(self) -> str:
        layer = "" if self.layer is None else f" layer {self.layer},"
        return f"{os.path.basename(self.path)}  {self.function}{layer} call {self.call}"


def calls(folder: str | os.PathLike[str]) -> list[KeptCall]:
    """The calls that `kv.capture.to(folder)` kept, in order. InputError if there is none."""
    name = path_of("folder", folder)
    if not os.path.isdir(name):
        raise InputError(f"{name} is no folder: pass the one that kv.capture.to() wrote")
    found = []
    for path in sorted(os.path.join(name, inner) for inner in os.listdir(name)):
        if not os.path.isfile(os.path.join(path, ABOUT)) or path.endswith(PART):
            continue
        try:
            with open(os.path.join(path, ABOUT), encoding="utf-8") as file:
                about = json.load(file)
            if about["kvscope_call"] != 1:
                raise InputError(f"{path}: {ABOUT} has version {about['kvscope_call']}: this kvscope reads version 1")
            found.append(KeptCall(path, about["function"], about["layer"], about["call"], about["blocks"]))
        except (ValueError, KeyError, TypeError, OSError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}: {ABOUT} is damaged ({error}): delete this folder, or keep the call again") from None
    if not found:
        raise InputError(f"{name} has no kept call: print the capture to see why calls were left out")
    return found
