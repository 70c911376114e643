#include "app/results/output.hpp"

#include "app/io/console.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "output/vtk/level_set.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <utility>

namespace poisson::app {

namespace {

/// Triangles with the values of the solution on them.
struct CutTriangles {
  struct Point {
    std::array<std::int64_t, 2> between{};  ///< nodes, in the whole mesh
    std::array<double, 3> x{};
    double u = 0, exact = 0, error = 0;
  };
  struct Triangle {
    std::array<std::int64_t, 3> points{};
    std::int64_t cell = 0;  ///< in the whole mesh
    std::array<double, 3> flux{};
    int material = 0;
  };
  std::vector<Point> points;
  std::vector<Triangle> triangles;
};

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
  explicit Cutter(Solution const& solution) : solution_(solution), mesh_(solution.cells()), fields_(solution.fields()) {}

  [[nodiscard]] output::Mesh const& mesh() const { return mesh_; }
  [[nodiscard]] Communicator& ranks() const { return solution_.team.communicator(); }

  /// Adds the triangles where a function of the nodes has this value. Returns whether there are any.
  bool add(output::ValuesOfNodes const& values, double level, CutTriangles& to) const {
    CutTriangles found;
    bool any = false;
    for (bool const equal_is_larger : {true, false}) {
      solution_.team.together([&] {
        found = triangles_of(output::level_set(mesh_, values, level, equal_is_larger,
                                               [&](std::int64_t node) { return solution_.mesh.unknown_of_whole(node); }));
      });
      any = any_of_ranks(ranks(), !found.triangles.empty());
      if (any)
        break;
    }
    if (!solution_.mesh.is_whole())
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
    std::vector<std::int64_t> nodes;
    for (output::LevelSet::Point const& point : set.points) {
      CutTriangles::Point& to = result.points.emplace_back();
      to.between = {solution_.mesh.unknown_of_whole(point.first), solution_.mesh.unknown_of_whole(point.second)};
      auto const a = mesh_.point(point.first), b = mesh_.point(point.second);
      for (std::size_t d = 0; d < 3; ++d)
        to.x[d] = point.interpolate(a[d], b[d]);
      nodes.insert(nodes.end(), {point.first, point.second});
    }
    std::vector<double> values(nodes.size());
    auto const interpolate = [&](assembly::FieldValues<double> const& field, double CutTriangles::Point::*value) {
      if (field.empty())
        return;
      field.read_at(nodes, 1, values.data());
      for (std::size_t i = 0; i < set.points.size(); ++i)
        result.points[i].*value = set.points[i].interpolate(values[2 * i], values[2 * i + 1]);
    };
    interpolate(fields_.u, &CutTriangles::Point::u);
    interpolate(fields_.exact, &CutTriangles::Point::exact);
    interpolate(fields_.error, &CutTriangles::Point::error);

    std::vector<std::int64_t> places;  // of the cells' fluxes
    for (std::int64_t const cell : set.cells)
      places.push_back(3 * cell);
    std::vector<double> flux(3 * set.cells.size());
    fields_.flux.read_at(places, 3, flux.data());
    std::vector<int> material(set.cells.size(), 0);
    if (!fields_.material.empty())
      fields_.material.read_at(set.cells, 1, material.data());
    for (std::size_t i = 0; i < set.cells.size(); ++i)
      result.triangles.push_back({{set.triangles[3 * i], set.triangles[3 * i + 1], set.triangles[3 * i + 2]},
                                  solution_.mesh.cell_of_whole(set.cells[i]),
                                  {flux[3 * i], flux[3 * i + 1], flux[3 * i + 2]},
                                  material[i]});
    return result;
  }

  Solution const& solution_;
  output::Mesh mesh_;
  assembly::SolutionFields const& fields_;
};

/// Throws InputError where all corners of the mesh's bounding box are on one side of the plane.
void require_in_mesh(SliceSpec const& slice, std::string const& key, assembly::Extent const& extent) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (unsigned corner = 0; corner < 8; ++corner) {
    double distance = 0;
    for (unsigned d = 0; d < 3; ++d)
      distance += slice.normal[d] * (((corner >> d & 1U) != 0 ? extent.high[d] : extent.low[d]) - slice.origin[d]);
    low = std::min(low, distance);
    high = std::max(high, distance);
  }
  if (low > 0 || high < 0)
    throw InputError(key, "the plane does not meet the mesh, which extends from " + point_text(extent.low) + " to " +
                              point_text(extent.high));
}

class Cuts final : public Output {
public:
  explicit Cuts(RunConfig const& config) : config_(config) {}

  [[nodiscard]] std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (SliceSpec const& slice : config_.output.slices)
      names.push_back("slice_" + slice.name + ".vtp");
    for (ContourSpec const& contour : config_.output.contours)
      names.push_back("contour_" + contour.name + ".vtp");
    return names;
  }

  [[nodiscard]] bool takes_fields() const override { return true; }

  void require_in_mesh(assembly::Extent const& extent) const override {
    for (std::size_t i = 0; i < config_.output.slices.size(); ++i)
      app::require_in_mesh(config_.output.slices[i], "output.slices[" + std::to_string(i) + "]", extent);
  }

  void make(Solution const& solution) override {
    if (!solution.finite)
      return;
    Cutter const cutter(solution);
    for (SliceSpec const& slice : config_.output.slices) {
      auto const distance = [&](std::span<std::int64_t const> nodes, double* out) {
        std::vector<double> points(3 * nodes.size());
        cutter.mesh().points_of(nodes, points.data());
        for (std::size_t i = 0; i < nodes.size(); ++i) {
          double const* const x = &points[3 * i];
          out[i] = slice.normal[0] * (x[0] - slice.origin[0]) + slice.normal[1] * (x[1] - slice.origin[1]) +
                   slice.normal[2] * (x[2] - slice.origin[2]);
        }
      };
      if (!cutter.add(distance, 0, triangles_.emplace_back()))
        notes_.push_back("the slice " + slice.name + " meets no cell");
    }
    if (config_.output.contours.empty())
      return;
    assembly::SolutionFields const& fields = solution.fields();
    auto const [low, high] = ends_of(solution, cutter.ranks());
    for (ContourSpec const& contour : config_.output.contours) {
      CutTriangles& triangles = triangles_.emplace_back();
      for (double const level : contour.values)
        if (!cutter.add([&](std::span<std::int64_t const> nodes, double* out) { fields.u.pick(nodes, out); }, level, triangles))
          notes_.push_back("contour " + contour.name + ": u is nowhere " + number_text(level, 6) + "; it is from " +
                           number_text(low, 6) + " to " + number_text(high, 6));
    }
  }

  void write(Solution const& solution, RunLog& log, ResultsDirectory& directory) override {
    for (std::string const& note : notes_)
      log.warn(note);
    auto const files = names();
    for (std::size_t i = 0; i < triangles_.size(); ++i)
      write_file(files[i], triangles_[i], solution, directory);
  }

private:
  /// The least and the largest u; asks for all of it only where they are not known.
  static std::array<double, 2> ends_of(Solution const& solution, Communicator& ranks) {
    assembly::FieldValues<double> const& u = solution.fields().u;
    if (solution.ends && u.fill())
      return *solution.ends;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double low = infinity, high = -infinity;
    for (double const value : u) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
    return {-max_over(ranks, -low), max_over(ranks, high)};
  }
  void write_file(std::string const& file, CutTriangles const& cut, Solution const& solution, ResultsDirectory& directory) const {
    std::vector<double> x, u, exact, error, flux;
    std::vector<std::int64_t> corners;
    std::vector<int> material;
    for (CutTriangles::Point const& point : cut.points) {
      x.insert(x.end(), point.x.begin(), point.x.end());
      u.push_back(point.u);
      exact.push_back(point.exact);
      error.push_back(point.error);
    }
    for (CutTriangles::Triangle const& triangle : cut.triangles) {
      corners.insert(corners.end(), triangle.points.begin(), triangle.points.end());
      flux.insert(flux.end(), triangle.flux.begin(), triangle.flux.end());
      material.push_back(triangle.material);
    }
    std::vector<output::Field> of_points{{config_.output.name, 1, u, {}}};
    if (config_.problem.exact)
      of_points.insert(of_points.end(), {{"exact", 1, exact, {}}, {"error", 1, error, {}}});
    directory.try_write(file, [&](std::filesystem::path const& path) {
      output::write_vtp(path, x, corners, 3, of_points, {{"flux", 3, flux, {}}, {"material", 1, {}, material}}, config_.output.vtk,
                        whole_arrays(config_, solution.mesh.whole));
    });
  }

  RunConfig const& config_;
  std::vector<CutTriangles> triangles_;  ///< by file, where u is finite
  std::vector<std::string> notes_;       ///< on what is empty
};

}  // namespace

std::unique_ptr<Output> make_cuts(RunConfig const& config) {
  return std::make_unique<Cuts>(config);
}

}  // namespace poisson::app
