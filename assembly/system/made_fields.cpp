#include "assembly/system/made_fields.hpp"

#include "assembly/parallel.hpp"

#include <array>
#include <cstddef>

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
    std::int64_t const cells_at_once = std::max(8192 / space_->n_local, 1);
    std::unique_ptr<ProblemData> data = what_ == What::gradient ? nullptr : copies_->take();
    CellGeometry geometry(*space_);
    UnknownsOfCells unknowns(*space_, what_ == What::coefficient ? nullptr : &u_);
    std::int64_t const end = (first + n + components_ - 1) / components_;
    for (std::int64_t begin = first / components_; begin < end; begin += cells_at_once) {
      std::int64_t const up_to = std::min(begin + cells_at_once, end);
      unknowns.take(begin, up_to);
      for (std::int64_t cell = begin; cell < up_to; ++cell) {
        geometry.reset(cell, unknowns.dofs(cell));
        std::array<double, 6> values{};
        of_cell(geometry, data.get(), cell, unknowns.u(cell), values);
        put_of_cell(values.data(), cell, components_, first, n, out);
      }
    }
    if (data)
      copies_->give_back(std::move(data));
  }

private:
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

void UnknownsOfCells::take(std::int64_t begin, std::int64_t end) {
  auto const n_local = static_cast<std::size_t>(space_->n_local);
  begin_ = begin;
  dofs_.resize(static_cast<std::size_t>(end - begin) * n_local);
  for (std::int64_t cell = begin; cell < end; ++cell)
    space_->dofs(cell, &dofs_[static_cast<std::size_t>(cell - begin) * n_local]);
  if (u_ == nullptr)
    return;
  places_.assign(dofs_.begin(), dofs_.end());
  values_.resize(places_.size());
  u_->pick(places_, values_.data());
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
    return FieldValues<double>(static_cast<std::size_t>(components) * n_cells,
                               MappedCentres(space, u, copies, tables, what, components));
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
