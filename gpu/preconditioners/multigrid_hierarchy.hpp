#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/exchange/halo.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/columns.hpp"
#include "gpu/preconditioners/inclusions.hpp"
#include "gpu/preconditioners/options.hpp"
#include "gpu/preconditioners/smoother_roots.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace poisson {

inline constexpr double safety = 1.1;             ///< on an estimate of the largest eigenvalue
inline constexpr std::int64_t most_dense = 4096;  ///< rows of a coarsest matrix that is inverted; larger ones are smoothed

/// P between a level and the next coarser one, in the arithmetic V. Pointers are in the backend's memory. Nothing that counts is
/// done when *stop is not 0.
template <class V>
class GridTransfer {
public:
  virtual ~GridTransfer() = default;
  /// b = P^T r, and x = factor D^-1 b with the diagonal D of the coarser matrix, unless x is null, which it may be where the
  /// coarser level has a halo.
  virtual void restrict_residual(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const = 0;
  /// x += P e.
  virtual void prolong(V const* e, V* x, std::int32_t const* stop) const = 0;
  /// The same for 1 to most_columns columns, with the same bits.
  virtual void restrict_residuals(V const* diagonal, V factor, std::span<RestrictedColumn<V> const> columns) const {
    for (RestrictedColumn<V> const& column : columns)
      restrict_residual(column.r, diagonal, factor, column.b, column.x, column.stop);
  }
  virtual void prolong_all(std::span<ProlongedColumn<V> const> columns) const {
    for (ProlongedColumn<V> const& column : columns)
      prolong(column.e, column.x, column.stop);
  }
  /// Tells, on several ranks, whether restrict_residual looks at one layer of r that the level's halo fills in.
  [[nodiscard]] virtual bool reads_around() const { return true; }
  /// Tells, on several ranks, whether `prolong` looks at one layer of e that the coarser level's halo fills in. Then one layer of x
  /// is right, too. P may be another one farther out.
  [[nodiscard]] virtual bool prolongs_around() const { return false; }
  [[nodiscard]] virtual std::int64_t bytes() const = 0;        ///< that are stored
  [[nodiscard]] virtual std::int64_t bytes_moved() const = 0;  ///< by one of each
};

/// On several ranks: between the vectors of the system, of own rows, and those of the finest level. Collective.
template <class V>
class RankEntry {
public:
  virtual ~RankEntry() = default;
  virtual void enter(double const* r, V* b) const = 0;
  virtual void leave(V const* x, double* z, std::int32_t const* stop) const = 0;
};

/// A matrix of the hierarchy with what its smoother needs. Entries are in V. On several ranks vectors have the entries of the
/// rank's own unknowns, and of those in some layers around them, which others own. The first layer is what rows of own unknowns
/// read, the next one what those of the first layer read, and so on. The level has the rows of all layers but the last, so that one
/// fill of the halo is enough for as many products as there are layers.
template <class V>
struct MultigridLevel {
  std::unique_ptr<Matrix> own;  ///< null where the level's matrix is that of the system
  Matrix const* matrix = nullptr;
  Array<V> diagonal;
  double largest = 0;                          ///< the smoother damps eigenvalues of D^-1 A up to this one
  std::unique_ptr<GridTransfer<V>> to_coarse;  ///< null on the coarsest level
  SmootherPolynomial polynomial = SmootherPolynomial::optimal;
  int more_steps = 0;               ///< of the smoother, beyond the degree that the options ask for
  std::int64_t nnz = 0;             ///< entries of the full matrix, without those that are known to be 0
  std::unique_ptr<Halo<V>> halo{};  ///< of all layers; null where this rank has all unknowns
  int layers = 0;                   ///< that the halo fills in; 0 without one
  std::int64_t rows_of_all = 0;     ///< with a halo: unknowns of all ranks

  void set_halo(std::unique_ptr<Halo<V>> of_layers, int n_layers, std::int64_t n_of_all) {
    halo = std::move(of_layers);
    layers = n_layers;
    rows_of_all = n_of_all;
  }

  [[nodiscard]] std::int64_t n() const { return matrix->n_rows(); }
};

/// Levels from the finest on, and the coarsest matrix by its rows in host memory, n x n.
template <class V>
struct MultigridHierarchy {
  std::vector<MultigridLevel<V>> levels;
  std::vector<double> coarsest;
  std::string failure;                       ///< why there is none, in a sentence for the user
  std::unique_ptr<RankEntry<V>> entry{};     ///< null on one rank
  std::unique_ptr<Inclusions> inclusions{};  ///< of the finest level, in the numbering of the system; null: none
  bool constants = false;  ///< the coarsest matrix has the null space of constants, whatever that of the system is
};

/// Adds the levels of `coarser` to a hierarchy, below its own.
template <class V>
void append(MultigridHierarchy<V>& hierarchy, MultigridHierarchy<V> coarser) {
  for (MultigridLevel<V>& level : coarser.levels)
    hierarchy.levels.push_back(std::move(level));
  hierarchy.coarsest = std::move(coarser.coarsest);
  hierarchy.failure = std::move(coarser.failure);
}

/// What the finest level's products are made with, as `matrix` and `own` of `level`: `a` itself where its entries are in V, else a
/// copy in V, of `a` or, where that has none, of `csr`. False, and nothing is done, where there is neither.
template <class V>
[[nodiscard]] bool set_finest_matrix(MultigridLevel<V>& level, Matrix const& a, CsrProvider const& csr);

/// The values of a matrix in half_cds whose entries are in V.
template <class V, class HalfCdsMatrix>
[[nodiscard]] V const* values_in(HalfCdsMatrix const& a) {
  if constexpr (std::is_same_v<V, float>)
    return a.view().single_values;
  else
    return a.view().values;
}

/// A matrix by its rows, n x n.
[[nodiscard]] std::vector<double> dense_rows(CsrMatrix const& a);

/// Whether `a` is a half_cds matrix of trilinear elements on a box of these nodes, or a matrix-free operator of them (BoxOperator,
/// LabelOperator); on 0 nodes it is not.
[[nodiscard]] bool is_box(MultiPrecisionOperator const& a, std::array<std::int64_t, 3> const& nodes);

/// On a box: P from the matrix itself (BoxLevelKernels), P^T A P by diagonals. Directions are halved where the coupling is strong
/// (at least a quarter of the strongest), so that stretched cells and orthotropic coefficients become isotropic first. The
/// levels of a BoxOperator are BoxOperator::coarser with linear P, as long as there is one; small ones are stored. Of a
/// LabelOperator the finest level stays as it is, and the next one is made from slabs of diagonals. Precondition: is_box.
template <class V>
[[nodiscard]] MultigridHierarchy<V> box_hierarchy(Matrix const& a, PreconditionerOptions const& options);
/// The rows of such a slab of a box of these nodes.
[[nodiscard]] std::int64_t rows_of_slab(std::array<std::int64_t, 3> const& nodes);

/// Makes the levels of a box that several ranks share: each has those of its block, with so many nodes around it that coarser
/// levels are made as on one rank. From options.multigrid.gathered_size on every rank has all of the coarser levels. Where the box
/// repeats itself, levels do, as long as they have an even number of different nodes in directions that are halved; what is left
/// goes on by its rows (algebraic_hierarchy). Collective.
template <class V>
[[nodiscard]] MultigridHierarchy<V> box_hierarchy(RankMatrix const& a, RankBlocks const& blocks,
                                                  PreconditionerOptions const& options);

/// Whether there are blocks, of a box of three nodes or more in x and y: fewer have no diagonals of their own.
[[nodiscard]] inline bool has_levels(RankBlocks const* blocks) {
  return blocks != nullptr && blocks->nodes[0] >= 3 && blocks->nodes[1] >= 3;
}

/// Returns a box for every rank, with its own nodes and those in so many layers around them. `nodes` are those of the whole box,
/// beyond which there are others only in directions in which it is periodic. The box of a rank without nodes stays empty.
[[nodiscard]] std::vector<NodeBox> with_neighbours(std::vector<NodeBox> const& own, std::array<std::int64_t, 3> const& nodes,
                                                   int layers = 1, std::array<bool, 3> const& periodic = {});

/// Nodes of the rank's block with those around it, of which it has the finest level.
[[nodiscard]] std::int64_t nodes_of_block(RankBlocks const& blocks, int rank);

/// On lattices of order 1 whose cells are even in number: trilinear interpolation in each lattice, P^T A P lattice by lattice, down
/// to lattices of two cells; from there on algebraic_hierarchy. Coefficients that jump inside of a lattice are not looked at. `a`
/// is of at least four cells a side.
[[nodiscard]] bool has_levels(LatticeHalfCds const& a);  ///< those preconditions
[[nodiscard]] bool has_levels(std::int64_t cells);       ///< the same of lattices with so many cells a side
template <class V>
[[nodiscard]] MultigridHierarchy<V> lattice_hierarchy(LatticeHalfCds const& a, PreconditionerOptions const& options);

/// Makes those levels on lattices that several ranks share, each whole on one of them (RankMatrix::lattices), and that of an
/// operator of higher order above them. Where every cell of a box is a lattice, the levels of the box, of order 1, follow below it.
/// P^T A P is made lattice by lattice, and needs no other rank. A level is half_cds on the rank's lattices (LatticeHalfCds::share).
/// From options.multigrid.gathered_size on every rank has all lattices of the coarser levels, and
/// goes on as one rank. Collective.
[[nodiscard]] bool has_levels(
    SharedLattices const* lattices);  ///< whether there are some: four cells a side or more, or cells of a box
template <class V>
[[nodiscard]] MultigridHierarchy<V> lattice_hierarchy(RankMatrix const& a, PreconditionerOptions const& options);

/// Makes levels for any matrix by smoothed aggregation (Vanek, Mandel, Brezina 1996). Unknowns that couple strongly (at least a
/// quarter of the strongest coupling of one of the two) form aggregates, of one unknown and its neighbours. P interpolates
/// constants on them, smoothed by one damped Jacobi step with the matrix without its weak couplings. The setup runs on the
/// context's backend (kernels/aggregation.hpp), that of small levels on the host. `a` in the backend's memory is the finest matrix
/// where its entries are in V; else a copy of csr() is. `csr` is called unless `a` is in CSR, or on a device has Matrix::as_csr,
/// and with options.nested_spaces, whose levels come first, by P^T A P.
template <class V>
[[nodiscard]] MultigridHierarchy<V> algebraic_hierarchy(Matrix const* a, CsrProvider const& csr, Context& context,
                                                        PreconditionerOptions const& options);
/// Makes them for a matrix whose rows several ranks share. As far as there are levels of `nested`, these come first, by P^T A P.
/// Where the last of them has_levels as a box, box_hierarchy makes the rest. Aggregates lie across ranks. Products of matrices
/// run on the backend, the rest of the setup on the host. From options.multigrid.gathered_size on every rank has all of the coarser
/// levels. Above order 2 the smoother takes more steps on the finest level, as in order_hierarchy. Collective.
template <class V>
[[nodiscard]] MultigridHierarchy<V> algebraic_hierarchy(RankMatrix const& a, RankNestedSpaces nested,
                                                        PreconditionerOptions const& options);

/// Makes the levels of a matrix of trilinear elements. lattice_hierarchy makes them where it is on lattices that have levels,
/// box_hierarchy where it is on a box, and else algebraic_hierarchy. The result keeps the matrix where it needs it.
template <class V>
[[nodiscard]] MultigridHierarchy<V> hierarchy_of_order_one(std::unique_ptr<Matrix> matrix,
                                                           std::array<std::int64_t, 3> const& box_nodes,
                                                           PreconditionerOptions const& options);

/// Elements of order p lowered to order 1 on the same cells, in one step: P evaluates trilinear functions at the nodes; from there
/// on the hierarchy of order_one.matrix, which was assembled again. Above order 2 the smoother takes more steps there, one for
/// every order: it has more to do alone. `a` has the unknowns of order_one.lattices. Precondition: that
/// is of order 2 or more.
template <class V>
[[nodiscard]] MultigridHierarchy<V> order_hierarchy(Matrix const& a, OrderOne order_one, PreconditionerOptions const& options);

}  // namespace poisson
