#pragma once

#include "app/plan/assembly_plan.hpp"
#include "app/run/run_device.hpp"
#include "app/run/system.hpp"
#include "assembly/discretization.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/elements/order_one.hpp"

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>

namespace poisson::app {

/// The system of a rank that has the whole mesh, assembled into CSR or by gpu/elements.
class AssembledSystem final : public System {
public:
  /// Assembles. Throws InputError where the data are not admissible, EnvironmentError, Interrupted.
  AssembledSystem(assembly::Discretization& discretization, RunConfig const& config, AssemblyPlan plan, RunDevice& device);

  void store(SystemSolver& solver) override;
  [[nodiscard]] OrderOneProvider order_one(RunDevice& device) const override;
  [[nodiscard]] HostVector<double> const& rhs() const override { return system_.rhs; }
  [[nodiscard]] std::optional<double> compatibility_defect() const override {
    return system_.pure_neumann ? std::optional(system_.compatibility_defect) : std::nullopt;
  }
  [[nodiscard]] bool is_singular() const override { return assembly::is_singular(system_); }
  [[nodiscard]] double integral_f() const override { return system_.integral_f; }
  [[nodiscard]] std::int64_t nnz() const override { return nnz_; }
  [[nodiscard]] bool checks_source() const override { return source_warning_.valid(); }
  [[nodiscard]] std::string source_warning() override;
  [[nodiscard]] HostVector<double> reconstruct(HostVector<double> x) const override;
  [[nodiscard]] HostVector<double> residual(std::span<double const> u, std::span<double const> u_low) const override;
  [[nodiscard]] bool holds_an_unknown() const override { return system_.holds_an_unknown; }
  [[nodiscard]] std::optional<std::size_t> held() const override;
  void correct(std::span<double const> d, double sign, std::span<double> u, std::span<double> u_low) const override;
  [[nodiscard]] HostVector<double> fixed_rows() const override;

private:
  /// By gpu/elements. False, and nothing is done, where it cannot.
  bool assemble_elements(Context& context);
  /// To the right-hand side of elements_.
  void add_point_loads();
  /// NaN at unknowns without a Dirichlet value, of elements_.
  [[nodiscard]] HostVector<double> fixed_values() const;

  assembly::Discretization const& discretization_;
  RunConfig const& config_;
  AssemblyPlan plan_;
  assembly::LinearSystem system_;  ///< of elements_ its right-hand side and numbers only
  std::shared_ptr<CsrMatrix const> matrix_;
  std::unique_ptr<ElementSystem> elements_;
  std::optional<LoweredProblem> lowered_;  ///< for order_one, where it was at hand
  std::int64_t nnz_ = 0;
  std::future<std::string> source_warning_;
};

}  // namespace poisson::app
