#include "app/launch/backend_choice.hpp"

#include "app/launch/launch.hpp"
#include "gpu/core/error.hpp"
#include "gpu/kernels/backends.hpp"

namespace poisson::app {

namespace {

/// The device of the rank with this number on its machine; -1: there is none.
int device_of(int number) {
  int const count = cuda_device_count();
  return count > 0 ? number % count : -1;
}

}  // namespace

BackendChoice choose_backend(std::optional<Backend> wanted, Team& team) {
  BackendChoice choice;
  Communicator& ranks = team.communicator();
  if (wanted != Backend::cpu) {
    choice.device = device_of(rank_on_host(ranks));
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
  return std::async(std::launch::async | std::launch::deferred, [number = rank_on_host(team.communicator())] {
    if (int const device = device_of(number); device >= 0)
      static_cast<void>(why_no_cuda(device));
  });
}

}  // namespace poisson::app
