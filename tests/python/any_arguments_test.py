"""No argument ends the interpreter: arrays of any shape, stride and type give a result or an exception of kvscope."""
import numpy as np
import pytest

import kvscope as kv

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed: apt-get install python3-hypothesis")
st = hypothesis.strategies
TYPES = ["f4", "f2", "f8", "i4", "i8", "u1", "u2", "?", ">f4", "c8", "U3", "O", "M8[s]"]


@st.composite
def arrays(draw):
    shape = draw(st.lists(st.integers(0, 5), max_size=6))
    array = np.zeros(shape, draw(st.sampled_from(TYPES)))
    if draw(st.booleans()):
        array = array.T
    if draw(st.booleans()) and array.ndim:
        array = array[::-1]
    if draw(st.booleans()) and array.ndim:
        array = np.broadcast_to(array[:1], array.shape)
    if array.dtype.kind in "iu" and array.size and array.flags.writeable:
        array.flat[0] = draw(st.integers(0, 100))
    array.flags.writeable = False
    return array


anything = st.one_of(arrays(), st.none(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=9))


@hypothesis.settings(max_examples=150, deadline=None, derandomize=True, database=None)
@hypothesis.given(layout=st.sampled_from(kv.layouts()), q=anything, cache=anything, table=anything, lengths=anything,
                  mask=st.sampled_from(["causal", "none", "wrong", 3]), scale=st.one_of(st.none(), st.floats()))
def test_problems(layout, q, cache, table, lengths, mask, scale):
    try:
        problem = kv.Problem.of(layout, dict(q=q, kv_cache=cache, block_table=table, seq_lens=lengths), mask=mask,
                                scale=scale)
        g = kv.golden(problem)
        assert problem._repr_html_() and g._repr_html_()
    except kv.Error as error:
        assert str(error)


@hypothesis.settings(max_examples=100, deadline=None, derandomize=True, database=None)
@hypothesis.given(out=anything, lse=anything)
def test_candidates(out, lse):
    cache = np.ones((3, 2, 4, 1, 4), np.float32)
    g = kv.golden(kv.Problem.vllm(np.ones((2, 2, 4), np.float32), cache, block_table=np.array([[0], [1]], np.int32),
                                  seq_lens=np.array([3, 4], np.int32)))
    try:
        assert kv.verify(out, g, lse=lse)._repr_html_()
    except kv.Error as error:
        assert str(error)


RUN = kv.run({"kvscope_scenario": 1, "name": "t", "model": "tiny", "cache": {"page_size": 4, "blocks": 8},
              "requests": {"list": [{"arrival_us": 0, "prompt_tokens": 9, "generate_tokens": 3}]}}, golden=False)
numbers = st.one_of(st.integers(-2, 12), st.integers(), st.integers(1 << 62, 1 << 70), st.floats(), st.none(),
                    st.text(max_size=2), st.just(np.int32(1)))


@hypothesis.settings(max_examples=200, deadline=None, derandomize=True, database=None)
@hypothesis.given(seq=numbers, token=numbers, layer=numbers, head=numbers, dim=numbers, step=numbers,
                  path=st.sampled_from(["tma", "lds", "", 3]), kind=st.sampled_from(["k", "v", None]), call=st.integers(0, 3))
def test_places_of_a_run(seq, token, layer, head, dim, step, path, kind, call):
    try:
        if call == 0:
            RUN.step(step)._repr_html_()
        elif call == 1:
            RUN.explain(seq, token, layer=layer, head=head, dim=dim, step=step, kv=kind)._repr_html_()
        elif call == 2:
            RUN.shared(seq, token, layer=layer, head=head, dim=dim, step=step, kv=kind, path=path)._repr_html_()
        else:
            kv.StepperState(RUN, 1).select(f"{seq}:{token}")
    except kv.Error as error:
        assert str(error)


@hypothesis.settings(max_examples=100, deadline=None, derandomize=True, database=None)
@hypothesis.given(words=st.one_of(st.text(), st.sampled_from(["block 1", "seq 0", "0:3", "block -1", "0:-1", "1:2:3"])))
def test_selections(words):
    state = kv.StepperState(RUN, 2)
    try:
        state.select(words)
        assert state.picture and state.words
    except kv.Error as error:
        assert str(error)


SCALE = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry f(.param .u64 data, .param .f32 factor, .param .u8 small) { ret; }
"""


@hypothesis.settings(max_examples=150, deadline=None, derandomize=True, database=None)
@hypothesis.given(data=anything, factor=anything, small=anything, grid=st.one_of(st.integers(),
                                                                                 st.lists(st.integers())),
                  shared=st.integers(), kernel=st.just(kv.Module(SCALE)["f"]))
def test_launches(data, factor, small, grid, shared, kernel):
    hypothesis.assume(isinstance(grid, list) or grid < 1000)
    try:
        kernel.launch(grid=grid, block=32, args=[data, factor, small], shared=shared, max_instructions=100_000)
    except kv.Error as error:
        assert str(error)
