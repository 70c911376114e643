#include "assembly/dealii/other_process.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/reader_process.hpp"

#include <map>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

namespace poisson::assembly {
namespace {

/// What begins the other process's answer.
enum class Outcome : int { mesh, input_error, environment_error };

/// Numbers and texts through a pipe.
class PipeWriter {
public:
  explicit PipeWriter(int descriptor) : descriptor_(descriptor) {}
  template <class T>
  void value(T const& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    write_answer(descriptor_, &value, sizeof value);
  }
  template <class T>
  void list(std::vector<T> const& values) {
    value(values.size());
    write_answer(descriptor_, values.data(), values.size() * sizeof(T));
  }
  void text(std::string const& text) {
    value(text.size());
    write_answer(descriptor_, text.data(), text.size());
  }
  void names(std::map<std::int64_t, std::string> const& names) {
    value(names.size());
    for (auto const& [id, name] : names) {
      value(id);
      text(name);
    }
  }

private:
  int descriptor_;
};

/// Throws Ended where the other process has ended before.
class PipeReader {
public:
  struct Ended {};
  explicit PipeReader(ReaderProcess& process) : process_(process) {}
  void bytes(void* data, std::size_t n) const {
    if (!process_.read(data, n))
      throw Ended();
  }
  template <class T>
  [[nodiscard]] T value() const {
    static_assert(std::is_trivially_copyable_v<T>);
    T result;
    bytes(&result, sizeof result);
    return result;
  }
  template <class T>
  [[nodiscard]] std::vector<T> list() const {
    std::vector<T> values(value<std::size_t>());
    bytes(values.data(), values.size() * sizeof(T));
    return values;
  }
  [[nodiscard]] std::string text() const {
    std::string text(value<std::size_t>(), '\0');
    bytes(text.data(), text.size());
    return text;
  }
  [[nodiscard]] std::map<std::int64_t, std::string> names() const {
    std::map<std::int64_t, std::string> names;
    for (auto n = value<std::size_t>(); n > 0; --n) {
      auto const id = value<std::int64_t>();
      names[id] = text();
    }
    return names;
  }

private:
  ReaderProcess& process_;
};

/// dealii::Point<3> has a copy constructor of its own; it is three numbers all the same.
struct Coordinates {
  double x, y, z;
};
std::vector<Coordinates> numbers_of(std::vector<dealii::Point<3>> const& points) {
  std::vector<Coordinates> result;
  result.reserve(points.size());
  for (auto const& p : points)
    result.push_back({p[0], p[1], p[2]});
  return result;
}
std::vector<dealii::Point<3>> points_of(std::vector<Coordinates> const& numbers) {
  std::vector<dealii::Point<3>> result;
  result.reserve(numbers.size());
  for (auto const& n : numbers)
    result.emplace_back(n.x, n.y, n.z);
  return result;
}

void send(PipeWriter& pipe, RawMesh const& mesh) {
  pipe.value(Outcome::mesh);
  pipe.list(numbers_of(mesh.vertices));
  pipe.list(mesh.cells);
  pipe.list(mesh.quads);
  for (auto const* const groups : {&mesh.cell_groups, &mesh.quad_groups, &mesh.node_groups}) {
    pipe.value(groups->size());
    for (RawMesh::Group const& group : *groups) {
      pipe.text(group.name);
      pipe.value(group.id);
      pipe.list(group.members);
    }
  }
  pipe.value(mesh.order);
  pipe.list(numbers_of(mesh.shape_nodes));
  pipe.names(mesh.boundary_names);
  pipe.names(mesh.material_names);
  pipe.value(mesh.notes.size());
  for (std::string const& note : mesh.notes)
    pipe.text(note);
}

RawMesh receive(PipeReader const& pipe) {
  RawMesh mesh;
  mesh.vertices = points_of(pipe.list<Coordinates>());
  mesh.cells = pipe.list<RawMesh::Cell>();
  mesh.quads = pipe.list<RawMesh::Quad>();
  for (auto* const groups : {&mesh.cell_groups, &mesh.quad_groups, &mesh.node_groups})
    for (auto n = pipe.value<std::size_t>(); n > 0; --n) {
      RawMesh::Group& group = groups->emplace_back();
      group.name = pipe.text();
      group.id = pipe.value<std::int64_t>();
      group.members = pipe.list<std::size_t>();
    }
  mesh.order = pipe.value<int>();
  mesh.shape_nodes = points_of(pipe.list<Coordinates>());
  mesh.boundary_names = pipe.names();
  mesh.material_names = pipe.names();
  for (auto n = pipe.value<std::size_t>(); n > 0; --n)
    mesh.notes.push_back(pipe.text());
  return mesh;
}

void answer(int descriptor, std::function<RawMesh()> const& read) {
  PipeWriter pipe(descriptor);
  auto const fail = [&](Outcome outcome, std::string const& key, std::string const& what) {
    pipe.value(outcome);
    pipe.text(key);
    pipe.text(what);
  };
  try {
    send(pipe, read());
  } catch (InputError const& error) {
    fail(Outcome::input_error, error.key(), error.what());
  } catch (std::bad_alloc const&) {
    throw;
  } catch (std::exception const& error) {
    fail(Outcome::environment_error, "", error.what());
  }
}

}  // namespace

RawMesh read_in_other_process(MeshText const& text, std::function<RawMesh()> const& read) {
  auto const size = static_cast<std::int64_t>(text.content().size());
  ReaderProcess process(size, reader_limits(size), [&](int descriptor) { answer(descriptor, read); });
  PipeReader const pipe(process);
  try {
    auto const outcome = pipe.value<Outcome>();
    if (outcome == Outcome::mesh)
      return receive(pipe);
    std::string const key = pipe.text(), what = pipe.text();
    if (outcome == Outcome::environment_error)
      throw EnvironmentError(what);
    throw InputError(key, what);
  } catch (PipeReader::Ended const&) {
    std::string const complaint = process.complaint();
    text.fail(complaint.empty() ? "the library that reads such files fails at this one: it is damaged" : complaint);
  }
}

}  // namespace poisson::assembly
