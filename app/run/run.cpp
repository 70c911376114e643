#include "app/run/run.hpp"

#include "app/analysis/analysis.hpp"
#include "app/analysis/snapshots.hpp"
#include "app/config/problem.hpp"
#include "app/run/assembled_system.hpp"
#include "app/run/balance.hpp"
#include "app/run/memory_forecast.hpp"
#include "app/run/pictures.hpp"
#include "app/run/solution_files.hpp"
#include "app/run/stages.hpp"
#include "app/run/system_files.hpp"
#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/system/data_check.hpp"

#include <optional>
#include <vector>

namespace poisson::app {

ExitCode run_case(Configuration const& configuration, RunOptions const& options, Console& console,
                  InternalRunOptions const& internal) {
  RunConfig const& config = configuration.config();
  assembly::prepare_for(config.problem.mesh);
  Stages stages(config, options, console, options.path, internal);
  ResultRecord& record = stages.record;
  std::optional<SystemFiles> const system_files =
      options.matrix_out.empty() ? std::nullopt : std::optional<SystemFiles>(options.matrix_out);
  if (system_files)
    system_files->require_writable();
  record.configuration_file = options.path;
  record.fingerprint = fingerprint(config);
  record.order = config.problem.order;

  for (std::string const& warning : configuration.warnings()) {
    record.warnings.push_back(warning);
    console.warning(warning);
  }
  stages.unless_interrupted([&] {
    auto problem = record.clock.time(Stage::mesh, [&] { return assembly::CheckedProblem(problem_of(config)); });
    MatrixPlan const plan = plan_matrix(config, stages.backend(), problem.mesh());
    require_host_memory_for(forecast_memory(config, stages.backend(), problem));
    auto discretization = record.clock.time(Stage::mesh, [&] { return assembly::Discretization(std::move(problem), plan.into); });
    for (std::string const& note : discretization.notes()) {
      record.warnings.push_back(note);
      console.warning(note);
    }
    std::vector<assembly::LocatedPoint> points = discretization.locate(requested_points(config));
    RequestedQuantities const requested(config, discretization.summary(), discretization.extent(), are_inside(points),
                                        [&](std::array<double, 3> const& x) { return discretization.nearest_node(x); });
    auto const warn = [&](KeyWarnings const& warnings) {
      for (auto const& [key, text] : warnings) {
        record.warnings.push_back(configuration.locate(InputError(key, text)));
        console.warning(record.warnings.back());
      }
    };
    std::vector<double> moved;
    for (assembly::LocatedPoint const& point : points)
      moved.push_back(point.moved);
    warn(warnings_of_moved(config, moved));
    warn(warnings_of_moved_sources(config, discretization.point_loads().moved));
    warn(warnings_of_sides(config, discretization.summary(), take_sides(discretization, points)));
    require_pictures_in_mesh(config, discretization.extent());
    record.mesh = discretization.summary();
    record.extent = discretization.extent();
    record.dofs = record.mesh.dofs;
    stages.report_stage(Stage::mesh, with_thousands(record.mesh.cells) + " cells, " + with_thousands(record.dofs) + " unknowns");
    for (std::string const& note : requested.notes())
      console.line("    " + note);

    auto system = record.clock.time(Stage::assembly, [&] { return AssembledSystem(discretization, plan, stages); });
    record.nnz = system.nnz();
    record.csr_bytes = CsrMatrix::csr_bytes(record.dofs, record.nnz);
    stages.report_stage(Stage::assembly, with_thousands(record.nnz) + " non-zeros");
    if (system.pure_neumann()) {
      record.compatibility_defect = system.compatibility_defect();
      console.line("    " + pure_neumann_note(system.compatibility_defect()));
    }
    record.integral_f = system.integral_f();

    auto const warn_of_source = [&] {
      if (std::string const warning = record.clock.time(Stage::assembly, [&] { return system.source_warning(); });
          !warning.empty()) {
        record.warnings.push_back(configuration.locate(InputError("problem.source", warning)));
        console.warning(record.warnings.back());
      }
    };
    bool const warn_later = system.checks_source();
    if (!warn_later)
      warn_of_source();

    system.store(plan, stages);
    if (system_files)  // before the solve: a system that makes a solver fail is one to look at
      stages.attempt([&](ResultsDirectory&) {
        record.clock.time(Stage::output, [&] { system_files->write(*stages.csr(), system.rhs(), record.fingerprint, console); });
      });
    HostVector<double> x = stages.solve(system.rhs(), system.is_singular(), system.order_one(config, stages));
    stages.verify(system.rhs(), x);
    if (warn_later)
      warn_of_source();
    HostVector<double> u = record.clock.time(Stage::reconstruct, [&] { return system.reconstruct(std::move(x)); });
    bool finite = false;
    std::vector<assembly::PointValues> at_points;
    record.clock.time(Stage::verify, [&] {
      finite = first_not_finite(u) == u.size();
      try {
        if (finite) {
          assembly::Quantities quantities = discretization.quantities(u);
          HostVector<double> u_low;
          auto const residual_of = [&] {
            u_low.resize(u.size(), 0.0);
            return system.residual(u, u_low);
          };
          CorrectedSolution const solution{residual_of, system.held().has_value(), system.held(),
                                           [&](auto d, double sign) { system.correct(d, sign, u, u_low); },
                                           [&] { return discretization.quantities(u, {}, u_low); }};
          settle_balance(
              stages, console, system.rhs(), solution, system.pure_neumann(), [&] { return range_of_k(discretization, u); },
              quantities);
          at_points = values_inside(discretization, u, points);
          record.quantities = requested.evaluate(quantities, record.integral_f, at_points);
          warn(warnings_of_quantities(config, record.quantities));
          warn(warnings_of_data(config, discretization.data_findings(), quantities));
        }
        if (config.problem.exact)
          record.errors = discretization.errors(u);
      } catch (Interrupted const&) {  // the solution is there, and is written
        clear_interrupt();
        record.status = SolverStatus::interrupted;
        record.reason = "interrupted while quantities and errors were computed; the solution is complete";
      }
    });
    stages.output([&](ResultsDirectory& directory) {
      if (internal.keep_unknowns && finite)
        write_snapshot(u, directory);
      for (std::string const& note : write_solution_files(discretization, u, config, record, directory)) {
        record.warnings.push_back(note);
        console.warning(note);
      }
      if (finite) {
        requested.write_files(at_points, directory);
        if (config.output.surface)
          write_surface(discretization.surface(u), discretization.summary(), config, directory);
      }
    });
    if (!config.analysis.empty() && record.status != SolverStatus::interrupted)
      stages.analysis([&](Context& context, ResultsDirectory* directory) {
        auto const sample = [&](assembly::Lattice const& lattice) { return discretization.sample(u, lattice); };
        auto const system_of = [&]() -> AnalysedSystem {
          return {system.matrix(), stages.stored(), system.system().constraints.mask(), system.is_singular()};
        };
        auto const whole = [&]() -> assembly::Discretization const& { return discretization; };
        return analyse({config, record.result, context, discretization.extent(), sample, system_of, whole}, *directory,
                       record.analysis, console);
      });
  });

  stages.write_configuration(configuration);
  return stages.finish();
}

}  // namespace poisson::app
