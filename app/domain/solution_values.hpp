#pragma once

#include "app/domain/domain.hpp"
#include "gpu/core/field.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/elements/box_solution.hpp"
#include "gpu/elements/element_solution.hpp"
#include "gpu/kernels/fields.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace poisson::app {

/// u at the unknowns that this rank has, where it was computed. The host gets a copy when it asks for the first time.
class SolutionValues {
public:
  /// `u`: at the unknowns of mesh.around. The mesh outlives it.
  SolutionValues(Domain const& mesh, Field u) : mesh_(mesh) { around_.high = std::move(u); }

  [[nodiscard]] Domain const& mesh() const { return mesh_; }
  /// u at the unknowns of mesh.around, with its low parts.
  [[nodiscard]] FieldPair const& around() const { return around_; }
  /// The same, to be changed.
  [[nodiscard]] FieldPair& change() {
    own_ = HostVector<double>();
    has_own_ = false;
    return around_;
  }
  /// Of a mesh that the backend has assembled: what is asked of u where it is. Null elsewhere.
  void set_elements(std::unique_ptr<ElementSolution> elements, Context& context) {
    elements_ = std::move(elements);
    context_ = &context;
  }
  [[nodiscard]] ElementSolution const* elements() const { return elements_.get(); }
  /// The same of a box; null elsewhere.
  [[nodiscard]] BoxSolution const* box() const { return dynamic_cast<BoxSolution const*>(elements_.get()); }
  /// u in the memory of that backend.
  [[nodiscard]] double const* on_backend() const { return around_.high.on(*context_).data(); }
  /// u at some unknowns of mesh.own. Nothing else leaves the memory where u is.
  [[nodiscard]] HostVector<double> at(std::span<std::int32_t const> unknowns) const {
    if (mesh_.is_whole())
      return entries_of(around_.high, unknowns);
    std::vector<std::int32_t> of_around;
    of_around.reserve(unknowns.size());
    for (std::int32_t const unknown : unknowns)
      of_around.push_back(mesh_.in_own(unknown));
    return entries_of(around_.high, of_around);
  }

  /// u at the unknowns of mesh.around, and of mesh.own, in host memory.
  [[nodiscard]] std::span<double const> host() const { return around_.high.host(); }
  [[nodiscard]] std::span<double const> host_of_own_cells() const {
    if (mesh_.is_whole())
      return host();
    if (!has_own_)
      own_ = mesh_.of_own_cells(host());
    has_own_ = true;
    return own_;
  }

private:
  Domain const& mesh_;
  FieldPair around_;
  std::unique_ptr<ElementSolution> elements_;
  Context* context_ = nullptr;
  mutable HostVector<double> own_;
  mutable bool has_own_ = false;
};

}  // namespace poisson::app
