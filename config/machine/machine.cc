// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/machine.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

namespace ztcp::config {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Calls visit(line) until it returns true.
template <class Visit>
void find_line(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (visit(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::optional<std::string> read_text(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer;
  // Kernel files are small; mountinfo of a busy host is the longest.
  constexpr std::size_t kLimit = 1U << 20;
  ssize_t count = 0;
  while (text.size() < kLimit && (count = ::read(fd, buffer.data(), buffer.size())) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  ::close(fd);
  if (count < 0) return std::nullopt;
  return text;
}

std::optional<std::string> read_line(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  return std::string(trimmed(std::string_view(*text).substr(0, text->find('\n'))));
}

std::optional<std::string> link_name(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(path, error);
  if (error) return std::nullopt;
  return target.filename().string();
}

std::vector<std::string> list_folder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_folder(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

bool may_access(const std::string& path, int mode) {
  return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

std::optional<std::string> status_field(const std::string& proc, std::string_view name) {
  const auto text = read_text(proc + "/self/status");
  if (!text) return std::nullopt;
  std::optional<std::string> value;
  find_line(*text, [&](std::string_view line) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':')
      return false;
    value = trimmed(line.substr(name.size() + 1));
    return true;
  });
  return value;
}

std::optional<std::uint64_t> locked_memory_limit(const std::string& proc) {
  const auto text = read_text(proc + "/self/limits");
  if (!text) return std::nullopt;
  std::optional<std::uint64_t> limit;
  find_line(*text, [&](std::string_view line) {
    constexpr std::string_view kName = "Max locked memory";
    if (!line.starts_with(kName)) return false;
    const std::string_view value = trimmed(line.substr(kName.size()));
    std::uint64_t bytes = 0;
    if (value.starts_with("unlimited"))
      limit = std::numeric_limits<std::uint64_t>::max();
    else if (std::from_chars(value.data(), value.data() + value.size(), bytes).ec == std::errc{})
      limit = bytes;
    return true;
  });
  return limit;
}

bool has_capability(const std::string& proc, unsigned capability) {
  const auto mask = status_field(proc, "CapEff");
  std::uint64_t bits = 0;
  if (!mask ||
      std::from_chars(mask->data(), mask->data() + mask->size(), bits, 16).ec != std::errc{})
    return false;
  return (bits >> capability & 1) != 0;
}

std::string iommu_group(const std::string& sys, const std::string& pci) {
  return link_name(sys + "/bus/pci/devices/" + pci + "/iommu_group").value_or("");
}

std::vector<std::string> interfaces_of(const std::string& pci_folder) {
  std::vector<std::string> names = list_folder(pci_folder + "/net");
  // virtio keeps a device of its own between the PCI function and the interface.
  for (const std::string& child : list_folder(pci_folder))
    if (child.starts_with("virtio"))
      for (const std::string& name : list_folder(pci_folder + "/" + child + "/net"))
        names.push_back(name);
  return names;
}

}  // namespace ztcp::config
