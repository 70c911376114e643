#include "gpu/peers/peers.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/dynamic_library.hpp"
#include "gpu/core/error.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

#include <cusparse.h>

#include <chrono>
#include <limits>

namespace poisson {

namespace {

struct CuSparse {
  DynamicLibrary library{"cuSPARSE", {"libcusparse.so.12", "libcusparse.so", "/usr/local/cuda/lib64/libcusparse.so.12"}};
#define POISSON_CUSPARSE_FUNCTION(name) decltype(&cusparse##name) name = nullptr
  POISSON_CUSPARSE_FUNCTION(GetErrorString);
  POISSON_CUSPARSE_FUNCTION(Create);
  POISSON_CUSPARSE_FUNCTION(Destroy);
  POISSON_CUSPARSE_FUNCTION(SetStream);
  POISSON_CUSPARSE_FUNCTION(CreateConstCsr);
  POISSON_CUSPARSE_FUNCTION(CreateConstSlicedEll);
  POISSON_CUSPARSE_FUNCTION(DestroySpMat);
  POISSON_CUSPARSE_FUNCTION(CreateConstDnVec);
  POISSON_CUSPARSE_FUNCTION(CreateDnVec);
  POISSON_CUSPARSE_FUNCTION(DestroyDnVec);
  POISSON_CUSPARSE_FUNCTION(SpMV_bufferSize);
  POISSON_CUSPARSE_FUNCTION(SpMV_preprocess);
  POISSON_CUSPARSE_FUNCTION(SpMV);
#undef POISSON_CUSPARSE_FUNCTION

  CuSparse() {
    library.find(GetErrorString, "cusparseGetErrorString");
    library.find(Create, "cusparseCreate");
    library.find(Destroy, "cusparseDestroy");
    library.find(SetStream, "cusparseSetStream");
    library.find(CreateConstCsr, "cusparseCreateConstCsr");
    library.find(CreateConstSlicedEll, "cusparseCreateConstSlicedEll");
    library.find(DestroySpMat, "cusparseDestroySpMat");
    library.find(CreateConstDnVec, "cusparseCreateConstDnVec");
    library.find(CreateDnVec, "cusparseCreateDnVec");
    library.find(DestroyDnVec, "cusparseDestroyDnVec");
    library.find(SpMV_bufferSize, "cusparseSpMV_bufferSize");
    library.find(SpMV_preprocess, "cusparseSpMV_preprocess");
    library.find(SpMV, "cusparseSpMV");
  }
};

CuSparse const& cusparse() {
  static CuSparse const functions;
  return functions;
}

void check(cusparseStatus_t status, char const* what) {
  if (status == CUSPARSE_STATUS_SUCCESS)
    return;
  cudaGetLastError();  // clears an error that is not sticky
  throw EnvironmentError(std::string("cuSPARSE: ") + what + " failed: " + cusparse().GetErrorString(status));
}

__global__ void narrow_kernel(std::int64_t n, std::int64_t const* from, std::int32_t* to) {
  std::int64_t const i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = static_cast<std::int32_t>(from[i]);
}

class CuSparsePeer final : public PeerProduct {
public:
  CuSparsePeer(Peer peer, Context& context, CsrView const& a, double const* x, double* y)
      : context_(context),
        algorithm_(peer == Peer::cusparse_csr_alg1   ? CUSPARSE_SPMV_CSR_ALG1
                   : peer == Peer::cusparse_csr_alg2 ? CUSPARSE_SPMV_CSR_ALG2
                                                     : CUSPARSE_SPMV_SELL_ALG1),
        library_(cusparse().Destroy),
        matrix_(cusparse().DestroySpMat),
        x_(cusparse().DestroyDnVec),
        y_(cusparse().DestroyDnVec) {
    check(cusparse().Create(&library_.handle), "cusparseCreate");
    check(cusparse().SetStream(library_.handle, cuda::of(context).stream()), "cusparseSetStream");
    context.synchronize();
    auto const start = std::chrono::steady_clock::now();
    if (peer == Peer::cusparse_sell)
      make_sell(a);
    else
      make_csr(a);
    check(cusparse().CreateConstDnVec(&x_.handle, a.n_columns, x, CUDA_R_64F), "cusparseCreateConstDnVec");
    check(cusparse().CreateDnVec(&y_.handle, a.n_rows, y, CUDA_R_64F), "cusparseCreateDnVec");
    std::size_t size = 0;
    check(cusparse().SpMV_bufferSize(library_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one_, matrix_.handle, x_.handle, &zero_,
                                     y_.handle, CUDA_R_64F, algorithm_, &size),
          "cusparseSpMV_bufferSize");
    workspace_bytes = static_cast<std::int64_t>(size);
    workspace_ = Array<char>(context, workspace_bytes);
    check(cusparse().SpMV_preprocess(library_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one_, matrix_.handle, x_.handle, &zero_,
                                     y_.handle, CUDA_R_64F, algorithm_, workspace_.data()),
          "cusparseSpMV_preprocess");
    context.synchronize();
    setup_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    product();  // shows now whether it is supported
    context.synchronize();
  }

  ~CuSparsePeer() override {
    // What is enqueued uses the descriptors' arrays; its errors show in a call that can throw.
    static_cast<void>(cudaStreamSynchronize(cuda::of(context_).stream()));
  }

  void product() override {
    check(cusparse().SpMV(library_.handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one_, matrix_.handle, x_.handle, &zero_, y_.handle,
                          CUDA_R_64F, algorithm_, workspace_.data()),
          "cusparseSpMV");
  }

private:
  /// The offsets in 32 bits when `largest` fits; null otherwise.
  std::int32_t const* narrowed(std::int64_t n, std::int64_t const* offsets, std::int64_t largest) {
    if (largest > std::numeric_limits<std::int32_t>::max())
      return nullptr;
    offsets_32_ = Array<std::int32_t>(context_, n);
    narrow_kernel<<<cuda::n_blocks(n, 256), 256, 0, cuda::of(context_).stream()>>>(n, offsets, offsets_32_.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    return offsets_32_.data();
  }

  void make_csr(CsrView const& a) {
    std::int32_t const* const narrow = narrowed(a.n_rows + 1, a.row_ptr, a.nnz);
    bytes = 12 * a.nnz + (narrow != nullptr ? 4 : 8) * (a.n_rows + 1);
    check(cusparse().CreateConstCsr(&matrix_.handle, a.n_rows, a.n_columns, a.nnz,
                                    narrow != nullptr ? static_cast<void const*>(narrow) : a.row_ptr, a.columns, a.values,
                                    narrow != nullptr ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I, CUSPARSE_INDEX_32I,
                                    CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F),
          "cusparseCreateConstCsr");
  }

  void make_sell(CsrView const& a) {
    constexpr std::int64_t slice_size = 32;
    auto const& conversion = kernels_for<ConversionKernels>(context_);
    slice_ptr_ = conversion.slice_ptr(context_, a, nullptr, slice_size);
    std::int64_t stored = 0;
    context_.download(&stored, slice_ptr_.data() + slice_ptr_.size() - 1, sizeof stored);
    columns_ = Array<std::int32_t>(context_, stored);
    values_ = Array<double>(context_, stored);
    conversion.fill_slices(context_, a, {slice_size, nullptr, slice_ptr_.data()}, columns_.data(), values_.data());
    std::int32_t const* const narrow = narrowed(slice_ptr_.size(), slice_ptr_.data(), stored);
    bytes = 12 * stored + (narrow != nullptr ? 4 : 8) * slice_ptr_.size();
    check(cusparse().CreateConstSlicedEll(&matrix_.handle, a.n_rows, a.n_columns, a.nnz, stored, slice_size,
                                          narrow != nullptr ? static_cast<void const*>(narrow) : slice_ptr_.data(), columns_.data(),
                                          values_.data(), narrow != nullptr ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I,
                                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F),
          "cusparseCreateConstSlicedEll");
  }

  static constexpr double one_ = 1, zero_ = 0;  // where cuSPARSE reads its scalars from: host memory
  Context& context_;
  cusparseSpMVAlg_t algorithm_;
  Array<std::int32_t> offsets_32_;
  Array<std::int64_t> slice_ptr_;
  Array<std::int32_t> columns_;
  Array<double> values_;
  Array<char> workspace_;
  OwnedHandle<cusparseHandle_t, decltype(&cusparseDestroy)> library_;
  OwnedHandle<cusparseConstSpMatDescr_t, decltype(&cusparseDestroySpMat)> matrix_;
  OwnedHandle<cusparseConstDnVecDescr_t, decltype(&cusparseDestroyDnVec)> x_;
  OwnedHandle<cusparseDnVecDescr_t, decltype(&cusparseDestroyDnVec)> y_;
};

}  // namespace

std::string why_no_peers() {
  std::string const no_device = why_no_cuda();
  return no_device.empty() ? cusparse().library.missing() : no_device;
}

std::unique_ptr<PeerProduct> make_peer(Peer peer, Context& context, CsrView const& a, double const* x, double* y) {
  if (std::string const reason = why_no_peers(); !reason.empty())
    throw EnvironmentError(reason);
  if (a.n_rows == 0 || a.nnz == 0)
    throw EnvironmentError(std::string(name_of(peer)) + ": the matrix has no entries");
  return std::make_unique<CuSparsePeer>(peer, context, a, x, y);
}

}  // namespace poisson
