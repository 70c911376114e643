#include "app/launch/processors.hpp"

#include <gtest/gtest.h>

namespace poisson::app {

namespace {

std::vector<int> numbers_of(std::vector<Processor> const& processors) {
  std::vector<int> numbers;
  for (Processor const& processor : processors)
    numbers.push_back(processor.number);
  return numbers;
}

}  // namespace

// Two packages of two cores of two threads, as Linux numbers them.
TEST(Processors, SharesKeepCoresAndPackagesTogether) {
  std::vector<Processor> machine;
  for (int number = 0; number < 8; ++number)
    machine.push_back({number, number / 2 % 2, number % 2});
  EXPECT_EQ(numbers_of(share_of_processors(machine, 0, 2)), (std::vector{0, 4, 1, 5}));
  EXPECT_EQ(numbers_of(share_of_processors(machine, 1, 2)), (std::vector{2, 6, 3, 7}));
  EXPECT_EQ(numbers_of(share_of_processors(machine, 2, 3)), (std::vector{6, 3, 7}));
  EXPECT_EQ(share_of_processors(machine, 0, 1).size(), 8U);
  EXPECT_EQ(share_of_processors(machine, 7, 9).size(), 8U);  // more ranks than processors: all of them
}

TEST(Processors, LaunchersThatPlaceRanks) {
  for (char const* line : {"mpirun --bind-to none -n 2 poisson", "mpirun -bind-to core poisson", "mpirun --map-by socket poisson",
                           "mpirun --mca hwloc_base_binding_policy none poisson", "mpirun -rf ranks.txt poisson",
                           "mpirun -n 2 numactl --cpunodebind=0 poisson", "mpirun --cpu-set 0,1 poisson"})
    EXPECT_TRUE(places_ranks(line)) << line;
  for (char const* line :
       {"mpirun -n 2 poisson run case.yaml", "orted -mca ess env", "mpirun --oversubscribe -np 3 poisson run x.yaml"})
    EXPECT_FALSE(places_ranks(line)) << line;
}

}  // namespace poisson::app
