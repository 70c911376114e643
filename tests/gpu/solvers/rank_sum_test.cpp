#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/systems.hpp"

#include "gpu/formats/matrix.hpp"
#include "gpu/preconditioners/registry.hpp"
#include "gpu/solvers/batch.hpp"
#include "gpu/solvers/krylov.hpp"

#include <cstring>

/// Passes that end at their sums, and scalar steps by themselves: what several ranks need.
namespace poisson::testing {

namespace {

/// Stands for `ranks` ranks whose rows are all alike: sums of all are multiples of one's.
template <class T>
class EqualRanks final : public RankSum<T> {
public:
  explicit EqualRanks(int ranks) : ranks_(ranks) {}
  void add(Context& context, T* sums, int count) override {
    ++calls;
    HostVector<T> values(static_cast<std::size_t>(count));
    auto const bytes = count * static_cast<std::int64_t>(sizeof(T));
    context.download(values.data(), sums, bytes);
    for (T& v : values)
      v = T(ranks_) * v;
    context.upload(sums, values.data(), bytes);
  }
  int calls = 0;

private:
  int ranks_;
};

template <class T>
struct Iterated {
  HostVector<T> x;
  IterationControl control;
  std::vector<double> history;
};

constexpr int iterations = 12;

template <class T>
Iterated<T> iterate(Method method, PreconditionerKind kind, std::shared_ptr<CsrMatrix const> const& csr, bool project,
                    Context& context, RankSum<T>* ranks, int n_ranks) {
  std::int64_t const n = csr->n_rows;
  auto const matrix = make_matrix(Format::csr, csr, context);
  // Multigrid must not be so good that there are fewer iterations.
  MultigridOptions const weak{.smoother = MultigridSmoother::jacobi, .degree = 1, .coarse_size = 20};
  auto const setup = make_preconditioner(*matrix, {.kind = kind, .shift = 0.01, .csr = [&] { return csr; }, .multigrid = weak});
  auto const m = setup == nullptr ? nullptr : setup->applied_in(T(0));
  auto const b = random_vector(n, 5);
  Vector<T> x(context, n), r(context, std::span<double const>(b));
  x.set_zero();
  KrylovSystem<T> const system{*matrix, m.get(), context, project, x.data(), r.data(), ranks};
  auto const run = method == Method::cg         ? make_cg<T>(system)
                   : method == Method::bicgstab ? make_bicgstab<T>(system)
                   : method == Method::gmres    ? make_gmres<T>(system)
                                                : make_minres<T>(system);
  IterationControl control;
  control.n = n_ranks * n;
  control.stagnation_window = 1000;
  control.growth = 1e15;
  control.b_norm = norm(b) * std::sqrt(n_ranks);
  run->begin(control, true);
  for (int i = 0; i < iterations; ++i)
    run->iterate();
  run->finish();
  Iterated<T> result{HostVector<T>(static_cast<std::size_t>(n)), run->control(), std::vector<double>(history_capacity)};
  run->history(result.history);
  x.download(std::span<T>(result.x));
  return result;
}

template <class B>
class Ranks : public OnBackend<B::value> {};
TYPED_TEST_SUITE(Ranks, Backends, BackendNames);

template <class T>
void compare(Context& context) {
  auto const csr = box27(7, 6, 8, false, 0.4);
  for (auto const& method : Names<Method>::values)
    for (auto const& kind : Names<PreconditionerKind>::values)
      for (bool const project : {false, true}) {
        if (kind.value == PreconditionerKind::automatic || kind.value == PreconditionerKind::direct)
          continue;  // direct is of one rank
        SCOPED_TRACE(std::string(method.name) + " " + std::string(kind.name) + (project ? ", projected" : ""));
        auto const fused = iterate<T>(method.value, kind.value, csr, project, context, nullptr, 1);
        ASSERT_EQ(fused.control.iteration, iterations);
        EqualRanks<T> one(1);
        auto const split = iterate<T>(method.value, kind.value, csr, project, context, &one, 1);
        EXPECT_GT(one.calls, 2 * iterations);
        EXPECT_EQ(std::memcmp(split.x.data(), fused.x.data(), split.x.size() * sizeof(T)), 0) << "other bits";
        EXPECT_EQ(split.history, fused.history);
        EXPECT_EQ(split.control.norm, fused.control.norm);
        EXPECT_EQ(split.control.x_norm, fused.control.x_norm);
        // Four ranks with the same rows each are a system of four equal blocks, whose solution is that of one, four times. Sums
        // are four times as large to the last bit, their roots twice, and quotients of sums the same.
        EqualRanks<T> four(4);
        auto const of_four = iterate<T>(method.value, kind.value, csr, project, context, &four, 4);
        EXPECT_EQ(std::memcmp(of_four.x.data(), fused.x.data(), split.x.size() * sizeof(T)), 0) << "other bits on four ranks";
        EXPECT_NEAR(of_four.control.norm, 2 * fused.control.norm, 1e-14 * fused.control.norm);
      }
}

TYPED_TEST(Ranks, SplitStepsGiveTheBitsOfFusedOnesInDouble) {
  compare<double>(*this->context);
}
TYPED_TEST(Ranks, SplitStepsGiveTheBitsOfFusedOnesInDoubleDouble) {
  compare<DoubleDouble>(*this->context);
}

TEST(Batches, AreCountsThatGrowToATenthOfASecond) {
  BatchSize const quick(1024, nominal_seconds(Backend::cuda, 1000, 0));
  EXPECT_EQ(quick.next(0), 8);
  EXPECT_EQ(quick.next(16), 8);
  EXPECT_EQ(quick.next(100), 50);
  EXPECT_EQ(quick.next(1000000), 1024);
  BatchSize const slow(1024, 0.02);
  EXPECT_EQ(slow.next(0), 5);
  EXPECT_EQ(slow.next(1000), 5);
  BatchSize const slowest(1024, 3);
  EXPECT_EQ(slowest.next(1000), 1);
  EXPECT_GT(nominal_seconds(Backend::cuda, 1000, 500), 1e-3) << "levels of a triangle wait for each other on a device";
}

}  // namespace
}  // namespace poisson::testing
