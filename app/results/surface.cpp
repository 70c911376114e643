#include "app/results/output.hpp"

#include "gpu/core/communicator.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace poisson::app {

namespace {

/// Nodes that several ranks have are one; its flux is the mean over the faces around it, of all ranks.
assembly::BoundarySurface gathered_surface(Solution const& solution) {
  Domain const& mesh = solution.mesh;
  auto const u_at = [&](std::span<std::int32_t const> unknowns) { return solution.u.at(unknowns); };
  if (mesh.is_whole())
    return mesh.own->surface(u_at);
  assembly::BoundarySurface mine;
  solution.team.together([&] {
    if (!mesh.own)
      return;
    mine = mesh.own->surface(u_at);
    for (std::int64_t& unknown : mine.unknowns)
      unknown = mesh.unknown_of_whole(unknown);
  });
  Communicator& ranks = solution.team.communicator();
  auto const points = gather_on_first(ranks, mine.points), u = gather_on_first(ranks, mine.u),
             flux = gather_on_first(ranks, mine.flux), outward = gather_on_first(ranks, mine.outward_flux);
  auto const unknowns = gather_on_first(ranks, mine.unknowns), quads = gather_on_first(ranks, mine.quads);
  auto const around = gather_on_first(ranks, mine.faces_around), boundary = gather_on_first(ranks, mine.boundary),
             material = gather_on_first(ranks, mine.material);
  assembly::BoundarySurface all;
  for (auto const& list : unknowns)
    all.unknowns.insert(all.unknowns.end(), list.begin(), list.end());
  std::sort(all.unknowns.begin(), all.unknowns.end());
  all.unknowns.erase(std::unique(all.unknowns.begin(), all.unknowns.end()), all.unknowns.end());
  std::size_t const n = all.unknowns.size();
  all.points.resize(3 * n);
  all.u.resize(n);
  all.flux.resize(3 * n);
  all.faces_around.resize(n);
  for (std::size_t rank = 0; rank < unknowns.size(); ++rank) {
    auto const place = [&](std::int64_t node) {
      return std::lower_bound(all.unknowns.begin(), all.unknowns.end(), unknowns[rank][static_cast<std::size_t>(node)]) -
             all.unknowns.begin();
    };
    for (std::size_t i = 0; i < unknowns[rank].size(); ++i) {
      auto const at = static_cast<std::size_t>(place(static_cast<std::int64_t>(i)));
      all.u[at] = u[rank][i];
      all.faces_around[at] += around[rank][i];
      for (std::size_t d = 0; d < 3; ++d) {
        all.points[3 * at + d] = points[rank][3 * i + d];
        all.flux[3 * at + d] += around[rank][i] * flux[rank][3 * i + d];
      }
    }
    for (std::int64_t const node : quads[rank])
      all.quads.push_back(place(node));
    all.boundary.insert(all.boundary.end(), boundary[rank].begin(), boundary[rank].end());
    all.material.insert(all.material.end(), material[rank].begin(), material[rank].end());
    all.outward_flux.insert(all.outward_flux.end(), outward[rank].begin(), outward[rank].end());
  }
  for (std::size_t i = 0; i < all.flux.size(); ++i)
    all.flux[i] /= all.faces_around[i / 3];
  return all;
}

class Surface final : public Output {
public:
  explicit Surface(RunConfig const& config) : config_(config) {}

  [[nodiscard]] std::vector<std::string> names() const override { return {"surface.vtp"}; }
  [[nodiscard]] std::int64_t bytes(OutputSizes const& sizes) const override {
    // The cells at the boundary: their unknowns, and where these are; u there. Marks of all cells and unknowns.
    std::int64_t const p = config_.problem.order, p1 = p + 1, p2 = p * p;
    std::int64_t const near = (4 * p1 * p1 * p1 + 16 + 36 * p1 * p2) * sizes.faces_of_all + (sizes.cells + sizes.unknowns) / 8;
    // BoundarySurface: the unknowns of all faces, then by node x, u, flux, its number and faces around it, by quadrangle nodes, ids
    // and flux.
    std::int64_t const of_face = 4 * p1 * p1 + p2 * (24 + 8 + 24 + 8 + 4) + p2 * (32 + 4 + 4 + 8);
    std::int64_t const surface =
        of_face * sizes.faces_of_all +
        output::writer_bytes(output::VtkFormat::vtu, config_.output.vtk.compression, 32 * p2 * sizes.faces_of_all);
    return std::max(near + surface, sizes.gathered(surface));  // those cells are gone when it is gathered
  }

  void make(Solution const& solution) override {
    if (solution.finite)
      surface_ = gathered_surface(solution);
  }

  void write(Solution const& solution, RunLog&, ResultsDirectory& directory) override {
    if (!surface_)
      return;
    assembly::BoundarySurface const& s = *surface_;
    directory.try_write("surface.vtp", [&](std::filesystem::path const& path) {
      output::write_vtp(path, s.points, s.quads, 4, {{config_.output.name, 1, s.u, {}}, {"flux", 3, s.flux, {}}},
                        {{"boundary", 1, {}, s.boundary}, {"material", 1, {}, s.material}, {"outward_flux", 1, s.outward_flux, {}}},
                        config_.output.vtk, whole_arrays(config_, solution.mesh.whole));
    });
  }

private:
  RunConfig const& config_;
  std::optional<assembly::BoundarySurface> surface_;
};

}  // namespace

std::unique_ptr<Output> make_surface(RunConfig const& config) {
  return std::make_unique<Surface>(config);
}

}  // namespace poisson::app
