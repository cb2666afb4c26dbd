// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/collnet_settings.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/log.h"
#include "plugin/collnet_sizes.h"
#include "transport/reduce/all_reduce.h"

namespace ztcp::plugin {
namespace {

reduce::Wire wire_of(config::CollnetWire wire) {
  switch (wire) {
    case config::CollnetWire::kF32:
      return reduce::Wire::kAsIs;
    case config::CollnetWire::kBf16:
      return reduce::Wire::kBfloat16;
    case config::CollnetWire::kFp8:
      return reduce::Wire::kFloat8;
  }
  return reduce::Wire::kAsIs;
}

std::string rounding_on(reduce::Wire wire) {
  if (wire == reduce::Wire::kAsIs) return "no sum is rounded for the wire";
  return fmt::format(
      "sums of floats{} of {} KiB and more travel as {} and are rounded, all else is exact",
      wire == reduce::Wire::kFloat8 ? " of 16 and 32 bits" : "",
      reduce::AllReduce::kRoundedBytes >> 10U, name_of(wire));
}

void say_switch(const Startup& startup) {
  const bool has_gpu_direct = std::ranges::any_of(
      startup.devices, [](const Device& device) { return device.properties.cuda_pointers; });
  log::info(
      "CollNet is on: with NCCL_COLLNET_ENABLE=1, NCCL can leave all-reduce between hosts to "
      "ztcp; {}; workers for the sums of a group: {}{}",
      rounding_on(startup.collnet.wire), startup.collnet.workers,
      has_gpu_direct ? "; GPUDirect RDMA is off, since ztcp reduces in host memory" : "");
}

void say_sizes(const Startup& startup) {
  const CollnetSettings& collnet = startup.collnet;
  if (!startup.tuned) {
    log::info("NCCL chooses by itself which all-reduces use CollNet");
    return;
  }
  const std::uint32_t most = most_collnet_speed_mbps(*startup.tuned, collnet.wire);
  if (collnet.sizes != 0)
    log::info("the tuner offers CollNet for all-reduces of {}: NICs of {} Mb/s together",
              sizes_text(collnet.sizes), collnet.speed_mbps);
  else if (most != 0)
    log::info(
        "the tuner offers CollNet for no size: NICs of {} Mb/s together, and it was measured to be "
        "faster up to {} Mb/s",
        collnet.speed_mbps, most);
  else
    log::info(
        "the tuner offers CollNet for no size: over {}, with sums in this form, it was never "
        "measured to be faster",
        to_string(*startup.tuned));
}

}  // namespace

const char* name_of(reduce::Wire wire) {
  if (wire == reduce::Wire::kFloat8) return "fp8";
  return wire == reduce::Wire::kBfloat16 ? "bf16" : "f32";
}

CollnetSettings choose_collnet(const config::Collnet& configured,
                               const config::Environment& environment) {
  return {.is_on = environment.collnet.value_or(configured.enabled),
          .wire = wire_of(environment.collnet_wire.value_or(configured.wire))};
}

void choose_collnet_sizes(Startup& startup) {
  CollnetSettings& collnet = startup.collnet;
  for (const Device& device : startup.devices) collnet.speed_mbps += device.properties.speed_mbps;
  collnet.sizes = collnet_rows(startup.tuned, collnet.wire, collnet.speed_mbps);
}

void say_collnet(const Startup& startup) {
  if (!startup.collnet.is_on) return;
  say_switch(startup);
  say_sizes(startup);
}

}  // namespace ztcp::plugin
