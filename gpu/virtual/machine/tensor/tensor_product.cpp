// tcgen05.mma and cp as the tensor core performs them. Products are added in the order of k, in the machine's SumMode
// (op.h); products with block scales are exact, and each is added with one rounding.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "gpu/virtual/isa/sparse_metadata.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/tensor/detail/tensor_handlers.h"
#include "gpu/virtual/machine/tensor/detail/tensor_operands.h"
#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx {
namespace {

// Rows of A or columns of B of one CTA, from shared memory: element (mn, k) at to[mn * mn_step + k * k_step].
template <class T>
void read_shared(const Cta& cta, std::uint64_t descriptor, bool mn_major, ElementType type, int mns, int ks, T* to,
                 int mn_step, int k_step) {
  const int per = 8 * static_cast<int>(kWgmmaChunkBytes) / stored_bits(type);
  std::array<T, 32> numbers;
  for (const WgmmaChunk& chunk : tcgen05_chunks(descriptor, mn_major, stored_bits(type), mns, ks)) {
    decode_chunk(type, shared_at(cta, chunk.offset, kWgmmaChunkBytes), numbers.data());
    T* at = to + chunk.mn * mn_step + chunk.k * k_step;
    const int step = mn_major ? mn_step : k_step, left = (mn_major ? mns - chunk.mn : ks - chunk.k);
    for (int i = 0; i < std::min(per, left); ++i) at[i * step] = numbers[static_cast<std::size_t>(i)];
  }
}

// A of one CTA from tensor memory. `upper`: its copy in the upper lanes, of a pair with M 128.
template <class T>
void read_tensor(const Cta& cta, const TensorOp& t, const ProductParts& parts, bool upper, T* to) {
  const TensorAddress from = tensor_address(t.a_tensor);
  const int per = 32 / stored_bits(parts.p.a);
  for (int m = 0; m < parts.rows; ++m) {
    const int lane = cell_of(parts.a, m, 0, parts.a_cells).lane + (upper ? 64 : 0);
    const std::uint32_t* const cells = cta.tensor.row(from.lane + lane) + from.column;
    for (int c = 0; c < parts.a_cells; ++c)
      decode_cell(parts.p.a, cells[c], to + m * stored_columns(parts.p) + c * per);
  }
}

template <class T>
T number_of(std::uint32_t cell, Type d) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return static_cast<std::int32_t>(cell);
  } else {
    return d == Type::f16 ? float_of_f16_bits(static_cast<std::uint16_t>(cell)) : std::bit_cast<float>(cell);
  }
}
template <class T>
std::uint32_t cell_with(T number, Type d, std::uint32_t before) {
  if constexpr (std::is_same_v<T, std::int32_t>) {
    return static_cast<std::uint32_t>(number);
  } else {
    return d == Type::f16 ? (before & 0xffff0000) | f16_bits_of(number) : std::bit_cast<std::uint32_t>(number);
  }
}

// The scales of a row of A, or of a column of B: [scales].
void read_scales(const Cta& cta, std::uint32_t address, const TensorProduct& p, int byte, int row, double* to) {
  const TensorAddress from = tensor_address(address & 0x3fffffff);
  const std::uint32_t word = cta.tensor.row(row % 32)[from.column + row / 32];
  for (int s = 0; s < p.scales; ++s)
    to[s] = decode_scale(p.scale, static_cast<std::uint8_t>(word >> (8 * (byte + s)) & 0xff));
}

// d += (a scaled) (b scaled).
void multiply_scaled(const ProductParts& parts, const TensorOp& t, const Cta& cta, const MatrixProduct& product,
                     const float* a, const std::uint16_t* positions, const float* b, float* d) {
  const TensorProduct& p = parts.p;
  const auto all_scales = [&](std::uint32_t address, int byte, int rows) {
    std::vector<double> scales(static_cast<std::size_t>(rows * p.scales));
    for (int row = 0; row < rows; ++row) read_scales(cta, address, p, byte, row, scales.data() + row * p.scales);
    return scales;
  };
  const std::vector<double> of_a = all_scales(t.a_scales, p.a_scale_byte, parts.rows),
                            of_b = all_scales(t.b_scales, p.b_scale_byte, p.n);
  multiply_add_scaled(product, {p.k / p.scales, of_a.data(), of_b.data()}, a, positions, b, d);
}

// The columns of the stored elements of a sparse A, of one CTA: [rows][k / 2]. Metadata that PTX leaves undefined is
// reported; the product takes the elements that it names.
std::vector<std::uint16_t> positions_of(Launch& launch, const Cta& cta, const TensorOp& t, const ProductParts& parts) {
  const TensorProduct& p = parts.p;
  const int bits = stored_bits(p.a), size = metadata_chunk(bits), columns = stored_columns(p);
  const TensorAddress from = tensor_address(t.metadata);
  std::vector<std::uint16_t> out(static_cast<std::size_t>(parts.rows * columns));
  bool told = false;
  for (int row = 0; row < parts.rows; ++row) {
    for (int chunk = 0; chunk < p.k / size; ++chunk) {
      const MetadataCell at = metadata_cell(parts, row, chunk);
      const std::uint32_t four = cta.tensor.row(from.lane + at.lane)[from.column + at.column] >> at.bit & 0xf;
      if (!told && !is_valid_tensor_metadata(bits, four)) {
        told = true;
        engine_fault(
            launch, cta, t.op, ReportKind::product_arg,
            fmt::format("metadata 0b{:04b} of row {}, columns {} to {} of A, in bits {} to {} of lane {}, "
                        "column {}: expected {}",
                        four, row, chunk * size, chunk * size + size - 1, at.bit, at.bit + 3, from.lane + at.lane,
                        from.column + at.column,
                        bits == 32 ? "0b0100 or 0b1110" : "two different indices, the lower one in the lower bits"),
            "the result is undefined");
      }
      metadata_columns(bits, four, chunk, out.data() + row * columns + chunk * size / 2);
    }
  }
  return out;
}

bool is_kept(const TensorOp& t, int cta, int lane) {
  const int bit = 128 * cta + lane;
  return (t.kept[static_cast<std::size_t>(bit / 32)] >> (bit % 32) & 1) != 0;
}

template <class T>
class TensorCoreProduct {
 public:
  TensorCoreProduct(Launch& launch, Cta& cta, const TensorOp& t)
      : launch_(launch), t_(t), parts_(parts_of(launch, t)), ctas_(ctas_of(launch, cta, parts_.p.pair)) {}

  void run() {
    const TensorProduct& p = parts_.p;
    const ColumnMask mask = column_mask_of(p, t_.zero_columns);
    const int width = p.n + mask.skipped;  // of .ws, which has one CTA; otherwise nothing is skipped
    std::vector<T> b(static_cast<std::size_t>(p.k) * static_cast<std::size_t>(width));
    for (int c = 0; c < parts_.ctas; ++c) {
      read_shared<T>(*ctas_[static_cast<std::size_t>(c)], t_.b, p.b_along_n, p.b, parts_.columns + mask.skipped, p.k,
                     b.data() + c * parts_.columns, 1, width);
    }
    if (t_.zero_columns != 0) b = masked(b, mask, width);
    b_ = std::move(b);
    if (p.negate_b) negate(b_);
    for (int c = 0; c < parts_.ctas; ++c) rows_of(c);
  }

 private:
  // [k][n] of [k][width].
  std::vector<T> masked(const std::vector<T>& b, const ColumnMask& mask, int width) const {
    const TensorProduct& p = parts_.p;
    std::vector<T> out;
    out.reserve(static_cast<std::size_t>(p.k) * static_cast<std::size_t>(p.n));
    for (int k = 0; k < p.k; ++k) {
      for (int n = 0; n < p.n; ++n) {
        const auto from = static_cast<std::size_t>(k * width + n + mask.skipped);
        out.push_back(mask.zero[static_cast<std::size_t>(n)] ? T{0} : b[from]);
      }
    }
    return out;
  }

  static void negate(std::vector<T>& numbers) {
    for (T& x : numbers) x = -x;
  }

  // The rows of CTA c of the pair.
  void rows_of(int c) {
    const TensorProduct& p = parts_.p;
    Cta& cta = *ctas_[static_cast<std::size_t>(c)];
    a_.resize(static_cast<std::size_t>(parts_.rows) * static_cast<std::size_t>(stored_columns(p)));
    if (p.sparse) positions_ = positions_of(launch_, cta, t_, parts_);
    d_.assign(static_cast<std::size_t>(parts_.rows) * static_cast<std::size_t>(p.n), T{0});
    const TensorAddress at = tensor_address(t_.d);
    const auto each_cell = [&](const auto& body) {
      for (int m = 0; m < parts_.rows; ++m) {
        for (int n = 0; n < p.n; ++n) {
          const TensorCell cell = cell_of(parts_.d, m, n, p.n);
          const auto lane = at.lane + cell.lane;
          body(d_[static_cast<std::size_t>(m * p.n + n)], cta.tensor.row(lane)[at.column + cell.column],
               static_cast<int>(lane));
        }
      }
    };
    const auto read_d = [&] {
      if (!t_.adds) return;
      const double scale = std::ldexp(1.0, -t_.scale_d);
      each_cell([&](T& d, const std::uint32_t& cell, int) {
        d = number_of<T>(cell, p.d);
        if constexpr (std::is_same_v<T, float>) d = static_cast<float>(static_cast<double>(d) * scale);
      });
    };
    read_d();
    if (t_.a_in_tensor && parts_.d == TensorLayout::b) {
      // Each half of the columns has its copy of A.
      std::vector<T> lower(d_.size());
      read_a(cta, false);
      multiply(cta);
      lower.swap(d_);
      d_.assign(lower.size(), T{0});
      read_d();
      read_a(cta, true);
      multiply(cta);
      for (int m = 0; m < parts_.rows; ++m) std::copy_n(lower.data() + m * p.n, p.n / 2, d_.data() + m * p.n);
    } else {
      read_a(cta, false);
      multiply(cta);
    }
    each_cell([&](const T& d, std::uint32_t& cell, int lane) {
      if (!is_kept(t_, c, lane)) cell = cell_with<T>(d, p.d, cell);
    });
  }

  void read_a(const Cta& cta, bool upper) {
    const TensorProduct& p = parts_.p;
    if (t_.a_in_tensor) {
      read_tensor<T>(cta, t_, parts_, upper, a_.data());
    } else {
      const int columns = stored_columns(p);
      read_shared<T>(cta, t_.a, p.a_along_m, p.a, parts_.rows, columns, a_.data(), columns, 1);
    }
    if (p.negate_a) negate(a_);
  }

  void multiply(const Cta& cta) {
    const TensorProduct& p = parts_.p;
    MatrixProduct product;
    product.m = parts_.rows;
    product.n = p.n;
    product.k = p.k;
    product.a = product_type(p.a);
    product.b = product_type(p.b);
    product.d = p.d;
    product.sum = launch_.program->options.sum;
    product.saturate = p.saturate;
    product.sparse = p.sparse;
    const std::uint16_t* const positions = p.sparse ? positions_.data() : nullptr;
    if constexpr (std::is_same_v<T, float>) {
      const Simd simd = launch_.program->options.simd;
      if (p.scales > 0) return multiply_scaled(parts_, t_, cta, product, a_.data(), positions, b_.data(), d_.data());
      if (p.sparse) return multiply_add_sparse(product, a_.data(), positions, b_.data(), d_.data(), simd);
      multiply_add(product, a_.data(), b_.data(), d_.data(), simd);
    } else {
      if (p.sparse) return multiply_add_sparse(product, a_.data(), positions, b_.data(), d_.data());
      multiply_add(product, a_.data(), b_.data(), d_.data());
    }
  }

  Launch& launch_;
  const TensorOp& t_;
  ProductParts parts_;
  std::vector<Cta*> ctas_;
  std::vector<T> a_, b_, d_;
  std::vector<std::uint16_t> positions_;  // of a sparse A
};

// 16 bytes of the source, as they are stored in tensor memory.
std::array<std::uint32_t, 4> unpacked(const std::byte* from, TensorCopy::Form form) {
  std::array<std::uint32_t, 4> cells{};
  if (form == TensorCopy::Form::raw) {
    std::memcpy(cells.data(), from, sizeof cells);
    return cells;
  }
  const int width = form == TensorCopy::Form::four_bits ? 4 : 6;
  for (int i = 0; i < 16; ++i) {
    std::uint32_t element = 0;
    for (int b = 0; b < width; ++b) {
      const int bit = i * width + b;
      element |= (std::to_integer<std::uint32_t>(from[bit / 8]) >> (bit % 8) & 1) << b;
    }
    if (width == 4) element <<= 2;  // an element of 4 bits is in bits 2 to 5 of its byte
    cells[static_cast<std::size_t>(i / 4)] |= element << (8 * (i % 4));
  }
  return cells;
}

}  // namespace

void perform_product(Launch& launch, Cta& cta, const TensorOp& t) {
  if (product_of(instr_of(launch, t), t.description).d == Type::s32) {
    TensorCoreProduct<std::int32_t>(launch, cta, t).run();
  } else {
    TensorCoreProduct<float>(launch, cta, t).run();
  }
}

void perform_tensor_copy(Launch& launch, Cta& cta, const TensorOp& t) {
  const Instr& instr = instr_of(launch, t);
  const TensorCopy copy = copy_of(instr);
  const TensorAddress to = tensor_address(t.d);
  for (Cta* const part : ctas_of(launch, cta, instr.has(Mod::cta_group_2))) {
    for (const WgmmaChunk& chunk : tcgen05_chunks(t.a, false, 8, copy.rows, copy.row_bytes)) {
      const auto cells = unpacked(shared_at(*part, chunk.offset, kWgmmaChunkBytes), copy.form);
      for (const int lane : lanes_of_row(instr, chunk.mn))
        std::copy_n(cells.data(), 4, part->tensor.row(to.lane + lane) + to.column + chunk.k / 4);
    }
  }
}

}  // namespace kvscope::ptx
