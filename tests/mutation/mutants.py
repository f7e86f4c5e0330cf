"""Single formulas, each made wrong in a way that somebody once got wrong: (file, what stands there, what is put there, the mistake).

What stands there must be found exactly once; runs of white space count as one blank, so that reformatting does not matter.
A mutant that computes the same for every legal input does not belong here: it cannot be killed.
"""

PAGED = "core/cache/paged_kv_cache.cpp"
ROWS = "core/cache/paged_row_indices.cpp"
POOL = "core/cache/block_pool.cpp"
ENGINE = "core/cache/paging_engine.cpp"
TMA = "core/cache/tma_tiles.cpp"
COORDS = "core/cache/tma_coords.cpp"
SPARSE = "core/cache/sparse_remap.cpp"
REFERENCE = "core/attention/reference.cpp"
LOOPS = "core/attention/reference_loops.h"
TILED = "core/attention/tiled.cpp"
MASK = "core/attention/mask.cpp"
MERGE = "core/attention/merge.cpp"
READER = "core/attention/row_reader.cpp"
BOUNDS = "core/attention/bounds.cpp"

MUTANTS = [
    # --- one layer's view of the pool ---
    ("core/cache/layer_view.cpp", "if (axis != 1 && axis != 2) {", "if (axis == 1 || axis == 2) continue; {",
     "strides that forget the slot and layer axes"),
    ("core/cache/layer_view.cpp", "(static_cast<std::int64_t>(slot) * pool.dim(2) + layer.value)",
     "(layer.value * pool.dim(1) + static_cast<std::int64_t>(slot))", "slot and layer axes swapped"),
    # --- rows and elements of a paged cache ---
    (PAGED, "static_cast<std::uint32_t>(stride) + static_cast<std::uint32_t>(slot)", "static_cast<std::uint32_t>(stride)",
     "a row that forgets its slot in the page"),
    (PAGED, "rows_per_block_ = tensors.blocks.stride(0) / (H * D)", "rows_per_block_ = params.page_size",
     "blocks as if no other layer lay between them"),
    (PAGED, "checked_mul(blocks().dim(0) - 1, rows_per_block_", "checked_mul(blocks().dim(0), rows_per_block_",
     "rows counted to the end of the last block's stride"),
    (PAGED, "column >= table.dim(1)) [[unlikely]] throw_token", "column > table.dim(1)) [[unlikely]] throw_token",
     "one column past the table accepted"),
    (PAGED, "floor_div(encoded, page_size()) * rows_per_block_", "encoded / page_size() * rows_per_block_",
     "-1 divided towards zero"),
    (PAGED, "floor_mod(encoded, page_size())", "encoded % page_size()", "-1 with a negative remainder"),
    (PAGED, "return {static_cast<std::int32_t>(place.slot), static_cast<std::int32_t>(place.block)};",
     "return {static_cast<std::int32_t>(place.block), static_cast<std::int32_t>(place.slot)};", "coordinates swapped"),
    (PAGED, "= *entries * stride + static_cast<std::uint32_t>(in_page)", "= *entries * stride",
     "a tile within a page begins at the page"),
    (PAGED, "rows[i] = entries[i] * stride;", "rows[i] = entries[0] * stride + static_cast<std::uint32_t>(i * page);",
     "pages of a tile as if their blocks were neighbours"),
    (PAGED, "(!plan.whole_pages && in_page + tile.BN > page)", "(!plan.whole_pages && in_page + tile.BN >= page)",
     "a tile that ends with its page refused"),
    (PAGED, "first + plan.num_pages > table.stride(0)", "first + plan.num_pages >= table.stride(0)",
     "a tile that ends with the table refused"),
    (PAGED, "width > kv_params().head_size - dim.value", "width > kv_params().head_size", "a vector past the head's end accepted"),
    (PAGED, "dim.value / quantization_granularity()) * size_of(view.dtype)",
     "dim.value % quantization_granularity()) * size_of(view.dtype)", "the scale of another granule"),
    (PAGED, "dim.value / granule != (dim.value + width - 1) / granule", "dim.value / granule != (dim.value + width) / granule",
     "a vector that ends with its granule refused"),
    (PAGED, "tile < 1 || page_size() % tile != 0", "tile < 1 || tile > page_size()", "a tile that does not divide the page accepted"),
    (PAGED, "place.slot / chunk * chunk", "place.slot", "a scale coordinate off its 16-byte chunk"),
    (PAGED, "locate(scales_lookup_table(), seq, tok); return RowIdx", "locate(lookup_table(), seq, tok); return RowIdx",
     "scales looked up in the values' table"),
    (PAGED, "if (place.block >= blocks().dim(0)) return drop(", "if (place.block > blocks().dim(0)) return drop(",
     "a write one block past the pool"),
    ("core/cache/paged_kv_cache.h", "return tensors_.max_cache_length == 0;", "return tensors_.max_seq_length == 0;",
     "an empty cache told by the new tokens"),
    # --- rows of a tile ---
    (ROWS, "largest_pow2_divisor(promised_pages)", "largest_pow2_divisor(plan.num_pages)", "whole reads whatever was promised"),
    (ROWS, "base_alignment.value_or(BN)", "base_alignment.value_or(page_size)", "a promise of a page where a tile is meant"),
    (ROWS, "offset % eff_page_ + sub_eff > eff_page_", "offset % eff_page_ + sub_eff >= eff_page_",
     "a part that ends with its page refused"),
    ("core/cache/paged_row_indices.h", "static_cast<std::uint32_t>(offset % eff_page_)", "static_cast<std::uint32_t>(offset)",
     "the place in the tile added to a page's row"),
    ("core/cache/paged_row_indices.h", "token += result.eff_page();", "token += 1;", "sub-tiles one token apart"),
    # --- the table ---
    ("core/cache/lookup_table.h", "return round_up(pages, 8) + 16;", "return round_up(pages, 8) + 8;", "too little padding for a wide read"),
    ("core/cache/lookup_table.cpp", 'narrow<std::uint32_t>(limits.blocks, "null page")',
     'narrow<std::uint32_t>(limits.blocks - 1, "null page")', "padding that points at a real block"),
    ("core/cache/lookup_table.cpp", "if (pages > limits.blocks) {", "if (pages >= limits.blocks) {", "a table for the whole pool refused"),
    # --- scalar functions ---
    ("core/cache/scalar_functions.cpp", "return page <= 0 || page >= tile ? tile : page;", "return page <= 0 ? tile : page;",
     "a sub-tile larger than the tile"),
    ("core/cache/scalar_functions.cpp", "&& q.head_size % q.BK == 0;", ";", "a fold over heads that do not divide"),
    ("core/cache/scalar_functions.cpp", "q.page_size >= q.box_rows", "q.page_size > q.box_rows", "a box of one whole page not folded"),
    # --- a continuous cache ---
    ("core/cache/continuous_kv_cache.cpp", "rows_per_block_ = view.stride(0) / (H * D);", "rows_per_block_ = view.dim(1);",
     "blocks as if no other layer lay between them"),
    ("core/cache/continuous_kv_cache.cpp", "return head.value * kv_params_.head_size;", "return head.value * kv_params_.num_heads;",
     "a column in units of heads"),
    # --- the block pool ---
    (POOL, "return fresh + (last_page_is_shared(pages) ? 1 : 0);", "return fresh;", "copy-on-write without a block for the copy"),
    (POOL, "if (needed > available()) return false;", "if (needed >= available()) return false;", "the last block never handed out"),
    (POOL, "--records_[from].refs;", "", "a copied page still counted for its first owner"),
    (POOL, "for (std::size_t p = pages.blocks.size(); p-- > 0;) {", "for (std::size_t p = 0; p < pages.blocks.size(); ++p) {",
     "the head of a prefix evicted before its tail"),
    (POOL, "static_cast<std::size_t>(ceil_div(pages.tokens, page_size_))", "static_cast<std::size_t>(pages.tokens / page_size_)",
     "a fork without its last, partly filled page"),
    (POOL, "block = lru_.head;", "block = lru_.tail;", "the most recently used block evicted"),
    # --- what a page is called ---
    ("core/cache/page_hash.cpp", "kSeed ^ make_u128(parent.hi, parent.lo)", "kSeed", "a page's name without what stands before it"),
    ("core/cache/page_hash.cpp", "return absorb(state, static_cast<std::uint64_t>(run.offset));", "return state;",
     "two parts of one text with one name"),
    ("core/cache/prefix_index.cpp", "if (from_home >= from_hole) {", "if (from_home > from_hole) {",
     "an entry in its own home never moved back"),
    # --- the engine ---
    (ENGINE, "std::max<std::int64_t>(r.generate_tokens - 1, 0)", "r.generate_tokens", "the last token stored, which is never an input"),
    (ENGINE, "(seq.known() - 1) / block_tokens", "seq.known() / block_tokens", "a prompt found whole, with nothing left to compute"),
    (ENGINE, "if (pool.available() < needed + watermark) {", "if (pool.available() < needed) {", "admission up to the last block"),
    (ENGINE, "std::clamp<std::int64_t>(seq.most_stored - before, 0, tokens)", "tokens", "every token counted as recomputed"),
    (ENGINE, "batch.push_back(BatchRow{s, before, tokens});", "batch.push_back(BatchRow{s, before + tokens, tokens});",
     "cache lengths after the step, not before"),
    (ENGINE, "scheduler.per_context_us * static_cast<double>(batch_context)", "scheduler.per_context_us * static_cast<double>(tokens)",
     "attention as cheap at the end of a context as at its start"),
    (ENGINE, 'narrow<std::uint32_t>(total, "context length")', 'narrow<std::uint32_t>(row.cache_length, "context length")',
     "the longest context without the new tokens"),
    # --- sparse indices ---
    (SPARSE, "block * page_size + logical % page_size", "block * page_size + logical", "a slot past its page"),
    (SPARSE, "if (block >= invalid) return kNothing;", "if (block > invalid) return kNothing;", "the null page taken for a block"),
    (SPARSE, "remap.offsets(seq + 1) <= row", "remap.offsets(seq + 1) < row", "the first row of a sequence given to the one before"),
    (SPARSE, "std::max<std::int64_t>(topk, 1) - 1", "std::max<std::int64_t>(topk, 1)", "one place past the list"),
    (SPARSE, "return encoded < 0 ? encoded : cache.get_tma_row(encoded);", "return cache.get_tma_row(encoded);",
     "'nothing' turned into a row"),
    # --- tensor maps ---
    (COORDS, "coordinate(BM - n), coordinate((row + n) * tile.heads + head.value)",
     "coordinate(n), coordinate((row + n) * tile.heads + head.value)", "a ragged box not moved back by the rows it lacks"),
    (COORDS, "coordinate((row + n) * tile.heads + head.value)", "coordinate(row * tile.heads + head.value)",
     "a ragged box that begins at its first row"),
    (COORDS, "return (group * height + four_rows * 4) * tile.box.fastest();", "return (group * height + four_rows) * tile.box.fastest();",
     "quads of rows written over each other"),
    (TMA, "tile.strides = {rows.depth, 8 * row, granularity, row, 1};", "tile.strides = {rows.depth, row, granularity, row, 1};",
     "groups of eight rows one row apart"),
    # --- masks ---
    (MASK, "? keys - queries + query : query;", "? query : query;", "new queries placed at the start of the context"),
    (MASK, "case MaskKind::causal: range.last = position + 1;", "case MaskKind::causal: range.last = position;",
     "a query that does not see itself"),
    (MASK, "position / options.chunk * options.chunk", "std::max<std::int64_t>(0, position - options.chunk + 1)",
     "a chunk taken for a window"),
    (MASK, "? 0 : position - left;", "? 0 : position - left + 1;", "a window one key too short on the left"),
    (MASK, "? keys : position + right + 1;", "? keys : position + right;", "a window one key too short on the right"),
    (MASK, "std::min(all.first, one.first)", "std::max(all.first, one.first)", "keys of the first query of a block never read"),
    # --- the reference ---
    (REFERENCE, "for (double& x : s) x *= scale;", "for (double& x : s) x *= scale * scale;", "the scale applied twice"),
    (REFERENCE, "x = cap * portable_tanh(x / cap);", "x = portable_tanh(x / cap);", "a soft cap of 1"),
    (REFERENCE, "static_cast<double>(first_key + static_cast<std::int64_t>(t) - position)",
     "static_cast<double>(position - first_key - static_cast<std::int64_t>(t))", "ALiBi that favours distant keys"),
    (REFERENCE, "if (sink) sum += portable_exp(p_.options.sinks[h] - largest);", "", "a sink that takes no weight"),
    (REFERENCE, "if (sink) largest = std::max(largest, p_.options.sinks[h]);", "", "a large sink that overflows"),
    (REFERENCE, "natural : natural * kLog2E);", "natural : natural / kLog2E);", "lse in base 2 converted the wrong way"),
    (REFERENCE, "canonical(sums[v_padded_ + d] / denominator)", "canonical(std::fabs(sums[d]) / denominator)",
     "A1 as |sum| where the sum of magnitudes is meant"),
    (REFERENCE, "std::sqrt(sums[2 * v_padded_ + d]) / denominator", "std::sqrt(sums[2 * v_padded_ + d] / denominator)",
     "A2 divided inside the root"),
    (REFERENCE, "magnitude = std::fabs(x) > magnitude ? std::fabs(x) : magnitude;", "magnitude = x > magnitude ? x : magnitude;",
     "smax of positive scores alone"),
    (REFERENCE, "lane[t % kLanes] += s[t];", "lane[0] += s[t];", "another order of summation, and so other bytes"),
    (LOOPS, "return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +", "return ((lane[0] + lane[2]) + (lane[4] + lane[6])) +",
     "another order of summation, and so other bytes"),
    (LOOPS, "sum[r][2] += x * x;", "sum[r][2] += y * y;", "A2 of the values without their weights"),
    (LOOPS, "fields >= 0x0f800000u ?", "fields > 0x0f800000u ?", "f16 infinity read as 65536"),
    (READER, "slot * rows_.token_stride + head * rows_.head_stride;", "slot * rows_.token_stride + 0 * head;",
     "every head reads head 0"),
    (READER, "std::int64_t slot = first % rows_.page_size;", "std::int64_t slot = 0;", "a run of keys that begins at its page"),
    (READER, "dim += rows_.granularity, scales += scale_bytes_)", "dim += rows_.granularity)", "the first scale for the whole head"),
    (READER, "rows_.scales_table != nullptr ? rows_.scales_table + sequence * scales_stride : table", "table",
     "scales looked up in the values' table"),
    # --- the tiled flow and merging ---
    (TILED, "state.sum *= shrink;", "", "a new largest score that rescales the output but not the sum"),
    (TILED, "state.sum = state.sum * shrink + std::exp(sink - largest);", "state.sum = state.sum + std::exp(sink - largest);",
     "a sink that does not rescale the sum"),
    (TILED, "if (first_split && !p_.options.sinks.empty())", "if (!p_.options.sinks.empty())", "a sink counted once a split"),
    (TILED, "s -= slope * static_cast<Real>(position - key);", "s += slope * static_cast<Real>(position - key);",
     "ALiBi that favours distant keys"),
    (TILED, "natural / std::log(Real{2})", "natural * std::log(Real{2})", "lse in base 2 converted the wrong way"),
    (MERGE, "portable_exp((lse - largest) * unit)", "portable_exp(lse - largest)", "base-2 weights taken as natural ones"),
    (MERGE, "(weight * o[d] + other_weight * other[d]) / sum", "(weight * o[d] + other_weight * other[d])", "merged without normalising"),
    (MERGE, "portable_log(sum) * (base == LseBase::two ? kLog2E : 1.0)", "portable_log(sum)", "base-2 lse with a natural logarithm added"),
    # --- bounds ---
    (BOUNDS, "unit * std::min(a1, 4.0 * a2)", "unit * std::max(a1, 4.0 * a2)", "the larger of two bounds"),
    (BOUNDS, "unit * std::fabs(o64) +", "0.0 * std::fabs(o64) +", "no room for rounding the output"),
]
