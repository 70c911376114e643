#include "assembly/mesh/counts.hpp"

#include "assembly/image/labels.hpp"
#include "assembly/mesh/coarse_mesh.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
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

std::string coordinates_key(std::size_t d) {
  return std::string("problem.mesh.coordinates.") + "xyz"[d];
}

void check_grading(MeshSpec const& spec) {
  for (std::size_t d = 0; d < 3; ++d) {
    std::string const growth = std::string("problem.mesh.growth[").append(std::to_string(d)).append("]");
    std::ostringstream found;
    if (!(spec.growth[d] > 0) || !std::isfinite(spec.growth[d])) {
      found << "the growth of cells must be positive and finite, not " << spec.growth[d];
      throw InputError(growth, found.str());
    }
    std::vector<double> const& x = spec.coordinates[d];
    if (x.empty())
      continue;
    if (spec.growth[d] != 1)
      throw InputError(growth, coordinates_key(d) + " says where the vertices are; leave the growth of this direction at 1");
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!std::isfinite(x[i]) || (i > 0 && !(x[i] > x[i - 1]))) {
        found << "coordinates must be finite and increase, and number " << i + 1 << " is " << x[i];
        throw InputError(coordinates_key(d) + "[" + std::to_string(i) + "]", found.str());
      }
    if (x.size() < 2 || spec.cells[d] != static_cast<std::int64_t>(x.size()) - 1)
      throw InputError(coordinates_key(d), "a direction of n cells has n + 1 coordinates, at least 2; these are " +
                                               std::to_string(x.size()) + " for " + std::to_string(spec.cells[d]) + " cells");
  }
}

/// Whether the first half of the cells grows and the second is its mirror image. With an odd number the one in the middle is the
/// last of the first half.
bool grows_to_middle(MeshSpec const& spec, std::size_t d) {
  return spec.growth_to[d] == GrowthTo::middle;
}

/// (r^i - 1) / (r^n - 1) for r = e^s, s != 0, without overflow.
double geometric_sum(double s, double i, double n) {
  return s > 0 ? std::exp((i - n) * s) * std::expm1(-i * s) / std::expm1(-n * s) : std::expm1(i * s) / std::expm1(n * s);
}

/// Place of vertex i of a direction with growth, from 0 to 1.
double graded_place(MeshSpec const& spec, std::size_t d, std::int64_t i) {
  double const s = std::log(spec.growth[d]);
  std::int64_t const n = spec.cells[d];
  if (!grows_to_middle(spec, d))
    return geometric_sum(s, static_cast<double>(i), static_cast<double>(n));
  if (2 * i > n)
    return 1 - graded_place(spec, d, n - i);
  // Edges are r^0, r^1, ... up to the middle; of an odd number of cells the last one counts half.
  double const half = static_cast<double>(n / 2), at = static_cast<double>(i);
  if (n % 2 == 0)
    return 0.5 * geometric_sum(s, at, half);
  // With S the sum of the edges of m = half cells, the whole is 2 S + r^m. The edges of i cells sum to (r^i - 1) / (r - 1).
  double const ratio = geometric_sum(s, half, half + 1);  // S_m / S_(m + 1); r^m = S_(m + 1) - S_m
  return half == 0 ? 0 : geometric_sum(s, at, half) * ratio / (1 + ratio);
}

/// The smallest edge of a cell in a direction before refinement.
double smallest_cell(MeshSpec const& spec, std::size_t d) {
  std::vector<double> const& x = spec.coordinates[d];
  if (!x.empty()) {
    double smallest = x[1] - x[0];
    for (std::size_t i = 2; i < x.size(); ++i)
      smallest = std::min(smallest, x[i] - x[i - 1]);
    return smallest;
  }
  std::int64_t const n = spec.cells[d];
  if (spec.growth[d] == 1)
    return spec.extent[d] / static_cast<double>(n);
  // Cells grow or shrink all the way to the end, or to the middle.
  double const s = std::log(spec.growth[d]);
  if (!grows_to_middle(spec, d))
    return spec.extent[d] * geometric_sum(std::abs(s), 1, static_cast<double>(n));
  return spec.extent[d] * (s > 0        ? graded_place(spec, d, 1)
                           : n % 2 == 0 ? 0.5 - graded_place(spec, d, n / 2 - 1)
                                        : 1 - 2 * graded_place(spec, d, n / 2));
}

void check_box(MeshSpec const& spec) {
  if (!spec.arguments.empty())
    throw InputError("problem.mesh.arguments",
                     "the generator 'box' takes no arguments; it is described by the keys origin, extent and cells");
  check_grading(spec);
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
    double const width = std::ldexp(smallest_cell(spec, d), -spec.refinements);
    double const place = std::max(std::abs(spec.origin[d]), std::abs(spec.origin[d] + spec.extent[d]));
    if (!(width > 1e-12 * place) || !(width > 1e-100) || !(place < 1e100)) {
      found << "cells " << width << " wide at coordinates up to " << place << " cannot be told apart in double precision";
      throw InputError(!spec.coordinates[d].empty() ? coordinates_key(d)
                       : spec.growth[d] != 1        ? "problem.mesh.growth" + index
                                                    : "problem.mesh.extent" + index,
                       found.str());
    }
  }
}

/// Vertices of a graded direction after all refinements, each of which halves every cell. Empty where cells are equal.
std::vector<double> graded_coordinates(MeshSpec const& spec, std::size_t d) {
  std::vector<double> x = spec.coordinates[d];
  if (spec.growth[d] != 1)
    for (std::int64_t i = 0; i <= spec.cells[d]; ++i)
      x.push_back(i == spec.cells[d] ? spec.origin[d] + spec.extent[d]
                                     : spec.origin[d] + spec.extent[d] * graded_place(spec, d, i));
  for (int r = 0; r < spec.refinements && !x.empty(); ++r) {
    std::vector<double> halved{x.front()};
    for (std::size_t i = 1; i < x.size(); ++i)
      halved.insert(halved.end(), {x[i - 1] + 0.5 * (x[i] - x[i - 1]), x[i]});
    x = std::move(halved);
  }
  return x;
}

}  // namespace

std::vector<double> vertex_coordinates(BoxGrid::Whole const& box, std::size_t direction) {
  if (!box.coordinates[direction].empty())
    return box.coordinates[direction];
  std::int64_t const n = box.cells[direction];
  std::vector<double> result;
  for (std::int64_t i = 0; i <= n; ++i)
    result.push_back(box.origin[direction] + box.extent[direction] * (static_cast<double>(i) / static_cast<double>(n)));
  result.back() = box.origin[direction] + box.extent[direction];
  return result;
}

BoxGrid part_of(BoxGrid const& box, std::array<std::int64_t, 3> const& first, std::array<std::int64_t, 3> const& cells) {
  BoxGrid part;
  part.cells = cells;
  BoxGrid::Whole& whole =
      part.whole.emplace(box.whole.value_or(BoxGrid::Whole{box.origin, box.extent, box.cells, {}, box.coordinates}));
  for (std::size_t d = 0; d < 3; ++d) {
    whole.first[d] += first[d];
    if (auto const& all = whole.coordinates[d]; !all.empty()) {
      part.coordinates[d].assign(all.begin() + whole.first[d], all.begin() + whole.first[d] + cells[d] + 1);
      part.origin[d] = part.coordinates[d].front();
      part.extent[d] = part.coordinates[d].back() - part.origin[d];
      continue;
    }
    auto const n = static_cast<double>(whole.cells[d]);
    part.origin[d] = whole.origin[d] + whole.extent[d] * (static_cast<double>(whole.first[d]) / n);
    part.extent[d] = whole.extent[d] * (static_cast<double>(cells[d]) / n);
  }
  return part;
}

namespace {

MeshCounts count_box(MeshSpec const& spec) {
  MeshCounts counts;
  BoxGrid box{spec.origin, spec.extent, {}};
  for (std::size_t d = 0; d < 3; ++d)
    box.cells[d] = times(spec.cells[d], std::int64_t{1} << spec.refinements);
  std::array<std::int64_t, 3> const n = spec.part ? spec.part->cells : box.cells;
  std::array<std::int64_t, 3> const m{plus(n[0], 1), plus(n[1], 1), plus(n[2], 1)};
  auto const product = [](std::int64_t a, std::int64_t b, std::int64_t c) { return times(times(a, b), c); };
  counts.cells = product(n[0], n[1], n[2]);
  counts.faces = plus(plus(product(m[0], n[1], n[2]), product(n[0], m[1], n[2])), product(n[0], n[1], m[2]));
  counts.edges = plus(plus(product(n[0], m[1], m[2]), product(m[0], n[1], m[2])), product(m[0], m[1], n[2]));
  counts.vertices = product(m[0], m[1], m[2]);
  if (counts.vertices <= std::numeric_limits<std::int32_t>::max())  // more are refused before anybody asks where they are
    for (std::size_t d = 0; d < 3; ++d)
      box.coordinates[d] = graded_coordinates(spec, d);
  if (spec.part)
    box = part_of(box, spec.part->first, spec.part->cells);
  for (int face = 0; face < 6; ++face) {
    std::int64_t const faces = face < 2 ? times(n[1], n[2]) : face < 4 ? times(n[0], n[2]) : times(n[0], n[1]);
    counts.faces_with_id[static_cast<unsigned>(face)] = box.is_boundary(face) ? faces : 0;
    counts.boundary_faces = plus(counts.boundary_faces, box.is_boundary(face) ? faces : 0);
  }
  counts.box = box;
  counts.boundary_ids = {0, 1, 2, 3, 4, 5};
  counts.material_ids = {0};
  if (spec.labels != nullptr) {
    std::vector<unsigned> const& labels = spec.labels->labels;
    counts.material_ids = {labels.begin(), labels.end()};
    for (auto const& [label, name] : spec.labels->names)
      if (counts.material_ids.contains(label))
        counts.material_groups.add({label, name, {label}});
      else
        counts.notes.push_back("problem.mesh.names: no voxel has the label " + std::to_string(label) + " (" + name + ")");
  }
  counts.low = box.origin;
  for (std::size_t d = 0; d < 3; ++d)
    counts.high[d] = box.origin[d] + box.extent[d];
  bool const one_step = spec.refinements == 0 && (n[0] % 2 != 0 || n[1] % 2 != 0 || n[2] % 2 != 0);
  counts.triangulation_bytes = times(counts.cells, one_step ? bytes_per_created_cell : bytes_per_refined_cell);
  return counts;
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

/// As much as the program takes; to ask takes longer than a small mesh.
constexpr std::int64_t always_there = 16 << 20;

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

}  // namespace

std::string ending_of_mesh_file(std::string const& file) {
  std::filesystem::path path(file);
  auto const is_gz = [](std::string const& ending) { return ending == ".gz" || ending == ".GZ"; };
  if (is_gz(path.extension().string()))
    path.replace_extension();
  std::string ending = path.extension().string();
  for (char& c : ending)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

bool is_drawing(MeshSpec const& spec) {
  std::string const ending = ending_of_mesh_file(spec.file);
  return ending == ".step" || ending == ".stp" || ending == ".brep" || ending == ".geo";
}

bool is_surface(MeshSpec const& spec) {
  return ending_of_mesh_file(spec.file) == ".stl";
}

bool is_read_by_vtk(MeshSpec const& spec) {
  std::string const ending = ending_of_mesh_file(spec.file);
  return ending == ".vtk" || ending == ".vtu" || ending == ".hdf" || ending == ".vtkhdf";
}

bool is_box_with_void(MeshSpec const& spec) {
  return spec.file.empty() && spec.generator == "box" && spec.has_void() && spec.refinements == 0 && spec.local == nullptr;
}

bool is_box(MeshSpec const& spec) {
  return spec.file.empty() && spec.generator == "box" && !spec.has_void() && spec.local == nullptr;
}

char const* source_key(MeshSpec const& spec) {
  return !spec.file.empty()        ? "problem.mesh.file"
         : spec.image.is_given()   ? "problem.mesh.image"
         : spec.generator == "box" ? "problem.mesh.cells"
                                   : "problem.mesh.arguments";
}

void check_refinements(MeshSpec const& spec) {
  if (spec.refinements < 0 || spec.refinements > max_refinements)
    throw InputError("problem.mesh.refinements", "the number of global refinements is " + std::to_string(spec.refinements) +
                                                     "; it must be 0 to " + std::to_string(max_refinements) +
                                                     " (each splits every cell in 8)");
}

std::int64_t MeshCounts::unknowns(int order) const {
  std::int64_t const q = order - 1;
  return plus(plus(vertices, times(q, edges)), plus(times(times(q, q), faces), times(times(q, times(q, q)), cells)));
}

MeshCounts MeshCounts::refined(int times_to_refine) const {
  MeshCounts counts = *this;
  for (int r = 0; r < times_to_refine; ++r) {
    // Every entity gets a vertex at its centre; the edges and faces that meet there are new, the others are split.
    MeshCounts const old = counts;
    counts.vertices = plus(plus(old.vertices, old.edges), plus(old.faces, old.cells));
    counts.edges = plus(plus(times(2, old.edges), times(4, old.faces)), times(6, old.cells));
    counts.faces = plus(times(4, old.faces), times(12, old.cells));
    counts.cells = times(8, old.cells);
    counts.left_out.cells = times(8, old.left_out.cells);
    counts.boundary_faces = times(4, old.boundary_faces);
    for (auto* const by_id : {&counts.faces_with_id, &counts.inner_faces_with_id})
      for (auto& [id, number] : *by_id)
        number = times(4, number);
    counts.triangulation_bytes = times(counts.cells, bytes_per_refined_cell);
  }
  return counts;
}

void check_index_range(MeshSpec const& spec, MeshCounts const& counts, int order) {
  constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
  std::int64_t const unknowns = counts.unknowns(order);
  if (unknowns <= limit || (spec.shared && !spec.part))
    return;
  std::string const how_many = unknowns >= saturated ? "more than 4.6e18" : std::to_string(unknowns);
  throw InputError(spec.refinements > 0 ? "problem.mesh.refinements" : source_key(spec),
                   "this mesh would have " + how_many + " unknowns with elements of order " + std::to_string(order) +
                       "; at most 2147483647 (2^31 - 1) can be indexed; use fewer cells, fewer refinements or a lower order");
}

bool has_memory(std::int64_t bytes) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds fresh(50);
  thread_local std::int64_t last = 0;
  thread_local Clock::time_point read_at{};
  Clock::time_point const now = Clock::now();
  // Small cases of a sweep follow each other closely: where half of what was there just now is enough, it still is.
  if (bytes <= always_there || (bytes <= last / 2 && now - read_at < fresh))
    return true;
  last = available_memory();
  read_at = now;
  return bytes <= last;
}

void check_memory(std::int64_t bytes, char const* purpose) {
  if (has_memory(bytes))
    return;
  std::int64_t const available = available_memory();
  if (bytes > available)
    throw EnvironmentError(std::string(purpose) + " needs " + std::to_string(bytes) + " bytes (" + in_units(bytes) +
                           ") of memory, but only " + std::to_string(available) + " bytes (" + in_units(available) +
                           ") are available; use fewer cells or refinements, or a machine with more memory");
}

MeshCounts predict_counts(MeshSpec const& spec, ExpressionNames const& names) {
  check_refinements(spec);
  if (!is_box(spec))
    return refined_counts(*open_coarse_mesh(spec, names), spec);
  check_box(spec);
  return count_box(spec);
}

}  // namespace poisson::assembly
