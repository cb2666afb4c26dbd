// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The whole state machine: the input is a script of segments that nearly fit, passing time and
// calls of the user; one of odd length is of IPv6. For any script the rules of Stream and Stack
// hold (see LiveStack).
#include <chrono>
#include <cstdint>

#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/live_stack.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ztcp;
  fuzz::ByteSource script(data, size);
  fuzz::LiveStack live(/*is_ipv6=*/size % 2 != 0);
  static const std::vector<std::byte> payload(2048, std::byte{0x42});
  for (int steps = 0; !script.is_empty() && steps < 400; ++steps) {
    switch (script.u8() % 8) {
      case 0:
      case 1:
      case 2: {
        const wire::TcpFlags flags(script.u8());
        // Mostly near zero: segments that fit exactly, or nearly, reach the deepest.
        const auto seq = static_cast<std::int8_t>(script.u8()) * (1 + script.u8() % 64 * 16);
        const auto ack = static_cast<std::int8_t>(script.u8()) * (1 + script.u8() % 64 * 16);
        const std::uint16_t window = script.u16();
        const auto options = script.bytes(script.u8() % 44);
        const std::size_t length = script.u16() % payload.size();
        live.receive_segment(flags, seq, ack, window, options, std::span(payload).first(length));
        break;
      }
      case 3:
        live.advance(std::chrono::microseconds(script.u16()));
        break;
      case 4:
        live.advance(std::chrono::milliseconds(script.u8() * 20));
        break;
      case 5:
        live.write(script.u16());
        break;
      case 6:
        live.connect();
        break;
      default:
        switch (script.u8() % 16) {
          case 0:
            live.close();
            break;
          case 1:
            live.abort();
            break;
          case 3:
            live.finish();
            break;
          case 2: {
            const std::uint8_t type = script.u8();
            const std::uint8_t code = script.u8();
            const std::uint16_t mtu = script.u16();
            const auto seq = static_cast<std::int8_t>(script.u8());
            live.receive_icmp(type, code, mtu, seq, script.u8());
            break;
          }
          default:  // The common case, the awaited ACK, so that scripts live long.
            live.receive_segment(wire::kAck, 0, 0, 65535, {}, {});
        }
    }
  }
  live.settle();
  return 0;
}
