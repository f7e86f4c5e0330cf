#!/usr/bin/python3
"""Numbers are read and written alike in every locale: the programs' output and files, byte for byte those of the C locale.

    locale_test.py --kvscope PROGRAM [--viewer PROGRAM]

The C library's locales are compiled into a folder of the test, because a machine may have none. kvscope does not call
setlocale: a preloaded library (USE_LOCALE) calls it first, as a host does that loads kvscope's libraries. The viewer's
Qt calls it by itself.
"""
import ctypes
import os
import subprocess
import tempfile
import unittest

import numpy as np

import program
from program import drawn, gallery, gallery_names, no_display

# Decimal comma; comma and a dotless i; a decimal point of two bytes and other digits; other digits.
LOCALES = ["de_DE.UTF-8", "tr_TR.UTF-8", "ps_AF.UTF-8", "ar_EG.UTF-8"]
USE_LOCALE = os.environ["USE_LOCALE"]  # the preloaded library
TEST_PROGRAMS = os.environ["TEST_PROGRAMS"].split(":")  # tests of the libraries that read and write numbers


def setUpModule():
    global FOLDER
    FOLDER = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(FOLDER.cleanup)
    for name in LOCALES:
        language, charset = name.split(".")
        made = subprocess.run(["localedef", "-i", language, "-f", charset, os.path.join(FOLDER.name, name)],
                              capture_output=True, text=True, check=False)
        # Exit code 1 is a warning: the locale was written.
        if made.returncode > 1 or not os.path.isdir(os.path.join(FOLDER.name, name)):
            raise AssertionError(f"localedef cannot make {name} (is the package locales installed?): {made.stderr}")


def speaking(locale):
    return {"LOCPATH": FOLDER.name, "LC_ALL": locale, "LANG": locale, "LANGUAGE": locale.partition("_")[0]}


def preloaded(locale, *command, cwd=None):
    environment = {**os.environ, **speaking(locale), "LD_PRELOAD": USE_LOCALE}
    return subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, timeout=300, check=False, env=environment)


class TheTestItself(unittest.TestCase):
    def test_the_locales_are_what_they_are_taken_for(self):
        os.environ["LOCPATH"] = FOLDER.name
        library = ctypes.CDLL(None)
        library.setlocale.restype = ctypes.c_char_p
        library.setlocale.argtypes = [ctypes.c_int, ctypes.c_char_p]
        library.strtod.restype = ctypes.c_double
        before = library.setlocale(6, None)  # LC_ALL
        try:
            read = {}
            for name in ["C", *LOCALES]:
                self.assertIsNotNone(library.setlocale(6, name.encode()), name)
                read[name] = library.strtod(b"21.5", None)
            self.assertEqual(read["C"], 21.5)
            for name in ("de_DE.UTF-8", "tr_TR.UTF-8", "ps_AF.UTF-8"):
                self.assertEqual(read[name], 21, f"{name} has another decimal point")
        finally:
            library.setlocale(6, before)
            del os.environ["LOCPATH"]

    def test_a_locale_that_is_not_there_ends_the_program(self):
        done = preloaded("xx_XX.UTF-8", program.KVSCOPE, "--version")
        self.assertEqual(done.returncode, 3, done.stderr)


class Kvscope(unittest.TestCase):
    def made_in(self, locale, commands):
        """What each command printed, and every file that they left."""
        with tempfile.TemporaryDirectory() as folder:
            printed = [preloaded(locale, program.KVSCOPE, *command, cwd=folder) for command in commands]
            files = {}
            for here, _, names in os.walk(folder):
                for name in names:
                    path = os.path.join(here, name)
                    with open(path, "rb") as file:
                        files[os.path.relpath(path, folder)] = file.read()
            return [(done.returncode, done.stdout, done.stderr) for done in printed], files

    # Without options that have a fraction: CLI11 reads them by the C locale, which no program here has set at that time.
    def test_output_and_files_are_those_of_the_c_locale(self):
        x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16)
        with tempfile.TemporaryDirectory() as inputs:
            array = os.path.join(inputs, "x.npy")
            np.save(array, x)
            commands = [
                ["scenario", "check", gallery("real_traffic_like")],
                ["scenario", "schema"],
                ["run", gallery("first_light"), "--out", "run", "--trace", "full"],
                ["run", gallery("quantized_e4m3"), "--json"],
                ["trace", "show", "run/trace.kvt", "--json"],
                ["explain", gallery("first_light"), "--seq", "0", "--token", "5"],
                ["explain", gallery("mla"), "--seq", "0", "--token", "5", "--json"],
                ["golden", gallery("first_light"), "--out", "golden.safetensors"],
                ["golden", gallery("quantized_e4m3"), "--out", "golden.npz"],
                ["verify", "golden.safetensors", "golden.safetensors", "--explain"],
                ["verify", "golden.npz", "golden.npz", "--json"],
                ["dtype", array, "y.npy", "--from", "f32", "--to", "f16"],
                ["stage", gallery("tile_by_tma"), "--seq", "0", "--out", "tile.npy"],
                ["swizzle", "table", "128B"],
                ["scenario", "check", "missing.json"],
            ]
            expected = self.made_in("C", commands)
            self.assertEqual([done[0] for done in expected[0]], [0] * (len(commands) - 1) + [2], expected[0])
            for locale in LOCALES:
                made = self.made_in(locale, commands)
                for command, there, here in zip(commands, made[0], expected[0]):
                    with self.subTest(locale=locale, command=" ".join(command)):
                        self.assertEqual(there, here)
                self.assertEqual(made[1].keys(), expected[1].keys())
                for name, content in expected[1].items():
                    with self.subTest(locale=locale, file=name):
                        self.assertTrue(made[1][name] == content, "other bytes than in the C locale")

    def test_tests_of_readers_and_writers_pass(self):
        both = ["de_DE.UTF-8", "ps_AF.UTF-8"]
        for number, test in enumerate(TEST_PROGRAMS):
            for locale in both if os.environ.get("KVSCOPE_FULL") == "1" else [both[number % 2]]:
                with self.subTest(test=os.path.basename(test), locale=locale):
                    # What a failed allocation leaves behind has nothing to do with a locale, and takes longer than all the rest.
                    done = preloaded(locale, test, "--gtest_brief=1", "--gtest_filter=-*AFailedAllocation*")
                    self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode(errors="replace")[-3000:])


class Viewer(unittest.TestCase):
    def setUp(self):
        if not program.VIEWER:
            self.skipTest("kvscope-viewer is not built")

    def picture(self, locale, folder, *arguments):
        path = os.path.join(folder, f"{locale}.png")
        drawn(*arguments, "--size", "900x560", "--render", path, env=no_display(**speaking(locale)))
        with open(path, "rb") as file:
            return file.read()

    def test_every_scenario_is_drawn_the_same(self):
        for number, name in enumerate(gallery_names()):
            locale = LOCALES[number % len(LOCALES)]  # six scenarios or more in each
            with self.subTest(scenario=name, locale=locale), tempfile.TemporaryDirectory() as folder:
                made, expected = (self.picture(which, folder, "--scenario", gallery(name), "--step", "3")
                                  for which in (locale, "C"))
                self.assertTrue(made == expected, "another picture than in the C locale")

    def test_a_trace_keeps_its_scenario(self):
        with tempfile.TemporaryDirectory() as folder:
            program.fine("run", gallery("tile_by_tma"), "--out", folder, "--trace", "full")
            arguments = ("--font-scale", "1.6", "--scale", "1.5", "--trace", os.path.join(folder, "trace.kvt"), "--step", "2", "--view", "tile", "--select", "0:5")
            expected = self.picture("C", folder, *arguments)
            for locale in LOCALES:
                with self.subTest(locale):
                    self.assertTrue(self.picture(locale, folder, *arguments) == expected,
                                    "another picture than in the C locale")


if __name__ == "__main__":
    program.main()
