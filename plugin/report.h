// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Failures that the operator has been told of. Whoever decides that a call fails says so through
// report() and gets a Reported, the only error the door (guard.h) takes: a failure can neither
// leave the library unsaid nor be said twice.
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "transport/core/log.h"
#include "transport/core/result.h"

namespace ztcp::plugin {

class [[nodiscard]] Reported {
 public:
  // For a failure that was said before: a dead connection reports its death once, then only this.
  static Reported earlier(Errc code) { return Reported(code); }
  Errc code() const { return code_; }

 private:
  explicit Reported(Errc code) : code_(code) {}
  Errc code_;
};

template <class T>
using Told = tl::expected<T, Reported>;

// "the peer stopped answering (Connection timed out), at connect": an Error in a sentence.
std::string explain(const Error& error);

// Warns, and makes the failure to return.
template <class... Args>
tl::unexpected<Reported> report(Errc code, log::Format format, const Args&... args) {
  log::warn(format, args...);
  return tl::unexpected<Reported>(Reported::earlier(code));
}

// Passes a reported failure on, whatever the caller returns on success.
inline tl::unexpected<Reported> pass_on(Reported failure) {
  return tl::unexpected<Reported>(failure);
}

// The same for what a transport has said already: of what a connection died, with the peer and its
// counters, when it did.
inline tl::unexpected<Reported> pass_on(const Error& error) {
  return tl::unexpected<Reported>(Reported::earlier(error.code));
}

}  // namespace ztcp::plugin
