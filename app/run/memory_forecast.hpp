#pragma once

#include "app/config/run_config.hpp"
#include "app/plan/assembly_plan.hpp"
#include "assembly/discretization.hpp"
#include "gpu/core/lattice_layout.hpp"
#include "gpu/formats/cost.hpp"
#include "gpu/solvers/solver.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace poisson::app {

/// The most memory that every stage of a run takes, known before anything is refined or assembled.
struct MemoryForecast {
  struct OfStage {
    std::string name;  ///< as in result.json
    std::int64_t bytes = 0;
  };
  std::vector<OfStage> host;    ///< the program included
  std::vector<OfStage> device;  ///< empty with the cpu backend
  std::int64_t program = 0;     ///< bytes on the host for code and libraries, in every stage
  FormatChoice format;
  std::string assembly;  ///< AssemblyPlan::text
  PreconditionerKind preconditioner{};

  [[nodiscard]] static OfStage const& peak(std::vector<OfStage> const& stages);
  [[nodiscard]] std::int64_t host_peak() const { return peak(host).bytes; }
  [[nodiscard]] std::int64_t device_peak() const { return device.empty() ? 0 : peak(device).bytes; }
};

/// What the matrix takes in its format besides CSR on the host, from its assembly on.
struct MatrixMemory {
  std::int64_t host_assembly = 0, device_assembly = 0;  ///< at the peak of its assembly or conversion
  std::int64_t host = 0, device = 0;                    ///< that stay, with what else the assembly keeps
  std::int64_t host_verify = 0;                         ///< what the residual takes besides vectors
};
/// What a matrix in half_cds or matrix_free takes on lattices. Only the sizes of `layout` are read.
[[nodiscard]] MatrixMemory memory_of_lattices(Format format, LatticeLayout const& layout, int varying_fields, Backend backend);
/// What multigrid goes on with from matrix_free on lattices.
[[nodiscard]] ExpectedOrderOne order_one_of_lattices(LatticeLayout const& fine, std::int64_t vertices, int varying_fields,
                                                     Backend backend);

/// Forecasts the memory of a run without its analyses. These refuse by themselves what does not fit.
[[nodiscard]] MemoryForecast forecast_memory(RunConfig const& config, Backend backend, assembly::CheckedProblem const& problem);
/// Throws EnvironmentError where the machine has less memory than this stage of a run will need, on so many ranks at a time.
void require_host_memory_for(MemoryForecast::OfStage const& largest, int ranks = 1);

/// Bytes that the fluxes through boundaries take.
[[nodiscard]] std::int64_t bytes_of_fluxes(RunConfig const& config, std::int64_t unknowns, std::int64_t boundary_faces);

}  // namespace poisson::app
