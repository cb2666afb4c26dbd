// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/job/nccl_choice.h"

#include <string_view>
#include <strings.h>

#include <fmt/format.h>

#include "tools/ztcp_perf/options.h"

namespace ztcp::perf::job {
namespace {

// "NCCL_NET=ztcp", "NCCL_NET=ztcp (in /etc/nccl.conf)", "NCCL_NET not set".
std::string text_of(const tools::NcclVariables& variables, std::string_view name) {
  const std::string value = variables.value_of(name);
  if (value.empty()) return fmt::format("{} not set", name);
  const auto origin = variables.origins.find(name);
  return fmt::format("{}={}{}", name, value,
                     origin == variables.origins.end() ? "" : " (in " + origin->second + ")");
}

std::string removal_of(const tools::NcclVariables& variables, std::string_view name) {
  const auto origin = variables.origins.find(name);
  return origin == variables.origins.end() ? fmt::format("unset {}", name)
                                           : fmt::format("remove {} from {}", name, origin->second);
}

}  // namespace

NcclChoice nccl_choice(const tools::NcclVariables& variables) {
  NcclChoice out;
  out.variables = text_of(variables, "NCCL_NET_PLUGIN") + ", " + text_of(variables, "NCCL_NET");
  const std::string list = variables.value_of("NCCL_NET_PLUGIN");
  // NCCL takes the first of several.
  const std::string plugin = list.substr(0, list.find(','));
  if (plugin.empty()) {
    out.libraries = {kPluginName};
  } else if (plugin != "none") {
    out.libraries = {plugin};
    if (plugin.find('/') == std::string::npos)
      out.libraries.push_back(fmt::format("libnccl-net-{}.so", plugin));
  } else {
    out.refusal = "NCCL_NET_PLUGIN=none, so NCCL loads no plugin";
    out.mend = removal_of(variables, "NCCL_NET_PLUGIN");
  }
  const std::string net = variables.value_of("NCCL_NET");
  // NCCL compares names without case.
  if (out.refusal.empty() && !net.empty() && strcasecmp(net.c_str(), "ztcp") != 0) {
    out.refusal = fmt::format("NCCL_NET={} chooses another network", net);
    out.mend = removal_of(variables, "NCCL_NET");
  }
  return out;
}

}  // namespace ztcp::perf::job
