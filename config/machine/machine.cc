// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/machine.h"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include "config/machine/text.h"

namespace ztcp::config {

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

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

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
