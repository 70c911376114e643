#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/vector.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace poisson {

/// A row of numbers that objects write their state to, or read it back from in the same order. One function of an object does both,
/// so that the two cannot differ. Where they are kept is the caller's choice: gpu/ knows of no files.
class StateStream {
public:
  StateStream() = default;
  StateStream(StateStream const&) = delete;
  StateStream& operator=(StateStream const&) = delete;
  virtual ~StateStream() = default;
  [[nodiscard]] virtual bool reads() const = 0;
  /// Writes these bytes of host memory, or replaces them by those that were written. Throws EnvironmentError; where there are no
  /// more bytes to read InputError.
  virtual void bytes(void* data, std::size_t n) = 0;

  template <class T>
  void value(T& of) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes(&of, sizeof of);
  }
  /// A list in host memory, with its length.
  template <class List>
  void list(List& of) {
    static_assert(std::is_trivially_copyable_v<typename List::value_type>);
    auto n = static_cast<std::int64_t>(of.size());
    value(n);
    require(n >= 0 && n < most_values);
    of.resize(static_cast<std::size_t>(n));
    if (n > 0)
      bytes(of.data(), of.size() * sizeof(of[0]));
  }
  void texts(std::vector<std::string>& of) {
    auto n = static_cast<std::int64_t>(of.size());
    value(n);
    require(n >= 0 && n < most_values);
    of.resize(static_cast<std::size_t>(n));
    for (std::string& text : of)
      list(text);
  }
  /// The first n numbers of an array in the memory of a backend. They pass through a block of host memory, at most block_bytes.
  template <class T>
  void numbers(Context& context, T* data, std::int64_t n) {
    std::int64_t const all = n * std::int64_t{sizeof(T)};
    if (context.backend() == Backend::cpu) {
      context.synchronize();
      if (n > 0)
        bytes(data, static_cast<std::size_t>(all));
      return;
    }
    std::vector<char> block(static_cast<std::size_t>(std::min(all, block_bytes)));
    for (std::int64_t done = 0; done < all; done += block_bytes) {
      std::int64_t const count = std::min(block_bytes, all - done);
      char* const place = reinterpret_cast<char*>(data) + done;
      if (!reads())
        context.download(block.data(), place, count);
      bytes(block.data(), static_cast<std::size_t>(count));
      if (reads())
        context.upload(place, block.data(), count);
    }
  }
  /// The first n entries of a vector.
  template <class T>
  void vector(Context& context, Vector<T>& of, std::int64_t n) {
    if constexpr (std::is_same_v<T, DoubleDouble>) {
      numbers(context, of.data().hi, n);
      numbers(context, of.data().lo, n);
    } else {
      numbers(context, of.data(), n);
    }
  }
  /// All of them; what is read has to have as many.
  template <class T>
  void vector(Context& context, Vector<T>& of) {
    std::int64_t n = of.size();
    value(n);
    require(n == of.size());
    vector(context, of, n);
  }
  /// What is read is of another solve where this does not hold. Throws InputError.
  static void require(bool fits);

  static constexpr std::int64_t block_bytes = std::int64_t{1} << 22;

private:
  static constexpr std::int64_t most_values = std::int64_t{1} << 40;
};

/// Where `solve` leaves its state while it iterates, and from where it goes on. A solve that goes on from a state takes the same
/// iterations, to the last bit, as the one that left it would have taken: the state has the vectors and scalars of the Krylov
/// method, x, the residual, the best iterate, the history, and which of several attempts it is in. What `solve` makes of A and b is
/// not part of it, and made again. So A, b and the options have to be the same, and the ranks and the backend.
class SolverCheckpoints {
public:
  using Write = std::function<void(StateStream&)>;

  SolverCheckpoints() = default;
  SolverCheckpoints(SolverCheckpoints const&) = delete;
  SolverCheckpoints& operator=(SolverCheckpoints const&) = delete;
  virtual ~SolverCheckpoints() = default;
  /// Whether the state is to be left now, after so many iterations; `ends`: an interrupt ends them here. Called between two batches
  /// of iterations. Collective: all ranks say the same.
  [[nodiscard]] virtual bool is_due(std::int64_t iteration, bool ends) = 0;
  /// Leaves the state. `solution` writes the numbers of x in own rows, as double and in the caller's scale; `state` all that it
  /// takes to go on. Neither communicates. Collective. Throws nothing that is about the state alone: iterations go on without it.
  virtual void save(std::int64_t iteration, double relative_residual, Write const& solution, Write const& state) = 0;
  /// The state to go on from, as `state` has written it; null: the solve begins. Asked for once in a call of `solve`; the stream is
  /// there until the next save.
  [[nodiscard]] virtual StateStream* saved() = 0;
};

}  // namespace poisson
