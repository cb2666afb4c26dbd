// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sessions with a simulated kernel, and some with the real one.
#include "core/netlink.h"

#include <cerrno>
#include <deque>
#include <limits>
#include <linux/if_link.h>
#include <net/if.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/netlink_bytes.h"

namespace ztcp::netlink {
namespace {

using test::MessageBytes;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint32_t kProcess = 4711;  // A port id that is not the kernel's.
constexpr std::uint32_t kOtherSequence = 99;

std::string link(int index, std::string_view name) {
  ifinfomsg fixed{};
  fixed.ifi_index = index;
  return MessageBytes(RTM_NEWLINK, fixed).with_bytes(IFLA_IFNAME, std::string(name) + '\0').bytes();
}
std::string done(int error = 0) { return MessageBytes(NLMSG_DONE, error).bytes(); }
std::string refusal(int error) {
  nlmsgerr fixed{};
  fixed.error = error;
  return MessageBytes(NLMSG_ERROR, fixed).bytes();
}
std::string flagged(std::string message, std::uint16_t flags) {
  std::memcpy(message.data() + offsetof(nlmsghdr, nlmsg_flags), &flags, sizeof(flags));
  return message;
}

struct Reply {
  std::string bytes;
  std::uint32_t sender = 0;
  std::uint32_t sequence = 0;  // 0: the request's.
};

// Answers each request with the next list of replies, and sends nothing after the last one.
class PlayedKernel final : public Channel {
 public:
  std::deque<std::vector<Reply>> answers;
  std::vector<nlmsghdr> requests;

  Status send(Bytes request) override {
    requests.push_back(read_as<nlmsghdr>(request));
    replies_.clear();
    if (answers.empty()) return {};
    for (Reply& reply : answers.front()) {
      number(reply);
      replies_.push_back(std::move(reply));
    }
    answers.pop_front();
    return {};
  }
  Result<Datagram> receive(Deadline) override {
    if (replies_.empty()) return fail(Errc::kTimedOut, "netlink");
    said_ = std::move(replies_.front());
    replies_.pop_front();
    return Datagram{said_.sender, test::as_bytes(said_.bytes)};
  }

 private:
  void number(Reply& reply) const {
    const std::uint32_t sequence = reply.sequence != 0 ? reply.sequence : requests.back().nlmsg_seq;
    for (std::size_t at = 0; at + sizeof(nlmsghdr) <= reply.bytes.size();) {
      std::memcpy(&reply.bytes[at + offsetof(nlmsghdr, nlmsg_seq)], &sequence, sizeof(sequence));
      std::uint32_t length = 0;
      std::memcpy(&length, &reply.bytes[at], sizeof(length));
      at += NLMSG_ALIGN(length);
    }
  }

  std::deque<Reply> replies_;
  Reply said_;
};

class Netlink : public testing::Test {
 protected:
  Status dump() {
    return session_.dump(RTM_GETLINK, ifinfomsg{}, [&](const Message& message) {
      names.push_back(message.attributes<ifinfomsg>().text(IFLA_IFNAME));
    });
  }
  Status carry_out() { return session_.carry_out(NetlinkRequest(RTM_NEWLINK, 0, ifinfomsg{})); }
  Status query() {
    return session_.query(NetlinkRequest(RTM_GETLINK, 0, ifinfomsg{}), [&](const Message& message) {
      names.push_back(message.attributes<ifinfomsg>().text(IFLA_IFNAME));
    });
  }

  PlayedKernel* kernel = new PlayedKernel;  // Owned by the session.
  std::vector<std::string> names;

 private:
  Session session_{std::unique_ptr<Channel>(kernel)};
};

TEST_F(Netlink, AListIsReadToItsEnd) {
  kernel->answers = {{{link(1, "lo") + link(2, "eth0")}, {link(3, "eth1")}, {done()}}};
  ASSERT_TRUE(dump());
  EXPECT_THAT(names, ElementsAre("lo", "eth0", "eth1"));
  EXPECT_EQ(kernel->requests[0].nlmsg_flags, NLM_F_REQUEST | NLM_F_DUMP);
}

TEST_F(Netlink, AQueryIsAnsweredByAMessageAndARefusalVisitsNothing) {
  kernel->answers = {{{link(2, "eth0")}, {refusal(0)}}, {{refusal(-ENODEV)}}};
  EXPECT_TRUE(query());
  EXPECT_THAT(names, ElementsAre("eth0"));
  EXPECT_EQ(kernel->requests[0].nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
  names.clear();
  EXPECT_EQ(query().error().sys_errno, ENODEV);
  EXPECT_THAT(names, IsEmpty());
}

TEST_F(Netlink, AnAcknowledgementEndsARequestAndARefusalIsItsError) {
  kernel->answers = {{{refusal(0)}}, {{refusal(-EPERM)}}};
  EXPECT_TRUE(carry_out());
  EXPECT_EQ(kernel->requests[0].nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
  const Status refused = carry_out();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kSystem);
  EXPECT_EQ(refused.error().sys_errno, EPERM);
}

TEST_F(Netlink, OnlyTheKernelsMessagesAreAccepted) {
  kernel->answers = {{{link(9, "fake"), kProcess},
                      {refusal(-EPERM), kProcess},
                      {"not even a message", kProcess},
                      {link(1, "lo")},
                      {done(), kProcess},
                      {link(2, "eth0") + done()}}};
  ASSERT_TRUE(dump());
  EXPECT_THAT(names, ElementsAre("lo", "eth0"));
}

TEST_F(Netlink, AnswersToOtherRequestsAreSkipped) {
  kernel->answers = {{{link(9, "late") + done(), 0, kOtherSequence},
                      {flagged(link(9, "late"), NLM_F_DUMP_INTR), 0, kOtherSequence},
                      {link(1, "lo")},
                      {done(-EIO), 0, kOtherSequence},
                      {done()}}};
  ASSERT_TRUE(dump());
  EXPECT_THAT(names, ElementsAre("lo"));
}

TEST_F(Netlink, EachRequestHasItsOwnNumber) {
  kernel->answers = {{{done()}}, {{done()}}};
  ASSERT_TRUE(dump());
  ASSERT_TRUE(dump());
  EXPECT_NE(kernel->requests[0].nlmsg_seq, kernel->requests[1].nlmsg_seq);
}

TEST_F(Netlink, AnInterruptedListIsRequestedAgain) {
  kernel->answers = {{{link(1, "lo")}, {flagged(link(2, "gone"), NLM_F_DUMP_INTR)}, {done()}},
                     {{link(1, "lo")}, {flagged(done(), NLM_F_DUMP_INTR)}},
                     {{link(1, "lo")}, {link(3, "eth1")}, {done()}}};
  ASSERT_TRUE(dump());
  EXPECT_THAT(names, ElementsAre("lo", "eth1"));
  EXPECT_THAT(kernel->requests, SizeIs(3));
}

TEST_F(Netlink, AListThatIsAlwaysInterruptedIsGivenUp) {
  for (int i = 0; i < 100; ++i)
    kernel->answers.push_back({{flagged(link(1, "lo"), NLM_F_DUMP_INTR)}, {done()}});
  const Status status = dump();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().sys_errno, EAGAIN);
  EXPECT_THAT(kernel->requests, SizeIs(5));
  EXPECT_THAT(names, IsEmpty());
}

TEST_F(Netlink, AnErrorInsideAListEndsItWithNothingVisited) {
  kernel->answers = {{{link(1, "lo")}, {link(2, "eth0") + refusal(-ENOBUFS) + done()}},
                     {{link(1, "lo")}, {done(-EMSGSIZE)}}};
  for (const int wanted : {ENOBUFS, EMSGSIZE}) {
    const Status status = dump();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().sys_errno, wanted);
  }
  EXPECT_THAT(names, IsEmpty());
}

TEST_F(Netlink, InvalidErrorNumbersAreClamped) {
  kernel->answers = {{{refusal(std::numeric_limits<int>::min())}}, {{done(17)}}};
  EXPECT_FALSE(carry_out());
  EXPECT_TRUE(dump()) << "what is above zero is no errno";
}

TEST_F(Netlink, ATimeoutIsNotRetried) {
  kernel->answers = {{{link(1, "lo")}}};
  const Status status = dump();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kTimedOut);
  EXPECT_THAT(kernel->requests, SizeIs(1));
  EXPECT_THAT(names, IsEmpty());
}

// Every cut but the one between the messages: an error, and nothing is visited.
TEST_F(Netlink, ATruncatedDatagramIsAnError) {
  const std::string first = link(1, "lo");
  const std::string whole = first + link(2, "eth0");
  for (std::size_t length = 1; length < whole.size(); ++length) {
    if (length == first.size()) continue;
    kernel->answers = {{{whole.substr(0, length)}, {done()}}};
    const Status status = dump();
    ASSERT_FALSE(status) << length;
    EXPECT_EQ(status.error().code, Errc::kProtocol);
    EXPECT_EQ(status.error().sys_errno, EBADMSG);
    EXPECT_THAT(names, IsEmpty());
  }
}

TEST_F(Netlink, ATooLongRequestIsNotSent) {
  NetlinkRequest request(RTM_NEWLINK, 0, ifinfomsg{});
  for (int i = 0; i < 5; ++i) request.put(IFLA_IFALIAS, std::string(4096, 'x'));
  EXPECT_FALSE(request.fits());
  Session session{std::make_unique<PlayedKernel>()};
  const Status status = session.carry_out(request);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kInvalidArgument);
}

TEST(NetlinkAttributes, ATruncatedAttributeEndsTheWalk) {
  const std::string whole = MessageBytes(0, ifinfomsg{})
                                .with(IFLA_MTU, std::uint32_t{9000})
                                .with(IFLA_TXQLEN, std::uint32_t{1000})
                                .attributes(sizeof(ifinfomsg));
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const std::string cut =
        whole.substr(0, length);  // A block of its own: ASan detects reads beyond it.
    const Attributes attributes(test::as_bytes(cut));
    EXPECT_EQ(attributes.has(IFLA_MTU), length >= whole.size() / 2) << length;
    EXPECT_EQ(attributes.number(IFLA_TXQLEN), length == whole.size() ? 1000U : 0U) << length;
  }
}

TEST(NetlinkAttributes, WrongLengthsAreNotTrusted) {
  std::string bytes = MessageBytes(0, ifinfomsg{})
                          .with(IFLA_MTU, std::uint32_t{9000})
                          .attributes(sizeof(ifinfomsg));
  for (const int number : {0, 3, 9, 0xffff}) {
    const auto length = static_cast<std::uint16_t>(number);
    std::memcpy(bytes.data(), &length, sizeof(length));
    EXPECT_FALSE(Attributes(test::as_bytes(bytes)).has(IFLA_MTU)) << length;
  }
}

TEST(NetlinkAttributes, FlagsAreNotPartOfTheType) {
  const std::string inner =
      MessageBytes(0, ifinfomsg{}).with_bytes(IFLA_INFO_KIND, "vlan").attributes(sizeof(ifinfomsg));
  const std::string outer = MessageBytes(0, ifinfomsg{})
                                .with_bytes(IFLA_LINKINFO | NLA_F_NESTED, inner)
                                .attributes(sizeof(ifinfomsg));
  const Attributes attributes(test::as_bytes(outer));
  EXPECT_EQ(attributes.nested(IFLA_LINKINFO).text(IFLA_INFO_KIND), "vlan");
  attributes.for_each(
      [](const Attribute& one) { EXPECT_EQ(one.flagged_type, IFLA_LINKINFO | NLA_F_NESTED); });
}

TEST(NetlinkAttributes, ARequestReadsBackAsWritten) {
  NetlinkRequest request(RTM_NEWLINK, 0, ifinfomsg{});
  request.put(IFLA_IFNAME, std::string("eth1.7"));
  request.put_nested(IFLA_LINKINFO, [&] { request.put(IFLA_INFO_KIND, std::string("vlan")); });
  request.put(IFLA_MTU, 1400U);
  ASSERT_TRUE(request.fits());
  int count = 0;
  EXPECT_TRUE(for_each_message(request.bytes(), [&](const Message& message) {
    ++count;
    const Attributes attributes = message.attributes<ifinfomsg>();
    EXPECT_EQ(attributes.text(IFLA_IFNAME), "eth1.7");
    EXPECT_EQ(attributes.nested(IFLA_LINKINFO).text(IFLA_INFO_KIND), "vlan");
    EXPECT_EQ(attributes.number(IFLA_MTU), 1400U);
  }));
  EXPECT_EQ(count, 1);
}

TEST(NetlinkKernel, ListsInterfacesAndRefusesInvalidRequests) {
  auto session = Session::open();
  ASSERT_TRUE(session);
  int index = 0;
  ASSERT_TRUE(session->dump(RTM_GETLINK, ifinfomsg{}, [&](const Message& message) {
    if (message.attributes<ifinfomsg>().text(IFLA_IFNAME) == "lo")
      index = message.fixed<ifinfomsg>().ifi_index;
  }));
  EXPECT_EQ(static_cast<unsigned>(index), ::if_nametoindex("lo"));
  ifinfomsg nowhere{};
  nowhere.ifi_index = std::numeric_limits<int>::max();
  const Status refused = session->carry_out(NetlinkRequest(RTM_GETLINK, 0, nowhere));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys_errno, ENODEV);
}

// No request, so no answer: the wait ends at its deadline, which has passed.
TEST(NetlinkKernel, ReceiveEndsAtItsDeadline) {
  auto kernel = open_kernel();
  ASSERT_TRUE(kernel);
  const auto datagram = (*kernel)->receive(std::chrono::steady_clock::now());
  ASSERT_FALSE(datagram);
  EXPECT_EQ(datagram.error().code, Errc::kTimedOut);
}

}  // namespace
}  // namespace ztcp::netlink
