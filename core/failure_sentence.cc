// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/failure_sentence.h"

#include <cstring>

#include <fmt/format.h>

namespace ztcp {
namespace {

// The error and the call that it came from, each once.
std::string error_text(const Error& error) {
  const std::string text = describe(error.code);
  const std::string why = error.sys_errno == 0 ? "" : std::strerror(error.sys_errno);
  if (why.empty()) return text == error.where ? text : fmt::format("{} ({})", text, error.where);
  return fmt::format("{} ({}: {})", text, error.where, why);
}

std::string reason_text(const FailureSentence& failure) {
  const std::string text = failure.reason.empty() ? error_text(failure.error) : failure.reason;
  return failure.detail.empty() ? text : text + ": " + failure.detail;
}

}  // namespace

std::string to_string(const FailureSentence& failure) {
  std::string out = fmt::format(
      "{} {}{}{} failed: {}; {} messages ({} bytes) done, {} in flight",
      failure.direction == Direction::kSend ? "sending to" : "receiving from",
      to_string(failure.remote), failure.over.empty() ? "" : " over ", failure.over,
      reason_text(failure), failure.messages_done, failure.bytes_done, failure.in_flight);
  for (const std::string& clause : failure.more)
    if (!clause.empty()) out += "; " + clause;
  return out;
}

}  // namespace ztcp
