// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_links.h"

#include <cassert>
#include <utility>

#include "transport/link/shards.h"
#include "transport/ustack/loopback_link.h"

namespace ztcp::ustack {

WholeLinks whole_links(std::vector<std::unique_ptr<link::Link>> opened) {
  const bool are_shards = opened.front()->capabilities().shards > 1;
  assert(!are_shards || opened.front()->capabilities().shards == opened.size());
  std::vector<std::shared_ptr<stats::CaptureTap>> taps;
  for (auto& queue : opened) {
    const std::size_t max_held_bytes = queue->capabilities().max_kept_bytes;
    taps.push_back(std::make_shared<stats::CaptureTap>());
    queue = with_loopback(std::move(queue), max_held_bytes, taps.back());
  }
  return {are_shards ? link::join_shards(std::move(opened)) : std::move(opened), std::move(taps)};
}

}  // namespace ztcp::ustack
