#!/usr/bin/python3
"""kvscope lint as a user calls it: exit codes, the report as text and JSON, and the faults of a batch against a checker
in NumPy.

    lint_test.py --kvscope PROGRAM
"""
import json
import sys

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, gallery, kvscope  # noqa: E402

CASES = 20 if program.SLOW_BUILD else 60


def flashinfer_batch(rng):
    """An indptr batch with a few faults, and the set of them."""
    blocks, page, batch = 9, 4, int(rng.integers(1, 5))
    pages = rng.integers(0, 4, batch)
    indptr = np.concatenate([[0], np.cumsum(pages)]).astype(np.int32)
    indices = rng.integers(-1, blocks + 1, int(pages.sum())).astype(np.int32)
    last = rng.integers(0, page + 2, batch).astype(np.int32)
    # Equal blocks differ in no byte, so that only the place of a shared block can be wrong.
    arrays = {"kv_cache": np.zeros((blocks, 2, page, 1, 8), np.float32), "kv_indptr": indptr, "kv_indices": indices,
              "kv_last_page_len": last, "q": np.zeros((batch, 1, 8), np.float32)}
    rows = [indices[a:b].tolist() for a, b in zip(indptr[:-1], indptr[1:])]
    keys = [0 if n == 0 else (n - 1) * page + (int(t) if 1 <= t <= page else page) for n, t in zip(pages, last)]
    faults = {("last-page", f"kv_last_page_len[{b}]") for b in range(batch)
              if pages[b] > 0 and not 1 <= last[b] <= page}
    uses = {}
    for b, row in enumerate(rows):
        for p, block in enumerate(row):
            name = f"kv_indices[{indptr[b] + p}]"
            if not 0 <= block < blocks:
                faults.add(("range", name))
                continue
            if block in row[:p]:
                faults.add(("duplicate", name))
            elif block in uses and uses[block][0] != b:
                owner, place = uses[block]
                before = zip(rows[owner][:p], row[:p])
                if place != p or any(x != y and not (0 <= x < blocks and 0 <= y < blocks) for x, y in before):
                    faults.add(("sharing", name))
            uses.setdefault(block, (b, p))
            if keys[b] > 0 and (keys[b] - 1) // page == p and any(
                    other != b and p < len(rows[other]) and rows[other][p] == block and keys[other] >= keys[b]
                    for other in range(batch)):
                faults.add(("write", name))
    return arrays, faults


class Lint(program.FolderTest):
    def save(self, **arrays):
        np.savez(self.path("in.npz"), **arrays)
        return self.path("in.npz")

    def test_the_faults_of_random_batches_are_those_of_a_checker_in_numpy(self):
        rng = np.random.default_rng(7)
        seen = set()
        for case in range(CASES):
            arrays, faults = flashinfer_batch(rng)
            done = kvscope("lint", self.save(**arrays), "--layout", "flashinfer", "--json")
            report = json.loads(done.stdout)
            found = {(f["rule"], f["object"]) for f in report["findings"] if f["severity"] == "fault"}
            self.assertEqual(found, faults, f"case {case}")
            self.assertEqual(done.returncode, 1 if faults else 0)
            self.assertEqual(report["passed"], not faults)
            seen |= {rule for rule, _ in faults}
        self.assertEqual(seen, {"last-page", "range", "duplicate", "sharing", "write"})

    def test_warnings_fail_only_with_strict(self):
        file = self.save(k_cache=np.zeros((6, 4, 2, 8), np.float32), v_cache=np.zeros((6, 4, 2, 8), np.float32),
                         block_table=np.array([[5, 0, 2], [3, 1, -1]], np.int32),
                         cache_seqlens=np.array([10, 5], np.int32))
        arguments = ["lint", file, "--layout", "nhd", "--vector-read", "4"]
        self.assertIn("0 faults, 3 warnings", fine(*arguments))
        self.assertEqual(kvscope(*arguments, "--strict").returncode, 1)

    def test_a_file_without_the_cache_needs_its_shape(self):
        file = self.save(block_table=np.array([[5, 0]], np.int32), cache_seqlens=np.array([20], np.int32))
        without = kvscope("lint", file, "--layout", "nhd")
        self.assertEqual(without.returncode, 1)
        self.assertIn("pass its shape with --cache-shape", without.stdout)
        shaped = kvscope("lint", file, "--layout", "nhd", "--cache-shape", "5,16,2,64")
        self.assertEqual(shaped.returncode, 1)
        self.assertIn("FAULT    range      block_table[0, 0] is 5 for page 0 of sequence 0; allowed: [0, 5); an entry "
                      "that counts from 1, or the number of a null block\n", shaped.stdout)
        wrong = kvscope("lint", file, "--layout", "nhd", "--cache-shape", "5,16")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("--cache-shape: [5, 16] has no form of layout 'nhd'", wrong.stderr)

    def test_bit_patterns_of_each_type_of_a_cache_are_checked(self):
        table = {"block_table": np.array([[3, 9]], np.int32), "cache_seqlens": np.array([7], np.int32)}
        for dtype in ("e4m3", "e4m3fnuz", "e5m2", "i8"):
            cache = np.zeros((5, 4, 2, 8), np.int8 if dtype == "i8" else np.uint8)
            given = ["--cache-dtype", dtype, "--layout", "nhd"]
            for arrays, options in [({"k_cache": cache, "v_cache": cache}, []), ({}, ["--cache-shape", "5,4,2,8"])]:
                done = kvscope("lint", self.save(**arrays, **table), *given, *options)
                self.assertEqual((done.returncode, done.stderr), (1, ""), dtype)
                self.assertIn("1 fault, ", done.stdout)
                self.assertIn("block_table[0, 1] is 9", done.stdout)

    def test_the_layout_comes_from_the_manifest_or_from_the_command_line(self):
        inputs = self.path("inputs.safetensors")
        fine("golden", gallery("sliding_window"), "--inputs-only", "--out", inputs)
        self.assertIn("layout max", fine("lint", inputs))
        bare = kvscope("lint", self.save(block_table=np.zeros((1, 1), np.int32)))
        self.assertEqual(bare.returncode, 2)
        self.assertIn("--layout: is required", bare.stderr)

    def test_axes_describe_the_layout(self):
        cache = np.zeros((6, 2, 2, 8, 4), np.float32)  # 6 blocks of 4 tokens
        file = self.save(kv_cache=cache, block_table=np.array([[5, 0, 6]], np.int32), seq_lens=np.array([10], np.int32))
        done = kvscope("lint", file, "--axes", "kv=[block, head, kv, dim, slot]")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAULT    range      block_table[0, 2] is 6 for page 2 of sequence 0; allowed: [0, 6)", done.stdout)
        both = kvscope("lint", file, "--axes", "kv=[block, head, kv, dim, slot]", "--layout", "nhd")
        self.assertEqual(both.returncode, 2)

    def test_many_faults_of_a_rule_are_counted(self):
        file = self.save(k_cache=np.zeros((2, 4, 1, 8), np.float32), v_cache=np.zeros((2, 4, 1, 8), np.float32),
                         block_table=np.full((3, 10), 9, np.int32), cache_seqlens=np.full(3, 40, np.int32))
        arguments = ["lint", file, "--layout", "nhd"]
        self.assertIn("range      and 22 more: pass --all, or --json", kvscope(*arguments).stdout)
        self.assertEqual(kvscope(*arguments, "--all").stdout.count("FAULT    range"), 30)
        self.assertEqual(len(json.loads(kvscope(*arguments, "--json").stdout)["findings"]), 30)


if __name__ == "__main__":
    program.main()
