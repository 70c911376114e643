#include "app/mpi/communicator.hpp"

#include "gpu/core/error.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mpi.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace poisson::app {

namespace {

/// MPI's own errors end all ranks with a message of MPI, its default.
int mpi_count(std::int64_t bytes) {
  if (bytes > std::numeric_limits<int>::max())
    throw EnvironmentError("a message between ranks has " + std::to_string(bytes) +
                           " bytes, and MPI takes at most 2^31 - 1; use more ranks");
  return static_cast<int>(bytes);
}

/// Open MPI loads the libraries of all networks that it knows before it looks which of them are there: that takes 0.2 s. Ranks that
/// are all on one machine need none. What the user's environment says has precedence.
void leave_out_networks() {
  char const *const here = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE"), *const all = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (here != nullptr && all != nullptr && std::string_view(here) == all)
    ::setenv("OMPI_MCA_pml", "ob1", 0);
}

/// When it ends, Open MPI sends its launcher some short messages one after the other. TCP keeps those after the first for 40 ms,
/// until that one is acknowledged, unless it is told to send at once.
void send_short_messages_at_once() {
  constexpr int most = 256, yes = 1;
  for (int descriptor = 0; descriptor < most; ++descriptor)  // it fails where that is no such socket
    static_cast<void>(::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes));
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

/// What MPI calls while it combines values: its operations get no data of their callers.
Communicator::Combine operation_of_now = nullptr;
void combine_now(void* from, void* into, int* count, MPI_Datatype*) {
  operation_of_now(into, from, *count);
}

class MpiCommunicator final : public Communicator {
public:
  MpiCommunicator() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Op_create(&combine_now, 1, &operation_);
    if (size_ > ranks_of_block) {
      MPI_Comm_split(MPI_COMM_WORLD, rank_ / ranks_of_block, rank_, &block_);
      MPI_Comm_split(MPI_COMM_WORLD, rank_ % ranks_of_block == 0 ? 0 : MPI_UNDEFINED, rank_, &firsts_);
    }
  }
  ~MpiCommunicator() override {
    send_short_messages_at_once();
    MPI_Finalize();
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_gather(void const* mine, std::int64_t bytes, void* all) override {
    int const count = mpi_count(bytes);
    MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD);
  }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void broadcast(int from, void* data, std::int64_t bytes) override {
    MPI_Bcast(data, mpi_count(bytes), MPI_BYTE, from, MPI_COMM_WORLD);
  }
  void broadcast_late(int from, void* data, std::int64_t bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(data, mpi_count(bytes), MPI_BYTE, from, MPI_COMM_WORLD, &request);
    for (int done = 0;;) {  // what waits for a request keeps its processor busy
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0)
        return;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  void combine(void* values, std::int64_t count, std::int64_t size, Combine into, Order order) override {
    int const bytes = mpi_count(count * size);
    if (order == Order::any) {
      MPI_Datatype type{};
      MPI_Type_contiguous(static_cast<int>(size), MPI_BYTE, &type);
      MPI_Type_commit(&type);
      operation_of_now = into;
      MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), type, operation_, MPI_COMM_WORLD);
      MPI_Type_free(&type);
      return;
    }
    // MPI says neither in which order its reductions add nor that it is the same in every run; here both is known.
    combine_in_order(block_, values, count, bytes, into);
    if (size_ <= ranks_of_block)
      return;
    if (firsts_ != MPI_COMM_NULL)
      combine_in_order(firsts_, values, count, bytes, into);
    MPI_Bcast(values, bytes, MPI_BYTE, 0, block_);
  }
  /// Nonblocking consensus (Hoefler, Siebert and Lumsdaine 2010, algorithm NBX): who knows that its messages were received enters
  /// a barrier, and receives until all are in it. A rank may begin the next delivery before others have left this one, but not the
  /// one after that: two tags are enough.
  void deliver(std::span<Message const> sends, Room const& room) override {
    int const tag = 2 + n_deliveries_++ % 2;
    std::vector<MPI_Request> requests(sends.size());
    for (std::size_t i = 0; i < sends.size(); ++i)
      MPI_Issend(sends[i].data, mpi_count(sends[i].bytes), MPI_BYTE, sends[i].rank, tag, MPI_COMM_WORLD, &requests[i]);
    MPI_Request barrier = MPI_REQUEST_NULL;
    for (bool entered = false;;) {
      int comes = 0, done = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &comes, &status);
      if (comes != 0) {
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        MPI_Recv(room(status.MPI_SOURCE, bytes), bytes, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else if (entered) {
        MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
        if (done != 0)
          return;
      } else {
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
        if (done != 0) {
          MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
          entered = true;
        }
      }
    }
  }
  std::unique_ptr<Exchange> make_exchange(std::span<Message const> sends, std::span<Message const> receives) override {
    return std::make_unique<MpiExchange>(sends, receives);
  }
  void end_all(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

private:
  void combine_in_order(MPI_Comm ranks, void* values, std::int64_t count, int bytes, Combine into) {
    int n = 0;
    MPI_Comm_size(ranks, &n);
    all_.resize(static_cast<std::size_t>(n) * static_cast<std::size_t>(bytes));
    MPI_Allgather(values, bytes, MPI_BYTE, all_.data(), bytes, MPI_BYTE, ranks);
    std::memcpy(values, all_.data(), static_cast<std::size_t>(bytes));
    for (std::size_t place = static_cast<std::size_t>(bytes); place < all_.size(); place += static_cast<std::size_t>(bytes))
      into(values, all_.data() + place, count);
  }

  int rank_ = 0, size_ = 1, n_deliveries_ = 0;
  MPI_Op operation_ = MPI_OP_NULL;
  /// The ranks whose values are added first, and the first ones of these blocks.
  MPI_Comm block_ = MPI_COMM_WORLD, firsts_ = MPI_COMM_NULL;
  std::vector<std::byte> all_;
};

std::unique_ptr<Communicator> open_world() {
  leave_out_networks();
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS || provided < MPI_THREAD_FUNNELED)
    throw EnvironmentError("MPI does not start");
  return std::make_unique<MpiCommunicator>();
}

std::string version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return text;
}

}  // namespace

}  // namespace poisson::app

poisson::app::MpiFunctions const* poisson_mpi() {
  static constexpr poisson::app::MpiFunctions functions{poisson::app::open_world, poisson::app::version};
  return &functions;
}
