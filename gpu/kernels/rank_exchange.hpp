#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/kernels/device_ranks.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace poisson {

/// Messages of entries of T between ranks, from and to the memory of a backend: from device to device where rank_transport can,
/// elsewhere through host memory.
template <class T>
class RankExchange {
public:
  struct Part {
    int rank = 0;
    std::int64_t size = 0;  ///< entries; a part without any is left out
  };
  /// `sends` and `receives` have one part at most for every other rank. What a rank sends to another, that one receives. `behind`
  /// counts entries behind those that come, for the caller. Collective.
  RankExchange(Context& context, Communicator& ranks, std::vector<Part> const& sends, std::vector<Part> const& receives,
               std::int64_t behind = 0)
      : context_(context),
        devices_(rank_transport(context, ranks).devices.get()),
        staged_(context.backend() != Backend::cpu && devices_ == nullptr),
        outgoing_(context, size_of(sends)),
        n_incoming_(size_of(receives)),
        incoming_(context, n_incoming_ + behind) {
    if (staged_) {
      outgoing_of_host_.resize(static_cast<std::size_t>(outgoing_.size()));
      incoming_of_host_.resize(static_cast<std::size_t>(n_incoming_));
    }
    sends_ = messages(sends, staged_ ? outgoing_of_host_.data() : outgoing_.data());
    receives_ = messages(receives, staged_ ? incoming_of_host_.data() : incoming_.data());
    if (devices_ == nullptr)
      exchange_ = ranks.make_exchange(sends_, receives_);
  }
  RankExchange(RankExchange const&) = delete;
  RankExchange& operator=(RankExchange const&) = delete;

  /// Where the parts to send are to be written, one after another, by what is enqueued before start() and after the last finish().
  [[nodiscard]] T* outgoing() { return outgoing_.data(); }
  /// The entries behind those that come.
  [[nodiscard]] T* behind() { return incoming_.data() + n_incoming_; }
  void start() {
    if (devices_ != nullptr) {
      devices_->start(sends_, receives_);
      return;
    }
    if (staged_)
      outgoing_.download(std::span<T>(outgoing_of_host_));
    exchange_->start();
  }
  /// The parts that have come, one after another, until the next start(). What is enqueued from now on may read them; on the cpu
  /// they are there.
  [[nodiscard]] T const* finish() {
    if (devices_ != nullptr)
      devices_->finish();
    else
      exchange_->finish();
    if (staged_ && n_incoming_ > 0)
      context_.upload(incoming_.data(), incoming_of_host_.data(), n_incoming_ * std::int64_t{sizeof(T)});
    return incoming_.data();
  }

private:
  static std::int64_t size_of(std::vector<Part> const& parts) {
    std::int64_t size = 0;
    for (Part const& part : parts)
      size += part.size;
    return size;
  }
  static std::vector<Message> messages(std::vector<Part> const& parts, T* buffer) {
    std::vector<Message> result;
    for (Part const& part : parts) {
      if (part.size > 0)
        result.push_back({part.rank, buffer, part.size * std::int64_t{sizeof(T)}});
      buffer += part.size;
    }
    return result;
  }

  Context& context_;
  DeviceRanks* devices_;
  bool staged_;
  Array<T> outgoing_;
  std::int64_t n_incoming_;
  Array<T> incoming_;
  HostVector<T> outgoing_of_host_, incoming_of_host_;
  std::vector<Message> sends_, receives_;
  std::unique_ptr<Exchange> exchange_;  ///< without devices_
};

}  // namespace poisson
