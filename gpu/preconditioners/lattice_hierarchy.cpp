#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/lattice_levels.hpp"
#include "gpu/preconditioners/lanczos.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace poisson {

namespace {

template <class V>
class LatticeTransfer final : public GridTransfer<V> {
public:
  LatticeTransfer(Context& context, std::shared_ptr<LatticeArrays const> fine, std::shared_ptr<LatticeArrays const> coarse,
                  std::shared_ptr<Array<std::uint8_t> const> free_of_fine,
                  std::shared_ptr<Array<std::uint8_t> const> free_of_coarse, Array<std::uint8_t> owned)
      : context_(context),
        kernels_(kernels_for<LatticeLevelKernels<V>>(context)),
        fine_(std::move(fine)),
        coarse_(std::move(coarse)),
        free_of_fine_(std::move(free_of_fine)),
        free_of_coarse_(std::move(free_of_coarse)),
        owned_(std::move(owned)),
        levels_{fine_->view(), coarse_->view(), free_of_fine_->data(), free_of_coarse_->data(), owned_.data()} {}

  [[nodiscard]] LatticeLevels const& levels() const { return levels_; }
  void restrict_residual(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const override {
    kernels_.restrict_residual(context_, levels_, r, diagonal, factor, b, x, stop);
  }
  void prolong(V const* e, V* x, std::int32_t const* stop) const override { kernels_.prolong(context_, levels_, e, x, stop); }
  std::int64_t bytes() const override { return coarse_->bytes() + free_of_fine_->bytes() + owned_.bytes(); }
  std::int64_t bytes_moved() const override {
    std::int64_t const number = sizeof(V);
    return levels_.fine.n_unknowns * (3 * number + 2) + levels_.coarse.n_unknowns * (5 * number + 1);
  }

private:
  Context& context_;
  LatticeLevelKernels<V> const& kernels_;
  std::shared_ptr<LatticeArrays const> fine_, coarse_;
  std::shared_ptr<Array<std::uint8_t> const> free_of_fine_, free_of_coarse_;
  Array<std::uint8_t> owned_;
  LatticeLevels levels_;
};

/// The tables of the finest level in host memory.
LatticeLayout downloaded(Context& context, LatticeView const& lattices) {
  LatticeLayout result;
  result.n_lattices = lattices.n_lattices;
  result.n_unknowns = lattices.n_unknowns;
  result.cells = lattices.cells;
  result.kind_first.assign(1, 0);
  auto const places = static_cast<std::size_t>(lattices.n_lattices * lattices.rim().size());
  result.rim_unknowns.resize(places);
  result.copies.resize(places);
  result.copy_offsets.resize(static_cast<std::size_t>(lattices.n_rim()) + 1);
  context.download(result.rim_unknowns.data(), lattices.rim_unknowns, 4 * std::ssize(result.rim_unknowns));
  context.download(result.copies.data(), lattices.copies, 4 * std::ssize(result.copies));
  context.download(result.copy_offsets.data(), lattices.copy_offsets, 8 * std::ssize(result.copy_offsets));
  return result;
}

}  // namespace

bool has_levels(std::int64_t cells) {
  return cells >= 4 && cells % 2 == 0;
}
bool has_levels(LatticeHalfCds const& a) {
  return a.precision() == MatrixPrecision::double_ && has_levels(a.view().lattices.cells) && !a.view().lattices.all_on_rim;
}

template <class V>
MultigridHierarchy<V> lattice_hierarchy(LatticeHalfCds const& a, PreconditionerOptions const& options) {
  Context& context = a.context();
  auto const& kernels = kernels_for<LatticeLevelKernels<V>>(context);
  MultigridHierarchy<V> result;
  Array<V> const start = pseudo_random_vector<V>(context, a.n_rows());
  LatticeLayout layout = downloaded(context, a.view().lattices);
  auto arrays = std::make_shared<LatticeArrays const>(a.lattices().copy_to(context));
  std::shared_ptr<Array<std::uint8_t> const> free;

  std::unique_ptr<Matrix> own = std::is_same_v<V, float> ? a.in_single() : nullptr;
  Matrix const* matrix = own != nullptr ? own.get() : &a;
  for (;;) {
    auto const& lattices = static_cast<LatticeHalfCds const&>(*matrix);
    LatticeView const view = lattices.view().lattices;
    V const* const values = values_in<V>(lattices);
    if (free == nullptr) {
      auto found = std::make_shared<Array<std::uint8_t>>(context, view.n_unknowns);
      kernels.find_free(context, view, values, found->data());
      free = std::move(found);
    }
    if (view.n_unknowns <= std::min(options.multigrid.coarse_size, most_dense)) {
      MultigridLevel<V>& level = result.levels.emplace_back();
      level.matrix = matrix;
      level.own = std::move(own);
      level.diagonal = Array<V>(context, view.n_unknowns);
      static_cast<LinearOperator<V> const&>(*matrix).diagonal(level.diagonal.data());
      CsrMatrix const csr = matrix->to_csr();
      level.nnz = std::ssize(csr.values);
      level.largest = 1;  // nothing is smoothed
      result.coarsest = dense_rows(csr);
      return result;
    }
    bool const deepest = static_cast<int>(result.levels.size()) + 1 == options.multigrid.levels;
    if (!has_levels(view.cells) || view.n_unknowns <= options.multigrid.coarse_size || deepest) {
      PreconditionerOptions rest = options;
      rest.multigrid.levels -= static_cast<int>(result.levels.size());
      append(result, algebraic_hierarchy<V>(
                         nullptr, [&] { return std::make_shared<CsrMatrix const>(matrix->to_csr()); }, context, rest));
      return result;
    }
    LatticeLayout coarse = coarse_layout(layout.view());
    auto coarse_arrays = std::make_shared<LatticeArrays const>(context, coarse);
    auto free_of_coarse = std::make_shared<Array<std::uint8_t>>(context, coarse.n_unknowns);
    kernels.copy_free(context, view, coarse_arrays->view(), free->data(), free_of_coarse->data());
    HostVector<std::uint8_t> const owned = first_copies(layout);
    auto transfer = std::make_unique<LatticeTransfer<V>>(context, arrays, coarse_arrays, free, free_of_coarse,
                                                         Array<std::uint8_t>(context, std::span<std::uint8_t const>(owned)));
    std::int64_t const coarse_nodes = coarse.n_lattices * coarse.nodes() * coarse.nodes() * coarse.nodes();
    Array<V> coarse_values(context, half_stencil::diagonals * coarse_nodes);
    options.done(context, "tables");
    kernels.coarsen(context, transfer->levels(), values, coarse_values.data());
    options.done(context, "P^T A P");

    MultigridLevel<V>& level = result.levels.emplace_back();
    level.matrix = matrix;
    level.own = std::move(own);
    level.diagonal = Array<V>(context, view.n_unknowns);
    static_cast<LinearOperator<V> const&>(*matrix).diagonal(level.diagonal.data());
    level.nnz = (2 * half_stencil::diagonals - 1) * view.n_unknowns;
    double const largest = largest_by_lanczos(level, start);
    if (!(largest > 0) || !std::isfinite(largest)) {
      result.failure = "the matrix is not positive definite on level " + std::to_string(result.levels.size()) + " of multigrid";
      return result;
    }
    options.done(context, "eigenvalue");
    level.largest = safety * largest;
    level.to_coarse = std::move(transfer);

    own = LatticeHalfCds::from_diagonals(context, coarse_arrays->copy_to(context), std::move(coarse_values));
    matrix = own.get();
    layout = std::move(coarse);
    arrays = std::move(coarse_arrays);
    free = std::move(free_of_coarse);
  }
}

template MultigridHierarchy<float> lattice_hierarchy(LatticeHalfCds const&, PreconditionerOptions const&);
template MultigridHierarchy<double> lattice_hierarchy(LatticeHalfCds const&, PreconditionerOptions const&);

}  // namespace poisson
