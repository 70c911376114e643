#include "gpu/spectral/svd.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/svd.hpp"
#include "gpu/spectral/band_reduction.hpp"
#include "gpu/spectral/bidiagonal.hpp"
#include "gpu/spectral/orthonormal.hpp"
#include "gpu/spectral/qr.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace poisson {

namespace {

using Index = std::int64_t;
using Clock = std::chrono::steady_clock;

/// Seconds since the last call, or since it was made, with the device's work done.
class StepClock {
public:
  explicit StepClock(Context& context) : context_(context) {}
  double step() {
    context_.synchronize();
    if (interrupt_requested())
      throw Interrupted();
    auto const now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

private:
  Context& context_;
  Clock::time_point last_ = Clock::now();
};

void require_valid(DenseMatrix const& a, SvdOptions const& options) {
  if (a.n_rows < 1 || a.n_columns < 1)
    throw InputError("the matrix is empty: " + std::to_string(a.n_rows) + " x " + std::to_string(a.n_columns));
  if (options.leading < 0)
    throw InputError("the number of leading singular values is negative: " + std::to_string(options.leading));
  if (options.band_width < 0)
    throw InputError("the band width is negative: " + std::to_string(options.band_width));
}

/// The power of two e with |a| < 2^e everywhere, 2^(e - 1) <= |a| somewhere; 0 where nothing is gained by scaling: squares of such
/// entries neither overflow nor, as far as they matter beside the others, underflow.
int exponent_of(DenseMatrix const& a) {
  double largest = 0;
  bool finite = true;
#pragma omp parallel for schedule(static) reduction(max : largest) reduction(&& : finite)
  for (Index j = 0; j < a.n_columns; ++j)
    for (Index i = 0; i < a.n_rows; ++i) {
      largest = std::max(largest, std::abs(a(i, j)));
      finite = finite && std::isfinite(a(i, j));
    }
  for (Index j = 0; !finite && j < a.n_columns; ++j)
    for (Index i = 0; i < a.n_rows; ++i)
      if (!std::isfinite(a(i, j)))
        throw InputError("the matrix has " + std::string(std::isnan(a(i, j)) ? "a NaN" : "an infinity") + " in " +
                         place_text(i, j));
  int exponent = 0;
  static_cast<void>(std::frexp(largest, &exponent));
  return std::abs(exponent) <= 100 ? 0 : exponent;
}

/// A times 2^-exponent.
HostVector<double> scaled(DenseMatrix const& a, int exponent) {
  HostVector<double> result(a.values.size());
  // The scaling takes two steps, because 2^-exponent itself may overflow.
  double const first = std::ldexp(1.0, -exponent / 2), second = std::ldexp(1.0, -exponent - (-exponent / 2));
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = a.values[i] * first * second;
  return result;
}

/// A, or A^T where A is wide, times 2^-exponent, on the backend.
Array<double> uploaded(Context& context, DenseMatrix const& a, int exponent) {
  Array<double> matrix(context, exponent == 0 ? std::span<double const>(a.values) : scaled(a, exponent));
  if (a.n_rows >= a.n_columns)
    return matrix;
  Array<double> tall(context, matrix.size());
  kernels_for<SvdKernels>(context).transpose(context, a.n_rows, a.n_columns, matrix.data(), a.n_rows, tall.data(), a.n_columns);
  context.synchronize();  // before the wide one is freed
  return tall;
}

DenseMatrix downloaded(Array<double> const& from, Index rows, Index columns) {
  DenseMatrix result(rows, columns);
  from.download(result.values);
  return result;
}

/// Downloads a matrix while the context's device goes on: on a stream of its own, by a thread of its own. `from` is complete when
/// what is enqueued now is done, and stays as long as the future.
std::future<DenseMatrix> download_meanwhile(Context& context, Array<double> const& from, Index rows, Index columns, bool overlap) {
  constexpr Index worth_it = Index{64} << 20;  // bytes; a stream and its pinned memory take milliseconds
  bool const meanwhile = overlap && context.backend() == Backend::cuda && from.bytes() >= worth_it;
  if (meanwhile)
    context.synchronize();
  return std::async(meanwhile ? std::launch::async | std::launch::deferred : std::launch::deferred,
                    [=, &from, threads = thread_count()] {
                      if (!meanwhile)
                        return downloaded(from, rows, columns);
                      set_thread_count_or_one(threads);  // of this thread
                      DenseMatrix result(rows, columns);
                      make_context(Backend::cuda)->download(result.values.data(), from.data(), from.bytes());
                      return result;
                    });
}

int width_for(Index n, SvdOptions const& options, Context const& context) {
  Index const wanted = options.band_width > 0 ? options.band_width : default_band_width(n, options.vectors, context.backend());
  return static_cast<int>(std::max<Index>(1, std::min({wanted, n - 1, Index{kernels_for<SvdKernels>(context).max_width()}})));
}

/// Whether a tall matrix is worth a QR decomposition first, so that only its factor R is made bidiagonal (LAPACK's ratio).
bool qr_first(Index m, Index n) {
  return 5 * m >= 8 * n && m > n;
}

/// Whether vectors get a step that restores their orthogonality. On a device two stages leave 2 to 2.5 times what LAPACK's one
/// does, and products are cheap there; on the host they leave 1.7 times as much.
bool refined(Index n, Backend backend) {
  return backend == Backend::cuda && n >= 1024;
}

Index kept_values(Index n, SvdOptions const& options) {
  return options.leading > 0 ? std::min(options.leading, n) : n;
}

}  // namespace

int default_band_width(Index n, bool vectors, Backend backend) {
  // Measured on an H200 (N = 2560: 32 as good as 64, 7680: 64 is 14 % faster with vectors, 32 is 10 % faster without) and a Xeon.
  return vectors && n >= (backend == Backend::cuda ? 4096 : 512) ? 64 : 32;
}

Index svd_bytes(Context const& context, Index n_rows, Index n_columns, SvdOptions const& options) {
  Index const m = std::max(n_rows, n_columns), n = std::min(n_rows, n_columns), k = kept_values(n, options);
  if (n_rows < n_columns)  // it is there twice while it is transposed
    return std::max(16 * m * n, svd_bytes(context, m, n, options));
  if (qr_first(m, n)) {  // of R; the factors of Q stay beside it
    Index const factors = 8 * m * n + TallQr::bytes(context, m, n);
    Index const square = svd_bytes(context, n, n, options) - 8 * n * n;
    Index const results = 8 * k * (m + n), refining = refine_orthogonality_bytes(m, k);
    return std::max(factors + std::max(square, options.vectors ? results + 8 * k * n + TallQr::apply_bytes(context, m, n, k) : 0),
                    options.vectors ? results + refining : 0);
  }
  int const width = width_for(n, options, context);
  Index const a = 8 * m * n, reducing = a + reduction_bytes(m, n, width, options.vectors);
  if (!options.vectors)
    return reducing;
  ChasePlan const plan(n, width);
  // A, the T and the reflectors of the chase stay for the back-transformations.
  Index const kept = a + 16 * (n + width) * width, chased = kept + 16 * plan.slots * plan.slot_size();
  Index const results = 8 * k * (m + n + (m > n ? n : 0));
  return std::max({reducing, chased + 8 * BandView::size(n, width), chased + bidiagonal_svd_bytes(n, k),
                   chased + 16 * n * k + plan.apply_bytes(k), kept + results + apply_reduction_bytes(m, n, width, k),
                   chased + 16 * n * k + std::max(apply_reduction_bytes(n, n, width, k), refine_orthogonality_bytes(n, k)),
                   results + refine_orthogonality_bytes(m, k)});
}

Svd svd(DenseMatrix const& a, SvdOptions const& options, Context& context) {
  auto const start = Clock::now();
  require_valid(a, options);
  require_memory(context, svd_bytes(context, a.n_rows, a.n_columns, options), "the singular value decomposition",
                 "ask for fewer leading vectors, for values only, or use the cpu backend");
  auto const& kernels = kernels_for<SvdKernels>(context);
  bool const wide = a.n_rows < a.n_columns;
  Index const m = std::max(a.n_rows, a.n_columns), n = std::min(a.n_rows, a.n_columns), k = kept_values(n, options);
  int const exponent = exponent_of(a), width = width_for(n, options, context);
  Svd result;
  result.band_width = width;
  Array<double> matrix = uploaded(context, a, exponent);
  std::optional<TallQr> qr;
  if (qr_first(m, n)) {
    qr.emplace(context, m, n, std::move(matrix));
    matrix = std::move(qr->r());
  }
  Index const rows = qr ? n : m;
  StepClock clock(context);
  static_cast<void>(clock.step());

  BandReduction reduction = reduce_to_band(context, rows, n, width, std::move(matrix), options.vectors);
  result.seconds.reduce = clock.step();

  ChasePlan const plan(n, width);
  BandView const band = BandView::in(reduction.band.data(), n, width);
  Index const reflectors = options.vectors ? plan.slots * plan.slot_size() : 0;
  Array<double> left(context, reflectors), right(context, reflectors);
  left.set_zero();
  right.set_zero();
  kernels.chase(context, plan, band, left.data(), right.data());
  HostVector<double> d(static_cast<std::size_t>(n)), e(static_cast<std::size_t>(n - 1));
  {
    Array<double> on_device(context, 2 * n - 1);
    kernels.diagonals(context, band, on_device.data(), on_device.data() + n);
    HostVector<double> both(static_cast<std::size_t>(2 * n - 1));
    on_device.download(both);
    std::copy_n(both.begin(), n, d.begin());
    std::copy_n(both.begin() + n, n - 1, e.begin());
  }
  reduction.band = Array<double>();
  result.seconds.chase = clock.step();

  if (!options.vectors) {
    result.values = bidiagonal_values(context, d, e, k);
    result.seconds.bidiagonal = clock.step();
  } else {
    BidiagonalSvd bidiagonal = bidiagonal_svd(context, d, e, k, options.overlap);
    result.values = std::move(bidiagonal.values);
    result.seconds.bidiagonal = clock.step();
    kernels.apply_chase(context, plan, right.data(), k, bidiagonal.v.data(), n);
    right = Array<double>();
    apply_right(context, reduction, k, bidiagonal.v.data(), n);
    if (refined(n, context.backend()))
      refine_orthogonality(context, n, k, bidiagonal.v.data());
    std::future<DenseMatrix> v = download_meanwhile(context, bidiagonal.v, n, k, options.overlap);
    kernels.apply_chase(context, plan, left.data(), k, bidiagonal.u.data(), n);
    left = Array<double>();
    if (rows > n) {
      Array<double> taller(context, rows * k);
      taller.set_zero();
      kernels.copy(context, n, k, bidiagonal.u.data(), n, taller.data(), rows);
      context.synchronize();  // before the shorter one is freed
      bidiagonal.u = std::move(taller);
    }
    apply_left(context, reduction, k, bidiagonal.u.data(), rows);
    result.seconds.back = clock.step();
    reduction = BandReduction();
    if (qr) {
      Array<double> taller(context, m * k);
      qr->apply(k, bidiagonal.u.data(), taller.data());
      context.synchronize();
      bidiagonal.u = std::move(taller);
      qr.reset();
    }
    if (refined(n, context.backend())) {
      static_cast<void>(clock.step());
      refine_orthogonality(context, m, k, bidiagonal.u.data());
      result.seconds.back += clock.step();
    }
    (wide ? result.v : result.u) = downloaded(bidiagonal.u, m, k);
    (wide ? result.u : result.v) = v.get();
  }
  for (double& value : result.values)
    value = std::ldexp(value, exponent);
  result.seconds.total = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace poisson
