#pragma once

#include "app/domain/domain.hpp"
#include "assembly/system/field_values.hpp"
#include "gpu/core/field.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/elements/box_solution.hpp"
#include "gpu/elements/element_solution.hpp"
#include "gpu/kernels/fields.hpp"
#include "gpu/kernels/paged_field.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
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
    pages_ = nullptr;
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
    std::vector<std::int32_t> of_around;
    if (!mesh_.is_whole()) {
      of_around.reserve(unknowns.size());
      for (std::int32_t const unknown : unknowns)
        of_around.push_back(mesh_.in_own(unknown));
      unknowns = of_around;
    }
    return pages_ != nullptr ? pages_->at(unknowns) : entries_of(around_.high, unknowns);
  }

  /// u at the unknowns of mesh.around, and of mesh.own; read in pages from a device, if unknowns that are near are numbered so
  /// (has_near_numbers). Then several threads may call at(). This and the mesh outlive it.
  [[nodiscard]] assembly::FieldValues<double> of_around() const {
    if (!is_in_pages())
      return assembly::FieldValues<double>::view(host());
    return {static_cast<std::size_t>(around_.high.size()),
            [pages = pages()](std::int64_t first, std::int64_t n, double* out) { pages->read(first, n, out); },
            [pages = pages()](std::span<std::int64_t const> places, double* out) { pages->pick(places, out); }};
  }
  [[nodiscard]] assembly::FieldValues<double> of_own_cells() const {
    if (mesh_.is_whole())
      return of_around();
    if (!is_in_pages())
      return assembly::FieldValues<double>::view(host_of_own_cells());
    return {mesh_.n_in_own(),
            [this, pages = pages()](std::int64_t first, std::int64_t n, double* out) {
              for (std::int64_t i = 0; i < n;) {  // a line of own cells' nodes is part of one around
                std::int64_t const at = mesh_.in_own(first + i);
                std::int64_t end = i + 1;
                while (end < n && mesh_.in_own(first + end) == at + end - i)
                  ++end;
                pages->read(at, end - i, out + i);
                i = end;
              }
            },
            [this, pages = pages()](std::span<std::int64_t const> places, double* out) {
              std::vector<std::int64_t> around(places.begin(), places.end());
              for (std::int64_t& place : around)
                place = mesh_.in_own(place);
              pages->pick(around, out);
            }};
  }

  /// u at the unknowns of mesh.around, and of mesh.own, in host memory.
  [[nodiscard]] std::span<double const> host() const {
    auto const held = pages_ != nullptr ? pages_->hold_context() : std::unique_lock<std::mutex>();
    return around_.high.host();
  }
  [[nodiscard]] std::span<double const> host_of_own_cells() const {
    if (mesh_.is_whole())
      return host();
    if (!has_own_)
      own_ = mesh_.of_own_cells(host());
    has_own_ = true;
    return own_;
  }

private:
  [[nodiscard]] bool is_in_pages() const {
    Context const* const context = around_.high.context();
    return context != nullptr && context->backend() != Backend::cpu && mesh_.own != nullptr && mesh_.own->has_near_numbers();
  }

  [[nodiscard]] std::shared_ptr<PagedField> pages() const {
    if (pages_ == nullptr) {
      Context& context = *around_.high.context();
      pages_ = std::make_shared<PagedField>(context, around_.high.size(), around_.high.on(context).data());
    }
    return pages_;
  }

  Domain const& mesh_;
  FieldPair around_;
  std::unique_ptr<ElementSolution> elements_;
  Context* context_ = nullptr;
  mutable HostVector<double> own_;
  mutable bool has_own_ = false;
  mutable std::shared_ptr<PagedField> pages_;
};

}  // namespace poisson::app
