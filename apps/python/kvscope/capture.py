"""Keeps what an attention backend was called with, so that kvscope can judge its outputs later.

    with kv.capture.to("dumps", every=100, layers=[0, 31], max_bytes=2 << 30) as capture:
        capture.vllm()                      # or .sglang(), .flashinfer(), .patch(owner, name, source)
        engine.generate(prompts)
    print(capture)                          # calls seen, kept, left out, and why

    python -m kvscope replay dumps          # the golden output and the verdict of each kept call
    kv.capture.calls("dumps")[0].verdict()  # the same in Python

Each kept call is a folder with inputs.safetensors, candidate.safetensors and call.json. The hooks of
engines keep only the blocks that the call's sequences hold, renumbered from 0; `blocks` in call.json has their numbers
in the engine. Tensors are copied to the host after the call, because backends write this step's tokens into the cache
first. A backend is imported only by
the method with its name. Calls that a CUDA graph replays do not run in Python: switch graphs off (vLLM:
enforce_eager=True; SGLang: --disable-cuda-graph). The capture sees the calls of its own process: let vLLM run the model
in yours (VLLM_ENABLE_V1_MULTIPROCESSING=0), and enter the capture in the module that SGLang's processes import. Several
processes may share a folder, and a folder may have calls of earlier runs. A call that cannot be kept is counted with its reason, and never
raises in the engine.
"""
from __future__ import annotations

import errno
import functools
import importlib
import inspect
import json
import os
import shutil
import threading
from typing import Any, Callable, Mapping, Sequence

from . import _capture_sources as sources
from . import _core
from ._arrays import bundle_of
from ._calls import path_of
from ._capture_sources import Call, Kept, Left, Source
from ._errors import Error, InputError
from ._problem import Problem
from ._replay import ABOUT, CANDIDATE, INPUTS, PART, KeptCall, calls

__all__ = ["Call", "Capture", "Kept", "KeptCall", "Source", "calls", "tensors", "to", "wrap"]


class Capture:
    """Where calls are kept. `seen` counts calls, `kept` those in files, `bytes` their size; `left` counts the others by
    reason."""

    def __init__(self, folder: str | os.PathLike[str], every: int, layers: Sequence[int] | None,
                 max_bytes: int) -> None:
        if every < 1:
            raise InputError(f"every is {every}: pass at least 1, which keeps each call")
        if max_bytes < 1:
            raise InputError(f"max_bytes is {max_bytes}: pass at least 1")
        self.folder = path_of("folder", folder)
        self.every, self.max_bytes = every, max_bytes
        self.layers = None if layers is None else frozenset(layers)
        self.seen = self.kept = self.bytes = 0
        self.left: dict[str, int] = {}
        self._of_layer: dict[int | None, int] = {}
        self._patched: list[tuple[Any, str, Any, bool]] = []
        self._lock = threading.Lock()
        self._number = 0  # of the next folder

    def __enter__(self) -> "Capture":
        os.makedirs(self.folder, exist_ok=True)
        numbers = [int(name[:6]) for name in os.listdir(self.folder) if name[:6].isdecimal()]
        self._number = max(numbers, default=-1) + 1  # earlier calls stay
        _active.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _active.remove(self)
        for owner, name, original, own in reversed(self._patched):
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)  # the base class has it
        self._patched.clear()

    def patch(self, owner: Any, name: str, source: Source) -> None:
        """Replaces the function `name` of a class or module by one that keeps its calls, until the `with` ends."""
        if self not in _active:
            raise InputError("the capture is not active: call this inside of `with kv.capture.to(...) as capture:`")
        original = getattr(owner, name, None)
        if not callable(original):
            raise InputError(f"{getattr(owner, '__name__', owner)} has no function {name!r}: this version of the backend "
                             "has another one; use capture.patch or kv.capture.wrap with its name")
        self._patched.append((owner, name, vars(owner).get(name, original), name in vars(owner)))
        setattr(owner, name, wrap(original, source))

    def vllm(self, module: str = "vllm.v1.attention.backends.flash_attn", name: str = "FlashAttentionImpl") -> None:
        """Keeps the calls of a vLLM backend: decoder attention whose `forward` has the arguments of
        FlashAttentionImpl of vLLM 0.11 to 0.33 (layer, query, key, value, kv_cache, attn_metadata, output)."""
        self.patch(_class_of(module, name), "forward", sources.vllm)

    def sglang(self, module: str = "sglang.srt.layers.attention.base_attn_backend",
               name: str = "AttentionBackend") -> None:
        """Keeps the calls of SGLang's backends: `forward` of SGLang 0.5 (q, k, v, layer, forward_batch, ...). A backend
        with a `forward` of its own needs its module and name here."""
        self.patch(_class_of(module, name), "forward", sources.sglang)

    def flashinfer(self, module: str = "flashinfer",
                   names: Sequence[str] = ("BatchDecodeWithPagedKVCacheWrapper",
                                           "BatchPrefillWithPagedKVCacheWrapper")) -> None:
        """Keeps the calls of FlashInfer's paged wrappers: `run` and `run_return_lse` with the arguments that `plan` or
        `begin_forward` of the same wrapper had, by the names of FlashInfer 0.5 to 0.7. The wrappers have no layer."""
        if self.layers is not None:
            raise InputError("FlashInfer's wrappers do not know their layer: leave `layers` out, and choose with `every`")
        sources.forget_plans()
        for name in names:
            owner = _class_of(module, name)
            # The second names of each are other attributes of the class, which hold the functions themselves.
            for function, source in (("plan", sources.flashinfer_plan), ("begin_forward", sources.flashinfer_plan),
                                     ("run", sources.flashinfer_run), ("run_return_lse", sources.flashinfer_run)):
                if function in ("plan", "run") or hasattr(owner, function):
                    self.patch(owner, function, source)

    def offer(self, call: Call, source: Source) -> None:
        """Keeps the call if it is one of those that were asked for."""
        with self._lock:
            try:
                self._offer(call, source)
            except Left as reason:
                self._leave(str(reason))
            except Error as error:
                self._leave(f"rejected: {error}")
            except (AttributeError, KeyError, TypeError, ValueError, OSError, IndexError, RuntimeError) as error:
                self._leave(f"{type(error).__name__}: {error}")

    def _offer(self, call: Call, source: Source) -> None:
        if source.records:  # each of them: the next kept call reads the latest
            source.keep(call)
            return
        layer = source.layer(call)
        if self.layers is not None and layer not in self.layers:
            self.seen += 1
            raise Left("another layer")
        number = self._of_layer.get(layer, 0)
        if number % self.every:
            self._of_layer[layer] = number + 1
            self.seen += 1
            raise Left(f"between every {self.every} calls of a layer")
        try:
            kept = source.keep(call)
        except Exception:
            self.seen += 1
            raise
        if kept is None:
            return
        self.seen += 1
        self._of_layer[layer] = number + 1
        size = kept.size()
        if self.bytes + size > self.max_bytes:  # before anything is copied from a device
            raise Left(f"past max_bytes ({self.max_bytes:,})")
        problem = Problem.of(kept.layout, kept.tensors(), **kept.options)
        candidate, _ = bundle_of(kept.candidate())
        half = os.path.join(self.folder, f"{os.getpid()}-{id(self)}{PART}")
        try:
            self._write(half, call, kept, problem, candidate, layer, number)
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)
            raise
        self.kept += 1
        self.bytes += size

    def _write(self, half: str, call: Call, kept: Kept, problem: Problem, candidate: _core.Bundle, layer: int | None,
               number: int) -> None:
        """Writes the folder `half` and gives it the next free name."""
        os.makedirs(half)
        problem.save(os.path.join(half, INPUTS))
        candidate.save(os.path.join(half, CANDIDATE))
        about = {"kvscope_call": 1, "function": call.name, "layer": layer, "call": number, "layout": kept.layout,
                 "blocks": kept.blocks}
        with open(os.path.join(half, ABOUT), "w", encoding="utf-8") as file:
            json.dump(about, file)
        while True:
            self._number += 1
            name = f"{self._number - 1:06}" + ("" if layer is None else f"_layer{layer}")
            try:
                os.rename(half, os.path.join(self.folder, name))
                break
            except OSError as error:  # another process that keeps calls here has taken the name
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise

    def _leave(self, reason: str) -> None:
        self.left[reason] = self.left.get(reason, 0) + 1

    def __repr__(self) -> str:
        lines = [f"{self.kept} of {self.seen} calls kept in {self.folder}, {self.bytes:,} bytes"]
        lines += [f"  {count:,} left out: {reason}" for reason, count in self.left.items()]
        return "\n".join(lines)


_active: list[Capture] = []


def _class_of(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise InputError(f"{module} cannot be imported: {error}; install the backend, or pass the module's name of your "
                         "version") from None
    except AttributeError:
        raise InputError(f"{module} has no class {name}: pass the name of the class in your version") from None


def to(folder: str | os.PathLike[str], *, every: int = 1, layers: Sequence[int] | None = None,
       max_bytes: int = 1 << 30) -> Capture:
    """A context manager that keeps calls in a folder.

    every      keeps the first call of each layer, and then each `every`-th one
    layers     the layers to keep; default: all
    max_bytes  calls that would make the kept tensors larger than this are left out
    """
    return Capture(folder, every, layers, max_bytes)


def tensors(layout: str, *, layer: str | None = None, **paths: str) -> Source:
    """A source for `wrap`: the tensors of a layout as paths into the call.

    A path begins with the name of an argument, or with `return`, and goes on with attributes, numbers and keys:
    `q="query"`, `block_table="metadata.block_table"`, `o="return.0"`. `o` (required) and `lse` are the outputs. A path
    that begins with "=" is an option of Problem: `scale="=self.scale"`.
    """
    if "o" not in paths:
        raise InputError("the output is missing: add its path, such as o=\"return\"")

    def keep(call: Call) -> Kept:
        given = {name: call.at(path) for name, path in paths.items() if not path.startswith("=")}
        options = {name: call.at(path[1:]) for name, path in paths.items() if path.startswith("=")}
        outputs = {name: given.pop(name) for name in ("o", "lse") if given.get(name) is not None}
        return Kept(layout, given, outputs, options)
    return Source(lambda call: None if layer is None else sources.layer_number(call.at(layer)), keep)


def wrap(function: Callable[..., Any], source: Source | Mapping[str, str]) -> Callable[..., Any]:
    """The function, which in a `with kv.capture.to(...)` also keeps its calls; outside of it, it only calls through.

    `source` is kv.capture.tensors(...), or the same as a dict: {"layout": "vllm", "q": "query", ..., "o": "return"}.
    """
    find = source if isinstance(source, Source) else _source_of(source)
    signature = inspect.signature(function)

    @functools.wraps(function)
    def kept(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if _active:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = dict(bound.arguments)
            for name, parameter in signature.parameters.items():
                if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                    given.update(given.pop(name))
            _active[-1].offer(Call(getattr(function, "__qualname__", repr(function)), given, result), find)
        return result
    return kept


def _source_of(paths: Mapping[str, str]) -> Source:
    given = dict(paths)
    if "layout" not in given:
        raise InputError("the mapping has no layout: add one of kvscope.layouts(), such as {\"layout\": \"vllm\", ...}")
    return tensors(given.pop("layout"), layer=given.pop("layer", None), **given)
