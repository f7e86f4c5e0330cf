"""Mutated inputs: every file kind, through every command that reads it. Input number i of a family depends on the seed, the family and i
alone, so that one input can be made again: `run.py inputs --family NAME --first I --count 1 --keep FOLDER`.
"""
import collections
import os
import random
import shutil

import checks
import mutators
import seeds


LONGEST_ARGUMENT = 100_000  # [bytes]; Linux takes less than 128 KiB


def words_of(command, family, path, data, kept, out):
    """The arguments of a command, and the folder to remove afterwards."""
    remove, words = None, []
    for word in command:
        if word.startswith("{folder:"):  # a copy of a kept folder in which one file is replaced
            top, inside = word[8:-1].split("/", 1)
            remove = os.path.join(os.path.dirname(out), top)
            shutil.rmtree(remove, ignore_errors=True)
            shutil.copytree(os.path.join(kept, top), remove)
            shutil.copy(path, os.path.join(remove, inside))
            words.append(remove if top == "flashinfer_log" else os.path.join(remove, inside))
        elif word == "{text}":
            words.append(data[:LONGEST_ARGUMENT].replace(b"\0", b"?").decode("utf-8", "surrogateescape") or "(")
        else:
            words.append(word.replace("{in}", path).replace("{kept}", kept).replace("{out}", out))
    if family.name == "layout expression" and words[1].startswith("-"):
        words[1] = "(" + words[1]
    return words, remove


def attack(kvscope, family, seed, first, count, work, kept, keep=None, report=print):
    """Counts by outcome: accepted, failed (exit code 1), rejected, and each class of fault with its texts."""
    counts, faults = collections.Counter(), []
    out, path = os.path.join(work, "out"), os.path.join(work, "attacked" + family.extension)
    for number in range(first, first + count):
        rng = random.Random(f"{seed} {family.name} {number}")
        name, data = rng.choice(family.seeds[:family.main] if rng.random() < 0.6 else family.seeds)
        data = mutators.mutate(rng, family.kind, data, rng.choice(family.seeds)[1])
        with open(path, "wb") as file:
            file.write(data)
        checks.emptied(out)
        words, remove = words_of(family.commands[number % len(family.commands)], family, path, data, kept, out)
        stdin = data if family.stdin == b"{in}" else family.stdin
        code, printed, err, seconds = checks.run([kvscope, *words], stdin, cwd=work)
        if code == 2 and words[:2] == ["ptx", "debug"] and not err and printed:
            err = b"kvscope: the debugger answers its commands on standard output\n"
        kind, text = checks.fault(code, printed, err, seconds, checks.written(out),
                                  [word for word in words + [w.split("=", 1)[-1] for w in words] if word.startswith(out)],
                                  family.asks)
        whole = family.kind != "kvt" or "--verify" in words  # the other commands read a part of a trace
        if not kind and code in (0, 1) and whole:
            rejected = checks.rejected_by_reference(family.reference, data)
            if rejected:
                kind, text = "accepted", f"the reference reader rejects it: {rejected}"
        counts[{0: "accepted", 1: "failed", 2: "rejected"}.get(code, "ended")] += 1
        if kind:
            faults.append((kind, number, name, words, text))
            report(f"{family.name} #{number} ({name}): {kind}: {text}\n    kvscope {' '.join(words)!r}")
            if keep:
                os.makedirs(keep, exist_ok=True)
                shutil.copy(path, os.path.join(keep, f"{family.name.replace(' ', '_').replace(',', '')}_{number}{family.extension}"))
        if remove:
            shutil.rmtree(remove, ignore_errors=True)
    return counts, faults


def attack_all(kvscope, seed, count, work, keep=None, only=None, first=0, report=print):
    """Yields (family, counts, faults); `count` inputs in total, the same number for each family."""
    kept = os.path.join(work, "kept")
    if not os.path.exists(kept):
        seeds.make_kept(kvscope, kept)
    chosen = [family for family in seeds.families(kept) if only is None or family.name == only]
    if not chosen:
        raise SystemExit(f"no family '{only}': choose one of {', '.join(family.name for family in seeds.families(kept))}")
    each = -(-count // len(chosen))
    for family in chosen:
        yield family, *attack(kvscope, family, seed, first, each, work, kept, keep, report)
