// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/session_config.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ztcp::comms {

static_assert(msg::kMostSessions == config::kMostConnections);

msg::SessionSettings session_settings(const config::Fabric& fabric, config::NicDriver driver,
                                      std::size_t lanes) {
  const auto ms = [](std::uint32_t n) { return std::chrono::milliseconds(n); };
  msg::SessionSettings out;
  // So many may all come to one lane: peers dial one of at most two lanes first.
  constexpr std::uint32_t kFewSessions = 256;
  const auto parts = static_cast<std::uint32_t>(lanes);
  const std::uint32_t all = config::connections_of_nic(fabric.tcp, driver);
  const std::uint32_t share = (2 * all + parts - 1) / parts;
  out.max_sessions =
      driver == config::NicDriver::kSocket ? all : std::min(all, std::max(share, kFewSessions));
  // A lane's first session gets the same allowance as with one lane, and all together no more.
  out.eager_budget_bytes /= parts;
  out.eager_shares = std::max(1U, out.eager_shares / parts);
  const config::Messages& messages = fabric.messages;
  if (messages.flows != 0) out.flows = messages.flows;
  out.multi_flow_threshold_bytes = messages.multi_flow_threshold_kib << 10U;
  out.eager_allowance_bytes = messages.eager_allowance_kib << 10U;
  out.max_chunk_bytes = messages.max_chunk_kib << 10U;
  out.handshake_timeout = ms(messages.handshake_timeout_ms);
  out.redial_window = ms(messages.redial_window_ms);
  out.redial_attempt = ms(messages.redial_attempt_ms);
  out.max_redials = messages.max_redials;
  out.host = own_host_name();
  out.sender_notices = ms(fabric.tcp.user_timeout_ms);
  return out;
}

Result<msg::ClusterKey> cluster_key(const config::Fabric& fabric) {
  const std::string& hex = fabric.messages.cluster_key;
  msg::ClusterKey key{};
  if (hex.empty()) return key;
  if (hex.size() != 2 * key.size()) return fail(Errc::kBadConfig, "cluster_key");
  for (std::size_t i = 0; i < key.size(); ++i) {
    unsigned value = 0;
    const char* at = hex.data() + 2 * i;
    const auto [end, error] = std::from_chars(at, at + 2, value, 16);
    if (error != std::errc{} || end != at + 2) return fail(Errc::kBadConfig, "cluster_key");
    key[i] = static_cast<std::byte>(value);
  }
  return key;
}

}  // namespace ztcp::comms
