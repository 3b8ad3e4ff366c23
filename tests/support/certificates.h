// Certificates made for a test, in files that go with it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "support/temporary_folder.h"

struct evp_pkey_st;
struct x509_st;

namespace faro::test {

/// What a certificate says.
struct Subject {
  std::vector<std::string> hosts = {"127.0.0.1"};  // names and numeric addresses
  long from_s = -3600;                             // from now
  long until_s = 3600;
};

/// The files of one node: certificate.pem, key.pem (mode 600) and authority.pem.
class NodeFiles {
 public:
  std::string certificate() const { return folder_->path() + "/certificate.pem"; }
  std::string key() const { return folder_->path() + "/key.pem"; }
  std::string authority() const { return folder_->path() + "/authority.pem"; }
  /// For security.tls and its files, by name.
  std::vector<std::pair<std::string, std::string>> settings(const std::string& tls = "on") const;
  base::Settings resolved() const;

 private:
  std::shared_ptr<TemporaryFolder> folder_ = std::make_shared<TemporaryFolder>();
};

/// Signs certificates with a key of its own. Threads: one.
class Authority {
 public:
  Authority();

  NodeFiles issue(const Subject& subject = {}) const;
  /// Writes other files in place of those of a node.
  void renew(const NodeFiles& files, const Subject& subject = {}) const;

 private:
  const std::shared_ptr<evp_pkey_st> key_;
  const std::shared_ptr<x509_st> certificate_;
};

/// For a transport by its name, or for "tls": tcp, with certificates of an authority that all of a process share.
std::vector<std::pair<std::string, std::string>> transport_settings(const std::string& name);

}  // namespace faro::test
