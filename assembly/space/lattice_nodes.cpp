#include "assembly/space/lattice_nodes.hpp"

#include "assembly/parallel.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace poisson::assembly {

namespace {

/// Bytes of the lattices, or faces of lattices, that are made at once: enough work for all threads.
constexpr std::int64_t most_at_once = std::int64_t{1} << 25;

/// For so many nodes inside a lattice is filled each time; for more all of them are.
constexpr int few_points = 8;

std::int64_t bytes_of_lattice(LatticeLayout const& layout) {
  return 24 * layout.nodes() * layout.nodes() * layout.nodes();
}
std::int64_t bytes_of_faces(LatticeLayout const& layout) {
  return 6 * 24 * layout.nodes() * layout.nodes();
}
/// How many lattices are made at once, of so many bytes each.
std::int64_t at_once(LatticeLayout const& layout, std::int64_t bytes) {
  return std::clamp<std::int64_t>(most_at_once / bytes, 1, std::max<std::int64_t>(layout.n_lattices, 1));
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

/// One of the faces of a lattice on which a node on its rim is, and where: [face m^2 + place], the lower of the other directions
/// fastest.
std::pair<std::int64_t, std::int64_t> place_on_face(LatticeRim::Node const& node, std::int64_t m) {
  std::array<std::int64_t, 3> const at{node.i, node.j, node.k};
  std::size_t d = 2;
  while (at[d] != 0 && at[d] != m - 1)
    --d;
  return {2 * static_cast<std::int64_t>(d) + (at[d] == 0 ? 0 : 1), at[d == 2 ? 1 : 2] * m + at[d == 0 ? 1 : 0]};
}

}  // namespace

std::int64_t LatticeNodes::bytes_at_once(LatticeLayout const& layout) {
  return at_once(layout, bytes_of_faces(layout)) * bytes_of_faces(layout);
}

std::int64_t LatticeNodes::bytes_kept(LatticeLayout const& layout, std::int64_t n_sides) {
  std::int64_t const m = layout.nodes();
  return n_sides * 24 * (layout.order + 1) * m * m + 24 * (layout.n_unknowns - layout.n_inner());
}

LatticeNodes::LatticeNodes(LatticeLayout const& layout, std::vector<double> parameters, MakeLatticeFaces const& make,
                           std::vector<std::uint8_t> const& is_kept, FillLattices const& fill)
    : m_(layout.nodes()),
      order_(layout.order),
      layout_(layout),
      parameters_(std::move(parameters)),
      on_rims_(static_cast<std::size_t>(3 * (layout.n_unknowns - layout.n_inner()))),
      side_number_(is_kept.size(), -1) {
  assert(layout.cells >= 2 && !layout.all_on_rim && std::ssize(is_kept) == 6 * layout.n_lattices);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  extremes_ = {{infinity, infinity, infinity}, {-infinity, -infinity, -infinity}};
  HostVector<double> faces;
  std::int64_t const n = at_once(layout, bytes_of_faces(layout));
  for (std::int64_t first = 0; first < layout.n_lattices; first += n) {
    faces = make(first, std::min(n, layout.n_lattices - first), std::move(faces));
    take_faces(first, faces);
  }
  for (std::size_t i = 0; i < is_kept.size(); ++i)
    if (is_kept[i] != 0) {
      side_number_[i] = static_cast<std::int32_t>(sides_kept_.size());
      sides_kept_.push_back(static_cast<std::int32_t>(i));
    }
  sides_.resize(static_cast<std::size_t>(std::ssize(sides_kept_) * 3 * of_side()));
  if (!fill || !fill({layout_, parameters_, on_rims_, sides_kept_}, sides_))
    fill_sides();
}

void LatticeNodes::take_faces(std::int64_t first, HostVector<double> const& faces) {
  LatticeRim const rim{m_};
  RimTables const& tables = *layout_.tables;
  std::int64_t const size = m_ * m_, rims = rim.size(), n_inner = layout_.n_inner();
  // First copies of nodes are in these lattices, or in some before.
  for_each(std::ssize(faces) / (18 * size) * rims, [&](std::int64_t i) {
    std::int64_t const place = first * rims + i;
    auto const unknown = static_cast<std::size_t>(tables.rim_unknowns[static_cast<std::size_t>(place)] - n_inner);
    if (tables.copies[static_cast<std::size_t>(tables.copy_offsets[unknown])] != place)
      return;
    auto const [face, at] = place_on_face(rim.node(i % rims), m_);
    for (std::int64_t d = 0; d < 3; ++d)
      on_rims_[3 * unknown + static_cast<std::size_t>(d)] =
          faces[static_cast<std::size_t>(((6 * (i / rims) + face) * 3 + d) * size + at)];
  });
  std::vector<std::pair<double, double>> found(static_cast<std::size_t>(std::ssize(faces) / size));
  parallel_for(std::ssize(found), [&](std::int64_t i) {
    auto const [low, high] = std::minmax_element(faces.data() + i * size, faces.data() + (i + 1) * size);
    found[static_cast<std::size_t>(i)] = {*low, *high};
  });
  for (std::size_t i = 0; i < found.size(); ++i) {
    extremes_.low[i % 3] = std::min(extremes_.low[i % 3], found[i].first);
    extremes_.high[i % 3] = std::max(extremes_.high[i % 3], found[i].second);
  }
}

void LatticeNodes::fill_sides() {
  std::int64_t const n = at_once(layout_, bytes_of_lattice(layout_)), size = m_ * m_ * m_, layers = order_ + 1;
  auto next = sides_kept_.begin();
  while (next != sides_kept_.end()) {
    std::int64_t const first = *next / 6, count = std::min(n, layout_.n_lattices - first);
    auto const end = std::lower_bound(next, sides_kept_.end(), static_cast<std::int32_t>(6 * (first + count)));
    HostVector<double> const made = of(first, count);
    parallel_for(3 * (end - next), [&](std::int64_t i) {  // lines in x
      std::int64_t const number = next - sides_kept_.begin() + i / 3, d = i % 3, lattice = *(next + i / 3) / 6 - first;
      auto const face = static_cast<std::size_t>(*(next + i / 3) % 6);
      std::array<std::int64_t, 3> begin{0, 0, 0}, many{m_, m_, m_};
      many[face / 2] = layers;
      begin[face / 2] = face % 2 == 0 ? 0 : m_ - layers;
      double const* const from = made.data() + (3 * lattice + d) * size;
      double* to = sides_.data() + (3 * number + d) * of_side();
      for (std::int64_t z = begin[2]; z < begin[2] + many[2]; ++z)
        for (std::int64_t y = begin[1]; y < begin[1] + many[1]; ++y, to += many[0])
          std::copy_n(from + (z * m_ + y) * m_ + begin[0], many[0], to);
    });
    next = end;
  }
}

HostVector<double> const& LatticeNodes::all() const {
  if (has_all())
    return all_;
  std::scoped_lock const lock(mutex_);
  if (!has_all()) {
    all_ = of(0, layout_.n_lattices);
    has_all_.store(true, std::memory_order_release);
  }
  return all_;
}

HostVector<double> LatticeNodes::of(std::int64_t first, std::int64_t count) const {
  HostVector<double> made(static_cast<std::size_t>(count * of_lattice()));
  LatticeRim const rim{m_};
  std::int64_t const size = m_ * m_ * m_, rims = rim.size(), n_inner = layout_.n_inner();
  for_each(count * rims, [&](std::int64_t i) {
    LatticeRim::Node const at = rim.node(i % rims);
    std::int64_t const unknown = layout_.tables->rim_unknowns[static_cast<std::size_t>(first * rims + i)] - n_inner;
    for (std::int64_t d = 0; d < 3; ++d)
      made[static_cast<std::size_t>((3 * (i / rims) + d) * size + (at.k * m_ + at.j) * m_ + at.i)] =
          on_rims_[static_cast<std::size_t>(3 * unknown + d)];
  });
  lattice_interior::for_passes(layout_, count, parameters_, [&](LatticeInterior const& pass) {
    std::int64_t const lines = pass.n_lines(), lines_at_once = std::max<std::int64_t>(4096 / pass.n_in_line(), 1);
    parallel_for(n_parts(lines, lines_at_once), [&](std::int64_t block) {
      auto const [begin, end] = part(lines, lines_at_once, block);
      for (std::int64_t line = begin; line < end; ++line)
        for (std::int64_t i = 0; i < pass.n_in_line(); ++i)
          lattice_interior::make(pass, line, i, made.data());
    });
  });
  return made;
}

void LatticeNodes::place(LatticeLayout const& layout, std::int64_t unknown, std::array<double, 3> const& x) {
  std::int64_t const layers = order_ + 1, size = m_ * m_ * m_, on_rim = unknown - layout.n_inner();
  auto const put = [&](double* to, std::int64_t to_next_direction) {
    for (std::int64_t d = 0; d < 3; ++d)
      to[d * to_next_direction] = x[static_cast<std::size_t>(d)];
  };
  if (!has_all())
    put(on_rims_.data() + 3 * on_rim, 1);
  LatticeRim const rim = layout.rim();
  RimTables const& tables = *layout.tables;
  for (std::int64_t c = tables.copy_offsets[static_cast<std::size_t>(on_rim)];
       c < tables.copy_offsets[static_cast<std::size_t>(on_rim) + 1]; ++c) {
    std::int64_t const copy = tables.copies[static_cast<std::size_t>(c)], lattice = copy / rim.size();
    LatticeRim::Node const node = rim.node(copy % rim.size());
    if (has_all()) {
      put(all_.data() + lattice * of_lattice() + (node.k * m_ + node.j) * m_ + node.i, size);
      continue;
    }
    for (std::size_t d = 0; d < 3; ++d)
      for (std::size_t high = 0; high < 2; ++high) {
        std::array<std::int64_t, 3> at{node.i, node.j, node.k};
        at[d] -= high == 0 ? 0 : m_ - layers;
        auto const [y, z] = steps_of(m_, order_, d + 1);
        if (std::int64_t const begin = side(lattice, 2 * d + high); begin >= 0 && at[d] >= 0 && at[d] < layers)
          put(sides_.data() + begin + at[2] * z + at[1] * y + at[0], of_side());
      }
  }
}

LatticeNodes::Steps LatticeNodes::steps_of(std::int64_t m, int order, std::size_t steps) {
  std::int64_t const layers = order + 1;
  return {steps == 1 ? layers : m, m * (steps == 1 || steps == 2 ? layers : m)};
}

LatticeNodes::FirstNode LatticeNodes::first_node(std::int64_t lattice, std::array<std::int64_t, 3> const& cell) const {
  if (!has_all())
    for (std::size_t d = 0; d < 3; ++d)
      if (bool const low = cell[d] == 0; low || cell[d] == layout_.cells - 1) {
        std::int64_t const begin = side(lattice, 2 * d + (low ? 0 : 1));
        if (begin < 0)
          continue;
        auto const [y, z] = steps_of(m_, order_, d + 1);
        std::array<std::int64_t, 3> in_side = cell;
        in_side[d] = 0;  // the layers begin with this cell
        return {sides_.data() + begin + (in_side[2] * z + in_side[1] * y + in_side[0]) * order_, of_side(), d + 1};
      }
  std::int64_t const m = m_;
  return {all().data() + lattice * of_lattice() + ((cell[2] * m + cell[1]) * m + cell[0]) * order_, m * m * m, 0};
}

std::array<double, 3> LatticeNodes::point(std::int64_t lattice, std::int64_t node) const {
  std::array<std::int64_t, 3> at{node % m_, node / m_ % m_, node / (m_ * m_)};
  std::int64_t const layers = order_ + 1;
  double const* x = nullptr;
  std::int64_t to_next_direction = m_ * m_ * m_;
  if (LatticeRim const rim{m_}; !has_all() && rim.holds(at[0], at[1], at[2])) {
    auto const place = static_cast<std::size_t>(lattice * rim.size() + rim.place(at[0], at[1], at[2]));
    x = on_rims_.data() + 3 * (layout_.tables->rim_unknowns[place] - layout_.n_inner());
    to_next_direction = 1;
  }
  for (std::size_t face = 0; face < 6 && x == nullptr && !has_all(); ++face) {
    std::size_t const d = face / 2;
    std::int64_t const first = face % 2 == 0 ? 0 : m_ - layers, begin = side(lattice, face);
    if (begin < 0 || at[d] < first || at[d] >= first + layers)
      continue;
    auto const [y, z] = steps_of(m_, order_, d + 1);
    at[d] -= first;
    x = sides_.data() + begin + at[2] * z + at[1] * y + at[0];
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
