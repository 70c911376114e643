#include "app/run/run_device.hpp"

#include "app/launch/backend_choice.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/device_ranks.hpp"

namespace poisson::app {

RunDevice::RunDevice(std::optional<Backend> wanted, Team& team, RunLog& log, Kept& kept) : team_(team), log_(log) {
  auto known = kept.choices.find(wanted);
  if (known == kept.choices.end())
    known = kept.choices.emplace(wanted, choose_backend(wanted, team)).first;
  BackendChoice const& choice = known->second;
  backend_ = choice.backend;
  kept_ = &kept.contexts[backend_];
  name_ = &kept.names[backend_];
  // Creating a CUDA context takes a good part of a second: it happens while the matrix is made.
  if (*kept_ == nullptr)
    future_context_ = std::async(backend_ == Backend::cuda ? std::launch::async | std::launch::deferred : std::launch::deferred,
                                 [backend = backend_, device = choice.device] { return make_context(backend, device); });
  else
    (*kept_)->reset_memory_peak();
  log.record.backend = name_of(backend_);
  log.record.threads = thread_count();
}

void RunDevice::connect_ranks(std::int64_t unknowns) {
  // Through host memory, solving 10^9 unknowns on four H200 takes 0.3 s longer than by NCCL, which takes 0.9 s to connect, 135
  // million 0.2 s longer.
  constexpr std::int64_t large = 300'000'000;
  if (backend_ != Backend::cuda || team_.is_alone())
    return;
  team_.together([&] { static_cast<void>(context()); });
  connect_beside(context(), team_.communicator(), unknowns >= large ? Connect::soon : Connect::in_long_solves);
}

Context& RunDevice::context() {
  if (context_ == nullptr) {
    log_.record.clock.time(Stage::device, [&] {
      if (*kept_ == nullptr)
        *kept_ = future_context_.get();
    });
    context_ = kept_->get();
    context_->use_in_this_thread();  // another one may have made it
    if (name_->empty())              // its description asks for the memory that is free, too
      *name_ = context_->description().name;
    log_.record.device = *name_;
  }
  return *context_;
}

}  // namespace poisson::app
