#pragma once

namespace poisson {

/// `poisson info`: build, libraries, devices, memory, measured copy bandwidth, on standard output.
void print_info();

}  // namespace poisson
