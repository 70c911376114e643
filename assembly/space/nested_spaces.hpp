#pragma once

#include "assembly/space/lattice_numbering.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "gpu/core/csr_matrix.hpp"

#include <cstdint>
#include <functional>
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
  std::vector<std::int32_t> unknowns;  ///< own ones of the smaller space, by their rows; ascending
  /// A row for each own unknown of the larger space; columns are own unknowns of the smaller one, then `others`, in any order.
  CsrMatrix p;
  std::vector<Unknown> others;
};

/// The spaces inside that of Q_p elements on a mesh of lattices: Q_1 on the same cells where p > 1, then Q_1 on cells twice as
/// large, down to lattices of two cells a side. P interpolates in reference coordinates of the lattice, as on one process
/// (preconditioners/lattice_hierarchy).
class NestedLattices {
public:
  /// `place_of`: of a row its node in an own piece, which are counted. `nodes`: the element's, of [0, 1].
  NestedLattices(std::shared_ptr<OwnPieces const> own, std::function<LatticeNode(std::int64_t row)> place_of,
                 std::vector<double> nodes)
      : own_(std::move(own)), place_of_(std::move(place_of)), nodes_(std::move(nodes)) {}
  /// Makes the nested spaces. Every rank has the same number of them.
  [[nodiscard]] std::vector<NestedSpace> make() const;

private:
  std::shared_ptr<OwnPieces const> own_;
  std::function<LatticeNode(std::int64_t)> place_of_;
  std::vector<double> nodes_;
};

}  // namespace poisson::assembly
