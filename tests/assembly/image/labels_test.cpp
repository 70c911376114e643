#include "assembly/image/labels.hpp"
#include "gpu/core/error.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace poisson::assembly {
namespace {

template <class T>
Voxels voxels(Counts3 const& cells, VoxelType type, std::vector<T> const& values) {
  Voxels image{cells, type, {}};
  EXPECT_EQ(static_cast<std::int64_t>(values.size()), image.size());
  image.bytes.resize(values.size() * sizeof(T));
  std::memcpy(image.bytes.data(), values.data(), image.bytes.size());
  return image;
}

Voxels bytes(Counts3 const& cells, std::vector<std::uint8_t> const& values) {
  return voxels(cells, VoxelType::uint8, values);
}

std::vector<unsigned> values_of(LabelImage const& image) {
  std::vector<unsigned> values;
  for (std::int64_t i = 0; i < image.size(); ++i)
    values.push_back(image.label(i));
  return values;
}

/// 0 1 2 / 3 4 5, and 10 more in the second plane.
Voxels numbered() {
  return bytes({3, 2, 2}, {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15});
}

std::string key_of(auto const& action) {
  try {
    action();
  } catch (InputError const& error) {
    return error.key();
  }
  return "none";
}

TEST(Labels, AreTheValuesOfVoxels) {
  EXPECT_EQ(values_of(labelled(numbered(), {})), (std::vector<unsigned>{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15}));
  LabelImage const sparse = labelled(voxels<std::uint16_t>({4, 1, 1}, VoxelType::uint16, {65535, 7, 65535, 0}), {});
  EXPECT_EQ(sparse.labels, (std::vector<unsigned>{0, 7, 65535}));
  EXPECT_EQ(sparse.small.size(), 4U);
  EXPECT_EQ(values_of(sparse), (std::vector<unsigned>{65535, 7, 65535, 0}));
  EXPECT_EQ(values_of(labelled(voxels<std::int32_t>({3, 1, 1}, VoxelType::int32, {2147483647, 5, 5}), {})),
            (std::vector<unsigned>{2147483647, 5, 5}));
  EXPECT_EQ(values_of(labelled(voxels<std::int8_t>({2, 1, 1}, VoxelType::int8, {127, 0}), {})), (std::vector<unsigned>{127, 0}));
}

TEST(Labels, MayBeAllOfSixteenBits) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<std::uint16_t>(65535 - i);
  LabelImage const image = labelled(voxels({256, 256, 1}, VoxelType::uint16, all), {});
  EXPECT_EQ(image.labels.size(), 65536U);
  EXPECT_TRUE(image.small.empty());
  for (std::int64_t i = 0; i < image.size(); ++i)
    ASSERT_EQ(image.label(i), static_cast<unsigned>(65535 - i));
}

TEST(Labels, AreNoNegativeManyOrFloatingPointNumbers) {
  auto const key = [](Voxels const& image, std::vector<double> const& levels = {}) {
    return key_of([&] { static_cast<void>(labelled(image, levels)); });
  };
  EXPECT_EQ(key(voxels<std::int16_t>({2, 1, 1}, VoxelType::int16, {0, -1})), "problem.mesh.threshold");
  EXPECT_EQ(key(voxels<std::uint32_t>({1, 1, 1}, VoxelType::uint32, {2147483648U})), "problem.mesh.threshold");
  EXPECT_EQ(key(voxels<float>({1, 1, 1}, VoxelType::float32, {1})), "problem.mesh.threshold");
  std::vector<std::uint32_t> many(65537);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<std::uint32_t>(i);
  EXPECT_EQ(key(voxels({65537, 1, 1}, VoxelType::uint32, many)), "problem.mesh.threshold");
  EXPECT_EQ(key(voxels<double>({1, 1, 1}, VoxelType::float64, {std::numeric_limits<double>::quiet_NaN()}), {0}),
            "problem.mesh.threshold");
}

TEST(Labels, FollowFromLevelsThatValuesReach) {
  LabelImage const two = labelled(bytes({5, 1, 1}, {0, 127, 128, 129, 255}), {128});
  EXPECT_EQ(values_of(two), (std::vector<unsigned>{0, 0, 1, 1, 1}));
  LabelImage const three = labelled(voxels<double>({4, 1, 1}, VoxelType::float64, {-1, 0.5, 0.7, 9}), {0.5, 2});
  EXPECT_EQ(values_of(three), (std::vector<unsigned>{0, 1, 1, 2}));
  // No voxel is below the first level: that label does not occur.
  LabelImage const high = labelled(bytes({2, 1, 1}, {100, 200}), {50, 150});
  EXPECT_EQ(high.labels, (std::vector<unsigned>{1, 2}));
  EXPECT_EQ(values_of(high), (std::vector<unsigned>{1, 2}));
}

TEST(Labels, ACropKeepsABoxOfVoxels) {
  Crop const crop{VoxelRange{1, 3}, std::nullopt, VoxelRange{1, 2}};
  Voxels const part = cropped(numbered(), crop);
  EXPECT_EQ(part.cells, (Counts3{2, 2, 1}));
  EXPECT_EQ(values_of(labelled(part, {})), (std::vector<unsigned>{11, 12, 14, 15}));
  EXPECT_EQ(key_of([] {
              static_cast<void>(cropped(numbered(), {std::nullopt, VoxelRange{0, 3}, std::nullopt}));
            }),
            "problem.mesh.crop[1]");
  EXPECT_EQ(key_of([] {
              static_cast<void>(cropped(numbered(), {VoxelRange{2, 2}, std::nullopt, std::nullopt}));
            }),
            "problem.mesh.crop[0]");
}

TEST(Labels, AFlipTurnsTheOrderRound) {
  auto const flipped = [](std::array<bool, 3> const& directions) {
    Voxels image = numbered();
    flip(image, directions);
    return values_of(labelled(image, {}));
  };
  EXPECT_EQ(flipped({true, false, false}), (std::vector<unsigned>{2, 1, 0, 5, 4, 3, 12, 11, 10, 15, 14, 13}));
  EXPECT_EQ(flipped({false, true, false}), (std::vector<unsigned>{3, 4, 5, 0, 1, 2, 13, 14, 15, 10, 11, 12}));
  EXPECT_EQ(flipped({false, false, true}), (std::vector<unsigned>{10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(flipped({true, true, true}), (std::vector<unsigned>{15, 14, 13, 12, 11, 10, 5, 4, 3, 2, 1, 0}));
}

TEST(Labels, BlocksHaveTheMostFrequentLabel) {
  // Two blocks of 2 x 2 x 1: {1, 1, 2, 1} and {9, 4, 4, 9}, where two are equally frequent.
  LabelImage const image = labelled(bytes({4, 2, 1}, {1, 1, 9, 4, 2, 1, 4, 9}), {});
  LabelImage const coarse = coarsened(image, {2, 2, 1});
  EXPECT_EQ(coarse.cells, (Counts3{2, 1, 1}));
  EXPECT_EQ(values_of(coarse), (std::vector<unsigned>{1, 4}));
  EXPECT_EQ(coarse.labels, (std::vector<unsigned>{1, 4}));
  EXPECT_EQ(values_of(coarsened(image, {1, 1, 1})), values_of(image));
  EXPECT_EQ(key_of([&] { static_cast<void>(coarsened(image, {3, 1, 1})); }), "problem.mesh.coarsen");
  EXPECT_EQ(key_of([&] { static_cast<void>(coarsened(image, {4, 2, 2})); }), "problem.mesh.coarsen");
}

TEST(Labels, PhasesHaveComponentsByFaces) {
  // A diagonal pair is two components; the other phase is one that joins the faces in x and in z, and in y by the last column.
  std::vector<Phase> const phases = phases_of(labelled(bytes({3, 2, 1}, {1, 0, 0, 0, 1, 0}), {}));
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[1].label, 1U);
  EXPECT_EQ(phases[1].voxels, 2);
  EXPECT_EQ(phases[1].components, 2);
  EXPECT_EQ(phases[1].largest, 1);
  EXPECT_EQ(phases[1].joining, (std::array<std::int64_t, 3>{0, 0, 2}));
  // 0: (1,0), (2,0), (2,1) hang together; (0,1) is alone.
  EXPECT_EQ(phases[0].components, 2);
  EXPECT_EQ(phases[0].largest, 3);
  EXPECT_EQ(phases[0].joining, (std::array<std::int64_t, 3>{0, 1, 2}));
  EXPECT_EQ(phases[0].joining_voxels, (std::array<std::int64_t, 3>{0, 3, 4}));
}

TEST(Labels, APathOneVoxelWideJoinsTwoFaces) {
  // A staircase of label 7 through zeros from the first to the last face in x.
  std::vector<std::uint8_t> values(4 * 4 * 4, 0);
  auto const at = [](int x, int y, int z) { return static_cast<std::size_t>((z * 4 + y) * 4 + x); };
  for (auto const& [x, y, z] :
       std::vector<std::array<int, 3>>{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {2, 1, 1}, {2, 2, 1}, {2, 2, 2}, {3, 2, 2}})
    values[at(x, y, z)] = 7;
  std::vector<Phase> phases = phases_of(labelled(bytes({4, 4, 4}, values), {}));
  EXPECT_EQ(phases[1].joining, (std::array<std::int64_t, 3>{1, 0, 0}));
  EXPECT_EQ(phases[1].joining_voxels[0], 8);
  values[at(2, 1, 1)] = 0;  // it is cut
  phases = phases_of(labelled(bytes({4, 4, 4}, values), {}));
  EXPECT_EQ(phases[1].joining, (std::array<std::int64_t, 3>{0, 0, 0}));
  EXPECT_EQ(phases[1].components, 2);
}

/// By a flood from every voxel, of a random image.
TEST(Labels, PhasesAreThoseOfAFlood) {
  Counts3 const n{13, 9, 7};
  std::mt19937 random(5);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(n[0] * n[1] * n[2]));
  for (auto& value : values)
    value = random() % 5 < 3 ? 1 : static_cast<std::uint8_t>(random() % 2 * 2);
  LabelImage const image = labelled(bytes(n, values), {});
  std::vector<Phase> expected(image.labels.size());
  std::vector<bool> seen(values.size());
  for (std::int64_t i = 0; i < image.size(); ++i) {
    if (seen[static_cast<std::size_t>(i)])
      continue;
    std::vector<std::int64_t> open{i}, all;
    seen[static_cast<std::size_t>(i)] = true;
    std::array<std::set<std::int64_t>, 3> layers;
    while (!open.empty()) {
      std::int64_t const v = open.back();
      open.pop_back();
      all.push_back(v);
      Counts3 const at{v % n[0], v / n[0] % n[1], v / (n[0] * n[1])};
      for (std::size_t d = 0; d < 3; ++d) {
        layers[d].insert(at[d]);
        for (int const step : {-1, 1}) {
          Counts3 next = at;
          next[d] += step;
          if (next[d] < 0 || next[d] >= n[d])
            continue;
          auto const w = static_cast<std::size_t>((next[2] * n[1] + next[1]) * n[0] + next[0]);
          if (!seen[w] && values[w] == values[static_cast<std::size_t>(v)]) {
            seen[w] = true;
            open.push_back(static_cast<std::int64_t>(w));
          }
        }
      }
    }
    Phase& phase = expected[image.number(i)];
    ++phase.components;
    phase.voxels += std::ssize(all);
    phase.largest = std::max<std::int64_t>(phase.largest, std::ssize(all));
    for (std::size_t d = 0; d < 3; ++d)
      if (layers[d].contains(0) && layers[d].contains(n[d] - 1)) {
        ++phase.joining[d];
        phase.joining_voxels[d] += std::ssize(all);
      }
  }
  std::vector<Phase> const phases = phases_of(image);
  ASSERT_EQ(phases.size(), 3U);
  for (std::size_t p = 0; p < phases.size(); ++p) {
    EXPECT_EQ(phases[p].label, image.labels[p]);
    EXPECT_EQ(phases[p].voxels, expected[p].voxels);
    EXPECT_EQ(phases[p].components, expected[p].components);
    EXPECT_EQ(phases[p].largest, expected[p].largest);
    EXPECT_EQ(phases[p].joining, expected[p].joining);
    EXPECT_EQ(phases[p].joining_voxels, expected[p].joining_voxels);
  }
  EXPECT_GT(expected[1].joining[0], 0);
}

}  // namespace
}  // namespace poisson::assembly
