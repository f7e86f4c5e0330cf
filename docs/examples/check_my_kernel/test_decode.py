"""Each shape of paged_problem through the kernel: `pytest --kvscope-report=report.html`."""
import pathlib

import numpy as np
import pytest

import kvscope as kv

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def decode():
    return kv.Module((HERE / "decode.ptx").read_text(), "decode.ptx", source=(HERE / "decode.cu").read_text())


def test_decode(paged_problem, virtual_gpu, decode):
    about = paged_problem.about
    if about["layout"] != "vllm":
        pytest.skip("the kernel reads K and V, an MLA cache has one row per token")
    q, cache = paged_problem.tensor("q"), paged_problem.tensor("kv_cache")
    table, lengths = paged_problem.tensor("block_table"), paged_problem.tensor("seq_lens")
    out, lse = np.zeros_like(q), np.zeros(q.shape[:2], np.float32)
    virtual_gpu.launch(decode, "decode", grid=(len(q), q.shape[1]), block=32,
                       args=dict(q=q, cache=cache, table=table, lengths=lengths, out=out, lse=lse, page=cache.shape[2],
                                 columns=table.shape[1], heads=cache.shape[3], scale=q.shape[2] ** -0.5))
    kv.assert_close(out, kv.golden(paged_problem), lse=lse)
