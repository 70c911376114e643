#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"

#include <exception>
#include <functional>
#include <string>

namespace poisson::app {

/// The ranks of a run, and how they end together. What one of them throws inside of together(), all throw; what one throws
/// elsewhere, while the others go on, ends the processes of all.
class RankTeam {
public:
  explicit RankTeam(Communicator& communicator) : communicator_(communicator) {}

  [[nodiscard]] Communicator& communicator() const { return communicator_; }
  [[nodiscard]] int rank() const { return communicator_.rank(); }
  [[nodiscard]] int size() const { return communicator_.size(); }
  [[nodiscard]] bool is_first() const { return rank() == 0; }

  /// Calls body(), which must not communicate, on every rank. Where one throws, all throw an exception of the same kind: that of
  /// the lowest rank, with its number unless all say the same. Collective.
  template <class Body>
  void together(Body&& body) {
    std::exception_ptr failure;
    try {
      body();
    } catch (...) {
      failure = std::current_exception();
    }
    agree(failure);
  }

  /// The same for a text: all get that of the first rank.
  [[nodiscard]] std::string of_first(std::string const& text);

  /// Whether the exception that is on its way is one that all ranks throw.
  [[nodiscard]] bool agreed() const { return agreed_; }
  /// It was caught on all ranks, and they go on.
  void caught() { agreed_ = false; }

private:
  void agree(std::exception_ptr const& failure);

  Communicator& communicator_;
  bool agreed_ = false;
};

// Of a team that may be null: one rank has all.

[[nodiscard]] inline Communicator* communicator_of(RankTeam const* team) {
  return team != nullptr ? &team->communicator() : nullptr;
}

template <class Body>
void together(RankTeam* team, Body&& body) {
  if (team != nullptr)
    team->together(body);
  else
    body();
}

}  // namespace poisson::app
