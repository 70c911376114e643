#include "assembly/space/space.hpp"

#include "assembly/image/labels.hpp"
#include "assembly/mesh/lattice_mesh.hpp"
#include "assembly/parallel.hpp"
#include "gpu/core/cofactors.hpp"
#include "gpu/core/memory.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace poisson::assembly {

namespace {

std::vector<double> const& unit_interval() {
  static std::vector<double> const ends{0, 1};
  return ends;
}

}  // namespace

Space::Space(BoxGrid const& grid, ReferenceElement const& element) : order(element.order), n_local(element.n_nodes), box(grid) {
  auto const [nx, ny, nz] = grid.cells;
  n_cells = nx * ny * nz;
  n_vertices = (nx + 1) * (ny + 1) * (nz + 1);
  n_dofs = 1;
  for (int d = 0; d < 3; ++d) {
    box_nodes[d] = order * grid.cells[d] + 1;
    n_dofs *= box_nodes[d];
    auto& x = box_coordinates_[d];
    x.resize(box_nodes[d]);
    if (auto const& vertices = grid.coordinates[d]; !vertices.empty()) {
      for (std::int64_t i = 0; i < grid.cells[d]; ++i) {
        box_widths_[d].push_back(vertices[i + 1] - vertices[i]);
        for (int node = 0; node < order; ++node)
          x[i * order + node] = vertices[i] + element.nodes[node] * box_widths_[d].back();
      }
      x.back() = vertices.back();
      continue;
    }
    BoxGrid::Whole const whole = grid.whole.value_or(BoxGrid::Whole{grid.origin, grid.extent, grid.cells, {}});
    box_widths_[d] = {whole.extent[d] / static_cast<double>(whole.cells[d])};
    for (std::int64_t i = 0; i < box_nodes[d]; ++i)
      x[i] = whole.origin[d] + whole.extent[d] * ((static_cast<double>(whole.first[d] + i / order) + element.nodes[i % order]) /
                                                  static_cast<double>(whole.cells[d]));
    if (grid.is_boundary(2 * d + 1))
      x.back() = whole.origin[d] + whole.extent[d];
  }
  boundary_ids = {0, 1, 2, 3, 4, 5};
  material_ids = {0};
  std::int64_t n_faces = 0;
  for (int face = 0; face < 6; ++face)
    n_faces += grid.is_boundary(face) ? n_cells / grid.cells[face / 2] : 0;
  boundary_faces.reserve(static_cast<std::size_t>(n_faces));  // a vector that grows has half as much again
  for (int face = 0; face < 6; ++face) {
    if (!grid.is_boundary(face))
      continue;
    int const d = face / 2, e = d == 0 ? 1 : 0, f = d == 2 ? 1 : 2;
    std::array<std::int64_t, 3> const stride{1, nx, nx * ny};
    std::int64_t const first = face % 2 == 0 ? 0 : (grid.cells[d] - 1) * stride[d];
    for (std::int64_t j = 0; j < grid.cells[f]; ++j)
      for (std::int64_t i = 0; i < grid.cells[e]; ++i)
        boundary_faces.push_back(
            {static_cast<std::int32_t>(first + i * stride[e] + j * stride[f]), static_cast<unsigned>(face), face});
  }
  if (grid.whole)
    n_cells_of_whole = grid.whole->cells[0] * grid.whole->cells[1] * grid.whole->cells[2];
  // Whole layers: parts then touch only the two next to them.
  std::int64_t const layer = nx * ny;
  cells_per_part = nz >= 16 ? layer * n_parts(nz, 128) : std::max<std::int64_t>(n_parts(n_cells, 128), 64);
}

Space::Space(Space const& whole, ReferenceElement const& element, std::array<std::int64_t, 3> const& first,
             std::array<std::int64_t, 3> const& cells)
    : Space(part_of(*whole.box, first, cells), element) {
  auto const [nx, ny, nz] = whole.box->cells;
  auto const number = [&, nx = nx, ny = ny](std::int64_t cell) {
    auto const [x, y, z] = box_cell(cell);
    return ((first[2] + z) * ny + first[1] + y) * nx + first[0] + x;
  };
  sides_have_ids = whole.sides_have_ids;
  boundary_ids = whole.boundary_ids;
  material_ids = whole.material_ids;
  if (!whole.material_.empty()) {
    material_.resize(n_cells);
    for (std::int64_t cell = 0; cell < n_cells; ++cell)
      material_[cell] = whole.material_[number(cell)];
  }
  if (whole.sides_have_ids)
    return;
  // Faces of the whole are listed by side on the boundary, the lower one of the other two directions fastest.
  std::array<std::int64_t, 6> first_of_side{};
  for (std::size_t side = 1; side < 6; ++side) {
    std::size_t const d = (side - 1) / 2;
    first_of_side[side] =
        first_of_side[side - 1] + (whole.box->is_boundary(static_cast<int>(side) - 1) ? whole.n_cells / whole.box->cells[d] : 0);
  }
  for (BoundaryFace& face : boundary_faces) {
    std::size_t const d = static_cast<std::size_t>(face.face) / 2, e = d == 0 ? 1 : 0, f = d == 2 ? 1 : 2;
    auto const at = box_cell(face.cell);
    face.boundary_id =
        whole.boundary_faces[first_of_side[face.face] + (first[f] + at[f]) * whole.box->cells[e] + first[e] + at[e]].boundary_id;
  }
}

Space::Space(LatticeMesh mesh, ReferenceElement const& element, LatticeMesh const* shape, MakeLatticeFaces const& make,
             FillLattices const& fill)
    : order(element.order), n_local(element.n_nodes), isoparametric(mesh.isoparametric || shape != nullptr) {
  LatticeTopology const& topology = *mesh.topology;
  lattices.emplace(mesh.topology, mesh.refinements, order);
  if (make) {
    std::vector<std::int32_t> all(topology.lattices.size());
    std::iota(all.begin(), all.end(), 0);
    nodes_of_lattices_ = std::make_shared<LatticeNodes>(lattices->layout, element.nodes, make, topology.outer_sides(all), fill);
  } else {
    nodes_of_lattices_ = std::make_shared<LatticeNodes>(mesh.take_points(), mesh.m, order);
  }
  std::int64_t const n = mesh.n, cells_of_lattice = n * n * n, n_lattices = mesh.n_lattices();
  n_cells = n_in_lattices_ = n_lattices * cells_of_lattice;
  n_dofs = first_listed_ = lattices->n_unknowns;
  n_vertices = n_lattices * (n - 1) * (n - 1) * (n - 1) + topology.at_face.size() * (n - 1) * (n - 1) +
               topology.at_edge.size() * (n - 1) + topology.at_vertex.size();
  cells_per_part = std::max<std::int64_t>(n_parts(n_cells, 512), 64);
  for (LatticeTopology::Lattice const& lattice : topology.lattices)
    material_.push_back(lattice.material);
  material_shift_ = 3 * mesh.refinements;

  for (std::int32_t l = 0; l < n_lattices; ++l) {
    LatticeTopology::Lattice const& lattice = topology.lattices[l];
    material_ids.insert(lattice.material);
    for (int face = 0; face < 6; ++face) {
      if (lattice.boundary_ids[face] == LatticeTopology::no_boundary)
        continue;
      boundary_ids.insert(lattice.boundary_ids[face]);
      int const d = face / 2;
      std::array<std::int64_t, 3> const stride{1, n, n * n};
      std::int64_t const first = l * cells_of_lattice + (face % 2 == 0 ? 0 : (n - 1) * stride[d]);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < n; ++i)
          boundary_faces.push_back({static_cast<std::int32_t>(first + i * stride[d == 0 ? 1 : 0] + j * stride[d == 2 ? 1 : 2]),
                                    lattice.boundary_ids[face], face});
    }
  }
  if (shape != nullptr)
    take_maps(*shape);
  std::vector<BoundaryFace> sides;
  for (auto const& [face, id] : topology.inner_faces)
    for (auto p = topology.at_face.offsets[face]; p < topology.at_face.offsets[face + 1]; ++p) {
      auto const [l, number] = topology.at_face.parts[p];
      int const d = number / 2;
      std::array<std::int64_t, 3> const stride{1, n, n * n};
      std::int64_t const first = l * cells_of_lattice + (number % 2 == 0 ? 0 : (n - 1) * stride[d]);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < n; ++i)
          sides.push_back({static_cast<std::int32_t>(first + i * stride[d == 0 ? 1 : 0] + j * stride[d == 2 ? 1 : 2]), id, number});
    }
  set_inner_faces(sides);
  if (mesh.refinements < fewest_refinements_of_lattices) {
    leave_lattices();
    number_and_sort_cells();
    return;
  }
  auto const is_before = [](auto const& a, auto const& b) { return std::tie(a.cell, a.face) < std::tie(b.cell, b.face); };
  if (!std::is_sorted(boundary_faces.begin(), boundary_faces.end(), is_before))  // they are where each lattice has one
    std::sort(boundary_faces.begin(), boundary_faces.end(), is_before);
  find_components(topology, cells_of_lattice);
}

void Space::leave_lattices() {
  HostVector<std::int32_t> cell_dofs(static_cast<std::size_t>(n_cells * n_local));
  parallel_for(n_parts(n_cells, cells_per_part), [&](std::int64_t i) {
    auto const [begin, end] = part(n_cells, cells_per_part, i);
    for (std::int64_t cell = begin; cell < end; ++cell)
      dofs(cell, cell_dofs.data() + cell * n_local);
  });
  HostVector<double> points(static_cast<std::size_t>(3 * n_dofs));
  constexpr std::int64_t at_once = 1 << 13;
  parallel_for(n_parts(n_dofs, at_once), [&](std::int64_t i) {
    auto const [begin, end] = part(n_dofs, at_once, i);
    for (std::int64_t dof = begin; dof < end; ++dof) {
      Point3 const x = point(dof);
      std::copy(x.begin(), x.end(), points.begin() + 3 * dof);
    }
  });
  list_materials();
  cell_dofs_ = std::move(cell_dofs);
  points_ = std::move(points);
  nodes_of_lattices_.reset();
  lattices.reset();
  n_in_lattices_ = first_listed_ = 0;
}

void Space::list_materials() {
  HostVector<unsigned> of_cells(static_cast<std::size_t>(n_cells));
  constexpr std::int64_t at_once = 1 << 14;
  parallel_for(n_parts(n_cells, at_once), [&](std::int64_t i) {
    auto const [begin, end] = part(n_cells, at_once, i);
    for (std::int64_t cell = begin; cell < end; ++cell)
      of_cells[cell] = material(cell);
  });
  material_ = std::move(of_cells);
  material_shift_ = 0;
  not_in_materials_ = 0;
}

void Space::take_maps(LatticeMesh const& shape) {
  map_order = shape.order;
  map_nodes_1d_ = gauss_lobatto_points(map_order + 1);
  map_nodes_.resize(n_cells * map_size());
  std::int64_t const n = shape.n, m = shape.m, q = map_order + 1;
  parallel_for(shape.n_lattices() * n, [&](std::int64_t const layer) {  // of cells, in z
    auto const lattice = static_cast<std::int32_t>(layer / n);
    std::int64_t const z = layer % n;
    double* out = map_nodes_.data() + layer * n * n * map_size();
    for (std::int64_t y = 0; y < n; ++y)
      for (std::int64_t x = 0; x < n; ++x)
        for (int d = 0; d < 3; ++d)
          for (std::int64_t k = 0; k < q; ++k)
            for (std::int64_t j = 0; j < q; ++j, out += q)
              std::copy_n(shape.coordinates(lattice, d).data() + ((z * map_order + k) * m + y * map_order + j) * m + x * map_order,
                          q, out);
  });
}

SpaceArrays Space::arrays_of(std::span<std::int32_t const> cells, std::span<std::int32_t const> unknowns) const {
  SpaceArrays arrays;
  arrays.isoparametric = isoparametric;
  arrays.map_order = map_order;
  arrays.boundary_ids = boundary_ids;
  arrays.material_ids = material_ids;
  arrays.n_cells_of_whole = n_cells_of_whole > 0 ? n_cells_of_whole : n_cells;
  auto const n_unknowns = static_cast<std::int64_t>(unknowns.size()), n_own = static_cast<std::int64_t>(cells.size());
  // A few unknowns are sought in their list; of many there is a table, by the number in the whole.
  bool const few = n_unknowns < n_dofs / 16 && std::is_sorted(unknowns.begin(), unknowns.end());
  HostVector<std::int32_t> number;
  number.resize(few ? 0 : n_dofs, -1);
  auto const number_of = [&](std::int32_t unknown) {
    return few ? static_cast<std::int32_t>(std::lower_bound(unknowns.begin(), unknowns.end(), unknown) - unknowns.begin())
               : number[unknown];
  };
  arrays.points.resize(3 * n_unknowns);
  constexpr std::int64_t at_once = 1 << 13;
  parallel_for(n_parts(n_unknowns, at_once), [&](std::int64_t block) {
    auto const [begin, end] = part(n_unknowns, at_once, block);
    for (std::int64_t i = begin; i < end; ++i) {
      if (!few)
        number[unknowns[i]] = static_cast<std::int32_t>(i);
      Point3 const x = point(unknowns[i]);
      std::copy(x.begin(), x.end(), arrays.points.begin() + 3 * i);
    }
  });
  arrays.cell_dofs.resize(n_own * n_local);
  arrays.materials.resize(n_own);
  if (map_order > 0)
    arrays.map_nodes.resize(n_own * map_size());
  parallel_for(n_parts(n_own, at_once), [&](std::int64_t block) {
    auto const [begin, end] = part(n_own, at_once, block);
    for (std::int64_t cell = begin; cell < end; ++cell) {
      std::int32_t* const own = arrays.cell_dofs.data() + cell * n_local;
      dofs(cells[cell], own);
      for (int i = 0; i < n_local; ++i)
        own[i] = number_of(own[i]);
      arrays.materials[cell] = material(cells[cell]);
      if (map_order > 0)
        std::copy_n(map_nodes(cells[cell]), map_size(), arrays.map_nodes.data() + cell * map_size());
    }
  });
  auto next = cells.begin();
  for (BoundaryFace face : boundary_faces) {  // in runs of ascending cells: of most meshes one, of boxes one for each side
    if (next == cells.end() || *next > face.cell)
      next = std::lower_bound(cells.begin(), cells.end(), face.cell);
    while (next != cells.end() && *next < face.cell)
      ++next;
    if (next == cells.end() || *next != face.cell)
      continue;
    face.cell = static_cast<std::int32_t>(next - cells.begin());
    arrays.boundary_faces.push_back(face);
  }
  if (hanging.size() > 0) {
    arrays.hanging = Constraints(n_unknowns);
    std::vector<Constraints::Entry> entries;
    for (std::int64_t i = 0; i < n_unknowns; ++i)
      if (hanging.constrained(unknowns[i])) {
        entries.clear();
        for (auto const& [free, weight] : hanging.row(unknowns[i]))
          entries.push_back({number_of(free), weight});
        arrays.hanging.set(static_cast<std::int32_t>(i), 0, entries);
      }
    arrays.hanging.close();
  }
  for (InnerFace face : inner_faces) {
    for (std::int32_t& cell : face.cells) {
      auto const found = std::lower_bound(cells.begin(), cells.end(), cell);
      cell = found != cells.end() && *found == cell ? static_cast<std::int32_t>(found - cells.begin()) : -1;
    }
    if (face.cells[0] >= 0 || face.cells[1] >= 0)
      arrays.inner_faces.push_back(face);
  }
  return arrays;
}

Space::Space(Space const& whole, std::span<std::int32_t const> cells, std::span<std::int32_t const> unknowns)
    : Space(whole.order, whole.n_local, whole.arrays_of(cells, unknowns)) {}

Space::Space(ReferenceElement const& element, SpaceArrays arrays) : Space(element.order, element.n_nodes, std::move(arrays)) {}

Space::Space(int order_of_element, int n_nodes, SpaceArrays arrays)
    : order(order_of_element),
      n_local(n_nodes),
      n_cells(static_cast<std::int64_t>(arrays.materials.size())),
      n_dofs(static_cast<std::int64_t>(arrays.points.size()) / 3),
      isoparametric(arrays.isoparametric),
      map_order(arrays.map_order),
      sides_have_ids(false),
      boundary_ids(std::move(arrays.boundary_ids)),
      material_ids(std::move(arrays.material_ids)),
      boundary_faces(std::move(arrays.boundary_faces)),
      inner_faces(std::move(arrays.inner_faces)),
      hanging(std::move(arrays.hanging)),
      n_cells_of_whole(arrays.n_cells_of_whole),
      cells_per_part(std::max<std::int64_t>(n_parts(n_cells, 128), 64)),
      cell_dofs_(std::move(arrays.cell_dofs)),
      points_(std::move(arrays.points)),
      material_(std::move(arrays.materials)),
      map_nodes_(std::move(arrays.map_nodes)),
      map_nodes_1d_(map_order > 0 ? gauss_lobatto_points(map_order + 1) : std::vector<double>()) {}

Space::Space(ReferenceElement const& element, SpaceOfPieces pieces)
    : order(element.order),
      n_local(element.n_nodes),
      n_dofs(pieces.layout.n_unknowns),
      isoparametric(pieces.isoparametric),
      sides_have_ids(false),
      boundary_ids(std::move(pieces.boundary_ids)),
      material_ids(std::move(pieces.material_ids)),
      boundary_faces(std::move(pieces.boundary_faces)),
      n_cells_of_whole(pieces.n_cells_of_whole),
      cell_dofs_(std::move(pieces.cell_dofs)),
      first_listed_(pieces.n_own),
      nodes_of_lattices_(std::move(pieces.nodes)),
      material_(std::move(pieces.materials)),
      first_cells_(std::move(pieces.first_cells)),
      other_cells_(std::move(pieces.other_cells)),
      to_next_line_(pieces.to_next_line),
      to_next_plane_(pieces.to_next_plane) {
  std::int64_t const n_lattices = pieces.layout.n_lattices;
  int const refinements = std::countr_zero(static_cast<unsigned>(pieces.layout.cells));
  lattices.emplace(std::move(pieces.layout), refinements);
  n_in_lattices_ = n_lattices * lattices->cells_of_lattice();
  n_cells = n_in_lattices_ + std::ssize(other_cells_);
  cells_per_part = std::max<std::int64_t>(n_parts(n_cells, 512), 64);
  material_shift_ = 3 * refinements;
  not_in_materials_ = n_in_lattices_ - n_lattices;
  points_.resize(3 * (n_dofs - first_listed_));
  std::fill(points_.begin(), points_.end(), std::numeric_limits<double>::quiet_NaN());
}

std::vector<std::int32_t> Space::ghosts_of_lattices() const {
  std::vector<std::int32_t> ghosts;
  HostVector<std::int64_t> const& offsets = lattices->layout.tables->copy_offsets;
  std::int64_t const first = lattices->first_face;
  for (std::int64_t unknown = first_listed_; unknown < n_dofs; ++unknown)
    if (offsets[unknown - first] < offsets[unknown - first + 1])
      ghosts.push_back(static_cast<std::int32_t>(unknown));
  ghosts.shrink_to_fit();
  return ghosts;
}

Space Space::lattices_alone() const {
  Space alone = *this;
  std::vector<std::int32_t> ghosts = ghosts_of_lattices();
  HostVector<double> points(3 * ghosts.size());
  for (std::size_t i = 0; i < ghosts.size(); ++i)
    std::copy_n(points_.begin() + 3 * (ghosts[i] - first_listed_), 3, points.begin() + 3 * static_cast<std::int64_t>(i));
  alone.n_dofs = first_listed_ + std::ssize(ghosts);
  alone.lattices = lattices->with_few(first_listed_, std::move(ghosts));
  alone.points_ = std::move(points);
  alone.n_cells = n_in_lattices_;
  alone.cells_per_part = std::max<std::int64_t>(n_parts(alone.n_cells, 512), 64);
  free_memory(alone.cell_dofs_);
  free_memory(alone.other_cells_);
  alone.material_.resize(n_in_lattices_ - not_in_materials_);
  alone.material_.shrink_to_fit();
  std::erase_if(alone.boundary_faces, [&](BoundaryFace const& face) { return face.cell >= n_in_lattices_; });
  alone.boundary_faces.shrink_to_fit();
  return alone;
}

std::int64_t Space::layers_of_lattices() const {
  return lattices ? lattices->layout.n_lattices * lattices->layout.cells : 0;
}

void Space::set_points(std::int64_t first, std::span<double const> coordinates) {
  std::copy(coordinates.begin(), coordinates.end(), points_.begin() + 3 * (first - first_listed_));
  if (!lattices)
    return;
  std::int64_t const count = std::ssize(coordinates) / 3;
  constexpr std::int64_t at_once = 1 << 13;
  parallel_for(n_parts(count, at_once), [&](std::int64_t block) {
    auto const [begin, end] = part(count, at_once, block);
    for (std::int64_t i = begin; i < end; ++i) {
      double const* const x = coordinates.data() + 3 * i;
      nodes_of_lattices_->place(lattices->layout, first + i, {x[0], x[1], x[2]});
    }
  });
}

void Space::find_components(LatticeTopology const& topology, std::int64_t cells_of_lattice) {
  // Lattices that share a vertex are connected. Each points to one with a lower number, or to itself.
  std::vector<std::int32_t> to(topology.lattices.size());
  std::iota(to.begin(), to.end(), 0);
  auto const root = [&](std::int32_t l) {
    while (to[l] != l)
      l = to[l] = to[to[l]];
    return l;
  };
  LatticeParts const& at = topology.at_vertex;
  for (std::int64_t v = 0; v < at.size(); ++v)
    for (auto i = at.offsets[v] + 1; i < at.offsets[v + 1]; ++i) {
      std::int32_t const a = root(at.parts[at.offsets[v]].lattice), b = root(at.parts[i].lattice);
      to[std::max(a, b)] = std::min(a, b);
    }
  runs_.clear();
  n_components = 0;
  std::vector<std::int32_t> number(to.size());
  for (std::int32_t l = 0; l < topology.n_lattices(); ++l) {
    number[l] = root(l) == l ? n_components++ : number[root(l)];
    if (runs_.empty() || runs_.back().component != number[l])
      runs_.push_back({l * cells_of_lattice, number[l]});
  }
}

std::int32_t Space::component(std::int64_t cell) const {
  auto const next =
      std::upper_bound(runs_.begin(), runs_.end(), cell, [](std::int64_t c, Run const& run) { return c < run.first; });
  return std::prev(next)->component;
}

std::int64_t Space::cell_of_component(std::int32_t component) const {
  return std::find_if(runs_.begin(), runs_.end(), [&](Run const& run) { return run.component == component; })->first;
}

void Space::number_and_sort_cells() {
  // Breadth-first over unknowns whose neighbours are those of the cells around it. When an unknown is reached, all unknowns of
  // its cells follow, so that every cell needs to be looked at only once and no graph of the unknowns is built.
  auto const around = cells_around_dofs();
  auto const valence = [&](std::int32_t dof) { return around.offsets[dof + 1] - around.offsets[dof]; };
  std::vector<std::int32_t> order_of_dofs, order_of_cells;
  order_of_dofs.reserve(n_dofs);
  order_of_cells.reserve(n_cells);
  std::vector<std::int32_t> dof_stamp(n_dofs, 0), cell_stamp(n_cells, 0);
  std::int32_t stamp = 0;

  // Appends the part of the mesh that holds `root`; returns its last unknown.
  auto const visit = [&](std::int32_t root) {
    ++stamp;
    std::size_t head = order_of_dofs.size();
    order_of_dofs.push_back(root);
    dof_stamp[root] = stamp;
    for (; head < order_of_dofs.size(); ++head) {
      std::int32_t const dof = order_of_dofs[head];
      auto const first_new = order_of_dofs.size();
      for (auto a = around.offsets[dof]; a < around.offsets[dof + 1]; ++a) {
        std::int32_t const cell = around.cells[a];
        if (cell_stamp[cell] == stamp)
          continue;
        cell_stamp[cell] = stamp;
        order_of_cells.push_back(cell);
        for (int i = 0; i < n_local; ++i) {
          std::int32_t const other = cell_dofs_[static_cast<std::int64_t>(cell) * n_local + i];
          if (dof_stamp[other] != stamp) {
            dof_stamp[other] = stamp;
            order_of_dofs.push_back(other);
          }
        }
      }
      std::stable_sort(order_of_dofs.begin() + static_cast<std::ptrdiff_t>(first_new), order_of_dofs.end(),
                       [&](auto a, auto b) { return valence(a) < valence(b); });
    }
    return order_of_dofs.back();
  };

  runs_.clear();
  for (std::int32_t dof = 0; dof < n_dofs; ++dof) {
    if (dof_stamp[dof] != 0)
      continue;
    // Two sweeps from an arbitrary unknown reach one that is far from all others: narrower levels, a smaller bandwidth.
    auto const dofs_before = order_of_dofs.size(), cells_before = order_of_cells.size();
    std::int32_t root = dof;
    for (int sweep = 0; sweep < 2; ++sweep) {
      root = visit(root);
      order_of_dofs.resize(dofs_before);
      order_of_cells.resize(cells_before);
    }
    runs_.push_back({static_cast<std::int64_t>(cells_before), static_cast<std::int32_t>(runs_.size())});
    visit(root);
  }
  n_components = static_cast<std::int32_t>(runs_.size());

  std::vector<std::int32_t> new_dof(n_dofs), new_cell(n_cells);
  for (std::int64_t i = 0; i < n_dofs; ++i)
    new_dof[order_of_dofs[i]] = static_cast<std::int32_t>(i);
  for (std::int64_t i = 0; i < n_cells; ++i)
    new_cell[order_of_cells[i]] = static_cast<std::int32_t>(i);

  HostVector<std::int32_t> dofs(cell_dofs_.size());
  HostVector<unsigned> materials(material_.size());
  for (std::int64_t i = 0; i < n_cells; ++i) {
    std::int64_t const old = order_of_cells[i];
    for (int l = 0; l < n_local; ++l)
      dofs[i * n_local + l] = new_dof[cell_dofs_[old * n_local + l]];
    materials[i] = material_[old];
  }
  HostVector<double> maps(map_nodes_.size());
  for (std::int64_t i = 0; map_order > 0 && i < n_cells; ++i)
    std::copy_n(map_nodes(order_of_cells[i]), map_size(), maps.data() + i * map_size());
  map_nodes_ = std::move(maps);
  HostVector<double> points(points_.size());
  for (std::int64_t i = 0; i < n_dofs; ++i)
    for (int d = 0; d < 3; ++d)
      points[3 * i + d] = points_[3 * static_cast<std::int64_t>(order_of_dofs[i]) + d];
  cell_dofs_ = std::move(dofs);
  material_ = std::move(materials);
  points_ = std::move(points);
  for (auto& face : boundary_faces)
    face.cell = new_cell[face.cell];
  std::sort(boundary_faces.begin(), boundary_faces.end(),
            [](auto const& a, auto const& b) { return std::tie(a.cell, a.face) < std::tie(b.cell, b.face); });
  for (InnerFace& face : inner_faces)
    for (std::int32_t& cell : face.cells)
      cell = new_cell[cell];
  renumber_local(new_dof, order_of_cells, new_cell);
}

void Space::renumber_local(std::vector<std::int32_t> const& new_dof, std::vector<std::int32_t> const& order_of_cells,
                           std::vector<std::int32_t> const& new_cell) {
  if (hanging.size() > 0) {
    Constraints renumbered(n_dofs);
    std::vector<Constraints::Entry> entries;
    for (std::int64_t dof = 0; dof < n_dofs; ++dof)
      if (hanging.constrained(dof)) {
        entries.clear();
        for (auto const& [free, weight] : hanging.row(dof))
          entries.push_back({new_dof[free], weight});
        renumbered.set(new_dof[dof], 0, entries);
      }
    renumbered.close();
    hanging = std::move(renumbered);
  }
  if (local.active.empty())
    return;
  std::vector<std::int32_t> active(local.active.size());
  std::vector<std::uint8_t> levels(local.levels.size());
  for (std::size_t i = 0; i < active.size(); ++i) {
    active[i] = local.active[order_of_cells[i]];
    levels[i] = local.levels[order_of_cells[i]];
  }
  local.active = std::move(active);
  local.levels = std::move(levels);
  for (FaceOfTwoCells& face : local.faces)
    for (std::int32_t& cell : face.cells)
      cell = new_cell[cell];
  std::sort(local.faces.begin(), local.faces.end(),
            [](auto const& a, auto const& b) { return std::tie(a.cells[0], a.faces[0]) < std::tie(b.cells[0], b.faces[0]); });
}

void Space::place_hanging_nodes() {
  HostVector<double> x(static_cast<std::size_t>(n_dofs));
  for (std::int64_t d = 0; d < 3; ++d) {
    for (std::int64_t dof = 0; dof < n_dofs; ++dof)
      x[dof] = points_[3 * dof + d];
    hanging.expand(x);
    for (std::int64_t dof = 0; dof < n_dofs; ++dof)
      points_[3 * dof + d] = x[dof];
  }
}

std::array<std::int32_t, 4> Space::face_vertices(std::int64_t cell, int face) const {
  std::vector<std::int32_t> own(n_local);
  dofs(cell, own.data());
  std::array<std::int32_t, 4> result{};
  int const d = face / 2, n = order + 1;
  std::array<int, 3> const stride{1, n, n * n};
  for (int corner = 0; corner < 4; ++corner)
    result[corner] = own[order * (face % 2 * stride[d] + (corner & 1) * stride[(d + 1) % 3] + (corner >> 1) * stride[(d + 2) % 3])];
  std::sort(result.begin(), result.end());
  return result;
}

bool Space::points_up(BoundaryFace const& face) const {
  std::vector<std::int32_t> own(n_local);
  dofs(face.cell, own.data());
  int const d = face.face / 2, n = order + 1;
  std::array<int, 3> const stride{1, n, n * n};
  auto const corner = [&](int side, int u, int v) {
    return point(own[order * (side * stride[d] + u * stride[(d + 1) % 3] + v * stride[(d + 2) % 3])]);
  };
  // The normal by the diagonals, and a direction out of the cell.
  int const side = face.face % 2;
  std::array<Point3, 4> const at{corner(side, 0, 0), corner(side, 1, 0), corner(side, 0, 1), corner(side, 1, 1)};
  Point3 a{}, b{}, out{};
  for (int i = 0; i < 3; ++i) {
    a[i] = at[3][i] - at[0][i];
    b[i] = at[2][i] - at[1][i];
    for (int v = 0; v < 2; ++v)
      for (int u = 0; u < 2; ++u)
        out[i] += corner(side, u, v)[i] - corner(1 - side, u, v)[i];
  }
  Point3 normal{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
  double const sign = normal[0] * out[0] + normal[1] * out[1] + normal[2] * out[2] < 0 ? -1 : 1;
  double const size = std::hypot(normal[0], normal[1], normal[2]);
  for (double const component : normal)
    if (std::abs(component) > 1e-6 * size)
      return sign * component > 0;
  return true;
}

void Space::set_inner_faces(std::vector<BoundaryFace> const& sides) {
  std::vector<std::pair<std::array<std::int32_t, 4>, std::size_t>> by_vertices;
  for (std::size_t i = 0; i < sides.size(); ++i)
    by_vertices.emplace_back(face_vertices(sides[i].cell, sides[i].face), i);
  std::sort(by_vertices.begin(), by_vertices.end());
  for (std::size_t i = 0; i + 1 < by_vertices.size(); i += 2) {
    assert(by_vertices[i].first == by_vertices[i + 1].first);
    BoundaryFace const &a = sides[by_vertices[i].second], &b = sides[by_vertices[i + 1].second];
    bool const a_first = points_up(a);
    BoundaryFace const &first = a_first ? a : b, &second = a_first ? b : a;
    inner_faces.push_back({{first.cell, second.cell}, {first.face, second.face}, a.boundary_id});
  }
}

void Space::set_boundary_ids(std::span<std::int32_t const> entries, unsigned first) {
  sides_have_ids = false;
  boundary_ids.clear();
  for (std::size_t i = 0; i < boundary_faces.size(); ++i) {
    if (entries[i] >= 0)
      boundary_faces[i].boundary_id = first + static_cast<unsigned>(entries[i]);
    boundary_ids.insert(boundary_faces[i].boundary_id);
  }
}

void Space::set_materials(std::span<std::int32_t const> entries, unsigned first) {
  list_materials();
  constexpr std::int64_t at_once = 1 << 14;
  std::vector<std::set<unsigned>> ids(static_cast<std::size_t>(n_parts(n_cells, at_once)));
  parallel_for(std::ssize(ids), [&](std::int64_t i) {
    auto const [begin, end] = part(n_cells, at_once, i);
    for (std::int64_t cell = begin; cell < end; ++cell) {
      if (entries[cell] >= 0)
        material_[cell] = first + static_cast<unsigned>(entries[cell]);
      if (cell == begin || material_[cell] != material_[cell - 1])
        ids[i].insert(material_[cell]);
    }
  });
  material_ids.clear();
  for (std::set<unsigned>& of_part : ids)
    material_ids.merge(of_part);
}

void Space::set_labels(LabelImage const& image, int refinements) {
  material_ids = {image.labels.begin(), image.labels.end()};
  material_.resize(static_cast<std::size_t>(n_cells));
  auto const [nx, ny, nz] = box->cells;
  std::array<std::int64_t, 3> const first = box->whole ? box->whole->first : std::array<std::int64_t, 3>{};
  // 1 byte is read (4 with many labels) and 4 are written for each cell.
  parallel_for(nz, [&, nx = nx, ny = ny](std::int64_t z) {
    for (std::int64_t y = 0; y < ny; ++y) {
      std::int64_t const row =
          (((first[2] + z) >> refinements) * image.cells[1] + ((first[1] + y) >> refinements)) * image.cells[0];
      for (std::int64_t x = 0; x < nx; ++x)
        material_[(z * ny + y) * nx + x] = image.label(row + ((first[0] + x) >> refinements));
    }
  });
}

void Space::dofs(std::int64_t cell, std::int32_t* out) const {
  if (cell < n_in_lattices_) {
    lattices->unknowns_of_cell(cell, out);
    return;
  }
  if (!box) {
    std::copy_n(cell_dofs_.data() + (cell - n_in_lattices_) * n_local, n_local, out);
    return;
  }
  auto const [cx, cy, cz] = box_cell(cell);
  for (std::int64_t k = cz * order; k <= (cz + 1) * order; ++k)
    for (std::int64_t j = cy * order; j <= (cy + 1) * order; ++j) {
      std::int64_t const first = (k * box_nodes[1] + j) * box_nodes[0] + cx * order;
      for (int i = 0; i <= order; ++i)
        *out++ = static_cast<std::int32_t>(first + i);
    }
}

LatticeNodes::FirstNode Space::first_node(std::int64_t cell) const {
  auto const [lattice, x, y, z] = lattices->cell(cell);
  return nodes_of_lattices_->first_node(lattice, {x, y, z});
}

Point3 Space::point(std::int64_t dof) const {
  if (dof < first_listed_) {
    auto const [lattice, node] = lattices->first_node(dof);
    return nodes_of_lattices_->point(lattice, node);
  }
  if (!box) {
    double const* const x = points_.data() + 3 * (dof - first_listed_);
    return {x[0], x[1], x[2]};
  }
  auto const [nx, ny, nz] = box_nodes;
  return {box_coordinates_[0][dof % nx], box_coordinates_[1][dof / nx % ny], box_coordinates_[2][dof / (nx * ny)]};
}

template <class Action>
void Space::for_written(std::int64_t cell, Constraints const& constraints, std::int32_t* own, Action const& action) const {
  dofs(cell, own);
  for (int i = 0; i < n_local; ++i) {
    action(own[i]);
    if (constraints.has_entries() && constraints.constrained(own[i]))
      for (auto const& entry : constraints.row(own[i]))
        action(entry.unknown);
  }
}

std::vector<std::vector<std::int64_t>> Space::color_parts(Constraints const& constraints) const {
  // Greedy: the lowest colour that none of the part's unknowns has seen. After 64 colours a further round starts afresh.
  HostVector<std::uint64_t> seen;
  seen.resize(n_dofs, 0);
  std::vector<std::vector<std::int64_t>> colours;
  std::vector<std::int64_t> left(n_parts(n_cells, cells_per_part));
  std::iota(left.begin(), left.end(), std::int64_t{0});
  std::vector<std::int32_t> dofs_of_cell(n_local);
  while (!left.empty()) {
    auto const base = colours.size();
    std::vector<std::int64_t> postponed;
    for (auto const p : left) {
      auto const [begin, end] = part(n_cells, cells_per_part, p);
      std::uint64_t mask = 0;
      for (auto c = begin; c < end; ++c)
        for_written(c, constraints, dofs_of_cell.data(), [&](auto dof) { mask |= seen[dof]; });
      if (mask == ~std::uint64_t{0}) {
        postponed.push_back(p);
        continue;
      }
      auto const colour = static_cast<std::size_t>(std::countr_one(mask));
      if (colours.size() <= base + colour)
        colours.resize(base + colour + 1);
      colours[base + colour].push_back(p);
      for (auto c = begin; c < end; ++c)
        for_written(c, constraints, dofs_of_cell.data(), [&](auto dof) { seen[dof] |= std::uint64_t{1} << colour; });
    }
    left = std::move(postponed);
    if (!left.empty())
      std::fill(seen.begin(), seen.end(), 0);
  }
  return colours;
}

DofCells Space::cells_around_dofs(Constraints const& constraints) const {
  DofCells result;
  result.offsets.resize(n_dofs + 1, 0);
  std::vector<std::int32_t> dofs_of_cell(n_local);
  auto const for_all = [&](auto const& action) {
    for (std::int64_t cell = 0; cell < n_cells; ++cell)
      for_written(cell, constraints, dofs_of_cell.data(), [&](auto dof) { action(dof, static_cast<std::int32_t>(cell)); });
  };
  for_all([&](auto dof, auto) { ++result.offsets[dof + 1]; });
  std::partial_sum(result.offsets.begin(), result.offsets.end(), result.offsets.begin());
  result.cells.resize(result.offsets.back());
  // Filling moves every offset to the end of its list, which is where the next begins.
  for_all([&](auto dof, auto cell) { result.cells[result.offsets[dof]++] = cell; });
  std::copy_backward(result.offsets.begin(), result.offsets.end() - 1, result.offsets.end());
  result.offsets[0] = 0;
  return result;
}

HostVector<std::int32_t> Space::owners() const {
  HostVector<std::int32_t> owner(n_dofs);
  std::vector<std::int32_t> dofs_of_cell(n_local);
  for (auto c = n_cells - 1; c >= 0; --c) {
    dofs(c, dofs_of_cell.data());
    for (auto const dof : dofs_of_cell)
      owner[dof] = static_cast<std::int32_t>(c);
  }
  return owner;
}

std::vector<double> const& geometry_nodes_1d(Space const& space, ReferenceElement const& element) {
  if (space.map_order > 0)
    return space.map_nodes_1d();
  return space.isoparametric ? element.nodes : unit_interval();
}

CellGeometry::CellGeometry(Space const& space)
    : space_(space),
      n_nodes_(space.map_order > 0   ? static_cast<int>(space.map_size() / 3)
               : space.isoparametric ? space.n_local
                                     : 8),
      nodes_(3 * n_nodes_) {
  if (!space.lattices || space.map_order > 0)
    return;
  std::int64_t const m = space.lattices->m, p = space.order, side = space.isoparametric ? p + 1 : 2, step = p / (side - 1);
  for (std::size_t steps = 0; steps < places_.size(); ++steps) {
    auto const [y, z] = LatticeNodes::steps_of(m, space.order, steps);
    for (std::int64_t i = 0; i < n_nodes_; ++i)
      places_[steps].push_back(step * (i / (side * side) * z + i / side % side * y + i % side));
  }
}

void CellGeometry::reset(std::int64_t cell, std::int32_t const* dofs) {
  int const p = space_.order, n = p + 1;
  if (space_.map_order > 0) {
    std::copy_n(space_.map_nodes(cell), nodes_.size(), nodes_.data());
    return;
  }
  if (space_.box) {
    auto const index = space_.box_cell(cell);
    for (int v = 0; v < 8; ++v)
      for (int d = 0; d < 3; ++d)
        nodes_[d * 8 + v] = space_.box_coordinate(d, (index[d] + (v >> d & 1)) * p);
    return;
  }
  if (cell < space_.n_in_lattices()) {
    LatticeNodes::FirstNode const first = space_.first_node(cell);
    std::vector<std::int64_t> const& places = places_[first.steps];
    for (int d = 0; d < 3; ++d)
      for (int i = 0; i < n_nodes_; ++i)
        nodes_[d * n_nodes_ + i] = first.x[d * first.to_next_direction + places[i]];
    return;
  }
  for (int i = 0; i < n_nodes_; ++i) {
    int const local = space_.isoparametric ? i : (i & 1) * p + (i >> 1 & 1) * p * n + (i >> 2 & 1) * p * n * n;
    auto const x = space_.point(dofs[local]);
    for (int d = 0; d < 3; ++d)
      nodes_[d * n_nodes_ + i] = x[d];
  }
}

Point3 CellGeometry::point(double const* values) const {
  Point3 x{};
  for (int d = 0; d < 3; ++d)
    for (int i = 0; i < n_nodes_; ++i)
      x[d] += values[i] * nodes_[d * n_nodes_ + i];
  return x;
}

Point3 CellGeometry::middle() const {
  Point3 x{};
  for (int d = 0; d < 3; ++d)
    for (int i = 0; i < n_nodes_; ++i)
      x[d] += nodes_[d * n_nodes_ + i] / n_nodes_;
  return x;
}

std::array<double, 9> CellGeometry::jacobian(double const* gradients) const {
  std::array<double, 9> m{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      double sum = 0;
      for (int v = 0; v < n_nodes_; ++v)
        sum += nodes_[i * n_nodes_ + v] * gradients[j * n_nodes_ + v];
      m[3 * i + j] = sum;
    }
  return m;
}

bool CellGeometry::affine() const {
  if (space_.box)
    return true;
  if (space_.isoparametric)
    return false;
  for (int d = 0; d < 3; ++d) {
    double const* x = nodes(d);
    double const a = x[1] - x[0], b = x[2] - x[0], c = x[4] - x[0];
    double const scale = 1e-14 * (std::abs(a) + std::abs(b) + std::abs(c)) +
                         4 * std::numeric_limits<double>::epsilon() * std::max(std::abs(x[0]), std::abs(x[7]));
    if (std::abs(x[3] - x[0] - a - b) > scale || std::abs(x[5] - x[0] - a - c) > scale || std::abs(x[6] - x[0] - b - c) > scale ||
        std::abs(x[7] - x[0] - a - b - c) > scale)
      return false;
  }
  return true;
}

double determinant(std::array<double, 9> const& m) {
  return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) + m[2] * (m[3] * m[7] - m[4] * m[6]);
}

std::array<double, 9> cofactors(std::array<double, 9> const& m) {
  std::array<double, 9> result;
  static_cast<void>(cofactors_of(m, result));
  return result;
}

}  // namespace poisson::assembly
