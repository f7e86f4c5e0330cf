"""Compiles one Triton kernel of a package for sm_90a, without a GPU: triton_compile.py JOB OUT.

JOB is JSON: paths for Python's search path, the file, the kernel, the type of each parameter, the values of constants.
The first line of OUT has the kernel's facts as JSON in a comment, then follows the PTX.
"""
import importlib
import json
import os
import sys


def _module(job):
    """The file as a module of its package, so that its imports and its source lines are found."""
    base = job["paths"][-1]
    name = os.path.relpath(job["file"], base).removesuffix(".py").replace(os.sep, ".")
    return importlib.import_module(name)


def _function(module, name):
    """The function below decorators for tuning, heuristics and caching."""
    found = getattr(module, name)
    while type(found).__name__ != "JITFunction":
        found = found.fn
    return found


def main():
    job = json.loads(sys.argv[1])
    sys.path[:0] = job["paths"]
    import standins_for_missing_modules
    standins_for_missing_modules.use(job["paths"][-1], os.path.relpath(job["file"], job["paths"][-1]).split(os.sep)[0],
                                    job["standins"])
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = _function(_module(job), job["kernel"])
    constants = job["constants"]
    signature = {name: "constexpr" if name in constants else job["signature"].get(name) for name in function.arg_names}
    missing = [name for name, kind in signature.items() if kind is None]
    unknown = sorted((set(job["signature"]) | set(constants)) - set(signature))
    if missing or unknown:
        sys.exit(f"{job['kernel']}: no value for {missing}, unknown {unknown}; parameters are {function.arg_names}")
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(function.arg_names) if name in job["divisible"]}
    source = ASTSource(function, signature, constants, aligned)
    done = triton.compile(source, target=GPUTarget("cuda", 90, 32),
                          options={"num_warps": job["warps"], "num_stages": job["stages"]})
    about = {"shared": done.metadata.shared, "scratch": done.metadata.global_scratch_size,
             "scratch_align": done.metadata.global_scratch_align,
             "descriptors": done.metadata.tensordesc_meta,
             "order": [name for name in function.arg_names if name not in constants]}
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(f"// {json.dumps(about)}\n{done.asm['ptx']}")


main()
