#include "assembly/dealii/raw.hpp"
#include "assembly/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deal.II/base/numbers.h>
#include <deal.II/base/tensor.h>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace poisson::assembly {
namespace {

using Point = dealii::Point<3>;
using Vector = dealii::Tensor<1, 3>;

constexpr std::int64_t most_generated = 100000000;      ///< nodes, elements or members that one line may make
constexpr std::int64_t greatest_increment = 999999999;  ///< the greatest number of Abaqus

/// Advice: how to get a file that is read.
std::string const flat_file =
    "write the mesh without parts (in Abaqus/CAE: Model, Edit Attributes, Do not use parts and assemblies in input files)";

bool is_integer(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+'))
    text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_quotes(std::string_view text) {
  return text.size() > 1 && text.front() == '"' && text.back() == '"' ? trim(text.substr(1, text.size() - 2)) : text;
}

/// The parts between commas, trimmed; commas in double quotes separate nothing, and the quotes are taken off.
std::vector<std::string_view> fields_of(std::string_view line) {
  if (line.find('"') == std::string_view::npos)
    return split(line, ',');
  std::vector<std::string_view> fields;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"')
      quoted = !quoted;
    if (i < line.size() && (line[i] != ',' || quoted))
      continue;
    fields.push_back(without_quotes(trim(line.substr(begin, i - begin))));
    begin = i + 1;
  }
  return fields;
}

/// What an element type is to a mesh of hexahedra.
struct ElementType {
  enum class Kind { hexahedron, quadrilateral, passed_over, unsupported };
  Kind kind = Kind::unsupported;
  std::size_t nodes = 0;  ///< of hexahedra and quadrilaterals
  char const* shape = "";
};

/// Reads the type from its name: a family, the number of nodes, letters that say how it is integrated (C3D8R, DC3D20, S4R, CAX4P).
ElementType element_type(std::string const& name) {
  using Kind = ElementType::Kind;
  static constexpr std::array<char const*, 11> solids{"C3D",   "DC3D",  "AC3D", "DCC3D", "EC3D", "Q3D",
                                                      "EMC3D", "COH3D", "GK3D", "SC",    "CSS"};
  static constexpr std::array<char const*, 20> faces{"S",    "DS",    "M3D",  "SFM3D", "R3D",  "F3D",   "CPS",
                                                     "CPE",  "CPEG",  "CAX",  "CGAX",  "DC2D", "DCC2D", "DCAX",
                                                     "AC2D", "DCCAX", "ACAX", "ASI",   "STRI", "EMC2D"};
  // Points, lines and what joins nodes.
  static constexpr std::array<char const*, 31> others{"T2D",     "T3D",  "B2",   "B3",    "PIPE", "ELBOW",   "FRAME",   "SPRING",
                                                      "DASHPOT", "CONN", "RB",   "R2D",   "MASS", "ROTARYI", "HEATCAP", "DC1D",
                                                      "DCC1D",   "AC1D", "GAP",  "ITT",   "ISL",  "ITS",     "IRS",     "JOINTC",
                                                      "SAX",     "MAX",  "DSAX", "DCOUP", "DRAG", "PC3D",    "PD3D"};
  // The number of nodes behind the name of a family; 0 where the name is not of it.
  auto const nodes_in = [&](std::string_view family) -> std::size_t {
    if (!name.starts_with(family))
      return 0;
    std::size_t n = 0;
    for (std::size_t i = family.size(); i < name.size() && name[i] >= '0' && name[i] <= '9' && n < 1000; ++i)
      n = 10 * n + static_cast<std::size_t>(name[i] - '0');
    return n;
  };
  for (char const* family : solids)
    if (std::size_t const n = nodes_in(family); n > 0) {
      if (n == 8 || n == 20 || n == 27)
        return {Kind::hexahedron, n, ""};
      return {Kind::unsupported, 0,
              n == 4 || n == 10   ? " (tetrahedron)"
              : n == 6 || n == 15 ? " (wedge)"
              : n == 5 || n == 13 ? " (pyramid)"
                                  : ""};
    }
  for (char const* family : faces)
    if (std::size_t const n = nodes_in(family); n > 0) {
      if (n == 4 || n == 8 || n == 9)
        return {Kind::quadrilateral, n, ""};
      if (n == 3 || n == 6 || n == 7 || n == 65)
        return {Kind::passed_over, 0, " (triangle)"};
    }
  for (char const* family : others)
    if (name.starts_with(family))
      return {Kind::passed_over, 0, ""};
  return {};
}

/// A named set of elements or nodes. Its members may be added in several places of the file.
struct Set {
  std::string name;  ///< as the file spells it first
  std::int64_t line = 0;
  bool in_part = false;
  bool hidden = false;                                                  ///< INTERNAL: made by a program, for itself
  bool unsorted = false;                                                ///< the order of the members counts
  std::vector<std::int64_t> numbers;                                    ///< members by number
  std::vector<std::pair<std::string, std::int64_t>> others;             ///< sets that belong to it, and where that is said
  std::vector<std::pair<std::string, std::int64_t>> nodes_of_elements;  ///< element sets whose nodes belong to it
  std::int64_t resolved = -1;                                           ///< the change of the sets up to which `numbers` holds all
  bool being_resolved = false;
};

class AbaqusReader {
public:
  explicit AbaqusReader(MeshText& text) : text_(text), builder_(text) {}

  RawMesh read() {
    std::string_view line;
    while (text_.next_line(line)) {
      if (line.empty() || line.starts_with("**"))
        continue;
      last_line_ = line;
      last_line_number_ = text_.line();
      if (line.front() == '*')
        keyword(std::string(line));
      else if (data_) {
        ++data_lines_;
        (this->*data_)(line);
      }
    }
    check_end();
    return finish();
  }

private:
  using Handler = void (AbaqusReader::*)(std::string_view);
  using Kind = ElementType::Kind;
  enum class Of { elements, nodes };

  // --------------------------------------------------------------------------------------------------------- keyword lines

  void keyword(std::string line) {
    if (!pending_.empty())
      text_.fail("an element has only " + std::to_string(pending_.size() - 1) + " nodes");
    join_continued(line);
    parameters_.clear();
    auto const fields = fields_of(line);
    for (std::size_t i = 1; i < fields.size(); ++i) {
      auto const equal = fields[i].find('=');
      if (!fields[i].empty())
        parameters_[without_blanks(fields[i].substr(0, equal))] =
            equal == std::string_view::npos ? std::string_view() : without_quotes(trim(fields[i].substr(equal + 1)));
    }
    keyword_ = full_keyword(without_blanks(fields[0]));
    data_ = nullptr;
    data_lines_ = 0;
    open_keyword();
  }

  /// A keyword line that ends in a comma goes on in the next line. Some programs write a comma there that means nothing: what
  /// follows is then a line of data.
  void join_continued(std::string& line) {
    static std::set<std::string> const flags{"GENERATE", "INTERNAL", "UNSORTED", "SHIFT", "COMPOSITE", "SYMMETRIC", "ALLNODES"};
    while (line.ends_with(',')) {
      std::string_view next = text_.peek_line();
      while (next.starts_with("**")) {
        text_.next_line(next);
        next = text_.peek_line();
      }
      std::string_view const first = split(next, ',')[0];
      if (next.empty() || next.starts_with('*') ||
          (first.find('=') == std::string_view::npos && !flags.contains(without_blanks(first))))
        return;
      text_.next_line(next);
      last_line_ = next;
      last_line_number_ = text_.line();
      line += next;
    }
  }

  /// Returns the text in upper case without blanks, which mean nothing in a keyword line.
  static std::string without_blanks(std::string_view text) {
    std::string result = upper(text);
    std::erase_if(result, [](char c) { return c == ' ' || c == '\t'; });
    return result;
  }

  struct Keyword {
    char const* name;
    void (AbaqusReader::*open)();
  };

  static std::span<Keyword const> keywords() {
    static constexpr std::array<Keyword, 21> all{{{"*NODE", &AbaqusReader::open_node},
                                                  {"*ELEMENT", &AbaqusReader::open_element},
                                                  {"*ELSET", &AbaqusReader::open_elset},
                                                  {"*NSET", &AbaqusReader::open_nset},
                                                  {"*SURFACE", &AbaqusReader::open_surface},
                                                  {"*SYSTEM", &AbaqusReader::open_system},
                                                  {"*NGEN", &AbaqusReader::open_ngen},
                                                  {"*NFILL", &AbaqusReader::open_nfill},
                                                  {"*NCOPY", &AbaqusReader::open_ncopy},
                                                  {"*ELGEN", &AbaqusReader::open_elgen},
                                                  {"*ELCOPY", &AbaqusReader::open_elcopy},
                                                  {"*PART", &AbaqusReader::open_part},
                                                  {"*ENDPART", &AbaqusReader::close_block},
                                                  {"*ASSEMBLY", &AbaqusReader::open_assembly},
                                                  {"*ENDASSEMBLY", &AbaqusReader::close_block},
                                                  {"*INSTANCE", &AbaqusReader::open_instance},
                                                  {"*ENDINSTANCE", &AbaqusReader::close_block},
                                                  {"*INCLUDE", &AbaqusReader::refuse},
                                                  {"*NMAP", &AbaqusReader::refuse},
                                                  {"*IMPORT", &AbaqusReader::refuse},
                                                  {"*SYMMETRICMODELGENERATION", &AbaqusReader::refuse}}};
    return all;
  }

  /// Abaqus takes a keyword whose end is missing, such as *ELEM.
  static std::string full_keyword(std::string const& name) {
    std::string found;
    for (Keyword const& keyword : keywords()) {
      if (name == keyword.name)
        return name;
      if (name.size() > 4 && std::string_view(keyword.name).starts_with(name))
        found = found.empty() ? keyword.name : name;
    }
    return found.empty() ? name : found;
  }

  void open_keyword() {
    for (Keyword const& known : keywords())
      if (keyword_ == known.name) {
        if (parameter("INPUT") != nullptr)
          text_.fail(keyword_ + ", INPUT=file is not followed; write the mesh into one file");
        (this->*known.open)();
        return;
      }
    if (keyword_.ends_with("SECTION") && parameter("ELSET") != nullptr && parameter("MATERIAL") != nullptr)
      sections_.push_back({required("ELSET"), required("MATERIAL"), text_.line(), in_part_});
    static std::set<std::string> const couplings{"*TIE", "*EMBEDDEDELEMENT", "*MPC", "*EQUATION", "*MODELCHANGE", "*CONTACTPAIR"};
    if (couplings.contains(keyword_))
      ++couplings_[keyword_];
  }

  /// The value of a parameter, whose name may lack its end; a null pointer without it.
  std::string const* parameter(std::string_view name) const {
    if (auto const found = parameters_.find(std::string(name)); found != parameters_.end())
      return &found->second;
    for (auto const& [given, value] : parameters_)
      if (given.size() >= 3 && name.starts_with(given))
        return &value;
    return nullptr;
  }

  std::string const& required(char const* name) const {
    std::string const* const value = parameter(name);
    if (value == nullptr || value->empty())
      text_.fail(keyword_ + " needs " + name + "=...");
    return *value;
  }

  /// An increment of numbers.
  std::int64_t required_integer(char const* name) const {
    std::int64_t const value = text_.to_integer(required(name), name);
    if (std::abs(value) > greatest_increment)
      text_.fail(keyword_ + ": " + name + " must not exceed " + std::to_string(greatest_increment));
    return value;
  }

  void refuse() {
    text_.fail(keyword_ == "*INCLUDE" ? "*INCLUDE is not followed; write the mesh into one file"
                                      : keyword_ + " changes the mesh and is not read; write all nodes and elements into the file");
  }
  void refuse_parameters(std::initializer_list<char const*> names) const {
    for (char const* name : names)
      if (parameter(name) != nullptr)
        text_.fail(keyword_ + ", " + name + " is not read; write the nodes and elements themselves");
  }

  // ------------------------------------------------------------------------------------------------ parts and their instance

  void open_block() { blocks_.emplace_back(keyword_, text_.line()); }
  void close_block() {
    std::string const opened = "*" + keyword_.substr(4);
    auto const block = std::find_if(blocks_.rbegin(), blocks_.rend(), [&](auto const& b) { return b.first == opened; });
    if (block == blocks_.rend())
      text_.fail(keyword_ + " ends nothing");
    blocks_.erase(std::prev(block.base()), blocks_.end());
    in_part_ = std::any_of(blocks_.begin(), blocks_.end(), [](auto const& b) { return b.first != "*ASSEMBLY"; });
  }
  void open_part() {
    if (++parts_ > 1)
      text_.fail("a second *PART: only one part, placed once, is read; " + flat_file);
    open_block();
    in_part_ = true;
  }
  void open_assembly() { open_block(); }
  void open_instance() {
    if (++instances_ > 1)
      text_.fail("a second *INSTANCE: only one part, placed once, is read; " + flat_file);
    open_block();
    in_part_ = true;
    if (std::string const* const name = parameter("NAME"))
      instance_name_ = *name + ".";
    data_ = &AbaqusReader::instance;
  }
  void instance(std::string_view line) {
    for (std::string_view const part : split(line, ','))
      if (!part.empty() && text_.to_real(part, "a translation of the instance") != 0)
        text_.fail("an instance that is moved or turned is not read; " + flat_file);
  }
  /// Nodes of an assembly are points of reference with numbers of their own; only its instances have meshes.
  [[nodiscard]] bool beside_the_mesh() const { return !in_part_ && !blocks_.empty(); }

  // ------------------------------------------------------------------------------------------------------------------- nodes

  void check_number(std::int64_t number) const {
    if (std::abs(number) > (std::int64_t{1} << 60))
      text_.fail("the number " + std::to_string(number) + " is too great");
  }

  void add_node(std::int64_t number, Point const& x) {
    check_number(number);
    auto const [known, fresh] = node_of_number_.emplace(number, points_.size());
    if (fresh) {
      points_.push_back(x);
      node_numbers_.push_back(number);
      text_.finite(x.norm(), "the distance of a node");
    } else if (points_[known->second].distance(x) > 1e-9 * (x.norm() + 1e-30)) {
      text_.fail("node " + std::to_string(number) + " is defined twice");
    }
  }

  std::size_t node(std::int64_t number, std::int64_t line) const {
    auto const found = node_of_number_.find(number);
    if (found == node_of_number_.end())
      text_.fail_at(line, "node " + std::to_string(number) + " is used, but not defined");
    return found->second;
  }

  void open_node() {
    node_system_ = 'R';
    if (std::string const* const system = parameter("SYSTEM"))
      node_system_ = system->empty() ? '?' : upper(*system)[0];
    if (node_system_ != 'R' && node_system_ != 'C')
      text_.fail("SYSTEM=" + *parameter("SYSTEM") + " is not read: R (x, y, z) and C (radius, angle in degrees, z) are");
    new_set(Of::nodes, "NSET", false);
    data_ = &AbaqusReader::node_line;
  }

  void node_line(std::string_view line) {
    auto const fields = split(line, ',');
    if (fields.size() < 4)
      text_.fail("a node needs a number and three coordinates");
    std::int64_t const number = text_.to_integer(fields[0], "a node number");
    if (beside_the_mesh())
      return;
    Point x;
    for (unsigned d = 0; d < 3; ++d)
      x[d] = fields[d + 1].empty() ? 0.
                                   : text_.to_real(fields[d + 1], d == 0   ? "x of a node"
                                                                  : d == 1 ? "y of a node"
                                                                           : "z of a node");
    if (node_system_ == 'C')
      x = of_cylinder(x);
    add_node(number, to_global(x));
    to_set(Of::nodes, number);
  }

  static Point of_cylinder(Point const& x) {
    double const angle = x[1] * dealii::numbers::PI / 180;
    return {x[0] * std::cos(angle), x[0] * std::sin(angle), x[2]};
  }

  /// *SYSTEM: origin and axes of the system in which the following nodes are given; without data the global one.
  void open_system() {
    axes_ = {Vector({1, 0, 0}), Vector({0, 1, 0}), Vector({0, 0, 1})};
    origin_ = Point();
    on_axis_ = {};
    is_global_ = true;
    data_ = &AbaqusReader::system_line;
  }

  void system_line(std::string_view line) {
    auto const numbers = reals(line, 6);
    Point const first(numbers[0], numbers[1], numbers[2]);
    if (data_lines_ > 2)
      text_.fail("*SYSTEM has two lines at most");
    is_global_ = false;
    if (data_lines_ == 1) {
      origin_ = first;
      if (split(line, ',').size() <= 3)
        return;
      on_axis_ = Point(numbers[3], numbers[4], numbers[5]) - origin_;
      axes_[0] = on_axis_;
      axes_[0][2] = 0;  // in the plane of x and y, since z stays as it is
    } else {
      axes_[0] = on_axis_;
      axes_[2] = dealii::cross_product_3d(on_axis_, first - origin_);
    }
    for (std::size_t const d : {0, 2})
      if (axes_[d].norm() > 0)
        axes_[d] /= axes_[d].norm();
    axes_[1] = dealii::cross_product_3d(axes_[2], axes_[0]);
  }

  [[nodiscard]] Point to_global(Point const& x) const {
    if (!is_global_ && !(axes_[1].norm() > 0))
      text_.fail("the points of *SYSTEM define no axes");
    return is_global_ ? x : origin_ + x[0] * axes_[0] + x[1] * axes_[1] + x[2] * axes_[2];
  }

  /// Numbers of a line, at least `least`; those that are missing are 0.
  std::vector<double> reals(std::string_view line, std::size_t least) const {
    auto const fields = split(line, ',');
    std::vector<double> numbers(std::max(least, fields.size()));
    for (std::size_t i = 0; i < fields.size(); ++i)
      numbers[i] = fields[i].empty() ? 0. : text_.to_real(fields[i], "a number");
    return numbers;
  }

  std::vector<std::int64_t> integers(std::string_view line, std::size_t least) const {
    auto const fields = split(line, ',');
    std::vector<std::int64_t> numbers(std::max(least, fields.size()));
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (!fields[i].empty())
        numbers[i] = text_.to_integer(fields[i], "a whole number");
    return numbers;
  }

  /// *NGEN: nodes between two, on a line, a parabola or an arc.
  void open_ngen() {
    curve_ = 'L';
    if (std::string const* const line = parameter("LINE"))
      curve_ = line->empty() ? '?' : upper(*line)[0];
    if (curve_ != 'L' && curve_ != 'P' && curve_ != 'C')
      text_.fail("LINE=" + *parameter("LINE") + " is not one of P (parabola) and C (arc)");
    refuse_parameters({"SYSTEM"});
    new_set(Of::nodes, "NSET", false);
    data_ = &AbaqusReader::ngen_line;
  }

  void ngen_line(std::string_view line) {
    auto const fields = split(line, ',');
    if (fields.size() < 2)
      text_.fail("*NGEN needs the numbers of two nodes");
    std::int64_t const from = text_.to_integer(fields[0], "a node number"), to = text_.to_integer(fields[1], "a node number");
    std::int64_t step = fields.size() > 2 && !fields[2].empty() ? text_.to_integer(fields[2], "the increment") : 1;
    std::int64_t const intervals = step == 0 ? 0 : std::abs((to - from) / step);
    if (step == 0 || from == to || (to - from) % step != 0 || intervals > most_generated)
      text_.fail("from node " + std::to_string(from) + " one does not come to " + std::to_string(to) + " by steps of " +
                 std::to_string(step));
    step = (to - from) / intervals;
    check_memory(intervals * 100, "the nodes of *NGEN");
    Point const a = points_[node(from, text_.line())], b = points_[node(to, text_.line())];
    Point extra;
    Vector normal;
    if (curve_ != 'L') {
      if (fields.size() > 3 && !fields[3].empty()) {
        extra = points_[node(text_.to_integer(fields[3], "a node number"), text_.line())];
      } else if (fields.size() > 6) {
        if (!is_global_)
          text_.fail("*NGEN with the coordinates of its third point is not read behind *SYSTEM");
        for (unsigned d = 0; d < 3; ++d)
          extra[d] = text_.to_real(fields[4 + d], "a coordinate of the third point");
      } else {
        text_.fail("*NGEN, LINE=P and C need a third point");
      }
      if (fields.size() > 9)
        for (unsigned d = 0; d < 3; ++d)
          normal[d] = text_.to_real(fields[7 + d], "the normal of the arc");
    }
    // The arc: from a to b around `extra`, the short way unless its normal says otherwise.
    Vector const u = a - extra, v = b - extra;
    double const across = normal.norm();
    Vector const axis = across > 0 ? normal / across : dealii::cross_product_3d(u, v);
    double angle = 0;
    if (curve_ == 'C') {
      if (!(axis.norm() > 1e-9 * u.norm() * v.norm()))
        text_.fail("an arc of 180 degrees and more needs its normal");
      angle = std::atan2(dealii::cross_product_3d(u, v) * axis / axis.norm(), u * v);
      if (angle < 0)
        angle += 2 * dealii::numbers::PI;
    }
    to_set(Of::nodes, from);
    to_set(Of::nodes, to);
    for (std::int64_t i = 1; i < intervals; ++i) {
      double const t = static_cast<double>(i) / static_cast<double>(intervals);
      Point x = a + t * (b - a);
      if (curve_ == 'P')
        x = extra + (1 - t) * (1 - 2 * t) * (a - extra) - t * (1 - 2 * t) * (b - extra);
      if (curve_ == 'C')
        x = extra + ((1 - t) + t * v.norm() / u.norm()) * turned(u, axis / axis.norm(), t * angle);
      add_node(from + i * step, x);
      to_set(Of::nodes, from + i * step);
    }
  }

  /// `x` turned around an axis of length 1 by an angle.
  static Vector turned(Vector const& x, Vector const& axis, double angle) {
    return std::cos(angle) * x + std::sin(angle) * dealii::cross_product_3d(axis, x) + (1 - std::cos(angle)) * (axis * x) * axis;
  }

  /// *NFILL: nodes on straight lines between those of two sets.
  void open_nfill() {
    refuse_parameters({"BIAS", "SINGULAR", "TWOSTEP"});
    new_set(Of::nodes, "NSET", false);
    data_ = &AbaqusReader::nfill_line;
  }

  void nfill_line(std::string_view line) {
    auto const fields = fields_of(line);
    if (fields.size() < 3)
      text_.fail("*NFILL needs two node sets and a number of intervals");
    auto const from = members(Of::nodes, fields[0], text_.line()), to = members(Of::nodes, fields[1], text_.line());
    std::int64_t const intervals = text_.to_integer(fields[2], "the number of intervals");
    std::int64_t const step = fields.size() > 3 && !fields[3].empty() ? text_.to_integer(fields[3], "the increment") : 1;
    if (from.size() != to.size())
      text_.fail("the node sets of *NFILL have " + std::to_string(from.size()) + " and " + std::to_string(to.size()) + " nodes");
    if (intervals < 1 || step == 0 || std::abs(step) > greatest_increment ||
        intervals > most_generated / std::max<std::int64_t>(1, std::ssize(from)))
      text_.fail("*NFILL with " + std::to_string(intervals) + " intervals and the increment " + std::to_string(step) +
                 " is not possible");
    check_memory(intervals * std::ssize(from) * 100, "the nodes of *NFILL");
    for (std::size_t n = 0; n < from.size(); ++n) {
      Point const a = points_[node(from[n], text_.line())], b = points_[node(to[n], text_.line())];
      to_set(Of::nodes, from[n]);
      to_set(Of::nodes, to[n]);
      for (std::int64_t i = 1; i < intervals; ++i) {
        add_node(from[n] + i * step, a + static_cast<double>(i) / static_cast<double>(intervals) * (b - a));
        to_set(Of::nodes, from[n] + i * step);
      }
    }
  }

  /// *NCOPY: nodes of a set once more, moved (first line) and turned (second line).
  void open_ncopy() {
    refuse_parameters({"REFLECT", "POLE", "MULTIPLE"});
    if (parameter("SHIFT") == nullptr)
      text_.fail("*NCOPY needs SHIFT");
    copy_from_ = members(Of::nodes, required("OLDSET"), text_.line());
    copy_numbers_ = required_integer("CHANGENUMBER");
    new_set(Of::nodes, "NEWSET", false);
    data_ = &AbaqusReader::ncopy_line;
  }

  void ncopy_line(std::string_view line) {
    auto const numbers = reals(line, 7);
    if (data_lines_ > 2)
      text_.fail("*NCOPY, SHIFT has two lines");
    if (data_lines_ == 1) {
      Vector const shift({numbers[0], numbers[1], numbers[2]});
      for (std::int64_t const number : copy_from_) {
        Point const x = points_[node(number, text_.line())] + shift;
        add_node(number + copy_numbers_, x);
        to_set(Of::nodes, number + copy_numbers_);
      }
    } else if (numbers[6] != 0) {
      Point const a(numbers[0], numbers[1], numbers[2]);
      Vector const axis = Point(numbers[3], numbers[4], numbers[5]) - a;
      if (!(axis.norm() > 0))
        text_.fail("the axis of *NCOPY has no length");
      for (std::int64_t const number : copy_from_) {
        Point& x = points_[node(number + copy_numbers_, text_.line())];
        x = a + turned(x - a, axis / axis.norm(), numbers[6] * dealii::numbers::PI / 180);
      }
    }
  }

  // ---------------------------------------------------------------------------------------------------------------- elements

  struct Element {
    std::int64_t number = 0, line = 0;
    std::size_t begin = 0;  ///< of its nodes in element_nodes_
    std::size_t nodes = 0;
    bool is_face = false;
  };

  void open_element() {
    type_name_ = upper(required("TYPE"));
    type_ = element_type(type_name_);
    goes_on_ = false;
    new_set(Of::elements, "ELSET", false);
    data_ = &AbaqusReader::element_line;
  }

  void element_line(std::string_view line) {
    if (type_.kind == Kind::unsupported)
      return builder_.add_unsupported(type_name_ + type_.shape, 3);
    if (type_.kind == Kind::passed_over) {
      if (!goes_on_) {
        std::int64_t const number = text_.to_integer(split(line, ',')[0], "an element number");
        passed_over_.insert(number);
        ++passed_over_types_[type_name_ + type_.shape];
      }
      goes_on_ = line.ends_with(',');
      return;
    }
    // An element may go on in the next line.
    for (std::string_view const part : split(line, ','))
      if (!part.empty())
        pending_.push_back(text_.to_integer(part, "a node number"));
    if (pending_.size() < type_.nodes + 1)
      return;
    if (pending_.size() > type_.nodes + 1)
      text_.fail("an element of type " + type_name_ + " has " + std::to_string(type_.nodes) + " nodes, not " +
                 std::to_string(pending_.size() - 1));
    add_element(pending_[0], std::span(pending_).subspan(1), type_.kind == Kind::quadrilateral);
    to_set(Of::elements, pending_[0]);
    pending_.clear();
  }

  void add_element(std::int64_t number, std::span<std::int64_t const> nodes, bool is_face) {
    check_number(number);
    if (!element_of_number_.emplace(number, elements_.size()).second)
      text_.fail("element " + std::to_string(number) + " is defined twice");
    elements_.push_back({number, text_.line(), element_nodes_.size(), nodes.size(), is_face});
    element_nodes_.insert(element_nodes_.end(), nodes.begin(), nodes.end());
  }

  [[nodiscard]] std::span<std::int64_t const> nodes_of(Element const& element) const {
    return std::span(element_nodes_).subspan(element.begin, element.nodes);
  }

  /// The element again, with numbers raised.
  void copy_element(std::size_t e, std::int64_t number, std::int64_t node_shift) {
    Element const element = elements_[e];
    std::vector<std::int64_t> nodes(nodes_of(element).begin(), nodes_of(element).end());
    for (auto& n : nodes) {
      n += node_shift;
      check_number(n);
    }
    add_element(number, nodes, element.is_face);
    to_set(Of::elements, number);
  }

  /// *ELGEN: a block of elements from its first one, row by row and layer by layer.
  void open_elgen() {
    new_set(Of::elements, "ELSET", false);
    data_ = &AbaqusReader::elgen_line;
  }

  void elgen_line(std::string_view line) {
    auto n = integers(line, 10);
    for (std::size_t const i : {1, 2, 3, 4, 7})
      n[i] = n[i] == 0 ? 1 : n[i];
    auto const master = element_of_number_.find(n[0]);
    if (master == element_of_number_.end()) {
      if (passed_over_.contains(n[0]))
        return;
      text_.fail("element " + std::to_string(n[0]) + ", from which *ELGEN goes on, is not defined above");
    }
    std::array<std::int64_t, 3> const counts{n[1], n[4], n[7]};
    std::int64_t total = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      std::int64_t const nodes = n[3 * d + 2], elements = n[3 * d + 3];
      if (counts[d] < 1 || counts[d] > most_generated / total || std::abs(nodes) > greatest_increment ||
          std::abs(elements) > greatest_increment || (counts[d] > 1 && (nodes == 0 || elements == 0)))
        text_.fail("*ELGEN cannot make " + std::to_string(counts[d]) +
                   (d == 0   ? " elements"
                    : d == 1 ? " rows"
                             : " layers") +
                   " with the increments " + std::to_string(nodes) + " of nodes and " + std::to_string(elements) + " of elements");
      total *= counts[d];
    }
    check_memory(total * 200, "the elements of *ELGEN");
    std::size_t const first = master->second;
    to_set(Of::elements, n[0]);
    for (std::int64_t k = 0; k < counts[2]; ++k)
      for (std::int64_t j = 0; j < counts[1]; ++j)
        for (std::int64_t i = 0; i < counts[0]; ++i)
          if (i + j + k > 0)
            copy_element(first, n[0] + i * n[3] + j * n[6] + k * n[9], i * n[2] + j * n[5] + k * n[8]);
  }

  void open_elcopy() {
    refuse_parameters({"REFLECT"});
    auto const old = members(Of::elements, required("OLDSET"), text_.line());
    std::int64_t const shift = required_integer("ELEMENTSHIFT"), node_shift = required_integer("SHIFTNODES");
    new_set(Of::elements, "NEWSET", false);
    for (std::int64_t const number : old)
      if (auto const found = element_of_number_.find(number); found != element_of_number_.end())
        copy_element(found->second, number + shift, node_shift);
  }

  // -------------------------------------------------------------------------------------------------------------------- sets

  struct Sets {
    std::vector<Set> all;
    std::map<std::string, std::size_t> index;  ///< by name in upper case, with the level before it
  };
  Sets& sets(Of of) { return of == Of::elements ? element_sets_ : node_sets_; }
  static char const* word(Of of) { return of == Of::elements ? "element" : "node"; }

  /// Makes the set that a parameter names the one that the following lines add to; none without it.
  void new_set(Of of, char const* name, bool needed) {
    current_set_[of == Of::nodes] = -1;
    std::string const* const value = needed ? &required(name) : parameter(name);
    if (value == nullptr || value->empty())
      return;
    Sets& known = sets(of);
    auto const [at, fresh] = known.index.emplace((in_part_ ? "p/" : "a/") + upper(*value), known.all.size());
    if (fresh) {
      known.all.emplace_back().name = *value;
      known.all.back().line = text_.line();
      known.all.back().in_part = in_part_;
      known.all.back().hidden = parameter("INTERNAL") != nullptr;
      known.all.back().unsorted = parameter("UNSORTED") != nullptr;
    }
    current_set_[of == Of::nodes] = static_cast<std::ptrdiff_t>(at->second);
  }

  void to_set(Of of, std::int64_t number) {
    if (std::ptrdiff_t const set = current_set_[of == Of::nodes]; set >= 0) {
      sets(of).all[static_cast<std::size_t>(set)].numbers.push_back(number);
      ++changes_;
    }
  }

  void open_elset() { open_set(Of::elements, "ELSET"); }
  void open_nset() {
    open_set(Of::nodes, "NSET");
    if (std::string const* const elset = parameter("ELSET")) {
      ++changes_;
      node_sets_.all[static_cast<std::size_t>(current_set_[1])].nodes_of_elements.emplace_back(*elset, text_.line());
      data_ = nullptr;
    }
  }
  void open_set(Of of, char const* name) {
    set_of_ = of;
    new_set(of, name, true);
    data_ = parameter("GENERATE") != nullptr ? &AbaqusReader::generated_line : &AbaqusReader::set_line;
    // A set of the assembly without an instance holds the assembly's own points of reference, whose numbers are not the mesh's.
    foreign_ = beside_the_mesh() && parameter("INSTANCE") == nullptr;
  }

  /// A name or number without the name of the instance, "Part-1-1.Set-1".
  std::string_view without_instance(std::string_view name) const {
    bool const qualified = !instance_name_.empty() && name.size() > instance_name_.size() &&
                           upper(name.substr(0, instance_name_.size())) == upper(instance_name_);
    return qualified ? name.substr(instance_name_.size()) : name;
  }

  void set_line(std::string_view line) {
    Set& set = sets(set_of_).all[static_cast<std::size_t>(current_set_[set_of_ == Of::nodes])];
    ++changes_;
    for (std::string_view const part : fields_of(line)) {
      std::string_view const field = without_instance(part);
      if (field.empty() || (foreign_ && is_integer(field) && field.size() == part.size()))
        continue;
      if (is_integer(field)) {
        set.numbers.push_back(text_.to_integer(field, "a number"));
      } else if (set.unsorted) {
        auto const more = members(set_of_, part, text_.line());
        set.numbers.insert(set.numbers.end(), more.begin(), more.end());
      } else {
        set.others.emplace_back(part, text_.line());
      }
    }
  }

  void generated_line(std::string_view line) {
    auto const parts = split(line, ',');
    if (parts.size() < 2)
      text_.fail("GENERATE needs a first and a last number");
    std::int64_t const first = text_.to_integer(parts[0], "the first number"), last = text_.to_integer(parts[1], "the last number");
    std::int64_t const step = parts.size() > 2 && !parts[2].empty() ? text_.to_integer(parts[2], "the step") : 1;
    if (step < 1 || last < first || (last - first) / step > most_generated)
      text_.fail("the range " + in_quotes(line) + " is not an ascending one of sensible length");
    if (foreign_)
      return;
    generated_ += (last - first) / step + 1;
    check_memory(generated_ * 8, "the sets of the mesh file");
    for (std::int64_t i = first; i <= last; i += step)
      to_set(set_of_, i);
  }

  /// The set of a name, a null pointer without one. Names of a part and of the assembly are two worlds: that where the name is
  /// used comes first.
  Set* find_set(Of of, std::string_view name, bool in_part) {
    std::string_view const bare = without_instance(name);
    bool const part_first = in_part || bare.size() < name.size();
    for (bool const part : {part_first, !part_first}) {
      Sets& known = sets(of);
      if (auto const found = known.index.find((part ? "p/" : "a/") + upper(bare)); found != known.index.end())
        return &known.all[found->second];
    }
    return nullptr;
  }

  /// Numbers of the members of a set, ascending unless it is UNSORTED.
  std::vector<std::int64_t> const& members(Of of, Set& set) {
    if (set.resolved == changes_)
      return set.numbers;
    if (set.being_resolved)
      text_.fail_at(set.line, std::string("the ") + word(of) + " set " + in_quotes(set.name) + " contains itself");
    if (depth_ > 200)
      text_.fail_at(set.line, std::string("the ") + word(of) + " sets are nested too deeply");
    set.being_resolved = true;
    ++depth_;
    for (auto const& [name, line] : set.others) {
      Set* const other = find_set(of, name, set.in_part);
      if (other == nullptr)
        text_.fail_at(line, std::string("the ") + word(of) + " set " + in_quotes(name) + " is not defined");
      auto const& more = members(of, *other);
      if (std::ssize(set.numbers) + std::ssize(more) > 4 * most_generated)
        text_.fail_at(line, std::string("the ") + word(of) + " set " + in_quotes(set.name) + " grows beyond all bounds");
      set.numbers.insert(set.numbers.end(), more.begin(), more.end());
    }
    for (auto const& [name, line] : set.nodes_of_elements) {
      Set* const elements = find_set(Of::elements, name, set.in_part);
      if (elements == nullptr)
        text_.fail_at(line, "the element set " + in_quotes(name) + " is not defined");
      for (std::int64_t const number : members(Of::elements, *elements))
        if (auto const found = element_of_number_.find(number); found != element_of_number_.end()) {
          auto const nodes = nodes_of(elements_[found->second]);
          set.numbers.insert(set.numbers.end(), nodes.begin(), nodes.end());
        }
    }
    if (!set.unsorted) {
      std::sort(set.numbers.begin(), set.numbers.end());
      set.numbers.erase(std::unique(set.numbers.begin(), set.numbers.end()), set.numbers.end());
    }
    --depth_;
    set.being_resolved = false;
    set.resolved = changes_;
    return set.numbers;
  }

  /// Returns the members of the set with this name, or the one number that stands in its place.
  std::vector<std::int64_t> members(Of of, std::string_view name, std::int64_t line) {
    if (std::string_view const bare = without_instance(name); is_integer(bare))
      return {text_.to_integer(bare, "a number")};
    Set* const set = find_set(of, name, in_part_);
    if (set == nullptr)
      text_.fail_at(line, std::string("the ") + word(of) + " set " + in_quotes(name) + " is not defined");
    return members(of, *set);
  }

  // ---------------------------------------------------------------------------------------------------------------- surfaces

  struct SurfaceLine {
    std::string what, side;
    std::int64_t line = 0;
  };
  struct Surface {
    std::string name;
    bool of_nodes = false, is_union = false, in_part = false;
    std::vector<SurfaceLine> lines;
  };

  void open_surface() {
    std::string const type = parameter("TYPE") != nullptr ? without_blanks(*parameter("TYPE")) : "ELEMENT";
    std::string const combine = parameter("COMBINE") != nullptr ? without_blanks(*parameter("COMBINE")) : "";
    std::string const& name = required("NAME");
    if (!combine.empty() && combine != "UNION")
      text_.fail("COMBINE=" + combine + " is not read; write the faces of surface " + in_quotes(name));
    if (type != "ELEMENT" && type != "NODE") {
      notes_.push_back("the surface '" + name + "' of TYPE=" + type + " is passed over: it has no faces of cells");
      return;
    }
    auto const [at, fresh] = surface_of_name_.emplace((in_part_ ? "p/" : "a/") + upper(name), surfaces_.size());
    if (fresh)
      surfaces_.push_back({name, type == "NODE", !combine.empty(), in_part_, {}});
    surface_ = at->second;
    data_ = &AbaqusReader::surface_line;
  }

  void surface_line(std::string_view line) {
    auto const fields = fields_of(line);
    Surface& surface = surfaces_[surface_];
    if (surface.is_union) {
      for (std::string_view const name : fields)
        if (!name.empty())
          surface.lines.push_back({std::string(name), {}, text_.line()});
      return;
    }
    if (fields[0].empty())
      text_.fail("a surface needs an element number or the name of a set in every line");
    surface.lines.push_back({std::string(fields[0]), fields.size() > 1 ? upper(fields[1]) : std::string(), text_.line()});
  }

  // -------------------------------------------------------------------------------------------------------- the end of a file

  /// Refuses a file that ends where it should not.
  void check_end() {
    if (!pending_.empty())
      text_.fail("the file ends within an element");
    if (!blocks_.empty())
      text_.fail("the file ends before *END " + blocks_.back().first.substr(1) + ", for " + blocks_.back().first + " of line " +
                 std::to_string(blocks_.back().second));
    bool const is_keyword = last_line_.starts_with('*');
    bool const optional = keyword_ == "*SYSTEM" || keyword_ == "*INSTANCE";
    if (data_ != nullptr && data_lines_ == 0 && !optional)
      text_.fail("the file ends where the lines of " + keyword_ + " should be");
    if (text_.has_last_end_of_line() || (data_ == nullptr && !is_keyword))
      return;
    bool const without_side = data_ == &AbaqusReader::surface_line && split(last_line_, ',').size() < 2 &&
                              !surfaces_[surface_].of_nodes && !surfaces_[surface_].is_union;
    if (last_line_.ends_with(',') || without_side)
      text_.fail_at(last_line_number_, "the file ends within this line");
    if (!keyword_.starts_with("*END"))
      notes_.emplace_back(MeshText::note_of_cut_line);
  }

  /// Corners of the sides S1 ... S6 of a hexahedron.
  static constexpr std::array<std::array<std::size_t, 4>, 6> sides{
      {{0, 1, 2, 3}, {4, 7, 6, 5}, {0, 4, 5, 1}, {1, 5, 6, 2}, {2, 6, 7, 3}, {3, 7, 4, 0}}};

  std::array<std::int64_t, 4> side_of(Element const& element, std::size_t side) const {
    std::array<std::int64_t, 4> corners{};
    for (std::size_t v = 0; v < 4; ++v)
      corners[v] = element_nodes_[element.begin + sides[side][v]];
    return corners;
  }
  static std::array<std::int64_t, 4> sorted(std::array<std::int64_t, 4> corners) {
    std::sort(corners.begin(), corners.end());
    return corners;
  }

  /// Whether a side belongs to one hexahedron only.
  bool is_exposed(std::array<std::int64_t, 4> const& corners) {
    if (all_sides_.empty()) {
      for (Element const& element : elements_)
        for (std::size_t side = 0; side < 6 && !element.is_face; ++side)
          all_sides_.push_back(sorted(side_of(element, side)));
      std::sort(all_sides_.begin(), all_sides_.end());
    }
    auto const [first, last] = std::equal_range(all_sides_.begin(), all_sides_.end(), sorted(corners));
    return last - first == 1;
  }

  std::size_t add_side(Element const& element, std::size_t side, std::int64_t line) {
    builder_.add_quad(side_of(element, side), 0);
    builder_.mesh().quads.back().line = line;
    return builder_.mesh().quads.size() - 1;
  }

  /// The faces of a surface; those of solids become quadrilaterals of the mesh.
  std::vector<std::size_t> quads_of(Surface const& surface) {
    std::vector<std::size_t> quads;
    std::int64_t edges = 0;
    for (auto const& [what, side, line] : surface.lines) {
      if (side.starts_with("E")) {
        ++edges;
        continue;
      }
      bool const whole = side.empty() || side == "SPOS" || side == "SNEG";
      if (!whole && (side.size() != 2 || side[0] != 'S' || side[1] < '1' || side[1] > '6'))
        text_.fail_at(line, "the side " + in_quotes(side) + " is not one of S1 ... S6, SPOS and SNEG");
      in_part_ = surface.in_part;
      Set* const set = is_integer(without_instance(what)) ? nullptr : find_set(Of::elements, what, in_part_);
      if (set != nullptr && !whole)
        sides_of_surfaces_.insert(set->name);
      for (std::int64_t const number : members(Of::elements, what, line)) {
        auto const found = element_of_number_.find(number);
        if (found == element_of_number_.end() && passed_over_.contains(number))
          continue;
        bool const is_face = found != element_of_number_.end() && elements_[found->second].is_face;
        if (found == element_of_number_.end() || (is_face ? !whole : side.starts_with("SP") || side.starts_with("SN")))
          text_.fail_at(line, "element " + std::to_string(number) + " of surface " + in_quotes(surface.name) +
                                  " is not defined, or is no " + (whole && !side.empty() ? "shell" : "hexahedron"));
        Element const& element = elements_[found->second];
        if (is_face) {
          quads.push_back(index_[found->second]);
        } else if (!whole) {
          quads.push_back(add_side(element, static_cast<std::size_t>(side[1] - '1'), line));
        } else {
          for (std::size_t s = 0; s < 6; ++s)
            if (is_exposed(side_of(element, s)))
              quads.push_back(add_side(element, s, line));
        }
      }
    }
    if (edges > 0)
      notes_.push_back("the surface '" + surface.name + "' has " + std::to_string(edges) +
                       " lines of edges, which are passed over: a boundary consists of faces");
    return quads;
  }

  void add_vertices_and_elements() {
    for (std::size_t n = 0; n < points_.size(); ++n)
      builder_.add_vertex(node_numbers_[n], points_[n][0], points_[n][1], points_[n][2]);
    index_.resize(elements_.size());
    for (std::size_t e = 0; e < elements_.size(); ++e) {
      Element const& element = elements_[e];
      auto const nodes = nodes_of(element);
      for (std::int64_t const number : nodes)
        static_cast<void>(node(number, element.line));
      if (element.is_face) {
        builder_.add_quad({nodes[0], nodes[1], nodes[2], nodes[3]}, 0);
        index_[e] = builder_.mesh().quads.size() - 1;
        builder_.mesh().quads.back().line = element.line;
        continue;
      }
      if (!builder_.mesh().cells.empty() && nodes.size() != nodes_of_cells_)
        text_.fail_at(element.line, "a hexahedron has " + std::to_string(nodes.size()) + " nodes, those before it have " +
                                        std::to_string(nodes_of_cells_) + "; all must be of one kind");
      nodes_of_cells_ = nodes.size();
      if (nodes.size() == 8) {
        std::array<std::int64_t, 8> corners{};
        std::copy_n(nodes.begin(), 8, corners.begin());
        builder_.add_hexahedron(corners, 0);
      } else {
        builder_.add_hexahedron(nodes, nodes.size() == 20 ? vtk_hexahedron_20() : abaqus_hexahedron_27(), 0);
      }
      index_[e] = builder_.mesh().cells.size() - 1;
      builder_.mesh().cells.back().line = element.line;
    }
  }

  /// A name for members. `taken` says to which members a name belongs: the first use of it counts, another one with other
  /// members is told.
  void add_group(std::vector<RawMesh::Group>& groups, std::map<std::string, std::size_t>& taken, std::string name, char const* what,
                 std::vector<std::size_t> members) {
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    if (members.empty())
      return;
    auto const [at, fresh] = taken.emplace(upper(name), groups.size());
    if (fresh)
      groups.push_back({std::move(name), -1, std::move(members)});
    else if (groups[at->second].members != members)
      notes_.push_back(std::string("the name '") + groups[at->second].name + "' has other members as " + what +
                       ", which is passed over");
  }

  RawMesh finish() {
    add_vertices_and_elements();
    RawMesh& mesh = builder_.mesh();
    std::map<std::string, std::size_t> materials, boundaries, by_nodes;

    // Materials of sections; two sections of one material are one group.
    std::vector<std::pair<std::string, std::vector<std::size_t>>> of_sections;
    for (Section const& section : sections_) {
      in_part_ = section.in_part;
      auto const same = std::find_if(of_sections.begin(), of_sections.end(),
                                     [&](auto const& known) { return upper(known.first) == upper(section.material); });
      auto& cells =
          same != of_sections.end() ? same->second : of_sections.emplace_back(section.material, std::vector<std::size_t>()).second;
      for (std::int64_t const number : members(Of::elements, section.elset, section.line))
        if (auto const found = element_of_number_.find(number);
            found != element_of_number_.end() && !elements_[found->second].is_face)
          cells.push_back(index_[found->second]);
    }
    for (auto& [name, cells] : of_sections)
      add_group(mesh.cell_groups, materials, name, "material", std::move(cells));

    for (bool const unions : {false, true})
      for (Surface const& surface : surfaces_) {
        if (surface.is_union != unions)
          continue;
        if (surface.of_nodes) {
          in_part_ = surface.in_part;
          std::vector<std::size_t> vertices;
          for (auto const& [what, side, line] : surface.lines)
            for (std::int64_t const number : members(Of::nodes, what, line))
              vertices.push_back(node(number, line));
          add_group(mesh.node_groups, by_nodes, surface.name, "surface of nodes", std::move(vertices));
        } else if (surface.is_union) {
          std::vector<std::size_t> quads;
          for (auto const& [what, side, line] : surface.lines) {
            auto const part = boundaries.find(upper(without_instance(what)));
            if (part == boundaries.end())
              text_.fail_at(line, "the surface " + in_quotes(what) + " is not defined, or has no faces");
            auto const& more = mesh.quad_groups[part->second].members;
            quads.insert(quads.end(), more.begin(), more.end());
          }
          add_group(mesh.quad_groups, boundaries, surface.name, "surface", std::move(quads));
        } else {
          add_group(mesh.quad_groups, boundaries, surface.name, "surface", quads_of(surface));
        }
      }
    add_sets(mesh, materials, boundaries, by_nodes);
    tell_what_was_passed_over();
    RawMesh result = builder_.finish();
    result.notes = std::move(notes_);
    return result;
  }

  void add_sets(RawMesh& mesh, std::map<std::string, std::size_t>& materials, std::map<std::string, std::size_t>& boundaries,
                std::map<std::string, std::size_t>& by_nodes) {
    // A name of the part that the assembly has as well gets that of its instance.
    auto const name_of = [&](Of of, Set const& set) {
      return set.in_part && sets(of).index.contains("a/" + upper(set.name)) && !instance_name_.empty() ? instance_name_ + set.name
                                                                                                       : set.name;
    };
    for (Set& set : element_sets_.all) {
      // Abaqus/CAE makes a set _NAME_S1 for a side of surface NAME.
      if (set.hidden || (set.name.starts_with('_') && sides_of_surfaces_.contains(set.name)))
        continue;
      auto const& numbers = members(Of::elements, set);
      if (!numbers.empty() && numbers.front() < 0) {
        notes_.push_back("the element set '" + set.name + "' is passed over: it has negative numbers, which no element has");
        continue;
      }
      std::vector<std::size_t> cells, quads;
      std::int64_t missing = 0;
      for (std::int64_t const number : numbers) {
        auto const found = element_of_number_.find(number);
        if (found == element_of_number_.end())
          missing += !passed_over_.contains(number);
        else
          (elements_[found->second].is_face ? quads : cells).push_back(index_[found->second]);
      }
      if (missing > 0)
        notes_.push_back(std::to_string(missing) + " of the elements of set '" + set.name + "' are not in the file");
      add_group(mesh.cell_groups, materials, name_of(Of::elements, set), "element set", std::move(cells));
      add_group(mesh.quad_groups, boundaries, name_of(Of::elements, set), "element set", std::move(quads));
    }
    for (Set& set : node_sets_.all) {
      std::string const name = name_of(Of::nodes, set);
      // Programs write a node set beside the faces of the same name; the faces are exact.
      if (set.hidden || boundaries.contains(upper(name)))
        continue;
      std::vector<std::size_t> vertices;
      std::int64_t missing = 0;
      for (std::int64_t const number : members(Of::nodes, set)) {
        auto const found = node_of_number_.find(number);
        if (found == node_of_number_.end())
          ++missing;
        else
          vertices.push_back(found->second);
      }
      if (missing > 0)
        notes_.push_back(std::to_string(missing) + " of the nodes of set '" + set.name + "' are not in the file");
      add_group(mesh.node_groups, by_nodes, name, "node set", std::move(vertices));
    }
  }

  void tell_what_was_passed_over() {
    auto const list = [](auto const& counts) {
      std::string text;
      for (auto const& [name, count] : counts)
        text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
      return text;
    };
    if (!passed_over_types_.empty())
      notes_.push_back("elements that are no hexahedra or faces of them are passed over: " + list(passed_over_types_));
    if (!couplings_.empty())
      notes_.push_back("passed over, though it joins, removes or couples parts of the mesh: " + list(couplings_));
  }

  struct Section {
    std::string elset, material;
    std::int64_t line = 0;
    bool in_part = false;
  };

  MeshText& text_;
  RawMeshBuilder builder_;
  std::vector<std::string> notes_;

  std::string keyword_;
  std::map<std::string, std::string> parameters_;
  Handler data_ = nullptr;  ///< of the lines below the keyword
  std::int64_t data_lines_ = 0;
  std::string last_line_;
  std::int64_t last_line_number_ = 0;

  std::vector<std::pair<std::string, std::int64_t>> blocks_;  ///< that are open: keyword and line
  bool in_part_ = false;                                      ///< within a part or an instance
  int parts_ = 0, instances_ = 0;
  std::string instance_name_;  ///< with a dot

  std::vector<Point> points_;
  std::vector<std::int64_t> node_numbers_;
  std::unordered_map<std::int64_t, std::size_t> node_of_number_;
  char node_system_ = 'R', curve_ = 'L';
  bool is_global_ = true;
  Point origin_;
  Vector on_axis_;
  std::array<Vector, 3> axes_;
  std::vector<std::int64_t> copy_from_;
  std::int64_t copy_numbers_ = 0;

  std::string type_name_;
  ElementType type_;
  std::vector<std::int64_t> pending_;  ///< numbers of an element whose lines go on
  std::vector<Element> elements_;
  std::vector<std::int64_t> element_nodes_;
  std::unordered_map<std::int64_t, std::size_t> element_of_number_;
  std::unordered_set<std::int64_t> passed_over_;  ///< numbers of elements that are neither
  std::map<std::string, std::int64_t> passed_over_types_, couplings_;
  bool goes_on_ = false;

  Sets element_sets_, node_sets_;
  std::array<std::ptrdiff_t, 2> current_set_{-1, -1};  ///< of elements, of nodes
  Of set_of_ = Of::elements;
  bool foreign_ = false;  ///< numbers of the lines are not those of the mesh
  std::int64_t changes_ = 0, generated_ = 0;
  int depth_ = 0;

  std::vector<Surface> surfaces_;
  std::map<std::string, std::size_t> surface_of_name_;
  std::size_t surface_ = 0;
  std::set<std::string> sides_of_surfaces_;  ///< element sets that give a side of a surface
  std::vector<Section> sections_;

  std::vector<std::size_t> index_;  ///< of the elements among cells or quadrilaterals
  std::size_t nodes_of_cells_ = 0;
  std::vector<std::array<std::int64_t, 4>> all_sides_;
};

}  // namespace

RawMesh read_abaqus(MeshText& text) {
  return AbaqusReader(text).read();
}

}  // namespace poisson::assembly
