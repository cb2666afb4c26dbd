// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "config/environment.h"
#include "config/schema.h"
#include "tools/common/quantity.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

constexpr const char* kExamples = R"(
Examples:
  ztcp_setup --dry-run            show the NIC for each GPU, and every change that set-up would make
  sudo ztcp_setup --group ztcp    set this host up; members of the group run jobs without root
  sudo ztcp_setup --nics all --per-gpu 1G --spare 0
                                  set up a host without GPUs: every usable NIC, 1 GiB for each
  sudo ztcp_setup --keep eth3     set this host up, but leave eth3 to the kernel
  sudo ztcp_setup --speed 50000   set up a cloud machine with NICs that report no speed
  sudo ztcp_setup --transport sockets
                                  leave all NICs to the kernel, and use its TCP
  sudo ztcp_setup --no-iommu      set up a machine without an IOMMU; read about host classes first
  ztcp_setup --check              compare this machine with the config, and show how to fix faults
  ztcp_setup --check --json       the same for scripts
  sudo ztcp_setup --add           take NICs that were attached since set-up
  sudo ztcp_setup --undo          restore every NIC, address, page and file
  sudo ztcp_setup --undo --dry-run
                                  show the steps of undo
  ztcp_setup --local 4            four ranks inside this machine: no root, NIC or GPU needed

Exit status: 0 good, 1 warnings, 2 faults, 3 no usable config or plan, 64 wrong command line.
`man ztcp_setup` has more; `man ztcp.conf` describes the config file.
)";

// Shows an option in --help as its name, the name of its value, and its effect. Options that it
// excludes are not listed: using them together gives an error.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(34); }

  std::string make_option_opts(const CLI::Option* option) const override {
    // CLI11 adds the choices to the name of the value: "KIND:{mesh,switch}".
    const std::string type = option->get_type_name();
    std::string text = type.empty() ? "" : " " + type.substr(0, type.find(":{"));
    if (!option->get_default_str().empty()) text += "=" + option->get_default_str();
    return text;
  }
};

// Parsed options before interpretation.
struct Raw {
  Options options;
  bool dry_run = false;
  bool check = false;
  bool undo = false;
  bool add = false;
  bool boot = false;
  std::vector<std::string> keep;
  std::vector<std::string> take;
  std::vector<std::string> speeds;
  std::string transport;
  std::string queues;
  std::string nics;
  std::string pages;
  std::string per_gpu;
  std::string spare;
  std::string topology = "mesh";
};

// Accepts whole MiB in the range of a key of [hugepages].
auto is_size_for(const char* name) {
  return [&key = *config::find_key("hugepages", name)](const std::string& text) -> std::string {
    const auto bytes = tools::parse_bytes(text);
    if (!bytes || *bytes % (1U << 20U) != 0)
      return fmt::format("{} is not a size in whole MiB, such as 5G or 512M", text);
    const auto mib = static_cast<std::int64_t>(*bytes >> 20U);
    if (mib >= key.min && mib <= key.max) return {};
    return fmt::format("{} is outside {}M..{}M", text, key.min, key.max);
  };
}

// Catches "$NIC" in a script without that variable.
void refuse_empty_names(const CLI::App& app) {
  for (const char* option : {"--keep", "--take", "--user", "--group", "--config"})
    for (const std::string& name : app.get_option(option)->results())
      if (name.empty()) throw CLI::ValidationError(option, "the name is empty");
}

std::string is_count(const std::string& text) {
  if (text == "all") return {};
  const auto number = tools::parse_bytes(text);
  if (number && *number >= 1 && *number <= 64 &&
      text.find_first_not_of("0123456789") == std::string::npos)
    return {};
  return fmt::format("{} is neither a number from 1 to 64 nor all", text);
}

// Checks a PCI NIC's number of queues; --local checks a mesh's itself.
std::string is_queues(const std::string& text) {
  const config::Key& key = *config::find_key("nic", "queues");
  const auto number = tools::parse_bytes(text);
  if (text == key.choices ||
      (number && *number > 0 && text.find_first_not_of("0123456789") == std::string::npos))
    return {};
  return fmt::format("{} is neither a number from {} to {} nor {}", text, key.min, key.max,
                     key.choices);
}

// Parses "100000" or "eth1=100000": the name, empty for every NIC, and the speed; absent:
// malformed.
std::optional<std::pair<std::string, std::uint32_t>> parse_speed(const std::string& text) {
  const auto equals = text.rfind('=');
  const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
  const char* const first = text.data() + (equals == std::string::npos ? 0 : equals + 1);
  const char* const last = text.data() + text.size();
  std::uint32_t mbps = 0;
  const auto [end, error] = std::from_chars(first, last, mbps);
  const config::Key& key = *config::find_key("nic", "speed_mbps");
  if (error != std::errc{} || end != last || mbps == 0 || mbps > key.max || equals == 0)
    return std::nullopt;
  return std::pair(name, mbps);
}

std::string is_speed(const std::string& text) {
  if (parse_speed(text)) return {};
  return fmt::format("{} is neither a speed in Mb/s, from 1 to {}, nor NIC=SPEED", text,
                     config::find_key("nic", "speed_mbps")->max);
}

std::uint32_t mib_of(const std::string& text) {
  return static_cast<std::uint32_t>(*tools::parse_bytes(text) >> 20U);
}

void add_commands(CLI::App& app, Raw& raw) {
  constexpr const char* kGroup = "Actions (default: set this host up)";
  auto* dry =
      app.add_flag("--dry-run", raw.dry_run,
                   "Show the changes that set-up, --add or --undo would make; change nothing");
  auto* check =
      app.add_flag("--check", raw.check, "Compare the config with this machine; change nothing");
  auto* add = app.add_flag("--add", raw.add, "Take NICs that were attached since set-up");
  auto* undo = app.add_flag("--undo", raw.undo,
                            "Restore every NIC, address, page and file that set-up changed");
  auto* boot = app.add_flag("--boot", raw.boot,
                            "Apply again the settings that a reboot loses; for the systemd unit");
  auto* local = app.add_option("--local", raw.options.local.ranks,
                               "Write a fabric of N ranks inside this machine")
                    ->type_name("N");
  for (CLI::Option* one : {dry, check, add, undo, boot, local}) one->group(kGroup);
  check->excludes(dry)->excludes(add)->excludes(undo)->excludes(boot)->excludes(local);
  undo->excludes(add)->excludes(boot)->excludes(local);
  boot->excludes(dry)->excludes(add)->excludes(local);
  local->excludes(dry)->excludes(add);
}

void add_selection(CLI::App& app, Raw& raw) {
  constexpr const char* kGroup = "NICs and transport";
  PlanRequest& request = raw.options.request;
  app.add_option("--keep", raw.keep, "Leave this NIC to the kernel (repeatable)")
      ->type_name("IFNAME|PCI|DEVICE")
      ->group(kGroup);
  app.add_option("--take", raw.take,
                 "Take this NIC although it carries a default route, if the machine has a better "
                 "one (repeatable)")
      ->type_name("IFNAME|PCI|DEVICE")
      ->group(kGroup);
  app.add_option("--transport", raw.transport,
                 "ustack: ztcp takes the NICs over. xdp: ztcp's own TCP over AF_XDP, the NICs stay "
                 "with the kernel. mlx5: the same over DPDK's driver of ConnectX NICs. "
                 "sockets: the kernel's TCP, no NIC is taken. verbs: RDMA "
                 "devices; default: as in the config, else ustack where each GPU can have a NIC")
      ->type_name("NAME")
      ->check(CLI::IsMember({"ustack", "xdp", "mlx5", "sockets", "verbs"}))
      ->group(kGroup);
  app.add_option("--nics", raw.nics,
                 "Take N NICs, or all, on a host without GPUs; any process may use them")
      ->type_name("N|all")
      ->check(is_count)
      ->group(kGroup);
  app.add_option("--speed", raw.speeds,
                 "Speed in Mb/s to tell NCCL for every NIC, or for this one (repeatable)")
      ->type_name("[NIC=]MBPS")
      ->check(is_speed)
      ->group(kGroup);
  app.add_option("--queues", raw.queues,
                 "Queues of each NIC, each with a poller. For NICs on PCI, default 1 (more were "
                 "tested on emulated devices only); auto: by speed and CPUs. With --local, for a "
                 "mesh; default: a rank's CPUs beyond two, at most 4, or 6 with two ranks")
      ->type_name("N|auto")
      ->check(is_queues)
      ->group(kGroup);
  auto* iommu = app.add_flag("--iommu", request.ask_iommu,
                             "Switch the IOMMU on at the next boot, where none is in use")
                    ->group(kGroup);
  app.add_flag("--no-iommu", request.no_iommu,
               "Set up without an IOMMU: NICs could then reach any memory of this machine")
      ->excludes(iommu)
      ->group(kGroup);
}

void add_resources(CLI::App& app, Raw& raw) {
  constexpr const char* kGroup = "Hugepages";
  app.add_option("--pages", raw.pages, "Page size; default: 1G where the machine supports it")
      ->type_name("1G|2M")
      ->check(CLI::IsMember({"1G", "2M"}))
      ->group(kGroup);
  app.add_option("--per-gpu", raw.per_gpu, "Memory for each GPU, or NIC without one; default: 5G")
      ->type_name("SIZE")
      ->check(is_size_for("per_process_mib"))
      ->group(kGroup);
  app.add_option("--spare", raw.spare, "Further memory for the host; default: 10G")
      ->type_name("SIZE")
      ->check(is_size_for("spare_mib"))
      ->group(kGroup);
}

void add_users(CLI::App& app, Raw& raw) {
  constexpr const char* kGroup = "Rights of jobs";
  app.add_option("--user", raw.options.request.user, "Let this user run jobs, beside root")
      ->type_name("NAME")
      ->group(kGroup);
  app.add_option("--group", raw.options.request.group,
                 "Let members of this group run jobs, beside root")
      ->type_name("NAME")
      ->group(kGroup);
}

void add_local(CLI::App& app, Raw& raw) {
  constexpr const char* kGroup = "Options of --local";
  auto* local = app.get_option("--local");
  app.add_option("--dir", raw.options.local.folder, "Folder for the local fabric")
      ->type_name("DIR")
      ->capture_default_str()
      ->needs(local)
      ->group(kGroup);
  app.add_option(
         "--topology", raw.topology,
         "mesh: a direct connection between each two ranks; switch: all through ztcp_switch")
      ->type_name("KIND")
      ->check(CLI::IsMember({"mesh", "switch"}))
      ->capture_default_str()
      ->needs(local)
      ->group(kGroup);
  app.add_option("--mtu", raw.options.local.mtu_bytes,
                 "Largest IP packet of the local fabric, in bytes")
      ->type_name("N")
      ->capture_default_str()
      ->needs(local)
      ->group(kGroup);
}

// Options about taken NICs have no effect where none is taken.
void refuse_options_of_ustack(const CLI::App& app, const Raw& raw) {
  if (raw.transport.empty() || raw.transport == "ustack") return;
  for (const char* option :
       {"--queues", "--iommu", "--no-iommu", "--pages", "--per-gpu", "--spare"})
    if (app.count(option) > 0)
      throw CLI::ValidationError(option, "has no effect with --transport " + raw.transport);
}

void refuse_queues(const CLI::App& app, const Raw& raw) {
  const config::Key& key = *config::find_key("nic", "queues");
  const bool local = app.count("--local") > 0;
  if (local && raw.queues == key.choices)
    throw CLI::ValidationError("--queues", "auto is for NICs on PCI; leave it out with --local");
  if (!local && !raw.queues.empty() && raw.queues != key.choices &&
      static_cast<std::int64_t>(*tools::parse_bytes(raw.queues)) > key.max)
    throw CLI::ValidationError("--queues",
                               fmt::format("{} is outside {}..{}", raw.queues, key.min, key.max));
}

// Options without effect are refused: the user expects something of them.
void confine_options(CLI::App& app) {
  const auto confine = [&](std::initializer_list<const char*> options,
                           std::initializer_list<const char*> strangers) {
    for (const char* option : options)
      for (const char* stranger : strangers)
        app.get_option(option)->excludes(app.get_option(stranger));
  };
  confine({"--keep", "--take", "--transport", "--nics", "--speed", "--iommu", "--no-iommu"},
          {"--check", "--undo", "--boot", "--local"});
  confine({"--queues"}, {"--check", "--undo", "--boot"});
  // When NICs are added, the reserved memory and the accounts stay as set-up decided.
  confine({"--pages", "--per-gpu", "--spare", "--user", "--group"},
          {"--check", "--undo", "--boot", "--local", "--add"});
  confine({"--config"}, {"--local"});
}

Options meaning_of(const CLI::App& app, Raw& raw) {
  Options options = std::move(raw.options);
  PlanRequest& request = options.request;
  if (raw.add) options.command = Command::kAdd;
  if (raw.boot) options.command = Command::kBoot;
  request.mode = raw.add ? Mode::kAdd : Mode::kFresh;
  if (raw.dry_run) options.command = Command::kDryRun;
  if (raw.check) options.command = Command::kCheck;
  if (raw.undo) options.command = raw.dry_run ? Command::kUndoDryRun : Command::kUndo;
  if (app.count("--local") > 0) options.command = Command::kLocal;
  if (raw.topology == "switch") options.local.topology = LocalTopology::kSwitch;
  if (!raw.transport.empty())
    request.transport = raw.transport == "sockets" ? Transport::kSockets
                        : raw.transport == "xdp"   ? Transport::kXdp
                        : raw.transport == "mlx5"  ? Transport::kMlx5
                        : raw.transport == "verbs" ? Transport::kVerbs
                                                   : Transport::kUstack;
  request.selection.keep = {raw.keep.begin(), raw.keep.end()};
  request.selection.take = {raw.take.begin(), raw.take.end()};
  for (const std::string& text : raw.speeds) {
    const auto [name, mbps] = *parse_speed(text);
    if (name.empty())
      request.speed_mbps = mbps;
    else
      request.speeds_mbps[name] = mbps;
  }
  if (!raw.queues.empty() && options.command == Command::kLocal)
    options.local.queues = static_cast<unsigned>(*tools::parse_bytes(raw.queues));
  else if (!raw.queues.empty())
    request.queues = raw.queues == "auto"
                         ? config::kAutoQueues
                         : static_cast<std::uint32_t>(*tools::parse_bytes(raw.queues));
  if (const char* ssh = std::getenv("SSH_CONNECTION"); ssh != nullptr)
    request.selection.ssh_connection = ssh;
  if (!raw.nics.empty())
    request.nics = raw.nics == "all" ? PlanRequest::kAllNics
                                     : static_cast<unsigned>(*tools::parse_bytes(raw.nics));
  if (!raw.pages.empty()) request.page_kib = raw.pages == "1G" ? 1048576U : 2048U;
  if (!raw.per_gpu.empty()) request.per_gpu_mib = mib_of(raw.per_gpu);
  if (!raw.spare.empty()) request.spare_mib = mib_of(raw.spare);
  return options;
}

}  // namespace

Result<Options, int> parse_options(int argc, char** argv) {
  CLI::App app("Prepares this machine for ztcp and writes the config that the plugin reads.",
               "ztcp_setup");
  app.footer(kExamples);
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "ztcp_setup " ZTCP_VERSION);
  Raw raw;
  raw.options.request.config_path = config::config_path();
  add_commands(app, raw);
  add_selection(app, raw);
  add_resources(app, raw);
  add_users(app, raw);
  app.add_option("--config", raw.options.request.config_path,
                 "The config file; default: $ZTCP_CONFIG, else the standard path")
      ->type_name("FILE");
  app.add_flag("--json", raw.options.json, "Print JSON");
  add_local(app, raw);
  confine_options(app);
  try {
    app.parse(argc, argv);
    refuse_empty_names(app);
    refuse_options_of_ustack(app, raw);
    refuse_queues(app, raw);
  } catch (const CLI::ParseError& error) {
    const bool json =
        std::any_of(argv, argv + argc, [](std::string_view word) { return word == "--json"; });
    if (json && error.get_exit_code() != 0)
      return tl::unexpected<int>(refuse(
          {"command line", error.what(), "ztcp_setup --help lists the options"}, true, kExitUsage));
    return tl::unexpected<int>(app.exit(error) == 0 ? kExitGood : kExitUsage);
  }
  return meaning_of(app, raw);
}

}  // namespace ztcp::setup
