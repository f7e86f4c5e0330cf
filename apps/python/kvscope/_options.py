"""Keyword arguments that are options: one that would be ignored is an error."""
from __future__ import annotations

import difflib
from typing import Any, Iterable, Mapping

from . import _core
from ._errors import InputError

# Options that describe a problem: its layout, its types and its conventions.
PROBLEM = ("layer", "cache_dtype", "query_dtype", "granularity", "k_scales_order", "v_scales_order", "head_size",
           "value_size", "scale", "ignore", "mask", "alignment", "window_left", "window_right", "chunk", "soft_cap",
           "lse_base", "empty_lse")

# Options of a verdict: where the kernel rounds.
ROUNDING = ("output", "probabilities", "partials", "inputs", "ex2_error", "tile_keys", "accumulator_bits", "row_sum")

# Options that the command line calls by another name.
_OF_COMMAND_LINE = {"candidate_dtype": "output", "p_dtype": "probabilities", "partials_dtype": "partials",
                    "operand_dtype": "inputs", "k_scales": "k_scales_order", "v_scales": "v_scales_order"}


def similar(name: str, known: Iterable[str]) -> str:
    """"did you mean 'soft_cap'?", or nothing."""
    other = _OF_COMMAND_LINE.get(name)
    names = list(known)
    near = [other] if other in names else difflib.get_close_matches(name, names, 1, 0.7)
    return f"did you mean '{near[0]}'?" if near else ""


def _reject(faults: list[tuple[str, str]]) -> None:
    """InputError with all faults (argument, what is wrong), if there are any."""
    if faults:
        raise InputError("arguments rejected: " + "; ".join(f"{name}: {text}" for name, text in faults), faults)


def check_names(function: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """InputError with a fault for each keyword argument that the function does not have."""
    names = list(known)
    faults = [(name, f"is no option of {function}: " + (similar(name, names) or f"options are {', '.join(names)}"))
              for name in given if name not in names]
    _reject(faults)


def check_used(layout: str, given: Mapping[str, Any]) -> None:
    """InputError for options that the mask or the layout of the problem does not use."""
    mask = given.get("mask", "causal")
    faults = []
    for name, masks in {"window_left": ["sliding_window"], "window_right": ["sliding_window"], "chunk": ["chunked"],
                        "alignment": ["causal", "sliding_window"]}.items():
        if name in given and mask not in masks:
            faults.append((name, f'has no effect with mask="{mask}": leave it out, or pass mask="{masks[-1]}"'))
    if mask == "sliding_window" and "window_left" not in given and "window_right" not in given:
        faults.append(("mask", "sliding_window needs the size of the window: pass window_left, the number of keys before "
                               "the query's position that it sees"))
    if mask == "chunked" and "chunk" not in given:
        faults.append(("mask", "chunked needs the length of a chunk: pass chunk, in tokens"))
    sizes = [name for name in ("head_size", "value_size") if name in given]
    if sizes and layout in _core.layout_names():
        used = _core.sizes_used(layout)
        faults += [(name, f"has no effect in layout '{layout}', whose tensors state it: leave it out")
                   for name in sizes if not used[name]]
    _reject(faults)
