// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/device_watch.h"

#include <array>
#include <cerrno>
#include <sched.h>
#include <utility>

#include <rte_dev.h>
#include <rte_ethdev.h>

namespace ztcp::link {
namespace {

// Events by which a driver asks for a new set-up of its port. While it recovers by itself it sends
// no relevant event: the port carries nothing then, as without carrier.
constexpr std::array kResets = {RTE_ETH_EVENT_INTR_RESET, RTE_ETH_EVENT_RECOVERY_FAILED};

void lose(void* state, LinkState how) {
  LinkState before = LinkState::kUp;
  static_cast<std::atomic<LinkState>*>(state)->compare_exchange_strong(before, how);
}

void on_device_event(const char*, rte_dev_event_type event, void* state) {
  if (event == RTE_DEV_EVENT_REMOVE) lose(state, LinkState::kGone);
}

int on_reset(std::uint16_t, rte_eth_event_type, void* state, void*) {
  lose(state, LinkState::kReset);
  return 0;
}

// Fails while the callback runs: DPDK returns -EAGAIN then.
template <class Unregister>
void unregister(const Unregister& attempt) {
  while (attempt() == -EAGAIN) sched_yield();
}

}  // namespace

DeviceWatch::DeviceWatch(std::string device, std::uint16_t port)
    : device_(std::move(device)), port_(port) {
  rte_dev_event_callback_register(device_.c_str(), on_device_event, &state_);
  for (const rte_eth_event_type event : kResets)
    rte_eth_dev_callback_register(port_, event, on_reset, &state_);
}

DeviceWatch::~DeviceWatch() {
  forget_port();
  unregister([this] {
    return rte_dev_event_callback_unregister(device_.c_str(), on_device_event, &state_);
  });
}

void DeviceWatch::forget_port() {
  if (!std::exchange(watches_port_, false)) return;
  for (const rte_eth_event_type event : kResets)
    unregister([&] { return rte_eth_dev_callback_unregister(port_, event, on_reset, &state_); });
}

}  // namespace ztcp::link
