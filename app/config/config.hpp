#pragma once

#include "app/config/run_config.hpp"
#include "gpu/core/error.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace poisson::app {

struct YamlNode;

/// Something is wrong with the configuration. what() is the whole message for the user:
/// "FILE:LINE:COLUMN: key.path: what was found, what is allowed", or "--set key.path=value: key.path: ..."; key() is the key path.
class ConfigError : public InputError {
public:
  using InputError::InputError;
};

/// A configuration as read, complete and checked, which remembers where every value came from.
class Configuration {
public:
  [[nodiscard]] RunConfig const& config() const noexcept { return config_; }
  /// The text of the file, as it was when it was read; empty for a system from files.
  [[nodiscard]] std::string const& text() const noexcept { return text_; }

  /// The message for the user of an error from a lower layer: prefixed like a ConfigError's with the place in the file of the
  /// longest part of error.key() that the file (or --set) has. A ConfigError's own message comes back as it is.
  [[nodiscard]] std::string locate(InputError const& error) const;

  /// This configuration with "key.path=value" applied in order (the value is YAML; list elements as problem.boundary[0].value;
  /// maps that are missing are created), checked again as a whole. `origin` is how messages call such a setting.
  /// Throws ConfigError.
  [[nodiscard]] Configuration with(std::vector<std::string> const& sets, std::string_view origin = "--set") const;

private:
  friend Configuration parse_configuration(std::string_view, std::string const&, std::vector<std::string> const&);
  friend Configuration system_configuration(SystemSpec, std::vector<std::string> const&);
  Configuration(std::shared_ptr<YamlNode const> root, std::string name, std::optional<SystemSpec> system = {});

  std::shared_ptr<YamlNode const> root_;
  std::string name_, text_;
  RunConfig config_;
};

/// Reads a YAML file. problem.mesh.file is looked for relative to the current directory, then to the folder of the
/// configuration; output.directory defaults to results/NAME, NAME being the file's name without extension.
/// Throws ConfigError for everything that can be wrong, the file itself included; the first error found is reported.
[[nodiscard]] Configuration load_configuration(std::filesystem::path const& path, std::vector<std::string> const& sets = {});

/// The same from text; `name` stands for the file in messages and for NAME.
[[nodiscard]] Configuration parse_configuration(std::string_view text, std::string const& name,
                                                std::vector<std::string> const& sets = {});

/// The configuration of a system from files: defaults, and what `sets` ("key.path=value") say of matrix, solver, backend and
/// output. output.directory defaults to results/NAME, NAME being the matrix file's without .gz and its extension.
/// The files are not looked at. Throws ConfigError, also for keys that only a problem on a mesh has.
[[nodiscard]] Configuration system_configuration(SystemSpec system, std::vector<std::string> const& sets);

/// The reference configuration: every key with its default, and as comments meaning, unit and allowed values. It loads.
[[nodiscard]] std::string schema_text();

/// Every key with its effective value; loads again to the same RunConfig. Keys that do not apply (the cells of a mesh from a
/// file) are null. The text depends on the values only. Of a system from files: its files under `system`, and the keys it has.
[[nodiscard]] std::string resolved_yaml(RunConfig const& config);

/// The same configuration with absolute paths of the files that it reads, so that its resolved_yaml works from anywhere.
[[nodiscard]] RunConfig with_absolute_files(RunConfig config);

/// 16 hexadecimal digits that identify what a run computes: FNV-1a over the resolved text without output.directory, sweep and the
/// folders of files, and over the content of the mesh file or of the system's files.
[[nodiscard]] std::string fingerprint(RunConfig const& config);

}  // namespace poisson::app
