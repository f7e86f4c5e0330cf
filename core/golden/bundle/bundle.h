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
//   {"kvscope_bundle": 2,                         format version; older ones open, newer ones are rejected
//    "producer": "kvscope 0.1.0", "layout": "max", "seed": 7, "conventions": {...}, "strides": {...},
//                                                 set by the caller
//    "tensors": {"k": {"dtype": "bf16", "shape": [2, 3], "crc32": "0f1e2d3c"}},
//    "manifest_crc32": "4a5b6c7d"}                both added when it is saved
//
// manifest_crc32 is the CRC-32 of the manifest's compact JSON text without this member: no blanks, members in the order
// of the file. On load the manifest is checked against it, and every tensor against its entry. Unknown keys are
// rejected: a damaged key would otherwise disable its check. Version 1 has no manifest_crc32; such a bundle opens with
// a note. A file without a manifest (a user's tensors) is legal.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

inline constexpr std::int64_t kBundleVersion = 2;

// InputError: unreadable, not the format of its ending, a newer version, a damaged manifest, tensors that do not match
// it. A file that does not begin as its format does is rejected after its first 8 bytes.
[[nodiscard]] Bundle load_bundle(const std::filesystem::path& path);
// The same from the bytes of a file of that name.
[[nodiscard]] Bundle parse_bundle(std::string_view bytes, const std::filesystem::path& name);

// Throws the InputError that save_bundle would throw for the name's ending; call it before a long computation.
void check_bundle_name(const std::filesystem::path& path);

// Writes the whole file or none. The manifest written is `bundle.manifest` (null: an empty one) with "kvscope_bundle",
// "tensors" and "manifest_crc32" set; .npy takes one tensor and drops the manifest. Returns the manifest as written to
// the file. InputError for a manifest with a key that load_bundle would reject.
json::Value save_bundle(const std::filesystem::path& path, const Bundle& bundle);

// Compares the manifest with its checksum and with the tensors: version, keys, names, types, shapes, checksums. Throws
// InputError with all faults.
void verify_manifest(const Bundle& bundle, std::string_view source);

// What verify_manifest cannot check: one sentence for a manifest of version 1, empty for any other bundle.
[[nodiscard]] std::string manifest_note(const Bundle& bundle);

}  // namespace kvscope::golden
