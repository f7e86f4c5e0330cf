"""The hooks of kv.capture in FlashInfer itself, on the CPU: its wrappers plan and check as on a GPU, and a stand-in takes the place of
the compiled functions, which only a GPU runs. Skipped where FlashInfer cannot be imported."""
import numpy as np
import pytest

import kvscope as kv
from capture_test import attention
from kvscope.__main__ import main

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
try:
    import flashinfer
except ImportError as error:
    pytest.skip(f"FlashInfer cannot be imported ({error}): pip install flashinfer-python torch", allow_module_level=True)

HEADS, DIMS, PAGE, BLOCKS = (4, 2), 64, 4, 16
INDPTR, INDICES, LAST = [0, 3, 5], [7, 1, 12, 3, 9], [2, 4]


class Compiled:
    """What the wrapper calls: `run` computes what the compiled decode does, from the arguments that the wrapper passes."""

    def plan(self, *arguments):
        return "planned"

    def run(self, _floats, _integers, plan, q, k, v, indptr, indices, last, out, lse, layout, left, _pdl, _slopes, cap, scale,
            *_rope):
        assert plan == "planned"
        for b in range(len(last)):
            blocks = indices[indptr[b]:indptr[b + 1]].long()
            tokens = (len(blocks) - 1) * PAGE + int(last[b])
            rows = [pool[blocks].float().transpose(1, 2) if layout == flashinfer.utils.TensorLayout.HND.value else pool[blocks].float()
                    for pool in (k, v)]
            keys, values = (part.reshape(-1, HEADS[1], DIMS)[:tokens].numpy() for part in rows)
            o, base_2 = attention(q[b:b + 1].float().numpy(), keys, values, scale, left=left, cap=cap)
            out[b] = torch.from_numpy(o[0]).to(out.dtype)
            if lse is not None:
                lse[b] = torch.from_numpy(base_2[0])


@pytest.mark.parametrize("layout", ["NHD", "HND"])
@pytest.mark.parametrize("options,more", [({}, {}), (dict(window_left=3, logits_soft_cap=4.0, sm_scale=0.2), dict(return_lse=True)),
                                          (dict(sm_scale=0.3), dict(q_scale=0.5, k_scale=0.75, v_scale=2.0))])
def test_calls_of_its_decode_wrapper_are_kept_and_pass(monkeypatch, tmp_path, layout, options, more):
    empty = torch.empty  # pinned memory needs a driver
    monkeypatch.setattr(torch, "empty", lambda *sizes, pin_memory=False, **rest: empty(*sizes, **rest))
    monkeypatch.setattr("flashinfer.decode.get_batch_decode_module", lambda *types: Compiled())
    random = np.random.default_rng(5)
    cache = np.full((BLOCKS, 2, HEADS[1], PAGE, DIMS) if layout == "HND" else (BLOCKS, 2, PAGE, HEADS[1], DIMS), np.nan, np.float32)
    cache[INDICES] = random.standard_normal((5, *cache.shape[1:]))
    q = torch.from_numpy(random.standard_normal((2, HEADS[0], DIMS))).half()
    tables = [torch.tensor(values, dtype=torch.int32) for values in (INDPTR, INDICES, LAST)]
    with kv.capture.to(tmp_path) as capture:
        capture.flashinfer(names=["BatchDecodeWithPagedKVCacheWrapper"])
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 20, dtype=torch.uint8), layout, backend="fa2")
        wrapper.plan(*tables, *HEADS, DIMS, PAGE, q_data_type=torch.float16, **options)
        wrapper.run(q, torch.from_numpy(cache).half(), **more)
    assert (capture.seen, capture.kept) == (1, 1), capture
    assert np.isfinite(np.asarray(kv.golden(kv.Problem.load(tmp_path / "000000" / "inputs.safetensors")).o)).all()
    assert main(["replay", str(tmp_path)]) == 0
