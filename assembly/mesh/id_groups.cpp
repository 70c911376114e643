#include "assembly/mesh/id_groups.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace poisson::assembly {

void IdGroups::add(IdGroup group) {
  auto const place = std::find_if(list_.begin(), list_.end(), [&](IdGroup const& other) { return other.id >= group.id; });
  auto const known =
      std::find_if(place, list_.end(), [&](IdGroup const& other) { return other.id == group.id && other.name == group.name; });
  if (known != list_.end())
    known->parts.merge(group.parts);
  else
    list_.insert(place, std::move(group));
}

bool IdGroups::has_name(std::string_view name) const {
  return std::any_of(list_.begin(), list_.end(), [&](IdGroup const& group) { return group.name == name; });
}

bool IdGroups::has_id(unsigned id) const {
  return std::any_of(list_.begin(), list_.end(), [&](IdGroup const& group) { return group.id == id; });
}

std::set<std::string> IdGroups::names() const {
  std::set<std::string> result;
  for (IdGroup const& group : list_)
    if (!group.name.empty())
      result.insert(group.name);
  return result;
}

std::set<unsigned> IdGroups::with_name(std::string_view name) const {
  std::set<unsigned> result;
  for (IdGroup const& group : list_)
    if (group.name == name)
      result.insert(group.parts.begin(), group.parts.end());
  return result;
}

std::set<unsigned> IdGroups::with_id(unsigned id, std::set<unsigned> const& all) const {
  std::set<unsigned> result;
  for (IdGroup const& group : list_)
    if (group.id == id)
      result.insert(group.parts.begin(), group.parts.end());
  if (!has_id(id) && !has_part(id) && all.contains(id))
    result.insert(id);
  return result;
}

std::set<unsigned> IdGroups::ids_of(std::set<unsigned> const& parts) const {
  std::set<unsigned> result;
  for (Labelled const& group : labelled(parts))
    result.insert(group.id);
  for (IdGroup const& group : list_)
    if (std::any_of(group.parts.begin(), group.parts.end(), [&](unsigned part) { return parts.contains(part); }))
      result.insert(group.id);
  return result;
}

std::string IdGroups::label(unsigned part) const {
  std::string text;
  for (IdGroup const& group : list_)
    if (group.parts.contains(part))
      text += (text.empty() ? "" : " + ") + (group.name.empty() ? std::to_string(group.id) : group.name);
  return text.empty() ? std::to_string(part) : text;
}

std::vector<IdGroups::Labelled> IdGroups::labelled(std::set<unsigned> const& all) const {
  std::vector<Labelled> result;
  for (unsigned const id : all)
    if (!has_part(id))
      result.push_back({id, std::to_string(id), {id}});
  for (IdGroup const& group : list_) {
    std::set<unsigned> parts;
    std::set_intersection(group.parts.begin(), group.parts.end(), all.begin(), all.end(), std::inserter(parts, parts.end()));
    if (parts.empty())
      continue;
    std::string const label = group.name.empty() ? std::to_string(group.id) : group.name;
    auto const known = std::find_if(result.begin(), result.end(), [&](Labelled const& other) { return other.label == label; });
    if (known != result.end())
      known->parts.merge(parts);
    else
      result.push_back({group.id, label, std::move(parts)});
  }
  std::stable_sort(result.begin(), result.end(), [](Labelled const& a, Labelled const& b) { return a.id < b.id; });
  return result;
}

void IdGroups::keep(std::set<unsigned> const& parts) {
  for (IdGroup& group : list_)
    std::erase_if(group.parts, [&](unsigned part) { return !parts.contains(part); });
}

std::set<unsigned> IdGroups::all_ids() const {
  std::set<unsigned> result;
  for (IdGroup const& group : list_) {
    result.insert(group.id);
    result.insert(group.parts.begin(), group.parts.end());
  }
  return result;
}

bool IdGroups::has_part(unsigned part) const {
  return std::any_of(list_.begin(), list_.end(), [&](IdGroup const& group) { return group.parts.contains(part); });
}

unsigned free_id(std::set<unsigned> const& taken) {
  if (taken.empty())
    return 1;
  if (*taken.rbegin() < static_cast<unsigned>(std::numeric_limits<int>::max()))
    return *taken.rbegin() + 1;
  unsigned id = 1;
  while (taken.contains(id))
    ++id;
  return id;
}

}  // namespace poisson::assembly
