#pragma once

#include "assembly/dealii/mesh.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <deal.II/grid/grid_generator.h>
#include <deal.II/grid/grid_out.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iomanip>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

/// Mesh files for tests: in a folder of their own, written in several formats, and described by places and ids.
namespace poisson::assembly::test {

namespace fs = std::filesystem;
using Grid = dealii::Triangulation<3>;

/// A file in a directory of its own that vanishes with the test.
class MeshFiles : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "poisson-mesh-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(std::string const& name, std::string const& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  /// Reads each file (by name) `times` times, damaged anew each time, in a process of its own. How often it was accepted and
  /// refused.
  std::pair<int, int> expect_no_crash(std::map<std::string, std::string> const& files, int times) const;
  fs::path folder_;
};

inline Mesh read(std::string const& path, int refinements = 0) {
  MeshSpec spec;
  spec.file = path;
  spec.refinements = refinements;
  return make_mesh(spec);
}

inline std::string error_of(std::string const& path) {
  try {
    static_cast<void>(read(path));
  } catch (InputError const& error) {
    EXPECT_EQ(error.key(), "problem.mesh.file");
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << path;
  return {};
}

inline void expect_error(std::string const& path, std::string const& part) {
  std::string const message = error_of(path);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

inline std::string content_of(fs::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What two meshes have in common when they are equal up to numbering: cells and boundary faces by their centres, with their ids.
struct Description {
  std::map<std::array<long, 3>, unsigned> cells, faces;
  bool operator==(Description const&) const = default;
};

inline Description describe(Grid const& grid, double unit) {
  Description result;
  auto const rounded = [&](dealii::Point<3> const& p) {
    return std::array<long, 3>{std::lround(p[0] / unit), std::lround(p[1] / unit), std::lround(p[2] / unit)};
  };
  for (auto const& cell : grid.active_cell_iterators()) {
    result.cells[rounded(cell->center())] = cell->material_id();
    for (auto const& face : cell->face_iterators())
      if (face->at_boundary())
        result.faces[rounded(face->center())] = face->boundary_id();
  }
  return result;
}

// ------------------------------------------------------------------------------------------------------------------- writers

inline constexpr std::array<unsigned, 8> around{0, 1, 3, 2, 4, 5, 7, 6};
inline constexpr std::array<unsigned, 4> around_face{0, 1, 3, 2};

inline std::string coordinates(Grid const& grid, std::size_t v, char separator) {
  std::ostringstream text;
  text << std::setprecision(17);
  for (unsigned d = 0; d < 3; ++d)
    text << (d ? std::string(1, separator) : "") << grid.get_vertices()[v][d];
  return text.str();
}

/// Boundary faces and cells with their ids and their nodes around, counted from 1.
inline void for_boundary(Grid const& grid, std::function<void(unsigned, std::vector<unsigned> const&)> const& action) {
  for (auto const& face : grid.active_face_iterators())
    if (face->at_boundary()) {
      std::vector<unsigned> nodes;
      for (unsigned const v : around_face)
        nodes.push_back(face->vertex_index(v) + 1);
      action(face->boundary_id(), nodes);
    }
}
inline void for_cells(Grid const& grid, std::function<void(unsigned, std::vector<unsigned> const&)> const& action) {
  for (auto const& cell : grid.active_cell_iterators()) {
    std::vector<unsigned> nodes;
    for (unsigned const v : around)
      nodes.push_back(cell->vertex_index(v) + 1);
    action(cell->material_id(), nodes);
  }
}
inline std::string list(std::vector<unsigned> const& nodes, char const* separator = " ") {
  std::string text;
  for (unsigned const node : nodes)
    text.append(text.empty() ? "" : separator).append(std::to_string(node));
  return text;
}

inline std::string gmsh_22(Grid const& grid) {
  std::ostringstream text, elements;
  text << "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n" << grid.n_vertices() << '\n';
  for (std::size_t v = 0; v < grid.n_vertices(); ++v)
    text << v + 1 << ' ' << coordinates(grid, v, ' ') << '\n';
  unsigned n = 0;
  for_boundary(
      grid, [&](unsigned id, auto const& nodes) { elements << ++n << " 3 2 " << id << ' ' << id << ' ' << list(nodes) << '\n'; });
  for_cells(grid,
            [&](unsigned id, auto const& nodes) { elements << ++n << " 5 2 " << id << ' ' << id << ' ' << list(nodes) << '\n'; });
  text << "$EndNodes\n$Elements\n" << n << '\n' << elements.str() << "$EndElements\n";
  return text.str();
}

inline std::string gmsh_41(Grid const& grid) {
  std::map<unsigned, std::vector<std::vector<unsigned>>> surfaces, volumes;
  for_boundary(grid, [&](unsigned id, auto const& nodes) { surfaces[id].push_back(nodes); });
  for_cells(grid, [&](unsigned id, auto const& nodes) { volumes[id].push_back(nodes); });
  std::ostringstream text;
  // Entity tags differ from physical tags on purpose: 100 more.
  text << "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Entities\n0 0 " << surfaces.size() << ' ' << volumes.size() << '\n';
  for (auto const& group : {surfaces, volumes})
    for (auto const& [id, elements] : group)
      text << id + 100 << " 0 0 0 1 1 1 1 " << id << " 0\n";
  std::size_t const n = grid.n_vertices();
  text << "$EndEntities\n$Nodes\n1 " << n << " 1 " << n << "\n3 " << volumes.begin()->first + 100 << " 0 " << n << '\n';
  for (std::size_t v = 0; v < n; ++v)
    text << v + 1 << '\n';
  for (std::size_t v = 0; v < n; ++v)
    text << coordinates(grid, v, ' ') << '\n';
  std::ostringstream blocks;
  std::size_t number = 0;
  auto const write = [&](auto const& groups, int dimension, int type) {
    for (auto const& [id, elements] : groups) {
      blocks << dimension << ' ' << id + 100 << ' ' << type << ' ' << elements.size() << '\n';
      for (auto const& nodes : elements)
        blocks << ++number << ' ' << list(nodes) << '\n';
    }
  };
  write(surfaces, 2, 3);
  write(volumes, 3, 5);
  text << "$EndNodes\n$Elements\n"
       << surfaces.size() + volumes.size() << ' ' << number << " 1 " << number << '\n'
       << blocks.str() << "$EndElements\n";
  return text.str();
}

/// Sets of elements as materials, and surfaces made of element sides, as Cubit and Abaqus write them.
inline std::string abaqus(Grid const& grid) {
  static constexpr std::array<int, 6> side_of_face{6, 4, 3, 5, 1, 2};
  std::ostringstream text;
  text << "*HEADING\n** written from deal.II\n*NODE\n";
  for (std::size_t v = 0; v < grid.n_vertices(); ++v)
    text << v + 1 << ", " << coordinates(grid, v, ',') << '\n';
  // Numbered in the order of the file, because deal.II's reader relies on that.
  std::map<unsigned, std::vector<Grid::active_cell_iterator>> materials;
  for (auto const& cell : grid.active_cell_iterators())
    materials[cell->material_id()].push_back(cell);
  std::map<unsigned, std::vector<std::string>> surfaces;
  unsigned n = 0;
  for (auto const& [id, cells] : materials) {
    text << "*ELEMENT, TYPE=C3D8R, ELSET=EB" << id << '\n';
    for (auto const& cell : cells) {
      std::vector<unsigned> nodes;
      for (unsigned const v : around)
        nodes.push_back(cell->vertex_index(v) + 1);
      text << ++n << ", " << list(nodes, ", ") << '\n';
      for (unsigned const f : cell->face_indices())
        if (cell->at_boundary(f))
          surfaces[cell->face(f)->boundary_id()].push_back(std::to_string(n) + ", S" + std::to_string(side_of_face[f]));
    }
  }
  for (auto const& [id, lines] : surfaces) {
    text << "*SURFACE, NAME=SS" << id << '\n';
    for (std::string const& line : lines)
      text << line << '\n';
  }
  return text.str();
}

inline std::string unv(Grid const& grid) {
  std::ostringstream text, elements, groups;
  text << "    -1\n  2411\n";
  for (std::size_t v = 0; v < grid.n_vertices(); ++v) {
    std::string numbers = coordinates(grid, v, ' ');
    std::replace(numbers.begin(), numbers.end(), 'e', 'D');
    text << v + 1 << " 1 1 11\n  " << numbers << '\n';
  }
  unsigned n = 0;
  std::map<unsigned, std::vector<unsigned>> surfaces, volumes;
  for_boundary(grid, [&](unsigned id, auto const& nodes) {
    elements << ++n << " 44 2 1 7 4\n" << list(nodes) << '\n';
    surfaces[id].push_back(n);
  });
  for_cells(grid, [&](unsigned id, auto const& nodes) {
    elements << ++n << " 115 2 1 7 8\n" << list(nodes) << '\n';
    volumes[id].push_back(n);
  });
  for (auto const& group : {surfaces, volumes})
    for (auto const& [id, members] : group) {
      groups << id << " 0 0 0 0 0 0 " << members.size() << '\n' << id << '\n';
      for (std::size_t i = 0; i < members.size(); ++i)
        groups << "8 " << members[i] << " 0 0" << (i % 2 == 1 || i + 1 == members.size() ? '\n' : ' ');
    }
  text << "    -1\n    -1\n  2412\n" << elements.str() << "    -1\n    -1\n  2467\n" << groups.str() << "    -1\n";
  return text.str();
}

inline std::string by_dealii(Grid const& grid, dealii::GridOut::OutputFormat format) {
  std::ostringstream text;
  dealii::GridOut out;
  out.set_flags(dealii::GridOutFlags::Ucd(true, true));
  out.set_flags(dealii::GridOutFlags::Vtk(true, true, false, false));
  out.write(grid, text, format);
  return text.str();
}

// ------------------------------------------------------------------------------------------------------------- sample meshes

/// The ball of meshes/ball.msh: the vertices lie on and in the sphere, nothing in the file says that the surface is curved.
inline void make_ball(Grid& flat) {
  Grid ball;
  dealii::GridGenerator::hyper_ball_balanced(ball);
  ball.refine_global(1);
  dealii::GridGenerator::flatten_triangulation(ball, flat);
  for (auto const& cell : flat.active_cell_iterators())
    cell->set_material_id(1);
  for (auto const& face : flat.active_face_iterators())
    if (face->at_boundary())
      face->set_boundary_id(1);
}

/// The block of meshes/two_materials.*: [0, 2] x [0, 1] x [0, 1]; material 1 where x < 1, else 2; boundary 1 at x = 0, 2 at x = 2,
/// else 3.
inline void make_block(Grid& block, unsigned n = 4) {
  dealii::GridGenerator::subdivided_hyper_rectangle(block, {2 * n, n, n}, dealii::Point<3>(), dealii::Point<3>(2, 1, 1));
  for (auto const& cell : block.active_cell_iterators()) {
    cell->set_material_id(cell->center()[0] < 1 ? 1 : 2);
    for (unsigned const f : cell->face_indices())
      if (cell->at_boundary(f))
        cell->face(f)->set_boundary_id(f < 2 ? f + 1 : 3);
  }
}

/// Damages a file in one of several ways.
inline std::string mutate(std::string text, std::mt19937& random) {
  auto const place = [&] { return text.empty() ? 0 : random() % text.size(); };
  static std::vector<std::string> const words{
      "-1", "0", "99999999999999999999", "2147483648", "nan", "1e308", "$", "*", "-", "\n", " ", "\xff", "5", "3"};
  for (auto n = 1 + random() % 3; n > 0; --n)
    switch (random() % 7) {
    case 0:
      text.resize(place());
      break;
    case 1:
      text[place() % std::max<std::size_t>(text.size(), 1)] = static_cast<char>(random() & 0xffu);
      break;
    case 2:
      text.erase(place(), random() % 40);
      break;
    case 3:
      text.insert(place(), words[random() % words.size()]);
      break;
    case 4: {  // a digit becomes another
      std::size_t const digit = text.find_first_of("0123456789", place());
      if (digit != std::string::npos)
        text[digit] = static_cast<char>('0' + random() % 10);
      break;
    }
    case 5: {  // a line vanishes
      std::size_t const begin = text.find('\n', place());
      if (begin != std::string::npos)
        text.erase(begin, text.find('\n', begin + 1) - begin);
      break;
    }
    default: {  // a line comes twice
      std::size_t const begin = text.find('\n', place());
      if (begin != std::string::npos)
        text.insert(begin, text.substr(begin, text.find('\n', begin + 1) - begin));
    }
    }
  return text.empty() ? "x" : text;
}

inline std::pair<int, int> MeshFiles::expect_no_crash(std::map<std::string, std::string> const& files, int times) const {
  struct Progress {
    int step, accepted, refused;
  };
  void* const memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::runtime_error("no memory");
  int total_accepted = 0, total_refused = 0;
  for (auto const& [name, content] : files) {
    auto* const progress = static_cast<Progress volatile*>(memory);
    progress->step = 0;
    progress->accepted = 0;
    progress->refused = 0;
    pid_t const child = fork();
    if (child < 0)
      throw std::runtime_error("no process");
    if (child == 0) {
      alarm(60);
      std::mt19937 random(2024);
      for (int i = 0; i < times; ++i) {
        progress->step = i;
        std::string const path = write(name, mutate(content, random));
        try {
          static_cast<void>(read(path));
          progress->accepted = progress->accepted + 1;
        } catch (InputError const&) {
          progress->refused = progress->refused + 1;
        } catch (...) {
          _exit(2);
        }
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << name << ", mutation " << progress->step << ", status " << status;
    total_accepted += progress->accepted;
    total_refused += progress->refused;
  }
  munmap(memory, sizeof(Progress));
  return {total_accepted, total_refused};
}

}  // namespace poisson::assembly::test
