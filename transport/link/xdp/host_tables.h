// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel's tables behind a link whose NIC stays with the kernel, on a thread of its own: which
// MAC address leads to a destination (route and neighbour table), and the state of the interface.
// The address is the host's own, so the kernel alone speaks ARP and neighbour discovery for it;
// where its table lacks a neighbour, an empty datagram to the destination's discard port makes the
// kernel resolve it.
//
// Asked by the lanes' threads, which never wait here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/address.h"
#include "core/fd.h"
#include "core/link_state.h"
#include "core/netlink.h"
#include "core/result.h"
#include "core/wake_event.h"
#include "transport/link/xdp/interface.h"

namespace ztcp::link::xdp {

class HostTables {
 public:
  struct Config {
    InterfaceFacts interface;
    IpAddress own;
    std::size_t lanes = 1;
    std::uint32_t program_id = 0;  // 0: the link is not by an XDP program.
    std::uint16_t mtu_bytes = 1500;
    std::uint32_t queues = 1;  // With a socket; 0: the link is not by the interface's queues.
    const char* kind = "xdp";  // The link's name in the log.
  };
  struct Answer {
    IpAddress destination;
    MacAddress mac;  // The next hop's.
  };

  // Logs why `own` is no address of the interface.
  static Result<std::unique_ptr<HostTables>> open(const Config& config);
  ~HostTables();
  HostTables(const HostTables&) = delete;
  HostTables& operator=(const HostTables&) = delete;

  // --- The lane's thread -------------------------------------------------------------------------
  void ask(std::size_t lane, IpAddress destination);
  bool has_answer(std::size_t lane) const {
    return lanes_[lane].has_answer.load(std::memory_order_relaxed);
  }
  std::optional<Answer> take_answer(std::size_t lane);

  // --- Any thread --------------------------------------------------------------------------------
  LinkState state() const { return state_.load(std::memory_order_relaxed); }

 private:
  struct Lane {
    std::atomic<bool> has_answer{false};
    std::vector<Answer> answers;
  };
  // A destination whose neighbour the kernel is resolving.
  struct Question {
    std::size_t lane = 0;
    IpAddress destination;
    int tries_left = 0;
  };

  HostTables(const Config& config, netlink::Session kernel, Fd resolver,
             std::shared_ptr<WakeEvent> wake)
      : config_(config),
        kernel_(std::move(kernel)),
        resolver_(std::move(resolver)),
        wake_(std::move(wake)),
        lanes_(config.lanes) {}
  void run();
  void take_questions();
  void answer_questions();
  void look_at_interface();
  void lose(LinkState state, const std::string& what);
  std::optional<IpAddress> next_hop(IpAddress destination);
  struct Neighbour {
    MacAddress mac;
    bool is_known = false;
    bool is_confirmed = false;
  };
  Neighbour neighbour(IpAddress next_hop);
  void make_kernel_resolve(IpAddress destination);

  const Config config_;
  netlink::Session kernel_;
  const Fd resolver_;  // For the datagrams.
  const std::shared_ptr<WakeEvent> wake_;
  // The thread's own:
  std::vector<Question> open_;
  std::uint32_t told_mtu_bytes_ = 0;
  std::uint32_t told_queues_ = 0;
  std::vector<IpAddress> told_unreachable_;

  std::atomic<LinkState> state_{LinkState::kDown};
  std::atomic<bool> ends_{false};
  std::mutex mutex_;  // Held for a few instructions.
  std::vector<Question> questions_;
  std::vector<Lane> lanes_;
  std::thread thread_;
};

}  // namespace ztcp::link::xdp
