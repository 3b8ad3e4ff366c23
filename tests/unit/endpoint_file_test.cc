// The counter file of an endpoint: it grows with its channels, is read whole, and does its readers no harm.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "counters/counter_file.h"
#include "counters/counter_view.h"
#include "counters/endpoint_file.h"
#include "counters/endpoint_view.h"
#include "counters/prometheus_text.h"
#include "support/expect.h"
#include "support/temporary_folder.h"

namespace faro::counters {
namespace {

using test::TemporaryFolder;

EndpointShape some_shape() {
  return {.cluster = "test",
          .name = "tm-1",
          .address = "127.0.0.1:7000",
          .poller_count = 2,
          .channel_limit = 65'536};
}

std::unique_ptr<EndpointFile> make(const std::string& folder) {
  return test::value_of(EndpointFile::make(some_shape(), folder, 1));
}

std::unique_ptr<EndpointCounterView> view_of(const EndpointFile& file) {
  return test::value_of(EndpointCounterView::over([&file] { return file.memory(); }));
}

Result<std::unique_ptr<EndpointCounterView>> reader_over(const std::vector<uint64_t>& copy) {
  return EndpointCounterView::over([&copy] { return std::as_bytes(std::span(copy)); });
}

EndpointView read(const std::string& path) {
  return test::value_of(EndpointCounterView::open(path))->read();
}

ChannelState open_state(const char* peer) {
  ChannelState state;
  state.life = ChannelLife::open;
  state.generation = 1;
  std::strcpy(state.peer.data(), peer);
  std::strcpy(state.transport.data(), "tcp");
  return state;
}

off_t size_of(const std::string& path) {
  struct stat state {};
  EXPECT_EQ(stat(path.c_str(), &state), 0);
  return state.st_size;
}

TEST(EndpointFile, shows_others_what_is_counted) {
  TemporaryFolder folder;
  const auto file = make(folder.path());
  file->listens(77);
  count(file->poller(1).sleeps, 3);
  count(file->ended().outgoing.bytes_sent, 1000);
  ChannelRecord& record = **file->channel(2);
  record.state.store(open_state("tm-2"));
  count(record.outgoing.bytes_sent, 64);
  set(record.incoming.unreleased_bytes, 128);
  const EndpointView view = read(file->path());
  EXPECT_TRUE(view.alive);
  EXPECT_EQ(view.cluster, "test");
  EXPECT_EQ(view.full_name(), "tm-1 (127.0.0.1:7000)");
  EXPECT_EQ(view.incarnation, 77u);
  EXPECT_EQ(view.pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(view.counters.listening, 1u);
  ASSERT_EQ(view.pollers.size(), 2u);
  EXPECT_EQ(view.pollers[1].sleeps, 3u);
  ASSERT_EQ(view.channels.size(), 1u);
  EXPECT_EQ(view.channels[0].index, 2u);
  EXPECT_EQ(view.channels[0].peer, "tm-2");
  EXPECT_EQ(view.channels[0].counts.sent.bytes_sent, 64u);
  EXPECT_EQ(view.channels[0].counts.received.unreleased_bytes, 128u);
  EXPECT_EQ(view.all.sent.bytes_sent, 1064u) << "those that are no more, too";
}

TEST(EndpointFile, says_how_long_something_has_lasted) {
  const auto file = make("");
  ChannelRecord& record = **file->channel(0);
  record.state.store(open_state("tm-2"));
  const auto view = view_of(*file);
  EXPECT_EQ(view->read().channels[0].counts.counters.room_ns, 0u) << "it is not the case";
  set(record.counters.room_ns, 1);
  const EndpointView read = view->read();
  EXPECT_EQ(read.channels[0].counts.counters.room_ns, read.read_ns - 1);
}

TEST(EndpointFile, grows_with_the_channels_that_there_are) {
  TemporaryFolder folder;
  const auto file = make(folder.path());
  const off_t least = size_of(file->path());
  EXPECT_LE(least, 16 * 1024) << "65536 channels could be";
  const auto view = test::value_of(EndpointCounterView::open(file->path()));
  EXPECT_TRUE(view->read().channels.empty());
  for (const uint32_t index : {0u, 1u, 31u}) ASSERT_TRUE(test::is_ok(file->channel(index)));
  EXPECT_EQ(size_of(file->path()), least + 32 * 512);
  (*file->channel(100))->state.store(open_state("late"));
  EXPECT_EQ(size_of(file->path()), least + 101 * 512);
  const EndpointView read = view->read();
  ASSERT_EQ(read.channels.size(), 1u) << "a reader sees what has come since";
  EXPECT_EQ(read.channels[0].peer, "late");
  for (uint32_t index = 0; index <= 100; ++index) ASSERT_TRUE(test::is_ok(file->channel(index)));
  EXPECT_EQ(size_of(file->path()), least + 101 * 512) << "they are used again";
}

// A file size limit is met like a folder that is full.
TEST(EndpointFile, without_room_for_a_channel_says_so_and_keeps_the_others) {
  TemporaryFolder folder;
  const auto file = make(folder.path());
  ASSERT_TRUE(test::is_ok(file->channel(0)));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{static_cast<rlim_t>(size_of(file->path())), before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  const Status refused = file->channel(5000).status();
  setrlimit(RLIMIT_FSIZE, &before);
  test::expect_error(refused, Code::system_error, {"no room for", folder.path()});
  (*file->channel(0))->state.store(open_state("kept"));
  EXPECT_EQ(read(file->path()).channels.size(), 1u);
  EXPECT_TRUE(test::is_ok(file->channel(5000))) << "there is room again";
}

TEST(EndpointFile, and_that_of_a_session_are_told_apart) {
  TemporaryFolder folder;
  const auto endpoint = make(folder.path());
  Shape shape;
  shape.workers_per_node = {1};
  shape.rings_per_lane = 1;
  const auto session = test::value_of(CounterFile::make(shape, folder.path(), 1));
  EXPECT_EQ(test::value_of(kind_of(endpoint->path())), FileKind::endpoint);
  EXPECT_EQ(test::value_of(kind_of(session->path())), FileKind::session);
  test::expect_error(CounterView::open(endpoint->path()).status(), Code::invalid_argument,
                     {"it is not of a session"});
  test::expect_error(EndpointCounterView::open(session->path()).status(), Code::invalid_argument,
                     {"it is not of an endpoint"});
}

// A faro from before endpoints had files knows version 1, and refuses whatever has another one.
TEST(EndpointFile, has_a_version_that_older_readers_refuse) {
  const auto file = make("");
  const auto* const header = reinterpret_cast<const Header*>(file->memory().data());
  EXPECT_EQ(header->magic, kMagic);
  EXPECT_GT(header->version, 1u);
  std::vector<uint64_t> copy(file->memory().size() / 8);
  std::memcpy(copy.data(), file->memory().data(), copy.size() * 8);
  reinterpret_cast<Header*>(copy.data())->version = 77;
  test::expect_error(reader_over(copy).status(), Code::invalid_argument,
                     {"version 77", "this faro reads " + std::to_string(kLayoutVersion)});
}

TEST(EndpointFile, goes_with_its_endpoint_and_is_for_its_user_alone) {
  TemporaryFolder folder;
  auto file = make(folder.path());
  struct stat state {};
  ASSERT_EQ(stat(file->path().c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0600u);
  file->remove_name();
  EXPECT_TRUE(folder.empty());
}

TEST(EndpointView, of_a_file_that_was_cut_short_shows_it_as_it_was_and_ended) {
  TemporaryFolder folder;
  const auto file = make(folder.path());
  ChannelRecord& record = **file->channel(3);
  record.state.store(open_state("tm-2"));
  const auto view = test::value_of(EndpointCounterView::open(file->path()));
  EXPECT_TRUE(view->read().alive);
  const off_t whole = size_of(file->path());
  ASSERT_EQ(truncate(file->path().c_str(), 100), 0);
  const EndpointView shown = view->read();
  EXPECT_FALSE(shown.alive);
  EXPECT_EQ(shown.channels.size(), 1u);
  ASSERT_EQ(truncate(file->path().c_str(), whole), 0);  // it counts on
}

// What a channel has counted is moved to the endpoint's totals when it ends. In the middle of that it is counted twice.
TEST(EndpointView, looks_again_if_counts_are_moved_just_then) {
  const auto file = make("");
  ChannelRecord& record = **file->channel(0);
  record.state.store(open_state("tm-2"));
  count(record.outgoing.frames_sent, 5);
  EndedChannels& ended = file->ended();
  int copies = 0;
  const auto view = test::value_of(EndpointCounterView::over([&] {
    if (++copies == 2) {  // the first was made when it was opened
      set(ended.moves, 1);
      set(ended.outgoing.frames_sent, 5);
    } else if (copies == 3) {
      set(record.outgoing.frames_sent, 0);
      record.state.store({});
      set(ended.moves, 2);
    }
    return file->memory();
  }));
  const EndpointView read = view->read();
  EXPECT_EQ(read.all.sent.frames_sent, 5u);
  EXPECT_TRUE(read.channels.empty());
  EXPECT_EQ(copies, 5);
}

TEST(EndpointView, leaves_out_a_channel_that_is_replaced_just_then) {
  const auto file = make("");
  ChannelRecord& record = **file->channel(0);
  record.state.store(open_state("old"));
  int copies = 0;
  const auto view = test::value_of(EndpointCounterView::over([&] {
    if (++copies == 3) record.state.store(open_state("new"));
    return file->memory();
  }));
  EXPECT_TRUE(view->read().channels.empty());
  EXPECT_EQ(view->read().channels.at(0).peer, "new");
}

TEST(EndpointView, never_leaves_the_memory_of_a_file_whose_header_lies) {
  const auto file = make("");
  (*file->channel(3))->state.store(open_state("tm-2"));
  int refused = 0;
  for (size_t byte = 0; byte < sizeof(Header); ++byte) {
    for (const unsigned value : {0x00u, 0x01u, 0x7fu, 0xffu}) {
      std::vector<uint64_t> copy(file->memory().size() / 8);
      std::memcpy(copy.data(), file->memory().data(), copy.size() * 8);
      reinterpret_cast<unsigned char*>(copy.data())[byte] = static_cast<unsigned char>(value);
      const auto view = reader_over(copy);
      if (view.ok()) {
        (void)prometheus_text((*view)->read());
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

// What a peer is called is up to it; a scraper would refuse the whole page for one such byte.
TEST(EndpointPage, shows_names_that_are_no_text_as_the_format_wants_them) {
  const auto file = make("");
  (*file->channel(0))->state.store(open_state("a\xff\r\n\x1b[2J\"\\"));
  test::expect_contains(prometheus_text(view_of(*file)->read()),
                        R"(,peer="a?   [2J\"\\",address=)");
}

TEST(EndpointPage, lists_no_more_channels_than_it_says) {
  const auto file = make("");
  for (uint32_t index = 0; index < kMostChannelsOnPage + 10; ++index)
    (*file->channel(index))->state.store(open_state("tm-2"));
  count((*file->channel(kMostChannelsOnPage + 5))->outgoing.frames_sent, 7);
  const std::string page = prometheus_text(view_of(*file)->read());
  const std::string name = "\nfaro_channel_sent_bytes_total{";
  size_t series = 0;
  for (size_t at = page.find(name); at != page.npos; at = page.find(name, at + 1)) ++series;
  EXPECT_EQ(series, kMostChannelsOnPage);
  test::expect_contains(page,
                        "faro_endpoint_frames_sent_total{cluster=\"test\",endpoint=\"tm-1\"} 7\n");
}

}  // namespace
}  // namespace faro::counters
