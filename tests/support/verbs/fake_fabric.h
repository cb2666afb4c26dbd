// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// RDMA devices that are not there: a provider in memory behind the same table that libibverbs
// fills, with one network on which all of them lie. Queue pairs have states, keys go stale,
// completion queues overrun, receivers are not ready, events wait to be acknowledged; what moves,
// and when, is drawn from a seed each time that anybody polls. What a program may not do to the
// verbs is noted (misuse()), and what it does is counted.
//
// "GPU" memory is memory_region.h's: no CPU reaches it, and what was written to it is seen there
// once a read has gone over the same device.
//
// Devices of iWARP have queue pairs that a connection manager alone joins, which know no immediate,
// whose completions say nothing of arrival but for reads, and which read into memory alone that
// peers may write to.
//
// One at a time; thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/verbs/fake_objects.h"
#include "transport/verbs/api.h"

namespace ztcp::test {

class FakeFabric {
 public:
  explicit FakeFabric(std::vector<FakeDeviceSpec> devices, std::uint64_t seed = 1);
  ~FakeFabric();
  FakeFabric(const FakeFabric&) = delete;
  FakeFabric& operator=(const FakeFabric&) = delete;

  const verbs::Api* api() const;

  // --- What a test may arrange ---
  // The next write with immediate, or send, that is carried out ends so, whoever's it is.
  void fail_next_message(ibv_wc_status status);
  // The next of this kind.
  void fail_next(ibv_wr_opcode kind, ibv_wc_status status);
  // With the event that the device tells of it. A port that is down carries nothing.
  void set_port_state(const std::string& device, int port, ibv_port_state state);
  void raise(const std::string& device, ibv_event_type type, int port = 1);
  // What arrives is not acknowledged, so that the sender's NIC sends it again after its timeout.
  void lose_acknowledgements(bool lose) { loses_acknowledgements_ = lose; }
  // Its firmware is dead (FakeDevice::is_dead), which it may tell.
  void kill(const std::string& device, bool tells = true);
  // Of one queue pair, or of its completion queue; its device tells it.
  void raise_of_pair(std::uint32_t number, ibv_event_type type);
  // With the events of both. An address that goes takes its GIDs along.
  void set_address(const std::string& device, std::vector<ibv_gid> gids, std::uint16_t lid = 0);
  // From now on the call fails so: "ibv_reg_mr", "ibv_create_cq", "ibv_create_qp", "ibv_modify_qp",
  // "ibv_post_send fake1", "ibv_post_recv fake1" (which takes the first of a list all the same); 0:
  // not any more.
  void refuse(const std::string& call, int sys_errno);
  // The connection manager, which as soon as it is asked fails so; 0: not any more.
  void refuse_manager(int sys_errno);
  // Of iWARP: what is sent stays on its way, and what is completed does not arrive, until let go.
  void hold_arrivals(bool hold) { holds_arrivals_ = hold; }
  // Who connects by it hears nothing.
  void ignore_requests(bool ignore = true) { ignores_requests_ = ignore; }

  // --- What it may see ---
  int carried_out(ibv_wr_opcode opcode) const;  // Works of the kind that succeeded.
  FakeCounts counts(const std::string& device) const;
  int live(const char* kind) const;  // "context", "pd", "mr", "cq" or "qp".
  std::vector<std::uint32_t> pairs_of(const std::string& device) const;  // Their numbers.
  std::vector<std::string> misuse() const;
  // Of the device's queue pairs, as they were agreed upon.
  std::vector<std::optional<std::uint32_t>> ece_of(const std::string& device) const;

 private:
  friend struct FakeCalls;
  friend struct FakeManager;

  FakeContext& context_of(const std::string& device);
  void note(const std::string& what);
  void tell(FakeContext& context, const ibv_async_event& event);
  void tell_of_port(FakeContext& context, ibv_event_type type, int port);
  int refusal_of(const std::string& call) const;  // An errno; 0: none.
  void step();
  void carry_out(FakeQueuePair& qp);
  void carry_on(FakeQueuePair& qp);
  void answer(FakeQueuePair& qp);
  bool join(const FakeEnd& one, const FakeEnd& other);
  ibv_wc_status attempt(FakeQueuePair& qp, const FakeWork& work);
  bool scatter(const FakeQueuePair& qp, FakeWork& work);
  void tell_of_failure(FakeQueuePair& qp, ibv_event_type type);
  ibv_wc_status move(FakeQueuePair& qp, FakeQueuePair& peer, const FakeWork& work);
  ibv_wc_status fill(FakeQueuePair& peer, const FakeQueuePair& qp, const FakeWork& work);
  void finish(FakeQueuePair& qp, ibv_wc_status status);
  void fail(FakeQueuePair& qp);
  void complete(FakeCompletionQueue& cq, const ibv_wc& wc);
  FakeQueuePair* peer_of(const FakeQueuePair& qp);
  FakeMemory* memory_at(std::uint32_t key, const ibv_pd* pd, std::uint64_t address,
                        std::size_t size);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<FakeDevice>> devices_;
  std::map<std::uint32_t, FakeQueuePair*> queue_pairs_;  // By number.
  std::map<std::uint32_t, FakeMemory*> memory_;          // By key; local and remote are one.
  std::vector<FakeContext*> contexts_;
  std::map<std::string, int> live_;
  std::map<ibv_wr_opcode, int> carried_out_;
  std::mt19937_64 random_;
  std::uint32_t next_number_ = 0x100;
  std::uint32_t next_key_ = 0x1000;
  // Of messages (none), or of works of that kind.
  struct Failure {
    std::optional<ibv_wr_opcode> kind;
    ibv_wc_status status = IBV_WC_SUCCESS;
  };
  std::optional<Failure> next_failure_;
  std::map<std::string, int> refusals_;
  int manager_errno_ = 0;
  std::atomic<bool> ignores_requests_{false};
  std::atomic<bool> holds_arrivals_{false};
  std::atomic<bool> loses_acknowledgements_{false};
  std::vector<std::string> misuse_;
};

}  // namespace ztcp::test
