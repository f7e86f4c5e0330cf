#include "core/golden/dumps/detail/dump_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/base/errors.h"
#include "core/base/file.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kMostText = std::int64_t{1} << 30;  // [bytes]
constexpr std::int64_t kMostLength = std::numeric_limits<std::int32_t>::max();

}  // namespace

json::Value last_json_line(const std::filesystem::path& path) {
  const std::string text = read_file(path, kMostText);
  std::string_view rest = text;
  while (!rest.empty() && (rest.back() == '\n' || rest.back() == '\r' || rest.back() == ' ')) rest.remove_suffix(1);
  if (rest.empty()) throw InputError(path.string(), "", "is empty: it has one JSON object a line");
  const std::size_t newline = rest.rfind('\n');
  if (newline != std::string_view::npos) rest.remove_prefix(newline + 1);
  return json::parse(rest, path.string());
}

std::string json_text(const json::Value& object, std::string_view key) {
  const json::Value* value = object.find(key);
  return value == nullptr || value->as_string() == nullptr ? std::string() : *value->as_string();
}

Tensor joined(const Tensor& a, const Tensor& b, std::string_view names, std::string_view source) {
  const bool alike = a.dtype == b.dtype && a.shape.size() == b.shape.size() && !a.shape.empty() &&
                     std::equal(a.shape.begin(), a.shape.end() - 1, b.shape.begin());
  if (!alike) {
    throw InputError(
        source, std::string(names),
        fmt::format("are {} and {}: types and all axes but the last must be alike", describe(a), describe(b)));
  }
  std::vector<std::int64_t> shape = a.shape;
  shape.back() += b.shape.back();
  Tensor out = make_tensor(a.dtype, shape);
  const auto left = static_cast<std::size_t>(a.shape.back() * size_of(a.dtype));
  const auto right = static_cast<std::size_t>(b.shape.back() * size_of(b.dtype));
  for (std::size_t row = 0; left + right > 0 && row < out.bytes.size() / (left + right); ++row) {
    std::byte* to = out.bytes.data() + row * (left + right);
    std::memcpy(to, a.bytes.data() + row * left, left);
    std::memcpy(to + left, b.bytes.data() + row * right, right);
  }
  return out;
}

std::vector<std::int64_t> dump_integers(const Bundle& bundle, const std::string& name, std::string_view source) {
  const auto at = bundle.tensors.find(name);
  if (at == bundle.tensors.end()) throw InputError(source, name, "is missing");
  const Tensor& tensor = at->second;
  if (tensor.dtype == DType::i64) {
    const auto all = values<std::int64_t>(tensor);
    return {all.begin(), all.end()};
  }
  if (tensor.dtype == DType::i32) {
    const auto all = values<std::int32_t>(tensor);
    return {all.begin(), all.end()};
  }
  throw InputError(source, name, fmt::format("is {}; an index tensor is i32 or i64", describe(tensor)));
}

void indptr_to_table(Bundle& bundle, std::vector<std::int64_t> lengths, std::int64_t page_size,
                     std::string_view source) {
  const std::vector<std::int64_t> indptr = dump_integers(bundle, "kv_indptr", source);
  const std::vector<std::int64_t> indices = dump_integers(bundle, "kv_indices", source);
  const bool by_last_page = lengths.empty();
  const std::vector<std::int64_t> last =
      by_last_page ? dump_integers(bundle, "kv_last_page_len", source) : std::vector<std::int64_t>();
  std::vector<Fault> faults;
  const std::size_t batch = indptr.empty() ? 0 : indptr.size() - 1;
  const auto count = static_cast<std::int64_t>(indices.size());
  for (std::size_t b = 0; b < batch; ++b) {
    if (indptr[b] < 0 || indptr[b + 1] < indptr[b] || indptr[b + 1] > count) {
      faults.push_back({fmt::format("kv_indptr[{}]", b + 1),
                        fmt::format("is {} after {}: offsets rise from 0 to the {} entries of kv_indices",
                                    indptr[b + 1], indptr[b], count)});
    }
  }
  const std::vector<std::int64_t>& given = by_last_page ? last : lengths;
  const char* given_name = by_last_page ? "kv_last_page_len" : "kv_len_arr";
  if (given.size() != batch) {
    faults.push_back({given_name, fmt::format("has {} entries for {} sequences", given.size(), batch)});
  }
  // The table has 32 bits: a larger number would become another block or length.
  const bool sizes_fit = faults.empty();
  for (std::size_t b = 0; sizes_fit && b < batch; ++b) {
    const std::int64_t pages = indptr[b + 1] - indptr[b];
    const std::int64_t least = by_last_page && pages > 0 ? 1 : 0;
    const std::int64_t most = by_last_page ? page_size : kMostLength;
    if ((pages > 0 || !by_last_page) && (given[b] < least || given[b] > most)) {
      faults.push_back(
          {fmt::format("{}[{}]", given_name, b), fmt::format("is {}, outside [{}, {}]", given[b], least, most)});
    }
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= -1 && indices[i] <= kMostLength) continue;
    faults.push_back(
        {fmt::format("kv_indices[{}]", i), fmt::format("is {}, outside [0, {}]", indices[i], kMostLength)});
    break;  // the others may follow from the same cause
  }
  if (!faults.empty()) throw InputError(source, std::move(faults));
  std::int64_t columns = 1;
  for (std::size_t b = 0; b < batch; ++b) columns = std::max(columns, indptr[b + 1] - indptr[b]);
  const auto rows = static_cast<std::int64_t>(batch);
  if (rows > 0 && columns > (std::int64_t{1} << 31) / rows) {
    throw InputError(source, "kv_indptr", fmt::format("makes a table of {} x {} entries", rows, columns));
  }
  Tensor table = make_tensor(DType::i32, {rows, columns}), seqlens = make_tensor(DType::i32, {rows});
  const auto entries = values<std::int32_t>(table);
  std::ranges::fill(entries, -1);
  for (std::size_t b = 0; b < batch; ++b) {
    const std::int64_t pages = indptr[b + 1] - indptr[b];
    for (std::int64_t page = 0; page < pages; ++page) {
      entries[b * static_cast<std::size_t>(columns) + static_cast<std::size_t>(page)] =
          static_cast<std::int32_t>(indices[static_cast<std::size_t>(indptr[b] + page)]);
    }
    values<std::int32_t>(seqlens)[b] =
        static_cast<std::int32_t>(by_last_page ? (pages == 0 ? 0 : (pages - 1) * page_size + last[b]) : lengths[b]);
  }
  for (const char* name : {"kv_indptr", "kv_indices", "kv_last_page_len"}) bundle.tensors.erase(name);
  bundle.tensors["block_table"] = std::move(table);
  bundle.tensors["cache_seqlens"] = std::move(seqlens);
}

}  // namespace kvscope::golden
