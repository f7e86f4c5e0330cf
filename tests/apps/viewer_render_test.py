#!/usr/bin/python3
"""Pictures from the command line, without a display: read back by readers that share no code with what wrote them.

    viewer_render_test.py --kvscope PROGRAM --viewer PROGRAM
"""
import os
import json
import re
import signal
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

import numpy as np

sys.dont_write_bytecode = True
import program  # noqa: E402
from pictures import pdf_objects, read_gif, read_png  # noqa: E402
from program import drawn, fine, gallery, gallery_names, no_display, viewer  # noqa: E402

DARK = (0x12, 0x14, 0x19)  # the surface, at a corner
SMALL = [name for name in gallery_names() if not name.startswith("real_traffic")][:3 if program.SLOW_BUILD else None]
SVG = "{http://www.w3.org/2000/svg}"


def content(path):
    with open(path, "rb") as file:
        return file.read()


def wait_for(condition, patience=20):
    """The condition, as soon as it is true; after `patience` seconds as it is."""
    end = time.monotonic() + patience * (10 if program.SLOW_BUILD else 1)
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def is_running(number):
    """A process that has only its exit code left has ended."""
    try:
        return content(f"/proc/{number}/stat").rsplit(b") ", 1)[1][:1] not in b"ZX"
    except OSError:
        return False


class Pictures(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name):
        return os.path.join(self.folder.name, name)

    def bytes_of(self, *arguments, ending="png", **options):
        """What one call writes; it must write this file and no other."""
        path = self.file("picture." + ending)
        drawn("--render", path, *arguments, **options)
        data = content(path)
        os.remove(path)
        self.assertEqual(os.listdir(self.folder.name), self.kept if hasattr(self, "kept") else [])
        return data

    def pixels_of(self, *arguments, **options):
        return read_png(self.bytes_of(*arguments, **options))


class Png(Pictures):
    def test_every_scenario_of_the_gallery_gives_a_picture_with_something_on_it(self):
        for name in SMALL:
            with self.subTest(name):
                image = self.pixels_of("--scenario", gallery(name), "--size", "1200x750")
                self.assertEqual(image.shape, (750, 1200, 4))
                self.assertEqual(tuple(image[0, 0, :3]), DARK)
                self.assertGreater(len(np.unique(image.view(np.uint32))), 200)
                # Cards with text and cells: the surface alone is less than a third of it.
                self.assertLess((image[:, :, :3] == DARK).all(axis=2).mean(), 0.34)

    def test_scale_gives_more_pixels_of_the_same_picture(self):
        small = self.pixels_of("--scenario", gallery("first_light"), "--size", "600x400")
        large = self.pixels_of("--scenario", gallery("first_light"), "--size", "600x400", "--scale", "2")
        self.assertEqual(large.shape, (800, 1200, 4))
        means = large.reshape(400, 2, 600, 2, 4).mean(axis=(1, 3))
        self.assertLess(np.abs(means - small).mean(), 4)

    def test_each_option_changes_the_picture_and_the_defaults_do_not(self):
        scenario = ("--scenario", gallery("first_light"))
        usual = self.bytes_of(*scenario)
        self.assertEqual(usual, self.bytes_of(*scenario, "--view", "overview", "--size", "1600x1000", "--scale", "1",
                                              "--theme", "dark", "--font-scale", "1"))
        seen = {usual}
        for change in (["--view", "sequences"], ["--view", "pool"], ["--view", "timeline"], ["--theme", "light"],
                       ["--font-scale", "1.5"], ["--select", "token 3:37"], ["--select", "block 7"], ["--step", "-1"],
                       ["--step", "0"], ["--step", "24"], ["--size", "1000x700"]):
            with self.subTest(change):
                data = self.bytes_of(*scenario, *change)
                self.assertNotIn(data, seen)
                seen.add(data)

    def test_a_tile_of_every_path_and_each_of_its_events_is_another_picture(self):
        scenario = ("--scenario", gallery("quantized_e4m3"), "--view", "tile")
        seen = set()
        for tile in ("seq 0 k tma", "seq 0 v tma", "seq 0 token 64 k tma", "seq 0 k layer 1 tma"):
            for more in ([], ["--tile-event", "0"], ["--tile-event", "400"], ["--select", "seq 0"],
                         ["--select", "register 5:0"]):
                with self.subTest(tile=tile, more=more):
                    data = self.bytes_of(*scenario, "--tile", tile, *more)
                    self.assertNotIn(data, seen)
                    seen.add(data)
        # Why a path cannot take the tile is part of the picture.
        self.assertNotIn(self.bytes_of(*scenario, "--tile", "seq 0 k lds"), seen)

    def test_without_a_name_it_is_the_tile_of_the_selection_or_of_the_longest_sequence(self):
        scenario = ("--scenario", gallery("first_light"), "--view", "tile", "--step", "6")
        for select, tile in (("token 3:37", "seq 3 token 37"), ("page 1:4", "seq 1 token 64"), ("seq 2", "seq 2")):
            with self.subTest(select=select):
                self.assertEqual(self.bytes_of(*scenario, "--select", select),
                                 self.bytes_of(*scenario, "--select", select, "--tile", tile))
        self.assertEqual(self.bytes_of(*scenario), self.bytes_of(*scenario, "--tile", "seq 0"))

    def test_an_animation_of_a_tile_goes_through_its_events(self):
        tile = ("--scenario", gallery("first_light"), "--tile", "seq 0", "--size", "600x400")
        whole = self.bytes_of(*tile, ending="gif")
        self.assertEqual(whole, self.bytes_of(*tile, "--tile-event", "0", "--tile-to", "1559", ending="gif"))
        self.assertGreater(len(whole), len(self.bytes_of(*tile, "--tile-to", "271", ending="gif")))

    def test_each_query_each_number_of_tiles_and_each_candidate_is_another_picture(self):
        with tempfile.TemporaryDirectory() as out:
            golden, mine = os.path.join(out, "golden.npz"), os.path.join(out, "mine.npz")
            fine("golden", gallery("quantized_e4m3"), "--out", golden, "--candidate", mine)
            seen = set()
            for source in (("--scenario", gallery("quantized_e4m3"), "--view", "attention", "--step", "6"),
                           (golden, "--view", "attention"), (golden, "--candidate", mine)):
                for more in ([], ["--flow", "seq 1"], ["--flow", "seq 0 head 2 tile 16"],
                             ["--flow", "seq 0 head 2 tile 16", "--flow-tiles", "3"], ["--select", "page 0:1"]):
                    with self.subTest(source=source, more=more):
                        data = self.bytes_of(*source, *more)
                        self.assertNotIn(data, seen)
                        seen.add(data)

    def test_a_trace_that_holds_tiles_shows_them(self):
        with tempfile.TemporaryDirectory() as out:
            scenario = json.loads(content(gallery("quantized_e4m3")))
            scenario["focus"] = {"staging": "lanes", "layer": 1, "sequence": 0, "step": 1}
            path = os.path.join(out, "staged.json")
            with open(path, "w") as file:
                json.dump(scenario, file)
            fine("run", path, "--out", out, "--trace", "full")
            trace = ("--trace", os.path.join(out, "trace.kvt"), "--view", "tile", "--step", "1")
            first = self.bytes_of(*trace)
            self.assertEqual(first, self.bytes_of(*trace, "--tile", "0"))
            self.assertNotEqual(first, self.bytes_of(*trace, "--tile", "1"))
            # The same tile, on demand: K, layer 1, the first tile.
            self.assertEqual(first, self.bytes_of(*trace, "--tile", "seq 0 k layer 1 tma"))

    def test_a_tile_of_a_trace_and_its_step_are_those_of_one_step(self):
        """The picture of another step had that step in its header and the tile of its own step below."""
        with tempfile.TemporaryDirectory() as out:
            scenario = json.loads(content(gallery("quantized_e4m3")))
            scenario["focus"] = {"staging": "lanes", "layer": 1, "sequence": 0, "step": 5}
            path = os.path.join(out, "staged.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(scenario, file)
            fine("run", path, "--out", out, "--trace", "full")
            tile = ("--trace", os.path.join(out, "trace.kvt"), "--view", "tile")
            for ending, more in (("png", ()), ("gif", ("--tile-event", "3100"))):
                of_step = self.bytes_of(*tile, "--step", "5", *more, ending=ending)
                for named in ((), ("--tile", "0")):
                    self.assertEqual(of_step, self.bytes_of(*tile, *named, *more, ending=ending), "the tile's step")
                    self.assertEqual(of_step, self.bytes_of(*tile, "--step", "5", *named, *more, ending=ending))
            # Another step: a tile by its number is a contradiction, any other one is staged after that step.
            for name in ("picture.png", "picture.gif"):
                done = viewer("--render", self.file(name), *tile, "--tile", "0", "--step", "3")
                self.assertEqual((done.returncode, done.stdout, os.listdir(self.folder.name)), (2, "", []))
                self.assertEqual(done.stderr,
                                 "kvscope-viewer: command line: --step: 3 is not the step of tile 0 of the trace, which is of "
                                 "step 5: choose --step 5, or stage the same tile after step 3 with --tile 'seq 0 token 0 k "
                                 "layer 1 head 0 dim 0 tma'\n")
            for step in ("3", "9"):
                self.assertEqual(self.bytes_of(*tile, "--step", step),
                                 self.bytes_of("--scenario", path, "--view", "tile", "--step", step))

    def test_the_light_theme_is_light(self):
        image = self.pixels_of("--scenario", gallery("first_light"), "--theme", "light", "--size", "800x500")
        self.assertGreater(image[:, :, :3].mean(), 200)
        self.assertLess(self.pixels_of("--scenario", gallery("first_light"), "--size", "800x500")[:, :, :3].mean(), 90)

    def test_the_step_without_one_is_the_first_with_most_blocks_in_use(self):
        for name in ("first_light", "preemption", "quantized_e4m3"):
            with self.subTest(name), tempfile.TemporaryDirectory() as out:
                fine("run", gallery(name), "--out", out, "--trace", "full")
                db = sqlite3.connect(os.path.join(out, "trace.kvt"))
                busiest, = db.execute("SELECT step FROM step_ended ORDER BY used_blocks DESC, event LIMIT 1").fetchone()
                db.close()
                self.assertEqual(self.bytes_of("--scenario", gallery(name)),
                                 self.bytes_of("--scenario", gallery(name), "--step", busiest))

    def test_a_trace_of_a_scenario_looks_as_the_scenario_does(self):
        with tempfile.TemporaryDirectory() as out:
            fine("run", gallery("preemption"), "--out", out, "--trace", "full")
            trace = os.path.join(out, "trace.kvt")
            of_scenario = self.bytes_of("--scenario", gallery("preemption"), "--step", "30")
            self.assertEqual(of_scenario, self.bytes_of("--trace", trace, "--step", "30"))
            self.assertEqual(of_scenario, self.bytes_of(trace, "--step", "30"))  # content decides
            self.assertEqual(of_scenario, self.bytes_of(gallery("preemption"), "--step", "30"))

    def test_a_trace_of_steps_alone_has_curves_and_says_what_it_lacks(self):
        with tempfile.TemporaryDirectory() as out:
            fine("run", gallery("first_light"), "--out", out, "--trace", "steps")
            self.assertEqual(self.pixels_of("--trace", os.path.join(out, "trace.kvt")).shape, (1000, 1600, 4))

    def test_sizes_from_the_smallest_to_the_longest(self):
        for size in ("64x64", "64x2000", "2000x64", "481x321", "16384x64"):
            with self.subTest(size):
                width, height = map(int, size.split("x"))
                self.assertEqual(self.pixels_of("--scenario", gallery("first_light"), "--size", size).shape[:2],
                                 (height, width))

    def test_a_selection_is_marked_in_the_accent_color(self):
        def accented(*more):
            image = self.pixels_of("--scenario", gallery("first_light"), "--step", "6", "--size", "1000x625", *more)
            image = image[:, :, :3].astype(np.int16)
            return (np.abs(image - (0xff, 0xcf, 0x5c)).max(axis=2) < 12).sum()
        self.assertGreater(accented("--select", "3:37"), accented() + 200)


class Kernels(Pictures):
    LAUNCH = (os.path.join(program.SOURCE, "apps", "examples", "scale.ptx"), "--grid", "2", "--block", "64", "--arg", "f32[128]", "--arg", "2.5")

    def test_every_step_is_another_picture(self):
        seen = {self.bytes_of(*self.LAUNCH)}
        self.assertEqual(seen, {self.bytes_of(*self.LAUNCH, "--step", "0", "--size", "1600x1000", "--theme", "dark", "--font-scale", "1")})
        for step in (1, 2, 20, 47, 48):
            data = self.bytes_of(*self.LAUNCH, "--step", str(step))
            self.assertNotIn(data, seen)
            seen.add(data)

    def test_the_launch_size_scale_and_theme_are_those_that_were_asked_for(self):
        image = self.pixels_of(*self.LAUNCH, "--size", "1200x800")
        self.assertEqual(image.shape, (800, 1200, 4))
        self.assertEqual(tuple(image[799, 0, :3]), DARK)
        large = self.pixels_of(*self.LAUNCH, "--size", "1200x800", "--scale", "2")
        self.assertEqual(large.shape, (1600, 2400, 4))
        self.assertLess(np.abs(large.reshape(800, 2, 1200, 2, 4).mean(axis=(1, 3)) - image).mean(), 6)
        self.assertGreater(self.pixels_of(*self.LAUNCH, "--theme", "light")[999, 0, :3].min(), 200)
        other = list(self.LAUNCH)
        other[2] = "3"
        self.assertNotEqual(self.bytes_of(*self.LAUNCH), self.bytes_of(*other))

    def test_a_picture_that_is_too_small_is_refused_with_the_smallest(self):
        done = viewer(*self.LAUNCH, "--render", self.file("a.png"), "--size", "200x100")
        self.assertEqual((done.returncode, done.stdout, os.listdir(self.folder.name)), (2, "", []))
        size = re.search(r"--size: a kernel's window is at least (\d+x\d+) at this text size, not 200x100: ", done.stderr)
        self.assertTrue(size, done.stderr)
        self.bytes_of(*self.LAUNCH, "--size", size[1])


class Compared(Pictures):
    """A second run in the right half, at the same step."""
    kept = ["changed.json"]

    def setUp(self):
        super().setUp()
        with open(gallery("preemption"), encoding="utf-8") as file:
            scenario = json.load(file)
        scenario["scheduler"]["max_batch"] = 2
        program.write_json(self.file("changed.json"), scenario)
        self.pair = ("--scenario", gallery("preemption"), "--compare", self.file("changed.json"))

    def test_each_half_is_the_picture_of_its_run_with_frames(self):
        size = ("--view", "pool", "--step", "12", "--size")
        both = self.pixels_of(*self.pair, *size, "1408x700")
        left = self.pixels_of("--scenario", gallery("preemption"), *size, "700x700")
        right = self.pixels_of("--scenario", self.file("changed.json"), *size, "700x700")
        self.assertEqual(both.shape, (700, 1408, 4))
        self.assertTrue((both[:, 700:708, :3] == DARK).all(), "between the two")
        for half, alone in ((both[:, :700], left), (both[:, 708:], right)):
            apart = (half != alone).any(axis=2).mean()
            self.assertGreater(apart, 0.001, "no frames")
            self.assertLess(apart, 0.1, "another picture")

    def test_a_run_and_itself_have_equal_halves_but_for_the_name(self):
        image = self.pixels_of("--scenario", self.file("changed.json"), "--compare", self.file("changed.json"), "--view", "pool",
                               "--step", "30", "--size", "1408x700")
        self.assertTrue((image[60:, :700] == image[60:, 708:]).all())
        self.assertFalse((image[:60, :700] == image[:60, 708:]).all())

    def test_a_film_goes_through_the_steps_of_both(self):
        _, frames = read_gif(self.bytes_of(*self.pair, "--view", "pool", "--step", "10", "--to", "12", "--size", "708x350", ending="gif"))
        self.assertEqual(len(frames), 3)

    def test_a_film_with_motion_moves_both_halves(self):
        _, frames = read_gif(self.bytes_of(*self.pair, "--step", "2", "--to", "3", "--motion", "--size", "1408x700", ending="gif"))
        self.assertGreater(len(frames), 2, "pictures between the two steps")
        for half in (slice(0, 700), slice(708, 1408)):
            moving = [frame.pixels[:, half] for frame in frames]
            self.assertGreater(sum((one != next_one).any() for one, next_one in zip(moving, moving[1:])), 2)

    def test_a_drawing_has_the_words_of_both(self):
        root = ElementTree.fromstring(self.bytes_of(*self.pair, "--step", "12", "--size", "1600x900", ending="svg"))
        words = " ".join("".join(text.itertext()) for text in root.iter(SVG + "text"))
        self.assertIn("12 / 46", words)
        self.assertIn("12 / 68", words)
        self.assertEqual(words.count("Compared: "), 1)


class LargerText(Pictures):
    def test_the_picture_is_as_high_as_its_text_needs(self):
        """Regression: the last sequence was below the picture, which does not scroll."""
        for view, words in (("sequences", [f"seq {n}" for n in range(6)]), ("pool", ["20", "21", "22", "23", "24"])):
            for scale in ("1", "1.5", "2"):
                with self.subTest(view, scale=scale):
                    root = ElementTree.fromstring(self.bytes_of("--scenario", gallery("preemption"), "--step", "3", "--view", view,
                                                                "--font-scale", scale, "--size", "1600x900", ending="svg"))
                    texts = ["".join(text.itertext()).strip() for text in root.iter(SVG + "text")]
                    self.assertEqual([word for word in words if word not in texts], [])
                    self.assertGreaterEqual(float(root.get("height").removesuffix("px")), 900)


class SameEverywhere(Pictures):
    def test_the_same_call_writes_the_same_bytes_whatever_the_desktop(self):
        environments = [no_display(), no_display(DISPLAY=":93"), no_display(WAYLAND_DISPLAY="none"),
                        no_display(QT_SCALE_FACTOR="2", QT_FONT_DPI="200", QT_QPA_PLATFORM="xcb"),
                        no_display(LANG="de_DE.UTF-8", LC_ALL="de_DE.UTF-8", TZ="Asia/Tokyo"),
                        {"PATH": os.environ["PATH"]}]
        for ending in ("png", "svg", "pdf", "tikz", "gif"):
            with self.subTest(ending):
                more = ["--step", "2", "--to", "5"] if ending == "gif" else []
                made = {self.bytes_of("--scenario", gallery("first_light"), "--size", "700x450", *more, ending=ending,
                                      env=environment) for environment in environments}
                self.assertEqual(len(made), 1)
        self.assertEqual(len({self.bytes_of(*Kernels.LAUNCH, "--step", "20", env=environment) for environment in environments}), 1)


class Gif(Pictures):
    def test_a_frame_a_step_each_as_the_png_of_that_step(self):
        arguments = ("--scenario", gallery("first_light"), "--size", "500x320", "--select", "seq 0")
        rounds, frames = read_gif(self.bytes_of(*arguments, "--step", "3", "--to", "9", "--fps", "8", ending="gif"))
        self.assertEqual(rounds, 0)
        self.assertEqual([frame.delay for frame in frames], [13, 12, 13, 12, 13, 12, 13])
        for step, frame in enumerate(frames, 3):
            with self.subTest(step):
                still = self.pixels_of(*arguments, "--step", step)[:, :, :3].astype(int)
                off = np.abs(frame.pixels - still).max(axis=2)
                self.assertLess((off > 40).mean(), 0.002)
                self.assertLess(off.mean(), 0.5)

    def test_without_steps_it_is_the_whole_run_and_small(self):
        data = self.bytes_of("--scenario", gallery("first_light"), "--size", "500x320", ending="gif")
        _, frames = read_gif(data)
        self.assertEqual(len(frames), 25)
        self.assertLess(len(data), 400_000)
        # Only what has changed is written again.
        self.assertLess(np.mean([w * h for _, (_, _, w, h), _, _ in frames[1:]]), 500 * 320)

    def test_from_a_step_to_the_end(self):
        _, frames = read_gif(self.bytes_of("--scenario", gallery("first_light"), "--size", "300x200", "--step", "20",
                                           ending="gif"))
        self.assertEqual(len(frames), 5)


class Svg(Pictures):
    def test_words_are_words_and_nothing_is_outside_the_file(self):
        root = ElementTree.fromstring(self.bytes_of("--scenario", gallery("first_light"), "--step", "6", ending="svg"))
        self.assertEqual((root.tag, root.get("width"), root.get("height"), root.get("viewBox")),
                         (SVG + "svg", "1600", "1000", "0 0 1600 1000"))
        texts = {element.text for element in root.iter(SVG + "text")}
        self.assertLessEqual({"First light", "Sequences", "Block pool", "Lookup table", "Timeline", "seq 3", "null"},
                             texts)
        self.assertEqual(root.find(SVG + "title").text, "First light, step 6")
        for element in root.iter():
            self.assertIn(element.tag.removeprefix(SVG), {"svg", "title", "g", "rect", "path", "text", "ellipse",
                                                          "polygon", "polyline", "clipPath", "image", "pattern",
                                                          "linearGradient", "stop"})
            for name, value in element.attrib.items():
                self.assertFalse(name.startswith("on"), name)
                self.assertNotIn("://", value)
                if name.endswith("href"):
                    self.assertTrue(value.startswith("data:image/png;base64,"), value[:40])
                for used in re.findall(r"url\((.*?)\)", value):
                    self.assertTrue(used.startswith("#"), used)

    def tile_words(self, *arguments):
        """The line under the title of the view 'tile', or what is written in place of the tile."""
        root = ElementTree.fromstring(self.bytes_of(*arguments, "--size", "1600x1000", ending="svg"))
        words = [element.text for element in root.iter(SVG + "text")]
        return [text for text in words if re.search(" · by | · through |The waves cannot copy|TMA cannot copy", text)]

    def test_a_tile_without_a_name_is_by_the_path_that_the_scenario_is_about(self):
        for name in gallery_names():
            notes = json.loads(content(gallery(name))).get("description", "")
            link = re.search(r"tile=[^,)]*\b(lds|tma)\b", notes)
            if not link:
                continue
            with self.subTest(name):
                line, = self.tile_words("--scenario", gallery(name), "--view", "tile")
                self.assertRegex(line, " · through LDS|The waves" if link[1] == "lds" else " · by TMA")
        for path, words in (("", " · through LDS"), (" lds", " · through LDS"), (" tma", " · by TMA")):
            line, = self.tile_words("--scenario", gallery("lds_too_large"), "--tile", "seq 1" + path)
            self.assertIn(words, line)

    def test_a_trace_of_such_a_scenario_shows_its_tile_through_lds_first(self):
        with tempfile.TemporaryDirectory() as out:
            scenario = json.loads(content(gallery("tile_through_lds")))
            scenario["focus"] = {"staging": "lanes"}
            path = os.path.join(out, "staged.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(scenario, file)
            fine("run", path, "--out", out, "--trace", "full")
            for source in (("--trace", os.path.join(out, "trace.kvt")), ("--scenario", path)):
                line, = self.tile_words(*source, "--view", "tile")
                self.assertIn(" · through LDS", line)
                line, = self.tile_words(*source, "--tile", "0")
                self.assertIn(" · by TMA", line)

    def test_scale_enlarges_it(self):
        root = ElementTree.fromstring(self.bytes_of("--scenario", gallery("mla"), "--scale", "1.5", ending="svg"))
        self.assertEqual((root.get("width"), root.get("height"), root.get("viewBox")),
                         ("2400", "1500", "0 0 1600 1000"))


class Pdf(Pictures):
    def test_one_page_of_the_boards_size_with_every_font_in_it(self):
        data = self.bytes_of("--scenario", gallery("first_light"), "--size", "900x600", ending="pdf")
        self.assertTrue(data.startswith(b"%PDF-1."))
        self.assertTrue(data.rstrip().endswith(b"%%EOF"))
        objects = pdf_objects(data)
        pages = [text for text in objects.values() if re.search(rb"/Type /Page\b(?!s)", text)]
        self.assertEqual(len(pages), 1)
        boxes = [list(map(float, re.search(rb"/MediaBox \[(.*?)\]", text)[1].split())) for text in objects.values()
                 if b"/MediaBox" in text]
        self.assertEqual(boxes, [[0, 0, 900, 600]])
        fonts = [text for text in objects.values() if b"/Type /FontDescriptor" in text]
        self.assertGreaterEqual(len(fonts), 2)
        for text in fonts:
            self.assertIn(int(re.search(rb"/FontFile2 (\d+)", text)[1]), objects)
        names = b" ".join(re.search(rb"/FontName /(\S+)", text)[1] for text in fonts)
        self.assertIn(b"Inter-Regular", names)
        self.assertIn(b"JetBrainsMono-Regular", names)
        self.assertNotIn(b"CreationDate", data)


class Tikz(Pictures):
    VIEWS = (("--scenario", gallery("first_light"), "--step", "6"),
             ("--scenario", gallery("mla"), "--tile", "seq 0 token 70 k tma", "--theme", "light"),
             ("--scenario", gallery("first_light"), "--step", "12", "--flow", "seq 0 tile 8"))

    def test_scopes_match_and_every_color_is_defined_once(self):
        for arguments in self.VIEWS:
            with self.subTest(arguments):
                text = self.bytes_of(*arguments, ending="tikz").decode()
                self.assertEqual(text.count("\\begin{scope}"), text.count("\\end{scope}"))
                defined = re.findall(r"\\definecolor\{(c\d+)\}", text)
                self.assertEqual(len(defined), len(set(defined)))
                used = set(re.findall(r"[\[=,](c\d+)[\],]", text))
                self.assertEqual(set(defined), used)
                commands = set(re.findall(r"^\\([a-z]+)", text, re.MULTILINE))
                self.assertLessEqual(commands, {"begin", "end", "def", "definecolor", "path", "fill", "draw", "clip", "node"})

    def test_latex_reads_it(self):
        if not shutil.which("pdflatex"):
            self.skipTest("pdflatex is not installed: apt-get install texlive-latex-base texlive-pictures")
        for arguments in self.VIEWS:
            with self.subTest(arguments), tempfile.TemporaryDirectory() as out:
                with open(os.path.join(out, "picture.tikz"), "wb") as file:
                    file.write(self.bytes_of(*arguments, ending="tikz"))
                with open(os.path.join(out, "page.tex"), "w", encoding="utf-8") as file:
                    file.write("\\documentclass{article}\\usepackage{tikz}\\begin{document}\n"
                               "\\resizebox{\\linewidth}{!}{\\input{picture.tikz}}\n\\end{document}\n")
                done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"], cwd=out,
                                      capture_output=True, check=False)
                log = content(os.path.join(out, "page.log")).decode("utf-8", "replace")
                self.assertEqual(done.returncode, 0, log[-2000:])
                self.assertNotIn("Missing character", log)
                self.assertIn("Output written on page.pdf (1 page", log)


class WholeOrNotThere(Pictures):
    def test_what_was_there_is_replaced_whole_and_stays_when_the_disk_is_full(self):
        def no_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        for ending in ("png", "svg", "pdf", "tikz", "gif"):
            with self.subTest(ending):
                path = self.file("a." + ending)
                with open(path, "w", encoding="utf-8") as file:
                    file.write("before")
                more = ["--step", "2", "--to", "4"] if ending == "gif" else []
                arguments = ["--render", path, "--scenario", gallery("first_light"), *more]
                done = viewer(*arguments, preexec_fn=no_room)
                self.assertEqual((done.returncode, done.stdout, done.stderr),
                                 (2, "", f"kvscope-viewer: {path}: cannot be written: File too large\n"))
                self.assertEqual(content(path), b"before")
                drawn(*arguments)
                self.assertGreater(len(content(path)), 5000)
                self.assertEqual(os.listdir(self.folder.name), ["a." + ending])
                os.remove(path)

    def test_a_signal_ends_the_program_that_writes_the_video_too(self):
        """A program that ignores the end of its input and requests to end, with another one that it started."""
        self.assertEqual(os.listdir(self.folder.name), [])
        with tempfile.TemporaryDirectory() as programs:
            numbers = os.path.join(programs, "numbers")
            with open(os.path.join(programs, "ffmpeg"), "w", encoding="utf-8") as script:
                script.write(f"""#!/bin/sh
trap '' TERM INT HUP PIPE
for last; do :; done
echo begun > "${{last#file:}}"
echo $$ >> {numbers}
sh -c 'echo $$ >> {numbers}; while :; do sleep 0.2; done' &
cat >> "${{last#file:}}"
while :; do sleep 0.2; done
""")
            os.chmod(script.name, 0o700)
            environment = no_display(PATH=programs + ":" + os.environ["PATH"], LC_ALL="C")
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
                with self.subTest(number):
                    open(numbers, "w", encoding="utf-8").close()
                    process = subprocess.Popen([program.VIEWER, "--render", self.file("a.webm"), "--scenario",
                                                gallery("first_light"), "--size", "64x64", "--step", "2", "--to", "4"],
                                               env=environment, preexec_fn=program.end_with_parent)
                    self.assertTrue(wait_for(lambda: content(numbers).count(b"\n") == 2))
                    started = [int(line) for line in content(numbers).split()]
                    process.send_signal(number)
                    self.assertEqual(process.wait(60), -number)
                    # Nothing can tell the other program of a viewer that was killed; the first one is ended by the system.
                    of_interest = started[:1] if number == signal.SIGKILL else started
                    try:
                        self.assertTrue(wait_for(lambda: not any(map(is_running, of_interest))))
                    finally:
                        for one in filter(is_running, started):
                            os.kill(one, signal.SIGKILL)
                    if number != signal.SIGKILL:
                        self.assertEqual(os.listdir(self.folder.name), [])

    def test_a_video_on_a_full_disk_keeps_the_file_that_was_there(self):
        def no_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        with tempfile.TemporaryDirectory() as programs:
            with open(os.path.join(programs, "ffmpeg"), "w", encoding="utf-8") as script:
                script.write("#!/bin/sh\nfor last; do :; done\nexec cat > \"${last#file:}\"\n")
            os.chmod(script.name, 0o700)
            environment = no_display(PATH=programs + ":" + os.environ["PATH"], LC_ALL="C")
            path, target = self.file("a.webm"), self.file("kept.webm")
            with open(target, "w", encoding="utf-8") as file:
                file.write("before")
            os.symlink("kept.webm", path)
            arguments = ["--render", path, "--scenario", gallery("first_light"), "--size", "64x64", "--step", "2", "--to", "4"]
            done = viewer(*arguments, env=environment, preexec_fn=no_room)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, f"^kvscope-viewer: {path}: ffmpeg could not write the video: cat: .*File too large\n$")
            self.assertEqual(content(path), b"before")
            # A link is followed, and stays one.
            done = viewer(*arguments, env=environment)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(len(content(target)), 3 * 3 * 64 * 64 * 4)
            self.assertTrue(os.path.islink(path))
            self.assertEqual(sorted(os.listdir(self.folder.name)), ["a.webm", "kept.webm"])

    def test_told_to_stop_it_leaves_nothing(self):
        path = self.file("film.gif")
        child = subprocess.Popen([program.VIEWER, "--render", path, "--scenario", gallery("preemption"), "--size",
                                  "4000x3000"], env=no_display(), preexec_fn=program.end_with_parent)
        try:
            while child.poll() is None and not os.listdir(self.folder.name):
                pass
            child.send_signal(signal.SIGTERM)
        finally:
            self.assertEqual(child.wait(60), -signal.SIGTERM)
        self.assertEqual(os.listdir(self.folder.name), [])


class Simulation(Pictures):
    """What the window starts for a scenario."""

    def test_its_trace_is_byte_for_byte_that_of_kvscope_run(self):
        for name in ("first_light", "continuous"):
            with self.subTest(name), tempfile.TemporaryDirectory() as out:
                fine("run", gallery(name), "--out", out, "--trace", "full")
                done = viewer("--simulate", gallery(name), "--trace", self.file("a.kvt"))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                for line in done.stdout.splitlines():
                    self.assertRegex(line, r"^progress \d+ \d+$")
                self.assertEqual(content(self.file("a.kvt")), content(os.path.join(out, "trace.kvt")))

    def test_it_stops_when_nobody_listens_any_more(self):
        child = subprocess.Popen([program.VIEWER, "--simulate", gallery("real_traffic_like"), "--trace",
                                  self.file("a.kvt")], stdout=subprocess.PIPE, env=no_display(),
                                 preexec_fn=program.end_with_parent)
        self.addCleanup(child.kill)
        child.stdout.readline()
        child.stdout.close()
        self.assertEqual(child.wait(60), 2)
        self.assertEqual(os.listdir(self.folder.name), [])


class Words(unittest.TestCase):
    def test_version_help_and_completion(self):
        version = viewer("--version")
        self.assertRegex(version.stdout, r"^kvscope-viewer \d+\.\d+\.\d+ \(.*commit.*\)\n$")
        self.assertEqual(version.stdout.split()[1:], fine("--version").split()[1:])
        text = viewer("--help").stdout
        for option in ("--render", "--scenario", "--trace", "--view", "--step", "--to", "--size", "--scale", "--theme",
                       "--select", "--fps", "--font-scale"):
            self.assertIn(option + " ", text)
        self.assertNotIn("--simulate", text)

    def test_a_shell_completes_options_and_their_values(self):
        script = viewer("--completion", "bash").stdout
        self.assertNotIn("--simulate", script)
        for words, expected in ((["--th"], ["--theme"]), (["--view", "t"], ["timeline", "tile"]),
                                (["--theme", ""], ["dark", "light", "high-contrast"])):
            with self.subTest(words):
                line = ["kvscope-viewer", *words]
                asked = (script + f"\nCOMP_WORDS=({' '.join(repr(w) for w in line)}); COMP_CWORD={len(line) - 1}\n"
                         "_kvscope_viewer; printf '%s\\n' \"${COMPREPLY[@]}\"")
                done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
                self.assertEqual(done.stdout.split(), expected)


if __name__ == "__main__":
    program.main()
