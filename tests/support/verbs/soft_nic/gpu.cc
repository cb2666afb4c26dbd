// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/verbs/soft_nic/gpu.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <map>

#include "tests/support/verbs/soft_nic/packet.h"

namespace ztcp::soft_nic {
namespace {

// Names and numbers from cuda.h, which builds do not need.
using Outcome = int;
constexpr int kMemoryType = 2;
constexpr int kDeviceOrdinal = 9;
constexpr int kRangeStart = 11;
constexpr int kRangeSize = 12;
constexpr unsigned kDeviceMemory = 2;
constexpr unsigned kNonBlocking = 1;
constexpr unsigned kPortable = 1;

struct Driver {
  Outcome (*pointer_get_attribute)(void* out, int attribute, std::uint64_t address) = nullptr;
  Outcome (*device_get)(int* device, int ordinal) = nullptr;
  Outcome (*primary_context_retain)(void** context, int device) = nullptr;
  Outcome (*context_push)(void* context) = nullptr;
  Outcome (*context_pop)(void** context) = nullptr;
  Outcome (*stream_create)(void** stream, unsigned flags) = nullptr;
  Outcome (*stream_synchronize)(void* stream) = nullptr;
  Outcome (*host_alloc)(void** memory, std::size_t size, unsigned flags) = nullptr;
  Outcome (*copy_to_device)(std::uint64_t to, const void* from, std::size_t size,
                            void* stream) = nullptr;
  Outcome (*copy_to_host)(void* to, std::uint64_t from, std::size_t size, void* stream) = nullptr;
  bool is_complete = false;
};

Driver load() {
  Driver out;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return out;
  out.is_complete = true;
  const auto take = [&](auto& to, const char* symbol) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(library, symbol));
    out.is_complete &= to != nullptr;
  };
  take(out.pointer_get_attribute, "cuPointerGetAttribute");
  take(out.device_get, "cuDeviceGet");
  take(out.primary_context_retain, "cuDevicePrimaryCtxRetain");
  take(out.context_push, "cuCtxPushCurrent_v2");
  take(out.context_pop, "cuCtxPopCurrent_v2");
  take(out.stream_create, "cuStreamCreate");
  take(out.stream_synchronize, "cuStreamSynchronize");
  take(out.host_alloc, "cuMemHostAlloc");
  take(out.copy_to_device, "cuMemcpyHtoDAsync_v2");
  take(out.copy_to_host, "cuMemcpyDtoHAsync_v2");
  return out;
}

// Looked up again until it is found: a program may load it late.
const Driver& driver() {
  static Driver found;
  if (!found.is_complete) found = load();
  return found;
}

bool is_fine(const char* call, Outcome outcome) {
  if (outcome != 0) std::fprintf(stderr, "soft NIC: %s: CUDA error %d\n", call, outcome);
  return outcome == 0;
}

// Sets the GPU's context in the calling thread, which has another one.
class Entered {
 public:
  explicit Entered(void* context) { driver().context_push(context); }
  ~Entered() {
    void* ours = nullptr;
    driver().context_pop(&ours);
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
};

}  // namespace

Gpu* Gpu::of(std::uint64_t address, std::size_t size_bytes) {
  const Driver& cuda = driver();
  if (!cuda.is_complete) return nullptr;
  unsigned type = 0;
  if (cuda.pointer_get_attribute(&type, kMemoryType, address) != 0 || type != kDeviceMemory)
    return nullptr;
  int ordinal = 0;
  std::uint64_t start = 0;
  std::size_t size = 0;
  if (!is_fine("device of an address",
               cuda.pointer_get_attribute(&ordinal, kDeviceOrdinal, address)) ||
      !is_fine("range of an address", cuda.pointer_get_attribute(&start, kRangeStart, address)) ||
      !is_fine("range of an address", cuda.pointer_get_attribute(&size, kRangeSize, address)))
    return nullptr;
  if (address + size_bytes > start + size) {
    std::fprintf(stderr, "soft NIC: %#llx + %zu is beyond its allocation of %zu\n",
                 static_cast<unsigned long long>(address), size_bytes, size);
    return nullptr;
  }
  return open(ordinal);
}

Gpu* Gpu::open(int ordinal) {
  // Never destroyed: a NIC's thread may be inside when the process ends.
  static auto& known = *new std::map<int, Gpu*>;
  if (const auto found = known.find(ordinal); found != known.end()) return found->second;
  auto* const made = new Gpu(ordinal);
  if (!made->prepare()) {
    delete made;
    return nullptr;
  }
  return known[ordinal] = made;
}

bool Gpu::prepare() {
  const Driver& cuda = driver();
  int device = 0;
  if (!is_fine("cuDeviceGet", cuda.device_get(&device, ordinal_)) ||
      !is_fine("cuDevicePrimaryCtxRetain", cuda.primary_context_retain(&context_, device)))
    return false;
  const Entered entered(context_);
  void* memory = nullptr;
  if (!is_fine("cuStreamCreate", cuda.stream_create(&stream_, kNonBlocking)) ||
      !is_fine("cuMemHostAlloc", cuda.host_alloc(&memory, kMtuBytes, kPortable)))
    return false;
  staging_ = static_cast<std::byte*>(memory);
  return true;
}

bool Gpu::move(std::byte* host, std::uint64_t address, std::size_t size_bytes, bool is_read) {
  const Driver& cuda = driver();
  const Entered entered(context_);
  const bool is_begun =
      is_read
          ? is_fine("cuMemcpyDtoHAsync", cuda.copy_to_host(host, address, size_bytes, stream_))
          : is_fine("cuMemcpyHtoDAsync", cuda.copy_to_device(address, host, size_bytes, stream_));
  return is_begun && is_fine("cuStreamSynchronize", cuda.stream_synchronize(stream_));
}

bool Gpu::read(std::span<std::byte> to, std::uint64_t address) {
  for (std::size_t at = 0; at < to.size(); at += kMtuBytes) {
    const std::size_t now = std::min<std::size_t>(kMtuBytes, to.size() - at);
    if (!move(staging_, address + at, now, true)) return false;
    std::memcpy(to.data() + at, staging_, now);
  }
  return true;
}

bool Gpu::write(std::uint64_t address, std::span<const std::byte> from) {
  for (std::size_t at = 0; at < from.size(); at += kMtuBytes) {
    const std::size_t now = std::min<std::size_t>(kMtuBytes, from.size() - at);
    std::memcpy(staging_, from.data() + at, now);
    if (!move(staging_, address + at, now, false)) return false;
  }
  return true;
}

}  // namespace ztcp::soft_nic
