#include "output/vtk/hdf_storage.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace poisson::output {

HdfHandle::HdfHandle(HdfHandle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}

HdfHandle& HdfHandle::operator=(HdfHandle&& other) noexcept {
  if (this != &other) {
    close();
    id_ = std::exchange(other.id_, H5I_INVALID_HID);
    close_ = other.close_;
  }
  return *this;
}

bool HdfHandle::close() noexcept {
  if (id_ < 0)
    return true;
  QuietHdf const quiet;
  return close_(std::exchange(id_, H5I_INVALID_HID)) >= 0;
}

QuietHdf::QuietHdf() {
  H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

QuietHdf::~QuietHdf() {
  H5Eset_auto2(H5E_DEFAULT, print_, data_);
}

void HdfStorage::write(State& state, haddr_t at, std::size_t n, void const* bytes) noexcept {
  auto const* from = static_cast<char const*>(bytes);
  state.written = std::max(state.written, at + n);
  while (n > 0 && state.error == 0) {
    auto const done = ::pwrite(state.descriptor, from, n, static_cast<off_t>(at));
    if (done > 0) {
      from += done;
      at += static_cast<haddr_t>(done);
      n -= static_cast<std::size_t>(done);
    } else if (done == 0 || errno != EINTR) {
      state.error = done == 0 ? ENOSPC : errno;
    }
  }
}

herr_t HdfStorage::read(State& state, haddr_t at, std::size_t n, void* bytes) noexcept {
  auto* to = static_cast<char*>(bytes);
  while (n > 0) {
    auto const done = ::pread(state.descriptor, to, n, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0) {
      if (state.error == 0)
        state.error = errno;
      return -1;
    }
    if (done == 0) {  // allocated and not written yet
      std::memset(to, 0, n);
      break;
    }
    to += done;
    at += static_cast<haddr_t>(done);
    n -= static_cast<std::size_t>(done);
  }
  return 0;
}

H5FD_class_t HdfStorage::driver() {
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = 511;  // the last of those that anybody may use
#endif
  driver.name = "poisson_storage";
  driver.maxaddr = (haddr_t{1} << 62) - 1;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(State*);
  driver.open = [](char const*, unsigned, hid_t access, haddr_t) -> H5FD_t* {
    auto const* const state = static_cast<State* const*>(H5Pget_driver_info(access));
    return state == nullptr ? nullptr : &(*state)->hdf;
  };
  driver.close = [](H5FD_t*) -> herr_t { return 0; };  // close() does it
  driver.get_eoa = [](H5FD_t const* file, H5FD_mem_t) { return state_of(file).allocated; };
  driver.set_eoa = [](H5FD_t* file, H5FD_mem_t, haddr_t end) -> herr_t {
    state_of(file).allocated = end;
    return 0;
  };
  driver.get_eof = [](H5FD_t const* file, H5FD_mem_t) { return state_of(file).written; };
  driver.read = [](H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t n, void* bytes) {
    return read(state_of(file), at, n, bytes);
  };
  driver.write = [](H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t n, void const* bytes) -> herr_t {
    write(state_of(file), at, n, bytes);
    return 0;
  };
  driver.truncate = [](H5FD_t* file, hid_t, hbool_t) -> herr_t {  // readers want a file as long as its first block says
    State& state = state_of(file);
    if (state.error == 0 && ::ftruncate(state.descriptor, static_cast<off_t>(state.allocated)) != 0)
      state.error = errno;
    state.written = state.allocated;
    return 0;
  };
  std::fill(std::begin(driver.fl_map), std::end(driver.fl_map), H5FD_MEM_DEFAULT);
  return driver;
}

HdfStorage::HdfStorage(std::filesystem::path const& path) {
  state_.descriptor = ::open(path.c_str(), O_RDWR | O_TRUNC | O_CLOEXEC);
  if (state_.descriptor < 0)
    state_.error = errno;
  QuietHdf const quiet;
  static H5FD_class_t const driver = HdfStorage::driver();
  driver_ = {H5FDregister(&driver), H5FDunregister};
  access_ = {H5Pcreate(H5P_FILE_ACCESS), H5Pclose};
  State* const state = &state_;
  if (driver_.get() < 0 || access_.get() < 0 || H5Pset_driver(access_.get(), driver_.get(), &state) < 0)
    access_.close();
}

HdfStorage::~HdfStorage() {
  close();
}

int HdfStorage::close() noexcept {
  if (state_.descriptor >= 0 && ::close(state_.descriptor) != 0 && state_.error == 0 && errno != EINTR)
    state_.error = errno;
  state_.descriptor = -1;
  return state_.error;
}

}  // namespace poisson::output
