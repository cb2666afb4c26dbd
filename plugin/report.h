// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Failures that have been reported to the operator. The code that decides that a call fails calls
// report() and gets a Reported, the only error type that guard() accepts: a failure can neither
// leave the library unreported nor be reported twice.
#pragma once

#include <string>

#include "core/log.h"
#include "core/result.h"

namespace ztcp::plugin {

class [[nodiscard]] Reported {
 public:
  // For a failure reported before: a dead connection reports its cause once, then only this code.
  static Reported earlier(Errc code) { return Reported(code); }
  Errc code() const { return code_; }

 private:
  explicit Reported(Errc code) : code_(code) {}
  Errc code_;
};

template <class T>
using Told = Result<T, Reported>;

// An Error as a sentence: "the peer stopped answering (Connection timed out), at connect".
std::string explain(const Error& error);

// Logs a warning, and returns the failure.
template <class... Args>
tl::unexpected<Reported> report(Errc code, log::Format format, const Args&... args) {
  log::warn(format, args...);
  return tl::unexpected<Reported>(Reported::earlier(code));
}

// Passes a reported failure on to a caller with another result type.
inline tl::unexpected<Reported> pass_on(Reported failure) {
  return tl::unexpected<Reported>(failure);
}

// Passes on a failure that a transport has reported: it logs the cause of a connection's death,
// with the peer and its counters, when that happens.
inline tl::unexpected<Reported> pass_on(const Error& error) {
  return tl::unexpected<Reported>(Reported::earlier(error.code));
}

}  // namespace ztcp::plugin
