// Tensors that an engine wrote to disk, read as the input of `kvscope golden`. Every reader returns tensors under the
// names of one layout (layouts.h), the options that the dump states, and the engine's own output if it is there.
//
//   FlashInfer's log, level 10 (FLASHINFER_LOGLEVEL=10): a folder per call, with metadata.jsonl and inputs.safetensors
//   flashinfer-bench: a definition (JSON), and workloads (one JSON object a line) with tensors in safetensors files
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/golden/bundle/tensor.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::golden {

struct ImportedDump {
  Bundle tensors;
  LayoutOptions options;            // layout, mask, scale, soft cap, base of lse
  std::optional<Bundle> candidate;  // o, and lse if the engine returned it
  std::string what;                 // "BatchDecodeWithPagedKVCacheWrapper.run", "gqa_paged_decode_h32_kv8_d128_ps16"
  std::vector<std::string> notes;   // what was made up or rearranged
};

struct FlashInferDumpOptions {
  std::optional<std::string> call;       // the folder of a call, for a folder with several
  std::optional<std::string> kv_layout;  // "NHD" or "HND", where the dump does not tell
};

// `folder` is the folder of one call, or FLASHINFER_DUMP_DIR with the folders of several. Reads run() of
// BatchDecodeWithPagedKVCacheWrapper, BatchPrefillWithPagedKVCacheWrapper and BatchMLAPagedAttentionWrapper; the last
// plan() of the same wrapper before it has the index tensors. InputError with all faults: a call of another function,
// tensors that were dumped with torch.save, a plan() that is not in the folder, arguments that kvscope cannot compute.
[[nodiscard]] ImportedDump read_flashinfer_dump(const std::filesystem::path& folder,
                                                const FlashInferDumpOptions& options = {});

struct FlashInferBenchOptions {
  std::optional<std::filesystem::path> definition;  // default: definitions/<op>/<name>.json beside workloads/
  std::optional<std::string> uuid;                  // of the workload; default: the file's only one
  std::uint64_t seed = 1;                           // of inputs that the workload calls random
};

// `workloads` is a .jsonl file. Reads definitions of op_type gqa_paged and mla_paged. Inputs of type "random" are made
// from the seed: mean 0, deviation 1, rounded to their type. InputError as above.
[[nodiscard]] ImportedDump read_flashinfer_bench(const std::filesystem::path& workloads,
                                                 const FlashInferBenchOptions& options = {});

}  // namespace kvscope::golden
