#include "app/bench/session.hpp"

#include "app/launch/backend_choice.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/formats/registry.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/measure.hpp"
#include "gpu/peers/peers.hpp"
#include "output/files/atomic_file.hpp"

#include <cmath>
#include <iostream>
#include <optional>
#include <utility>

namespace poisson::app {

using json = nlohmann::ordered_json;

BenchSession::BenchSession(std::string const& name, BenchTarget const& target, std::string const& no_cuda, Context& where,
                           Console& out, Team& ranks_of_it)
    : context(where),
      console(out),
      team(ranks_of_it),
      ranks(ranks_of_it.communicator()),
      measures_peers(ranks.is_alone()),
      no_peers(!measures_peers                    ? "other libraries are measured on one rank only"
               : where.backend() == Backend::cuda ? why_no_peers()
                                                  : no_cuda) {
  auto const measured = [&](auto const& measure) {  // by all at the same time, since they may share memory
    ranks.barrier();
    return sum_over(ranks, measure(context));
  };
  copy_bandwidth = measured([](Context& c) { return measure_copy_bandwidth(c); });
  read_bandwidth = measured([](Context& c) { return measure_read_bandwidth(c); });
  DeviceDescription const device = context.description();
  console.line("poisson " POISSON_VERSION ": bench " + name + team.on_ranks());
  if (context.backend() == Backend::cpu)
    console.line(target.backend || no_cuda.empty() ? "  measured on the CPU backend"
                                                   : "  no CUDA device here (" + no_cuda + "): measured on the CPU backend");
  console.table({{"device", device.name},
                 {"threads", std::to_string(thread_count()) + " on the host" + (measures_peers ? "" : " for each rank")},
                 {"bandwidth", "copy " + number_text(copy_bandwidth / 1e9, 4) + " GB/s (read and written), read " +
                                   number_text(read_bandwidth / 1e9, 4) + " GB/s"}});
  if (no_peers != no_cuda)
    console.line("  peers are left out: " + no_peers);
  report = {{"poisson_version", POISSON_VERSION},
            {"bench", name},
            {"backend", name_of(context.backend())},
            {"device", device.name},
            {"ranks", team.size()},
            {"threads", thread_count()},
            {"copy_bytes_per_second", copy_bandwidth},
            {"read_bytes_per_second", read_bandwidth},
            {"interrupted", false},
            {"matrices", json::array()}};
  if (!no_peers.empty())
    report["no_peers"] = no_peers;
}

void BenchSession::leave_out(std::string const& label, json row, std::string const& reason) {
  left_out_.push_back("  " + label + " is left out: " + reason);
  row["reason"] = reason;
  of_matrix()["left_out"].push_back(std::move(row));
}

void BenchSession::wrong(std::string const& what) {
  correct = false;
  console.warning("WRONG RESULT: " + what + " (" + of_matrix()["name"].get<std::string>() + ")");
}

void BenchSession::show(std::vector<std::vector<std::string>> const& table) {
  console.end_progress();
  if (table.size() > 1)
    console.grid(table);
  for (std::string const& text : left_out_)
    console.line(text);
  left_out_.clear();
}

ExitCode run_benchmark(std::string const& name, BenchTarget const& target, Console& console,
                       std::function<void(BenchSession&)> const& body, Team& team) {
  // The file is created now, so that a folder that is not there does not cost the measurements.
  bool const is_first = team.is_first();
  std::optional<output::AtomicFile> file;
  team.together([&] {
    if (is_first && !target.json.empty() && target.json != "-")
      file.emplace(target.json);
  });

  team.together([&] { set_thread_count(target.threads); });
  BackendChoice const choice = choose_backend(target.backend, team);
  std::unique_ptr<Context> context;
  team.together([&] { context = make_context(choice.backend, choice.device); });
  BenchSession session(name, target, choice.no_cuda, *context, console, team);

  auto const write_report = [&] {
    std::string const text = session.report.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
    if (is_first && target.json == "-")
      std::cout << text << std::flush;
    if (file) {
      output::FileBuffer buffer(file->temporary_path());
      buffer.sputn(text.data(), static_cast<std::streamsize>(text.size()));
      if (int const error = buffer.close(); error != 0)
        output::throw_write_error(target.json, error);
      file->commit();
    }
  };

  try {
    body(session);
  } catch (Interrupted const&) {  // with ranks thrown on all
    share_interrupt(team.communicator());
    clear_interrupt();
    console.end_progress();
    session.report["interrupted"] = true;
    write_report();
    console.warning("interrupted: what was measured until then is told");
    return interrupted_code();
  } catch (...) {
    console.end_progress();
    write_report();
    throw;
  }
  write_report();
  return session.correct ? exit_done : exit_not_converged;
}

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
    if (format == Format::matrix_free)
      continue;
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

json json_of(Variant const& variant) {
  json row{{"format", name_of(variant.format)}};
  if (is_sliced(variant.format))
    row.update({{"slice_size", variant.options.slice_size},
                {"sigma", variant.options.sigma ? json(*variant.options.sigma) : json()}});  // null: the format's own
  return row;
}

double conversion_seconds(Matrix const& matrix) {
  return matrix.convert_seconds + matrix.transfer_seconds;
}

FormatChoice choice_of_auto(Csr const& csr, BenchOptions const& options, double products, BenchSession& session) {
  FormatOptions format_options;
  format_options.slice_size = options.slice_sizes.front();
  format_options.sigma = options.sigma;
  format_options.threads_per_row = options.threads_per_row;
  FormatChoice choice;
  session.team.on_first([&] {
    choice =
        choose_format(csr, format_options, session.context.backend(), {products, session.copy_bandwidth / session.team.size()});
  });
  choice.format = of_first(session.ranks, choice.format);
  return choice;
}

Converted convert(BenchMatrix const& matrix, Variant const& variant, BenchSession& session) {
  Csr const& csr = *matrix.csr;
  Format const format = csr.n_rows() == 0 ? Format::csr : variant.format;
  Converted result;
  std::unique_ptr<Matrix> local;
  session.working("converting to " + variant.label);
  session.team.together([&] {
    if (session.context.backend() == Backend::cpu && !shares_csr(format))
      require_memory(session.context, csr.bytes(), "one more matrix, about as large as csr,");
    local = repeated([&] { return make_matrix(format, csr, variant.options); }, conversion_seconds, result.seconds);
  });
  result.seconds = shares_csr(variant.format) && variant.options.precision == MatrixPrecision::double_
                       ? 0
                       : max_over(session.ranks, result.seconds);
  result.padding_ratio = local->padding_ratio();
  if (any_of_ranks(session.ranks, result.padding_ratio != of_first(session.ranks, result.padding_ratio))) {
    auto const entries = static_cast<double>(csr.view().nnz);  // of this rank
    result.padding_ratio = sum_over(session.ranks, result.padding_ratio * entries) / sum_over(session.ranks, entries);
  }
  result.matrix =
      std::make_unique<SharedMatrix>(session.team, RankRows{matrix.rows.neighbors, nullptr}, matrix.rows.split, std::move(local));
  result.bytes = sum_over(session.ranks, result.matrix->bytes());
  return result;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string milliseconds(double seconds) {
  return std::isnan(seconds) ? "-" : number_text(1e3 * seconds, 4);
}

}  // namespace poisson::app
