// Checkpoints whose manifest, or whose directory, breaks one rule each. Every one is refused at
// once, naming the field or the file. Those that seal what they say could be made by anybody: the
// seal is no signature.
#include <functional>
#include <nlohmann/json.hpp>

#include "checkpoint/support.h"
#include "support/hostile.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/checkpoint/manifest.h"

namespace tare::checkpoint {
namespace {

using nlohmann::json;
using tare::testing::expect_refused;
using tare::testing::TempDir;

class HostileManifest : public ::testing::Test {
 protected:
  HostileManifest() {
    save(folder_, {.model = {{"fc.weight", counting({3, 4})}, {"fc.bias", counting({3})}},
                   .optimizer = {{"exp_avg/fc.weight", counting({3, 4})}},
                   .extra = {}});
  }
  void expect_named(const std::string& part, const char* type = "FormatError") const {
    expect_refused(type, part + ": ", [&] { (void)load(folder_); });
  }

  TempDir dir_;
  std::filesystem::path folder_ = dir_ / "c";
  std::filesystem::path manifest_ = folder_ / "manifest.json";
};

// `body` stands behind the line of the checksum.
std::string sealed(const std::string& body) {
  return "{\n \"checksum\": \"xxh3:" + hash(body) + "\",\n" + body;
}

TEST_F(HostileManifest, IsRefusedByField) {
  const json good = unseal(read_file(manifest_), "test", "file", "manifest");
  const std::string model = "model.safetensors";
  const auto of_model = [&](const char* key, const json& value) {
    return [=](json& m) { m["files"][model][key] = value; };
  };
  const auto lists = [&](const std::string& name) {
    return [=](json& m) { m["files"][name] = m["files"][model]; };
  };
  const auto tensor = [&](const char* name, const json& value) {
    return [=](json& m) { m["files"][model]["tensors"][name] = value; };
  };
  const struct {
    const char* name;
    std::function<void(json&)> change;
    std::string part;
  } cases[] = {
      {"another format", [](json& m) { m["format"] = "other"; }, "format"},
      {"a bundle's format", [](json& m) { m["format"] = "tare.bundle"; }, "format"},
      {"no format", [](json& m) { m.erase("format"); }, "format"},
      {"newer version", [](json& m) { m["version"] = 2; }, "version"},
      {"negative version", [](json& m) { m["version"] = -1; }, "version"},
      {"fractional version", [](json& m) { m["version"] = 1.0; }, "version"},
      {"version as text", [](json& m) { m["version"] = "1"; }, "version"},
      {"no version", [](json& m) { m.erase("version"); }, "version"},
      {"state is a number", [](json& m) { m["state"] = 1; }, "state"},
      {"no state", [](json& m) { m.erase("state"); }, "state"},
      {"writer is a number", [](json& m) { m["tare"] = 1; }, "tare"},
      {"library is null", [](json& m) { m["libtorch"] = nullptr; }, "libtorch"},
      {"files are a list", [](json& m) { m["files"] = json::array(); }, "files"},
      {"no files", [](json& m) { m.erase("files"); }, "files"},
      {"no model", [=](json& m) { m["files"].erase(model); }, "files"},
      {"path upwards", lists("../secret"), "files"},
      {"absolute path", lists("/etc/passwd"), "files"},
      {"path with a zero byte", lists(model + std::string(1, '\0')), "files"},
      {"path that means the same", lists("./" + model), "files"},
      {"file is null", [=](json& m) { m["files"][model] = nullptr; }, "files." + model},
      {"no size", [=](json& m) { m["files"][model].erase("bytes"); }, "files." + model},
      {"negative size", of_model("bytes", -1), "files." + model},
      {"size that wraps", of_model("bytes", UINT64_MAX), model},
      {"another size", of_model("bytes", 1), model},
      {"no layout", [=](json& m) { m["files"][model].erase("layout"); }, "files." + model},
      {"short hash of the layout", of_model("layout", "12"), "files." + model},
      {"another layout", of_model("layout", "0123456789abcdef"), "header"},
      {"tensors are a list", of_model("tensors", json::array()), "files." + model},
      {"hash in capitals", tensor("fc.bias", "0123456789ABCDEF"), "files." + model},
      {"hash is a number", tensor("fc.bias", 7), "files." + model},
      {"another hash", tensor("fc.bias", "0123456789abcdef"), "fc.bias"},
      {"a tensor too many", tensor("fc.extra", "0123456789abcdef"), "fc.extra"},
      {"a tensor too few", [=](json& m) { m["files"][model]["tensors"].erase("fc.bias"); },
       "fc.bias"},
      {"name with escape codes", tensor("\x1b[31m", "0123456789abcdef"), "\\x1b[31m"},
      {"optimizer that is the model",
       [=](json& m) { m["files"]["optimizer.safetensors"] = m["files"][model]; },
       "optimizer.safetensors"},
      {"file that is not there", lists("extra.safetensors"), "extra.safetensors"},
  };
  for (const auto& [name, change, part] : cases) {
    SCOPED_TRACE(name);
    json changed = good;
    change(changed);
    overwrite(manifest_, seal(changed));
    expect_named(part);
  }
  overwrite(manifest_, seal(good));
  EXPECT_EQ(refused_part([&] { (void)load(folder_); }), "accepted");
}

TEST_F(HostileManifest, IsRefusedAsText) {
  const std::string good = read_file(manifest_);
  const auto deep = [](const std::string& open) {
    std::string body = " \"a\": ";
    for (int i = 0; i < 1'000'000; ++i) body += open;
    return sealed(body);
  };
  // As many items as the limit of the size allows.
  const auto wide = [](const char* open, auto item, const char* close) {
    std::string body = open;
    for (int i = 0; static_cast<int64_t>(body.size()) < kMaxManifestBytes - 100; ++i)
      body += item(i) + ",";
    return sealed(body + item(-1) + close);
  };
  const struct {
    const char* name;
    std::string text;
  } cases[] = {
      {"empty", ""},
      {"millions of objects", wide(
                                  " \"a\": [", [](int) { return std::string("{}"); }, "]}")},
      {"millions of keys", wide(
                               " ", [](int i) { return "\"" + std::to_string(i) + "\":0"; }, "}")},
      {"an object without seal", "{}"},
      {"no JSON", sealed("nonsense")},
      {"no end", sealed(" \"format\": \"tare.checkpoint\",\n")},
      {"a second object", sealed(" \"a\": 1}{}")},
      {"a zero byte behind the end", sealed(" \"a\": 1}" + std::string(1, '\0'))},
      {"a key twice", sealed(" \"a\": 1, \"a\": 2}")},
      {"a key twice, written in two ways", sealed(" \"a\": 1, \"\\u0061\": 2}")},
      {"a key twice, deep inside", sealed(" \"x\": [{\"a\": 1, \"a\": 2}]}")},
      {"the checksum twice", sealed(" \"checksum\": 1}")},
      {"a byte that is no UTF-8", sealed(" \"a\": \"\xff\"}")},
      {"a lone surrogate", sealed(" \"a\": \"\\ud800\"}")},
      {"a number out of range", sealed(" \"a\": 1e999}")},
      {"not a number", sealed(" \"a\": NaN}")},
      {"a comment", sealed(" \"a\": 1 /* */}")},
      {"a comma too many", sealed(" \"a\": 1,}")},
      {"a million lists deep", deep("[")},
      {"a million objects deep", deep("{\"a\":")},
      {"the seal of another manifest", good.substr(0, 46) + sealed(" \"a\": 1}").substr(46)},
      {"a seal in capitals", good.substr(0, 20) + "XXH3" + good.substr(24)},
      {"text in front of the seal", " " + good},
      {"text behind the end", good + " "},
  };
  for (const auto& [name, text] : cases) {
    SCOPED_TRACE(name);
    overwrite(manifest_, text);
    expect_named("manifest.json");
  }
}

TEST_F(HostileManifest, AboveTheLimitOfItsSizeIsNotRead) {
  overwrite(manifest_, std::string(static_cast<size_t>(kMaxManifestBytes) + 1, ' '));
  expect_named("manifest.json", "IoError");
}

TEST_F(HostileManifest, WhatIsNoFileIsRefusedByName) {
  const auto model = folder_ / "model.safetensors";
  io::remove_all(model);
  std::filesystem::create_symlink("model.safetensors", model);
  expect_named("model.safetensors");  // a link to itself
  io::remove_all(model);
  io::make_directories(model);
  expect_named("model.safetensors");
  io::remove_all(manifest_);
  std::filesystem::create_symlink("manifest.json", manifest_);
  expect_named("manifest.json");
}

}  // namespace
}  // namespace tare::checkpoint
