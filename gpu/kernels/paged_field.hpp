#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_vector.hpp"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace poisson {

/// Numbers in the memory of a backend as the host reads them, piece by piece, where it has no room for all: in pages, of which the
/// last ones that were read are kept. All threads may read at once; what else uses the context meanwhile holds it. Precondition:
/// the numbers outlive it and do not change.
class PagedField {
public:
  /// A megabyte, at which the bus is as fast as it gets. A page is kept between the two times that the cells below and above a
  /// plane of nodes ask for it: that of a box of 2000^3 has 32 of them.
  static constexpr std::int64_t page_size = std::int64_t{1} << 17, most_pages = 96;

  /// n numbers at `values`, in pages of so many, of which it keeps that many.
  PagedField(Context& context, std::int64_t n, double const* values, std::int64_t entries = page_size,
             std::int64_t most = most_pages);

  /// Writes the numbers first ... first + n - 1. Throws std::bad_alloc.
  void read(std::int64_t first, std::int64_t n, double* out);
  /// Writes the numbers at these places, fewer than 2^31, page by page: for places that are in few pages. Throws std::bad_alloc.
  void pick(std::span<std::int64_t const> places, double* out);
  /// The numbers at these places, which are collected where they are. Throws OutOfMemoryError.
  [[nodiscard]] HostVector<double> at(std::span<std::int32_t const> places);

  /// Nothing is read from the context while the caller has this.
  [[nodiscard]] std::unique_lock<std::mutex> hold_context() { return std::unique_lock(of_context_); }

  /// The most bytes of n numbers that are in the host's memory at a time.
  [[nodiscard]] static std::int64_t bytes(std::int64_t n);

private:
  struct Page {
    HostVector<double> values;
    std::int64_t number = 0;
    std::uint64_t last_read = 0;
    bool is_here = false;
  };
  [[nodiscard]] std::shared_ptr<Page const> page(std::int64_t number);
  void take(Page& page);

  Context& context_;
  std::int64_t n_;
  double const* values_;
  std::int64_t entries_;
  std::size_t most_;
  std::mutex mutex_, of_context_;
  std::condition_variable arrived_;
  std::vector<std::shared_ptr<Page>> pages_;  ///< those that are here or on their way
  std::uint64_t time_ = 0;                    ///< counts reads of pages
};

}  // namespace poisson
