#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"
#include "output/vtk/vtk_files.hpp"

#include "tests/output/output_helpers.hpp"

#include <cerrno>
#include <csignal>
#include <fstream>
#include <random>
#include <sstream>
#include <sys/mount.h>
#include <sys/resource.h>

/// These are no leaks of ours in builds with AddressSanitizer: fontconfig keeps its caches, and VTK's writer loses a few bytes when
/// a write fails.
extern "C" char const* __lsan_default_suppressions();
extern "C" char const* __lsan_default_suppressions() {
  return "leak:libfontconfig\nleak:libvtkIOXML\n";
}

namespace poisson::output::test {

namespace {

TEST(AtomicFile, AppearsOnlyWithCommit) {
  TemporaryDirectory directory;
  {
    AtomicFile file(directory / "a.txt");
    EXPECT_EQ(file.temporary_path().parent_path(), directory.path());
    std::ofstream(file.temporary_path()) << "new";
    EXPECT_FALSE(std::filesystem::exists(directory / "a.txt"));
    file.commit();
    EXPECT_EQ(text_of(directory / "a.txt"), "new");
  }
  EXPECT_EQ(directory.names(), std::set<std::string>{"a.txt"});
}

TEST(AtomicFile, WithoutCommitTheOldFileStays) {
  TemporaryDirectory directory;
  write_text_file(directory / "a.txt", "old");
  {
    AtomicFile file(directory / "a.txt");
    std::ofstream(file.temporary_path()) << "half of the n";
    EXPECT_EQ(text_of(directory / "a.txt"), "old");
  }
  EXPECT_EQ(text_of(directory / "a.txt"), "old");
  EXPECT_EQ(directory.names(), std::set<std::string>{"a.txt"});
}

TEST(AtomicFile, TwoWritersOfOneNameDoNotMix) {
  TemporaryDirectory directory;
  AtomicFile first(directory / "a.txt"), second(directory / "a.txt");
  EXPECT_NE(first.temporary_path(), second.temporary_path());
  std::ofstream(first.temporary_path()) << "first";
  std::ofstream(second.temporary_path()) << "second";
  second.commit();
  first.commit();
  EXPECT_EQ(text_of(directory / "a.txt"), "first");
  EXPECT_EQ(directory.names(), std::set<std::string>{"a.txt"});
}

TEST(AtomicFile, ARelativeNameWithoutDirectory) {
  TemporaryDirectory directory;
  auto const before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  write_text_file("a.txt", "here");
  std::filesystem::current_path(before);
  EXPECT_EQ(text_of(directory / "a.txt"), "here");
}

TEST(AtomicFile, BytesOfEveryKindAndLength) {
  TemporaryDirectory directory;
  std::mt19937 random(3);
  for (std::size_t const n :
       {std::size_t{0}, std::size_t{1}, (std::size_t{1} << 20) - 1, std::size_t{1} << 20, std::size_t{3000001}}) {
    std::string text(n, '\0');
    for (auto& c : text)
      c = static_cast<char>(random());
    write_text_file(directory / "a.bin", text);
    EXPECT_TRUE(text_of(directory / "a.bin") == text) << n;
  }
}

// An oracle that keeps everything in memory gets the same sequence of writes and seeks.
TEST(FileBuffer, WritesAndSeeksLikeAStringStream) {
  TemporaryDirectory directory;
  std::ofstream(directory / "a.bin") << "what was there before is cut off";
  std::stringstream expected;
  {
    FileBuffer buffer(directory / "a.bin");
    std::ostream stream(&buffer);
    std::mt19937 random(11);
    std::string const block(700000, 'x');
    std::vector<char> memory(3'000'000 + 2 * FileBuffer::direct_block);
    for (int step = 0; step < 60; ++step) {
      if (step % 11 == 5) {  // directly, where the file system can
        char* const large = FileBuffer::in_memory(memory.data(), stream.tellp());
        ASSERT_LT(large, memory.data() + FileBuffer::direct_block);
        std::size_t const n = 1'500'000 + random() % 1'500'000;
        for (std::size_t i = 0; i < n; ++i)
          large[i] = static_cast<char>(random());
        for (std::ostream* s : {&stream, static_cast<std::ostream*>(&expected)})
          s->write(large, static_cast<std::streamsize>(n));
      }
      std::string text = std::to_string(random());
      if (step % 9 == 0)
        text += block;
      for (std::ostream* s : {&stream, static_cast<std::ostream*>(&expected)})
        *s << text;
      ASSERT_EQ(stream.tellp(), expected.tellp());
      if (step % 7 == 3) {
        auto const place = static_cast<std::streamoff>(random() % static_cast<unsigned>(expected.tellp()));
        for (std::ostream* s : {&stream, static_cast<std::ostream*>(&expected)}) {
          s->seekp(place);
          *s << "patch";
          s->seekp(0, std::ios::end);
        }
      }
    }
    ASSERT_TRUE(stream.good());
    EXPECT_EQ(buffer.close(), 0);
  }
  EXPECT_TRUE(text_of(directory / "a.bin") == expected.str());
}

TEST(FileBuffer, RemembersWhyItFailed) {
  FileBuffer full("/dev/full");
  std::ostream stream(&full);
  stream << "some text" << std::flush;
  EXPECT_FALSE(stream.good());
  EXPECT_EQ(full.error(), ENOSPC);
  EXPECT_EQ(full.close(), ENOSPC);
  FileBuffer missing("/nonexistent/file");
  EXPECT_EQ(missing.error(), ENOENT);
}

/// All that can be written, to the same directory.
struct Writer {
  char const* name;
  std::function<void(std::filesystem::path const&)> write;
};

Block const& large_block() {
  static Block const block = [] {
    std::mt19937 random(1);
    std::normal_distribution<double> normal;
    return make_block(24, 24, 24, 1, [&](Vec const&) { return normal(random); });
  }();
  return block;
}

std::vector<Writer> writers() {
  std::vector<Writer> result{
      {"text", [](auto const& path) { write_text_file(path, std::string(400000, 'x')); }},
      {"vtu",
       [](auto const& path) {
         auto const& block = large_block();
         write_vtu(path, block.grid(), {{"u", 1, block.u, {}}}, {}, {});
       }},
      {"vtu_none",
       [](auto const& path) {
         auto const& block = large_block();
         write_vtu(path, block.grid(), {{"u", 1, block.u, {}}}, {}, {VtkCompression::none, VtkPrecision::double_});
       }},
      {"hdf",
       [](auto const& path) {
         auto const& block = large_block();
         write_hdf(path, block.grid(), {{"u", 1, block.u, {}}}, {}, {});
       }},
      {"hdf_none",
       [](auto const& path) {
         auto const& block = large_block();
         write_hdf(path, block.grid(), {{"u", 1, block.u, {}}}, {}, {VtkCompression::none, VtkPrecision::double_});
       }},
      {"pvd", [](auto const& path) {
         write_pvd(path, std::vector<PvdEntry>(5000, {1, "a/rather/long/name/of/a/file.vtu"}));
       }}};
  if (pictures_built()) {
    result.push_back({"picture", [](auto const& path) {
                        write_picture(path, large_block().grid(), large_block().u, {"title", "u"});
                      }});
    result.push_back({"plot", [](auto const& path) { write_plot(path, {{"a", {1, 2}, {3, 4}}}, {}); }});
  }
  return result;
}

void expect_message(std::string const& message, std::filesystem::path const& path, std::string const& reason) {
  EXPECT_NE(message.find(path.string()), std::string::npos) << message;
  EXPECT_NE(message.find(reason), std::string::npos) << message;
  EXPECT_EQ(message.find(".part"), std::string::npos) << message;  // the name that the user knows
}

TEST(Failures, NoDirectory) {
  TemporaryDirectory directory;
  for (auto const& writer : writers()) {
    auto const path = directory / "gone" / writer.name;
    expect_message(environment_error([&] { writer.write(path); }), path, "No such file or directory");
  }
  EXPECT_TRUE(directory.names().empty());
}

TEST(Failures, TheNameIsADirectory) {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "taken");
  for (auto const& writer : writers())
    expect_message(environment_error([&] { writer.write(directory / "taken"); }), directory / "taken", "Is a directory");
  EXPECT_EQ(directory.names(), std::set<std::string>{"taken"});
}

TEST(Failures, AFileInPlaceOfTheDirectory) {
  TemporaryDirectory directory;
  write_text_file(directory / "file", "x");
  for (auto const& writer : writers())
    expect_message(environment_error([&] { writer.write(directory / "file" / "a"); }), directory / "file" / "a", "Not a directory");
  EXPECT_EQ(directory.names(), std::set<std::string>{"file"});
}

TEST(Failures, NotWritable) {
  if (::geteuid() == 0)
    GTEST_SKIP() << "root may write anywhere";
  TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  for (auto const& writer : writers())
    expect_message(environment_error([&] { writer.write(directory / "a"); }), directory / "a", "Permission denied");
  std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_all);
}

TEST(Failures, TheDirectoryVanishesBeforeCommit) {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "sub");
  AtomicFile file(directory / "sub" / "a.txt");
  std::filesystem::remove_all(directory / "sub");
  expect_message(environment_error([&] { file.commit(); }), directory / "sub" / "a.txt", "No such file or directory");
}

/// For its life time, files may not grow beyond `bytes`, and writing more is an error instead of the process's end.
class FileSizeLimit {
public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit const limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(FileSizeLimit const&) = delete;
  FileSizeLimit& operator=(FileSizeLimit const&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(Failures, FileSizeLimitIsNamedAndNothingIsLeft) {
  TemporaryDirectory directory;
  for (auto const& writer : writers()) {
    write_text_file(directory / "a", "old");
    std::string message, printed;
    {
      FileSizeLimit const limit(2000);
      testing::internal::CaptureStderr();
      message = environment_error([&] { writer.write(directory / "a"); });
      printed = testing::internal::GetCapturedStderr();
    }
    expect_message(message, directory / "a", "File too large");
    EXPECT_EQ(printed, "") << writer.name;  // libraries must not print by themselves
    EXPECT_EQ(directory.names(), std::set<std::string>{"a"}) << writer.name;
    EXPECT_EQ(text_of(directory / "a"), "old") << writer.name;
  }
}

// HDF5 seeks, writes small pieces and closes much in the end: wherever the space ends, the message is the same.
TEST(Failures, AnHdf5FileMayEndAnywhere) {
  TemporaryDirectory directory;
  std::mt19937 random(2);
  auto const block = make_block(6, 6, 6, 2, [&](Vec const&) { return static_cast<double>(random()); });
  for (VtkCompression const compression : {VtkCompression::none, VtkCompression::fast}) {
    auto const write = [&] {
      write_hdf(directory / "u.hdf", block.grid(), {{"u", 1, block.u, {}}}, {}, {compression, VtkPrecision::double_});
    };
    write();
    auto const size = std::filesystem::file_size(directory / "u.hdf");
    std::filesystem::remove(directory / "u.hdf");
    for (std::uintmax_t bytes = 0; bytes < size; bytes += 1 + size / 50) {
      std::string message, printed;
      {
        FileSizeLimit const limit(bytes);
        testing::internal::CaptureStderr();
        message = environment_error(write);
        printed = testing::internal::GetCapturedStderr();
      }
      expect_message(message, directory / "u.hdf", "File too large");
      EXPECT_EQ(printed, "") << bytes;
      EXPECT_TRUE(directory.names().empty()) << bytes;
    }
    EXPECT_NO_THROW(write());
    std::filesystem::remove(directory / "u.hdf");
  }
}

TEST(Failures, FullDiskIsNamedAndNothingIsLeft) {
  TemporaryDirectory directory;
  if (::mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=8k") != 0)
    GTEST_SKIP() << "mounting a small file system is not allowed here";
  for (auto const& writer : writers()) {
    auto const path = directory / writer.name;
    std::string const message = environment_error([&] { writer.write(path); });
    expect_message(message, path, "No space left on device");
    EXPECT_NE(message.find("output.directory"), std::string::npos) << message;
    EXPECT_TRUE(directory.names().empty()) << writer.name;
  }
  EXPECT_EQ(::umount(directory.path().c_str()), 0);
}

}  // namespace

}  // namespace poisson::output::test
