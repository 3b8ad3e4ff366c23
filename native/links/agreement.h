// Agreement: the settings on which both sides of a link have to agree, as HELLO lists them.
#pragma once

#include <string>
#include <string_view>

#include "base/settings.h"

namespace faro::links {

/// Those of them that `wanted` names and that do not have their default: lines "name=value", in the order of settings.def.
std::string agreed_settings(const base::Settings& settings, bool (*wanted)(std::string_view name));

/// What a side lists, and its name in messages.
struct Listed {
  std::string_view settings;
  std::string_view name;
};

/// Which settings differ, with both values; empty: none. A side that does not list a setting has
/// its default.
std::string differences(const Listed& ours, const Listed& theirs);

}  // namespace faro::links
