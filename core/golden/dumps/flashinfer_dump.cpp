// FlashInfer's log of level 10. Source: FlashInfer documentation, "Logging". A call is a folder
//   <time>_pid<P>_<function>_call<N>/  metadata.jsonl       the last line is the most complete one
//                                      inputs.safetensors   (inputs.pt without FLASHINFER_DUMP_SAFETENSORS=1)
//                                      outputs.safetensors  result, or result_0, result_1, ...
// whose tensors are arg_<position> and kwarg_<name>; other arguments are under the same keys in input_metadata. The
// member function_signature names the positions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/errors.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/bundle/torch_save.h"
#include "core/golden/dumps/detail/dump_tensors.h"

namespace kvscope::golden {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDecode = "BatchDecodeWithPagedKVCacheWrapper";
constexpr std::string_view kPrefill = "BatchPrefillWithPagedKVCacheWrapper";
constexpr std::string_view kMla = "BatchMLAPagedAttentionWrapper";
constexpr double kMostWindow = 9007199254740992;  // 2^53: larger numbers of JSON have lost digits

// "(self, q: Tensor, kv: Tuple[Tensor, Tensor] = None, *, out=None)" -> {"self", "q", "kv", "*", "out"}.
std::vector<std::string> parameter_names(std::string_view signature) {
  std::vector<std::string> names;
  if (signature.empty() || signature.front() != '(') return names;
  std::string now;
  int depth = 0;
  bool in_name = true;
  char quote = 0;
  for (const char c : signature.substr(1)) {
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '\'' || c == '"') quote = c;
    if (c == ')' && depth == 0) break;
    if (c == '[' || c == '(' || c == '{') ++depth;
    if (c == ']' || c == ')' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      names.push_back(std::exchange(now, {}));
      in_name = true;
    } else if (depth == 0 && (c == ':' || c == '=')) {
      in_name = false;
    } else if (in_name && c != ' ') {
      now += c;
    }
  }
  if (!now.empty()) names.push_back(now);
  return names;
}

struct Call {
  fs::path folder;
  json::Value metadata;
  std::string function;  // "BatchDecodeWithPagedKVCacheWrapper.run"
  std::vector<std::string> parameters;
  Bundle tensors;  // arg_<i> and kwarg_<name>, after load()

  [[nodiscard]] std::string method() const {
    return function.substr(std::min(function.rfind('.') + 1, function.size()));
  }
  [[nodiscard]] bool is_of(std::string_view wrapper) const { return function.find(wrapper) != std::string::npos; }
  [[nodiscard]] bool is_run() const {
    const std::string name = method();
    return (is_of(kDecode) || is_of(kPrefill) || is_of(kMla)) &&
           (name == "run" || name == "forward" || name == "run_return_lse" || name == "forward_return_lse");
  }
  [[nodiscard]] bool same_object(const Call& other) const {
    const auto same = [&](const char* key) {
      const json::Value *a = metadata.find(key), *b = other.metadata.find(key);
      return a != nullptr && b != nullptr && *a == *b;
    };
    return same("self_id") && same("process_id");
  }

  void load() {
    const fs::path inputs = folder / "inputs.safetensors";
    if (std::error_code error; !fs::exists(inputs, error) && fs::exists(folder / "inputs.pt", error)) {
      throw InputError((folder / "inputs.pt").string(), "",
                       "is " + torch_save_advice("inputs.pt") +
                           "\nor dump again with FLASHINFER_DUMP_SAFETENSORS=1 in the environment");
    }
    tensors = load_bundle(inputs);
  }
  // The keys under which an argument may be stored.
  [[nodiscard]] std::vector<std::string> keys(std::string_view name) const {
    std::vector<std::string> keys{fmt::format("kwarg_{}", name)};
    const auto at = std::ranges::find(parameters, name);
    if (at != parameters.end()) keys.push_back(fmt::format("arg_{}", at - parameters.begin()));
    return keys;
  }
  [[nodiscard]] const Tensor* tensor(std::string_view name) const {
    for (const std::string& key : keys(name)) {
      if (const auto at = tensors.tensors.find(key); at != tensors.tensors.end()) return &at->second;
    }
    return nullptr;
  }
  // An argument that is not a tensor; null when it was left out or is None.
  [[nodiscard]] const json::Value* value(std::string_view name) const {
    const json::Value* given = metadata.find("input_metadata");
    for (const std::string& key : keys(name)) {
      const json::Value* found = given == nullptr ? nullptr : given->find(key);
      if (found != nullptr && !found->is_null()) return found;
    }
    return nullptr;
  }
  [[nodiscard]] std::optional<double> number(std::string_view name) const {
    const json::Value* found = value(name);
    return found == nullptr || !found->is_number() ? std::nullopt : std::optional(found->number());
  }
  [[nodiscard]] bool flag(std::string_view name) const {
    const json::Value* found = value(name);
    return found != nullptr && found->as_bool() != nullptr && *found->as_bool();
  }
};

Call read_call(const fs::path& folder) {
  Call call;
  call.folder = folder;
  call.metadata = last_json_line(folder / "metadata.jsonl");
  call.function = json_text(call.metadata, "function_name");
  call.parameters = parameter_names(json_text(call.metadata, "function_signature"));
  return call;
}

bool is_call(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "metadata.jsonl", error);
}

// The calls of a folder in the order of their names, which begin with the time.
std::vector<Call> read_calls(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    if (is_call(entry.path())) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  std::vector<Call> calls;
  for (const fs::path& folder : folders) calls.push_back(read_call(folder));
  return calls;
}

Call chosen_call(const fs::path& folder, const FlashInferDumpOptions& options) {
  if (options.call) {
    if (!is_call(folder / *options.call)) {
      throw InputError(folder.string(), "--call", fmt::format("'{}' is no folder with metadata.jsonl", *options.call));
    }
    return read_call(folder / *options.call);
  }
  if (is_call(folder)) return read_call(folder);
  std::vector<Call> runs;
  std::vector<std::string> names, functions;
  for (Call& call : read_calls(folder)) {
    if (std::ranges::count(functions, call.function) == 0) functions.push_back(call.function);
    if (!call.is_run()) continue;
    names.push_back(call.folder.filename().string());
    runs.push_back(std::move(call));
  }
  if (runs.empty()) {
    throw InputError(folder.string(), "",
                     functions.empty() ? std::string("has no call of FlashInfer's log: a folder with metadata.jsonl")
                                       : fmt::format("has calls of {}, but no run() of {}, {} or {}",
                                                     fmt::join(functions, ", "), kDecode, kPrefill, kMla));
  }
  if (runs.size() > 1) {
    const std::size_t most = std::min<std::size_t>(names.size(), 8);
    throw InputError(folder.string(), "--call",
                     fmt::format("is required, because the folder has {} calls of run(): pass one of {}{}", runs.size(),
                                 fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(most), ", "),
                                 names.size() > most ? ", ..." : ""));
  }
  return std::move(runs.front());
}

class DumpReader {
 public:
  DumpReader(Call run, const FlashInferDumpOptions& options) : run_(std::move(run)), options_(options) {}

  ImportedDump read() {
    if (!run_.is_run()) {
      throw InputError(
          run_.folder.string(), "function_name",
          fmt::format("is '{}'; kvscope reads run() of {}, {} and {}", run_.function, kDecode, kPrefill, kMla));
    }
    find_other_calls();
    run_.load();
    plan_.load();
    out_.what = run_.function;
    check_supported();
    if (run_.is_of(kMla)) {
      read_mla();
    } else {
      read_paged();
    }
    read_conventions();
    if (!faults_.empty()) throw InputError(source(), std::move(faults_));
    read_outputs();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string source() const { return run_.folder.string(); }
  void fault(std::string where, std::string message) { faults_.push_back({std::move(where), std::move(message)}); }

  // The last plan() of the same object before this run, and its constructor.
  void find_other_calls() {
    bool found = false;
    for (Call& call : read_calls(run_.folder.parent_path())) {
      if (call.folder.filename() >= run_.folder.filename() || !call.same_object(run_)) continue;
      if (call.method() == "plan" || call.method() == "begin_forward") {
        plan_ = std::move(call);
        found = true;
      } else if (call.method() == "__init__") {
        kv_layout_ = call.value("kv_layout") == nullptr || call.value("kv_layout")->as_string() == nullptr
                         ? "NHD"
                         : *call.value("kv_layout")->as_string();
      }
    }
    if (!found) {
      throw InputError(source(), "plan()",
                       "of the same wrapper is not beside this call, and it has the index tensors: dump it too, with "
                       "FLASHINFER_DUMP_INCLUDE='*Wrapper.plan,*Wrapper.run'");
    }
    if (options_.kv_layout) kv_layout_ = *options_.kv_layout;
  }

  void check_supported() {
    for (const char* name : {"prefix_len_ptr", "token_pos_in_items_ptr"}) {
      if (plan_.tensor(name) != nullptr) fault(name, "is set; kvscope computes causal masks, windows and custom masks");
    }
    const bool masked = plan_.tensor("custom_mask") != nullptr || plan_.tensor("packed_custom_mask") != nullptr;
    if (const double window = plan_.number("window_left").value_or(-1); masked && window >= 0) {
      fault("window_left", fmt::format("is {}, and a custom mask is set: kvscope computes one of the two", window));
    }
    if (const json::Value* mode = plan_.value("pos_encoding_mode");
        mode != nullptr && mode->as_string() != nullptr && *mode->as_string() != "NONE") {
      fault("pos_encoding_mode",
            fmt::format("is {}: the kernel changes q and k itself, which the dump does not show", *mode->as_string()));
    }
  }

  void move_tensor(const Call& call, std::initializer_list<const char*> names, const char* to) {
    for (const char* name : names) {
      if (const Tensor* tensor = call.tensor(name); tensor != nullptr) {
        out_.tensors.tensors[to] = *tensor;
        return;
      }
    }
    const json::Value* other = nullptr;
    for (const char* name : names) other = other == nullptr ? call.value(name) : other;
    const bool tuple =
        other != nullptr && (json_text(*other, "type") == "tuple" || json_text(*other, "type") == "list");
    fault(*names.begin(), tuple ? "was passed as a tuple, whose tensors the log does not hold: pass one tensor "
                                  "[pages, 2, page_size, heads, head_dim], or save them yourself"
                                : fmt::format("is not in the inputs of {}", call.function));
  }

  void read_paged() {
    move_tensor(run_, {"q"}, "q");
    move_tensor(run_, {"paged_kv_cache"}, "kv_cache");
    if (run_.is_of(kPrefill)) move_tensor(plan_, {"qo_indptr"}, "qo_indptr");
    move_tensor(plan_, {"paged_kv_indptr", "indptr"}, "kv_indptr");
    move_tensor(plan_, {"paged_kv_indices", "indices"}, "kv_indices");
    move_tensor(plan_, {"paged_kv_last_page_len", "last_page_len"}, "kv_last_page_len");
    if (const Tensor* sinks = run_.tensor("sinks"); sinks != nullptr) out_.tensors.tensors["sinks"] = *sinks;
    // The kernel takes the packed mask if both are given.
    const bool packed = plan_.tensor("packed_custom_mask") != nullptr;
    const char* name = packed ? "packed_custom_mask" : "custom_mask";
    if (const Tensor* mask = plan_.tensor(name); mask != nullptr) out_.tensors.tensors[name] = *mask;
    const std::string layout = kv_layout();
    out_.options.layout = layout == "HND" ? "flashinfer_hnd" : "flashinfer";
  }

  std::string kv_layout() {
    const auto cache = out_.tensors.tensors.find("kv_cache");
    if (cache == out_.tensors.tensors.end() || !kv_layout_.empty()) return kv_layout_;
    const std::optional<double> page_size = plan_.number("page_size"), heads = plan_.number("num_kv_heads");
    const std::vector<std::int64_t>& shape = cache->second.shape;
    if (shape.size() != 5) {
      fault("paged_kv_cache", fmt::format("has shape {}, but one tensor of K and V has 5 axes: [pages, 2, page_size, "
                                          "heads, head_dim] or [pages, 2, heads, page_size, head_dim]",
                                          shape_text(shape)));
      return "NHD";
    }
    if (page_size && heads) {
      const auto is = [&](std::size_t axis, double extent) { return static_cast<double>(shape[axis]) == extent; };
      const bool nhd = is(2, *page_size) && is(3, *heads), hnd = is(2, *heads) && is(3, *page_size);
      if (nhd != hnd) return nhd ? "NHD" : "HND";
      if (!nhd) {
        fault("paged_kv_cache", fmt::format("has shape {}, which fits neither NHD nor HND: plan() has page_size {} and "
                                            "num_kv_heads {}",
                                            shape_text(shape), *page_size, *heads));
        return "NHD";
      }
    }
    fault("--kv-layout",
          fmt::format("is required: the wrapper's constructor was not dumped, and paged_kv_cache {} fits "
                      "NHD as well as HND",
                      shape_text(shape)));
    return "NHD";
  }

  void read_mla() {
    out_.options.layout = "mla";
    move_tensor(run_, {"q_nope"}, "q_nope");
    move_tensor(run_, {"q_pe"}, "q_pe");
    move_tensor(run_, {"ckv_cache"}, "ckv");
    move_tensor(run_, {"kpe_cache"}, "kpe");
    move_tensor(plan_, {"qo_indptr"}, "qo_indptr");
    move_tensor(plan_, {"kv_indptr"}, "kv_indptr");
    move_tensor(plan_, {"kv_indices"}, "kv_indices");
    move_tensor(plan_, {"kv_len_arr"}, "kv_len_arr");
    if (!faults_.empty()) return;
    auto& tensors = out_.tensors.tensors;
    tensors["q"] = joined(tensors.at("q_nope"), tensors.at("q_pe"), "q_nope and q_pe", source());
    const std::vector<std::int64_t> lengths = dump_integers(out_.tensors, "kv_len_arr", source());
    for (const char* name : {"q_nope", "q_pe", "kv_len_arr"}) tensors.erase(name);
    indptr_to_table(out_.tensors, lengths, 1, source());
    out_.notes.emplace_back("q is q_nope and q_pe side by side; kv_indptr and kv_indices became block_table");
  }

  void read_conventions() {
    LayoutOptions& options = out_.options;
    options.attention.lse_base = attention::LseBase::two;
    const bool decode = run_.is_of(kDecode);
    const bool causal = decode || plan_.flag("causal");
    options.attention.mask = causal ? MaskKind::causal : MaskKind::none;
    const double window = plan_.number("window_left").value_or(-1);
    if (window > kMostWindow || window != std::floor(window)) {
      fault("window_left", fmt::format("is {}, no number of keys", window));
    } else if (window >= 0) {
      options.attention.mask = MaskKind::sliding_window;
      options.attention.window_left = static_cast<std::int64_t>(window);
      options.attention.window_right = causal ? 0 : -1;
    }
    if (const double cap = plan_.number("logits_soft_cap").value_or(0); cap > 0) options.attention.soft_cap = cap;
    std::optional<double> scale = plan_.number("sm_scale");
    const auto q = out_.tensors.tensors.find("q");
    if (!scale && run_.is_of(kMla)) fault("sm_scale", "is not in the arguments of plan()");
    if (const std::optional<double> q_scale = run_.number("q_scale"); q_scale && q != out_.tensors.tensors.end()) {
      scale = scale.value_or(1 / std::sqrt(static_cast<double>(q->second.shape.back()))) * *q_scale;
    }
    options.scale = scale;
    for (const char* name : {"k_scale", "v_scale"}) {
      if (const Tensor* tensor = run_.tensor(name); tensor != nullptr) {
        out_.tensors.tensors[name] = *tensor;
      } else if (const std::optional<double> number = run_.number(name)) {
        out_.tensors.tensors[name] = tensor_of<double>({}, std::vector<double>{*number});
      }
    }
  }

  void read_outputs() {
    const fs::path path = run_.folder / "outputs.safetensors";
    if (std::error_code error; !fs::exists(path, error)) {
      out_.notes.emplace_back("the folder has no outputs.safetensors: the call did not return, or was dumped as .pt");
      return;
    }
    const Bundle outputs = load_bundle(path);
    Bundle candidate;
    for (const auto& [from, to] : {std::pair{"result", "o"}, {"result_0", "o"}, {"result_1", "lse"}}) {
      if (const auto at = outputs.tensors.find(from); at != outputs.tensors.end()) candidate.tensors[to] = at->second;
    }
    if (candidate.tensors.contains("o")) out_.candidate = std::move(candidate);
  }

  Call run_, plan_;
  const FlashInferDumpOptions& options_;
  std::string kv_layout_;
  ImportedDump out_;
  std::vector<Fault> faults_;
};

}  // namespace

ImportedDump read_flashinfer_dump(const fs::path& folder, const FlashInferDumpOptions& options) {
  // A path that ends in a slash has an empty file name, and no parent with the other calls.
  fs::path clean = fs::absolute(folder).lexically_normal();
  if (!clean.has_filename()) clean = clean.parent_path();
  return DumpReader(chosen_call(clean, options), options).read();
}

}  // namespace kvscope::golden
