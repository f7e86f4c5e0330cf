#!/usr/bin/python3
"""kvscope explain against the trace of the same run: the page table is folded from the recorded events, the offset is
computed from the scenario's numbers, and both must be what explain prints.

    explain_test.py --kvscope PROGRAM
"""
import json
import os
import re
import sqlite3
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, gallery  # noqa: E402

BYTES = {"f32": 4, "f16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1, "e8m0": 1}
SCENARIOS = [name for name in program.gallery_names() if name != "real_traffic_like"]  # that one is for replays


class Run:
    """A scenario's numbers and the events of its run."""

    def __init__(self, name, folder):
        self.path = gallery(name)
        out = os.path.join(folder, name)
        fine("run", self.path, "--out", out, "--trace", "full")
        with open(os.path.join(out, "scenario.json"), encoding="utf-8") as file:
            scenario = json.load(file)
        self.model, self.cache, self.tile = scenario["model"], scenario["cache"], scenario["tile"]
        self.paged = self.cache["kind"] == "paged"
        self.block_tokens = self.cache["page_size"] if self.paged else self.cache["max_tokens"]
        # The pool is [block, k_or_v, layer, token, head, element]; a paged pool has the null page after its blocks.
        self.extents = [self.cache["blocks"] + (1 if self.paged else 0), 1 if self.model["is_mla"] else 2,
                        self.model["layers"], self.block_tokens, self.model["kv_heads"], self.model["head_size"]]
        db = sqlite3.connect(os.path.join(out, "trace.kvt"))
        self.events = sorted((row["event"], kind, dict(row)) for kind in
                             ["step_began", "block_allocated", "block_shared", "block_copied", "block_released",
                              "tokens_written"]
                             for row in self.rows(db, f"SELECT * FROM {kind}"))
        db.close()

    @staticmethod
    def rows(db, query):
        db.row_factory = sqlite3.Row
        return db.execute(query).fetchall()

    def tables(self):
        """{(sequence, step): (pages as the step's kernels saw them, tokens stored before it, and after)}"""
        seen, pages, tokens, step = {}, {}, {}, -1
        for _, kind, e in self.events:
            if kind == "step_began":
                step = e["step"]
            elif kind in ("block_allocated", "block_shared"):
                pages.setdefault(e["seq"], {})[e["page"]] = e["block"]
            elif kind == "block_copied":
                pages[e["seq"]][e["page"]] = e["to"]
            elif kind == "block_released":
                pages[e["seq"]].pop(e["page"], None)
                tokens.pop(e["seq"], None)
            else:
                # A step writes a sequence's tokens page by page. The blocks that a finished request releases are released after that.
                end = e["first_token"] + e["tokens"]
                before = seen[e["seq"], step][1] if (e["seq"], step) in seen else e["first_token"]
                seen[e["seq"], step] = (dict(pages[e["seq"]]), before, end)
        return seen


def row_major(extents):
    strides = [1]
    for extent in reversed(extents[1:]):
        strides.insert(0, strides[0] * extent)
    return strides


def spread(values, count):
    """`count` of them from end to end."""
    return sorted({values[i * (len(values) - 1) // max(count - 1, 1)] for i in range(count)})


class Explain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.runs = {name: Run(name, cls.folder.name) for name in SCENARIOS}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def links(self, run, **question):
        arguments = [part for key, value in question.items() for part in (f"--{key}", value)]
        answer = json.loads(fine("explain", run.path, "--json", *arguments))
        return {link["name"]: link for link in answer["links"]}

    def questions(self, run):
        """Some steps of some sequences, with the tokens at the edges of pages and at the end of the previously cached tokens."""
        tables = run.tables()
        last_dim, last_head = run.model["head_size"] - 1, run.model["kv_heads"] - 1
        for n, key in enumerate(spread(sorted(tables), 6)):
            seq, step = key
            pages, before, stored = tables[key]
            edges = {0, run.block_tokens - 1, run.block_tokens, before - 1, before, stored - 1}
            for m, token in enumerate(sorted(t for t in edges if 0 <= t < stored)):
                yield pages, before, dict(seq=seq, step=step, token=token, layer=(n + m) % run.model["layers"],
                                          head=(n + m) % (last_head + 1), dim=[last_dim, 0, last_dim // 2][m % 3],
                                          kv="v" if (n + m) % 2 and not run.model["is_mla"] else "k")

    def test_finds_the_byte_that_the_events_and_the_strides_give(self):
        # Equal heads, layers and dims would hide swapped strides: the three of a question move apart.
        asked = 0
        for name, run in self.runs.items():
            strides = row_major(run.extents)
            size = BYTES[run.cache["dtype"]]
            for pages, before, q in self.questions(run):
                with self.subTest(scenario=name, **q):
                    links = self.links(run, **q)
                    page, slot = divmod(q["token"], run.block_tokens)
                    block = pages[page]
                    index = [block, 1 if q["kv"] == "v" else 0, q["layer"], slot, q["head"], q["dim"]]
                    element = sum(i * s for i, s in zip(index, strides))
                    self.assertEqual(links["block"]["result"], str(block))
                    self.assertEqual(links["pool"]["numbers"], str(run.extents))
                    self.assertEqual(links["pool"]["result"], f"strides {strides}")
                    self.assertEqual(links["element"]["result"], str(element))
                    self.assertEqual(links["byte"]["result"], f"{element * size} ({element * size:#x})")
                    cached = q["token"] < before
                    self.assertEqual(links["batch row"]["remark"],
                                     f"token {q['token']} was cached before this step" if cached else
                                     f"token {q['token']} is computed in this step: cache_length {before} + "
                                     f"{q['token'] - before}")
                    # A row is all heads of one token, so the block's rows count K and V, layers and tokens.
                    row = block * strides[0] // strides[3] + slot
                    self.assertEqual(links["row"]["result"].split(" of ")[0], str(row))
                    if run.paged:
                        self.assertEqual(links["sparse index"]["result"], str(block * run.block_tokens + slot))
                        self.assertEqual(links["tile"]["result"],
                                         "tile {}, row {} of it".format(*divmod(q["token"], run.tile["BN"])))
                        self.assertTrue(links["populate"]["result"].endswith(f" = {row}"), links["populate"])
                    asked += 1
        self.assertGreater(asked, 100)

    def test_finds_the_scale_of_a_quantized_element(self):
        run = self.runs["quantized_e4m3"]
        quantization = run.cache["quantization"]
        granularity = quantization["granularity"]
        scales = run.extents[:5] + [-(-run.extents[5] // granularity)]
        strides = row_major(scales)
        for pages, _, q in self.questions(run):
            for dim in (0, granularity - 1, granularity, run.extents[5] - 1):
                q["dim"] = dim
                with self.subTest(**q):
                    links = self.links(run, **q)
                    page, slot = divmod(q["token"], run.block_tokens)
                    index = [pages[page], 1 if q["kv"] == "v" else 0, q["layer"], slot, q["head"], dim // granularity]
                    scale = sum(i * s for i, s in zip(index, strides))
                    size = BYTES[quantization["scale_dtype"]]
                    self.assertEqual(links["scale"]["result"],
                                     f"scale {scale}, byte {scale * size} ({quantization['scale_dtype']})")

    def test_takes_the_last_step_that_computed_a_token_when_none_is_named(self):
        # Preemption: a sequence's pages move, so an earlier step would name another block.
        for name in ["first_light", "preemption"]:
            run = self.runs[name]
            tables = run.tables()
            for seq in sorted({s for s, _ in tables}):
                last = max(step for s, step in tables if s == seq)
                links = self.links(run, seq=seq, token=0)
                self.assertEqual(links["block"]["result"], str(tables[seq, last][0][0]), (name, seq))
                answer = fine("explain", run.path, "--seq", seq, "--token", 0)
                self.assertRegex(answer.splitlines()[0], rf" at step {last} of scenario ")

    def test_names_who_shares_the_block(self):
        run = self.runs["first_light"]
        tables = run.tables()
        step = 6  # all five run, and their first 64 tokens are one text
        pages = {seq: table[0] for (seq, s), table in tables.items() if s == step}
        self.assertGreater(len(pages), 3)
        for seq in pages:
            for page in (0, 3, 4):
                others = [o for o in sorted(pages) if o != seq and pages[o].get(page) == pages[seq][page]]
                remark = self.links(run, seq=seq, token=page * run.block_tokens, step=step)["block"]["remark"]
                self.assertEqual([int(n) for n in re.findall(r"\d+", remark)], others, remark)

    def test_prints_the_same_links_as_text(self):
        run = self.runs["sliding_window"]
        question = ["explain", run.path, "--seq", 0, "--token", 37, "--dim", 5]
        answer = json.loads(fine(*question, "--json"))
        text = fine(*question)
        self.assertTrue(text.startswith(answer["subject"] + "\n\n"))
        for link in answer["links"]:
            for part in ("name", "formula", "numbers", "result", "remark"):
                self.assertIn(link[part], text)


if __name__ == "__main__":
    program.main()
