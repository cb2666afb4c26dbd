// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// RDMA devices in memory: a provider behind the same table that libibverbs fills, and one network
// that joins all devices. Queue pairs have states, keys go stale, completion queues overrun,
// receivers are not ready, events wait to be acknowledged. Each poll moves data by an amount that
// is drawn from a seed. Calls that verbs forbid are noted (misuse()), all others counted.
//
// "GPU" memory is memory_region.h's: the CPU can't reach it, and bytes written to it become visible
// after a read over the same device.
//
// Devices of iWARP have queue pairs that only a connection manager joins, which have no immediate,
// whose completions say nothing of arrival except for reads, and which read only into memory that
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

  // --- Arranging, for tests ---
  // The next send or write with immediate, of any queue pair, completes with `status`.
  void fail_next_message(ibv_wc_status status);
  // The next work request of this kind completes with `status`.
  void fail_next(ibv_wr_opcode kind, ibv_wc_status status);
  // The device raises the event of the change. A port that is down carries nothing.
  void set_port_state(const std::string& device, int port, ibv_port_state state);
  void raise(const std::string& device, ibv_event_type type, int port = 1);
  // Data arrives and is not acknowledged: the sender's NIC sends it again after its timeout.
  void lose_acknowledgements(bool lose) { loses_acknowledgements_ = lose; }
  // The device's firmware dies (FakeDevice::is_dead), with a fatal event if `tells`.
  void kill(const std::string& device, bool tells = true);
  // The device raises an event of one queue pair or of its completion queue.
  void raise_of_pair(std::uint32_t number, ibv_event_type type);
  // The device raises the events of both changes. A removed address takes its GIDs along.
  void set_address(const std::string& device, std::vector<ibv_gid> gids, std::uint16_t lid = 0);
  // From now on the call fails with this errno: "ibv_reg_mr", "ibv_create_cq", "ibv_create_qp",
  // "ibv_modify_qp", "ibv_post_send fake1", "ibv_post_recv fake1" (which still takes the first of a
  // list); 0: no longer.
  void refuse(const std::string& call, int sys_errno);
  // The connection manager fails with this errno at the first call; 0: no longer.
  void refuse_manager(int sys_errno);
  // iWARP: sends stay in flight, and completed ones do not arrive, until released.
  void hold_arrivals(bool hold) { holds_arrivals_ = hold; }
  // The connection manager does not answer connection requests.
  void ignore_requests(bool ignore = true) { ignores_requests_ = ignore; }

  // --- Observing, for tests ---
  int carried_out(ibv_wr_opcode opcode) const;  // Successful work requests of the kind.
  FakeCounts counts(const std::string& device) const;
  int live(const char* kind) const;  // "context", "pd", "mr", "cq" or "qp".
  std::vector<std::uint32_t> pairs_of(const std::string& device) const;  // Their numbers.
  std::vector<std::string> misuse() const;
  // ECE options of the device's queue pairs, as negotiated.
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
  std::map<std::uint32_t, FakeMemory*> memory_;          // By key; local and remote keys are equal.
  std::vector<FakeContext*> contexts_;
  std::map<std::string, int> live_;
  std::map<ibv_wr_opcode, int> carried_out_;
  std::mt19937_64 random_;
  std::uint32_t next_number_ = 0x100;
  std::uint32_t next_key_ = 0x1000;
  // Without a kind: of any message.
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
