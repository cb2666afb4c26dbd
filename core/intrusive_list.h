// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Doubly linked list of objects that carry their own links: no allocation, removal in O(1) from
// anywhere. The list owns nothing. An object in several lists at once derives from one hook per
// list, told apart by tag:
//
//   struct PacedTag;
//   class Connection : public ListHook<>, public ListHook<PacedTag> { ... };
//   IntrusiveList<Connection> all;
//   IntrusiveList<Connection, PacedTag> paced;
#pragma once

#include <cassert>
#include <iterator>

namespace ztcp {

struct DefaultListTag;

template <class Tag = DefaultListTag>
class ListHook {
 public:
  ListHook() = default;
  // Links describe a place, not a value: copies start unlinked.
  ListHook(const ListHook&) noexcept {}
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): nothing is assigned.
  ListHook& operator=(const ListHook&) noexcept { return *this; }
  // Destroying a linked object takes it out of its list.
  ~ListHook() { unlink(); }

  bool is_linked() const noexcept { return next_ != nullptr; }

  void unlink() noexcept {
    if (next_ == nullptr) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    prev_ = next_ = nullptr;
  }

 private:
  template <class T, class ListTag>
  friend class IntrusiveList;

  void link_before(ListHook& place) noexcept {
    assert(!is_linked());
    prev_ = place.prev_;
    next_ = &place;
    prev_->next_ = this;
    place.prev_ = this;
  }

  ListHook* prev_ = nullptr;
  ListHook* next_ = nullptr;
};

template <class T, class Tag = DefaultListTag>
class IntrusiveList {
  using Hook = ListHook<Tag>;

 public:
  IntrusiveList() noexcept { end_.prev_ = end_.next_ = &end_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() {
    clear();
    end_.prev_ = end_.next_ = nullptr;
  }

  bool empty() const noexcept { return end_.next_ == &end_; }
  T& front() noexcept { return to_object(end_.next_); }
  T& back() noexcept { return to_object(end_.prev_); }

  void push_back(T& object) noexcept { hook(object).link_before(end_); }
  void push_front(T& object) noexcept { hook(object).link_before(*end_.next_); }
  void insert_before(T& place, T& object) noexcept { hook(object).link_before(hook(place)); }

  // Removes and returns the front; nullptr when empty.
  T* pop_front() noexcept {
    if (empty()) return nullptr;
    T& object = front();
    hook(object).unlink();
    return &object;
  }
  // `object` must be in this list.
  void remove(T& object) noexcept { hook(object).unlink(); }
  // Moves the front to the back: round-robin.
  void rotate() noexcept {
    if (T* object = pop_front()) push_back(*object);
  }
  void clear() noexcept {
    while (pop_front() != nullptr) {
    }
  }

  // An iterator stays valid when other objects are removed; advance it before removing its own.
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    T& operator*() const noexcept { return to_object(at_); }
    T* operator->() const noexcept { return &to_object(at_); }
    Iterator& operator++() noexcept {
      at_ = at_->next_;
      return *this;
    }
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class IntrusiveList;
    explicit Iterator(Hook* at) : at_(at) {}
    Hook* at_ = nullptr;
  };
  Iterator begin() noexcept { return Iterator(end_.next_); }
  Iterator end() noexcept { return Iterator(&end_); }

 private:
  static Hook& hook(T& object) noexcept { return object; }
  static T& to_object(Hook* hook) noexcept { return static_cast<T&>(*hook); }

  Hook end_;
};

}  // namespace ztcp
