// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp_link.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/counted.h"
#include "core/log.h"
#include "hugepage/xdp_memory.h"
#include "transport/link/host_address_link.h"
#include "transport/link/xdp/bpf.h"
#include "transport/link/xdp/locked_memory.h"
#include "transport/link/xdp/mode.h"
#include "transport/link/xdp_lane.h"

namespace ztcp::link {
namespace {

using hugepage::kXdpTxChunks;
using hugepage::XdpChunks;
using xdp::Attachment;
using xdp::HostTables;
using xdp::Socket;

tl::unexpected<Error> refuse(const XdpConfig& config, Errc code, const std::string& why) {
  log::warn("xdp {}: {}", config.interface, why);
  return fail(code, "AF_XDP");
}

std::string advice_for(const Error& error, const XdpConfig& config, std::uint32_t queue) {
  switch (error.sys_errno) {
    case EAFNOSUPPORT:
      return "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)";
    case EPERM:
    case EACCES:
      return "an AF_XDP socket needs CAP_NET_RAW";
    case ENOBUFS:
    case ENOMEM:
      return fmt::format(
          "a queue locks {} MiB of memory, which counts against the limit of all processes of this "
          "user: raise it (ulimit -l)",
          hugepage::xdp_memory_bytes(config.mtu_bytes, 1, 1, config.rx_frames) >> 20U);
    case EBUSY:
      return fmt::format("another AF_XDP socket has queue {}: end its process", queue);
    case EINVAL:
    case EOPNOTSUPP:
      if (XdpChunks(config.mtu_bytes).pieces > 1)
        return fmt::format(
            "frames of MTU {} take several chunks, which needs Linux 6.6 and a driver for it: "
            "lower mtu_bytes and the interface's MTU to {} or less",
            config.mtu_bytes, hugepage::xdp_largest_mtu(1));
      break;
    default:
      break;
  }
  return "see dmesg";
}

Result<std::unique_ptr<Socket>> open_socket(const XdpPort& port, std::uint32_t queue, bool sends) {
  const XdpChunks layout(port.config.mtu_bytes);
  const xdp::SocketConfig wanted{.interface_index = port.interface.index,
                                 .queue = queue,
                                 .chunk_bytes = layout.chunk_bytes,
                                 .rx_chunks = port.config.rx_frames,
                                 .tx_chunks = sends ? kXdpTxChunks : 0,
                                 .several_pieces = layout.pieces > 1,
                                 .may_be_zero_copy = port.attachment.is_native};
  auto socket = Socket::open(wanted);
  // The kernel frees the queue a little after the socket of a process that has ended.
  for (int tries = 0; tries < 100 && !socket && socket.error().sys_errno == EBUSY; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    socket = Socket::open(wanted);
  }
  if (socket) return socket;
  log::warn("xdp {}: queue {}: {} failed: {}; {}", port.config.interface, queue,
            socket.error().where, std::strerror(socket.error().sys_errno),
            advice_for(socket.error(), port.config, queue));
  return socket;
}

// "xdp eth0, 4 queues, native mode, copy mode (veth has no zero copy)"; "slot 1 of 0-3 (queues 1,
// 5), " after the name where processes share the interface.
std::string describe(const XdpPort& port, const std::vector<std::uint32_t>& queues,
                     const Socket& socket) {
  const std::string& name = port.config.interface;
  const NicSlot& slot = port.config.slot;
  const std::string place = slot.is_shared()
                                ? fmt::format("slot {} of 0-{} (queues {}), ", slot.index,
                                              slot.count - 1, fmt::join(queues, ", "))
                                : std::string();
  return fmt::format("xdp {}, {}{}", name, place,
                     xdp::to_text({.queues = static_cast<std::uint32_t>(queues.size()),
                                   .driver = xdp::driver_name(name),
                                   .support = xdp::read_driver_support(port.interface.index),
                                   .mtu_bytes = port.config.mtu_bytes,
                                   .is_native = port.attachment.is_native,
                                   .native_errno = port.attachment.native_errno,
                                   .is_zero_copy = socket.is_zero_copy(),
                                   .zero_copy_errno = socket.zero_copy_errno()}));
}

}  // namespace

Result<std::vector<std::unique_ptr<Link>>> open_xdp(const XdpConfig& config) {
  auto port = std::make_shared<XdpPort>();
  port->config = config;
  port->interface = ZTCP_TRY(xdp::find_interface("xdp", config.interface, config.mtu_bytes));
  const NicSlot& slot = config.slot;
  const bool is_pinned = xdp::is_pinned(config.pin_folder);
  if (slot.is_shared() && !is_pinned)
    return refuse(config, Errc::kBadConfig,
                  "processes share a program that set-up pinned, which outlives each of them, and "
                  "there is none; run ztcp_setup, or write processes = 1");
  const xdp::Steering steering{.address = config.address,
                               .listen_port = config.listen_port,
                               .first_port = config.first_port,
                               .last_port = config.last_port,
                               .processes = slot.count};
  // Before the queues are counted: virtio_net has more of them with a program.
  if (!is_pinned)
    port->attachment = ZTCP_TRY(xdp::attach(port->interface, steering, config.may_be_native));
  const std::uint32_t queues = xdp::receive_queues(config.interface);
  if (queues > xdp::kMostQueues)
    return refuse(config, Errc::kBadConfig,
                  fmt::format("it has {} queues, at most {} can be used; ethtool -L {} makes it "
                              "fewer",
                              queues, xdp::kMostQueues, config.interface));
  if (queues < slot.count)
    return refuse(config, Errc::kBadConfig,
                  fmt::format("it has {}, fewer than processes = {} in the config; run: ethtool -L "
                              "{} combined {}, or lower processes",
                              counted(queues, "queue"), slot.count, config.interface, slot.count));
  if (is_pinned)
    port->attachment =
        ZTCP_TRY(xdp::open_pinned_program(port->interface, steering, config.pin_folder));
  std::vector<std::uint32_t> own;
  for (std::uint32_t queue = slot.index; queue < queues; queue += slot.count) own.push_back(queue);
  const std::size_t lanes = std::clamp<std::size_t>(config.lanes, 1, own.size());
  if (const std::string why = xdp::locked_memory_shortage(
          hugepage::xdp_memory_bytes(config.mtu_bytes, own.size(), lanes, config.rx_frames));
      !why.empty())
    return refuse(config, Errc::kBadConfig,
                  fmt::format("{} {} {}", counted(own.size(), "queue"),
                              own.size() == 1 ? "locks" : "lock", why));
  port->tables = ZTCP_TRY(HostTables::open({.interface = port->interface,
                                            .own = config.address,
                                            .lanes = lanes,
                                            .program_id = port->attachment.program_id,
                                            .mtu_bytes = config.mtu_bytes,
                                            .queues = queues}));
  std::vector<std::vector<std::unique_ptr<Socket>>> sockets(lanes);
  // The first socket of each lane sends.
  for (std::size_t i = 0; i < own.size(); ++i)
    sockets[i % lanes].push_back(ZTCP_TRY(open_socket(*port, own[i], /*sends=*/i < lanes)));
  port->description = describe(*port, own, *sockets.front().front());
  // The last step: from now on the frames come here.
  for (const auto& lane : sockets)
    for (const auto& socket : lane)
      ZTCP_CHECK(xdp::put_socket(port->attachment.map, socket->queue(), socket->fd()));
  std::vector<std::unique_ptr<Link>> links;
  for (std::size_t lane = 0; lane < lanes; ++lane)
    links.push_back(std::make_unique<HostAddressLink>(
        std::make_unique<XdpLane>(port, std::move(sockets[lane]), lane, lanes), port->tables, lane,
        config.address));
  return links;
}

}  // namespace ztcp::link
