#pragma once

#include "assembly/space/lattice_numbering.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "gpu/core/csr_matrix.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace poisson::assembly {

/// A space inside a larger one, by what one rank of several has of both. The unknowns of the smaller space are some of the larger
/// one's. See RankNestedSpace, from which this differs in how it names unknowns of others.
struct NestedSpace {
  struct Unknown {
    int rank;
    std::int32_t number;  ///< in the whole mesh
  };
  std::vector<std::int32_t> unknowns;  ///< own ones of the smaller space, by their places among the rank's own unknowns; ascending
  /// A row for each own unknown of the larger space; columns are own unknowns of the smaller one, then `others`, in any order.
  CsrMatrix p;
  std::vector<Unknown> others;
};

/// The spaces inside that of Q_p elements on a mesh of lattices: Q_1 on the same cells where p > 1, then Q_1 on cells twice as
/// large, down to lattices of two cells a side. P interpolates in reference coordinates of the lattice, as on one process
/// (preconditioners/lattice_hierarchy).
class NestedLattices {
public:
  /// `own`: the rank's unknowns, ascending, and `places`: the piece and the node in it where each lies. `nodes`: the element's, of
  /// [0, 1].
  NestedLattices(std::shared_ptr<LatticePieces const> pieces, int rank, std::vector<std::int32_t> own,
                 std::vector<LatticeNode> places, std::vector<double> nodes)
      : pieces_(std::move(pieces)), rank_(rank), own_(std::move(own)), places_(std::move(places)), nodes_(std::move(nodes)) {}
  /// Makes the nested spaces. Every rank has the same number of them.
  [[nodiscard]] std::vector<NestedSpace> make() const;

private:
  std::shared_ptr<LatticePieces const> pieces_;
  int rank_;
  std::vector<std::int32_t> own_;
  std::vector<LatticeNode> places_;
  std::vector<double> nodes_;
};

}  // namespace poisson::assembly
