#include "gpu/kernels/paged_field.hpp"

#include "gpu/core/array.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <thread>
#include <vector>

/// Numbers that threads read in pages, against the numbers themselves.
namespace poisson::testing {

namespace {

std::vector<double> numbers(std::int64_t n) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i)
    values.push_back(static_cast<double>(i * i % 1009) + 0.5);
  return values;
}

}  // namespace

template <class B>
class Paged : public OnBackend<B::value> {};
TYPED_TEST_SUITE(Paged, Backends, BackendNames);

TYPED_TEST(Paged, RangesAreThoseOfTheNumbers) {
  std::vector<double> const values = numbers(1003);
  Array<double> const x = uploaded(*this->context, values);
  for (std::int64_t const entries : {1, 7, 64, 1003, 5000})
    for (std::int64_t const most : {1, 3, 1000}) {
      PagedField pages(*this->context, x.size(), x.data(), entries, most);
      for (std::int64_t const first : {0, 1, 6, 7, 500, 1002})
        for (std::int64_t const n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{8}, x.size() - first}) {
          if (first + n > x.size())
            continue;
          std::vector<double> found(static_cast<std::size_t>(n) + 1, -1);
          pages.read(first, n, found.data());
          EXPECT_TRUE(std::equal(found.begin(), found.end() - 1, values.begin() + first)) << entries << ' ' << first << ' ' << n;
          EXPECT_EQ(found.back(), -1);
        }
    }
}

TYPED_TEST(Paged, ManyThreadsReadAtOnce) {
  std::vector<double> const values = numbers(40000);
  Array<double> const x = uploaded(*this->context, values);
  for (std::int64_t const most : {1, 2, 9}) {
    PagedField pages(*this->context, x.size(), x.data(), 512, most);
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        std::vector<double> found;
        std::vector<std::int32_t> places;
        for (int turn = 0; turn < 200; ++turn) {
          std::int64_t const first = std::uniform_int_distribution<std::int64_t>(0, x.size() - 1)(random);
          std::int64_t const n =
              std::uniform_int_distribution<std::int64_t>(0, std::min<std::int64_t>(1500, x.size() - first))(random);
          found.assign(static_cast<std::size_t>(n), 0);
          pages.read(first, n, found.data());
          wrong += std::equal(found.begin(), found.end(), values.begin() + first) ? 0 : 1;
          std::vector<std::int64_t> some;
          for (int i = 0; i < 50; ++i)
            some.push_back(std::uniform_int_distribution<std::int64_t>(0, x.size() - 1)(random));
          found.resize(some.size());
          pages.pick(some, found.data());
          for (std::size_t i = 0; i < some.size(); ++i)
            wrong += found[i] == values[static_cast<std::size_t>(some[i])] ? 0 : 1;
          if (turn % 20 != 0)
            continue;
          places = {static_cast<std::int32_t>(first), 3, 39999, 3};
          HostVector<double> const at = pages.at(places);
          for (std::size_t i = 0; i < places.size(); ++i)
            wrong += at[i] == values[static_cast<std::size_t>(places[i])] ? 0 : 1;
        }
      });
    for (std::thread& thread : threads)
      thread.join();
    EXPECT_EQ(wrong, 0) << most << " pages";
  }
}

TYPED_TEST(Paged, AFewPagesAreInMemory) {
  constexpr std::int64_t of_all = PagedField::page_size * PagedField::most_pages;
  EXPECT_EQ(PagedField::bytes(10), 80);
  EXPECT_EQ(PagedField::bytes(10 * of_all), 8 * of_all);
}

}  // namespace poisson::testing
