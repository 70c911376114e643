#include "gpu/preconditioners/lanczos.hpp"
#include "gpu/preconditioners/level_lattices.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace poisson {

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
  std::vector<std::int32_t> coarse_of;
  LevelUnknowns const coarser = unknowns_of(layout_of_vertices(order_one.lattices.view(), &coarse_of));
  level.to_coarse = std::make_unique<OrderTransfer<V>>(context, alone(), unknowns_of(std::move(order_one.lattices)), coarser,
                                                       order_one.fixed, coarse_of);
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
