// Groups of boundary faces and cells: names and numbers as sets of ids of the mesh.
#include "assembly/mesh/id_groups.hpp"

#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <set>
#include <string>

namespace poisson::assembly {
namespace {

using Ids = std::set<unsigned>;

/// inlet (1) lies in outer (3): the faces of both have the id 5. 2 and 7 are no groups with names.
IdGroups overlapping() {
  IdGroups groups;
  groups.add({3, "outer", {3, 5}});
  groups.add({1, "inlet", {5}});
  groups.add({4, "empty", {}});
  groups.add({8, "wall", {8}});
  groups.add({9, "wall", {9}});
  return groups;
}

TEST(IdGroups, NamesAndNumbersStandForSets) {
  IdGroups const groups = overlapping();
  Ids const all{2, 3, 5, 7, 8, 9};
  EXPECT_EQ(groups.with_name("outer"), (Ids{3, 5}));
  EXPECT_EQ(groups.with_name("inlet"), Ids{5});
  EXPECT_EQ(groups.with_name("wall"), (Ids{8, 9}));
  EXPECT_EQ(groups.with_name("empty"), Ids{});
  EXPECT_TRUE(groups.has_name("empty"));
  EXPECT_FALSE(groups.has_name("none"));
  EXPECT_EQ(groups.with_id(1, all), Ids{5});
  EXPECT_EQ(groups.with_id(3, all), (Ids{3, 5}));
  EXPECT_EQ(groups.with_id(7, all), Ids{7});
  EXPECT_EQ(groups.with_id(4, all), Ids{});
  EXPECT_EQ(groups.with_id(5, all), Ids{});  // an id of the mesh, which no configuration names
  EXPECT_EQ(groups.with_id(6, all), Ids{});
  EXPECT_EQ(groups.ids_of(all), (Ids{1, 2, 3, 7, 8, 9}));
  EXPECT_EQ(groups.label(5), "inlet + outer");
  EXPECT_EQ(groups.label(3), "outer");
  EXPECT_EQ(groups.label(7), "7");
}

TEST(IdGroups, EveryGroupOnceByLabel) {
  std::map<std::string, Ids> found;
  for (auto const& group : overlapping().labelled({2, 3, 5, 8, 9}))
    EXPECT_TRUE(found.emplace(group.label, group.parts).second);
  EXPECT_EQ(found, (std::map<std::string, Ids>{{"2", {2}}, {"inlet", {5}}, {"outer", {3, 5}}, {"wall", {8, 9}}}));
}

TEST(IdGroups, KeepsWhatIsLeft) {
  IdGroups groups = overlapping();
  groups.keep({3, 8});
  EXPECT_EQ(groups.with_name("outer"), Ids{3});
  EXPECT_EQ(groups.with_name("inlet"), Ids{});
  EXPECT_TRUE(groups.has_name("inlet"));
  EXPECT_EQ(groups.all_ids(), (Ids{1, 3, 4, 8, 9}));
}

TEST(IdGroups, FreeIdsStayInTheRangeOfAnInt) {
  EXPECT_EQ(free_id({}), 1U);
  EXPECT_EQ(free_id({0, 4}), 5U);
  EXPECT_EQ(free_id({1, 2, static_cast<unsigned>(std::numeric_limits<int>::max())}), 3U);
}

}  // namespace
}  // namespace poisson::assembly
