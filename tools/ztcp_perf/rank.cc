// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/rank.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <thread>

#include "tools/common/printable.h"
#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/budget.h"
#include "tools/ztcp_perf/collective.h"
#include "tools/ztcp_perf/connections.h"
#include "tools/ztcp_perf/exchange.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/pattern.h"
#include "tools/ztcp_perf/plan.h"
#include "tools/ztcp_perf/plugin_log.h"
#include "tools/ztcp_perf/plugin_table.h"
#include "tools/ztcp_perf/rank_place.h"
#include "tools/ztcp_perf/rank_process.h"
#include "tools/ztcp_perf/report.h"
#include "tools/ztcp_perf/spread.h"
#include "tools/ztcp_perf/timer.h"

namespace ztcp::perf {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<int> every_rank(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

template <class T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// Pairs init() and finalize(); finalizes also after a failed init, as NCCL does.
class Loaded {
 public:
  explicit Loaded(const Options& options) : net_(load_plugin(options.plugin, options.abi)) {
    const ncclResult_t result = net_->init(make_logger(*options.rank, options.log));
    if (result != ncclSuccess) {
      net_->finalize();
      fail("the plugin's init failed: {} (for its messages: --log warn)", name_of(result));
    }
  }
  ~Loaded() { net_->finalize(); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  Net& net() { return *net_; }

 private:
  std::unique_ptr<Net> net_;
};

std::string device_line(Net& net, int device, int tags) {
  DeviceProperties properties;
  const ncclResult_t result = net.properties(device, &properties);
  if (result != ncclSuccess) fail("getProperties({}) failed: {}", device, name_of(result));
  if (tags > properties.max_receives)
    fail("--tags {}: the plugin receives at most {} messages at once on device {}", tags,
         properties.max_receives, device);
  return fmt::format("{} {}, {} Mb/s, {}", device, properties.name, properties.speed_mbps,
                     properties.pci_path.empty() ? "no PCI path" : properties.pci_path);
}

class Runner {
 public:
  Runner(const Options& options, Net& net, Bootstrap& bootstrap)
      : options_(options),
        bootstrap_(bootstrap),
        connections_(net, options,
                     make_plan(options.op, 0, options.ranks, options.max_bytes).input_bytes,
                     every_rank(options.ranks)),
        exchange_(net, connections_, bootstrap, options),
        budget_(options.time_budget_s) {
    if (!is_collnet(options.op)) return;
    collective_.emplace(options, net.abi());
    exchange_.use(*collective_);
  }

  void connect(int device) {
    connections_.open(device, bootstrap_);
    if (collective_)
      collective_->open(device, bootstrap_, connections_.input(), connections_.output());
    bootstrap_.barrier();
    bootstrap_.set_silence_timeout(std::chrono::duration<double>(options_.stall_timeout_s));
  }

  void run(Report* report) {
    Timer timer(exchange_, bootstrap_, budget_, options_, Clock::now());
    const std::vector<std::uint64_t> sizes = options_.sizes();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const bool fits =
          budget_.admits(sizes[i], timer.spent_s(), options_.check ? options_.check_iters : 0);
      if (!bootstrap_.from_rank_0(fits)) {
        if (report != nullptr)
          report->note(fmt::format("time budget of {} s spent: sizes from {} B on were not run",
                                   options_.time_budget_s, sizes[i]));
        return;
      }
      Row row = run_size(sizes[i], sizes.size() - i, timer);
      if (report != nullptr) report->add(std::move(row));
    }
  }

 private:
  struct Sample {
    double elapsed_s;
    CpuSeconds cpu;
  };

  Row run_size(std::uint64_t size_bytes, std::size_t sizes_left, Timer& timer) {
    const Plan plan = make_plan(options_.op, bootstrap_.rank(), bootstrap_.size(), size_bytes);
    bootstrap_.beat_during([&] { fill(plan); });
    bootstrap_.barrier();
    const double iteration_s = timer.warm_up(plan, sizes_left);
    const double checks_s = options_.check ? options_.check_iters * iteration_s : 0;
    if (options_.check)
      bootstrap_.beat_during([&] { poison(connections_.output().first(plan.output_bytes)); });
    Timed timed = timer.run(plan, iteration_s, budget_.verify_estimate(size_bytes) + checks_s);

    Row row = make_row(plan, timed);
    const double typical_s = row.spread ? row.spread->p50 * 1e-6 * trips() : iteration_s;
    const auto begin = Clock::now();
    if (options_.check) row.wrong = check(plan);
    const double verify_s =
        options_.check ? seconds_since(begin) - options_.check_iters * typical_s : 0;
    budget_.learn(size_bytes, typical_s, std::max(0.0, verify_s));
    return row;
  }

  Row make_row(const Plan& plan, Timed& timed) {
    const std::vector<Sample> all =
        bootstrap_.all_gather_values(Sample{timed.elapsed_s, timed.cpu});
    // In a ping only ranks 0 and 1 take part.
    const std::size_t workers = options_.op == Op::kPing ? 2 : all.size();
    double elapsed_s = 0;
    for (std::size_t i = 0; i < workers; ++i)
      elapsed_s += all[i].elapsed_s / static_cast<double>(workers);
    Row row;
    row.size_bytes = plan.size_bytes;
    row.count = plan.count;
    row.iters = timed.iters;
    row.time_us = elapsed_s * 1e6 / timed.iters / trips();
    row.algbw_gb_per_s = static_cast<double>(plan.size_bytes) / row.time_us / 1e3;
    row.busbw_gb_per_s = row.algbw_gb_per_s * bus_factor(options_.op, bootstrap_.size());
    for (const Sample& sample : all) row.cpu.push_back(sample.cpu);
    std::vector<float> samples = timed.us.take();
    if (!samples.empty()) row.spread = summarise(samples);
    return row;
  }

  // Verifies the result of the last timed iteration, then iterations on fresh data. Returns the
  // number of wrong elements of all ranks.
  std::uint64_t check(const Plan& plan) {
    std::uint64_t wrong = bootstrap_.beat_during([&] { return count_wrong(plan); });
    for (int i = 0; i < options_.check_iters; ++i) {
      ++data_version_;
      bootstrap_.beat_during([&] {
        fill(plan);
        poison(connections_.output().first(plan.output_bytes));
      });
      exchange_.run(plan);
      wrong += bootstrap_.beat_during([&] { return count_wrong(plan); });
    }
    ++data_version_;
    const auto all = bootstrap_.all_gather_values(wrong);
    return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
  }

  void fill(const Plan& plan) {
    const std::span<std::byte> input = connections_.input().first(plan.input_bytes);
    if (is_sum(options_.op))
      return fill_summands(as<float>(input), bootstrap_.rank(), data_version_);
    if (options_.op == Op::kBroadcast)
      return fill_block(as<std::uint32_t>(input), kRoot, kRoot, data_version_);
    if (is_gather(options_.op))
      return fill_block(as<std::uint32_t>(block(input, plan, bootstrap_.rank())), bootstrap_.rank(),
                        kRoot, data_version_);
    for (const int peer : block_peers(plan.sends))
      fill_block(as<std::uint32_t>(block(input, plan, peer)), bootstrap_.rank(), peer,
                 data_version_);
  }

  std::uint64_t count_wrong(const Plan& plan) {
    const std::span<std::byte> output = connections_.output().first(plan.output_bytes);
    if (is_sum(options_.op)) {
      const std::span<std::byte> sums =
          is_scatter(options_.op) ? block(output, plan, bootstrap_.rank()) : output;
      return count_wrong_sums(
          as<const float>(sums), bootstrap_.size(), data_version_,
          static_cast<float>(options_.tolerance),
          static_cast<std::size_t>(sums.data() - output.data()) / sizeof(float));
    }
    if (options_.op == Op::kBroadcast)
      return count_wrong_block(as<const std::uint32_t>(output), kRoot, kRoot, data_version_);
    std::uint64_t wrong = 0;
    if (is_gather(options_.op))
      for (int rank = 0; rank < bootstrap_.size(); ++rank)
        wrong += count_wrong_block(as<const std::uint32_t>(block(output, plan, rank)), rank, kRoot,
                                   data_version_);
    else
      for (const int peer : block_peers(plan.receives))
        wrong += count_wrong_block(as<const std::uint32_t>(block(output, plan, peer)), peer,
                                   bootstrap_.rank(), data_version_);
    return wrong;
  }

  // Number of times a message travels per iteration.
  double trips() const { return options_.op == Op::kPing ? 2 : 1; }

  // The ranks with blocks in a buffer: all peers, and in all_to_all this rank itself.
  template <class Lanes>
  std::vector<int> block_peers(const Lanes& lanes) const {
    std::vector<int> peers;
    peers.reserve(lanes.size() + 1);
    for (const auto& lane : lanes) peers.push_back(lane.peer);
    if (options_.op == Op::kAllToAll) peers.push_back(bootstrap_.rank());
    return peers;
  }
  std::span<std::byte> block(std::span<std::byte> buffer, const Plan& plan, int peer) const {
    const bool has_blocks =
        options_.op == Op::kAllToAll || is_gather(options_.op) || is_scatter(options_.op);
    if (!has_blocks) return buffer;
    const std::size_t bytes = plan.size_bytes / static_cast<std::size_t>(bootstrap_.size());
    return buffer.subspan(static_cast<std::size_t>(peer) * bytes, bytes);
  }

  const Options& options_;
  Bootstrap& bootstrap_;
  Connections connections_;
  std::optional<Collective> collective_;
  Exchange exchange_;
  Budget budget_;
  std::uint32_t data_version_ = 1;
};

class Rank final : public RankWork {
 public:
  Rank(const Options& options, Bootstrap& bootstrap) : options_(options), bootstrap_(bootstrap) {}

  int run() override {
    const int local = settle_local_rank(options_, bootstrap_);
    loaded_.emplace(options_);
    Net& net = loaded_->net();
    const int device = choose_device(net, options_, local);
    const std::string line = device_line(net, device, options_.tags);
    std::vector<RankInfo> ranks;
    for (const auto& bytes :
         bootstrap_.all_gather(std::as_bytes(std::span(line.data(), line.size()))))
      ranks.push_back(
          {bootstrap_.places()[ranks.size()],
           tools::printable({reinterpret_cast<const char*>(bytes.data()), bytes.size()})});
    if (*options_.rank == 0) {
      report_.emplace(options_, net.name(), net.abi(), std::move(ranks));
      report_->begin();
    }
    runner_.emplace(options_, net, bootstrap_);
    runner_->connect(device);
    runner_->run(report_ ? &*report_ : nullptr);
    const bool wrong = report_ && report_->end() > 0;
    // Also keeps each rank from closing while another still needs an answer.
    return bootstrap_.from_rank_0(wrong) ? kExitWrongData : kExitOk;
  }

 private:
  const Options& options_;
  Bootstrap& bootstrap_;
  std::optional<Loaded> loaded_;
  std::optional<Report> report_;
  std::optional<Runner> runner_;
};

}  // namespace

int run_rank(const Options& options) {
  // The plugin reads it in init.
  if (!options.config.empty()) setenv("ZTCP_CONFIG", options.config.c_str(), 1);
  return run_as_rank(options, "ztcp_perf", [&](Bootstrap& bootstrap) {
    return std::make_unique<Rank>(options, bootstrap);
  });
}

}  // namespace ztcp::perf
