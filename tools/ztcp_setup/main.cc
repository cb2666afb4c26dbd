// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ztcp_setup: prepares a machine for ztcp. The command line; what it does is in the other files.
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "config/load.h"
#include "tools/ztcp_setup/local.h"

namespace {

using namespace ztcp;

// How bad it is, for scripts.
enum ExitCode : int { kGood = 0, kWarnings = 1, kFaults = 2, kUnusable = 3 };

constexpr const char* kExamples =
    "\nExamples:\n"
    "  ztcp_setup --local 4              four ranks inside this machine: no root, no NIC, no GPU\n"
    "  ztcp_setup --local 2 --topology pair --dir /tmp/pair\n"
    "                                    two ranks, joined directly, without ztcp_switch\n"
    "\n`man ztcp_setup` has more; `man ztcp.conf` describes the file that is written.\n";

void print_problem(const config::Problem& problem) {
  fmt::print(stderr, "ztcp_setup: {}: {}\n", problem.where, problem.what);
  if (!problem.mend.empty()) fmt::print(stderr, "  mend: {}\n", problem.mend);
}

int set_up_local(const setup::LocalRequest& request) {
  const auto fabric = setup::plan_local(request);
  if (!fabric) return print_problem(fabric.error()), kUnusable;
  if (const auto written = setup::write_local(*fabric); !written)
    return print_problem(written.error()), kUnusable;
  fmt::print("{} NICs, MTU {}, {}..{}, in {}\n", fabric->nics.size(), request.mtu_bytes,
             to_string(fabric->nics.front().address), to_string(fabric->nics.back().address),
             fabric->path);
  fmt::print("setup successfully\n\nNext:\n");
  if (request.topology == setup::LocalTopology::kSwitch)
    fmt::print("  ztcp_switch --config {} &\n", fabric->path);
  fmt::print(
      "  ztcp_perf --plugin ./libnccl-net.so --config {} --ranks {} --op all_reduce --check\n",
      fabric->path, request.ranks);
  return kGood;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Prepares this machine for ztcp and writes the config that the plugin reads.",
               "ztcp_setup");
  app.footer(kExamples);
  app.get_formatter()->column_width(34);

  setup::LocalRequest local;
  auto* local_option =
      app.add_option("--local", local.ranks, "Write a fabric of N ranks inside this machine")
          ->type_name("N");
  app.add_option("--dir", local.folder, "Folder for the local fabric")
      ->type_name("DIR")
      ->capture_default_str()
      ->needs(local_option);
  std::string topology = "switch";
  app.add_option("--topology", topology,
                 "switch: all ranks meet in ztcp_switch; pair: two ranks joined directly")
      ->check(CLI::IsMember({"switch", "pair"}))
      ->capture_default_str()
      ->needs(local_option);
  app.add_option("--mtu", local.mtu_bytes, "Largest IP packet of the local fabric, in bytes")
      ->type_name("N")
      ->capture_default_str()
      ->needs(local_option);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kGood : kUnusable;
  }

  if (local_option->count() > 0) {
    local.topology =
        topology == "pair" ? setup::LocalTopology::kPair : setup::LocalTopology::kSwitch;
    return set_up_local(local);
  }
  print_problem({"ztcp_setup", "taking over NICs is not part of this version; nothing was changed",
                 "ztcp_setup --local N writes a fabric inside this machine"});
  return kUnusable;
}
