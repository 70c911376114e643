#include "app/run/rank_points.hpp"

#include "gpu/core/communicator.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace poisson::app {

namespace {

using Point = std::array<double, 3>;

}  // namespace

RankPoints::RankPoints(RankMesh const& mesh, RankTeam& team, std::vector<Point> points) : mesh_(mesh), team_(team) {
  team.together([&] {
    if (mesh.own)
      points_ = mesh.own->locate(points);
    else
      for (Point const& x : points)
        points_.push_back({x, {}, -1});
    inside_.reserve(points_.size());
    for (auto const& point : points_)
      inside_.push_back(point.cell >= 0);
  });
  inside_ = any_in_lists(team.communicator(), inside_);
}

std::vector<assembly::PointValues> RankPoints::values(std::span<double const> u) const {
  struct Found {
    std::int64_t point, cell;  ///< the cell: in the whole mesh
    assembly::PointValues values;
  };
  std::vector<Found> found;
  team_.together([&] {
    std::vector<assembly::LocatedPoint> here;
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (points_[i].cell >= 0) {
        here.push_back(points_[i]);
        found.push_back({static_cast<std::int64_t>(i), mesh_.cell_of_whole(points_[i].cell), {}});
      }
    if (here.empty())
      return;
    auto const values = mesh_.own->values_at(u, here);
    for (std::size_t i = 0; i < found.size(); ++i)
      found[i].values = values[i];
  });
  auto const all = gather_on_first(team_.communicator(), found);
  if (!team_.is_first())
    return {};
  std::vector<assembly::PointValues> values(points_.size());
  std::vector<std::int64_t> cells(points_.size(), std::numeric_limits<std::int64_t>::max());
  for (auto const& of_rank : all)
    for (Found const& f : of_rank)
      if (auto const i = static_cast<std::size_t>(f.point); f.cell < cells[i]) {
        cells[i] = f.cell;
        values[i] = f.values;
      }
  return values;
}

assembly::Extent extent_of(RankMesh const& mesh, RankTeam& team) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  assembly::Extent extent{{infinity, infinity, infinity}, {-infinity, -infinity, -infinity}};
  team.together([&] {
    if (mesh.own)
      extent = mesh.own->extent();
  });
  for (assembly::Extent const& part : gather(team.communicator(), extent))
    for (std::size_t d = 0; d < 3; ++d) {
      extent.low[d] = std::min(extent.low[d], part.low[d]);
      extent.high[d] = std::max(extent.high[d], part.high[d]);
    }
  return extent;
}

}  // namespace poisson::app
