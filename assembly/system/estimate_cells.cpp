#include "assembly/system/estimate_cells.hpp"

#include <algorithm>
#include <cassert>

namespace poisson::assembly {

std::vector<Point3> points_on_face(ReferenceElement const& rule, int face, int quarter) {
  std::vector<Point3> list = rule.face_points[static_cast<std::size_t>(face)];
  if (quarter < whole_face)
    for (Point3& point : list)
      for (int i = 0; i < 2; ++i) {
        double& t = point[face_direction(face, i)];
        t = (t + (quarter >> i & 1)) / 2;
      }
  return list;
}

namespace {

Counterpart counterpart_of(ReferenceElement const& rule, Meeting const& meeting) {
  auto const [c, at] = meeting.corner;
  Counterpart result;
  result.quarter = meeting.is_of_whole ? whole_face : static_cast<int>(at);
  double const size = meeting.is_of_whole ? 1 : 0.5;
  auto const on_second = [&](std::array<double, 2> const& t) {
    std::array<double, 2> place{};
    for (std::size_t i = 0; i < 2; ++i) {
      double const away = (c >> i & 1U) != 0 ? 1 - t[i] : t[i];  // from c
      std::size_t const axis = i == 0 ? meeting.first_axis : 1 - meeting.first_axis;
      place[axis] = (at >> axis & 1U) != 0 ? 1 - size * away : size * away;
    }
    return place;
  };
  for (std::size_t i = 0; i < 4; ++i)
    result.corners[i] = on_second({static_cast<double>(i & 1U), static_cast<double>(i >> 1U)});
  std::vector<Point3> const to = points_on_face(rule, meeting.faces[1], result.quarter);
  for (Point3 const& point : rule.face_points[static_cast<std::size_t>(meeting.faces[0])]) {
    auto const place = on_second({point[face_direction(meeting.faces[0], 0)], point[face_direction(meeting.faces[0], 1)]});
    int nearest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t q = 0; q < to.size(); ++q) {
      double const x = to[q][face_direction(meeting.faces[1], 0)] - place[0],
                   y = to[q][face_direction(meeting.faces[1], 1)] - place[1];
      if (x * x + y * y < least) {
        least = x * x + y * y;
        nearest = static_cast<int>(q);
      }
    }
    result.point.push_back(nearest);
  }
  return result;
}

}  // namespace

Counterparts::Counterparts(ReferenceElement const& rule) {
  all_.reserve(std::size_t{6 * 6} * 4 * 4 * 4);
  for (int first = 0; first < 6; ++first)
    for (int second = 0; second < 6; ++second)
      for (std::size_t c = 0; c < 4; ++c)
        for (std::size_t at = 0; at < 4; ++at)
          for (std::size_t axis = 0; axis < 2; ++axis)
            for (bool const is_of_whole : {false, true})
              all_.push_back(counterpart_of(rule, {{first, second}, {c, at}, axis, is_of_whole}));
}

Counterpart const& FaceMatcher::operator()(std::size_t number) {
  FaceOfTwoCells const& face = space_.local.faces[number];
  auto const* const images = space_.local.images_of(number);
  auto const a = images != nullptr ? *images : corners(face.cells[0], face.faces[0], first_),
             b = corners(face.cells[1], face.faces[1], second_);
  bool const same_level =
      space_.local.levels[static_cast<std::size_t>(face.cells[0])] == space_.local.levels[static_cast<std::size_t>(face.cells[1])];
  auto const in_second = [&](std::size_t corner) {
    return static_cast<std::size_t>(std::find(b.begin(), b.end(), a[corner]) - b.begin());
  };
  std::size_t c = 0;
  while (c < 4 && in_second(c) == 4)
    ++c;
  assert(c < 4);
  std::size_t const at = in_second(c);
  std::size_t first_axis = 0;
  if (same_level) {
    first_axis = in_second(c ^ 1U) == (at ^ 1U) ? 0 : 1;
  } else {  // the neighbour of c is in the middle of an edge
    Point3 const x = space_.point(a[c ^ 1U]);
    auto const distance = [&](std::size_t neighbour) {
      Point3 const p = space_.point(b[at]), q = space_.point(b[neighbour]);
      double sum = 0;
      for (std::size_t d = 0; d < 3; ++d)
        sum += std::pow(x[d] - (p[d] + q[d]) / 2, 2);
      return sum;
    };
    first_axis = distance(at ^ 1U) <= distance(at ^ 2U) ? 0 : 1;
  }
  return all_.of({{face.faces[0], face.faces[1]}, {c, at}, first_axis, same_level});
}

std::array<std::int32_t, 4> face_corners(Space const& space, std::int64_t cell, int face, std::vector<std::int32_t>& dofs) {
  space.dofs(cell, dofs.data());
  int const n = space.order + 1, d = face / 2;
  std::array<int, 3> const stride{1, n, n * n};
  std::array<std::int32_t, 4> result{};
  for (std::size_t corner = 0; corner < 4; ++corner)
    result[corner] =
        dofs[static_cast<std::size_t>(space.order * (face % 2 * stride[static_cast<std::size_t>(d)] +
                                                     static_cast<int>(corner & 1U) * stride[face_direction(face, 0)] +
                                                     static_cast<int>(corner >> 1U) * stride[face_direction(face, 1)]))];
  return result;
}

}  // namespace poisson::assembly
