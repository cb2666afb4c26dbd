// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/handshake.h"

#include <algorithm>
#include <string_view>

namespace ztcp::msg {
namespace {

Nonce first_half(const Digest& digest) {
  Nonce nonce;
  std::copy_n(digest.begin(), nonce.size(), nonce.begin());
  return nonce;
}

Digest mac(const ClusterKey& key, std::string_view label, const Hello& hello,
           const Nonce& challenge) {
  std::array<std::byte, kHeaderBytes + Hello::kBody> record;
  encode(hello, record);
  return hmac_sha256(key, {std::as_bytes(std::span(label)), record, challenge});
}

}  // namespace

Nonce sender_nonce(std::uint64_t session, std::uint8_t flow, std::uint32_t epoch) {
  const std::array<std::uint64_t, 2> counter = {flow, epoch};
  return first_half(
      hmac_sha256(std::as_bytes(std::span(&session, 1)), {std::as_bytes(std::span(counter))}));
}

Nonce receiver_nonce(const std::array<std::uint64_t, 2>& secret, std::uint64_t counter) {
  return first_half(
      hmac_sha256(std::as_bytes(std::span(secret)), {std::as_bytes(std::span(&counter, 1))}));
}

Digest receiver_mac(const ClusterKey& key, const Hello& hello, const Nonce& challenge) {
  return mac(key, "ztcp1 receiver", hello, challenge);
}

Digest sender_mac(const ClusterKey& key, const Hello& hello, const Nonce& challenge) {
  return mac(key, "ztcp1 sender", hello, challenge);
}

}  // namespace ztcp::msg
