// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/capture/capture.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

#include <fmt/format.h>

#include "config/environment.h"
#include "config/file/load.h"
#include "config/machine/live_machine.h"
#include "tools/ztcp_stat/capture/choose.h"
#include "tools/ztcp_stat/capture/filter.h"
#include "tools/ztcp_stat/capture/jobs.h"
#include "tools/ztcp_stat/capture/output.h"
#include "tools/ztcp_stat/capture/pcapng.h"
#include "tools/ztcp_stat/capture/rings.h"

namespace ztcp::capture {
namespace {

constexpr int kExitFailed = 1;
constexpr std::size_t kWriteBytes = 1U << 20;
// Time between two looks at the rings: 16 MiB hold the headers of 50 million frames a second's.
constexpr int kLookMs = 5;
// A burst is recorded within this time.
constexpr std::uint64_t kSettleNs = 2'000'000;

std::atomic<bool> g_stop{false};

void say(const std::string& text) { std::fprintf(stderr, "ztcp_stat: %s\n", text.c_str()); }

// Without SA_RESTART, so that poll() returns.
void note_interrupts() {
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = [](int) { g_stop.store(true, std::memory_order_relaxed); };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);
}

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// The running capture, from the rings to the file.
class Recorder {
 public:
  Recorder(Rings& rings, Output& output, std::optional<Filter> filter)
      : rings_(rings), output_(output), filter_(std::move(filter)) {}

  void begin(const CaptureOptions& options, const Choice& choice,
             const stats::CaptureAnswer& facts) {
    begin_ns_ = clock_ns(CLOCK_REALTIME);
    append_section(text_, {.application = "ztcp_stat " ZTCP_VERSION,
                           .comment = fmt::format("{}, {}", to_string(choice.job), choice.device)});
    append_interface(
        text_,
        {.name = choice.device,
         .description = fmt::format("userspace TCP of ztcp, MTU {}", facts.mtu_bytes),
         .comment = "Sent frames are as the device was given them: larger than the MTU if it "
                    "segments them, and with incomplete checksums if it computes these.",
         .filter = options.filter,
         .mac = facts.mac,
         .snap_bytes = options.headers_bytes});
  }
  // False: the capture is over, see failure(). `is_last`: no lane records any more.
  bool pass(bool is_last) {
    // Time stamps are of the monotonic clock; the machine's may be adjusted meanwhile.
    const std::uint64_t monotonic = clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t offset = clock_ns(CLOCK_REALTIME) - monotonic;
    const std::uint64_t horizon = is_last ? UINT64_MAX : monotonic - kSettleNs;
    bool goes_on = true;
    const Status drained = rings_.drain(horizon, [&](const stats::CaptureReader::Frame& frame) {
      return goes_on = take(frame, offset);
    });
    if (!drained) {
      failure_ = "the process's frames can't be read: its memory was overwritten";
      return false;
    }
    return goes_on && flush();
  }
  // Writes the statistics and says them.
  void end() {
    Statistics statistics;
    statistics.begin_ns = begin_ns_;
    statistics.end_ns = clock_ns(CLOCK_REALTIME);
    statistics.lost = rings_.lost();
    statistics.received = rings_.recorded() + statistics.lost;
    statistics.written = written_;
    if (!is_reader_gone_ && failure_.empty()) {
      append_statistics(text_, statistics);
      flush();
    }
    const std::string filtered =
        filter_ ? fmt::format(" of {} that passed", statistics.received) : std::string();
    say(fmt::format("captured {} frames{}, {} lost", written_, filtered, statistics.lost));
  }
  const std::string& failure() const { return failure_; }

 private:
  bool take(const stats::CaptureReader::Frame& frame, std::uint64_t clock_offset_ns) {
    lost_before_ += frame.record.lost_before;
    if (filter_ && !filter_->matches(frame.bytes, frame.record.original_bytes)) return true;
    append_packet(text_, {.time_ns = frame.record.time_ns + clock_offset_ns,
                          .original_bytes = frame.record.original_bytes,
                          .is_sent = (frame.record.flags & stats::CaptureRecord::kSent) != 0,
                          .lost_before = std::exchange(lost_before_, 0),
                          .bytes = frame.bytes});
    ++written_;
    return text_.size() < kWriteBytes || flush();
  }
  bool flush() {
    switch (output_.write(text_)) {
      case Output::Written::kAll:
        return true;
      case Output::Written::kReaderIsGone:
        is_reader_gone_ = true;
        return false;
      case Output::Written::kFailed:
        break;
    }
    failure_ = fmt::format("the capture can't be written: {}", std::strerror(output_.sys_errno()));
    return false;
  }

  Rings& rings_;
  Output& output_;
  const std::optional<Filter> filter_;
  std::string text_;
  std::string failure_;
  bool is_reader_gone_ = false;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t lost_before_ = 0;
};

tl::expected<Choice, std::string> find(const CaptureOptions& options) {
  config::LiveMachine machine;
  const std::string path = options.config.empty() ? config::config_path() : options.config;
  const config::LoadResult loaded = config::load(machine, path);
  if (!loaded.fabric)
    return tl::unexpected(
        fmt::format("no usable config {}: without one, jobs use the kernel's TCP or RDMA, which ss "
                    "-tinp and tcpdump show; else give --config FILE",
                    path));
  if (std::string why = obstacle(*loaded.fabric, options.device); !why.empty())
    return tl::unexpected(std::move(why));
  return choose(options, find_jobs(loaded.fabric->run_dir), loaded.fabric->run_dir);
}

bool has_ended(int socket, int timeout_ms) {
  pollfd fd{.fd = socket, .events = POLLIN, .revents = 0};
  return poll(&fd, 1, timeout_ms) > 0;
}

}  // namespace

int run_capture(const CaptureOptions& options) {
  const auto fail_with = [](const std::string& why) {
    say(why);
    return kExitFailed;
  };
  note_interrupts();
  std::optional<Filter> filter;
  if (!options.filter.empty()) {
    auto compiled = Filter::compile(options.filter);
    if (!compiled) return fail_with(compiled.error());
    filter.emplace(std::move(*compiled));
  }
  const auto choice = find(options);
  if (!choice) return fail_with(choice.error());
  auto output = Output::open(options.output);
  if (!output) return fail_with(output.error());
  const auto started =
      start(choice->job, choice->device, options.buffer_mib << 20U, options.headers_bytes);
  if (!started) return fail_with(started.error());
  const auto rings = Rings::map(*started);
  if (!rings)
    return fail_with(fmt::format("{}: its answer makes no sense", to_string(choice->job)));

  Recorder recorder(**rings, *output, std::move(filter));
  recorder.begin(options, *choice, started->facts);
  if (recorder.pass(false))
    say(fmt::format("capturing {} of {}; Ctrl-C ends it", choice->device, to_string(choice->job)));
  bool goes_on = recorder.failure().empty();
  bool is_over = false;
  while (goes_on && !is_over && !g_stop.load(std::memory_order_relaxed)) {
    is_over = has_ended(started->socket.get(), kLookMs);
    goes_on = recorder.pass(is_over);
  }
  if (goes_on && !is_over) recorder.pass(true);
  if (is_over) say(fmt::format("{} ended, or ended the capture", to_string(choice->job)));
  recorder.end();
  return recorder.failure().empty() ? 0 : fail_with(recorder.failure());
}

}  // namespace ztcp::capture
