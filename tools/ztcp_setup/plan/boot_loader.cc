// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/boot_loader.h"

#include <algorithm>

#include "config/machine/readings.h"
#include "config/machine/text.h"

namespace ztcp::setup {
namespace {

// A variable of the Boot Loader Interface, in UTF-16 behind four bytes of attributes.
constexpr const char* kLoaderInfo =
    "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
constexpr const char* kProxmoxPartitions = "/etc/kernel/proxmox-boot-uuids";

bool is_systemd_boot(Host& host) {
  std::string text = config::text_of(host, kLoaderInfo);
  std::erase_if(text, [](char c) { return c == '\0' || c == ' '; });
  return text.find("systemd-boot") != std::string::npos;
}

bool is_debian(Host& host) {
  const std::string text = config::text_of(host, "/etc/os-release");
  return text.find("debian") != std::string::npos;  // Ubuntu has ID_LIKE=debian.
}

// In a menu or an entry: the words after `key` in the first line that begins with it.
std::vector<std::string> words_behind(const std::string& text, std::string_view key) {
  for (const std::string_view line : config::lines_of(text))
    if (auto words = config::own_words(line); words.size() > 1 && words[0] == key) return words;
  return {};
}

std::vector<std::string> line_of_entries(Host& host) {
  const std::string folder = "/boot/loader/entries";
  for (const std::string& name : host.list(folder)) {
    if (!name.ends_with(".conf")) continue;
    auto words = words_behind(config::text_of(host, folder + "/" + name), "options");
    // "$kernelopts" is stored in GRUB's environment.
    const bool is_known = std::none_of(words.begin(), words.end(),
                                       [](const auto& word) { return word.starts_with('$'); });
    if (!words.empty() && is_known) return words;
  }
  return {};
}

std::string image_of(Host& host, const std::string& release) {
  for (const std::string& path :
       {"/usr/lib/modules/" + release + "/vmlinuz", "/lib/modules/" + release + "/vmlinuz",
        "/boot/vmlinuz-" + release})
    if (config::exists(host, path)) return path;
  return {};
}

}  // namespace

BootLoader boot_loader(Host& host) {
  if (is_systemd_boot(host)) {
    const bool has_line = config::exists(host, kKernelCommandLine);
    if (has_line && host.has_program("proxmox-boot-tool") &&
        config::exists(host, kProxmoxPartitions))
      return BootLoader::kProxmox;
    if (has_line && host.has_program("kernel-install")) return BootLoader::kKernelInstall;
    return host.has_program("grubby") ? BootLoader::kGrubby : BootLoader::kSystemdBoot;
  }
  if (is_debian(host) && host.has_program("update-grub")) return BootLoader::kGrub;
  return host.has_program("grubby") ? BootLoader::kGrubby : BootLoader::kUnknown;
}

std::vector<std::string> line_of_next_boot(Host& host, BootLoader loader) {
  std::vector<std::string> words;
  // Not the running kernel's: it may have been started before an undo, or with other arguments by
  // hand.
  if (loader == BootLoader::kProxmox || loader == BootLoader::kKernelInstall)
    words = config::own_words(config::text_of(host, kKernelCommandLine));
  else if (loader == BootLoader::kGrubby)
    words = line_of_entries(host);
  else if (loader == BootLoader::kGrub)
    words = words_behind(config::text_of(host, "/boot/grub/grub.cfg"), "linux");
  return words.empty() ? config::own_words(config::text_of(host, "/proc/cmdline")) : words;
}

std::vector<std::vector<std::string>> loader_programs(Host& host, BootLoader loader) {
  switch (loader) {
    case BootLoader::kGrub: {
      std::vector<std::vector<std::string>> programs{{"update-grub"}};
      // GRUB on partitions that Proxmox synchronises reads its menu there.
      if (host.has_program("proxmox-boot-tool") && config::exists(host, kProxmoxPartitions))
        programs.push_back({"proxmox-boot-tool", "refresh"});
      // GRUB does not replay the file system's journal.
      programs.push_back({"sync", "--file-system", "/boot"});
      return programs;
    }
    case BootLoader::kProxmox:
      return {{"proxmox-boot-tool", "refresh"}};
    case BootLoader::kKernelInstall: {
      std::vector<std::vector<std::string>> programs;
      std::vector<std::string> releases = host.list("/usr/lib/modules");
      if (releases.empty()) releases = host.list("/lib/modules");
      for (const std::string& release : releases)
        if (const std::string image = image_of(host, release); !image.empty())
          programs.push_back({"kernel-install", "add", release, image});
      return programs;
    }
    case BootLoader::kGrubby:
    case BootLoader::kSystemdBoot:
    case BootLoader::kUnknown:
      break;
  }
  return {};
}

bool is_older_than_boot(Host& host, const std::string& path) {
  const auto words = words_behind(config::text_of(host, "/proc/stat"), "btime");
  const std::int64_t boot =
      words.size() == 2 ? static_cast<std::int64_t>(config::leading_number(words[1])) : 0;
  const FileFacts facts = host.facts(path);
  return boot > 0 && facts.kind == FileKind::kFile && facts.modified_unix_s < boot;
}

}  // namespace ztcp::setup
