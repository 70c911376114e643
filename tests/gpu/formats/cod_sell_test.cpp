#include "tests/gpu/cases.hpp"
#include "tests/gpu/lattices.hpp"
#include "tests/gpu/matrices.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/formats/cod_sell.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace poisson::testing {

namespace {

/// The arrays of a CoD-SELL matrix in host memory.
struct Arrays {
  std::int64_t n_rows = 0, c = 0, n_slices = 0;
  std::vector<std::int64_t> value_ptr, dictionary_ptr;
  std::vector<std::int32_t> rows, columns, dictionary;
  std::vector<double> values;

  bool operator==(Arrays const&) const = default;
};

Arrays arrays_of(Matrix const& matrix) {
  CodSellView const& view = dynamic_cast<CodSell const&>(matrix).view();
  Arrays result;
  result.n_rows = view.n_rows;
  result.c = view.slice_size;
  result.n_slices = view.n_slices;
  auto const fetch = [&](auto& to, auto const* from, std::int64_t size) {
    to.resize(static_cast<std::size_t>(size));
    if (size > 0)
      matrix.context().download(to.data(), from, size * static_cast<std::int64_t>(sizeof to[0]));
  };
  fetch(result.value_ptr, view.value_ptr, view.n_slices + 1);
  fetch(result.dictionary_ptr, view.dictionary_ptr, view.n_slices + 1);
  fetch(result.rows, view.rows, view.n_rows);
  fetch(result.values, view.values, result.value_ptr.back());
  fetch(result.dictionary, view.dictionary, result.dictionary_ptr.back());
  fetch(result.columns, view.columns, result.value_ptr.back() - result.c * result.dictionary_ptr.back());
  return result;
}

/// Walks through the arrays as CodSellView describes them, and compares with the matrix entry by entry.
void expect_holds(Arrays const& a, CsrMatrix const& csr) {
  ASSERT_EQ(a.n_rows, csr.n_rows);
  ASSERT_EQ(a.n_slices, (csr.n_rows + a.c - 1) / a.c);
  std::vector<std::int32_t> rows = a.rows;
  std::sort(rows.begin(), rows.end());
  for (std::size_t row = 0; row < rows.size(); ++row)
    ASSERT_EQ(rows[row], static_cast<std::int32_t>(row)) << "every row has one place";
  for (std::int64_t slice = 0; slice < a.n_slices; ++slice) {
    SCOPED_TRACE("slice " + std::to_string(slice));
    auto const s = static_cast<std::size_t>(slice);
    std::int64_t const first = a.value_ptr[s], r = (a.value_ptr[s + 1] - first) / a.c;
    std::int64_t const n_shared = a.dictionary_ptr[s + 1] - a.dictionary_ptr[s];
    ASSERT_EQ((a.value_ptr[s + 1] - first) % a.c, 0);
    ASSERT_LE(n_shared, std::max<std::int64_t>(0, r - 1));
    std::int32_t before = 0;
    for (std::int64_t k = a.dictionary_ptr[s]; k < a.dictionary_ptr[s + 1]; ++k) {
      ASSERT_GT(a.dictionary[static_cast<std::size_t>(k)], before) << "distances ascend";
      before = a.dictionary[static_cast<std::size_t>(k)];
    }
    std::int64_t longest = 0;
    for (std::int64_t lane = 0; lane < a.c; ++lane) {
      std::int64_t const place = slice * a.c + lane;
      SCOPED_TRACE("lane " + std::to_string(lane));
      auto const value = [&](std::int64_t j) { return a.values[static_cast<std::size_t>(first + j * a.c + lane)]; };
      auto const column = [&](std::int64_t j) {
        return a.columns[static_cast<std::size_t>(first - a.c * a.dictionary_ptr[s] + j * a.c + lane)];
      };
      std::map<std::int64_t, double> entries;
      if (place >= a.n_rows || (r > 0 && column(0) < 0)) {
        for (std::int64_t j = 0; j < r; ++j)
          ASSERT_EQ(value(j), 0);
        for (std::int64_t j = 0; j < r - n_shared; ++j)
          ASSERT_EQ(column(j), -1);
        if (place < a.n_rows) {
          ASSERT_EQ(n_shared, 0) << "an empty row shares nothing";
        }
      } else if (r > 0) {
        entries[column(0)] = value(0);
        for (std::int64_t k = 0; k < n_shared; ++k)
          entries[column(0) + a.dictionary[static_cast<std::size_t>(a.dictionary_ptr[s] + k)]] = value(k + 1);
        std::int32_t last = -1;
        for (std::int64_t j = 1; j < r - n_shared; ++j)
          if (column(j) >= 0) {
            ASSERT_GT(column(j), last) << "columns ascend";
            last = column(j);
            ASSERT_TRUE(entries.emplace(column(j), value(n_shared + j)).second);
          } else {
            ASSERT_EQ(value(n_shared + j), 0);
            last = std::numeric_limits<std::int32_t>::max() - 1;  // none may follow
          }
      }
      if (place >= a.n_rows)
        continue;
      auto const row = static_cast<std::size_t>(a.rows[static_cast<std::size_t>(place)]);
      std::map<std::int64_t, double> wanted;
      for (auto e = static_cast<std::size_t>(csr.row_ptr[row]); e < static_cast<std::size_t>(csr.row_ptr[row + 1]); ++e)
        wanted[csr.columns[e]] = csr.values[e];
      ASSERT_EQ(entries, wanted) << "row " << row;
      if (lane > 0 && a.rows[static_cast<std::size_t>(place - 1)] > a.rows[static_cast<std::size_t>(place)]) {
        auto const above = static_cast<std::size_t>(a.rows[static_cast<std::size_t>(place - 1)]);
        ASSERT_GT(csr.row_ptr[above + 1] - csr.row_ptr[above], csr.row_ptr[row + 1] - csr.row_ptr[row])
            << "rows of one length ascend in a slice";
      }
      longest = std::max(longest, static_cast<std::int64_t>(wanted.size()));
      if (n_shared == 0 && !wanted.empty()) {
        ASSERT_EQ(column(0), wanted.begin()->first) << "with nothing shared the base is the first column";
      }
    }
    ASSERT_EQ(r, longest) << "as wide as the longest row";
  }
}

/// The thesis's formula (3.2) with V = 8 and I = 4: it counts row_order for whole slices and three 32-bit pointers a slice.
std::int64_t thesis_bytes(Arrays const& a) {
  std::int64_t bytes = 0;
  for (std::size_t s = 0; s < static_cast<std::size_t>(a.n_slices); ++s) {
    std::int64_t const r = (a.value_ptr[s + 1] - a.value_ptr[s]) / a.c, d = a.dictionary_ptr[s + 1] - a.dictionary_ptr[s] + 1;
    bytes += 8 * a.c * r + 4 * ((d - 1) + a.c * (r - d + 1)) + 4 * a.c + 12;
  }
  return bytes;
}

std::shared_ptr<CsrMatrix> without_common_pattern(std::int64_t n) {
  Entries entries;
  std::int64_t distance = 1;
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t column = row % 7, j = 0; j < 4; ++j, column += distance++)
      entries[{row, column}] = 1.0 + static_cast<double>(row + j);
  std::int64_t columns = 0;
  for (auto const& [place, value] : entries)
    columns = std::max(columns, place.second + 1);
  return to_csr(n, columns, entries);
}

/// Rows that are shifts of each other: row i holds i + offset for every offset.
std::shared_ptr<CsrMatrix> shifts(std::int64_t n, std::vector<std::int64_t> const& offsets) {
  Entries entries;
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t const o : offsets)
      entries[{row, row + o}] = static_cast<double>(row + 3 * o) / 7 - 1;
  return to_csr(n, n + offsets.back(), entries);
}

/// Lengths like those of a network's matrix: most rows have two or three entries, a few thousands.
std::shared_ptr<CsrMatrix> power_law(std::int64_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Entries entries;
  for (std::int64_t row = 0; row < n; ++row) {
    auto const length = std::min(n, static_cast<std::int64_t>(1.5 / std::pow(uniform(random) + 1e-6, 0.8)));
    for (std::int64_t j = 0; j < length; ++j)
      entries[{row, static_cast<std::int64_t>(static_cast<double>(n) * std::pow(uniform(random), 3))}] = uniform(random) - 0.5;
  }
  return to_csr(n, entries);
}

/// A box whose nodes are numbered cell by cell in clusters of 2 x 2 x 2, as refined meshes are.
std::shared_ptr<CsrMatrix> clustered_box(int n) {
  auto const box = box27(n, n, n, false, 0.5);
  std::vector<std::pair<std::int64_t, std::int64_t>> keys;
  for (std::int64_t i = 0; i < box->n_rows; ++i) {
    std::int64_t const xyz[3] = {i % n, i / n % n, i / n / n};
    std::int64_t key = 0;
    for (int bit = 0; bit < 8; ++bit)
      for (int k = 0; k < 3; ++k)
        key |= (xyz[k] >> bit & 1) << (3 * bit + k);
    keys.emplace_back(key, i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::int64_t> number(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    number[static_cast<std::size_t>(keys[i].second)] = static_cast<std::int64_t>(i);
  Entries entries;
  for (std::size_t row = 0; row < keys.size(); ++row)
    for (auto e = static_cast<std::size_t>(box->row_ptr[row]); e < static_cast<std::size_t>(box->row_ptr[row + 1]); ++e)
      entries[{number[row], number[static_cast<std::size_t>(box->columns[e])]}] = box->values[e];
  return to_csr(box->n_rows, entries);
}

struct Example {
  std::string name;
  std::shared_ptr<CsrMatrix> csr;
};

/// Several chunks of rows, whole and cut.
std::vector<Example> const& examples() {
  static std::vector<Example> const all{{"box", box27(17, 16, 15, false, 0.5)},
                                        {"clustered box", clustered_box(14)},
                                        {"banded", banded(3000, {1, 2, 31, 500}, 3)},
                                        {"uneven", uneven(4100, 3000, 4)},
                                        {"power law", power_law(3000, 5)},
                                        {"no common pattern", without_common_pattern(2100)},
                                        {"shifts", shifts(2048, {0, 1, 5, 20})},
                                        {"no entries", to_csr(1500, {})},
                                        {"one row", to_csr(1, {{{0, 0}, 2.0}})},
                                        {"no row", to_csr(0, {})}};
  return all;
}

template <class C>
class CodSellTest : public OnCase<C> {};
using CodSellCases = EveryBackend<Format::cod_sell>;
TYPED_TEST_SUITE(CodSellTest, CodSellCases, CaseNames);

/// Rows 0, 2, 5 and 7 of figure 3.1 of the thesis as a matrix of their own: bases 0, 1, 2, 4, distances 1 and 3, and one entry more
/// in the second.
TYPED_TEST(CodSellTest, ExampleOfTheThesis) {
  auto const csr = to_csr(4, 8,
                          {{{0, 0}, 1.0},
                           {{0, 1}, 2.0},
                           {{0, 3}, 3.0},
                           {{1, 0}, 4.0},
                           {{1, 1}, 5.0},
                           {{1, 2}, 6.0},
                           {{1, 4}, 7.0},
                           {{2, 2}, 8.0},
                           {{2, 3}, 9.0},
                           {{2, 5}, 10.0},
                           {{3, 4}, 11.0},
                           {{3, 5}, 12.0},
                           {{3, 7}, 13.0}});
  auto const matrix = this->make(csr, {.slice_size = 4});
  Arrays const a = arrays_of(*matrix);
  EXPECT_EQ(a.rows, (std::vector<std::int32_t>{1, 0, 2, 3})) << "by length";
  EXPECT_EQ(a.value_ptr, (std::vector<std::int64_t>{0, 16}));
  EXPECT_EQ(a.dictionary_ptr, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(a.dictionary, (std::vector<std::int32_t>{1, 3}));
  EXPECT_EQ(a.columns, (std::vector<std::int32_t>{1, 0, 2, 4, 0, -1, -1, -1}));
  EXPECT_EQ(a.values, (std::vector<double>{5, 1, 8, 11, 6, 2, 9, 12, 7, 3, 10, 13, 4, 0, 0, 0}));
  EXPECT_EQ(matrix->bytes(), 8 * 16 + 4 * (2 + 8) + 4 * 4 + 16 * 2);
  EXPECT_DOUBLE_EQ(matrix->padding_ratio(), 16.0 / 13);
}

TYPED_TEST(CodSellTest, HoldsTheMatrixInEverySliceSize) {
  for (Example const& example : examples())
    for (int const c : {2, 4, 8, 16, 32, 64, 128, 256})
      for (std::int64_t const sigma : {0, 1, 100}) {
        SCOPED_TRACE(example.name + ", C = " + std::to_string(c) + ", sigma = " + std::to_string(sigma));
        if (sigma != 0 && c != 4 && c != 32)
          continue;
        FormatOptions const options{.slice_size = c, .sigma = sigma};
        auto const matrix = CodSell::convert(Csr(example.csr, *this->context), options);
        Arrays const a = arrays_of(*matrix);
        if (sigma == 0) {
          expect_holds(a, *example.csr);
        }
        CsrMatrix const back = matrix->to_csr();
        EXPECT_EQ(back.n_columns, example.csr->n_columns);
        EXPECT_EQ(back.row_ptr, example.csr->row_ptr);
        EXPECT_EQ(back.columns, example.csr->columns);
        EXPECT_EQ(back.values, example.csr->values);
        std::int64_t const n = a.n_rows;
        EXPECT_EQ(matrix->bytes(), thesis_bytes(a) - 4 * a.n_slices * c - 12 * a.n_slices + 4 * n + 16 * (a.n_slices + 1));
        EXPECT_EQ(matrix->bytes_per_product(), matrix->bytes() + 8 * (n + example.csr->n_columns));
        if (n > 0 && example.csr->nnz() > 0) {
          EXPECT_DOUBLE_EQ(matrix->padding_ratio(),
                           static_cast<double>(a.value_ptr.back()) / static_cast<double>(example.csr->nnz()));
        }
      }
}

TYPED_TEST(CodSellTest, SizesAroundSlicesAndChunks) {
  for (int const c : {2, 4, 32, 256}) {
    std::int64_t const chunk = std::max(1024, 32 * c);
    for (std::int64_t const n : {std::int64_t{1}, std::int64_t{c - 1}, std::int64_t{c}, std::int64_t{c + 1}, std::int64_t{2 * c},
                                 std::int64_t{2 * c + 1}, chunk - 1, chunk, chunk + 1, chunk + c + 1}) {
      SCOPED_TRACE("C = " + std::to_string(c) + ", n = " + std::to_string(n));
      for (auto const& csr : {shifts(n, {0, 2, 3}), n < 3000 ? uneven(n, n, static_cast<unsigned>(n)) : shifts(n, {0, 1})}) {
        auto const matrix = CodSell::convert(Csr(csr, *this->context), {.slice_size = c});
        expect_holds(arrays_of(*matrix), *csr);
        EXPECT_EQ(matrix->to_csr().values, csr->values);
      }
    }
  }
}

TYPED_TEST(CodSellTest, ShiftsShareEverything) {
  for (int const c : {2, 4, 8, 16, 32, 64, 128, 256})
    for (std::int64_t const n : {2048, 8192 + 256}) {
      auto const csr = shifts(n, {0, 1, 5, 20, 300});
      auto const matrix = CodSell::convert(Csr(csr, *this->context), {.slice_size = c});
      std::int64_t const slices = n / c;
      EXPECT_EQ(matrix->bytes(), slices * (8 * c * 5 + 4 * (4 + c)) + 4 * n + 16 * (slices + 1)) << "C = " << c << ", n = " << n;
    }
}

TYPED_TEST(CodSellTest, ParallelConversionKeepsTheSequentialCompression) {
  for (Example const& example : examples())
    for (int const c : {2, 4, 8, 16, 32, 64, 128, 256}) {
      SCOPED_TRACE(example.name + ", C = " + std::to_string(c));
      auto const parallel = CodSell::convert(Csr(example.csr, *this->context), {.slice_size = c});
      auto const host = make_context(Backend::cpu);
      auto const sequential =
          make_matrix(Format::cod_sell, example.csr, *host, {.slice_size = c, .conversion = Conversion::sequential});
      if (c == 2 || c == 32)
        expect_holds(arrays_of(*sequential), *example.csr);
      EXPECT_LE(static_cast<double>(parallel->bytes() - sequential->bytes()), 0.01 * static_cast<double>(example.csr->bytes()));
    }
}

TYPED_TEST(CodSellTest, SameArraysWhereverConverted) {
  int const threads = thread_count();
  auto const host = make_context(Backend::cpu);
  for (Example const& example : examples())
    for (int const c : {2, 4, 8, 16, 32, 64, 128, 256})
      for (auto const& [pairs, groups, candidates] : {std::tuple{4, 16, 0}, {1, 1, 1}, {40, 64, 64}, {7, 33, 3}}) {
        if (c != 4 && c != 32 && pairs != 4)
          continue;
        SCOPED_TRACE(example.name + ", C = " + std::to_string(c) + ", windows " + std::to_string(pairs) + " and " +
                     std::to_string(groups) + ", candidates " + std::to_string(candidates));
        FormatOptions const options{.slice_size = c, .pair_window = pairs, .merge_window = groups, .base_candidates = candidates};
        Arrays const here = arrays_of(*CodSell::convert(Csr(example.csr, *this->context), options));
        for (int const count : {1, 3}) {
          if (count == 3 && c != 32)
            continue;
          set_thread_count(count);
          Arrays const there = arrays_of(*CodSell::convert(Csr(example.csr, *host), options));
          set_thread_count(threads);
          EXPECT_EQ(here.rows, there.rows);
          EXPECT_EQ(here.columns, there.columns);
          EXPECT_TRUE(here == there) << count << " threads";
        }
        if (pairs != 4)
          expect_holds(here, *example.csr);
      }
}

TYPED_TEST(CodSellTest, NeverMuchMoreThanSell) {
  for (Example const& example : examples())
    for (int const c : {2, 4, 8, 16, 32, 64, 128, 256}) {
      SCOPED_TRACE(example.name + ", C = " + std::to_string(c));
      Csr const csr(example.csr, *this->context);
      auto const sell = make_matrix(Format::sell_c_sigma, csr, {.slice_size = c, .sigma = 0});
      std::int64_t const slices = (example.csr->n_rows + c - 1) / c;
      EXPECT_LE(CodSell::convert(csr, {.slice_size = c})->bytes(), sell->bytes() + 8 * (slices + 1));
    }
}

/// Rows longer than cod_sell::longest_searched, of which only the first columns are compared.
TYPED_TEST(CodSellTest, LongRows) {
  Entries entries;
  for (std::int64_t j = 0; j < 9000; ++j)
    for (std::int64_t const row : {3, 4, 70})
      entries[{row, j + row}] = static_cast<double>(j % 1000) + 0.5;
  for (std::int64_t row = 0; row < 200; ++row)
    entries[{row, 9000}] = 1;
  auto const csr = to_csr(200, 9100, entries);
  for (int const c : {2, 32}) {
    auto const matrix = CodSell::convert(Csr(csr, *this->context), {.slice_size = c});
    expect_holds(arrays_of(*matrix), *csr);
    auto const host = make_context(Backend::cpu);
    EXPECT_TRUE(arrays_of(*matrix) == arrays_of(*CodSell::convert(Csr(csr, *host), {.slice_size = c})));
  }
}

TYPED_TEST(CodSellTest, CopiesHoldTheSame) {
  auto const csr = uneven(1500, 1300, 8);
  auto const matrix = CodSell::convert(Csr(csr, *this->context), {.slice_size = 8});
  auto const host = make_context(Backend::cpu);
  auto const copy = matrix->copy_to(*host);
  EXPECT_EQ(copy->bytes(), matrix->bytes());
  EXPECT_EQ(copy->padding_ratio(), matrix->padding_ratio());
  EXPECT_TRUE(arrays_of(*copy) == arrays_of(*matrix));
  EXPECT_TRUE(arrays_of(*copy->copy_to(*this->context)) == arrays_of(*matrix));
}

TYPED_TEST(CodSellTest, SliceSizesOutOfRangeAreRefused) {
  for (int const c : {1, 512, 1024})
    try {
      static_cast<void>(this->make(banded(40, {1}, 3), {.slice_size = c}));
      ADD_FAILURE() << "no InputError for C = " << c;
    } catch (InputError const& error) {
      EXPECT_EQ(error.key(), "slice_size");
      expect_contains(error.what(), {"2 to 256"});
    }
  for (int const c : {1, 512})
    for (FormatEstimate const& estimate : estimate_formats(*banded(40, {1}, 3), {.slice_size = c}))
      EXPECT_EQ(estimate.refusal.empty(), estimate.format != Format::cod_sell) << name_of(estimate.format);
}

TYPED_TEST(CodSellTest, EstimatesPredict) {
  for (Example const& example : examples())
    for (int const c : {4, 32}) {
      SCOPED_TRACE(example.name + ", C = " + std::to_string(c));
      Csr const csr(example.csr, *this->context);
      auto const matrix = CodSell::convert(csr, {.slice_size = c});
      for (FormatEstimate const& estimate : estimate_formats(csr, {.slice_size = c}))
        if (estimate.format == Format::cod_sell) {
          EXPECT_NEAR(static_cast<double>(estimate.bytes), static_cast<double>(matrix->bytes()),
                      0.05 * static_cast<double>(example.csr->bytes()));
          EXPECT_EQ(estimate.bytes_per_product - estimate.bytes, 8 * (example.csr->n_rows + example.csr->n_columns));
        }
    }
}

TEST(CodSellEstimate, FromTheShape) {
  auto const bytes = [](MatrixShape const& shape) {
    for (FormatEstimate const& estimate : estimate_formats(shape))
      if (estimate.format == Format::cod_sell)
        return estimate.bytes;
    return std::int64_t{0};
  };
  // 70 rows of 3 entries in three slices of 32: all on three diagonals, or anywhere.
  std::int64_t const pointers = 4 * 70 + 16 * 4;
  EXPECT_EQ(bytes({70, 210, 3, true}), 3 * (8 * 32 * 3 + 4 * (2 + 32)) + pointers);
  EXPECT_EQ(bytes({70, 210, 0, true}), 3 * 12 * 32 * 3 + pointers);
  EXPECT_EQ(bytes({70, 210, 4, true}), 3 * 12 * 32 * 3 + pointers);
  EXPECT_EQ(bytes({0, 0, 0, true}), 16);
}

TEST(CodSellEstimate, FromTheShapeOfLattices) {
  test::LatticeBox const box = test::make_lattice_box({2, 1, 1}, 24);
  std::array<std::int64_t, 3> const n = box.nodes;
  auto const unknown_of = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return box.unknown_of[static_cast<std::size_t>((z * n[1] + y) * n[0] + x)];
  };
  std::vector<std::vector<std::int32_t>> rows(static_cast<std::size_t>(box.layout.n_unknowns));
  for (std::int64_t node = 0; node < n[0] * n[1] * n[2]; ++node) {
    std::array<std::int64_t, 3> const at{node % n[0], node / n[0] % n[1], node / (n[0] * n[1])};
    auto& row = rows[static_cast<std::size_t>(unknown_of(at[0], at[1], at[2]))];
    for (std::int64_t s = 0; s < 27; ++s) {
      std::int64_t const x = at[0] + s % 3 - 1, y = at[1] + s / 3 % 3 - 1, z = at[2] + s / 9 - 1;
      if (x >= 0 && y >= 0 && z >= 0 && x < n[0] && y < n[1] && z < n[2])
        row.push_back(unknown_of(x, y, z));
    }
    std::sort(row.begin(), row.end());
  }
  auto matrix = std::make_shared<CsrMatrix>();
  matrix->n_rows = matrix->n_columns = box.layout.n_unknowns;
  matrix->row_ptr.push_back(0);
  for (auto const& row : rows) {
    matrix->columns.insert(matrix->columns.end(), row.begin(), row.end());
    matrix->row_ptr.push_back(std::ssize(matrix->columns));
  }
  matrix->values.assign(matrix->columns.size(), 1);
  MatrixShape shape{matrix->n_rows, matrix->nnz(), 0, true};
  shape.n_lattices = box.layout.n_lattices;
  shape.lattice_nodes = box.layout.nodes();
  auto const context = make_context(Backend::cpu);
  auto const stored = static_cast<double>(CodSell::convert(Csr(matrix, *context), {})->bytes());
  EXPECT_NEAR(static_cast<double>(CodSell::estimate(shape, {}).bytes), stored, 0.1 * stored);
}

}  // namespace
}  // namespace poisson::testing
