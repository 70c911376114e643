#include "assembly/dealii/lattice_manifolds.hpp"
#include "assembly/dealii/mesh.hpp"
#include "assembly/dealii/sources.hpp"
#include "assembly/mesh/lattice_mesh.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/lattice_interior.hpp"

#include <deal.II/base/exceptions.h>
#include <utility>

namespace poisson::assembly {
namespace {

/// The nodes on one face of a lattice: m^2 of every direction, the lower one of the two along the face fastest.
class Face {
public:
  Face(Manifolds const& manifolds, RimFrames const& frames, int face, double* points)
      : manifolds_(manifolds), frames_(frames), face_(face), points_(points) {}

  /// Directions along the face: fastest in memory first; and the order that deal.II has.
  [[nodiscard]] std::array<int, 2> along() const { return {face_ / 2 == 0 ? 1 : 0, face_ / 2 == 2 ? 1 : 2}; }
  [[nodiscard]] std::array<int, 2> of_dealii() const { return {face_u(face_), face_v(face_)}; }
  [[nodiscard]] int number() const { return face_; }

  [[nodiscard]] Manifolds const& manifolds() const { return manifolds_; }
  [[nodiscard]] RimFrames const& frames() const { return frames_; }
  [[nodiscard]] double* points() const { return points_; }
  /// The manifold's entry of what is at low (0), inside (1) or high (2) along the face.
  [[nodiscard]] int entry(int a, int b) const {
    auto const [u, v] = along();
    return stride[face_ / 2] * (face_ % 2 == 0 ? 0 : 2) + stride[u] * a + stride[v] * b;
  }

private:
  Manifolds manifolds_;
  RimFrames frames_;
  int face_;
  double* points_;
};

/// Fills faces of lattices, as LatticeMesh fills lattices.
class FaceBuilder {
public:
  FaceBuilder(LatticeMesh const& mesh, std::vector<double> const& nodes)
      : n_(mesh.n), m_(mesh.m), p_(mesh.order), isoparametric_(mesh.isoparametric), nodes_(nodes), weights_(nodes) {}

  void add(std::array<Point, 8> const& vertices, Face const& face) {
    auto const [u, v] = face.along();
    for (int corner = 0; corner < 4; ++corner) {
      int const vertex = face.number() % 2 << face.number() / 2 | (corner & 1) << u | (corner >> 1) << v;
      set(face.points(), (m_ - 1) * ((corner & 1) + m_ * (corner >> 1)), vertices[static_cast<std::size_t>(vertex)]);
    }
    faces_.push_back(face);
  }

  void build() const {
    for (std::int64_t step = n_ / 2; step >= 1; step /= 2) {
      std::int64_t const rows = n_ / step + 1;
      for_rows(std::ssize(faces_), rows, rows, [&](std::int64_t face, std::int64_t row) {
        bool const between = row % 2 == 1;  // of edges along b
        for (std::int64_t a = between ? 0 : 1; a < rows; a += 2)
          halve_edge(faces_[face], a * step, row * step, step, between ? 1 : 0);
      });
      for_rows(std::ssize(faces_), rows / 2, rows, [&](std::int64_t face, std::int64_t row) {
        for (std::int64_t a = 1; a < rows; a += 2)
          halve_face(faces_[face], a * step, (2 * row + 1) * step, step);
      });
    }
    if (p_ == 1)
      return;
    for_rows(std::ssize(faces_), n_ + 1, 2 * n_ * p_, [&](std::int64_t face, std::int64_t row) {
      for (std::int64_t i = 0; i <= n_; ++i)
        for (int const direction : {0, 1})
          if ((direction == 0 ? i : row) < n_)
            fill_edge(faces_[face], i, row, direction);
    });
    for_rows(std::ssize(faces_), n_, n_ * p_ * p_, [&](std::int64_t face, std::int64_t row) {
      for (std::int64_t a = 0; a < n_; ++a)
        fill_face(faces_[face], a, row);
    });
  }

private:
  [[nodiscard]] std::int64_t size() const { return m_ * m_; }
  [[nodiscard]] std::int64_t of_next(int direction) const { return direction == 0 ? 1 : m_; }
  [[nodiscard]] Point get(double const* points, std::int64_t at) const {
    return {points[at], points[size() + at], points[2 * size() + at]};
  }
  void set(double* points, std::int64_t at, Point const& point) const {
    for (unsigned d = 0; d < 3; ++d)
      points[d * size() + at] = point[d];
  }
  [[nodiscard]] int side(std::int64_t i) const { return i == 0 ? 0 : i == n_ ? 2 : 1; }

  /// The mean of what is around a node, in every direction.
  void set_mean(Face const& face, std::int64_t at, lattice_interior::Entity const& entity, int dimension) const {
    for (int d = 0; d < 3; ++d) {
      double* const x = face.points() + d * size() + at;
      *x = lattice_interior::mean(x, entity, dimension);
    }
  }
  static Point new_point(Manifold const& manifold, std::span<Point const> around, std::span<double const> weights) {
    return manifold.get_new_point(dealii::ArrayView<Point const>(around.data(), around.size()),
                                  dealii::ArrayView<double const>(weights.data(), weights.size()));
  }

  /// The new point in the middle of an edge of 2 `step` cells along `direction` (0: the faster one); cells are counted.
  void halve_edge(Face const& face, std::int64_t a, std::int64_t b, std::int64_t step, int direction) const {
    std::int64_t const at = (b * m_ + a) * p_, apart = of_next(direction) * step * p_;
    int const entry = face.entry(side(a), side(b));
    Manifold const* const manifold = face.manifolds()[entry];
    if (manifold == nullptr) {
      lattice_interior::Entity entity{{0, 0, 0}, {0, 0, 0}, {0.5, 0.5, 0.5}};
      entity.low[direction] = entity.high[direction] = apart;
      set_mean(face, at, entity, 1);
      return;
    }
    std::array<Point, 2> ends{get(face.points(), at - apart), get(face.points(), at + apart)};
    if (face.frames().reversed[entry][face.along()[direction]])
      std::swap(ends[0], ends[1]);
    set(face.points(), at, new_point(*manifold, ends, of_edge_.weights));
  }

  /// The new point in the middle of 2 step x 2 step cells.
  void halve_face(Face const& face, std::int64_t a, std::int64_t b, std::int64_t step) const {
    std::int64_t const at = (b * m_ + a) * p_, apart = step * p_;
    Manifold const* const manifold = face.manifolds()[face_entry(face.number())];
    auto const [u, v] = face.along();
    if (manifold == nullptr) {
      set_mean(face, at, entity_of(face, apart, apart, apart, apart, 0.5, 0.5), 2);
      return;
    }
    std::array<Point, 8> around;
    for (std::size_t s = 0; s < 8; ++s) {
      auto const& offset = face.frames().around[face.number()][s];
      around[s] = get(face.points(), at + apart * (offset[u] + m_ * offset[v]));
    }
    set(face.points(), at, new_point(*manifold, around, of_face_.weights));
  }

  /// A face of a cell, with the directions in deal.II's order. Distances along the faster direction in memory, a, and the other.
  [[nodiscard]] lattice_interior::Entity entity_of(Face const& face, std::int64_t low_a, std::int64_t high_a, std::int64_t low_b,
                                                   std::int64_t high_b, double at_a, double at_b) const {
    lattice_interior::Entity entity{{low_a, low_b * m_, 0}, {high_a, high_b * m_, 0}, {at_a, at_b, 0}};
    if (face.of_dealii()[0] != face.along()[0]) {
      std::swap(entity.low[0], entity.low[1]);
      std::swap(entity.high[0], entity.high[1]);
      std::swap(entity.at[0], entity.at[1]);
    }
    return entity;
  }

  /// The manifold of what is at low, inside or high of the face, for nodes of elements.
  [[nodiscard]] Manifold const* manifold_of_nodes(Face const& face, int a, int b) const {
    return isoparametric_ ? face.manifolds()[face.entry(a, b)] : nullptr;
  }

  /// The nodes inside of the edge of cell (a, b) along a direction, at its low end.
  void fill_edge(Face const& face, std::int64_t a, std::int64_t b, int direction) const {
    std::int64_t const first = (b * m_ + a) * p_, next = of_next(direction);
    Manifold const* const manifold = manifold_of_nodes(face, direction == 0 ? 1 : side(a), direction == 1 ? 1 : side(b));
    if (manifold == nullptr) {
      for (int i = 1; i < p_; ++i) {
        lattice_interior::Entity entity{{0, 0, 0}, {0, 0, 0}, {nodes_[i], nodes_[i], 0}};
        entity.low[direction] = i * next;
        entity.high[direction] = (p_ - i) * next;
        set_mean(face, first + i * next, entity, 1);
      }
      return;
    }
    std::array<Point, 2> const ends{get(face.points(), first), get(face.points(), first + p_ * next)};
    std::vector<Point> made(static_cast<std::size_t>(p_ - 1));
    manifold->get_new_points(dealii::ArrayView<Point const>(ends.data(), 2), weights_.of_edge,
                             dealii::ArrayView<Point>(made.data(), made.size()));
    for (int i = 1; i < p_; ++i)
      set(face.points(), first + i * next, made[i - 1]);
  }

  /// The nodes inside of the face of cell (a, b).
  void fill_face(Face const& face, std::int64_t a, std::int64_t b) const {
    std::int64_t const first = (b * m_ + a) * p_;
    Manifold const* const manifold = manifold_of_nodes(face, 1, 1);
    if (manifold == nullptr) {
      for (int j = 1; j < p_; ++j)
        for (int i = 1; i < p_; ++i)
          set_mean(face, first + j * m_ + i, entity_of(face, i, p_ - i, j, p_ - j, nodes_[i], nodes_[j]), 2);
      return;
    }
    // In deal.II's directions u and v.
    bool const swapped = face.of_dealii()[0] != face.along()[0];
    std::int64_t const next_u = swapped ? m_ : 1, next_v = swapped ? 1 : m_;
    auto const node = [&](std::int64_t i, std::int64_t j) { return first + i * next_u + j * next_v; };
    std::vector<Point> around, made(static_cast<std::size_t>((p_ - 1) * (p_ - 1)));
    for (int vertex = 0; vertex < 4; ++vertex)
      around.push_back(get(face.points(), node((vertex & 1) * p_, (vertex >> 1) * p_)));
    for (int const end : {0, p_})
      for (int j = 1; j < p_; ++j)
        around.push_back(get(face.points(), node(end, j)));
    for (int const end : {0, p_})
      for (int i = 1; i < p_; ++i)
        around.push_back(get(face.points(), node(i, end)));
    manifold->get_new_points(dealii::ArrayView<Point const>(around.data(), around.size()), weights_.of_face,
                             dealii::ArrayView<Point>(made.data(), made.size()));
    for (int j = 1; j < p_; ++j)
      for (int i = 1; i < p_; ++i)
        set(face.points(), node(i, j), made[static_cast<std::size_t>((j - 1) * (p_ - 1) + i - 1)]);
  }

  std::int64_t n_, m_;
  int p_;
  bool isoparametric_;
  std::vector<double> const& nodes_;
  NodeWeights weights_;
  Stencil of_edge_ = make_stencil(1), of_face_ = make_stencil(3);  ///< whose weights are those of any edge and face
  std::vector<Face> faces_;
};

}  // namespace

MakeLatticeFaces maker_of_faces(Mesh const& coarse, LatticeMesh const& shape, std::vector<double> const& nodes,
                                std::vector<std::int32_t> const& of) {
  return [&coarse, &shape, &nodes, &of](std::int64_t first, std::int64_t count, HostVector<double> room) {
    dealii::Triangulation<3> const& triangulation = *coarse.triangulation;
    std::int64_t const size = 3 * shape.m * shape.m;
    room.clear();  // of which nothing is to be copied into larger memory
    room.resize(static_cast<std::size_t>(6 * size * count));
    FaceBuilder builder(shape, nodes);
    auto next = of.begin() + first;
    auto const end = next + count;
    double* points = room.data();
    for (auto const& cell : triangulation.active_cell_iterators()) {
      if (next == end || static_cast<std::int32_t>(cell->active_cell_index()) != *next)
        continue;
      ++next;
      std::array<Point, 8> vertices;
      for (unsigned v = 0; v < 8; ++v)
        vertices[v] = cell->vertex(v);
      Manifolds const manifolds = manifolds_of(triangulation, cell);
      RimFrames const frames(shape.topology->lattices[cell->active_cell_index()]);
      for (int face = 0; face < 6; ++face, points += size)
        builder.add(vertices, {manifolds, frames, face, points});
    }
    try {
      builder.build();
    } catch (dealii::ExceptionBase const& exception) {
      throw InputError("problem.mesh", "deal.II says: " + brief_message(exception));
    }
    return room;
  };
}

}  // namespace poisson::assembly
