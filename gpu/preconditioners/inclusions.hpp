#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/inclusions.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace poisson {

/// Inclusions of a matrix on a box: parts whose unknowns are coupled strongly to each other, and weakly to all others, as where k
/// is a million times that around. Each gives an error that is nearly constant there and has next to no energy. Multigrid loses it
/// on levels whose cells are larger than what parts the inclusion from another conductor, and cg needs some iterations for each.
/// With functions e_c that are 1 on inclusion c and fall to 0 around it,
///   z += sum_c e_c (e_c^T r) / (e_c^T A e_c)
/// beside the cycle takes these errors away: subspaces of inclusions (Vuik, Segal, Meijerink 1999), added to a preconditioner as
/// the coarse space of Nicolaides (1987) is. The map is symmetric, and positive semidefinite.
class Inclusions {
public:
  /// Looks for them in a matrix on a box of these nodes, one by its diagonals in double (HalfCds) or by labels of its cells
  /// (LabelOperator). Null where there are none, or where more than a quarter of the nodes would be of one; those of more than
  /// 131 072 nodes are left out. It takes 5 bytes a row meanwhile, of a LabelOperator the diagonals of a slab, and then 216 bytes
  /// for each node of a function, of a million nodes or a little more at once, here and on the host. Throws OutOfMemoryError.
  [[nodiscard]] static std::unique_ptr<Inclusions> find(Matrix const& a, std::array<std::int64_t, 3> const& nodes);
  /// Whether entries on the diagonal, in the memory of `context`, tell of coefficients that differ enough for `find`.
  template <class V>
  [[nodiscard]] static bool may_be_there(Context& context, std::array<std::int64_t, 3> const& nodes, Array<V> const& diagonal) {
    return kernels_for<InclusionKernels>(context).has_jump(context, diagonal.size(), nodes[0], nodes[0] * nodes[1], diagonal.data(),
                                                           jump);
  }

  /// z += the above, unless *stop is set. Pointers are in the backend's memory.
  void add(double const* r, double* z, std::int32_t const* stop) const { kernels_.add(context_, view_, r, z, stop); }
  [[nodiscard]] std::int64_t count() const { return view_.n_inclusions; }
  [[nodiscard]] std::int64_t bytes_moved() const { return 48 * nodes_.size(); }  ///< by `add`

private:
  /// Multigrid alone takes few iterations more where coefficients differ by less than a factor of about 5000: of two neighbours on
  /// the diagonal, one may lie between four cells of each kind.
  static constexpr double jump = 1.0 / 4000;
  struct Function;
  struct Node {
    std::int32_t number, root;
  };
  Inclusions(Context& context, std::vector<Function> const& functions);
  static std::vector<Node> find_nodes(Matrix const& a, std::array<std::int64_t, 3> const& nodes);
  static std::vector<Function> functions_of(Matrix const& a, std::array<std::int64_t, 3> const& nodes,
                                            std::vector<Node> const& found);

  Context& context_;
  InclusionKernels const& kernels_;
  Array<std::int32_t> nodes_, chunk_first_, chunks_of_, rows_, row_first_, of_row_;
  Array<double> values_, row_values_, inverse_energy_, sums_, factors_;
  InclusionView view_;
};

}  // namespace poisson
