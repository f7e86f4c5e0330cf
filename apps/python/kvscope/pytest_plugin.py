"""Fixtures for tests of kernels: `paged_problem`, one problem for each shape that kernels get wrong, and `virtual_gpu`.

--kvscope-report=FILE.html writes a report of each KernelMismatch.
"""
from __future__ import annotations

import dataclasses
import html
from typing import Any, Iterator, Sequence

import numpy as np
import pytest

from ._errors import KernelMismatch
from ._golden import Verdict
from ._launch import LaunchResult, Module
from ._problem import Problem


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sequences of `lengths` keys, one query each. MLA: one row per token, V is its first value_size elements."""
    name: str
    page_size: int
    lengths: tuple[int, ...]
    query_heads: int = 4
    kv_heads: int = 2
    head_size: int = 64
    value_size: int | None = None  # MLA


def _edges(page: int) -> tuple[int, ...]:
    return (0, 1, page - 1, page, page + 1)


SHAPES = (
    Shape("page16", 16, _edges(16)),
    Shape("page8", 8, _edges(8)),
    Shape("page64", 64, _edges(64)),
    Shape("gqa8", 16, _edges(16), query_heads=8, kv_heads=1),
    Shape("mha", 16, _edges(16), query_heads=2, kv_heads=2),
    Shape("mla", 16, _edges(16), query_heads=4, kv_heads=1, head_size=96, value_size=64),
    Shape("4k", 16, (4096, 17), query_heads=2, kv_heads=1),
)


def make_problem(shape: Shape, seed: int = 1) -> Problem:
    """A problem of layout vllm, or mla, in f32. Blocks are shuffled; entries that no kernel may read are -1, and blocks
    that no sequence owns hold NaN."""
    rng = np.random.default_rng(seed)
    pages = [-(-length // shape.page_size) for length in shape.lengths]
    blocks, columns, batch = sum(pages) + 2, max(max(pages), 1), len(shape.lengths)
    order = rng.permutation(blocks)[:sum(pages)]
    table = np.full((batch, columns), -1, np.int32)
    taken = 0
    for row, count in enumerate(pages):
        table[row, :count] = order[taken:taken + count]
        taken += count

    def values(*extents: int) -> np.ndarray[Any, Any]:
        # Few bits, so that every narrow type holds them exactly
        return (rng.integers(-32, 33, extents) / 32).astype(np.float32)

    free = np.setdiff1d(np.arange(blocks), order)
    q = values(batch, shape.query_heads, shape.head_size)
    lengths = np.array(shape.lengths, np.int32)
    if shape.value_size is not None:
        rows = values(blocks, shape.page_size, shape.head_size)
        rows[free] = np.nan
        return Problem.mla(q, rows, block_table=table, cache_seqlens=lengths, value_size=shape.value_size,
                           scale=shape.head_size ** -0.5)
    cache = values(blocks, 2, shape.page_size, shape.kv_heads, shape.head_size)
    cache[free] = np.nan
    return Problem.vllm(q, cache, block_table=table, seq_lens=lengths)


class VirtualGpu:
    """Launches kernels and fails the test on every report of severity error."""

    def launch(self, module: Module, kernel: str, **options: Any) -> LaunchResult:
        """`module[kernel].launch(**options)`; pytest.fail with the reports unless the launch is clean."""
        result = module[kernel].launch(**options)
        if not result.clean:
            pytest.fail(repr(result), pytrace=False)
        return result


@pytest.fixture(params=SHAPES, ids=[shape.name for shape in SHAPES])
def paged_problem(request: pytest.FixtureRequest) -> Problem:
    """A kvscope.Problem; the test runs once for each shape of kvscope.pytest_plugin.SHAPES."""
    shape: Shape = request.param
    return make_problem(shape)


@pytest.fixture
def virtual_gpu() -> VirtualGpu:
    """Runs compiled kernels with all checks; a race or an illegal address fails the test."""
    return VirtualGpu()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kvscope-report", metavar="FILE", default=None,
                     help="Write an HTML report of each output that kvscope rejected")


_FAILED: pytest.StashKey[Any] = pytest.StashKey()  # list of (test, message, HTML of the verdict)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_FAILED] = []


def _makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    outcome: Any = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, KernelMismatch):
        report = outcome.get_result()
        report.sections.append(("kvscope", str(error)))
        drawing = error.verdict._repr_html_() if isinstance(error.verdict, Verdict) else ""
        item.config.stash[_FAILED].append((item.nodeid, str(error), drawing))


_around: Any = pytest.hookimpl(hookwrapper=True)  # typed in some versions of pytest only
pytest_runtest_makereport = _around(_makereport)


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--kvscope-report")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(report_page(session.config.stash[_FAILED], session.testscollected))


def report_page(failed: Sequence[tuple[str, str, str]], tests: int) -> str:
    """The HTML page of --kvscope-report."""
    parts = [f"<h2>{html.escape(name)}</h2>{drawing}<pre>{html.escape(words)}</pre>" for name, words, drawing in failed]
    return (f"<!doctype html><meta charset=\"utf-8\"><title>kvscope</title><h1>{len(failed)} rejected outputs of "
            f"{tests} tests</h1>{''.join(parts)}\n")
