// pod_certificates <folder>: writes certificate.pem, key.pem and authority.pem, for 127.0.0.1.
#include <filesystem>

#include "support/certificates.h"

int main(int, char** words) {
  const faro::test::NodeFiles files = faro::test::Authority().issue();
  for (const std::string& file : {files.certificate(), files.key(), files.authority()})
    std::filesystem::copy(file, words[1]);
}
