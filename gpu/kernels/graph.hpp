#pragma once

#include "gpu/core/context.hpp"

#include <functional>
#include <memory>

namespace poisson {

/// Work that can be enqueued over and over.
class Graph {
public:
  virtual ~Graph() = default;
  virtual void launch() = 0;
};

class GraphKernels {
public:
  virtual ~GraphKernels() = default;
  /// What `work` enqueues, as one unit that costs the host little each time: on a device a graph, where launches of small kernels
  /// would take longer than the kernels. `work` must have run once before, so that it allocates nothing, and must do the same every
  /// time. Null where the backend has no such thing, or refuses; work is then enqueued as ever.
  [[nodiscard]] virtual std::unique_ptr<Graph> capture(Context& context, std::function<void()> const& work) const = 0;

  static GraphKernels const& cpu();
  static GraphKernels const& cuda();
};

}  // namespace poisson
