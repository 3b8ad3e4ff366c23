// Writes the first inputs of each target, made of real messages and of moves that go well:
//
//   fuzz_seeds tests/fuzz/corpus
//
// What a target makes of an input stands in its own file; where that changes, so do its seeds here.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "counters/descriptions.h"
#include "counters/layout.h"
#include "support/data_header.h"
#include "wire/control.h"
#include "wire/data_message.h"
#include "wire/fields.h"
#include "wire/frame.h"
#include "wire/preamble.h"
#include "wire/query_message.h"
#include "wire/verbs_message.h"

namespace faro::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

/// The bytes of an input, in the order in which Input takes them.
class Seed {
 public:
  template <typename Value>
  Seed& value(const Value& value) {
    return bytes(std::as_bytes(std::span(&value, 1)));
  }
  /// Choices of one byte each: below, flag.
  Seed& moves(std::initializer_list<uint8_t> choices) {
    for (const uint8_t choice : choices) value(choice);
    return *this;
  }
  Seed& moves(std::span<const uint8_t> choices) { return bytes(std::as_bytes(choices)); }
  Seed& piece(std::span<const std::byte> data) {
    return value(static_cast<uint16_t>(data.size())).bytes(data);
  }
  Seed& bytes(std::span<const std::byte> data) {
    for (const std::byte each : data) bytes_.push_back(each);
    return *this;
  }
  const Bytes& all() const { return bytes_; }

 private:
  Bytes bytes_;
};

class Corpus {
 public:
  Corpus(const std::filesystem::path& folder, std::string_view target) : folder_(folder / target) {
    std::filesystem::create_directories(folder_);
  }
  void add(const std::string& name, std::span<const std::byte> bytes) const {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void add(const std::string& name, const Seed& seed) const { add(name, seed.all()); }
  void add(const std::string& name, std::string_view text) const {
    add(name, std::as_bytes(std::span(text)));
  }

 private:
  const std::filesystem::path folder_;
};

Bytes bytes_of(const auto& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

wire::Hello hello() {
  wire::Hello hello;
  hello.head.node = 2;
  hello.head.cluster_hash = 77;
  hello.expected_node = 1;
  hello.node_count = 3;
  hello.incarnation = 1002;
  hello.cluster_id = "faro";
  hello.address = "h2:7000";
  hello.host_identity = "host";
  hello.transports = {"shm", "tcp"};
  hello.settings = "ring.bytes=65536\n";
  return hello;
}

wire::Hello channel_hello() {
  wire::Hello hello;
  hello.purpose = wire::Purpose::channel;
  hello.incarnation = 7;
  hello.cluster_id = "faro";
  hello.name = "reader";
  hello.transports = {"shm", "tcp"};
  hello.rings = {65536, 4096};
  hello.greeting = {std::byte{1}, std::byte{2}};
  return hello;
}

// With a field at its end that nobody knows, and that may be skipped.
Bytes with_field(Bytes message) {
  wire::FieldWriter(message).number(0x7f00, uint8_t{1});
  return message;
}

void write_messages(const Corpus& corpus) {
  using wire::ControlKind;
  const Bytes payload(48, std::byte{5});
  corpus.add("hello", wire::encode(hello()));
  corpus.add("hello_of_a_channel", wire::encode(channel_hello()));
  corpus.add("hello_with_a_field", with_field(wire::encode(hello())));
  Bytes demanding = wire::encode(hello());
  wire::FieldWriter(demanding).number(wire::kRequiredField | 0x7f00, uint8_t{1});
  corpus.add("hello_that_requires", demanding);
  corpus.add("refuse", wire::encode_refuse({Code::configuration_mismatch, false, "ring.bytes"}));
  corpus.add("fail", wire::encode_fail({Code::peer_lost, false, "reset"}));
  corpus.add("auth", wire::encode(wire::Auth{}));
  corpus.add("auth_challenge", wire::encode(wire::Auth{wire::AuthMethod::secret, false, payload}));
  corpus.add("link", wire::encode(wire::LinkChoice{"tcp", {}}));
  corpus.add("link_with_rings",
             wire::encode(wire::LinkChoice{"shm", {}, wire::ChannelRings{65536, 0}}));
  wire::Hello mending = hello();
  mending.head.features = wire::kMends;
  mending.mends = wire::LinkName{1001, 9};
  corpus.add("hello_that_mends", wire::encode(mending));
  corpus.add("link_with_number", wire::encode(wire::LinkChoice{"tcp", {}, {}, 9}));
  corpus.add("heartbeat_that_acknowledges", wire::encode_heartbeat({5}));
  corpus.add("broken", wire::encode_plain(ControlKind::broken));
  corpus.add("resume", wire::encode_resume({5}));
  corpus.add("members", wire::encode(wire::Members{true, std::vector<bool>(11)}));
  corpus.add("setup", wire::encode_payload(ControlKind::setup, payload));
  corpus.add("ready", wire::encode_plain(ControlKind::ready));
  corpus.add("ready_with_a_field", with_field(wire::encode_plain(ControlKind::ready)));
  corpus.add("bye", wire::encode_plain(ControlKind::bye));
  for (uint8_t kind = 1; kind <= 6; ++kind) {
    wire::QueryMessage message;
    message.kind = static_cast<wire::QueryMessageKind>(kind);
    message.query = {1, 1000, 0, 0};
    message.text = kind == 1 ? "the cause" : "";
    corpus.add("query_" + std::to_string(kind), wire::encode(message));
  }
  wire::QueryMessage stop;
  stop.kind = wire::QueryMessageKind::stop;
  stop.query = {1, 1000, 0, 0};
  corpus.add("query_with_a_field", with_field(wire::encode(stop)));
  corpus.add("preamble_control", bytes_of(wire::control_preamble()));
  corpus.add("preamble_data", bytes_of(wire::data_preamble({std::byte{9}})));
  wire::VerbsListen listen{};
  listen.kind = wire::VerbsSetupKind::listen;
  listen.family = 4;
  listen.port = 4791;
  listen.address[0] = 10;
  corpus.add("verbs_listen", bytes_of(listen));
  wire::VerbsMemory memory{};
  memory.kind = wire::VerbsSetupKind::memory;
  memory.bytes = 1 << 20;
  memory.receives = 32;
  memory.takes_immediates = 1;
  corpus.add("verbs_memory", bytes_of(memory));
  Bytes longer = bytes_of(memory);
  longer.resize(longer.size() + 8);
  corpus.add("verbs_memory_and_more", longer);
  corpus.add("verbs_resume",
             wire::encode_verbs_resume(3, std::array{wire::VerbsProgress{128, 64}}));
  corpus.add("scrape", "GET /metrics HTTP/1.1\r\nHost: localhost:9464\r\n\r\n");
  corpus.add("scrape_other", "GET / HTTP/1.1\r\n\r\n");
  corpus.add("scrape_post", "POST /metrics HTTP/1.1\r\n\r\n");
  corpus.add(
      "scrape_token",
      "GET /metrics HTTP/1.1\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n\r\n");
}

void write_handshakes(const Corpus& corpus) {
  // The shape, then what happens to each message.
  corpus.add("without_secret", Seed().moves({0, 0, 0, 0, 0, 0, 0}));
  corpus.add("with_secret", Seed().moves({1, 0, 0, 0, 0, 0, 0, 0, 0}));
  corpus.add("other_secret", Seed().moves({3, 0, 0, 0, 0, 0, 0, 0, 0}));
  corpus.add("one_secret", Seed().moves({5, 0, 0, 0, 0, 0, 0, 0, 0}));
  corpus.add("kind_that_may_be_skipped", Seed()
                                             .moves({1, 3})
                                             .piece(wire::ControlMessage(9, std::byte{0x90}))
                                             .moves({0, 0, 0, 0, 0, 0, 0}));
  corpus.add("hello_of_a_channel", Seed().moves({0, 3}).piece(wire::encode(channel_hello())));
  corpus.add("other_settings", Seed().moves({8, 0, 0, 0, 0}));
  corpus.add("not_now", Seed().moves({16, 0, 0, 0, 0}));
  corpus.add("hello_of_an_outsider", Seed().moves({1, 3}).piece(wire::encode(hello())));
  corpus.add("changed_hello", Seed().moves({1, 1}).value(uint16_t{40}).moves({1, 0, 0, 0, 0, 0}));
  corpus.add("changed_proof", Seed().moves({1, 0, 0, 0, 0, 1}).value(uint16_t{9}).moves({1, 0, 0}));
  corpus.add("repeated", Seed().moves({1, 6, 1, 0, 0, 0}));
  // The proof of the accepting side is lost, once it is known what it was, and comes out of the history.
  corpus.add("delayed_proof", Seed()
                                  .moves({1, 0, 0, 0, 0, 0, 3})
                                  .piece(wire::ControlMessage(9, std::byte{0x90}))
                                  .moves({5, 4, 5, 1, 0}));
  corpus.add("agreement_instead_of_refusal",
             Seed()
                 .moves({17, 0, 0, 0, 0, 0, 0, 3})
                 .piece(wire::encode({wire::AuthMethod::secret, true, {}})));
}

void write_queries(const Corpus& corpus) {
  // 0: a worker's move; 1: a peer speaks. A query: issuer, incarnation, counter.
  const auto begin = [](Seed& seed) -> Seed& { return seed.moves({0, 0}); };
  Seed ends;
  begin(ends).moves({0, 1, 1, 0, 1});    // uses it
  ends.moves({0, 3, 0, 0, 0, 3, 0, 1});  // both workers end
  for (const uint8_t from : {1, 0}) {
    ends.moves({1, from, 1, 2, 1, 0, 1, 0, 0, 0, 0, 0});  // ENDED
    ends.moves({1, from, 1, 4, 1, 0, 1, 0, 0, 0, 0, 0});  // CONFIRM
  }
  corpus.add("own_query_ends", ends);
  Seed fails;
  fails.moves({0, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 30, 0, 0, 4, 'o', 'o', 'p', 's'});
  fails.moves({1, 1, 1, 3, 0, 0, 1, 0, 30, 0, 1, 0});  // OUTCOME
  corpus.add("query_of_a_peer_fails", fails);
  Seed waits;
  waits.moves({0, 1, 0, 0, 1});         // uses it
  waits.moves({0, 12, 0, 0, 3, 4, 1});  // opens stage 3 for worker 4, and waits for it
  waits.moves({1, 1, 1, 5, 0, 0, 1, 3, 3, 0, 9, 0, 0, 3, 0, 1});  // AWAIT of worker 3, which ends
  corpus.add("stage_of_a_worker_that_ends", waits);
  corpus.add("stop", Seed().moves({0, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 2, 0, 0, 0, 0}));
}

void write_rings(const Corpus& corpus) {
  const Seed frame = Seed().moves({3, 2}).value(uint16_t{40}).moves({0, 3});  // forged
  for (uint8_t start = 0; start < 3; ++start) {
    Seed seed;
    seed.moves({start});
    for (int i = 0; i < 4; ++i) seed.bytes(frame.all()).moves({0, 0, 4, 6, 0});
    seed.moves({3, 1, 0, 0, 0, 0, 0, 15, 4});  // a pad
    corpus.add("frames_from_" + std::to_string(start), seed);
  }
  // A kind that nobody knows, marked to be skipped, between two that are known.
  corpus.add("skipped_frame", Seed()
                                  .moves({0})
                                  .bytes(frame.all())
                                  .moves({0, 0, 4, 3, 9})
                                  .value(uint16_t{40})
                                  .moves({0, 0, 0, 0, 4})
                                  .bytes(frame.all())
                                  .moves({0, 0, 4, 6, 0, 4}));
  corpus.add("raw_frame", Seed()
                              .moves({0, 2})
                              .value(uint16_t{0})
                              .piece(bytes_of(test::data_header(40, 3)))
                              .moves({0, 0, 4, 6, 0}));
}

void write_frames(const Corpus& corpus) {
  // 1: the fuzzed peer, ring 0, slot 0; 0: the worker. A query: which, and whether it is none.
  const auto open = [](Seed& seed) -> Seed& { return seed.moves({1, 0, 0, 0, 0, 0, 0, 1, 0}); };
  Seed rows;
  open(rows).moves({1, 0, 0, 3, 3, 1});     // 3 rows of 8 bytes
  rows.moves({1, 0, 0, 2, 3});              // FINISH, 3
  rows.moves({0, 0, 0, 0, 0, 1, 0});        // opens the shuffle
  rows.moves({0, 2, 0, 0, 5, 0, 0, 2, 0});  // polls, releases, polls
  corpus.add("rows_before_the_worker_opens", rows);
  Seed fragments;
  fragments.moves({0, 0, 0, 0, 0, 0, 0});
  fragments.moves({1, 0, 0, 0, 0, 0, 0, 0, 0});  // OPEN, a length each
  for (int part = 0; part < 3; ++part) fragments.moves({1, 0, 0, 5, 0, 1, 0, 1, 0, 0, 2, 0});
  corpus.add("a_row_in_fragments", fragments);
  Seed spilled;
  open(spilled).moves(
      {1, 0, 0, 3, 7, 1, 0, 11, 10, 0, 11, 10, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 6, 0});
  corpus.add("rows_spilled", spilled);
  Seed format;
  format.moves({0, 0, 0, 0, 0, 1, 4});                       // opens the shuffle, with a format
  format.moves({1, 0, 0, 1, 0, 0, 0, 1, 0, 1});              // OPEN with the same
  format.moves({1, 0, 0, 3, 3, 1, 1, 0, 0, 2, 3, 0, 2, 0});  // 3 rows, FINISH, polls
  format.moves({0, 5, 0, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0, 7});  // OPEN of the same stage with another
  format.piece(bytes_of(uint32_t{0x31323334})).moves({0, 2, 0});  // polls
  corpus.add("formats", format);
}

// Moves as in write_frames, but that a ring is one of four and a shuffle has a delivery. The lists are another's (1), so nothing is drawn for
// them.
void write_node_frames(const Corpus& corpus) {
  for (const uint8_t delivery : {1, 2}) {
    Seed rows;
    // OPEN by a ring to the node: slot 0, rows of 8 bytes, fields for both workers.
    rows.moves({1, 2, 0, 0, 0, 0, 0, 1, 1, 0, 1, delivery});
    rows.moves({1, 2, 0, 3, 3, 1});               // 3 rows of 8 bytes
    rows.moves({1, 2, 0, 2, 3});                  // FINISH, 3
    rows.moves({0, 0, 0, 0, 0, 1, 0, delivery});  // opens the shuffle
    rows.moves({0, 2, 0, 0, 2, 0, 0, 5, 0});      // polls, twice, releases
    corpus.add(delivery == 1 ? "rows_for_any" : "rows_for_each", rows);
  }
}

void write_channels(const Corpus& corpus) {
  // 0: the network, 1: the peer, 2: the poller, each with what it does at which channel.
  const auto accepted = [] { return Seed().moves({0, 0, 0, 2, 0, 3}); };
  const auto sends = [](Seed& seed) -> Seed& { return seed.moves({1, 0, 7, 1, 5, 100, 2, 0, 3}); };
  const std::array<uint8_t, 12> answers = {2, 7, 0, 100, 9, 1, 1, 2, 5, 1, 0, 5};
  Seed both = accepted();
  for (int i = 0; i < 3; ++i) sends(both).moves(answers).moves({2, 4, 0, 0, 0, 2, 3, 3});
  both.moves({2, 6, 0, 1, 1, 0, 4, 2, 0, 3, 2, 3, 3, 0, 0, 1, 1, 2, 0, 3});  // drained, ended
  corpus.add("drained", both);
  Seed full = accepted();
  for (int i = 0; i < 9; ++i) full.moves({2, 7, 0, 200, 0, 1, 1});
  full.moves({2, 3, 3, 1, 0, 5, 2, 0, 3});  // posts all, the peer reads, room
  corpus.add("no_room", full);
  Seed dialled;
  dialled.moves({0, 1, 1, 0, 1, 1, 2, 0, 3, 1, 1, 7, 1, 9, 2, 0, 0, 0, 1, 0, 2, 0, 3});
  corpus.add("dialled", dialled);
  corpus.add("refused", Seed().moves({0, 2, 1, 0, 2, 0, 1, 0, 2, 0, 3}));
  Seed many = accepted();
  many.moves({1, 0, 7, 3, 79, 2, 0, 79, 0, 0, 0, 1, 0});  // ended, while more wait than can be held
  for (int i = 0; i < 20; ++i) many.moves({2, 4, 0, 3, static_cast<uint8_t>(i)});
  corpus.add("frames_held", many);
  Seed again = accepted();
  again.moves({1, 0, 7, 3, 79, 2, 0, 79, 2, 4, 0, 0, 2, 2, 0, 79, 2, 4, 0, 0, 3});
  corpus.add("released_again", again);
  Seed idle = accepted();
  idle.moves({0, 0, 0, 2, 0, 3, 1, 0, 4, 2, 0, 3});
  corpus.add("idle", idle);
  for (uint8_t kind = 0; kind < 9; ++kind)
    corpus.add("kind_" + std::to_string(kind), accepted().moves({1, 0, 3, kind, 2, 0, 3}));
  Seed raw = accepted();
  raw.moves({1, 0, 0}).value(uint16_t{0}).piece(bytes_of(test::data_header(40, 3)));
  corpus.add("raw_frame", raw.moves({1, 0, 1, 0, 1, 2, 0, 3, 1, 0, 2}).value(uint16_t{64}));
}

void write_shared_memory(const Corpus& corpus) {
  const auto none = std::span<const std::byte>();
  Seed good;
  good.piece(none).moves({0});
  for (uint8_t ring = 0; ring < 2; ++ring)
    good.moves({ring, 5, 2}).value(uint16_t{64}).moves({1, 0, ring, 0, 1, ring, 7, ring, 9, 0});
  good.moves({0, 6, 3, 1, 0, 2, 1, 0, 6, 3, 1});
  corpus.add("frames_both_ways", good);
  const std::array<std::byte, 4> change = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  for (const uint8_t at : {0, 8, 12, 24, 40, 60})
    corpus.add("header_changed_at_" + std::to_string(at), Seed().piece(change).moves({at}));
}

void write_fd_passings(const Corpus& corpus) {
  corpus.add("both_ways", Seed().moves({0, 1, 1, 3, 0, 0, 0, 0, 4, 0, 2, 0, 1}));
  corpus.add("other_descriptors", Seed().moves({3, 0, 0, 0, 0, 4, 0, 3, 2, 3, 1}));
  corpus.add("wrong_token", Seed().moves({0, 1, 0}).piece(Bytes(16)));
}

void write_tcp_streams(const Corpus& corpus) {
  Seed frames;
  frames.moves({1});  // signs of life were offered
  for (uint8_t ring = 0; ring < 2; ++ring) {
    frames.moves({ring, 2, 0, 0, 1, 1, 40, 200, ring, 6, ring, 7, 0});  // writes, receive, release
    frames.moves({ring, 5, 3, 0, ring, 9, ring, 4, 1, 200});            // send, drain, READ
  }
  corpus.add("frames_both_ways", frames);
  corpus.add("more_than_the_ring_holds",
             Seed().moves({1, 1, 2, 7}).value(uint16_t{129}).moves({1, 1, 40, 200, 0, 9}));
  Seed mended;
  mended.moves({1, 0, 2, 0, 0, 1, 1, 40, 200, 0, 5, 3, 0, 0, 10});  // writes, send, mends
  for (uint8_t ring = 0; ring < 2; ++ring)
    mended.moves({ring, 11, 0, 0, 200});  // RESUME of what was sent: nothing has come
  corpus.add("mended", mended.moves({0, 6, 0, 9, 0, 5, 3, 0}));
  Bytes raw = bytes_of(wire::written_message(1, 64, 0));
  const Bytes header = bytes_of(test::data_header(56, 5));
  raw.insert(raw.end(), header.begin(), header.end());
  raw.resize(sizeof(wire::DataMessage) + 64);
  corpus.add("raw_bytes", Seed().moves({0, 0, 0}).piece(raw).moves({7, 1, 6}));
  for (const uint8_t offers : {1, 0}) {
    Seed signs;
    signs.moves(
        {offers, 0, 13, 0, 12, 200, 0, 12, 7, 0, 13, 0, 9});  // beats, SIGN, one in two pieces
    signs.moves({0, 2, 0, 0, 1, 1, 40, 200, 0, 12, 200, 0, 6, 0, 13});
    corpus.add(offers != 0 ? "signs" : "signs_that_nobody_offered", signs);
  }
  Seed turns;
  turns.moves({7, 0, 5, 3, 0, 0, 5, 3, 0, 0, 9});  // with two other nodes; sends, drains
  for (const uint64_t turn : {1, 4, 4, 2, 9}) {
    turns.moves({0, 12, 1}).value(uint32_t{1u << 16}).value(turn).moves({200});  // TURN
    turns.moves({0, 5, 3, 0, 0, 9});
  }
  corpus.add("turns", turns.moves({0, 10, 0, 5, 3, 0, 0, 9}));
}

void write_notifications(const Corpus& corpus) {
  for (uint8_t shape = 0; shape < 8; ++shape) {
    Seed seed;
    seed.moves({shape});
    seed.moves({0, 4, 0}).value(uint16_t{64}).moves({2, 1}).piece({});         // RDMA WRITE
    seed.moves({0, 1, 1, 0, 0, 0, 0, 1, 0, 6, 0, 7, 0});                       // WRITTEN, receive
    seed.moves({0, 3, 0, 0, 1, 5, 3, 0, 0, 9, 0, 1, 1, 1, 0, 1, 1, 1, 0, 9});  // immediate, send
    corpus.add("shape_" + std::to_string(shape), seed);
  }
  for (const uint8_t unread :
       {0, 1}) {  // after a frame was sent, and one has come; then both again
    Seed mended;
    mended.moves({1, 0, 5, 3, 0, 0, 4, 0}).value(uint16_t{64}).moves({2, 1}).piece({});
    mended.moves({0, 1, 1, 0, 0, 0, 0, 1, 0, 6, 0, 7, 0});
    mended.moves({0, 10, 1, unread, 0, 0, 0, 5, 3, 0, 0, 9});
    corpus.add("mended_" + std::to_string(unread), mended);
  }
  for (const uint8_t shape :
       {8, 16}) {  // a device that acknowledges, and a peer that sends signs of life
    Seed beats;
    beats.moves({shape, 0, 11, 0, 11, 0, 9, 0, 11, 0, 5, 3, 0, 0, 11, 0, 9});
    Bytes sign = bytes_of(wire::VerbsHead{1, 0, 0, 0});
    const Bytes record = bytes_of(wire::verbs_sign());
    sign.insert(sign.end(), record.begin(), record.end());
    corpus.add(shape == 8 ? "asks" : "signs", beats.moves({0, 0}).piece(sign).moves({0, 11}));
  }
  Bytes raw = bytes_of(wire::VerbsHead{1, 0, 0, 0});
  const Bytes record = bytes_of(wire::verbs_written(0, 64));
  raw.insert(raw.end(), record.begin(), record.end());
  corpus.add("raw_bytes", Seed().moves({0, 0, 0}).piece(raw));
}

void write_counter_files(const Corpus& corpus) {
  corpus.add("unchanged", Seed().moves({0, 0, 0}));
  corpus.add("cut_short", Seed().value(uint16_t{64}).moves({0}));
  // One change in the header: at each number, of 16 bytes at most.
  for (size_t at = 0; at < offsetof(counters::Header, reserved); at += 24) {
    corpus.add("header_changed_at_" + std::to_string(at),
               Seed().moves({0, 0, 1, 0}).value(static_cast<uint16_t>(at)).moves({3, 1, 0, 0, 0}));
  }
  // Behind the descriptions, between the two looks: what an endpoint, its pollers and its channels have counted.
  const size_t first =
      sizeof(counters::Header) + counters::descriptions().size() * sizeof(counters::Description);
  for (size_t at = 0; at < 1920; at += 128) {
    corpus.add("record_changed_at_" + std::to_string(at),
               Seed()
                   .moves({0, 0, 0, 1})
                   .value(static_cast<uint16_t>(first + at))
                   .moves({7, 255, 1, 0, 0, 0, 255, 0, 128}));
  }
}

void write_configurations(const Corpus& corpus) {
  corpus.add("file_and_environment",
             "[cluster]\nnodes = \"h0:1,h1:2\"\nnode = 1\nworkers = \"2,3\"\n[ring]\nbytes = "
             "\"64 KiB\"\nper_lane = 4\n\n%%\nFARO_TRANSPORT=tcp\nFARO_CLUSTER_NODE=0\nHOME=/");
  corpus.add("dotted", "cluster.nodes = \"[::1]:1\"\nring.bytes = 8192\n");
  corpus.add("wrong_types", "ring.bytes = -1\nring = [1, {a = 2.5}]\n");
  corpus.add("no_toml", "= = [[\n");
  corpus.add("unknown", "ring.colour = 'red'\n%%\nFARO_COLOUR=red\n");
  corpus.add("verbs",
             "[verbs]\ndevice='rxe0'\ngid_index='1'\nmtu=1024\nservice_level='3'\n"
             "queue_pairs='lane'\norder='paper'\nnotify='immediate'\n");
}

}  // namespace
}  // namespace faro::fuzz

int main(int argc, char** argv) {
  using namespace faro::fuzz;
  if (argc != 2) return std::fprintf(stderr, "usage: fuzz_seeds <folder of corpora>\n"), 2;
  const std::filesystem::path folder = argv[1];
  write_messages({folder, "message"});
  write_handshakes({folder, "handshake"});
  write_queries({folder, "query"});
  write_rings({folder, "ring"});
  write_frames({folder, "frame"});
  write_node_frames({folder, "node_frame"});
  write_channels({folder, "channel"});
  write_shared_memory({folder, "shared_memory"});
  write_fd_passings({folder, "fd_passing"});
  write_tcp_streams({folder, "tcp_stream"});
  write_notifications({folder, "notification"});
  write_counter_files({folder, "counter_file"});
  write_configurations({folder, "config"});
  return 0;
}
