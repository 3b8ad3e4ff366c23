// What faro/c.h says of log, settings, cancellation, hash functions.
#include <algorithm>
#include <new>
#include <span>

#include "base/return_if_error.h"
#include "c/errors.h"
#include "c/handles.h"
#include "faro/hash.h"
#include "faro/log.h"
#include "transport/plugin/plugin_loader.h"

using namespace faro::c;
using faro::Code;
using faro::Status;

// --- log

faro_code faro_log_set_sink(faro_log_sink sink, void* context) {
  return coded([&] {
    if (sink == nullptr) {
      faro::set_log_sink({});
    } else {
      faro::set_log_sink([sink, context](faro::LogLevel level, std::string_view line) {
        sink(context, static_cast<int32_t>(level), line.data(), line.size());
      });
    }
    return Status::Ok();
  });
}

faro_code faro_log_set_level(int32_t level) {
  return coded([&] {
    if (level < FARO_LOG_DEBUG || level > FARO_LOG_OFF)
      return Status(Code::invalid_argument, "there is no log level " + std::to_string(level));
    faro::set_log_level(static_cast<faro::LogLevel>(level));
    return Status::Ok();
  });
}

// --- settings

faro_config* faro_config_create() {
  faro_config* made = nullptr;
  coded([&] {
    made = new faro_config;
    return Status::Ok();
  });
  return made;
}

void faro_config_destroy(faro_config* config) { delete config; }

faro_code faro_config_set(faro_config* config, const char* name, const char* value) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(config, "config"));
    FARO_RETURN_IF_ERROR(need(name, "name"));
    FARO_RETURN_IF_ERROR(need(value, "value"));
    return config->config.set(name, std::string_view(value));
  });
}

faro_code faro_config_set_bytes(faro_config* config, const char* name, const void* bytes,
                                size_t size) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(config, "config"));
    FARO_RETURN_IF_ERROR(need(name, "name"));
    FARO_RETURN_IF_ERROR(need(bytes, "bytes"));
    return config->config.set_bytes(name, {static_cast<const std::byte*>(bytes), size});
  });
}

faro_code faro_config_load_file(faro_config* config, const char* path) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(config, "config"));
    FARO_RETURN_IF_ERROR(need(path, "path"));
    return config->config.load_file(path);
  });
}

faro_code faro_config_load_environment(faro_config* config) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(config, "config"));
    return config->config.load_environment();
  });
}

faro_code faro_config_get(faro_config* config, const char* name, const char** value) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(config, "config"));
    FARO_RETURN_IF_ERROR(need(name, "name"));
    FARO_RETURN_IF_ERROR(need(value, "value"));
    const auto& table = faro::Config::table();
    if (std::ranges::find(table, std::string_view(name), &faro::SettingInfo::name) == table.end())
      return Status(Code::config_invalid, std::string("there is no setting ") + name);
    config->told = config->config.get(name);
    *value = config->told.c_str();
    return Status::Ok();
  });
}

faro_code faro_config_list(faro_tell_setting tell, void* context) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(tell, "tell"));
    for (const faro::SettingInfo& info : faro::Config::table()) {
      const std::string name(info.name);
      const std::string default_value(info.default_value);
      const std::string help(info.help);
      const faro_setting told{sizeof told, FARO_ABI_VERSION, name.c_str(), default_value.c_str(),
                              help.c_str()};
      tell(context, &told);
    }
    return Status::Ok();
  });
}

int32_t faro_has_loaded(const char* path) {
  bool has_loaded = false;
  coded([&] {
    has_loaded = path != nullptr && faro::transport::plugin::has_loaded(path);
    return Status::Ok();
  });
  return has_loaded ? 1 : 0;
}

// --- cancellation

faro_cancellation* faro_cancellation_create() {
  faro_cancellation* made = nullptr;
  coded([&] {
    made = new faro_cancellation;
    return Status::Ok();
  });
  return made;
}

faro_code faro_cancellation_cancel(faro_cancellation* cancellation) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(cancellation, "cancellation"));
    cancellation->cancellation.cancel();
    return Status::Ok();
  });
}

void faro_cancellation_destroy(faro_cancellation* cancellation) { delete cancellation; }

// --- hash functions

faro_code faro_partition(int32_t hash, const uint64_t* keys, size_t count, uint32_t receiver_count,
                         uint32_t* receivers) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need_array(keys, count, "keys"));
    FARO_RETURN_IF_ERROR(need_array(receivers, count, "receivers"));
    if (receiver_count == 0)
      return Status(Code::invalid_argument, "receiver_count = 0: nothing belongs anywhere");
    const std::span<const uint64_t> all(keys, count);
    if (hash == FARO_HASH_FINALIZER) {
      faro::partition_all(faro::FinalizerHash{}, all, receiver_count, receivers);
    } else if (hash == FARO_HASH_MULTIPLICATIVE) {
      faro::partition_all(faro::MultiplicativeHash{}, all, receiver_count, receivers);
    } else {
      return Status(Code::invalid_argument, "there is no hash " + std::to_string(hash));
    }
    return Status::Ok();
  });
}

uint64_t faro_hash_bytes(const void* data, size_t bytes) {
  return data == nullptr ? 0 : faro::hash_bytes(data, bytes);
}
