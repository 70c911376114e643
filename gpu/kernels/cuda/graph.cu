#include "gpu/kernels/graph.hpp"

#include "gpu/core/error.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

namespace poisson {

namespace {

class CudaGraph final : public Graph {
public:
  CudaGraph(cudaGraphExec_t graph, cudaStream_t stream) : graph_(graph), stream_(stream) {}
  CudaGraph(CudaGraph const&) = delete;
  CudaGraph& operator=(CudaGraph const&) = delete;
  ~CudaGraph() override { static_cast<void>(cudaGraphExecDestroy(graph_)); }
  void launch() override { POISSON_CUDA_CHECK(cudaGraphLaunch(graph_, stream_)); }

private:
  cudaGraphExec_t graph_;
  cudaStream_t stream_;
};

class CudaGraphKernels final : public GraphKernels {
public:
  std::unique_ptr<Graph> capture(Context& context, std::function<void()> const& work) const override {
    cudaStream_t const stream = cuda::of(context).stream();
    // The legacy default stream cannot be captured, and other threads are left alone.
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
      return refused();
    bool captured = true;
    try {
      work();
    } catch (EnvironmentError const&) {
      captured = false;  // something that a graph cannot hold
    }
    cudaGraph_t graph = nullptr;
    cudaError_t const ended = cudaStreamEndCapture(stream, &graph);
    if (!captured || ended != cudaSuccess || graph == nullptr) {
      if (graph != nullptr)
        static_cast<void>(cudaGraphDestroy(graph));
      return refused();
    }
    cudaGraphExec_t executable = nullptr;
    cudaError_t const made = cudaGraphInstantiate(&executable, graph, 0);
    static_cast<void>(cudaGraphDestroy(graph));
    return made == cudaSuccess ? std::make_unique<CudaGraph>(executable, stream) : refused();
  }

private:
  static std::unique_ptr<CudaGraph> refused() {
    static_cast<void>(cudaGetLastError());  // it is of no other call's concern
    return nullptr;
  }
};

}  // namespace

GraphKernels const& GraphKernels::cuda() {
  static CudaGraphKernels const kernels;
  return kernels;
}

}  // namespace poisson
