#include "gpu/spectral/residual_model.hpp"

#include "gpu/core/error.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/preconditioners/registry.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace poisson {

namespace {

/// sum scale u v; an empty scale is 1
double scaled_product(std::span<double const> scale, std::span<double const> u, std::span<double const> v) {
  auto const n = static_cast<std::int64_t>(u.size());
  double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i)
    sum +=
        (scale.empty() ? 1 : scale[static_cast<std::size_t>(i)]) * u[static_cast<std::size_t>(i)] * v[static_cast<std::size_t>(i)];
  return sum;
}

/// u += factor v
void add_multiple(std::span<double> u, double factor, std::span<double const> v) {
  auto const n = static_cast<std::int64_t>(u.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i)
    u[static_cast<std::size_t>(i)] += factor * v[static_cast<std::size_t>(i)];
}

/// M^T v
std::vector<double> products_with(DenseMatrix const& m, std::span<double const> v, Context& host) {
  std::vector<double> result(static_cast<std::size_t>(m.n_columns));
  if (!result.empty())
    gemm(host, true, false, m.n_columns, 1, m.n_rows, 1, m.values.data(), m.n_rows, v.data(), m.n_rows, 0, result.data(),
         m.n_columns);
  return result;
}

void append_column(DenseMatrix& m, std::span<double const> column) {
  m.n_rows = static_cast<std::int64_t>(column.size());
  m.values.insert(m.values.end(), column.begin(), column.end());
  ++m.n_columns;
}

/// The sum of weights[q] times symmetric matrices, whose lower triangles are given, n x n and row-major.
std::vector<double> combined(std::vector<std::vector<double>> const& lower, std::vector<double> const& weights, std::size_t n) {
  std::vector<double> sum(n * n, 0.0);
  for (std::size_t q = 0; q < weights.size(); ++q)
    for (std::size_t i = 0, e = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j)
        sum[i * n + j] += weights[q] * lower[q][e++];
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j)
      sum[j * n + i] = sum[i * n + j];
  return sum;
}

double small_product(std::span<double const> x, std::span<double const> y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += x[i] * y[i];
  return sum;
}

}  // namespace

ReducedSystem ResidualModel::system(SystemWeights const& weights) const {
  auto const r = static_cast<std::size_t>(modes);
  ReducedSystem sum{combined(a, weights.matrix, r), std::vector<double>(r, 0.0)};
  for (std::size_t p = 0; p < weights.rhs.size(); ++p)
    for (std::size_t k = 0; k < r; ++k)
      sum.b[k] += weights.rhs[p] * b[p][k];
  return sum;
}

ResidualModel::Estimate ResidualModel::estimate(SystemWeights const& weights, std::span<double const> c) const {
  std::size_t const n_matrices = a.size(), d = parts.back().size();
  std::vector<double> y;  // the residual
  auto const subtract = [&](double factor, std::vector<double> const& part) {
    y.resize(std::max(y.size(), part.size()), 0.0);
    for (std::size_t i = 0; i < part.size(); ++i)
      y[i] -= factor * part[i];
  };
  for (std::size_t p = 0; p < weights.rhs.size(); ++p)
    subtract(-weights.rhs[p], parts[p]);
  for (std::size_t k = 0; k < c.size(); ++k)
    for (std::size_t q = 0; q < weights.matrix.size(); ++q)
      subtract(weights.matrix[q] * c[k], parts[b.size() + k * n_matrices + q]);
  y.resize(d, 0.0);
  double const squared = small_product(y, solve_small(combined(energies, weights.matrix, d), y));
  std::vector<double> const equations = combined(a, weights.matrix, c.size());
  double of_solution = squared;
  for (std::size_t i = 0; i < c.size(); ++i)
    of_solution += c[i] * small_product({equations.data() + i * c.size(), c.size()}, c);
  return {std::sqrt(squared > 0 ? squared : 0), std::sqrt(of_solution)};
}

std::vector<double> ResidualModel::relative_errors(std::span<std::optional<SystemWeights> const> systems) const {
  std::vector<double> errors(systems.size(), std::nan(""));
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < systems.size(); ++i)
    if (systems[i])
      errors[i] = estimate(*systems[i], solve_leading(system(*systems[i]), static_cast<std::size_t>(modes))).relative();
  return errors;
}

ResidualModelMaker::ResidualModelMaker(std::shared_ptr<CsrMatrix const> reference, bool singular, double tolerance,
                                       double resolution, Context& host)
    : host_(host), reference_(std::move(reference)), tolerance_(tolerance), resolution_(resolution) {
  CsrMatrix const& a = *reference_;
  operator_ = make_matrix(Format::csr, reference_, host);
  PreconditionerOptions options{.kind = PreconditionerKind::multigrid, .csr = [this] { return reference_; }};
  options.multigrid.precision = MultigridPrecision::double_;
  options.constant_null_space = singular;
  setup_ = make_preconditioner(*operator_, options);
  if (!setup_->failure().empty()) {
    options.kind = PreconditionerKind::jacobi;
    setup_ = make_preconditioner(*operator_, options);
  }
  cycle_ = setup_->applied_in(0.0);
  scale_of_rows_.resize(static_cast<std::size_t>(a.n_rows));
  operator_->diagonal(scale_of_rows_.data());
  for (double& d : scale_of_rows_)
    d = 1 / (d > 0 ? d : 1);
  scale_of_entries_.resize(a.values.size());
  for (std::size_t i = 0; i < scale_of_rows_.size(); ++i)
    for (auto e = static_cast<std::size_t>(a.row_ptr[i]); e < static_cast<std::size_t>(a.row_ptr[i + 1]); ++e)
      scale_of_entries_[e] = scale_of_rows_[i] * scale_of_rows_[static_cast<std::size_t>(a.columns[e])];
}

double ResidualModelMaker::take_terms(std::span<double> values, std::vector<std::span<double const>> const& terms,
                                      std::span<double const> scale, std::vector<double>& weights) const {
  double const before = std::sqrt(scaled_product(scale, values, values));
  weights.assign(terms.size(), 0.0);
  for (int pass = 0; pass < 2; ++pass)  // the second one takes what rounding has left
    for (std::size_t t = 0; t < terms.size(); ++t) {
      double const weight = scaled_product(scale, values, terms[t]);
      add_multiple(values, -weight, terms[t]);
      weights[t] += weight;
    }
  double const left = std::sqrt(scaled_product(scale, values, values));
  return left > tolerance_ * before ? left : 0;
}

SystemWeights ResidualModelMaker::add(CsrMatrix const& a, std::span<double const> b) {
  if (a.row_ptr != reference_->row_ptr || a.columns != reference_->columns)
    throw InputError("the matrices of two cases have their entries at different places");
  SystemWeights weights;
  CsrMatrix rest = a;
  std::vector<std::span<double const>> terms(matrices_.size());
  std::transform(matrices_.begin(), matrices_.end(), terms.begin(), [](auto const& m) { return std::span(m->values); });
  if (double const norm = take_terms(rest.values, terms, scale_of_entries_, weights.matrix); norm > 0) {
    for (double& value : rest.values)
      value /= norm;
    weights.matrix.push_back(norm);
    matrices_.push_back(std::make_shared<CsrMatrix const>(std::move(rest)));
    products_.push_back(make_matrix(Format::csr, matrices_.back(), host_));
  }
  HostVector<double> rest_of_b(b.begin(), b.end());
  if (double const norm = take_terms(rest_of_b, {right_hand_sides_.begin(), right_hand_sides_.end()}, scale_of_rows_, weights.rhs);
      norm > 0) {
    for (double& value : rest_of_b)
      value /= norm;
    weights.rhs.push_back(norm);
    right_hand_sides_.push_back(std::move(rest_of_b));
  }
  return weights;
}

void ResidualModelMaker::extend(std::vector<std::vector<double>>& products, DenseMatrix const& vectors) const {
  products.resize(products_.size());
  auto const n = static_cast<std::size_t>(vectors.n_rows);
  HostVector<double> image(n);
  for (std::size_t q = 0; q < products_.size(); ++q) {
    products_[q]->product(1.0, vectors.column(vectors.n_columns - 1), 0.0, image.data());
    auto const row = products_with(vectors, image, host_);
    products[q].insert(products[q].end(), row.begin(), row.end());
  }
}

void ResidualModelMaker::add_part(HostVector<double> g) {
  std::vector<double> coordinates(static_cast<std::size_t>(z_.n_columns), 0.0);
  for (int pass = 0; pass < 2 && z_.n_columns > 0; ++pass) {
    auto const along = products_with(z_, g, host_);
    gemm(host_, false, false, z_.n_rows, 1, z_.n_columns, -1, parts_.values.data(), z_.n_rows, along.data(), z_.n_columns, 1,
         g.data(), z_.n_rows);
    for (std::size_t i = 0; i < along.size(); ++i)
      coordinates[i] += along[i];
  }
  HostVector<double> z(g.size());
  std::int32_t const go_on = 0;
  cycle_->apply(g.data(), z.data(), &go_on);
  double const left = scaled_product({}, g, z), size = std::sqrt(left > 0 ? left : 0);
  if (size > resolution_ * std::hypot(size, std::sqrt(small_product(coordinates, coordinates)))) {
    for (std::size_t i = 0; i < g.size(); ++i) {
      g[i] /= size;
      z[i] /= size;
    }
    append_column(parts_, g);
    append_column(z_, z);
    extend(model_.energies, z_);
    coordinates.push_back(size);
  }
  model_.parts.push_back(std::move(coordinates));
}

void ResidualModelMaker::add_mode(std::span<double const> v) {
  if (model_.parts.empty()) {
    for (HostVector<double> const& b : right_hand_sides_)
      add_part(b);
    model_.b.resize(right_hand_sides_.size());
  }
  append_column(modes_, v);
  ++model_.modes;
  for (std::size_t p = 0; p < right_hand_sides_.size(); ++p)
    model_.b[p].push_back(scaled_product({}, right_hand_sides_[p], v));
  extend(model_.a, modes_);
  for (auto const& matrix : products_) {
    HostVector<double> image(v.size());
    matrix->product(1.0, v.data(), 0.0, image.data());
    add_part(std::move(image));
  }
}

double ResidualModelMaker::squared_energy(SystemWeights const& weights, std::span<double const> x) const {
  HostVector<double> image(x.size());
  double sum = 0;
  for (std::size_t q = 0; q < weights.matrix.size(); ++q) {
    products_[q]->product(1.0, x.data(), 0.0, image.data());
    sum += weights.matrix[q] * scaled_product({}, image, x);
  }
  return sum;
}

}  // namespace poisson
