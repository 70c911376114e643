#include "assembly/space/box_cells.hpp"

#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/parallel.hpp"
#include "assembly/space/box_runs.hpp"
#include "assembly/space/mesh_cells.hpp"
#include "assembly/space/space_partition.hpp"
#include "assembly/space/void_cells.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace poisson::assembly {
namespace {

using Row = std::vector<std::uint8_t>;

/// Which cells of the box there are, by rows along x.
class Marks {
public:
  explicit Marks(BoxCells const& cells) : cells_(cells.box.cells) {
    marks_.resize(static_cast<std::size_t>(cells_[0] * cells_[1] * cells_[2]), std::uint8_t{0});
    for (std::int32_t const cell : cells.numbers)
      marks_[static_cast<std::size_t>(cell)] = 1;
  }

  /// Marks the cells along x that have points on a line: with y between the sides of cell row `y`, or `at_y` on its low one, which
  /// is the high one of the row before; likewise z. A row may be one behind the last.
  void beside(std::int64_t y, bool at_y, std::int64_t z, bool at_z, Row& row) const {
    std::fill(row.begin(), row.end(), std::uint8_t{0});
    for (std::int64_t k = std::max<std::int64_t>(z - (at_z ? 1 : 0), 0); k <= std::min(z, cells_[2] - 1); ++k)
      for (std::int64_t j = std::max<std::int64_t>(y - (at_y ? 1 : 0), 0); j <= std::min(y, cells_[1] - 1); ++j) {
        std::uint8_t const* const marks = marks_.data() + (k * cells_[1] + j) * cells_[0];
        for (std::size_t i = 0; i < row.size(); ++i)
          row[i] |= marks[i];
      }
  }

private:
  Counts3 cells_;
  HostVector<std::uint8_t> marks_;
};

/// Whether the vertex on the low side of cell i of a row is that of a marked cell; i may be one behind the last.
bool has_vertex(Row const& row, std::size_t i) {
  return (i > 0 && row[i - 1] != 0) || (i < row.size() && row[i] != 0);
}
std::int64_t count_vertices(Row const& row) {
  std::int64_t result = 0;
  for (std::size_t i = 0; i <= row.size(); ++i)
    result += has_vertex(row, i) ? 1 : 0;
  return result;
}

Counts3 indices_in(BoxGrid const& box, std::int64_t cell) {
  auto const [nx, ny, nz] = box.cells;
  return {cell % nx, cell / nx % ny, cell / (nx * ny)};
}

/// What is left of a box. `labels`: as cells_of_box.
BoxCells left_of_box(BoxGrid const& box, LabelImage const* labels, VoidCells const& found) {
  auto const [nx, ny, nz] = box.cells;
  std::array<std::int64_t, 3> const to_next{1, nx, nx * ny};
  BoxCells result;
  result.box = box;
  std::vector<std::int64_t> first(static_cast<std::size_t>(nz) + 1, 0);  // of what is left of every layer
  parallel_for(nz, [&](std::int64_t z) {
    auto const begin = found.surface.begin() + z * to_next[2];
    first[static_cast<std::size_t>(z) + 1] = std::count(begin, begin + to_next[2], VoidCells::stays);
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  result.numbers.resize(static_cast<std::size_t>(first.back()));
  result.materials.resize(static_cast<std::size_t>(first.back()));
  std::vector<std::vector<BoundaryFace>> faces(static_cast<std::size_t>(nz));
  // 6 bytes of a cell of the box are read, and 8 of what stays written.
  parallel_for(nz, [&, nx = nx, ny = ny, nz = nz](std::int64_t z) {
    std::int64_t number = first[static_cast<std::size_t>(z)];
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t x = 0; x < nx; ++x) {
        std::int64_t const cell = z * to_next[2] + y * to_next[1] + x;
        if (found.of(cell) != VoidCells::stays)
          continue;
        std::array<bool, 6> const outside{x == 0, x == nx - 1, y == 0, y == ny - 1, z == 0, z == nz - 1};
        for (unsigned f = 0; f < 6; ++f) {
          std::int64_t const step = to_next[f / 2];
          std::uint16_t const beyond = outside[f] ? VoidCells::stays : found.of(f % 2 == 0 ? cell - step : cell + step);
          if (outside[f] || beyond != VoidCells::stays)
            faces[static_cast<std::size_t>(z)].push_back(
                {static_cast<std::int32_t>(number), outside[f] ? f : found.first_id + beyond - 1, static_cast<int>(f)});
        }
        result.numbers[static_cast<std::size_t>(number)] = static_cast<std::int32_t>(cell);
        result.materials[static_cast<std::size_t>(number)] = labels == nullptr ? 0 : labels->label(cell);
        ++number;
      }
  });
  std::size_t n_faces = 0;
  for (auto const& of_layer : faces)
    n_faces += of_layer.size();
  result.boundary_faces.reserve(n_faces);
  for (auto const& of_layer : faces)
    result.boundary_faces.insert(result.boundary_faces.end(), of_layer.begin(), of_layer.end());
  return result;
}

class BoxWithVoid final : public CoarseMesh {
public:
  BoxWithVoid(MeshSpec const& spec, ExpressionNames const& names) : cells_(take_out_of_box(spec, names, counts_)) {
    count_cells(cells_, counts_);
  }

  [[nodiscard]] MeshCounts const& counts() const override { return counts_; }
  [[nodiscard]] bool has_lattices() const override { return false; }
  [[nodiscard]] bool can_leave_nodes() const override { return false; }
  [[nodiscard]] Space space(ReferenceElement const& element, bool /*leave_nodes*/, FillLattices const& /*fill*/) override {
    return {std::move(cells_), element};
  }
  [[nodiscard]] std::optional<ShareOfLattices> share(ReferenceElement const& /*element*/, int /*rank*/, int /*ranks*/,
                                                     bool /*leave_nodes*/, FillLattices const& /*fill*/) override {
    return std::nullopt;
  }

private:
  MeshCounts counts_;  // before cells_, whose maker sets the names
  BoxCells cells_;
};

}  // namespace

std::unique_ptr<CoarseMesh> open_box_with_void(MeshSpec const& spec, ExpressionNames const& names) {
  return std::make_unique<BoxWithVoid>(spec, names);
}

BoxCells take_out_of_box(MeshSpec const& spec, ExpressionNames const& of_expressions, MeshNames& names) {
  MeshSpec whole = spec;
  whole.regions.clear();
  whole.void_names.clear();
  whole.void_ids.clear();
  whole.local.reset();
  static_cast<void>(predict_counts(whole));  // checks the cells that refinements make
  whole.refinements = 0;
  MeshCounts const counts = predict_counts(whole);
  check_index_range(whole, counts, 1);
  names = counts;
  std::unique_ptr<MeshCells const> const all = cells_of_box(*counts.box, spec.labels.get());
  VoidCells const found = find_void_cells(names, *all, spec, of_expressions);
  constexpr std::int64_t bytes_of_cell = 20;  // its number, its material, and some faces
  check_memory(bytes_of_cell * std::count(found.surface.begin(), found.surface.end(), VoidCells::stays), "the mesh");
  std::set<unsigned> const materials = all->materials();
  BoxCells left = left_of_box(*counts.box, spec.labels.get(), found);
  names.boundary_ids.clear();
  for (BoundaryFace const& face : left.boundary_faces)
    names.boundary_ids.insert(face.boundary_id);
  names.material_ids.clear();
  for (unsigned const material : left.materials)
    if (names.material_ids.empty() || *names.material_ids.rbegin() != material)
      names.material_ids.insert(material);
  name_what_is_left(names, found, materials, {}, {});
  return left;
}

void count_cells(BoxCells const& cells, MeshCounts& counts) {
  auto const [nx, ny, nz] = cells.box.cells;
  Marks const marks(cells);
  std::atomic<std::int64_t> vertices{0}, edges{0};
  // 13 bytes of a cell are read, in rows.
  parallel_for(
      nz + 1, [nx = nx] { return Row(static_cast<std::size_t>(nx)); },
      [&, ny = ny, nz = nz](Row& row, std::int64_t z) {
        std::int64_t of_vertices = 0, of_edges = 0;
        for (std::int64_t y = 0; y <= ny; ++y) {
          marks.beside(y, true, z, true, row);
          of_vertices += count_vertices(row);
          of_edges += std::count(row.begin(), row.end(), 1);
          if (y < ny) {
            marks.beside(y, false, z, true, row);
            of_edges += count_vertices(row);
          }
          if (z < nz) {
            marks.beside(y, true, z, false, row);
            of_edges += count_vertices(row);
          }
        }
        vertices += of_vertices;
        edges += of_edges;
      });
  counts.cells = std::ssize(cells.numbers);
  counts.vertices = vertices;
  counts.edges = edges;
  counts.boundary_faces = std::ssize(cells.boundary_faces);
  counts.faces = (6 * counts.cells + counts.boundary_faces) / 2;
  counts.faces_with_id.clear();
  for (BoundaryFace const& face : cells.boundary_faces)
    ++counts.faces_with_id[face.boundary_id];
  Counts3 low = cells.box.cells, high{};
  for (std::int32_t const cell : cells.numbers) {
    Counts3 const at = indices_in(cells.box, cell);
    for (std::size_t d = 0; d < 3; ++d) {
      low[d] = std::min(low[d], at[d]);
      high[d] = std::max(high[d], at[d] + 1);
    }
  }
  BoxGrid::Whole const whole{cells.box.origin, cells.box.extent, cells.box.cells, {}, cells.box.coordinates};
  for (std::size_t d = 0; d < 3; ++d) {
    std::vector<double> const x = vertex_coordinates(whole, d);
    counts.low[d] = x[static_cast<std::size_t>(low[d])];
    counts.high[d] = x[static_cast<std::size_t>(high[d])];
  }
}

std::int64_t bytes_to_number(MeshSpec const& spec, int order) {
  std::int64_t cells = 1, nodes = 1;
  for (std::int64_t const n : spec.cells) {
    cells *= n;
    nodes *= order * n + 1;
  }
  return cells + 4 * nodes;  // a mark of every cell of the box, and a number of every node
}

Space::Space(BoxCells cells, ReferenceElement const& element)
    : order(element.order),
      n_local(element.n_nodes),
      n_cells(std::ssize(cells.numbers)),
      boundary_faces(std::move(cells.boundary_faces)),
      cells_per_part(std::max<std::int64_t>(n_parts(n_cells, 512), 64)),
      material_(std::move(cells.materials)) {
  for (BoundaryFace const& face : boundary_faces)
    boundary_ids.insert(face.boundary_id);
  for (unsigned const material : material_)
    if (material_ids.empty() || *material_ids.rbegin() != material)
      material_ids.insert(material);
  Marks const marks(cells);
  Space const whole(cells.box, element);  // for the coordinates of its nodes
  std::int64_t const p = order, nx = whole.box_nodes[0], ny = whole.box_nodes[1], nz = whole.box_nodes[2];
  auto const marks_beside = [&](std::int64_t y, std::int64_t z, Row& row) {
    marks.beside(y / p, y % p == 0, z / p, z % p == 0, row);
  };
  auto const make_row = [&] { return Row(static_cast<std::size_t>(cells.box.cells[0])); };
  // The first unknown of every row of nodes along x.
  std::vector<std::int64_t> first(static_cast<std::size_t>(ny * nz) + 1, 0);
  std::atomic<std::int64_t> vertices{0};
  parallel_for(nz, make_row, [&](Row& row, std::int64_t z) {
    std::int64_t of_vertices = 0;
    for (std::int64_t y = 0; y < ny; ++y) {
      marks_beside(y, z, row);
      std::int64_t const at_vertices = count_vertices(row);
      of_vertices += y % p == 0 && z % p == 0 ? at_vertices : 0;
      first[static_cast<std::size_t>(z * ny + y) + 1] = at_vertices + (p - 1) * std::count(row.begin(), row.end(), 1);
    }
    vertices += of_vertices;
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  n_vertices = vertices;
  n_dofs = first.back();
  points_.resize(static_cast<std::size_t>(3 * n_dofs));
  auto places = std::make_shared<PlacesInBox>();
  places->nodes.resize(static_cast<std::size_t>(n_dofs));
  HostVector<std::int32_t> number(static_cast<std::size_t>(nx * ny * nz));
  // 4 bytes of a node of the box are written, and 28 of an unknown.
  parallel_for(nz, make_row, [&](Row& row, std::int64_t z) {
    for (std::int64_t y = 0; y < ny; ++y) {
      marks_beside(y, z, row);
      std::int64_t unknown = first[static_cast<std::size_t>(z * ny + y)];
      for (std::int64_t x = 0; x < nx; ++x) {
        auto const i = static_cast<std::size_t>(x / p);
        if (!(x % p == 0 ? has_vertex(row, i) : row[i] != 0))
          continue;
        std::int64_t const node = (z * ny + y) * nx + x;
        number[static_cast<std::size_t>(node)] = static_cast<std::int32_t>(unknown);
        places->nodes[static_cast<std::size_t>(unknown)] = static_cast<std::int32_t>(node);
        points_[3 * unknown] = whole.box_coordinate(0, x);
        points_[3 * unknown + 1] = whole.box_coordinate(1, y);
        points_[3 * unknown + 2] = whole.box_coordinate(2, z);
        ++unknown;
      }
    }
  });
  cell_dofs_.resize(static_cast<std::size_t>(n_cells * n_local));
  constexpr std::int64_t cells_at_once = 4096;
  parallel_for(n_parts(n_cells, cells_at_once), [&](std::int64_t i) {
    auto const [begin, end] = part(n_cells, cells_at_once, i);
    for (std::int64_t cell = begin; cell < end; ++cell) {
      auto const [cx, cy, cz] = indices_in(cells.box, cells.numbers[static_cast<std::size_t>(cell)]);
      std::int32_t* out = cell_dofs_.data() + cell * n_local;
      for (std::int64_t z = cz * p; z <= (cz + 1) * p; ++z)
        for (std::int64_t y = cy * p; y <= (cy + 1) * p; ++y)
          out = std::copy_n(number.data() + (z * ny + y) * nx + cx * p, p + 1, out);
    }
  });
  BoxRuns parts(cells.box.cells);
  std::int64_t const row_length = cells.box.cells[0];
  for (std::int64_t cell = 0, next = 0; cell < n_cells; cell = next) {
    std::int64_t const of_cell = cells.numbers[static_cast<std::size_t>(cell)], row = of_cell / row_length,
                       begin = of_cell % row_length;
    std::int64_t const most = std::min(n_cells, cell + row_length - begin);
    for (next = cell + 1; next < most && cells.numbers[static_cast<std::size_t>(next)] == of_cell + next - cell;)
      ++next;
    parts.add(row, begin, begin + next - cell);
  }
  parts.find_parts();
  runs_.clear();
  n_components = 0;
  std::int64_t first_cell = 0;
  parts.for_each([&](std::int64_t /*row*/, std::int64_t begin, std::int64_t end, std::int32_t component) {
    n_components = std::max(n_components, component + 1);
    if (runs_.empty() || runs_.back().component != component)
      runs_.push_back({first_cell, component});
    first_cell += end - begin;
  });
  if (order > 1)  // nobody asks
    return;
  places->box = std::move(cells.box);
  places->cells = std::move(cells.numbers);
  in_box = std::move(places);
}

}  // namespace poisson::assembly
