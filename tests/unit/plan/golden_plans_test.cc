// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The plans of devices over a grid of machines, ranks, speeds, quotas and modes, as one text file
// (tests/data/plans/plans.txt): its diff shows the effects of a changed rule. To write it anew:
// ZTCP_UPDATE_GOLDEN=1 test-plan.
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/plan/planned.h"

namespace ztcp::plan {
namespace {

constexpr std::array<std::size_t, 12> kCpus = {1, 2, 3, 4, 7, 8, 15, 16, 32, 64, 124, 128};
// CPUs of a machine with a mask of that size; 0: the mask is the machine.
constexpr std::array<std::size_t, 2> kMachines = {0, 124};

std::string speed_text(std::uint32_t mbps) {
  return mbps == 0 ? "speed ?" : fmt::format("{}G", mbps / 1000);
}

std::string quota_text(std::size_t quota) {
  return quota == 0 ? "" : fmt::format(", quota {}", quota);
}

// One row: the cells of all CPU counts.
template <class CellOf>
void add_row(std::string& text, const std::string& name, std::size_t machine, CellOf&& cell_of) {
  text += fmt::format("{:<44}", name);
  for (const std::size_t cpus : kCpus) {
    const bool fits = machine == 0 || cpus <= machine;
    text += fmt::format(" {:<9}", fits ? cell_of(cpus, machine == 0 ? cpus : machine) : ".");
  }
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
}

void add_head(std::string& text, const std::string& title) {
  text += fmt::format("\n# {}\n{:<44}", title, "CPUs of the mask");
  for (const std::size_t cpus : kCpus) text += fmt::format(" {:<9}", cpus);
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
}

struct Mode {
  const char* name;
  bool tunes_channels;
  config::PollerMode mode;
  std::int32_t workers;
};

void add_sockets(std::string& text) {
  constexpr auto kAuto = config::PollerMode::kAuto;
  for (const Mode& mode : {Mode{"tuner", true, kAuto, -1}, Mode{"no tuner", false, kAuto, -1},
                           Mode{"tuner, dedicated", true, config::PollerMode::kDedicated, -1},
                           Mode{"tuner, workers = 4", true, kAuto, 4}}) {
    for (const std::size_t machine : kMachines) {
      add_head(text, fmt::format("kernel sockets, {}, {}: lanes/helpers/flows/NCCL devices",
                                 mode.name, machine == 0 ? "all CPUs" : "a mask on 124 CPUs"));
      config::Fabric fabric;
      fabric.tunes_channels = mode.tunes_channels;
      fabric.poller.mode = mode.mode;
      fabric.poller.workers = mode.workers;
      for (const std::size_t devices : {1U, 2U, 3U})
        for (const std::size_t ranks : {1U, 2U, 8U})
          for (const std::uint32_t speed : {0U, 10'000U, 100'000U})
            for (const std::size_t quota : {0U, 4U}) {
              if ((devices != 1 || quota != 0) && (speed != 0 || ranks == 2)) continue;
              add_row(text,
                      fmt::format("{} ranks, {} interface{}, {}{}", ranks, devices,
                                  devices == 1 ? "" : "s", speed_text(speed), quota_text(quota)),
                      machine, [&](std::size_t cpus, std::size_t online) {
                        return sockets_cell(fabric, {cpus, online, quota, ranks}, devices, speed);
                      });
            }
    }
  }
}

void add_pci(std::string& text) {
  for (const Mode& mode : {Mode{"auto", true, config::PollerMode::kAuto, -1},
                           Mode{"dedicated", true, config::PollerMode::kDedicated, -1},
                           Mode{"shared", true, config::PollerMode::kShared, -1},
                           Mode{"workers = 4", true, config::PollerMode::kAuto, 4}}) {
    for (const std::size_t machine : kMachines) {
      add_head(text, fmt::format("PCI, {}, {}: lanes/helpers/Dedicated or Shared, spin us",
                                 mode.name, machine == 0 ? "all CPUs" : "a mask on 124 CPUs"));
      config::Fabric fabric;
      fabric.poller.mode = mode.mode;
      fabric.poller.workers = mode.workers;
      for (const std::size_t nics : {1U, 8U})
        for (const std::uint32_t queues : {1U, 4U, config::kAutoQueues})
          for (const std::uint32_t speed : {0U, 100'000U})
            for (const std::size_t quota : {0U, 4U}) {
              if (speed != 0 && queues != config::kAutoQueues) continue;
              add_row(text,
                      fmt::format("{} NIC{}, queues {}, {}{}", nics, nics == 1 ? "" : "s",
                                  queues == config::kAutoQueues ? "auto" : std::to_string(queues),
                                  speed_text(speed), quota_text(quota)),
                      machine, [&](std::size_t cpus, std::size_t online) {
                        config::Nic nic;
                        nic.driver = config::NicDriver::kPci;
                        nic.queues = queues;
                        nic.speed_mbps = speed;
                        fabric.nics.assign(nics, nic);
                        return userspace_cell(fabric, {cpus, online, quota, nics});
                      });
            }
    }
  }
}

void add_mesh(std::string& text) {
  for (const std::size_t machine : kMachines) {
    add_head(text, fmt::format("mesh, {}: lanes/helpers/Dedicated or Shared, spin us/NCCL devices",
                               machine == 0 ? "all CPUs" : "a mask on 124 CPUs"));
    config::Fabric fabric;
    fabric.tunes_channels = true;
    for (const std::size_t nics : {2U, 4U, 8U})
      for (const std::uint32_t queues : {1U, 2U, 4U, 6U})
        for (const std::size_t quota : {0U, 4U}) {
          if (quota != 0 && queues != 4) continue;
          add_row(text, fmt::format("{} NICs, queues {}{}", nics, queues, quota_text(quota)),
                  machine, [&](std::size_t cpus, std::size_t online) {
                    config::Nic nic;
                    nic.driver = config::NicDriver::kMemif;
                    nic.memif_role = config::MemifRole::kMesh;
                    nic.memif_socket = "mesh";
                    nic.queues = queues;
                    fabric.nics.assign(nics, nic);
                    for (std::size_t i = 0; i < nics; ++i)
                      fabric.nics[i].name = "ztcp" + std::to_string(i);
                    return userspace_cell(fabric, {cpus, online, quota, nics}) +
                           fmt::format("/{}", mesh_devices(fabric));
                  });
        }
  }
}

std::string all_plans() {
  std::string text = "Written by tests/unit/plan/golden_plans_test.cc.\n";
  add_sockets(text);
  add_pci(text);
  add_mesh(text);
  return text;
}

TEST(GoldenPlans, MatchTheStoredFile) {
  const std::string path = ZTCP_PLANS "/plans.txt";
  const std::string now = all_plans();
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (std::getenv("ZTCP_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << now;
  std::ostringstream stored;
  stored << std::ifstream(path).rdbuf();
  EXPECT_EQ(now, stored.str()) << "ZTCP_UPDATE_GOLDEN=1 writes " << path
                               << "; git diff then shows the effects of the rules";
}

}  // namespace
}  // namespace ztcp::plan
