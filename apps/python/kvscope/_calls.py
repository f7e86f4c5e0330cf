"""A call that does not fit the function's parameters: the message has the call as it should be."""
from __future__ import annotations

import functools
import inspect
import os
from typing import Any, Callable, ParamSpec, TypeVar

from ._errors import InputError

P = ParamSpec("P")
R = TypeVar("R")


def _call(function: Callable[..., Any]) -> str:
    """"kv.golden(problem, *, accuracy='strict')", and how many of its arguments need no name."""
    kinds = inspect.Parameter
    signature = inspect.signature(function)
    given = [p.replace(annotation=kinds.empty) for p in signature.parameters.values() if p.name not in ("self", "cls")]
    module = function.__module__.removeprefix("kvscope").lstrip(".")
    public = "" if module.startswith("_") or not module else f"{module}."
    name = f"kv.{public}{function.__qualname__}".replace("LayoutConstructors", "Problem")
    call = f"{name}{signature.replace(parameters=given, return_annotation=inspect.Signature.empty)}"
    plain = sum(p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD) for p in given)
    if any(p.kind == kinds.VAR_POSITIONAL for p in given) or plain == len(given):
        return call
    return f"{call}: at most {plain} argument{'s' * (plain != 1)} without a name"


def guided(function: Callable[P, R]) -> Callable[P, R]:
    """The function. A call of it with missing, unknown or too many arguments raises a TypeError that has its parameters."""
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # raised within the function
                raise
            raise TypeError(f"{error}. Write {_call(function)}") from None
    return call


def path_of(name: str, value: Any) -> str:
    """The path as text; InputError if the value is none."""
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(path, str):
        raise InputError(f"{name} is {value!r}: pass a path, as a text or as a pathlib.Path")
    return path


def text_of(name: str, value: Any, such_as: str) -> str:
    """The text; InputError if the value is none."""
    if not isinstance(value, str):
        raise InputError(f"{name} is {value!r}: pass a text, such as {such_as}")
    return value
