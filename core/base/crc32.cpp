// CRC-32 by carry-less multiplications where the processor has them, else by zlib.
#include <zlib.h>

#include <cstdint>
#include <string_view>

#include "core/base/file.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kvscope {
namespace {

std::uint32_t crc32_of_zlib(std::uint32_t crc, const unsigned char* bytes, std::size_t count) {
  return static_cast<std::uint32_t>(::crc32_z(crc, bytes, count));
}

#if defined(__x86_64__)
#define KVSCOPE_CLMUL __attribute__((target("pclmul,sse4.1")))

// Folding: a polynomial of 128 bits that is n bits before another one is replaced by an equal remainder at the place
// of the other. The factors are x^(n + 32) and x^(n - 32) modulo the CRC's polynomial, bits reversed:
// Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009.
KVSCOPE_CLMUL __m128i folded(__m128i x, __m128i factors, __m128i other) {
  const __m128i low = _mm_clmulepi64_si128(x, factors, 0x00);
  const __m128i high = _mm_clmulepi64_si128(x, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), other);
}

KVSCOPE_CLMUL __m128i loaded(const unsigned char* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

// Precondition: `count` is at least 64 and a multiple of 16. `crc` and the result are not inverted.
KVSCOPE_CLMUL std::uint32_t crc32_by_folding(std::uint32_t crc, const unsigned char* bytes, std::size_t count) {
  const __m128i by_512 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
  const __m128i by_128 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  const __m128i by_64 = _mm_set_epi64x(0, 0x0163cd6124);
  const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);  // the quotient, and the polynomial
  const __m128i low_words = _mm_setr_epi32(-1, 0, -1, 0);

  __m128i a = _mm_xor_si128(loaded(bytes), _mm_cvtsi32_si128(static_cast<int>(crc)));
  __m128i b = loaded(bytes + 16), c = loaded(bytes + 32), d = loaded(bytes + 48);
  bytes += 64;
  count -= 64;
  for (; count >= 64; bytes += 64, count -= 64) {
    a = folded(a, by_512, loaded(bytes));
    b = folded(b, by_512, loaded(bytes + 16));
    c = folded(c, by_512, loaded(bytes + 32));
    d = folded(d, by_512, loaded(bytes + 48));
  }
  a = folded(a, by_128, b);
  a = folded(a, by_128, c);
  a = folded(a, by_128, d);
  for (; count >= 16; bytes += 16, count -= 16) a = folded(a, by_128, loaded(bytes));

  // 128 bits to 96, to 64, and Barrett's reduction to 32.
  a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_128, 0x10));
  a = _mm_xor_si128(_mm_srli_si128(a, 4), _mm_clmulepi64_si128(_mm_and_si128(a, low_words), by_64, 0x00));
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(a, low_words), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_words), barrett, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(a, quotient), 1));
}

bool has_clmul() {
  static const bool kHas = __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
  return kHas;
}
#endif

}  // namespace

std::uint32_t crc32(std::string_view bytes, std::uint32_t seed) {
  // zlib returns the start value for a null pointer and ignores the seed.
  if (bytes.empty()) return seed;
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t count = bytes.size();
#if defined(__x86_64__)
  if (count >= 64 && has_clmul()) {
    const std::size_t whole = count / 16 * 16;
    seed = ~crc32_by_folding(~seed, at, whole);
    at += whole;
    count -= whole;
  }
#endif
  return count == 0 ? seed : crc32_of_zlib(seed, at, count);
}

}  // namespace kvscope
