"""The list of mutants: the mistake in each, and its kernel.

A base: kernel, architecture, and the entries that its mutants' cases launch. A mutant: the mistake in words, edits of
files of gpu/kernels (text that stands there once, white space aside, and what comes in its place), how it must fail,
and the cases that must, each of them. Every case must pass on the base.

A mistake that no case notices is a case that is missing.
"""

BASES = {
    'append_tokens_bf16': ('append_tokens', 'sm_90a', ['APPEND_TOKENS(append_tokens_bf16_bf16,']),
    'append_tokens_bf16_e4m3': ('append_tokens', 'sm_90a', ['APPEND_TOKENS(append_tokens_bf16_e4m3,']),
    'append_tokens_f32_f16': ('append_tokens', 'sm_90a', ['APPEND_TOKENS(append_tokens_f32_f16,']),
    'append_tokens_f32': ('append_tokens', 'sm_90a', ['APPEND_TOKENS(append_tokens_f32_f32,']),
    'append_tokens_quantize_f32': ('append_tokens', 'sm_90a', ['APPEND_TOKENS(append_tokens_quantize_f32,']),
    'gather_rows_bf16': ('gather_rows', 'sm_90a', ['GATHER_ROWS(gather_rows_bf16_bf16,']),
    'gather_rows_e4m3_bf16': ('gather_rows', 'sm_90a', ['GATHER_ROWS(gather_rows_e4m3_bf16,',
                                                        'GATHER_ROWS(gather_rows_scales,']),
    'gather_rows_indices': ('gather_rows', 'sm_90a', ['GATHER_ROWS(gather_rows_remap,',
                                                      'GATHER_ROWS(gather_rows_tma_row,',
                                                      'GATHER_ROWS(gather_rows_compact,']),
    'populate_rows_w4': ('populate_rows', 'sm_90a', ['POPULATE_ROWS(populate_rows_w4,']),
    'populate_rows_inside': ('populate_rows', 'sm_90a', ['POPULATE_ROWS(populate_rows_inside,']),
    'tma_tile_load_plain': ('tma_tile_load', 'sm_90a', ['TILE_LOAD_KERNEL(plain)']),
    'tma_tile_load_matrix': ('tma_tile_load', 'sm_90a', ['TILE_LOAD_KERNEL(matrix)']),
    'tma_tile_load_ragged': ('tma_tile_load', 'sm_90a', ['TILE_LOAD_KERNEL(ragged)']),
    'gather4_tile_load': ('gather4_tile_load', 'sm_90a', ['gather4_tile_load']),
    'lds_stage_a_k': ('lds_stage', 'sm_90a', ['STAGE_KERNEL(a_k,']),
    'lds_stage_a_v': ('lds_stage', 'sm_90a', ['STAGE_KERNEL(a_v,']),
    'paged_decode_bf16': ('paged_decode', 'sm_90a', ['PAGED_DECODE(bf16, 128)', 'PAGED_DECODE_COMBINE(bf16)']),
    'paged_decode_e4m3': ('paged_decode', 'sm_90a', ['PAGED_DECODE(e4m3, 64)', 'PAGED_DECODE_COMBINE(bf16)']),
    'paged_prefill_bf16': ('paged_prefill', 'sm_90a', ['PAGED_PREFILL(bf16, 64)']),
    'paged_decode_any_bf16': ('paged_decode', 'sm_90a', ['PAGED_DECODE_ANY(bf16)', 'PAGED_DECODE_COMBINE(bf16)']),
    'paged_decode_any_e4m3': ('paged_decode', 'sm_90a', ['PAGED_DECODE_ANY(e4m3)', 'PAGED_DECODE_COMBINE(bf16)']),
    'mla_decode_bf16': ('mla_decode', 'sm_90a', ['mla_decode_bf16', 'mla_combine']),
    'mla_decode_e4m3': ('mla_decode', 'sm_90a', ['mla_decode_e4m3', 'mla_combine']),
    'mla_decode_fp8': ('mla_decode', 'sm_90a', ['mla_decode_fp8', 'mla_combine']),
    'continuous_decode_bf16': ('continuous_decode', 'sm_90a', ['CONTINUOUS_DECODE(bf16, 64)',
                                                               'CONTINUOUS_DECODE_COMBINE(bf16)']),
    'continuous_decode_f32': ('continuous_decode', 'sm_90a', ['CONTINUOUS_DECODE_ANY(f32)',
                                                              'CONTINUOUS_DECODE_COMBINE(f32)']),
}

MUTANTS = []


def mutant(name, base, mistake, edits, fails, *cases):
    MUTANTS.append({'name': name, 'base': base, 'mistake': mistake, 'edits': edits, 'fails': fails, 'cases': cases})


# --- append_tokens ---------------------------------------------------------------------------------------------------

mutant('append_tokens_position_forgotten', 'append_tokens_bf16',
       "new tokens are written from the sequence's beginning on, not behind what it has",
       [('append_tokens/kernel.cu', 'at = work.position + token,', 'at = token,')], 'values', 'bf16_page16_gqa')
mutant('append_tokens_one_too_many', 'append_tokens_bf16', 'one token more than a sequence brings is written',
       [('append_tokens/kernel.cu', '.tokens = p.offsets[sequence + 1] - begin,',
         '.tokens = p.offsets[sequence + 1] - begin + (sequence == 0),')], 'values', 'bf16_page16_gqa')
mutant('append_tokens_last_dropped', 'append_tokens_bf16', 'the last new token of a sequence is not written',
       [('append_tokens/kernel.cu', 'chunks = work.tokens * row_chunks;',
         'chunks = (work.tokens - (work.tokens > 0)) * row_chunks;')], 'values', 'bf16_page4_tiny', 'bf16_page16_gqa')
mutant('append_tokens_k_and_v_swapped', 'append_tokens_bf16', "K is written to V's pages and V to K's",
       [('append_tokens/kernel.cu', 'cache = is_key ? p.key : p.value;', 'cache = is_key ? p.value : p.key;')],
       'values', 'bf16_page4_tiny')
mutant('append_tokens_layer_stride', 'append_tokens_bf16',
       'a block is taken for one layer of K alone: what other layers and V take of it is forgotten',
       [('common/paged_cache.cuh', 'static_cast<int64_t>(block) * cache.block_stride +',
         'static_cast<int64_t>(block) * cache.page_size * cache.heads * cache.head_size +')], 'values',
       'bf16_page4_tiny')
mutant('append_tokens_off_by_one_sentinel', 'append_tokens_bf16',
       'a table entry one past the pool is taken for a block',
       [('common/paged_cache.cuh', 'block < static_cast<uint32_t>(cache.blocks)',
         'block <= static_cast<uint32_t>(cache.blocks)')], 'OUT_OF_BOUNDS', 'sentinel_drops')
mutant('append_tokens_no_saturation', 'append_tokens_bf16_e4m3', 'what e4m3 cannot hold becomes NaN, not 448',
       [('common/number.cuh', ': "=h"(pair) : "f"(high), "f"(low)',
         ': "=h"(pair) : "f"(fabsf(high) <= 464 ? high : NAN), "f"(fabsf(low) <= 464 ? low : NAN)')], 'values',
       'bf16_e4m3_page64')
mutant('append_tokens_rounded_twice', 'append_tokens_f32_f16', 'f32 becomes f16 by way of bf16',
       [('common/number.cuh', 'return pack_f16(in[0], in[1]);',
         '{ const float2 f = unpack_bf16(pack_bf16(in[0], in[1])); return pack_f16(f.x, f.y); }')], 'values',
       'f32_f16_page16')
mutant('append_tokens_v_stride_of_k', 'append_tokens_f32', "V's rows are read with K's stride",
       [('append_tokens/kernel.cu', 'stride = is_key ? p.key_stride : p.value_stride;', 'stride = p.key_stride;')],
       'OUT_OF_BOUNDS', 'f32_page64_fused')
mutant('append_tokens_drops_of_k', 'append_tokens_bf16', 'dropped tokens of V are counted with those of K',
       [('append_tokens/kernel.cu', 'p.drops + (is_key ? 0 : 1)', 'p.drops')], 'values', 'sentinel_drops')
mutant('append_tokens_table_width', 'append_tokens_bf16', "a page past the table's row is looked up in the next row",
       [('append_tokens/kernel.cu', 'if (page >= static_cast<uint32_t>(work.cache.table_stride)) return',
         'if (false) return')], 'values', 'continuous')
mutant('append_tokens_quotient_by_inverse', 'append_tokens_quantize_f32',
       'elements are multiplied by the rounded inverse of the scale, not divided by the scale',
       [('append_tokens/kernel.cu', 'f[e] = quotient(f[e], divisor, inverse);', 'f[e] = f[e] * inverse;')], 'values',
       'quantize_f32_page128_granule8')
mutant('append_tokens_granule_by_lane', 'append_tokens_quantize_f32',
       'the largest magnitude of a granule is looked for among a lane and its neighbour alone',
       [('append_tokens/kernel.cu', 'uint32_t other = lanes / 2; other > 0;', 'uint32_t other = 1; other == 1;')],
       'values', 'quantize_f32_mla')
mutant('append_tokens_scale_zero', 'append_tokens_quantize_f32', 'a granule of zeros has the scale 0',
       [('append_tokens/kernel.cu', 'if (largest == 0) return 1;', 'if (largest == 0) return 0;')], 'values',
       'quantize_f32_page128_granule8')
mutant('append_tokens_tiny_not_lifted', 'append_tokens_quantize_f32', 'tiny granules are divided as they are',
       [('append_tokens/kernel.cu', 'if (largest < 0x1p-60f)', 'if (false)')], 'values',
       'quantize_f32_page128_granule8')

# --- gather_rows -----------------------------------------------------------------------------------------------------

mutant('gather_rows_no_barrier', 'gather_rows_bf16', 'rows are moved before all threads have found where they lie',
       [('gather_rows/kernel.cu', '= row_place(p, first + threadIdx.x);\n  __syncthreads();',
         '= row_place(p, first + threadIdx.x);')], 'RACE read-after-write', 'bf16_page16_gqa_logical')
mutant('gather_rows_wrong_sequence', 'gather_rows_bf16',
       'the first list of a sequence is taken for one of the sequence before',
       [('gather_rows/kernel.cu', 'p.offsets[middle + 1] <= list', 'p.offsets[middle + 1] < list')], 'values',
       'bf16_page16_gqa_logical')
mutant('gather_rows_hole_is_slot_0', 'gather_rows_bf16',
       'an index below 0 brings the first token of the pool, not zeros',
       [('gather_rows/kernel.cu', 'if (index < 0) return nothing;', 'if (index < 0) index = 0;')], 'values',
       'bf16_page16_gqa_encoded')
mutant('gather_rows_stale_table', 'gather_rows_bf16', "the page before a token's own is looked up",
       [('gather_rows/kernel.cu', 'block_of_page(p.cache, sequence, page);',
         'block_of_page(p.cache, sequence, page - (page > 0));')], 'values', 'bf16_page4_tiny')
mutant('gather_rows_scale_of_head', 'gather_rows_e4m3_bf16',
       "all elements of a row are multiplied by its first granule's scale",
       [('gather_rows/kernel.cu', 'p.cache.scales[place.scales + scale_column]', 'p.cache.scales[place.scales]')],
       'values', 'e4m3_bf16_page16_granule32')
mutant('gather_rows_division_towards_0', 'gather_rows_indices', 'rows of negative indices by a division that cuts',
       [('gather_rows/kernel.cu', 'slot = (encoded % cache.page_size + cache.page_size) % cache.page_size;',
         'slot = encoded % cache.page_size;')], 'values', 'indices_page16')
mutant('gather_rows_compact_inclusive', 'gather_rows_indices', 'an entry counts itself among those before it',
       [('gather_rows/kernel.cu', '((1u << lane) - 1)', '((2u << lane) - 1)')], 'values', 'indices_page256_mla_null')
mutant('gather_rows_invalid_off_by_one', 'gather_rows_bf16', 'the first block that is none is taken for one',
       [('gather_rows/kernel.cu', 'block >= static_cast<uint32_t>(p.invalid)',
         'block > static_cast<uint32_t>(p.invalid)'),
        ('common/paged_cache.cuh', 'block < static_cast<uint32_t>(cache.blocks)',
         'block <= static_cast<uint32_t>(cache.blocks)')], 'OUT_OF_BOUNDS', 'bf16_sentinels')
mutant('gather_rows_rows_off_by_one', 'gather_rows_bf16', 'the row behind the last is taken for one',
       [('gather_rows/kernel.cu', 'index < 0 || index >= rows', 'index < 0 || index > rows')], 'values',
       'bf16_page16_gqa_rows')

# --- populate_rows ---------------------------------------------------------------------------------------------------

mutant('populate_rows_layer_stride', 'populate_rows_w4',
       'a block is taken for page_size rows: K, V and other layers are forgotten',
       [('populate_rows/kernel.cu', 'static_cast<uint32_t>(cache.block_stride / cache.token_stride)',
         'static_cast<uint32_t>(cache.page_size)')], 'values', 'page16_width4')
mutant('populate_rows_same_pages', 'populate_rows_w4', 'every read of four entries is that of the first four',
       [('populate_rows/kernel.cu', 'Words<kWidth> words(entries + i);', 'Words<kWidth> words(entries);')], 'values',
       'page16_twelve_pages')
mutant('populate_rows_slot_forgotten', 'populate_rows_inside', 'a tile inside a page begins where the page does',
       [('populate_rows/kernel.cu', '* rows_of_block(p.cache) + slot_of(p.cache, base);', '* rows_of_block(p.cache);')],
       'values', 'page256_inside', 'page256_inside_old_contract')
mutant('populate_rows_first_sequence', 'populate_rows_inside', "every tile looks into the first sequence's table",
       [('populate_rows/kernel.cu', 'block_of(p.cache, p.sequences[tile], base)', 'block_of(p.cache, 0, base)')],
       'values', 'page256_inside')

# --- tma_tile_load ---------------------------------------------------------------------------------------------------

mutant('tma_tile_load_no_proxy_fence', 'tma_tile_load_plain',
       'copies are begun without a fence behind ordinary stores to the same bytes',
       [('tma_tile_load/kernel.cu', 'fence_proxy_async();  // each thread, for what it stored: the copies come after',
         '')], 'PROXY_FENCE', 'k_bf16_b128_page16_tiny')
mutant('tma_tile_load_matrix_first_head', 'tma_tile_load_matrix', "columns of every head are the first head's",
       [('tma_tile_load/kernel.cu', 'p.head * p.cache.head_size + p.depth', 'p.depth')], 'values', 'k_bf16_b128_matrix')
mutant('tma_tile_load_matrix_row_of_boxes_again', 'tma_tile_load_matrix',
       'every row of boxes of an MN-major tile is the first one',
       [('tma_tile_load/kernel.cu', 'column, where.row + first, full);', 'column, where.row, full);')], 'values',
       'v_f16_b128_matrix_mn_major')
mutant('tma_tile_load_no_wait', 'tma_tile_load_plain', 'the tile is read without a wait for the copies',
       [('tma_tile_load/kernel.cu', 'mbarrier_wait(full, 0);', '')], 'RACE read-after-write', 'k_bf16_b128_page16_tiny')
mutant('tma_tile_load_expect_too_small', 'tma_tile_load_plain', 'the barrier is told of one page less than is copied',
       [('tma_tile_load/kernel.cu', '(pages * share.page_rows * p.chunks',
         '((pages - 1) * share.page_rows * p.chunks')], 'RACE read-after-write', 'k_bf16_b128_page16_tiny')
mutant('tma_tile_load_wrong_parity', 'tma_tile_load_plain',
       'the wait asks for the phase before the first, which is over',
       [('tma_tile_load/kernel.cu', 'mbarrier_wait(full, 0);', 'mbarrier_wait(full, 1);')], 'RACE read-after-write',
       'k_bf16_b128_page16_tiny')
mutant('tma_tile_load_first_page_again', 'tma_tile_load_plain', "every page of a tile is the tile's first",
       [('tma_tile_load/kernel.cu', 'locate(p.cache, sequence, share.first + page * share.page_rows)',
         'locate(p.cache, sequence, share.first)')], 'values', 'k_bf16_b128_page16_tiny')
mutant('tma_tile_load_layer_stride', 'tma_tile_load_plain',
       'a block is taken for page_size rows: K, V and other layers are forgotten',
       [('tma_tile_load/kernel.cu', 'static_cast<int>(cache.block_stride / cache.token_stride)', 'cache.page_size')],
       'values', 'k_e4m3_b32_page64_third_layer')
mutant('tma_tile_load_ragged_whole', 'tma_tile_load_ragged', 'rows behind the last token are copied from memory',
       [('tma_tile_load/kernel.cu', 'share.page_rows - valid, line, full', '0, line, full')], 'values',
       'k_ragged_b128_page16')
mutant('tma_tile_load_last_page_skipped', 'tma_tile_load_plain',
       'where pages past the end are skipped, the last one is too when it is not full',
       [('tma_tile_load/kernel.cu', 'max(0, valid + share.page_rows - 1)', 'max(0, valid)')], 'values',
       'v_f16_b32_page64_skip')
mutant('tma_tile_load_pair_first', 'tma_tile_load_plain', "the second of two blocks stages the first one's half",
       [('tma_tile_load/kernel.cu', 'tile + static_cast<int>(blockIdx.x) * share.rows;', 'tile;')], 'values',
       'k_bf16_b128_page16_pair')
mutant('tma_tile_load_first_part_again', 'tma_tile_load_plain', 'every part of a tile of V is the first',
       [('tma_tile_load/kernel.cu', 'share.first = tile + p.part * share.rows;', 'share.first = tile;')], 'values',
       'v_bf16_b128_page16_parts_fill')
mutant('tma_tile_load_slot_forgotten', 'tma_tile_load_plain', 'tiles below a page begin where it does',
       [('tma_tile_load/kernel.cu', 'at.slot = token - page * cache.page_size;', 'at.slot = 0;')], 'values',
       'k_f32_none_page128_below')

# --- gather4_tile_load -----------------------------------------------------------------------------------------------

mutant('gather4_tile_load_no_wait', 'gather4_tile_load', 'the tile is read without a wait for the copies',
       [('gather4_tile_load/kernel.cu', 'mbarrier_wait(full, 0);', '')], 'RACE read-after-write',
       'bf16_b128_page16_tiny_loads')
mutant('gather4_tile_load_no_proxy_fence', 'gather4_tile_load',
       'copies are begun without a fence behind ordinary stores to the same bytes',
       [('gather4_tile_load/kernel.cu',
         'fence_proxy_async();  // each thread, for what it stored: the copies come after', '')], 'PROXY_FENCE',
       'bf16_b128_page16_tiny_loads')
mutant('gather4_tile_load_hole_is_row_0', 'gather4_tile_load', 'an index below 0 brings row 0, not zeros',
       [('gather4_tile_load/kernel.cu', 'if (encoded < 0) return encoded;', 'if (encoded < 0) return 0;')], 'values',
       'bf16_b128_page16_tiny_loads')
mutant('gather4_tile_load_past_the_list', 'gather4_tile_load', 'entries behind the end of a list are read',
       [('gather4_tile_load/kernel.cu', 'list[min(first + 4 * four + i, last)]', 'list[first + 4 * four + i]')],
       'OUT_OF_BOUNDS', 'bf16_b128_page16_latent_loads')
mutant('gather4_tile_load_group_stride', 'gather4_tile_load', 'groups of columns stand one four apart, not one tile',
       [('gather4_tile_load/kernel.cu', '(group * p.tile_rows + 4 * four)', '(group * 4 + 4 * four)')], 'values',
       'bf16_b128_page16_latent_loads')
mutant('gather4_tile_load_first_count', 'gather4_tile_load', "the first list's length is that of all",
       [('gather4_tile_load/kernel.cu', 'max(p.counts[blockIdx.y], 1)', 'max(p.counts[0], 1)')], 'values',
       'bf16_b128_page16_latent_loads')

# --- lds_stage -------------------------------------------------------------------------------------------------------

mutant('lds_stage_no_barrier_before_read', 'lds_stage_a_k',
       "a stage is read when the own copies are there, without the others'",
       [('lds_stage/kernel.cu', "__syncthreads();  // the copies of all threads have landed", '')],
       'RACE read-after-write', 'a_k_amd')
mutant('lds_stage_no_barrier_before_refill', 'lds_stage_a_k', 'a stage is filled again while others still read it',
       [('lds_stage/kernel.cu',
         '__syncthreads();  // all reads of the stage are complete: it may be overwritten', '')],
       'RACE write-after-read', 'a_k_nv')
mutant('lds_stage_no_empty_group', 'lds_stage_a_k',
       'behind the last step no group is committed, so that its own is not waited for',
       [('lds_stage/kernel.cu', 'if (step + 1 < steps) load_step<kS>(p, step + 1);\n    cp_async_commit();',
         'if (step + 1 < steps) { load_step<kS>(p, step + 1); cp_async_commit(); }')], 'RACE read-after-write',
       'a_k_amd')
mutant('lds_stage_swizzle_on_elements', 'lds_stage_a_k', "the way out permutes elements' indices instead of vectors'",
       [('lds_stage/kernel.cu', 'swizzled(p, element / S::kVector) * 16 + element % S::kVector * S::kSize',
         'swizzled(p, element) * S::kSize & ~15')], 'values', 'a_k_amd')
mutant('lds_stage_one_key_too_many', 'lds_stage_a_v', 'the key behind the last is staged, not zeros',
       [('lds_stage/kernel.cu', 'const bool valid = key < valid_rows;', 'const bool valid = key <= valid_rows;')],
       'values', 'a_v_amd')
mutant('lds_stage_hnd', 'lds_stage_a_v', 'heads are taken for outer, tokens for inner: NHD read as HND',
       [('lds_stage/kernel.cu', 'slot * p.cache.token_stride + p.head * p.cache.head_size',
         'slot * p.cache.head_size + p.head * p.cache.page_size * p.cache.head_size')], 'values', 'a_v_amd')
mutant('lds_stage_no_swizzle_out', 'lds_stage_a_k', 'the way out knows no swizzle',
       [('lds_stage/kernel.cu', 'return swizzled(p, element / S::kVector) * 16', 'return element / S::kVector * 16')],
       'values', 'a_k_amd')

# --- paged_decode ----------------------------------------------------------------------------------------------------

ATTEND, LOAD, TILE = 'paged_decode/attend.cuh', 'paged_decode/load.cuh', 'paged_decode/tile.cuh'
COMBINE, ANY = 'paged_decode/combine.cuh', 'paged_decode/attend_any.cuh'


def decode(name, mistake, edits, fails, *cases, base='bf16'):
    mutant(f'paged_decode_{name}', f'paged_decode_{base}', mistake, edits, fails, *cases)


decode('last_dropped', 'the last key of a sequence is not looked at',
       [(ATTEND, 'min(p.lengths[sequence], begin', 'min(p.lengths[sequence] - (p.lengths[sequence] > 1), begin')],
       'values', 'bf16_page16_gqa4', 'bf16_page1_gqa3')
decode('one_too_many', 'the key behind the last is looked at',
       [(ATTEND, 'lane / 4 + 8 * r < valid ?', 'lane / 4 + 8 * r <= valid ?')], 'values', 'bf16_page16_gqa4')
decode('stale_last_page',
       'where the last page is not full its table entry is not read: the block of the tile before is taken',
       [(LOAD, 'if (has_box && first + row < keys.end) block',
         'if (has_box && (first + row + p.box_rows <= keys.end || first == keys.begin)) block')], 'values',
       'bf16_page16_gqa4')
decode('zero_last_page', 'where the last page is not full its keys are zeros',
       [(LOAD, 'static_cast<int>(block), full);',
         'row + p.box_rows <= keys_here ? static_cast<int>(block) : p.k.blocks, full);')], 'values', 'bf16_page16_gqa4')
decode('v_pages_swapped', 'adjacent pages of V are swapped',
       [(LOAD, 'block = places.block(first + row);',
         'block = places.block(is_value && first + (row ^ p.box_rows) < keys.end ? first + (row ^ '
         'p.box_rows) : first + row);')], 'values', 'bf16_page16_ring')
decode('v_rows_swapped', 'V of every other key changes places with its neighbour',
       [(TILE, 'chunk(first + lane % 8 + lane / 16 * 8,', 'chunk(first + (lane % 8 ^ 1) + lane / 16 * 8,')], 'values',
       'bf16_page16_ring')
decode('k_and_v_swapped', "K's map fetches V and V's map K",
       [(LOAD, 'is_value ? &p.v_map : &p.k_map', 'is_value ? &p.k_map : &p.v_map')], 'values', 'bf16_page16_gqa4')
decode('kv_head_modulo', 'KV head of query head h: h % KV heads, not h / group',
       [(ATTEND, 'produce_by_tensor_copies<T, kHead, kOnePage>(p, ring, keys, head);',
         'produce_by_tensor_copies<T, kHead, kOnePage>(p, ring, keys, first_head % p.k.heads);')], 'values',
       'bf16_page16_gqa4')
decode('scale_one_percent', 'scores are 1 % too large',
       [(ATTEND, 'k_scale[2] = {scale, scale}', 'k_scale[2] = {scale * 1.01f, scale * 1.01f}')], 'values',
       'bf16_page16_ring')
decode('scale_one_over_d', 'scores are divided by the head size, not by its root',
       [(ATTEND, 'k_scale[2] = {scale, scale}', 'k_scale[2] = {scale * rsqrtf(kHead), scale * rsqrtf(kHead)}')],
       'values', 'bf16_page16_gqa4')
decode('exp_base_two', 'powers of two of scores that are meant for powers of e',
       [(ATTEND, 'k_scale[2] = {scale, scale}', 'k_scale[2] = {scale * 0.6931472f, scale * 0.6931472f}')], 'values',
       'bf16_page16_gqa4')
decode('lse_base_two', 'the logarithm of the sum is left in base two',
       [(COMBINE, '(most + log2_approx(sum)) * kLn2', 'most + log2_approx(sum)')], 'values', 'bf16_page16_gqa4')
decode('combine_without_maximum', 'runs are weighted by powers of their logarithms without the largest taken off',
       [(COMBINE, 'exp2_approx(p.partial_lse[mine * rows + row] - base)',
         'exp2_approx(p.partial_lse[mine * rows + row])')], 'values', 'bf16_page16_planned')
decode('combine_without_any_maximum', 'weights and logarithms of runs without a largest, which overflows only',
       [(COMBINE, 'const float base = most == -INFINITY ? 0 : most;', 'const float base = 0;'),
        (COMBINE, '(most + log2_approx(sum)) * kLn2', 'log2_approx(sum) * kLn2')], 'values', 'bf16_page16_sharp')
decode('softmax_without_maximum', 'powers of two of scores as they are, without the largest taken off',
       [(ATTEND, 'most = fmaxf(most, state.m[n][i]);',
         'most = most == -INFINITY && state.m[n][i] == -INFINITY ? -INFINITY : 0;')], 'values', 'bf16_page16_sharp')
decode('merge_without_maximum',
       'outputs of the four warps are added up by weights that take the first warp for the largest',
       [('paged_decode/merge.cuh', 'most = fmaxf(most, space.maxima[w * kRows + row]);', ';')], 'values',
       'bf16_page16_sharp')
decode('combine_unweighted', 'all runs of keys count alike',
       [(COMBINE, 'exp2_approx(p.partial_lse[mine * rows + row] - base)',
         '(p.partial_lse[mine * rows + row] == -INFINITY ? 0.0f : 1.0f)')], 'values', 'bf16_page16_planned')
decode('no_wait_full', 'a tile is read without a wait for its copies',
       [(ATTEND, 'mbarrier_wait(&ring.full[turn.stage], turn.parity);', '')], 'RACE read-after-write',
       'bf16_page16_gqa4')
decode('no_wait_empty', 'a stage is filled again without a wait for those who read it',
       [(LOAD, 'if (tile >= ring.stages) mbarrier_wait(&ring.empty[turn.stage], turn.parity ^ 1);\n    const int '
         'keys_here', 'const int keys_here')], 'MBAR_UNDERFLOW', 'bf16_page16_ring')
decode('wrong_parity', "the ring's second round waits for the phase of the first",
       [(LOAD, 'stage = 0, parity ^= 1;', 'stage = 0;')], 'MBAR_UNDERFLOW', 'bf16_page16_ring')
decode('expect_too_small', 'the barrier is told of the bytes of K alone',
       [(LOAD, 'boxes * p.box_rows * 2 * Tile::kHeadBytes', 'boxes * p.box_rows * Tile::kHeadBytes')],
       'RACE read-after-write', 'bf16_page16_gqa4')
decode('no_warp_barrier', 'one lane gives a stage back while others of its warp may still read it',
       [(ATTEND, '__syncwarp();  // all lanes have read', '')], 'RACE write-after-read', 'bf16_page16_ring')
decode('no_merge_barrier', "a warp's output goes over tiles that others still read",
       [(ATTEND, 'named_barrier_sync(1, 32 * kDecodeConsumers);  // all reads of the ring are complete: it is '
         'reused for outputs', '')], 'RACE read-after-write', 'bf16_page16_ring')
decode('arrive_before_copies', 'a thread arrives when it has begun its copies, not when they are there',
       [(LOAD, 'cp_async_arrive(full);\n    look_up(token + kDecodeTile);\n  }\n  cp_async_wait<0>();',
         'mbarrier_arrive(full);\n    look_up(token + kDecodeTile);\n  }\n  cp_async_wait<0>();')],
       'RACE read-after-write', 'bf16_page4_ring')
decode('layer_stride', 'a block is taken for one layer of K alone: what other layers and V take of it is forgotten',
       [('common/paged_cache.cuh', 'static_cast<int64_t>(block) * cache.block_stride +',
         'static_cast<int64_t>(block) * cache.page_size * cache.heads * cache.head_size +')], 'values',
       'bf16_page1_gqa3')
decode('hnd', 'heads are taken for outer, tokens for inner: NHD read as HND',
       [(LOAD, 'static_cast<const T*>(p.k.data) + head * kHead;',
         'static_cast<const T*>(p.k.data) + head * p.k.page_size * kHead;'),
        (LOAD, 'k + row_offset(p.k, key_block, key_slot)', 'k + row_offset(p.k, key_block, 0) + key_slot * kHead')],
       'values', 'bf16_padded_rows')
decode('scale_of_k_for_v', "V is multiplied by K's scales",
       [(ATTEND, 'scales[kDecodeTile + first + lane / 4 + 8 * r]', 'scales[first + lane / 4 + 8 * r]')], 'values',
       'e4m3_page1_d64', base='e4m3')
decode('two_heads_swapped', 'query heads 8 .. 15 take the scores of 0 .. 7',
       [(ATTEND, 'Product::mma(s[1][step % 2], a[i], q[step][1][0], q[step][1][1]);',
         'Product::mma(s[1][step % 2], a[i], q[step][0][0], q[step][0][1]);')], 'values', 'bf16_page16_mqa40')
decode('hole_is_block_0', 'a page that was never assigned is read as block 0',
       [(LOAD, 'const bool there = token < keys.end && is_assigned(p.k, block);\n    const uint32_t slot',
         'const bool there = token < keys.end;\n    const uint32_t slot'),
        (LOAD, 'found = there ? block : 0;', 'found = is_assigned(p.k, block) && there ? block : 0;')], 'values',
       'bf16_page8_hole')
decode('v_not_masked', "V's rows behind the last key are multiplied by weights of 0",
       [(ATTEND, 'a[i][0] &= mask[0], a[i][1] &= mask[0], a[i][2] &= mask[1], a[i][3] &= mask[1];', '')], 'values',
       'bf16_page16_gqa4')
decode('heads_of_first_cta', 'the second CTA of a KV head takes the heads of the first',
       [(ATTEND, 'first_head = head * p.group + first_row;', 'first_head = head * p.group;')], 'UNINITIALIZED',
       'bf16_page16_mqa40')
decode('run_begins_late', 'runs after the first begin 16 keys late, and later ones later still',
       [(ATTEND, 'begin = blockIdx.y * static_cast<uint32_t>(p.keys_per_split);',
         'begin = blockIdx.y * static_cast<uint32_t>(p.keys_per_split) + blockIdx.y * 16;')], 'values',
       'bf16_page16_planned')
decode('sum_not_scaled', 'a new maximum does not scale what was summed',
       [(ATTEND, 'state.l[n][i] = state.l[n][i] * keep[n][i] + x[0][i] + x[1][i];',
         'state.l[n][i] = state.l[n][i] + x[0][i] + x[1][i];')], 'values', 'bf16_page16_ring')
decode('output_not_scaled', 'a new maximum does not scale the output so far',
       [(ATTEND, 'state.o[block][n][e] *= keep[n][e % 2];', 'state.o[block][n][e] *= 1;')], 'values',
       'bf16_page16_ring')

decode('any_window_ignored', 'keys before the window are looked at',
       [(ANY, 'p.firsts == nullptr ? 0 : p.firsts[sequence]', '0')], 'values', 'bf16_page3_d256_cap_window',
       base='any_bf16')
decode('any_window_of_first_run', 'runs begin with the sequence, and only the first of them with the window',
       [(ANY, 'const uint32_t begin = from + blockIdx.y', 'const uint32_t begin = (blockIdx.y > 0 ? 0 : from) + blockIdx.y')],
       'values', 'bf16_page3_d256_cap_window', base='any_bf16')
decode('any_cap_not_scaled', 'the soft cap is taken of the product, not of the score',
       [(ANY, 'tanhf(score * p.cap_scale)', 'tanhf(score / p.cap_log2)')], 'values', 'bf16_page3_d256_cap_window',
       base='any_bf16')
decode('any_alibi_of_kv_head', 'the first query head of a group gives the slope of all',
       [(ANY, 'p.slopes_log2[first_head + row]', 'p.slopes_log2[first_head]')], 'values', 'bf16_page16_alibi_sinks',
       base='any_bf16')
decode('sink_of_every_run', 'the sink joins the sum as often as there are runs',
       [(COMBINE, 'float sum = exp2_approx(sink - base);', 'float sum = p.splits * exp2_approx(sink - base);')],
       'values', 'bf16_page16_alibi_sinks', base='any_bf16')
decode('any_lanes_not_scaled', 'outputs of the lanes of other keys are added without their weight',
       [(ANY, 'o[row][d] = o[row][d] * weight + __shfl', 'o[row][d] = o[row][d] + __shfl')],
       'values', 'bf16_page16_d32', base='any_bf16')
decode('any_scale_of_first_granule', 'every element of a head has the first scale of the head',
       [(ANY, 'scale_offset(cache, block, slot, head, dim)];', 'scale_offset(cache, block, slot, head)];')], 'values',
       'e4m3_page16_granule64', base='any_e4m3')
decode('any_granule_of_lane', "a lane's first element gives the scale of all eight",
       [(ANY, 'scale_offset(cache, block, slot, head, dim + d)', 'scale_offset(cache, block, slot, head, dim)')],
       'values', 'e4m3_page7_d96_granule20', base='any_e4m3')

# --- continuous_decode -----------------------------------------------------------------------------------------------

mutant('continuous_decode_table_skipped', 'continuous_decode_bf16', "sequence b's block is taken for block b",
       [(LOAD, 'only(kOnePage ? block_of_page(c, s, 0) : 0)', 'only(s)')], 'values', 'bf16_demo')
mutant('continuous_decode_one_too_many', 'continuous_decode_bf16', 'the key behind the last is looked at',
       [(ATTEND, 'lane / 4 + 8 * r < valid ?', 'lane / 4 + 8 * r <= valid ?')], 'values', 'bf16_demo')
mutant('continuous_decode_no_wait_full', 'continuous_decode_bf16', 'a tile is read without a wait for its copies',
       [(ATTEND, 'mbarrier_wait(&ring.full[turn.stage], turn.parity);', '')], 'RACE read-after-write', 'bf16_demo')
mutant('continuous_decode_k_and_v_swapped', 'continuous_decode_f32', 'K is read where V is and V where K is',
       [(ANY, 'load_element_dims<T>(key, p.k,', 'load_element_dims<T>(key, p.v,'),
        (ANY, 'load_element_dims<T>(value, p.v,', 'load_element_dims<T>(value, p.k,')], 'values', 'f32_s40')
mutant('continuous_decode_no_barrier', 'continuous_decode_f32',
       'outputs of the warps are added up before all are there',
       [(ANY, '__syncthreads();\n  write_merged', 'write_merged')], 'RACE read-after-write',
       'f32_s40')
mutant('continuous_decode_scale_one_percent', 'continuous_decode_f32', 'scores are 1 % too large',
       [(ANY, 'score * p.scale_log2;', 'score * p.scale_log2 * 1.01f;')], 'values',
       'f32_s40')

mutant('continuous_decode_softmax_without_maximum', 'continuous_decode_bf16',
       'powers of two of scores as they are, without the largest taken off',
       [(ATTEND, 'most = fmaxf(most, state.m[n][i]);',
         'most = most == -INFINITY && state.m[n][i] == -INFINITY ? -INFINITY : 0;')], 'values', 'bf16_s70_sharp')

# --- paged_prefill ---------------------------------------------------------------------------------------------------

PREFILL = 'paged_prefill/kernel.cu'


def prefill(name, mistake, edits, fails, *cases):
    mutant(f'paged_prefill_{name}', 'paged_prefill_bf16', mistake, [(PREFILL, *e) for e in edits], fails, *cases)


prefill('top_left_causal', 'the causal mask begins at the first key: queries do not stand behind what the cache had',
        [('w.position = w.keys - w.rows + w.first_row;', 'w.position = w.first_row;')], 'values', 'bf16_page16_demo',
        'bf16_page16_rows_without_keys')
prefill('sees_next_key', 'a query sees the key behind its own',
        [('min(w.keys, position + 1) : w.keys;', 'min(w.keys, position + 2) : w.keys;')], 'values', 'bf16_page16_demo')
prefill('window_one_less', 'the window has a key less on its left',
        [('position - p.window_left : 0;', 'position - p.window_left + 1 : 0;')], 'values', 'bf16_page16_window100',
        'bf16_page16_window200')
prefill('kv_head_modulo', 'KV head of query head h: h % KV heads, not h / group',
        [('w.head / (p.query_heads / p.cache.heads)', 'w.head % p.cache.heads')], 'values', 'bf16_page16_no_mask')
prefill('scale_one_percent', 'scores are 1 % too large',
        [('kLog2e : p.scale * kLog2e;', 'kLog2e : p.scale * (1.01f * kLog2e);')], 'values', 'bf16_page16_no_mask')
prefill('softmax_without_maximum', 'powers of two of scores as they are, without the largest taken off',
        [('most = row_max(most);', 'most = row_max(most);\n      most = most == -INFINITY ? most : 0;')], 'values',
        'bf16_page16_sharp')
prefill('zero_last_page', 'where the last page is not full its keys are zeros',
        [('const int block = key < w.keys ?', 'const int block = key + box_rows <= w.keys ?')], 'values',
        'bf16_page16_demo')
prefill('v_not_zeroed', "V's rows past the end of a sequence keep what they held",
        [('store_chunk(chunk, Chunk<16>{});', '')], 'values', 'bf16_page16_demo')
prefill('lse_base_two', 'the logarithm of the sum is left in base two',
        [('(soft.max[r] * soft.factor + log2_approx(total)) * kLn2', 'soft.max[r] * soft.factor + log2_approx(total)')],
        'values', 'bf16_page16_demo')
prefill('no_proxy_fence', "V's rows are zeroed without a fence before the products read them",
        [('fence_proxy_async();  // the products read what was stored here', '')], 'PROXY_FENCE', 'bf16_page16_demo')
prefill('no_warp_barrier', 'V is handed on by one lane while others still zero its rows',
        [('__syncwarp();\n    if (lane == 0) mbarrier_arrive(&b.v_full[stage]);',
          'if (lane == 0) mbarrier_arrive(&b.v_full[stage]);')], 'RACE read-after-write', 'bf16_page16_demo')
prefill('product_not_waited', 'scores are read while their product is still under way',
        [('wgmma_wait<1>();', '')], 'REG_IN_FLIGHT', 'bf16_page64_many_tiles')
prefill('given_back_too_early', 'a stage of V is given back before the product has read it',
        [('soft.take(s, tile, tile < clear_from || tile >= clear_to, shrink);\n    wgmma_wait<0>();\n    '
          'keep(o);\n    arrive(&b.v_empty[before]);',
          'arrive(&b.v_empty[before]);\n    soft.take(s, tile, tile < clear_from || tile >= clear_to, '
          'shrink);\n    wgmma_wait<0>();\n    keep(o);')], 'RACE write-after-read', 'bf16_page64_many_tiles')
prefill('wrong_parity', 'the fetching warp waits for the readers of a round that has not begun',
        [('mbarrier_wait(&b.k_empty[stage], round ^ 1);', 'mbarrier_wait(&b.k_empty[stage], round);')], 'DEADLOCK',
        'bf16_page16_demo')
prefill('causal_edge_unmasked', 'tiles that a row sees in part are taken as whole',
        [('p.causal ? min(w.keys, top + 1) : w.keys', 'p.causal ? min(w.keys, bottom + 1) : w.keys')], 'values',
        'bf16_page128_page_edges')
prefill('window_edge_unmasked', 'tiles that the window cuts are taken as whole',
        [('(max(0, bottom - p.window_left) + kKeys - 1) / kKeys', 'max(0, top - p.window_left) / kKeys')], 'values',
        'bf16_page16_window200')
prefill('output_not_scaled', 'a new maximum does not scale the output so far',
        [('o[j] *= shrink[j / 2 % 2];', 'o[j] *= 1;')], 'values', 'bf16_page64_many_tiles')
prefill('expect_too_small', 'the barrier of V is told of half the bytes',
        [('if (lane == 0) mbarrier_arrive_expect_tx(barrier, w.kTileBytes);',
          'if (lane == 0) mbarrier_arrive_expect_tx(barrier, w.kTileBytes / 2);')], 'RACE read-after-write',
        'bf16_page64_many_tiles')

# --- mla_decode ------------------------------------------------------------------------------------------------------

MLA = 'mla_decode/kernel.cu'


def mla(name, mistake, edits, fails, *cases, base='bf16'):
    mutant(f'mla_decode_{name}', f'mla_decode_{base}', mistake, [(MLA, *e) for e in edits], fails, *cases)


mla('last_dropped', 'the last key of a sequence is not looked at',
    [('if (key >= w.keys) return -1;', 'if (key >= w.keys - 1) return -1;')], 'values', 'bf16_page64_demo')
mla('hole_is_slot_0', 'an index below 0 brings the first token of the pool',
    [('if (index < 0) return -1;', 'if (index < 0) return 0;')], 'values', 'bf16_page1_sparse')
mla('maximum_of_own_keys', "a warpgroup weighs by the maximum of its own keys, without the other's",
    [('top[r] = fmaxf(top[r], s.max[1 - group][row + 8 * r]);', '')], 'values', 'bf16_page64_demo')
mla('softmax_without_maximum', 'powers of two of scores as they are, without the largest taken off',
    [('const float shift = top[r]', 'top[r] = top[r] == -INFINITY ? top[r] : 0;\n      const float shift = top[r]')],
    'values', 'bf16_page16_sharp')
mla('scale_not_of_scores', "scores are not multiplied by their keys' scales",
    [('x[j] *= j % 2 == 0 ? scales[i].x : scales[i].y;', ';')], 'values', 'e4m3_page64_tile_and_one', base='e4m3')
mla('scale_not_of_weights', "values are not multiplied by their keys' scales",
    [('kScaled ? pack_bf16(a * scales[j / 4].x, b * scales[j / 4].y) : pack_bf16(a, b);', 'pack_bf16(a, b);')],
    'values', 'e4m3_page64_tile_and_one', base='e4m3')
mla('scale_in_the_sum', 'the sum has the weights times the scales',
    [('total += a + b;', 'total += kScaled ? a * scales[j / 4].x + b * scales[j / 4].y : a + b;')], 'values',
    'e4m3_page64_tile_and_one', base='e4m3')
mla('scale_of_next_tile', 'scales are those of the tile that is looked up, one ahead',
    [('rows = next, scale = next_scale;', 'rows = next;'),
     ('next = locate(p, w, w.first + ahead / 4 + 1, kScaled ? &next_scale : nullptr);',
      'next = locate(p, w, w.first + ahead / 4 + 1, kScaled ? &scale : nullptr);')], 'values',
    'e4m3_page16_heads128_ladder', base='e4m3')
mla('combine_without_any_maximum', 'weights and logarithms of splits without a largest, which overflows only',
    [('float most = -INFINITY;\n  for (int i = 0; i < p.splits; ++i) most = fmaxf(most, p.part_lse[first + '
      'static_cast<int64_t>(i) * p.query_heads]);', 'const float most = 0;')], 'values', 'bf16_page16_sharp')
mla('no_weights_barrier', 'values are weighed before the other warpgroup has stored its weights',
    [('named_barrier_sync(kWeights, kConsumers);', '')], 'RACE read-after-write', 'bf16_page64_demo')
mla('no_proxy_fence', 'products read rows that threads stored, without a fence',
    [('fence_proxy_async();  // threads stored the rows; products read them', '')], 'PROXY_FENCE', 'bf16_page64_demo')
mla('no_wait_empty', 'a stage is filled again without a wait for those who read it',
    [('mbarrier_wait(&s.empty[stage], (i / kStages & 1) ^ 1);\n    tell_valid(rows >= 0, stage);\n    ' 'fetch_bf16',
      'tell_valid(rows >= 0, stage);\n    fetch_bf16')], 'RACE read-after-write', 'bf16_page256_six_tiles')
mla('combine_unweighted', 'all splits count alike',
    [('const float weight = exp2_approx(lse - most);', 'const float weight = 1;')], 'values',
    'bf16_page128_eight_splits')
mla('scales_swapped', "adjacent granules of a token have each other's scale",
    [('__uint_as_float(four.words[g])', '__uint_as_float(four.words[g ^ 1])')], 'values', 'fp8_page1_heads64',
    base='fp8')
mla('arrive_before_stores', 'a thread says its rows are there before it has stored them',
    [('ring[u].store(s.keys[stage], step % 4);\n      if (step % 4 == 3) mbarrier_arrive(&s.full[stage]);',
      'if (step % 4 == 3) mbarrier_arrive(&s.full[stage]);\n      ring[u].store(s.keys[stage], step % 4);')],
    'RACE read-after-write', 'fp8_page1_heads64', base='fp8')
mla('sum_of_own_keys', "a warpgroup divides by the sum of its own keys' weights",
    [('total = sum[r] + s.sum[1 - group][row + 8 * r]', 'total = sum[r]')], 'values', 'bf16_page64_demo')
mla('output_not_scaled', 'a new maximum does not scale the output so far',
    [('o[j] *= shrink[j / 2 % 2];', 'o[j] *= 1;')], 'values', 'bf16_page256_six_tiles')
mla('v_behind_rope', 'the values begin 64 elements late',
    [('n_major(keys + group * 4 * kPanelBytes', 'n_major(keys + kPanelBytes + group * 4 * kPanelBytes')], 'values',
    'bf16_page64_demo')
mla('hole_counts', 'keys that are not there count with a score of 0',
    [('if ((valid >> (8 * (j / 4) + lane % 4 * 2 + j % 2) & 1) == 0) x[j] = -INFINITY;', ';')], 'values',
    'bf16_page64_demo')
mla('no_maxima_barrier', "the other warpgroup's maxima are read before they are there",
    [('if (lane % 4 == 0) s.max[group][row + 8 * r] = top[r];\n    }\n    named_barrier_sync(kMaxima, ' 'kConsumers);',
      'if (lane % 4 == 0) s.max[group][row + 8 * r] = top[r];\n    }')], 'RACE read-after-write', 'bf16_page64_demo')
mla('rope_too_early', 'rope values are taken from 16 bytes before',
    [('load_chunk<16>(from + 528 + lane % 8 * 16)', 'load_chunk<16>(from + 512 + lane % 8 * 16)')], 'values',
    'fp8_page1_heads64', base='fp8')
