// Downloads from a server of the test, good and hostile.
#include "tare/data/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/environment.h"
#include "support/http_server.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare {
namespace {

using ::testing::HasSubstr;
using testing::HttpServer;
using testing::ScopedVariable;
using testing::TempDir;

// Proxies of the machine must not stand between curl and the local server.
class Download : public ::testing::Test {
 protected:
  ScopedVariable no_proxy_{"no_proxy", "*"};
  TempDir folder_;
};

const std::string kBody(200'000, 'x');

// `body` as the file x, with the right size and hash of `body`.
RemoteFile describe(const TempDir& folder, const std::string& body, const std::string& url) {
  io::write_atomically(folder / "reference", body);
  RemoteFile file{"x", url, static_cast<int64_t>(body.size()), sha256_of(folder / "reference")};
  io::remove_all(folder / "reference");
  return file;
}

template <class E>
E failure(const RemoteFile& file, const TempDir& folder) {
  try {
    download(file, folder.path());
  } catch (const E& error) {
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "something was left behind";
    return error;
  }
  throw std::logic_error("the download was accepted");
}

TEST(Sha256, IsThatOfThePublishedExamples) {
  // FIPS 180-2, appendix B.
  const TempDir folder;
  io::write_atomically(folder / "abc", "abc");
  EXPECT_EQ(sha256_of(folder / "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  io::write_atomically(folder / "many", std::string(1'000'000, 'a'));
  EXPECT_EQ(sha256_of(folder / "many"),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_F(Download, BringsAFileWholeAndOnce) {
  const HttpServer server(HttpServer::ok(kBody));
  const RemoteFile file = describe(folder_, kBody, server.url("x"));
  download(file, folder_ / "new/folder");
  EXPECT_EQ(io::read_text(folder_ / "new/folder/x"), kBody);
  download(file, folder_ / "new/folder");
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(Download, ReplacesADamagedFile) {
  const HttpServer server(HttpServer::ok(kBody));
  const RemoteFile file = describe(folder_, kBody, server.url("x"));
  std::string damaged = kBody;
  damaged[1000] = 'y';
  io::write_atomically(folder_ / "x", damaged);
  download(file, folder_.path());
  EXPECT_EQ(io::read_text(folder_ / "x"), kBody);
}

TEST_F(Download, WrongHashIsRefused) {
  const HttpServer server(HttpServer::ok(std::string(kBody.size(), 'y')));
  EXPECT_EQ(failure<FormatError>(describe(folder_, kBody, server.url("x")), folder_).part(),
            "sha256");
}

TEST_F(Download, WrongSizeIsRefused) {
  const HttpServer longer(HttpServer::ok(kBody + "more")), shorter(HttpServer::ok("less"));
  EXPECT_EQ(failure<FormatError>(describe(folder_, kBody, longer.url("x")), folder_).part(),
            "size");
  EXPECT_EQ(failure<FormatError>(describe(folder_, kBody, shorter.url("x")), folder_).part(),
            "size");
}

TEST_F(Download, EndlessBodyIsCutOff) {
  const HttpServer server("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" +
                          std::string(50'000'000, 'x'));
  EXPECT_EQ(failure<FormatError>(describe(folder_, kBody, server.url("x")), folder_).part(),
            "size");
}

TEST_F(Download, BrokenConnectionIsAnIoErrorInCurlsWords) {
  const HttpServer server("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\nonly this");
  EXPECT_THAT(failure<IoError>(describe(folder_, kBody, server.url("x")), folder_).what(),
              HasSubstr("curl: (18)"));
}

TEST_F(Download, MissingPageAndRefusedConnectionAreIoErrors) {
  const HttpServer server(
      "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngone");
  EXPECT_THAT(failure<IoError>(describe(folder_, kBody, server.url("x")), folder_).what(),
              HasSubstr("404"));
  EXPECT_THAT(failure<IoError>(describe(folder_, kBody, "http://127.0.0.1:1/x"), folder_).what(),
              HasSubstr("curl: (7)"));
}

TEST_F(Download, AFailureLeavesNoFolder) {
  const RemoteFile file = describe(folder_, kBody, "http://127.0.0.1:1/x");
  EXPECT_THROW(download(file, folder_ / "new"), IoError);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
  io::make_directories(folder_ / "old");
  EXPECT_THROW(download(file, folder_ / "old"), IoError);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "old")) << "it was there before";
}

TEST_F(Download, RedirectionToAFileIsNotFollowed) {
  const HttpServer server(
      "HTTP/1.1 302 Found\r\nLocation: file:///etc/hostname\r\nContent-Length: 0\r\nConnection: "
      "close\r\n\r\n");
  (void)failure<IoError>(describe(folder_, kBody, server.url("x")), folder_);
}

TEST_F(Download, UrlIsNeverReadByAShellOrAsAnOption) {
  (void)failure<IoError>(
      describe(folder_, kBody, "http://127.0.0.1:1/$(touch " + (folder_ / "made").string() + ")"),
      folder_);
  (void)failure<IoError>(describe(folder_, kBody, "--version"), folder_);
}

TEST_F(Download, MissingCurlSaysSo) {
  const ScopedVariable path("PATH", folder_.path().string());
  EXPECT_THAT(failure<IoError>(describe(folder_, kBody, "http://127.0.0.1:1/x"), folder_).what(),
              HasSubstr("curl is missing"));
}

TEST(Manifest, WrongOnesAreRefused) {
  const std::string good_hash(64, 'a');
  const auto manifest = [](const std::string& name, const std::string& url,
                           const std::string& hash) {
    return "name: m\nfiles:\n  - {name: " + name + ", url: '" + url +
           "', bytes: 3, sha256: " + hash + "}\n";
  };
  const Manifest read = parse_manifest(manifest("x.gz", "https://h/x", good_hash), "m.yaml");
  ASSERT_EQ(read.files.size(), 1U);
  EXPECT_EQ(read.files[0].bytes, 3);
  EXPECT_THROW((void)parse_manifest(manifest("../x", "https://h/x", good_hash), "m.yaml"),
               ConfigError);
  EXPECT_THROW((void)parse_manifest(manifest("x", "file:///etc/passwd", good_hash), "m.yaml"),
               ConfigError);
  EXPECT_THROW((void)parse_manifest(manifest("x", "https://h/x", "short"), "m.yaml"), ConfigError);
  EXPECT_THROW((void)parse_manifest("name: m\nfiles:\n  - {nme: x}\n", "m.yaml"), ConfigError);
}

}  // namespace
}  // namespace tare
