"""Errors that programmers make, seeded into the PTX of one kernel.

A recipe names them as "KIND" or "KIND N", the N-th place of the kernel for that kind, from 1; or as a table
{what, find, replace, at}: a regular expression in the kernel's text.
"""
from __future__ import annotations

import re
from typing import Any

from recipe import RecipeError

_FLIPPED = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "lo": "ls", "ls": "lo", "hi": "hs", "hs": "hi"}
_STATEMENT = r"(?m)^[ \t]*(?:@!?%?\w+[ \t]+)?(?:{})[^;]*;"

# kind: (name in the table, pattern to replace, replacement)
KINDS: dict[str, tuple[str, str, Any]] = {
    "barrier": ("a barrier removed", _STATEMENT.format(r"(?:bar|barrier)(?:\.cta)?\.(?:sync|arrive|red)"), ""),
    "warp-barrier": ("a warp barrier removed", _STATEMENT.format(r"bar\.warp\.sync"), ""),
    "fence": ("a fence removed", _STATEMENT.format(r"fence|membar"), ""),
    "copy-wait": ("a wait for copies removed", _STATEMENT.format(r"cp\.async\.(?:bulk\.)?wait_\w+"), ""),
    "store": ("a store to shared memory removed", _STATEMENT.format(r"st(?:\.volatile)?\.shared|stmatrix"), ""),
    "bound": ("a bound off by one", r"(?<=setp\.)(lt|le|gt|ge|lo|ls|hi|hs)(?=\.)", lambda m: _FLIPPED[m.group(1)]),
    "wgmma-wait": ("a wait for wgmma removed", _STATEMENT.format(r"wgmma\.wait_group"), ""),
    "wgmma-fence": ("wgmma.fence removed", _STATEMENT.format(r"wgmma\.fence"), ""),
    "mbarrier-wait": ("a wait for an mbarrier that never waits",
                      r"(?m)mbarrier\.try_wait[^;]*;", lambda m: _never_waits(m.group(0))),
    "expect": ("wrong number of bytes expected", r"(?m)(mbarrier\.(?:arrive\.)?expect_tx[^;]*,\s*)([^;,]+);", None),
}


def _never_waits(statement: str) -> str:
    """setp that is always true, instead of the wait."""
    predicate = re.search(r"try_wait\S*\s+([%\w]+)", statement)
    return f"setp.eq.u32 {predicate.group(1)}, 0, 0;" if predicate else statement


def body_of(ptx: str, name: str) -> tuple[int, int]:
    """[begin, end) of a kernel's text after its name, to its closing brace; inline assembly contains braces too."""
    found = re.search(rf"\.entry\s+{re.escape(name)}\b", ptx)
    if found is None:
        raise RecipeError(f"the PTX has no kernel {name}")
    depth = 0
    for brace in re.compile(r"//[^\n]*|[{}]").finditer(ptx, found.end()):
        depth += {"{": 1, "}": -1}.get(brace.group(0), 0)
        if depth == 0 and brace.group(0) == "}":
            return found.end(), brace.end()
    raise RecipeError(f"kernel {name} does not end")


def seeded(ptx: str, name: str, bug: Any, keep_length: bool = False) -> tuple[str, str]:
    """(what was done, PTX with the bug). RecipeError if the kernel has no such place, or if a bug that has to keep the
    length is longer than what it replaces."""
    begin, end = body_of(ptx, name)
    body = ptx[begin:end]
    if isinstance(bug, dict):
        what, pattern, by, number = bug["what"], bug["find"], bug["replace"], bug.get("at", 1)
    else:
        kind, _, text = bug.partition(" ")
        if kind not in KINDS:
            raise RecipeError(f"unknown bug {bug!r}: kinds are {', '.join(KINDS)}")
        (what, pattern, by), number = KINDS[kind], int(text or 1)
        if kind == "expect":
            by = lambda m: f"{m.group(1)}16;" if not m.group(2).strip() == "16" else f"{m.group(1)}32;"
    places = list(re.finditer(pattern, body))
    if len(places) < number:
        raise RecipeError(f"{name}: bug {bug!r}: the kernel has {len(places)} such places")
    place = places[number - 1]
    changed = by(place) if callable(by) else place.expand(by)
    if keep_length:
        if len(changed) > len(place.group(0)):
            raise RecipeError(f"{name}: bug {bug!r} makes the text longer: {changed!r}")
        changed = changed.ljust(len(place.group(0)))
    return what, ptx[:begin] + body[:place.start()] + changed + body[place.end():] + ptx[end:]
