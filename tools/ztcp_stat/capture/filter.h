// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A filter in tcpdump's language, compiled and run by libpcap. The library is opened when a filter
// is used, so that the tool runs without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <tl/expected.hpp>

namespace ztcp::capture {

class Filter {
 public:
  // The error is a sentence for the user, without a full stop.
  static tl::expected<Filter, std::string> compile(const std::string& expression);
  Filter(Filter&&) noexcept;
  Filter& operator=(Filter&&) noexcept;
  ~Filter();

  bool matches(std::span<const std::byte> frame, std::uint32_t original_bytes) const;

 private:
  struct Program;
  explicit Filter(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

}  // namespace ztcp::capture
