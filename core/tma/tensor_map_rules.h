// The encoder's rules for a tensor map. The driver reports every violation with one error number and no detail; here
// each broken rule is reported, in the order of the list, with the value, the legal values and what to do.
//
//   rule  demands                                               rule  demands
//   V01   pointers given, output 64-byte aligned                V12   32B interleave, 16-byte packed: strides % 32 B
//   V02   every enumeration inside its table                    V13   1 <= box[i] <= 256
//   V03   1 <= rank <= 5                                        V14   no interleave: box[0] is whole 16-byte chunks
//   V04   interleave: rank >= 3                                 V15   16-byte packed types: box[0] == 128
//   V05   base % 16 B                                           V16   1 <= elementStrides[i] <= 8, also [0]
//   V06   32B interleave: base % 32 B                           V17   no interleave: box[0] fits the swizzle's span
//   V07   16-byte packed types: base % 32 B                     V18   32B interleave: 32B swizzle
//   V08   1 <= dim[i] <= 2^32                                   V19   6-bit type: no interleave
//   V09   packed: dim[0] % 128 (16-byte), % 2 (8-byte)          V20   6-bit type: none, 128B, ATOM_32B or ATOM_64B
//   V10   stride[i - 1] % 16 B                                  V21   4-bit 16-byte type: none, 128B or ATOM_32B
//   V11   stride[i - 1] < 2^40                                  V22   NaN fill: a floating type
//   V23   the box's bytes fit the shared memory of an SM: 228 KiB = 233,472 B
//   target  ATOM swizzles and packed types need sm_100
//
// Each rule is checked for all dimensions before the next rule. Strides may overlap or decrease from one dimension to
// the next: shipped kernels use both. Example: bf16, 128B swizzle, box {72, 8}: V17, "72 x bf16 = 144 B, but 128B
// swizzle takes at most 128 B: use boxes of 64 elements".
// Source: CUDA driver API, cuTensorMapEncodeTiled. V16 for [0] without interleave, V23, and V01 for the strides of rank
// 1 are not in its text: an H100 with driver 13.0 rejects these maps (docs/hardware, probe H8). It returns
// INVALID_VALUE for the modes of sm_100 too (H7).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/tma/tensor_map.h"

namespace kvscope {

// In the order in which they are checked.
enum class TensorMapRule : std::uint8_t {
  V01,
  V02,
  V03,
  V04,
  V05,
  V06,
  V07,
  V08,
  V09,
  V10,
  V11,
  V12,
  V13,
  V14,
  V15,
  V16,
  V17,
  V18,
  V19,
  V20,
  V21,
  V22,
  V23,
  target,
};
[[nodiscard]] std::string_view name(TensorMapRule rule);  // "V03", "target"

struct BrokenMapRule {
  TensorMapRule rule;
  std::string where;    // "box[0]"
  std::string message;  // value, legal values, next step
  friend bool operator==(const BrokenMapRule&, const BrokenMapRule&) = default;
};

// What the encoder would return, and one result that only kvscope has.
enum class TensorMapResult : std::uint8_t {
  success,
  invalid_value,          // CUDA_ERROR_INVALID_VALUE
  unsupported_on_target,  // only kvscope: a legal map that the target's copies do not support
};

struct TensorMapReport {
  std::vector<BrokenMapRule> broken;  // in the order of the rules
  std::vector<Fault> notes;           // legal, but with an effect that is not documented: a stride of 0

  [[nodiscard]] TensorMapResult result() const;
  // Each broken rule as a fault, its place followed by its rule: "box[0] (V17)".
  [[nodiscard]] std::vector<Fault> faults() const;
  // "tensor map of <object> rejected, 2 faults: ...", with the faults above.
  // UnsupportedError when only the target rule is broken, GeometryError for any other rule; returns when none is.
  void throw_if_broken(std::string_view object) const;
};

// V02 .. V23 and the target; V01 is about the call, not the map (tensor_map_record.h).
[[nodiscard]] TensorMapReport check_tensor_map(const TensorMap& map, TmaTarget target);

}  // namespace kvscope
