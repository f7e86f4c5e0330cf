#!/usr/bin/env python3
"""docs/hardware: the table of the mutants is what the kept file has, and the file lists every kept mutant."""
import argparse
import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/hardware"
MUTANTS = ROOT / "tests/conformance/mutants"


class Hardware(unittest.TestCase):
    def test_the_table_of_mutants_is_that_of_the_kept_file(self):
        kept = sorted(FOLDER.glob("mutants-*.json"))
        self.assertTrue(kept)
        page = (FOLDER / "README.md").read_text(encoding="utf-8")
        for file in kept:
            table = subprocess.run([sys.executable, ROOT / "tests/conformance/mutants_on_gpu.py", "--table", file],
                                   capture_output=True, text=True, check=True).stdout
            self.assertIn(table, page, f"write the table again: tests/conformance/mutants_on_gpu.py --table {file.name}")

    def test_every_kept_mutant_ran_and_its_kernel_without_the_mistake_is_right(self):
        names = {path.stem for path in MUTANTS.glob("*.diff")}
        for file in FOLDER.glob("mutants-*.json"):
            mutants = json.loads(file.read_text())
            self.assertEqual({mutant["name"] for mutant in mutants}, names, "mutants were added: run mutants_on_gpu.py")
            self.assertEqual([mutant["name"] for mutant in mutants if mutant["base"] != "right"], [])

    def test_every_report_is_in_the_table_of_reports(self):
        page = (FOLDER / "README.md").read_text(encoding="utf-8")
        for file in [*FOLDER.glob("report-*.md"), *FOLDER.glob("instructions-*.txt")]:
            self.assertIn(f"]({file.name})", page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kvscope")  # as for the other tests of pages
    _, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest)
