#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// What is known of the null space of a matrix from its row sums: a part is a set of unknowns that are coupled with each other and
/// with no others, and whose rows sum to zero. The vector that is constant on a part and zero elsewhere is in the null space.
struct NullSpace {
  std::vector<std::vector<std::int32_t>> parts;  ///< of symmetric matrices; the unknowns of each, ascending
  bool constants = false;                        ///< there is one part, which is the whole
  bool unsymmetric = false;                      ///< rows sum to zero, columns do not: what b has to be orthogonal to is not known

  [[nodiscard]] bool empty() const { return parts.empty() && !unsymmetric; }
};

/// Sums count as zero where they are of the size of rounding beside the sum of the absolute values. Precondition: the matrix is
/// square.
[[nodiscard]] NullSpace find_null_space(CsrMatrix const& matrix);

/// Makes a singular system one that can be solved: b becomes orthogonal to the null space, and of several parts one unknown each is
/// held at zero, as the matrix then says. Where one part is the whole the matrix stays as it is, and the solver is to be told.
/// Returns the largest |sum b| / sum |b| of the parts that was taken off. Throws InputError, which names the files, where that is
/// more than data that fit can have. Precondition: the null space has parts.
double make_compatible(NullSpace const& null_space, CsrMatrix& matrix, std::span<double> b, std::string const& matrix_name,
                       std::string const& rhs_name);

/// Subtracts the mean over every part from x, whose low parts may be empty.
void subtract_means(NullSpace const& null_space, std::span<double> x, std::span<double> x_low);

/// One sentence for the user. `defect`: of make_compatible.
[[nodiscard]] std::string null_space_note(NullSpace const& null_space, double defect);

}  // namespace poisson::app
