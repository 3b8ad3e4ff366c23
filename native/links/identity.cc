#include "links/identity.h"

#include "base/error.h"

namespace faro::links {

Status load_proof(const base::Settings& settings, const Network& network, Identity& identity) {
  FARO_ASSIGN_OR_RETURN(identity.secret, load_secret(settings));
  const bool anyone_may_link = identity.secret == nullptr && network.credentials() == nullptr;
  if (!anyone_may_link || settings.security_open != 0 || !network.open_to_others())
    return Status::Ok();
  return base::error(
      Code::config_invalid,
      "{} listens where other machines may reach it, and the cluster has no secret: anyone who "
      "reaches the port could join. Give all nodes the same secret by security.secret_file (a "
      "file) or the environment variable FARO_SECRET, or certificates by security.tls, or set "
      "security.open = 1 if the network keeps others out",
      identity.name);
}

}  // namespace faro::links
