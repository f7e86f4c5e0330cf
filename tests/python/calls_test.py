"""A wrong call of a function ends with a next step: the call as it should be, or what to pass instead."""
import inspect
import re

import numpy as np
import pytest

import kvscope as kv

FUNCTIONS = [(f"kv.{name}", getattr(kv, name)) for name in kv.__all__ if inspect.isfunction(getattr(kv, name))]
FUNCTIONS += [("kv.numba.launch", kv.numba.launch), ("kv.triton.launch", kv.triton.launch),
              ("kv.Problem.of", kv.Problem.of), ("kv.Problem.load", kv.Problem.load)]
LAYOUTS = [(f"kv.Problem.{name}", getattr(kv.Problem, name)) for name in kv.layouts()]


def problem():
    return kv.Problem.vllm(np.ones((2, 2, 4), np.float32), np.ones((3, 2, 4, 1, 4), np.float32),
                           block_table=np.array([[0], [1]], np.int32), seq_lens=np.array([3, 4], np.int32))


def test_every_public_function_is_here():
    assert {"kv.golden", "kv.load", "kv.run", "kv.compile", "kv.fragment", "kv.show"} <= {name for name, _ in FUNCTIONS}


def takes(function, kind):
    return any(p.kind == kind for p in inspect.signature(function).parameters.values())


@pytest.mark.parametrize("name, function", FUNCTIONS + LAYOUTS)
def test_a_call_that_fits_no_parameters_states_them(name, function):
    wrong = []
    if not takes(function, inspect.Parameter.VAR_POSITIONAL):
        wrong.append(((1,) * 30, {}))
    if not takes(function, inspect.Parameter.VAR_KEYWORD):
        wrong.append(((), {"no_such_argument": 1}))
    if any(p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD
           for p in inspect.signature(function).parameters.values()):
        wrong.append(((), {}))
    assert wrong
    for args, named in wrong:
        with pytest.raises(TypeError, match=r"\. Write " + re.escape(name) + r"\("):
            function(*args, **named)


def test_arguments_without_a_name_are_counted():
    q, cache, table, lengths = (np.ones(1, np.float32),) * 4
    with pytest.raises(TypeError, match=re.escape("Write kv.Problem.vllm(q=None, kv_cache=None, **tensors_and_options): at "
                                                  "most 2 arguments without a name")):
        kv.Problem.vllm(q, cache, table, lengths)
    with pytest.raises(TypeError, match=re.escape("golden() takes 1 positional argument but 2 were given. Write "
                                                  "kv.golden(problem, *, accuracy='strict'): at most 1 argument without")):
        kv.golden(problem(), "fast")
    with pytest.raises(TypeError, match=re.escape("'acuracy'. Write kv.golden(problem, *, accuracy='strict')")):
        kv.golden(problem(), acuracy="fast")


@pytest.mark.parametrize("args, named", [((), {}), ((1, 2, 3, 4), {}), ((), {"kv_cache": 1})])
def test_the_class_itself_names_the_constructors(args, named):
    with pytest.raises(kv.InputError, match="a problem is made by the constructor of its layout, such as"):
        kv.Problem(*args, **named)


def test_a_type_error_from_within_stays_as_it_is():
    def progress(done, everything):
        raise TypeError("of the caller")

    with pytest.raises(TypeError, match="^of the caller$"):
        kv.run({"kvscope_scenario": 1, "name": "t", "model": "tiny", "cache": {"page_size": 4, "blocks": 8},
                "requests": {"list": [{"arrival_us": 0, "prompt_tokens": 9, "generate_tokens": 3}]}}, progress=progress)


@pytest.mark.parametrize("option, value, wanted", [
    ("scale", "x", "a number"), ("soft_cap", [1], "a number"), ("layer", "0", "a whole number from -9223372036854775808 to"),
    ("layer", 2.5, "a whole number"), ("layer", 1 << 70, "a whole number"), ("mask", 3, "a text"),
    ("cache_dtype", np.float16, "a text"), ("ignore", 3, "a list, each item a text"),
    ("ignore", "x", "a list, each item a text")])
def test_an_option_of_another_type_states_what_to_pass(option, value, wanted):
    with pytest.raises(kv.InputError, match=re.escape(f"{option}: is {value!r}: pass {wanted}")):
        kv.Problem.vllm(np.ones((2, 2, 4), np.float32), np.ones((3, 2, 4, 1, 4), np.float32),
                        block_table=np.array([[0], [1]], np.int32), seq_lens=np.array([3, 4], np.int32),
                        **{option: value})


@pytest.mark.parametrize("call", [
    lambda: kv.load(5), lambda: kv.Problem.load(5), lambda: kv.run(5), lambda: kv.run("x.json", requests=5),
    lambda: problem().save(5), lambda: kv.golden(problem()).save(b"g.npz"), lambda: kv.show(problem()).save(5),
    lambda: kv.capture.calls(5), lambda: kv.bits(np.ones(1, np.uint16), 5), lambda: kv.fragment(5),
    lambda: problem().tensor(5), lambda: kv.Module(5), lambda: kv.compile(5)])
def test_what_is_no_text_or_path_states_what_to_pass(call):
    with pytest.raises(kv.InputError, match=r"^\w+ is (5|b'g.npz'): pass a (path, as a text or as a pathlib.Path|text, such as )"):
        call()
