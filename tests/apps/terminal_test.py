#!/usr/bin/python3
"""The progress bar is drawn only on a terminal, a run that is stopped leaves no half-written file, and names in files
do not control the terminal."""
import json
import os
import pty
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np

import program
from program import gallery, kvscope, main, safetensors, write_json


def everything_from(terminal):
    """The text that was written to a pseudo-terminal whose other end is closed; reading ends with an error."""
    text = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            piece = b""
        if not piece:
            os.close(terminal)
            return text
        text += piece


class ProgressBar(unittest.TestCase):
    def test_is_drawn_and_erased_on_a_terminal(self):
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo-terminal is available ({error}): is /dev/pts mounted?")
        done = subprocess.run([program.KVSCOPE, "run", gallery("first_light")], stdout=subprocess.PIPE, stderr=theirs,
                              check=True)
        os.close(theirs)
        drawn = everything_from(ours).decode()
        self.assertRegex(drawn, r"^\rrequests  \[[#.]{20}\] [ 0-9]{3} %  \d of 5")
        self.assertTrue(drawn.endswith("\r\x1b[K"), "a finished bar leaves an empty line")
        self.assertNotIn(b"\x1b", done.stdout)

    def test_is_not_written_into_a_pipe(self):
        self.assertEqual(kvscope("run", gallery("first_light")).stderr, "")


class Stopping(unittest.TestCase):
    def test_leaves_no_half_written_trace(self):
        for how in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]:
            with self.subTest(signal=how.name), tempfile.TemporaryDirectory() as folder:
                out = os.path.join(folder, "out")
                # An hour of traffic with every event takes long enough to be interrupted.
                command = [program.KVSCOPE, "run", gallery("real_traffic_like"), "--out", out, "--trace", "full"]
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                           preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
                # The set of files is built in a folder beside the output.
                for _ in range(1000):
                    if any(name.endswith(".tmp") for name in os.listdir(folder)):
                        break
                    time.sleep(0.02)
                self.assertIsNone(process.poll(), "it ended before it could be stopped")
                self.assertTrue(any(name.endswith(".tmp") for name in os.listdir(folder)))
                process.send_signal(how)
                self.assertEqual(process.wait(timeout=60), -how, "the signal does what it always does")
                self.assertEqual(os.listdir(folder), [])


# Sets the window's title, clears the screen, turns the text around, and begins a control sequence in one byte of Latin-1.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202e\u009b31m\r"


class HostileNames(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def assert_harmless(self, *arguments, shows=r"\u001b]0;owned\u0007\u001b[2J\u202e\u009b31m\u000d"):
        done = subprocess.run([program.KVSCOPE, *arguments], capture_output=True, timeout=60, check=False)
        for stream in (done.stdout, done.stderr):
            text = stream.decode("utf-8")  # fails on a byte that is no UTF-8
            self.assertFalse([c for c in text if c != "\n" and c != "\t" and (c < " " or "\x7f" <= c <= "\x9f" or
                                                                             c in "\u202e\u2028")], text)
        self.assertIn(shows, (done.stdout + done.stderr).decode())
        return done

    def test_of_a_scenario(self):
        with open(gallery("first_light"), encoding="utf-8") as file:
            scenario = json.load(file)
        title = write_json(os.path.join(self.folder, "title.json"), {**scenario, "name": HOSTILE})
        for command in (["scenario", "check", title], ["run", title]):
            with self.subTest(command[0]):
                self.assertEqual(self.assert_harmless(*command).returncode, 0)
        key = write_json(os.path.join(self.folder, "key.json"), {**scenario, HOSTILE: 1})
        self.assertEqual(self.assert_harmless("run", key, shows=r'["\u001b]0;owned').returncode, 2)

    def test_of_a_tensor(self):
        path = os.path.join(self.folder, "x.safetensors")
        with open(path, "wb") as file:
            file.write(safetensors({HOSTILE: ("F32", [1], bytes(4))}))
        self.assertEqual(self.assert_harmless("golden", "--input", path, "--layout", "flashinfer", "--out",
                                              os.path.join(self.folder, "out.npz")).returncode, 2)

    def test_of_a_member_of_a_zip(self):
        # libzip rejects an archive whose names of UTF-8 have control characters, and reads other names in code page 437.
        for name, shows in [(HOSTILE, "not a readable zip archive"), ("\x1b[2J", "[2J")]:
            with self.subTest(name):
                path = os.path.join(self.folder, "x.npz")
                np.savez(path, **{name: np.zeros(1, np.float32)})
                done = self.assert_harmless("golden", "--input", path, "--layout", "flashinfer", "--out",
                                            os.path.join(self.folder, "out.npz"), shows=shows)
                self.assertEqual(done.returncode, 2)

    def test_of_a_file(self):
        self.assertEqual(self.assert_harmless("run", os.path.join(self.folder, HOSTILE)).returncode, 2)
        latin = os.path.join(os.fsencode(self.folder), b"\x9b31m")
        self.assertEqual(self.assert_harmless("run", latin, shows=r"\x9b31m").returncode, 2)

    def test_json_stays_json_with_the_same_values(self):
        with open(gallery("first_light"), encoding="utf-8") as file:
            scenario = json.load(file)
        title = write_json(os.path.join(self.folder, "title.json"), {**scenario, "name": HOSTILE + "\x7f\u2028"})
        done = subprocess.run([program.KVSCOPE, "run", title, "--json"], capture_output=True, check=True)
        self.assertEqual(json.loads(done.stdout)["scenario"], HOSTILE + "\x7f\u2028")


if __name__ == "__main__":
    main()
