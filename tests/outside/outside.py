#!/usr/bin/python3
"""Published kernels on the virtual GPU: compiled, run, compared with NumPy, and run again with seeded bugs.

    outside.py [--list] [--only TEXT] [--no-bugs] [--verbose] [--cache DIR] [--update-docs]

A table is printed. The exit code is 0 if every kernel is right, every report of an unchanged kernel is explained in its
recipe, and every seeded bug is reported or explained. Downloads and PTX are cached in build/outside.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from compilers import nvcc_version  # noqa: E402
from launches import launch, ptx_file  # noqa: E402
from recipe import Kernel, Recipe, RecipeError, read  # noqa: E402
from table import Row, Study, text_of, update_page  # noqa: E402

ROOT = HERE.parent.parent


def _judge(kernel: Kernel, recipe: Recipe, args: argparse.Namespace, row: Row) -> None:
    outcome = launch(recipe, kernel, args.cache)
    row.add_file(ptx_file(recipe, kernel, args.cache))
    row.add_run(kernel, outcome)
    if outcome.state != "right" or args.verbose or row.unexplained_of(kernel, outcome):
        print(f"  {outcome.state:9} {kernel.label}: {outcome.steps} warp instructions in {outcome.seconds:.2f} s",
              outcome.detail)
        for report in outcome.findings[:3]:
            print("      " + report[2].replace("\n", "\n      "))
    if args.no_bugs or outcome.state not in ("right",):
        return
    for bug in kernel.bugs:
        changed = launch(recipe, kernel, args.cache, bug)
        row.add_bug(kernel, bug, outcome, changed)
        if args.verbose:
            kinds = sorted({report[0] for report in changed.findings}) or "not reported"
            print(f"      bug {bug}: {changed.what}: {kinds}; output {changed.state}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Needs nvcc, pip and minutes; no GPU.")
    parser.add_argument("--list", action="store_true", help="print the kernels of the recipes, run nothing")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="run kernels whose 'recipe unit: kernel' contains TEXT")
    parser.add_argument("--no-bugs", action="store_true", help="run the unchanged kernels only")
    parser.add_argument("--verbose", action="store_true", help="print a line for each kernel and each bug")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "outside", metavar="DIR",
                        help="downloads, sources and PTX (default: build/outside)")
    parser.add_argument("--update-docs", action="store_true",
                        help="write the table to docs/15_virtual_gpu.md; not with --only")
    args = parser.parse_args()
    if args.update_docs and (args.only or args.no_bugs):
        parser.error("--update-docs needs the whole study: leave out --only and --no-bugs")
    study = Study()
    try:
        for path in sorted((HERE / "recipes").glob("*.toml")):
            recipe = read(path)
            chosen = [k for k in recipe.kernels if args.only in f"{recipe.name} {k.label}"]
            if args.list:
                print("\n".join(f"{recipe.name} {kernel.label}" for kernel in chosen))
                continue
            if not chosen:
                continue
            print(f"{recipe.package.name} {recipe.package.version}: {len(chosen)} kernels", flush=True)
            row = study.row(recipe)
            broken: dict[str, str] = {}  # units that do not compile: once is enough
            for kernel in chosen:
                try:
                    if kernel.unit.name in broken and not kernel.unit.triton:
                        raise RecipeError(broken[kernel.unit.name])
                    _judge(kernel, recipe, args, row)
                except RecipeError as error:
                    row.failed(kernel, str(error))
                    if "does not compile" in str(error):
                        broken[kernel.unit.name] = str(error)
                    print("  recipe    " + "\n            ".join(str(error).strip().splitlines()[-4:]))
                sys.stdout.flush()
    except RecipeError as error:
        print(f"outside: {error}", file=sys.stderr)
        return 2
    if args.list:
        return 0
    print()
    print(text_of(study, nvcc_version()))
    if args.update_docs:
        update_page(study, ROOT / "docs" / "15_virtual_gpu.md", nvcc_version())
    return 0 if study.passed() else 1


if __name__ == "__main__":
    sys.exit(main())
