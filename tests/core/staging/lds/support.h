// The named configurations, caches whose elements identify their place, and a block of waves that stages a tile.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/staging/lds/kv_buffer.h"

namespace kvscope::test {

inline const Swizzle kWide{3, 0, 4};
inline const Swizzle kNarrow{3, 0, 3};

// "A K", "F-Vw", ...: the names of the configurations in every table.
inline KVBufferParams named(const std::string& id) {
  const auto bf16_tile = [](MmaShape mma, std::int64_t BN, std::int64_t WN, std::int64_t BK, std::int64_t depth) {
    return KVBufferParams{
        .dtype = DType::bf16, .mma_shape = mma, .BN = BN, .WN = WN, .BK = BK, .num_threads = 256, .depth = depth};
  };
  const auto fp8_tile = [&](MmaShape mma, std::int64_t BN, std::int64_t WN, std::int64_t BK, std::int64_t depth) {
    KVBufferParams p = bf16_tile(mma, BN, WN, BK, depth);
    p.dtype = DType::e4m3;
    return p;
  };
  const MmaShape wide16{32, 32, 16}, wide8{32, 32, 64}, narrow16{16, 16, 32}, narrow8{16, 16, 128};
  const auto with = [](KVBufferParams p, std::optional<Swizzle> swizzle, bool transpose) {
    p.swizzle = swizzle;
    p.transpose = transpose;
    return p;
  };
  const auto K = [&](const KVBufferParams& p, std::optional<Swizzle> swizzle) { return with(p, swizzle, true); };
  const auto V = [&](const KVBufferParams& p) { return with(p, std::nullopt, false); };
  const auto slice = [&](KVBufferParams p, std::int64_t depth, std::int64_t smem_depth) {
    p = V(p);
    p.cache_depth = p.depth;
    p.depth = depth;
    p.smem_depth = smem_depth;
    p.depth_slices = 4;
    return p;
  };

  if (id == "A K") return K(bf16_tile(wide16, 64, 32, 32, 128), kWide);
  if (id == "A V") return V(bf16_tile(wide16, 64, 32, 32, 128));
  if (id == "A8 K") return K(bf16_tile({32, 32, 8}, 64, 32, 32, 128), kWide);
  if (id == "A8 V") return V(bf16_tile({32, 32, 8}, 64, 32, 32, 128));
  if (id == "B K") return K(bf16_tile(wide16, 64, 64, 32, 128), kWide);
  if (id == "B V") return V(bf16_tile(wide16, 64, 64, 32, 128));
  if (id == "C K") return K(fp8_tile(wide8, 64, 64, 64, 128), kWide);
  if (id == "C V") return V(fp8_tile(wide8, 64, 64, 64, 128));
  if (id == "D K") return K(bf16_tile(wide16, 64, 64, 32, 256), kWide);
  if (id == "D V") return V(bf16_tile(wide16, 64, 64, 32, 256));
  if (id == "E K") {
    KVBufferParams p = K(bf16_tile(wide16, 128, 128, 32, 512), kWide);
    p.full_kv = false;
    return p;
  }
  if (id == "E2 K") return K(bf16_tile(wide16, 32, 32, 32, 512), kWide);
  if (id == "F K") return K(bf16_tile(narrow16, 128, 32, 32, 64), kNarrow);
  if (id == "F-Vd") return V(bf16_tile(narrow16, 128, 128, 32, 64));
  if (id == "F-Vw") return slice(bf16_tile(narrow16, 128, 128, 32, 64), 16, 32);
  if (id == "G K") return K(fp8_tile(narrow8, 128, 32, 128, 128), kNarrow);
  if (id == "G-Vd") return V(fp8_tile(narrow8, 128, 128, 128, 128));
  if (id == "G-Vw") return slice(fp8_tile(narrow8, 128, 128, 128, 128), 32, 128);
  if (id == "H K") {
    KVBufferParams p = K(fp8_tile(narrow8, 128, 32, 128, 576), kNarrow);
    p.bk_smem = 64;
    p.smem_depth = 576;
    return p;
  }
  if (id == "I K") return K(bf16_tile(wide16, 64, 64, 32, 64), kWide);
  ADD_FAILURE() << "no configuration " << id;
  return {};
}

// Raw bits of element (token, head, column).
using Pattern = std::function<std::uint32_t(std::int64_t, std::int64_t, std::int64_t)>;

inline std::uint32_t p16(std::int64_t key, std::int64_t, std::int64_t depth) {
  return static_cast<std::uint32_t>(key * 256 + depth) & 0xFFFFU;
}
inline std::uint32_t p16_of_512(std::int64_t key, std::int64_t, std::int64_t depth) {
  return static_cast<std::uint32_t>(key * 512 + depth) & 0xFFFFU;
}
inline std::uint32_t p8k(std::int64_t key, std::int64_t, std::int64_t) {
  return static_cast<std::uint32_t>(key) & 0xFFU;
}
inline std::uint32_t p8d(std::int64_t, std::int64_t, std::int64_t depth) {
  return static_cast<std::uint32_t>(depth) & 0xFFU;
}

// A continuous cache of one sequence.
struct TokenCache {
  std::vector<std::byte> pool;
  std::vector<std::uint32_t> lengths{0}, table{0};
  KVCacheStaticParams kv;
  AnyView<4> blocks;

  TokenCache(DType dtype, std::int64_t tokens, std::int64_t heads, std::int64_t depth, const Pattern& pattern)
      : kv{heads, depth, false} {
    const auto size = static_cast<std::size_t>(size_of(dtype));
    pool.resize(static_cast<std::size_t>(tokens * heads * depth) * size);
    std::size_t at = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t d = 0; d < depth; ++d, at += size) {
          const std::uint32_t value = pattern(t, h, d);
          for (std::size_t b = 0; b < size; ++b) pool[at + b] = static_cast<std::byte>(value >> (8 * b) & 0xFFU);
        }
      }
    }
    blocks = {pool.data(), dtype, {1, tokens, heads, depth}};
  }
  [[nodiscard]] ContinuousBatchingKVCache cache() const {
    return {kv, {.blocks = blocks, .cache_lengths = {lengths.data(), {1}}, .lookup_table = {table.data(), {1}}}};
  }
};

inline TokenCache cache_for(const KVBufferParams& p, const Pattern& pattern, std::int64_t tokens = 0) {
  return {p.dtype, tokens == 0 ? p.BN : tokens, p.kv_num_heads, p.cache_depth.value_or(p.depth), pattern};
}

// Every wave of a block over one region. `region` 0: as much as the buffer needs.
class Block {
 public:
  Block(const KVBufferParams& params, const TokenCache& tokens, std::int64_t end, std::int64_t head = 0)
      : config_(params),
        image_(config_.constants().region_bytes * params.depth_slices, std::byte{0xEE}),
        pending_(image_, config_.constants().waves) {
    for (std::int64_t w = 0; w < config_.constants().waves; ++w) {
      waves_.push_back(std::make_unique<KVBuffer>(config_, tokens.cache(), SeqIdx{0}, HeadIdx{head},
                                                  LdsRegion{&pending_, 0}, TokIdx{end}, WaveIdx{w}));
    }
  }
  // Another buffer over the block's region: a per-wave V.
  [[nodiscard]] std::unique_ptr<KVBuffer> over(const KVBufferParams& params, const TokenCache& tokens, WaveIdx wave) {
    return std::make_unique<KVBuffer>(KVBufferConfig(params), tokens.cache(), SeqIdx{0}, HeadIdx{0},
                                      LdsRegion{&pending_, 0}, TokIdx{0}, wave);
  }
  void wait() {
    for (std::int64_t w = 0; w < pending_.waves(); ++w) pending_.wait(WaveIdx{w}, 0);
  }
  void load(std::int64_t stage) {
    for (const auto& wave : waves_) wave->load_from_dram(StageIdx{stage});
    wait();
  }
  void load_block(std::int64_t stage, std::int64_t block) {
    for (const auto& wave : waves_) wave->load_block(StageIdx{stage}, block);
    wait();
  }
  // All waves' registers after load_from_shared.
  [[nodiscard]] std::vector<std::byte> registers(std::int64_t stage) {
    std::vector<std::byte> all;
    for (const auto& wave : waves_) {
      wave->load_from_shared(StageIdx{stage});
      all.insert(all.end(), wave->register_bytes().begin(), wave->register_bytes().end());
    }
    return all;
  }
  [[nodiscard]] KVBuffer& wave(std::size_t w) { return *waves_[w]; }
  [[nodiscard]] std::size_t waves() const { return waves_.size(); }
  [[nodiscard]] SharedImage& image() { return image_; }
  [[nodiscard]] PendingCopies& pending() { return pending_; }
  [[nodiscard]] const KVBufferConfig& config() const { return config_; }

 private:
  KVBufferConfig config_;
  SharedImage image_;
  PendingCopies pending_;
  std::vector<std::unique_ptr<KVBuffer>> waves_;
};

// Raw bits of a register.
inline std::uint32_t register_bits(KVBuffer& buffer, std::int64_t lane, std::int64_t row, std::int64_t e) {
  const AnyView<3> view = buffer.registers();
  std::uint32_t value = 0;
  std::memcpy(&value, view.at(lane, row, e), static_cast<std::size_t>(size_of(view.dtype)));
  return value;
}

// The message of the error that `call` throws; another type or none fails the test.
template <class Error, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace kvscope::test
