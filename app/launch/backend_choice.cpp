#include "app/launch/backend_choice.hpp"

#include "app/launch/launch.hpp"
#include "gpu/core/error.hpp"
#include "gpu/kernels/backends.hpp"

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace poisson::app {

namespace {

/// Devices that have a file; 0 where they have none, or are divided into instances (MIG).
int count_device_files() {
  namespace fs = std::filesystem;
  std::error_code error;
  for (auto const& device : fs::directory_iterator("/proc/driver/nvidia/capabilities", error))
    for (auto const& file : fs::directory_iterator(device.path() / "mig", error))
      if (file.path().filename().string().starts_with("gi"))
        return 0;
  int count = 0;
  for (auto const& file : fs::directory_iterator("/dev", error)) {
    std::string const name = file.path().filename().string();
    count += name.starts_with("nvidia") && name.size() > 6 && name.find_first_not_of("0123456789", 6) == std::string::npos ? 1 : 0;
  }
  return count;
}

/// CUDA starts every device that it sees, which takes 0.25 s each, and reads this variable when it starts. Precondition: no other
/// thread reads the environment.
void show_one_device(int number) {
  if (std::string const device = device_to_show(std::getenv("CUDA_VISIBLE_DEVICES"), count_device_files(), number); !device.empty())
    setenv("CUDA_VISIBLE_DEVICES", device.c_str(), 1);
}

/// The device of the rank with this number on its machine; -1: there is none.
int device_of(int number) {
  int const count = cuda_device_count();
  return count > 0 ? number % count : -1;
}

}  // namespace

std::string device_to_show(char const* visible, int present, int number) {
  std::vector<std::string> names;
  if (visible == nullptr)
    for (int device = 0; device < present; ++device)
      names.push_back(std::to_string(device));
  else {
    // As CUDA reads it: up to the first that is not there. Others than numbers are names of devices.
    std::istringstream list(visible);
    for (std::string name; std::getline(list, name, ',');) {
      int index = 0;
      auto const [stop, error] = std::from_chars(name.data(), name.data() + name.size(), index);
      bool const is_number = error == std::errc() && stop == name.data() + name.size();
      if (is_number ? index < 0 || index >= present : !name.starts_with("GPU-"))
        break;
      names.push_back(name);
    }
  }
  return present == 0 || names.empty() ? "" : names[static_cast<std::size_t>(number) % names.size()];
}

BackendChoice choose_backend(std::optional<Backend> wanted, Team& team) {
  BackendChoice choice;
  Communicator& ranks = team.communicator();
  if (wanted != Backend::cpu) {
    int const number = rank_on_host(ranks);
    show_one_device(number);
    choice.device = device_of(number);
    choice.no_cuda = why_no_cuda(choice.device);
  }
  team.together([&] {
    if (wanted == Backend::cuda && !choice.no_cuda.empty())
      throw EnvironmentError("backend cuda: " + choice.no_cuda);
  });
  bool const all_have_one = !any_of_ranks(ranks, !choice.no_cuda.empty());
  choice.backend = wanted.value_or(all_have_one ? Backend::cuda : Backend::cpu);
  return choice;
}

std::future<void> begin_with_device(std::optional<Backend> wanted, Team& team) {
  if (wanted == Backend::cpu)
    return {};
  int const number = rank_on_host(team.communicator());
  show_one_device(number);
  return std::async(std::launch::async | std::launch::deferred, [number] {
    if (int const device = device_of(number); device >= 0)
      static_cast<void>(why_no_cuda(device));
  });
}

}  // namespace poisson::app
