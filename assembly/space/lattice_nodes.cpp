#include "assembly/space/lattice_nodes.hpp"

#include "assembly/parallel.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>
#include <vector>

namespace poisson::assembly {

namespace {

/// Bytes of the lattices that are made at once: enough work for all threads.
constexpr std::int64_t most_at_once = std::int64_t{1} << 25;

/// For so many nodes inside a lattice is made each time; for more all of them are.
constexpr int few_points = 8;

std::int64_t bytes_of_lattice(LatticeLayout const& layout) {
  return 24 * layout.nodes() * layout.nodes() * layout.nodes();
}

/// Runs body(i) for i < n, in parts.
template <class Body>
void for_each(std::int64_t n, Body const& body) {
  constexpr std::int64_t size = 1 << 13;
  parallel_for(n_parts(n, size), [&](std::int64_t block) {
    auto const [begin, end] = part(n, size, block);
    for (std::int64_t i = begin; i < end; ++i)
      body(i);
  });
}

}  // namespace

std::int64_t LatticeNodes::lattices_at_once(LatticeLayout const& layout) {
  return std::clamp<std::int64_t>(most_at_once / bytes_of_lattice(layout), 1, std::max<std::int64_t>(layout.n_lattices, 1));
}

std::int64_t LatticeNodes::bytes_at_once(LatticeLayout const& layout) {
  return lattices_at_once(layout) * bytes_of_lattice(layout);
}

std::int64_t LatticeNodes::bytes_on_rims(LatticeLayout const& layout) {
  std::int64_t const m = layout.nodes();
  return layout.n_lattices * (6 * 24 * (layout.order + 1) * m * m + 4 * layout.rim().size()) +
         24 * (layout.n_unknowns - layout.n_inner());
}

LatticeNodes::LatticeNodes(LatticeLayout const& layout, MakeLatticeNodes make, TakeLatticeNodes const& give)
    : make_(std::move(make)),
      n_lattices_(layout.n_lattices),
      m_(layout.nodes()),
      cells_(layout.cells),
      n_inner_(layout.n_inner()),
      at_once_(lattices_at_once(layout)),
      order_(layout.order),
      rim_unknowns_(layout.rim_unknowns),
      on_rims_(static_cast<std::size_t>(3 * (layout.n_unknowns - layout.n_inner()))),
      sides_(static_cast<std::size_t>(n_lattices_ * 6 * 3 * of_side())) {
  assert(layout.cells >= 2 && !layout.all_on_rim);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  extremes_ = {{infinity, infinity, infinity}, {-infinity, -infinity, -infinity}};
  HostVector<double> made;
  for (std::int64_t first = 0; first < n_lattices_; first += at_once_) {
    made = make_(first, std::min(at_once_, n_lattices_ - first), std::move(made));
    take(layout, first, made);
    if (give)
      give(layout, first, made);
  }
}

void LatticeNodes::take(LatticeLayout const& layout, std::int64_t first, HostVector<double>& made) {
  LatticeRim const rim{m_};
  std::int64_t const size = m_ * m_ * m_, count = std::ssize(made) / of_lattice(), rims = rim.size();
  // First copies of nodes are in these lattices, or in some before.
  for_each(count * rims, [&](std::int64_t i) {
    std::int64_t const place = first * rims + i;
    auto const unknown = static_cast<std::size_t>(layout.rim_unknowns[static_cast<std::size_t>(place)] - n_inner_);
    if (layout.copies[static_cast<std::size_t>(layout.copy_offsets[unknown])] != place)
      return;
    LatticeRim::Node const at = rim.node(i % rims);
    for (std::int64_t d = 0; d < 3; ++d)
      on_rims_[3 * unknown + static_cast<std::size_t>(d)] =
          made[static_cast<std::size_t>((3 * (i / rims) + d) * size + (at.k * m_ + at.j) * m_ + at.i)];
  });
  put_rims(first, made);
  // Lines in x of the sides.
  std::int64_t const layers = order_ + 1;
  parallel_for(count * 18, [&](std::int64_t i) {
    std::int64_t const lattice = i / 18, face = i % 18 / 3, d = i % 3, along = face / 2;
    std::array<std::int64_t, 3> begin{0, 0, 0}, n{m_, m_, m_};
    n[static_cast<std::size_t>(along)] = layers;
    begin[static_cast<std::size_t>(along)] = face % 2 == 0 ? 0 : m_ - layers;
    double const* const from = made.data() + (3 * lattice + d) * size;
    double* to = sides_.data() + (((first + lattice) * 6 + face) * 3 + d) * of_side();
    for (std::int64_t z = begin[2]; z < begin[2] + n[2]; ++z)
      for (std::int64_t y = begin[1]; y < begin[1] + n[1]; ++y, to += n[0])
        std::copy_n(from + (z * m_ + y) * m_ + begin[0], n[0], to);
  });
  std::vector<std::pair<double, double>> found(static_cast<std::size_t>(3 * count * m_));
  parallel_for(std::ssize(found), [&](std::int64_t plane) {
    double const* const x = made.data() + plane * m_ * m_;
    auto const [low, high] = std::minmax_element(x, x + m_ * m_);
    found[static_cast<std::size_t>(plane)] = {*low, *high};
  });
  for (std::size_t plane = 0; plane < found.size(); ++plane) {
    std::size_t const d = plane / static_cast<std::size_t>(m_) % 3;
    extremes_.low[d] = std::min(extremes_.low[d], found[plane].first);
    extremes_.high[d] = std::max(extremes_.high[d], found[plane].second);
  }
}

void LatticeNodes::put_rims(std::int64_t first, HostVector<double>& made) const {
  LatticeRim const rim{m_};
  std::int64_t const size = m_ * m_ * m_, rims = rim.size();
  for_each(std::ssize(made) / of_lattice() * rims, [&](std::int64_t i) {
    LatticeRim::Node const at = rim.node(i % rims);
    std::int64_t const unknown = rim_unknowns_[static_cast<std::size_t>(first * rims + i)] - n_inner_;
    for (std::int64_t d = 0; d < 3; ++d)
      made[static_cast<std::size_t>((3 * (i / rims) + d) * size + (at.k * m_ + at.j) * m_ + at.i)] =
          on_rims_[static_cast<std::size_t>(3 * unknown + d)];
  });
}

HostVector<double> const& LatticeNodes::all() const {
  if (has_all())
    return all_;
  std::scoped_lock const lock(mutex_);
  if (!has_all()) {
    HostVector<double> all(static_cast<std::size_t>(n_lattices_ * of_lattice()));
    for (std::int64_t first = 0; first < n_lattices_; first += at_once_) {
      HostVector<double> const made = of(first, std::min(at_once_, n_lattices_ - first));
      std::copy(made.begin(), made.end(), all.begin() + first * of_lattice());
    }
    all_ = std::move(all);
    has_all_.store(true, std::memory_order_release);
  }
  return all_;
}

HostVector<double> LatticeNodes::of(std::int64_t first, std::int64_t count) const {
  HostVector<double> made = make_(first, count, {});
  put_rims(first, made);
  return made;
}

LatticeNodes::Steps LatticeNodes::steps_of(std::int64_t m, int order, std::size_t steps) {
  std::int64_t const layers = order + 1;
  return {steps == 1 ? layers : m, m * (steps == 1 || steps == 2 ? layers : m)};
}

LatticeNodes::FirstNode LatticeNodes::first_node(std::int64_t lattice, std::array<std::int64_t, 3> const& cell) const {
  if (!has_all())
    for (std::size_t d = 0; d < 3; ++d)
      if (bool const low = cell[d] == 0; low || cell[d] == cells_ - 1) {
        auto const [y, z] = steps_of(m_, order_, d + 1);
        std::array<std::int64_t, 3> in_side = cell;
        in_side[d] = 0;  // the layers begin with this cell
        return {side(lattice, 2 * d + (low ? 0 : 1)) + (in_side[2] * z + in_side[1] * y + in_side[0]) * order_, of_side(), d + 1};
      }
  std::int64_t const m = m_;
  return {all().data() + lattice * of_lattice() + ((cell[2] * m + cell[1]) * m + cell[0]) * order_, m * m * m, 0};
}

std::array<double, 3> LatticeNodes::point(std::int64_t lattice, std::int64_t node) const {
  std::array<std::int64_t, 3> at{node % m_, node / m_ % m_, node / (m_ * m_)};
  std::int64_t const layers = order_ + 1;
  double const* x = nullptr;
  std::int64_t to_next_direction = m_ * m_ * m_;
  for (std::size_t d = 0; d < 3 && x == nullptr && !has_all(); ++d)
    if (bool const low = at[d] < layers; low || at[d] >= m_ - layers) {
      auto const [y, z] = steps_of(m_, order_, d + 1);
      at[d] -= low ? 0 : m_ - layers;
      x = side(lattice, 2 * d + (low ? 0 : 1)) + at[2] * z + at[1] * y + at[0];
      to_next_direction = of_side();
    }
  HostVector<double> made;
  if (x == nullptr) {
    bool const is_one_of_few = !has_all() && asked_.fetch_add(1, std::memory_order_relaxed) < few_points;
    if (is_one_of_few)
      made = of(lattice, 1);
    x = (is_one_of_few ? made.data() : all().data() + lattice * of_lattice()) + node;
  }
  return {x[0], x[to_next_direction], x[2 * to_next_direction]};
}

}  // namespace poisson::assembly
