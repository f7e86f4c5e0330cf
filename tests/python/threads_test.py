"""Calls from several threads: the same results as from one, and other threads of Python run during each long call."""
import pathlib
import threading
import time

import numpy as np

import kvscope as kv
from launch_test import ENDLESS, EXAMPLES

SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / "apps" / "scenarios"
THREADS = 8


def problem(sequences, keys, queries=1, dims=32):
    rng = np.random.default_rng(1)
    pages = -(-keys // 16)
    cache = rng.standard_normal((pages, 2, 16, 2, dims), np.float32)
    return kv.Problem.vllm(rng.standard_normal((sequences * queries, 4, dims), np.float32), cache,
                           block_table=np.stack([rng.permutation(pages).astype(np.int32) for _ in range(sequences)]),
                           seq_lens=np.full(sequences, keys - 3, np.int32),
                           query_start_loc=np.arange(sequences + 1, dtype=np.int32) * queries)


def calls():
    """{name: a function without arguments that returns what can be compared}."""
    one, run = problem(3, 90), kv.run(SCENARIOS / "first_light.json")
    g = kv.golden(one)
    wrong = np.roll(g.o, 1, 0).astype(np.float32)
    tensors = {name: one.tensor(name) for name in ("q", "kv_cache", "block_table", "seq_lens")}
    scale = kv.load(EXAMPLES / "scale.ptx")["scale"]

    def launch():
        data = np.arange(64, dtype=np.float32)
        return scale.launch(grid=2, block=32, args=[data, 0.1], schedule="seed:7").counters, data.tobytes()
    return {"golden": lambda: kv.golden(one).o.tobytes(), "fast golden": lambda: kv.golden(one, accuracy="fast").o.tobytes(),
            "bounds": lambda: g.bounds.tobytes(), "verify": lambda: repr(kv.verify(wrong, g)),
            "errors": lambda: kv.verify(wrong, g).errors.ratio.tobytes(),
            "lint": lambda: repr(kv.lint(one)), "detect": lambda: repr(kv.detect(tensors)),
            "convert": lambda: [x.tobytes() for x in kv.convert(one, to="flashinfer").values()],
            "run": lambda: kv.run(SCENARIOS / "preemption.json").text, "sweep": lambda: run.sweep(page_size=[8, 16]),
            "step": lambda: run.step(6).lookup_table.tobytes(), "explain": lambda: run.explain(3, 65).text, "launch": launch}


def test_eight_threads_at_once_get_the_results_of_one():
    work = calls()
    expected = {name: call() for name, call in work.items()}
    found, together = [], threading.Barrier(THREADS)

    def all_from(first):
        names = list(work)[first:] + list(work)[:first]  # each thread begins with another call
        together.wait()
        found.append({name: work[name]() for name in names})
    threads = [threading.Thread(target=all_from, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == THREADS
    for name in work:
        assert all(one[name] == expected[name] for one in found), name


def long_calls():
    """Calls of 50 milliseconds and more."""
    small, large = problem(4, 4096), problem(64, 16384, dims=128)
    g = kv.golden(small)
    wrong = np.roll(g.o, 3, 0).astype(np.float32) * np.float32(1.5)
    prompts = kv.golden(problem(32, 512, queries=512), accuracy="fast")
    out = prompts.o.astype(np.float32)
    traffic = kv.run(SCENARIOS / "real_traffic_like.json", golden=False)
    endless, word = kv.Module(ENDLESS)["endless"], np.zeros(1, np.uint32)
    return {"golden": lambda: kv.golden(large), "fast golden": lambda: kv.golden(large, accuracy="fast"),
            "verify": lambda: kv.verify(out, prompts), "bounds": lambda: prompts.bounds, "diagnose": lambda: kv.verify(wrong, g),
            "run": lambda: kv.run(SCENARIOS / "real_traffic_like.json", golden=False), "step": lambda: traffic.step(200_000),
            "launch": lambda: endless.launch(grid=64, block=512, args=[word], max_instructions=1_000_000)}


def test_other_threads_run_during_each_long_call():
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.002)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for name, call in long_calls().items():
            begin = time.monotonic()
            call()
            end = time.monotonic()
            edge = (end - begin) / 10  # arguments and results need the interpreter
            inside = sum(begin + edge < one < end - edge for one in ticks)
            assert end - begin > 0.02, f"{name} took {end - begin:.3f} s: too short to be observed"
            assert inside > 0, f"{name}: another thread ran {inside} times in {end - begin:.3f} s"
    finally:
        stop.set()
        thread.join()
