// DLPack tensors of every type and order of axes, who frees them and when, and
// what is wrong with those that are refused.
#include "adapters/dlpack/dlpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "adapters/dlpack/types.h"
#include "guard/engine/reference.h"
#include "tests/support/engines.h"

namespace attnguard {
namespace {

using dlpack::DataType;
using dlpack::ManagedTensor;
using dlpack::ManagedTensorVersioned;
using dlpack::Owned;
using dlpack::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

// 0, 1, 2 ... in memory.
struct Counting {
  explicit Counting(std::vector<std::int64_t> axes) : shape(std::move(axes)) {
    std::int64_t count = 1;
    for (std::int64_t length : shape) count *= length;
    data.resize(static_cast<std::size_t>(count));
    std::iota(data.begin(), data.end(), 0.0f);
    tensor.data = data.data();
    tensor.ndim = static_cast<std::int32_t>(shape.size());
    tensor.shape = shape.data();
  }

  std::vector<std::int64_t> shape;
  std::vector<float> data;
  Tensor tensor;
};

double element(const ConstTensorView& view, std::int64_t b, std::int64_t h,
               std::int64_t i, std::int64_t c) {
  double x = 0;
  view.load_row(b, h, i, c, 1, &x);
  return x;
}

TEST(Dlpack, ViewsEveryOrderOfAxesWithoutCopying) {
  struct Order {
    Layout layout;
    std::vector<std::int64_t> shape;
    double at_1213;  // Element batch 1, head 2, position 1, channel 3.
  };
  for (const Order& order :
       {Order{Layout::kBhsd, {2, 3, 4, 5}, 60 + 40 + 5 + 3},
        Order{Layout::kBshd, {2, 4, 3, 5}, 60 + 15 + 10 + 3},
        Order{Layout::kSbhd, {4, 2, 3, 5}, 30 + 15 + 10 + 3}}) {
    Counting counting(order.shape);
    const Result<ConstTensorView> view =
        dlpack::view(counting.tensor, order.layout);
    ASSERT_TRUE(view.ok()) << view.status().message();
    EXPECT_THAT(view.value().shape, ElementsAre(2, 3, 4, 5));
    EXPECT_EQ(element(view.value(), 1, 2, 1, 3), order.at_1213);
    EXPECT_EQ(static_cast<const void*>(view.value().data),
              counting.data.data());
  }
}

TEST(Dlpack, ThreeAxesAreOneEntry) {
  Counting counting({4, 3, 5});
  const Result<ConstTensorView> view =
      dlpack::view(counting.tensor, Layout::kBshd);
  ASSERT_TRUE(view.ok());
  EXPECT_THAT(view.value().shape, ElementsAre(1, 3, 4, 5));
  EXPECT_EQ(element(view.value(), 0, 2, 1, 3), 15 + 10 + 3);
}

TEST(Dlpack, FollowsStridesAndByteOffset) {
  Counting counting({2, 3, 4, 5});
  // Every second channel, heads and positions exchanged, from element 1 on.
  std::vector<std::int64_t> shape = {2, 4, 3, 2}, strides = {60, 5, 20, 2};
  counting.tensor.shape = shape.data();
  counting.tensor.strides = strides.data();
  counting.tensor.byte_offset = sizeof(float);
  const Result<ConstTensorView> view =
      dlpack::view(counting.tensor, Layout::kBhsd);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(element(view.value(), 1, 3, 2, 1), 1 + 60 + 15 + 40 + 2);
}

TEST(Dlpack, ReadsFp8AndBool) {
  std::vector<std::uint8_t> bytes = {0x00, 0x38, 0xb8, 0x7e, 0x01, 0x7f};
  std::vector<std::int64_t> shape = {1, 1, 1, 6};
  Tensor tensor;
  tensor.data = bytes.data();
  tensor.ndim = 4;
  tensor.shape = shape.data();
  tensor.dtype = {dlpack::kFloat8E4m3fn, 8, 1};
  Result<std::vector<double>> read = dlpack::read(tensor, Layout::kBhsd);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(read.value(),
              ElementsAre(0, 1, -1, 448, 0x1p-9, testing::Truly([](double x) {
                            return std::isnan(x);
                          })));
  // The other fp8 is the upper half of fp16.
  bytes = {0x00, 0x3c, 0xbc, 0x7b, 0x01, 0xfc};
  tensor.dtype = {dlpack::kFloat8E5m2, 8, 1};
  read = dlpack::read(tensor, Layout::kBhsd);
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read.value(), ElementsAre(0, 1, -1, 57344, 0x1p-16, -HUGE_VAL));
  tensor.dtype = {dlpack::kBool, 8, 1};
  read = dlpack::read(tensor, Layout::kBhsd);
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read.value(), ElementsAre(0, 1, 1, 1, 1, 1));
  const Result<ConstTensorView> view = dlpack::view(tensor, Layout::kBhsd);
  ASSERT_FALSE(view.ok());
  EXPECT_THAT(view.status().message(), HasSubstr("this be read()"));
}

TEST(Dlpack, EveryFp8NumberIsTheFp16WithTheSameUpperBits) {
  for (int bits = 0; bits < 256; ++bits) {
    const std::uint16_t wide = static_cast<std::uint16_t>(bits << 8);
    double expected = 0;
    decode(Dtype::kFp16, reinterpret_cast<const std::byte*>(&wide), 1, 1,
           &expected);
    const double got = dlpack::decode_e5m2(static_cast<std::uint8_t>(bits));
    EXPECT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected)))
        << bits;
  }
}

template <typename Managed>
Managed* counted(Counting& counting, int* freed) {
  auto* managed = new Managed;
  managed->dl_tensor = counting.tensor;
  managed->manager_ctx = freed;
  managed->deleter = [](Managed* self) {
    ++*static_cast<int*>(self->manager_ctx);
    delete self;
  };
  return managed;
}

TEST(Dlpack, CallsTheDeleterOnceWhenTheLastOwnerIsGone) {
  Counting counting({1, 1, 2, 2});
  int freed = 0;
  {
    const Result<Owned> owned =
        Owned::take(counted<ManagedTensor>(counting, &freed));
    ASSERT_TRUE(owned.ok());
    const Owned copy = owned.value();
    EXPECT_EQ(copy.tensor().ndim, 4);
    EXPECT_FALSE(copy.read_only());
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 1);
  auto* versioned = counted<ManagedTensorVersioned>(counting, &freed);
  versioned->flags = dlpack::kReadOnly;
  {
    const Result<Owned> owned = Owned::take(versioned);
    ASSERT_TRUE(owned.ok());
    EXPECT_TRUE(owned.value().read_only());
  }
  EXPECT_EQ(freed, 2);
}

TEST(Dlpack, FreesWhatItCannotTake) {
  Counting counting({1, 1, 2, 2});
  int freed = 0;
  auto* managed = counted<ManagedTensorVersioned>(counting, &freed);
  managed->version = {2, 0};
  const Result<Owned> owned = Owned::take(managed);
  ASSERT_FALSE(owned.ok());
  EXPECT_THAT(owned.status().message(), HasSubstr("version 2.0"));
  EXPECT_EQ(freed, 1);
  EXPECT_FALSE(Owned::take(static_cast<ManagedTensor*>(nullptr)).ok());
  EXPECT_FALSE(Owned::take(static_cast<ManagedTensorVersioned*>(nullptr)).ok());
}

TEST(Dlpack, ATensorWithoutADeleterIsTaken) {
  Counting counting({1, 1, 2, 2});
  ManagedTensor managed;
  managed.dl_tensor = counting.tensor;
  EXPECT_TRUE(Owned::take(&managed).ok());
}

TEST(Dlpack, SaysWhyATensorIsRefused) {
  struct Bad {
    const char* message;
    void (*spoil)(Counting& counting);
  };
  for (const Bad& bad :
       {Bad{"device of type 2",
            [](Counting& c) { c.tensor.device.device_type = 2; }},
        Bad{"ndim is 2", [](Counting& c) { c.tensor.ndim = 2; }},
        Bad{"shape is NULL", [](Counting& c) { c.tensor.shape = nullptr; }},
        Bad{"shape[2] is -1", [](Counting& c) { c.shape[2] = -1; }},
        Bad{"data is NULL", [](Counting& c) { c.tensor.data = nullptr; }},
        Bad{"4 lanes", [](Counting& c) { c.tensor.dtype.lanes = 4; }},
        Bad{"whole bytes", [](Counting& c) { c.tensor.dtype.bits = 4; }},
        Bad{"type code 0 of 32 bits",
            [](Counting& c) { c.tensor.dtype.code = 0; }},
        Bad{"not aligned", [](Counting& c) { c.tensor.byte_offset = 2; }},
        Bad{"more elements than can be counted", [](Counting& c) {
              c.shape = {INT64_MAX / 2, 8, 8, 8};
              c.tensor.shape = c.shape.data();
            }}}) {
    Counting counting({2, 3, 4, 5});
    bad.spoil(counting);
    const Result<ConstTensorView> view =
        dlpack::view(counting.tensor, Layout::kBhsd);
    ASSERT_FALSE(view.ok()) << bad.message;
    EXPECT_THAT(view.status().message(), HasSubstr(bad.message));
  }
  Counting empty({2, 0, 4, 5});
  empty.tensor.data = nullptr;
  EXPECT_TRUE(dlpack::view(empty.tensor, Layout::kBhsd).ok());
}

TEST(Dlpack, ExportsWhatItImports) {
  Counting counting({2, 3, 4, 5});
  for (const Layout layout : {Layout::kBhsd, Layout::kBshd, Layout::kSbhd}) {
    const ConstTensorView view =
        dlpack::view(counting.tensor, Layout::kBhsd).value();
    auto owner = std::make_shared<int>(7);
    const std::weak_ptr<int> alive = owner;
    ManagedTensorVersioned* managed =
        dlpack::export_tensor(view, layout, std::move(owner));
    ASSERT_NE(managed, nullptr);
    {
      const Result<Owned> owned = Owned::take(managed);
      ASSERT_TRUE(owned.ok());
      EXPECT_TRUE(owned.value().read_only());
      const ConstTensorView back =
          dlpack::view(owned.value().tensor(), layout).value();
      EXPECT_EQ(back.shape, view.shape);
      EXPECT_EQ(back.strides, view.strides);
      EXPECT_EQ(back.data, view.data);
      EXPECT_FALSE(alive.expired());
    }
    EXPECT_TRUE(alive.expired());
    ManagedTensor* old = dlpack::export_unversioned(view, layout, nullptr);
    EXPECT_EQ(old->dl_tensor.ndim, 4);
    old->deleter(old);
  }
  TokenMap map;
  ConstTensorView paged = dlpack::view(counting.tensor, Layout::kBhsd).value();
  paged.tokens = &map;
  EXPECT_EQ(dlpack::export_tensor(paged, Layout::kBhsd, nullptr), nullptr);
}

// The reference behind DLPack: views go out and come back.
Status reference_by_dlpack(const dlpack::Call& call, bool ignore_mask) {
  const Layout layout = call.problem->layout;
  AttentionCall inner;
  Problem problem = *call.problem;
  inner.problem = &problem;
  inner.query = dlpack::view(*call.query, layout).value();
  inner.key = dlpack::view(*call.key, layout).value();
  inner.value = dlpack::view(*call.value, layout).value();
  inner.output = dlpack::mutable_view(*call.output, layout).value();
  if (ignore_mask) {
    problem.mask = Mask();
    problem.mask_form = MaskForm::kImplied;
  } else if (call.mask != nullptr) {
    inner.mask = dlpack::mask(*call.mask, problem).value();
  }
  return reference_engine().run(inner);
}

TEST(Dlpack, AnEngineBehindItIsChecked) {
  Capabilities capabilities;
  capabilities.features = {Feature::kMaskTensor, Feature::kPaged};
  capabilities.numerics = reference_engine().capabilities.numerics;
  const Engine right =
      dlpack::engine("dlpack", capabilities, [](const dlpack::Call& call) {
        return reference_by_dlpack(call, false);
      });
  const Engine wrong = dlpack::engine(
      "dlpack", capabilities,
      [](const dlpack::Call& call) { return reference_by_dlpack(call, true); });
  for (const char* layout : {"bhsd", "bshd", "sbhd"})
    for (const char* more : {"dtype=fp16", "dtype=bf16 mask_form=boolean",
                             "dtype=fp32 mask_form=additive"}) {
      const std::string line =
          "batch=2 num_heads=4 num_kv_heads=2 seq_len=19 head_dim=16 "
          "mask=causal_bottom_right layout=" +
          std::string(layout) + " " + more;
      EXPECT_EQ(run_problem(right, line).verdict, Verdict::kPass) << line;
      EXPECT_EQ(run_problem(wrong, line).verdict, Verdict::kViolation) << line;
    }
  EXPECT_EQ(run_problem(right, "seq_len=19 head_dim=16 block_size=4").verdict,
            Verdict::kUnsupported);
}

}  // namespace
}  // namespace attnguard
