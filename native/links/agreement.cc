#include "links/agreement.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "base/printable.h"
#include "faro/config.h"

namespace faro::links {
namespace {

// Up to this length a difference is shown completely; the user corrects one at a time anyway.
constexpr size_t kDifferencesNamed = 4;
constexpr size_t kValueShown = 80;

std::map<std::string_view, std::string_view> parse_settings(std::string_view text) {
  std::map<std::string_view, std::string_view> values;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos) values[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return values;
}

// A name or value as messages show it: the peer's are untrusted.
std::string shown(std::string_view value) {
  const std::string text = base::printable(std::string(value.substr(0, kValueShown)));
  return text.empty() ? "''" : text;
}

// The default of a setting on which all nodes must agree; none: this version does not know it.
std::optional<std::string_view> default_of(std::string_view name) {
  for (const SettingInfo& row : Config::table()) {
    if (row.cluster_wide && row.name == name) return row.default_value;
  }
  return std::nullopt;
}

}  // namespace

std::string differences(const Listed& ours, const Listed& theirs) {
  const auto our_values = parse_settings(ours.settings);
  const auto their_values = parse_settings(theirs.settings);
  std::map<std::string_view, std::string_view> listed = our_values;
  listed.insert(their_values.begin(), their_values.end());
  std::string text;
  size_t found = 0;
  for (const auto& [name, value] : listed) {
    const std::optional<std::string_view> known = default_of(name);
    const auto value_in = [&known, setting = name](const auto& values) {
      const auto entry = values.find(setting);
      return entry != values.end() ? entry->second : known.value_or("");
    };
    const std::string_view our_value = value_in(our_values);
    const std::string_view their_value = value_in(their_values);
    if (known && our_value == their_value) continue;
    if (++found > kDifferencesNamed) break;
    if (!text.empty()) text += "; ";
    text += fmt::format("{} is {} on {} and {} on {}", shown(name),
                        known ? shown(our_value) : "unknown, so its default,", ours.name,
                        shown(their_value), theirs.name);
  }
  return text;
}

std::string agreed_settings(const base::Settings& settings, bool (*wanted)(std::string_view name)) {
  std::string text;
#define FARO_NUMBER(field, name, value, unit, least, most, cluster_wide, help) \
  if (cluster_wide && settings.field != (value) && wanted(name))               \
    text += fmt::format("{}={}\n", name, settings.field);
#define FARO_TEXT(field, name, value, cluster_wide, help)        \
  if (cluster_wide && settings.field != (value) && wanted(name)) \
    text += fmt::format("{}={}\n", name, settings.field);
#include "base/settings.def"
#undef FARO_NUMBER
#undef FARO_TEXT
  return text;
}

}  // namespace faro::links
