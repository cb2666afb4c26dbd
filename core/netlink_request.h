// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Builds a netlink message: a fixed part, then attributes.
#pragma once

#include <array>
#include <string>

#include "core/netlink_message.h"

namespace ztcp::netlink {

class NetlinkRequest {
 public:
  template <class Fixed>
  NetlinkRequest(std::uint16_t type, int flags, const Fixed& fixed) {
    header().nlmsg_len = sizeof(nlmsghdr);
    header().nlmsg_type = type;
    header().nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    static_assert(sizeof(nlmsghdr) + aligned(sizeof(Fixed)) <= kSize);
    std::memcpy(grow(sizeof(Fixed)), &fixed, sizeof(Fixed));
  }

  void put(std::uint16_t type, Bytes payload) {
    const std::size_t length = sizeof(nlattr) + payload.size();
    if (length > UINT16_MAX || header().nlmsg_len + aligned(length) > kSize) {
      fits_ = false;
      return;
    }
    const nlattr attribute{static_cast<std::uint16_t>(length), type};
    std::byte* place = grow(length);
    std::memcpy(place, &attribute, sizeof(attribute));
    std::copy(payload.begin(), payload.end(), place + sizeof(attribute));
  }
  void put(std::uint16_t type, std::uint32_t number) {
    put(type, std::as_bytes(std::span(&number, 1)));
  }
  // Includes the terminating zero.
  void put(std::uint16_t type, const std::string& text) {
    put(type, std::as_bytes(std::span(text.c_str(), text.size() + 1)));
  }
  // Puts the attributes that `fill` adds inside this one.
  template <class Fill>
  void put_nested(std::uint16_t type, Fill&& fill) {
    const std::size_t begin = header().nlmsg_len;
    put(type, Bytes());
    fill();
    if (!fits_) return;
    const nlattr attribute{static_cast<std::uint16_t>(header().nlmsg_len - begin), type};
    std::memcpy(buffer_.data() + begin, &attribute, sizeof(attribute));
  }

  // False if the buffer was too small.
  bool fits() const { return fits_; }
  nlmsghdr& header() { return *reinterpret_cast<nlmsghdr*>(buffer_.data()); }
  Bytes bytes() { return Bytes(buffer_).first(header().nlmsg_len); }

 private:
  static constexpr std::size_t kSize = 16384;

  std::byte* grow(std::size_t size) {
    std::byte* place = buffer_.data() + header().nlmsg_len;
    header().nlmsg_len += static_cast<std::uint32_t>(aligned(size));
    return place;
  }

  bool fits_ = true;
  alignas(nlmsghdr) std::array<std::byte, kSize> buffer_{};
};

}  // namespace ztcp::netlink
