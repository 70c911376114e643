#include "assembly/system/made_fields.hpp"

#include "assembly/parallel.hpp"

#include <array>
#include <cstddef>
#include <numeric>
#include <span>

namespace poisson::assembly {

namespace {

/// k, -k grad u, or grad u at the centres of cells.
class MappedCentres {
public:
  enum class What { coefficient, flux, gradient };
  /// Of the element's functions and those of the cells' maps at the centre.
  struct Tables {
    PointTables shape, map;
  };

  MappedCentres(Space const& space, FieldValues<double> u, std::shared_ptr<CopiesOfData> copies,
                std::shared_ptr<Tables const> tables, What what, std::int64_t components)
      : space_(&space),
        u_(std::move(u)),
        copies_(std::move(copies)),
        tables_(std::move(tables)),
        what_(what),
        components_(components) {}

  /// Writes the values first ... first + n - 1.
  void operator()(std::int64_t first, std::int64_t n, double* out) const {
    std::int64_t const end = (first + n + components_ - 1) / components_;
    std::vector<std::int64_t> cells(static_cast<std::size_t>(end - first / components_));
    std::iota(cells.begin(), cells.end(), first / components_);
    make(cells, [&](std::size_t i, std::array<double, 6> const& values) {
      put_of_cell(values.data(), cells[i], components_, first, n, out);
    });
  }
  /// Writes the values at these places.
  void operator()(std::span<std::int64_t const> places, double* out) const {
    std::vector<std::int64_t> cells;
    std::vector<std::size_t> first;  // by cell: of its places
    for (std::size_t i = 0; i < places.size(); ++i)
      if (std::int64_t const cell = places[i] / components_; cells.empty() || cells.back() != cell) {
        cells.push_back(cell);
        first.push_back(i);
      }
    first.push_back(places.size());
    make(cells, [&](std::size_t i, std::array<double, 6> const& values) {
      for (std::size_t at = first[i]; at < first[i + 1]; ++at)
        out[at] = values[static_cast<std::size_t>(places[at] % components_)];
    });
  }

private:
  /// Calls visit(i, values) for the i-th of some cells with what it has.
  template <class Visit>
  void make(std::span<std::int64_t const> cells, Visit const& visit) const {
    auto const at_once = static_cast<std::size_t>(std::max(8192 / space_->n_local, 1));
    std::unique_ptr<ProblemData> data = what_ == What::gradient ? nullptr : copies_->take();
    CellGeometry geometry(*space_);
    UnknownsOfCells unknowns(*space_, what_ == What::coefficient ? nullptr : &u_);
    for (std::size_t begin = 0; begin < cells.size(); begin += at_once) {
      auto const some = cells.subspan(begin, std::min(at_once, cells.size() - begin));
      unknowns.take(some);
      for (std::size_t i = 0; i < some.size(); ++i) {
        auto const of_some = static_cast<std::int64_t>(i);
        geometry.reset(some[i], unknowns.dofs(of_some));
        std::array<double, 6> values{};
        of_cell(geometry, data.get(), some[i], unknowns.u(of_some), values);
        visit(begin + i, values);
      }
    }
    if (data)
      copies_->give_back(std::move(data));
  }
  void of_cell(CellGeometry const& geometry, ProblemData const* data, std::int64_t cell, double const* u,
               std::array<double, 6>& values) const {
    unsigned const material = space_->material(cell);
    Tensor k;
    if (what_ != What::gradient)
      k = data->coefficient(material)(geometry.point(tables_->map.values.data()), material);
    if (what_ == What::coefficient) {
      constexpr std::array<std::size_t, 6> order_of_vtk{0, 1, 2, 3, 5, 4};  // XX, YY, ZZ, XY, YZ, XZ
      for (std::size_t e = 0; e < 6; ++e)
        values[e] = k.entries[order_of_vtk[e]];
      return;
    }
    auto const n_local = static_cast<std::size_t>(space_->n_local);
    auto const j = geometry.jacobian(tables_->map.gradients.data());
    auto const c = cofactors(j);
    double const det = j[0] * c[0] + j[1] * c[1] + j[2] * c[2];
    Point3 reference{};
    for (std::size_t d = 0; d < 3; ++d)
      for (std::size_t a = 0; a < n_local; ++a)
        reference[d] += tables_->shape.gradients[d * n_local + a] * u[a];
    Point3 real{};
    for (std::size_t d = 0; d < 3; ++d)
      real[d] = (c[3 * d] * reference[0] + c[3 * d + 1] * reference[1] + c[3 * d + 2] * reference[2]) / det;
    Point3 const conducted = what_ == What::flux ? k * real : Point3{};
    for (std::size_t d = 0; d < 3; ++d)
      values[d] = what_ == What::flux ? -conducted[d] : real[d];
  }

  Space const* space_;
  FieldValues<double> u_;
  std::shared_ptr<CopiesOfData> copies_;
  std::shared_ptr<Tables const> tables_;
  What what_;
  std::int64_t components_;
};

}  // namespace

void UnknownsOfCells::take(std::span<std::int64_t const> cells) {
  auto const n_local = static_cast<std::size_t>(space_->n_local);
  dofs_.resize(cells.size() * n_local);
  for (std::size_t i = 0; i < cells.size(); ++i)
    space_->dofs(cells[i], &dofs_[i * n_local]);
  if (u_ == nullptr)
    return;
  places_.assign(dofs_.begin(), dofs_.end());
  values_.resize(places_.size());
  u_->pick(places_, values_.data());
}

void UnknownsOfCells::take(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> cells(static_cast<std::size_t>(end - begin));
  std::iota(cells.begin(), cells.end(), begin);
  take(cells);
}

void try_all(FieldValues<double> const& values) {
  constexpr std::int64_t piece = std::int64_t{1} << 12;
  auto const n = static_cast<std::int64_t>(values.size());
  parallel_for(
      n_parts(n, piece), [] { return std::vector<double>(piece); },
      [&](std::vector<double>& out, std::int64_t i) {
        auto const [begin, end] = part(n, piece, i);
        values.read(begin, end - begin, out.data());
      });
}

void set_mapped_cells(Space const& space, ReferenceElement const& element, ProblemData const& data, FieldValues<double> const& u,
                      bool gradient, SolutionFields& fields) {
  using What = MappedCentres::What;
  Point3 const centre{0.5, 0.5, 0.5};
  auto const copies = std::make_shared<CopiesOfData>(data);
  auto const tables = std::make_shared<MappedCentres::Tables const>(
      MappedCentres::Tables{tabulate(element.nodes, {centre}), tabulate(geometry_nodes_1d(space, element), {centre})});
  auto const n_cells = static_cast<std::size_t>(space.n_cells);
  auto const made = [&](What what, int components) {
    MappedCentres const centres(space, u, copies, tables, what, components);
    return FieldValues<double>(static_cast<std::size_t>(components) * n_cells, centres, centres);
  };
  fields.coefficient = made(What::coefficient, fields.coefficient_components);
  if (!std::ranges::all_of(space.material_ids, [&](unsigned id) { return data.coefficient(id).is_constant(); }))
    try_all(fields.coefficient);
  fields.flux = made(What::flux, 3);
  if (gradient)
    fields.gradient = made(What::gradient, 3);
  fields.material = {n_cells, [&space](std::int64_t first, std::int64_t n, int* out) {
                       for (std::int64_t i = 0; i < n; ++i)
                         out[i] = static_cast<int>(space.material(first + i));
                     }};
}

FieldValues<double> made_exact_at_nodes(Space const& space, ProblemData const& data, double shift) {
  return {static_cast<std::size_t>(space.n_dofs),
          [&space, shift, copies = std::make_shared<CopiesOfData>(data)](std::int64_t first, std::int64_t n, double* out) {
            auto of_thread = copies->take();
            for (std::int64_t i = 0; i < n; ++i)
              out[i] = (*of_thread->exact)(space.point(first + i)) - shift;
            copies->give_back(std::move(of_thread));
          }};
}

}  // namespace poisson::assembly
