#!/usr/bin/python3
"""The commands of the second half of the chain against NumPy doing the same by brute force: tensor maps and box copies,
swizzles, KVBuffer's tables, fragments, whole tiles staged, and explain there and back.

    staging_commands_test.py --kvscope PROGRAM
"""
import itertools
import json
import os
import re
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, gallery, kvscope, read_safetensors, write_json  # noqa: E402

POISON = 0xCD
SIZES = {"u8": 1, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
# (bits, atom, lines that change them) of each mode, as CuTe writes them: Swizzle<bits, base, shift> on bytes.
MODES = {"none": (0, 4, 3), "32B": (1, 4, 3), "64B": (2, 4, 3), "128B": (3, 4, 3), "128B_ATOM_32B": (2, 5, 2),
         "128B_ATOM_32B_FLIP_8B": (2, 5, 2), "128B_ATOM_64B": (1, 6, 1)}
SPANS = {"none": 16, "32B": 32, "64B": 64}


def swizzled(address, bits, base, shift):
    address = np.asarray(address)
    return address ^ ((address >> (base + shift) & ((1 << bits) - 1)) << base)


# --- tensor maps ------------------------------------------------------------------------------------------------------

def tensor_map(**members):
    """A legal map of 20 rows of 64 bf16, and what else is said of it."""
    return {"kvscope_tensor_map": 1, "type": "bf16", "dims": [64, 20], "strides": [128], "box": [64, 8], **members}


def box_by_hand(described, data, at, dst):
    """(window, bytes filled) of a copy: one element after the other, in the order of the box."""
    rank, size = len(described["dims"]), SIZES[described["type"]]
    mode, steps = described.get("swizzle", "none"), [1, *described.get("element_strides", [1] * rank)[1:]]
    extents = [described["box"][0]] + [-(-described["box"][i] // steps[i]) for i in range(1, rank)]
    inner = extents[0] * size
    pitch = max(inner, SPANS.get(mode, 128)) if mode != "none" else inner
    window = np.full(pitch * int(np.prod(extents[1:])), POISON, np.uint8)
    fill = [0] * size if described.get("fill", "zeros") == "zeros" else [0xF7, 0x7F] * (size // 2)
    filled = 0
    for row, rest in enumerate(itertools.product(*(range(e) for e in reversed(extents[1:])))):
        for j in range(extents[0]):
            x = [at[0] + j] + [at[i] + rest[rank - 1 - i] * steps[i] for i in range(1, rank)]
            inside = all(0 <= x[i] < described["dims"][i] for i in range(rank))
            where = x[0] * size + sum(x[i] * described["strides"][i - 1] for i in range(1, rank))
            element = data[where:where + size] if inside else fill
            filled += 0 if inside else size
            for byte in range(size):
                to = dst + row * pitch + j * size + byte
                to = int(swizzled(to, *MODES[mode]))
                if mode.endswith("FLIP_8B") and to // 128 % 2 == 1:
                    to ^= 8
                window[to - dst] = element[byte]
    return window, filled


class TensorMaps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def check(self, **members):
        return kvscope("tma", "check", write_json(self.path("map.json"), tensor_map(**members)))

    def test_a_map_that_obeys_every_rule_is_accepted_with_its_box(self):
        done = self.check(swizzle="128B", base=4096)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout,
                         "map        bf16 [20, 64], strides [128] B, box [8, 64], 128B swizzle, on sm_90\n"
                         "box        8 rows of 128 B, 128 B apart in shared memory: reserve 1024 B, expect 1024 B\n"
                         "accepted   every rule holds\n")
        done = self.check(swizzle="128B", box=[32, 5])
        self.assertIn("box        5 rows of 64 B, 128 B apart in shared memory: reserve 640 B, expect 320 B\n",
                      done.stdout)

    def test_a_map_of_rank_1_is_a_line_without_strides(self):
        described = {"kvscope_tensor_map": 1, "type": "f32", "dims": [150], "box": [32]}
        self.assertEqual(fine("tma", "check", write_json(self.path("map.json"), described)),
                         "map        f32 [150], box [32], no swizzle, on sm_90\n"
                         "box        1 row of 128 B: reserve 128 B, expect 128 B\n"
                         "accepted   every rule holds\n")

    def test_a_map_that_breaks_rules_is_rejected_with_every_one(self):
        done = self.check(dims=[72, 20], strides=[72], box=[72, 0], swizzle="128B", base=8)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertEqual(done.stdout,
                         "map        bf16 [20, 72], strides [72] B, box [0, 72], 128B swizzle, on sm_90\n"
                         "broken     V05 base: 0x8 is 8 B past a multiple of 16: move the tensor\n"
                         "broken     V10 strides[0]: 72 B is not a multiple of 16 B: pad the rows\n"
                         "broken     V13 box[1]: 0 is outside 1 to 256: copy the tile in several boxes\n"
                         "broken     V17 box[0]: 72 x bf16 = 144 B, but 128B swizzle takes at most 128 B: use boxes of "
                         "64 elements\n"
                         "rejected   4 broken rules\n")

    def test_the_edges_of_each_rule(self):
        for legal, members in [(True, {"box": [64, 256]}), (False, {"box": [64, 257]}), (False, {"box": [4, 8]}),
                               (True, {"box": [8, 8]}), (True, {"dims": [64, 2 ** 32]}),
                               (False, {"dims": [64, 2 ** 32 + 1]}), (False, {"dims": [0, 20]}),
                               (True, {"strides": [2 ** 40 - 16]}), (False, {"strides": [2 ** 40]}),
                               (True, {"strides": [0]}), (True, {"element_strides": [8, 8]}),
                               (False, {"element_strides": [99, 8]}),
                               (False, {"element_strides": [1, 9]}), (True, {"swizzle": "64B", "box": [32, 8]}),
                               (False, {"swizzle": "64B", "box": [40, 8]}), (True, {"fill": "nan"}),
                               (False, {"fill": "nan", "type": "u8"}), (False, {"swizzle": "128B_ATOM_64B"}),
                               (True, {"swizzle": "128B_ATOM_64B", "target": "sm_100"}),
                               (True, {"dims": [64], "strides": [], "box": [64]}),
                               (False, {"dims": [64], "strides": [], "box": [4]})]:
            with self.subTest(**members):
                done = self.check(**members)
                self.assertEqual((done.returncode, done.stderr), (0 if legal else 1, ""), done.stdout)
                self.assertEqual("accepted" in done.stdout, legal)
        self.assertIn("note       strides[0]: 0 B is legal by the rules", self.check(strides=[0]).stdout)

    def test_a_legal_map_that_only_hardware_carries_out_is_accepted(self):
        for members, why in [
                ({"interleave": "16B", "dims": [8, 20, 3], "strides": [128, 4096], "box": [8, 8, 1]},
                 "load of a box: where the bytes of a map with 16B interleave land is not modeled: use no interleave"),
                ({"type": "u4x16_align16", "dims": [128, 20], "strides": [64], "box": [128, 1], "target": "sm_100"},
                 "load of a box: u4x16_align16 is converted on its way, and only byte copies are modeled: use u8"),
                ({"type": "tf32", "box": [32, 8], "strides": [256]},
                 "load of a box: tf32 is converted on its way, and only byte copies are modeled: use f32")]:
            with self.subTest(**members):
                done = self.check(**members)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(done.stdout.endswith(f"box        none: {why}\naccepted   every rule holds\n"),
                                done.stdout)

    def copy(self, described, data, at, dst=0):
        np.save(self.path("data.npy"), data)
        write_json(self.path("map.json"), described)
        text = fine("tma", "copy", self.path("map.json"), "--data", self.path("data.npy"),
                    "--at=" + ",".join(map(str, at)), "--dst", dst, "--out", self.path("out.npy"), "--all")
        return text, np.load(self.path("out.npy"))

    def test_copies_what_numpy_copies_element_by_element(self):
        rng = np.random.default_rng(3)
        three = {"dims": [40, 3, 11], "strides": [112, 352], "box": [16, 2, 5]}
        cases = [({}, [0, 0], 0), ({}, [0, 17], 1024), ({"swizzle": "128B"}, [0, 17], 0), ({}, [0, -3], 0),
                 ({"swizzle": "128B"}, [0, -3], 384), ({"swizzle": "64B", "box": [32, 7]}, [16, 2], 128),
                 ({"swizzle": "32B", "box": [16, 9]}, [48, 12], 256), ({"swizzle": "128B", "box": [24, 6]}, [8, 1], 0),
                 ({"dims": [61, 20], "box": [16, 4], "fill": "nan"}, [56, 18], 0),
                 ({"swizzle": "128B", "fill": "nan"}, [-8, 14], 0), ({"element_strides": [1, 3]}, [0, 5], 0),
                 ({"element_strides": [7, 2], "swizzle": "128B"}, [0, 13], 0), (three, [8, 1, 7], 0),
                 ({**three, "swizzle": "32B"}, [32, 2, -2], 128),
                 ({**three, "element_strides": [1, 2, 2]}, [0, 0, 6], 0),
                 ({"type": "u8", "dims": [100, 20], "strides": [112], "box": [48, 6], "swizzle": "64B"}, [64, 3], 0),
                 ({"type": "f32", "dims": [20, 9], "strides": [80], "box": [8, 4], "swizzle": "32B"}, [12, 7], 128),
                 ({"type": "f64", "dims": [8, 9], "strides": [64], "box": [4, 4], "fill": "nan"}, [6, 7], 0),
                 ({"strides": [16]}, [0, 3], 0),  # rows that overlap
                 ({"dims": [150], "strides": [], "box": [64]}, [128], 256),  # a line
                 ({"dims": [150], "strides": [], "box": [64], "swizzle": "128B", "fill": "nan"}, [-8], 128),
                 ({"swizzle": "128B_ATOM_32B", "target": "sm_100"}, [0, 3], 128),
                 ({"swizzle": "128B_ATOM_64B", "target": "sm_100"}, [0, 3], 128),
                 ({"swizzle": "128B_ATOM_32B_FLIP_8B", "target": "sm_100"}, [0, 3], 128),
                 ({"type": "u8", "dims": [3, 5, 4, 3, 6], "strides": [16, 96, 400, 1216], "box": [16, 2, 3, 2, 2]},
                  [0, 1, -1, 2, 4], 0)]
        for members, at, dst in cases:
            described = tensor_map(base=4096, **members)
            with self.subTest(at=at, dst=dst, **members):
                strides, dims = described["strides"], described["dims"]
                size = SIZES[described["type"]]
                reach = dims[0] * size + sum((dims[i + 1] - 1) * strides[i] for i in range(len(strides)))
                data = rng.integers(0, 0xCD, -(-reach // 16) * 16, np.uint8)  # no byte looks like poison
                text, window = self.copy(described, data, at, dst)
                expected, filled = box_by_hand(described, data, at, dst)
                np.testing.assert_array_equal(window, expected)
                written = int(np.count_nonzero(expected != POISON)) if described.get("fill") != "nan" else None
                self.assertRegex(text, rf"(?m)^barrier    \d+ B expected, {filled} B of them filled$")
                if written is not None:
                    self.assertIn(f"barrier    {written} B expected", text)
                self.check_chunks(text, described, data, window, dst)

    def check_chunks(self, text, described, data, window, dst):
        """Each printed chunk says where its 16 bytes come from and land."""
        chunks = re.findall(r"(?m)^ *(\d+) +(\d+) +(filled|0x[0-9a-f]+) +(\d+)$", text)
        self.assertGreater(len(chunks), 0)
        self.assertEqual(len({shared for *_, shared in chunks}), len(chunks))
        for _, column, source, shared in chunks:
            landed = bytes(window[int(shared) - dst:int(shared) - dst + 16])
            if source == "filled":
                self.assertIn(landed, (bytes(16), b"\xf7\x7f" * 8))
            else:
                first = int(source, 16) - described["base"]
                from_memory = bytes(data[first:first + 16])
                left = (described["dims"][0] - int(column)) * SIZES[described["type"]]
                if left >= 16 and not described.get("swizzle", "").endswith("FLIP_8B"):
                    whole = [from_memory[i] == landed[i] for i in range(16)]
                    self.assertTrue(all(whole) or landed[-1] in (0, 0x7F), (column, source, shared))

    def test_prints_64_chunks_unless_all_are_asked_for(self):
        np.save(self.path("data.npy"), np.zeros(20 * 128, np.uint8))
        described = write_json(self.path("map.json"), tensor_map(box=[64, 16], copy={"at": [0, 1], "dst": 256}))
        text = fine("tma", "copy", described, "--data", self.path("data.npy"))
        self.assertIn("copy       box at (0, 1) to shared address 256\n", text)
        self.assertTrue(text.endswith("64 of 128 chunks of 16 B shown: --all prints the rest\n"), text)
        text = fine("tma", "copy", described, "--data", self.path("data.npy"), "--all")
        self.assertNotIn("shown", text)
        self.assertTrue(text.endswith("   15      56         0x870     2288\n"), text[-200:])

    def test_names_the_element_of_a_byte_or_says_that_none_is_there(self):
        # A row of 64 B under a swizzle of 128: its other half is padding, and row 4 has it in front.
        described = write_json(self.path("map.json"), tensor_map(type="u8", dims=[64, 20], strides=[64], box=[64, 8],
                                                                 swizzle="128B", base=4096, copy={"at": [0, 15]}))
        np.save(self.path("data.npy"), np.zeros(20 * 64, np.uint8))
        for byte, said in [(128 + 16, "byte 0 of tile element (0, 1), tensor position (0, 16), global 0x1400"),
                           (4 * 128 + 64 + 5, "byte 0 of tile element (5, 4), tensor position (5, 19), global 0x14c5"),
                           (5 * 128 + 80 + 1, "byte 0 of tile element (1, 5), tensor position (1, 20), outside: filled"),
                           (4 * 128, "no element: outside the window, or padding behind a row shorter than the swizzle"),
                           (1024, "no element: outside the window, or padding behind a row shorter than the swizzle")]:
            text = fine("tma", "copy", described, "--data", self.path("data.npy"), "--byte", byte)
            self.assertEqual(text.splitlines()[-1], f"byte       {byte}: {said}")
            self.assertNotIn("  row  column", text)


class Gather4(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.data = np.random.default_rng(5).integers(0, 0xCD, 20 * 128, np.uint8)
        self.npy, self.out = self.folder.name + "/data.npy", self.folder.name + "/out.npy"
        np.save(self.npy, self.data)

    def gather(self, rows, *options, **members):
        described = tensor_map(base=4096, box=[64, 1], **members)
        path = write_json(self.folder.name + "/map.json", described)
        return described, kvscope("tma", "gather4", path, "--data", self.npy, "--rows=" + ",".join(map(str, rows)),
                                  "--out", self.out, *options)

    def test_brings_four_rows_in_any_order_as_numpy_does(self):
        for members, options in [({"swizzle": "128B", "target": "sm_100"}, ()), ({"target": "sm_100"}, ()),
                                 ({"swizzle": "128B"}, ("--by-loads",)), ({}, ("--by-loads",))]:
            for rows, dst in [((5, 0, 19, 5), 0), ((20, 3, -1, 2), 384)]:
                with self.subTest(rows=rows, dst=dst, **members):
                    described, done = self.gather(rows, "--dst", dst, "--all", *options, **members)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    window = np.concatenate([box_by_hand({**described, "swizzle": "none"}, self.data, [0, row], 0)[0]
                                             for row in rows])
                    expected = np.empty_like(window)
                    places = swizzled(dst + np.arange(512), *MODES[members.get("swizzle", "none")]) - dst
                    expected[places] = window
                    np.testing.assert_array_equal(np.load(self.out), expected)
                    filled = 128 * sum(not 0 <= row < 20 for row in rows)
                    self.assertIn(f"barrier    512 B expected, {filled} B of them filled\nwindow     512 B\n",
                                  done.stdout)
                    landed = re.findall(r"(?m)^ +(\d) +(\d+) +(filled|0x\w+) +(\d+)$", done.stdout)
                    self.assertEqual([int(shared) for *_, shared in landed], list(dst + places[::16]))
                    self.assertEqual([source for *_, source, _ in landed],
                                     [f"0x{4096 + row * 128 + 16 * c:x}" if 0 <= row < 20 else "filled"
                                      for row in rows for c in range(8)])

    def test_is_no_instruction_of_hopper(self):
        _, done = self.gather((1, 2, 3, 4))
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (2, "", "kvscope: sm_90 has no gather4 instruction: use --by-loads, or a map with target "
                                 "sm_100\n"))
        self.assertFalse(os.path.exists(self.out))


class Barrier(unittest.TestCase):
    @staticmethod
    def drive(*operations):
        done = kvscope("tma", "barrier", *operations)
        rows = re.findall(r"(?m)^(\w+(?::-?\d+)?) +(\d+) +(\d+) +(-?\d+) +(go|wait|-) +(go|wait|-)$", done.stdout)
        told = re.findall(r"(?m)^  (\w[\w -]*): ", done.stdout)
        return done, [(name, int(phase), int(pending), int(tx), zero, one)
                      for name, phase, pending, tx, zero, one in rows], told

    def test_goes_on_to_the_next_phase_with_the_last_byte(self):
        done, rows, told = self.drive("expect:1024", "arrive", "complete:512", "complete:512", "wait:0", "arrive")
        self.assertEqual((done.returncode, told), (0, []))
        self.assertEqual(rows, [("init:1", 0, 1, 0, "wait", "go"), ("expect:1024", 0, 1, 1024, "wait", "go"),
                                ("arrive", 0, 0, 1024, "wait", "go"), ("complete:512", 0, 0, 512, "wait", "go"),
                                ("complete:512", 1, 1, 0, "go", "wait"), ("wait:0", 1, 1, 0, "go", "wait"),
                                ("arrive", 2, 1, 0, "wait", "go")])

    def test_names_what_hardware_would_keep_to_itself(self):
        for operations, expected in [
                (["arrive_expect:1024", "complete:512", "wait:0"], ["deadlock"]),
                (["arrive_expect:512", "complete:512", "complete:512"], ["late bytes"]),
                (["arrive:2"], ["pending underflow"]),
                (["arrive", "arrive"], ["unobserved phase"]),
                (["arrive", "wait:0", "arrive", "wait:1", "arrive", "wait:0"], ["two phases behind"]),
                (["wait:1"], ["ahead of the phase"]),
                (["expect:1048575", "expect:1"], ["too many bytes"]), (["init:1"], ["live re-init"]),
                (["--arrivals", 3, "arrive:2", "inval", "init:2", "arrive:2", "wait:0"], [])]:
            with self.subTest(operations=operations):
                done, _, told = self.drive(*operations)
                self.assertEqual(done.stderr, "")
                self.assertEqual(told[:1] if expected else told, expected)
                self.assertEqual(done.returncode, 1 if expected else 0)


# --- swizzles ---------------------------------------------------------------------------------------------------------

class Swizzles(unittest.TestCase):
    def test_a_table_is_the_formula_over_every_chunk(self):
        for name, (bits, base, shift) in [("none", (0, 4, 3)), ("32B", (1, 4, 3)), ("64B", (2, 4, 3)),
                                          ("128B", (3, 4, 3)), ("2,5,2", (2, 5, 2)), ("(1,6,1)", (1, 6, 1)),
                                          ("3,4,4", (3, 4, 4))]:
            for rows, row_bytes, dst in [(8, 128, 0), (16, 64, 0), (5, 256, 512), (9, 48, 128)]:
                with self.subTest(swizzle=name, rows=rows, row_bytes=row_bytes, dst=dst):
                    text = fine("swizzle", "table", name, "--rows", rows, "--row-bytes", row_bytes, "--dst", dst)
                    printed = [[int(x) for x in line.split("|")[1].split()]
                               for line in text.splitlines() if re.match(r" *\d+ \|", line)]
                    places = dst + np.arange(rows)[:, None] * row_bytes + np.arange(row_bytes // 16) * 16
                    np.testing.assert_array_equal(printed, swizzled(places, bits, base, shift) - dst)
                    self.assertIn(f"Swizzle({bits},{base},{shift}) on byte addresses, with a period of "
                                  f"{1 << (bits + base + shift)} B", text)

    @staticmethod
    def cycles(addresses):
        """[accesses, 8 lanes] of 16 bytes on 32 banks: the most different words that a bank is asked for."""
        total = 0
        for lanes in addresses:
            words = {int(a) // 4 + i for a in lanes for i in range(4)}
            total += max(sum(1 for w in words if w % 32 == bank) for bank in range(32))
        return total

    def matrices(self, rows, row_bytes, place):
        """The rows of each 8x8 matrix that ldmatrix reads: 8 rows, 16 bytes of each."""
        return [[place(row + i, byte) for i in range(8)]
                for row in range(0, rows, 8) for byte in range(0, row_bytes, 16)]

    def test_solutions_are_free_and_what_is_not_listed_is_not(self):
        for rows, row_bytes in [(64, 64), (64, 128), (16, 256), (32, 96), (16, 32)]:
            with self.subTest(rows=rows, row_bytes=row_bytes):
                text = fine("swizzle", "solve", "--rows", rows, "--row-bytes", row_bytes)
                plain = self.matrices(rows, row_bytes, lambda r, b: r * row_bytes + b)
                self.assertIn(f"{rows} rows of {row_bytes} B: {self.cycles(plain)} cycles, {len(plain)} without "
                              "conflicts", text)
                listed = {tuple(map(int, m)) for m in re.findall(r"(?m)^  \((\d),(\d),(\d)\)", text)}
                for solution in itertools.product(range(1, 5), range(4, 8), range(1, 8)):
                    if solution[2] < solution[0] or 1 << sum(solution) > rows * row_bytes:
                        continue
                    if rows * row_bytes % (1 << sum(solution)):
                        continue
                    free = self.cycles(self.matrices(
                        rows, row_bytes, lambda r, b: int(swizzled(r * row_bytes + b, *solution)))) == len(plain)
                    self.assertEqual(solution in listed, free, (solution, text))
                paddings = {int(m) for m in re.findall(r"(?m)^  (\d+) B, \d+ B in all", text)}
                free = {p for p in range(0, 129, 16) if self.cycles(
                    self.matrices(rows, row_bytes, lambda r, b: r * (row_bytes + p) + b)) == len(plain)}
                self.assertEqual(paddings, free)

    def test_no_solution_is_the_exit_code_of_a_check_that_failed(self):
        done = kvscope("swizzle", "solve", "--rows", 32, "--row-bytes", 128, "--read", "column", "--max-padding", 0,
                       "--chunk", 128)
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        self.assertIn("  none within the limit\n", done.stdout)

    def test_every_reader_has_a_pattern(self):
        for read, target in [("ldmatrix", "nvidia"), ("mfma32", "gfx950"), ("mfma32", "gfx942"), ("mfma16", "gfx950"),
                             ("row", "nvidia"), ("column", "nvidia"), ("column", "gfx950")]:
            with self.subTest(read=read, target=target):
                done = kvscope("swizzle", "solve", "--rows", 64, "--row-bytes", 256, "--read", read, "--target", target)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                self.assertRegex(done.stdout, r"64 rows of 256 B: \d+ cycles, \d+ without conflicts")


# --- fragments --------------------------------------------------------------------------------------------------------

def mma_tables():
    """{name: {(row, column): "T<lane>.<register>"}} by the formulas of the PTX ISA, mma.m16n8k16 of 16-bit types:

    A: row = groupID for a0 a1 a4 a5, else groupID + 8; col = threadID_in_group * 2 + (i & 1), + 8 from a4 on
    B: row = threadID_in_group * 2 + (i & 1), + 8 from b2 on; col = groupID
    C: row = groupID for c0 c1, else groupID + 8; col = threadID_in_group * 2 + (i & 1)
    """
    a, b, c = {}, {}, {}
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(8):
            row = group if i < 2 or 4 <= i < 6 else group + 8
            a[row, thread * 2 + (i & 1) + (8 if i >= 4 else 0)] = f"T{lane}.{i // 2}"
        for i in range(4):
            b[thread * 2 + (i & 1) + (8 if i >= 2 else 0), group] = f"T{lane}.{i // 2}"
            c[group + (8 if i >= 2 else 0), thread * 2 + (i & 1)] = f"T{lane}.{i}"
    return {"mma.m16n8k16.a": a, "mma.m16n8k16.b": b, "mma.m16n8k16.c": c}


class Fragments(unittest.TestCase):
    @staticmethod
    def cells(text):
        """{(row, column): cell} of a printed table."""
        lines = [re.split(r"  +", line) for line in text.splitlines() if "T" in line and re.match(r"\w+ \d+  ", line)]
        return {(int(line[0].split()[1]), column): cell for line in lines for column, cell in enumerate(line[1:])}

    def test_tables_of_m16n8k16_are_those_of_the_isa(self):
        for name, expected in mma_tables().items():
            with self.subTest(name=name):
                self.assertEqual(self.cells(fine("fragment", "table", name)), expected)

    def test_a_part_of_a_table_is_a_part(self):
        whole = mma_tables()["mma.m16n8k16.a"]
        text = fine("fragment", "table", "mma.m16n8k16.a", "--first-row", 7, "--rows", 3, "--first-column", 5,
                    "--columns", 4)
        self.assertEqual(self.cells(text), {(r, c): whole[r, 5 + c] for r in (7, 8, 9) for c in range(4)})
        self.assertIn("k 5", text)

    def test_markdown_holds_the_same_cells(self):
        text = fine("fragment", "table", "mma.m16n8k16.c", "--markdown")
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "T" in line[:14]]
        expected = mma_tables()["mma.m16n8k16.c"]
        self.assertEqual([row[1:] for row in rows], [[expected[r, c] for c in range(8)] for r in range(16)])

    def test_every_listed_fragment_has_a_table_of_its_size(self):
        listed = re.findall(r"(?m)^(\S+) +(\d+) x (\d+) +(\d+) lanes x +(\d+) elements", fine("fragment", "list"))
        self.assertGreater(len(listed), 30)
        self.assertEqual(len({name for name, *_ in listed}), len(listed))
        for name, rows, columns, lanes, elements in listed:
            with self.subTest(name=name):
                cells = self.cells(fine("fragment", "table", name))
                self.assertEqual(len(cells), int(rows) * int(columns))
                self.assertEqual(len(cells), int(lanes) * int(elements))
                self.assertEqual({int(cell[1:].split(".")[0]) for cell in cells.values()}, set(range(int(lanes))))


# --- one tile ---------------------------------------------------------------------------------------------------------

def tile_scenario(dtype, page, **tile):
    return {"kvscope_scenario": 1, "name": "tile",
            "model": {"preset": "tiny", "layers": 2, "query_heads": 4, "kv_heads": 2, "head_size": 128,
                      "value_size": 128},
            "cache": {"page_size": page, "blocks": 512 // page, "dtype": dtype, "prefix_sharing": True},
            "requests": {"list": [{"prompt_tokens": 70, "generate_tokens": 3},
                                  {"prompt_tokens": 150, "generate_tokens": 3}]},
            "tile": {"BN": 64, "BK": 128, "swizzle": "128B", **tile}, "focus": {"layer": 1, "head": 1}}


class Tile:
    """The tile's bytes, taken from the golden bundle of the same scenario by the lookup table alone."""
    BN, D, HEAD = 64, 128, 1

    def __init__(self, folder, scenario, kv, number):
        self.path = write_json(os.path.join(folder, "s.json"), scenario)
        bundle = os.path.join(folder, "golden.safetensors")
        fine("golden", self.path, "--out", bundle)
        tensors, _ = read_safetensors(bundle)
        self.size = {"BF16": 2, "F8_E4M3": 1}[tensors["blocks"][0]]
        shape = tensors["blocks"][1]
        blocks = np.frombuffer(tensors["blocks"][2], np.uint8).reshape(*shape[:-1], shape[-1] * self.size)
        table = np.frombuffer(tensors["lookup_table"][2], np.uint32).reshape(tensors["lookup_table"][1])
        self.page, self.first = shape[3], number * self.BN
        self.tokens = min(self.BN, 151 - self.first)
        slot = 0 if kv == "k" else 1
        pages = [blocks[table[1, (self.first + row) // self.page], slot, 0, :, self.HEAD]
                 for row in range(0, self.BN, min(self.page, self.BN)) if row < self.tokens]
        offset = self.first % self.page
        rows = [page[offset:offset + min(self.page, self.BN)] for page in pages]
        self.rows = np.concatenate(rows)  # [row, byte]: whole pages, so past the last token too

    def stage(self, folder, kv, number, path):
        image, registers = os.path.join(folder, "image.npy"), os.path.join(folder, "registers.npy")
        text = fine("stage", self.path, "--seq", 1, "--tile", number, "--kv", kv, "--path", path, "--out", image,
                    "--registers", registers)
        return text, np.load(image), np.load(registers)


class Stage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    @staticmethod
    def tma_place(tile, row, column):
        """Shared byte of an element: chunks of 128 B, 64 rows each, then the 128B swizzle."""
        width = 128 // tile.size
        linear = (column // width * tile.BN + row) * 128 + column % width * tile.size
        return swizzled(linear, 3, 4, 3)

    def expected_image(self, tile, kv):
        rows, columns = np.meshgrid(np.arange(tile.BN), np.arange(tile.D), indexing="ij")
        image = np.full(tile.BN * tile.D * tile.size, POISON, np.uint8)
        for byte in range(tile.size):
            places = self.tma_place(tile, rows, columns) + byte
            if kv == "v":
                image[places] = 0  # pages past the last are filled
            copied = len(tile.rows)
            image[places[:copied]] = tile.rows[:, byte::tile.size]
        return image

    @staticmethod
    def elements_of_register(kv, size, lane, register):
        """(row, column) of each element: ldmatrix.x4 over pieces of 16 keys x 32 B (V of 8 bits: 32 keys x 16 B)."""
        group, thread, piece, r = lane // 4, lane % 4, register // 4, register % 4
        if kv == "k":  # B of mma.sync: n is a key, k a depth
            depth = 32 // size
            across = 128 // depth
            key = piece // across * 16 + 8 * (r // 2) + group
            first = piece % across * depth + depth // 2 * (r % 2) + thread * (4 // size)
            return [(key, first + e) for e in range(4 // size)]
        if size == 2:  # k is a key, n a depth
            key = piece // 8 * 16 + 8 * (r % 2) + 2 * thread
            return [(key + e, piece % 8 * 16 + 8 * (r // 2) + group) for e in range(2)]
        # V of 8 bits: rows 2t, 2t + 1 of two matrices one below the other; even depths in r0 r1, odd ones in r2 r3
        keys = [2 * thread, 2 * thread + 1, 2 * thread + 8, 2 * thread + 9]
        return [(piece // 8 * 32 + 16 * (r % 2) + key, piece % 8 * 16 + 2 * group + r // 2) for key in keys]

    def test_images_and_registers_by_tma_are_numpys(self):
        for dtype, page, kv, number in [("bf16", 16, "k", 1), ("bf16", 16, "k", 2), ("bf16", 16, "v", 2),
                                        ("bf16", 64, "v", 2), ("bf16", 64, "k", 0), ("e4m3", 64, "k", 2),
                                        ("e4m3", 16, "v", 2), ("e4m3", 128, "v", 1), ("e4m3", 128, "k", 1)]:
            with self.subTest(dtype=dtype, page=page, kv=kv, tile=number):
                tile = Tile(self.folder.name, tile_scenario(dtype, page), kv, number)
                text, image, registers = tile.stage(self.folder.name, kv, number, "tma")
                expected = self.expected_image(tile, kv)
                np.testing.assert_array_equal(image, expected)
                poison = (0 if kv == "v" else (tile.BN - len(tile.rows)) * tile.D * tile.size)
                self.assertIn(f"staged     by TMA: {len(expected)} bytes of shared memory, {poison} of them not "
                              "written by any copy\n", text)
                self.assertIn(f"{'K' if kv == 'k' else 'V'} of sequence 1, tokens {tile.first} to "
                              f"{tile.first + tile.tokens - 1}, layer 1, KV head 1, step 1\n", text)
                self.assertEqual(registers.shape, (1, 32, len(expected) // 128))
                held = registers.astype("<u4").view(np.uint8).reshape(32, -1, 4)
                for lane, register in itertools.product(range(32), range(registers.shape[2])):
                    places = self.elements_of_register(kv, tile.size, lane, register)
                    value = b"".join(bytes(image[p:p + tile.size])
                                     for p in (int(self.tma_place(tile, *place)) for place in places))
                    self.assertEqual(bytes(held[lane, register]), value, (lane, register))

    def test_images_and_registers_through_lds_are_numpys(self):
        # K swizzled by (3,0,4) on 16-byte vectors, blocks of 64-byte rows; V as it is.
        for dtype, page, kv, number in [("bf16", 64, "k", 0), ("bf16", 64, "k", 2), ("bf16", 128, "v", 2),
                                        ("e4m3", 64, "k", 2), ("e4m3", 64, "v", 1)]:
            with self.subTest(dtype=dtype, page=page, kv=kv, tile=number):
                tile = Tile(self.folder.name, tile_scenario(dtype, page), kv, number)
                _, image, registers = tile.stage(self.folder.name, kv, number, "lds")
                stage_bytes = tile.BN * tile.D * tile.size
                self.assertEqual(len(image), 2 * stage_bytes)
                np.testing.assert_array_equal(image[stage_bytes:], POISON)
                data = np.zeros((tile.BN, tile.D * tile.size), np.uint8)
                data[:tile.tokens] = tile.rows[:tile.tokens]  # zeros past the last token
                width = 64 // tile.size

                def place(row, column):
                    linear = (column // width * tile.BN + row) * 64 + column % width * tile.size
                    vector = linear // 16
                    return (vector ^ (vector // 16 % 8 if kv == "k" else 0)) * 16 + linear % 16

                for row, column in itertools.product(range(tile.BN), range(tile.D)):
                    at = place(row, column)
                    self.assertEqual(bytes(image[at:at + tile.size]),
                                     bytes(data[row, column * tile.size:(column + 1) * tile.size]), (row, column))
                self.check_wave_registers(tile, kv, data, registers)

    def check_wave_registers(self, tile, kv, data, registers):
        """Every element once in each wave's registers; K of 16 bits at the places of the 32x32x16 instruction."""
        self.assertEqual(registers.shape, (4, 64, tile.BN * tile.D * tile.size // 256))
        whole = np.sort(data.reshape(tile.BN, tile.D, tile.size).reshape(-1, tile.size).view(f"<u{tile.size}").ravel())
        for wave in range(4):
            held = registers[wave].astype("<u4").view(f"<u{tile.size}")
            np.testing.assert_array_equal(np.sort(held.ravel()), whole)
            if kv == "k" and tile.size == 2:
                # [lane, strip, step, MMA across the keys, element]: lane % 32 is the key, 8 depths from each half
                tiles = held.reshape(64, 4, 2, 2, 8)
                for lane, strip, step, i in itertools.product(range(64), range(4), range(2), range(2)):
                    depth = strip * 32 + step * 16 + lane // 32 * 8
                    expected = data[i * 32 + lane % 32, 2 * depth:2 * depth + 16].view("<u2")
                    np.testing.assert_array_equal(tiles[lane, strip, step, i], expected)

    def test_a_tile_that_no_fragment_reads_still_has_an_image(self):
        path = write_json(os.path.join(self.folder.name, "s.json"), tile_scenario("f32", 64))
        text = fine("stage", path, "--tile", 0, "--out", os.path.join(self.folder.name, "image.npy"))
        self.assertIn("registers  none: mma.sync reads elements of 8 and 16 bits, and these have 32: a kernel converts "
                      "them\n", text)
        self.assertEqual(len(np.load(os.path.join(self.folder.name, "image.npy"))), 64 * 128 * 4)

    def test_a_focus_that_the_run_does_not_reach_leaves_no_trace(self):
        for focus, fault in [
                ({"sequence": 7}, "$.focus.sequence: 7 is not in the batch of step 1, which holds 0, 1: choose one of "
                                  "these, or -1 for the longest"),
                ({"tile": 3}, "$.focus.tile: 3 is outside [0, 3): sequence 1 has 151 tokens at step 1, 64 a tile")]:
            scenario = tile_scenario("bf16", 64)
            scenario["focus"].update(focus, staging="copies")
            path, out = write_json(os.path.join(self.folder.name, "s.json"), scenario), self.folder.name + "/out"
            done = kvscope("run", path, "--out", out, "--trace", "full")
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", f"kvscope: scenario 'tile': {fault}\n"))
            self.assertFalse(os.path.exists(out))  # made for this run, and empty: gone again
            os.mkdir(out)
            self.assertEqual(kvscope("run", path, "--out", os.path.join(out, "a", "b/"), "--trace",
                                     "full").returncode, 2)
            self.assertEqual(os.listdir(out), [])
            self.assertEqual(kvscope("run", path, "--out", out, "--trace", "full").returncode, 2)
            os.rmdir(out)  # a folder that was there stays

    def test_the_focus_of_the_scenario_is_the_default(self):
        scenario = tile_scenario("bf16", 64)
        scenario["focus"] = {"layer": 1, "head": 1, "sequence": 0, "tile": 1, "step": 1}
        path = write_json(os.path.join(self.folder.name, "s.json"), scenario)
        self.assertIn("K of sequence 0, tokens 64 to 70, layer 1, KV head 1, step 1\n", fine("stage", path))
        self.assertIn("K of sequence 1, tokens 0 to 63, layer 0, KV head 0, step 0\n",
                      fine("stage", path, "--seq", 1, "--tile", 0, "--layer", 0, "--head", 0, "--step", 0))


# --- KVBuffer's tables ------------------------------------------------------------------------------------------------

class LdsTables(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = write_json(os.path.join(self.folder.name, "s.json"), tile_scenario("bf16", 64))

    def table(self, what, **options):
        text = fine("lds", "table", self.path, "--what", what,
                    *(part for name, value in options.items() for part in ("--" + name.replace("_", "-"), value)))
        rows = [line.split() for line in text.splitlines() if re.match(r" *\d+ +\d+ ", line)]
        return text, rows

    def test_constants_are_those_of_the_shipped_kernels(self):
        text = fine("lds", "table", self.path)
        self.assertTrue(text.startswith("KVBuffer (K), bf16, MMA 32x32x16, swizzle (3,0,4)\n"
                                        "16-byte vectors of a row r, column c: c0^=r2, c1^=r3, r0^=r4\n\n"), text)
        numbers = {line[:20].strip(): int(line[20:29]) for line in text.splitlines()[3:]}
        expected = {"BN": 64, "WN": 64, "BK": 32, "depth": 128, "smem_depth": 128, "bk_smem": 32, "num_threads": 256,
                    "num_mmas": 2, "num_k_mmas2": 2, "num_k_tiles": 4, "input_frag_size": 8, "simd_width": 8,
                    "num_repeats": 4, "smem_cols": 128, "smem_stage_size": 8192, "stage bytes": 16384,
                    "K and V bytes": 65536, "blocks on gfx942": 1, "blocks on gfx950": 2, "mma_layout rows": 16, "mma_layout columns": 8, "vm_instrs_per_load": 4}
        self.assertEqual(numbers, expected)

    def test_constants_of_v_and_of_an_array_without_a_swizzle(self):
        # The shipped kernels permute K alone; both tables count the stages of K and of V.
        v, plain = fine("lds", "table", self.path, "--kv", "v"), fine("lds", "table", gallery("swizzle_off"))
        self.assertTrue(v.startswith("KVBuffer (V), bf16, MMA 32x32x16, swizzle none\n\nBN "), v)
        self.assertTrue(plain.startswith("KVBuffer (K), bf16, MMA 32x32x16, swizzle none\n\nBN "), plain)
        self.assertRegex(v, r"\nK and V bytes +65536 ")

    def test_a_swizzle_that_is_rejected_is_not_described(self):
        done = kvscope("lds", "table", gallery("lds_swizzle_reach"))
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertTrue(done.stdout.startswith("KVBuffer (K), bf16, MMA 16x16x32, swizzle (3,0,4)\n\nBN "), done.stdout)
        self.assertTrue(done.stdout.endswith(
            "\nrejected    swizzle closure: swizzle: (3,0,4) repeats after 128 vectors, and a reader's 16 rows of 64 B are "
            "64: use a shorter one, with a positive shift\n"))

    def test_the_rope_part_of_a_latent_cache_is_staged_as_k_alone(self):
        text = fine("lds", "table", gallery("mla_rope"))
        stage, both = (int(re.search(rf"^{name} +(\d+) ", text, re.M)[1]) for name in ("stage bytes", "K and V bytes"))
        self.assertEqual(both, 2 * stage)  # two stages of K
        for what in ("constants", "copy", "registers"):
            done = kvscope("lds", "table", gallery("mla_rope"), "--kv", "v", "--what", what)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", "kvscope: command line: --kv: V has no columns in this tile, whose columns begin "
                              "past the values of the latent cache: pass --kv k\n"))

    def test_stages_that_no_compute_unit_holds_are_0_blocks_and_the_limit(self):
        scenario = tile_scenario("bf16", 64)
        scenario["cache"]["page_size"], scenario["lds"] = 128, {"BN": 128}
        text = fine("lds", "table", write_json(self.path, scenario))
        # Two stages of K and of V, 128 keys of 128 bf16.
        self.assertIn(f"K and V bytes          {2 * 2 * 128 * 128 * 2}   ", text)
        self.assertIn("\nblocks on gfx942            0   131072 B, but a block has at most 65536 B: use fewer stages, a "
                      "smaller tile or a narrower type (gfx950 takes up to 163840 B)\n", text)
        self.assertIn("\nblocks on gfx950            1   ", text)

    def test_options_stand_in_place_of_the_scenarios(self):
        scenario = tile_scenario("bf16", 64)
        scenario["lds"] = {"smem_depth": 160, "cache_depth": 128, "head_dim_offset": 32, "reg_chunk_depth": 32}
        by_scenario = fine("lds", "table", write_json(self.path, scenario))
        write_json(self.path, tile_scenario("bf16", 64))
        by_option = fine("lds", "table", self.path, "--smem-depth", 160, "--cache-depth", 128, "--head-dim-offset", 32,
                         "--reg-chunk-depth", 32)
        self.assertEqual(by_scenario, by_option)
        numbers = {line[:20].strip(): int(line[20:29]) for line in by_option.splitlines()[3:]}
        self.assertEqual((numbers["depth"], numbers["smem_depth"], numbers["num_repeats"]), (96, 160, 5))
        self.assertEqual(numbers["mma_layout rows"], 4)  # one strip: 2 MMAs x 2 steps
        done = kvscope("lds", "table", self.path, "--full-kv", "false")  # 2 row groups for 4 waves
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("smem_cols                  32", done.stdout)
        self.assertIn("\nrejected    unguarded blocks: num_threads: 4 waves share 2 row groups unevenly", done.stdout)

    def test_registers_loaded_in_k_steps_are_dumped_k_step_by_k_step(self):
        whole, parts = (os.path.join(self.folder.name, name) for name in ("whole.npy", "parts.npy"))
        fine("stage", self.path, "--path", "lds", "--registers", whole)
        text = fine("stage", self.path, "--path", "lds", "--reg-chunk-depth", 64, "--registers", parts)
        self.assertIn("registers  4 waves x 64 lanes x 32 32-bit registers, in 2 consecutive k-steps\n", text)
        self.assertIn(f"written    {parts}: uint32 [k-steps, waves, lanes, registers]\n", text)
        np.testing.assert_array_equal(np.load(whole), np.concatenate(list(np.load(parts)), axis=-1))
        scenario = tile_scenario("bf16", 64)
        scenario["lds"] = {"reg_chunk_depth": 64}
        found = fine("explain", write_json(self.path, scenario), "--seq", 1, "--path", "lds", "--lane", 5, "--register", 4,
                     "--k-step", 1)
        self.assertTrue(found.startswith("register 4 of lane 5 holds K of token 37, dim 64; K of token 37, dim 65\n"),
                        found)

    def test_a_configuration_that_breaks_rules_is_a_check_that_failed(self):
        scenario = tile_scenario("bf16", 64)
        scenario["lds"] = {"BN": 48}
        done = kvscope("lds", "table", write_json(self.path, scenario))
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("\nrejected    tile rows: BN: 48 is not a multiple of 32, the keys of a copied sub-tile: use 64",
                      done.stdout)

    def test_copies_of_all_waves_fill_the_stage_once_from_the_permuted_source(self):
        for valid in (64, 24, 0):
            landed = {}
            for wave in range(4):
                _, rows = self.table("copy", wave=wave, valid_rows=valid)
                self.assertEqual(len(rows), 2 * 2 * 64)
                for n, (t, m, lane, byte, key, depth, source, *zeros) in enumerate(rows):
                    self.assertEqual((int(t), int(m), int(lane)), (n // 128, n // 64 % 2, n % 64))
                    landed[int(byte)] = (int(key), int(depth))
                    self.assertEqual(int(source), (int(key) * 256 + int(depth)) * 2)
                    self.assertEqual(bool(zeros), int(key) >= valid)
            self.assertEqual(sorted(landed), list(range(0, 16384, 16)))
            for byte, (key, depth) in landed.items():
                vector = (depth // 32 * 64 + key) * 4 + depth % 32 // 8
                self.assertEqual(byte, (vector ^ vector // 16 % 8) * 16)

    def test_registers_hold_what_the_instruction_wants(self):
        for strip in range(4):
            _, rows = self.table("registers", wave=2, strip=strip)
            self.assertEqual(len(rows), 2 * 2 * 64)
            for k, i, row, lane, key, depth, byte in (map(int, row) for row in rows):
                self.assertEqual(row, strip * 4 + k * 2 + i)
                self.assertEqual((key, depth), (i * 32 + lane % 32, strip * 32 + k * 16 + lane // 32 * 8))
                vector = (strip * 64 + key) * 4 + depth % 32 // 8
                self.assertEqual(byte, (vector ^ vector // 16 % 8) * 16)


class LdsSchedule(unittest.TestCase):
    """The printed loop against a counter kept here, and what carrying it out finds when a step is missing."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.scenario = tile_scenario("bf16", 64)
        self.path = write_json(os.path.join(self.folder.name, "s.json"), self.scenario)

    def steps(self, *options):
        done = kvscope("lds", "schedule", self.path, *options)
        self.assertEqual(done.stderr, "")
        rows = re.findall(r"(?m)^ *(\d+) +(\d+)  (\S.*?) +(left out|\d+(?: -> \d+)?)$", done.stdout)
        self.assertEqual([int(n) for n, *_ in rows], list(range(len(rows))))
        return done, [(int(tile), what, under_way) for _, tile, what, under_way in rows]

    def test_the_counter_is_that_of_the_copies_and_waits(self):
        for options in [(), ("--tiles", 1), ("--tiles", 8), ("--masked", "0,2"), ("--loop", "decode"),
                        ("--without", 9), ("--without", 6)]:
            with self.subTest(options=options):
                _, steps = self.steps(*options)
                now = 0
                for _, what, under_way in steps:
                    if under_way == "left out":
                        continue
                    before = now
                    now += 4 if what.startswith("issue") else 0
                    if wait := re.match(r"wait vmcnt\((\d+)\)", what):
                        now = min(now, int(wait[1]))
                    self.assertEqual(under_way, f"{before}" if before == now else f"{before} -> {now}")

    def test_each_tile_is_brought_once_and_read_once_unless_it_is_masked(self):
        for loop in ("prefill", "decode"):
            done, steps = self.steps("--tiles", 5, "--loop", loop)
            self.assertEqual(done.returncode, 0)
            self.assertTrue(done.stdout.endswith(
                "\nchecked    12 orders of waves and copies: every read got its own tile\n"), done.stdout)
            for verb in ("issue", "read"):
                for operand in "KV":
                    self.assertEqual([tile for tile, what, _ in steps if what.startswith(f"{verb} {operand}")],
                                     [0, 1, 2, 3, 4])
        _, steps = self.steps("--tiles", 3, "--masked", 1)
        self.assertEqual([tile for tile, what, _ in steps if what.startswith("read K")], [0, 2])

    def test_a_prefill_without_a_wait_fails_and_says_who_read_what(self):
        _, steps = self.steps()
        waits = [n for n, (_, what, _) in enumerate(steps) if what.startswith("wait")]
        self.assertEqual(waits, [2, 9, 13, 20, 24])
        for n in waits:
            done, without = self.steps("--without", n)
            self.assertEqual(done.returncode, 1)
            self.assertEqual([m for m, (*_, under_way) in enumerate(without) if under_way == "left out"], [n])
            failure = re.search(r"fails      in \d+ of 12 orders of waves and copies; the first: copies land late, .*:\n"
                                r" +step (\d+) \(tile (\d): read ([KV]) from stage \d\): wave \d reads byte 0x\w+ "
                                r"before copy \d+ of wave \d has written it", done.stdout)
            # The step that failed is one of the table, the first read behind the wait.
            tile, what, _ = without[int(failure[1])]
            self.assertEqual(int(failure[1]), next(m for m in range(n, len(steps)) if steps[m][1].startswith("read")))
            self.assertEqual((tile, what[:6]), (int(failure[2]), "read " + failure[3]))

    def test_the_older_count_races_where_waves_have_unlike_shares(self):
        self.scenario["lds"] = {**self.scenario.get("lds", {}), "threads": 384}
        write_json(self.path, self.scenario)
        done, _ = self.steps("--wave", 5)
        self.assertEqual(done.returncode, 0)
        self.assertIn("Wave 5 issues 2 copies per load of K and 2 per load of V; its waits assume 0 and 0\n", done.stdout)
        done, _ = self.steps("--wave", 5, "--count", "seed")
        self.assertEqual(done.returncode, 1)
        self.assertIn("its waits assume 4 and 4\n", done.stdout)
        self.assertIn("before copy 24 of wave 4 has written it (K, tile at token 0, stage 0)\n", done.stdout)


# --- there and back ---------------------------------------------------------------------------------------------------

class ThereAndBack(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_places_that_explain_prints_name_the_token_again(self):
        asked = 0
        for dtype, page in [("bf16", 64), ("e4m3", 64), ("bf16", 16), ("f32", 64)]:
            path = write_json(os.path.join(self.folder.name, "s.json"), tile_scenario(dtype, page, BK=64))
            for n, (token, dim, kv) in enumerate([(0, 0, "k"), (1, 127, "v"), (63, 64, "k"), (64, 63, "v"),
                                                  (100, 101, "k"), (127, 5, "v"), (128, 127, "k"), (151, 77, "k")]):
                place = ["--seq", 1, "--layer", n % 2, "--head", n // 2 % 2, "--kv", kv, "--dim", dim]
                answer = json.loads(fine("explain", path, *place, "--token", token, "--json"))
                links = {link["name"]: link for link in answer["links"]}
                element = f"{kv.upper()} of token {token}, dim {dim}"
                backs = []
                for staging, shared, register in [("tma", "swizzle", "register"), ("lds", "LDS byte", "wave register")]:
                    at = ["--path", staging, "--tile", token // 64]
                    if links.get(shared, {"result": "none"})["result"] != "none":
                        byte = re.search(r"\d+$", links[shared]["result"]).group()
                        backs.append(([*at, "--shared-address", byte], f"shared byte {byte} holds {element}\n"))
                    found = re.match(r"lane (\d+), register (\d+),", links.get(register, {"result": ""})["result"])
                    if found and token < 128:  # the last tile's registers hold rows that are nobody's, too
                        back = [*at, "--lane", found[1], "--register", found[2]]
                        if staging == "lds":
                            wave = re.search(r"in waves? (\d+)", links[register]["remark"])[1]
                            back += ["--wave", wave]
                        backs.append((back, None))
                self.assertGreaterEqual(len(backs), 1)
                for back, said in backs:
                    with self.subTest(dtype=dtype, page=page, token=token, dim=dim, kv=kv, back=back):
                        text = fine("explain", path, *place, *back)
                        first = text.splitlines()[0] + "\n"
                        if said is not None:
                            self.assertEqual(first, said)
                        else:
                            held = re.search(r"^register \d+ of lane \d+ holds (.*)$", first)[1].split("; ")
                            self.assertEqual(len(held), {"bf16": 2, "e4m3": 4}[dtype])
                            self.assertIn(element, held)
                        self.assertIn(f" of sequence 1, token {token if said else ''}", text)
                        asked += 1
        self.assertGreater(asked, 60)

    def test_the_way_back_prints_the_links_of_the_way_there(self):
        path = write_json(os.path.join(self.folder.name, "s.json"), tile_scenario("bf16", 64))
        there = fine("explain", path, "--seq", 1, "--token", 100, "--dim", 3, "--layer", 1)
        links = json.loads(fine("explain", path, "--seq", 1, "--token", 100, "--dim", 3, "--layer", 1, "--json"))
        byte = next(link["result"] for link in links["links"] if link["name"] == "swizzle").split()[-1]
        back = ["explain", path, "--seq", 1, "--layer", 1, "--tile", 1, "--shared-address", byte]
        self.assertEqual(fine(*back), f"shared byte {byte} holds K of token 100, dim 3\n\n" + there)
        self.assertEqual(json.loads(fine(*back, "--json")), links)


if __name__ == "__main__":
    program.main()
