// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/agent.h"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "tools/common/write_all.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/interrupt.h"
#include "tools/ztcp_perf/plugin_log.h"
#include "tools/ztcp_perf/plugin_table.h"
#include "tools/ztcp_perf/probe/hex.h"
#include "tools/ztcp_perf/probe/lines.h"
#include "tools/ztcp_perf/probe/local_facts.h"
#include "tools/ztcp_perf/probe/measure.h"
#include "tools/ztcp_perf/probe/messages.h"
#include "tools/ztcp_perf/probe/pair_link.h"
#include "tools/ztcp_perf/probe/wall_clock.h"

namespace ztcp::perf::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kSecondsToEnd = 3;

class Agent {
 public:
  Agent(const ProbeOptions& options, Lines& lines, int out)
      : options_(options), lines_(lines), out_(out) {}
  ~Agent() {
    link_.reset();
    if (net_) net_->finalize();
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  int run() {
    while (const auto line = lines_.next()) {
      const auto request = parse_line(*line);
      if (!request) continue;
      const std::string task = text_in(*request, "do").value_or("");
      if (task == "end") return whole_number_in(*request, "exit_code");
      if (task == "stop") {
        link_.reset();
        continue;
      }
      Json answer;
      try {
        answer = obey(task, *request);
      } catch (const Stopped&) {
        throw;
      } catch (const std::exception& failure) {
        link_.reset();
        answer = {{"error", failure.what()}};
      }
      if (!tools::write_all(out_, to_line(answer))) break;
    }
    return kExitNotRun;
  }

 private:
  Json obey(const std::string& task, const Json& request) {
    if (task == "clock") return {{"clock_ns", wall_clock_ns()}};
    if (task == "facts") return {{"facts", to_json(facts())}};
    if (task == "listen") return {{"handle", listen(whole_number_in(request, "device"))}};
    if (task == "measure") return {{"measured", to_json(measure(request))}};
    fail("unknown request '{}'", task);
  }

  HostFacts facts() {
    // Read by the plugin at init: one process a host.
    setenv("ZTCP_LOCAL_RANK", "0", 0);
    if (!options_.config.empty()) setenv("ZTCP_CONFIG", options_.config.c_str(), 1);
    const std::string plugin = options_.plugin.empty() ? default_plugin() : options_.plugin;
    net_ = load_plugin(plugin, options_.abi);
    const ncclResult_t result = net_->init(make_logger(options_.rank, options_.log));
    if (result != ncclSuccess) fail("the plugin's init failed: {}", name_of(result));
    return local_facts(*net_, plugin, options_.devices);
  }

  std::string listen(int device) {
    if (!net_) fail("asked to listen before the plugin was loaded");
    link_.reset();
    link_ = std::make_unique<PairLink>(*net_, device, [this] { check(); });
    return to_hex(link_->listen());
  }

  Measured measure(const Json& request) {
    const auto text = request.find("handle");
    Handle handle{};
    if (!link_ || text == request.end() || !text->is_string() ||
        !from_hex(text->get_ref<const std::string&>(), handle))
      fail("asked to measure without a connection");
    const auto leads = request.find("leads");
    const bool is_leader = leads != request.end() && leads->is_boolean() && leads->get<bool>();
    limit_s_ = number_in(request, "limit_s").value_or(options_.pair_timeout_s);
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(limit_s_));
    const auto link = std::exchange(link_, nullptr);
    link->connect(handle);
    if (is_leader) return lead(*link, number_in(request, "seconds").value_or(1));
    return follow(*link);
  }

  // Called while a measurement waits.
  void check() {
    throw_if_interrupted();
    if (lines_.is_waiting()) fail("stopped by the coordinator");
    if (Clock::now() > deadline_) fail("not done within {:g} s (--pair-timeout)", limit_s_);
  }

  const ProbeOptions& options_;
  Lines& lines_;
  int out_;
  std::unique_ptr<Net> net_;
  std::unique_ptr<PairLink> link_;
  double limit_s_ = 0;
  Clock::time_point deadline_;
};

}  // namespace

int run_agent(const ProbeOptions& options, int in, int out) {
  note_interrupts(/*ignore_sigint=*/false);
  Lines& lines = Lines::start(in, kExitNotRun);
  Agent agent(options, lines, out);
  try {
    return agent.run();
  } catch (const Stopped&) {
    end_within(kSecondsToEnd, kExitNotRun);
    return kExitNotRun;
  }
}

}  // namespace ztcp::perf::probe
