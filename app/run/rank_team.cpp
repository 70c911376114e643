#include "app/run/rank_team.hpp"

#include "app/config/config.hpp"
#include "app/run/exit_code.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <optional>
#include <vector>

namespace poisson::app {

namespace {

/// Of exceptions, in the order in which they count.
enum class FailureKind : std::int32_t { none, input, memory, environment, internal, interrupt };

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
    return {FailureKind::memory, "", "out of memory; 'poisson check CONFIG --ranks R' estimates what a rank needs"};
  } catch (std::exception const& error) {
    return {FailureKind::internal, "", error.what()};
  }
}

}  // namespace

RankTeam& alone_team() {
  static RankTeam team(alone());
  return team;
}

void RankTeam::agree(std::exception_ptr const& failure, bool tells_rank) {
  RankFailure const mine = rank_failure_of(failure);
  auto const kinds = gather(communicator_, mine.kind);
  if (std::all_of(kinds.begin(), kinds.end(), [](FailureKind kind) { return kind == FailureKind::none; }))
    return;
  agreed_ = true;
  auto const keys = gather_texts(communicator_, mine.key), messages = gather_texts(communicator_, mine.message);
  auto found = std::find_if(kinds.begin(), kinds.end(),
                            [](FailureKind kind) { return kind != FailureKind::none && kind != FailureKind::interrupt; });
  if (found == kinds.end()) {
    agreed_ = false;  // which is no error
    share_interrupt(communicator_);
    throw Interrupted();
  }
  auto const rank = static_cast<std::size_t>(found - kinds.begin());
  tells_rank = tells_rank &&
               std::any_of(messages.begin(), messages.end(), [&](std::string const& other) { return other != messages[rank]; });
  std::string const message = tells_rank ? told_by(static_cast<int>(rank), messages[rank]) : messages[rank];
  switch (*found) {
  case FailureKind::input:
    throw InputError(keys[rank], message);
  case FailureKind::memory:
    throw OutOfMemoryError(message);
  case FailureKind::environment:
    throw EnvironmentError(message);
  default:
    throw std::runtime_error(message);
  }
}

int RankTeam::n_on_this_machine() const {
  std::array<char, 256> name{};
  static_cast<void>(gethostname(name.data(), name.size() - 1));
  auto const names = gather_texts(communicator_, name.data());
  return static_cast<int>(std::count(names.begin(), names.end(), std::string(name.data())));
}

std::string RankTeam::of_first(std::string const& text) {
  return is_alone() ? text : gather_texts(communicator_, text).front();
}

std::vector<char> RankTeam::sent_by_first(int receiver, std::vector<char> const& bytes) {
  constexpr std::int64_t most_at_once = std::int64_t{1} << 30;  // a message of MPI has fewer than 2^31 bytes
  std::int64_t const n = gather(communicator_, static_cast<std::int64_t>(bytes.size())).front();
  std::vector<char> received;
  for (std::int64_t sent = 0; sent < n; sent += most_at_once) {
    std::vector<std::vector<char>> to(static_cast<std::size_t>(size()));
    if (is_first())
      to[static_cast<std::size_t>(receiver)].assign(bytes.begin() + sent, bytes.begin() + std::min(n, sent + most_at_once));
    std::vector<char> const from = std::move(swap_lists(communicator_, to).front());
    received.insert(received.end(), from.begin(), from.end());
  }
  return received;
}

}  // namespace poisson::app
