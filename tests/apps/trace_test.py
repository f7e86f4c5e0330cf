#!/usr/bin/python3
"""A recorded run read with nothing but Python's library: totals, checksums and the report's curves out of the tables,
and where kvscope trace diff says that two runs part.

    trace_test.py --kvscope PROGRAM
"""
import json
import os
import re
import sqlite3
import struct
import sys
import tempfile
import unittest
import zlib

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, gallery, kvscope, write_json  # noqa: E402

SCENARIOS = [name for name in program.gallery_names() if name != "real_traffic_like"]  # that one is for replays


def packed(numbers):
    return struct.pack(f"<{len(numbers)}q", *numbers)


class Trace:
    def __init__(self, path):
        db = sqlite3.connect(path)
        self.application, = db.execute("PRAGMA application_id").fetchone()
        self.version, = db.execute("PRAGMA user_version").fetchone()
        self.kinds = db.execute("SELECT kind, name, events FROM kind ORDER BY kind").fetchall()
        self.index = db.execute("SELECT step, first_event, events, crc FROM step ORDER BY row").fetchall()
        self.meta = dict(db.execute("SELECT key, value FROM meta"))
        self.columns, self.rows, self.events = {}, {}, []
        for kind, name, _ in self.kinds:
            cursor = db.execute(f"SELECT * FROM {name}")
            self.columns[name] = [column[0] for column in cursor.description]
            self.rows[name] = cursor.fetchall()
            self.events += [(row[0], kind, *row[1:]) for row in self.rows[name]]
        self.events.sort()
        db.close()

    def column(self, kind, name):
        at = self.columns[kind].index(name)
        return [row[at] for row in self.rows[kind]]

    def total(self, kind, name):
        return sum(self.column(kind, name))


def run_of(name, folder):
    """A scenario of the gallery; under the sanitizers, one with fewer requests and query heads and the same kinds of events."""
    if not program.SLOW_BUILD:
        return gallery(name)
    with open(gallery(name), encoding="utf-8") as file:
        scenario = json.load(file)
    generator = scenario["requests"].get("generator", {})
    if generator.get("count", 0) > 20:
        generator["count"] = 20
    if scenario["model"] == "llama-3.1-8b":
        scenario["model"] = {"preset": "llama-3.1-8b", "query_heads": 8}
    elif isinstance(scenario["model"], dict) and scenario["model"].get("preset") == "deepseek-v3":
        scenario["model"]["query_heads"] = 4
    return write_json(os.path.join(folder, name + ".json"), scenario)


class Record(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.runs = {}
        for name in SCENARIOS:
            out = os.path.join(cls.folder.name, name)
            fine("run", run_of(name, cls.folder.name), "--out", out, "--trace", "full")
            with open(os.path.join(out, "report.json"), encoding="utf-8") as file:
                cls.runs[name] = (Trace(os.path.join(out, "trace.kvt")), json.load(file), out)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_says_what_it_is_before_any_table_is_read(self):
        trace, _, out = self.runs["first_light"]
        self.assertEqual((trace.application, trace.version), (int.from_bytes(b"kvtr", "big"), 4))
        with open(os.path.join(out, "scenario.json"), encoding="utf-8") as file:
            self.assertEqual(trace.meta["scenario"], file.read())
        self.assertEqual(trace.meta["producer"], fine("--version").partition(" (")[0])
        self.assertEqual(trace.meta["detail"], "full")

    def test_numbers_every_event_once_and_every_step_without_a_gap(self):
        for name, (trace, report, _) in self.runs.items():
            with self.subTest(scenario=name):
                self.assertEqual([event[0] for event in trace.events], list(range(len(trace.events))))
                self.assertEqual(int(trace.meta["events"]), len(trace.events))
                self.assertEqual([step for step, *_ in trace.index], list(range(-1, report["run"]["steps"])))
                self.assertEqual(int(trace.meta["steps"]), len(trace.index))
                ends = [first + events for _, first, events, _ in trace.index]
                self.assertEqual([first for _, first, _, _ in trace.index], [0, *ends[:-1]])
                self.assertEqual(ends[-1], len(trace.events))
                for kind, kind_name, events in trace.kinds:
                    self.assertEqual(len(trace.rows[kind_name]), events, (kind, kind_name))

    def test_carries_the_checksums_that_its_format_describes(self):
        for name, (trace, _, _) in self.runs.items():
            with self.subTest(scenario=name):
                for step, first, events, crc in trace.index:
                    found = zlib.crc32(b"".join(packed(e) for e in trace.events[first:first + events]))
                    self.assertEqual(found, crc, f"step {step}")
                whole = b"".join(packed(row) for row in trace.index)
                whole += b"".join(packed((k, n)) + kind.encode() + b"\0" for k, kind, n in trace.kinds)
                whole += b"".join(key.encode() + b"\0" + value.encode() + b"\0"
                                  for key, value in sorted(trace.meta.items()) if key != "checksum")
                self.assertEqual(zlib.crc32(whole), int(trace.meta["checksum"]))

    def test_is_the_report_column_by_column(self):
        for name, (trace, report, _) in self.runs.items():
            curve = report["run"]["curve"]
            self.assertEqual(set(curve) - set(trace.columns["step_ended"]),
                             {"utilization", "internal_fragmentation", "prefix_hit_rate"})
            for column in set(trace.columns["step_ended"]) - {"event", "step"}:
                with self.subTest(scenario=name, column=column):
                    self.assertEqual(trace.column("step_ended", column), curve[column])
            used, filled = trace.column("step_ended", "used_blocks"), trace.column("step_ended", "slots_filled")
            blocks, size = report["run"]["blocks"], report["run"]["page_size"]
            self.assertEqual(curve["utilization"], [u / blocks for u in used])
            self.assertEqual(curve["internal_fragmentation"],
                             [(u * size - f) / (u * size) if u else None for u, f in zip(used, filled)])
            hits, looked_up = trace.column("step_ended", "hit_tokens"), trace.column("step_ended", "query_tokens")
            self.assertEqual(curve["prefix_hit_rate"], [h / q if q else None for h, q in zip(hits, looked_up)])

    def test_adds_up_to_the_totals_of_the_report(self):
        for name, (trace, report, _) in self.runs.items():
            run = report["run"]
            with self.subTest(scenario=name):
                asked = {seq: (p, g) for _, seq, p, g in trace.rows["request_arrived"]}
                done = [asked[seq] for seq in trace.column("request_finished", "seq")]
                self.assertEqual(len(asked), run["requests"])
                self.assertEqual(len(done), run["finished"])
                self.assertEqual(len(trace.rows["request_refused"]), run["refused"])
                self.assertEqual(sum(p for p, _ in done), run["prompt_tokens"])
                self.assertEqual(sum(g for _, g in done), run["generated_tokens"])
                self.assertEqual(trace.column("request_finished", "tokens"), [p + g for p, g in done])
                self.assertEqual(trace.total("tokens_written", "tokens"), run["computed_tokens"])
                self.assertEqual(trace.total("request_admitted", "hit_tokens"), run["hit_tokens"])
                self.assertEqual(len(trace.rows["request_preempted"]), run["preemptions"])
                self.assertEqual(trace.total("request_preempted", "tokens_lost"), run["lost_tokens"])
                self.assertEqual(len(trace.rows["block_evicted"]), run["evictions"])
                self.assertEqual(len(trace.rows["block_copied"]), run["copies"])
                # What goes in comes out; the last token that is generated is never stored.
                self.assertEqual(run["computed_tokens"] + run["hit_tokens"],
                                 sum(p + max(g - 1, 0) for p, g in done) + run["lost_tokens"])

    def test_owns_no_block_twice_unless_it_says_so(self):
        # The pool's rules, recounted from the events alone.
        for name, (trace, report, _) in self.runs.items():
            with self.subTest(scenario=name):
                names = {kind: name for kind, name, _ in trace.kinds}
                owners, filled, used, slots = {}, {}, [], []
                for _, kind, *fields in trace.events:
                    kind = names[kind]
                    if kind == "block_allocated":
                        block, seq, page = fields
                        self.assertFalse(owners.get(block), f"block {block} is owned")
                        owners[block], filled[block] = {(seq, page)}, 0
                    elif kind == "block_shared":
                        block, seq, page, count = fields
                        owners.setdefault(block, set()).add((seq, page))
                        self.assertEqual(len(owners[block]), count)
                    elif kind == "block_copied":
                        block, copy, seq, page, tokens = fields
                        self.assertFalse(owners.get(copy), f"block {copy} is owned")
                        owners[block].remove((seq, page))
                        self.assertTrue(owners[block], "who is alone writes in place")
                        owners[copy], filled[copy] = {(seq, page)}, tokens
                    elif kind == "block_released":
                        block, seq, page, count, _ = fields
                        owners[block].remove((seq, page))
                        self.assertEqual(len(owners[block]), count)
                    elif kind == "tokens_written":
                        seq, first, tokens, block, slot, _ = fields
                        self.assertEqual(owners[block], {(seq, first // report["run"]["page_size"])})
                        self.assertEqual(slot, filled[block])
                        filled[block] += tokens
                    elif kind == "step_ended":
                        used.append(sum(1 for o in owners.values() if o))
                        slots.append(sum(filled[block] for block, o in owners.items() if o))
                self.assertEqual(used, report["run"]["curve"]["used_blocks"])
                self.assertEqual(slots, report["run"]["curve"]["slots_filled"])
                self.assertFalse(any(owners.values()), "something is owned after the last request")

    def test_shows_the_events_that_are_in_it(self):
        trace, _, out = self.runs["preemption"]
        path = os.path.join(out, "trace.kvt")
        names = {kind: name for kind, name, _ in trace.kinds}
        as_json = [json.loads(line) for line in fine("trace", "show", path, "--json").splitlines()]
        self.assertEqual([tuple(e.values()) for e in as_json],
                         [(event[0], names[event[1]], *event[2:]) for event in trace.events])
        for e in as_json[:50]:
            self.assertEqual(list(e)[2:], trace.columns[e["kind"]][1:])
        step, first, events, _ = trace.index[7]
        lines = fine("trace", "show", path, "--step", step).splitlines()
        self.assertEqual([int(line.split()[0]) for line in lines], list(range(first, first + events)))
        lines = fine("trace", "show", path, "--kind", "request_preempted").splitlines()
        self.assertEqual([int(re.search(r"seq=(\d+)", line)[1]) for line in lines],
                         trace.column("request_preempted", "seq"))
        self.assertIn(f"all {len(trace.events)} events match their checksums", fine("trace", "show", path, "--verify"))
        summary = fine("trace", "show", path)
        for _, kind, count in trace.kinds:
            if count:
                self.assertRegex(summary, rf"\n  {kind} +{count}\n")

    def test_keeps_fewer_events_with_less_detail(self):
        full, _, out = self.runs["preemption"]
        steps_out = os.path.join(self.folder.name, "steps")
        fine("run", run_of("preemption", self.folder.name), "--out", steps_out, "--trace", "steps")
        steps = Trace(os.path.join(steps_out, "trace.kvt"))
        kept = {"step_began", "step_ended", "request_arrived", "request_admitted", "request_preempted",
                "request_finished", "request_refused"}
        for _, kind, count in steps.kinds:
            self.assertEqual(count, len(full.rows[kind]) if kind in kept else 0, kind)
            if kind in kept:
                self.assertEqual([row[1:] for row in steps.rows[kind]], [row[1:] for row in full.rows[kind]])
        off_out = os.path.join(self.folder.name, "off")
        fine("run", run_of("preemption", self.folder.name), "--out", off_out)
        self.assertEqual(sorted(os.listdir(off_out)), ["report.json", "report.txt", "scenario.json"])

    def test_is_the_same_bytes_when_recorded_again(self):
        _, _, out = self.runs["preemption"]
        again = os.path.join(self.folder.name, "again")
        fine("run", run_of("preemption", self.folder.name), "--out", again, "--trace", "full")
        for name in ["report.json", "report.txt", "scenario.json", "trace.kvt"]:
            with open(os.path.join(out, name), "rb") as a, open(os.path.join(again, name), "rb") as b:
                self.assertEqual(a.read(), b.read(), name)

    def test_is_made_again_by_the_scenario_that_the_run_left(self):
        # scenario.json has every default written out: it must mean the same as the short file.
        trace, _, out = self.runs["quantized_e4m3"]
        again = os.path.join(self.folder.name, "from_normalized")
        fine("run", os.path.join(out, "scenario.json"), "--out", again, "--trace", "full")
        self.assertEqual(Trace(os.path.join(again, "trace.kvt")).events, trace.events)


class Diff(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.traces = {}
        for name, seed, page_size in [("a", 1, 4), ("same", 1, 4), ("seed", 2, 4), ("page", 1, 8)]:
            scenario = write_json(os.path.join(cls.folder.name, name + ".json"), {
                "kvscope_scenario": 1, "name": "diff", "model": "tiny",
                "cache": {"page_size": page_size, "blocks": 160 // page_size},
                "requests": {"generator": {"count": 12, "mean_gap_us": 4000, "prompt_min": 5, "prompt_max": 30}},
                "seed": seed})
            out = os.path.join(cls.folder.name, name)
            fine("run", scenario, "--out", out, "--trace", "full")
            cls.traces[name] = os.path.join(out, "trace.kvt")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_finds_nothing_between_equal_runs(self):
        done = kvscope("trace", "diff", self.traces["a"], self.traces["same"])
        events = len(Trace(self.traces["a"]).events)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"the {events} events are the same\n", ""))

    def test_names_the_first_event_that_differs(self):
        left = Trace(self.traces["a"])
        names = {kind: name for kind, name, _ in left.kinds}
        for other in ["seed", "page"]:
            with self.subTest(other=other):
                right = Trace(self.traces[other])
                first = next(n for n, (x, y) in enumerate(zip(left.events, right.events)) if x != y)
                step = max(s for s, begin, _, _ in left.index if begin <= first)
                done = kvscope("trace", "diff", self.traces["a"], self.traces[other])
                self.assertEqual((done.returncode, done.stderr), (1, ""))
                self.assertIn("meta 'scenario': differs from character ", done.stdout)
                found = re.search(r"^first divergence at event (\d+), step (-?\d+): (.*)$", done.stdout, re.MULTILINE)
                self.assertEqual((int(found[1]), int(found[2])), (first, step))
                x, y = left.events[first], right.events[first]
                if x[1] != y[1]:  # a page of 8 takes a token where one of 4 needs the next block
                    self.assertEqual(found[3], f"{names[x[1]]} | {names[y[1]]}")
                else:
                    self.assertEqual(found[3], names[x[1]])
                    for column, a, b in zip(left.columns[names[x[1]]][1:], x[2:], y[2:]):
                        line = f"\n  {column}: {a} | {b}\n"
                        (self.assertIn if a != b else self.assertNotIn)(line, done.stdout)
                # The other way round: the same place, sides exchanged.
                back = kvscope("trace", "diff", self.traces[other], self.traces["a"])
                self.assertEqual(back.returncode, 1)
                self.assertIn(f"first divergence at event {first}, step {step}: ", back.stdout)

    def test_says_where_one_run_ends_early(self):
        # The same events up to the end of the shorter one: only an end can tell them apart.
        scenario = {"kvscope_scenario": 1, "name": "short", "model": "tiny", "cache": {"page_size": 4, "blocks": 20},
                    "requests": {"list": [{"prompt_tokens": 6, "generate_tokens": 2},
                                          {"arrival_us": 900000, "prompt_tokens": 5, "generate_tokens": 1}]}}
        paths = []
        for count in (2, 1):
            scenario["requests"]["list"] = scenario["requests"]["list"][:count]
            out = os.path.join(self.folder.name, f"first{count}")
            fine("run", write_json(out + ".json", scenario), "--out", out, "--trace", "full")
            paths.append(os.path.join(out, "trace.kvt"))
        shorter = len(Trace(paths[1]).events)
        done = kvscope("trace", "diff", *paths)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertRegex(done.stdout, rf"(?m)^first divergence at event {shorter}, step \d+: "
                         rf"{re.escape(paths[1])} ends, {re.escape(paths[0])} continues$")


if __name__ == "__main__":
    program.main()
