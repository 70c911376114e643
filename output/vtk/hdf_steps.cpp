#include "output/vtk/hdf_steps.hpp"

#include "gpu/core/error.hpp"
#include "output/vtk/hdf_storage.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace poisson::output {
namespace {

/// Copies one step of an open file to a new one.
class StepReader {
public:
  StepReader(std::filesystem::path const& path, hid_t root) : path_(path), root_(root) {}

  [[noreturn]] void refuse(std::string const& what) const { throw InputError("", path_.string() + ": " + what); }

  /// None: there is no group Steps.
  [[nodiscard]] std::optional<std::int64_t> count() const {
    if (!has("Steps"))
      return std::nullopt;
    HdfHandle const attribute(H5Aopen_by_name(root_, "Steps", "NSteps", H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    std::int64_t n = 0;
    if (attribute.get() < 0 || H5Sget_simple_extent_npoints(HdfHandle(H5Aget_space(attribute.get()), H5Sclose).get()) != 1 ||
        H5Aread(attribute.get(), H5T_NATIVE_INT64, &n) < 0 || n < 1)
      refuse("its group Steps has no attribute NSteps, a positive number");
    return n;
  }

  /// The bytes of a file with step s of n.
  std::string copied(std::int64_t s, std::int64_t n) {
    step_ = s;
    n_steps_ = n;
    if (std::string const type = type_of(); type != "UnstructuredGrid")
      refuse("its steps have the type '" + type + "'; those of UnstructuredGrid are read");
    HdfHandle const access = taken(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    check(H5Pset_fapl_core(access.get(), std::size_t{1} << 20, false) >= 0);
    HdfHandle const file = taken(H5Fcreate("step", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
    HdfHandle const root = taken(H5Gcreate2(file.get(), "VTKHDF", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    to_ = root.get();
    write_header();
    std::int64_t const first_part = of_step("Steps/PartOffsets").value_or(0);
    std::int64_t const n_parts = of_step("Steps/NumberOfParts").value_or(rows("NumberOfPoints") - first_part);
    auto const in_parts = [&](char const* name) {
      copy_rows(name, first_part, n_parts);
      std::vector<std::int64_t> const counts = integers(name, first_part, n_parts);
      return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}, [&](std::int64_t sum, std::int64_t count) {
        if (count < 0 || count > most_rows - sum)
          refuse(std::string(name) + " has values that cannot be");
        return sum + count;
      });
    };
    std::int64_t const points = in_parts("NumberOfPoints"), cells = in_parts("NumberOfCells");
    std::int64_t const ids = in_parts("NumberOfConnectivityIds");
    std::int64_t const first_point = of_step("Steps/PointOffsets").value_or(0),
                       first_cell = of_step("Steps/CellOffsets").value_or(0);
    copy_rows("Points", first_point, points);
    copy_rows("Connectivity", of_step("Steps/ConnectivityIdOffsets").value_or(0), ids);
    copy_rows("Types", first_cell, cells);
    copy_rows("Offsets", first_cell + first_part, cells + n_parts);  // every part has one more than cells
    copy_fields("PointData", first_point, points);
    copy_fields("CellData", first_cell, cells);
    check(H5Fflush(file.get(), H5F_SCOPE_GLOBAL) >= 0);
    ssize_t const size = H5Fget_file_image(file.get(), nullptr, 0);
    check(size > 0);
    std::string bytes(static_cast<std::size_t>(size), '\0');
    check(H5Fget_file_image(file.get(), bytes.data(), bytes.size()) == size);
    return bytes;
  }

private:
  static constexpr std::int64_t most_rows = std::int64_t{1} << 40;

  void check(bool good) const {
    if (!good)
      refuse("HDF5 cannot read step " + std::to_string(step_));
  }
  HdfHandle taken(hid_t id, herr_t (*close)(hid_t)) const {
    HdfHandle handle(id, close);
    check(id >= 0);
    return handle;
  }
  /// Whether there is something at "a/b".
  [[nodiscard]] bool has(std::string const& name) const {
    for (std::size_t end = name.find('/');; end = name.find('/', end + 1)) {
      if (H5Lexists(root_, name.substr(0, end).c_str(), H5P_DEFAULT) <= 0)
        return false;
      if (end == std::string::npos)
        return true;
    }
  }
  [[nodiscard]] std::string type_of() const {
    HdfHandle const attribute(H5Aopen(root_, "Type", H5P_DEFAULT), H5Aclose);
    HdfHandle const type(attribute.get() < 0 ? H5I_INVALID_HID : H5Aget_type(attribute.get()), H5Tclose);
    if (type.get() < 0 || H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 ||
        H5Tget_size(type.get()) > 1000)
      refuse("it has no attribute Type, a text of fixed length");
    std::string text(H5Tget_size(type.get()), '\0');
    check(H5Aread(attribute.get(), type.get(), text.data()) >= 0);
    return text.substr(0, std::min(text.find('\0'), text.size()));
  }

  struct Open {
    HdfHandle set, space;
    std::vector<hsize_t> size;
  };
  [[nodiscard]] Open open(std::string const& name) const {
    if (!has(name))
      refuse("it has no " + name);
    Open result;
    result.set = HdfHandle(H5Dopen2(root_, name.c_str(), H5P_DEFAULT), H5Dclose);
    if (result.set.get() < 0)
      refuse(name + " is no data set");
    result.space = taken(H5Dget_space(result.set.get()), H5Sclose);
    int const rank = H5Sget_simple_extent_ndims(result.space.get());
    if (rank < 1 || rank > 2)
      refuse(name + " has " + std::to_string(rank) + " dimensions");
    result.size.resize(static_cast<std::size_t>(rank));
    H5Sget_simple_extent_dims(result.space.get(), result.size.data(), nullptr);
    return result;
  }
  [[nodiscard]] std::int64_t rows(std::string const& name) const { return static_cast<std::int64_t>(open(name).size[0]); }

  /// Selects rows of a data set; the space that they have in memory.
  HdfHandle select(Open& from, std::string const& name, std::int64_t first, std::int64_t count) const {
    if (first < 0 || count < 0 || count > most_rows || first > most_rows ||
        static_cast<std::uint64_t>(first + count) > from.size[0])
      refuse("step " + std::to_string(step_) + " wants the rows " + std::to_string(first) + " to " + std::to_string(first + count) +
             " of " + name + ", which has " + std::to_string(from.size[0]));
    std::vector<hsize_t> start(from.size.size(), 0), size = from.size;
    start[0] = static_cast<hsize_t>(first);
    size[0] = static_cast<hsize_t>(count);
    if (count > 0)
      check(H5Sselect_hyperslab(from.space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr) >= 0);
    else
      check(H5Sselect_none(from.space.get()) >= 0);
    HdfHandle memory = taken(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose);
    return memory;
  }
  [[nodiscard]] std::vector<std::int64_t> integers(std::string const& name, std::int64_t first, std::int64_t count) const {
    Open from = open(name);
    HdfHandle const memory = select(from, name, first, count);
    std::vector<std::int64_t> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(memory.get())));
    if (!values.empty())
      check(H5Dread(from.set.get(), H5T_NATIVE_INT64, memory.get(), from.space.get(), H5P_DEFAULT, values.data()) >= 0);
    if (values.size() != static_cast<std::size_t>(count))
      refuse(name + " has " + std::to_string(from.size.back()) + " columns");
    return values;
  }
  /// What such an array says of the step; none where it is not there.
  [[nodiscard]] std::optional<std::int64_t> of_step(std::string const& name) const {
    if (!has(name))
      return std::nullopt;
    if (rows(name) != n_steps_)
      refuse(name + " has " + std::to_string(rows(name)) + " rows for " + std::to_string(n_steps_) + " steps");
    return integers(name, step_, 1).front();
  }

  void write_header() const {
    hsize_t const two = 2;
    std::int64_t const version[2] = {1, 0};
    HdfHandle const space = taken(H5Screate_simple(1, &two, nullptr), H5Sclose), scalar = taken(H5Screate(H5S_SCALAR), H5Sclose);
    HdfHandle const number = taken(H5Acreate2(to_, "Version", H5T_NATIVE_INT64, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    check(H5Awrite(number.get(), H5T_NATIVE_INT64, version) >= 0);
    std::string const grid = "UnstructuredGrid";
    HdfHandle const text = taken(H5Tcopy(H5T_C_S1), H5Tclose);
    check(H5Tset_size(text.get(), grid.size()) >= 0 && H5Tset_strpad(text.get(), H5T_STR_NULLPAD) >= 0);
    HdfHandle const type = taken(H5Acreate2(to_, "Type", text.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    check(H5Awrite(type.get(), text.get(), grid.c_str()) >= 0);
  }
  void copy_rows(std::string const& name, std::int64_t first, std::int64_t count) const {
    Open from = open(name);
    HdfHandle const memory = select(from, name, first, count);
    HdfHandle const in_file = taken(H5Dget_type(from.set.get()), H5Tclose);
    if (H5Tget_class(in_file.get()) != H5T_INTEGER && H5Tget_class(in_file.get()) != H5T_FLOAT)
      refuse(name + " has no numbers");
    HdfHandle const type = taken(H5Tget_native_type(in_file.get(), H5T_DIR_ASCEND), H5Tclose);
    HdfHandle const to =
        taken(H5Dcreate2(to_, name.c_str(), type.get(), memory.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
    std::vector<unsigned char> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(memory.get())) *
                                      H5Tget_size(type.get()));
    if (values.empty())
      return;
    check(H5Dread(from.set.get(), type.get(), memory.get(), from.space.get(), H5P_DEFAULT, values.data()) >= 0);
    check(H5Dwrite(to.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  }
  /// The arrays of a group; each may begin elsewhere, as one that does not change with the steps.
  void copy_fields(std::string const& group, std::int64_t first, std::int64_t count) const {
    taken(H5Gcreate2(to_, group.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    if (!has(group))
      return;
    HdfHandle const opened(H5Gopen2(root_, group.c_str(), H5P_DEFAULT), H5Gclose);
    H5G_info_t info{};
    if (opened.get() < 0 || H5Gget_info(opened.get(), &info) < 0)
      refuse(group + " is no group");
    for (hsize_t i = 0; i < info.nlinks; ++i) {
      char name[1024];
      ssize_t const length =
          H5Lget_name_by_idx(root_, group.c_str(), H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT);
      check(length > 0 && length < static_cast<ssize_t>(sizeof name));
      copy_rows(group + "/" + name, of_step("Steps/" + group + "Offsets/" + name).value_or(first), count);
    }
  }

  std::filesystem::path const& path_;
  hid_t root_;
  hid_t to_ = H5I_INVALID_HID;
  std::int64_t step_ = 0, n_steps_ = 0;
};

}  // namespace

std::string step_of_hdf(std::filesystem::path const& path, std::optional<std::int64_t> step) {
  QuietHdf const quiet;
  HdfHandle const file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  bool const has_root = file.get() >= 0 && H5Lexists(file.get(), "VTKHDF", H5P_DEFAULT) > 0;
  HdfHandle const root(has_root ? H5Gopen2(file.get(), "VTKHDF", H5P_DEFAULT) : H5I_INVALID_HID, H5Gclose);
  if (root.get() < 0)
    return {};  // others say what is wrong
  StepReader reader(path, root.get());
  std::int64_t const n = reader.count().value_or(1);
  std::string const has = "has " + std::to_string(n) + (n == 1 ? " step" : " steps");
  if (!step && n > 1)
    reader.refuse(has + ", and one is needed: `step` says which, from 0 to " + std::to_string(n - 1) + ", or last");
  if (step && *step >= n)
    reader.refuse(has + ", counted from 0; there is no step " + std::to_string(*step));
  return n == 1 ? std::string() : reader.copied(*step == last_step ? n - 1 : *step, n);
}

}  // namespace poisson::output
