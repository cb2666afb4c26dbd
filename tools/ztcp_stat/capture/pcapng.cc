// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/capture/pcapng.h"

#include <cstring>

namespace ztcp::capture {
namespace {

constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kStatisticsBlock = 5;
constexpr std::uint32_t kPacketBlock = 6;
constexpr std::uint32_t kByteOrder = 0x1a2b3c4d;
constexpr std::uint16_t kEthernet = 1;

// The machine's byte order: readers learn it from kByteOrder.
template <class Number>
void put(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void put_padded(std::string& out, const void* data, std::size_t size) {
  if (size != 0) out.append(static_cast<const char*>(data), size);
  out.append((4 - size % 4) % 4, '\0');
}

void put_time(std::string& out, std::uint64_t time_ns) {
  put(out, static_cast<std::uint32_t>(time_ns >> 32U));
  put(out, static_cast<std::uint32_t>(time_ns));
}

// A block between its two lengths.
class Block {
 public:
  Block(std::string& out, std::uint32_t type) : out_(out), begin_(out.size()) {
    put(out_, type);
    put(out_, std::uint32_t{0});
  }
  ~Block() {
    const auto size = static_cast<std::uint32_t>(out_.size() - begin_ + sizeof(std::uint32_t));
    std::memcpy(out_.data() + begin_ + sizeof(std::uint32_t), &size, sizeof(size));
    put(out_, size);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void option(std::uint16_t code, const void* data, std::size_t size) {
    put(out_, code);
    put(out_, static_cast<std::uint16_t>(size));
    put_padded(out_, data, size);
  }
  void text(std::uint16_t code, std::string_view text) {
    if (!text.empty()) option(code, text.data(), text.size());
  }
  template <class Number>
  void number(std::uint16_t code, Number number) {
    option(code, &number, sizeof(number));
  }
  void time(std::uint16_t code, std::uint64_t time_ns) {
    put(out_, code);
    put(out_, std::uint16_t{8});
    put_time(out_, time_ns);
  }
  void end_options() { put(out_, std::uint32_t{0}); }

 private:
  std::string& out_;
  const std::size_t begin_;
};

constexpr std::uint16_t kComment = 1;

}  // namespace

void append_section(std::string& out, const Section& section) {
  Block block(out, kPcapngMagic);
  put(out, kByteOrder);
  put(out, std::uint16_t{1});
  put(out, std::uint16_t{0});
  put(out, ~std::uint64_t{0});  // The section's length: not told.
  block.text(kComment, section.comment);
  block.text(3, "Linux");
  block.text(4, section.application);
  block.end_options();
}

void append_interface(std::string& out, const Interface& interface) {
  Block block(out, kInterfaceBlock);
  put(out, kEthernet);
  put(out, std::uint16_t{0});
  put(out, interface.snap_bytes);
  block.text(kComment, interface.comment);
  block.text(2, interface.name);
  block.text(3, interface.description);
  block.option(6, interface.mac.data(), interface.mac.size());
  block.number(9, std::uint8_t{9});  // if_tsresol: 10^-9 s.
  // if_filter: 0, a text for libpcap.
  if (!interface.filter.empty()) block.text(11, std::string(1, '\0').append(interface.filter));
  block.end_options();
}

void append_packet(std::string& out, const Packet& packet) {
  Block block(out, kPacketBlock);
  put(out, std::uint32_t{0});  // The interface.
  put_time(out, packet.time_ns);
  put(out, static_cast<std::uint32_t>(packet.bytes.size()));
  put(out, packet.original_bytes);
  put_padded(out, packet.bytes.data(), packet.bytes.size());
  block.number(2, std::uint32_t{packet.is_sent ? 2U : 1U});  // epb_flags: outbound, inbound.
  if (packet.lost_before != 0) block.number(4, packet.lost_before);  // epb_dropcount.
  block.end_options();
}

void append_statistics(std::string& out, const Statistics& statistics) {
  Block block(out, kStatisticsBlock);
  put(out, std::uint32_t{0});  // The interface.
  put_time(out, statistics.end_ns);
  block.time(2, statistics.begin_ns);
  block.time(3, statistics.end_ns);
  block.number(4, statistics.received);  // isb_ifrecv.
  block.number(5, statistics.lost);      // isb_ifdrop.
  block.number(8, statistics.written);   // isb_usrdeliv.
  block.end_options();
}

}  // namespace ztcp::capture
