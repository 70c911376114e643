#pragma once

#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/device_ranks.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

namespace poisson::testing {

/// How messages go from device to device.
enum class Way { host, nccl, direct };
inline constexpr Way ways[] = {Way::host, Way::nccl, Way::direct};

/// Ranks that are threads, each on a device of its own. Tests are skipped where there are not two devices, or no NCCL.
class OnDevices : public ::testing::Test {
protected:
  void SetUp() override {
    n_devices = cuda_device_count();
    if (n_devices < 2)
      GTEST_SKIP() << "there are not two CUDA devices";
    if (std::string const reason = why_no_nccl(); !reason.empty())
      GTEST_SKIP() << reason;
    setenv("NCCL_P2P_DIRECT_DISABLE", "1", 1);  // what ranks of one process need
  }
  void TearDown() override { unsetenv("POISSON_NCCL"); }

  /// body(communicator, context) on `size` threads. The first call of a test is to be that through host memory: kernels whose code
  /// is loaded while others wait for ranks might wait for these.
  template <class Body>
  static void run(int size, Way way, Body const& body) {
    if (way == Way::direct)
      unsetenv("POISSON_NCCL");
    else
      setenv("POISSON_NCCL", way == Way::host ? "0" : "1", 1);
    ThreadRanks::run(size, [&](Communicator& ranks) {
      auto const context = make_context(Backend::cuda, ranks.rank());
      std::string const name = rank_transport(*context, ranks).name(), expected = way == Way::host   ? "host memory"
                                                                                  : way == Way::nccl ? "NCCL "
                                                                                                     : "direct writes";
      EXPECT_TRUE(name.starts_with(expected)) << name;
      body(ranks, *context);
    });
  }

  int n_devices = 0;
};

}  // namespace poisson::testing
