#include "gpu/formats/rank_matrix.hpp"

#include "gpu/formats/sum_exchange.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/vectors.hpp"

#include <cassert>
#include <cmath>

namespace poisson {

template <class T>
GhostExchange<T>::GhostExchange(Context& context, Communicator& ranks, std::vector<RankNeighbor> const& neighbors,
                                std::vector<std::int32_t> const& also_own)
    : context_(context),
      sent_(context, std::span<std::int32_t const>(all_sent(neighbors))),
      also_own_(context, std::span<std::int32_t const>(also_own)),
      exchange_(context, ranks, parts_sent<T>(neighbors), parts_of_ghosts<T>(neighbors), std::ssize(also_own)) {}

template <class T>
void GhostExchange<T>::start(ConstPointer<T> x) {
  auto const& kernels = kernels_for<RimKernels<T>>(context_);
  kernels.pack(context_, sent_.size(), sent_.data(), x, exchange_.outgoing());
  exchange_.start();
  if (also_own_.size() > 0)
    kernels.pack(context_, also_own_.size(), also_own_.data(), x, exchange_.behind());
}

template <class T>
T const* GhostExchange<T>::finish() {
  return exchange_.finish();
}

template class GhostExchange<double>;
template class GhostExchange<DoubleDouble>;

RankMatrix::RankMatrix(std::unique_ptr<Matrix> local, SplitRows const& rows, std::vector<RankNeighbor> const& neighbors,
                       Communicator& ranks, std::shared_ptr<RankLattices const> lattices)
    : local_(std::move(local)),
      ranks_(ranks),
      neighbors_(neighbors),
      lattices_(std::move(lattices)),
      own_columns_(rows.own_columns),
      couplings_(rows.couplings, local_->context(), local_->precision()),
      rim_(local_->context(), std::span<std::int32_t const>(rows.rim)),
      exchange_(local_->context(), ranks, neighbors, own_columns_),
      extended_exchange_(local_->context(), ranks, neighbors, own_columns_),
      takes_ghosts_(lattices_ != nullptr && local_->format() == Format::matrix_free),
      row_not_finite_(local_->first_row_not_finite()) {
  assert(local_->precision() != MatrixPrecision::single && (rows.local == nullptr || local_->n_rows() == rows.local->n_rows));
  CsrMatrix const& c = *rows.couplings;
  for (std::int64_t i = 0; i < c.n_rows && row_not_finite_ < 0; ++i)
    for (std::int64_t e = c.row_ptr[i]; e < c.row_ptr[i + 1]; ++e)
      if (!std::isfinite(c.values[e]))
        row_not_finite_ = rows.rim[i];
  if (own_columns_.empty())
    return;
  std::vector<std::int32_t> on_diagonal;
  std::vector<double> values;
  for (std::int64_t i = 0; i < c.n_rows; ++i)
    for (std::int64_t e = c.row_ptr[i]; e < c.row_ptr[i + 1]; ++e)
      if (std::int64_t const own = c.columns[e] - n_ghosts(); own >= 0 && own_columns_[own] == rows.rim[i]) {
        on_diagonal.push_back(rows.rim[i]);
        values.push_back(c.values[e]);
      }
  added_diagonal_ = AddedDiagonal(local_->context(), on_diagonal, values);
}

HostVector<std::int32_t> RankMatrix::rim() const {
  HostVector<std::int32_t> rows(static_cast<std::size_t>(rim_.size()));
  rim_.download(std::span<std::int32_t>(rows));
  return rows;
}

template <>
GhostExchange<double>& RankMatrix::exchange() const {
  return exchange_;
}
template <>
GhostExchange<DoubleDouble>& RankMatrix::exchange() const {
  return extended_exchange_;
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
  exchange<T>().start(x);
  Vector<T>& whole = whole_x<T>();
  if (whole.size() == 0)
    whole = Vector<T>(context(), local_->n_columns());
  kernels_for<VectorKernels<T>>(context()).copy(context(), n_rows(), x, whole.data());
  kernels_for<RimKernels<T>>(context()).unpack(context(), n_ghosts(), exchange<T>().finish(), whole.data() + n_rows());
  return whole.data();
}

template <class T>
void RankMatrix::multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y) const {
  if (takes_ghosts_)
    return local_->product(alpha, with_ghosts<T>(x), beta, y);
  exchange<T>().start(x);
  if (n_rows() > 0)
    local_->product(alpha, x, beta, y);
  T const* const ghosts = exchange<T>().finish();
  kernels_for<RimKernels<T>>(context()).add(context(), couplings_.view(), rim_.data(), alpha, ghosts, y);
}

template <class T>
void RankMatrix::multiply_dot(ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) const {
  // Messages are exchanged also when *stop is set: on a device the host does not know it, and ranks must not wait for each other in
  // vain.
  if (takes_ghosts_)
    return local_->product_dot(with_ghosts<T>(x), y, dot, stop);
  exchange<T>().start(x);
  if (n_rows() > 0)
    local_->product_dot(x, y, dot, stop);
  else
    context().set_zero(dot, sizeof(T));
  T const* const ghosts = exchange<T>().finish();
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
