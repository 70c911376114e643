#include "assembly/dealii/drawing.hpp"

#include "assembly/dealii/cell_shapes.hpp"
#include "assembly/dealii/gmsh_program.hpp"
#include "assembly/dealii/sources.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

namespace fs = std::filesystem;

/// How often the size is halved where cells have a bad shape.
constexpr int most_halvings = 2;

std::string number(double value, int digits = 17) {
  std::ostringstream text;
  text.exceptions(std::ios::badbit);  // a stream would leave out what it has no memory for, without a word
  text << std::setprecision(digits) << value;
  return text.str();
}

bool is_script(std::string const& path) {
  return ending_of_mesh_file(path) == ".geo";
}

// --- What a script of gmsh says

struct Token {
  enum class Kind { word, text, sign } kind;
  std::string text;
  std::int64_t line;
};

std::vector<Token> tokens_of(std::string_view script) {
  std::vector<Token> tokens;
  std::int64_t line = 1;
  auto const is_of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t i = 0; i < script.size();) {
    char const c = script[i];
    std::size_t end = i + 1;
    if (script.substr(i, 2) == "//") {
      end = std::min(script.find('\n', i), script.size());
    } else if (script.substr(i, 2) == "/*") {
      std::size_t const close = script.find("*/", i + 2);
      end = close == std::string_view::npos ? script.size() : close + 2;
    } else if (c == '"' || c == '\'') {
      std::size_t const close = std::min(script.find(c, i + 1), script.size());
      tokens.push_back({Token::Kind::text, std::string(script.substr(i + 1, close - i - 1)), line});
      end = std::min(close + 1, script.size());
    } else if (is_of_word(c)) {
      while (end < script.size() && is_of_word(script[end]))
        ++end;
      tokens.push_back({Token::Kind::word, std::string(script.substr(i, end - i)), line});
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      tokens.push_back({Token::Kind::sign, std::string(1, c), line});
    }
    line += std::count(script.begin() + static_cast<std::ptrdiff_t>(i), script.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    i = end;
  }
  return tokens;
}

std::string text_of(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Commands and options of gmsh 4 that start programs, or write files and folders.
bool is_command(std::string const& word) {
  static std::set<std::string> const commands{"SystemCall",
                                              "NonBlockingSystemCall",
                                              "OnelabRun",
                                              "Solver",
                                              "Save",
                                              "Print",
                                              "CreateDir",
                                              "Plugin",
                                              "SaveOptions",
                                              "SaveSession",
                                              "ErrorFileName",
                                              "OptionsFileName",
                                              "TmpFileName",
                                              "SessionFileName",
                                              "LogFileName",
                                              "ExecutableFileName",
                                              "ScriptingLanguages",
                                              "TextEditor",
                                              "WebBrowser",
                                              "WatchFilePattern"};
  return commands.contains(word);
}

void require_no_commands(std::string const& path, std::set<std::string>& known) {
  if (!known.insert(path).second)
    return;
  std::vector<Token> const tokens = tokens_of(text_of(path));
  auto const refuse = [&](Token const& token, std::string const& what) {
    fail_in_mesh_file(path, token.line,
                      what + ". A .geo file is a program: problem.mesh.allow_commands: true lets it, where you trust it");
  };
  auto const is = [&](std::size_t i, std::string_view text) {
    return i < tokens.size() && tokens[i].kind != Token::Kind::text && tokens[i].text == text;
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::word)
      continue;
    std::string const& word = tokens[i].text;
    if (is_command(word))
      refuse(tokens[i], "'" + word + "' starts programs or writes files");
    if (word == "Printf" && is(i + 1, "(")) {  // Printf("...") > "file"
      std::size_t end = i + 2;
      for (int open = 1; open > 0 && end < tokens.size(); ++end)
        open += is(end, "(") ? 1 : is(end, ")") ? -1 : 0;
      if (is(end, ">"))
        refuse(tokens[i], "'Printf' to a file writes it");
    }
    if (word != "Include" && !word.starts_with("Merge"))
      continue;
    if (i + 2 >= tokens.size() || tokens[i + 1].kind != Token::Kind::text || !is(i + 2, ";"))
      refuse(tokens[i], "'" + word + "' of a file whose name is made by the script, so that its commands are not known");
    fs::path const other = fs::path(path).parent_path() / tokens[i + 1].text;
    std::string const ending = ending_of_mesh_file(other.string());
    static std::set<std::string> const without_commands{".step", ".stp", ".brep", ".iges", ".igs", ".msh", ".stl"};
    if (!without_commands.contains(ending))
      require_no_commands(other.lexically_normal().string(), known);
  }
}

/// Whether a script may lead to hexahedra as it is: none come about without the word.
bool may_have_hexahedra(std::string const& path) {
  std::vector<Token> const tokens = tokens_of(text_of(path));
  return std::any_of(tokens.begin(), tokens.end(), [](Token const& token) {
    return token.kind == Token::Kind::word &&
           (token.text.starts_with("Recombine") || token.text == "Include" || token.text.starts_with("Merge"));
  });
}

// --- What gmsh is told

enum class Way { as_drawn, subdivided };

/// A file's name in a string of gmsh's language, which has no way to write some characters.
std::string checked_path(std::string const& path) {
  std::error_code error;
  std::string const absolute = fs::absolute(path, error).lexically_normal().string();
  if (error || std::any_of(absolute.begin(), absolute.end(), [](unsigned char c) { return c == '"' || c == '\\' || c < ' '; }))
    fail_in_mesh_file(path, 0, "gmsh takes no such name of a file or folder: rename it, without quotes, '\\' and line ends");
  return absolute;
}

/// The drawing, then options, which so count more than the drawing's own. `factor`: of all sizes.
std::string script_of(MeshSpec const& spec, Way way, double factor) {
  bool const is_geo = is_script(spec.file);
  double const cut = way == Way::subdivided ? 2 : 1;  // which halves the edges afterwards
  std::string script = "Merge \"" + checked_path(spec.file) + "\";\n";
  if (!is_geo)  // parts that touch share their common face
    script += "SetFactory(\"OpenCASCADE\");\npoissonVolumes() = Volume{:};\nIf (#poissonVolumes() > 1)\n  Coherence;\nEndIf\n";
  for (std::string const what : {"Volume", "Surface"})  // without groups every one has its number as its id
    script += "poissonGroups() = Physical " + what + "{:};\nIf (#poissonGroups() == 0)\n  poissonAll() = " + what +
              "{:};\n  For poissonI In {0:#poissonAll()-1}\n    Physical " + what +
              "(poissonAll(poissonI)) = {poissonAll(poissonI)};\n  EndFor\nEndIf\n";
  if (spec.size) {  // gmsh multiplies by the factor last
    std::string const size = number(*spec.size / spec.scale);
    script += "Mesh.CharacteristicLengthMax = " + size + ";\n";
    if (!is_geo)  // else a tenth of the extent would be the largest
      script += "MeshSize{:} = " + size + ";\n";
  }
  script += "Mesh.CharacteristicLengthFactor = " + number(cut * factor) + " * Mesh.CharacteristicLengthFactor;\n";
  if (way == Way::subdivided)  // together with recombination it makes cells of no use
    script += "Mesh.SubdivisionAlgorithm = 2;\nMesh.RecombineAll = 0;\nMesh.Recombine3DAll = 0;\n";
  script += "Mesh.ElementOrder = " + std::to_string(spec.shape_order.value_or(1)) +
            ";\nMesh.SecondOrderLinear = 0;\nMesh.SecondOrderIncomplete = 0;\nMesh.HighOrderOptimize = 0;\n"
            "Mesh.Format = 1;\nMesh.MshFileVersion = 4.1;\nMesh.Binary = 1;\nMesh.SaveAll = 0;\n"
            "Mesh.SaveParametric = 0;\nMesh.SaveTopology = 0;\nMesh.PartitionSplitMeshFiles = 0;\n";
  return script;
}

// --- Attempts

struct Attempt {
  std::string content;  ///< what gmsh has written
  RawMesh mesh;
  CellShapes shapes;
  std::string problem;  ///< why it is no mesh; empty: it is one, of hexahedra only
  [[nodiscard]] bool is_mesh() const { return problem.empty(); }
  [[nodiscard]] bool is_good() const { return is_mesh() && shapes.quality.worst >= least_scaled_jacobian; }
};

RawMesh read_content(std::string const& path, std::string const& content) {
  MeshText text(path, content);
  return read_gmsh(text);
}

Attempt attempt(MeshSpec const& spec, Way way, double factor) {
  std::string const& path = spec.file;
  GmshAnswer answer = run_gmsh(script_of(spec, way, factor), spec.time_limit);
  std::string const says = answer.messages.empty() ? "" : ". It says: " + answer.messages;
  if (!answer.ended.empty())
    fail_in_mesh_file(path, 0, "gmsh " + answer.ended + says);
  Attempt made;
  if (answer.exit_code != 0) {
    made.problem = "gmsh makes no mesh of it (exit code " + std::to_string(answer.exit_code) + ")" + says;
    return made;
  }
  if (answer.mesh.empty() || (answer.mesh.starts_with("$MeshFormat") && answer.mesh.find("$Nodes") == std::string::npos)) {
    made.problem = "gmsh has made no mesh" + says;
    return made;
  }
  made.content = std::move(answer.mesh);
  try {
    made.mesh = read_content(path, made.content);
  } catch (InputError const& error) {
    std::string_view what = error.what();  // "mesh file '...': ...: only hexahedra ..." and advice for those who make files
    if (std::string const file = "mesh file '" + path + "': "; what.starts_with(file))
      what.remove_prefix(file.size());
    made.problem =
        "gmsh has made what is no mesh of hexahedra: " + std::string(what.substr(0, what.find(": only hexahedra"))) + says;
    return made;
  }
  if (made.mesh.cells.empty())
    made.problem = "gmsh makes no hexahedra of it: it has no volume, or one whose surface is not closed" + says;
  else
    made.shapes = examine_shapes(made.mesh);
  return made;
}

std::string at_text(CellQuality const& quality, double scale) {
  return to_text(dealii::Point<3>(quality.at[0] * scale, quality.at[1] * scale, quality.at[2] * scale));
}

MeshContent make(MeshSpec const& spec) {
  std::string const& path = spec.file;
  auto const content = [](Attempt& made, std::vector<std::string> notes) {
    return MeshContent{std::make_shared<std::string const>(std::move(made.content)), std::move(notes)};
  };
  if (is_script(path) && may_have_hexahedra(path))
    if (Attempt made = attempt(spec, Way::as_drawn, 1); made.is_good())
      return content(made, {});
  double factor = 1;
  std::string before;
  for (int halvings = 0;; ++halvings, factor /= 2) {
    Attempt made = attempt(spec, Way::subdivided, factor);
    if (!made.is_mesh())
      fail_in_mesh_file(path, 0, made.problem);
    auto const n_cells = static_cast<std::int64_t>(made.mesh.cells.size());
    CellQuality const& quality = made.shapes.quality;
    std::string const found = "the worst of " + std::to_string(n_cells) + " cells has the scaled Jacobian " +
                              number(quality.worst, 3) + ", at " + at_text(quality, spec.scale);
    if (made.is_good())
      return content(made, before.empty() ? std::vector<std::string>{}
                                          : std::vector<std::string>{"gmsh was asked for cells of " + number(factor, 6) +
                                                                     " times the size, because " + before});
    if (halvings == most_halvings || !has_memory(8 * n_cells * bytes_per_created_cell))
      fail_in_mesh_file(path, 0,
                        found + (halvings > 0 ? ", with cells of " + number(factor, 6) + " times the size too" : "") +
                            "; less than " + number(least_scaled_jacobian, 6) +
                            " is refused. Try another problem.mesh.size, or cut the drawing into parts that gmsh can mesh as "
                            "bricks (Transfinite, Recombine)");
    if (before.empty())
      before = "with the size itself " + found;
  }
}

/// What the mesh depends on.
std::string identity_of(MeshSpec const& spec) {
  std::error_code error;
  std::ostringstream text;
  text << spec.file << '\n'
       << fs::last_write_time(spec.file, error).time_since_epoch().count() << ' ' << fs::file_size(spec.file, error) << ' '
       << std::setprecision(17) << spec.size.value_or(0) << ' ' << spec.scale << ' ' << spec.shape_order.value_or(1);
  return text.str();
}

}  // namespace

void require_no_commands(std::string const& path) {
  std::set<std::string> known;
  require_no_commands(path, known);
}

MeshContent draw(MeshSpec const& spec) {
  require_mesh_file(spec.file);
  if (spec.file.ends_with(".gz") || spec.file.ends_with(".GZ"))
    fail_in_mesh_file(spec.file, 0, "compressed drawings are not read; unpack it first");
  if (is_script(spec.file) && !spec.allow_commands)
    require_no_commands(spec.file);
  static std::mutex mutex;
  static std::pair<std::string, MeshContent> last;
  std::lock_guard const lock(mutex);
  if (std::string identity = identity_of(spec); identity != last.first) {
    last = {};
    last = {std::move(identity), make(spec)};
  }
  return last.second;
}

RawMesh read_drawing(MeshSpec const& spec) {
  MeshContent const made = spec.content ? MeshContent{spec.content, spec.content_notes} : draw(spec);
  RawMesh mesh = read_content(spec.file, *made.bytes);
  mesh.notes.insert(mesh.notes.end(), made.notes.begin(), made.notes.end());
  return mesh;
}

}  // namespace poisson::assembly
