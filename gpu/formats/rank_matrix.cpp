#include "gpu/formats/rank_matrix.hpp"

#include <cassert>
#include <cmath>

namespace poisson {

namespace {

std::vector<std::int32_t> all_sent(std::vector<RankNeighbor> const& neighbors) {
  std::vector<std::int32_t> rows;
  for (RankNeighbor const& neighbor : neighbors)
    rows.insert(rows.end(), neighbor.sent.begin(), neighbor.sent.end());
  return rows;
}

template <class T>
using Parts = std::vector<typename RankExchange<T>::Part>;

template <class T>
Parts<T> parts_sent(std::vector<RankNeighbor> const& neighbors) {
  Parts<T> parts;
  for (RankNeighbor const& neighbor : neighbors)
    parts.push_back({neighbor.rank, static_cast<std::int64_t>(neighbor.sent.size())});
  return parts;
}

template <class T>
Parts<T> parts_of_ghosts(std::vector<RankNeighbor> const& neighbors) {
  Parts<T> parts;
  for (RankNeighbor const& neighbor : neighbors)
    parts.push_back({neighbor.rank, neighbor.n_ghosts});
  return parts;
}

}  // namespace

template <class T>
GhostExchange<T>::GhostExchange(Context& context, Communicator& ranks, std::vector<RankNeighbor> const& neighbors)
    : context_(context),
      sent_(context, std::span<std::int32_t const>(all_sent(neighbors))),
      exchange_(context, ranks, parts_sent<T>(neighbors), parts_of_ghosts<T>(neighbors)) {}

template <class T>
void GhostExchange<T>::start(ConstPointer<T> x) {
  kernels_for<RimKernels<T>>(context_).pack(context_, sent_.size(), sent_.data(), x, exchange_.outgoing());
  exchange_.start();
}

template <class T>
T const* GhostExchange<T>::finish() {
  return exchange_.finish();
}

template class GhostExchange<double>;
template class GhostExchange<DoubleDouble>;

RankMatrix::RankMatrix(std::unique_ptr<Matrix> local, SplitRows const& rows, std::vector<RankNeighbor> const& neighbors,
                       Communicator& ranks)
    : local_(std::move(local)),
      ranks_(ranks),
      neighbors_(neighbors),
      couplings_(rows.couplings, local_->context(), local_->precision()),
      rim_(local_->context(), std::span<std::int32_t const>(rows.rim)),
      exchange_(local_->context(), ranks, neighbors),
      extended_exchange_(local_->context(), ranks, neighbors),
      row_not_finite_(local_->first_row_not_finite()) {
  assert(local_->precision() != MatrixPrecision::single && (rows.local == nullptr || local_->n_rows() == rows.local->n_rows));
  CsrMatrix const& c = *rows.couplings;
  for (std::int64_t i = 0; i < c.n_rows && row_not_finite_ < 0; ++i)
    for (std::int64_t e = c.row_ptr[i]; e < c.row_ptr[i + 1]; ++e)
      if (!std::isfinite(c.values[e]))
        row_not_finite_ = rows.rim[i];
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

template <class T>
void RankMatrix::multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y) const {
  exchange<T>().start(x);
  if (n_rows() > 0)
    local_->product(alpha, x, beta, y);
  T const* const ghosts = exchange<T>().finish();
  kernels_for<RimKernels<T>>(context()).add(context(), couplings_.view(), rim_.data(), alpha, ghosts, y);
}

template <class T>
void RankMatrix::multiply_dot(ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) const {
  // Also when *stop is set: on a device the host does not know it, and ranks must not wait for each other in vain.
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
void RankMatrix::diagonal(double* d) const {
  if (n_rows() > 0)
    static_cast<LinearOperator<double> const&>(*local_).diagonal(d);
}
void RankMatrix::diagonal(Pointer<DoubleDouble> d) const {
  if (n_rows() > 0)
    static_cast<LinearOperator<DoubleDouble> const&>(*local_).diagonal(d);
}

}  // namespace poisson
