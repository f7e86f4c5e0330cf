"""Lab 10: four broken kernels."""
import math
import re

from facts import ROOT, constant, number_in, starter

LANES = 32  # threads of a warp


def write(lab, readme, notes, hints):
    source = (ROOT / "apps/labs/lab_10_four_kernels.cpp").read_text(encoding="utf-8")
    ctas = dict(zip(("sum", "store", "last"), map(int, re.findall(r"constexpr std::int64_t kCtas = (\d+);", source))))
    tiles = constant("lab_10_four_kernels.cpp", "kTiles")
    threads = {name: number_in(starter(lab, f"{name}.cu").split("extern")[0], r"(\d+) threads") for name in ("sum", "stream", "store", "last")}
    budget = {}  # barriers of each warp
    for name, text in re.findall(r"MendCase (\w+)_case\(.*?made\.most = \{([^}]*)\}", source.replace("\n", " ")):
        first = text.split(",")[0]
        budget[name] = tiles if first == "kTiles" else int(first)
    points = {test["name"]: test["points"] for test in lab.manifest["tests"]}
    schedules = schedule_count()
    stages = number_in(starter(lab, "stream.cu"), r"stage\[(\d+)\]\[512\]")
    kernels, accesses = len(lab.manifest["files"]), len(("first", "second"))
    kept = round(points["stream_budget"] * 3 / 5)
    assert "kOneLinePart = 3.0 / 5" in source

    readme.claim(": @ broken kernels", kernels)
    readme.claim("@ kernels are right in most runs", kernels)
    readme.claim("each lacks the order of @ accesses", accesses)
    readme.claim("| `sum.cu` | adds # numbers by a tree in shared memory | # CTAs of # |", threads["sum"], ctas["sum"], threads["sum"])
    readme.claim("streams tiles through @ stages: one is read while the next is in flight | # |", stages, threads["stream"])
    readme.claim("from where the copy engine stores them | # CTAs of # |", ctas["store"], threads["store"])
    readme.claim("adds what all CTAs have written | # CTAs of # |", ctas["last"], threads["last"])
    readme.claim("The check runs each kernel under @ schedules", schedules)
    readme.claim("at once, and @ random orders", schedules - len(("late", "early")))
    readme.claim("draws the @ accesses", accesses)
    readme.claim("What orders @ accesses", accesses)
    readme.claim("read the @ reports. For each, write down the @ accesses", kernels, accesses)
    readme.claim("Why is `__syncwarp` not enough for # threads?", threads["sum"])
    readme.claim("Draw @ iterations", stages)
    two = 2 * budget["stream"] // tiles
    readme.claim("makes `stream.cu` right with @ barriers for each tile", two)
    for name, text in (("sum", "the sum"), ("stream", "the stream"), ("store", "the reversed numbers"), ("last", "the sums of the last CTA")):
        readme.claim(f"| `{name}` | # | {text}: the right result, without a report, under @ schedules |", points[name], schedules)
    # Barriers of the solution, counted by hand: one before the tree, one in each of its steps.
    assert budget["sum"] == 1 + round(math.log2(threads["sum"]))
    readme.claim("| at most # barriers for each warp, and the work", budget["sum"])
    readme.claim("one barrier for each of the # tiles, and the work still shared by the threads; @ barriers for each tile keep # points",
                 tiles, two, kept)
    readme.claim("| `store_budget` | # | at most # barrier for each warp", points["store_budget"], budget["store"])
    readme.claim("| `last_budget` | # | at most # barriers for each warp", points["last_budget"], budget["last"])
    readme.claim("`__syncwarp` orders the # threads of one warp", LANES)
    readme.exempt("writes stage (n + 1) % 2. Iteration n - 1 read", "code")
    first_thread = 0
    readme.claim("Thread # may execute it after the barrier", first_thread)

    notes.exempt("the copy of iteration n + 1 writes stage n % 2", "code")
    notes.claim("by thread # or by every thread before the barrier", first_thread)
    notes.claim("The budgets are #, #, # and # barriers for each warp; `stream.cu` with a second barrier for each tile keeps # of # points",
                *[budget[name] for name in ("sum", "stream", "store", "last")], kept, points["stream_budget"])
    notes.exempt('The PTX ISA (8.7, "Causality order")', "name")
    notes.exempt("any two fence.sc", "policy")
    notes.claim("The report names @ accesses", accesses)
    none = 0
    notes.claim("Why is the result right and the grade #?", none)
    hints[1].claim("@ accesses without an order", accesses)
    hints[1].claim("A report names @ accesses", accesses)
    hints[1].claim("orders the # threads of a warp only", LANES)
    hints[3].claim("keeps # of the # points of the budget", kept, points["stream_budget"])
    hints[3].exempt("`wait_copies<0>`", "code")


def schedule_count():
    """Schedules under which the labs run a kernel."""
    text = (ROOT / "apps/labs/kernel_run.cpp").read_text(encoding="utf-8")
    return len(re.findall(r"\{ptx::Policy::\w+, \d\}", text))
