// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp_link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <linux/if_link.h>
#include <utility>

#include <fmt/format.h>

#include "core/log.h"
#include "transport/link/frame_overhead.h"
#include "transport/link/xdp/attachment.h"
#include "transport/link/xdp/bpf.h"
#include "transport/link/xdp/host_tables.h"
#include "transport/link/xdp/neighbour_answer.h"
#include "transport/link/xdp/socket.h"
#include "transport/wire/ip.h"

namespace ztcp::link {
namespace {

using xdp::Attachment;
using xdp::HostTables;
using xdp::InterfaceFacts;
using xdp::Socket;

constexpr std::uint32_t kLargestChunkBytes = 4096;
constexpr std::uint32_t kTxChunks = 1024;  // For each queue.
constexpr std::uint32_t kBurst = 32;
// A frame of the largest MTU (config/schema.toml) in chunks of a page.
constexpr std::size_t kMostPieces = 3;
static_assert(kMostPieces * (kLargestChunkBytes - xdp::kHeadroomBytes) >=
              9216 + kFrameOverheadBytes);

// Where frames of this MTU lie.
struct ChunkLayout {
  explicit ChunkLayout(std::uint16_t mtu_bytes) {
    const std::uint32_t frame_bytes = mtu_bytes + kFrameOverheadBytes;
    chunk_bytes = frame_bytes + xdp::kHeadroomBytes <= kLargestChunkBytes / 2
                      ? kLargestChunkBytes / 2
                      : kLargestChunkBytes;
    const std::uint32_t room_bytes = chunk_bytes - xdp::kHeadroomBytes;
    pieces = (frame_bytes + room_bytes - 1) / room_bytes;
  }
  std::uint32_t chunk_bytes = 0;
  std::uint32_t pieces = 0;  // The longest frame's.
};

// Shared by the links of an interface's queues; the last one takes the program off.
struct XdpPort {
  XdpConfig config;
  InterfaceFacts interface;
  Attachment attachment;
  std::unique_ptr<HostTables> tables;
  std::string description;
};

class XdpLink final : public Link {
 public:
  XdpLink(std::shared_ptr<XdpPort> port, std::vector<std::unique_ptr<Socket>> sockets,
          std::size_t lane, std::size_t lanes)
      : port_(std::move(port)),
        sockets_(std::move(sockets)),
        lane_(lane),
        layout_(port_->config.mtu_bytes),
        rx_chunks_(port_->config.rx_frames) {
    capabilities_.mtu_bytes = port_->config.mtu_bytes;
    capabilities_.mac = port_->interface.mac;
    capabilities_.shard = static_cast<std::uint8_t>(lane);
    capabilities_.shards = static_cast<std::uint8_t>(lanes);
    // Every queue can still receive a few bursts of the longest frames, even if all kept frames
    // are of one queue.
    const std::uint32_t spare = 4 * kBurst * layout_.pieces;
    capabilities_.max_kept_frames = (rx_chunks_ - spare) / layout_.pieces;
    capabilities_.max_kept_bytes = std::size_t{rx_chunks_ - spare} * layout_.chunk_bytes;
    frames_.resize(sockets_.size() * rx_chunks_);
    for (std::size_t i = 0; i < frames_.size(); ++i) frames_[i].socket = i / rx_chunks_;
    Socket& sender = *sockets_.front();
    for (std::uint32_t i = 0; i < kTxChunks; ++i)
      free_tx_.push_back(sender.first_tx_address() + std::uint64_t{i} * layout_.chunk_bytes);
  }

  const LinkCapabilities& capabilities() const override { return capabilities_; }
  const LinkCounters& counters() const override { return counters_; }
  std::string describe() const override { return port_->description; }
  LinkState state() override { return port_->tables->state(); }
  // Memory of the process is always copied.
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}

  std::size_t receive(std::span<RxFrame> frames) override;
  void release(std::span<RxFrame> frames) override;
  std::size_t transmit(std::span<const TxFrame> frames) override;

 private:
  // A received frame, by the number of its first chunk.
  struct Frame {
    std::size_t socket = 0;
    std::array<std::uint64_t, kMostPieces> addresses{};
    std::uint32_t pieces = 0;
    std::array<std::span<const std::byte>, kMostPieces - 1> more{};
  };

  std::size_t receive_from(std::size_t index, std::span<RxFrame> frames);
  bool take_frame(std::size_t index, std::uint32_t pieces, RxFrame& frame);
  void give_back(const Frame& frame);
  std::size_t receive_answers(std::span<RxFrame> frames);
  void reap_sent();
  void write_frame(const TxFrame& frame, std::uint32_t size);

  const std::shared_ptr<XdpPort> port_;
  const std::vector<std::unique_ptr<Socket>> sockets_;  // The first one sends.
  const std::size_t lane_;
  const ChunkLayout layout_;
  const std::uint32_t rx_chunks_;  // For each queue.
  std::vector<Frame> frames_;
  std::vector<std::uint64_t> free_tx_;
  std::size_t next_socket_ = 0;  // Where receive() begins: no queue starves another.
  xdp::NeighbourAnswers answers_;
  LinkCapabilities capabilities_;
  LinkCounters counters_;
};

std::size_t XdpLink::receive(std::span<RxFrame> frames) {
  // The kernel did not take all frames at the last call.
  if (!sockets_.front()->tx.is_drained()) [[unlikely]]
    sockets_.front()->wake_for_tx();
  std::size_t count = port_->tables->has_answer(lane_) ? receive_answers(frames) : 0;
  for (std::size_t i = 0; i < sockets_.size() && count < frames.size(); ++i) {
    const std::size_t index = (next_socket_ + i) % sockets_.size();
    count += receive_from(index, frames.subspan(count));
  }
  next_socket_ = (next_socket_ + 1) % sockets_.size();
  return count;
}

std::size_t XdpLink::receive_from(std::size_t index, std::span<RxFrame> frames) {
  Socket& socket = *sockets_[index];
  std::size_t count = 0;
  while (count < frames.size()) {
    std::uint32_t pieces = 1;
    const auto reach = [&] { return socket.rx.available(pieces) >= pieces; };
    while (reach() && (socket.rx.peek(pieces - 1).options & xdp::kContinues) != 0) ++pieces;
    if (!reach()) break;
    if (take_frame(index, pieces, frames[count])) ++count;
    socket.rx.take(pieces);
  }
  socket.fill.publish();  // The pieces of a frame that was dropped.
  socket.wake_for_fill();
  return count;
}

bool XdpLink::take_frame(std::size_t index, std::uint32_t pieces, RxFrame& frame) {
  Socket& socket = *sockets_[index];
  if (pieces > kMostPieces) {  // No frame of our MTU.
    for (std::uint32_t i = 0; i < pieces; ++i)
      socket.fill.put(socket.rx.peek(i).addr / layout_.chunk_bytes * layout_.chunk_bytes);
    return false;
  }
  const xdp_desc first = socket.rx.peek(0);
  Frame& taken = frames_[index * rx_chunks_ + first.addr / layout_.chunk_bytes];
  taken.pieces = pieces;
  std::size_t size = first.len;
  taken.addresses[0] = first.addr;
  for (std::uint32_t i = 1; i < pieces; ++i) {
    const xdp_desc piece = socket.rx.peek(i);
    taken.addresses[i] = piece.addr;
    taken.more[i - 1] = {socket.at(piece.addr), piece.len};
    size += piece.len;
  }
  frame = {};
  frame.handle = &taken;
  frame.head = {socket.at(first.addr), first.len};
  frame.more = std::span(taken.more).first(pieces - 1);
  frame.charge_bytes = pieces * layout_.chunk_bytes;
  counters_.rx_frames += 1;
  counters_.rx_bytes += size;
  return true;
}

void XdpLink::give_back(const Frame& frame) {
  Socket& socket = *sockets_[frame.socket];
  for (std::uint32_t i = 0; i < frame.pieces; ++i)
    socket.fill.put(frame.addresses[i] / layout_.chunk_bytes * layout_.chunk_bytes);
}

void XdpLink::release(std::span<RxFrame> frames) {
  for (RxFrame& frame : frames) {
    if (frame.kept || frame.handle == nullptr) continue;
    void* const handle = std::exchange(frame.handle, nullptr);
    if (!answers_.take_back(handle)) give_back(*static_cast<const Frame*>(handle));
  }
  for (const auto& socket : sockets_) socket->fill.publish();
}

std::size_t XdpLink::receive_answers(std::span<RxFrame> frames) {
  std::size_t count = 0;
  while (count < frames.size() && answers_.has_room()) {
    const auto answer = port_->tables->take_answer(lane_);
    if (!answer) break;
    frames[count++] = answers_.make({.own = port_->config.address,
                                     .own_mac = port_->interface.mac,
                                     .neighbour = answer->destination,
                                     .neighbour_mac = answer->mac});
  }
  return count;
}

void XdpLink::reap_sent() {
  auto& ring = sockets_.front()->completion;
  const std::uint32_t count = ring.available(kTxChunks);
  for (std::uint32_t i = 0; i < count; ++i) free_tx_.push_back(ring.peek(i));
  ring.take(count);
}

std::size_t XdpLink::transmit(std::span<const TxFrame> frames) {
  Socket& socket = *sockets_.front();
  std::size_t taken = 0;
  for (; taken < frames.size(); ++taken) {
    const TxFrame& frame = frames[taken];
    if (!xdp::is_tcp(frame)) {
      if (const auto wanted = xdp::asked_neighbour(frame, port_->config.address))
        port_->tables->ask(lane_, *wanted);
      continue;
    }
    const std::uint32_t size = frame.header_bytes + frame.payload_bytes;
    const std::uint32_t pieces = (size + layout_.chunk_bytes - 1) / layout_.chunk_bytes;
    if (pieces > layout_.pieces) {
      counters_.tx_dropped += 1;
      continue;
    }
    if (free_tx_.size() < pieces) reap_sent();
    if (free_tx_.size() < pieces || socket.tx.room(pieces) < pieces) break;
    write_frame(frame, size);
    counters_.tx_frames += 1;
    counters_.tx_bytes += size;
  }
  socket.tx.publish();
  if (!socket.tx.is_drained()) socket.wake_for_tx();
  if (taken == frames.size()) return taken;
  if (!is_up()) {
    counters_.tx_dropped += frames.size() - taken;
    return frames.size();
  }
  counters_.tx_ring_full += 1;
  return taken;
}

// Into as many chunks as it fills: there is room for them.
void XdpLink::write_frame(const TxFrame& frame, std::uint32_t size) {
  Socket& socket = *sockets_.front();
  std::uint64_t address = 0;
  std::uint32_t used = layout_.chunk_bytes;  // Bytes in the chunk at `address`.
  const auto close_chunk = [&](bool continues) {
    socket.tx.put({.addr = address, .len = used, .options = continues ? xdp::kContinues : 0U});
  };
  bool is_first = true;
  const auto append = [&](const std::byte* from, std::size_t count) {
    while (count > 0) {
      if (used == layout_.chunk_bytes) {
        if (!std::exchange(is_first, false)) close_chunk(true);
        address = free_tx_.back();
        free_tx_.pop_back();
        used = 0;
      }
      const std::size_t part = std::min<std::size_t>(count, layout_.chunk_bytes - used);
      std::memcpy(socket.at(address + used), from, part);
      used += static_cast<std::uint32_t>(part);
      from += part;
      count -= part;
    }
  };
  append(frame.header.data(), frame.header_bytes);
  for (std::size_t i = 0; i < frame.fragment_count; ++i)
    append(frame.fragments[i].data, frame.fragments[i].size_bytes);
  close_chunk(false);
  counters_.tx_copied_bytes += size - frame.header_bytes;
}

tl::unexpected<Error> refuse(const XdpConfig& config, Errc code, const std::string& why) {
  log::warn("xdp {}: {}", config.interface, why);
  return fail(code, "AF_XDP");
}

Result<InterfaceFacts> find_interface(const XdpConfig& config) {
  netlink::Session kernel = ZTCP_TRY(netlink::Session::open());
  const auto found = ZTCP_TRY(xdp::read_interface(kernel, config.interface));
  if (!found)
    return refuse(config, Errc::kBadConfig,
                  "no such interface in this network namespace; see ip link");
  if (const std::string why = ZTCP_TRY(xdp::obstacle_on(kernel, *found)); !why.empty())
    return refuse(config, Errc::kBadConfig, "it " + why + "; choose another interface");
  if (found->mtu_bytes < config.mtu_bytes)
    return refuse(
        config, Errc::kBadConfig,
        fmt::format("its MTU is {}, mtu_bytes = {} in the config; run: ip link set {} "
                    "mtu {}",
                    found->mtu_bytes, config.mtu_bytes, config.interface, config.mtu_bytes));
  return *found;
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
      return fmt::format("a queue locks {} MiB of memory: raise the limit (ulimit -l)",
                         (config.rx_frames + kTxChunks) *
                                 std::uint64_t{ChunkLayout(config.mtu_bytes).chunk_bytes} >>
                             20U);
    case EBUSY:
      return fmt::format("another AF_XDP socket has queue {}: end its process", queue);
    case EINVAL:
    case EOPNOTSUPP:
      if (ChunkLayout(config.mtu_bytes).pieces > 1)
        return fmt::format(
            "frames of MTU {} take several chunks, which needs Linux 6.6 and a driver for it: "
            "lower mtu_bytes and the interface's MTU to {} or less",
            config.mtu_bytes, kLargestChunkBytes - xdp::kHeadroomBytes - kFrameOverheadBytes);
      break;
    default:
      break;
  }
  return "see dmesg";
}

Result<std::unique_ptr<Socket>> open_socket(const XdpPort& port, std::uint32_t queue) {
  const ChunkLayout layout(port.config.mtu_bytes);
  auto socket = Socket::open({.interface_index = port.interface.index,
                              .queue = queue,
                              .chunk_bytes = layout.chunk_bytes,
                              .rx_chunks = port.config.rx_frames,
                              .tx_chunks = kTxChunks,
                              .several_pieces = layout.pieces > 1,
                              .may_be_zero_copy = port.attachment.is_native});
  if (socket) return socket;
  log::warn("xdp {}: queue {}: {} failed: {}; {}", port.config.interface, queue,
            socket.error().where, std::strerror(socket.error().sys_errno),
            advice_for(socket.error(), port.config, queue));
  return socket;
}

// "generic mode (native: Operation not supported)"
std::string mode_text(const Attachment& attachment) {
  if (attachment.is_native) return "native mode";
  if (attachment.native_errno == 0) return "generic mode";
  return fmt::format("generic mode (native: {})", std::strerror(attachment.native_errno));
}

// "xdp eth0, 4 queues, native mode, copy mode (zero copy: Operation not supported)"
std::string describe(const XdpPort& port, std::uint32_t queues, const Socket& socket) {
  const Attachment& attachment = port.attachment;
  std::string text =
      fmt::format("xdp {}, {} queue{}, ", port.config.interface, queues, queues == 1 ? "" : "s");
  text += mode_text(attachment);
  if (socket.is_zero_copy()) return text + ", zero copy";
  return text + fmt::format(", copy mode ({})", attachment.is_native
                                                    ? std::string("zero copy: ") +
                                                          std::strerror(socket.zero_copy_errno())
                                                    : "generic mode has no zero copy");
}

}  // namespace

Result<std::vector<std::unique_ptr<Link>>> open_xdp(const XdpConfig& config) {
  auto port = std::make_shared<XdpPort>();
  port->config = config;
  port->interface = ZTCP_TRY(find_interface(config));
  const std::uint32_t queues = xdp::receive_queues(config.interface);
  if (queues > xdp::kMostQueues)
    return refuse(config, Errc::kBadConfig,
                  fmt::format("it has {} queues, at most {} can be used; ethtool -L {} makes it "
                              "fewer",
                              queues, xdp::kMostQueues, config.interface));
  const xdp::Steering steering{.address = config.address,
                               .listen_port = config.listen_port,
                               .first_port = config.first_port,
                               .last_port = config.last_port};
  port->attachment =
      ZTCP_TRY(xdp::is_pinned(config.pin_folder)
                   ? xdp::open_pinned_program(port->interface, steering, config.pin_folder)
                   : xdp::attach(port->interface, steering, config.may_be_native));
  const std::size_t lanes = std::clamp<std::size_t>(config.lanes, 1, queues);
  auto tables = HostTables::open({.interface = port->interface,
                                  .own = config.address,
                                  .lanes = lanes,
                                  .program_id = port->attachment.program_id,
                                  .mtu_bytes = config.mtu_bytes});
  if (!tables)
    return refuse(config, Errc::kBadConfig,
                  fmt::format("{} for {} failed: {}; is it an address of this interface?",
                              tables.error().where, to_string(config.address),
                              std::strerror(tables.error().sys_errno)));
  port->tables = std::move(*tables);
  std::vector<std::vector<std::unique_ptr<Socket>>> sockets(lanes);
  for (std::uint32_t queue = 0; queue < queues; ++queue)
    sockets[queue % lanes].push_back(ZTCP_TRY(open_socket(*port, queue)));
  port->description = describe(*port, queues, *sockets.front().front());
  // The last step: from now on the frames come here.
  for (const auto& lane : sockets)
    for (const auto& socket : lane)
      ZTCP_CHECK(xdp::put_socket(port->attachment.map, socket->queue(), socket->fd()));
  std::vector<std::unique_ptr<Link>> links;
  for (std::size_t lane = 0; lane < lanes; ++lane)
    links.push_back(std::make_unique<XdpLink>(port, std::move(sockets[lane]), lane, lanes));
  return links;
}

}  // namespace ztcp::link
