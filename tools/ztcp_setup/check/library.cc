// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/check/library.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "config/machine/machine.h"
#include "config/plugin_mark.h"
#include "transport/core/shell_word.h"

namespace ztcp::setup {
namespace {

using config::Severity;

// What plugins say of themselves in their own bytes.
struct Mark {
  std::string_view text;
  std::string_view owner;
};
constexpr Mark kMarks[] = {
    {config::kPluginMark, "ztcp"},
    {"aws-ofi-nccl", "aws-ofi-nccl (libfabric, as AWS installs it)"},
    {"NET/OFI", "aws-ofi-nccl (libfabric, as AWS installs it)"},
    {"sharp_coll_init", "nccl-rdma-sharp (NVIDIA's HPC-X)"},
    {"NET/UCX", "nccl-rdma-sharp (NVIDIA's HPC-X)"},
    {"NET/FasTrak", "Google's FasTrak"},
    {"GPUDirectTCPX", "Google's GPUDirect-TCPX"},
    {"NET/gIB", "Google's gIB"},
};

// Folders of an ld.so.conf and of what it includes; `depth` ends includes in a circle.
void read_ld_conf(const std::string& base, const std::string& path, int depth,
                  std::vector<std::string>& folders) {
  std::istringstream text(config::read_text(base + path).value_or(""));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string first, second;
    words >> first >> second;
    if (first == "include" && depth < 4) {
      const auto slash = second.rfind('/');
      if (slash == std::string::npos) continue;
      const std::string folder = second.substr(0, slash);
      for (const std::string& name : config::list_folder(base + folder))
        if (name.ends_with(".conf")) read_ld_conf(base, folder + "/" + name, depth + 1, folders);
    } else if (first.starts_with('/')) {
      folders.push_back(first);
    }
  }
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

config::Check answer(Severity severity, std::string where, std::string what, std::string mend) {
  return {"library", severity, {std::move(where), std::move(what), std::move(mend)}};
}

std::string base_of(const Surroundings& surroundings) {
  return surroundings.root == "/" ? "" : surroundings.root;
}

// Where packages, the tarball and a build put the plugin, seen from ztcp_setup. Empty: not there.
std::string folder_of_ours(const Surroundings& surroundings) {
  const std::string base = base_of(surroundings);
  const std::string program = surroundings.program.substr(0, surroundings.program.rfind('/'));
  const std::string prefix = program.substr(0, program.rfind('/'));
  std::vector<std::string> folders;
  for (const std::string& name : config::list_folder(base + prefix + "/lib"))
    if (name.ends_with("-linux-gnu")) folders.push_back(prefix + "/lib/" + name);
  folders.push_back(prefix + "/lib64");
  folders.push_back(prefix + "/lib");
  folders.push_back(prefix.substr(0, prefix.rfind('/')) + "/plugin");
  const auto ours = std::find_if(folders.begin(), folders.end(), [&](const std::string& folder) {
    return owner_of_plugin(base + folder + "/" + kPluginFile) == "ztcp";
  });
  return ours == folders.end() ? std::string() : *ours;
}

std::string mend_of_path(const Surroundings& surroundings) {
  const std::string folder = folder_of_ours(surroundings);
  if (folder.empty())
    return fmt::format("install libnccl-net-ztcp; sudo find / -xdev -name '{}' shows where any is",
                       kPluginFile);
  return fmt::format("export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH", folder);
}

}  // namespace

std::vector<std::string> loader_folders(const Surroundings& surroundings) {
  std::vector<std::string> folders;
  const auto it = surroundings.variables.find("LD_LIBRARY_PATH");
  if (it != surroundings.variables.end()) {
    std::istringstream parts(it->second);
    for (std::string part; std::getline(parts, part, ':');)
      if (!part.empty()) folders.push_back(part);
  }
  read_ld_conf(base_of(surroundings), "/etc/ld.so.conf", 0, folders);
  for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"})
    folders.emplace_back(folder);
  return folders;
}

std::string owner_of_plugin(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const Mark& mark : kMarks)
    if (bytes.find(mark.text) != std::string::npos) return std::string(mark.owner);
  if (path.find("hpcx") != std::string::npos) return "NVIDIA's HPC-X, by its folder";
  return {};
}

config::Check check_library(const Surroundings& surroundings) {
  const std::string base = base_of(surroundings);
  std::vector<std::string> found;
  for (const std::string& folder : loader_folders(surroundings))
    if (config::exists(base + folder + "/" + kPluginFile))
      found.push_back(folder + "/" + kPluginFile);
  if (found.empty())
    return answer(Severity::kWarning, kPluginFile,
                  "not in the loader's path, so NCCL runs without it unless the job sets one",
                  mend_of_path(surroundings));
  const std::string owner = owner_of_plugin(base + found.front());
  if (owner == "ztcp")
    return answer(Severity::kGood, found.front(), "ztcp, the first in the loader's path", "");
  const std::string whose = owner.empty() ? "a plugin of unknown origin" : owner;
  const auto ours = std::find_if(found.begin(), found.end(), [&](const std::string& path) {
    return owner_of_plugin(base + path) == "ztcp";
  });
  if (ours == found.end())
    return answer(Severity::kFault, found.front(),
                  fmt::format("{}; ztcp's is not in the loader's path", whose),
                  mend_of_path(surroundings));
  return answer(
      Severity::kFault, found.front(), fmt::format("{} comes before ztcp's {}", whose, *ours),
      // Of a lib*.so_bak ldconfig may make a link with the old name again.
      fmt::format("export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH in the job, or mv {} {}/off-{} && "
                  "ldconfig",
                  shell_word(folder_of(*ours)), shell_word(found.front()),
                  shell_word(folder_of(found.front())), kPluginFile));
}

}  // namespace ztcp::setup
