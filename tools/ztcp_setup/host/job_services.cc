// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/host/job_services.h"

#include <algorithm>

#include "config/machine/readings.h"

namespace ztcp::setup {
namespace {

constexpr const char* kJobServices[] = {"slurmd.service",  "docker.service", "containerd.service",
                                        "crio.service",    "k3s.service",    "pbs.service",
                                        "kubelet.service", "podman.service"};

bool has_unit(Host& host, const std::string& name) {
  return std::any_of(unit_folders().begin(), unit_folders().end(), [&](const std::string& folder) {
    return config::exists(host, folder + "/" + name);
  });
}

}  // namespace

const std::vector<std::string>& unit_folders() {
  static const std::vector<std::string> folders{"/etc/systemd/system", "/run/systemd/system",
                                                "/usr/local/lib/systemd/system",
                                                "/usr/lib/systemd/system", "/lib/systemd/system"};
  return folders;
}

std::vector<std::string> job_services(Host& host) {
  std::vector<std::string> services;
  for (const char* service : kJobServices)
    if (has_unit(host, service)) services.emplace_back(service);
  return services;
}

bool limits_memlock(Host& host, const std::string& service) {
  const auto lifts = [&](const std::string& path) {
    return config::text_of(host, path).find("LimitMEMLOCK=infinity") != std::string::npos;
  };
  for (const std::string& folder : unit_folders()) {
    if (lifts(folder + "/" + service)) return false;
    const std::string drop_ins = folder + "/" + service + ".d";
    for (const std::string& name : host.list(drop_ins))
      if (lifts(drop_ins + "/" + name)) return false;
  }
  return true;
}

}  // namespace ztcp::setup
