#!/usr/bin/env python3
"""Builds the document site (docs/site) with `mkdocs build --strict` in a virtual environment, and checks what was built.

    site_test.py --folder build/release/tests/docs/site     the virtual environment and the site are kept there

The packages of docs/site/requirements.txt come from PyPI. If PyPI cannot be reached, or no Python here can make a virtual
environment, the test prints that and exits with 77. Checked besides the exit code of mkdocs:

- a page with a broken link, a link to a heading that does not exist, and a page missing in the navigation fail the build;
- every page of docs/ has as many tables, blocks of code and list items on the site as in its source, where the source is counted
  here, line by line, without the code that builds the site;
- every picture of a page is on the site; files outside docs/ that a page links to are on the site;
- every YAML file of the repository can be parsed.
"""
import argparse
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
UNREACHABLE = re.compile(r"NewConnectionError|ConnectTimeoutError|ReadTimeoutError|ProxyError|Max retries exceeded|"
                         r"name resolution|Connection refused|connection broken|Network is unreachable", re.I)
YAML_FILES = ["docs/site/mkdocs.yml", "docs/ci/*.yml", ".github/ISSUE_TEMPLATE/*.yml", "CITATION.cff", ".clang-format",
              ".clang-tidy"]


def skip(reason):
    print(f"{pathlib.Path(__file__).name}: Skipped\n{reason}")
    sys.exit(77)


def environment(folder):
    """The Python of a virtual environment with the packages of the site; made once, then kept."""
    python, wanted = folder / "tools" / "bin" / "python", (DOCS / "site" / "requirements.txt").read_bytes()
    stamp = folder / "tools" / "installed.txt"
    if stamp.exists() and stamp.read_bytes() == wanted:
        return python
    errors = ""
    for base in dict.fromkeys([sys.executable, shutil.which("python3") or sys.executable]):
        done = subprocess.run([base, "-m", "venv", "--clear", str(folder / "tools")], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
        errors += done.stdout + done.stderr
    else:
        skip(f"no Python here can make a virtual environment (apt-get install python3-venv): {errors.split(chr(10))[0]}")
    done = subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
                           "--timeout", "10", "-r", str(DOCS / "site" / "requirements.txt")],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        if UNREACHABLE.search(done.stderr):
            skip("PyPI cannot be reached, so mkdocs cannot be installed: the document site was not built")
        sys.exit(f"pip cannot install docs/site/requirements.txt:\n{done.stdout}{done.stderr}")
    stamp.write_bytes(wanted)
    return python


def build(python, source, site):
    return subprocess.run([str(python), "-m", "mkdocs", "build", "--strict", "-f", str(source / "docs/site/mkdocs.yml"),
                           "-d", str(site)], capture_output=True, text=True, check=False,
                          env=dict(os.environ, NO_MKDOCS_2_WARNING="1", PYTHONDONTWRITEBYTECODE="1"))


class Counter(html.parser.HTMLParser):
    """Counts the tags within <article>, and lists the pictures there."""

    def __init__(self):
        super().__init__()
        self.inside, self.tags, self.pictures = False, {}, []

    def handle_starttag(self, tag, attributes):
        self.inside |= tag == "article"
        if self.inside:
            self.tags[tag] = self.tags.get(tag, 0) + 1
            self.pictures += [dict(attributes)["src"]] if tag == "img" else []

    def handle_endtag(self, tag):
        self.inside &= tag != "article"


def source_counts(lines):
    """Tables, blocks of code and list items of a page, from the rules of CommonMark that the pages use."""
    counts, code, before = {"table": 0, "pre": 0, "li": 0}, False, ""
    columns = []  # of the text of open list items
    for line in lines:
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if text.startswith("```"):
            code = not code
            counts["pre"] += code
        if code or text.startswith("```"):
            before = ""
            continue
        counts["table"] += bool(re.fullmatch(r"\|( *:?-+:? *\|)+", text))
        item = re.match(r" *([-*]|\d+\.) +(?=\S)", line)
        while not before and text and columns and indent < columns[-1]:
            columns.pop()
        if item and (not before or columns or item[1] in ("-", "*", "1.")) and (indent < 4 or columns):
            # A number that begins a line within an item's sentence is not an item, but an item at an open item's column is.
            if not before or item[1] in ("-", "*", "1.") or (columns and indent < columns[-1]):
                counts["li"] += 1
                while columns and indent < columns[-1]:
                    columns.pop()
                columns.append(item.end())
        before = text
    return counts


def check_pages(site):
    faults = []
    pages = {"README.md": "index.html"}
    pages |= {str(path.relative_to(ROOT)): str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")
              if not re.match(r"labs/(staff/|[^/]+/hints/)", path.relative_to(DOCS).as_posix())}
    for source, name in pages.items():
        built = site / re.sub(r"\.md$", ".html", re.sub(r"(^|/)README\.md$", r"\1index.html", name))
        if not built.exists():
            faults.append(f"{source}: not on the site: {built.relative_to(site)} is missing")
            continue
        counter = Counter()
        counter.feed(built.read_text(encoding="utf-8"))
        expected = source_counts((ROOT / source).read_text(encoding="utf-8").split("\n"))
        found = {tag: counter.tags.get(tag, 0) for tag in expected}
        if found != expected:
            faults.append(f"{source}: on the site {found}, in the source {expected}")
        faults += [f"{source}: picture {picture} is not on the site" for picture in counter.pictures
                   if "://" not in picture and not (built.parent / picture).exists()]
    return faults


def check_oneself(python, folder):
    """Each kind of fault that --strict is used for, in a copy of the pages."""
    faults = []
    for name, change in (("broken link", "\n[x](no_such_page.md)\n"), ("link out of docs", "\n[x](../core/no_such_file.md)\n"),
                         ("missing heading", "\n[x](GLOSSARY.md#no-such-heading)\n"), ("page not in the navigation", None)):
        with tempfile.TemporaryDirectory(dir=folder) as copy:
            copy = pathlib.Path(copy)
            shutil.copytree(DOCS, copy / "docs", ignore=shutil.ignore_patterns("*.png", "*.gif"))
            shutil.copy(ROOT / "README.md", copy)
            for picture in (DOCS / "figures").glob("*.png"):
                (copy / "docs" / "figures" / picture.name).touch()
            page = copy / "docs" / ("00_start_here.md" if change else "unlisted.md")
            with page.open("a", encoding="utf-8") as file:
                file.write(change or "# Unlisted\n")
            done = build(python, copy, copy / "site")
            wanted = "no_such" if change and "no_such" in change else "no-such-heading" if change else "unlisted.md"
            if done.returncode == 0 or wanted not in done.stderr + done.stdout:
                faults.append(f"{name}: mkdocs --strict accepts it, or does not name it:\n{done.stdout}{done.stderr}")
    return faults


def check_yaml(python):
    """With the YAML library that mkdocs depends on."""
    files = [str(path) for pattern in YAML_FILES for path in sorted(ROOT.glob(pattern))]
    done = subprocess.run([str(python), "-c", "import sys, yaml\nfor name in sys.argv[1:]:\n    list(yaml.safe_load_all(open(name)))",
                           *files], capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"a YAML file cannot be parsed:\n{done.stderr}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python = environment(folder)
    done = build(python, ROOT, folder / "site")
    if done.returncode != 0:
        sys.exit(f"mkdocs build --strict fails:\n{done.stdout}{done.stderr}")
    faults = check_pages(folder / "site") + check_oneself(python, folder) + check_yaml(python)
    for fault in faults:
        print(fault)
    print(f"{sum(1 for _ in (folder / 'site').rglob('*.html'))} pages on the site, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
