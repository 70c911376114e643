#include "assembly/system/boundary_flux.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/flows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace poisson::assembly {
namespace {

constexpr std::int64_t faces_per_part = 256;

/// -k du/dn times a basis function, or 1, integrated over the faces of one boundary where u is prescribed, or tied to another
/// boundary; or of a surface inside the mesh where u is prescribed, from one side.
struct FaceShare {
  std::int32_t unknown;
  unsigned id;
  double flux;    ///< int k du/dn phi
  double weight;  ///< int phi
  std::int32_t cell;
  bool inside;  ///< of a surface inside the mesh
};
/// Holds the integrals of a FaceShare for a surface inside the mesh that has no condition. Its k du/dn is that from the first side,
/// as the mean of both sides.
struct FreeShare {
  std::int32_t unknown;
  unsigned id;
  double flux, weight;
  std::array<std::int32_t, 2> cells;
};
/// What a cell, or a face of it, contributes to an unknown.
struct Residual {
  std::int32_t unknown;  ///< or its place among those on such faces
  std::int32_t cell;
  double value;
};

/// One cell after the other, with what a thread needs of its own. Cells of a box have a map that is written down, and loops over
/// the eight functions of order 1 have a constant length: most of the time of fluxes goes there.
class Cell {
public:
  Cell(Space const& space, ReferenceElement const& element, FluxTables const& tables, ProblemData const& problem,
       std::span<double const> u, std::span<double const> u_low)
      : data(problem),
        dofs(space.n_local),
        space_(space),
        element_(element),
        tables_(tables),
        geometry_(space),
        u_(u),
        u_low_(u_low),
        local_(space.n_local),
        on_box_(space.box.has_value()) {}

  void reset(std::int64_t cell) {
    space_.dofs(cell, dofs.data());
    if (on_box_) {
      auto const index = space_.box_cell(cell);
      for (int d = 0; d < 3; ++d) {
        low_[d] = space_.box_coordinate(d, index[d] * space_.order);
        high_[d] = space_.box_coordinate(d, (index[d] + 1) * space_.order);
      }
    } else {
      geometry_.reset(cell, dofs.data());
    }
    if (unsigned const material = space_.material(cell); coefficient_ == nullptr || material != material_) {
      material_ = material;
      coefficient_ = &data.coefficient(material);
      density_ = &data.source(material);
      constant_k_.reset();
      if (coefficient_->is_constant())
        constant_k_ = (*coefficient_)(middle(), material);
    }
    // Less the first value, which no gradient sees: what is left has all its digits.
    base_ = u_[dofs[0]];
    for (std::size_t i = 0; i < local_.size(); ++i)
      local_[i] = u_[dofs[i]] - base_;
    if (!u_low_.empty())
      for (std::size_t i = 0; i < local_.size(); ++i)
        local_[i] += u_low_[dofs[i]] - u_low_[dofs[0]];
  }

  struct FacePoint {
    Point3 x;
    double weight;       ///< dS
    double u, conormal;  ///< u, and k du/dn
  };
  [[nodiscard]] FacePoint face_point(int face, int q) const {
    PointTables const &shape = tables_.face_shape[face], &map = tables_.face_map[face];
    auto const at = place(map, q, element_.face_points[face][q]);
    int const d = face / 2;
    double const sign = face % 2 == 0 ? -1 : 1;
    Point3 const normal{sign * at.cofactors[d], sign * at.cofactors[3 + d], sign * at.cofactors[6 + d]};  // times dS
    double const size = std::sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
    double const weight = element_.face_weights[q];
    auto const flux = conduct(at, gradient(shape, q), true);
    double value = base_;
    for (int i = 0; i < space_.n_local; ++i)
      value += shape.values[static_cast<std::size_t>(q) * space_.n_local + i] * local_[i];
    return {at.x, weight * size, value, (normal[0] * flux[0] + normal[1] * flux[1] + normal[2] * flux[2]) / size};
  }

  /// -k grad u at a point of a face.
  [[nodiscard]] Point3 flux(int face, int q) const {
    auto const inwards =
        conduct(place(tables_.face_map[face], q, element_.face_points[face][q]), gradient(tables_.face_shape[face], q), true);
    return {-inwards[0], -inwards[1], -inwards[2]};
  }

  /// int k grad u . grad phi_i - int f phi_i over the cell, for all of its unknowns.
  void residual(std::vector<double>& out) const {
    if (space_.n_local == 8)
      residual<8>(out);
    else
      residual<0>(out);
  }

  /// Extends the range by that of k at the points of the cell.
  void range_of_k(double& smallest, double& largest) const {
    for (int q = 0; q < (constant_k_ ? 1 : tables_.shape.n_points); ++q) {
      Tensor const k = constant_k_ ? *constant_k_ : (*coefficient_)(place(tables_.map, q, element_.volume_points[q]).x, material_);
      smallest = std::min({smallest, k.xx(), k.yy(), k.zz()});
      largest = std::max({largest, k.xx(), k.yy(), k.zz()});
    }
  }

  ProblemData const& data;
  std::vector<std::int32_t> dofs;

private:
  struct Place {
    Point3 x;
    std::array<double, 9> cofactors;  ///< det J J^-T
    double determinant;
  };
  /// At point q of the tables, whose reference coordinates these are.
  [[nodiscard]] Place place(PointTables const& map, int q, Point3 const& reference) const {
    if (on_box_) {
      Point3 x{}, edge{};
      for (int d = 0; d < 3; ++d) {
        x[d] = (1 - reference[d]) * low_[d] + reference[d] * high_[d];
        edge[d] = high_[d] - low_[d];
      }
      return {x, {edge[1] * edge[2], 0, 0, 0, edge[0] * edge[2], 0, 0, 0, edge[0] * edge[1]}, edge[0] * edge[1] * edge[2]};
    }
    auto const n = static_cast<std::size_t>(geometry_.n_nodes());
    auto const j = geometry_.jacobian(map.gradients.data() + 3 * static_cast<std::size_t>(q) * n);
    auto const c = cofactors(j);
    return {geometry_.point(map.values.data() + static_cast<std::size_t>(q) * n), c, j[0] * c[0] + j[1] * c[1] + j[2] * c[2]};
  }
  /// The gradient of u with respect to reference coordinates.
  [[nodiscard]] Point3 gradient(PointTables const& shape, int q) const {
    return space_.n_local == 8 ? gradient<8>(shape, q) : gradient<0>(shape, q);
  }
  /// `fixed`: n_local, or 0 where it is not known here.
  template <int fixed>
  [[nodiscard]] Point3 gradient(PointTables const& shape, int q) const {
    int const n = fixed > 0 ? fixed : space_.n_local;
    Point3 g{};
    for (int d = 0; d < 3; ++d) {
      double const* const row = shape.gradients.data() + (3 * static_cast<std::size_t>(q) + d) * n;
      for (int i = 0; i < n; ++i)
        g[d] += row[i] * local_[i];
    }
    return g;
  }
  template <int fixed>
  void residual(std::vector<double>& out) const {
    out.assign(local_.size(), 0);
    PointTables const &shape = tables_.shape, &map = tables_.map;
    int const n = fixed > 0 ? fixed : space_.n_local;
    for (int q = 0; q < shape.n_points; ++q) {
      auto const at = place(map, q, element_.volume_points[q]);
      double const weight = element_.weights[q], f = weight * at.determinant * density_->finite(at.x, "the source");
      auto const flux = conduct(at, gradient<fixed>(shape, q));
      Point3 reference{};  // det J J^-1 flux
      for (int d = 0; d < 3; ++d)
        reference[d] = weight * (at.cofactors[d] * flux[0] + at.cofactors[3 + d] * flux[1] + at.cofactors[6 + d] * flux[2]);
      double const* const value = shape.values.data() + static_cast<std::size_t>(q) * n;
      double const* const g = shape.gradients.data() + 3 * static_cast<std::size_t>(q) * n;
      for (int i = 0; i < n; ++i)
        out[i] += reference[0] * g[i] + reference[1] * g[n + i] + reference[2] * g[2 * n + i] - f * value[i];
    }
  }
  /// k grad u; k of this cell, where the place is on its surface.
  [[nodiscard]] Point3 conduct(Place const& at, Point3 const& g, bool on_surface = false) const {
    Point3 real{};
    for (int d = 0; d < 3; ++d)
      real[d] = (at.cofactors[3 * d] * g[0] + at.cofactors[3 * d + 1] * g[1] + at.cofactors[3 * d + 2] * g[2]) / at.determinant;
    if (constant_k_)
      return *constant_k_ * real;
    return (on_surface ? coefficient_->seen_from(middle(), at.x, material_) : (*coefficient_)(at.x, material_)) * real;
  }
  [[nodiscard]] Point3 middle() const {
    if (!on_box_)
      return geometry_.middle();
    return {(low_[0] + high_[0]) / 2, (low_[1] + high_[1]) / 2, (low_[2] + high_[2]) / 2};
  }

  Space const& space_;
  ReferenceElement const& element_;
  FluxTables const& tables_;
  CellGeometry geometry_;
  std::span<double const> u_, u_low_;
  std::vector<double> local_;  ///< u at the unknowns less base_
  double base_ = 0;
  bool on_box_;
  Point3 low_{}, high_{};  ///< the corners of a cell of a box
  unsigned material_ = 0;
  Coefficient const* coefficient_ = nullptr;  ///< of the material, as the source and a k that is constant
  Function const* density_ = nullptr;
  std::optional<Tensor> constant_k_;
};

/// The cells of a box, x fastest, that have a face in common with its surface.
std::vector<std::int64_t> cells_at_faces(std::array<std::int64_t, 3> const& cells) {
  std::vector<std::int64_t> result;
  auto const at_end = [&](std::size_t d, std::int64_t i) { return i == 0 || i == cells[d] - 1; };
  for (std::int64_t k = 0; k < cells[2]; ++k)
    for (std::int64_t j = 0; j < cells[1]; ++j) {
      std::int64_t const first = (k * cells[1] + j) * cells[0];
      std::int64_t const step = at_end(2, k) || at_end(1, j) ? 1 : std::max<std::int64_t>(cells[0] - 1, 1);
      for (std::int64_t i = 0; i < cells[0]; i += step)
        result.push_back(first + i);
    }
  return result;
}

/// What a part of the faces found.
struct FaceSums {
  std::map<unsigned, BoundaryFlux> known;  ///< areas, and fluxes of boundaries with Neumann or Robin values
  std::vector<FaceShare> shares;           ///< of unknowns where u is prescribed or tied
  std::vector<FreeShare> free;
  std::vector<Residual> loads;      ///< Neumann and Robin values times basis functions
  std::vector<FaceShare> surfaces;  ///< of surfaces inside the mesh; flux is 0, or the load where they have Neumann values
};

/// int k du/dn phi over a face, out of its cell, and int phi, by node of the face.
struct FaceIntegrals {
  std::vector<double> flux, weight;
};
FaceIntegrals integrals_of(Cell const& cell, ReferenceElement const& element, FluxTables const& tables, int face) {
  auto const& nodes = tables.face_nodes[face];
  FaceIntegrals result{std::vector<double>(nodes.size(), 0), std::vector<double>(nodes.size(), 0)};
  for (int q = 0; q < static_cast<int>(element.face_weights.size()); ++q) {
    auto const at = cell.face_point(face, q);
    double const* const values =
        tables.face_shape[face].values.data() + static_cast<std::size_t>(q) * static_cast<std::size_t>(element.n_nodes);
    for (std::size_t a = 0; a < nodes.size(); ++a) {
      result.flux[a] += at.weight * at.conormal * values[nodes[a]];
      result.weight[a] += at.weight * values[nodes[a]];
    }
  }
  return result;
}

/// k du/dn as a natural condition gives it.
double conormal_of(BoundaryData const& condition, Cell::FacePoint const& at) {
  double const g = condition.value.finite(at.x, "the boundary value");
  return condition.type == BoundaryType::robin ? g - condition.alpha.finite(at.x, "alpha") * at.u : g;
}

/// Integrates the k du/dn of a natural condition over a face times the basis functions, by node of the face.
std::vector<double> loads_of(BoundaryData const& condition, Cell const& cell, ReferenceElement const& element,
                             FluxTables const& tables, int face) {
  auto const& nodes = tables.face_nodes[face];
  std::vector<double> load(nodes.size(), 0);
  for (int q = 0; q < static_cast<int>(element.face_weights.size()); ++q) {
    auto const at = cell.face_point(face, q);
    double const g = at.weight * conormal_of(condition, at);
    double const* const values =
        tables.face_shape[face].values.data() + static_cast<std::size_t>(q) * static_cast<std::size_t>(element.n_nodes);
    for (std::size_t a = 0; a < nodes.size(); ++a)
      load[a] += g * values[nodes[a]];
  }
  return load;
}

/// Adds a face inside the mesh, both of whose cells are here.
void add_inner_face(InnerFace const& face, Space const& space, ReferenceElement const& element, FluxTables const& tables,
                    Cell& cell, FaceSums& sums) {
  BoundaryData const* const condition = cell.data.inner_at(face.id);
  if (condition == nullptr && space.boundary_ids.contains(face.id))
    return;
  cell.reset(face.cells[0]);
  auto const& nodes = tables.face_nodes[face.faces[0]];
  FaceIntegrals const first = integrals_of(cell, element, tables, face.faces[0]);
  std::vector<std::int32_t> unknowns;
  for (int const node : nodes)
    unknowns.push_back(cell.dofs[node]);
  if (condition != nullptr && condition->is_natural()) {
    auto const load = loads_of(*condition, cell, element, tables, face.faces[0]);
    for (std::size_t a = 0; a < nodes.size(); ++a) {
      sums.surfaces.push_back({unknowns[a], face.id, load[a], first.weight[a], face.cells[0], true});
      for (std::int32_t const side : face.cells)
        space.for_free(unknowns[a], [&](std::int32_t unknown, double share) {
          sums.loads.push_back({unknown, side, share * load[a] / 2});
        });
    }
    return;
  }
  cell.reset(face.cells[1]);
  FaceIntegrals const second = integrals_of(cell, element, tables, face.faces[1]);
  auto const& others = tables.face_nodes[face.faces[1]];
  for (std::size_t a = 0; a < nodes.size(); ++a) {
    std::size_t b = 0;
    while (cell.dofs[others[b]] != unknowns[a])
      ++b;
    sums.surfaces.push_back({unknowns[a], face.id, 0, first.weight[a], face.cells[0], true});
    space.for_free(unknowns[a], [&](std::int32_t unknown, double share) {
      if (condition != nullptr) {
        sums.shares.push_back({unknown, face.id, share * first.flux[a], share * first.weight[a], face.cells[0], true});
        sums.shares.push_back({unknown, face.id, share * second.flux[b], share * second.weight[b], face.cells[1], true});
      } else {
        sums.free.push_back({unknown, face.id, share * (first.flux[a] - second.flux[b]) / 2, share * first.weight[a], face.cells});
      }
    });
  }
}

/// The cells around nodes on surfaces inside the mesh, by the side that they are on. Where nodes hang, a cell is around those that
/// its nodes depend on.
class Sides {
public:
  /// Faces in `cuts` (Space::face_vertices) divide sides. The arguments outlive it.
  Sides(Space const& space, FluxTables const& tables, std::set<std::array<std::int32_t, 4>> const& cuts)
      : space_(space), tables_(tables), cuts_(cuts), dofs_(space.n_local) {}

  /// Divides these cells around a node, ascending, and numbers the sides. A face is known by the unknowns that its nodes follow.
  /// Where nodes hang, those of a small face follow nodes of the larger one that it is part of: what one follows is all that the
  /// other has.
  void add(std::int32_t unknown, std::vector<std::int32_t> const& cells) {
    std::vector<std::size_t> label(cells.size());
    std::iota(label.begin(), label.end(), std::size_t{0});
    auto const join = [&](std::size_t a, std::size_t b) {
      std::size_t const low = std::min(label[a], label[b]), high = std::max(label[a], label[b]);
      std::replace(label.begin(), label.end(), high, low);
    };
    std::map<std::vector<std::int32_t>, std::size_t> seen;  // faces, with a cell that has them
    bool hangs = false;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      space_.dofs(cells[i], dofs_.data());
      for (int face = 0; face < 6; ++face) {
        std::vector<std::int32_t> follows;
        for (int const node : tables_.face_nodes[face])
          space_.for_free(dofs_[node], [&](std::int32_t free, double) {
            follows.push_back(free);
            hangs = hangs || free != dofs_[node];
          });
        std::sort(follows.begin(), follows.end());
        follows.erase(std::unique(follows.begin(), follows.end()), follows.end());
        if (!std::binary_search(follows.begin(), follows.end(), unknown) || cuts_.contains(space_.face_vertices(cells[i], face)))
          continue;
        if (auto const [other, is_new] = seen.emplace(std::move(follows), i); !is_new)
          join(i, other->second);
      }
    }
    if (hangs)
      for (auto const& [one, of_one] : seen)
        for (auto const& [other, of_other] : seen)
          if (std::includes(one.begin(), one.end(), other.begin(), other.end()))
            join(of_one, of_other);
    std::map<std::size_t, std::size_t> number;
    for (std::size_t i = 0; i < cells.size(); ++i)
      place_[{unknown, cells[i]}] = number.emplace(label[i], n_).second ? n_++ : number[label[i]];
  }
  [[nodiscard]] std::size_t size() const { return n_; }
  /// Precondition: the cell is one of those around the unknown.
  [[nodiscard]] std::size_t operator()(std::int32_t unknown, std::int32_t cell) const { return place_.at({unknown, cell}); }
  /// All sides of a node; empty: it was not added.
  [[nodiscard]] std::set<std::size_t> of(std::int32_t unknown) const {
    std::set<std::size_t> result;
    for (auto at = place_.lower_bound({unknown, -1}); at != place_.end() && at->first.first == unknown; ++at)
      result.insert(at->second);
    return result;
  }

private:
  Space const& space_;
  FluxTables const& tables_;
  std::set<std::array<std::int32_t, 4>> const& cuts_;
  std::vector<std::int32_t> dofs_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> place_;
  std::size_t n_ = 0;
};

}  // namespace

FluxTables::FluxTables(Space const& space, ReferenceElement const& element)
    : shape(tabulate(element.nodes, element.volume_points)),
      map(tabulate(geometry_nodes_1d(space, element), element.volume_points)) {
  for (int face = 0; face < 6; ++face) {
    face_shape[face] = tabulate(element.nodes, element.face_points[face]);
    face_map[face] = tabulate(geometry_nodes_1d(space, element), element.face_points[face]);
    face_nodes[face] = element.face_nodes(face);
  }
}

BoundaryFluxes boundary_fluxes(Space const& space, ReferenceElement const& element, ProblemData const& data,
                               std::span<double const> u, std::span<std::uint8_t const> counted, std::span<double const> u_low,
                               std::span<std::uint8_t const> counted_cells) {
  return boundary_fluxes(space, element, FluxTables(space, element), data, u, counted, u_low, counted_cells);
}

BoundaryFluxes boundary_fluxes(Space const& space, ReferenceElement const& element, FluxTables const& tables,
                               ProblemData const& data, std::span<double const> u, std::span<std::uint8_t const> counted,
                               std::span<double const> u_low, std::span<std::uint8_t const> counted_cells) {
  auto const make_cell = [&] { return Cell(space, element, tables, data, u, u_low); };
  auto const n_faces = static_cast<std::int64_t>(space.boundary_faces.size());
  HostVector<std::int32_t> place;  // of counted unknowns on such faces among all of these; else -1
  place.resize(space.n_dofs, -1);
  std::int32_t n_fixed = 0;

  auto const n_inner = static_cast<std::int64_t>(space.inner_faces.size());
  std::int64_t const n_of_boundary = n_parts(n_faces, faces_per_part);
  std::vector<FaceSums> parts(n_of_boundary + n_parts(n_inner, faces_per_part));
  parallel_for(static_cast<std::int64_t>(parts.size()), make_cell, [&](Cell& cell, std::int64_t const p) {
    FaceSums& sums = parts[p];
    if (p >= n_of_boundary) {
      auto const [begin, end] = part(n_inner, faces_per_part, p - n_of_boundary);
      for (auto i = begin; i < end; ++i)
        if (InnerFace const& face = space.inner_faces[i]; face.cells[0] >= 0 && face.cells[1] >= 0)
          add_inner_face(face, space, element, tables, cell, sums);
      return;
    }
    auto const [begin, end] = part(n_faces, faces_per_part, p);
    std::vector<double> flux, weight;
    sums.shares.reserve(static_cast<std::size_t>((end - begin) * (element.order + 1) * (element.order + 1)));
    for (auto i = begin; i < end; ++i) {
      BoundaryFace const& face = space.boundary_faces[i];
      auto const& nodes = tables.face_nodes[face.face];
      bool const face_counts = counted_cells.empty() || counted_cells[face.cell] != 0;
      if (!face_counts && !counted.empty()) {
        space.dofs(face.cell, cell.dofs.data());
        if (std::none_of(nodes.begin(), nodes.end(), [&](int node) { return counted[cell.dofs[node]] != 0; }))
          continue;
      }
      cell.reset(face.cell);
      auto const& condition = cell.data.boundary_at(face.boundary_id);
      flux.assign(nodes.size(), 0);
      weight.assign(nodes.size(), 0);
      BoundaryFlux not_counted;
      BoundaryFlux& known = face_counts ? sums.known[face.boundary_id] : not_counted;
      for (int q = 0; q < static_cast<int>(element.face_weights.size()); ++q) {
        auto const at = cell.face_point(face.face, q);
        known.area += at.weight;
        known.integral_u += at.weight * at.u;
        double conormal = at.conormal;
        if (condition.is_natural()) {
          conormal = conormal_of(condition, at);
          known.flux -= at.weight * conormal;
        }
        double const* const values = tables.face_shape[face.face].values.data() + static_cast<std::size_t>(q) * space.n_local;
        for (std::size_t a = 0; a < nodes.size(); ++a) {
          flux[a] += at.weight * conormal * values[nodes[a]];
          weight[a] += at.weight * values[nodes[a]];
        }
      }
      for (int const node : nodes) {
        known.min = std::min(known.min, u[cell.dofs[node]]);
        known.max = std::max(known.max, u[cell.dofs[node]]);
      }
      for (std::size_t a = 0; a < nodes.size(); ++a)
        space.for_free(cell.dofs[nodes[a]], [&](std::int32_t unknown, double share) {
          if (condition.is_natural())
            sums.loads.push_back({unknown, face.cell, share * flux[a]});
          else
            sums.shares.push_back({unknown, face.boundary_id, share * flux[a], share * weight[a], face.cell, false});
        });
    }
  });

  auto const counts = [&](std::int32_t unknown) { return counted.empty() || counted[unknown] != 0; };
  BoundaryFluxes found;
  std::map<unsigned, BoundaryFlux>& result = found.boundaries;
  for (FaceSums const& sums : parts) {
    for (auto const& [id, known] : sums.known) {
      result[id].area += known.area;
      result[id].flux += known.flux;
      result[id].integral_u += known.integral_u;
      result[id].min = std::min(result[id].min, known.min);
      result[id].max = std::max(result[id].max, known.max);
    }
    // Every node counts once, so that the sums over parts of a mesh are those of the whole.
    for (FaceShare const& share : sums.surfaces)
      if (counts(share.unknown)) {
        double const value = u[share.unknown];
        found.surfaces[share.id].add({share.weight, -share.flux, share.weight * value, value, value});
      }
    auto const take = [&](auto const& shares) {
      for (auto const& share : shares)
        if (place[share.unknown] < 0 && counts(share.unknown))
          place[share.unknown] = n_fixed++;
    };
    take(sums.shares);
    take(sums.free);
  }
  if (n_fixed == 0)
    return found;
  auto const for_shares = [&](auto const& action) {
    for (FaceSums const& sums : parts)
      for (FaceShare const& share : sums.shares)
        if (std::int32_t const at = place[share.unknown]; at >= 0)
          action(share, at);
  };
  // Nodes on periodic boundaries, and those that have sides: of free surfaces, but for the former.
  std::vector<std::uint8_t> is_periodic(n_fixed, 0), has_sides(n_fixed, 0);
  if (data.has_periodic_boundaries())
    for_shares([&](FaceShare const& share, std::int32_t at) {
      if (!share.inside && data.boundary_at(share.id).type == BoundaryType::periodic)
        is_periodic[at] = 1;
    });
  for (FaceSums const& sums : parts)
    for (FreeShare const& share : sums.free)
      if (std::int32_t const at = place[share.unknown]; at >= 0 && is_periodic[at] == 0)
        has_sides[at] = 1;

  // The residuals of these unknowns, from the cells around them: of a box those at its faces.
  bool const at_surface_of_box = space.box && space.inner_faces.empty();
  std::vector<std::int64_t> const at_faces = at_surface_of_box ? cells_at_faces(space.box->cells) : std::vector<std::int64_t>{};
  std::int64_t const n_candidates = at_surface_of_box ? static_cast<std::int64_t>(at_faces.size()) : space.n_cells;
  std::vector<std::vector<Residual>> of_cells(n_parts(n_candidates, space.cells_per_part));
  struct State {
    Cell cell;
    std::vector<std::int32_t> dofs;
    std::vector<double> residual;
  };
  parallel_for(
      static_cast<std::int64_t>(of_cells.size()),
      [&] {
        return State{make_cell(), std::vector<std::int32_t>(space.n_local), {}};
      },
      [&](State& state, std::int64_t const p) {
        auto const [begin, end] = part(n_candidates, space.cells_per_part, p);
        for (auto candidate = begin; candidate < end; ++candidate) {
          std::int64_t const c = at_surface_of_box ? at_faces[candidate] : candidate;
          space.dofs(c, state.dofs.data());
          bool counts_here = false;
          for (std::int32_t const dof : state.dofs)
            space.for_free(dof, [&](std::int32_t unknown, double) { counts_here = counts_here || place[unknown] >= 0; });
          if (!counts_here)
            continue;
          state.cell.reset(c);
          state.cell.residual(state.residual);
          for (std::size_t i = 0; i < state.dofs.size(); ++i)
            space.for_free(state.dofs[i], [&](std::int32_t unknown, double share) {
              if (std::int32_t const at = place[unknown]; at >= 0)
                of_cells[p].push_back({at, static_cast<std::int32_t>(c), share * state.residual[i]});
            });
        }
      });
  std::vector<double> residual(n_fixed, 0);
  std::map<std::int32_t, std::vector<std::int32_t>> around;  // the cells around nodes that have sides
  for (auto const& list : of_cells)
    for (Residual const& r : list) {
      residual[r.unknown] += r.value;
      if (has_sides[r.unknown] != 0)
        around[r.unknown].push_back(r.cell);
    }
  std::set<std::array<std::int32_t, 4>> cuts;
  if (!around.empty())
    for (InnerFace const& face : space.inner_faces)
      if (BoundaryData const* const condition = data.inner_at(face.id); condition == nullptr || !condition->is_natural()) {
        std::size_t const side = face.cells[0] >= 0 ? 0 : 1;
        cuts.insert(space.face_vertices(face.cells[side], face.faces[side]));
      }
  for (auto& [at, cells] : around) {  // several nodes of a cell may depend on one
    std::sort(cells.begin(), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  }
  Sides sides(space, tables, cuts);
  std::vector<std::int32_t> unknown_at(n_fixed, -1);
  for (std::int32_t unknown = 0; !around.empty() && unknown < space.n_dofs; ++unknown)
    if (place[unknown] >= 0)
      unknown_at[place[unknown]] = unknown;
  for (auto const& [at, cells] : around)
    sides.add(unknown_at[at], cells);
  std::vector<double> of_sides(sides.size(), 0);
  for (auto const& list : of_cells)
    for (Residual const& r : list)
      if (has_sides[r.unknown] != 0)
        of_sides[sides(unknown_at[r.unknown], r.cell)] += r.value;
  auto const subtract = [&](std::int32_t unknown, std::int32_t cell, double load) {
    std::int32_t const at = place[unknown];
    if (at < 0)
      return;
    residual[at] -= load;
    if (has_sides[at] == 0)
      return;
    if (cell >= 0) {
      of_sides[sides(unknown, cell)] -= load;
      return;
    }
    auto const all = sides.of(unknown);
    for (std::size_t const side : all)
      of_sides[side] -= load / static_cast<double>(all.size());
  };
  for (FaceSums const& sums : parts)
    for (Residual const& load : sums.loads)
      subtract(load.unknown, load.cell, load.value);
  for (auto const& load : data.point_loads.loads)
    space.for_free(load.unknown, [&](std::int32_t unknown, double share) { subtract(unknown, load.cell, share * load.value); });

  // What the boundaries of an unknown have together; then the share of each.
  std::vector<double> weight(n_fixed, 0), rest = residual;
  for_shares([&](FaceShare const& share, std::int32_t at) {
    weight[at] += share.weight;
    rest[at] -= share.flux;
  });
  using Boundary = std::pair<unsigned, bool>;  // id, and whether it is a surface inside the mesh
  std::map<Boundary, double> conormal;
  std::pair<Boundary const, double>* last = nullptr;  // most shares are of the boundary of the share before
  std::map<std::pair<std::int32_t, Boundary>, PeriodicFlux> periodic;
  std::vector<Flow> flows;        // of nodes that have sides
  std::vector<Boundary> flow_of;  // the boundary that they leave through
  std::vector<double> sign_of;
  for_shares([&](FaceShare const& share, std::int32_t at) {
    Boundary const boundary{share.id, share.inside};
    if (has_sides[at] != 0) {
      flows.push_back({sides(share.unknown, share.cell), Flow::outside, share.flux, std::abs(share.weight)});
      flow_of.push_back(boundary);
      sign_of.push_back(1);
      return;
    }
    if (is_periodic[at] == 0) {
      if (last == nullptr || last->first != boundary)
        last = &*conormal.try_emplace(boundary, 0).first;
      last->second += share.flux + share.weight / weight[at] * rest[at];
      return;
    }
    PeriodicFlux& flux = periodic[{share.unknown, boundary}];
    flux.node = {share.id, false, share.unknown, space.point(share.unknown)};
    flux.inside = share.inside;
    flux.conormal += share.flux;
    flux.weight += share.weight;
    flux.residual = residual[at];
  });
  for (FaceSums const& sums : parts)
    for (FreeShare const& share : sums.free) {
      std::int32_t const at = place[share.unknown];
      if (at < 0)
        continue;
      double const sign = space.material(share.cells[0]) > space.material(share.cells[1]) ? -1 : 1;
      if (is_periodic[at] != 0) {
        conormal[{share.id, true}] += sign * share.flux;
        continue;
      }
      flows.push_back(
          {sides(share.unknown, share.cells[0]), sides(share.unknown, share.cells[1]), share.flux, std::abs(share.weight)});
      flow_of.emplace_back(share.id, true);
      sign_of.push_back(sign);
    }
  correct_flows(of_sides, flows);
  for (std::size_t i = 0; i < flows.size(); ++i)
    conormal[flow_of[i]] += sign_of[i] * flows[i].value;
  for (auto const& [boundary, value] : conormal)
    (boundary.second ? found.surfaces : result)[boundary.first].flux -= value;
  for (auto const& [of, flux] : periodic)
    found.periodic.push_back(flux);
  return found;
}

SolutionResidual solution_residual(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                   std::span<double const> u, std::span<double const> u_low) {
  FluxTables const tables(space, element);
  SolutionResidual result;
  HostVector<double>& values = result.values;
  values.resize(space.n_dofs, 0.0);
  struct State {
    Cell cell;
    std::vector<double> residual;
  };
  struct Range {
    double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  };
  std::vector<Range> ranges(n_parts(space.n_cells, space.cells_per_part));
  for (auto const& parts : space.color_parts())
    parallel_for(
        static_cast<std::int64_t>(parts.size()),
        [&] {
          return State{Cell(space, element, tables, data, u, u_low), {}};
        },
        [&](State& state, std::int64_t const i) {
          auto const [begin, end] = part(space.n_cells, space.cells_per_part, parts[i]);
          for (auto c = begin; c < end; ++c) {
            state.cell.reset(c);
            state.cell.residual(state.residual);
            for (std::size_t a = 0; a < state.residual.size(); ++a)
              values[state.cell.dofs[a]] -= state.residual[a];
            state.cell.range_of_k(ranges[parts[i]].smallest, ranges[parts[i]].largest);
          }
        });
  Range range;
  for (Range const& of_part : ranges) {
    range.smallest = std::min(range.smallest, of_part.smallest);
    range.largest = std::max(range.largest, of_part.largest);
  }
  result.smallest_k = range.smallest;
  result.largest_k = range.largest;

  Cell cell(space, element, tables, data, u, u_low);
  auto const add_loads = [&](BoundaryData const* condition, std::int64_t of_cell, int face) {
    if (condition == nullptr || !condition->is_natural())
      return;
    cell.reset(of_cell);
    std::vector<int> const& nodes = tables.face_nodes[face];
    auto const load = loads_of(*condition, cell, element, tables, face);
    for (std::size_t a = 0; a < nodes.size(); ++a)
      values[cell.dofs[nodes[a]]] += load[a];
  };
  for (BoundaryFace const& face : space.boundary_faces)
    add_loads(&cell.data.boundary_at(face.boundary_id), face.cell, face.face);
  for (InnerFace const& face : space.inner_faces) {
    std::size_t const side = face.cells[0] >= 0 ? 0 : 1;
    add_loads(cell.data.inner_at(face.id), face.cells[side], face.faces[side]);
  }
  for (auto const& load : data.point_loads.loads)
    values[load.unknown] += load.value;
  return result;
}

BoundarySurface boundary_surface(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                 std::span<double const> u) {
  // A second set of tables has the nodes of the faces in place of their Gauss points.
  FluxTables const tables(space, element);
  FluxTables at_nodes(space, element);
  for (int face = 0; face < 6; ++face) {
    std::vector<Point3> nodes;
    for (int const node : tables.face_nodes[face])
      nodes.push_back(element.node(node));
    at_nodes.face_shape[face] = tabulate(element.nodes, nodes);
    at_nodes.face_map[face] = tabulate(geometry_nodes_1d(space, element), nodes);
  }
  Cell cell(space, element, tables, data, u, {}), cell_at_nodes(space, element, at_nodes, data, u, {});

  std::vector<std::int32_t> unknowns;
  for (BoundaryFace const& face : space.boundary_faces) {
    space.dofs(face.cell, cell.dofs.data());
    for (int const node : tables.face_nodes[face.face])
      unknowns.push_back(cell.dofs[node]);
  }
  std::sort(unknowns.begin(), unknowns.end());
  unknowns.erase(std::unique(unknowns.begin(), unknowns.end()), unknowns.end());

  BoundarySurface surface;
  for (std::int32_t const unknown : unknowns) {
    Point3 const x = space.point(unknown);
    surface.points.insert(surface.points.end(), x.begin(), x.end());
    surface.u.push_back(u[unknown]);
    surface.unknowns.push_back(unknown);
  }
  surface.flux.resize(3 * unknowns.size());
  std::vector<int>& faces_around = surface.faces_around;
  faces_around.resize(unknowns.size());
  int const p = space.order;
  std::vector<std::int64_t> own(tables.face_nodes[0].size());
  for (BoundaryFace const& face : space.boundary_faces) {
    cell.reset(face.cell);
    cell_at_nodes.reset(face.cell);
    auto const& nodes = tables.face_nodes[face.face];
    for (std::size_t a = 0; a < nodes.size(); ++a) {
      own[a] = std::lower_bound(unknowns.begin(), unknowns.end(), cell.dofs[nodes[a]]) - unknowns.begin();
      auto const flux = cell_at_nodes.flux(face.face, static_cast<int>(a));
      for (int d = 0; d < 3; ++d)
        surface.flux[3 * own[a] + d] += flux[d];
      ++faces_around[own[a]];
    }
    double area = 0, outward = 0;
    for (int q = 0; q < static_cast<int>(element.face_weights.size()); ++q) {
      auto const at = cell.face_point(face.face, q);
      area += at.weight;
      outward -= at.weight * at.conormal;
    }
    // The lower one of the face's directions comes first. With the normal they are right-handed on +x, -y and +z.
    bool const counterclockwise = (face.face % 2 == 1) != (face.face / 2 == 1);
    for (int j = 0; j < p; ++j)
      for (int i = 0; i < p; ++i) {
        int const corner = j * (p + 1) + i;
        std::array<int, 4> around{corner, corner + 1, corner + p + 2, corner + p + 1};
        if (!counterclockwise)
          std::swap(around[1], around[3]);
        for (int const node : around)
          surface.quads.push_back(own[node]);
        surface.boundary.push_back(static_cast<int>(face.boundary_id));
        surface.material.push_back(static_cast<int>(space.material(face.cell)));
        surface.outward_flux.push_back(outward / area);
      }
  }
  for (std::size_t i = 0; i < surface.flux.size(); ++i)
    surface.flux[i] /= faces_around[i / 3];
  return surface;
}

}  // namespace poisson::assembly
