// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/open_port.h"

#include <utility>

#include <rte_ethdev.h>

#include "core/process_mark.h"
#include "transport/link/dpdk_host.h"

namespace ztcp::link {
namespace {

// The driver's counts of a port. May wait for the NIC (drop_reader.h).
std::optional<NicDrops> read_nic_drops(std::uint16_t port) {
  rte_eth_stats stats{};
  if (rte_eth_stats_get(port, &stats) != 0) return std::nullopt;
  return NicDrops{.rx_missed = stats.imissed,
                  .rx_no_buffers = stats.rx_nombuf,
                  .rx_errors = stats.ierrors,
                  .tx_errors = stats.oerrors};
}

}  // namespace

OpenPort::OpenPort(Port its_port, PortLinkOptions its_options)
    : options(std::move(its_options)), port(std::move(its_port)), polling_(port.queues()) {
  if (options.watches_device) watch_.emplace(port.config().device, port.id());
  started = port.start();
  if (!started) return;
  spread = port.read_spread();
  read_carrier();
  if (options.counts_drops)
    drop_reader_.emplace([this, id = port.id()] {
      // A NIC that is gone answers with ones.
      const bool answers = !dpdk_panicked() && !ztcp::is_lost(device_state());
      return answers ? read_nic_drops(id) : std::nullopt;
    });
}

OpenPort::~OpenPort() {
  stop_counting();
  if (options.user_memory == nullptr || in_forked_child()) return;
  // Before the memory that the device may still read is unmapped.
  give_back();
  if (dpdk_panicked()) return;
  for (const std::uint32_t key : bequeathed_) options.user_memory->release(key);
}

void OpenPort::leave() {
  if (polling_.fetch_sub(1, std::memory_order_acq_rel) == 1) give_back();
}

void OpenPort::stop_counting() {
  if (!drop_reader_) return;
  if (dpdk_panicked())
    drop_reader_->abandon();
  else
    drop_reader_->stop();
}

void OpenPort::give_back() {
  if (given_back_.load(std::memory_order_relaxed)) return;
  stop_counting();
  if (watch_) watch_->forget_port();
  port.give_back_device();
  given_back_.store(true, std::memory_order_release);
}

void OpenPort::bequeath(std::vector<std::uint32_t> keys) {
  const std::scoped_lock lock(mutex_);
  bequeathed_.insert(bequeathed_.end(), keys.begin(), keys.end());
}

void OpenPort::read_carrier() {
  const auto control =
      drop_reader_ ? drop_reader_->try_to_control() : std::unique_lock<std::mutex>();
  if (drop_reader_ && !control.owns_lock()) return;
  rte_eth_link link{};
  const bool up =
      rte_eth_link_get_nowait(port.id(), &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
  const bool knows_speed = up && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
  carrier_.store(up, std::memory_order_relaxed);
  speed_mbps_.store(knows_speed ? link.link_speed : 0, std::memory_order_relaxed);
}

}  // namespace ztcp::link
