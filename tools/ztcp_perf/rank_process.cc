// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/rank_process.h"

#include <chrono>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/interrupt.h"

namespace ztcp::perf {
namespace {

using Clock = std::chrono::steady_clock;

class Process {
 public:
  Process(const Options& options, const char* program) : options_(options), program_(program) {}

  int run(Bootstrap& bootstrap, RankWork& work) const {
    constexpr unsigned kTeardownSeconds = 3;
    try {
      try {
        return work.run();
      } catch (const Stopped&) {
        throw;
      } catch (const Failure&) {
        wait_for_bad_news(bootstrap);
        throw;
      }
    } catch (const Stopped& stopped) {
      // The launcher reports the reason; without one the user looks here.
      if (!options_.launched) complain(stopped.what());
      bootstrap.abort(stopped.what());
      end_within(kTeardownSeconds, kExitStopped);
      return kExitStopped;
    } catch (const std::exception& failure) {
      complain(failure.what());
      bootstrap.abort(fmt::format("rank {} ({}): {}", *options_.rank,
                                  bootstrap.places()[static_cast<std::size_t>(*options_.rank)],
                                  failure.what()));
      end_within(kTeardownSeconds, kExitFailed);
      return kExitFailed;
    }
  }

  void complain(const char* what) const {
    std::fprintf(stderr, "%s: rank %d: %s\n", program_, *options_.rank, what);
  }

 private:
  // A rank's death is noticed twice: its connections fail here, and rank 0 names it. Rank 0's
  // message is more precise, so wait for it a moment.
  static void wait_for_bad_news(Bootstrap& bootstrap) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(500);
    while (Clock::now() < deadline) {
      bootstrap.check();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  const Options& options_;
  const char* program_;
};

}  // namespace

int run_as_rank(const Options& options, const char* program,
                const std::function<std::unique_ptr<RankWork>(Bootstrap&)>& make_work) {
  const Process process(options, program);
  note_interrupts(/*ignore_sigint=*/options.launched);
  try {
    Bootstrap bootstrap(options);
    const std::unique_ptr<RankWork> work = make_work(bootstrap);
    return process.run(bootstrap, *work);
  } catch (const Stopped& stopped) {
    if (!options.launched) process.complain(stopped.what());
    return kExitStopped;
  } catch (const std::exception& failure) {
    process.complain(failure.what());
    return kExitFailed;
  }
}

}  // namespace ztcp::perf
