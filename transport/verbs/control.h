// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The thread that joins connections and hears of their ends: it accepts and dials the kernel TCP
// connections over which queue pairs are agreed upon, keeps them, and reads what devices tell. It
// sleeps without such events; no message passes by it. So a connection becomes ready without
// anybody asking for it, and a peer's death is known at once.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "transport/sockets/socket.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/talk.h"
#include "transport/verbs/tickets.h"

namespace ztcp::verbs {

struct ControlSettings {
  sockets::SocketTimes times;
  Duration connect_timeout = std::chrono::seconds(20);
  Duration handshake_timeout = std::chrono::seconds(10);
  Duration drain_timeout = std::chrono::seconds(2);
  msg::ClusterKey cluster_key{};
  std::string config_path;  // For what mends.
};

// Connections that came for one listener and wait for accept().
struct Arrivals {
  std::shared_ptr<RailSet> rails;
  int traffic_class = -1;  // The communicator's.
  std::deque<std::shared_ptr<Connection>> ready;
};

class Control {
 public:
  explicit Control(const ControlSettings& settings) : settings_(settings) {}
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  Duration connect_timeout() const { return settings_.connect_timeout; }

  // Where the listeners of its first rail are found; opened at the first call, as are those of its
  // rails of TCP.
  Result<Endpoint> listen(const RailSet& rails);
  void add_listener(const Cookie& cookie, std::shared_ptr<Arrivals> arrivals);
  // Who came and was not accepted is told.
  void remove_listener(const Cookie& cookie);
  // nullptr: nobody.
  std::shared_ptr<Connection> accept(Arrivals& arrivals);

  // A prepared connection, which fails or becomes ready.
  Status dial(std::shared_ptr<Connection> connection, Endpoint remote, const Cookie& cookie);
  // The comm is closed, or can't go on: the peer is told why (CloseRecord), and the queue pairs are
  // kept until it has closed, too, bounded.
  void close(const std::shared_ptr<Connection>& connection, std::uint8_t code,
             std::string_view why);
  // The peer is told that the connection failed; it stays to be closed.
  void tell(const std::shared_ptr<Connection>& connection, Errc code,
            std::string_view why) noexcept;

  // A device of these may have been found dead: its connections go on over others, or fail.
  void look_for_dead(const RailSet& rails);
  // What the connection has noted for the peer goes out. Its lock is not held.
  void send_notes(const std::shared_ptr<Connection>& connection) noexcept;

  // The process ends: all peers are told; bounded.
  void drain();

 private:
  enum class Watched : std::uint8_t { kWake, kListener, kTalk, kDevice };
  static constexpr const char* kDied = "its process ended without a word";
  struct Watch {
    Watched kind = Watched::kWake;
    void* of = nullptr;
  };

  void run();
  void wake() const;
  static Nonce fresh_nonce();

  // All under the lock.
  Status start();
  Status add_rails(const RailSet& rails);
  Status add_rail(const std::shared_ptr<Rail>& rail);
  Status add_manager(Rail& rail);
  Status open_listener(Rail& rail);
  bool watch(int fd, std::uint32_t events, Watch to);
  void unwatch(int fd);
  Talk& add_talk(std::unique_ptr<Talk> talk);
  void forget(Talk& talk);
  TimePoint next_deadline() const;
  void leave(const std::shared_ptr<Connection>& connection, std::uint8_t code,
             std::string_view why);
  void handle(const Watch& watch, std::uint32_t events, TimePoint now);
  void on_listener(Rail& rail, TimePoint now);
  void rest(Rail& rail, const Error& error, TimePoint now);
  void on_talk(Talk& talk, std::uint32_t events);
  void on_device(OpenDevice& device);
  void on_device_gone(OpenDevice& device, int sys_errno);
  void on_event(OpenDevice& device, const ibv_async_event& event, const FailedPart& part);
  void on_dialled(Talk& talk);
  // The peer has ended it before its answer: it is dialled again within its time.
  bool dials_again(Talk& talk, const Error& error);
  void dial_again(Talk& talk, TimePoint now);
  static std::vector<Rail*> rails_to(const Talk& talk);
  Status dial_once(Talk& talk, TimePoint now);
  void make_room();
  void warn_of_strangers(TimePoint now);
  void on_record(Talk& talk);
  void on_hello(Talk& talk);
  void on_wait(Talk& talk);
  // Makes the queue pairs of the next hello, without the lock: a NIC may take long for each.
  void answer_next(std::unique_lock<std::mutex>& lock);
  Made<EndFacts> agree(Talk& talk, const Arrivals& arrivals, std::unique_lock<std::mutex>& lock);
  void tell_to_wait(TimePoint now);
  void on_answer(Talk& talk);
  void on_ready(Talk& talk);
  void on_agreed(Talk& talk);
  void open(Talk& talk);
  void check_cm_connections();
  void on_close_record(Talk& path);
  void on_note(Talk& path);
  void on_stream(Talk& talk);
  // Paths of a talk (control_paths.cc).
  void begin_paths(Talk& talk);
  void dial_paths(Talk& talk, TimePoint now);
  void dial_path(Talk& talk, Talk::Route& route, TimePoint now);
  void greet_path(Talk& path);
  void on_path(Talk& path);
  void join_path(Talk& path, std::uint32_t heard);
  // It has ended, or does not come about. The talk goes on over the others, if there are any.
  void lose_path(Talk& path, const Error& error);
  void detach_path(Talk& path);
  // Whether it does though its first path has ended: it has others, or the peer may live.
  bool goes_on(Talk& talk, const Error& error);
  bool is_death(const Talk& path, const Error& error) const;
  void fall_silent(Talk& talk, const Talk& path, const Error& error);
  void forget_paths(Talk& talk);
  // Asks the connection of an open talk, under its lock, and tells the peer what comes of it.
  void with_connection(Talk& talk, const std::function<Status(Connection&)>& ask);
  // The rest of that; the connection's lock is held.
  void send_notes(Talk& talk) noexcept;
  void on_port(Rail& rail, const ibv_async_event& event, const char* words);
  void look_at_address(Rail& rail, const char* words);
  // All connections over it, or those that have `part` of it.
  void lose_device(OpenDevice& device, const FailedPart& part, const std::string& why);
  void on_end(Talk& talk, const Error& error);
  void refuse(Talk& talk, const Error& error, const std::string& why);
  void give_up(Talk& talk, const Error& error, const std::string& why);
  void time_out(Talk& talk);
  void read_late(Talk& talk);
  void advance(Talk& talk, TimePoint now);
  void drop(Talk& talk);
  void sweep(TimePoint now);

  const ControlSettings settings_;
  std::mutex mutex_;
  link::Fd epoll_;
  link::Fd wake_fd_;
  std::thread thread_;
  bool stopping_ = false;
  std::map<int, Watch> watches_;  // By descriptor.
  std::list<std::unique_ptr<Talk>> talks_;
  std::deque<Talk*> hellos_;   // Queued.
  TimePoint wait_due_{};       // When their senders must hear that they are.
  std::vector<Talk*> silent_;  // Await their hellos, as they came; some may have said it since.
  std::unordered_map<const Connection*, Talk*> talk_of_;
  std::map<Cookie, std::shared_ptr<Arrivals>> listeners_;
  Tickets tickets_;                             // That were given to peers, for streams.
  std::map<Ticket, Talk*> talk_of_ticket_;      // For paths.
  std::vector<std::shared_ptr<Rail>> rails_;    // In use.
  std::shared_ptr<ConnectionManager> manager_;  // Since there is a rail of iWARP.
  std::vector<Rail*> resting_;  // Whose listeners found no descriptor; till rest_ends_.
  TimePoint rest_ends_{};
};

}  // namespace ztcp::verbs
