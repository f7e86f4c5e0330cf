"""Lab 12: through LDS."""
import re
import tempfile

from facts import COURSE, constant, kvscope


def points_of_task_1(lab):
    """What the handout's answer to task 1 earns: its example with a wait before the barrier and a second barrier."""
    text = re.search(r"(?s)```text schedule.txt\n(.*?)```", lab.readme.read_text(encoding="utf-8"))[1]
    mended = text.replace("  barrier\n", "  wait vmcnt(0)\n  barrier\n") + "  barrier\n"
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/schedule.txt", "w", encoding="utf-8") as file:
            file.write(mended)
        printed = kvscope("lab", "check", "12", folder, "--course", COURSE)
    lost = sorted(re.findall(r"(?m)^  FAIL  (\w+)", printed))
    return int(re.search(r": (\d+) of", printed)[1]), lost


def write(lab, readme, notes, hints):
    stages, waves = constant("wave_program.h", "kLdsStages"), 2  # of the figure and the example
    numbers = list(range(stages))
    points = {test["name"]: test["points"] for test in lab.manifest["tests"]}
    zero = numbers[0]
    barriers = constant("lab_12_through_lds.cpp", "kBarriersPerTile")
    readme.claim("K and V have @ stages each, # and #.", stages, *numbers)
    readme.claim("@ waves, their queues of copies", waves)
    readme.claim("A wave's copies are counted from #", zero)
    readme.claim("for each tile i = #, #, ..., tiles - #.", *numbers, numbers[1])
    readme.claim("N is at most #", constant("wave_program.h", "kMostInFlight"))
    readme.claim("the other stage is `(i + #) % #`", numbers[1], stages)
    readme.claim("the number of this wave, from #", zero)
    readme.exempt("`when i + 1 < tiles`", "code")
    readme.exempt("`and` joins two", "policy")
    readme.claim("of wave #, then of wave #.", *range(waves))
    readme.claim("wave # reads its own part of K before it has landed", zero)
    readme.exempt("K of tile i + 1 be issued", "code")
    readme.exempt("could be `wait vmcnt(0)` without", "code")
    readme.claim("at most @ barriers per tile", barriers)
    speed = ("overlap_v", "overlap_next", "barrier_budget")
    assert tuple(points)[-len(speed):] == speed
    readme.claim("The last @ count when every interleaving is correct", len(speed))
    earned, lost = points_of_task_1(lab)
    assert lost == ["overlap_next", "overlap_v"]
    readme.claim("all but the @ overlaps: # points, with `wait vmcnt(#)` before", len(lost), earned, zero)
    readme.exempt("V of tile i - 1 from that stage", "code")
    readme.exempt("A read after `vmcnt(0)`", "code")

    notes.exempt("The prefill loop of page 13", "name")
    notes.claim("the @ tests of speed (# points) are lost", len(speed), sum(points[name] for name in speed))
    notes.message("wave 0 reads K stage 0 before its copy 0 has landed")
    notes.message("before wave 1's copy 0 has landed")
    notes.message("before its copy 0 has landed")
    notes.message("reads V stage 0 before its copy 1 has landed")
    notes.message("reads K stage 0 before its copy")
    notes.message("waits at the barrier of line 15 for ever")
    notes.message("barriers for 1 tile")
    notes.message("line 7: 'sync' is no statement")
    notes.claim("with `wait vmcnt(#)` before the barrier and a second barrier at the end of the tile, all tests but the @ overlaps: # points",
                zero, len(lost), earned)
    notes.exempt("tile i - 1 yet", "code")
    hints[3].exempt("K and V of tile i - 1, and so", "code")
    hints[3].exempt("the stages of tile i - 1 are free: issue tile i + 1 there", "code")
    in_flight = ("V of tile i", "K of the next", "V of the next")
    hints[3].claim("# loads are then in flight", len(in_flight))
    hints[3].exempt("K and V of tile i + 1", "code")
    hints[3].claim("The wait for V leaves the last @", len(in_flight[1:]))
