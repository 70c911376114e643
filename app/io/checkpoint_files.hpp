#pragma once

#include "app/io/hash.hpp"
#include "gpu/solvers/solver_state.hpp"
#include "output/files/atomic_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// A checkpoint is a few files in a folder of the results directory: a piece of each rank,
/// checkpoint_N_rank_R.bin, and checkpoint_N.json, which has the sizes and checksums of the pieces. That is written last, so a
/// checkpoint is complete or not there. N counts up.
inline constexpr char const* checkpoint_folder = "checkpoint";

struct CheckpointPiece {
  std::int64_t rows = 0, bytes = 0;
  std::string checksum;  ///< of all bytes
};

/// checkpoint_N.json.
struct CheckpointManifest {
  std::int64_t number = 0;
  std::string problem;  ///< problem_fingerprint of the configuration
  std::string program;  ///< version and commit: another one may take other iterations
  std::string backend;
  std::int64_t solve = 0;  ///< of the run, from 1: an adaptive run has several
  std::int64_t iteration = 0;
  double relative_residual = 0;
  std::vector<CheckpointPiece> pieces{};  ///< of the ranks, in their order

  [[nodiscard]] std::string text() const;
  /// Throws InputError where the text is damaged.
  [[nodiscard]] static CheckpointManifest from(std::string const& text);
};

[[nodiscard]] std::filesystem::path manifest_file(std::filesystem::path const& folder, std::int64_t number);
[[nodiscard]] std::filesystem::path piece_file(std::filesystem::path const& folder, std::int64_t number, std::int64_t rank);

/// The numbers of the checkpoints in a folder, whose manifest is there; the newest first. Empty where there is no folder.
[[nodiscard]] std::vector<std::int64_t> checkpoints_in(std::filesystem::path const& folder);
/// Removes all files of checkpoints but those with these numbers, also what a killed run has left of them; and the folder, if it is
/// then empty. Other files stay. What cannot be removed stays as well.
void remove_checkpoints(std::filesystem::path const& folder, std::vector<std::int64_t> const& but = {}) noexcept;
/// What is wrong with a piece: its file is not there, or has another size or checksum than in the manifest. Empty: nothing.
[[nodiscard]] std::string damage_of(std::filesystem::path const& piece, CheckpointPiece const& expected);

/// Writes a piece: the number of rows, how many have numbers (all or none), these, x in own rows, and the state of the solver.
class PieceWriter final : public StateStream {
public:
  /// Throws EnvironmentError, as all functions do.
  explicit PieceWriter(std::filesystem::path const& path);
  /// `numbers` of own rows in the whole; empty: rows follow each other from rank to rank.
  void begin(std::int64_t rows, std::vector<std::int64_t> const& numbers);
  [[nodiscard]] bool reads() const override { return false; }
  void bytes(void* data, std::size_t n) override;
  /// The file is complete, on disk, and has its name.
  [[nodiscard]] CheckpointPiece commit();

private:
  void write(char const* data, std::size_t n);
  void flush();

  output::AtomicFile file_;
  std::vector<char> block_;
  std::size_t filled_ = 0;
  Hash checksum_;
  CheckpointPiece piece_;
};

/// Reads the state of a piece.
class PieceReader final : public StateStream {
public:
  /// Throws InputError where the file is shorter than it says, as all functions do.
  explicit PieceReader(std::filesystem::path const& path);
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] bool reads() const override { return true; }
  void bytes(void* data, std::size_t n) override;

  /// Calls take(number in the whole, x) for every row of the piece. Rows of pieces without numbers count from `first`. What `bytes`
  /// reads is not changed by it.
  template <class Take>
  void for_rows(std::int64_t first, Take&& take) {
    constexpr std::int64_t most = 1 << 16;
    std::vector<std::int64_t> numbers;
    std::vector<double> x;
    for (std::int64_t done = 0; done < rows_; done += most) {
      auto const count = static_cast<std::size_t>(std::min(most, rows_ - done));
      numbers.resize(count);
      x.resize(count);
      if (n_numbers_ > 0)
        read_at(header + 8 * done, numbers.data(), 8 * count);
      else
        for (std::size_t i = 0; i < count; ++i)
          numbers[i] = first + done + static_cast<std::int64_t>(i);
      read_at(header + 8 * (n_numbers_ + done), x.data(), 8 * count);
      for (std::size_t i = 0; i < count; ++i)
        take(numbers[i], x[i]);
    }
  }

private:
  static constexpr std::int64_t header = 16;
  void read_at(std::int64_t position, void* data, std::size_t n);

  std::filesystem::path path_;
  std::ifstream file_;
  std::int64_t rows_ = 0, n_numbers_ = 0;
  std::int64_t position_ = 0;  ///< of the next byte of the state
};

}  // namespace poisson::app
