// Which CPUs are of the socket of an RDMA device or a network card, and whether the network thread runs there.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu_list.h"
#include "command/doctor_checks.h"

namespace faro::command {
namespace {

namespace fs = std::filesystem;

/// A device, and the CPUs of its socket.
struct Card {
  std::string name;
  std::vector<uint32_t> cpus;
};

// What has no such file is no card: loopback, bridges, devices of containers.
void add_cards(const fs::path& folder, std::vector<Card>& cards) {
  std::error_code none;
  std::vector<Card> found;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    std::ifstream file(entry.path() / "device" / "local_cpulist");
    std::string line;
    if (!std::getline(file, line)) continue;
    const std::optional<std::vector<uint32_t>> cpus = base::parse_cpu_list(line);
    if (cpus && !cpus->empty()) found.push_back({entry.path().filename(), *cpus});
  }
  std::ranges::sort(found, {}, &Card::name);
  cards.insert(cards.end(), found.begin(), found.end());
}

}  // namespace

std::vector<Check> check_network_cpus(const Config& config, const std::string& sysfs) {
  std::vector<Card> cards;
  add_cards(fs::path(sysfs) / "class" / "infiniband", cards);
  add_cards(fs::path(sysfs) / "class" / "net", cards);
  const std::string setting = config.get("network.cpus");
  const std::vector<uint32_t> pinned =
      base::parse_cpu_list(setting).value_or(std::vector<uint32_t>{});
  const auto is_within = [&](const Card& card) { return std::ranges::includes(card.cpus, pinned); };
  const bool is_within_any = std::ranges::any_of(cards, is_within);
  std::vector<Check> checks;
  for (const Card& card : cards) {
    const std::string cpus = base::cpu_list_text(card.cpus);
    Check check{fmt::format("CPUs of {}", card.name), Health::ok, cpus, ""};
    if (pinned.empty()) {
      check.found += "; the network thread runs on any (network.cpus is empty)";
    } else if (is_within(card)) {
      check.found += fmt::format("; the network thread runs there (network.cpus = {})", setting);
    } else {
      check.found += fmt::format("; the network thread runs elsewhere, on {}", setting);
      check.health = is_within_any ? Health::ok : Health::warning;
      if (!is_within_any) {
        check.remedy =
            fmt::format("if rows go by {}, set network.cpus to some of {}, the CPUs of its socket",
                        card.name, cpus);
      }
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace faro::command
