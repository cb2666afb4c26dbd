// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What mpirun, torchrun and srun tell a rank through its environment. Pure: variables are asked
// for through a Lookup.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ztcp::perf {

// The variable's text; absent when it is not set or empty.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

Lookup process_environment();

// Fails when the variable is there and is no number of 0 or more.
std::optional<int> number_in(const Lookup& environment, const char* name);

struct LaunchPlace {
  int rank = 0;
  int ranks = 0;
  std::optional<int> local_rank;
  std::string first_host;  // Where rank 0 runs; empty: the launcher does not say.
};

// Absent when no launcher started this process.
std::optional<LaunchPlace> place_in(const Lookup& environment);

// The first name of a Slurm host list: "gpu07" of "gpu[07-09,12],cpu1".
std::string first_host(std::string_view nodes);

}  // namespace ztcp::perf
