#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"

#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace poisson::app {

/// The ranks of a run, and how they end together. What one of them throws inside of together(), all throw; what one throws
/// elsewhere, while the others go on, ends the processes of all. The team of a run without other ranks is alone_team(): there
/// together(body) is body().
class Team {
public:
  explicit Team(Communicator& communicator) : communicator_(communicator) {}

  [[nodiscard]] Communicator& communicator() const { return communicator_; }
  [[nodiscard]] int rank() const { return communicator_.rank(); }
  [[nodiscard]] int size() const { return communicator_.size(); }
  [[nodiscard]] bool is_first() const { return rank() == 0; }
  [[nodiscard]] bool is_alone() const { return communicator_.is_alone(); }

  /// Calls body(), which must not communicate, on every rank. Where one throws, all throw an exception of the same kind: that of
  /// the lowest rank, with its number unless all say the same. Collective.
  template <class Body>
  void together(Body&& body) {
    if (is_alone())
      body();
    else
      agree(thrown_by(body), true);
  }

  /// Calls body() on the first rank alone. What it throws, all throw, without a number. Collective.
  template <class Body>
  void on_first(Body&& body) {
    if (is_alone())
      body();
    else
      agree(is_first() ? thrown_by(body) : nullptr, false);
  }

  /// All get the text of the first rank.
  [[nodiscard]] std::string of_first(std::string const& text);

  /// " on 3 ranks", for titles; empty for a rank without others.
  [[nodiscard]] std::string on_ranks() const { return is_alone() ? "" : " on " + std::to_string(size()) + " ranks"; }

  /// How many ranks run on the machine of this one. Collective.
  [[nodiscard]] int n_on_this_machine() const;

  /// Bytes that only the first rank has, on `receiver`; others get none. Collective.
  [[nodiscard]] std::vector<char> sent_by_first(int receiver, std::vector<char> const& bytes);

  /// Whether the exception that is on its way is one that all ranks throw.
  [[nodiscard]] bool agreed() const { return agreed_ || is_alone(); }
  /// It was caught on all ranks, and they go on.
  void caught() { agreed_ = false; }

private:
  template <class Body>
  [[nodiscard]] static std::exception_ptr thrown_by(Body&& body) {
    try {
      body();
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }
  void agree(std::exception_ptr const& failure, bool tells_rank);

  Communicator& communicator_;
  bool agreed_ = false;
};

/// The team of alone(): of a run without other ranks.
[[nodiscard]] Team& alone_team();

}  // namespace poisson::app
