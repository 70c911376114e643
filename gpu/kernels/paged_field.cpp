#include "gpu/kernels/paged_field.hpp"

#include "gpu/kernels/fields.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <numeric>

namespace poisson {

PagedField::PagedField(Context& context, std::int64_t n, double const* values, std::int64_t entries, std::int64_t most)
    : context_(context), n_(n), values_(values), entries_(entries), most_(static_cast<std::size_t>(most)) {}

std::int64_t PagedField::bytes(std::int64_t n) {
  return std::min(n, page_size * most_pages) * std::int64_t{sizeof(double)};
}

void PagedField::read(std::int64_t first, std::int64_t n, double* out) {
  while (n > 0) {
    std::shared_ptr<Page const> const from = page(first / entries_);
    std::int64_t const begin = first % entries_, count = std::min(n, entries_ - begin);
    std::copy_n(from->values.data() + begin, count, out);
    first += count;
    n -= count;
    out += count;
  }
}

void PagedField::pick(std::span<std::int64_t const> places, double* out) {
  // By page, in any order: every page is asked for once, which threads wait for. Bytes of a place: 8 and 8 of it and its value, and
  // 4 twice.
  auto const [low, high] = std::ranges::minmax_element(places);
  if (low == places.end())
    return;
  std::int64_t const first = *low / entries_;
  std::vector<std::int32_t> begin(static_cast<std::size_t>(*high / entries_ - first) + 2, 0), sorted(places.size());
  auto const bin = [&](std::int64_t place) { return static_cast<std::size_t>(place / entries_ - first); };
  for (std::int64_t const place : places)
    ++begin[bin(place) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
  for (std::size_t i = 0; i < places.size(); ++i)
    sorted[static_cast<std::size_t>(next[bin(places[i])]++)] = static_cast<std::int32_t>(i);
  for (std::size_t of = 0; of < next.size(); ++of) {
    if (begin[of] == begin[of + 1])
      continue;
    std::int64_t const number = first + static_cast<std::int64_t>(of);
    std::shared_ptr<Page const> const from = page(number);
    for (std::int32_t i = begin[of]; i < begin[of + 1]; ++i) {
      auto const at = static_cast<std::size_t>(sorted[static_cast<std::size_t>(i)]);
      out[at] = from->values[static_cast<std::size_t>(places[at] - number * entries_)];
    }
  }
}

HostVector<double> PagedField::at(std::span<std::int32_t const> places) {
  std::scoped_lock const lock(of_context_);
  context_.use_in_this_thread();
  return entries_of(context_, values_, places);
}

std::shared_ptr<PagedField::Page const> PagedField::page(std::int64_t number) {
  std::unique_lock lock(mutex_);
  auto const find = [&] { return std::ranges::find_if(pages_, [&](auto const& page) { return page->number == number; }); };
  for (auto found = find(); found != pages_.end(); found = find()) {
    std::shared_ptr<Page> const page = *found;
    if (page->is_here) {
      page->last_read = ++time_;
      return page;
    }
    arrived_.wait(lock);
  }
  std::shared_ptr<Page> page;
  if (pages_.size() >= most_) {
    // Of those that nobody reads: fresh memory for each of many pages would leave holes between what else is in memory.
    auto const is_free = [](auto const& one) { return one->is_here && one.use_count() == 1; };
    auto const is_older = [&](auto const& a, auto const& b) {
      return is_free(a) != is_free(b) ? is_free(a) : a->last_read < b->last_read;
    };
    auto const oldest = std::ranges::min_element(pages_, is_older);
    if (is_free(*oldest)) {
      std::atomic_thread_fence(std::memory_order_acquire);  // after what its last readers did
      page = std::move(*oldest);
      *oldest = std::move(pages_.back());
      pages_.pop_back();
    }
  }
  if (page == nullptr)
    page = std::make_shared<Page>();
  page->number = number;
  page->is_here = false;
  pages_.push_back(page);
  lock.unlock();
  try {
    take(*page);
  } catch (...) {
    lock.lock();
    std::erase(pages_, page);
    arrived_.notify_all();
    throw;
  }
  lock.lock();
  page->is_here = true;
  page->last_read = ++time_;
  arrived_.notify_all();
  return page;
}

void PagedField::take(Page& page) {
  std::int64_t const first = page.number * entries_, n = std::min(entries_, n_ - first);
  page.values.resize(static_cast<std::size_t>(entries_));
  std::scoped_lock const lock(of_context_);
  context_.use_in_this_thread();
  context_.download(page.values.data(), values_ + first, n * std::int64_t{sizeof(double)});
}

}  // namespace poisson
