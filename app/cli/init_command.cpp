#include "app/cli/init_command.hpp"

#include "app/cli/options.hpp"
#include "app/cli/templates.hpp"
#include "app/io/console.hpp"
#include "app/launch/exit_code.hpp"
#include "output/files/atomic_file.hpp"

#include <filesystem>
#include <iostream>

namespace poisson::app {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

Template const& find_template(std::string const& name) {
  std::vector<std::string_view> names;
  std::string known;
  for (Template const& t : templates()) {
    if (t.name == name)
      return t;
    names.push_back(t.name);
    known.append(known.empty() ? "" : ", ").append(t.name);
  }
  std::string const near = nearest_name(name, names);
  throw usage_error("init", "unknown template '" + name + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                "; there are " + known);
}

void write_template(Template const& t, fs::path const& path, bool overwrite) {
  std::error_code error;
  auto const status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::regular && !overwrite)
    throw usage_error("init",
                      "'" + path.string() + "' exists; choose another file with --output FILE, or replace it with --overwrite");
  if (status.type() != fs::file_type::regular && status.type() != fs::file_type::not_found && status.type() != fs::file_type::none)
    throw usage_error("init", "'" + path.string() +
                                  "' is there and is not a regular file: it is not replaced; choose another with "
                                  "--output FILE");
  output::write_text_file(path, t.text);
}

}  // namespace

int run_init_command(std::vector<std::string> const& words) {
  std::string file;
  bool help = false, overwrite = false;
  po::options_description visible(
      "poisson init [NAME]\n\n"
      "Prints a configuration to begin with, every line of it explained. Without NAME: the templates that "
      "there are.\n\nOptions");
  auto add = visible.add_options();
  add("help,h", po::bool_switch(&help), "this text");
  add("output", po::value(&file)->value_name("FILE"), "write it to this file, which must not exist (default: standard output)");
  add("overwrite", po::bool_switch(&overwrite), "replace FILE");
  auto const [map, names] = read_options("init", words, visible, "name");
  if (help)
    return exit_done;
  if (names.size() > 1)
    throw usage_error("init", "one template is taken, found also '" + names[1] + "'");
  bool const to_file = map.count("output") > 0;
  if (to_file && file.empty())
    throw usage_error("init", "--output must name a file, found ''");
  if (overwrite && !to_file)
    throw usage_error("init", "--overwrite needs --output FILE");
  if (names.empty()) {
    if (to_file)
      throw usage_error("init", "the name of a template is needed: poisson init NAME --output FILE; 'poisson init' lists them");
    std::vector<std::pair<std::string, std::string>> rows;
    for (Template const& t : templates())
      rows.emplace_back(t.name, t.description());
    Console(false).table(rows);
    return exit_done;
  }
  Template const& chosen = find_template(names[0]);
  Template const& mesh = template_mesh();
  bool const reads_mesh = chosen.text.find(mesh.name) != std::string_view::npos;
  if (!to_file) {
    std::cout << chosen.text << std::flush;
    if (reads_mesh)
      std::cerr << "poisson: note: this reads " << mesh.name << "; with --output FILE that is written, too\n";
    return exit_done;
  }
  write_template(chosen, file, overwrite);
  fs::path const beside = fs::path(file).parent_path() / mesh.name;
  std::error_code error;
  if (reads_mesh && !fs::exists(beside, error)) {
    fs::create_directories(beside.parent_path(), error);
    output::write_text_file(beside, mesh.text);
  }
  return exit_done;
}

}  // namespace poisson::app
