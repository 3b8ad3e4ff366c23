#include "session/scrape.h"

#include <fmt/format.h>

namespace faro::session {
namespace {

std::string response(std::string_view status, std::string_view type, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, type, body.size(), body);
}

std::string answer_to(std::string_view request, const std::function<std::string()>& page) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const size_t method_end = line.find(' ');
  const size_t target_end = line.find(' ', method_end + 1);
  if (method_end == std::string_view::npos || target_end == std::string_view::npos ||
      !line.substr(target_end + 1).starts_with("HTTP/1.")) {
    return response("400 Bad Request", "text/plain", "");
  }
  if (line.substr(0, method_end) != "GET")
    return response("405 Method Not Allowed", "text/plain", "");
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  if (target.substr(0, target.find('?')) != "/metrics")
    return response("404 Not Found", "text/plain", "/metrics is all there is\n");
  return response("200 OK", "text/plain; version=0.0.4; charset=utf-8", page());
}

}  // namespace

void Scrape::add(std::string_view bytes, const std::function<std::string()>& page) {
  request_.append(bytes);
  const bool whole = request_.find("\r\n\r\n") != std::string::npos;
  if (whole) {
    answer_ = answer_to(request_, page);
  } else if (request_.size() > kRequestLimit) {
    answer_ = response("431 Request Header Fields Too Large", "text/plain", "");
  }
}

}  // namespace faro::session
