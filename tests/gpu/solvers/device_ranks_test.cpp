#include "gpu/exchange/halo.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/solvers/gathered_sum.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/rank_devices.hpp"
#include "tests/gpu/systems.hpp"

#include <cstring>
#include <numeric>
#include <utility>

/// Ranks whose devices exchange and sum without the host, against those whose messages go through host memory.
namespace poisson::testing {

namespace {

using Rows = std::vector<std::int64_t>;

template <class T>
void expect_bits(std::vector<T> const& found, std::vector<T> const& expected, char const* what) {
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(T)), 0) << what;
}

/// Equal shares; and with one rank that has no rows.
std::vector<Rows> shares(std::int64_t n, int ranks) {
  Rows equal, with_empty;
  for (int r = 0; r <= ranks; ++r)
    equal.push_back(n * r / ranks);
  with_empty.push_back(0);
  for (int r = 0; r < ranks; ++r)
    with_empty.push_back(n * r / (ranks - 1));
  return {equal, with_empty};
}

std::unique_ptr<RankMatrix> share_of_rank(CsrMatrix const& csr, Rows const& first, Context& context, Communicator& ranks) {
  RankRows const rows = rows_of_rank(csr, first, ranks.rank());
  SplitRows const parts = split(rows);
  auto local = make_matrix(parts.local->n_rows > 0 ? Format::half_cds : Format::csr, parts.local, context);
  return std::make_unique<RankMatrix>(std::move(local), parts, rows.neighbors, ranks);
}

std::vector<int> sizes(int n_devices) {
  return n_devices > 2 ? std::vector<int>{2, n_devices} : std::vector<int>{2};
}

/// An entry of a vector of T whose low parts count.
template <class T>
T entry(std::int64_t i) {
  double const high = std::sin(static_cast<double>(3 * i + 1));
  if constexpr (std::is_same_v<T, DoubleDouble>)
    return two_sum(high, 0x1p-55 * std::cos(static_cast<double>(i)));
  else
    return static_cast<T>(high);
}

/// What a rank and its neighbours, those around it in a ring, send each other.
template <class T>
void send_around(Communicator& ranks, Context& context) {
  int const size = ranks.size(), me = ranks.rank(), next = (me + 1) % size, last = (me + size - 1) % size;
  std::int64_t const n = 1009;  // and less to the last one
  std::vector<std::pair<int, std::int64_t>> sends{{next, n}, {last, n / 2}}, receives{{last, n}, {next, n / 2}};
  if (size == 2)
    sends = {{next, n}}, receives = {{last, n}};
  std::ranges::sort(sends);
  std::ranges::sort(receives);
  HaloPlaces places;
  for (auto const& [rank, count] : sends)
    places.own[rank].resize(static_cast<std::size_t>(count));
  for (auto const& [rank, count] : receives)
    places.ghosts[rank].resize(static_cast<std::size_t>(count));
  Halo<T> halo(context, ranks, places);
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<T> sent;
    for (auto const& [rank, count] : sends)
      for (std::int64_t i = 0; i < count; ++i)
        sent.push_back(entry<T>(1000 * turn + 100 * me + 10 * rank + i));
    context.upload(halo.outgoing(), sent.data(), static_cast<std::int64_t>(sent.size() * sizeof(T)));
    halo.start();
    std::vector<T> expected;
    for (auto const& [rank, count] : receives)
      for (std::int64_t i = 0; i < count; ++i)
        expected.push_back(entry<T>(1000 * turn + 100 * rank + 10 * me + i));
    std::vector<T> found(expected.size());
    T const* const received = halo.finish();
    context.download(found.data(), received, static_cast<std::int64_t>(found.size() * sizeof(T)));
    expect_bits(found, expected, "other messages than were sent");
  }
}

/// Messages from the first rank to the last one alone, of some lengths, turn after turn without waiting.
template <class T>
void send_one_way(Communicator& ranks, Context& context) {
  int const me = ranks.rank(), last = ranks.size() - 1;
  constexpr std::int64_t turns = 20;
  for (std::int64_t const n : {1, 1000, 300'001}) {
    HaloPlaces places;
    std::vector<std::int32_t> list(static_cast<std::size_t>(n));
    std::iota(list.begin(), list.end(), 0);
    if (me == 0)
      places.own[last] = list;
    if (me == last)
      places.ghosts[0] = list;
    std::vector<T> sent, found(static_cast<std::size_t>(turns * n), T(0));
    for (std::int64_t i = 0; i < turns * n; ++i)
      sent.push_back(entry<T>(i));
    Array<T> x(context, std::span<T const>(me == 0 ? sent : found));
    Halo<T> halo(context, ranks, places);
    for (std::int64_t turn = 0; turn < turns; ++turn)
      halo.fill(x.data() + turn * n);
    x.download(std::span<T>(found));
    if (me == last)
      expect_bits(found, sent, "other messages than were sent");
  }
}

/// More numbers than are summed at once.
template <class T>
void add_up(Communicator& ranks, Context& context) {
  constexpr int n = 71;
  std::vector<T> mine, expected;
  for (int i = 0; i < n; ++i) {
    mine.push_back(entry<T>(n * ranks.rank() + i));
    T sum = entry<T>(i);
    for (int r = 1; r < ranks.size(); ++r)
      sum = sum + entry<T>(n * r + i);
    expected.push_back(sum);
  }
  Array<T> numbers(context, std::span<T const>(mine));
  GatheredSum<T>(context, ranks).add(context, numbers.data(), n);
  numbers.download(std::span<T>(mine));
  expect_bits(mine, expected, "other bits than sums in the order of the ranks have");
}

template <class T>
struct Products {
  std::vector<T> y, dots;
};

/// y = 2 A x - 3 y, then y = A x and the dots of all ranks.
template <class T>
Products<T> products_of(CsrMatrix const& csr, Rows const& first, Context& context, Communicator& ranks) {
  auto const matrix = share_of_rank(csr, first, context, ranks);
  LinearOperator<T> const& a = *matrix;
  std::vector<T> x, y;
  for (std::int64_t row = first[static_cast<std::size_t>(ranks.rank())]; row < first[static_cast<std::size_t>(ranks.rank()) + 1];
       ++row) {
    x.push_back(entry<T>(row));
    y.push_back(entry<T>(-row));
  }
  Vector<T> u(context, std::span<T const>(x)), v(context, std::span<T const>(y));
  a.product(T(2), u.data(), T(-3), v.data());
  Products<T> found{std::vector<T>(y.size()), std::vector<T>(1)};
  v.download(std::span<T>(found.y));
  std::int32_t const no = 0;
  Array<std::int32_t> const running(context, std::span<std::int32_t const>(&no, 1));
  Array<T> dot(context, 1);
  // One behind the other, without waiting: messages must not overtake products.
  for (int i = 0; i < 5; ++i) {
    a.product_dot(u.data(), v.data(), dot.data(), running.data());
    std::swap(u, v);
  }
  std::vector<T> last(y.size());
  u.download(std::span<T>(last));
  found.y.insert(found.y.end(), last.begin(), last.end());
  dot.download(std::span<T>(found.dots));
  return found;
}

template <class T>
void compare_products(int size, auto const& run) {
  auto const csr = box27(7, 5, 23, false, 0.3);
  for (Rows const& first : shares(csr->n_rows, size)) {
    std::vector<Products<T>> expected(static_cast<std::size_t>(size)), found = expected;
    for (Way const way : ways) {
      run(size, way, [&](Communicator& ranks, Context& context) {
        (way == Way::host ? expected : found)[static_cast<std::size_t>(ranks.rank())] = products_of<T>(*csr, first, context, ranks);
      });
      for (std::size_t r = 0; way != Way::host && r < found.size(); ++r) {
        expect_bits(found[r].y, expected[r].y, "other bits in y");
        expect_bits(found[r].dots, expected[r].dots, "other bits in dots");
      }
    }
  }
}

}  // namespace

using DevicesOfRanks = OnDevices;

TEST_F(DevicesOfRanks, SendAndAddUpWhatRanksHave) {
  for (int const size : sizes(n_devices))
    for (Way const way : ways)
      run(size, way, [](Communicator& ranks, Context& context) {
        send_around<float>(ranks, context);
        send_around<double>(ranks, context);
        send_around<DoubleDouble>(ranks, context);
        add_up<double>(ranks, context);
        add_up<DoubleDouble>(ranks, context);
        send_one_way<float>(ranks, context);
        send_one_way<double>(ranks, context);
      });
}

TEST_F(DevicesOfRanks, GiveProductsTheBitsOfThoseThroughHostMemory) {
  for (int const size : sizes(n_devices)) {
    compare_products<double>(size, [](auto&&... arguments) { run(arguments...); });
    compare_products<DoubleDouble>(size, [](auto&&... arguments) { run(arguments...); });
  }
}

TEST_F(DevicesOfRanks, GiveSolvesTheBitsOfThoseThroughHostMemory) {
  auto const csr = box27(7, 5, 23, false, 0.3);
  auto const b = random_vector(csr->n_rows, 5);
  for (int const size : sizes(n_devices))
    for (Rows const& first : shares(csr->n_rows, size)) {
      struct Solved {
        std::vector<std::vector<double>> x;  // of ranks, all solves one after another
        std::vector<std::vector<SolverResult>> results;
      };
      std::vector<Solved> solved;
      for (Way const way : {Way::host, Way::nccl, Way::direct, Way::direct}) {
        Solved& now = solved.emplace_back();
        now.x.resize(static_cast<std::size_t>(size));
        now.results.resize(now.x.size());
        run(size, way, [&](Communicator& ranks, Context& context) {
          auto const matrix = share_of_rank(*csr, first, context, ranks);
          auto const r = static_cast<std::size_t>(ranks.rank());
          std::vector<double> const own(b.begin() + first[r], b.begin() + first[r + 1]);
          // All with one context, since NCCL takes long to connect.
          for (Method const method : {Method::cg, Method::bicgstab})
            for (Precision const precision : {Precision::double_, Precision::refined, Precision::double_double}) {
              SolverOptions options;
              options.ranks = ranks;
              options.method = method;
              options.precision = precision;
              options.preconditioner = PreconditionerKind::jacobi;
              options.tolerance = precision == Precision::double_ ? 1e-11 : 1e-20;
              std::vector<double> x(own.size());
              now.results[r].push_back(poisson::solve(*matrix, own, x, options));
              EXPECT_EQ(now.results[r].back().status, SolverStatus::converged) << now.results[r].back().reason;
              now.x[r].insert(now.x[r].end(), x.begin(), x.end());
            }
        });
      }
      for (std::size_t other = 1; other < solved.size(); ++other)
        for (std::size_t r = 0; r < solved[0].x.size(); ++r) {
          expect_bits(solved[other].x[r], solved[0].x[r], "other bits in x");
          for (std::size_t i = 0; i < solved[0].results[r].size(); ++i)
            EXPECT_EQ(solved[other].results[r][i].history, solved[0].results[0][i].history) << "in solve " << i;
        }
    }
}

/// The functions that are declared here by hand are those of the library.
TEST(Nccl, HasTheFunctions) {
  if (std::string const reason = why_no_nccl(); reason.find("cannot be loaded") != std::string::npos || !cuda_built())
    GTEST_SKIP() << reason;
  EXPECT_EQ(why_no_nccl(), "");
}

/// Without devices of their own ranks get on, too.
TEST(TransportOfRanks, IsThroughHostMemoryOnTheCpu) {
  ThreadRanks::run(3, [](Communicator& ranks) {
    auto const context = make_context(Backend::cpu);
    RankTransport const& transport = rank_transport(*context, ranks);
    EXPECT_EQ(transport.name(), "host memory");
    EXPECT_EQ(transport.devices(), nullptr);
    send_around<float>(ranks, *context);
    send_around<double>(ranks, *context);
    send_around<DoubleDouble>(ranks, *context);
    add_up<double>(ranks, *context);
    add_up<DoubleDouble>(ranks, *context);
  });
}

TEST(TransportOfRanks, IsThroughHostMemoryWhereRanksShareADevice) {
  if (!why_no_cuda().empty())
    GTEST_SKIP() << why_no_cuda();
  ThreadRanks::run(3, [](Communicator& ranks) {
    auto const context = make_context(Backend::cuda, 0);
    RankTransport const& transport = rank_transport(*context, ranks);
    expect_contains(transport.name(), {"host memory: ", "rank 0", "shares its device with rank 1"});
    EXPECT_EQ(transport.devices(), nullptr);
    send_around<double>(ranks, *context);
    add_up<DoubleDouble>(ranks, *context);
  });
}

}  // namespace poisson::testing
