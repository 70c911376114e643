#pragma once

#include "gpu/core/csr_matrix.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace poisson::app {

/// Writing of Matrix Market files, beside the reader in matrix_market.hpp. The file appears when it is complete; where its name
/// ends in .gz it is compressed with gzip. Values have 17 digits and are read back to the same bits. `comment` is the second line,
/// after "% ". Errors: EnvironmentError; Interrupted when an interrupt was requested. Precondition: all values are finite.

/// A symmetric matrix, coordinate real symmetric: its lower triangle, explicit zeros included. What is above the diagonal is not
/// looked at, nor are low values.
void write_symmetric_matrix_market(std::filesystem::path const& path, CsrMatrix const& matrix, std::string const& comment);

/// A vector, array real general.
void write_matrix_market_vector(std::filesystem::path const& path, std::span<double const> vector, std::string const& comment);

/// Writes the file of write_symmetric_matrix_market piece by piece. `add` goes on where the one before ended, and the file appears
/// with `commit`. Entries are those of the lower triangle, by rows, of which there must be n_entries. Rows and columns are counted
/// from 0.
class SymmetricMatrixMarketFile {
public:
  SymmetricMatrixMarketFile(std::filesystem::path const& path, std::int64_t n, std::int64_t n_entries, std::string const& comment);
  ~SymmetricMatrixMarketFile();
  void add(std::int64_t row, std::int64_t column, double value);
  void commit();

private:
  class Text;
  std::unique_ptr<Text> file_;
};
class MatrixMarketVectorFile {
public:
  MatrixMarketVectorFile(std::filesystem::path const& path, std::int64_t n, std::string const& comment);
  ~MatrixMarketVectorFile();
  void add(std::span<double const> values);
  void commit();

private:
  class Text;
  std::unique_ptr<Text> file_;
};

/// The comment in the second line of a file, plain or compressed, that has Matrix Market's banner in its first; else empty.
[[nodiscard]] std::string matrix_market_comment(std::filesystem::path const& path);

}  // namespace poisson::app
