// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/check/library.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "config/machine/readings.h"
#include "config/machine/text.h"
#include "config/plugin_mark.h"
#include "core/shell_word.h"

namespace ztcp::setup {
namespace {

using config::Severity;

// Texts that identify plugins by their content.
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

// Adds the folders of an ld.so.conf and its includes; `depth` stops circular includes.
void read_ld_conf(config::Machine& machine, const std::string& path, int depth,
                  std::vector<std::string>& folders) {
  const std::string text = config::text_of(machine, path);
  for (const std::string_view line : config::lines_of(text)) {
    const auto words = config::words_of(line.substr(0, line.find('#')));
    if (words.size() > 1 && words[0] == "include" && depth < 4) {
      if (words[1].find('/') == std::string_view::npos) continue;
      const std::string folder = config::folder_of(std::string(words[1]));
      for (const std::string& name : machine.list(folder))
        if (name.ends_with(".conf")) read_ld_conf(machine, folder + "/" + name, depth + 1, folders);
    } else if (!words.empty() && words[0].starts_with('/')) {
      folders.emplace_back(words[0]);
    }
  }
}

config::Check answer(Severity severity, std::string where, std::string what, std::string mend) {
  return {"library", severity, {std::move(where), std::move(what), std::move(mend)}};
}

// The plugin's folder in packages, the tarball or a build tree, relative to ztcp_setup. Empty:
// absent.
std::string folder_of_ours(const JobEnvironment& job) {
  const std::string program = job.program.substr(0, job.program.rfind('/'));
  const std::string prefix = program.substr(0, program.rfind('/'));
  std::vector<std::string> folders;
  for (const std::string& name : job.machine.list(prefix + "/lib"))
    if (name.ends_with("-linux-gnu")) folders.push_back(prefix + "/lib/" + name);
  folders.push_back(prefix + "/lib64");
  folders.push_back(prefix + "/lib");
  folders.push_back(prefix.substr(0, prefix.rfind('/')) + "/plugin");
  const auto ours = std::find_if(folders.begin(), folders.end(), [&](const std::string& folder) {
    return owner_of_plugin(job.machine, folder + "/" + kPluginFile) == "ztcp";
  });
  return ours == folders.end() ? std::string() : *ours;
}

std::string mend_of_path(const JobEnvironment& job) {
  const std::string folder = folder_of_ours(job);
  if (folder.empty())
    return fmt::format("install libnccl-net-ztcp; sudo find / -xdev -name '{}' lists all copies",
                       kPluginFile);
  return fmt::format("export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH", folder);
}

}  // namespace

std::vector<std::string> loader_folders(const JobEnvironment& job) {
  std::vector<std::string> folders;
  const auto it = job.variables.find("LD_LIBRARY_PATH");
  if (it != job.variables.end())
    for (const std::string_view part : config::split(it->second, ':')) folders.emplace_back(part);
  read_ld_conf(job.machine, "/etc/ld.so.conf", 0, folders);
  for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"})
    folders.emplace_back(folder);
  return folders;
}

std::string owner_of_plugin(config::Machine& machine, const std::string& path) {
  const std::string bytes = config::text_of(machine, path);
  for (const Mark& mark : kMarks)
    if (bytes.find(mark.text) != std::string::npos) return std::string(mark.owner);
  if (path.find("hpcx") != std::string::npos) return "NVIDIA's HPC-X, by its folder";
  return {};
}

config::Check check_library(const JobEnvironment& job) {
  std::vector<std::string> found;
  for (const std::string& folder : loader_folders(job))
    if (config::exists(job.machine, folder + "/" + kPluginFile))
      found.push_back(folder + "/" + kPluginFile);
  if (found.empty())
    return answer(Severity::kWarning, kPluginFile,
                  "not in the loader's path, so NCCL runs without it unless the job sets one",
                  mend_of_path(job));
  const std::string owner = owner_of_plugin(job.machine, found.front());
  if (owner == "ztcp")
    return answer(Severity::kGood, found.front(), "ztcp, the first in the loader's path", "");
  const std::string whose = owner.empty() ? "a plugin of unknown origin" : owner;
  const auto ours = std::find_if(found.begin(), found.end(), [&](const std::string& path) {
    return owner_of_plugin(job.machine, path) == "ztcp";
  });
  if (ours == found.end())
    return answer(Severity::kFault, found.front(),
                  fmt::format("{}; ztcp's is not in the loader's path", whose), mend_of_path(job));
  return answer(
      Severity::kFault, found.front(), fmt::format("{} comes before ztcp's {}", whose, *ours),
      // mv to a name that is not lib*: ldconfig may link lib*.so_bak to the old name again.
      fmt::format("export LD_LIBRARY_PATH={}:$LD_LIBRARY_PATH in the job, or mv {} {}/off-{} && "
                  "ldconfig",
                  shell_word(config::folder_of(*ours)), shell_word(found.front()),
                  shell_word(config::folder_of(found.front())), kPluginFile));
}

config::Check check_named_library(const JobEnvironment& job, const std::string& plugin,
                                  const std::string& variable, const std::string& mend) {
  // Resolved like dlopen(): with a slash a path, else a name in the loader's folders.
  std::vector<std::string> candidates{plugin};
  if (plugin.find('/') == std::string::npos) {
    candidates.clear();
    for (const std::string& name : {plugin, "libnccl-net-" + plugin + ".so"})
      for (const std::string& folder : loader_folders(job))
        candidates.push_back(folder + "/" + name);
  }
  const auto found =
      std::find_if(candidates.begin(), candidates.end(),
                   [&](const std::string& path) { return config::exists(job.machine, path); });
  if (found == candidates.end())
    return answer(
        Severity::kFault, variable,
        fmt::format("\"{}\" is {}, so NCCL loads no plugin", plugin,
                    plugin.find('/') == std::string::npos ? "in none of the loader's folders"
                                                          : "not an existing file"),
        fmt::format("{}; else {}", mend, mend_of_path(job)));
  const std::string owner = owner_of_plugin(job.machine, *found);
  if (owner == "ztcp")
    return answer(Severity::kGood, *found, fmt::format("ztcp, by {}", variable), "");
  return answer(Severity::kFault, variable,
                fmt::format("\"{}\" is {} ({}), so NCCL does not load ztcp", plugin,
                            owner.empty() ? "a plugin of unknown origin" : owner, *found),
                mend);
}

}  // namespace ztcp::setup
