"""Objects that a notebook shows as a drawing, and drawings as files."""
from __future__ import annotations

import os
import shutil
import subprocess
from typing import Sequence

from ._calls import path_of
from ._errors import InputError, UnsupportedError
from ._html import table
from ._svg import Drawing

MOST_ROWS = 200  # of a table below a drawing


class Picture:
    """A drawing as SVG, or pixels as PNG: what `kv.show` returns. A notebook shows it; save() writes it to a file.

    `drawn_by` names the program or module that drew it.
    """

    def __init__(self, drawn_by: str, *, svg: str = "", png: bytes = b"") -> None:
        self.drawn_by = drawn_by
        self._svg, self._png = svg, png

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a .svg or .png file. A drawing becomes a .png with the program rsvg-convert, if it is installed."""
        name = path_of("path", path)
        ending = os.path.splitext(name)[1].lower()
        if ending == ".svg" and self._svg:
            data = self._svg.encode()
        elif ending == ".png":
            data = self._png or _pixels(self._svg, name)
        elif ending == ".svg":
            raise InputError(f"{name}: this picture has pixels; save a .png, or use kv.show(..., format=\"svg\")")
        else:
            raise InputError(f"{name}: a picture is a .svg or a .png file")
        with open(name, "wb") as file:
            file.write(data)

    def _repr_svg_(self) -> str | None:
        return self._svg or None

    def _repr_png_(self) -> bytes | None:
        return self._png or None

    def __repr__(self) -> str:
        return f"<kvscope.Picture drawn by {self.drawn_by}>"


def _pixels(svg: str, name: str) -> bytes:
    program = shutil.which("rsvg-convert")
    if program is None:
        raise UnsupportedError(f"{name}: a drawing becomes pixels with the program rsvg-convert, which is not installed: "
                               "save a .svg, or apt-get install librsvg2-bin")
    done = subprocess.run([program, "--zoom", "2", "--format", "png"], input=svg.encode(), capture_output=True,
                          check=False)
    if done.returncode != 0:
        raise InputError(f"{name}: rsvg-convert failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


class Drawn:
    """Base of classes with a drawing. `_draw()` makes it; `_table()` has the numbers below it in a notebook."""

    def _draw(self) -> Drawing:
        raise NotImplementedError

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        return (), ()

    def picture(self, theme: str = "auto") -> Picture:
        """The drawing of this object. theme: "auto" (that of the notebook or the system), "light" or "dark"."""
        if theme not in ("auto", "light", "dark"):
            raise InputError(f"theme is {theme!r}: pass \"auto\", \"light\" or \"dark\"")
        return Picture("the module kvscope", svg=self._draw().svg(theme))

    def _repr_svg_(self) -> str:
        return self._draw().svg()

    def _repr_html_(self) -> str:
        head, rows = self._table()
        below = ""
        if rows:
            more = f"<p>and {len(rows) - MOST_ROWS:,} more rows</p>" if len(rows) > MOST_ROWS else ""
            below = f"<details><summary>numbers</summary>{table(head, rows[:MOST_ROWS])}{more}</details>"
        return f"<div>{self._draw().svg()}{below}</div>"
