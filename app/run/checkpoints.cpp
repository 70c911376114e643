#include "app/run/checkpoints.hpp"

#include "app/config/config.hpp"
#include "app/io/results_directory.hpp"
#include "app/results/versions.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/input_file.hpp"
#include "output/files/directory_lock.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <new>
#include <numeric>
#include <sstream>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

std::string program_text() {
  return POISSON_VERSION " " + std::string(commit_of_build());
}

std::string text_of(fs::path const& file) {
  std::ifstream in = open_regular_file(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The record of a run of ours in the folder; null without one.
nlohmann::json record_in(fs::path const& folder) {
  auto record = nlohmann::json::parse(text_of(folder / "result.json"), nullptr, false);
  return record.is_object() && record.contains("poisson_version") ? record : nlohmann::json();
}

/// The exit code of the run that wrote the record, if it has come to its end and its files are there.
std::optional<ExitCode> end_of(nlohmann::json const& record, fs::path const& folder) {
  int const code = record.value("exit_code", -1);
  if (record.value("status", "interrupted") == "interrupted" || (code != exit_done && code != exit_not_converged))
    return std::nullopt;
  for (auto const& name : record.value("files", nlohmann::json::array()))
    if (std::error_code ignored; !name.is_string() || !fs::exists(folder / name.get<std::string>(), ignored))
      return std::nullopt;
  return static_cast<ExitCode>(code);
}

/// What is wrong with the pieces of a checkpoint, which the ranks share out; empty: nothing. Collective.
std::string damage_of_pieces(fs::path const& folder, CheckpointManifest const& manifest, Team& team) {
  std::string damage;
  team.together([&] {
    for (std::size_t i = 0; i < manifest.pieces.size() && damage.empty(); ++i)
      if (i % static_cast<std::size_t>(team.size()) == static_cast<std::size_t>(team.rank()))
        damage = damage_of(piece_file(folder, manifest.number, static_cast<std::int64_t>(i)), manifest.pieces[i]);
  });
  return first_message(team.communicator(), damage);
}

}  // namespace

EarlierRun find_earlier_run(RunConfig const& config, RunOptions const& options, bool own_folder, Team& team) {
  EarlierRun result;
  result.is_asked_for = options.resume && !own_folder;
  fs::path const results = config.output.directory, folder = results / checkpoint_folder;
  std::string found;
  team.on_first([&] {
    // Somebody else's are left to the lock, which tells whose they are.
    bool const busy = !output::writer_of(results).empty();
    std::vector<std::int64_t> const numbers = busy ? std::vector<std::int64_t>{} : checkpoints_in(folder);
    if (!options.resume) {
      if (!numbers.empty() && !options.overwrite && !own_folder)
        throw InputError("output.directory",
                         "'" + results.string() +
                             "' holds a checkpoint of a run that did not end; go on with it by --resume, choose "
                             "another with --output DIR, or begin anew with --overwrite");
      return;
    }
    for (std::int64_t const number : numbers)
      found += std::to_string(number) + " ";
    if (own_folder || busy || !numbers.empty()) {
      result.goes_on = true;
      return;
    }
    nlohmann::json const record = record_in(results);
    result.goes_on = record.is_null();
    if (!record.is_null() && record.value("fingerprint", "") == fingerprint(config)) {
      result.goes_on = true;
      result.finished = end_of(record, results);
    }
  });
  if (!options.resume)
    return result;
  auto flags = std::array<int, 2>{result.goes_on ? 1 : 0, result.finished ? static_cast<int>(*result.finished) : -1};
  flags = of_first(team.communicator(), flags);
  result.goes_on = flags[0] != 0;
  if (flags[1] >= 0)
    result.finished = static_cast<ExitCode>(flags[1]);

  std::string problem;
  team.together([&] { problem = problem_fingerprint(config); });
  std::istringstream numbers(team.of_first(found));
  for (std::int64_t number = 0; numbers >> number;) {
    std::string text, damage;
    team.on_first([&] { text = text_of(manifest_file(folder, number)); });
    text = team.of_first(text);
    std::optional<CheckpointManifest> manifest;
    try {
      manifest = CheckpointManifest::from(text);
    } catch (InputError const& error) {
      damage = "'" + manifest_file(folder, number).string() + "': " + error.what();
    }
    if (manifest && manifest->problem != problem) {
      if (own_folder)  // of a sweep, whose folder has another case now
        return result;
      throw InputError("output.directory", "the checkpoint in '" + folder.string() +
                                               "' is of another configuration; give the one that it is of, choose another "
                                               "directory with --output DIR, or begin anew with --overwrite");
    }
    if (manifest)
      damage = damage_of_pieces(folder, *manifest, team);
    if (damage.empty()) {
      result.checkpoint = std::move(manifest);
      return result;
    }
    result.damaged.push_back(damage);
  }
  if (!result.damaged.empty() && !own_folder) {
    std::string all;
    for (std::string const& damage : result.damaged)
      all += (all.empty() ? "" : "; ") + damage;
    throw InputError("output.directory", "no checkpoint in '" + folder.string() + "' can be used, since they are damaged: " + all +
                                             "; begin anew with --overwrite");
  }
  return result;
}

void tell_finished(RunConfig const& config, Console& console) {
  console.line("'" + config.output.directory +
               "' holds the finished results of this configuration, and nothing is left to do; --overwrite runs it again");
}

RunOptions options_after(RunOptions options, EarlierRun const& earlier) {
  options.overwrite = options.overwrite || earlier.goes_on;
  return options;
}

Checkpoints::Checkpoints(RunConfig const& config, EarlierRun earlier, fs::path const& results, Team& team, RunLog& log)
    : config_(config), team_(team), log_(log), folder_(results / checkpoint_folder), earlier_(std::move(earlier.checkpoint)) {
  if (earlier.is_asked_for && !earlier_)
    log.console.line("no checkpoint in '" + results.string() + "': the run begins at its beginning");
  for (std::string const& damage : earlier.damaged)
    log.warn("a checkpoint is damaged, and not used: " + damage);
  if (earlier_) {
    kept_ = {earlier_->number};
    next_ = earlier_->number + std::ssize(earlier.damaged) + 1;
  }
  team.on_first([&] { remove_checkpoints(folder_, kept_); });
  if (are_used())
    team.together([&] { problem_ = problem_fingerprint(config); });
}

std::vector<std::int64_t> Checkpoints::row_numbers() const {
  std::vector<std::int64_t> numbers = numbers_ ? numbers_() : std::vector<std::int64_t>{};
  bool in_order = true;
  for (std::size_t i = 0; i < numbers.size() && in_order; ++i)
    in_order = numbers[i] == first_row_ + static_cast<std::int64_t>(i);
  return in_order ? std::vector<std::int64_t>{} : numbers;
}

/// x of the checkpoint in own rows; nothing where not all of them are in it.
std::optional<std::vector<double>> Checkpoints::saved_solution(std::int64_t rows) const {
  std::vector<std::int64_t> numbers = row_numbers();
  if (numbers.empty()) {
    numbers.resize(static_cast<std::size_t>(rows));
    std::iota(numbers.begin(), numbers.end(), first_row_);
  }
  std::vector<double> x(numbers.size());
  std::int64_t n_found = 0;
  team_.together([&] {
    std::vector<std::int32_t> order(numbers.size());
    std::iota(order.begin(), order.end(), 0);
    auto const number_of = [&](std::int32_t row) { return numbers[static_cast<std::size_t>(row)]; };
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return number_of(a) < number_of(b); });
    std::int64_t first = 0;
    for (std::size_t i = 0; i < earlier_->pieces.size(); ++i) {
      PieceReader piece(piece_file(folder_, earlier_->number, static_cast<std::int64_t>(i)));
      piece.for_rows(first, [&](std::int64_t number, double value) {
        auto const row = std::lower_bound(order.begin(), order.end(), number,
                                          [&](std::int32_t r, std::int64_t wanted) { return number_of(r) < wanted; });
        if (row == order.end() || number_of(*row) != number)
          return;
        x[static_cast<std::size_t>(*row)] = value;
        ++n_found;
      });
      first += piece.rows();
    }
  });
  std::int64_t saved_rows = 0;
  for (CheckpointPiece const& piece : earlier_->pieces)
    saved_rows += piece.rows;
  bool const fits = n_found == rows && saved_rows == sum_over(team_.communicator(), rows);
  return any_of_ranks(team_.communicator(), !fits) ? std::nullopt : std::optional(std::move(x));
}

std::optional<Array<double>> Checkpoints::begin_solve(Context& context, std::int64_t rows,
                                                      std::function<std::vector<std::int64_t>()> const& numbers) {
  ++solve_;
  numbers_ = numbers;
  rows_ = rows;
  auto const rows_of = gather(team_.communicator(), rows);
  first_row_ = std::accumulate(rows_of.begin(), rows_of.begin() + team_.rank(), std::int64_t{0});
  backend_ = name_of(context.backend());
  last_iteration_ = 0;
  is_saved_ = false;
  reader_.reset();
  if (!earlier_ || earlier_->solve != solve_)
    return std::nullopt;
  auto const& pieces = earlier_->pieces;
  std::string why = std::ssize(pieces) != team_.size() ? std::to_string(pieces.size()) + (pieces.size() == 1 ? " rank" : " ranks")
                    : earlier_->backend != backend_    ? "the backend " + earlier_->backend
                    : earlier_->program != program_text() ? "another version of the program"
                                                          : "";
  if (why.empty() && any_of_ranks(team_.communicator(), pieces[static_cast<std::size_t>(team_.rank())].rows != rows))
    why = "another division of the rows";
  std::optional<Array<double>> start;
  log_.record.resumed = ResumedSolve{earlier_->iteration, why.empty()};
  std::string const at = "the checkpoint at iteration " + std::to_string(earlier_->iteration);
  if (why.empty()) {
    team_.together([&] { reader_.emplace(piece_file(folder_, earlier_->number, team_.rank())); });
    last_iteration_ = earlier_->iteration;
    is_saved_ = true;
    log_.console.line("    goes on from " + at);
  } else if (auto const x = config_.solver.to_discretization ? std::nullopt : saved_solution(rows)) {
    start.emplace(context, std::span<double const>(*x));
    log_.warn(at + " is of " + why + ": its solution is where new iterations begin");
  } else {
    log_.record.resumed.reset();
    log_.warn(at + " is of " + why + ", and does not serve this run: iterations begin anew");
  }
  earlier_.reset();
  last_ = Clock::now();
  return start;
}

bool Checkpoints::is_due(std::int64_t iteration, bool ends) {
  CheckpointSpec const& spec = config_.checkpoint;
  // What there is of a later solve is not to be lost.
  if (!spec.is_asked() || earlier_)
    return false;
  bool const by_time = spec.every && std::chrono::duration<double>(Clock::now() - last_).count() >= *spec.every;
  bool const asked = any_of_ranks(team_.communicator(), by_time || checkpoint_is_asked());
  bool const by_count = spec.iterations > 0 && iteration - last_iteration_ >= spec.iterations;
  bool const is_new = !is_saved_ || iteration > last_iteration_;
  if (asked && !is_new)
    forget_asked_checkpoint();
  return (asked || by_count || ends) && is_new;
}

void Checkpoints::save(std::int64_t iteration, double relative_residual, Write const& solution, Write const& state) {
  forget_asked_checkpoint();
  last_iteration_ = iteration;
  reader_.reset();
  std::int64_t const number = next_++;
  std::string failure;
  try {
    CheckpointPiece piece;
    std::vector<std::int64_t> numbers;
    team_.on_first([&] {
      std::error_code error;
      if (fs::create_directory(folder_, error); error)
        throw EnvironmentError("cannot create '" + folder_.string() + "': " + error.message());
    });
    team_.together([&] { numbers = row_numbers(); });
    team_.together([&] {
      PieceWriter writer(piece_file(folder_, number, team_.rank()));
      writer.begin(rows_, numbers);
      solution(writer);
      state(writer);
      piece = writer.commit();
    });
    CheckpointManifest manifest{number, problem_, program_text(), backend_, solve_, iteration, relative_residual};
    auto const rows = gather(team_.communicator(), piece.rows), bytes = gather(team_.communicator(), piece.bytes);
    auto const checksums = gather_texts(team_.communicator(), piece.checksum);
    for (std::size_t i = 0; i < rows.size(); ++i)
      manifest.pieces.push_back({rows[i], bytes[i], checksums[i]});
    team_.on_first([&] {
      output::sync_directory(folder_);  // the names of the pieces are on disk before that which names them
      output::write_text_file(manifest_file(folder_, number), manifest.text());
      output::sync_directory(folder_);
    });
    kept_.push_back(number);
    is_saved_ = true;
    if (kept_.size() > 2)
      kept_.erase(kept_.begin());
    log_.console.end_progress();
    log_.console.line("    checkpoint at iteration " + std::to_string(iteration));
  } catch (EnvironmentError const& error) {
    if (!team_.agreed())
      throw;
    team_.caught();
    failure = error.what();
  } catch (std::bad_alloc const&) {
    if (!team_.agreed())
      throw;
    team_.caught();
    failure = "out of memory";
  }
  team_.on_first([&] { remove_checkpoints(folder_, kept_); });
  if (!failure.empty() && failure != told_) {
    log_.console.end_progress();
    log_.warn("a checkpoint at iteration " + std::to_string(iteration) + " could not be written, and the run goes on: " + failure);
  }
  told_ = failure;
  last_ = Clock::now();
}

void Checkpoints::end(ExitCode code) {
  if (code == exit_done || code == exit_not_converged)
    team_.on_first([&] { remove_checkpoints(folder_); });
}

}  // namespace poisson::app
