"""Where claims take numbers from: code blocks of a handout, constants of the graders, starter files, and what kvscope prints."""
import json
import math
import re
import struct
import subprocess
import sys
import tempfile

from claims import COURSE, ROOT

sys.path.append(str(ROOT / "docs" / "figures"))
from program import links_of

PROGRAM = ""  # kvscope, set by the test
SCENARIOS = ROOT / "apps" / "scenarios"


def block_of(page, name):
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(rf"(?s)```json {re.escape(name)}\n(.*?)\n```", text)[1])


def block(lab, name):
    """A JSON file that the handout shows."""
    return block_of(lab.readme, name)


def constant(file, name):
    """A numeric constant of apps/labs: `name = 1.25` or `name{4, 8}`."""
    text = (ROOT / "apps" / "labs" / file).read_text(encoding="utf-8")
    found = re.search(rf"\b{name} ?(?:= |\{{)([^;}}]*?)(?:[,;}}] ?(?:k\w+ =|$)|[;}}])", text, re.M)
    values = [float(v) if "." in v else int(v, 0) for v in found[1].replace("'", "").split(", ")]
    return values[0] if len(values) == 1 else values


def starter(lab, name):
    return (lab.folder / "starter" / name).read_text(encoding="utf-8")


def staff(lab, name):
    return (COURSE / "staff" / lab.folder.name / name).read_text(encoding="utf-8")


def number_in(text, pattern):
    """The number that the group of a pattern matches, once in a text."""
    found = re.findall(pattern, text)
    if len(found) != 1:
        raise AssertionError(f"'{pattern}' matches {len(found)} times")
    return int(found[0].replace(",", ""))


def kvscope(*arguments, cwd=None):
    """What the program prints; exit codes 0 and 1 are results."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=cwd, timeout=120)
    if done.returncode not in (0, 1):
        raise AssertionError(done.stderr)
    return done.stdout


def events(scenario, *kinds):
    """[(kind, {field: number}, step)] of a run, in order."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/scenario.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(scenario, file)
        kvscope("run", path, "--out", folder, "--trace", "full")
        found, step = [], -1
        last = number_in(kvscope("trace", "show", f"{folder}/trace.kvt"), r"(?m)^events +(\d+)$") - 1
        for line in kvscope("trace", "show", f"{folder}/trace.kvt", "--json", "--events", 0, last).splitlines():
            fields = json.loads(line)
            if fields["kind"] == "step_began":
                step = fields["step"]
            if fields["kind"] in kinds:
                found.append((fields["kind"], fields, step))
        return found


def gallery(name):
    """A scenario of the gallery."""
    return json.loads((SCENARIOS / name).read_text(encoding="utf-8"))


def page_block(page, name):
    """A JSON file that another page of the documentation shows."""
    return block_of(ROOT / "docs" / page, name)


def explained(scenario, *options):
    """{link of the chain: [its lines after "="]} of kvscope explain."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/scenario.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(scenario, file)
        return links_of(kvscope("explain", path, *options))


def picture(file):
    """{option: value} of the viewer for a picture of docs/figures/figures.json."""
    for entry in json.loads((ROOT / "docs/figures/figures.json").read_text(encoding="utf-8")):
        if entry["file"] == file:
            words = entry["arguments"]
            return {word[2:]: after for word, after in zip(words, [*words[1:], ""]) if word.startswith("--")}
    raise AssertionError(f"figures.json has no {file}")


class Tensor:
    """A tensor of a .safetensors file: its shape and its values, row by row."""
    def __init__(self, shape, values):
        self.shape, self.values = shape, values

    def row(self, *index):
        size, at = math.prod(self.shape[len(index):]), 0
        for extent, i in zip(self.shape, index):
            at = at * extent + i
        return self.values[at * size:(at + 1) * size]


def golden(scenario, *options):
    """{name: Tensor} of the bundle that kvscope golden writes."""
    with tempfile.TemporaryDirectory() as folder:
        kvscope("golden", scenario, *options, "--out", f"{folder}/golden.safetensors")
        with open(f"{folder}/golden.safetensors", "rb") as file:
            data = file.read()
    size, = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        first, last = (8 + size + offset for offset in entry["data_offsets"])
        kind = {"F32": "f", "I32": "i", "U32": "I", "I64": "q", "F64": "d", "U8": "B", "BOOL": "B", "BF16": "H", "F16": "e"}[entry["dtype"]]
        values = struct.unpack(f"<{(last - first) // struct.calcsize(kind)}{kind}", data[first:last])
        if entry["dtype"] == "BF16":
            values = struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}I", *[v << 16 for v in values]))
        tensors[name] = Tensor(entry["shape"], values)
    return tensors
