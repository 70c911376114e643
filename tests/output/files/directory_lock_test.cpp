#include "output/files/directory_lock.hpp"

#include "tests/output/output_helpers.hpp"

#include <csignal>
#include <fstream>
#include <sys/wait.h>

namespace poisson::output::test {

namespace {

/// Makes another process take the lock of a directory, announce `names` and hold the lock until it is killed. With
/// `child_microseconds` > 0 that process has a child, which has the lock as well and ends by itself after that time.
class Holder {
public:
  Holder(std::filesystem::path const& directory, std::vector<std::string> const& names, unsigned child_microseconds = 0) {
    int ready[2];
    if (pipe(ready) != 0)
      throw std::runtime_error("no pipe");
    id_ = fork();
    if (id_ == 0) {
      DirectoryLock lock(directory);
      lock.announce(names);
      if (child_microseconds > 0 && fork() == 0) {
        usleep(child_microseconds);
        _exit(0);
      }
      char const held = lock.held() ? 'y' : 'n';
      if (::write(ready[1], &held, 1) == 1)
        for (;;)
          pause();
      _exit(1);
    }
    ::close(ready[1]);
    char held = 'n';
    locked_ = id_ > 0 && ::read(ready[0], &held, 1) == 1 && held == 'y';
    ::close(ready[0]);
  }
  Holder(Holder const&) = delete;
  Holder& operator=(Holder const&) = delete;
  ~Holder() { kill_and_wait(); }

  void kill_and_wait() {
    if (id_ <= 0)
      return;
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
    id_ = -1;
  }
  [[nodiscard]] bool locked() const { return locked_; }
  [[nodiscard]] pid_t id() const { return id_; }

private:
  pid_t id_ = -1;
  bool locked_ = false;
};

std::string process_text(pid_t id) {
  return "process " + std::to_string(id) + " on ";
}

TEST(DirectoryLock, ASecondLockIsRefusedUntilTheFirstIsReleased) {
  TemporaryDirectory directory;
  DirectoryLock first(directory.path());
  EXPECT_TRUE(first.held());
  EXPECT_EQ(first.holder(), "");
  EXPECT_TRUE(first.left_over().empty());
  first.announce({"solution.vtu", "result.json"});
  {
    DirectoryLock const second(directory.path());
    EXPECT_FALSE(second.held());
    EXPECT_EQ(second.holder().rfind(process_text(getpid()), 0), 0U) << second.holder();
    EXPECT_TRUE(second.left_over().empty());
  }
  // A lock that was refused leaves the file alone.
  EXPECT_EQ(directory.names(), std::set<std::string>{DirectoryLock::file_name});
  first.release();
  EXPECT_FALSE(first.held());
  EXPECT_TRUE(directory.names().empty());
  DirectoryLock const third(directory.path());
  EXPECT_TRUE(third.held());
  EXPECT_TRUE(third.left_over().empty());
}

TEST(DirectoryLock, AHolderThatHasAnnouncedNothing) {
  TemporaryDirectory directory;
  DirectoryLock const first(directory.path());
  DirectoryLock const second(directory.path());
  EXPECT_FALSE(second.held());
  EXPECT_EQ(second.holder(), "a process that has just begun");
}

TEST(WriterOf, TheHolderOfTheLockWithoutTakingIt) {
  TemporaryDirectory directory;
  EXPECT_EQ(writer_of(directory.path()), "");
  EXPECT_TRUE(directory.names().empty());
  Holder holder(directory.path(), {"solution.vtu"});
  ASSERT_TRUE(holder.locked());
  EXPECT_EQ(writer_of(directory.path()).rfind(process_text(holder.id()), 0), 0U) << writer_of(directory.path());
  holder.kill_and_wait();
  EXPECT_EQ(writer_of(directory.path()), "");
  DirectoryLock const lock(directory.path());
  EXPECT_TRUE(lock.held());
  EXPECT_EQ(lock.left_over(), std::vector<std::string>{"solution.vtu"});  // what the killed one has left is still known
}

TEST(DirectoryLock, TwoDirectoriesDoNotShareALock) {
  TemporaryDirectory one, other;
  DirectoryLock const first(one.path()), second(other.path());
  EXPECT_TRUE(first.held());
  EXPECT_TRUE(second.held());
}

TEST(DirectoryLock, IsFreeOnceItsHolderWasKilled) {
  TemporaryDirectory directory;
  Holder holder(directory.path(), {"solution.vtu", "u.png"});
  ASSERT_TRUE(holder.locked());
  {
    DirectoryLock const refused(directory.path());
    EXPECT_FALSE(refused.held());
    EXPECT_EQ(refused.holder().rfind(process_text(holder.id()), 0), 0U) << refused.holder();
  }
  holder.kill_and_wait();
  DirectoryLock lock(directory.path());
  EXPECT_TRUE(lock.held());
  EXPECT_EQ(lock.holder(), "");
  EXPECT_EQ(lock.left_over(), (std::vector<std::string>{"solution.vtu", "u.png"}));
  lock.announce({"a.txt"});
  lock.release();
  EXPECT_TRUE(DirectoryLock(directory.path()).left_over().empty());
}

TEST(DirectoryLock, WaitsForChildrenOfAHolderThatWasKilled) {
  TemporaryDirectory directory;
  Holder holder(directory.path(), {"sweep.csv"}, 300'000);
  ASSERT_TRUE(holder.locked());
  holder.kill_and_wait();
  DirectoryLock const lock(directory.path());
  EXPECT_TRUE(lock.held());
  EXPECT_EQ(lock.holder(), "");
  EXPECT_EQ(lock.left_over(), std::vector<std::string>{"sweep.csv"});
}

TEST(DirectoryLock, WithoutReleaseTheFileTellsWhatWasBeingWritten) {
  TemporaryDirectory directory;
  {
    DirectoryLock first(directory.path());
    first.announce({"a file with a long name that the next text does not cover.vtu", "b.csv"});
    first.announce({"a.vtu"});  // what was announced last counts
  }
  DirectoryLock const second(directory.path());
  EXPECT_TRUE(second.held());
  EXPECT_EQ(second.left_over(), std::vector<std::string>{"a.vtu"});
}

TEST(DirectoryLock, ReleaseLeavesAFileThatIsNotItsOwn) {
  TemporaryDirectory directory;
  DirectoryLock first(directory.path());
  std::filesystem::remove(directory / DirectoryLock::file_name);
  DirectoryLock const second(directory.path());  // the directory was emptied: another file, another lock
  EXPECT_TRUE(second.held());
  first.release();
  EXPECT_EQ(directory.names(), std::set<std::string>{DirectoryLock::file_name});
}

TEST(DirectoryLock, NeitherALinkNorADirectoryIsLocked) {
  TemporaryDirectory directory;
  std::ofstream(directory / "precious") << "text";
  std::filesystem::create_symlink("precious", directory / DirectoryLock::file_name);
  {
    DirectoryLock lock(directory.path());
    EXPECT_FALSE(lock.held());
    EXPECT_EQ(lock.holder(), "");
    lock.announce({"a.vtu"});
    lock.release();
  }
  EXPECT_EQ(std::filesystem::file_size(directory / "precious"), 4U);
  std::filesystem::remove(directory / DirectoryLock::file_name);
  std::filesystem::create_directory(directory / DirectoryLock::file_name);
  DirectoryLock const lock(directory.path());
  EXPECT_FALSE(lock.held());
  EXPECT_EQ(lock.holder(), "");
}

}  // namespace

}  // namespace poisson::output::test
