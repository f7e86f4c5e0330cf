"""What a call of an attention backend holds: the tensors of a problem, its conventions, and the output.

Arguments are found by the names in the function's own signature. tests/python/capture_signatures_test.py checks these names
against the sources of installed packages: vLLM 0.11 and 0.33 (vllm/v1/attention/backends/flash_attn.py), SGLang 0.5.4 and 0.5.23
(sglang/srt/layers/attention/base_attn_backend.py), FlashInfer 0.5.3 and 0.7.2 (flashinfer/decode.py, flashinfer/prefill.py).
"""
from __future__ import annotations

import dataclasses
import re
import sys
import weakref
from typing import Any, Callable, Mapping

import numpy as np

from ._arrays import array_of
from ._errors import InputError


class Left(Exception):
    """A call that is left out, with the reason."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A finished call: its arguments by name, and its result."""
    name: str
    arguments: Mapping[str, Any]
    result: Any

    def at(self, path: str) -> Any:
        """The value at a path such as "metadata.seq_lens" or "return.0"; InputError names the part that is missing."""
        first, *rest = path.split(".")
        if first != "return" and first not in self.arguments:
            raise InputError(f"{self.name} has no argument {first!r}: its arguments are {', '.join(self.arguments)}")
        value = self.result if first == "return" else self.arguments[first]
        for part in rest:
            if part.isdecimal():
                value = value[int(part)]
            elif isinstance(value, Mapping):
                value = value[part]
            else:
                value = getattr(value, part)
        return value


@dataclasses.dataclass(frozen=True)
class Source:
    """How to read a call of one function. `layer` reads nothing from a device, so that calls that are not kept stay fast;
    `keep` returns None for a call that computes nothing."""
    layer: Callable[[Call], int | None]
    keep: Callable[[Call], "Kept | None"]
    records: bool = False  # `keep` only records what later calls read: it is called each time, and the call is not counted


def _host(value: Any) -> Any:
    """The tensor in host memory; it is copied only from a device."""
    device = getattr(getattr(value, "device", None), "type", "cpu")
    return value if device == "cpu" else value.detach().cpu()


def _numbers(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(array_of("indices", _host(value)).values).astype(np.int64)


def _rows(tensor: Any, axis: int, rows: np.ndarray[Any, Any]) -> Any:
    """The rows of one axis, gathered where the tensor is, so that only they are copied to the host."""
    if hasattr(tensor, "index_select"):
        torch = sys.modules["torch"]
        return _host(tensor.index_select(axis, torch.as_tensor(rows, device=tensor.device)))
    return np.take(tensor, rows, axis=axis)


@dataclasses.dataclass
class Kept:
    """A problem in a layout of kvscope with its output. `pool` names the tensors whose first axis are blocks, and
    `table` the indices of these blocks: only blocks in `held` are kept."""
    layout: str
    given: dict[str, Any]
    outputs: dict[str, Any]
    options: dict[str, Any]
    pool: tuple[str, ...] = ()
    table: str = ""
    held: np.ndarray[Any, Any] | None = None  # bool, shape of the table: entries that belong to a sequence

    @property
    def blocks(self) -> list[int]:
        """The numbers in the engine of the blocks that are kept, in order; [] if all are kept."""
        if self.held is None:
            return []
        return [int(block) for block in np.unique(_numbers(self.given[self.table])[self.held])]

    def size(self) -> int:
        """[bytes] of the tensors that are kept; nothing but the table is copied for it."""
        blocks = max(len(self.blocks), 1)

        def of(name: str, value: Any) -> int:
            whole = int(getattr(value, "nbytes", 8))
            return whole // max(int(value.shape[0]), 1) * blocks if name in self.pool and self.held is not None else whole
        return sum(of(name, value) for name, value in (*self.given.items(), *self.outputs.items()) if value is not None)

    def tensors(self) -> dict[str, Any]:
        """The tensors in host memory, with only the blocks that sequences hold; other table entries become -1."""
        out = {name: value for name, value in self.given.items() if value is not None}
        if self.held is not None:
            table, blocks = _numbers(out[self.table]), np.array(self.blocks, np.int64)
            renumbered = np.full(table.shape, -1, np.int32)
            renumbered[self.held] = np.searchsorted(blocks, table[self.held])
            rows = blocks if len(blocks) else np.zeros(1, np.int64)
            out.update({name: _rows(out[name], 0, rows) for name in self.pool}, **{self.table: renumbered})
        return {name: _host(value) for name, value in out.items()}

    def candidate(self) -> dict[str, Any]:
        """o and, if the backend returned it, lse."""
        return {name: _host(value) for name, value in self.outputs.items()}


def layer_number(value: Any) -> int | None:
    """3 for 3, and for "model.layers.3.self_attn.attn"; None where there is no number."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    found = re.search(r"\d+", str(value))
    return None if found is None else int(found[0])


def _pages_held(table: Any, lengths: np.ndarray[Any, Any], page_size: int) -> np.ndarray[Any, Any]:
    """bool [batch, columns]: entries of a block table that a sequence of that length has."""
    columns = np.arange(_numbers(table).shape[1])
    return np.asarray(columns[None, :] * page_size < lengths[:, None])


def _attention_options(scale: Any, soft_cap: Any, left: int, causal: bool) -> dict[str, Any]:
    """Options of a problem; `left` is the number of keys that a query sees before its position, -1 for all. Causal order
    ends a window at the query; without it, the window has no right end."""
    options: dict[str, Any] = {"scale": None if scale is None else float(scale),
                               "soft_cap": float(soft_cap) if soft_cap else None}
    if left < 0:
        options["mask"] = "causal" if causal else "none"
    else:
        options.update(mask="sliding_window", window_left=left, window_right=0 if causal else -1)
    return {name: value for name, value in options.items() if value is not None}


def _left(window: Any) -> int:
    """Keys to the left of a window: a number, the first of a pair, or None; -1 for no limit."""
    if window is None:
        return -1
    return max(int(window[0] if isinstance(window, (tuple, list)) else window), -1)


def _is_decoder(layer: Any) -> bool:
    """Whether attn_type, a word or an enumerator of it, is "decoder"; it is where a version has none."""
    kind = getattr(layer, "attn_type", "decoder")
    return str(getattr(kind, "value", kind)) == "decoder"


_VLLM_CACHES = ("auto", "half", "float16", "bfloat16", "float", "fp8", "fp8_e4m3", "fp8_e5m2")  # values of kv_cache_dtype


def _vllm_halves(cache: Any, head_size: int) -> tuple[Any, Any]:
    """K and V [block, page_row, head, dim] of vLLM's caches: [2, N, P, H, D] in 0.11, [N, H, P, 2 * D] in 0.33, and
    [N, 2, P, H, D] in between."""
    if len(cache.shape) == 4 and cache.shape[3] == 2 * head_size:
        rows = cache.swapaxes(1, 2)
        return rows[..., :head_size], rows[..., head_size:]
    if len(cache.shape) == 5 and cache.shape[0] == 2:
        return cache[0], cache[1]
    if len(cache.shape) == 5 and cache.shape[1] == 2:
        return cache[:, 0], cache[:, 1]
    raise Left(f"a cache of shape {list(cache.shape)}, without an axis of K and V")


def _vllm(call: Call) -> Kept:
    """FlashAttentionImpl.forward."""
    metadata, impl, layer = call.at("attn_metadata"), call.at("self"), call.at("layer")
    if metadata is None:
        raise Left("a profiling call, without metadata")
    if not _is_decoder(impl):
        raise Left("not decoder attention")
    causal = getattr(metadata, "causal", True)
    if not isinstance(causal, bool) or getattr(metadata, "mm_prefix_query_range_tensor", None) is not None or \
            getattr(metadata, "rswa_prefix_lens", None) is not None:
        raise Left("a mask that differs between sequences or tokens")
    if getattr(impl, "dcp_world_size", 1) > 1:
        raise Left("a cache that is split between devices")
    kind = str(getattr(impl, "kv_cache_dtype", "auto"))
    if kind not in _VLLM_CACHES:
        raise Left(f"a cache of type {kind}")
    query = call.at("query")
    key, value = _vllm_halves(call.at("kv_cache"), int(query.shape[-1] if len(query.shape) == 3 else impl.head_size))
    tokens, heads = int(metadata.num_actual_tokens), int(impl.num_heads)
    out = call.result if call.arguments.get("output") is None else call.at("output")
    lengths = _numbers(metadata.seq_lens)
    scales: dict[str, Any] = {}
    # The layer quantizes queries to fp8, the kernel multiplies the scores by their scale.
    scale = impl.scale * (float(layer._q_scale) if "float8" in str(getattr(query, "dtype", "")) else 1.0)
    window = getattr(impl, "sliding_window", None)
    if not causal and window is not None and max(window if isinstance(window, (tuple, list)) else (window,)) >= 0:
        raise Left("a window without causal order")
    options = _attention_options(scale, getattr(impl, "logits_soft_cap", None), _left(window), causal)
    if kind.startswith("fp8"):
        options["cache_dtype"] = "e5m2" if "e5m2" in kind else "e4m3"
        scales = {"k_scale": layer._k_scale, "v_scale": layer._v_scale}
    given = {"q": query[:tokens], "key_cache": key, "value_cache": value, "block_table": metadata.block_table,
             "seq_lens": metadata.seq_lens, "query_start_loc": metadata.query_start_loc,
             "alibi_slopes": getattr(impl, "alibi_slopes", None), "sinks": getattr(impl, "sinks", None), **scales}
    return Kept("vllm", given, {"o": out[:tokens].reshape(tokens, heads, -1)}, options,
                ("key_cache", "value_cache"), "block_table", _pages_held(metadata.block_table, lengths, int(key.shape[1])))


_SGLANG_ARGUMENTS = ("self", "q", "k", "v", "layer", "forward_batch", "save_kv_cache", "sinks")
_SGLANG_FP8 = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e4m3fnuz": "e4m3fnuz"}  # pool.dtype


def _sglang_fp8(call: Call, decode: bool, kind: str) -> None:
    """Leaves out the calls on an fp8 pool whose kernel also reads something else than the pool."""
    backend, layer = call.at("self"), call.at("layer")
    if kind == "e4m3fnuz":
        raise Left("a cache of type e4m3fnuz")
    if (layer.k_scale is None) != (layer.v_scale is None):
        raise Left("a scale for only one of K and V")
    # FlashAttention's backend reads all keys from the pool. The others read the new keys of an extend call as they were
    # before the pool quantized them, except FlashInfer's without its ragged wrapper.
    paged = hasattr(backend, "kv_cache_dtype_str") or \
        getattr(getattr(backend, "forward_metadata", None), "use_ragged", True) is False
    if not decode and not paged:
        raise Left("new keys that the kernel reads before they are quantized")


def _sglang_check(call: Call) -> None:
    """Leaves out the calls of another attention than scaled, soft-capped scores in causal order."""
    layer = call.at("layer")
    if getattr(layer, "is_cross_attention", False) or not _is_decoder(layer):
        raise Left("not decoder attention")
    if str(getattr(layer, "pos_encoding_mode", "NONE")) != "NONE":
        raise Left("position encoding inside of the kernel")
    if getattr(layer, "xai_temperature_len", -1) > 0 or getattr(layer, "logit_capping_method", "tanh") != "tanh":
        raise Left("another function of the scores")
    if getattr(layer, "use_irope", False) and getattr(call.at("self"), "attention_chunk_size", None) is not None:
        raise Left("a mask of chunks")
    others = [name for name, value in call.arguments.items() if name not in _SGLANG_ARGUMENTS and value is not None]
    if others:
        raise Left(f"arguments of another attention: {', '.join(others)}")


def _sglang_query(call: Call) -> Any:
    """q as the kernel reads it: FlashAttention's backend converts it to the type of an fp8 cache, without a scale."""
    backend, layer, q = call.at("self"), call.at("layer"), call.at("q")
    converts = str(getattr(backend, "kv_cache_dtype_str", "auto")) != "auto" and int(layer.qk_head_dim) <= 256 and \
        getattr(backend, "fa_impl_ver", 3) != 4
    q = q.reshape(-1, int(layer.tp_q_head_num), int(layer.qk_head_dim))
    return q.to(backend.kv_cache_dtype) if converts else q


def _fp8_bits(buffer: Any) -> Any:
    """The bit patterns of a pool: PyTorch cannot gather rows of fp8 on every device."""
    return buffer.view(sys.modules["torch"].uint8) if "float8" in str(buffer.dtype) else buffer


def _sglang_scale(scale: Any, heads: int) -> Any:
    """The scale of a layer, one number or one for each KV head, as [1] or [heads]."""
    if isinstance(scale, (int, float)):
        return np.array([scale], np.float32)
    scale = _host(scale.detach() if hasattr(scale, "detach") else scale).reshape(-1)
    if len(scale) not in (1, heads):
        raise Left(f"{len(scale)} scales for {heads} KV heads")
    return scale


def _sglang(call: Call) -> Kept:
    """AttentionBackend.forward: the slots of each request's tokens are those of req_to_token."""
    layer, batch = call.at("layer"), call.at("forward_batch")
    _sglang_check(call)
    # SGLang 0.5.4 has the pools in the batch; 0.5.23 in the backend.
    backend = call.at("self")
    pool, tokens = (getattr(backend, name) if getattr(batch, name, None) is None else getattr(batch, name)
                    for name in ("token_to_kv_pool", "req_to_token_pool"))
    if hasattr(pool, "full_to_swa_index_mapping") or hasattr(pool, "translate_loc_from_full_to_swa"):
        raise Left("a pool with other slots for layers with a window")
    number = int(layer.layer_id)
    lengths, requests = _numbers(batch.seq_lens), _numbers(batch.req_pool_indices)
    slots_of = _numbers(tokens.req_to_token)
    slots = [slots_of[request, :length] for request, length in zip(requests, lengths)]
    decode = bool(batch.forward_mode.is_decode())
    queries = np.ones(len(lengths), np.int64) if decode else _numbers(batch.extend_seq_lens)
    indices = np.concatenate([np.zeros(0, np.int64), *slots])
    given = {"q": call.at("q").reshape(-1, int(layer.tp_q_head_num), int(layer.qk_head_dim)),
             "k_buffer": pool.get_key_buffer(number), "v_buffer": pool.get_value_buffer(number),
             "kv_indptr": np.append(0, np.cumsum(lengths)).astype(np.int32), "kv_indices": indices,
             "qo_indptr": np.append(0, np.cumsum(queries)).astype(np.int32), "sinks": call.arguments.get("sinks")}
    options = _attention_options(layer.scaling, getattr(layer, "logit_cap", 0), _left(getattr(layer, "sliding_window_size", None)),
                                 True)
    kind = _SGLANG_FP8.get(str(getattr(pool, "dtype", "")).rpartition(".")[2])
    if kind is not None:
        _sglang_fp8(call, decode, kind)
        given["q"], options["cache_dtype"] = _sglang_query(call), kind
        given.update({name: _fp8_bits(given[name]) for name in ("k_buffer", "v_buffer")})
        if layer.k_scale is not None:  # stored elements are k / k_scale, in the pool's type
            heads = int(given["k_buffer"].shape[1])
            given.update(k_scale=_sglang_scale(layer.k_scale, heads), v_scale=_sglang_scale(layer.v_scale, heads))
    result = call.result[0] if isinstance(call.result, tuple) else call.result
    out = {"o": result.reshape(len(given["q"]), int(layer.tp_q_head_num), -1)}
    return Kept("sglang", given, out, options, ("k_buffer", "v_buffer"), "kv_indices", np.ones(indices.shape, bool))


_plans: "weakref.WeakKeyDictionary[Any, Mapping[str, Any]]" = weakref.WeakKeyDictionary()


# FlashInfer 0.7 takes these after page_size by position too, as earlier versions do, but no longer names them in `plan`.
_PLAN_BY_POSITION = ("pos_encoding_mode", "window_left", "logits_soft_cap", "q_data_type", "kv_data_type", "o_data_type",
                     "data_type", "sm_scale")


def forget_plans() -> None:
    """Drops all recorded plans: a wrapper may have been planned again while no capture was active."""
    _plans.clear()


def _flashinfer_plan(call: Call) -> None:
    """`plan` of a wrapper: its arguments are kept for the calls of `run`."""
    plan = {name: value for name, value in call.arguments.items() if name != "self"}
    _plans[call.at("self")] = {**plan, **dict(zip(_PLAN_BY_POSITION, plan.pop("deprecated_positional_args", ())))}


def _flashinfer_run(call: Call) -> Kept:
    """`run` of a wrapper for a paged cache, in the layout that the wrapper was made with."""
    wrapper = call.at("self")
    plan = _plans.get(wrapper)
    if plan is None:
        raise Left("run without a plan: activate the capture before plan is called")
    if str(plan.get("pos_encoding_mode", "NONE")) != "NONE":
        raise Left("position encoding inside of the kernel")
    # The kernel takes the packed mask if both are given, and no causal one beside it.
    mask = next((name for name in ("packed_custom_mask", "custom_mask") if plan.get(name) is not None), None)
    if call.arguments.get("args") or call.arguments.get("kv_cache_sf") is not None or \
            call.arguments.get("skip_softmax_threshold_scale_factor") is not None:
        raise Left("arguments of another attention: a custom kernel, NVFP4 scales or a skipped softmax")
    if plan.get("prefix_len_ptr") is not None:
        raise Left("a mask of several items in a prompt")
    if plan.get("window_right", 0) != 0:
        raise Left(f"a window to the right: window_right {plan['window_right']}")
    decode = "qo_indptr" not in plan
    prefix = "" if decode else "paged_kv_"
    cache = call.at("paged_kv_cache")
    key, value = cache if isinstance(cache, (tuple, list)) else (cache[:, 0], cache[:, 1])
    named = {name: plan[prefix + name] for name in ("indptr", "indices", "last_page_len")}
    query = call.at("q")
    rows = plan.get("qo_indptr")
    if decode:  # each sequence has the same number of queries
        sequences = len(named["last_page_len"])
        rows = np.arange(sequences + 1, dtype=np.int32) * (len(query) // max(sequences, 1))
    given = {"q": query, "k_cache": key, "v_cache": value, "kv_indptr": named["indptr"],
             "kv_indices": named["indices"], "kv_last_page_len": named["last_page_len"],
             "qo_indptr": rows, "sinks": call.arguments.get("sinks"), **({mask: plan[mask]} if mask else {})}
    scale = plan.get("sm_scale") or 1 / float(key.shape[-1]) ** 0.5
    for name in ("q_scale", "k_scale"):
        scale *= float(call.arguments.get(name) or 1)
    if call.arguments.get("v_scale") is not None:
        given["v_scale"] = np.array([float(call.arguments["v_scale"])], np.float32)
        given["k_scale"] = np.ones(1, np.float32)
    left = call.arguments.get("window_left")
    left = _left(plan.get("window_left") if left is None else left)
    if mask is not None and left >= 0:
        raise Left("a window together with a custom mask")
    options = _attention_options(scale, plan.get("logits_soft_cap"), left, decode or bool(plan.get("causal")))
    outputs = dict(zip(("o", "lse"), call.result)) if isinstance(call.result, tuple) else {"o": call.result}
    if "lse" in outputs:
        options["lse_base"] = "natural" if call.arguments.get("lse_base") == "ln" else "two"
        if call.arguments.get("lse_layout") == "HN":
            outputs["lse"] = outputs["lse"].T
    held = np.arange(len(_numbers(named["indices"]))) < int(_numbers(named["indptr"])[-1])
    return Kept("flashinfer_hnd" if getattr(wrapper, "_kv_layout", "NHD") == "HND" else "flashinfer", given, outputs,
                options, ("k_cache", "v_cache"), "kv_indices", held)


vllm = Source(lambda call: layer_number(call.at("layer").layer_name), _vllm)
sglang = Source(lambda call: int(call.at("layer").layer_id), _sglang)
flashinfer_plan = Source(lambda call: None, _flashinfer_plan, records=True)
flashinfer_run = Source(lambda call: None, _flashinfer_run)
