#!/usr/bin/env python3
"""Runs every command the documentation shows and compares what it prints, line by line.

A fenced block marked `console` is a transcript: lines that begin with "$ " are typed, the lines below are what appears.
A line "..." stands for any number of lines. All blocks of one page run in order in one empty folder that holds the
gallery of scenarios as apps/scenarios. `echo $?` after a command that fails on purpose shows its exit code.

  docs_test.py --kvscope build/release/apps/kvscope/kvscope            compare
  docs_test.py --kvscope build/release/apps/kvscope/kvscope --update   write what is printed into the pages
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def transcripts(lines):
    """Yields (first line after the fence, line of the closing fence) of every console block."""
    start = None
    for number, line in enumerate(lines):
        if start is None and line.strip() == "```console":
            start = number + 1
        elif start is not None and line.strip() == "```":
            yield start, number
            start = None
    if start is not None:
        raise SystemExit(f"a console block opened in line {start} is never closed")


def split_block(lines):
    """[(command, [expected lines])] of one block; a command may go on after a trailing backslash."""
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
    """Whether the printed lines are the expected ones, '...' standing for any number of lines."""
    if not expected:
        return not printed
    if expected[0] == "...":
        return any(matches(expected[1:], printed[skip:]) for skip in range(len(printed) + 1))
    return bool(printed) and expected[0] == printed[0] and matches(expected[1:], printed[1:])


class Shell:
    """One bash for a page, so that variables and $? live from command to command."""

    def __init__(self, folder, kvscope):
        bin_folder = folder / ".bin"
        bin_folder.mkdir()
        (bin_folder / "kvscope").symlink_to(kvscope)
        environment = dict(os.environ, PATH=f"{bin_folder}:{os.environ['PATH']}", LC_ALL="C.UTF-8", COLUMNS="120")
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=folder, env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)

    def run(self, command):
        mark = "end-of-command-7d1f"
        self.process.stdin.write(f"(exit ${{last:-0}})\n{command}\nlast=$?\necho; echo {mark}\n")
        self.process.stdin.flush()
        printed = []
        for line in self.process.stdout:
            if line.rstrip("\n") == mark:
                break
            printed.append(line.rstrip("\n"))
        if printed and printed[-1] == "":
            printed.pop()
        return printed

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def check_page(page, kvscope, update):
    lines = page.read_text(encoding="utf-8").split("\n")
    faults, commands, edits = [], 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copytree(ROOT / "apps" / "scenarios", folder / "apps" / "scenarios")
        shell = Shell(folder, kvscope)
        for start, end in transcripts(lines):
            new_block = []
            for command, expected in split_block(lines[start:end]):
                commands += 1
                printed = shell.run(command)
                new_block += ["$ " + command] + (expected if matches(expected, printed) else printed)
                if not matches(expected, printed):
                    faults.append(f"{page.relative_to(ROOT)}: $ {command}\n  shown:\n    " + "\n    ".join(expected) +
                                  "\n  printed:\n    " + "\n    ".join(printed))
            edits.append((start, end, "\n".join(new_block).split("\n")))
        shell.close()
    if update and faults:
        for start, end, block in reversed(edits):
            lines[start:end] = block
        page.write_text("\n".join(lines), encoding="utf-8")
    return commands, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvscope", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true", help="write what is printed into the pages")
    parser.add_argument("pages", nargs="*", type=pathlib.Path, help="default: README.md and every page of docs/")
    arguments = parser.parse_args()
    pages = arguments.pages or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    total, all_faults = 0, []
    for page in pages:
        commands, faults = check_page(page.resolve(), arguments.kvscope.resolve(), arguments.update)
        total += commands
        all_faults += faults
    for fault in all_faults:
        print(fault)
    if total == 0 and not arguments.pages:
        print("no command is shown anywhere in the documentation: the check would hold nothing")
        return 1
    print(f"{total} commands in {len(pages)} pages, {len(all_faults)} differ")
    return 0 if arguments.update or not all_faults else 1


if __name__ == "__main__":
    sys.exit(main())
