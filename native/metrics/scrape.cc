#include "metrics/scrape.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace faro::metrics {
namespace {

// `more`: further headers, each with its line's end.
std::string response(std::string_view status, std::string_view type, std::string_view body,
                     std::string_view more = "") {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}",
      status, type, body.size(), more, body);
}

std::string_view without_spaces(std::string_view text) {
  constexpr std::string_view kSpaces = " \t";
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpaces) + 1 - first);
}

// Whether two words of ASCII are equal, upper and lower case alike.
bool is_same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? x | 0x20 : x) == (y >= 'A' && y <= 'Z' ? y | 0x20 : y);
  });
}

// The token of "Authorization: Bearer …"; empty if there is none, or more than one such header.
std::string_view bearer_token(std::string_view request) {
  std::string_view token;
  int headers = 0;
  for (size_t at = request.find("\r\n"); at != request.npos; at = request.find("\r\n", at)) {
    at += 2;
    const std::string_view line = request.substr(at, request.find("\r\n", at) - at);
    const size_t colon = line.find(':');
    if (line.empty()) break;
    if (colon == line.npos || !is_same_word(line.substr(0, colon), "authorization")) continue;
    ++headers;
    const std::string_view value = without_spaces(line.substr(colon + 1));
    const size_t space = value.find(' ');
    if (space != value.npos && is_same_word(value.substr(0, space), "bearer"))
      token = without_spaces(value.substr(space));
  }
  return headers == 1 ? token : std::string_view();
}

}  // namespace

std::string Scrape::answer_to(std::string_view request, const std::function<std::string()>& page) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const size_t method_end = line.find(' ');
  const size_t target_end = line.find(' ', method_end + 1);
  if (method_end == std::string_view::npos || target_end == std::string_view::npos ||
      !line.substr(target_end + 1).starts_with("HTTP/1.")) {
    return response("400 Bad Request", "text/plain", "");
  }
  if (token_ != nullptr && !token_->is(std::as_bytes(std::span(bearer_token(request))))) {
    refused_ = true;
    return response("401 Unauthorized", "text/plain", "", "WWW-Authenticate: Bearer\r\n");
  }
  if (line.substr(0, method_end) != "GET")
    return response("405 Method Not Allowed", "text/plain", "");
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  if (target.substr(0, target.find('?')) != "/metrics")
    return response("404 Not Found", "text/plain", "/metrics is all there is\n");
  return response("200 OK", "text/plain; version=0.0.4; charset=utf-8", page());
}

void Scrape::add(std::string_view bytes, const std::function<std::string()>& page) {
  request_.append(bytes);
  const bool whole = request_.find("\r\n\r\n") != std::string::npos;
  if (whole) {
    answer_ = answer_to(request_, page);
  } else if (request_.size() > kRequestLimit) {
    answer_ = response("431 Request Header Fields Too Large", "text/plain", "");
  }
}

}  // namespace faro::metrics
