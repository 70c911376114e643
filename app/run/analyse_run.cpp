#include "app/run/analyse_run.hpp"

#include "app/analysis/analysis.hpp"
#include "app/analysis/svd_report.hpp"
#include "app/config/problem.hpp"
#include "app/domain/gathered_rows.hpp"
#include "app/domain/points.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/formats/matrix.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace poisson::app {

namespace {

/// What the first rank asks all for, itself included.
struct AnalysisRequest {
  enum class What : std::int32_t { nothing, samples, system };
  What what = What::nothing;
  assembly::Lattice lattice{};  ///< of samples
};

/// The parts that analyses need of the whole, gathered on the first rank when they ask for them.
class GatheredRun {
public:
  GatheredRun(AnalysedParts const& parts, Context& context) : parts_(parts), context_(context) {}

  // The first rank, which analyses, calls these functions.

  HostVector<double> sample(assembly::Lattice const& lattice) {
    ask({AnalysisRequest::What::samples, lattice});
    return std::move(samples_);
  }

  AnalysedSystem system() {
    if (parts_.mesh.is_whole()) {
      matrix_ = parts_.matrix.rows().matrix;
      fixed_.clear();
      for (double const value : parts_.system.fixed_rows())
        fixed_.push_back(value != 0 ? 1 : 0);
      return {*matrix_, parts_.matrix.local(), fixed_, parts_.system.is_singular()};
    }
    if (matrix_ == nullptr) {
      assembly::MeshSummary const& mesh = parts_.mesh.whole;
      if (mesh.dofs > std::numeric_limits<std::int32_t>::max())
        throw InputError("one rank analyses the operator, and counts its columns in 31 bits; this one has " +
                         with_thousands(mesh.dofs));
      require_host_memory(CsrMatrix::csr_bytes(mesh.dofs, parts_.system.nnz()) + 9 * mesh.dofs,
                          "the operator of all ranks, " + with_thousands(parts_.system.nnz()) + " non-zeros on the first one,");
    }
    ask({AnalysisRequest::What::system});
    if (stored_ == nullptr)
      stored_ = make_matrix(Format::csr, matrix_, context_);
    return {*matrix_, *stored_, fixed_, parts_.system.is_singular()};
  }

  assembly::Discretization const& discretization() {
    if (parts_.mesh.is_whole())
      return *parts_.mesh.own;
    if (!whole_)  // without memory for the matrix, which is there
      whole_.emplace(problem_of(parts_.config), assembly::AssembledInto::half_cds_on_host);
    return *whole_;
  }

  /// Ends the others' serve(). Throws what went wrong here alone while they answered: they still wait, and all ranks have to end.
  void end() {
    if (alone_)
      std::rethrow_exception(alone_);
    static_cast<void>(of_first(parts_.team.communicator(), AnalysisRequest{}));
  }

  // The other ranks call this function.

  /// Gives the first rank what it asks for, until it ends.
  void serve() {
    for (;;) {
      AnalysisRequest const request = of_first(parts_.team.communicator(), AnalysisRequest{});
      if (request.what == AnalysisRequest::What::nothing)
        return;
      try {
        answer(request);
      } catch (Interrupted const&) {  // the first one throws it, too, and ends
      } catch (...) {                 // or it may go on with the next entry
        if (!parts_.team.agreed())
          throw;
        parts_.team.caught();
      }
    }
  }

private:
  void ask(AnalysisRequest const& request) {
    if (alone_)
      std::rethrow_exception(alone_);
    static_cast<void>(of_first(parts_.team.communicator(), request));
    try {
      answer(request);
    } catch (Interrupted const&) {
      throw;
    } catch (...) {
      if (!parts_.team.agreed())
        alone_ = std::current_exception();
      parts_.team.caught();
      throw;
    }
  }

  void answer(AnalysisRequest const& request) {
    if (request.what == AnalysisRequest::What::samples) {
      samples_ = sample_of(parts_.team, parts_.u, request.lattice);
      return;
    }
    parts_.team.together([&] {
      if (interrupt_requested())
        throw Interrupted();
    });
    if (matrix_ != nullptr)
      return;
    std::vector<std::int64_t> const numbers = parts_.mesh.row_numbers();
    HostVector<double> const fixed = gathered_values(parts_.system.fixed_rows(), numbers, parts_.team);
    CsrMatrix matrix = gathered_matrix(parts_.matrix.rows(), numbers, parts_.team);
    parts_.team.together([&] {
      for (double const value : fixed)
        fixed_.push_back(value != 0 ? 1 : 0);
      matrix_ = std::make_shared<CsrMatrix const>(std::move(matrix));
    });
  }

  AnalysedParts const& parts_;
  Context& context_;
  HostVector<double> samples_;
  std::shared_ptr<CsrMatrix const> matrix_;  ///< on other ranks without entries
  std::unique_ptr<Matrix> stored_;
  HostVector<std::uint8_t> fixed_;
  std::optional<assembly::Discretization> whole_;
  std::exception_ptr alone_;
};

}  // namespace

std::exception_ptr analyse_run(AnalysedParts const& parts, ResultRecord& record, Context& context, ResultsDirectory* directory,
                               Console& console) {
  GatheredRun run(parts, context);
  std::exception_ptr failure;
  bool interrupted = false;
  if (directory == nullptr) {
    run.serve();
  } else {
    try {
      failure =
          analyse({parts.config, record.result, context, parts.extent, [&](auto const& lattice) { return run.sample(lattice); },
                   [&] { return run.system(); }, [&]() -> assembly::Discretization const& { return run.discretization(); }},
                  *directory, record.analysis, console);
    } catch (Interrupted const&) {
      interrupted = true;
    }
    run.end();
  }
  if (any_of_ranks(parts.team.communicator(), interrupted))
    throw Interrupted();
  return failure;
}

}  // namespace poisson::app
