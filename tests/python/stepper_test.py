"""The notebook widget: its state in Python, and its script driven by node with a stand-in for the page."""
import json
import pathlib
import re
import shutil
import subprocess

import pytest

import kvscope as kv
from kvscope import _stepper

SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / "apps" / "scenarios"

# A page of as few parts as the script uses, and a model that keeps what the script sets.
PAGE = """
import widget from "%s";
const make = (name) => ({ name, style: {}, children: [], heard: {}, setAttribute() {}, focus() {},
  append(...more) { this.children.push(...more); }, addEventListener(kind, act) { this.heard[kind] = act; } });
globalThis.document = { createElement: make };
const values = { step: 6, steps: 25, selection: "", picture: "<svg>one</svg>", words: "5 running" };
const watchers = new Set();
const model = { get: (name) => values[name], save_changes() { watchers.forEach((act) => act()); },
  set(name, value) { values[name] = value; }, on(_, act) { watchers.add(act); }, off(_, act) { watchers.delete(act); } };
const el = make("div");
const leave = widget.render({ model, el });
const [bar, picture] = el.children;
const [slider, label, words] = bar.children;
const out = [];
const say = () => out.push([values.step, values.selection]);
let stopped = 0;
const key = (name) => {
  picture.heard.keydown({ key: name, preventDefault() { stopped++; }, stopPropagation() { stopped++; } });
  say();
};
const click = (select) => {
  picture.heard.click({ target: { closest: () => (select ? { dataset: { select } } : null) } });
  say();
};
["ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home", "ArrowLeft", "x"].forEach(key);
click("block 7"); click("block 8"); click("block 8"); click("block 7"); click(null);
click("block 7"); key("Escape");
slider.value = "12"; slider.heard.input(); say();
slider.heard.keydown({ key: "ArrowLeft", preventDefault() { stopped++; }, stopPropagation() { stopped++; } }); say();
values.picture = "<svg>two</svg>"; model.save_changes();
out.push([label.textContent, words.textContent, picture.innerHTML, slider.max, stopped]);
leave();
out.push(watchers.size);
console.log(JSON.stringify(out));
"""


@pytest.fixture(scope="module")
def run():
    return kv.run(SCENARIOS / "first_light.json", golden=False)


def test_the_state_is_drawn_from_step_and_selection(run):
    state = kv.StepperState(run, 6, "block 9")
    assert state.steps == 25 and "Step 6" in state.picture
    assert state.words == "5 running, 0 waiting; block 9: page 4 of sequence 3"
    state.select("block 20")
    assert state.words.endswith("block 20: no token of the batch")
    state.select("3:65")
    assert state.words.endswith("token 3:65 is in block 9")
    state.select("3:900")
    assert state.words.endswith("token 3:900 is not in the batch")
    state.select("seq 3")
    assert state.words.endswith("sequence 3 runs")
    state.go(99)
    assert state.step == 24
    state.go(-1)
    assert state.step == 0 and state.words == "1 running, 0 waiting; sequence 3 is not in the batch"
    for wrong in ("everything", "block x", "3:", "seq"):
        with pytest.raises(kv.InputError, match="block 7"):
            state.select(wrong)
    with pytest.raises(kv.IndexError, match=r"block 32 is outside \[0, 32\)"):
        state.select("block 32")
    assert state.selection == "seq 3"


def test_each_click_target_is_a_selection(run):
    state = kv.StepperState(run, 6)
    targets = set(re.findall(r'data-select="([^"]+)"', state.picture))
    assert {f"block {block}" for block in range(32)} == targets
    for target in targets:
        state.select(target)


def test_the_script_reports_keys_clicks_and_the_slider(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: apt-get install nodejs")
    (tmp_path / "widget.mjs").write_text(_stepper.SCRIPT.read_text())
    (tmp_path / "page.mjs").write_text(PAGE % "./widget.mjs")
    done = subprocess.run([node, "page.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        [7, ""], [6, ""], [24, ""], [24, ""], [0, ""], [0, ""], [0, ""],
        [0, "block 7"], [0, "block 8"], [0, ""], [0, "block 7"], [0, ""],
        [0, "block 7"], [0, ""], [12, ""], [11, ""],
        ["step 11 of 24", "5 running", "<svg>two</svg>", 24, 16], 0]


def test_the_widget_keeps_its_state_in_step(run):
    try:
        import anywidget  # noqa: F401
    except ImportError:
        with pytest.raises(kv.UnsupportedError, match=r"kvscope\[notebook\]"):
            kv.stepper(run)
        return
    widget = kv.stepper(run, step=6)
    widget.selection = "block 9"
    assert widget.words.endswith("page 4 of sequence 3")
    widget.step = 300
    assert widget.step == 24 and "Step 24" in widget.picture
    widget.selection = "nonsense"
    assert widget.selection == ""
