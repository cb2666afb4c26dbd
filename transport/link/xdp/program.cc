// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp/program.h"

#include <array>
#include <bit>
#include <cstddef>
#include <endian.h>
#include <linux/if_ether.h>
#include <netinet/in.h>

namespace ztcp::link::xdp {
namespace {

enum Register : std::uint8_t { kR0, kR1, kR2, kR3, kR4, kR5, kR6 };

constexpr std::int16_t kEthernetBytes = 14;
constexpr std::int16_t kIpv4Bytes = 20;
constexpr std::int16_t kIpv6Bytes = 40;
constexpr std::int16_t kPortsBytes = 4;  // Source and destination port, which begin a TCP header.

// Appends instructions. Every check that fails jumps to the end, where the frame passes; the
// distance is filled in once the end is known.
class Assembler {
 public:
  void load(std::uint8_t width, Register to, Register from, int offset) {
    add(BPF_LDX | width | BPF_MEM, to, from, offset, 0);
  }
  void copy(Register to, Register from) { add(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
  void set(Register to, std::int32_t value) { add(BPF_ALU64 | BPF_MOV | BPF_K, to, kR0, 0, value); }
  void add_number(Register to, std::int32_t value) {
    add(BPF_ALU64 | BPF_ADD | BPF_K, to, kR0, 0, value);
  }
  void keep_bits(Register to, std::int32_t mask) {
    add(BPF_ALU64 | BPF_AND | BPF_K, to, kR0, 0, mask);
  }
  void to_host_order(Register to) { add(BPF_ALU | BPF_END | BPF_TO_BE, to, kR0, 0, 16); }

  void pass_if_above(Register value, Register limit) {
    pass_if(BPF_JMP | BPF_JGT | BPF_X, value, limit, 0);
  }
  void pass_if_not(Register value, std::uint32_t wanted) {
    // 32 bits wide: the number is not extended by its sign.
    pass_if(BPF_JMP32 | BPF_JNE | BPF_K, value, kR0, static_cast<std::int32_t>(wanted));
  }
  void pass_if_below(Register value, std::int32_t limit) {
    pass_if(BPF_JMP | BPF_JLT | BPF_K, value, kR0, limit);
  }
  void pass_if_above(Register value, std::int32_t limit) {
    pass_if(BPF_JMP | BPF_JGT | BPF_K, value, kR0, limit);
  }

  // Skips the next `count` instructions. Compares without a sign.
  void skip_if_below(Register value, std::int32_t limit, int count) {
    add(BPF_JMP | BPF_JLT | BPF_K, value, kR0, count, limit);
  }

  void call(std::int32_t helper) { add(BPF_JMP | BPF_CALL, kR0, kR0, 0, helper); }
  void leave() { add(BPF_JMP | BPF_EXIT, kR0, kR0, 0, 0); }
  void load_map(Register to, int map) {
    add(BPF_LD | BPF_DW | BPF_IMM, to, static_cast<Register>(BPF_PSEUDO_MAP_FD), 0, map);
    add(0, kR0, kR0, 0, 0);  // The upper half of the 64 bits.
  }

  std::vector<bpf_insn> finish() {
    const std::size_t end = code_.size();
    for (const std::size_t at : passing_) code_[at].off = static_cast<std::int16_t>(end - at - 1);
    set(kR0, XDP_PASS);
    leave();
    return std::move(code_);
  }

 private:
  void add(int code, Register to, Register from, int offset, std::int32_t number) {
    bpf_insn one{};
    one.code = static_cast<std::uint8_t>(code);
    one.dst_reg = to & 0xfU;
    one.src_reg = from & 0xfU;
    one.off = static_cast<std::int16_t>(offset);
    one.imm = number;
    code_.push_back(one);
  }
  void pass_if(int code, Register value, Register other, std::int32_t number) {
    passing_.push_back(code_.size());
    add(code, value, other, 0, number);
  }

  std::vector<bpf_insn> code_;
  std::vector<std::size_t> passing_;
};

// r2: the frame. Passes unless it is IPv4 without options, whole, TCP, and to `own`.
void match_ipv4(Assembler& code, Ipv4Address own) {
  code.load(BPF_B, kR5, kR2, kEthernetBytes);
  code.pass_if_not(kR5, 0x45);  // Version 4, a header of five words.
  code.load(BPF_H, kR5, kR2, kEthernetBytes + 6);
  code.keep_bits(kR5, htobe16(0x3fff));  // "More fragments", and the offset of one.
  code.pass_if_not(kR5, 0);
  code.load(BPF_B, kR5, kR2, kEthernetBytes + 9);
  code.pass_if_not(kR5, IPPROTO_TCP);
  code.load(BPF_W, kR5, kR2, kEthernetBytes + 16);
  code.pass_if_not(kR5, htobe32(own.value));
}

// The same for IPv6: TCP follows the header at once.
void match_ipv6(Assembler& code, IpAddress own) {
  code.load(BPF_B, kR5, kR2, kEthernetBytes + 6);
  code.pass_if_not(kR5, IPPROTO_TCP);
  const std::array<std::uint64_t, 2> halves{htobe64(own.high), htobe64(own.low)};
  const auto words = std::bit_cast<std::array<std::uint32_t, 4>>(halves);
  for (std::size_t i = 0; i < words.size(); ++i) {
    code.load(BPF_W, kR5, kR2, kEthernetBytes + 24 + static_cast<int>(4 * i));
    code.pass_if_not(kR5, words[i]);
  }
}

}  // namespace

std::vector<bpf_insn> assemble(const Steering& steering, int map) {
  const bool is_v4 = steering.address.is_v4();
  const int tcp = kEthernetBytes + (is_v4 ? kIpv4Bytes : kIpv6Bytes);
  Assembler code;
  // r6: the context; r2: the frame, r3: its end. The verifier wants one check of the length before
  // any byte is read.
  code.copy(kR6, kR1);
  code.load(BPF_W, kR2, kR1, offsetof(xdp_md, data));
  code.load(BPF_W, kR3, kR1, offsetof(xdp_md, data_end));
  code.copy(kR4, kR2);
  code.add_number(kR4, tcp + kPortsBytes);
  code.pass_if_above(kR4, kR3);

  code.load(BPF_H, kR5, kR2, 12);
  code.pass_if_not(kR5, htobe16(is_v4 ? ETH_P_IP : ETH_P_IPV6));
  if (is_v4)
    match_ipv4(code, steering.address.v4());
  else
    match_ipv6(code, steering.address);

  code.load(BPF_H, kR5, kR2, tcp + 2);  // The destination port.
  code.to_host_order(kR5);
  code.copy(kR4, kR5);
  code.add_number(kR4, -std::int32_t{steering.listen_port});
  code.skip_if_below(kR4, steering.processes, 2);
  code.pass_if_below(kR5, steering.first_port);
  code.pass_if_above(kR5, steering.last_port);

  // return bpf_redirect_map(map, the frame's queue, what to return where that has no socket).
  code.load_map(kR1, map);
  code.load(BPF_W, kR2, kR6, offsetof(xdp_md, rx_queue_index));
  code.set(kR3, XDP_PASS);
  code.call(BPF_FUNC_redirect_map);
  code.leave();
  return code.finish();
}

}  // namespace ztcp::link::xdp
