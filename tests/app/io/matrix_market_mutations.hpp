#pragma once

#include "app/io/matrix_market.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace poisson::app::test {

/// Damaged Matrix Market texts: small valid files with bytes changed, pieces taken out, doubled or exchanged, and awkward words put
/// in. The same seed gives the same texts.
class MatrixMarketMutations {
public:
  explicit MatrixMarketMutations(std::uint64_t seed) : random_(seed) {}

  std::string next() {
    static std::vector<std::string> const seeds{
        "%%MatrixMarket matrix coordinate real general\n% a comment\n\n3 4 5\n1 1 1.5\n2 3 -2e-3\n3 4 +7\n1 1 0.25\n2 1 1D+01\n",
        "%%MatrixMarket matrix coordinate integer symmetric\n3 3 4\n1 1 4\n2 1 -1\n2 2 4\n3 3 4\n",
        "%%matrixmarket MATRIX Coordinate Pattern General\r\n2 2 3\r\n1 2\r\n2 1\r\n2 2\r\n",
        "%%MatrixMarket matrix array real general\n4 1\n1\n-2.5\n3e2\n4\n",
        "%%MatrixMarket matrix array real general\n2 3\n1\n-2.5\n3e2\n4\n5\n6\n",
        "%%MatrixMarket matrix array integer symmetric\n3 3\n1\n-2\n3\n4\n5\n6\n",
        "%%MatrixMarket matrix coordinate real general\n5 1 2\n2 1 1.0\n5 1 2.0\n"};
    static std::vector<std::string> const words{"0",
                                                "-1",
                                                "2147483647",
                                                "2147483646",
                                                "4294967297",
                                                "9223372036854775807",
                                                "99999999999999999999999",
                                                "nan",
                                                "inf",
                                                "-inf",
                                                "1e999",
                                                "1e-999",
                                                "1.0-400",
                                                "1D",
                                                "+",
                                                "-",
                                                "+-1",
                                                ".",
                                                "e5",
                                                "0x1p3",
                                                "1e",
                                                "%",
                                                "%%",
                                                "\n",
                                                "\r\n",
                                                "\n\n",
                                                "\t",
                                                std::string(1, '\0'),
                                                "complex",
                                                "hermitian",
                                                "symmetric",
                                                "skew-symmetric",
                                                "array",
                                                "pattern",
                                                "coordinate",
                                                " 1 1 1 ",
                                                "1 1 1\n",
                                                "\xff\xfe",
                                                std::string(300, '7'),
                                                std::string(70000, ' '),
                                                std::string(200, '0') + "1"};
    std::string text = seeds[pick(seeds.size())];
    for (std::size_t edits = 1 + pick(4); edits > 0; --edits) {
      std::size_t const at = pick(text.size() + 1);
      switch (pick(8)) {
      case 0:
        if (at < text.size())
          text[at] = static_cast<char>(pick(256));
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.erase(at, 1 + pick(8));
        break;
      case 3:
        text.insert(at, text.substr(pick(text.size() + 1), 1 + pick(40)));
        break;
      case 4:
        text.insert(at, 1, static_cast<char>(pick(256)));
        break;
      case 5:  // a digit for another keeps the form and changes the numbers
        for (std::size_t i = at; i < text.size(); ++i)
          if (text[i] >= '0' && text[i] <= '9') {
            text[i] = static_cast<char>('0' + pick(10));
            break;
          }
        break;
      default:  // a word for a word
        std::size_t const begin = text.find_first_not_of(" \n", at);
        if (begin == std::string::npos)
          break;
        std::size_t const end = std::min(text.find_first_of(" \n", begin), text.size());
        text.replace(begin, end - begin, words[pick(words.size())]);
      }
    }
    return text;
  }

private:
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::mt19937_64 random_;
};

/// Reads `text` as matrix and as vector. Returns what is wrong with how the reader behaved, or nothing: it must give what is
/// consistent, or an InputError that names file and line.
inline std::string misbehaviour(std::string const& text, int& accepted) {
  auto const guarded = [](auto const& body) -> std::string {
    try {
      return body();
    } catch (InputError const& error) {
      std::string const message = error.what();
      if (message.rfind("FILE:", 0) != 0 || message.find(": ") == std::string::npos || message[5] < '1' || message[5] > '9')
        return "message without file and line: " + message;
      for (char const c : message)
        if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126)
          return "message with unprintable bytes: " + message;
      return "";
    } catch (std::exception const& error) {
      return std::string("not an InputError: ") + error.what();
    }
  };
  std::string const of_matrix = guarded([&]() -> std::string {
    CooMatrix const coo = parse_matrix_market(text, "FILE");
    std::size_t const n = coo.values.size();
    if (coo.rows.size() != n || coo.columns.size() != n)
      return "arrays of different length";
    if (n > text.size())
      return "more entries than bytes";
    for (std::size_t e = 0; e < n; ++e)
      if (coo.rows[e] < 0 || coo.rows[e] >= coo.n_rows || coo.columns[e] < 0 || coo.columns[e] >= coo.n_columns ||
          !std::isfinite(coo.values[e]))
        return "an entry out of range";
    ++accepted;
    return "";
  });
  if (!of_matrix.empty())
    return of_matrix;
  std::string const of_array = guarded([&]() -> std::string {
    AnyMatrix const any = parse_any_matrix_market(text, "FILE");
    if (auto const* const dense = std::get_if<DenseMatrix>(&any)) {
      if (static_cast<std::int64_t>(dense->values.size()) != dense->n_rows * dense->n_columns)
        return "an array of another size";
      if (dense->values.size() > text.size())
        return "more values than bytes";
      for (double const value : dense->values)
        if (!std::isfinite(value))
          return "a value that is not finite";
    }
    return "";
  });
  if (!of_array.empty())
    return of_array;
  return guarded([&]() -> std::string {
    HostVector<double> const vector = parse_matrix_market_vector(text, "FILE");
    if (vector.size() > 1000000 + 64 * text.size())
      return "a vector made by its header alone";
    ++accepted;
    return "";
  });
}

}  // namespace poisson::app::test
