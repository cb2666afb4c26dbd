// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/dpdk_port.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <rte_bus.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "core/frame.h"
#include "core/log.h"
#include "core/nic_families.h"
#include "core/process_mark.h"
#include "transport/link/dpdk_host.h"
#include "transport/link/eal.h"
#include "transport/link/frame_overhead.h"
#include "transport/link/mbuf_layout.h"

namespace ztcp::link {
namespace {

constexpr std::uint32_t kPoolCache = 256;
constexpr std::uint32_t kRxBurst = 64;
constexpr std::uint32_t kMostRxFrames = 8192;  // For a queue that has the memory of several.

rte_mempool* create_pool(const char* kind, std::uint32_t count, std::uint32_t cached,
                         std::uint16_t private_bytes, std::uint32_t room_bytes, int node) {
  // Names are process-wide, and a port can be reopened before its old pools are freed.
  static std::atomic<unsigned> serial{0};
  const std::string name = fmt::format("ztcp-{}-{}", kind, serial.fetch_add(1));
  // DPDK refuses a cache above two thirds of the pool.
  return rte_pktmbuf_pool_create(name.c_str(), count, std::min(cached, count / 2), private_bytes,
                                 static_cast<std::uint16_t>(room_bytes + RTE_PKTMBUF_HEADROOM),
                                 node);
}

std::uint32_t round_up(std::uint32_t value, std::uint32_t to) { return (value + to - 1) / to * to; }

// One frame fits one buffer. NICs use only whole units of a buffer: KiB (ixgbe, e1000), or 128
// bytes (i40e, iavf, ice). Drivers allow for two VLAN tags and the FCS.
std::uint32_t frame_room_bytes(std::uint16_t mtu_bytes) {
  constexpr std::uint32_t kMostEthernetBytes = 26;
  return std::min<std::uint32_t>(std::max(round_up(mtu_bytes + kMostEthernetBytes, 1024), 2048U),
                                 UINT16_MAX - RTE_PKTMBUF_HEADROOM);
}

bool spreads_untold(std::string_view driver) {
  const NicFamily* known = family_of_dpdk_driver(driver);
  return known != nullptr && known->spreads_untold;
}

// For a device that was attached and has no port to close.
void detach(const std::string& device) {
  rte_devargs parsed{};
  if (rte_devargs_parse(&parsed, device.c_str()) == 0)
    rte_eal_hotplug_remove(rte_bus_name(parsed.bus), device.c_str());
  rte_devargs_reset(&parsed);
}

}  // namespace

Port::Port(PortConfig config, std::uint16_t id) : config_(std::move(config)), id_(id) {}

Port::Port(Port&& other) noexcept
    : config_(std::move(other.config_)),
      id_(std::exchange(other.id_, kNoPort)),
      filters_vlans_(other.filters_vlans_),
      rx_ring_(other.rx_ring_),
      tx_ring_(other.tx_ring_),
      abilities_(std::move(other.abilities_)),
      pools_(std::exchange(other.pools_, {})),
      node_(other.node_) {}

Port::~Port() {
  // A forked child inherits the object, but neither the device nor the memory.
  if (in_forked_child()) return;
  give_back_device();
  if (dpdk_panicked()) return;
  free_pools();
}

void Port::give_back_device() {
  if (id_ == kNoPort) return;
  control(config_, [id = std::exchange(id_, kNoPort)] {
    rte_eth_dev_info info{};
    const bool known = rte_eth_dev_info_get(id, &info) == 0;
    rte_eth_dev_stop(id);
    rte_eth_dev_close(id);
    if (known && info.device != nullptr) rte_dev_remove(info.device);
  });
}

template <class Task>
bool Port::control(const PortConfig& config, const Task& task) {
  if (config.driver_copies) return run_on_dpdk_thread(task);
  if (dpdk_panicked()) return false;
  task();
  return true;
}

Result<Port> Port::open(const PortConfig& config) {
  std::optional<Result<Port>> attached;
  control(config, [&] { attached.emplace(attach(config)); });
  if (!attached) return fail(Errc::kSystem, "rte_eal_alarm_set");
  if (!*attached) return std::move(*attached);
  Port& port = **attached;
  if (config.steering) ZTCP_CHECK(mlx5::isolate(port.flow_port()));
  ZTCP_CHECK(port.configure());
  ZTCP_CHECK(port.size_rings());
  ZTCP_CHECK(port.create_pools());
  ZTCP_CHECK(port.set_up_queues());
  return std::move(*attached);
}

Result<Port> Port::attach(const PortConfig& config) {
  // rte_dev_probe() has 127 bytes to tell other processes of the device, and since DPDK 24.11
  // rejects longer names: the path of a socket may be that long.
  const bool is_virtual = !config.arguments.empty();
  const std::string probed =
      config.pci_options.empty() ? config.device : config.device + "," + config.pci_options;
  const int rc = is_virtual ? rte_vdev_init(config.device.c_str(), config.arguments.c_str())
                            : rte_dev_probe(probed.c_str());
  if (rc != 0)
    return fail(rc == -EEXIST || rc == -EBUSY ? Errc::kBusy : Errc::kNoDevice,
                is_virtual ? "rte_vdev_init" : "rte_dev_probe", rc < 0 ? -rc : rte_errno);
  std::uint16_t id = kNoPort;
  if (rte_eth_dev_get_port_by_name(config.device.c_str(), &id) != 0) {
    detach(config.device);
    return fail(Errc::kNoDevice, "rte_eth_dev_get_port_by_name", ENODEV);
  }
  return Port(config, id);
}

Status Port::configure() {
  rte_eth_dev_info info{};
  if (const int rc = rte_eth_dev_info_get(id_, &info); rc != 0)
    return fail(Errc::kSystem, "rte_eth_dev_info_get", -rc);
  rte_ether_addr mac{};
  rte_eth_macaddr_get(id_, &mac);
  std::copy_n(mac.addr_bytes, abilities_.mac.bytes.size(), abilities_.mac.bytes.begin());
  abilities_.driver = info.driver_name;

  rte_eth_conf conf{};
  const auto tx = [&](std::uint64_t bit) {
    if ((info.tx_offload_capa & bit) == 0) return false;
    conf.txmode.offloads |= bit;
    return true;
  };
  const auto rx = [&](std::uint64_t bit) {
    if ((info.rx_offload_capa & bit) == 0) return false;
    conf.rxmode.offloads |= bit;
    return true;
  };
  abilities_.chained_buffers = tx(RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
  abilities_.tx_tcp_checksum = tx(RTE_ETH_TX_OFFLOAD_TCP_CKSUM);
  abilities_.tx_ipv4_checksum = tx(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM);
  abilities_.tcp_segmentation =
      abilities_.chained_buffers && abilities_.tx_tcp_checksum && tx(RTE_ETH_TX_OFFLOAD_TCP_TSO);
  abilities_.rx_checksum = rx(RTE_ETH_RX_OFFLOAD_TCP_CKSUM);
  rx(RTE_ETH_RX_OFFLOAD_IPV4_CKSUM);
  rx(RTE_ETH_RX_OFFLOAD_SCATTER);
  // virtio, for example, drops every tag that it was not told to accept.
  filters_vlans_ = config_.vlan_id != 0 && rx(RTE_ETH_RX_OFFLOAD_VLAN_FILTER);
  // 0 in the driver's limits means it has none.
  const auto limit = [](std::uint16_t stated) -> std::uint16_t {
    return stated == 0 ? std::uint16_t{UINT16_MAX} : stated;
  };
  abilities_.max_segments = limit(info.tx_desc_lim.nb_mtu_seg_max);
  abilities_.max_super_segments = limit(info.tx_desc_lim.nb_seg_max);
  if (const NicFamily* known = family_of_dpdk_driver(abilities_.driver); known != nullptr) {
    abilities_.max_super_segments =
        std::min(abilities_.max_super_segments, known->most_super_segments);
    if (known->dropping_ring_frames != 0) {
      config_.drops_at_full_ring = true;
      config_.tx_descriptors = known->dropping_ring_frames;
    }
  }
  if (abilities_.tcp_segmentation)
    abilities_.max_super_segment_bytes =
        super_segment_room(abilities_.max_super_segments, copy_room_bytes());

  // memif has no MTU; ethdev would only compare ours with a constant.
  if (!config_.driver_copies) {
    if (config_.mtu_bytes > info.max_mtu) {
      log::warn(
          "{} ({}) carries an MTU of {} at most, the fabric says {}; set mtu_bytes = {} for the "
          "NICs of every host",
          config_.device, abilities_.driver, info.max_mtu, config_.mtu_bytes, info.max_mtu);
      return fail(Errc::kBadConfig, "mtu");
    }
    conf.rxmode.mtu = config_.mtu_bytes;
  }
  const std::uint64_t wanted = config_.is_ipv6 ? RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_TCP
                                               : RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_TCP;
  const std::uint64_t spread_by = info.flow_type_rss_offloads & wanted;
  ZTCP_CHECK(limit_queues(std::min(info.max_rx_queues, info.max_tx_queues),
                          spread_by != 0 || spreads_untold(abilities_.driver)));
  if (config_.queues > 1 && spread_by != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf = spread_by;
  }
  // No receive interrupts: no thread waits for one. If requested and never armed, they would keep
  // Intel's NICs (i40e, iavf) from reporting fewer frames than fill a cache line of descriptors.
  if (const int rc = rte_eth_dev_configure(id_, config_.queues, config_.queues, &conf); rc != 0)
    return fail(Errc::kSystem, "rte_eth_dev_configure", -rc);

  rte_eth_link link{};
  if (rte_eth_link_get_nowait(id_, &link) == 0 && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
    abilities_.speed_mbps = link.link_speed;
  return {};
}

Status Port::limit_queues(std::uint16_t most, bool spreads) {
  if (config_.queues == 1) return {};
  if (config_.fewer_queues_will_do) {
    const std::uint32_t all_frames = config_.queues * config_.rx_frames;
    config_.queues = spreads ? std::min(config_.queues, most) : std::uint16_t{1};
    config_.rx_frames = std::min(all_frames / config_.queues, kMostRxFrames);
    return {};
  }
  if (config_.queues <= most) return {};
  log::warn(
      "{} ({}) has {} queues at most, the fabric says {}; write queues = {} for this NIC, or "
      "queues = \"auto\"",
      config_.device, abilities_.driver, most, config_.queues, most);
  return fail(Errc::kBadConfig, "queues");
}

// Some drivers report it only once they are started, and some report hash types that were not
// requested. A rule of steering spreads by itself, whatever the port reports.
std::shared_ptr<const wire::ReceiveSpread> Port::read_spread() const {
  rte_eth_dev_info info{};
  if (config_.queues == 1 || config_.steering || rte_eth_dev_info_get(id_, &info) != 0 ||
      info.reta_size == 0)
    return nullptr;
  auto spread = std::make_shared<wire::ReceiveSpread>();
  std::array<std::uint8_t, UINT8_MAX> key{};
  rte_eth_rss_conf hash{};
  hash.rss_key = key.data();
  hash.rss_key_len = info.hash_key_size != 0 ? info.hash_key_size : std::uint8_t{40};
  if (rte_eth_dev_rss_hash_conf_get(id_, &hash) != 0) return nullptr;
  for (const std::uint8_t byte :
       std::span(key).first(std::min<std::size_t>(hash.rss_key_len, key.size())))
    spread->key.push_back(std::byte{byte});
  const std::uint64_t by_ports =
      config_.is_ipv6 ? RTE_ETH_RSS_NONFRAG_IPV6_TCP : RTE_ETH_RSS_NONFRAG_IPV4_TCP;
  spread->hashes_ports = (hash.rss_hf & by_ports) != 0;

  std::vector<rte_eth_rss_reta_entry64> groups((info.reta_size + RTE_ETH_RETA_GROUP_SIZE - 1U) /
                                               RTE_ETH_RETA_GROUP_SIZE);
  for (rte_eth_rss_reta_entry64& group : groups) group.mask = UINT64_MAX;
  if (rte_eth_dev_rss_reta_query(id_, groups.data(), info.reta_size) != 0) return nullptr;
  for (std::uint16_t i = 0; i < info.reta_size; ++i)
    spread->table.push_back(groups[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE]);
  return spread->is_complete(config_.is_ipv6) ? spread : nullptr;
}

std::uint32_t Port::copy_room_bytes() const {
  return std::max<std::uint32_t>(
      frame_room_bytes(config_.mtu_bytes),
      TxFrame::kHeaderCapacity + config_.mtu_bytes + kFrameOverheadBytes);
}

Status Port::create_pools() {
  node_ = config_.numa_node < 0 ? SOCKET_ID_ANY : config_.numa_node;
  if (create_pools_on(node_)) return {};
  if (node_ != SOCKET_ID_ANY) {
    node_ = SOCKET_ID_ANY;
    if (create_pools_on(node_)) {
      log::warn(
          "{}: no memory for its frames on NUMA node {}, they lie on another: slower; does this "
          "machine have that node, and pages on it? ztcp_setup --check tells",
          config_.device, config_.numa_node);
      return {};
    }
  }
  const int why = rte_errno;
  if (rx_ring_surplus() == 0 && tx_ring_surplus() == 0)
    return fail(Errc::kOutOfMemory, "rte_pktmbuf_pool_create", why);
  log::warn(
      "{} ({}) has rings of {} descriptors to receive and {} to send, where {} and {} are asked "
      "for: no memory for that many frames; pages of 1 GiB leave room for them: "
      "ztcp_setup --pages 1G",
      config_.device, abilities_.driver, rx_ring_, tx_ring_, config_.rx_descriptors,
      config_.tx_descriptors);
  return fail(Errc::kBadConfig, "rings", why);
}

// Some drivers have rings of one size only (gve).
Status Port::size_rings() {
  rx_ring_ = config_.rx_descriptors;
  tx_ring_ = config_.tx_descriptors;
  if (const int rc = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx_ring_, &tx_ring_); rc != 0)
    return fail(Errc::kSystem, "rte_eth_dev_adjust_nb_rx_tx_desc", -rc);
  return {};
}
std::uint32_t Port::rx_ring_surplus() const {
  return rx_ring_ - std::min(rx_ring_, config_.rx_descriptors);
}
std::uint32_t Port::tx_ring_surplus() const {
  return tx_ring_ - std::min(tx_ring_, config_.tx_descriptors);
}

bool Port::create_pools_on(int node) {
  for (std::uint16_t queue = 0; queue < config_.queues; ++queue) {
    pools_.push_back(create_queue_pools(node));
    const PortPools& pools = pools_.back();
    const bool complete = pools.rx != nullptr && pools.tx_header != nullptr &&
                          (config_.driver_copies || pools.tx_copy != nullptr);
    if (complete) continue;
    free_pools();
    return false;
  }
  return true;
}

PortPools Port::create_queue_pools(int node) {
  // Drivers free sent frames when their ring gets full: if all frames fit into the ring, none would
  // ever be freed.
  const std::uint32_t frames = config_.rx_frames + rx_ring_surplus();
  std::uint32_t headers = config_.tx_header_frames + tx_ring_surplus();
  std::uint32_t copies = 2U * config_.tx_descriptors + kPoolCache + tx_ring_surplus();
  std::uint32_t cached = kPoolCache;
  if (config_.drops_at_full_ring) {
    // A ring of n holds n - 1. No caches: a frame in one thread's cache is missing everywhere else.
    copies = (tx_ring_ - 1U) / 4;
    headers = tx_ring_ - 1U - copies;
    cached = 0;
  }
  const std::uint32_t rx_room =
      config_.rx_room_bytes != 0 ? config_.rx_room_bytes : frame_room_bytes(config_.mtu_bytes);
  // Less for a small pool, or no frame of it could ever be kept.
  const std::uint32_t rx_cached = std::min(kPoolCache, frames / 8);
  PortPools pools;
  pools.rx = create_pool("rx", frames, rx_cached, sizeof(RxPrivate), rx_room, node);
  pools.tx_header =
      create_pool("txh", headers, cached, sizeof(TxPrivate), config_.tx_header_room_bytes, node);
  if (!config_.driver_copies)
    pools.tx_copy = create_pool("txc", copies, cached, 0, copy_room_bytes(), node);
  // memif's ring is the peer's memory; a NIC's is filled with our buffers. Frames in one thread's
  // cache, at most 1.5 times its size, are unavailable to others; two threads may have one: the
  // poller, and a thread that now and then serves all queues of a NIC.
  const std::uint32_t needed = (config_.driver_copies ? 0U : rx_ring_) + 3 * rx_cached + kRxBurst;
  abilities_.spare_rx_frames = frames - std::min(frames, needed);
  abilities_.rx_frame_bytes =
      rx_room + RTE_PKTMBUF_HEADROOM + static_cast<std::uint32_t>(sizeof(rte_mbuf));
  return pools;
}

void Port::free_pools() {
  const int why = rte_errno;
  for (const PortPools& pools : pools_) {
    rte_mempool_free(pools.rx);
    rte_mempool_free(pools.tx_header);
    rte_mempool_free(pools.tx_copy);
  }
  pools_.clear();
  rte_errno = why;
}

Status Port::set_up_queues() {
  const auto socket = static_cast<unsigned>(node_);
  for (std::uint16_t queue = 0; queue < config_.queues; ++queue) {
    if (const int rc =
            rte_eth_rx_queue_setup(id_, queue, rx_ring_, socket, nullptr, pools_[queue].rx);
        rc != 0)
      return fail(Errc::kSystem, "rte_eth_rx_queue_setup", -rc);
    if (const int rc = rte_eth_tx_queue_setup(id_, queue, tx_ring_, socket, nullptr); rc != 0)
      return fail(Errc::kSystem, "rte_eth_tx_queue_setup", -rc);
  }
  return {};
}

Status Port::start() {
  int rc = -EIO;
  control(config_, [&] { rc = rte_eth_dev_start(id_); });
  if (rc != 0)
    return fail(config_.driver_copies ? Errc::kNoDevice : Errc::kSystem, "rte_eth_dev_start", -rc);
  if (config_.steering) return mlx5::steer(flow_port(), *config_.steering, config_.queues);
  if (config_.is_ipv6) admit_groups();
  return admit_vlan();
}

// Neighbours ask for this host's MAC in frames to a group. memif has no filter.
void Port::admit_groups() {
  const int rc = rte_eth_allmulticast_enable(id_);
  if (rc == 0 || config_.driver_copies) return;
  log::warn(
      "{} ({}) does not accept multicast frames ({}), so hosts that ask for its MAC address by "
      "neighbour discovery may get no answer: use IPv4 addresses on this network",
      config_.device, abilities_.driver, std::strerror(-rc));
}

// Only a started device keeps the filter.
Status Port::admit_vlan() {
  if (!filters_vlans_) return {};
  if (const int rc = rte_eth_dev_vlan_filter(id_, config_.vlan_id, 1); rc != 0)
    return fail(Errc::kSystem, "rte_eth_dev_vlan_filter", -rc);
  return {};
}

void Port::stop() {
  control(config_, [this] { rte_eth_dev_stop(id_); });
}

}  // namespace ztcp::link
