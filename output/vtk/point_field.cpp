#include "output/vtk/point_field.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/reader_process.hpp"
#include "gpu/core/temporary_file.hpp"
#include "output/vtk/vtk_files.hpp"
#include "output/vtk/vtk_library.hpp"

#include <system_error>
#include <utility>

namespace poisson::output {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(fs::path const& path, std::string const& what) {
  throw InputError("", path.string() + ": " + what);
}

bool is_of_vtk(std::string const& ending) {
  return ending == ".vti" || ending == ".vtr" || ending == ".vtu" || ending == ".hdf";
}

/// Calls `read` in a process of its own; what it returns. What it refuses comes as an InputError. Libraries that it needs must be
/// loaded.
std::string try_in_other_process(fs::path const& path, std::function<std::string()> const& read) {
  std::error_code ignored;
  auto const size = static_cast<std::int64_t>(fs::file_size(path, ignored));
  struct Head {
    bool refused = false;
    std::size_t size = 0;
  };
  ReaderProcess process(size, reader_limits(size), [&](int descriptor) {
    Head head;
    std::string answer;
    try {
      answer = read();
    } catch (InputError const& error) {
      head.refused = true;
      answer = error.what();
    }
    head.size = answer.size();
    write_answer(descriptor, &head, sizeof head);
    write_answer(descriptor, answer.data(), answer.size());
  });
  Head head;
  std::string answer;
  if (process.read(&head, sizeof head)) {
    answer.resize(head.size);
    static_cast<void>(process.read(answer.data(), answer.size()));  // what ends it before is told next
  }
  if (std::string const complaint = process.complaint(); !complaint.empty())
    refuse(path, complaint);
  if (head.refused)
    throw InputError("", answer);
  return answer;
}

/// A step of a file where it has several, for VTK to read; none: it reads the file.
std::optional<TemporaryFile> file_of(std::string const& step) {
  return step.empty() ? std::nullopt : std::optional<TemporaryFile>(std::in_place, step);
}

PointField open_grid_field(fs::path const& path, std::optional<TemporaryFile> const& step, std::string const& array,
                           FieldInterpolation interpolation) {
  return vtk_library().open_grid_field(path, step ? fs::path(step->path()) : path, array, interpolation);
}

}  // namespace

PointField open_point_field(fs::path const& path, std::string const& array, FieldInterpolation interpolation,
                            std::optional<std::int64_t> step) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    refuse(path, fs::exists(path, error) ? "is no file" : "there is no such file");
  std::string const ending = path.extension().string();
  if (step && ending != ".hdf")
    refuse(path, "has no steps; `step` is for VTKHDF files (.hdf)");
  if (!is_of_vtk(ending))
    return vtk_library().open_table_field(path, array, interpolation);
  return open_grid_field(path, file_of(ending == ".hdf" ? vtk_library().step_of_hdf(path, step) : ""), array, interpolation);
}

void try_point_field(fs::path const& path, std::string const& array, FieldInterpolation interpolation,
                     std::optional<std::int64_t> step) {
  std::error_code ignored;
  std::string const ending = path.extension().string();
  if (!is_of_vtk(ending) || !fs::is_regular_file(path, ignored))
    return;
  load_vtk();
  auto const file = file_of(ending == ".hdf" ? try_step_of_hdf(path, step) : "");  // it goes with this process, not with the other
  static_cast<void>(try_in_other_process(path, [&] {
    static_cast<void>(open_grid_field(path, file, array, interpolation)({0, 0, 0}));
    return std::string();
  }));
}

std::string try_step_of_hdf(fs::path const& path, std::optional<std::int64_t> step) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored))
    return {};
  load_vtk();
  return try_in_other_process(path, [&] { return vtk_library().step_of_hdf(path, step); });
}

}  // namespace poisson::output
