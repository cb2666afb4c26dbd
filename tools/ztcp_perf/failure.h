// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How the tool fails: it ends with one clear line, so a failure is an exception that main()
// catches. (The plugin itself never throws; nothing here runs inside it.)
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace ztcp::perf {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another rank failed first and has said why; this one only stops.
class Stopped : public Failure {
 public:
  using Failure::Failure;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(fmt::format(format, std::forward<Args>(args)...));
}

// Exit codes; the launcher tells a rank that failed from one that only stopped with it.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitStopped = 3;
inline constexpr int kExitWrongData = 4;

}  // namespace ztcp::perf
