// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/job/check_job.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "tools/common/atomic_file.h"
#include "tools/common/printable.h"
#include "tools/common/standard_streams.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/job/local.h"
#include "tools/ztcp_perf/job/measure.h"
#include "tools/ztcp_perf/job/options.h"
#include "tools/ztcp_perf/job/verdict.h"
#include "tools/ztcp_perf/launcher.h"
#include "tools/ztcp_perf/plain_sockets.h"
#include "tools/ztcp_perf/rank_place.h"
#include "tools/ztcp_perf/rank_process.h"

namespace ztcp::perf::job {
namespace {

constexpr const char* kProgram = "ztcp_perf check-job";

// Texts in it came from other processes.
void print(const std::string& lines) {
  for (std::string_view rest = lines; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    std::puts(tools::printable(line).c_str());
  }
  std::fflush(stdout);  // Lines appear as they are known, also through a pipe.
}

std::string dump(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

class Job final : public RankWork {
 public:
  Job(const JobOptions& options, Bootstrap& bootstrap) : options_(options), bootstrap_(bootstrap) {}

  int run() override {
    const int local = settle_local_rank(options_.run, bootstrap_);
    plugin_.emplace(options_.run);
    share_facts();
    if (shows_text()) print(render_ranks(ranks_));
    choose_members();
    std::optional<Measured> measured;
    if (all_have_started()) {
      measured = measure_both(local);
      if (shows_text()) print(render_measured(ranks_, members_, *measured));
    }
    const Verdict verdict = judge(ranks_, measured);
    if (bootstrap_.rank() == 0) conclude(verdict, measured);
    // Also keeps each rank from closing while another still needs an answer.
    bootstrap_.barrier();
    return verdict.is_good ? kExitOk : kExitFailed;
  }

 private:
  bool shows_text() const { return bootstrap_.rank() == 0 && options_.run.json != "-"; }

  void share_facts() {
    const std::string mine = dump(to_json(plugin_->facts()), -1);
    for (const Bytes& bytes : bootstrap_.all_gather(std::as_bytes(std::span(mine))))
      ranks_.push_back(facts_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }

  bool all_have_started() const {
    return std::ranges::all_of(ranks_, [](const RankFacts& rank) { return rank.has_started; });
  }

  // One rank a host: NCCL joins the others by memory. Where all are on one host, all of them.
  void choose_members() {
    const auto hosts = ranks_by_host(ranks_);
    for (const std::vector<int>& host : hosts) members_.push_back(host.front());
    if (hosts.size() == 1) members_ = hosts.front();
  }

  Measured measure_both(int local) {
    if (!listen_plainly_at(plugin_->facts().plain_address))
      fail("{} is no address", plugin_->facts().plain_address);
    plain_ = net_of(kPlainSockets);
    const int device = choose_device(plugin_->net(), options_.run, local);
    try {
      return measure(plugin_->net(), device, *plain_, options_.run, options_.limits, members_,
                     bootstrap_);
    } catch (const Stopped&) {
      throw;
    } catch (const Failure& failure) {
      const std::string warning = last_warning();
      if (warning.empty()) throw;
      fail("{}: {}", failure.what(), warning);
    }
  }

  void conclude(const Verdict& verdict, const std::optional<Measured>& measured) const {
    if (shows_text()) print("verdict: " + verdict.sentence);
    const std::string& path = options_.run.json;
    if (path.empty()) return;
    const std::string text = dump(document_of(ranks_, members_, measured, verdict), 2) + "\n";
    if (path == "-") {
      std::fputs(text.c_str(), stdout);
    } else if (const Status written = tools::write_report(path, text); !written) {
      fail("{}", json_failure(path, written.error()));
    }
  }

  const JobOptions& options_;
  Bootstrap& bootstrap_;
  std::optional<LocalPlugin> plugin_;
  std::unique_ptr<Net> plain_;
  std::vector<RankFacts> ranks_;
  std::vector<int> members_;
};

}  // namespace

int run_check_job(int argc, char** argv) {
  try {
    const JobOptions options = parse_job_options(argc - 1, argv + 1);
    if (!options.run.rank) return launch_local_ranks(options.run, argc, argv);
    if (!options.run.config.empty()) setenv("ZTCP_CONFIG", options.run.config.c_str(), 1);
    const int status = run_as_rank(options.run, kProgram, [&](Bootstrap& bootstrap) {
      return std::make_unique<Job>(options, bootstrap);
    });
    const bool all_is_said = tools::has_kept_output("ztcp_perf");
    return status == kExitOk && !all_is_said ? kExitFailed : status;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s: %s\n", kProgram, failure.what());
    return kExitUsage;
  }
}

}  // namespace ztcp::perf::job
