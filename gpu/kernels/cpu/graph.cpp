#include "gpu/kernels/graph.hpp"

namespace poisson {

namespace {

class CpuGraphKernels final : public GraphKernels {
public:
  std::unique_ptr<Graph> capture(Context&, std::function<void()> const&) const override { return nullptr; }
};

}  // namespace

GraphKernels const& GraphKernels::cpu() {
  static CpuGraphKernels const kernels;
  return kernels;
}

}  // namespace poisson
