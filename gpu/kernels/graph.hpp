#pragma once

#include "gpu/core/context.hpp"

#include <functional>
#include <memory>

namespace poisson {

/// A sequence of device work that can be enqueued repeatedly by one call (a CUDA graph).
class Graph {
public:
  virtual ~Graph() = default;
  virtual void launch() = 0;
};

class GraphKernels {
public:
  virtual ~GraphKernels() = default;
  /// Captures what `work` enqueues, for cases in which launches of small kernels take longer than the kernels. Null where the
  /// backend has no graphs or the capture fails; the caller then calls `work` instead. Preconditions: `work` enqueues the same
  /// every time, and has been called once before, so that it allocates nothing.
  [[nodiscard]] virtual std::unique_ptr<Graph> capture(Context& context, std::function<void()> const& work) const = 0;

  static GraphKernels const& cpu();
  static GraphKernels const& cuda();
};

}  // namespace poisson
