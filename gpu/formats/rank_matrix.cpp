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

std::int64_t all_ghosts(std::vector<RankNeighbor> const& neighbors) {
  std::int64_t n = 0;
  for (RankNeighbor const& neighbor : neighbors)
    n += neighbor.n_ghosts;
  return n;
}

}  // namespace

template <class T>
GhostExchange<T>::GhostExchange(Context& context, Communicator& ranks, std::vector<RankNeighbor> const& neighbors)
    : context_(context),
      devices_(rank_transport(context, ranks).devices.get()),
      sent_(context, std::span<std::int32_t const>(all_sent(neighbors))) {
  std::int64_t const n_ghosts = all_ghosts(neighbors);
  if (context.backend() != Backend::cpu) {
    outgoing_of_device_ = Array<T>(context, sent_.size());
    ghosts_ = Array<T>(context, n_ghosts);
  }
  if (devices_ == nullptr) {
    outgoing_.resize(static_cast<std::size_t>(sent_.size()));
    incoming_.resize(static_cast<std::size_t>(n_ghosts));
  }
  T* const outgoing = devices_ != nullptr ? outgoing_of_device_.data() : outgoing_.data();
  T* const incoming = devices_ != nullptr ? ghosts_.data() : incoming_.data();
  std::int64_t from = 0, to = 0;
  for (RankNeighbor const& neighbor : neighbors) {
    auto const n_sent = static_cast<std::int64_t>(neighbor.sent.size());
    constexpr std::int64_t size{sizeof(T)};
    if (n_sent > 0)
      sends_.push_back({neighbor.rank, outgoing + from, size * n_sent});
    if (neighbor.n_ghosts > 0)
      receives_.push_back({neighbor.rank, incoming + to, size * neighbor.n_ghosts});
    from += n_sent;
    to += neighbor.n_ghosts;
  }
  if (devices_ == nullptr)
    exchange_ = ranks.make_exchange(sends_, receives_);
}

template <class T>
void GhostExchange<T>::start(ConstPointer<T> x) {
  bool const device = context_.backend() != Backend::cpu;
  T* const message = device ? outgoing_of_device_.data() : outgoing_.data();
  kernels_for<RimKernels<T>>(context_).pack(context_, sent_.size(), sent_.data(), x, message);
  if (devices_ != nullptr) {
    devices_->start(sends_, receives_);
    return;
  }
  if (device)
    outgoing_of_device_.download(std::span<T>(outgoing_));
  exchange_->start();
}

template <class T>
T const* GhostExchange<T>::finish() {
  if (devices_ != nullptr) {
    devices_->finish();
    return ghosts_.data();
  }
  exchange_->finish();
  if (context_.backend() == Backend::cpu)
    return incoming_.data();
  ghosts_.upload(std::span<T const>(incoming_));
  return ghosts_.data();
}

template class GhostExchange<double>;
template class GhostExchange<DoubleDouble>;

RankMatrix::RankMatrix(std::unique_ptr<Matrix> local, SplitRows const& rows, std::vector<RankNeighbor> const& neighbors,
                       Communicator& ranks)
    : local_(std::move(local)),
      ranks_(ranks),
      couplings_(rows.couplings, local_->context(), local_->precision()),
      rim_(local_->context(), std::span<std::int32_t const>(rows.rim)),
      exchange_(local_->context(), ranks, neighbors),
      extended_exchange_(local_->context(), ranks, neighbors),
      row_not_finite_(local_->first_row_not_finite()) {
  assert(local_->precision() != MatrixPrecision::single && local_->n_rows() == rows.local->n_rows);
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
