"""Drawings of outputs: the values of a golden output, and where a kernel's output differs from it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from ._svg import HEAT_LIMITS, RAMPS, Drawing, fit, heat_role, ramp_role, wrap

if TYPE_CHECKING:
    from ._golden import Errors, Golden, Verdict

WIDTH = 940.0
MOST_ROWS = 28     # of a map; more are drawn in groups
MOST_COLUMNS = 64


def grouped_max(values: np.ndarray[Any, Any], rows: int, columns: int) -> np.ndarray[Any, Any]:
    """The maximum of each of at most rows x columns equal groups of a matrix; NaN counts as the largest."""
    for axis, most in ((0, rows), (1, columns)):
        count = values.shape[axis]
        if count > most:
            starts = np.arange(most) * count // most
            values = np.maximum.reduceat(values, starts, axis=axis)
    return values


def _row_labels(errors: Errors, shown: int) -> list[str]:
    """"seq 3, pos 70" for each drawn row: the first query of its group."""
    count = len(errors.sequences)
    labels = []
    for row in range(shown):
        first = row * count // shown
        position = errors.positions[first]
        labels.append(f"seq {errors.sequences[first]}" + (f", pos {position}" if position >= 0 else ""))
    return labels


def _map(d: Drawing, values: np.ndarray[Any, Any], at: tuple[float, float, float], title: str, of_columns: int,
         labels: Sequence[str], high: float) -> None:
    """A heat map of error / allowed error with its title and column axis; `labels` of rows are on the left."""
    x, y, width = at
    rows, columns = values.shape
    d.text(x, y, title, bold=True)
    cell = min(width / columns, 34.0)
    for row in range(rows):
        if labels:
            d.text(x - 8, y + 10 + row * high + high / 2 + 4, fit(labels[row], 106, 10.5), role="quiet", size=10.5,
                   anchor="end")
        for column in range(columns):
            ratio = float(values[row, column])
            first = column * of_columns // columns
            d.box(x + column * cell, y + 10 + row * high, max(cell - 1, .8), max(high - 1, .8), fill=heat_role(ratio),
                  radius=1.5, pattern="hatch" if not ratio <= 1 else "",
                  tip=f"{labels[row] if labels else ''} {title.split()[-1]} {first}: error {ratio:.3g}x the allowed "
                      "error")
    bottom = y + 10 + rows * high
    ticks = range(columns) if columns <= 8 else sorted({0, columns // 2, columns - 1})
    for tick in ticks:
        d.text(x + (tick + .5) * cell, bottom + 12, tick * of_columns // columns, role="quiet", size=10,
               anchor="middle", mono=True)


def draw_verdict(verdict: Verdict) -> Drawing:
    """The criteria, the map of where errors are (sequence and position by head, and by dim), and the best cause."""
    state = "PASS" if verdict.passed else "FAIL"
    d = Drawing(WIDTH, state, str(verdict.report.get("policy", "")), role="good" if verdict.passed else "warning")
    y = d.top + 14
    for criterion in verdict.criteria:
        good = bool(criterion["passed"])
        d.text(18, y, "\u2713" if good else "\u2717", role="good" if good else "warning", bold=True)
        d.text(36, y, criterion["name"], bold=not good, mono=True, size=11.5)
        lines = wrap(criterion["detail"], WIDTH - 168, 11.5)
        for line in lines[:1] if good else lines[:3]:
            d.text(150, y, line + ("\u2026" if good and len(lines) > 1 else ""), role="quiet" if good else "text",
                   size=11.5)
            y += 18
    errors = verdict.errors
    rows, heads, dims = errors.ratio.shape
    if errors.ratio.size:
        y += 12
        shown = min(rows, MOST_ROWS)
        high = 20.0 if shown <= 12 else 13.0
        by_head = grouped_max(errors.ratio.max(axis=2), MOST_ROWS, MOST_COLUMNS // 2)
        by_dim = grouped_max(errors.ratio.max(axis=1), MOST_ROWS, MOST_COLUMNS)
        labels = _row_labels(errors, shown)
        left_width = min(34.0 * by_head.shape[1], 280.0)
        _map(d, by_head, (126, y, left_width), "by head", heads, labels, high)
        x = 126 + left_width + 40
        _map(d, by_dim, (x, y, WIDTH - x - 18), "by dim", dims, [], high)
        d.key(18, d.height + 18, _heat_key())
        if rows > shown:
            d.note(f"{rows:,} queries in {shown} groups; a cell is the largest error of its group.")
    if verdict.diagnosis is not None:
        _draw_causes(d, verdict)
    return d


def _heat_key() -> list[tuple[str, str, str]]:
    names = ["no error", f"up to {HEAT_LIMITS[1]:g}x the allowed", "up to the allowed", f"up to {HEAT_LIMITS[3]:g}x",
             f"up to {HEAT_LIMITS[4]:g}x", "more, or NaN"]
    return [(f"heat{i}", "hatch" if i > 2 else "", name) for i, name in enumerate(names)]


def _draw_causes(d: Drawing, verdict: Verdict) -> None:
    assert verdict.diagnosis is not None
    y = d.height + 16
    causes = verdict.diagnosis.causes
    if not causes:
        d.text(18, y, "No modeled fault explains this output.", role="quiet")
        return
    for number, cause in enumerate(causes[:3]):
        d.text(18, y, "Cause" if number == 0 else "or", role="quiet", size=11)
        for line in wrap(f"{cause.place}: {cause.cause}", WIDTH - 90, 12.5):
            d.text(66, y, line, bold=number == 0, size=12.5)
            y += 17
        if number == 0:
            for line in wrap(f"look at {cause.look_at}", WIDTH - 90, 11.5):
                d.text(66, y, line, role="good", size=11.5)
                y += 17
        y += 3


def draw_golden(golden: Golden) -> Drawing:
    """lse and the largest |o| of each query and head."""
    o, lse = np.asarray(golden.o), np.asarray(golden.lse)
    a = golden.problem.about
    d = Drawing(WIDTH, "Golden output", f"o f64 {list(o.shape)}, lse f64 {list(lse.shape)}, of a problem in layout "
                                        f"{a['layout']} with {a['sequences']} sequences")
    if o.size == 0:
        d.text(18, d.top + 16, "no output element", role="quiet")
        return d
    finite = np.where(np.isfinite(lse), lse, -np.inf)
    y = d.top + 18
    half = (WIDTH - 36 - 40) / 2
    for number, (title, values) in enumerate((("lse by query and head", finite),
                                              ("largest |o| by query and head", np.abs(o).max(axis=2)))):
        x = 18 + number * (half + 40)
        small = grouped_max(values, MOST_ROWS, MOST_COLUMNS // 2)
        known = small[np.isfinite(small)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        rows, columns = small.shape
        tall = 22.0 if rows <= 12 else 13.0
        cell = min(half / columns, 64.0)
        d.text(x, y, title, bold=True)
        for row in range(rows):
            for column in range(columns):
                value = float(small[row, column])
                empty = not np.isfinite(value)
                role = "free" if empty else ramp_role(value, low, high)
                left, top = x + column * cell, y + 10 + row * tall
                d.box(left, top, max(cell - 1.5, .8), tall - 1.5, fill=role, radius=2,
                      tip=f"query {row * len(o) // rows}, head {column * o.shape[1] // columns}: {value:.6g}")
                if cell >= 44 and tall > 20:
                    d.text(left + (cell - 1.5) / 2, top + 15, "none" if empty else f"{value:.3g}",
                           role="quiet" if empty else f"ink-{role}", size=10.5, anchor="middle", mono=True)
        bottom = y + 10 + rows * tall + 16
        d.text(x, bottom, f"{low:.4g}", role="quiet", size=10.5, mono=True)
        for i in range(RAMPS):
            d.box(x + 56 + i * 16, bottom - 9, 15, 10, fill=f"ramp{i}")
        d.text(x + 56 + RAMPS * 16 + 8, bottom, f"{high:.4g}", role="quiet", size=10.5, mono=True)
    if len(o) > MOST_ROWS or o.shape[1] > MOST_COLUMNS // 2:
        d.note(f"{o.shape[0]:,} queries x {o.shape[1]} heads in groups; a cell is the largest value of its group.")
    return d
