#pragma once

#include "app/launch/team.hpp"
#include "gpu/core/context.hpp"

#include <future>
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
/// devices in turns. Collective. Throws EnvironmentError where cuda is wanted and there is
/// no device.
[[nodiscard]] BackendChoice choose_backend(std::optional<Backend> wanted, Team& team);

/// The one device that a process is to see, as a value of CUDA_VISIBLE_DEVICES: of those that it may use the one with this number,
/// counted round. `visible`: that variable now, or null; `present`: how many devices the machine has. Empty: not known.
[[nodiscard]] std::string device_to_show(char const* visible, int present, int number);

/// Begins to make the context of the device that this rank may get, which takes 0.1 s, in a thread of its own. What fails there,
/// choose_backend tells. Collective.
[[nodiscard]] std::future<void> begin_with_device(std::optional<Backend> wanted, Team& team);

}  // namespace poisson::app
