#include "gpu/kernels/svd.hpp"

#include <algorithm>

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
    slots += blocks_of(wave);
  }
}

std::int64_t ChasePlan::end_of_waves(std::int64_t begin) const {
  std::int64_t end = begin;
  for (std::int64_t blocks = 0; end < waves && blocks < blocks_at_once; ++end)
    blocks += blocks_of(end);
  return end;
}

std::int64_t ChasePlan::apply_bytes(std::int64_t n_columns) const {
  std::int64_t most_blocks = 0, most_of_wave = 0;
  for (std::int64_t begin = 0, end = 0; begin < waves; begin = end) {
    end = end_of_waves(begin);
    std::int64_t blocks = 0;
    for (std::int64_t wave = begin; wave < end; ++wave) {
      blocks += blocks_of(wave);
      most_of_wave = std::max(most_of_wave, blocks_of(wave));
    }
    most_blocks = std::max(most_blocks, blocks);
  }
  return 8 * (most_blocks * (slot_size() + slot_size() / 2) + most_of_wave * width * n_columns);
}

}  // namespace poisson
