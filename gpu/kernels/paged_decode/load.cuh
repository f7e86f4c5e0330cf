// Producer warps: they load tiles into the ring and have no other work.
//
//   full[stage]   the tile has landed. Arrivals: one with the bytes of the tensor copies, or (and, if there are
//                 scales) one of each producer thread when its cp.async copies have landed
//   empty[stage]  the four consumer warps have read it
//
// Tensor copies: a tile of 64 keys is at most four boxes of 16 slots, of each half of K and of V; lane 4i + g loads
// box g of part i. bf16, head_size 128, page 16: 16 boxes of 2 KB. Boxes without a key of the sequence are not loaded,
// and their table entries not read. Slots past the end in the last box have any content: consumers mask them.
//
// cp.async: each of two warps has 32 keys of a tile; lane l looks up key l's page, then the lanes of a row copy 16
// bytes each, so that one request is two rows of 256 bytes. Keys past the end become zeros without a read.
#pragma once

#include "gpu/kernels/common/decode_params.h"
#include "gpu/kernels/common/paged_cache.cuh"
#include "gpu/kernels/paged_decode/tile.cuh"

namespace kvscope::gpu {

struct Ring {
  unsigned char* tiles;  // [stages][K, V]
  float* scales;         // [stages][K, V][64]
  uint64_t* full;
  uint64_t* empty;
  int stages;
};

// A stage, and the parity of the current phase of its barriers.
struct Turn {
  int stage = 0;
  uint32_t parity = 0;
  DEVICE void next(int stages) {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

// A CTA's run of keys.
struct Keys {
  uint32_t sequence, begin, end;
  DEVICE int tiles() const { return static_cast<int>((end - begin + kDecodeTile - 1) / kDecodeTile); }
};

// The place of a token. A continuous cache has one block per sequence, which is looked up once.
template <bool kOnePage>
struct Places {
  const PagedCache& cache;
  uint32_t sequence;
  uint32_t only;
  DEVICE Places(const PagedCache& c, uint32_t s) : cache(c), sequence(s), only(kOnePage ? block_of_page(c, s, 0) : 0) {}
  DEVICE uint32_t block(uint32_t token) const { return kOnePage ? only : block_of(cache, sequence, token); }
  DEVICE uint32_t slot(uint32_t token) const { return kOnePage ? token : slot_of(cache, token); }
};

// Loads the scales of 32 keys of a tile, one per lane, zero past the end. `block`: of this lane's key.
template <bool kOnePage>
DEVICE void copy_scales(const DecodeParams& p, const Places<kOnePage>& places, const Keys& keys, float* scales, int key,
                        uint32_t token, uint32_t block, int head) {
  const bool there = token < keys.end && is_assigned(p.k, block);
  const int64_t k_at = there ? scale_offset(p.k, block, places.slot(token), head) : 0;
  const int64_t v_at = there ? scale_offset(p.v, block, places.slot(token), head) : 0;
  cp_async<4>(scales + key, p.k.scales + k_at, there ? 4 : 0);
  cp_async<4>(scales + kDecodeTile + key, p.v.scales + v_at, there ? 4 : 0);
}

// Executed by one warp.
template <class T, int kHead, bool kOnePage>
DEVICE void produce_by_tensor_copies(const DecodeParams& p, const Ring& ring, const Keys& keys, int head) {
  using Tile = Tile<T, kHead>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Places<kOnePage> places(p.k, keys.sequence);
  const bool scaled = sizeof(T) == 1 && p.k.scales != nullptr;
  const bool is_value = lane / 4 >= Tile::kHalves;
  const int half = lane / 4 % Tile::kHalves, row = lane % 4 * p.box_rows;
  const bool has_box = lane < 8 * Tile::kHalves && row < kDecodeTile;
  const uint32_t to =
      shared_address(ring.tiles) + (is_value ? Tile::kBytes : 0) + half * Tile::kHalfBytes + row * Tile::kRowBytes;

  // Table entries of the next tile: the load is in flight while the warp waits for a free stage.
  uint32_t token = keys.begin, block = 0, scale_block[2] = {0, 0};
  const auto look_up = [&](uint32_t first) {
    if (has_box && first + row < keys.end) block = places.block(first + row);
    if (scaled)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (first + 32 * i + lane < keys.end) scale_block[i] = places.block(first + 32 * i + lane);
  };
  look_up(token);

  Turn turn;
  for (int tile = 0; tile < keys.tiles(); ++tile, token += kDecodeTile, turn.next(ring.stages)) {
    uint64_t* full = &ring.full[turn.stage];
    if (tile >= ring.stages) mbarrier_wait(&ring.empty[turn.stage], turn.parity ^ 1);
    const int keys_here = min(static_cast<int>(keys.end - token), kDecodeTile);
    const int boxes = (keys_here + p.box_rows - 1) / p.box_rows;
    if (lane == 0) mbarrier_arrive_expect_tx(full, boxes * p.box_rows * 2 * Tile::kHeadBytes);
    __syncwarp();
    if (has_box && row < keys_here) {
      tensor_load_4d(to + turn.stage * 2 * Tile::kBytes, is_value ? &p.v_map : &p.k_map,
                     half * (Tile::kRowBytes / static_cast<int>(sizeof(T))), head,
                     static_cast<int>(places.slot(token + row)), static_cast<int>(block), full);
    }
    if (scaled) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        copy_scales(p, places, keys, ring.scales + turn.stage * 2 * kDecodeTile, 32 * i + lane, token + 32 * i + lane,
                    scale_block[i], head);
      cp_async_arrive(full);
    }
    look_up(token + kDecodeTile);
  }
  if (scaled) cp_async_wait<0>();
}

// Executed by two warps; `warp` 0 or 1. Copies of kBytes: 16, or 4 if rows are aligned to only 4 bytes.
template <class T, int kHead, bool kOnePage, int kBytes>
DEVICE void produce_by_cp_async(const DecodeParams& p, const Ring& ring, const Keys& keys, int head, int warp) {
  using Tile = Tile<T, kHead>;
  constexpr int kCopies = Tile::kHeadBytes / kBytes;  // per key
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Places<kOnePage> places(p.k, keys.sequence);
  const bool scaled = sizeof(T) == 1 && p.k.scales != nullptr;
  const T* k = static_cast<const T*>(p.k.data) + head * kHead;
  const T* v = static_cast<const T*>(p.v.data) + head * kHead;

  uint32_t token = keys.begin + 32 * warp + lane, block = 0;
  const auto look_up = [&](uint32_t of) {
    if (of < keys.end) block = places.block(of);
  };
  look_up(token);

  Turn turn;
  for (int tile = 0; tile < keys.tiles(); ++tile, token += kDecodeTile, turn.next(ring.stages)) {
    uint64_t* full = &ring.full[turn.stage];
    const bool there = token < keys.end && is_assigned(p.k, block);
    const uint32_t slot = there ? places.slot(token) : 0, found = there ? block : 0;
    const uint32_t bytes = there ? kBytes : 0;
    if (tile >= ring.stages) mbarrier_wait(&ring.empty[turn.stage], turn.parity ^ 1);
    unsigned char* k_tile = ring.tiles + turn.stage * 2 * Tile::kBytes;
#pragma unroll 4
    for (int i = 0; i < kCopies; ++i) {
      const int from = (32 * i + lane) / kCopies, copy = (32 * i + lane) % kCopies;  // the key, and the part of its row
      const uint32_t key_block = __shfl_sync(0xffffffff, found, from), key_slot = __shfl_sync(0xffffffff, slot, from);
      const uint32_t valid = __shfl_sync(0xffffffff, bytes, from);
      const int at = copy * kBytes;  // [bytes] in the row
      unsigned char* to = k_tile + Tile::chunk(32 * warp + from, at / 16) + at % 16;
      const T* k_from = k + row_offset(p.k, key_block, key_slot) + at / static_cast<int>(sizeof(T));
      const T* v_from = v + row_offset(p.v, key_block, key_slot) + at / static_cast<int>(sizeof(T));
      if constexpr (kBytes == 16) {
        cp_async_16(to, k_from, valid);
        cp_async_16(to + Tile::kBytes, v_from, valid);
      } else {
        cp_async<kBytes>(to, k_from, valid);
        cp_async<kBytes>(to + Tile::kBytes, v_from, valid);
      }
    }
    if (scaled)
      copy_scales(p, places, keys, ring.scales + turn.stage * 2 * kDecodeTile, 32 * warp + lane, token, block, head);
    cp_async_arrive(full);
    look_up(token + kDecodeTile);
  }
  cp_async_wait<0>();
}

}  // namespace kvscope::gpu
