// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/gpu_identity.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <dlfcn.h>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace ztcp::plugin {
namespace {

// The driver functions used here, in our own declarations. CUresult 0 is success; CUdevice is an
// int; CUcontext a pointer.
struct CudaDriver {
  int (*device_count)(int* count);
  int (*device_get)(int* device, int ordinal);
  int (*pci_bus_id)(char* text, int capacity, int device);
  int (*uuid)(unsigned char* bytes, int device);
  int (*current_device)(int* device);
  int (*primary_context_state)(int device, unsigned* flags, int* active);
};

// One bit per CUdevice, which are numbered from 0 up.
std::atomic<std::uint64_t> g_noted_devices{0};
constexpr int kMaxDevices = 64;
std::atomic<int> g_noted_local_rank{-1};

template <class F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

// Looked up at each call: CUDA may be loaded after the plugin, and calls are rare.
std::optional<CudaDriver> loaded_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  CudaDriver driver{};
  const bool complete = find(library, "cuDeviceGetCount", driver.device_count) &&
                        find(library, "cuDeviceGet", driver.device_get) &&
                        find(library, "cuDeviceGetPCIBusId", driver.pci_bus_id) &&
                        // _v2 (CUDA 11.4) names the MIG slice rather than its GPU.
                        (find(library, "cuDeviceGetUuid_v2", driver.uuid) ||
                         find(library, "cuDeviceGetUuid", driver.uuid)) &&
                        find(library, "cuCtxGetDevice", driver.current_device) &&
                        find(library, "cuDevicePrimaryCtxGetState", driver.primary_context_state);
  dlclose(library);  // Drops our reference; the library's loader keeps it mapped.
  if (!complete) return std::nullopt;
  return driver;
}

// Every CUdevice that the process sees; none while CUDA is not initialised.
std::vector<int> visible_devices(const CudaDriver& driver) {
  std::vector<int> devices;
  int count = 0;
  if (driver.device_count(&count) != 0) return devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0;
    if (driver.device_get(&device, ordinal) == 0) devices.push_back(device);
  }
  return devices;
}

std::string pci_address(const CudaDriver& driver, int device) {
  std::array<char, 32> text{};
  if (driver.pci_bus_id(text.data(), static_cast<int>(text.size()), device) != 0) return {};
  std::string address = text.data();
  std::ranges::transform(address, address.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return address;
}

// Formatted as nvidia-smi prints it: "GPU-6f1c2e3a-....".
std::string uuid_text(const CudaDriver& driver, int device) {
  std::array<unsigned char, 16> bytes{};
  if (driver.uuid(bytes.data(), device) != 0) return {};
  std::string text = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

std::vector<int> active_devices(const CudaDriver& driver, const std::vector<int>& devices) {
  std::vector<int> found;
  for (const int device : devices) {
    unsigned flags = 0;
    int active = 0;
    if (driver.primary_context_state(device, &flags, &active) == 0 && active != 0)
      found.push_back(device);
  }
  return found;
}

std::vector<int> noted_devices() {
  const std::uint64_t noted = g_noted_devices.load(std::memory_order_relaxed);
  std::vector<int> devices;
  for (int device = 0; device < kMaxDevices; ++device)
    if ((noted >> static_cast<unsigned>(device) & 1U) != 0) devices.push_back(device);
  return devices;
}

std::optional<int> current_device(const CudaDriver& driver) {
  int device = 0;
  if (driver.current_device(&device) != 0) return std::nullopt;
  return device;
}

ustack::GpuIdentity identity_of(const CudaDriver& driver, int device) {
  return {.pci = pci_address(driver, device), .uuid = uuid_text(driver, device)};
}

}  // namespace

void remember_current_gpu() noexcept {
  const auto driver = loaded_driver();
  const auto device = driver ? current_device(*driver) : std::nullopt;
  if (device && *device >= 0 && *device < kMaxDevices)
    g_noted_devices.fetch_or(std::uint64_t{1} << static_cast<unsigned>(*device),
                             std::memory_order_relaxed);
}

void remember_local_rank(int rank) noexcept {
  g_noted_local_rank.store(rank, std::memory_order_relaxed);
}

ustack::ProcessGpus view_gpus() {
  ustack::ProcessGpus gpus;
  gpus.local_rank = g_noted_local_rank.load(std::memory_order_relaxed);
  const auto driver = loaded_driver();
  if (!driver) return gpus;
  const std::vector<int> visible = visible_devices(*driver);
  const std::vector<int> active = active_devices(*driver, visible);
  std::optional<int> current = current_device(*driver);
  std::vector<int> driven = noted_devices();
  if (current && std::ranges::find(driven, *current) == driven.end()) driven.push_back(*current);
  if (driven.empty() && active.size() == 1) driven = active;
  if (driven.empty() && active.empty() && visible.size() == 1) driven = visible;
  if (!current && driven.size() == 1) current = driven.front();

  if (current) gpus.current = identity_of(*driver, *current);
  for (const int device : driven) gpus.driven.push_back(identity_of(*driver, device));
  for (const int device : active) gpus.active.push_back(identity_of(*driver, device));
  return gpus;
}

ustack::ProcessGpus probe_gpus() {
  remember_current_gpu();
  return view_gpus();
}

config::GpuList visible_gpus() {
  config::GpuList gpus;
  const auto driver = loaded_driver();
  if (!driver) return gpus;
  for (const int device : visible_devices(*driver)) {
    std::string address = pci_address(*driver, device);
    if (!address.empty()) gpus.push_back(std::move(address));
  }
  return gpus;
}

}  // namespace ztcp::plugin
