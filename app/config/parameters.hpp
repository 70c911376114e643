#pragma once

#include "app/config/config_tree.hpp"
#include "app/config/run_config.hpp"
#include "app/config/schema.hpp"

#include <map>
#include <string>

/// `parameters`: constants that every expression and every number of a configuration may use. Internal to the configuration.
namespace poisson::app::schema {

/// The value type of the key: a map from names to numbers, or to expressions in those before them.
struct Parameters {
  [[nodiscard]] std::string allowed() const { return "map from names to numbers, or to expressions in the names before"; }
  void read(YamlNode const& node, std::string const& path, std::map<std::string, double>& out) const;
  [[nodiscard]] std::string write(std::map<std::string, double> const& value) const;
  [[nodiscard]] Json json_schema() const;
};

/// The parameters of the tree. Throws ConfigError.
[[nodiscard]] std::map<std::string, double> values_of_parameters(YamlNode const& root);

/// Evaluates the parameters of the tree, if it has any, and tells them to all of its nodes. Throws ConfigError.
void set_parameters(YamlNode& root);

/// A warning for every parameter that nothing uses and that stands in the file `source` itself or was set; included files often
/// have more than one needs.
[[nodiscard]] std::vector<std::string> unused_parameters(YamlNode const& root, std::string const& source);

/// Removes the parameters that no expression of the configuration uses: its numbers are computed already. A sweep may change any,
/// and keeps them.
void drop_unused_parameters(RunConfig& config);

}  // namespace poisson::app::schema
