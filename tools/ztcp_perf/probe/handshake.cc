// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/handshake.h"

#include <span>

#include <fmt/format.h>

#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/probe/hex.h"

namespace ztcp::perf::probe {
namespace {

// The text that a rank's proof covers.
std::string said(int rank, int ranks, const std::string& host, const std::string& nonce) {
  return fmt::format("probe {} {} {} {}", rank, ranks, nonce, host);
}

Proof prove(const std::string& secret, const Nonce& challenge, const std::string& text) {
  return prove_rank(secret, challenge, std::as_bytes(std::span(text)));
}

}  // namespace

Json make_challenge(const Nonce& challenge) { return {{"challenge", to_hex(challenge)}}; }

Json answer_challenge(const Json& line, const std::string& secret, int rank, int ranks,
                      const std::string& host, const Nonce& nonce) {
  Nonce challenge{};
  if (!from_hex(text_in(line, "challenge").value_or(""), challenge))
    fail("another program than ztcp_perf probe listens there");
  const std::string nonce_text = to_hex(nonce);
  const Proof proof = prove(secret, challenge, said(rank, ranks, host, nonce_text));
  return {{"ztcp_probe", kProtocol}, {"rank", rank},          {"ranks", ranks}, {"host", host},
          {"nonce", nonce_text},     {"proof", to_hex(proof)}};
}

Caller judge_answer(const Json& line, const std::string& secret, int ranks,
                    const Nonce& challenge) {
  Caller caller{.rank = whole_number_in(line, "rank"),
                .host = text_in(line, "host").value_or("unnamed"),
                .refusal = {},
                .admission = {}};
  const std::string place = fmt::format("rank {} ({})", caller.rank, caller.host);
  const std::string nonce_text = text_in(line, "nonce").value_or("");
  const int its_ranks = whole_number_in(line, "ranks");
  Nonce nonce{};
  Proof proof{};
  if (whole_number_in(line, "ztcp_probe") != kProtocol) {
    caller.refusal = fmt::format("{} speaks another protocol: another version", place);
  } else if (!from_hex(nonce_text, nonce) ||
             !from_hex(text_in(line, "proof").value_or(""), proof) ||
             !msg::equal_in_constant_time(
                 proof,
                 prove(secret, challenge, said(caller.rank, its_ranks, caller.host, nonce_text)))) {
    caller.refusal = fmt::format(
        "{} and rank 0 have different secrets; give all ranks the same --secret-file or "
        "ZTCP_PERF_SECRET",
        place);
  } else if (its_ranks != ranks || caller.rank < 1 || caller.rank >= ranks) {
    caller.refusal = fmt::format("{} of {} does not belong to {} ranks", place, its_ranks, ranks);
  } else {
    caller.admission = {{"admit", to_hex(prove_rank_0(secret, challenge, nonce))}};
    return caller;
  }
  caller.admission = {{"refuse", caller.refusal}};
  return caller;
}

void check_admission(const Json& line, const std::string& secret, const Json& challenge_line,
                     const Nonce& nonce) {
  if (const auto refusal = text_in(line, "refuse")) throw Failure(*refusal);
  Nonce challenge{};
  Proof proof{};
  if (!from_hex(text_in(challenge_line, "challenge").value_or(""), challenge) ||
      !from_hex(text_in(line, "admit").value_or(""), proof) ||
      !msg::equal_in_constant_time(proof, prove_rank_0(secret, challenge, nonce)))
    fail("the listener does not know this run's secret: another program is there");
}

}  // namespace ztcp::perf::probe
