#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/context.hpp"
#include "gpu/kernels/device_ranks.hpp"
#include "gpu/solvers/krylov.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace poisson {

/// Sums over the ranks of a communicator in the order of the ranks (Communicator::Order::of_ranks), so that all have the same bits
/// in every run, and decide alike. On devices without the host where rank_transport can. A rank that is alone has nothing to add,
/// and or_null() is null.
template <class T>
class GatheredSum final : public RankSum<T> {
public:
  /// Collective. `context` is that of the numbers.
  GatheredSum(Context& context, Communicator& ranks)
      : ranks_(ranks), transport_(ranks.is_alone() ? nullptr : &rank_transport(context, ranks)) {}

  void add(Context& context, T* sums, int count) override {
    if (DeviceRanks* const devices = transport_->devices(); devices != nullptr) {
      devices->sum(sums, count);
      return;
    }
    auto const n = static_cast<std::size_t>(count);
    mine_.resize(n + 1);
    auto const bytes = static_cast<std::int64_t>(n * sizeof(T));
    context.download(mine_.data(), sums, bytes);
    mine_[n] = static_cast<T>(transport_->vote());
    combine_lists(
        ranks_, std::span<T>(mine_), [](T& sum, T const& value) { sum = sum + value; }, Communicator::Order::of_ranks);
    context.upload(sums, mine_.data(), bytes);
    transport_->decide(static_cast<double>(mine_[n]));
  }

  [[nodiscard]] RankSum<T>* or_null() { return ranks_.is_alone() ? nullptr : this; }

private:
  Communicator& ranks_;
  RankTransport* transport_;  ///< null: alone
  std::vector<T> mine_;
};

}  // namespace poisson
