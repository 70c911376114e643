#pragma once

#include <filesystem>
#include <hdf5.h>
#if __has_include(<H5FDdevelop.h>)  // of HDF5 1.14
#include <H5FDdevelop.h>
#endif

#ifdef H5_HAVE_PARALLEL
#error "these are the headers of an HDF5 with MPI; poisson uses the serial one"
#endif

namespace poisson::output {

/// An identifier of HDF5, closed in the end.
class HdfHandle {
public:
  HdfHandle() = default;
  HdfHandle(hid_t id, herr_t (*with)(hid_t)) : id_(id), close_(with) {}
  HdfHandle(HdfHandle&& other) noexcept;
  HdfHandle& operator=(HdfHandle&& other) noexcept;
  ~HdfHandle() { close(); }

  [[nodiscard]] hid_t get() const noexcept { return id_; }
  /// Returns whether HDF5 could close it. Does nothing when it is closed.
  bool close() noexcept;

private:
  hid_t id_ = H5I_INVALID_HID;
  herr_t (*close_)(hid_t) = nullptr;
};

/// While such an object lives, HDF5 prints no errors of this thread.
class QuietHdf {
public:
  QuietHdf();
  QuietHdf(QuietHdf const&) = delete;
  QuietHdf& operator=(QuietHdf const&) = delete;
  ~QuietHdf();

private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

/// Where HDF5 puts the bytes of a new file. A write that fails is remembered with its errno, and everything after it is dropped;
/// HDF5 is told that all is well. For when a write fails HDF5 can neither close the file nor end the process without printing, and
/// it gives the reason only in a text. The file is not locked: some file systems refuse that.
class HdfStorage {
public:
  /// Opens an existing file and truncates it. error() tells whether that failed.
  explicit HdfStorage(std::filesystem::path const& path);
  HdfStorage(HdfStorage const&) = delete;
  HdfStorage& operator=(HdfStorage const&) = delete;
  ~HdfStorage();

  /// H5Fcreate with this list puts a file here. It must be closed before this object is gone.
  [[nodiscard]] hid_t access() const noexcept { return access_.get(); }
  /// errno of the first failure; 0: none yet.
  [[nodiscard]] int error() const noexcept { return state_.error; }
  /// After HDF5 has closed the file; returns error().
  int close() noexcept;

private:
  /// What HDF5 knows the open file by: its own data come first.
  struct State {
    H5FD_t hdf{};
    int descriptor = -1;
    int error = 0;
    haddr_t allocated = 0;  ///< HDF5's end of the file
    haddr_t written = 0;    ///< end of what was written
  };
  static State& state_of(H5FD_t* file) { return *reinterpret_cast<State*>(file); }
  static State const& state_of(H5FD_t const* file) { return *reinterpret_cast<State const*>(file); }
  static H5FD_class_t driver();
  static void write(State& state, haddr_t at, std::size_t n, void const* bytes) noexcept;
  static herr_t read(State& state, haddr_t at, std::size_t n, void* bytes) noexcept;

  State state_;
  HdfHandle driver_, access_;
};

}  // namespace poisson::output
