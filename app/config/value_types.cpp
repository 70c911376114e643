#include "app/config/value_types.hpp"

#include <algorithm>

namespace poisson::app::schema {

bool is_plain_name(std::string const& text) {
  auto const letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && text.size() <= 60 && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void Step::read(YamlNode const& node, std::string const& path, std::int64_t& out) const {
  bool const scalar = node.kind == YamlNode::Kind::scalar;
  if (scalar && !node.quoted && node.text == "last")
    out = -1;
  else if (scalar && !node.text.empty() && node.text.find_first_not_of("0123456789") == std::string::npos)
    number.read(node, path, out);
  else
    reject_value(node, path, "auto; or " + allowed());
}

void PlainName::read(YamlNode const& node, std::string const& path, std::string& out) const {
  if (node.kind != YamlNode::Kind::scalar || !is_plain_name(node.text))
    reject_value(node, path, allowed());
  out = node.text;
}

}  // namespace poisson::app::schema
