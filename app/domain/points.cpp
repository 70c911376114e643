#include "app/domain/points.hpp"

#include "app/analysis/svd_report.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace poisson::app {

namespace {

using Point = std::array<double, 3>;

/// What a rank knows at a point.
template <class Values>
struct FoundAt {
  std::int64_t point, cell;  ///< the cell: in the whole mesh
  Values values;
};

/// On the first rank `values` of every point become those in the cell with the lowest number that any rank has found; where none
/// has, they stay.
template <class Values>
void gather_lowest(Team& team, std::vector<FoundAt<Values>> found, std::span<Values> values) {
  auto const all = joined_on_first(team.communicator(), std::move(found));
  team.together([&] {
    std::vector<std::int64_t> cells(values.size(), std::numeric_limits<std::int64_t>::max());
    for (auto const& f : all)
      if (auto const i = static_cast<std::size_t>(f.point); f.cell < cells[i]) {
        cells[i] = f.cell;
        values[i] = f.values;
      }
  });
}

}  // namespace

DomainPoints::DomainPoints(Domain const& mesh, Team& team, std::vector<Point> points) : mesh_(mesh), team_(team) {
  find(points);
  take_sides();
}

void DomainPoints::find(std::vector<Point> const& points) {
  team_.together([&] {
    if (mesh_.own)
      points_ = mesh_.own->locate(points);
    else
      for (Point const& x : points)
        points_.push_back({x, {}, -1, 0, {}});
    inside_.reserve(points_.size());
    for (auto const& point : points_)
      inside_.push_back(point.cell >= 0);
  });
  inside_ = any_in_lists(team_.communicator(), inside_);
  // A point is where it was moved least: not at all, if it is in the part of some rank. Few are moved.
  struct Moved {
    std::int64_t point;
    double distance;
    Point to;
  };
  std::vector<Moved> here;
  std::vector<bool> held(points_.size());
  for (std::size_t i = 0; i < points_.size(); ++i) {
    held[i] = points_[i].cell >= 0 && points_[i].moved == 0;
    if (points_[i].moved > 0)
      here.push_back({static_cast<std::int64_t>(i), points_[i].moved, points_[i].x});
  }
  moved_.assign(points_.size(), 0);
  auto const all = gather_lists(team_.communicator(), here);
  if (all.empty())
    return;
  held = any_in_lists(team_.communicator(), held);
  std::vector<Point> to(points_.size());
  for (Moved const& of : all)
    if (auto const i = static_cast<std::size_t>(of.point); !held[i] && (moved_[i] == 0 || of.distance < moved_[i])) {
      moved_[i] = of.distance;
      to[i] = of.to;
    }
  // Where they are now, cells of several ranks may hold them.
  team_.together([&] {
    std::vector<std::size_t> moved;
    std::vector<Point> places;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (points_[i].moved > moved_[i])
        points_[i] = {points_[i].x, {}, -1, 0, {}};
      if (moved_[i] > 0) {
        moved.push_back(i);
        places.push_back(to[i]);
      }
    }
    if (!mesh_.own)
      return;
    auto found = mesh_.own->locate(places);
    for (std::size_t k = 0; k < moved.size(); ++k)
      if (found[k].cell >= 0 && found[k].moved == 0)
        points_[moved[k]] = std::move(found[k]);
  });
}

void DomainPoints::take_sides() {
  std::vector<assembly::PointSide> sides;
  team_.together([&] {
    if (mesh_.own)
      sides = mesh_.own->sides_of(points_);
    for (assembly::PointSide& side : sides)
      side.cell = mesh_.cell_of_whole(side.cell);
  });
  sides_ = assembly::choose_sides(gather_lists(team_.communicator(), std::move(sides)));
  for (assembly::ChosenSide const& chosen : sides_) {
    assembly::LocatedPoint& point = points_[static_cast<std::size_t>(chosen.side.point)];
    std::vector<std::int64_t> cells = point.others;  // own ones that hold it
    if (point.cell >= 0)
      cells.push_back(point.cell);
    auto const own =
        std::find_if(cells.begin(), cells.end(), [&](std::int64_t cell) { return mesh_.cell_of_whole(cell) == chosen.side.cell; });
    if (own == cells.end())
      point.cell = -1;  // it is in a cell of another rank
    else
      mesh_.own->move_to_cell(point, *own);
  }
}

std::vector<assembly::PointValues> DomainPoints::values(SolutionValues const& u) const {
  std::vector<FoundAt<assembly::PointValues>> found;
  team_.together([&] {
    std::vector<assembly::LocatedPoint> here;
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (points_[i].cell >= 0) {
        here.push_back(points_[i]);
        found.push_back({static_cast<std::int64_t>(i), mesh_.cell_of_whole(points_[i].cell), {}});
      }
    if (here.empty())
      return;
    auto const values = mesh_.own->values_at([&](std::span<std::int32_t const> unknowns) { return u.at(unknowns); }, here);
    for (std::size_t i = 0; i < found.size(); ++i)
      found[i].values = values[i];
  });
  std::vector<assembly::PointValues> values(team_.is_first() ? points_.size() : 0);
  gather_lowest<assembly::PointValues>(team_, std::move(found), values);
  return values;
}

HostVector<double> sample_of(Team& team, SolutionValues const& values, assembly::Lattice const& lattice) {
  Domain const& mesh = values.mesh();
  std::span<double const> const u = values.host_of_own_cells();
  if (mesh.is_whole())
    return mesh.own->sample(u, lattice);
  auto const n = static_cast<std::size_t>(lattice.size());
  HostVector<double> own, all;
  HostVector<std::int64_t> cells;
  team.together([&] {
    if (interrupt_requested())
      throw Interrupted();
    require_host_memory(24 * lattice.size(), "the sampled field");
    if (mesh.own)
      own = mesh.own->sample(u, lattice, &cells);
    if (team.is_first())
      all.resize(n, std::numeric_limits<double>::quiet_NaN());
  });
  constexpr std::size_t at_a_time = 1 << 18;  // points: some megabytes
  for (std::size_t first = 0; first < n; first += at_a_time) {
    std::vector<FoundAt<double>> found;
    team.together([&] {
      for (std::size_t i = first; i < std::min(first + at_a_time, cells.size()); ++i)
        if (cells[i] >= 0)
          found.push_back({static_cast<std::int64_t>(i - first), mesh.cell_of_whole(cells[i]), own[i]});
    });
    std::span<double> const part = std::span(all).subspan(std::min(first, all.size()));
    gather_lowest<double>(team, std::move(found), part.first(std::min(at_a_time, part.size())));
  }
  return all;
}

assembly::Extent extent_of(Domain const& mesh, Team& team) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  assembly::Extent extent{{infinity, infinity, infinity}, {-infinity, -infinity, -infinity}};
  team.together([&] {
    if (mesh.own)
      extent = mesh.own->extent();
  });
  return combined(
      team.communicator(), extent, [](assembly::Extent& whole, assembly::Extent const& part) { whole.add(part); },
      Communicator::Order::of_ranks);
}

}  // namespace poisson::app
