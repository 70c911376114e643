#pragma once

#include "gpu/core/host_vector.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace poisson::assembly {

/// Affine constraints u = C x + g. They prescribe unknowns of a space (Dirichlet conditions) or express them by others (hanging
/// nodes, periodic faces). C is n x n: x keeps an entry for every unknown, in the numbering of the space. For a free unknown i, row
/// i of C is the unit vector e_i, and g_i = 0. The row of a constrained unknown has entries in columns of free unknowns only; it is
/// empty for a Dirichlet value. Only rows of constrained unknowns are stored.
class Constraints {
public:
  struct Entry {
    std::int32_t unknown;
    double weight;
  };

  /// Makes the constraints of n unknowns, all of which are free.
  explicit Constraints(std::int64_t n = 0);

  /// u[unknown] = value + sum over the entries of weight * u[entry.unknown]. Replaces an earlier constraint of the unknown.
  void set(std::int32_t unknown, double value, std::span<Entry const> entries = {});
  /// Substitutes constrained unknowns in entries until all are free. Must be called after the last `set` and before any function
  /// below. Throws std::logic_error when an unknown depends on itself.
  void close();

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(mask_.size()); }
  /// 1 for constrained unknowns, 0 for free ones.
  [[nodiscard]] HostVector<std::uint8_t> const& mask() const { return mask_; }
  [[nodiscard]] bool constrained(std::int64_t unknown) const { return mask_[unknown] != 0; }
  /// Whether some constrained unknown depends on others; otherwise all constrained unknowns are prescribed.
  [[nodiscard]] bool has_entries() const { return !entries_.empty(); }
  /// g; 0 for free unknowns.
  [[nodiscard]] double value(std::int64_t unknown) const { return constrained(unknown) ? lines_[line_of_[unknown]].value : 0; }
  /// Row of C. Precondition: the unknown is constrained.
  [[nodiscard]] std::span<Entry const> row(std::int64_t unknown) const {
    Line const& line = lines_[line_of_[unknown]];
    return {entries_.data() + line.begin, static_cast<std::size_t>(line.end - line.begin)};
  }

  /// x becomes C x + g. The values of x at constrained unknowns are ignored.
  void expand(std::span<double> x) const;
  /// f becomes C^T f, which is 0 at constrained unknowns.
  void restrict_to_free(std::span<double> f) const;

private:
  struct Line {
    double value;
    std::int64_t begin, end;  ///< its entries
    std::int32_t unknown;
  };

  HostVector<std::uint8_t> mask_;
  HostVector<std::int32_t> line_of_;  ///< of constrained unknowns; undefined elsewhere
  HostVector<Line> lines_;
  HostVector<Entry> entries_;
};

/// Dirichlet values, of the unknowns from `first` on; those before have none.
struct DirichletValues {
  std::int64_t first = 0;
  std::vector<double> values;  ///< NaN where there is none
  [[nodiscard]] std::int64_t end() const { return first + static_cast<std::int64_t>(values.size()); }
  [[nodiscard]] double operator[](std::int64_t unknown) const {
    return unknown < first ? std::numeric_limits<double>::quiet_NaN() : values[static_cast<std::size_t>(unknown - first)];
  }
  [[nodiscard]] bool has(std::int64_t unknown) const { return !std::isnan((*this)[unknown]); }
};

/// The same as a list, to be kept: of the unknowns on rims of lattices few have a value.
struct ListedValues {
  ListedValues() = default;
  explicit ListedValues(DirichletValues const& given);
  [[nodiscard]] DirichletValues all() const;

  std::int64_t first = 0, end = 0;
  std::vector<std::int32_t> unknowns{};  ///< that have a value, ascending
  std::vector<double> values{};          ///< of these
};

}  // namespace poisson::assembly
