#include "gpu/elements/void_box_operator.hpp"

#include "gpu/elements/box_points.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/half_cds.hpp"
#include "gpu/kernels/rim.hpp"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <utility>

namespace poisson {

namespace {

/// k of void over the largest k that there is, where the inverse is only wanted approximately: at most that, and so much less than
/// the smallest k. Levels in single precision take jumps of 1e6.
constexpr double share_of_largest = 1e-6, share_of_smallest = 1e-3;

/// Calls copy(from, to) for vectors of T: for the high and the low parts of DoubleDouble.
template <class T, class Copy>
void for_parts(ConstPointer<T> from, Pointer<T> to, Copy const& copy) {
  if constexpr (std::is_same_v<T, DoubleDouble>) {
    copy(from.hi, to.hi);
    copy(from.lo, to.lo);
  } else {
    copy(from, to);
  }
}

template <class T>
void spread_by(Context& context, Array<std::int32_t> const& nodes, ConstPointer<T> of_rows, Pointer<T> of_box) {
  for_parts<T>(of_rows, of_box, [&]<class V>(V const* from, V* to) {
    kernels_for<RimKernels<V>>(context).put(context, nodes.size(), nodes.data(), from, to);
  });
}

template <class T>
void gather_by(Context& context, Array<std::int32_t> const& nodes, ConstPointer<T> of_box, Pointer<T> of_rows) {
  for_parts<T>(of_box, of_rows, [&]<class V>(V const* from, V* to) {
    kernels_for<RimKernels<V>>(context).pack(context, nodes.size(), nodes.data(), from, to);
  });
}

Array<double> zeros(Context& context, std::int64_t n) {
  Array<double> result(context, n);
  result.set_zero();
  return result;
}

}  // namespace

VoidBoxOperator::VoidBoxOperator(Context& context, std::unique_ptr<LabelOperator> box, std::vector<std::array<double, 3>> k,
                                 Array<std::int32_t> nodes)
    : Matrix(context), box_(std::move(box)), k_(std::move(k)), nodes_(std::move(nodes)) {
  assert(k_.size() > 1 && k_[0] == (std::array<double, 3>{}));
}

std::unique_ptr<Matrix> VoidBoxOperator::filled() const {
  double smallest = k_[1][0], largest = smallest;
  for (std::size_t label = 1; label < k_.size(); ++label)
    for (double const k : k_[label]) {
      smallest = std::min(smallest, k);
      largest = std::max(largest, k);
    }
  std::vector<std::array<double, 3>> k = k_;
  k[0].fill(std::min(share_of_largest * largest, share_of_smallest * smallest));
  std::unique_ptr<LabelOperator> labels = box_->with(k);
  if (context().backend() == Backend::cuda)
    return labels;
  auto const [nx, ny, nz] = box_nodes();
  Array<double> values(context(), half_stencil::diagonals * n_of_box());
  labels->fill_diagonals(values.data());
  std::vector<std::int32_t> offsets;
  for (int s = 0; s < half_stencil::diagonals; ++s)
    offsets.push_back(static_cast<std::int32_t>(half_stencil::offset(s, nx, nx * ny)));
  return HalfCds::from_diagonals(context(), n_of_box(), std::move(offsets), std::move(values), 1);
}

void VoidBoxOperator::spread(double const* of_rows, double* of_box) const {
  spread_by<double>(context(), nodes_, of_rows, of_box);
}

void VoidBoxOperator::gather(double const* of_box, double* of_rows) const {
  gather_by<double>(context(), nodes_, of_box, of_rows);
}

template <class T>
VoidBoxOperator::Vectors<T>& VoidBoxOperator::vectors() const {
  Vectors<T>* result = nullptr;
  if constexpr (std::is_same_v<T, float>)
    result = &in_float_;
  else if constexpr (std::is_same_v<T, double>)
    result = &in_double_;
  else
    result = &in_double_double_;
  if (result->x.size() == 0) {
    result->x = Vector<T>(context(), n_of_box());
    result->y = Vector<T>(context(), n_of_box());
    std::int64_t const bytes = result->x.bytes();
    if constexpr (std::is_same_v<T, DoubleDouble>) {
      context().set_zero(result->x.data().hi, bytes / 2);
      context().set_zero(result->x.data().lo, bytes / 2);
    } else {
      context().set_zero(result->x.data(), bytes);
    }
  }
  return *result;
}

template <class T>
void VoidBoxOperator::multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y) const {
  Vectors<T>& of_box = vectors<T>();
  spread_by<T>(context(), nodes_, x, of_box.x.data());
  if (beta != T(0))
    spread_by<T>(context(), nodes_, y, of_box.y.data());
  box_->product(alpha, std::as_const(of_box.x).data(), beta, of_box.y.data());
  gather_by<T>(context(), nodes_, std::as_const(of_box.y).data(), y);
}

template <class T>
void VoidBoxOperator::multiply_dot(ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) const {
  Vectors<T>& of_box = vectors<T>();
  spread_by<T>(context(), nodes_, x, of_box.x.data());
  box_->product_dot(std::as_const(of_box.x).data(), of_box.y.data(), dot, stop);
  gather_by<T>(context(), nodes_, std::as_const(of_box.y).data(), y);
}

template <class T>
void VoidBoxOperator::take_diagonal(Pointer<T> d) const {
  Vector<T>& of_box = vectors<T>().y;
  box_->diagonal(of_box.data());
  gather_by<T>(context(), nodes_, std::as_const(of_box).data(), d);
}

void VoidBoxOperator::product(float alpha, float const* x, float beta, float* y) const {
  multiply<float>(alpha, x, beta, y);
}
void VoidBoxOperator::product(double alpha, double const* x, double beta, double* y) const {
  multiply<double>(alpha, x, beta, y);
}
void VoidBoxOperator::product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const {
  multiply<DoubleDouble>(alpha, x, beta, y);
}
void VoidBoxOperator::product_dot(float const* x, float* y, float* dot, std::int32_t const* stop) const {
  multiply_dot<float>(x, y, dot, stop);
}
void VoidBoxOperator::product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const {
  multiply_dot<double>(x, y, dot, stop);
}
void VoidBoxOperator::product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                                  std::int32_t const* stop) const {
  multiply_dot<DoubleDouble>(x, y, dot, stop);
}
void VoidBoxOperator::diagonal(float* d) const {
  take_diagonal<float>(d);
}
void VoidBoxOperator::diagonal(double* d) const {
  take_diagonal<double>(d);
}
void VoidBoxOperator::diagonal(Pointer<DoubleDouble> d) const {
  take_diagonal<DoubleDouble>(d);
}

bool VoidBoxOperator::residual(double const* x, double const* x_low, double const* b, double* r) const {
  Vectors<double>& of_box = vectors<double>();
  Array<double> b_of_box = zeros(context(), n_of_box()), low = zeros(context(), x_low != nullptr ? n_of_box() : 0);
  spread(x, of_box.x.data());
  spread(b, b_of_box.data());
  if (x_low != nullptr)
    spread(x_low, low.data());
  if (!box_->residual(of_box.x.data(), x_low != nullptr ? low.data() : nullptr, b_of_box.data(), of_box.y.data()))
    return false;
  gather(of_box.y.data(), r);
  return true;
}

std::unique_ptr<Matrix> VoidBoxOperator::copied_to(Context& target) const {
  std::unique_ptr<Matrix> box = box_->copy_to(target);
  std::unique_ptr<LabelOperator> labels(dynamic_cast<LabelOperator*>(box.release()));
  return std::make_unique<VoidBoxOperator>(target, std::move(labels), k_, nodes_.copy_to(target));
}

CsrMatrix VoidBoxOperator::host_csr() const {
  CsrMatrix const of_box = box_->to_csr();
  HostVector<std::int32_t> nodes(static_cast<std::size_t>(n_rows()));
  nodes_.download(std::span<std::int32_t>(nodes));
  HostVector<std::int32_t> row_of(static_cast<std::size_t>(n_of_box()), -1);
  for (std::size_t row = 0; row < nodes.size(); ++row)
    row_of[static_cast<std::size_t>(nodes[row])] = static_cast<std::int32_t>(row);
  CsrMatrix result;
  result.n_rows = result.n_columns = n_rows();
  result.row_ptr.push_back(0);
  for (std::int32_t const node : nodes) {
    for (auto e = of_box.row_ptr[node]; e < of_box.row_ptr[node + 1]; ++e)
      if (of_box.values[e] != 0) {
        result.columns.push_back(row_of[static_cast<std::size_t>(of_box.columns[e])]);
        result.values.push_back(of_box.values[e]);
      }
    result.row_ptr.push_back(std::ssize(result.columns));
  }
  return result;
}

VoidBoxSystem make_void_box(Context& context, BoxProblem const& problem, std::span<std::int32_t const> nodes) {
  assert(problem.materials && problem.materials->has_void);
  BoxSystem system(context, problem, Format::matrix_free);
  std::unique_ptr<Matrix> matrix = system.take_matrix();
  std::unique_ptr<LabelOperator> labels(dynamic_cast<LabelOperator*>(matrix.release()));
  std::vector<std::array<double, 3>> k;
  for (std::size_t id = 0; id < problem.materials->coefficients.size(); ++id)
    k.push_back({constant_of(problem, id, 0), constant_of(problem, id, 1), constant_of(problem, id, 2)});
  VoidBoxSystem result;
  result.matrix = std::make_unique<VoidBoxOperator>(context, std::move(labels), std::move(k), Array<std::int32_t>(context, nodes));
  result.rhs = Array<double>(context, std::ssize(nodes));
  result.matrix->gather(system.rhs().data(), result.rhs.data());
  return result;
}

}  // namespace poisson
