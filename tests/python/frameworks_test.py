"""Tensors of PyTorch, JAX, ml_dtypes and DLPack: read where they are, returned as the kind that went in. Skipped where
a library is not installed; tests/python/outside.sh installs them."""
import importlib.util

import numpy as np
import pytest

import kvscope as kv
from kvscope import _core
from golden_test import inputs
from kvscope._arrays import array_of
from launch_test import EXAMPLES
from reference import paged_attention

# Values that each of these types holds exactly, so that conversions of the frameworks cannot round.
EXACT = np.array([[0, 1, -2.5], [0.25, -448, 6]], np.float32)


def narrow(kind, name):
    """(EXACT in that type, its bit patterns) of a framework."""
    if kind == "torch":
        torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
        tensor = torch.from_numpy(EXACT.copy()).to(getattr(torch, name))
        return tensor, tensor.view(torch.int16 if name == "bfloat16" else torch.uint8).numpy().view(
            np.uint16 if name == "bfloat16" else np.uint8)
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: pip install ml_dtypes")
    array = EXACT.astype(getattr(ml_dtypes, name))
    patterns = array.view(np.uint16 if name == "bfloat16" else np.uint8)
    if kind == "jax":
        jax = pytest.importorskip("jax", reason="JAX is not installed: pip install jax")
        return jax.numpy.asarray(array), patterns
    return array, patterns


def address(tensor):
    if hasattr(tensor, "data_ptr"):
        return tensor.data_ptr()
    if hasattr(tensor, "unsafe_buffer_pointer"):
        return tensor.unsafe_buffer_pointer()
    return tensor.__array_interface__["data"][0]


class Exported:
    """An object that has nothing but DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("kind", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("name,short", [("bfloat16", "bf16"), ("float8_e4m3fn", "e4m3"), ("float8_e5m2", "e5m2")])
def test_narrow_floats_are_read_without_a_copy(kind, name, short):
    tensor, patterns = narrow(kind, name)
    array = array_of("x", tensor)
    assert (array.dtype, array.kind) == (short, kind)
    assert array.values.__array_interface__["data"][0] == address(tensor)
    assert array.values.tobytes() == patterns.tobytes()


@pytest.mark.parametrize("kind", ["torch", "jax"])
@pytest.mark.parametrize("name,short", [("bfloat16", "bf16"), ("float8_e4m3fn", "e4m3"), ("float8_e5m2", "e5m2"),
                                        ("float32", "f32")])
def test_dlpack_is_read_without_a_copy(kind, name, short):
    if name == "float32":
        tensor = narrow(kind, "bfloat16")[0]
        tensor = tensor.float() if kind == "torch" else tensor.astype("float32")
        patterns = EXACT
    else:
        tensor, patterns = narrow(kind, name)
    part = tensor[:, 1:] if kind == "torch" else tensor  # not contiguous
    array = array_of("x", Exported(part))
    assert array.dtype == short and array.values.__array_interface__["data"][0] == address(part)
    assert array.values.tolist() == (patterns[:, 1:] if kind == "torch" else patterns).tolist()


def test_memory_of_dlpack_outlives_its_exporter():
    tensor, patterns = narrow("torch", "bfloat16")
    array = array_of("x", Exported(tensor.clone()))
    del tensor
    spare = [np.full(6, 0xFFFF, np.uint16) for _ in range(100)]  # would reuse freed memory
    assert array.values.tobytes() == patterns.tobytes() and len(spare) == 100


@pytest.mark.parametrize("kind", ["torch", "jax"])
@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_a_problem_gives_back_the_kind_and_the_bits(kind, name):
    narrow(kind, name)
    q, cache, table, lengths = inputs()
    if kind == "torch":
        import torch
        tensors = [torch.from_numpy(x) for x in (q, cache, table, lengths)]
        tensors[1] = tensors[1].to(getattr(torch, name))
        wide = tensors[1].float().numpy()
    else:
        import jax
        tensors = [jax.numpy.asarray(x) for x in (q, cache, table, lengths)]
        tensors[1] = tensors[1].astype(name)
        wide = np.asarray(tensors[1].astype("float32"))
    problem = kv.Problem.vllm(tensors[0], tensors[1], block_table=tensors[2], seq_lens=tensors[3])
    for tensor, key in zip(tensors, ("q", "kv_cache", "block_table", "seq_lens")):
        back = problem.tensor(key)
        assert type(back) is type(tensor) and back.dtype == tensor.dtype and back.shape == tensor.shape
        assert array_of("x", back).values.tobytes() == array_of("x", tensor).values.tobytes()
    g = kv.golden(problem)
    o, lse = paged_attention(q, wide, table, lengths)
    np.testing.assert_allclose(g.o, o, atol=1e-13)
    converted = kv.convert(problem, to="flashinfer")
    assert {type(value) for value in converted.values()} == {type(tensors[1])}
    out = array_of("o", g.o).values
    as_kind = __import__("torch").from_numpy(out.copy()) if kind == "torch" else out.astype(np.float32)
    kv.assert_close(as_kind, g)


def test_outputs_of_each_kind_are_judged_the_same():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    q, cache, table, lengths = inputs()
    g = kv.golden(kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths))
    out = torch.from_numpy(g.o.copy()).bfloat16()
    assert kv.verify(out, g) and kv.verify(out.float().requires_grad_(), g)
    out[3, 0, 0] += 1
    verdicts = [kv.verify(one, g) for one in (out, out.float().to(torch.bfloat16).clone())]
    assert not any(verdicts) and verdicts[0].text == verdicts[1].text
    if importlib.util.find_spec("jax"):
        import jax
        import ml_dtypes
        same = jax.numpy.asarray(out.float().numpy().astype(ml_dtypes.bfloat16))
        assert kv.verify(same, g).text == verdicts[0].text


def test_jax_without_64_bits_gets_arrays_of_numpy_for_them():
    jax = pytest.importorskip("jax", reason="JAX is not installed: pip install jax")
    q, cache, table, lengths = inputs()
    problem = kv.Problem.vllm(jax.numpy.asarray(q), cache, block_table=table, seq_lens=lengths.astype(np.int64))
    assert isinstance(problem.tensor("q"), jax.Array)
    back = problem.tensor("seq_lens")
    assert isinstance(back, np.ndarray) and back.dtype == np.int64 and not jax.config.jax_enable_x64


def test_a_launch_writes_tensors_of_torch_in_place_and_none_of_jax():
    scale = kv.load(EXAMPLES / "scale.ptx")["scale"]
    if importlib.util.find_spec("torch"):
        import torch
        data = torch.ones(70)
        before = data.data_ptr()
        assert scale.launch(block=32, args=[data[:32], 3.0]).clean
        assert data.data_ptr() == before and data.tolist() == [3.0] * 32 + [1.0] * 38
        with pytest.raises(kv.InputError, match="contiguous"):
            scale.launch(block=32, args=[data[::2], 3.0])
    jax = pytest.importorskip("jax", reason="JAX is not installed: pip install jax")
    data = jax.numpy.ones(32)
    with pytest.raises(kv.InputError, match="read-only"):
        scale.launch(block=32, args=[data, 3.0])
    assert (data == 1).all()


def test_tensors_that_are_not_plain_host_memory_are_named():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    for tensor, words in ((torch.ones(3, device="meta"), "cpu"), (torch.ones(3).to_sparse(), "to_dense"),
                          (torch._neg_view(torch.ones(3)), "resolve_neg"), (torch.ones(3, dtype=torch.cfloat),
                                                                           "element type complex64")):
        with pytest.raises(kv.InputError, match=f"cache.*{words}"):
            array_of("cache", tensor)


class OnDevice:
    """As cupy.ndarray, which cannot be made without a GPU: no conversion but get(), and the CUDA array interface."""
    __cuda_array_interface__ = {"version": 3}

    def __init__(self, values):
        self.values = values

    def __array__(self, *_, **options):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def get(self):
        return self.values.copy()


def test_arrays_of_cupy_are_copied_with_a_warning():
    q, cache, table, lengths = inputs()
    expected = kv.golden(kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths))
    with pytest.warns(kv.DeviceMemoryWarning, match=f"kv_cache is on a CUDA device: .*{cache.nbytes:,} bytes"):
        g = kv.golden(kv.Problem.vllm(q, OnDevice(cache), block_table=table, seq_lens=lengths))
    assert g.o.tobytes() == expected.o.tobytes()
    with pytest.warns(kv.DeviceMemoryWarning, match="out is on"):
        assert kv.verify(OnDevice(g.o.astype(np.float32)), g)
    with pytest.raises(kv.InputError, match=r"data is OnDevice.*\.get\(\)"):  # the results would be lost with the copy
        kv.load(EXAMPLES / "scale.ptx")["scale"].launch(block=32, args=[OnDevice(np.ones(32, np.float32)), 3.0])


def test_tensors_of_a_gpu_are_copied_with_a_warning():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

    class OnGpu(torch.Tensor):  # a tensor of CUDA cannot be made without a GPU
        device = property(lambda self: torch.device("cuda:1"))

        def cpu(self):
            return torch.Tensor(self.numpy())
    q, cache, table, lengths = inputs()
    g = kv.golden(kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths))
    out = torch.from_numpy(np.asarray(g.o, np.float32)).as_subclass(OnGpu)
    with pytest.warns(kv.DeviceMemoryWarning, match=f"out is on cuda:1: .*{out.nbytes:,} bytes"):
        assert kv.verify(out, g)
    with pytest.raises(kv.InputError, match="kv_cache is on meta and cannot be copied to the CPU"):
        kv.Problem.vllm(q, torch.ones(cache.shape, device="meta"), block_table=table, seq_lens=lengths)


@pytest.mark.parametrize("kind", ["numpy", "torch", "jax"])
def test_a_golden_output_is_of_the_kind_that_went_in(kind):
    q, cache, table, lengths = inputs()
    plain = kv.golden(kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths))
    library = np if kind == "numpy" else pytest.importorskip(kind, reason=f"{kind} is not installed")
    if kind == "torch":
        q = torch_q = library.from_numpy(q)
    elif kind == "jax":
        q = library.numpy.asarray(q)
    g = kv.golden(kv.Problem.vllm(q, cache, block_table=table, seq_lens=lengths))
    # Without its types of 64 bits, JAX could not hold the golden output.
    expected = library.Tensor if kind == "torch" else np.ndarray
    for name in ("o", "lse", "bounds"):
        value = getattr(g, name)
        assert isinstance(value, expected) and np.asarray(value).tobytes() == np.asarray(getattr(plain, name)).tobytes()
    if kind == "torch":
        assert g.o.dtype == library.float64 and (torch_q.double() - g.o).shape == g.o.shape
    assert g._repr_html_() and kv.verify(g.o, g).errors.ratio.max() < 1


@pytest.mark.parametrize("dtype, shape, data, words", [
    ("f33", [2], b"12345678", "arguments rejected: q: has the element type 'f33', which kvscope does not have"),
    ("u8", [1] * 33, b"1", "arguments rejected: q: has 33 axes: at most 32 are supported"),
    ("f32", [3], b"12345678", "arguments rejected: q: has 8 bytes, which are not f32 [3]"),
    ("f32", [2], np.ones(2, np.float32), "arguments rejected: q: is no buffer of contiguous bytes with one axis"),
    ("u8", [2, 2], np.ones((2, 2), np.uint8), "arguments rejected: q: is no buffer of contiguous bytes with one axis"),
    ("u8", [2], np.ones(4, np.uint8)[::2], "arguments rejected: q: is no buffer of contiguous bytes with one axis"),
    ("f64", [2**40, 2**40], b"", "arguments rejected: q: has 0 bytes, which are not f64 [1099511627776, 1099511627776]"),
])
def test_a_bundle_takes_only_the_bytes_of_the_tensor(dtype, shape, data, words):
    bundle = _core.Bundle()
    with pytest.raises(kv.InputError) as error:
        bundle.add("q", dtype, shape, data, False)
    assert str(error.value) == words
    assert bundle.names() == []
    with pytest.raises(kv.InputError) as error:
        bundle.get("q")
    assert str(error.value) == "bundle rejected: q: is not a tensor of this bundle"


def test_a_type_of_patterns_is_one_that_kvscope_has():
    with pytest.raises(kv.InputError) as error:
        array_of("q", np.zeros(2, np.uint16), dtype="bf17")
    assert str(error.value) == "arguments rejected: dtype: 'bf17' is not an element type of kvscope"
