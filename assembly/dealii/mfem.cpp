#include "assembly/dealii/curved_cells.hpp"
#include "assembly/dealii/raw.hpp"
#include "assembly/mesh/counts.hpp"
#include "assembly/text.hpp"

#include <algorithm>
#include <array>
#include <deal.II/base/quadrature_lib.h>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

/// Reader of MFEM's meshes, versions 1.0, 1.2 and 1.3 (which has named sets of attributes), and INLINE. Of curved meshes it reads
/// nodes in the spaces H1 and L2_T1 with nodes at Gauss-Lobatto points, and those of the older space Cubic. Numbers of edges, faces
/// and their nodes in H1 are those that MFEM gives: in the order in which the cells have them first, along an edge from the lower
/// vertex, on a face as its first cell lists it.
class MfemReader {
public:
  explicit MfemReader(MeshText& text) : text_(text), builder_(text) {}

  RawMesh read() {
    std::string_view line;
    text_.next_line(line);
    std::string const head(line);
    if (head == "MFEM INLINE mesh v1.0")
      return read_inline();
    if (head.starts_with("MFEM NC"))
      text_.fail("this mesh of MFEM has, or may have, hanging nodes (" + head +
                 "), which are not supported. Save it before it is refined locally: a mesh that is not made for it "
                 "(Mesh::EnsureNCMesh) is saved as MFEM mesh v1.0");
    if (head.starts_with("MFEM NURBS"))
      text_.fail("NURBS meshes of MFEM are not read; in MFEM, Mesh::SetCurvature(p) turns one into polynomials of order p");
    if (head != "MFEM mesh v1.0" && head != "MFEM mesh v1.2" && head != "MFEM mesh v1.3")
      text_.fail(in_quotes(head) + " is not read: MFEM mesh v1.0, v1.2 and v1.3 are");
    bool vertices = false, ended = false;
    for (std::string_view key = word(); !key.empty() && !ended; key = ended ? key : word()) {
      ended = key == "mfem_mesh_end";
      if (key == "mfem_serial_mesh_end")
        text_.fail("this is one rank's part of a parallel mesh of MFEM; save the whole with ParMesh::SaveAsOne");
      if (key == "dimension") {
        if (std::int64_t const dimension = text_.integer("the dimension"); dimension != 3)
          text_.fail("this is a mesh in " + std::to_string(dimension) + " dimensions; three are needed");
      } else if (key == "elements") {
        read_elements();
      } else if (key == "boundary") {
        read_boundary();
      } else if (key == "vertices") {
        read_vertices();
        vertices = true;
      } else if (key == "nodes") {
        read_nodes();
      } else if (key == "attribute_sets") {
        read_sets(cell_sets_);
      } else if (key == "bdr_attribute_sets") {
        read_sets(quad_sets_);
      } else if (!ended) {
        text_.fail("the section " + in_quotes(key) + " is not known");
      }
    }
    if (!vertices)
      text_.fail("the file has no section vertices");
    if (!ended && head != "MFEM mesh v1.0")
      text_.fail("the file ends before mfem_mesh_end");
    if (!ended && !text_.has_last_end_of_line())
      builder_.mesh().notes.emplace_back(MeshText::note_of_cut_line);
    if (order_ == 0 && points_.empty())
      text_.fail("the file has neither coordinates of vertices nor nodes");
    return finish();
  }

private:
  struct Cell {
    std::int64_t attribute, line;
    std::array<std::int64_t, 8> vertices;
  };

  std::string_view word() { return text_.word_before_comment(); }

  RawMesh read_inline() {
    std::map<std::string, double> values{{"nx", 0}, {"ny", 0}, {"nz", 0}, {"sx", 1}, {"sy", 1}, {"sz", 1}};
    std::string type;
    for (std::string_view key = word(); !key.empty(); key = word()) {
      std::string const name(key);
      if (word() != "=")
        text_.fail("'=' is missing after " + in_quotes(name));
      if (name == "type")
        type = word();
      else if (values.contains(name))
        values[name] = text_.real(name.c_str());
      else
        text_.fail("the key " + in_quotes(name) + " is not known");
    }
    if (type != "hex")
      text_.fail("the type " + in_quotes(type) + " is not read: only hex is");
    std::array<std::int64_t, 3> n{};
    std::array<double, 3> h{};
    for (std::size_t d = 0; d < 3; ++d) {
      double const count = values[std::string("n") + "xyz"[d]];
      if (!(count >= 1 && count <= 2000 && count == static_cast<double>(static_cast<std::int64_t>(count))))
        text_.fail(std::string("n") + "xyz"[d] + " must be a whole number from 1 to 2000");
      n[d] = static_cast<std::int64_t>(count);
      h[d] = values[std::string("s") + "xyz"[d]] / count;
    }
    check_memory(n[0] * n[1] * n[2] * 400, "the mesh");
    auto const node = [&](std::int64_t i, std::int64_t j, std::int64_t k) { return (k * (n[1] + 1) + j) * (n[0] + 1) + i; };
    for (std::int64_t k = 0; k <= n[2]; ++k)
      for (std::int64_t j = 0; j <= n[1]; ++j)
        for (std::int64_t i = 0; i <= n[0]; ++i)
          builder_.add_vertex(node(i, j, k), static_cast<double>(i) * h[0], static_cast<double>(j) * h[1],
                              static_cast<double>(k) * h[2]);
    for (std::int64_t k = 0; k < n[2]; ++k)
      for (std::int64_t j = 0; j < n[1]; ++j)
        for (std::int64_t i = 0; i < n[0]; ++i)
          builder_.add_hexahedron({node(i, j, k), node(i + 1, j, k), node(i + 1, j + 1, k), node(i, j + 1, k), node(i, j, k + 1),
                                   node(i + 1, j, k + 1), node(i + 1, j + 1, k + 1), node(i, j + 1, k + 1)},
                                  1);
    // MFEM's attributes: bottom 1, front 2 (y = 0), right 3, back 4, left 5, top 6.
    auto const side = [&](std::size_t d, bool high, std::int64_t attribute) {
      std::size_t const u = d == 0 ? 1 : 0, v = d == 2 ? 1 : 2;
      for (std::int64_t b = 0; b < n[v]; ++b)
        for (std::int64_t a = 0; a < n[u]; ++a) {
          auto const corner = [&](std::int64_t da, std::int64_t db) {
            std::array<std::int64_t, 3> at{};
            at[d] = high ? n[d] : 0;
            at[u] = a + da;
            at[v] = b + db;
            return node(at[0], at[1], at[2]);
          };
          builder_.add_quad({corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 1)}, attribute);
        }
    };
    side(2, false, 1);
    side(1, false, 2);
    side(0, true, 3);
    side(1, true, 4);
    side(0, false, 5);
    side(2, true, 6);
    return builder_.finish();
  }

  void read_elements() {
    std::int64_t const count = text_.count("the number of elements");
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t const attribute = text_.integer("the attribute of an element"), line = text_.line();
      if (std::int64_t const geometry = text_.integer("the geometry of an element"); geometry != 5) {
        unsupported(geometry);
        continue;
      }
      Cell cell{attribute, line, {}};
      for (auto& vertex : cell.vertices)
        vertex = text_.integer("a vertex");
      cells_.push_back(cell);
    }
  }

  void read_boundary() {
    std::int64_t const count = text_.count("the number of boundary elements");
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t const attribute = text_.integer("the attribute of a boundary element"), line = text_.line();
      if (std::int64_t const geometry = text_.integer("the geometry of a boundary element"); geometry != 3) {
        unsupported(geometry);
        continue;
      }
      Quad quad{attribute, line, {}};
      for (auto& vertex : quad.vertices)
        vertex = text_.integer("a vertex");
      quads_.push_back(quad);
    }
  }

  struct AttributeSet {
    std::string name;
    std::set<std::int64_t> attributes;
  };

  /// Sets of attributes: how many, then of each its name, how many attributes, and these.
  void read_sets(std::vector<AttributeSet>& sets) {
    std::int64_t const count = text_.count("the number of sets of attributes");
    for (std::int64_t i = 0; i < count; ++i) {
      AttributeSet& set = sets.emplace_back();
      set.name = name_of_set();
      std::int64_t const size = text_.count("the number of attributes of a set");
      for (std::int64_t k = 0; k < size; ++k)
        set.attributes.insert(text_.integer("an attribute"));
    }
  }

  /// A word, or text in double quotes, in which \ stands before a quote or itself.
  std::string name_of_set() {
    std::string name;
    if (!text_.peek_word().starts_with('"')) {
      name = word();
      if (name.empty())
        text_.fail("the file ends where the name of a set should be");
      return name;
    }
    std::string_view line;
    while (line.empty() && text_.next_line(line)) {
    }
    bool escaped = false;
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (line[i] == '"' && !escaped) {
        if (!trim(line.substr(i + 1)).empty())
          text_.fail("the name of a set must have a line of its own");
        return name;
      }
      escaped = line[i] == '\\' && !escaped;
      if (!escaped)
        name += line[i];
    }
    text_.fail("the name of a set has no end");
  }

  /// Notes an element of another geometry, and passes over its vertices.
  void unsupported(std::int64_t geometry) {
    struct Geometry {
      char const* name;
      int dimension, vertices;
    };
    static constexpr std::array<Geometry, 8> known{{{"point", 0, 1},
                                                    {"segment", 1, 2},
                                                    {"triangle", 2, 3},
                                                    {"square", 2, 4},
                                                    {"tetrahedron", 3, 4},
                                                    {"cube", 3, 8},
                                                    {"prism", 3, 6},
                                                    {"pyramid", 3, 5}}};
    if (geometry < 0 || geometry >= std::ssize(known))
      text_.fail("there is no geometry " + std::to_string(geometry));
    Geometry const& found = known[static_cast<std::size_t>(geometry)];
    if (found.dimension >= 2)
      builder_.add_unsupported(std::to_string(geometry) + " (" + found.name + ")", found.dimension);
    for (int v = 0; v < found.vertices; ++v)
      text_.integer("a vertex");
  }

  void read_vertices() {
    n_vertices_ = text_.count("the number of vertices");
    // A section without coordinates ends here; nodes follow then.
    std::string_view const next = text_.peek_word();
    if (next.empty() || next == "nodes" || next == "mfem_mesh_end" || next.starts_with('#'))
      return;
    if (text_.integer("the dimension of space") != 3)
      text_.fail("vertices need three coordinates");
    for (std::int64_t i = 0; i < n_vertices_; ++i)
      points_.push_back(read_point());
  }

  dealii::Point<3> read_point() {
    double const x = text_.real("x of a node"), y = text_.real("y of a node"), z = text_.real("z of a node");
    return {x, y, z};
  }

  void read_nodes() {
    if (builder_.has_unsupported())  // whose nodes cannot be counted
      static_cast<void>(builder_.finish());
    if (word() != "FiniteElementSpace" || word() != "FiniteElementCollection:")
      text_.fail("the section nodes does not begin with its finite element space");
    std::string const name(word());
    if (word() != "VDim:" || text_.integer("VDim") != 3 || word() != "Ordering:")
      text_.fail("the nodes need three components");
    bool const by_node = text_.integer("the ordering") == 1;
    cubic_ = name == "Cubic";
    continuous_ = name == "Linear" || name == "Quadratic" || cubic_ || name.starts_with("H1_3D_P");
    bool const discontinuous = name.starts_with("L2_T1_3D_P");
    if (!continuous_ && !discontinuous)
      text_.fail("nodes in the space " + in_quotes(name) +
                 " are not read; in MFEM, Mesh::SetCurvature(p) converts them to H1_3D_Pp");
    std::int64_t const order = name == "Linear" ? 1 : name == "Quadratic" ? 2 : cubic_ ? 3 : trailing_number(name);
    if (order < 1 || order > 10)
      text_.fail("nodes of order " + std::to_string(order) + " are not read: 1 to 10 are");
    order_ = static_cast<int>(order);
    if (continuous_)
      number_entities();
    std::int64_t const inner = order - 1;
    std::int64_t const n = continuous_ ? n_vertices_ + inner * std::ssize(edges_) + inner * inner * std::ssize(faces_) +
                                             inner * inner * inner * std::ssize(cells_)
                                       : (order + 1) * (order + 1) * (order + 1) * std::ssize(cells_);
    check_memory(n * 24, "the nodes of the mesh");
    if (n > static_cast<std::int64_t>(text_.content().size()))
      text_.fail("the file ends within its nodes, of which there should be " + std::to_string(n));
    points_.assign(static_cast<std::size_t>(n), {});
    if (by_node) {
      for (auto& point : points_)
        point = read_point();
    } else {
      for (unsigned d = 0; d < 3; ++d)
        for (auto& point : points_)
          point[d] = text_.real("a coordinate of a node");
    }
  }

  static std::array<std::int64_t, 4> sorted(std::array<std::int64_t, 4> face) {
    std::sort(face.begin(), face.end());
    return face;
  }

  static constexpr std::array<std::array<std::size_t, 2>, 12> cell_edges{
      {{0, 1}, {1, 2}, {3, 2}, {0, 3}, {4, 5}, {5, 6}, {7, 6}, {4, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}}};
  static constexpr std::array<std::array<std::size_t, 4>, 6> cell_faces{
      {{3, 2, 1, 0}, {0, 1, 5, 4}, {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}, {4, 5, 6, 7}}};

  static std::array<std::int64_t, 4> face_of(Cell const& cell, std::size_t face) {
    std::array<std::int64_t, 4> vertices{};
    for (std::size_t v = 0; v < 4; ++v)
      vertices[v] = cell.vertices[cell_faces[face][v]];
    return vertices;
  }

  void number_entities() {
    for (Cell const& cell : cells_) {
      for (auto const& [a, b] : cell_edges)
        edges_.emplace(std::minmax(cell.vertices[a], cell.vertices[b]), std::ssize(edges_));
      for (std::size_t f = 0; f < 6; ++f)
        faces_.emplace(sorted(face_of(cell, f)), Face{std::ssize(faces_), face_of(cell, f)});
    }
  }

  /// The point of node (i, j, k) of a cell.
  [[nodiscard]] dealii::Point<3> node(std::size_t c, std::array<int, 3> const& at) const {
    int const p = order_;
    std::int64_t const n = p + 1, inner = p - 1;
    if (!continuous_)
      return points_[(c * static_cast<std::size_t>(n * n * n)) + static_cast<std::size_t>((at[2] * n + at[1]) * n + at[0])];
    Cell const& cell = cells_[c];
    auto const is_end = [p](int i) { return i == 0 || i == p; };
    int const ends = is_end(at[0]) + is_end(at[1]) + is_end(at[2]);
    // Corners around the bottom, then around the top.
    auto const place_of = [p](std::size_t v) {
      return std::array<int, 3>{(v + 1) / 2 % 2 == 1 ? p : 0, v / 2 % 2 == 1 ? p : 0, v >= 4 ? p : 0};
    };
    std::int64_t index = 0;
    if (ends == 3) {
      for (std::size_t v = 0; v < 8; ++v)
        if (place_of(v) == at)
          index = cell.vertices[v];
    } else if (ends == 2) {
      for (auto const& [a, b] : cell_edges) {
        auto const from = place_of(a), to = place_of(b);
        for (int i = 1; i < p; ++i) {
          std::array<int, 3> here{};
          for (std::size_t d = 0; d < 3; ++d)
            here[d] = from[d] + (to[d] - from[d]) / p * i;
          if (here == at) {
            bool const ascending = cell.vertices[a] < cell.vertices[b];
            index = n_vertices_ + edges_.at(std::minmax(cell.vertices[a], cell.vertices[b])) * inner + (ascending ? i : p - i) - 1;
          }
        }
      }
    } else if (ends == 1) {
      index = of_face(cell, at, place_of);
    } else {
      index = n_vertices_ + inner * std::ssize(edges_) + inner * inner * std::ssize(faces_) +
              inner * inner * inner * static_cast<std::int64_t>(c) + ((at[2] - 1) * inner + at[1] - 1) * inner + at[0] - 1;
      // Cubic lists the inner nodes as the corners of a cell, around the bottom and around the top.
      if (cubic_ && at[1] == 2)
        index += at[0] == 1 ? 1 : -1;
    }
    return points_[static_cast<std::size_t>(index)];
  }

  /// Nodes of a face are counted in its own frame: from its first vertex, along the edge to the second one fastest.
  template <class Places>
  [[nodiscard]] std::int64_t of_face(Cell const& cell, std::array<int, 3> const& at, Places const& place_of) const {
    int const p = order_;
    std::int64_t const inner = p - 1;
    for (std::size_t f = 0; f < 6; ++f) {
      auto const& corners = cell_faces[f];
      bool const on_face = [&] {
        for (std::size_t d = 0; d < 3; ++d)
          if (place_of(corners[0])[d] == place_of(corners[1])[d] && place_of(corners[0])[d] == place_of(corners[2])[d])
            return at[d] == place_of(corners[0])[d];
        return false;
      }();
      if (!on_face)
        continue;
      Face const& face = faces_.at(sorted(face_of(cell, f)));
      // The corners of this cell that are the first, second and fourth vertex of the face.
      auto const corner = [&](std::size_t v) {
        for (std::size_t w = 0; w < 4; ++w)
          if (cell.vertices[corners[w]] == face.vertices[v])
            return place_of(corners[w]);
        return place_of(corners[0]);
      };
      auto const origin = corner(0), first = corner(1), second = corner(3);
      std::int64_t u = 0, v = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        u += (at[d] - origin[d]) * (first[d] - origin[d]) / p;
        v += (at[d] - origin[d]) * (second[d] - origin[d]) / p;
      }
      return n_vertices_ + inner * std::ssize(edges_) + inner * inner * face.number + (v - 1) * inner + u - 1;
    }
    return 0;
  }

  RawMesh finish() {
    for (Cell const& cell : cells_)
      require_vertices(cell.vertices, cell.line);
    for (Quad const& quad : quads_)
      require_vertices(quad.vertices, quad.line);
    add_corners();
    add_groups();
    for (Quad const& quad : quads_) {
      builder_.add_quad(quad.vertices, quad.attribute);
      builder_.mesh().quads.back().line = quad.line;
    }
    if (order_ <= 1) {
      for (Cell const& cell : cells_) {
        builder_.add_hexahedron(cell.vertices, cell.attribute);
        builder_.mesh().cells.back().line = cell.line;
      }
      return builder_.finish();
    }
    add_curved_cells();
    return builder_.finish();
  }

  /// Sets of attributes as named groups of the cells and quadrilaterals that have them.
  void add_groups() {
    auto const add = [](std::vector<AttributeSet> const& sets, auto const& entities, std::vector<RawMesh::Group>& groups) {
      for (AttributeSet const& set : sets) {
        RawMesh::Group& group = groups.emplace_back();
        group.name = set.name;
        for (std::size_t i = 0; i < entities.size(); ++i)
          if (set.attributes.contains(entities[i].attribute))
            group.members.push_back(i);
      }
    };
    add(cell_sets_, cells_, builder_.mesh().cell_groups);
    add(quad_sets_, quads_, builder_.mesh().quad_groups);
  }

  template <std::size_t n>
  void require_vertices(std::array<std::int64_t, n> const& vertices, std::int64_t line) const {
    for (std::int64_t const vertex : vertices)
      if (vertex < 0 || vertex >= n_vertices_)
        text_.fail_at(line, "vertex " + std::to_string(vertex) + " is used, but there are vertices 0 to " +
                                std::to_string(n_vertices_ - 1) + " only");
  }

  void add_corners() {
    if (order_ == 0 || continuous_) {
      for (std::int64_t v = 0; v < n_vertices_; ++v) {
        auto const& x = points_[static_cast<std::size_t>(v)];
        builder_.add_vertex(v, x[0], x[1], x[2]);
      }
      return;
    }
    // Every cell has its own nodes: cells that share a vertex must agree about its place.
    int const p = order_;
    std::map<std::int64_t, dealii::Point<3>> places;
    for (std::size_t c = 0; c < cells_.size(); ++c)
      for (std::size_t v = 0; v < 8; ++v) {
        dealii::Point<3> const x = node(c, {(v + 1) / 2 % 2 == 1 ? p : 0, v / 2 % 2 == 1 ? p : 0, v >= 4 ? p : 0});
        double const size = node(c, {0, 0, 0}).distance(node(c, {p, p, p}));
        auto const [known, fresh] = places.emplace(cells_[c].vertices[v], x);
        if (!fresh && known->second.distance(x) > 1e-6 * size)
          text_.fail_at(cells_[c].line, "vertex " + std::to_string(cells_[c].vertices[v]) +
                                            " is at several places: this is a periodic mesh of MFEM, and periodic faces are not "
                                            "supported yet");
      }
    for (auto const& [vertex, x] : places)
      builder_.add_vertex(vertex, x[0], x[1], x[2]);
  }

  /// The nodes of each cell become equidistant ones of the same polynomials.
  void add_curved_cells() {
    auto const n = static_cast<std::size_t>(order_ + 1);
    dealii::QGaussLobatto<1> const rule(static_cast<unsigned>(n));
    std::vector<double> points_of_line;
    for (auto const& x : rule.get_points())
      points_of_line.push_back(x[0]);
    if (cubic_)
      points_of_line = {0, 1. / 3, 2. / 3, 1};
    std::int64_t next = n_vertices_;
    HexahedronNodes nodes{order_, {}};
    // The builder wants the corners first, around the bottom and around the top.
    std::vector<std::array<int, 3>> places;
    int const p = order_;
    for (std::size_t v = 0; v < 8; ++v)
      places.push_back({(v + 1) / 2 % 2 == 1 ? p : 0, v / 2 % 2 == 1 ? p : 0, v >= 4 ? p : 0});
    for (int k = 0; k <= p; ++k)
      for (int j = 0; j <= p; ++j)
        for (int i = 0; i <= p; ++i)
          if (std::find(places.begin(), places.begin() + 8, std::array<int, 3>{i, j, k}) == places.begin() + 8)
            places.push_back({i, j, k});
    for (auto const& [i, j, k] : places)
      nodes.places.push_back((k * (p + 1) + j) * (p + 1) + i);
    std::vector<dealii::Point<3>> of_cell(n * n * n);
    for (std::size_t c = 0; c < cells_.size(); ++c) {
      for (int k = 0; k <= p; ++k)
        for (int j = 0; j <= p; ++j)
          for (int i = 0; i <= p; ++i)
            of_cell[static_cast<std::size_t>((k * (p + 1) + j) * (p + 1) + i)] = node(c, {i, j, k});
      to_equidistant(points_of_line, of_cell);
      std::vector<std::int64_t> numbers(cells_[c].vertices.begin(), cells_[c].vertices.end());
      for (std::size_t i = 8; i < places.size(); ++i) {
        auto const& x = of_cell[static_cast<std::size_t>(nodes.places[i])];
        builder_.add_vertex(next, x[0], x[1], x[2]);
        numbers.push_back(next++);
      }
      builder_.add_hexahedron(numbers, nodes, cells_[c].attribute);
      builder_.mesh().cells.back().line = cells_[c].line;
    }
  }

  struct Quad {
    std::int64_t attribute, line;
    std::array<std::int64_t, 4> vertices;
  };
  struct Face {
    std::int64_t number;
    std::array<std::int64_t, 4> vertices;
  };
  MeshText& text_;
  RawMeshBuilder builder_;
  std::vector<Cell> cells_;
  std::vector<Quad> quads_;
  std::int64_t n_vertices_ = 0;
  std::vector<dealii::Point<3>> points_;  ///< of vertices, or all nodes of the curved mesh
  int order_ = 0;                         ///< of the nodes; 0: there are none
  bool continuous_ = true;
  bool cubic_ = false;  ///< H1 of order 3 with equidistant nodes, those inside a cell in an order of their own
  std::vector<AttributeSet> cell_sets_, quad_sets_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> edges_;
  std::map<std::array<std::int64_t, 4>, Face> faces_;
};

}  // namespace

RawMesh read_mfem(MeshText& text) {
  return MfemReader(text).read();
}

}  // namespace poisson::assembly
