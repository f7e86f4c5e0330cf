"""Compiles the Triton kernel of a submission to PTX for sm_90a, without a GPU. `kvscope lab` runs it in the sandbox:

    python3 -I -S triton_compile.py PACKAGE FILE TASK OUT

PACKAGE  the folder of the package triton
FILE     the submission, gather.py
TASK     JSON: {"kernel": "gather", "warps": 4, "parameters": [["pool", "*bf16", 16], ["count", "i32", 1]]}
         The number of a parameter divides its address or value.
OUT      one line of JSON, {"name": ..., "num_warps": ..., "num_ctas": ..., "shared": ..., "scratch": ...}, then the PTX

The submission is code that runs in this process. apps/labs/triton.cpp therefore treats OUT as data from a student.
"""
import importlib.util
import inspect
import json
import os
import sys
import traceback

PTX_VERSION = 84  # every instruction of sm_90a that Triton writes; without a number, Triton asks ptxas


def fail(message):
    sys.stderr.write(message.rstrip("\n") + "\n")
    sys.exit(1)


def load(path):
    """The submission as a module; its lines alone of what it raises."""
    name = os.path.basename(path).removesuffix(".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        fail(f"{path}:{error.lineno}: {error.msg}")
    except ImportError as error:
        fail(f"{path}:{line_in(error, path)}: {error}. The grader has the standard library and triton alone")
    except BaseException as error:  # SystemExit too
        fail(f"{path}:{line_in(error, path)}: {type(error).__name__}: {error}")
    return module


def line_in(error, path):
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else 1


def constants_of(function, task, path):
    """The values of the constexpr parameters behind those of the task."""
    from triton.language import constexpr

    names = [name for name, _, _ in task["parameters"]]
    given = [parameter.name for parameter in function.params]
    if given[:len(names)] != names:
        fail(f"{path}: the parameters of {task['kernel']} are ({', '.join(given)}), not ({', '.join(names)}): take the "
             "line of the starter")
    constants = {}
    for parameter in function.params:
        if parameter.name in names:
            if parameter.is_constexpr:
                fail(f"{path}: {parameter.name} is a value of the launch: remove its tl.constexpr")
        elif not parameter.is_constexpr or parameter.default is inspect.Parameter.empty:
            fail(f"{path}: the launch has no value for {parameter.name}: write '{parameter.name}: tl.constexpr = VALUE'")
        else:
            value = parameter.default
            constants[parameter.name] = value.value if isinstance(value, constexpr) else value
    return constants


def compile_kernel(function, constants, task):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia import compiler
    from triton.compiler import ASTSource

    # ptxas is a program of its own, which makes no PTX: it is not started.
    compiler.get_ptxas_version = lambda *arguments: "none"
    compiler.CUDABackend.make_cubin = lambda *arguments: b"none"
    kinds = {name: kind for name, kind, _ in task["parameters"]}
    signature = {name: kinds.get(name, "constexpr") for name in function.arg_names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, (_, _, divisor) in enumerate(task["parameters"]) if divisor == 16}
    source = ASTSource(function, signature, constants, aligned)
    # Lanes that compute the same sum in another order get the same bits if no product is fused with an addition. Otherwise a
    # reduction of Triton's own stores different bytes to one address (BLOCK = 16 in the solution of lab 13).
    return triton.compile(source, target=GPUTarget("cuda", 90, 32),
                          options={"num_warps": task["warps"], "ptx_version": PTX_VERSION, "enable_fp_fusion": False})


def chain_of(error):
    """The error and its causes, the innermost last."""
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    return chain


def message_of(error, path):
    """"gather.py:12: REASON", then the line of the submission. Triton counts lines from that of `def`, and quotes all of them."""
    chain = chain_of(error)
    placed = [one for one in chain if getattr(getattr(one, "node", None), "lineno", None) and getattr(one, "src", None)]
    reason = getattr(chain[-1], "error_message", None) or str(chain[-1]) or type(chain[-1]).__name__
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for one in reversed(placed):  # the innermost in the submission: functions of Triton itself are in other files
        at = text.find(one.src)
        if at < 0:
            continue
        line = text.count("\n", 0, at) + one.node.lineno
        quoted = text.split("\n")[line - 1]
        column = one.node.col_offset
        return f"{path}:{line}: {reason}\n{quoted}\n{' ' * column}^"
    return f"{path}: {type(chain[-1]).__name__}: {reason}"


def main():
    package, path, task, out = sys.argv[1:]
    task = json.loads(task)
    sys.path.append(os.path.dirname(package))
    sys.dont_write_bytecode = True
    for name, value in (("HOME", "/tmp"), ("TRITON_HOME", "/tmp"), ("TRITON_CACHE_DIR", "/tmp/triton")):
        os.environ[name] = value
    try:
        from triton.runtime import JITFunction
    except Exception as error:
        fail(f"triton cannot be imported: {type(error).__name__}: {error}")
    module = load(path)
    function = getattr(module, task["kernel"], None)
    if function is None:
        fail(f"{path} has no kernel '{task['kernel']}'")
    if not isinstance(function, JITFunction):
        fail(f"{path}: {task['kernel']} is of type {type(function).__name__}: write @triton.jit alone above it")
    constants = constants_of(function, task, path)
    try:
        done = compile_kernel(function, constants, task)
        metadata = done.metadata
        facts = {"name": metadata.name, "num_warps": metadata.num_warps, "num_ctas": getattr(metadata, "num_ctas", 1),
                 "shared": metadata.shared, "scratch": getattr(metadata, "global_scratch_size", 0) or 0}
        product = json.dumps(facts) + "\n" + done.asm["ptx"]
    except Exception as error:
        fail(message_of(error, path))
    with open(out, "w", encoding="utf-8") as file:
        file.write(product)


main()
