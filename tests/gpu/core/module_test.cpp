#include "gpu/core/module.hpp"

#include <gtest/gtest.h>

#include <string>

namespace poisson::testing {

namespace {

struct Functions {
  int (*seven)();
};

Functions const* linked() {
  static constexpr Functions functions{[] { return 7; }};
  return &functions;
}

TEST(AModule, IsTheLinkedOne) {
  Module<Functions> const module("poisson_nothing", linked, "tests");
  EXPECT_EQ(module.missing(), "");
  EXPECT_EQ(module.functions().seven(), 7);
}

TEST(AModule, TellsWhatIsMissing) {
  Module<Functions> const module("poisson_nothing", nullptr, "tests");
  EXPECT_NE(module.missing().find("libpoisson_nothing.so"), std::string::npos) << module.missing();
  try {
    static_cast<void>(module.functions());
    FAIL() << "it cannot be there";
  } catch (EnvironmentError const& error) {
    EXPECT_EQ(std::string(error.what()).find("the library for tests cannot be loaded; it belongs beside the program: libpoisson_"),
              0U)
        << error.what();
  }
}

}  // namespace

}  // namespace poisson::testing
