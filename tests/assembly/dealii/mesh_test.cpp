#include "assembly/dealii/mesh.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <cmath>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <gtest/gtest.h>
#include <limits>
#include <set>

namespace poisson::assembly {
namespace {

MeshSpec box(std::array<std::int64_t, 3> cells, int refinements = 0) {
  MeshSpec spec;
  spec.cells = cells;
  spec.refinements = refinements;
  return spec;
}

template <class Error>
std::string error_of(MeshSpec const& spec, std::string const& key) {
  for (int build = 0; build < 2; ++build)
    try {
      if (build == 1)
        static_cast<void>(make_mesh(spec));
      else
        static_cast<void>(predict_counts(spec));
    } catch (Error const& error) {
      if constexpr (std::is_same_v<Error, InputError>) {
        EXPECT_EQ(error.key(), key);
      }
      return error.what();
    }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(MeshBox, LeavesFillTheGridWhateverTheWayToThem) {
  struct Case {
    std::array<std::int64_t, 3> cells;
    int refinements;
    std::array<std::int64_t, 3> leaves;
  };
  for (Case const& c : {Case{{4, 4, 4}, 0, {4, 4, 4}}, Case{{1, 1, 1}, 2, {4, 4, 4}}, Case{{3, 5, 2}, 0, {3, 5, 2}},
                        Case{{6, 2, 10}, 0, {6, 2, 10}}, Case{{3, 1, 2}, 2, {12, 4, 8}}, Case{{1, 1, 1}, 0, {1, 1, 1}}}) {
    MeshSpec spec = box(c.cells, c.refinements);
    spec.origin = {-1, 100, 1e-3};
    spec.extent = {2, 0.01, 1e3};
    Mesh const mesh = make_mesh(spec);
    ASSERT_TRUE(mesh.box.has_value());
    EXPECT_EQ(mesh.box->cells, c.leaves);
    EXPECT_EQ(mesh.box->origin, spec.origin);
    EXPECT_EQ(mesh.box->extent, spec.extent);
    EXPECT_FALSE(mesh.curved);
    EXPECT_EQ(mesh.boundary_ids, (std::set<unsigned>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(mesh.material_ids, (std::set<unsigned>{0}));
    std::set<std::array<std::int64_t, 3>> found;
    for (auto const& cell : mesh.triangulation->active_cell_iterators()) {
      std::array<std::int64_t, 3> index{};
      for (unsigned d = 0; d < 3; ++d) {
        double const width = spec.extent[d] / static_cast<double>(c.leaves[d]);
        index[d] = std::llround((cell->vertex(0)[d] - spec.origin[d]) / width);
        EXPECT_NEAR(cell->vertex(0)[d], spec.origin[d] + static_cast<double>(index[d]) * width,
                    1e-9 * width + 1e-13 * std::abs(spec.origin[d]));
        EXPECT_NEAR(cell->vertex(7)[d] - cell->vertex(0)[d], width, 1e-9 * width + 1e-13 * std::abs(spec.origin[d]));
        // The side of the box on which a boundary face lies is its id.
        EXPECT_EQ(cell->at_boundary(2 * d), index[d] == 0);
        EXPECT_EQ(cell->at_boundary(2 * d + 1), index[d] == c.leaves[d] - 1);
        for (unsigned const f : {2 * d, 2 * d + 1}) {
          if (cell->at_boundary(f)) {
            EXPECT_EQ(cell->face(f)->boundary_id(), f);
          }
        }
      }
      found.insert(index);
    }
    EXPECT_EQ(static_cast<std::int64_t>(found.size()), c.leaves[0] * c.leaves[1] * c.leaves[2]);
    EXPECT_EQ(mesh.triangulation->n_active_cells(), found.size());
    EXPECT_EQ(found.rbegin()->at(0), c.leaves[0] - 1);

    MeshCounts const counts = predict_counts(spec);
    EXPECT_EQ(counts.cells, mesh.triangulation->n_active_cells());
    EXPECT_EQ(counts.faces, mesh.triangulation->n_active_faces());
    EXPECT_EQ(counts.edges, mesh.triangulation->n_active_lines());
    EXPECT_EQ(counts.vertices, mesh.triangulation->n_used_vertices());
    std::int64_t boundary_faces = 0;
    for (auto const& face : mesh.triangulation->active_face_iterators())
      boundary_faces += face->at_boundary();
    EXPECT_EQ(counts.boundary_faces, boundary_faces);
    EXPECT_EQ(counts.boundary_ids, mesh.boundary_ids);
    EXPECT_EQ(counts.box->cells, c.leaves);
    for (int p = 1; p <= 4; ++p)
      EXPECT_EQ(counts.unknowns(p), (p * c.leaves[0] + 1) * (p * c.leaves[1] + 1) * (p * c.leaves[2] + 1));
  }
}

TEST(MeshBox, CoarseMeshHasNoneOfTheRefinementsAskedFor) {
  Mesh const mesh = make_coarse_mesh(box({2, 4, 6}, 3));
  EXPECT_EQ(mesh.triangulation->n_active_cells(), 48u);
  EXPECT_EQ(mesh.box->cells, (std::array<std::int64_t, 3>{2, 4, 6}));
}

TEST(MeshBox, HugeBoxesAreCountedNotBuilt) {
  MeshCounts const counts = predict_counts(box({1000, 1000, 1000}));
  EXPECT_EQ(counts.cells, 1000000000);
  EXPECT_EQ(counts.vertices, 1001ll * 1001 * 1001);
  EXPECT_GT(counts.triangulation_bytes, 500ll * counts.cells);
  check_index_range(box({1000, 1000, 1000}), counts, 1);
  EXPECT_THROW(check_index_range(box({1000, 1000, 1000}), counts, 2), InputError);
  // Beyond 64 bits the counts saturate.
  EXPECT_GE(predict_counts(box({1000000, 1000000, 1000000}, 8)).unknowns(8), std::int64_t{1} << 62);
}

TEST(MeshBox, WrongValues) {
  EXPECT_NE(error_of<InputError>(box({0, 1, 1}), "problem.mesh.cells[0]").find("not 0"), std::string::npos);
  EXPECT_NE(error_of<InputError>(box({1, 1, -7}), "problem.mesh.cells[2]").find("not -7"), std::string::npos);
  error_of<InputError>(box({1, 1, 1}, -1), "problem.mesh.refinements");
  error_of<InputError>(box({1, 1, 1}, 21), "problem.mesh.refinements");
  EXPECT_NE(error_of<InputError>(box({1000000, 1000000, 1000000}), "problem.mesh.cells").find("1000003000003000001 unknowns"),
            std::string::npos);
  error_of<InputError>(box({std::numeric_limits<std::int64_t>::max(), 1, 1}), "problem.mesh.extent[0]");
  error_of<InputError>(box({1, 1, 1}, 12), "problem.mesh.refinements");
  for (double const bad : {0., -1., std::nan(""), std::numeric_limits<double>::infinity()}) {
    MeshSpec spec = box({2, 2, 2});
    spec.extent[1] = bad;
    error_of<InputError>(spec, "problem.mesh.extent[1]");
  }
  MeshSpec spec = box({2, 2, 2});
  spec.origin[2] = std::nan("");
  error_of<InputError>(spec, "problem.mesh.origin[2]");
  spec.origin[2] = 1e15;  // cells 0.5 wide there
  error_of<InputError>(spec, "problem.mesh.extent[2]");
}

TEST(MeshBox, MemoryIsCheckedBeforeItIsUsed) {
  // 1.7e9 cells need about 1 TB, which the machines that run this test do not have.
  std::string const message = error_of<EnvironmentError>(box({1200, 1200, 1200}), "");
  EXPECT_NE(message.find("needs 1105920000000 bytes (1.006 TiB)"), std::string::npos) << message;
  EXPECT_NE(message.find("are available"), std::string::npos) << message;
  check_memory(0, "nothing");
}

TEST(MeshBox, AnInterruptStopsTheRefinement) {
  request_interrupt();
  EXPECT_THROW(static_cast<void>(make_mesh(box({8, 8, 8}))), Interrupted);
  detail::interrupt_flag.store(false);
  EXPECT_EQ(make_mesh(box({8, 8, 8})).triangulation->n_active_cells(), 512u);
}

}  // namespace
}  // namespace poisson::assembly
