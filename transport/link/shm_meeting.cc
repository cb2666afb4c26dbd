// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/shm_meeting.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

#include <fmt/format.h>

#include "core/log.h"
#include "core/process_mark.h"
#include "transport/link/socket_file.h"

namespace ztcp::link {
namespace {

constexpr std::uint64_t kMagic = 0x6b6e696c6d737a00;
constexpr std::uint32_t kVersion = 1;
constexpr Duration kSilence = std::chrono::milliseconds(500);  // Limit for a caller, which sends at
                                                               // once.
constexpr Duration kCallAgain = std::chrono::seconds(1);       // After a refusal.

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

template <class Message>
bool send_message(const Fd& to, const Message& hello, const Fd* fd) {
  iovec part{const_cast<Message*>(&hello), sizeof(hello)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (fd != nullptr) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = fd->get();
    std::memcpy(CMSG_DATA(head), &number, sizeof(number));
  }
  return ::sendmsg(to.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof(hello));
}

enum class Read : std::uint8_t { kHello, kNotYet, kNothing };

// kNothing: the other end is gone, or is no ztcp. `fd` receives the descriptor that came along.
template <class Message>
Read read_message(const Fd& from, Message& hello, Fd& fd) {
  iovec part{&hello, sizeof(hello)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(from.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Read::kNotYet;
  const cmsghdr* head = size >= 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (head != nullptr && head->cmsg_type == SCM_RIGHTS) {
    // Padding leaves space for a second descriptor, which was not requested and is closed.
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= head->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(head) + at, sizeof(number));
      fd = Fd(number);
    }
  }
  return size == static_cast<ssize_t>(sizeof(hello)) && hello.magic == kMagic ? Read::kHello
                                                                              : Read::kNothing;
}

// A socket or call of another user is not one of our ranks.
bool is_stranger(const Fd& socket, uid_t& who) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return true;
  who = peer.uid;
  return peer.uid != ::geteuid() && peer.uid != 0;
}

}  // namespace

struct ShmMeeting::Hello {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t refused = 0;  // In a server's answer: no memory comes with it.
  MacAddress mac;
  std::uint16_t mtu_bytes = 0;
  ShmShape shape;
};

Result<ShmMeeting> ShmMeeting::open(ShmMeetingConfig config) {
  if (config.socket_path.empty() || config.socket_path.front() != '/' ||
      config.socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
    log::warn(
        "memif_socket {}: a path of a socket begins with / and has at most {} bytes; choose "
        "a shorter run directory",
        config.socket_path, sizeof(sockaddr_un::sun_path) - 1);
    return fail(Errc::kBadConfig, "socket of a link");
  }
  ShmMeeting meeting(std::move(config));
  if (meeting.config_.server) ZTCP_CHECK(meeting.listen());
  return meeting;
}

ShmMeeting::~ShmMeeting() {
  if (listener_ && !in_forked_child()) remove_socket_file(config_.socket_path.c_str());
}

Status ShmMeeting::listen() {
  const SocketFolder folder = ZTCP_TRY(make_way_for_server(config_.socket_path));
  const sockaddr_un address = address_of(config_.socket_path);
  Fd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (!made || bind_socket_file(made.get(), generic, sizeof(address)) != 0 ||
      ::listen(made.get(), 4) != 0) {
    const int why = errno;
    log::warn("socket {} of a link can't be made: {}; user {} must be able to write to its folder",
              config_.socket_path, std::strerror(why), ::geteuid());
    return fail(Errc::kSystem, "socket of a link", why);
  }
  listener_ = std::move(made);
  return {};
}

std::unique_ptr<ShmRegion> ShmMeeting::poll(TimePoint now) {
  if (up_) {
    if (is_cut_off()) {
      up_ = false;
      peer_ = Fd();
      said_.clear();
    }
    return nullptr;
  }
  return config_.server ? answer_caller(now) : call(now);
}

void ShmMeeting::drop(std::string_view why) {
  say_once(fmt::format("{}: {}", config_.socket_path, why));
  up_ = false;
  peer_ = Fd();
}

bool ShmMeeting::is_stranger_there() {
  uid_t who = 0;
  if (!is_stranger(peer_, who)) return false;
  drop(
      fmt::format("at the other end is a process of user {}, this is user {}: let all ranks of a "
                  "machine run as one user",
                  who, ::geteuid()));
  return true;
}

bool ShmMeeting::is_cut_off() const {
  char byte = 0;
  const ssize_t size = ::recv(peer_.get(), &byte, 1, MSG_DONTWAIT);
  return size >= 0 || (errno != EAGAIN && errno != EINTR);
}

ShmMeeting::Hello ShmMeeting::own_hello() const {
  Hello hello;
  hello.mac = config_.mac;
  hello.mtu_bytes = config_.mtu_bytes;
  hello.shape = config_.shape;
  return hello;
}

// With different versions only the version field has a known meaning.
bool ShmMeeting::agrees(const Hello& hello) {
  if (hello.version != kVersion) {
    drop(
        fmt::format("the other end speaks version {} of shared memory, this one {}: let all "
                    "processes of this machine load the same libnccl-net.so",
                    hello.version, kVersion));
    return false;
  }
  if (hello.mac == config_.peer_mac && hello.mtu_bytes == config_.mtu_bytes &&
      hello.shape == config_.shape)
    return true;
  drop(
      fmt::format("the other end is {} with MTU {} and {} slots of {} bytes, expected was {} with "
                  "MTU {} and {} of {}: let all processes of this machine read the same config "
                  "(ZTCP_CONFIG)",
                  to_string(hello.mac), hello.mtu_bytes, hello.shape.slot_count,
                  hello.shape.slot_bytes, to_string(config_.peer_mac), config_.mtu_bytes,
                  config_.shape.slot_count, config_.shape.slot_bytes));
  return false;
}

std::unique_ptr<ShmRegion> ShmMeeting::answer_caller(TimePoint now) {
  if (!peer_) {
    peer_ = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    silent_until_ = now + kSilence;
    if (peer_ && is_stranger_there()) return nullptr;
  }
  if (!peer_) return nullptr;
  Hello hello;
  Fd unasked;
  const Read read = read_message(peer_, hello, unasked);
  if (read == Read::kNotYet && now < silent_until_) return nullptr;
  Fd caller = std::exchange(peer_, Fd());
  if (read != Read::kHello) return nullptr;
  Hello answer = own_hello();
  Fd memory;
  std::unique_ptr<ShmRegion> region;
  if (agrees(hello)) {
    auto made = ShmRegion::make(config_.shape, memory);
    if (made)
      region = std::move(*made);
    else
      say_once(fmt::format("{}: no memory of {} KiB to share: {}{}", config_.socket_path,
                           config_.shape.bytes() >> 10, std::strerror(made.error().sys_errno),
                           made.error().sys_errno == EFBIG ? "; raise ulimit -f" : ""));
  }
  answer.refused = region == nullptr ? 1 : 0;
  if (!send_message(caller, answer, region == nullptr ? nullptr : &memory)) return nullptr;
  if (region == nullptr) return nullptr;
  peer_ = std::move(caller);
  up_ = true;
  return region;
}

std::unique_ptr<ShmRegion> ShmMeeting::call(TimePoint now) {
  if (peer_) return read_answer();
  if (now < next_call_) return nullptr;
  Fd caller(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_of(config_.socket_path);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (!caller || ::connect(caller.get(), generic, sizeof(address)) != 0) return nullptr;
  next_call_ = now + kCallAgain;
  peer_ = std::move(caller);
  if (is_stranger_there() || send_message(peer_, own_hello(), nullptr)) return nullptr;
  peer_ = Fd();
  return nullptr;
}

std::unique_ptr<ShmRegion> ShmMeeting::read_answer() {
  Hello answer;
  Fd memory;
  const Read read = read_message(peer_, answer, memory);
  if (read == Read::kNotYet) return nullptr;
  // In any case: there is no second answer to wait for.
  Fd server = std::exchange(peer_, Fd());
  if (read == Read::kNothing) {
    next_call_ = {};
    return nullptr;
  }
  if (!agrees(answer)) return nullptr;
  if (answer.refused != 0) {
    drop("the other end refused; its log says why");
    return nullptr;
  }
  auto region = ShmRegion::map(config_.shape, memory);
  if (!region) {
    drop(
        fmt::format("the peer's shared memory can't be mapped: {}", describe(region.error().code)));
    return nullptr;
  }
  next_call_ = {};
  peer_ = std::move(server);
  up_ = true;
  return std::move(*region);
}

void ShmMeeting::say_once(std::string text) {
  if (text == said_) return;
  log::warn("{}", text);
  said_ = std::move(text);
}

}  // namespace ztcp::link
