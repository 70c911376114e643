#pragma once

#include "app/io/console.hpp"
#include "app/launch/team.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/rank_rows.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace poisson::app {

/// The files of `poisson run --matrix-out`: the system as it is solved, A x = b, for `poisson solve` and other programs. Rows of
/// unknowns with Dirichlet values hold their diagonal entry only, and b is 0 there.
class SystemFiles {
public:
  /// The matrix is this file, NAME.mtx or NAME.mtx.gz; the right-hand side NAME_rhs.mtx beside it. Precondition: can_be.
  explicit SystemFiles(std::string const& matrix);
  /// Whether it is such a name.
  [[nodiscard]] static bool can_be(std::string const& matrix);

  /// Throws InputError where one of the files exists, unless `overwrite` is true and it is one that write() has written.
  void require_free(bool overwrite) const;
  /// Throws EnvironmentError where no files can be made.
  void require_writable() const;
  /// Writes both, and says so; warns instead where a value is not finite. `fingerprint` tells of which run they are, and becomes
  /// a comment. Throws EnvironmentError, Interrupted.
  /// Every rank has its rows, whose numbers in the whole are given: the first one writes the files and gets some thousand rows of
  /// all at a time. Collective; all throw the same.
  void write(RankRows const& rows, std::span<std::int64_t const> numbers, std::span<double const> rhs,
             std::string const& fingerprint, Team& team, Console& console) const;

private:
  [[nodiscard]] bool warns(bool finite, Console& console) const;
  [[nodiscard]] static std::string matrix_comment(std::string const& fingerprint);
  [[nodiscard]] static std::string rhs_comment(std::string const& fingerprint);
  void tell(Console& console) const;

  std::filesystem::path matrix_, rhs_;
};

}  // namespace poisson::app
