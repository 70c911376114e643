#include "assembly/mesh/coarse_mesh.hpp"

#include "assembly/dealii/divide.hpp"
#include "assembly/dealii/drawing.hpp"
#include "assembly/dealii/lattice_share.hpp"
#include "assembly/dealii/mesh.hpp"
#include "assembly/mesh/lattice_mesh.hpp"
#include "assembly/space/space.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"

#include <deal.II/base/exceptions.h>
#include <deal.II/base/multithread_info.h>

#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

class MeshOfDealII final : public CoarseMesh {
public:
  MeshOfDealII(MeshSpec const& spec, ExpressionNames const& names) : spec_(spec) {
    if (spec.local != nullptr && spec.local->kept != nullptr)
      mesh_ = std::move(spec.local->kept->mesh);
    if (mesh_ == nullptr || mesh_->local_cycles > spec.local->cycles.size())
      mesh_ = std::make_shared<Mesh>(make_coarse_mesh(spec, names));
    if (spec.local != nullptr) {
      refine_mesh(*mesh_, spec);
      counts_ = count(*mesh_);
      return;
    }
    triangulate(*mesh_);
    counts_ = count(*mesh_);
    LatticeTopology const topology(*mesh_);
    has_lattices_ = topology.obstacle.empty();
    can_leave_nodes_ = spec.refinements >= Space::fewest_refinements_of_lattices && LatticeMesh::is_made_easily(*mesh_, topology);
  }

  [[nodiscard]] MeshCounts const& counts() const override { return counts_; }
  [[nodiscard]] bool has_lattices() const override { return has_lattices_; }
  [[nodiscard]] bool can_leave_nodes() const override { return can_leave_nodes_; }
  [[nodiscard]] Space space(ReferenceElement const& element, bool leave_nodes, FillLattices const& fill) override {
    try {
      if (spec_.local != nullptr) {
        Space space(*mesh_, element);
        if (spec_.local->kept != nullptr)
          spec_.local->kept->mesh = std::move(mesh_);
        return space;
      }
      if (leave_nodes && can_leave_nodes_ && counts_.shape_order <= element.order)
        if (auto found = without_nodes(element, fill))
          return std::move(*found);
      if (spec_.refinements > 0 || mesh_->curved_cells) {
        LatticeMesh lattices(*mesh_, spec_.refinements, element.nodes);
        if (lattices.obstacle.empty() && counts_.shape_order > element.order) {
          LatticeMesh const shape(*mesh_, spec_.refinements, gauss_lobatto_points(counts_.shape_order + 1));
          return {std::move(lattices), element, &shape};
        }
        if (lattices.obstacle.empty())
          return {std::move(lattices), element};
        if (mesh_->curved_cells)
          throw InputError("problem.mesh.file", "the curved cells of this mesh cannot be kept: " + lattices.obstacle);
      }
      refine_mesh(*mesh_, spec_);
      return {*mesh_, element};
    } catch (dealii::ExceptionBase const& error) {
      throw InputError("problem.mesh", std::string("deal.II cannot place the nodes of elements of order ") +
                                           std::to_string(element.order) + " on this mesh: " + error.what());
    }
  }

  [[nodiscard]] std::optional<ShareOfLattices> share(ReferenceElement const& element, int rank, int ranks, bool leave_nodes,
                                                     FillLattices const& fill) override {
    if (spec_.refinements < Space::fewest_refinements_of_lattices || counts_.shape_order > element.order)
      return std::nullopt;
    try {
      return share_of_lattices(*mesh_, spec_.refinements, element, rank, ranks, leave_nodes && can_leave_nodes_, fill);
    } catch (dealii::ExceptionBase const&) {
      return std::nullopt;
    }
  }

private:
  /// Nothing where deal.II cannot place some nodes.
  [[nodiscard]] std::optional<Space> without_nodes(ReferenceElement const& element, FillLattices const& fill) const {
    auto const topology = std::make_shared<LatticeTopology const>(*mesh_);
    LatticeMesh const shape(*mesh_, topology, spec_.refinements, element.nodes, {});
    if (!shape.obstacle.empty())
      return std::nullopt;
    std::vector<std::int32_t> all(static_cast<std::size_t>(topology->n_lattices()));
    std::iota(all.begin(), all.end(), 0);
    try {
      return Space(shape, element, nullptr, maker_of_faces(*mesh_, shape, element.nodes, all), fill);
    } catch (InputError const&) {
      return std::nullopt;
    }
  }

  MeshSpec spec_;
  std::shared_ptr<Mesh> mesh_;
  MeshCounts counts_;
  bool has_lattices_ = false, can_leave_nodes_ = false;
};

std::unique_ptr<CoarseMesh> open_mesh(MeshSpec const& spec, ExpressionNames const& names) {
  dealii::MultithreadInfo::set_thread_limit(static_cast<unsigned>(thread_count()));
  return std::make_unique<MeshOfDealII>(spec, names);
}

}  // namespace
}  // namespace poisson::assembly

poisson::assembly::DealiiFunctions const* poisson_dealii() {
  static constexpr poisson::assembly::DealiiFunctions functions{poisson::assembly::open_mesh, poisson::assembly::divide_by_metis,
                                                                poisson::assembly::draw};
  return &functions;
}
