// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reads a rank's place from the environment of mpirun (Open MPI, MPICH), torchrun and srun. Pure:
// reads variables through a Lookup.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ztcp::perf {

// The variable's text; absent when it is not set or empty.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

Lookup process_environment();

// Fails if the variable is set and not a number of 0 or more.
std::optional<int> number_in(const Lookup& environment, const char* name);

struct LaunchPlace {
  int rank = 0;
  int ranks = 0;
  std::optional<int> local_rank;
  std::string first_host;  // Host of rank 0; empty: unknown.
};

// Absent when no launcher started this process.
std::optional<LaunchPlace> place_in(const Lookup& environment);

// The first name of a Slurm host list: "gpu07" of "gpu[07-09,12],cpu1".
std::string first_host(std::string_view nodes);

inline constexpr std::uint16_t kDefaultPort = 29777;
// The port at which rank 0 listens: MASTER_PORT or the default. torchrun itself listens at
// MASTER_PORT if its agent serves the store of the ranks; rank 0 then takes the port after it.
std::uint16_t rendezvous_port(const Lookup& environment);

}  // namespace ztcp::perf
