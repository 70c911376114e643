#include "output/picture/surface.hpp"

#include "gpu/core/memory.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>
#include <omp.h>
#include <stdexcept>
#include <string>
#include <utility>

namespace poisson::output {

std::vector<double> nodes_of_a_cell(Mesh const& mesh) {
  int const p = mesh.order();
  std::vector<double> nodes;
  RectilinearGrid const* const lattice = mesh.rectilinear();
  for (int a = 0; a <= p; ++a)
    if (lattice != nullptr && a < p && lattice->n(0) > p) {
      auto const x = lattice->coordinates[0];
      nodes.push_back(p * (x[static_cast<std::size_t>(a)] - x[0]) / (x[static_cast<std::size_t>(p)] - x[0]));
    } else {
      nodes.push_back(a);
    }
  return nodes;
}

CellField field_of_points(Mesh const& mesh, std::span<double const> values) {
  return {1, [&mesh, values](std::int64_t cell, double* out) {
            std::vector<std::int64_t> nodes(static_cast<std::size_t>(mesh.nodes_per_cell()));
            mesh.nodes(cell, nodes.data());
            for (std::int64_t const node : nodes)
              *out++ = values[static_cast<std::size_t>(node)];
          }};
}

namespace {

/// Lagrange polynomials on `nodes` at s + 1 equidistant places: row i holds the weights of place i.
std::vector<double> interpolation_matrix(std::vector<double> const& nodes, int s) {
  std::size_t const p = nodes.size() - 1;
  std::vector<double> matrix;
  for (int i = 0; i <= s; ++i)
    for (std::size_t a = 0; a <= p; ++a) {
      double const x = static_cast<double>(i) * static_cast<double>(p) / s;
      double weight = 1;
      for (std::size_t b = 0; b <= p; ++b)
        if (b != a)
          weight *= (x - nodes[b]) / (nodes[a] - nodes[b]);
      matrix.push_back(weight);
    }
  return matrix;
}

/// Evaluates the polynomials of one cell after the other.
class CellEvaluator {
public:
  CellEvaluator(Mesh const& mesh, CellField const& field, int subdivisions)
      : mesh_(mesh),
        field_(field),
        p_(mesh.order()),
        s_(subdivisions),
        matrix_(interpolation_matrix(nodes_of_a_cell(mesh), subdivisions)),
        nodes_(static_cast<std::size_t>(mesh.nodes_per_cell())),
        points_(nodes_.size()),
        values_(static_cast<std::size_t>(field.components * mesh.nodes_per_cell())) {}

  [[nodiscard]] int subdivisions() const noexcept { return s_; }
  /// 1, or -1 where the cell that was evaluated last is a mirror image of the reference cell.
  [[nodiscard]] int handedness() const {
    std::array<Vec3, 3> edge{};  // sums of the four edges along each axis
    for (std::size_t corner = 0; corner < 8; ++corner) {
      auto const step = static_cast<std::size_t>(p_), line = step + 1;
      auto const& x = points_[step * (corner & 1) + line * (step * (corner >> 1 & 1) + line * step * (corner >> 2))];
      for (std::size_t axis = 0; axis < 3; ++axis)
        for (std::size_t d = 0; d < 3; ++d)
          edge[axis][d] += (corner >> axis & 1) != 0 ? x[d] : -x[d];
    }
    return dot(cross(edge[0], edge[1]), edge[2]) < 0 ? -1 : 1;
  }

  /// The cell's lattice at fixed places `fixed` in 0 .. s along the axes where it is >= 0, else at all s + 1 places.
  /// x fastest.
  void lattice(std::int64_t cell, std::array<int, 3> const& fixed, std::vector<SurfaceVertex>& out) {
    out.clear();
    mesh_.nodes(cell, nodes_.data());
    for (std::size_t i = 0; i < points_.size(); ++i)
      points_[i] = mesh_.point(nodes_[i]);
    field_.get(cell, values_.data());
    std::array<int, 3> first{}, last{};
    for (std::size_t a = 0; a < 3; ++a) {
      first[a] = fixed[a] >= 0 ? fixed[a] : 0;
      last[a] = fixed[a] >= 0 ? fixed[a] : s_;
    }
    for (int k = first[2]; k <= last[2]; ++k)
      for (int j = first[1]; j <= last[1]; ++j)
        for (int i = first[0]; i <= last[0]; ++i)
          out.push_back(evaluate(i, j, k));
  }

private:
  [[nodiscard]] double const* row(int i) const { return matrix_.data() + static_cast<std::ptrdiff_t>(i) * (p_ + 1); }

  [[nodiscard]] SurfaceVertex evaluate(int i, int j, int k) const {
    SurfaceVertex vertex;
    vertex.reference = {static_cast<float>(i) / static_cast<float>(s_), static_cast<float>(j) / static_cast<float>(s_),
                        static_cast<float>(k) / static_cast<float>(s_)};
    std::array<double, 3> value{};
    std::size_t local = 0;
    for (int c = 0; c <= p_; ++c)
      for (int b = 0; b <= p_; ++b)
        for (int a = 0; a <= p_; ++a, ++local) {
          double const weight = row(i)[a] * row(j)[b] * row(k)[c];
          if (weight == 0)  // a value that is not a number spoils only what depends on it
            continue;
          for (std::size_t d = 0; d < 3; ++d)
            vertex.position[d] += weight * points_[local][d];
          for (std::size_t d = 0; d < static_cast<std::size_t>(field_.components); ++d)
            value[d] += weight * values_[d * points_.size() + local];
        }
    vertex.value = field_.components == 1  ? value[0]
                   : field_.component >= 0 ? value[static_cast<std::size_t>(field_.component)]
                                           : std::hypot(value[0], value[1], value[2]);
    return vertex;
  }

  Mesh const& mesh_;
  CellField const& field_;
  int p_, s_;
  std::vector<double> matrix_;
  std::vector<std::int64_t> nodes_;
  std::vector<Vec3> points_;
  std::vector<double> values_;
};

/// What cannot be seen of a boundary.
struct Hidden {
  CutAway const& cut;
  std::optional<Vec3> const& towards;

  /// `side`: 1 where the corners go round counterclockwise for who looks at the cell from outside, else -1.
  [[nodiscard]] bool operator()(SurfaceTriangle const& triangle, int side) const {
    if (!towards)
      return false;
    auto const& v = triangle.vertex;
    Vec3 const normal = cross(minus(v[1].position, v[0].position), minus(v[2].position, v[0].position));
    constexpr double from_the_side = 1e-6;  // of a cosine
    double const away = -side * dot(normal, *towards);
    if (away > 0 && away * away > from_the_side * dot(normal, normal) * dot(*towards, *towards))
      return true;
    return cut.cuts() && std::ranges::all_of(v, [&](SurfaceVertex const& vertex) {
             for (std::size_t axis = 0; axis < 3; ++axis)
               if (cut.sign[axis] != 0 && !(cut.beyond(vertex.position, axis) > 0))
                 return false;
             return true;
           });
  }
};

void add_face(CellEvaluator& cells, BoundaryFace const& face, Hidden const& hidden, std::vector<SurfaceVertex>& lattice,
              std::vector<SurfaceTriangle>& out) {
  int const s = cells.subdivisions();
  std::array<int, 3> fixed{-1, -1, -1};
  fixed[static_cast<std::size_t>(face.face / 2)] = face.face % 2 == 0 ? 0 : s;
  cells.lattice(face.cell, fixed, lattice);
  auto const at = [&](int i, int j) -> SurfaceVertex const& { return lattice[static_cast<std::size_t>(i + (s + 1) * j)]; };
  // The lattice has y and z in a face across x, x and z across y (clockwise around y), x and y across z.
  int const side = cells.handedness() * (face.face % 2 == 0 ? -1 : 1) * (face.face / 2 == 1 ? -1 : 1);
  auto const add = [&](SurfaceTriangle const& triangle) {
    if (!hidden(triangle, side))
      out.push_back(triangle);
  };
  for (int j = 0; j < s; ++j)
    for (int i = 0; i < s; ++i) {
      add({{at(i, j), at(i + 1, j), at(i + 1, j + 1)}});
      add({{at(i, j), at(i + 1, j + 1), at(i, j + 1)}});
    }
}

SurfaceVertex between(SurfaceVertex const& a, SurfaceVertex const& b, double da, double db) {
  double const t = da / (da - db);
  auto const f = static_cast<float>(t);
  SurfaceVertex v;
  for (std::size_t d = 0; d < 3; ++d) {
    v.position[d] = a.position[d] + t * (b.position[d] - a.position[d]);
    v.reference[d] = a.reference[d] + f * (b.reference[d] - a.reference[d]);
  }
  // An end that is hit exactly must not take over a missing value of the other.
  v.value = t == 0 ? a.value : t == 1 ? b.value : a.value + t * (b.value - a.value);
  return v;
}

/// A tetrahedron and the plane where coordinate `axis` is `c`; corners on the plane count as beyond it.
void cut_tetrahedron(std::array<SurfaceVertex const*, 4> const& v, int axis, double c, std::vector<SurfaceTriangle>& out) {
  std::array<int, 4> below{}, above{};
  std::size_t n_below = 0, n_above = 0;
  std::array<double, 4> d{};
  for (std::size_t i = 0; i < 4; ++i) {
    d[i] = v[i]->position[static_cast<std::size_t>(axis)] - c;
    if (d[i] < 0)
      below[n_below++] = static_cast<int>(i);
    else
      above[n_above++] = static_cast<int>(i);
  }
  if (n_below == 0 || n_above == 0)
    return;
  auto const cut = [&](int lower, int upper) {
    auto const a = static_cast<std::size_t>(lower), b = static_cast<std::size_t>(upper);
    return between(*v[a], *v[b], d[a], d[b]);
  };
  if (n_below == 2) {
    auto const p = cut(below[0], above[0]), q = cut(below[0], above[1]), r = cut(below[1], above[1]), t = cut(below[1], above[0]);
    out.push_back({{p, q, r}, axis});
    out.push_back({{p, r, t}, axis});
  } else if (n_below == 1) {
    out.push_back({{cut(below[0], above[0]), cut(below[0], above[1]), cut(below[0], above[2])}, axis});
  } else {
    out.push_back({{cut(below[0], above[0]), cut(below[1], above[0]), cut(below[2], above[0])}, axis});
  }
}

/// Whether a box crosses the plane of `axis` and reaches into what is cut away along the other axes.
bool touches(Vec3 const& low, Vec3 const& high, CutAway const& cut, std::size_t axis) {
  if (cut.sign[axis] == 0 || !(low[axis] < cut.corner[axis] && high[axis] >= cut.corner[axis]))
    return false;
  for (std::size_t a = 0; a < 3; ++a)
    if (a != axis && (cut.sign[a] > 0 ? high[a] < cut.corner[a] : cut.sign[a] < 0 && low[a] > cut.corner[a]))
      return false;
  return true;
}

void add_cuts(CellEvaluator& cells, std::int64_t cell, CutAway const& cut, std::vector<SurfaceVertex>& lattice,
              std::vector<SurfaceTriangle>& out) {
  // Six tetrahedra around the diagonal from corner 0 to corner 7: one for each way to walk along the axes.
  static constexpr int middle[6][2] = {{1, 3}, {1, 5}, {2, 3}, {2, 6}, {4, 5}, {4, 6}};
  int const s = cells.subdivisions();
  cells.lattice(cell, {-1, -1, -1}, lattice);
  for (int k = 0; k < s; ++k)
    for (int j = 0; j < s; ++j)
      for (int i = 0; i < s; ++i) {
        std::array<SurfaceVertex const*, 8> corner{};
        Vec3 low, high;
        low.fill(std::numeric_limits<double>::infinity());
        high.fill(-std::numeric_limits<double>::infinity());
        for (int c = 0; c < 8; ++c) {
          auto const& v =
              lattice[static_cast<std::size_t>((i + (c & 1)) + (s + 1) * ((j + (c >> 1 & 1)) + (s + 1) * (k + (c >> 2))))];
          corner[static_cast<std::size_t>(c)] = &v;
          for (std::size_t d = 0; d < 3; ++d) {
            low[d] = std::min(low[d], v.position[d]);
            high[d] = std::max(high[d], v.position[d]);
          }
        }
        for (std::size_t axis = 0; axis < 3; ++axis)
          if (touches(low, high, cut, axis))
            for (auto const& m : middle)
              cut_tetrahedron(
                  {corner[0], corner[static_cast<std::size_t>(m[0])], corner[static_cast<std::size_t>(m[1])], corner[7]},
                  static_cast<int>(axis), cut.corner[axis], out);
      }
}

}  // namespace

BoundingBox bounding_box(Mesh const& mesh) {
  if (ImageGrid const* const image = mesh.image())
    return {image->point(0), image->point(image->n_points() - 1)};
  if (RectilinearGrid const* const lattice = mesh.rectilinear())
    return {lattice->point(0), lattice->point(lattice->n_points() - 1)};
  Grid const& grid = *mesh.grid();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double low[3] = {infinity, infinity, infinity}, high[3] = {-infinity, -infinity, -infinity};
  constexpr std::int64_t at_once = 1024;
  auto const n = grid.n_points();
#pragma omp parallel for reduction(min : low[:3]) reduction(max : high[:3])
  for (std::int64_t first = 0; first < n; first += at_once) {
    std::array<std::int64_t, at_once> nodes;
    std::array<double, 3 * at_once> points;
    std::iota(nodes.begin(), nodes.end(), first);
    auto const count = static_cast<std::size_t>(std::min(at_once, n - first));
    grid.points_of(std::span(nodes).first(count), points.data());
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t d = 0; d < 3; ++d)
        if (double const x = points[3 * i + d]; std::isfinite(x)) {
          low[d] = std::min(low[d], x);
          high[d] = std::max(high[d], x);
        }
  }
  BoundingBox box;
  for (std::size_t d = 0; d < 3; ++d)
    if (low[d] <= high[d]) {
      box.low[d] = low[d];
      box.high[d] = high[d];
    }
  return box;
}

namespace {

/// Lists the boundary faces of a lattice with m[d] cells in direction d.
std::vector<BoundaryFace> boundary_faces_of_lattice(std::array<std::int64_t, 3> const& m) {
  std::vector<BoundaryFace> faces;
  for (std::int64_t k = 0; k < m[2]; ++k)
    for (std::int64_t j = 0; j < m[1]; ++j) {
      bool const inside = k > 0 && k < m[2] - 1 && j > 0 && j < m[1] - 1;  // only the ends of this line are on the boundary
      for (std::int64_t i = 0; i < m[0]; i += inside && i < m[0] - 1 ? m[0] - 1 : 1) {
        std::int64_t const cell = (k * m[1] + j) * m[0] + i;
        std::array<std::int64_t, 3> const index{i, j, k};
        for (int face = 0; face < 6; ++face) {
          auto const d = static_cast<std::size_t>(face / 2);
          if (index[d] == (face % 2 == 0 ? 0 : m[d] - 1))
            faces.push_back({cell, face});
        }
      }
    }
  return faces;
}

std::vector<BoundaryFace> boundary_faces_of_grid(Grid const& grid) {
  // Faces seen once so far, in lists by their smallest corner. The second sight of a face takes it off its list.
  struct Open {
    std::int64_t opposite, low, high;  // the corner opposite to the smallest, and the two others
    std::int64_t id;
    std::uint32_t next;
  };
  constexpr auto none = std::numeric_limits<std::uint32_t>::max();
  std::vector<Open> open;
  std::uint32_t free = none;
  std::vector<std::uint32_t> head(static_cast<std::size_t>(grid.n_points()), none);

  int const p = grid.order;
  std::array<std::array<int, 4>, 6> corners{};  // around each face
  int const stride[3] = {p, p * (p + 1), p * (p + 1) * (p + 1)};
  for (int face = 0; face < 6; ++face) {
    int const base = face % 2 * stride[face / 2], u = stride[(face / 2 + 1) % 3], v = stride[(face / 2 + 2) % 3];
    corners[static_cast<std::size_t>(face)] = {base, base + u, base + u + v, base + v};
  }

  auto const n = grid.n_cells();
  std::vector<std::int64_t> nodes(static_cast<std::size_t>(grid.nodes_per_cell()));
  for (std::int64_t cell = 0; cell < n; ++cell) {
    grid.nodes(cell, 1, nodes.data());
    for (std::size_t face = 0; face < 6; ++face) {
      std::array<std::int64_t, 4> q{};
      for (std::size_t i = 0; i < 4; ++i)
        q[i] = nodes[static_cast<std::size_t>(corners[face][i])];
      auto const smallest = static_cast<std::size_t>(std::min_element(q.begin(), q.end()) - q.begin());
      auto const opposite = q[(smallest + 2) % 4];
      auto const [low, high] = std::minmax(q[(smallest + 1) % 4], q[(smallest + 3) % 4]);
      auto* link = &head[static_cast<std::size_t>(q[smallest])];
      while (*link != none && (open[*link].opposite != opposite || open[*link].low != low || open[*link].high != high))
        link = &open[*link].next;
      if (*link != none) {
        auto const found = *link;
        *link = open[found].next;
        open[found].next = free;
        open[found].id = -1;
        free = found;
        continue;
      }
      Open const entry{opposite, low, high, 6 * cell + static_cast<std::int64_t>(face), none};
      auto place = free;
      if (place != none) {
        *link = place;
        free = open[place].next;
        open[place] = entry;
      } else {
        if (open.size() >= none)
          throw std::length_error("more than 2^32 open faces");
        place = static_cast<std::uint32_t>(open.size());
        *link = place;  // before push_back, which may move what `link` points into
        open.push_back(entry);
      }
    }
  }
  std::vector<std::int64_t> ids;
  for (auto const& entry : open)
    if (entry.id >= 0)
      ids.push_back(entry.id);
  std::sort(ids.begin(), ids.end());
  std::vector<BoundaryFace> faces;
  faces.reserve(ids.size());
  for (auto const id : ids)
    faces.push_back({id / 6, static_cast<int>(id % 6)});
  return faces;
}

/// Where the layers of cells of a lattice begin and end in a direction.
std::vector<std::array<double, 2>> layers_of(Mesh const& mesh, std::size_t direction) {
  std::vector<std::array<double, 2>> layers;
  if (ImageGrid const* const image = mesh.image()) {
    for (std::int64_t i = 0; i + 1 < image->n[direction]; ++i) {
      double const low = image->low[direction] + static_cast<double>(i) * image->spacing[direction];
      layers.push_back({low, low + image->spacing[direction]});
    }
    return layers;
  }
  auto const x = mesh.rectilinear()->coordinates[direction];
  auto const p = static_cast<std::size_t>(mesh.order());
  for (std::size_t i = 0; i + p < x.size(); i += p)
    layers.push_back({x[i], x[i + p]});
  return layers;
}

/// cut_cells of a lattice: whether a box touches the planes follows from the three layers that it is in.
std::vector<std::int64_t> cut_cells_of_lattice(Mesh const& mesh, CutAway const& cut, double margin) {
  std::array<std::vector<char>, 3> crosses, reaches;  // by layer: the plane of the axis, and what is cut away along it
  std::vector<std::int64_t> crossing_x;
  for (std::size_t d = 0; d < 3; ++d)
    for (auto const& [begin, end] : layers_of(mesh, d)) {
      double const extra = margin * (end - begin), low = begin - extra, high = end + extra, corner = cut.corner[d];
      crosses[d].push_back(static_cast<char>(cut.sign[d] != 0 && low < corner && high >= corner));
      reaches[d].push_back(static_cast<char>(!(cut.sign[d] > 0 ? high < corner : cut.sign[d] < 0 && low > corner)));
    }
  auto const n = [&](std::size_t d) { return std::ssize(crosses[d]); };
  for (std::int64_t i = 0; i < n(0); ++i)
    if (crosses[0][static_cast<std::size_t>(i)] != 0)
      crossing_x.push_back(i);
  std::vector<std::int64_t> cells;
  for (std::int64_t k = 0; k < n(2); ++k)
    for (std::int64_t j = 0; j < n(1); ++j) {
      auto const y = static_cast<std::size_t>(j), z = static_cast<std::size_t>(k);
      bool const of_x = reaches[1][y] != 0 && reaches[2][z] != 0;
      bool const of_y_or_z = (crosses[1][y] != 0 && reaches[2][z] != 0) || (reaches[1][y] != 0 && crosses[2][z] != 0);
      std::int64_t const first = (k * n(1) + j) * n(0);
      if (of_y_or_z) {
        for (std::int64_t i = 0; i < n(0); ++i)
          if (reaches[0][static_cast<std::size_t>(i)] != 0)  // as what crosses does
            cells.push_back(first + i);
      } else if (of_x) {
        for (std::int64_t const i : crossing_x)
          cells.push_back(first + i);
      }
    }
  return cells;
}

/// The smallest boxes around the nodes of some cells.
std::vector<BoundingBox> boxes_of_cells(Mesh const& mesh, std::int64_t first, std::int64_t end) {
  auto const n_cells = static_cast<std::size_t>(end - first);
  std::vector<std::int64_t> const nodes = mesh.nodes_by_place(first, end - first);
  std::vector<double> points(3 * nodes.size());
  mesh.points_of(nodes, points.data());
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<BoundingBox> boxes(n_cells, {{infinity, infinity, infinity}, {-infinity, -infinity, -infinity}});
  double const* x = points.data();
  for (int i = 0; i < mesh.nodes_per_cell(); ++i)
    for (BoundingBox& box : boxes)
      for (std::size_t d = 0; d < 3; ++d, ++x) {
        box.low[d] = std::min(box.low[d], *x);
        box.high[d] = std::max(box.high[d], *x);
      }
  return boxes;
}

}  // namespace

std::vector<BoundaryFace> boundary_faces(Mesh const& mesh) {
  if (ImageGrid const* const image = mesh.image())
    return boundary_faces_of_lattice({image->n[0] - 1, image->n[1] - 1, image->n[2] - 1});
  if (RectilinearGrid const* const lattice = mesh.rectilinear())
    return boundary_faces_of_lattice({lattice->cells(0), lattice->cells(1), lattice->cells(2)});
  if (auto const known = mesh.grid()->boundary; !known.empty())
    return {known.begin(), known.end()};
  return boundary_faces_of_grid(*mesh.grid());
}

std::vector<std::int64_t> cut_cells(Mesh const& mesh, CutAway const& cut) {
  if (!cut.cuts())
    return {};
  // Curved cells reach a little beyond their nodes, so their boxes are enlarged.
  auto const n = mesh.n_cells();
  double const margin = mesh.order() > 1 ? 0.1 : 0;
  if (mesh.grid() == nullptr)
    return cut_cells_of_lattice(mesh, cut, margin);
  std::int64_t const at_once = std::max(8192 / mesh.nodes_per_cell(), 1);
  std::vector<std::vector<std::int64_t>> found(static_cast<std::size_t>(omp_get_max_threads()));
#pragma omp parallel
  {
    auto& mine = found[static_cast<std::size_t>(omp_get_thread_num())];
#pragma omp for schedule(static)
    for (std::int64_t first = 0; first < n; first += at_once) {
      std::int64_t cell = first;
      for (auto [low, high] : boxes_of_cells(mesh, first, std::min(first + at_once, n))) {
        for (std::size_t d = 0; d < 3; ++d) {
          double const extra = margin * (high[d] - low[d]);
          low[d] -= extra;
          high[d] += extra;
        }
        if (touches(low, high, cut, 0) || touches(low, high, cut, 1) || touches(low, high, cut, 2))
          mine.push_back(cell);
        ++cell;
      }
    }
  }
  std::vector<std::int64_t> all;
  for (auto const& part : found)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<SurfaceTriangle> cut_surface(Mesh const& mesh, CellField const& field, CutAway const& cut,
                                         std::span<BoundaryFace const> faces, std::span<std::int64_t const> cut_through,
                                         int subdivisions, std::optional<Vec3> const& towards) {
  Hidden const hidden{cut, towards};
  // Every thread makes the triangles of a part of the faces, then of the cells.
  auto const n_parts = static_cast<std::size_t>(omp_get_max_threads());
  std::vector<std::vector<SurfaceTriangle>> parts(2 * n_parts);
  std::exception_ptr failure;
#pragma omp parallel for schedule(static, 1)
  for (std::size_t p = 0; p < n_parts; ++p)
    try {
      CellEvaluator cells(mesh, field, subdivisions);
      std::vector<SurfaceVertex> lattice;
      auto const begin = [&](auto const& items, std::size_t part) { return items.size() * part / n_parts; };
      parts[p].reserve((begin(faces, p + 1) - begin(faces, p)) * static_cast<std::size_t>(2 * subdivisions * subdivisions));
      for (std::size_t i = begin(faces, p); i < begin(faces, p + 1); ++i)
        add_face(cells, faces[i], hidden, lattice, parts[p]);
      for (std::size_t i = begin(cut_through, p); i < begin(cut_through, p + 1); ++i)
        add_cuts(cells, cut_through[i], cut, lattice, parts[n_parts + p]);
    } catch (...) {
#pragma omp critical(poisson_cut_surface_failure)
      failure = std::current_exception();
    }
  if (failure)
    std::rethrow_exception(failure);
  std::size_t n = 0;
  for (auto const& part : parts)
    n += part.size();
  std::vector<SurfaceTriangle> triangles = std::move(parts.front());
  triangles.reserve(n);
  for (std::size_t p = 1; p < parts.size(); ++p) {
    triangles.insert(triangles.end(), parts[p].begin(), parts[p].end());
    free_memory(parts[p]);
  }
  return triangles;
}

std::vector<SurfaceTriangle> cut_surface(Mesh const& mesh, std::span<double const> values, CutAway const& cut,
                                         std::span<BoundaryFace const> faces, int subdivisions) {
  return cut_surface(mesh, field_of_points(mesh, values), cut, faces, cut_cells(mesh, cut), subdivisions);
}

}  // namespace poisson::output
