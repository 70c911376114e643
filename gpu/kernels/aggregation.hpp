#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/kernels/csr.hpp"

#include <cstdint>

namespace poisson {

/// A matrix in CSR that owns its arrays, in a backend's memory. Columns ascend within rows.
struct SparseArrays {
  std::int64_t n_columns = 0;
  Array<std::int64_t> row_ptr;
  Array<std::int32_t> columns;
  Array<double> values;

  [[nodiscard]] CsrView view() const {
    return {row_ptr.size() - 1, n_columns, columns.size(), row_ptr.data(), columns.data(), values.data()};
  }
};

/// What aggregation needs to know of a matrix A: the coupling of i to j is -a_ij / sign(a_ii).
struct Couplings {
  Array<double> diagonal;
  Array<double> strongest;    ///< coupling of every row, or 0
  std::int64_t bad_row = -1;  ///< the first whose diagonal entry is not positive, or where it need not be is 0 or NaN; -1: none
  double bad_value = 0;       ///< of that entry
  double bound = 0;           ///< max_i sum_j |a_ij| / |a_ii|, not below any eigenvalue of D^-1 A
};

/// The entries of a matrix that are strong couplings, by rows, and what is left of the diagonal entry with the others added to it.
struct StrongCouplings {
  Array<std::int64_t> row_ptr;
  Array<std::int32_t> columns;
  Array<double> values;
  Array<double> rest;  ///< see least_share_of_diagonal
};

/// Aggregates by number; -1 for unknowns that are coupled to none.
struct Aggregates {
  Array<std::int32_t> of;
  std::int64_t count = 0;
  StrongCouplings strong{};  ///< on a device, which needs them in every round
};

/// Whether a coupling is strong: positive, and at least a quarter of the geometric mean of the two rows' strongest ones.
[[nodiscard]] POISSON_HOST_DEVICE inline bool is_strong(double coupling, double strongest_of_row, double strongest_of_column) {
  constexpr double share = 0.25;
  return coupling > 0 && coupling * coupling >= share * share * strongest_of_row * strongest_of_column;
}

/// Where weak couplings of the wrong sign leave less than this share of a diagonal entry, the prolongation takes the entry as it
/// is.
inline constexpr double least_share_of_diagonal = 0.1;

[[nodiscard]] POISSON_HOST_DEVICE inline bool is_bad_diagonal(double entry, bool positive) {
  return positive ? !(entry > 0) : !(entry != 0) || entry != entry;
}

/// The steps that make a coarser level of any matrix by smoothed aggregation (Vanek, Mandel, Brezina 1996). Arrays and pointers are
/// in the context's memory. The same bits come out every time. Scratch memory is freed before a call returns. Throws
/// OutOfMemoryError.
class AggregationKernels {
public:
  virtual ~AggregationKernels() = default;
  /// `positive`: diagonal entries must be.
  virtual Couplings couplings(Context& context, CsrView const& a, bool positive) const = 0;
  /// Every unknown with a coupling belongs to one aggregate. On the host in the order of rows: first every unknown all of whose
  /// strong neighbours are free forms an aggregate with them; then those that are left join that of the neighbour they are coupled
  /// to most; then what is left forms its own. A device chooses the first unknowns by a maximal set of which no two are nearer than
  /// three couplings (Bell, Dalton, Olson 2012), once of all rows and once of what is then left and has enough free neighbours.
  virtual Aggregates aggregate(Context& context, CsrView const& a, Couplings const& couplings) const = 0;
  /// An estimate of the largest |eigenvalue| of D^-1 A: the power method from pseudo-random numbers, in the norm of D. NaN where it
  /// finds none. 12 bytes an entry and step.
  virtual double largest_eigenvalue(Context& context, CsrView const& a, Couplings const& couplings) const = 0;
  /// (I - damping D^-1 A') T, where T is 1 from an aggregate to its unknowns, and A' is A without weak couplings, which are added
  /// to its diagonal D.
  virtual SparseArrays prolongation(Context& context, CsrView const& a, Couplings const& couplings, Aggregates const& aggregates,
                                    double damping) const = 0;
  virtual SparseArrays transposed(Context& context, CsrView const& a) const = 0;
  /// A B by rows (Gustavson 1978); an entry's terms are summed in the order of A's entries. Unless `sorted` the columns of a row
  /// may come in any order, that of another run included. Precondition: a.n_columns == b.n_rows.
  virtual SparseArrays product(Context& context, CsrView const& a, CsrView const& b, bool sorted) const = 0;

  /// R A P with R = P^T, without a copy of A P where that can be; columns ascend.
  virtual SparseArrays galerkin_product(Context& context, CsrView const& r, CsrView const& a, CsrView const& p) const {
    SparseArrays const ap = product(context, a, p, false);
    return product(context, r, ap.view(), true);
  }

  static AggregationKernels const& cpu();
  static AggregationKernels const& cuda();
};

}  // namespace poisson
