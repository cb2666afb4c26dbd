// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Option areas that parse must be the same after they were emitted and parsed again.
#include <array>
#include <cstdint>
#include <span>

#include "tests/fuzz/byte_source.h"
#include "transport/wire/tcp_options.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ztcp::wire;
  using ztcp::fuzz::require;
  TcpOptions parsed;
  if (!parse_tcp_options(std::as_bytes(std::span(data, size)), parsed)) return 0;
  require(parsed.sack_count <= kMaxSackBlocks);
  require(!parsed.window_scale || *parsed.window_scale <= 14);

  std::array<std::byte, kMaxTcpOptionBytes> raw;
  const std::size_t emitted = emit_tcp_options(parsed, raw.data());
  require(emitted <= raw.size() && emitted % 4 == 0);
  TcpOptions again;
  require(parse_tcp_options(std::span(raw).first(emitted), again));
  require(again.mss_bytes == parsed.mss_bytes);
  require(again.window_scale == parsed.window_scale);
  require(again.sack_permitted == parsed.sack_permitted);
  require(again.timestamps == parsed.timestamps);
  require(!again.ecn_bytes || again.ecn_bytes->ce == parsed.ecn_bytes.value().ce);
  for (std::size_t i = 0; i < again.sack_count; ++i) require(again.sack[i] == parsed.sack[i]);
  return 0;
}
