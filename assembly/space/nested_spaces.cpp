#include "assembly/space/nested_spaces.hpp"

#include "assembly/parallel.hpp"
#include "assembly/space/space_partition.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

namespace poisson::assembly {

namespace {

constexpr std::int64_t rows_at_once = 4096;

/// Tells what a node at an index follows from in one direction.
struct Neighbours {
  int count;
  std::array<std::int64_t, 2> index;
  std::array<double, 2> weight;
};

/// An unknown of another rank in one number, below 0; they ascend by rank, then number.
std::int64_t code_of(int rank, std::int32_t number) {
  return (std::int64_t{rank} << 32) + number - (std::int64_t{1} << 62);
}
NestedSpace::Unknown unknown_of(std::int64_t code) {
  std::int64_t const sum = code + (std::int64_t{1} << 62);
  return {static_cast<int>(sum >> 32), static_cast<std::int32_t>(sum & 0xffffffff)};
}

}  // namespace

std::vector<NestedSpace> NestedLattices::make() const {
  LatticePieces const& pieces = *own_->pieces;
  std::int64_t const m = pieces.m;
  int const me = own_->rank;
  auto const n_rows = static_cast<std::size_t>(own_->n_rows);
  std::vector<std::int32_t> numbers(n_rows), larger(n_rows), in_smaller(n_rows);
  std::vector<LatticeNode> places(n_rows);  // pieces have the numbers of all
  parallel_for(n_parts(own_->n_rows, rows_at_once), [&](std::int64_t block) {
    auto const [begin, end] = part(own_->n_rows, rows_at_once, block);
    for (std::int64_t row = begin; row < end; ++row) {
      LatticeNode const node = place_of_(row);
      numbers[static_cast<std::size_t>(row)] = own_->number_of(node);
      places[static_cast<std::size_t>(row)] = {own_->own[static_cast<std::size_t>(node.lattice)], node.node};
    }
  });
  PlaceInList const place_of(numbers);
  std::iota(larger.begin(), larger.end(), 0);

  // Nodes of the larger space are `spacing` apart, those of the smaller one `wide`; `weights` are of the upper one of two, by the
  // index between them over the spacing.
  auto const inside = [&](std::int64_t spacing, std::int64_t wide, std::vector<double> const& weights) {
    auto const index_of = [&](std::int32_t row) {
      LatticeNode const& place = places[static_cast<std::size_t>(row)];
      return pieces.in_lattice(place.lattice, {place.node % m, place.node / m % m, place.node / (m * m)});
    };
    auto const neighbours = [&](std::int64_t index) -> Neighbours {
      std::int64_t const beyond = index % wide;
      if (beyond == 0)
        return {1, {index, index}, {1, 0}};
      double const upper = weights[static_cast<std::size_t>(beyond / spacing)];
      return {2, {index - beyond, index - beyond + wide}, {1 - upper, upper}};
    };
    NestedSpace space;
    space.p.n_rows = static_cast<std::int64_t>(larger.size());
    space.p.row_ptr.resize(larger.size() + 1);
    space.p.row_ptr[0] = 0;
    for (std::size_t row = 0; row < larger.size(); ++row) {
      std::int64_t count = 1;
      for (std::int64_t const index : index_of(larger[row]))
        count *= neighbours(index).count;
      space.p.row_ptr[row + 1] = space.p.row_ptr[row] + count;
      if (count == 1) {
        in_smaller[static_cast<std::size_t>(larger[row])] = static_cast<std::int32_t>(space.unknowns.size());
        space.unknowns.push_back(larger[row]);
      }
    }
    auto const nnz = static_cast<std::size_t>(space.p.row_ptr.back());
    std::vector<std::int64_t> codes(nnz);  // own unknowns by their number in the smaller space
    space.p.values.resize(nnz);
    parallel_for(n_parts(space.p.n_rows, rows_at_once), [&](std::int64_t block) {
      auto const [begin, end] = part(space.p.n_rows, rows_at_once, block);
      for (std::int64_t row = begin; row < end; ++row) {
        auto const at = larger[static_cast<std::size_t>(row)];
        std::int32_t const lattice = pieces.places[static_cast<std::size_t>(places[static_cast<std::size_t>(at)].lattice)].lattice;
        auto const index = index_of(at);
        Neighbours const x = neighbours(index[0]), y = neighbours(index[1]), z = neighbours(index[2]);
        auto out = static_cast<std::size_t>(space.p.row_ptr[row]);
        if (space.p.row_ptr[row + 1] - space.p.row_ptr[row] == 1) {
          codes[out] = in_smaller[static_cast<std::size_t>(at)];
          space.p.values[out] = 1;
          continue;
        }
        for (int k = 0; k < z.count; ++k)
          for (int j = 0; j < y.count; ++j)
            for (int i = 0; i < x.count; ++i, ++out) {
              LatticePieces::Index const node{x.index[i], y.index[j], z.index[k]};
              std::int32_t const unknown = pieces.unknown(lattice, node);
              int const owner = pieces.rank_of[static_cast<std::size_t>(pieces.first_copy(lattice, node).lattice)];
              codes[out] = owner == me ? in_smaller[static_cast<std::size_t>(place_of(unknown))] : code_of(owner, unknown);
              space.p.values[out] = x.weight[i] * y.weight[j] * z.weight[k];
            }
      }
    });
    std::vector<std::int64_t> others;
    for (std::int64_t const code : codes)
      if (code < 0)
        others.push_back(code);
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    for (std::int64_t const code : others)
      space.others.push_back(unknown_of(code));
    auto const n_own = static_cast<std::int64_t>(space.unknowns.size());
    space.p.n_columns = n_own + static_cast<std::int64_t>(others.size());
    space.p.columns.reserve(nnz);
    for (std::int64_t const code : codes)
      space.p.columns.push_back(static_cast<std::int32_t>(
          code >= 0 ? code : n_own + (std::lower_bound(others.begin(), others.end(), code) - others.begin())));
    larger = space.unknowns;
    return space;
  };

  std::vector<NestedSpace> result;
  std::int64_t const order = pieces.order;
  if (order > 1)
    result.push_back(inside(1, order, nodes_));
  std::int64_t spacing = order;
  for (std::int64_t cells = pieces.cells_of_lattice(); cells >= 4; cells /= 2, spacing *= 2)
    result.push_back(inside(spacing, 2 * spacing, {0, 0.5}));
  return result;
}

}  // namespace poisson::assembly
