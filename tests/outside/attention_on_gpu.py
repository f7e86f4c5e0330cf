#!/usr/bin/env python3
"""Published attention kernels on a GPU, judged by `kvscope golden` and `kvscope verify`: the kernels behind PyTorch's
scaled_dot_product_attention, and the Triton kernels of docs/examples/check_triton_kernels.

    attention_on_gpu.py --kvscope build/release/apps/kvscope/kvscope --out attention.json

Every kernel runs on each problem (type, data, lengths) with the problem's own inputs, which must pass, and with inputs that
have one mistake. Those must fail if the mistake changes an exact output by at least 8 times the largest rounding error that the
problem's own inputs have shown so far. Needs a GPU, and torch, triton, safetensors and numpy.
Exit codes: 0 as it must be, 1 not, 77 no GPU or a missing package.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

try:
    import torch
    from safetensors.torch import save_file
except ImportError as missing:
    print(f"skipped: {missing}", file=sys.stderr)
    sys.exit(77)

HEADS, KV_HEADS = 8, 2
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs/examples/check_triton_kernels"
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


# --- problems ---------------------------------------------------------------------------------------------------------

def problems(quick):
    """name -> (type, kind of data, queries per sequence, keys per sequence, head size)"""
    made = {}
    for dtype in TYPES:
        for kind in ("normal", "biased", "peaky", "flat"):
            shapes = [(1, 17, 64), (1, 188, 128), (1, 1000, 128), (1, 4096, 128), (1, 16384, 128), (1, 65536, 64),
                      (17, 17, 64), (188, 188, 128), (1000, 1000, 128), (2048, 2048, 64)]
            for queries, keys, dims in shapes[:2] + shapes[6:8] if quick else shapes:
                made[f"{dtype}_{kind}_{queries}x{keys}x{dims}"] = (dtype, kind, queries, keys, dims)
    return made


def inputs(dtype, kind, queries, keys, dims, seed):
    """q [B, Hq, Sq, D]; k, v [B, H, Sk, D], of two sequences, on the GPU"""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    normal = lambda *shape: torch.randn(*shape, generator=generator, device="cuda", dtype=torch.float32)
    q, k, v = normal(2, HEADS, queries, dims), normal(2, KV_HEADS, keys, dims), normal(2, KV_HEADS, keys, dims)
    if kind == "biased":
        v += 4
    elif kind == "peaky":
        q *= 4
    elif kind == "flat":
        k *= 1 / 64
    return [x.to(TYPES[dtype]).contiguous() for x in (q, k, v)]


# --- kernels ----------------------------------------------------------------------------------------------------------

def wide(x):
    return x.repeat_interleave(HEADS // KV_HEADS, dim=1)


def flash(q, k, v, scale):
    made = torch.ops.aten._scaled_dot_product_flash_attention(q, wide(k), wide(v), 0.0, q.shape[2] > 1, False, scale=scale)
    return made[0], made[1]


def efficient(q, k, v, scale):
    made = torch.ops.aten._scaled_dot_product_efficient_attention(q, wide(k), wide(v), None, True, 0.0, q.shape[2] > 1,
                                                                  scale=scale)
    return made[0], made[1][:, :, :q.shape[2]]


def cudnn(q, k, v, scale):
    made = torch.ops.aten._scaled_dot_product_cudnn_attention(q, wide(k), wide(v), None, True, 0.0, q.shape[2] > 1, False,
                                                              scale=scale)
    return made[0], made[1].reshape(q.shape[:3])


def math(q, k, v, scale):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q, wide(k), wide(v), is_causal=q.shape[2] > 1,
                                                                scale=scale), None


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def triton_decode(q, k, v, scale, page=16):
    """The keys in a paged cache of shuffled blocks; the first block, which no sequence owns, is NaN."""
    assert scale == q.shape[3] ** -0.5
    batch, _, keys, dims = k.shape
    pages = -(-keys // page)
    order = torch.randperm(batch * pages, device="cuda", generator=torch.Generator(device="cuda").manual_seed(5)) + 1
    cache = torch.full((1 + batch * pages, 2, page, KV_HEADS, dims), float("nan"), device="cuda", dtype=k.dtype)
    for which, x in ((0, k), (1, v)):
        padded = torch.zeros(batch, pages * page, KV_HEADS, dims, device="cuda", dtype=k.dtype)
        padded[:, :keys] = x.transpose(1, 2)
        cache[order, which] = padded.reshape(batch * pages, page, KV_HEADS, dims)
    table = order.reshape(batch, pages).to(torch.int32).contiguous()
    lengths = torch.full((batch,), keys, device="cuda", dtype=torch.int32)
    rows = q[:, :, 0].contiguous()
    out, lse = torch.empty_like(rows), torch.empty(batch, HEADS, device="cuda", dtype=torch.float32)
    module = example("paged_decode")
    grid, positional, constants = module.arguments(rows, cache, table, lengths, out, lse, 64 if dims < 128 else 32)
    module.paged_decode[grid](*positional, **constants)
    return out[:, :, None], lse[:, :, None]


def triton_flash(q, k, v, scale):
    assert scale == q.shape[3] ** -0.5
    by_token = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    out = torch.empty_like(by_token[0])
    example("flash_attention").run(*by_token, out)
    return out.transpose(1, 2), None


# name -> (kernel, types, decode only, prefill only, options of verify)
KERNELS = {
    "torch flash": (flash, ("bf16", "f16"), False, False, []),
    "torch efficient": (efficient, ("bf16", "f16", "f32"), False, False, []),
    "torch cudnn": (cudnn, ("bf16", "f16"), False, True, []),
    "torch math": (math, ("bf16", "f16", "f32"), False, False, []),
    "triton paged_decode": (triton_decode, ("bf16", "f16"), True, False, []),
    "triton flash_attention": (triton_flash, ("bf16", "f16"), False, True, []),
}


# --- mistakes ---------------------------------------------------------------------------------------------------------

def omitted_key(q, k, v):
    """The last key of each sequence is a copy of the one before."""
    k, v = k.clone(), v.clone()
    k[:, :, -1], v[:, :, -1] = k[:, :, -2], v[:, :, -2]
    return q, k, v


def wrong_page(q, k, v):
    """Tokens 0 to 15 of sequence 1 are those of sequence 0."""
    k, v = k.clone(), v.clone()
    k[1, :, :16], v[1, :, :16] = k[0, :, :16], v[0, :, :16]
    return q, k, v


def wrong_head(q, k, v):
    """The two KV heads are exchanged."""
    return q, k.flip(1).contiguous(), v.flip(1).contiguous()


def wrong_scale(q, k, v):
    """The scores are a 64th too large."""
    return (q.float() * (1 + 1 / 64)).to(q.dtype), k, v


def values_of_keys(q, k, v):
    """V is K."""
    return q, k, k


MISTAKES = {"omitted key": omitted_key, "wrong page": wrong_page, "wrong head": wrong_head, "wrong scale": wrong_scale,
            "K as V": values_of_keys}


# --- the verdict ------------------------------------------------------------------------------------------------------

def run(command, limit=240):
    made = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    return made.returncode, made.stdout, made.stderr


def golden(kvscope, folder, name, q, k, v):
    """The command; the keys in pages of 16 tokens, so that verify tests pages too."""
    batch, heads, queries, dims = q.shape
    rows = q.transpose(1, 2).reshape(batch * queries, heads, dims).contiguous().cpu()
    offsets = torch.arange(batch + 1, dtype=torch.int32) * queries
    lengths = torch.full((batch,), k.shape[2], dtype=torch.int32)
    pages = -(-k.shape[2] // 16)
    cache = torch.zeros(batch * pages, 2, 16, KV_HEADS, dims, dtype=k.dtype)
    for which, x in ((0, k), (1, v)):
        padded = torch.zeros(batch, pages * 16, KV_HEADS, dims, dtype=k.dtype)
        padded[:, :k.shape[2]] = x.transpose(1, 2).cpu()
        cache[:, which] = padded.reshape(batch * pages, 16, KV_HEADS, dims)
    table = torch.arange(batch * pages, dtype=torch.int32).reshape(batch, pages)
    save_file({"q": rows, "query_start_loc": offsets, "seq_lens": lengths, "block_table": table, "kv_cache": cache},
              f"{folder}/{name}.inputs.safetensors")
    return [kvscope, "golden", "--input", f"{folder}/{name}.inputs.safetensors", "--layout", "vllm", "--out",
            f"{folder}/{name}.golden.safetensors"]


def exact(q, k, v, scale):
    """o in double precision, of one sequence after the other"""
    out = []
    for i in range(q.shape[0]):
        s = q[i].double() @ wide(k[i:i + 1])[0].double().transpose(1, 2) * scale
        if q.shape[2] > 1:
            s.masked_fill_(torch.ones_like(s[0], dtype=torch.bool).triu(1), float("-inf"))
        out.append(torch.softmax(s, 2) @ wide(v[i:i + 1])[0].double())
    return torch.stack(out)



def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kvscope", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="small problems only")
    parser.add_argument("--limit", type=float, default=1e9, help="start no comparison after this time [seconds]")
    parser.add_argument("--keep", help="folder for the files of outputs that are judged otherwise than they must be")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: torch finds no GPU", file=sys.stderr)
        return 77
    torch.backends.cuda.matmul.allow_tf32 = False
    began = time.time()
    rows, checks = [], []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        goldens = {}
        for number, (name, (dtype, kind, queries, keys, dims)) in enumerate(problems(asked.quick).items()):
            q, k, v = inputs(dtype, kind, queries, keys, dims, 1000 * asked.seed + number)
            right, rounding = exact(q, k, v, dims ** -0.5), 0.0
            goldens[name] = pool.submit(run, golden(asked.kvscope, folder, name, q, k, v))
            effects = {}  # by mistake: the largest change of an exact output
            for kernel, (call, types, decode, prefill, options) in KERNELS.items():
                if dtype not in types or (decode and queries > 1) or (prefill and queries == 1):
                    continue
                for mistake, spoil in {"": lambda *x: x, **MISTAKES}.items():
                    row = dict(problem=name, kernel=kernel, mistake=mistake)
                    rows.append(row)
                    try:
                        spoiled = spoil(q, k, v)
                        o, lse = call(*spoiled, dims ** -0.5)
                        if not mistake:
                            rounding = max(rounding, (o.double() - right).abs().max().item())
                        elif mistake not in effects:
                            effects[mistake] = (exact(*spoiled, dims ** -0.5) - right).abs().max().item()
                        row["effect"] = effects[mistake] / max(rounding, 1e-300) if mistake else 0
                        tensors = {"o": o.transpose(1, 2).reshape(-1, HEADS, dims).contiguous().cpu()}
                        if lse is not None:
                            tensors["lse"] = lse.float().transpose(1, 2).reshape(-1, HEADS).contiguous().cpu()
                    except Exception as error:  # a kernel that does not take the problem
                        row["skipped"] = str(error).splitlines()[0][:200]
                        continue
                    file = f"{folder}/{len(rows)}.safetensors"
                    save_file(tensors, file)
                    checks.append((row, name, file, options))
        print(f"{len(checks)} outputs of {len(goldens)} problems after {time.time() - began:.0f} s", flush=True)

        def check(item):
            row, name, file, options = item
            code, _, errors = goldens[name].result()
            if code != 0:
                row["skipped"] = "golden: " + errors[:300]
                return
            arguments = [asked.kvscope, "verify", f"{folder}/{name}.golden.safetensors", file, "--json", "--no-diagnose",
                         *options]
            if time.time() - began > asked.limit:
                row["skipped"] = "the time limit"
                return
            code, out, errors = run(arguments)
            row["exit"] = code
            if code == 2:
                row["skipped"] = "verify: " + errors[:300]
                return
            row["report"] = json.loads(out)
            if asked.keep and code == (0 if row["mistake"] else 1):
                pathlib.Path(asked.keep).mkdir(parents=True, exist_ok=True)
                for kept in (file, f"{folder}/{name}.inputs.safetensors"):
                    shutil.copy(kept, asked.keep)
                row["kept"] = [pathlib.Path(file).name, f"{name}.inputs.safetensors"]
            pathlib.Path(file).unlink()

        random.Random(asked.seed).shuffle(checks)
        list(pool.map(check, checks))
    versions = dict(gpu=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda,
                    cudnn=torch.backends.cudnn.version())
    pathlib.Path(asked.out).write_text(json.dumps(dict(versions=versions, seed=asked.seed, rows=rows)))
    good = True
    for kernel in KERNELS:
        mine = [row for row in rows if row["kernel"] == kernel]
        right = [row for row in mine if not row["mistake"] and "exit" in row and row["exit"] != 2]
        wrong = [row for row in mine if row["mistake"] and "exit" in row and row["exit"] != 2]
        rejected = [row["problem"] for row in right if row["exit"] == 1]
        accepted = [f"{row['problem']} {row['mistake']} {row['effect']:.1f}" for row in wrong if row["exit"] == 0]
        above = [row for row in wrong if row["effect"] >= 8]
        missed = [f"{row['problem']} {row['mistake']} {row['effect']:.1f}" for row in above if row["exit"] == 0]
        good = good and not rejected and not missed and not [row for row in mine if "skipped" in row and "verify" in row["skipped"]]
        print(f"{kernel}: {len(right)} right, {len(rejected)} of them rejected {rejected[:8]}; {len(wrong)} wrong, "
              f"{len(accepted)} of them accepted; {len(above)} of effect 8 times rounding or more, {len(missed)} accepted "
              f"{missed[:12]}; {sum('skipped' in row for row in mine)} skipped "
              f"{sorted({row['skipped'] for row in mine if 'skipped' in row})[:3]}", flush=True)
    print(f"{time.time() - began:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
