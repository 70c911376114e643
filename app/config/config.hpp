#pragma once

#include "app/config/run_config.hpp"
#include "gpu/core/error.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace poisson::app {

struct YamlNode;

/// An error in the configuration. what() is the complete message for the user:
/// "FILE:LINE:COLUMN: key.path: what was found, what is allowed", or "--set key.path=value: key.path: ..."; key() is the key path.
class ConfigError : public InputError {
public:
  using InputError::InputError;
};

/// A complete and checked configuration that knows the place in the file of every value.
class Configuration {
public:
  [[nodiscard]] RunConfig const& config() const noexcept { return config_; }
  /// The text of the file as read; empty for a system from files.
  [[nodiscard]] std::string const& text() const noexcept { return text_; }
  /// The text of the file, with what was set beside it (--set, values of a sweep's case) as comments at the end.
  [[nodiscard]] std::string text_with_sets() const;
  /// What is allowed, and probably a mistake; complete messages as those of ConfigError.
  [[nodiscard]] std::vector<std::string> const& warnings() const noexcept { return warnings_; }

  /// The message for the user for an error of a lower layer. Like a ConfigError it starts with a place: that of the longest prefix
  /// of the key path error.key() that the file or a --set has. The message of a ConfigError is returned unchanged.
  [[nodiscard]] std::string locate(InputError const& error) const;

  /// This configuration with settings "key.path=value" applied in order, and checked again. The value is YAML; list elements are
  /// written problem.boundary[0].value; missing maps are created. `origin` names the settings in messages. Throws ConfigError.
  [[nodiscard]] Configuration with(std::vector<std::string> const& sets, std::string_view origin = "--set") const;
  /// The same for a case of the sweep. Of `sweep` the axes that are set remain, each with its value (SweepAxis::of_case).
  [[nodiscard]] Configuration case_with(std::vector<std::string> const& sets) const;
  /// The same with another results directory, which is set like a value of the sweep.
  [[nodiscard]] Configuration in_directory(std::string const& directory) const;
  /// The parameters alone with those settings of them; takes far less time. Throws ConfigError.
  [[nodiscard]] std::map<std::string, double> parameters_with(std::vector<std::string> const& sets) const;

private:
  [[nodiscard]] Configuration changed(YamlNode root, std::vector<std::string> const& sets, std::string_view origin,
                                      SweepSpec of_case) const;
  friend Configuration parse_configuration(std::string_view, std::string const&, std::vector<std::string> const&);
  friend Configuration system_configuration(SystemSpec, std::vector<std::string> const&);
  /// `of_case`: the sweep that this is a case of.
  Configuration(std::shared_ptr<YamlNode const> root, std::string name, std::optional<SystemSpec> system = {},
                SweepSpec of_case = {});

  std::shared_ptr<YamlNode const> root_;
  std::string name_, text_;
  std::vector<std::string> sets_, warnings_;
  RunConfig config_;
};

/// What standard input is called in messages.
inline constexpr char const* stdin_name = "<stdin>";
/// The name of a configuration file without extension, by which its results are called; of standard input "stdin".
[[nodiscard]] std::string configuration_stem(std::string const& file);

/// Reads a YAML file, or standard input when the path is "-". problem.mesh.file is looked for relative to the current directory,
/// then to the folder of the configuration; output.directory defaults to results/NAME, NAME being the file's name without
/// extension. Throws ConfigError for the first error found, also where the file cannot be read; Interrupted while it waits for
/// standard input.
[[nodiscard]] Configuration load_configuration(std::filesystem::path const& path, std::vector<std::string> const& sets = {});

/// Reads a configuration from `text` as load_configuration reads it from a file. `name` replaces the file name in messages, and
/// NAME in the default of output.directory. Throws ConfigError.
[[nodiscard]] Configuration parse_configuration(std::string_view text, std::string const& name,
                                                std::vector<std::string> const& sets = {});

/// The configuration of a system from files: defaults, and settings `sets` ("key.path=value") of matrix, solver, backend and
/// output. output.directory defaults to results/NAME, NAME being the matrix file's without .gz and its extension.
/// The files are not read. Throws ConfigError, also for keys that apply only to a problem on a mesh.
[[nodiscard]] Configuration system_configuration(SystemSpec system, std::vector<std::string> const& sets);

/// The reference configuration: every key with its default, and as comments its meaning, unit and allowed values. It is a valid
/// configuration.
[[nodiscard]] std::string schema_text();
/// The part of it that is about one key or section, "solver.multigrid" or "problem.boundary.type", and what is below, in its place.
/// Throws InputError for a key that is unknown, with the one that was probably meant.
[[nodiscard]] std::string schema_text(std::string const& key);
/// The JSON Schema (draft 2020-12) of a configuration, for editors: names, types, allowed values, defaults, descriptions. It
/// knows hardly any conditions between keys. Its $id ends in the version of the program and a hash (64-bit FNV-1a, 16 hexadecimal
/// digits) of all but the descriptions, as JSON without white space: it changes with the keys, their types, values and defaults.
[[nodiscard]] std::string json_schema_text();

/// Every key with its effective value; reading it gives the same RunConfig. Keys that do not apply (such as the cells of a mesh
/// from a file) are null. For a system from files: its files under `system`, and the keys that apply.
[[nodiscard]] std::string resolved_yaml(RunConfig const& config);

/// Returns the configuration with absolute paths of the files that it reads, so that its resolved_yaml works from anywhere.
[[nodiscard]] RunConfig with_absolute_files(RunConfig config);

/// A hash (64-bit FNV-1a, 16 hexadecimal digits) that identifies what a run computes: of the resolved configuration without
/// output.directory, sweep, checkpoints and the directories of files, and of the content of the mesh file or of the system's files.
[[nodiscard]] std::string fingerprint(RunConfig const& config);
/// The same of what the solution depends on: without output and analyses.
[[nodiscard]] std::string problem_fingerprint(RunConfig const& config);
/// The keys of the mesh and its elements, as resolved_yaml writes them: runs with other texts have other meshes or other unknowns.
[[nodiscard]] std::string mesh_text(RunConfig const& config);
/// All that the matrix and what a solver makes of it may depend on: resolved_yaml without sources, the values of boundary
/// conditions, the exact solution, outputs and analyses, and without parameters that only these use; beside it when the files of
/// mesh and fields were written, and their sizes. Runs with equal texts have matrices with equal entries, if they have the same
/// AssemblyPlan.
[[nodiscard]] std::string matrix_text(RunConfig const& config);

}  // namespace poisson::app
