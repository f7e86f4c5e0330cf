#!/usr/bin/python3
"""Attacks on the programs, and the table of docs/RELIABILITY.md.

    run.py --kvscope PROGRAM --readers ATTACK_READERS [--viewer PROGRAM] [--full] [PART...]

Parts: inputs (mutated files through the commands that read them), readers (mutated files through the readers of tests/fuzz, in one process),
kills (commands that write, ended by signals and limits), hostile (kernels made to do harm). Without --full or KVSCOPE_FULL=1, a fixed subset
that takes seconds. The exit code is 1 if an attack found a fault.

    --seed N              of all mutations and moments [default: 17]
    --inputs N, --reads N, --kills N     numbers of attacks, in place of those of the subset or of --full
    --family NAME --first I              part inputs: only this family, from input number I on
    --keep FOLDER         keep each input that found a fault
"""
import argparse
import collections
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import hostile  # noqa: E402
import inputs  # noqa: E402
import kills  # noqa: E402
import readers  # noqa: E402
import seeds  # noqa: E402

PARTS = ["inputs", "readers", "kills", "hostile"]
QUICK = {"inputs": 340, "reads": 1700, "kills": 108}
FULL = {"inputs": 34000, "reads": 102000, "kills": 1080}


def row(name, number, outcome, faults):
    print(f"{name:<32} {number:>7}   {outcome:<52} {faults:>3} faults", flush=True)


def run_inputs(options, counts, work):
    found = 0
    for family, outcome, faults in inputs.attack_all(options.kvscope, options.seed, counts["inputs"], work, options.keep, options.family,
                                                     options.first):
        row(family.name, sum(outcome.values()), ", ".join(f"{outcome[one]} {one}" for one in ("accepted", "failed", "rejected", "ended")
                                                          if outcome[one]), len(faults))
        found += len(faults)
    return found


def run_readers(options, counts, _work):
    found = 0
    for reader, read, faults in readers.attack(options.readers, options.seed, counts["reads"], options.keep):
        row(f"reader {reader}", read, "", len(faults))
        found += len(faults)
    return found


def run_kills(options, counts, work):
    kept = os.path.join(work, "kept")
    if not os.path.exists(kept):
        seeds.make_kept(options.kvscope, kept)
    table, faults = kills.attack(options.kvscope, options.viewer, options.seed, counts["kills"], work, kept)
    for ending in [*kills.SIGNALS, "FSIZE"]:
        total = collections.Counter()
        for (_, one), states in table.items():
            if one == ending:
                total.update(states)
        row(f"ended by {ending}", sum(total.values()), ", ".join(f"{total[one]} {one}" for one in ("old", "new", "mixed", "finished", "damaged")
                                                                 if total[one]), sum(one == ending for _, one, _ in faults))
    return len(faults)


def run_hostile(options, _counts, work):
    modules, faults = hostile.attack(options.kvscope, work)
    row("hostile kernels", modules, "run, disasm, survey", len(faults))
    return len(faults)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kvscope", required=True, type=os.path.abspath)
    parser.add_argument("--readers", type=os.path.abspath)
    parser.add_argument("--viewer", type=os.path.abspath)
    parser.add_argument("--full", action="store_true", default=os.environ.get("KVSCOPE_FULL") == "1")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--family")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep")
    for name in QUICK:
        parser.add_argument("--" + name, type=int)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    options = parser.parse_args()
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"unknown part '{unknown[0]}': choose from {', '.join(PARTS)}")
    counts = {name: default if getattr(options, name) is None else getattr(options, name)
              for name, default in (FULL if options.full else QUICK).items()}
    parts = options.parts or PARTS
    if "readers" in parts and not options.readers:
        parser.error("the part 'readers' needs --readers ATTACK_READERS: build the target attack_readers")
    begin, found = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as work:
        for part in parts:
            found += globals()["run_" + part](options, counts, work)
    print(f"{found} faults, seed {options.seed}, {time.monotonic() - begin:.0f} s")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
