#pragma once

#include "gpu/core/box_problem.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/host_vector.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

/// The places of a BoxProblem, and what the host evaluates at them: what its assembly and its solution have in common.
namespace poisson {

/// The coordinates of the nodes in a direction.
[[nodiscard]] HostVector<double> nodes_of(BoxProblem const& problem, std::size_t direction);
/// The edges of the cells in a direction.
[[nodiscard]] HostVector<double> edges_of(BoxProblem const& problem, std::size_t direction);
/// Two Gauss points in each cell of a line of nodes: point q of cell c is entry 2 c + q.
[[nodiscard]] HostVector<double> gauss_points_of(HostVector<double> const& nodes);

/// The cells that count in sums.
[[nodiscard]] BoxProblem::Cells cells_in_sums(BoxProblem const& problem);
/// Their volume.
[[nodiscard]] double volume_in_sums(BoxProblem const& problem);

/// Whether k is constant in each of several materials.
[[nodiscard]] bool has_constants_of_materials(BoxProblem const& problem);
/// That k of material `id`, component c of three, or entry c of a tensor.
[[nodiscard]] double constant_of(BoxProblem const& problem, std::size_t id, std::size_t c);

/// Planes of cells whose values of k and f are in memory at once: enough work for the device, or what a host's cache can hold.
[[nodiscard]] std::int64_t planes_at_once(std::array<std::int64_t, 3> const& cells, Backend backend);

/// The materials of `count` planes of cells from `first` on, of `of_plane` cells each, to
/// the context's memory.
void take_labels(Context& context, BoxProblem::Materials const& materials, std::int64_t first, std::int64_t count,
                 std::int64_t of_plane, std::uint8_t* labels);
/// values = component c of what the host evaluates in `count` planes of cells from `first` on, of `of_plane` times two points each;
/// in the backend's memory.
void take_from_host(Context& context, BoxProblem::PlaneValues const& on_host, int component, std::int64_t first, std::int64_t count,
                    std::int64_t of_plane, double* values);

}  // namespace poisson
