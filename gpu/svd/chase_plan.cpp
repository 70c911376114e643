#include "gpu/kernels/svd.hpp"

namespace poisson {

ChasePlan::ChasePlan(std::int64_t order, int band_width)
    : n(order),
      width(band_width),
      sweeps(width > 1 && n > 2 ? n - 2 : 0),
      groups((sweeps + width - 1) / width),
      steps(sweeps > 0 ? (n - 2) / width + 1 : 0),
      waves(sweeps > 0 ? steps + groups - 1 : 0),
      slots(0) {
  for (std::int64_t wave = 0; wave < waves; ++wave) {
    slot_of_wave.push_back(slots - first_group(wave));
    slots += last_group(wave) - first_group(wave) + 1;
  }
}

}  // namespace poisson
