#include "ci/isolate/wire.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace attnguard {
namespace {

constexpr std::uint32_t kMagic = 0x41474652;
constexpr std::size_t kMostBytes = std::size_t{1} << 28;
constexpr int kSliceMs = 100;

struct Header {
  std::uint32_t magic = kMagic;
  std::uint32_t size = 0;
};

// Waits until the socket is ready for the events.
Transfer wait_for(int socket, short events, Deadline deadline,
                  const StillThere& still_there) {
  for (;;) {
    int slice = -1;
    if (deadline != kForever)
      slice = static_cast<int>(std::clamp<std::int64_t>(
          std::chrono::ceil<std::chrono::milliseconds>(
              deadline - std::chrono::steady_clock::now())
              .count(),
          0, kSliceMs));
    pollfd ready = {socket, events, 0};
    const int count = poll(&ready, 1, slice);
    if (count > 0) return Transfer::kDone;
    if (count < 0 && errno != EINTR) return Transfer::kClosed;
    // Only now: the answer may have come while this process was stopped.
    if (slice == 0) return Transfer::kTimeout;
    if (still_there && !still_there()) return Transfer::kClosed;
  }
}

// Receives once what there is, at most `most` bytes, and appends it.
Transfer receive_some(int socket, std::size_t most, std::string& to,
                      Deadline deadline, const StillThere& still_there) {
  char buffer[16384];
  for (;;) {
    if (const Transfer ready = wait_for(socket, POLLIN, deadline, still_there);
        ready != Transfer::kDone)
      return ready;
    const ssize_t count =
        recv(socket, buffer, std::min(most, sizeof(buffer)), MSG_DONTWAIT);
    if (count > 0) {
      to.append(buffer, static_cast<std::size_t>(count));
      return Transfer::kDone;
    }
    if (count == 0) return Transfer::kClosed;
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
      return Transfer::kClosed;
  }
}

}  // namespace

Transfer send_frame(int socket, std::string_view payload, Deadline deadline) {
  Header header;
  header.size = static_cast<std::uint32_t>(payload.size());
  std::string frame(reinterpret_cast<const char*>(&header), sizeof(header));
  frame += payload;
  for (std::size_t sent = 0; sent < frame.size();) {
    const ssize_t count = send(socket, frame.data() + sent, frame.size() - sent,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Transfer::kClosed;
    if (const Transfer ready = wait_for(socket, POLLOUT, deadline, nullptr);
        ready != Transfer::kDone)
      return ready;
  }
  return Transfer::kDone;
}

Transfer receive_frame(int socket, std::string& payload, Deadline deadline,
                       const StillThere& still_there) {
  payload.clear();
  Header header;
  // One request, one answer: nothing lies behind the frame.
  std::size_t wanted = sizeof(header);
  bool has_header = false;
  while (payload.size() < wanted || !has_header) {
    if (!has_header && payload.size() >= sizeof(header)) {
      std::memcpy(&header, payload.data(), sizeof(header));
      if (header.magic != kMagic || header.size > kMostBytes)
        return Transfer::kGarbage;
      has_header = true;
      wanted = sizeof(header) + header.size;
      continue;
    }
    const Transfer got =
        receive_some(socket, kMostBytes, payload, deadline, still_there);
    if (got != Transfer::kDone) return got;
  }
  if (payload.size() != wanted) return Transfer::kGarbage;
  payload.erase(0, sizeof(header));
  return Transfer::kDone;
}

}  // namespace attnguard
