// flashinfer-bench. Source: FlashInfer-Bench documentation, "Definition" and "Workload".
//   definitions/<op_type>/<name>.json   axes (const with a value, or var), inputs with shape (names of axes) and dtype
//   workloads/<op_type>/<name>.jsonl    {"definition": name, "workload": {"uuid", "axes": {var: N}, "inputs": {name:
//                                       {"type": "random"} | {"type": "scalar", "value"} |
//                                       {"type": "safetensors", "path", "tensor_key"}}}}
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <system_error>
#include <utility>

#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/dumps/detail/dump_tensors.h"

namespace kvscope::golden {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostBenchText = std::int64_t{1} << 30;  // [bytes]
constexpr std::int64_t kMostRandomBytes = std::int64_t{16} << 30;

constexpr auto kBenchTypes = std::to_array<std::pair<std::string_view, DType>>({{"float32", DType::f32},
                                                                                {"float16", DType::f16},
                                                                                {"bfloat16", DType::bf16},
                                                                                {"float8_e4m3fn", DType::e4m3},
                                                                                {"float8_e5m2", DType::e5m2},
                                                                                {"int64", DType::i64},
                                                                                {"int32", DType::i32}});

std::optional<DType> bench_type(std::string_view name) {
  const auto at = std::ranges::find(kBenchTypes, name, &std::pair<std::string_view, DType>::first);
  return at == kBenchTypes.end() ? std::nullopt : std::optional(at->second);
}

json::Value chosen_workload(const fs::path& path, const std::optional<std::string>& uuid) {
  const std::string text = read_file(path, kMostBenchText);
  std::vector<json::Value> lines;
  std::vector<std::string> uuids;
  std::string_view rest = text;
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    json::Value value = json::parse(line, fmt::format("{}, line {}", path.string(), number));
    const json::Value* workload = value.find("workload");
    const std::string id = workload == nullptr ? "" : json_text(*workload, "uuid");
    if (uuid && id != *uuid) {
      uuids.push_back(id);
      continue;
    }
    uuids.push_back(id);
    lines.push_back(std::move(value));
  }
  const std::size_t most = std::min<std::size_t>(uuids.size(), 4);
  const auto some =
      fmt::format("{}{}", fmt::join(uuids.begin(), uuids.begin() + static_cast<std::ptrdiff_t>(most), ", "),
                  uuids.size() > most ? ", ..." : "");
  if (uuids.empty()) throw InputError(path.string(), "", "has no workload: one JSON object a line");
  if (lines.empty()) throw InputError(path.string(), "--uuid", fmt::format("no workload has it; there are {}", some));
  if (lines.size() > 1) {
    throw InputError(path.string(), "--uuid",
                     fmt::format("is required, because the file has {} workloads: pass one of {}", lines.size(), some));
  }
  return std::move(lines.front());
}

class BenchReader {
 public:
  BenchReader(const fs::path& path, const FlashInferBenchOptions& options)
      : path_(fs::absolute(path)), options_(options), line_(chosen_workload(path, options.uuid)) {}

  ImportedDump read() {
    find_definition();
    read_axes();
    const std::string op = json_text(definition_, "op_type");
    if (op != "gqa_paged" && op != "mla_paged") {
      throw InputError(definition_path_.string(), "$.op_type",
                       fmt::format("is '{}'; kvscope reads gqa_paged and mla_paged", op));
    }
    out_.what = json_text(definition_, "name");
    read_inputs();
    if (!faults_.empty()) throw InputError(path_.string(), std::move(faults_));
    op == "mla_paged" ? finish_mla() : finish_gqa();
    const bool prefill = out_.tensors.tensors.contains("qo_indptr");
    out_.options.attention.mask =
        prefill && out_.what.find("causal") == std::string::npos ? MaskKind::none : MaskKind::causal;
    out_.options.attention.lse_base = attention::LseBase::two;
    if (!random_.empty()) {
      out_.notes.push_back(
          fmt::format("{} are random in the workload: made from seed {}", fmt::join(random_, ", "), options_.seed));
    }
    return std::move(out_);
  }

 private:
  void fault(std::string where, std::string message) { faults_.push_back({std::move(where), std::move(message)}); }

  void find_definition() {
    const std::string name = json_text(line_, "definition");
    if (options_.definition) {
      definition_path_ = *options_.definition;
    } else {
      std::error_code error;
      for (fs::path root = path_.parent_path(); definition_path_.empty() && root != root.parent_path();
           root = root.parent_path()) {
        const fs::path candidate = root / "definitions" / path_.parent_path().filename() / (name + ".json");
        if (fs::is_regular_file(candidate, error)) definition_path_ = candidate;
      }
      if (definition_path_.empty()) {
        throw InputError(path_.string(), "--definition",
                         fmt::format("is required: there is no definitions/{}/{}.json beside the folder workloads",
                                     path_.parent_path().filename().string(), name));
      }
    }
    definition_ = json::parse(read_file(definition_path_, kMostBenchText), definition_path_.string());
    if (const std::string own = json_text(definition_, "name"); own != name) {
      throw InputError(definition_path_.string(), "$.name",
                       fmt::format("is '{}', but the workload is of '{}': pass its definition", own, name));
    }
  }

  void read_axes() {
    const auto add = [&](const std::string& axis, const json::Value* value) {
      if (value != nullptr && value->as_i64() != nullptr && *value->as_i64() >= 0) axes_[axis] = *value->as_i64();
    };
    if (const json::Value* axes = definition_.find("axes"); axes != nullptr && axes->is_object()) {
      for (const auto& [axis, of] : *axes->as_object()) add(axis, of.find("value"));
    }
    const json::Value* workload = line_.find("workload");
    const json::Value* given = workload == nullptr ? nullptr : workload->find("axes");
    if (given != nullptr && given->is_object()) {
      for (const auto& [axis, extent] : *given->as_object()) add(axis, &extent);
    }
  }

  // The extents of an input, or nothing with a fault.
  std::optional<std::vector<std::int64_t>> shape_of_input(const std::string& name, const json::Value& input) {
    const json::Value* shape = input.find("shape");
    std::vector<std::int64_t> extents;
    if (shape == nullptr || shape->as_array() == nullptr) return extents;
    for (const json::Value& axis : *shape->as_array()) {
      const auto at = axis.as_string() == nullptr ? axes_.end() : axes_.find(*axis.as_string());
      if (at == axes_.end()) {
        fault(name, fmt::format("has the axis {}, whose size neither the definition nor the workload states",
                                json::dump(axis, -1)));
        return std::nullopt;
      }
      extents.push_back(at->second);
    }
    return extents;
  }

  void read_inputs() {
    const json::Value* inputs = definition_.find("inputs");
    const json::Value* workload = line_.find("workload");
    const json::Value* sources = workload == nullptr ? nullptr : workload->find("inputs");
    if (inputs == nullptr || !inputs->is_object() || sources == nullptr || !sources->is_object()) {
      fault("$.workload.inputs", "is missing, in the workload or in the definition");
      return;
    }
    std::uint64_t stream = 0;
    for (const auto& [name, input] : *inputs->as_object()) {
      const json::Value* from = sources->find(name);
      ++stream;
      if (from == nullptr) {
        fault(name, "is an input of the definition, and the workload has no source for it");
        continue;
      }
      const std::string type = json_text(*from, "type");
      if (type == "scalar") {
        read_scalar(name, *from);
      } else if (type == "random") {
        make_random(name, input, stream);
      } else if (type == "safetensors") {
        read_tensor(name, input, *from);
      } else {
        fault(name, fmt::format("is of type '{}'; kvscope reads random, scalar and safetensors", type));
      }
    }
  }

  void read_scalar(const std::string& name, const json::Value& from) {
    const json::Value* value = from.find("value");
    if (value == nullptr || !value->is_number()) {
      fault(name, "is a scalar without a number as its value");
    } else if (name == "sm_scale") {
      out_.options.scale = value->number();
    } else {
      fault(name, "is an unsupported scalar; sm_scale is the only supported one");
    }
  }

  void make_random(const std::string& name, const json::Value& input, std::uint64_t stream) {
    const std::optional<std::vector<std::int64_t>> shape = shape_of_input(name, input);
    const std::optional<DType> type = bench_type(json_text(input, "dtype"));
    if (!type || is_integer(*type)) {
      fault(name, fmt::format("is random, of type '{}': random values are made for {}", json_text(input, "dtype"),
                              "float32, float16, bfloat16, float8_e4m3fn and float8_e5m2"));
      return;
    }
    if (!shape) return;
    const std::optional<std::int64_t> bytes = byte_count(*type, *shape);
    if (!bytes || *bytes > kMostRandomBytes) {
      fault(name, fmt::format("{} is larger than 16 GiB: choose a smaller workload", shape_text(*shape)));
      return;
    }
    Tensor tensor = make_tensor(*type, *shape);
    const CounterRng rng(options_.seed, stream);
    const std::int64_t size = size_of(*type);
    for (std::size_t n = 0; n < tensor.bytes.size() / static_cast<std::size_t>(size); ++n) {
      const double value = rng.bell(n);
      convert(DType::f64, reinterpret_cast<const std::byte*>(&value), *type,
              tensor.bytes.data() + n * static_cast<std::size_t>(size), 1, Overflow::saturate);
    }
    out_.tensors.tensors[name] = std::move(tensor);
    random_.push_back(name);
  }

  void read_tensor(const std::string& name, const json::Value& input, const json::Value& from) {
    const fs::path given = json_text(from, "path");
    const std::string key = json_text(from, "tensor_key");
    fs::path found;
    std::error_code error;
    if (given.is_absolute() && fs::is_regular_file(given, error)) found = given;
    for (fs::path root = path_.parent_path(); found.empty() && root != root.parent_path(); root = root.parent_path()) {
      if (!given.is_absolute() && fs::is_regular_file(root / given, error)) found = root / given;
    }
    if (found.empty()) {
      fault(name, fmt::format("is in '{}', which is in none of the folders above the workload", given.string()));
      return;
    }
    const auto [at, is_new] = files_.try_emplace(found.string());
    if (is_new) at->second = load_bundle(found);
    const auto tensor = at->second.tensors.find(key);
    if (tensor == at->second.tensors.end()) {
      fault(name, fmt::format("is '{}' of {}, which has no such tensor", key, found.string()));
      return;
    }
    const std::optional<DType> type = bench_type(json_text(input, "dtype"));
    if (type && *type != tensor->second.dtype) {
      fault(name,
            fmt::format("is {}, but the definition states {}", describe(tensor->second), json_text(input, "dtype")));
    }
    if (const auto shape = shape_of_input(name, input); shape && *shape != tensor->second.shape) {
      fault(name,
            fmt::format("is {}, but the axes of the workload give {}", describe(tensor->second), shape_text(*shape)));
    }
    out_.tensors.tensors[name] = tensor->second;
  }

  // Pages of one token are full; longer pages need the length of the last one.
  void add_last_page(std::int64_t page_size) {
    auto& tensors = out_.tensors.tensors;
    if (tensors.contains("kv_last_page_len")) return;
    if (page_size != 1) {
      throw InputError(definition_path_.string(), "$.inputs.kv_last_page_len",
                       fmt::format("is missing: with pages of {} tokens the lengths are not known", page_size));
    }
    const std::vector<std::int64_t> indptr = dump_integers(out_.tensors, "kv_indptr", path_.string());
    const std::vector<std::int32_t> ones(indptr.empty() ? 0 : indptr.size() - 1, 1);
    tensors["kv_last_page_len"] = tensor_of<std::int32_t>({static_cast<std::int64_t>(ones.size())}, ones);
  }

  void finish_gqa() {
    out_.options.layout = "flashinfer";
    const auto cache = out_.tensors.tensors.find("k_cache");
    if (cache == out_.tensors.tensors.end() || cache->second.shape.size() != 4) {
      throw InputError(definition_path_.string(), "$.inputs.k_cache",
                       "is not [num_pages, page_size, num_kv_heads, head_dim]");
    }
    add_last_page(cache->second.shape[1]);
  }

  void finish_mla() {
    out_.options.layout = "mla";
    auto& tensors = out_.tensors.tensors;
    for (const char* name : {"q_nope", "q_pe", "ckv_cache", "kpe_cache"}) {
      if (!tensors.contains(name))
        throw InputError(definition_path_.string(), fmt::format("$.inputs.{}", name), "is missing");
    }
    tensors["q"] = joined(tensors.at("q_nope"), tensors.at("q_pe"), "q_nope and q_pe", path_.string());
    tensors.erase("q_nope");
    tensors.erase("q_pe");
    const Tensor& ckv = tensors.at("ckv_cache");
    const std::int64_t page_size = ckv.shape.size() == 3 ? ckv.shape[1] : 1;
    add_last_page(page_size);
    indptr_to_table(out_.tensors, {}, page_size, path_.string());
    out_.notes.emplace_back("q is q_nope and q_pe side by side; kv_indptr and kv_indices became block_table");
  }

  fs::path path_;
  const FlashInferBenchOptions& options_;
  json::Value line_, definition_;
  fs::path definition_path_;
  std::map<std::string, std::int64_t> axes_;
  std::map<std::string, Bundle> files_;
  std::vector<std::string> random_;
  ImportedDump out_;
  std::vector<Fault> faults_;
};

}  // namespace

ImportedDump read_flashinfer_bench(const fs::path& workloads, const FlashInferBenchOptions& options) {
  return BenchReader(workloads, options).read();
}

}  // namespace kvscope::golden
