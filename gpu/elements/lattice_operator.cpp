#include "gpu/elements/lattice_operator.hpp"

#include "gpu/formats/csr_by_rows.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/kernels/rim.hpp"
#include "gpu/kernels/vectors.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace poisson {

LatticeOperator::Data LatticeOperator::Data::copy_to(Context& target, StoredEntries with) const {
  Data copy;
  copy.lattices = lattices.copy_to(target);
  copy.tensors = std::move(with);
  copy.of_k = of_k;
  for (std::size_t d = 0; d < 3; ++d)
    copy.edges[d] = edges[d].copy_to(target);
  copy.fixed = fixed.copy_to(target);
  copy.mass_faces = mass_faces.copy_to(target);
  copy.face_mass = face_mass.copy_to(target);
  copy.diagonal = diagonal.copy_to(target);
  return copy;
}

std::int64_t LatticeOperator::Data::bytes() const {
  std::int64_t of_edges = 0;
  for (std::size_t d = 0; d < 3; ++d)
    of_edges += edges[d].bytes();
  return of_edges + lattices.bytes() + tensors.bytes() + fixed.bytes() + mass_faces.bytes() + face_mass.bytes() + diagonal.bytes();
}

std::int64_t LatticeOperator::n_tensor_values(std::int64_t n_cells, std::int32_t order) {
  std::int64_t const n1 = order + 1;
  return 6 * n1 * n1 * n1 * LatticeTensors::padded(n_cells);
}

std::unique_ptr<LatticeOperator> LatticeOperator::make(Context& context, Data data) {
  assert(data.tensors.low_values.size() == 0 && data.tensors.single_values.size() == 0);
  data.diagonal = Array<double>(context, data.lattices.view().n_unknowns);
  double* const diagonal = data.diagonal.data();
  std::unique_ptr<LatticeOperator> result(new LatticeOperator(context, std::move(data)));
  result->kernels_.diagonal(context, result->view_, diagonal);
  return result;
}

std::unique_ptr<Matrix> LatticeOperator::in_single() const {
  if (precision() != MatrixPrecision::double_)
    return nullptr;
  std::unique_ptr<LatticeOperator> rounded(
      new LatticeOperator(context(), data_.copy_to(context(), data_.tensors.in_single(context()))));
  if (shared_ != nullptr)
    rounded->set_shared(shared_->lattices, shared_->fixed, shared_->ranks);
  return rounded;
}

LatticeOperator::LatticeOperator(Context& context, Data data) : ProductsOfKernels(context, {}), data_(std::move(data)) {
  view_.lattices = data_.lattices.view();
  data_.tensors.set_pointers(view_);
  view_.fixed = data_.fixed.data();
  view_.mass_faces = data_.mass_faces.data();
  view_.n_mass_faces = static_cast<std::int32_t>(data_.mass_faces.size());
  view_.face_mass = data_.face_mass.data();
  view_.diagonal = data_.diagonal.data();
  view_.box.k = data_.of_k;
  for (std::size_t d = 0; d < 3; ++d)
    view_.box.edges[d] = data_.edges[d].data();
  Quadrature1D const gauss = gauss_quadrature(view_.points_of_direction());
  std::copy(gauss.weight.begin(), gauss.weight.end(), view_.box.weight);
  assert(view_.stores_k() || data_.tensors.size() == n_tensor_values(view_.n_cells(), view_.lattices.order));
}

void LatticeOperator::diagonal(float* d) const {
  kernels_for<ConversionKernels>(context()).round(context(), n_rows(), data_.diagonal.data(), d);
}

void LatticeOperator::diagonal(double* d) const {
  kernels_for<VectorKernels<double>>(context()).copy(context(), n_rows(), data_.diagonal.data(), d);
}

void LatticeOperator::diagonal(Pointer<DoubleDouble> d) const {
  diagonal(d.hi);
  context().set_zero(d.lo, 8 * n_rows());
}

bool LatticeOperator::residual(double const* x, double const* x_low, double const* b, double* r) const {
  if (precision() == MatrixPrecision::single)
    return false;
  kernels_.residual(context(), view_, x, x_low, b, r);
  if (shared_ != nullptr)
    set_residual_on_rims(b, r);
  return true;
}

void LatticeOperator::set_residual_on_rims(double const* b, double* r) const {
  // The sums of all ranks, before they are rounded.
  std::int64_t const n = n_rows(), n_inner = view_.lattices.n_inner(), n_rim = n - n_inner;
  Array<DoubleDouble> sums_here(context(), n_rim);
  kernels_.sums_on_rims(context(), view_, n_inner, n_rim, sums_here.data());
  Vector<DoubleDouble> sums_in_rows(context(), n);
  sums_in_rows.set_zero();
  kernels_for<RimKernels<DoubleDouble>>(context()).put(context(), n_rim, nullptr, sums_here.data(), sums_in_rows.data() + n_inner);
  Halo<DoubleDouble>& halo = shared_->sums.in<DoubleDouble>();
  kernels_.sums_on_rims(context(), view_, n, n_columns() - n, halo.outgoing());
  halo.start();
  halo.add(1, sums_in_rows.data());
  HostVector<double> high(static_cast<std::size_t>(n_rim)), low(high.size()), b_here(high.size()), r_here(high.size());
  auto const download = [&](HostVector<double>& to, double const* from) {
    context().download(to.data(), from + n_inner, 8 * n_rim);
  };
  download(high, sums_in_rows.data().hi);
  download(low, sums_in_rows.data().lo);
  download(b_here, b);
  download(r_here, r);
  for (std::size_t i = 0; i < high.size(); ++i)
    if ((*shared_->fixed)[i] == 0)
      r_here[i] = (DoubleDouble(b_here[i]) - DoubleDouble{high[i], low[i]}).hi;
  context().upload(r + n_inner, r_here.data(), 8 * n_rim);
}

void LatticeOperator::keep_rows(std::int64_t n) {
  data_.lattices.keep_rows(n);
  view_.lattices = data_.lattices.view();
}

void LatticeOperator::share(std::shared_ptr<SharedLattices const> lattices, std::shared_ptr<HostVector<std::uint8_t> const> fixed,
                            Array<double> const& diagonal, Communicator& ranks) {
  kernels_for<VectorKernels<double>>(context()).copy(context(), diagonal.size(), diagonal.data(), data_.diagonal.data());
  set_shared(std::move(lattices), std::move(fixed), ranks);
}

void LatticeOperator::set_shared(std::shared_ptr<SharedLattices const> lattices,
                                 std::shared_ptr<HostVector<std::uint8_t> const> fixed, Communicator& ranks) {
  keep_rows(lattices->n_rows);
  HaloPlaces const places(lattices->n_rows, lattices->neighbors);
  bool const single = precision() == MatrixPrecision::single;
  shared_.reset(new Shared{std::move(lattices), std::move(fixed), ranks, GhostSums(context(), ranks, places, single)});
}

template <class T>
void LatticeOperator::multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y, T* dot, std::int32_t const* stop) const {
  auto const multiply_here = [&](LatticeOperatorView const& view) {
    if (dot != nullptr)
      kernels_.product_dot(context(), view, x, y, dot, stop);
    else
      kernels_.product(context(), view, alpha, x, beta, y);
  };
  if (shared_ == nullptr)
    return multiply_here(view_);
  // Sums go to other ranks while own rows are added up.
  Halo<T>& halo = shared_->sums.in<T>();
  bool sent = false;
  std::function<void()> const send = [&] {
    kernels_.sums_on_rims(context(), view_, n_rows(), n_columns() - n_rows(), halo.outgoing());
    halo.start();
    sent = true;
  };
  LatticeOperatorView view = view_;
  view.after_cells = &send;
  multiply_here(view);
  if (!sent)  // the host knew *stop: others must not wait in vain
    send();
  halo.add(alpha, y);
}
template void LatticeOperator::multiply(float, float const*, float, float*, float*, std::int32_t const*) const;
template void LatticeOperator::multiply(double, double const*, double, double*, double*, std::int32_t const*) const;
template void LatticeOperator::multiply(DoubleDouble, ConstPointer<DoubleDouble>, DoubleDouble, Pointer<DoubleDouble>,
                                        DoubleDouble*, std::int32_t const*) const;

CsrMatrix LatticeOperator::rows_of_cells() const {
  auto const host = make_cpu_context();
  LatticeOperator copy(*host, data_.copy_to(*host, data_.tensors.copy_to(*host)));
  copy.keep_rows(n_columns());
  CsrMatrix result = copy.host_csr();
  // The diagonal entry of an unknown with a Dirichlet value is whole where its row is.
  for (std::int64_t row = n_rows(); row < result.n_rows; ++row)
    if ((*shared_->fixed)[static_cast<std::size_t>(row - view_.lattices.n_inner())] != 0)
      result.values[static_cast<std::size_t>(result.row_ptr[static_cast<std::size_t>(row)])] = -0.0;
  return result;
}

void LatticeOperator::subtract_whole_product(double const* x, double* rhs) const {
  LatticeOperatorView whole = view_;
  whole.fixed = nullptr;
  kernels_.product(context(), whole, -1.0, x, 1.0, rhs);
}

std::unique_ptr<Matrix> LatticeOperator::copied_to(Context& target) const {
  if (shared_ != nullptr)
    throw std::logic_error("the operator of a rank stays where it was made");
  return std::unique_ptr<Matrix>(new LatticeOperator(target, data_.copy_to(target, data_.tensors.copy_to(target))));
}

namespace {

using namespace lattice_cells;

/// Rows of element matrices, by plain sums.
class ElementRows {
public:
  explicit ElementRows(LatticeOperatorView const& a)
      : a_(a),
        tables_(accurate_tables(a.lattices.order)),
        points_(static_cast<std::size_t>(a.points())),
        gradients_(points_ * points_),
        mass_face_(static_cast<std::size_t>(6 * a.lattices.n_lattices), -1) {
    auto const n1 = static_cast<std::size_t>(a.points_of_direction());
    auto const& value = tables_.element.value;
    auto const& slope = tables_.derivative;
    for (std::size_t q = 0; q < points_; ++q)
      for (std::size_t b = 0; b < points_; ++b) {
        std::size_t const qx = q % n1, qy = q / n1 % n1, qz = q / (n1 * n1), bx = b % n1, by = b / n1 % n1, bz = b / (n1 * n1);
        gradients_[q * points_ + b] = {slope[qx][bx] * value[qy][by] * value[qz][bz], value[qx][bx] * slope[qy][by] * value[qz][bz],
                                       value[qx][bx] * value[qy][by] * slope[qz][bz]};
      }
    for (std::int32_t number = 0; number < a.n_mass_faces; ++number)
      mass_face_[static_cast<std::size_t>(a.mass_faces[number])] = number;
  }

  /// row[b] = entry (node, b) of the matrix of a cell.
  void operator()(std::int64_t cell, std::int32_t node, std::vector<double>& row) const {
    row.assign(points_, 0.0);
    for (std::size_t q = 0; q < points_; ++q) {
      double d[6];
      if (a_.single_values != nullptr)
        tensor_at(a_, a_.single_values, cell, static_cast<int>(q), d);
      else
        tensor_at(a_, a_.values, cell, static_cast<int>(q), d);
      double const xx = d[0], yy = d[1], zz = d[2], xy = d[3], xz = d[4], yz = d[5];
      std::array<double, 3> const& g = gradients_[q * points_ + static_cast<std::size_t>(node)];
      for (std::size_t b = 0; b < points_; ++b) {
        std::array<double, 3> const& h = gradients_[q * points_ + b];
        row[b] += xx * (g[0] * h[0]) + yy * (g[1] * h[1]) + zz * (g[2] * h[2]) + xy * (g[0] * h[1] + g[1] * h[0]) +
                  xz * (g[0] * h[2] + g[2] * h[0]) + yz * (g[1] * h[2] + g[2] * h[1]);
      }
    }
    add_faces(cell, node, row);
  }

private:
  void add_faces(std::int64_t cell, std::int32_t node, std::vector<double>& row) const {
    Place const place = cell_place(a_, cell);
    std::int32_t const n = a_.lattices.cells, p = a_.lattices.order, n1 = p + 1;
    std::array<std::int32_t, 3> const i{node % n1, node / n1 % n1, node / (n1 * n1)};
    for (int face = 0; face < 6; ++face) {
      std::int32_t const number = mass_face_[static_cast<std::size_t>(6 * place.lattice + face)];
      if (number < 0 || place.i[face / 2] != (face % 2 == 0 ? 0 : n - 1) ||
          i[static_cast<std::size_t>(face) / 2] != (face % 2 == 0 ? 0 : p))
        continue;
      auto const u = static_cast<std::size_t>((face / 2 + 1) % 3), v = static_cast<std::size_t>((face / 2 + 2) % 3);
      FaceCell const cell_at_face = face_cell(a_, number, place.i[v] * n + place.i[u]);
      std::int32_t const own = i[v] * n1 + i[u];
      double const* const mass = a_.face_mass + ((std::int64_t{number} * n + place.i[v]) * n + place.i[u]) * n1 * n1;
      for (int t = 0; t < n1 * n1; ++t) {
        int other[3];
        cell_at_face.node(p, t, other);
        double& entry = row[static_cast<std::size_t>((other[2] * n1 + other[1]) * n1 + other[0])];
        for (int q = 0; q < n1 * n1; ++q)
          entry += mass[q] * (face_value(tables_.element, own, q) * face_value(tables_.element, t, q));
      }
    }
  }

  LatticeOperatorView const& a_;
  AccurateTables tables_;
  std::size_t points_;
  std::vector<std::array<double, 3>> gradients_;  ///< of functions on the reference cell: [q points + b]
  std::vector<std::int32_t> mass_face_;           ///< [6 lattice + face]: number, or -1
};

}  // namespace

CsrMatrix LatticeOperator::host_csr() const {
  if (shared_ != nullptr)
    throw std::logic_error("rows of an operator that several ranks share are sums of their parts");
  LatticeView const& lattices = view_.lattices;
  ElementRows const rows(view_);
  auto const make_row = [&](std::int64_t row, auto& entries, std::vector<double>* element_row) {
    if (view_.is_fixed(row)) {
      entries.push_back({static_cast<std::int32_t>(row), view_.diagonal[row]});
      return;
    }
    for_nodes_of(lattices, row, [&](std::int64_t lattice, std::int32_t i, std::int32_t j, std::int32_t k) {
      for_cells_around(view_, lattice, i, j, k, [&](std::int64_t cell, std::int32_t node) {
        if (element_row != nullptr)
          rows(cell, node, *element_row);
        Place const place = cell_place(view_, cell);
        std::int32_t const n1 = lattices.order + 1;
        for (std::int32_t b = 0; b < n1 * n1 * n1; ++b)
          if (std::int64_t const column = unknown_of(lattices, place, b % n1, b / n1 % n1, b / (n1 * n1)); !view_.is_fixed(column))
            entries.push_back(
                {static_cast<std::int32_t>(column), element_row != nullptr ? (*element_row)[static_cast<std::size_t>(b)] : 0});
      });
    });
  };
  return csr_by_rows<double, std::vector<double>>(n_rows(), n_columns(), make_row);
}

}  // namespace poisson
