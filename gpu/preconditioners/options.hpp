#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/names.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/elements/order_one.hpp"
#include "gpu/preconditioners/setup_steps.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace poisson {

/// `automatic` takes what preconditioners/choice.hpp says; only `solve` knows it.
enum class PreconditionerKind { automatic, none, jacobi, ic0, ilu0, multigrid, direct };
template <>
struct Names<PreconditionerKind> {
  static constexpr std::array<Named<PreconditionerKind>, 7> values{{{PreconditionerKind::automatic, "auto"},
                                                                    {PreconditionerKind::none, "none"},
                                                                    {PreconditionerKind::jacobi, "jacobi"},
                                                                    {PreconditionerKind::ic0, "ic0"},
                                                                    {PreconditionerKind::ilu0, "ilu0"},
                                                                    {PreconditionerKind::multigrid, "multigrid"},
                                                                    {PreconditionerKind::direct, "direct"}}};
};

// preconditioners/registry.hpp has the answers to these:
[[nodiscard]] bool needs_symmetry(PreconditionerKind kind);  ///< it is for symmetric positive definite matrices only
[[nodiscard]] bool needs_csr(PreconditionerKind kind);  ///< it is made from the entries of the matrix, not from products with it
[[nodiscard]] bool uses_ordering(
    PreconditionerKind kind);  ///< it is an incomplete factorisation, whose order of elimination is an option

/// The order in which ic0 and ilu0 eliminate rows. `multicolor` (preconditioners/ordering.hpp) makes many rows independent of each
/// other, at the price of some more iterations. `automatic` is multicolor on a device where the natural order has many levels (rows
/// that depend on each other one after another), and on several ranks where they would exchange many times; else natural.
enum class Ordering { automatic, natural, multicolor };
template <>
struct Names<Ordering> {
  static constexpr std::array<Named<Ordering>, 3> values{
      {{Ordering::automatic, "auto"}, {Ordering::natural, "natural"}, {Ordering::multicolor, "multicolor"}}};
};

/// Returns the assembled matrix in host memory; called only when a preconditioner is made from it.
using CsrProvider = std::function<std::shared_ptr<CsrMatrix const>()>;

/// On several ranks: own rows, and their numbers in the whole matrix.
struct NumberedRows {
  RankRows rows;
  std::vector<std::int64_t> numbers{};  ///< empty: the rows of a rank follow those of the rank before
};
/// Returns own rows of the assembled matrix where several ranks share it; called only when a preconditioner is made from them.
/// Collective.
using NumberedRowsProvider = std::function<NumberedRows()>;

/// Makes what multigrid goes on with; called only when multigrid is.
using OrderOneProvider = std::function<OrderOne()>;

/// On several ranks: a space inside a larger one, by what this rank has of both. The unknowns of the smaller space are some of the
/// larger one's, on the same ranks and in the same order.
struct RankNestedSpace {
  /// An unknown of the smaller space on another rank.
  struct Place {
    int rank;
    std::int32_t row;
  };
  std::vector<std::int32_t> rows;  ///< in the larger space, of own unknowns of the smaller one; ascending
  /// P: a row for each own unknown of the larger space; columns are own unknowns of the smaller one, then `others`, in any order,
  /// and entries in the same place are added.
  CsrMatrix p;
  std::vector<Place> others;
};
/// Spaces one inside another, from that of the matrix on: elements of order 1 on the same cells, then on cells twice as large, and
/// so on.
struct RankNestedSpaces {
  int order = 1;  ///< of the elements of the matrix
  std::vector<RankNestedSpace> spaces;
  std::shared_ptr<RankBlocks const> blocks{};  ///< where the last one's unknowns are nodes of a box: who has which, in their order
};
using RankNestedProvider = std::function<RankNestedSpaces()>;

enum class MultigridCycle { v, w, f };
template <>
struct Names<MultigridCycle> {
  static constexpr std::array<Named<MultigridCycle>, 3> values{
      {{MultigridCycle::v, "v"}, {MultigridCycle::w, "w"}, {MultigridCycle::f, "f"}}};
};
enum class MultigridSmoother { chebyshev, jacobi };
template <>
struct Names<MultigridSmoother> {
  static constexpr std::array<Named<MultigridSmoother>, 2> values{
      {{MultigridSmoother::chebyshev, "chebyshev"}, {MultigridSmoother::jacobi, "jacobi"}}};
};
/// MultigridPrecision is that of matrices and vectors inside a cycle. `half` is `single` but for the matrices of large levels that
/// have entries by rows: these are in half on a device (HalfSlices).
enum class MultigridPrecision { half, single, double_ };
template <>
struct Names<MultigridPrecision> {
  static constexpr std::array<Named<MultigridPrecision>, 3> values{
      {{MultigridPrecision::half, "half"}, {MultigridPrecision::single, "single"}, {MultigridPrecision::double_, "double"}}};
};

struct MultigridOptions {
  MultigridCycle cycle = MultigridCycle::v;
  MultigridSmoother smoother = MultigridSmoother::chebyshev;
  int degree = 2;  ///< of the smoother: products before and after the correction
  MultigridPrecision precision = MultigridPrecision::single;
  int levels = 30;                       ///< at most, the finest included
  std::int64_t coarse_size = 400;        ///< unknowns from which on no coarser level is made; the coarsest matrix is inverted
  std::int64_t gathered_size = 1 << 18;  ///< of several ranks: unknowns from which on every rank has the whole level
};

/// A level of multigrid.
struct MultigridLevelSummary {
  std::int64_t rows, nnz;
  std::int64_t bytes;  ///< of its matrix, transfer and vectors
  double largest;      ///< eigenvalue of D^-1 A that the smoother covers
};

struct PreconditionerOptions {
  PreconditionerKind kind = PreconditionerKind::none;
  double shift = 0;                         ///< of ic0 and ilu0: see IncompleteLu
  Ordering ordering = Ordering::automatic;  ///< of the rows in ic0 and ilu0
  bool positive = true;                     ///< M must be positive definite
  CsrProvider csr{};
  /// box_nodes are the nodes per direction of the box that a matrix of trilinear elements is on; they are 0 for other matrices.
  /// Unknowns are numbered x fastest.
  std::array<std::int64_t, 3> box_nodes{};
  std::shared_ptr<RankBlocks const> blocks{};  ///< the same where several ranks share the matrix: who has which nodes
  OrderOneProvider order_one{};                ///< empty where there is no such problem
  NumberedRowsProvider rows_of_rank{};         ///< in place of `csr` where several ranks share the matrix
  RankNestedProvider nested_spaces{};  ///< levels that go before aggregation; on all ranks that share the matrix, or on none
  MultigridOptions multigrid{};
  bool constant_null_space = false;  ///< the null space of the matrix is spanned by the constant vector
  /// `direct` is to be made where it takes a second or so, and multigrid by aggregation where its coarsest matrix is small:
  /// `automatic` has others.
  bool only_if_cheap = false;
  SetupSteps* steps = nullptr;  ///< tells how long the steps of the setup of multigrid take, where it is not null

  void done(Context& context, std::string_view step) const {
    if (steps != nullptr)
      steps->done(context, step);
  }
};

}  // namespace poisson
