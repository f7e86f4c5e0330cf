"""Attention problems in the layouts of engines."""
from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

import numpy as np

from . import _core
from ._arrays import bundle_of, from_bundle, named
from ._calls import guided, path_of, text_of
from ._drawn import Drawn
from ._errors import InputError, as_arguments
from ._layouts import LayoutConstructors
from ._options import PROBLEM as _OPTIONS, check_names, check_used, similar
from ._pictures_cache import draw_problem
from ._svg import Drawing



def split_options(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(tensors, options): arguments with the name of an option are options, all others are tensors."""
    options = {name: value for name, value in given.items() if name in _OPTIONS and value is not None}
    tensors = {name: value for name, value in given.items() if name not in _OPTIONS and value is not None}
    return tensors, options


class Problem(LayoutConstructors, Drawn):
    """Queries, a paged cache, its table, and each convention of attention over them.

    Make one with the constructor of its layout, such as `Problem.vllm(q, kv_cache, block_table=..., seq_lens=...)`;
    each takes the tensors by the names of its engine, and these options:

    mask          "causal" (default), "none", "sliding_window" with window_left and window_right, "chunked" with chunk
    alignment     "bottom_right" (default) or "top_left"
    scale         of the scores; default: the tensor sm_scale, or 1 / sqrt(D). MLA layouts require it
    soft_cap      score -> cap * tanh(score / cap)
    lse_base      "natural" (default) or "two";   empty_lse   "-inf" (default) or "+inf"
    cache_dtype, query_dtype    the type of bit patterns: "bf16", "f16", "e4m3", "e5m2", "e4m3fnuz", "e2m1", "i8"
    layer, head_size, value_size, granularity, k_scales_order, v_scales_order, ignore    as `kvscope golden --help` describes them
    copy          True: the problem keeps copies of all tensors, which may then change

    Contiguous queries, caches, scales and masks are read in place and kept alive: do not write to them while the
    problem, its golden output or a verdict is computed, or pass copy=True. Strided tensors and integers of 32 and 64
    bits (tables, lengths) are copied. kvscope never writes to the caller's tensors.

    Raises InputError with all faults: tensors missing, unused or of other shapes, entries outside of the pool.
    """

    def __init__(self, core: _core.Problem | None = None, kind: str = "numpy", *others: Any, **named_others: Any) -> None:
        if not isinstance(core, _core.Problem) or others or named_others:
            raise InputError("Problem(...) is not called: a problem is made by the constructor of its layout, such as "
                             "kv.Problem.vllm(q, kv_cache, block_table=..., seq_lens=...), or by kv.Problem.of(layout, tensors)")
        self._core = core
        self._kind = kind
        self._about = core.describe()

    @classmethod
    def _make(cls, layout: str, given: Mapping[str, Any]) -> "Problem":
        given = dict(given)
        copy = given.pop("copy", False)
        if not isinstance(copy, bool):
            raise InputError(f"copy is {copy!r}: pass True, or leave it out")
        tensors, options = split_options(given)
        check_used(layout, options)
        for name, value in tensors.items():  # a mistyped option is read as a tensor
            if not hasattr(value, "shape") and (near := similar(name, _OPTIONS)):
                raise InputError(f"{name}: is no option of a problem: {near}", [(name, "is no option")])
        bundle, kind = bundle_of(tensors, copy)
        return cls(_core.Problem.make(bundle, {**options, "layout": layout}), kind)

    @classmethod
    @guided
    def of(cls, layout: str, tensors: Mapping[str, Any], **options: Any) -> "Problem":
        """The same as the layout's constructor, with the layout as text and the tensors as a dict."""
        unknown = [name for name in options if name not in (*_OPTIONS, "copy")]
        if unknown:
            raise InputError(f"{', '.join(unknown)}: no option of a problem; options are {', '.join(_OPTIONS)}, copy")
        return cls._make(layout, {**named(tensors), **options})

    @classmethod
    @guided
    def load(cls, path: str | os.PathLike[str]) -> "Problem":
        """The problem of a bundle that states its layout: a file of save(), or of `kvscope golden`."""
        source = path_of("path", path)
        return cls(_core.Problem.of_bundle(_core.load_bundle(source), source))

    @guided
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the inputs as a bundle (.safetensors or .npz) that `kvscope golden --input` and load() read."""
        self._core.save(path_of("path", path))

    @property
    def about(self) -> dict[str, Any]:
        """Sizes, types, lengths and conventions: layout, sequences, queries, query_heads, kv_heads, head_size, ..."""
        return dict(self._about)

    @property
    def warnings(self) -> list[str]:
        """Properties that are legal and a known cause of errors in kernels."""
        return list(self._about["warnings"])

    @property
    def lookup_table(self) -> np.ndarray[Any, Any]:
        """i64 [sequences, columns]: the block of each page; -1 where no token is read. A cache without pages has one
        block for each sequence."""
        return np.asarray(self._core.lookup_table())

    def tensors_info(self) -> list[tuple[str, str, list[int]]]:
        """(name, element type, shape) of each tensor."""
        bundle = self._core.tensors
        return [(name, bundle.get(name).dtype, bundle.get(name).shape) for name in bundle.names()]

    @guided
    def tensor(self, name: str) -> Any:
        """A tensor of the problem, of the kind that the arguments had; read-only in NumPy."""
        return from_bundle(self._core.tensors, text_of("name", name, '"kv_cache"'), self._kind)

    def __repr__(self) -> str:
        a = self._about
        return (f"<kvscope.Problem {a['layout']}: {a['sequences']} sequences, {a['queries']} queries, "
                f"{a['query_heads']} query heads on {a['kv_heads']}, head size {a['head_size']}, "
                f"pages of {a['page_size']}, {a['cache_dtype']}>")

    def _draw(self) -> Drawing:
        return draw_problem(self)

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        table = self.lookup_table
        return (["sequence", "keys", "queries", "blocks"],
                [[b, length, self._about["query_offsets"][b + 1] - self._about["query_offsets"][b],
                  [int(block) for block in table[b] if block >= 0]]
                 for b, length in enumerate(self._about["key_lengths"])])


def check_layout(argument: str, layout: str) -> None:
    """InputError unless it is the name of a layout."""
    names = _core.layout_names()
    if layout not in names:
        near = similar(layout, names) if isinstance(layout, str) else ""
        raise InputError(f"{argument}: {layout!r} is not a layout: {near or 'kv.layouts() lists them'}")


def _fitting(tensors: Mapping[str, Any]) -> str:
    """For a message about a missing layout: those that the tensors fit."""
    names = [fit.layout for fit in detect(tensors) if not fit.faults and not fit.needs]
    return f"; the tensors fit {' and '.join(repr(name) for name in names)}" if names else ""


class LintReport:
    """What lint found: `findings` are dicts with severity, rule, object, problem, range, next and value."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        self.findings: list[dict[str, Any]] = list(report["findings"])
        self.text: str = as_arguments(report["text"])

    @property
    def faults(self) -> list[dict[str, Any]]:
        """The findings that make a kernel read wrong or illegal addresses."""
        return [finding for finding in self.findings if finding["severity"] == "fault"]

    def __bool__(self) -> bool:
        """True without faults."""
        return not self.faults

    def __repr__(self) -> str:
        return self.text


@guided
def lint(problem: Problem | Mapping[str, Any], layout: str | None = None, *, vector_read: int = 1, tma: bool = False,
         causal: bool = False, box: tuple[int, int] | None = None, cache_shape: Sequence[int] | None = None,
         **options: Any) -> LintReport:
    """Checks index and mask tensors before a kernel reads them. `causal`: the kernel is causal too, so a mask should show
    no later key. `box`: rows and elements of the box that one TMA copy moves, which implies `tma`. `cache_shape`: the
    shape of the cache, if the tensors have no cache. Faulty tensors make no Problem: pass them as a dict."""
    if isinstance(problem, Problem):
        bundle, layout = problem._core.tensors, problem.about["layout"]
    else:
        if layout is None:
            raise InputError(f"layout is missing: pass its name, kv.lint(tensors, \"vllm\"){_fitting(problem)}")
        bundle, _ = bundle_of(problem)
    check_names("lint", options, (*_OPTIONS, "vector_read", "tma", "causal", "box", "cache_shape"))
    check_layout("layout", layout or "")
    if box is not None:
        options["box"] = list(box)
    if cache_shape is not None:
        options["cache_shape"] = list(cache_shape)
    return LintReport(_core.lint(bundle, {**options, "layout": layout or "", "vector_read": vector_read, "tma": tma,
                                          "causal": causal}))


@guided
def convert(cache: Mapping[str, Any] | Problem, source: str | None = None, to: str | None = None, *,
            page_size: int | None = None, layer: int | None = None, **options: Any) -> dict[str, Any]:
    """Moves a cache from one layout to another, byte for byte: `kv.convert(tensors, "vllm", "flashinfer")`.

    Returns the tensors of the layout `to` by name, of the kind that went in.
    """
    if isinstance(cache, Problem):
        bundle, kind, source = cache._core.tensors, cache._kind, source or cache.about["layout"]
    else:
        bundle, kind = bundle_of(cache)
    check_names("convert", options, (*_OPTIONS, "page_size"))
    if source is None or to is None:
        raise InputError("convert needs the names of two layouts: kv.convert(tensors, \"vllm\", \"flashinfer\")")
    check_layout("source", source)
    check_layout("to", to)
    result = _core.convert(bundle, {**options, "layout": source}, to, page_size, layer)
    return {name: from_bundle(result, name, kind) for name in result.names()}


class LayoutFit:
    """A layout; the tensors fit it if `faults` is empty. `needs` are options to add, `sizes` what was read."""

    def __init__(self, fit: dict[str, Any]) -> None:
        self.layout: str = fit["layout"]
        self.faults: list[tuple[str, str]] = fit["faults"]
        self.needs: list[str] = fit["needs"]
        self.sizes: str = fit["sizes"]
        self.passed: bool | None = fit["passed"]
        self.note: str = fit["note"]

    def __repr__(self) -> str:
        count = len(self.faults)
        return f"<LayoutFit {self.layout}: {self.sizes or f'{count} fault' + 's' * (count != 1)}>"


@guided
def detect(tensors: Mapping[str, Any], out: Any = None, **options: Any) -> list[LayoutFit]:
    """All layouts, those that the tensors fit first. With a kernel's output `out`, `passed` tells which gives it."""
    check_names("detect", options, _OPTIONS)
    bundle, _ = bundle_of(tensors)
    candidate = None if out is None else bundle_of({"o": out})[0]
    return [LayoutFit(fit) for fit in _core.detect(bundle, options, candidate)]


@guided
def layouts() -> list[str]:
    """The names of all layouts."""
    return list(_core.layout_names())
