"""compile() finds the kept PTX by the bytes of the submission, and checks that it was made for the same parameters."""
import collections
import hashlib
import inspect
import json
import os
import re
import types

from ..backends.nvidia import compiler as nvidia

ASTSource = collections.namedtuple("ASTSource", "fn signature constants attrs")
KEPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "kept")
PARAMETER = {"i32": "u32", "i64": "u64", "fp32": "f32"}  # of PTX; pointers are u64 .ptr


def parameter_types(ptx):
    return re.findall(r"\.param \.(u64 \.ptr|\w+)", ptx.split(")", 1)[0])


def compile(source, target, options):
    nvidia.get_ptxas_version()
    nvidia.CUDABackend().make_cubin("", {}, None, 90)
    assert target == ("cuda", 90, 32), target
    with open(inspect.getsourcefile(source.fn.fn), "rb") as file:
        number = hashlib.sha256(file.read()).hexdigest()
    path = os.path.join(KEPT, number)
    if not os.path.exists(path):
        raise RuntimeError("the stand-in has no PTX of this file: make it with tests/labs/triton_test.py --update")
    with open(path, encoding="utf-8") as file:
        facts, ptx = file.read().split("\n", 1)
    facts = json.loads(facts)
    kinds = [source.signature[name] for name in source.fn.arg_names if source.signature[name] != "constexpr"]
    wanted = ["u64 .ptr" if kind.startswith("*") else PARAMETER[kind] for kind in kinds]
    assert parameter_types(ptx)[:len(wanted)] == wanted, (parameter_types(ptx), wanted)
    assert sorted(source.constants) == [name for name in sorted(source.signature) if source.signature[name] == "constexpr"]
    assert options["num_warps"] == facts["num_warps"] and f".reqntid {32 * options['num_warps']}\n" in ptx, options
    metadata = types.SimpleNamespace(name=facts["name"], num_warps=facts["num_warps"], num_ctas=facts["num_ctas"],
                                     shared=facts["shared"], global_scratch_size=facts["scratch"])
    return types.SimpleNamespace(metadata=metadata, asm={"ptx": ptx})
