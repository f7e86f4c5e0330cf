"""Checks the answers of the notebooks' exercises."""
from __future__ import annotations

from typing import Any


def check(answer: Any, right: Any, hint: str) -> None:
    """Prints whether an answer is right, and the hint if it is not. None counts as not answered yet."""
    if answer is None:
        print("Not answered yet: replace None.")
        return
    print("Right." if answer == right else f"{answer!r} is not right. {hint}")
