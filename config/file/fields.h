// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Maps keys to members: one list, used by the reader and by the writer, so that they cannot drift
// apart. A test compares it with schema.toml.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "config/settings.h"

namespace ztcp::config {

// The enumerators' names in order.
inline constexpr std::array<std::string_view, 7> kNicDriverNames{"pci",  "memif",  "tap",  "xdp",
                                                                 "mlx5", "socket", "verbs"};
inline constexpr std::array<std::string_view, 3> kMemifRoleNames{"server", "client", "mesh"};
inline constexpr std::array<std::string_view, 3> kHostClassNames{"iommu", "no-iommu",
                                                                 "unprivileged"};
inline constexpr std::array<std::string_view, 3> kPollerModeNames{"auto", "dedicated", "shared"};
inline constexpr std::array<std::string_view, 3> kOnOffNames{"auto", "on", "off"};
inline constexpr std::array<std::string_view, 2> kEcnNames{"on", "off"};
inline constexpr std::array<std::string_view, 3> kCollnetWireNames{"f32", "bf16", "fp8"};

constexpr std::span<const std::string_view> names_of(NicDriver) { return kNicDriverNames; }
constexpr std::span<const std::string_view> names_of(MemifRole) { return kMemifRoleNames; }
constexpr std::span<const std::string_view> names_of(HostClass) { return kHostClassNames; }
constexpr std::span<const std::string_view> names_of(PollerMode) { return kPollerModeNames; }
constexpr std::span<const std::string_view> names_of(OnOff) { return kOnOffNames; }
constexpr std::span<const std::string_view> names_of(Ecn) { return kEcnNames; }
constexpr std::span<const std::string_view> names_of(CollnetWire) { return kCollnetWireNames; }
constexpr std::span<const std::string_view> names_of(CongestionControl) {
  return kCongestionControlNames;
}

template <class Enum>
constexpr std::string_view name_of(Enum value) {
  return names_of(value)[static_cast<std::size_t>(value)];
}

// Each calls visit(key, member) in the order of the file. `Object` is const for the writer.
template <class Object, class Visit>
void visit_top(Object& fabric, Visit&& visit) {
  visit("schema", fabric.schema);
  visit("name", fabric.name);
  visit("run_dir", fabric.run_dir);
}

template <class Object, class Visit>
void visit_host(Object& host, Visit&& visit) {
  visit("machine_id", host.machine_id);
  visit("hostname", host.hostname);
  visit("class", host.host_class);
  visit("user", host.user);
  visit("group", host.group);
}

template <class Object, class Visit>
void visit_hugepages(Object& hugepages, Visit&& visit) {
  visit("page_kib", hugepages.page_kib);
  visit("per_process_mib", hugepages.per_process_mib);
  visit("spare_mib", hugepages.spare_mib);
}

template <class Object, class Visit>
void visit_messages(Object& messages, Visit&& visit) {
  visit("listen_port", messages.listen_port);
  visit("flows", messages.flows);
  visit("multi_flow_threshold_kib", messages.multi_flow_threshold_kib);
  visit("eager_allowance_kib", messages.eager_allowance_kib);
  visit("max_chunk_kib", messages.max_chunk_kib);
  visit("handshake_timeout_ms", messages.handshake_timeout_ms);
  visit("redial_window_ms", messages.redial_window_ms);
  visit("redial_attempt_ms", messages.redial_attempt_ms);
  visit("max_redials", messages.max_redials);
  visit("drain_timeout_ms", messages.drain_timeout_ms);
  visit("cluster_key", messages.cluster_key);
  visit("watch_interface", messages.watch_interface);
}

template <class Object, class Visit>
void visit_tcp(Object& tcp, Visit&& visit) {
  visit("rto_min_us", tcp.rto_min_us);
  visit("connect_timeout_ms", tcp.connect_timeout_ms);
  visit("user_timeout_ms", tcp.user_timeout_ms);
  visit("keepalive_idle_ms", tcp.keepalive_idle_ms);
  visit("keepalive_interval_ms", tcp.keepalive_interval_ms);
  visit("receive_window_kib", tcp.receive_window_kib);
  visit("max_connections", tcp.max_connections);
  visit("pacing", tcp.pacing);
  visit("reroute", tcp.reroute);
  visit("ecn", tcp.ecn);
  visit("congestion_control", tcp.congestion_control);
  visit("kernel_congestion_control", tcp.kernel_congestion_control);
}

template <class Object, class Visit>
void visit_poller(Object& poller, Visit&& visit) {
  visit("mode", poller.mode);
  visit("spin_us", poller.spin_us);
  visit("max_sleep_us", poller.max_sleep_us);
  visit("cpus", poller.cpus);
  visit("workers", poller.workers);
}

template <class Object, class Visit>
void visit_statistics(Object& statistics, Visit&& visit) {
  visit("page", statistics.page);
}

template <class Object, class Visit>
void visit_monitor(Object& monitor, Visit&& visit) {
  visit("enabled", monitor.enabled);
  visit("slow_factor", monitor.slow_factor);
  visit("slow_min_ms", monitor.slow_min_ms);
  visit("stalled_ms", monitor.stalled_ms);
}

template <class Object, class Visit>
void visit_collnet(Object& collnet, Visit&& visit) {
  visit("enabled", collnet.enabled);
  visit("wire", collnet.wire);
}

template <class Object, class Visit>
void visit_nic(Object& nic, Visit&& visit) {
  visit("name", nic.name);
  visit("driver", nic.driver);
  visit("address", nic.address);
  visit("mac", nic.mac);
  visit("gateway", nic.gateway);
  visit("vlan_id", nic.vlan_id);
  visit("vlan_priority", nic.vlan_priority);
  visit("dscp", nic.dscp);
  visit("mtu_bytes", nic.mtu_bytes);
  visit("numa_node", nic.numa_node);
  visit("speed_mbps", nic.speed_mbps);
  visit("gpu_pci", nic.gpu_pci);
  visit("gpu_uuid", nic.gpu_uuid);
  visit("rail", nic.rail);
  visit("plane", nic.plane);
  visit("pci", nic.pci);
  visit("kernel_driver", nic.kernel_driver);
  visit("memif_socket", nic.memif_socket);
  visit("memif_role", nic.memif_role);
  visit("memif_id", nic.memif_id);
  visit("queues", nic.queues);
  visit("nccl_devices", nic.nccl_devices);
  visit("processes", nic.processes);
  visit("tap_interface", nic.tap_interface);
  visit("interface", nic.interface);
  visit("first_port", nic.first_port);
  visit("last_port", nic.last_port);
  visit("device", nic.device);
  visit("device_port", nic.device_port);
  visit("gid_index", nic.gid_index);
  visit("traffic_class", nic.traffic_class);
  visit("service_level", nic.service_level);
  visit("ack_timeout", nic.ack_timeout);
  visit("retries", nic.retries);
  visit("rnr_retries", nic.rnr_retries);
  visit("pkey_index", nic.pkey_index);
  visit("queue_pairs", nic.queue_pairs);
  visit("relaxed_ordering", nic.relaxed_ordering);
  visit("adaptive_routing_threshold_bytes", nic.adaptive_routing_threshold_bytes);
  visit("merge", nic.merge);
}

// Calls section(name, walk) for each [section]; walk(visit) visits its keys.
template <class Object, class OnSection>
void for_each_section(Object& fabric, OnSection&& section) {
  section("host", [&](auto&& visit) { visit_host(fabric.host, visit); });
  section("hugepages", [&](auto&& visit) { visit_hugepages(fabric.hugepages, visit); });
  section("messages", [&](auto&& visit) { visit_messages(fabric.messages, visit); });
  section("tcp", [&](auto&& visit) { visit_tcp(fabric.tcp, visit); });
  section("poller", [&](auto&& visit) { visit_poller(fabric.poller, visit); });
  section("statistics", [&](auto&& visit) { visit_statistics(fabric.statistics, visit); });
  section("monitor", [&](auto&& visit) { visit_monitor(fabric.monitor, visit); });
  section("collnet", [&](auto&& visit) { visit_collnet(fabric.collnet, visit); });
}

}  // namespace ztcp::config
