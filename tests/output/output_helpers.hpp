#pragma once

#include "output/grid.hpp"

#include "gpu/core/error.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace poisson::output::test {

/// An empty directory that is removed in the end.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    auto name = (std::filesystem::temp_directory_path() / "poisson-output-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  TemporaryDirectory(TemporaryDirectory const&) = delete;
  TemporaryDirectory& operator=(TemporaryDirectory const&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path const& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(std::string const& name) const { return path_ / name; }
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> result;
    for (auto const& entry : std::filesystem::directory_iterator(path_))
      result.insert(entry.path().filename().string());
    return result;
  }

private:
  std::filesystem::path path_;
};

/// The bytes of a file.
inline std::string text_of(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The message of the EnvironmentError that `action` must throw.
template <class Action>
std::string environment_error(Action&& action) {
  try {
    action();
  } catch (EnvironmentError const& error) {
    return error.what();
  }
  ADD_FAILURE() << "no EnvironmentError";
  return {};
}

using Vec = std::array<double, 3>;

/// A block of nx * ny * nz cells of order p on [0, 1]^3, mapped; a value at each node.
struct Block {
  int order = 1;
  std::vector<double> points, u;
  std::vector<std::int64_t> cells;
  [[nodiscard]] Grid grid() const { return {order, points, cells}; }
  /// The same, of which nothing is in an array. The block outlives it.
  [[nodiscard]] Grid made_grid() const {
    auto const copy = [](auto const& values) {
      return [&values](std::int64_t first, std::int64_t n, auto* out) { std::copy_n(values.begin() + first, n, out); };
    };
    return {order, {}, {}, copy(points), copy(cells), std::ssize(points), std::ssize(cells)};
  }
};

inline Block make_block(
    int nx, int ny, int nz, int p, std::function<double(Vec const&)> const& value,
    std::function<Vec(Vec const&)> const& map = [](Vec const& x) { return x; },
    std::function<bool(int, int, int)> const& keep = [](int, int, int) { return true; }) {
  Block block;
  block.order = p;
  std::int64_t const mx = nx * p + 1, my = ny * p + 1, mz = nz * p + 1;
  for (std::int64_t k = 0; k < mz; ++k)
    for (std::int64_t j = 0; j < my; ++j)
      for (std::int64_t i = 0; i < mx; ++i) {
        Vec const reference{static_cast<double>(i) / static_cast<double>(mx - 1),
                            static_cast<double>(j) / static_cast<double>(my - 1),
                            static_cast<double>(k) / static_cast<double>(mz - 1)};
        auto const x = map(reference);
        block.points.insert(block.points.end(), x.begin(), x.end());
        block.u.push_back(value(reference));
      }
  for (int k = 0; k < nz; ++k)
    for (int j = 0; j < ny; ++j)
      for (int i = 0; i < nx; ++i)
        if (keep(i, j, k))
          for (int c = 0; c <= p; ++c)
            for (int b = 0; b <= p; ++b)
              for (int a = 0; a <= p; ++a)
                block.cells.push_back((i * p + a) + mx * ((j * p + b) + my * (k * p + c)));
  return block;
}

}  // namespace poisson::output::test
