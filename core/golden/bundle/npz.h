// NumPy's .npz: a zip of .npy members, one per tensor, and `manifest.json` when the bundle has one. numpy.load opens
// files written here: arrays under their stems ("k_cache_bf16" of uint16, see npy.h), the manifest as bytes.
//
// Members are stored, not deflated, in the order of their names, with the date 1980-01-01: equal bundles give equal
// bytes. Deflated members are read too.
//
// Rejected, all faults of an archive at once, before any member is unpacked: encryption, methods other than stored and
// deflated, absolute names and names with "..", members that are not .npy, two members for one tensor, and zip bombs: a
// member that claims more than deflate can give (1032 bytes for each stored one), or an archive that unpacks to more
// than 256 MiB + 100 times its size, and bytes of the archive that belong to no record or to two (zip_layout.h). A
// member's checksum and length are verified while it is read.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

// InputError naming `source` and, as `where`, the member.
[[nodiscard]] Bundle parse_npz(std::string_view bytes, std::string_view source);
// InputError for tensors whose names would change on reading (npy.h, join_npy_name) or are not legal member names.
// A null manifest is left out.
[[nodiscard]] std::string npz_bytes(const std::map<std::string, Tensor>& tensors, const json::Value& manifest);

}  // namespace kvscope::golden
