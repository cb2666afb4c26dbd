// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/env/profile.h"

#include <strings.h>

#include "config/settings.h"

namespace ztcp::env {
namespace {

constexpr const char* kNetwork = "ztcp";
constexpr std::string_view kLibrary = "libnccl-net.so";

bool is_set(const char* value) { return value != nullptr && *value != '\0'; }

bool is_our_plugin(std::string_view value) {
  return value == kNetwork || value.substr(value.rfind('/') + 1) == kLibrary;
}

Profile inactive(std::string why) { return {.text = "sets no variable: " + std::move(why)}; }

}  // namespace

const char* Profile::find(std::string_view name) const {
  if (!is_active) return nullptr;
  if (name == "NCCL_NET") return kNetwork;
  if (name == "NCCL_NET_PLUGIN" && !plugin_path.empty()) return plugin_path.c_str();
  return nullptr;
}

Profile choose(const Facts& facts) {
  const char* const network = facts.variable("NCCL_NET");
  if (is_set(network) && strcasecmp(network, kNetwork) != 0)
    return inactive(std::string("NCCL_NET=") + network + " chooses another network");
  const char* const plugin = facts.variable("NCCL_NET_PLUGIN");
  if (is_set(plugin) && !is_our_plugin(plugin))
    return inactive(std::string("NCCL_NET_PLUGIN=") + plugin + " chooses another network");

  // Without either the plugin refuses to start, and NCCL_NET=ztcp would end the job.
  const char* const named = facts.variable("ZTCP_CONFIG");
  const std::string config = is_set(named) ? named : config::kDefaultPath;
  const char* const transport = facts.variable("ZTCP_TRANSPORT");
  if (!is_set(transport) && !facts.is_file(config))
    return inactive("there is no " + config +
                    "; run ztcp_setup (for kernel sockets: ztcp_setup --transport sockets), or "
                    "export ZTCP_TRANSPORT=sockets");

  Profile out;
  if (!is_set(plugin)) {
    out.plugin_path = facts.folder + "/" + std::string(kLibrary);
    if (!facts.is_file(out.plugin_path)) return inactive("there is no " + out.plugin_path);
    out.text = "NCCL_NET_PLUGIN=" + out.plugin_path + ", ";
  }
  out.is_active = true;
  out.text += std::string("NCCL_NET=") + kNetwork + ": ";
  out.text += is_set(transport) ? std::string("ZTCP_TRANSPORT=") + transport + " is set"
                                : config + " exists";
  return out;
}

}  // namespace ztcp::env
