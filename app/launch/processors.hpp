#pragma once

#include "gpu/core/communicator.hpp"

#include <string_view>
#include <vector>

namespace poisson::app {

/// Where a processor of the machine is. Processors of one core differ by `number` only.
struct Processor {
  int number = 0, package = 0, core = 0;
};

/// Share i of n in processors, by package and core, so that neighbours stay together; as even as whole numbers allow. All of them
/// where there are fewer than n.
[[nodiscard]] std::vector<Processor> share_of_processors(std::vector<Processor> processors, int i, int n);

/// Whether a launcher's command line says where ranks are to run.
[[nodiscard]] bool places_ranks(std::string_view command_line);

/// Threads for this rank where the user gives no number. Open MPI binds each of two ranks to one core, and each of more to a
/// socket; where nobody asked it to, the ranks of a machine divide among them the processors that mpirun itself may use, and each
/// is bound to the packages of its share. Ranks that the user or another launcher has bound stay where they are; those that have
/// the same processors share them evenly. Collective; before threads are made.
[[nodiscard]] int threads_of_rank(Communicator& ranks);

}  // namespace poisson::app
