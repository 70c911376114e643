#include "assembly/system/point_loads.hpp"

#include "assembly/system/problem_data.hpp"
#include "assembly/system/sampling.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

Point3 point_between(Point3 const& from, Point3 const& to, double t) {
  Point3 x{};
  for (std::size_t d = 0; d < 3; ++d)
    x[d] = (1 - t) * from[d] + t * to[d];
  return x;
}

double distance(Point3 const& a, Point3 const& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

class LoadsOfPoints {
public:
  LoadsOfPoints(Space const& space, ReferenceElement const& element) : space_(space), element_(element), dofs_(space.n_local) {}

  /// `at`: where the point is wanted.
  void add(LocatedPoint const& point, Point3 const& at, PointLoads::Place place, double value, std::size_t source) {
    result.moved.resize(std::max(result.moved.size(), source + 1));
    result.moved[source] = std::max(result.moved[source], distance(at, point.x));
    result.integrals.sum += value;
    result.integrals.absolute += std::abs(value);
    place.found = point.cell >= 0;
    place.at = point.x;
    if (space_.n_cells_of_whole > 0)
      result.places.push_back(place);
    else if (!place.found)
      refuse_place(place, nearest_node(space_, place.at));
    if (!place.found)
      return;
    auto const values = tabulate(element_.nodes, {point.reference}).values;
    space_.dofs(point.cell, dofs_.data());
    for (std::size_t i = 0; i < dofs_.size(); ++i)
      if (double const load = value * values[i]; load != 0)
        result.loads.push_back({dofs_[i], static_cast<std::int32_t>(source), load, static_cast<std::int32_t>(point.cell)});
  }

  PointLoads result;

private:
  Space const& space_;
  ReferenceElement const& element_;
  std::vector<std::int32_t> dofs_;
};

}  // namespace

void refuse_place(PointLoads::Place const& place, Point3 const& nearest) {
  std::string const number = std::to_string(place.source);
  std::string const where = to_text(place.at) + " is outside the mesh; the nearest node is " +
                            to_text(distance(place.at, nearest)) + " away, at " + to_text(nearest);
  if (place.of_line)
    throw InputError("problem.line_sources[" + number + "]", "the line leaves the mesh: its point " + where);
  throw InputError("problem.point_sources[" + number + "].at", "the point " + where);
}

PointLoads point_loads(Space const& space, ReferenceElement const& element, ProblemSpec const& spec, SharedPlaces const& shared) {
  LoadsOfPoints loads(space, element);
  std::vector<Point3> places;
  std::size_t before = 0;
  auto const located_places = [&] {
    std::vector<Point3> at = places;
    for (std::size_t i = 0; i < at.size(); ++i)
      if (auto const moved = shared.moved.find(before + i); moved != shared.moved.end())
        at[i] = moved->second;
    before += at.size();
    // Whether a point is near the mesh, and where, all parts find together.
    return locate(space, element, at, space.n_cells_of_whole > 0 ? 0 : near_mesh);
  };
  for (PointSource const& source : spec.point_sources)
    places.push_back(source.at);
  auto const located = located_places();
  for (std::size_t i = 0; i < located.size(); ++i)
    loads.add(located[i], places[i], {i, false, false, {}}, spec.point_sources[i].value, i);

  // Along a line in a brick a basis function is a polynomial of degree 3 p; elsewhere it is smooth.
  std::vector<double> gauss, weights;
  gauss_rule(3 * space.order / 2 + 3, gauss, weights);
  for (std::size_t i = 0; i < spec.line_sources.size(); ++i) {
    LineSource const& line = spec.line_sources[i];
    std::string const key = "problem.line_sources[" + std::to_string(i) + "]";
    double const length = distance(line.from, line.to);
    if (!(length > 0))
      throw InputError(key, "the line has no length: both of its ends are at " + to_text(line.from));
    Function const density(line.value, key + ".value", spec.names());
    std::vector<double> const cuts = shared.cuts.empty() ? cell_crossings(space, element, line.from, line.to) : shared.cuts[i];
    places.clear();
    std::vector<double> amounts;
    for (std::size_t piece = 0; piece + 1 < cuts.size(); ++piece)
      for (std::size_t q = 0; q < gauss.size(); ++q) {
        double const size = cuts[piece + 1] - cuts[piece];
        places.push_back(point_between(line.from, line.to, cuts[piece] + gauss[q] * size));
        amounts.push_back(weights[q] * size * length * density.finite(places.back(), "the line source"));
      }
    auto const points = located_places();
    for (std::size_t k = 0; k < points.size(); ++k)
      loads.add(points[k], places[k], {i, true, false, {}}, amounts[k], spec.point_sources.size() + i);
  }
  return std::move(loads.result);
}

}  // namespace poisson::assembly
