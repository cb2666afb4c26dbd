// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Failures of the tool are exceptions that main() catches, so it ends with one clear line. (The
// plugin itself never throws; nothing here runs inside it.)
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace ztcp::perf {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another rank failed first and has reported the reason; this one only stops.
class Stopped : public Failure {
 public:
  using Failure::Failure;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(fmt::format(format, std::forward<Args>(args)...));
}

// Exit codes; the launcher distinguishes a failed rank from one that only stopped with it.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitStopped = 3;
inline constexpr int kExitWrongData = 4;

}  // namespace ztcp::perf
