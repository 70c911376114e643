#include "app/mpi/communicator.hpp"

#include "gpu/core/error.hpp"

#include <cstdlib>
#include <limits>
#include <mpi.h>

namespace poisson::app {

namespace {

/// MPI's own errors end all ranks with a message of MPI, its default.
int mpi_count(std::int64_t bytes) {
  if (bytes > std::numeric_limits<int>::max())
    throw EnvironmentError("a message between ranks has " + std::to_string(bytes) +
                           " bytes, and MPI takes at most 2^31 - 1; use more ranks");
  return static_cast<int>(bytes);
}

class MpiExchange final : public Exchange {
public:
  MpiExchange(std::span<Message const> sends, std::span<Message const> receives) {
    requests_.reserve(sends.size() + receives.size());
    // Receives first: a message that finds its buffer waiting is not copied twice.
    for (Message const& message : receives) {
      MPI_Request& request = requests_.emplace_back();
      MPI_Recv_init(message.data, mpi_count(message.bytes), MPI_BYTE, message.rank, tag, MPI_COMM_WORLD, &request);
    }
    for (Message const& message : sends) {
      MPI_Request& request = requests_.emplace_back();
      MPI_Send_init(message.data, mpi_count(message.bytes), MPI_BYTE, message.rank, tag, MPI_COMM_WORLD, &request);
    }
  }
  ~MpiExchange() override {
    for (MPI_Request& request : requests_)
      MPI_Request_free(&request);
  }
  void start() override {
    if (!requests_.empty())  // which Open MPI takes for an invalid request
      MPI_Startall(static_cast<int>(requests_.size()), requests_.data());
  }
  void finish() override { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }

private:
  static constexpr int tag = 1;  // messages between two ranks arrive in their order, and all ranks begin exchanges in one order
  std::vector<MPI_Request> requests_;
};

class MpiCommunicator final : public Communicator {
public:
  MpiCommunicator() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiCommunicator() override { MPI_Finalize(); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_gather(void const* mine, std::int64_t bytes, void* all) override {
    int const count = mpi_count(bytes);
    MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD);
  }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  std::unique_ptr<Exchange> make_exchange(std::span<Message const> sends, std::span<Message const> receives) override {
    return std::make_unique<MpiExchange>(sends, receives);
  }
  void end_all(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

private:
  int rank_ = 0, size_ = 1;
};

}  // namespace

}  // namespace poisson::app

extern "C" __attribute__((visibility("default"))) poisson::Communicator* poisson_open_communicator(std::string& error) {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS || provided < MPI_THREAD_FUNNELED) {
    error = "MPI does not start";
    return nullptr;
  }
  return new poisson::app::MpiCommunicator();
}

extern "C" __attribute__((visibility("default"))) void poisson_mpi_version(std::string& version) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  version = text;
}
