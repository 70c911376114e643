#include "output/picture/picture.hpp"

#include "gpu/core/error.hpp"

namespace poisson::output {

namespace {

[[noreturn]] void refuse(std::string const& what) {
  throw EnvironmentError("cannot draw " + what + ": this build has no pictures; build with POISSON_PICTURES=ON and Cairo");
}

}  // namespace

bool pictures_built() {
  return false;
}

std::int64_t picture_bytes(std::int64_t, std::int64_t, int, std::int64_t, PictureOptions const&, bool) {
  return 0;
}

std::string picture_png(Mesh const&, PictureField const&, PictureOptions const&) {
  refuse("a picture");
}

PictureSurface picture_surface(Mesh const&, PictureField const&, PictureOptions const&, PicturePart const*) {
  refuse("a picture");
}

std::string picture_png(PictureSurface const&, PictureField const&, PictureOptions const&) {
  refuse("a picture");
}

std::string plane_png(PlaneValues const&, PictureOptions const&) {
  refuse("a picture");
}

void write_picture(std::filesystem::path const& path, Mesh const&, std::span<double const>, PictureOptions const&) {
  refuse("'" + path.string() + "'");
}

void write_plot(std::filesystem::path const& path, std::vector<Curve> const&, PlotOptions const&) {
  refuse("'" + path.string() + "'");
}

}  // namespace poisson::output
