// A bundle is what one person hands to another: tensors and the manifest that says how to read them. Which file it is
// in is told by the name's ending:
//
//   .safetensors   the format of record; the manifest is JSON text under the metadata key "kvscope"
//   .npz           for NumPy; the manifest is the member manifest.json
//   .npy           one tensor, called after the file; no manifest
//   .pt .pth .bin .pkl   refused: a pickle is code; the message says how to convert it
//
// The manifest of a bundle written here:
//
//   {"kvscope_bundle": 1,                         format version; an older one opens, a newer one is refused
//    "producer": "kvscope 0.1.0", "layout": "max", "seed": 7, "conventions": {...}, "strides": {...},
//                                                 as the caller set them
//    "tensors": {"k": {"dtype": "bf16", "shape": [2, 3], "crc32": "0f1e2d3c"}}}
//                                                 added when it is saved
//
// On load every tensor is checked against its line. A file without a manifest is a user's own tensors, and legal.
#pragma once

#include <filesystem>

#include "core/golden/tensor.h"

namespace kvscope::golden {

inline constexpr std::int64_t kBundleVersion = 1;

// InputError: unreadable, not the format its ending says, a newer version, tensors that are not the manifest's.
[[nodiscard]] Bundle load_bundle(const std::filesystem::path& path);

// Throws the InputError that save_bundle would throw for the name's ending: for asking before hours of computing.
void check_bundle_name(const std::filesystem::path& path);

// Writes the whole file or none. The manifest written is `bundle.manifest` (null: an empty one) with "kvscope_bundle"
// and "tensors" set; .npy takes one tensor and drops the manifest. Returns the manifest as it stands in the file.
json::Value save_bundle(const std::filesystem::path& path, const Bundle& bundle);

// The manifest's claims against the tensors: version, names, types, shapes, checksums. Throws
// InputError with all faults.
void verify_manifest(const Bundle& bundle, std::string_view source);

}  // namespace kvscope::golden
