#include "app/io/checkpoint_files.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/input_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view prefix = "checkpoint_";
constexpr std::size_t block_size = std::size_t{1} << 20;

/// The number in a name of our files, ".checkpoint_N.json.PROCESS-COUNT.part" among them; -1: it is none of ours.
std::int64_t number_of_name(std::string const& name) {
  std::string_view text = name;
  bool const part = text.starts_with('.') && text.ends_with(".part");
  if (part)
    text.remove_prefix(1);
  if (!text.starts_with(prefix))
    return -1;
  text.remove_prefix(prefix.size());
  std::int64_t number = -1;
  auto const [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  bool const ours = part ? text.starts_with(".json.") || text.starts_with("_rank_")
                         : text == ".json" || (text.starts_with("_rank_") && text.ends_with(".bin"));
  return error == std::errc() && ours ? number : -1;
}

std::string checksum_of(std::string const& text) {
  Hash checksum;
  checksum.add_words(text);
  return checksum.digits();
}

}  // namespace

std::string CheckpointManifest::text() const {
  Json list = Json::array();
  for (CheckpointPiece const& piece : pieces)
    list.push_back({{"rows", piece.rows}, {"bytes", piece.bytes}, {"checksum", piece.checksum}});
  Json out = {{"checkpoint", number},
              {"problem", problem},
              {"program", program},
              {"backend", backend},
              {"solve", solve},
              {"iteration", iteration},
              {"relative_residual", relative_residual},
              {"pieces", std::move(list)}};
  out["checksum"] = checksum_of(out.dump());
  return out.dump(2) + "\n";
}

CheckpointManifest CheckpointManifest::from(std::string const& text) {
  try {
    Json in = Json::parse(text);
    std::string const checksum = in.at("checksum");
    in.erase("checksum");
    if (checksum_of(in.dump()) != checksum)
      throw InputError("its checksum is another one");
    CheckpointManifest result;
    result.number = in.at("checkpoint");
    result.problem = in.at("problem");
    result.program = in.at("program");
    result.backend = in.at("backend");
    result.solve = in.at("solve");
    result.iteration = in.at("iteration");
    result.relative_residual = in.at("relative_residual").is_number() ? in.at("relative_residual").get<double>() : 0;
    for (Json const& piece : in.at("pieces"))
      result.pieces.push_back({piece.at("rows"), piece.at("bytes"), piece.at("checksum")});
    return result;
  } catch (Json::exception const&) {
    throw InputError("it is no complete record of a checkpoint");
  }
}

fs::path manifest_file(fs::path const& folder, std::int64_t number) {
  return folder / (std::string(prefix) + std::to_string(number) + ".json");
}

fs::path piece_file(fs::path const& folder, std::int64_t number, std::int64_t rank) {
  return folder / (std::string(prefix) + std::to_string(number) + "_rank_" + std::to_string(rank) + ".bin");
}

std::vector<std::int64_t> checkpoints_in(fs::path const& folder) {
  std::vector<std::int64_t> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (std::string const name = entry->path().filename().string(); name.ends_with(".json") && number_of_name(name) >= 0)
      numbers.push_back(number_of_name(name));
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

void remove_checkpoints(fs::path const& folder, std::vector<std::int64_t> const& but) noexcept {
  try {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      std::int64_t const number = number_of_name(entry->path().filename().string());
      if (number >= 0 && std::find(but.begin(), but.end(), number) == but.end())
        files.push_back(entry->path());
    }
    // A manifest goes before its pieces.
    std::stable_partition(files.begin(), files.end(), [](fs::path const& file) { return file.extension() == ".json"; });
    for (fs::path const& file : files)
      fs::remove(file, error);
    if (but.empty() && !files.empty())
      fs::remove(folder, error);  // fails, as it should, where something is in it
  } catch (std::exception const&) {
  }
}

std::string damage_of(fs::path const& piece, CheckpointPiece const& expected) {
  std::string const name = "'" + piece.string() + "'";
  std::ifstream file = open_regular_file(piece, std::ios::binary);
  if (!file)
    return name + " is missing";
  Hash checksum;
  std::int64_t bytes = 0;
  for (std::vector<char> block(block_size); file.read(block.data(), std::ssize(block)), file.gcount() > 0; bytes += file.gcount())
    checksum.add_words(std::span<char const>(block.data(), static_cast<std::size_t>(file.gcount())));
  if (bytes != expected.bytes)
    return name + " has " + std::to_string(bytes) + " bytes in place of " + std::to_string(expected.bytes);
  return checksum.digits() != expected.checksum ? name + " has another checksum" : "";
}

PieceWriter::PieceWriter(fs::path const& path) : file_(path), block_(block_size) {}

void PieceWriter::begin(std::int64_t rows, std::vector<std::int64_t> const& numbers) {
  piece_.rows = rows;
  auto const n = static_cast<std::int64_t>(numbers.size());
  write(reinterpret_cast<char const*>(&rows), sizeof rows);
  write(reinterpret_cast<char const*>(&n), sizeof n);
  write(reinterpret_cast<char const*>(numbers.data()), numbers.size() * sizeof(std::int64_t));
}

void PieceWriter::bytes(void* data, std::size_t n) {
  write(static_cast<char const*>(data), n);
}

// Blocks are of one size, so that the checksum does not depend on who writes how much at once.
void PieceWriter::write(char const* data, std::size_t n) {
  while (n > 0) {
    std::size_t const count = std::min(n, block_.size() - filled_);
    std::memcpy(block_.data() + filled_, data, count);
    filled_ += count;
    data += count;
    n -= count;
    if (filled_ == block_.size())
      flush();
  }
}

void PieceWriter::flush() {
  std::span<char const> const block(block_.data(), std::exchange(filled_, 0));
  checksum_.add_words(block);
  file_.write({block.data(), block.size()});
  piece_.bytes += std::ssize(block);
}

CheckpointPiece PieceWriter::commit() {
  flush();
  file_.commit();
  piece_.checksum = checksum_.digits();
  return piece_;
}

PieceReader::PieceReader(fs::path const& path) : path_(path), file_(open_regular_file(path, std::ios::binary)) {
  bytes(&rows_, sizeof rows_);
  bytes(&n_numbers_, sizeof n_numbers_);
  if (rows_ < 0 || (n_numbers_ != 0 && n_numbers_ != rows_))
    throw InputError("'" + path_.string() + "' is no piece of a checkpoint");
  position_ += 8 * (n_numbers_ + rows_);
}

void PieceReader::bytes(void* data, std::size_t n) {
  read_at(position_, data, n);
  position_ += static_cast<std::int64_t>(n);
}

void PieceReader::read_at(std::int64_t position, void* data, std::size_t n) {
  if (n == 0)
    return;
  if (file_.tellg() != std::streampos(position))  // a seek drops what the stream has read ahead
    file_.seekg(position);
  if (!file_.read(static_cast<char*>(data), static_cast<std::streamsize>(n)))
    throw InputError("'" + path_.string() + "' ends too early");
}

}  // namespace poisson::app
