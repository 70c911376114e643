#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/order_levels.hpp"
#include "gpu/preconditioners/lanczos.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

namespace poisson {

namespace {

template <class V>
class OrderTransfer final : public GridTransfer<V> {
public:
  OrderTransfer(Context& context, LatticeLayout const& fine, LatticeLayout const& coarse, HostVector<std::uint8_t> const& fixed)
      : context_(context),
        kernels_(kernels_for<OrderLevelKernels<V>>(context)),
        fine_(context, fine),
        coarse_(context, coarse),
        owned_(context, std::span<std::uint8_t const>(first_copies(fine))),
        fixed_of_fine_(context, std::span<std::uint8_t const>(fixed)),
        fixed_of_coarse_(context, std::span<std::uint8_t const>(fixed_vertices(fine, coarse, fixed))) {
    levels_ = order_levels_of(fine_.view(), coarse_.view());
    levels_.fixed_of_fine = fixed_of_fine_.data();
    levels_.fixed_of_coarse = fixed_of_coarse_.data();
    levels_.owned = owned_.data();
  }

  void restrict_residual(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const override {
    kernels_.restrict_residual(context_, levels_, r, diagonal, factor, b, x, stop);
  }
  void prolong(V const* e, V* x, std::int32_t const* stop) const override { kernels_.prolong(context_, levels_, e, x, stop); }
  std::int64_t bytes() const override {
    return fine_.bytes() + coarse_.bytes() + owned_.bytes() + fixed_of_fine_.bytes() + fixed_of_coarse_.bytes();
  }
  std::int64_t bytes_moved() const override {
    std::int64_t const number = sizeof(V);
    return levels_.fine.n_unknowns * 3 * number + levels_.coarse.n_unknowns * 5 * number;
  }

private:
  static HostVector<std::uint8_t> fixed_vertices(LatticeLayout const& fine, LatticeLayout const& coarse,
                                                 HostVector<std::uint8_t> const& fixed) {
    LatticeRim const rim = coarse.rim(), rim_of_fine = fine.rim();
    HostVector<std::uint8_t> result(coarse.copy_offsets.size() - 1);
    for (std::size_t i = 0; i < result.size(); ++i) {
      std::int64_t const place = coarse.copies[static_cast<std::size_t>(coarse.copy_offsets[i])];
      LatticeRim::Node const node = rim.node(place % rim.size());
      std::int64_t const at = place / rim.size() * rim_of_fine.size() +
                              rim_of_fine.place(fine.order * node.i, fine.order * node.j, fine.order * node.k);
      result[i] = fixed[static_cast<std::size_t>(fine.rim_unknowns[static_cast<std::size_t>(at)] - fine.n_inner())];
    }
    return result;
  }

  Context& context_;
  OrderLevelKernels<V> const& kernels_;
  LatticeArrays fine_, coarse_;
  Array<std::uint8_t> owned_, fixed_of_fine_, fixed_of_coarse_;
  OrderLevels levels_;
};

}  // namespace

template <class V>
MultigridHierarchy<V> hierarchy_of_order_one(std::unique_ptr<Matrix> matrix, std::array<std::int64_t, 3> const& box_nodes,
                                             PreconditionerOptions const& options) {
  MultigridHierarchy<V> result;
  if (auto const* const lattices = dynamic_cast<LatticeHalfCds const*>(matrix.get()); lattices != nullptr && has_levels(*lattices))
    result = lattice_hierarchy<V>(*lattices, options);
  else if (is_box(*matrix, box_nodes)) {
    PreconditionerOptions of_box = options;
    of_box.box_nodes = box_nodes;
    result = box_hierarchy<V>(*matrix, of_box);
  } else
    result = algebraic_hierarchy<V>(
        matrix.get(), [&] { return std::make_shared<CsrMatrix const>(matrix->to_csr()); }, matrix->context(), options);
  if (!result.levels.empty() && result.levels.front().matrix == matrix.get())
    result.levels.front().own = std::move(matrix);
  return result;
}

template <class V>
MultigridHierarchy<V> order_hierarchy(Matrix const& a, OrderOne order_one, PreconditionerOptions const& options) {
  assert(order_one.lattices.order > 1 && order_one.lattices.n_unknowns == a.n_rows());
  Context& context = a.context();
  MultigridHierarchy<V> result;
  MultigridLevel<V>& level = result.levels.emplace_back();
  if (!set_finest_matrix(level, a, options.csr)) {
    result.failure = "the matrix has no copy in the precision of multigrid";
    return result;
  }
  options.done(context, "elements of order 1");
  level.diagonal = Array<V>(context, a.n_rows());
  static_cast<LinearOperator<V> const&>(*level.matrix).diagonal(level.diagonal.data());
  std::int64_t const order = order_one.lattices.order;
  level.more_steps = static_cast<int>(std::max<std::int64_t>(order - 2, 0));
  level.nnz = (2 * order + 1) * (2 * order + 1) * (2 * order + 1) * a.n_rows();
  double const largest = largest_by_lanczos(level, pseudo_random_vector<V>(context, a.n_rows()));
  if (!(largest > 0) || !std::isfinite(largest)) {
    result.failure = "the matrix is not positive definite";
    return result;
  }
  options.done(context, "eigenvalue");
  level.largest = safety * largest;
  if (options.multigrid.levels == 1)
    return result;
  level.to_coarse = std::make_unique<OrderTransfer<V>>(context, order_one.lattices, layout_of_vertices(order_one.lattices.view()),
                                                       order_one.fixed);
  PreconditionerOptions rest = options;
  rest.multigrid.levels -= 1;
  append(result, hierarchy_of_order_one<V>(std::move(order_one.matrix), order_one.box_nodes, rest));
  return result;
}

template MultigridHierarchy<float> hierarchy_of_order_one(std::unique_ptr<Matrix>, std::array<std::int64_t, 3> const&,
                                                          PreconditionerOptions const&);
template MultigridHierarchy<double> hierarchy_of_order_one(std::unique_ptr<Matrix>, std::array<std::int64_t, 3> const&,
                                                           PreconditionerOptions const&);
template MultigridHierarchy<float> order_hierarchy(Matrix const&, OrderOne, PreconditionerOptions const&);
template MultigridHierarchy<double> order_hierarchy(Matrix const&, OrderOne, PreconditionerOptions const&);

}  // namespace poisson
