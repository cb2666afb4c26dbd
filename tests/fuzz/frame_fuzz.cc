// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One frame of arbitrary bytes, in arbitrary pieces: the parser's offsets stay inside it, and a
// stack with a live connection survives it. The NIC claims to have checked the checksums, so that
// they stop no frame; a second pass lets the software check them. Parsed as part of a run the frame
// gives the same result. A stack without an address survives it, too.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/live_stack.h"
#include "tests/support/same_headers.h"
#include "transport/wire/header_run.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ztcp;
  using fuzz::require;
  fuzz::ByteSource source(data, size);
  const std::size_t first = source.u16();
  const std::size_t second = source.u8();
  const auto whole = source.bytes(size);
  // Exact allocations, so that a sanitizer detects a read past the end.
  const auto head_view = whole.first(std::min(first, whole.size()));
  const auto rest = whole.subspan(head_view.size());
  const std::size_t cut = std::min(second, rest.size());
  const std::vector<std::byte> head(head_view.begin(), head_view.end());
  const std::vector<std::byte> middle(rest.begin(),
                                      rest.begin() + static_cast<std::ptrdiff_t>(cut));
  const std::vector<std::byte> tail(rest.begin() + static_cast<std::ptrdiff_t>(cut), rest.end());
  const std::array<std::span<const std::byte>, 2> more{middle, tail};

  // The frame, a copy with one byte changed, the frame again: the run must notice each difference
  // that matters.
  std::vector<std::byte> changed = head;
  if (!changed.empty()) changed[second % changed.size()] ^= std::byte{1};
  wire::HeaderRun run;
  for (const std::vector<std::byte>& bytes : {head, changed, head}) {
    RxFrame frame;
    frame.head = bytes;
    frame.more = more;
    require(wire::same_headers(run.next(frame), wire::parse_frame(frame)));
  }

  RxFrame first_frame;
  first_frame.head = head;
  first_frame.more = more;
  fuzz::LiveStack live(wire::parse_frame(first_frame).is_ipv6());
  for (const bool checked : {true, false}) {
    RxFrame frame;
    frame.head = head;
    frame.more = more;
    frame.handle = &frame;
    frame.charge_bytes = 10240;
    frame.checksum_good = checked;
    const auto parsed = wire::parse_frame(frame);
    if (parsed.kind != wire::FrameKind::kMalformed) {
      require(parsed.payload_offset + std::size_t{parsed.payload_bytes} <= whole.size());
      std::size_t seen = 0;
      wire::for_each_piece(frame, parsed.payload_offset, parsed.payload_bytes,
                           [&](auto piece) { seen += piece.size(); });
      require(seen == parsed.payload_bytes);
    }
    if (parsed.kind == wire::FrameKind::kTcp) wire::verify_checksums(frame, parsed);
    if (parsed.is_ipv6()) fuzz::receive_without_address(frame);
    live.receive(frame);
  }
  live.settle();
  return 0;
}
