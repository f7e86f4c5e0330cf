"""Simulated runs of scenarios."""
from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import os
import sys
from typing import Any, Callable, Iterable, Mapping, Sequence, TextIO

import numpy as np

from . import _core
from ._calls import guided, path_of
from ._drawn import Drawn
from ._errors import InputError
from ._golden import Golden
from ._pictures_cache import draw_run, draw_step
from ._pictures_device import draw_explanation
from ._problem import Problem
from ._svg import Drawing
from ._tile import SharedImage

Progress = Callable[[int, int], object]


@dataclasses.dataclass(frozen=True)
class Step(Drawn):
    """The cache at one step. Rows of the batch are sequences; block `blocks` is the null page."""
    step: int
    page_size: int
    blocks: int
    batch: list[int]                            # [batch] sequences
    cache_lengths: list[int]                    # [batch] tokens cached before the step
    new_tokens: list[int]                       # [batch] tokens that the step computes
    lookup_table: np.ndarray[Any, Any]          # u32 [batch, columns]

    def pages_in(self, block: int) -> list[tuple[int, int]]:
        """(sequence, page) of each page of the batch that is in a block; several if the block is shared."""
        found = []
        for row, seq in enumerate(self.batch):
            tokens = self.cache_lengths[row] + self.new_tokens[row]
            pages = -(-tokens // self.page_size) if self.page_size else 1
            found += [(seq, page) for page in range(pages) if self.lookup_table[row, page] == block]
        return found

    def _draw(self) -> Drawing:
        return draw_step(self)

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        return (["sequence", "cached", "new", "blocks"],
                [[seq, self.cache_lengths[row], self.new_tokens[row],
                  [int(block) for block in self.lookup_table[row] if block < self.blocks]]
                 for row, seq in enumerate(self.batch)])


@dataclasses.dataclass(frozen=True)
class Link:
    name: str
    formula: str
    numbers: str
    result: str
    remark: str


class Explanation(Drawn):
    """The chain from a token to its byte, bank and register: `links`; `text` prints it."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.subject: str = found["subject"]
        self.links = [Link(*link) for link in found["links"]]
        self.text: str = found["text"]

    def __getitem__(self, name: str) -> str:
        """The result of the link `name`, else of the first one whose name begins with it; KeyError lists the names."""
        for link in sorted(self.links, key=lambda link: link.name != name):
            if link.name.startswith(name):
                return link.result
        raise KeyError(f"no link {name!r}: links are {', '.join(link.name for link in self.links)}")

    @property
    def register(self) -> str:
        """The lane and register that hold the element."""
        return self["register"]

    def __repr__(self) -> str:
        return self.text

    def _draw(self) -> Drawing:
        return draw_explanation(self)

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        return (["link", "formula", "numbers", "result"],
                [[link.name, link.formula, link.numbers, link.result] for link in self.links])


class Run(Drawn):
    """A finished run of a scenario."""

    def __init__(self, core: _core.Run, words: str | bytes, source: str, folder: str, requests: str | None) -> None:
        self._core = core
        self._words, self._source, self._folder, self._requests = words, source, folder, requests

    @property
    def report(self) -> dict[str, Any]:
        """The report of `kvscope run --json`."""
        return dict(self._core.report())

    @property
    def text(self) -> str:
        """The report of `kvscope run`."""
        return self._core.text()

    @property
    def scenario(self) -> dict[str, Any]:
        """The scenario with all defaults filled in."""
        return dict(self._core.scenario())

    @property
    def steps(self) -> dict[str, list[int]]:
        """One list for each figure, with one number for each step: running, waiting, used_blocks, cached_blocks,
        free_blocks, slots_filled, prefill_tokens, decode_tokens, hit_tokens, query_tokens, preemptions, finished, and
        time_us at the end of the step."""
        return dict(self._core.curve())

    def step(self, number: int) -> Step:
        """The cache at a step, from 0. IndexError when the run has fewer steps."""
        found = self._core.step(_whole("step", number))
        table_of = np.array(found["lookup_table"], np.uint32).reshape(len(found["batch"]), -1 if found["batch"] else 0)
        return Step(found["step"], found["page_size"], found["blocks"], found["batch"], list(found["cache_lengths"]),
                    list(found["new_tokens"]), table_of)

    def explain(self, seq: int, token: int, *, layer: int = 0, head: int = 0, dim: int = 0, kv: str = "k",
                step: int = -1) -> Explanation:
        """Each link from a token to its byte, bank and register. step -1: the last one of `seq`."""
        if kv not in ("k", "v"):
            raise InputError(f"kv is {kv!r}: pass \"k\" or \"v\"")
        return Explanation(self._core.explain(*_places(seq, token, layer, head, dim), kv == "v", _whole("step", step)))

    def tile(self, seq: int, token: int, *, layer: int = 0, head: int = 0, dim: int = 0, kv: str = "k", step: int = -1,
             path: str = "tma") -> list[dict[str, Any]]:
        """The events of the tile that holds a token, on its way to registers; each is a dict with its kind in "event".

        path "tma", or "lds" for copies by waves. step -1: the last one of `seq`. docs/07_file_formats.md lists the
        kinds. GeometryError or UnsupportedError if the path cannot copy the tile.
        """
        if kv not in ("k", "v"):
            raise InputError(f"kv is {kv!r}: pass \"k\" or \"v\"")
        if path not in ("tma", "lds"):
            raise InputError(f"path is {path!r}: pass \"tma\" or \"lds\"")
        places = _places(seq, token, layer, head, dim)
        return list(self._core.tile(*places, kv == "v", _whole("step", step), path == "lds"))

    def shared(self, seq: int, token: int, *, layer: int = 0, head: int = 0, dim: int = 0, kv: str = "k",
               step: int = -1, path: str = "tma") -> SharedImage:
        """Shared memory with the tile that holds a token. The arguments are those of tile()."""
        events = self.tile(seq, token, layer=layer, head=head, dim=dim, kv=kv, step=step, path=path)
        return SharedImage(events, f"{kv.upper()} of sequence {seq}, rows from token {events[0]['first_token']}, by "
                                   f"{path.upper()}")

    def golden(self) -> Golden:
        """The golden output over the focus layer at the focus step, with its problem."""
        bundle = self._core.golden()
        return Golden(Problem(_core.Problem.of_bundle(bundle, self._source)), bundle)

    def sweep(self, *, progress: Progress | bool | None = None, **values: Sequence[Any]) -> dict[str, list[Any]]:
        """Runs the scenario once for each combination of values, without a golden output.

        A value is a key of the scenario, such as page_size, or a path, such as **{"cache.page_size": [8, 16]}. Returns
        columns of equal length, for pandas.DataFrame: the values, then each number of the report. A bar on standard
        error shows the progress where it is a terminal, or with progress=True; progress(done, all) is called instead.
        """
        report = _bar(sys.stderr) if progress is True or (progress is None and sys.stderr.isatty()) else progress
        given = json.loads(self._words)  # without defaults, so that those that depend on a swept value follow it
        full = self.scenario
        places = {name: _place_of(full, name) for name in values}
        for one, other in itertools.combinations(places, 2):
            if places[one] == places[other]:
                raise InputError(f"{one} and {other} are the same key of the scenario: sweep it once")
        for name, choices in values.items():
            if isinstance(choices, (str, bytes, Mapping)) or not isinstance(choices, Iterable):
                raise InputError(f"{name} is {choices!r}: pass a list of values, such as [{choices!r}]")
        rows: list[dict[str, Any]] = []
        combinations = list(itertools.product(*values.values()))
        for done, combination in enumerate(combinations):
            scenario = copy.deepcopy(given)
            row: dict[str, Any] = dict(zip(values, combination))
            for name in sorted(row, key=lambda name: len(places[name])):  # an object before its keys
                _set(scenario, places[name], row[name])
            core = _core.run(_json(scenario), self._source, self._folder, self._requests, False, None)
            row.update({key: value for key, value in core.report()["run"].items()
                        if isinstance(value, (int, float)) and not isinstance(value, bool) and key not in row})
            rows.append(row)
            if callable(report):
                report(done + 1, len(combinations))
        names = list(dict.fromkeys(key for row in rows for key in row)) or list(values)
        return {name: [row.get(name) for row in rows] for name in names}

    def __repr__(self) -> str:
        return self.text

    def _draw(self) -> Drawing:
        return draw_run(self)

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        return (["figure", "value"], [[name, value] for name, value in self.report["run"].items()
                                      if isinstance(value, (int, float))])


def _bar(out: TextIO) -> Progress:
    """Draws "sweep [#####-----] 2 of 4" on one line of a terminal or of a notebook's output."""
    def draw(done: int, whole: int) -> None:
        marks = 30 * done // whole
        out.write(f"\rsweep [{'#' * marks}{'-' * (30 - marks)}] {done} of {whole}" + ("\n" if done == whole else ""))
        out.flush()
    return draw


def _whole(name: str, value: Any) -> int:
    """A whole number of 64 bits; InputError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not -1 << 63 <= value < 1 << 63:
        raise InputError(f"{name} is {value!r}: pass a whole number")
    return int(value)


def _places(seq: int, token: int, layer: int, head: int, dim: int) -> tuple[int, int, int, int, int]:
    return (_whole("seq", seq), _whole("token", token), _whole("layer", layer), _whole("head", head), _whole("dim", dim))


def _paths(value: Any, name: str, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return []
    found = [at + (key,) for key in value if key == name]
    return found + [path for key, inner in value.items() for path in _paths(inner, name, at + (key,))]


def _place_of(scenario: dict[str, Any], name: str) -> tuple[str, ...]:
    """The path of a key of the scenario; InputError if there is none, or several."""
    if "." in name:
        path = tuple(name.split("."))
        inner: Any = scenario
        for folder in path[:-1]:
            if not isinstance(inner, dict) or folder not in inner:
                raise InputError(f"the scenario has no {name!r}: {folder!r} is missing")
            inner = inner[folder]
        return path
    paths = _paths(scenario, name)
    if len(paths) != 1:
        have = ", ".join(".".join(path) for path in paths) or "none"
        raise InputError(f"the scenario needs exactly one key {name!r}, it has {have}: write its path, such as "
                         "cache.page_size")
    return paths[0]


def _set(scenario: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Sets a key of a scenario; objects on the way that it leaves to their defaults are added."""
    inner = scenario
    for folder in path[:-1]:
        below = inner.get(folder)
        if isinstance(below, str):  # "model": "llama-3.1-8b"
            below = {"preset": below}
        inner[folder] = below if isinstance(below, dict) else {}
        inner = inner[folder]
    inner[path[-1]] = copy.deepcopy(value)


def _json(scenario: Any) -> str:
    """The text of a scenario; numbers and arrays of NumPy become those of JSON."""
    def plain(value: Any) -> Any:
        if isinstance(value, (np.generic, np.ndarray)):
            return value.tolist()
        raise TypeError(f"{value!r} is a {type(value).__name__}")
    try:
        return json.dumps(scenario, default=plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the scenario is no JSON: {error}") from None


@guided
def run(scenario: str | os.PathLike[str] | Mapping[str, Any], *, requests: str | os.PathLike[str] | None = None,
        golden: bool = True, progress: Progress | None = None) -> Run:
    """Runs a scenario: a file, or its JSON as a dict. `requests` replaces its requests by a recorded trace.

    golden=False leaves out the golden output. progress(done, all) is called as requests finish. Ctrl+C stops the run.
    """
    recorded = None if requests is None else path_of("requests", requests)
    words: str | bytes
    if isinstance(scenario, Mapping):
        words, source, folder = _json(dict(scenario)), "scenario", "."
    else:
        source = path_of("scenario", scenario)
        words, folder = _core.read_scenario(source), os.path.dirname(source) or "."
    return Run(_core.run(words, source, folder, recorded, golden, progress), words, source, folder, recorded)
