#include "output/picture/picture.hpp"

#include "gpu/core/error.hpp"

namespace poisson::output {

namespace {

[[noreturn]] void refuse(std::filesystem::path const& path) {
  throw EnvironmentError("cannot draw '" + path.string() +
                         "': this build has no pictures; build with POISSON_PICTURES=ON and Cairo");
}

}  // namespace

bool pictures_built() {
  return false;
}

std::int64_t picture_bytes(std::int64_t, std::int64_t, int, std::int64_t, PictureOptions const&) {
  return 0;
}

void write_picture(std::filesystem::path const& path, Mesh const&, std::span<double const>, PictureOptions const&) {
  refuse(path);
}

void write_plot(std::filesystem::path const& path, std::vector<Curve> const&, PlotOptions const&) {
  refuse(path);
}

}  // namespace poisson::output
