#include "assembly/mesh/coarse_mesh.hpp"

#include "assembly/dealii/divide.hpp"
#include "assembly/dealii/lattice_share.hpp"
#include "assembly/dealii/mesh.hpp"
#include "assembly/mesh/lattice_mesh.hpp"
#include "assembly/space/space.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"

#include <deal.II/base/exceptions.h>
#include <deal.II/base/multithread_info.h>

namespace poisson::assembly {
namespace {

class MeshOfDealII final : public CoarseMesh {
public:
  MeshOfDealII(MeshSpec const& spec, ExpressionNames const& names)
      : spec_(spec),
        mesh_(make_coarse_mesh(spec, names)),
        counts_(count(mesh_)),
        has_lattices_(LatticeTopology(mesh_).obstacle.empty()) {}

  [[nodiscard]] MeshCounts const& counts() const override { return counts_; }
  [[nodiscard]] bool has_lattices() const override { return has_lattices_; }
  [[nodiscard]] Space space(ReferenceElement const& element) override {
    try {
      if (spec_.refinements > 0 || mesh_.curved_cells) {
        LatticeMesh lattices(mesh_, spec_.refinements, element.nodes);
        if (lattices.obstacle.empty() && counts_.shape_order > element.order) {
          LatticeMesh const shape(mesh_, spec_.refinements, gauss_lobatto_points(counts_.shape_order + 1));
          return {std::move(lattices), element, &shape};
        }
        if (lattices.obstacle.empty())
          return {std::move(lattices), element};
        if (mesh_.curved_cells)
          throw InputError("problem.mesh.file", "the curved cells of this mesh cannot be kept: " + lattices.obstacle);
      }
      refine_mesh(mesh_, spec_);
      return {mesh_, element};
    } catch (dealii::ExceptionBase const& error) {
      throw InputError("problem.mesh", std::string("deal.II cannot place the nodes of elements of order ") +
                                           std::to_string(element.order) + " on this mesh: " + error.what());
    }
  }

  [[nodiscard]] std::optional<ShareOfLattices> share(ReferenceElement const& element, int rank, int ranks) override {
    if (spec_.refinements < Space::fewest_refinements_of_lattices || counts_.shape_order > element.order)
      return std::nullopt;
    try {
      return share_of_lattices(mesh_, spec_.refinements, element, rank, ranks);
    } catch (dealii::ExceptionBase const&) {
      return std::nullopt;
    }
  }

private:
  MeshSpec spec_;
  Mesh mesh_;
  MeshCounts counts_;
  bool has_lattices_;
};

std::unique_ptr<CoarseMesh> open_mesh(MeshSpec const& spec, ExpressionNames const& names) {
  dealii::MultithreadInfo::set_thread_limit(static_cast<unsigned>(thread_count()));
  return std::make_unique<MeshOfDealII>(spec, names);
}

}  // namespace
}  // namespace poisson::assembly

poisson::assembly::DealiiFunctions const* poisson_dealii() {
  static constexpr poisson::assembly::DealiiFunctions functions{poisson::assembly::open_mesh, poisson::assembly::divide_by_metis};
  return &functions;
}
