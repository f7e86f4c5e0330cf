"""The kept inputs of tests/fuzz and mutations of them for its readers, many in one process (attack_readers): no signal, at most 30 s of
processor time for one input, and at most checks.ADDRESS_SPACE of memory (no limit under the sanitizers, which reserve more). Each reader also checks what it reads, for instance that a scenario prints as one that reads again."""
import glob
import os
import random
import resource
import signal
import struct

import checks
import mutators
import seeds

BATCH = 250
KINDS = {"import_csv": "csv", "import_jsonl": "jsonl", "isa_forms": "text", "json": "json", "layout_expr": "text",
         "layouts": "safetensors", "lint": "safetensors", "npy": "npy", "npz": "npz", "parameter_layout": "text", "playback": "text",
         "ptx_decode": "ptx", "ptx_run": "ptx", "ptx_text": "ptx", "safetensors": "safetensors", "scenario": "json", "tensor_map": "text",
         "tensor_map_json": "json", "trace": "kvt"}


ADDRESS_SPACE = resource.RLIM_INFINITY if os.environ.get("KVSCOPE_SLOW_BUILD") == "1" else checks.ADDRESS_SPACE


def inputs(reader, seed, first, count):
    """Input n is the n-th kept input, then mutations."""
    kept = seeds.files(os.path.join(seeds.CORPUS, reader, "*"))
    for number in range(first, first + count):
        if number < len(kept):
            yield number, kept[number][1]
            continue
        rng = random.Random(f"{seed} {reader} {number}")
        name, data = rng.choice(kept)
        kind = "npz" if name.endswith(".npz") else KINDS[reader]
        yield number, mutators.mutate(rng, kind, data, rng.choice(kept)[1])


def attack(program, seed, count, keep=None, report=print):
    """Yields (reader, inputs, [fault...]); `count` inputs in total."""
    readers = sorted(os.path.basename(path)[:-len("_fuzz.cpp")] for path in glob.glob(os.path.join(seeds.SOURCE, "tests", "fuzz", "*_fuzz.cpp")))
    if readers != sorted(KINDS):
        raise SystemExit(f"readers of tests/fuzz without a kind in {os.path.basename(__file__)}: {sorted(set(readers) ^ set(KINDS))}")
    each = -(-count // len(readers))
    for reader in readers:
        faults, read = [], 0
        for first in range(0, each, BATCH):
            batch = list(inputs(reader, seed, first, min(BATCH, each - first)))
            stdin = b"".join(struct.pack("<Q", len(data)) + data for _, data in batch)
            code, out, err, _ = checks.run([program, reader], stdin, address_space=ADDRESS_SPACE, processor_time=3600, wall_time=7200)
            if code == 0:
                read += int(out)
                continue
            at = max((int(line) for line in err.split(b"\n") if line.isdigit()), default=0)
            number, data = batch[at]
            read += at
            said = b" ".join(line for line in err.split(b"\n") if not line.isdigit())[:300].decode("utf-8", "replace")
            faults.append(f"{reader} #{number}: {'more than 30 s' if code == -signal.SIGPROF else f'exit code {code}'} {said}")
            report(faults[-1])
            if keep:
                os.makedirs(keep, exist_ok=True)
                with open(os.path.join(keep, f"{reader}_{number}"), "wb") as file:
                    file.write(data)
        yield reader, read, faults
