// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/job/local.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sched.h>
#include <strings.h>
#include <system_error>
#include <unistd.h>

#include "config/environment.h"
#include "core/local_addresses.h"
#include "tools/common/nccl_variables.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/job/nccl_choice.h"
#include "tools/ztcp_perf/plugin_log.h"
#include "tools/ztcp_perf/probe/local_facts.h"
#include "transport/sockets/kernel/interface_choice.h"

namespace ztcp::perf::job {
namespace {

constexpr const char* kName = "ztcp";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string machine_key() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/net", error).string();
}

int usable_cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

// The interface that NCCL's sockets take first.
void choose_plain_address(RankFacts& facts) {
  const auto choice = sockets::choose_interfaces(sockets::interface_request(), local_addresses());
  if (choice.taken.empty()) fail("no interface that is up fits {}", choice.by);
  const LocalAddress& first = choice.taken.front();
  facts.plain_address = to_string(first.prefix.address);
  facts.plain_reason = fmt::format("{}, by {}", first.interface, choice.by);
}

// "NET/ztcp : text" -> "text"
std::string without_prefix(const std::string& text) {
  const std::size_t at = text.find(" : ");
  return text.starts_with("NET/") && at != std::string::npos ? text.substr(at + 3) : text;
}

}  // namespace

std::string last_warning() {
  std::string last;
  for (const LogLine& line : kept_log())
    if (line.is_warning) last = without_prefix(line.text);
  return last;
}

LocalPlugin::LocalPlugin(const Options& options) {
  facts_.host = host_name();
  facts_.machine = machine_key();
  facts_.version = ZTCP_VERSION;
  facts_.cpus = usable_cpus();
  open(options);
  start(options);
  choose_plain_address(facts_);
}

LocalPlugin::~LocalPlugin() {
  if (net_) net_->finalize();
}

void LocalPlugin::open(const Options& options) {
  if (!options.plugin.empty()) setenv("NCCL_NET_PLUGIN", options.plugin.c_str(), 1);
  const auto variables = tools::read_nccl_variables(tools::variables_of(environ), text_of);
  for (const auto& [name, file] : variables.origins)
    setenv(name.c_str(), variables.value_of(name).c_str(), 0);
  const NcclChoice choice = nccl_choice(variables);
  facts_.variables = choice.variables;
  facts_.problem = choice.refusal;
  facts_.mend = choice.mend;

  std::string opened;
  std::string why_not;
  for (const std::string& library : choice.libraries) {
    try {
      net_ = load_plugin(library, options.abi);
      opened = library;
      break;
    } catch (const Failure& failure) {
      why_not += (why_not.empty() ? "" : "; ") + std::string(failure.what());
    }
  }
  // Where NCCL takes another plugin or none, ztcp's own can be measured all the same.
  const std::string ours = default_plugin();
  const bool has_own_file = ours.find('/') != std::string::npos;
  const bool is_ours = net_ && strcasecmp(net_->name(), kName) == 0;
  if (!is_ours && facts_.problem.empty()) {
    facts_.problem = net_ ? fmt::format("{} is the plugin {}", probe::path_of(opened), net_->name())
                     : choice.libraries.front() == kPluginName
                         ? "NCCL_NET_PLUGIN is not set and the library path has no libnccl-net.so"
                         : "NCCL can't load its plugin: " + why_not;
    facts_.mend = has_own_file ? "set NCCL_NET_PLUGIN=" + ours
                               : "set NCCL_NET_PLUGIN to the path of ztcp's libnccl-net.so";
  }
  if (!is_ours) {
    net_ = has_own_file ? load_plugin(ours, options.abi) : nullptr;
    opened = ours;
  }
  if (!net_) return;
  facts_.library = probe::path_of(opened);
  facts_.digest = probe::hash_of(opened);
  facts_.table = fmt::format("ncclNetPlugin_v{}", net_->abi());
}

void LocalPlugin::start(const Options& options) {
  if (!net_) return;
  facts_.has_started = net_->init(make_logger(*options.rank, options.log)) == ncclSuccess;
  for (const LogLine& line : kept_log()) facts_.lines.push_back(without_prefix(line.text));
  const char* const demanded = std::getenv("ZTCP_TRANSPORT");
  const std::string config = config::config_path();
  read_lines(facts_, demanded == nullptr ? "" : demanded,
             access(config.c_str(), R_OK) == 0 ? config : "");
  if (facts_.has_started || !facts_.problem.empty()) return;
  facts_.problem = "ztcp can't start: " + last_warning();
}

}  // namespace ztcp::perf::job
