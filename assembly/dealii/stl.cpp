#include "assembly/dealii/raw.hpp"
#include "assembly/dealii/sources.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deal.II/base/point.h>
#include <deal.II/base/tensor.h>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// Closed surfaces of triangles (.stl), whose inside becomes voxels.
namespace poisson::assembly {
namespace {

static_assert(std::endian::native == std::endian::little);  // as the files are

struct Surface {
  std::vector<dealii::Point<3>> points;
  std::vector<std::array<int, 3>> triangles;  ///< counterclockwise, seen from outside
};

using Corners = std::array<dealii::Point<3>, 3>;

void expect(MeshText& text, std::string_view word) {
  std::string_view const found = text.word();
  if (upper(found) != upper(word))
    text.fail(found.empty() ? "the file ends where '" + std::string(word) + "' should be"
                            : in_quotes(found) + " stands where '" + std::string(word) + "' should be");
}

std::vector<Corners> read_text_form(MeshText& text) {
  std::vector<Corners> triangles;
  std::string_view rest;
  while (!text.peek_word().empty()) {
    expect(text, "solid");
    text.next_line(rest);  // its name
    while (upper(text.peek_word()) != "ENDSOLID") {
      expect(text, "facet");
      expect(text, "normal");
      for (int d = 0; d < 3; ++d)  // the order of the corners tells it better
        if (text.word().empty())
          text.fail("the file ends within the normal of a triangle");
      expect(text, "outer");
      expect(text, "loop");
      Corners& corners = triangles.emplace_back();
      for (dealii::Point<3>& corner : corners) {
        expect(text, "vertex");
        for (unsigned d = 0; d < 3; ++d)
          corner[d] = text.real("a coordinate");
      }
      expect(text, "endloop");
      expect(text, "endfacet");
    }
    expect(text, "endsolid");
    text.next_line(rest);
  }
  return triangles;
}

constexpr std::size_t binary_head = 84, binary_triangle = 50;

/// The number of triangles that a binary file announces.
std::size_t announced(std::string_view content) {
  std::uint32_t n = 0;
  std::memcpy(&n, content.data() + binary_head - sizeof n, sizeof n);
  return n;
}

std::vector<Corners> read_binary_form(MeshText const& text) {
  std::string_view const content = text.content();
  std::vector<Corners> triangles(announced(content));
  for (std::size_t t = 0; t < triangles.size(); ++t) {
    std::array<float, 9> numbers{};  // behind the normal
    std::memcpy(numbers.data(), content.data() + binary_head + t * binary_triangle + 12, sizeof numbers);
    for (unsigned v = 0; v < 3; ++v)
      for (unsigned d = 0; d < 3; ++d)
        triangles[t][v][d] = text.finite(static_cast<double>(numbers[3 * v + d]), "a coordinate");
  }
  return triangles;
}

std::vector<Corners> read_triangles(MeshText& text) {
  std::string_view const content = text.content();
  bool const has_head = content.size() >= binary_head;
  // A binary file may begin with "solid", but no text has just this length.
  if (has_head && content.size() == binary_head + binary_triangle * announced(content)) {
    text.has_no_lines();
    return read_binary_form(text);
  }
  if (upper(text.peek_word()) == "SOLID" && content.find('\0') == std::string_view::npos)
    return read_text_form(text);
  text.has_no_lines();
  text.fail(has_head ? "this is no STL file: as a binary one it announces " + std::to_string(announced(content)) +
                           " triangles, which take " + std::to_string(binary_head + binary_triangle * announced(content)) +
                           " bytes, and it has " + std::to_string(content.size())
                     : "this is no STL file: it neither begins with 'solid', nor is it long enough for a binary one");
}

/// Corners at the same place become one point. Triangles without area stay out; their number is returned.
std::int64_t join_corners(std::vector<Corners> const& triangles, Surface& surface) {
  std::vector<dealii::Point<3>> all;
  all.reserve(3 * triangles.size());
  for (Corners const& corners : triangles)
    for (dealii::Point<3> const& corner : corners)
      all.emplace_back(corner[0] + 0., corner[1] + 0., corner[2] + 0.);  // there is one zero only
  auto const key = [&](int i) {
    dealii::Point<3> const& p = all[static_cast<std::size_t>(i)];
    return std::array{p[0], p[1], p[2]};
  };
  std::vector<int> order(all.size()), point_of(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || key(order[i]) != key(order[i - 1]))
      surface.points.push_back(all[static_cast<std::size_t>(order[i])]);
    point_of[static_cast<std::size_t>(order[i])] = static_cast<int>(surface.points.size()) - 1;
  }
  std::int64_t flat = 0;
  for (std::size_t t = 0; t < triangles.size(); ++t) {
    std::array<int, 3> const corners{point_of[3 * t], point_of[3 * t + 1], point_of[3 * t + 2]};
    if (corners[0] == corners[1] || corners[1] == corners[2] || corners[2] == corners[0])
      ++flat;
    else
      surface.triangles.push_back(corners);
  }
  return flat;
}

/// At every edge as many triangles go one way as the other, if the surface is closed and has an outside.
void require_closed(MeshText const& text, Surface const& surface) {
  struct Edge {
    int low, high, way;
  };
  std::vector<Edge> edges;
  edges.reserve(3 * surface.triangles.size());
  for (auto const& corners : surface.triangles)
    for (std::size_t e = 0; e < 3; ++e) {
      int const a = corners[e], b = corners[(e + 1) % 3];
      edges.push_back({std::min(a, b), std::max(a, b), a < b ? 1 : -1});
    }
  std::sort(edges.begin(), edges.end(),
            [](Edge const& a, Edge const& b) { return std::tie(a.low, a.high) < std::tie(b.low, b.high); });
  std::int64_t free = 0, crossed = 0;
  std::string first_free, first_crossed;
  for (std::size_t i = 0, end = 0; i < edges.size(); i = end) {
    int sum = 0;
    for (end = i; end < edges.size() && edges[end].low == edges[i].low && edges[end].high == edges[i].high; ++end)
      sum += edges[end].way;
    bool const is_free = (end - i) % 2 == 1;
    if (!is_free && sum == 0)
      continue;
    std::string const place = "from " + to_text(surface.points[static_cast<std::size_t>(edges[i].low)]) + " to " +
                              to_text(surface.points[static_cast<std::size_t>(edges[i].high)]);
    if ((is_free ? free : crossed)++ == 0)
      (is_free ? first_free : first_crossed) = place;
  }
  if (free > 0)
    text.fail("the surface is not closed: it has " + std::to_string(free) + (free == 1 ? " free edge" : " free edges") +
              ", the first " + first_free + ". Repair it where it was made: only a closed surface has an inside");
  if (crossed > 0)
    text.fail("the triangles do not agree where outside is: at " + std::to_string(crossed) + (crossed == 1 ? " edge" : " edges") +
              " neighbours are turned against each other, first " + first_crossed);
}

void measure(Surface const& surface, SurfaceFit& fit) {
  dealii::Point<3> const origin = surface.points.front();  // near, so that little cancels
  for (auto const& corners : surface.triangles) {
    std::array<dealii::Tensor<1, 3>, 3> p;
    for (std::size_t v = 0; v < 3; ++v)
      p[v] = surface.points[static_cast<std::size_t>(corners[v])] - origin;
    fit.area += dealii::cross_product_3d(p[1] - p[0], p[2] - p[0]).norm() / 2;
    fit.volume += p[0] * dealii::cross_product_3d(p[1], p[2]) / 6;
  }
  fit.volume = std::abs(fit.volume);  // of a surface that is inside out
}

struct Grid {
  std::array<std::size_t, 3> cells{};
  std::array<double, 3> origin{}, edge{};
  /// How many of the cells in a direction have their centre below x.
  [[nodiscard]] std::size_t below(std::size_t d, double x) const {
    double const n = std::ceil((x - origin[d]) / edge[d] - 0.5);
    return static_cast<std::size_t>(std::clamp(n, 0., static_cast<double>(cells[d])));
  }
};

Grid grid_around(MeshText const& text, MeshSpec const& spec, Surface const& surface) {
  Grid grid;
  double all = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (dealii::Point<3> const& p : surface.points) {
      low = std::min(low, p[static_cast<unsigned>(d)]);
      high = std::max(high, p[static_cast<unsigned>(d)]);
    }
    if (!(high > low))
      text.fail("the surface is flat: it has no inside");
    double n = static_cast<double>(spec.cells[d]);
    grid.origin[d] = low;
    grid.edge[d] = (high - low) / n;
    if (spec.size) {  // cubes, as many beyond one end as beyond the other
      grid.edge[d] = *spec.size / spec.scale;
      n = std::max(1., std::ceil((high - low) / grid.edge[d] * (1 - 1e-12)));
      grid.origin[d] = (low + high) / 2 - n / 2 * grid.edge[d];
    }
    all *= n;
    if (!(all <= std::numeric_limits<int>::max()))
      text.fail("the box around the surface has more than 2147483647 voxels; make problem.mesh.size larger");
    grid.cells[d] = static_cast<std::size_t>(n);
  }
  check_memory(static_cast<std::int64_t>(all) * 9, "the voxels of the surface");  // turns, inside, numbers of nodes
  return grid;
}

/// Places seen from above, in units of 2^-24 of a voxel: whole numbers, so that sides of lines are exact. No corner moves by more
/// than half a unit, and the surface stays closed.
constexpr std::int64_t units_of_voxel = std::int64_t{1} << 24;
using PlaceAbove = std::array<std::int64_t, 2>;
__extension__ using Wide = __int128;

/// Twice the area of the triangle u, v, p, where it goes counterclockwise; else the negative of that.
Wide area_of(PlaceAbove const& u, PlaceAbove const& v, PlaceAbove const& p) {
  return Wide{v[0] - u[0]} * (p[1] - u[1]) - Wide{v[1] - u[1]} * (p[0] - u[0]);
}

/// On which side of the line from u to v p lies: 1 to the left, -1 to the right. A point on the line counts as moved by an
/// infinitely small distance to the right, and by a smaller one upwards, so that one of two neighbours has it. 0 where u and v are
/// one place.
int side_of(PlaceAbove const& u, PlaceAbove const& v, PlaceAbove const& p) {
  if (Wide const area = area_of(u, v, p); area != 0)
    return area > 0 ? 1 : -1;
  if (v[1] != u[1])
    return v[1] < u[1] ? 1 : -1;
  return v[0] == u[0] ? 0 : v[0] > u[0] ? 1 : -1;
}

/// The voxels whose centre the surface winds around, x fastest. A line upwards from the centre goes out of it once more than in.
std::vector<char> inside_of(Surface const& surface, Grid const& grid) {
  auto const [nx, ny, nz] = grid.cells;
  std::vector<PlaceAbove> places;
  places.reserve(surface.points.size());
  for (dealii::Point<3> const& point : surface.points) {
    PlaceAbove& place = places.emplace_back();
    for (unsigned d = 0; d < 2; ++d)
      place[d] = std::llround((point[d] - grid.origin[d]) / grid.edge[d] * static_cast<double>(units_of_voxel));
  }
  // turns[(z * ny + y) * nx + x]: how often the surface is crossed upwards less downwards, between the centres z - 1 and z.
  std::vector<int> turns(nx * ny * (nz + 1));
  for (auto const& corners : surface.triangles) {
    std::array<PlaceAbove, 3> at{};
    std::array<double, 3> height{};
    for (std::size_t v = 0; v < 3; ++v) {
      at[v] = places[static_cast<std::size_t>(corners[v])];
      height[v] = surface.points[static_cast<std::size_t>(corners[v])][2];
    }
    std::array<std::int64_t, 2> first{}, last{};  // the columns that it can meet
    for (std::size_t d = 0; d < 2; ++d) {
      auto const [low, high] = std::minmax({at[0][d], at[1][d], at[2][d]});
      first[d] = std::max<std::int64_t>(0, low / units_of_voxel - 1);
      last[d] = std::min<std::int64_t>(static_cast<std::int64_t>(grid.cells[d]) - 1, high / units_of_voxel + 1);
    }
    for (std::int64_t j = first[1]; j <= last[1]; ++j)
      for (std::int64_t i = first[0]; i <= last[0]; ++i) {
        PlaceAbove const p{i * units_of_voxel + units_of_voxel / 2, j * units_of_voxel + units_of_voxel / 2};
        int const side = side_of(at[0], at[1], p);
        if (side == 0 || side_of(at[1], at[2], p) != side || side_of(at[2], at[0], p) != side)
          continue;
        // Where the line meets the plane: the corners weigh as much as the areas opposite to them.
        double sum = 0, z = 0;
        for (std::size_t v = 0; v < 3; ++v) {
          auto const area = static_cast<double>(area_of(at[(v + 1) % 3], at[(v + 2) % 3], p));
          sum += area;
          z += area * height[v];
        }
        z = sum != 0 ? z / sum : height[0];
        auto const column = static_cast<std::size_t>(j) * nx + static_cast<std::size_t>(i);
        turns[grid.below(2, z) * nx * ny + column] += side;
      }
  }
  std::vector<char> inside(nx * ny * nz);
  for (std::size_t k = nz; k-- > 0;)
    for (std::size_t i = 0; i < nx * ny; ++i) {
      int const above = turns[(k + 1) * nx * ny + i];
      inside[k * nx * ny + i] = above != 0 ? 1 : 0;
      turns[k * nx * ny + i] += above;
    }
  return inside;
}

/// The voxels as a mesh, and its volume and area.
void add_voxels(Grid const& grid, std::vector<char> const& inside, RawMesh& mesh, SurfaceFit& fit) {
  auto const [nx, ny, nz] = grid.cells;
  std::vector<int> number((nx + 1) * (ny + 1) * (nz + 1), -1);
  std::array<double, 3> const& h = grid.edge;
  auto const is_inside = [&](std::size_t i, std::size_t j, std::size_t k) {  // beyond the box counts from below 0 to the largest
    return i < nx && j < ny && k < nz && inside[(k * ny + j) * nx + i] != 0;
  };
  std::array<std::int64_t, 3> faces{};
  for (std::size_t k = 0; k < nz; ++k)
    for (std::size_t j = 0; j < ny; ++j)
      for (std::size_t i = 0; i < nx; ++i) {
        if (!is_inside(i, j, k))
          continue;
        RawMesh::Cell cell;
        for (std::size_t v = 0; v < 8; ++v) {
          std::array<std::size_t, 3> const node{i + (v & 1), j + (v >> 1 & 1), k + (v >> 2)};
          int& found = number[(node[2] * (ny + 1) + node[1]) * (nx + 1) + node[0]];
          if (found < 0) {
            found = static_cast<int>(mesh.vertices.size());
            mesh.vertices.emplace_back(grid.origin[0] + static_cast<double>(node[0]) * h[0],
                                       grid.origin[1] + static_cast<double>(node[1]) * h[1],
                                       grid.origin[2] + static_cast<double>(node[2]) * h[2]);
          }
          cell.vertices[v] = found;
        }
        mesh.cells.push_back(cell);
        faces[0] += static_cast<int>(!is_inside(i - 1, j, k)) + static_cast<int>(!is_inside(i + 1, j, k));
        faces[1] += static_cast<int>(!is_inside(i, j - 1, k)) + static_cast<int>(!is_inside(i, j + 1, k));
        faces[2] += static_cast<int>(!is_inside(i, j, k - 1)) + static_cast<int>(!is_inside(i, j, k + 1));
      }
  fit.voxels_volume = static_cast<double>(mesh.cells.size()) * h[0] * h[1] * h[2];
  for (std::size_t d = 0; d < 3; ++d)
    fit.voxels_area += static_cast<double>(faces[d]) * h[(d + 1) % 3] * h[(d + 2) % 3];
}

}  // namespace

RawMesh read_stl(MeshText& text, MeshSpec const& spec) {
  Surface surface;
  RawMesh mesh;
  std::int64_t const flat = join_corners(read_triangles(text), surface);
  if (flat > 0)
    mesh.notes.push_back(std::to_string(flat) + (flat == 1 ? " triangle has" : " triangles have") +
                         " a corner twice, and were passed over");
  if (surface.triangles.empty())
    text.fail("the file has no triangles");
  require_closed(text, surface);
  SurfaceFit fit;
  measure(surface, fit);
  Grid const grid = grid_around(text, spec, surface);
  add_voxels(grid, inside_of(surface, grid), mesh, fit);
  if (mesh.cells.empty())
    text.fail("no voxel has its centre inside of the surface; make problem.mesh.size smaller, or problem.mesh.cells larger");
  mesh.surface = fit;
  return mesh;
}

}  // namespace poisson::assembly
