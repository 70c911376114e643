// Stands for kernels/cuda when CUDA is not built.
#include "gpu/core/error.hpp"
#include "gpu/kernels/aggregation.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/bicgstab.hpp"
#include "gpu/kernels/bidiagonal.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/block_rim.hpp"
#include "gpu/kernels/box.hpp"
#include "gpu/kernels/box_elements.hpp"
#include "gpu/kernels/box_levels.hpp"
#include "gpu/kernels/box_solution.hpp"
#include "gpu/kernels/box_stencil.hpp"
#include "gpu/kernels/cds.hpp"
#include "gpu/kernels/cg.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/cod_sell.hpp"
#include "gpu/kernels/cod_sell_conversion.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/kernels/csr.hpp"
#include "gpu/kernels/csr_columns.hpp"
#include "gpu/kernels/device_ranks.hpp"
#include "gpu/kernels/fields.hpp"
#include "gpu/kernels/gmres.hpp"
#include "gpu/kernels/graph.hpp"
#include "gpu/kernels/half_cds.hpp"
#include "gpu/kernels/half_cds_columns.hpp"
#include "gpu/kernels/half_slices.hpp"
#include "gpu/kernels/ilu.hpp"
#include "gpu/kernels/inclusions.hpp"
#include "gpu/kernels/label_stencil.hpp"
#include "gpu/kernels/lattice_elements.hpp"
#include "gpu/kernels/lattice_half_cds.hpp"
#include "gpu/kernels/lattice_levels.hpp"
#include "gpu/kernels/lattice_nodes.hpp"
#include "gpu/kernels/lattice_operator.hpp"
#include "gpu/kernels/lattice_solution.hpp"
#include "gpu/kernels/minres.hpp"
#include "gpu/kernels/order_levels.hpp"
#include "gpu/kernels/qr.hpp"
#include "gpu/kernels/rim.hpp"
#include "gpu/kernels/sell_c_sigma.hpp"
#include "gpu/kernels/smoother.hpp"
#include "gpu/kernels/svd.hpp"
#include "gpu/kernels/vectors.hpp"

namespace poisson {

namespace {
[[noreturn]] void refuse() {
  throw EnvironmentError(why_no_cuda());
}
}  // namespace

bool cuda_built() {
  return false;
}
int cuda_device_count() {
  return 0;
}
std::string why_no_cuda(int) {
  return "this program was built without CUDA; use the cpu backend, or build with the CUDA toolkit (cmake --preset cuda)";
}
std::vector<DeviceDescription> cuda_devices() {
  return {};
}
std::unique_ptr<Context> make_cuda_context(int) {
  refuse();
}
double measure_cuda_copy_bandwidth(Context&, double) {
  refuse();
}
PeerBandwidth measure_cuda_peer_bandwidth(int, int) {
  refuse();
}
std::string why_no_nccl() {
  return why_no_cuda();
}
std::string nccl_version() {
  refuse();
}
RankTransport& cuda_rank_transport(Context&, Communicator&) {
  refuse();
}
void connect_cuda_beside(Context&, Communicator&, Connect) {
  refuse();
}
AggregationKernels const& AggregationKernels::cuda() {
  refuse();
}
HalfSlicesKernels const& HalfSlicesKernels::cuda() {
  refuse();
}
BidiagonalKernels const& BidiagonalKernels::cuda() {
  refuse();
}
template <>
BlockKernels<float> const& BlockKernels<float>::cuda() {
  refuse();
}
template <>
BlockKernels<double> const& BlockKernels<double>::cuda() {
  refuse();
}
BlockRimKernels const& BlockRimKernels::cuda() {
  refuse();
}
template <>
BoxLevelKernels<float> const& BoxLevelKernels<float>::cuda() {
  refuse();
}
template <>
BoxLevelKernels<double> const& BoxLevelKernels<double>::cuda() {
  refuse();
}
template <>
LatticeLevelKernels<float> const& LatticeLevelKernels<float>::cuda() {
  refuse();
}
template <>
LatticeLevelKernels<double> const& LatticeLevelKernels<double>::cuda() {
  refuse();
}
template <>
OrderLevelKernels<float> const& OrderLevelKernels<float>::cuda() {
  refuse();
}
template <>
OrderLevelKernels<double> const& OrderLevelKernels<double>::cuda() {
  refuse();
}
template <>
SmootherKernels<float> const& SmootherKernels<float>::cuda() {
  refuse();
}
template <>
SmootherKernels<double> const& SmootherKernels<double>::cuda() {
  refuse();
}
BlasKernels const& BlasKernels::cuda() {
  refuse();
}
CsrKernels const& CsrKernels::cuda() {
  refuse();
}
CsrColumnKernels const& CsrColumnKernels::cuda() {
  refuse();
}
LatticeElementKernels const& LatticeElementKernels::cuda() {
  refuse();
}
LatticeNodeKernels const& LatticeNodeKernels::cuda() {
  refuse();
}
BoxKernels const& BoxKernels::cuda() {
  refuse();
}
BoxStencilKernels const& BoxStencilKernels::cuda() {
  refuse();
}
InclusionKernels const& InclusionKernels::cuda() {
  refuse();
}
LabelStencilKernels const& LabelStencilKernels::cuda() {
  refuse();
}
BoxElementKernels const& BoxElementKernels::cuda() {
  refuse();
}
BoxSolutionKernels const& BoxSolutionKernels::cuda() {
  refuse();
}
CheckKernels const& CheckKernels::cuda() {
  refuse();
}
ConversionKernels const& ConversionKernels::cuda() {
  refuse();
}
CdsKernels const& CdsKernels::cuda() {
  refuse();
}
HalfCdsKernels const& HalfCdsKernels::cuda() {
  refuse();
}
HalfCdsColumnKernels const& HalfCdsColumnKernels::cuda() {
  refuse();
}
LatticeOperatorKernels const& LatticeOperatorKernels::cuda() {
  refuse();
}
LatticeSolutionKernels const& LatticeSolutionKernels::cuda() {
  refuse();
}
LatticeHalfCdsKernels const& LatticeHalfCdsKernels::cuda() {
  refuse();
}
QrKernels const& QrKernels::cuda() {
  refuse();
}
SellKernels const& SellKernels::cuda() {
  refuse();
}
CodSellKernels const& CodSellKernels::cuda() {
  refuse();
}
SvdKernels const& SvdKernels::cuda() {
  refuse();
}
CodSellConversion const& CodSellConversion::cuda() {
  refuse();
}
template <>
VectorKernels<float> const& VectorKernels<float>::cuda() {
  refuse();
}
template <>
VectorKernels<double> const& VectorKernels<double>::cuda() {
  refuse();
}
IluKernels const& IluKernels::cuda() {
  refuse();
}
GraphKernels const& GraphKernels::cuda() {
  refuse();
}
FieldKernels const& FieldKernels::cuda() {
  refuse();
}
template <>
VectorKernels<DoubleDouble> const& VectorKernels<DoubleDouble>::cuda() {
  refuse();
}
template <>
RimKernels<float> const& RimKernels<float>::cuda() {
  refuse();
}
template <>
RimKernels<double> const& RimKernels<double>::cuda() {
  refuse();
}
template <>
RimKernels<DoubleDouble> const& RimKernels<DoubleDouble>::cuda() {
  refuse();
}
template <>
CgKernels<double> const& CgKernels<double>::cuda() {
  refuse();
}
template <>
CgKernels<DoubleDouble> const& CgKernels<DoubleDouble>::cuda() {
  refuse();
}
template <>
BicgstabKernels<double> const& BicgstabKernels<double>::cuda() {
  refuse();
}
template <>
BicgstabKernels<DoubleDouble> const& BicgstabKernels<DoubleDouble>::cuda() {
  refuse();
}
template <>
GmresKernels<double> const& GmresKernels<double>::cuda() {
  refuse();
}
template <>
GmresKernels<DoubleDouble> const& GmresKernels<DoubleDouble>::cuda() {
  refuse();
}
template <>
MinresKernels<double> const& MinresKernels<double>::cuda() {
  refuse();
}
template <>
MinresKernels<DoubleDouble> const& MinresKernels<DoubleDouble>::cuda() {
  refuse();
}
template <>
IluSolveKernels<double> const& IluSolveKernels<double>::cuda() {
  refuse();
}
template <>
IluSolveKernels<DoubleDouble> const& IluSolveKernels<DoubleDouble>::cuda() {
  refuse();
}

}  // namespace poisson
