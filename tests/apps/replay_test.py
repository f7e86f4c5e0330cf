#!/usr/bin/python3
"""Recorded traffic through the whole program: what the run reports against a count of the same files in a few lines of
Python. Prints how long each replay took and how much memory it held at most.

    replay_test.py --kvscope PROGRAM
"""
import csv
import json
import os
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import RECORDED, SLOW_BUILD, gallery, write_json  # noqa: E402

MOONCAKE = os.path.join(RECORDED, "mooncake_conversation.jsonl")
AZURE = os.path.join(RECORDED, "azure_code.csv")
HASHED = 512  # tokens that one entry of hash_ids stands for


def needs(path):
    if not os.path.exists(path):
        print(f"skipped in part: recorded traffic is not part of the project, and there is no {path}")
    return unittest.skipUnless(os.path.exists(path), f"there is no {path}")


def asked_of(path):
    """[(prompt tokens, tokens to generate, hashes of the prompt)] in the order of arrival."""
    if path.endswith(".csv"):
        with open(path, newline="", encoding="utf-8") as file:
            return [(int(r["ContextTokens"]), int(r["GeneratedTokens"]), []) for r in csv.DictReader(file)]
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows.sort(key=lambda r: r["timestamp"])
    return [(r["input_length"], r["output_length"], r["hash_ids"]) for r in rows]


def most_hits(asked, page):
    """Prompt tokens that an earlier prompt shares, in whole pages, with at least one left to compute: the maximum for any cache."""
    said, hits = {}, 0  # hashes so far, chained -> tokens of the last of them
    for prompt, _, hashes in asked:
        chain, shared, matching = 0, 0, True
        for n, h in enumerate(hashes):
            chain, here = hash((chain, h)), min(HASHED, prompt - n * HASHED)
            known = min(said.get(chain, 0), here)
            shared += known if matching else 0
            matching = matching and known == HASHED
            said[chain] = max(said.get(chain, 0), here)
        hits += min(shared, prompt - 1) // page * page
    return hits


def peak_memory(pid):
    """[MiB] so far, 0 for a process that has ended. What wait4 gives would count this Python's own from before exec."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return next((int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM:")), 0)
    except OSError:
        return 0


class Replay(program.FolderTest):
    def first_rows(self, source, count):
        """A file of the first rows of `source` (of a .csv after its header)."""
        path = self.path(f"{count}_{os.path.basename(source)}")
        with open(source, encoding="utf-8") as all_rows, open(path, "w", encoding="utf-8") as some:
            for _ in range(count + source.endswith(".csv")):
                some.write(all_rows.readline())
        return path

    def pool_of(self, tokens, page):
        return write_json(self.path(f"page{page}.json"), {
            "kvscope_scenario": 1, "name": "replay",
            "model": {"preset": "llama-3.1-8b", "layers": 2},  # of 32 layers a row number of 32 bits names fewer blocks
            "cache": {"page_size": page, "blocks": tokens // page, "dtype": "bf16"},
            "requests": {"list": [{"prompt_tokens": 1}]},  # replaced by the recorded ones
            "scheduler": {"max_batch": 256, "max_step_tokens": 16384}})

    def replay(self, scenario, requests, *options):
        """The report, after every check that does not depend on the scenario."""
        began = time.monotonic()
        with open(self.path("report.json"), "w+", encoding="utf-8") as out:
            command = [program.KVSCOPE, "run", scenario, "--requests", requests, "--json", *options]
            child = subprocess.Popen(command, stdout=out)
            memory = 0  # [MiB]
            while child.poll() is None:
                memory = max(memory, peak_memory(child.pid))
                time.sleep(0.02)
            out.seek(0)
            report = json.load(out)
        run = report["run"]
        print(f"{os.path.basename(requests)} on pages of {run['page_size']}: {run['steps']} steps in "
              f"{time.monotonic() - began:.1f} s, {memory:.0f} MiB", flush=True)
        if not SLOW_BUILD:
            self.assertLess(memory, 1024)
        self.assertEqual(child.returncode, 0)
        self.assertEqual(report["broken_invariants"], [])
        self.assertTrue(report["passed"])

        asked = asked_of(requests)
        self.assertEqual(run["requests"], len(asked))
        self.assertEqual(run["finished"] + run["refused"], len(asked))
        self.assertEqual(run["refused"], 0, "the pool holds the longest request")
        self.assertEqual(run["prompt_tokens"], sum(prompt for prompt, _, _ in asked))
        self.assertEqual(run["generated_tokens"], sum(generated for _, generated, _ in asked))
        stored = sum(prompt + max(generated - 1, 0) for prompt, generated, _ in asked)  # the last one is never an input
        self.assertEqual(run["computed_tokens"] + run["hit_tokens"], stored + run["lost_tokens"])

        curve = run["curve"]
        self.assertGreater(run["steps"], 0)
        self.assertEqual({len(column) for column in curve.values()}, {run["steps"]})
        self.assertEqual(sum(curve["finished"]), run["finished"])
        self.assertEqual(sum(curve["preemptions"]), run["preemptions"])
        self.assertEqual(sum(curve["hit_tokens"]), run["hit_tokens"])
        self.assertEqual(sum(curve["query_tokens"]), run["query_tokens"])
        self.assertEqual(sum(curve["prefill_tokens"]) + sum(curve["decode_tokens"]), run["computed_tokens"])
        # The peak may lie within a step, before what finished in it was released.
        self.assertTrue(max(curve["used_blocks"]) <= run["peak_used_blocks"] <= run["blocks"])
        for step, blocks in enumerate(zip(curve["used_blocks"], curve["cached_blocks"], curve["free_blocks"])):
            if sum(blocks) != run["blocks"]:
                self.fail(f"step {step}: {blocks} are not the pool's {run['blocks']} blocks")
        self.assertEqual((curve["running"][-1], curve["waiting"][-1], curve["used_blocks"][-1]), (0, 0, 0))
        self.assertEqual(curve["time_us"], sorted(curve["time_us"]))
        if run["preemptions"] == 0:  # else a request finds what it lost itself
            self.assertLessEqual(run["hit_tokens"], most_hits(asked, run["page_size"]))
        return run

    @needs(MOONCAKE)
    def test_a_chat_hour_in_a_machine_too_small_for_it(self):
        # 60 GB of cache: the pool fills, requests wait or are preempted, cached prefixes are evicted.
        requests = self.first_rows(MOONCAKE, 2000) if SLOW_BUILD else MOONCAKE
        run = self.replay(gallery("real_traffic_like"), requests, "--check-every", "2000")
        self.assertGreater(run["hit_tokens"], 0)
        self.assertGreater(run["evictions"], 0)
        self.assertEqual(run["peak_used_blocks"], run["blocks"])
        self.assertGreater(max(run["curve"]["waiting"]), 0)

    @needs(MOONCAKE)
    def test_finds_every_prefix_when_nothing_is_ever_evicted(self):
        # The count in Python knows no pages, blocks or hashes of ours. What it has more are prompts that came while the
        # one they repeat was still being computed.
        requests = self.first_rows(MOONCAKE, 2000) if SLOW_BUILD else MOONCAKE
        asked = asked_of(requests)
        tokens = sum(prompt + generated + 16 for prompt, generated, _ in asked)
        run = self.replay(self.pool_of(tokens, 16), requests)
        self.assertEqual((run["preemptions"], run["evictions"]), (0, 0))
        self.assertGreaterEqual(run["hit_tokens"], 0.999 * most_hits(asked, 16))

    @needs(AZURE)
    def test_an_hour_of_code_completion(self):
        run = self.replay(self.pool_of(4_000_000, 16), AZURE, "--check-every", "2000")
        self.assertEqual(run["hit_tokens"], 0)  # nothing tells which prompts are alike

    @needs(MOONCAKE)
    @needs(AZURE)
    def test_the_page_size_changes_no_total(self):
        for source, count in [(MOONCAKE, 150), (AZURE, 1000)]:
            requests = self.first_rows(source, count)
            runs = [self.replay(self.pool_of(1_024_000, page), requests, "--check-every", "5000")
                    for page in (1, 16, 64)]
            for total in ["requests", "finished", "refused", "prompt_tokens", "generated_tokens", "lost_tokens"]:
                self.assertEqual(len({run[total] for run in runs}), 1, total)
            self.assertEqual(len({run["computed_tokens"] + run["hit_tokens"] for run in runs}), 1)


if __name__ == "__main__":
    program.main()
