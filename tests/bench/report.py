#!/usr/bin/python3
"""Runs every benchmark once, on an otherwise idle machine, and writes docs/BENCHMARKS.md.

  cmake --preset bench && cmake --build --preset bench
  tests/bench/report.py build/bench/tests/bench/kvscope_bench

Figures of different runs or machines are not comparable; only the ratios within one run are. Each row has its target
and whether it is met; if a target is missed, the exit code is 1.
"""
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED_TRACES = ["mooncake_conversation.jsonl"]


def measured(program):
    """Name -> benchmark, the fastest of three repetitions: the noise of a shared machine only adds time."""
    text = subprocess.run([program, "--benchmark_format=json", "--benchmark_repetitions=3",
                           "--benchmark_enable_random_interleaving=true"],
                          check=True, capture_output=True, text=True, cwd=ROOT).stdout
    best = {}
    for row in json.loads(text)["benchmarks"]:
        if row.get("run_type") == "iteration" and not row.get("error_occurred"):
            name = row["run_name"]
            if name not in best or row["real_time"] < best[name]["real_time"]:
                best[name] = row
    return best


def unmet_needs(program):
    """One line for each missing prerequisite, so that a run of many minutes does not fail at its end."""
    unmet = []
    if not os.access(program, os.X_OK):
        return [f"{program} is no program: cmake --preset bench && cmake --build --preset bench"]
    numpy = subprocess.run(["/usr/bin/python3", ROOT / "tests/bench/numpy_attention.py", "--check"], capture_output=True,
                           text=True)
    if numpy.returncode != 0:
        unmet.append("the comparison with NumPy: " + (numpy.stderr.strip().splitlines() or ["failed"])[-1])
    listed = subprocess.run([program, "--benchmark_list_tests"], capture_output=True, text=True, cwd=ROOT)
    if listed.returncode != 0:
        return [*unmet, f"{program} does not start: {listed.stderr.strip()[-300:]}"]
    recorded = ROOT.parent / "shared" / "data"
    for trace in RECORDED_TRACES:
        if not (recorded / trace).exists():
            unmet.append(f"the recorded trace {trace}: put it into ../{recorded.parent.name}/{recorded.name}")
    if not os.access(ROOT / "docs" / "BENCHMARKS.md", os.W_OK):
        unmet.append("docs/BENCHMARKS.md cannot be written")
    return unmet


def milliseconds(row):
    return row["real_time"] * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[row["time_unit"]]


def peak_memory_mib(program, benchmark):
    """Peak memory of a process that runs only this benchmark, once."""
    process = subprocess.Popen([program, f"--benchmark_filter=^{benchmark}/"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{benchmark} failed")
    return usage.ru_maxrss / 1024


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = next(line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name"))
    flags = next(line for line in info.splitlines() if line.startswith("flags"))
    widest = "AVX-512" if " avx512f" in flags else "AVX2" if " avx2" in flags else "SSE2"
    return f"{model}, {info.count('processor')} cores, {widest}"


def lookup(rows, prefix):
    found = [row for name, row in rows.items() if name == prefix or name.startswith(prefix + "/")]
    if not found:
        raise SystemExit(f"no benchmark called {prefix}: did it skip? recorded traces belong in ../shared/data")
    return found[0]


def painting(rows):
    """The paint times of the viewer's panels for a large pool; empty in a build without the viewer."""
    if not any(name.startswith("Paint") for name in rows):
        return []
    def check(what, names, target):
        took = sum(milliseconds(lookup(rows, name)) for name in names)
        return what, f"{took:.1f} ms", f"under {target} ms", took < target
    def board(blocks):
        return max((f"PaintBoardOverview/{blocks}", f"PaintBoardPoolView/{blocks}"),
                   key=lambda name: milliseconds(lookup(rows, name)))
    hover = max((name for name in rows if "Hover" in name), key=lambda name: milliseconds(rows[name]))
    return [
        check("pool and table of 100,000 blocks, repainted at 1600x1000", ["PaintPool/100000", "PaintTable/100000"], 4),
        check("the same for a million blocks", ["PaintPool/1000000", "PaintTable/1000000"], 8),
        check("the whole board of 100,000 blocks, the slower view", [board("100000")], 4),
        check("the same for a million blocks", [board("1000000")], 8),
        check("pool of 100,000 blocks, zoomed to cells of 6 px", ["PaintPoolCellsOf6/100000"], 4),
        check("the same, zoomed to cells of 24 px", ["PaintPoolCellsOf24/100000"], 4),
        check("the same beside another run, cells of 6 px, three quarters of them framed", ["PaintPoolDifferencesOf6/100000"], 8),
        check(f"a sequence highlighted under the pointer, the slowest ({hover})", [hover], 4),
        check("one picture of a motion over 100,000 blocks, 400 of them moving", ["PaintMotion/100000"], 16),
        check("one picture of a motion in the tile view", ["PaintMotionOfTile"], 16),
    ]


KERNELS = ("alu", "decode", "qk_tensor", "qk_cp_async", "plain_gemm", "plain_flash")
WATCHERS = ("none", "races and fences", "uninitialized bytes", "all checks", "counters",
            "all checks, and races in global memory")  # by ptx_check/KERNEL/number


def times_as_long(rows, kernel, watch):
    return milliseconds(rows[f"ptx_check/{kernel}/{watch}"]) / milliseconds(rows[f"ptx_check/{kernel}/0"])


def host_instructions(program, benchmark):
    """Host instructions per warp instruction of one launch, by callgrind: independent of the machine's load."""
    counting = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                "--toggle-collect=kvscope::ptx::Device::launch*"]
    done = subprocess.run([*counting, program, f"--benchmark_filter=^{benchmark}$", "--benchmark_min_time=0.000001",
                           "--benchmark_format=json"], capture_output=True, text=True, cwd=ROOT)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or collected is None:
        raise SystemExit(f"callgrind of {benchmark} failed: {done.stderr.strip()[-500:]}")
    row, = json.loads(done.stdout)["benchmarks"]
    if row["iterations"] != 1:
        raise SystemExit(f"{benchmark} ran {row['iterations']} times under callgrind: make it longer")
    return int(collected.group(1)) / row["warp_instructions"]


def counted(program, rows):
    """Benchmark -> host instructions per warp instruction; empty if valgrind is not installed."""
    names = [name for name in rows if name.startswith("ptx_check/")]
    if shutil.which("valgrind") is None:
        print("host instructions are not counted: there is no valgrind here (apt-get install valgrind)", file=sys.stderr)
        return {}
    return {name: host_instructions(program, name) for name in names}


def watching_section(rows, instructions):
    """The cost of each watcher for each kernel, in time and in host instructions."""
    def line(kernel, watch):
        name = f"ptx_check/{kernel}/{watch}"
        cells = [kernel, WATCHERS[watch], f"{milliseconds(rows[name]):.3f} ms",
                 f"{rows[name]['items_per_second'] / 1e6:.1f} M/s", f"{times_as_long(rows, kernel, watch):.2f}"]
        if instructions:
            cells += [f"{instructions[name]:.0f}", f"{instructions[name] / instructions[f'ptx_check/{kernel}/0']:.2f}"]
        return f"| {' | '.join(cells)} |"
    columns = ["kernel", "checks", "time", "warp instructions", "time relative to no checks"]
    note = "Instructions of the host were not counted: valgrind was not installed."
    if instructions:
        columns += ["host instructions per warp instruction", "relative to no checks"]
        note = "Instructions of the host are of one launch, by callgrind (valgrind), which has AVX2 at most and counts the same each time."
    return [
        "## Cost of the checks", "", note, "",
        f"| {' | '.join(columns)} |", "|---" * len(columns) + "|",
        *(line(kernel, watch) for kernel in KERNELS for watch in range(len(WATCHERS))), "",
    ]


def on_two_threads(rows):
    """The cost of private memory and of its records: processor time, which is independent of the number of cores."""
    one, two = (lookup(rows, f"ptx_jobs/decode/{jobs}")["cpu_time"] for jobs in (1, 2))
    return "run with all checks and --jobs 2, processor time relative to one thread", f"{two / one:.2f} times", "at most 1.3 times", two <= 1.3 * one


def virtual_gpu(rows):
    """The speed of the machine that runs PTX, and the cost of the race checks."""
    def rate(what, name, least):
        millions = rows[name]["items_per_second"] / 1e6
        return what, f"{millions:.1f} M/s", f"at least {least} M/s", millions >= least
    def slower(what, watch, most, kernels=KERNELS):
        kernel = max(kernels, key=lambda name: times_as_long(rows, name, watch))
        ratio = times_as_long(rows, kernel, watch)
        return f"{what}, the slowest ({kernel})", f"{ratio:.2f} times", f"at most {most} times", ratio <= most
    def products(what, name):
        fastest, floor = (lookup(rows, of)["items_per_second"] for of in (name, "FloorMatrixProduct"))
        return (f"{what}, multiply-adds relative to a C loop's product of bf16 on this core",
                f"{fastest / 1e9:.1f} G/s / {floor / 1e9:.1f} G/s = {fastest / floor:.2f}", "at least 0.25", fastest >= 0.25 * floor)
    return [
        products("wgmma.m64n128k16 of bf16", "wgmma/bf16"),
        products("wgmma.m64n128k16 of f16", "wgmma/f16"),
        *(products(f"mma.m16n8k{k} of {type}", f"mma/{type}") for type, k in (("bf16", 16), ("f16", 16), ("tf32", 8), ("e4m3", 32))),
        rate("PTX parsed, instructions", "ParsePtx", 1),
        rate("decode kernel with tensor copies and mma, warp instructions", "ptx_check/decode/0", 35),
        slower("run with all checks, time relative to no checks", 3, 2),
        slower("run with counters, time relative to no checks", 4, 1.15),
        slower("run with all checks and global_race, time relative to no checks", 5, 3, ("plain_gemm",)),
        on_two_threads(rows),
    ]


def copies(rows):
    """Boxes against memcpy of the same rows: (name, time, time of memcpy, minimum ratio or None)."""
    def row(what, benchmark, yardstick, least=None):
        kind, _, size = yardstick.partition("/")
        plain = [milliseconds(row) for name, row in rows.items() if name in (yardstick, f"{kind}InPlace/{size}")]
        return what, milliseconds(lookup(rows, benchmark)), min(plain), least
    return [
        row("load, 256 rows of 128 B, no swizzle", "LoadBox/256", "MemcpyRows128B/256", 0.5),
        row("load, 64 rows of 128 B, no swizzle", "LoadBox/64", "MemcpyRows128B/64", 0.5),
        row("load, 256 rows of 128 B, 128B swizzle", "LoadBoxSwizzle128B/256", "MemcpyRows128B/256", 0.25),
        row("load, 64 rows of 128 B, 128B swizzle", "LoadBoxSwizzle128B/64", "MemcpyRows128B/64", 0.25),
        row("load, 256 rows of 64 B, 64B swizzle", "LoadBoxSwizzle64B", "MemcpyRows64B/256"),
        row("load, 128B swizzle, 100 of 256 rows filled", "LoadBoxFilledEdge", "MemcpyRows128B/256"),
        row("store, 256 rows of 128 B, no swizzle", "StoreBox", "MemcpyRows128B/256"),
        row("store, 256 rows of 128 B, 128B swizzle", "StoreBoxSwizzle128B", "MemcpyRows128B/256"),
        row("K tile, 128 x 128 bf16, pages of 128: 2 boxes", "CarryOutK/128", "MemcpyK/128"),
        row("K tile, 128 x 128 bf16, pages of 16: 16 boxes", "CarryOutK/16", "MemcpyK/16"),
    ]


def explanations(rows):
    """The slowest of the gallery's small scenarios: (name, benchmark)."""
    def slowest(kind):
        return max((name for name in rows if name.startswith(kind + "/")), key=lambda name: milliseconds(rows[name]))
    return [("one token explained, from scratch", slowest("ExplainFromScratch")),
            ("one token explained, step already simulated", slowest("ExplainReady"))]


def copies_section(rows):
    return [
        "## Copies into shared memory", "",
        "This table compares the model's box copies with a `memcpy` per row of the same rows, measured in the same run. The column `memcpy` is the",
        "faster of two versions: a call of `memcpy`, and inlined moves. Rows of 128 B are contiguous and in the machine's caches; rows of a K tile",
        "are one token apart. A box copy also checks its map and its memory, and records the writer of each byte.",
        "", "| what | time | memcpy | ratio | target | |", "|---|---|---|---|---|---|",
        *(f"| {what} | {1e3 * took:.2f} us | {1e3 * plain:.2f} us | {plain / took:.2f} | "
          + ("| |" if least is None else f"at least {least} | {'met' if plain / took >= least else '**missed**'} |")
          for what, took, plain, least in copies(rows)), "",
        "| what | time | target | |", "|---|---|---|---|",
        *(f"| {what}, the slowest ({name.split('/')[1]}) | {milliseconds(rows[name]):.2f} ms | under 5 ms | "
          f"{'met' if milliseconds(rows[name]) < 5 else '**missed**'} |" for what, name in explanations(rows)),
        *(f"| {what} | {1e3 * milliseconds(lookup(rows, name)):,.1f} us | | |" for what, name in [
            ("gather4, 4 rows of 128 B, 128B swizzle", "Gather4Swizzle128B"),
            ("a tile of 64 x 128 bf16 by TMA, to registers", "StageByTma"),
            ("the same through LDS, 4 waves", "StageThroughLds"),
            ("bank report of one ldmatrix.x4", "BankReportLdmatrix"),
            ("find a layout without conflicts for 64 rows of 128 B, read two ways", "SolveLayout/128")]), "",
    ]


def main():
    program = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
    program = pathlib.Path(program).resolve()
    missing = unmet_needs(program)
    if missing:
        sys.exit("nothing was measured:\n" + "\n".join(f"  {need}" for need in missing))
    rows = measured(program)
    instructions = counted(program, rows)
    memory = peak_memory_mib(program, "MooncakePage16")
    numpy = json.loads(subprocess.run(["/usr/bin/python3", ROOT / "tests/bench/numpy_attention.py", "5"], check=True,
                                      stdout=subprocess.PIPE, text=True).stdout)
    golden = milliseconds(lookup(rows, "GoldenDecodeB8H32K8D128T4096P16/f32"))
    fp64 = numpy["fp64 gather+matmul"]["wall_ms"]
    einsum = numpy["fp32 repeat+einsum"]["wall_ms"]
    fast = {dtype: lookup(rows, f"GoldenFastB8H32K8D128T4096P16/{dtype}") for dtype in ("f32", "bf16")}
    alone = {name: lookup(rows, f"GoldenOutputB8H32K8D128T4096P16/{name}") for name in ("strict_f32", "fast_f32", "fast_bf16")}
    repeated = milliseconds(lookup(rows, "GoldenRepeatedB8H32K8D128T4096P16/strict"))
    differing = milliseconds(lookup(rows, "GoldenDecodeB8H32K8D128T4096P16/bf16"))
    bandwidth = lookup(rows, "FloorMemoryRead")["bytes_per_second"]
    fma = lookup(rows, "FloorFmaDouble")["items_per_second"]
    decode_products = 4 * 8 * 4096 * 32 * 128  # of the fast path, for one decode step: of a score, o, a1 and a2
    prefill = lookup(rows, "GoldenPrefill2048")["items_per_second"]
    fast_prefill = lookup(rows, "GoldenFastPrefill2048")["items_per_second"]
    prefill_alone = lookup(rows, "GoldenOutputPrefill2048/fast")["items_per_second"]
    populate = lookup(rows, "PopulateP16BN64")["rows"]
    mooncake = lookup(rows, "MooncakePage16")
    opened, read = milliseconds(lookup(rows, "PlaybackOpenFile")), milliseconds(lookup(rows, "PlaybackTraceRead"))

    def worst(benchmark):
        return lookup(rows, benchmark)["worst_ms"]

    def of_bandwidth(row):
        read = row["bytes_per_second"]
        return f"{read / 1e9:.1f} GB/s / {bandwidth / 1e9:.1f} GB/s = {read / bandwidth:.2f}", "at least 0.6", read / bandwidth >= 0.6

    checks = [  # what, measured, target, met
        ("whole Mooncake hour, page 16, trace off", f"{milliseconds(mooncake) / 1e3:.2f} s", "under 10 s",
         milliseconds(mooncake) < 10e3),
        ("the same, peak memory, including reading the recorded requests", f"{memory:.0f} MiB", "under 1 GB", memory < 1e9 / 2**20),
        ("golden, f32 cache, time relative to numpy fp64 gather+matmul", f"{golden:.1f} ms / {fp64:.1f} ms = {golden / fp64:.2f}",
         "at most 0.25", golden / fp64 <= 0.25),
        *((f"golden, --accuracy fast, {dtype} cache, time relative to numpy fp64 gather+matmul",
           f"{milliseconds(fast[dtype]):.1f} ms / {fp64:.1f} ms = {milliseconds(fast[dtype]) / fp64:.2f}",
           f"at most {most}", milliseconds(fast[dtype]) / fp64 <= most) for dtype, most in [("f32", 0.12), ("bf16", 0.08)]),
        ("the same, bf16 cache, bytes read per second relative to this core's memory bandwidth",
         *of_bandwidth(fast["bf16"])),
        ("golden, --accuracy fast, prompt of 2,048 tokens, multiply-adds of scores and o relative to this core's peak in double",
         f"{fast_prefill / 1e9:.1f} G/s / {fma / 1e9:.1f} G/s = {fast_prefill / fma:.2f}", "at least 0.5",
         fast_prefill / fma >= 0.5),
        *((f"o and lse alone, {words} cache, time relative to numpy fp64 gather+matmul",
           f"{milliseconds(alone[name]):.1f} ms / {fp64:.1f} ms = {milliseconds(alone[name]) / fp64:.2f}",
           f"at most {most}", milliseconds(alone[name]) / fp64 <= most)
          for name, words, most in [("strict_f32", "f32", 0.25), ("fast_f32", "--accuracy fast, f32", 0.12),
                                    ("fast_bf16", "--accuracy fast, bf16", 0.08)]),
        ("the same, bf16 cache, bytes read per second relative to this core's memory bandwidth",
         *of_bandwidth(alone["fast_bf16"])),
        ("o and lse alone, --accuracy fast, prompt of 2,048 tokens, multiply-adds relative to this core's peak in double",
         f"{prefill_alone / 1e9:.1f} G/s / {fma / 1e9:.1f} G/s = {prefill_alone / fma:.2f}", "at least 0.5",
         prefill_alone / fma >= 0.5),
        *((f"verify of [4096, 32, 128], {dtype}", f"{milliseconds(lookup(rows, f'VerifyB16Q256H32D128/{dtype}')):.0f} ms",
           "under 150 ms", milliseconds(lookup(rows, f"VerifyB16Q256H32D128/{dtype}")) < 150) for dtype in ("f32", "bf16")),
        ("the golden of that verify, loaded from a file of 548 MB that is in memory",
         f"{milliseconds(lookup(rows, 'LoadGoldenB16Q256H32D128')):.0f} ms", "under 1 s",
         milliseconds(lookup(rows, "LoadGoldenB16Q256H32D128")) < 1e3),
        ("golden of sequences that repeat 128 tokens, bf16 cache, time relative to tokens that differ",
         f"{repeated:.0f} ms / {differing:.0f} ms = {repeated / differing:.1f}", "at most 4", repeated / differing <= 4),
        ("numpy fp32 repeat+einsum, time relative to golden, f32 cache", f"{einsum:.1f} ms / {golden:.1f} ms = {einsum / golden:.2f}",
         "at least 3.5", einsum / golden >= 3.5),
        ("populate, BN 64 over pages of 16", f"{populate / 1e6:.0f} million rows/s", "at least 100", populate >= 100e6),
        ("trace of a million events, written", f"{milliseconds(lookup(rows, 'TraceWriteMillion')):.0f} ms", "under 2 s",
         milliseconds(lookup(rows, "TraceWriteMillion")) < 2e3),
        ("trace of a million events, opened", f"{milliseconds(lookup(rows, 'TraceOpenMillion')):.1f} ms", "under 1 s",
         milliseconds(lookup(rows, "TraceOpenMillion")) < 1e3),
        ("trace of a million events, seek to a step", f"{milliseconds(lookup(rows, 'TraceSeek')):.3f} ms", "under 16 ms",
         milliseconds(lookup(rows, "TraceSeek")) < 16),
        ("viewer: a million events over 100,000 blocks, opened", f"{opened:.0f} ms, {read:.0f} ms of it to read the file",
         "under 1 s", opened < 1e3),
        ("the same from memory", f"{milliseconds(lookup(rows, 'PlaybackOpenMemory')):.0f} ms", "under 300 ms",
         milliseconds(lookup(rows, "PlaybackOpenMemory")) < 300),
        ("the slowest seek to any position", f"{worst('PlaybackSeek'):.1f} ms", "under 50 ms",
         worst("PlaybackSeek") < 50),
        ("the slowest step, forward and backward", f"{worst('PlaybackStep'):.1f} ms, {worst('PlaybackStepBack'):.1f} ms",
         "under 50 ms", max(worst("PlaybackStep"), worst("PlaybackStepBack")) < 50),
        ("viewer: ten million events over a million blocks, opened",
         f"{milliseconds(lookup(rows, 'PlaybackOpenFileBig')) / 1e3:.2f} s", "under 2 s",
         milliseconds(lookup(rows, "PlaybackOpenFileBig")) < 2e3),
        ("the slowest seek to any position of it", f"{worst('PlaybackSeekBig'):.1f} ms", "under 50 ms",
         worst("PlaybackSeekBig") < 50),
        ("the slowest step of it, forward and backward",
         f"{worst('PlaybackStepBig'):.1f} ms, {worst('PlaybackStepBackBig'):.1f} ms", "under 50 ms",
         max(worst("PlaybackStepBig"), worst("PlaybackStepBackBig")) < 50),
        ("run to a breakpoint through a million events", f"{milliseconds(lookup(rows, 'PlaybackRunTo')):.0f} ms", "under 100 ms",
         milliseconds(lookup(rows, "PlaybackRunTo")) < 100),
        ("search for a difference of two runs of a million events", f"{milliseconds(lookup(rows, 'PlaybackNextDifference')):.0f} ms",
         "under 100 ms", milliseconds(lookup(rows, "PlaybackNextDifference")) < 100),
        ("differences of two caches of a million blocks, counted", f"{milliseconds(lookup(rows, 'PlaybackDifferenceBig')):.1f} ms",
         "under 8 ms", milliseconds(lookup(rows, "PlaybackDifferenceBig")) < 8),
        *painting(rows),
        *virtual_gpu(rows),
        *((what + ", against memcpy", f"{plain / took:.2f}", f"at least {least}", plain / took >= least)
          for what, took, plain, least in copies(rows) if least is not None),
        *((f"{what}, the slowest", f"{milliseconds(rows[name]):.2f} ms", "under 5 ms", milliseconds(rows[name]) < 5)
          for what, name in explanations(rows)),
    ]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    page = [
        "# Benchmarks", "",
        "This page lists how fast kvscope itself runs: simulation, golden output, viewer and virtual GPU. It says nothing about the speed of",
        "GPU kernels; for those, see [hardware](hardware/README.md).", "",
        f"`tests/bench/report.py` wrote this page on {datetime.date.today()} at commit {commit}.",
        f"Machine: {machine()}; the benchmarks use one core.",
        "Each figure is the fastest of three runs in one process. On shared machines, absolute times vary by 50 % and more, so compare the",
        "ratios.", "",
        "## Against the targets", "", "| what | measured | target | |", "|---|---|---|---|",
        *(f"| {what} | {value} | {target} | {'met' if met else '**missed**'} |" for what, value, target, met in checks), "",
        "The golden output is measured on 8 sequences of 4096 tokens with one query each. There are 32 query heads on 8 KV heads of size 128, and",
        "pages of 16 tokens. numpy computes `o` only, on OpenBLAS with `OPENBLAS_CORETYPE=SKYLAKEX` and one thread. The time of the golden output",
        "includes `lse`, `a1`, `a2`, `smax` and the other terms of the bound ([04](04_attention_and_golden.md#the-bound)). Reading the f32 cache",
        f"takes {268.4e6 / bandwidth * 1e3:.0f} ms at this core's bandwidth. The strict prompt cannot exceed 0.31 of the peak: o needs a rounded product and a sum,",
        "a1 a sum, a2 a product and a sum, which are 5 instructions beside 1 for the score, where the peak counts 2. It reaches",
        f"{prefill / fma:.2f} of the peak, so the target is measured with `--accuracy fast`.",
        "",
        "Limits of `--accuracy fast`: for each score and element of o it makes four multiply-adds in f32, one for the score and three for o, a1 and",
        "a2, with twice the lanes of double. The loop over V has 28 vector instructions for 24 multiply-adds, a tile of 16 scores has 45 for its sums",
        "beside 128 multiply-adds, and 16 weights take about 100. On a core with two vector units, these limit the prompt to about 0.5 of the peak.",
        "For one query of 32 heads, these multiply-adds take at least",
        f"{decode_products / (2 * fma) * 1e3:.0f} ms at this core's peak, so that a bf16 cache cannot be read faster than "
        f"{268.4e6 / 2 / (decode_products / (2 * fma)) / bandwidth:.2f} of the bandwidth.",
        "K and V are prefetched to the second-level cache, a block of keys of all heads ahead. The loop over K waits for memory, the one over V only in a float cache.", "",
        "`o` and `lse` alone (`kvscope golden --outputs-only`, `kv.attention`) are what numpy computes, without the terms of the bound. Here, both read",
        "their arrays in memory pages of 2 MiB, as NumPy allocates them. kvscope does not: a file of 548 MB took four times as long to load.", "",
        "### Reading rows of a paged cache", "",
        "Measured by hand on an AMD EPYC (Zen 5) whose memory delivers 36 GB/s to a core:", "",
        "- Rows of one head that are a token apart are read at 10 to 20 GB/s. Prefetches of whole tokens into the first-level cache, 8 tokens ahead, reach",
        "  32 GB/s, if these tokens are read before they leave that cache.",
        "- The processor drops prefetches that come faster than memory delivers: after 512 in a row, reading took as long as if 60 % of the lines missed.",
        "- Memory pages of 2 MiB take 8 to 12 % of the time of `o` and `lse` alone, most of all for a float cache, whose tokens fill a page of 4 KiB.",
        "- `o` and `lse` alone, bf16: the arithmetic takes 5 ms with all rows in the second-level cache, reading them 3.5 ms, both together 6.4 ms.",
        "- No gain: prefetches of V during the exponentials, a second prefetch of each row just before it is read, prefetches into the second-level cache,",
        "  prefetches spread between the multiply-adds, other sizes of blocks for `strict`.", "",
        "And on an Intel Xeon (Sapphire Rapids or later) whose memory delivers 14.7 GiB/s to a core, `o` and `lse` alone:", "",
        "| prefetches into | bf16 cache | f32 cache |", "|---|---|---|",
        "| no cache: only the processor prefetches | 5.8 GiB/s | 10.3 GiB/s |",
        "| the first-level cache, blocks of 24 KiB | 7.7 GiB/s | 8.3 GiB/s |",
        "| the second-level cache, blocks of 24 KiB | 8.8 GiB/s | 10.3 GiB/s |",
        "| the second-level cache, blocks of 64 KiB | 9.2 GiB/s | 10.7 GiB/s |",
        "| the second-level cache, blocks of 256 KiB | 8.6 GiB/s | 10.4 GiB/s |", "",
        "So kvscope prefetches into the second-level cache.", "",
        *copies_section(rows),
        *watching_section(rows, instructions),
        "## Every benchmark", "",
        "Names are those of the benchmark program; a number after `/` is a size.",
        "In `ptx_check/KERNEL/N`, N selects the checks: " + ", ".join(f"{n}: {what}" for n, what in enumerate(WATCHERS)) + ".", "",
        "| benchmark | time | rate |", "|---|---|---|",
    ]
    for name, row in sorted(rows.items()):
        rate = next((f"{row[key] / 1e6:.1f} M {unit}/s" for key, unit in
                     [("rows", "rows"), ("items_per_second", "items")] if key in row), "")
        page.append(f"| {name} | {milliseconds(row):.4g} ms | {rate} |")
    for name, row in numpy.items():
        if isinstance(row, dict):
            page.append(f"| numpy, {name} | {row['wall_ms']:.4g} ms | |")
    page += ["", "**Try next:** measure on your machine with `cmake --preset bench && cmake --build --preset bench`, then",
             "`tests/bench/report.py build/bench/tests/bench/kvscope_bench`, which writes this page again.", ""]
    (ROOT / "docs/BENCHMARKS.md").write_text("\n".join(page), encoding="utf-8")
    print("\n".join(page))
    return 0 if all(met for *_, met in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
