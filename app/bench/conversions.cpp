#include "app/bench/session.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"

#include <cstring>
#include <utility>

namespace poisson::app {

namespace {

using json = nlohmann::ordered_json;

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

class ConversionBench final : public Benchmark {
public:
  ConversionBench(BenchOptions const& options, BenchSession& session)
      : options_(options), session_(session), variants_(variants(options)) {}

  void measure(BenchSource const&, BenchMatrix const& source) override {
    std::unique_ptr<Context> host_context;
    std::shared_ptr<CsrMatrix const> host;
    std::unique_ptr<Csr> host_csr;
    std::vector<std::vector<std::string>> table{
        {"format", "% of csr: 1 thread", "threads", "device", "ms: 1 thread", "threads", "device", "back to csr"}};
    bool const on_device = session_.context.backend() == Backend::cuda;
    try {
      // On a device the matrix may be larger than the host holds; then only the device converts.
      if (!on_device || 3 * source.csr->bytes() < cpu_description().memory_free) {
        session_.working("copying to the host");
        host_context = make_context(Backend::cpu);
        host = std::make_shared<CsrMatrix const>(source.csr->to_csr());
        host_csr = std::make_unique<Csr>(host, *host_context);
        coo_conversions(source, *host);
      } else
        session_.console.line(
            "  the matrix is too large for the host's memory: converted on the device only, and not compared on the way back");
      for (Variant const& variant : variants_)
        session_.unless_refused(variant.label, json_of(variant), [&] {
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
            session_.working("converting to " + variant.label + ", " + std::string(name_of(where)));
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
                session_.wrong(variant.label + ", converted by " + std::string(name_of(where)) +
                               " and back to csr, is another matrix");
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
          session_.of_matrix()["results"].push_back(std::move(entry));
        });
    } catch (...) {
      session_.show(table);
      throw;
    }
    session_.show(table);
  }

private:
  /// COO to CSR, on the host and where there is one on the device; both must give the matrix.
  void coo_conversions(BenchMatrix const& source, CsrMatrix const& csr) {
    CooMatrix made;
    if (!source.coo)
      made = coo_from_csr(csr);
    CooMatrix const& coo = source.coo ? *source.coo : made;
    session_.working("converting from coo");
    auto const timed = [&](char const* where, auto const& convert, auto const& result) {
      double seconds = 0;
      auto const converted = repeated(
          [&] {
            struct Timed {
              decltype(convert()) matrix;
              double seconds;
            };
            session_.context.synchronize();
            Timer const timer;
            auto matrix = convert();
            session_.context.synchronize();
            double const elapsed = timer.seconds();
            return std::make_unique<Timed>(Timed{std::move(matrix), elapsed});
          },
          [](auto const& one) { return one.seconds; }, seconds);
      bool const same = same_bits(result(converted->matrix), csr);
      session_.of_matrix()["coo_to_csr"][where] = {{"seconds", seconds}, {"correct", same}};
      if (!same)
        session_.wrong(std::string("coo to csr on the ") + where + " gives another matrix");
      return seconds;
    };
    double const on_host = timed(
        "host", [&] { return csr_from_coo(coo); }, [](CsrMatrix const& matrix) -> CsrMatrix const& { return matrix; });
    std::string text = "  from coo to csr: " + seconds_text(on_host) + " on the host";
    if (session_.context.backend() == Backend::cuda)
      text += ", " +
              seconds_text(timed(
                  "device", [&] { return csr_from_coo(coo, session_.context); },
                  [](std::unique_ptr<Csr> const& matrix) { return matrix->to_csr(); })) +
              " on the device, its copying there included";
    session_.console.line(text);
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
    ~ThreadCount() { set_thread_count_or_one(before_); }

  private:
    int before_;
  };

  BenchOptions const& options_;
  BenchSession& session_;
  std::vector<Variant> variants_;
};

}  // namespace

std::unique_ptr<Benchmark> make_conversion_bench(BenchOptions const& options, BenchSession& session) {
  return std::make_unique<ConversionBench>(options, session);
}

}  // namespace poisson::app
