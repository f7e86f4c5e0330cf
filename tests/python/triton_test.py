"""Triton kernels on the virtual GPU: arguments of every kind, memory of strided tensors, autotune, and the kernels of
docs/examples/check_triton_kernels with seeded bugs. Skipped where Triton is not installed; tests/python/outside.sh
installs it."""
import importlib.util
import pathlib

import numpy as np
import pytest

import kvscope as kv
from kvscope.pytest_plugin import SHAPES, make_problem

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples" / "check_triton_kernels"

triton = pytest.importorskip("triton", reason="Triton is not installed: pip install triton")
import triton.language as tl  # noqa: E402


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def scalars(out, half, brain, single, double, small, large, flag, nothing, one, pair):
    tl.store(out, half.to(tl.float64))
    tl.store(out + 1, brain.to(tl.float64))
    tl.store(out + 2, single.to(tl.float64))
    tl.store(out + 3, double.to(tl.float64))
    tl.store(out + 4, small.to(tl.float64))
    tl.store(out + 5, large.to(tl.float64))
    tl.store(out + 6, flag.to(tl.float64))
    tl.store(out + 7, one + 0.0)
    tl.store(out + 8, tl.load(pair[0]).to(tl.float64) + pair[1])
    if nothing is not None:
        tl.store(out, nothing)


@triton.jit
def copy_2d(source, out, row_stride, COLUMNS: tl.constexpr):
    column = tl.arange(0, COLUMNS)
    tl.store(out + tl.program_id(0) * COLUMNS + column, tl.load(source + tl.program_id(0) * row_stride + column))


@triton.jit
def add_pair(x, y, out, stride, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i * stride) + tl.load(y + i * stride))


@triton.jit
def through_descriptor(source, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tile = source.load([tl.program_id(0) * ROWS, 0])
    place = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + place, tile)


@triton.jit
def device_descriptor(source, out, rows, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    view = tl.make_tensor_descriptor(source, [rows, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS])
    tile = view.load([tl.program_id(0) * ROWS, 0])
    place = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + place, tile)


@triton.jit
def talk(out):
    tl.device_print("value", tl.program_id(0) + 41)
    tl.store(out + tl.program_id(0), 1)


def numbers(n):
    return np.arange(n, dtype=np.float32), np.ones(n, np.float32), np.zeros(n, np.float32)


def test_a_kernel_writes_the_callers_arrays():
    x, y, out = numbers(300)
    result = kv.triton.launch(add, (3,), x, y, out, 300, BLOCK=128)
    assert result.clean and result.kernel == "add" and (out == x + 1).all()
    assert result.profile().by_line()[0]["source"].startswith("triton_test.py:")


@pytest.mark.parametrize("grid", [3, [3], (3, 1), lambda meta: (triton.cdiv(300, meta["BLOCK"]),)])
def test_a_grid_is_a_number_a_sequence_or_a_function(grid):
    x, y, out = numbers(300)
    assert kv.triton.launch(add, grid, x, y, out, n=300, BLOCK=128).clean and (out == x + 1).all()


def test_a_grid_without_thread_blocks_is_an_error():
    x, y, out = numbers(4)
    with pytest.raises(kv.InputError, match="no thread block"):
        kv.triton.launch(add, (0,), x, y, out, 4, BLOCK=128)


def test_an_access_past_an_array_is_named_by_the_argument():
    x, y, out = numbers(300)
    result = kv.triton.launch(add, (3,), x, y[:299], out, 300, BLOCK=128)
    assert [report.kind for report in result.reports] == ["OUT_OF_BOUNDS"]
    assert "parameter y + 1196 (size 1196)" in result.reports[0]["message"]


def test_num_warps_and_num_stages_reach_the_compiler():
    x, y, out = numbers(512)
    runs = [kv.triton.launch(add, (1,), x, y, out, 512, BLOCK=512, num_warps=warps).steps for warps in (1, 4)]
    assert runs[0] != runs[1]
    with kv.triton.activate():
        about = add.warmup(*map(kv.triton.tensor, (x, y, out)), 512, BLOCK=512, num_warps=2, num_stages=4,
                           grid=(1,)).metadata
    assert (about.num_warps, about.num_stages, about.arch) == (2, 4, "sm90")


def test_scalars_of_each_type_and_tuples_arrive():
    out, cell = np.zeros(9), np.array([2.5], np.float32)

    def run(kernel, *values):
        return kv.triton.launch(kernel, (1,), *values, num_warps=1)
    result = run(scalars, out, 0.1, -3.7, 1.1, 2.0 ** 40, -5, 2 ** 40 + 1, True, None, 1, (cell, 7))
    assert result.clean, result
    expected = [np.float32(0.1), np.float32(-3.7), np.float32(1.1), 2.0 ** 40, -5, 2 ** 40 + 1, 1, 1, 9.5]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("annotation,value,expected", [
    (tl.float16, 0.1, float(np.float16(0.1))), (tl.bfloat16, 1.00390625, 1.0), (tl.bfloat16, -3.7, -3.703125),
    (tl.float64, 0.1, 0.1)])
def test_a_scalar_is_rounded_to_its_annotated_type(annotation, value, expected, tmp_path):
    name = f"scalar_{annotation.name}"
    (tmp_path / f"{name}.py").write_text(
        "import triton\nimport triton.language as tl\n@triton.jit\n"
        f"def kernel(out, value: tl.{annotation}):\n    tl.store(out, value.to(tl.float64))\n"
        .replace("tl.fp16", "tl.float16").replace("tl.bf16", "tl.bfloat16").replace("tl.fp64", "tl.float64"))
    out = np.zeros(1)
    assert kv.triton.launch(load(tmp_path / f"{name}.py").kernel, (1,), out, value, num_warps=1).clean
    assert out[0] == expected


def test_a_strided_view_is_read_in_place_and_its_gaps_are_kept():
    base = np.arange(8 * 64, dtype=np.float32).reshape(8, 64)
    out = np.zeros((4, 16), np.float32)
    view = base[1::2, 16:32]
    assert kv.triton.launch(copy_2d, (4,), view, out, view.strides[0] // 4, COLUMNS=16, num_warps=1).clean
    np.testing.assert_array_equal(out, view)
    # Past the last row of the view, though inside of `base`.
    base_view = base[:4, :16]
    result = kv.triton.launch(copy_2d, (5,), base_view, np.zeros((5, 16), np.float32), 64, COLUMNS=16, num_warps=1)
    assert result.reports[0].kind == "OUT_OF_BOUNDS"
    before = base.copy()
    assert kv.triton.launch(copy_2d, (4,), out + 1, base[4:, :16], 16, COLUMNS=16, num_warps=1).finished
    np.testing.assert_array_equal(base[:4], before[:4])


@pytest.mark.parametrize("first", [0, 2, 4])  # addresses whose remainder by 16 is 0, 8, 0
def test_interleaved_views_of_one_buffer_keep_their_distance(first):
    base = np.arange(140, dtype=np.float32)[first:first + 128].reshape(64, 2)
    out = np.zeros(64, np.float32)
    result = kv.triton.launch(add_pair, (1,), base[:, 0], base[:, 1], out, 2, N=64, num_warps=1)
    assert result.clean, result
    np.testing.assert_array_equal(out, base.sum(1))


def test_a_kernel_that_writes_a_read_only_array_is_stopped():
    x, y, out = numbers(128)
    out.flags.writeable = False
    with pytest.raises(kv.InputError, match="out.*read-only"):
        kv.triton.launch(add, (1,), x, y, out, 128, BLOCK=128)


def descriptor_of(array, rows, columns):
    from triton.tools.tensor_descriptor import TensorDescriptor
    shape = list(array.shape)
    return TensorDescriptor(kv.triton.tensor(array), shape, [shape[1], 1], [rows, columns])


@pytest.mark.parametrize("dtype,columns", [(np.float32, 32), (np.float16, 64), (np.float32, 8)])
def test_a_tensor_descriptor_becomes_a_tensor_map(dtype, columns):
    source = np.arange(24 * columns).reshape(24, columns).astype(dtype)
    out = np.ones((32, columns), dtype)
    result = kv.triton.launch(through_descriptor, (2,), descriptor_of(source, 16, columns), out, ROWS=16,
                              COLUMNS=columns)
    assert result.clean and result.counters["copies"] == 2, result
    np.testing.assert_array_equal(out, np.concatenate([source, np.zeros((8, columns), dtype)]))  # zeros past the end


def test_a_descriptor_made_by_the_kernel_uses_scratch_memory():
    source = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    out = np.zeros_like(source)
    result = kv.triton.launch(device_descriptor, (2,), source, out, 32, ROWS=16, COLUMNS=32)
    assert result.clean, result
    np.testing.assert_array_equal(out, source)


def test_num_ctas_makes_clusters():
    x, y, out = numbers(512)
    result = kv.triton.launch(add, (2,), x, y, out, 512, BLOCK=256, num_ctas=2)
    assert result.clean and (out == x + 1).all(), result


def test_a_kernel_prints(capsys):
    out = np.zeros(2, np.int32)
    result = kv.triton.launch(talk, (2,), out, num_warps=1)
    assert "value" in result.printed and "42" in result.printed and "42" in capsys.readouterr().out


def test_activate_runs_kernels_until_deactivate():
    x, y, out = (kv.triton.tensor(array) for array in numbers(300))
    config = triton.runtime.driver
    config = getattr(config, "driver", config)
    before = vars(config).get("_active")
    gpu = kv.triton.activate(checks="all", keep=2)
    try:
        for _ in range(3):
            add[(3,)](x, y, out, 300, BLOCK=128)
        assert len(gpu.results) == 2 and (out.values == x.values + 1).all()
        with pytest.raises(kv.DeviceError, match="OUT_OF_BOUNDS") as caught:
            add[(3,)](x, y, out, 301, BLOCK=128)
        assert len(caught.value.faults) == 1 and not gpu.results[-1].clean
        with kv.triton.activate(raises=False) as inner:
            add[(3,)](x, y, out, 301, BLOCK=128)
        assert inner.results[-1].reports and len(gpu.results) == 2
    finally:
        kv.triton.deactivate()
    assert vars(config).get("_active") is before
    kv.triton.deactivate()  # does nothing


def test_a_compiled_kernel_is_not_launched_after_deactivate():
    x, y, out = (kv.triton.tensor(array) for array in numbers(128))
    with kv.triton.activate():
        compiled = add[(1,)](x, y, out, 128, BLOCK=128)
        stream = 0
    with pytest.raises(kv.InputError, match="no longer active"):
        compiled.run(1, 1, 1, stream, compiled.function, compiled.packed_metadata, None, None, None, x, y, out, 128,
                     128)


def test_an_unknown_option_is_an_error():
    with pytest.raises(kv.InputError, match="shared"):
        kv.triton.activate(shared=3)


def test_autotune_takes_the_configuration_of_least_cost():
    blocks = (64, 256, 512)
    tuned = triton.autotune([triton.Config({"BLOCK": block}, num_warps=1) for block in blocks], key=["n"])(add)
    arguments = [kv.triton.tensor(array) for array in numbers(512)]

    def grid(meta):
        return (triton.cdiv(512, meta["BLOCK"]),)
    with kv.triton.activate() as gpu:
        tuned[grid](*arguments, 512)
    assert (arguments[2].values == arguments[0].values + 1).all() and len(gpu.results) == 1
    counted = dict(zip(blocks, (cost for _, cost in gpu.tuned)))
    expected = {block: kv.triton.launch(add, grid, *numbers(512), 512, BLOCK=block, num_warps=1).steps
                for block in blocks}
    assert counted == expected and tuned.best_config.kwargs["BLOCK"] == min(expected, key=expected.get)
    again = triton.autotune([triton.Config({"BLOCK": block}, num_warps=1) for block in blocks], key=["n"],
                            restore_value=["out"])(add)
    with kv.triton.activate(cost=lambda result: -result.steps):
        again[grid](*arguments, 512)
    assert again.best_config.kwargs["BLOCK"] == max(expected, key=expected.get)


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mutant(tmp_path, name, old, new):
    """The example's module with `old` replaced by `new`."""
    text = (EXAMPLES / f"{name}.py").read_text()
    assert text.count(old) == 1, old
    path = tmp_path / f"{name}_{abs(hash((old, new)))}.py"
    path.write_text(text.replace(old, new))
    return load(path)


@pytest.fixture
def examples(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return load(EXAMPLES / "test_triton_kernels.py")


@pytest.mark.parametrize("shape,old,new", [("page16", "seen = token < length", "seen = token <= length"),
                                           ("page16", "token // PAGE, mask", "token // (2 * PAGE), mask"),
                                           ("page8", "token % PAGE * row_stride", "(token + 1) % PAGE * row_stride"),
                                           ("4k", "v, sums * shrink[:, None]", "v, sums")])
def test_a_seeded_bug_of_the_decode_kernel_is_found(examples, tmp_path, shape, old, new):
    kernel = mutant(tmp_path, "paged_decode", old, new).paged_decode
    problem = make_problem(next(one for one in SHAPES if one.name == shape))
    out, lse, _ = examples.decode(problem, kernel)
    with pytest.raises(kv.KernelMismatch) as caught:
        kv.assert_close(out, kv.golden(problem), lse=lse, keep=tmp_path)
    assert caught.value.diagnosis.text


def test_an_entry_of_the_table_outside_of_the_cache_is_reported(examples):
    """Problem rejects such a table; the kernel reads it."""
    import paged_decode
    q, cache = np.ones((1, 2, 16), np.float32), np.ones((3, 2, 16, 1, 16), np.float32)
    table, length = np.array([[2, 3]], np.int32), np.array([17], np.int32)
    out, lse = np.zeros_like(q), np.zeros((1, 2), np.float32)
    grid, args, constants = paged_decode.arguments(q, cache, table, length, out, lse)
    result = kv.triton.launch(paged_decode.paged_decode, grid, *args, **constants, num_warps=1)
    assert result.reports[0].kind == "OUT_OF_BOUNDS" and "parameter cache" in result.reports[0]["message"]


@pytest.mark.parametrize("old,new", [("(key[None, :] <= query[:, None])", "(key[None, :] < query[:, None])"),
                                     ("sums * shrink[:, None])\n", "sums)\n"),
                                     ("head // GROUP * head_stride", "head % (HEADS // GROUP) * head_stride")])
def test_a_seeded_bug_of_flash_attention_is_found(tmp_path, old, new):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    torch.manual_seed(2)
    q, k, v = (torch.randn(3, 70, heads, 32, dtype=torch.bfloat16) for heads in (4, 2, 2))
    problem = kv.Problem.vllm(q.flatten(0, 1), torch.stack([k, v], 1), query_start_loc=torch.arange(4) * 70,
                              block_table=torch.arange(3, dtype=torch.int32)[:, None], seq_lens=torch.full([3], 70))
    g = kv.golden(problem)
    for wrong in (False, True):
        module = mutant(tmp_path, "flash_attention", *((old, new) if wrong else (old, old)))
        out = torch.empty_like(q)
        module.flash_attention.configs = module.flash_attention.configs[:1]
        with kv.triton.activate():
            module.run(q, k, v, out)
        assert bool(kv.verify(out.flatten(0, 1), g, probabilities="bf16")) != wrong
