#include "core/golden/bundle/bundle.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/base/file.h"
#include "core/golden/bundle/npy.h"
#include "core/golden/bundle/npz.h"
#include "core/golden/bundle/safetensors.h"
#include "core/golden/bundle/torch_save.h"

namespace kvscope::golden {
namespace {

constexpr std::string_view kVersionKey = "kvscope_bundle";
constexpr std::string_view kMetadataKey = "kvscope";

enum class Format { safetensors, npz, npy };

Format format_of(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".safetensors") return Format::safetensors;
  if (ending == ".npz") return Format::npz;
  if (ending == ".npy") return Format::npy;
  if (ending == ".pt" || ending == ".pth" || ending == ".bin" || ending == ".pkl" || ending == ".pickle" ||
      ending == ".ckpt") {
    throw InputError(path.string(), "", fmt::format("'{}' is {}", ending, torch_save_advice(path)));
  }
  throw InputError(path.string(), "",
                   fmt::format("ending '{}' names no bundle; endings are .safetensors, .npz and .npy", ending));
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

json::Value full_manifest(const Bundle& bundle) {
  json::Object manifest{{std::string(kVersionKey), kBundleVersion}};
  if (const json::Object* given = bundle.manifest.as_object()) {
    for (const auto& [key, value] : *given) {
      if (key != kVersionKey && key != "tensors") manifest.emplace_back(key, value);
    }
  }
  json::Object lines;
  for (const auto& [tensor_name, tensor] : bundle.tensors) lines.emplace_back(tensor_name, tensor_line(tensor));
  manifest.emplace_back("tensors", std::move(lines));
  return json::Value(std::move(manifest));
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
  const json::Value* lines = bundle.manifest.find("tensors");
  if (lines == nullptr || !lines->is_object()) {
    throw InputError(source, "manifest",
                     "'tensors', the list of types, shapes and checksums, is missing or not an object");
  }
  std::vector<Fault> faults;
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

Bundle load_bundle(const std::filesystem::path& path) {
  const Format format = format_of(path);
  const std::string source = path.string();
  const std::string bytes = read_file(path, kMaxFileBytes);
  if (is_torch_save(bytes)) {
    throw InputError(source, "", "was written by torch.save, as " + torch_save_advice(path));
  }
  Bundle bundle;
  if (format == Format::npz) {
    bundle = parse_npz(bytes, source);
  } else if (format == Format::npy) {
    Tensor tensor = parse_npy(bytes, source);
    NpyName split = split_npy_name(path.stem().string(), tensor.dtype);
    if (split.dtype) tensor = reinterpret_as(std::move(tensor), *split.dtype);
    bundle.tensors.emplace(std::move(split.name), std::move(tensor));
  } else {
    Safetensors file = parse_safetensors(bytes, source);
    bundle.tensors = std::move(file.tensors);
    const auto manifest = file.metadata.find(std::string(kMetadataKey));
    if (manifest != file.metadata.end()) bundle.manifest = json::parse(manifest->second, source + " (manifest)");
  }
  verify_manifest(bundle, source);
  return bundle;
}

void check_bundle_name(const std::filesystem::path& path) {
  static_cast<void>(format_of(path));
}

json::Value save_bundle(const std::filesystem::path& path, const Bundle& bundle) {
  const Format format = format_of(path);
  json::Value manifest = full_manifest(bundle);
  if (format == Format::npy) {
    if (bundle.tensors.size() != 1) {
      throw InputError(path.string(), "",
                       fmt::format("an npy file holds one tensor, this bundle has {}: save as .safetensors or .npz",
                                   bundle.tensors.size()));
    }
    write_npy(path, bundle.tensors.begin()->second);
  } else if (format == Format::npz) {
    write_file_atomically(path, npz_bytes(bundle.tensors, manifest));
  } else {
    write_file_atomically(path,
                          safetensors_bytes({bundle.tensors, {{std::string(kMetadataKey), json::dump(manifest, -1)}}}));
  }
  return manifest;
}

}  // namespace kvscope::golden
