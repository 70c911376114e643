#include "gpu/core/number_text.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/sell_c_sigma.hpp"
#include "gpu/kernels/aggregation.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/smoother.hpp"
#include "gpu/preconditioners/lanczos.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>
#include <utility>

namespace poisson {

namespace {

constexpr double least_shrink = 0.8;  ///< a level with more than this share of the rows above it is not worth its cost
/// Entries up to which the host makes coarser levels for a device: that waits for launches then.
constexpr std::int64_t few_entries = 100000;
/// On a device a level with this many rows or more is in SELL-C-sigma. On smaller levels launches hide that CSR is a quarter
/// slower. Slices would be mostly padding where some rows are much longer than the mean.
constexpr std::int64_t many_rows = std::int64_t{1} << 17;
constexpr double longest_by_mean = 8;

std::string failure_of(Couplings const& couplings, bool positive) {
  if (couplings.bad_row < 0)
    return {};
  return std::string("multigrid ") + (positive ? "for cg needs a positive" : "needs a non-zero") + " diagonal, and " +
         row_text(couplings.bad_row) + " has " + number(couplings.bad_value) +
         (positive ? ": the matrix is not positive definite" : "");
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
  SparseTransfer(std::unique_ptr<Matrix> p, std::unique_ptr<Matrix> r)
      : context_(p->context()), kernels_(kernels_for<SmootherKernels<V>>(context_)), p_(std::move(p)), r_(std::move(r)) {}

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

std::unique_ptr<Csr> as_matrix(Context& context, SparseArrays arrays) {
  return std::make_unique<Csr>(context, arrays.n_columns, std::move(arrays.row_ptr), std::move(arrays.columns),
                               std::move(arrays.values));
}

bool is_for_slices(Csr const& matrix) {
  CsrView const view = matrix.view();
  return matrix.context().backend() == Backend::cuda && view.n_rows >= many_rows &&
         static_cast<double>(view.longest_row) * static_cast<double>(view.n_rows) <=
             longest_by_mean * static_cast<double>(view.nnz);
}

/// The matrix with entries in V, in the memory of `context`.
template <class V>
std::unique_ptr<Matrix> stored_as(Format format, Csr const& matrix, Context& context) {
  FormatOptions options;
  options.precision = precision_of<V>;
  // The matrix is one of ours: nothing about it has to be found out first, as make_matrix would.
  std::unique_ptr<Matrix> result = format == Format::csr ? Csr::convert(matrix, options) : SellCSigma::convert(matrix, options);
  return &matrix.context() == &context ? std::move(result) : result->copy_to(context);
}

}  // namespace

std::vector<double> dense_rows(CsrMatrix const& a) {
  std::vector<double> dense(static_cast<std::size_t>(a.n_rows * a.n_rows), 0.0);
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      dense[static_cast<std::size_t>(i * a.n_rows + a.columns[k])] = a.values[k];
  return dense;
}

template <class V>
MultigridHierarchy<V> algebraic_hierarchy(Matrix const* a, CsrProvider const& csr, Context& context,
                                          PreconditionerOptions const& options,
                                          std::vector<std::shared_ptr<CsrMatrix const>> const& prolongations) {
  MultigridHierarchy<V> result;
  std::unique_ptr<Context> const host = context.backend() == Backend::cpu ? nullptr : make_cpu_context();
  // The matrix of the level in double, where the next one is made: in the context's memory, later in that of the host.
  Csr const* current = dynamic_cast<Csr const*>(a);
  std::unique_ptr<Csr> own;
  if (current == nullptr || current->precision() != MatrixPrecision::double_) {
    if (a != nullptr && host != nullptr)
      own = a->as_csr();
    if (own == nullptr)
      own = std::make_unique<Csr>(csr(), context);
    current = own.get();
  }
  options.done(context, "CSR");
  // P to the next level, where one is worth its cost; of the level with that number, from 1.
  auto const coarser_space = [&](std::size_t number, Context& place, CsrView const& view, Couplings const& couplings,
                                 double largest) -> std::unique_ptr<Csr> {
    if (static_cast<int>(number) == options.multigrid.levels || view.n_rows <= options.multigrid.coarse_size)
      return nullptr;
    if (number <= prolongations.size())
      return std::make_unique<Csr>(prolongations[number - 1], place);
    auto const& kernels = kernels_for<AggregationKernels>(place);
    Aggregates const aggregates = kernels.aggregate(place, view, couplings);
    options.done(place, "aggregates");
    if (aggregates.count == 0 || static_cast<double>(aggregates.count) > least_shrink * static_cast<double>(view.n_rows))
      return nullptr;
    std::unique_ptr<Csr> p = as_matrix(place, kernels.prolongation(place, view, couplings, aggregates, 4 / (3 * largest)));
    options.done(place, "P");
    return p;
  };
  for (;;) {
    if (host != nullptr && &current->context() != host.get() && current->view().nnz <= few_entries) {
      auto copy = std::make_unique<Csr>(std::make_shared<CsrMatrix const>(current->to_csr()), *host);
      own = std::move(copy);
      current = own.get();
    }
    Context& place = current->context();
    auto const& kernels = kernels_for<AggregationKernels>(place);
    CsrView const view = current->view();
    Couplings const couplings = kernels.couplings(place, view, options.positive);
    options.done(place, "couplings");
    if (std::string const failure = failure_of(couplings, options.positive); !failure.empty()) {
      result.failure = failure + (result.levels.empty() ? "" : " on level " + std::to_string(result.levels.size() + 1));
      return result;
    }
    MultigridLevel<V>& level = result.levels.emplace_back();
    bool const is_finest = result.levels.size() == 1, in_slices = is_for_slices(*current);
    bool const goes_on = is_finest && a != nullptr && !(a == current && in_slices && std::is_same_v<V, float>);
    bool const in_half = in_slices && std::is_same_v<V, float> && options.multigrid.precision == MultigridPrecision::half;
    if (in_half && is_finest && a != nullptr)
      level.own = a->in_half();
    if (in_half && level.own == nullptr)
      level.own = current->in_half();
    if (level.own == nullptr && (!goes_on || !set_finest_matrix(level, *a, {})))
      level.own = stored_as<V>(in_slices ? Format::sell_c_sigma : Format::csr, *current, context);
    if (level.own != nullptr)
      level.matrix = level.own.get();
    level.diagonal = Array<V>(context, view.n_rows);
    static_cast<LinearOperator<V> const&>(*level.matrix).diagonal(level.diagonal.data());
    level.nnz = view.nnz;
    options.done(context, "level's matrix");
    // A symmetric matrix in the arithmetic of the cycle is read in half the time.
    double const largest = options.positive ? largest_by_lanczos(level, pseudo_random_vector<V>(context, view.n_rows))
                                            : kernels.largest_eigenvalue(place, view, couplings);
    level.largest = std::isfinite(largest) ? std::min(safety * largest, couplings.bound) : couplings.bound;
    options.done(place, "eigenvalue");
    std::unique_ptr<Csr> const p = coarser_space(result.levels.size(), place, view, couplings, level.largest);
    if (p == nullptr) {
      if (view.n_rows <= most_dense)
        result.coarsest = dense_rows(current->to_csr());
      return result;
    }
    std::unique_ptr<Csr> const r = as_matrix(place, kernels.transposed(place, p->view()));
    options.done(place, "P^T");
    SparseArrays coarse = kernels.galerkin_product(place, r->view(), view, p->view());
    options.done(place, "P^T A P");
    level.to_coarse =
        std::make_unique<SparseTransfer<V>>(stored_as<V>(Format::csr, *p, context), stored_as<V>(Format::csr, *r, context));
    options.done(context, "transfers");
    own = as_matrix(place, std::move(coarse));
    current = own.get();
  }
}

template MultigridHierarchy<float> algebraic_hierarchy(Matrix const*, CsrProvider const&, Context&, PreconditionerOptions const&,
                                                       std::vector<std::shared_ptr<CsrMatrix const>> const&);
template MultigridHierarchy<double> algebraic_hierarchy(Matrix const*, CsrProvider const&, Context&, PreconditionerOptions const&,
                                                        std::vector<std::shared_ptr<CsrMatrix const>> const&);

}  // namespace poisson
