#include "app/run/run.hpp"

#include "app/analysis/analysis.hpp"
#include "app/analysis/snapshots.hpp"
#include "app/io/matrix_market.hpp"
#include "app/run/solution_files.hpp"
#include "app/run/stages.hpp"
#include "output/files/atomic_file.hpp"

#include <filesystem>

namespace poisson::app {

namespace fs = std::filesystem;

ExitCode run_case(Configuration const& configuration, RunOptions const& options, Console& console) {
  RunConfig const& config = configuration.config();
  Stages stages(config, options, console, options.path);
  ResultRecord& record = stages.record;
  record.configuration_file = options.path;
  record.fingerprint = fingerprint(config);
  record.order = config.problem.order;

  stages.unless_interrupted([&] {
    Timer timer;
    assembly::Discretization discretization(config.problem);
    record.mesh = discretization.summary();
    record.dofs = record.mesh.dofs;
    record.times.mesh = timer.seconds();
    console.stage("mesh", record.times.mesh,
                  with_thousands(record.mesh.cells) + " cells, " + with_thousands(record.dofs) + " unknowns");

    timer = Timer();
    assembly::LinearSystem system = discretization.assemble();
    auto const matrix = std::make_shared<CsrMatrix const>(std::move(system.matrix));
    record.nnz = matrix->nnz();
    record.csr_bytes = matrix->bytes();
    record.times.assembly = timer.seconds();
    console.stage("assembly", record.times.assembly, with_thousands(record.nnz) + " non-zeros");
    if (system.pure_neumann) {
      record.compatibility_defect = system.compatibility_defect;
      console.line("    pure Neumann: compatibility defect " + number_text(system.compatibility_defect) +
                   " of the data, removed; the solution has mean zero");
    }

    stages.convert(matrix);
    HostVector<double> u = stages.solve(system.rhs, system.pure_neumann);
    stages.verify(system.rhs, u, [&] {
      for (std::size_t i = 0; i < u.size(); ++i)
        u[i] += system.lift[i];
      if (system.pure_neumann)
        discretization.make_mean_free(u);
      if (config.problem.exact)
        record.errors = discretization.errors(u);
    });
    stages.output([&](ResultsDirectory& directory) {
      if (options.keep_unknowns && first_not_finite(u) == u.size())
        directory.try_write(snapshot_file, [&](fs::path const& path) { output::write_text_file(path, matrix_market_text(u)); });
      write_solution_files(discretization, u, config, record, directory);
    });
    if (!config.analysis.empty() && record.status != "interrupted")
      stages.analysis([&](Matrix const& stored, Context& context, ResultsDirectory& directory) {
        return analyse({config, discretization, system, *matrix, stored, u, record.result, context}, directory, record.analysis, console);
      });
  });

  stages.attempt([&](ResultsDirectory& directory) {
    directory.try_write("resolved.yaml", [&](fs::path const& path) {
      output::write_text_file(path, resolved_yaml(with_absolute_files(config)));
    });
    directory.try_write("configuration.yaml", [&](fs::path const& path) { output::write_text_file(path, configuration.text()); });
  });
  return stages.finish();
}

}  // namespace poisson::app
