"""Commands that write files, ended at seeded moments by signals and limits.

For each ending: the file of the command's name holds the old bytes or all of the new ones, and no other file is left; after KILL, which no
program can handle, other files may be left, but not under the output's name.

Endings: the signals KILL, TERM, INT, HUP, PIPE, ABRT, XFSZ and XCPU sent at a moment between the start of the command and its end, and
RLIMIT_FSIZE at a size between 0 and that of the output, which makes the system send XFSZ during a write.
"""
import collections
import glob
import os
import random
import resource
import shutil
import signal
import subprocess
import time

SIGNALS = ["KILL", "TERM", "INT", "HUP", "PIPE", "ABRT", "XFSZ", "XCPU"]
OLD = b"the old file\n"


def commands(viewer, kept):
    """[(name, program: kvscope or the viewer, arguments, outputs)]; {out} is the folder of the outputs."""
    scenario = os.path.join(kept, "small.json")
    golden = os.path.join(kept, "golden.safetensors")
    found = [
        ("golden .safetensors", 0, ["golden", scenario, "--out", "{out}/g.safetensors"], ["g.safetensors"]),
        ("golden .npz, candidate", 0, ["golden", scenario, "--out", "{out}/g.npz", "--candidate", "{out}/c.npz"], ["g.npz", "c.npz"]),
        ("run --out", 0, ["run", scenario, "--out", "{out}", "--trace", "full"], ["report.txt", "report.json", "scenario.json", "trace.kvt"]),
        ("stage", 0, ["stage", scenario, "--out", "{out}/s.npy", "--registers", "{out}/r.npy"], ["s.npy", "r.npy"]),
        ("convert", 0, ["convert", golden, "--from", "max", "--to", "nhd", "--out", "{out}/c.npz"], ["c.npz"]),
        ("merge", 0, ["merge", golden, golden, "--out", "{out}/m.safetensors"], ["m.safetensors"]),
        ("dtype", 0, ["dtype", "--from", "u8", "--to", "f32", os.path.join(kept, "shared.npy"), "{out}/x.npy"], ["x.npy"]),
        ("import", 0, ["import", os.path.join(kept, "flashinfer_log"), "--out", "{out}/i.npz", "--candidate", "{out}/e.npz"], ["i.npz", "e.npz"]),
        ("verify --junit", 0, ["verify", golden, os.path.join(kept, "candidate.npz"), "--junit", "{out}/j.xml"], ["j.xml"]),
        ("ptx run", 0, ["ptx", "run", os.path.join(kept, "scale.ptx"), "--block", "64", "--grid", "64", "--arg", "f32[4096]", "--arg", "2.5",
                        "--save", "0={out}/y.npy", "--json", "{out}/y.json", "--events", "{out}/y.txt"], ["y.npy", "y.json", "y.txt"]),
    ]
    if viewer:
        picture = ["--render", "{out}/p.png", "--scenario", scenario, "--size", "800x600"]
        found += [("viewer --render .png", 1, picture, ["p.png"]),
                  ("viewer --render .gif", 1, [picture[0], "{out}/p.gif", *picture[2:], "--to", "2"], ["p.gif"])]
    return found


def contents(folder):
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "**"), recursive=True) + glob.glob(os.path.join(folder, ".*"))):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def fresh(folder, outputs):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in outputs:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(OLD)


def ended(arguments, name, moment, size_limit, env):
    """Runs a command and sends the signal after `moment` seconds, or limits its files to `size_limit` bytes. Returns its exit code."""
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env) as child:
        try:
            resource.prlimit(child.pid, resource.RLIMIT_CORE, (0, 0))
            if size_limit is not None:
                resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (size_limit, size_limit))
            else:
                time.sleep(moment)
                child.send_signal(getattr(signal, "SIG" + name))
        except ProcessLookupError:
            pass
        return child.wait(60)


def attack(kvscope, viewer, seed, count, work, kept, report=print):
    """{(command, ending): Counter}, [(command, ending, fault)]; `count` endings in total."""
    table, faults = collections.defaultdict(collections.Counter), []
    for name in ("INT", "HUP", "TERM", "PIPE"):  # a shell may start this script with some of them ignored, which programs inherit
        signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)
    out = os.path.join(work, "killed")
    env = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    chosen = []
    for name, program, words, outputs in commands(viewer, kept):
        arguments = [(kvscope, viewer)[program], *(word.replace("{out}", out) for word in words)]
        best = 9.0
        for _ in range(3):
            fresh(out, outputs)
            begin = time.monotonic()
            done = subprocess.run(arguments, capture_output=True, env=env, check=False)
            best = min(best, time.monotonic() - begin)
            new = contents(out)
            if done.returncode != 0 or sorted(new) != sorted(outputs) or OLD in new.values():
                raise SystemExit(f"{name}: exit code {done.returncode}, wrote {sorted(new)}\n{done.stderr.decode()}")
        chosen.append((name, arguments, outputs, new, best))
    for number in range(count):
        rng = random.Random(f"{seed} kills {number}")
        name, arguments, outputs, new, seconds = chosen[number % len(chosen)]
        ending = [*SIGNALS, "FSIZE"][number // len(chosen) % (len(SIGNALS) + 1)]
        limit = rng.randrange(max(len(new[one]) for one in outputs) + 1) if ending == "FSIZE" else None
        fresh(out, outputs)
        code = ended(arguments, ending, rng.random() * 1.3 * seconds, limit, env)
        left = contents(out)
        states = {"old" if left.get(one) == OLD else "new" if same(one, left.get(one), new[one]) else "damaged" for one in outputs}
        others = sorted(set(left) - set(outputs))
        state = states.pop() if len(states) == 1 else "damaged" if "damaged" in states else "mixed"
        table[name, ending][state if code else "finished"] += 1
        wrong = f"damaged: {[one for one in outputs if left.get(one) not in (OLD, new[one])]}" if state == "damaged" else \
            f"files of two runs: {sorted(outputs)}" if state == "mixed" and name == "run --out" else \
            f"left behind: {others}" if others and ending != "KILL" else \
            f"exit code {code}" if code not in (0, 2) and code != -getattr(signal, "SIG" + ("XFSZ" if ending == "FSIZE" else ending)) else ""
        if wrong:
            faults.append((name, ending, wrong))
            report(f"kill #{number}: {name}, {ending}: {wrong}")
    shutil.rmtree(out, ignore_errors=True)
    return table, faults


def same(name, data, new):
    """Whether the file is the whole new one. The outputs of one command on one machine are the same in every run, except for the time that
    a JUnit file states."""
    return data == new or (name.endswith(".xml") and data is not None and data.endswith(new[-20:]) and data != OLD)
