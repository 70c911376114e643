#include "app/results/versions.hpp"

#include "gpu/kernels/backends.hpp"

#include <boost/version.hpp>

#include <unistd.h>

#include <array>
#include <ctime>

namespace poisson::app {

std::string library_versions() {
  return "deal.II " POISSON_DEALII_VERSION ", VTK " POISSON_VTK_VERSION ", Boost " + std::to_string(BOOST_VERSION / 100000) + "." +
         std::to_string(BOOST_VERSION / 100 % 1000);
}

std::string versions_text() {
  return std::string("poisson " POISSON_VERSION ", commit ") + std::string(commit_of_build()) +
         ", " POISSON_BUILD_TYPE ", compiler " __VERSION__ ", " + library_versions();
}

std::string version_report() {
  return "poisson " POISSON_VERSION "\n"
         "commit     " +
         std::string(commit_of_build()) + "\nbuild      " POISSON_BUILD_TYPE ", kernels for " + cpu_kernels() +
         "\ncompiler   " POISSON_COMPILER " " __VERSION__ "\nCUDA       " POISSON_CUDA_TEXT "\nMPI        " POISSON_MPI_TEXT
         "\nlibraries  " +
         library_versions() + "\n";
}

nlohmann::ordered_json provenance_of(std::string const& command) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0)
    host[0] = '\0';
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 64> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {{"date", date.data()},
          {"host", host.data()},
          {"command", command},
          {"commit", commit_of_build()},
          {"build", POISSON_BUILD_TYPE},
          {"compiler", __VERSION__},
          {"libraries", library_versions()}};
}

std::string date_text() {
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts);
  return text.data();
}

}  // namespace poisson::app
