#!/usr/bin/python3
"""Checks the rules of the source tree: which folder may include which, and texts that no file may contain.

    layering_test.py ROOT

Prints one line a fault, "file:line: [rule] what: next step", and exits 1 when there is one.
layering_self_test.py breaks each rule once and checks that it is seen.
"""
import fnmatch
import os
import re
import sys
from collections import namedtuple

Fault = namedtuple("Fault", "path line rule what next_step")

# The data flow, which is the dependency order: a folder includes only itself and folders before it.
CORE_ORDER = ["base", "layout", "trace", "scenario", "smem", "tma", "fragment", "paging", "cache", "staging",
              "attention", "golden", "pipeline"]
VIZ_SEES = ["base", "layout", "trace", "scenario"]
VIRTUAL_ORDER = ["text", "isa", "semantics", "machine", "check", "debug"]
VIRTUAL_SEES = ["base", "trace"]
GPU_ORDER = ["virtual", "driver", "kernels", "launch", "offload", "verify", "bench", "hardware"]
# Programs reach the virtual GPU through libcudart; no other folder of gpu/ may depend on it.
GPU_ALONE = "driver"
VIZ_ORDER = ["playback", "geometry", "model", "view", "window"]
# A section of docs/ARCHITECTURE.md -> the folder whose folders its diagram names, and the one that it divides further.
DIAGRAMS = {"core": ("core",), "gpu": ("gpu/virtual", "gpu/virtual/machine")}

# Headers that device code may share with the model: types only. A formula used by both sides could not find its error.
DEVICE_SEES = ["core/base/index.h", "core/base/dtype.h"]

# Third-party headers, and the only files that may include them. Tests may include them too, because a check must not
# share code with what it checks.
WRAPPED = [
    (r"nlohmann/", ["core/base/json.cpp"]),
    (r"zlib\.h$", ["core/base/crc32.cpp"]),
    (r"sqlite3\.h$", ["core/trace/sqlite.cpp"]),
    (r"zip\.h$", ["core/golden/bundle/npz.cpp"]),
    (r"gif_lib\.h$", ["viz/window/gif_writer.cpp"]),
    (r"CLI/", ["apps/common/cli.h"]),
]
CLI_READERS = re.compile(r"apps/(common/(command_words|help_page|usage|written_files)|kvscope/(main|command_\w+)|launch/options|gpu-check/main|"
                         r"kvscope-viewer/command_line)\.cpp$")
TEST_LIBRARIES = re.compile(r"(gtest|gmock|rapidcheck|benchmark)(/|\.h$)")

TOP_LEVEL = {".ci", ".clang-format", ".clang-tidy", ".dockerignore", ".git", ".github", ".gitignore", "CHANGELOG.md",
             "CITATION.cff", "CMakeLists.txt", "CMakePresets.json", "Containerfile", "LICENSE", "README.md", "apps", "core",
             "docs", "gpu", "tests", "viz"}
NOT_OURS = {".git", "build", "out", "__pycache__"}  # git's own, and what .gitignore names
WIDE = 120                                          # [characters] of a line
LONG, TOO_LONG, LONG_MAIN = 500, 600, 100           # [lines]

# Folders whose READMEs list their files. Below tests/ a README lists only the headers of its folder; fixtures are found
# through the tests that include them.
LISTED = ("core", "gpu", "viz", "apps", "tests")
LISTED_NAME = re.compile(r"`([\w./*<>-]+\.(?:h|cpp|cu|cuh|py|sh)(?:/\.cpp)?)`")

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
TYPE = re.compile(r"(?:enum )?(?:class|struct) (\w+)(?: final)?(?: :.*)?(?: \{.*)?$(?<!;)")
CODE = (".h", ".cpp", ".cu", ".cuh")
CUDA = re.compile(r"(cuda|cublas|cudnn|nvrtc|nvml|cuda_\w+|driver_types)[\w./]*(\.h(pp)?)?$"
                  r"|^(cuda|cute|cutlass|thrust|cub)/")
QT = re.compile(r"^Q([A-Z]|t)\w*(/|$)|^q[a-z]+\.h$")
QT_PAINTING = re.compile(r"(^|/)(Q(t?Widgets?|Paint\w*|Pixmap|Image|Brush|Pen|Graphics\w*|OpenGL\w*))(/|$)")

# Spelled in pieces, so that this file does not break its own rule.
MACHINE = [
    (re.compile(r"(?<![\w.])/" + r"work\b"), "names a folder of one machine"),
    (re.compile(r"(?<![\w-])shared" + r"/"), "names a folder outside the repository"),
    (re.compile(r"(?<![\w.$}])/(home|root|Users)" + r"/"), "names a home folder"),
]
UNFINISHED = [
    (re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b"), "is a note to finish something"),
    (re.compile(r"^\s*#\s*if\s+0\b"), "switches code off"),
]

# clang 14 with libstdc++ 12, of Debian 12, rejects these views; the fuzz targets and the coverage are built with it.
NOT_IN_CLANG = re.compile(r"\bviews::(keys|values|elements|join|split|lazy_split)\b")


def core_folder(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "core" and len(parts) > 2 else None


def include_faults(path, line, quoted, target):
    """Faults of one #include; `target` is the text between the quotes or brackets."""
    def fault(rule, what, next_step):
        return Fault(path, line, rule, what, next_step)

    own, theirs = core_folder(path), core_folder(target)
    top = path.split("/")[0]

    if quoted and not re.match(r"(core|gpu|viz|apps|tests)/", target):
        yield fault("include path", f'"{target}" is not a path from the repository root',
                    'write it from the root, as in "core/base/index.h"')
    if own is not None:
        if own in CORE_ORDER and theirs in CORE_ORDER and CORE_ORDER.index(theirs) > CORE_ORDER.index(own):
            yield fault("folder order", f"core/{own} includes core/{theirs}, which comes after it",
                        f"move the shared part to core/{own} or above, or this file down")
        if quoted and re.match(r"(gpu|viz|apps|tests)/", target):
            yield fault("core alone", f"core includes {target}",
                        "core must not depend on its users: reverse the call")
        if not quoted and CUDA.search(target):
            yield fault("core without CUDA", f"core includes <{target}>", "move code that needs CUDA to gpu/")
        if not quoted and QT.search(target):
            yield fault("core without Qt", f"core includes <{target}>", "move code that needs Qt to viz/")
    if top == "viz":
        if target.startswith(("gpu/", "apps/")) or (target.startswith("core/") and theirs not in VIZ_SEES):
            yield fault("viz draws events", f"viz includes {target}",
                        "viz draws only data of a trace: add the missing data to core/trace")
        mine = path.split("/")[1]
        other = target.split("/")[1] if target.startswith("viz/") else mine
        if mine in VIZ_ORDER and other in VIZ_ORDER and VIZ_ORDER.index(other) > VIZ_ORDER.index(mine):
            yield fault("folder order", f"viz/{mine} includes viz/{other}, which comes after it",
                        f"move the shared part to viz/{mine} or above, or this file down")
        if mine == "playback" and not quoted and QT.search(target):
            yield fault("playback without Qt", f"viz/playback includes <{target}>",
                        "move code that needs Qt to a folder after playback")
        if mine == "geometry" and QT_PAINTING.search(target):
            yield fault("geometry without painting", f"viz/geometry includes <{target}>",
                        "paint in viz/view; return rectangles from viz/geometry")
    if top == "gpu":
        mine, other = path.split("/")[1], (target.split("/") + [""])[1] if target.startswith("gpu/") else ""
        if mine in GPU_ORDER and other in GPU_ORDER and GPU_ORDER.index(other) > GPU_ORDER.index(mine):
            yield fault("folder order", f"gpu/{mine} includes gpu/{other}, which comes after it",
                        f"move the shared part to gpu/{mine} or above, or this file down")
        if other == GPU_ALONE and mine != GPU_ALONE:
            yield fault("driver alone", f"gpu/{mine} includes {target}", "include gpu/virtual or gpu/launch instead")
        if mine == "virtual":
            part, other_part = (path.split("/") + [""])[2], (target.split("/") + ["", ""])[2]
            if other == "virtual" and part in VIRTUAL_ORDER and other_part in VIRTUAL_ORDER and \
                    VIRTUAL_ORDER.index(other_part) > VIRTUAL_ORDER.index(part):
                yield fault("folder order", f"gpu/virtual/{part} includes gpu/virtual/{other_part}, which comes after it",
                            f"move the shared part to gpu/virtual/{part} or above, or this file down")
            if theirs is not None and theirs not in VIRTUAL_SEES:
                yield fault("virtual GPU alone", f"gpu/virtual includes {target}",
                            "write it from the PTX ISA: a model compared with itself cannot find its errors")
        if quoted and re.match(r"(viz|apps|tests)/", target):
            yield fault("gpu below the programs", f"gpu includes {target}",
                        "gpu may include core and gpu: reverse the call, or connect the two in apps")
    if "/detail/" in target and quoted:
        library = target.split("/detail/")[0]
        of_core = library.startswith("core/")
        library = "/".join(library.split("/")[:2 if of_core else 3])  # core/tma, gpu/virtual/machine
        if not path.startswith((library + "/", f"tests/{library}/")):
            yield fault("detail stays inside", f"{path} includes {target}, an internal header of {library}",
                        "use a public header of that library, or move this one out of detail/")
        elif path.endswith(".h") and "/detail/" not in path and top != "tests":
            yield fault("detail stays inside", f"the public header {path} includes {target}, which is not installed",
                        "move the included header out of detail/, or the including one into it")
    device_code = path.startswith("gpu/kernels/") or path.endswith((".cu", ".cuh"))
    if device_code and target.startswith("core/") and target not in DEVICE_SEES:
        yield fault("device code shares no formula", f"device code includes {target}",
                    "write the formula again from the manual: a formula compared with itself cannot find its error")
    for pattern, files in WRAPPED:
        if not quoted and top != "tests" and re.match(pattern, target) and path not in files:
            yield fault("wrapped library", f"<{target}> is included outside {' and '.join(files)}",
                        "use the wrapper's own header")
    if target == "apps/common/cli.h" and not CLI_READERS.match(path):
        yield fault("wrapped library", f"{target} is included outside the files that parse a command line",
                    "pass the parsed values as a plain struct: CLI11 adds seconds of compile time per file")
    if top != "tests" and not quoted and TEST_LIBRARIES.match(target):
        yield fault("tests apart", f"<{target}> outside tests/", "a user's build must not depend on test libraries")


def text_faults(path, lines):
    """Faults of a file's text, in any language."""
    for number, text in enumerate(lines, 1):
        for pattern, what in MACHINE:
            if pattern.search(text) and not (path.startswith("tests/") and "shared" + "/data" in text):
                yield Fault(path, number, "no machine paths", f"'{text.strip()[:60]}' {what}",
                            "find the place relative to the source folder, or take it as an argument")
        for pattern, what in UNFINISHED:
            if pattern.search(text):
                yield Fault(path, number, "nothing half done", f"'{text.strip()[:60]}' {what}",
                            "finish it or take it out")


STUDENTS_FILES = "docs/labs/"  # compiled alone, without the project's headers: only the rules of texts hold there


def file_faults(root, path):
    with open(os.path.join(root, path), "rb") as file:
        data = file.read()
    if b"\0" in data[:4096] or path.startswith("tests/fuzz/corpus/"):
        return
    lines = data.decode("utf-8", "replace").splitlines()
    yield from text_faults(path, lines)
    if not path.endswith(CODE) or path.startswith(STUDENTS_FILES):
        return
    own_header = path[:-4] + ".h" if path.endswith(".cpp") else ""
    folder, _, name = own_header.rpartition("/")
    if own_header and not os.path.exists(os.path.join(root, own_header)):
        own_header = f"{folder}/detail/{name}"
    for number, text in enumerate(lines, 1):
        match = INCLUDE.match(text)
        if match and own_header:
            if match[2] != own_header and os.path.exists(os.path.join(root, own_header)):
                yield Fault(path, number, "own header first", f"the first include is {match[2]}",
                            f'include "{own_header}" first: this checks that it compiles alone')
            own_header = ""
        if match:
            yield from include_faults(path, number, match[1] == '"', match[2])
        if NOT_IN_CLANG.search(text):
            yield Fault(path, number, "clang 14", f"'{text.strip()[:60]}' does not compile with clang 14",
                        "write the loop: the fuzz targets and the coverage are built with it")
        if path.startswith(("core/", "viz/", "apps/")) and len(text) > WIDE:
            yield Fault(path, number, "line length", f"{len(text)} characters, more than {WIDE}",
                        "wrap it; clang-format does not wrap comments")
    if path.endswith((".h", ".cuh")) and "#pragma once" not in lines:
        yield Fault(path, 1, "pragma once", "the header has no '#pragma once'", "put it after the opening comment")
    if path.startswith(("core/", "viz/")) and len(lines) > TOO_LONG:
        yield Fault(path, TOO_LONG + 1, "file length", f"{len(lines)} lines, more than {TOO_LONG}",
                    "split the file into two")
    if re.match(r"apps/[\w-]+/main\.cpp$", path) and len(lines) > LONG_MAIN:
        yield Fault(path, LONG_MAIN + 1, "file length", f"{len(lines)} lines of main.cpp, more than {LONG_MAIN}",
                    "main.cpp only connects parts: move code to separate files")


def tree_faults(root):
    for name in sorted(os.listdir(root)):
        if name not in TOP_LEVEL | NOT_OURS and name != "compile_commands.json":
            yield Fault(name, 1, "top level", f"'{name}' is at the top of the tree",
                        "move it into a folder")
    core = os.path.join(root, "core")
    for name in sorted(os.listdir(core)) if os.path.isdir(core) else []:
        if os.path.isdir(os.path.join(core, name)) and name not in CORE_ORDER:
            yield Fault("core/" + name, 1, "folder order", f"core/{name} has no place in the data flow",
                        "give it one in CORE_ORDER of tests/layering/layering_test.py and in docs/ARCHITECTURE.md")


def folders_in(root, path):
    path = os.path.join(root, path)
    if not os.path.isdir(path):
        return set()
    return {name for name in os.listdir(path) if os.path.isdir(os.path.join(path, name))} - {"detail"} - NOT_OURS


def diagram_faults(root):
    """The diagrams of ARCHITECTURE.md name every folder of a data flow, and no other: `a -> b` the folders of the section,
    `+-- c` those of the folder that the lines below the flow divide."""
    path = "docs/ARCHITECTURE.md"
    if not os.path.exists(os.path.join(root, path)):
        return
    with open(os.path.join(root, path), encoding="utf-8") as file:
        lines = file.read().splitlines()
    section, begin = "", 0  # begin: the line of the opening fence; 0: outside of a diagram
    for number, text in enumerate(lines, 1):
        if text.startswith("### "):
            section = text[len("### "):]
        if not text.startswith("```") or section not in DIAGRAMS:
            continue
        if begin == 0:
            begin = number
            continue
        flow = {name for line in lines[begin:number - 1] if "->" in line for name in re.findall(r"[a-z]+", line)}
        parts = set(re.findall(r"\+-- (\w+)", "\n".join(lines[begin:number - 1])))
        for folder, named in zip(DIAGRAMS[section], (flow, parts)):
            for name in sorted(named ^ folders_in(root, folder)):
                wrong = "is not in the diagram" if name not in named else "is in the diagram, and does not exist"
                yield Fault(path, begin, "diagrams name folders", f"{folder}/{name} {wrong}",
                            "draw each folder at its place in the data flow")
        begin = 0


def type_faults(root):
    """Two types with the same name in one namespace: the linker keeps the code of only one of them for both."""
    seen = {}
    for path in our_files(root):
        if not path.startswith(("core/", "viz/", "apps/", "gpu/")) or not path.endswith((".h", ".cuh")):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            namespace = ""
            for number, text in enumerate(file, 1):
                opened = re.match(r"namespace ([\w:]+) \{$", text.rstrip())
                namespace = opened[1] if opened else namespace
                defined = TYPE.match(text)
                if defined is None:
                    continue
                name = (namespace, defined[1])
                if seen.setdefault(name, path) != path:
                    yield Fault(path, number, "one name one type",
                                f"{'::'.join(name)} is defined in {seen[name]} too", "give one of them another name")


def listed_names(lines):
    """(line number, name) of each file that a README names in backquotes; `x.h/.cpp` names two."""
    for number, text in enumerate(lines, 1):
        for name in LISTED_NAME.findall(text):
            if name.endswith("/.cpp"):
                yield number, name[:-len("/.cpp")]
                yield number, name[:-len(".h/.cpp")] + ".cpp"
            else:
                yield number, re.sub(r"<\w+>", "*", name)


def names_file(name, folder, path):
    """Whether `name` in the README of `folder` names `path`: from the root, from a folder above, or any tail of a path
    below. `*` stands for part of one name."""
    name = os.path.normpath(name)
    if name.startswith(".."):
        return os.path.normpath(os.path.join(folder, name)) == path
    wanted, parts = name.split("/"), path.split("/")
    if len(wanted) > len(parts):
        return False
    begin = len(parts) - len(wanted)
    if not all(fnmatch.fnmatchcase(part, want) for part, want in zip(parts[begin:], wanted)):
        return False
    before = "/".join(parts[:begin] + [""])
    return path.startswith(folder + "/") or (len(wanted) > 1 and (folder + "/").startswith(before))


def readme_faults(root):
    """A README that names a header in backquotes must name all headers of its folder, and no missing file."""
    files = [path for path in our_files(root) if path.split("/")[0] in LISTED]
    names = {}  # folder -> [(line, name)]
    for path in files:
        folder, base = os.path.split(path)
        if base == "README.md":
            with open(os.path.join(root, path), encoding="utf-8") as file:
                names[folder] = list(listed_names(file.read().splitlines()))
    for folder, listed in names.items():
        for number, name in listed:
            if not any(names_file(name, folder, path) for path in files):
                yield Fault(folder + "/README.md", number, "readme lists files", f"`{name}` does not exist",
                            "correct the name, or remove the line")
    for path in files:
        if not path.endswith(".h"):
            continue
        home = os.path.dirname(path)
        while home and home not in names and not path.startswith("tests/"):
            home = os.path.dirname(home)
        listed = [name for _, name in names.get(home, [])]
        above = [name for _, name in names.get(os.path.dirname(home), [])] if home else []
        if any(name.endswith(".h") for name in listed) and \
                not any(names_file(name, home, path) for name in listed) and \
                not any(names_file(name, os.path.dirname(home), path) for name in above):
            yield Fault(path, 1, "readme lists files", f"{home}/README.md does not name {os.path.relpath(path, home)}",
                        "add a line to that list, at the file's place in the data flow")


def our_files(root):
    for folder, below, names in os.walk(root):
        below[:] = sorted(set(below) - NOT_OURS)
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if not name.endswith(".pyc") and name != "compile_commands.json":
                yield path


def all_faults(root):
    faults = [*tree_faults(root), *diagram_faults(root), *type_faults(root), *readme_faults(root)]
    for path in our_files(root):
        faults.extend(file_faults(root, path))
    return faults


def long_files(root):
    for path in our_files(root):
        if path.startswith(("core/", "viz/")) and path.endswith(CODE):
            with open(os.path.join(root, path), "rb") as file:
                count = file.read().count(b"\n")
            if LONG < count <= TOO_LONG:
                yield path, count


def main():
    root = sys.argv[1]
    for path, count in long_files(root):
        print(f"note: {path} has {count} lines: past {LONG} a file is usually two ideas")
    faults = all_faults(root)
    for fault in faults:
        print(f"{fault.path}:{fault.line}: [{fault.rule}] {fault.what}: {fault.next_step}")
    print(f"{len(faults)} faults in {sum(1 for _ in our_files(root))} files")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
