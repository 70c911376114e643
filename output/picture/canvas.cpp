#include "output/picture/canvas.hpp"

#include "gpu/core/module.hpp"
#include "output/picture/picture.hpp"

extern "C" __attribute__((weak)) poisson::output::CairoFunctions const* poisson_cairo();

namespace poisson::output {

namespace {

CairoFunctions const& library() {
  static Module<CairoFunctions> const module("poisson_cairo", poisson_cairo, "pictures");
  return module.functions();
}

}  // namespace

bool pictures_built() {
#ifdef POISSON_PICTURES
  return true;
#else
  return false;
#endif
}

void load_pictures() {
  static_cast<void>(library());
}

std::unique_ptr<Canvas> open_canvas(int width, int height, PictureFormat format) {
  return library().open(width, height, format);
}

}  // namespace poisson::output
