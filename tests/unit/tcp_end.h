// TcpEnd: one end of a TCP link, whose peer is a socket of the test.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "support/data_header.h"
#include "support/tcp_socket_pair.h"
#include "support/test_reactor.h"
#include "transport/tcp/tcp_transport.h"
#include "wire/data_message.h"

namespace faro::test {

/// WRITTEN, and a data frame of as many bytes as it says.
inline std::vector<std::byte> written_frame(uint32_t ring, wire::Position position, uint32_t length,
                                            uint32_t row_count = 1) {
  std::vector<std::byte> bytes(sizeof(wire::DataMessage) + length);
  const wire::DataMessage message = wire::written_message(ring, length, position);
  std::memcpy(bytes.data(), &message, sizeof message);
  put_data_header(bytes.data() + sizeof message, length, row_count);
  return bytes;
}

class TcpEnd : public testing::Test, public transport::LinkEvents {
 protected:
  TcpEnd() {
    context_.workers = {&worker_, 1};
    context_.ready_group = {&ready_group_, 1};
    context_.reactor = &reactor_;
    context_.events = this;
  }

  /// Makes the link, anew if there is one.
  void connect(const ring::Layout& layout) {
    link_.reset();
    failures_ = 0;
    auto [raw, mine] = tcp_socket_pair();
    ASSERT_TRUE(raw.valid() && mine.valid());
    raw_ = std::move(raw);
    ready_set_ = std::make_unique<ring::ReadySet>(1);
    worker_ = {ready_set_.get(), &doorbell_};
    context_.outgoing = context_.incoming = layout;
    const auto setup = transport_.begin(context_);
    ASSERT_TRUE(setup->start().ok());
    ASSERT_FALSE(setup->ready());
    mine_ = mine.release();
    ASSERT_TRUE(setup->on_stream({mine_}).ok());
    ASSERT_TRUE(setup->ready());
    link_ = setup->take();
    ASSERT_NE(link_, nullptr);
  }
  void on_link_failed(const Status& cause) override {
    ++failures_;
    failure_ = cause;
  }

  base::ManualClock clock_;  // deferred sends look at it; the reactor's waits do not
  TestReactor reactor_{clock_};
  transport::tcp::TcpTransport transport_;
  std::unique_ptr<ring::ReadySet> ready_set_ = std::make_unique<ring::ReadySet>(1);
  ring::DoorbellLine doorbell_{};
  transport::WorkerEnd worker_{ready_set_.get(), &doorbell_};
  uint32_t ready_group_ = 0;
  transport::LinkContext context_;
  base::UniqueFd raw_;  // the peer's
  int mine_ = -1;       // the link's, until it is mended
  std::unique_ptr<transport::DataLink> link_;
  int failures_ = 0;
  Status failure_;
};

}  // namespace faro::test
