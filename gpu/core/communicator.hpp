#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
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

/// An Exchange sends the same messages between neighbouring ranks, again and again.
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
  /// Makes `into` what `into` and `from` are together; `count` values each.
  using Combine = void (*)(void* into, void const* from, std::int64_t count);
  /// Order says in which order the values of ranks are combined.
  enum class Order {
    any,      ///< for what has the same bits in every order, such as maxima and sums of integers
    of_ranks  ///< the values of ranks_of_block consecutive ranks in the order of the ranks; then those of these blocks in theirs
  };
  static constexpr int ranks_of_block = 64;
  /// Room returns where so many bytes from this rank are to be put.
  using Room = std::function<void*(int rank, std::int64_t bytes)>;

  Communicator() = default;
  Communicator(Communicator const&) = delete;
  Communicator& operator=(Communicator const&) = delete;
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Puts the `bytes` bytes of every rank one after another into `all`, in the order of the ranks.
  virtual void all_gather(void const* mine, std::int64_t bytes, void* all) = 0;
  virtual void barrier() = 0;
  /// All ranks get the bytes that rank `from` has.
  virtual void broadcast(int from, void* data, std::int64_t bytes) = 0;
  /// The same, where ranks may wait long for the bytes: those that can sleep meanwhile, and leave their processors to others.
  virtual void broadcast_late(int from, void* data, std::int64_t bytes) { broadcast(from, data, bytes); }
  /// All ranks get the combination of the values of all, `count` of `size` bytes each, with the same bits. No rank gets more than
  /// some ranks_of_block lists.
  virtual void combine(void* values, std::int64_t count, std::int64_t size, Combine into, Order order) = 0;
  /// Sends messages to other ranks, at most one to each, which do not know of them before; calls room() for each that comes. What a
  /// rank does depends on its own messages, and hardly on the number of ranks.
  virtual void deliver(std::span<Message const> sends, Room const& room) = 0;
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

/// A list for each of some ranks, by rank ascending; all others have an empty one.
template <class T>
class RankLists {
public:
  [[nodiscard]] std::vector<T>& operator[](int rank) { return lists_[rank]; }
  [[nodiscard]] std::vector<T> const& operator[](int rank) const {
    static std::vector<T> const empty;
    auto const found = lists_.find(rank);
    return found == lists_.end() ? empty : found->second;
  }
  [[nodiscard]] auto begin() const { return lists_.begin(); }
  [[nodiscard]] auto end() const { return lists_.end(); }
  /// All of them in one.
  [[nodiscard]] std::vector<T> joined() const {
    std::vector<T> all;
    for (auto const& [rank, list] : lists_)
      all.insert(all.end(), list.begin(), list.end());
    return all;
  }

private:
  std::map<int, std::vector<T>> lists_;
};

/// Sends each of these lists, of any lengths, to its rank, which may be this one. The result is what ranks have sent to this one.
template <class T>
[[nodiscard]] RankLists<T> swap_lists(Communicator& ranks, RankLists<T> const& to) {
  static_assert(std::is_trivially_copyable_v<T>);
  RankLists<T> from;
  std::vector<Message> sends;
  for (auto const& [rank, list] : to)
    if (rank == ranks.rank())
      from[rank] = list;
    else if (!list.empty())  // which is only read
      sends.push_back({rank, const_cast<T*>(list.data()), std::ssize(list) * std::int64_t{sizeof(T)}});
  ranks.deliver(sends, [&](int rank, std::int64_t bytes) {
    from[rank].resize(static_cast<std::size_t>(bytes) / sizeof(T));
    return static_cast<void*>(from[rank].data());
  });
  return from;
}

/// Returns the value of one rank, on all ranks.
template <class T>
[[nodiscard]] T of_rank(Communicator& ranks, int rank, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  ranks.broadcast(rank, &value, sizeof(T));
  return value;
}
template <class T>
[[nodiscard]] T of_first(Communicator& ranks, T value) {
  return of_rank(ranks, 0, value);
}
/// Returns the text of one rank, on all ranks. It may have any length below 2^31.
[[nodiscard]] inline std::string text_of_rank(Communicator& ranks, int rank, std::string text) {
  text.resize(static_cast<std::size_t>(of_rank(ranks, rank, std::ssize(text))));
  ranks.broadcast(rank, text.data(), std::ssize(text));
  return text;
}

// Sums, maxima and conditions over the ranks; all ranks get the same bits. One rank that is alone gets its own value, bit for bit,
// and nothing is allocated.

/// values[i] becomes what those of all ranks are together; into(T& a, T const& b), which has no state, puts b into a.
template <class T, class Into>
void combine_lists(Communicator& ranks, std::span<T> values, Into, Communicator::Order order = Communicator::Order::any) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_empty_v<Into>);
  if (ranks.is_alone() || values.empty())
    return;
  auto const combine = [](void* into, void const* from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      Into{}(static_cast<T*>(into)[i], static_cast<T const*>(from)[i]);
  };
  ranks.combine(values.data(), std::ssize(values), sizeof(T), combine, order);
}
/// Returns what the values of all ranks, one each, are together; see combine_lists.
template <class T, class Into>
[[nodiscard]] T combined(Communicator& ranks, T mine, Into into, Communicator::Order order = Communicator::Order::any) {
  combine_lists(ranks, std::span<T>(&mine, 1), into, order);
  return mine;
}

/// Sums over the ranks of the entries of lists of equal length, in the order of the ranks (Order::of_ranks).
template <class T>
void sum_lists(Communicator& ranks, std::span<T> values) {
  for (T& value : ranks.is_alone() ? std::span<T>() : values)
    value = T(0) + value;  // no negative zero
  combine_lists(
      ranks, values, [](T& sum, T const& value) { sum = sum + value; },
      std::is_integral_v<T> ? Communicator::Order::any : Communicator::Order::of_ranks);
}
template <class T>
[[nodiscard]] T sum_over(Communicator& ranks, T mine) {
  sum_lists(ranks, std::span<T>(&mine, 1));
  return mine;
}
/// NaN where one of them is.
template <class T>
[[nodiscard]] T max_over(Communicator& ranks, T mine) {
  return combined(ranks, mine, [](T& largest, T const& value) {
    bool is_larger = value > largest;
    if constexpr (std::is_floating_point_v<T>)  // of two zeros the same one in any order
      is_larger = is_larger || value != value || (value == largest && std::signbit(largest));
    if (is_larger && largest == largest)
      largest = value;
  });
}
/// Whether it is so on one rank at least.
[[nodiscard]] inline bool any_of_ranks(Communicator& ranks, bool mine) {
  return combined(ranks, static_cast<std::int32_t>(mine ? 1 : 0), [](std::int32_t& any, std::int32_t one) { any |= one; }) != 0;
}

/// "rank 2: " before a message, where there are several ranks.
[[nodiscard]] inline std::string told_by(int rank, std::string const& message) {
  return "rank " + std::to_string(rank) + ": " + message;
}

/// The message of the lowest rank that has one, with its rank unless all say the same; empty where none has.
[[nodiscard]] inline std::string first_message(Communicator& ranks, std::string const& mine) {
  if (ranks.is_alone())
    return mine;
  int const first = -max_over(ranks, -(mine.empty() ? ranks.size() : ranks.rank()));
  if (first == ranks.size())
    return "";
  std::string const message = text_of_rank(ranks, first, mine);
  return any_of_ranks(ranks, mine != message) ? told_by(first, message) : message;
}

}  // namespace poisson
