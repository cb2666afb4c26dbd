// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The file or pipe that a capture goes to.
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "core/descriptor.h"

namespace ztcp::capture {

class Output {
 public:
  // A new file of this user alone, or an older capture, which is replaced; pipes and devices are
  // written to. "-": stdout, unless it is a terminal. The error is a sentence for the user.
  static tl::expected<Output, std::string> open(const std::string& path);

  enum class Written { kAll, kReaderIsGone, kFailed };
  // Writes `text` and clears it. A failed one has sys_errno().
  Written write(std::string& text);
  int sys_errno() const { return sys_errno_; }

 private:
  explicit Output(Descriptor fd) : fd_(std::move(fd)) {}
  Descriptor fd_;
  int sys_errno_ = 0;
};

}  // namespace ztcp::capture
