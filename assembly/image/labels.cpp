#include "assembly/image/labels.hpp"

#include "assembly/parallel.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>

namespace poisson::assembly {
namespace {

/// Calls action(T()) with the type of the voxels.
template <class Action>
auto with_type(VoxelType type, Action const& action) {
  switch (type) {
  case VoxelType::uint8:
    return action(std::uint8_t());
  case VoxelType::int8:
    return action(std::int8_t());
  case VoxelType::uint16:
    return action(std::uint16_t());
  case VoxelType::int16:
    return action(std::int16_t());
  case VoxelType::uint32:
    return action(std::uint32_t());
  case VoxelType::int32:
    return action(std::int32_t());
  case VoxelType::float32:
    return action(float());
  case VoxelType::float64:
    break;
  }
  return action(double());
}

template <class T>
std::span<T const> values_of(Voxels const& image) {
  return {reinterpret_cast<T const*>(image.bytes.data()), static_cast<std::size_t>(image.size())};
}

std::string key_of_direction(char const* name, std::size_t d) {
  return std::string("problem.mesh.") + name + "[" + std::to_string(d) + "]";
}

std::string text_of(Counts3 const& n) {
  return std::to_string(n[0]) + " x " + std::to_string(n[1]) + " x " + std::to_string(n[2]);
}

/// Voxels are worked on by planes of z, by all threads. `action(z)`.
template <class Action>
void for_planes(Counts3 const& cells, Action const& action) {
  parallel_for(cells[2], action);
}

constexpr std::int64_t largest_label = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse_values(std::string const& what) {
  throw InputError("problem.mesh.threshold",
                   what + "; give grey values levels that divide them into labels, such as 128 or [50, 128]");
}

/// Calls see(state, i) for all i < n, on all threads. Returns their states, which begin as `first`.
template <class State, class See>
std::deque<State> states_of_threads(std::int64_t n, State const& first, See const& see) {
  constexpr std::int64_t size = 1 << 16;
  std::deque<State> states;
  std::mutex mutex;
  parallel_for(
      n_parts(n, size),
      [&] {
        std::scoped_lock const lock(mutex);
        return &states.emplace_back(first);
      },
      [&](State* mine, std::int64_t p) {
        for (auto [i, end] = part(n, size, p); i < end; ++i)
          see(*mine, i);
      });
  return states;
}

/// Which of the numbers below `n_numbers` are among number(i), i < n.
template <class Number>
std::vector<bool> seen_among(std::size_t n_numbers, std::int64_t n, Number const& number) {
  using Marks = std::vector<std::uint8_t>;
  auto const mark = [&](Marks& mine, std::int64_t i) { mine[static_cast<std::size_t>(number(i))] = 1; };
  std::deque<Marks> const of_threads = states_of_threads(n, Marks(n_numbers), mark);
  std::vector<bool> seen(n_numbers);
  for (Marks const& marks : of_threads)
    for (std::size_t i = 0; i < n_numbers; ++i)
      seen[i] = seen[i] || marks[i] != 0;
  return seen;
}

/// The different values, ascending, where they are labels.
template <class T>
std::vector<unsigned> labels_of(std::span<T const> values) {
  std::vector<unsigned> found;
  auto const label_of = [&](std::int64_t i) {
    auto const value = static_cast<std::int64_t>(values[static_cast<std::size_t>(i)]);
    if (value < 0 || value > largest_label)
      refuse_values("the image has a voxel of " + std::to_string(value) + ", and labels are 0 to " + std::to_string(largest_label));
    return static_cast<unsigned>(value);
  };
  if constexpr (sizeof(T) <= 2) {
    auto const seen = seen_among(std::size_t{1} << (8 * sizeof(T)), std::ssize(values), label_of);
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (seen[i])
        found.push_back(static_cast<unsigned>(i));
  } else {
    auto const add = [](std::vector<unsigned>& labels, unsigned label) {
      auto const at = std::lower_bound(labels.begin(), labels.end(), label);
      if (at != labels.end() && *at == label)
        return;
      if (labels.size() == most_labels)
        refuse_values("the image has more than " + std::to_string(most_labels) + " different values, too many for labels");
      labels.insert(at, label);
    };
    using Labels = std::vector<unsigned>;
    auto const add_one = [&](Labels& mine, std::int64_t i) { add(mine, label_of(i)); };
    for (Labels const& of_thread : states_of_threads(std::ssize(values), Labels(), add_one))
      for (unsigned const label : of_thread)
        add(found, label);
  }
  return found;
}

/// Writes the number of every voxel's label, by `number(voxel)`. Labels that no voxel has are left out.
template <class Number>
void set_numbers(LabelImage& image, Number const& number) {
  auto const n = static_cast<std::size_t>(image.size());
  std::int64_t const plane = image.cells[0] * image.cells[1];
  auto const fill = [&](auto& numbers) {
    numbers.resize(n);
    for_planes(image.cells, [&](std::int64_t z) {
      for (std::int64_t i = z * plane; i < (z + 1) * plane; ++i)
        numbers[static_cast<std::size_t>(i)] = static_cast<typename std::decay_t<decltype(numbers)>::value_type>(number(i));
    });
  };
  if (image.labels.size() <= 256)
    fill(image.small);
  else
    fill(image.large);
}

/// Leaves out labels that no voxel has.
void drop_unused(LabelImage& image) {
  std::vector<bool> const used = seen_among(image.labels.size(), image.size(), [&](std::int64_t i) { return image.number(i); });
  std::vector<std::uint32_t> renamed(used.size());
  std::vector<unsigned> labels;
  for (std::size_t i = 0; i < used.size(); ++i) {
    renamed[i] = static_cast<std::uint32_t>(labels.size());
    if (used[i])
      labels.push_back(image.labels[i]);
  }
  if (labels.size() == image.labels.size())
    return;
  LabelImage result{image.cells, std::move(labels), {}, {}, image.names};
  set_numbers(result, [&](std::int64_t i) { return renamed[image.number(i)]; });
  image = std::move(result);
}

/// Components of voxels of one label: union-find with path halving, where a root is the lowest voxel.
template <class Index>
class Components {
public:
  explicit Components(std::int64_t n) : parent_(static_cast<std::size_t>(n)) {
    std::iota(parent_.begin(), parent_.end(), Index{0});
  }
  void join(Index a, Index b) {
    a = root(a);
    b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }
  /// Numbers the components by their first voxels; calls add(component, voxel, whether it is the first one) for every voxel. To be
  /// called once, at the end.
  template <class Add>
  void number(Add const& add) {
    Index next = 0;
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      bool const is_first = parent_[i] == i;
      parent_[i] = is_first ? next++ : parent_[parent_[i]];  // lower voxels have their numbers
      add(parent_[i], static_cast<std::int64_t>(i), is_first);
    }
  }
  /// The number of a voxel's component.
  [[nodiscard]] Index of(std::int64_t voxel) const { return parent_[static_cast<std::size_t>(voxel)]; }

private:
  [[nodiscard]] Index root(Index i) {
    while (parent_[i] != i)
      i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  std::vector<Index> parent_;
};

template <class Index>
std::vector<Phase> phases_by(LabelImage const& image) {
  auto const [nx, ny, nz] = image.cells;
  std::int64_t const row = nx, plane = nx * ny;
  Components<Index> components(image.size());
  // A voxel takes 4 bytes for components (8 of very large images), and 1 for labels up to 256.
  for (std::int64_t z = 0, i = 0; z < nz; ++z)
    for (std::int64_t y = 0; y < ny; ++y)
      for (std::int64_t x = 0; x < nx; ++x, ++i) {
        std::uint32_t const number = image.number(i);
        auto const join_with = [&](bool inside, std::int64_t step) {
          if (inside && image.number(i - step) == number)
            components.join(static_cast<Index>(i), static_cast<Index>(i - step));
        };
        join_with(x > 0, 1);
        join_with(y > 0, row);
        join_with(z > 0, plane);
      }
  struct Component {
    std::uint32_t phase;
    std::int64_t voxels;
  };
  std::vector<Component> found;
  components.number([&](Index component, std::int64_t voxel, bool is_first) {
    if (is_first)
      found.push_back({image.number(voxel), 0});
    ++found[component].voxels;
  });
  std::vector<Phase> phases(image.labels.size());
  for (std::size_t p = 0; p < phases.size(); ++p)
    phases[p].label = image.labels[p];
  for (Component const& component : found) {
    Phase& phase = phases[component.phase];
    ++phase.components;
    phase.voxels += component.voxels;
    phase.largest = std::max(phase.largest, component.voxels);
  }
  for (std::size_t d = 0; d < 3; ++d) {
    auto const on_face = [&](std::int64_t layer) {
      std::vector<Index> numbers;
      std::size_t const e = d == 0 ? 1 : 0, f = d == 2 ? 1 : 2;
      Counts3 at{};
      at[d] = layer;
      for (at[f] = 0; at[f] < image.cells[f]; ++at[f])
        for (at[e] = 0; at[e] < image.cells[e]; ++at[e])
          numbers.push_back(components.of((at[2] * ny + at[1]) * nx + at[0]));
      std::sort(numbers.begin(), numbers.end());
      numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
      return numbers;
    };
    std::vector<Index> const low = on_face(0), high = on_face(image.cells[d] - 1);
    std::vector<Index> both;
    std::set_intersection(low.begin(), low.end(), high.begin(), high.end(), std::back_inserter(both));
    for (Index const component : both) {
      Phase& phase = phases[found[component].phase];
      ++phase.joining[d];
      phase.joining_voxels[d] += found[component].voxels;
    }
  }
  return phases;
}

}  // namespace

std::int64_t size_of(VoxelType type) {
  return with_type(type, []<class T>(T) { return static_cast<std::int64_t>(sizeof(T)); });
}

void check_crop(Counts3 const& cells, Crop const& crop) {
  for (std::size_t d = 0; d < 3; ++d)
    if (crop[d] && !(0 <= crop[d]->begin && crop[d]->begin < crop[d]->end && crop[d]->end <= cells[d]))
      throw InputError(key_of_direction("crop", d),
                       "found [" + std::to_string(crop[d]->begin) + ", " + std::to_string(crop[d]->end) + "]; the image has " +
                           std::to_string(cells[d]) + " voxels in " + "xyz"[d] + ", and [first, end] are 0 <= first < end <= " +
                           std::to_string(cells[d]) + ", of which `end` is left out");
}

void check_blocks(Counts3 const& cells, Counts3 const& blocks) {
  std::string hint;
  bool fits = true;
  for (std::size_t d = 0; d < 3; ++d) {
    std::int64_t const rest = cells[d] % blocks[d];
    fits = fits && rest == 0;
    if (cells[d] < blocks[d])
      throw InputError("problem.mesh.coarsen",
                       "the image has " + text_of(cells) + " voxels, fewer than a block of " + text_of(blocks));
    hint += (d > 0 ? ", " : "") + (rest == 0 ? std::string("null") : "[0, " + std::to_string(cells[d] - rest) + "]");
  }
  if (!fits)
    throw InputError("problem.mesh.coarsen", "the image has " + text_of(cells) + " voxels, which are no multiples of blocks of " +
                                                 text_of(blocks) + "; leave voxels out, for example by crop: [" + hint + "]");
}

Voxels cropped(Voxels image, Crop const& crop) {
  check_crop(image.cells, crop);
  Counts3 first{}, n = image.cells;
  for (std::size_t d = 0; d < 3; ++d)
    if (crop[d]) {
      first[d] = crop[d]->begin;
      n[d] = crop[d]->end - crop[d]->begin;
    }
  if (n == image.cells)
    return image;
  Voxels result{n, image.type, {}};
  auto const bytes = static_cast<std::size_t>(size_of(image.type)), of_row = bytes * static_cast<std::size_t>(n[0]);
  result.bytes.resize(bytes * static_cast<std::size_t>(result.size()));
  for_planes(n, [&](std::int64_t z) {
    for (std::int64_t y = 0; y < n[1]; ++y) {
      std::int64_t const from = ((first[2] + z) * image.cells[1] + first[1] + y) * image.cells[0] + first[0];
      std::memcpy(result.bytes.data() + static_cast<std::size_t>(z * n[1] + y) * of_row,
                  image.bytes.data() + static_cast<std::size_t>(from) * bytes, of_row);
    }
  });
  return result;
}

void flip(Voxels& image, std::array<bool, 3> const& directions) {
  auto const [nx, ny, nz] = image.cells;
  with_type(image.type, [&, nx = nx, ny = ny, nz = nz]<class T>(T) {
    auto* const values = reinterpret_cast<T*>(image.bytes.data());
    auto const row = [&](std::int64_t y, std::int64_t z) { return values + (z * ny + y) * nx; };
    if (directions[0])
      for (std::int64_t i = 0; i < ny * nz; ++i)
        std::reverse(values + i * nx, values + (i + 1) * nx);
    if (directions[1])
      for (std::int64_t z = 0; z < nz; ++z)
        for (std::int64_t y = 0; y < ny / 2; ++y)
          std::swap_ranges(row(y, z), row(y, z) + nx, row(ny - 1 - y, z));
    if (directions[2])
      for (std::int64_t z = 0; z < nz / 2; ++z)
        std::swap_ranges(row(0, z), row(0, z) + nx * ny, row(0, nz - 1 - z));
  });
}

LabelImage labelled(Voxels const& image, std::vector<double> const& levels) {
  LabelImage result;
  result.cells = image.cells;
  with_type(image.type, [&]<class T>(T) {
    std::span<T const> const values = values_of<T>(image);
    if (!levels.empty()) {
      for (unsigned i = 0; i <= levels.size(); ++i)
        result.labels.push_back(i);
      set_numbers(result, [&](std::int64_t i) {
        auto const value = static_cast<double>(values[static_cast<std::size_t>(i)]);
        if (std::isnan(value))
          throw InputError("problem.mesh.threshold", "the image has a voxel that is no number (NaN), which no level divides");
        return std::upper_bound(levels.begin(), levels.end(), value) - levels.begin();
      });
      drop_unused(result);
    } else if constexpr (std::is_floating_point_v<T>) {
      refuse_values("the image has floating-point numbers, which are no labels");
    } else {
      result.labels = labels_of(values);
      std::vector<unsigned> const& labels = result.labels;
      bool const are_numbers = labels.back() + 1 == labels.size();
      set_numbers(result, [&](std::int64_t i) {
        auto const label = static_cast<unsigned>(values[static_cast<std::size_t>(i)]);
        return are_numbers ? static_cast<std::ptrdiff_t>(label)
                           : std::lower_bound(labels.begin(), labels.end(), label) - labels.begin();
      });
    }
  });
  return result;
}

LabelImage coarsened(LabelImage const& image, Counts3 const& blocks) {
  check_blocks(image.cells, blocks);
  if (blocks == Counts3{1, 1, 1})
    return image;
  LabelImage result;
  for (std::size_t d = 0; d < 3; ++d)
    result.cells[d] = image.cells[d] / blocks[d];
  result.labels = image.labels;
  result.names = image.names;
  auto const [nx, ny, nz] = result.cells;
  set_numbers(result, [&, nx = nx, ny = ny](std::int64_t i) {
    Counts3 const at{i % nx * blocks[0], i / nx % ny * blocks[1], i / (nx * ny) * blocks[2]};
    // Blocks have few different labels: a short list of counts.
    thread_local std::vector<std::pair<std::uint32_t, std::int64_t>> counts;
    counts.clear();
    for (std::int64_t z = at[2]; z < at[2] + blocks[2]; ++z)
      for (std::int64_t y = at[1]; y < at[1] + blocks[1]; ++y)
        for (std::int64_t x = at[0]; x < at[0] + blocks[0]; ++x) {
          std::uint32_t const number = image.number((z * image.cells[1] + y) * image.cells[0] + x);
          auto const known = std::find_if(counts.begin(), counts.end(), [&](auto const& entry) { return entry.first == number; });
          if (known == counts.end())
            counts.emplace_back(number, 1);
          else
            ++known->second;
        }
    return std::max_element(
               counts.begin(), counts.end(),
               [](auto const& a, auto const& b) { return a.second != b.second ? a.second < b.second : a.first > b.first; })
        ->first;
  });
  drop_unused(result);
  return result;
}

std::vector<Phase> phases_of(LabelImage const& image) {
  return image.size() <= std::numeric_limits<std::uint32_t>::max() ? phases_by<std::uint32_t>(image)
                                                                   : phases_by<std::uint64_t>(image);
}

}  // namespace poisson::assembly
