// TLS over a pair of sockets in one thread: what is refused, when it is said, and that bytes arrive.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "faro/log.h"
#include "support/certificates.h"
#include "support/expect.h"
#include "support/tcp_socket_pair.h"
#include "tls/credentials.h"
#include "tls/socket.h"

namespace faro::test {
namespace {

/// Loads the credentials of files that stay, as those of a node do.
std::shared_ptr<tls::Credentials> load(const NodeFiles& files) {
  static std::vector<NodeFiles> kept;
  kept.push_back(files);
  auto loaded = tls::Credentials::load(files.resolved());
  EXPECT_TRUE(is_ok(loaded));
  return *loaded;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// ------------------------------------------------------------------------------------------ files

TEST(Credentials, are_none_without_tls_and_need_all_files_with_it) {
  const NodeFiles files = Authority().issue();
  base::Settings settings = files.resolved();
  settings.tls = "off";
  EXPECT_EQ(tls::Credentials::load(settings).value(), nullptr);
  for (std::string base::Settings::*file :
       {&base::Settings::certificate, &base::Settings::key, &base::Settings::authority}) {
    settings = files.resolved();
    (settings.*file).clear();
    EXPECT_EQ(tls::Credentials::load(settings).status().code(), Code::config_invalid);
    settings.*file = "/no/such/file";
    expect_error(tls::Credentials::load(settings).status(), Code::config_invalid,
                 {"/no/such/file"});
  }
}

TEST(Credentials, that_the_others_would_refuse_are_refused_at_once_with_the_reason) {
  const Authority authority;
  const NodeFiles other = Authority().issue();
  const auto overwrite = [](const std::string& path, const std::string& with) {
    std::ofstream(path, std::ios::trunc) << with;
  };
  const auto content = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto become_folder = [](const std::string& path) {
    EXPECT_TRUE(std::filesystem::remove(path));
    EXPECT_TRUE(std::filesystem::create_directory(path));
  };
  const auto become_pipe = [](const std::string& path) {
    EXPECT_TRUE(std::filesystem::remove(path));
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
  };
  const struct {
    Subject subject;
    std::function<void(const NodeFiles&)> change;
    const char* setting;
    const char* why;
  } cases[] = {
      {{.until_s = -60}, {}, "security.certificate", "certificate has expired"},
      {{.from_s = 60}, {}, "security.certificate", "certificate is not yet valid"},
      {{},
       [&](auto& f) { overwrite(f.certificate(), "nonsense"); },
       "security.certificate",
       "no certificate"},
      {{},
       [&](auto& f) { overwrite(f.authority(), "nonsense"); },
       "security.authority",
       "no certificate"},
      {{}, [&](auto& f) { overwrite(f.key(), "nonsense"); }, "security.key", "no private key"},
      {{},
       [&](auto& f) { overwrite(f.key(), content(other.key())); },
       "security.key",
       "not of this certificate"},
      {{},
       [&](auto& f) { overwrite(f.authority(), content(other.authority())); },
       "security.certificate",
       "not valid by security.authority"},
      {{},
       [&](auto& f) { EXPECT_EQ(chmod(f.key().c_str(), 0644), 0); },
       "security.key",
       "chmod 600"},
      {{}, [&](auto& f) { become_folder(f.certificate()); }, "security.certificate", "a folder"},
      {{}, [&](auto& f) { become_folder(f.key()); }, "security.key", "a folder"},
      {{}, [&](auto& f) { become_folder(f.authority()); }, "security.authority", "a folder"},
      {{}, [&](auto& f) { become_pipe(f.certificate()); }, "security.certificate", "no plain file"},
      {{}, [&](auto& f) { become_pipe(f.authority()); }, "security.authority", "no plain file"},
  };
  for (const auto& each : cases) {
    const NodeFiles files = authority.issue(each.subject);
    if (each.change) each.change(files);
    const Status status = tls::Credentials::load(files.resolved()).status();
    expect_error(status, Code::config_invalid, {each.setting, each.why});
    EXPECT_EQ(status.message().find("nonsense"), std::string_view::npos) << "shows what is in it";
  }
}

TEST(Credentials, with_a_pass_phrase_are_refused_and_nobody_is_asked_for_it) {
  const NodeFiles files = Authority().issue();
  FILE* const file = std::fopen(files.key().c_str(), "re+");
  EVP_PKEY* const key = PEM_read_PrivateKey(file, nullptr, nullptr, nullptr);
  std::rewind(file);
  unsigned char phrase[] = "phrase";
  EXPECT_EQ(PEM_write_PKCS8PrivateKey(file, key, EVP_aes_128_cbc(), nullptr, 0, nullptr, phrase),
            1);
  std::fclose(file);
  EVP_PKEY_free(key);
  expect_contains(tls::Credentials::load(files.resolved()).status().message(),
                  "no private key without a pass phrase");
}

// ------------------------------------------------------------------------------------------ peers

constexpr std::string_view kSha256 =
    "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
constexpr std::string_view kSha1 = "00112233445566778899aabbccddeeff00112233";

std::string with_colons(std::string_view digits) {
  std::string text;
  for (size_t at = 0; at < digits.size(); at += 2)
    text.append(at == 0 ? "" : ":").append(digits.substr(at, 2));
  return text;
}

TEST(PeerPolicy, is_by_host_by_authority_or_by_fingerprints_of_either_length) {
  for (const char* text : {"", "host"}) EXPECT_TRUE(tls::PeerPolicy::parse(text)->is_by_host());
  EXPECT_FALSE(tls::PeerPolicy::parse("authority")->is_by_host());
  for (const char* text : {"", "host", "authority"})
    EXPECT_FALSE(tls::PeerPolicy::parse(text)->names_certificates());
  const std::string sha256(kSha256);
  const std::string sha1(kSha1);
  for (const std::string& text : {sha256, sha1, with_colons(sha256), with_colons(sha1),
                                  sha1 + "," + with_colons(sha256), " " + sha256 + " , " + sha1}) {
    const auto policy = tls::PeerPolicy::parse(text);
    ASSERT_TRUE(is_ok(policy)) << text;
    EXPECT_TRUE(policy->names_certificates());
    EXPECT_FALSE(policy->is_by_host());
  }
}

TEST(PeerPolicy, of_anything_else_is_refused_with_what_is_allowed) {
  const std::string sha1(kSha1);
  for (const std::string& text :
       {std::string("everybody"), sha1.substr(1), sha1.substr(2), sha1 + "0", sha1 + "00",
        sha1 + std::string(22, '0'), std::string(kSha256) + "00", sha1 + ":", ":" + sha1,
        "g" + sha1.substr(1), sha1 + ",", "host," + sha1}) {
    expect_error(tls::PeerPolicy::parse(text).status(), Code::config_invalid,
                 {"security.peers = " + text, "SHA-256 (64 hexadecimal digits)", "SHA-1 (40"});
  }
}

// ---------------------------------------------------------------------------------------- streams

/// Until there is something to receive at one of them, or nothing has come for long.
bool wait_for_input(std::initializer_list<const tls::Socket*> ends) {
  std::vector<pollfd> waits;
  for (const tls::Socket* end : ends) waits.push_back({end->get(), POLLIN, 0});
  return poll(waits.data(), waits.size(), 10'000) > 0;
}

/// Two ends of a connection.
struct Ends {
  Ends(const std::shared_ptr<tls::Credentials>& dialling,
       const std::shared_ptr<tls::Credentials>& accepting, const std::string& host = "127.0.0.1") {
    auto [first, second] = tcp_socket_pair();
    auto dials = dialling == nullptr ? nullptr : dialling->dial(first.get(), host);
    auto accepts = accepting == nullptr ? nullptr : accepting->accept(second.get());
    dialled = tls::Socket(std::move(first), std::move(dials));
    accepted = tls::Socket(std::move(second), std::move(accepts));
  }

  /// Sends "hello" both ways until it has arrived, or an end has failed for good.
  void greet() {
    const std::string_view text = "hello";
    do {
      bool failed = false;
      for (tls::Socket* end : {&dialled, &accepted}) {
        bool& said = end == &dialled ? dialled_said : accepted_said;
        std::string& heard = end == &dialled ? dialled_heard : accepted_heard;
        if (!said) {
          said = end->send(bytes_of(text)) == 5;
          failed |= !said && errno != EAGAIN;
        }
        char buffer[64];
        const ssize_t got = end->receive(std::as_writable_bytes(std::span(buffer)));
        if (got > 0) heard.append(buffer, static_cast<size_t>(got));
        if (got < 0 && errno != EAGAIN) failed = true;
      }
      if (dialled_heard == text && accepted_heard == text) return;
      failures += failed;
    } while (failures < 3 && wait_for_input({&dialled, &accepted}));  // so that both have been told
  }
  bool met() const { return dialled_heard == "hello" && accepted_heard == "hello"; }

  tls::Socket dialled{base::UniqueFd()};
  tls::Socket accepted{base::UniqueFd()};
  bool dialled_said = false;
  bool accepted_said = false;
  std::string dialled_heard;
  std::string accepted_heard;
  int failures = 0;
};

/// The ends of two nodes of one authority, which have greeted each other.
Ends met_ends() {
  const auto credentials = load(Authority().issue());
  Ends ends(credentials, credentials);
  ends.greet();
  EXPECT_TRUE(ends.met());
  return ends;
}

TEST(TlsStreams, join_two_nodes_of_one_authority_and_check_who_is_who) {
  const Authority authority;
  const auto zero = load(authority.issue({.hosts = {"127.0.0.1", "zero.test"}}));
  const auto one = load(authority.issue({.hosts = {"one.test"}}));
  for (const char* host : {"127.0.0.1", "zero.test"}) {
    Ends ends(one, zero, host);
    ends.greet();
    ASSERT_TRUE(ends.met()) << ends.dialled.tls()->failure().to_string();
    EXPECT_TRUE(ends.accepted.tls()->check_peer("one.test").ok());
    expect_error(ends.accepted.tls()->check_peer("127.0.0.1"), Code::authentication_failed,
                 {"not for 127.0.0.1"});
  }
}

TEST(TlsStreams, that_must_not_be_fail_on_both_sides_with_the_reason) {
  const Authority authority;
  const auto good = load(authority.issue());
  const auto elsewhere = load(authority.issue({.hosts = {"elsewhere.test"}}));
  const auto outsider = load(Authority().issue());
  const struct {
    std::shared_ptr<tls::Credentials> dialling;
    std::shared_ptr<tls::Credentials> accepting;
    const char* dialling_says;
    const char* accepting_says;
  } cases[] = {
      {good, elsewhere, "IP address mismatch", "the peer refuses this node's certificate"},
      {outsider, good, "certificate", "certificate"},
      {good, outsider, "certificate", "certificate"},
  };
  for (const auto& each : cases) {
    Ends ends(each.dialling, each.accepting);
    ends.greet();
    EXPECT_FALSE(ends.met());
    EXPECT_EQ(ends.accepted_heard, "");
    for (const tls::Socket* end : {&ends.dialled, &ends.accepted}) {
      expect_error(end->tls()->failure(), Code::authentication_failed,
                   {end == &ends.dialled ? each.dialling_says : each.accepting_says});
    }
  }
}

/// The fingerprint as `openssl x509 -fingerprint` prints it.
std::string fingerprint(const NodeFiles& files, const EVP_MD* hash) {
  FILE* const file = std::fopen(files.certificate().c_str(), "re");
  X509* const certificate = PEM_read_X509(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned count = 0;
  EXPECT_EQ(X509_digest(certificate, hash, bytes, &count), 1);
  X509_free(certificate);
  std::string text;
  for (unsigned at = 0; at < count; ++at) text += fmt::format("{:02X}", bytes[at]);
  return with_colons(text);
}

/// A node that admits the certificates of these fingerprints, and has no authority.
std::shared_ptr<tls::Credentials> load_naming(const NodeFiles& files, const std::string& peers) {
  static std::vector<NodeFiles> kept;
  kept.push_back(files);
  base::Settings settings = files.resolved();
  settings.peers = peers;
  settings.authority.clear();
  auto loaded = tls::Credentials::load(settings);
  EXPECT_TRUE(is_ok(loaded));
  return *loaded;
}

TEST(TlsStreams, join_nodes_that_name_each_others_certificates_whoever_has_signed_them) {
  for (const EVP_MD* hash : {EVP_sha1(), EVP_sha256()}) {
    // Both are of authorities that the other one does not know, for other hosts, and one has
    // expired.
    const NodeFiles zero = Authority().issue({.hosts = {"zero.test"}});
    const NodeFiles one = Authority().issue({.hosts = {"one.test"}, .until_s = -60});
    Ends ends(load_naming(zero, fingerprint(one, hash)), load_naming(one, fingerprint(zero, hash)));
    ends.greet();
    EXPECT_TRUE(ends.met()) << ends.dialled.tls()->failure().to_string()
                            << ends.accepted.tls()->failure().to_string();
    EXPECT_TRUE(ends.accepted.tls()->check_peer("one.test").ok());
  }
}

TEST(TlsStreams, fail_with_who_shows_a_certificate_that_is_not_named_even_of_the_same_authority) {
  const Authority authority;
  const NodeFiles good = authority.issue();
  const NodeFiles other = authority.issue();
  const auto digits = [](std::string text) {
    std::erase(text, ':');
    for (char& each : text) each = static_cast<char>(std::tolower(each));
    return text;
  };
  const std::string sha256 = digits(fingerprint(other, EVP_sha256()));
  const std::string sha1 = digits(fingerprint(other, EVP_sha1()));
  const struct {
    const EVP_MD* hash;
    std::string says;
  } cases[] = {
      {EVP_sha256(), sha256 + " is none of the 1 that security.peers names"},
      {EVP_sha1(), sha256 + " (SHA-1 " + sha1 + ") is none of the 1 that security.peers names"},
  };
  for (const auto& each : cases) {
    for (const bool dials : {true, false}) {
      const auto asks = load_naming(good, fingerprint(good, each.hash));
      const auto shows = load(other);
      Ends ends(dials ? asks : shows, dials ? shows : asks);
      ends.greet();
      EXPECT_FALSE(ends.met());
      const tls::Socket& refuses = dials ? ends.dialled : ends.accepted;
      expect_error(refuses.tls()->failure(), Code::authentication_failed, {each.says});
    }
  }
}

TEST(TlsStreams, fail_with_who_has_no_certificate_or_an_older_version) {
  const auto good = load(Authority().issue());
  for (const bool older : {false, true}) {
    Ends ends(nullptr, good);
    const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    if (older) SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
    const std::shared_ptr<SSL> session(SSL_new(context.get()), SSL_free);
    SSL_set_fd(session.get(), ends.dialled.get());
    std::byte byte;
    ssize_t got = -1;
    do {
      SSL_connect(session.get());
      got = ends.accepted.receive(std::span(&byte, 1));
    } while (ends.accepted.tls()->failure().ok() &&
             wait_for_input({&ends.dialled, &ends.accepted}));
    EXPECT_EQ(got, -1);
    expect_error(ends.accepted.tls()->failure(), Code::authentication_failed,
                 {older ? "unsupported protocol" : "no certificate"});
  }
}

TEST(TlsStreams, fail_with_who_speaks_without_tls_or_closes) {
  const auto good = load(Authority().issue());
  Ends plain(nullptr, good);
  EXPECT_EQ(plain.dialled.send(bytes_of("FARO, and no TLS at all")), 23);
  std::byte byte;
  ASSERT_TRUE(wait_for_input({&plain.accepted}));
  EXPECT_EQ(plain.accepted.receive(std::span(&byte, 1)), -1);
  EXPECT_EQ(errno, EPROTO);
  EXPECT_EQ(plain.accepted.tls()->failure().code(), Code::authentication_failed);

  Ends closed(good, nullptr);
  EXPECT_EQ(closed.dialled.send(bytes_of("hello")), -1);
  EXPECT_EQ(errno, EAGAIN);
  closed.accepted.close();
  ASSERT_TRUE(wait_for_input({&closed.dialled}));
  EXPECT_EQ(closed.dialled.receive(std::span(&byte, 1)), -1);
  EXPECT_EQ(errno == EPROTO || errno == ECONNRESET, true) << errno;
  EXPECT_FALSE(closed.dialled.tls()->failure().ok());
}

// What is broken may go well the next time; a peer that is refused is refused again.
TEST(TlsStreams, tell_the_dialling_side_a_refusal_from_what_is_broken) {
  const struct {
    std::vector<uint8_t> answer;
    Code code;
    const char* said;
  } cases[] = {
      {{21, 3, 3, 0, 2, 2, SSL_AD_HANDSHAKE_FAILURE}, Code::authentication_failed, "refuses this"},
      {{21, 3, 3, 0, 2, 2, SSL_AD_UNKNOWN_CA}, Code::authentication_failed, "refuses this"},
      {{21, 3, 3, 0, 2, 2, SSL_AD_PROTOCOL_VERSION}, Code::authentication_failed, "refuses this"},
      {{21, 3, 3, 0, 2, 2, SSL_AD_INTERNAL_ERROR}, Code::connect_failed, "internal error"},
      {{21, 3, 3, 0, 2, 2, SSL_AD_DECODE_ERROR}, Code::connect_failed, "decode error"},
      {{'H', 'T', 'T', 'P', '/', '1', '.', '1'}, Code::connect_failed, "TLS failed"},
  };
  const auto good = load(Authority().issue());
  for (const auto& each : cases) {
    Ends ends(good, nullptr);
    EXPECT_EQ(ends.dialled.send(bytes_of("hello")), -1);
    EXPECT_GT(ends.accepted.send(std::as_bytes(std::span(each.answer))), 0);
    ASSERT_TRUE(wait_for_input({&ends.dialled}));
    std::byte byte;
    EXPECT_EQ(ends.dialled.receive(std::span(&byte, 1)), -1);
    expect_error(ends.dialled.tls()->failure(), each.code, {each.said});
  }
}

TEST(TlsStreams, carry_bytes_of_any_size_whole_and_in_order_both_ways) {
  Ends ends = met_ends();
  constexpr size_t kBytes = 4 << 20;
  std::vector<std::byte> all(kBytes);
  std::mt19937 random(7);
  for (std::byte& byte : all) byte = static_cast<std::byte>(random());
  struct Direction {
    tls::Socket& from;
    tls::Socket& to;
    size_t sent = 0;
    std::vector<std::byte> got = {};
  } directions[] = {{ends.dialled, ends.accepted}, {ends.accepted, ends.dialled}};
  std::vector<std::byte> space(200'000);
  for (bool moves = true; moves;) {
    moves = false;
    for (Direction& each : directions) {
      // In pieces, as TcpLink does; what was refused is offered again with more behind it.
      const size_t size = std::min<size_t>(1 + random() % 70'000, kBytes - each.sent);
      const size_t first = size == 0 ? 0 : random() % size;
      const iovec pieces[] = {{all.data() + each.sent, first},
                              {all.data() + each.sent + first, kBytes - each.sent - first}};
      const ssize_t sent = size == 0 ? 0 : each.from.tls()->send(pieces);
      if (sent > 0) each.sent += static_cast<size_t>(sent);
      const size_t room = 1 + random() % space.size();
      const iovec places[] = {{space.data(), room / 3}, {space.data() + room / 3, room - room / 3}};
      const ssize_t got = each.to.tls()->receive(places);
      if (got > 0) each.got.insert(each.got.end(), space.begin(), space.begin() + got);
      moves |= each.got.size() < kBytes;
      ASSERT_TRUE(each.from.tls()->failure().ok() && each.to.tls()->failure().ok());
    }
  }
  for (const Direction& each : directions) EXPECT_TRUE(each.got == all);
}

// The figure by which a connection counts, against the OpenSSL at hand: also of one that has carried whole records.
TEST(TlsStreams, take_no_more_while_they_are_idle_than_is_counted) {
  const auto in_use = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  if (in_use() == 0) GTEST_SKIP() << "another allocator, which a sanitizer has";
  const auto credentials = load(Authority().issue());
  std::vector<std::unique_ptr<Ends>> all;
  const auto connect = [&](size_t count) {
    std::vector<std::byte> record(tls::Stream::kRecordBytes), got(record.size());
    for (size_t i = 0; i < count; ++i) {
      Ends& ends = *all.emplace_back(std::make_unique<Ends>(credentials, credentials));
      ends.greet();
      ASSERT_TRUE(ends.met());
      for (auto [from, to] :
           {std::pair{&ends.dialled, &ends.accepted}, {&ends.accepted, &ends.dialled}}) {
        ASSERT_EQ(from->send(record), static_cast<ssize_t>(record.size()));
        ASSERT_TRUE(wait_for_input({to}));
        ASSERT_GT(to->receive(got), 0);
        while (to->receive(got) > 0) {
        }
      }
    }
  };
  all.reserve(60);
  connect(10);
  const size_t before = in_use();
  connect(50);
  const size_t each = (in_use() - before) / (2 * 50);
  EXPECT_LE(each * 100, tls::Stream::kIdleBytes * 110);
  EXPECT_GE(each, tls::Stream::kIdleBytes / 2) << "it counts by far too much";
}

TEST(TlsStreams, tell_of_bytes_that_no_event_tells_of) {
  Ends ends = met_ends();
  ASSERT_EQ(ends.dialled.send(bytes_of("hello")), 5);
  std::byte two[2];
  ASSERT_TRUE(wait_for_input({&ends.accepted}));
  EXPECT_EQ(ends.accepted.receive(two), 2);
  EXPECT_EQ(ends.accepted.tls()->pending(), 3u);
}

TEST(TlsStreams, show_what_came_before_the_end_and_survive_sending_after_it) {
  Ends ends = met_ends();
  ASSERT_EQ(ends.accepted.send(bytes_of("the reason")), 10);
  ASSERT_TRUE(wait_for_input({&ends.dialled}));
  ASSERT_EQ(shutdown(ends.dialled.get(), SHUT_WR), 0);
  EXPECT_EQ(ends.dialled.send(bytes_of("more")), -1);
  EXPECT_EQ(errno, EPIPE) << "and no signal has ended this process";
  EXPECT_EQ(ends.dialled.send(bytes_of("x")), -1) << "other bytes, after those that were not taken";
  EXPECT_EQ(errno, EPIPE);
  char heard[64];
  EXPECT_EQ(ends.dialled.receive(std::as_writable_bytes(std::span(heard))), 10);
  ends.accepted.close();
  ASSERT_TRUE(wait_for_input({&ends.dialled}));
  EXPECT_EQ(ends.dialled.receive(std::as_writable_bytes(std::span(heard))), 0);
}

// A sender that goes on while it gets anything but an error would go on forever.
TEST(TlsStreams, take_nothing_once_the_end_has_come_in_with_the_last_bytes) {
  Ends ends = met_ends();
  const int one = 1;  // so that the bytes and the end come together
  ASSERT_EQ(setsockopt(ends.accepted.get(), IPPROTO_TCP, TCP_CORK, &one, sizeof one), 0);
  ASSERT_EQ(ends.accepted.send(bytes_of("the reason")), 10);
  ASSERT_EQ(shutdown(ends.accepted.get(), SHUT_WR), 0);
  ASSERT_TRUE(wait_for_input({&ends.dialled}));
  char heard[64];
  EXPECT_EQ(ends.dialled.receive(std::as_writable_bytes(std::span(heard))), 10);
  EXPECT_EQ(ends.dialled.send(bytes_of("more")), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(ends.dialled.receive(std::as_writable_bytes(std::span(heard))), 0);
}

// ----------------------------------------------------------------------------------------- reload

TEST(Credentials, are_read_again_when_the_files_change_and_kept_when_they_are_broken) {
  std::vector<std::string> log;
  set_log_sink([&](LogLevel, std::string_view line) { log.emplace_back(line); });
  const Authority before;
  const Authority after;
  const NodeFiles files = before.issue();
  const auto changing = load(files);
  const auto old_peer = load(before.issue());
  const auto new_peer = load(after.issue());
  const auto meets = [&](const std::shared_ptr<tls::Credentials>& peer) {
    Ends ends(peer, changing);
    ends.greet();
    return ends.met();
  };
  EXPECT_TRUE(meets(old_peer));
  EXPECT_FALSE(meets(new_peer));
  std::ofstream(files.certificate(), std::ios::trunc) << "half of a ";
  EXPECT_TRUE(meets(old_peer)) << "it goes on with what it had";
  EXPECT_EQ(log.size(), 1u);
  after.renew(files);
  EXPECT_EQ(chmod(files.key().c_str(), 0644), 0);
  EXPECT_TRUE(meets(old_peer)) << "others may read the key";
  EXPECT_EQ(chmod(files.key().c_str(), 0600), 0);
  EXPECT_TRUE(meets(new_peer));
  EXPECT_FALSE(meets(old_peer));
  set_log_sink({});
}

}  // namespace
}  // namespace faro::test
