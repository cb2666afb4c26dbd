// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/exchange.h"

#include <algorithm>

namespace ztcp::verbs {
namespace {

msg::Digest prove(const msg::ClusterKey& key, std::string_view label, const Hello& hello,
                  Answer answer) {
  answer.proof = {};
  return msg::hmac_sha256(
      key, {std::as_bytes(std::span(label)), records::bytes_of(hello), records::bytes_of(answer)});
}

constexpr std::string_view kReceiver = "ztcp verbs 1 receiver";
constexpr std::string_view kSender = "ztcp verbs 1 sender";

// "RDMA 1, TCP 1": by kind and number.
std::string rails_text(const EndFacts& facts) {
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(facts.rails, kMaxRails); ++i)
    out += (out.empty() ? "" : ", ") + std::string(facts.on[i].is_tcp != 0 ? "TCP " : "RDMA ") +
           std::to_string(facts.on[i].number + 1);
  return out.empty() ? "none" : out;
}

}  // namespace

Hello make_hello(const Cookie& cookie, const Nonce& nonce, const EndFacts& facts) {
  auto out = records::make<Hello>();
  out.cookie = cookie;
  out.nonce = nonce;
  out.facts = facts;
  return out;
}

Answer make_answer(const msg::ClusterKey& key, const Hello& hello, const Nonce& nonce,
                   const EndFacts& facts) {
  auto out = records::make<Answer>();
  out.nonce = nonce;
  out.facts = facts;
  out.proof = prove(key, kReceiver, hello, out);
  return out;
}

Wait make_wait() { return records::make<Wait>(); }

Ready make_ready(const msg::ClusterKey& key, const Hello& hello, const Answer& answer) {
  auto out = records::make<Ready>();
  out.proof = prove(key, kSender, hello, answer);
  return out;
}

CloseRecord make_close_record(std::uint8_t code, std::string_view text) {
  auto out = records::make<CloseRecord>();
  out.code = code;
  records::put_text(text, out.text);
  return out;
}

StreamHello make_stream_hello(const Ticket& ticket) {
  auto out = records::make<StreamHello>();
  out.ticket = ticket;
  return out;
}

PathHello make_path_hello(const Ticket& ticket, std::uint32_t heard) {
  auto out = records::make<PathHello>();
  out.ticket = ticket;
  out.heard = heard;
  return out;
}

RailNote make_note(RailNote::Step step, std::size_t rail, std::uint32_t epoch) {
  auto out = records::make<RailNote>();
  out.rail = static_cast<std::uint8_t>(rail);
  out.step = step;
  out.epoch = epoch;
  return out;
}

bool is_proven(const msg::ClusterKey& key, const Hello& hello, const Answer& answer) {
  return msg::equal_in_constant_time(answer.proof, prove(key, kReceiver, hello, answer));
}

bool is_proven(const msg::ClusterKey& key, const Hello& hello, const Answer& answer,
               const Ready& ready) {
  return msg::equal_in_constant_time(ready.proof, prove(key, kSender, hello, answer));
}

// Without a key the digest is a checksum of the exchange.
std::string_view unproven_text(const msg::ClusterKey& key) {
  return key == msg::ClusterKey{}
             ? "bytes of the exchange were changed on the way, or one host alone has a "
               "cluster_key: it must be equal on all"
             : "another cluster_key: it must be equal in all hosts' ztcp.conf";
}

std::string text_of(const CloseRecord& record) { return records::printable(record.text); }
std::string device_of(const RailFacts& facts) { return records::printable(facts.device); }

const RailFacts* counterpart(const RailFacts& of, const EndFacts& all) {
  for (std::size_t i = 0; i < std::min<std::size_t>(all.rails, kMaxRails); ++i)
    if (all.on[i].is_tcp == of.is_tcp && all.on[i].number == of.number) return &all.on[i];
  return nullptr;
}

std::string mismatch(const RailFacts& ours, const RailFacts& theirs) {
  if (ours.is_tcp != 0) return {};
  const auto layer = [](const RailFacts& facts) {
    switch (facts.network) {
      case Network::kInfiniBand:
        return "InfiniBand";
      case Network::kIwarp:
        return "iWARP";
      default:
        return "Ethernet";
    }
  };
  if (ours.network != theirs.network)
    return std::string(layer(ours)) + " here, " + layer(theirs) + " at the peer (" +
           device_of(theirs) +
           "): give both hosts' ztcp.conf NICs of one network in the same order";
  if (ours.gid_type != 0 && theirs.gid_type != 0 && ours.gid_type != theirs.gid_type)
    return "RoCE v" + std::to_string(ours.gid_type) + " here, RoCE v" +
           std::to_string(theirs.gid_type) + " at the peer (" + device_of(theirs) +
           "): name GIDs of one version by gid_index in both hosts' ztcp.conf, or by "
           "NCCL_IB_GID_INDEX";
  if (theirs.queue_pairs == 0 || theirs.queue_pairs > kMaxQueuePairs)
    return "the peer tells of no queue pair, or of too many";
  if (theirs.mtu == 0 || theirs.mtu > 5) return "the peer tells of no MTU";
  return {};
}

std::string mismatch(const EndFacts& ours, const EndFacts& theirs) {
  if (theirs.rails == 0 || theirs.rails > kMaxRails)
    return "the peer tells of no device, or of too many";
  bool has_common = false;
  for (std::size_t i = 0; i < ours.rails; ++i) {
    const RailFacts* const theirs_of_it = counterpart(ours.on[i], theirs);
    if (theirs_of_it == nullptr) continue;
    has_common = true;
    if (theirs_of_it->key >= kMaxRails) return "the peer tells of too many devices";
    if (std::string why = mismatch(ours.on[i], *theirs_of_it); !why.empty()) return why;
  }
  if (has_common) return {};
  return "no rail in common: " + rails_text(ours) + " here, " + rails_text(theirs) +
         " at the peer; merge NICs of the same networks in the same order in both hosts' ztcp.conf";
}

}  // namespace ztcp::verbs
