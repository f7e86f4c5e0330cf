"""Numbers in the prose of a lab, and the claims that compute them.

A claim is a piece of the text with a place for each number, and the numbers as expressions:

    claim("A block has # * # * # = # rows", slots, layers, page_size, slots * layers * page_size)

# stands for digits, @ for a number in words ("@ copies", 2 is "two copies"). The text must have the piece with these numbers, and
every number of the text must be in a piece. Numbers that are no facts of the model have a class:

    reference   a lab, task, question, rule, hint or page: it must exist
    time        the minutes of the handout, and the timing of the staff notes: they must be those of lab.json
    points      of a test: those of lab.json
    message     of the grader to a wrong submission of the course: a patch in staff/NN_name/wrong has it, and course_test.py compares it
    name        a version or a name that contains a number
    code        an expression or an index as a program writes it, such as `n % page_size == 0`
    policy      advice without a right value, such as "about 10 minutes"

The first three are found by their form. Messages are listed as message("a piece of the text"), the others as
exempt("a piece of the text", "policy").
"""
import ast
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
COURSE = ROOT / "docs" / "labs"
LISTED_CLASSES = ("name", "code", "policy")
WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}
NUMBER = re.compile(r"(?<![\w.])(?:0x[0-9a-f]+|\d+(?:,\d{3})*(?:\.\d+)?)(?!\w)|\b(?:" + "|".join(WORDS.values()) + r")\b", re.I)
LABS = len(list(COURSE.glob("[0-9][0-9]_*")))
NUMBERS = r"\d+(?:(?:, | to |,? and )\d+(?! for\b))*"  # of "tasks 2 to 4", but not of "task 1, 30 for task 2"


def plain(text):
    """The prose in one line: no fenced blocks, no targets of links, no numbers of lists."""
    text = re.sub(r"(?sm)^ *```.*?^ *```$", "", text)
    text = re.sub(r"(?m)^ *\d+\. ", "", text)
    text = re.sub(r"\]\([^()]*\)", "]", text)
    return re.sub(r"\s+", " ", text).strip()


def section(text, title):
    """The text below a heading, to the next one."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def items(text):
    """How many numbered items a section has; they must be numbered 1, 2, ..."""
    found = [int(n) for n in re.findall(r"(?m)^(\d+)\. ", text)]
    if found != list(range(1, len(found) + 1)):
        raise AssertionError(f"the items of a list are numbered {found}")
    return len(found)


class Lab:
    """The files of a lab, and the claims about each."""
    def __init__(self, number):
        self.folder = next(COURSE.glob(f"{number:02}_*"))
        self.number = number
        self.manifest = json.loads((self.folder / "lab.json").read_text(encoding="utf-8"))
        self.readme = self.folder / "README.md"
        self.hints = sorted((self.folder / "hints").glob("*.md"))
        self.notes = COURSE / "staff" / self.folder.name / "NOTES.md"

    def texts(self):
        """{name: text} of the handout, each hint and the staff notes."""
        found = {"README.md": self.readme, "NOTES.md": self.notes, **{f"hints/{path.name}": path for path in self.hints}}
        return {name: path.read_text(encoding="utf-8") for name, path in found.items()}

    def references(self):
        """[(pattern with one group of numbers, whether a number exists)]"""
        handout = self.readme.read_text(encoding="utf-8")
        lists = handout.partition("\n## Points")[0]
        tasks = items(lists[lists.rfind("\n1. ") + 1:])  # the last list
        rules, hints = items(section(handout, "Rules")), len(self.hints)
        pages = {path.name[:2] for path in (ROOT / "docs").glob("[0-9][0-9]_*.md")}
        return [(rf"[Ll]abs? ({NUMBERS})", lambda n: 1 <= n <= LABS), (r"labs (\[\d\d\](?:(?:, | and )\[\d\d\])*)", lambda n: 1 <= n <= LABS),
                (rf"[Tt]asks? ({NUMBERS})", lambda n: 1 <= n <= tasks), (rf"[Qq]uestions? ({NUMBERS})", lambda n: 1 <= n <= tasks),
                (rf"[Rr]ules? ({NUMBERS})", lambda n: 1 <= n <= rules), (r"\[Lab (\d\d)", lambda n: 1 <= n <= LABS),
                (r"\[(\d\d) [A-Z]", lambda n: f"{n:02}" in pages), (r"\[(\d\d)\]", lambda n: f"{n:02}" in pages),
                (r"\(\[(\d\d)\]", lambda n: f"{n:02}" in pages), (r"kvscope lab (?:start|check) (\d+)", lambda n: n == self.number),
                (rf"`kvscope lab hint {self.number} (1`, then {NUMBERS})", lambda n: 1 <= n <= hints),
                (r"(?:^|\W)kvscope lab hint (\d+) ", lambda n: n == self.number)]


class Claims:
    """What a file lab_NN.py says about one text."""
    def __init__(self, lab):
        self.lab, self.pieces = lab, []

    def claim(self, template, *numbers):
        if NUMBER.search(template):
            raise AssertionError(f"'{template}' has the number {NUMBER.search(template)[0]}: write # or @ and give an expression")
        marks = re.findall("[#@]", template)
        if len(marks) != len(numbers) or not marks:
            raise AssertionError(f"'{template}' has {len(marks)} places and {len(numbers)} numbers")
        parts = re.split("[#@]", template)
        piece, spans = parts[0], []
        for mark, number, rest in zip(marks, numbers, parts[1:]):
            shown = WORDS[number] if mark == "@" else f"{number:g}" if isinstance(number, float) else str(number)
            spans.append((len(piece), len(piece) + len(shown)))
            piece += shown + rest
        self.pieces.append((piece, spans, template))

    def exempt(self, piece, reason):
        if reason not in LISTED_CLASSES:
            raise AssertionError(f"'{reason}' is no class: {', '.join(LISTED_CLASSES)}")
        self.pieces.append((piece, [found.span() for found in NUMBER.finditer(piece)], piece))

    def message(self, piece):
        folder = self.lab.notes.parent / "wrong"
        messages = [re.search(r"(?m)^# message: (.*)", path.read_text(encoding="utf-8")) for path in folder.glob("*.patch")]
        if not any(piece in found[1] for found in messages):
            raise AssertionError(f"no wrong submission of {folder} has the message '{piece}'")
        self.pieces.append((piece, [found.span() for found in NUMBER.finditer(piece)], piece))


def covered_by_form(lab, name, line):
    """(spans of references, times and points in the prose, faults of them)."""
    spans, faults = [], []
    for pattern, exists in lab.references():
        for found in re.finditer(pattern, line):
            for number in re.finditer(r"\d+", found[1]):
                spans.append((found.start(1) + number.start(), found.start(1) + number.end()))
                if not exists(int(number[0])):
                    faults.append(f"'{found[0]}' names what does not exist")
    for found in re.finditer(r"\[Lab (\d\d): ([^\]]*)\]", line):
        spans += [(found.start(2) + n.start(), found.start(2) + n.end()) for n in NUMBER.finditer(found[2])]
        heading = next(COURSE.glob(f"{found[1]}_*/README.md")).read_text(encoding="utf-8").split("\n")[0]
        if heading != f"# Lab {found[1]}: {found[2]}":
            faults.append(f"the link '{found[0]}' is not the heading '{heading}'")
    if name.startswith("hints/"):
        spans.append(re.match(r"# Hint (\d+)", line).span(1))
        if line.split()[2].rstrip(":") != pathlib.Path(name).stem:
            faults.append(f"the heading '{line[:20]}' is not of {name}")
    for found in re.finditer(r"\| time \| (\d+) minutes", line):
        spans.append(found.span(1))
        if int(found[1]) != lab.manifest["minutes"]:
            faults.append(f"the time is not {lab.manifest['minutes']} minutes, those of lab.json")
    for found in re.finditer(r"\*\*Timing\.\*\* (.*?)(?= \*\*)", line):
        parts = list(re.finditer(r"(\d+)(?: minutes)? (?:to compare|for(?: each (\w+))?)", found[1]))
        spans += [(found.start(1) + part.start(1), found.start(1) + part.end(1)) for part in parts]
        tests = [test["name"] for test in lab.manifest["tests"]]
        times = {None: 1, "report": sum(test.startswith("report_") for test in tests), "kernel": len(lab.manifest["files"])}
        minutes = sum(int(part[1]) * times.get(part[2], 1) for part in parts)
        if not lab.manifest["minutes"] - 1 <= minutes <= lab.manifest["minutes"]:
            faults.append(f"the timing adds up to {minutes} minutes, but lab.json has {lab.manifest['minutes']}")
    points = {test["name"]: test["points"] for test in lab.manifest["tests"]}
    table = [found for found in re.finditer(r"\| `(\w+)` \| (\d+) \|", line.partition("## Points")[2])] if name == "README.md" else []
    if name == "README.md" and [(found[1], int(found[2])) for found in table] != list(points.items()):
        faults.append(f"the table of points is not that of lab.json: {points}")
    begin = line.find("## Points") + len("## Points")
    spans += [(begin + found.start(2), begin + found.end(2)) for found in table]
    return spans, faults


def faults_of(lab, name, line, pieces):
    """What is wrong with the numbers of prose in one line: pieces that it lacks, and numbers without a claim."""
    spans, faults = covered_by_form(lab, name, line)
    lower = line.lower()
    for piece, inner, template in pieces:
        at = lower.find(piece.lower())
        if at < 0:
            faults.append(f"the text does not have '{piece}', as computed from '{template}' in tests/labs/prose/lab_{lab.number:02}.py: "
                          "correct the text, or the claim if the lab has changed")
        while at >= 0:
            spans += [(at + first, at + last) for first, last in inner]
            at = lower.find(piece.lower(), at + 1)
    covered = set(spans)
    for found in NUMBER.finditer(line):
        if found.span() not in covered:
            begin = max(0, found.start() - 70)
            faults.append(f"'{found[0]}' in '...{line[begin:found.end() + 50]}...' has no claim: compute it with claim(...) in "
                          f"tests/labs/prose/lab_{lab.number:02}.py, or list it with exempt(..., \"policy\")")
    return faults


def literal_values(path):
    """Numbers of claims that are written as literals, not computed: [(line, text)]."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "claim":
            for value in node.args[1:]:
                names = any(isinstance(inner, (ast.Name, ast.Attribute)) for inner in ast.walk(value))
                if not names:
                    found.append((node.lineno, ast.unparse(value)))
    return found
