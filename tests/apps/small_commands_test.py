#!/usr/bin/python3
"""layout, dtype, completion and what every command has in common, from outside.

    small_commands_test.py --kvscope PROGRAM
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

KVSCOPE = ""


def kvscope(*arguments, cwd=None):
    return subprocess.run([KVSCOPE, *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


class Common(unittest.TestCase):
    def test_prints_its_version_and_ends_fine(self):
        done = kvscope("--version")
        self.assertRegex(done.stdout, r"^kvscope \d+\.\d+\.\d+ \(.*commit.*\)\n$")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_names_the_help_page_when_the_line_cannot_be_parsed(self):
        for line, fault in [(["layout", "(2,2)", "--jsn"],
                             "'--jsn' is not an option of 'kvscope layout': did you mean --json? "
                             "See 'kvscope layout --help'"),
                            (["completion", "csh"],
                             "SHELL: 'csh' is not a valid value: did you mean \"zsh\"? See 'kvscope completion --help'")]:
            with self.subTest(line=line):
                done = kvscope(*line)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr, f"kvscope: command line: {fault}\n")

    def test_offers_the_options_that_a_mistyped_one_may_stand_for(self):
        for line, fault in [
                # --out is missing too, but its absence is not the mistake.
                (["golden", "--inptu=a.npz"], "'--inptu' is not an option of 'kvscope golden': did you mean --input?"),
                # The word is part of one name or of three, and close to none.
                (["convert", "a.npz", "--dtype", "bf16", "--from", "nhd", "--to", "hnd", "--out", "b.npz"],
                 "'--dtype' is not an option of 'kvscope convert': did you mean --cache-dtype?"),
                (["golden", "--input", "a.npz", "--dtype", "bf16", "--out", "b.npz"],
                 "'--dtype' is not an option of 'kvscope golden': did you mean --candidate-dtype, --cache-dtype or --query-dtype?"),
                # The values behind an unknown option are not faults of their own; nor is an option of the program itself.
                (["ptx", "run", "k.ptx", "--args", "u32[64]", "x"],
                 "'--args' is not an option of 'kvscope ptx run': did you mean --arg?"),
                (["--jsn", "run", "s.json"], "'--jsn' is not an option of 'kvscope'"),
                (["run", "s.json", "--zzzzzz"], "'--zzzzzz' is not an option of 'kvscope run'"),
                (["run", "a.json", "b.json"], "'kvscope run' takes no further argument 'b.json'")]:
            with self.subTest(line=line):
                done = kvscope(*line)
                of = fault.split("'")[3] if "not an option" in fault else "kvscope run"
                end = f" See '{of} --help'\n" if fault.endswith("?") else f": see '{of} --help'\n"
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr, f"kvscope: command line: {fault}{end}")

    def test_a_command_of_commands_alone_prints_its_help_page_and_fails(self):
        for line in ([], ["trace"], ["scenario"], ["tma"], ["swizzle"], ["lds"], ["fragment"], ["ptx"], ["layout"]):
            with self.subTest(line=line):
                done = kvscope(*line)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr, kvscope(*line, "--help").stdout)

    def test_says_so_when_standard_output_is_full(self):
        # Without the check a full disk leaves an empty file and exit code 0.
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([KVSCOPE, "layout", "(8,4)"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "kvscope: standard output could not be written: is the disk full?\n"))


class Layout(unittest.TestCase):
    def test_draws_a_matrix_with_the_first_mode_downwards(self):
        # 2 x 3 and unequal strides: a transposed table would print 0 3 instead of 0 10.
        done = kvscope("layout", "(2,3):(10,3)")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout,
                         "layout     (2,3):(10,3)\nsize       6\ncosize     17\nrank       2\ndepth      1\n"
                         "injective  yes\n\nr\\c |  0  1  2\n----+---------\n  0 |  0  3  6\n  1 | 10 13 16\n")

    def test_lists_coordinates_leftmost_fastest_when_it_is_no_matrix(self):
        done = kvscope("layout", "((2,2),1,2):((4,1),0,2)")
        self.assertEqual([line.split(None, 1)[1] for line in done.stdout.splitlines()[7:]],
                         ["((0,0),0,0) -> 0", "((1,0),0,0) -> 4", "((0,1),0,0) -> 1", "((1,1),0,0) -> 5",
                          "((0,0),0,1) -> 2", "((1,0),0,1) -> 6", "((0,1),0,1) -> 3", "((1,1),0,1) -> 7"])

    def test_draws_a_swizzled_matrix(self):
        # Bits 2 and 3 of an offset are added to bits 0 and 1 without a carry.
        rows = kvscope("layout", "Sw<2,0,2> o (4,4):(4,1)").stdout.splitlines()[9:]
        self.assertEqual([row.split("|")[1].split() for row in rows],
                         [[str((4 * r + c) ^ r) for c in range(4)] for r in range(4)])

    def test_lists_a_matrix_wider_than_64_columns(self):
        self.assertIn("r\\c", kvscope("layout", "(2,64):(64,1)").stdout)
        rows = kvscope("layout", "(2,65):(65,1)").stdout.splitlines()[7:]
        self.assertEqual([row.split() for row in rows],
                         [[str(i), f"({i % 2},{i // 2})", "->", str(i % 2 * 65 + i // 2)] for i in range(130)])

    def test_a_word_is_no_expression(self):
        for word, fault in [
                ("nhd", "'nhd' is the layout of a cache: 'kvscope layout show nhd' prints it"),
                ("shwo", "'shwo' is no layout expression such as '(8,4):(4,1)', and no command of 'kvscope layout': did you "
                 "mean \"show\"?"),
                ("my_matrix", "'my_matrix' is no layout expression such as '(8,4):(4,1)', and no command of 'kvscope layout': "
                 "these are list, show, detect, diff")]:
            done = kvscope("layout", word)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"kvscope: command line: EXPR: {fault}\n"))

    def test_says_when_two_coordinates_share_an_offset(self):
        self.assertIn("injective  no: two coordinates share an offset\n", kvscope("layout", "(4,4):(1,3)").stdout)

    def test_leaves_a_large_table_out_unless_asked(self):
        self.assertTrue(
            kvscope("layout", "(33,32)").stdout.endswith("1056 coordinates, table left out: --all prints it\n"))
        self.assertEqual(len(kvscope("layout", "(33,32)", "--all").stdout.splitlines()), 7 + 2 + 33)
        self.assertEqual(len(kvscope("layout", "(32,32)").stdout.splitlines()), 7 + 2 + 32)

    def test_gives_the_same_numbers_as_json(self):
        # The swizzle sends column 0 of row r to chunk r: without it the offsets would be multiples of 64.
        out = json.loads(kvscope("layout", "Sw<3,3,3> o (8,64):(64,1)", "--json").stdout)
        self.assertEqual(out["offsets"][:8], [0, 72, 144, 216, 288, 360, 432, 504])
        self.assertEqual((out["size"], out["cosize"], out["rank"], out["depth"], out["injective"]),
                         (512, 512, 2, 1, True))

    def test_refuses_to_list_more_than_a_million_coordinates(self):
        for option in ["--json", "--all"]:
            done = kvscope("layout", "(1001,1000)", option)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr,
                             "kvscope: command line: EXPR: 1001000 coordinates are more than the 1000000 that are"
                             " listed: leave out --all and --json, or ask for a tile of it\n")

    def test_points_at_the_character_where_the_expression_stops_making_sense(self):
        done = kvscope("layout", "(8,4):(4")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr,
                         "kvscope: layout \"(8,4):(4\": column 9: expected ',' or ')'\n  (8,4):(4\n          ^\n")


class DType(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        values = np.array([[1, 2.5, 500], [np.nan, -1e30, 3.3]], np.float32)
        np.save(os.path.join(self.folder.name, "f32.npy"), values)
        np.save(os.path.join(self.folder.name, "bf16.npy"), (values.view(np.uint32) >> 16).astype(np.uint16))

    def convert(self, *arguments):
        return kvscope("dtype", *arguments, cwd=self.folder.name)

    def load(self, name):
        return np.load(os.path.join(self.folder.name, name))

    def test_writes_bit_patterns_and_counts_what_it_changed(self):
        done = self.convert("bf16.npy", "out.npy", "--from", "bf16", "--to", "e4m3")
        self.assertEqual(done.stdout,
                         "out.npy: 6 elements, bf16 -> e4m3, saturating: 3 changed value, 0 overflowed to infinity"
                         " or NaN, 1 were NaN\n")
        out = self.load("out.npy")
        self.assertEqual((out.dtype, out.tolist()), (np.uint8, [[0x38, 0x42, 0x7E], [0x7F, 0xFE, 0x45]]))

    def test_gives_nan_past_the_largest_value_when_not_saturating(self):
        done = self.convert("bf16.npy", "out.npy", "--from", "bf16", "--to", "e4m3", "--no-saturate")
        self.assertIn("1 changed value, 2 overflowed to infinity or NaN, 1 were NaN", done.stdout)
        self.assertEqual(self.load("out.npy").tolist(), [[0x38, 0x42, 0x7F], [0x7F, 0xFF, 0x45]])

    def test_keeps_the_sign_of_nan_when_told(self):
        # Quiet and signalling, of both signs; the largest finite and a number show that nothing else changes.
        values = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0xFF7FFFFF, 0x3F800000], np.uint32)
        np.save(os.path.join(self.folder.name, "nans.npy"), values.view(np.float32))
        np.save(os.path.join(self.folder.name, "bf16_nans.npy"), np.array([0x7F81, 0xFF81, 0xFFFF], np.uint16))
        for to, largest, one in [("e4m3", 0xFE, 0x38), ("e5m2", 0xFB, 0x3C)]:
            done = self.convert("nans.npy", "out.npy", "--from", "f32", "--to", to)
            self.assertIn(", saturating: ", done.stdout)
            self.assertEqual(self.load("out.npy").tolist(), [0x7F, 0x7F, 0x7F, 0x7F, largest, one])
            done = self.convert("nans.npy", "out.npy", "--from", "f32", "--to", to, "--keep-nan-sign")
            self.assertIn(", saturating, sign of NaN kept: ", done.stdout)
            self.assertEqual(self.load("out.npy").tolist(), [0x7F, 0xFF, 0x7F, 0xFF, largest, one])
            self.convert("bf16_nans.npy", "out.npy", "--from", "bf16", "--to", to, "--keep-nan-sign")
            self.assertEqual(self.load("out.npy").tolist(), [0x7F, 0xFF, 0xFF])

    def test_agrees_with_numpy_on_f16(self):
        self.convert("f32.npy", "out.npy", "--from", "f32", "--to", "f16", "--no-saturate")
        with np.errstate(over="ignore"):
            expected = self.load("f32.npy").astype(np.float16)
        np.testing.assert_array_equal(self.load("out.npy").view(np.float16), expected)

    def test_names_every_wrong_option_at_once(self):
        done = self.convert("f32.npy", "out.npy", "--from", "float33", "--to", "e2m1")
        self.assertEqual(done.returncode, 2)
        types = "f64 f32 f16 bf16 e4m3 e5m2 e8m0 i8 u8 i16 u16 i32 u32 i64 u64"
        self.assertEqual(done.stderr.splitlines(),
                         [f"kvscope: command line: {given} is not a type that can be converted: use one of {types}"
                          for given in ("--from: 'float33'", "--to: 'e2m1'")])

    def test_refuses_an_array_of_another_type_and_leaves_no_output(self):
        for name, dtype, fault in [
                ("bf16.npy", "f32",
                 "the array holds u16, not f32: use --from f16 or bf16 for bit patterns, u16 for numbers"),
                ("f32.npy", "bf16", "the array holds f32, not bf16: use --from with that name")]:
            done = self.convert(name, "out.npy", "--from", dtype, "--to", "e4m3")
            self.assertEqual((done.returncode, done.stderr), (2, f"kvscope: {name}: --from: {fault}\n"))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["bf16.npy", "f32.npy"])

    def test_names_a_file_that_is_not_there(self):
        done = self.convert("none.npy", "out.npy", "--from", "f32", "--to", "bf16")
        self.assertEqual((done.returncode, done.stderr),
                         (2, "kvscope: none.npy: cannot be read: No such file or directory\n"))


class Completion(unittest.TestCase):
    def complete(self, *words):
        """What bash would offer for the last of `words`."""
        script = kvscope("completion", "bash").stdout + """
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kvscope; printf '%s\\n' "${COMPREPLY[@]}"
"""
        done = subprocess.run(["bash", "--noprofile", "--norc", "-c", script, "bash", *words], capture_output=True,
                              text=True, check=True)
        return done.stdout.split()

    def test_offers_commands_then_options_then_closed_values(self):
        self.assertLessEqual({"layout", "dtype", "completion"}, set(self.complete("kvscope", "")))
        self.assertEqual(self.complete("kvscope", "lay"), ["layout"])
        self.assertEqual(sorted(self.complete("kvscope", "layout", "--")), ["--all", "--help", "--json"])
        self.assertEqual(self.complete("kvscope", "completion", ""), ["bash", "zsh", "fish"])

    def test_offers_files_where_a_file_is_wanted(self):
        # bash falls back to file names only when a completion offers nothing.
        self.assertEqual(self.complete("kvscope", "dtype", ""), [])
        self.assertIn("complete -o default -F _kvscope kvscope", kvscope("completion", "bash").stdout)

    def test_names_every_command_of_the_help_page_in_every_shell(self):
        listed = re.findall(r"(?m)^  ([a-z]\w*) {2,}", kvscope("--help").stdout)
        self.assertGreater(len(listed), 2)
        for shell in ["bash", "zsh", "fish"]:
            script = kvscope("completion", shell).stdout
            for command in listed:
                self.assertRegex(script, rf"\b{command}\b")

    def test_does_not_touch_the_search_path_of_zsh(self):
        # In zsh `path` is PATH: a local of that name leaves a shell that finds no program while it completes.
        self.assertNotRegex(kvscope("completion", "zsh").stdout, r"(?<![-\w])path\b")  # "--path" is an option


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kvscope", required=True, type=os.path.abspath)
    known, rest = parser.parse_known_args()
    KVSCOPE = known.kvscope
    unittest.main(argv=[sys.argv[0], *rest])
