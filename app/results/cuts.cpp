#include "app/results/cuts.hpp"

#include "app/io/console.hpp"
#include "app/results/solution_fields.hpp"
#include "output/vtk/level_set.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>

namespace poisson::app {

namespace {

/// Joins on the first rank what several parts found. Points at the same place between the same nodes become one, and triangles are
/// ordered by their cells.
CutTriangles merged(Communicator& ranks, CutTriangles const& mine) {
  auto const points = gather_on_first(ranks, mine.points);
  auto const triangles = gather_on_first(ranks, mine.triangles);
  using Point = CutTriangles::Point;
  auto const before = [](Point const& a, Point const& b) { return a.between < b.between; };
  CutTriangles result;
  for (auto const& part : points)
    result.points.insert(result.points.end(), part.begin(), part.end());
  std::stable_sort(result.points.begin(), result.points.end(), before);
  result.points.erase(std::unique(result.points.begin(), result.points.end(),
                                  [](Point const& a, Point const& b) { return a.between == b.between; }),
                      result.points.end());
  for (std::size_t rank = 0; rank < triangles.size(); ++rank)
    for (CutTriangles::Triangle triangle : triangles[rank]) {
      for (std::int64_t& point : triangle.points)
        point =
            std::lower_bound(result.points.begin(), result.points.end(), points[rank][static_cast<std::size_t>(point)], before) -
            result.points.begin();
      result.triangles.push_back(triangle);
    }
  std::stable_sort(result.triangles.begin(), result.triangles.end(), [](auto const& a, auto const& b) { return a.cell < b.cell; });
  return result;
}

class Cutter {
public:
  Cutter(output::Mesh const& mesh, assembly::SolutionFields const& fields, RankPart const& part)
      : mesh_(mesh), fields_(fields), part_(part) {}

  [[nodiscard]] Communicator& ranks() const { return part_.team.communicator(); }

  /// Adds the triangles where a function of the nodes has this value. Returns whether there are any.
  bool add(std::function<double(std::int64_t)> const& value, double level, CutTriangles& to) const {
    CutTriangles found;
    bool any = false;
    for (bool const equal_is_larger : {true, false}) {
      part_.team.together([&] { found = triangles_of(output::level_set(mesh_, value, level, equal_is_larger)); });
      any = any_of_ranks(ranks(), !found.triangles.empty());
      if (any)
        break;
    }
    if (!part_.mesh.is_whole())
      found = merged(ranks(), found);
    auto const first = static_cast<std::int64_t>(to.points.size());
    to.points.insert(to.points.end(), found.points.begin(), found.points.end());
    for (CutTriangles::Triangle triangle : found.triangles) {
      for (std::int64_t& point : triangle.points)
        point += first;
      to.triangles.push_back(triangle);
    }
    return any;
  }

private:
  [[nodiscard]] CutTriangles triangles_of(output::LevelSet const& set) const {
    CutTriangles result;
    for (output::LevelSet::Point const& point : set.points) {
      CutTriangles::Point& to = result.points.emplace_back();
      to.between = {part_.mesh.unknown_of_whole(point.first), part_.mesh.unknown_of_whole(point.second)};
      auto const a = mesh_.point(point.first), b = mesh_.point(point.second);
      for (std::size_t d = 0; d < 3; ++d)
        to.x[d] = point.interpolate(a[d], b[d]);
      auto const value = [&](double& of_point, auto const& from) {
        if (!from.empty())
          of_point = point.interpolate(from[static_cast<std::size_t>(point.first)], from[static_cast<std::size_t>(point.second)]);
      };
      value(to.u, fields_.u);
      value(to.exact, fields_.exact);
      value(to.error, fields_.error);
    }
    for (std::size_t i = 0; i < set.cells.size(); ++i) {
      CutTriangles::Triangle& to = result.triangles.emplace_back();
      auto const cell = static_cast<std::size_t>(set.cells[i]);
      to.points = {set.triangles[3 * i], set.triangles[3 * i + 1], set.triangles[3 * i + 2]};
      to.cell = part_.mesh.cell_of_whole(set.cells[i]);
      to.flux = {fields_.flux[3 * cell], fields_.flux[3 * cell + 1], fields_.flux[3 * cell + 2]};
      to.material = fields_.material.empty() ? 0 : fields_.material[cell];
    }
    return result;
  }

  output::Mesh const& mesh_;
  assembly::SolutionFields const& fields_;
  RankPart part_;
};

}  // namespace

Cuts cut_solution(output::Mesh const& mesh, assembly::SolutionFields const& fields, RunConfig const& config, RankPart const& part) {
  Cutter const cutter(mesh, fields, part);
  Cuts cuts;
  cuts.has_exact = config.problem.exact.has_value();
  for (SliceSpec const& slice : config.output.slices) {
    Cuts::File& file = cuts.files.emplace_back();
    file.name = "slice_" + slice.name + ".vtp";
    auto const distance = [&](std::int64_t node) {
      auto const x = mesh.point(node);
      return slice.normal[0] * (x[0] - slice.origin[0]) + slice.normal[1] * (x[1] - slice.origin[1]) +
             slice.normal[2] * (x[2] - slice.origin[2]);
    };
    if (!cutter.add(distance, 0, file.triangles))
      cuts.notes.push_back("the slice " + slice.name + " meets no cell");
  }
  if (config.output.contours.empty())
    return cuts;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double low = infinity, high = -infinity;
  for (double const u : fields.u) {
    low = std::min(low, u);
    high = std::max(high, u);
  }
  low = -max_over(cutter.ranks(), -low);
  high = max_over(cutter.ranks(), high);
  for (ContourSpec const& contour : config.output.contours) {
    Cuts::File& file = cuts.files.emplace_back();
    file.name = "contour_" + contour.name + ".vtp";
    for (double const level : contour.values)
      if (!cutter.add([&](std::int64_t node) { return fields.u[static_cast<std::size_t>(node)]; }, level, file.triangles))
        cuts.notes.push_back("contour " + contour.name + ": u is nowhere " + number_text(level, 6) + "; it is from " +
                             number_text(low, 6) + " to " + number_text(high, 6));
  }
  return cuts;
}

void write_cuts(Cuts const& cuts, RunConfig const& config, assembly::MeshSummary const& mesh, ResultsDirectory& directory) {
  for (Cuts::File const& file : cuts.files) {
    std::vector<double> x, u, exact, error, flux;
    std::vector<std::int64_t> corners;
    std::vector<int> material;
    for (CutTriangles::Point const& point : file.triangles.points) {
      x.insert(x.end(), point.x.begin(), point.x.end());
      u.push_back(point.u);
      exact.push_back(point.exact);
      error.push_back(point.error);
    }
    for (CutTriangles::Triangle const& triangle : file.triangles.triangles) {
      corners.insert(corners.end(), triangle.points.begin(), triangle.points.end());
      flux.insert(flux.end(), triangle.flux.begin(), triangle.flux.end());
      material.push_back(triangle.material);
    }
    std::vector<output::Field> of_points{{config.output.name, 1, u, {}}};
    if (cuts.has_exact)
      of_points.insert(of_points.end(), {{"exact", 1, exact, {}}, {"error", 1, error, {}}});
    directory.try_write(file.name, [&](std::filesystem::path const& path) {
      output::write_vtp(path, x, corners, 3, of_points, {{"flux", 3, flux, {}}, {"material", 1, {}, material}}, config.output.vtk,
                        whole_arrays(config, mesh));
    });
  }
}

}  // namespace poisson::app
