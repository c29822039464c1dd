// Writing safetensors files, also when every call fails once.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "checkpoint/support.h"
#include "support/fault_file_system.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/safetensors.h"

namespace tare::checkpoint {
namespace {

using tare::testing::Fault;
using tare::testing::FaultFileSystem;
using tare::testing::TempDir;

TEST(WriteSafeTensors, WritesViewsAsTheirValues) {
  const TempDir dir;
  const at::Tensor base = counting({4, 6});
  const std::vector<NamedTensor> views = {{"transposed", base.t()},
                                          {"expanded", base.select(0, 1).expand({3, 6})},
                                          {"strided", base.slice(1, 0, 6, 2)}};
  write(dir / "file", views);
  const SafeTensors file = SafeTensors::open(dir / "file");
  for (const auto& [name, tensor] : views) EXPECT_TRUE(same(file.tensor(name), tensor)) << name;
}

TEST(WriteSafeTensors, WritesATiedTensorOnce) {
  const TempDir dir;
  const at::Tensor shared = counting({100});
  write(dir / "file", {{"embedding", shared}, {"decoder", shared}});
  const SafeTensors file = SafeTensors::open(dir / "file");
  EXPECT_EQ(file.tensors().size(), 1U);
  EXPECT_EQ(file.ties(), (std::map<std::string, std::string>{{"decoder", "embedding"}}));
  const std::vector<NamedTensor> all = file.all();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].tensor.is_alias_of(all[1].tensor));
  EXPECT_TRUE(same(file.tensor("decoder"), shared));
}

TEST(WriteSafeTensors, WritesTensorsThatOverlapOtherwiseInFull) {
  const TempDir dir;
  const at::Tensor base = counting({4});
  write(dir / "file", {{"all", base}, {"front", base.slice(0, 0, 2)}});
  const SafeTensors file = SafeTensors::open(dir / "file");
  EXPECT_TRUE(file.ties().empty());
  EXPECT_TRUE(same(file.tensor("front"), counting({2})));
}

TEST(WriteSafeTensors, DigestIsThatOfTheFileHoweverEmptyTensorsLie) {
  const TempDir dir;
  const std::vector<NamedTensor> tensors = {{"z", at::zeros({0})},
                                            {"a", at::zeros({0}, at::kInt)},
                                            {"m", counting({3})},
                                            {"t", counting({3}, at::kInt)}};
  const Digest written = write(dir / "file", tensors, {{"key", "value"}});
  EXPECT_EQ(written, digest(SafeTensors::open(dir / "file")));
  EXPECT_EQ(written, digest(tensors, {{"key", "value"}}));
}

TEST(WriteSafeTensors, DataStartsAligned) {
  const TempDir dir;
  for (size_t length = 1; length < 20; ++length) {
    write(dir / "file", {{std::string(length, 'x'), counting({3}, at::kDouble)}});
    const std::string content = read_file(dir / "file");
    EXPECT_EQ(parse_header(as_bytes(content), "file").data_start % 8, 0) << length;
  }
}

TEST(WriteSafeTensors, RefusesWhatCannotBeReadAgain) {
  const TempDir dir;
  const at::Tensor tensor = counting({1});
  const auto refuses = [&](const std::vector<NamedTensor>& tensors,
                           const std::map<std::string, std::string>& metadata = {}) {
    EXPECT_THROW(write(dir / "file", tensors, metadata), ConfigError);
    EXPECT_FALSE(std::filesystem::exists(dir / "file"));
    EXPECT_FALSE(std::filesystem::exists(dir / "file.partial"));
  };
  refuses({{"", tensor}});
  refuses({{"__metadata__", tensor}});
  refuses({{"a", tensor}, {"a", tensor}});
  refuses({{"a\nb", tensor}});
  refuses({{"\xff", tensor}});
  refuses({{"\xed\xa0\x80", tensor}});
  refuses({{std::string(4097, 'a'), tensor}});
  refuses({{"a", at::Tensor()}});
  refuses({{"a", tensor.to(at::kComplexFloat)}});
  refuses({{"a", at::empty({2}, c10::TensorOptions(c10::kMeta))}});
  refuses({{"a", tensor}}, {{"key", "\xff"}});
}

TEST(WriteSafeTensors, EveryFailedCallIsAnIoErrorAndLeavesTheOldFile) {
  const TempDir dir;
  write(dir / "file", {{"a", counting({4})}});
  const std::string before = read_file(dir / "file");
  int64_t calls = 0;
  {
    const FaultFileSystem counter;
    write(dir / "file", {{"a", counting({4})}});
    calls = counter.count();
  }
  ASSERT_GT(calls, 5);
  for (int64_t k = 1; k < calls;
       ++k) {  // the last call flushes the folder: the new file is in place by then
    {
      const FaultFileSystem broken({.at = k, .error_number = ENOSPC});
      EXPECT_THROW(write(dir / "file", {{"b", counting({4})}}), IoError) << k;
    }
    EXPECT_EQ(read_file(dir / "file"), before) << k;
  }
}

}  // namespace
}  // namespace tare::checkpoint
