// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/startup.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "config/schema.h"
#include "plugin/collnet_settings.h"
#include "plugin/statistics_page.h"

namespace ztcp::plugin {
namespace {

using config::TransportRequest;
using std::chrono::milliseconds;

// A device as the config describes the NIC, without the hardware behind it: host pointers only, and
// no PCI path, so that NCCL draws no conclusions from it.
Device promised_device(const std::vector<TransportSource>& sources, const config::Fabric& fabric,
                       std::size_t nic, const std::string& refusal) {
  Device device;
  const auto source = std::ranges::find_if(
      sources, [&](const auto& candidate) { return candidate.carries(fabric.nics[nic]); });
  if (source != sources.end() && source->nccl_devices != nullptr)
    device.properties.nccl_devices = source->nccl_devices(fabric, fabric.nics[nic]);
  device.properties.name = config::device_name(fabric.nics[nic]);
  device.properties.guid = nic + 1;
  device.properties.speed_mbps = config::told_speed_mbps(fabric.nics[nic]);
  device.properties.max_comms =
      static_cast<int>(config::connections_of_nic(fabric.tcp, fabric.nics[nic].driver));
  device.refusal = refusal;
  return device;
}

// The first of a merged device's NICs stands for all.
bool is_shown(const config::Fabric& fabric, std::size_t i) {
  const config::Nic& nic = fabric.nics[i];
  return nic.merge.empty() ||
         std::none_of(fabric.nics.begin(), fabric.nics.begin() + static_cast<std::ptrdiff_t>(i),
                      [&](const config::Nic& earlier) { return earlier.merge == nic.merge; });
}

// The config lists the NICs of all hosts in the same order; without a config their order is
// unknown.
void number_rails(config::Fabric& fabric) {
  std::int32_t place = -1;
  for (std::size_t i = 0; i < fabric.nics.size(); ++i) {
    if (is_shown(fabric, i)) ++place;
    if (fabric.nics[i].rail < 0) fabric.nics[i].rail = place;
  }
}

// The NIC's rail or plane; for a merged device, the one that all of its NICs share, else -1.
int common_of(const config::Fabric& fabric, std::size_t i, std::int32_t config::Nic::*number) {
  const config::Nic& nic = fabric.nics[i];
  const bool is_common =
      nic.merge.empty() || std::ranges::all_of(fabric.nics, [&](const auto& other) {
        return other.merge != nic.merge || other.*number == nic.*number;
      });
  return is_common ? nic.*number : -1;
}

std::vector<Device> promised_devices(const std::vector<TransportSource>& sources,
                                     const std::optional<config::Fabric>& fabric,
                                     const std::string& refusal) {
  std::vector<Device> devices;
  if (fabric)
    for (std::size_t i = 0; i < fabric->nics.size(); ++i)
      if (is_shown(*fabric, i)) devices.push_back(promised_device(sources, *fabric, i, refusal));
  if (devices.empty()) {
    Device device;
    device.properties.name = "ztcp-error";
    device.refusal = refusal;
    devices.push_back(std::move(device));
  }
  return devices;
}

// Appends the further NCCL devices of NICs that are exposed as several. The first device of each
// NIC keeps its number, by which NCCL pairs the NICs of two hosts.
void add_nccl_devices(std::vector<Device>& devices) {
  const std::size_t nics = devices.size();
  for (std::size_t i = 0; i < nics; ++i)
    devices[i].properties.speed_mbps /=
        static_cast<std::uint32_t>(devices[i].properties.nccl_devices);
  const int most = std::ranges::max(devices, {}, [](const Device& device) {
                     return device.properties.nccl_devices;
                   }).properties.nccl_devices;
  for (int number = 2; number <= most; ++number) {
    for (std::size_t i = 0; i < nics; ++i) {
      if (devices[i].properties.nccl_devices < number) continue;
      Device added = devices[i];
      added.properties.name += fmt::format("#{}", number);
      // NCCL would take two devices with the same port for one.
      added.properties.port = static_cast<std::uint16_t>(added.properties.port + number - 1);
      devices.push_back(std::move(added));
    }
  }
}

Told<Startup> refuse(const StartupSources& sources, const config::LoadResult& loaded,
                     const config::Environment& environment, const std::string& host,
                     const std::string& reason) {
  if (environment.on_error == config::OnError::kFallback && environment.ztcp_is_demanded)
    return report(Errc::kBadConfig,
                  "{}; NCCL_NET=ztcp keeps NCCL from using another network, so the job ends here "
                  "in spite of ZTCP_ON_ERROR=fallback: unset NCCL_NET on all hosts to fall back",
                  reason);
  if (environment.on_error == config::OnError::kFallback)
    return report(Errc::kBadConfig,
                  "{}; NCCL goes on without ztcp (ZTCP_ON_ERROR=fallback): all hosts of the job "
                  "must do the same, or their connections fail",
                  reason);
  log::warn("{}; connections to and from this host will be refused", reason);
  Startup startup;
  startup.devices = promised_devices(sources.transports, loaded.fabric, reason);
  add_nccl_devices(startup.devices);
  // As many CollNet devices as the other hosts show: NCCL 2.30 ends a job whose hosts differ,
  // before a connection could fail with the reason.
  startup.collnet =
      choose_collnet(loaded.fabric ? loaded.fabric->collnet : config::Collnet{}, environment);
  startup.host = host;
  startup.connect_timeout = milliseconds(config::Tcp{}.connect_timeout_ms);
  return startup;
}

// Logs each problem in a line of its own. Returns the reason for refused connections, which names
// the first problem.
std::string say_problems(const std::string& path, const config::Problems& problems) {
  for (const config::Problem& problem : problems) log::warn("{}", config::to_string(problem));
  std::string reason = path + " can't be honoured";
  if (!problems.empty()) reason += ": " + config::to_string(problems.front());
  if (problems.size() > 1) reason += fmt::format(" (and {} more)", problems.size() - 1);
  return reason;
}

// A transport that the config asks for, and the NICs it carries.
struct Started {
  const TransportSource* source = nullptr;
  config::Fabric fabric;
  Transport* transport = nullptr;  // Null: could not start; see `refusal`.
  std::string refusal;
  int devices_shown = 0;
};

// Starts each source that has NICs in the config; the transports go into `startup`.
std::vector<Started> start_transports(const std::vector<TransportSource>& sources,
                                      const config::Fabric& fabric, Startup& startup) {
  std::vector<Started> all;
  for (const TransportSource& source : sources) {
    Started one{.source = &source, .fabric = fabric, .refusal = {}};
    std::erase_if(one.fabric.nics, [&](const auto& nic) { return !source.carries(nic); });
    if (one.fabric.nics.empty()) continue;
    auto made = source.create(one.fabric);
    if (made) {
      one.transport = made->get();
      startup.transports.push_back(std::move(*made));
    } else {
      one.refusal =
          fmt::format("the {} transport can't start: {}", to_string(source.kind), made.error());
    }
    all.push_back(std::move(one));
  }
  return all;
}

// The device for NIC `i` of the fabric. NCCL counts devices in the config's order, over all
// transports.
Device device_for(const std::vector<TransportSource>& sources, const config::Fabric& fabric,
                  std::size_t i, std::vector<Started>& started) {
  const config::Nic& nic = fabric.nics[i];
  const auto one = std::ranges::find_if(
      started, [&](const Started& candidate) { return candidate.source->carries(nic); });
  if (one == started.end())
    return promised_device(sources, fabric, i,
                           "this build has no transport for NICs of its driver");
  if (one->transport == nullptr) return promised_device(sources, fabric, i, one->refusal);
  const int number = one->devices_shown++;
  return {.properties = one->transport->devices()[static_cast<std::size_t>(number)],
          .transport = one->transport,
          .number = number,
          .refusal = {},
          .rail = common_of(fabric, i, &config::Nic::rail),
          .plane = common_of(fabric, i, &config::Nic::plane)};
}

TransportKind kind_of(TransportRequest request) {
  if (request == TransportRequest::kSockets) return TransportKind::kSockets;
  return request == TransportRequest::kVerbs ? TransportKind::kVerbs : TransportKind::kUstack;
}

// Keeps only the NICs in `fabric` that ZTCP_TRANSPORT selects. Returns the reason on failure.
std::optional<std::string> choose_nics(const StartupSources& sources,
                                       const config::Environment& environment,
                                       std::optional<config::Fabric>& fabric) {
  const std::string said = "ZTCP_TRANSPORT=" + environment.transport_text;
  if (environment.transport == TransportRequest::kUnknown) {
    constexpr std::array<std::string_view, 3> kKnown{"sockets", "ustack", "verbs"};
    const std::string_view meant = config::nearest(environment.transport_text, kKnown);
    return fmt::format("{} is none of sockets, ustack and verbs{}", said,
                       meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant));
  }
  if (environment.transport == TransportRequest::kConfigs) return std::nullopt;
  const TransportKind kind = kind_of(environment.transport);
  const auto source =
      std::ranges::find_if(sources.transports, [&](const auto& one) { return one.kind == kind; });
  if (source == sources.transports.end())
    return fmt::format("{}, but this build has no {}", said, to_string(kind));
  const std::size_t all = fabric->nics.size();
  std::erase_if(fabric->nics, [&](const config::Nic& nic) { return !source->carries(nic); });
  const std::size_t left_out = all - fabric->nics.size();
  if (fabric->nics.empty() && !source->find_nics)
    return fmt::format("{}, but {} has no NIC for {}", said, fabric->path, to_string(kind));
  if (left_out > 0)
    log::info("{}: {} of the {} NICs in {} are not used", said, left_out, all, fabric->path);
  if (!fabric->nics.empty()) return std::nullopt;
  auto chosen = source->find_nics(std::move(*fabric));
  if (!chosen) return fmt::format("{}: {}", said, chosen.error());
  fabric = std::move(*chosen);
  return std::nullopt;
}

// The transport by whose rule NCCL's channels may be chosen (ChannelTuner): the one that carries
// all NICs.
std::optional<TransportKind> choose_tuning(const std::vector<TransportSource>& sources,
                                           const config::Fabric& fabric) {
  const auto only = std::ranges::find_if(sources, [&](const TransportSource& source) {
    return std::ranges::all_of(fabric.nics, source.carries);
  });
  if (only == sources.end() || only->is_tunable == nullptr || !only->is_tunable(fabric))
    return std::nullopt;
  return only->kind;
}

void say_tuning(const Startup& startup, const std::string& untuned_by) {
  if (startup.tuned)
    log::info(
        "the channels of all-reduce, all-gather and reduce-scatter are chosen by size; "
        "ZTCP_TUNER=off on all hosts leaves them to NCCL");
  else
    log::info("{}: NCCL chooses its channels", untuned_by);
}

void say(const Device& device) {
  const int nccl_devices = device.properties.nccl_devices;
  if (device.transport != nullptr)
    log::info("{} {}{}", ZTCP_VERSION, device.transport->describe_device(device.number),
              nccl_devices == 1
                  ? ""
                  : fmt::format("; exposed to NCCL as {} devices, for each of which it opens "
                                "channels",
                                nccl_devices));
  else
    log::warn("{}: {}; connections over it will be refused, those over the other NICs are not",
              device.properties.name, device.refusal);
}

}  // namespace

Created in_words(Result<std::unique_ptr<Transport>> made) {
  if (!made) return tl::unexpected(explain(made.error()));
  return std::move(*made);
}

Told<Startup> start_up(const StartupSources& sources, const config::Environment& environment,
                       const std::string& host) {
  for (const config::Problem& problem : environment.problems)
    log::warn("{}", config::to_string(problem));

  config::LoadResult loaded = sources.load(environment.config_path);
  const bool is_missing = !loaded.fabric && loaded.failure == config::LoadFailure::kMissing;
  const bool may_do_without = environment.transport == TransportRequest::kSockets ||
                              environment.transport == TransportRequest::kVerbs;
  if (may_do_without && loaded.without_nics) loaded.fabric = std::move(loaded.without_nics);
  if (loaded.fabric) number_rails(*loaded.fabric);
  if (is_missing && may_do_without) {
    loaded.fabric.emplace();
    // Its cluster key and timeouts may be what this host was to have.
    if (environment.config_path != config::kDefaultPath)
      log::warn(
          "ZTCP_CONFIG={}: no such file, so ZTCP_TRANSPORT={} goes on with the defaults, without a "
          "cluster key; correct the path, or unset ZTCP_CONFIG",
          environment.config_path, environment.transport_text);
  }
  if (is_missing && !loaded.fabric && environment.transport != TransportRequest::kUnknown)
    return report(
        Errc::kBadConfig,
        "no fabric config at {}, so {}; run ztcp_setup on every host, point ZTCP_CONFIG at a "
        "config (ztcp_setup --local N writes one for a try inside one machine), or set "
        "ZTCP_TRANSPORT=sockets on every host to go over the kernel's TCP without any set-up",
        loaded.path,
        environment.ztcp_is_demanded
            ? "the job ends here: NCCL_NET=ztcp keeps NCCL from using another network"
            : "NCCL goes on without ztcp (with NCCL_NET=ztcp the job would end here)");
  if (!loaded.fabric && !is_missing)
    return refuse(sources, loaded, environment, host, say_problems(loaded.path, loaded.problems));
  if (auto reason = choose_nics(sources, environment, loaded.fabric))
    return refuse(sources, loaded, environment, host, *reason);

  config::Fabric& fabric = *loaded.fabric;
  const std::optional<TransportKind> tunable = choose_tuning(sources.transports, fabric);
  fabric.tunes_channels = tunable && environment.untuned_by.empty();
  if (!environment.tuner_fault.empty())
    return refuse(sources, loaded, environment, host, environment.tuner_fault);
  if (!environment.collnet_fault.empty())
    return refuse(sources, loaded, environment, host, environment.collnet_fault);
  if (const config::Problems problems = sources.check_host(fabric); !problems.empty())
    return refuse(sources, loaded, environment, host, say_problems(fabric.who_chose(), problems));

  if (sources.open_page && environment.has_statistics_page && fabric.statistics.page)
    sources.open_page(fabric, loaded.hash);
  Startup startup;
  std::vector<Started> started = start_transports(sources.transports, fabric, startup);
  startup.host = host;
  if (fabric.tunes_channels) startup.tuned = tunable;
  startup.channels_per_peer = environment.channels_per_peer;
  startup.connect_timeout = milliseconds(fabric.tcp.connect_timeout_ms);
  for (std::size_t i = 0; i < fabric.nics.size(); ++i)
    if (is_shown(fabric, i))
      startup.devices.push_back(device_for(sources.transports, fabric, i, started));
  const auto refusing =
      std::ranges::find_if(startup.devices, [](const Device& d) { return d.transport == nullptr; });
  // The other NICs work all the same, unless the host is to fall back.
  if (refusing != startup.devices.end() &&
      (startup.transports.empty() || environment.on_error == config::OnError::kFallback))
    return refuse(sources, loaded, environment, host, refusing->refusal);
  std::ranges::for_each(startup.devices, say);
  list_devices(startup.devices);
  if (tunable) say_tuning(startup, environment.untuned_by);
  startup.collnet = choose_collnet(fabric.collnet, environment);
  startup.collnet.workers = sources.collnet_workers;
  choose_collnet_sizes(startup);
  say_collnet(startup);
  add_nccl_devices(startup.devices);
  return startup;
}

}  // namespace ztcp::plugin
