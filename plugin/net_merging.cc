// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The part of Net that merges several NICs into one device.
#include <algorithm>
#include <utility>

#include "plugin/net.h"
#include "plugin/statistics_page.h"

namespace ztcp::plugin {

// NCCL calls this by itself for the ports of one card, and works without it where it is refused: no
// warning.
Told<int> Net::merge(std::span<const int> devices, Unmerged unmerged) {
  const auto current = started();
  if (!current) return pass_on(current.error());
  std::vector<const Device*> parts;
  for (const int index : devices) {
    const auto found = find_device(**current, index);
    if (!found) return pass_on(found.error());
    parts.push_back(*found);
  }
  if (parts.empty())
    return report(Errc::kInvalidArgument, "makeVDevice got an empty list of devices");
  if (parts.size() == 1) return show(*parts.front(), devices);
  Told<Device> made = merged(parts);
  if (made) {
    list_merged_device(*made);
    const int index = show(std::move(*made), devices);
    log::info("{}: merged by NCCL, exposed to it as device {}", (*device(index))->properties.name,
              index);
    return index;
  }
  if (unmerged == Unmerged::kFails) return pass_on(made.error());
  // Show each one alone: NCCL checks only the number of virtual devices.
  const int first = show(*parts.front(), devices.first(1));
  for (std::size_t i = 1; i < parts.size(); ++i) show(*parts[i], devices.subspan(i, 1));
  return first;
}

Told<Device> Net::merged(std::span<const Device* const> parts) {
  const auto refuse = [](const char* why) {
    log::info("these NICs are not merged: {}", why);
    return tl::unexpected(Reported::earlier(Errc::kInvalidArgument));
  };
  const Device& first = *parts.front();
  std::vector<int> numbers;
  Device out{.properties = {},
             .transport = first.transport,
             .refusal = {},
             .rail = first.rail,
             .plane = first.plane};
  for (const Device* const part : parts) {
    if (part->transport == nullptr) return refuse("one of them refuses all connections");
    if (part->transport != first.transport) return refuse("they belong to different transports");
    if (part->rail != out.rail) out.rail = -1;
    if (part->plane != out.plane) out.plane = -1;
    // NCCL asks at each start to merge the devices of one NIC: no log line.
    if (std::ranges::find(numbers, part->number) != numbers.end())
      return tl::unexpected(Reported::earlier(Errc::kInvalidArgument));
    numbers.push_back(part->number);
  }
  if (std::ranges::any_of(parts,
                          [](const Device* part) { return part->properties.pci_path.empty(); }))
    return refuse("NCCL cannot place a merged device of NICs without a PCI path");
  auto made = first.transport->merge(numbers);
  if (!made) return refuse(made.error().where);
  out.properties = std::move(made->properties);
  out.number = made->number;
  return out;
}

int Net::show(Device device, std::span<const int> parts) {
  device.parts.assign(parts.begin(), parts.end());
  const std::lock_guard lock(mutex_);
  shown_merged_.push_back(&merged_.emplace_back(std::move(device)));
  return static_cast<int>(startup()->devices.size() + shown_merged_.size()) - 1;
}

}  // namespace ztcp::plugin
