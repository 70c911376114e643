#include "assembly/space/mesh_cells.hpp"

#include "assembly/space/box_runs.hpp"

#include <algorithm>
#include <numeric>

namespace poisson::assembly {

std::vector<std::int32_t> MeshCells::parts(std::span<std::uint16_t const> marks) const {
  std::vector<unsigned> parent(static_cast<std::size_t>(n_vertices()));
  std::iota(parent.begin(), parent.end(), 0U);
  auto const root = [&](unsigned vertex) {
    while (parent[vertex] != vertex)
      vertex = parent[vertex] = parent[parent[vertex]];
    return vertex;
  };
  for (std::int64_t cell = 0; cell < size(); ++cell)
    if (marks[static_cast<std::size_t>(cell)] == 0) {
      auto const of_cell = vertices(cell);
      for (unsigned v = 1; v < 8; ++v)
        parent[root(of_cell[0])] = root(of_cell[v]);
    }
  std::vector<std::int32_t> part_of_root(parent.size(), -1), result(marks.size(), -1);
  std::int32_t n = 0;
  for (std::int64_t cell = 0; cell < size(); ++cell)
    if (marks[static_cast<std::size_t>(cell)] == 0) {
      std::int32_t& part = part_of_root[root(vertices(cell)[0])];
      if (part < 0)
        part = n++;
      result[static_cast<std::size_t>(cell)] = part;
    }
  return result;
}

namespace {

class CellsOfBox final : public MeshCells {
public:
  CellsOfBox(BoxGrid const& box, LabelImage const* labels) : cells_(box.cells), labels_(labels) {
    BoxGrid::Whole const whole{box.origin, box.extent, box.cells, {}, box.coordinates};
    for (std::size_t d = 0; d < 3; ++d)
      x_[d] = vertex_coordinates(whole, d);
  }

  std::int64_t size() const override { return cells_[0] * cells_[1] * cells_[2]; }
  std::int64_t n_vertices() const override { return (cells_[0] + 1) * (cells_[1] + 1) * (cells_[2] + 1); }
  Point3 vertex(unsigned number) const override {
    std::int64_t const nx = cells_[0] + 1, ny = cells_[1] + 1;
    return {x(0, number % nx), x(1, number / nx % ny), x(2, number / (nx * ny))};
  }
  std::set<unsigned> boundary_ids() const override { return {0, 1, 2, 3, 4, 5}; }
  std::set<unsigned> materials() const override {
    return labels_ == nullptr ? std::set<unsigned>{0} : std::set<unsigned>(labels_->labels.begin(), labels_->labels.end());
  }

  std::array<unsigned, 8> vertices(std::int64_t cell) const override {
    Counts3 const i = indices(cell);
    std::int64_t const nx = cells_[0] + 1, plane = nx * (cells_[1] + 1), first = i[2] * plane + i[1] * nx + i[0];
    std::array<unsigned, 8> result{};
    for (unsigned v = 0; v < 8; ++v)
      result[v] = static_cast<unsigned>(first + (v & 1U) + (v >> 1U & 1U) * nx + (v >> 2U) * plane);
    return result;
  }
  unsigned material(std::int64_t cell) const override { return labels_ == nullptr ? 0 : labels_->label(cell); }
  double volume(std::int64_t cell) const override {
    Counts3 const i = indices(cell);
    double result = 1;
    for (std::size_t d = 0; d < 3; ++d)
      result *= x(d, i[d] + 1) - x(d, i[d]);
    return result;
  }
  Point3 at(std::int64_t cell, Point3 const& place) const override {
    Counts3 const i = indices(cell);
    Point3 result;
    for (unsigned d = 0; d < 3; ++d)
      result[d] = x(d, i[d]) * (1 - place[d]) + x(d, i[d] + 1) * place[d];
    return result;
  }
  Neighbor neighbor(std::int64_t cell, unsigned face) const override {
    std::size_t const d = face / 2;
    std::int64_t const i = indices(cell)[d], step = d == 0 ? 1 : d == 1 ? cells_[0] : cells_[0] * cells_[1];
    if (face % 2 == 0 ? i == 0 : i + 1 == cells_[d])
      return {};
    return {face % 2 == 0 ? cell - step : cell + step, face ^ 1U};
  }
  unsigned boundary_id(std::int64_t /*cell*/, unsigned face) const override { return face; }

  bool is_for_threads() const override { return true; }
  std::vector<std::int32_t> parts(std::span<std::uint16_t const> marks) const override {
    BoxRuns runs(cells_);
    for (std::int64_t row = 0; row < cells_[1] * cells_[2]; ++row) {
      auto const begin = marks.begin() + row * cells_[0], end = begin + cells_[0];
      for (auto first = std::find(begin, end, 0); first != end;) {
        auto const last = std::find_if(first, end, [](std::uint16_t mark) { return mark != 0; });
        runs.add(row, first - begin, last - begin);
        first = std::find(last, end, 0);
      }
    }
    runs.find_parts();
    std::vector<std::int32_t> result(marks.size(), -1);
    runs.for_each([&](std::int64_t row, std::int64_t begin, std::int64_t end, std::int32_t part) {
      std::fill_n(result.begin() + row * cells_[0] + begin, end - begin, part);
    });
    return result;
  }

private:
  [[nodiscard]] Counts3 indices(std::int64_t cell) const {
    return {cell % cells_[0], cell / cells_[0] % cells_[1], cell / (cells_[0] * cells_[1])};
  }
  [[nodiscard]] double x(std::size_t d, std::int64_t i) const { return x_[d][static_cast<std::size_t>(i)]; }

  Counts3 cells_;
  LabelImage const* labels_;
  std::array<std::vector<double>, 3> x_;  ///< coordinates of vertices
};

}  // namespace

std::unique_ptr<MeshCells> cells_of_box(BoxGrid const& box, LabelImage const* labels) {
  return std::make_unique<CellsOfBox>(box, labels);
}

}  // namespace poisson::assembly
