#pragma once

#include "app/run/stages.hpp"
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

/// How the matrix of a run is made.
struct MatrixPlan {
  assembly::AssembledInto into = assembly::AssembledInto::csr;
  std::optional<FormatChoice> choice{};  ///< what `auto` decided from, where it took half_cds before anything is assembled
  bool may_lower = false;                ///< multigrid may ask for elements of order 1
};

/// The shape of the matrix, as far as it is known before it is assembled.
[[nodiscard]] MatrixShape shape_of(RunConfig const& config, assembly::MeshSummary const& mesh);

/// Trilinear elements on boxes and lattices are assembled by gpu/elements straight into half_cds where that is the format, given or
/// taken by `auto`; matrix_free is made there for any mesh and element, and `auto` takes it for higher orders on boxes and refined
/// meshes where multigrid may be taken. Everything else is assembled into CSR and converted; so are
/// entries in double_double, matrices that an analysis needs, and those for which matrix.conversion asks for a way of converting.
/// Errors: InputError for matrix_free with an analysis or another precision.
[[nodiscard]] MatrixPlan plan_matrix(RunConfig const& config, Backend backend, assembly::MeshSummary const& mesh);

/// Whether multigrid can be given the same problem with elements of order 1 (OrderOne), assembled by gpu/elements.
[[nodiscard]] bool has_order_one(RunConfig const& config, assembly::MeshSummary const& mesh);

/// The system of a rank that has the whole mesh, assembled into CSR or by gpu/elements.
class AssembledSystem final : public System {
public:
  /// Assembles. Throws InputError where the data are not admissible, EnvironmentError, Interrupted.
  AssembledSystem(assembly::Discretization& discretization, RunConfig const& config, MatrixPlan plan, Stages& stages);

  void store(Stages& stages) override;
  [[nodiscard]] OrderOneProvider order_one(Stages& stages) const override;
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
  bool assemble_elements(Stages& stages);
  /// To the right-hand side of elements_.
  void add_point_loads();
  /// NaN at unknowns without a Dirichlet value, of elements_.
  [[nodiscard]] HostVector<double> fixed_values() const;

  assembly::Discretization const& discretization_;
  RunConfig const& config_;
  MatrixPlan plan_;
  assembly::LinearSystem system_;  ///< of elements_ its right-hand side and numbers only
  std::shared_ptr<CsrMatrix const> matrix_;
  std::unique_ptr<ElementSystem> elements_;
  std::optional<LoweredProblem> lowered_;  ///< for order_one, where it was at hand
  std::int64_t nnz_ = 0;
  std::future<std::string> source_warning_;
};

}  // namespace poisson::app
