"""The hooks of kv.capture against the sources of installed backends: each class, function, argument and attribute that a hook reads.

A package is read as text and never imported: its import may need a GPU. Each package that is not installed skips its tests;
KVSCOPE_BACKENDS is a list of folders, separated by colons, with unpacked wheels to look into first.
"""
import ast
import importlib.util
import inspect
import os
import pathlib
import re

import pytest

import kvscope as kv
from kvscope import _capture_sources as sources

# (file, class) whose function a hook replaces, the function's names, and the source that reads its calls.
VLLM = "v1/attention/backends/flash_attn.py"
SGLANG = "srt/layers/attention/base_attn_backend.py"
HOOKS = [
    ("vllm", VLLM, "FlashAttentionImpl", ["forward"], sources._vllm),
    ("sglang", SGLANG, "AttentionBackend", ["forward"], sources._sglang),
    ("flashinfer", "decode.py", "BatchDecodeWithPagedKVCacheWrapper", ["plan", "begin_forward"], sources._flashinfer_plan),
    ("flashinfer", "prefill.py", "BatchPrefillWithPagedKVCacheWrapper", ["plan", "begin_forward"], sources._flashinfer_plan),
    ("flashinfer", "decode.py", "BatchDecodeWithPagedKVCacheWrapper", ["run", "run_return_lse"], sources._flashinfer_run),
    ("flashinfer", "prefill.py", "BatchPrefillWithPagedKVCacheWrapper", ["run", "run_return_lse"], sources._flashinfer_run),
]
# The attributes that a source reads of a variable, and where the package sets them: a file, and its class if it is one.
ATTRIBUTES = [
    ("vllm", sources._vllm, "metadata", VLLM, "FlashAttentionMetadata"),
    ("vllm", sources._vllm, "impl", VLLM, "FlashAttentionImpl"),
    ("sglang", sources._sglang, "layer", "srt/layers/radix_attention.py", "RadixAttention"),
    ("sglang", sources._sglang, "batch", "srt/model_executor/forward_batch_info.py", "ForwardBatch"),
    ("sglang", sources._sglang, "pool", "srt/mem_cache/memory_pool.py", "MHATokenToKVPool"),
]
# What a plan must name, by wrapper: the values that decide the result.
PLANNED = {"decode.py": {"indptr", "indices", "last_page_len", "pos_encoding_mode", "window_left", "logits_soft_cap", "sm_scale"},
           "prefill.py": {"qo_indptr", "paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len", "causal",
                          "custom_mask", "packed_custom_mask", "pos_encoding_mode", "window_left", "logits_soft_cap", "sm_scale"}}


def folders_of(package):
    """The folders of a package: those of KVSCOPE_BACKENDS, else the installed one."""
    given = [pathlib.Path(folder) / package for folder in filter(None, os.environ.get("KVSCOPE_BACKENDS", "").split(":"))]
    found = [folder for folder in given if folder.is_dir()]
    spec = None if found else importlib.util.find_spec(package)
    return found or [pathlib.Path(spec.origin).parent] if spec or found else []


def parsed(package, file):
    """(folder, syntax tree) of the file in each folder of the package; skips the test without one."""
    folders = folders_of(package)
    if not folders:
        pytest.skip(f"{package} is not installed: pip install it, or name the folder of an unpacked wheel in KVSCOPE_BACKENDS")
    return [(folder, ast.parse((folder / file).read_text(encoding="utf-8"))) for folder in folders]


def class_of(tree, name):
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    assert found, f"no class {name}"
    return found[0]


def function_of(owner, name):
    """The last definition of a function (the others are overloads), also through `name = other` and functools.partialmethod."""
    defined = [node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == name]
    if defined:
        return defined[-1]
    aliases = [node.value for node in owner.body
               if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)]
    assert aliases, f"{owner.name} has no function {name}"
    other = aliases[-1].args[0] if isinstance(aliases[-1], ast.Call) else aliases[-1]
    return function_of(owner, other.id)


def arguments_of(function):
    given = function.args
    return {a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, [given.vararg, given.kwarg]))}


def members_of(owner):
    """Fields, functions, and attributes that any function of the class sets."""
    names = {node.name for node in owner.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    for node in ast.walk(owner):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for one in ast.walk(target):
                    names |= {one.id} if isinstance(one, ast.Name) else {one.attr} if isinstance(one, ast.Attribute) else set()
    return names


@pytest.mark.parametrize("package,file,name,functions,source", HOOKS, ids=lambda value: value if isinstance(value, str) else None)
def test_a_hooked_function_exists_and_has_the_arguments_that_the_hook_reads(package, file, name, functions, source):
    read = set(re.findall(r'call\.at\("(\w+)"\)', inspect.getsource(source))) - {"return"}
    assert "self" in read or package == "sglang"
    for folder, tree in parsed(package, file):
        for function in functions:
            missing = read - arguments_of(function_of(class_of(tree, name), function))
            assert not missing, f"{folder}: {name}.{function} has no argument {missing}"


@pytest.mark.parametrize("package,source,variable,file,name", ATTRIBUTES, ids=lambda value: value if isinstance(value, str) else None)
def test_a_class_has_the_attributes_that_a_hook_reads(package, source, variable, file, name):
    read = set(re.findall(rf"\b{variable}\.(\w+)", inspect.getsource(source)))
    assert read
    for folder, tree in parsed(package, file):
        missing = read - members_of(class_of(tree, name))
        assert not missing, f"{folder}: {name} has no attribute {missing}"


def test_batches_of_sglang_or_its_backends_have_the_pools():
    pools = {"token_to_kv_pool", "req_to_token_pool"}
    batches = parsed("sglang", "srt/model_executor/forward_batch_info.py")
    for file, name in (("triton_backend.py", "TritonAttnBackend"), ("flashinfer_backend.py", "FlashInferAttnBackend"),
                       ("flashattention_backend.py", "FlashAttentionBackend"), ("torch_native_backend.py", "TorchNativeAttnBackend")):
        for (folder, batch), (_, backend) in zip(batches, parsed("sglang", f"srt/layers/attention/{file}")):
            missing = pools - members_of(class_of(batch, "ForwardBatch")) - members_of(class_of(backend, name))
            assert not missing, f"{folder}: neither ForwardBatch nor {name} has {missing}"


@pytest.mark.parametrize("file,name", [("decode.py", "BatchDecodeWithPagedKVCacheWrapper"),
                                       ("prefill.py", "BatchPrefillWithPagedKVCacheWrapper")])
def test_a_plan_of_flashinfer_names_what_decides_the_result(file, name):
    for folder, tree in parsed("flashinfer", file):
        owner = class_of(tree, name)
        plan = function_of(owner, "plan")
        known = arguments_of(plan)
        if plan.args.kwarg:  # passed on to the function that names them; positions are those of a tuple in the file
            known |= arguments_of(function_of(owner, "_plan_impl"))
            [order] = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)
                       and getattr(node.targets[0], "id", "") == "_BATCH_DECODE_PLAN_LEGACY_POS_ARGS"]
            assert order[:len(sources._PLAN_BY_POSITION)] == sources._PLAN_BY_POSITION, folder
        assert not PLANNED[file] - known, f"{folder}: {name}.plan does not name {PLANNED[file] - known}"


def test_flashinfer_is_hooked_and_restored(tmp_path):
    flashinfer = pytest.importorskip("flashinfer", reason="FlashInfer cannot be imported: pip install flashinfer-python torch")
    owners = [flashinfer.BatchDecodeWithPagedKVCacheWrapper, flashinfer.BatchPrefillWithPagedKVCacheWrapper]
    before = [dict(vars(owner)) for owner in owners]
    with kv.capture.to(tmp_path) as capture:
        capture.flashinfer()
        for owner, own in zip(owners, before):
            assert all(vars(owner)[name] is not own[name] for name in ("plan", "begin_forward", "run", "run_return_lse"))
    assert [dict(vars(owner)) for owner in owners] == before
