// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Builds rtnetlink messages by hand, independently of config/netlink_request.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <span>
#include <string>
#include <string_view>

namespace ztcp::test {

// A message that grows at its end.
class MessageBytes {
 public:
  template <class Fixed>
  MessageBytes(std::uint16_t type, const Fixed& fixed) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    append(header);
    append(fixed);
  }

  template <class Value>
  MessageBytes& with(unsigned short type, const Value& value) {
    return with_bytes(type, {reinterpret_cast<const char*>(&value), sizeof(value)});
  }
  MessageBytes& with_bytes(unsigned short type, std::string_view bytes) {
    rtattr header{};
    header.rta_len = static_cast<unsigned short>(RTA_LENGTH(bytes.size()));
    header.rta_type = type;
    append(header);
    append_bytes(bytes);
    return *this;
  }

  std::string bytes() const {
    std::string out = text_;
    const auto length = static_cast<std::uint32_t>(out.size());
    std::memcpy(out.data(), &length, sizeof(length));  // nlmsg_len is the first field.
    return out;
  }
  // The bytes after the header and `fixed_bytes`, to put inside another attribute.
  std::string attributes(std::size_t fixed_bytes) const {
    return text_.substr(NLMSG_HDRLEN + NLMSG_ALIGN(fixed_bytes));
  }

 private:
  template <class Value>
  void append(const Value& value) {
    append_bytes({reinterpret_cast<const char*>(&value), sizeof(value)});
  }
  void append_bytes(std::string_view bytes) {
    text_ += bytes;
    text_.resize(NLMSG_ALIGN(text_.size()));
  }

  std::string text_;
};

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace ztcp::test
