#pragma once

namespace poisson::app {

/// `poisson info`: build, libraries, devices, memory, measured copy bandwidth, on standard output.
void print_info();

}  // namespace poisson::app
