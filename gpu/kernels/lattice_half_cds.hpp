#pragma once

#include "gpu/core/host_device.hpp"
#include "gpu/core/lattice_layout.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/half_cds.hpp"
#include "gpu/kernels/lattice_places.hpp"
#include "gpu/kernels/product.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <cstdint>
#include <functional>
#include <type_traits>

namespace poisson {

/// For the lattices of one rank: what they contribute to rows of other ranks in a product with vectors of T, and what other ranks
/// contribute here.
template <class T>
struct SumsOfRanks {
  std::int64_t n = 0;                      ///< unknowns on rims of which other ranks have the rows
  std::int32_t const* unknowns = nullptr;  ///< which
  T* outgoing = nullptr;                   ///< what the lattices here contribute there
  ConstPointer<T> added{};                 ///< by own unknown on rims: what is added to the sum of its copies
  std::function<void()> send{};            ///< sends `outgoing`
  std::function<void()> take{};            ///< fills in `added`
};

/// A symmetric matrix on a mesh of lattices of order 1: the sum of a matrix for each lattice, whose vectors are numbered by
/// LatticeLayout. Each has the diagonals of a box of m x m x m nodes (half_stencil), and together they are those of a box of
/// m x m x (m n_lattices) nodes: values[k * n_nodes() + node] couples the node number ((l m + k) m + j) m + i to its neighbour on
/// diagonal k. -0.0 stands where nothing is stored, and where a diagonal leads out of a line, a plane or a lattice.
struct LatticeHalfCdsView {
  LatticeView lattices;
  double const* values = nullptr;
  double const* low_values = nullptr;    ///< see stored_values
  float const* single_values = nullptr;  ///< the same
  // In host memory, for products and smoothers with vectors of the type: each fills in `outgoing`, sends it, and takes what comes
  // before it needs it, once, also when *stop is set. Null: there are no other ranks.
  SumsOfRanks<float> const* sums_in_single = nullptr;
  SumsOfRanks<double> const* sums = nullptr;
  SumsOfRanks<DoubleDouble> const* sums_extended = nullptr;
  ConstPointer<DoubleDouble> added_extended{};  ///< SumsOfRanks::added, for residuals; null: nothing is added

  [[nodiscard]] POISSON_HOST_DEVICE std::int64_t n_nodes() const { return lattices.n_lattices * lattices.nodes_of_lattice(); }
};

template <class T>
[[nodiscard]] SumsOfRanks<T> const* sums_of_ranks(LatticeHalfCdsView const& a) {
  if constexpr (std::is_same_v<T, float>)
    return a.sums_in_single;
  else if constexpr (std::is_same_v<T, double>)
    return a.sums;
  else
    return a.sums_extended;
}
/// SumsOfRanks::added, when it is there. Null: nothing is added.
template <class T>
[[nodiscard]] ConstPointer<T> take_sums(LatticeHalfCdsView const& a) {
  auto const* const sums = sums_of_ranks<T>(a);
  if (sums == nullptr)
    return {};
  sums->take();
  return sums->added;
}
/// What a product does that does nothing: other ranks must not wait in vain.
template <class T>
void exchange_nothing(LatticeHalfCdsView const& a) {
  if (auto const* const sums = sums_of_ranks<T>(a); sums != nullptr) {
    sums->send();
    sums->take();
  }
}

/// `sum`, and what is added to unknown i on rims.
template <class T>
[[nodiscard]] POISSON_HOST_DEVICE T with_added(T sum, ConstPointer<T> added, std::int64_t i) {
  if constexpr (std::is_same_v<T, DoubleDouble>)
    return added.hi != nullptr ? sum + load(added, i) : sum;
  else
    return added != nullptr ? sum + added[i] : sum;
}

/// Calls visit(place, i, j, k) for the neighbours (i, j, k) of a node, and for itself: values[place] couples them. In the order of
/// products.
template <class Visit>
POISSON_HOST_DEVICE void for_couplings(LatticeHalfCdsView const& a, std::int64_t lattice, std::int32_t i, std::int32_t j,
                                       std::int32_t k, Visit const& visit) {
  std::int32_t const m = a.lattices.m;
  auto const holds = [m](std::int32_t index) { return index >= 0 && index < m; };
  std::int64_t const own = ((lattice * m + k) * m + j) * m + i;
  for (int sign = -1; sign <= 1; sign += 2)
    for (int d = sign < 0 ? 0 : 1; d < half_stencil::diagonals; ++d) {
      std::int32_t const i2 = i + sign * half_stencil::dx(d), j2 = j + sign * half_stencil::dy(d),
                         k2 = k + sign * half_stencil::dz(d);
      if (holds(i2) && holds(j2) && holds(k2))
        visit(d * a.n_nodes() + (sign < 0 ? own : own + half_stencil::offset(d, m, std::int64_t{m} * m)), i2, j2, k2);
    }
}

/// How often for_couplings calls visit.
[[nodiscard]] POISSON_HOST_DEVICE inline std::int64_t n_couplings(LatticeHalfCdsView const& a, std::int32_t i, std::int32_t j,
                                                                  std::int32_t k) {
  auto const along = [m = a.lattices.m](std::int32_t index) { return 1 + (index > 0 ? 1 : 0) + (index < m - 1 ? 1 : 0); };
  return std::int64_t{along(i)} * along(j) * along(k);
}

/// Every lattice has a product of its own. What it adds to inner nodes is their result; what it adds to nodes on its rim goes to
/// the context's buffer for partial sums, rounded to T, and from there a second pass, the exchange, adds up the copies of each
/// unknown in the order of LatticeView::copies. Terms of a row are added in the order of HalfCdsKernels. The dot is that of x with
/// what lattices add, over the nodes of all lattices: no node counts twice, as the matrix is a sum. Results depend neither on the
/// number of threads nor on the launch.
class LatticeHalfCdsKernels : public ProductKernels<LatticeHalfCdsView>, public SmoothingKernels<LatticeHalfCdsView> {
public:
  /// d + d_low = the sum of a_ii over the nodes of each unknown, in DoubleDouble; d_low may be null.
  virtual void diagonal(Context& context, LatticeHalfCdsView const& a, double* d, double* d_low) const = 0;

  static LatticeHalfCdsKernels const& cpu();
  static LatticeHalfCdsKernels const& cuda();
};

/// a_ii as `diagonal` gives it; `values` are those of the view, in double or single.
template <class Stored>
[[nodiscard]] POISSON_HOST_DEVICE DoubleDouble diagonal_entry(LatticeHalfCdsView const& a, Stored const* values,
                                                              std::int64_t unknown) {
  DoubleDouble sum = 0;
  std::int32_t const m = a.lattices.m;
  for_nodes_of(a.lattices, unknown, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
    sum = sum + static_cast<double>(values[((lattice * m + k) * m + j) * m + i]);
  });
  return sum;
}

}  // namespace poisson
