// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Links over DPDK's ring driver. Its port receives the frames it sends: the very buffers that a NIC
// would have read.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "transport/link/eal.h"
#include "transport/link/port_link.h"

namespace ztcp::link {

inline constexpr const char* kDevice = "net_ring0";

// A device that maps every range.
class AnyMapper final : public DmaMapper {
 public:
  Status map(std::uintptr_t, std::size_t) override { return {}; }
  void unmap(std::uintptr_t, std::size_t) override {}
};

class PortLinkTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    EalConfig config;
    config.node_memory_mib = {320};
    ASSERT_TRUE(start_eal(config));
    register_poller_thread();
  }

  static PortConfig config() {
    PortConfig config;
    config.device = kDevice;
    config.rx_frames = 255;
    config.tx_header_frames = 255;
    config.tx_descriptors = 64;
    config.device_reads_user_memory = true;
    return config;
  }

  void SetUp() override { open(config()); }

  void open(const PortConfig& config) {
    close();
    auto port = Port::open(config);
    ASSERT_TRUE(port) << port.error().where;
    PortLinkOptions options;
    options.description = "net_ring0 net_ring";
    options.watches_device = true;
    options.counts_drops = true;
    options.user_memory = &memory_;
    open_ = std::make_shared<OpenPort>(std::move(*port), std::move(options));
    ASSERT_TRUE(open_->started);
    link_ = std::make_unique<PortLink>(open_);
    for (std::uint16_t queue = 1; queue < open_->port.queues(); ++queue)
      others_.push_back(std::make_unique<PortLink>(open_, queue));
    open_.reset();
  }

  void close() {
    link_.reset();
    others_.clear();
  }

  static bool port_exists() {
    std::uint16_t id = 0;
    return rte_eth_dev_get_port_by_name(kDevice, &id) == 0;
  }

  // Bytes that the NIC would read of the only frame sent.
  struct Read {
    std::vector<std::byte> bytes;
    std::vector<const void*> user_memory;  // Addresses that it would read in place.
    std::uint64_t requests = 0;            // Checksums that it would compute.
  };
  static Read read_as_device() {
    Read out;
    std::uint16_t id = 0;
    EXPECT_EQ(rte_eth_dev_get_port_by_name(kDevice, &id), 0);
    rte_mbuf* head = nullptr;
    EXPECT_EQ(rte_eth_rx_burst(id, 0, &head, 1), 1);
    out.requests = head->ol_flags & (RTE_MBUF_F_TX_OFFLOAD_MASK | RTE_MBUF_F_TX_IPV4);
    for (const rte_mbuf* part = head; part != nullptr; part = part->next) {
      const auto* at = rte_pktmbuf_mtod(part, const std::byte*);
      out.bytes.insert(out.bytes.end(), at, at + part->data_len);
      if (RTE_MBUF_HAS_EXTBUF(part)) out.user_memory.push_back(at);
    }
    rte_pktmbuf_free(head);
    return out;
  }

  AnyMapper mapper_;
  DmaMap memory_{mapper_, "vfio"};
  std::shared_ptr<OpenPort> open_;
  std::unique_ptr<PortLink> link_;                 // For the first queue.
  std::vector<std::unique_ptr<PortLink>> others_;  // For the other queues.
};

}  // namespace ztcp::link
