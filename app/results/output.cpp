#include "app/results/output.hpp"

#include "app/analysis/snapshots.hpp"
#include "app/domain/gathered_rows.hpp"
#include "app/io/output_mesh.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/threads.hpp"

#include <algorithm>
#include <future>
#include <iterator>
#include <set>
#include <utility>

namespace poisson::app {

namespace {

/// The unknowns of the whole mesh, for analyses of several cases.
class Unknowns final : public Output {
public:
  [[nodiscard]] std::vector<std::string> names() const override { return {snapshot_file}; }
  [[nodiscard]] std::set<SolutionField> arrays() const override { return {SolutionField::u}; }
  void keep(Solution const& solution, std::filesystem::path const&) override {
    if (solution.finite)
      unknowns_ = gathered_values(solution.mesh.of_own_rows(solution.u.host()), solution.mesh.row_numbers(), solution.team);
  }
  void write(Solution const&, RunLog&, ResultsDirectory& directory) override {
    if (!unknowns_.empty())
      write_snapshot(unknowns_, directory);
  }

private:
  HostVector<double> unknowns_;
};

}  // namespace

output::Mesh Solution::cells() const {
  return own_cells ? as_output(own_cells->nodes) : output::Mesh(output::Grid{record.order, {}, {}});
}

assembly::SolutionFields const& Solution::fields() const {
  static assembly::SolutionFields const none;
  return own_cells ? own_cells->fields : none;
}

Outputs::Outputs(RunConfig const& config, int n_ranks, bool keeps_unknowns) : config_(config), n_ranks_(n_ranks) {
  auto const add = [&](std::unique_ptr<Output> output) { list_.push_back(std::move(output)); };
  OutputSpec const& spec = config.output;
  if (keeps_unknowns)
    add(std::make_unique<Unknowns>());
  if (!spec.slices.empty() || !spec.contours.empty())
    add(make_cuts(config));
  if (spec.vtk_enabled)
    add(make_solution_file(config, n_ranks));
  if (spec.picture || !spec.pictures.empty())
    add(make_pictures(config));
  for (std::size_t i = 0; i < spec.lines.size(); ++i)
    add(make_line(config, i));
  for (std::size_t i = 0; i < spec.circles.size(); ++i)
    add(make_circle(config, i));
  for (std::size_t i = 0; i < spec.planes.size(); ++i)
    add(make_plane(config, i));
  if (spec.surface)
    add(make_surface(config));
  if (config.effective.sub_volumes.is_asked())
    add(make_sub_volumes(config));

  std::size_t first = spec.probes.size();
  for (auto const& output : list_)
    if (PointSet* const set = output->points()) {
      set->first = first;
      first += set->points.size();
      point_sets_.push_back(set);
    }
}

std::vector<std::string> Outputs::names() const {
  std::vector<std::string> names;
  for (auto const& output : list_)
    std::ranges::move(output->names(), std::back_inserter(names));
  return names;
}

bool Outputs::take_fields() const {
  return std::ranges::any_of(list_, [](auto const& output) { return output->takes_fields(); });
}

std::int64_t Outputs::bytes(OutputSizes sizes) const {
  sizes.n_ranks = n_ranks_;
  std::set<SolutionField> arrays;
  for (auto const& output : list_)
    arrays.merge(output->arrays());
  bool const at_other_nodes = config_.problem.order >= 3 && lists_nodes(config_);
  std::int64_t fields = 0;
  if (take_fields()) {
    fields = sizes.fields;
    auto const add = [&](SolutionField field, std::int64_t bytes) {
      if (!config_.output.writes(field))
        return;
      fields += bytes;
      sizes.largest_field = std::max(sizes.largest_field, bytes);
    };
    add(SolutionField::flux_points, 24 * sizes.unknowns);  // and while they are made, a number for each node
    if (config_.effective.has_periodic())                  // u of two other problems
      fields += 2 * (at_other_nodes ? 2 : 1) * 8 * sizes.unknowns;
    if (config_.is_box() && at_other_nodes)  // nodes, u, the error, and the cells that decide, at equidistant nodes
      fields += (36 + (config_.problem.exact ? 8 : 0)) * sizes.unknowns;
    for (auto const& [field, bytes] : {std::pair{SolutionField::exact, sizes.made.exact},
                                       {SolutionField::error, sizes.made.error},
                                       {SolutionField::material, sizes.made.material},
                                       {SolutionField::coefficient, sizes.made.coefficient},
                                       {SolutionField::flux, sizes.made.flux}})
      if (arrays.contains(field))
        fields += bytes;
  }
  std::int64_t all = 0, largest = 0, without_fields = 0;
  for (auto const& output : list_) {
    std::int64_t const bytes = output->bytes(sizes);
    if (output->takes_fields()) {
      all += bytes;
      largest = std::max(largest, bytes);
    } else {
      without_fields = std::max(without_fields, bytes);
    }
  }
  // Of several ranks none makes two outputs at a time.
  std::int64_t const u = arrays.contains(SolutionField::u) ? sizes.made.u : 0;
  return u + std::max(fields + (n_ranks_ > 1 ? largest : all), without_fields);
}

void Outputs::require_in_mesh(assembly::Extent const& extent) const {
  for (auto const& output : list_)
    output->require_in_mesh(extent);
}

void Outputs::make(Solution& solution, std::filesystem::path const& folder) const {
  bool interrupted = false;
  auto const whatever_happens = [&](auto const& body) {  // the solution is there: it is written first
    for (bool done = false; !done;)
      try {
        body();
        done = true;
      } catch (Interrupted const&) {
        clear_interrupt();
        interrupted = true;
      }
  };
  if (take_fields()) {
    return_freed_memory();  // of the solve
    whatever_happens([&] { solution.own_cells = solution_output(solution, config_); });
  }
  // Pictures are drawn while a file is written: neither keeps all threads busy. Of several ranks only one thread sends messages.
  std::vector<std::future<void>> from_fields;
  for (auto const& output : list_)
    if (output->takes_fields()) {
      bool const beside = output->is_made_beside() && solution.mesh.is_whole();
      from_fields.push_back(
          std::async(beside ? std::launch::async | std::launch::deferred : std::launch::deferred, [&solution, &output, beside] {
            if (beside)
              set_thread_count_or_one(solution.record.threads);
            output->make(solution);
          }));
    }
  for (auto const& output : list_)
    whatever_happens([&] { output->keep(solution, folder); });
  if (interrupted)
    throw Interrupted();
  for (auto& made : from_fields)
    made.get();
  solution.own_cells.reset();
  for (auto const& output : list_)
    if (!output->takes_fields())
      output->make(solution);
}

void Outputs::write(Solution const& solution, RunLog& log, ResultsDirectory& directory) const {
  for (auto const& output : list_)
    output->write(solution, log, directory);
}

}  // namespace poisson::app
