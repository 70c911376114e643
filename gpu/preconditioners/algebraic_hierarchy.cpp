#include "gpu/core/number_text.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/smoother.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/preconditioners/sparse_product.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace poisson {

namespace {

constexpr double strong = 0.25;            ///< share of the strongest couplings from which one is strong
constexpr int power_steps = 12;            ///< of that estimate
constexpr double least_shrink = 0.8;       ///< a level with more than this share of the rows above it is not worth its cost
constexpr std::int64_t most_dense = 4096;  ///< rows of a matrix that is inverted

/// What the aggregation needs of a matrix: its diagonal, and the strongest coupling of every row. Couplings are -a_ij / sign(a_ii).
struct Couplings {
  std::vector<double> diagonal, strongest;
  std::string failure;

  explicit Couplings(CsrMatrix const& a, bool positive)
      : diagonal(static_cast<std::size_t>(a.n_rows)), strongest(static_cast<std::size_t>(a.n_rows)) {
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < a.n_rows; ++i) {
      double own = 0, largest = 0;
      for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
        if (a.columns[k] == i)
          own = a.values[k];
      for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
        if (a.columns[k] != i)
          largest = std::max(largest, own < 0 ? a.values[k] : -a.values[k]);
      diagonal[static_cast<std::size_t>(i)] = own;
      strongest[static_cast<std::size_t>(i)] = largest;
    }
    auto const bad = std::find_if(diagonal.begin(), diagonal.end(), [&](double d) { return positive ? !(d > 0) : !(d != 0); });
    if (bad != diagonal.end())
      failure = std::string("multigrid ") + (positive ? "for cg needs a positive" : "needs a non-zero") + " diagonal, and " +
                row_text(bad - diagonal.begin()) + " has " + number(*bad) +
                (positive ? ": the matrix is not positive definite" : "");
  }
  [[nodiscard]] bool are_strong(CsrMatrix const& a, std::int64_t i, std::int64_t k) const {
    std::int32_t const j = a.columns[k];
    auto const row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(j);
    double const coupling = diagonal[row] < 0 ? a.values[k] : -a.values[k];
    return j != i && coupling > 0 && coupling * coupling >= strong * strong * strongest[row] * strongest[column];
  }
};

/// Aggregates by number; -1 for unknowns that are coupled to none.
struct Aggregates {
  std::vector<std::int32_t> of;
  std::int64_t count = 0;
};

/// In the order of rows: first every unknown all of whose neighbours are free forms an aggregate with them; then those that are
/// left join that of the neighbour they are coupled to most; then what is left forms its own.
Aggregates aggregate(CsrMatrix const& a, Couplings const& couplings) {
  constexpr std::int32_t open = -2, none = -1;
  std::int64_t const n = a.n_rows;
  Aggregates result{std::vector<std::int32_t>(static_cast<std::size_t>(n), open), 0};
  auto& of = result.of;
  auto const neighbours = [&](std::int64_t i, auto const& visit) {
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      if (couplings.are_strong(a, i, k))
        visit(static_cast<std::size_t>(a.columns[k]), std::abs(a.values[k]));
  };
  for (std::int64_t i = 0; i < n; ++i)
    if (!(couplings.strongest[static_cast<std::size_t>(i)] > 0))
      of[static_cast<std::size_t>(i)] = none;
  for (std::int64_t i = 0; i < n; ++i) {
    auto const row = static_cast<std::size_t>(i);
    bool all_open = of[row] == open;
    if (all_open)
      neighbours(i, [&](std::size_t j, double) { all_open = all_open && of[j] == open; });
    if (!all_open)
      continue;
    auto const number = static_cast<std::int32_t>(result.count++);
    of[row] = number;
    neighbours(i, [&](std::size_t j, double) { of[j] = number; });
  }
  std::vector<std::int32_t> joined(of);
  for (std::int64_t i = 0; i < n; ++i)
    if (of[static_cast<std::size_t>(i)] == open) {
      double most = 0;
      neighbours(i, [&](std::size_t j, double coupling) {
        if (of[j] >= 0 && coupling > most) {
          most = coupling;
          joined[static_cast<std::size_t>(i)] = of[j];
        }
      });
    }
  of = std::move(joined);
  for (std::int64_t i = 0; i < n; ++i)
    if (of[static_cast<std::size_t>(i)] == open) {
      auto const number = static_cast<std::int32_t>(result.count++);
      of[static_cast<std::size_t>(i)] = number;
      neighbours(i, [&](std::size_t j, double) {
        if (of[j] == open)
          of[j] = number;
      });
    }
  return result;
}

/// An estimate of the largest |eigenvalue| of D^-1 A, not above max_i sum_j |a_ij| / |a_ii|: by the power method from a vector of
/// alternating pseudo-random numbers, in the norm of D.
double largest_eigenvalue(CsrMatrix const& a, std::vector<double> const& diagonal) {
  std::int64_t const n = a.n_rows;
  double bound = 0;
#pragma omp parallel for schedule(static) reduction(max : bound)
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      sum += std::abs(a.values[k]);
    bound = std::max(bound, sum / std::abs(diagonal[static_cast<std::size_t>(i)]));
  }
  std::vector<double> x(static_cast<std::size_t>(n)), y(static_cast<std::size_t>(n));
  std::uint32_t state = 1;
  for (double& v : x) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<double>(state) / 4294967296.0 - 0.5;
  }
  // Blocks, so that the sums do not depend on the number of threads.
  constexpr std::int64_t block = 4096;
  std::int64_t const blocks = (n + block - 1) / block;
  std::vector<double> partial(static_cast<std::size_t>(2 * blocks));
  double estimate = 0;
  for (int step = 0; step < power_steps; ++step) {
#pragma omp parallel for schedule(static)
    for (std::int64_t b = 0; b < blocks; ++b) {
      double before = 0, after = 0;
      for (std::int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i) {
        double sum = 0;
        for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
          sum += a.values[k] * x[static_cast<std::size_t>(a.columns[k])];
        auto const row = static_cast<std::size_t>(i);
        double const d = std::abs(diagonal[row]);
        y[row] = sum / diagonal[row];
        before += d * x[row] * x[row];
        after += d * y[row] * y[row];
      }
      partial[static_cast<std::size_t>(2 * b)] = before;
      partial[static_cast<std::size_t>(2 * b + 1)] = after;
    }
    double before = 0, after = 0;
    for (std::int64_t b = 0; b < blocks; ++b) {
      before += partial[static_cast<std::size_t>(2 * b)];
      after += partial[static_cast<std::size_t>(2 * b + 1)];
    }
    if (!(before > 0) || !(after > 0))
      return bound;
    estimate = std::sqrt(after / before);
    double const scale = 1 / std::sqrt(after);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i)
      x[static_cast<std::size_t>(i)] = scale * y[static_cast<std::size_t>(i)];
  }
  return std::isfinite(estimate) ? std::min(safety * estimate, bound) : bound;
}

/// (I - 4 / (3 largest) D^-1 A') T, where T is 1 from an aggregate to its unknowns, and A' is A without weak couplings, which are
/// added to its diagonal D.
CsrMatrix prolongation(CsrMatrix const& a, Couplings const& couplings, Aggregates const& aggregates, double largest) {
  CsrMatrix p;
  p.n_rows = a.n_rows;
  p.n_columns = aggregates.count;
  p.row_ptr.resize(static_cast<std::size_t>(a.n_rows) + 1);
  p.row_ptr[0] = 0;
  double const damping = 4 / (3 * largest);
  using Entry = std::pair<std::int32_t, double>;
  auto const row_of = [&](std::int64_t i, std::vector<Entry>& row) {
    row.clear();
    std::int32_t const own = aggregates.of[static_cast<std::size_t>(i)];
    if (own < 0)
      return;
    double diagonal = 0;
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      if (!couplings.are_strong(a, i, k))
        diagonal += a.values[k];
    double const whole = couplings.diagonal[static_cast<std::size_t>(i)];
    if (!(diagonal / whole > 0.1))  // weak couplings of the wrong sign: as they are
      diagonal = whole;
    row.emplace_back(own, 1 - damping);
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      if (couplings.are_strong(a, i, k))
        if (std::int32_t const to = aggregates.of[static_cast<std::size_t>(a.columns[k])]; to >= 0) {
          auto const found = std::find_if(row.begin(), row.end(), [&](Entry const& e) { return e.first == to; });
          double const weight = -damping * a.values[k] / diagonal;
          if (found != row.end())
            found->second += weight;
          else
            row.emplace_back(to, weight);
        }
    std::sort(row.begin(), row.end(), [](Entry const& x, Entry const& y) { return x.first < y.first; });
  };
#pragma omp parallel
  {
    std::vector<Entry> row;
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < a.n_rows; ++i) {
      row_of(i, row);
      p.row_ptr[i + 1] = std::ssize(row);
    }
  }
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    p.row_ptr[i + 1] += p.row_ptr[i];
  p.columns.resize(static_cast<std::size_t>(p.row_ptr[a.n_rows]));
  p.values.resize(static_cast<std::size_t>(p.row_ptr[a.n_rows]));
#pragma omp parallel
  {
    std::vector<Entry> row;
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < a.n_rows; ++i) {
      row_of(i, row);
      std::int64_t to = p.row_ptr[i];
      for (auto const& [column, value] : row) {
        p.columns[to] = column;
        p.values[to++] = value;
      }
    }
  }
  return p;
}

template <class V>
constexpr MatrixPrecision precision_of = std::is_same_v<V, float> ? MatrixPrecision::single : MatrixPrecision::double_;

template <class V>
std::unique_ptr<Matrix> stored(std::shared_ptr<CsrMatrix const> csr, Context& context) {
  FormatOptions options;
  options.precision = precision_of<V>;
  options.conversion = Conversion::host;  // a device then never sees more than what it will keep
  return make_matrix(Format::csr, std::move(csr), context, options);
}

}  // namespace

template <class V>
bool set_finest_matrix(MultigridLevel<V>& level, Matrix const& a, CsrProvider const& csr) {
  if (std::is_same_v<V, double> && a.precision() == MatrixPrecision::double_) {
    level.matrix = &a;
    return true;
  }
  if (std::is_same_v<V, float>)
    level.own = a.in_single();
  if (level.own == nullptr && csr)
    level.own = stored<V>(csr(), a.context());
  level.matrix = level.own.get();
  return level.matrix != nullptr;
}

template bool set_finest_matrix(MultigridLevel<float>&, Matrix const&, CsrProvider const&);
template bool set_finest_matrix(MultigridLevel<double>&, Matrix const&, CsrProvider const&);

namespace {

template <class V>
class SparseTransfer final : public GridTransfer<V> {
public:
  SparseTransfer(CsrMatrix p, CsrMatrix r, Context& context)
      : context_(context),
        kernels_(kernels_for<SmootherKernels<V>>(context)),
        p_(stored<V>(std::make_shared<CsrMatrix const>(std::move(p)), context)),
        r_(stored<V>(std::make_shared<CsrMatrix const>(std::move(r)), context)) {}

  void restrict_residual(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const override {
    if (is_over(stop))
      return;
    static_cast<LinearOperator<V> const&>(*r_).product(1, r, 0, b);
    kernels_.begin(context_, r_->n_rows(), diagonal, b, factor, x, stop);
  }
  void prolong(V const* e, V* x, std::int32_t const* stop) const override {
    if (!is_over(stop))
      static_cast<LinearOperator<V> const&>(*p_).product(1, e, 1, x);
  }
  std::int64_t bytes() const override { return p_->bytes() + r_->bytes(); }
  std::int64_t bytes_moved() const override { return bytes() + (3 * p_->n_rows() + 5 * p_->n_columns()) * std::int64_t{sizeof(V)}; }

private:
  /// On a device what is enqueued in vain is short.
  [[nodiscard]] bool is_over(std::int32_t const* stop) const { return context_.backend() == Backend::cpu && *stop != 0; }

  Context& context_;
  SmootherKernels<V> const& kernels_;
  std::unique_ptr<Matrix> p_, r_;
};

std::vector<double> dense_rows(CsrMatrix const& a) {
  std::vector<double> dense(static_cast<std::size_t>(a.n_rows * a.n_rows), 0.0);
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      dense[static_cast<std::size_t>(i * a.n_rows + a.columns[k])] = a.values[k];
  return dense;
}

}  // namespace

template <class V>
MultigridHierarchy<V> algebraic_hierarchy(Matrix const* a, std::shared_ptr<CsrMatrix const> csr, Context& context,
                                          PreconditionerOptions const& options) {
  MultigridHierarchy<V> result;
  for (;;) {
    Couplings const couplings(*csr, options.positive);
    if (!couplings.failure.empty()) {
      result.failure = couplings.failure + (result.levels.empty() ? "" : " on level " + std::to_string(result.levels.size() + 1));
      return result;
    }
    MultigridLevel<V>& level = result.levels.emplace_back();
    if (result.levels.size() > 1 || a == nullptr || !set_finest_matrix(level, *a, [&] { return csr; })) {
      level.own = stored<V>(csr, context);
      level.matrix = level.own.get();
    }
    level.diagonal = Array<V>(context, csr->n_rows);
    static_cast<LinearOperator<V> const&>(*level.matrix).diagonal(level.diagonal.data());
    level.nnz = csr->nnz();
    level.largest = largest_eigenvalue(*csr, couplings.diagonal);
    bool const deepest = static_cast<int>(result.levels.size()) == options.multigrid.levels;
    Aggregates const aggregates =
        deepest || csr->n_rows <= options.multigrid.coarse_size ? Aggregates{} : aggregate(*csr, couplings);
    if (aggregates.count == 0 || static_cast<double>(aggregates.count) > least_shrink * static_cast<double>(csr->n_rows)) {
      if (csr->n_rows <= most_dense) {
        result.coarsest = dense_rows(*csr);
        for (double const strongest : couplings.strongest)
          result.free.push_back(strongest > 0 ? 1 : 0);
      }
      return result;
    }
    CsrMatrix p = prolongation(*csr, couplings, aggregates, level.largest);
    CsrMatrix r = transposed(p);
    csr = std::make_shared<CsrMatrix const>(sparse_product(r, sparse_product(*csr, p)));
    level.to_coarse = std::make_unique<SparseTransfer<V>>(std::move(p), std::move(r), context);
  }
}

template MultigridHierarchy<float> algebraic_hierarchy(Matrix const*, std::shared_ptr<CsrMatrix const>, Context&,
                                                       PreconditionerOptions const&);
template MultigridHierarchy<double> algebraic_hierarchy(Matrix const*, std::shared_ptr<CsrMatrix const>, Context&,
                                                        PreconditionerOptions const&);

}  // namespace poisson
