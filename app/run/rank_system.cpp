#include "app/run/rank_system.hpp"

#include "gpu/core/communicator.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace poisson::app {

namespace {

/// The rows of this rank from the matrix of the cells around them, whose unknowns have these places (RankMesh::places). Columns
/// ascend.
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

/// The values of own rows among those of the unknowns around.
HostVector<double> of_own_rows(RankMesh const& mesh, HostVector<double> const& around) {
  HostVector<double> result(static_cast<std::size_t>(mesh.n_rows));
  for (std::size_t unknown = 0; unknown < mesh.places.size(); ++unknown)
    if (mesh.places[unknown] < mesh.n_rows)
      result[static_cast<std::size_t>(mesh.places[unknown])] = around[unknown];
  return result;
}

}  // namespace

RankSystem::RankSystem(RankMesh& mesh, RankTeam& team) : mesh_(mesh), team_(team) {
  assemble();
  Communicator* const ranks = &team.communicator();
  if (mesh.box ? !any_of_ranks(ranks, anchored_) : mesh.pure_neumann)
    make_compatible();
}

void RankSystem::assemble() {
  double of_parts = 0, of_points = 0;
  team_.together([&] {
    rows.neighbors = mesh_.neighbors;
    if (!mesh_.around) {
      auto empty = std::make_shared<CsrMatrix>();
      empty->row_ptr.push_back(0);
      rows.matrix = std::move(empty);
      return;
    }
    assembly::LinearSystem system = mesh_.around->assemble();
    rows.matrix = rows_in(system.matrix, mesh_.places, mesh_.n_rows, rows.n_ghosts());
    b = of_own_rows(mesh_, system.rhs);
    anchored_ = system.anchored;
    constraints_ = std::move(system.constraints);
    if (mesh_.own)
      of_parts = mesh_.own->source_integral().sum;
    of_points = mesh_.around->point_loads().integrals.sum;
  });
  Communicator& ranks = team_.communicator();
  integral_f = sum_over(&ranks, of_parts) + gather(ranks, of_points).front();  // every part knows all points
}

void RankSystem::make_compatible() {
  Communicator* const ranks = &team_.communicator();
  double absolute = 0, of_points = 0;
  assembly::ExactMean exact;
  bool has_exact = false;
  team_.together([&] {
    if (mesh_.around) {
      weights_ = of_own_rows(mesh_, mesh_.around->integration_weights());
      of_points = mesh_.around->point_loads().integrals.absolute;
    }
    if (!mesh_.own)
      return;
    absolute = mesh_.own->source_integral().absolute + mesh_.own->boundary_integral().absolute;
    if (has_exact = mesh_.own->has_exact(); has_exact)
      exact = mesh_.own->mean_of_exact();
  });
  double const total = sum_over(ranks, std::accumulate(b.begin(), b.end(), 0.0));
  absolute = sum_over(ranks, absolute) + gather(*ranks, of_points).front();
  volume_ = sum_over(ranks, std::accumulate(weights_.begin(), weights_.end(), 0.0));
  exact = {sum_over(ranks, exact.integral), sum_over(ranks, exact.volume)};
  team_.together([&] {
    compatibility_defect = assembly::Discretization::compatibility_defect(total, absolute);
    if (has_exact)
      mesh_.own->set_mean_of_exact(exact.mean());
  });
  for (std::size_t i = 0; i < b.size(); ++i)
    b[i] -= total / volume_ * weights_[i];
}

HostVector<double> RankSystem::reconstruct(std::span<double const> x) const {
  Communicator& ranks = team_.communicator();
  HostVector<double> own(x.begin(), x.end());
  if (pure_neumann()) {
    double const mean = sum_over(&ranks, std::inner_product(own.begin(), own.end(), weights_.begin(), 0.0)) / volume_;
    for (double& value : own)
      value -= mean;
  }
  auto const host = make_context(Backend::cpu);
  GhostExchange<double> exchange(*host, ranks, mesh_.neighbors);
  exchange.start(own.data());
  double const* const ghosts = exchange.finish();
  HostVector<double> u(mesh_.places.size());
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = mesh_.places[i] < mesh_.n_rows ? own[static_cast<std::size_t>(mesh_.places[i])] : ghosts[mesh_.places[i] - mesh_.n_rows];
  if (mesh_.around)
    constraints_.expand(u);
  return u;
}

}  // namespace poisson::app
