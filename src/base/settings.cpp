#include "base/settings.h"

#include <toml++/toml.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/error.h"

namespace fornax {
namespace {

std::string variable_of(std::string_view name) {
  std::string variable = "FORNAX_";
  for (char c : name) variable += char(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return variable;
}

[[noreturn]] void cannot_read(const std::string& where, std::string_view found,
                              const char* wanted) {
  fail(ErrorKind::value, "settings: {} is \"{}\", which is not {}", where, found, wanted);
}

void parse(std::string& out, const std::string&, const std::string& text) { out = text; }

void parse(int64_t& out, const std::string& where, const std::string& text) {
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, out);
  if (error != std::errc() || rest != end) cannot_read(where, text, "a whole number");
}

void parse(bool& out, const std::string& where, const std::string& text) {
  if (text == "1" || text == "true" || text == "on") {
    out = true;
  } else if (text == "0" || text == "false" || text == "off" || text.empty()) {
    out = false;
  } else {
    cannot_read(where, text, "0 or 1");
  }
}

// No number among the settings may be negative.
void check_sign(int64_t value, std::string_view name) {
  if (value < 0) fail(ErrorKind::value, "settings: {} must not be negative, got {}", name, value);
}
template <class T>
void check_sign(const T&, std::string_view) {}

template <class T>
void take(T& out, const toml::table& table, const char* name, const std::string& origin) {
  const toml::node_view node = table[name];
  if (!node) return;
  const auto value = node.value_exact<T>();
  if (!value) {
    fail(ErrorKind::value, "settings: {} in {} must be {}", name, origin,
         std::is_same_v<T, bool>      ? "true or false"
         : std::is_same_v<T, int64_t> ? "a whole number"
                                      : "a string");
  }
  out = *value;
}

// A misspelt name would otherwise do nothing and say nothing.
void check_names(const toml::table& table, const std::string& origin) {
  for (const auto& [key, value] : table) {
    bool known = false;
    std::string names;
#define FORNAX_SETTING(type, name, value, documentation) \
  known |= key.str() == #name;                           \
  names += names.empty() ? #name : ", " #name;
#include "base/settings.def"
    if (!known) {
      fail(ErrorKind::value, "settings: {} has \"{}\", which is no setting; there are {}", origin,
           key.str(), names);
    }
  }
}

std::string config_file() {
  if (std::ifstream("fornax.toml")) return "fornax.toml";
  const char* folder = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (folder && *folder) return std::string(folder) + "/fornax/fornax.toml";
  return home ? std::string(home) + "/.config/fornax/fornax.toml" : "";
}

const char* environment(const char* name) { return std::getenv(name); }

}  // namespace

Settings read_settings(const std::string& toml_text, const std::string& origin,
                       const char* (*variable)(const char* name)) {
  Settings settings;
  toml::table table;
  try {
    table = toml::parse(toml_text, origin);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::value, "settings: {} line {}: {}", origin, error.source().begin.line,
         error.description());
  }
  check_names(table, origin);
#define FORNAX_SETTING(type, name, value, documentation)         \
  take(settings.name, table, #name, origin);                     \
  if (const char* text = variable(variable_of(#name).c_str())) { \
    parse(settings.name, variable_of(#name), text);              \
  }                                                              \
  check_sign(settings.name, #name);
#include "base/settings.def"
  return settings;
}

const Settings& settings() {
  static const Settings read = [] {
    const std::string path = config_file();
    std::ifstream file(path);
    std::stringstream text;
    if (file) text << file.rdbuf();
    return read_settings(text.str(), path, environment);
  }();
  return read;
}

std::vector<SettingRow> setting_rows() {
  std::vector<SettingRow> rows;
  const Settings fallback;
#define FORNAX_SETTING(type, name, value, documentation)                         \
  rows.push_back({#name, variable_of(#name), fmt::format("{}", settings().name), \
                  fmt::format("{}", fallback.name), documentation});
#include "base/settings.def"
  return rows;
}

std::string cache_folder() {
  if (settings().cache == "off") return "";
  if (!settings().cache.empty()) return settings().cache;
  const char* folder = std::getenv("XDG_CACHE_HOME");
  if (folder && *folder) return std::string(folder) + "/fornax";
  const char* home = std::getenv("HOME");
  return std::string(home ? home : ".") + "/.cache/fornax";
}

}  // namespace fornax
