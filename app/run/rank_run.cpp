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
#include <numeric>
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

/// What this rank has of the mesh, and the rows that follow from it.
struct RankMesh {
  assembly::MeshSummary whole;
  std::optional<BoxPartition> box;                      ///< of a box
  std::optional<assembly::Discretization> around, own;  ///< the cells around own rows; own cells. None without cells
  std::int64_t n_rows = 0;
  HostVector<std::int32_t> places;   ///< of the unknowns around: the row, or n_rows and the ghost
  std::vector<std::int32_t> in_own;  ///< the unknowns of own cells among those around
  std::vector<RankNeighbor> neighbors;
  bool pure_neumann = false;  ///< of a box that is known when it is assembled
  std::vector<std::string> notes;
};

RankMesh mesh_of_box(RunConfig const& config, int rank, int ranks) {
  RankMesh mesh;
  int const order = config.problem.order;
  assembly::ProblemSpec spec = problem_of(config);
  spec.mesh.shared = true;
  mesh.whole = assembly::CheckedProblem(spec).mesh();
  BoxPartition const& partition = mesh.box.emplace(cells_of(config), order, ranks);
  mesh.neighbors = partition.neighbors(rank);
  mesh.n_rows = partition.n_rows(rank);
  BoxPart const own = partition.cells(rank), around = partition.assembled_cells(rank);
  if (own.n_cells() == 0)
    return mesh;
  mesh.places = partition.places(rank);
  mesh.in_own = nodes_in(own, around, order);
  spec.mesh.part = around;
  mesh.around.emplace(spec);
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
  std::vector<std::int32_t> unknowns;
  for (std::int32_t const place : part.in_own_cells)
    unknowns.push_back(part.unknowns[static_cast<std::size_t>(place)]);
  mesh.own.emplace(whole, part.own_cells, unknowns);
  mesh.in_own = std::move(part.in_own_cells);
  return mesh;
}

/// Sums over the ranks of lists of equal length.
std::vector<double> sum_lists(Communicator& ranks, std::vector<double> const& mine) {
  std::vector<double> all(mine.size() * static_cast<std::size_t>(ranks.size())), sums(mine.size(), 0.0);
  ranks.all_gather(mine.data(), static_cast<std::int64_t>(mine.size() * sizeof(double)), all.data());
  for (std::size_t i = 0; i < all.size(); ++i)
    sums[i % mine.size()] += all[i];
  return sums;
}

/// The quantities of the whole from those of parts; of equal extremes the lowest place counts, by z, then y, then x.
assembly::Quantities merge(Communicator& ranks, assembly::MeshSummary const& mesh,
                           std::optional<assembly::Quantities> const& mine) {
  struct Extremes {
    bool has_cells = false;
    double min = 0, max = 0;
    std::array<double, 3> min_at{}, max_at{};
  } own;
  if (mine)
    own = {true, mine->min, mine->max, mine->min_at, mine->max_at};
  assembly::Quantities all;
  auto const before = [](std::array<double, 3> const& a, std::array<double, 3> const& b) {
    return std::tie(a[2], a[1], a[0]) < std::tie(b[2], b[1], b[0]);
  };
  bool first = true;
  for (Extremes const& part : gather(ranks, own)) {
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
  }
  std::vector<double> list{mine ? mine->integral_u : 0, mine ? mine->energy : 0};
  auto const of = [](auto const& map, unsigned id) {
    auto const found = map.find(id);
    return found == map.end() ? typename std::decay_t<decltype(map)>::mapped_type{} : found->second;
  };
  for (unsigned const id : mesh.material_ids)
    list.push_back(mine ? of(mine->volumes, id) : 0);
  for (unsigned const id : mesh.boundary_ids) {
    assembly::BoundaryFlux const boundary = mine ? of(mine->boundaries, id) : assembly::BoundaryFlux{};
    list.push_back(boundary.area);
    list.push_back(boundary.flux);
  }
  auto const sums = sum_lists(ranks, list);
  auto next = sums.begin();
  all.integral_u = *next++;
  all.energy = *next++;
  double volume = 0;
  for (unsigned const id : mesh.material_ids)
    volume += all.volumes[id] = *next++;
  for (unsigned const id : mesh.boundary_ids) {
    all.boundaries[id].area = *next++;
    all.boundaries[id].flux = *next++;
  }
  all.mean = all.integral_u / volume;
  return all;
}

/// The files of the solution: where the piece of a rank is, and what it is called.
class SolutionPieces {
public:
  /// `writers`: the ranks that have cells.
  SolutionPieces(RankMesh const& mesh, std::vector<int> writers, RunConfig const& config)
      : box_(mesh.box), writers_(std::move(writers)), config_(config) {}

  [[nodiscard]] std::vector<int> const& writers() const { return writers_; }
  [[nodiscard]] std::string name(int rank) const {
    return "solution_" + std::to_string(rank) + fs::path(vtk_file_name(config_)).extension().string();
  }
  [[nodiscard]] output::PiecePlace place(int rank) const {
    output::PiecePlace result{{}, config_.problem.mesh.origin};
    if (box_)
      for (std::size_t d = 0; d < 3; ++d)
        result.first[d] = config_.problem.order * box_->cells(rank).first[d];
    return result;
  }
  /// The file that names the pieces.
  [[nodiscard]] output::PiecesOfMesh pieces() const {
    using Kind = output::PiecesOfMesh::Kind;
    output::PiecesOfMesh mesh;
    mesh.kind = vtk_format(config_) != output::VtkFormat::image ? Kind::unstructured
                : config_.problem.order == 1                    ? Kind::image
                                                                : Kind::rectilinear;
    Counts const cells = cells_of(config_);
    mesh.low = config_.problem.mesh.origin;
    for (std::size_t d = 0; d < 3; ++d) {
      mesh.n[d] = config_.problem.order * cells[d] + 1;
      mesh.spacing[d] = config_.problem.mesh.extent[d] / static_cast<double>(cells[d]);
    }
    for (int const rank : writers_) {
      output::PiecesOfMesh::Piece piece{name(rank), place(rank).first, {}};
      if (box_)
        for (std::size_t d = 0; d < 3; ++d)
          piece.n[d] = config_.problem.order * box_->cells(rank).cells[d] + 1;
      mesh.pieces.push_back(piece);
    }
    return mesh;
  }

private:
  std::optional<BoxPartition> const& box_;
  std::vector<int> writers_;
  RunConfig const& config_;
};

}  // namespace

void require_same_configuration(RunConfig const& config, RankTeam& team) {
  auto const all = gather_texts(team.communicator(), resolved_yaml(config));
  team.together([&] {
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw InputError("the ranks have different configurations: that of rank " + std::to_string(rank) +
                         " is not that of rank 0; give all of them the same file and options");
  });
}

bool has_blocks(RunConfig const& config) {
  auto const cells = cells_of(config);
  return config.is_box() && config.problem.order == 1 && cells[0] >= 2 && cells[1] >= 2;
}

void require_runs_on_ranks(RunConfig const& config) {
  auto const refuse = [](bool wrong, char const* key, std::string const& what) {
    if (wrong)
      throw InputError(key, what + " on several ranks; run it without mpirun");
  };
  assembly::ProblemSpec const& problem = config.problem;
  refuse(config.is_box() && !problem.mesh.boundaries.empty(), "problem.mesh.boundaries",
         "boundaries of a box that are named by their place are not possible yet");
  refuse(config.is_box() && !problem.mesh.regions.empty(), "problem.mesh.regions", "regions of a box are not possible yet");
  refuse(problem.mesh.is_graded(), "problem.mesh.growth", "graded boxes are not possible yet");
  refuse(!problem.point_sources.empty(), "problem.point_sources", "point sources are not possible yet");
  refuse(!problem.line_sources.empty(), "problem.line_sources", "line sources are not possible yet");
  refuse(problem.source_total.has_value(), "problem.source_total", "a total of the source is not possible yet");
  refuse(std::any_of(problem.boundary.begin(), problem.boundary.end(),
                     [](auto const& condition) { return condition.type == assembly::BoundaryType::periodic; }),
         "problem.boundary", "periodic boundaries are not possible yet");
  refuse(config.matrix.format == Format::matrix_free, "matrix.format", "matrix_free is not possible yet");
  refuse(!runs_on_ranks(config.solver.preconditioner), "solver.preconditioner",
         std::string(name_of(config.solver.preconditioner)) + " is not possible yet (auto, multigrid, jacobi and none are)");
  refuse(config.solver.initial == InitialGuess::nested, "solver.initial", "nested iteration is not possible yet");
  refuse(config.solver.to_discretization, "solver.tolerance", "a tolerance from the discretisation error is not possible yet");
  refuse(!config.analysis.empty(), "analysis.svd", "analyses are not possible yet");
  OutputSpec const& output = config.output;
  refuse(output.vtk_enabled && vtk_format(config) == output::VtkFormat::hdf, "output.vtk.format", "hdf is not possible yet");
  refuse(!output.probes.empty(), "output.probes", "probes are not possible yet");
  refuse(!output.lines.empty(), "output.lines", "lines are not possible yet");
  refuse(!output.circles.empty(), "output.circles", "circles are not possible yet");
  refuse(!output.planes.empty(), "output.planes", "planes are not possible yet");
  refuse(!output.slices.empty(), "output.slices", "slices are not possible yet");
  refuse(!output.contours.empty(), "output.contours", "contours are not possible yet");
  refuse(output.writes(SolutionField::flux_points), "output.vtk.fields", "flux_points is not possible yet");
  refuse(!output.pictures.empty(), "output.pictures", "pictures are not possible yet");
  refuse(output.surface, "output.surface", "the surface is not possible yet");
}

ExitCode run_case_on_ranks(Configuration const& configuration, RunOptions const& options, Console& console, RankTeam& team,
                           InternalRunOptions internal) {
  RunConfig const& config = configuration.config();
  Communicator& ranks = team.communicator();
  require_same_configuration(config, team);
  team.together([&] {
    require_runs_on_ranks(config);
    if (!options.matrix_out.empty())
      throw InputError("--matrix-out does not work on several ranks; run it without mpirun");
  });
  internal.team = &team;
  Stages stages(config, options, console, options.path + " on " + std::to_string(team.size()) + " ranks", internal);
  ResultRecord& record = stages.record;
  record.configuration_file = options.path;
  record.fingerprint = fingerprint(config);
  record.order = config.problem.order;
  if (config.output.picture)
    console.line("    solution.png is not drawn on several ranks yet");

  int const rank = team.rank();
  stages.unless_interrupted([&] {
    std::optional<RankMesh> made;
    record.clock.time(Stage::mesh, [&] {
      team.together([&] {
        made.emplace(config.is_box() ? mesh_of_box(config, rank, team.size()) : mesh_in_parts(config, rank, team.size()));
      });
    });
    RankMesh& mesh = *made;
    for (std::string const& note : mesh.notes) {
      record.warnings.push_back(note);
      console.warning(note);
    }
    auto& around = mesh.around;
    auto& own = mesh.own;
    record.mesh = mesh.whole;
    record.dofs = record.mesh.dofs;
    std::string cut = "in " + std::to_string(team.size()) + " parts";
    if (mesh.box) {
      auto const& blocks = mesh.box->blocks();
      cut = "in " + std::to_string(blocks[0]) + " x " + std::to_string(blocks[1]) + " x " + std::to_string(blocks[2]) + " blocks";
    }
    stages.report_stage(Stage::mesh,
                        with_thousands(record.mesh.cells) + " cells, " + with_thousands(record.dofs) + " unknowns, " + cut);
    std::vector<int> writers;
    auto const have_cells = gather(ranks, static_cast<std::int32_t>(own ? 1 : 0));
    for (int r = 0; r < team.size(); ++r)
      if (have_cells[static_cast<std::size_t>(r)] != 0)
        writers.push_back(r);
    if (static_cast<int>(writers.size()) < team.size())
      console.warning(std::to_string(team.size() - static_cast<int>(writers.size())) + " of " + std::to_string(team.size()) +
                      " ranks have no cells: the mesh has no better division");

    assembly::LinearSystem system;
    RankRows rows;
    HostVector<double> b;
    double source = 0;
    record.clock.time(Stage::assembly, [&] {
      team.together([&] {
        rows.neighbors = mesh.neighbors;
        if (!around) {
          auto empty = std::make_shared<CsrMatrix>();
          empty->row_ptr.push_back(0);
          rows.matrix = std::move(empty);
          return;
        }
        system = around->assemble();
        rows.matrix = rows_in(system.matrix, mesh.places, mesh.n_rows, rows.n_ghosts());
        b.resize(static_cast<std::size_t>(mesh.n_rows));
        for (std::size_t unknown = 0; unknown < mesh.places.size(); ++unknown)
          if (mesh.places[unknown] < mesh.n_rows)
            b[static_cast<std::size_t>(mesh.places[unknown])] = system.rhs[unknown];
        system.matrix = {};
        system.rhs = {};
        if (own)
          source = own->source_integral();
      });
      bool const pure_neumann = mesh.box ? !any_of_ranks(&ranks, system.anchored) : mesh.pure_neumann;
      team.together([&] {
        if (pure_neumann)
          throw InputError("problem.boundary",
                           "pure Neumann problems are not possible yet on several ranks; run it without mpirun");
      });
    });
    record.nnz = sum_over(&ranks, rows.matrix->nnz());
    record.csr_bytes = CsrMatrix::csr_bytes(record.dofs, record.nnz);
    record.integral_f = sum_over(&ranks, source);
    stages.report_stage(Stage::assembly, with_thousands(record.nnz) + " non-zeros");

    stages.convert(std::move(rows), has_blocks(config) ? std::make_shared<RankBlocks const>(mesh.box->node_blocks()) : nullptr);
    HostVector<double> const x = stages.solve(b, false);
    stages.verify(b, x);

    HostVector<double> u_around, u;  // of the unknowns around own rows, and of own cells
    record.clock.time(Stage::reconstruct, [&] {
      auto const host = make_context(Backend::cpu);
      GhostExchange<double> exchange(*host, ranks, mesh.neighbors);
      exchange.start(x.data());
      double const* const ghosts = exchange.finish();
      if (!around)
        return;
      u_around.resize(mesh.places.size());
      for (std::size_t i = 0; i < mesh.places.size(); ++i)
        u_around[i] =
            mesh.places[i] < mesh.n_rows ? x[static_cast<std::size_t>(mesh.places[i])] : ghosts[mesh.places[i] - mesh.n_rows];
      system.constraints.expand(u_around);
      for (std::int32_t const place : mesh.in_own)
        u.push_back(u_around[static_cast<std::size_t>(place)]);
    });
    record.clock.time(Stage::verify, [&] {
      bool const finite = !any_of_ranks(&ranks, first_not_finite(u) < u.size());
      std::optional<assembly::Quantities> quantities;
      std::vector<double> fluxes;  // of every boundary of a mesh in parts
      assembly::ErrorNorms errors;
      team.together([&] {
        if (own && finite)
          quantities = own->quantities(u);
        if (!mesh.box && finite) {
          auto const known = around ? around->dirichlet_fluxes(u_around, mesh.n_rows) : std::map<unsigned, double>{};
          for (unsigned const id : mesh.whole.boundary_ids) {
            auto const found = known.find(id);
            fluxes.push_back(found == known.end() ? 0 : found->second);
            // The residuals of a part's own cells are not all that an unknown on its rim has.
            if (quantities && around->has_dirichlet(id) && quantities->boundaries.contains(id))
              quantities->boundaries[id].flux = 0;
          }
        }
        if (own && config.problem.exact)
          errors = own->errors(u);
      });
      if (finite) {
        assembly::Quantities all = merge(ranks, mesh.whole, quantities);
        if (!mesh.box) {
          auto const sums = sum_lists(ranks, fluxes);
          auto next = sums.begin();
          for (unsigned const id : mesh.whole.boundary_ids)
            all.boundaries[id].flux += *next++;
        }
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
    SolutionPieces const solution(mesh, writers, config);
    if (config.output.vtk_enabled)
      record.clock.time(Stage::output, [&] {
        if (own)
          try {
            fields = write_piece(*own, u, config, fs::path(folder) / solution.name(rank), solution.place(rank));
          } catch (EnvironmentError const& error) {
            failure = error.what();
          }
        failure = first_message(&ranks, failure);
      });
    stages.output([&](ResultsDirectory& directory) {
      if (!config.output.vtk_enabled)
        return;
      // Written already: they are listed, or the failure.
      for (int const r : writers)
        if (!directory.try_write(solution.name(r), [&](fs::path const& path) {
              if (!failure.empty() || !fs::exists(path))
                throw EnvironmentError(failure.empty() ? path.string() + " was written and is not there" : failure);
            }))
          return;
      output::PiecesOfMesh const pieces = solution.pieces();
      std::string const name = "solution" + output::extension_of(pieces.kind);
      if (directory.try_write(name, [&](fs::path const& path) {
            output::write_pieces(path, pieces, fields.points, fields.cells, config.output.vtk);
          }))
        directory.try_write("solution.pvd", [&](fs::path const& path) { output::write_pvd(path, {{0.0, name}}); });
    });
  });

  stages.write_configuration(configuration);
  return stages.finish();
}

}  // namespace poisson::app
