#include "app/bench.hpp"

#include "app/bench_matrices.hpp"
#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/measure.hpp"
#include "gpu/formats/cost.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/registry.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/peers.hpp"
#include "output/atomic_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

namespace poisson {

namespace {

using json = nlohmann::ordered_json;

/// Largest |y - A x|_i / (|A| |x|)_i that counts as rounding: rows of 10^4 entries stay far below it.
constexpr double largest_error = 1e-12;

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string milliseconds(double seconds) {
  return std::isnan(seconds) ? "-" : number_text(1e3 * seconds, 4);
}

/// One row of the tables: a format with the options that it looks at.
struct Variant {
  Format format{};
  FormatOptions options;
  std::string label;
};

/// SELL and its relatives are cut into slices of C rows.
bool is_sliced(Format format) {
  return name_of(format).find("sell") != std::string_view::npos;
}

bool shares_csr(Format format) {
  auto const entries = format_registry();
  return std::any_of(entries.begin(), entries.end(), [&](FormatEntry const& e) { return e.format == format && e.shares_csr; });
}

std::vector<Variant> variants(BenchOptions const& options) {
  std::vector<Variant> result;
  for (auto const& [format, name] : Names<Format>::values) {
    if (!options.formats.empty() && std::find(options.formats.begin(), options.formats.end(), format) == options.formats.end())
      continue;
    for (int const slice_size : options.slice_sizes) {
      Variant variant{format, {}, std::string(name)};
      variant.options.slice_size = slice_size;
      variant.options.sigma = options.sigma;
      variant.options.threads_per_row = options.threads_per_row;
      if (is_sliced(format) && options.slice_sizes.size() > 1)
        variant.label += " C=" + std::to_string(slice_size);
      result.push_back(std::move(variant));
      if (!is_sliced(format))
        break;
    }
  }
  return result;
}

/// null: the format's own.
json json_of(std::optional<std::int64_t> sigma) {
  return sigma ? json(*sigma) : json();
}

json json_of(Variant const& variant) {
  json row{{"format", name_of(variant.format)}};
  if (is_sliced(variant.format))
    row.update({{"slice_size", variant.options.slice_size}, {"sigma", json_of(variant.options.sigma)}});
  return row;
}

/// Values that differ in size, sign and all bits.
HostVector<double> vector_of(std::int64_t n) {
  HostVector<double> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<double>((i * 0x9e3779b97f4a7c15u) >> 11) * 0x1p-52 - 1;
  return x;
}

/// A conversion a few times, or once when it takes long; the last result and the median of what `seconds_of` tells. The first one
/// on a device loads code.
template <class Make, class SecondsOf>
auto repeated(Make const& make, SecondsOf const& seconds_of, double& median) {
  Timer const total;
  std::vector<double> seconds;
  auto made = make();
  seconds.push_back(seconds_of(*made));
  while (seconds.size() < 5 && total.seconds() < 0.5) {
    if (interrupt_requested())
      throw Interrupted();
    made.reset();
    made = make();
    seconds.push_back(seconds_of(*made));
  }
  std::sort(seconds.begin(), seconds.end());
  median = seconds[seconds.size() / 2];
  return made;
}

double conversion_seconds(Matrix const& matrix) {
  return matrix.convert_seconds + matrix.transfer_seconds;
}

bool same_bits(CsrMatrix const& a, CsrMatrix const& b) {
  auto const same = [](auto const& v, auto const& w) {
    return v.size() == w.size() && (v.empty() || std::memcmp(v.data(), w.data(), v.size() * sizeof v[0]) == 0);
  };
  return a.n_rows == b.n_rows && a.n_columns == b.n_columns && same(a.row_ptr, b.row_ptr) && same(a.columns, b.columns) &&
         same(a.values, b.values);
}

/// What half_cds keeps of a matrix that is symmetric only to rounding.
bool same_lower_triangle(CsrMatrix const& a, CsrMatrix const& b) {
  if (a.n_rows != b.n_rows || a.n_columns != b.n_columns)
    return false;
  for (std::int64_t row = 0; row < a.n_rows; ++row) {
    std::int64_t e = a.row_ptr[row], f = b.row_ptr[row];
    for (;; ++e, ++f) {
      bool const in_a = e < a.row_ptr[row + 1] && a.columns[e] <= row, in_b = f < b.row_ptr[row + 1] && b.columns[f] <= row;
      if (in_a != in_b)
        return false;
      if (!in_a)
        break;
      if (a.columns[e] != b.columns[f] || std::memcmp(&a.values[e], &b.values[f], sizeof(double)) != 0)
        return false;
    }
  }
  return true;
}

class Bench {
public:
  Bench(BenchOptions const& options, std::string const& no_cuda, Context& context, Console& console)
      : options_(options),
        context_(context),
        console_(console),
        variants_(variants(options)),
        no_peers_(context.backend() == Backend::cuda ? why_no_peers() : no_cuda) {
    DeviceDescription const device = context.description();
    copy_bandwidth_ = measure_copy_bandwidth(context);
    read_bandwidth_ = measure_read_bandwidth(context);
    console.line("poisson " POISSON_VERSION ": bench " + std::string(name_of(options.kind)));
    if (context.backend() == Backend::cpu)
      console.line(options.backend || no_cuda.empty() ? "  measured on the CPU backend"
                                                      : "  no CUDA device here (" + no_cuda + "): measured on the CPU backend");
    console.table({{"device", device.name},
                   {"threads", std::to_string(thread_count()) + " on the host"},
                   {"bandwidth", "copy " + number_text(copy_bandwidth_ / 1e9, 4) + " GB/s (read and written), read " +
                                     number_text(read_bandwidth_ / 1e9, 4) + " GB/s"}});
    if (context.backend() == Backend::cuda && !no_peers_.empty())
      console.line("  peers are left out: " + no_peers_);
    report_ = {{"poisson_version", POISSON_VERSION},
               {"bench", name_of(options.kind)},
               {"backend", name_of(context.backend())},
               {"device", device.name},
               {"threads", thread_count()},
               {"copy_bytes_per_second", copy_bandwidth_},
               {"read_bytes_per_second", read_bandwidth_},
               {"options",
                {{"slice_sizes", options.slice_sizes},
                 {"sigma", json_of(options.sigma)},
                 {"threads_per_row", options.threads_per_row},
                 {"samples", options.samples},
                 {"products", options.products}}},
               {"interrupted", false},
               {"matrices", json::array()}};
    if (!no_peers_.empty())
      report_["no_peers"] = no_peers_;
  }

  void measure(BenchSource const& source) {
    working("making " + source.name);
    Timer const timer;
    BenchMatrix const matrix = source.make(context_);
    context_.synchronize();
    double const seconds = timer.seconds();
    CsrView const& a = matrix.csr->view();
    console_.line();
    console_.line(source.name + ": " + with_thousands(a.n_rows) +
                  (a.n_rows == a.n_columns ? "" : " x " + with_thousands(a.n_columns)) + " rows, " + with_thousands(a.nnz) +
                  " non-zeros, " + bytes_text(static_cast<double>(matrix.csr->bytes())) + " in csr, made in " +
                  seconds_text(seconds));
    report_["matrices"].push_back({{"name", source.name},
                                   {"kind", source.kind},
                                   {"n_rows", a.n_rows},
                                   {"n_columns", a.n_columns},
                                   {"nnz", a.nnz},
                                   {"csr_bytes", matrix.csr->bytes()},
                                   {"make_seconds", seconds},
                                   {"results", json::array()},
                                   {"peers", json::array()},
                                   {"left_out", json::array()}});
    if (options_.kind == BenchKind::spmv)
      products(*matrix.csr);
    else
      conversions(matrix);
  }

  /// Over all matrices, how good `auto` was.
  void conclude() {
    if (excesses_.empty())
      return;
    auto const within = [&](double most) {
      return static_cast<int>(std::count_if(excesses_.begin(), excesses_.end(), [&](double e) { return e <= most; }));
    };
    double const mean = std::accumulate(excesses_.begin(), excesses_.end(), 0.0) / static_cast<double>(excesses_.size());
    double const worst = *std::max_element(excesses_.begin(), excesses_.end());
    report_["auto"] = {{"matrices", excesses_.size()},
                       {"fastest", within(0)},
                       {"within_5_percent", within(0.05)},
                       {"mean_excess", mean},
                       {"worst_excess", worst}};
    if (excesses_.size() == 1)
      return;
    console_.line();
    console_.line("auto took the fastest format for " + std::to_string(within(0)) + " of " + std::to_string(excesses_.size()) +
                  " matrices, and for " + std::to_string(within(0.05)) + " one within 5 % of it; on average " +
                  fixed(100 * mean, 1) + " % longer than the fastest, at worst " + fixed(100 * worst, 1) + " %");
  }

  json& report() { return report_; }
  [[nodiscard]] bool correct() const { return correct_; }

private:
  json& of_matrix() { return report_["matrices"].back(); }

  void working(std::string const& what) { console_.working(what); }

  void leave_out(std::string const& label, json row, std::string const& reason) {
    left_out_.push_back("  " + label + " is left out: " + reason);
    row["reason"] = reason;
    of_matrix()["left_out"].push_back(std::move(row));
  }

  void wrong(std::string const& what) {
    correct_ = false;
    console_.warning("WRONG RESULT: " + what + " (" + of_matrix()["name"].get<std::string>() + ")");
  }

  void show(std::vector<std::vector<std::string>> const& table) {
    console_.end_progress();
    console_.grid(table);
    for (std::string const& text : left_out_)
      console_.line(text);
    left_out_.clear();
  }

  /// What a format that does not hold the matrix, or finds no room for it, throws; anything else goes on its way.
  template <class Body>
  void unless_refused(std::string const& label, json const& row, Body const& body) {
    try {
      body();
    } catch (InputError const& error) {
      leave_out(label, row, error.what());
    } catch (EnvironmentError const& error) {
      leave_out(label, row, error.what());
    }
  }

  // --- products

  struct Measured {
    std::string label;
    Variant const* variant = nullptr;  ///< null: of a peer
    std::int64_t bytes = 0, bytes_per_product = 0;
    double conversion = 0;
    Seconds time;
  };

  void products(Csr const& csr) {
    CsrView const& a = csr.view();
    HostVector<double> const x_host = vector_of(a.n_columns);
    Array<double> const x(context_, std::span<double const>(x_host));
    Array<double> y(context_, a.n_rows);
    auto const& check = kernels_for<CheckKernels>(context_);
    auto const time = [&](std::string const& label, std::function<void()> const& product, double& error) {
      working("measuring " + label);
      Seconds const seconds = measure_seconds(context_, product, options_.samples);
      y.set_zero();
      product();
      error = check.largest_error(context_, a, x.data(), y.data());
      if (!(error <= largest_error))
        wrong(label + " gives a product that is off by " + number_text(error) + " of |A||x|");
      return seconds;
    };

    double error = 0;
    Seconds const csr_time = time(
        "csr", [&] { csr.product(1, x.data(), 0, y.data()); }, error);
    of_matrix()["csr_seconds"] = csr_time.median;
    std::vector<Measured> rows;
    std::vector<double> errors;
    double cusparse_seconds = std::nan("");
    auto const finish = [&] {  // also after an interrupt: what there is
      products_table(csr, rows, csr_time.median, cusparse_seconds);
      judge_auto(csr, rows);
      auto& results = of_matrix()["results"];
      for (std::size_t i = 0; i < results.size(); ++i)
        if (!std::isnan(cusparse_seconds))
          results[i]["speed_over_cusparse"] = cusparse_seconds / results[i]["seconds"].get<double>();
    };

    try {
      for (Variant const& variant : variants_)
        unless_refused(variant.label, json_of(variant), [&] {
          working("converting to " + variant.label);
          Measured row;
          row.label = variant.label;
          row.variant = &variant;
          if (context_.backend() == Backend::cpu && variant.format != Format::csr)
            require_room(context_, csr.bytes(), "one more matrix, about as large as csr,");
          auto const matrix =
              repeated([&] { return make_matrix(variant.format, csr, variant.options); }, conversion_seconds, row.conversion);
          if (matrix->row_not_finite >= 0)
            throw InputError("row " + std::to_string(matrix->row_not_finite) + " of the matrix holds a value that is not finite");
          if (shares_csr(variant.format))
            row.conversion = 0;
          row.bytes = matrix->bytes();
          row.bytes_per_product = matrix->bytes_per_product();
          row.time = time(
              row.label, [&] { matrix->product(1, x.data(), 0, y.data()); }, error);
          rows.push_back(row);
          json entry = json_of(variant);
          entry["padding_ratio"] = matrix->padding_ratio();
          add_result("results", std::move(entry), csr, row, csr_time.median, error);
        });
      if (context_.backend() == Backend::cuda && no_peers_.empty())
        for (auto const& [peer, name] : Names<Peer>::values)
          unless_refused(std::string(name), {{"peer", name}}, [&, peer = peer, name = name] {
            working("preparing " + std::string(name));
            Measured row;
            row.label = name;
            auto const product = repeated([&] { return make_peer(peer, context_, a, x.data(), y.data()); },
                                          [](PeerProduct const& made) { return made.setup_seconds; }, row.conversion);
            row.bytes = product->bytes;
            row.bytes_per_product = product->bytes + 8 * (a.n_rows + a.n_columns);
            row.time = time(
                row.label, [&] { product->product(); }, error);
            rows.push_back(row);
            if (peer == Peer::cusparse_csr_alg1)
              cusparse_seconds = row.time.median;
            add_result("peers", {{"peer", name}, {"workspace_bytes", product->workspace_bytes}}, csr, row, csr_time.median, error);
          });
    } catch (...) {
      finish();
      throw;
    }
    finish();
  }

  void add_result(char const* list, json entry, Csr const& csr, Measured const& row, double csr_seconds, double error) {
    double const seconds = row.time.median, nnz = static_cast<double>(csr.view().nnz);
    double const bytes_per_second = static_cast<double>(row.bytes_per_product) / seconds;
    entry.update({{"bytes", row.bytes},
                  {"share_of_csr", static_cast<double>(row.bytes) / static_cast<double>(csr.bytes())},
                  {"conversion_seconds", row.conversion},
                  {"seconds", seconds},
                  {"seconds_min", row.time.min},
                  {"samples", row.time.samples},
                  {"flops_per_second", 2 * nnz / seconds},
                  {"bytes_per_product", row.bytes_per_product},
                  {"bytes_per_second", bytes_per_second},
                  {"share_of_read_bandwidth", bytes_per_second / read_bandwidth_},
                  {"products_to_pay_back", payback(row, csr_seconds)},
                  {"error", error},
                  {"correct", error <= largest_error}});
    of_matrix()[list].push_back(std::move(entry));
  }

  /// Products after which the conversion has paid, against csr on the same backend; NaN: never.
  static double payback(Measured const& row, double csr_seconds) {
    if (row.conversion == 0)
      return 0;
    double const gain = csr_seconds - row.time.median;
    return gain > 0 ? std::ceil(row.conversion / gain) : std::nan("");
  }

  void products_table(Csr const& csr, std::vector<Measured> const& rows, double csr_seconds, double cusparse_seconds) {
    bool const peers = context_.backend() == Backend::cuda && no_peers_.empty();
    std::vector<std::vector<std::string>> table{
        {"format", "bytes", "% of csr", "convert ms", "product ms", "GFLOP/s", "GB/s", "% of read"}};
    if (peers)
      table[0].emplace_back("x cusparse");
    table[0].emplace_back("pays after");
    for (Measured const& row : rows) {
      double const seconds = row.time.median, bandwidth = static_cast<double>(row.bytes_per_product) / seconds;
      table.push_back({row.label, with_thousands(row.bytes),
                       fixed(100 * static_cast<double>(row.bytes) / static_cast<double>(csr.bytes()), 1),
                       milliseconds(row.conversion), milliseconds(seconds),
                       number_text(2e-9 * static_cast<double>(csr.view().nnz) / seconds, 4), number_text(bandwidth / 1e9, 4),
                       fixed(100 * bandwidth / read_bandwidth_, 1)});
      if (peers)
        table.back().push_back(std::isnan(cusparse_seconds) ? "-" : fixed(cusparse_seconds / seconds, 2));
      double const products = payback(row, csr_seconds);
      table.back().push_back(row.variant == nullptr || row.conversion == 0 ? "-"
                             : std::isnan(products)                        ? "never"
                                                                           : with_thousands(static_cast<std::int64_t>(products)));
    }
    if (rows.empty())
      table.clear();
    show(table);
  }

  // --- auto

  /// What `auto` takes of the formats that were measured, with the first slice size, and how much longer that took than the
  /// fastest.
  void judge_auto(Csr const& csr, std::vector<Measured> const& rows) {
    FormatOptions options = variants_.front().options;
    options.slice_size = options_.slice_sizes.front();
    auto const products = static_cast<double>(options_.products);
    auto const taken = [&](Measured const& row) { return row.conversion + products * row.time.median; };
    std::vector<Measured> own;
    for (Measured const& row : rows)
      if (row.variant != nullptr && (!is_sliced(row.variant->format) || row.variant->options.slice_size == options.slice_size))
        own.push_back(row);
    if (own.empty() || !options_.formats.empty())
      return;
    Timer const timer;
    FormatChoice const choice = choose_format(csr, options, context_.backend(), {products, copy_bandwidth_});
    double const seconds = timer.seconds();
    Measured const& fastest =
        *std::min_element(own.begin(), own.end(), [&](auto const& a, auto const& b) { return taken(a) < taken(b); });
    auto const found = std::find_if(own.begin(), own.end(), [&](auto const& row) { return row.variant->format == choice.format; });
    if (found == own.end())
      return;
    Measured const& chosen = *found;
    double const excess = taken(chosen) / taken(fastest) - 1;
    excesses_.push_back(excess);
    console_.line("  auto, " + with_thousands(options_.products) + " products: " + chosen.label +
                  (excess > 0 ? ", " + fixed(100 * excess, 1) + " % longer than " + fastest.label : ", the fastest") +
                  " (decided in " + seconds_text(seconds) + ")");
    json predicted = json::array();
    for (FormatEstimate const& e : choice.estimates)
      if (e.refusal.empty())
        predicted.push_back({{"format", name_of(e.format)},
                             {"bytes", e.bytes},
                             {"product_seconds", e.product_seconds},
                             {"conversion_seconds", e.conversion_seconds},
                             {"at_least", e.at_least}});
    of_matrix()["auto"] = {
        {"format", name_of(choice.format)}, {"fastest", name_of(fastest.variant->format)}, {"excess", excess},
        {"seconds", taken(chosen)},         {"fastest_seconds", taken(fastest)},           {"decision_seconds", seconds},
        {"predicted", std::move(predicted)}};
  }

  // --- conversions

  void conversions(BenchMatrix const& source) {
    std::unique_ptr<Context> host_context;
    std::shared_ptr<CsrMatrix const> host;
    std::unique_ptr<Csr> host_csr;
    std::vector<std::vector<std::string>> table{
        {"format", "% of csr: 1 thread", "threads", "device", "ms: 1 thread", "threads", "device", "back to csr"}};
    bool const on_device = context_.backend() == Backend::cuda;
    try {
      // On a device the matrix may be larger than the host holds; then only the device converts.
      if (!on_device || 3 * source.csr->bytes() < host_description().memory_free) {
        working("copying to the host");
        host_context = make_context(Backend::cpu);
        host = std::make_shared<CsrMatrix const>(source.csr->to_csr());
        host_csr = std::make_unique<Csr>(host, *host_context);
        coo_conversions(source, *host);
      } else
        console_.line(
            "  the matrix is too large for the host's memory: converted on the device only, and not compared on the way back");
      for (Variant const& variant : variants_)
        unless_refused(variant.label, json_of(variant), [&] {
          json entry = json_of(variant);
          std::vector<std::string> shares, times;
          std::string back = "-";
          for (Conversion const where : {Conversion::sequential, Conversion::host, Conversion::device}) {
            Csr const* const from = where == Conversion::device ? (on_device ? source.csr.get() : nullptr) : host_csr.get();
            if (from == nullptr) {
              shares.emplace_back("-");
              times.emplace_back("-");
              continue;
            }
            working("converting to " + variant.label + ", " + std::string(name_of(where)));
            ThreadCount const one_thread(where == Conversion::sequential ? 1 : options_.threads);
            FormatOptions options = variant.options;
            options.conversion = where;
            double seconds = 0;
            auto const matrix = repeated([&] { return make_matrix(variant.format, *from, options); }, conversion_seconds, seconds);
            if (shares_csr(variant.format))
              seconds = 0;
            double const share = static_cast<double>(matrix->bytes()) / static_cast<double>(source.csr->bytes());
            shares.push_back(fixed(100 * share, 2));
            times.push_back(milliseconds(seconds));
            json result{{"seconds", seconds}, {"bytes", matrix->bytes()}, {"share_of_csr", share}};
            if (host) {
              std::string const kept = what_is_kept(*host, matrix->to_csr(), variant.format);
              result["back_to_csr"] = kept;
              back = back == "-" || kept != "exact" ? kept : back;
              if (kept == "different")
                wrong(variant.label + ", converted by " + std::string(name_of(where)) + " and back to csr, is another matrix");
            }
            entry[std::string(name_of(where))] = std::move(result);
            if (interrupt_requested())
              throw Interrupted();
          }
          std::vector<std::string> row{variant.label};
          row.insert(row.end(), shares.begin(), shares.end());
          row.insert(row.end(), times.begin(), times.end());
          row.push_back(back);
          table.push_back(std::move(row));
          of_matrix()["results"].push_back(std::move(entry));
        });
    } catch (...) {
      show(table);
      throw;
    }
    show(table);
  }

  /// COO to CSR, on the host and where there is one on the device; both must give the matrix.
  void coo_conversions(BenchMatrix const& source, CsrMatrix const& csr) {
    CooMatrix made;
    if (!source.coo)
      made = coo_from_csr(csr);
    CooMatrix const& coo = source.coo ? *source.coo : made;
    working("converting from coo");
    auto const timed = [&](char const* where, auto const& convert, auto const& result) {
      double seconds = 0;
      auto const converted = repeated(
          [&] {
            struct Timed {
              decltype(convert()) matrix;
              double seconds;
            };
            context_.synchronize();
            Timer const timer;
            auto matrix = convert();
            context_.synchronize();
            double const taken = timer.seconds();
            return std::make_unique<Timed>(Timed{std::move(matrix), taken});
          },
          [](auto const& one) { return one.seconds; }, seconds);
      bool const same = same_bits(result(converted->matrix), csr);
      of_matrix()["coo_to_csr"][where] = {{"seconds", seconds}, {"correct", same}};
      if (!same)
        wrong(std::string("coo to csr on the ") + where + " gives another matrix");
      return seconds;
    };
    double const on_host = timed(
        "host", [&] { return csr_from_coo(coo); }, [](CsrMatrix const& matrix) -> CsrMatrix const& { return matrix; });
    std::string text = "  from coo to csr: " + seconds_text(on_host) + " on the host";
    if (context_.backend() == Backend::cuda)
      text += ", " +
              seconds_text(timed(
                  "device", [&] { return csr_from_coo(coo, context_); },
                  [](std::unique_ptr<Csr> const& matrix) { return matrix->to_csr(); })) +
              " on the device, its copying there included";
    console_.line(text);
  }

  static std::string what_is_kept(CsrMatrix const& before, CsrMatrix const& after, Format format) {
    if (same_bits(before, after))
      return "exact";
    return format == Format::half_cds && same_lower_triangle(before, after) ? "lower triangle" : "different";
  }

  /// The number of threads for a while.
  class ThreadCount {
  public:
    explicit ThreadCount(int n) : before_(thread_count()) { set_thread_count(n); }
    ThreadCount(ThreadCount const&) = delete;
    ThreadCount& operator=(ThreadCount const&) = delete;
    ~ThreadCount() { set_thread_count(before_); }

  private:
    int before_;
  };

  BenchOptions const& options_;
  Context& context_;
  Console& console_;
  std::vector<Variant> variants_;
  std::string no_peers_;
  double copy_bandwidth_ = 0, read_bandwidth_ = 0;
  json report_;
  std::vector<std::string> left_out_;
  std::vector<double> excesses_;  ///< of what `auto` took over the fastest, by matrix
  bool correct_ = true;
};

}  // namespace

ExitCode run_bench(BenchOptions const& options, Configuration const* problem, Console& console) {
  std::vector<BenchSource> const sources = bench_sources(options, problem);
  // The file is created now, so that a folder that is not there does not cost the measurements.
  std::optional<AtomicFile> file;
  if (!options.json.empty() && options.json != "-")
    file.emplace(options.json);

  set_thread_count(options.threads);
  std::string const no_cuda = options.backend == Backend::cpu ? "" : why_no_cuda();
  if (options.backend == Backend::cuda && !no_cuda.empty())
    throw EnvironmentError("backend cuda: " + no_cuda);
  bool const on_device = options.backend != Backend::cpu && no_cuda.empty();
  auto const context = make_context(on_device ? Backend::cuda : Backend::cpu);
  Bench bench(options, no_cuda, *context, console);

  auto const write_report = [&] {
    std::string const text = bench.report().dump(2, ' ', false, json::error_handler_t::replace) + "\n";
    if (options.json == "-")
      std::cout << text << std::flush;
    if (file) {
      FileBuffer buffer(file->temporary_path());
      buffer.sputn(text.data(), static_cast<std::streamsize>(text.size()));
      if (int const error = buffer.close(); error != 0)
        throw_write_error(options.json, error);
      file->commit();
    }
  };

  try {
    for (BenchSource const& source : sources) {
      if (interrupt_requested())
        throw Interrupted();
      bench.measure(source);
    }
    bench.conclude();
  } catch (Interrupted const&) {
    clear_interrupt();
    console.end_progress();
    bench.report()["interrupted"] = true;
    write_report();
    console.warning("interrupted: what was measured until then is told");
    return exit_not_converged;
  } catch (...) {
    console.end_progress();
    write_report();
    throw;
  }
  write_report();
  return bench.correct() ? exit_done : exit_not_converged;
}

}  // namespace poisson
