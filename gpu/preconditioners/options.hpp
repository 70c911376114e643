#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/names.hpp"

#include <functional>
#include <memory>

namespace poisson {

enum class PreconditionerKind { none, jacobi, ic0, ilu0 };
template <>
struct Names<PreconditionerKind> {
  static constexpr std::array<Named<PreconditionerKind>, 4> values{{{PreconditionerKind::none, "none"},
                                                                    {PreconditionerKind::jacobi, "jacobi"},
                                                                    {PreconditionerKind::ic0, "ic0"},
                                                                    {PreconditionerKind::ilu0, "ilu0"}}};
};

// From the kind's row in preconditioners/registry.hpp:
[[nodiscard]] bool needs_symmetry(PreconditionerKind kind);  ///< it is for symmetric positive definite matrices only
[[nodiscard]] bool needs_csr(PreconditionerKind kind);       ///< it is made from the matrix entry by entry, not from products
[[nodiscard]] bool takes_ordering(PreconditionerKind kind);  ///< it eliminates rows, in an order that can be chosen

/// The order in which ic0 and ilu0 eliminate the rows. `multicolor` (preconditioners/ordering.hpp) lets a device work on many rows
/// at once, for some more iterations; `automatic` takes it there where the natural order makes long chains of rows.
enum class Ordering { automatic, natural, multicolor };
template <>
struct Names<Ordering> {
  static constexpr std::array<Named<Ordering>, 3> values{
      {{Ordering::automatic, "auto"}, {Ordering::natural, "natural"}, {Ordering::multicolor, "multicolor"}}};
};

/// Provides the matrix as assembled, in host memory; called only when a preconditioner is made from it.
using CsrProvider = std::function<std::shared_ptr<CsrMatrix const>()>;

struct PreconditionerOptions {
  PreconditionerKind kind = PreconditionerKind::none;
  double shift = 0;  ///< of ic0 and ilu0: this times the largest entry of its row is added to every diagonal entry first
  Ordering ordering = Ordering::automatic;  ///< of the rows in ic0 and ilu0
  bool positive = true;                     ///< the method needs a positive definite one
  CsrProvider csr{};
};

}  // namespace poisson
