#!/usr/bin/python3
"""The real window on a real X server (Xvfb): it shows, pixel for pixel, what --render draws; keys move it; a simulation
that dies leaves it as it was, with a message.

    viewer_window_test.py --kvscope PROGRAM --viewer PROGRAM
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
import x11  # noqa: E402
from pictures import read_png  # noqa: E402
from program import drawn, gallery, no_display  # noqa: E402
from x11 import until  # noqa: E402

MESSAGE = 160  # pixels at the board's lower end that a message may cover
CARD = {"dark": (0x1a, 0x1d, 0x24), "light": (0xff, 0xff, 0xff)}


def runs_of(line, color):
    """[(first, one past the last)] of the runs of one color in a line of pixels, in order."""
    same = np.concatenate(([False], (line == color).all(axis=1), [False]))
    edges = np.flatnonzero(same[1:] != same[:-1])
    return list(zip(edges[::2], edges[1::2]))


def card_box(image, color):
    """(left, top, right, bottom) of the cards of a board, seen along two edges that are free of text, just inside the
    left edge of the first card and just under its top. Nothing when there is no board; a message above it is no card:
    it is less than 100 pixels high."""
    columns = np.flatnonzero((image == color).all(axis=2).sum(axis=0) > 300)
    if not len(columns):
        return None
    left = columns[0]
    cards = [run for run in runs_of(image[:, left + 2], color) if run[1] - run[0] > 100]
    if not cards:
        return None
    top, bottom = cards[0][0], cards[-1][1]
    right = next((end for begin, end in runs_of(image[top + 2], color) if end - begin > 300), None)
    return right and (left, top, right, bottom)


class Window(unittest.TestCase):
    def setUp(self):
        if x11.missing():
            self.skipTest(x11.missing())
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.screen = x11.Screen()
        self.addCleanup(self.screen.close)
        self.process = None
        self.references = {}  # (theme, size, arguments): what --render draws

    def file(self, name):
        return os.path.join(self.folder.name, name)

    def open(self, *arguments):
        runtime = self.file("runtime")
        os.makedirs(runtime, mode=0o700, exist_ok=True)
        environment = no_display(DISPLAY=self.screen.display, HOME=self.folder.name, XDG_RUNTIME_DIR=runtime,
                                 XDG_CONFIG_HOME=self.file("config"), QT_QPA_PLATFORM="xcb", TMPDIR=self.folder.name)
        self.said = open(self.file("said"), "w+", encoding="utf-8")
        self.addCleanup(self.said.close)
        self.process = subprocess.Popen([program.VIEWER, *arguments], env=environment, stderr=self.said,
                                        preexec_fn=program.end_with_parent)
        self.addCleanup(self.stop)
        self.window = until(self.main_window)
        self.screen.point(1599, 999)
        self.screen.focus(self.window)

    def stop(self):
        child = self.child()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if child:
            os.kill(child, signal.SIGKILL)

    def main_window(self):
        """the window is on the screen"""
        self.assertIsNone(self.process.poll(), "it has ended")
        large = [window for window, (width, height) in self.screen.windows().items() if width > 600 and height > 400]
        return large[0] if large else None

    def board(self, theme, *arguments):
        """the screen shows the board that --render draws, at the size that the cards on the screen tell"""
        screen = self.screen.pixels()
        seen, reference = card_box(screen, CARD[theme]), self.draw(theme, (1000, 700), *arguments)
        if not seen:
            return False
        known = card_box(reference, CARD[theme])
        size = (seen[2] - seen[0] + 1000 - (known[2] - known[0]), seen[3] - seen[1] + 700 - (known[3] - known[1]))
        if not (64 <= size[0] <= 1600 and 64 <= size[1] <= 1000):
            return False
        expected = self.draw(theme, size, *arguments)
        x, y = seen[0] - known[0], seen[1] - known[1]
        shown = screen[y:y + size[1], x:x + size[0]]
        if shown.shape != expected.shape:
            return False
        off = np.abs(shown.astype(np.int16) - expected).max(axis=2)
        if (off > 8).mean() >= 0.0005:
            return False
        self.place = x, y, size
        return True

    def shows(self, theme, run, step):
        until(lambda: self.board(theme, *run, "--step", str(step)))

    def board_above_message(self, theme, *arguments):
        """where the board was shown last is the one that --render draws, except under a message over its lower end"""
        x, y, size = self.place
        shown = self.screen.pixels()[y:y + size[1] - MESSAGE, x:x + size[0]]
        expected = self.draw(theme, size, *arguments)[:size[1] - MESSAGE]
        return (np.abs(shown.astype(np.int16) - expected).max(axis=2) > 8).mean() < 0.0005

    def shows_above_message(self, theme, run, step):
        until(lambda: self.board_above_message(theme, *run, "--step", str(step)))

    def draw(self, theme, size, *arguments):
        if (theme, size, arguments) not in self.references:
            path = self.file("drawn.png")
            drawn("--render", path, "--theme", theme, "--size", "{}x{}".format(*size), *arguments)
            with open(path, "rb") as file:
                self.references[theme, size, arguments] = read_png(file.read())[:, :, :3]
        return self.references[theme, size, arguments]

    def child(self):
        """the simulation's process"""
        for stat in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(stat, encoding="utf-8") as file:
                    pid, _, rest = file.read().partition(" (")
                with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                    command = file.read()
            except OSError:
                continue
            if int(rest.rpartition(") ")[2].split()[1]) == self.process.pid and "--simulate" in command:
                return int(pid)
        return None

    def warned(self, theme):
        """How many pixels have the color of a message about a fault."""
        warning = {"dark": (0xff, 0x7b, 0x72), "light": (0xc2, 0x2f, 0x2a)}[theme]
        return int((np.abs(self.screen.pixels().astype(int) - warning).max(axis=2) < 10).sum())

    def quit(self):
        self.screen.press("Control", "q")
        self.assertEqual(self.process.wait(60), 0)

    def test_shows_what_render_draws_and_keys_walk_through_it(self):
        for theme in ("dark", "light"):
            with self.subTest(theme):
                scenario = gallery("first_light")
                self.open(scenario, "--step", "5", "--theme", theme)
                self.shows(theme, [scenario], 5)
                self.screen.press(".")
                self.shows(theme, [scenario], 6)
                self.screen.press(",")
                self.screen.press(",")
                self.shows(theme, [scenario], 4)
                self.screen.press("Control", "End")
                self.shows(theme, [scenario], 24)
                self.quit()

    def test_a_trace_is_shown_as_its_scenario(self):
        program.fine("run", gallery("preemption"), "--out", self.file("out"), "--trace", "full")
        self.open(self.file("out/trace.kvt"), "--step", "20", "--theme", "dark")
        self.shows("dark", [gallery("preemption")], 20)

    def test_a_simulation_that_dies_leaves_the_window_as_it_was_with_a_message(self):
        scenario, run = self.file("scenario.json"), [gallery("first_light")]
        for ending in (signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT):
            with self.subTest(ending.name):
                shutil.copy(gallery("first_light"), scenario)
                self.open(scenario, "--step", "6", "--theme", "dark")
                self.shows("dark", run, 6)
                self.assertLess(self.warned("dark"), 50)
                shutil.copy(gallery("real_traffic_like"), scenario)  # takes long
                self.screen.press("Control", "r")
                os.kill(until(self.child), ending)
                until(lambda: self.warned("dark") > 50)
                self.assertIsNone(self.process.poll())
                self.assertIn(self.window, self.screen.windows())
                self.assertIsNone(self.child())
                # What was open is still there, at its step, and still walks.
                self.shows_above_message("dark", run, 6)
                self.screen.press(".")
                self.shows_above_message("dark", run, 7)
                self.quit()
                self.assertEqual(glob.glob(self.file("*/run.kvt*")), [], "the dead run's trace is still there")

    def test_closing_while_a_scenario_runs_ends_the_simulation_too(self):
        self.open(gallery("real_traffic_like"), "--theme", "dark")
        child = until(self.child)
        self.quit()
        self.assertFalse(os.path.exists(f"/proc/{child}"))

    def test_a_scenario_with_faults_is_answered_in_the_window(self):
        scenario = self.file("scenario.json")
        with open(scenario, "w", encoding="utf-8") as file:
            file.write('{"kvscope_scenario": 1, "model": "tiny", "cache": {"page_size": 0, "blocks": 3}}')
        self.open(scenario, "--theme", "dark")
        until(lambda: self.warned("dark") > 50)
        shutil.copy(gallery("first_light"), scenario)
        self.screen.press("Control", "r")
        self.shows("dark", [gallery("first_light")], 0)

    def kernel(self, launch, step):
        """the screen shows the kernel's window that --render draws"""
        width, height = self.screen.windows()[self.window]
        x, y = self.screen.place(self.window)
        shown = self.screen.pixels()[y:y + height, x:x + width]
        expected = self.draw("dark", (width, height), *launch, "--step", str(step))
        return (np.abs(shown.astype(np.int16) - expected).max(axis=2) > 8).mean() < 0.0005

    def test_a_kernel_is_shown_as_render_draws_it_and_keys_step_it(self):
        scale = os.path.join(program.SOURCE, "apps", "examples", "scale.ptx")
        launch = [scale, "--grid", "2", "--block", "64", "--arg", "f32[128]", "--arg", "2.5"]
        self.open(*launch, "--step", "10", "--theme", "dark")
        until(lambda: self.kernel(launch, 10))
        self.screen.press(".")
        until(lambda: self.kernel(launch, 11))
        self.screen.press(",")
        self.screen.press(",")
        until(lambda: self.kernel(launch, 9))
        self.screen.press("Control", "End")
        until(lambda: self.kernel(launch, 48))
        self.screen.press("Control", "w")
        self.assertEqual(self.process.wait(60), 0)


if __name__ == "__main__":
    program.main()
