#include "gpu/elements/lattice_rows.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/csr_entries.hpp"
#include "gpu/elements/element_system.hpp"
#include "gpu/elements/lattice_operator.hpp"
#include "gpu/formats/foreign_rows.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/rim.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace poisson {

namespace {

/// The rim's rows with all of their entries; columns are own rows, then ghosts.
CsrMatrix whole_rows(SharedLattices const& lattices, LatticeHalfCds const& matrix, SplitRows const& split) {
  std::int64_t const n = lattices.n_rows, n_ghosts = lattices.layout.n_unknowns - n, n_rim = std::ssize(split.rim);
  LatticeHalfCdsView view;
  view.lattices = lattices.layout.view();
  auto const for_own_columns = [&](std::int64_t row, auto const& visit) {  // the others are among the couplings
    for_nodes_of(view.lattices, split.rim[static_cast<std::size_t>(row)],
                 [&](std::int64_t lattice, std::int32_t x, std::int32_t y, std::int32_t z) {
                   for_couplings(view, lattice, x, y, z,
                                 [&](std::int64_t place, std::int32_t x2, std::int32_t y2, std::int32_t z2) {
                                   if (std::int64_t const column = view.lattices.unknown(lattice, x2, y2, z2); column < n)
                                     visit(place, static_cast<std::int32_t>(column));
                                 });
                 });
  };
  std::vector<std::int64_t> const first = first_entries(n_rim, [&](std::int64_t row) {
    std::int64_t count = 0;
    for_own_columns(row, [&](std::int64_t, std::int32_t) { ++count; });
    return count;
  });
  std::vector<std::int64_t> places(static_cast<std::size_t>(first.back()));
  std::vector<MatrixEntry> entries;
  entries.reserve(places.size() + static_cast<std::size_t>(split.couplings->nnz()));
  entries.resize(places.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < n_rim; ++row) {
    auto e = static_cast<std::size_t>(first[static_cast<std::size_t>(row)]);
    for_own_columns(row, [&](std::int64_t place, std::int32_t column) {
      places[e] = place;
      entries[e++] = {row, column, 0};
    });
  }
  std::vector<double> const values = values_at(matrix.context(), matrix.view().values, places);
  for (std::size_t e = 0; e < entries.size(); ++e)
    entries[e].value = values[e];
  std::erase_if(entries, [](MatrixEntry const& entry) { return !is_stored(entry.value); });
  for_entries(*split.couplings, [&](std::int64_t i, std::int32_t column, double value) {
    entries.push_back({i, static_cast<std::int32_t>(column < n_ghosts ? n + column : split.own_columns[column - n_ghosts]), value});
  });
  return csr_of_entries(split.couplings->n_rows, n + n_ghosts, entries);
}

/// Returns the entries in own rows of a vector that is a sum over ranks. `parts`, in the backend's memory, is what the lattices of
/// this rank contribute to it, for own unknowns, then for ghosts. Collective.
Array<double> sum_in_rows(Communicator& ranks, SharedLattices const& lattices, Context& context, Array<double> const& parts) {
  auto const& kernels = kernels_for<RimKernels<double>>(context);
  std::int64_t const n = lattices.n_rows;
  std::vector<double> ghosts(static_cast<std::size_t>(lattices.layout.n_unknowns - n));
  if (!ghosts.empty())
    context.download(ghosts.data(), parts.data() + n, 8 * std::ssize(ghosts));
  RankLists<double> to;
  auto ghost = ghosts.begin();
  for (RankNeighbor const& neighbor : lattices.neighbors) {
    to[neighbor.rank].assign(ghost, ghost + neighbor.n_ghosts);
    ghost += neighbor.n_ghosts;
  }
  auto const come = swap_lists(ranks, to);
  std::vector<std::int32_t> rows;  // that others add to
  for (RankNeighbor const& neighbor : lattices.neighbors)
    rows.insert(rows.end(), neighbor.sent.begin(), neighbor.sent.end());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  Array<std::int32_t> const places(context, std::span<std::int32_t const>(rows));
  Array<double> at_places(context, places.size()), result(context, n);
  kernels.pack(context, places.size(), places.data(), parts.data(), at_places.data());
  std::vector<double> sums(rows.size());
  at_places.download(std::span<double>(sums));
  for (RankNeighbor const& neighbor : lattices.neighbors) {
    auto const& list = come[neighbor.rank];
    for (std::size_t i = 0; i < neighbor.sent.size(); ++i)
      sums[static_cast<std::size_t>(std::lower_bound(rows.begin(), rows.end(), neighbor.sent[i]) - rows.begin())] += list[i];
  }
  at_places.upload(std::span<double const>(sums));
  kernels.pack(context, n, nullptr, parts.data(), result.data());
  kernels.put(context, places.size(), places.data(), at_places.data(), result.data());
  return result;
}

}  // namespace

LatticeRows rows_of_lattices(Communicator& ranks, SharedLattices& lattices, std::unique_ptr<Matrix> of_lattices, Field const& rhs,
                             std::span<std::uint8_t const> fixed) {
  auto& matrix = static_cast<LatticeHalfCds&>(*of_lattices);
  std::int64_t const n = lattices.n_rows, n_inner = lattices.layout.n_inner(), n_ghosts = lattices.layout.n_unknowns - n;
  RowMap const rows(ranks, n, lattices.neighbors);
  ForeignRows const foreign(ranks, rows, lattices);
  auto const values = foreign.values(matrix.context(), matrix.view().values);
  GhostFinder const ghost_of(rows.ghosts);

  // Columns are ghosts, then own rows; afterwards own rows that occur.
  std::vector<std::int32_t> columns(foreign.come().size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < std::ssize(columns); ++i) {
    std::int64_t const number = foreign.come()[static_cast<std::size_t>(i)].column;
    columns[static_cast<std::size_t>(i)] =
        rows.is_own(number) ? static_cast<std::int32_t>(n_ghosts + number - rows.first[rows.me]) : ghost_of(number);
  }
  auto const unknown_of = [&](std::int32_t column) {
    return static_cast<std::int32_t>(column < n_ghosts ? n + column : column - n_ghosts);
  };
  std::vector<MatrixEntry> entries;
  entries.reserve(foreign.here().size() + foreign.come().size());
  lattices.added.reserve(foreign.come().size());
  for (std::size_t i = 0; i < foreign.here().size(); ++i)  // the matrix is symmetric
    if (auto const& [row, column] = foreign.here()[i]; column < n && is_stored(values.here[i]))
      entries.push_back({column, static_cast<std::int32_t>(row - n), values.here[i]});
  for (std::size_t i = 0; i < foreign.come().size(); ++i)
    if (is_stored(values.come[i])) {
      entries.push_back({foreign.come()[i].row, columns[i], values.come[i]});
      lattices.added.push_back({foreign.come()[i].row, unknown_of(columns[i]), values.come[i]});
    }

  LatticeRows result;
  SplitRows& split = result.block.rows;
  // The neighbours of own unknowns with Dirichlet values, as unknowns here. Few of these are at cuts.
  LatticeView const view = lattices.layout.view();
  auto const is_fixed = [&](std::int64_t unknown) {
    return unknown >= n_inner && fixed[static_cast<std::size_t>(unknown - n_inner)] != 0;
  };
  std::vector<std::pair<std::int64_t, std::int64_t>> of_others;  // such an unknown, and a neighbour in another rank's lattices
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (is_fixed(foreign.come()[i].row))
      of_others.emplace_back(foreign.come()[i].row, unknown_of(columns[i]));
  std::sort(of_others.begin(), of_others.end());
  std::int64_t emptied = 0;
#pragma omp parallel reduction(+ : emptied)
  {
    std::vector<std::int64_t> neighbours;
#pragma omp for schedule(static)
    for (std::int64_t unknown = n_inner; unknown < n; ++unknown) {
      if (!is_fixed(unknown))
        continue;
      neighbours.clear();
      for (auto other = std::lower_bound(of_others.begin(), of_others.end(), std::pair(unknown, std::int64_t{-1}));
           other != of_others.end() && other->first == unknown; ++other)
        neighbours.push_back(other->second);
      for_nodes_of(view, unknown, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
        for_couplings(matrix.view(), lattice, i, j, k, [&](std::int64_t, std::int32_t i2, std::int32_t j2, std::int32_t k2) {
          neighbours.push_back(view.unknown(lattice, i2, j2, k2));
        });
      });
      std::sort(neighbours.begin(), neighbours.end());
      neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
      emptied += 2 * (std::ssize(neighbours) - 1) - (std::count_if(neighbours.begin(), neighbours.end(), is_fixed) - 1);
    }
  }
  result.emptied = emptied;

  // Few rows and own columns occur. They are counted.
  NumberSet of_rim(n), own_columns(n);
  for (MatrixEntry const& entry : entries) {
    of_rim.add(entry.row);
    if (entry.column >= n_ghosts)
      own_columns.add(entry.column - n_ghosts);
  }
  split.rim = of_rim.close();
  split.own_columns = own_columns.close();
#pragma omp parallel for schedule(static)
  for (std::int64_t e = 0; e < std::ssize(entries); ++e) {
    MatrixEntry& entry = entries[static_cast<std::size_t>(e)];
    entry.row = of_rim.place(entry.row);
    if (entry.column >= n_ghosts)
      entry.column = static_cast<std::int32_t>(n_ghosts + own_columns.place(entry.column - n_ghosts));
  }
  split.couplings =
      std::make_shared<CsrMatrix const>(csr_of_entries(std::ssize(split.rim), n_ghosts + std::ssize(split.own_columns), entries));
  result.block.rim_rows = whole_rows(lattices, matrix, split);
  matrix.keep_rows(n, false);
  result.block.local = std::move(of_lattices);
  result.block.rhs = Field(sum_in_rows(ranks, lattices, matrix.context(), rhs.on(matrix.context())));
  return result;
}

BlockSystem rows_of_operator(Communicator& ranks, std::shared_ptr<SharedLattices const> lattices, std::unique_ptr<Matrix> matrix,
                             Field const& rhs, HostVector<std::uint8_t> fixed) {
  std::unique_ptr<LatticeOperator> here(static_cast<LatticeOperator*>(matrix.release()));
  Context& context = here->context();
  Array<double> diagonal(context, here->n_rows());
  here->diagonal(diagonal.data());
  diagonal = sum_in_rows(ranks, *lattices, context, diagonal);
  BlockSystem result;
  result.rhs = Field(sum_in_rows(ranks, *lattices, context, rhs.on(context)));
  auto couplings = std::make_shared<CsrMatrix>();
  couplings->n_columns = result.rim_rows.n_columns = lattices->layout.n_unknowns - lattices->n_rows;
  couplings->row_ptr.push_back(0);
  result.rim_rows.row_ptr.push_back(0);
  result.rows.couplings = std::move(couplings);
  here->share(std::move(lattices), std::make_shared<HostVector<std::uint8_t> const>(std::move(fixed)), diagonal, ranks);
  result.local = std::move(here);
  result.local->row_not_finite = lowest_not_finite(context, diagonal.size(), diagonal.data());
  return result;
}

}  // namespace poisson
