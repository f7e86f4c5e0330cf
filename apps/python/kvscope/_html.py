"""Small tables for notebooks."""
from __future__ import annotations

import html
from typing import Any, Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """An HTML table; all cells are escaped."""
    cells = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    titles = "".join(f"<th>{html.escape(title)}</th>" for title in head)
    return f"<table><tr>{titles}</tr>{cells}</table>"


def text(words: str) -> str:
    """Text in a fixed font."""
    return f"<pre>{html.escape(words)}</pre>"
