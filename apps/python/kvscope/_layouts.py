"""Constructors of Problem, one for each named layout. Written by generate_layouts.py from core/golden/layouts/named/."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from ._calls import guided

if TYPE_CHECKING:
    from ._problem import Problem


class LayoutConstructors:
    """Base of Problem."""

    @classmethod
    def _make(cls, layout: str, given: Mapping[str, Any]) -> "Problem":
        raise NotImplementedError

    @classmethod
    @guided
    def dense(cls, q: Any = None, k_cache: Any = None, v_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """FlashAttention's cache without pages, a row of tokens for each sequence.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        k_cache or k or key_cache   [seq, position, head, dim], holds k
        v_cache or v or value_cache   [seq, position, head, dim], holds v
        cache_seqlens or seqused_k or seq_lens   lengths
        cache_leftpad or leftpad_k   left_padding

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("dense", {"q": q, "k_cache": k_cache, "v_cache": v_cache, **tensors_and_options})

    @classmethod
    @guided
    def flashinfer(cls, q: Any = None, kv_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """FlashInfer's paged cache, tokens before heads.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_cache or paged_kv_cache   [block, kv, slot, head, dim], holds kv
        k_cache or key_cache   [block, slot, head, dim], holds k
        v_cache or value_cache   [block, slot, head, dim], holds v
        kv_indptr or paged_kv_indptr   indptr
        kv_indices or paged_kv_indices   indices
        kv_last_page_len or paged_kv_last_page_len   last_page_len

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("flashinfer", {"q": q, "kv_cache": kv_cache, **tensors_and_options})

    @classmethod
    @guided
    def flashinfer_hnd(cls, q: Any = None, kv_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """FlashInfer's paged cache, heads before tokens.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_cache or paged_kv_cache   [block, kv, head, slot, dim], holds kv
        k_cache or key_cache   [block, head, slot, dim], holds k
        v_cache or value_cache   [block, head, slot, dim], holds v
        kv_indptr or paged_kv_indptr   indptr
        kv_indices or paged_kv_indices   indices
        kv_last_page_len or paged_kv_last_page_len   last_page_len

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("flashinfer_hnd", {"q": q, "kv_cache": kv_cache, **tensors_and_options})

    @classmethod
    @guided
    def flashinfer_trtllm(cls, q: Any = None, kv_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """FlashInfer's trtllm_batch_decode_with_kv_cache: heads before tokens, a block table.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_cache   [block, kv, head, slot, dim], holds kv
        k_cache or key_cache   [block, head, slot, dim], holds k
        v_cache or value_cache   [block, head, slot, dim], holds v
        kv_cache   [block, 1, slot, dim], holds k
        kv_cache   [block, slot, dim], holds k
        block_tables or block_table   table
        seq_lens or context_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("flashinfer_trtllm", {"q": q, "kv_cache": kv_cache, **tensors_and_options})

    @classmethod
    @guided
    def flashmla_fp8(cls, q: Any = None, kv_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """FlashMLA's rows of 656 bytes: 512 e4m3, 4 scales of 128 elements each, 64 bf16 of rope.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_cache or k_cache   [block, slot, 1, row], holds k
        kv_cache or k_cache   [block, slot, row], holds k
        block_table or block_tables or page_table   table
        cache_seqlens or seq_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("flashmla_fp8", {"q": q, "kv_cache": kv_cache, **tensors_and_options})

    @classmethod
    @guided
    def flashmla_sparse(cls, q: Any = None, kv_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """FlashMLA's sparse attention: the slots of the tokens that each query sees; packed rows or rows of
        one type.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_cache or k_cache or kv   [block, slot, 1, row], holds k
        kv_cache or k_cache or kv   [block, slot, head, dim], holds k
        kv_cache or k_cache or kv   [token, head, dim], holds k
        indices or topk_indices or sparse_indices   indices
        topk_length or topk_lengths   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("flashmla_sparse", {"q": q, "kv_cache": kv_cache, **tensors_and_options})

    @classmethod
    @guided
    def hf(cls, q: Any = None, key_cache: Any = None, value_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """Hugging Face DynamicCache: K and V of a layer by sequence, padded to the longest, left or right.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        key_cache or keys or key_states   [seq, head, position, dim], holds k
        value_cache or values or value_states   [seq, head, position, dim], holds v
        key_cache or keys or key_states   [layer, seq, head, position, dim], holds k
        value_cache or values or value_states   [layer, seq, head, position, dim], holds v
        seq_lens or cache_seqlens   lengths
        attention_mask   attention_mask

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("hf", {"q": q, "key_cache": key_cache, "value_cache": value_cache, **tensors_and_options})

    @classmethod
    @guided
    def hnd(cls, q: Any = None, k_cache: Any = None, v_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """as nhd, heads before tokens.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        k_cache or key_cache   [block, head, slot, dim], holds k
        v_cache or value_cache   [block, head, slot, dim], holds v
        block_table or block_tables or page_table   table
        cache_seqlens or seq_lens or seqused_k or context_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("hnd", {"q": q, "k_cache": k_cache, "v_cache": v_cache, **tensors_and_options})

    @classmethod
    @guided
    def lmcache(cls, q: Any = None, kv_chunk: Any = None, **tensors_and_options: Any) -> "Problem":
        """LMCache's chunk of one sequence in the memory format KV_2LTD; needs --head-size, or q.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_chunk or kv or memory_obj   [kv, layer, token, head*dim], holds kv

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("lmcache", {"q": q, "kv_chunk": kv_chunk, **tensors_and_options})

    @classmethod
    @guided
    def lmcache_2td(cls, q: Any = None, kv_chunk: Any = None, **tensors_and_options: Any) -> "Problem":
        """LMCache's chunk of one sequence in the memory format KV_2TD; needs --head-size, or q.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_chunk or kv or memory_obj   [kv, token, head*dim], holds kv

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("lmcache_2td", {"q": q, "kv_chunk": kv_chunk, **tensors_and_options})

    @classmethod
    @guided
    def lmcache_mla(cls, q: Any = None, kv_chunk: Any = None, **tensors_and_options: Any) -> "Problem":
        """LMCache's chunk of one sequence of an MLA model, memory format KV_MLA_FMT.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_chunk or kv or memory_obj   [1, layer, token, dim], holds k

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("lmcache_mla", {"q": q, "kv_chunk": kv_chunk, **tensors_and_options})

    @classmethod
    @guided
    def lmcache_t2d(cls, q: Any = None, kv_chunk: Any = None, **tensors_and_options: Any) -> "Problem":
        """LMCache's chunk of one sequence in the memory format KV_T2D; needs --head-size, or q.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_chunk or kv or memory_obj   [token, kv, head*dim], holds kv

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("lmcache_t2d", {"q": q, "kv_chunk": kv_chunk, **tensors_and_options})

    @classmethod
    @guided
    def max(cls, q: Any = None, blocks: Any = None, **tensors_and_options: Any) -> "Problem":
        """Modular MAX, all layers in one tensor; MLA has an axis of 1 for K and V.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        blocks   [block, kv, layer, slot, head, dim], holds kv
        scales   [block, kv, layer, slot, head, group], holds kv_scales, optional
        blocks   [block, 1, layer, slot, head, dim], holds k
        scales   [block, 1, layer, slot, head, group], holds k_scales, optional
        lookup_table   table
        cache_lengths   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("max", {"q": q, "blocks": blocks, **tensors_and_options})

    @classmethod
    @guided
    def mla(cls, q: Any = None, kv_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """FlashMLA and FlashInfer MLA: one row per token is K, its first elements are V.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_cache or k_cache   [block, slot, dim], holds k
        kv_cache or k_cache   [block, slot, head, dim], holds k
        ckv or ckv_cache   [block, slot, latent], holds k
        kpe or kpe_cache   [block, slot, rope], holds k
        block_table or block_tables or page_table   table
        cache_seqlens or seq_lens or seqused_k or context_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("mla", {"q": q, "kv_cache": kv_cache, **tensors_and_options})

    @classmethod
    @guided
    def mla_indptr(cls, q: Any = None, ckv_cache: Any = None, kpe_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """FlashInfer's BatchMLAPagedAttentionWrapper: the rows of mla, pages by indptr.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        ckv_cache or ckv   [block, slot, latent], holds k
        kpe_cache or kpe   [block, slot, rope], holds k
        kv_cache   [block, slot, dim], holds k
        kv_indptr   indptr
        kv_indices   indices
        kv_len_arr or kv_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("mla_indptr", {"q": q, "ckv_cache": ckv_cache, "kpe_cache": kpe_cache, **tensors_and_options})

    @classmethod
    @guided
    def mlc(cls, q: Any = None, pages: Any = None, **tensors_and_options: Any) -> "Problem":
        """MLC LLM's PagedKVCache: FlashInfer's heads-first pages under TVM's names.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        pages   [block, kv, head, slot, dim], holds kv
        page_indptr   indptr
        page_values or page_indices   indices
        length_info or last_page_len   last_page_len

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("mlc", {"q": q, "pages": pages, **tensors_and_options})

    @classmethod
    @guided
    def nhd(cls, q: Any = None, k_cache: Any = None, v_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """FlashAttention, vLLM: K and V apart, tokens before heads.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        k_cache or key_cache   [block, slot, head, dim], holds k
        v_cache or value_cache   [block, slot, head, dim], holds v
        block_table or block_tables or page_table   table
        cache_seqlens or seq_lens or seqused_k or context_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("nhd", {"q": q, "k_cache": k_cache, "v_cache": v_cache, **tensors_and_options})

    @classmethod
    @guided
    def sglang(cls, q: Any = None, k_buffer: Any = None, v_buffer: Any = None, **tensors_and_options: Any) -> "Problem":
        """SGLang's token pool with one index per token.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        k_buffer   [token, head, dim], holds k
        v_buffer   [token, head, dim], holds v
        kv_indptr or paged_kv_indptr   indptr
        kv_indices or paged_kv_indices   indices

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("sglang", {"q": q, "k_buffer": k_buffer, "v_buffer": v_buffer, **tensors_and_options})

    @classmethod
    @guided
    def sglang_mla(cls, q: Any = None, kv_buffer: Any = None, **tensors_and_options: Any) -> "Problem":
        """SGLang's kv_buffer for MLA: a token pool of rows that are K, with V in front.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_buffer   [token, head, dim], holds k
        kv_indptr   indptr
        kv_indices   indices

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("sglang_mla", {"q": q, "kv_buffer": kv_buffer, **tensors_and_options})

    @classmethod
    @guided
    def sglang_req(cls, q: Any = None, k_buffer: Any = None, v_buffer: Any = None, **tensors_and_options: Any) -> "Problem":
        """SGLang's token pool with req_to_token, the slots of the tokens of each request.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        k_buffer   [token, head, dim], holds k
        v_buffer   [token, head, dim], holds v
        kv_buffer   [token, head, dim], holds k
        req_to_token   table
        req_pool_indices   requests
        seq_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("sglang_req", {"q": q, "k_buffer": k_buffer, "v_buffer": v_buffer, **tensors_and_options})

    @classmethod
    @guided
    def trtllm(cls, q: Any = None, kv_pool: Any = None, **tensors_and_options: Any) -> "Problem":
        """TensorRT-LLM's pool of one layer: K and V of a block are two entries, block_offsets has an entry for
        each.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_pool or kv_cache_pool   [block*kv, head, slot, dim], holds kv
        kv_cache_block_offsets or block_offsets or host_kv_cache_block_offsets   table
        sequence_length or seq_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("trtllm", {"q": q, "kv_pool": kv_pool, **tensors_and_options})

    @classmethod
    @guided
    def varlen(cls, q: Any = None, k: Any = None, v: Any = None, **tensors_and_options: Any) -> "Problem":
        """flash_attn_varlen: the tokens of all sequences one after the other.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        k or key   [token, head, dim], holds k
        v or value   [token, head, dim], holds v
        cu_seqlens_k or kv_indptr   indptr
        seqused_k or seq_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("varlen", {"q": q, "k": k, "v": v, **tensors_and_options})

    @classmethod
    @guided
    def vllm(cls, q: Any = None, kv_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """vLLM's kv_cache of one layer, tokens before heads, K and V first or after the block.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_cache   [block, kv, slot, head, dim], holds kv
        kv_cache   [kv, block, slot, head, dim], holds kv
        key_cache or k_cache   [block, slot, head, dim], holds k
        value_cache or v_cache   [block, slot, head, dim], holds v
        block_table or block_tables or block_table_tensor   table
        seq_lens or seqused_k or context_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("vllm", {"q": q, "kv_cache": kv_cache, **tensors_and_options})

    @classmethod
    @guided
    def vllm_diffkv(cls, q: Any = None, kv_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """vLLM with K and V of different head sizes: V follows K in each head; needs --value-size.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_cache   [block, slot, head, dim+vdim], holds kv
        block_table or block_tables   table
        seq_lens or seqused_k or context_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("vllm_diffkv", {"q": q, "kv_cache": kv_cache, **tensors_and_options})

    @classmethod
    @guided
    def vllm_hnd(cls, q: Any = None, kv_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """vLLM's kv_cache of one layer, heads before tokens, K and V first or after the block.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        kv_cache   [block, kv, head, slot, dim], holds kv
        kv_cache   [kv, block, head, slot, dim], holds kv
        key_cache or k_cache   [block, head, slot, dim], holds k
        value_cache or v_cache   [block, head, slot, dim], holds v
        block_table or block_tables or block_table_tensor   table
        seq_lens or seqused_k or context_lens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("vllm_hnd", {"q": q, "kv_cache": kv_cache, **tensors_and_options})

    @classmethod
    @guided
    def vllm_legacy(cls, q: Any = None, key_cache: Any = None, value_cache: Any = None, **tensors_and_options: Any) -> "Problem":
        """PagedAttention of early vLLM: K in runs of 16 bytes, V with tokens last.

        q   [T, Hq, D] or [B, queries, Hq, D], f32, f16 or bf16
        key_cache or k_cache   [block, head, dim/x, slot, x], holds k
        value_cache or v_cache   [block, head, dim, slot], holds v
        block_tables or block_table   table
        seq_lens or context_lens or cache_seqlens   lengths

        Also scales, masks and offsets of queries by the names of the engine; the options of Problem.
        """
        return cls._make("vllm_legacy", {"q": q, "key_cache": key_cache, "value_cache": value_cache, **tensors_and_options})
