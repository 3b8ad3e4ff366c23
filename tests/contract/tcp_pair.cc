// TCP in the contract suite, without and with TLS.
#include "base/return_if_error.h"
#include "contract/connected_pair.h"
#include "contract/transport_pair.h"
#include "support/certificates.h"
#include "tls/credentials.h"
#include "transport/tcp/tcp_transport.h"

namespace faro::test {
namespace {

[[maybe_unused]] const bool tcp_added = add_transport({
    .name = "tcp",
    .open =
        [](const PairShape& shape) {
          const auto make = [] { return std::make_shared<transport::tcp::TcpTransport>(); };
          return ConnectedPair::open(shape, {.transports = {make(), make()}});
        },
});

[[maybe_unused]] const bool tls_added = add_transport({
    .name = "tcp_tls",
    .open = [](const PairShape& shape) -> Result<std::unique_ptr<TransportPair>> {
      static const NodeFiles files = Authority().issue();
      FARO_ASSIGN_OR_RETURN(const auto credentials, tls::Credentials::load(files.resolved()));
      const auto make = [&] {
        return std::make_shared<transport::tcp::TcpTransport>(std::nullopt, credentials);
      };
      return ConnectedPair::open(shape,
                                 {.transports = {make(), make()}, .credentials = credentials});
    },
});

}  // namespace
}  // namespace faro::test
