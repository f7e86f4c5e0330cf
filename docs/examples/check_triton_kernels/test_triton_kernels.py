"""Two Triton kernels on the virtual GPU, against the golden output. Neither needs a GPU."""
import numpy as np
import pytest

import kvscope as kv

triton = pytest.importorskip("triton", reason="Triton is not installed: pip install triton")


def decode(problem, kernel=None):
    """(out, lse, result) of the kernel for a problem of layout vllm."""
    import paged_decode
    q, cache = problem.tensor("q"), problem.tensor("kv_cache")
    out, lse = np.zeros_like(q), np.zeros(q.shape[:2], np.float32)
    grid, args, constants = paged_decode.arguments(q, cache, problem.tensor("block_table"), problem.tensor("seq_lens"),
                                                   out, lse)
    result = kv.triton.launch(kernel or paged_decode.paged_decode, grid, *args, **constants, num_warps=2, num_stages=2)
    return out, lse, result


def test_paged_decode(paged_problem):
    if paged_problem.about["layout"] != "vllm":
        pytest.skip("the kernel reads K and V, an MLA cache has one row per token")
    out, lse, result = decode(paged_problem)
    assert result.clean, result
    kv.assert_close(out, kv.golden(paged_problem), lse=lse)


def test_flash_attention():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    import flash_attention
    torch.manual_seed(1)
    batch, length, heads, kv_heads, dims = 3, 150, 4, 2, 64
    q = torch.randn(batch, length, heads, dims, dtype=torch.bfloat16)
    cache = torch.randn(batch, 2, length, kv_heads, dims, dtype=torch.bfloat16)  # one page holds a whole sequence
    out = torch.empty_like(q)
    with kv.triton.activate() as gpu:  # kernel[grid](...) now runs on the virtual GPU; a report raises an exception
        flash_attention.run(q, cache[:, 0], cache[:, 1], out)
    assert len(gpu.tuned) == 3 and len(gpu.results) == 1
    problem = kv.Problem.vllm(q.flatten(0, 1), cache, block_table=torch.arange(batch, dtype=torch.int32)[:, None],
                              seq_lens=torch.full([batch], length), query_start_loc=torch.arange(batch + 1) * length)
    kv.assert_close(out.flatten(0, 1), kv.golden(problem), probabilities="bf16")
