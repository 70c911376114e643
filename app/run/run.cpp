#include "app/run/run.hpp"

#include "app/config/problem.hpp"
#include "app/domain/domain.hpp"
#include "app/domain/points.hpp"
#include "app/domain/quantities.hpp"
#include "app/launch/backend_choice.hpp"
#include "app/launch/same_configuration.hpp"
#include "app/plan/assembly_plan.hpp"
#include "app/results/output.hpp"
#include "app/results/quantities.hpp"
#include "app/results/results.hpp"
#include "app/results/run_log.hpp"
#include "app/results/system_files.hpp"
#include "app/run/adaptive.hpp"
#include "app/run/analyse_run.hpp"
#include "app/run/balance.hpp"
#include "app/run/checkpoints.hpp"
#include "app/run/effective_run.hpp"
#include "app/run/kept.hpp"
#include "app/run/memory_forecast.hpp"
#include "app/run/run_device.hpp"
#include "app/run/solves_on_ranks.hpp"
#include "app/run/system.hpp"
#include "app/run/system_solver.hpp"
#include "assembly/image/image_file.hpp"
#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/mesh/counts.hpp"
#include "assembly/system/data_check.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/fields.hpp"
#include "gpu/kernels/vectors.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <future>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

namespace {

/// Throws InputError for a point, an expression or an output that the mesh has no place for. Returns what is to be noted.
/// Collective.
std::vector<std::string> check_requests(RunConfig const& config, Outputs const& outputs, Domain const& mesh, Team& team,
                                        std::vector<bool> const& inside, assembly::Extent const& extent) {
  std::array<double, 3> nearest{};  // to the first probe that is outside
  for (std::size_t i = 0; i < config.output.probes.size(); ++i)
    if (!inside[i]) {
      nearest = nearest_node(mesh, team, config.output.probes[i].at);
      break;
    }
  std::vector<std::string> notes;
  team.together([&] {
    notes = check_requests(config, outputs.point_sets(), mesh.whole, inside, nearest);
    outputs.require_in_mesh(extent);
  });
  return notes;
}

/// ", in 2 x 1 x 1 blocks", for the line about the mesh; empty where one rank has all.
std::string cut_text(Domain const& mesh, Team const& team) {
  if (mesh.box) {
    auto const& blocks = mesh.box->blocks();
    return ", in " + std::to_string(blocks[0]) + " x " + std::to_string(blocks[1]) + " x " + std::to_string(blocks[2]) + " blocks";
  }
  return mesh.is_whole() ? "" : ", in " + std::to_string(team.size()) + " parts";
}

Array<double> copy_of(Array<double> const& x) {
  Array<double> copy(*x.context(), x.size());
  kernels_for<VectorKernels<double>>(*x.context()).copy(*x.context(), x.size(), x.data(), copy.data());
  return copy;
}

/// The solution on one mesh, and what it rests on.
struct SolvedMesh {
  SolvedMesh(RunConfig const& config, Team& team, RunDevice& device, RunLog& log) : solver(config, team, device, log) {}
  std::optional<Domain> mesh;
  std::optional<DomainPoints> points;
  std::unique_ptr<System> system;
  SystemSolver solver;
  std::optional<SolutionValues> u;
  bool finite = false;
  bool warns_of_source_later = false;
  Route route{};
  Format planned{};
};

/// While it is there, the console leaves out what is told of every mesh.
struct ShortOutput {
  explicit ShortOutput(Console& of) : console(of) { console.leave_out_stages(true); }
  ShortOutput(ShortOutput const&) = delete;
  ShortOutput& operator=(ShortOutput const&) = delete;
  ~ShortOutput() { console.leave_out_stages(false); }
  Console& console;
};

/// Solves on one mesh after the other, until `adaptive` says that the last one will do. `solve_on(config, before)` does it on one,
/// and `named(solved)` makes the quantities. Where a next mesh cannot be had, the solution is that on the last one.
template <class SolveOn, class Named, class Keep>
std::unique_ptr<SolvedMesh> refine_adaptively(AdaptiveRefinement& adaptive, RunLog& log, SolveOn const& solve_on,
                                              Named const& named, Keep const& keep) {
  ResultRecord& record = log.record;
  std::unique_ptr<SolvedMesh> solved;
  std::optional<ShortOutput> short_output(std::in_place, log.console);
  for (bool goes_on = true; goes_on;) {
    ResultRecord const before = record;
    auto const go_back = [&](std::string const& how, std::string const& why) {
      StageClock const clock = record.clock;
      auto const warnings = record.warnings;
      record = before;
      record.clock = clock;
      record.warnings = warnings;
      adaptive.end(how, why);
      goes_on = false;
    };
    try {
      auto next = solve_on(adaptive.config(), solved.get());
      if (solved != nullptr && record.status == SolverStatus::interrupted)
        throw Interrupted();
      solved = std::move(next);
    } catch (TooManyUnknowns const& too_many) {
      go_back("unknowns",
              "the next mesh has " + with_thousands(too_many.unknowns) + " unknowns, more than problem.mesh.adaptive.max_unknowns");
      continue;
    } catch (Interrupted const&) {
      if (solved == nullptr)
        throw;
      clear_interrupt();
      std::string const number = std::to_string(adaptive.cycle());
      go_back("interrupt", "interrupted in cycle " + number);
      record.status = SolverStatus::interrupted;
      record.reason = "interrupted in cycle " + number + "; the results are those of the cycle before, which are complete";
      continue;
    } catch (...) {
      if (solved == nullptr)
        throw;
      go_back("memory", lack_of_memory());
      continue;
    }
    goes_on = false;
    if (record.status == SolverStatus::interrupted || !solved->finite)
      continue;
    log.unless_interrupted("while the error was estimated", [&] {
      record.clock.time(Stage::verify, [&] {
        goes_on = adaptive.goes_on({*solved->mesh, *solved->system, solved->solver, *solved->u, [&] { return named(*solved); },
                                    record.status == SolverStatus::converged});
      });
    });
    if (record.status == SolverStatus::interrupted && record.adaptive->reason.empty())
      record.adaptive->reason = record.reason;
    if (!record.adaptive->cycles.empty() && record.status != SolverStatus::interrupted)
      keep(*solved);
  }
  adaptive.release_mesh();
  short_output.reset();
  std::size_t const n = record.adaptive->cycles.size();
  log.report(Stage::mesh, with_thousands(record.mesh.cells) + " cells, " + with_thousands(record.dofs) + " unknowns, the last of " +
                              std::to_string(n) + (n == 1 ? " mesh" : " meshes"));
  log.report(Stage::assembly, with_thousands(record.nnz) + " non-zeros");
  log.report(Stage::solve, with_thousands(record.result.iterations) + " iterations on " + record.device + ": " +
                               std::string(name_of(record.status)));
  return solved;
}

/// The order of elements that needs least work for the tolerance (orders: auto). Each order is tried on two meshes, from the lowest
/// on, as long as its first mesh takes less than the best one needs. `try_order(p)` makes the loop of one, whose meshes are solved
/// on as in refine_adaptively.
template <class TryOrder, class SolveOn, class Named>
std::vector<TriedOrder> orders_tried(RunLog& log, TryOrder const& try_order, SolveOn const& solve_on, Named const& named) {
  constexpr int highest = 4;
  ResultRecord& record = log.record;
  ResultRecord const before = record;
  ShortOutput const short_output(log.console);
  std::vector<TriedOrder> tried;
  std::int64_t dofs_of_order_one = 0;
  auto const try_on_two_meshes = [&](int order) {
    AdaptiveRefinement& adaptive = try_order(order);
    std::unique_ptr<SolvedMesh> solved;
    for (bool goes_on = true; goes_on && adaptive.cycle() <= 2;) {
      solved = solve_on(adaptive.config(), solved.get());
      if (record.status == SolverStatus::interrupted)
        throw Interrupted();
      if (dofs_of_order_one == 0)
        dofs_of_order_one = record.dofs;
      goes_on = solved->finite && adaptive.goes_on({*solved->mesh, *solved->system, solved->solver, *solved->u,
                                                    [&] { return named(*solved); }, record.status == SolverStatus::converged});
    }
  };
  auto const restore = [&] {
    ResultRecord const now = std::exchange(record, before);
    record.clock = now.clock;
    record.warnings = now.warnings;
    record.device = now.device;
    record.devices_of_ranks = now.devices_of_ranks;
  };
  double least = std::numeric_limits<double>::infinity();
  for (int order = 1; order <= highest; ++order) {
    if (order > 1 && least_work(order, dofs_of_order_one) >= least)
      break;
    try {
      try_on_two_meshes(order);
    } catch (TooManyUnknowns const&) {  // on the second one
    } catch (Interrupted const&) {
      restore();
      throw;
    } catch (...) {  // the loop will tell, if the lowest order has too little
      static_cast<void>(lack_of_memory());
    }
    if (record.adaptive->cycles.empty())
      break;
    least = std::min(least, tried.emplace_back(needs_of_order(order, *record.adaptive)).work);
  }
  restore();
  return tried;
}

/// Reads an image, which its mesh then finds read. What goes wrong, or an interrupt, the mesh meets again and tells.
void read_image_ahead(assembly::MeshSpec const& mesh) {
  if (!mesh.image.is_given())
    return;
  try {
    static_cast<void>(assembly::labels_of_image(mesh.image, mesh.array));
  } catch (std::exception const&) {
  }
}

std::string pure_neumann_note(double compatibility_defect) {
  return "pure Neumann: compatibility defect " + number_text(compatibility_defect) +
         " of the data, removed; the solution has mean zero";
}

}  // namespace

ExitCode run_case(Configuration const& configuration, RunOptions const& given, Console& console,
                  InternalRunOptions const& internal) {
  RunConfig of_order;  // where the order of elements is chosen
  if (configuration.config().adaptive.chooses_order())
    of_order = configuration.config();
  RunConfig const& config = configuration.config().adaptive.chooses_order() ? of_order : configuration.config();
  Team& ranks = internal.team;
  // Meshes that are refined locally are the first rank's, which is then alone but for solves.
  Team& team = config.adaptive.is_asked() ? alone_team() : ranks;
  require_same_configuration(config, ranks);
  ranks.together([&] { require_preconditioner_for(config, ranks.size()); });
  EarlierRun earlier = find_earlier_run(config, given, internal.own_folder, ranks);
  if (earlier.finished) {
    tell_finished(config, console);
    return *earlier.finished;
  }
  RunOptions const options = options_after(given, earlier);
  Kept of_this_run;
  Kept& kept = internal.kept != nullptr ? *internal.kept : of_this_run;
  std::future<void> const with_device =  // while libraries are loaded
      kept.contexts.empty() ? begin_with_device(config.backend, ranks) : std::future<void>();
  ranks.together([&] {
    set_thread_count(options.threads);
    assembly::prepare_for(config.problem.mesh);
  });
  std::optional<SystemFiles> const system_files =
      options.matrix_out.empty() ? std::nullopt : std::optional<SystemFiles>(options.matrix_out);
  ranks.on_first([&] {
    if (system_files)
      system_files->require_free(options.overwrite);
  });
  Outputs const outputs(config, team.size(), internal.keep_unknowns);
  Results results(config, options, internal, outputs.names(), team);
  RunLog log(config, options, console);
  ResultRecord& record = log.record;
  Checkpoints checkpoints(config, std::move(earlier), results.shared_path(), ranks, log);
  record.clock.time(Stage::mesh, [&] {  // while a device starts
    record.fingerprint = fingerprint(config);
    ranks.together([&] { read_image_ahead(config.problem.mesh); });
  });
  RunDevice device(config.backend, ranks, log, kept);
  log.begin(options.path + ranks.on_ranks());
  ranks.on_first([&] {
    if (system_files)
      system_files->require_writable();
  });
  std::optional<SolvesOnRanks> on_ranks;
  if (config.adaptive.is_asked())
    on_ranks.emplace(config, options, ranks, device, log, checkpoints);
  record.configuration_file = options.path;
  record.order = config.problem.order;
  // The solution of the case before goes before the mesh of this one is made, unless it serves.
  std::string const mesh_of_solution = config.solver.initial == InitialGuess::neighbour ? mesh_text(config) : "";
  if (kept.solution && kept.solution->mesh != mesh_of_solution)
    kept.solution.reset();
  // So does the matrix, unless this case has the same.
  std::string const text_of_matrix = internal.kept != nullptr ? matrix_text(config) : "";
  if (kept.matrix && kept.matrix->text != text_of_matrix)
    kept.matrix.reset();

  auto const tell = [&](std::string const& text) {  // once, however many meshes there are
    if (std::find(record.warnings.begin(), record.warnings.end(), text) == record.warnings.end())
      log.warn(text);
  };
  auto const warn = [&](KeyWarnings const& warnings) {
    for (auto const& [key, text] : warnings)
      tell(configuration.locate(InputError(key, text)));
  };
  for (std::string const& warning : configuration.warnings())
    log.warn(warning);
  bool keeps_matrix = false;
  std::optional<AdaptiveRefinement> adaptive;
  if (config.adaptive.is_asked())
    adaptive.emplace(config, log, device);
  auto const warn_of_source = [&](System& system) {
    if (std::string const warning = record.clock.time(Stage::assembly, [&] { return system.source_warning(); }); !warning.empty())
      warn({{"problem.source", warning}});
  };

  // `of_mesh`: the configuration, but for local refinements. `before`: the mesh that this one was made from; null: none.
  auto const solve_on = [&](RunConfig const& of_mesh, SolvedMesh* before) {
    auto solved = std::make_unique<SolvedMesh>(of_mesh, team, device, log);
    SystemSolver& solver = solved->solver;
    solver.checkpoints = &checkpoints;
    if (on_ranks)
      on_ranks->solve_for(solver, of_mesh.problem.order, system_files || !config.analysis.empty());
    std::optional<AssemblyPlan> expected;
    auto const forecast = [&, ranks_here = team.n_on_this_machine()](assembly::CheckedProblem const& problem) {
      if (adaptive)
        adaptive->check(problem);
      auto const fits = [&](MemoryForecast const& of) {
        constexpr std::int64_t small = std::int64_t{1} << 32;  // to wait for a device takes some time
        auto const on_device = [&] { return device.context().description().memory_free + device.context().memory_used(); };
        return assembly::has_memory(of.host_peak().bytes - host_bytes_held()) &&
               (of.device_peak() <= small || of.device_peak() <= on_device());
      };
      MemoryForecast const of_run = forecast_that_fits(of_mesh, device.backend(), problem, ranks.size(), fits);
      keeps_matrix = internal.kept != nullptr && !adaptive && has_room_for_two(of_run, kept.contexts[device.backend()].get());
      if (!keeps_matrix)
        kept.matrix.reset();
      require_host_memory_for(of_run.host_peak(), ranks_here);
      expected = of_run.plan;
      return of_run.plan.into();
    };
    ContextProvider const on_device = [&]() -> Context& { return device.context(); };
    record.clock.time(Stage::mesh, [&] {
      solved->mesh.emplace(make_domain(of_mesh, team, forecast, device.backend() == Backend::cpu ? ContextProvider() : on_device));
    });
    Domain& mesh = *solved->mesh;
    for (std::string const& note : mesh.notes)
      tell(note);
    record.mesh = mesh.whole;
    record.dofs = record.mesh.dofs;
    if (!on_ranks)
      device.connect_ranks(record.dofs);
    record.extent = extent_of(mesh, team);
    DomainPoints const& points = solved->points.emplace(mesh, team, requested_points(config, outputs.point_sets()));
    auto const notes = check_requests(config, outputs, mesh, team, points.inside(), record.extent);
    warn(warnings_of_moved(config, outputs.point_sets(), points.moved()));
    if (mesh.around)  // the first rank, which tells, has cells
      warn(warnings_of_moved_sources(config, mesh.around->point_loads().moved));
    warn(warnings_of_sides(config, outputs.point_sets(), mesh.whole, points.sides()));
    log.report(Stage::mesh,
               with_thousands(record.mesh.cells) + " cells, " + with_thousands(record.dofs) + " unknowns" + cut_text(mesh, team));
    if (auto const idle = sum_over(team.communicator(), std::int64_t{mesh.own ? 0 : 1}); idle > 0)
      console.warning(std::to_string(idle) + " of " + std::to_string(team.size()) +
                      " ranks have no cells: the mesh has no better division");
    for (std::string const& note : notes)
      console.line("    " + note);

    solved->system = record.clock.time(Stage::assembly, [&] {
      AssemblyPlan plan = plan_for(mesh, team, of_mesh, device.backend(), std::move(expected));
      if (kept.matrix && kept.matrix->route == plan.route && kept.matrix->planned == plan.format)
        solver.use(std::move(kept.matrix));
      kept.matrix.reset();
      solved->route = plan.route;
      solved->planned = plan.format;
      return std::make_unique<System>(mesh, team, of_mesh, std::move(plan), on_device, solver.has_matrix());
    });
    mesh.nodes = {};  // if the system did not need them
    System& system = *solved->system;
    record.nnz = system.nnz();
    record.csr_bytes = CsrMatrix::csr_bytes(record.dofs, record.nnz);
    record.integral_f = system.integral_f();
    record.compatibility_defect = system.compatibility_defect();
    log.report(Stage::assembly, with_thousands(record.nnz) + " non-zeros");
    if (system.pure_neumann())
      console.line("    " + pure_neumann_note(*system.compatibility_defect()));
    solved->warns_of_source_later = system.checks_source() || adaptive;  // of a mesh that is refined nobody needs to know
    if (!solved->warns_of_source_later)
      warn_of_source(system);

    system.store(solver);
    if (keeps_matrix || config.effective.has_periodic() || (adaptive && !config.adaptive.target.empty()))
      solver.keep_setup();
    if (system_files && !adaptive)  // before the solve: a system that makes a solver fail is one to look at
      results.attempt_together([&] {
        record.clock.time(Stage::output, [&] {
          system_files->write(solver.matrix().rows(), mesh.row_numbers(), system.rhs().host(), record.fingerprint, team, console);
        });
      });
    Array<double> from_before;
    if (kept.solution)
      solver.start = &kept.solution->x;
    else if (before != nullptr)
      solver.start = &(from_before = adaptive->start(*before->mesh, *before->u, mesh, system));
    FieldPair x = solver.solve(system.rhs(), system.is_singular(), system.order_one(device), system.nested_spaces(),
                               [&] { return mesh.row_numbers(); });
    if (record.result.began_at_start && kept.solution) {
      record.neighbour = kept.solution->name;
      console.line("    began at the solution of " + *record.neighbour);
    }
    solver.start = nullptr;
    solver.verify(system.rhs(), x);
    kept.solution.reset();
    if (internal.kept != nullptr && !mesh_of_solution.empty() && record.status == SolverStatus::converged)
      kept.solution = KeptSolution{internal.name, mesh_of_solution, copy_of(x.high.on(device.context()))};
    if (solved->warns_of_source_later && !adaptive)
      warn_of_source(system);

    SolutionValues& u =
        solved->u.emplace(mesh, record.clock.time(Stage::reconstruct, [&] { return system.reconstruct(std::move(x.high)); }));
    record.clock.time(Stage::verify, [&] { u.set_elements(system.element_solution(), device.context()); });
    solved->finite = !any_of_ranks(team.communicator(), !is_finite(u.around().high));
    return solved;
  };

  auto const named = [&](SolvedMesh const& on_mesh) {
    assembly::Quantities const quantities = quantities_of(team, *on_mesh.u);
    return named_quantities(config, on_mesh.mesh->whole, quantities, record.integral_f, on_mesh.points->values(*on_mesh.u));
  };
  auto const keep = [&](SolvedMesh const& on_mesh) {
    if (!config.adaptive.keep_cycles)
      return;
    results.attempt([&](ResultsDirectory& directory) {
      Solution of_cycle{*on_mesh.mesh, team, record, *on_mesh.u, true};
      of_cycle.level = adaptive->levels(*on_mesh.mesh);
      of_cycle.estimator = adaptive->estimator();
      record.clock.time(Stage::output, [&] { write_cycle(of_cycle, config, std::ssize(record.adaptive->cycles), directory); });
    });
  };
  auto const choose_order = [&] {
    auto const try_order = [&](int order) -> AdaptiveRefinement& {
      of_order.problem.order = order;
      return adaptive.emplace(config, log, device, false);
    };
    std::vector<TriedOrder> tried = orders_tried(log, try_order, solve_on, named);
    auto const best =
        std::min_element(tried.begin(), tried.end(), [](TriedOrder const& a, TriedOrder const& b) { return a.work < b.work; });
    record.order = of_order.problem.order = best == tried.end() ? 1 : best->order;
    std::string text;
    for (TriedOrder const& one : tried)
      text += (text.empty() ? "  order " : ", ") + std::to_string(one.order) + " needs about " + number_text(one.dofs_needed, 2) +
              " unknowns";
    if (best != tried.end())
      console.line(text + ": " + std::to_string(best->order) + " is taken, with the least work");
    adaptive.emplace(config, log, device);
    record.adaptive->orders = std::move(tried);
  };

  auto const solve_and_write = [&] {
    if (config.adaptive.chooses_order())
      choose_order();
    std::unique_ptr<SolvedMesh> const solved =
        adaptive ? refine_adaptively(*adaptive, log, solve_on, named, keep) : solve_on(config, nullptr);
    if (adaptive)
      log.unless_interrupted("while the source was checked", [&] { warn_of_source(*solved->system); });
    Domain& mesh = *solved->mesh;
    DomainPoints const& points = *solved->points;
    auto const& system = solved->system;
    SystemSolver& solver = solved->solver;
    SolutionValues& u = *solved->u;
    bool const finite = solved->finite;
    if (system_files && adaptive)
      results.attempt_together([&] {
        record.clock.time(Stage::output, [&] {
          system_files->write(solver.matrix().rows(), mesh.row_numbers(), system->rhs().host(), record.fingerprint, team, console);
        });
      });
    std::vector<assembly::PointValues> at_points;
    std::vector<assembly::PointValues const*> for_outputs;
    OtherSolutions others;
    std::optional<std::array<double, 2>> ends;
    bool const shows_others = config.output.writes(SolutionField::u) || config.output.writes(SolutionField::flux);
    log.unless_interrupted("while quantities and errors were computed", [&] {
      record.clock.time(Stage::verify, [&] {
        if (finite) {
          auto const measure = [&] { return quantities_of(team, u); };
          assembly::Quantities quantities = measure();
          auto const residual = [&] { return system->residual(u.around()); };
          auto const correct = [&](Field const& d, double sign) { system->correct(d, sign, u.change()); };
          CorrectedSolution const solution{residual, system->holds_an_unknown(), system->held(), correct, measure};
          settle_balance(
              solver, system->rhs(), solution, system->pure_neumann(), [&] { return range_of_k(team, u); }, quantities);
          at_points = points.values(u);
          if (config.effective.is_asked())
            record.effective =
                record.status != SolverStatus::converged
                    ? expected_effective(config, mesh.whole)
                    : record.clock.time(Stage::analysis, [&] {
                        return effective_of_run({config, options, mesh, team, *system, solver, device, u.around(), quantities,
                                                 config.analysis.empty() && !keeps_matrix, shows_others ? &others : nullptr});
                      });
          ends = {quantities.min, quantities.max};
          team.on_first([&] {
            record.quantities = quantity_table(config, mesh.whole, quantities, record.integral_f, at_points, record.effective);
            warn(warnings_of_quantities(config, record.quantities, record.effective && record.effective->is_solved()));
          });
          warn(warnings_of_data(config, data_of(mesh, team, config), quantities));
          for (std::size_t i = 0; i < at_points.size(); ++i)
            for_outputs.push_back(points.inside()[i] ? &at_points[i] : nullptr);
        }
        if (config.problem.exact)
          record.errors = errors_of(team, u, system->pure_neumann());
      });
    });
    if (u.box() == nullptr)  // of other meshes it holds the coordinates of all nodes
      u.set_elements(nullptr, device.context());
    Solution solution{mesh, team, record, u, finite, ends, std::move(for_outputs), std::move(others)};
    if (adaptive) {
      solution.level = adaptive->levels(mesh);
      solution.estimator = adaptive->estimator();
    }
    results.output(
        log, [&](std::filesystem::path const& folder) { outputs.make(solution, folder); },
        [&](ResultsDirectory& directory) { outputs.write(solution, log, directory); });
    if (!config.analysis.empty() && record.status != SolverStatus::interrupted)
      results.analysis(log, [&](ResultsDirectory* directory) {
        return analyse_run({config, mesh, team, *system, solver.matrix(), u, record.extent}, record, device.context(), directory,
                           console);
      });
    if (keeps_matrix && record.status != SolverStatus::interrupted) {
      kept.matrix = solver.take_matrix();
      kept.matrix->text = text_of_matrix;
      kept.matrix->route = solved->route;
      kept.matrix->planned = solved->planned;
    }
  };
  log.until_interrupted([&] {
    if (on_ranks)
      on_ranks->lead(solve_and_write);
    else
      solve_and_write();
  });

  write_configuration(configuration, results);
  ExitCode const code = results.finish(log);
  checkpoints.end(code);
  return code;
}

}  // namespace poisson::app
