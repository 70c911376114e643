#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/formats/box.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/measure.hpp"
#include "gpu/peers/peers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace poisson::testing {

namespace {

/// Calls that take as long as a test says, on a clock that only they move. Durations are powers of two, so that sums are exact.
struct TimedCalls {
  std::vector<double> durations;  ///< of the first calls; the others take as long as the last of these
  int interrupt_in = 0;           ///< the call that requests an interrupt, from 1; 0: none
  int calls = 0;
  double now = 0;

  Seconds measure(int samples) {
    auto const context = make_context(Backend::cpu);
    return measure_seconds(
        *context,
        [this] {
          now += durations[std::min(static_cast<std::size_t>(calls), durations.size() - 1)];
          if (++calls == interrupt_in)
            request_interrupt();
        },
        samples, [this] { return now; });
  }
};

TEST(Measure, SamplesAreAboutTwentyMilliseconds) {
  struct {
    double duration;
    int samples, calls, taken;
  } const cases[] = {
      {0x1p-10, 7, 1 + 3 + 7 * 20, 7},      // 20 calls of 1/1024 s
      {0x1p-20, 15, 1 + 3 + 15 * 200, 15},  // no more than 200 of short ones
      {0, 15, 1 + 3 + 15 * 200, 15},
      {0x1p-6, 15, 1 + 3 + 15, 15},
      {0.25, 15, 1 + 1 + 8, 8},  // eight fit into two seconds
      {0.5, 15, 1 + 1 + 5, 5},   // four would, but five are the least
      {0.5, 3, 1 + 1 + 3, 3},
  };
  for (auto const& one : cases) {
    SCOPED_TRACE(one.duration);
    TimedCalls timed{{one.duration}};
    Seconds const seconds = timed.measure(one.samples);
    EXPECT_EQ(timed.calls, one.calls);
    EXPECT_EQ(seconds.samples, one.taken);
    EXPECT_EQ(seconds.min, one.duration);
    EXPECT_EQ(seconds.median, one.duration);
  }
}

TEST(Measure, MedianAndMinimumLeaveOutTheFirstCalls) {
  TimedCalls timed{{0.0625, 0.5, 4, 0.25, 1, 0.75, 2}};
  Seconds const seconds = timed.measure(15);
  EXPECT_EQ(timed.calls, 7);
  EXPECT_EQ(seconds.samples, 5);
  EXPECT_EQ(seconds.min, 0.25);
  EXPECT_EQ(seconds.median, 1);
}

TEST(Measure, OfRanksThatOfTheSlowest) {
  std::vector<int> calls(3);
  ThreadRanks::run(3, [&](Communicator& ranks) {
    auto const context = make_context(Backend::cpu);
    int& mine = calls[static_cast<std::size_t>(ranks.rank())];
    double now = 0;
    auto const call = [&] {
      now += ranks.rank() == 1 ? 0.25 : 0x1p-10;
      ++mine;
    };
    Seconds const seconds = measure_seconds(
        *context, call, 15, [&] { return now; }, ranks);
    EXPECT_EQ(seconds.samples, 8);
    EXPECT_EQ(seconds.min, 0.25);
    EXPECT_EQ(seconds.median, 0.25);
  });
  EXPECT_EQ(calls, std::vector<int>(3, 1 + 1 + 8));
}

TEST(Measure, GoesByTheSystemsClock) {
  auto const context = make_context(Backend::cpu);
  double const before = monotonic_seconds();
  double volatile sum = 0;
  Seconds const seconds = measure_seconds(
      *context,
      [&] {
        for (int i = 0; i < 1000; ++i)
          sum = sum + i;
      },
      5);
  EXPECT_EQ(seconds.samples, 5);
  EXPECT_GT(seconds.min, 0);
  EXPECT_LE(seconds.min, seconds.median);
  EXPECT_LE(seconds.median, monotonic_seconds() - before);
}

TEST(Measure, StopsWhenInterrupted) {
  struct {
    double duration;
    int interrupt_in, calls;
  } const cases[] = {
      {0.5, 1, 1},        // the call that warms up
      {0x1p-10, 2, 4},    // the estimate of three calls is finished
      {0x1p-10, 10, 24},  // and so is a sample of 20
      {0.5, 3, 3},
  };
  for (auto const& one : cases) {
    SCOPED_TRACE("call " + std::to_string(one.interrupt_in) + " of " + std::to_string(one.duration) + " s");
    TimedCalls timed{{one.duration}, one.interrupt_in};
    EXPECT_THROW((void)timed.measure(15), Interrupted);
    clear_interrupt();
    EXPECT_EQ(timed.calls, one.calls);
  }
}

template <class B>
class Check : public OnBackend<B::value> {};
TYPED_TEST_SUITE(Check, Backends, BackendNames);

TYPED_TEST(Check, FindsWhatIsWrong) {
  Context& here = *this->context;
  for (auto const& matrix : {uneven(1000, 700, 3), box27(7, 8, 9), banded(1, {}, 5), uneven(257, 1, 4)}) {
    Csr const csr(matrix, here);
    auto const x_host = random_vector(matrix->n_columns, 1), y_host = naive_product(*matrix, x_host);
    auto const absolute = absolute_product(*matrix, x_host);
    Array<double> const x(here, std::span<double const>(x_host));
    auto const& check = kernels_for<CheckKernels>(here);
    auto const error_of = [&](std::vector<double> const& y) {
      return check.largest_error(here, csr.view(), x.data(), Array<double>(here, std::span<double const>(y)).data());
    };
    EXPECT_LE(error_of(y_host), 1e-14);
    for (std::size_t const row : {std::size_t{0}, y_host.size() / 2, y_host.size() - 1}) {
      auto y = y_host;
      y[row] += absolute[row] != 0 ? 1e-6 * absolute[row] : 1e-6;
      if (absolute[row] != 0)
        EXPECT_NEAR(error_of(y), 1e-6, 1e-10) << "row " << row;
      else
        EXPECT_EQ(error_of(y), std::numeric_limits<double>::infinity()) << "row " << row;
      for (double const bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
        y[row] = bad;
        EXPECT_EQ(error_of(y), std::numeric_limits<double>::infinity()) << "row " << row;
      }
    }
  }
}

TYPED_TEST(Check, NoRows) {
  Csr const csr(to_csr(0, 3, {}), *this->context);
  Array<double> const x(*this->context, 3);
  EXPECT_EQ(kernels_for<CheckKernels>(*this->context).largest_error(*this->context, csr.view(), x.data(), nullptr), 0);
}

TYPED_TEST(Check, ResidualsAreExactWhereTermsCancel) {
  Context& here = *this->context;
  double const t = 0x1p-30;
  // Three rows: (1 + t)^2 against all but its last bit; large terms that cancel; a term that only x's low part has.
  Csr const csr(to_csr(3, 3, {{{0, 0}, 1 + t}, {{1, 0}, 1e20}, {{1, 1}, 1}, {{1, 2}, -1e20}, {{2, 2}, 3}}), here);
  double const x_host[] = {1 + t, 1, 1 + t}, low_host[] = {0x1p-90, 0, 0x1p-84};
  double const b_host[] = {1 + 2 * t, 3, 3 * (1 + t)};
  Array<double> const x(here, std::span<double const>(x_host)), low(here, std::span<double const>(low_host)),
      b(here, std::span<double const>(b_host));
  Array<double> r(here, 3);
  double found[3];
  auto const& check = kernels_for<CheckKernels>(here);
  check.residual(here, csr.view(), x.data(), nullptr, b.data(), r.data());
  r.download(found);
  EXPECT_EQ(found[0], -t * t);
  EXPECT_EQ(found[1], 2);
  EXPECT_EQ(found[2], 0);
  check.residual(here, csr.view(), x.data(), low.data(), b.data(), r.data());
  r.download(found);
  EXPECT_EQ(found[0], -t * t - 0x1p-90 * (1 + t));
  EXPECT_DOUBLE_EQ(found[1], 2 + 1e20 * (0x1p-84 - 0x1p-90));
  EXPECT_EQ(found[2], -3 * 0x1p-84);
}

TYPED_TEST(Check, ResidualsOfRandomVectors) {
  Context& here = *this->context;
  for (auto const& matrix : {uneven(1000, 700, 3), box27(7, 8, 9), to_csr(0, 3, {})}) {
    Csr const csr(matrix, here);
    auto const x_host = random_vector(matrix->n_columns, 1), b_host = random_vector(matrix->n_rows, 2);
    auto const product = naive_product(*matrix, x_host), absolute = absolute_product(*matrix, x_host);
    Array<double> const x(here, std::span<double const>(x_host)), b(here, std::span<double const>(b_host));
    Array<double> r(here, matrix->n_rows);
    std::vector<double> found(static_cast<std::size_t>(matrix->n_rows));
    kernels_for<CheckKernels>(here).residual(here, csr.view(), x.data(), nullptr, b.data(), r.data());
    r.download(found);
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], b_host[i] - product[i], 1e-14 * (absolute[i] + std::abs(b_host[i]))) << "row " << i;
  }
}

TYPED_TEST(Check, ResidualsByDiagonalsAreThoseOfEachRow) {
  Context& here = *this->context;
  for (std::int64_t const n : {1, 31, 32, 33, 200})
    for (std::vector<std::int32_t> const& offsets : {std::vector<std::int32_t>{0}, {0, 1, 5, 31, 40, 199}})
      for (bool const low : {false, true}) {
        auto const size = static_cast<std::size_t>(n);
        auto const values = random_vector(n * std::ssize(offsets), 1), low_values = random_vector(n * std::ssize(offsets), 2);
        auto const x_host = random_vector(n, 3), b_host = random_vector(n, 4);
        std::vector<double> x_low_host = random_vector(n, 5);
        for (double& value : x_low_host)
          value *= 0x1p-53;
        HalfCdsView view{n, offsets, offsets.data(), values.data(), low ? low_values.data() : nullptr, nullptr};
        std::vector<double> expected(size), found(size);
        for (std::int64_t row = 0; row < n; ++row)
          expected[static_cast<std::size_t>(row)] =
              residual_of_row(view, std::ssize(offsets), row, x_host.data(), low ? x_low_host.data() : nullptr,
                              b_host[static_cast<std::size_t>(row)]);
        Array<double> const on_values(here, std::span<double const>(values)), on_low(here, std::span<double const>(low_values)),
            x(here, std::span<double const>(x_host)), x_low(here, std::span<double const>(x_low_host)),
            b(here, std::span<double const>(b_host));
        Array<std::int32_t> const on_offsets(here, std::span<std::int32_t const>(offsets));
        Array<double> r(here, n);
        view.backend_offsets = on_offsets.data();
        view.values = on_values.data();
        view.low_values = low ? on_low.data() : nullptr;
        kernels_for<CheckKernels>(here).residual(here, view, x.data(), low ? x_low.data() : nullptr, b.data(), r.data());
        r.download(found);
        EXPECT_EQ(found, expected) << n << " rows, " << offsets.size() << " diagonals";
      }
}

TYPED_TEST(Check, ReadBandwidthIsANumber) {
  double const bandwidth = measure_read_bandwidth(*this->context);
  EXPECT_GT(bandwidth, 0);
  EXPECT_TRUE(std::isfinite(bandwidth));
}

class PeersOnCuda : public OnBackend<Backend::cuda> {
protected:
  void SetUp() override {
    OnBackend::SetUp();
    if (!IsSkipped() && !why_no_peers().empty())
      GTEST_SKIP() << why_no_peers();
  }
};

TEST_F(PeersOnCuda, ProductsAreRight) {
  for (auto const& matrix : {box27(16, 15, 14), uneven(1000, 700, 3), uneven(31, 64, 5), banded(33, {1, 7}, 2), banded(1, {}, 5)})
    for (auto const& [peer, name] : Names<Peer>::values) {
      Csr const csr(matrix, *context);
      auto const x_host = random_vector(matrix->n_columns, 1), expected = naive_product(*matrix, x_host),
                 absolute = absolute_product(*matrix, x_host);
      Array<double> const x(*context, std::span<double const>(x_host));
      std::vector<double> y_host(static_cast<std::size_t>(matrix->n_rows), std::nan(""));
      Array<double> y(*context, std::span<double const>(y_host));
      std::int64_t const before = context->memory_used();
      {
        auto const product = make_peer(peer, *context, csr.view(), x.data(), y.data());
        product->product();
        y.download(y_host);
        EXPECT_GE(product->bytes, 12 * matrix->nnz());
        EXPECT_GE(context->memory_used() - before, product->workspace_bytes);
        EXPECT_GE(product->workspace_bytes, 0);
      }
      EXPECT_EQ(context->memory_used(), before) << name;
      for (std::size_t i = 0; i < y_host.size(); ++i)
        ASSERT_NEAR(y_host[i], expected[i], 1e-13 * absolute[i]) << name << ", " << matrix->n_rows << " rows, row " << i;
    }
}

TEST_F(PeersOnCuda, ConjugateGradientsSolve) {
  if (!why_no_peer_cg().empty())
    GTEST_SKIP() << why_no_peer_cg();
  auto const csr = box_laplacian(*context, 12, 11, 10);
  std::int64_t const n = csr->n_rows();
  std::vector<double> const ones(static_cast<std::size_t>(n), 1.0);
  Array<double> const b(*context, std::span<double const>(ones));
  Array<double> x(*context, n), r(*context, n);
  std::int64_t const before = context->memory_used();
  PeerSolve const solved = peer_cg(*context, csr->view(), b.data(), x.data(), 1e-10, 1000, 60);
  EXPECT_EQ(context->memory_used(), before);
  EXPECT_GT(solved.iterations, 5);
  EXPECT_LT(solved.iterations, 60);
  EXPECT_LE(solved.residual_recursive, 1e-10);
  EXPECT_GT(solved.seconds, 0);
  EXPECT_GT(solved.bytes_per_iteration, 12 * csr->view().nnz);
  kernels_for<CheckKernels>(*context).residual(*context, csr->view(), x.data(), nullptr, b.data(), r.data());
  std::vector<double> residual(static_cast<std::size_t>(n));
  r.download(residual);
  double squares = 0;
  for (double const v : residual)
    squares += v * v;
  EXPECT_LE(std::sqrt(squares / static_cast<double>(n)), 2e-10);
  EXPECT_EQ(peer_cg(*context, csr->view(), b.data(), x.data(), 1e-10, 3, 60).iterations, 3);
}

TEST(Peers, MultigridOfHypreSolves) {
  if (!why_no_peer_multigrid().empty())
    GTEST_SKIP() << why_no_peer_multigrid();
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "Open MPI leaks memory of its own";
#endif
  auto const context = make_context(Backend::cpu);
  auto const csr = box_laplacian(*context, 16, 15, 14);
  CsrMatrix const host = csr->to_csr();
  std::vector<double> const b(static_cast<std::size_t>(host.n_rows), 1.0);
  std::vector<double> x(b.size(), std::nan(""));
  PeerSolve const solved = peer_multigrid(host, b, x, 1e-10, 100);
  EXPECT_GT(solved.iterations, 3);
  EXPECT_LT(solved.iterations, 30);
  EXPECT_LE(solved.residual_recursive, 1e-10);
  std::vector<double> const product = naive_product(host, x);
  double squares = 0;
  for (std::size_t i = 0; i < b.size(); ++i)
    squares += (b[i] - product[i]) * (b[i] - product[i]);
  EXPECT_LE(std::sqrt(squares / static_cast<double>(b.size())), 2e-10);
  EXPECT_EQ(peer_multigrid(host, b, x, 1e-10, 2).iterations, 2);
}

TEST(Peers, NeedADevice) {
  if (why_no_cuda().empty())
    GTEST_SKIP() << "there is a device";
  EXPECT_NE(why_no_peers(), "");
  auto const context = make_context(Backend::cpu);
  Csr const csr(banded(10, {1}, 1), *context);
  double x[10] = {}, y[10];
  for (auto const& [peer, name] : Names<Peer>::values)
    EXPECT_THROW((void)make_peer(peer, *context, csr.view(), x, y), EnvironmentError) << name;
  EXPECT_NE(why_no_peer_cg(), "");
  EXPECT_THROW((void)peer_cg(*context, csr.view(), x, y, 1e-3, 10, 1), EnvironmentError);
}

}  // namespace

}  // namespace poisson::testing
