"""Results of the study as a table: one row for each package."""
from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from compilers import survey
from outcome import Outcome
from recipe import Kernel, Recipe, RecipeError

SHORT = 1000  # [warp instructions] of launches that the speed leaves out: their start takes the larger part
BEGIN, END = "<!-- outside: begin; written by tests/outside.sh --update-docs -->", "<!-- outside: end -->"


@dataclasses.dataclass
class Row:
    """The counts of one package, and every line that a reader has to know."""
    recipe: Recipe
    files: set[Path] = dataclasses.field(default_factory=set)
    compiled: int = 0                # kernels in the PTX files
    can_run: int = 0                 # of these, according to `kvscope ptx survey`
    ran: int = 0
    right: int = 0
    engines: int = 0                 # kernels with TMA or wgmma that are right
    steps: int = 0
    seconds: float = 0.0
    true_alarms: list[str] = dataclasses.field(default_factory=list)
    false_alarms: list[str] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)
    bugs: int = 0
    bugs_reported: int = 0
    bugs_in_output: int = 0          # without a report, but the output is wrong
    bugs_missed: list[str] = dataclasses.field(default_factory=list)

    def add_file(self, ptx: Path) -> None:
        """A PTX file that a kernel came from; each file counts once."""
        if ptx not in self.files:
            self.files.add(ptx)
            kernels, can_run = survey(ptx)
            self.compiled += kernels
            self.can_run += can_run

    def unexplained_of(self, kernel: Kernel, outcome: Outcome) -> list[str]:
        known = {one["kind"] for one in kernel.known}
        return sorted({report[0] for report in outcome.findings} - known)

    def add_run(self, kernel: Kernel, outcome: Outcome) -> None:
        kinds = {report[0] for report in outcome.findings}
        if outcome.state in ("right", "wrong", "stopped"):
            self.ran += 1
            if outcome.steps >= SHORT:
                self.steps += outcome.steps
                self.seconds += outcome.seconds
        if outcome.state == "right":
            self.right += 1
            self.engines += bool({"tma", "wgmma"} & set(kernel.engines))
        else:
            self.problems.append(f"`{kernel.label}`: {outcome.state}: {outcome.detail}")
        for kind in self.unexplained_of(kernel, outcome):
            self.problems.append(f"`{kernel.label}`: report {kind} is not explained in the recipe")
        for one in kernel.known:
            line = f"`{kernel.entry}`: {one['kind']}: {one['why']}"
            if one["kind"] not in kinds:
                self.problems.append(f"`{kernel.label}`: the recipe explains {one['kind']}, which is not reported")
            elif line not in self.true_alarms + self.false_alarms:
                (self.true_alarms if one["real"] else self.false_alarms).append(line)

    def add_bug(self, kernel: Kernel, bug: Any, before: Outcome, after: Outcome) -> None:
        self.bugs += 1
        old = {(report[0], re.sub(r"\d+", "", report[2])) for report in before.findings}
        new = [report for report in after.findings if (report[0], re.sub(r"\d+", "", report[2])) not in old]
        name = bug if isinstance(bug, str) else bug["what"]
        why = next((one["why"] for one in kernel.missed if one["bug"] == name), "")
        line = f"`{kernel.label}`, {after.what}"
        if new:
            self.bugs_reported += 1
            if why:
                self.problems.append(f"{line}: the recipe lists it as missed, but it is reported: {new[0][0]}")
        else:
            self.bugs_in_output += after.state == "wrong"
            self.bugs_missed.append(f"{line}: output {after.state}" + (f"; {why}" if why else ""))
            if not why or after.state != "wrong":
                explained = "explained" if why else "not explained"
                self.problems.append(f"{line} is not reported, and {explained}: output {after.state} {after.detail}")

    def failed(self, kernel: Kernel, why: str) -> None:
        self.problems.append(f"`{kernel.label}`: {why.strip().splitlines()[-1]}")


class Study:
    """All packages."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def row(self, recipe: Recipe) -> Row:
        self.rows.append(Row(recipe))
        return self.rows[-1]

    def passed(self) -> bool:
        return not any(row.problems for row in self.rows)


_HEAD = ["package", "kernels in the files", "can run", "run", "right", "with TMA or wgmma", "true reports",
         "false reports", "seeded bugs", "reported", "only the output is wrong", "million warp instructions/s"]


def _cells(study: Study) -> list[list[str]]:
    lines = []
    for row in study.rows:
        package = row.recipe.package
        counts = (row.compiled, row.can_run, row.ran, row.right, row.engines, len(row.true_alarms),
                  len(row.false_alarms), row.bugs, row.bugs_reported, row.bugs_in_output)
        speed = f"{row.steps / 1e6 / max(row.seconds, 1e-9):.1f}"
        lines.append([f"{package.name} {package.version}", *map(str, counts), speed])
    sums = [sum(int(line[i]) for line in lines) for i in range(1, 11)]
    steps, seconds = sum(row.steps for row in study.rows), sum(row.seconds for row in study.rows)
    return [*lines, ["all", *map(str, sums), f"{steps / 1e6 / max(seconds, 1e-9):.1f}"]]


def text_of(study: Study, compiler: str) -> str:
    """The table as Markdown, then each report, each missed bug and each problem in a line."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
    lines += ["| " + " | ".join(cells) + " |" for cells in _cells(study)]
    lines += ["", f"Compiled with {compiler.strip()}."]
    for title, pick in (("True reports", "true_alarms"), ("False reports", "false_alarms"),
                        ("Seeded bugs without a report", "bugs_missed"), ("Problems", "problems")):
        found = [f"- {row.recipe.name}: {line}" for row in study.rows for line in getattr(row, pick)]
        if found:
            lines += ["", f"{title}:", "", *found]
    return "\n".join(lines)


def update_page(study: Study, page: Path, compiler: str) -> None:
    """Replaces the text between the two marks of the page."""
    text = page.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise RecipeError(f"{page.name}: needs one line {BEGIN!r} and one line {END!r}")
    head, rest = text.split(BEGIN)
    page.write_text(f"{head}{BEGIN}\n\n{text_of(study, compiler)}\n\n{END}{rest.split(END)[1]}")
