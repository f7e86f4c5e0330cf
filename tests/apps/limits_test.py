#!/usr/bin/env python3
"""Files and kernels that ask for too much: each ends with one message, within limits of the process on memory (RLIMIT_AS) and on
processor time (RLIMIT_CPU). No stopwatch: a process over a limit fails or is killed.

    limits_test.py --kvscope PROGRAM
"""
import json
import os
import resource
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402

MIB = 1 << 20
HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
PRINTF = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
CALL_PRINTF = ("mov.u64 %d0, text; cvta.global.u64 %d0, %d0; mov.u64 %d1, 0;\n"
               "{ .param .b64 f; .param .b64 v; .param .b32 back; st.param.b64 [f], %d0; st.param.b64 [v], %d1;\n"
               "call.uni (back), vprintf, (f, v); }\n")
MALLOC = ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
CALL_MALLOC = ("{ .param .b64 q; .param .b64 back; st.param.b64 [q], 8; call.uni (back), malloc, (q);"
               " ld.param.b64 %d1, [back]; }\n")
CALL_FREE = "{ .param .b64 q; st.param.b64 [q], %d1; call.uni free, (q); }\n"

# It counts, so that its state never repeats: it is no spin.
PRINTING_LOOP = "LOOP: add.u32 %r0, %r0, 1;\n" + CALL_PRINTF + "bra LOOP;"


def text(words):
    values = ", ".join(str(byte) for byte in words.encode() + b"\0")
    return f".global .align 1 .b8 text[{len(words) + 1}] = {{{values}}};\n"


def kernel(body, before=""):
    return (HEAD + before + ".visible .entry k() {\n.reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p<4>;\n" + body +
            "\nret;\n}\n").encode()


def limited(mib, seconds):
    def apply():
        resource.setrlimit(resource.RLIMIT_AS, (mib * MIB, mib * MIB))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        program.end_with_parent()
    return apply


@unittest.skipIf(program.SLOW_BUILD or os.environ.get("ASAN_OPTIONS"), "sanitizers reserve terabytes of addresses")
class Limits(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_limited(self, arguments, files=(), mib=1024, seconds=60):
        for name, content in dict(files).items():
            with open(os.path.join(self.folder.name, name), "wb") as f:
                f.write(content)
        done = subprocess.run([program.KVSCOPE, *arguments], cwd=self.folder.name, capture_output=True, timeout=600, check=False,
                              preexec_fn=limited(mib, seconds), stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def rejected(self, arguments, words, files=(), **limits):
        """One message on standard error with `words`, exit code 2. A fault of a PTX file is followed by its line."""
        code, _, errors = self.run_limited(arguments, files, **limits)
        self.assertEqual((code, errors.count("kvscope: ")), (2, 1), errors[:2000])
        self.assertIn(words, errors)

    def reported(self, ptx, words, *options, **limits):
        """A report of the kernel with `words`, exit code 1, no error."""
        code, output, errors = self.run_limited(["ptx", "run", "k.ptx", *options], {"k.ptx": ptx}, **limits)
        self.assertEqual((code, errors), (1, ""), output[-2000:])
        self.assertTrue(words in output, f"{words} is not in ...{output[-2000:]}")

    # --- files ---

    def test_a_header_of_90_mb_takes_a_bounded_multiple_of_its_length(self):
        for filler in (b"[],", b"0,", b'"a",', b"{},"):
            header = b'{"x":[' + filler * (90_000_000 // len(filler)) + b"0]}"
            with self.subTest(filler=filler):
                self.rejected(["lint", "a.safetensors"], "more than 2000000 values in one document",
                              {"a.safetensors": struct.pack("<Q", len(header)) + header})

    def test_a_json_file_of_many_values(self):
        self.rejected(["scenario", "check", "s.json"], "more than 10000000 values in one document",
                      {"s.json": b"[" + b"0," * 30_000_000 + b"0]"}, mib=2048)

    def test_a_device_or_a_pipe_is_not_read(self):
        os.symlink("/dev/zero", os.path.join(self.folder.name, "zero.safetensors"))
        os.mkfifo(os.path.join(self.folder.name, "pipe.npz"))
        for name in ("zero.safetensors", "pipe.npz"):
            self.rejected(["lint", name], "is a device or a pipe, which may not end")

    def test_a_long_sparse_file_is_rejected_by_its_start(self):
        for name, start in (("a.npz", b"no zip"), ("a.safetensors", struct.pack("<Q", 2) + b"{}"), ("a.npy", b"\x93NUMPY\1\0")):
            path = os.path.join(self.folder.name, name)
            with open(path, "wb") as f:
                f.write(start)
            os.truncate(path, 60 << 30)
            code, _, errors = self.run_limited(["lint", name])
            self.assertEqual((code, errors.count("\n")), (2, 1), errors)

    def test_a_zip_bomb_is_not_unpacked(self):
        path = os.path.join(self.folder.name, "bomb.npz")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
            for i in range(6):
                z.writestr(f"{i}.npy", bytes(100 * MIB))
        self.rejected(["lint", "bomb.npz"], "rejected as a zip bomb", mib=512)

    def test_a_bias_with_shared_axes_is_not_expanded(self):
        """16 sequences of 512 queries and keys, 16 query heads: the whole bias [B, Hq, Sq, Sk] takes 256 MiB in f32 and 512 MiB in
        f64, and [B, Sq, Sk] 32 MiB in f64. Without a mask the commands need 248, 55 and 138 MiB of addresses."""
        small, large = (272, 96, 162), (288, 160, 186)  # a file of 1 MiB for the mask, or of 16 MiB
        batch, heads, length, page = 16, 16, 512, 64
        rng = np.random.default_rng(1)
        some = lambda *shape: rng.standard_normal(shape).astype(np.float32)
        blocks = batch * length // page
        arrays = {"q": some(batch * length, heads, 4), "k_cache": some(blocks, page, 1, 4), "v_cache": some(blocks, page, 1, 4),
                  "block_table": np.arange(blocks, dtype=np.int32).reshape(batch, -1),
                  "cache_seqlens": np.full(batch, length, np.int32),
                  "query_offsets": np.arange(batch + 1, dtype=np.int32) * length}
        path = os.path.join(self.folder.name, "in.npz")
        for name, shape, (golden, lint, verify) in [
                ("attn_mask", (length, length), small), ("attn_mask", (1, heads, length, length), large),
                ("attn_mask", (batch, 1, length, length), large), ("attn_mask", (1, heads, 1, length), small),
                ("attn_mask", (1, heads, length, 1), small), ("tree_mask", (length, length), small)]:
            np.savez(path, **arrays, **{name: some(*shape)})
            with self.subTest(name=name, shape=shape):
                for mib, arguments in [
                        (golden, ["golden", "--input", "in.npz", "--layout", "nhd", "--accuracy", "fast", "--out", "golden.npz"]),
                        (lint, ["lint", "in.npz", "--layout", "nhd"])]:
                    code, _, errors = self.run_limited(arguments, mib=mib)
                    self.assertEqual((code, errors), (0, ""))
                with np.load(os.path.join(self.folder.name, "golden.npz")) as file:
                    o = file["o"].astype(np.float32)
                o[700] += 1
                np.savez(os.path.join(self.folder.name, "candidate.npz"), o=o)
                for command in ("verify", "diagnose"):
                    code, output, errors = self.run_limited([command, "golden.npz", "candidate.npz"], mib=verify)
                    self.assertEqual((code, errors), (1, ""))
                    self.assertIn("sequence 1 of 16", output)

    def test_the_keys_of_a_mask_are_bits(self):
        """4 sequences of 1024 queries and keys, and a mask that only hides keys. Each query becomes a sequence with a list of its
        keys: 16 MiB as the table of a problem, and again in the golden. Lists of 64-bit numbers, and copies of both, took 33
        MiB more; without a mask the commands need 57, 47 and 51 MiB of addresses."""
        batch, heads, length, page = 4, 2, 1024, 64
        rng = np.random.default_rng(2)
        some = lambda *shape: rng.standard_normal(shape).astype(np.float32)
        blocks = batch * length // page
        arrays = {"q": some(batch * length, heads, 4), "k_cache": some(blocks, page, 1, 4), "v_cache": some(blocks, page, 1, 4),
                  "block_table": np.arange(blocks, dtype=np.int32).reshape(batch, -1),
                  "cache_seqlens": np.full(batch, length, np.int32),
                  "query_offsets": np.arange(batch + 1, dtype=np.int32) * length}
        seen = rng.random((batch, 1, length, length)) < 0.9
        added = np.where(seen, np.float32(0), np.float32(-np.inf))
        path = os.path.join(self.folder.name, "in.npz")
        for mask, (golden, lint, verify) in [(seen[0, 0], (134, 66, 114)), (added[0, 0], (136, 76, 118)), (added, (150, 124, 150))]:
            np.savez(path, **arrays, attn_mask=mask)
            with self.subTest(dtype=mask.dtype, shape=mask.shape):
                for mib, arguments in [
                        (golden, ["golden", "--input", "in.npz", "--layout", "nhd", "--accuracy", "fast", "--out", "golden.npz"]),
                        (lint, ["lint", "in.npz", "--layout", "nhd"])]:
                    code, _, errors = self.run_limited(arguments, mib=mib)
                    self.assertEqual(code, 0, errors)
                with np.load(os.path.join(self.folder.name, "golden.npz")) as file:
                    o = file["o"].astype(np.float32)
                    np.testing.assert_array_equal(file["key_lengths"][:length], seen[0, 0].sum(1))
                o[700] += 1
                np.savez(os.path.join(self.folder.name, "candidate.npz"), o=o)
                code, output, errors = self.run_limited(["verify", "golden.npz", "candidate.npz"], mib=verify)
                self.assertEqual((code, errors), (1, ""))
                self.assertIn("sequence 700 of 4096", output)

    def test_a_scenario_of_two_billion_steps_is_refused_by_an_estimate(self):
        with open(program.gallery("first_light"), encoding="utf-8") as f:
            scenario = json.load(f)
        scenario["model"]["layers"] = 1
        scenario["cache"].update(blocks=33_000_000, page_size=64)  # 2.1e9 tokens fit
        scenario["requests"] = {"list": [{"arrival_us": 0, "prompt_tokens": 5, "generate_tokens": 2_000_000_000}]}
        files = {"s.json": json.dumps(scenario).encode()}
        self.rejected(["run", "s.json"], "request 0 generates 2000000000 tokens, one in a step: a run has at most 2000000 steps", files)
        self.rejected(["run", "s.json", "--max-steps", "0"], "--max-steps: 0 is below 1", files)

    def test_a_trace_of_many_steps_or_events(self):
        def trace(name, steps, events, text=0):
            """A trace of empty steps, and of `events` events that the index claims for the last one."""
            path = os.path.join(self.folder.name, name)
            done = subprocess.run([program.KVSCOPE, "run", program.gallery("first_light"), "--trace", "full", "--out",
                                   os.path.join(self.folder.name, "run")],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            os.replace(os.path.join(self.folder.name, "run", "trace.kvt"), path)
            with sqlite3.connect(path) as base:
                base.execute("DELETE FROM step")
                base.executemany("INSERT INTO step VALUES (?, ?, ?, ?, 0)", ((row, row - 1, max(0, row - 1), 1 if row else 0)
                                                                             for row in range(steps)))
                base.execute("INSERT INTO step VALUES (?, ?, ?, ?, 0)", (steps, steps - 1, max(0, steps - 1), events))
                base.execute("UPDATE meta SET value = ? WHERE key = 'events'", (str(max(0, steps - 1) + events),))
                base.execute("INSERT INTO meta VALUES ('text', ?)", ("x" * text,))
            base.close()

        trace("steps.kvt", 4_000_001, 1)
        self.rejected(["trace", "show", "steps.kvt"],
                      "table 'step', row 4000001: 4000001 steps are more than 4000000: a larger limit: --max-steps of kvscope trace", mib=512)
        self.rejected(["trace", "diff", "steps.kvt", "steps.kvt", "--max-steps", "1000"], "1001 steps are more than 1000", mib=512)
        trace("events.kvt", 1, 1_000_000_001)
        self.rejected(["trace", "show", "events.kvt"],
                      "meta 'events': 1000000001 events are more than 1000000000: a larger limit: --max-events of kvscope trace", mib=512)
        self.rejected(["trace", "show", "events.kvt", "--max-events", "2000000000"],
                      "1000000001 events of one step are more than 4000000: a larger limit: --max-step-events of kvscope trace", mib=512)
        trace("text.kvt", 1, 1, 68_000_000)
        self.rejected(["trace", "show", "text.kvt"],
                      "holds a text of more than 67108864 bytes: a larger limit: --max-text of kvscope trace", mib=512)
        self.rejected(["trace", "show", "text.kvt", "--max-text", "0"], "--max-text: 0 is below 1", mib=512)

    # --- kernels ---

    def test_printf(self):
        self.reported(kernel(PRINTING_LOOP, PRINTF + text("0123456789" * 6)), "printf: 60 bytes or more of one call; the launch has printed 16777200 of at most 16777216 bytes")
        self.reported(kernel(PRINTING_LOOP, PRINTF + text("0123456789")), "at most 1000 bytes",
                      "--max-printed", "1000")
        for conversion in ("%2000000000d", "%.2000000000f", "%-99999999999999999999d"):
            self.reported(kernel(CALL_PRINTF, PRINTF + text(conversion)), "has a width or precision of")

    def test_malloc(self):
        self.reported(kernel("LOOP:" + CALL_MALLOC + CALL_FREE + "bra LOOP;", MALLOC),
                      "malloc: 1000000 blocks of this launch, freed ones included, are the limit")
        code, output, _ = self.run_limited(
            ["ptx", "run", "k.ptx", "--max-mallocs", "2000000"],
            {"k.ptx": kernel("mov.u32 %r0, 0; LOOP:" + CALL_MALLOC +
                             "add.u32 %r0, %r0, 1; setp.lt.u32 %p0, %r0, 1000000; @%p0 bra LOOP;", MALLOC)})
        self.assertEqual(code, 0)  # linear: 1,048,576 blocks of 8 bytes fill the heap
        self.assertIn("1000000 malloc blocks are not freed, 8000000 bytes", output)

    def test_local_memory(self):
        for body, words in ((".local .b8 x[4294967296]; st.local.u8 [x], 1;", "at most 524288"),
                            (".local .b8 x[524288]; st.local.u8 [x], 1;", "at most 1073741824 in total")):
            files = {"k.ptx": kernel(body)}
            self.rejected(["ptx", "run", "k.ptx", "--grid", "2000", "--block", "1024", "--cooperative"], words, files)
        # One CTA of 512 MiB after the other.
        code, output, errors = self.run_limited(["ptx", "run", "k.ptx", "--grid", "3", "--block", "1024"], files, mib=3072)
        self.assertEqual((code, errors), (0, ""), output[-500:])

    def test_device_memory(self):
        variables = "".join(f".global .b8 x{i}[4294967296];\n" for i in range(5))
        self.rejected(["ptx", "run", "k.ptx", "--max-memory", "1000000"], "a larger limit: --max-memory",
                      {"k.ptx": kernel("", variables)})
        self.rejected(["ptx", "run", "k.ptx"], "a larger limit: --max-memory",
                      {"k.ptx": kernel("", ".global .b8 x[4294967296];\n.global .b8 y;\n")}, mib=16384)

    def test_a_cooperative_grid(self):
        self.rejected(["ptx", "run", "k.ptx", "--grid", "2000000000", "--cooperative"], "--max-ctas", {"k.ptx": kernel("")})

    def test_copies_in_flight(self):
        body = ".shared .align 16 .b8 s[16]; mov.u64 %d0, from;\nLOOP: cp.async.ca.shared.global [s], [%d0], 16; add.u32 %r0, %r0, 1; bra LOOP;"
        self.reported(kernel(body, ".global .align 16 .b8 from[16];\n"), "asynchronous copies and groups", mib=2048)

    def test_instructions(self):
        loop = kernel("LOOP: bra LOOP;")
        self.reported(loop, "RUNAWAY", "--max-instructions", "1000")
        for value in ("-1", "0", "9223372036854775808", "1e9", "0x10", ""):
            self.rejected(["ptx", "run", "k.ptx", f"--max-instructions={value}"], "--max-instructions", {"k.ptx": loop})

    def test_timeout(self):
        # A loop that counts: its state never repeats, so that it is no spin.
        loop = {"k.ptx": kernel("LOOP: add.u64 %d0, %d0, 1; bra LOOP;")}
        self.rejected(["ptx", "run", "k.ptx", "--max-instructions", "9223372036854775807", "--timeout", "0.2"],
                      "kvscope: the time limit of 0.2 s is reached: raise it with --timeout", loop)
        for value in ("-1", "nan", "1e7", "x"):
            self.rejected(["ptx", "run", "k.ptx", "--timeout", value], "is not a number of seconds from 0 to 1000000", loop)

    def test_registers_and_variables_of_a_kernel(self):
        self.rejected(["ptx", "run", "k.ptx"], "registers", {"k.ptx": kernel(".reg .b32 %x<4000000000>;")})
        self.rejected(["ptx", "run", "k.ptx"], "1099511627776", {"k.ptx": kernel(".local .b8 x[1099511627776];")})


if __name__ == "__main__":
    program.main()
