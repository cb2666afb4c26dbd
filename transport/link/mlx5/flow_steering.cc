// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/mlx5/flow_steering.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <endian.h>
#include <numeric>
#include <vector>

#include <rte_errno.h>
#include <rte_ethdev.h>

#include "core/log.h"
#include "transport/link/mlx5/port_prefixes.h"

namespace ztcp::link::mlx5 {
namespace {

tl::unexpected<Error> refuse(const FlowPort& port, const char* where, const rte_flow_error& error) {
  const int why = rte_errno;
  log::warn(
      "mlx5 {}: {} failed: {} ({}); it needs CAP_NET_RAW, and a NIC in Ethernet mode whose "
      "firmware lets this function steer frames",
      port.name, where, error.message != nullptr ? error.message : "no reason given",
      std::strerror(why));
  return fail(Errc::kSystem, where, why);
}

// The items of a rule. They refer to each other, so that it stays where it is.
class Pattern {
 public:
  Pattern(IpAddress own, PortPrefix ports) {
    items_[0].type = RTE_FLOW_ITEM_TYPE_ETH;
    if (own.is_v4())
      match_v4(own.v4());
    else
      match_v6(own);
    tcp_.hdr.dst_port = htobe16(ports.port);
    tcp_mask_.hdr.dst_port = htobe16(ports.mask);
    items_[2] = {RTE_FLOW_ITEM_TYPE_TCP, &tcp_, nullptr, &tcp_mask_};
    items_[3].type = RTE_FLOW_ITEM_TYPE_END;
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  const rte_flow_item* items() const { return items_.data(); }

 private:
  void match_v4(Ipv4Address own) {
    v4_.hdr.dst_addr = htobe32(own.value);
    v4_mask_.hdr.dst_addr = UINT32_MAX;
    items_[1] = {RTE_FLOW_ITEM_TYPE_IPV4, &v4_, nullptr, &v4_mask_};
  }
  void match_v6(IpAddress own) {
    const std::array<std::uint64_t, 2> words{htobe64(own.high), htobe64(own.low)};
    std::memcpy(&v6_.hdr.dst_addr, words.data(), sizeof(words));
    std::memset(&v6_mask_.hdr.dst_addr, 0xff, sizeof(words));
    items_[1] = {RTE_FLOW_ITEM_TYPE_IPV6, &v6_, nullptr, &v6_mask_};
  }

  rte_flow_item_ipv4 v4_{};
  rte_flow_item_ipv4 v4_mask_{};
  rte_flow_item_ipv6 v6_{};
  rte_flow_item_ipv6 v6_mask_{};
  rte_flow_item_tcp tcp_{};
  rte_flow_item_tcp tcp_mask_{};
  std::array<rte_flow_item, 4> items_{};
};

}  // namespace

Status isolate(const FlowPort& port) {
  rte_flow_error error{};
  if (port.calls.isolate(port.id, 1, &error) != 0) return refuse(port, "rte_flow_isolate", error);
  return {};
}

Status steer(const FlowPort& port, const xdp::Steering& wanted, std::uint16_t queues) {
  std::vector<std::uint16_t> all(queues);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  rte_flow_action_rss spread{};
  spread.types =
      wanted.address.is_v4() ? RTE_ETH_RSS_NONFRAG_IPV4_TCP : RTE_ETH_RSS_NONFRAG_IPV6_TCP;
  spread.queue = all.data();
  spread.queue_num = queues;
  const rte_flow_action_queue only{.index = 0};
  std::array<rte_flow_action, 2> actions{};
  actions[0] = queues > 1 ? rte_flow_action{RTE_FLOW_ACTION_TYPE_RSS, &spread}
                          : rte_flow_action{RTE_FLOW_ACTION_TYPE_QUEUE, &only};
  actions[1].type = RTE_FLOW_ACTION_TYPE_END;
  rte_flow_attr attributes{};
  attributes.ingress = 1;

  std::vector<PortPrefix> ports = prefixes_of(wanted.first_port, wanted.last_port);
  ports.push_back({wanted.listen_port, UINT16_MAX});
  for (const PortPrefix& prefix : ports) {
    const Pattern pattern(wanted.address, prefix);
    rte_flow_error error{};
    if (port.calls.create(port.id, &attributes, pattern.items(), actions.data(), &error) == nullptr)
      return refuse(port, "rte_flow_create", error);
  }
  return {};
}

}  // namespace ztcp::link::mlx5
