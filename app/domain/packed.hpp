#pragma once

#include "gpu/core/rank_rows.hpp"

#include <cstdint>
#include <cstring>
#include <set>
#include <type_traits>
#include <vector>

/// What one rank sends to another as bytes: values one after another, taken out in the order in which they were put in.
namespace poisson::app {

/// Puts in numbers, and lists with their length before.
template <class Bytes>
class Packer {
public:
  template <class T>
  void put(T const& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof value);
  }
  template <class List>
  void put_list(List const& list) {
    using T = typename List::value_type;
    static_assert(std::is_trivially_copyable_v<T>);
    put(static_cast<std::int64_t>(list.size()));
    append(list.data(), list.size() * sizeof(T));
  }
  void put_set(std::set<unsigned> const& set) { put_list(std::vector<unsigned>(set.begin(), set.end())); }
  void put_neighbors(std::vector<RankNeighbor> const& neighbors) {
    put(static_cast<std::int64_t>(neighbors.size()));
    for (RankNeighbor const& neighbor : neighbors) {
      put(neighbor.rank);
      put(neighbor.n_ghosts);
      put_list(neighbor.sent);
    }
  }
  Bytes bytes;

private:
  void append(void const* data, std::size_t size) {
    auto const* const first = static_cast<char const*>(data);
    bytes.insert(bytes.end(), first, first + size);
  }
};

/// Takes them out.
template <class Bytes>
class Unpacker {
public:
  explicit Unpacker(Bytes const& bytes) : next_(bytes.data()) {}
  template <class T>
  [[nodiscard]] T take() {
    T value;
    std::memcpy(&value, next_, sizeof value);
    next_ += sizeof value;
    return value;
  }
  template <class T>
  void take(T& value) {
    value = take<T>();
  }
  template <class List>
  void take_list(List& list) {
    list.resize(static_cast<std::size_t>(take<std::int64_t>()));
    std::size_t const size = list.size() * sizeof(typename List::value_type);
    if (size > 0)
      std::memcpy(list.data(), next_, size);
    next_ += size;
  }
  void take_set(std::set<unsigned>& set) {
    std::vector<unsigned> list;
    take_list(list);
    set = {list.begin(), list.end()};
  }
  void take_neighbors(std::vector<RankNeighbor>& neighbors) {
    neighbors.resize(static_cast<std::size_t>(take<std::int64_t>()));
    for (RankNeighbor& neighbor : neighbors) {
      take(neighbor.rank);
      take(neighbor.n_ghosts);
      take_list(neighbor.sent);
    }
  }

private:
  char const* next_;
};

}  // namespace poisson::app
