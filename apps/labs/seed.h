// The seeds of a lab: every student is graded with other cases, and the same ones whenever the grading is repeated.
//
//   public    SHA-256 of the lab's name: the cases of `kvscope lab check`, the same for everyone
//   task      HMAC-SHA256(key "kvscope task", student, lab): the numbers that a student is given to work on
//   grading   HMAC-SHA256(key = the course's secret, student, lab): `kvscope lab grade`. Printed after the deadline, it
//             replays the grading on the student's machine: `kvscope lab check --seed HEX`
//
// Example: HMAC-SHA256 with the key "key" over "The quick brown fox jumps over the lazy dog" begins with f7bc83f4.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/random.h"

namespace kvscope::labs {

using Digest = std::array<std::uint8_t, 32>;

[[nodiscard]] Digest sha256(std::string_view bytes);                             // FIPS 180-4
[[nodiscard]] Digest hmac_sha256(std::string_view key, std::string_view bytes);  // RFC 2104

struct Seed {
  Digest digest{};

  // Independent random numbers: one stream per purpose. Two streams of one seed share no number.
  [[nodiscard]] CounterRng random(std::uint64_t stream) const;
  [[nodiscard]] std::string text() const;  // 64 hexadecimal digits
  friend bool operator==(const Seed&, const Seed&) = default;
};

[[nodiscard]] Seed public_seed(std::string_view lab);
[[nodiscard]] Seed task_seed(std::string_view student, std::string_view lab);
[[nodiscard]] Seed grading_seed(std::string_view secret, std::string_view student, std::string_view lab);
// InputError unless `text` is 64 hexadecimal digits.
[[nodiscard]] Seed parse_seed(std::string_view text);

}  // namespace kvscope::labs
