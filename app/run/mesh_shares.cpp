#include "app/run/mesh_shares.hpp"

#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <type_traits>

namespace poisson::app {

namespace {

/// Puts values one after another: numbers, and lists with their length before.
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
  Bytes bytes;

private:
  void append(void const* data, std::size_t size) {
    auto const* const first = static_cast<char const*>(data);
    bytes.insert(bytes.end(), first, first + size);
  }
};

/// Takes them in the same order.
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

private:
  char const* next_;
};

}  // namespace

std::string packed(assembly::MeshCounts const& counts) {
  Packer<std::string> to;
  for (std::int64_t const count :
       {counts.cells, counts.faces, counts.edges, counts.vertices, counts.boundary_faces, counts.triangulation_bytes})
    to.put(count);
  to.put(std::ssize(counts.faces_with_id));
  for (auto const& [id, count] : counts.faces_with_id) {
    to.put(id);
    to.put(count);
  }
  to.put_set(counts.boundary_ids);
  to.put_set(counts.material_ids);
  for (auto const* const names : {&counts.boundary_names, &counts.material_names}) {
    to.put(std::ssize(*names));
    for (auto const& [id, name] : *names) {
      to.put(id);
      to.put_list(name);
    }
  }
  to.put_list(counts.periodic);
  return to.bytes;
}

assembly::MeshCounts unpacked_counts(std::string const& bytes) {
  Unpacker<std::string> from(bytes);
  assembly::MeshCounts counts;
  for (std::int64_t* const count :
       {&counts.cells, &counts.faces, &counts.edges, &counts.vertices, &counts.boundary_faces, &counts.triangulation_bytes})
    from.take(*count);
  for (auto n = from.take<std::ptrdiff_t>(); n > 0; --n) {
    auto const id = from.take<unsigned>();
    from.take(counts.faces_with_id[id]);
  }
  from.take_set(counts.boundary_ids);
  from.take_set(counts.material_ids);
  for (auto* const names : {&counts.boundary_names, &counts.material_names})
    for (auto n = from.take<std::ptrdiff_t>(); n > 0; --n) {
      auto const id = from.take<unsigned>();
      from.take_list((*names)[id]);
    }
  from.take_list(counts.periodic);
  return counts;
}

std::vector<char> packed(MeshShare const& share) {
  Packer<std::vector<char>> to;
  assembly::PartOfSpace const& part = share.part;
  for (auto const* const list : {&part.own_cells, &part.around_cells, &part.unknowns, &part.in_own_cells})
    to.put_list(*list);
  to.put(part.n_rows);
  to.put(std::ssize(part.neighbors));
  for (RankNeighbor const& neighbor : part.neighbors) {
    to.put(neighbor.rank);
    to.put(neighbor.n_ghosts);
    to.put_list(neighbor.sent);
  }
  assembly::SpaceArrays const& around = share.around;
  to.put_list(around.cell_dofs);
  to.put_list(around.points);
  to.put_list(around.materials);
  to.put_list(around.boundary_faces);
  to.put_set(around.boundary_ids);
  to.put_set(around.material_ids);
  to.put(around.n_cells_of_whole);
  to.put(around.isoparametric);
  return std::move(to.bytes);
}

MeshShare unpacked_share(std::vector<char> const& bytes) {
  Unpacker<std::vector<char>> from(bytes);
  MeshShare share;
  assembly::PartOfSpace& part = share.part;
  for (auto* const list : {&part.own_cells, &part.around_cells, &part.unknowns, &part.in_own_cells})
    from.take_list(*list);
  from.take(part.n_rows);
  part.neighbors.resize(static_cast<std::size_t>(from.take<std::ptrdiff_t>()));
  for (RankNeighbor& neighbor : part.neighbors) {
    from.take(neighbor.rank);
    from.take(neighbor.n_ghosts);
    from.take_list(neighbor.sent);
  }
  assembly::SpaceArrays& around = share.around;
  from.take_list(around.cell_dofs);
  from.take_list(around.points);
  from.take_list(around.materials);
  from.take_list(around.boundary_faces);
  from.take_set(around.boundary_ids);
  from.take_set(around.material_ids);
  from.take(around.n_cells_of_whole);
  from.take(around.isoparametric);
  return share;
}

}  // namespace poisson::app
