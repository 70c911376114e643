#pragma once

#include "app/launch/team.hpp"
#include "gpu/core/context.hpp"

#include <optional>
#include <string>

namespace poisson::app {

/// Where to compute, and with cuda on which device.
struct BackendChoice {
  Backend backend{};
  int device = -1;      ///< as make_context takes it
  std::string no_cuda;  ///< why this process cannot use a CUDA device; empty where it can, or where the cpu was asked for
};

/// `wanted`, or without a value cuda where there is a device, on several ranks for each of them. Ranks of a machine take its
/// devices in turns. Collective. Throws EnvironmentError where cuda is wanted and there
/// is no device.
[[nodiscard]] BackendChoice choose_backend(std::optional<Backend> wanted, Team& team);

}  // namespace poisson::app
