// Prints a row: K of one layer of a pool [block 5, k_or_v 2, layer 3, page_row 4, head 2, head_dim 8]. Token 5 is
// slot 1 of page 1, page 1 is block 2, and a block is 2 * 3 * 4 rows apart from the next: 2 * 24 + 1 = 49.
#include <cstdio>
#include <vector>

#include "core/cache/paged_kv_cache.h"
#include "core/golden/bundle/npy.h"

int main() {
  using namespace kvscope;
  std::vector<float> pool(5 * 2 * 3 * 4 * 2 * 8);
  std::vector<std::uint32_t> table{3, 2, 5, 5, 5, 5, 5, 5};
  const std::vector<std::uint32_t> cached{6};

  const AnyView<6> blocks(reinterpret_cast<std::byte*>(pool.data()), DType::f32, {5, 2, 3, 4, 2, 8});
  PagedLayerTensors tensors;
  tensors.blocks = layer_view(blocks, layer_view_layout("pool", blocks.extents, -1), KOrV::k, LayerIdx{1});
  tensors.cache_lengths = {cached.data(), {1}};
  tensors.lookup_table = {table.data(), {1, 8}};
  const PagedKVCache keys({.dtype = DType::f32, .kv_params = {.num_heads = 2, .head_size = 8}, .page_size = 4},
                          tensors);
  std::printf("token 5 of sequence 0 is row %u\n", keys.row_idx(SeqIdx{0}, TokIdx{5}).value);

  // Zip, npy and JSON are linked into the archives, not asked of a consumer.
  return golden::split_npy_name("k_bf16", DType::u16).name == "k" ? 0 : 1;
}
