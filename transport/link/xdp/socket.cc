// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp/socket.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sys/mman.h>
#include <sys/socket.h>
#include <thread>
#include <utility>

#include "core/process_mark.h"

namespace ztcp::link::xdp {
namespace {

// Room for the frames that the kernel holds while the NIC sends them; in copy mode it counts them
// against the socket. The default suffices for a hundred.
constexpr int kSendBufferBytes = 16 << 20;
constexpr int kTriesOfBusyQueue = 100;
constexpr std::chrono::milliseconds kPauseOfBusyQueue{10};
// The kernel takes this many frames in one call.
constexpr int kFramesInACall = 32;
// The kernel wants a completion ring of each socket, also of one that sends nothing.
constexpr std::uint32_t kLeastCompletions = 64;

Status set(const Fd& socket, int option, const void* value, socklen_t size, const char* what) {
  if (::setsockopt(socket.get(), SOL_XDP, option, value, size) != 0) return fail_errno(what);
  return {};
}
Status set(const Fd& socket, int option, std::uint32_t value, const char* what) {
  return set(socket, option, &value, sizeof(value), what);
}

}  // namespace

Socket::MappedRing::~MappedRing() {
  if (data != nullptr && !in_forked_child()) ::munmap(data, size);
}

Result<std::unique_ptr<Socket>> Socket::open(const SocketConfig& config) {
  Fd fd(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno("socket (AF_XDP)");
  const std::size_t chunks = std::size_t{config.rx_chunks} + config.tx_chunks;
  auto memory = ZTCP_TRY(hugepage::Mapping::anonymous(chunks * config.chunk_bytes));
  std::unique_ptr<Socket> socket(new Socket(config, std::move(fd), std::move(memory)));
  ZTCP_CHECK(socket->set_up());
  ZTCP_CHECK(socket->bind());
  return socket;
}

Status Socket::set_up() {
  xdp_umem_reg memory{};
  memory.addr = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory_.data()));
  memory.len = memory_.size();
  memory.chunk_size = config_.chunk_bytes;
  ZTCP_CHECK(set(fd_, XDP_UMEM_REG, &memory, sizeof(memory), "XDP_UMEM_REG"));
  ZTCP_CHECK(set(fd_, XDP_UMEM_FILL_RING, config_.rx_chunks, "XDP_UMEM_FILL_RING"));
  ZTCP_CHECK(set(fd_, XDP_UMEM_COMPLETION_RING, std::max(config_.tx_chunks, kLeastCompletions),
                 "XDP_UMEM_COMPLETION_RING"));
  ZTCP_CHECK(set(fd_, XDP_RX_RING, config_.rx_chunks, "XDP_RX_RING"));
  if (config_.tx_chunks != 0) ZTCP_CHECK(set(fd_, XDP_TX_RING, config_.tx_chunks, "XDP_TX_RING"));
  // The first needs CAP_NET_ADMIN, the second is limited by net.core.wmem_max.
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBufferBytes,
                   sizeof(kSendBufferBytes)) != 0)
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof(kSendBufferBytes));

  xdp_mmap_offsets offsets{};
  socklen_t size = sizeof(offsets);
  if (::getsockopt(fd_.get(), SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size) != 0)
    return fail_errno("XDP_MMAP_OFFSETS");
  // Linux before 5.4 has no flags in its rings.
  if (size != sizeof(offsets)) return fail(Errc::kSystem, "XDP_MMAP_OFFSETS", ENOSYS);
  rx = ConsumerRing(
      ZTCP_TRY(map_ring<xdp_desc>(rx_ring_, offsets.rx, config_.rx_chunks, XDP_PGOFF_RX_RING)));
  fill = ProducerRing(ZTCP_TRY(map_ring<std::uint64_t>(fill_ring_, offsets.fr, config_.rx_chunks,
                                                       XDP_UMEM_PGOFF_FILL_RING)));
  if (config_.tx_chunks != 0) {
    tx = ProducerRing(
        ZTCP_TRY(map_ring<xdp_desc>(tx_ring_, offsets.tx, config_.tx_chunks, XDP_PGOFF_TX_RING)));
    completion = ConsumerRing(ZTCP_TRY(map_ring<std::uint64_t>(
        completion_ring_, offsets.cr, config_.tx_chunks, XDP_UMEM_PGOFF_COMPLETION_RING)));
  }
  for (std::uint32_t i = 0; i < config_.rx_chunks; ++i)
    fill.put(std::uint64_t{i} * config_.chunk_bytes);
  fill.publish();
  return {};
}

template <class Entry>
Result<RingMemory<Entry>> Socket::map_ring(MappedRing& into, const xdp_ring_offset& offsets,
                                           std::uint32_t entries, std::uint64_t which) {
  const std::size_t size = offsets.desc + std::size_t{entries} * sizeof(Entry);
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_.get(),
                      static_cast<off_t>(which));
  if (data == MAP_FAILED) return fail_errno("mmap (AF_XDP ring)");
  ::madvise(data, size, MADV_DONTFORK);
  into.data = data;
  into.size = size;
  auto* base = static_cast<std::byte*>(data);
  RingMemory<Entry> out;
  out.producer = reinterpret_cast<std::uint32_t*>(base + offsets.producer);
  out.consumer = reinterpret_cast<std::uint32_t*>(base + offsets.consumer);
  out.flags = reinterpret_cast<std::uint32_t*>(base + offsets.flags);
  out.entries = reinterpret_cast<Entry*>(base + offsets.desc);
  out.size = entries;
  return out;
}

// Zero copy where the driver can; the kernel then refuses only what it can't do.
Status Socket::bind() {
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_ifindex = config_.interface_index;
  address.sxdp_queue_id = config_.queue;
  const auto with = [&](unsigned mode) {
    address.sxdp_flags = static_cast<std::uint16_t>(
        XDP_USE_NEED_WAKEUP | mode | (config_.several_pieces ? kUseSeveralPieces : 0U));
    // The kernel gives the queue of a socket that was closed back a little later.
    for (int tries = kTriesOfBusyQueue;; --tries) {
      if (::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0)
        return true;
      if (errno != EBUSY || tries == 0) return false;
      std::this_thread::sleep_for(kPauseOfBusyQueue);
    }
  };
  if (config_.may_be_zero_copy && with(XDP_ZEROCOPY)) return {};
  zero_copy_errno_ = config_.may_be_zero_copy ? errno : EOPNOTSUPP;
  if (with(XDP_COPY)) return {};
  return fail_errno("bind (AF_XDP)");
}

xdp_statistics Socket::statistics() const {
  xdp_statistics out{};
  socklen_t size = sizeof(out);
  // Linux before 5.9 tells the first half.
  if (::getsockopt(fd_.get(), SOL_XDP, XDP_STATISTICS, &out, &size) != 0) return {};
  return out;
}

void Socket::wake_for_fill() {
  if (fill.needs_wakeup()) ::recvfrom(fd_.get(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
}

void Socket::wake_for_tx() {
  if (!tx.needs_wakeup()) return;
  // EAGAIN: more frames are in the ring than a call takes, or the kernel holds as many as it may.
  for (std::uint32_t calls = config_.tx_chunks / kFramesInACall; calls > 0; --calls)
    if (::sendto(fd_.get(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0 || errno != EAGAIN ||
        tx.is_drained())
      return;
}

}  // namespace ztcp::link::xdp
