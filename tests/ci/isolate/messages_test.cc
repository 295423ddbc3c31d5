// Messages come through as they were, and garbage is refused.
#include "ci/isolate/messages.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "ci/isolate/wire.h"
#include "guard/base/rng.h"

namespace attnguard {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Hello some_hello() {
  Hello hello;
  hello.code = StatusCode::kNotFound;
  hello.message = "not here";
  hello.name = std::string("a\0b", 3);
  hello.dtypes = {Dtype::kFp16, Dtype::kBf16};
  hello.features = {Feature::kPaged, Feature::kWeights};
  hello.deterministic = false;
  hello.has_append = true;
  return hello;
}

TEST(Messages, ComeThroughAsTheyWere) {
  Hello hello;
  ASSERT_TRUE(decode(encode(some_hello()), hello));
  EXPECT_EQ(hello.code, StatusCode::kNotFound);
  EXPECT_EQ(hello.message, "not here");
  EXPECT_EQ(hello.name, some_hello().name);
  EXPECT_EQ(hello.dtypes, some_hello().dtypes);
  EXPECT_EQ(hello.features, some_hello().features);
  EXPECT_FALSE(hello.deterministic);
  EXPECT_FALSE(hello.has_numerics);
  EXPECT_TRUE(hello.has_append);

  Request request, back;
  request.ask = Ask::kAppend;
  request.problem_text = "seq_len=3";
  request.ranges = {{4096, 16384, 8192, 100, 4096}};
  request.key = {8192, Dtype::kFp16, {1, 2, 3, 4}, {24, 12, 4, 1}, true};
  request.block_table_width = -3;
  ASSERT_TRUE(decode(encode(request), back));
  EXPECT_EQ(back.ask, Ask::kAppend);
  EXPECT_EQ(back.problem_text, "seq_len=3");
  ASSERT_EQ(back.ranges.size(), 1u);
  EXPECT_EQ(back.ranges[0].size, 100);
  EXPECT_EQ(back.key.strides, (Shape4{24, 12, 4, 1}));
  EXPECT_TRUE(back.key.has_tokens);
  EXPECT_EQ(back.value.offset, -1);
  EXPECT_EQ(back.block_table_width, -3);

  Reply reply, answer;
  reply.numerics.key_error = 0.1;
  reply.numerics.score = Dtype::kBf16;
  ASSERT_TRUE(decode(encode(reply), answer));
  EXPECT_EQ(answer.numerics.key_error, 0.1);
  EXPECT_EQ(answer.numerics.score, Dtype::kBf16);
}

TEST(Messages, RefuseWhatIsCutOffOrTooLongOrOfNoType) {
  const std::string whole = encode(some_hello());
  Hello hello;
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(decode(whole.substr(0, size), hello)) << size;
  EXPECT_FALSE(decode(whole + "x", hello));
  Hello wrong = some_hello();
  wrong.dtypes.push_back(static_cast<Dtype>(99));
  EXPECT_FALSE(decode(encode(wrong), hello));
  Reply reply, bad;
  bad.code = static_cast<StatusCode>(-1);
  EXPECT_FALSE(decode(encode(bad), reply));
}

TEST(Messages, GarbageDoesNoHarm) {
  for (std::uint64_t n = 0; n < 2000; ++n) {
    std::string bytes(n % 300, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<char>(mix_bits(n * 1000 + i) % 5);
    Hello hello;
    Reply reply;
    decode(bytes, hello);
    decode(bytes, reply);
  }
}

struct Sockets {
  int ends[2] = {-1, -1};
  Sockets() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
  ~Sockets() {
    close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
  }
};

Transfer receive(int socket, std::string& bytes) {
  return receive_frame(socket, bytes, steady_clock::now() + milliseconds(300),
                       nullptr);
}

TEST(Frames, LongOnesAndEmptyOnesArrive) {
  const Sockets sockets;
  for (std::size_t size : {0, 1, 20000, 5000000}) {
    const std::string sent(size, 'x');
    std::thread sender([&] {
      EXPECT_EQ(send_frame(sockets.ends[0], sent, kForever), Transfer::kDone);
    });
    std::string received;
    EXPECT_EQ(receive_frame(sockets.ends[1], received, kForever, nullptr),
              Transfer::kDone);
    sender.join();
    EXPECT_EQ(received, sent);
  }
}

TEST(Frames, NothingWaitsLongerThanItIsTold) {
  Sockets sockets;
  std::string bytes;
  EXPECT_EQ(receive(sockets.ends[0], bytes), Transfer::kTimeout);
  // Half a frame, and a reader who reads nothing.
  ASSERT_EQ(write(sockets.ends[1], "RFGA", 4), 4);
  EXPECT_EQ(receive(sockets.ends[0], bytes), Transfer::kTimeout);
  EXPECT_EQ(send_frame(sockets.ends[0], std::string(20000000, 'x'),
                       steady_clock::now() + milliseconds(300)),
            Transfer::kTimeout);
  EXPECT_EQ(receive_frame(sockets.ends[0], bytes, kForever - milliseconds(1),
                          [] { return false; }),
            Transfer::kClosed);
  close(sockets.ends[1]);
  sockets.ends[1] = -1;
  EXPECT_EQ(receive(sockets.ends[0], bytes), Transfer::kClosed);
}

TEST(Frames, GarbageIsToldAtOnce) {
  const Sockets sockets;
  std::string bytes;
  ASSERT_EQ(write(sockets.ends[1], "hello, world", 12), 12);
  EXPECT_EQ(receive(sockets.ends[0], bytes), Transfer::kGarbage);
}

}  // namespace
}  // namespace attnguard
