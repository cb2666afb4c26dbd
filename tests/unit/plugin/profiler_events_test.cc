// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Events for NCCL's profiler (plugin/abi/profiler_events.h), through the entries of the tables from
// v10 on, over a transport that the test moves.
#include "plugin/abi/profiler_events.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <memory>
#include <optional>
#include <span>

#include <gtest/gtest.h>

#include "plugin/abi/common.h"
#include "tests/unit/plugin/profiler_recorder.h"
#include "transport/transport.h"

namespace ztcp::plugin::abi {
namespace {

struct FakeRequest final : Request {
  Result<bool> test(std::span<std::size_t> sizes_bytes) override {
    if (error) return tl::unexpected(*error);
    for (std::size_t& size : sizes_bytes) size = 5;
    return is_done;
  }
  std::size_t pieces(std::span<PieceFacts, kMaxPieces> out) const override {
    for (std::size_t i = 0; i < piece_count; ++i) {
      const auto number = static_cast<std::uint8_t>(i);
      out[i] = {.rail = number,
                .queue_pair = 70U + number,
                .work_id = 900U + i,
                .size_bytes = 1000 * (i + 1),
                .number = number};
    }
    return piece_count;
  }
  std::uint32_t finished_pieces() const override { return finished; }
  void have_buffers(std::size_t count) { buffers_ = static_cast<std::uint8_t>(count); }

  std::optional<Error> error;
  bool is_done = false;
  std::size_t piece_count = 0;
  std::uint32_t finished = 0;
};

template <class Base>
class FakeComm : public Base {
 public:
  void close() override {}
  Result<MemoryKey*> register_memory(const Region&) override { return nullptr; }
  Status deregister_memory(MemoryKey*) override { return {}; }
  std::string describe_peer() const override { return "nobody"; }

  Result<Request*> post() {
    if (refuses) return nullptr;
    if (fails) return fail(Errc::kPeerClosed, "post");
    return &requests[next++ % requests.size()];
  }
  std::array<FakeRequest, 100> requests;
  std::size_t next = 0;
  bool refuses = false;
  bool fails = false;
};

class FakeSend final : public FakeComm<SendComm> {
 public:
  Result<bool> is_ready() override { return true; }
  Result<Request*> post_send(std::span<const std::byte>, int, MemoryKey*) override {
    return post();
  }
};

class FakeRecv final : public FakeComm<RecvComm> {
 public:
  Result<Request*> post_recv(std::span<const RecvBuffer> buffers) override {
    requests[next % requests.size()].have_buffers(buffers.size());
    return post();
  }
  Result<Request*> post_flush(std::span<const RecvBuffer>) override { return nullptr; }
};

class ProfilerEvents : public testing::Test {
 protected:
  ProfilerEvents() { bind_profiler(Recorder::callback, StepHandles::kAlwaysValid); }
  ~ProfilerEvents() override { bind_profiler(nullptr, StepHandles::kAlwaysValid); }

  void* send(std::size_t size, void* handle) {
    void* request = nullptr;
    result_ =
        isend_v10(static_cast<Comm*>(&sender_), memory_.data(), size, 0, nullptr, handle, &request);
    return request;
  }
  void* receive(std::span<std::size_t> sizes, void** handles) {
    void* request = nullptr;
    std::array<void*, kMaxReceives> data{};
    std::array<void*, kMaxReceives> keys{};
    std::array<int, kMaxReceives> tags{};
    result_ = irecv_v10(static_cast<Comm*>(&receiver_), static_cast<int>(sizes.size()), data.data(),
                        sizes.data(), tags.data(), keys.data(), handles, &request);
    return request;
  }
  bool test(void* request) {
    int done = 0;
    std::array<int, kMaxReceives> sizes{};
    result_ = test_v3(request, &done, sizes.data());
    return done != 0;
  }

  Recorder recorder_;
  FakeSend sender_;
  FakeRecv receiver_;
  std::array<std::byte, 64> memory_{};
  ncclProfilerStepHandle_v2_27_t step_{&step_, &step_};
  ncclResult_t result_ = ncclSuccess;
};

TEST_F(ProfilerEvents, SendOverTcpIsOneSocketEvent) {
  void* const request = send(12345, &step_);
  ASSERT_NE(request, nullptr);
  ASSERT_EQ(recorder_.events.size(), 1U);
  const Recorder::Event& event = recorder_.events[0];
  EXPECT_EQ(event.handle, &step_);
  EXPECT_EQ(event.plugin, 2 << 16 | 1);
  EXPECT_EQ(event.socket.type, ncclProfileSocket);
  EXPECT_EQ(event.socket.sock.fd, -1);
  EXPECT_EQ(event.socket.sock.op, NCCL_SOCKET_SEND);
  EXPECT_EQ(event.socket.sock.length, 12345U);
  EXPECT_FALSE(test(request));
  EXPECT_EQ(event.stops, 0);
  sender_.requests[0].is_done = true;
  EXPECT_TRUE(test(request));
  EXPECT_EQ(event.stops, 1);
}

TEST_F(ProfilerEvents, ReceiveHasAnEventForEachBufferWithAHandle) {
  std::array<std::size_t, 3> sizes{10, 20, 30};
  ncclProfilerStepHandle_v2_27_t other = step_;
  std::array<void*, 3> handles{&step_, nullptr, &other};
  void* const request = receive(sizes, handles.data());
  ASSERT_EQ(recorder_.events.size(), 2U);
  EXPECT_EQ(recorder_.events[0].handle, &step_);
  EXPECT_EQ(recorder_.events[0].socket.sock.op, NCCL_SOCKET_RECV);
  EXPECT_EQ(recorder_.events[0].socket.sock.length, 10U);
  EXPECT_EQ(recorder_.events[1].handle, &other);
  EXPECT_EQ(recorder_.events[1].socket.sock.length, 30U);
  receiver_.requests[0].is_done = true;
  EXPECT_TRUE(test(request));
  EXPECT_EQ(recorder_.events[0].stops, 1);
  EXPECT_EQ(recorder_.events[1].stops, 1);
}

TEST_F(ProfilerEvents, PiecesOverQueuePairsStopOneByOne) {
  sender_.requests[0].piece_count = 2;
  void* const request = send(3000, &step_);
  ASSERT_EQ(recorder_.events.size(), 2U);
  for (int i = 0; i < 2; ++i) {
    const Recorder::Event& event = recorder_.events[static_cast<std::size_t>(i)];
    EXPECT_EQ(event.plugin, 1 << 16 | 1);
    EXPECT_EQ(event.queue_pair.type, ncclProfileQp);
    EXPECT_EQ(event.queue_pair.qp.device, i);
    EXPECT_EQ(event.queue_pair.qp.qpNum, 70 + i);
    EXPECT_EQ(event.queue_pair.qp.wr_id, 900U + static_cast<unsigned>(i));
    EXPECT_EQ(event.queue_pair.qp.opcode, 1);
    EXPECT_EQ(event.queue_pair.qp.length, 1000U * (static_cast<unsigned>(i) + 1));
  }
  sender_.requests[0].finished = ~3U | 2U;
  EXPECT_FALSE(test(request));
  EXPECT_EQ(recorder_.events[0].stops, 0);
  EXPECT_EQ(recorder_.events[1].stops, 1);
  EXPECT_FALSE(test(request));
  EXPECT_EQ(recorder_.events[1].stops, 1) << "stopped twice";
  sender_.requests[0].is_done = true;
  EXPECT_TRUE(test(request));
  EXPECT_EQ(recorder_.events[0].stops, 1);
  EXPECT_EQ(recorder_.events[1].stops, 1);
}

TEST_F(ProfilerEvents, ReceiveOverQueuePairsHasTheBuffersSizes) {
  receiver_.requests[0].piece_count = 1;
  std::array<std::size_t, 2> sizes{10, 20};
  std::array<void*, 2> handles{&step_, &step_};
  void* const request = receive(sizes, handles.data());
  ASSERT_EQ(recorder_.events.size(), 2U);
  EXPECT_EQ(recorder_.events[0].queue_pair.qp.length, 10U);
  EXPECT_EQ(recorder_.events[1].queue_pair.qp.length, 20U);
  EXPECT_EQ(recorder_.events[1].queue_pair.qp.opcode, 129);
  EXPECT_EQ(recorder_.events[1].queue_pair.qp.qpNum, 70);
  receiver_.requests[0].is_done = true;
  EXPECT_TRUE(test(request));
  EXPECT_EQ(recorder_.open(), 0U);
}

TEST_F(ProfilerEvents, WithoutAProfilerAMessageIsOneCall) {
  recorder_.is_on = false;
  sender_.requests[0].piece_count = 4;
  void* const request = send(1, &step_);
  EXPECT_EQ(request, static_cast<void*>(&sender_.requests[0])) << "NCCL gets another pointer";
  sender_.requests[0].is_done = true;
  EXPECT_TRUE(test(request));
  EXPECT_EQ(recorder_.calls, 1);
  EXPECT_EQ(sender_.attachment(), nullptr) << "memory was taken";
}

TEST_F(ProfilerEvents, WithoutHandlesOrACallbackNothingIsCalled) {
  ASSERT_NE(send(1, nullptr), nullptr);
  std::array<std::size_t, 1> sizes{10};
  ASSERT_NE(receive(sizes, nullptr), nullptr);
  bind_profiler(nullptr, StepHandles::kAlwaysValid);
  ASSERT_NE(send(1, &step_), nullptr);
  EXPECT_EQ(recorder_.calls, 0);
}

TEST_F(ProfilerEvents, OperationThatIsNotAcceptedHasNoEvent) {
  sender_.refuses = true;
  EXPECT_EQ(send(1, &step_), nullptr);
  EXPECT_EQ(result_, ncclSuccess);
  sender_.refuses = false;
  sender_.fails = true;
  EXPECT_EQ(send(1, &step_), nullptr);
  EXPECT_EQ(result_, ncclRemoteError);
  EXPECT_EQ(recorder_.calls, 0);
}

TEST_F(ProfilerEvents, ProfilerWithoutRoomGetsTheRestOfNoMessage) {
  sender_.requests[0].piece_count = 3;
  recorder_.starts_left = 1;
  void* const request = send(1, &step_);
  EXPECT_EQ(recorder_.events.size(), 1U);
  sender_.requests[0].is_done = true;
  EXPECT_TRUE(test(request));
  EXPECT_EQ(recorder_.open(), 0U);
}

TEST_F(ProfilerEvents, FailedRequestStopsItsEventsAndCanBeTestedAgain) {
  sender_.requests[0].piece_count = 2;
  void* const request = send(1, &step_);
  sender_.requests[0].error = Error{Errc::kPeerClosed, 0, "test"};
  EXPECT_FALSE(test(request));
  EXPECT_EQ(result_, ncclRemoteError);
  EXPECT_FALSE(test(request));
  EXPECT_EQ(result_, ncclRemoteError);
  EXPECT_EQ(recorder_.events[0].stops, 1);
  EXPECT_EQ(recorder_.events[1].stops, 1);
  sender_.attachment()->on_close();
  EXPECT_EQ(recorder_.events[0].stops, 1) << "stopped twice";
}

TEST_F(ProfilerEvents, CloseStopsTheEventsOfOutstandingRequests) {
  for (std::size_t i = 0; i < 70; ++i) ASSERT_NE(send(1, &step_), nullptr);
  EXPECT_EQ(recorder_.open(), 70U);
  sender_.attachment()->on_close();
  EXPECT_EQ(recorder_.open(), 0U);
}

// NCCL has finalized its profiler by then.
TEST_F(ProfilerEvents, CommThatNcclForgetsTouchesNoEvent) {
  ASSERT_NE(send(1, &step_), nullptr);
  const int calls = recorder_.calls;
  sender_.attachment().reset();
  EXPECT_EQ(recorder_.calls, calls);
}

TEST_F(ProfilerEvents, RecordedRequestsAreUsedAgain) {
  void* first = nullptr;
  for (int i = 0; i < 1000; ++i) {
    FakeRequest& of = sender_.requests[sender_.next % sender_.requests.size()];
    of.is_done = false;
    void* const request = send(1, &step_);
    if (first == nullptr) first = request;
    EXPECT_EQ(request, first) << i;
    of.is_done = true;
    ASSERT_TRUE(test(request));
  }
  EXPECT_EQ(recorder_.open(), 0U);
}

// NCCL 2.27 reads through subArgs, which is NULL where it does not profile the step.
TEST_F(ProfilerEvents, HandleWithoutArgsIsLeftOut) {
  bind_profiler(Recorder::callback, StepHandles::kMayLackArgs);
  ncclProfilerStepHandle_v2_27_t unprofiled{};
  ASSERT_NE(send(1, &unprofiled), nullptr);
  EXPECT_EQ(recorder_.calls, 0);
  std::array<std::size_t, 2> sizes{10, 20};
  std::array<void*, 2> handles{&unprofiled, &step_};
  ASSERT_NE(receive(sizes, handles.data()), nullptr);
  EXPECT_EQ(recorder_.calls, 1);
  EXPECT_EQ(recorder_.events.at(0).handle, &step_);
}

TEST(ProfilerStepHandles, AreThoseOfTheLibraryOfTheCallback) {
  const std::unique_ptr<void, int (*)(void*)> library(dlopen(FAKE_NCCL_PATH, RTLD_NOW | RTLD_LOCAL),
                                                      dlclose);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto callback =
      reinterpret_cast<ncclProfilerCallback_t>(dlsym(library.get(), "fake_nccl_callback"));
  int& version = *static_cast<int*>(dlsym(library.get(), "fake_nccl_version"));
  version = 22605;
  EXPECT_EQ(v10_step_handles(callback), StepHandles::kAlwaysValid);
  version = 22703;
  EXPECT_EQ(v10_step_handles(callback), StepHandles::kMayLackArgs);
  EXPECT_EQ(v10_step_handles(nullptr), StepHandles::kAlwaysValid);
  EXPECT_EQ(v10_step_handles(Recorder::callback), StepHandles::kMayLackArgs)
      << "this program has no version";
}

}  // namespace
}  // namespace ztcp::plugin::abi
