#include "output/vtk/base64.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace poisson::output {

namespace {

constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The two characters of every 12 bits: a group is two look-ups.
struct Pairs {
  std::array<char, 2 * 4096> text{};
  constexpr Pairs() {
    for (std::size_t i = 0; i < 4096; ++i) {
      text[2 * i] = alphabet[i >> 6];
      text[2 * i + 1] = alphabet[i & 63];
    }
  }
};
constexpr Pairs pairs;

void put(std::uint32_t twelve_bits, char* out) {
  std::memcpy(out, pairs.text.data() + 2 * twelve_bits, 2);
}

#ifdef __x86_64__
/// Encodes groups while there are 28 bytes to read, 24 at a time, and returns how many bytes that were. The method is W. Mula's and
/// D. Lemire's: Faster Base64 Encoding and Decoding Using AVX2 Instructions, ACM Transactions on the Web 12 (2018).
__attribute__((target("avx2"))) std::size_t encode_with_avx2(unsigned char const* in, std::size_t n, char* out) {
  __m256i const bytes =
      _mm256_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10, 1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
  // What is added to six bits, by their range: a ... z, ten digits, +, /, A ... Z.
  __m256i const shifts = _mm256_setr_epi8(71, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 65, 0, 0, 71, -4, -4, -4, -4, -4,
                                          -4, -4, -4, -4, -4, -19, -16, 65, 0, 0);
  std::size_t i = 0;
  for (; i + 28 <= n; i += 24, out += 32) {
    __m128i const low = _mm_loadu_si128(reinterpret_cast<__m128i const*>(in + i));
    __m128i const high = _mm_loadu_si128(reinterpret_cast<__m128i const*>(in + i + 12));
    __m256i const groups = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), bytes);
    __m256i const even = _mm256_mulhi_epu16(_mm256_and_si256(groups, _mm256_set1_epi32(0x0fc0fc00)), _mm256_set1_epi32(0x04000040));
    __m256i const odd = _mm256_mullo_epi16(_mm256_and_si256(groups, _mm256_set1_epi32(0x003f03f0)), _mm256_set1_epi32(0x01000010));
    __m256i const six = _mm256_or_si256(even, odd);
    __m256i const upper_case = _mm256_and_si256(_mm256_cmpgt_epi8(_mm256_set1_epi8(26), six), _mm256_set1_epi8(13));
    __m256i const range = _mm256_or_si256(_mm256_subs_epu8(six, _mm256_set1_epi8(51)), upper_case);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_add_epi8(_mm256_shuffle_epi8(shifts, range), six));
  }
  return i;
}
#endif

}  // namespace

void encode_base64(unsigned char const* in, std::size_t n, char* out) {
  std::size_t i = 0;
#ifdef __x86_64__
  static bool const avx2 = __builtin_cpu_supports("avx2");
  if (avx2)
    i = encode_with_avx2(in, n, out);
  out += i / 3 * 4;
#endif
  for (; i + 3 <= n; i += 3, out += 4) {
    std::uint32_t const bits = static_cast<std::uint32_t>(in[i]) << 16 | static_cast<std::uint32_t>(in[i + 1]) << 8 | in[i + 2];
    put(bits >> 12, out);
    put(bits & 4095, out + 2);
  }
  if (i == n)
    return;
  std::uint32_t const bits =
      static_cast<std::uint32_t>(in[i]) << 16 | (i + 1 < n ? static_cast<std::uint32_t>(in[i + 1]) << 8 : 0U);
  put(bits >> 12, out);
  put(bits & 4095, out + 2);
  out[3] = '=';
  if (i + 1 == n)
    out[2] = '=';
}

}  // namespace poisson::output
