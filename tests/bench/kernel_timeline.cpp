// Writes when every kernel began and ended, on which device and stream, into the file KERNEL_TIMELINE ("timeline.csv"). CUDA loads
// it into any program:
//   g++ -std=c++20 -O2 -shared -fPIC -I"$CUDA/include" tests/bench/kernel_timeline.cpp -o kernel_timeline.so -L"$CUDA/lib64"
//   -lcupti CUDA_INJECTION64_PATH=$PWD/kernel_timeline.so ranks_bench strong:512:2; tests/bench/hidden_exchange.py timeline.csv
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cupti.h>
#include <mutex>

namespace {

std::mutex file_mutex;
std::FILE* file = nullptr;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *size = std::size_t{8} << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *most_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  std::lock_guard const lock(file_mutex);
  CUpti_Activity* record = nullptr;
  while (file != nullptr && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      auto const* const kernel = reinterpret_cast<CUpti_ActivityKernel10 const*>(record);
      std::fprintf(file, "%u,%u,%llu,%llu,\"%s\"\n", kernel->deviceId, kernel->streamId,
                   static_cast<unsigned long long>(kernel->start), static_cast<unsigned long long>(kernel->end), kernel->name);
    }
  std::free(buffer);
}

void finish() {
  cuptiActivityFlushAll(1);
  std::lock_guard const lock(file_mutex);
  if (file != nullptr)
    std::fclose(file);
  file = nullptr;
}

}  // namespace

extern "C" int InitializeInjection() {
  char const* const path = std::getenv("KERNEL_TIMELINE");
  file = std::fopen(path != nullptr ? path : "timeline.csv", "w");
  if (file == nullptr)
    return 0;
  std::fputs("device,stream,begin,end,kernel\n", file);
  cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  std::atexit(finish);
  return 1;
}
