#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// Groups of boundary faces or of cells: what numbers and names in a configuration stand for. Free of deal.II.
namespace poisson::assembly {

/// A face (or cell) may belong to several groups, and has one id in the mesh. So every combination of groups has an id of its own:
/// with the groups inlet = 1 and outer = 2, faces of inlet alone have the id 1, of outer alone 2, and those of both have 3, say.
/// Then `inlet` is the ids 1 and 3 of the mesh.
struct IdGroup {
  unsigned id = 0;           ///< by which configurations call it
  std::string name;          ///< empty: it has none
  std::set<unsigned> parts;  ///< the ids of the mesh that it is made of; empty: it holds nothing
  bool operator==(IdGroup const&) const = default;
};

/// The groups of a mesh, ascending by id. An id of the mesh that no group has is a group of its own: that id, without a name.
class IdGroups {
public:
  /// Several groups may have one name. One that is there with this id and name gets the parts as well.
  void add(IdGroup group);
  [[nodiscard]] std::vector<IdGroup> const& list() const noexcept { return list_; }
  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  /// Whether a group has this name; maybe one that holds nothing.
  [[nodiscard]] bool has_name(std::string_view name) const;
  /// Whether a group has this id; maybe one that holds nothing.
  [[nodiscard]] bool has_id(unsigned id) const;
  /// All names, each once, ascending.
  [[nodiscard]] std::set<std::string> names() const;
  /// The ids of the mesh, among `all` of them, that a name or a number of a configuration stands for. Empty: it holds nothing, or
  /// there is none such.
  [[nodiscard]] std::set<unsigned> with_name(std::string_view name) const;
  [[nodiscard]] std::set<unsigned> with_id(unsigned id, std::set<unsigned> const& all) const;
  /// What a configuration may call these ids of the mesh by numbers.
  [[nodiscard]] std::set<unsigned> ids_of(std::set<unsigned> const& parts) const;
  /// A text for what has one id of the mesh: "inlet"; "7" without a name; of several groups "inlet + outer".
  [[nodiscard]] std::string label(unsigned part) const;
  /// Every group that holds something of `all`, ids of the mesh without a group included, by label; groups of one name are one.
  /// Ascending by the lowest id.
  struct Labelled {
    unsigned id = 0;
    std::string label;
    std::set<unsigned> parts;
  };
  [[nodiscard]] std::vector<Labelled> labelled(std::set<unsigned> const& all) const;
  /// Forgets parts that are not among these.
  void keep(std::set<unsigned> const& parts);
  /// All ids in use: those of groups, and their parts.
  [[nodiscard]] std::set<unsigned> all_ids() const;

  bool operator==(IdGroups const&) const = default;

private:
  [[nodiscard]] bool has_part(unsigned part) const;
  std::vector<IdGroup> list_;
};

/// The id after the largest of those that are taken; where that leaves the range of an int, the lowest free one from 1 on.
[[nodiscard]] unsigned free_id(std::set<unsigned> const& taken);

}  // namespace poisson::assembly
