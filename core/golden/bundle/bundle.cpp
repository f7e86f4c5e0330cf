#include "core/golden/bundle/bundle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/base/file.h"
#include "core/golden/bundle/bundle_file.h"
#include "core/golden/bundle/npy.h"
#include "core/golden/bundle/npz.h"
#include "core/golden/bundle/npz_bundle.h"
#include "core/golden/bundle/safetensors.h"
#include "core/golden/bundle/torch_save.h"

namespace kvscope::golden {
namespace {

constexpr std::string_view kVersionKey = "kvscope_bundle";
constexpr std::string_view kTensorsKey = "tensors";
constexpr std::string_view kChecksumKey = "manifest_crc32";
constexpr std::int64_t kChecksummedVersion = 2;  // the first version with kChecksumKey
constexpr std::string_view kMetadataKey = "kvscope";

// The keys of every manifest that a version of kvscope has written.
constexpr std::array<std::string_view, 29> kManifestKeys{
    kVersionKey,   "producer",    "layout",           "seed",       "page_size",   "positions",
    "query_heads", "kv_heads",    "head_size",        "value_size", "q_dtype",     "k_dtype",
    "v_dtype",     "scale_dtype", "granularity",      "accuracy",   "conventions", "inputs",
    "holds",       "exact",       "reduced",          "scenario",   "step",        "layer",
    "strides",     "quantizer",   "layers_in_blocks", kTensorsKey,  kChecksumKey};

bool names_torch_save(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 6> kEndings{".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt"};
  return std::ranges::find(kEndings, path.extension().string()) != kEndings.end();
}

BundleFormat format_of(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".safetensors") return BundleFormat::safetensors;
  if (ending == ".npz") return BundleFormat::npz;
  if (ending == ".npy") return BundleFormat::npy;
  if (names_torch_save(path)) {
    throw InputError(path.string(), "", fmt::format("'{}' is {}", ending, torch_save_advice(path)));
  }
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    throw InputError(path.string(), "", "is a folder: name a file in it");
  }
  throw InputError(path.string(), "",
                   ending.empty()
                       ? std::string("has no ending; endings of bundles are .safetensors, .npz and .npy")
                       : fmt::format("ending '{}' names no bundle; endings are .safetensors, .npz and .npy", ending));
}

std::string crc_text(const Tensor& tensor) {
  return fmt::format("{:08x}", crc32(as_text(tensor)));
}

json::Value tensor_line(const Tensor& tensor) {
  json::Array shape;
  for (const std::int64_t extent : tensor.shape) shape.emplace_back(extent);
  json::Value line;
  line.set("dtype", name(tensor.dtype));
  line.set("shape", std::move(shape));
  line.set("crc32", crc_text(tensor));
  return line;
}

// Eight digits: the checksum of the manifest without its member kChecksumKey.
std::string manifest_checksum(const json::Value& manifest) {
  json::Object checked;
  for (const auto& [key, value] : *manifest.as_object()) {
    if (key != kChecksumKey) checked.emplace_back(key, value);
  }
  return fmt::format("{:08x}", crc32(json::dump(json::Value(std::move(checked)), -1)));
}

void check_manifest_keys(const json::Value& manifest, std::vector<Fault>& faults) {
  for (const auto& [key, unused] : *manifest.as_object()) {
    if (std::find(kManifestKeys.begin(), kManifestKeys.end(), key) == kManifestKeys.end()) {
      faults.push_back({"manifest", fmt::format("unknown key '{}': the file was damaged, or the key is not one of "
                                                "kvscope; keys are {}",
                                                key, fmt::join(kManifestKeys, ", "))});
    }
  }
}

json::Value full_manifest(const Bundle& bundle) {
  json::Object manifest{{std::string(kVersionKey), kBundleVersion}};
  if (const json::Object* given = bundle.manifest.as_object()) {
    for (const auto& [key, value] : *given) {
      if (key != kVersionKey && key != kTensorsKey && key != kChecksumKey) manifest.emplace_back(key, value);
    }
  }
  json::Object lines;
  for (const auto& [tensor_name, tensor] : bundle.tensors) lines.emplace_back(tensor_name, tensor_line(tensor));
  manifest.emplace_back(kTensorsKey, std::move(lines));
  json::Value value(std::move(manifest));
  value.set(kChecksumKey, manifest_checksum(value));
  return value;
}

// The manifest as it is written to a file.
json::Value checked_manifest(const Bundle& bundle, std::string_view source) {
  json::Value manifest = full_manifest(bundle);
  std::vector<Fault> faults;
  check_manifest_keys(manifest, faults);
  if (!faults.empty()) throw InputError(std::string(source), std::move(faults));
  return manifest;
}

// Compares one tensor with its entry in the manifest.
void check_line(const std::string& tensor_name, const json::Value& line, const Tensor* tensor,
                std::vector<Fault>& faults) {
  const std::string where = fmt::format("tensor '{}'", tensor_name);
  if (tensor == nullptr) {
    faults.push_back({where, "the manifest lists it, the file does not have it"});
    return;
  }
  const json::Value is = tensor_line(*tensor);
  if (const json::Object* members = line.as_object(); members != nullptr) {
    for (const auto& [key, unused] : *members) {
      if (is.find(key) == nullptr) faults.push_back({where, fmt::format("unknown key '{}' in the manifest", key)});
    }
  }
  for (const char* key : {"dtype", "shape", "crc32"}) {
    const json::Value* claimed = line.find(key);
    if (claimed == nullptr) {
      faults.push_back({where, fmt::format("the manifest does not give its {}", key)});
    } else if (*claimed != *is.find(key)) {
      const bool damaged = std::string_view(key) == "crc32";
      faults.push_back(
          {where, fmt::format("the manifest says {} {}, the file has {}{}", key, json::dump(*claimed, -1),
                              json::dump(*is.find(key), -1), damaged ? ": the file was changed or damaged" : "")});
    }
  }
}

// A version before 2 has no checksum; one that is there is compared in any version.
void check_manifest_checksum(const json::Value& manifest, std::int64_t version, std::vector<Fault>& faults) {
  const json::Value* claimed = manifest.find(kChecksumKey);
  if (claimed == nullptr) {
    if (version < kChecksummedVersion) return;
    faults.push_back({"manifest", fmt::format("'{}', the checksum of the manifest, is missing, but version {} has it: "
                                              "the file was changed or damaged",
                                              kChecksumKey, version)});
    return;
  }
  const std::string is = manifest_checksum(manifest);
  if (claimed->as_string() == nullptr || *claimed->as_string() != is) {
    faults.push_back({"manifest", fmt::format("{} is {}, but the manifest has \"{}\": the file was changed or damaged",
                                              kChecksumKey, json::dump(*claimed, -1), is)});
  }
}

// A manifest under a damaged key would be skipped, and its checks with it.
void check_other_metadata(const std::map<std::string, std::string>& metadata, std::string_view source) {
  for (const auto& [key, text] : metadata) {
    if (key != kMetadataKey && text.find(kVersionKey) != std::string::npos) {
      throw InputError(source, fmt::format("__metadata__ '{}'", key),
                       fmt::format("holds a manifest of kvscope, which belongs under '{}': the file was changed or "
                                   "damaged",
                                   kMetadataKey));
    }
  }
}

// The tensors and the manifest of a file, which is compared with them.
Bundle checked_bundle(Safetensors file, const std::string& source) {
  Bundle bundle;
  bundle.tensors = std::move(file.tensors);
  check_other_metadata(file.metadata, source);
  const auto manifest = file.metadata.find(std::string(kMetadataKey));
  if (manifest != file.metadata.end()) bundle.manifest = json::parse(manifest->second, source + " (manifest)");
  verify_manifest(bundle, source);
  return bundle;
}

}  // namespace

void verify_manifest(const Bundle& bundle, std::string_view source) {
  if (bundle.manifest.is_null()) return;
  const json::Value* version = bundle.manifest.find(kVersionKey);
  if (version == nullptr || version->as_i64() == nullptr || *version->as_i64() < 1) {
    throw InputError(source, "manifest",
                     fmt::format("'{}', the format version, is missing or not a positive integer", kVersionKey));
  }
  if (*version->as_i64() > kBundleVersion) {
    throw InputError(source, "manifest",
                     fmt::format("bundle version {} is newer than {}, the newest this program reads: update kvscope",
                                 *version->as_i64(), kBundleVersion));
  }
  std::vector<Fault> faults;
  check_manifest_checksum(bundle.manifest, *version->as_i64(), faults);
  check_manifest_keys(bundle.manifest, faults);
  if (!faults.empty()) throw InputError(source, std::move(faults));
  const json::Value* lines = bundle.manifest.find(kTensorsKey);
  if (lines == nullptr || !lines->is_object()) {
    throw InputError(source, "manifest",
                     "'tensors', the list of types, shapes and checksums, is missing or not an object");
  }
  for (const auto& [tensor_name, line] : *lines->as_object()) {
    const auto found = bundle.tensors.find(tensor_name);
    check_line(tensor_name, line, found == bundle.tensors.end() ? nullptr : &found->second, faults);
  }
  for (const auto& [tensor_name, unused] : bundle.tensors) {
    if (lines->find(tensor_name) == nullptr) {
      faults.push_back({fmt::format("tensor '{}'", tensor_name), "the file has it, the manifest does not list it"});
    }
  }
  if (!faults.empty()) throw InputError(source, std::move(faults));
}

std::string manifest_note(const Bundle& bundle) {
  const json::Value* version = bundle.manifest.find(kVersionKey);
  if (version == nullptr || version->as_i64() == nullptr || *version->as_i64() >= kChecksummedVersion) return {};
  return fmt::format(
      "bundle version {} has no checksum of its manifest, so damage to its conventions is not detected: "
      "write the file again with this version of kvscope",
      *version->as_i64());
}

Bundle load_bundle(const std::filesystem::path& path) {
  const BundleFormat format = format_of(path);
  if (format != BundleFormat::safetensors) return parse_bundle(read_bundle_file(path, format), path);
  const BundleFile file(path);
  const std::string source = path.string();
  const std::string start = checked_start(file, path, format);
  return checked_bundle(
      read_safetensors(start, static_cast<std::uint64_t>(file.size()), source,
                       [&](std::int64_t at, std::int64_t count) { return file.read_exactly(at, count); }),
      source);
}

Bundle parse_bundle(std::string_view bytes, const std::filesystem::path& name) {
  const BundleFormat format = format_of(name);
  const std::string source = name.string();
  Bundle bundle;
  if (format == BundleFormat::npz) {
    bundle = parse_npz(bytes, source);
  } else if (format == BundleFormat::npy) {
    Tensor tensor = parse_npy(bytes, source);
    NpyName split = split_npy_name(name.stem().string(), tensor.dtype);
    if (split.dtype) tensor = reinterpret_as(std::move(tensor), *split.dtype);
    bundle.tensors.emplace(std::move(split.name), std::move(tensor));
  } else {
    return checked_bundle(parse_safetensors(bytes, source), source);
  }
  verify_manifest(bundle, source);
  return bundle;
}

void check_bundle_name(const std::filesystem::path& path) {
  if (names_torch_save(path)) {
    std::filesystem::path instead = path;
    throw InputError(path.string(), "",
                     fmt::format("'{}' is the format of torch.save, which kvscope does not write: name the file {}",
                                 path.extension().string(), instead.replace_extension(".safetensors").string()));
  }
  static_cast<void>(format_of(path));
}

std::string npz_bundle_bytes(const Bundle& bundle) {
  return npz_bytes(bundle.tensors, checked_manifest(bundle, "bundle"));
}

json::Value save_bundle(const std::filesystem::path& path, const Bundle& bundle) {
  const BundleFormat format = format_of(path);
  json::Value manifest = checked_manifest(bundle, path.string());
  if (format == BundleFormat::npy) {
    if (bundle.tensors.size() != 1) {
      throw InputError(path.string(), "",
                       fmt::format("an npy file holds one tensor, this bundle has {}: save as .safetensors or .npz",
                                   bundle.tensors.size()));
    }
    write_npy(path, bundle.tensors.begin()->second);
  } else if (format == BundleFormat::npz) {
    write_file_atomically(path, npz_bytes(bundle.tensors, manifest));
  } else {
    write_file_atomically(path,
                          safetensors_bytes({bundle.tensors, {{std::string(kMetadataKey), json::dump(manifest, -1)}}}));
  }
  return manifest;
}

}  // namespace kvscope::golden
