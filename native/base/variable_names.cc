#include "base/variable_names.h"

#include <algorithm>

#include "faro/config.h"

namespace faro::base {
namespace {

constexpr std::string_view kPrefix = "FARO";
constexpr std::string_view kPort = "_PORT";

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_capital(char c) noexcept { return c >= 'A' && c <= 'Z'; }

// Takes the characters off that `is_one` says; false: there is none.
template <typename IsOne>
bool skip(std::string_view& text, IsOne is_one) noexcept {
  const auto end = std::find_if_not(text.begin(), text.end(), is_one);
  const auto count = static_cast<size_t>(end - text.begin());
  text.remove_prefix(count);
  return count > 0;
}

// What stands behind _PORT: _<number>_<PROTOCOL>, and perhaps what of it the value is.
bool names_one_port(std::string_view rest) noexcept {
  for (const std::string_view part : {"_ADDR", "_PORT", "_PROTO"}) {
    if (rest.ends_with(part)) {
      rest.remove_suffix(part.size());
      break;
    }
  }
  if (!rest.starts_with('_')) return false;
  rest.remove_prefix(1);
  if (!skip(rest, is_digit) || !rest.starts_with('_')) return false;
  rest.remove_prefix(1);
  return skip(rest, is_capital) && rest.empty();
}

}  // namespace

bool is_service_variable(std::string_view name) noexcept {
  if (!name.starts_with(kPrefix)) return false;
  const std::string_view rest = name.substr(kPrefix.size());
  if (!rest.starts_with('_')) return false;
  if (rest.ends_with("_SERVICE_HOST") || rest.ends_with(kPort)) return true;
  constexpr std::string_view kNamedPort = "_SERVICE_PORT_";
  const size_t named = rest.find(kNamedPort);
  if (named != std::string_view::npos && named + kNamedPort.size() < rest.size()) return true;
  for (size_t at = rest.find(kPort); at != std::string_view::npos; at = rest.find(kPort, at + 1)) {
    if (names_one_port(rest.substr(at + kPort.size()))) return true;
  }
  return false;
}

bool begins_with_section(std::string_view name) {
  const std::vector<SettingInfo>& table = Config::table();
  return std::ranges::any_of(table, [name](const SettingInfo& row) {
    const size_t dot = std::min(row.name.find('.'), row.name.size());
    const std::string_view section = row.environment.substr(0, kPrefix.size() + 1 + dot);
    return name.starts_with(section) &&
           (name.size() == section.size() || name[section.size()] == '_');
  });
}

}  // namespace faro::base
