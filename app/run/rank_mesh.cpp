#include "app/run/rank_mesh.hpp"

#include "app/config/problem.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace poisson::app {

namespace {

using assembly::BoxPart;
using assembly::BoxPartition;
using Counts = std::array<std::int64_t, 3>;

/// The places of the nodes of `part` among those of `larger`, which holds it.
std::vector<std::int32_t> nodes_in(BoxPart const& part, BoxPart const& larger, int order) {
  Counts n{}, m{}, offset{};
  for (std::size_t d = 0; d < 3; ++d) {
    n[d] = order * part.cells[d] + 1;
    m[d] = order * larger.cells[d] + 1;
    offset[d] = order * (part.first[d] - larger.first[d]);
  }
  std::vector<std::int32_t> result;
  result.reserve(static_cast<std::size_t>(n[0] * n[1] * n[2]));
  for (std::int64_t z = 0; z < n[2]; ++z)
    for (std::int64_t y = 0; y < n[1]; ++y)
      for (std::int64_t x = 0; x < n[0]; ++x)
        result.push_back(static_cast<std::int32_t>(((z + offset[2]) * m[1] + y + offset[1]) * m[0] + offset[0] + x));
  return result;
}

RankMesh mesh_of_box(RunConfig const& config, int rank, int ranks) {
  RankMesh mesh;
  int const order = config.problem.order;
  assembly::ProblemSpec spec = problem_of(config);
  spec.mesh.shared = true;
  mesh.whole = assembly::CheckedProblem(spec).mesh();
  BoxPartition const& partition = mesh.box.emplace(config.problem.mesh.refined_cells(), order, ranks);
  mesh.neighbors = partition.neighbors(rank);
  mesh.n_rows = partition.n_rows(rank);
  BoxPart const own = partition.cells(rank), around = partition.assembled_cells(rank);
  if (own.n_cells() == 0)
    return mesh;
  mesh.places = partition.places(rank);
  mesh.in_own = nodes_in(own, around, order);
  spec.mesh.part = around;
  mesh.around.emplace(spec);
  mesh.part = own;
  mesh.order = order;
  mesh.cells = config.problem.mesh.refined_cells();
  spec.mesh.part = own;
  mesh.own.emplace(std::move(spec));
  return mesh;
}

/// Every rank makes the whole mesh and keeps its part.
RankMesh mesh_in_parts(RunConfig const& config, int rank, int ranks) {
  RankMesh mesh;
  // As for a matrix that is not in CSR: the memory of that is a rank's, not this process's.
  assembly::Discretization const whole(problem_of(config), assembly::AssembledInto::half_cds_on_host);
  mesh.whole = whole.summary();
  mesh.notes = whole.notes();
  if (mesh.whole.periodic)
    throw InputError("problem.boundary", "periodic boundaries are not possible yet on several ranks; run it without mpirun");
  mesh.pure_neumann = whole.is_pure_neumann();
  assembly::PartOfSpace part = whole.part(rank, ranks);
  mesh.neighbors = std::move(part.neighbors);
  mesh.n_rows = part.n_rows;
  if (part.around_cells.empty())
    return mesh;
  mesh.places.resize(part.unknowns.size());
  std::iota(mesh.places.begin(), mesh.places.end(), 0);
  mesh.around.emplace(whole, part.around_cells, part.unknowns);
  if (part.own_cells.empty())
    return mesh;
  // In the order of the whole: what is made of cells and nodes by their order is then the same as on one rank.
  std::sort(part.in_own_cells.begin(), part.in_own_cells.end(), [&](std::int32_t a, std::int32_t b) {
    return part.unknowns[static_cast<std::size_t>(a)] < part.unknowns[static_cast<std::size_t>(b)];
  });
  for (std::int32_t const place : part.in_own_cells)
    mesh.own_unknowns.push_back(part.unknowns[static_cast<std::size_t>(place)]);
  mesh.own_cells = std::move(part.own_cells);
  mesh.own.emplace(whole, mesh.own_cells, mesh.own_unknowns);
  mesh.in_own = std::move(part.in_own_cells);
  return mesh;
}

/// The number in a larger lattice of entry i of a part of it that begins at `first`; x fastest.
std::int64_t in_larger(std::int64_t i, Counts const& part, Counts const& first, Counts const& whole) {
  std::int64_t const x = i % part[0], y = i / part[0] % part[1], z = i / (part[0] * part[1]);
  return ((first[2] + z) * whole[1] + first[1] + y) * whole[0] + first[0] + x;
}

}  // namespace

std::int64_t RankMesh::cell_of_whole(std::int64_t cell) const {
  return box ? in_larger(cell, part.cells, part.first, cells) : own_cells[static_cast<std::size_t>(cell)];
}

std::int64_t RankMesh::unknown_of_whole(std::int64_t unknown) const {
  if (!box)
    return own_unknowns[static_cast<std::size_t>(unknown)];
  Counts of_part{}, first{}, of_whole{};
  for (std::size_t d = 0; d < 3; ++d) {
    of_part[d] = order * part.cells[d] + 1;
    first[d] = order * part.first[d];
    of_whole[d] = order * cells[d] + 1;
  }
  return in_larger(unknown, of_part, first, of_whole);
}

RankMesh rank_mesh(RunConfig const& config, int rank, int ranks) {
  return config.is_box() ? mesh_of_box(config, rank, ranks) : mesh_in_parts(config, rank, ranks);
}

std::shared_ptr<CsrMatrix const> rows_in(CsrMatrix const& assembled, HostVector<std::int32_t> const& places, std::int64_t n_rows,
                                         std::int64_t n_ghosts) {
  auto result = std::make_shared<CsrMatrix>();
  result->n_rows = n_rows;
  result->n_columns = n_rows + n_ghosts;
  result->row_ptr.resize(static_cast<std::size_t>(n_rows) + 1);
  result->row_ptr[0] = 0;
  HostVector<std::int64_t> from(static_cast<std::size_t>(n_rows));
  for (std::int64_t node = 0; node < assembled.n_rows; ++node)
    if (auto const row = static_cast<std::size_t>(places[static_cast<std::size_t>(node)]);
        static_cast<std::int64_t>(row) < n_rows) {
      from[row] = node;
      result->row_ptr[row + 1] = assembled.row_ptr[node + 1] - assembled.row_ptr[node];
    }
  for (std::size_t row = 0; row < from.size(); ++row)
    result->row_ptr[row + 1] += result->row_ptr[row];
  auto const nnz = static_cast<std::size_t>(result->row_ptr.back());
  result->columns.resize(nnz);
  result->values.resize(nnz);
  std::vector<std::pair<std::int32_t, double>> entries;
  for (std::size_t row = 0; row < from.size(); ++row) {
    entries.clear();
    for (auto e = static_cast<std::size_t>(assembled.row_ptr[from[row]]);
         e < static_cast<std::size_t>(assembled.row_ptr[from[row] + 1]); ++e)
      entries.emplace_back(places[static_cast<std::size_t>(assembled.columns[e])], assembled.values[e]);
    std::sort(entries.begin(), entries.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    auto out = static_cast<std::size_t>(result->row_ptr[row]);
    for (auto const& [column, value] : entries) {
      result->columns[out] = column;
      result->values[out++] = value;
    }
  }
  return result;
}

}  // namespace poisson::app
