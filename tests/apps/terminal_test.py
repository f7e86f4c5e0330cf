#!/usr/bin/python3
"""The progress bar is drawn only on a terminal, and a run that is stopped leaves no half-written file."""
import os
import pty
import signal
import subprocess
import tempfile
import time
import unittest

import program
from program import gallery, kvscope, main


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
                for _ in range(1000):
                    if os.path.isdir(out) and any(name.endswith(".tmp") for name in os.listdir(out)):
                        break
                    time.sleep(0.02)
                self.assertIsNone(process.poll(), "it ended before it could be stopped")
                self.assertTrue(any(name.endswith(".tmp") for name in os.listdir(out)))
                process.send_signal(how)
                self.assertEqual(process.wait(timeout=60), -how, "the signal does what it always does")
                self.assertEqual(os.listdir(out), [])


if __name__ == "__main__":
    main()
