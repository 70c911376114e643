// Stands for peers/cuda when CUDA is not built.
#include "gpu/core/error.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/peers/peers.hpp"
#include "gpu/peers/svd_peers.hpp"

namespace poisson {

namespace {
[[noreturn]] void refuse_peers() {
  throw EnvironmentError(why_no_cuda());
}
}  // namespace

std::string why_no_peers() {
  return why_no_cuda();
}
std::unique_ptr<PeerProduct> make_peer(Peer, Context&, CsrView const&, double const*, double*) {
  refuse_peers();
}
std::string why_no_peer_cg() {
  return why_no_cuda();
}
PeerSolve peer_cg(Context&, CsrView const&, double const*, double*, double, std::int64_t, double) {
  refuse_peers();
}
std::string why_no_cusolver() {
  return why_no_cuda();
}
Svd cusolver_svd(SvdPeer, DenseMatrix const&, bool, Context&) {
  refuse_peers();
}

}  // namespace poisson
