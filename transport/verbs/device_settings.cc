// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/device_settings.h"

#include <cstdint>
#include <limits>

#include <fmt/format.h>

namespace ztcp::verbs {
namespace {

void add_note(Device& device, const char* name, int value) {
  device.settings += fmt::format("{}{} {}", device.settings.empty() ? "" : ", ", name, value);
}

}  // namespace

void take_settings(Device& device, const config::Nic& nic, const NcclVariables& variables) {
  const NcclVariables ours;
  const auto note = [&](const char* name, int value) { add_note(device, name, value); };
  const auto take = [&](const char* key, int said, const char* variable, int theirs, int own) {
    if (said >= 0)
      note(key, said);
    else if (theirs != own)
      note(variable, theirs);
    return said >= 0 ? said : theirs;
  };
  const auto take_small = [&](const char* key, int said, const char* variable, int theirs,
                              int own) {
    return static_cast<std::uint8_t>(take(key, said, variable, theirs, own));
  };
  device.traffic_class = take("traffic_class", nic.traffic_class, "NCCL_IB_TC",
                              variables.traffic_class, ours.traffic_class);
  device.slot_traffic_class =
      take("", -1, "NCCL_IB_FIFO_TC", variables.slot_traffic_class, ours.slot_traffic_class);
  device.service_level = take("service_level", nic.service_level, "NCCL_IB_SL",
                              variables.service_level, ours.service_level);
  device.timeout = take_small("ack_timeout", nic.ack_timeout, "NCCL_IB_TIMEOUT", variables.timeout,
                              ours.timeout);
  device.retries =
      take_small("retries", nic.retries, "NCCL_IB_RETRY_CNT", variables.retries, ours.retries);
  device.rnr_retries =
      take_small("rnr_retries", nic.rnr_retries, "", device.rnr_retries, device.rnr_retries);
  device.pkey_index = static_cast<std::uint16_t>(
      take("pkey_index", nic.pkey_index, "NCCL_IB_PKEY", variables.pkey_index, ours.pkey_index));
  device.queue_pairs = static_cast<std::uint32_t>(
      take("queue_pairs", nic.queue_pairs == 0 ? -1 : nic.queue_pairs, "NCCL_IB_QPS_PER_CONNECTION",
           static_cast<int>(variables.queue_pairs), static_cast<int>(ours.queue_pairs)));
  device.is_split = take("", -1, "NCCL_IB_SPLIT_DATA_ON_QPS", variables.is_split ? 1 : 0,
                         ours.is_split ? 1 : 0) != 0;
  device.has_ece =
      take("", -1, "NCCL_IB_ECE_ENABLE", variables.has_ece ? 1 : 0, ours.has_ece ? 1 : 0) != 0;
  const int relaxed = nic.relaxed_ordering == config::OnOff::kAuto ? -1
                      : nic.relaxed_ordering == config::OnOff::kOn ? 1
                                                                   : 0;
  device.is_relaxed = take("relaxed_ordering", relaxed, "NCCL_IB_PCI_RELAXED_ORDERING",
                           variables.is_relaxed ? 1 : 0, ours.is_relaxed ? 1 : 0) != 0;
  device.is_flush_disabled = variables.is_flush_disabled;
  if (device.is_flush_disabled) note("NCCL_GDR_FLUSH_DISABLE", 1);
}

void take_threshold(Device& device, const config::Nic& nic, const NcclVariables& variables) {
  const NcclVariables ours;
  int above = variables.adaptive_threshold;
  bool is_on = device.is_infiniband;
  if (nic.adaptive_routing_threshold_bytes >= 0) {
    above = nic.adaptive_routing_threshold_bytes;
    is_on = above != std::numeric_limits<std::int32_t>::max();
    add_note(device, "adaptive_routing_threshold_bytes", above);
  } else {
    if (variables.adaptive_routing >= 0) {
      is_on = variables.adaptive_routing != 0;
      add_note(device, "NCCL_IB_ADAPTIVE_ROUTING", variables.adaptive_routing);
    }
    if (above != ours.adaptive_threshold) add_note(device, "NCCL_IB_AR_THRESHOLD", above);
  }
  device.notified_separately_above = is_on ? static_cast<std::uint32_t>(above) : Device::kNever;
}

}  // namespace ztcp::verbs
