#include "app/io/matrix_market.hpp"

#include "gpu/core/error.hpp"
#include "tests/app/io/matrix_market_mutations.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace poisson::app {
namespace {

namespace fs = std::filesystem;

using Entry = std::tuple<std::int64_t, std::int64_t, double>;

std::vector<Entry> entries(std::string const& text) {
  CooMatrix const coo = parse_matrix_market(text, "FILE");
  std::vector<Entry> result;
  for (std::size_t e = 0; e < coo.values.size(); ++e)
    result.emplace_back(coo.rows[e], coo.columns[e], coo.values[e]);
  return result;
}

std::string refusal_of(std::string const& text) {
  try {
    (void)parse_matrix_market(text, "FILE");
  } catch (InputError const& error) {
    EXPECT_EQ(error.key(), "");
    return error.what();
  }
  return "";
}

std::string vector_refusal_of(std::string const& text) {
  try {
    (void)parse_matrix_market_vector(text, "FILE");
  } catch (InputError const& error) {
    return error.what();
  }
  return "";
}

void expect_error(std::string const& text, std::string const& place, std::initializer_list<char const*> parts) {
  std::string const error = refusal_of(text);
  EXPECT_EQ(error.rfind(place + ": ", 0), 0U) << "not at " << place << ": \"" << error << "\"";
  for (char const* part : parts)
    EXPECT_NE(error.find(part), std::string::npos) << "\"" << part << "\" is missing in: " << error;
}

std::string const banner = "%%MatrixMarket matrix coordinate real general\n";

class Folder {
public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "poisson_mtx_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(std::string const& name) const { return path_ / name; }

private:
  fs::path path_;
};

std::string gzip(std::string const& text) {
  Folder const folder;
  gzFile const file = gzopen((folder / "x").c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  std::ifstream in(folder / "x", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string file_error(fs::path const& path) {
  try {
    (void)read_matrix_market(path);
  } catch (InputError const& error) {
    return error.what();
  }
  return "";
}

TEST(MatrixMarket, General) {
  EXPECT_EQ(entries(banner + "3 4 3\n1 1 1.5\n3 4 -2\n2 1 1e-3\n"), (std::vector<Entry>{{0, 0, 1.5}, {2, 3, -2}, {1, 0, 1e-3}}));
  CooMatrix const coo = parse_matrix_market(banner + "3 4 0\n", "FILE");
  EXPECT_EQ(coo.n_rows, 3);
  EXPECT_EQ(coo.n_columns, 4);
  EXPECT_TRUE(coo.values.empty());
}

TEST(MatrixMarket, SymmetricIsExpandedWithTheDiagonalOnce) {
  EXPECT_EQ(entries("%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 4\n3 1 -1\n3 3 5\n"),
            (std::vector<Entry>{{0, 0, 4}, {2, 0, -1}, {0, 2, -1}, {2, 2, 5}}));
}

TEST(MatrixMarket, PatternAndInteger) {
  EXPECT_EQ(entries("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 2\n"),
            (std::vector<Entry>{{0, 1, 1}, {1, 1, 1}}));
  EXPECT_EQ(entries("%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 2 -7\n2 2 +8\n"),
            (std::vector<Entry>{{0, 1, -7}, {1, 1, 8}}));
  expect_error("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n", "FILE:3", {"integer", "'1.5'"});
  // SciPy writes matrices of unsigned integers in this way.
  EXPECT_EQ(entries("%%MatrixMarket matrix coordinate unsigned-integer symmetric\n%\n2 2 3\n1 1 2\n2 1 1\n2 2 2\n"),
            (std::vector<Entry>{{0, 0, 2}, {1, 0, 1}, {0, 1, 1}, {1, 1, 2}}));
  expect_error("%%MatrixMarket matrix coordinate unsigned-integer general\n1 1 1\n1 1 1.5\n", "FILE:3", {"integer", "'1.5'"});
}

TEST(MatrixMarket, DuplicatesAreSummedInTheirOrder) {
  // 1e16 + 1 - 1e16 depends on the order.
  CsrMatrix const csr = csr_from_coo(parse_matrix_market(banner + "2 2 5\n2 1 1\n1 2 1e16\n1 2 1\n2 1 2\n1 2 -1e16\n", "FILE"));
  ASSERT_EQ(csr.nnz(), 2);
  EXPECT_EQ(csr.values[0], 1e16 + 1 - 1e16);
  EXPECT_EQ(csr.values[1], 3);
}

TEST(MatrixMarket, Spelling) {
  std::vector<Entry> const one{{0, 1, 2}};
  EXPECT_EQ(entries("%%matrixmarket MATRIX Coordinate Real GENERAL\r\n%comment\r\n\r\n2 2 1\r\n1 2 2\r\n"), one);
  EXPECT_EQ(
      entries("%%MatrixMarket\tmatrix  coordinate real general \n \t\n  % indented\n\t2  2\t1 \n\n % between\n +1\t+2  +2.0 \n\n"),
      one);
  EXPECT_EQ(entries(banner + "2 2 1\n1 2 2"), one) << "no end of the last line";
  EXPECT_EQ(entries(banner + "2 2 1\n1 2 2\n\n\n% the end\n"), one);
}

TEST(MatrixMarket, Numbers) {
  std::map<std::string, double> const numbers{{"1", 1},
                                              {"+1", 1},
                                              {"-1", -1},
                                              {".5", 0.5},
                                              {"5.", 5},
                                              {"1e3", 1000},
                                              {"1E+3", 1000},
                                              {"1.0D+00", 1},
                                              {"-2.5d-1", -0.25},
                                              {"+1d2", 100},
                                              {"1.5-101", 1.5e-101},
                                              {"1+5", 1e5},
                                              {"1e-320", 1e-320},
                                              {"1e-999", 0},
                                              {"0", 0},
                                              {"1.7976931348623157e308", 1.7976931348623157e308},
                                              {"0.1", 0.1},
                                              {"4.9e-324", 4.9e-324}};
  for (auto const& [word, value] : numbers) {
    auto const read = entries(banner + "1 1 1\n1 1 " + word + "\n");
    ASSERT_EQ(read.size(), 1U) << word;
    EXPECT_EQ(std::get<2>(read[0]), value) << word;
  }
  for (std::string const word : {"nan", "NaN", "inf", "-Infinity", "1e999", "-1D+400"})
    expect_error(banner + "1 1 1\n1 1 " + word + "\n", "FILE:3", {"finite", word.c_str()});
  for (std::string const word : {"x", "1x", "--1", "+-1", "+", "-", ".", "1e", "1e+", "0x10", "1,5", "1D", "D5", "1e5e5", "1.0.0"})
    expect_error(banner + "1 1 1\n1 1 " + word + "\n", "FILE:3", {"not a number", word.c_str()});
}

TEST(MatrixMarket, KindsThatAreRefused) {
  expect_error("%%MatrixMarket matrix coordinate real skew-symmetric\n1 1 0\n", "FILE:1", {"skew-symmetric", "general, symmetric"});
  expect_error("%%MatrixMarket matrix coordinate complex hermitian\n1 1 0\n", "FILE:1", {"complex"});
  expect_error("%%MatrixMarket matrix coordinate real hermitian\n1 1 0\n", "FILE:1", {"hermitian"});
  expect_error("%%MatrixMarket matrix array real general\n1 1\n1\n", "FILE:1", {"dense", "sparse"});
  expect_error("%%MatrixMarket vector coordinate real general\n1 1 0\n", "FILE:1", {"'vector'"});
  expect_error("%%MatrixMarket matrix coordinates real general\n", "FILE:1", {"coordinate or array", "'coordinates'"});
  expect_error("%%MatrixMarket matrix coordinate double general\n", "FILE:1",
               {"real, integer, unsigned-integer or pattern", "'double'"});
  expect_error("%%MatrixMarket matrix coordinate real\n", "FILE:1", {"general or symmetric", "''"});
  expect_error("%%MatrixMarket matrix coordinate real general really\n", "FILE:1", {"'really'"});
}

TEST(MatrixMarket, NoMatrixMarketFile) {
  expect_error("", "FILE:1", {"empty"});
  expect_error("\n", "FILE:1", {"%%MatrixMarket"});
  expect_error("%MatrixMarket matrix coordinate real general\n", "FILE:1", {"%%MatrixMarket", "'%MatrixMarket'"});
  expect_error("\x7f"
               "ELF\x01\x02\x03",
               "FILE:1", {"no Matrix Market file", "'?ELF?", "?'"});
  expect_error(std::string(100000, 'x'), "FILE:1", {"no Matrix Market file"});
  expect_error(std::string(3000000, '\0'), "FILE:1", {"no Matrix Market file"});
}

TEST(MatrixMarket, Sizes) {
  expect_error(banner, "FILE:1", {"sizes"});
  expect_error(banner + "% only\n\n", "FILE:3", {"sizes"});
  expect_error(banner + "2 2\n", "FILE:2", {"entries", "''"});
  expect_error(banner + "2 2 1 1\n1 1 1\n", "FILE:2", {"'1'"});
  expect_error(banner + "0 2 0\n", "FILE:2", {"rows", "from 1 to 2147483646", "'0'"});
  expect_error(banner + "2 -1 0\n", "FILE:2", {"columns", "'-1'"});
  expect_error(banner + "2147483647 1 0\n", "FILE:2", {"rows", "2147483646", "'2147483647'"});
  expect_error(banner + "1 99999999999999999999 0\n", "FILE:2", {"columns", "'99999999999999999999'"});
  expect_error(banner + "1.5 1 0\n", "FILE:2", {"rows", "'1.5'"});
  expect_error(banner + "2 2 -1\n", "FILE:2", {"entries", "'-1'"});
  expect_error("%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n", "FILE:2", {"square", "2 rows", "3 columns"});
  // What a header announces must not be allocated.
  expect_error(banner + "1000 1000 1000000000000\n1 1 1\n", "FILE:2", {"1000000000000 entries", "cannot hold"});
  expect_error(banner + "2147483646 1 1\n1 1 1\n", "FILE:2", {"2147483646 rows", "1 entries"});
  expect_error(banner + "1 2147483646 1\n1 1 1\n", "FILE:2", {"2147483646 columns"});
}

TEST(MatrixMarket, Entries) {
  expect_error(banner + "2 3 1\n0 1 1\n", "FILE:3", {"row", "from 1 to 2", "'0'"});
  expect_error(banner + "2 3 1\n3 1 1\n", "FILE:3", {"row", "from 1 to 2", "'3'"});
  expect_error(banner + "2 3 1\n1 4 1\n", "FILE:3", {"column", "from 1 to 3", "'4'"});
  expect_error(banner + "2 3 1\n1 -1 1\n", "FILE:3", {"column", "'-1'"});
  expect_error(banner + "2 3 1\n1 x 1\n", "FILE:3", {"column", "'x'"});
  expect_error(banner + "2 3 1\n1\n", "FILE:3", {"column is missing"});
  expect_error(banner + "2 3 1\n1 2\n", "FILE:3", {"value is missing"});
  expect_error(banner + "2 3 1\n1 2 3 4\n", "FILE:3", {"column and value", "'4'"});
  expect_error("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2 3\n", "FILE:3", {"row and column", "'3'"});
  expect_error(banner + "2 3 2\n\n% x\n1 2 3\n", "FILE:5", {"announces 2", "has 1"});
  expect_error(banner + "2 3 1\n1 2 3\n\n1 2 3\n", "FILE:5", {"announces 1", "more"});
  expect_error("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n1 1 1\n2 3 1\n", "FILE:4",
               {"row 2", "column 3", "above the diagonal"});
}

TEST(MatrixMarket, LinesAcrossBlocks) {
  // Lines end at every place relative to the blocks that the reader works with.
  std::string text = banner + "100000 1 200000\n";
  for (int i = 0; i < 200000; ++i)
    text += std::to_string(1 + i % 100000) + " 1 " + std::to_string(i) + ".25\n";
  CooMatrix const coo = parse_matrix_market(text, "FILE");
  ASSERT_EQ(coo.values.size(), 200000U);
  for (std::size_t i = 0; i < coo.values.size(); ++i) {
    ASSERT_EQ(coo.rows[i], static_cast<std::int64_t>(i % 100000)) << i;
    ASSERT_EQ(coo.values[i], static_cast<double>(i) + 0.25) << i;
  }
  text += "1 1 x\n";
  EXPECT_EQ(refusal_of(text).rfind("FILE:200003: ", 0), 0U) << refusal_of(text);
}

TEST(MatrixMarket, Vectors) {
  auto const read = [](std::string const& text) {
    auto const v = parse_matrix_market_vector(text, "FILE");
    return std::vector<double>(v.begin(), v.end());
  };
  EXPECT_EQ(read("%%MatrixMarket matrix array real general\n% c\n3 1\n1\n-2.5\n\n3D1\n"), (std::vector<double>{1, -2.5, 30}));
  EXPECT_EQ(read(banner + "4 1 3\n4 1 1\n2 1 5\n2 1 6\n"), (std::vector<double>{0, 11, 0, 1}));
  EXPECT_NE(vector_refusal_of(banner + "4 2 1\n4 1 1\n").find("FILE:2: a vector"), std::string::npos);
  EXPECT_NE(vector_refusal_of("%%MatrixMarket matrix array real general\n3 1\n1\n2\n").find("announces 3 entries and has 2"),
            std::string::npos);
  EXPECT_NE(vector_refusal_of("%%MatrixMarket matrix array real general\n1 1\n1\n2\n").find("FILE:4: "), std::string::npos);
  EXPECT_NE(vector_refusal_of("%%MatrixMarket matrix array real general\n1 1\n1 2\n").find("one value"), std::string::npos);
  EXPECT_NE(vector_refusal_of("%%MatrixMarket matrix array real general\n1 1\nnan\n").find("finite"), std::string::npos);
  EXPECT_NE(vector_refusal_of("%%MatrixMarket matrix array pattern general\n1 1\n1\n").find("pattern"), std::string::npos);
  EXPECT_NE(vector_refusal_of("%%MatrixMarket matrix array real general\n2000000000 1\n1\n").find("cannot hold"),
            std::string::npos);
}

TEST(MatrixMarket, VectorsAreWrittenToTheBit) {
  std::vector<double> v{0, -0.0, 1, -1.0 / 3, 0.1, 1e300, 4.9e-324, 123456789.123456789, std::numeric_limits<double>::max()};
  std::mt19937_64 random(7);
  while (v.size() < 2000)
    if (double const value = std::bit_cast<double>(random()); std::isfinite(value))
      v.push_back(value);
  auto const back = parse_matrix_market_vector(matrix_market_text(v), "FILE");
  ASSERT_EQ(back.size(), v.size());
  EXPECT_EQ(std::memcmp(back.data(), v.data(), 8 * v.size()), 0);
  EXPECT_EQ(matrix_market_text(std::vector<double>{0.1}),
            "%%MatrixMarket matrix array real general\n1 1\n1.0000000000000001e-01\n");
}

TEST(MatrixMarket, Files) {
  Folder const folder;
  std::string text = banner + "1000 1000 1000\n";
  for (int i = 1; i <= 1000; ++i)
    text += std::to_string(i) + " " + std::to_string(1001 - i) + " " + std::to_string(i * 7919 % 1013) + ".5\n";
  std::string const compressed = gzip(text);
  auto const write = [&](std::string const& name, std::string const& content) {
    std::ofstream(folder / name, std::ios::binary) << content;
    return folder / name;
  };
  for (auto const& path : {write("a.mtx", text), write("a.mtx.gz", compressed), write("misnamed.mtx", compressed)}) {
    CooMatrix const coo = read_matrix_market(path);
    ASSERT_EQ(coo.values.size(), 1000U) << path;
    EXPECT_EQ(coo.values[999], 7919000 % 1013 + 0.5);
  }
  EXPECT_EQ(read_matrix_market_vector(write("v.mtx.gz", gzip(matrix_market_text(std::vector<double>{1, 2}))))[1], 2);
  for (std::size_t size = 20; size < compressed.size(); size += 97) {
    std::string const error = file_error(write("cut.mtx.gz", compressed.substr(0, size)));
    EXPECT_NE(error.find("truncated"), std::string::npos) << size << ": " << error;
  }
  for (std::size_t at = 30; at < compressed.size(); at += 53) {
    std::string damaged = compressed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    EXPECT_NE(file_error(write("damaged.mtx.gz", damaged)), "") << at;
  }
  EXPECT_NE(file_error(write("empty.mtx", "")).find("empty.mtx:1: the file is empty"), std::string::npos);
  EXPECT_NE(file_error(folder / "missing.mtx").find("missing.mtx: there is no such file"), std::string::npos);
  EXPECT_NE(file_error(folder / "").find("directory"), std::string::npos);
  EXPECT_NE(file_error("/dev/zero").find("not a regular file"), std::string::npos);
  if (geteuid() != 0) {
    fs::permissions(folder / "a.mtx", fs::perms::none);
    EXPECT_NE(file_error(folder / "a.mtx").find("cannot be opened"), std::string::npos);
  }
}

TEST(MatrixMarket, ACompressedHeaderAllocatesNothing) {
  Folder const folder;
  std::ofstream(folder / "x.mtx.gz", std::ios::binary) << gzip(banner + "1000 1000 100000000000\n1 1 1\n");
  EXPECT_NE(file_error(folder / "x.mtx.gz").find("cannot hold"), std::string::npos);
}

/// 64 MiB at most, or 200 times the file.
TEST(MatrixMarket, ACompressedFileDoesNotUnpackForEver) {
  Folder const folder;
  std::string text = banner;
  while (text.size() < (std::size_t{1} << 26) + 100000)
    text += "%" + std::string(60000, ' ') + "\n";
  std::ofstream(folder / "x.mtx.gz", std::ios::binary) << gzip(text + "1 1 1\n1 1 1\n");
  std::string const error = file_error(folder / "x.mtx.gz");
  EXPECT_NE(error.find("unpacks to more than 67108864 bytes"), std::string::npos) << error;
}

TEST(MatrixMarket, DamagedInputNeverSurprises) {
  test::MatrixMarketMutations mutations(20240611);
  int accepted = 0;
  for (int i = 0; i < 40000; ++i) {
    std::string const text = mutations.next();
    std::string const problem = test::misbehaviour(text, accepted);
    ASSERT_EQ(problem, "") << "input " << i << ": " << text.substr(0, 1000);
  }
  EXPECT_GT(accepted, 1000) << "the damage is too great to reach the entries";
}

TEST(MatrixMarket, RealMatrices) {
  char const* const folder = std::getenv("POISSON_REAL_DATA");
  if (folder == nullptr)
    GTEST_SKIP() << "POISSON_REAL_DATA is not set";
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> const matrices{
      {"nos4", {100, 594}},         {"gr_30_30", {900, 7744}},        {"LFAT5", {14, 46}},         {"nos7", {729, 4617}},
      {"1138_bus", {1138, 4054}},   {"bcsstk20", {485, 3135}},        {"bcsstk14", {1806, 63454}}, {"bcsstk15", {3948, 117816}},
      {"bcsstk16", {4884, 290378}}, {"s1rmq4m1", {5489, 262411}},     {"bodyy5", {18589, 128853}}, {"jnlbrng1", {40000, 199200}},
      {"memplus", {17758, 99147}},  {"Trefethen_2000", {2000, 41906}}};
  for (auto const& [name, size] : matrices) {
    CsrMatrix const csr = csr_from_coo(read_matrix_market(fs::path(folder) / "matrices" / (name + ".mtx.gz")));
    EXPECT_EQ(csr.n_rows, size.first) << name;
    EXPECT_EQ(csr.n_columns, size.first) << name;
    EXPECT_EQ(std::count_if(csr.values.begin(), csr.values.end(), [](double v) { return v != 0; }), size.second) << name;
    // Zeros that the file stores are kept.
    std::int64_t const zeros = name == "memplus" ? 126150 - 99147 : name == "bodyy5" ? 428 : name == "s1rmq4m1" ? 18700 : 0;
    EXPECT_EQ(csr.nnz(), size.second + zeros) << name;
  }
  for (auto const& [name, n] : std::map<std::string, std::int64_t>{
           {"add32", 4960}, {"sherman3", 5005}, {"orsirr_1", 1030}, {"epb0", 1794}, {"cavity14", 2597}, {"fs_760_3", 760}})
    EXPECT_EQ(csr_from_coo(read_matrix_market(fs::path(folder) / "matrices" / (name + ".mtx.gz"))).n_rows, n) << name;
}

}  // namespace
}  // namespace poisson::app
