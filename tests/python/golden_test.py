"""Problems, golden outputs, verdicts, diagnoses, layouts: against NumPy and against known faults."""
import json
import pickle

import numpy as np
import pytest

import kvscope as kv
from kvscope import _core
from reference import paged_attention


def inputs(lengths=(10, 3, 0, 16), page=4, blocks=16, heads=2, query_heads=4, dims=8, seed=3):
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((len(lengths), query_heads, dims)).astype(np.float32)
    cache = rng.standard_normal((blocks, 2, page, heads, dims)).astype(np.float32)
    table = np.full((len(lengths), 4), -1, np.int32)
    order = iter(rng.permutation(blocks))
    for row, length in enumerate(lengths):
        for column in range(-(-length // page)):
            table[row, column] = next(order)
    return q, cache, table, np.array(lengths, np.int32)


def problem(**options):
    q, cache, table, lengths = inputs(**options)
    return kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths)


def test_golden_is_the_attention_that_numpy_computes():
    q, cache, table, lengths = inputs()
    g = kv.golden(kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths))
    o, lse = paged_attention(q, cache, table, lengths)
    np.testing.assert_allclose(g.o, o, atol=1e-13)
    np.testing.assert_allclose(g.lse, lse, atol=1e-13)
    assert g.bounds.shape == g.o.shape and (g.bounds[0] > 0).all() and g.bounds.max() < 1e-4


@pytest.mark.parametrize("accuracy", ["strict", "fast"])
def test_attention_is_the_output_of_the_golden_with_its_error(accuracy):
    q, cache, table, lengths = inputs()
    one = kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths)
    output, g = kv.attention(one, accuracy=accuracy), kv.golden(one, accuracy=accuracy)
    assert output.o.tobytes() == g.o.tobytes() and output.lse.tobytes() == g.lse.tobytes()
    assert repr(output) == "<kvscope.Attention o [4, 4, 8]>"
    o, lse = paged_attention(q, cache, table, lengths)
    seen = lengths > 0
    assert (np.abs(output.o - o).max(axis=2) <= output.o_error + 1e-13).all()
    assert (np.abs(output.lse - lse)[seen] <= output.lse_error[seen] + 1e-13).all()
    if accuracy == "fast":
        assert (0 < output.o_error[seen]).all() and output.o_error.max() < 1e-4 and output.lse_error.max() < 1e-5
    else:
        assert not output.o_error.any() and not output.lse_error.any()


def test_the_budget_of_a_verdict_adds_up_to_the_allowed_error():
    g = kv.golden(problem())
    out = g.o.astype(np.float32)
    out[0, 1, 2] += 1e-3
    verdict = kv.verify(out, g)
    heading, *lines = verdict.budget.splitlines()
    assert heading.startswith("error budget of o at sequence 0, query 0, head 1, dim 2")
    numbers = dict(line.split()[:2] for line in lines if line.startswith("  "))
    total = float(numbers.pop("total"))
    assert total == pytest.approx(sum(map(float, numbers.values())), rel=0.02)  # three digits are printed
    assert np.abs(out - g.o).max() / total == pytest.approx(verdict.errors.ratio.max(), rel=0.01)
    assert verdict.report["budgets"][0]["total"] == pytest.approx(total, rel=0.01)
    assert kv.verify(out, g, profile=_core.profile_names()[0]).budget == ""


def test_attention_has_the_faults_of_golden():
    with pytest.raises(kv.InputError, match='accuracy is "exact"'.replace('"', "'")):
        kv.attention(problem(), accuracy="exact")
    with pytest.raises(kv.InputError, match="the problem is int"):
        kv.attention(3)
    with pytest.raises(kv.InputError, match="the golden is Attention: pass the result of kv.golden"):
        kv.verify(np.zeros((4, 4, 8), np.float32), kv.attention(problem()))
    with pytest.raises(kv.InputError, match="out is Attention: pass the kernel's output as an array"):
        kv.verify(kv.attention(problem()), kv.golden(problem()))
    one = kv.attention(problem())
    assert one == one and len({one, kv.attention(problem())}) == 2
    q, cache, table, lengths = inputs()
    q[0, 0, 0] = np.nan
    with pytest.warns(kv.NonFiniteWarning, match="1 of 16 rows of o are NaN"):
        kv.attention(kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths))


def test_correct_output_passes_and_a_wrong_page_is_named(tmp_path):
    q, cache, table, lengths = inputs()
    g = kv.golden(kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths))
    o, lse = paged_attention(q, cache, table, lengths)
    kv.assert_close(o.astype(np.float32), g, lse=lse.astype(np.float32))
    wrong = table.copy()
    wrong[0, 1] = table[3, 2]
    bad = paged_attention(q, cache, wrong, lengths)[0].astype(np.float32)
    with pytest.raises(kv.KernelMismatch) as caught:
        kv.assert_close(bad, g, keep=tmp_path)
    cause = caught.value.diagnosis.causes[0]
    assert (cause.sequence, cause.page) == (0, 1) and f"block {table[3, 2]}" in cause.cause
    assert "sequence 0, page 1" == cause.place and 0 < cause.residual < 1
    assert kv.diagnose(bad, g).causes[0].name == cause.name
    # The kept bundle is the problem again.
    again = kv.golden(kv.Problem.load(caught.value.bundle + "/inputs.safetensors"))
    assert again.o.tobytes() == g.o.tobytes()


def test_outputs_in_the_shapes_of_kernels_are_rearranged_as_by_the_command():
    """Heads first, heads and dims in one axis: 3 heads, 5 queries and 8 dims, so that no shape has two meanings."""
    rng = np.random.default_rng(4)
    q = rng.standard_normal((5, 3, 8)).astype(np.float32)
    cache = rng.standard_normal((16, 2, 4, 1, 8)).astype(np.float32)
    g = kv.golden(kv.Problem.vllm(q, cache, block_table=np.arange(15, dtype=np.int32).reshape(5, 3),
                                  seq_lens=np.array([10, 3, 7, 12, 1], np.int32)))
    o, lse = g.o.astype(np.float32), g.lse.astype(np.float32)
    for out, sums in ((o.reshape(5, 24), lse), (o.transpose(1, 0, 2), lse.T), (o.reshape(5, 3, 1, 8), lse[..., None]),
                      (np.ascontiguousarray(o.transpose(1, 0, 2)), np.ascontiguousarray(lse.T))):
        verdict = kv.verify(out, g, lse=sums)
        assert verdict, verdict.text
        wrong = out.copy()
        wrong.reshape(-1)[0] += 0.01
        verdict = kv.verify(wrong, g, lse=sums)
        assert not verdict and "sequence 0, query 0, head 0, dim 0" in verdict.text
        assert verdict.errors.ratio[0, 0, 0] > 1 and (verdict.errors.ratio > 1).sum() == 1
    assert "note: candidate 'o'" in verdict.text


def test_messages_of_the_command_name_the_arguments_of_python():
    """Every option that states a rounding, as `verify` takes it."""
    from kvscope._errors import as_arguments
    from kvscope._golden import ROUNDING
    options = ("--candidate-dtype", "--p-dtype", "--partials-dtype", "--operand-dtype", "--ex2-error", "--tile-keys",
               "--accumulator-bits", "--row-sum")
    assert {as_arguments(option) for option in options} == set(ROUNDING)
    assert as_arguments("pass --ex2-error, or `kvscope verify --ex2-error`") == "pass ex2_error, or `kvscope verify --ex2-error`"


def test_verify_returns_and_does_not_raise():
    g = kv.golden(problem())
    assert kv.verify(g.o.astype(np.float32), g)
    verdict = kv.verify(2 * g.o.astype(np.float32), g)
    assert not verdict and verdict.diagnosis is not None and "FAIL" in repr(verdict)


def test_tensors_without_names_are_one_clear_error():
    q, cache, _, _ = inputs()
    for call in (lambda: kv.convert(cache, "vllm", "flashinfer"), lambda: kv.detect(cache), lambda: kv.lint(cache, "vllm"),
                 lambda: kv.Problem.of("vllm", [q, cache])):
        with pytest.raises(kv.InputError, match='pass a dict of tensors by their names in the layout, such as {"kv_cache": cache'):
            call()
    with pytest.raises(kv.InputError, match="the name of a tensor is 3: pass a text"):
        kv.detect({3: cache})


def test_bf16_patterns_and_strided_inputs_are_read():
    q, cache, table, lengths = inputs()
    patterns = (cache.view(np.uint32) >> 16).astype(np.uint16)
    whole = (patterns.astype(np.uint32) << 16).view(np.float32)
    strided = np.asfortranarray(whole)[::-1][::-1]
    g = kv.golden(kv.Problem.vllm(q, kv.bits(patterns, "bf16"), block_table=table, seq_lens=lengths))
    same = kv.golden(kv.Problem.vllm(q, strided, block_table=table[:, ::-1][:, ::-1], seq_lens=lengths.tolist()))
    assert g.o.tobytes() == same.o.tobytes()


def test_faults_of_arguments_are_collected():
    q, cache, table, lengths = inputs()
    with pytest.raises(kv.InputError) as caught:
        kv.Problem.vllm(q, cache, block_table=table)
    assert "seq_lens" in str(caught.value) and isinstance(caught.value, ValueError) and caught.value.faults
    with pytest.raises(kv.InputError, match="mask"):
        kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths, mask="triangle")
    with pytest.raises(kv.InputError, match="scale"):
        kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths, scale="big")
    with pytest.raises(kv.InputError, match="complex128"):
        kv.Problem.vllm(q.astype(complex), cache, block_table=table, seq_lens=lengths)


# A keyword that is dropped in silence looks as if it had an effect.
@pytest.mark.parametrize("call", [
    lambda g, out, kw: kv.verify(out, g, **kw), lambda g, out, kw: kv.diagnose(out, g, **kw),
    lambda g, out, kw: kv.assert_close(out, g, **kw), lambda g, out, kw: kv.lint(tensors(), "vllm", **kw),
    lambda g, out, kw: kv.convert(tensors(), "vllm", "flashinfer", **kw), lambda g, out, kw: kv.detect(tensors(), **kw),
    lambda g, out, kw: kv.Problem.vllm(**tensors(), **kw), lambda g, out, kw: kv.Problem.of("vllm", tensors(), **kw)])
def test_a_keyword_that_no_function_has_is_an_error(call):
    g = kv.golden(problem())
    with pytest.raises(kv.InputError, match="no_such_option"):
        call(g, g.o.astype(np.float32), dict(no_such_option=3))


def tensors():
    q, cache, table, lengths = inputs()
    return dict(q=q, kv_cache=cache, block_table=table, seq_lens=lengths)


@pytest.mark.parametrize("options,said", [
    (dict(window_left=3), 'window_left: has no effect with mask="causal"'),
    (dict(window_right=3, mask="none"), 'window_right: has no effect with mask="none"'),
    (dict(chunk=4), 'chunk: has no effect with mask="causal": leave it out, or pass mask="chunked"'),
    (dict(mask="none", alignment="top_left"), 'alignment: has no effect with mask="none"'),
    (dict(mask="sliding_window"), "mask: sliding_window needs the size of the window: pass window_left"),
    (dict(mask="chunked"), "mask: chunked needs the length of a chunk: pass chunk, in tokens"),
    (dict(head_size=8), "head_size: has no effect in layout 'vllm'"),
    (dict(value_size=8), "value_size: has no effect in layout 'vllm'"),
    (dict(sof_cap=30.0), "sof_cap: is no option of a problem: did you mean 'soft_cap'?")])
def test_an_option_without_an_effect_is_an_error(options, said):
    with pytest.raises(kv.InputError) as caught:
        kv.Problem.vllm(**tensors(), **options)
    assert said in str(caught.value) and caught.value.faults
    assert kv.Problem.vllm(**tensors(), mask="sliding_window", window_left=3).about["conventions"]["window_left"] == 3


def test_options_of_a_verdict_are_those_of_the_command_line():
    g = kv.golden(problem())
    out = g.o.astype(np.float32)
    total = lambda **options: kv.verify(out, g, **options).errors.ratio.max()  # noqa: E731
    for options in (dict(ex2_error=1e-2), dict(accumulator_bits=8, probabilities="bf16")):
        assert total(**options) < total(probabilities=options.get("probabilities", "f32")), options  # a wider bound
    assert total(tile_keys=64) >= total()
    assert kv.verify(out, g, row_sum="exact").passed
    for options, said in [(dict(ex2_error=2.0), "ex2_error: is 2: pass a number from 0 to 1"),
                          (dict(tile_keys=0), "tile_keys: is 0: pass a number from 1 to 1073741824"),
                          (dict(accumulator_bits=3), "accumulator_bits: is 3: pass a number from 4 to 24"),
                          (dict(row_sum="both"), "row_sum: is 'both': pass exact or rounded"),
                          (dict(p_dtype="bf16"), "p_dtype: is no option of a verdict: did you mean 'probabilities'?"),
                          (dict(profile="vlm"), "profile is 'vlm': pass one of flashattention, flashinfer, vllm")]:
        with pytest.raises(kv.InputError) as caught:
            kv.verify(out, g, **options)
        assert said in str(caught.value)
    with pytest.raises(kv.InputError, match="cannot hold the f32 output"):
        kv.verify(out.astype(np.float16), g, output="f32")


def test_messages_have_the_names_of_arguments_and_say_what_to_pass():
    t = tensors()
    for call, said in [
            (lambda: kv.Problem.vllm(**t, foo=np.ones(3)), 'Pass ignore=["foo"] to leave it out'),
            (lambda: kv.Problem.mla(t["q"], t["kv_cache"][:, 0, :, 0], block_table=t["block_table"], cache_seqlens=t["seq_lens"]),
             "value_size: is missing: an MLA row"),
            (lambda: kv.lint(t, "vlm"), "layout: 'vlm' is not a layout: did you mean 'vllm'?"),
            (lambda: kv.lint(t), "layout is missing: pass its name, kv.lint(tensors, \"vllm\"); the tensors fit 'vllm'"),
            (lambda: kv.convert(t, "vllm", "flashinfr"), "to: 'flashinfr' is not a layout: did you mean 'flashinfer'?"),
            (lambda: kv.convert(t, "vllm", "mla"), "to: layout 'mla' stores V as the first elements of K"),
            (lambda: kv.golden(t), "the problem is dict: make it with the constructor of the layout"),
            (lambda: kv.Problem(t), "Problem(...) is not called: a problem is made by the constructor of its layout"),
            (lambda: kv.verify(None, kv.golden(problem())), "out is NoneType: pass the kernel's output as an array")]:
        with pytest.raises(kv.InputError) as caught:
            call()
        assert said in str(caught.value) and "--" not in str(caught.value)
        assert all("--" not in where + text for where, text in caught.value.faults)
    assert "--" not in kv.lint(t, "vllm").text and "pass vector_read" in kv.lint(t, "vllm").text


def test_a_golden_that_is_not_finite_warns():
    t = tensors()
    t["kv_cache"][t["block_table"][0, 0], 1, 0, 0, 2] = np.nan
    with pytest.warns(kv.NonFiniteWarning, match="2 of 16 rows of o are NaN or infinite, the first at query 0, head 0: V of"):
        g = kv.golden(kv.Problem.vllm(**t))
    assert any("the golden: 2 of 16 rows" in note for note in kv.verify(g.o, g).report["notes"])


def test_lint_finds_a_block_twice_and_an_entry_outside():
    q, cache, table, lengths = inputs()
    assert kv.lint(kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths))
    table[0, 1] = table[0, 0]
    table[3, 0] = 99
    report = kv.lint(dict(q=q, kv_cache=cache, block_table=table, seq_lens=lengths), "vllm")
    assert not report and {"duplicate", "range"} <= {finding["rule"] for finding in report.faults}


def test_lint_takes_a_box_and_the_shape_of_a_cache_that_is_missing():
    q, cache, table, lengths = inputs()
    tensors = dict(q=q, kv_cache=cache, block_table=table, seq_lens=lengths)
    assert "tma" not in {finding["rule"] for finding in kv.lint(tensors, "vllm", box=(4, 8)).findings}
    report = kv.lint(tensors, "vllm", box=(4, 512))
    assert "tma" in {finding["rule"] for finding in report.findings} and "512" in report.text
    with pytest.raises(kv.InputError, match="box: give two numbers"):
        kv.lint(tensors, "vllm", box=(4, 8, 2))
    indices = dict(block_table=table, seq_lens=lengths)
    assert kv.lint(indices, "vllm", cache_shape=cache.shape)
    table[0, 0] = len(cache)
    report = kv.lint(indices, "vllm", cache_shape=cache.shape, cache_dtype="e4m3")
    assert {finding["rule"] for finding in report.faults} == {"range"}


def test_conversion_there_and_back_has_the_same_golden():
    q, cache, table, lengths = inputs(lengths=(10, 3, 16))
    tensors = dict(q=q, kv_cache=cache, block_table=table, seq_lens=lengths)
    flashinfer = kv.convert(tensors, "vllm", "flashinfer")
    assert {"kv_indptr", "kv_indices"} <= set(flashinfer)
    g = kv.golden(kv.Problem.of("flashinfer", flashinfer))
    assert g.o.tobytes() == kv.golden(kv.Problem.of("vllm", tensors)).o.tobytes()
    assert kv.detect(flashinfer)[0].layout == "flashinfer"


def test_each_layout_has_a_constructor_with_its_tensors():
    for name in kv.layouts():
        assert "q   [T, Hq, D]" in getattr(kv.Problem, name).__doc__


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_header_whose_length_looks_like_a_pickle_is_read(tmp_path, protocol):
    length = protocol * 256 + 0x80  # the bytes 80 02 begin a pickle of protocol 2
    header = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode().ljust(length)
    path = tmp_path / "x.safetensors"
    path.write_bytes(length.to_bytes(8, "little") + header + np.float32(2.5).tobytes())
    assert np.frombuffer(_core.load_bundle(str(path)).get("x"), np.float32) == 2.5
    path.write_bytes(pickle.dumps({"x": [1] * 100}, protocol))
    with pytest.raises(kv.InputError, match="pickle"):
        _core.load_bundle(str(path))


def test_what_a_golden_returned_outlives_it():
    o = kv.golden(problem()).o
    assert pickle.loads(pickle.dumps(o)).shape == o.shape and np.isfinite(o).all()


def test_html_is_escaped():
    verdict = kv.verify(2 * kv.golden(problem()).o.astype(np.float32), kv.golden(problem()))
    assert "<script" not in verdict._repr_html_() and verdict._repr_html_().startswith("<div><svg")
    assert "vllm" in problem()._repr_html_()


def test_narrow_floats_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: pip install ml_dtypes")
    q, cache, table, lengths = inputs()
    for type_of in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        narrow = cache.astype(type_of)
        p = kv.Problem.vllm(q, narrow, block_table=table, seq_lens=lengths)
        assert p.tensor("kv_cache").dtype == type_of and p.tensor("kv_cache").tobytes() == narrow.tobytes()
        wide = kv.Problem.vllm(q, narrow.astype(np.float32), block_table=table, seq_lens=lengths)
        assert kv.golden(p).o.tobytes() == kv.golden(wide).o.tobytes()
