// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Error handling: "not yet" is a value, a failure is a Result<T>, a bug of ours is an assert().
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace ztcp {

// A closed list. The text is made where it is printed (describe()), so an Error stays 16 bytes.
enum class Errc : std::uint8_t {
  kInvalidArgument,  // The caller passed an invalid argument.
  kBadConfig,        // A setting is missing, malformed or contradictory.
  kNoDevice,         // The named NIC or GPU does not exist or is not ours.
  kBusy,             // Another process or object holds the resource.
  kOutOfMemory,      // Hugepages, frames, slots or descriptors ran out.
  kFull,             // The NIC's, or the peer's, connection limit is reached.
  kNoRoute,          // No NIC, neighbour or gateway leads to the address.
  kTimedOut,         // The peer stopped answering.
  kPeerClosed,       // The peer ended the connection, with FIN or RST.
  kRefused,          // The peer answered with a refusal.
  kProtocol,         // The peer broke the wire format, or speaks another version or network.
  kTruncated,        // A message is larger than its posted buffer.
  kPathMtu,          // Full-size packets do not get through.
  kForked,           // Called in a forked child, which owns no resources.
  kAborted,          // Ended by the local user.
  kSystem,           // A system call or driver failed; see Error::sys_errno.
};

// English for an operator, without a full stop: "the peer stopped answering".
const char* describe(Errc code);

// Trivially copyable on purpose: it travels through hot paths by value. `where` must be a string
// literal naming the operation that failed ("rte_eth_dev_start").
struct [[nodiscard]] Error {
  Errc code = Errc::kSystem;
  int sys_errno = 0;
  const char* where = "";
};

// An Error with a sentence for the operator that no literal can be: the limit that a library ran
// into, or how the peer's facts differ. FailureSentence prints it in place of the error's own text.
struct [[nodiscard]] ReasonedError {
  Error error;
  std::string reason;
};

// `E` is another type where nobody decides on a code: a text for the operator, or a Problem.
template <class T, class E = Error>
using Result = tl::expected<T, E>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(Errc code, const char* where, int sys_errno = 0) {
  return tl::unexpected<Error>(Error{code, sys_errno, where});
}
inline tl::unexpected<ReasonedError> fail(const Error& error, std::string reason) {
  return tl::unexpected<ReasonedError>(ReasonedError{error, std::move(reason)});
}
// For system calls: uses errno.
tl::unexpected<Error> fail_errno(const char* where);

// Unwraps a Result or returns its error from the enclosing function. A GNU statement expression,
// which both of our compilers accept.
#define ZTCP_TRY(expr)                                       \
  __extension__({                                            \
    auto&& ztcp_try_ = (expr);                               \
    if (!ztcp_try_) [[unlikely]]                             \
      return ::tl::unexpected(std::move(ztcp_try_).error()); \
    std::move(*ztcp_try_);                                   \
  })

// The same for Status, which has no value.
#define ZTCP_CHECK(expr)                                        \
  do {                                                          \
    if (auto&& ztcp_check_ = (expr); !ztcp_check_) [[unlikely]] \
      return ::tl::unexpected(std::move(ztcp_check_).error());  \
  } while (false)

}  // namespace ztcp
