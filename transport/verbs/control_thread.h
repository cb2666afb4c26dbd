// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The thread that joins connections and notices their ends. It accepts and dials the kernel TCP
// connections over which the ends agree upon queue pairs, keeps these, and reads the devices'
// events. Without events it sleeps; messages do not pass through it. So a connection becomes ready
// without being polled, and the death of a peer is noticed at once.
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

#include "transport/comms/deferred_log.h"
#include "transport/sockets/kernel/socket.h"
#include "transport/stats/message_monitor.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/control_connection.h"
#include "transport/verbs/device_page.h"
#include "transport/verbs/tickets.h"

namespace ztcp::verbs {

struct ControlSettings {
  sockets::SocketTimes times;
  Duration connect_timeout = std::chrono::seconds(20);
  Duration handshake_timeout = std::chrono::seconds(10);
  Duration drain_timeout = std::chrono::seconds(2);
  msg::ClusterKey cluster_key{};
  std::string config_path;         // Named in advice.
  stats::MonitorSettings monitor;  // Limits of slow and stalled messages.
};

// The connections of one listener that wait for accept().
struct Arrivals {
  std::shared_ptr<RailSet> rails;
  int traffic_class = -1;          // The communicator's.
  std::uint64_t communicator = 0;  // 0: unknown.
  std::deque<std::shared_ptr<Connection>> ready;
};

class ControlThread {
 public:
  explicit ControlThread(const ControlSettings& settings) : settings_(settings) {}
  ~ControlThread();
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  Duration connect_timeout() const { return settings_.connect_timeout; }

  // Returns the endpoint of the listener that peers dial. The first call opens the listeners of the
  // first rail, of rails with an address of their own, and of rails of TCP.
  Result<Endpoint> listen(const RailSet& rails);
  void add_listener(const Cookie& cookie, std::shared_ptr<Arrivals> arrivals);
  // Peers that were not accepted are told.
  void remove_listener(const Cookie& cookie);
  // nullptr: none is waiting.
  std::shared_ptr<Connection> accept(Arrivals& arrivals);

  // Dials for a prepared connection, which then fails or becomes ready.
  Status dial(std::shared_ptr<Connection> connection, Endpoint remote, const Cookie& cookie,
              std::uint64_t communicator = 0);
  // The comm is closed, or can't go on. The peer is told the reason (CloseRecord), and the queue
  // pairs are kept until it has closed, too, at most for drain_timeout.
  void close(const std::shared_ptr<Connection>& connection, std::uint8_t code,
             std::string_view why);
  // Tells the peer that the connection has failed. It still has to be closed.
  void tell(const std::shared_ptr<Connection>& connection, Errc code,
            std::string_view why) noexcept;

  // A device of these may be dead: its connections go on over other rails, or fail.
  void check_for_dead(const RailSet& rails);
  // Sends the notes that the connection has for the peer. The caller does not hold its lock.
  void send_notes(const std::shared_ptr<Connection>& connection) noexcept;

  // The process ends: tells all peers, within drain_timeout.
  void drain();

 private:
  enum class Watched : std::uint8_t { kWake, kListener, kControl, kDevice };
  static constexpr const char* kDied = "its process ended without a word";
  struct Watch {
    Watched kind = Watched::kWake;
    void* of = nullptr;
  };

  void run();
  void wake() const;
  static Nonce fresh_nonce();

  // All of the following under the lock.
  Status start();
  Status add_rails(const RailSet& rails);
  Status add_rail(const std::shared_ptr<Rail>& rail);
  Status add_manager(Rail& rail);
  Status open_listener(Rail& rail);
  bool watch(int fd, std::uint32_t events, Watch to);
  void unwatch(int fd);
  ControlConnection& add_control(std::unique_ptr<ControlConnection> control);
  void forget(ControlConnection& control);
  TimePoint next_deadline() const;
  void leave(const std::shared_ptr<Connection>& connection, std::uint8_t code,
             std::string_view why);
  void handle(const Watch& watch, std::uint32_t events, TimePoint now);
  void on_listener(Rail& rail, TimePoint now);
  void rest(Rail& rail, const Error& error, TimePoint now);
  void on_readable(ControlConnection& control, std::uint32_t events);
  void on_device(OpenDevice& device);
  void on_device_gone(OpenDevice& device, int sys_errno);
  void on_event(OpenDevice& device, const ibv_async_event& event, const FailedPart& part);
  void on_dialled(ControlConnection& control);
  // The peer has ended the connection before its answer: dials again until the deadline.
  bool dials_again(ControlConnection& control, const Error& error);
  void dial_again(ControlConnection& control, TimePoint now);
  static std::vector<Rail*> rails_to(const ControlConnection& control);
  Status dial_once(ControlConnection& control, TimePoint now);
  void make_room();
  void warn_of_strangers(TimePoint now);
  void on_record(ControlConnection& control);
  void on_hello(ControlConnection& control);
  void on_wait(ControlConnection& control);
  // Makes the queue pairs for the next hello. Releases the lock meanwhile: a NIC may take long for
  // each.
  void answer_next(std::unique_lock<std::mutex>& lock);
  Result<EndFacts, ReasonedError> agree(ControlConnection& control, const Arrivals& arrivals,
                                        std::unique_lock<std::mutex>& lock);
  void tell_to_wait(TimePoint now);
  void on_answer(ControlConnection& control);
  void on_ready(ControlConnection& control);
  void on_agreed(ControlConnection& control);
  void open(ControlConnection& control);
  void check_cm_connections();
  void on_close_record(ControlConnection& path);
  void on_note(ControlConnection& path);
  void on_stream(ControlConnection& control);
  // Paths of a control connection (control_paths.cc).
  void begin_paths(ControlConnection& control);
  void dial_paths(ControlConnection& control, TimePoint now);
  void dial_path(ControlConnection& control, ControlConnection::Route& route, TimePoint now);
  void greet_path(ControlConnection& path);
  void on_path(ControlConnection& path);
  void join_path(ControlConnection& path, std::uint32_t heard);
  // The path has ended, or was not established. The control connection goes on over the others, if
  // any.
  void lose_path(ControlConnection& path, const Error& error);
  void detach_path(ControlConnection& path);
  // Whether it goes on although its first path has ended: it has others, or the peer may be alive.
  bool goes_on(ControlConnection& control, const Error& error);
  PathEnd end_of(const ControlConnection& path, const Error& error) const;
  void go_on(ControlConnection& control, const ControlConnection& ended, const Error& error,
             PathVerdict verdict);
  void fall_silent(ControlConnection& control, const ControlConnection& path, const Error& error);
  void forget_paths(ControlConnection& control);
  // Calls `ask` with the recovery of an open connection, under its lock, and sends the resulting
  // notes.
  void with_recovery(ControlConnection& control, const std::function<Status(Recovery&)>& ask);
  // Sends the notes; the connection's lock is held.
  void send_notes(ControlConnection& control) noexcept;
  void on_port(Rail& rail, const ibv_async_event& event, const char* words);
  void check_address(Rail& rail, const char* words);
  // Affects all connections over the device, or those that use `part` of it.
  void lose_device(OpenDevice& device, const FailedPart& part, const std::string& why);
  void on_end(ControlConnection& control, const Error& error);
  void refuse(ControlConnection& control, const Error& error, const std::string& why);
  void give_up(ControlConnection& control, const Error& error, const std::string& why);
  void time_out(ControlConnection& control);
  void read_late(ControlConnection& control);
  void advance(ControlConnection& control, TimePoint now);
  void drop(ControlConnection& control);
  void sweep(TimePoint now);
  // The statistics page (control_pages.cc).
  void list_on_page(const RailSet& rails);
  DevicePage* page_of(const RailSet& rails);  // Null: it is not listed.
  void open_report(ControlConnection& control, std::uint64_t communicator);
  void retire_report(ControlConnection& control, TimePoint now);
  void refresh_soon() {
    if (!pages_.empty()) pages_due_ = TimePoint();
  }
  void refresh_pages(TimePoint now);
  void write_log(std::unique_lock<std::mutex>& lock);

  const ControlSettings settings_;
  std::mutex mutex_;
  Fd epoll_;
  Fd wake_fd_;
  std::thread thread_;
  bool stopping_ = false;
  std::map<int, Watch> watches_;  // By file descriptor.
  std::list<std::unique_ptr<ControlConnection>> controls_;
  std::deque<ControlConnection*> hellos_;  // Queued.
  TimePoint wait_due_{};                   // When their senders must next be told to wait.
  // Await their hellos, in order of arrival; some may have sent it since.
  std::vector<ControlConnection*> silent_;
  std::unordered_map<const Connection*, ControlConnection*> control_of_;
  std::map<Cookie, std::shared_ptr<Arrivals>> listeners_;
  Tickets tickets_;                                         // Given to peers, for streams.
  std::map<Ticket, ControlConnection*> control_of_ticket_;  // For paths.
  std::vector<std::shared_ptr<Rail>> rails_;                // In use.
  std::shared_ptr<ConnectionManager> manager_;              // Exists once there is a rail of iWARP.
  // Their listeners found no free descriptor and pause until rest_ends_.
  std::vector<Rail*> resting_;
  TimePoint rest_ends_{};
  std::list<DevicePage> pages_;   // One for each device on the page.
  TimePoint pages_due_ = kNever;  // When to refresh it next.
  comms::DeferredLog deferred_log_;
};

}  // namespace ztcp::verbs
