#include "gpu/formats/rank_matrix.hpp"

#include "gpu/core/csr_entries.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/rim.hpp"
#include "gpu/kernels/vectors.hpp"

#include <cassert>
#include <cmath>

namespace poisson {

namespace {

HaloPlaces places_of(std::int64_t n_rows, std::vector<RankNeighbor> const& neighbors,
                     std::vector<std::int32_t> const& own_columns) {
  HaloPlaces places(n_rows, neighbors);
  places.behind = own_columns;
  return places;
}

}  // namespace

RankMatrix::RankMatrix(std::unique_ptr<Matrix> local, SplitRows const& rows, std::vector<RankNeighbor> const& neighbors,
                       Communicator& ranks, std::shared_ptr<SharedLattices const> lattices)
    : local_(std::move(local)),
      ranks_(ranks),
      neighbors_(neighbors),
      lattices_(std::move(lattices)),
      own_columns_(rows.own_columns),
      couplings_(rows.couplings, local_->context(), local_->precision()),
      rim_(local_->context(), std::span<std::int32_t const>(rows.rim)),
      halo_(local_->context(), ranks, places_of(local_->n_rows(), neighbors, own_columns_)),
      extended_halo_(local_->context(), ranks, places_of(local_->n_rows(), neighbors, own_columns_)),
      takes_ghosts_(lattices_ != nullptr && local_->format() == Format::matrix_free),
      row_not_finite_(local_->first_row_not_finite()) {
  assert(local_->precision() != MatrixPrecision::single && (rows.local == nullptr || local_->n_rows() == rows.local->n_rows));
  CsrMatrix const& c = *rows.couplings;
  std::vector<std::int32_t> on_diagonal;
  std::vector<double> values;
  for_entries(c, [&](std::int64_t i, std::int32_t column, double value) {
    if (row_not_finite_ < 0 && !std::isfinite(value))
      row_not_finite_ = rows.rim[i];
    if (std::int64_t const own = column - n_ghosts(); own >= 0 && own_columns_[own] == rows.rim[i]) {
      on_diagonal.push_back(rows.rim[i]);
      values.push_back(value);
    }
  });
  if (own_columns_.empty())
    return;
  added_diagonal_ = AddedDiagonal(local_->context(), on_diagonal, values);
}

HostVector<std::int32_t> RankMatrix::rim() const {
  HostVector<std::int32_t> rows(static_cast<std::size_t>(rim_.size()));
  rim_.download(std::span<std::int32_t>(rows));
  return rows;
}

template <>
Halo<double>& RankMatrix::halo() const {
  return halo_;
}
template <>
Halo<DoubleDouble>& RankMatrix::halo() const {
  return extended_halo_;
}

template <>
Vector<double>& RankMatrix::whole_x() const {
  return whole_x_;
}
template <>
Vector<DoubleDouble>& RankMatrix::whole_x() const {
  return extended_whole_x_;
}

template <class T>
ConstPointer<T> RankMatrix::with_ghosts(ConstPointer<T> x) const {
  halo<T>().start(x);
  Vector<T>& whole = whole_x<T>();
  if (whole.size() == 0)
    whole = Vector<T>(context(), local_->n_columns());
  kernels_for<VectorKernels<T>>(context()).copy(context(), n_rows(), x, whole.data());
  halo<T>().put(whole.data());
  return whole.data();
}

template <class T>
void RankMatrix::multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y) const {
  if (takes_ghosts_)
    return local_->product(alpha, with_ghosts<T>(x), beta, y);
  halo<T>().start(x);
  if (n_rows() > 0)
    local_->product(alpha, x, beta, y);
  T const* const ghosts = halo<T>().finish();
  kernels_for<RimKernels<T>>(context()).add(context(), couplings_.view(), rim_.data(), alpha, ghosts, y);
}

template <class T>
void RankMatrix::multiply_dot(ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) const {
  // Messages are exchanged also when *stop is set: on a device the host does not know it, and ranks must not wait for each other in
  // vain.
  if (takes_ghosts_)
    return local_->product_dot(with_ghosts<T>(x), y, dot, stop);
  halo<T>().start(x);
  if (n_rows() > 0)
    local_->product_dot(x, y, dot, stop);
  else
    context().set_zero(dot, sizeof(T));
  T const* const ghosts = halo<T>().finish();
  kernels_for<RimKernels<T>>(context()).add_dot(context(), couplings_.view(), rim_.data(), ghosts, x, y, dot, stop);
}

void RankMatrix::product(double alpha, double const* x, double beta, double* y) const {
  multiply<double>(alpha, x, beta, y);
}
void RankMatrix::product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const {
  multiply<DoubleDouble>(alpha, x, beta, y);
}
void RankMatrix::product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const {
  multiply_dot<double>(x, y, dot, stop);
}
void RankMatrix::product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                             std::int32_t const* stop) const {
  multiply_dot<DoubleDouble>(x, y, dot, stop);
}
template <class T>
void RankMatrix::add_up_diagonal(Pointer<T> d) const {
  if (n_rows() == 0)
    return;
  static_cast<LinearOperator<T> const&>(*local_).diagonal(d);
  added_diagonal_.add_to<T>(d);
}
template void RankMatrix::add_up_diagonal<double>(double*) const;
template void RankMatrix::add_up_diagonal<DoubleDouble>(Pointer<DoubleDouble>) const;

}  // namespace poisson
