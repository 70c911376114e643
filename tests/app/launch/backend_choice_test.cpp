#include "app/launch/backend_choice.hpp"

#include <gtest/gtest.h>

namespace poisson::app {
namespace {

TEST(DeviceToShow, IsTheNextOneCountedRound) {
  EXPECT_EQ(device_to_show(nullptr, 2, 0), "0");
  EXPECT_EQ(device_to_show(nullptr, 2, 1), "1");
  EXPECT_EQ(device_to_show(nullptr, 2, 3), "1");
  EXPECT_EQ(device_to_show("3,1", 4, 0), "3");
  EXPECT_EQ(device_to_show("3,1", 4, 1), "1");
  EXPECT_EQ(device_to_show("GPU-5e,GPU-77", 4, 1), "GPU-77");
}

/// CUDA takes those before the first that is not there.
TEST(DeviceToShow, IsNoneThatCudaDoesNotSee) {
  EXPECT_EQ(device_to_show("0,7,1", 2, 1), "0");
  EXPECT_EQ(device_to_show("1,-1,0", 2, 1), "1");
  EXPECT_EQ(device_to_show("", 2, 0), "");
  EXPECT_EQ(device_to_show("-1", 2, 0), "");
  EXPECT_EQ(device_to_show("NoDevFiles", 2, 0), "");
  EXPECT_EQ(device_to_show("MIG-5e", 2, 0), "");
}

TEST(DeviceToShow, IsNotKnownWhereDevicesHaveNoFiles) {
  EXPECT_EQ(device_to_show(nullptr, 0, 0), "");
  EXPECT_EQ(device_to_show("0,1", 0, 1), "");
}

}  // namespace
}  // namespace poisson::app
