// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/gpu_direct.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>

#include "config/machine/gpu_direct.h"
#include "config/machine/live_machine.h"
#include "transport/verbs/flusher.h"

namespace ztcp::verbs {
namespace {

constexpr auto kMostTrial = std::chrono::seconds(5);
constexpr auto kAnswer = std::chrono::seconds(1);
constexpr auto kPollInterval = std::chrono::milliseconds(1);

// Why DMA-BUFs can't be registered; empty: they can. The call names no buffer: a driver that
// supports them returns EBADF, another one that they are not supported.
std::string fault_of_dmabuf(const OpenDevice& device) {
  if (device.api->reg_dmabuf_mr == nullptr)
    return "its libibverbs is older than release 34 and knows no DMA-BUF";
  errno = 0;
  RegionHandle region(device.api->reg_dmabuf_mr(device.domain.get(), 0, 0, 0, -1, 0), {device.api});
  const bool is_known = region == nullptr && errno != EOPNOTSUPP && errno != EPROTONOSUPPORT;
  return is_known ? "" : "its driver registers no DMA-BUF";
}

std::string peer_memory_module(const std::string& sys_root) {
  std::error_code error;
  for (const config::PeerMemorySign& sign : config::kPeerMemorySigns)
    if (std::filesystem::exists(sys_root + sign.path, error)) return sign.module;
  return {};
}

// Joins two queue pairs of the device to one another; one reads the other's memory.
std::string fault_of_loop(const Device& device, const std::shared_ptr<ConnectionManager>& manager,
                          Duration within) {
  const auto page = std::make_unique<ReadPage>();
  const RegionHandle region(
      device.opened->api->reg_mr(device.opened->domain.get(), page.get(), sizeof(ReadPage),
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
      {device.opened->api});
  if (!region) return std::string("ibv_reg_mr: ") + std::strerror(errno);
  auto made = Flusher::create(device, device.address, manager, within);
  if (!made) return made.error().reason;
  const auto read = made->begin(&page->byte, region->rkey);
  if (!read) return read.error().where;
  auto ends = std::chrono::steady_clock::time_point::max();
  while (true) {
    const Result<bool> done = made->is_done(*read);
    if (!done) return made->why().empty() ? done.error().where : made->why();
    if (*done) return {};
    // The deadline starts once they are joined: is_done() reports a failure to join them.
    const auto now = std::chrono::steady_clock::now();
    if (made->is_joined()) ends = std::min(ends, now + kAnswer);
    if (now > ends) return "a read of its own memory has no answer";
    std::this_thread::sleep_for(kPollInterval);
  }
}

// Why an iWARP device can't flush its writes; empty: it can. Without flushes, a GPU would read its
// memory before the bytes are there.
std::string fault_of_flush(const Device& device, Duration within) {
  const auto manager =
      ConnectionManager::start(*device.opened->manager, Fd(eventfd(0, EFD_CLOEXEC)));
  if (!manager)
    return std::string(manager.error().where) + ": " + std::strerror(manager.error().sys_errno);
  std::string fault = fault_of_loop(device, *manager, std::min<Duration>(within, kMostTrial));
  (*manager)->stop();
  return fault;
}

// Names the part for DMA-BUFs that the GPU's driver visibly lacks. NCCL asks CUDA, and passes none
// if they are missing.
std::string without_export(const std::string& sys_root) {
  config::LiveMachine machine(std::filesystem::path(sys_root).parent_path().string());
  const config::GpuDirect found = config::read_gpu_direct(machine);
  return found.has_gpu_driver && !found.has_dmabuf ? "; but " + found.why_no_dmabuf : "";
}

}  // namespace

void probe_gpu_direct(Device& device, const std::string& sys_root, Duration joined_within) {
  const std::string module = peer_memory_module(sys_root);
  device.has_peer_memory = !module.empty();
  const std::string fault = fault_of_dmabuf(*device.opened);
  device.has_dmabuf = fault.empty();
  if (device.has_dmabuf && device.has_peer_memory)
    device.gpu_direct = "on (DMA-BUF, " + module + ")";
  else if (device.has_dmabuf)
    device.gpu_direct = "on (DMA-BUF" + without_export(sys_root) + ")";
  else if (device.has_peer_memory)
    device.gpu_direct = "on (" + module + ")";
  else
    device.gpu_direct =
        "off: " + fault + ", and nvidia_peermem is not loaded (modprobe nvidia_peermem)";
  const bool is_on = device.has_dmabuf || device.has_peer_memory;
  if (!device.is_iwarp || !is_on || !device.fault.empty() || device.is_flush_disabled) return;
  const std::string flush_fault = fault_of_flush(device, joined_within);
  if (flush_fault.empty()) return;
  device.has_dmabuf = device.has_peer_memory = false;
  device.gpu_direct = "off: it can't flush its writes into GPU memory: " + flush_fault;
}

}  // namespace ztcp::verbs
