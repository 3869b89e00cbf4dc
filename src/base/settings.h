// Settings: read once, from fornax.toml and the environment.  The list is settings.def.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fornax {

struct Settings {
#define FORNAX_SETTING(type, name, value, documentation) type name = value;
#include "base/settings.def"
};

// The process's settings.  Error(value): a setting that cannot be read, with file or variable, what
// was found and what is wanted.  Safe from any thread.
const Settings& settings();

// Settings as read from a TOML file's text and overridden by `variable(name)`, which returns null
// for what is not set.  `origin` names the file in errors.
Settings read_settings(const std::string& toml, const std::string& origin,
                       const char* (*variable)(const char* name));

struct SettingRow {
  std::string name, variable, value, fallback, documentation;
};
// One row per setting, in the order of settings.def, with the values in force.
std::vector<SettingRow> setting_rows();

// The folder of the cache, by `cache`, $XDG_CACHE_HOME and $HOME in this order.  Not created.
// Empty where `cache` is "off".
std::string cache_folder();

}  // namespace fornax
