"""Drawings: well-formed and escaped SVG of bounded size whose shapes agree with the numbers that they draw."""
import json
import os
import pathlib
import re
import shutil
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import kvscope as kv
from golden_test import inputs
from launch_test import RACE
from reference import paged_attention
from kvscope import _show
from kvscope._svg import PALETTES, Drawing, contrast, escape, fit, heat_role, wrap

SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / "apps" / "scenarios"
SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = 450_000  # of any drawing


@pytest.fixture(scope="module")
def first_light():
    return kv.run(SCENARIOS / "first_light.json")


def problem_of(**options):
    q, cache, table, lengths = inputs(**options)
    return kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths)


def rejected():
    """A verdict over four sequences; sequence 0 reads a page of sequence 3."""
    q, cache, table, lengths = inputs()
    g = kv.golden(kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths))
    wrong = table.copy()
    wrong[0, 1] = table[3, 2]
    return kv.verify(paged_attention(q, cache, wrong, lengths)[0].astype(np.float32), g)


def drawn(first_light):
    race = kv.Module(RACE)["race"].launch(block=128, args=[np.zeros(128, np.uint32)]).races[0]
    return dict(problem=problem_of(), golden=kv.golden(problem_of()), verdict=rejected(), run=first_light,
                step=first_light.step(6), explanation=first_light.explain(3, 65), shared=first_light.shared(3, 65),
                fragment=kv.fragment("mma.m16n8k16.c"), race=race)


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(SVG + "text")]


def tips(svg):
    return [element.text for element in ET.fromstring(svg).iter(SVG + "title")]


def test_each_object_has_a_drawing_in_both_themes_inside_its_bounds(first_light):
    for name, thing in drawn(first_light).items():
        for theme in ("auto", "light", "dark"):
            root = ET.fromstring(thing.picture(theme)._repr_svg_())
            width, height = (float(root.get(side)) for side in ("width", "height"))
            for box in root.iter(SVG + "rect"):
                x, y, w, h = (float(box.get(key)) for key in ("x", "y", "width", "height"))
                assert -1 <= x and x + w <= width + 1 and -1 <= y and y + h <= height + 1, (name, box.attrib)
            for words in root.iter(SVG + "text"):
                assert 0 <= float(words.get("x")) <= width and 0 < float(words.get("y")) <= height, (name, words.text)
            styled = set(re.findall(r"[.]([fs]-[\w-]+)\{", root.find(SVG + "style").text))
            used = {c for e in root.iter() for c in e.get("class", "").split() if re.match("[fs]-", c)}
            assert used <= styled, (name, used - styled)
        assert thing._repr_html_().startswith("<div><svg") and "<script" not in thing._repr_html_()


def test_text_of_files_is_escaped_and_unprintable_characters_are_replaced():
    scenario = {"kvscope_scenario": 1, "name": "<script>alert(1)</script>\" & \x0b", "model": "tiny",
                "cache": {"page_size": 4, "blocks": 8},
                "requests": {"list": [{"arrival_us": 0, "prompt_tokens": 5, "generate_tokens": 2}]}}
    run = kv.run(scenario)
    assert "<script" not in run._repr_html_() and "&lt;script&gt;" in run._repr_svg_()
    ET.fromstring(run._repr_svg_())
    assert escape("a<\x00>&\"") == "a&lt;\ufffd&gt;&amp;&quot;"


def test_a_drawing_of_many_objects_is_bounded_and_says_what_it_leaves_out():
    lengths = tuple(int(n) for n in np.random.default_rng(1).integers(0, 90, 300))
    rng = np.random.default_rng(2)
    q = rng.standard_normal((300, 40, 8)).astype(np.float32)
    cache = rng.standard_normal((900, 2, 4, 2, 8)).astype(np.float32)
    p = kv.Problem.vllm(q, cache, block_table=rng.integers(0, 900, (300, 23)).astype(np.int32),
                        seq_lens=np.array(lengths, np.int32))
    g = kv.golden(p)
    verdict = kv.verify(g.o.astype(np.float32) + (np.arange(300) == 211)[:, None, None], g)
    for thing, words in ((p, "288 more sequences"), (g, "in groups"), (verdict, "28 groups"),
                         (kv.fragment("wgmma.m64n256.d"), "first 32 x 32 of 64 x 256")):
        svg = thing._repr_svg_()
        assert len(svg) < MOST_BYTES and words in svg, (len(svg), words)
    # The group of the one wrong query is in the worst color, and no other.
    worst = [tip for tip in tips(verdict._repr_svg_()) if float(re.search(r"error (\S+)x", tip)[1]) > 64]
    assert len({tip.split(" head ")[0].split(" dim ")[0] for tip in worst if tip.startswith("seq")}) == 1
    big = kv.run(SCENARIOS / "real_traffic_slice.json", golden=False)
    assert len(big._repr_svg_()) < MOST_BYTES and "maximum of about 3 steps" in big._repr_svg_()
    assert len(big.step(34)._repr_svg_()) < MOST_BYTES and "2 more sequences" in big.step(34)._repr_svg_()


def test_errors_are_those_of_the_bounds():
    q, cache, table, lengths = inputs()
    g = kv.golden(kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths))
    out = g.o.astype(np.float32)
    out[3, 1, 5] += 0.25
    errors = kv.verify(out, g).errors
    ratio = np.abs(out.astype(np.float64) - g.o) / g.bounds_for("f32")
    np.testing.assert_allclose(errors.ratio, ratio, rtol=1e-5)
    assert errors.sequences == [0, 1, 2, 3] and errors.positions == [9, 2, -1, 15] and errors.pages[3] == 3


def test_a_verdict_shows_criteria_the_map_and_the_cause():
    svg = rejected()._repr_svg_()
    words = texts(svg)
    assert words[0] == "FAIL" and "o: bound" in words and "seq 0, pos 9" in words
    assert any("page 1 of sequence 0 was read from block" in w for w in words)
    failing = [tip for tip in tips(svg) if float(re.search(r"error (\S+)x", tip)[1]) > 1]
    assert failing and all(tip.startswith("seq 0, pos 9 head") or tip.startswith(" dim") for tip in failing)


def test_a_problem_shows_each_page_with_its_block():
    p = problem_of()
    shown = [re.match(r"page (\d+) of sequence (\d+): block (\d+), (\d+) of 4 keys", tip) for tip in
             tips(p._repr_svg_())]
    got = {(int(m[2]), int(m[1])): (int(m[3]), int(m[4])) for m in shown}
    q, _, table, lengths = inputs()
    want = {(b, page): (int(table[b, page]), min(4, int(n) - 4 * page)) for b, n in enumerate(lengths)
            for page in range(-(-int(n) // 4))}
    assert got == want
    assert (p.lookup_table[table == -1] == -1).all() and ("kv_cache", "f32", [16, 2, 4, 2, 8]) in p.tensors_info()


def test_a_step_shows_holders_and_links_the_selection(first_light):
    step = first_light.step(6)
    picture = _show.draw_step(step, "3:65")
    assert "page 4 of sequence 3, tokens 64 to 65: block 9" in tips(picture.svg())
    assert "block 9: page 4 of sequence 3" in tips(picture.svg()) and "C" in picture.svg()
    assert step.pages_in(9) == [(3, 4)] and [seq for seq, _ in step.pages_in(0)] == step.batch
    held = sum(1 for block in range(step.blocks) if step.pages_in(block))
    assert held == first_light.steps["used_blocks"][6] and f"{held} of 32 blocks" in texts(picture.svg())[1]


def test_steps_are_the_curve_of_the_report(first_light):
    steps = first_light.steps
    assert len(steps["running"]) == first_light.report["run"]["steps"]
    assert max(steps["used_blocks"]) == first_light.report["run"]["peak_used_blocks"]
    assert sum(steps["finished"]) == first_light.report["run"]["finished"]


def test_shared_memory_is_the_swizzle_of_the_explained_address(first_light):
    image = first_light.shared(3, 65)
    explained = first_light.explain(3, 65)
    byte = int(re.search(r"shared byte (\d+)", explained["swizzle"])[1])
    assert (image.row[byte // 16], image.column[byte // 16]) == (1, 0) and image.bytes == 4096
    for line in range(8):  # TMA's 128B swizzle: chunk c of row r is at c ^ r % 8
        for chunk in range(8):
            assert image.column[line * 8 + (chunk ^ line)] == 8 * chunk and image.row[line * 8 + chunk] == line
    assert image.conflicts == 0 and (image.copy[image.row < 0] == -1).all()
    swizzle_off = kv.run(SCENARIOS / "swizzle_off.json", golden=False)
    seq = swizzle_off.step(0).batch[0]
    assert swizzle_off.shared(seq, 0, step=0, path="lds").conflicts > 0
    with pytest.raises(kv.IndexError):
        first_light.shared(99, 0)
    with pytest.raises(kv.IndexError):
        first_light.tile(3, -1)
    with pytest.raises(kv.InputError, match="tma"):
        first_light.tile(3, 0, path="cp.async")


def test_a_fragment_is_a_bijection_of_lanes_and_elements():
    for name in kv.fragments():
        f = kv.fragment(name)
        pairs = set(zip(f.lane.reshape(-1).tolist(), f.element.reshape(-1).tolist()))
        assert len(pairs) == f.lane.size == f.lanes * f.elements
    c = kv.fragment("mma.m16n8k16.c")  # PTX ISA: lane = 4 * (row % 8) + column / 2, register = 2 * (row / 8) + column % 2
    row, column = np.indices((16, 8))
    assert (c.lane == 4 * (row % 8) + column // 2).all() and (c.register == 2 * (row // 8) + column % 2).all()
    a = kv.fragment("mma.m16n8k16.a")  # two bf16 elements in a register
    row, column = np.indices((16, 16))
    assert (a.lane == 4 * (row % 8) + column % 8 // 2).all() and (a.register == row // 8 + 2 * (column // 8)).all()
    with pytest.raises(kv.InputError, match="mma.m16n8k16"):
        kv.fragment("mma.m16n8k16")


def test_a_race_in_compiled_cuda_has_the_names_of_the_source():
    kernel = kv.load(pathlib.Path(__file__).resolve().parents[2] / "docs" / "notebooks" / "neighbor.ptx")["no_barrier"]
    race = kernel.launch(block=64, args=[np.zeros(64, np.float32), np.zeros(64, np.float32)]).races[0]
    words = texts(race._repr_svg_())
    assert race.address_text == "4 bytes at tile + 4, shared"
    assert "Race: read after write" in words and not any("_Z" in word for word in words), words


@pytest.mark.parametrize("keys", [1, 4, 5, 8, 15, 16])
def test_the_block_of_a_partial_page_is_written_on_one_color(keys):
    q, cache = np.zeros((1, 2, 4), np.float32), np.zeros((20, 2, 16, 1, 4), np.float32)
    problem = kv.Problem.vllm(q, cache, block_table=np.array([[17]], np.int32), seq_lens=np.array([keys], np.int32))
    [number] = [float(one.get("x")) for one in ET.fromstring(problem._repr_svg_()).iter("{http://www.w3.org/2000/svg}text")
                if "".join(one.itertext()) == "17"]
    fill = 190 + 42 * keys / 16  # [px] right edge of the page's keys
    assert number >= fill or number + 2 * 6.6 <= fill or keys == 16


def test_a_race_names_both_accesses():
    race = kv.Module(RACE)["race"].launch(block=128, args=[np.zeros(128, np.uint32)]).races[0]
    words = texts(race._repr_svg_())
    assert [p["action"] for p in race.parties] == ["write", "read"] and race.address_text == "4 bytes at tile + 0, shared"
    assert {"thread 0 (warp 0 lane 0)", "first: write", "then: read", "no barrier"} <= set(words)


def test_colors_are_readable():
    for theme, colors in PALETTES.items():
        for role in ("text", "quiet", "good", "warning", "accent"):
            assert contrast(colors[role], colors["card"]) >= 4.4, (theme, role)
        for role, color in colors.items():
            if f"ink-{role}" in colors:
                assert contrast(color, colors[f"ink-{role}"]) >= 4.4, (theme, role)
    assert [heat_role(r) for r in (0, .25, 1, 1.001, 4, 64, 65, float("nan"))] == [
        f"heat{i}" for i in (0, 1, 2, 3, 3, 4, 5, 5)]


def test_words_are_cut_and_wrapped_to_their_width():
    assert fit("a  b\nc", 100, 10) == "a b c" and fit("m" * 30, 57, 10) == "m" * 9 + "\u2026"
    lines = wrap("one two three four " + "x" * 40, 60, 10)
    assert all(len(line) <= 10 for line in lines) and " ".join(lines).startswith("one two three four x")
    assert Drawing(100, "t").svg("light").count("@media") == 0


def without_viewer(monkeypatch):
    monkeypatch.setenv("KVSCOPE_VIEWER", "")


def test_show_falls_back_to_the_module_and_says_so(first_light, monkeypatch, tmp_path):
    without_viewer(monkeypatch)
    picture = kv.show(first_light, step=6, select="3:65", theme="dark")
    assert "kvscope-viewer was not found" in repr(picture) and "kvscope-viewer is not installed" in picture._repr_svg_()
    assert picture._repr_png_() is None and "block 9" in picture._repr_svg_()
    picture.save(tmp_path / "step.svg")
    ET.parse(tmp_path / "step.svg")
    with pytest.raises(kv.InputError, match=".svg or a .png"):
        picture.save(tmp_path / "step.gif")
    if shutil.which("rsvg-convert"):
        picture.save(tmp_path / "step.png")
        assert (tmp_path / "step.png").read_bytes().startswith(b"\x89PNG")
    else:
        with pytest.raises(kv.UnsupportedError, match="rsvg-convert"):
            picture.save(tmp_path / "step.png")
    with pytest.raises(kv.InputError, match="3:37"):
        kv.show(first_light, step=6, select="everything")
    with pytest.raises(kv.IndexError):
        kv.show(first_light, step=99)
    assert "25 steps" in kv.show(first_light, view="timeline")._repr_svg_()
    assert "FAIL" in kv.show(rejected())._repr_svg_()
    for wrong in (dict(what=3), dict(what=first_light, theme="pink"), dict(what=first_light, format="gif"),
                  dict(what=rejected(), step=3)):
        with pytest.raises(kv.InputError):
            kv.show(**wrong)


def test_show_passes_the_run_to_the_viewer(first_light, monkeypatch, tmp_path):
    """A stand-in keeps its arguments and the scenario, and writes a picture."""
    viewer = tmp_path / "kvscope-viewer"
    viewer.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" >" + str(tmp_path / "args") + "\ncp \"$4\" " +
                      str(tmp_path / "scenario.json") + "\ncase \"$*\" in *'--select 9:9'*) echo 'no sequence 9' >&2; "
                      "exit 2;; esac\nprintf '\\211PNG' >\"$2\"\n")
    viewer.chmod(0o755)
    monkeypatch.setenv("KVSCOPE_VIEWER", str(viewer))
    picture = kv.show(first_light, step=6, select="3:65")
    assert picture._repr_png_() == b"\x89PNG" and picture._repr_svg_() is None and str(viewer) in repr(picture)
    arguments = (tmp_path / "args").read_text().split("\n")
    assert arguments[4:] == ["--view", "overview", "--theme", "dark", "--size", "1600x1000", "--step", "6", "--select",
                             "3:65", ""]
    assert kv.run(tmp_path / "scenario.json", golden=False).steps == first_light.steps
    picture.save(tmp_path / "it.png")
    with pytest.raises(kv.InputError, match="format"):
        picture.save(tmp_path / "it.svg")
    with pytest.raises(kv.InputError, match="no sequence 9"):
        kv.show(first_light, select="9:9")
    monkeypatch.setenv("KVSCOPE_VIEWER", str(tmp_path / "missing"))
    with pytest.raises(kv.InputError, match="KVSCOPE_VIEWER"):
        kv.show(first_light)


def test_show_gives_the_viewer_the_whole_path_of_a_request_trace(monkeypatch, tmp_path):
    (tmp_path / "traffic.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n"
                                          "2023-11-16 18:17:03.9799600,40,3\n2023-11-16 18:17:04.0319600,20,2\n")
    scenario = {"kvscope_scenario": 1, "name": "t", "model": "tiny", "cache": {"page_size": 4, "blocks": 64},
                "requests": {"file": {"path": "traffic.csv"}}}
    (tmp_path / "t.json").write_text(json.dumps(scenario))
    run = kv.run(tmp_path / "t.json", golden=False)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    again = kv.run(_show._scenario_file(run, str(folder)), golden=False)
    assert again.steps == run.steps and len(run.steps["running"]) > 1
    recorded = kv.run(SCENARIOS / "first_light.json", requests=tmp_path / "traffic.csv", golden=False)
    assert kv.run(_show._scenario_file(recorded, str(folder)), golden=False).steps == recorded.steps


def test_the_installed_viewer_draws_the_run(first_light, monkeypatch):
    monkeypatch.delenv("KVSCOPE_VIEWER", raising=False)
    if _show.find_viewer() is None:
        pytest.skip("kvscope-viewer is not built here: its stand-in is tested above")
    assert kv.show(first_light, step=6, select="3:65", size=(800, 500))._repr_png_().startswith(b"\x89PNG")
    svg = kv.show(first_light, step=6, view="pool", size=(800, 500), format="svg")
    assert "<svg" in svg._repr_svg_() and svg._repr_png_() is None


def verdict_of_a_wrong_page():
    """Every number comes from golden outputs, so that the drawing is the same on each machine."""
    rng = np.random.default_rng(5)
    q, cache = (rng.integers(-32, 33, shape).astype(np.float32) / 16 for shape in ((5, 4, 16), (16, 2, 4, 2, 16)))
    table = np.array([[13, 8, 15, 4], [2, 11, -1, -1], [9, 7, 0, -1], [5, -1, -1, -1], [3, 6, 10, 14]], np.int32)
    lengths = np.array([13, 7, 9, 3, 16], np.int32)
    wrong = table.copy()
    wrong[2, 1] = 11
    outputs = [kv.golden(kv.Problem.vllm(q, cache, block_table=t, seq_lens=lengths)) for t in (table, wrong)]
    return kv.verify(outputs[1].o.astype(np.float32), outputs[0])


def test_pictures_of_the_pages_are_as_drawn_now(first_light):
    """KVSCOPE_UPDATE=1 draws them again."""
    kernel = kv.Module(RACE)["race"]
    pictures = {"verdict": verdict_of_a_wrong_page()._repr_svg_(),
                "step": _show.draw_step(first_light.step(6), "3:65").svg(),
                "race": kernel.launch(block=128, args=[np.zeros(128, np.uint32)]).races[0]._repr_svg_()}
    folder = pathlib.Path(__file__).resolve().parents[2] / "docs" / "notebooks"
    for name, svg in pictures.items():
        if os.environ.get("KVSCOPE_UPDATE"):
            (folder / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")
        assert (folder / f"{name}.svg").read_text(encoding="utf-8") == svg + "\n", f"{name}.svg: KVSCOPE_UPDATE=1 draws it again"
