#include "gpu/solvers/solver_state.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/systems.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <cstring>
#include <optional>
#include <set>
#include <string>

/// A solve that goes on from a state is the one that was never interrupted: the same bits of x, residuals and texts.
namespace poisson::testing {

namespace {

class Writer final : public StateStream {
public:
  [[nodiscard]] bool reads() const override { return false; }
  void bytes(void* data, std::size_t n) override { written.append(static_cast<char const*>(data), n); }
  std::string written;
};

class Reader final : public StateStream {
public:
  explicit Reader(std::string state) : state_(std::move(state)) {}
  [[nodiscard]] bool reads() const override { return true; }
  void bytes(void* data, std::size_t n) override {
    require(n <= state_.size() - read_);
    std::memcpy(data, state_.data() + read_, n);
    read_ += n;
  }
  [[nodiscard]] bool is_at_end() const { return read_ == state_.size(); }

private:
  std::string state_;
  std::size_t read_ = 0;
};

struct State {
  std::int64_t iteration = 0;
  std::string solution, state;
};

/// Keeps the state after every batch, and goes on from one of another run.
class KeptStates final : public SolverCheckpoints {
public:
  explicit KeptStates(State const* from = nullptr) {
    if (from != nullptr)
      reader.emplace(from->state);
  }
  [[nodiscard]] bool is_due(std::int64_t, bool) override { return true; }
  void save(std::int64_t iteration, double, Write const& solution, Write const& state) override {
    Writer of_solution, of_state;
    solution(of_solution);
    state(of_state);
    states.push_back({iteration, of_solution.written, of_state.written});
  }
  [[nodiscard]] StateStream* saved() override { return reader ? &*reader : nullptr; }

  std::vector<State> states;
  std::optional<Reader> reader;
};

/// The first and the last state, and two between them.
std::set<std::size_t> some_of(KeptStates const& kept) {
  std::size_t const n = kept.states.size();
  return {0, n / 3, n / 2, n - 1};
}

std::vector<double> numbers_of(std::string const& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

void expect_same(SolverResult const& one, SolverResult const& other) {
  EXPECT_EQ(one.status, other.status);
  EXPECT_EQ(one.reason, other.reason);
  EXPECT_EQ(one.notes, other.notes);
  EXPECT_EQ(one.iterations, other.iterations);
  EXPECT_EQ(one.cycles, other.cycles);
  EXPECT_EQ(one.extended_from, other.extended_from);
  EXPECT_EQ(one.history, other.history);
  EXPECT_EQ(one.residual_recursive, other.residual_recursive);
  EXPECT_EQ(one.bytes_per_iteration, other.bytes_per_iteration);
  EXPECT_EQ(one.preconditioner, other.preconditioner);
  EXPECT_EQ(one.method, other.method);
  EXPECT_EQ(one.precision, other.precision);
  EXPECT_EQ(one.tolerance, other.tolerance);
  EXPECT_TRUE(std::equal(one.x_low.begin(), one.x_low.end(), other.x_low.begin(), other.x_low.end()));
}

template <class C>
class SolverState : public SolvesOnCase<C> {
protected:
  /// Goes on from some states of a solve, the first and the last among them.
  SolverResult expect_equal_bits(std::shared_ptr<CsrMatrix const> const& csr, std::vector<double> const& b, SolverOptions options) {
    KeptStates whole;
    options.checkpoints = nullptr;
    SolverResult const without = this->solve(csr, b, options);
    options.checkpoints = &whole;
    SolverResult const result = this->solve(csr, b, options);
    expect_same(result, without);  // leaving states changes nothing
    std::vector<double> const expected = this->solution;
    EXPECT_GE(whole.states.size(), options.preconditioner == PreconditionerKind::multigrid ? 1U : 2U);
    for (std::size_t const i : some_of(whole)) {
      SCOPED_TRACE("from iteration " + std::to_string(whole.states[i].iteration));
      KeptStates rest(&whole.states[i]);
      options.checkpoints = &rest;
      expect_same(this->solve(csr, b, options), result);
      EXPECT_EQ(this->solution, expected);
      EXPECT_TRUE(rest.reader->is_at_end());
      // It leaves the states that the other one has left, times apart.
      EXPECT_EQ(rest.states.size(), whole.states.size() - i);
      EXPECT_EQ(rest.states.back().solution, whole.states.back().solution);
    }
    return result;
  }
};

using StateCases = EveryBackend<Format::csr, Format::half_cds>;
TYPED_TEST_SUITE(SolverState, StateCases, CaseNames);

TYPED_TEST(SolverState, GoesOnWithEqualBits) {
  auto const csr = box27(9, 10, 11, false, 0.4);
  auto const b = random_vector(csr->n_rows, 5);
  Deal deal(TypeParam::format, 2);
  for (auto const& method : Names<Method>::values)
    for (Precision const precision : {Precision::double_, Precision::double_double, Precision::refined, Precision::mixed})
      for (PreconditionerKind const preconditioner :
           {PreconditionerKind::none, PreconditionerKind::jacobi, PreconditionerKind::multigrid, PreconditionerKind::ic0}) {
        if (preconditioner == PreconditionerKind::ic0 && (precision != Precision::double_ || !needs_symmetry(method.value)))
          continue;
        if (!deal.next())
          continue;
        SCOPED_TRACE(std::string(method.name) + " " + std::string(name_of(precision)) + " " + std::string(name_of(preconditioner)));
        SolverOptions options;
        options.method = method.value;
        options.precision = precision;
        options.preconditioner = preconditioner;
        options.tolerance = precision == Precision::double_ ? 1e-12 : 1e-26;
        if (preconditioner == PreconditionerKind::multigrid)
          options.multigrid.degree = 1;
        EXPECT_EQ(this->expect_equal_bits(csr, b, options).status, SolverStatus::converged);
      }
}

// As another process does, where nothing has run before.
TYPED_TEST(SolverState, GoesOnInAFreshContext) {
  // What a device allocates when its kernels first run depends on the size. The host allocates nothing then.
  auto const csr = TypeParam::backend == Backend::cuda ? box27(40, 41, 42, false, 0.4) : box27(16, 17, 18, false, 0.4);
  auto const b = random_vector(csr->n_rows, 5);
  for (auto const& method : Names<Method>::values) {
    SCOPED_TRACE(method.name);
    SolverOptions options;
    options.method = method.value;
    options.preconditioner = PreconditionerKind::jacobi;
    options.tolerance = 1e-10;
    auto const solved = [&](KeptStates& states, std::vector<double>& x) {
      auto const fresh = make_context(TypeParam::backend);
      auto const a = make_matrix(TypeParam::format, csr, *fresh);
      options.checkpoints = &states;
      x.assign(b.size(), 0);
      return solve(*a, std::span<double const>(b), std::span<double>(x), options);
    };
    KeptStates whole;
    std::vector<double> expected, x;
    SolverResult const result = solved(whole, expected);
    ASSERT_GE(result.iterations, 32);
    for (std::size_t const i : some_of(whole)) {
      SCOPED_TRACE("from iteration " + std::to_string(whole.states[i].iteration));
      KeptStates rest(&whole.states[i]);
      expect_same(solved(rest, x), result);
      EXPECT_EQ(x, expected);
    }
  }
}

TYPED_TEST(SolverState, OfANullSpaceAndLargeNumbers) {
  auto const csr = box27(9, 8, 10, true, 0.3);
  auto b = random_vector(csr->n_rows, 3);
  double const mean = std::accumulate(b.begin(), b.end(), 0.0) / static_cast<double>(b.size());
  for (double& value : b)
    value = (value - mean) * 1e170;
  SolverOptions options;
  options.constant_null_space = true;
  options.preconditioner = PreconditionerKind::jacobi;
  EXPECT_EQ(this->expect_equal_bits(csr, b, options).status, SolverStatus::converged);
}

TYPED_TEST(SolverState, OfASolutionInTheScaleOfTheCaller) {
  auto const csr = box27(9, 8, 10, false, 0.3);
  auto b = random_vector(csr->n_rows, 3);
  for (double& value : b)
    value *= 0x1p-500;
  for (Precision const precision : {Precision::double_, Precision::refined}) {
    KeptStates kept;
    SolverOptions options;
    options.precision = precision;
    options.checkpoints = &kept;
    static_cast<void>(this->solve(csr, b, options));
    // The last one is a batch before the end.
    EXPECT_LE(distance(numbers_of(kept.states.back().solution), this->solution), 1e-3 * norm(this->solution));
  }
}

/// One attempt after another, and what is told of them.
TYPED_TEST(SolverState, OfAutomaticChoices) {
  // Stagnates in double, and goes on as refined.
  auto const csr = box27(14, 13, 12, true, 0.4);
  for (std::int64_t row = 0; row < csr->n_rows; ++row)  // nearly singular
    for (std::int64_t e = csr->row_ptr[static_cast<std::size_t>(row)]; e < csr->row_ptr[static_cast<std::size_t>(row) + 1]; ++e)
      if (csr->columns[static_cast<std::size_t>(e)] == row)
        csr->values[static_cast<std::size_t>(e)] += 1e-7;
  SolverOptions options;
  options.precision = Precision::automatic;
  options.tolerance = 3e-15;
  options.preconditioner = PreconditionerKind::jacobi;
  auto const refined = this->expect_equal_bits(csr, random_vector(csr->n_rows, 5), options);
  EXPECT_EQ(refined.precision, Precision::refined);
  EXPECT_EQ(refined.notes.size(), 1U);
  options.precision = Precision::double_;
  // Indefinite: cg fails, bicgstab goes on.
  auto shifted = std::make_shared<CsrMatrix>(*box27(8, 8, 8));
  for (std::int64_t row = 0; row < shifted->n_rows; ++row)
    for (std::int64_t e = shifted->row_ptr[static_cast<std::size_t>(row)]; e < shifted->row_ptr[static_cast<std::size_t>(row) + 1];
         ++e)
      if (shifted->columns[static_cast<std::size_t>(e)] == row)
        shifted->values[static_cast<std::size_t>(e)] *= 0.8;
  options.falls_back = true;
  options.general = true;
  options.tolerance = 1e-10;
  options.preconditioner = PreconditionerKind::jacobi;
  auto const result = this->expect_equal_bits(shifted, random_vector(shifted->n_rows, 2), options);
  EXPECT_EQ(result.method, Method::bicgstab);
  EXPECT_FALSE(result.notes.empty());
}

TYPED_TEST(SolverState, IsLeftWhereAnInterruptEndsTheSolve) {
  auto const csr = box27(9, 10, 11, false, 0.4);
  auto const b = random_vector(csr->n_rows, 5);
  SolverOptions options;
  options.tolerance = 1e-13;
  SolverResult const whole = this->solve(csr, b, options);
  std::vector<double> const expected = this->solution;
  detail::polls_until_interrupt = 4;
  KeptStates kept;
  options.checkpoints = &kept;
  EXPECT_EQ(this->solve(csr, b, options).status, SolverStatus::interrupted);
  clear_interrupt();
  EXPECT_GT(kept.states.back().iteration, 0);
  KeptStates rest(&kept.states.back());
  options.checkpoints = &rest;
  expect_same(this->solve(csr, b, options), whole);
  EXPECT_EQ(this->solution, expected);
}

TYPED_TEST(SolverState, OfAnotherSystemIsRefused) {
  KeptStates kept;
  SolverOptions options;
  options.checkpoints = &kept;
  auto const csr = box27(6, 6, 6), other = box27(6, 6, 7);
  static_cast<void>(this->solve(csr, random_vector(csr->n_rows, 1), options));
  KeptStates rest(&kept.states.back());
  options.checkpoints = &rest;
  EXPECT_THROW(static_cast<void>(this->solve(other, random_vector(other->n_rows, 1), options)), InputError);
}

TEST(SolverStateOnRanks, GoesOnWithEqualBits) {
  auto const csr = box27(7, 6, 20, false, 0.4);
  auto const b = random_vector(csr->n_rows, 5);
  std::vector<std::int64_t> const first{0, 300, csr->n_rows};
  for (auto const& method : Names<Method>::values)
    ThreadRanks::run(2, [&](Communicator& ranks) {
      auto const context = make_context(Backend::cpu);
      RankRows const rows = rows_of_rank(*csr, first, ranks.rank());
      SplitRows const parts = split(rows);
      RankMatrix const matrix(make_matrix(Format::csr, parts.local, *context, {}), parts, rows.neighbors, ranks);
      auto const r = static_cast<std::size_t>(ranks.rank());
      std::vector<double> const own(b.begin() + first[r], b.begin() + first[r + 1]);
      KeptStates whole;
      SolverOptions options;
      options.method = method.value;
      options.preconditioner = PreconditionerKind::jacobi;
      options.tolerance = 1e-13;
      options.ranks = ranks;
      options.checkpoints = &whole;
      std::vector<double> x(own.size()), again(own.size());
      SolverResult const result = solve(matrix, own, x, options);
      ASSERT_GE(whole.states.size(), 3U);
      KeptStates rest(&whole.states[whole.states.size() / 2]);
      options.checkpoints = &rest;
      expect_same(solve(matrix, own, again, options), result);
      EXPECT_EQ(again, x);
    });
}

}  // namespace
}  // namespace poisson::testing
