#include "app/results/output.hpp"
#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <locale>
#include <sstream>
#include <string>
#include <vector>

namespace poisson::app {

namespace {

constexpr std::array<char, 3> letters{'x', 'y', 'z'};

std::string sub_volumes_csv(EffectiveResult const& effective) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // a stream would leave out what it has no memory for, without a word
  out.imbue(std::locale::classic());
  out.precision(17);
  out << "volume,first_x,first_y,first_z";
  for (EffectivePhase const& phase : effective.phases)
    out << ",fraction." << phase.name;
  for (char const i : letters)
    for (char const j : letters)
      out << "," << i << j;
  out << "\n";
  for (std::size_t v = 0; v < effective.sub_volumes.size(); ++v) {
    SubVolume const& part = effective.sub_volumes[v];
    out << v + 1;
    for (std::int64_t const cell : part.first)
      out << "," << cell;
    for (double const fraction : part.fractions)
      out << "," << fraction;
    for (auto const& row : part.tensor)
      for (double const entry : row)
        out << "," << entry;
    out << "\n";
  }
  return out.str();
}

/// The diagonal of every sub-volume's tensor, the smallest first, and that of the whole box as a line across.
std::vector<output::Curve> curves_of(EffectiveResult const& effective) {
  std::vector<output::Curve> curves;
  std::size_t const n = effective.sub_volumes.size();
  for (std::size_t d = 0; d < 3; ++d) {
    output::Curve& parts = curves.emplace_back();
    parts.label = std::string("sub-volumes, ") + letters[d] + letters[d];
    for (std::size_t v = 0; v < n; ++v) {
      parts.x.push_back(static_cast<double>(v + 1));
      parts.y.push_back(effective.sub_volumes[v].tensor[d][d]);
    }
    std::sort(parts.y.begin(), parts.y.end());
    double const whole = effective.tensor().by_flux[d][d];
    curves.push_back({std::string("whole box, ") + letters[d] + letters[d], {1, static_cast<double>(n)}, {whole, whole}});
  }
  return curves;
}

/// The tensors of sub-volumes: sub_volumes.csv, and a plot of them.
class SubVolumes final : public Output {
public:
  explicit SubVolumes(RunConfig const& config) : spec_(config.output) {}

  [[nodiscard]] std::vector<std::string> names() const override {
    std::vector<std::string> names{"sub_volumes.csv"};
    if (draws())
      for (std::string const& ending : spec_.picture_endings())
        names.push_back("sub_volumes" + ending);
    return names;
  }

  void write(Solution const& solution, RunLog&, ResultsDirectory& directory) override {
    auto const& effective = solution.record.effective;
    if (!effective || effective->sub_volumes.empty())
      return;
    directory.try_write("sub_volumes.csv",
                        [&](std::filesystem::path const& path) { output::write_text_file(path, sub_volumes_csv(*effective)); });
    if (!draws())
      return;
    output::PlotOptions options;
    options.title = "Effective k of sub-volumes, in ascending order";
    options.x_label = "sub-volumes";
    options.y_label = "effective k";
    options.y_log = false;
    std::vector<output::Curve> const curves = curves_of(*effective);
    for (std::string const& ending : spec_.picture_endings())
      directory.try_write("sub_volumes" + ending,
                          [&](std::filesystem::path const& path) { output::write_plot(path, curves, options); });
  }

private:
  [[nodiscard]] bool draws() const { return spec_.picture && output::pictures_built(); }

  OutputSpec const& spec_;
};

}  // namespace

std::unique_ptr<Output> make_sub_volumes(RunConfig const& config) {
  return std::make_unique<SubVolumes>(config);
}

}  // namespace poisson::app
