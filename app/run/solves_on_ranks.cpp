#include "app/run/solves_on_ranks.hpp"

#include "app/domain/system_shares.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/threads.hpp"

#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <utility>

namespace poisson::app {

namespace {

/// An exception that one rank alone throws where others wait for it. It is no std::exception, so that nobody goes on after it.
struct LostRank {
  std::exception_ptr reason;
};

}  // namespace

SolvesOnRanks::SolvesOnRanks(RunConfig const& config, RunOptions const& options, Team& ranks, RunDevice& device, RunLog& log,
                             Checkpoints& checkpoints)
    : config_(config),
      ranks_(ranks),
      device_(device),
      log_(log),
      checkpoints_(checkpoints),
      is_alone_(ranks.is_alone()),
      threads_(options.threads),
      threads_alone_(options.threads_alone) {
  if (!is_alone_)
    log.console.line("    the first rank refines the mesh; all ranks solve");
}

void SolvesOnRanks::solve_for(SystemSolver& solver, int order, bool keeps_matrix) {
  if (is_alone_)
    return;
  config_.problem.order = order;
  solver.on_ranks = this;
  solver.keeps_matrix = keeps_matrix;
}

void SolvesOnRanks::lead(std::function<void()> const& body) {
  if (is_alone_)
    return body();
  std::exception_ptr failure;
  if (ranks_.is_first()) {
    try {
      set_threads(true);
      body();
    } catch (LostRank const& lost) {
      std::rethrow_exception(lost.reason);
    } catch (...) {
      failure = std::current_exception();
    }
    static_cast<void>(told(Call::end));
    set_threads(false);
  } else {
    serve();
  }
  ranks_.on_first([&] {
    if (failure)
      std::rethrow_exception(failure);
  });
}

SolvesOnRanks::Call SolvesOnRanks::told(Call call) {
  ranks_.communicator().broadcast_late(0, &call, sizeof call);
  return call;
}

void SolvesOnRanks::set_threads(bool alone) const {
  if (threads_alone_ > threads_)
    set_thread_count(alone ? threads_alone_ : threads_);
}

template <class Action>
auto SolvesOnRanks::together(Call call, Action const& action) {
  struct Threads {
    explicit Threads(SolvesOnRanks const& of_ranks) : of(of_ranks) { of.set_threads(false); }
    Threads(Threads const&) = delete;
    Threads& operator=(Threads const&) = delete;
    ~Threads() {
      if (of.threads_alone_ > of.threads_)
        set_thread_count_or_one(of.threads_alone_);
    }
    SolvesOnRanks const& of;
  };
  static_cast<void>(told(call));
  try {
    Threads const threads(*this);
    return action();
  } catch (Interrupted const&) {  // all ranks throw it
    throw;
  } catch (...) {
    if (!ranks_.agreed())
      throw LostRank{std::current_exception()};
    ranks_.caught();
    throw;
  }
}

void SolvesOnRanks::serve() {
  for (;;) {
    Call const call = told(Call::end);
    if (call == Call::end)
      return;
    try {
      obey(call);
    } catch (Interrupted const&) {
      clear_interrupt();
    } catch (...) {  // the first rank, which throws the same, says what is next
      if (!ranks_.agreed())
        throw;
      ranks_.caught();
    }
  }
}

void SolvesOnRanks::obey(Call call) {
  FieldPair none;
  switch (call) {
  case Call::convert:
    return convert_here({});
  case Call::solve:
    return static_cast<void>(solve_here({}, false, nullptr, false));
  case Call::verify:
    return verify_here({}, none);
  case Call::solve_more:
    return static_cast<void>(solve_more_here({}));
  case Call::norms_of:
    return static_cast<void>(norms_here({}, {}));
  case Call::correction:
    return static_cast<void>(correction_here({}, 0));
  case Call::end:
    return;
  }
}

void SolvesOnRanks::convert(RankRows rows) {
  together(Call::convert, [&] { convert_here(std::move(rows)); });
}

FieldPair SolvesOnRanks::solve(Field const& b, bool constant_null_space, Array<double> const* start, bool keeps_setup) {
  return together(Call::solve, [&] { return solve_here(b, constant_null_space, start, keeps_setup); });
}

void SolvesOnRanks::verify(Field const& b, FieldPair& x) {
  together(Call::verify, [&] { verify_here(b, x); });
}

std::vector<SystemSolver::Solved> SolvesOnRanks::solve_more(std::vector<Array<double>> b) {
  return together(Call::solve_more, [&] { return solve_more_here(std::move(b)); });
}

ResidualNorms SolvesOnRanks::norms_of(Field const& r, Field const& b) {
  return together(Call::norms_of, [&] { return norms_here(r, b); });
}

Field SolvesOnRanks::correction(Field const& r, double tolerance) {
  return together(Call::correction, [&] { return correction_here(r, tolerance); });
}

void SolvesOnRanks::convert_here(RankRows rows) {
  Communicator& ranks = ranks_.communicator();
  config_.problem.order = of_first(ranks, config_.problem.order);
  solver_.emplace(config_, ranks_, device_, log_);
  solver_->checkpoints = &checkpoints_;
  solver_->tells_devices = !std::exchange(told_devices_, true);
  SystemShare share = app::shared_out(std::move(rows.matrix), {}, ranks_);
  first_rows_ = {0};
  for (std::int64_t const n : gather(ranks, share.rows.matrix->n_rows))
    first_rows_.push_back(first_rows_.back() + n);
  device_.connect_ranks(first_rows_.back());
  solver_->convert(std::move(share.rows));
}

FieldPair SolvesOnRanks::solve_here(Field const& b, bool constant_null_space, Array<double> const* start, bool keeps_setup) {
  Communicator& ranks = ranks_.communicator();
  constant_null_space = of_first(ranks, constant_null_space);
  if (of_first(ranks, keeps_setup))
    solver_->keep_setup();
  Array<double> own_start;
  bool const begins = of_first(ranks, start != nullptr);
  config_.solver.initial = begins ? InitialGuess::neighbour : InitialGuess::zero;
  if (begins) {
    Field whole;
    if (start != nullptr) {
      HostVector<double> values(static_cast<std::size_t>(start->size()));
      start->download(std::span<double>(values));
      whole = Field(std::move(values));
    }
    Field own = shared_out(whole);
    own_start = std::move(own.change_on(device_.context()));
    solver_->start = &own_start;
  }
  Field const own_b = shared_out(b);
  FieldPair const own = solver_->solve(own_b, constant_null_space);
  solver_->start = nullptr;
  return gathered(own);
}

void SolvesOnRanks::verify_here(Field const& b, FieldPair& x) {
  Field const own_b = shared_out(b);
  FieldPair own = shared_out(x);
  solver_->verify(own_b, own);
  x = gathered(own);
}

std::vector<SystemSolver::Solved> SolvesOnRanks::solve_more_here(std::vector<Array<double>> b) {
  auto const n = of_first(ranks_.communicator(), std::ssize(b));
  std::vector<Array<double>> own;
  for (std::int64_t i = 0; i < n; ++i) {
    Field const whole = ranks_.is_first() ? Field(std::move(b[static_cast<std::size_t>(i)])) : Field();
    own.push_back(std::move(shared_out(whole).change_on(device_.context())));
  }
  auto all = solver_->solve_more(std::move(own));
  for (SystemSolver::Solved& solved : all)
    solved.x = gathered(solved.x);
  return all;
}

ResidualNorms SolvesOnRanks::norms_here(Field const& r, Field const& b) {
  Field const own_r = shared_out(r), own_b = shared_out(b);
  return solver_->norms_of(own_r, own_b);
}

Field SolvesOnRanks::correction_here(Field const& r, double tolerance) {
  tolerance = of_first(ranks_.communicator(), tolerance);
  Field const own = shared_out(r);
  return gathered(solver_->correction(own, tolerance));
}

Field SolvesOnRanks::shared_out(Field const& whole) {
  std::span<double const> const values = ranks_.is_first() ? whole.host() : std::span<double const>();
  HostVector<double> own;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    auto const first = static_cast<std::size_t>(first_rows_[static_cast<std::size_t>(rank)]),
               n = static_cast<std::size_t>(first_rows_[static_cast<std::size_t>(rank) + 1]) - first;
    std::vector<char> bytes;
    ranks_.on_first([&] {
      bytes.resize(n * sizeof(double));
      if (n > 0)
        std::memcpy(bytes.data(), values.data() + first, bytes.size());
    });
    std::vector<char> const received = ranks_.sent_by_first(rank, bytes);
    if (rank != ranks_.rank())
      continue;
    own.resize(n);
    if (n > 0)
      std::memcpy(own.data(), received.data(), n * sizeof(double));
  }
  return Field(std::move(own));
}

FieldPair SolvesOnRanks::shared_out(FieldPair const& whole) {
  bool const has_low = of_first(ranks_.communicator(), !whole.low.empty());
  FieldPair own;
  own.high = shared_out(whole.high);
  if (has_low)
    own.low = shared_out(whole.low);
  return own;
}

Field SolvesOnRanks::gathered(Field const& own) {
  std::span<double const> const values = own.host();
  std::vector<double> const all = joined_on_first(ranks_.communicator(), std::vector<double>(values.begin(), values.end()));
  return Field(HostVector<double>(all.begin(), all.end()));
}

FieldPair SolvesOnRanks::gathered(FieldPair const& own) {
  bool const has_low = any_of_ranks(ranks_.communicator(), !own.low.empty());
  FieldPair all;
  all.high = gathered(own.high);
  if (has_low)
    all.low = gathered(own.low);
  return all;
}

}  // namespace poisson::app
