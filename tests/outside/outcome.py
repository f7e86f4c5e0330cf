"""What one run gave."""
from __future__ import annotations

import dataclasses

LIMIT = 240  # [s] processor time of one run


@dataclasses.dataclass
class Outcome:
    """Of one launch. `state`: right, wrong, stopped (by a report), rejected (kvscope cannot run it), crashed,
    timeout."""
    state: str
    detail: str = ""
    reports: list[list[str]] = dataclasses.field(default_factory=list)  # kind, severity, text
    steps: int = 0          # warp instructions
    seconds: float = 0.0    # processor time
    kernel: str = ""        # name in the PTX
    what: str = ""          # the seeded bug

    @property
    def findings(self) -> list[list[str]]:
        """Reports that are more than a note."""
        return [report for report in self.reports if report[1] != "note"]
