// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The reference plugin with one fault, to test that ztcp_perf notices it. ZTCP_FAULTY_INNER names
// the reference plugin; ZTCP_FAULTY_RANK the affected rank, or "all"; ZTCP_FAULT the fault at the
// 40th completing receive: "flip" a bit, "late" keep the old bytes, "short" report a byte less,
// "error" fail, "hang" never complete, "stall" take 400 ms longer; "slow": the first completing
// receive takes longer; "init": init takes longer than any timeout; "instant": every request is
// done at once, and no byte moves.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "plugin/abi/nccl_abi.h"

extern "C" __attribute__((visibility("default"))) ncclNet_v11_t ncclNetPlugin_v11;
ncclNet_v11_t ncclNetPlugin_v11 = {};

namespace {

constexpr int kFaultyReceive = 40;

struct Posted {
  std::byte* data;
  std::vector<std::byte> before;
};

const ncclNet_v11_t* g_inner = nullptr;
// A view, because it is set before objects with constructors exist.
std::string_view g_fault;
std::map<void*, Posted> g_receives;
int g_completed = 0;

ncclResult_t irecv(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles,
                   void** phandles, void** request) {
  const ncclResult_t result =
      g_inner->irecv(comm, n, data, sizes, tags, mhandles, phandles, request);
  if (*request != nullptr) {
    auto* bytes = static_cast<std::byte*>(data[0]);
    g_receives[*request] = {bytes, std::vector<std::byte>(bytes, bytes + sizes[0])};
  }
  return result;
}

ncclResult_t test(void* request, int* done, int* size) {
  const auto receive = g_receives.find(request);
  if (receive != g_receives.end() && g_completed == kFaultyReceive && g_fault == "hang") {
    *done = 0;
    return ncclSuccess;
  }
  int bytes = 0;
  const ncclResult_t result = g_inner->test(request, done, &bytes);
  if (size != nullptr) *size = bytes;
  if (result != ncclSuccess || *done == 0 || receive == g_receives.end()) return result;
  const Posted posted = std::move(receive->second);
  g_receives.erase(receive);
  if (g_fault == "slow" && g_completed == 0) usleep(400'000);
  if (g_completed++ != kFaultyReceive || bytes == 0) return result;
  if (g_fault == "stall") usleep(400'000);
  if (g_fault == "flip") posted.data[bytes / 2] ^= std::byte{4};
  if (g_fault == "late") std::memcpy(posted.data, posted.before.data(), static_cast<size_t>(bytes));
  if (g_fault == "short" && size != nullptr) *size = bytes - 1;
  return g_fault == "error" ? ncclInternalError : result;
}

int g_instant_bytes = 0;

ncclResult_t instant_isend(void*, void*, size_t, int, void*, void*, void** request) {
  *request = &g_instant_bytes;
  return ncclSuccess;
}

ncclResult_t instant_irecv(void*, int, void**, size_t* sizes, int*, void**, void**,
                           void** request) {
  g_instant_bytes = static_cast<int>(sizes[0]);
  *request = &g_instant_bytes;
  return ncclSuccess;
}

ncclResult_t instant_test(void*, int* done, int* size) {
  *done = 1;
  if (size != nullptr) *size = g_instant_bytes;
  return ncclSuccess;
}

ncclResult_t hang_in_init(void** context, uint64_t id, ncclNetCommConfig_v10_t* config,
                          ncclDebugLogger_t logger, ncclProfilerCallback_t profiler) {
  sleep(100);
  return g_inner->init(context, id, config, logger, profiler);
}

__attribute__((constructor)) void open_inner() {
  void* library = dlopen(std::getenv("ZTCP_FAULTY_INNER"), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  g_inner = static_cast<const ncclNet_v11_t*>(dlsym(library, "ncclNetPlugin_v11"));
  ncclNetPlugin_v11 = *g_inner;
  const char* rank = std::getenv("ZTCP_LOCAL_RANK");
  const char* faulty = std::getenv("ZTCP_FAULTY_RANK");
  if (rank == nullptr || faulty == nullptr) return;
  if (std::strcmp(rank, faulty) != 0 && std::strcmp(faulty, "all") != 0) return;
  g_fault = std::getenv("ZTCP_FAULT");
  ncclNetPlugin_v11.irecv = irecv;
  ncclNetPlugin_v11.test = test;
  if (g_fault == "init") ncclNetPlugin_v11.init = hang_in_init;
  if (g_fault != "instant") return;
  ncclNetPlugin_v11.isend = instant_isend;
  ncclNetPlugin_v11.irecv = instant_irecv;
  ncclNetPlugin_v11.test = instant_test;
}

}  // namespace
