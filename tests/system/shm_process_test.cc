// Shared memory between processes, of which one dies or is hostile.
#include <dirent.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "contract/frames.h"
#include "ring/doorbell.h"
#include "support/expect.h"
#include "system/shm_peer.h"

namespace faro::test {
namespace {

using ring::Next;
using transport::FrameView;

constexpr uint32_t kRing = 4096;
constexpr base::Nanoseconds kLimit = 20'000'000'000;

base::Nanoseconds now() { return base::SystemClock::instance().now_ns(); }

/// What this machine shows of shared memory: everything that could be left behind.
struct Traces {
  static Traces look() {
    Traces traces;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      traces.maps += line.find("memfd:faro") != std::string::npos;
    std::ifstream sockets("/proc/net/unix");
    for (std::string line; std::getline(sockets, line);) {
      const size_t at = line.find("@faro-");
      if (at != std::string::npos) traces.sockets.insert(line.substr(at));
    }
    for (const char* folder : {"/dev/shm", "/proc/self/fd"}) {
      DIR* const dir = opendir(folder);
      if (dir == nullptr) continue;
      while (const dirent* entry = readdir(dir)) {
        if (folder[1] == 'p') {
          ++traces.descriptors;
        } else {
          traces.files.insert(entry->d_name);
        }
      }
      closedir(dir);
    }
    return traces;
  }

  size_t maps = 0;
  size_t descriptors = 0;
  std::multiset<std::string> sockets;
  std::set<std::string> files;
};

/// Other tests of this machine may use shared memory as well, with sessions whose counters have files
/// "faro-…" there (native/counters); there is no session here.
void expect_nothing_new(const Traces& before, const std::string& own_socket = {}) {
  const Traces after = Traces::look();
  EXPECT_EQ(after.maps, before.maps);
  EXPECT_EQ(after.descriptors, before.descriptors);
  for (const std::string& file : after.files) {
    if (file.starts_with("faro-")) continue;
    EXPECT_EQ(file.find("faro"), std::string::npos) << "/dev/shm/" << file;
  }
  if (!own_socket.empty()) {
    EXPECT_EQ(after.sockets.count(own_socket), 0u);
  }
}

/// Sends self-checking frames until it is killed.
void send_for_ever(base::UniqueFd control) {
  ShmPeer peer(std::move(control), kRing);
  if (!peer.start().ok() || !peer.connect().ok()) _exit(1);
  FrameSequence sequence(1, kRing / 4);
  for (;;) {
    if (!sequence.try_send(peer.outgoing())) std::this_thread::yield();
    peer.outgoing().post();
  }
}

TEST(ShmProcesses, a_peer_that_is_killed_while_it_sends_leaves_whole_frames_and_nothing_else) {
  const Traces before = Traces::look();
  for (uint32_t frames_before_death : {0u, 1u, 7u, 100u, 5000u}) {
    SCOPED_TRACE(frames_before_death);
    base::UniqueFd control;
    Child child(send_for_ever, control);
    {
      ShmPeer peer(std::move(control), kRing);
      ASSERT_TRUE(peer.start().ok());
      const Status connected = peer.connect();
      ASSERT_TRUE(is_ok(connected));
      FrameSequence sequence(1, kRing / 4);
      FrameSequence back(2, kRing / 4);
      FrameView view;
      const base::Nanoseconds deadline = now() + kLimit;
      while (sequence.count() < frames_before_death && now() < deadline) {
        if (peer.incoming().next(view) != Next::frame) {
          std::this_thread::yield();
          continue;
        }
        ASSERT_EQ(sequence.check(view), "");
        peer.incoming().release(view.token);
      }
      ASSERT_GE(sequence.count(), frames_before_death);
      child.kill();
      // What had been published is whole; then there is nothing, for as long as one looks.
      Next next;
      while ((next = peer.incoming().next(view)) == Next::frame) {
        ASSERT_EQ(sequence.check(view), "");
        peer.incoming().release(view.token);
      }
      EXPECT_EQ(next, Next::nothing);
      // Sending goes on until the ring is full, and waking the dead is harmless.
      uint32_t sent = 0;
      while (back.try_send(peer.outgoing())) ++sent;
      peer.outgoing().post();
      EXPECT_GE(sent, 3u);
      EXPECT_EQ(peer.failures(), 0) << "the control connection notices, not the rings";
      peer.link().stop();
    }
    expect_nothing_new(before);
  }
}

TEST(ShmProcesses, a_peer_that_is_killed_while_it_reads_leaves_a_ring_that_stays_full) {
  const Traces before = Traces::look();
  base::UniqueFd control;
  Child child(
      [](base::UniqueFd own) {
        ShmPeer peer(std::move(own), kRing);
        if (!peer.start().ok() || !peer.connect().ok()) _exit(1);
        FrameView view;
        for (;;) {
          if (peer.incoming().next(view) == Next::frame) {
            peer.incoming().release(view.token);
          } else {
            std::this_thread::yield();
          }
        }
      },
      control);
  {
    ShmPeer peer(std::move(control), kRing);
    ASSERT_TRUE(peer.start().ok());
    ASSERT_TRUE(peer.connect().ok());
    FrameSequence sequence(3, kRing / 4);
    const base::Nanoseconds deadline = now() + kLimit;
    while (sequence.count() < 2000 && now() < deadline) {
      if (!sequence.try_send(peer.outgoing())) std::this_thread::yield();
      peer.outgoing().post();
    }
    ASSERT_EQ(sequence.count(), 2000u);
    child.kill();
    while (sequence.try_send(peer.outgoing())) continue;
    peer.outgoing().post();
    // A worker that waits for space of a dead peer sleeps for the time it asked for, no longer.
    ring::Doorbell doorbell(&peer.doorbell());
    doorbell.arm();
    EXPECT_EQ(peer.outgoing().claim(kRing / 4, kRing / 4).bytes, 0u);
    doorbell.sleep(1'000'000);
    EXPECT_EQ(peer.outgoing().claim(kRing / 4, kRing / 4).bytes, 0u);
    EXPECT_EQ(peer.failures(), 0);
  }
  expect_nothing_new(before);
}

TEST(ShmProcesses, a_peer_that_is_killed_during_setup_leaves_nothing) {
  const Traces before = Traces::look();
  for (const bool after_offer : {false, true}) {
    SCOPED_TRACE(after_offer);
    std::string socket;
    base::UniqueFd control;
    Child child(
        [&](base::UniqueFd own) {
          ShmPeer peer(std::move(own), kRing);
          if (after_offer) (void)peer.start();
          for (;;) pause();
        },
        control);
    {
      pollfd readable{control.get(), POLLIN, 0};
      if (after_offer) {
        ASSERT_EQ(poll(&readable, 1, 20'000), 1) << "the offer comes";
        // Its socket exists; its name stands in the offer.
        std::array<char, 4096> offer{};
        const ssize_t bytes = recv(control.get(), offer.data(), offer.size(), MSG_PEEK);
        ASSERT_GT(bytes, 0);
        const std::string text(offer.data(), static_cast<size_t>(bytes));
        socket = "@" + std::string(text.c_str() + text.find("faro-"));
        EXPECT_EQ(Traces::look().sockets.count(socket), 1u) << socket;
      }
      ShmPeer peer(std::move(control), kRing);
      ASSERT_TRUE(peer.start().ok());
      child.kill();
      EXPECT_FALSE(peer.connect().ok());
      peer.give_up();
    }
    expect_nothing_new(before, socket);
  }
}

// --- a hostile peer

/// The shared memory of this process, found as an attacker in it would find it.
std::vector<std::span<unsigned char>> shared_memory() {
  std::vector<std::span<unsigned char>> all;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:faro-") == std::string::npos) continue;
    unsigned long first = 0;
    unsigned long last = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &first, &last) != 2) continue;
    all.emplace_back(reinterpret_cast<unsigned char*>(first), last - first);
  }
  return all;
}

enum class Attack { everything, control_words, frames, small_steps };

/// Overwrites what it shares with its peer until it is killed.
[[noreturn]] void attack(base::UniqueFd control, Attack how, uint64_t seed) {
  ShmPeer peer(std::move(control), kRing);
  if (!peer.start().ok() || !peer.connect().ok()) _exit(1);
  if (how != Attack::everything) peer.wait_for_peer();  // or it never gets beyond the setup
  const std::vector<std::span<unsigned char>> memory = shared_memory();
  FrameSequence sequence(seed, kRing / 4);
  for (uint64_t step = 0;; ++step) {
    seed = mix(seed);
    const std::span<unsigned char> target = memory[seed % memory.size()];
    switch (how) {
      case Attack::everything: {
        const uint64_t value = mix(seed);
        std::memcpy(&target[(seed >> 16) % (target.size() / 8) * 8], &value, 8);
        break;
      }
      case Attack::control_words: {
        // The first page: header, positions, ready words, or doorbells. Values that are nearly
        // right.
        const uint64_t value = (seed >> 32) % 3 == 0 ? mix(seed) : (seed >> 40) % 256 * 64;
        std::memcpy(&target[(seed >> 16) % 64 * 8], &value, 8);
        break;
      }
      case Attack::frames:
        // Honest positions, while the bytes of all frames change.
        sequence.try_send(peer.outgoing());
        peer.outgoing().post();
        if (target.size() > 4096) target[4096 + (seed >> 8) % (target.size() - 4096)] = seed & 0xff;
        break;
      case Attack::small_steps: {
        // Frames that follow each other, with nonsense in one field at times.
        sequence.try_send(peer.outgoing());
        peer.outgoing().post();
        if (step % 64 == 63)
          target[(seed >> 16) % target.size()] ^= static_cast<unsigned char>(1 << (seed >> 60) % 8);
        break;
      }
    }
  }
}

class ShmHostilePeer : public testing::TestWithParam<Attack> {};
constexpr const char* kAttackNames[] = {"everything", "control_words", "frames", "small_steps"};
INSTANTIATE_TEST_SUITE_P(Attacks, ShmHostilePeer,
                         testing::Values(Attack::everything, Attack::control_words, Attack::frames,
                                         Attack::small_steps),
                         [](const auto& param) {
                           return kAttackNames[static_cast<size_t>(param.param)];
                         });

TEST_P(ShmHostilePeer, fails_the_link_once_or_sends_nonsense_but_never_leads_outside_the_rings) {
  const Traces before = Traces::look();
  uint64_t frames = 0;
  uint64_t claims = 0;
  uint32_t failed_links = 0;
  uint32_t refused = 0;
  for (uint64_t round = 1; round <= 30; ++round) {
    base::UniqueFd control;
    Child child([&](base::UniqueFd own) { attack(std::move(own), GetParam(), mix(round)); },
                control);
    ShmPeer peer(std::move(control), kRing);
    ASSERT_TRUE(peer.start().ok());
    const Status connected = peer.connect();
    if (!connected.ok()) {  // the attack began before the segment was checked
      EXPECT_EQ(connected.code(), Code::protocol_error) << connected.to_string();
      ++refused;
      continue;
    }
    peer.tell_peer();
    const base::Nanoseconds end = now() + 20'000'000;
    volatile uint64_t sum = 0;  // the bytes are really read
    while (now() < end) {
      // Do what a worker would: visit ready rings, read everything, send, sleep a little.
      bool any = false;
      peer.ready().take([&](uint32_t ring) {
        ASSERT_EQ(ring, 0u) << "a ring that does not exist";
        any = true;
      });
      FrameView view;
      for (int i = 0; i < 100 && peer.incoming().next(view) == Next::frame; ++i) {
        ++frames;
        ASSERT_LE(view.header.length, kRing / 2);
        for (uint32_t at = 0; at < view.payload_bytes(); ++at)
          sum = sum + static_cast<uint64_t>(view.payload[at]);
        peer.incoming().release(view.token);
      }
      const transport::Claim claim = peer.outgoing().claim(64, kRing / 4);
      ASSERT_LE(claim.bytes, kRing / 4);
      if (claim.bytes != 0) {
        ++claims;
        std::memset(claim.data, 1, claim.bytes);
        peer.outgoing().commit(claim.bytes);
        peer.outgoing().post();
      }
      if (!any) {
        ring::Doorbell doorbell(&peer.doorbell());
        doorbell.arm();
        doorbell.sleep(20'000);
      }
    }
    EXPECT_LE(peer.failures(), 1);
    if (peer.failures() == 1) {
      ++failed_links;
      EXPECT_EQ(peer.failure().code(), Code::protocol_error) << peer.failure().to_string();
    }
  }
  RecordProperty("frames", std::to_string(frames));
  RecordProperty("failed_links", static_cast<int>(failed_links));
  RecordProperty("refused", static_cast<int>(refused));
  EXPECT_GT(claims, 0u);
  EXPECT_GT(failed_links, 0u)
      << "nothing was noticed in 30 links: the attack does not reach the other side";
  expect_nothing_new(before);
}

}  // namespace
}  // namespace faro::test
