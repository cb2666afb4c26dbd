// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// libnccl-env.so's boundary to NCCL. A value that the user has set always comes first.
#include <cstdlib>
#include <cxxabi.h>
#include <dlfcn.h>
#include <string>
#include <unistd.h>

#include "plugin/abi/nccl_env.h"
#include "plugin/env/profile.h"

namespace {

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string path = info.dli_fname;
  const std::size_t end = path.rfind('/');
  return end == std::string::npos ? "." : path.substr(0, end);
}

const ztcp::env::Profile& profile() {
  static const ztcp::env::Profile chosen = [] {
    try {
      return ztcp::env::choose(
          {.variable = [](const char* name) -> const char* { return std::getenv(name); },
           .is_file = [](const std::string& path) { return access(path.c_str(), R_OK) == 0; },
           .folder = own_folder()});
    } catch (abi::__forced_unwind&) {
      throw;
    } catch (...) {
      return ztcp::env::Profile{};
    }
  }();
  return chosen;
}

ncclEnvInit_v1_t init_v1;
ncclResult_t init_v1(uint8_t, uint8_t, uint8_t, const char*) {
  profile();
  return ncclSuccess;
}

ncclEnvInit_v2_t init_v2;
ncclResult_t init_v2(uint8_t, uint8_t, uint8_t, const char*, ncclDebugLogger_t logger) {
  if (logger != nullptr)
    logger(NCCL_LOG_INFO, NCCL_INIT, __FILE__, __LINE__, "ENV/ztcp : %s", profile().text.c_str());
  return ncclSuccess;
}

ncclEnvFinalize_v1_t finalize;
ncclResult_t finalize() { return ncclSuccess; }

ncclEnvGetEnv_v1_t get_env;
const char* get_env(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : profile().find(name);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const ncclEnv_v1_t ncclEnvPlugin_v1 = {
    .name = "ztcp",
    .init = init_v1,
    .finalize = finalize,
    .getEnv = get_env,
};

extern "C" [[gnu::visibility("default")]] const ncclEnv_v2_t ncclEnvPlugin_v2 = {
    .name = "ztcp",
    .init = init_v2,
    .finalize = finalize,
    .getEnv = get_env,
};
