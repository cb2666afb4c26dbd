// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/environment.h"

#include <charconv>
#include <cstdlib>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

// The variables of one launcher; null: it has none.
struct Launcher {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
  const char* nodes;
};
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nullptr},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, "SLURM_STEP_NODELIST"},
    // MPICH and Intel MPI. After Slurm, which sets two of them, too, and also names its hosts.
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr},
};

}  // namespace

Lookup process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
}

std::optional<int> number_in(const Lookup& environment, const char* name) {
  const auto text = environment(name);
  if (!text) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < 0)
    fail("{}={} is not a number", name, *text);
  return value;
}

std::optional<LaunchPlace> place_in(const Lookup& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = number_in(environment, launcher.rank);
    const auto size = number_in(environment, launcher.size);
    // A shell inside an allocation has these variables too, with a world of one.
    if (!rank || !size || *size < 2) continue;
    LaunchPlace place{.rank = *rank,
                      .ranks = *size,
                      .local_rank = number_in(environment, launcher.local_rank),
                      .first_host = {}};
    if (launcher.local_size != nullptr && number_in(environment, launcher.local_size) == size)
      place.first_host = "127.0.0.1";
    if (launcher.nodes != nullptr)
      if (const auto nodes = environment(launcher.nodes)) place.first_host = first_host(*nodes);
    return place;
  }
  return std::nullopt;
}

std::uint16_t rendezvous_port(const Lookup& environment) {
  const int port = number_in(environment, "MASTER_PORT").value_or(kDefaultPort);
  if (port == 0 || port > 65535) fail("MASTER_PORT={} is not a port", port);
  if (environment("TORCHELASTIC_USE_AGENT_STORE") != "True")
    return static_cast<std::uint16_t>(port);
  return static_cast<std::uint16_t>(port == 65535 ? port - 1 : port + 1);
}

std::string first_host(std::string_view nodes) {
  const std::size_t end = nodes.find_first_of(",[");
  std::string host(nodes.substr(0, end));
  if (end == std::string_view::npos || nodes[end] == ',') return host;
  const std::string_view numbers = nodes.substr(end + 1);
  host += numbers.substr(0, numbers.find_first_of("-,]"));
  // The text after the brackets belongs to every name: "gpu[1-2]-ib".
  const std::size_t close = nodes.find(']', end);
  if (close == std::string_view::npos) return host;
  const std::string_view rest = nodes.substr(close + 1);
  host += first_host(rest);
  return host;
}

}  // namespace ztcp::perf
