#!/usr/bin/env python3
"""Runs every command the documentation shows and compares what it prints, line by line; checks every link and path.

A fenced block marked `console` is a transcript: lines that begin with "$ " are typed, the lines below are what appears.
A command may go on after a trailing backslash. A line "..." stands for any number of lines, "..." inside a line for any
text. A fenced block with a file name behind its language (```json small.json) is a file that the reader saves under
that name. All blocks of one page count in order, in one empty folder that holds the gallery of scenarios as
apps/scenarios. `echo $?` after a command that fails on purpose shows its exit code. `python3` is the
system's, which has numpy. Blocks that use kvscope-viewer are run when --viewer names it, without a display. A block
marked ```console needs:nvcc``` is run where nvcc is installed, and so is ```console needs:triton``` for a Python
module; otherwise the reason is printed. `import kvscope` finds the module of the build of --kvscope.

Besides: a relative link must lead to a file, a path in backticks that begins with a folder of the project must exist,
the page of the gallery says of each scenario what the scenario says of itself, and the viewer's page knows all its keys.

  docs_test.py --kvscope build/release/apps/kvscope/kvscope            compare
  docs_test.py --kvscope build/release/apps/kvscope/kvscope --update   write what is printed into the pages
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"```(\w+) *(\S*)$")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PICTURE = re.compile(r"figures/[\w@.-]+\.png$")  # figures_test.py knows those
PROJECT_PATH = re.compile(r"`((?:core|gpu|viz|apps|tests|docs)/[\w./-]+)`")
NOTE_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*=[^()]*\)")  # core/scenario/notes.h
GALLERY, GALLERY_PAGE = ROOT / "apps" / "scenarios", ROOT / "docs" / "10_the_gallery.md"
SYSTEM_PYTHON = "/usr/bin/python3"
MOST_SECONDS = 200  # of one command
CUDA_FOLDER = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin")


def blocks(lines):
    """Yields (language, file name or "", first line after the fence, line of the closing fence) of every block."""
    opened = None
    for number, line in enumerate(lines):
        if opened is None and line.startswith("```"):
            fence = FENCE.match(line)
            opened = (fence[1], fence[2], number + 1) if fence else ("", "", number + 1)
        elif opened is not None and line == "```":
            yield (*opened, number)
            opened = None
    if opened is not None:
        raise SystemExit(f"a fenced block opened in line {opened[2]} is never closed")


def split_block(lines):
    """[(command, [expected lines])] of one transcript."""
    steps = []
    for line in lines:
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif steps and steps[-1][0].endswith("\\") and not steps[-1][1]:
            steps[-1] = (steps[-1][0] + "\n" + line, [])
        elif steps:
            steps[-1][1].append(line)
        else:
            raise SystemExit(f"a console block begins with output: {line!r}")
    return steps


def matches(expected, printed):
    """Whether the printed text is the expected one: "..." stands for any lines, or for any text within one line."""
    pattern = ""
    for line in expected:
        if line == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += r"[^\n]*?".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def python_path(programs):
    """The module kvscope of the same build, before what the caller has."""
    module = pathlib.Path(programs["kvscope"]).resolve().parents[1] / "python"
    return ":".join(filter(None, [str(module), os.environ.get("PYTHONPATH", "")]))


def missing(tool, programs):
    """The reason why a block that needs the tool cannot run, or ""."""
    if tool == "nvcc":
        return "" if shutil.which("nvcc", path=f"{os.environ['PATH']}:{CUDA_FOLDER}") else "nvcc is not installed"
    names = {"nvrtc": "kvscope, nvidia.cuda_nvrtc", "triton": "kvscope, triton"}[tool]
    environment = dict(os.environ, PYTHONPATH=python_path(programs))
    done = subprocess.run([SYSTEM_PYTHON, "-c", f"import {names}"], env=environment, capture_output=True,
                          text=True, check=False)
    return "" if done.returncode == 0 else f"python3 cannot import {names}"


class Shell:
    """One bash for a page, so that variables and $? live from command to command."""

    def __init__(self, folder, programs):
        bin_folder = folder / ".bin"
        bin_folder.mkdir()
        python = SYSTEM_PYTHON if pathlib.Path(SYSTEM_PYTHON).exists() else sys.executable
        for name, program in (*programs.items(), ("python3", python)):
            script = bin_folder / name
            script.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n', encoding="utf-8")
            script.chmod(0o755)
        paths = [str(bin_folder), os.environ["PATH"], CUDA_FOLDER]
        environment = dict(os.environ, PATH=":".join(paths), LC_ALL="C.UTF-8", COLUMNS="120",
                           QT_QPA_PLATFORM="offscreen", PYTHONPATH=python_path(programs))
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=folder, env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, encoding="utf-8", start_new_session=True)

    def run(self, command):
        mark = "end-of-command-7d1f"
        # Without the redirection, a program that reads its input would read the commands that follow.
        self.process.stdin.write(f"(exit ${{last:-0}})\n{{ {command}\n}} < /dev/null\nlast=$?\necho; echo {mark}\n")
        self.process.stdin.flush()
        printed, ended = [], False
        watch = threading.Timer(MOST_SECONDS, os.killpg, (self.process.pid, signal.SIGKILL))
        watch.start()
        for line in self.process.stdout:
            if line.rstrip("\n") == mark:
                ended = True
                break
            printed.append(line.rstrip("\n"))
        watch.cancel()
        if not ended:
            sys.exit(f"'{command}' ended the shell, or did not end within {MOST_SECONDS} s; it printed: {printed[-5:]}")
        if printed and printed[-1] == "":
            printed.pop()
        return printed

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def check_transcripts(page, lines, programs, update):
    faults, commands, not_run, edits = [], 0, 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copytree(ROOT / "apps" / "scenarios", folder / "apps" / "scenarios")
        shell = Shell(folder, programs)
        for language, file_name, start, end in blocks(lines):
            needs = file_name.removeprefix("needs:") if file_name.startswith("needs:") else ""
            if file_name and not needs:
                target = folder / file_name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text("\n".join(lines[start:end]) + "\n", encoding="utf-8")
            if language != "console":
                continue
            new_block, steps = [], split_block(lines[start:end])
            if "kvscope-viewer" not in programs and any("kvscope-viewer" in command for command, _ in steps):
                not_run += len(steps)
                continue
            if needs and (reason := missing(needs, programs)):
                print(f"{page.relative_to(ROOT)}:{start}: not run: {reason}")
                not_run += len(steps)
                continue
            for command, expected in steps:
                commands += 1
                printed = shell.run(command)
                same = matches(expected, printed)
                new_block += ("$ " + command).split("\n") + (expected if same else printed)
                if not same:
                    faults.append(f"{page.relative_to(ROOT)}: $ {command}\n  shown:\n    " + "\n    ".join(expected) +
                                  "\n  printed:\n    " + "\n    ".join(printed))
            edits.append((start, end, new_block))
        shell.close()
    if update and faults:
        for start, end, block in reversed(edits):
            lines[start:end] = block
        page.write_text("\n".join(lines), encoding="utf-8")
    return commands, not_run, faults


def check_places(page, lines):
    """Links and paths that lead nowhere. Code shows other people's paths too: only text outside of fences counts."""
    inside = {number for _, _, start, end in blocks(lines) for number in range(start, end)}
    faults = []
    for number, line in enumerate(lines):
        if number in inside:
            continue
        text = re.sub(r"`[^`]*`", "", line)  # `kernel[grid](...)` is no link
        links = [page.parent / link.split("#")[0] for link in LINK.findall(text)
                 if "://" not in link and not link.startswith("#") and not PICTURE.search(link)]
        paths = [ROOT / path for path in PROJECT_PATH.findall(line)]
        faults += [f"{page.relative_to(ROOT)}: line {number + 1}: {os.path.relpath(place, ROOT)} does not exist"
                   for place in links + paths if not place.exists()]
    return faults


def check_gallery():
    """The scenarios in the order of gallery.txt, each under its name and with its description, line breaks and links aside."""
    names = [name for name in (GALLERY / "gallery.txt").read_text(encoding="utf-8").split("\n")
             if name and not name.startswith("#")]
    if not GALLERY_PAGE.exists():
        return [f"{GALLERY_PAGE.relative_to(ROOT)} does not exist"]
    page, at, faults = " ".join(GALLERY_PAGE.read_text(encoding="utf-8").split()), 0, []
    for name in names:
        scenario = json.loads((GALLERY / f"{name}.json").read_text(encoding="utf-8"))
        for what in (f"## {scenario['name']} ", NOTE_LINK.sub(r"\1", scenario["description"])):
            found = page.find(what, at)
            if found < 0:
                faults.append(f"{GALLERY_PAGE.relative_to(ROOT)}: {name}.json: not there in its turn: {what}")
            at = max(at, found)
    return faults


def check_keys():
    """Every key of the viewer's tables of actions is in a table of keys of its page: those of the window, and those of the
    movements of a kernel."""
    page = (ROOT / "docs" / "09_the_viewer.md").read_text(encoding="utf-8")
    tables = [("shortcuts.cpp", r'\{Do::\w+, Group::\w+, SAY\(".*?"\), "(.*?)"', "| key | does |"),
              ("kernel_window.cpp", r'\{KernelMove::\w+,\s*QT_TR_NOOP\(".*?"\),\s*"(.*?)"', "| key | in the window of a kernel |")]
    faults = []
    for file, pattern, heading in tables:
        source = (ROOT / "viz" / "window" / file).read_text(encoding="utf-8")
        keys = {key for text in re.findall(pattern, source) for key in text.split()}
        if len(keys) < 10:
            faults.append(f"viz/window/{file}: {len(keys)} keys were found: its table has another form")
        cells = " ".join(re.findall(r"^\| (.*?) \|", page.partition(f"\n{heading}\n")[2].partition("\n\n")[0], re.M))
        shown = {code or word for code, word in re.findall(r"`([^`]+)`|([^\s,`()]+)", cells)}
        faults += [f"docs/09_the_viewer.md: the table '{heading}' lacks {key}" for key in sorted(keys - shown - {"Ctrl+="})]
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvscope", type=pathlib.Path, required=True)
    parser.add_argument("--viewer", type=pathlib.Path, help="kvscope-viewer; without it its commands are not run")
    parser.add_argument("--update", action="store_true", help="write what is printed into the pages")
    parser.add_argument("pages", nargs="*", type=pathlib.Path, help="default: README.md and every page of docs/")
    arguments = parser.parse_args()
    pages = arguments.pages or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    programs = {"kvscope": arguments.kvscope.resolve()}
    if arguments.viewer:
        programs["kvscope-viewer"] = arguments.viewer.resolve()
    total, skipped, all_faults, all_places = 0, 0, [], [] if arguments.pages else check_gallery() + check_keys()
    for page in (page.resolve() for page in pages):
        lines = page.read_text(encoding="utf-8").split("\n")
        all_places += check_places(page, lines)
        commands, not_run, faults = check_transcripts(page, lines, programs, arguments.update)
        total += commands
        skipped += not_run
        all_faults += faults
    for fault in all_faults + all_places:
        print(fault)
    if total == 0 and not arguments.pages:
        print("no command is shown anywhere in the documentation: the check would hold nothing")
        return 1
    if skipped:
        print(f"{skipped} commands were not run: a tool is missing (above), or --viewer is not given")
    print(f"{total} commands in {len(pages)} pages, {len(all_faults)} differ; {len(all_places)} other faults")
    return 1 if all_places or (all_faults and not arguments.update) else 0


if __name__ == "__main__":
    sys.exit(main())
