#include "ci/isolate/shared_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

#include "guard/base/rng.h"

namespace attnguard {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kMargin = 4096;

std::shared_ptr<SharedMemory> memory() {
  Result<std::shared_ptr<SharedMemory>> made = SharedMemory::create();
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.value();
}

std::byte* guarded_block(SharedMemory& shared, std::size_t size) {
  const Result<void*> block = shared.allocate_guarded(size, kMargin);
  EXPECT_TRUE(block.ok()) << block.status().message();
  return block.ok() ? static_cast<std::byte*>(block.value()) : nullptr;
}

TEST(SharedMemory, EndsTensorsWhereAPageEndsAndAlignsTheirStarts) {
  const auto shared = memory();
  for (std::size_t size : {1, 63, 64, 100, 4096, 5000, 1 << 20}) {
    std::byte* block = guarded_block(*shared, size);
    ASSERT_NE(block, nullptr);
    const std::byte* tensor = block + kMargin;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor) % 64, 0u);
    const auto end = reinterpret_cast<std::uintptr_t>(tensor + size);
    const auto page = static_cast<std::uintptr_t>(page_bytes());
    EXPECT_LT((page - end % page) % page, 64u) << size;
    std::memset(block, 1, size + 2 * kMargin);
    const SharedBlock* found = shared->find(tensor);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(shared->at(found->tensor), tensor);
    EXPECT_EQ(found->size, static_cast<std::int64_t>(size));
    EXPECT_EQ(shared->find(block), found);
  }
}

TEST(SharedMemory, BlocksNeverOverlapAndTheirPlacesAreUsedAgain) {
  const auto shared = memory();
  std::vector<std::pair<std::byte*, std::size_t>> live;
  std::int64_t furthest = 0;
  for (std::uint64_t n = 0; n < 3000; ++n) {
    if (live.size() > 20 || (!live.empty() && mix_bits(n) % 3 == 0)) {
      const std::size_t at = mix_bits(n + 1) % live.size();
      const auto [block, size] = live[at];
      for (std::size_t i = 0; i < size; i += 4096)
        ASSERT_EQ(block[i], static_cast<std::byte>(size % 251));
      shared->release(block);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    const std::size_t size = mix_bits(n + 2) % 300000;
    std::byte* block = guarded_block(*shared, size);
    ASSERT_NE(block, nullptr);
    std::memset(block, static_cast<int>((size + 2 * kMargin) % 251),
                size + 2 * kMargin);
    live.push_back({block, size + 2 * kMargin});
    furthest = std::max(furthest, shared->offset_of(block));
  }
  EXPECT_LT(furthest, 40 * 400000);
}

TEST(SharedMemory, GivesNothingForMoreThanThereIs) {
  const auto shared = memory();
  for (std::size_t size : {SIZE_MAX, std::size_t{1} << 60}) {
    const Status status = shared->allocate_guarded(size, kMargin).status();
    EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("shared with the engine's process"),
                      HasSubstr("no " + std::to_string(size) + " bytes"),
                      HasSubstr("--no-isolate")));
  }
  EXPECT_NE(guarded_block(*shared, 0), nullptr);
  EXPECT_EQ(shared->find(&shared), nullptr);
  shared->release(nullptr);
}

TEST(SharedMemory, TellsWhatWasNotedOnce) {
  const auto shared = memory();
  shared->note({StrayAccess::Kind::kRead, &shared, -4});
  ASSERT_EQ(shared->take_stray_accesses().size(), 1u);
  EXPECT_TRUE(shared->take_stray_accesses().empty());
}

}  // namespace
}  // namespace attnguard
