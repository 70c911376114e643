#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace poisson {

/// A block of bytes in host memory that goes to, or comes from, another rank in every exchange.
struct Message {
  int rank = 0;
  void* data = nullptr;
  std::int64_t bytes = 0;
};

/// The same messages between neighbouring ranks, sent again and again.
class Exchange {
public:
  virtual ~Exchange() = default;
  /// Sends what is in the buffers of sends; until finish() returns, no buffer may be touched.
  virtual void start() = 0;
  /// Waits until the buffers of receives are filled.
  virtual void finish() = 0;
};

/// The ranks that work on one problem: processes, each with its part of the rows. Every function but rank, size and end_all is
/// collective: all ranks call it, in the same order. Sizes agree unless a function says otherwise.
class Communicator {
public:
  Communicator() = default;
  Communicator(Communicator const&) = delete;
  Communicator& operator=(Communicator const&) = delete;
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Puts the `bytes` bytes of every rank one after another into `all`, in the order of the ranks.
  virtual void all_gather(void const* mine, std::int64_t bytes, void* all) = 0;
  virtual void barrier() = 0;
  /// Ranks name each other: what one sends to another the other receives, with as many bytes. At most one message each way between
  /// two ranks. The communicator and the buffers outlive the result.
  [[nodiscard]] virtual std::unique_ptr<Exchange> make_exchange(std::span<Message const> sends,
                                                                std::span<Message const> receives) = 0;
  /// Ends the processes of all ranks with this exit code. One rank is enough to call it.
  [[noreturn]] virtual void end_all(int exit_code) = 0;
  /// Whether this is alone(). A team of one rank that is not alone() works as any team does.
  [[nodiscard]] inline bool is_alone() const;
};

/// The one rank of a run that has no others, without MPI and threads. Whoever may have several ranks takes a Communicator&, and
/// gets this one where there is no other rank; results then have the same bits as if there were no communicator.
[[nodiscard]] Communicator& alone();

bool Communicator::is_alone() const {
  return this == &alone();
}

/// The value of every rank.
template <class T>
[[nodiscard]] std::vector<T> gather(Communicator& ranks, T const& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&mine, sizeof(T), all.data());
  return all;
}

/// The text of every rank, of any length.
[[nodiscard]] inline std::vector<std::string> gather_texts(Communicator& ranks, std::string const& mine) {
  auto const lengths = gather(ranks, static_cast<std::int64_t>(mine.size()));
  auto const longest = static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::vector<std::string> texts(lengths.size());
  if (longest == 0)
    return texts;
  std::string padded = mine, all(longest * lengths.size(), '\0');
  padded.resize(longest, '\0');
  ranks.all_gather(padded.data(), static_cast<std::int64_t>(longest), all.data());
  for (std::size_t r = 0; r < texts.size(); ++r)
    texts[r] = all.substr(r * longest, static_cast<std::size_t>(lengths[r]));
  return texts;
}

/// The lists of all ranks, of any lengths, one after another on the first one; the others get none. `sizes`: if not null, those of
/// the lists, on all.
template <class T>
[[nodiscard]] std::vector<T> joined_on_first(Communicator& ranks, std::vector<T> mine, std::vector<std::int64_t>* sizes = nullptr) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr auto most = static_cast<std::int64_t>((std::size_t{1} << 28) / sizeof(T));  // of a message, which MPI counts in 31 bits
  auto const size_of = gather(ranks, std::ssize(mine));
  bool const is_first = ranks.rank() == 0;
  std::int64_t total = 0, longest = 0;
  for (std::int64_t const size : size_of) {
    total += size;
    longest = std::max(longest, size);
  }
  if (is_first)
    mine.resize(static_cast<std::size_t>(total));
  for (std::int64_t first = 0; first < longest; first += most) {
    std::vector<Message> sends, receives;
    auto const add = [&](std::vector<Message>& messages, int rank, T* list, std::int64_t size) {
      if (size > first)
        messages.push_back({rank, list + first, std::min(size - first, most) * static_cast<std::int64_t>(sizeof(T))});
    };
    if (!is_first)
      add(sends, 0, mine.data(), std::ssize(mine));
    T* list = mine.data() + size_of[0];
    for (std::size_t r = 1; is_first && r < size_of.size(); list += size_of[r++])
      add(receives, static_cast<int>(r), list, size_of[r]);
    auto const exchange = ranks.make_exchange(sends, receives);
    exchange->start();
    exchange->finish();
  }
  if (sizes != nullptr)
    *sizes = size_of;
  return is_first ? std::move(mine) : std::vector<T>{};
}

/// The same, a list for each rank.
template <class T>
[[nodiscard]] std::vector<std::vector<T>> gather_on_first(Communicator& ranks, std::vector<T> const& mine) {
  std::vector<std::int64_t> sizes;
  std::vector<T> const joined = joined_on_first(ranks, mine, &sizes);
  std::vector<std::vector<T>> all;
  if (ranks.rank() == 0) {
    auto next = joined.begin();
    for (std::int64_t const size : sizes) {
      all.emplace_back(next, next + size);
      next += size;
    }
  }
  return all;
}

/// The lists of all ranks one after another, on every rank; of any lengths below 2^31 bytes.
template <class T>
[[nodiscard]] std::vector<T> gather_lists(Communicator& ranks, std::vector<T> mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  auto const lengths = gather(ranks, static_cast<std::int64_t>(mine.size()));
  std::int64_t total = 0;
  for (std::int64_t const length : lengths)
    total += length;
  std::vector<T> all(static_cast<std::size_t>(total));
  std::vector<Message> sends, receives;
  T* next = all.data();
  for (int other = 0; other < ranks.size(); ++other) {
    std::int64_t const length = lengths[static_cast<std::size_t>(other)];
    if (other == ranks.rank()) {
      std::copy(mine.begin(), mine.end(), next);
    } else {
      if (length > 0)
        receives.push_back({other, next, length * std::int64_t{sizeof(T)}});
      if (!mine.empty())
        sends.push_back({other, mine.data(), static_cast<std::int64_t>(mine.size() * sizeof(T))});
    }
    next += length;
  }
  auto const exchange = ranks.make_exchange(sends, receives);
  exchange->start();
  exchange->finish();
  return all;
}

/// What every rank sends to every other one, itself included; of any lengths. The
/// result is what each has sent to this one.
template <class T>
[[nodiscard]] std::vector<std::vector<T>> swap_lists(Communicator& ranks, std::vector<std::vector<T>> const& to) {
  auto const n = static_cast<std::size_t>(ranks.size()), me = static_cast<std::size_t>(ranks.rank());
  std::vector<std::int64_t> lengths, all(n * n);
  for (auto const& list : to)
    lengths.push_back(std::ssize(list));
  ranks.all_gather(lengths.data(), static_cast<std::int64_t>(n * sizeof(std::int64_t)), all.data());
  std::vector<std::vector<T>> from(n);
  std::vector<Message> sends, receives;
  std::vector<std::vector<T>> outgoing = to;
  for (std::size_t other = 0; other < n; ++other) {
    from[other].resize(static_cast<std::size_t>(all[other * n + me]));
    auto const rank = static_cast<int>(other);
    if (other != me && !outgoing[other].empty())
      sends.push_back({rank, outgoing[other].data(), std::ssize(outgoing[other]) * std::int64_t{sizeof(T)}});
    if (other != me && !from[other].empty())
      receives.push_back({rank, from[other].data(), std::ssize(from[other]) * std::int64_t{sizeof(T)}});
  }
  from[me] = to[me];
  auto const exchange = ranks.make_exchange(sends, receives);
  exchange->start();
  exchange->finish();
  return from;
}

/// "rank 2: " before a message, where there are several ranks.
[[nodiscard]] inline std::string told_by(int rank, std::string const& message) {
  return "rank " + std::to_string(rank) + ": " + message;
}

/// The message of the lowest rank that has one, with its rank unless all say the same; empty where none has.
[[nodiscard]] inline std::string first_message(Communicator& ranks, std::string const& mine) {
  if (ranks.is_alone())
    return mine;
  auto const all = gather_texts(ranks, mine);
  if (std::count(all.begin(), all.end(), all.front()) == std::ssize(all))
    return all.front();
  for (std::size_t r = 0; r < all.size(); ++r)
    if (!all[r].empty())
      return told_by(static_cast<int>(r), all[r]);
  return "";
}

// Sums, maxima and conditions over the ranks. All ranks get the same bits, since they add in the order of the ranks. One rank that
// is alone gets its own value, bit for bit, and nothing is allocated.

template <class T>
[[nodiscard]] T sum_over(Communicator& ranks, T const& mine) {
  if (ranks.is_alone())
    return mine;
  T sum = 0;
  for (T const& value : gather(ranks, mine))
    sum = sum + value;
  return sum;
}
/// NaN where one of them is.
[[nodiscard]] inline double max_over(Communicator& ranks, double mine) {
  if (ranks.is_alone())
    return mine;
  double largest = mine;
  bool first = true;
  for (double const value : gather(ranks, mine)) {
    largest = first || value > largest || value != value ? value : largest;
    first = false;
    if (largest != largest)
      break;
  }
  return largest;
}
/// Whether it is so on one rank at least.
[[nodiscard]] inline bool any_of_ranks(Communicator& ranks, bool mine) {
  if (ranks.is_alone())
    return mine;
  auto const all = gather(ranks, static_cast<std::int32_t>(mine ? 1 : 0));
  return std::any_of(all.begin(), all.end(), [](std::int32_t value) { return value != 0; });
}

}  // namespace poisson
