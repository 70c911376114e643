#include "gpu/formats/sum_exchange.hpp"

#include "gpu/core/csr_entries.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/rim.hpp"

#include <algorithm>
#include <span>

namespace poisson {

std::vector<std::int32_t> all_sent(std::vector<RankNeighbor> const& neighbors) {
  std::vector<std::int32_t> rows;
  for (RankNeighbor const& neighbor : neighbors)
    rows.insert(rows.end(), neighbor.sent.begin(), neighbor.sent.end());
  return rows;
}

template <class T>
SumExchange<T>::SumExchange(Context& context, Communicator& ranks, std::vector<RankNeighbor> const& neighbors)
    : context_(context), exchange_(context, ranks, parts_of_ghosts<T>(neighbors), parts_sent<T>(neighbors)) {
  std::vector<std::int32_t> const come = all_sent(neighbors);
  std::vector<std::int32_t> rows = come;
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  std::vector<MatrixEntry> entries;
  for (std::size_t i = 0; i < come.size(); ++i)
    entries.push_back({std::lower_bound(rows.begin(), rows.end(), come[i]) - rows.begin(), static_cast<std::int32_t>(i), 1.0});
  rows_ = Array<std::int32_t>(context, std::span<std::int32_t const>(rows));
  ones_ = std::make_unique<Csr>(std::make_shared<CsrMatrix const>(csr_of_entries(std::ssize(rows), std::ssize(come), entries)),
                                context, MatrixPrecision::double_);
}

template <class T>
void SumExchange<T>::finish(T alpha, Pointer<T> y) {
  T const* const come = exchange_.finish();
  kernels_for<RimKernels<T>>(context_).add(context_, ones_->view(), rows_.data(), alpha, come, y);
}

template class SumExchange<float>;
template class SumExchange<double>;
template class SumExchange<DoubleDouble>;

}  // namespace poisson
