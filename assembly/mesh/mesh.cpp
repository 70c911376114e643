#include "assembly/mesh/mesh.hpp"

#include "assembly/mesh/sources.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deal.II/base/exceptions.h>
#include <deal.II/grid/grid_generator.h>
#include <deal.II/grid/manifold.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <fstream>
#include <limits>
#include <sstream>
#include <sys/resource.h>

namespace poisson::assembly {
namespace {

constexpr int max_refinements = 20;
constexpr std::int64_t saturated = std::int64_t{1} << 62;

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? saturated : std::min(result, saturated);
}
std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? saturated : std::min(result, saturated);
}

bool is_box(MeshSpec const& spec) {
  return spec.file.empty() && spec.generator == "box";
}

void check_refinements(MeshSpec const& spec) {
  if (spec.refinements < 0 || spec.refinements > max_refinements)
    throw InputError("problem.mesh.refinements", "the number of global refinements is " + std::to_string(spec.refinements) +
                                                     "; it must be 0 to " + std::to_string(max_refinements) +
                                                     " (each splits every cell in 8)");
}

void check_box(MeshSpec const& spec) {
  if (!spec.arguments.empty())
    throw InputError("problem.mesh.arguments",
                     "the generator 'box' takes no arguments; it is described by the keys origin, extent and cells");
  for (std::size_t d = 0; d < 3; ++d) {
    std::string const index = std::string("[").append(std::to_string(d)).append("]");
    std::ostringstream found;
    if (spec.cells[d] < 1) {
      found << "a box needs at least 1 cell in every direction, not " << spec.cells[d];
      throw InputError("problem.mesh.cells" + index, found.str());
    }
    if (!std::isfinite(spec.origin[d])) {
      found << "the origin of a box must be finite, not " << spec.origin[d];
      throw InputError("problem.mesh.origin" + index, found.str());
    }
    if (!(spec.extent[d] > 0) || !std::isfinite(spec.extent[d])) {
      found << "the extent of a box must be positive and finite, not " << spec.extent[d];
      throw InputError("problem.mesh.extent" + index, found.str());
    }
    double const width = std::ldexp(spec.extent[d] / static_cast<double>(spec.cells[d]), -spec.refinements);
    double const place = std::max(std::abs(spec.origin[d]), std::abs(spec.origin[d] + spec.extent[d]));
    if (!(width > 1e-12 * place) || !(width > 1e-100) || !(place < 1e100)) {
      found << "cells " << width << " wide at coordinates up to " << place << " cannot be told apart in double precision";
      throw InputError("problem.mesh.extent" + index, found.str());
    }
  }
}

MeshCounts count_box(MeshSpec const& spec) {
  MeshCounts counts;
  BoxGrid box{spec.origin, spec.extent, {}};
  for (std::size_t d = 0; d < 3; ++d)
    box.cells[d] = times(spec.cells[d], std::int64_t{1} << spec.refinements);
  std::array<std::int64_t, 3> const n = box.cells;
  std::array<std::int64_t, 3> const m{plus(n[0], 1), plus(n[1], 1), plus(n[2], 1)};
  auto const product = [](std::int64_t a, std::int64_t b, std::int64_t c) { return times(times(a, b), c); };
  counts.cells = product(n[0], n[1], n[2]);
  counts.faces = plus(plus(product(m[0], n[1], n[2]), product(n[0], m[1], n[2])), product(n[0], n[1], m[2]));
  counts.edges = plus(plus(product(n[0], m[1], m[2]), product(m[0], n[1], m[2])), product(m[0], m[1], n[2]));
  counts.vertices = product(m[0], m[1], m[2]);
  counts.boundary_faces = times(2, plus(plus(times(n[0], n[1]), times(n[1], n[2])), times(n[0], n[2])));
  counts.box = box;
  counts.boundary_ids = {0, 1, 2, 3, 4, 5};
  counts.material_ids = {0};
  bool const one_step = spec.refinements == 0 && (n[0] % 2 != 0 || n[1] % 2 != 0 || n[2] % 2 != 0);
  counts.triangulation_bytes = times(counts.cells, one_step ? bytes_per_created_cell : bytes_per_refined_cell);
  return counts;
}

void refine(dealii::Triangulation<3>& triangulation, int times_to_refine) {
  for (int r = 0; r < times_to_refine; ++r) {
    if (interrupt_requested())
      throw Interrupted();
    triangulation.refine_global(1);
  }
}

std::unique_ptr<dealii::Triangulation<3>> build_box(BoxGrid const& box) {
  auto triangulation = std::make_unique<dealii::Triangulation<3>>();
  std::vector<unsigned> cells(box.cells.begin(), box.cells.end());
  int refinements = 0;
  // Refining is three times as fast as making all cells at once and needs three quarters of the memory.
  while (cells[0] % 2 == 0 && cells[1] % 2 == 0 && cells[2] % 2 == 0) {
    for (unsigned& n : cells)
      n /= 2;
    ++refinements;
  }
  dealii::Point<3> low, high;
  for (unsigned d = 0; d < 3; ++d) {
    low[d] = box.origin[d];
    high[d] = box.origin[d] + box.extent[d];
  }
  dealii::GridGenerator::subdivided_hyper_rectangle(*triangulation, cells, low, high);
  // A face of an axis-aligned cell lies on the side of the box that its number names; edges need no ids.
  for (auto const& cell : triangulation->active_cell_iterators())
    for (unsigned const f : cell->face_indices())
      if (cell->at_boundary(f))
        cell->face(f)->set_boundary_id(f);
  refine(*triangulation, refinements);
  return triangulation;
}

void describe(Mesh& mesh) {
  dealii::Triangulation<3> const& triangulation = *mesh.triangulation;
  for (unsigned const id : triangulation.get_boundary_ids())
    mesh.boundary_ids.insert(id);
  for (auto const& cell : triangulation.active_cell_iterators())
    if (mesh.material_ids.empty() || *mesh.material_ids.rbegin() != cell->material_id())
      mesh.material_ids.insert(cell->material_id());
  for (auto const id : triangulation.get_manifold_ids())
    if (id != dealii::numbers::flat_manifold_id)
      mesh.curved = mesh.curved || dynamic_cast<dealii::FlatManifold<3> const*>(&triangulation.get_manifold(id)) == nullptr;
}

std::int64_t read_number(std::string const& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word) || word.find_first_not_of("0123456789") != std::string::npos || word.size() > 18)
    return -1;
  return std::strtoll(word.c_str(), nullptr, 10);
}

/// The value of "key number" or "key: number kB" in a file of /proc or /sys; -1 without it.
std::int64_t read_field(std::string const& path, std::string const& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name, unit;
    std::int64_t value = 0;
    if (words >> name >> value && name == key)
      return words >> unit && unit == "kB" ? value * 1024 : value;
  }
  return -1;
}

/// What the control groups of this process (version 2, or memory of version 1) leave; the page cache that they can drop counts as
/// free.
std::int64_t cgroup_available() {
  std::int64_t available = saturated;
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    auto const first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string const controllers = line.substr(first + 1, second - first - 1);
    bool const version_2 = controllers.empty();
    if (!version_2 && controllers.find("memory") == std::string::npos)
      continue;
    std::string const root = version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    // Inside a container the path may name a group that is not visible; its ancestors up to the root are tried all the same.
    for (std::string group = line.substr(second + 1);; group.erase(group.rfind('/'))) {
      std::string const folder = root + group;
      std::int64_t const limit = read_number(folder + (version_2 ? "/memory.max" : "/memory.limit_in_bytes"));
      std::int64_t const used = read_number(folder + (version_2 ? "/memory.current" : "/memory.usage_in_bytes"));
      std::int64_t const cache =
          std::max<std::int64_t>(0, read_field(folder + "/memory.stat", version_2 ? "inactive_file" : "total_inactive_file"));
      if (limit >= 0 && used >= 0)
        available = std::min(available, std::max<std::int64_t>(0, limit - used + cache));
      if (group.rfind('/') == std::string::npos)
        break;
    }
  }
  return available;
}

std::int64_t available_memory() {
  std::int64_t available = cgroup_available();
  if (std::int64_t const machine = read_field("/proc/meminfo", "MemAvailable:"); machine >= 0)
    available = std::min(available, machine);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    if (std::int64_t const used = read_field("/proc/self/status", "VmSize:"); used >= 0)
      available = std::min(available, std::max<std::int64_t>(0, static_cast<std::int64_t>(limit.rlim_cur) - used));
  return available;
}

std::string in_units(std::int64_t bytes) {
  static constexpr std::array<char const*, 5> units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit)
    value /= 1024;
  std::ostringstream text;
  text.precision(unit == 0 ? 15 : 4);
  text << value << ' ' << units[unit];
  return text.str();
}

/// Runs what calls deal.II; anything unexpected that it throws becomes an error of ours.
template <class Action>
auto guarded(char const* key, Action&& action) {
  try {
    return action();
  } catch (InputError const&) {
    throw;
  } catch (EnvironmentError const&) {
    throw;
  } catch (Interrupted const&) {
    throw;
  } catch (std::bad_alloc const&) {
    throw EnvironmentError("memory ran out while the mesh was built; use fewer cells or refinements");
  } catch (std::exception const& exception) {
    throw InputError(key, "the mesh could not be built: " + brief_message(exception));
  }
}

char const* source_key(MeshSpec const& spec) {
  return !spec.file.empty() ? "problem.mesh.file" : is_box(spec) ? "problem.mesh.cells" : "problem.mesh.arguments";
}

}  // namespace

MeshCounts count_refined(Mesh const& coarse, int refinements) {
  dealii::Triangulation<3> const& triangulation = *coarse.triangulation;
  MeshCounts counts;
  counts.cells = triangulation.n_active_cells();
  counts.faces = triangulation.n_active_faces();
  counts.edges = triangulation.n_active_lines();
  counts.vertices = triangulation.n_used_vertices();
  for (auto const& face : triangulation.active_face_iterators())
    counts.boundary_faces += face->at_boundary() ? 1 : 0;
  counts.boundary_ids = coarse.boundary_ids;
  counts.material_ids = coarse.material_ids;
  counts.triangulation_bytes = times(counts.cells, bytes_per_created_cell);
  for (int r = 0; r < refinements; ++r) {
    // Every entity gets a vertex at its centre; the edges and faces that meet there are new, the others are split.
    MeshCounts const old = counts;
    counts.vertices = plus(plus(old.vertices, old.edges), plus(old.faces, old.cells));
    counts.edges = plus(plus(times(2, old.edges), times(4, old.faces)), times(6, old.cells));
    counts.faces = plus(times(4, old.faces), times(12, old.cells));
    counts.cells = times(8, old.cells);
    counts.boundary_faces = times(4, old.boundary_faces);
    counts.triangulation_bytes = times(counts.cells, bytes_per_refined_cell);
  }
  return counts;
}

std::int64_t MeshCounts::unknowns(int order) const {
  std::int64_t const q = order - 1;
  return plus(plus(vertices, times(q, edges)), plus(times(times(q, q), faces), times(times(q, times(q, q)), cells)));
}

CellShape cell_shape(std::span<dealii::Point<3> const, 8> vertices) {
  auto const determinant = [](dealii::Tensor<1, 3> const& a, dealii::Tensor<1, 3> const& b, dealii::Tensor<1, 3> const& c) {
    return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
  };
  // Lengths in units of the cell's size, so that no product of three can vanish or overflow.
  double size = 0;
  for (auto const& vertex : vertices)
    size = std::max(
        {size, std::abs(vertex[0] - vertices[0][0]), std::abs(vertex[1] - vertices[0][1]), std::abs(vertex[2] - vertices[0][2])});
  if (!(size > 0) || !std::isfinite(size))
    return CellShape::degenerate;
  dealii::Tensor<1, 3> mean[3];
  bool inverted = false;
  for (unsigned v = 0; v < 8; ++v) {
    dealii::Tensor<1, 3> edge[3];
    for (unsigned d = 0; d < 3; ++d) {
      edge[d] = (vertices[v | (1u << d)] - vertices[v & ~(1u << d)]) / size;
      mean[d] += edge[d] / 8.;
    }
    // At a vertex a determinant of zero is allowed: a cell may have a straight angle there.
    double const volume = determinant(edge[0], edge[1], edge[2]);
    inverted = inverted || !(volume >= -1e-10 * edge[0].norm() * edge[1].norm() * edge[2].norm());
  }
  double const scale = mean[0].norm() * mean[1].norm() * mean[2].norm();
  double const centre = determinant(mean[0], mean[1], mean[2]);
  if (std::abs(centre) <= 1e-12 * scale)
    return CellShape::degenerate;
  return inverted || centre < 0 ? CellShape::inverted : CellShape::good;
}

std::string to_text(dealii::Point<3> const& point) {
  std::ostringstream text;
  text << '(' << point[0] << ", " << point[1] << ", " << point[2] << ')';
  return text.str();
}

std::string brief_message(std::exception const& exception) {
  std::ostringstream full;
  if (auto const* const dealii_exception = dynamic_cast<dealii::ExceptionBase const*>(&exception))
    dealii_exception->print_info(full);
  else
    full << exception.what();
  std::istringstream words(full.str());
  std::string text, word;
  while (words >> word && text.size() < 400)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

void check_index_range(MeshSpec const& spec, MeshCounts const& counts, int order) {
  constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
  std::int64_t const unknowns = counts.unknowns(order);
  if (unknowns <= limit)
    return;
  std::string const how_many = unknowns >= saturated ? "more than 4.6e18" : std::to_string(unknowns);
  throw InputError(spec.refinements > 0 ? "problem.mesh.refinements" : source_key(spec),
                   "this mesh would have " + how_many + " unknowns with elements of order " + std::to_string(order) +
                       "; at most 2147483647 (2^31 - 1) can be indexed; use fewer cells, fewer refinements or a lower order");
}

void check_memory(std::int64_t bytes, char const* purpose) {
  std::int64_t const available = available_memory();
  if (bytes > available)
    throw EnvironmentError(std::string(purpose) + " needs " + std::to_string(bytes) + " bytes (" + in_units(bytes) +
                           ") of memory, but only " + std::to_string(available) + " bytes (" + in_units(available) +
                           ") are available; use fewer cells or refinements, or a machine with more memory");
}

MeshCounts predict_counts(MeshSpec const& spec) {
  check_refinements(spec);
  if (is_box(spec)) {
    check_box(spec);
    return count_box(spec);
  }
  return count_refined(make_coarse_mesh(spec), spec.refinements);
}

Mesh make_coarse_mesh(MeshSpec const& spec) {
  check_refinements(spec);
  Mesh mesh;
  return guarded(source_key(spec), [&] {
    if (is_box(spec)) {
      MeshSpec unrefined = spec;
      unrefined.refinements = 0;
      check_box(unrefined);
      MeshCounts const counts = count_box(unrefined);
      check_index_range(unrefined, counts, 1);
      check_memory(counts.triangulation_bytes, "the mesh");
      mesh.triangulation = build_box(*counts.box);
      mesh.box = counts.box;
      mesh.boundary_ids = counts.boundary_ids;
      mesh.material_ids = counts.material_ids;
    } else {
      mesh.triangulation = spec.file.empty() ? generate_mesh(spec) : read_mesh_file(spec.file);
      describe(mesh);
    }
    return std::move(mesh);
  });
}

Mesh make_mesh(MeshSpec const& spec) {
  check_refinements(spec);
  if (is_box(spec)) {
    check_box(spec);
    MeshCounts const counts = count_box(spec);
    check_index_range(spec, counts, 1);
    // The refinements asked for are nothing else than cells, so that all levels are made in the same way.
    MeshSpec flat = spec;
    flat.cells = counts.box->cells;
    flat.refinements = 0;
    return make_coarse_mesh(flat);
  }
  Mesh mesh = make_coarse_mesh(spec);
  refine_mesh(mesh, spec);
  return mesh;
}

void refine_mesh(Mesh& mesh, MeshSpec const& spec) {
  MeshCounts const counts = count_refined(mesh, spec.refinements);
  check_index_range(spec, counts, 1);
  if (spec.refinements == 0)
    return;
  check_memory(counts.triangulation_bytes, "the refined mesh");
  guarded("problem.mesh.refinements", [&] { refine(*mesh.triangulation, spec.refinements); });
}

}  // namespace poisson::assembly
