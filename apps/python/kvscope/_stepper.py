"""Stepping through a run in a notebook: the state in Python, shown by a widget of anywidget."""
from __future__ import annotations

import importlib
import pathlib
from typing import Any, Callable

from ._calls import guided
from ._errors import Error, InputError, UnsupportedError
from ._pictures_cache import draw_step, selected_block
from ._run import Run

SCRIPT = pathlib.Path(__file__).parent / "widget.js"


class StepperState:
    """A run, a step and a selection; `picture` and `words` are drawn from them. It needs no notebook.

    `step` is kept in [0, steps); a selection is "", "block 7", "seq 3" or "3:37". InputError for another selection,
    IndexError for a block outside of the pool.
    """

    def __init__(self, run: Run, step: int = 0, selection: str = "", theme: str = "auto") -> None:
        self.run, self.theme = run, theme
        self.steps = len(run.steps["running"])
        self.step, self.selection = 0, ""
        self.go(step)
        self.select(selection)

    def go(self, step: int) -> None:
        self.step = max(0, min(self.steps - 1, step))

    def select(self, selection: str) -> None:
        if selection:
            try:
                selected_block(self.run.step(self.step), selection)
            except ValueError:
                raise InputError(f"selection is {selection!r}: pass \"block 7\", \"seq 3\" or \"3:37\"") from None
        self.selection = selection

    @property
    def picture(self) -> str:
        """The SVG of the step, with the selection."""
        return draw_step(self.run.step(self.step), self.selection).svg(self.theme)

    @property
    def words(self) -> str:
        """The numbers of requests, and the place of the selection: "2 running, 0 waiting; block 7: page 1 of sequence 2"."""
        figures = self.run.steps
        text = f"{figures['running'][self.step]} running, {figures['waiting'][self.step]} waiting"
        if not self.selection:
            return text
        step = self.run.step(self.step)
        block, seq, token = selected_block(step, self.selection)
        if block < 0:
            here = "runs" if seq in step.batch else "is not in the batch"
            return f"{text}; sequence {seq} {here}" if token < 0 else f"{text}; token {self.selection} is not in the batch"
        if token >= 0:
            return f"{text}; token {self.selection} is in block {block}"
        pages = step.pages_in(block)
        held = ", ".join(f"page {page} of sequence {owner}" for owner, page in pages) or "no token of the batch"
        return f"{text}; block {block}: {held}"


@guided
def stepper(run: Run, step: int = 0, select: str = "", theme: str = "auto") -> Any:
    """A widget that steps through a run: slider, arrow keys, and a click on a block selects it.

    Its attributes step and selection may be read and set. UnsupportedError if anywidget is not installed.
    """
    try:
        anywidget = importlib.import_module("anywidget")
        traitlets = importlib.import_module("traitlets")
    except ImportError:
        raise UnsupportedError("kv.stepper needs anywidget: pip install anywidget, or kvscope[notebook]; "
                               "kv.show(run, step=6) needs neither") from None
    state = StepperState(run, step, select, theme)
    whole: Callable[[int], Any] = lambda value: traitlets.Int(value).tag(sync=True)
    text: Callable[[str], Any] = lambda value: traitlets.Unicode(value).tag(sync=True)

    def changed(widget: Any, change: Any) -> None:
        state.go(widget.step)
        try:
            state.select(widget.selection)
        except Error:
            state.select("")
        widget.step, widget.selection = state.step, state.selection
        widget.picture, widget.words = state.picture, state.words

    members = {"_esm": SCRIPT, "__doc__": "Steps through a run of kvscope.", "step": whole(state.step),
               "steps": whole(state.steps), "selection": text(state.selection), "picture": text(state.picture),
               "words": text(state.words), "state": state}
    widget = type("Stepper", (anywidget.AnyWidget,), members)()
    widget.observe(lambda change: changed(widget, change), names=["step", "selection"])
    return widget
