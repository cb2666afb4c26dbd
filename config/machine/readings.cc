// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/readings.h"

#include <charconv>
#include <limits>

#include "config/machine/text.h"

namespace ztcp::config {

std::string text_of(Machine& machine, const std::string& path) {
  return machine.read_value(path).value_or("");
}

std::optional<std::string> read_line(Machine& machine, const std::string& path) {
  const auto text = machine.read_value(path);
  if (!text) return std::nullopt;
  return std::string(trimmed(std::string_view(*text).substr(0, text->find('\n'))));
}

std::optional<std::int64_t> read_number(Machine& machine, const std::string& path) {
  const auto line = read_line(machine, path);
  std::int64_t number = 0;
  if (!line || std::from_chars(line->data(), line->data() + line->size(), number).ec != std::errc{})
    return std::nullopt;
  return number;
}

std::optional<std::string> link_name(Machine& machine, const std::string& path) {
  const auto target = machine.link_target(path);
  if (!target) return std::nullopt;
  return target->substr(target->rfind('/') + 1);
}

bool exists(Machine& machine, const std::string& path) {
  return machine.facts_behind(path).kind != FileKind::kAbsent;
}

bool is_folder(Machine& machine, const std::string& path) {
  return machine.facts_behind(path).kind == FileKind::kFolder;
}

std::optional<std::string> status_field(Machine& machine, std::string_view name) {
  const std::string text = text_of(machine, "/proc/self/status");
  for (const std::string_view line : lines_of(text))
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':'))
      return std::string(trimmed(line.substr(name.size() + 1)));
  return std::nullopt;
}

std::optional<std::uint64_t> locked_memory_limit(Machine& machine) {
  constexpr std::string_view kName = "Max locked memory";
  const std::string text = text_of(machine, "/proc/self/limits");
  for (const std::string_view line : lines_of(text)) {
    if (!line.starts_with(kName)) continue;
    const auto words = words_of(line.substr(kName.size()));
    if (words.empty()) return std::nullopt;
    return words[0] == "unlimited" ? std::numeric_limits<std::uint64_t>::max()
                                   : parse_number(words[0]);
  }
  return std::nullopt;
}

bool has_capability(Machine& machine, unsigned capability) {
  const auto mask = status_field(machine, "CapEff");
  std::uint64_t bits = 0;
  if (!mask ||
      std::from_chars(mask->data(), mask->data() + mask->size(), bits, 16).ec != std::errc{})
    return false;
  return (bits >> capability & 1) != 0;
}

std::string pci_folder(std::string_view pci) { return "/sys/bus/pci/devices/" + std::string(pci); }

std::string iommu_group(Machine& machine, std::string_view pci) {
  return link_name(machine, pci_folder(pci) + "/iommu_group").value_or("");
}

std::vector<std::string> interfaces_of(Machine& machine, std::string_view pci) {
  const std::string folder = pci_folder(pci);
  std::vector<std::string> names = machine.list(folder + "/net");
  // These drivers have their own device between the PCI function and the interface.
  for (const std::string& child : machine.list(folder))
    if (child.starts_with("virtio") || child.starts_with("vmbus"))
      for (const std::string& name : machine.list(folder + "/" + child + "/net"))
        names.push_back(name);
  return names;
}

}  // namespace ztcp::config
