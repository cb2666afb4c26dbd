// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Any bytes in a statistics page give an error or a Snapshot whose numbers refer to each other. An
// input either begins a page, or is a script that overwrites words of a valid one and of its later
// copies.
#include <cstring>
#include <memory>
#include <set>

#include "tests/fuzz/byte_source.h"
#include "transport/stats/page_decoder.h"

namespace ztcp::fuzz {
namespace {

using namespace stats;

std::unique_ptr<PageContent> valid_page() {
  auto page = std::make_unique<PageContent>();
  page->header.magic = kMagic;
  page->header.layout_version = kLayoutVersion;
  page->header.page_bytes = kPageBytes;
  page->header.counter_names = counter_names_hash();
  for (auto& entry : page->devices) entry.words[0] = 1;
  for (auto& entry : page->devices) entry.words[1] = 1;  // Carrier.
  for (auto& entry : page->lanes) entry.words[0] = 1;
  for (auto& entry : page->connections) entry.words[0] = 1;
  for (auto& entry : page->flows) entry.words[0] = 1;
  for (auto& entry : page->latencies) entry.record.words[0] = 1;
  return page;
}

void overwrite(PageContent& page, ByteSource& in) {
  // The tables begin at few places, and their first entries matter most.
  constexpr std::size_t kTables[] = {0,
                                     offsetof(PageContent, devices),
                                     offsetof(PageContent, lanes),
                                     offsetof(PageContent, connections),
                                     offsetof(PageContent, flows),
                                     offsetof(PageContent, latencies)};
  const std::size_t at = kTables[in.u8() % 6] + in.u16() % 8192;
  const std::uint8_t value = in.u8();
  reinterpret_cast<std::uint8_t*>(&page)[at] = value;
}

void require_consistent(const Snapshot& snapshot) {
  std::set<std::uint32_t> devices;
  for (const Device& device : snapshot.devices) {
    require(device.index < kMaxDevices);
    require(devices.insert(device.index).second);
    for (const char c : device.plan) require(c >= ' ' && c <= '~');
  }
  std::set<std::uint64_t> connections;
  for (const Connection& connection : snapshot.connections) {
    require(devices.contains(connection.device));
    require(connections.insert(connection.id).second);
    require(connection.waiting <= Waiting::kThisHost);
    for (const char c : connection.peer) require(c >= ' ' && c <= '~');
  }
  for (const Lane& lane : snapshot.lanes) require(devices.contains(lane.device));
  for (const Flow& flow : snapshot.flows) require(connections.contains(flow.connection));
  for (const Latency& latency : snapshot.latencies) require(devices.contains(latency.device));
}

void run(ByteSource in, const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<PageContent> valid = valid_page();
  static const auto before = std::make_unique<PageContent>();
  static const auto content = std::make_unique<PageContent>();
  static const auto after = std::make_unique<PageContent>();
  if (in.u8() % 4 == 0) {
    static_cast<void>(check_header({reinterpret_cast<const std::byte*>(data), size}));
    return;
  }
  const bool takes_torn = in.u8() % 2 == 0;
  *before = *valid;
  for (int edits = in.u8() % 16; edits > 0; --edits) overwrite(*before, in);
  *content = *before;
  for (int edits = in.u8() % 16; edits > 0; --edits) overwrite(*content, in);
  *after = *content;
  for (int edits = in.u8() % 4; edits > 0; --edits) overwrite(*after, in);
  if (!check_header({reinterpret_cast<const std::byte*>(content.get()), kPageBytes})) return;
  require_consistent(decode_page({before.get(), content.get(), after.get()}, takes_torn).snapshot);
}

}  // namespace
}  // namespace ztcp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ztcp::fuzz::run(ztcp::fuzz::ByteSource(data, size), data, size);
  return 0;
}
