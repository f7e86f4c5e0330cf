"""Names of a kernel's parameters in CUDA source, which PTX without debug information does not have."""
from __future__ import annotations

import re

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def _matching(text: str, at: int) -> int:
    """The index after the parenthesis that closes the one at `at`; -1 if none does."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    return -1


def _split(text: str) -> list[str]:
    """The parts between commas outside of brackets."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += {"(": 1, "<": 1, "[": 1, "{": 1, ")": -1, ">": -1, "]": -1, "}": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return [*parts, part] if part.strip() else parts


def names_in_source(source: str, kernel: str, count: int) -> list[str]:
    """The parameter names of the kernel's definition; [] unless all definitions of `kernel` agree and have `count`."""
    plain = _COMMENT.sub(" ", source)
    short = re.sub(r"<.*", "", kernel).split("::")[-1].split("(")[0]
    found: set[tuple[str, ...]] = set()
    for match in re.finditer(rf"\b{re.escape(short)}\s*\(", plain):
        if "__global__" not in re.split(r"[;}]", plain[:match.start()])[-1]:
            continue
        end = _matching(plain, match.end() - 1)
        if end < 0:
            continue
        names = []
        for part in _split(plain[match.end():end - 1]):
            words = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[[^\]]*\]|=.*", "", part))
            names.append(words[-1] if len(words) > 1 else "")
        if len(names) == count and all(names):
            found.add(tuple(names))
    return list(found.pop()) if len(found) == 1 else []
