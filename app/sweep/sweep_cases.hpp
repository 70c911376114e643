#pragma once

#include "app/config/config.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// The cases of a sweep, and what they have left in their folders: DIR/cases/case_NUMBER_FINGERPRINT.
namespace poisson::app {

inline constexpr char const* cases_folder = "cases";
inline constexpr char const* case_log = "log.txt";  ///< what a case's process says, in its folder; see exit_code_text

/// A case of a sweep.
struct SweepCase {
  std::vector<std::string> values;  ///< one per axis
  std::size_t sample = 0;           ///< its number in the plan of sweep.sample
  std::string fingerprint;
  std::string directory;                       ///< relative to the sweep's; empty without a configuration, or where it is left out
  std::optional<Configuration> configuration;  ///< none where the values give no valid one; `error` says why
  std::string error;                           ///< why there is no result
  std::string writer;                          ///< the process that runs it now, of a sweep that is collected
  int exit_code = -1;                          ///< -1: not run
  bool reused = false;
  bool left_out = false;  ///< `sweep.until` needs no mesh as fine as this one; its exit code is 0
  double seconds = 0;
  nlohmann::ordered_json result;  ///< result.json, or null
};

/// The cases of `sweep`, numbered from 0: what its groups make of the values of its axes, and `when` keeps. Throws InputError
/// where there is nothing to sweep over, or no case is valid.
[[nodiscard]] std::vector<SweepCase> sweep_cases(Configuration const& configuration);
struct NumberedCase {
  std::size_t number, of;  ///< and how many there are
  SweepCase sweep_case;
};
/// The case of this name, its number or the name of its folder, valid or not; takes far less time than all of them. Throws
/// InputError where there is none, also where a folder's name is of another configuration.
[[nodiscard]] NumberedCase sweep_case(Configuration const& configuration, std::string const& name);

/// Whether two axes change together: they are in one zip.
[[nodiscard]] bool change_together(SweepGroup const& group, std::size_t a, std::size_t b);

/// The number that the text of a value is, or of a list of equal numbers, as those of a cube's cells.
[[nodiscard]] std::optional<double> number_of_value(std::string text);
/// A number of a record; NaN where it has none there.
[[nodiscard]] double number_in(nlohmann::ordered_json const& result, char const* pointer);
/// A value of a record as text; empty where it has none there.
[[nodiscard]] std::string text_in(nlohmann::ordered_json const& result, char const* pointer);
/// The last word of a key path.
[[nodiscard]] std::string short_name(std::string const& path);
/// The text of a value in a table: one that the file does not list has six digits.
[[nodiscard]] std::string shown_value(SweepAxis const& axis, std::string const& value);
/// "cells = [8, 8, 8], order = 2"
[[nodiscard]] std::string values_text(SweepCase const& c, std::vector<SweepAxis> const& axes);
/// Numbers that increase as "0,3-5", which is also how Slurm takes those of an array.
[[nodiscard]] std::string ranges_text(std::vector<std::size_t> const& numbers);
/// The name of a case's folder.
[[nodiscard]] std::string name_of_case(SweepCase const& c);
/// Whether the sweep has analyses of the solutions of all its cases, which have to be kept for them.
[[nodiscard]] bool has_snapshots(RunConfig const& config);

/// Takes over the results of cases that an earlier run has finished in the sweep's directory `root`, whatever their number was.
void reuse_finished(std::span<SweepCase> cases, std::filesystem::path const& root);
/// The last line of a case's log: that its process has ended, and how.
[[nodiscard]] std::string exit_code_text(int code);
/// What a case's process has left that ended with this code: its record, or why there is none.
void take_result(SweepCase& c, int exit_code, std::filesystem::path const& root);
/// What all cases have left, whichever processes ran them, or run them now. Returns the names of folders that belong to no case.
[[nodiscard]] std::vector<std::string> collect_cases(std::vector<SweepCase>& cases, std::filesystem::path const& root);

}  // namespace poisson::app
