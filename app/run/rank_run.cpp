#include "app/run/rank_run.hpp"

#include "app/config/problem.hpp"
#include "app/run/solution_files.hpp"
#include "app/run/stages.hpp"
#include "assembly/discretization.hpp"
#include "assembly/mesh/box_partition.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"
#include "output/files/atomic_file.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

using assembly::BoxPart;
using assembly::BoxPartition;
using Counts = std::array<std::int64_t, 3>;

/// All ranks must read the same; a file may differ between machines.
void require_same_configuration(RunConfig const& config, RankTeam& team) {
  auto const all = gather_texts(team.communicator(), resolved_yaml(config));
  team.together([&] {
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw InputError("the ranks have different configurations: that of rank " + std::to_string(rank) +
                         " is not that of rank 0; give all of them the same file and options");
  });
}

Counts cells_of(RunConfig const& config) {
  Counts cells = config.problem.mesh.cells;
  for (std::int64_t& n : cells)
    n <<= config.problem.mesh.refinements;
  return cells;
}

/// The rows of this rank from the matrix of the cells around them, whose nodes have these places.
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

/// Values at the nodes of `part` from those at the nodes of `larger`, which holds it.
HostVector<double> values_in(BoxPart const& part, BoxPart const& larger, int order, std::span<double const> values) {
  Counts n{}, m{}, offset{};
  for (std::size_t d = 0; d < 3; ++d) {
    n[d] = order * part.cells[d] + 1;
    m[d] = order * larger.cells[d] + 1;
    offset[d] = order * (part.first[d] - larger.first[d]);
  }
  HostVector<double> result;
  result.reserve(static_cast<std::size_t>(n[0] * n[1] * n[2]));
  for (std::int64_t z = 0; z < n[2]; ++z)
    for (std::int64_t y = 0; y < n[1]; ++y) {
      double const* const line = values.data() + ((z + offset[2]) * m[1] + y + offset[1]) * m[0] + offset[0];
      result.insert(result.end(), line, line + n[0]);
    }
  return result;
}

/// The quantities of the whole from those of parts; of equal extremes the first in the order of the nodes counts.
assembly::Quantities merge(Communicator& ranks, std::optional<assembly::Quantities> const& mine) {
  struct Sums {
    bool has_cells = false;
    double min = 0, max = 0, integral_u = 0, energy = 0, volume = 0;
    std::array<double, 3> min_at{}, max_at{};
    std::array<double, 6> area{}, flux{};
  } own;
  if (mine) {
    own = {true, mine->min, mine->max, mine->integral_u, mine->energy, 0, mine->min_at, mine->max_at, {}, {}};
    for (auto const& [id, volume] : mine->volumes)
      own.volume += volume;
    for (auto const& [id, boundary] : mine->boundaries) {
      own.area.at(id) = boundary.area;
      own.flux.at(id) = boundary.flux;
    }
  }
  assembly::Quantities all;
  auto const before = [](std::array<double, 3> const& a, std::array<double, 3> const& b) {
    return std::tie(a[2], a[1], a[0]) < std::tie(b[2], b[1], b[0]);
  };
  bool first = true;
  for (Sums const& part : gather(ranks, own)) {
    if (!part.has_cells)
      continue;
    if (first || part.min < all.min || (part.min == all.min && before(part.min_at, all.min_at))) {
      all.min = part.min;
      all.min_at = part.min_at;
    }
    if (first || part.max > all.max || (part.max == all.max && before(part.max_at, all.max_at))) {
      all.max = part.max;
      all.max_at = part.max_at;
    }
    first = false;
    all.integral_u += part.integral_u;
    all.energy += part.energy;
    all.volumes[0] += part.volume;
    for (unsigned id = 0; id < 6; ++id) {
      all.boundaries[id].area += part.area[id];
      all.boundaries[id].flux += part.flux[id];
    }
  }
  all.mean = all.integral_u / all.volumes[0];
  return all;
}

/// The files of the solution: where the piece of a rank is, and what it is called.
class SolutionPieces {
public:
  SolutionPieces(BoxPartition const& partition, RunConfig const& config, Counts const& cells)
      : partition_(partition), config_(config), cells_(cells) {}

  [[nodiscard]] std::string name(int rank) const {
    return "solution_" + std::to_string(rank) + fs::path(vtk_file_name(config_)).extension().string();
  }
  [[nodiscard]] output::PiecePlace place(int rank) const {
    BoxPart const part = partition_.cells(rank);
    output::PiecePlace result{{}, config_.problem.mesh.origin};
    for (std::size_t d = 0; d < 3; ++d)
      result.first[d] = config_.problem.order * part.first[d];
    return result;
  }
  /// The file that names the pieces.
  [[nodiscard]] output::PiecesOfMesh pieces() const {
    using Kind = output::PiecesOfMesh::Kind;
    output::PiecesOfMesh mesh;
    mesh.kind = vtk_format(config_) != output::VtkFormat::image ? Kind::unstructured
                : config_.problem.order == 1                    ? Kind::image
                                                                : Kind::rectilinear;
    mesh.low = config_.problem.mesh.origin;
    for (std::size_t d = 0; d < 3; ++d) {
      mesh.n[d] = config_.problem.order * cells_[d] + 1;
      mesh.spacing[d] = config_.problem.mesh.extent[d] / static_cast<double>(cells_[d]);
    }
    for (int rank = 0; rank < partition_.n_used(); ++rank) {
      BoxPart const part = partition_.cells(rank);
      output::PiecesOfMesh::Piece piece{name(rank), place(rank).first, {}};
      for (std::size_t d = 0; d < 3; ++d)
        piece.n[d] = config_.problem.order * part.cells[d] + 1;
      mesh.pieces.push_back(piece);
    }
    return mesh;
  }

private:
  BoxPartition const& partition_;
  RunConfig const& config_;
  Counts cells_;
};

}  // namespace

void require_runs_on_ranks(RunConfig const& config) {
  auto const refuse = [](bool wrong, char const* key, std::string const& what) {
    if (wrong)
      throw InputError(key, what + " on several ranks; run it without mpirun");
  };
  assembly::ProblemSpec const& problem = config.problem;
  refuse(!config.is_box(), problem.mesh.file.empty() ? "problem.mesh.generator" : "problem.mesh.file",
         "only boxes (generator: box) can be solved, so far,");
  refuse(!problem.mesh.boundaries.empty(), "problem.mesh.boundaries", "boundaries named by their place are not possible yet");
  refuse(!problem.mesh.regions.empty(), "problem.mesh.regions", "regions are not possible yet");
  refuse(!problem.point_sources.empty(), "problem.point_sources", "point sources are not possible yet");
  refuse(!problem.line_sources.empty(), "problem.line_sources", "line sources are not possible yet");
  refuse(problem.source_total.has_value(), "problem.source_total", "a total of the source is not possible yet");
  refuse(std::any_of(problem.boundary.begin(), problem.boundary.end(),
                     [](auto const& condition) { return condition.type == assembly::BoundaryType::periodic; }),
         "problem.boundary", "periodic boundaries are not possible yet");
  refuse(config.matrix.format == Format::matrix_free, "matrix.format", "matrix_free is not possible yet");
  refuse(!runs_on_ranks(config.solver.preconditioner), "solver.preconditioner",
         std::string(name_of(config.solver.preconditioner)) + " is not possible yet (auto, jacobi and none are)");
  refuse(config.solver.initial == InitialGuess::nested, "solver.initial", "nested iteration is not possible yet");
  refuse(config.solver.to_discretization, "solver.tolerance", "a tolerance from the discretisation error is not possible yet");
  refuse(config.backend == Backend::cuda, "backend", "cuda is not possible yet");
  refuse(!config.analysis.empty(), "analysis.svd", "analyses are not possible yet");
  OutputSpec const& output = config.output;
  refuse(output.vtk_enabled && vtk_format(config) == output::VtkFormat::hdf, "output.vtk.format", "hdf is not possible yet");
  refuse(!output.probes.empty(), "output.probes", "probes are not possible yet");
  refuse(!output.lines.empty(), "output.lines", "lines are not possible yet");
  refuse(!output.circles.empty(), "output.circles", "circles are not possible yet");
  refuse(!output.planes.empty(), "output.planes", "planes are not possible yet");
  refuse(!output.slices.empty(), "output.slices", "slices are not possible yet");
  refuse(!output.contours.empty(), "output.contours", "contours are not possible yet");
  refuse(output.surface, "output.surface", "the surface is not possible yet");
}

ExitCode run_case_on_ranks(Configuration const& configuration, RunOptions const& options, Console& console, RankTeam& team) {
  RunConfig const& config = configuration.config();
  Communicator& ranks = team.communicator();
  require_same_configuration(config, team);
  team.together([&] {
    require_runs_on_ranks(config);
    if (!options.matrix_out.empty())
      throw InputError("--matrix-out does not work on several ranks; run it without mpirun");
  });
  InternalRunOptions internal;
  internal.team = &team;
  Stages stages(config, options, console, options.path + " on " + std::to_string(team.size()) + " ranks", internal);
  ResultRecord& record = stages.record;
  record.configuration_file = options.path;
  record.fingerprint = fingerprint(config);
  record.order = config.problem.order;
  if (config.output.picture)
    console.line("    solution.png is not drawn on several ranks yet");

  int const order = config.problem.order, rank = team.rank();
  Counts const cells = cells_of(config);
  stages.unless_interrupted([&] {
    std::optional<BoxPartition> partition;
    std::optional<assembly::Discretization> around, own;  // the cells around own rows; own cells, which are no one else's
    BoxPart own_part, assembled_part;
    record.clock.time(Stage::mesh, [&] {
      team.together([&] {
        assembly::ProblemSpec spec = problem_of(config);
        spec.mesh.shared = true;
        record.mesh = assembly::CheckedProblem(spec).mesh();
        partition.emplace(cells, order, team.size());
        own_part = partition->cells(rank);
        assembled_part = partition->assembled_cells(rank);
        if (own_part.n_cells() == 0)
          return;
        spec.mesh.part = assembled_part;
        around.emplace(spec);
        spec.mesh.part = own_part;
        own.emplace(std::move(spec));
      });
    });
    record.dofs = record.mesh.dofs;
    auto const& blocks = partition->blocks();
    stages.report_stage(Stage::mesh, with_thousands(record.mesh.cells) + " cells, " + with_thousands(record.dofs) +
                                         " unknowns, in " + std::to_string(blocks[0]) + " x " + std::to_string(blocks[1]) + " x " +
                                         std::to_string(blocks[2]) + " blocks");
    if (partition->n_used() < team.size())
      console.warning(std::to_string(team.size() - partition->n_used()) + " of " + std::to_string(team.size()) +
                      " ranks have no cells: the box has no better division");

    assembly::LinearSystem system;
    RankRows rows;
    HostVector<double> b;
    HostVector<std::int32_t> places;
    std::int64_t const n_rows = partition->n_rows(rank);
    double source = 0;
    record.clock.time(Stage::assembly, [&] {
      team.together([&] {
        rows.neighbors = partition->neighbors(rank);
        if (!around) {
          auto empty = std::make_shared<CsrMatrix>();
          empty->row_ptr.push_back(0);
          rows.matrix = std::move(empty);
          return;
        }
        places = partition->places(rank);
        system = around->assemble();
        rows.matrix = rows_in(system.matrix, places, n_rows, rows.n_ghosts());
        b.resize(static_cast<std::size_t>(n_rows));
        for (std::size_t node = 0; node < places.size(); ++node)
          if (places[node] < n_rows)
            b[static_cast<std::size_t>(places[node])] = system.rhs[node];
        system.matrix = {};
        system.rhs = {};
        source = own->source_integral();
      });
      bool const anchored = any_of_ranks(&ranks, system.anchored);
      team.together([&] {
        if (!anchored)
          throw InputError("problem.boundary",
                           "pure Neumann problems are not possible yet on several ranks; run it without mpirun");
      });
    });
    record.nnz = sum_over(&ranks, rows.matrix->nnz());
    record.csr_bytes = CsrMatrix::csr_bytes(record.dofs, record.nnz);
    record.integral_f = sum_over(&ranks, source);
    std::vector<RankNeighbor> const neighbors = rows.neighbors;
    stages.report_stage(Stage::assembly, with_thousands(record.nnz) + " non-zeros");

    stages.convert(std::move(rows));
    HostVector<double> const x = stages.solve(b, false);
    stages.verify(b, x);

    HostVector<double> u;  // at the nodes of own cells
    record.clock.time(Stage::reconstruct, [&] {
      auto const host = make_context(Backend::cpu);
      GhostExchange<double> exchange(*host, ranks, neighbors);
      exchange.start(x.data());
      double const* const ghosts = exchange.finish();
      if (!own)
        return;
      HostVector<double> all(places.size());
      for (std::size_t node = 0; node < places.size(); ++node)
        all[node] = places[node] < n_rows ? x[static_cast<std::size_t>(places[node])] : ghosts[places[node] - n_rows];
      system.constraints.expand(all);
      u = values_in(own_part, assembled_part, order, all);
    });
    record.clock.time(Stage::verify, [&] {
      bool const finite = !any_of_ranks(&ranks, first_not_finite(u) < u.size());
      std::optional<assembly::Quantities> quantities;
      assembly::ErrorNorms errors;
      team.together([&] {
        if (own && finite)
          quantities = own->quantities(u);
        if (own && config.problem.exact)
          errors = own->errors(u);
      });
      if (finite) {
        assembly::Quantities const all = merge(ranks, quantities);
        team.together([&] {
          if (team.is_first())
            record.quantities = RequestedQuantities(config, *own).evaluate(all, record.integral_f, u);
        });
      }
      if (config.problem.exact)
        record.errors = assembly::ErrorNorms{std::sqrt(sum_over(&ranks, errors.l2 * errors.l2)),
                                             std::sqrt(sum_over(&ranks, errors.h1_seminorm * errors.h1_seminorm)),
                                             max_over(&ranks, errors.linf)};
    });

    std::string const folder = stages.shared_path();
    std::string failure;
    PieceFields fields;
    SolutionPieces const pieces_of_solution(*partition, config, cells);
    if (config.output.vtk_enabled)
      record.clock.time(Stage::output, [&] {
        if (own)
          try {
            fields = write_piece(*own, u, config, fs::path(folder) / pieces_of_solution.name(rank), pieces_of_solution.place(rank));
          } catch (EnvironmentError const& error) {
            failure = error.what();
          }
        failure = first_message(&ranks, failure);
      });
    stages.output([&](ResultsDirectory& directory) {
      if (!config.output.vtk_enabled)
        return;
      // Written already: they are listed, or the failure.
      for (int r = 0; r < partition->n_used(); ++r)
        if (!directory.try_write(pieces_of_solution.name(r), [&](fs::path const& path) {
              if (!failure.empty() || !fs::exists(path))
                throw EnvironmentError(failure.empty() ? path.string() + " was written and is not there" : failure);
            }))
          return;
      output::PiecesOfMesh const pieces = pieces_of_solution.pieces();
      std::string const name = "solution" + output::extension_of(pieces.kind);
      if (directory.try_write(name, [&](fs::path const& path) {
            output::write_pieces(path, pieces, fields.points, fields.cells, config.output.vtk);
          }))
        directory.try_write("solution.pvd", [&](fs::path const& path) { output::write_pvd(path, {{0.0, name}}); });
    });
  });

  stages.attempt([&](ResultsDirectory& directory) {
    directory.try_write("resolved.yaml",
                        [&](fs::path const& path) { output::write_text_file(path, resolved_yaml(with_absolute_files(config))); });
    directory.try_write("configuration.yaml", [&](fs::path const& path) { output::write_text_file(path, configuration.text()); });
  });
  return stages.finish();
}

}  // namespace poisson::app
