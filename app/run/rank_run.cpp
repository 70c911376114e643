#include "app/run/rank_run.hpp"

#include "app/analysis/snapshots.hpp"
#include "app/run/balance.hpp"
#include "app/run/gathered_rows.hpp"
#include "app/run/pictures.hpp"
#include "app/run/quantities.hpp"
#include "app/run/rank_analysis.hpp"
#include "app/run/rank_files.hpp"
#include "app/run/rank_mesh.hpp"
#include "app/run/rank_points.hpp"
#include "app/run/rank_quantities.hpp"
#include "app/run/rank_system.hpp"
#include "app/run/solution_files.hpp"
#include "app/run/stages.hpp"
#include "app/run/system_files.hpp"
#include "assembly/discretization.hpp"
#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/system/data_check.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/solvers/solver.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

void require_same_configuration(RunConfig const& config, RankTeam& team) {
  auto const all = gather_texts(team.communicator(), resolved_yaml(config));
  team.together([&] {
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw InputError("the ranks have different configurations: rank " + std::to_string(rank) +
                         " has another one than rank 0; give all of them the same file and options");
  });
}

bool has_blocks(RunConfig const& config) {
  auto const cells = config.problem.mesh.refined_cells();
  auto const& boundary = config.problem.boundary;
  bool const periodic = std::any_of(boundary.begin(), boundary.end(), [](auto const& condition) {
    return condition.type == assembly::BoundaryType::periodic;  // which couples nodes that are far from each other
  });
  return config.is_box() && config.problem.order == 1 && cells[0] >= 2 && cells[1] >= 2 && !periodic;
}

namespace {

/// The requested quantities, checked. Collective; all ranks have or throw the same.
std::unique_ptr<RequestedQuantities> requested_on_ranks(RunConfig const& config, RankMesh const& mesh, RankTeam& team,
                                                        std::vector<bool> const& inside, assembly::Extent const& extent) {
  std::array<double, 3> nearest{};  // to the first probe that is outside
  for (std::size_t i = 0; i < config.output.probes.size(); ++i)
    if (!inside[i]) {
      nearest = nearest_node(mesh, team, config.output.probes[i].at);
      break;
    }
  std::unique_ptr<RequestedQuantities> requested;
  team.together([&] {
    requested = std::make_unique<RequestedQuantities>(config, mesh.whole, extent, inside, [&](auto const&) { return nearest; });
  });
  return requested;
}

/// Of a source for which the mesh is too coarse; the same on all ranks. Collective.
std::string source_warning(RankSystem const& system, RankTeam& team) {
  assembly::SourceFindings mine, all;
  team.together([&] { mine = system.source_findings(); });
  for (assembly::SourceFindings const& of_rank : gather(team.communicator(), mine))
    all.add(of_rank);
  return all.warning();
}

/// Of all own cells; the same on all ranks. Collective.
assembly::DataFindings data_on_ranks(RankMesh const& mesh, RankTeam& team, RunConfig const& config) {
  assembly::DataFindings mine, all;
  std::size_t const n_sources = config.problem.point_sources.size() + config.problem.line_sources.size();
  team.together([&] {
    if (mesh.own)
      mine = mesh.own->data_findings();
  });
  Communicator& ranks = team.communicator();
  auto const ranges = gather(ranks, mine.ranges);
  team.together([&] {
    // Faces with other conditions at an unknown on the rim of own cells may be other ranks'; all cells around own rows are here.
    if (mesh.around) {
      assembly::DataFindings at_rows;
      for (auto const& of_rank : ranges) {
        assembly::DataFindings part;
        part.ranges = of_rank;
        at_rows.add(part);
      }
      mesh.around->add_dirichlet_findings(mesh.have_rows(), at_rows);
      mine.meeting = at_rows.meeting;
      mine.sources = at_rows.sources;
    }
    mine.sources.resize(n_sources);
  });
  auto const sizes = gather(ranks, static_cast<std::int64_t>(mine.jumps.size()));
  auto const jumps = gather_lists(ranks, mine.jumps);
  auto const sources = gather_lists(ranks, mine.sources);
  auto const meetings = gather(ranks, mine.meeting);
  auto next_jump = jumps.begin();
  auto next_source = sources.begin();
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    assembly::DataFindings part;
    part.jumps.assign(next_jump, next_jump + sizes[rank]);
    part.sources.assign(next_source, next_source + static_cast<std::ptrdiff_t>(n_sources));
    next_jump += sizes[rank];
    next_source += static_cast<std::ptrdiff_t>(n_sources);
    part.ranges = ranges[rank];
    part.meeting = meetings[rank];
    all.add(part);
  }
  return all;
}

}  // namespace

void require_runs_on_ranks(RunConfig const& config) {
  if (config.solver.to_discretization && !has_blocks(config))
    throw InputError("solver.tolerance",
                     "discretization is for boxes of two cells or more in x and y, without periodic boundaries, "
                     "on several ranks; run it without mpirun");
}

ExitCode run_case_on_ranks(Configuration const& configuration, RunOptions const& options, Console& console, RankTeam& team,
                           InternalRunOptions internal) {
  RunConfig const& config = configuration.config();
  Communicator& ranks = team.communicator();
  require_same_configuration(config, team);
  team.together([&] { assembly::prepare_for(config.problem.mesh); });
  std::optional<SystemFiles> const system_files =
      options.matrix_out.empty() ? std::nullopt : std::optional<SystemFiles>(options.matrix_out);
  team.together([&] {
    require_runs_on_ranks(config);
    if (system_files && team.is_first())
      system_files->require_free(options.overwrite);
  });
  internal.team = team;
  Stages stages(config, options, console, options.path + " on " + std::to_string(team.size()) + " ranks", internal);
  ResultRecord& record = stages.record;
  record.configuration_file = options.path;
  record.fingerprint = fingerprint(config);
  record.order = config.problem.order;
  team.together([&] {
    if (system_files && team.is_first())
      system_files->require_writable();
  });

  for (std::string const& warning : configuration.warnings()) {
    record.warnings.push_back(warning);
    console.warning(warning);
  }
  stages.unless_interrupted([&] {
    std::optional<RankMesh> made;
    record.clock.time(Stage::mesh, [&] { made.emplace(rank_mesh(config, team)); });
    RankMesh& mesh = *made;
    for (std::string const& note : mesh.notes) {
      record.warnings.push_back(note);
      console.warning(note);
    }
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
    auto const have_cells = gather(ranks, static_cast<std::int32_t>(mesh.own ? 1 : 0));
    for (int r = 0; r < team.size(); ++r)
      if (have_cells[static_cast<std::size_t>(r)] != 0)
        writers.push_back(r);
    if (static_cast<int>(writers.size()) < team.size())
      console.warning(std::to_string(team.size() - static_cast<int>(writers.size())) + " of " + std::to_string(team.size()) +
                      " ranks have no cells: the mesh has no better division");
    RankPoints const points(mesh, team, requested_points(config));
    assembly::Extent const extent = extent_of(mesh, team);
    record.extent = extent;
    auto const requested = requested_on_ranks(config, mesh, team, points.inside(), extent);
    auto const warn = [&](KeyWarnings const& warnings) {
      for (auto const& [key, text] : warnings) {
        record.warnings.push_back(configuration.locate(InputError(key, text)));
        console.warning(record.warnings.back());
      }
    };
    warn(warnings_of_moved(config, points.moved()));
    if (mesh.around)  // the first rank, which tells, has cells
      warn(warnings_of_moved_sources(config, mesh.around->point_loads().moved));
    warn(warnings_of_sides(config, mesh.whole, points.sides()));
    team.together([&] { require_pictures_in_mesh(config, extent); });
    for (std::string const& note : requested->notes())
      console.line("    " + note);

    std::optional<RankSystem> system;
    record.clock.time(Stage::assembly, [&] { system.emplace(mesh, team, config, stages.context()); });
    record.nnz = system->nnz;
    record.csr_bytes = CsrMatrix::csr_bytes(record.dofs, record.nnz);
    record.integral_f = system->integral_f;
    record.compatibility_defect = system->compatibility_defect;
    stages.report_stage(Stage::assembly, with_thousands(record.nnz) + " non-zeros");
    if (system->pure_neumann())
      console.line("    " + pure_neumann_note(*system->compatibility_defect));
    if (std::string const warning = record.clock.time(Stage::assembly, [&] { return source_warning(*system, team); });
        !warning.empty()) {
      record.warnings.push_back(configuration.locate(InputError("problem.source", warning)));
      console.warning(record.warnings.back());
    }

    system->store(config, stages);
    if (system_files)
      stages.attempt_together([&] {
        record.clock.time(Stage::output, [&] {
          system_files->write_on_ranks(stages.rank_rows(), mesh.row_numbers(), system->b, record.fingerprint, team, console);
        });
      });
    HostVector<double> x = stages.solve(system->b, system->is_singular(), system->order_one(config, stages.context()),
                                        system->nested_spaces(config), [&] { return mesh.row_numbers(); });
    stages.verify(system->b, x);

    HostVector<double> u_around, u_low, u;  // of the unknowns around own rows, with low parts, and of own cells
    auto const take_own = [&] {
      u.clear();
      for (std::int32_t const place : mesh.in_own)
        u.push_back(u_around[static_cast<std::size_t>(place)]);
    };
    record.clock.time(Stage::reconstruct, [&] {
      u_around = system->reconstruct(x);
      take_own();
    });
    bool const finite = !any_of_ranks(ranks, first_not_finite(u) < u.size());
    assembly::Quantities quantities;
    bool measured = finite;
    if (finite)
      try {
        quantities = record.clock.time(Stage::verify, [&] { return quantities_on_ranks(mesh, team, u_around, u); });
        auto const residual = [&] {
          u_low.resize(u_around.size(), 0.0);
          return system->residual(u_around, u_low);
        };
        auto const add = [&](std::span<double const> d, double sign) {
          system->correct(d, sign, u_around, u_low);
          take_own();
        };
        CorrectedSolution const solution{residual, system->holds_an_unknown(), system->held(), add,
                                         [&] { return quantities_on_ranks(mesh, team, u_around, u, u_low); }};
        settle_balance(
            stages, console, system->b, solution, system->pure_neumann(), [&] { return system->range_of_k(u_around); }, quantities);
      } catch (Interrupted const&) {  // thrown on all ranks
        clear_interrupt();
        record.status = SolverStatus::interrupted;
        record.reason = "interrupted while quantities were computed; the solution is complete";
        measured = false;
      }
    RankFiles files(mesh, team, writers, config, u_around, u);
    std::vector<assembly::PointValues> at_points;
    HostVector<double> unknowns;  // of the whole mesh, where they are kept
    try {
      std::string const folder = stages.shared_path();
      if (record.clock.time(Stage::output, [&] { return files.write_piece(folder); }))
        throw Interrupted();
      record.clock.time(Stage::verify, [&] {
        if (measured) {
          at_points = points.values(u);
          team.together([&] {
            if (!team.is_first())
              return;
            record.quantities = requested->evaluate(quantities, record.integral_f, at_points);
            warn(warnings_of_quantities(config, record.quantities));
          });
          warn(warnings_of_data(config, data_on_ranks(mesh, team, config), quantities));
        }
        if (config.problem.exact && (measured || !finite))
          record.errors = errors_on_ranks(mesh, team, u);
      });
      record.clock.time(Stage::output, [&] {
        if (internal.keep_unknowns && finite)
          unknowns = gathered_values(mesh.of_own_rows(u_around), mesh.row_numbers(), team);
        files.gather(record, extent, finite);
      });
    } catch (Interrupted const&) {  // thrown on all ranks; the solution is there, and is written
      clear_interrupt();
      record.status = SolverStatus::interrupted;
      record.reason = "interrupted after the solve; the solution is complete";
    }
    stages.output([&](ResultsDirectory& directory) {
      if (!unknowns.empty())
        write_snapshot(unknowns, directory);
      for (std::string const& note : files.write_files(record, directory)) {
        record.warnings.push_back(note);
        console.warning(note);
      }
      if (!at_points.empty())
        requested->write_files(at_points, directory);
    });
    if (!config.analysis.empty() && record.status != SolverStatus::interrupted)
      stages.analysis([&](Context& context, ResultsDirectory* directory) {
        RankRows const rows = stages.rank_rows();
        return analyse_on_ranks({config, mesh, team, *system, rows, u, extent}, record, context, directory, console);
      });
  });

  stages.write_configuration(configuration);
  return stages.finish();
}

}  // namespace poisson::app
