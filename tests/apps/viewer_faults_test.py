#!/usr/bin/python3
"""What a person sees who gave the viewer something wrong: the words that `kvscope` has for the same file, the viewer's
own to the letter, exit code 2, nothing on standard output, no file more or less than before.

    viewer_faults_test.py --kvscope PROGRAM --viewer PROGRAM
"""
import json
import os
import shlex
import shutil
import sqlite3
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import program  # noqa: E402
from program import fine, gallery, kvscope, no_display, viewer, write_json  # noqa: E402

GOOD = {"kvscope_scenario": 1, "name": "good", "model": "tiny", "cache": {"page_size": 4, "blocks": 8},
        "requests": {"list": [{"prompt_tokens": 5, "generate_tokens": 3}]}, "tile": {"BN": 4, "BK": 8}}

SCALE = os.path.join(program.SOURCE, "apps", "examples", "scale.ptx")


def without_name(text, name):
    """Fault lines without the program's name before each."""
    lines = text.splitlines()
    for line in lines:
        assert line.startswith(name + ": "), text
    return [line.removeprefix(name + ": ") for line in lines]


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        write_json(os.path.join(cls.made.name, "good.json"), GOOD)
        fine("run", "good.json", "--out", "out", "--trace", "full", cwd=cls.made.name)
        fine("run", gallery("preemption"), "--out", "large", "--trace", "full", cwd=cls.made.name)

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        shutil.copy(os.path.join(self.made.name, "good.json"), self.folder.name)
        shutil.copy(os.path.join(self.made.name, "out", "trace.kvt"), os.path.join(self.folder.name, "good.kvt"))
        shutil.copy(SCALE, self.folder.name)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def put(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return name

    def faults(self, line, **options):
        """Fault lines of a call in the folder, which stays as it was."""
        before = sorted(os.listdir(self.folder.name))
        done = viewer(*shlex.split(line), cwd=self.folder.name, **options)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder.name)), before)
        return without_name(done.stderr, "kvscope-viewer")


class SameWordsAsTheCommandLine(Faults):
    def same(self, of_viewer, of_kvscope):
        done = kvscope(*shlex.split(of_kvscope), cwd=self.folder.name)
        self.assertEqual(done.returncode, 2, of_kvscope)
        self.assertEqual(self.faults(of_viewer), without_name(done.stderr, "kvscope"))

    def test_scenarios(self):
        cases = {
            "several.json": json.dumps({**GOOD, "cache": {"page_size": 0, "bloks": 3}, "seed": -1}),
            "syntax.json": '{"kvscope_scenario": 1,\n "model": tiny}',
            "newer.json": json.dumps({**GOOD, "kvscope_scenario": 2}),
            "empty.json": "",
            "binary.json": bytes(range(256)),
            "requests.json": json.dumps({**GOOD, "requests": {"file": {"path": "missing.csv"}}}),
            "array.json": "[]",
        }
        for name, text in cases.items():
            with self.subTest(name):
                self.put(name, text)
                for option in ("", "--scenario"):
                    self.same(f"{option} {name} --render a.png", f"run {name}")

    def flipped(self, whole, page):
        """The file with the lowest bit of one byte the other way round: the last of a page that is part of a value; a
        page also has bytes that nobody reads."""
        def content(data):
            self.put("probe.kvt", data)
            db = sqlite3.connect(self.path("probe.kvt"))
            try:
                return list(db.iterdump())
            except (sqlite3.DatabaseError, UnicodeDecodeError):  # a length or a link: the case of a whole page
                return None
            finally:
                db.close()
                os.remove(self.path("probe.kvt"))
        right = content(whole)
        for at in range(page + 4095, page, -1):
            data = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:]
            if content(data) not in (None, right):
                return data
        raise AssertionError(f"no byte of the page at {page} matters")

    def test_kernels_and_their_launches(self):
        self.put("damaged.ptx", ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry f() { nonsense; add }")
        self.put("empty.ptx", "")
        for launch in ("damaged.ptx", "empty.ptx", "missing.ptx", "scale.ptx", "scale.ptx --arg 'f32[4]'", "scale.ptx --arg x.npy --arg 2",
                       "scale.ptx --arg 'f32[4]' --arg 2 --policy soon", "scale.ptx --arg 'f32[4]' --arg 2 --block 1025",
                       "scale.ptx --arg 'f32[4]' --arg 2 --entry other", "scale.ptx --arg n=3 --arg 'f32[4]' --arg 2"):
            with self.subTest(launch):
                of_kvscope = kvscope("ptx", "run", *shlex.split(launch), cwd=self.folder.name)
                of_viewer = viewer(*shlex.split(launch), "--render", "a.png", cwd=self.folder.name)
                self.assertEqual((of_kvscope.returncode, of_viewer.returncode, of_viewer.stdout), (2, 2, ""))
                # A fault of the text has its line below it, so that not every line begins with the program's name.
                self.assertEqual(of_viewer.stderr.replace("kvscope-viewer: ", "kvscope: "), of_kvscope.stderr)
                self.assertNotIn("a.png", os.listdir(self.folder.name))

    def test_traces(self):
        trace = os.path.join(self.made.name, "large", "trace.kvt")
        with open(trace, "rb") as file:
            whole = file.read()
        page = 4096 * (len(whole) // 8192)
        cases = {
            "truncated.kvt": whole[:len(whole) // 2],
            "header.kvt": whole[:100],
            "corrupted.kvt": whole[:page] + bytes(4096) + whole[page + 4096:],
            "flipped.kvt": self.flipped(whole, page),
            "empty.kvt": b"",
            "text.kvt": b"no trace at all\n" * 20,
        }
        for name, data in cases.items():
            with self.subTest(name):
                self.put(name, data)
                for option in ("", "--trace"):
                    self.same(f"{option} {name} --render a.png", f"trace show {name} --verify")

    def test_traces_of_another_version_or_program(self):
        for name, sql in (("newer.kvt", "PRAGMA user_version = 7"), ("foreign.kvt", "PRAGMA application_id = 7"),
                          ("table.kvt", "CREATE TABLE more(x)"), ("detail.kvt", "DELETE FROM meta WHERE key='detail'")):
            with self.subTest(name):
                shutil.copy(self.path("good.kvt"), self.path(name))
                db = sqlite3.connect(self.path(name))
                db.executescript(sql)
                db.close()
                self.same(f"--trace {name} --render a.png", f"trace show {name} --verify")

    def test_what_is_no_file_or_of_the_other_kind(self):
        os.mkdir(self.path("folder"))
        for name in ("folder", "missing.json", "missing.kvt"):
            with self.subTest(name):
                self.same(f"--scenario {name} --render a.png", f"run {name}")
                self.same(f"--trace {name} --render a.png", f"trace show {name}")
        self.same("--scenario good.kvt --render a.png", "run good.kvt")
        self.same("--trace good.json --render a.png", "trace show good.json")
        self.same("missing.kvt --render a.png", "trace show missing.kvt")
        self.same("missing.json --render a.png", "run missing.json")

    def test_the_simulation_that_a_window_starts(self):
        self.put("several.json", json.dumps({**GOOD, "cache": {"page_size": 0, "bloks": 3}}))
        self.same("--simulate several.json --trace a.kvt", "run several.json")

    def test_a_trace_that_contradicts_itself_names_the_event(self):
        shutil.copy(self.path("good.kvt"), self.path("wrong.kvt"))
        db = sqlite3.connect(self.path("wrong.kvt"))
        rewrite_block(db)
        db.close()
        fine("trace", "show", self.path("wrong.kvt"), "--verify")  # its checksums match
        lines = self.faults("--trace wrong.kvt --render a.png")
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], r"^wrong\.kvt: event \d+: .*\b5000\b")


def rewrite_block(db):
    """The first block_allocated names block 5000, with every checksum made right again."""
    import struct
    import zlib
    event, = db.execute("SELECT min(event) FROM block_allocated").fetchone()
    db.execute("UPDATE block_allocated SET block = 5000 WHERE event = ?", (event,))
    kinds = db.execute("SELECT kind, name FROM kind ORDER BY kind").fetchall()
    checksum = 0
    index = db.execute("SELECT row, step, first_event, events FROM step ORDER BY row").fetchall()
    for row, step, first, count in index:
        where = f"event >= {first} AND event < {first + count}"
        found = sorted((r[0], kind, *r[1:]) for kind, name in kinds
                       for r in db.execute(f"SELECT * FROM {name} WHERE {where}"))
        crc = zlib.crc32(b"".join(struct.pack(f"<{len(r)}q", *r) for r in found))
        db.execute("UPDATE step SET crc = ? WHERE row = ?", (crc, row))
        checksum = zlib.crc32(struct.pack("<4q", step, first, count, crc), checksum)
    for kind, name, count in db.execute("SELECT kind, name, events FROM kind ORDER BY kind"):
        checksum = zlib.crc32(struct.pack("<2q", kind, count) + name.encode() + b"\0", checksum)
    for key, value in db.execute("SELECT key, value FROM meta WHERE key != 'checksum' ORDER BY CAST(key AS BLOB)"):
        checksum = zlib.crc32(key.encode() + b"\0" + value.encode() + b"\0", checksum)
    db.execute("UPDATE meta SET value = ? WHERE key = 'checksum'", (str(checksum),))
    db.commit()


# Situation, command line, every fault.
OWN_WORDS = [
    ("unknown ending", "--render a.bmp --scenario good.json",
     ["command line: --render: 'a.bmp' has no known extension: use .png, .svg, .pdf, .tikz, .gif, .webm or .mp4"]),
    ("no ending", "--render picture --scenario good.json",
     ["command line: --render: 'picture' has no known extension: use .png, .svg, .pdf, .tikz, .gif, .webm or .mp4"]),
    ("no run", "--render a.png",
     ["command line: --render: needs a run to show: add --scenario FILE or --trace FILE"]),
    ("two runs", "good.kvt --render a.png --scenario good.json",
     ["command line: FILE: 'good.kvt' is a second run, and a picture shows one: leave it out"]),
    ("scenario and trace", "--render a.png --scenario good.json --trace good.kvt",
     ["command line: --scenario excludes --trace: see 'kvscope-viewer --help'"]),
    ("size that is none", "--render a.png --scenario good.json --size 100",
     ["command line: --size: '100' is not WIDTHxHEIGHT in pixels, such as 1600x1000"]),
    ("size with words", "--render a.png --scenario good.json --size 100xlarge",
     ["command line: --size: '100xlarge' is not WIDTHxHEIGHT in pixels, such as 1600x1000"]),
    ("sizes too small and too large", "--render a.png --scenario good.json --size 20x99999",
     ["command line: --size: a width of 20 px is outside [64, 16384]: choose another size",
      "command line: --size: a height of 99999 px is outside [64, 16384]: choose another size"]),
    ("size past any number", "--render a.png --scenario good.json --size 99999999999999999999x100",
     ["command line: --size: '99999999999999999999x100' is not WIDTHxHEIGHT in pixels, such as 1600x1000"]),
    ("negative size", "--render a.png --scenario good.json --size=-5x100",
     ["command line: --size: a width of -5 px is outside [64, 16384]: choose another size"]),
    ("too large when scaled", "--render a.png --scenario good.json --size 9000x1000 --scale 2",
     ["command line: --size: a width of 9000 * 2 px is outside [64, 16384]: choose another size or --scale"]),
    ("scale that is no number", "--render a.png --scenario good.json --scale big",
     ["command line: --scale: 'big' is not a valid number: see 'kvscope-viewer --help'"]),
    ("everything at once", "--render a.bmp --scenario good.json --scale 0 --fps 1000 --font-scale nan --size 1",
     ["command line: --render: 'a.bmp' has no known extension: use .png, .svg, .pdf, .tikz, .gif, .webm or .mp4",
      "command line: --scale: 0 is outside [0.25, 8]: 2 is for a HiDPI screen",
      "command line: --size: '1' is not WIDTHxHEIGHT in pixels, such as 1600x1000",
      "command line: --fps: 1000 is outside [0.1, 50]: a GIF counts hundredths of a second",
      "command line: --font-scale: nan is outside [0.7, 2.5]: 1 is 13 px"]),
    ("view of no meaning", "--render a.png --scenario good.json --view all",
     ["command line: --view: 'all' is not a valid value: choose one of overview, sequences, pool, timeline, tile, attention: see 'kvscope-viewer --help'"]),
    ("attention options of another view", "--render a.png --scenario good.json --view pool --flow 'seq 0' --candidate b.npz",
     ["command line: --flow: view 'pool' shows no attention: use --view attention",
      "command line: --candidate: view 'pool' shows no attention: use --view attention"]),
    ("a flow of no meaning", "--render a.png --scenario good.json --flow 'seq 0 row 3'",
     ["command line: --flow: 'row' is no word of a flow: write 'seq 3 query 70 head 1 layer 0 tile 64': a number for each "
      "of seq, query, head, layer and tile"]),
    ("a query that the step does not have", "--render a.png --scenario good.json --step 0 --flow 'seq 0 query 99'",
     ["command line: --flow: token 99 of sequence 0 is no query of this step: its queries are tokens 0 to 4"]),
    ("more tiles than the flow has", "--render a.png --scenario good.json --step 0 --flow 'seq 0' --flow-tiles 9",
     ["command line: --flow-tiles: 9 is outside [0, 2]: tiles of the flow"]),
    ("more tiles of a film than the flow has", "--render a.gif --scenario good.json --step 0 --flow 'seq 0' --flow-to 9",
     ["command line: --flow-to: 9 is outside [0, 2]: tiles of the flow"]),
    ("a film of a flow that is no film", "--render a.png --scenario good.json --step 0 --flow 'seq 0' --flow-to 2",
     ["command line: --flow-to: 'a.png' holds one picture: write a .gif, .webm or .mp4"]),
    ("a film of steps and of a flow", "--render a.gif --scenario good.json --to 1 --flow-to 2",
     ["command line: --flow-to: an animation goes through steps (--to), events of a tile (--tile-to) or tiles of a flow "
      "(--flow-to): leave all but one out"]),
    ("a film of steps in the view of a tile", "--render a.gif --scenario good.json --view tile --to 1",
     ["command line: --to: view 'tile' shows a tile of one step: its animation goes through the tile's events, to the one "
      "that --tile-to names"]),
    ("options of a tile in another view", "--render a.png --scenario good.json --view pool --tile 0 --tile-event 3 --tile-layout 64B",
     [f"command line: {option}: view 'pool' shows no tile: use --view tile"
      for option in ("--tile", "--tile-event", "--tile-layout")]),
    ("a candidate that is missing", "--render a.png --scenario good.json --candidate nowhere.npz",
     ["nowhere.npz: cannot be read: No such file or directory"]),
    ("a golden that is missing", "--render a.png nowhere.npz --view attention",
     ["nowhere.npz: cannot be read: No such file or directory"]),
    ("a candidate without a golden", "--candidate b.npz",
     ["command line: --candidate: needs a golden to be compared with: add its FILE"]),
    ("a run to compare with beside one tile", "--render a.png --scenario good.json --compare good.kvt --view tile",
     ["command line: --compare: view 'tile' shows one run: choose another view, such as --view pool"]),
    ("a run to compare with beside one flow", "--render a.png --scenario good.json --compare good.kvt --view attention",
     ["command line: --compare: view 'attention' shows one run: choose another view, such as --view pool"]),
    ("a run to compare with in a window of one tile", "good.json --compare good.kvt --view tile",
     ["command line: --compare: view 'tile' shows one run: choose another view, such as --view pool"]),
    ("a run to compare with without another", "--compare good.kvt",
     ["command line: --compare: needs a run to compare: add its FILE"]),
    ("a run to compare with that is missing", "--render a.png --scenario good.json --compare nowhere.json",
     ["nowhere.json: cannot be read: No such file or directory"]),
    ("a run to compare with that is a kernel", "--render a.png --scenario good.json --compare scale.ptx",
     ["scale.ptx: is not a scenario (JSON). It is a compiled kernel: run it with `kvscope ptx run scale.ptx`"]),
    ("a run to compare with for a kernel", "scale.ptx --arg 'f32[4]' --arg 2 --compare good.kvt",
     ["command line: --compare: a kernel does not use it: leave it out"]),
    ("a run to compare with of no name", "--render a.png --scenario good.json --compare ''",
     ["command line: --compare: the value is empty: write one, or leave it out: see 'kvscope-viewer --help'"]),
    ("theme of no meaning", "--render a.png --scenario good.json --theme blue",
     ["command line: --theme: 'blue' is not a valid value: choose one of dark, light, high-contrast: see 'kvscope-viewer --help'"]),
    ("unknown option", "--rendr a.png --scenario good.json",
     ["command line: '--rendr' is not an option of 'kvscope-viewer': did you mean --render? See 'kvscope-viewer --help'"]),
    ("option of pictures for a window", "good.json --size 100x100",
     ["command line: --size requires --render: see 'kvscope-viewer --help'"]),
    ("step that is no number", "--render a.png --scenario good.json --step last",
     ["command line: --step: 'last' is not a valid number: see 'kvscope-viewer --help'"]),
    ("step beyond the run", "--render a.png --scenario good.json --step 300",
     ["command line: --step: 300 is not in the run: it has 3 steps, and -1 is what came before the first"]),
    ("step before the first of all", "--render a.png --trace good.kvt --step -2",
     ["command line: --step: -2 is not in the run: it has 3 steps, and -1 is what came before the first"]),
    ("last step before the first", "--render a.gif --scenario good.json --step 2 --to 1",
     ["command line: --to: 1 comes before --step 2: give the first one first"]),
    ("last step beyond the run", "--render a.gif --scenario good.json --to 3",
     ["command line: --to: 3 is not in the run: it has 3 steps, and -1 is what came before the first"]),
    ("a film that is no film", "--render a.png --scenario good.json --to 2",
     ["command line: --to: 'a.png' holds one picture: write a .gif, .webm or .mp4"]),
    ("a speed, a motion and the end of a tile without a film", "--render a.svg --scenario good.json --view tile --fps 20 --motion --tile-to 3",
     [f"command line: {option}: 'a.svg' holds one picture: write a .gif, .webm or .mp4" for option in ("--motion", "--fps", "--tile-to")]),
    ("a film of steps and of a tile", "--render a.gif --scenario good.json --view tile --to 1 --tile-to 2",
     ["command line: --tile-to: an animation goes through steps (--to), events of a tile (--tile-to) or tiles of a flow (--flow-to): "
      "leave all but one out"]),
    ("a picture behind the end of a motion", "--render a.png --scenario good.json --between 1.5",
     ["command line: --between: 1.5 is outside [0, 1]: 0.5 is the middle of the motion"]),
    ("a picture before the begin of a motion, as a drawing", "--render a.svg --scenario good.json --between -0.5",
     ["command line: --between: -0.5 is outside [0, 1]: 0.5 is the middle of the motion",
      "command line: --between: 'a.svg': a picture of a motion has pixels: write a .png"]),
    ("a picture within a motion as a film", "--render a.gif --scenario good.json --between nan",
     ["command line: --between: nan is outside [0, 1]: 0.5 is the middle of the motion",
      "command line: --between: 'a.gif': a picture of a motion has pixels: write a .png, or use --motion"]),
    ("three runs", "other.json --render a.png --trace good.kvt",
     ["command line: FILE: 'other.json' is a second run, and a picture shows one: leave it out"]),
    ("sizes that the scale makes too large or too small", "--render a.png --scenario good.json --scale 8 --size 3000X7",
     ["command line: --size: a width of 3000 * 8 px is outside [64, 16384]: choose another size or --scale",
      "command line: --size: a height of 7 * 8 px is outside [64, 16384]: choose another size or --scale"]),
    ("sizes with words behind them or no second number", "--render a.png --scenario good.json --size 100x",
     ["command line: --size: '100x' is not WIDTHxHEIGHT in pixels, such as 1600x1000"]),
    ("a size with a unit, and a motion in a file of no format", "--render a.bmp --scenario good.json --size 100x100px --between 0.5",
     ["command line: --render: 'a.bmp' has no known extension: use .png, .svg, .pdf, .tikz, .gif, .webm or .mp4",
      "command line: --size: '100x100px' is not WIDTHxHEIGHT in pixels, such as 1600x1000"]),
    ("sizes of another form", "--render a.png --scenario good.json --size 100*100",
     ["command line: --size: '100*100' is not WIDTHxHEIGHT in pixels, such as 1600x1000"]),
    ("a window's text too large", "good.json --font-scale 3", ["command line: --font-scale: 3 is outside [0.7, 2.5]: 1 is 13 px"]),
    ("a window's step without a run, and its candidate", "--step 3 --candidate b.npz --font-scale 0",
     ["command line: --candidate: needs a golden to be compared with: add its FILE",
      "command line: --step: needs a run to show: add its FILE",
      "command line: --font-scale: 0 is outside [0.7, 2.5]: 1 is 13 px"]),
    ("a changed scenario without its file", "--changed",
     ["command line: --changed: needs --simulate FILE: the file that the scenario was in"]),
    ("a simulation without a trace", "--simulate good.json",
     ["command line: --simulate: needs --trace FILE: where the run's trace goes"]),
    ("an empty step", "--render a.png --scenario good.json --step ''",
     ["command line: --step: the value is empty: write one, or leave it out: see 'kvscope-viewer --help'"]),
    ("an empty file", "--render a.png ''",
     ["command line: FILE: the value is empty: write one, or leave it out: see 'kvscope-viewer --help'"]),
    ("selection outside the run", "--render a.png --scenario good.json --select 'block 9'",
     ["command line: --select: 'block 9': block 9 is outside [0, 9)"]),
    ("selection that the step does not have", "--render a.png --scenario good.json --step -1 --select 'seq 0'",
     ["command line: --select: 'seq 0' at step -1: Sequence 0: has not arrived: choose another step with --step"]),
    ("selection of a token that is computed later", "--render a.png --scenario good.json --step 0 --select 'token 0:6'",
     ["command line: --select: 'token 0:6' at step 0: Sequence 0, token 6: not in the cache: the first step with it is 2: choose "
      "--step 2"]),
    ("selection of the last token, which no step computes", "--render a.png --scenario good.json --step 1 --select 'token 0:7'",
     ["command line: --select: 'token 0:7' at step 1: Sequence 0, token 7: not in the cache: the run never stores it: choose an "
      "earlier token"]),
    ("selection of time", "--render a.png --scenario good.json --select 'step 1'",
     ["command line: --select: 'step 1' is not a sequence, page, token or block: select the time with --step"]),
    ("selection of an event", "--render a.png --scenario good.json --select evicted",
     ["command line: --select: 'evicted' is not a sequence, page, token or block: select the time with --step"]),
    ("folder that is not there", "--render no/a.png --scenario good.json",
     ["no/a.png: cannot be written: the folder 'no' does not exist"]),
    ("folder in place of a file", "--render dir.png --scenario good.json", ["dir.png: is a folder: name a file in it"]),
    ("too many frames", "--render a.gif --scenario many.json",
     ["a.gif: 10005 frames are more than 10000: choose fewer steps"]),
    ("step of no run", "--step 3", ["command line: --step: needs a run to show: add its FILE"]),
    ("two runs in a window", "good.json --trace good.kvt",
     ["command line: FILE: 'good.json' is a second run, and a window shows one: leave it out"]),
    ("a completion script beside other options", "good.json --completion bash --view pool",
     ["command line: FILE: --completion does not use it: leave it out",
      "command line: --view: --completion does not use it: leave it out"]),
    ("a simulation beside other options", "--simulate good.json --trace b.kvt --view pool --step 1",
     ["command line: --view: --simulate does not use it: leave it out",
      "command line: --step: --simulate does not use it: leave it out"]),
    ("tiles of a flow in an animation of steps", "--render a.gif --scenario good.json --flow-tiles 1",
     ["command line: --flow-tiles: an animation of steps shows the whole flow of each: add --flow-to for one of the flow's tiles"]),
    ("tiles of a flow that is not computed", "--render a.png --scenario good.json --step -1 --flow-tiles 1",
     ["command line: --flow-tiles: the flow is not computed: leave it out to see the reason"]),
    ("parts of a tile that is not staged", "--render a.gif --scenario good.json --tile 'seq 0 k gather4' --tile-event 1 --tile-to 2 "
     "--tile-layout 64B",
     [f"command line: {option}: the tile is not staged: leave it out to see the reason"
      for option in ("--tile-event", "--tile-to", "--tile-layout")]),
    ("a row of a tile that is not staged", "--render a.png --scenario good.json --tile 'seq 0 k gather4' --select 'row 1'",
     ["command line: --select: 'row 1' is part of a tile, and the tile is not staged: leave it out to see the reason"]),
    ("a row of a tile in another view", "--render a.png --scenario good.json --select 'row 1'",
     ["command line: --select: 'row 1' is part of a tile: use --view tile"]),
    ("a row that the tile does not have", "--render a.png --scenario good.json --view tile --select 'row 4'",
     ["command line: --select: 'row 4': No such row of the tile: choose another one"]),
    ("a lane that the tile does not have", "--render a.png --scenario good.json --view tile --select 'lane 99'",
     ["command line: --select: 'lane 99': Lane 99: 0 registers: choose another one"]),
    ("one file given twice to a window", "good.json --scenario good.json",
     ["command line: FILE: 'good.json' is a second run, and a window shows one: leave it out"]),
    ("a launch of a scenario", "good.json --block 32 --arg 3",
     [f"command line: {option}: launches a kernel, and 'good.json' is no PTX" for option in ("--block", "--arg")]),
    ("a launch of nothing", "--grid 2", ["command line: --grid: needs the PTX file of a kernel: add its FILE"]),
    ("a launch of a picture of a run", "--render a.png --scenario good.json --smem 4",
     ["command line: --smem: needs the PTX file of a kernel: add its FILE"]),
    ("options of a run for a kernel", "scale.ptx --arg 'f32[4]' --arg 2 --view pool --candidate b.npz",
     ["command line: --view: a kernel does not use it: leave it out",
      "command line: --candidate: a kernel does not use it: leave it out"]),
    ("options of a picture of a run for a kernel", "scale.ptx --arg 'f32[4]' --arg 2 --render a.png --select 'block 7' --motion",
     ["command line: --motion: a kernel does not use it: leave it out",
      "command line: --select: a kernel does not use it: leave it out"]),
    ("a kernel as curves, before its beginning", "scale.ptx --arg 'f32[4]' --arg 2 --render a.svg --step -1",
     ["command line: --render: 'a.svg': the picture of a kernel is a .png",
      "command line: --step: -1 is below 0: a kernel begins at step 0"]),
    ("a step behind the end of a kernel", "scale.ptx --arg 'f32[4]' --arg 2 --render a.png --step 13",
     ["command line: --step: 13 is after the end of the launch, which has 12 warp instructions"]),
    ("a kernel whose launch cannot be started", "scale.ptx --block 2,2,2,2",
     ["command line: --block: '2,2,2,2' has 4 numbers: at most 3: see 'kvscope-viewer --help'"]),
    ("a kernel without a display", "scale.ptx",
     ["no display: neither DISPLAY nor WAYLAND_DISPLAY is set; without one, write a picture: kvscope-viewer --render "
      "picture.png FILE"]),
    ("no display", "good.json",
     ["no display: neither DISPLAY nor WAYLAND_DISPLAY is set; without one, write a picture: kvscope-viewer --render "
      "picture.png FILE"]),
]


class OwnWords(Faults):
    def test_each_to_the_letter(self):
        os.mkdir(self.path("dir.png"))
        write_json(self.path("many.json"), {**GOOD, "cache": {"page_size": 16, "blocks": 1000},
                                            "requests": {"list": [{"prompt_tokens": 5, "generate_tokens": 10005}]},
                                            "tile": {"BN": 16, "BK": 8}})
        for situation, line, faults in OWN_WORDS:
            with self.subTest(situation):
                self.assertEqual(self.faults(line), faults)

    def test_a_file_of_another_kind_is_the_same_fault_in_a_window_as_in_a_picture(self):
        """The window opened it by its content, and the option counted for nothing."""
        write_json(self.path("scenario.json"), GOOD)
        shutil.copy(self.path("good.kvt"), self.path("trace.kvt"))
        fine("golden", "good.json", "--out", "golden.npz", cwd=self.folder.name)
        write_json(self.path("result.json"), {"kvscope_grade": 1, "lab": "02_rows"})
        self.put("empty.json", "")
        shutil.copy(self.path("good.kvt"), self.path("trace.json"))
        for option, right in (("--scenario", "scenario.json"), ("--trace", "trace.kvt")):
            for name in ("scenario.json", "trace.kvt", "golden.npz", "result.json", "empty.json", "trace.json"):
                if name == right or (option, name) in (("--scenario", "empty.json"), ("--trace", "trace.json")):
                    continue  # a file of its kind, or one that the window reports
                with self.subTest(option=option, file=name):
                    lines = self.faults(f"{option} {name}")
                    self.assertEqual(lines, self.faults(f"{option} {name} --render a.png"))
                    self.assertEqual(len(lines), 1)
                    self.assertIn("is not a " + option.removeprefix("--"), lines[0])
        self.assertEqual(self.faults("--scenario result.json"),
                         ["result.json: is not a scenario (JSON). It is the result of a lab's check: open it with kvscope-viewer "
                          "result.json"])
        for line in ("--scenario scenario.json", "--trace trace.kvt", "--trace trace.json", "golden.npz", "result.json",
                     "--scenario empty.json", "--trace missing.json", "--scenario missing.kvt"):
            self.assertTrue(self.faults(line)[0].startswith("no display: "), line)

    def test_a_picture_that_is_one_of_its_inputs_by_another_name(self):
        """A link from a.png to the scenario: the picture replaced the scenario."""
        fine("golden", "good.json", "--out", "golden.npz", cwd=self.folder.name)
        for source, option in (("good.json", "--scenario"), ("good.kvt", "--trace"), ("golden.npz", "FILE")):
            with open(self.path(source), "rb") as file:
                before = file.read()
            for make in (os.symlink, os.link):
                make(self.path(source), self.path("a.png"))
                words = source if option == "FILE" else f"{option} {source}"
                self.assertEqual(self.faults(f"{words} --render a.png"),
                                 [f"command line: --render: 'a.png' is also given as {option}, and would be replaced: pass another file"])
                os.remove(self.path("a.png"))
            with open(self.path(source), "rb") as file:
                self.assertEqual(file.read(), before)
        os.symlink("golden.npz", self.path("a.png"))
        for option in ("--candidate", "--compare"):
            self.assertEqual(self.faults(f"good.json --render a.png {option} golden.npz"),
                             [f"command line: --render: 'a.png' is also given as {option}, and would be replaced: pass another file"])

    def test_the_result_of_a_lab_opens_at_its_own_place(self):
        """The options were dropped."""
        write_json(self.path("result.json"), {"kvscope_grade": 1, "lab": "02_rows"})
        self.assertEqual(self.faults("result.json --step 1 --view pool --candidate b.npz --compare good.kvt"),
                         [f"command line: {option}: 'result.json' is the result of a lab's check, which opens at its first failed "
                          "test: leave it out" for option in ("--step", "--view", "--candidate", "--compare")])

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_that_may_not_be_written_to(self):
        os.mkdir(self.path("locked"), 0o500)
        for ending in ("png", "svg", "pdf", "tikz", "gif"):
            self.assertEqual(self.faults(f"--render locked/a.{ending} --scenario good.json"),
                             [f"locked/a.{ending}: cannot be written: Permission denied"])

    def test_options_of_a_window_are_taken(self):
        for line in ("--theme light", "--theme high-contrast --font-scale 0.7", "--view tile", "good.json --view pool --step 1 --theme dark",
                     "good.json --candidate b.npz --font-scale 2.5", "good.json --compare good.kvt --view pool", ""):
            self.assertTrue(self.faults(line)[0].startswith("no display: neither DISPLAY "), line)

    def test_a_display_that_does_not_answer(self):
        words = ["no display: ':4711' does not answer; without one, write a picture: kvscope-viewer --render "
                 "picture.png FILE"]
        self.assertEqual(self.faults("good.json", env=no_display(DISPLAY=":4711")), words)
        self.assertEqual(self.faults("good.json", env=no_display(QT_QPA_PLATFORM="xcb", DISPLAY=":4711")), words)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = program.subprocess.run([program.VIEWER, "--completion", "bash"], stdout=full, env=no_display(),
                                          stderr=program.subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (2, "kvscope-viewer: standard output could not be written: is the disk full?\n"))


if __name__ == "__main__":
    program.main()
