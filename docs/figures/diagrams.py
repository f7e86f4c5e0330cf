#!/usr/bin/env python3
"""Draws the diagrams of docs/figures and of labs, *.svg, from the program and the pages, and compares them with the files that are kept.

  docs/figures/diagrams.py --kvscope build/release/apps/kvscope/kvscope            compare
  docs/figures/diagrams.py --kvscope build/release/apps/kvscope/kvscope --update   write those that differ

A diagram shows an idea; a picture of the viewer belongs to figures.json. Numbers in a diagram come from kvscope: its output over the
example of the page, or what `kvscope verify` allows. Needs Python alone. To add one: a function in diagrams_of_*.py and its line below.
"""
import argparse
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import diagrams_of_checking as checking  # noqa: E402
import diagrams_of_labs as labs  # noqa: E402
import diagrams_of_paging_labs as paging_labs  # noqa: E402
import diagrams_of_the_cache as cache  # noqa: E402
from program import Program  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent
DIAGRAMS = {"chain.svg": cache.chain, "pool_over_steps.svg": cache.pool_over_steps, "page_to_row.svg": cache.page_to_row,
            "cache_types.svg": cache.cache_types, "tolerance.svg": checking.tolerance, "check_flow.svg": checking.check_flow,
            "scenario_parts.svg": cache.scenario_parts, "files.svg": cache.files, "labs.svg": cache.labs,
            "race.svg": checking.race, "kernels.svg": checking.kernels,
            "../labs/07_fault_hunt/tracers.svg": labs.tracers, "../labs/12_through_lds/stages.svg": labs.lds_stages,
            "../labs/14_page_size/sizes.svg": labs.page_sizes,
            "lab_block_pool.svg": paging_labs.lab_block_pool, "lab_scheduler.svg": paging_labs.lab_scheduler}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvscope", required=True)
    parser.add_argument("--update", action="store_true", help="write the diagrams that differ")
    parser.add_argument("names", nargs="*", help="diagrams, default: all")
    arguments = parser.parse_args()
    faults = [f"{name}: no diagram has this name: choose of {', '.join(DIAGRAMS)}" for name in arguments.names if name not in DIAGRAMS]
    for name in arguments.names or DIAGRAMS:
        if name not in DIAGRAMS:
            continue
        kept = FOLDER / name
        with tempfile.TemporaryDirectory() as folder:
            drawn = DIAGRAMS[name](Program(arguments.kvscope, folder)).finish()
        if kept.exists() and kept.read_text(encoding="utf-8") == drawn:
            continue
        if arguments.update:
            kept.write_text(drawn, encoding="utf-8")
            print(f"{name}: written, {len(drawn):,} bytes")
        else:
            faults.append(f"{name}: {'differs from what is drawn' if kept.exists() else 'is missing'}: run with --update and look at it")
    for fault in faults:
        print(fault)
    print(f"{len(arguments.names or DIAGRAMS)} diagrams, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
