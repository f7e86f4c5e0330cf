"""The files that attacks start from, one family per file kind that the programs read, and the commands that read them.

Seeds are the kept inputs of tests/fuzz/corpus, files of apps/scenarios and apps/examples, and small files that kvscope writes. A command is
a list of arguments: {in} is the attacked file, {out} a folder that is empty before the command, {kept} the folder of unchanged files.
"""
import dataclasses
import glob
import json
import os
import shutil
import subprocess

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(SOURCE, "tests", "fuzz", "corpus")
EXAMPLES = os.path.join(SOURCE, "apps", "examples")
SCENARIOS = os.path.join(SOURCE, "apps", "scenarios")

SMALL = {"kvscope_scenario": 1, "name": "small", "model": {"preset": "tiny", "head_size": 16}, "cache": {"page_size": 4, "blocks": 16, "dtype": "bf16"},
         "requests": {"list": [{"prompt_tokens": 9, "generate_tokens": 3}, {"arrival_us": 5000, "prompt_tokens": 5, "generate_tokens": 2}]},
         "tile": {"BN": 16, "BK": 16}, "seed": 3}
CSV = b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4,2\n2023-11-16 18:17:04.1,9,3\n2023-11-16 18:18:00,5,1\n"
JSONL = b"".join(json.dumps({"timestamp": i * 100, "input_length": 600 + i, "output_length": 5, "hash_ids": [7, i]}).encode() + b"\n"
                 for i in range(4))


@dataclasses.dataclass
class Family:
    name: str
    kind: str  # key of mutators.STRUCTURE
    extension: str
    seeds: list  # [(name, bytes)]
    commands: list  # [[argument...]]
    reference: str = ""  # reader of checks.py that must accept what the command accepts
    stdin: bytes = b""
    asks: bool = False  # the file states how much work and memory it needs: `out of memory` is an answer
    main: int = 1  # the first seeds, which the commands accept; six of ten inputs are made from them


def read(path):
    with open(path, "rb") as file:
        return file.read()


def files(pattern, longest=40000):
    """Names and bytes of the files that match, in the order of their names; larger ones are omitted because they are only slower."""
    found = sorted(glob.glob(pattern))
    return [(os.path.basename(path), read(path)) for path in found if os.path.isfile(path) and os.path.getsize(path) <= longest]


def make_kept(kvscope, folder):
    """Writes the unchanged files that commands read beside the attacked one."""
    def run(*arguments):
        done = subprocess.run([kvscope, *arguments], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"cannot make the seeds: kvscope {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    os.makedirs(folder)
    for name, content in [("small.json", json.dumps(SMALL).encode()), ("small.csv", CSV), ("small.jsonl", JSONL)]:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    for extension in ("safetensors", "npz"):
        run("golden", "small.json", "--out", "golden." + extension, "--candidate", "candidate." + extension)
    run("golden", "small.json", "--inputs-only", "--out", "inputs.safetensors")
    for layout in ("nhd", "flashinfer", "vllm", "hf"):
        run("convert", "golden.safetensors", "--from", "max", "--to", layout, "--out", layout + ".npz")
    run("run", "small.json", "--out", "run", "--trace", "full")
    run("stage", "small.json", "--out", "shared.npy", "--registers", "registers.npy")
    for layout in ("nhd", "mla", "trtllm", "flashmla_fp8"):
        with open(os.path.join(folder, layout + ".layout.json"), "w", encoding="utf-8") as file:
            file.write(run("layout", "show", layout))
    shutil.copytree(os.path.join(EXAMPLES, "flashinfer_log"), os.path.join(folder, "flashinfer_log"))
    shutil.copytree(os.path.join(EXAMPLES, "flashinfer_bench"), os.path.join(folder, "flashinfer_bench"))
    for name in ("rows.json", "one_row.json", "scale.ptx"):
        shutil.copy(os.path.join(EXAMPLES, name), folder)


def families(kept):
    """All families over the folder that make_kept() wrote."""
    def here(*names):
        return [(name, read(os.path.join(kept, name))) for name in names]

    # The seed left out is valid, and its run with a whole trace takes 20 s.
    scenarios = [("small.json", read(os.path.join(kept, "small.json"))),
                 *(one for one in files(os.path.join(CORPUS, "scenario", "*")) if one[0] != "real_traffic_like.json"),
                 *files(os.path.join(SCENARIOS, "[clpqs]*.json"), 6000)]
    bundles = here("golden.safetensors", "candidate.safetensors", "inputs.safetensors") + files(os.path.join(CORPUS, "layouts", "*.safetensors")) + \
        files(os.path.join(CORPUS, "safetensors", "*"))
    archives = here("golden.npz", "candidate.npz", "nhd.npz", "flashinfer.npz", "vllm.npz", "hf.npz") + files(os.path.join(CORPUS, "npz", "*"))
    arrays = here("shared.npy", "registers.npy") + files(os.path.join(CORPUS, "npy", "*"))
    traces = here("run/trace.kvt") + files(os.path.join(CORPUS, "trace", "*"))
    modules = here("scale.ptx") + files(os.path.join(CORPUS, "ptx_*", "*")) + files(os.path.join(SOURCE, "gpu", "ptx", "*.ptx"), 30000)
    maps = here("rows.json", "one_row.json") + files(os.path.join(CORPUS, "tensor_map_json", "*"))
    layouts = here("nhd.layout.json", "mla.layout.json", "trtllm.layout.json", "flashmla_fp8.layout.json")
    log = sorted(os.listdir(os.path.join(kept, "flashinfer_log")))[-1]

    def of_tensors(file):
        return [["golden", "--input", file, "--layout", layout, "--out", "{out}/g.npz"] for layout in ("nhd", "max")] + [
            ["golden", "--input", file, "--out", "{out}/g.safetensors"],
            ["lint", file, "--vector-read", "4", "--tma", "--strict"], ["lint", file, "--layout", "flashinfer"],
            ["layout", "detect", file], ["convert", file, "--from", "max", "--to", "nhd", "--out", "{out}/c.npz"],
            ["convert", file, "--from", "nhd", "--to", "vllm", "--out", "{out}/c.safetensors"],
            ["verify", file, "{kept}/candidate.npz"], ["verify", "{kept}/golden.safetensors", file],
            ["verify", "{kept}/golden.npz", file, "--input", "{kept}/inputs.safetensors", "--junit", "{out}/j.xml"],
            ["diagnose", file, "{kept}/candidate.npz"], ["diagnose", "{kept}/golden.npz", file],
            ["merge", file, "{kept}/golden.npz", "--out", "{out}/m.npz"],
            ["reduce", "{kept}/golden.npz", file, "--input", "{kept}/inputs.safetensors", "--out", "{out}/r.npz"]]

    return [
        Family("scenario", "json", ".json", scenarios,
               [["scenario", "check", "{in}"], ["run", "{in}"], ["run", "{in}", "--out", "{out}/run", "--trace", "full"],
                ["explain", "{in}", "--seq", "0", "--token", "1"], ["stage", "{in}", "--out", "{out}/s.npy"],
                ["stage", "{in}", "--path", "lds", "--registers", "{out}/r.npy"], ["tma", "engines", "{in}"],
                ["lds", "table", "{in}"], ["lds", "schedule", "{in}"], ["golden", "{in}", "--out", "{out}/g.safetensors"]], "json", asks=True),
        Family("requests (csv)", "csv", ".csv", [("small.csv", CSV), *files(os.path.join(CORPUS, "import_csv", "*"))],
               [["scenario", "check", "{kept}/small.json", "--requests", "{in}"], ["run", "{kept}/small.json", "--requests", "{in}"]],
               asks=True),
        Family("requests (jsonl)", "jsonl", ".jsonl", [("small.jsonl", JSONL), *files(os.path.join(CORPUS, "import_jsonl", "*"))],
               [["scenario", "check", "{kept}/small.json", "--requests", "{in}"], ["run", "{kept}/small.json", "--requests", "{in}"]],
               "jsonl", asks=True),
        Family("trace", "kvt", ".kvt", traces,
               [["trace", "show", "{in}", "--verify"], ["trace", "show", "{in}"], ["trace", "show", "{in}", "--json", "--step", "1"],
                ["trace", "diff", "{in}", "{kept}/run/trace.kvt"], ["trace", "diff", "{kept}/run/trace.kvt", "{in}"]], "kvt"),
        Family("bundle (safetensors)", "safetensors", ".safetensors", bundles, of_tensors("{in}"), "safetensors", main=3),
        Family("bundle (npz)", "npz", ".npz", archives, of_tensors("{in}"), "npz", main=3),
        Family("array (npy)", "npy", ".npy", arrays,
               [["dtype", "--from", source, "--to", "e4m3", "{in}", "{out}/x.npy"] for source in ("f32", "u8", "f16")] +
               [["verify", "{kept}/golden.npz", "{in}"], ["tma", "copy", "{kept}/rows.json", "--data", "{in}", "--at", "0,1"],
                ["ptx", "run", "{kept}/scale.ptx", "--block", "4", "--arg", "{in}", "--arg", "2", "--save", "0={out}/y.npy"]], "npy"),
        Family("tensor map", "json", ".json", maps,
               [["tma", "check", "{in}"], ["tma", "copy", "{in}", "--data", "{kept}/shared.npy", "--out", "{out}/c.npy"],
                ["ptx", "run", "{kept}/scale.ptx", "--arg", "map:{in}", "--arg", "2"]], "json"),
        Family("layout description", "json", ".json", layouts,
               [["layout", "show", "{in}"], ["layout", "diff", "{in}", "nhd"],
                ["convert", "{kept}/golden.npz", "--from", "max", "--to", "{in}", "--out", "{out}/c.npz"],
                ["golden", "--input", "{kept}/nhd.npz", "--layout", "{in}", "--out", "{out}/g.npz"]], "json"),
        Family("layout expression", "text", ".txt", files(os.path.join(CORPUS, "layout_expr", "*")) + [("a", b"(8,(4,2)):(4,(1,32))")],
               [["layout", "{text}"], ["layout", "{text}", "--json"]]),
        Family("FlashInfer log", "jsonl", ".jsonl", [("metadata.jsonl", read(os.path.join(kept, "flashinfer_log", log, "metadata.jsonl")))],
               [["import", "{folder:flashinfer_log/" + log + "/metadata.jsonl}", "--out", "{out}/i.safetensors", "--candidate", "{out}/c.npz"]]),
        Family("FlashInfer log, tensors", "safetensors", ".safetensors",
               files(os.path.join(kept, "flashinfer_log", "*", "*.safetensors")),
               [["import", "{folder:flashinfer_log/" + log + "/inputs.safetensors}", "--out", "{out}/i.safetensors"]]),
        Family("workload (flashinfer-bench)", "jsonl", ".jsonl",
               [("gqa_small.jsonl", read(os.path.join(kept, "flashinfer_bench/workloads/gqa_paged/gqa_small.jsonl")))],
               [["import", "{folder:flashinfer_bench/workloads/gqa_paged/gqa_small.jsonl}", "--uuid", "one", "--out", "{out}/w.npz"]]),
        Family("definition (flashinfer-bench)", "json", ".json",
               files(os.path.join(kept, "flashinfer_bench/definitions/gqa_paged/*.json")),
               [["import", "{kept}/flashinfer_bench/workloads/gqa_paged/gqa_small.jsonl", "--uuid", "one", "--definition", "{in}",
                 "--out", "{out}/w.npz"]], "json"),
        Family("PTX", "ptx", ".ptx", modules,
               [["ptx", "disasm", "{in}"], ["ptx", "survey", "{in}", "--words"],
                ["ptx", "run", "{in}", "--block", "33", "--grid", "2", "--max-instructions", "20000", "--arg", "f32[64]", "--arg", "2.5"],
                ["ptx", "run", "{in}", "--block", "32", "--max-instructions", "20000", "--check", "all", "--counters", "--arg", "u8[4096]",
                 "--arg", "u8[4096]", "--arg", "7", "--trace", "{out}/t.kvt"]], asks=True),
        Family("PTX, debugger", "ptx", ".ptx", modules,
               [["ptx", "debug", "{in}", "--block", "33", "--max-instructions", "20000", "--arg", "f32[64]", "--arg", "2.5"]],
               asks=True, stdin=b"step 3\nwhere\nregisters\nback\nbarrier\nrun\nreports\nquit\n"),
        Family("debugger's commands", "text", ".txt",
               [("commands", b"step 8\nprint %r4\nback\nwhere\nbreak scale.cu:4\nwatch global 0x100000000 16\nrun\nx shared 0 64\ngoto 3\n"
                             b"x global 4294967296 32\nbarriers\ncopies\npick 0 1\nline\nbackline\nevent\ndelete 1\nreport\nhelp\nquit\n")],
               [["ptx", "debug", "{kept}/scale.ptx", "--block", "64", "--arg", "f32[64]", "--arg", "2.5"]], stdin=b"{in}"),
    ]
