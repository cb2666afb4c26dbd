// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The requests between NCCL's thread and the engine's: their order of use and of posting.
#include "transport/comms/request_table.h"

#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "transport/comms/request.h"

namespace ztcp::comms {
namespace {

struct Nobody {};

}  // namespace

template <>
Result<bool> TableRequest<Nobody>::test(std::span<std::size_t>) {
  return is_done();
}

namespace {

class alignas(64) TestRequest final : public TableRequest<Nobody> {
 public:
  using TableRequest::TableRequest;
  void start(int what_it_is) {
    what = what_it_is;
    set_posted();
  }
  void finish() { set_done(); }
  bool is_posted() const {
    return stays_posted([] { return true; });
  }
  using TableRequest::stays_posted;
  int what = 0;
};

class Table : public testing::Test {
 protected:
  static constexpr std::size_t kRequests = 64;

  TestRequest* post(int what = 0) {
    TestRequest* const request = table_.take(nobody_);
    if (request == nullptr) return nullptr;
    request->start(what);
    table_.post(*request);
    return request;
  }
  std::vector<TestRequest*> drain() {
    std::vector<TestRequest*> taken;
    table_.drain([&](TestRequest& request) { taken.push_back(&request); });
    return taken;
  }

  Nobody nobody_;
  RequestTable<TestRequest, kRequests> table_;
};

TEST_F(Table, TakesUpToItsCapacityAndThenNone) {
  std::set<TestRequest*> posted;
  for (std::size_t i = 0; i < kRequests; ++i) posted.insert(post());
  EXPECT_EQ(posted.size(), kRequests);
  EXPECT_FALSE(posted.contains(nullptr));
  EXPECT_EQ(post(), nullptr);
  EXPECT_EQ(drain().size(), kRequests);
  EXPECT_EQ(post(), nullptr) << "the engine has not finished any";
}

// Requests may be completed in any order: the table keeps no order of their numbers.
TEST_F(Table, AnyRequestThatIsGivenBackMakesRoom) {
  std::vector<TestRequest*> posted;
  for (std::size_t i = 0; i < kRequests; ++i) posted.push_back(post());
  drain();
  posted[40]->finish();
  EXPECT_EQ(post(), nullptr) << "done, but not given back";
  table_.give_back(*posted[40]);
  EXPECT_EQ(post(), posted[40]);
  EXPECT_EQ(post(), nullptr);
}

TEST_F(Table, LastRequestGivenBackIsTakenFirst) {
  TestRequest* const first = post();
  TestRequest* const second = post();
  TestRequest* const third = post();
  drain();
  for (TestRequest* request : {first, third, second}) {
    request->finish();
    table_.give_back(*request);
  }
  EXPECT_EQ(post(), second);
  EXPECT_EQ(post(), third);
  EXPECT_EQ(post(), first);
  EXPECT_FALSE(post() == first || post() == second || post() == third);
}

TEST_F(Table, MessagesOneAtATimeUseOneRequest) {
  TestRequest* const only = post();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(drain(), std::vector{only});
    only->finish();
    table_.give_back(*only);
    ASSERT_EQ(post(), only);
  }
}

TEST_F(Table, EngineSeesPostsInTheirOrder) {
  for (int i = 0; i < 1000; i += 2) {
    TestRequest* const first = post(i);
    TestRequest* const second = post(i + 1);
    const auto taken = drain();
    ASSERT_EQ(taken, (std::vector{first, second}));
    EXPECT_EQ(taken[0]->what, i);
    EXPECT_EQ(taken[1]->what, i + 1);
    second->finish();
    first->finish();
    table_.give_back(*second);
    table_.give_back(*first);
  }
}

TEST_F(Table, AnyVisitsAllRequestsThatWereMade) {
  const auto is_posted = [](const TestRequest& request) { return request.is_posted(); };
  EXPECT_FALSE(table_.any(is_posted));
  TestRequest* const request = post();
  EXPECT_TRUE(table_.any(is_posted));
  drain();
  request->finish();
  EXPECT_FALSE(table_.any(is_posted));
}

// The request of a transport without its own thread: no ring, no atomic state.
struct PlainRequest {
  using Owner = Nobody;
  PlainRequest(Nobody&, std::uint8_t number) : number_(number) {}
  std::uint8_t index() const { return number_; }
  std::uint8_t next_free() const { return next_free_; }
  void set_free(std::uint8_t next) { next_free_ = next; }

 private:
  const std::uint8_t number_;
  std::uint8_t next_free_ = 0;
};

TEST(Pool, NumbersRequestsFromZeroAndTakesTheLastGivenBackFirst) {
  Nobody nobody;
  RequestPool<PlainRequest, 256> pool;
  std::vector<PlainRequest*> taken;
  for (std::size_t i = 0; i < 256; ++i) {
    taken.push_back(pool.take(nobody));
    ASSERT_NE(taken.back(), nullptr);
    EXPECT_EQ(taken.back()->index(), i);
  }
  EXPECT_EQ(pool.take(nobody), nullptr);
  pool.give_back(*taken[7]);
  pool.give_back(*taken[255]);
  EXPECT_EQ(pool.take(nobody), taken[255]);
  EXPECT_EQ(pool.take(nobody), taken[7]);
  EXPECT_EQ(pool.take(nobody), nullptr);
}

// NCCL's thread posts and tests, the engine's takes and completes, a third one reads.
TEST_F(Table, ThreeThreadsUseItWithoutLosingARequest) {
  constexpr int kMessages = 20'000;
  std::atomic<bool> over{false};
  std::thread engine([&] {
    for (int next = 0; next < kMessages;)
      table_.drain([&](TestRequest& request) {
        EXPECT_EQ(request.what, next++);
        request.finish();
      });
  });
  std::thread looking([&] {
    while (!over) {
      static_cast<void>(table_.any([](const TestRequest& request) { return request.is_posted(); }));
      std::this_thread::yield();
    }
  });
  std::vector<TestRequest*> outstanding;
  for (int posted = 0; posted < kMessages || !outstanding.empty();) {
    if (posted < kMessages) {
      if (TestRequest* const request = post(posted)) {
        outstanding.push_back(request);
        ++posted;
      }
    }
    std::erase_if(outstanding, [&](TestRequest* request) {
      if (!request->is_done()) return false;
      table_.give_back(*request);
      return true;
    });
    if (outstanding.size() == kRequests) std::this_thread::yield();
  }
  over = true;
  engine.join();
  looking.join();
}

// deregister_memory() reads the request while NCCL's progress thread finds it done, and posts it
// again for another buffer: half of the values read belong to another message.
TEST_F(Table, RequestThatIsReusedDuringACheckDoesNotStayPosted) {
  TestRequest* const request = post(1);
  ASSERT_NE(request, nullptr);
  const auto looked_at = [&](auto&& meanwhile) {
    return request->stays_posted([&] {
      meanwhile();
      return true;
    });
  };
  EXPECT_TRUE(looked_at([] {}));
  EXPECT_FALSE(looked_at([&] {
    request->finish();
    table_.give_back(*request);
    EXPECT_EQ(post(2), request);
  }));
  EXPECT_TRUE(looked_at([] {})) << "it is posted now";
  EXPECT_FALSE(looked_at([&] { request->finish(); }));
}

}  // namespace
}  // namespace ztcp::comms
