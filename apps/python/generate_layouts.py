#!/usr/bin/python3
"""Writes kvscope/_layouts.py: a constructor of Problem for each layout of core/golden/layouts/named/.

    generate_layouts.py            writes the file
    generate_layouts.py --check    exits 1 if the file is not what would be written
"""
import json
import pathlib
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
NAMED = HERE.parents[1] / "core" / "golden" / "layouts" / "named"
HEAD = '''"""Constructors of Problem, one for each named layout. Written by generate_layouts.py from core/golden/layouts/named/."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from ._calls import guided

if TYPE_CHECKING:
    from ._problem import Problem


class LayoutConstructors:
    """Base of Problem."""

    @classmethod
    def _make(cls, layout: str, given: Mapping[str, Any]) -> "Problem":
        raise NotImplementedError
'''


def constructor(name, layout):
    forms = [[tensor for tensor in form["tensors"] if not tensor.get("optional")] for form in layout["forms"]]
    first = [tensor["name"] for tensor in forms[0]]
    rows = []
    for form in layout["forms"]:
        for tensor in form["tensors"]:
            names = " or ".join([tensor["name"], *tensor.get("also", [])])
            optional = ", optional" if tensor.get("optional") else ""
            rows.append(f"{names}   {tensor['axes']}, holds {tensor['holds']}{optional}")
    for role, names in layout["table"].get("tensors", {}).items():
        rows.append(f"{' or '.join(names)}   {role}")
    rows = list(dict.fromkeys(rows))
    about = textwrap.fill(layout["about"] + ".", 108, initial_indent=" " * 8, subsequent_indent=" " * 8).strip()
    body = "\n".join(textwrap.fill(row, 112, initial_indent=" " * 8, subsequent_indent=" " * 12) for row in rows)
    # The tensors of the cache may be passed by position; their other forms and synonyms by name.
    parameters = ", ".join(f"{tensor}: Any = None" for tensor in first)
    given = ", ".join(f'"{tensor}": {tensor}' for tensor in ["q", *first])
    return f'''
    @classmethod
    @guided
    def {name}(cls, q: Any = None, {parameters}, **tensors_and_options: Any) -> "Problem":
        """{about}

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
{body}

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("{name}", {{{given}, **tensors_and_options}})
'''


def main():
    text = HEAD + "".join(constructor(path.stem, json.loads(path.read_text())) for path in sorted(NAMED.glob("*.json")))
    target = HERE / "kvscope" / "_layouts.py"
    if "--check" in sys.argv[1:]:
        if not target.exists() or target.read_text() != text:
            sys.exit(f"{target} is not what generate_layouts.py writes: run it")
        return
    target.write_text(text)


if __name__ == "__main__":
    main()
