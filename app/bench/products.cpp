#include "app/bench/session.hpp"
#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/measure.hpp"
#include "gpu/peers/peers.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

namespace poisson::app {

namespace {

using json = nlohmann::ordered_json;

/// Largest |y - A x|_i / (|A| |x|)_i that counts as rounding: rows of 10^4 entries stay far below it.
constexpr double largest_error = 1e-12;

/// Values that differ in size, sign and all bits.
HostVector<double> vector_of(std::int64_t n) {
  HostVector<double> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<double>((i * 0x9e3779b97f4a7c15u) >> 11) * 0x1p-52 - 1;
  return x;
}

class ProductBench final : public Benchmark {
public:
  ProductBench(BenchOptions const& options, BenchSession& session)
      : options_(options), session_(session), variants_(variants(options)) {}

  void measure(BenchSource const&, BenchMatrix const& matrix) override { products(matrix); }

  /// Over all matrices, how good `auto` was.
  void finish() override {
    if (excesses_.empty())
      return;
    auto const within = [&](double most) {
      return static_cast<int>(std::count_if(excesses_.begin(), excesses_.end(), [&](double e) { return e <= most; }));
    };
    double const mean = std::accumulate(excesses_.begin(), excesses_.end(), 0.0) / static_cast<double>(excesses_.size());
    double const worst = *std::max_element(excesses_.begin(), excesses_.end());
    session_.report["auto"] = {{"matrices", excesses_.size()},
                               {"fastest", within(0)},
                               {"within_5_percent", within(0.05)},
                               {"mean_excess", mean},
                               {"worst_excess", worst}};
    if (excesses_.size() == 1)
      return;
    session_.console.line();
    session_.console.line("auto took the fastest format for " + std::to_string(within(0)) + " of " +
                          std::to_string(excesses_.size()) + " matrices, and for " + std::to_string(within(0.05)) +
                          " one within 5 % of it; on average " + fixed(100 * mean, 1) + " % longer than the fastest, at worst " +
                          fixed(100 * worst, 1) + " %");
  }

private:
  struct Measured {
    std::string label;
    Variant const* variant = nullptr;  ///< null: of a peer
    std::int64_t bytes = 0, bytes_per_product = 0;
    double conversion = 0;
    Seconds time;
  };

  /// The componentwise error of a product with `x`. Collective.
  using Check = std::function<double(Array<double> const& y)>;

  Check check_of(BenchMatrix const& matrix, Array<double> const& x, HostVector<double> const& x_host) {
    // If rows are coupled with those of other ranks, the product is checked on the host. The check takes all entries of own rows,
    // and x with the values of other ranks.
    std::shared_ptr<Context> const host = make_context(Backend::cpu);
    BenchRows const& rows = matrix.rows;
    auto const ghosts = values_of_ghosts<double>(session_.ranks, rows.neighbors, x_host);
    HostVector<double> all;
    std::shared_ptr<Csr const> whole;
    session_.team.together([&] {
      if (ghosts.empty())
        return;
      require_memory(*host, 2 * matrix.csr->bytes(), "the rank's matrix in csr, to check products,");
      auto joined =
          std::make_shared<CsrMatrix const>(join_rows(matrix.csr->to_csr(), rows.split.rim, rows.rim_rows, std::ssize(ghosts)));
      whole = std::make_shared<Csr const>(std::move(joined), *host);
      all = x_host;
      all.insert(all.end(), ghosts.begin(), ghosts.end());
    });
    return [host, whole, all, &matrix, &x, this](Array<double> const& y) {
      double mine = 0;
      if (whole != nullptr) {
        HostVector<double> on_host(static_cast<std::size_t>(y.size()));
        y.download(on_host);
        mine = CheckKernels::cpu().largest_error(*host, whole->view(), all.data(), on_host.data());
      } else if (y.size() > 0) {
        mine = kernels_for<CheckKernels>(session_.context).largest_error(session_.context, matrix.csr->view(), x.data(), y.data());
      }
      return max_over(session_.ranks, mine);
    };
  }

  void products(BenchMatrix const& matrix) {
    Csr const& csr = *matrix.csr;
    CsrView const& a = csr.view();
    HostVector<double> const x_host = vector_of(a.n_columns);
    Array<double> const x(session_.context, std::span<double const>(x_host));
    Array<double> y(session_.context, a.n_rows);
    Check const check = check_of(matrix, x, x_host);
    auto const time = [&](std::string const& label, std::function<void()> const& product, double& error) {
      session_.working("measuring " + label);
      Seconds const seconds = measure_seconds(session_.context, product, options_.samples, monotonic_seconds, session_.ranks);
      y.set_zero();
      product();
      error = check(y);
      if (!(error <= largest_error))
        session_.wrong(label + " gives a product that is off by " + number_text(error) + " of |A||x|");
      return seconds;
    };

    double error = 0;
    Converted const in_csr = convert(matrix, {Format::csr, {}, "csr"}, session_);
    Seconds const csr_time = time(
        "csr", [&] { in_csr.product().product(1, x.data(), 0, y.data()); }, error);
    session_.of_matrix()["csr_seconds"] = csr_time.median;
    std::vector<Measured> rows;
    std::vector<double> errors;
    double cusparse_seconds = std::nan("");
    auto const finish = [&] {  // also after an interrupt: what there is
      products_table(matrix, rows, csr_time.median, cusparse_seconds);
      auto& results = session_.of_matrix()["results"];
      for (std::size_t i = 0; i < results.size(); ++i)
        if (!std::isnan(cusparse_seconds))
          results[i]["speed_over_cusparse"] = cusparse_seconds / results[i]["seconds"].get<double>();
    };

    try {
      for (Variant const& variant : variants_)
        session_.unless_refused(variant.label, json_of(variant), [&] {
          Measured row;
          row.label = variant.label;
          row.variant = &variant;
          Converted const made = convert(matrix, variant, session_);
          MultiPrecisionOperator const& product = made.product();
          session_.team.together([&] {
            if (product.first_row_not_finite() >= 0)
              throw InputError(row_text(product.first_row_not_finite()) + " of the matrix holds a value that is not finite");
          });
          row.conversion = made.seconds;
          row.bytes = made.bytes;
          row.bytes_per_product = sum_over(session_.ranks, product.bytes_per_product());
          row.time = time(
              row.label, [&] { product.product(1, x.data(), 0, y.data()); }, error);
          rows.push_back(row);
          json entry = json_of(variant);
          entry["padding_ratio"] = made.padding_ratio;
          add_result("results", std::move(entry), matrix, row, csr_time.median, error);
        });
      if (session_.context.backend() == Backend::cuda && session_.no_peers.empty())
        for (auto const& [peer, name] : Names<Peer>::values)
          session_.unless_refused(std::string(name), {{"peer", name}}, [&, peer = peer, name = name] {
            session_.working("preparing " + std::string(name));
            Measured row;
            row.label = name;
            auto const product = repeated([&] { return make_peer(peer, session_.context, a, x.data(), y.data()); },
                                          [](PeerProduct const& made) { return made.setup_seconds; }, row.conversion);
            row.bytes = product->bytes;
            row.bytes_per_product = product->bytes + 8 * (a.n_rows + a.n_columns);
            row.time = time(
                row.label, [&] { product->product(); }, error);
            rows.push_back(row);
            if (peer == Peer::cusparse_csr_alg1)
              cusparse_seconds = row.time.median;
            add_result("peers", {{"peer", name}, {"workspace_bytes", product->workspace_bytes}}, matrix, row, csr_time.median,
                       error);
          });
    } catch (...) {
      finish();
      throw;
    }
    finish();
    judge_auto(csr, rows);
  }

  void add_result(char const* list, json entry, BenchMatrix const& matrix, Measured const& row, double csr_seconds, double error) {
    double const seconds = row.time.median, nnz = static_cast<double>(matrix.nnz);
    double const bytes_per_second = static_cast<double>(row.bytes_per_product) / seconds;
    entry.update({{"bytes", row.bytes},
                  {"share_of_csr", static_cast<double>(row.bytes) / static_cast<double>(matrix.csr_bytes)},
                  {"conversion_seconds", row.conversion},
                  {"seconds", seconds},
                  {"seconds_min", row.time.min},
                  {"samples", row.time.samples},
                  {"flops_per_second", 2 * nnz / seconds},
                  {"bytes_per_product", row.bytes_per_product},
                  {"bytes_per_second", bytes_per_second},
                  {"share_of_read_bandwidth", bytes_per_second / session_.read_bandwidth},
                  {"products_to_pay_back", payback(row, csr_seconds)},
                  {"error", error},
                  {"correct", error <= largest_error}});
    session_.of_matrix()[list].push_back(std::move(entry));
  }

  /// Products after which the conversion has paid, against csr on the same backend; NaN: never.
  static double payback(Measured const& row, double csr_seconds) {
    if (row.conversion == 0)
      return 0;
    double const gain = csr_seconds - row.time.median;
    return gain > 0 ? std::ceil(row.conversion / gain) : std::nan("");
  }

  void products_table(BenchMatrix const& matrix, std::vector<Measured> const& rows, double csr_seconds, double cusparse_seconds) {
    bool const peers = session_.context.backend() == Backend::cuda && session_.no_peers.empty();
    std::vector<std::vector<std::string>> table{
        {"format", "bytes", "% of csr", "convert ms", "product ms", "GFLOP/s", "GB/s", "% of read"}};
    if (peers)
      table[0].emplace_back("x cusparse");
    table[0].emplace_back("pays after");
    for (Measured const& row : rows) {
      double const seconds = row.time.median, bandwidth = static_cast<double>(row.bytes_per_product) / seconds;
      table.push_back({row.label, with_thousands(row.bytes),
                       fixed(100 * static_cast<double>(row.bytes) / static_cast<double>(matrix.csr_bytes), 1),
                       milliseconds(row.conversion), milliseconds(seconds),
                       number_text(2e-9 * static_cast<double>(matrix.nnz) / seconds, 4), number_text(bandwidth / 1e9, 4),
                       fixed(100 * bandwidth / session_.read_bandwidth, 1)});
      if (peers)
        table.back().push_back(std::isnan(cusparse_seconds) ? "-" : fixed(cusparse_seconds / seconds, 2));
      double const products = payback(row, csr_seconds);
      table.back().push_back(row.variant == nullptr || row.conversion == 0 ? "-"
                             : std::isnan(products)                        ? "never"
                                                                           : with_thousands(static_cast<std::int64_t>(products)));
    }
    session_.show(table);
  }

  /// The format that `auto` picks, with the first slice size, and how much longer it took than the fastest format measured.
  /// Collective.
  void judge_auto(Csr const& csr, std::vector<Measured> const& rows) {
    auto const products = static_cast<double>(options_.products);
    auto const total_seconds = [&](Measured const& row) { return row.conversion + products * row.time.median; };
    std::vector<Measured> own;
    for (Measured const& row : rows)
      if (row.variant != nullptr &&
          (!is_sliced(row.variant->format) || row.variant->options.slice_size == options_.slice_sizes.front()))
        own.push_back(row);
    if (own.empty() || !options_.formats.empty())
      return;
    Timer const timer;
    FormatChoice const choice = choice_of_auto(csr, options_, products, session_);
    double const seconds = timer.seconds();
    Measured const& fastest = *std::min_element(own.begin(), own.end(),
                                                [&](auto const& a, auto const& b) { return total_seconds(a) < total_seconds(b); });
    auto const found = std::find_if(own.begin(), own.end(), [&](auto const& row) { return row.variant->format == choice.format; });
    if (found == own.end())
      return;
    Measured const& chosen = *found;
    double const excess = total_seconds(chosen) / total_seconds(fastest) - 1;
    excesses_.push_back(excess);
    session_.console.line("  auto, " + with_thousands(options_.products) + " products: " + chosen.label +
                          (excess > 0 ? ", " + fixed(100 * excess, 1) + " % longer than " + fastest.label : ", the fastest") +
                          " (decided in " + seconds_text(seconds) + ")");
    json predicted = json::array();
    for (FormatEstimate const& e : choice.estimates)
      if (e.refusal.empty())
        predicted.push_back({{"format", name_of(e.format)},
                             {"bytes", e.bytes},
                             {"product_seconds", e.product_seconds},
                             {"conversion_seconds", e.conversion_seconds},
                             {"at_least", e.is_lower_bound}});
    session_.of_matrix()["auto"] = {
        {"format", name_of(choice.format)}, {"fastest", name_of(fastest.variant->format)}, {"excess", excess},
        {"seconds", total_seconds(chosen)}, {"fastest_seconds", total_seconds(fastest)},   {"decision_seconds", seconds},
        {"predicted", std::move(predicted)}};
  }

  BenchOptions const& options_;
  BenchSession& session_;
  std::vector<Variant> variants_;
  std::vector<double> excesses_;  ///< of what `auto` took over the fastest, by matrix
};

}  // namespace

std::unique_ptr<Benchmark> make_product_bench(BenchOptions const& options, BenchSession& session) {
  return std::make_unique<ProductBench>(options, session);
}

}  // namespace poisson::app
