#!/usr/bin/python3
"""kvscope ptx from outside: kernels of nvcc run on arrays of NumPy, files refused in words, a session of the debugger.

    ptx_commands_test.py --kvscope PROGRAM
"""
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import SOURCE, fine, kvscope  # noqa: E402

KERNELS = os.path.join(SOURCE, "tests", "gpu", "virtual", "kernels", "cuda")
ELEMENTWISE = os.path.join(KERNELS, "elementwise.ptx")


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def save(self, name, array):
        np.save(self.path(name), array)
        return self.path(name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        return self.path(name)


class Run(Folder):
    def scale(self, *more, n=290, threads=100):
        x = self.save("x.npy", np.linspace(-3, 7, 300, dtype=np.float32))
        return kvscope("ptx", "run", ELEMENTWISE, "--entry", "scale", "--grid", "3", "--block", threads, "--arg",
                       "f32[300]", "--arg", x, "--arg", "2.5", "--arg", n, *more)

    def test_a_kernel_gives_what_numpy_gives(self):
        done = self.scale("--save", f"0={self.path('y.npy')}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        y, x = np.load(self.path("y.npy")), np.load(self.path("x.npy"))
        np.testing.assert_array_equal(y[:290], np.float32(2.5) * x[:290])
        # Nobody wrote the rest: a new array is ff in every byte.
        self.assertEqual(y[290:].tobytes(), b"\xff" * 40)
        self.assertIn("verdict     clean\n", done.stdout)

    def test_every_schedule_gives_the_same_bytes(self):
        answers = set()
        for policy in ("late", "early", "seed:1", "seed:99"):
            done = self.scale("--policy", policy)
            self.assertEqual(done.returncode, 0, done.stderr)
            answers.add(done.stdout)
        self.assertEqual(len(answers), 1)

    def test_the_same_input_writes_the_same_results_file(self):
        texts = []
        for _ in range(2):
            self.assertEqual(self.scale("--json", self.path("r.json")).returncode, 0)
            with open(self.path("r.json"), encoding="utf-8") as file:
                texts.append(file.read())
        self.assertEqual(texts[0], texts[1])
        results = json.loads(texts[0])
        self.assertTrue(results["finished"])
        self.assertEqual(results["reports"], [])
        # 290 floats read and written in warps of 100-thread CTAs: by brute force over 32-byte sectors.
        sectors = 0
        for cta in range(3):
            for warp in range(4):
                lanes = [cta * 100 + t for t in range(warp * 32, min(100, warp * 32 + 32)) if cta * 100 + t < 290]
                sectors += 2 * len({4 * i // 32 for i in lanes})
        self.assertEqual(results["counters"]["sectors"], sectors)

    def test_a_write_past_the_end_is_named_and_is_a_failure(self):
        done = self.scale(n=301, threads=128)
        self.assertEqual(done.returncode, 1)
        self.assertIn("OUT_OF_BOUNDS", done.stdout)
        self.assertIn("elementwise.cu:11", done.stdout)
        self.assertIn("verdict     not clean", done.stdout)

    def test_an_endless_kernel_stops_at_its_limit(self):
        ptx = self.write("loop.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n"
                         "L: bra L;\n}\n")
        done = kvscope("ptx", "run", ptx, "--max-instructions", "5000", timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("RUNAWAY", done.stdout)

    def test_a_step_shows_who_stands_where(self):
        done = self.scale("--step", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("after 3 warp instructions\ncta (0,0,0)\n"), done.stdout)
        self.assertEqual(done.stdout.count("warp "), 5)  # four warps and the head line


# 32 lanes store a column of 128-byte rows, all in one bank; each copies 16 bytes; 5 of them branch. Line 9 is the first
# instruction, and `more` are further ones.
BUSY = """.version 8.0
.target sm_90
.address_size 64
.visible .entry busy(.param .u64 p) {{
  .reg .b32 %r<9>;
  .reg .b64 %rd<3>;
  .reg .pred %q;
  .shared .align 16 .b8 tile[4096];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mad.lo.u32 %r3, %r1, 128, %r2;
  st.shared.u32 [%r3], %r1;
  bar.sync 0;
  mad.wide.u32 %rd2, %r1, 16, %rd1;
  mad.lo.u32 %r4, %r1, 16, %r2;
  cp.async.cg.shared.global [%r4], [%rd2], 16;
  cp.async.wait_all;
  setp.lt.u32 %q, %r1, 5;
  @%q bra END;
  mov.u32 %r5, 0;
{more}END:
  ret;
}}
"""

# Every lane of a warp stores its own number to one word, then to the next, and thread 0 prints.
COLLIDES = """.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[4] = {{104, 105, {end}, 0}};
.visible .entry collides() {{
  .reg .b32 %r<3>; .reg .b64 %rd<3>; .reg .pred %q;
  .shared .align 4 .b8 words[8];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, words;
  st.shared.u32 [%r2], %r1;
  st.shared.u32 [%r2+4], %r1;
  setp.ne.u32 %q, %r1, 0;
  @%q bra END;
  mov.b64 %rd1, text;
  cvta.global.u64 %rd1, %rd1;
  mov.b64 %rd2, 0;
  {{ .param .b64 a; .param .b64 b; .param .b32 c;
  st.param.b64 [a], %rd1; st.param.b64 [b], %rd2;
  call.uni (c), vprintf, (a, b); }}
END:
  ret;
}}
"""


class Printed(Folder):
    def busy(self, *words, more=""):
        ptx = self.write("busy.ptx", BUSY.format(more=more))
        done = kvscope("ptx", "run", ptx, "--block", "32", "--arg", self.save("z.npy", np.zeros(512, np.uint8)), *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout.replace(self.folder.name + os.sep, "").splitlines()

    def test_counters_have_what_a_line_did(self):
        lines = self.busy("--counters")
        of = dict(line.strip().split(None, 1) for line in lines[lines.index("by line") + 1:-1])
        self.assertEqual(of["busy.ptx:13"], "runs         1   wavefronts 32 of 1 (conflicts 31)")
        self.assertEqual(of["busy.ptx:17"], "runs         1   wavefronts 4 of 4   sectors 16 of 16   copies 32, 512 bytes")
        self.assertEqual(of["busy.ptx:20"], "runs         1   splits 1")
        self.assertEqual(of["all"].split(None, 2)[2], "wavefronts 36 of 5 (conflicts 31)   sectors 16 of 16   copies 32, "
                         "512 bytes   splits 1")

    def test_lines_past_the_fortieth_are_counted(self):
        def heads(more):  # 14 lines, and the added ones
            lines = self.busy("--counters", more="  add.u32 %r5, %r5, 1;\n" * more)
            return sum(line.startswith("  busy.ptx:") for line in lines), [line for line in lines if line.startswith("  and ")]
        self.assertEqual(heads(26), (40, []))
        self.assertEqual(heads(27), (40, ["  and 1 more: --json FILE writes all"]))

    def test_a_part_of_the_grid_and_its_threads_are_named(self):
        lines = self.busy("--grid", "8", "--ctas", "0-2", "--jobs", "2")
        self.assertIn("sampled     3 of 8 CTAs ran: elements of the others are unchanged, so do not compare arrays with a "
                      "whole run's", lines)
        self.assertIn("jobs        2 threads", lines)
        self.assertEqual(lines[-1], "verdict     clean; sampled: 3 of 8 CTAs ran")

    def test_a_step_past_the_end_shows_the_end_and_its_reports(self):
        done = kvscope("ptx", "run", self.write("c.ptx", COLLIDES.format(end=10)), "--block", "32", "--step", "1000")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^after \d+ warp instructions: the launch has ended\nno CTA is at work\n")
        self.assertEqual(re.findall(r"STORE_COLLISION  shared \w+ \(words \+ (\d)\)", done.stdout), ["0", "4"])

    def test_the_output_of_a_kernel_ends_its_line(self):
        for end in (0, 10):  # "hi" and "hi\n"
            done = kvscope("ptx", "run", self.write("c.ptx", COLLIDES.format(end=end)))
            self.assertTrue(done.stdout.startswith("hi\nkernel      collides: 1 CTA of 1 thread\n"), done.stdout)


# Two sequences that share a prefix; the second one's second tile has 38 of 64 tokens, on three of four pages.
SCENARIO = {
    "kvscope_scenario": 1, "name": "tile",
    "model": {"layers": 2, "query_heads": 4, "kv_heads": 2, "head_size": 128},
    "cache": {"page_size": 16, "blocks": 16, "dtype": "bf16"},
    "requests": {"list": [
        {"prompt_tokens": 40, "generate_tokens": 6,
         "content": [{"content": 1, "length": 32}, {"content": 2, "length": 8}]},
        {"arrival_us": 6000, "prompt_tokens": 100, "generate_tokens": 4,
         "content": [{"content": 1, "length": 32}, {"content": 3, "length": 68}]}]},
    "tile": {"BN": 64, "BK": 128},
    "focus": {"sequence": 1, "layer": 1, "head": 1, "tile": 1, "staging": "lanes"}}


class Trace(Folder):
    """A compiled kernel and the model stage the same tile: trace diff says whether they do the same."""

    def setUp(self):
        super().setUp()
        fine("run", self.write("tile.json", json.dumps(SCENARIO)), "--out", self.path("run"), "--trace", "full")
        self.model = os.path.join(self.path("run"), "trace.kvt")
        # The blocks of each page, from the trace.
        db = sqlite3.connect(self.model)
        given = db.execute("SELECT event, page, block FROM block_allocated WHERE seq = 1 UNION "
                           "SELECT event, page, block FROM block_shared WHERE seq = 1 ORDER BY event").fetchall()
        self.blocks = dict((page, block) for _, page, block in given)
        self.opened = db.execute("SELECT step, first_token, tokens FROM tile_opened WHERE value = 0").fetchone()
        db.close()
        first = self.opened[1] // 16
        pages = -(-self.opened[2] // 16)
        self.table = self.save("table.npy", np.array([self.blocks[first + p] for p in range(pages)], np.int32))
        rng = np.random.default_rng(3)
        self.pool = rng.integers(0, 1 << 14, (17, 2, 2, 16, 2, 128)).astype(np.uint16)
        self.save("pool.npy", self.pool)

    def map(self, value, layer):
        """One layer's K or V as rows of two heads, and the pool offset of its first row."""
        return self.write(f"map{value}.json", json.dumps({
            "kvscope_tensor_map": 1, "type": "bf16", "base": (value * 2 + layer) * 16 * 512,
            "dims": [128, 2, 16 * 64 + 16], "strides": [256, 512], "box": [64, 1, 16], "swizzle": "128B"}))

    def kernel(self, entry, *more, value=0, layer=1, head=1, trace="kernel.kvt", tile=True, code=0):
        step, first, tokens = self.opened
        said = ["--tile", f"step={step},seq=1,layer=1,value={value},first_token={first},rows=64,tokens={tokens},"
                          "bytes=16384"] if tile else ["--tile", "bytes=16384"]
        done = kvscope("ptx", "run", os.path.join(KERNELS, "paged_tile.ptx"), "--entry", entry, "--block", 32, "--smem",
                       16384, "--arg", self.path("pool.npy"), "--arg", f"map:{self.map(value, layer)}@0", "--arg",
                       self.table, "--arg", tokens, "--arg", 64, "--arg", head, "--arg", "u32[4096]", "--trace",
                       self.path(trace), "--trace-lanes", *said, *more)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return done.stdout

    def difference(self, tiles, trace="kernel.kvt"):
        done = kvscope("trace", "diff", self.model, self.path(trace), "--tile", tiles)
        self.assertEqual((done.returncode, done.stderr), (0 if "are the same" in done.stdout else 1, ""))
        return done.stdout.splitlines()[0]

    def test_keys_and_values_are_the_models_under_every_schedule(self):
        same = "the {} events compared are the same"
        for policy in ("late", "early", "seed:5"):
            self.assertIn(": 1 tile, ", self.kernel("paged_keys", "--policy", policy))
            # 1 opened, 6 of the map, shared memory and its 4 groups of lanes, 1 expected, 6 boxes of 128 chunks,
            # 1 completed, 32 reads of 32 lanes. The model's tiles: K, V.
            self.assertEqual(self.difference("0,0"), same.format(1 + 6 + 1 + 6 * 129 + 1 + 32 * 33))
            self.kernel("paged_values", "--policy", policy, value=1)
            self.assertEqual(self.difference("1,0"), same.format(1 + 6 + 1 + 8 * 129 + 1 + 32 * 33))

    def test_the_kernel_traces_are_whole_and_do_not_depend_on_the_schedule(self):
        texts = set()
        for policy in ("late", "early", "seed:1", "seed:2"):
            self.kernel("paged_keys", "--policy", policy)
            fine("trace", "show", self.path("kernel.kvt"), "--verify")
            texts.add(fine("trace", "show", self.path("kernel.kvt"), "--json"))
        self.assertEqual(len(texts), 1)

    def test_a_mistake_is_named_by_its_first_event(self):
        kinds = (None, "box_copied", "fragment_read", "barrier_expects", "box_copied")
        for bug, kind in enumerate(kinds):
            self.kernel("paged_keys_bug", "--arg", bug, "--check", "none", code=1 if bug == 3 else 0)
            line = self.difference("0,0")
            self.assertTrue(line.endswith(": " + kind) if kind else "are the same" in line, (bug, line))
        # Bytes of another layer come by the same coordinates: the chunks tell.
        self.kernel("paged_keys", layer=0)
        self.assertTrue(self.difference("0,0").endswith(": chunk_landed"))
        # A tile of another head, which the coordinates of the copy name.
        self.kernel("paged_keys", head=0)
        self.assertTrue(self.difference("0,0").endswith("event 54 | 0: tile_opened"), self.difference("0,0"))

    def test_some_kinds_and_what_nobody_said(self):
        self.kernel("paged_keys", tile=False)
        self.assertTrue(self.difference("0,0").endswith(": tile_opened"))
        done = kvscope("trace", "diff", self.model, self.path("kernel.kvt"), "--tile", "0,0", "--kinds",
                       "box_copied,chunk_landed,fragment_read,lane_read")
        self.assertEqual(done.stdout, f"the {6 * 129 + 32 * 33} events compared are the same\n")
        done = kvscope("trace", "diff", self.model, self.path("kernel.kvt"), "--tile", "2,0")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("tile 2 is outside [0, 2)", done.stderr)

    def test_options_that_are_wrong_are_refused_all_at_once(self):
        done = kvscope("ptx", "run", ELEMENTWISE, "--entry", "alu_rounds", "--arg", "f32[1]", "--arg", "f32[1]",
                       "--arg", "1", "--trace", self.path("t.kvt"), "--trace-cta", "1", "--trace-warp", "7", "--tile",
                       "sequence=1,head=x,row=", "--tile", "seq=1,head=2,seq=1", "--events", self.path("e.txt"), "--event-steps", "9:3",
                       "--event-cta", "-1")
        self.assertEqual(done.returncode, 2)
        for text in ("--trace-cta: 1 is outside [0, 1): CTAs of the grid", "--trace-warp: 7 is outside [0, 1)",
                     "--tile: 'sequence' is not one of step, seq, layer", "--tile: 'head=x' is not head=NUMBER, from 0 on",
                     "--tile: 'seq=1' gives seq a second time: give each key once",
                     "--event-steps: '9:3' is not FIRST:LAST", "--event-cta: -1 is outside [0, 1)"):
            self.assertIn(text, done.stderr)
        self.assertEqual(os.listdir(self.folder.name).count("t.kvt"), 0)
        self.assertIn("--trace", kvscope("ptx", "run", ELEMENTWISE, "--tile", "seq=1").stderr)


class Events(Folder):
    def events(self, *more, to="-"):
        x = self.save("x.npy", np.arange(300, dtype=np.float32))
        return fine("ptx", "run", ELEMENTWISE, "--entry", "scale", "--grid", "3", "--block", "100", "--arg", "f32[300]",
                    "--arg", x, "--arg", "2", "--arg", "290", "--events", to, *more)

    def test_stores_are_told_with_their_addresses(self):
        out = self.events("--event-kinds", "store", "--event-json", "--event-lanes")
        stores = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        # 3 CTAs of four warps; of the last CTA 90 threads are in.
        self.assertEqual(len(stores), 11)
        addresses = sorted(a for store in stores for a in store["addresses"])
        self.assertEqual(addresses, [0x200000000 + 4 * i for i in range(290)])
        self.assertEqual({store["source"] for store in stores}, {"elementwise.cu:11"})

    def test_a_file_holds_what_the_filter_lets_through(self):
        out = self.events("--event-cta", "1", "--event-warp", "2", to=self.path("events.txt"))
        with open(self.path("events.txt"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertIn(f"events      {self.path('events.txt')}: {len(lines)}\n", out)
        self.assertTrue(all("  cta 1  warp 2  lanes " in line for line in lines))
        steps = [int(line.split()[0]) for line in lines]
        self.assertEqual(steps, sorted(steps))
        self.events("--event-steps", f"{steps[2]}:{steps[5]}", "--event-warp", "2", to=self.path("events.txt"))
        with open(self.path("events.txt"), encoding="utf-8") as file:
            inside = [int(line.split()[0]) for line in file]
        self.assertTrue(inside and min(inside) >= steps[2] and max(inside) <= steps[5])

    def test_the_same_launch_writes_the_same_file(self):
        files = set()
        for _ in range(3):
            self.events("--policy", "seed:9", "--event-json", to=self.path("e"))
            with open(self.path("e"), "rb") as file:
                files.add(file.read())
        self.assertEqual(len(files), 1)

    def test_a_file_that_cannot_be_written_is_refused(self):
        x = self.save("x.npy", np.arange(300, dtype=np.float32))
        done = kvscope("ptx", "run", ELEMENTWISE, "--entry", "scale", "--arg", "f32[300]", "--arg", x, "--arg", "2",
                       "--arg", "2", "--events", self.path("no/such/file"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("cannot be written", done.stderr)


class Refused(Folder):
    def fault_of(self, *arguments):
        done = kvscope("ptx", *arguments)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_a_file_that_is_none(self):
        self.assertIn("kvscope: ", self.fault_of("run", self.path("none.ptx")))

    def test_every_error_of_a_text_with_its_place(self):
        ptx = self.write("bad.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n"
                         ".reg .b32 %r<2>;\nadd.s32 %r9, %r1, 1;\nbra NOWHERE;\nret;\n}\n")
        text = self.fault_of("run", ptx)
        self.assertIn("6:9", text)
        self.assertIn("unknown register '%r9'", text)
        self.assertIn("7:5", text)
        self.assertIn("unknown label 'NOWHERE'", text)

    def test_a_kernel_that_is_not_there(self):
        self.assertIn("--entry: there is no kernel 'scael': the file has scale, alu_rounds",
                      self.fault_of("run", ELEMENTWISE, "--entry", "scael"))
        self.assertIn("--entry: is required: the file has scale, alu_rounds", self.fault_of("run", ELEMENTWISE))

    def test_every_argument_that_is_wrong(self):
        text = self.fault_of("run", ELEMENTWISE, "--entry", "scale", "--arg", "f33[3]", "--arg", self.path("no.npy"),
                            "--arg", "2.5", "--arg", "x")
        self.assertIn("--arg 0: ", text)
        self.assertIn("--arg 1: ", text)
        self.assertIn("--arg 3: ", text)
        self.assertNotIn("--arg 2: ", text)

    def scale_of(self, *, array="f32[300]", x="f32[300]", factor="2.5", n="290"):
        return kvscope("ptx", "run", ELEMENTWISE, "--entry", "scale", "--block", "32", "--arg", array, "--arg", x, "--arg",
                       factor, "--arg", n)

    def test_a_number_that_does_not_fit_its_parameter(self):
        integers = "write an integer from -2147483648 to 4294967295"
        floats = "write a number from -3.40282e+38 to 3.40282e+38, or inf"
        for options, message in [
                ({"n": "4294967297"}, f"3: '4294967297' does not fit parameter scale_param_3 (.u32): {integers}"),
                ({"n": "-2147483649"}, f"3: '-2147483649' does not fit parameter scale_param_3 (.u32): {integers}"),
                ({"n": "99999999999999999999"},
                 f"3: '99999999999999999999' does not fit parameter scale_param_3 (.u32): {integers}"),
                ({"n": "0x100000000"}, f"3: '0x100000000' does not fit parameter scale_param_3 (.u32): {integers}"),
                ({"n": "2.5"}, f"3: '2.5' is not an integer, but parameter scale_param_3 (.u32) takes integers: {integers}, "
                               "or 0x40200000 for the bits of 2.5"),
                ({"factor": "1e39"}, f"2: '1e39' does not fit parameter scale_param_2 (.f32): {floats}"),
                ({"factor": "0x10"}, "2: '0x10' does not fit parameter scale_param_2 (.f32): write a decimal number, as 2.5"),
                ({"n": "u32[1]"}, "3: 'u32[1]' is an array, but parameter scale_param_3 (.u32) is not a pointer of 8 bytes: "
                                  "write a number"),
                ({"x": "18446744073709551616"},
                 "1: '18446744073709551616' does not fit parameter scale_param_1 (.u64): write an integer from "
                 "-9223372036854775808 to 18446744073709551615"),
                ({"n": "x"}, "3: 'x' is neither a number, nor FILE.npy, FILE.npz:NAME, FILE.safetensors:NAME, TYPE[SHAPE], "
                             "null, @ARRAY or map:FILE.json@ARRAY")]:
            done = self.scale_of(**options)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", f"kvscope: command line: --arg {message}\n"))

    def test_files_that_hold_no_single_array(self):
        for name in ("x.npz", "x.safetensors"):
            self.assertEqual(self.scale_of(x=name).stderr,
                             f"kvscope: command line: --arg 1: '{name}' holds several arrays: pass one, as FILE.npy, FILE.npz:NAME "
                             "or FILE.safetensors:NAME\n")
        cuda = self.write("k.cu", "__global__ void k() {}\n")
        self.assertEqual(self.fault_of("run", cuda),
                         f"kvscope: {cuda}: is CUDA source: compile it to PTX with nvcc -ptx -lineinfo\n")
        program_file = self.write("program", "\x7fELF\x02\x01\x01")
        for command in (("run",), ("survey",), ("debug",)):
            self.assertEqual(self.fault_of(*command, program_file),
                             f"kvscope: {program_file}: is a compiled program or library (ELF), not PTX: run a program with "
                             f"`kvscope cuda {program_file}`, or compile its source with nvcc -ptx -lineinfo\n")
        self.assertIn("--save: '3=y.npy' does not name an array: write ARRAY=FILE.npy; arrays are 0, 1\n",
                      self.fault_of("run", ELEMENTWISE, "--entry", "scale", "--arg", "f32[300]", "--arg", "f32[300]", "--arg",
                                    "2.5", "--arg", "3", "--save", "3=y.npy"))

    def test_the_ends_of_a_parameters_range_are_accepted(self):
        for n in ("-2147483648", "4294967295", "0xffffffff", "-1", "0"):
            with self.subTest(n=n):
                self.assertNotEqual(self.scale_of(n=n).returncode, 2)
        self.assertEqual(self.scale_of(factor="3").returncode, 0)
        self.assertEqual(self.scale_of(factor="3.4e38").returncode, 0)

    def test_a_signed_and_an_untyped_parameter(self):
        ptx = self.write("k.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n"
                         ".visible .entry k(.param .u64 out, .param .s32 a, .param .b32 b, .param .u8 c) {\n"
                         ".reg .b64 %rd0;\n.reg .b32 %r<3>;\nld.param.u64 %rd0, [out];\nld.param.u32 %r0, [a];\n"
                         "ld.param.u32 %r1, [b];\nld.param.u8 %r2, [c];\nst.global.u32 [%rd0], %r0;\n"
                         "st.global.u32 [%rd0+4], %r1;\nst.global.u32 [%rd0+8], %r2;\nret;\n}\n")

        def stored(*numbers):
            fine("ptx", "run", ptx, "--arg", "u32[3]", *(word for n in numbers for word in ("--arg", n)), "--save",
                 f"0={self.path('y.npy')}")
            return [int(word) for word in np.load(self.path("y.npy"))]
        self.assertEqual(stored("-1", "2.5", "255"), [2**32 - 1, 0x40200000, 255])
        self.assertEqual(stored("0xffffffff", "-3", "-128"), [2**32 - 1, 2**32 - 3, 128])
        text = self.fault_of("run", ptx, "--arg", "u32[3]", "--arg", "2147483648", "--arg", "1e39", "--arg", "256")
        self.assertEqual(text.splitlines(), [
            "kvscope: command line: --arg 1: '2147483648' does not fit parameter a (.s32): write an integer from -2147483648 "
            "to 2147483647",
            "kvscope: command line: --arg 2: '1e39' does not fit parameter b (.b32): write a number from -3.40282e+38 to "
            "3.40282e+38, or inf",
            "kvscope: command line: --arg 3: '256' does not fit parameter c (.u8): write an integer from -128 to 255"])

    def test_a_struct_is_named(self):
        ptx = self.write("k.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n"
                         ".visible .entry k(.param .align 8 .b8 p[24]) {\nret;\n}\n")
        self.assertEqual(self.fault_of("run", ptx, "--arg", "3"),
                         "kvscope: command line: --arg 0: '3' is a number, but parameter p (24 bytes) is a struct: pass its fields "
                         "as 0.FIELD=VALUE or @FILE.json, or a tensor map as map:FILE.json@ARRAY\n")
        self.assertIn("'u8[24]' is an array, but parameter p (24 bytes) is not a pointer of 8 bytes: write "
                      "map:FILE.json@ARRAY", self.fault_of("run", ptx, "--arg", "u8[24]"))

    def test_a_kernel_runs_on_its_own_target_unless_another_is_given(self):
        text = (".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k() {\n"
                "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nret;\n}\n")
        ptx, older = self.write("k.ptx", text), self.write("o.ptx", text.replace("sm_100a", "sm_80"))
        self.assertIn("verdict     clean\n", fine("ptx", "run", ptx, "--block", "32"))
        self.assertIn("kernel      k: 2 instructions, all of them can run\n", fine("ptx", "survey", ptx))
        self.assertIn("needs sm_100a, this machine is sm_90\n", fine("ptx", "survey", older))
        self.assertIn("needs sm_100a, this machine is sm_90\n", fine("ptx", "survey", ptx, "--target", "90"))
        self.assertIn("the module is for sm_100a, the virtual GPU is sm_90: pass --target 100\n",
                      self.fault_of("run", ptx, "--target", "90"))
        for command in ("run", "survey"):
            self.assertIn("--target: ", self.fault_of(command, ptx, "--target", "0"))

    def test_a_tensor_map_is_one_of_the_target(self):
        ptx = self.write("map.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n"
                         ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 out) {\n"
                         "  .reg .b64 %rd<2>;\n  ld.param.u64 %rd0, [out];\n  ld.param.u64 %rd1, [map];\n"
                         "  st.global.u64 [%rd0], %rd1;\n  ret;\n}\n")
        newer = self.write("m.json", json.dumps({"kvscope_tensor_map": 1, "type": "u32", "base": 4096, "dims": [64, 20],
                                                 "strides": [256], "box": [32, 4], "swizzle": "128B_ATOM_32B",
                                                 "target": "sm_100"}))
        arguments = (ptx, "--arg", f"map:{newer}", "--arg", "u64[1]")
        self.assertEqual(kvscope("ptx", "run", *arguments, "--target", "100").returncode, 0)
        self.assertIn("needs sm_100: use the 128B swizzle on sm_90", self.fault_of("run", *arguments))

    def test_a_number_of_arguments_that_is_not_the_kernels(self):
        self.assertIn("1 given, kernel scale takes 4: .u64 scale_param_0, .u64 scale_param_1, .f32 scale_param_2, "
                      ".u32 scale_param_3", self.fault_of("run", ELEMENTWISE, "--entry", "scale", "--arg", "1"))
        # A value for another name is a value, but not of a parameter: "1 given, the kernel takes 1" would be no help.
        ptx = self.write("busy.ptx", BUSY.format(more=""))
        self.assertEqual(self.fault_of("run", ptx, "--arg", "q=u8[512]").splitlines(),
                         ["kvscope: command line: --arg 0: there is no parameter 'q': kernel busy has 0 (.u64 p)",
                          "kvscope: command line: --arg: no value for .u64 p: kernel busy takes .u64 p"])

    def test_a_wrong_number_of_arguments_names_the_types_of_the_source(self):
        """A mangled name says what each parameter is; "_Z5scalePfPKfi_param_2" does not."""
        kernel = self.write("k.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n"
                            ".visible .entry _Z5scalePfPKfi(.param .u64 _Z5scalePfPKfi_param_0, "
                            ".param .u64 _Z5scalePfPKfi_param_1, .param .u32 _Z5scalePfPKfi_param_2) {\n  ret;\n}\n")
        for command in ("run", "debug"):
            self.assertEqual(self.fault_of(command, kernel, "--arg", "f32[1]"),
                             "kvscope: command line: --arg: 1 given, kernel scale takes 3: (float*, float const*, int), one "
                             "--arg for each\n")

    def test_an_array_of_other_elements_than_the_source_states_is_noted(self):
        """A table of i64, as PyTorch makes it, read as int is [5, 0, 0, 0, ...]: a wrong output and a clean verdict."""
        kernel = self.write("k.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n"
                            ".visible .entry _Z1kPfPKiPdPKlPhP6__halfi(" +
                            ", ".join(f".param .{'u32' if i == 6 else 'u64'} _Z1kPfPKiPdPKlPhP6__halfi_param_{i}" for i in range(7)) +
                            ") {\n  ret;\n}\n")

        def notes(*words):
            done = kvscope("ptx", "run", kernel, *(word for each in words for word in ("--arg", each)))
            self.assertEqual(done.returncode, 0, done.stderr)
            return [line for line in done.stdout.splitlines() if line.startswith("note ")]

        table = self.save("t64.npy", np.zeros((2, 3), np.int64))
        self.assertEqual(notes("f32[1]", "i32[1]", "f64[1]", "i64[1]", "f32[1]", "u16[1]", "3"), [])
        self.assertEqual(notes("f32[1]", "u32[1]", "f64[1]", "@0", "null", "f16[1]", "3"), [])
        self.assertEqual(notes("i32[1]", table, "f32[1]", "i32[1]", "u8[1]", "f16[1]", "3"),
                         ["note        argument 0 has elements of i32, but the kernel takes float*: pass f32",
                          "note        argument 1 has elements of i64, but the kernel takes int const*: pass i32",
                          "note        argument 2 has elements of f32, but the kernel takes double*: pass f64",
                          "note        argument 3 has elements of i32, but the kernel takes long const*: pass i64"])
        self.assertEqual(notes("f32[1]", "i32[1]", "f64[1]", "i64[1]", "u8[1]", "f32[1]", "3"),
                         ["note        argument 5 has elements of f32, but the kernel takes __half*: pass f16"])

    def test_extents_with_an_x_between_them(self):
        for option in ("--grid", "--block"):
            self.assertIn(f"{option}: '2x2' is not a list of whole numbers with commas between them",
                          self.fault_of("run", ELEMENTWISE, "--entry", "scale", option, "2x2"))

    def test_a_launch_without_a_block_is_noted_if_the_kernel_has_threads(self):
        """One thread computes one element, and the verdict is clean."""
        words = ("ptx", "run", ELEMENTWISE, "--entry", "scale", "--arg", "f32[4]", "--arg", self.ones(), "--arg", "2.5",
                 "--arg", "4")
        note = "note        --block is not given, so that a CTA has 1 thread: pass the threads that your program launches\n"
        self.assertIn("kernel      scale: 1 CTA of 1 thread\n" + note, kvscope(*words).stdout)
        done = kvscope(*words, "--block", "1")
        self.assertIn("kernel      scale: 1 CTA of 1 thread\nran ", done.stdout)
        self.assertNotIn("note ", kvscope(*words, "--block", "4").stdout)

    def ones(self):
        return self.save("ones.npy", np.ones(4, np.float32))

    def test_a_block_that_no_gpu_has(self):
        text = self.fault_of("run", ELEMENTWISE, "--entry", "alu_rounds", "--block", "2000", "--arg", "f32[1]", "--arg",
                            "f32[1]", "--arg", "1")
        self.assertIn("2000", text)
        self.assertIn("1024", text)

    def test_a_policy_and_a_check_that_are_none(self):
        self.assertIn("'soon' is not one of late, early, seed:N",
                      self.fault_of("run", ELEMENTWISE, "--entry", "scale", "--policy", "soon"))
        self.assertIn("--check", self.fault_of("run", ELEMENTWISE, "--entry", "scale", "--check", "luck"))


class Survey(Folder):
    def test_counts_what_stands_in_the_text(self):
        survey = json.loads(fine("ptx", "survey", ELEMENTWISE, "--json"))
        with open(ELEMENTWISE, encoding="utf-8") as file:
            text = file.read()
        words = {word["word"]: word["count"] for word in survey["words"]}
        for word in ("ld.global.nc.f32", "fma.rn.f32", "bar.sync"):
            self.assertEqual(words.get(word, 0), text.count(word + " "), word)
        self.assertEqual(survey["statements"], sum(words.values()))
        self.assertEqual([k["name"] for k in survey["kernels"]], ["scale", "alu_rounds"])

    def test_names_what_cannot_run_and_the_rest_still_runs(self):
        ptx = self.write("tex.ptx", ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u32 n) {\n"
                         ".reg .pred %p;\n.reg .b32 %r<3>;\nld.param.u32 %r1, [n];\nsetp.eq.u32 %p, %r1, 0;\n"
                         "@%p ret;\nfoo.bar %r1, %r2;\nret;\n}\n")
        out = fine("ptx", "survey", ptx)
        self.assertIn(":10:1 'foo.bar' in k: unknown opcode 'foo'", out)
        self.assertEqual(kvscope("ptx", "run", ptx, "--arg", "0").returncode, 0)
        reached = kvscope("ptx", "run", ptx, "--arg", "1")
        self.assertEqual(reached.returncode, 1)
        self.assertIn("UNSUPPORTED", reached.stdout)
        strict = kvscope("ptx", "run", ptx, "--arg", "0", "--strict")
        self.assertEqual(strict.returncode, 2)
        self.assertIn("10:1: unknown opcode 'foo'", strict.stderr)

    def test_a_file_taken_apart_and_read_again_runs_the_same(self):
        again = self.write("again.ptx", fine("ptx", "disasm", ELEMENTWISE))
        runs = []
        for ptx in (ELEMENTWISE, again):
            x = self.save("x.npy", np.arange(128, dtype=np.float32))
            fine("ptx", "run", ptx, "--entry", "alu_rounds", "--block", "128", "--arg", "f32[128]", "--arg", x, "--arg",
                 "10", "--save", f"0={self.path('y.npy')}")
            runs.append(np.load(self.path("y.npy")).tobytes())
        self.assertEqual(runs[0], runs[1])


class Debug(Folder):
    def session(self, *commands, code=0):
        x = self.save("x.npy", np.arange(300, dtype=np.float32))
        done = subprocess.run([program.KVSCOPE, "ptx", "debug", ELEMENTWISE, "--entry", "scale", "--block", "40", "--arg",
                               "f32[300]", "--arg", x, "--arg", "2.5", "--arg", "30"],
                              input="\n".join(commands) + "\n", capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return done.stdout

    def test_there_and_back_is_the_same_place(self):
        out = self.session("step 7", "where", "step 9", "back 9", "where", "goto 7", "where")
        shown = [part for part in out.split("step 7 ")[1:]]
        places = [part[part.index("cta (0,0,0)"):] for part in shown if "cta (0,0,0)" in part]
        self.assertEqual(len(places), 3)
        self.assertEqual(places[0].split("step")[0], places[1].split("step")[0])
        self.assertEqual(places[0].split("step")[0], places[2])

    def test_a_breakpoint_a_register_and_bytes(self):
        out = self.session("break elementwise.cu:11", "run", "print %f1", "x global 0x200000000 8", "run", "quit")
        self.assertIn("breakpoint 1 at elementwise.cu:11, 3 instructions\nstopped at breakpoint 1\nstep ", out)
        self.assertIn("%f1  .f32\n  all lanes         0x40200000  2.5\n", out)
        self.assertIn("0x200000000  ffffffff ffffffff\n", out)

    def test_shared_bytes_say_who_wrote_them(self):
        ptx = self.write("reverse.ptx", """.version 8.0\n.target sm_90\n.address_size 64
.visible .entry reverse(.param .u64 out) {
.reg .b32 %r<6>;\n.reg .b64 %rd<3>;\n.shared .align 4 .b8 words[256];
mov.u32 %r1, %tid.x;\nmov.u32 %r2, words;\nshl.b32 %r3, %r1, 2;\nadd.s32 %r4, %r2, %r3;
st.shared.u32 [%r4], %r1;\nbar.sync 0;\nsub.s32 %r5, %r2, %r3;\nld.shared.u32 %r1, [%r5+252];
ld.param.u64 %rd1, [out];\ncvt.u64.u32 %rd2, %r3;\nadd.s64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r1;\nret;\n}
""")
        done = subprocess.run([program.KVSCOPE, "ptx", "debug", ptx, "--block", "64", "--arg", "f32[64]"],
                              input="x shared 0x400 16\nbarrier\nx shared 0x47c 8\ngoto 0\nx shared 0x47c 8\n",
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        writers = [line for line in done.stdout.splitlines() if line.startswith("0x") and "-0x" in line]
        self.assertEqual(writers, [
            "0x00400-0x0040f  not written",
            f"0x0047c-0x0047f  warp 0 lane 31  st.shared.u32  {ptx}:12  step 4",
            f"0x00480-0x00483  warp 1 lane 0  st.shared.u32  {ptx}:12  step 10",
            "0x0047c-0x00483  not written"])

    LOOP = """.version 8.0\n.target sm_90\n.address_size 64\n.file 1 "loop.cu"
.func (.reg .b32 %out) twice(.reg .b32 %in) {\n.loc 1 2 0\nadd.s32 %out, %in, %in;\n.loc 1 3 0\nret;\n}
.visible .entry loop(.param .u64 out) {
.reg .b32 %r<6>;\n.reg .pred %p1;\n.loc 1 7 0\nmov.u32 %r1, -5;\nL:
.loc 1 8 0\nadd.s32 %r1, %r1, 1;\n.loc 1 9 0\ncall (%r2), twice, (%r1);\n.loc 1 10 0\nsetp.lt.s32 %p1, %r1, 20;\n@%p1 bra L;
.loc 1 12 0\nret;\n}
"""

    def debug_loop(self, *commands, code=0):
        done = subprocess.run([program.KVSCOPE, "ptx", "debug", self.write("loop.ptx", self.LOOP), "--arg", "f32[64]"],
                              input="\n".join(commands) + "\n", capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return done.stdout

    def test_a_condition_stops_where_a_lane_fulfills_it(self):
        for condition, value in (("%r1 == 7", 7), ("%r1 < -3", -4), ("%r1 >= 9", 9), ("%r1 != -4", -3)):
            out = self.debug_loop(f"break loop.cu:9 if {condition}", "run", "print %r1")
            self.assertIn(f"breakpoint 1 at loop.cu:9, 1 instruction, if {condition}\nstopped at breakpoint 1\n", out)
            self.assertIn(f"0x{value & 0xffffffff:08x}", out)
        self.assertIn("finished", self.debug_loop("break loop.cu:9 if %r1 == 21", "run"))
        for wrong, message in (("if %r1", "a condition is a register"), ("if %r1 ~ 3", "'~' is no comparison"),
                               ("if %r1 == x", "'x' is not a number")):
            self.assertIn(message, self.debug_loop(f"break loop.cu:9 {wrong}", code=2))

    def test_over_does_not_stop_in_a_function_that_the_line_calls(self):
        self.assertIn("loop.cu:2", self.debug_loop("break loop.cu:9", "run", "line").splitlines()[-2])
        self.assertIn("loop.cu:10", self.debug_loop("break loop.cu:9", "run", "over").splitlines()[-2])
        # From inside the function, it stops behind the call.
        self.assertIn("loop.cu:10", self.debug_loop("break loop.cu:2", "run", "line", "over").splitlines()[-2])

    # Lines 3 and 4 of dot.cu call intrinsics of headers: two of them in line 3, and the second one calls another.
    INTRINSICS = """.version 8.0\n.target sm_90\n.address_size 64\n.file 1 "FOLDER/dot.cu"
.file 2 "/usr/local/cuda/bin/../targets/x86_64-linux/include/sm_30_intrinsics.hpp"\n.file 3 "/other/cuda_bf16.hpp"
.visible .entry dot(.param .u64 out) {\n.reg .b32 %r<8>;\n.loc 1 2 0\nmov.u32 %r1, %tid.x;
.loc 1 3 0\nadd.s32 %r1, %r1, 1;\n.loc 2 70 0, function_name $name, inlined_at 1 3 5\nadd.s32 %r2, %r1, 1;
.loc 2 71 0, function_name $name, inlined_at 1 3 5\nadd.s32 %r2, %r2, 1;
.loc 3 80 0, function_name $name, inlined_at 2 71 0\nadd.s32 %r2, %r2, 1;\n.loc 1 3 9\nadd.s32 %r3, %r2, 1;
.loc 2 70 0, function_name $name, inlined_at 1 4 5\nadd.s32 %r4, %r3, 1;
.loc 1 8 0, function_name $name, inlined_at 1 5 5\nadd.s32 %r4, %r4, 1;
.loc 2 70 0, function_name $name, inlined_at 1 9 5\nadd.s32 %r4, %r4, 1;
.loc 1 6 0\nret;\n}\n.section .debug_str\n{\n$name:\n.b8 95,95,102,0\n}\n"""

    def debug_intrinsics(self, *commands):
        text = self.INTRINSICS.replace("FOLDER", self.folder.name)
        self.write("dot.cu", "".join(f"line {n}\n" for n in range(1, 10)))
        done = subprocess.run([program.KVSCOPE, "ptx", "debug", self.write("dot.ptx", text), "--arg", "f32[1]"],
                              input="\n".join(commands) + "\n", capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    # They stopped at each line of a header, and showed the line of the user that calls it, again and again.
    def test_lines_are_those_that_are_shown(self):
        def places(*commands):
            return re.findall(r"^step \d+ .*  (dot\.cu:.*)$", self.debug_intrinsics(*commands), re.M)
        self.assertEqual(places(*["line"] * 5), ["dot.cu:2", "dot.cu:3", "dot.cu:4", "dot.cu:8  <- dot.cu:5", "dot.cu:9", "dot.cu:6"])
        self.assertEqual(places("goto 9", *["backline"] * 4)[2:], ["dot.cu:9", "dot.cu:8  <- dot.cu:5", "dot.cu:4", "dot.cu:3"])
        # From inside an intrinsic, which is no function of the user.
        self.assertEqual(places("goto 4", "over", "over", "over")[1:], ["dot.cu:3", "dot.cu:4", "dot.cu:9", "dot.cu:6"])

    # It listed the header, without a name.
    def test_the_listed_file_is_named_and_that_of_the_place(self):
        out = self.debug_intrinsics("goto 4", "list")
        self.assertIn(f"\n{self.folder.name}/dot.cu\n      1  line 1\n      2  line 2\n>     3  line 3\n", out)

    # A run that looked ahead to a breakpoint or past it has shown the reports there to the checkers, once.
    def test_run_stops_at_each_report_even_if_a_look_ahead_passed_it(self):
        ptx = self.write("race.ptx", """.version 8.0\n.target sm_90\n.address_size 64
.visible .entry race(.param .u64 out) {
.reg .b32 %r<6>;\n.reg .b64 %rd<3>;\n.shared .align 4 .b8 words[256];
mov.u32 %r1, %tid.x;\nmov.u32 %r2, words;\nshl.b32 %r3, %r1, 2;\nadd.s32 %r4, %r2, %r3;
st.shared.u32 [%r4], %r1;\nsub.s32 %r5, %r2, %r3;\nld.shared.u32 %r1, [%r5+252];
ld.param.u64 %rd1, [out];\ncvt.u64.u32 %rd2, %r3;\nadd.s64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r1;\nret;\n}
""")

        def stops(*commands):
            done = subprocess.run([program.KVSCOPE, "ptx", "debug", ptx, "--block", "64", "--arg", "f32[64]"],
                                  input="\n".join(commands), capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = done.stdout.splitlines()
            return [(line, next(x for x in lines[i:] if x.startswith("step "))) for i, line in enumerate(lines)
                    if line in ("stopped at a report", "finished")]
        found = stops(*["run"] * 4)
        self.assertEqual([line for line, _ in found], ["stopped at a report"] * 3 + ["finished"], found)
        self.assertEqual(stops("goto 100", "goto 0", *["run"] * 4), [("finished", found[-1][1])] + found)
        self.assertEqual(stops("watch shared 0x400 4", "run", *["run"] * 4), found)

        done = subprocess.run([program.KVSCOPE, "ptx", "debug", ptx, "--block", "64", "--arg", "f32[64]"],
                              input="watch shared 0x404 4\nrun\n", capture_output=True, text=True, timeout=300, check=False)
        self.assertIn("watchpoint 1\nstopped at watchpoint 1: shared 0x00404: ff ff ff ff -> 01 00 00 00\nstep 5 ", done.stdout)

    def test_write_stops_at_a_write_that_changes_nothing_and_a_watchpoint_does_not(self):
        ptx = os.path.join(self.folder.name, "twice.ptx")
        with open(ptx, "w", encoding="utf-8") as file:
            file.write(""".version 8.0\n.target sm_90a\n.address_size 64
.visible .entry twice(.param .u64 out) {
.reg .pred %p1;\n.reg .b32 %r<4>;\n.shared .align 4 .b8 words[256];
mov.u32 %r1, %tid.x;\nmov.u32 %r2, words;\nmad.lo.s32 %r3, %r1, 4, %r2;\nsetp.eq.s32 %p1, %r1, 0;
st.shared.u32 [%r3], %r1;\nst.shared.u32 [%r3], %r1;\n@%p1 st.shared.u32 [words], 31;\nret;\n}
""")

        def said(*commands):
            done = subprocess.run([program.KVSCOPE, "ptx", "debug", ptx, "--block", "32", "--arg", "f32[64]"],
                                  input="\n".join(commands), capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return re.findall("^(?:written|stopped).*|^finished|^step [0-9]+", done.stdout, re.MULTILINE)
        write = "write shared 0x404 4"
        self.assertEqual(said(write, write, write), ["step 0", "written: shared 0x00404: 01 00 00 00", "step 5",
                                                     "written: shared 0x00404: 01 00 00 00", "step 6", "finished", "step 8"])
        self.assertEqual(said("watch shared 0x404 4", "run", "run"),
                         ["step 0", "stopped at watchpoint 1: shared 0x00404: ff ff ff ff -> 01 00 00 00", "step 5",
                          "finished", "step 8"])
        self.assertEqual(said("goto 6", "write shared 0x400 8 0"),
                         ["step 0", "step 6", "written: shared 0x00400: 1f 00 00 00 01 00 00 00", "step 7"])

    def test_each_command_prints_something(self):
        out = self.session("registers", "barriers", "reports", "copies", "break elementwise.cu:11", "delete 1")
        for answer in ("no register has been written yet", "no barriers in use", "no reports so far",
                       "no copies in flight", "removed 1"):
            self.assertIn(answer + "\n", out)

    # An end of the input and an error look the same to the reader of a line.
    def test_an_error_of_standard_input_is_reported(self):
        folder = os.open(self.folder.name, os.O_RDONLY)
        try:
            done = subprocess.run([program.KVSCOPE, "ptx", "debug", ELEMENTWISE, "--entry", "scale", "--arg", "f32[1]", "--arg",
                                   "f32[1]", "--arg", "2.5", "--arg", "1"], stdin=folder, capture_output=True, text=True,
                                  timeout=300, check=False)
        finally:
            os.close(folder)
        self.assertEqual((done.returncode, done.stderr), (2, "kvscope: standard input: cannot be read: Is a directory\n"))

    def test_a_wrong_command_says_so_and_the_session_goes_on(self):
        out = self.session("dance", "print %r77", "break nowhere.cu:1", "step", code=2)
        self.assertIn("there is no command 'dance': help lists them\n", out)
        self.assertIn("no register '%r77'", out)
        for typed, near in [("stpe", "step"), ("wher", "where"), ("register", "registers"), ("barier", "barrier"),
                            ("reprots", "reports"), ("quitt", "quit"), ("Step", "step"), ("contiune", "continue")]:
            self.assertIn(f"there is no command '{typed}': did you mean \"{near}\"? help lists them\n",
                          self.session(typed, code=2))
        for words, answer in [
                ("print f1", "print needs a register, with its %: print %r1"),
                ("watch global 0x10 4", "no array has 4 bytes at 0x10: ptx run prints the address of each array"),
                ("watch global 0x200000000 0", "0 bytes: watch 1 to 4096 bytes"),
                ("write global 0x200000000 4", "write needs shared, an address and bytes: write shared 0x400 4"),
                ("write shared 0x400", "write needs shared, an address and bytes: write shared 0x400 4"),
                ("write shared 0x400 4 1", "there is no CTA 1: the launch has 1 CTA"),
                ("watch shared 0x400 4 4294967296", "there is no CTA 4294967296: the launch has 1 CTA"),
                ("watch shared 0x400 4 0 9", "'9' is not used: watch takes 4 words"),
                ("step 3 4", "'4' is not used: step takes one word"),
                ("run quickly", "'quickly' is not used: run takes no words"),
                ("quit now", "'now' is not used: quit takes no words"),
                ("pick 0 9", "there is no warp 9 of CTA 0 now: where lists the warps"),
                ("pick 7 0", "there is no warp 0 of CTA 7 now: where lists the warps"),
                ("watch shared 0x100000 4", "shared memory has no 4 bytes at 0x100000: it ends at 0x0")]:
            self.assertIn(answer + "\n", self.session("step", words, code=2), words)
        self.assertIn("no instruction is of nowhere.cu:1: was the file compiled with -lineinfo?\n", out)
        self.assertTrue(out.splitlines()[-2].startswith("step 1 "), out)

    def test_a_line_without_instructions_names_its_neighbors(self):
        with open(os.path.join(KERNELS, "elementwise.cu"), encoding="utf-8") as source:
            lines = source.read().splitlines()
        first = next(n for n, text in enumerate(lines, 1) if "KERNEL scale(" in text)
        for line in (1, len(lines) + 1000):
            near = int(re.search(rf"no instruction is of elementwise.cu:{line}: the nearest line with instructions is (\d+)\n",
                                 self.session(f"break elementwise.cu:{line}", code=2)).group(1))
            # A breakpoint there is accepted, and none is between it and the end of the file.
            self.assertIn("breakpoint 1 at ", self.session(f"break elementwise.cu:{near}"))
            self.assertTrue(1 < near <= len(lines), near)
        blank = next(n for n in range(first, len(lines)) if not lines[n - 1].strip())
        out = self.session(f"break elementwise.cu:{blank}", code=2)
        below, above = map(int, re.search(rf"elementwise.cu:{blank}: the nearest lines with instructions are (\d+) and (\d+)\n",
                                          out).groups())
        self.assertTrue(first <= below < blank < above, (below, blank, above))


if __name__ == "__main__":
    program.main()
