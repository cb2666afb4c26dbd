// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/log_origin.h"

#include <algorithm>
#include <array>
#include <unistd.h>

namespace ztcp::log {
namespace {

constexpr std::size_t kMostDigits = 9;
constexpr std::array<std::string_view, 4> kRanks{"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                                 "SLURM_PROCID"};

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kMostDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// The value of `name`; empty where it is not set or is no number.
std::string_view number_of(std::string_view name, const char* const* variables) {
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    const std::string_view variable = *variables;
    if (!variable.starts_with(name) || variable.size() <= name.size() ||
        variable[name.size()] != '=')
      continue;
    const std::string_view value = variable.substr(name.size() + 1);
    return is_number(value) ? value : std::string_view();
  }
  return {};
}

}  // namespace

std::string expand_name(std::string_view pattern, std::string_view host, pid_t pid) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    switch (next) {
      case 'h':
        out += host;
        break;
      case 'p':
        out += std::to_string(pid);
        break;
      case '%':
        out += '%';
        break;
      default:
        out += pattern[i];
        continue;
    }
    ++i;
  }
  return out;
}

LauncherRanks launcher_ranks(const char* const* variables) {
  using Names = std::array<std::string_view, 4>;
  const auto find = [&](const Names& names, int unknown) {
    for (const std::string_view name : names)
      if (const std::string_view value = number_of(name, variables); !value.empty())
        return std::stoi(std::string(value));
    return unknown;
  };
  return {
      .rank = find(kRanks, -1),
      .ranks = find({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, 0),
      .local_rank = find(
          {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, -1)};
}

std::string origin_of(std::string_view host, const char* const* variables) {
  std::string out(host);
  for (const std::string_view name : kRanks) {
    const std::string_view rank = number_of(name, variables);
    if (rank.empty()) continue;
    out += out.empty() ? "rank " : " rank ";
    return out += rank;
  }
  return out;
}

std::string short_host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return {};
  std::string host = name.data();
  host.resize(std::min(host.find('.'), host.size()));
  // The name becomes a part of file names and of lines.
  for (char& c : host)
    if (c <= ' ' || c > '~' || c == '/') c = '_';
  return host;
}

}  // namespace ztcp::log
