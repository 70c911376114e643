#include "app/config/parameters.hpp"

#include "app/config/schema.hpp"
#include "assembly/expression/expression.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace poisson::app::schema {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_letter_or_digit(char c) {
  return is_letter(c) || (c >= '0' && c <= '9');
}
bool is_name(std::string const& text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_letter_or_digit);
}

/// Adds the names that occur in a text.
void add_names(std::string const& text, std::set<std::string>& names) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t const begin = i;
    while (i < text.size() && is_letter_or_digit(text[i]))
      ++i;
    if (i > begin && is_letter(text[begin]))
      names.insert(text.substr(begin, i - begin));
    i = std::max(i, begin + 1);
  }
}
void add_names(YamlNode const& node, std::set<std::string>& names) {
  if (node.kind == YamlNode::Kind::scalar)
    add_names(node.text, names);
  for (auto const& item : node.items)
    add_names(item, names);
}

void tell(YamlNode& node, std::shared_ptr<assembly::Constants const> const& parameters) {
  node.parameters = parameters;
  for (auto& item : node.items)
    tell(item, parameters);
}

}  // namespace

void Parameters::read(YamlNode const& node, std::string const& path, std::map<std::string, double>& out) const {
  if (node.kind != YamlNode::Kind::map)
    reject_value(node, path, allowed());
  out.clear();
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    auto const& [name, origin] = node.keys[i];
    std::string const full = path + "." + name;
    if (!is_name(name))
      reject(origin, shorten(full), "a parameter has a name of letters, digits and '_', and begins with no digit");
    if (assembly::is_expression_name(name))
      reject(origin, full, "'" + name + "' has a meaning in every expression already; choose another name");
    YamlNode const& value = node.items[i];
    if (value.kind != YamlNode::Kind::scalar)
      reject_value(value, full, "number, or expression in the parameters before");
    try {
      assembly::Expression const expression(value.text, full, out);
      double const number = expression(0, 0, 0);
      if (!expression.is_constant() || !std::isfinite(number))
        reject(value.origin, full,
               "found " + found(value) + (expression.is_constant() ? ", which is not finite" : ", which depends on x, y or z") +
                   "; allowed: number, or expression in the parameters before");
      out[name] = number;
    } catch (ConfigError const&) {
      throw;
    } catch (InputError const& error) {
      std::set<std::string> names;
      add_names(value.text, names);
      for (std::size_t j = i; j < node.keys.size(); ++j)
        if (std::string const& later = node.keys[j].name; names.contains(later))
          reject(value.origin, full,
                 j == i ? "'" + name + "' is defined by itself; a parameter may use those before it"
                        : "'" + later + "' comes after '" + name + "'; a parameter may use those before it");
      reject(value.origin, full, error.what());
    }
  }
}

std::string Parameters::write(std::map<std::string, double> const& value) const {
  std::vector<std::string> entries;
  for (auto const& [name, number] : value)
    entries.push_back(name + ": " + Number{}.write(number));
  return "{" + join(entries) + "}";
}

Json Parameters::json_schema() const {
  return {{"type", "object"}, {"additionalProperties", ExpressionText{}.json_schema()}};
}

std::map<std::string, double> values_of_parameters(YamlNode const& root) {
  std::map<std::string, double> values;
  if (YamlNode const* const node = root.find("parameters"); node != nullptr && node->kind != YamlNode::Kind::null)
    Parameters{}.read(*node, "parameters", values);
  return values;
}

void set_parameters(YamlNode& root) {
  if (auto values = values_of_parameters(root); !values.empty())
    tell(root, std::make_shared<assembly::Constants const>(std::move(values)));
}

std::vector<std::string> unused_parameters(YamlNode const& root, std::string const& source) {
  YamlNode const* const node = root.find("parameters");
  std::vector<std::string> warnings;
  if (node == nullptr)
    return warnings;
  std::set<std::string> used;
  for (std::size_t i = 0; i < root.keys.size(); ++i)
    add_names(root.items[i], used);
  for (auto const& [name, origin] : node->keys)
    if (!used.contains(name) && (origin.line == 0 || *origin.source == source))
      warnings.push_back(origin.text() + ": parameters." + name +
                         ": nothing uses this parameter; remove it, or write its name in an expression or number");
  return warnings;
}

void drop_unused_parameters(RunConfig& config) {
  config.parameters = config.problem.parameters;
  for (auto const& axis : config.sweep.axes)
    if (axis.path.starts_with("parameters"))
      return;
  std::set<std::string> used;
  for (std::string const* const text : expressions_of(config))
    add_names(*text, used);
  std::erase_if(config.problem.parameters, [&](auto const& parameter) { return !used.contains(parameter.first); });
}

}  // namespace poisson::app::schema
