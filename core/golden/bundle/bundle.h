// A bundle: tensors in one file, and the manifest with the information needed to read them. The name's ending selects
// the file format:
//
//   .safetensors   the main format; the manifest is JSON text under the metadata key "kvscope"
//   .npz           for NumPy; the manifest is the member manifest.json
//   .npy           one tensor, named after the file; no manifest
//   .pt .pth .bin .pkl   rejected, because a pickle can execute code; the message says how to convert it
//
// The manifest of a bundle written here:
//
//   {"kvscope_bundle": 1,                         format version; older ones open, newer ones are rejected
//    "producer": "kvscope 0.1.0", "layout": "max", "seed": 7, "conventions": {...}, "strides": {...},
//                                                 set by the caller
//    "tensors": {"k": {"dtype": "bf16", "shape": [2, 3], "crc32": "0f1e2d3c"}}}
//                                                 added when it is saved
//
// On load every tensor is checked against its entry. A file without a manifest (a user's tensors) is legal.
#pragma once

#include <filesystem>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

inline constexpr std::int64_t kBundleVersion = 1;

// InputError: unreadable, not the format of its ending, a newer version, tensors that do not match the manifest.
[[nodiscard]] Bundle load_bundle(const std::filesystem::path& path);

// Throws the InputError that save_bundle would throw for the name's ending; call it before a long computation.
void check_bundle_name(const std::filesystem::path& path);

// Writes the whole file or none. The manifest written is `bundle.manifest` (null: an empty one) with "kvscope_bundle"
// and "tensors" set; .npy takes one tensor and drops the manifest. Returns the manifest as written to the file.
json::Value save_bundle(const std::filesystem::path& path, const Bundle& bundle);

// Compares the manifest with the tensors: version, names, types, shapes, checksums. Throws
// InputError with all faults.
void verify_manifest(const Bundle& bundle, std::string_view source);

}  // namespace kvscope::golden
