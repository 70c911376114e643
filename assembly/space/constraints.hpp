#pragma once

#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <span>

namespace poisson::assembly {

/// u = C x + g: what fixes unknowns of a space (Dirichlet conditions) or ties them to others (hanging nodes, periodic faces). x has
/// an entry for every unknown, in the numbering of the space, which systems and formats thus keep: where unknown i is free, row i
/// of C is the i-th unit row and g_i = 0; the row of a constrained unknown holds free unknowns only, and none for a Dirichlet
/// value. Only the rows of constrained unknowns are stored.
class Constraints {
public:
  struct Entry {
    std::int32_t unknown;
    double weight;
  };

  /// Of n unknowns, all free.
  explicit Constraints(std::int64_t n = 0);

  /// u[unknown] = value + the sum of weight times u[other] over the entries. What was said of the unknown before is replaced.
  void set(std::int32_t unknown, double value, std::span<Entry const> entries = {});
  /// To be called after the last `set`, before anything below: entries may be constrained themselves; they are put in terms of free
  /// unknowns. Throws std::logic_error when an unknown depends on itself.
  void close();

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(mask_.size()); }
  /// 1 for constrained unknowns, 0 for free ones.
  [[nodiscard]] HostVector<std::uint8_t> const& mask() const { return mask_; }
  [[nodiscard]] bool constrained(std::int64_t unknown) const { return mask_[unknown] != 0; }
  /// Some unknown is tied to others; otherwise constrained unknowns just have values.
  [[nodiscard]] bool has_entries() const { return !entries_.empty(); }
  /// g; 0 for free unknowns.
  [[nodiscard]] double value(std::int64_t unknown) const { return constrained(unknown) ? lines_[line_of_[unknown]].value : 0; }
  /// Row of C. Precondition: the unknown is constrained.
  [[nodiscard]] std::span<Entry const> row(std::int64_t unknown) const {
    Line const& line = lines_[line_of_[unknown]];
    return {entries_.data() + line.begin, static_cast<std::size_t>(line.end - line.begin)};
  }

  /// x becomes C x + g. What x holds at constrained unknowns does not matter.
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

}  // namespace poisson::assembly
