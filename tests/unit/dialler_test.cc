// A dialler that goes while its answer is under way.
#include "links/dialler.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "links/socket_network.h"
#include "session/cluster_identity.h"
#include "support/cluster.h"
#include "support/expect.h"

namespace faro::links {
namespace {

using Answer = std::function<void(Result<std::unique_ptr<ControlConnection>>)>;

std::unique_ptr<Network> network() {
  base::Settings settings;
  settings.tls = "off";
  return test::value_of(SocketNetwork::create(settings, "127.0.0.1:0"));
}

/// Dials nobody: the test answers.
class UnansweredNetwork final : public test::ForwardingNetwork {
 public:
  UnansweredNetwork() : ForwardingNetwork(network()) {}
  void connect(const std::string&, Answer done) override { answer = std::move(done); }
  Answer answer;
};

struct Owner final : Dialler::Owner {
  void on_dialled(Dialler&, std::unique_ptr<ControlConnection>, const wire::Hello&) override {}
  void on_dial_failed(Dialler&, const Status&) override { ++failures; }
  void on_dial_refused(Dialler&, const Refusal&) override {}
  int failures = 0;
};

TEST(Dialler, that_has_gone_is_not_told_of_a_late_answer) {
  UnansweredNetwork unanswered;
  Owner owner;
  const session::ClusterIdentity identity;
  auto dialler = std::make_unique<Dialler>(owner, unanswered, identity, 1, "10.0.0.1:7000");
  const Status refused(Code::connect_failed, "refused");
  dialler->advance(1);
  unanswered.answer(refused);
  EXPECT_EQ(owner.failures, 1);
  dialler->advance(base::kForever - 1);
  dialler.reset();
  unanswered.answer(refused);
  EXPECT_EQ(owner.failures, 1);
}

}  // namespace
}  // namespace faro::links
