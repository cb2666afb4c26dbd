// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A handle written by another network, another release, damaged memory or a hostile peer. For any
// bytes connect() finds a peer or returns one printable line, a decoded handle is encoded to the
// same bytes, and no byte beyond the handle is read. The first byte chooses how much of it is well
// formed.
#include <algorithm>
#include <array>
#include <string>
#include <variant>

#include "plugin/handle.h"
#include "plugin/peer_check.h"
#include "tests/fuzz/byte_source.h"

namespace ztcp::fuzz {
namespace {

using plugin::ConstHandleBytes;

bool is_printable(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

void check_peer(const PeerHandle& peer, ConstHandleBytes handle) {
  const plugin::Issuer issuer = plugin::issuer_of(handle);
  require(is_printable(issuer.host));
  std::array<std::byte, plugin::kHandleBytes> again{};
  const auto out = std::span(again).first(handle.size());
  plugin::encode_handle(peer, out);
  plugin::set_issuer(issuer, out);
  require(plugin::issuer_of(out).agreement == issuer.agreement);
  require(plugin::issuer_of(out).host == issuer.host);
  require(std::ranges::equal(out.first(40), handle.first(40)));

  const plugin::Agreement ours{.nics = 1, .devices = 8, .speed_mbps = 100'000};
  const std::string found = plugin::differences(ours, {"host-a"}, issuer.agreement, {issuer.host});
  require(std::ranges::all_of(found, [](char c) { return c >= ' ' && c <= '~'; }));
  require(found.size() < 4096);
  require(plugin::differences(issuer.agreement, {}, issuer.agreement, {}).empty());
}

void check(ConstHandleBytes handle) {
  const plugin::DecodedHandle decoded = plugin::decode_handle(handle);
  if (const auto* const peer = std::get_if<PeerHandle>(&decoded)) check_peer(*peer, handle);
  if (const auto* const poison = std::get_if<plugin::Poison>(&decoded)) {
    require(is_printable(poison->host) && poison->host.size() <= plugin::Poison::kMaxHost);
    require(!poison->unshown || poison->unshown->shown != 0);
  }
  require(plugin::read_peer(handle).has_value() == std::holds_alternative<PeerHandle>(decoded));
}

}  // namespace
}  // namespace ztcp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ztcp;
  fuzz::ByteSource source(data, size);
  const std::uint8_t shape = source.u8();
  std::array<std::byte, plugin::kHandleBytes> handle{};
  std::ranges::copy(source.bytes(handle.size()), handle.begin());
  if ((shape & 1U) != 0) {  // Ours, of any version.
    handle[0] = handle[1] = std::byte{0};
    constexpr std::array kMagic{std::byte{'z'}, std::byte{'T'}, std::byte{0xc9}};
    std::ranges::copy(kMagic, handle.begin() + 2);
  }
  if ((shape & 2U) != 0)  // This version, any kind.
    handle[5] = static_cast<std::byte>(std::to_integer<unsigned>(handle[5]) % 16U |
                                       unsigned{plugin::kHandleVersion} << 4U);
  fuzz::check(handle);
  const auto short_handle = std::span(handle).first(plugin::kShortHandleBytes);
  fuzz::check(short_handle);
  const auto wide = plugin::widen(short_handle);
  fuzz::require(plugin::issuer_of(wide).agreement == plugin::issuer_of(short_handle).agreement);
  fuzz::check(wide);
  return 0;
}
