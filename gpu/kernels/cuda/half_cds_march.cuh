#pragma once

#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/half_cds.hpp"
#include "gpu/kernels/lattice_half_cds.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

/// The half_cds product for the 27-point stencil of a box, by marching through its planes.
///
/// Every off-diagonal value is used by two rows. One thread a row reads it twice from L2, and L2, not DRAM, then bounds the
/// product. Here a block owns a tile of lines of a plane and walks from plane to plane. The values and x of the next planes travel
/// into shared memory while the block works on one (asynchronous copies: no registers, no waiting), and each crosses from L2 once,
/// but for the tile's rim. A plane's values serve its own rows, and, through the nine diagonals that connect planes, complete the
/// rows of the plane below, whose sums wait in registers; x of the three planes is in registers too.
///
/// Every copy is one number of 4 or 8 bytes, and neighbours are offsets in the flat numbering: neither the length of lines nor
/// their alignment matters, and neither does it whether the matrix really is one of a box, as long as its diagonals are where a box
/// has them. Blocks that run at the same time work on neighbouring tiles of the same planes: rims are then found in L2, and DRAM
/// pages are read whole. (An even distribution of planes over blocks without that order is 1.3 times slower.)
///
/// On a mesh of lattices the values are those of a box as well, all planes of one lattice after those of the other; only where x
/// and results are differs (FlatNodes, LatticeNodes).
namespace poisson::march {

using half_stencil::diagonals, half_stencil::dx, half_stencil::dy, half_stencil::first_between_planes;

constexpr int absolute(int a) {
  return a < 0 ? -a : a;
}

/// Nodes of a tile at most, threads of its block, planes in shared memory (one in use, the others on their way), and where things
/// are in the shared memory of a plane: windows of the tile, each as much larger than the tile as its diagonal's upper term
/// reaches, and last the window of x, with a rim all around.
template <int width_, int height_, int stages_>
struct Tile {
  static constexpr int width = width_, height = height_, stages = stages_, threads = (width * height + 31) / 32 * 32;

  static constexpr int window_pitch(int k) { return width + absolute(dx(k)); }
  static constexpr int window_size(int k) { return window_pitch(k) * (height + absolute(dy(k))); }
  static constexpr int window_start(int k) {
    int start = 0;
    for (int j = 0; j < k; ++j)
      start += window_size(j);
    return start;
  }
  static constexpr int x_pitch = width + 2, x_size = x_pitch * (height + 2);

  /// Place of the tile's node (0, 0) in window k, counted in numbers from the first window of values, or of x.
  static constexpr int origin(int k) {
    return k >= diagonals ? (k - diagonals) * x_size + x_pitch + 1
                          : window_start(k) + (dy(k) < 0 ? window_pitch(k) : 0) + (dx(k) < 0 ? 1 : 0);
  }
  static constexpr int pitch(int k) { return k >= diagonals ? x_pitch : window_pitch(k); }
  /// Entries of the rim of window k: whole rows above and below, then columns left and right.
  static constexpr int rim_rows(int k) { return k >= diagonals ? 2 : absolute(dy(k)); }
  static constexpr int rim_columns(int k) { return k >= diagonals ? 2 : absolute(dx(k)); }
  static constexpr int rim_size(int k) { return rim_rows(k) * pitch(k) + rim_columns(k) * height; }
  static constexpr int all_rims(int n_windows) {
    int size = 0;
    for (int k = 0; k < n_windows; ++k)
      size += rim_size(k);
    return size;
  }
};

/// The tiles that there are kernels with, for vectors of T; which is taken, share_out says. Lines of 2^k nodes fill tiles of width
/// 32 or 64, lines of 2^k + 1 nodes those of width 33 or 65. Large tiles of three stages are faster than small ones of four, whose
/// rims are a larger part. (In DoubleDouble further tiles are not worth the time to compile.)
template <class T, class Call>
void for_tiles(Call const& call) {
  if constexpr (std::is_same_v<T, DoubleDouble>)
    call(Tile<32, 8, 4>());
  else {
    call(Tile<64, 6, 3>());
    call(Tile<32, 12, 3>());
    call(Tile<65, 6, 3>());
    call(Tile<33, 13, 3>());
  }
}

/// How the planes of a box are shared out. A tile is `tile_width` x `tile_height` nodes, at most those of Tile<width>.
struct Box {
  std::int64_t n, plane;
  std::int32_t line, lines, planes;
  std::int32_t tiles_x, tile_width, tile_height, tiles;
  std::int32_t chunk;          ///< planes of a block
  std::int32_t width, height;  ///< of the Tile
  [[nodiscard]] dim3 grid() const { return {static_cast<unsigned>(tiles), static_cast<unsigned>((planes + chunk - 1) / chunk)}; }
};

/// Calls call with the box's tile, one of those for vectors of T.
template <class T, class Call>
void with_tile(Box const& box, Call const& call) {
  for_tiles<T>([&]<class Tile>(Tile tile) {
    if (Tile::width == box.width && Tile::height == box.height)
      call(tile);
  });
}

/// A plane in shared memory, in bytes, for values stored in Stored (float or double) and vectors of T: the windows of the values,
/// then those of x. x is one window, `diagonals`; of DoubleDouble there is another one for its low part.
template <class Stored, class T, class Tile>
struct Layout {
  using Number = std::conditional_t<std::is_same_v<T, float>, float, double>;  // that x consists of
  static constexpr int windows = diagonals + static_cast<int>(sizeof(T) / sizeof(Number));
  static constexpr int aligned(std::size_t bytes) { return static_cast<int>((bytes + 7) / 8 * 8); }
  static constexpr int x_begin = aligned(Tile::window_start(diagonals) * sizeof(Stored));
  static constexpr int plane_bytes = x_begin + aligned((windows - diagonals) * Tile::x_size * sizeof(Number));
  static constexpr int shared_bytes = Tile::stages * plane_bytes;
  /// Blocks that a multiprocessor holds: in single precision two, whose planes together are as large as one block's in double.
  static constexpr int blocks_at_once = static_cast<int>(sizeof(double) / sizeof(Stored));
  /// Byte of the number `place` of window k's region; see origin.
  __host__ __device__ static constexpr int byte_of(int k, int place) {
    return k >= diagonals ? x_begin + place * static_cast<int>(sizeof(Number)) : place * static_cast<int>(sizeof(Stored));
  }
};

/// Whether boxes are marched through: not with entries in DoubleDouble, whose planes would leave too little of the shared memory to
/// those on their way.
template <class Values>
inline constexpr bool marches = std::is_pointer_v<Values>;
template <class Values>
using StoredIn = std::remove_const_t<std::remove_pointer_t<Values>>;

/// A box in tiles, and about how long a product takes, in a unit of its own.
struct SharedOut {
  Box box{};
  double cost = 0;
};

/// The box of n nodes in tiles of at most Tile, when the device holds so many blocks at once.
template <class Tile>
SharedOut share_out(std::int64_t n, std::int64_t line, std::int64_t plane, std::int64_t blocks_at_once) {
  auto const pieces = [](std::int64_t whole, std::int64_t most) { return (whole + most - 1) / most; };
  std::int64_t const lines = pieces(plane, line), planes = pieces(n, plane);
  std::int64_t const tiles_x = pieces(line, Tile::width), tiles_y = pieces(lines, Tile::height), tiles = tiles_x * tiles_y;
  // As many chunks of planes as make the last round of blocks a full one. The pipeline's start costs about three planes a chunk.
  // `least` is what this many chunks cost when all rounds are full; more chunks cost more.
  std::int64_t best_chunk = planes;
  double best_cost = 1e300;
  for (std::int64_t chunks = 1; chunks <= pieces(planes, 4); ++chunks) {
    std::int64_t const chunk = pieces(planes, chunks);
    double const least =
        static_cast<double>(tiles * planes) / static_cast<double>(blocks_at_once * chunk) * static_cast<double>(chunk + 3);
    if (least >= best_cost)
      break;
    std::int64_t const rounds = pieces(tiles * pieces(planes, chunk), blocks_at_once);
    double const cost = static_cast<double>(rounds) * (static_cast<double>(chunk) + 3);
    if (cost < 0.995 * best_cost) {
      best_cost = cost;
      best_chunk = chunk;
    }
  }
  SharedOut result;
  Box& box = result.box;
  box.n = n;
  box.plane = plane;
  box.line = static_cast<std::int32_t>(line);
  box.lines = static_cast<std::int32_t>(lines);
  box.planes = static_cast<std::int32_t>(planes);
  box.tiles_x = static_cast<std::int32_t>(tiles_x);
  box.tile_width = static_cast<std::int32_t>(pieces(line, tiles_x));
  box.tile_height = static_cast<std::int32_t>(pieces(lines, tiles_y));
  box.tiles = static_cast<std::int32_t>(tiles);
  box.chunk = static_cast<std::int32_t>(best_chunk);
  box.width = Tile::width;
  box.height = Tile::height;
  // For a plane a block takes the time of its nodes and of 512 more; longer where warps straddle lines. Microseconds of a product
  // in double on an H200, with tiles of width 64, 32, 65, 33 (* by this rule): 7 x 65^3 nodes 91, 79, 65*, 77; 7 x 129^3 528, 500,
  // 468*, 573; 56 x 33^3 99, 96, 110, 70*; 6 x 81^3 134, 111*, 144, 130; 97^3 43, 41*, 46, 45; 128^3 69.1*, 68.9, 70, 76; 257^3
  // 558, 559, 535*, 653. In single precision the order is the same, but for 257^3, where width 32 is faster by 2 %.
  result.cost = best_cost * (512 + box.tile_width * box.tile_height) * (Tile::width == 33 ? 1.25 : Tile::width == 65 ? 1.05 : 1);
  return result;
}

/// The box of n nodes, when the device has the shared memory, and the matrix is beyond its L2 (what L2 holds is read faster by one
/// thread a row).
template <class Stored, class T>
std::optional<Box> box_of(std::int64_t n, std::int64_t line, std::int64_t plane, cuda::CudaContext const& device) {
  // Tiles are fewer than nodes of a plane, which the grid has room for.
  if (static_cast<std::int64_t>(sizeof(Stored)) * diagonals * n < device.l2_bytes() || plane > INT32_MAX)
    return std::nullopt;
  std::optional<SharedOut> best;
  for_tiles<T>([&]<class Tile>(Tile) {
    using Places = Layout<Stored, T, Tile>;
    if (device.shared_memory_per_block() < Places::shared_bytes)
      return;
    auto const next = share_out<Tile>(n, line, plane, std::int64_t{Places::blocks_at_once} * device.multiprocessors());
    if (!best || next.cost < best->cost)
      best = next;
  });
  return best ? std::optional(best->box) : std::nullopt;
}

/// The box that the offsets describe, when they do.
template <class Stored, class T>
std::optional<Box> box_of(HalfCdsView const& a, cuda::CudaContext const& device) {
  if (a.offsets.size() != diagonals)
    return std::nullopt;
  std::int64_t const line = a.offsets[3], plane = a.offsets[9];
  for (int k = 0; k < diagonals; ++k)
    if (a.offsets[static_cast<std::size_t>(k)] != half_stencil::offset(k, line, plane))
      return std::nullopt;
  return box_of<Stored, T>(a.n, line, plane, device);
}

/// That of the lattices' nodes. Lattices that leave most threads of a block without a node do better with one thread a row, too.
template <class Stored, class T>
std::optional<Box> box_of(LatticeHalfCdsView const& a, cuda::CudaContext const& device) {
  std::int64_t const m = a.lattices.m;
  auto box = box_of<Stored, T>(a.n_nodes(), m, m * m, device);
  return box && 3 * box->tile_width * box->tile_height >= box->width * box->height ? box : std::nullopt;
}

template <class Kernel>
void allow_shared_memory(Kernel* kernel, int shared_bytes) {
  POISSON_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
}

#ifdef __CUDACC__

/// Calls f with the integral constants begin ... end - 1.
template <int begin, int end, class F>
__device__ __forceinline__ void unrolled(F const& f) {
  if constexpr (begin < end) {
    f(std::integral_constant<int, begin>{});
    unrolled<begin + 1, end>(f);
  }
}

/// *to = from[index] in the background, or 0 where it does not exist.
template <class Number>
__device__ __forceinline__ void copy_async(unsigned to, Number const* from, std::int64_t index, bool exists) {
  constexpr int bytes = sizeof(Number);
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(to), "l"(from + (exists ? index : 0)), "n"(bytes),
               "r"(exists ? bytes : 0));
}

/// An entry of a rim that a thread copies for every plane.
struct RimEntry {
  void const* from = nullptr;  ///< values of a diagonal, or x; null: none
  std::int64_t in_plane = 0;   ///< flat index less that of the plane
  int to = 0;                  ///< byte in a plane's shared memory
  bool between_planes = true;  ///< needed for the plane after the last one as well
  bool of_x = false;
};

__device__ inline float const* part_of(float const* x, int) {
  return x;
}
__device__ inline double const* part_of(double const* x, int) {
  return x;
}
__device__ inline double const* part_of(ConstPointer<DoubleDouble> x, int part) {
  return part == 0 ? x.hi : x.lo;
}

/// A node of the rim of a window, relative to the tile's node (0, 0).
struct RimNode {
  int px, py;
  bool beyond;  ///< the tile is smaller than the window, and has no such node
};

/// The node that is number `number` of the rim of window k.
template <class Tile, int k>
__device__ __forceinline__ RimNode rim_node(Box const& box, int number) {
  constexpr int width = Tile::width, height = Tile::height, pitch = Tile::pitch(k), row_entries = Tile::rim_rows(k) * pitch;
  int px = 0, py = 0;
  if (number < row_entries) {
    px = number % pitch - (k >= diagonals || dx(k) < 0);
    py = (k >= diagonals ? number < pitch : dy(k) < 0) ? -1 : box.tile_height;
  } else {
    int const column = number - row_entries;
    px = (k >= diagonals ? column < height : dx(k) < 0) ? -1 : width;
    py = column % height;
  }
  // A tile narrower than the window has its rim nearer.
  bool const beyond =
      (number < row_entries && px >= box.tile_width && px != width) || (number >= row_entries && py >= box.tile_height);
  if (px == width)
    px = box.tile_width;
  return {px, py, beyond};
}

/// Entry `number` of the rims of the first n_windows windows.
template <class Tile, class T, int n_windows, class Stored>
__device__ __forceinline__ RimEntry rim_entry(Box const& box, Stored const* values, ConstPointer<T> x, int x0, int y0, int number) {
  using Places = Layout<Stored, T, Tile>;
  RimEntry entry;
  unrolled<0, n_windows>([&](auto window) {
    constexpr int k = window, size = Tile::rim_size(k);
    if (number >= 0 && number < size) {
      RimNode const node = rim_node<Tile, k>(box, number);
      if (!node.beyond) {
        entry.of_x = k >= diagonals;
        if constexpr (k >= diagonals)
          entry.from = part_of(x, k - diagonals);
        else
          entry.from = values + k * box.n;
        entry.in_plane = std::int64_t{y0 + node.py} * box.line + x0 + node.px;
        entry.to = Places::byte_of(k, Tile::origin(k) + node.py * Tile::pitch(k) + node.px);
        entry.between_planes = k >= first_between_planes;
      }
    }
    number -= size;
  });
  return entry;
}

/// Calls add(value, j) for what row i, at in_plane in the last plane, has beyond it: nothing in a box. But a matrix that is not one
/// of a box may couple the plane's first rows with its last ones: in the flat numbering these lie where a box has the neighbours of
/// the first line in the plane above.
template <class Stored, class Add>
__device__ __forceinline__ void add_wrapped(Box const& box, Stored const* __restrict__ values, std::int64_t i,
                                            std::int64_t in_plane, Add const& add) {
  if (in_plane <= box.line)
    unrolled<first_between_planes, diagonals>([&](auto diagonal) {
      constexpr int k = diagonal;
      std::int64_t const j = i + half_stencil::offset(k, box.line, box.plane);
      if (j < box.n)
        add(values[k * box.n + j], j);
    });
}

/// The entry of x at its place in the window of high parts.
template <class Tile, class T, class Number>
__device__ __forceinline__ T shared_number(Number const* p) {
  if constexpr (std::is_same_v<T, DoubleDouble>)
    return {p[0], p[Tile::x_size]};
  else
    return p[0];
}

/// Node i is entry i of vectors.
struct FlatNodes {};

/// Plane z is plane z % m of lattice z / m. x of nodes on rims was gathered before (LatticeView::rim_unknowns), so that every place
/// is a formula and nobody waits for a table. The kernel that gathers may still run when the march starts (cuda::launch_early).
template <class T>
struct LatticeNodes {
  std::int32_t m;
  ConstPointer<T> rims;  ///< x of nodes on rims

  [[nodiscard]] __device__ __forceinline__ bool hold(int i, int j) const { return i >= 0 && j >= 0 && i < m && j < m; }
};

/// Goes from plane to plane. (Nothing is divided on the way.)
class LatticeWalk {
public:
  __device__ LatticeWalk(std::int32_t m, int plane) : m_(m), lattice_(plane / m), k_(plane % m) {}
  [[nodiscard]] __device__ __forceinline__ LatticePlane plane() const { return {m_, lattice_, k_}; }
  __device__ __forceinline__ void advance() {
    if (++k_ == m_) {
      k_ = 0;
      ++lattice_;
    }
  }

private:
  std::int32_t m_, lattice_, k_;
};

/// The copies of x that a thread makes on lattices: of its node, and maybe of one on the rim of the tile; 0 for those that do not
/// exist.
template <class Tile, class T, class Stored>
class LatticeCopies {
  using Places = Layout<Stored, T, Tile>;
  // The first threads have more of the values' rims than others.
  static constexpr int first_of_rim =
      std::min(Tile::all_rims(diagonals) % Tile::threads, Tile::threads - Tile::rim_size(diagonals));
  static_assert(first_of_rim >= 0);

public:
  __device__ __forceinline__ LatticeCopies(LatticeNodes<T> const& nodes, Box const& box, ConstPointer<T> x, int x0, int y0, int tx,
                                           int ty, bool in_tile, int first)
      : nodes_(nodes), x_(x), walk_(nodes.m, first), own_(nodes, x0 + tx, y0 + ty), rim_(nodes, 0, 0) {
    if (in_tile)
      own_.to = ty * Tile::x_pitch + tx;
    int const number = static_cast<int>(threadIdx.x) - first_of_rim;
    if (number >= 0 && number < Tile::rim_size(diagonals))
      if (RimNode const node = rim_node<Tile, diagonals>(box, number); !node.beyond) {
        rim_ = Copied(nodes, x0 + node.px, y0 + node.py);
        rim_.to = node.py * Tile::x_pitch + node.px;
      }
  }

  /// Copies into the plane at that address in shared memory, and goes on to the next one.
  __device__ __forceinline__ void copy_plane(unsigned stage) {
    LatticePlane const plane = walk_.plane();
    copy(stage, plane, own_);
    copy(stage, plane, rim_);
    walk_.advance();
  }
  /// This thread's node.
  [[nodiscard]] __device__ __forceinline__ LatticePlaneNode node() const { return own_.node; }

private:
  static constexpr int nowhere = -Tile::x_size;
  struct Copied {
    LatticePlaneNode node;
    bool exists;
    int to = nowhere;  ///< place in the window of x, counted from that of the tile's node (0, 0)
    __device__ __forceinline__ Copied(LatticeNodes<T> const& nodes, int i, int j) : node(nodes.m, i, j), exists(nodes.hold(i, j)) {}
  };

  __device__ __forceinline__ void copy(unsigned stage, LatticePlane plane, Copied const& copied) const {
    if (copied.to == nowhere)
      return;
    LatticePlace const place(plane, copied.node);
    unrolled<diagonals, Places::windows>([&](auto part) {
      constexpr int k = part, at = Tile::origin(k);
      copy_async(stage + static_cast<unsigned>(Places::byte_of(k, at + copied.to)),
                 place.on_rim ? part_of(nodes_.rims, k - diagonals) : part_of(x_, k - diagonals), place.at, copied.exists);
    });
  }

  LatticeNodes<T> nodes_;
  ConstPointer<T> x_;
  LatticeWalk walk_;
  Copied own_, rim_;
};

/// Calls row(i, (A x)_i, x_i) for every row of this thread, in ascending order; on lattices i is a LatticePlace, and A the matrix
/// of the lattice. What row.load(i) asks for, where there is such a thing, travels while the row below is worked on; row gets it
/// then as well. The terms of a row are added in the order of HalfCdsKernels.
template <class Tile, class T, class Stored, class Row, class Nodes = FlatNodes>
__device__ __forceinline__ void for_rows(Box const& box, Stored const* __restrict__ values, ConstPointer<T> x, Row const& row,
                                         Nodes const& nodes = {}) {
  using Places = Layout<Stored, T, Tile>;
  constexpr int width = Tile::width, height = Tile::height, threads = Tile::threads, stages = Tile::stages, x_pitch = Tile::x_pitch;
  constexpr bool flat = std::is_same_v<Nodes, FlatNodes>;
  using Number = typename Places::Number;
  extern __shared__ double shared[];
  auto const shared_address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  // Threads beyond the tile only copy rims.
  int const tx = threadIdx.x % width, line = threadIdx.x / width, ty = min(line, height - 1);
  int const x0 = static_cast<int>(blockIdx.x) % box.tiles_x * box.tile_width;
  int const y0 = static_cast<int>(blockIdx.x) / box.tiles_x * box.tile_height;
  int const first = static_cast<int>(blockIdx.y) * box.chunk, last = min(first + box.chunk, box.planes);  // [first, last)
  std::int64_t const in_plane = std::int64_t{y0 + ty} * box.line + x0 + tx;
  bool const in_tile = tx < box.tile_width && line < box.tile_height;
  bool const has_row = in_tile && x0 + tx < box.line && y0 + ty < box.lines && in_plane < box.plane;

  constexpr int n_windows = flat ? Places::windows : diagonals, n_rims = (Tile::all_rims(n_windows) + threads - 1) / threads;
  RimEntry rim[n_rims];
#pragma unroll
  for (int r = 0; r < n_rims; ++r)
    rim[r] = rim_entry<Tile, T, n_windows>(box, values, x, x0, y0, static_cast<int>(threadIdx.x) + r * threads);
  [[maybe_unused]] auto of_lattices = [&] {
    if constexpr (flat)
      return nodes;
    else
      return LatticeCopies<Tile, T, Stored>(nodes, box, x, x0, y0, tx, ty, in_tile, first);
  }();

  // Everything that planes first ... last - 1 need is copied, and of plane `last` what completes the rows below it. The very first
  // values are asked for before x of nodes on rims is there.
  auto const copy_plane = [&](int z, auto waits_for_rims) {
    if (z <= last && z < box.planes) {
      bool const own_rows = z < last;
      unsigned const stage = shared_address + static_cast<unsigned>(z % stages * Places::plane_bytes);
      std::int64_t const plane = z * box.plane, i = plane + in_plane;
      if (in_tile) {
        bool const exists = i < box.n;
        unrolled<0, diagonals>([&](auto diagonal) {
          constexpr int k = diagonal, at = Tile::origin(k), step = Tile::pitch(k);
          if (k >= first_between_planes || own_rows)
            copy_async(stage + static_cast<unsigned>(Places::byte_of(k, at + ty * step + tx)), values + k * box.n, i, exists);
        });
        unrolled<diagonals, n_windows>([&](auto part) {
          constexpr int k = part, at = Tile::origin(k);
          copy_async(stage + static_cast<unsigned>(Places::byte_of(k, at + ty * x_pitch + tx)), part_of(x, k - diagonals), i,
                     exists);
        });
      }
#pragma unroll
      for (int r = 0; r < n_rims; ++r)
        if (rim[r].from != nullptr && (rim[r].between_planes || own_rows)) {
          std::int64_t const j = plane + rim[r].in_plane;
          unsigned const to = stage + static_cast<unsigned>(rim[r].to);
          bool const exists = j >= 0 && j < box.n;
          if (sizeof(Stored) == sizeof(Number) || rim[r].of_x)
            copy_async(to, static_cast<Number const*>(rim[r].from), j, exists);
          else
            copy_async(to, static_cast<Stored const*>(rim[r].from), j, exists);
        }
      if constexpr (waits_for_rims)
        cuda::wait_for_last();
      if constexpr (!flat)
        of_lattices.copy_plane(stage);
    }
    asm volatile("cp.async.commit_group;\n");
  };
  unrolled<0, stages - 1>([&](auto s) {
    constexpr bool waits_for_rims = !flat && s == 0;
    copy_plane(first + s, std::bool_constant<waits_for_rims>{});
  });

  // x around the node, by (dy + 1) * 3 + dx + 1, in the plane below.
  T x_below[9];
  DotSum<T> sum{};
#pragma unroll
  for (int d = 0; d < 9; ++d)
    if constexpr (flat) {
      std::int64_t const j = (std::int64_t{first} - 1) * box.plane + in_plane + (d / 3 - 1) * std::int64_t{box.line} + (d % 3 - 1);
      x_below[d] = j >= 0 && j < box.n ? cuda::load_constant(x, j) : T(0);
    } else {
      int const i = x0 + tx + d % 3 - 1, j = y0 + ty + d / 3 - 1;
      LatticePlace const place(LatticeWalk(nodes.m, first > 0 ? first - 1 : 0).plane(), LatticePlaneNode(nodes.m, i, j));
      x_below[d] = first > 0 && nodes.hold(i, j) ? load(place.on_rim ? nodes.rims : x, place.at) : T(0);
    }
  [[maybe_unused]] auto rows = [&] {
    if constexpr (flat)
      return nodes;
    else
      return LatticeWalk(nodes.m, first);
  }();
  [[maybe_unused]] cuda::TermsOf<Row> terms{};
  for (int z = first; z <= last; ++z) {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(stages - 2));
    __syncthreads();  // plane z is there for all, and nobody reads plane z - 1 any more
    copy_plane(z + stages - 1, std::false_type{});
    std::int64_t const below = (std::int64_t{z} - 1) * box.plane + in_plane;
    bool const completes = has_row && z > first && below < box.n;
    auto const complete = [&] {
      auto const finish = [&](auto const& place) {
        if constexpr (cuda::LoadsEarly<Row>)
          row(place, sum.value(), x_below[4], terms);
        else
          row(place, sum.value(), x_below[4]);
      };
      if constexpr (flat)
        finish(below);
      else
        finish(LatticePlace(rows.plane(), of_lattices.node()));
    };
    if (z == box.planes) {  // above the last plane there is nothing
      if (completes) {
        if constexpr (flat)
          add_wrapped(box, values, below, in_plane, [&](Stored v, std::int64_t j) { sum.add(v, cuda::load_constant(x, j)); });
        complete();
      }
      break;
    }
    char const* const stage = reinterpret_cast<char const*>(shared) + z % stages * Places::plane_bytes;
    auto const* const plane = reinterpret_cast<Stored const*>(stage);
    Number const* const x_window = reinterpret_cast<Number const*>(stage + Places::x_begin) + ty * x_pitch + tx;
    T x_here[9];
#pragma unroll
    for (int d = 0; d < 9; ++d)
      x_here[d] = shared_number<Tile, T>(x_window + d / 3 * x_pitch + d % 3);
    // The value of diagonal k in the row of the node at (+shift dx, +shift dy).
    auto const value = [&](auto diagonal, auto shift) {
      constexpr int k = diagonal, step = Tile::pitch(k), at = Tile::origin(k) + shift * (dy(k) * step + dx(k));
      return plane[at + ty * step + tx];
    };
    constexpr std::integral_constant<int, 0> own{};
    constexpr std::integral_constant<int, 1> upper{};
    if (z > first) {
      unrolled<first_between_planes, diagonals>([&](auto k) { sum.add(value(k, upper), x_here[(1 + dy(k)) * 3 + 1 + dx(k)]); });
      if (completes)
        complete();
      if constexpr (!flat)
        rows.advance();
    }
    if (z < last) {
      if constexpr (cuda::LoadsEarly<Row>)
        if (std::int64_t const i = z * box.plane + in_plane; has_row && i < box.n) {
          if constexpr (flat)
            terms = row.load(i);
          else
            terms = row.load(LatticePlace(rows.plane(), of_lattices.node()));
        }
      sum = {};
      sum.add(value(std::integral_constant<int, 0>{}, own), x_here[4]);
      unrolled<1, first_between_planes>([&](auto k) { sum.add(value(k, own), x_here[(1 - dy(k)) * 3 + 1 - dx(k)]); });
      unrolled<first_between_planes, diagonals>([&](auto k) { sum.add(value(k, own), x_below[(1 - dy(k)) * 3 + 1 - dx(k)]); });
      unrolled<1, first_between_planes>([&](auto k) { sum.add(value(k, upper), x_here[(1 + dy(k)) * 3 + 1 + dx(k)]); });
    }
#pragma unroll
    for (int d = 0; d < 9; ++d)
      x_below[d] = x_here[d];
  }
}

#endif

}  // namespace poisson::march
