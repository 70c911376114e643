#include "app/launch/team.hpp"

#include "app/config/config.hpp"
#include "app/launch/exit_code.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <optional>
#include <system_error>
#include <vector>

namespace poisson::app {

namespace {

/// Ranks tell each other by these kinds what went wrong on them.
enum class FailureKind : std::int32_t { none, input, memory, environment, internal, interrupt };

constexpr char out_of_memory_of_rank[] = "out of memory; 'poisson check CONFIG --ranks R' estimates what a rank needs";

struct RankFailure {
  FailureKind kind{};
  std::string key, message;
};

RankFailure rank_failure_of(std::exception_ptr const& failure) {
  if (!failure)
    return {};
  try {
    std::rethrow_exception(failure);
  } catch (ConfigError const& error) {  // its message has key and place
    return {FailureKind::input, "", error.what()};
  } catch (InputError const& error) {
    return {FailureKind::input, error.key(), error.what()};
  } catch (OutOfMemoryError const& error) {
    return {FailureKind::memory, "", error.what()};
  } catch (EnvironmentError const& error) {
    return {FailureKind::environment, "", error.what()};
  } catch (Interrupted const&) {
    return {FailureKind::interrupt, "", ""};
  } catch (std::bad_alloc const&) {
    return {FailureKind::memory, "", out_of_memory_of_rank};
  } catch (std::exception const& error) {
    if (auto const* const of_system = dynamic_cast<std::system_error const*>(&error);
        of_system != nullptr && of_system->code() == std::errc::not_enough_memory)
      return {FailureKind::memory, "", out_of_memory_of_rank};
    return {FailureKind::internal, "", error.what()};
  }
}

}  // namespace

Team& alone_team() {
  static Team team(alone());
  return team;
}

void Team::agree(std::exception_ptr const& failure, bool tells_rank) {
  RankFailure const mine = rank_failure_of(failure);
  // The lowest rank whose failure is no interrupt; behind all ranks those that were interrupted, and then those without a failure.
  int const n = size();
  int const first = -max_over(communicator_, -(mine.kind == FailureKind::none        ? 2 * n
                                               : mine.kind == FailureKind::interrupt ? n + rank()
                                                                                     : rank()));
  if (first == 2 * n)
    return;
  if (first >= n) {  // which is no error
    share_interrupt(communicator_);
    throw Interrupted();
  }
  agreed_ = true;
  FailureKind const kind = of_rank(communicator_, first, mine.kind);
  std::string const key = text_of_rank(communicator_, first, mine.key);
  std::string message = text_of_rank(communicator_, first, mine.message);
  if (any_of_ranks(communicator_, mine.message != message) && tells_rank)
    message = told_by(first, message);
  switch (kind) {
  case FailureKind::input:
    throw InputError(key, message);
  case FailureKind::memory:
    throw OutOfMemoryError(message);
  case FailureKind::environment:
    throw EnvironmentError(message);
  default:
    throw std::runtime_error(message);
  }
}

int Team::n_on_this_machine() const {
  std::array<char, 256> name{};
  static_cast<void>(gethostname(name.data(), name.size() - 1));
  auto const names = gather_texts(communicator_, name.data());
  return static_cast<int>(std::count(names.begin(), names.end(), std::string(name.data())));
}

std::string Team::of_first(std::string const& text) {
  return text_of_rank(communicator_, 0, text);
}

std::vector<char> Team::sent_by_first(int receiver, std::vector<char> const& bytes) {
  constexpr std::int64_t most_at_once = std::int64_t{1} << 30;  // a message of MPI has fewer than 2^31 bytes
  std::vector<char> received;
  std::int64_t const n = poisson::of_first(communicator_, std::ssize(bytes));
  if (rank() == receiver)
    received.resize(static_cast<std::size_t>(n));
  for (std::int64_t sent = 0; sent < n && receiver != 0; sent += most_at_once) {
    std::vector<Message> sends, receives;
    std::int64_t const size = std::min(n - sent, most_at_once);
    if (is_first())
      sends.push_back({receiver, const_cast<char*>(bytes.data()) + sent, size});
    if (rank() == receiver)
      receives.push_back({0, received.data() + sent, size});
    auto const exchange = communicator_.make_exchange(sends, receives);
    exchange->start();
    exchange->finish();
  }
  return receiver == 0 && is_first() ? bytes : received;
}

}  // namespace poisson::app
