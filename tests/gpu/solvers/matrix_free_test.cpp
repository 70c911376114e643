#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/systems.hpp"

#include "gpu/core/error.hpp"
#include "gpu/preconditioners/registry.hpp"
#include "gpu/solvers/solver.hpp"
#include "gpu/solvers/true_residual.hpp"

#include <cmath>
#include <string>

/// Solvers, preconditioners and the check of residuals on an operator that stores no matrix.
namespace poisson::testing {

namespace {

/// -u'' + c u on n points of the host, matrix-free: 2 + c on the diagonal, -1 beside it.
class SecondDifferences final : public MultiPrecisionOperator {
public:
  SecondDifferences(std::int64_t n, double c, Context& context) : n_(n), c_(c), context_(context) {}
  std::int64_t n_rows() const override { return n_; }
  std::int64_t n_columns() const override { return n_; }
  std::int64_t bytes_read(double) const override { return 0; }
  std::int64_t bytes_read(DoubleDouble) const override { return 0; }
  Context& context() const override { return context_; }
  void product(double alpha, double const* x, double beta, double* y) const override { multiply<double>(alpha, x, beta, y); }
  void product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const override {
    multiply<DoubleDouble>(alpha, x, beta, y);
  }
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override {
    multiply_dot<double>(x, y, dot, stop);
  }
  void product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                   std::int32_t const* stop) const override {
    multiply_dot<DoubleDouble>(x, y, dot, stop);
  }
  void diagonal(double* d) const override { std::fill(d, d + n_, 2 + c_); }
  void diagonal(Pointer<DoubleDouble> d) const override {
    for (std::int64_t i = 0; i < n_; ++i)
      store(d, i, DoubleDouble(2 + c_));
  }

private:
  template <class T>
  void multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y) const {
    for (std::int64_t i = 0; i < n_; ++i) {
      T sum = T(2 + c_) * load(x, i);
      if (i > 0)
        sum = sum - load(x, i - 1);
      if (i + 1 < n_)
        sum = sum - load(x, i + 1);
      store(y, i, beta == T(0) ? T(alpha * sum) : T(alpha * sum + beta * load(y, i)));
    }
  }
  template <class T>
  void multiply_dot(ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) const {
    if (*stop != 0)
      return;
    multiply<T>(T(1), x, T(0), y);
    T sum = 0;
    for (std::int64_t i = 0; i < n_; ++i)
      sum = sum + load(x, i) * load(y, i);
    *dot = sum;
  }

  std::int64_t n_;
  double c_;
  Context& context_;
};

/// Computes residuals of the system of SecondDifferences, which is written down once more.
class SecondDifferencesCheck final : public ResidualCheck {
public:
  SecondDifferencesCheck(std::int64_t n, double c) : n_(n), c_(c) {}
  std::int64_t n_rows() const override { return n_; }
  std::int64_t n_columns() const override { return n_; }
  void residual(std::span<double const> x, std::span<double const> x_low, std::span<double const> b,
                std::span<double> r) const override {
    auto const at = [&](std::size_t i) { return static_cast<long double>(x[i]) + (x_low.empty() ? 0 : x_low[i]); };
    auto const n = static_cast<std::size_t>(n_);
    for (std::size_t i = 0; i < n; ++i)
      r[i] = static_cast<double>(b[i] - (2 + static_cast<long double>(c_)) * at(i) + (i > 0 ? at(i - 1) : 0) +
                                 (i + 1 < n ? at(i + 1) : 0));
  }

private:
  std::int64_t n_;
  double c_;
};

TEST(MatrixFree, EveryMethodPrecisionAndPreconditionerThatNeedsNoEntries) {
  std::int64_t const n = 500;
  auto const context = make_context(Backend::cpu);
  SecondDifferences const a(n, 0.125, *context);
  SecondDifferencesCheck const check(n, 0.125);
  auto const b = random_vector(n, 3);
  for (auto const& method : Names<Method>::values)
    for (auto const& precision : Names<Precision>::values)
      for (auto const& preconditioner : Names<PreconditionerKind>::values) {
        SCOPED_TRACE(std::string(method.name) + " " + std::string(precision.name) + " " + std::string(preconditioner.name));
        SolverOptions options;
        options.method = method.value;
        options.precision = precision.value;
        options.preconditioner = preconditioner.value;
        std::vector<double> x(static_cast<std::size_t>(n));
        if (needs_csr(preconditioner.value)) {
          try {
            static_cast<void>(solve(a, b, x, options));
            FAIL() << "no InputError";
          } catch (InputError const& error) {
            expect_contains(error.what(), {preconditioner.name.data(), "entries"});
          }
          continue;
        }
        SolverResult const result = solve(a, b, x, options);
        EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
        EXPECT_LE(true_residual(check, x, b, result.x_low), 2.1e-12);
      }
}

/// One row a kind: M z = r holds for what `apply` makes of r, M being told apart from the code that is tested.
template <class T>
void apply_and_check(PreconditionerKind kind, Context& context) {
  std::int64_t const n = 40;
  auto csr = banded(n, {1}, 3, true);  // tridiagonal: nothing is dropped, so ic0 and ilu0 are A itself
  auto const matrix = make_matrix(Format::csr, csr, context);
  // One level of multigrid, which is inverted.
  MultigridOptions const in_double{.precision = MultigridPrecision::double_};
  auto const setup = make_preconditioner(*matrix, {.kind = kind, .csr = [&] { return csr; }, .multigrid = in_double});
  PreconditionerEntry const& entry = entry_of(kind);
  if (entry.form == PreconditionerForm::none) {
    EXPECT_EQ(setup, nullptr);
    return;
  }
  ASSERT_EQ(setup->failure(), "");
  auto const m = setup->applied_in(T(0));
  EXPECT_EQ(m->inverse_diagonal() != nullptr, entry.form == PreconditionerForm::diagonal);
  EXPECT_GT(m->bytes_per_apply(), 0);
  // Every row of a tridiagonal factor waits for the one before it, in the lower and in the upper solve.
  if (entry.uses_ordering || entry.form != PreconditionerForm::general) {
    EXPECT_EQ(m->dependent_steps(), entry.uses_ordering ? 2 * n : 1);
  }
  auto const r = random_vector(n, 3);
  Vector<T> const device_r(context, std::span<double const>(r));
  Vector<T> z(context, n);
  z.set_zero();
  std::vector<std::int32_t> const running{0}, stopped{1};
  Array<std::int32_t> const go(context, std::span<std::int32_t const>(running)),
      stop(context, std::span<std::int32_t const>(stopped));
  HostVector<double> result(static_cast<std::size_t>(n));
  m->apply(device_r.data(), z.data(), stop.data());
  z.download(std::span<double>(result));
  EXPECT_EQ(result, HostVector<double>(static_cast<std::size_t>(n), 0.0)) << "it was told to stop";
  m->apply(device_r.data(), z.data(), go.data());
  z.download(std::span<double>(result));
  for (std::int64_t row = 0; row < n; ++row) {
    double sum = 0;
    for (auto e = static_cast<std::size_t>(csr->row_ptr[row]); e < static_cast<std::size_t>(csr->row_ptr[row + 1]); ++e)
      if (entry.form == PreconditionerForm::general || csr->columns[e] == row)
        sum += csr->values[e] * result[static_cast<std::size_t>(csr->columns[e])];
    EXPECT_NEAR(sum, r[static_cast<std::size_t>(row)], 1e-13) << row;
  }
}

template <class B>
class Preconditioners : public OnBackend<B::value> {};
TYPED_TEST_SUITE(Preconditioners, Backends, BackendNames);

TYPED_TEST(Preconditioners, InvertWhatTheySay) {
  for (auto const& kind : Names<PreconditionerKind>::values) {
    if (kind.value == PreconditionerKind::automatic ||
        (kind.value == PreconditionerKind::direct && this->context->backend() != Backend::cpu))
      continue;
    SCOPED_TRACE(kind.name);
    EXPECT_EQ(entry_of(kind.value).kind, kind.value);
    apply_and_check<double>(kind.value, *this->context);
    apply_and_check<DoubleDouble>(kind.value, *this->context);
  }
}

}  // namespace
}  // namespace poisson::testing
