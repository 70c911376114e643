#pragma once

#include "gpu/core/communicator.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <omp.h>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace poisson::testing {

/// Ranks that are threads of this process, for tests of what needs several ranks.
class ThreadRanks {
public:
  /// Calls body(communicator of the rank) on `size` threads, and throws the first exception of the lowest rank that threw one. The
  /// others, which wait for it, end.
  template <class Body>
  static void run(int size, Body const& body) {
    Shared shared(size);
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    threads.reserve(errors.size());
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        omp_set_num_threads(1);
        try {
          ThreadRank communicator(shared, rank);
          body(static_cast<Communicator&>(communicator));
        } catch (Abandoned const&) {
        } catch (...) {
          errors[static_cast<std::size_t>(rank)] = std::current_exception();
          shared.abandon();
        }
      });
    for (std::thread& thread : threads)
      thread.join();
    for (std::exception_ptr const& error : errors)
      if (error)
        std::rethrow_exception(error);
  }

private:
  struct Abandoned {};

  struct Shared {
    explicit Shared(int ranks) : size(ranks), changed(static_cast<std::size_t>(ranks)), blocks(static_cast<std::size_t>(ranks)) {}
    void abandon() {
      std::lock_guard const lock(mutex);
      abandoned = true;
      wake_all();
    }
    void wake_all() {
      for (std::condition_variable& of_rank : changed)
        of_rank.notify_one();
    }
    template <class Condition>
    void wait(int rank, std::unique_lock<std::mutex>& lock, Condition const& condition) {
      changed[static_cast<std::size_t>(rank)].wait(lock, [&] { return abandoned || condition(); });
      if (!condition())
        throw Abandoned();
    }
    /// All ranks arrive before one leaves.
    void meet(int rank) {
      std::unique_lock lock(mutex);
      std::int64_t const before = meetings;
      if (++arrived == size) {
        arrived = 0;
        ++meetings;
        wake_all();
      } else
        wait(rank, lock, [&] { return meetings > before; });
    }

    int size;
    std::mutex mutex;
    std::vector<std::condition_variable> changed;  ///< of each rank, so that none is woken for another
    bool abandoned = false;
    int arrived = 0;
    std::int64_t meetings = 0;
    std::vector<std::vector<std::byte>> blocks;
    std::map<std::pair<int, int>, std::vector<std::byte>> parcels;  ///< by receiver and sender
    /// Messages by exchange, sender and receiver.
    std::map<std::tuple<int, int, int>, std::deque<std::vector<std::byte>>> mail;
  };

  class ThreadExchange final : public Exchange {
  public:
    ThreadExchange(Shared& shared, int number, int rank, std::span<Message const> sends, std::span<Message const> receives)
        : shared_(shared),
          number_(number),
          rank_(rank),
          sends_(sends.begin(), sends.end()),
          receives_(receives.begin(), receives.end()) {}
    void start() override {
      std::lock_guard const lock(shared_.mutex);
      for (Message const& message : sends_) {
        auto const* const data = static_cast<std::byte const*>(message.data);
        shared_.mail[{number_, rank_, message.rank}].emplace_back(data, data + message.bytes);
        shared_.changed[static_cast<std::size_t>(message.rank)].notify_one();
      }
    }
    void finish() override {
      std::unique_lock lock(shared_.mutex);
      for (Message const& message : receives_) {
        auto& box = shared_.mail[{number_, message.rank, rank_}];
        shared_.wait(rank_, lock, [&] { return !box.empty(); });
        if (static_cast<std::int64_t>(box.front().size()) != message.bytes)
          throw std::logic_error("a message has another length than its receiver says");
        std::copy(box.front().begin(), box.front().end(), static_cast<std::byte*>(message.data));
        box.pop_front();
      }
    }

  private:
    Shared& shared_;
    int number_, rank_;
    std::vector<Message> sends_, receives_;
  };

  class ThreadRank final : public Communicator {
  public:
    ThreadRank(Shared& shared, int rank) : shared_(shared), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return shared_.size; }
    void all_gather(void const* mine, std::int64_t bytes, void* all) override {
      auto const* const data = static_cast<std::byte const*>(mine);
      {
        std::lock_guard const lock(shared_.mutex);
        shared_.blocks[static_cast<std::size_t>(rank_)].assign(data, data + bytes);
      }
      shared_.meet(rank_);
      {
        std::lock_guard const lock(shared_.mutex);
        for (std::size_t r = 0; r < shared_.blocks.size(); ++r) {
          if (static_cast<std::int64_t>(shared_.blocks[r].size()) != bytes)
            throw std::logic_error("ranks gather blocks of different length");
          std::copy(shared_.blocks[r].begin(), shared_.blocks[r].end(),
                    static_cast<std::byte*>(all) + static_cast<std::int64_t>(r) * bytes);
        }
      }
      shared_.meet(rank_);
    }
    void barrier() override { shared_.meet(rank_); }
    void broadcast(int from, void* data, std::int64_t bytes) override {
      std::vector<std::byte> all(static_cast<std::size_t>(bytes) * static_cast<std::size_t>(size()));
      all_gather(data, bytes, all.data());
      std::copy_n(all.begin() + from * bytes, bytes, static_cast<std::byte*>(data));
    }
    void combine(void* values, std::int64_t count, std::int64_t size, Combine into, Order order) override {
      std::int64_t const bytes = count * size, n = shared_.size;
      std::vector<std::byte> all(static_cast<std::size_t>(n * bytes));
      all_gather(values, bytes, all.data());
      auto const at = [&](std::int64_t rank) { return all.data() + rank * bytes; };
      if (order == Order::any) {  // backwards, which makes no difference
        for (std::int64_t rank = n - 1; rank > 0; --rank)
          into(at(rank - 1), at(rank), count);
      } else {
        for (std::int64_t first = 0; first < n; first += ranks_of_block) {
          for (std::int64_t rank = first + 1; rank < std::min<std::int64_t>(first + ranks_of_block, n); ++rank)
            into(at(first), at(rank), count);
          if (first > 0)
            into(at(0), at(first), count);
        }
      }
      std::copy_n(all.begin(), bytes, static_cast<std::byte*>(values));
    }
    void deliver(std::span<Message const> sends, Room const& room) override {
      {
        std::lock_guard const lock(shared_.mutex);
        for (Message const& message : sends) {
          auto const* const data = static_cast<std::byte const*>(message.data);
          shared_.parcels[{message.rank, rank_}].assign(data, data + message.bytes);
        }
      }
      shared_.meet(rank_);
      {
        std::lock_guard const lock(shared_.mutex);
        auto const begin = shared_.parcels.lower_bound({rank_, 0}), end = shared_.parcels.lower_bound({rank_ + 1, 0});
        for (auto parcel = begin; parcel != end; ++parcel)
          std::copy(parcel->second.begin(), parcel->second.end(),
                    static_cast<std::byte*>(room(parcel->first.second, std::ssize(parcel->second))));
        shared_.parcels.erase(begin, end);
      }
      shared_.meet(rank_);
    }
    std::unique_ptr<Exchange> make_exchange(std::span<Message const> sends, std::span<Message const> receives) override {
      return std::make_unique<ThreadExchange>(shared_, n_exchanges_++, rank_, sends, receives);
    }
    void end_all(int exit_code) override { throw std::runtime_error("a rank ended all with " + std::to_string(exit_code)); }

  private:
    Shared& shared_;
    int rank_;
    int n_exchanges_ = 0;
  };
};

}  // namespace poisson::testing
