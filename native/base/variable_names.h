// Which variables FARO_… of the environment may be somebody else's.
#pragma once

#include <string_view>

namespace faro::base {

/// Whether a container runtime makes a variable of this name for a Service or a linked container that is called faro or faro-…:
///
///   FARO[_…]_SERVICE_HOST                                   FARO[_…]_SERVICE_PORT[_…]
///   FARO[_…]_PORT_<number>_<PROTOCOL>[_ADDR|_PORT|_PROTO]   FARO[_…]_PORT
///
/// No setting has such a name.
bool is_service_variable(std::string_view name) noexcept;

/// Whether it begins with a section of the settings, as FARO_SECURITY_…, or with a setting that has none.
bool begins_with_section(std::string_view name);

}  // namespace faro::base
