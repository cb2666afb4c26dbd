// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/collnet_windows.h"

#include <limits>

namespace ztcp::plugin {
namespace {

Told<void> check(const char* entry, const CollGroup& group, const WindowCall& call) {
  if (call.pieces != 1)
    return report(Errc::kInvalidArgument,
                  "{} with {} pieces of memory; ztcp takes one, with all of the window", entry,
                  call.pieces);
  if (call.piece_bytes != call.bytes)
    return report(Errc::kInvalidArgument, "{} of a window of {} bytes with {} bytes of memory",
                  entry, call.bytes, call.piece_bytes);
  const std::size_t hosts = group.hosts();
  const std::size_t most = std::numeric_limits<std::size_t>::max() / hosts;
  const bool is_inside = call.part_bytes <= most && call.offset <= hosts * call.part_bytes &&
                         call.bytes <= hosts * call.part_bytes - call.offset;
  if (call.part_bytes == 0 || !is_inside)
    return report(Errc::kInvalidArgument,
                  "{} of a window of {} bytes at {}: the {} ranks have {} bytes each", entry,
                  call.bytes, call.offset, hosts, call.part_bytes);
  return {};
}

}  // namespace

Told<reduce::Job*> all_gather(CollGroup& group, const WindowCall& call) {
  ZTCP_CHECK(check("iallgather", group, call));
  return group.start({.from = call.own,
                      .from_registration = call.own_memory,
                      .to = call.address,
                      .to_registration = call.memory,
                      .count = call.bytes,
                      .type = reduce::ElementType::kUint8,
                      .collective = reduce::Collective::kAllGather,
                      .window = {.part = call.part_bytes, .offset = call.offset}});
}

Told<reduce::Job*> reduce_scatter(CollGroup& group, const WindowCall& call,
                                  reduce::ElementType type, reduce::Reduction reduction) {
  ZTCP_CHECK(check("ireducescatter", group, call));
  const std::size_t element = reduce::size_of(type);
  if (call.part_bytes % element != 0 || call.offset % element != 0 || call.bytes % element != 0)
    return report(Errc::kInvalidArgument,
                  "ireducescatter of a window of {} bytes at {}, ranks with {} bytes each: an "
                  "element has {}",
                  call.bytes, call.offset, call.part_bytes, element);
  return group.start(
      {.from = call.address,
       .from_registration = call.memory,
       .to = call.own,
       .to_registration = call.own_memory,
       .count = call.bytes / element,
       .type = type,
       .reduction = reduction,
       .collective = reduce::Collective::kReduceScatter,
       .window = {.part = call.part_bytes / element, .offset = call.offset / element}});
}

}  // namespace ztcp::plugin
