"""Golden outputs, verdicts and diagnoses."""
from __future__ import annotations

import dataclasses
import os
import tempfile
import warnings
from typing import Any, Callable, Sequence

import numpy as np

from . import _core
from ._arrays import as_kind, bundle_of, from_bundle, readable
from ._calls import guided, path_of
from ._drawn import Drawn
from ._errors import InputError, KernelMismatch, NonFiniteWarning
from ._html import text
from ._pictures_output import draw_golden, draw_verdict
from ._options import ROUNDING, check_names
from ._problem import Problem
from ._svg import Drawing


class Golden(Drawn):
    """The reference output of a problem, in double, as arrays of the kind that the problem's tensors had.

    o     f64 [queries, query_heads, value_size]
    lse   f64 [queries, query_heads], in the base of the problem's lse_base
    """

    def __init__(self, problem: Problem, core: _core.Bundle) -> None:
        self.problem = problem
        self._core = core

    @property
    def o(self) -> Any:
        return from_bundle(self._core, "o", self.problem._kind)

    @property
    def lse(self) -> Any:
        return from_bundle(self._core, "lse", self.problem._kind)

    @property
    def bounds(self) -> Any:
        """The allowed |out - o| of each element for an output in the type of q: shape of o."""
        dtype = str(self.problem.about["query_dtype"])
        return self.bounds_for(dtype if dtype in ("f64", "f32", "f16", "bf16") else "bf16")

    def bounds_for(self, dtype: str) -> Any:
        """The allowed |out - o| of each element for an output of that type: "f64", "f32", "f16" or "bf16"."""
        return as_kind(np.asarray(_core.bounds(self._core, dtype)), "f64", self.problem._kind)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the golden bundle; `kvscope verify` and `diagnose` read it with --input."""
        self._core.save(path_of("path", path))

    def __repr__(self) -> str:
        return f"<kvscope.Golden o {list(self.o.shape)} of {self.problem!r}>"

    def _draw(self) -> Drawing:
        return draw_golden(self)

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        o, lse = np.asarray(self.o), np.asarray(self.lse)
        return (["query", "head", "lse", "smallest o", "largest o"],
                [[query, head, lse[query, head], o[query, head].min(initial=0), o[query, head].max(initial=0)]
                 for query in range(o.shape[0]) for head in range(o.shape[1])] if o.size <= 1 << 20 else ())


@guided
def golden(problem: Problem, *, accuracy: str = "strict") -> Golden:
    """Computes the golden output. "strict": bit for bit the same everywhere; "fast": with an error that is part of the
    bounds, several times faster."""
    return Golden(problem, _computed(_core.golden, problem, accuracy))


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Attention:
    """An output alone, in double, as arrays of the kind that the problem's tensors had: to compare in your own way.

    o          f64 [queries, query_heads, value_size]
    lse        f64 [queries, query_heads], in the base of the problem's lse_base
    o_error    f64 [queries, query_heads] largest error of an element of o; 0 with accuracy="strict"
    lse_error  f64 [queries, query_heads] largest error of lse; 0 with accuracy="strict"
    """
    o: Any
    lse: Any
    o_error: Any
    lse_error: Any

    def __repr__(self) -> str:
        return f"<kvscope.Attention o {list(self.o.shape)}>"


@guided
def attention(problem: Problem, *, accuracy: str = "strict") -> Attention:
    """Computes o and lse alone, sooner than kv.golden and, with accuracy="strict", with the same bits. verify, diagnose
    and assert_close need kv.golden: their bounds are made of what this leaves out."""
    computed = _computed(_core.attention, problem, accuracy)
    return Attention(*(from_bundle(computed, name, problem._kind) for name in ("o", "lse", "o_error", "lse_error")))


def _computed(compute: Callable[[_core.Problem, bool], _core.Bundle], problem: Problem, accuracy: str) -> _core.Bundle:
    if not isinstance(problem, Problem):
        raise InputError(f"the problem is {type(problem).__name__}: make it with the constructor of the layout of your "
                         "tensors, such as kv.Problem.vllm(q, kv_cache, block_table=..., seq_lens=...)")
    if accuracy not in ("strict", "fast"):
        raise InputError(f"accuracy is {accuracy!r}: pass \"strict\" or \"fast\"")
    computed = compute(problem._core, accuracy == "fast")
    if rows := _core.non_finite_rows(computed):
        warnings.warn(rows, NonFiniteWarning, stacklevel=4)
    return computed


@dataclasses.dataclass(frozen=True)
class Cause:
    """A fault that explains the output. `residual` is the largest error of its prediction over the allowed error."""
    name: str
    cause: str
    look_at: str
    residual: float
    sequence: int | None
    page: int | None
    explained: int  # failing rows that it reproduces

    @property
    def place(self) -> str:
        """"sequence 2, page 3"; "all sequences" if the cause names none."""
        if self.sequence is None:
            return "all sequences"
        return f"sequence {self.sequence}" + ("" if self.page is None else f", page {self.page}")


class Diagnosis:
    """Why an output fails: `causes`, best first; `certain` if one explains all rows that were looked at."""

    def __init__(self, report: dict[str, Any], words: str) -> None:
        self.report = report
        self.text = words
        self.certain = bool(report.get("certain", False))
        self.causes = [_cause(one) for one in report.get("explanations", [])]
        self.nearest = [_cause(one) for one in report.get("nearest", [])]

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return text(self.text)


def _cause(one: dict[str, Any]) -> Cause:
    def place(key: str) -> int | None:
        value = one.get(key, -1)
        return None if value is None or value < 0 else int(value)
    return Cause(str(one.get("name", "")), str(one.get("cause", "")), str(one.get("look_at", "")),
                 float(one["error_over_allowed"]), place("sequence"), place("page"), int(one.get("failing_explained", 0)))


@dataclasses.dataclass(frozen=True)
class Errors:
    """Where an output differs from its golden.

    ratio                         f32 [queries, heads, dims] |out - o| over the allowed error; above 1 fails
    sequences, positions, pages   [queries] the sequence of each query, its position, and the page it is in; -1: unknown
    """
    ratio: np.ndarray[Any, Any]
    sequences: list[int]
    positions: list[int]
    pages: list[int]


class Verdict(Drawn):
    """The comparison of an output with its golden: `passed`, `criteria`, and the diagnosis if it failed.

    budget  what the bound of the worst element of o and of lse is made of, a line for each source of rounding, as
            `kvscope verify --explain` prints it; empty with a profile. The numbers are in report["budgets"].
    """

    def __init__(self, report: dict[str, Any], find_errors: Callable[[], dict[str, Any]]) -> None:
        self._find_errors = find_errors
        self.passed = bool(report["passed"])
        self.report: dict[str, Any] = report["verdict"]
        self.criteria: list[dict[str, Any]] = list(self.report.get("criteria", []))
        self.text: str = report["verdict_text"]
        self.budget: str = report["budget_text"]
        self.diagnosis = None if report["diagnosis"] is None else Diagnosis(report["diagnosis"],
                                                                            report["diagnosis_text"])

    @property
    def errors(self) -> Errors:
        """The error of each element of o over its allowed error; by the derived bound, whatever the profile."""
        return Errors(**self._find_errors())

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return self.text

    def _draw(self) -> Drawing:
        return draw_verdict(self)

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        return (["criterion", "passed", "detail"], [[c["name"], c["passed"], c["detail"]] for c in self.criteria])


def _judge(out: Any, g: Golden, lse: Any, dtype: str | None, options: dict[str, Any], diagnosis: str) -> Verdict:
    if not isinstance(g, Golden):
        raise InputError(f"the golden is {type(g).__name__}: pass the result of kv.golden(problem)")
    check_names("a verdict", options, (*ROUNDING, "profile"))
    if options.get("profile") not in (None, *_core.profile_names()):
        raise InputError(f"profile is {options['profile']!r}: pass one of {', '.join(_core.profile_names())}")
    if out is None or isinstance(out, (dict, tuple, str, Golden, Attention)):
        raise InputError(f"out is {type(out).__name__}: pass the kernel's output as an array, and its lse as lse=")
    array = readable("out", out, dtype)
    if array.dtype not in ("f64", "f32", "f16", "bf16"):
        raise InputError(f"out has the element type {array.dtype}: an output is f64, f32, f16 or bf16; pass "
                         "dtype=\"bf16\" for bit patterns")
    candidate, _ = bundle_of({"o": array, "lse": lse}, copy=True)  # the verdict's map of errors is made later
    return Verdict(_core.judge(g.problem._core, g._core, candidate, options, diagnosis),
                   lambda: _core.errors(g.problem._core, g._core, candidate, options))


@guided
def verify(out: Any, g: Golden, *, lse: Any = None, dtype: str | None = None, profile: str | None = None,
           **rounding: Any) -> Verdict:
    """Compares a kernel's output with the golden output, and diagnoses it if it fails. A wrong output raises nothing.

    out   [queries, query_heads, value_size] or another shape that `kvscope verify` takes, such as [B, heads, queries,
          dims] or [queries, heads * dims], in f64, f32, f16 or bf16
    lse   [queries, query_heads], [query_heads, queries] or [B, heads, queries], optional
    rounding: output, probabilities, partials, inputs: types in which the kernel rounds, such as probabilities="bf16";
          ex2_error, tile_keys, accumulator_bits, row_sum: as `kvscope verify --help` describes them
    """
    return _judge(out, g, lse, dtype, {**rounding, "profile": profile}, "on failure")


@guided
def diagnose(out: Any, g: Golden, *, lse: Any = None, dtype: str | None = None, **rounding: Any) -> Diagnosis:
    """Names the fault behind a wrong output: `diagnose(out, g).causes[0]`."""
    found = _judge(out, g, lse, dtype, dict(rounding), "always").diagnosis
    assert found is not None
    return found


@guided
def assert_close(out: Any, g: Golden, *, lse: Any = None, dtype: str | None = None, profile: str | None = None,
                 keep: str | os.PathLike[str] | None = None, **rounding: Any) -> None:
    """Raises KernelMismatch unless each element of `out` is within its error bound.

    The message has the verdict, the ranked causes, and the folder in which inputs, golden output and candidate were
    kept: `keep`, or a new folder of the system's temporary folder.
    """
    verdict = verify(out, g, lse=lse, dtype=dtype, profile=profile, **rounding)
    if verdict.passed:
        return
    folder = path_of("keep", keep) if keep is not None else tempfile.mkdtemp(prefix="kvscope-mismatch-")
    os.makedirs(folder, exist_ok=True)
    g.problem.save(os.path.join(folder, "inputs.safetensors"))
    g.save(os.path.join(folder, "golden.safetensors"))
    candidate, _ = bundle_of({"o": readable("out", out, dtype), "lse": lse})
    candidate.save(os.path.join(folder, "candidate.safetensors"))
    again = (f"kept in {folder}; again: kvscope diagnose {folder}/golden.safetensors {folder}/candidate.safetensors "
             f"--input {folder}/inputs.safetensors")
    raise KernelMismatch(f"{verdict!r}{again}", verdict, verdict.diagnosis, folder)
