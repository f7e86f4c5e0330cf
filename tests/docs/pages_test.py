#!/usr/bin/env python3
"""Checks the diagrams of docs/figures and the form of the pages.

    pages_test.py --kvscope build/release/apps/kvscope/kvscope

- Every diagram is what docs/figures/diagrams.py draws now, and a diagram with one changed number is reported.
- Every diagram is well-formed, has a title and a description, colors for light and dark pages, and no text below 13 pixels.
- Every diagram is shown by a page, with an alternative text; every page 00 to 16 shows a figure.
- Every page ends with what to do next.
- The glossary defines the words of the field that the pages use.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS, FIGURES = ROOT / "docs", ROOT / "docs" / "figures"
# Hints are printed by the program, and the staff's notes are no pages of the site.
NO_PAGES = re.compile(r"docs/labs/(staff/|[^/]+/hints/)|docs/hardware/report-")
NUMBERED = sorted(DOCS.glob("[0-9][0-9]_*.md"))
FIGURE = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?:\.\./\.\./)?figures/(?P<name>[\w@.-]+)\)|<img alt=\"(?P<alt2>[^\"]*)\" src=\"figures/(?P<name2>[\w@.-]+)\">")
SVG = "{http://www.w3.org/2000/svg}"
WORDS = ["TMA", "CTA", "cluster", "warp", "lane", "wavefront", "sector", "PTX", "SASS", "BN", "BK", "GQA", "MLA", "soft cap", "ALiBi",
         "sink", "lse", "split-K", "prefill", "decode", "mbarrier", "proxy fence", "swizzle", "LDS", "vmcnt", "MFMA"]
KVSCOPE = ""


def draw(folder, *options):
    return subprocess.run([sys.executable, str(folder / "diagrams.py"), "--kvscope", KVSCOPE, *options], capture_output=True, text=True,
                          check=False)


class Diagrams(unittest.TestCase):
    def test_are_as_the_program_draws_them(self):
        done = draw(FIGURES)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_one_changed_number_is_reported(self):
        with tempfile.TemporaryDirectory() as name:
            figures = pathlib.Path(name) / "docs" / "figures"
            shutil.copytree(FIGURES, figures, ignore=shutil.ignore_patterns("*.png", "*.gif", "__pycache__"))
            (pathlib.Path(name) / "apps").mkdir()
            shutil.copytree(ROOT / "apps" / "scenarios", pathlib.Path(name) / "apps" / "scenarios")
            chain = figures / "chain.svg"
            chain.write_text(chain.read_text(encoding="utf-8").replace("row 582", "row 583"), encoding="utf-8")
            done = draw(figures, "chain.svg")
            self.assertEqual((done.returncode, done.stdout.split("\n")[0]),
                             (1, "chain.svg: differs from what is drawn: run with --update and look at it"))

    def test_are_readable_on_light_and_dark_pages(self):
        files = sorted(FIGURES.glob("*.svg"))
        self.assertGreater(len(files), 0)
        for path in files:
            root = xml.etree.ElementTree.parse(path).getroot()
            for tag in ("title", "desc"):
                self.assertTrue(root.find(SVG + tag).text.strip(), path.name)
            self.assertIn("prefers-color-scheme: dark", root.find(SVG + "style").text, path.name)
            sizes = [int(text.get("font-size")) for text in root.iter(SVG + "text")]
            self.assertGreaterEqual(min(sizes), 13, path.name)


class Pages(unittest.TestCase):
    def test_show_every_diagram_and_a_figure_each(self):
        shown = {}
        for page in [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("labs/*/README.md")]:
            for figure in FIGURE.finditer(page.read_text(encoding="utf-8")):
                alternative, name = figure["alt"] or figure["alt2"] or "", figure["name"] or figure["name2"]
                self.assertTrue(alternative.strip(), f"{page.name}: {name} has no alternative text")
                self.assertTrue((FIGURES / name).exists(), f"{page.name}: {name} does not exist")
                shown.setdefault(page.relative_to(ROOT).as_posix(), set()).add(name)
        drawn = {path.name for path in FIGURES.glob("*.svg")}
        self.assertEqual({name for names in shown.values() for name in names if name.endswith(".svg")}, drawn)
        self.assertEqual([page.name for page in NUMBERED if f"docs/{page.name}" not in shown], [])

    def test_end_with_what_to_do_next(self):
        self.assertGreaterEqual(len(NUMBERED), 17)
        for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
            if NO_PAGES.match(page.relative_to(ROOT).as_posix()):
                continue
            paragraphs = page.read_text(encoding="utf-8").strip().split("\n\n")
            self.assertRegex(paragraphs[-1], r"^\*\*(Try next|Next):\*\* ", str(page.relative_to(ROOT)))

    def test_glossary_defines_the_words_of_the_field(self):
        rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "GLOSSARY.md").read_text(encoding="utf-8"), re.M)
        defined = {word.strip() for row in rows for word in re.split(r"[,()]", row)}
        self.assertEqual([word for word in WORDS if word not in defined], [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvscope", required=True)
    arguments, rest = parser.parse_known_args()
    KVSCOPE = arguments.kvscope
    unittest.main(argv=[sys.argv[0], *rest])
