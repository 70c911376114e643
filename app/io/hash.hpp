#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace poisson::app {

/// A hash of 64 bits, FNV-1a: it tells what is equal by chance from what was changed, not from what was forged. Every step is one
/// to one, so that a change of one byte, or of one word, changes it.
class Hash {
public:
  void add(char byte) {
    value_ ^= static_cast<unsigned char>(byte);
    value_ *= 0x100000001b3u;
  }
  void add_text(std::string_view text) {
    for (char const byte : text)
      add(byte);
  }
  /// By words of eight bytes, which takes an eighth of the time and gives another hash; the last bytes one by one. How a row of
  /// bytes is cut into blocks makes no difference as long as all but the last one have a multiple of eight bytes.
  void add_words(std::span<char const> block) {
    std::size_t const words = block.size() / sizeof(std::uint64_t);
    for (std::size_t i = 0; i < words; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, block.data() + i * sizeof word, sizeof word);
      value_ = std::rotl((value_ ^ word) * 0x100000001b3u, 23);  // so that the highest bits reach the lowest
    }
    for (char const byte : block.subspan(words * sizeof(std::uint64_t)))
      add(byte);
  }
  /// 16 hexadecimal digits.
  [[nodiscard]] std::string digits() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value_));
    return text;
  }

private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace poisson::app
