#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace poisson::assembly {

/// Lines of cells, and where on them |f| is large.
struct SourceLines {
  std::vector<double> largest{};  ///< of each line the largest integral of |f| over one of its cells
  /// Of each line the largest |f| at lattice_steps + 1 points per direction of its cells, among them the vertices. Empty: not
  /// known.
  std::vector<double> largest_of_lattice{};
  int lattice_steps = 1;
  std::int64_t length = 1;                                                ///< cells of a line
  std::function<std::int64_t(std::int64_t line, std::int64_t i)> cell{};  ///< number of its i-th one
};

/// How well the assembly's quadrature sees the source in a mesh or a part of one (system/source_check.hpp). Plain data.
struct SourceFindings {
  double absolute = 0;                    ///< the integral of |f| by that quadrature
  double defect = 0;                      ///< of f, in the cells that were looked at closely: finer integrals less those
  double absolute_defect = 0;             ///< the same of |f|
  double largest = 0;                     ///< |f| that was found in them
  std::array<double, 3> where{};          ///< there
  double even_defect = 0, even_fine = 0;  ///< of all other cells, from a sample: differences of integrals of f; finer ones of |f|

  /// Adds the findings of another part of the mesh.
  void add(SourceFindings const& part);
  /// The warning that the mesh is too coarse for the source; empty where it is not.
  [[nodiscard]] std::string warning() const;
};

}  // namespace poisson::assembly
